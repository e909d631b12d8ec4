"""The wrapper around PyTensor's function: PyMC's log density and gradient, with data anew."""

import ctypes

import numpy as np
import pytest

from bayesgen.inference.nuts import compile_model


@pytest.mark.slow
def test_log_density_and_gradient_are_pymcs():
    import pymc as pm

    rng = np.random.default_rng(0)
    with pm.Model() as model:
        x = pm.Data("x", rng.normal(size=(5, 2)))
        n, offset = pm.Data("n", np.array([3, 4, 9])), pm.Data("offset", 0.5)
        mu, sigma = pm.Normal("mu", shape=2), pm.HalfNormal("sigma")
        pm.Normal("y", mu + offset, sigma, observed=x)
        pm.Poisson("k", sigma, observed=n)
    compiled = compile_model(model)
    log_p, gradient = model.compile_logp(), model.compile_dlogp()
    for new in ({}, {"x": rng.normal(size=(9, 2)), "n": np.array([1]), "offset": np.array(-2.0)}):
        with model:
            pm.set_data(new)
        program = compiled.with_data(**new)
        for point in rng.normal(size=(3, 3)):
            out, total, at = np.empty(3), np.empty(()), np.array(point)
            double = ctypes.POINTER(ctypes.c_double)
            pointers = (a.ctypes.data_as(double) for a in (at, out, total))
            data = program.user_data.ctypes.data_as(ctypes.c_void_p)
            assert program.compiled_logp_func.ctypes(3, *pointers, data) == 0
            given = {"mu": point[:2], "sigma_log__": point[2]}
            np.testing.assert_allclose(total, log_p(given), rtol=1e-9)
            np.testing.assert_allclose(out, gradient(given), rtol=1e-9)
