"""Log densities of theta: mpmath's, at the edges of the support, by estimators.

That they are PyMC's is asked of every family by ``tests/laws/test_pymc.py``.
"""

from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import bayesgen as bg
from bayesgen.families.capabilities import ThetaDensity
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.columns import Columns
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.families.shared.densities import (
    log_beta_density,
    log_dirichlet_density,
    log_gamma_density,
    log_inverse_gamma_density,
    log_inverse_wishart_density,
)
from bayesgen.posterior.model import ClassModel

RNG = np.random.default_rng(0)


def test_a_family_may_leave_it_out() -> None:
    class Mute(BetaBernoulli):
        log_density = None

    mixed = Columns(("a", "b"), (BetaBernoulli(), Mute()), ((0,), (1,)))
    for family in (Mute(), mixed):
        assert family.capability(ThetaDensity) is None
        with pytest.raises(
            NotImplementedError, match=r"\(log_density\), which Mute does not offer"
        ):
            ClassModel(np.ones(2), family).log_density({"pi": np.ones((1, 2)) / 2})


# ------------------------------------------------------------------------------- many digits lost


def exact(value: Any) -> Any:
    return mpmath.mpf(float(value))


def exact_log_gamma_density(x: Any, a: Any, b: Any) -> Any:
    return a * mpmath.log(b) - mpmath.loggamma(a) + (a - 1) * mpmath.log(x) - b * x


def test_densities_at_huge_parameters() -> None:
    """A few standard deviations from the mode, where plain formulas lose 4 to 7 digits."""
    with mpmath.workdps(60):
        for a in (31.0, 33.0, 1e6, 1e12, 1e15):
            for z in (-3.0, 0.0, 1e-4, 2.0):
                x = (1 + z / np.sqrt(a)) * 7
                b = a / 7
                rounding = 1e-15 * abs(z) * np.sqrt(a)  # of x, in standard deviations
                close = partial(pytest.approx, rel=1e-11, abs=rounding)
                expected = exact_log_gamma_density(exact(x), exact(a), exact(b))
                assert float(log_gamma_density(x, a, b)) == close(float(expected))
                inverse = exact_log_gamma_density(1 / exact(x), exact(a), exact(7 * a))
                inverse -= 2 * mpmath.log(exact(x))
                assert float(log_inverse_gamma_density(x, a, 7 * a)) == close(float(inverse))
                p = 0.25 * (1 + z / np.sqrt(a))
                expected = mpmath.loggamma(4 * exact(a)) - mpmath.loggamma(exact(a))
                expected += (exact(a) - 1) * mpmath.log(exact(p)) - mpmath.loggamma(3 * exact(a))
                expected += (3 * exact(a) - 1) * mpmath.log(1 - exact(p))
                assert float(log_beta_density(p, a, 3 * a)) == close(float(expected))


@pytest.mark.parametrize("nu", [2.5, 40.0, 1e12])
def test_inverse_wishart_at_huge_degrees_of_freedom(nu: float) -> None:
    """In units so unequal that the matrix has no digit of its small column to spare."""
    unit = np.diag([1e-5, 1.0, 1e6])
    root = unit @ np.array([[1.0, 0, 0], [0.9, 0.5, 0], [-0.3, 0.8, 0.2]])
    step = np.array([[0.3, 0.2, -0.1], [0.2, -0.5, 0.4], [-0.1, 0.4, 0.6]]) / np.sqrt(nu)
    factor = root @ np.linalg.cholesky(np.eye(3) + step)
    psi_factor = np.sqrt(nu) * root
    with mpmath.workdps(60):
        L, P = mpmath.matrix(factor.tolist()), mpmath.matrix(psi_factor.tolist())
        Sigma, Psi, n = L * L.T, P * P.T, exact(nu)
        trace = sum((Psi * Sigma**-1)[i, i] for i in range(3))
        log_gamma = 1.5 * mpmath.log(mpmath.pi)
        log_gamma += sum(mpmath.loggamma((n - i) / 2) for i in range(3))
        expected = n / 2 * mpmath.log(mpmath.det(Psi)) - 1.5 * n * mpmath.log(2) - log_gamma
        expected -= (n + 4) / 2 * mpmath.log(mpmath.det(Sigma)) + trace / 2
        expected = float(expected)
    ours = float(log_inverse_wishart_density(factor, np.array(nu), psi_factor))
    assert ours == pytest.approx(expected, rel=1e-9)


# ------------------------------------------------------------------------- the edge of the support


def test_a_probability_of_zero() -> None:
    """Finite under a pseudo-count of 1, impossible above it, a pole below it."""
    p = np.array([0.0, 0.4, 0.6])
    flat = stats.dirichlet.logpdf([1e-300, 0.4, 0.6], [1.0, 2.0, 3.0])
    assert log_dirichlet_density(p, [1.0, 2.0, 3.0]) == pytest.approx(flat, rel=1e-12)
    assert log_dirichlet_density(p, [1.5, 2.0, 3.0]) == -np.inf
    assert log_dirichlet_density(p, [0.5, 2.0, 3.0]) == np.inf
    assert log_dirichlet_density([0.0, 0.0, 1.0], [0.5, 2.0, 3.0]) == -np.inf
    assert log_dirichlet_density([1.0, 0.0, 0.0], [1.0, 1.0, 1.0]) == pytest.approx(np.log(2))
    np.testing.assert_allclose(log_beta_density([0.0, 1.0], 1.0, 1.0), 0.0, atol=1e-15)
    np.testing.assert_allclose(log_beta_density([0.0, 1.0], 1.0, 3.0), [np.log(3), -np.inf])
    np.testing.assert_array_equal(log_beta_density([0.0, 1.0], 2.0, 0.5), [-np.inf, np.inf])
    assert log_gamma_density(0.0, 1.0, 4.0) == pytest.approx(np.log(4))
    np.testing.assert_array_equal(log_gamma_density(0.0, [0.5, 2.0], 4.0), [np.inf, -np.inf])
    family = BetaBernoulli(np.array([[2.0, 0.5]]), np.array([[2.0, 0.5]]))
    assert family.log_density({"theta": np.array([[0.0, 0.0]])}) == -np.inf
    both = Columns(("a", "b"), (family, family), ((0, 1), (2, 3)))
    poles = {"a_theta": np.array([[0.5, 0.0]]), "b_theta": np.array([[0.0, 0.5]])}
    assert both.log_density(poles) == -np.inf
    model = ClassModel(np.array([0.5, 3.0]), BetaBernoulli.examples(2, 2)[1])
    theta = {"pi": np.array([0.0, 1.0]), "theta": np.full((2, 2), -0.1)}
    assert model.log_density(theta) == -np.inf


def test_the_smallest_probabilities() -> None:
    """Far below the mode the density is small, not 0: no quotient overflows."""
    tiny = np.finfo(float).tiny
    for alpha in ([50.0, 1.0], [1e6, 2.0], [0.01, 1.0]):
        with mpmath.workdps(40):
            a, b = map(exact, alpha)
            expected = mpmath.loggamma(a + b) - mpmath.loggamma(a) - mpmath.loggamma(b)
            expected += (a - 1) * mpmath.log(exact(tiny))
        assert log_dirichlet_density([tiny, 1.0], alpha) == pytest.approx(float(expected), 1e-12)
        assert log_beta_density(tiny, *alpha) == pytest.approx(float(expected), 1e-12)
    small = np.array([tiny, 1e-200, 1e200, np.finfo(float).max])
    for shape in (0.5, 1.0, 50.0):
        expected = np.array([stats.gamma.logpdf(x, shape) for x in small])
        ours = log_gamma_density(small, shape, 1.0)
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-15)
        turned = log_inverse_gamma_density(1 / small[:3], shape, 1.0) - 2 * np.log(small[:3])
        np.testing.assert_allclose(turned, expected[:3], rtol=1e-12, atol=1e-12)


def test_outside_the_support() -> None:
    for bad in ([-0.1, 1.1], [0.5, 0.6], [0.2, 0.2]):
        assert log_dirichlet_density(bad, [2.0, 3.0]) == -np.inf
    assert log_dirichlet_density([0.5, 0.3, 0.2], [1.0, 1.0, 0.0]) == -np.inf  # in the padding
    np.testing.assert_array_equal(log_beta_density([-0.1, 1.1], 1.0, 1.0), -np.inf)
    np.testing.assert_array_equal(log_gamma_density([-1.0, -np.inf, np.inf], 1.0, 1.0), -np.inf)
    np.testing.assert_array_equal(log_inverse_gamma_density([-1.0, 0.0, np.inf], 1, 1), -np.inf)
    for variance in ("class", "tied", "class_spherical", "spherical"):
        prior = next(f for f in NormalInverseGamma.examples(2, 3) if f.variance == variance)
        theta = prior.draw(RNG, 3)
        theta["sigma2"][1] = 0.0
        theta["sigma2"][2] = -1.0
        np.testing.assert_array_equal(prior.log_density(theta)[1:], -np.inf)
        assert np.isfinite(prior.log_density(theta)[0])
    for prior in NormalInverseWishart.examples(2, 3):
        theta = prior.draw(RNG, 3)
        expected = prior.log_density(theta)
        theta["Sigma"][..., 1, 1][1] = 0.0
        theta["Sigma"][2] *= -1
        ours = prior.log_density(theta)
        np.testing.assert_array_equal(ours[1:], -np.inf)
        assert ours[0] == pytest.approx(expected[0], rel=1e-14)


@pytest.mark.parametrize(
    "make",
    [
        bg.GaussianNB,
        partial(bg.GaussianNB, variance="tied"),
        bg.LinearDiscriminant,
        bg.QuadraticDiscriminant,
    ],
)
def test_columns_without_a_unit(make) -> None:
    """Separate ones keep their prior, beside a covariance they are left out.

    The evidence is likelihood times prior over posterior at draws of the posterior.
    """
    X = np.column_stack([RNG.normal(size=8), np.full(8, 3.0), RNG.normal(size=8)])
    y = np.arange(8) % 2
    clf = make().fit(X, y)
    prior, posterior = clf.prior_.family, clf.model_.family
    assert posterior.ignored.tolist() == [False, True, False]
    if isinstance(clf, bg.GaussianNB):
        for name in ("kappa", "nu", "sigma2"):
            before, after = (np.asarray(getattr(f, name)) for f in (prior, posterior))
            np.testing.assert_array_equal(after[..., 1], before[..., 1])
        np.testing.assert_allclose((posterior.mu + posterior.shift)[:, 1], 3.0)
    else:
        every = make().fit(np.ones((8, 2)), y)  # no column is left
        theta = every.model_.family.draw(RNG, 3)
        np.testing.assert_array_equal(every.model_.family.log_density(theta), 0.0)
        assert every.prior_.family.log_evidence(every.stats_.features) == 0.0
    theta = clf.model_.draw(np.random.default_rng(3), 5)
    rows = posterior.log_likelihood(clf.fitted_.read(X).encoded, theta)[:, np.arange(8), y]
    likelihood = (rows + np.log(theta["pi"])[:, y]).sum(axis=1)
    candidate = likelihood + clf.prior_.log_density(theta) - clf.model_.log_density(theta)
    np.testing.assert_allclose(candidate, clf.log_evidence_, rtol=0, atol=1e-9)
