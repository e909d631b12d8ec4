"""Compiled kernels in JAX, by which numpyro samples: values and gradients of the default mode."""

import numpy as np
import pytest

from bayesgen.families.sampled.gaussian_mixture import GaussianMixture
from bayesgen.families.sampled.hierarchical_bernoulli import HierarchicalBernoulli
from bayesgen.families.sampled.lkj_normal import LKJNormal
from bayesgen.families.sampled.logistic_normal import LogisticNormal
from tests.graphs import PYTHON, declare
from tests.laws.test_pymc import Y_OF_THREE, coords_of, rows_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "kind", [GaussianMixture, HierarchicalBernoulli, LKJNormal, LogisticNormal]
)
def test_kernels_have_their_values_and_gradients_in_jax(kind):
    """Of patterns of missing cells, radii, LKJ matrices, and sums over a grid."""
    jax = pytest.importorskip("jax")
    from pymc.sampling.jax import get_jaxified_logp

    own = kind.examples(3, 2)[0]
    X = rows_of(own, missing=kind is GaussianMixture)
    model, _ = declare(own, coords_of(own), X=X, y=Y_OF_THREE, summed=True)
    rng = np.random.default_rng(0)
    start = model.initial_point(1)
    point = {k: v + 0.3 * rng.normal(size=np.shape(v)) for k, v in start.items()}
    log_p, slope = jax.value_and_grad(get_jaxified_logp(model))(
        [point[v.name] for v in model.value_vars]
    )
    np.testing.assert_allclose(float(log_p), model.compile_logp(mode=PYTHON)(point), rtol=1e-10)
    found = np.concatenate([np.ravel(part) for part in slope])
    expected = model.compile_dlogp(mode=PYTHON)(point)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
