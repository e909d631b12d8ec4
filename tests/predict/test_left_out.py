"""Tail probabilities and conformal limits against loops over rows."""

import numpy as np
import pytest

from bayesgen.predict.left_out import LeftOut, log_odds, lower_limit, tail_probability


def test_tail_probability_counts_ties_and_weights():
    reference = np.array([0.0, 1.0, 1.0, 3.0])
    weight = np.array([2.0, 1.0, 0.5, 4.0])
    tails = tail_probability(np.array([-1.0, 0.0, 1.0, 2.0, 3.0, np.nan]), reference, weight)
    for score, p in zip([-1.0, 0.0, 1.0, 2.0, 3.0], tails, strict=False):
        heavier = sum(w for s, w in zip(reference, weight, strict=True) if s <= score)
        assert p == pytest.approx((1 + heavier) / (1 + 7.5))
    assert np.isnan(tails[-1])


def test_an_integer_weight_is_so_many_rows():
    rng = np.random.default_rng(0)
    reference, score = rng.normal(size=40), rng.normal(size=15)
    times = rng.integers(1, 4, size=40)
    many = np.repeat(reference, times)
    np.testing.assert_allclose(
        tail_probability(score, reference, times), tail_probability(score, many, np.ones(len(many)))
    )
    for coverage in (0.1, 0.5, 0.9):
        assert lower_limit(reference, times, coverage) == lower_limit(
            many, np.ones(len(many)), coverage
        )


@pytest.mark.parametrize("n", [1, 3, 9, 10, 99, 250])
@pytest.mark.parametrize("coverage", [0.1, 0.7, 0.9, 0.99])
def test_the_limit_is_an_order_statistic(n, coverage):
    score = np.random.default_rng(n).normal(size=n)
    k = int(np.ceil(round((n + 1) * coverage, 9)))
    want = np.sort(score)[::-1][k - 1] if k <= n else -np.inf
    assert lower_limit(score, np.ones(n), coverage) == want


def test_infinite_scores_have_ranks():
    reference = np.array([-np.inf, 0.0, 1.0])
    tails = tail_probability(np.array([-np.inf, 0.5]), reference, np.ones(3))
    np.testing.assert_allclose(tails, [0.5, 0.75])


def test_a_class_without_rows():
    scores = LeftOut(*map(np.array, ([0, 0], [1.0, 1.0], [-1.0, -2.0], [[0.0, 1.0]], [[0.0, 1.0]])))
    tails = scores.typical_of_class(np.full((1, 2, 2), -5.0))
    np.testing.assert_allclose(tails, [[1 / 3, 1], [1 / 3, 1]])
    limits = scores.least_log_odds(0.5, 2, by_class=True)
    np.testing.assert_array_equal(limits, [-2.0, -np.inf])
    np.testing.assert_array_equal(scores.least_log_odds(0.5, 2, by_class=False), [-2, -2])


def test_log_odds():
    p = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        want = np.log(p) - np.log1p(-p)
        joint = np.log(p) + np.array([[3.0], [-2.0]])
    np.testing.assert_allclose(log_odds(joint), want)
    sure = log_odds(np.array([[0.0, -50.0, -60.0], [0.0, -51.0, -60.0]]))[:, 0]
    assert sure[1] > sure[0] + 0.9
    np.testing.assert_array_equal(log_odds(np.array([[1.5]])), [[np.inf]])
    assert np.isnan(log_odds(np.full((2, 2), -np.inf))).all()
