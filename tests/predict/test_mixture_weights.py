"""Posterior of mixture weights against quadrature, enumeration and conditions of optimality."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit, gammaln

from bayesgen.predict import label_shift
from tests.selection import crossed


def densities(seed, n_classes, m, spread=1.0):
    rng = np.random.default_rng(seed)
    return label_shift.relative(spread * rng.normal(size=(m, n_classes)))


def by_enumeration(f, alpha):
    """(mean, mean square) of the weights: a mixture of Dirichlets over all labellings."""
    terms = []
    for z in product(range(len(alpha)), repeat=f.shape[1]):
        a = alpha + np.bincount(z, minlength=len(alpha))
        like = np.prod(f[list(z), np.arange(len(z))])
        terms.append((like * np.exp(gammaln(a).sum() - gammaln(a.sum())), a))
    w = np.array([t[0] for t in terms])
    a = np.array([t[1] for t in terms])
    total = a.sum(axis=1, keepdims=True)
    first, second = a / total, a * (a + 1) / (total * (total + 1))
    return w @ first / w.sum(), w @ second / w.sum()


@pytest.mark.parametrize(
    "alpha", [(1, 1), (0.5, 3), (30, 0.2), (0.02, 0.05), (900, 100), (50, 1e6)]
)
def test_quadrature_without_rows_is_a_beta_distribution(alpha):
    density = label_shift.two_components(np.ones((1, 2, 0)), np.array(alpha, float), 2049)
    p = np.array([[0.01, 0.05, 0.5, 0.95, 0.99]])
    q = density.quantile(p)
    beta = stats.beta(alpha[1], alpha[0])
    rho = expit(q)
    inside = (rho > 1e-300) & (rho < 1 - 1e-12)
    np.testing.assert_allclose(beta.cdf(rho)[inside], p[inside], atol=1e-5)
    np.testing.assert_allclose(density.expectation(expit(density.l)), beta.mean(), atol=1e-5)


@pytest.mark.parametrize(("m", "spread"), [(1, 1), (1, 500), (40, 1), (40, 0.01), (2000, 3)])
@pytest.mark.parametrize("alpha", [(1.0, 1.0), (2.0, 0.7)])
def test_quadrature_against_adaptive_quadrature(m, spread, alpha):
    f = densities(m, 2, m, spread)
    density = label_shift.two_components(f[None], np.array(alpha), 2049)
    p = np.array([0.05, 0.5, 0.95])
    rho = expit(density.quantile(p[None])[0])

    def log_density(r):
        return stats.beta.logpdf(r, alpha[1], alpha[0]) + np.log(f[0] * (1 - r) + f[1] * r).sum()

    top = log_density(rho[1])
    edges = [0.0, 1e-6, *rho, 1 - 1e-9, 1.0]
    parts = [
        integrate.quad(lambda r: np.exp(log_density(r) - top), a, b, limit=400, epsrel=1e-9)[0]
        for a, b in pairwise(edges)
    ]
    below = np.cumsum(parts)[[1, 2, 3]] / sum(parts)
    np.testing.assert_allclose(below, p, atol=2e-5)


def test_mass_far_from_even_weights_and_a_peak_between_wide_tails():
    certain = np.stack([np.zeros(50_000), np.ones(50_000)])
    found = label_shift.two_components(certain[None], np.array([40.0, 20.0]), 2049)
    expected = stats.beta(50_020, 40)
    rho = expit(found.quantile(np.array([[0.05, 0.95]])))[0]
    np.testing.assert_allclose(expected.cdf(rho), [0.05, 0.95], atol=1e-4)
    f = np.repeat([[1.0, 0.1], [0.1, 1.0]], 50, axis=1)
    mean = label_shift.two_components(f[None], np.full(2, 1e-3), 2049)
    np.testing.assert_allclose(mean.expectation(expit(mean.l)), 0.5, atol=1e-5)
    inside = mean.quantile(np.array([[0.01, 0.99]]))
    assert np.abs(inside).max() < 2


def test_gibbs_under_a_concentrated_prior():
    alpha = np.array([900.0, 100.0, 30.0])
    codes = np.repeat([0, 1, 2], [3, 4, 5])
    f = np.eye(3)[codes].T
    rng = np.random.default_rng(0)
    now = label_shift.far_apart(40, 3)
    kept = []
    for _ in range(60):
        now = label_shift.sweep(rng, np.broadcast_to(f, (40, *f.shape)), alpha, now)
        kept.append(now)
    after = alpha + np.bincount(codes, minlength=3)
    expected = stats.dirichlet(after)
    z = (np.concatenate(kept[20:]).mean(axis=0) - expected.mean()) / np.sqrt(expected.var())
    assert np.abs(z).max() < 0.2


def test_meshes_of_many_densities_are_their_own():
    f = np.stack([densities(s, 2, 30, spread) for s, spread in enumerate([0.1, 1, 30])])
    alpha = np.ones(2)
    p = np.full((3, 1), 0.3)
    together = label_shift.two_components(f, alpha, 513).quantile(p)
    alone = [label_shift.two_components(f[[s]], alpha, 513).quantile(p[:1])[0] for s in range(3)]
    np.testing.assert_allclose(together, alone, rtol=1e-10)


@pytest.mark.parametrize(("n_classes", "concentration"), crossed([2, 3, 4], [1.0, 5.0, 0.4]))
def test_gibbs_against_enumeration(n_classes, concentration):
    f = densities(n_classes, n_classes, 5, 2.0)
    alpha = concentration * np.linspace(0.5, 1.5, n_classes)
    rng = np.random.default_rng(3)
    n = 4000
    rho = np.full((n, n_classes), 1 / n_classes)
    for _ in range(12):  # n independent samplers: their last draws are independent
        rho = label_shift.sweep(rng, np.broadcast_to(f, (n, *f.shape)), alpha, rho)
    np.testing.assert_allclose(rho.sum(axis=1), 1)
    for power, exact in zip((1, 2), by_enumeration(f, alpha), strict=True):
        value = rho**power
        z = (value.mean(axis=0) - exact) / (value.std(axis=0) / np.sqrt(n))
        assert np.abs(z).max() < 4


def test_gibbs_forgets_its_start_where_rows_tell_nothing():
    """Drawing the rows' labels as well would take some m = 1000 sweeps."""
    rng = np.random.default_rng(4)
    n = 500
    f = np.ones((n, 3, 1000))
    rho = np.tile(label_shift.far_apart(1, 3), (n, 1))
    for _ in range(6):
        rho = label_shift.sweep(rng, f, np.ones(3), rho)
    assert stats.kstest(rho[:, 0], stats.beta(1, 2).cdf).pvalue > 0.001


def test_responsibilities_by_hand():
    f, rho = densities(0, 3, 4), np.array([[0.2, 0.3, 0.5]])
    by_hand = f[1, 2] * 0.3 / (f[0, 2] * 0.2 + f[1, 2] * 0.3 + f[2, 2] * 0.5)
    assert label_shift.responsibilities(f[None], rho)[0, 1, 2] == pytest.approx(by_hand)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(1, 60),
    st.floats(0.05, 30),
    st.sampled_from([1.0, 1.5, 4.0]),
)
def test_the_mode_is_optimal(seed, n_classes, m, spread, concentration):
    """Karush, Kuhn, Tucker: slopes of the log density are equal, and lower where a weight is 0."""
    f = densities(seed, n_classes, m, spread)
    alpha = np.full(n_classes, concentration)
    rho = label_shift.mode(f, alpha)
    assert rho.sum() == pytest.approx(1)
    slope = (f / (rho @ f)).sum(axis=1) + (alpha - 1) / np.maximum(rho, 1e-300)
    level = m + (alpha - 1).sum()
    assert (slope <= level * (1 + 1e-4)).all()
    np.testing.assert_allclose(rho @ slope, level)


def test_no_mode():
    assert np.isnan(label_shift.mode(densities(0, 2, 5), np.array([0.5, 1]))).all()
    assert np.isnan(label_shift.mode(np.ones((2, 0)), np.ones(2))).all()
    np.testing.assert_allclose(label_shift.mode(np.ones((2, 0)), np.array([2.0, 4])), [0.25, 0.75])


def test_relative_densities():
    got = label_shift.relative(np.array([[-1e9, -1e9 - 1], [-np.inf, 3.0], [-np.inf, -np.inf]]))
    np.testing.assert_allclose(got, [[1, 0, 1], [np.exp(-1), 1, 1]], rtol=1e-6)
