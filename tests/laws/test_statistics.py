"""Statistics are a monoid: merged, removed, weighted and split in any way, they say the same."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.cases import close, examples, same_posterior, same_stats, stack


def test_examples_are_resolved_and_differ(case):
    priors = examples(case.family, 3, 4)
    X, y = case.rows(8)
    again = case.prior.resolve(case.stats(X, y))
    same_posterior(again, case.prior, X, case.stats(X, y), tol=1e-14)
    for one, other in pairwise(priors):
        assert one.settings() != other.settings() or any(
            value.shape != other.arrays()[name][1].shape
            or not np.array_equal(value, other.arrays()[name][1])
            for name, (_, value) in one.arrays().items()
        )


def test_an_empty_block_of_rows_is_neutral(case):
    X, y = case.rows(10)
    stats, empty = case.stats(X, y), case.stats(X[:0], y[:0])
    same_stats(case, stats.merge(empty), stats, tol=1e-14)
    same_stats(case, empty.merge(stats), stats, tol=1e-14)
    same_stats(case, stats.remove(empty), stats, tol=1e-14)
    assert case.prior.log_evidence(empty) == 0.0
    posterior = case.prior.update(empty)
    same_posterior(posterior, case.prior, X, stats, tol=1e-14)
    assert posterior.log_predictive(X[:0]).shape == (0, case.n_classes)
    theta = posterior.draw(case.rng(), 2)
    assert posterior.log_likelihood(X[:0], theta).shape == (2, 0, case.n_classes)
    assert len(posterior.simulate_predictive(case.rng(), y[:0])) == 0


def test_a_family_renames_its_classes_in_its_statistics(case):
    X, y = case.rows(20)
    codes = np.array([4, 0, 2])
    wide = case.sized(5, case.n_features)
    theirs = case.stats(X, y).reindex_classes(codes, 5)
    same_stats(wide, theirs, wide.stats(X, codes[y]))
    same_stats(wide, theirs.merge(wide.stats(X, y)), wide.stats(stack([X, X]), np.r_[codes[y], y]))


@pytest.mark.filterwarnings("ignore:remove")  # one row of weight 2 is left: it has no scatter
def test_remove_undoes_merge_in_any_order(case):
    X, y = case.rows(20)
    weights = (1e3 if case.index else 0.01) * case.rng().gamma(2.0, size=20)
    kept, a, b = (
        case.stats(X[s], y[s], weights[s]) for s in (slice(0, 9), slice(9, 12), slice(12, 20))
    )
    whole = kept.merge(a).merge(b)
    same_stats(case, whole.remove(b).remove(a), kept)
    same_stats(case, whole.remove(a).remove(b), kept)
    same_stats(case, whole.remove(a.merge(b)), kept)
    same_stats(case, whole.remove(kept).remove(b), a)
    nothing = whole.remove(a.merge(b)).remove(kept)
    same_posterior(case.prior.update(nothing), case.prior, X, whole)
    for name, (_, value) in whole.remove(b).remove(kept).arrays().items():
        if not name.endswith(("mean", "shift", "scatter", "grams")):
            assert np.all(value >= 0), f"{name}: rounding must not leave a negative weight"


def test_removing_rows_that_were_never_there_is_refused(case):
    X, y = case.rows(12)
    few = case.stats(X[:3], y[:3])
    with pytest.raises(ValueError, match="remove"):
        few.remove(case.stats(X, y))
    with pytest.raises(ValueError, match="remove"):
        case.stats(X[:0], y[:0]).remove(few)
    zeros = np.zeros_like(y)
    with pytest.raises(ValueError, match="remove"):
        case.stats(X, zeros).remove(case.stats(X[:6], zeros[:6] + 1))


def test_integer_weights_are_repeated_rows_and_zero_is_absence(case):
    X, y = case.rows(16)
    weight = case.rng().integers(4, size=16)
    assert (weight == 0).any()
    weighted = case.stats(X, y, weight.astype(np.float64))
    index = np.repeat(np.arange(16), weight)
    same_stats(case, weighted, case.stats(X[index], y[index]))
    nobody = case.stats(X, y, np.zeros(16))
    assert case.prior.log_evidence(nobody) == 0.0
    same_stats(case, nobody, case.stats(X[:0], y[:0]), tol=1e-14)


anything = settings(max_examples=4, deadline=None, derandomize=True, database=None)


@pytest.mark.filterwarnings("ignore:remove")
@anything
@given(
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(0, 20),
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, "integer", "real"]),
)
def test_any_split_of_any_rows_at_any_size(case, n_classes, n_features, n, seed, weights):
    case = case.sized(n_classes, n_features)
    rng = np.random.default_rng(seed)
    X, y = case.rows(n, salt=seed % 1000)
    weight = {
        None: None,
        "integer": rng.integers(3, size=n).astype(float),
        "real": rng.gamma(0.5, size=n),
    }[weights]
    part = rng.integers(3, size=n)
    parts = [
        case.stats(X[part == k], y[part == k], None if weight is None else weight[part == k])
        for k in range(3)
    ]
    whole = case.stats(X, y, weight)
    same_stats(case, parts[2].merge(parts[0]).merge(parts[1]), whole, 1e-8)
    same_stats(case, whole.remove(parts[1]), parts[0].merge(parts[2]), 1e-7)
    family, total = case.prior, 0.0
    for stats in parts:
        total += family.log_evidence(stats)
        family = family.update(stats)
    close(total, case.prior.log_evidence(whole), 1e-8)
    posterior = case.prior.update(whole)
    expected = posterior.log_predictive(X)
    assert expected.shape == (n, n_classes)
