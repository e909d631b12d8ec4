"""Scatter statistics: exact to 1e-12 in every form of data."""

import numpy as np
import pytest

from bayesgen.families.conjugate import normal_inverse_wishart
from bayesgen.families.conjugate.normal_inverse_wishart import MissingCellError, ScatterStats

RNG = np.random.default_rng(5)


def exact(X, y, n_classes, weight, shared, shift):
    """Two passes in extended precision: another road to the same numbers."""
    X = np.asarray(X, dtype=np.longdouble) - shift
    w = np.ones(len(X), dtype=np.longdouble) if weight is None else weight.astype(np.longdouble)
    n, d = np.zeros(n_classes), X.shape[1]
    mean, scatter = (
        np.zeros((n_classes, d), np.longdouble),
        np.zeros((n_classes, d, d), np.longdouble),
    )
    for c in range(n_classes):
        of_class = (y == c) & (w > 0)
        if of_class.any():
            n[c] = w[of_class].sum()
            mean[c] = (w[of_class, None] * X[of_class]).sum(axis=0) / n[c]
            z = X[of_class] - mean[c]
            scatter[c] = (z * w[of_class, None]).T @ z
    return n, mean, scatter.sum(axis=0, keepdims=True) if shared else scatter


def check(X, y, n_classes, weight=None, tol=1e-12):
    for shared in (False, True):
        stats = ScatterStats.of_rows(X, y, n_classes, weight, shared=shared)
        n, mean, expected = exact(X, y, n_classes, weight, shared, stats.shift)
        np.testing.assert_allclose(stats.n, n, rtol=1e-14)
        spread = np.sqrt(np.diagonal(expected, axis1=1, axis2=2)).astype(np.float64)
        scale = spread[:, :, None] * spread[:, None, :]
        error = np.abs(stats.scatter - expected)
        assert np.all(error <= tol * scale + 1e-300)
        sd = np.sqrt(np.square(spread).sum(axis=0) / n.sum())
        assert np.all(np.abs(stats.mean - mean)[n > 0] <= 1e-12 * (np.abs(mean[n > 0]) + sd))
        np.testing.assert_array_equal(stats.scatter, stats.scatter.swapaxes(1, 2))


@pytest.fixture(params=["one block", "blocks of 7 rows"])
def both_ways(request, monkeypatch):
    if request.param != "one block":
        monkeypatch.setattr(normal_inverse_wishart, "_CELLS", 35)
        monkeypatch.setattr(normal_inverse_wishart, "_ROWS", 7)
        monkeypatch.setattr(normal_inverse_wishart, "_ROWS_A_CLASS", 1)


def rows(n=200, d=5, n_classes=4):
    y = RNG.integers(n_classes - 1, size=n)  # the last class has no row
    X = RNG.standard_normal((n, d)) @ RNG.standard_normal((d, d)) + 3.0 * y[:, None]
    return X, y, n_classes


FORMS = {
    "C order": lambda X: X,
    "Fortran order": np.asfortranarray,
    "strides": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: np.rint(100 * X).astype(np.int64),
    "uint8": lambda X: np.abs(np.rint(10 * X)).astype(np.uint8),
    "bool": lambda X: X > 0,
    "offset 1e6": lambda X: X + 1e6,
    "offsets by column": lambda X: X * np.logspace(-8, 8, X.shape[1]) + np.logspace(0, 14, 5),
    "one row": lambda X: X[:1],
}


@pytest.mark.parametrize("form", FORMS)
def test_two_passes_in_extended_precision(form, both_ways):
    X, y, n_classes = rows()
    X = FORMS[form](X)
    X.flags.writeable = False
    y = y[: len(X)]
    check(X, y, n_classes)
    check(X, y, n_classes, (RNG.integers(3, size=len(X)) + (len(X) == 1)) * 0.75)
    order = np.argsort(y, kind="stable")
    check(X[order], y[order], n_classes)


def test_an_outlier_in_the_first_row_costs_no_digits(both_ways):
    X, y, n_classes = rows()
    y[0], y[1:] = 3, np.minimum(y[1:], 2)  # of a class of its own: no scatter to hide in
    X[0] = 1e200
    check(X, y, n_classes)


@pytest.mark.parametrize("d", [1, 2, 37, 300])
def test_many_and_few_columns(d, both_ways):
    X, y, n_classes = rows(n=64, d=d)
    check(X, y, n_classes)


def test_the_first_missing_cell_is_named(both_ways):
    X, y, n_classes = rows()
    X[150, 3] = X[120, 2] = X[120, 4] = np.nan
    with pytest.raises(MissingCellError, match="first in row 120, column 2") as error:
        ScatterStats.of_rows(X, y, n_classes)
    assert (error.value.row, error.value.column) == (120, 2)
