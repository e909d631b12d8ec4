"""Exponents of a pool: draws against quadrature, other samplers' targets, and refits."""

from functools import partial

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.special import logsumexp
from scipy.stats import gamma, norm

from bayesgen.inference import exponents
from bayesgen.inference.exponents import sample
from bayesgen.posterior.pooled import (
    INTERCEPT_SCALE,
    SHAPE,
    Evidence,
    Exponents,
    LogLinear,
    comparable,
)

N, M, C = 60, 3, 4


def complete(scores):
    """Evidence of rows without a missing cell, where classes are equally frequent."""
    scores = comparable(scores)
    return Evidence(scores, np.zeros(scores.shape[1:]), np.ones(scores.shape[1]))


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    codes = rng.integers(C, size=N)
    scores = rng.normal(size=(M, N, C)) * np.array([1.0, 4.0, 9.0])[:, None, None]
    scores[:, np.arange(N), codes] += 2
    log_weights = np.log(rng.dirichlet(np.full(C, 5.0), size=N))
    evidence = Evidence(comparable(scores), log_weights, rng.uniform(size=N))
    return evidence, codes, rng.choice([0.5, 1.0, 2.0], size=N)


def logits(eta, b, evidence):
    """(..., N, C) of points eta (..., M) and b (..., C)."""
    s = np.einsum("...m,mnc->...nc", eta, evidence.scores) + evidence.log_weights
    return s + b[..., None, :] * evidence.known_share[:, None]


def log_posterior(eta, b, evidence, codes, weight, prior):
    """Of points eta (..., M) and b (..., C), by SciPy's densities."""
    s = logits(eta, b, evidence)
    log_p = (s[..., np.arange(len(codes)), codes] - logsumexp(s, axis=-1)) @ weight
    log_p += gamma(SHAPE, scale=prior.mean / SHAPE).logpdf(eta).sum(axis=-1)
    if prior.intercepts:
        log_p += norm(scale=INTERCEPT_SCALE).logpdf(b).sum(axis=-1)
    return log_p


def worst(exponents_drawn):
    """R-hat (rank-normalised, split) of all that varies."""
    draws = np.concatenate(exponents_drawn, axis=2)
    draws = draws[:, :, draws.std(axis=(0, 1)) > 0]
    return array_stats.rhat(draws, chain_axis=0, draw_axis=1).max()


def error(values):
    """Monte Carlo standard error of the mean of (chain, draw)."""
    return array_stats.mcse(values, chain_axis=0, draw_axis=1, method="mean")


@pytest.mark.parametrize("slope", [4.0, 0.3, 0.0, -1.0])
def test_one_exponent_by_quadrature(slope):
    """Useful, useless and misleading scores."""
    rng = np.random.default_rng(5)
    codes, prior = np.arange(40) % 2, LogLinear(1.0, False)
    scores = rng.normal(size=(1, 40, 2)) * 2
    scores[0, np.arange(40), codes] += slope
    scores, weight = complete(scores), np.ones(40)
    draws = sample(scores, codes, weight, prior)
    assert worst(draws) < 1.01
    u = np.linspace(-60, 4, 10_001)  # log eta
    log_p = log_posterior(np.exp(u)[:, None], np.zeros(2), scores, codes, weight, prior) + u
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    middle = p @ np.exp(u)
    for f in (lambda e: e, np.sqrt, lambda e: (e < middle).astype(float), np.square):
        values = f(draws.exponents[..., 0])
        assert abs(values.mean() - p @ f(np.exp(u))) < 5 * error(values)


def test_exponent_and_intercepts_by_quadrature(problem):
    evidence, codes, weight = problem
    scores, codes = comparable(evidence.scores[:1, :, :2]), codes % 2
    evidence = Evidence(scores, evidence.log_weights[:, :2], evidence.known_share)
    prior = LogLinear(1.0)
    draws = sample(evidence, codes, weight, prior)
    assert worst(draws) < 1.01
    eta, d = np.linspace(1e-3, 1.2, 160) ** 2, np.linspace(-3, 3, 121)  # sqrt eta; b_0 - b_1
    b = np.stack([d, -d], axis=1) / 2
    grid = np.stack([log_posterior(np.array([e]), b, evidence, codes, weight, prior) for e in eta])
    p = np.exp(grid - grid.max()) * np.sqrt(eta)[:, None]
    p /= p.sum()
    difference = draws.intercepts[..., 0] - draws.intercepts[..., 1]
    for values, exact in (
        (draws.exponents[..., 0], p.sum(axis=1) @ eta),
        (difference, p.sum(axis=0) @ d),
        (difference**2, p.sum(axis=0) @ d**2),
        (draws.intercepts.sum(axis=2), 0.0),
        (draws.intercepts.sum(axis=2) ** 2, 2 * 2.0**2),
    ):
        assert abs(values.mean() - exact) < 5 * error(values)
    top = draws.log_proba(evidence[:3])
    joint = logits(*draws.flat, evidence[:3])
    expected = np.exp(joint - logsumexp(joint, axis=2, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(np.exp(top), expected, rtol=1e-12)


@pytest.mark.parametrize("intercepts", [True, False])
def test_slopes_and_values_are_those_of_the_density(problem, intercepts):
    prior = LogLinear(1 / M, intercepts)
    target = exponents._Target(*problem, prior)
    x = np.abs(np.random.default_rng(1).normal(size=(2, target.size)))
    step = 1e-6 * np.eye(target.size)
    slopes = target.slopes(x)
    for j, e in enumerate(step):
        numeric = (target.value(x + e) - target.value(x - e)) / 2e-6
        np.testing.assert_allclose(slopes[:, j], numeric, rtol=1e-5, atol=1e-5)
    differences = []
    for point in x:  # the density of z is that of eta times d eta / d z
        eta, b = target.exponents(point)
        log_p = log_posterior(eta, b, *problem, prior) + np.log(eta / np.abs(point[:M])).sum()
        differences.append(target.value(point[None])[0] - log_p)
    assert differences[0] == pytest.approx(differences[1], abs=1e-8)


def test_many_exponents_whose_sum_alone_is_known():
    """Copies of one member with noise: a thin shell in the coordinates of the sampler."""
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=2000)
    base = rng.normal(size=(2000, 2)) + 1.5 * np.eye(2)[codes]
    scores = np.stack([base + 0.1 * rng.normal(size=base.shape) for _ in range(8)])
    draws = sample(complete(scores), codes, np.ones(2000), LogLinear(1 / 8))
    total = draws.exponents.sum(axis=2)
    assert worst(draws) < 1.01
    assert total.std() < 0.1
    assert draws.exponents.std(axis=(0, 1)).min() > total.std()


def test_r_hat_is_that_of_arviz():
    """Of means, of spreads, and where draws repeat."""
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(8, 250, 3)).round(1)
    draws[:4, :, 1] += 0.3
    draws[:4, :, 2] *= 1.3
    for j in ([0], [0, 1], [2]):
        expected = array_stats.rhat(draws[..., j], chain_axis=0, draw_axis=1).max()
        assert exponents._r_hat(draws[..., j]) == pytest.approx(max(1.0, expected), rel=1e-12)


@pytest.mark.parametrize("change", ["weights", "order"])
def test_rows_of_weight_two_are_rows_given_twice_in_any_order(problem, change):
    scores, codes, _ = problem
    prior = LogLinear(1 / M)
    twice = scores[np.arange(2 * N) % N], np.tile(codes, 2), np.ones(2 * N)
    draws = sample(*twice, prior)
    if change == "weights":
        other = sample(scores, codes, np.full(N, 2.0), prior)
    else:
        other = sample(*(a[np.arange(2 * N)[::-1]] for a in twice), prior)
    for a, b in zip(draws, other, strict=True):  # rounding errors grow along a chain
        for j in range(a.shape[2]):
            gap = a[..., j].mean() - b[..., j].mean()
            assert abs(gap) < 5 * np.hypot(error(a[..., j]), error(b[..., j]))


def test_rows_without_curvature():
    """Probabilities of 0 and 1 have none: a Newton step is as long as the weights are large."""
    codes = np.repeat([0, 1], 3)
    scores = np.full((2, 6, 2), -300.0)
    scores[:, np.arange(6), codes] = 0
    scores[:, 0] = scores[:, 0, ::-1]  # sure, and wrong
    draws = sample(complete(scores), codes, np.full(6, 10.0), LogLinear(0.5, False))
    share = 1 / (1 + np.exp(-300 * draws.exponents.sum(axis=2)))
    assert abs(share.mean() - 5 / 6) < 0.05


def test_scores_are_relative_and_bounded():
    values = comparable(np.array([[1e4, 0.0], [-np.inf, 5.0], [-np.inf, -np.inf]]))
    np.testing.assert_array_equal(values, [[0, -300], [-300, 0], [0, 0]])


def test_probabilities_below_the_smallest_number():
    """In logs: -1500 nats and less."""
    draws = Exponents(np.array([[[5.0], [6.0]]]), np.zeros((1, 2, 2)))
    log_p = draws.log_proba(complete(np.array([[[0.0, -300.0], [-1.0, 0.0]]])))
    np.testing.assert_allclose(log_p[0], [0.0, -1500 - np.log(2)], rtol=1e-12, atol=1e-12)
    expected = np.mean([1 / (1 + np.exp(5)), 1 / (1 + np.exp(6))])
    np.testing.assert_allclose(np.exp(log_p[1]), [expected, 1 - expected], rtol=1e-12)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="need rows"):
        sample(complete(np.zeros((1, 0, 2))), np.zeros(0, int), np.zeros(0), LogLinear(1.0, False))


def test_draws_without_a_row(problem):
    """Against draws anew for each row; of one row's error about half is that of the new draws."""
    scores, codes, weight = problem
    prior = LogLinear(1 / M)
    draws = sample(*problem, prior)
    again = partial(sample, prior=prior)
    without, k = draws.without_each_row(*problem, again)
    refits, mcse = without.copy(), np.zeros(N)
    for i in range(0, N, 12):
        others = np.arange(N) != i
        refit = sample(scores[others], codes[others], weight[others], prior, seed=i)
        refits[i] = refit.log_proba(scores[[i]])[0]
        joint = logits(*refit, scores[[i]])[:, :, 0]
        p = np.exp(joint - logsumexp(joint, axis=2, keepdims=True))[..., codes[i]]
        mcse[i] = error(p) / p.mean()
    at = np.arange(N), codes
    effect = (draws.log_proba(scores) - refits)[at]
    assert effect[::12].sum() > 0.05  # nats
    assert (np.abs((without - refits)[at]) <= 8 * mcse).all()  # of both: weights cost draws
    assert (k < 0.7).all()
    np.testing.assert_allclose(np.exp(without).sum(axis=1), 1)


def test_a_row_with_most_of_the_weight_is_left_out_by_new_draws(problem):
    """Draws from where that row alone decides are far from what the others say."""
    scores, codes, weight = problem
    weight = np.where(np.arange(N) == 7, 1e4, weight)
    prior, others = LogLinear(1 / M), np.arange(N) != 7
    draws = sample(scores, codes, weight, prior)
    again = partial(sample, prior=prior)
    log_p, _ = draws.without_each_row(scores, codes, weight, again)
    of_others = sample(scores[others], codes[others], weight[others], prior)
    refit = of_others.log_proba(scores[[7]])
    np.testing.assert_allclose(log_p[[7]], refit, rtol=1e-12)
    assert abs(draws.log_proba(scores[[7]]) - refit).max() > 0.1


def test_last_digits_of_scores_and_of_linear_algebra_do_not_matter(monkeypatch):
    """As of machines whose libraries add up in another order."""
    rng = np.random.default_rng(3)
    codes = rng.integers(3, size=150)
    scores = rng.normal(size=(4, 150, 3)) + 2 * np.eye(3)[codes]
    problem = codes, np.ones(150), LogLinear(1 / 4)
    draws = sample(complete(scores), *problem)
    slopes = exponents._Target.slopes

    def noisy(self, x):
        return slopes(self, x) * (1 + 1e-15 * rng.normal(size=x.shape))

    monkeypatch.setattr(exponents._Target, "slopes", noisy)
    again = sample(complete(scores + 1e-13 * rng.normal(size=scores.shape)), *problem)
    np.testing.assert_allclose(again.exponents, draws.exponents, atol=1e-12)


def test_many_rows_in_single_precision(problem, monkeypatch):
    prior = LogLinear(1 / M)
    exact = exponents._Target(*problem, prior)
    monkeypatch.setattr(exponents, "_MANY", 0)
    single = exponents._Target(*problem, prior)
    x = np.abs(np.random.default_rng(1).normal(size=(2, exact.size)))
    np.testing.assert_allclose(single.value(x), exact.value(x), atol=1e-3)
    np.testing.assert_allclose(single.slopes(x), exact.slopes(x), rtol=1e-4, atol=1e-3)


def test_the_order_of_classes_does_not_matter(problem):
    """As of labels with other names."""
    evidence, codes, weight = problem
    draws = sample(*problem, LogLinear(1 / M))
    order = np.array([2, 0, 3, 1])
    other = Evidence(
        evidence.scores[..., order], evidence.log_weights[:, order], evidence.known_share
    )
    again = sample(other, np.argsort(order)[codes], weight, LogLinear(1 / M))
    np.testing.assert_allclose(again.exponents, draws.exponents, rtol=1e-12)
    np.testing.assert_allclose(again.intercepts, draws.intercepts[..., order], rtol=1e-9)
