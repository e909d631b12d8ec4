"""StudentT and StudentTNB: densities against SciPy, and defaults."""

import numpy as np
import pytest
from scipy import stats

from bayesgen.families.sampled.student_t import StudentT

NAN = np.nan


def test_densities_are_scipys_also_far_out():
    rng = np.random.default_rng(0)
    theta = {
        "mu": rng.normal(size=(2, 3, 2)),
        "sigma": rng.gamma(2.0, size=(2, 3, 2)),
        "nu": rng.gamma(2.0, 5.0, size=(2, 2)),
    }
    X = rng.normal(size=(6, 2))
    X[0, 1], X[1], X[2, 0], X[3, 0] = NAN, NAN, 1e150, -1e8
    log_p = StudentT.examples(3, 2)[0].log_likelihood(X, theta)
    for s, i, c in np.ndindex(log_p.shape):
        at = theta["nu"][s], theta["mu"][s, c], theta["sigma"][s, c]
        z = (X[i] - at[1]) / at[2]
        with np.errstate(over="ignore"):
            cells = stats.t.logpdf(X[i], *at)
        far = np.abs(z) > 1e100  # SciPy squares z
        tail = stats.t.logpdf(1e50, at[0]) - (at[0] + 1) * np.log(np.abs(z) / 1e50) - np.log(at[2])
        expected = np.nansum(np.where(far, tail, cells))
        assert log_p[s, i, c] == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_defaults_follow_shift_and_scale_and_no_outlier():
    rng = np.random.default_rng(2)
    X, y = np.round(rng.normal(size=(40, 2)), 1), rng.integers(-1, 2, 40)
    unit, shift = np.array([2.0, 1e-3]), np.array([5.0, -1.0])
    a, b = (StudentT().with_defaults(x, y, 2) for x in (X, X * unit + shift))
    np.testing.assert_allclose(b.location, a.location * unit + shift, rtol=1e-9)
    np.testing.assert_allclose(b.scale, a.scale * unit, rtol=1e-9)
    np.testing.assert_allclose(b.resolution, a.resolution * unit, rtol=1e-6)
    X[0] = 1e9
    c = StudentT().with_defaults(X, y, 2)
    assert np.all(np.abs(c.location - a.location) < 0.5)
    assert np.all(c.scale < 2 * a.scale)


def test_no_scale_is_below_the_rounding():
    """Draws of sigma from the default prior; a prior that is given has no floor."""
    import pymc as pm

    from bayesgen.posterior.model import ClassModel
    from tests.graphs import PYTHON

    X = np.random.default_rng(5).normal(size=(50, 2))
    X[:, 0] = np.round(X[:, 0])
    coords = {"class": ["a", "b"], "feature": ["u", "v"]}
    for prior, least in ((None, 12**-0.5), (lambda n, d: pm.HalfNormal(n, 0.01, dims=d), 0.0)):
        family = StudentT(sigma=prior).with_defaults(X, np.arange(50) % 2, 2)
        np.testing.assert_allclose(family.resolution[0], 1.0)
        assert family.resolution[1] == 0
        model = ClassModel(np.ones(2), family).to_pymc(coords)
        sigma = pm.draw(model["sigma"], 400, random_seed=1, mode=PYTHON)
        assert sigma[..., 0].min() >= least
        assert (sigma[..., 0].min() > 0.1) == (prior is None)
        if prior is None:
            r = np.log(sigma[..., 1] / family.scale[1])
            assert stats.kstest(r.ravel(), "norm").pvalue > 1e-3
