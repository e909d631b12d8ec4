"""Own operations run in JAX, where that is installed: log densities and gradients of whole models."""

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.posterior.model import ClassModel
from tests.graphs import PYTHON

RNG = np.random.default_rng(5)
Y = np.arange(12) % 3
REAL = RNG.normal(size=(12, 2)) + Y[:, None]
GAPS = np.where(REAL > 2, np.nan, REAL)
COUNTS = RNG.poisson(2.0, (12, 4))
CASES = {
    "LKJNormal": (bg.families.LKJNormal(), REAL),
    "LKJNormal with missing cells": (bg.families.LKJNormal(), GAPS),
    "HierarchicalBernoulli": (bg.families.HierarchicalBernoulli(), (REAL > 1).astype(float)),
    "LogisticNormal": (bg.families.LogisticNormal(), COUNTS),
    "StudentT": (bg.families.StudentT(), REAL),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_log_density_and_gradient(name):
    jax = pytest.importorskip("jax")
    pytest.importorskip("numpyro")
    from pymc.sampling.jax import get_jaxified_logp

    family, X = CASES[name]
    family = family.with_defaults(X, Y, 3) if hasattr(family, "with_defaults") else family
    coords = {"class": [0, 1, 2], "feature": list("abcd")[: X.shape[1]]}
    coords |= {"feature_bis": coords["feature"]} | dict(family.coords())
    model = ClassModel(np.ones(3), family).to_pymc(coords, X=X, y=Y, summed=True)
    start = model.initial_point(random_seed=1)
    point = {k: v + RNG.normal(0, 0.1, np.shape(v)) for k, v in start.items()}
    log_p = get_jaxified_logp(model)
    values = [np.asarray(point[v.name]) for v in model.value_vars]
    expected = model.compile_logp(mode=PYTHON)(point)
    np.testing.assert_allclose(log_p(values), expected, rtol=1e-8)
    found = np.concatenate([np.ravel(g) for g in jax.grad(lambda x: log_p(x))(values)])
    gradient = model.compile_dlogp(mode=PYTHON)(point)
    np.testing.assert_allclose(found, gradient, rtol=1e-6, atol=1e-9)
