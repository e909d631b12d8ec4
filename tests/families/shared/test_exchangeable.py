"""Draws of few columns in place of all: moments by polygammas of every column of the row itself."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, polygamma

from bayesgen.families import BetaBernoulli, DirichletMultinomial
from bayesgen.families.shared.codes import first_of_equals, sum_of_log_betas

N = 4000


def close_in_moments(draws, mean, variance):
    """Draws (n, ...) have this mean and variance, within 5 standard errors."""
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / len(draws)))
    square = (draws - mean) ** 2
    assert np.all(np.abs(square.mean(axis=0) - variance) < 5 * square.std(axis=0) / N**0.5)


def words(rng, high):
    X = rng.integers(0, high, (6, 90)) * (rng.random((6, 90)) < 0.2)
    X[0] = 0
    return X


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def pseudo_counts(rng):
    """(2, 90) each: many columns are equal, in the second class all but whole."""
    a = 1.0 + rng.integers(0, 4, (2, 90)) * rng.integers(0, 2, (2, 90))
    return a - [[0.0], [0.7]], 9.0 - a


def test_sparse_bits(rng, pseudo_counts):
    a, b = pseudo_counts
    X = words(rng, 2)
    draws = BetaBernoulli(a, b).draw_log_density(rng, sparse.csr_matrix(X), N)
    rest = X[:, None, :] == 0
    for_one, for_zero = (
        [sign * (polygamma(k, p) - polygamma(k, a + b)) for k, sign in ((0, 1), (1, 1))]
        for p in (a, b)
    )
    mean, variance = (
        np.where(rest, zero, one).sum(axis=2) for one, zero in zip(for_one, for_zero, strict=True)
    )
    close_in_moments(draws, mean, variance)


def test_sparse_counts(rng, pseudo_counts):
    alpha, _ = pseudo_counts
    X = words(rng, 3)
    X[1] = 0
    X[1, :80] = 1  # more words than the largest group holds
    family = DirichletMultinomial(alpha)
    assert not family.draw_log_density(rng, sparse.csr_matrix((2, 90)), 3).any()
    row, column = np.repeat(np.nonzero(X), X[X > 0], axis=1)  # each word of a document on its own
    draws = family.draw_log_density(
        rng,
        sparse.csr_matrix((np.ones(len(row)), column, np.searchsorted(row, np.arange(7))), X.shape),
        N,
    )
    length, total = X.sum(axis=1)[:, None], alpha.sum(axis=1)
    mean = X @ digamma(alpha).T - length * digamma(total)
    variance = X**2 @ polygamma(1, alpha).T - length**2 * polygamma(1, total)
    close_in_moments(draws[:, 1:], mean[1:], variance[1:])
    assert (draws[:, 0] == 0).all()


@pytest.mark.parametrize("q", [1.0, 5.0, 0.3, 2.6])
@pytest.mark.parametrize("p", [0.2, 40.0, 3000.0])
def test_sums_of_log_beta_variables(rng, p, q):
    draws = sum_of_log_betas(rng, np.full(700, p), np.full(700, q), N)
    mean, variance, third = (700 * (polygamma(k, p) - polygamma(k, p + q)) for k in range(3))
    close_in_moments(draws, mean, variance)
    cubes = (draws - mean) ** 3
    assert abs(cubes.mean() - third) < 5 * cubes.std() / N**0.5


def test_cells_move_among_equals_alone(rng):
    X = words(rng, 3)
    a = rng.integers(0, 3, 90).astype(float)
    cells, held, rest = first_of_equals(sparse.csr_matrix(X), a, a)
    assert sorted([*held, *rest]) == list(range(90))
    assert len(held) < 60
    for row, own in zip(X, cells.toarray(), strict=True):
        for value in range(3):
            assert sorted(row[(a == value) & (row > 0)]) == sorted(
                own[(a[held] == value) & (own > 0)]
            )
