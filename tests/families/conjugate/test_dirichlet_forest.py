"""The average over forests against enumeration of every rooted forest, in plain gamma functions."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet

from bayesgen.families.conjugate import dirichlet_forest
from bayesgen.families.conjugate.dirichlet_forest import (
    START,
    DirichletForest,
    lattice_value,
    search_lattice,
)
from tests.graphs import PYTHON, pm

A, RHO = 3.7, 0.8  # pseudo-counts of a table; odds of a root


def rows(n, levels, seed=0):
    """Codes (n, D), of which the second depends on the first."""
    rng = np.random.default_rng(seed)
    X = rng.integers(np.array(levels), size=(n, len(levels)))
    X[:, 1] = np.where(rng.random(n) < 0.7, X[:, 0] % levels[1], X[:, 1])
    return X


def log_table(X, columns, levels):
    """Log evidence of the joint table of some columns, Dirichlet(A/cells)."""
    counts = np.zeros([levels[j] for j in columns])
    for row in X:
        counts[tuple(row[list(columns)])] += 1
    a = A / counts.size
    return gammaln(A) - gammaln(A + len(X)) + (gammaln(a + counts) - gammaln(a)).sum()


def rooted_forests(n):
    """Parents (-1: root) of every rooted forest of n columns: (n + 1)^(n - 1) of them."""
    for parents in itertools.product(range(-1, n), repeat=n):
        if all(_leads_up(parents, u) for u in range(n)):
            yield parents


def _leads_up(parents, u):
    for _ in range(len(parents)):
        u = parents[u]
        if u == -1:
            return True
    return False


def edges_and_roots(forests, shares):
    """(D, D) probabilities of edges and (D,) of roots, from those of the forests."""
    d = len(forests[0])
    edges, roots = np.zeros((d, d)), np.zeros(d)
    for forest, share in zip(forests, shares, strict=True):
        for u, parent in enumerate(forest):
            if parent < 0:
                roots[u] += share
            else:
                edges[u, parent] += share
                edges[parent, u] += share
    return edges, roots


def counts_of(drawn, forests):
    """(F,) how often each forest is among the rows of parents that were drawn."""
    frequencies = np.zeros(len(forests))
    for parents in drawn.astype(int):
        frequencies[forests.index(tuple(parents))] += 1
    return frequencies


def log_evidence(X, levels, forests):
    """log sum over forests of prior weight times the evidence of its conditional tables."""
    single = [log_table(X, (u,), levels) for u in range(len(levels))]
    terms, prior = [], []
    for parents in forests:
        weight = sum(np.log(RHO) for p in parents if p < 0)
        prior.append(weight)
        for u, p in enumerate(parents):
            weight += single[u] if p < 0 else log_table(X, (p, u), levels) - single[p]
        terms.append(weight)
    return logsumexp(terms) - logsumexp(prior)


def posterior(X, levels, **options):
    family = DirichletForest(A, RHO, np.array(levels), **options)
    y = np.zeros(len(X), dtype=int)
    stats = family.stats(X, y, 1)
    prior = family.resolve(stats)
    return prior, stats, prior.update(stats)


@pytest.mark.parametrize(
    ("levels", "count"),
    [
        ((2, 3), 3),
        ((3, 2, 2), 16),
        ((2, 2, 3, 2), 125),
        pytest.param((2,) * 5, 1296, marks=pytest.mark.slow),
    ],
)
def test_evidence_predictive_and_edges_are_sums_over_all_rooted_forests(levels, count):
    forests = list(rooted_forests(len(levels)))
    assert len(forests) == count
    X = rows(12, levels)
    prior, stats, fitted = posterior(X, levels)
    expected = log_evidence(X, levels, forests)
    assert prior.log_evidence(stats) == pytest.approx(expected, rel=1e-12)
    cells = np.array(list(itertools.product(*map(range, levels))))
    log_p = fitted.log_predictive(cells)[:, 0]
    assert np.exp(log_p).sum() == pytest.approx(1.0, rel=1e-12)
    for i in range(0, len(cells), 5 if len(levels) < 5 else 16):
        both = log_evidence(np.vstack([X, cells[i]]), levels, forests)
        assert log_p[i] == pytest.approx(both - expected, rel=1e-11)
    weights = [log_evidence(X, levels, [f]) + np.log(RHO) * f.count(-1) for f in forests]
    p = np.exp(np.array(weights) - logsumexp(weights))
    edges, roots = edges_and_roots(forests, p)
    np.testing.assert_allclose(fitted.edge_probabilities()[0], edges, atol=1e-12)
    np.testing.assert_allclose(fitted.root_probabilities()[0], roots, atol=1e-12)


def test_draws_are_forests_in_proportion_and_tables_given_them():
    levels, X = (2, 3, 2), rows(9, (2, 3, 2))
    _, _, fitted = posterior(X, levels)
    forests = list(rooted_forests(3))
    log_w = np.array([log_evidence(X, levels, [f]) + np.log(RHO) * f.count(-1) for f in forests])
    p = np.exp(log_w - logsumexp(log_w))
    n = 8000
    theta = fitted.draw(np.random.default_rng(3), n)
    counts = counts_of(theta["parents"][:, 0], forests)
    assert np.all(np.abs(counts / n - p) < 5 * np.sqrt(p * (1 - p) / n))
    # the density of one draw, by SciPy
    one = {name: v[0] for name, v in theta.items()}
    parents, tables = one["parents"][0].astype(int), one["tables"][0]
    expected = log_w[forests.index(tuple(parents))] - logsumexp(log_w)
    for u, parent in enumerate(parents):
        for k in range(1 if parent < 0 else levels[parent]):
            group = X if parent < 0 else X[X[:, parent] == k]
            prior = A / levels[u] / (1 if parent < 0 else levels[parent])
            alpha = prior + np.bincount(group[:, u], minlength=levels[u])
            expected += dirichlet.logpdf(tables[u, k, : levels[u]], alpha)
    assert fitted.log_density(one) == pytest.approx(expected, rel=1e-10)
    one["parents"] = np.array([[1.0, 0.0, -1.0]])
    assert fitted.log_density(one) == -np.inf  # a cycle


@pytest.mark.parametrize("structure", ["tree", "map", "fixed"])
def test_a_single_forest_is_the_plug_in_of_that_forest(structure):
    levels = (2, 3, 2, 2)
    X = rows(40, levels, seed=4)
    edges = None
    if structure == "fixed":
        edges = np.zeros((4, 4))
        edges[0, 1] = edges[1, 0] = edges[3, 1] = edges[1, 3] = 1.0
    prior, stats, fitted = posterior(X, levels, structure=structure, edges=edges)
    every = list(rooted_forests(4))
    if structure != "fixed":
        allowed = [f for f in every if structure == "map" or f.count(-1) == 1]
        best = max(allowed, key=lambda f: log_evidence(X, levels, [f]) + np.log(RHO) * f.count(-1))
    else:
        best = (-1, 0, -1, 1)
    pairs = {tuple(sorted(e)) for e in np.argwhere(prior.edges[0] > 0).tolist()}
    assert pairs == {tuple(sorted((u, p))) for u, p in enumerate(best) if p >= 0}
    expected = log_evidence(X, levels, [best])
    assert prior.log_evidence(stats) == pytest.approx(expected, rel=1e-12)
    x = np.array([[1, 1, 0, 1]])
    both = log_evidence(np.vstack([X, x]), levels, [best])
    assert fitted.log_predictive(x)[0, 0] == pytest.approx(both - expected, rel=1e-10)
    theta = fitted.draw(np.random.default_rng(0), 4)
    np.testing.assert_allclose(fitted.edge_probabilities(), prior.edges)
    candidate = fitted.log_likelihood(X, theta)[..., 0].sum(axis=1)
    candidate += prior.log_density(theta) - fitted.log_density(theta)
    np.testing.assert_allclose(candidate, expected, rtol=1e-10)


@pytest.mark.slow
def test_the_mixture_in_pymc_has_the_evidence_of_the_average():
    """The mean of the likelihood under the prior of the tables is the evidence: 3 columns."""
    levels, X = (2, 3, 2), rows(5, (2, 3, 2))
    prior, stats, _ = posterior(X, levels)
    forests = dirichlet_forest.rooted_forests(3)
    assert sorted(map(tuple, forests)) == sorted(rooted_forests(3))
    with pm.Model() as model:
        dirichlet_forest.declare(prior, stats.pairs, [forests])
    potential = pm.draw(model["x"], draws=4000, random_seed=1, mode=PYTHON)
    ratio = np.exp(potential - prior.log_evidence(stats))
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(4000)
    assert ratio.std() / np.sqrt(4000) < 0.1


def test_given_forests_in_pymc_have_the_likelihood_of_their_tables():
    levels, X = (2, 3, 2), rows(8, (2, 3, 2))
    prior, stats, fitted = posterior(X, levels)
    parents = np.array([-1, 0, 1])
    with pm.Model() as model:
        dirichlet_forest.declare(prior, stats.pairs, [parents[None]])
    names = ["tables_0_0", "tables_0_1_0", "tables_0_2_1"]
    assert sorted(v.name for v in model.free_RVs) == sorted(names)
    draws = pm.draw([model["x"], *(model[n] for n in names)], draws=3, random_seed=2, mode=PYTHON)
    tables = np.zeros((3, 1, 3, 3, 3))
    for u, value in enumerate(draws[1:]):
        value = value[:, None] if u == 0 else value
        tables[:, 0, u, : value.shape[1], : value.shape[2]] = value
    theta = {"parents": np.broadcast_to(parents, (3, 1, 3)).astype(float), "tables": tables}
    expected = fitted.log_likelihood(X, theta)[..., 0].sum(axis=1)
    np.testing.assert_allclose(draws[0], expected, rtol=1e-10)
    logp = model.compile_logp(vars=model.free_RVs, jacobian=False, mode=PYTHON)
    point = model.initial_point()
    assert np.isfinite(logp(point))


@pytest.mark.parametrize("peak", [(6, 0), (-4, -5), (18, 5), (3, -4), (11, 2), (-30, 50)])
@pytest.mark.parametrize("free", [(True, True), (True, False), (False, True)])
def test_the_pattern_search_finds_the_highest_point_of_a_lattice(peak, free):
    def evidence(strength, root):
        place = 2 * np.log2(strength), 2 * np.log10(root / 7)
        return -sum((a - b) ** 2 for a, b in zip(place, peak, strict=True))

    edges = (-4, 18), (-5, 5)
    point = [
        min(max(power, low), high) if is_free else start
        for power, (low, high), is_free, start in zip(peak, edges, free, START, strict=True)
    ]
    assert search_lattice(evidence, 7, free) == lattice_value(7, (point[0], point[1]))
    assert lattice_value(7, (4, 2)) == pytest.approx((4.0, 70.0))
