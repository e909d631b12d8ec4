"""Families whose predictive is a closed form that is no exact posterior's."""

import numpy as np
import pytest

from bayesgen.families.errors import NoPosteriorError, UndefinedEstimateError
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import ClassModel
from tests.laws.cases import EXACT, N_SIGMA, close

N = 30


def rows(family, n=N, salt=0):
    """Documents that repeat themselves, so that contexts are seen more than once."""
    rng = np.random.default_rng([len(family.settings()), salt])
    y = rng.integers(3, size=n)
    return family.simulate_predictive(rng, y), y


def same(a, b, X, tol=EXACT):
    close(a.log_predictive(X), b.log_predictive(X), tol)


def test_statistics_are_a_monoid(approximate):
    X, y = rows(approximate)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], size=N)
    a, b, c = (
        approximate.stats(X[s], y[s], 3, weight[s])
        for s in (slice(0, 9), slice(9, 10), slice(10, N))
    )
    whole = approximate.stats(X, y, 3, weight)
    Z, _ = rows(approximate, salt=1)
    for stats in (a.merge(b).merge(c), c.merge(a.merge(b))):
        same(approximate.update(stats), approximate.update(whole), Z)
    same(approximate.update(a).update(b.merge(c)), approximate.update(whole), Z)
    same(approximate.update(whole.remove(b)), approximate.update(a.merge(c)), Z)
    same(approximate.update(whole.remove(whole)), approximate, Z)


def test_integer_weights_are_repeated_rows(approximate):
    X, y = rows(approximate)
    weight = np.random.default_rng(2).integers(4, size=N)
    index = np.repeat(np.arange(N), weight)
    weighted = approximate.stats(X, y, 3, weight.astype(np.float64))
    repeated = approximate.stats(X[index], y[index], 3)
    same(approximate.update(weighted), approximate.update(repeated), X)


@pytest.mark.parametrize("kind", ["ones", "fractions"])
def test_a_row_leaves_as_it_came(approximate, kind):
    X, y = rows(approximate)
    weight = np.ones(N)
    if kind == "fractions":
        weight = np.random.default_rng(3).choice([0.0, 0.3, 1.0, 2.0], size=N)
    prior = ClassModel(np.array([0.5, 1.0, 2.0]), approximate)

    def posterior(at):
        stats = prior.stats(X[at], y[at], 3, weight[at])
        return ExactPosterior(prior, prior.update(stats), stats)

    found, _ = posterior(np.arange(N)).log_joint_without(X, y, weight)
    for i in range(N):
        others = posterior(np.delete(np.arange(N), i))
        close(found[i : i + 1], others.log_joint(X[i : i + 1]), 1e-10)


def test_rows_are_simulated_from_the_predictive(approximate):
    """E_c sqrt(p_d/p_c) = E_d sqrt(p_c/p_d): the affinity of two classes, from either side."""
    X, y = rows(approximate, 60)
    posterior, n = approximate.update(approximate.stats(X, y, 3)), 4000
    sides = []
    for c in range(2):
        made = posterior.simulate_predictive(np.random.default_rng(c), np.full(n, c))
        log_p = posterior.log_predictive(made)
        sides.append(np.exp(0.5 * (log_p[:, 1 - c] - log_p[:, c])))
    mcse = np.hypot(*(s.std() / np.sqrt(n) for s in sides))
    assert abs(sides[0].mean() - sides[1].mean()) <= N_SIGMA * mcse


def test_what_needs_a_posterior_is_refused_with_the_reason(approximate):
    X, y = rows(approximate, 5)
    stats = approximate.stats(X, y, 3)
    rng = np.random.default_rng(0)
    for ask in (
        lambda: approximate.log_evidence(stats),
        lambda: approximate.cgf(X, np.ones(3)),
        lambda: approximate.draw(rng, 1),
        lambda: approximate.log_likelihood(X, {}),
        lambda: approximate.simulate(rng, {}, y),
    ):
        with pytest.raises(NoPosteriorError, match="approximates"):
            ask()
    for estimate in (approximate.map, approximate.mean, lambda: approximate.mle(stats)):
        with pytest.raises(UndefinedEstimateError, match="approximates"):
            estimate()
