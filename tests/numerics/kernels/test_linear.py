import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.shared import gaussian
from bayesgen.numerics import kernels
from bayesgen.numerics.kernels.compiling import as_rows
from bayesgen.numerics.kernels.linear import add_scores


@pytest.mark.parametrize("n_scores", [1, 2, 5])
@pytest.mark.parametrize("n_features", [1, 7, 1025])
def test_scores_are_a_product_of_matrices(n_scores, n_features):
    rng = np.random.default_rng(0)
    x = 1e6 + rng.standard_normal((40, n_features))
    x[3, -1], x[5, 0] = np.nan, np.inf
    centre, w = x[0].copy(), rng.standard_normal((n_scores, n_features))
    out = np.ones((40, n_scores))
    add_scores(as_rows(x), centre, w, out)
    expected = 1 + (x - centre) @ w.T
    keep = np.isfinite(x).all(axis=1)
    np.testing.assert_allclose(out[keep], expected[keep], rtol=1e-12, atol=1e-12)
    assert not np.isfinite(out[~keep]).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_both_forms_agree(dtype, order, monkeypatch):
    """Far offset, a column that is left out, three draws."""
    rng = np.random.default_rng(1)
    X = np.asarray(100 + rng.standard_normal((60, 6)), dtype=dtype, order=order)
    columns = np.array([0, 1, 3, 4, 5])
    centre, w, level = X[0, columns].astype(float), rng.random((3, 2, 5)), rng.random((3, 2))
    found = []
    for compile_from in (0, 1 << 60):
        monkeypatch.setattr(kernels, "COMPILE_FROM", compile_from)
        found.append(gaussian.linear_scores(X, slice(None), columns, centre, w, level))
    assert found[0].shape == (3, 60, 2)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-13)
    np.testing.assert_allclose(
        found[0], np.einsum("nd,scd->snc", X[:, columns] - centre, w) + level[:, None], rtol=1e-13
    )


def test_a_plug_in_with_missing_cells_is_one_answer(monkeypatch):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((200, 4)), rng.integers(0, 3, 200)
    clf = bg.LinearDiscriminant().fit(X, y)
    X[::7, 2] = np.nan
    expected = clf.predict_proba(X, method="posterior_mean")
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    np.testing.assert_allclose(clf.predict_proba(X, method="posterior_mean"), expected, rtol=1e-10)
