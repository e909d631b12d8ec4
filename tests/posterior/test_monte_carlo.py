"""Prediction from posterior draws: against closed forms, ArviZ, and the formulas written out.

`Table` is a family whose draws are the log densities themselves, for what must hold whatever
they are.
"""

from dataclasses import dataclass
from typing import ClassVar

import mpmath
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.signal import lfilter
from scipy.special import logsumexp
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.datatree import tree
from bayesgen.families.contract import Family
from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.posterior import drawn
from bayesgen.posterior.drawn import DrawnPosterior, MonteCarloWarning
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.probabilities import ImpossibleRowError, log_class_probability
from tests.estimators.cases import CASES, LABELS
from tests.estimators.cases import fitted as case_fitted

EVERY = ("BernoulliNB", "CategoricalNB", "MultinomialNB", "PoissonNB", "GaussianNB")
EVERY += ("GaussianNB tied", "LinearDiscriminant", "QuadraticDiscriminant", "MarkovNB 2", "MixedNB")
N_SIGMA = 5.0  # fixed seeds, some 500 comparisons


def estimated(model, theta, X, class_prior=None):
    return DrawnPosterior(model, model, None, theta).monte_carlo(X, class_prior)


def log_joint(
    model, stats, X, method="posterior_predictive", class_prior=None, theta=None, **quantity
):
    exact = ExactPosterior(model, model, stats)
    posterior = exact if theta is None else DrawnPosterior(model, model, stats, theta)
    return posterior.log_joint(X, method, class_prior, **quantity)


@dataclass(frozen=True, eq=False)
class Table(Family):
    """theta["f"] (..., n, C) holds log p(x | theta) of n kinds of rows; X (N, 1) names the kind."""

    params: ClassVar = {"f": ("kind", "class")}

    def log_likelihood(self, X, theta):
        return theta["f"][..., X[:, 0], :]

    def simulate(self, rng, theta, y):
        raise NotImplementedError


def estimate(f, weights=None):
    """`MonteCarlo` of log densities (chain, draw, n, C), one row of each kind."""
    n, n_classes = f.shape[2:]
    weights = np.full(n_classes, 1 / n_classes) if weights is None else np.asarray(weights)
    model = ClassModel(np.ones(n_classes), Table())
    return estimated(model, {"f": f}, np.arange(n)[:, None], weights)


def test_ratios_too_far_apart_for_a_tail_are_the_weights():
    log_ratios = np.array([np.linspace(0, 3, 40), 1e6 * np.linspace(0, 3, 40) ** 4])
    weights, k = drawn.smoothed_weights(log_ratios)
    assert np.isposinf(k).tolist() == [False, True]
    np.testing.assert_allclose(weights[1], log_ratios[1] - logsumexp(log_ratios[1]))


def test_the_estimates_written_out_in_forty_digits():
    rng = np.random.default_rng(3)
    f = rng.normal([[-700.0, -702.0, -699.0], [3.0, 1.0, 0.0]], 1.2, (2, 6, 2, 3))
    pi = [0.2, 0.3, 0.5]
    got = estimate(f, pi)
    with mpmath.workdps(40):
        for i in range(2):
            draws = [[mpmath.mpf(v) for v in f[k, s, i]] for k in range(2) for s in range(6)]
            R = [[p * mpmath.exp(v) for p, v in zip(pi, row, strict=True)] for row in draws]
            S = len(R)
            mean = [mpmath.fsum(row[c] for row in R) / S for c in range(3)]
            total = mpmath.fsum(mean)
            for c in range(3):
                p = mean[c] / total
                assert got.log_joint[i, c] == pytest.approx(float(mpmath.log(mean[c])), rel=1e-14)
                assert got.probability[i, c] == pytest.approx(float(p), rel=1e-12)
                phi = [(row[c] - p * mpmath.fsum(row)) / total for row in R]
                variance = mpmath.fsum(v * v for v in phi) / (S - 1)  # their mean is 0
                error = mpmath.sqrt(variance / S)  # each draw of so few is a batch of its own
                assert got.mcse[i, c] == pytest.approx(float(error), rel=1e-9)
                w = [row[c] / mean[c] for row in R]
                spread = mpmath.fsum((v - 1) ** 2 for v in w) / (S - 1)
                assert got.weight_ess[i, c] == pytest.approx(float(S / (spread + 1)), rel=1e-9)


def test_errors_of_chains_whose_draws_depend_on_each_other():
    """Of an autoregression: sqrt((1 + rho) / (1 - rho)) times that of independent draws."""
    rng = np.random.default_rng(8)
    for rho in (0.0, 0.5, 0.9):
        noise = rng.normal(size=(200, 4, 2000)) * np.sqrt(1 - rho**2)
        noise[..., 0] = rng.normal(size=(200, 4))
        chain = lfilter([1.0], [1.0, -rho], noise)
        expected = np.sqrt((1 + rho) / (1 - rho) / 8000)
        assert np.mean(drawn.error_of_mean(chain)) == pytest.approx(expected, rel=0.06)


# ------------------------------------------------------------------------ against closed forms


def draws_of(clf, draws=1000, seed=0):
    posterior = clf.draw_posterior(draws=draws, chains=4, random_state=seed)
    return tree.read_draws(posterior, clf.model_.params, clf.fitted_.coords)


def fitted(name):
    clf, X, _ = case_fitted(CASES[name])
    return clf, take(X, np.arange(24))


def encoded(clf, X):
    return clf.fitted_.read(X).encoded


@pytest.mark.parametrize("name", EVERY)
def test_draws_give_the_closed_form_within_their_error(name):
    clf, X = fitted(name)
    theta, rows = draws_of(clf), encoded(clf, X)
    got = estimated(clf.model_, theta, rows)
    trusted = ~got.density_in_doubt()
    assert trusted.sum() > 20
    error, mcse = (got.probability - clf.predict_proba(X))[trusted], got.mcse[trusted]
    assert np.all(np.abs(error) < N_SIGMA * mcse + 1e-3)  # below it a few draws decide
    z = (error / mcse)[mcse > 1e-4]
    assert 0.3 < np.sqrt((z**2).mean()) < 2  # the error is neither too small nor too large
    relative = np.sqrt((1 / got.weight_ess - 1 / 4000)[trusted]) + 1e-12
    error = got.log_joint - clf.predict_joint_log_proba(X)
    assert np.all(np.abs(error[trusted]) < N_SIGMA * relative)
    np.testing.assert_allclose(got.probability.sum(axis=1), 1, rtol=1e-12)

    weights = clf.model_.alpha / clf.model_.alpha.sum()
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in theta.items()}
    log_x = clf.model_.family.log_likelihood(rows, flat)
    plain = logsumexp(log_x, axis=0) - np.log(len(log_x)) + np.log(weights)
    np.testing.assert_allclose(plain, got.log_joint, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_a_plug_in_of_the_mean_over_draws(name):
    clf, X = fitted(name)
    theta, rows = draws_of(clf), encoded(clf, X)
    got = log_joint(clf.model_, clf.stats_, rows, "posterior_mean", None, theta)
    mean = {name: value.mean(axis=(0, 1)) for name, value in theta.items()}
    family = clf.model_.family.for_plug_in("posterior_mean")
    expected = np.log(mean[CLASS_WEIGHTS]) + family.log_likelihood(rows, mean)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    closed = clf.predict_joint_log_proba(X, method="posterior_mean")
    np.testing.assert_allclose(got, closed, atol=0.5)


@pytest.mark.parametrize("cells", [1, 500, 20_000])
def test_blocks_do_not_matter(cells, monkeypatch):
    clf, X = fitted("QuadraticDiscriminant")
    theta = draws_of(clf, 10 if cells == 1 else 50)
    whole = estimated(clf.model_, theta, X)
    monkeypatch.setattr(drawn, "BLOCK", cells)
    monkeypatch.setattr(drawn, "_SLICE", cells // 2)
    for a, b in zip(whole, estimated(clf.model_, theta, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_another_class_prior():
    clf, X = fitted("GaussianNB")
    theta, new = draws_of(clf, 50), np.array([0.8, 0.1, 0.1])
    a, b = (estimated(clf.model_, theta, X, w) for w in (None, new))
    shift = np.log(new) - np.log(clf.model_.alpha / clf.model_.alpha.sum())
    np.testing.assert_allclose(b.log_joint, a.log_joint + shift, rtol=1e-12)
    only = estimated(clf.model_, theta, X, np.array([1.0, 0.0, 0.0]))
    assert np.all(only.probability == [1.0, 0.0, 0.0])
    assert np.all(only.mcse == 0)


# ---------------------------------------------------------------- whatever the log densities are


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda c: arrays(
            np.float64,
            (2, 5, 3, c),
            elements=st.one_of(st.floats(-1e6, 800), st.just(-np.inf), st.floats(-3, 3)),
        )
    )
)
def test_no_nan_and_nothing_outside_its_range(f):
    got = estimate(f)
    impossible = np.isneginf(f).all(axis=(0, 1)).all(axis=-1)
    for value in got:
        assert not np.isnan(value).any()
    np.testing.assert_allclose(got.probability.sum(axis=1), np.where(impossible, 0, 1), rtol=1e-12)
    assert np.all(got.mcse >= 0)
    assert np.all(np.isinf(got.mcse) == impossible[:, None])
    assert np.all((got.weight_ess >= 0) & (got.weight_ess <= 10 * (1 + 1e-9)))
    assert np.all(got.log_joint <= got.upper)
    np.testing.assert_allclose(
        got.log_joint, logsumexp(f, axis=(0, 1)) - np.log(10 * f.shape[-1]), rtol=1e-12, atol=1e-9
    )
    for doubt in (got.density_in_doubt(), got.probability_in_doubt()):
        assert doubt.shape == (3,)
        assert not doubt[impossible].any()
    assert not (got.probability_in_doubt() & ~got.density_in_doubt()).any()


def test_a_category_impossible_under_some_draws_or_all():
    clf = bg.CategoricalNB(categories=3).fit([[0], [1], [2], [0]], [0, 0, 1, 1])
    theta = draws_of(clf, 100)["theta"].copy()
    theta[:, ::2, 0] = [1.0, 0.0, 0.0]
    got = estimated(clf.model_, {"theta": theta}, np.array([[1]]))
    assert got.log_joint[0, 0] == pytest.approx(np.log(0.5 * theta[:, :, 0, 0, 1].mean()))

    theta[:] = [1.0, 0.0, 0.0]
    stats_ = clf.stats_
    rows = np.array([[0], [1]])
    joint = log_joint(clf.model_, stats_, rows, theta={"theta": theta})
    assert np.isneginf(joint[1]).all()
    with pytest.raises(ImpossibleRowError, match=r"row 1.*under every posterior draw"):
        log_class_probability(joint, "posterior_predictive")
    got = estimated(clf.model_, {"theta": theta}, rows)
    assert got.probability[1].tolist() == [0, 0]
    assert np.isinf(got.mcse[1]).all()


# ---------------------------------------------------------------------------- what not to trust


def few_rows():
    """LDA, D = 2, three rows a class (MATH.md, section B), a row between and one far away."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 3)
    X = rng.standard_normal((6, 2)) + 2.0 * y[:, None]
    return bg.LinearDiscriminant().fit(X, y), np.array([[1.0, 1.0], [40.0, -35.0]])


def test_a_far_row_is_warned_of_and_an_ordinary_one_is_not():
    clf, X = few_rows()
    theta = draws_of(clf, 250)
    with pytest.warns(MonteCarloWarning, match=r"1 of 2 row\(s\).*position 1, rests on") as caught:
        log_joint(clf.model_, clf.stats_, X, theta=theta, quantity="probability")
    assert len(caught) == 1
    log_joint(clf.model_, clf.stats_, X[:1], theta=theta)
    with pytest.warns(MonteCarloWarning, match="2 of 3") as caught:
        log_joint(clf.model_, clf.stats_, X[[1, 0, 1]], theta=theta)
    assert len(caught) == 1


def test_a_certain_class_is_not_in_doubt_though_its_density_is():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    clf = bg.GaussianNB().fit(rng.standard_normal((40, 200)) + y[:, None], y)
    X = rng.standard_normal((20, 200)) + 1.0
    theta = draws_of(clf, 500)
    got = estimated(clf.model_, theta, X)
    assert got.density_in_doubt().all()
    assert not got.probability_in_doubt().any()
    np.testing.assert_allclose(got.probability, clf.predict_proba(X), atol=1e-3)
    error = got.log_joint[:, 1] - clf.predict_joint_log_proba(X)[:, 1]
    assert error.min() < -1  # the doubt is right: e^-1 of the density is missing
    log_joint(clf.model_, clf.stats_, X, theta=theta, quantity="probability")
    with pytest.warns(MonteCarloWarning, match="log densities of 20 of 20"):
        log_joint(clf.model_, clf.stats_, X, theta=theta)


# ------------------------------------------------------------------------------- what is refused


def test_draws_that_are_no_parameters():
    clf, X = fitted("GaussianNB")
    theta = draws_of(clf, 10)
    theta["sigma2"] = -theta["sigma2"]
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="NaN for draw 0, row 0"):
        estimated(clf.model_, theta, X)


class Forgetful(bg.families.GammaPoisson):
    """It takes missing cells and forgets to leave them out."""

    def log_likelihood(self, X, theta):
        return super().log_likelihood(np.nan_to_num(X), theta) + X.sum(axis=1)[:, None]

    def log_predictive(self, X):
        return super().log_predictive(np.nan_to_num(X)) + X.sum(axis=1)[:, None]


def test_a_missing_cell_is_named_as_the_cause():
    clf = bg.GenerativeClassifier(Forgetful()).fit([[1.0], [2], [3], [4]], list("aabb"))
    for model in (clf, clf.with_posterior(clf.posterior_)):
        with pytest.raises(ValueError, match=r"row 1.* the row has a missing cell"):
            model.predict_proba([[1.0], [np.nan]])


# ------------------------------------------------------------------------- draws from a DataTree


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = pd.DataFrame(rng.standard_normal((30, 2)) + y[:, None], columns=["length", "width"])
    return bg.LinearDiscriminant().fit(X, LABELS[y]), X


def read(clf, posterior):
    return tree.read_draws(posterior, clf.model_.params, clf.fitted_.coords)


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


def test_axes_and_labels_in_any_order(three):
    clf, _ = three
    posterior = clf.posterior_["posterior"].to_dataset()
    theta = read(clf, posterior)
    same(read(clf, posterior.transpose("feature_bis", "class", "draw", "feature", ...)), theta)
    moved = posterior.isel({"class": [2, 0, 1], "feature": [1, 0]})
    same(read(clf, moved), theta)
    assert not np.array_equal(moved["Sigma"].values, theta["Sigma"])
    same(read(clf, posterior.drop_vars(["class", "feature", "feature_bis"])), theta)
    same(read(clf, posterior.assign(lp=("draw", np.zeros(500)))), theta)
    same(read(clf, posterior.isel(chain=2)), {k: v[2:3] for k, v in theta.items()})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (xr.DataTree.from_dict({"fit": xr.Dataset()}), ValueError, "no group 'posterior', only"),
        ({"mu": np.zeros(3)}, ValueError, r"no variable 'pi' .* only \['mu'\]"),
        ([np.zeros(3)], TypeError, r"must be an xarray.DataTree .* got list"),
    ],
)
def test_what_is_no_posterior_is_refused(three, given, error, message):
    with pytest.raises(error, match=message):
        read(three[0], given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.drop_vars("mu"), "no variable 'mu' with dims .*to_pymc"),
        (lambda d: d.rename(feature="column"), "'mu' of the posterior has dims .*'column'"),
        (lambda d: d.expand_dims(fold=2), r"has dims \('fold', 'chain', 'draw', 'class'\)"),
        (lambda d: d.isel({"class": [0, 1]}), "'pi' of the posterior has 2 along 'class'.* has 3"),
        (
            lambda d: d.assign_coords({"class": ["ash", "birch", "oak"]}),
            "labels of 'class'.*'oak' where it has 'cedar'",
        ),
        (lambda d: d.assign_coords({"class": ["ash", "ash", "cedar"]}), "labels of 'class'"),
        (lambda d: d.isel(draw=slice(0, 0)), "no draws"),
        (
            lambda d: d.assign(mu=d["mu"].where((d.chain != 1) | (d.draw != 7))),
            "'mu' of the posterior is not finite, first in chain 1, draw 7",
        ),
    ],
)
def test_a_posterior_of_another_model_is_refused(three, change, message):
    with pytest.raises(ValueError, match=message):
        read(three[0], change(three[0].posterior_["posterior"].to_dataset()))
