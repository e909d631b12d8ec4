import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayesgen as bg
from tests.estimators.cases import CASES, fitted

HOSTILE = "<script>alert(1)</script>"


def test_a_gaussian_prior_in_units():
    X = np.random.default_rng(0).normal(50, 4, size=(40, 2))
    clf = bg.GaussianNB(mu0=[50.0, 0.0], kappa0=0.5, nu0=4.0, sigma2_0=9.0).fit(
        X, np.arange(40) % 2
    )
    table = clf.summary().table
    assert table["prior"][0] == "mean 50, worth 0.5 rows; sd 3, worth 4 rows"
    half = stats.t(4, scale=3 * np.sqrt(3)).isf(0.05)
    ends = [float(end) for end in str(table["prior_range"][1].item()).split(" to ")]
    np.testing.assert_allclose(ends, [-half, half], rtol=1e-2)  # three digits


def test_the_prior_of_a_full_covariance_is_that_of_its_margins():
    X = np.random.default_rng(0).normal(size=(40, 3))
    prior = {"mu0": 1.0, "kappa0": 0.5, "nu0": 6.0, "psi0": np.diag([4.0, 16.0, 64.0])}
    clf = bg.QuadraticDiscriminant(**prior).fit(X, np.arange(40) % 2)
    rng = np.random.default_rng(1)
    sigma = stats.invwishart(6, np.diag([4.0, 16.0, 64.0])).rvs(20_000, random_state=rng)
    variance = np.diagonal(sigma, axis1=1, axis2=2)
    cells = rng.normal(1.0, np.sqrt(variance * (1 + 1 / 0.5)))
    for j, told in enumerate(clf.summary().table["prior_range"].values):
        low, high = (float(end) for end in told.split(" to "))
        inside = np.mean((low < cells[:, j]) & (cells[:, j] < high))
        assert abs(inside - 0.9) < 5 * np.sqrt(0.9 * 0.1 / 20_000) + 0.002  # ends of three digits


def test_a_poisson_prior_in_units():
    clf = bg.PoissonNB(shape=2.0, rate=0.5).fit([[1], [4]] * 10, [0, 1] * 10)
    table = clf.summary().table
    assert table["prior"][0] == "4 a row, worth 0.5 rows"
    rate = stats.gamma(2, scale=2).rvs(100_000, random_state=0)
    x = stats.poisson(rate).rvs(random_state=1)
    assert table["prior_range"][0] == "{:.0f} to {:.0f}".format(*np.quantile(x, [0.05, 0.95]))


def test_missing_cells_of_a_stream_and_of_weights():
    X, y = pd.DataFrame({"a": [1.0, np.nan, 3, 4], "b": [0.0, 1, np.nan, np.nan]}), list("uvuv")
    clf = bg.GaussianNB().partial_fit(X, y).partial_fit(X, y)
    assert clf.summary().table["missing"].values.tolist() == [2, 4]
    assert "Rows: u (4), v (4)." in str(clf.summary())
    clf = bg.GaussianNB().fit(X, y, sample_weight=[1, 2, 3, 4])
    assert clf.summary().table["missing"].values.tolist() == [2, 7]
    assert "Rows, counted by weight as missing cells are: u (4), v (6)." in str(clf.summary())


def test_few_rows_and_a_chosen_prior_are_told():
    X, y = np.arange(12.0)[:, None] ** 1.5, ["a"] * 9 + ["b"] * 3
    text = str(bg.GaussianNB(prior="loo").fit(X, y).summary())
    assert "Prior chosen by leave-one-out (prior='loo'): " in text
    assert "fewer than 5 rows, where the prior decides: b (3)" in text


def test_many_columns_are_cut_in_print_alone():
    rng = np.random.default_rng(0)
    clf = bg.BernoulliNB().fit(rng.integers(0, 2, (30, 100)), np.arange(30) % 15)
    summary = clf.summary()
    assert len(summary.to_dataframe()) == 100
    assert "... and 80 more" in str(summary)
    assert str(summary).count("\n") < 30


def test_html_escapes_names_and_labels():
    X = pd.DataFrame({HOSTILE: np.arange(20) ** 1.5})
    clf = bg.GaussianNB().fit(X, [HOSTILE, "b"] * 10)
    html = clf._repr_html_()
    assert HOSTILE not in clf.summary()._repr_html_()
    assert "&lt;script&gt;" in html


def test_a_pool_has_one_in_the_same_style():
    X, y = bg.datasets.load_penguins()
    pool = bg.LogLinearPool([bg.MixedNB(), bg.MixedNB(variance="tied")]).fit(X, y)
    summary = pool.summary()
    assert summary._repr_html_() in pool._repr_html_()
    assert str(summary).splitlines()[1].split() == ["exponent", "lower", "upper"]
    assert "MixedNB-2" in summary._repr_html_()


@pytest.mark.parametrize("clf", [bg.GaussianNB(), bg.LogLinearPool()])
def test_unfitted_there_is_the_diagram_alone(clf):
    assert "<ul>" not in clf._repr_html_()
    assert type(clf).__name__ in clf._repr_html_()


def test_a_loaded_model_says_the_same(tmp_path):
    clf, *_ = fitted(CASES["MixedNB"])
    clf.save(tmp_path / "m.nc")
    *own, score = str(clf.summary()).splitlines()  # of rows, which no file holds
    assert score.startswith("Log loss of the labels")
    assert str(bg.load(tmp_path / "m.nc").summary()).splitlines() == own


def test_of_one_class_there_is_no_doubt():
    with pytest.warns(UserWarning, match="with one class every probability is 1"):
        clf = bg.GaussianNB().fit(np.arange(6.0)[:, None], ["a"] * 6)
    score = "each without its row: 0.000 nats (6 rows); of the class frequencies alone: 0.000."
    assert str(clf.summary()).endswith(score)


def test_to_list_and_to_display_a_classifier_draws_nothing(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a draw")

    X, y = bg.datasets.load_penguins()
    clf = bg.MixedNB().fit(X, y)
    pool = bg.LogLinearPool([clf]).fit(X, y)
    monkeypatch.setattr("bayesgen.inference.trees.draw_posterior", refuse)
    for each in (clf, pool):
        names = dir(each)
        assert "posterior_" in names
        assert "predict" in names
    assert "<table" in clf._repr_html_()
    assert "predict_interval" in dir(clf)
    assert "partial_fit" not in dir(bg.StudentTNB())


def test_a_long_label_is_shortened():
    clf = bg.LogLinearPool([bg.GaussianNB()])
    X = np.arange(24.0)[:, None] % 7
    summary = clf.fit(X, np.array(["a", "b" * 5000])[np.arange(24) % 2]).summary()
    assert max(map(len, str(summary).splitlines())) < 200


def test_long_names_are_shortened():
    X = pd.DataFrame({"n" * 3000: [0.0, 1.0, 2.0, 4.0], "b": [1.0, 2.0, 4.0, 3.0]})
    told = repr(bg.GaussianNB().fit(X, [0, 1, 0, 1]).summary())
    assert max(map(len, told.splitlines())) < 250
