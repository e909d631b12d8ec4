"""Posterior trees in the hands of PyMC and ArviZ, without an adapter: their numbers are ours."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import bayesgen as bg
from tests.graphs import PYTHON

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings at import of these packages are not ours
    import arviz as az
    import pymc as pm

PYMC: dict[str, Any] = {"progressbar": False, "compile_kwargs": {"mode": PYTHON}}
JOINT: dict[str, Any] = {"likelihood_var_names": "joint"}
GROUPS = ("prior", "log_prior", "log_likelihood", "posterior_predictive")


# deprecations inside these packages are for them to mend
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@dataclass
class Case:
    """A classifier with its rows, fitted and drawn from once."""

    name: str
    clf: Any
    X: Any
    y: np.ndarray
    flat: bool = True  # whether the prior is uniform

    @cached_property
    def fitted(self) -> Any:
        return self.clf.fit(self.X, self.y)

    @cached_property
    def encoded(self) -> Any:
        return self.fitted.fitted_.read(self.X).encoded

    @cached_property
    def codes(self) -> np.ndarray:
        return self.fitted.fitted_.codes_of(self.y)

    @cached_property
    def tree(self) -> Any:
        return self.fitted.draw_posterior(
            X=self.X, y=self.y, groups=GROUPS, replicate=("label", "x")
        )

    @property
    def params(self) -> list[str]:
        return list(self.fitted.model_.params)


RNG = np.random.default_rng(3)
N = 36
TWO, THREE = np.arange(N) % 2, np.arange(N) % 3
IRIS, SPECIES = load_iris(return_X_y=True, as_frame=True)
IRIS = IRIS.iloc[::3, 2:].rename(columns=lambda name: name.removesuffix(" (cm)"))
SPECIES = np.array(["setosa", "versicolor", "virginica"])[SPECIES[::3]]
HAM = np.array(["ham", "spam"])[TWO]
CATTLE = np.array(["bull", "calf", "cow"])[THREE]
COUNTS = RNG.poisson(1.0 + TWO[:, None] * [0, 1, 2]).astype(float)
BITS = (RNG.random((N, 4)) < 0.3 + 0.3 * TWO[:, None]).astype(float)
WORDS = np.array([[RNG.choice(list(s)) for s in ("uvw", "p", "rs")] for _ in range(N)])
TABLE = pd.DataFrame(
    {"size": RNG.normal(TWO), "bit": RNG.random(N) < 0.4, "word": RNG.choice(["u", "v"], N)}
)
TEXTS = ["".join(RNG.choice(list("xy"), RNG.integers(2, 8))) for _ in range(N)]
CASES = [
    Case("gaussian", bg.GaussianNB(), IRIS, SPECIES, flat=False),
    Case("linear", bg.LinearDiscriminant(), IRIS, SPECIES, flat=False),
    Case("multinomial", bg.MultinomialNB(), COUNTS, HAM),
    Case("bernoulli", bg.BernoulliNB(), BITS, TWO),
    Case("categorical", bg.CategoricalNB(), WORDS, CATTLE),
    Case("mixed", bg.MixedNB(), TABLE, HAM, flat=False),
    Case("markov", bg.MarkovNB(order=2), TEXTS, HAM),
]
BY_NAME = {case.name: case for case in CASES}
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


# ------------------------------------------------------------------------------------------ PyMC


def test_pymc_computes_our_log_likelihood_of_other_rows() -> None:
    clf = bg.LinearDiscriminant().fit(IRIS[::2], SPECIES[::2])
    tree = clf.draw_posterior(5, 1, X=IRIS[1::2], y=SPECIES[1::2])
    model = clf.to_pymc(IRIS[1::2], SPECIES[1::2], likelihood="rows")
    log_p = pm.compute_log_likelihood(tree, model=model, extend_inferencedata=False, **PYMC)
    total = log_p["x"].values + log_p["label"].values
    np.testing.assert_allclose(total, tree["log_likelihood"]["joint"], rtol=1e-9)


# ---------------------------------------------------------------------------------------- summary


def test_summary_speaks_of_the_user_s_classes_and_columns() -> None:
    rows = az.summary(BY_NAME["gaussian"].tree).index
    assert {"pi[setosa]", "mu[virginica, petal width]", "sigma2[setosa, petal length]"} <= set(rows)
    rows = az.summary(BY_NAME["mixed"].tree).index
    assert {"bernoulli_theta[ham, bit]", "categorical_theta[spam, word, u]"} <= set(rows)
    assert "theta[spam, x, y]" in az.summary(BY_NAME["markov"].tree).index


# ------------------------------------------------------------------------------ leave-one-out


@every_case
def test_loo_is_leave_one_out(case: Case) -> None:
    of_labels = np.arange(len(case.codes)), case.codes
    joint = case.fitted.loo_log_joint(case.X, case.y)  # laws hold it to fits without each row
    log_p = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    for name, exact in (("joint", joint[of_labels]), ("label", log_p[of_labels])):
        with warnings.catch_warnings():  # of large k where a label is as good as certain
            warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
            loo = az.loo(case.tree, var_name=name, pointwise=True)
        assert loo.n_data_points == len(case.y)
        good = loo.pareto_k.values < 0.7
        assert np.abs(loo.elpd_i.values - exact)[good].max() < 0.15
        assert loo.elpd == pytest.approx(exact.sum(), abs=1.0)
        assert loo.se == pytest.approx(np.sqrt(len(exact) * exact.var(ddof=1)), rel=0.1)
        assert good[exact < -1e-2].mean() > 0.9
        assert not np.isnan(loo.pareto_k).any()


def test_loo_takes_rows_whose_labels_are_certain() -> None:
    """Classes so far apart that p(y | x) is 1 to the last digit, and one class alone."""
    far = IRIS.to_numpy() + 1e3 * (SPECIES == "setosa")[:, None]
    for y in (np.where(SPECIES == "setosa", "near", "far"), np.full(len(far), "all")):
        clf = bg.GaussianNB().fit(far, y)
        loo = az.loo(clf.draw_posterior(X=far, y=y), var_name="label", pointwise=True)
        assert loo.elpd == pytest.approx(0.0, abs=1e-7)
        assert np.isfinite(loo.pareto_k).all()
        assert not loo.warning


# ---------------------------------------------------------------------------------- sensitivity


@every_case
def test_a_flat_prior_has_no_weight(case: Case) -> None:
    with warnings.catch_warnings():
        if case.name == "categorical":
            warnings.filterwarnings("ignore", message="invalid value", category=RuntimeWarning)
        table = az.psense_summary(case.tree, var_names=case.params, **JOINT)
    moving = table["likelihood"].notna()  # the constants of a ragged table
    if case.flat:
        assert (table["prior"][moving] == 0).all()
        assert (table["diagnosis"] == "✓").all()
    assert (table["likelihood"][moving] > 0.05).all()
