"""Directions along which documents vary, to start from and to take the signs from."""

from typing import Any

import numpy as np

from bayesgen.numerics.rows import row_sums
from bayesgen.numerics.special import Array


def directions(cells: Any, p: Array, n_factors: int) -> Array:
    r"""(K, D) orthonormal contrasts of words, along which the documents vary beyond chance.

    Leading eigenvectors e of :math:`P^{-1/2} (M - p p^\top) P^{-1/2}`, M the mean of
    :math:`(x x^\top - \text{diag}(x))/(L(L - 1))`, whose expectation is that of theta theta':
    what multinomial draws add is taken out. :math:`P^{1/2} e` weighs the words by what is known of
    them.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    n_features = len(p)
    length = row_sums(cells.data, cells.indptr)
    pairs = float(np.sum(length * (length - 1)))
    total = np.asarray(cells.sum(axis=0)).ravel()
    root = np.sqrt(p)

    def times(v: Array) -> Array:
        u = v.ravel() / root
        moment = (cells.T @ (cells @ u) - total * u) / max(pairs, 1.0)
        return np.asarray((moment - p * (p @ u)) / root)

    if n_features <= max(64, 2 * n_factors + 1):
        matrix = np.stack([times(e) for e in np.eye(n_features)])
        vectors = np.linalg.eigh((matrix + matrix.T) / 2)[1][:, ::-1]
    else:
        operator = LinearOperator((n_features, n_features), matvec=times, dtype=np.float64)
        start = np.cos(np.arange(n_features))  # the same each time
        vectors = eigsh(operator, k=n_factors, which="LA", v0=start)[1][:, ::-1]
    basis = root[:, None] * vectors[:, :n_factors]
    q = np.linalg.qr(basis - basis.mean(axis=0))[0].T
    return q * np.sign(q[np.arange(n_factors), np.abs(q).argmax(axis=1)])[:, None]
