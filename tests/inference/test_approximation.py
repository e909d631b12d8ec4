"""Laplace's method and ADVI: exact where the posterior is Normal, honest where it is not."""

import sys
import types

import numpy as np
import pytest
import xarray as xr

import bayesgen as bg
from bayesgen.inference import approximation
from bayesgen.inference.nuts import SamplingWarning
from tests.graphs import PYTHON, pm

RNG = np.random.default_rng(2)
Y = np.array(list("ab") * 30)
X = RNG.normal(size=(60, 2)) + (Y == "b")[:, None] * 2


def test_ratios_of_equal_densities_have_no_tail():
    assert approximation.pareto_k(np.full(100, 3.0)) == 0.0
    assert np.isnan(approximation.pareto_k(np.zeros(5)))
    rng = np.random.default_rng(0)
    assert approximation.pareto_k(rng.standard_exponential(4000) / 5) < 0.5
    assert approximation.pareto_k(rng.standard_exponential(4000) * 1.2) > 0.7


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"inference": "laplace", "draws": 0}, ValueError, "draws must be an integer >= 1"),
        ({"inference": "advi", "chains": 4}, TypeError, "which inference='advi' has not"),
        ({"inference": "vi"}, ValueError, "inference must be one of"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        bg.GaussianNB().fit(X, Y, **options)


def test_pathfinder_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymc_extras", None)
    with pytest.raises(ImportError, match="pip install pymc-extras"):
        bg.GaussianNB().fit(X, Y, inference="pathfinder", progressbar=False)


def test_pathfinder_stays_in_one_process(monkeypatch):
    """Its workers would import a script without a main guard again, and hang."""
    asked = {}

    def fit_pathfinder(model, **options):
        asked.update(options)
        zeros = {v.name: (("chain", "draw"), np.zeros((1, options["num_draws"]))) for v in (mu,)}
        return xr.DataTree.from_dict({"posterior": xr.Dataset(zeros)})

    extras = types.SimpleNamespace(fit_pathfinder=fit_pathfinder)
    monkeypatch.setitem(sys.modules, "pymc_extras", extras)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
    approximation.sample(model, "pathfinder", draws=30, progressbar=False)
    assert asked["parallel"] is False
    approximation.sample(model, "pathfinder", draws=30, progressbar=False, parallel=True)
    assert asked["parallel"] is True


def test_the_tree_tells_pareto_k(monkeypatch):
    def sample(model, method, **_):
        with model:
            names = [*model.free_RVs, *model.deterministics]
            values = pm.draw(names, draws=4, random_seed=1, mode=PYTHON)
        dims = [model.named_vars_to_dims.get(v.name, ()) for v in names]
        arrays = {
            v.name: (("chain", "draw", *d), value[None])
            for v, d, value in zip(names, dims, values, strict=True)
        }
        return xr.Dataset(arrays), xr.Dataset(attrs={"pareto_k": 0.25})

    monkeypatch.setattr(approximation, "sample", sample)
    clf = bg.GaussianNB().fit(X, Y, inference="laplace")
    assert clf.posterior_.attrs["pareto_k"] == 0.25


@pytest.mark.slow
def test_laplace_is_exact_for_a_normal_posterior():
    with pm.Model(coords={"k": range(2)}) as model:
        mu = pm.Normal("mu", 1.0, 2.0, dims="k")
        pm.Normal("x", mu[0] + 0.5 * mu[1], 1.0, observed=np.array([1.0, 2.0, 3.0]))
    posterior, stats = approximation.sample(
        model, "laplace", draws=4000, random_state=1, progressbar=False
    )
    design = np.array([1.0, 0.5])
    precision = np.eye(2) / 4 + 3 * np.outer(design, design)
    covariance = np.linalg.inv(precision)
    mean = covariance @ (np.ones(2) / 4 + 6 * design)
    found = posterior["mu"].values[0]
    error = np.sqrt(np.diag(covariance) / 4000)
    assert np.all(np.abs(found.mean(axis=0) - mean) < 4 * error)
    np.testing.assert_allclose(np.cov(found.T), covariance, rtol=0.12, atol=0.02)
    assert np.ptp(stats["lp"].values - stats["log_q"].values) < 1e-6
    assert stats.attrs["pareto_k"] < 0.7


@pytest.mark.slow
def test_the_estimator():
    clf = bg.GaussianNB().fit(X, Y, inference="laplace", random_state=1, progressbar=False)
    assert clf.posterior_.attrs["route"] == "laplace"
    assert "Normal" in clf.posterior_.attrs["approximation"]
    exact = bg.GaussianNB().fit(X, Y)
    np.testing.assert_allclose(clf.predict_proba(X), exact.predict_proba(X), atol=0.03)
    few = [0, 1, 2, 3]
    with pytest.warns(SamplingWarning, match="laplace: the posterior is not close"):
        bg.GaussianNB(nu0=0.5).fit(
            X[few], Y[few], inference="laplace", random_state=1, progressbar=False
        )
