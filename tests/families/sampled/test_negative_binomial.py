"""Negative binomial counts: the mass against SciPy and mpmath, defaults, the PyMC model."""

from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import sparse, stats

from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.sampled.negative_binomial import NegativeBinomial
from bayesgen.posterior.model import ClassModel
from tests.graphs import PYTHON, named_at, pm

RNG = np.random.default_rng(5)
C, D = 2, 4
THETA = {"mu": RNG.gamma(2.0, 1.0, (C, D)), "delta": np.array([0.01, 0.5, 1.0, 4.0])}
Y = np.arange(12) % C
FIRST = np.array([1.0, 0, 0, 0])


def scipy_mass(x: Any, mu: Any, delta: Any, w: Any = 1.0) -> Any:
    """M&W's parametrisation in SciPy's: kappa = mu/delta successes of probability 1/(1 + w d)."""
    return stats.nbinom.logpmf(x, mu / delta, 1 / (1 + w * delta))


def rows(exposure: bool = False) -> np.ndarray:
    X = RNG.negative_binomial(0.5, 0.1, (12, D)).astype(float)
    X[3] = 0
    X[4, 1] = 150
    if exposure:
        X[:, 0] = RNG.choice([0.5, 2.0, 7.0], 12)
    return X


def resolved(exposure: bool, X: np.ndarray | None = None) -> NegativeBinomial:
    family = NegativeBinomial(exposure=FIRST if exposure else None)
    return family.with_defaults(rows(exposure) if X is None else X, Y, C)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("exposure", [False, True])
def test_mass_is_scipys(exposure, form):
    X = rows(exposure)
    w = X[:, :1] if exposure else np.ones((12, 1))
    expected = np.stack(
        [scipy_mass(X, THETA["mu"][c], THETA["delta"], w)[:, exposure:].sum(1) for c in range(C)],
        axis=1,
    )
    log_p = resolved(exposure).log_likelihood(form(X), THETA)
    np.testing.assert_allclose(log_p, expected, rtol=1e-11)


def test_mass_is_mpmaths_from_poisson_to_bursts():
    family = NegativeBinomial()
    with mpmath.workdps(50):
        for x, mu, delta in [(3, 2.0, 1e-9), (10**6, 1e6, 1e-3), (40, 0.01, 300.0), (0, 5.0, 1e5)]:
            m, d = mpmath.mpf(mu), mpmath.mpf(delta)
            k = m / d
            exact = mpmath.loggamma(x + k) - mpmath.loggamma(k) - mpmath.loggamma(x + 1)
            exact += x * mpmath.log(d) - (x + k) * mpmath.log1p(d)
            theta = {"mu": np.array([[mu]]), "delta": np.array([delta])}
            log_p = family.log_likelihood(np.array([[x]]), theta)[0, 0]
            assert log_p == pytest.approx(float(exact), rel=1e-9)


def test_simulated_rows_may_have_the_exposures_of_others():
    X = rows(True)
    drawn = resolved(True, X).given_rows(X).simulate(np.random.default_rng(0), THETA, Y)
    np.testing.assert_array_equal(drawn[:, 0], X[:, 0])


# ------------------------------------------------------------------------------------ defaults


def test_defaults_follow_the_unit_of_the_exposure():
    X = rows(True)
    a = resolved(True, X)
    X[:, 0] *= 1000
    b = resolved(True, X)
    np.testing.assert_allclose(b.rate[1:], a.rate[1:] / 1000)
    np.testing.assert_allclose(b.unit, 1000 * a.unit)


def test_defaults_by_hand():
    X, y = np.array([[1.0, 4], [np.nan, 0], [2, 0], [9, 0]]), np.array([0, 0, 1, -1])
    family = NegativeBinomial().with_defaults(X, y, 2, np.array([1.0, 1, 2, 1]))
    np.testing.assert_allclose(family.rate, [(1 + 4 + 9 + 0.5) / 4, 4.5 / 5])
    other = NegativeBinomial().with_defaults(sparse.csr_matrix(X), y, 2, np.array([1.0, 1, 2, 1]))
    np.testing.assert_allclose(other.rate, family.rate)
    assert family.unit == 1


# ---------------------------------------------------------------------------------------- PyMC


def coords(family: Any) -> dict[str, Any]:
    return {CLASS: ["a", "b"], FEATURE: list("pqrs"), **family.coords()}


def test_the_prior_is_that_of_the_formulas():
    family = resolved(False)
    model = ClassModel(np.ones(C), family).to_pymc(coords(family))
    point = {k: RNG.normal(size=np.shape(v)) for k, v in model.initial_point().items()}
    names = ["mu", "delta", "common", "spread", "deviation"]
    theta = dict(zip(names, named_at(model, names)(point), strict=True))
    rates = theta["common"] * np.exp(theta["spread"] * theta["deviation"].T)
    np.testing.assert_allclose(theta["mu"], rates, rtol=1e-12)
    np.testing.assert_allclose(theta["deviation"].sum(axis=1), 0, atol=1e-12)
    # two deviations that sum to 0 are one Normal number along (1, -1)/sqrt(2)
    along = (theta["deviation"] @ [1, -1]) / np.sqrt(2)
    log_common = np.log(theta["common"] / family.rate)
    expected = {
        "deviation": stats.norm.logpdf(along),
        "common": stats.norm.logpdf(log_common) - np.log(theta["common"]),
        "spread": stats.halfnorm.logpdf(theta["spread"]),
        "delta": stats.expon.logpdf(theta["delta"], scale=1 / family.unit + family.rate),
    }
    for name, value in expected.items():
        log_p = model.compile_logp(vars=[model[name]], jacobian=False, mode=PYTHON)(point)
        assert log_p == pytest.approx(value.sum()), name


def test_a_prior_of_the_rates_replaces_the_hierarchy():
    for priors, expected in (
        ({"mu": pm.Gamma.dist(2, 1), "delta": pm.HalfNormal.dist(1)}, {"mu"}),
        ({"spread": pm.HalfNormal.dist(0.1)}, {"common", "spread", "deviation"}),
    ):
        family = replace(resolved(False), **priors)
        model = ClassModel(np.ones(C), family).to_pymc(coords(family))
        assert {v.name for v in model.free_RVs} == expected | {"pi", "delta"}
