"""A request is checked once, and a kind of interval is one entry of a table."""

from typing import get_args

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.predict import inversion
from bayesgen.predict.inversion import log_odds
from bayesgen.predict.request import KINDS, IntervalRequest, Kind, KindName
from tests.predict.interval.cases import FAMILIES, case
from tests.selection import rest_is_slow


def test_the_names_of_kinds_are_those_of_the_table():
    assert get_args(KindName) == tuple(KINDS)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prob": 0.0}, "prob must be between 0 and 1, got 0.0"),
        ({"prob": 1.0}, "prob must be between 0 and 1"),
        ({"prob": float("nan")}, "prob must be between 0 and 1"),
        ({"kind": "sd"}, "kind must be one of 'eti', 'hdi', got 'sd'"),
        ({"method": "nuts"}, "method must be one of 'auto', 'exact', 'draws'"),
        ({"given": "row"}, "given must be one of 'training', 'training and row', got 'row'"),
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


# ---------------------------------------------------------------------------------- a third kind


@pytest.fixture
def lower(monkeypatch):
    """From the least value up to the quantile: one entry of the table, and nothing else."""

    def nothing_below(quantile, n, prob, length):
        return np.zeros(n)

    monkeypatch.setitem(KINDS, "lower", Kind(nothing_below, symmetric=False))
    return {"prob": 0.9, "kind": "lower"}


# its upper end is that of the equal tails of this probability
TAILS = {"prob": 0.8, "kind": "eti"}


def assert_one_sided(found, tails, least=0.0, **tolerance):
    lower, upper = (np.take(found, k, axis=-1) for k in (0, 1))
    assert (lower == least).all()
    np.testing.assert_allclose(upper, np.take(tails, 1, axis=-1), **tolerance)


@pytest.mark.parametrize(
    "estimator",
    rest_is_slow(
        [(name, c) for name in ("GaussianNB", "LinearDiscriminant") for c in (2, 3)],
        [("GaussianNB", 2), ("LinearDiscriminant", 3)],
    ),
)
def test_a_third_kind_of_predict_interval(lower, estimator):
    name, n_classes = estimator
    rng = np.random.default_rng(0)
    y = np.arange(24) % n_classes
    X = rng.normal(size=(24, 2)) + y[:, None]
    clf = getattr(bg, name)().fit(X, y)
    for method in ("exact", "draws"):
        found = clf.predict_interval(X, method=method, **lower)
        tails = clf.predict_interval(X, method=method, **TAILS)
        drawn = set(found["route"].values) == {"draws"}
        if drawn:  # the least draw
            found["interval"][..., 0] = 0.0
        assert_one_sided(found["interval"].values, tails["interval"].values, rtol=1e-6)
        assert drawn == (method == "draws" or (name == "LinearDiscriminant" and n_classes == 3))


# ------------------------------------------------------------------------------------ of draws


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
    for k, own in enumerate(np.sort(draws, axis=1)):
        # of the smaller of the two probabilities, which has its digits
        small = np.exp(-np.logaddexp(0.0, own if centre > 0 else -own))
        order = np.argsort(small)
        i, j = sorted(order[list(shortest_by_hand(small[order], 0.8))])
        assert (low[k], high[k]) == (own[i], own[j])


def test_equal_tails_of_draws_are_numpys_percentiles():
    draws = np.random.default_rng(4).gamma(0.5, size=(3, 5, 200))
    lower, upper = IntervalRequest(0.9).ends_of_draws(draws)
    np.testing.assert_allclose(lower, np.percentile(draws, 5, axis=-1), rtol=1e-12)
    np.testing.assert_allclose(upper, np.percentile(draws, 95, axis=-1), rtol=1e-12)


# ------------------------------------------------------------------------- calls that are shared


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("call", "cells"), [(0, 1 << 19), (1 << 40, 1 << 19), (64, 8)])
def test_values_do_not_depend_on_which_rows_and_points_share_a_call(monkeypatch, name, call, cells):
    monkeypatch.setattr(inversion, "_CALL", call)
    monkeypatch.setattr(inversion, "_CELLS", cells)
    model, X = case(name, 3, 4, new=9)
    contrast = log_odds(model, X, 0, 1, tilts=[1])
    parts = [
        (np.array([4, 0, 7]), np.array([0.3, 0.9])),
        (np.array([8]), np.array([0.9, 2.0, 5.0])),
        (np.array([1, 2, 3, 5, 6]), np.array([1e-3])),
    ]
    start = contrast.weights(np.array([0.0, 1.0])) + model.family.cgf(X, np.array([0.0, 1.0]))
    for (rows, points), values in zip(parts, contrast.on_axis(parts), strict=True):
        for i, row in enumerate(rows):
            for k, s in enumerate(points):
                t = np.array([1j * s, 1 - 1j * s])
                one = contrast.weights(t) + model.family.cgf(X[[row]], t)[0] - start[row]
                np.testing.assert_allclose(values[i, k], one, rtol=1e-9, atol=1e-11)
