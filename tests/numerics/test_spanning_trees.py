"""Sums over spanning trees against enumeration, determinants in many digits, and known answers."""

import itertools
from collections import Counter

import mpmath
import numpy as np
import pytest
from scipy import stats

from bayesgen.numerics.spanning_trees import Elimination, heaviest_tree, log_sum_of_trees


def trees(n_nodes):
    """Every spanning tree of the complete graph as a list of edges, from its Pruefer sequence."""
    if n_nodes == 2:
        yield [(0, 1)]
        return
    for sequence in itertools.product(range(n_nodes), repeat=n_nodes - 2):
        degree = [1 + sequence.count(v) for v in range(n_nodes)]
        edges = []
        for v in sequence:
            leaf = degree.index(1)
            edges.append((min(leaf, v), max(leaf, v)))
            degree[leaf] -= 1
            degree[v] -= 1
        edges.append(tuple(v for v in range(n_nodes) if degree[v] == 1))
        yield edges


def edges_of(parents):
    return tuple(sorted((min(v, int(u)), max(v, int(u))) for v, u in enumerate(parents) if v))


def symmetric(rng, n_nodes, spread, lead=()):
    half = np.tril(rng.normal(size=(*lead, n_nodes, n_nodes)) * spread, -1)
    return half + np.swapaxes(half, -1, -2)


def determinant(log_w):
    """log Z by the matrix-tree theorem with enough digits for any cancellation."""
    n_nodes = len(log_w)
    with mpmath.workdps(60 + int(np.ptp(log_w) * n_nodes / 2)):
        w = [[mpmath.e ** mpmath.mpf(float(v)) for v in row] for row in log_w]
        laplacian = mpmath.matrix(n_nodes - 1)
        for i in range(1, n_nodes):
            for j in range(1, n_nodes):
                laplacian[i - 1, j - 1] = (
                    mpmath.fsum(w[i][m] for m in range(n_nodes) if m != i) if i == j else -w[i][j]
                )
        return float(mpmath.log(mpmath.det(laplacian)))


@pytest.mark.parametrize("n_nodes", [2, 3, 5, 7])
@pytest.mark.parametrize("spread", [0.1, 5.0, 300.0])
def test_the_sum_is_a_determinant_in_many_digits(n_nodes, spread):
    log_w = symmetric(np.random.default_rng(n_nodes), n_nodes, spread)
    assert log_sum_of_trees(log_w) == pytest.approx(determinant(log_w), rel=1e-12, abs=1e-12)


def test_weights_that_span_thousands_of_nats_lose_nothing():
    """Z factors by blocks: a heavy tree in each of two cliques, light edges between them.

    Within a clique all weights are equal, m^(m-2) trees of m nodes (Cayley); between the two the
    edges are 1e-2200 of that, so that their sum is the only factor, to all digits.
    """
    m, heavy, light = 6, 2500.0, -2600.0
    rng = np.random.default_rng(1)
    log_w = np.full((2 * m, 2 * m), heavy)
    between = light + rng.normal(size=(m, m))
    log_w[:m, m:], log_w[m:, :m] = between, between.T
    move = rng.permutation(2 * m)
    expected = 2 * ((m - 1) * heavy + (m - 2) * np.log(m)) + np.logaddexp.reduce(between.ravel())
    for order in (np.arange(2 * m), move):
        log_sum = log_sum_of_trees(log_w[np.ix_(order, order)])
        assert log_sum == pytest.approx(expected, rel=1e-15, abs=1e-11)
        p = Elimination(log_w[np.ix_(order, order)]).edge_probabilities()
        assert p.sum() / 2 == pytest.approx(2 * m - 1, rel=1e-12)
    # equal weights everywhere: every edge is in a share 2/V of the trees
    np.testing.assert_allclose(
        Elimination(np.full((8, 8), 5000.0)).edge_probabilities(), (1 - np.eye(8)) / 4, rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("spread", [20.0, 2000.0])
@pytest.mark.parametrize("size", [1.0, 20.0, 400.0])
@pytest.mark.parametrize("n_nodes", [2, 8, 9])
def test_the_compiled_ratio_is_that_of_numpy(monkeypatch, size, spread, n_nodes):
    """Weights that span e^50 or e^5000, an edge not there; changes by more than numbers hold."""
    rng = np.random.default_rng(int(size))
    log_w = symmetric(rng, n_nodes, spread)
    if n_nodes > 2:
        log_w[3, 5] = log_w[5, 3] = -np.inf
    i, j = np.tril_indices(n_nodes - 1, -1)
    tables = rng.normal(size=(2, len(i), 3, 3)) * size / 2
    which, codes = rng.integers(2, size=40), rng.integers(3, size=(40, n_nodes - 1))
    change = np.zeros((40, n_nodes, n_nodes))
    change[:, i + 1, j + 1] = tables[which[:, None], np.arange(len(i)), codes[:, i], codes[:, j]]
    graph = Elimination(log_w)
    expected = graph.log_ratio(i + 1, j + 1, change[:, i + 1, j + 1])
    both = [log_sum_of_trees(log_w + one + one.T) - log_sum_of_trees(log_w) for one in change]
    np.testing.assert_allclose(expected, both, rtol=1e-9, atol=1e-9)
    for steps in (1, 1 << 60):
        monkeypatch.setattr("bayesgen.numerics.kernels.COMPILE_FROM", steps)
        ratios = graph.log_ratio_of_codes(i, j, tables, which, codes)
        np.testing.assert_allclose(ratios, expected, rtol=1e-12, atol=1e-13)


def test_a_graph_in_two_parts_has_no_tree():
    log_w = np.full((4, 4), -np.inf)
    log_w[0, 1] = log_w[1, 0] = log_w[2, 3] = log_w[3, 2] = 0.0
    assert log_sum_of_trees(log_w) == -np.inf
    with pytest.raises(ValueError, match="not connected"):
        Elimination(log_w)
    log_w[1, 2] = log_w[2, 1] = 1.5
    assert log_sum_of_trees(log_w) == pytest.approx(1.5)
    assert Elimination(log_w).draw(np.random.default_rng(0), 2).tolist() == [[-1, 0, 1, 2]] * 2
    assert log_sum_of_trees(np.zeros((1, 1))) == 0.0


@pytest.mark.parametrize("n_nodes", [2, 3, 5])
def test_edges_draws_and_the_heaviest_tree_are_those_of_enumeration(n_nodes):
    rng = np.random.default_rng(n_nodes)
    log_w = symmetric(rng, n_nodes, 1.0)
    every = [tuple(sorted(edges)) for edges in trees(n_nodes)]
    weights = [sum(log_w[e] for e in edges) for edges in every]
    p = np.exp(weights - np.logaddexp.reduce(weights))
    expected = np.zeros((n_nodes, n_nodes))
    for edges, share in zip(every, p, strict=True):
        for i, j in edges:
            expected[[i, j], [j, i]] += share
    p_edges = Elimination(log_w).edge_probabilities()
    np.testing.assert_allclose(p_edges, expected, rtol=1e-12, atol=1e-14)
    assert edges_of(heaviest_tree(log_w)) == every[np.argmax(p)]
    n = 20_000
    drawn = Elimination(log_w).draw(rng, n)
    assert (drawn[:, 0] == -1).all()
    counts = Counter(map(edges_of, drawn))
    assert set(counts) <= set(every)
    if len(every) > 1:
        assert stats.chisquare([counts[edges] for edges in every], n * p).pvalue > 1e-4


@pytest.mark.parametrize("spread", [0.5, 40.0, 400.0])
@pytest.mark.parametrize("n_nodes", [2, 3, 5, 7])
def test_the_ratio_after_a_change_is_that_of_the_two_sums(n_nodes, spread):
    rng = np.random.default_rng(n_nodes)
    log_w = symmetric(rng, n_nodes, 3.0)
    change = symmetric(rng, n_nodes, spread, (3,))
    i, j = np.tril_indices(n_nodes, -1)
    log_ratio = Elimination(log_w).log_ratio(i, j, change[:, i, j])
    expected = [determinant(log_w + one) - determinant(log_w) for one in change]
    assert log_ratio == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_ratio_keeps_its_digits_where_both_sums_are_huge():
    """One edge that every tree must have: the ratio is its change, whatever its weight."""
    log_w = np.full((4, 4), 0.0)
    log_w[3, :] = log_w[:, 3] = -np.inf
    log_w[3, 1] = log_w[1, 3] = 3e10
    edge = np.array([3]), np.array([1])
    ratios = Elimination(log_w).log_ratio(*edge, np.array([[1.25e-3], [250.0], [np.nan], [np.inf]]))
    assert ratios == pytest.approx([1.25e-3, 250.0, np.nan, np.nan], rel=1e-14, nan_ok=True)
