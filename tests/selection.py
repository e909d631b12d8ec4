"""Which values of a parameter the fast tests take."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator


def rest_is_slow(values: Iterable[Any], fast: Collection[Any]) -> list[Any]:
    """All values; those that are not in `fast` are left to the slow tests."""
    values = list(values)
    assert all(v in values for v in fast), f"no such value: {[v for v in fast if v not in values]}"
    return [v if v in fast else pytest.param(v, marks=pytest.mark.slow) for v in values]


def crossed(first: Iterable[Any], second: Collection[Any], fast: int = 1) -> list[Any]:
    """All pairs; fast are so many of each value of `first`, and each of `second` in its turn."""
    second = list(second)
    slow = pytest.mark.slow
    return [
        pytest.param(a, b, marks=() if (k - i) % len(second) < fast else slow)
        for i, a in enumerate(first)
        for k, b in enumerate(second)
    ]


_OF_A_FIT = (
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_dict_unchanged",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimators_dtypes",
    "check_estimators_empty_data_messages",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_subset_invariance",
    "check_n_features_in",
)


def checks_of_a_fit(estimators: Iterable[Any]) -> list[Any]:
    """Pairs of an estimator and a check of scikit-learn that sees what a fit is or refuses."""
    return [
        pytest.param(estimator, check, id=f"{type(estimator).__name__}-{check.func.__name__}")
        for estimator in estimators
        for _, check in estimator_checks_generator(estimator)
        if check.func.__name__ in _OF_A_FIT
    ]
