"""Cumulants against closed moments, polygammas, and the posterior that has seen the row."""

from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import polygamma
from scipy.stats import kurtosis, skew

from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.predict.inversion import cumulants, densities, log_odds
from tests.predict.interval.cases import FAMILIES, case, fit, log_joint, thirteen, weights_alone


def by_order(function):
    """mean, sd, skewness, excess kurtosis, fifth from a function r -> r-th cumulant."""
    k1, k2, k3, k4, k5 = (function(r) for r in range(1, 6))
    return k1, np.sqrt(k2), k3 / k2**1.5, k4 / k2**2, k5 / k2**2.5


def assert_cumulants(k, expected, rtol=1e-6):
    *first, fifth = by_order(expected)
    for got, want in zip(k[:4], first, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-7)
    np.testing.assert_allclose(k.fifth, fifth, rtol=100 * rtol, atol=1e-5)


def psi(r, x):
    return polygamma(r - 1, x)


def weights(model, r):
    return psi(r, model.alpha[0]) + (-1) ** r * psi(r, model.alpha[1])


@pytest.mark.parametrize("concentration", [0.1, 1.0, 1e3])
def test_bits_are_differences_of_polygammas(concentration):
    model, X = case("bernoulli", 6, 5, concentration)
    f = model.family

    def expected(r):
        one = psi(r, f.alpha) - psi(r, f.alpha + f.beta)
        zero = psi(r, f.beta) - psi(r, f.alpha + f.beta)
        by_class = X @ one.T + (1 - X) @ zero.T
        return weights(model, r) + by_class[:, 0] + (-1) ** r * by_class[:, 1]

    assert_cumulants(cumulants(log_odds(model, X, 0, 1)), expected)


@pytest.mark.parametrize("concentration", [0.1, 1.0])
def test_words_need_powers_of_their_counts(concentration):
    model, X = case("multinomial", 8, 5, concentration)
    a = model.family.alpha

    def expected(r):
        by_class = X**r @ psi(r, a).T - X.sum(axis=1)[:, None] ** r * psi(r, a.sum(axis=1))
        return weights(model, r) + by_class[:, 0] + (-1) ** r * by_class[:, 1]

    assert_cumulants(cumulants(log_odds(model, X, 0, 1)), expected)


def squares(r, z, n):
    """r-th derivative part of (n + t)/2 log terms, MATH.md C."""
    return (
        r * (-1) ** r * factorial(r - 2) * z ** (r - 1)
        + n * (-1) ** (r - 1) * factorial(r - 1) * z**r
    )


def test_quadratic_discriminant_has_closed_cumulants():
    model, X = case("qda", 3, 6)
    f, dim = model.family, 3

    def one_class(r, c):
        d = np.linalg.solve(np.linalg.cholesky(f.psi[c]), (X - f.shift - f.mu[c]).T)
        g, k = np.square(d).sum(axis=0), 1 / f.kappa[c]
        gammas = sum(psi(r, (f.nu[c] - i) / 2) for i in range(dim)) / 2**r
        return gammas + (squares(r, k, f.nu[c] - dim) - squares(r, k + g, f.nu[c])) / 2

    k = cumulants(log_odds(model, X, 0, 1))
    orders = {
        r: weights(model, r) + one_class(r, 0) + (-1) ** r * one_class(r, 1) for r in (2, 3, 4)
    }
    np.testing.assert_allclose(k.sd, np.sqrt(orders[2]), rtol=1e-8)
    np.testing.assert_allclose(k.skewness, orders[3] / orders[2] ** 1.5, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(k.kurtosis, orders[4] / orders[2] ** 2, rtol=1e-6, atol=1e-8)


def test_linear_discriminant_has_cumulants_without_polygammas():
    model, X = case("lda", 3, 6)
    f, dim, nu = model.family, 3, model.family.nu[0]
    ka, kb = f.kappa
    L = np.linalg.cholesky(f.psi[0])
    da, db = (np.linalg.solve(L, (X - f.shift - f.mu[c]).T) for c in (0, 1))
    sa, sb, gab = 1 / ka + (da * da).sum(0), 1 / kb + (db * db).sum(0), (da * db).sum(0)
    r1 = ((sa - sb) + np.sqrt((sa - sb) ** 2 + 4 * (sa * sb - gab**2))) / 2
    r2 = (sa * sb - gab**2) / r1

    def expected(r):
        sign = (-1) ** (r - 1)
        first = sign * ((nu - dim) * ka**-r - nu * r1**r)
        second = nu * r2**r - (nu - dim) * kb**-r
        return weights(model, r) + factorial(r - 1) / 2 * (first + second)

    assert_cumulants(cumulants(log_odds(model, X, 0, 1)), expected)


def test_shared_variance_agrees_with_draws():
    model, X = case("gaussian_spherical", 3, 4)
    k = cumulants(log_odds(model, X, 0, 1))
    n = 200_000
    a = log_joint(model, X, n)
    l = a[..., 0] - a[..., 1]
    np.testing.assert_allclose(l.mean(axis=0), k.mean, atol=5 * k.sd.max() / np.sqrt(n))
    np.testing.assert_allclose(l.std(axis=0), k.sd, rtol=0.02)
    np.testing.assert_allclose(skew(l), k.skewness, atol=0.05)
    np.testing.assert_allclose(kurtosis(l), k.kurtosis, atol=0.4)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("tilt", [0, 1])
def test_a_tilted_contrast_is_that_of_the_posterior_which_has_seen_the_row(name, tilt):
    model, X = case(name, 4, 5)
    for i in range(len(X)):
        row = X[[i]]
        seen = model.update(model.stats(row, np.array([tilt]), 2))
        want = cumulants(log_odds(seen, row, 0, 1))
        got = cumulants(log_odds(model, row, 0, 1, tilts=[tilt]))
        np.testing.assert_allclose(got[:4], want[:4], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_swapping_the_classes_turns_the_sign_of_odd_cumulants(name):
    model, X = case(name, 4, 5)
    k, back = (cumulants(log_odds(model, X, *pair)) for pair in ((0, 1), (1, 0)))
    np.testing.assert_allclose(k.mean, -back.mean, rtol=1e-9)
    np.testing.assert_allclose(k.sd, back.sd, rtol=1e-9)
    np.testing.assert_allclose(k.skewness, -back.skewness, rtol=1e-6, atol=1e-8)


@given(st.floats(0.02, 1e9), st.floats(0.02, 1e9))
@settings(max_examples=60, deadline=None)
def test_log_odds_of_class_weights_at_every_scale(a, b):
    model, X = weights_alone([a, b])
    k = cumulants(log_odds(model, X, 0, 1))
    want = by_order(lambda r: polygamma(r - 1, a) + (-1) ** r * polygamma(r - 1, b))
    np.testing.assert_allclose(k.mean[0], want[0], rtol=1e-8, atol=1e-8 * want[1])
    np.testing.assert_allclose(k.sd[0], want[1], rtol=1e-6)
    np.testing.assert_allclose(k.skewness[0], want[2], atol=1e-4)
    np.testing.assert_allclose(k.kurtosis[0], want[3], atol=1e-3)
    np.testing.assert_allclose(k.fifth[0], want[4], atol=1e-2)


def test_a_density_alone_is_that_of_its_class():
    model = thirteen()
    k = cumulants(densities(model, np.array([[1.0, 0.0]]), np.array([1])).contrasts[0])
    f, alpha = model.family, model.alpha

    def expected(r):
        total = f.alpha[1] + f.beta[1]
        cells = psi(r, f.alpha[1, 0]) + psi(r, f.beta[1, 1]) - psi(r, total).sum()
        return psi(r, alpha[1]) + cells

    assert_cumulants(k, expected)


def test_what_does_not_vary_has_no_spread():
    model = thirteen()
    k = cumulants(log_odds(model, np.full((2, 2), np.nan), 0, 1, class_prior=np.array([0.2, 0.8])))
    np.testing.assert_allclose(k.mean, np.log(0.25))
    assert (k.sd == 0).all()
    assert (k.error == 0).all()


def test_a_row_at_the_end_of_the_floats_has_cumulants():
    X = np.array([[0.0], [1.0], [3.0], [5.0]])
    model = fit(NormalInverseGamma(), X, [0, 0, 1, 1])
    near, far = (cumulants(log_odds(model, np.array([[x]]), 0, 1)) for x in (1e60, 1e100))
    np.testing.assert_allclose(far.sd, near.sd * 1e80, rtol=1e-9)
    np.testing.assert_allclose(far.skewness, near.skewness, rtol=1e-7)


def test_a_near_atom_is_told():
    # theta is 1 but for a probability near 1e-5: log theta almost never moves
    family = BetaBernoulli(alpha=np.full((2, 1), 0.1), beta=np.full((2, 1), 1e-6))
    model, _ = weights_alone([1.0, 1.0])
    model = type(model)(model.alpha, family)
    k = cumulants(log_odds(model, np.array([[1.0]]), 0, 1, class_prior=np.array([0.5, 0.5])))
    assert k.error[0] > 0.01


def test_a_cgf_that_is_not_finite_is_refused():
    class Broken:
        def cgf(self, X, t):
            return np.full(np.broadcast_shapes(t.shape[:-1], (len(X),)), np.nan)

    model = thirteen()
    with pytest.raises(ValueError, match="Broken is not finite on the imaginary axis"):
        cumulants(log_odds(type(model)(model.alpha, Broken()), np.zeros((2, 2)), 0, 1))
