r"""Coordinates in which the posterior of a class of correlated words is round.

A document x of length L has :math:`\log p(x) = \log \sum_q w_q e^{x\ell + z_q x\lambda - L\,
\text{lse}(\ell + z_q \lambda)}`, with log word probabilities ell and loadings lambda, both known up
to a constant: E, the contrasts of the words, and :math:`\ell = E t, \lambda = E \beta`. Under a
Dirichlet prior on softmax(ell) and :math:`\beta \sim \text{Normal}(0, s^2)` the mode of (t, beta)
is found, and with H the negative second derivatives there,

.. math:: t \mid \beta \approx \text{Normal}(t_0 - H_{tt}^{-1} H_{t\beta} (\beta - \beta_0),
          H_{tt}^{-1}), \qquad
          A = H_{\beta\beta} - H_{\beta t} H_{tt}^{-1} H_{t\beta} = V\,\text{diag}(a)\,V^\top

A, the likelihood's part, is what the rows say of beta when t is integrated out. In its axes, and
whatever the spread s,

.. math:: b = V^\top\beta, \qquad b_i \mid s \approx
          \text{Normal}\Big(\frac{p_i}{a_i + s^{-2}}, \frac{1}{a_i + s^{-2}}\Big)

In distances from these means, in these standard deviations, the posterior is near the standard
Normal: words that are always used together, and words never used, are no trouble, nor is a spread
near 0.

Source: Papaspiliopoulos, Roberts and Sköld (2007), A general framework for the parametrization of
hierarchical models; Girolami and Calderhead (2011), Riemann manifold Langevin and Hamiltonian Monte
Carlo methods (curvature as coordinates; here it is taken once, at the mode).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, helmert
from scipy.optimize import minimize
from scipy.special import logsumexp

from bayesgen.numerics.rows import row_sums
from bayesgen.numerics.special import Array

_SWEEPS = 3  # of mode and spread, in turns


class Guide(NamedTuple):
    """Of C classes: what turns D - 1 round coordinates of each into ell and lambda."""

    origin: Array  # (C, D) ell at the mode
    place: Array  # (C, D - 1) b at the mode
    slope: Array  # (C, D, D - 1) of ell in b
    width: Array  # (C, D, D - 1) of ell in round coordinates
    axes: Array  # (C, D, D - 1) of lambda: E V
    information: Array  # (C, D - 1) a
    pull: Array  # (C, D - 1) p

    @classmethod
    def of(cls, classes: list[Any], alpha: Array, z: Array, log_w: Array, first: Array) -> "Guide":
        """Of the documents of each class.

        Parameters
        ----------
        classes : CSR matrices (N_c, D)
        alpha : (C, D)
        z, log_w : (Q,)
        first : (C, D) loadings to start from
        """
        parts = [
            _of_class(_Documents(cells, a, z, log_w), start)
            for cells, a, start in zip(classes, alpha, first, strict=True)
        ]
        return cls(*(np.stack(part) for part in zip(*parts, strict=True)))


def _of_class(documents: "_Documents", first: Array) -> tuple[Array, ...]:
    n_words = len(first)
    E = helmert(n_words).T
    at = np.concatenate([np.log(documents.pilot), first])
    s = 1.0
    for _ in range(_SWEEPS):
        found = minimize(
            documents.value_and_gradient, at, (s,), "L-BFGS-B", True, options={"maxiter": 1000}
        )
        at = found.x
        H = documents.information(at)
        tt, tb, bb = (E.T @ part @ E for part in (H[0], H[1], H[2]))
        size, axes = eigh(tt)
        root = axes / np.sqrt(np.maximum(size, 1e-3 * size.max()))  # H_tt^-1 = root root'
        slope = -root @ (root.T @ tb)
        a, V = eigh(bb + tb.T @ slope)
        a = np.maximum(a, 0.0)
        beta = V.T @ (E.T @ at[n_words:])
        s = float(np.sqrt(np.mean(beta**2 + 1 / (a + s**-2))))
    ell = at[:n_words]
    return ell - ell.mean(), beta, E @ slope @ V, E @ root, E @ V, a, (a + s**-2) * beta


class _Documents:
    """The log likelihood of the documents of a class, its slope and its curvature."""

    def __init__(self, cells: Any, alpha: Array, z: Array, log_w: Array) -> None:
        self.cells, self.alpha, self.z, self.log_w = cells, alpha, z, log_w
        self.length = row_sums(cells.data, cells.indptr)
        self.total = np.asarray(cells.sum(axis=0)).ravel()
        self.pilot = (self.total + alpha) / (self.total + alpha).sum()

    def value_and_gradient(self, at: Array, s: float) -> tuple[float, Array]:
        """Minus the log posterior density at (ell, lambda) given s, and its gradient."""
        ell, loading = np.split(at, 2)
        log_p, r, P = self._parts(ell, loading)
        own = logsumexp(ell)
        value = log_p.sum() + self.alpha @ (ell - own) - loading @ loading / (2 * s**2)
        weight = self.length @ r
        shown = self.cells.T @ (r @ self.z)
        slope = self.total - weight @ P + self.alpha - self.alpha.sum() * np.exp(ell - own)
        slope_loading = shown - (self.z * weight) @ P - loading / s**2
        return -value, -np.concatenate([slope, slope_loading])

    def _parts(self, ell: Array, loading: Array) -> tuple[Array, Array, Array]:
        """(N,) log p, (N, Q) which z each document has, (Q, D) word probabilities at each z."""
        words = ell + self.z[:, None] * loading
        lse = logsumexp(words, axis=1)
        exponent = np.outer(self.cells @ loading, self.z) - np.outer(self.length, lse) + self.log_w
        log_p = logsumexp(exponent, axis=1)
        r = np.exp(exponent - log_p[:, None])
        return log_p + self.cells @ ell, r, np.exp(words - lse[:, None])

    def information(self, at: Array) -> tuple[Array, Array, Array]:
        """Minus the second derivatives: of ell (prior included), of ell and lambda, of lambda."""
        ell, loading = np.split(at, 2)
        _, r, P = self._parts(ell, loading)
        prior = np.exp(ell - logsumexp(ell))
        X, L, z = self.cells, self.length, self.z
        weight, square = L @ r, (L * L) @ r
        drawn = np.asarray(X.T @ (r * L[:, None]))  # (D, Q)
        mean = [np.asarray(X.multiply((r @ z**k)[:, None]).todense()) for k in (0, 1)]
        mean = [m - L[:, None] * ((r * z**k) @ P) for k, m in zip((0, 1), mean, strict=True)]
        out = []
        for k, (first, second) in enumerate(((0, 0), (0, 1), (1, 1))):
            zk = z**k
            expected = np.diag((weight * zk) @ P) - (P.T * (weight * zk)) @ P
            cross = (drawn * zk) @ P
            moment = np.asarray((X.T @ X.multiply((r @ zk)[:, None])).todense())
            moment = moment - cross - cross.T + (P.T * (square * zk)) @ P
            out.append(expected - moment + mean[first].T @ mean[second])
        total = self.alpha.sum()
        out[0] = out[0] + total * (np.diag(prior) - np.outer(prior, prior))
        return out[0], out[1], out[2]
