"""Counts: the stated prior, information by sums and quadrature, 60 digits at counts of 1e12."""

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse, stats
from scipy.integrate import quad

from bayesgen.families.conjugate.gamma_poisson import GammaPoisson


def test_the_default_prior_has_the_pooled_mean_of_each_column():
    rng = np.random.default_rng(0)
    X, y = rng.poisson([3.0, 1.0, 9.0], (40, 3)).astype(float), np.arange(40) % 3
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, 0)
    mean = [*np.nanmean(X[:, :2], axis=0), 1.0]  # nothing but zeros: one row
    family = GammaPoisson(shape=[1, 2, 1])
    prior = family.resolve(family.stats(X, y, 3))
    np.testing.assert_allclose(prior.shape / prior.rate, np.tile(mean, (3, 1)), rtol=1e-13)
    X[:, 2] = np.nan  # nothing observed: the same
    again = family.resolve(family.stats(X, y, 3))
    np.testing.assert_allclose(again.rate, prior.rate, rtol=1e-13)


def test_information_is_the_sum_over_counts():
    rate = np.array(
        [
            [0, 1, 63, 65, 200, 0, 3000],
            [0.5, 1.01, 60, 65, 100, 0, 3100],
            [0, 0, 10, 66, 220, 0, 50.0],
        ]
    )
    pi = np.array([0.2, 0.5, 0.3])
    p = stats.poisson.pmf(np.arange(6000)[:, None, None], rate)
    mixture = np.tensordot(p, pi, axes=(1, 0))[:, None]
    logs = np.log(np.where(p > 0, p, 1)) - np.log(np.where(mixture > 0, mixture, 1))
    expected = np.einsum("c,xcd->d", pi, p * logs)
    nats = GammaPoisson().information({"rate": rate}, pi)
    np.testing.assert_allclose(nats, expected, rtol=1e-9, atol=1e-14)
    more = {"rate": np.vstack([rate, np.full((1, 7), 17.0)])}  # a class of weight 0 is not there
    np.testing.assert_allclose(GammaPoisson().information(more, np.append(pi, 0)), nats)


def test_information_of_huge_rates_is_that_of_normal_variables():
    def normal(distance):
        def term(z):
            a, b = stats.norm.pdf(z), stats.norm.pdf(z - distance)
            return 0.5 * (a * np.log(2 * a / (a + b)) + b * np.log(2 * b / (a + b)))

        return quad(term, -11, distance + 11, epsabs=1e-13, points=[0, distance])[0]

    rate = np.array([[1e12, 1e14, 1e12, 1e12], [1e12 + 1e6, 1e14 + 4e7, 2e12, 1e12]])
    nats = GammaPoisson().information({"rate": rate}, np.array([0.5, 0.5]))
    expected = [normal(1.0), normal(4.0), np.log(2), 0]
    np.testing.assert_allclose(nats, expected, rtol=2e-6, atol=1e-11)


def exact_mass(x, shape, rate):
    """Negative binomial log mass: that of Poisson(x | r), r ~ Gamma(shape, rate)."""
    with mp.workdps(60):
        x, a, b = (mp.mpf(float(v)) for v in (x, shape, rate))
        value = mp.loggamma(a + x) - mp.loggamma(a) - mp.loggamma(x + 1)
        return float(value - a * mp.log1p(1 / b) - x * mp.log(b + 1))


HUGE = np.array(  # x, shape, rate
    [
        (2.5, 1.3, 0.7),
        (1e12, 1e12, 1.0),
        (1e12 + 1e6, 3e12, 3.0),
        (40.0, 1e12, 3e10),
        (0, 1e12, 1e12),
    ]
).T


@pytest.mark.parametrize("container", [np.array, sparse.csr_matrix])
def test_huge_counts(container):
    """All in one row; the plain sum of log-gammas is wrong by 1e-2 here."""
    x, shape, rate = HUGE[:, None]
    expected = sum(exact_mass(*cell) for cell in HUGE.T)
    assert abs(expected) < 100  # a row of moderate density has no digits to lose
    family = GammaPoisson(shape, rate)
    assert family.log_predictive(container(x))[0, 0] == pytest.approx(expected, rel=1e-9)
    some = [0, 3]
    gaps = container(np.where(np.isin(np.arange(5), some), x, np.nan))
    expected = sum(exact_mass(*cell) for cell in HUGE.T[some])
    assert family.log_predictive(gaps)[0, 0] == pytest.approx(expected, rel=1e-12)


def test_the_evidence_of_one_row_of_1e12_is_its_predictive():
    family, x = GammaPoisson(np.array([[1e9]]), np.array([[1e-3]])), np.array([[1e12]])
    evidence = family.log_evidence(family.stats(x, np.zeros(1, dtype=int), 1))
    assert evidence == pytest.approx(family.log_predictive(x)[0, 0], rel=1e-12)
