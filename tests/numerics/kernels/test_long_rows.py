"""Rows of very many columns: equal terms, whose rounding errors all have one sign, keep digits."""

import math

import numpy as np
import pytest
from scipy.stats import nbinom

from bayesgen.families.shared.codes import look_up
from bayesgen.numerics import kernels
from bayesgen.numerics.kernels import codes, counts, gaussian
from bayesgen.numerics.kernels.compiling import as_data

D = 300_000
TERM = math.log(0.3)


def _student():
    out, one, zero = np.empty((1, 1)), as_data(np.ones((1, D))), as_data(np.zeros((1, D)))
    columns, norm = as_data(np.arange(D, dtype=np.uint64)), as_data(np.full((1, D), 0.7))
    gaussian.product_t(one, columns, zero[0], zero, one, norm, one, out)
    return out, 0.7 - math.log(2)


def _counts():
    shape = np.full((1, D), 1.5)
    return counts.log_masses(np.ones((1, D)), shape, shape), nbinom.logpmf(1, 1.5, 0.6)


SUMS = {
    "student": _student,
    "categories": lambda: (look_up(np.zeros((1, D)), np.full((1, D, 3), TERM)), TERM),
    "counts": _counts,
    "bits": lambda: (
        codes.log_masses(np.ones((1, D)), np.full((1, D), TERM), np.zeros((1, D)), 0.5),
        TERM,
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_long_row(name, monkeypatch):
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    out, term = SUMS[name]()
    np.testing.assert_allclose(out.item(), D * term, rtol=1e-13)
