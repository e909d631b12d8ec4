"""The exact test of ranks: enumeration and simulation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bayesgen.checks.uniformity import p_values


def least_tail(ranks, n_draws):
    """(Q,) the statistic, by SciPy: smallest two-sided tail of the counts below each k."""
    n = len(ranks)
    out = np.full(ranks.shape[1], np.inf)
    for k in range(1, n_draws + 1):
        count, law = (ranks < k).sum(axis=0), stats.binom(n, k / (n_draws + 1))
        out = np.minimum(out, 2 * np.minimum(law.cdf(count), law.sf(count - 1)))
    return out


@pytest.mark.parametrize(("n_ranks", "n_draws"), [(1, 1), (1, 4), (4, 1), (5, 3), (3, 7), (6, 2)])
def test_p_values_are_those_of_all_outcomes_counted(n_ranks, n_draws):
    every = np.array(list(product(range(n_draws + 1), repeat=n_ranks))).T
    statistic = least_tail(every, n_draws)
    expected = [(statistic <= s * (1 + 1e-9)).mean() for s in statistic]
    np.testing.assert_allclose(p_values(every, n_draws), expected, atol=1e-12)


def test_uniform_ranks_are_refused_as_often_as_said():
    ranks = np.random.default_rng(1).integers(0, 100, size=(200, 4000))
    p = p_values(ranks, 99)
    for level in (0.01, 0.1, 0.5):
        share, sd = (p <= level).mean(), np.sqrt(level * (1 - level) / 4000)
        assert -5 * sd < level - share < 5 * sd + 0.1 * level  # discrete: p <= level a bit rarer


def test_hopeless_ranks_have_tiny_p_values_and_none_is_zero_or_nan():
    ranks = np.stack([np.zeros(500, int), np.full(500, 99), np.arange(500) % 100], axis=1)
    p = p_values(ranks, 99)
    assert np.all((p[:2] > 0) & (p[:2] < 1e-12))
    assert p[2] > 0.999


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_mirrored_and_reordered_ranks_have_the_same_p_value(n_ranks, n_draws, seed):
    rng = np.random.default_rng(seed)
    ranks = rng.integers(0, n_draws + 1, size=(n_ranks, 3))
    p = p_values(ranks, n_draws)
    assert np.all((p > 0) & (p <= 1))
    np.testing.assert_allclose(p_values(n_draws - ranks, n_draws), p, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(p_values(rng.permutation(ranks), n_draws), p, rtol=1e-12)
    np.testing.assert_allclose(p_values(ranks[:, :1], n_draws), p[:1], rtol=1e-9)


def test_no_quantity_has_no_p_value():
    assert p_values(np.empty((10, 0), dtype=int), 9).shape == (0,)
