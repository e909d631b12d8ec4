"""Bits with pooled log-odds: densities, defaults, and what the fit makes of few rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.optimize import brentq
from scipy.special import expit, logit

import bayesgen as bg
from bayesgen.families.sampled.hierarchical_bernoulli import HierarchicalBernoulli
from bayesgen.posterior.model import ClassModel
from tests.families.sampled.recovery import inside, likelier, sound
from tests.graphs import PYTHON, named_at, slope_error

RNG = np.random.default_rng(5)
THETA = RNG.uniform(size=(2, 3, 4))  # two draws, three classes, four columns
Y = np.array([0, 1, 2, 2, 1, 0])
BITS = RNG.integers(2, size=(6, 4)).astype(float)
GAPS = np.where(RNG.random((6, 4)) < 0.3, np.nan, BITS)
GAPS[2] = np.nan


@pytest.mark.parametrize("X", [BITS, GAPS], ids=["complete", "with gaps"])
def test_densities_are_scipys(X):
    expected = np.nansum(
        stats.bernoulli.logpmf(np.nan_to_num(X)[:, None, :], THETA[:, None])
        * np.isfinite(X)[:, None, :],
        axis=-1,
    )
    found = HierarchicalBernoulli().log_likelihood(X, {"theta": THETA})
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    by_csr = HierarchicalBernoulli().log_likelihood(sparse.csr_matrix(X), {"theta": THETA})
    np.testing.assert_allclose(by_csr, expected, rtol=1e-12, atol=1e-12)


def test_a_rounded_certainty_is_no_certainty():
    theta = {"theta": np.array([[1.0, 0.0]])}
    found = HierarchicalBernoulli().log_likelihood(np.array([[0, 1], [1, 0]]), theta)
    assert np.isfinite(found).all()
    assert found[0, 0] < -700
    assert found[1, 0] == pytest.approx(0, abs=1e-12)


def resolved(X: Any = BITS, y: Any = Y, n_classes: int = 3, **options: Any) -> Any:
    return HierarchicalBernoulli(**options).with_defaults(X, y, n_classes)


def test_defaults_turn_with_the_bits():
    """With 0 and 1 exchanged; and CSR and repeated rows are what dense and weighted ones are."""
    one, other = resolved(GAPS), resolved(1 - GAPS)
    np.testing.assert_allclose(other.location, -one.location, atol=1e-12)
    np.testing.assert_allclose(other.scale, one.scale)
    np.testing.assert_allclose(other.share, one.share, atol=1e-12)
    for name, (_, value) in resolved(sparse.csr_matrix(GAPS)).arrays().items():
        np.testing.assert_allclose(value, getattr(one, name))
    w = np.array([1, 2, 1, 3, 1, 1])
    weighted = HierarchicalBernoulli().with_defaults(BITS, Y, 3, w)
    repeated = resolved(np.repeat(BITS, w, axis=0), np.repeat(Y, w))
    for name, (_, value) in repeated.arrays().items():
        np.testing.assert_allclose(getattr(weighted, name), value)
    given = resolved(location=-1.0, scale=2.0)
    np.testing.assert_array_equal(given.location, -1.0)
    np.testing.assert_array_equal(given.scale, 2.0)


def test_rows_without_a_label_say_what_is_common_and_no_more():
    unlabelled = np.where(np.arange(6) < 3, -1, Y)
    some, all_ = resolved(y=unlabelled), resolved()
    np.testing.assert_allclose(some.location, all_.location)
    assert np.all(some.share.sum(axis=0) < all_.share.sum(axis=0))


def compiled(model: Any, name: str) -> Any:
    return model.compile_logp(vars=[model[name]], jacobian=False, mode=PYTHON)


def stretched(v: Any, tau: Any, omega: Any, known: Any) -> tuple[Any, float]:
    """Deviations behind the coordinates v of one column, and the log density of v."""
    a, n, length = known / (1 + known), v.size, np.sqrt(np.square(v).sum())

    def log_length(r: Any, power: Any) -> Any:  # of a z of length r, stretched
        u = (r * r - n) / np.sqrt(2 * n)
        return np.log(r) + power * np.log(tau) + np.arcsinh(power * omega * u)

    r = brentq(lambda r: log_length(r, a) - np.log(length), 1e-9, 1e3, xtol=1e-14)
    h = 1e-5 * r
    slope = length * (log_length(r + h, a) - log_length(r - h, a)) / (2 * h)
    z = v * r / length
    log_det = (n - 1) * np.log(length / r) + np.log(slope)
    return v / length * np.exp(log_length(r, 1)), stats.norm.logpdf(z).sum() - log_det


def test_the_prior_and_the_likelihood_are_those_of_the_formulas():
    """At any point: the model's own log densities, and the rows' by NumPy."""
    family = resolved(GAPS)
    coords = {"class": list("abc"), "feature": list("uvwx")}
    model = ClassModel(np.ones(3), family).to_pymc(coords, X=GAPS, y=Y)
    rng = np.random.default_rng(0)
    point = {k: rng.normal(size=np.shape(v)) for k, v in model.initial_point().items()}
    theta, mu, tau, omega = named_at(model, ["theta", "mu", "tau", "inequality"])(point)
    total = family.share.sum(axis=0)
    known = (family.share * (total - family.share)).mean(axis=0) / (total * (1 - total))
    raw, axes = point["deviation_raw"], model["axes"].get_value()
    columns = [stretched(raw[:, j], tau, omega, known[j]) for j in range(4)]
    delta = np.stack([axes[..., j] @ d for j, (d, _) in enumerate(columns)], axis=1)
    np.testing.assert_allclose(np.einsum("cmj,cnj->jmn", axes, axes), [np.eye(3)] * 4, atol=1e-12)
    assert compiled(model, "deviation_raw")(point) == pytest.approx(sum(p for _, p in columns))
    np.testing.assert_allclose(theta, expit(mu + delta), rtol=1e-12)
    np.testing.assert_allclose(mu, point["level"] - (family.share * delta).sum(axis=0))
    # the level has the prior of mu, moved
    assert compiled(model, "level")(point) == pytest.approx(
        stats.norm.logpdf(mu, family.location, family.scale).sum()
    )
    assert compiled(model, "tau")(point) == pytest.approx(stats.lognorm.logpdf(tau, 1, 0, 0.5))
    expected = family.log_likelihood(GAPS, {"theta": theta})[np.arange(6), Y].sum()
    assert compiled(model, "x")(point) == pytest.approx(expected, rel=1e-12)
    assert slope_error(model, point) < 1e-6


@pytest.mark.slow
def test_the_coordinates_do_not_change_the_prior():
    """theta and tau have the same distributions whatever the shares."""
    import pymc as pm

    coords = {"class": list("abc"), "feature": list("uvwx")}
    draws = []
    for share in (0.0, 0.3):
        family = replace(resolved(), share=np.full((3, 4), share))
        model = ClassModel(np.ones(3), family).to_pymc(coords)
        theta, tau = pm.draw([model["theta"], model["tau"]], 4000, random_seed=1, mode=PYTHON)
        assert stats.kstest(np.log(tau), stats.norm(np.log(0.5), 1).cdf).pvalue > 1e-3
        draws.append(logit(np.clip(theta, 1e-12, 1 - 1e-12)))
    for statistic in (np.mean, np.std):
        first, second = (statistic(np.clip(d, -8, 8), axis=0) for d in draws)
        np.testing.assert_allclose(first, second, atol=0.25)


# ----------------------------------------------------------------------------------- by NUTS

D = 40


@pytest.fixture(scope="module")
def few_rows() -> Any:
    """12 rows a class of 40 bits whose classes differ little, a few of which are not seen."""
    rng = np.random.default_rng(8)
    mu = rng.normal(-1.5, 1.0, D)
    theta = expit(mu + rng.normal(0, 0.6, (3, D)))
    y = rng.integers(3, size=1500)
    y[:36] = np.arange(36) % 3
    X = (rng.random((1500, D)) < theta[y]).astype(float)
    gaps = X.copy()
    gaps[:36][rng.random((36, D)) < 0.05] = np.nan
    labels = np.ma.masked_array(y, np.arange(1500) >= 36)
    clf = bg.HierarchicalBernoulliNB(random_state=1)
    return clf.fit(gaps[:42], labels[:42], progressbar=False), X, y, mu, theta


@pytest.mark.slow
def test_parameters_are_recovered(few_rows):
    clf, _, _, mu, theta = few_rows
    posterior = sound(clf)
    assert clf.n_unlabelled_ == 6
    assert inside(posterior["tau"], 0.6, 0.98)
    for name, truth in (("theta", theta), ("mu", mu)):
        covered = inside(posterior[name], truth, 0.9).mean()
        n = truth.size / (3 if name == "theta" else 1)  # classes of a column go together
        assert abs(covered - 0.9) < 4 * np.sqrt(0.09 / n)


# 1 row of 1458: the warning is right, and the row does not matter here
@pytest.mark.filterwarnings("ignore::bayesgen.posterior.drawn.MonteCarloWarning")
@pytest.mark.slow
def test_few_rows_are_better_used_than_by_beta_priors(few_rows):
    clf, X, y, *_ = few_rows
    sibling = bg.BernoulliNB().fit(X[:36], y[:36])
    assert likelier(clf, sibling, X[42:], y[42:])
