"""The PyMC model of the statistics has the likelihood of the rows, no constant left out.

With it the prior and the posterior in PyMC are those of `log_density` (tests/laws/test_pymc.py),
whose quotient at any theta is log_evidence_ (tests/laws/test_evidence.py).
"""

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.datatree.tree import as_in_numpy
from tests.graphs import PYTHON

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings at import of PyMC and PyTensor are not ours
    import pytensor

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
