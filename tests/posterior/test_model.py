"""Class weights, against NumPy."""

from dataclasses import replace

import numpy as np

from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.sampled.logistic_regression import LogisticRegression
from bayesgen.posterior.model import ClassModel, log_weights_without


def test_weights_without_a_row():
    alpha, count = np.array([0.5, 2.0, 0.0]), np.array([3.0, 5.5, 1.0])
    codes, weight = np.array([0, 1, 2]), np.array([1.0, 2.5, 1.0])
    weights = np.exp(log_weights_without(alpha, count, codes, weight))
    for without, c, w in zip(weights, codes, weight, strict=True):
        left = alpha + count - w * (np.arange(3) == c)
        np.testing.assert_allclose(without, left / left.sum())
    one = log_weights_without(np.zeros(1), np.ones(1), np.zeros(1, int), np.ones(1))
    np.testing.assert_array_equal(one, [[0.0]])  # nothing else is possible


def test_classes_of_a_discriminative_model_are_equally_likely():
    alpha = np.array([1.0, 2.0, 5.0])
    generative = ClassModel(alpha, BetaBernoulli())
    np.testing.assert_allclose(generative.mean_weights(), alpha / 8)
    family = LogisticRegression.examples(3, 2)[0]
    np.testing.assert_allclose(replace(generative, family=family).mean_weights(), [1 / 3] * 3)
