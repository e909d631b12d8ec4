"""Simulation-based calibration: theta has any rank among draws of its posterior.

Theta is drawn from the prior, rows from theta, and draws from the posterior of the rows. Theta and
the draws are then draws of one distribution, so every rank is equally probable: of each parameter,
and of the log likelihood of the rows, which alone sees a prior that is returned as the posterior.

Sources: Talts et al. (2018), Validating Bayesian inference algorithms with simulation-based
calibration; Modrák et al. (2023), for the log likelihood.
"""

import numpy as np
from scipy import stats

from tests.laws.cases import only

_REPLICATES, _ROWS, _DRAWS, _BINS = 160, 10, 15, 8
_LEAST = 1e-6  # p-value; fixed seeds, about 1e3 quantities in all


def ranks(case):
    """(replicate, quantity) ranks of theta among the draws, ties broken by chance."""
    prior, rng = case.prior, case.rng(30)
    true = prior.draw(rng, _REPLICATES)
    found = []
    for r in range(_REPLICATES):
        theta = {name: value[r] for name, value in true.items()}
        y = rng.integers(case.n_classes, size=_ROWS)
        X = prior.simulate(rng, theta, y)
        draws = prior.update(case.stats(X, y)).draw(rng, _DRAWS)
        every = {k: np.concatenate([theta[k][None], draws[k]]) for k in theta}
        log_p = prior.log_likelihood(X, every)[:, np.arange(_ROWS), y].sum(axis=1)
        values = [value.reshape(_DRAWS + 1, -1) for value in (*every.values(), log_p)]
        values = np.concatenate(values, axis=1)
        below, ties = ((f(values[1:], values[0])).sum(axis=0) for f in (np.less, np.equal))
        found.append(below + rng.integers(0, ties + 1))
    return np.array(found)


def has_cells_of_its_own(case):
    """Whether theta has the same cells whatever the rows are: not contexts that rows make."""
    case = case.sized(2, 2)
    sizes = [theta.draw(case.rng(), 1) for theta in (case.prior, case.fitted(1)[0])]
    return all(sizes[0][name].shape == value.shape for name, value in sizes[1].items())


@only(has_cells_of_its_own)
def test_theta_has_any_rank_among_the_draws_of_its_posterior(case):
    rank = ranks(case.sized(2, 2))
    per_bin = (_DRAWS + 1) // _BINS
    counts = np.array([np.bincount(column // per_bin, minlength=_BINS) for column in rank.T])
    p = stats.chisquare(counts, axis=1).pvalue
    assert p.min() > _LEAST, np.flatnonzero(p <= _LEAST)
