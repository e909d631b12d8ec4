"""Posterior class proportions: coverage, enumeration, quadrature, and what must hold."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse, stats

import bayesgen as bg


def binary(rng, n_features, per_class, m, rho):
    """A fitted classifier and m unlabelled rows of a shifted population, all from the prior."""
    theta = rng.uniform(size=(2, n_features))
    y = np.repeat([0, 1], per_class)
    X = (rng.uniform(size=(len(y), n_features)) < theta[y]).astype(float)
    z = (rng.uniform(size=m) < rho).astype(int)
    new = (rng.uniform(size=(m, n_features)) < theta[z]).astype(float)
    return bg.BernoulliNB(alpha=1.0, beta=1.0).fit(X, y), new, z


@pytest.fixture(scope="module")
def gaussian():
    """Three classes; of the new rows none is of the last."""
    rng = np.random.default_rng(5)
    means = np.array([[0.0, 0.0], [2.0, 0.5], [0.5, 2.5]])
    y = np.repeat(["a", "b", "c"], 12)
    X = rng.normal(size=(36, 2)) + means[np.repeat(range(3), 12)]
    new = rng.normal(size=(60, 2)) + means[np.repeat([0, 1], [45, 15])]
    return bg.QuadraticDiscriminant().fit(X, y), new


@pytest.mark.slow
def test_intervals_cover():
    """Rows and proportions from the prior; 240 replicates: two standard errors are 0.039."""
    rng, covered = np.random.default_rng(0), 0
    for r in range(240):
        rho = rng.uniform()
        clf, new, _ = binary(rng, 5, 5, 50, rho)
        shift = bg.estimate_class_prior(
            clf, new, draws=100, chains=2, prob=0.9, kind="eti", random_state=r
        )
        low, high = shift["summary"]["interval"].values[1]
        covered += low <= rho <= high
    assert 0.86 <= covered / 240 <= 0.97


def test_proportions_against_a_grid():
    clf, new, _ = binary(np.random.default_rng(7), 4, 6, 40, 0.3)
    shift = bg.estimate_class_prior(clf, new, prior=[2, 1], draws=1000, prob=0.8)
    theta = clf.model_.family.draw(np.random.default_rng(99), 4000)  # its own draws
    rho = (np.arange(400) + 0.5) / 400
    f = np.exp(clf.model_.family.log_likelihood(new, theta))  # (S, m, 2)
    log_p = stats.beta.logpdf(rho, 1, 2) + sum(
        np.log(f[:, i, :1] * (1 - rho) + f[:, i, 1:] * rho) for i in range(len(new))
    )
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    mean = p @ rho
    summary = shift["summary"]
    mcse = np.hypot(summary["sd"][1] / np.sqrt(summary["ess"][1]), mean.std() / np.sqrt(4000))
    assert abs(summary["mean"][1] - mean.mean()) < 4 * mcse
    below = np.interp(summary["interval"][1], rho, np.cumsum(p.mean(axis=0)))
    np.testing.assert_allclose(below, [0.1, 0.9], atol=0.025)
    np.testing.assert_allclose(shift["predictions"]["class_probability"].sum("class"), 1)
    exact = [
        (p * (f[:, i, 1:] * rho / (f[:, i, :1] * (1 - rho) + f[:, i, 1:] * rho))).sum(axis=1)
        for i in range(5)
    ]
    got = shift["predictions"]["class_probability"].values[:5, 1]
    np.testing.assert_allclose(got, np.mean(exact, axis=1), atol=0.03)


def test_mode_is_that_of_expectation_maximisation_on_probabilities(gaussian):
    """Saerens et al. (2002), equations 2.5 and 2.6, from predict_proba and its class weights."""
    clf, new = gaussian
    trained = clf.model_.alpha / clf.model_.alpha.sum()
    p = clf.predict_proba(new)
    rho = trained
    for _ in range(5000):
        q = p * rho / trained
        rho = (q / q.sum(axis=1, keepdims=True)).mean(axis=0)
    shift = bg.estimate_class_prior(clf, new, draws=10)
    np.testing.assert_allclose(shift["summary"]["map"], rho, atol=1e-5)


def test_a_class_that_is_absent(gaussian):
    clf, new = gaussian
    shift = bg.estimate_class_prior(clf, new, prob=0.95, draws=200)
    summary = shift["summary"]
    low, high = summary["interval"].sel({"class": "c"}).values
    assert low < 0.03
    assert high < 0.25
    for name, share in {"a": 0.75, "b": 0.25, "c": 0.0}.items():
        low, high = summary["interval"].sel({"class": name}).values
        assert low - 0.02 <= share <= high + 0.02
    np.testing.assert_allclose(summary["mean"].sum(), 1)


def test_what_comes_back(gaussian):
    import arviz as az

    clf, new = gaussian
    shift = bg.estimate_class_prior(clf, new, draws=50, chains=2)
    drawn = shift["posterior"]["class_prior"]
    assert drawn.dims == ("chain", "draw", "class")
    assert drawn.shape == (2, 50, 3)
    np.testing.assert_allclose(drawn.sum("class"), 1)
    assert shift["summary"].attrs == {
        "prob": az.rcParams["stats.ci_prob"],
        "kind": az.rcParams["stats.ci_kind"],
    }
    assert shift.attrs["prior"] == [1, 1, 1]
    assert shift.attrs["rows"] == 60
    table = az.summary(shift)
    assert list(table.index) == ["class_prior[a]", "class_prior[b]", "class_prior[c]"]
    again = bg.estimate_class_prior(clf, new, draws=50, chains=2)
    xr.testing.assert_identical(again["posterior"].to_dataset(), shift["posterior"].to_dataset())


def test_given_draws_decide():
    """Draws of the same classes with their names exchanged exchange the proportions."""
    rng = np.random.default_rng(12)
    y = np.repeat(["a", "b"], 20)
    X = rng.normal(size=(40, 1)) + 6.0 * (y == "b")[:, None]
    exchanged = bg.GaussianNB().fit(X, np.where(y == "a", "b", "a")).draw_posterior(300, 2)
    new = rng.normal(size=(30, 1))
    clf = bg.GaussianNB().fit(X, y)
    of_fit, of_draws = (
        bg.estimate_class_prior(each, new, draws=300, chains=2)["summary"]["mean"].values
        for each in (clf, clf.with_posterior(exchanged))
    )
    assert of_fit[0] > 0.9
    assert of_draws[1] > 0.9


@pytest.mark.parametrize("position", [0, -1])
def test_every_unlabelled_row_counts(position):
    """One row of class b among rows that tell nothing: the mean is that of one draw, 2/3."""
    y = np.repeat(["a", "b"], 60)
    X = np.where(y == "a", 0.0, 9.0)[:, None] + np.tile([-1.0, 0.0, 1.0], 40)[:, None]
    new = np.full((4, 1), np.nan)
    new[position] = 9.0
    clf = bg.GaussianNB().fit(X, y)
    summary = bg.estimate_class_prior(clf, new, draws=100)["summary"]
    error = summary["sd"].values[1] / np.sqrt(min(summary["ess"].values[1], 400))
    assert abs(summary["mean"].values[1] - 2 / 3) < 5 * error


def test_concentrations_by_label(gaussian):
    clf, new = gaussian
    named = {"c": 30.0, "a": 10.0, "b": 20.0}
    for prior in (named, pd.Series(named), xr.DataArray([*named.values()], {"class": [*named]})):
        shift = bg.estimate_class_prior(clf, new[:1], prior, draws=4)
        assert shift.attrs["prior"] == [10, 20, 30]


def test_sparse_counts():
    counts = np.random.default_rng(1).poisson([[3, 1, 1], [1, 1, 3]], (40, 2, 3)).reshape(80, 3)
    clf = bg.MultinomialNB().fit(sparse.csr_matrix(counts), np.tile(["x", "z"], 40))
    shift = bg.estimate_class_prior(clf, sparse.csr_matrix(counts[::2]), draws=100)  # all "x"
    assert shift["summary"]["mean"].sel({"class": "x"}) > 0.7


def test_one_class_has_all_rows():
    X = np.random.default_rng(1).normal(size=(40, 2))
    X[0, 0] = np.nan
    summary = bg.estimate_class_prior(bg.GaussianNB().fit(X, ["only"] * 40), X, draws=20)["summary"]
    assert summary["mean"].values.tolist() == summary["map"].values.tolist() == [1.0]
    assert summary["interval"].values.tolist() == [[1.0, 1.0]]


def test_rows_of_hugely_different_density():
    zeros, ones = np.zeros((1, 4000)), np.ones((1, 4000))
    clf = bg.BernoulliNB().fit(np.r_[zeros, zeros, ones, ones], ["a", "a", "b", "b"])
    shift = bg.estimate_class_prior(clf, np.r_[zeros, zeros, zeros, ones])
    np.testing.assert_allclose(shift["summary"]["mean"], [4 / 6, 2 / 6], atol=0.025)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": np.ones((0, 2))}, "X holds no rows"),
        ({"X": np.ones((4, 3))}, "3 features"),
        ({"prior": 0}, "prior must be > 0"),
        ({"prior": [1, 2]}, r"prior has shape \(2,\)"),
        ({"prior": {"a": 1, "b": 1}}, r"prior has no concentration for \['c'\]"),
        ({"prior": {"a": 1, "b": 1, "d": 1}}, "'d' is not a class"),
        ({"draws": 2}, "draws must be an integer >= 4, got 2"),
        ({"chains": 1.5}, "chains must be an integer >= 1, got 1.5"),
        ({"prob": 1.2}, "prob must be between 0 and 1"),
    ],
)
def test_what_is_refused(gaussian, options, message):
    clf, new = gaussian
    with pytest.raises(ValueError, match=message):
        bg.estimate_class_prior(clf, **{"X": new, **options})
