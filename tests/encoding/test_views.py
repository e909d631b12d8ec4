"""Views of tables: numbers, normal scores and bins."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

from bayesgen.encoding.views import TableView


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": np.exp(rng.normal(size=50)),
            "colour": rng.choice(["red", "green", "blue"], size=50),
            "wild": rng.random(50) < 0.5,
            "sex": rng.choice(["f", "m"], size=50),
        }
    )


def test_numbers(table):
    view = TableView.learn(table, "numbers")
    X = view.encode(table)
    assert X.shape == (50, 6)  # three colours, one column for two sexes
    np.testing.assert_array_equal(X[:, 0], table["size"])
    np.testing.assert_array_equal(view.origin, [0, 1, 1, 1, 2, 3])
    np.testing.assert_array_equal(X[:, 1:4].sum(axis=1), 1)
    np.testing.assert_array_equal(X[:, 5], table["sex"] == "m")


def test_a_missing_cell_is_the_mean_of_its_column(table):
    view = TableView.learn(table, "numbers")
    blank = table.astype(object).iloc[:1].copy()
    blank[:] = None
    np.testing.assert_allclose(view.encode(blank)[0], view.encode(table).mean(axis=0))


def test_normal_scores(table):
    view = TableView.learn(table, "normal scores")
    expected = norm.ppf((rankdata(table["size"]) - 0.5) / 50)
    np.testing.assert_allclose(view.encode(table)[:, 0], expected, atol=1e-12)
    far = table.iloc[:2].assign(size=[1e6, -1e6])
    scores = view.encode(far)[:, 0]
    slope = (expected.max() - expected.min()) / (table["size"].max() - table["size"].min())
    np.testing.assert_allclose(scores[0], expected.max() + slope * (1e6 - table["size"].max()))
    assert scores[1] < -1e4
    ties = TableView.learn(pd.DataFrame({"x": [1.0, 1, 1, 2]}), "normal scores")
    np.testing.assert_allclose(ties.encode(pd.DataFrame({"x": [1.0]}))[0, 0], norm.ppf(1.5 / 4))


def test_many_rows_have_few_knots():
    x = np.random.default_rng(1).normal(size=20_000)
    view = TableView.learn(x[:, None], "normal scores")
    assert len(view.knots[0][0]) <= 260
    np.testing.assert_allclose(
        view.encode(x[:, None])[:, 0], norm.ppf((rankdata(x) - 0.5) / len(x)), atol=0.03
    )


def test_bins(table):
    view = TableView.learn(table, "bins", n_bins=5)
    X = view.encode(table)
    assert X.shape == (50, 4)
    np.testing.assert_array_equal(np.bincount(X[:, 0].astype(int)), [10] * 5)
    assert view.n_categories == [[0, 1, 2, 3, 4], [0, 1, 2], [0, 1], [0, 1]]
    blank = table.astype(object).iloc[:1].copy()
    blank[:] = None
    assert np.isnan(view.encode(blank)).all()
    other = table.iloc[:1].assign(colour=["violet"])
    assert np.isnan(view.encode(other)[0, 1])


@pytest.mark.parametrize("name", ["numbers", "normal scores", "bins"])
def test_record(table, name):
    view = TableView.learn(table, name)
    again = TableView.from_json(view.to_json())
    np.testing.assert_array_equal(again.encode(table), view.encode(table))


@pytest.mark.parametrize("name", ["numbers", "normal scores"])
def test_a_category_of_one_row_is_as_one_never_seen(table, name):
    some = table.assign(colour=["pink", "grey", *["red", "green"] * 24], sex=["m"] * 49 + ["f"])
    view = TableView.learn(some, name)
    np.testing.assert_array_equal(view.origin, [0, 1, 2])  # red against green, no sex
    X = view.encode(some)
    np.testing.assert_array_equal(X[2:, 1], some["colour"][2:] == "red")
    unseen = view.encode(some.iloc[:2].assign(colour="violet"))
    np.testing.assert_array_equal(X[:2], unseen)
    again = TableView.from_json(view.to_json())
    np.testing.assert_array_equal(again.encode(some), X)


def test_unknown_view(table):
    with pytest.raises(ValueError, match="view must be one of"):
        TableView.learn(table, "ranks")
