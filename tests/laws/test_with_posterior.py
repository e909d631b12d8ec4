"""A classifier whose posterior is draws of the user's: every method works from there."""

import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import xarray as xr
from scipy import special, stats
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from tests.averages import averages
from tests.laws.test_classifiers import CASES, REAL, N, Y
from tests.selection import rest_is_slow

NAMES = np.unique(Y)
RNG = np.random.default_rng(3)
FAST = ("GaussianNB", "MixedNB", "TreeAugmentedNB")


@pytest.mark.parametrize("name", rest_is_slow((*FAST, "MarkovNB", "MultinomialNB"), FAST))
@pytest.mark.filterwarnings("ignore::bayesgen.MonteCarloWarning")
def test_it_is_the_posterior_of_all_methods(name, tmp_path):
    make, X = CASES[name]
    clf = make().fit(X, Y)
    tree = clf.draw_posterior(400)
    few = take(X, np.arange(9))
    of_draws = clf.with_posterior(tree)
    assert clf.inference_ == "closed form"
    means = averages(of_draws, X)
    exact, p, mcse = clf.predict_proba(X), means.probability, means.mcse
    sure = ~means.probability_in_doubt()
    near = np.abs(p - exact) < 6 * mcse + 1e-3  # below 1e-3 a class is left aside
    assert near[sure].all()
    other = make().with_posterior(az.extract(tree), X, Y).predict_proba(few)
    np.testing.assert_allclose(of_draws.predict_proba(few), other, rtol=1e-12)
    of_draws.save(tmp_path / "model.nc")
    again = bg.load(tmp_path / "model.nc")
    assert again.inference_ == "draws given"
    np.testing.assert_allclose(again.predict_proba(few), of_draws.predict_proba(few), rtol=1e-12)
    p_loo = of_draws.loo_log_joint(X, Y)
    p_loo = special.log_softmax(p_loo, axis=1)[np.arange(N), np.searchsorted(NAMES, Y)]
    assert of_draws.loo(X, Y).elpd == pytest.approx(p_loo.sum(), rel=1e-9)
    for attribute in ("log_evidence_", "model_", "stats_"):
        with pytest.raises(bg.NoClosedFormError, match="with_posterior gave the classifier draws"):
            getattr(of_draws, attribute)
    with pytest.raises(bg.NoClosedFormError, match="was given draws"):
        of_draws.merge(clf)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_whatever_looks_at_a_fit_looks_at_the_draws(tmp_path):
    make, X = CASES["MixedNB"]
    clf = make().fit(X, Y)
    of_draws = clf.with_posterior(clf.draw_posterior(400))
    bg.label_errors(of_draws, X, Y)
    bg.compare_models({"given": of_draws, "exact": clf}, X, Y)
    bg.compare_predictives(of_draws, X, Y)
    bg.report(of_draws, take(X, np.arange(9)), Y[:9], tmp_path / "report.html")
    assert "draws given" in (tmp_path / "report.html").read_text()


def robust_draws(n=400):
    """Draws of a `StudentTNB` of two columns, by hand; dims, classes in an order of their own."""
    order = NAMES[::-1]
    return xr.Dataset(
        {
            "pi": (("chain", "draw", "class"), RNG.dirichlet([3.0, 2, 1], (2, n))),
            "mu": (("chain", "draw", "feature", "class"), RNG.normal(50, 1, (2, n, 2, 3))),
            "sigma": (("chain", "draw", "class", "feature"), RNG.gamma(9, 0.3, (2, n, 3, 2))),
            "nu": (("chain", "draw", "feature"), RNG.gamma(9, 0.5, (2, n, 2))),
        },
        {"class": order, "feature": ["long", "wide"]},
    )


def expected(draws, X):
    """(N, C) class probabilities by SciPy: the joint densities averaged, then normalised."""
    d = draws.sel({"class": NAMES}).stack(s=("chain", "draw"))
    mu, sigma = (d[k].transpose("s", "class", "feature").values[:, None] for k in ("mu", "sigma"))
    nu = d["nu"].transpose("s", "feature").values[:, None, None]
    f = stats.t.logpdf(X[None, :, None], nu, mu, sigma).sum(axis=-1)
    joint = f + np.log(d["pi"].transpose("s", "class").values[:, None])
    return special.softmax(special.logsumexp(joint, axis=0), axis=1)


@pytest.mark.filterwarnings("ignore::bayesgen.MonteCarloWarning")
@pytest.mark.parametrize("stacked", [False, True])
def test_a_sampled_classifier_need_not_be_fitted(stacked, tmp_path):
    draws = robust_draws()
    X = pd.DataFrame(REAL[:, :2], columns=["long", "wide"])
    some_draws = az.extract(draws).isel(sample=slice(0, 300)) if stacked else draws
    p = expected(draws.isel(chain=[0], draw=slice(0, 300)) if stacked else draws, X.values)
    clf = bg.StudentTNB().with_posterior(some_draws, X, Y)
    clf.save(tmp_path / "model.nc")
    for model in (clf, bg.load(tmp_path / "model.nc")):
        np.testing.assert_allclose(model.predict_proba(X), p, rtol=1e-9)
        np.testing.assert_array_equal(model.feature_names_in_, ["long", "wide"])
        assert (model.n_rows_seen_, model.inference_) == (N, "draws given")


def test_a_pool_takes_exponents():
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()], random_state=0)
    pool.fit(REAL, Y)
    draws = pool.posterior_["posterior"].to_dataset()
    half = pool.with_posterior(
        draws.assign(exponent=0 * draws["exponent"] + 0.5, intercept=0 * draws["intercept"])
    )
    joint = sum(m.predict_joint_log_proba(REAL) for m in pool.members_.values())
    np.testing.assert_allclose(
        half.predict_proba(REAL), special.softmax(joint / 2, axis=1), rtol=1e-9
    )


GAUSSIAN = bg.GaussianNB(prior="default").fit(REAL, Y)
DRAWS = GAUSSIAN.draw_posterior(100, 2)
GROUP = DRAWS["posterior"].to_dataset()[["mu", "sigma2", "pi"]]
ARRAYS = {name: GROUP[name].values for name in GROUP}


@pytest.mark.parametrize(
    "given",
    [
        ARRAYS,
        az.extract(DRAWS),
        DRAWS["posterior"],
        xr.concat([GROUP.isel(chain=0, drop=True), GROUP.isel(chain=1, drop=True)], "draw"),
        {name: value.reshape(200, *value.shape[2:]) for name, value in ARRAYS.items()},
    ],
    ids=["arrays", "stacked", "the group", "no chain", "arrays, one chain"],
)
def test_draws_of_any_form_are_the_same_posterior(given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bg.MonteCarloWarning)
        expected = GAUSSIAN.with_posterior(DRAWS).predict_proba(REAL)
        again = GAUSSIAN.with_posterior(given)
        np.testing.assert_allclose(again.predict_proba(REAL), expected, rtol=1e-12)
    assert again.posterior_["posterior"]["mu"].dims == ("chain", "draw", "class", "feature")


def test_one_point_is_a_plug_in_with_a_warning():
    with pytest.warns(UserWarning, match="one draw, which has no spread"):
        one = GAUSSIAN.with_posterior(GAUSSIAN.estimates("posterior_mean"))
    expected = GAUSSIAN.predict_proba(REAL, method="posterior_mean")
    np.testing.assert_allclose(one.predict_proba(REAL), expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"1 draw\(s\) in a chain"):
        one.predict_interval(REAL)


def test_what_the_sampler_wrote_stays():
    tree = DRAWS.copy()
    tree["posterior"].attrs |= {"inference_library": "walker", "tuning_steps": 700}
    del tree.attrs["inference_library"]
    kept = GAUSSIAN.with_posterior(tree).posterior_.attrs
    assert (kept["inference_library"], kept["tuning_steps"]) == ("walker", 700)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesgen.MonteCarloWarning")
def test_the_graph_of_a_classifier_before_a_fit_comes_back_as_draws():
    """A trace of it, and its mode, are posteriors of these rows."""
    clf = bg.GaussianNB(prior="default")
    with pytensor.config.change_flags(mode="FAST_COMPILE"):  # no C compiler
        model = clf.to_pymc(REAL, Y)
        options = {"progressbar": False, "random_seed": 1, "compute_convergence_checks": False}
        trace = pm.sample(60, tune=60, chains=1, model=model, nuts_sampler="pymc", **options)
        options = {"progressbar": False, "jitter": False, "return_inferencedata": True}
        point = pm.find_MAP(model=model, **options)
    of_draws = clf.with_posterior(trace, REAL, Y)
    assert of_draws.posterior_.attrs["inference_library"] == "pymc"
    assert of_draws.posterior_.attrs["tuning_steps"] == 60
    assert np.abs(of_draws.predict_proba(REAL) - GAUSSIAN.predict_proba(REAL)).max() < 0.2
    with pytest.warns(UserWarning, match="one draw"):
        mode = clf.with_posterior(point, REAL, Y)
    expected = GAUSSIAN.predict_proba(REAL, method="map")
    np.testing.assert_allclose(mode.predict_proba(REAL), expected, atol=0.02)
