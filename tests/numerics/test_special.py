"""Special functions, sums of exponentials and draws against mpmath at 60 digits.

Arguments are floats exactly as they are: mpmath sees the same binary numbers, so every difference
is an error of ours. Tolerances are relative, with an absolute floor where a logarithm crosses 0.
"""

from itertools import product

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from bayesgen.numerics import special as nm

mp.mp.dps = 60


def relative_error(value, exact, floor=1e-300) -> float:
    """|value - exact|/|exact|, against numbers of mpmath."""
    return float(abs(mp.mpf(float(value)) - exact) / max(abs(exact), mp.mpf(floor)))


def exact_gamma_difference(a, n):
    a, n = mp.mpf(float(a)), mp.mpf(float(n))
    return mp.loggamma(a + n) - mp.loggamma(a)


# ------------------------------------------------------------------------------ gamma functions

SHAPES = [1e-8, 0.5, 2.0, 31.999, 32.0, 1e3, 1e15]
STEPS = [1e-9, 0.5, 1.0, 3.0, 17.25, 100.0, 1e4, 1e8, 1e12]


@pytest.mark.parametrize("a", SHAPES)
def test_log_gamma_difference_real(a):
    for n in STEPS:
        exact = exact_gamma_difference(a, n)
        value = nm.log_gamma_difference(a, n)
        # below 32 two log-gammas, at most 80, are subtracted; above it two tails, at most 3e-3
        floor = 10.0 if a < 40 else 1e-5
        assert relative_error(value, exact, floor) < 1e-14, n
    for n in (-0.9 * a, -0.1 * a) if a > 3 else ():  # downwards
        error = relative_error(nm.log_gamma_difference(a, n), exact_gamma_difference(a, n))
        assert error < 1e-13, n


@pytest.mark.parametrize("dim", [1, 2, 5, 40])
def test_log_multigamma_difference(dim):
    for a, n in product((0.1, 3.0, 1e6, 1e12), (0.5, 4.0, 1e3)):
        a += (dim - 1) / 2
        exact = mp.fsum(exact_gamma_difference(a - i / 2, n) for i in range(dim))
        assert relative_error(nm.log_multigamma_difference(a, n, dim), exact) < 1e-12
    a = np.array([dim + 0.5, dim + 2.0])
    expected = special.multigammaln(a[1], dim) - special.multigammaln(a[0], dim)
    np.testing.assert_allclose(nm.log_multigamma_difference(a[0], a[1] - a[0], dim), expected)
    assert nm.log_multigamma_difference(a, np.ones((3, 1)), dim).shape == (3, 2)


def test_log_beta_difference():
    alpha, n = np.array([0.3, 2.0, 1e9, 40.0]), np.array([3.0, 0.0, 17.0, 1e6])

    def log_beta(v):
        return mp.fsum(map(mp.loggamma, v)) - mp.loggamma(mp.fsum(v))

    before = [mp.mpf(float(x)) for x in alpha]
    after = [x + mp.mpf(float(k)) for x, k in zip(before, n, strict=True)]
    exact = log_beta(after) - log_beta(before)
    assert relative_error(nm.log_beta_difference(alpha, n), exact) < 1e-13
    padded = nm.log_beta_difference(np.r_[alpha, 0.0], np.r_[n, 0.0])
    assert padded == pytest.approx(float(exact), rel=1e-13)
    many = nm.log_beta_difference(np.tile(alpha, (3, 1)), np.stack([n, 0 * n, 2 * n]))
    assert many.shape == (3,)
    assert many[1] == 0


# --------------------------------------------------------------------------------------- counts


def exact_poisson(x, rate):
    x, rate = mp.mpf(float(x)), mp.mpf(float(rate))
    return x * mp.log(rate) - rate - mp.loggamma(x + 1)


def exact_negative_binomial(x, a, b):
    x, a, b = (mp.mpf(float(v)) for v in (x, a, b))
    log_gammas = mp.loggamma(a + x) - mp.loggamma(a) - mp.loggamma(x + 1)
    return log_gammas + a * mp.log(b / (b + 1)) - x * mp.log(b + 1)


def test_log_poisson():
    for x, rate in product((0.0, 1.0, 3.0, 31.0, 32.0, 500.0), (1e-8, 0.7, 31.0, 40.0, 3e3)):
        np.testing.assert_allclose(
            nm.log_poisson(x, rate), float(exact_poisson(x, rate)), rtol=1e-13, atol=1e-13
        )
    for sd in (-30, -3, 0, 0.1, 5, 30):
        rate = 1e12 + sd * 1e6
        exact = exact_poisson(1e12, rate)
        assert abs(float(nm.log_poisson(1e12, rate) - exact)) < 1e-10 + 4e-16 * abs(rate - 1e12)
    np.testing.assert_array_equal(nm.log_poisson([0, 1, 40], 0.0), [0.0, -np.inf, -np.inf])
    k = np.arange(200)
    np.testing.assert_allclose(nm.log_poisson(k, 31.7), stats.poisson.logpmf(k, 31.7), rtol=1e-11)
    assert np.exp(nm.log_poisson(np.arange(3000), 900.0)).sum() == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("a", [1e-3, 0.5, 1.0, 10.0, 31.0, 32.0, 1e3, 1e7])
def test_log_negative_binomial(a):
    for x, b in product((0.0, 1.0, 5.0, 31.0, 32.0, 1e3, 1e6), (1e-6, 0.1, 1.0, 100.0, 1e6)):
        exact = float(exact_negative_binomial(x, a, b))
        np.testing.assert_allclose(
            nm.log_negative_binomial(x, a, b), exact, rtol=1e-12, atol=1e-12, err_msg=f"{x} {b}"
        )
    k = np.arange(300)
    np.testing.assert_allclose(
        nm.log_negative_binomial(k, a, 1.5), stats.nbinom.logpmf(k, a, 0.6), rtol=1e-9, atol=1e-9
    )


# ------------------------------------------------------------------------- sums of exponentials


def test_log_sum_exp_and_its_infinities():
    a = np.array([[0.0, 1.0, 2.0], [-np.inf, 3.0, -np.inf], [-np.inf] * 3, [-1e4, -1e4, -1e5]])
    a = np.vstack([a, a[:2] + 1e4])
    expected = special.logsumexp(a, axis=1)
    np.testing.assert_allclose(nm.log_sum_exp(a), expected, rtol=1e-15)
    np.testing.assert_allclose(nm.log_sum_exp(a.T, axis=0), expected, rtol=1e-15)
    assert nm.log_sum_exp(a)[2] == -np.inf
    assert np.isnan(nm.log_sum_exp(np.array([1.0, np.nan])))
    assert nm.log_sum_exp(np.zeros((0, 3))).shape == (0,)


def test_log_softmax_normalises_and_never_invents_a_uniform():
    a = np.array([[700.0, 0.0, -700.0], [-np.inf, 0.0, 1.0], [-np.inf] * 3, [5e4, 5e4, -5e4]])
    log_p = nm.log_softmax(a)
    assert np.isnan(log_p[2]).all()
    keep = [0, 1, 3]
    np.testing.assert_allclose(np.exp(log_p[keep]).sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(log_p[keep], special.log_softmax(a[keep], axis=1), atol=1e-12)
    assert log_p[1, 0] == -np.inf
    np.testing.assert_allclose(nm.log_softmax(a[keep] + 123.0), log_p[keep], atol=1e-11)
    far = nm.log_softmax(np.array([-1e12, -1e12 - 1, -1e12 - 3]))  # a million features
    assert np.exp(far).sum() == pytest.approx(1, abs=1e-15)


def test_a_sure_class_keeps_what_is_left_for_the_others():
    a = np.array([[5.0, -35.0, -45.0], [-500.0, 0.0, -800.0], [7.0, 7.0, -40.0]])
    expected = [-np.exp(-40) - np.exp(-50), -np.exp(-500)]  # log(1 - r) = -r where r is that small
    np.testing.assert_allclose(nm.log_softmax(a)[[0, 1], [0, 1]], expected, rtol=1e-14)
    assert nm.log_softmax(a)[2, 0] == pytest.approx(-np.log(2), rel=1e-15)


# ---------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize("shape", [1e-4, 0.5, 1.0, 1e4])
def test_draw_log_gamma_has_the_moments_of_a_log_gamma_variable(shape):
    n = 20_000
    draws = nm.draw_log_gamma(np.random.default_rng(8), np.array(shape), (n,))
    assert np.isfinite(draws).all()
    mean, variance = special.digamma(shape), special.polygamma(1, shape)
    fourth = special.polygamma(3, shape)
    assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / n)
    mcse = np.sqrt((fourth + 2 * variance**2) / n)
    assert abs(np.square(draws - mean).mean() - variance) < 5 * mcse


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
def test_draw_dirichlet(scale):
    alpha = scale * np.array([[1.0, 2.0, 5.0, 0.0], [3.0, 0.5, 0.25, 2.0]])
    n = 20_000
    draws = nm.draw_dirichlet(np.random.default_rng(9), alpha, n)
    assert draws.shape == (n, 2, 4)
    assert not np.isnan(draws).any()
    assert np.all(draws[:, 0, 3] == 0)
    np.testing.assert_allclose(draws.sum(axis=-1), 1.0, rtol=1e-12)
    total = alpha.sum(axis=-1, keepdims=True)
    mean = alpha / total
    sd = np.sqrt(mean * (1 - mean) / (total + 1))
    assert np.all(np.abs(draws.mean(axis=0) - mean) <= 5 * sd / np.sqrt(n) + 1e-15)
    variance = np.square(draws - mean)
    mcse = variance.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(variance.mean(axis=0) - sd**2) <= 5 * mcse + 1e-15)
