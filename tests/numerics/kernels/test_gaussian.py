"""The compiled passes of `NormalInverseGamma` against its NumPy form and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.numerics import kernels
from tests.selection import rest_is_slow

N, D, C = 700, 7, 4  # the last class has no rows


def plain(monkeypatch):
    monkeypatch.setattr(kernels, "COMPILE_FROM", 1 << 60)


def compiled(monkeypatch):
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)


def some_rows(rng):
    y = rng.integers(0, C - 1, N)
    return rng.standard_normal((N, D)) + y[:, None], y


def with_gaps(X, rng):
    missing = rng.random(X.shape) < 0.3
    missing[:, 2] = True
    missing[5] = True
    return np.where(missing, np.nan, X)


FORMS = {
    "plain": lambda X, rng: X,
    "offset 1e6": lambda X, rng: X + 1e6,
    "float32": lambda X, rng: X.astype(np.float32),
    "float32 with an offset": lambda X, rng: (X + 1e4).astype(np.float32),
    "float16": lambda X, rng: X.astype(np.float16),
    "integers": lambda X, rng: rng.integers(-5, 9, X.shape),
    "bytes": lambda X, rng: rng.integers(0, 255, X.shape, dtype=np.uint8),
    "booleans": lambda X, rng: X > 0,
    "Fortran order": lambda X, rng: np.asfortranarray(X),
    "every third column": lambda X, rng: np.repeat(X, 3, axis=1)[:, ::3],
    "backwards": lambda X, rng: X[::-1, ::-1],
    "big-endian": lambda X, rng: X.astype(">f8"),
    "gaps": with_gaps,
    "gaps and an offset": lambda X, rng: with_gaps(X + 1e6, rng),
    "one row": lambda X, rng: X[:1],
    "no variation": lambda X, rng: np.full(X.shape, 0.1),
    "huge": lambda X, rng: X * 1e150,
    "more than one block": lambda X, rng: np.tile(X, (80, 1)),
}


# of each of these the kernels are compiled anew
OF_SINGLE_PRECISION = ("float32", "float32 with an offset", "float16")


@pytest.fixture(params=rest_is_slow(FORMS, set(FORMS).difference(OF_SINGLE_PRECISION)))
def rows(request):
    rng = np.random.default_rng(3)
    X, y = some_rows(rng)
    X = FORMS[request.param](X, rng)
    X = X.view()
    X.flags.writeable = False
    return X, np.resize(y, len(X))


def same(a, b, tol=1e-12):
    """Equal up to rounding of the larger numbers of the same field."""
    assert a.shape == b.shape
    finite = np.isfinite(b)
    np.testing.assert_array_equal(a[~finite], b[~finite])
    scale = np.abs(b[finite]).max(initial=1e-300)
    np.testing.assert_allclose(a[finite] / scale, b[finite] / scale, rtol=tol, atol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_are_those_of_numpy(rows, weighted, monkeypatch):
    X, y = rows
    weight = np.random.default_rng(5).random(len(X)) if weighted else None
    family = NormalInverseGamma()
    plain(monkeypatch)
    expected = family.stats(X, y, C, weight)
    compiled(monkeypatch)
    found = family.stats(X, y, C, weight)
    np.testing.assert_array_equal(found.shift, expected.shift)
    for name in ("n", "mean", "scatter"):
        for a, b in zip(getattr(found, name).T, getattr(expected, name).T, strict=True):
            same(a, b)


@pytest.mark.parametrize("order", ["drifting", "in jumps", "sorted by class"])
def test_rows_in_any_order_of_time(order, monkeypatch):
    """Class means that move by many standard deviations from one part of the rows to the next."""
    rng = np.random.default_rng(2)
    n = 40_000
    X, y = rng.standard_normal((n, 5)), rng.integers(0, 3, n)
    if order == "sorted by class":
        y.sort()
        X += 1e4 * y[:, None]
    elif order == "drifting":
        X += np.linspace(0, 1e4, n)[:, None]
    else:
        X[30_000:] += 1e4
    plain(monkeypatch)
    expected = NormalInverseGamma().stats(X, y, 3)
    compiled(monkeypatch)
    found = NormalInverseGamma().stats(X, y, 3)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(found.scatter, expected.scatter, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_squares_that_overflow(monkeypatch):
    X, y = some_rows(np.random.default_rng(0))
    X[:, 1] *= 1e200
    plain(monkeypatch)
    expected = NormalInverseGamma().stats(X, y, C)
    compiled(monkeypatch)
    found = NormalInverseGamma().stats(X, y, C)
    assert np.isposinf(expected.scatter[: C - 1, 1]).all()
    np.testing.assert_allclose(found.scatter, expected.scatter, rtol=1e-12)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)


def test_statistics_are_those_of_exact_fractions(monkeypatch):
    """Also where the first row is an outlier, about which all the others are the same."""
    rng = np.random.default_rng(0)
    X = 1e6 + rng.standard_normal((60, 2))
    X[0, 1] = 0.0
    y = np.r_[1, np.zeros(59, dtype=int)]
    compiled(monkeypatch)
    found = NormalInverseGamma().stats(X, y, 2)
    for j in range(2):
        cells = [Fraction(float(v)) for v in X[1:, j]]
        mean = sum(cells) / len(cells)
        scatter = float(sum((v - mean) ** 2 for v in cells))
        assert abs(found.scatter[0, j] / scatter - 1) < 1e-8 if j else 1e-9
        assert abs(found.mean[0, j] + found.shift[j] - float(mean)) < 1e-9


def test_a_large_fit_is_the_same_whichever_way_and_refuses_infinity(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = some_rows(rng)
    plain(monkeypatch)
    expected = bg.GaussianNB().fit(X, y)
    compiled(monkeypatch)
    found = bg.GaussianNB().fit(X, y)
    assert abs(found.log_evidence_ - expected.log_evidence_) < 1e-9 * abs(expected.log_evidence_)
    for value in (np.inf, -np.inf):
        for row in (0, 400):
            bad = X.copy()
            bad[row, 3] = value
            for weight in (None, np.ones(len(X))):
                with pytest.raises(ValueError, match="Input X contains infinity"):
                    bg.GaussianNB().fit(bad, y, weight)
            with pytest.raises(ValueError, match="Input X contains infinity"):
                bg.GaussianNB().fit(X, y).partial_fit(bad, y)


@pytest.mark.parametrize("variance", ["class", "tied", "class_spherical", "spherical"])
@pytest.mark.parametrize("n", [N, 40], ids=["certain", "in doubt"])
def test_predictive_densities_are_those_of_numpy(rows, variance, n, monkeypatch):
    X, y = rows
    plain(monkeypatch)
    family = NormalInverseGamma(variance=variance)
    stats = family.stats(X[-n:], y[-n:], C)
    posterior = family.resolve(stats).update(stats)
    expected = posterior.log_predictive(X)
    compiled(monkeypatch)
    np.testing.assert_allclose(posterior.log_predictive(X), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("variance", ["class", "tied", "class_spherical", "spherical"])
def test_many_columns_and_cells_that_overflow(variance, monkeypatch):
    """150 columns, of which some are left out and some have gaps; single cells and whole rows."""
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((300, 150)) + 1e6, rng.integers(0, 2, 300)
    X[:, 70] = 3.0
    X[::7, 100:110] = np.nan
    plain(monkeypatch)
    family = NormalInverseGamma(variance=variance, nu=0.5)
    stats = family.stats(X, y, 2)
    posterior = family.resolve(stats).update(stats)
    X[0, 3], X[1], X[2], X[3, 80:] = 1e200, -1e200, 1e20, 1e307
    expected = posterior.log_predictive(X)
    assert np.isfinite(expected).all()
    compiled(monkeypatch)
    np.testing.assert_allclose(posterior.log_predictive(X), expected, rtol=1e-12)


@pytest.mark.parametrize("variance", ["class", "tied", "class_spherical", "spherical"])
@pytest.mark.parametrize("spread", [1.0, 1e3], ids=["near", "far"])
def test_batches_of_draws_are_scored_as_one_by_one(rows, variance, spread):
    """In one product, or the direct form where draws are many standard deviations apart."""
    X, y = rows
    X = X[:900]
    if float(np.nanmax(X)) > 1e100:
        pytest.skip("squares overflow: see below")
    family = NormalInverseGamma(variance=variance)
    stats = NormalInverseGamma().stats(X, y[: len(X)], C)
    posterior = family.resolve(stats).update(stats)
    theta = posterior.draw(np.random.default_rng(1), 7)
    middle = theta["mu"].mean(axis=0)
    theta["mu"] = middle + spread * (theta["mu"] - middle)
    theta["mu"][3] += 100 * np.sqrt(posterior.sum_of_squares / posterior.nu).max()
    found = posterior.log_likelihood(X, theta)
    assert found.shape == (7, len(X), C)
    x, live = np.asarray(X, dtype=np.float64), posterior.live
    for s in range(7):
        sigma2 = posterior._variance_of({"sigma2": theta["sigma2"][s]})
        sigma2 = np.broadcast_to(sigma2, middle.shape)
        for c in range(C):
            terms = np.log(2 * np.pi * sigma2[c]) + (x - theta["mu"][s, c]) ** 2 / sigma2[c]
            expected = -0.5 * np.nansum(terms[:, live], axis=1)
            size = np.nansum(np.abs(terms[:, live]), axis=1)
            assert (np.abs(found[s, :, c] - expected) <= 1e-12 * np.maximum(size, 1)).all()


def test_scores_of_absurd_rows_and_draws():
    family = NormalInverseGamma.examples(2, 3)[0]
    X = np.array([[0.0, 1, 2], [1e200, 0, 0], [np.nan, 1e200, 0], [np.nan] * 3])
    mu = np.zeros((4, 2, 3)) + np.arange(4)[:, None, None]
    sigma2 = np.ones((4, 2, 3))
    sigma2[2] = 1e-300
    found = family.log_likelihood(X, {"mu": mu, "sigma2": sigma2})
    assert np.isneginf(found[:, 1:3]).all()
    assert (found[:, 3] == 0).all()
    assert np.isfinite(found[[0, 1, 3], 0]).all()
    assert family.log_likelihood(X[:0], {"mu": mu, "sigma2": sigma2}).shape == (4, 0, 2)
    assert family.log_likelihood(X, {"mu": mu[:0], "sigma2": sigma2[:0]}).shape == (0, 4, 2)
