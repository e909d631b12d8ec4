"""Counts: against SciPy's negative binomial, quadrature, and 60 digits at counts of 1e12."""

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse, stats
from scipy.integrate import quad

from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.families.errors import UndefinedEstimateError


def some_rows(seed=0, n=40, d=5, n_classes=3, missing=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.poisson(rng.gamma(0.8, 3, size=(n_classes, d))[y]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def exact_poisson(x, rate):
    with mp.workdps(60):
        x, rate = mp.mpf(float(x)), mp.mpf(float(rate))
        return float(x * mp.log(rate) - rate - mp.loggamma(x + 1))


def test_the_default_prior_has_the_pooled_mean_of_each_column():
    X, y = some_rows(missing=0.2)
    X[:, 3] = np.where(np.isnan(X[:, 3]), np.nan, 0)
    family = GammaPoisson(shape=[1, 2, 1, 1, 0.5])
    prior = family.resolve(family.stats(X, y, 3))
    mean = np.nanmean(X, axis=0)
    mean[3] = 1.0  # nothing but zeros: one row
    np.testing.assert_allclose(prior.shape / prior.rate, np.tile(mean, (3, 1)), rtol=1e-13)
    X[:, 3] = np.nan  # nothing observed: the same
    again = family.resolve(family.stats(X, y, 3))
    np.testing.assert_allclose(again.rate, prior.rate, rtol=1e-13)
    with pytest.raises(ValueError, match="rate must be > 0"):
        GammaPoisson(rate=0.0).resolve(family.stats(X, y, 3))


def test_map_at_the_edge():
    shape = np.full((2, 3), 2.0)
    shape[1, 2] = 1.0
    assert GammaPoisson(shape, np.ones((2, 3))).map()["rate"][1, 2] == 0
    shape[1, 2] = 0.99
    with pytest.raises(UndefinedEstimateError, match="class 1, feature 2: a Gamma density"):
        GammaPoisson(shape, np.ones((2, 3))).map()


def test_information_is_the_sum_over_counts():
    rate = np.array(
        [
            [0, 1, 63, 65, 200, 0, 3000],
            [0.5, 1.01, 60, 65, 100, 0, 3100],
            [0, 0, 10, 66, 220, 0, 50.0],
        ]
    )
    pi = np.array([0.2, 0.5, 0.3])
    x = np.arange(6000)[:, None, None]
    log_p = stats.poisson.logpmf(x, rate)
    p = np.exp(log_p)
    mixture = np.tensordot(p, pi, axes=(1, 0))[:, None]
    logs = np.log(np.where(p > 0, p, 1)) - np.log(np.where(mixture > 0, mixture, 1))
    expected = np.einsum("c,xcd->d", pi, p * logs)
    family = GammaPoisson()
    got = family.information({"rate": rate}, pi)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-14)
    # a class of weight 0 is not there
    more = np.vstack([rate, np.full((1, 7), 17.0)])
    np.testing.assert_allclose(family.information({"rate": more}, np.append(pi, 0)), got)


def test_information_of_huge_rates_is_that_of_normal_variables():
    def normal(distance):
        def term(z):
            a, b = stats.norm.pdf(z), stats.norm.pdf(z - distance)
            return 0.5 * (a * np.log(2 * a / (a + b)) + b * np.log(2 * b / (a + b)))

        return quad(term, -11, distance + 11, epsabs=1e-13, points=[0, distance])[0]

    rate = np.array([[1e12, 1e14, 1e12, 1e12], [1e12 + 1e6, 1e14 + 4e7, 2e12, 1e12]])
    got = GammaPoisson().information({"rate": rate}, np.array([0.5, 0.5]))
    expected = [normal(1.0), normal(4.0), np.log(2), 0]
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-11)


HUGE = [  # x, shape, rate
    (2.5, 1.3, 0.7),
    (1e12, 1e12, 1.0),
    (1e12, 1e15, 1e3),
    (1e12 + 1e6, 3e12, 3.0),
    (1e12, 1.0, 1e-12),
    (1e12, 31.0, 1e-10),
    (1e6, 1e12, 1e6),
    (40.0, 1e12, 3e10),
    (5.0, 1e12, 1e12),
    (0.0, 1e12, 1e12),
    (1e12, 1e12, 1e-4),
    (2.5e11, 1e9, 1e-2),
]


def test_the_prior_that_the_evidence_prefers_at_huge_counts():
    X, y = np.array([[1e12], [1e12 + 3e6]]), np.zeros(2, dtype=int)
    priors = [(1e9, 1e-3), (1.0, 1e-12)]

    def exact(a, b):
        with mp.workdps(60):
            a, b, total = mp.mpf(a), mp.mpf(b), mp.mpf(2e12 + 3e6)
            value = a * mp.log(b) - mp.loggamma(a) + mp.loggamma(a + total)
            return value - (a + total) * mp.log(b + 2)

    seen = GammaPoisson().stats(X, y, 1)
    got = np.subtract(
        *[GammaPoisson(np.array([[a]]), np.array([[b]])).log_evidence(seen) for a, b in priors]
    )
    assert got == pytest.approx(float(exact(*priors[0]) - exact(*priors[1])), rel=1e-9)
    one = GammaPoisson().stats(X[:1], y[:1], 1)
    family = GammaPoisson(np.array([[1e9]]), np.array([[1e-3]]))
    assert family.log_evidence(one) == pytest.approx(family.log_predictive(X[:1])[0, 0], rel=1e-12)


def exact_mass(x, shape, rate):
    """Negative binomial log mass: that of Poisson(x | r), r ~ Gamma(shape, rate)."""
    with mp.workdps(60):
        x, a, b = (mp.mpf(float(v)) for v in (x, shape, rate))
        value = mp.loggamma(a + x) - mp.loggamma(a) - mp.loggamma(x + 1)
        return float(value - a * mp.log1p(1 / b) - x * mp.log(b + 1))


def test_a_missing_cell_of_a_column_of_1e12_leaves_no_trace():
    family = GammaPoisson(np.array([[3e12, 4.0]]), np.array([[3.0, 2.0]]))
    for X in (np.array([[np.nan, 3.0]]), sparse.csr_matrix([[np.nan, 3.0]])):
        expected = exact_mass(3, 4, 2)
        assert family.log_predictive(X)[0, 0] == pytest.approx(expected, rel=1e-12)
        expected = exact_poisson(3, 2)
        got = family.log_likelihood(X, family.mean())[0, 0]
        assert got == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("container", [np.array, sparse.csr_matrix])
def test_huge_counts(container):
    """Cell by cell, then all in one row; the plain sum of log-gammas is wrong by 1e-2 here."""
    x, shape, rate = np.array(HUGE).T
    expected = np.array([exact_mass(*cell) for cell in HUGE])
    for j in range(len(x)):
        family = GammaPoisson(shape[None, [j]], rate[None, [j]])
        X = container(x[None, [j]])
        assert family.log_predictive(X)[0, 0] == pytest.approx(expected[j], rel=1e-9)
        plug_in = family.log_likelihood(X, family.mean())[0, 0]
        assert plug_in == pytest.approx(exact_poisson(x[j], shape[j] / rate[j]), rel=1e-9)
    near = np.abs(expected) < 100  # a row of moderate density has no digits to lose
    family = GammaPoisson(shape[None, near], rate[None, near])
    row = container(x[None, near])
    assert family.log_predictive(row)[0, 0] == pytest.approx(expected[near].sum(), rel=1e-9)
