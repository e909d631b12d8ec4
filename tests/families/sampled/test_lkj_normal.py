"""LKJNormal and LKJDiscriminant: densities against SciPy and PyMC, and what NUTS makes of them."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bayesgen as bg
from bayesgen.families.sampled.lkj_normal import LKJNormal
from bayesgen.families.shared.pymc_parts import declare_correlation
from bayesgen.numerics.kernels import sampling
from bayesgen.posterior.drawn import MonteCarloWarning
from bayesgen.posterior.model import ClassModel
from tests.families.sampled.recovery import inside, likelier, sound
from tests.graphs import PYTHON, pm

NAN = np.nan


def drawn_theta(shared: bool, n: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    lead = (n,) if shared else (n, 2)
    A = rng.normal(size=(*lead, 3, 5))
    Sigma = A @ np.swapaxes(A, -1, -2)
    sd = np.sqrt(np.diagonal(Sigma, axis1=-2, axis2=-1))
    return {
        "mu": rng.normal(size=(n, 2, 3)),
        "sigma": sd,
        "correlation": Sigma / sd[..., :, None] / sd[..., None, :],
    }


# --------------------------------------------------------------------------------- correlations


def test_matrices_are_those_of_the_partial_correlations():
    rng = np.random.default_rng(1)
    half = rng.random((4, 6))
    omega = sampling.correlation(half)
    np.testing.assert_allclose(np.diagonal(omega, axis1=1, axis2=2), 1.0, rtol=1e-12)
    assert np.linalg.eigvalsh(omega).min() > 0
    P = np.linalg.inv(omega[0, :3, :3])  # r_21 given axis 0 is the third of the list
    assert 2 * half[0, 2] - 1 == pytest.approx(-P[2, 1] / np.sqrt(P[1, 1] * P[2, 2]), rel=1e-9)
    assert 2 * half[0, 1] - 1 == pytest.approx(omega[0, 2, 0], rel=1e-12)


def test_their_gradient_is_that_of_finite_differences():
    rng, h = np.random.default_rng(2), 1e-6
    half, weight = rng.random((2, 6)), rng.normal(size=(2, 4, 4))
    found = sampling.correlation_gradient(half, weight)
    for cell in np.ndindex(half.shape):
        step = np.zeros(half.shape)
        step[cell] = h
        up, down = (weight * sampling.correlation(half + s * step) for s in (1, -1))
        assert found[cell] == pytest.approx((up - down).sum() / (2 * h), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("eta", [0.7, 2.0])
def test_the_prior_is_lkj(eta):
    """PyMC's density of Cholesky factors, and the Jacobian from the free coordinates to them."""
    n, points = 3, np.random.default_rng(3).uniform(0.2, 0.8, size=(4, 3))
    with pm.Model(coords={"feature": range(n), "feature_bis": range(n)}) as model:
        declare_correlation(LKJNormal(eta=eta, shared=True), "")
    log_p = model.compile_logp(jacobian=False, mode=PYTHON)
    low = np.tril_indices(n, -1)

    def factor(half: np.ndarray) -> np.ndarray:
        return np.linalg.cholesky(sampling.correlation(half[None])[0])

    for half in points:
        found = log_p({"correlation_partial_logodds__": np.log(half) - np.log1p(-half)})
        steps = 1e-6 * np.eye(3)
        jacobian = [(factor(half + s) - factor(half - s))[low] / 2e-6 for s in steps]
        lkj = pm.logp(pm.LKJCorr.dist(n=n, eta=eta), factor(half)).eval(mode=PYTHON)
        assert found == pytest.approx(lkj + np.linalg.slogdet(jacobian)[1], rel=1e-6)


def test_one_feature_has_no_correlation():
    family = LKJNormal(location=np.zeros(1), scale=np.ones(1))
    coords = {"class": ["a", "b"], "feature": ["u"], "feature_bis": ["u"]}
    X, y = np.array([[0.1], [0.2], [1.0]]), np.array([0, 0, 1])
    model = ClassModel(np.ones(2), family).to_pymc(coords, X=X, y=y, summed=True)
    assert {v.name for v in model.free_RVs} == {"pi", "mu_white", "sigma"}
    np.testing.assert_array_equal(model["correlation"].eval(mode=PYTHON), np.ones((2, 1, 1)))


# --------------------------------------------------------------------------------------- family


@pytest.mark.parametrize("shared", [False, True])
def test_densities_of_the_observed_cells_are_scipys(shared):
    theta = drawn_theta(shared)
    X = np.random.default_rng(4).normal(size=(6, 3))
    X[0, 1] = X[1, :2] = X[2] = NAN
    family = LKJNormal(shared=shared)
    found = family.log_likelihood(X, theta)
    whole = family.log_likelihood(X[3:], theta)
    np.testing.assert_allclose(found[:, 3:], whole, rtol=1e-12)
    for s, i, c in np.ndindex(found.shape):
        sd, omega = (theta[k][s] if shared else theta[k][s, c] for k in ("sigma", "correlation"))
        seen = np.flatnonzero(~np.isnan(X[i]))
        expected = 0.0
        if len(seen):
            part = (sd[:, None] * omega * sd)[np.ix_(seen, seen)]
            expected = stats.multivariate_normal.logpdf(X[i, seen], theta["mu"][s, c, seen], part)
        assert found[s, i, c] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_defaults_follow_shift_and_scale():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
    unit, shift = np.array([2.0, 1e-3, 1e4]), np.array([5.0, -1.0, 1e5])
    a, b = (LKJNormal().with_defaults(x, y, 2) for x in (X, X * unit + shift))
    np.testing.assert_allclose(b.location, a.location * unit + shift, rtol=1e-9)
    np.testing.assert_allclose(b.scale, a.scale * unit, rtol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
def test_what_has_no_proper_posterior_is_refused(shared):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(30, 3)) + 100, np.repeat([0, 1], 15)
    family = LKJNormal(shared=shared)
    family.with_defaults(X, y, 2)
    family.with_defaults(X[[0, 1, 15, 16]], y[[0, 1, 15, 16]], 2)  # fewer rows than columns
    flat = X.copy()
    flat[:, 1] = y
    with pytest.raises(ValueError, match=r"feature 1 .* does not vary within"):
        family.with_defaults(flat, y, 2)
    flat = X.copy()
    flat[:, 2] = 3 * X[:, 0] - X[:, 1]
    with pytest.raises(ValueError, match="linear functions of each other"):
        family.with_defaults(flat, y, 2)
    given = LKJNormal(sigma=pm.LogNormal.dist(0, 1), shared=shared)
    given.with_defaults(flat, y, 2)


def test_arguments_that_make_no_sense_are_refused():
    X, y = [[1.0], [2.0], [4.0], [7.0]], [0, 0, 1, 1]
    with pytest.raises(ValueError, match="eta must be > 0"):
        bg.LKJDiscriminant(eta=0.0).fit(X, y)
    with pytest.raises(ValueError, match="covariance must be"):
        bg.LKJDiscriminant(covariance="full").fit(X, y)


# ----------------------------------------------------------------------------------------- NUTS


def unequal_scales(rng: np.random.Generator, n: int, theta: Any) -> tuple[np.ndarray, np.ndarray]:
    y = np.repeat([0, 1], n)
    return LKJNormal().simulate(rng, theta, y), y


@pytest.mark.slow
def test_recovers_scales_far_apart_and_beats_its_conjugate_sibling():
    """A class up to fifty times narrower than the other: one Wishart scale suits neither."""
    rng = np.random.default_rng(11)
    omega = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.5], [0.3, 0.5, 1.0]])
    theta = {
        "mu": np.array([[0.0, 0.0, 0.0], [0.5, -0.5, 0.2]]),
        "sigma": np.array([[1.0, 1.0, 1.0], [0.02, 1.0, 0.05]]),
        "correlation": np.stack([omega, omega[::-1, ::-1]]),
    }
    X, y = unequal_scales(rng, 12, theta)
    X_test, y_test = unequal_scales(rng, 1000, theta)
    clf = bg.LKJDiscriminant(random_state=2).fit(X, y, progressbar=False)
    posterior, held = sound(clf), []
    for name, truth in theta.items():
        off = truth != 1 if name == "correlation" else np.full(truth.shape, True)
        held.append(inside(posterior[name], truth)[off])
    assert np.concatenate(held).mean() > 0.9
    with warnings.catch_warnings():  # how unlikely exactly, in the narrow class, is a wide row
        warnings.simplefilter("ignore", MonteCarloWarning)
        assert likelier(clf, bg.QuadraticDiscriminant().fit(X, y), X_test, y_test)

    # a row without a label, and two with missing cells
    missing_cells = X.copy()
    missing_cells[0, 0] = missing_cells[9, 1] = NAN
    labels = y.astype(float)
    labels[3] = NAN
    partial = bg.LKJDiscriminant(draws=200, chains=2, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few draws for a verdict
        partial.fit(missing_cells, labels, progressbar=False)
        accuracy = np.mean(partial.predict(X_test) == y_test)
    assert partial.posterior_["posterior_predictive"]["imputed_label"].shape == (2, 200, 1)
    assert accuracy > 0.9
