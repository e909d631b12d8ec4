"""Draws of the log joint densities of rows, which all intervals and uncertainties are made of."""

import numpy as np
import pytest
from scipy import stats

from bayesgen.families.capabilities import DensityDraws
from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.posterior import exact
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.interface import DrawRequest
from bayesgen.posterior.model import ClassModel
from tests.laws.cases import is_table, only, takes_missing, with_missing

N_DRAWS = 2000
UNLIKELY = 1e-6  # p-value of two samples of one distribution


def posterior(case, missing=False):
    family, *_ = case.fitted(30)
    model = ClassModel(np.arange(2.0, 2 + case.n_classes), family)
    X, _ = case.rows(4, salt=6)
    if missing:
        X = with_missing(X, case.rng(32))
    return ExactPosterior(model, model, None), X


def joint(own, X, class_prior=None):
    """(S, N, C) of all blocks."""
    drawn = own.log_joint_draws(X, DrawRequest(N_DRAWS, 7, class_prior))
    return np.concatenate([block[0] for _, block in drawn.blocks], axis=1)


def odds(log_joint):
    return log_joint[..., 1:] - log_joint[..., :1]


def of_theta(case, own, X):
    """Log odds under other draws of theta, by the likelihood itself."""
    theta = own.model.draw(case.rng(31), N_DRAWS)
    pi = theta.pop(CLASS_WEIGHTS)
    return odds(np.log(pi)[:, None] + own.model.family.log_likelihood(X, theta))


def assert_same_margins(some, others):
    for i in range(some.shape[1]):
        for c in range(some.shape[2]):
            assert stats.ks_2samp(some[:, i, c], others[:, i, c]).pvalue > UNLIKELY


def test_draws_are_those_of_theta(case):
    fit, X = posterior(case.sized(2 if case.index else 3, 3))
    assert_same_margins(odds(joint(fit, X)), of_theta(case, fit, X))


@only(takes_missing)
def test_missing_cells_are_left_out(case):
    fit, X = posterior(case.sized(2, 3), missing=True)
    assert is_table(X)
    assert_same_margins(odds(joint(fit, X)), of_theta(case, fit, X))


def test_rows_drawn_without_theta_have_the_same_margins(case, monkeypatch):
    case = case.sized(2, 3)
    fit, X = posterior(case)
    if fit.model.family.capability(DensityDraws) is None:
        pytest.skip("draws theta alone")
    monkeypatch.setattr(exact, "KEPT", 0)
    assert not fit.log_joint_draws(X, DrawRequest(N_DRAWS, 7)).joint
    assert_same_margins(odds(joint(fit, X)), of_theta(case, fit, X))


@pytest.mark.parametrize("kept", [1 << 28, 0])
def test_a_row_has_the_same_draws_alone_and_among_others(case, kept, monkeypatch):
    case = case.sized(3, 3)
    fit, X = posterior(case)
    if kept == 0 and fit.model.family.capability(DensityDraws) is None:
        pytest.skip("draws theta alone")
    monkeypatch.setattr(exact, "KEPT", kept)
    together = odds(joint(fit, X))
    alone = np.concatenate([odds(joint(fit, X[i : i + 1])) for i in range(4)], axis=1)
    np.testing.assert_allclose(alone, together, rtol=1e-9, atol=1e-9)


def test_draws_of_theta_in_parts_are_the_same_for_every_block_of_rows(case, monkeypatch):
    case = case.sized(2, 3)
    fit, X = posterior(case)
    size = 8 * fit.model.family.n_parameters()
    if fit.model.family.capability(DensityDraws) is not None:
        pytest.skip("draws rows where theta is large")
    monkeypatch.setattr(exact, "KEPT", 300 * size)
    monkeypatch.setattr(exact, "BLOCK", 1)
    drawn = odds(joint(fit, X))
    assert len(np.unique(drawn[:, 0, 0])) > N_DRAWS / 2
    again = odds(joint(fit, X[2:3]))
    np.testing.assert_allclose(again, drawn[:, 2:3], rtol=1e-9, atol=1e-9)


def test_class_weights_that_replace_the_fitted_ones(case):
    case = case.sized(2, 2)
    fit, X = posterior(case)
    log_x = fit.model.family.log_likelihood(X, fit.model.family.draw(case.rng(31), N_DRAWS))
    prior = np.array([0.2, 0.8])
    assert_same_margins(odds(joint(fit, X, prior)), odds(log_x + np.log(prior)))
