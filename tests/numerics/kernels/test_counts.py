"""Counts in one pass: against SciPy and the NumPy form, for every kind of array."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import bayesgen as bg
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.numerics import kernels
from bayesgen.numerics.kernels import counts, threads

N_CLASSES = 4


def rows(n=180, d=7, seed=0):
    """Counts of all sizes, missing cells, a row without any; the last class is empty."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.5, 2.0 * 10.0 ** (np.arange(d) % 5), size=(n, d))).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[5] = np.nan
    return X, rng.integers(N_CLASSES - 1, size=n), rng.gamma(1.0, size=n)


def every_form(X):
    """The same counts in all kinds of memory, none of them writeable."""
    wide = np.empty((2 * len(X), 3 * X.shape[1]))
    wide[::2, 1::3] = X
    whole = np.nan_to_num(X)
    small = np.minimum(whole, 200)
    forms = [X, X.astype("f4"), np.asfortranarray(X), wide[::2, 1::3], X[::-1][::-1]]
    forms += [whole.astype("i8"), whole.astype(">i4"), small.astype("u1"), small > 0]
    forms += [np.log1p(X), np.where(X > 1e3, 1e12 + X, X), np.where(whole > 1e3, 1e200, whole)]
    for form in forms:
        form.flags.writeable = False
    return forms


@pytest.mark.parametrize("form", range(12))
def test_both_forms_of_the_family_agree(monkeypatch, form):
    X, y, w = rows()
    X = every_form(X)[form]
    for weight in (None, w):
        found = []
        for least in (1 << 60, 0):
            monkeypatch.setattr(kernels, "COMPILE_FROM", least)
            family = GammaPoisson(0.7)
            seen = family.stats(X, y, N_CLASSES, weight)
            posterior = family.resolve(seen).update(seen)
            found.append([seen.total, seen.rows, seen.log_factorial, posterior.log_predictive(X)])
        for a, b in zip(*found, strict=True):
            assert_allclose(b, a, rtol=1e-12, atol=1e-12)


def test_masses_are_those_of_scipy():
    X, _, _ = rows()
    X[X > 1e3] = 1e3  # SciPy's own masses lose digits beyond
    rng = np.random.default_rng(1)
    shape, rate = rng.gamma(2.0, size=(3, 7)), rng.gamma(2.0, size=(3, 7))
    each = stats.nbinom(shape[:, None], rate[:, None] / (1 + rate[:, None])).logpmf(X)
    assert_allclose(counts.log_masses(X, shape, rate), np.nansum(each, axis=2).T, rtol=1e-10)


def test_a_missing_cell_of_a_column_of_1e200_leaves_no_trace():
    shape, rate = np.array([[1e200, 2.0]]), np.array([[3.0, 4.0]])
    alone = counts.log_masses(np.array([[5.0]]), shape[:, 1:], rate[:, 1:])
    assert_array_equal(counts.log_masses(np.array([[np.nan, 5.0]]), shape, rate), alone)


def test_threads_do_not_change_a_bit(monkeypatch):
    X, _, _ = rows(9000, 100)
    shape = np.random.default_rng(2).gamma(1.0, size=(3, 100))
    found = []
    for n in (1, 2, 5):
        monkeypatch.setattr(threads, "n_threads", lambda n=n: n)
        found.append(counts.log_masses(X, shape, 2 * shape))
    for other in found[1:]:
        assert_array_equal(found[0], other)


@pytest.mark.parametrize("least", [0, 1 << 60])
def test_a_negative_count_is_refused(monkeypatch, least):
    monkeypatch.setattr(kernels, "COMPILE_FROM", least)
    X, y, _ = rows()
    clf = bg.PoissonNB().fit(X, y)
    X[4, 2] = -2
    for call in (lambda: bg.PoissonNB().fit(X, y), lambda: clf.predict(X)):
        with pytest.raises(ValueError, match="got -2 in row 4, column 'x2'"):
            call()
