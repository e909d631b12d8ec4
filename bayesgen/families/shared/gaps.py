r"""Rows with missing cells under a Normal with full covariance, theta known.

With o the observed and m the missing cells of a row, and :math:`K = \Sigma_{mo}\Sigma_{oo}^{-1}`,

.. math:: x_o \sim \text{Normal}(\mu_o, \Sigma_{oo}), \qquad
          x_m \mid x_o \sim \text{Normal}(\mu_m + K(x_o - \mu_o), \; \Sigma_{mm} - K\Sigma_{om})

The missing cells are integrated out of the likelihood, exactly, and drawn afterwards. There is no
conjugate prior: each pattern of missing cells has its own :math:`\Sigma_{oo}^{-1}`.

Source: Little and Rubin, Statistical Analysis with Missing Data (3rd ed.), section 11.2.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bayesgen.numerics.special import Array


class Patterns(NamedTuple):
    """Rows sorted by which cells they have; P patterns."""

    order: Array  # (N,) rows, those of one pattern together
    first: Array  # (P + 1,) where each pattern begins in `order`
    seen: Array  # (P, D) bool

    @classmethod
    def of(cls, X: Array) -> "Patterns":
        """Of rows (N, D); NaN is a missing cell."""
        seen, which = np.unique(~np.isnan(X), axis=0, return_inverse=True)
        which = which.ravel()
        first = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=len(seen)))])
        return cls(np.argsort(which, kind="stable"), first, seen)

    def __iter__(self) -> Any:
        """(rows, observed columns, missing columns) of each pattern."""
        for p, seen in enumerate(self.seen):
            rows = self.order[self.first[p] : self.first[p + 1]]
            yield rows, np.flatnonzero(seen), np.flatnonzero(~seen)


def sigma_points(X: Array, weight: Array) -> tuple[Array, Array]:
    """At most 2D rows for each pattern, with the weight, mean and scatter of all that have it.

    No Normal can tell the two sets of rows apart, so that the likelihood of many rows of one class
    costs no more than that of few.

    Source: Julier and Uhlmann (1997), A new extension of the Kalman filter, section 3.
    """
    rows_out, weights_out = [], []
    for rows, columns, _ in Patterns.of(X):
        d, w = len(columns), weight[rows]
        if len(rows) <= max(1, 2 * d):
            rows_out.append(X[rows])
            weights_out.append(w)
            continue
        points = np.full((max(1, 2 * d), X.shape[1]), np.nan)
        if d:
            x = X[np.ix_(rows, columns)]
            mean = x[0] + w @ (x - x[0]) / w.sum()
            x = x - mean
            scatter = (x.T * w) @ x / w.sum()
            unit = np.sqrt(np.diagonal(scatter))
            unit = np.where(unit > 0, unit, 1.0)  # columns of any units: the axes of correlations
            size, axes = np.linalg.eigh(scatter / np.outer(unit, unit))
            step = (axes * np.sqrt(d * np.maximum(size, 0.0))).T * unit
            points[:, columns] = mean + np.concatenate([step, -step])
        rows_out.append(points)
        weights_out.append(np.full(len(points), w.sum() / len(points)))
    return np.concatenate(rows_out), np.concatenate(weights_out)


def conditional_mean(X: Array, mu: Array, sigma: Array) -> Array:
    """X (N, D) with the missing cells at their means given the observed ones; mu (D,)."""
    out = X.copy()
    for rows, seen, missing in Patterns.of(X):
        if len(missing):
            K = np.linalg.solve(sigma[np.ix_(seen, seen)], sigma[np.ix_(seen, missing)])
            out[np.ix_(rows, missing)] = mu[missing] + (X[np.ix_(rows, seen)] - mu[seen]) @ K
    return out


def draw_missing(
    rng: np.random.Generator, X: Array, y: Array, mu: Array, sigma: Array
) -> tuple[Array, Array, Array]:
    """The missing cells of rows, drawn given the observed ones under each of S draws of theta.

    Parameters
    ----------
    X : (N, D)
    y : (N,) class codes, or (S, N)
    mu : (S, C, D)
    sigma : (S, C, D, D), or (S, 1, D, D) for all classes

    Returns
    -------
    values : (S, M)
    row, column : (M,)
        In the order of the rows, and of the columns in a row.
    """
    row, column = np.nonzero(np.isnan(X))
    place = np.full(X.shape, -1)
    place[row, column] = np.arange(len(row))
    codes = np.broadcast_to(y, (len(mu), len(X)))
    out = np.empty((len(mu), len(row)))
    for rows, seen, missing in Patterns.of(X):
        if not len(missing):
            continue
        part = sigma[..., seen[:, None], seen]
        K = np.linalg.solve(part, sigma[..., seen[:, None], missing])  # (S, G, o, m)
        rest = sigma[..., missing[:, None], missing] - sigma[..., missing[:, None], seen] @ K
        root = np.linalg.cholesky(rest)
        z = rng.standard_normal((len(mu), len(rows), len(missing)))
        for c in range(mu.shape[1]):
            g = c if sigma.shape[1] > 1 else 0
            own = codes[:, rows] == c
            for k in np.flatnonzero(own.any(axis=0)):
                s = np.flatnonzero(own[:, k])
                step = X[rows[k], seen] - mu[s, c][:, seen]
                value = mu[s, c][:, missing] + np.einsum("so,som->sm", step, K[s, g])
                value += np.einsum("sij,sj->si", root[s, g], z[s, k])
                out[np.ix_(s, place[rows[k], missing])] = value
    return out, row, column


# ------------------------------------------------------------------------------------- in PyMC


def log_density(X: Array, mu: Any, sigma: Any, name: str) -> Any:
    """(N, C) tensor of log densities of the observed cells of rows, which are data of the model.

    Parameters
    ----------
    X : (N, D)
    mu, sigma : tensors (C, D), and (C, D, D) or (1, D, D)
    name : str
        Stands before the names of the data.
    """
    import pymc as pm
    import pytensor.tensor as pt

    at = Patterns.of(X)
    data = {"": np.nan_to_num(X), "_order": at.order, "_first": at.first, "_seen": at.seen * 1}
    rows = [pm.Data(f"{name}{key}", value) for key, value in data.items()]
    return _operations()[0](*rows, mu, pt.as_tensor(sigma))


def log_density_of_cells(x: Any, seen: Any, mu: Any, sigma: Any) -> Any:
    """The same of rows and of which cells are seen, tensors (N, D): each has its own pattern."""
    import pytensor.tensor as pt

    n = x.shape[0]
    return _operations()[0](x, pt.arange(n), pt.arange(n + 1), seen.astype("int64"), mu, sigma)


@cache
def _operations() -> tuple[Any, Any]:
    """`kernels.missing_cells.observed_normal` and its gradient as PyTensor operations.

    Graphs of PyTensor's own batched factorisations take numba a minute to compile, these seconds,
    and hold arrays (N, C, D, D). One pair of classes a process, so that equal graphs are equal.
    """
    from pytensor.gradient import disconnected_type
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op
    from pytensor.link.numba.dispatch.basic import register_funcify_default_op_cache_key
    from pytensor.tensor.type import tensor

    from bayesgen.numerics.kernels import missing_cells
    from bayesgen.numerics.kernels.compiling import version

    class ObservedNormalGradient(Op):
        __props__ = ()

        def make_node(self, *inputs: Any) -> Any:
            return Apply(self, list(inputs), [inputs[4].type(), inputs[5].type()])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            found = missing_cells.observed_normal_gradient(*inputs)
            for cell, value in zip(outputs, found, strict=True):
                cell[0] = value

    class ObservedNormal(Op):
        __props__ = ()

        def make_node(self, *inputs: Any) -> Any:
            return Apply(self, list(inputs), [tensor(dtype="float64", shape=(None, None))])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            outputs[0][0] = missing_cells.observed_normal(*inputs)

        def connection_pattern(self, node: Any) -> list[list[bool]]:
            return [[False]] * 4 + [[True]] * 2

        def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
            found: Any = ObservedNormalGradient()(*inputs, cotangents[0])
            return [*(disconnected_type() for _ in range(4)), found[0], found[1]]

    @register_funcify_default_op_cache_key(ObservedNormal)
    def observed_normal(op: Any, **kwargs: Any) -> Any:
        return missing_cells.observed_normal, version()

    @register_funcify_default_op_cache_key(ObservedNormalGradient)
    def observed_normal_gradient(op: Any, **kwargs: Any) -> Any:
        return missing_cells.observed_normal_gradient, version()

    return ObservedNormal(), ObservedNormalGradient()
