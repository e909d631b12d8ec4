"""Bits with pooled log-odds: densities, defaults, and what the fit makes of few rows."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.linalg import helmert
from scipy.special import expit

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


def test_a_rounded_certainty_is_no_certainty():
    theta = {"theta": np.array([[1.0, 0.0]])}
    log_p = HierarchicalBernoulli().log_likelihood(np.array([[0, 1], [1, 0]]), theta)
    assert np.isfinite(log_p).all()
    assert log_p[0, 0] < -700
    assert log_p[1, 0] == pytest.approx(0, abs=1e-12)


def resolved(X: Any = BITS, y: Any = Y, n_classes: int = 3, **options: Any) -> Any:
    return HierarchicalBernoulli(**options).with_defaults(X, y, n_classes)


def test_defaults_turn_with_the_bits():
    """With 0 and 1 exchanged; and CSR and repeated rows are what dense and weighted ones are."""
    one, other = resolved(GAPS), resolved(1 - GAPS)
    np.testing.assert_allclose(other.location, -one.location, atol=1e-12)
    np.testing.assert_allclose(other.scale, one.scale)
    for name, (_, value) in resolved(sparse.csr_matrix(GAPS)).arrays().items():
        np.testing.assert_allclose(value, getattr(one, name))
    w = np.array([1, 2, 1, 3, 1, 1])
    weighted = HierarchicalBernoulli().with_defaults(BITS, Y, 3, w)
    repeated = resolved(np.repeat(BITS, w, axis=0), np.repeat(Y, w))
    for name, (_, value) in repeated.arrays().items():
        np.testing.assert_allclose(getattr(weighted, name), value)
    stated = resolved(location=-1.0, scale=2.0)
    np.testing.assert_array_equal(stated.location, -1.0)
    np.testing.assert_array_equal(stated.scale, 2.0)


def compiled(model: Any, name: str) -> Any:
    return model.compile_logp(vars=[model[name]], jacobian=False, mode=PYTHON)


def test_the_prior_and_the_likelihood_are_those_of_the_formulas():
    """At any point: the model's own log densities, and the rows' by NumPy."""
    family = resolved(GAPS)
    coords = {"class": list("abc"), "feature": list("uvwx")}
    model = ClassModel(np.ones(3), family).to_pymc(coords, X=GAPS, y=Y)
    rng = np.random.default_rng(0)
    point = {k: rng.normal(size=np.shape(v)) for k, v in model.initial_point().items()}
    theta, mu, tau, z = named_at(model, ["theta", "mu", "tau", "deviation"])(point)
    np.testing.assert_allclose(z.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(theta, expit(mu + tau * z.T), rtol=1e-12)
    contrasts = z @ helmert(3).T  # orthonormal
    assert compiled(model, "deviation")(point) == pytest.approx(stats.norm.logpdf(contrasts).sum())
    assert compiled(model, "mu")(point) == pytest.approx(
        stats.norm.logpdf(mu, family.location, family.scale).sum()
    )
    assert compiled(model, "tau")(point) == pytest.approx(stats.lognorm.logpdf(tau, 1, 0, 0.5))
    expected = family.log_likelihood(GAPS, {"theta": theta})[np.arange(6), Y].sum()
    assert compiled(model, "x")(point) == pytest.approx(expected, rel=1e-12)
    assert slope_error(model, point) < 1e-6


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
    few = clf.fit(gaps[:42], labels[:42], unlabelled="ignore", progressbar=False)
    return few, X, y, mu, theta


@pytest.mark.slow
def test_parameters_are_recovered(few_rows):
    clf, _, _, mu, theta = few_rows
    posterior = sound(clf)
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
