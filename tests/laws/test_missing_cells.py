"""Missing cells are integrated over, or refused with the reason."""

from functools import partial

import numpy as np
import pytest

from tests.laws.cases import (
    close,
    first,
    fits_missing,
    has_table,
    likelihood_over_predictive_is_one,
    only,
    same_stats,
    takes_missing,
    with_missing,
    within_mcse,
)


@only(takes_missing)
def test_a_row_without_observed_cells_says_nothing(case):
    posterior, X, y, stats = case.fitted()
    X = with_missing(X, case.rng())[:1]
    assert np.isnan(X).all()
    close(posterior.log_predictive(X), np.zeros((1, case.n_classes)), 1e-13)
    theta = posterior.draw(case.rng(), 3)
    close(posterior.log_likelihood(X, theta), np.zeros((3, 1, case.n_classes)), 1e-13)
    if fits_missing(case):
        assert case.prior.log_evidence(case.stats(X, y[:1])) == 0.0
        same_stats(case, stats.merge(case.stats(X, y[:1])), stats, tol=1e-14)


@only(takes_missing, fits_missing)
def test_draws_leave_out_the_same_cells_as_the_predictive(case):
    case = case.sized(2, 3)
    posterior, _, _, _ = case.fitted(40)
    X = with_missing(case.rows(6, salt=5)[0], case.rng())
    likelihood_over_predictive_is_one(case, posterior, X, 2000)


@only(takes_missing)
@pytest.mark.parametrize("what", ["likelihood", "predictive"])
def test_leaving_a_cell_out_integrates_over_it(case, what):
    """E over x_j ~ p(x_j) of p(x_rest, x_j)/p(x_j) is p(x_rest), whatever the family."""
    case = case.sized(2, 3)
    posterior, _, _, _ = case.fitted(40)
    theta, rng = first(posterior.draw(case.rng(), 1)), case.rng(11)
    S, j = 4000, 1
    for c in range(2):
        y = np.full(S, c)
        if what == "likelihood":
            cells = posterior.simulate(rng, theta, y)[:, j]
            density = partial(posterior.log_likelihood, theta=theta)
        else:
            cells = posterior.simulate_predictive(rng, y)[:, j]
            density = posterior.log_predictive
        alone = np.full((S, 3), np.nan)
        alone[:, j] = cells
        base = density(alone)[:, c]
        for row in np.array(case.rows(3, salt=6)[0], dtype=np.float64):
            mixed = np.tile(row, (S, 1))
            mixed[:, j] = cells
            row = row.copy()
            row[j] = np.nan
            without = density(row[None])[0, c]
            ratio = np.exp(density(mixed)[:, c] - base - without)
            within_mcse(ratio, 1.0, "integral over the cell")


@only(has_table)
def test_missing_cells_are_refused_with_the_reason(case):
    X, y = case.rows(6)
    X = with_missing(X, case.rng())
    if case.family.missing == "marginalised":
        if not fits_missing(case):
            with pytest.raises(ValueError, match=r"(?i)nan|missing"):
                case.stats(X, y)
        return
    posterior = case.fitted()[0]
    theta = posterior.draw(case.rng(), 2)
    for call in (
        lambda: case.stats(X, y),
        lambda: posterior.log_predictive(X),
        lambda: posterior.log_likelihood(X, theta),
    ):
        with pytest.raises(ValueError, match=r"(?i)nan|missing") as error:
            call()
        assert case.family.missing in str(error.value)
