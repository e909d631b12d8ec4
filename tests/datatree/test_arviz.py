"""Posterior trees in the hands of PyMC and ArviZ, without an adapter: their numbers are ours."""

import warnings
from typing import Any

import arviz as az
import numpy as np
import pytest

import bayesgen as bg
from tests.datatree.fits import Fit
from tests.graphs import PYTHON, pm

PYMC: dict[str, Any] = {"progressbar": False, "compile_kwargs": {"mode": PYTHON}}
JOINT: dict[str, Any] = {"likelihood_var_names": "joint"}
GROUPS = ("prior", "log_prior", "log_likelihood", "posterior_predictive")


# deprecations inside these packages are for them to mend
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


NAMES = ("GaussianNB", "LinearDiscriminant", "MultinomialNB", "BernoulliNB", "CategoricalNB")
NAMES += ("MixedNB", "MarkovNB 1")
FITS = {name: Fit(name, 60, GROUPS) for name in NAMES}
FLAT = {"MultinomialNB": bg.MultinomialNB(), "BernoulliNB": bg.BernoulliNB()}
FLAT |= {"CategoricalNB": bg.CategoricalNB(), "MarkovNB 1": bg.MarkovNB(1)}
for name, clf in FLAT.items():  # with uniform priors
    FITS[name].clf = clf
REALS, SPECIES = FITS["LinearDiscriminant"].X, FITS["LinearDiscriminant"].y
every_case = pytest.mark.parametrize("case", FITS.values(), ids=NAMES)


# ------------------------------------------------------------------------------------------ PyMC


def test_pymc_computes_our_log_likelihood_of_other_rows() -> None:
    clf = bg.LinearDiscriminant().fit(REALS[::2], SPECIES[::2])
    tree = clf.draw_posterior(5, 1, X=REALS[1::2], y=SPECIES[1::2])
    model = clf.to_pymc(REALS[1::2], SPECIES[1::2], likelihood="rows")
    log_p = pm.compute_log_likelihood(tree, model=model, extend_inferencedata=False, **PYMC)
    total = log_p["x"].values + log_p["label"].values
    np.testing.assert_allclose(total, tree["log_likelihood"]["joint"], rtol=1e-9)


# ---------------------------------------------------------------------------------------- summary


def test_summary_speaks_of_the_user_s_classes_and_columns() -> None:
    rows = {*az.summary(FITS["MixedNB"].tree).index}
    assert {"pi[ash]", "gaussian_mu[birch, weight]", "gaussian_sigma2[ash, length]"} <= rows
    assert {"bernoulli_theta[ash, wild]", "categorical_theta[cedar, size, XL]"} <= rows
    assert "theta[birch, , a]" in az.summary(FITS["MarkovNB 1"].tree).index


# ------------------------------------------------------------------------------ leave-one-out


@every_case
def test_loo_is_leave_one_out(case: Fit) -> None:
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
    far = REALS + 1e3 * (SPECIES == "ash")[:, None]
    for y in (np.where(SPECIES == "ash", "near", "far"), np.full(len(far), "all")):
        clf = bg.GaussianNB().fit(far, y)
        loo = az.loo(clf.draw_posterior(X=far, y=y), var_name="label", pointwise=True)
        assert loo.elpd == pytest.approx(0.0, abs=1e-7)
        assert np.isfinite(loo.pareto_k).all()
        assert not loo.warning


# ---------------------------------------------------------------------------------- sensitivity


@every_case
def test_a_flat_prior_has_no_weight(case: Fit) -> None:
    with warnings.catch_warnings():
        if case.name == "CategoricalNB":
            warnings.filterwarnings("ignore", message="invalid value", category=RuntimeWarning)
        table = az.psense_summary(case.tree, var_names=[*case.fitted.model_.params], **JOINT)
    moving = table["likelihood"].notna()  # the constants of a ragged table
    if case.name in FLAT:
        assert (table["prior"][moving] == 0).all()
        assert (table["diagnosis"] == "✓").all()
    assert (table["likelihood"][moving] > 0.05).all()
