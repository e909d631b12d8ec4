"""Simulated rows have the density that is evaluated."""

import numpy as np
import pytest

from tests.laws.cases import EXACT, N_SIGMA, first


def test_simulated_rows_can_be_learnt_from(case):
    posterior, X, _, _ = case.fitted()
    rng, y = case.rng(13), np.array([2, 0, 0, 1, 2])
    draws = posterior.draw(rng, 5)
    for rows in (
        posterior.simulate(rng, first(draws), y),
        posterior.simulate(rng, draws, y),  # a theta of each row's own
        posterior.simulate_predictive(rng, y),
    ):
        assert rows.dtype == X.dtype
        assert rows.shape == (5, *X.shape[1:])
        posterior.update(case.stats(rows, y))
        assert np.isfinite(posterior.log_predictive(rows)).all()


def test_a_theta_for_each_row_is_used_for_that_row(case):
    """Rows simulated with theta k are likelier under theta k, on average."""
    case = case.sized(2, 4)
    S = 1500
    two = case.prior.draw(case.rng(14), 2)
    which, y = np.arange(S) % 2, (np.arange(S) // 2) % 2
    theta = {name: value[which] for name, value in two.items()}
    rows = case.prior.simulate(case.rng(15), theta, y)
    log_p = case.prior.log_likelihood(rows, two)[:, np.arange(S), y]
    with np.errstate(invalid="ignore"):
        gain = log_p[which, np.arange(S)] - log_p[1 - which, np.arange(S)]
    assert not np.isnan(gain).any()
    capped = np.clip(gain, -5, 5)
    for part in (which == 0, which == 1):
        assert capped[part].mean() > 0


@pytest.mark.parametrize("what", ["likelihood", "predictive"])
def test_rows_are_simulated_from_the_density_that_is_evaluated(case, what):
    """E_c sqrt(p_d/p_c) = E_d sqrt(p_c/p_d): the affinity of two classes, from either side."""
    case = case.sized(2, 2)
    posterior, _, _, _ = case.fitted(30)
    theta, rng, S = first(posterior.draw(case.rng(16), 1)), case.rng(17), 4000
    sides = []
    for c in range(2):
        y = np.full(S, c)
        if what == "likelihood":
            log_p = posterior.log_likelihood(posterior.simulate(rng, theta, y), theta)
        else:
            log_p = posterior.log_predictive(posterior.simulate_predictive(rng, y))
        sides.append(np.exp(0.5 * (log_p[:, 1 - c] - log_p[:, c])))
    mcse = np.hypot(*(s.std() / np.sqrt(S) for s in sides))
    assert abs(sides[0].mean() - sides[1].mean()) <= N_SIGMA * mcse + EXACT
