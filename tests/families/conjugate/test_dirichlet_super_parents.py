"""Averages over super-parents against sums over every set of them, in plain gamma functions."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import dirichlet

from bayesgen.families.conjugate.dirichlet_forest import DirichletForest
from bayesgen.families.conjugate.dirichlet_super_parents import DirichletSuperParents, declare
from bayesgen.families.names import CLASS
from bayesgen.numerics import kernels
from tests.families.conjugate.forests import A, log_table, rows
from tests.graphs import PYTHON, pm


def log_evidences(X, levels, n):
    """Of each set of n super-parents: its table, and those of the other columns given it."""
    n = min(n, len(levels) - 1)
    out = []
    for s in itertools.combinations(range(len(levels)), n):
        own = log_table(X, s, levels)
        others = [j for j in range(len(levels)) if j not in s]
        out.append(own + sum(log_table(X, (*s, j), levels) - own for j in others))
    return np.array(out)


def posterior(X, levels, n, weights, y=None):
    y = np.zeros(len(X), dtype=int) if y is None else y
    n_classes = int(y.max()) + 1
    family = DirichletSuperParents(np.array(levels), A, n=n, weights=weights)
    stats = family.stats(X, y, n_classes)
    prior = family.resolve(stats)
    return prior, stats, prior.update(stats)


@pytest.mark.parametrize("weights", ["uniform", "evidence"])
@pytest.mark.parametrize(
    ("n", "levels"), [(1, (2, 3, 2, 4)), (2, (2, 3, 2, 4)), (2, (3, 2, 2)), (2, (2, 3)), (1, (3,))]
)
def test_evidence_and_predictive_are_sums_over_all_sets(n, levels, weights):
    X = rows(14, levels) if len(levels) > 1 else rows(14, (*levels, 2))[:, :1]
    prior, stats, fitted = posterior(X, levels, n, weights)
    each = log_evidences(X, levels, n)
    assert prior.log_evidence(stats) == pytest.approx(logsumexp(each) - np.log(len(each)))
    log_w = (
        each - logsumexp(each) if weights == "evidence" else np.full(len(each), -np.log(len(each)))
    )
    cells = np.array(list(itertools.product(*map(range, levels))))
    log_p = fitted.log_predictive(cells)[:, 0]
    assert np.exp(log_p).sum() == pytest.approx(1.0, rel=1e-12)
    for i in range(0, len(cells), 5):
        after = log_evidences(np.vstack([X, cells[i]]), levels, n)
        assert log_p[i] == pytest.approx(logsumexp(log_w + after - each), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2])
def test_a_column_of_one_category_changes_nothing(n):
    X, y = rows(20, (2, 3, 2)), np.arange(20) % 2
    wide = np.insert(X, 1, 0, axis=1)
    prior, stats, fitted = posterior(X, (2, 3, 2), n, "uniform", y)
    same, more, wider = posterior(wide, (2, 1, 3, 2), n, "uniform", y)
    assert same.log_evidence(more) == pytest.approx(prior.log_evidence(stats), rel=1e-14)
    np.testing.assert_allclose(wider.log_predictive(wide), fitted.log_predictive(X), rtol=1e-14)
    theta = wider.draw(np.random.default_rng(0), 3)
    assert np.isfinite(wider.log_density(theta)).all()
    assert np.isfinite(wider.log_likelihood(wide, theta)).all()
    drawn = wider.simulate(np.random.default_rng(1), {k: v[0] for k, v in theta.items()}, y)
    assert (drawn[:, 1] == 0).all()
    none = posterior(0 * X, (1, 1, 1), n, "uniform")[2]
    assert none.log_predictive(0 * X) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("weights", ["uniform", "evidence"])
def test_draws_are_sets_by_their_weights_and_tables_given_them(weights):
    levels, X = (2, 3, 2), rows(9, (2, 3, 2))
    _, _, fitted = posterior(X, levels, 2, weights)
    each = log_evidences(X, levels, 2)
    p = np.exp(each - logsumexp(each)) if weights == "evidence" else np.full(3, 1 / 3)
    n = 6000
    theta = fitted.draw(np.random.default_rng(3), n)
    found = np.bincount(theta["super_parents"][:, 0].astype(int), minlength=3) / n
    assert np.all(np.abs(found - p) < 5 * np.sqrt(p * (1 - p) / n))
    x = rows(6, levels, seed=5)
    likelihood = np.exp(fitted.log_likelihood(x, theta)[..., 0])
    mcse = likelihood.std(axis=0) / np.sqrt(n)
    expected = np.exp(fitted.log_predictive(x)[:, 0])
    assert np.all(np.abs(likelihood.mean(axis=0) - expected) < 5 * mcse)
    # the density of one draw, by SciPy: columns 0 and 2 are the super-parents
    one = {name: v[theta["super_parents"][:, 0] == 1][0] for name, v in theta.items()}
    tables = one["tables"][0]
    both = X[:, 0] * 2 + X[:, 2]
    known = np.log(p[1])
    known += dirichlet.logpdf(tables[0, 0, :2], A / 2 + np.bincount(X[:, 0], minlength=2))
    for k in range(2):
        own = X[X[:, 0] == k, 2]
        known += dirichlet.logpdf(tables[2, k, :2], A / 4 + np.bincount(own, minlength=2))
    for k in range(4):
        own = X[both == k, 1]
        known += dirichlet.logpdf(tables[1, k], A / 12 + np.bincount(own, minlength=3))
    assert fitted.log_density(one) == pytest.approx(known, rel=1e-10)


def test_the_strength_by_evidence_is_the_best_of_the_lattice_nearby():
    X, y = rows(60, (2, 2, 3), seed=5), np.arange(60) % 2
    family = DirichletSuperParents(np.array([2, 2, 3]))
    stats = family.stats(X, y, 2)
    prior = family.resolve(stats)
    for factor in (2**0.5, 2**-0.5):
        other = DirichletSuperParents(prior.levels, prior.strength * factor).resolve(stats)
        assert other.log_evidence(stats) <= prior.log_evidence(stats) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2])
def test_the_compiled_average_is_that_of_numpy(n, monkeypatch):
    levels = (2, 5, 3, 2, 4, 2)
    X = rows(500, levels, seed=7)
    _, _, fitted = posterior(X, levels, n, "evidence", np.arange(500) % 3)
    plain = fitted.log_predictive(X)
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    np.testing.assert_allclose(fitted.log_predictive(X), plain, rtol=1e-12)


def test_given_super_parents_in_pymc_have_the_likelihood_of_their_tables():
    levels, X = (2, 3, 2), rows(8, (2, 3, 2))
    prior, _, fitted = posterior(X, levels, 2, "evidence")
    with pm.Model() as model:
        declare(prior, fitted, [2])  # columns 1 and 2
    names = [f"tables_0_{j}" for j in range(3)]
    assert sorted(v.name for v in model.free_RVs) == names
    draws = pm.draw([model["x"], *(model[n] for n in names)], draws=3, random_seed=2, mode=PYTHON)
    tables = np.zeros((3, 1, 3, 6, 3))
    for j, value in enumerate(draws[1:]):
        tables[:, 0, j, : value.shape[1], : value.shape[2]] = value
    theta = {"super_parents": np.full((3, 1), 2.0), "tables": tables}
    expected = fitted.log_likelihood(X, theta)[..., 0].sum(axis=1)
    np.testing.assert_allclose(draws[0], expected, rtol=1e-10)
    # prior density times likelihood over posterior density is the evidence of the set
    candidate = prior.log_density(theta) - fitted.log_density(theta) + expected
    np.testing.assert_allclose(candidate, prior.log_evidence(stats_of(X, prior)), rtol=1e-10)


def stats_of(X, family):
    return family.stats(X, np.zeros(len(X), dtype=int), 1)


def test_what_is_wrong_is_refused():
    X, y = rows(6, (2, 2)), np.zeros(6, dtype=int)
    levels = np.array([2, 2])
    for options, match in (
        ({"n": 3}, "n must be 1 or 2"),
        ({"weights": "loo"}, "weights must be"),
        ({"strength": -1.0}, "strength must be > 0"),
    ):
        family = DirichletSuperParents(levels, **options)
        with pytest.raises(ValueError, match=match):
            family.resolve(family.stats(X, y, 1))
    other = DirichletSuperParents(np.array([2, 3]))
    with pytest.raises(ValueError, match="other columns"):
        other.resolve(DirichletSuperParents(levels).stats(X, y, 1))
    with pytest.raises(ValueError, match="not one of the category codes"):
        DirichletSuperParents(levels).stats(X + 1, y, 1)
    wide = DirichletSuperParents(np.full(200, 4), n=2)
    with pytest.raises(ValueError, match=r"8\.4e\+07 counts, 0\.7 GB; the limit"):
        wide.stats(np.zeros((2, 200), dtype=int), np.zeros(2, dtype=int), 1)


@pytest.mark.parametrize("kind", ["forest", "super-parent"])
def test_terms_share_what_two_columns_say_together(kind):
    """Of two columns: log p(x_0) + half of log p(x_0, x_1)/p(x_0)p(x_1), whichever is the root."""
    X = np.array([[0, 0], [1, 0], [2, 1], [0, 1], [0, 0], [1, 1]])
    made = DirichletForest if kind == "forest" else DirichletSuperParents
    family = made(levels=[3, 2], strength=2.0)
    stats = family.stats(X, np.array([0, 0, 0, 0, 1, 1]), 2)
    posterior = family.resolve(stats).update(stats)
    theta = posterior.draw(np.random.default_rng(0), 20)
    terms, _ = posterior.log_odds_terms(X, 0, 1, theta)
    for s in range(20):
        want = np.zeros((len(X), 2))
        for c, sign in ((0, 1.0), (1, -1.0)):
            one = {name: a[s][[c]] for name, a in theta.items()}
            every = np.array([[i, j] for i in range(3) for j in range(2)])
            p = np.exp(posterior.at(CLASS, [c]).log_likelihood(every, one)).reshape(3, 2)
            first, second = p.sum(axis=1)[X[:, 0]], p.sum(axis=0)[X[:, 1]]
            both = np.log(p[X[:, 0], X[:, 1]] / (first * second)) / 2
            want += sign * np.stack([np.log(first) + both, np.log(second) + both], axis=1)
        np.testing.assert_allclose(terms[s], want, rtol=1e-9, atol=1e-12)
