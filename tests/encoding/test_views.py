"""Views of tables: numbers and normal scores; bins."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

from bayesgen.encoding.reader import Rows
from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.tables import as_table
from bayesgen.encoding.views import BinnedTable, TableView


def learn(table, name):
    schema = TableSchema.learn(table)
    return TableView.learn(schema, schema.encode(table), name)


def encode(view, table):
    return view.see(Rows(table, None, as_table(table)), True)


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
    view = learn(table, "numbers")
    X = encode(view, table)
    assert X.shape == (50, 6)  # three colours, one column for two sexes
    np.testing.assert_array_equal(X[:, 0], table["size"])
    np.testing.assert_array_equal(X[:, 1:4].sum(axis=1), 1)
    np.testing.assert_array_equal(X[:, 5], table["sex"] == "m")


def test_a_missing_cell_of_a_training_row_is_the_mean_of_its_column(table):
    view = learn(table, "numbers")
    blank = table.astype(object).iloc[:1].copy()
    blank[:] = None
    np.testing.assert_allclose(encode(view, blank)[0], encode(view, table).mean(axis=0))
    assert np.isnan(view.of_cells(view.schema.encode(blank))).all()


def test_a_view_of_many_categories_is_learned_without_its_indicators():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"name": rng.integers(0, 1000, 4000).astype(str)})
    schema = TableSchema.learn(table)
    cells = schema.encode(table)
    tracemalloc.start()
    view = TableView.learn(schema, cells, "numbers")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    indicators = view.of_cells(cells)
    np.testing.assert_allclose(view.centre, np.nanmean(indicators, axis=0))
    assert peak < indicators.nbytes / 20


def test_normal_scores(table):
    view = learn(table, "normal scores")
    expected = norm.ppf((rankdata(table["size"]) - 0.5) / 50)
    np.testing.assert_allclose(encode(view, table)[:, 0], expected, atol=1e-12)
    far = table.iloc[:2].assign(size=[1e6, -1e6])
    scores = encode(view, far)[:, 0]
    slope = (expected.max() - expected.min()) / (table["size"].max() - table["size"].min())
    np.testing.assert_allclose(scores[0], expected.max() + slope * (1e6 - table["size"].max()))
    assert scores[1] < -1e4
    ties = learn(pd.DataFrame({"x": [1.0, 1, 1, 2]}), "normal scores")
    np.testing.assert_allclose(encode(ties, pd.DataFrame({"x": [1.0]}))[0, 0], norm.ppf(1.5 / 4))


def test_many_rows_have_few_knots():
    x = np.random.default_rng(1).normal(size=20_000)
    view = learn(x[:, None], "normal scores")
    assert len(view.knots[0][0]) <= 260
    np.testing.assert_allclose(
        encode(view, x[:, None])[:, 0], norm.ppf((rankdata(x) - 0.5) / len(x)), atol=0.03
    )


def test_codes_of_whole_numbers_are_codes_with_nan():
    X = np.array([[0, 1], [1, 0]])
    pairs = BinnedTable.of_rows(Rows(X, None, as_table(X)), 4, {"categorical": [0, 1]})
    codes = pairs.codes(pairs.encode(np.array([[1, 2], [0, 1]])))
    np.testing.assert_array_equal(codes, [[1, np.nan], [0, 1]])
    np.testing.assert_array_equal(pairs.codes(pairs.encode(X)), X)


@pytest.mark.parametrize("spike", [0.0, 2.5, -1.0])
def test_a_spike_is_a_bin_of_its_own(spike):
    """The other cells have their own quantiles, and it is shown itself."""
    off = spike + np.r_[np.arange(1.0, 21), -np.arange(1.0, 21) * (spike > 0)]
    X = pd.DataFrame({"x": np.r_[np.full(60, spike), off[off != spike]]})
    pairs = BinnedTable.of_rows(Rows(X, None, as_table(X)), 4)
    coded = pairs.codes(pairs.encode(X))
    codes = coded[:, 0]
    on = X["x"] == spike
    assert len(set(codes[on])) == 1
    assert not np.isin(codes[~on], codes[0]).any()
    assert len(set(codes[~on])) >= 4
    np.testing.assert_array_equal(pairs.decode(coded)[0][on], spike)


@pytest.mark.parametrize("name", ["numbers", "normal scores"])
def test_a_category_of_one_row_is_as_one_never_seen(table, name):
    some = table.assign(colour=["pink", "grey", *["red", "green"] * 24], sex=["m"] * 49 + ["f"])
    view = learn(some, name)
    X = encode(view, some)
    assert X.shape == (50, len(view.centre)) == (50, 3)  # red against green, no sex
    np.testing.assert_array_equal(X[2:, 1], some["colour"][2:] == "red")
    with pytest.warns(UserWarning, match="the first 'violet'"):
        unseen = encode(view, some.iloc[:2].assign(colour="violet"))
    np.testing.assert_array_equal(X[:2], unseen)
