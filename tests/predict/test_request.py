"""A request is checked once; its ends from draws."""

import numpy as np
import pytest

from bayesgen.predict.draws import IntervalRequest


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prob": 0.0}, "prob must be between 0 and 1, got 0.0"),
        ({"prob": 1.0}, "prob must be between 0 and 1"),
        ({"prob": float("nan")}, "prob must be between 0 and 1"),
        ({"kind": "sd"}, "kind must be one of 'eti', 'hdi', got 'sd'"),
    ],
)
def test_what_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        IntervalRequest(**{"prob": 0.9, **wrong})


def test_arviz_is_asked_for_what_the_user_leaves_open():
    import arviz_base

    with arviz_base.rc_context({"stats.ci_prob": 0.7, "stats.ci_kind": "hdi"}):
        assert IntervalRequest.of() == IntervalRequest(0.7, "hdi")
        assert IntervalRequest.of(0.5, "eti") == IntervalRequest(0.5, "eti")


def shortest_by_hand(values, prob):
    """Ends of the shortest interval of sorted values that holds more than the probability."""
    inside = int(np.floor(prob * len(values)))
    first = int(np.argmin(values[inside:] - values[:-inside]))
    return first, first + inside


@pytest.mark.parametrize("centre", [-50.0, -3.0, 0.0, 3.0, 50.0])
def test_shortest_interval_of_a_probability_from_draws_of_its_log_odds(centre):
    rng = np.random.default_rng(3)
    draws = centre + 1.5 * rng.standard_normal((2, 400))
    low, high = IntervalRequest(0.8, "hdi").ends_of_log_odds(draws)
    for k, row in enumerate(np.sort(draws, axis=1)):
        # of the smaller of the two probabilities, which has its digits
        small = np.exp(-np.logaddexp(0.0, row if centre > 0 else -row))
        order = np.argsort(small)
        i, j = sorted(order[list(shortest_by_hand(small[order], 0.8))])
        assert (low[k], high[k]) == (row[i], row[j])


def test_shortest_interval_is_that_of_arviz():
    from arviz_stats.base import array_stats

    draws = np.random.default_rng(4).gamma(0.5, size=(3, 200))
    lower, upper = IntervalRequest(0.9, "hdi").ends_of_draws(draws)
    np.testing.assert_allclose(np.stack([lower, upper], -1), array_stats.hdi(draws, 0.9, axis=-1))


def test_equal_tails_of_draws_are_numpys_percentiles():
    draws = np.random.default_rng(4).gamma(0.5, size=(3, 5, 200))
    lower, upper = IntervalRequest(0.9).ends_of_draws(draws)
    for tail, end in ((5, lower), (95, upper)):
        expected = np.percentile(draws, tail, axis=-1)
        np.testing.assert_allclose(end, expected, rtol=1e-12)
