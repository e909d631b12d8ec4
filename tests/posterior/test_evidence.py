"""log_evidence_ against estimates that know no closed form: sequential Monte Carlo and a bridge.

PyMC samples the model of the statistics and reports its marginal likelihood; the particles then
serve as posterior sample of a bridge from a multivariate t. Each chain is an estimate of its own:
the tolerance is the standard error of their mean times a quantile of t, and must itself be small.
"""

import logging
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

import bayesgen as bg
from bayesgen.datatree.tree import as_in_numpy
from tests.graphs import PYTHON

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings at import of PyMC and PyTensor are not ours
    import pymc as pm
    import pytensor
    import pytensor.tensor as pt
    from pymc.smc.kernels import IMH
    from pytensor.graph.replace import vectorize_graph
    from pytensor.graph.rewriting.basic import dfs_rewriter
    from pytensor.graph.rewriting.utils import rewrite_graph
    from pytensor.tensor.rewriting.ofg import inline_symbolic_for_fusion

CHAINS, PARTICLES = 10, 150
ODDS = 0.9995  # each comparison fails by chance once in 1000 seeds
RNG = np.random.default_rng(0)
Y = np.array(list("ababab"))


@dataclass
class Case:
    """A classifier of a few parameters and rows, not far from its prior."""

    name: str
    clf: Any
    X: Any

    @cached_property
    def fitted(self) -> Any:
        return self.clf.fit(self.X, Y)

    @cached_property
    def model(self) -> Any:
        return self.fitted.to_pymc(likelihood="statistics")


REALS = RNG.normal(size=(6, 2)) @ [[1.0, 0.5], [0.0, 0.8]] + (np.arange(6) % 2)[:, None]
COUNTS = RNG.poisson([2.0, 1.0], (6, 2)).astype(float)
WORDS = np.array([list("uvwuvu"), list("pqrppq")]).T
TEXTS = ["xyx", "xx", "yxy", "yyy", "xyy", "yx"]
TABLE = pd.DataFrame({"real": REALS[:, 0], "bit": COUNTS[:, 1] > 0})
CASES = [
    Case("BernoulliNB", bg.BernoulliNB(2.0, 1.5), (COUNTS > 1).astype(float)),
    Case("CategoricalNB", bg.CategoricalNB(), WORDS),
    Case("MultinomialNB", bg.MultinomialNB(0.8), COUNTS),
    Case("PoissonNB", bg.PoissonNB(3.0), COUNTS),
    Case("GaussianNB", bg.GaussianNB(0.0, 1.0, 6.0, 1.0), REALS),
    Case("LinearDiscriminant", bg.LinearDiscriminant(0.0, 2.0, 8.0, 6.0), REALS),
    Case("QuadraticDiscriminant", bg.QuadraticDiscriminant(0.0, 2.0, 8.0, 6.0), REALS),
    Case("MarkovNB", bg.MarkovNB(order=2), TEXTS),
    Case("MixedNB", bg.MixedNB(mu0=0.0, kappa0=1.0, nu0=6.0, sigma2_0=1.0), TABLE),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(autouse=True)
def _third_parties() -> Iterator[None]:
    """Deprecations inside PyTensor and PyMC are for them to mend."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings(), pytensor.config.change_flags(mode="FAST_COMPILE"):
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        yield
    logger.setLevel(level)


@every_case
def test_statistics_leave_out_no_constant(case: Case) -> None:
    """The potentials are the likelihood of the rows, coefficients and powers of 2 pi included.

    Hence PyMC's marginal likelihood and ours are to be equal, not equal up to a constant.
    """
    clf, model = case.fitted, case.model
    theta_of = model.compile_fn(model.unobserved_value_vars, mode=PYTHON, inputs=model.value_vars)
    log_p = model.compile_fn(model.datalogp, mode=PYTHON, inputs=model.value_vars)
    encoded, codes = clf.fitted_.read(case.X).encoded, clf.fitted_.codes_of(Y)
    for seed in range(3):
        point = model.initial_point(seed)
        point = {k: v + np.random.default_rng(seed).normal(size=v.shape) for k, v in point.items()}
        names = [v.name for v in model.unobserved_value_vars]
        theta = dict(zip(names, theta_of(point), strict=True))
        for name in set(theta) & set(clf.model_.params):  # listed by cell in the model
            theta |= as_in_numpy({name: theta[name]}, clf.model_.params, clf.fitted_.coords)
        rows = clf.model_.family.log_likelihood(encoded, theta)[np.arange(6), codes]
        ours = rows.sum() + np.log(theta["pi"])[codes].sum()
        assert float(log_p(point)) == pytest.approx(ours, rel=1e-9)


# ------------------------------------------------------------------------ all particles at once


def log_density(model: Any) -> Any:
    """Function of particles (n, k), in the model's unconstrained coordinates.

    It returns two arrays (n,): the log prior, Jacobians included, and the log likelihood.
    """
    rows, free, start = pt.matrix("rows"), {}, 0
    for value in model.value_vars:
        shape = model.initial_point(0)[value.name].shape
        stop = start + math.prod(shape)
        free[value] = rows[:, start:stop].reshape((rows.shape[0], *shape))
        start = stop
    # a log-sum-exp is a graph in a graph, which would be called row by row: unpacked first
    unpack = dfs_rewriter(inline_symbolic_for_fusion)
    one = rewrite_graph([model.varlogp, model.datalogp], include=(), custom_rewrite=unpack)
    return pytensor.function([rows], vectorize_graph(one, replace=free), mode=PYTHON)


def student_t(particles: np.ndarray) -> Any:
    """With the location and scale of the particles, and tails that cover theirs."""
    return stats.multivariate_t(particles.mean(axis=0), np.cov(particles, rowvar=False), df=12)


class AllAtOnce(IMH):
    """PyMC's sequential Monte Carlo, with particles that move together.

    PyMC's own kernels call compiled functions particle by particle; a function of all of them
    needs no compiler to be fast. Tempering, resampling and the evidence stay PyMC's.
    """

    steps = 8

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.log_density = log_density(kwargs["model"])

    def tune(self) -> None:
        self.proposal_dist = student_t(self.tempered_posterior)

    def mutate(self) -> None:
        """Independent Metropolis-Hastings steps, whose proposals have heavier tails."""
        now, proposal = self.tempered_posterior, self.proposal_dist
        accepted = np.empty((self.steps, self.draws), dtype=bool)
        for yes in accepted:
            new = proposal.rvs(self.draws, random_state=self.rng).reshape(now.shape)
            prior, likelihood = self.log_density(new)
            log_p = prior + self.beta * likelihood
            gain = log_p - self.tempered_posterior_logp
            gain += proposal.logpdf(now) - proposal.logpdf(new)
            yes[:] = np.log(self.rng.random(self.draws)) < gain
            now[yes], self.tempered_posterior_logp[yes] = new[yes], log_p[yes]
            self.prior_logp[yes], self.likelihood_logp[yes] = prior[yes], likelihood[yes]
        self.n_steps, self.acc_rate = self.steps, accepted.mean()


# ----------------------------------------------------------------------------------- comparison


@pytest.mark.slow
@every_case
def test_log_evidence_is_the_marginal_likelihood_of_the_pymc_model(case: Case) -> None:
    exact, model = case.fitted.log_evidence_, case.model
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The effect of Potentials")  # on draws of the prior
        trace = pm.sample_smc(
            PARTICLES,
            threshold=0.7,
            kernel=AllAtOnce,
            model=model,
            chains=CHAINS,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            return_inferencedata=False,
            compile_kwargs={"mode": PYTHON},
        )
    stages = trace.report.log_marginal_likelihood  # NaN until the temperature is 1
    _agree([float(chain[-1]) for chain in stages], exact, limit=0.3)
    parts = [trace.get_values(v.name, combine=False, squeeze=False) for v in model.value_vars]
    chains = [
        np.hstack([v.reshape(PARTICLES, -1) for v in chain]) for chain in zip(*parts, strict=True)
    ]
    log_p = log_density(model)
    bridges = []
    for k, chain in enumerate(chains):
        others = np.concatenate(chains[:k] + chains[k + 1 :])
        bridges.append(_bridge(lambda rows: sum(log_p(rows)), chain, student_t(others), k))
    _agree(bridges, exact, limit=0.1)


def _agree(estimates: list[float], exact: float, limit: float) -> None:
    """The mean of independent estimates is `exact`, up to a tolerance that says something."""
    k = len(estimates)
    tolerance = stats.t.ppf(ODDS, k - 1) * np.std(estimates, ddof=1) / np.sqrt(k)
    assert tolerance < limit, f"{np.round(estimates, 2)} are too far apart to judge by"
    assert abs(np.mean(estimates) - exact) <= tolerance, f"{np.round(estimates, 3)}, {exact:.3f}"


def _log_mean_exp(a: np.ndarray) -> np.ndarray:
    return logsumexp(a) - np.log(len(a))


def _bridge(log_p: Any, here: np.ndarray, known: Any, seed: int) -> float:
    """Log of the integral of exp(log_p): Meng and Wong's (1996) bridge from a known density.

    `here` are as many particles as are drawn from that density, which has not seen them.
    """
    there = known.rvs(len(here), random_state=seed)
    above, below = (log_p(rows) - known.logpdf(rows) for rows in (there, here))
    log_z = _log_mean_exp(above)
    for _ in range(100):  # a contraction: 20 are enough
        top = above - np.logaddexp(above, log_z)
        log_z = _log_mean_exp(top) - _log_mean_exp(-np.logaddexp(below, log_z))
    return float(log_z)
