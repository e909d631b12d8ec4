"""Class weights, and a posterior that is known by draws: what is valid."""

from dataclasses import replace

import numpy as np
import pytest

from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.sampled.logistic_regression import LogisticRegression
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.model import ClassModel, log_weights_without

X, CODES = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]), np.array([0, 1, 1])


def drawn(exact_weights=True, **changed):
    prior = ClassModel(np.ones(2), BetaBernoulli(1.0, 1.0))
    stats = prior.stats(X, CODES, 2)
    prior = prior.resolve(stats)
    model = prior.update(stats)
    theta = model.draw(np.random.default_rng(0), 12)
    theta = {k: v.reshape(3, 4, *v.shape[1:]) for k, v in theta.items()}
    return DrawnPosterior(prior, model, stats, theta | changed, exact_weights=exact_weights)


def test_valid_draws_pass_and_others_are_refused():
    posterior = drawn()
    posterior.refuse_invalid()
    pi, theta = posterior.theta["pi"], posterior.theta["theta"]
    for wrong in (0.9 * pi, np.stack([1 + pi[..., 0], -pi[..., 0]], axis=-1)):
        with pytest.raises(ValueError, match="'pi' of the posterior are no probabilities"):
            drawn(pi=wrong).refuse_invalid()
    theta = theta.copy()
    theta[1, 2, 0, 1] = np.nan
    with pytest.raises(ValueError, match="the draws are no parameters of this family"):
        drawn(theta=theta).refuse_invalid()


def test_class_weights_are_means_of_all_draws():
    posterior = drawn(exact_weights=False)
    expected = np.reshape(posterior.theta["pi"], (12, 2)).mean(axis=0)
    np.testing.assert_allclose(posterior.class_weights("posterior_mean"), expected)


@pytest.mark.parametrize("method", ["map", "mle"])
def test_draws_tell_no_maximum(method):
    with pytest.raises(ValueError, match=f"method='{method}' is undefined: .* known by draws"):
        drawn().log_joint(X, method)


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
