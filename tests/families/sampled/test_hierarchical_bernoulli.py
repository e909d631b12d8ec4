"""Bits with pooled log-odds: densities and defaults."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.linalg import helmert
from scipy.special import expit

from bayesgen.families.sampled.hierarchical_bernoulli import HierarchicalBernoulli
from bayesgen.posterior.model import ClassModel
from tests.graphs import PYTHON, named_at

RNG = np.random.default_rng(5)
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


def test_the_prior_is_that_of_the_formulas():
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
