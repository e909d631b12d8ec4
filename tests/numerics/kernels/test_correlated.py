"""The compiled predictive of `NormalInverseWishart` against its NumPy form."""

import numpy as np
import pytest

from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.numerics import kernels

C = 3


def missing(X, rng):
    return np.where(rng.random(X.shape) < 0.2, np.nan, X)


FORMS = {
    "plain": lambda X, rng: X,
    "an offset of 1e6": lambda X, rng: X + 1e6,
    "classes far apart": lambda X, rng: X + 1e5 * (np.arange(len(X)) % C)[:, None],
    "one column": lambda X, rng: X[:, :1],
    "64 columns": lambda X, rng: rng.standard_normal((len(X), 64)),
    "units": lambda X, rng: X * np.logspace(-100, 100, X.shape[1]),
    "missing cells": missing,
    "Fortran order": lambda X, rng: np.asfortranarray(X),
    "one row": lambda X, rng: X[:1],
}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_predictive_is_that_of_numpy(form, shared, monkeypatch):
    rng = np.random.default_rng(4)
    X = FORMS[form](rng.standard_normal((300, 7)) @ rng.standard_normal((7, 7)), rng)
    complete = X[~np.isnan(X).any(axis=1)]
    family = NormalInverseWishart(shared=shared)
    stats = family.stats(complete, np.arange(len(complete)) % C, C)
    posterior = family.resolve(stats).update(stats)
    found = []
    with np.errstate(over="ignore", invalid="ignore"):
        for kernels_from in (1 << 60, 0):
            monkeypatch.setattr(kernels, "COMPILE_FROM", kernels_from)
            found.append(posterior.log_predictive(np.concatenate([X, 1e140 * X])))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)
