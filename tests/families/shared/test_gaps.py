"""Missing cells drawn given the observed ones, against the precision matrix."""

import numpy as np

from bayesgen.families.shared.gaussian import draw_missing


def test_missing_cells_are_drawn_from_their_conditional_normal():
    rng = np.random.default_rng(0)
    n, mu = 9000, np.array([[[0.0, 1, 2], [50, 0, -50], [5, 5, 5]]])  # one draw of three classes
    root = rng.normal(size=(1, 3, 3, 3))
    sigma = root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(3)
    y = np.arange(n) % 3
    X = mu[0, y] + rng.normal(size=(n, 3))
    X[::2, 1] = X[1::2, 2] = np.nan
    X[::5] = np.nan
    values, row, column = draw_missing(rng, X, y, mu, sigma)
    np.testing.assert_array_equal(np.stack([row, column], axis=1), np.argwhere(np.isnan(X)))
    full = X.copy()
    full[row, column] = values[0]
    step, precision = full - mu[0, y], np.linalg.inv(sigma[0])[y]
    # given all other cells a cell is Normal with precision P_jj about -sum_k P_jk d_k / P_jj
    diagonal = np.diagonal(precision, axis1=1, axis2=2)
    z = (np.einsum("njk,nk->nj", precision, step) / np.sqrt(diagonal))[row, column]
    for own in (y[row] == c for c in range(3)):
        m = own.sum()
        assert abs(z[own].mean()) < 5 / np.sqrt(m)
        assert abs(z[own].var() - 1) < 5 * np.sqrt(2 / m)
