"""The average over forests of Normal columns against enumeration, with SciPy's Student t alone."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import invgamma, multivariate_t, norm

from bayesgen.families.conjugate.normal_forest import NormalForest
from tests.families.conjugate.forests import counts_of, edges_and_roots, rooted_forests

RHO, NU, KAPPA = 0.8, 4.5, 0.7


def prior_of(d):
    """mu and a correlated psi."""
    psi = (
        1.5 * (np.eye(d) + 0.3) * np.sqrt(1.0 + np.arange(d))[:, None] * np.sqrt(1.0 + np.arange(d))
    )
    return np.linspace(-0.5, 1.0, d), psi


def rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1] += 1.4 * X[:, 0]
    X[:, -1] -= 0.9 * X[:, 0]
    return X


def log_clique(X, columns):
    """Log evidence of the Normal rows in some columns: the chain rule of Student t predictives."""
    columns, out = list(columns), 0.0
    p = len(columns)
    m, psi = prior_of(X.shape[1])
    m, psi, kappa, nu = m[columns], psi[np.ix_(columns, columns)], KAPPA, NU + p - 1
    for x in X[:, columns]:
        df = nu - p + 1
        out += multivariate_t.logpdf(x, m, psi * (kappa + 1) / (kappa * df), df)
        step = x - m
        psi = psi + kappa / (kappa + 1) * np.outer(step, step)
        m, kappa, nu = m + step / (kappa + 1), kappa + 1, nu + 1
    return out


def log_evidence(X, forests):
    """Log sum over forests of prior weight times the evidence of its cliques."""
    single = [log_clique(X, (u,)) for u in range(X.shape[1])]
    pair = {}
    terms, prior = [], []
    for parents in forests:
        weight = np.log(RHO) * parents.count(-1)
        prior.append(weight)
        for u, p in enumerate(parents):
            key = tuple(sorted((u, p)))
            if p >= 0 and key not in pair:
                pair[key] = log_clique(X, key)
            weight += single[u] if p < 0 else pair[key] - single[p]
        terms.append(weight)
    return logsumexp(terms) - logsumexp(prior), np.array(terms)


def posterior(X, **options):
    mu, psi = prior_of(X.shape[1])
    family = NormalForest(mu, KAPPA, NU, psi, RHO, shift=np.zeros(X.shape[1]), **options)
    stats = family.stats(X, np.zeros(len(X), dtype=int), 1)
    prior = family.resolve(stats)
    return prior, stats, prior.update(stats)


@pytest.mark.parametrize("d", [3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_evidence_predictive_and_edges_are_sums_over_all_rooted_forests(d):
    forests = list(rooted_forests(d))
    X = rows(7, d)
    prior, stats, fitted = posterior(X)
    expected, terms = log_evidence(X, forests)
    assert prior.log_evidence(stats) == pytest.approx(expected, rel=1e-11)
    new = 2 * rows(3, d, seed=1)
    for x, log_p in zip(new, fitted.log_predictive(new)[:, 0], strict=True):
        both, _ = log_evidence(np.vstack([X, x]), forests)
        assert log_p == pytest.approx(both - expected, rel=1e-10)
    share = np.exp(terms - logsumexp(terms))
    edges, roots = edges_and_roots(forests, share)
    np.testing.assert_allclose(fitted.edge_probabilities()[0], edges, atol=1e-10)
    np.testing.assert_allclose(fitted.root_probabilities()[0], roots, atol=1e-10)


def test_draws_are_forests_in_proportion_and_their_density_is_scipys():
    X = rows(7, 3)
    _, _, fitted = posterior(X)
    forests = list(rooted_forests(3))
    _, terms = log_evidence(X, forests)
    p = np.exp(terms - logsumexp(terms))
    n = 8000
    theta = fitted.draw(np.random.default_rng(3), n)
    found = counts_of(theta["parents"][:, 0], forests)
    assert np.all(np.abs(found / n - p) < 5 * np.sqrt(p * (1 - p) / n) + 1e-12)
    # the posterior of one Normal-inverse-Wishart, by its textbook update
    m, psi = prior_of(3)
    kappa, step = KAPPA + 7, X.mean(axis=0) - m
    psi = psi + np.cov(X.T, bias=True) * 7 + KAPPA * 7 / kappa * np.outer(step, step)
    m = m + 7 / kappa * step
    one = {name: v[0] for name, v in theta.items()}
    parents, mu, slope, sigma2 = (v[0] for v in one.values())
    expected = np.log(p[forests.index(tuple(parents.astype(int)))])
    for u, parent in enumerate(parents.astype(int)):
        sd, nu, scale, mean = np.sqrt(sigma2[u] / kappa), NU + 7, psi[u, u], m[u]
        if parent >= 0:
            scale -= psi[u, parent] ** 2 / psi[parent, parent]
            nu, mean = nu + 1, m[u] + slope[u] * (mu[parent] - m[parent])
            width = np.sqrt(sigma2[u] / psi[parent, parent])
            expected += norm.logpdf(slope[u], psi[u, parent] / psi[parent, parent], width)
        expected += invgamma.logpdf(sigma2[u], nu / 2, scale=scale / 2)
        expected += norm.logpdf(mu[u], mean, sd)
    assert fitted.log_density(one) == pytest.approx(expected, rel=1e-10)
    one["parents"] = np.array([[1.0, 0.0, -1.0]])
    assert fitted.log_density(one) == -np.inf  # a cycle


def test_columns_that_nearly_repeat_each_other_keep_their_digits():
    rng = np.random.default_rng(2)
    a = rng.normal(size=40)
    X = np.column_stack([a, a + 1e-3 * rng.normal(size=40), -a + 1e-3 * rng.normal(size=40)])
    mu, psi = np.zeros(3), np.eye(3)
    family = NormalForest(mu, 1.0, 3.0, 1e-6 * psi, 1.0, shift=np.zeros(3))
    stats = family.stats(X, np.zeros(40, dtype=int), 1)
    prior = family.resolve(stats)
    one = prior.update(family.stats(X[:20], np.zeros(20, dtype=int), 1))
    parts = prior.log_evidence(family.stats(X[:20], np.zeros(20, dtype=int), 1))
    parts += one.log_evidence(family.stats(X[20:], np.zeros(20, dtype=int), 1))
    assert prior.log_evidence(stats) == pytest.approx(parts, rel=1e-8)


@pytest.mark.parametrize("structure", ["tree", "map"])
def test_a_single_forest_is_the_plug_in_of_the_best(structure):
    X = rows(30, 4)
    forests = list(rooted_forests(4))
    _, terms = log_evidence(X, forests)
    if structure == "tree":
        terms = np.where([f.count(-1) == 1 for f in forests], terms, -np.inf)
    best = forests[int(np.argmax(terms))]
    prior, stats, fitted = posterior(X, structure=structure)
    expected = np.zeros((4, 4))
    for u, p in enumerate(best):
        if p >= 0:
            expected[u, p] = expected[p, u] = 1
    np.testing.assert_array_equal(fitted.edge_probabilities()[0], expected)
    alone = terms.max() - np.log(RHO) * best.count(-1)
    assert prior.log_evidence(stats) == pytest.approx(alone, rel=1e-11)


def test_leaving_one_out_may_choose_no_edges():
    """The alternative that `prior="loo"` tries is the limit of large root weights."""
    X, y = rows(30, 4), np.arange(30) % 2
    given = NormalForest()
    stats = given.stats(X, y, 2)
    (none,) = given.resolve(stats).other_scales(given)
    limit = NormalForest(root_weight=1e14).resolve(stats)
    expected = limit.update(stats).log_predictive(X)
    np.testing.assert_allclose(none.update(stats).log_predictive(X), expected, rtol=1e-9)
    assert not limit.other_scales(NormalForest(root_weight=1e14))
