"""The evidence is the product of predictives, and likelihood times prior over posterior."""

import numpy as np

from tests.laws.cases import EXACT, close, has_density, only, with_missing


def test_evidence_is_the_product_of_one_step_predictives_in_any_order(case, missing):
    X, y = case.rows(14)
    if missing:
        X = with_missing(X, case.rng())
    evidence = case.prior.log_evidence(case.stats(X, y))
    for order in (range(14), case.rng().permutation(14)):
        total, family = 0.0, case.prior
        for i in order:
            row = slice(i, i + 1)
            total += family.log_predictive(X[row])[0, y[i]]
            family = family.update(case.stats(X[row], y[row]))
        close(total, evidence)


@only(has_density)
def test_evidence_is_likelihood_times_prior_over_posterior_at_any_theta(case, missing):
    """Candidate's formula: log_evidence, log_likelihood, update and log_density as one."""
    X, y = case.rows(20)
    if missing:
        X = with_missing(X, case.rng())
    weight = case.rng().gamma(1.0, size=20)  # holds for a power likelihood as well
    stats = case.stats(X, y, weight)
    posterior = case.prior.update(stats)
    evidence = case.prior.log_evidence(stats)
    # draws of the posterior, and of one that has seen a hundredth of the data: near and far
    for some in (posterior, case.prior.update(case.stats(X, y, weight / 100))):
        theta = some.draw(case.rng(21), 4)
        likelihood = posterior.log_likelihood(X, theta)[:, np.arange(20), y] @ weight
        candidate = likelihood + case.prior.log_density(theta) - posterior.log_density(theta)
        # terms as large as the likelihood cancel
        size = np.max(np.abs(likelihood)) / (1 + np.abs(evidence))
        close(candidate, np.full(4, evidence), EXACT * (1 + size))
