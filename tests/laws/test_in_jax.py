"""Graphs in JAX, where numpyro samples: values and gradients of PyTensor's, for every family."""

from inspect import signature

import numpy as np
import pytest

from tests.graphs import PYTHON, declare
from tests.laws.cases import close, family_takes_missing, in_pymc, only
from tests.laws.test_pymc import Y_OF_THREE, Y, coords_of, on_rows, rows_of

pytestmark = pytest.mark.slow


def same_in_jax(model):
    jax = pytest.importorskip("jax")
    from pymc.sampling.jax import get_jaxified_logp

    rng = np.random.default_rng(0)
    start = model.initial_point(1)
    point = {k: v + 0.3 * rng.normal(size=np.shape(v)) for k, v in start.items()}
    log_p, slope = jax.value_and_grad(get_jaxified_logp(model))(
        [point[v.name] for v in model.value_vars]
    )
    close(float(log_p), model.compile_logp(mode=PYTHON)(point), 1e-10)
    gradient = np.concatenate([np.ravel(each) for each in slope])
    close(gradient, model.compile_dlogp(mode=PYTHON)(point), 1e-10)


@only(in_pymc, lambda case: not case.index)  # the first example of a family has its operations
def test_statistics_have_their_density_in_jax(case):
    case, prior, X = on_rows(case)
    same_in_jax(declare(prior, coords_of(prior), stats=case.stats(X, Y))[0])


def test_sampled_families_have_their_density_in_jax(family):
    on = {"X": rows_of(family, family_takes_missing(family)), "y": Y_OF_THREE}
    if "summed" in signature(family.to_pymc).parameters:
        on["summed"] = True  # as NUTS sees it
    same_in_jax(declare(family, coords_of(family), **on)[0])
