"""Three classes and more against exact draws, over sizes; compiled loops against NumPy's."""

from math import factorial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, ndtri

from bayesgen.families.capabilities import DensityCumulants
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.numerics import kernels
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.expansion import Joints
from bayesgen.predict.intervals import class_probability_intervals
from bayesgen.predict.request import IntervalRequest
from bayesgen.predict.uncertainty import entropies
from tests.predict.interval.cases import (
    FAMILIES,
    SHARED,
    WHOLE,
    case,
    fit,
    interval,
    log_joint,
    log_odds,
)
from tests.selection import rest_is_slow

# columns, training rows of each class, classes; a draw of theta of the last is a wide table
GRID = (
    *((2, 2, 3), (2, 1000, 3), (3, 30, 5), (10, 10, 3), (10, 100, 10), (10, 1000, 5)),
    *((4, 20, 26), (10, 200, 26), (100, 2, 3), (100, 50, 5), (1000, 10, 3), (1000, 1000, 3)),
)
NUMBERS = 2e7 if WHOLE else 4e6  # of all draws of theta of one cell of the grid
TAIL = 0.05


def errors(name, n_features, per_class, n_classes, most=200_000):
    """(K,) errors of the percentile of each end, the noise of one by the draws, and the routes."""
    model, X = case(name, n_features, per_class, n_classes=n_classes, new=8)
    size = n_features * n_classes * (n_features if name in ("lda", "qda") else 1)
    n = int(np.clip(NUMBERS / size, 4000, most))
    odds, found = log_odds(log_joint(model, X, n)), interval(model, X)
    low, high = (odds <= end for end in (found.log_odds_lower, found.log_odds_upper))
    miss = np.stack([low.mean(axis=0) - TAIL, high.mean(axis=0) - 1 + TAIL]).ravel()
    return miss, np.sqrt(TAIL * (1 - TAIL) / n), set(found.method.tolist())


def assert_small(misses, noise, limit=0.003):
    """99 of 100 within .003 and all within .006, beside what the draws' own noise adds."""
    misses, noise = (np.concatenate(v) for v in (misses, noise))
    far = np.abs(misses) > limit + 2 * noise  # noise alone is beyond 2 sd in 5 of 100
    assert far.mean() < 0.01, np.sort(np.abs(misses))[-10:]
    worst = -ndtri(1e-3 / len(misses) / 2) * noise
    assert (np.abs(misses) < 2 * limit + worst).all(), np.sort(np.abs(misses) - worst)[-5:]


@pytest.mark.parametrize(
    ("name", "size"), [("gaussian", (4, 100, 3)), ("bernoulli", (4, 30, 5)), ("lda", (2, 60, 3))]
)
def test_percentiles(name, size):
    miss, noise, routes = errors(name, *size, most=40_000)
    assert routes == {"margins"}
    assert_small([miss], [np.full(len(miss), noise)])


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_percentiles_over_the_grid(name):
    """Closed forms, fallbacks and draws together; whole, some fifteen minutes of a core."""
    misses, noise = [], []
    for size in GRID if WHOLE else GRID[:6]:
        if size[0] > 10 and name in ("lda", "qda"):
            continue  # a draw of theta is a matrix
        miss, sd, _ = errors(name, *size)
        misses.append(miss)
        noise.append(np.full(len(miss), sd))
    # a common covariance: points for its contrasts and for the classes, with ten of them .005
    assert_small(misses, noise, 0.005 if name == "lda" else 0.003)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("gaussian", "training"),
        pytest.param("gaussian", "training and row", marks=pytest.mark.slow),
        pytest.param("lda", "training", marks=pytest.mark.slow),
        pytest.param("gaussian_tied", "training and row", marks=pytest.mark.slow),
    ],
)
def test_compiled_loops_find_the_same_ends(name, given, monkeypatch):
    model, X = case(name, 3, 60, n_classes=3, new=5)
    found = []
    for limit in (1 << 60, 1):
        monkeypatch.setattr(kernels, "COMPILE_FROM", limit)
        found.append(
            class_probability_intervals(model, X, IntervalRequest(0.9, "eti", "auto", given))
        )
    one, other = found
    assert set(one.method) == {"margins"}
    width = one.log_odds_upper - one.log_odds_lower
    assert (np.abs(one.log_odds_lower - other.log_odds_lower) < 1e-3 * width).all()
    assert (np.abs(one.log_odds_upper - other.log_odds_upper) < 1e-3 * width).all()


@pytest.mark.parametrize("compiled", [False, True])
def test_the_average_of_narrow_distributions_is_nearly_a_step_function(compiled, monkeypatch):
    """One class weight known to a few parts in 10^4 beside two that are not known at all."""
    monkeypatch.setattr(kernels, "COMPILE_FROM", 1 if compiled else 1 << 60)
    for alpha in ([1e7, 2.0, 3.0], [6.0, 1e8, 4.0]):
        a = np.array(alpha)
        model = ClassModel(a, BetaBernoulli(alpha=np.ones((3, 1)), beta=np.ones((3, 1))))
        for given in ("training", "training and row"):
            for prob in (0.5, 0.8, 0.9):
                found = class_probability_intervals(
                    model, np.array([[np.nan]]), IntervalRequest(prob, "eti", "auto", given)
                )
                assert set(found.method) == {"margins"}
                beta = stats.beta(a.sum() - a, a)  # of what is left for the others
                low = beta.sf(expit(-found.log_odds_lower[0]))
                high = beta.sf(expit(-found.log_odds_upper[0]))
                assert found.error[0] < 0.01
                np.testing.assert_allclose(low, (1 - prob) / 2, atol=2 * found.error[0])
                np.testing.assert_allclose(high, (1 + prob) / 2, atol=2 * found.error[0])


@pytest.mark.parametrize("name", rest_is_slow(["gaussian", *SHARED], ["lda"]))
def test_compiled_entropies(name, monkeypatch):
    model, X = case(name, 3, 60, n_classes=4, new=3)
    X[0] *= 1000  # classes that are e^1000 times less likely than others
    found = []
    for limit in (1 << 60, 1):
        monkeypatch.setattr(kernels, "COMPILE_FROM", limit)
        found.append(entropies(model, X))
    for field in ("total", "aleatoric", "mean", "sd", "top", "error"):
        one, other = (getattr(f, field) for f in found)
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_half_the_mass_is_below_the_median_of_a_symmetric_row():
    model, X = case("gaussian", 2, 400, n_classes=3)
    wide, narrow = interval(model, X, 0.99), interval(model, X, 0.5)
    assert (wide.log_odds_lower < narrow.log_odds_lower).all()
    assert (wide.log_odds_upper > narrow.log_odds_upper).all()
    z = stats.norm.ppf(0.995) / stats.norm.ppf(0.75)
    ratio = (wide.log_odds_upper - wide.log_odds_lower) / (
        narrow.log_odds_upper - narrow.log_odds_lower
    )
    np.testing.assert_allclose(ratio, z, rtol=0.1)  # nearly normal with 400 rows of each class


def test_one_variance_for_the_columns_of_a_class():
    """A row of two observed columns of three, and one of none, by derivatives of the cgf."""
    rng, y = np.random.default_rng(3), np.repeat([0, 1, 2], 6)
    family = NormalInverseGamma(variance="class_spherical")
    model = fit(family, rng.normal(size=(18, 3)) + y[:, None], y, n_classes=3)
    X = np.array([[0.1, 2.0, 1.0], [0.3, np.nan, -1.0], [np.nan, np.nan, np.nan], [3.0, 3.0, 0.0]])
    angle, h = np.exp(2j * np.pi * (np.arange(32) + 0.5) / 32), 0.2
    for seen in (0, 1):
        found = model.family.capability(DensityCumulants).density_cumulants(X, seen)
        for c in range(3):
            t = np.zeros((32, 1, 3), dtype=complex)
            t[:, 0, c] = seen + h * angle
            values = model.family.cgf(X, t)
            for r in range(1, 6):
                each = (values * angle[:, None] ** -r).mean(axis=0).real * factorial(r) / h**r
                np.testing.assert_allclose(found[r - 1, :, c], each, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("pair", [None, (0, 1), (2, 6), (5, 8)])
def test_classes_that_depend_on_each_other_are_found_from_few_halves(pair):
    """The cgf of nine Normal log densities, of which one pair may be correlated."""
    covariance = np.eye(9)
    if pair is not None:
        covariance[pair, pair[::-1]] = 0.5
    asked = []

    class Normals:
        def capability(self, kind):
            return None

        def cgf(self, X, t):
            asked.append(len(t))
            return np.repeat(np.einsum("...c,cd,...d", t, covariance, t) / 2, len(X), axis=1)

    joints = Joints(SimpleNamespace(family=Normals(), alpha=np.ones(9)), np.zeros((3, 2)),
                    np.arange(9), None, None)  # fmt: skip
    assert joints.independent.tolist() == 3 * [pair is None]
    assert asked == [9]  # not one for each class: of 500 correlated ones that took 2 GB
