"""predict_interval, predict_posterior and predict_uncertainty of every classifier's estimator.

The reference is the users' own way: draws of theta from `draw_posterior`, class probabilities by
Bayes' rule at each. What the numbers rest on is tested in tests/uncertainty.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import entr, expit, logsumexp, softmax
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.datatree.tree import read_draws
from tests.estimators.cases import CASES, LABELS, sample

N_DRAWS = 4000


class Fitted(NamedTuple):
    clf: Any
    X: Any  # 6 rows
    theta: Any  # posterior draws as a DataTree: one chain of N_DRAWS
    draws: Any  # Draws

    @property
    def rho(self):
        return self.draws.rho


def fit(name, n_classes, seed=3):
    X, codes, y = sample(CASES[name], n=36)
    own = np.flatnonzero(codes < n_classes)
    clf = CASES[name].make().fit(take(X, own), y[own])
    new = CASES[name].rows(np.random.default_rng(seed), np.arange(12) % n_classes)
    theta = clf.draw_posterior(N_DRAWS, 1, random_state=seed, groups=[])
    new = take(new, np.arange(6, 12))
    return Fitted(clf, new, theta, draws_of(clf, theta, new))


def draws_of(clf, theta, X, weights=None):
    """p(y | x, theta) of each draw by Bayes' rule."""
    found = read_draws(theta, clf.model_.params, clf.fitted_.coords)
    draws = {name: values[0] for name, values in found.items()}
    log_x = clf.model_.family.log_likelihood(clf.fitted_.read(X).encoded, draws)
    prior = draws["pi"][:, None, :] if weights is None else np.asarray(weights)
    return Draws(np.log(prior) + log_x)


class Draws:
    """(draw, N, C) class probabilities, and their log-odds, which do not round to 0 and 1."""

    def __init__(self, joint):
        self.rho = softmax(joint, axis=-1)
        self.log_x = logsumexp(joint, axis=-1)  # (draw, N)
        classes = np.arange(joint.shape[-1])
        self.odds = np.stack(
            [joint[..., c] - logsumexp(joint[..., classes != c], axis=-1) for c in classes], axis=-1
        )


# laws/test_intervals has every family
FITS = [("MarkovNB 2", 2), ("MixedNB", 2), ("BernoulliNB", 3), ("GaussianNB", 3)]


@pytest.fixture(scope="module", params=FITS, ids="{0[0]} {0[1]}".format)
def case(request):
    return fit(*request.param)


@pytest.fixture(scope="module")
def plain():
    return fit("GaussianNB", 3)


def assert_percentiles(table, draws, slack=0.003):
    """The ends cut off the tails that they say, within the error of the draws."""
    prob = table.attrs["prob"]
    low, high = np.moveaxis(table["log_odds"].values, -1, 0)
    tail = (1 - prob) / 2
    room = 4 * np.sqrt(tail * (1 - tail) / N_DRAWS) + slack
    room = room + 4 * table["error"].values[:, None]
    below, above = ((draws.odds < low).mean(axis=0), (draws.odds > high).mean(axis=0))
    if table.attrs["kind"] == "eti":
        assert (np.abs(below - tail) < room).all()
        assert (np.abs(above - tail) < room).all()
    assert (np.abs(below + above - 2 * tail) < 2 * room).all()


# ------------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize("kind", ["eti", "hdi"])
def test_ends_are_percentiles_of_draws(case, kind):
    intervals = case.clf.predict_interval(case.X, prob=0.8, kind=kind)
    n_classes = len(case.clf.classes_)
    assert intervals["interval"].dims == ("obs_id", "class", "bound")
    assert intervals["interval"].shape == (6, n_classes, 2)
    assert intervals["class"].values.tolist() == LABELS[:n_classes].tolist()
    assert intervals["bound"].values.tolist() == ["lower", "upper"]
    assert intervals.attrs["title"] == f"80 % intervals ({kind}) of class probabilities"
    np.testing.assert_array_equal(intervals["predictive"], case.clf.predict_proba(case.X))
    np.testing.assert_allclose(expit(intervals["log_odds"]), intervals["interval"], rtol=1e-12)
    assert (intervals["log_odds"].diff("bound") > 0).all()
    assert_percentiles(intervals, case.draws)


def test_fixed_class_weights(case):
    n_classes = len(case.clf.classes_)
    weights = np.arange(1, n_classes + 1) / (n_classes * (n_classes + 1) / 2)
    by_label = dict(zip(LABELS[:n_classes][::-1], weights[::-1], strict=True))
    draws = draws_of(case.clf, case.theta, case.X, weights)
    found = case.clf.predict_interval(case.X, prob=0.9, kind="eti", class_prior=by_label)
    assert_percentiles(found, draws)
    expected = case.clf.predict_proba(case.X, class_prior=weights)
    np.testing.assert_array_equal(found["predictive"], expected)
    table = case.clf.predict_uncertainty(case.X, class_prior=by_label)
    assert_averages(table, draws.rho)
    drawn = case.clf.predict_posterior(case.X, 4000, class_prior=by_label)
    drawn = drawn["predictions"]["class_probability"]
    # of both: one sample of a rare class may hold none of the draws that make its mean
    variance = drawn.var(("chain", "draw")) / 4000 + draws.rho.var(axis=0) / N_DRAWS
    error = np.sqrt(variance)
    gap = np.abs(drawn.mean(("chain", "draw")) - draws.rho.mean(axis=0))
    assert (gap < 5 * error + 1e-6).all()


def test_draws_of_a_posterior_are_used_one_by_one(case):
    """The route of posteriors without a closed form, on draws from one."""
    clf = case.clf.with_posterior(case.theta)
    intervals = clf.predict_interval(case.X, prob=0.9, kind="eti")
    expected = np.quantile(case.draws.odds, [0.05, 0.95], axis=0)
    np.testing.assert_allclose(intervals["log_odds"], expected.transpose(1, 2, 0), rtol=1e-9)
    assert (intervals["error"] > 0).all()
    assert (intervals["error"] < 0.01).all()
    shortest = clf.predict_interval(case.X, prob=0.9, kind="hdi")
    width = shortest["interval"].diff("bound") - intervals["interval"].diff("bound")
    assert (width < 1e-3).all()
    for draws, every in ((None, slice(None)), (7, np.linspace(0, N_DRAWS - 1, 7).astype(int))):
        drawn = clf.predict_posterior(case.X, draws=draws)["predictions"]["class_probability"]
        np.testing.assert_allclose(drawn[0], case.rho[every], atol=1e-12)
    table = clf.predict_uncertainty(case.X)
    np.testing.assert_allclose(table["mean"], case.rho.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(table["sd"], case.rho.std(axis=0), atol=1e-12)
    np.testing.assert_allclose(table["aleatoric"], entr(case.rho).sum(axis=-1).mean(axis=0))
    np.testing.assert_allclose(table["total"], entr(case.rho.mean(axis=0)).sum(axis=-1), atol=2e-3)


def test_arviz_decides_width_and_kind_unless_the_user_does(plain):
    import arviz as az

    clf, X = plain.clf, plain.X
    with az.rc_context({"stats.ci_prob": 0.5, "stats.ci_kind": "hdi"}):
        found = clf.predict_interval(X)
        own = clf.predict_interval(X, prob=0.9, kind="eti")
    assert (found.attrs["prob"], found.attrs["kind"]) == (0.5, "hdi")
    xr.testing.assert_identical(found, clf.predict_interval(X, prob=0.5, kind="hdi"))
    assert own.attrs["prob"] == 0.9
    assert clf.predict_interval(X).attrs["prob"] == az.rcParams["stats.ci_prob"]


# ----------------------------------------------------------------------------------- entropies


def assert_averages(table, rho, slack=2e-3):
    n = len(rho)
    entropy = entr(rho).sum(axis=-1)

    def close(name, draws, scale=1.0):
        error = 4 * draws.std(axis=0) / np.sqrt(n) + 4 * table["error"].values.reshape(
            -1, *[1] * (draws.ndim - 2)
        )
        assert (np.abs(table[name].values - scale * draws.mean(axis=0)) < error + slack).all()

    close("aleatoric", entropy)
    close("mean", rho)
    top = rho == rho.max(axis=-1, keepdims=True)
    close("top", top.astype(float))
    square = (rho - rho.mean(axis=0)) ** 2
    room = 4 * square.std(axis=0) / np.sqrt(n) + 4 * table["error"].values[:, None]
    assert (np.abs(table["sd"] ** 2 - square.mean(axis=0)) < room + slack).all()
    total = entr(rho.mean(axis=0)).sum(axis=-1)
    slope = np.abs(np.log(np.maximum(rho.mean(axis=0), 1e-9))) + 1
    error = rho.std(axis=0) / np.sqrt(n) + table["error"].values[:, None]  # of both
    room = (4 * error * slope).sum(axis=-1)
    assert (np.abs(table["total"] - total) < room + slack).all()


def test_averages_are_those_of_draws(case):
    table = case.clf.predict_uncertainty(case.X)
    assert_averages(table, case.rho)
    title = "entropy of each row's label, in nats"
    assert table.attrs == {"unit": "nats", "joint": True, "title": title}
    assert table["class"].values.tolist() == case.clf.classes_.tolist()
    np.testing.assert_allclose(table["epistemic"], table["total"] - table["aleatoric"])
    for name in ("mean", "top"):
        np.testing.assert_allclose(table[name].sum("class"), 1, atol=5e-3)
    assert (table["epistemic"] > -1e-4).all()
    bits = case.clf.predict_uncertainty(case.X, unit="bits")
    np.testing.assert_allclose(bits["total"], table["total"] / np.log(2), rtol=1e-12)


# ------------------------------------------------------------------------------------ the edges


@pytest.mark.parametrize("name", [name for name, _ in FITS])
def test_one_class_is_certain(name):
    X = CASES[name].rows(np.random.default_rng(2), np.zeros(12, dtype=int))
    clf = CASES[name].make().fit(X, np.repeat("only", 12))
    draws = clf.draw_posterior(20, 2, groups=[])
    for own in (clf, clf.with_posterior(draws)):
        found = own.predict_interval(X)
        assert (found["interval"] == 1).all()
        assert (found["log_odds"] == np.inf).all()
        assert (found["predictive"] == 1).all()
        table = own.predict_uncertainty(X)
        for what in ("total", "aleatoric", "epistemic", "sd"):
            np.testing.assert_allclose(table[what], 0, atol=1e-12)
        assert (table["top"] == 1).all()
        rho = own.predict_posterior(X, 5)
        assert (rho["predictions"]["class_probability"] == 1).all()


def test_a_row_does_not_depend_on_its_neighbours(case):
    X, clf = case.X, case.clf
    alone = X.iloc[2:3] if isinstance(X, pd.DataFrame) else X[2:3]
    for call in (clf.predict_interval, clf.predict_uncertainty):
        a, b = call(X).isel(obs_id=[2]), call(alone)
        for name in a.data_vars:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("predict_interval", {"prob": 1.0}, "prob must be between 0 and 1"),
        ("predict_interval", {"prob": 0.0}, "prob must be between 0 and 1"),
        ("predict_interval", {"kind": "sd"}, "kind must be one of 'eti', 'hdi'"),
        ("predict_interval", {"class_prior": [0.5, 0.5]}, r"class_prior has shape \(2,\)"),
        ("predict_interval", {"class_prior": {"ash": 1}}, "no weight for"),
        ("predict_posterior", {"draws": 1}, "draws must be an integer >= 2, got 1"),
        ("predict_posterior", {"draws": 10**8}, "GiB, more than 4: give fewer rows"),
        ("predict_posterior", {"class_prior": [1, 1, 1]}, "sum to 1"),
        ("predict_uncertainty", {"unit": "dits"}, "unit must be 'nats' or 'bits'"),
        ("predict_uncertainty", {"class_prior": [2, -1, 0]}, "non-negative"),
    ],
)
def test_bad_options(plain, method, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(plain.clf, method)(plain.X, **options)


@pytest.mark.parametrize(
    "method", ["predict_interval", "predict_posterior", "predict_uncertainty", "explain"]
)
def test_no_rows_of_a_table(method):
    """Classifiers that read tables take them, as chunks may have none."""
    X = pd.DataFrame({"a": ["p", "q"], "b": [1.0, 2.5]})
    found = getattr(bg.MixedNB().fit(X, ["u", "v"]), method)(X[:0])
    found = found["predictions"] if method == "predict_posterior" else found
    assert found.sizes["obs_id"] == 0


def test_the_predictive_beside_the_interval_is_another_number():
    """Thirteen samples of seed bayesian_naive_bayes: shared/MATH.md, I."""
    X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
    clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
    table = clf.predict_uncertainty([[1, 1]])
    found = clf.predict_interval([[1, 1]], prob=0.9, kind="eti")
    one = {"class": 1}
    assert found["predictive"].sel(one).item() == pytest.approx(1568 / 4493, abs=1e-9)
    error = table["error"].item()
    assert table["mean"].sel(one).item() == pytest.approx(0.334160, abs=4 * error)
    assert table["sd"].sel(one).item() == pytest.approx(0.211, abs=4 * error)
    # the ends that a 40-digit inversion of the characteristic function has
    rho = clf.predict_posterior([[1, 1]])["predictions"]["class_probability"].sel(one).values
    shares = [np.mean(rho < 0.0447), np.mean(rho > 0.7232)]
    np.testing.assert_allclose(shares, 0.05, atol=4 * np.sqrt(0.05 * 0.95 / 2000))
