"""Simulation-based calibration: theta has any rank among draws of its posterior.

Theta is drawn from the prior, rows from theta, and draws from the posterior of the rows. Theta and
the draws are then draws of one distribution, so every rank is equally probable: of each parameter,
and of the log likelihood of the rows, which alone sees a prior that is returned as the posterior.

Sources: Talts et al. (2018), Validating Bayesian inference algorithms with simulation-based
calibration; Modrák et al. (2023), for the log likelihood.
"""

import numpy as np

from bayesgen.checks.comparison import compare, drawn, failed, sentence, table
from tests.laws.cases import only

_REPLICATES, _ROWS, _DRAWS = 160, 10, 15
_FALSE_ALARM = 1e-4  # of a case; fixed seeds


def ranks(case):
    """Names of quantities, and (replicate, quantity) ranks of theta, ties broken by chance."""
    prior, rng = case.prior, case.rng(30)
    true = prior.draw(rng, _REPLICATES)
    rank = []
    for r in range(_REPLICATES):
        theta = {name: value[r] for name, value in true.items()}
        y = rng.integers(case.n_classes, size=_ROWS)
        X = prior.simulate(rng, theta, y)
        draws = prior.update(case.stats(X, y)).draw(rng, _DRAWS)
        every = {k: np.concatenate([theta[k][None], draws[k]]) for k in theta}
        every["log p"] = prior.log_likelihood(X, every)[:, np.arange(_ROWS), y].sum(axis=1)
        values = {name: value.reshape(_DRAWS + 1, -1) for name, value in every.items()}
        names = [f"{name}[{k}]" for name, value in values.items() for k in range(value.shape[1])]
        stacked = np.concatenate([*values.values()], axis=1)
        below, ties = ((f(stacked[1:], stacked[0])).sum(axis=0) for f in (np.less, np.equal))
        rank.append(below + rng.integers(0, ties + 1))
    return names, np.array(rank)


def has_cells_of_its_own(case):
    """Whether theta has the same cells whatever the rows are: not contexts that rows make."""
    case = case.sized(2, 2)
    sizes = [theta.draw(case.rng(), 1) for theta in (case.prior, case.fitted(1)[0])]
    return all(sizes[0][name].shape == value.shape for name, value in sizes[1].items())


@only(has_cells_of_its_own)
def test_theta_has_any_rank_among_the_draws_of_its_posterior(case):
    names, rank = ranks(case.sized(2, 2))
    uniform = np.tile(np.arange(_DRAWS + 1), 200)[:, None] * np.ones(len(names))
    scores = compare(rank[None], uniform)
    lines = drawn("calibration", "rank", names, scores, "replicates", "uniform ranks")
    bad = failed(table([lines], _FALSE_ALARM))
    assert bad.empty, [sentence(line) for line in bad.itertuples()]
