"""A change of structure changes no number: see `tests.recorded.numbers`."""

import pytest

from tests.recorded import numbers
from tests.selection import rest_is_slow

NAMES = [name for name, *_ in numbers.subjects()]
FAST = ("BernoulliNB", "CategoricalNB", "MixedNB", "QuadraticDiscriminant", "MarkovNB 2")
FAST += ("TreeAugmentedNB", "GaussianNB", "BayesianLogisticRegression")


@pytest.mark.parametrize("name", rest_is_slow(NAMES, FAST))
def test_every_public_method_returns_the_recorded_numbers(name):
    assert not numbers.differences(name)
