"""A posterior that is known by draws: what is valid."""

import numpy as np
import pytest

from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.model import ClassModel

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
