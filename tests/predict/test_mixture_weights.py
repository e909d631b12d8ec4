"""Posterior of mixture weights against meshes, enumeration and conditions of optimality."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, gammaln, log_expit, softmax

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


def draw(f, alpha, n, seed=0):
    """Weights (n, C) of independent samplers for f (C, m)."""
    start = np.full((1, len(alpha)), 1 / len(alpha))
    around = label_shift.reference(f[None], alpha, start)
    around = label_shift.Reference(*(np.repeat(value, n, axis=0) for value in around))
    rng = np.random.default_rng(seed)
    return softmax(label_shift.draw_weights(rng, f[None], alpha, around), axis=1)


COUNT = np.array([30, 5, 0])  # none of the last class
CERTAIN = np.repeat(np.eye(3), COUNT, axis=0).T


@pytest.mark.parametrize(
    ("f", "alpha", "count"),
    [
        *(
            (np.ones((2, 1000)), alpha, np.zeros(2))
            for alpha in [(1, 1), (0.5, 3), (30, 0.2), (0.2, 0.5), (50, 1e6)]
        ),
        *((CERTAIN, alpha, COUNT) for alpha in [(900, 100, 30), (1, 1, 1), (0.05, 0.05, 2)]),
    ],
)
def test_rows_that_tell_nothing_leave_the_prior_and_certain_labels_are_counted(f, alpha, count):
    """A sampler by labels alone would need some m = 1000 steps to forget its start."""
    after = alpha + count
    rho = draw(f, np.array(alpha, float), 2000)
    for c, a in enumerate(after):
        assert stats.kstest(rho[:, c], stats.beta(a, after.sum() - a).cdf).pvalue > 0.001


@pytest.mark.parametrize(("m", "spread"), [(1, 1), (1, 500), (40, 1), (40, 0.01), (2000, 3)])
@pytest.mark.parametrize("alpha", [(1.0, 1.0), (2.0, 0.3)])
def test_two_components_against_a_mesh(m, spread, alpha):
    f = densities(m, 2, m, spread)
    odds = np.linspace(-120, 40, 40_001)
    log_p = alpha[1] * log_expit(odds) + alpha[0] * log_expit(-odds)
    for block in np.array_split(f, max(1, m // 50), axis=1):
        log_p += np.log(block[0] * expit(-odds[:, None]) + block[1] * expit(odds[:, None])).sum(1)
    below = np.cumsum(np.exp(log_p - log_p.max()))
    rho = draw(f, np.array(alpha), 2000)
    probability = np.interp(np.log(rho[:, 1] / rho[:, 0]), odds, below / below[-1])
    assert stats.kstest(probability, "uniform").pvalue > 0.001


@pytest.mark.parametrize(("n_classes", "concentration"), crossed([2, 3, 4], [1.0, 5.0, 0.4]))
def test_weights_against_enumeration(n_classes, concentration):
    f = densities(n_classes, n_classes, 5, 2.0)
    alpha = concentration * np.linspace(0.5, 1.5, n_classes)
    rho = draw(f, alpha, 4000, seed=3)
    np.testing.assert_allclose(rho.sum(axis=1), 1)
    for power, exact in zip((1, 2), by_enumeration(f, alpha), strict=True):
        value = rho**power
        z = (value.mean(axis=0) - exact) / (value.std(axis=0) / np.sqrt(len(rho)))
        assert np.abs(z).max() < 4


def test_many_classes_most_of_them_absent_against_labels_in_turn():
    """The plain sampler of labels and weights, run for long, has the same means."""
    rng = np.random.default_rng(6)
    alpha, codes = np.ones(8), rng.integers(0, 3, 60)
    f = label_shift.relative(2 * rng.normal(size=(60, 8)) + 2 * np.eye(8)[codes])
    rho, kept = np.full((400, 8), 1 / 8), []
    for sweep in range(120):
        labels = label_shift.draw_labels(rng, f[None], rho)
        counts = np.stack([(labels == c).sum(axis=1) for c in range(8)], axis=1)
        gamma = rng.standard_gamma(alpha + counts)
        rho = gamma / gamma.sum(axis=1, keepdims=True)
        if sweep % 20 == 19:
            kept.append(rho)
    plain, ours = np.concatenate(kept[1:]), draw(f, alpha, 2000)
    for power in (1, 2):
        a, b = plain**power, ours**power
        error = np.hypot(a.std(axis=0) / np.sqrt(400), b.std(axis=0) / np.sqrt(len(b)))
        assert np.abs((a.mean(axis=0) - b.mean(axis=0)) / error).max() < 4


@pytest.mark.parametrize("alpha", [(1.0, 1.0, 1.0), (0.01, 3.0, 0.5), (1e4, 2.0, 1.0)])
def test_the_reference_is_at_the_mode(alpha):
    alpha, f = np.array(alpha), densities(1, 3, 50, 2.0)
    around = label_shift.reference(f[None], alpha, np.full((1, 3), 1 / 3))
    for _ in range(3):
        around = label_shift.reference(f[None], alpha, np.exp(around.mode))
    shares = label_shift.responsibilities(f[None], np.exp(around.mode))[0].sum(axis=1)
    np.testing.assert_allclose(
        np.exp(around.mode[0]), (shares + alpha) / (50 + alpha.sum()), rtol=0.02
    )


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
