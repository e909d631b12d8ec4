r"""How far classes stand apart in log-odds: what bits and categories that pool them share.

The n deviations of a column are a Normal vector z that its radius stretches,

.. math:: \delta = \tau z s(\omega u), \qquad s(x) = e^{\text{asinh}\, x}, \qquad
          u = (|z|^2 - n) / \sqrt{2n}

The rows determine delta, and z through tau and omega alone: where they say much z, tau and omega
lie on a narrow bent ridge, where they say little delta, tau and omega on another. Sampled is

.. math:: v = \tau^a z s(a \omega u)

z for a = 0 and delta for a = 1, with a for each column from what its rows are worth beside the
prior. Its density is that of z, over
:math:`\tau^{an} s^n (1 + 2 k |z|^2 / \sqrt{1 + x^2})`, where :math:`x = a\omega u` and
:math:`k = a \omega / \sqrt{2n}`.

Source: Papaspiliopoulos, Roberts and Sköld (2007), A general framework for the parametrization of
hierarchical models (partial centring).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bayesgen.families.shared.pymc_parts import variable
from bayesgen.numerics.special import Array

SPREAD = 0.5  # median of tau, in log-odds


def declare_inequality(prefix: str, given: Any) -> Any:
    """How unequal columns are in the spread of their classes: half-Normal with 0.5 by default."""
    import pymc as pm

    name = f"{prefix}inequality"
    return variable(name, given, (), lambda name, _: pm.HalfNormal(name, 0.5))


def declare_spread(prefix: str, given: Any) -> Any:
    """Spread ``tau`` of the classes about the base log-odds: log-Normal about 0.5 by default."""
    import pymc as pm

    name = f"{prefix}tau"
    return variable(name, given, (), lambda name, _: pm.LogNormal(name, np.log(SPREAD), 1.0))


def known_share(share: Any) -> Any:
    """Information on the difference of a cell to the other classes, beside that of the prior.

    Parameters
    ----------
    share : tensor (class, ...)
        I_c / (sum_c I_c + 1 / SPREAD^2), I_c the information of the rows of a class.

    Returns
    -------
    tensor (class, ...)
        1 where the two are equal.
    """
    import pytensor.tensor as pt

    total = share.sum(axis=0)
    return share * (total - share) / pt.maximum(total * (1 - total), 1e-9)


def class_axes(share: Array) -> Array:
    """(C, C, D) orthonormal: contrasts of the classes about which the rows say as much as they can.

    A Normal vector is as Normal in these axes: the prior does not depend on them.

    Parameters
    ----------
    share : (C, D), as in `known_share`
    """
    w = np.asarray(share, dtype=np.float64).T
    information = w[:, :, None] * np.eye(w.shape[1]) - w[:, :, None] * w[:, None, :]
    return np.ascontiguousarray(np.moveaxis(np.linalg.eigh(information)[1], 0, 2))


def declare_deviations(
    prefix: str,
    tau: Any,
    omega: Any,
    centring: Any,
    number: Any,
    column: Any,
    by_column: Callable[[Any], Any],
    shape: tuple[int, int],
    cell_dim: str,
) -> Any:
    """Deviations of the classes about the base log-odds, by the free variable ``deviation_raw``.

    Parameters
    ----------
    centring : tensor (feature,)
        a, from 0 to 1.
    number : (feature,)
        n, the numbers of cells that make a column, in all classes.
    column : int (cell,)
        Of which column a cell is.
    by_column : sums (class, cell) to (feature,)
    shape : numbers of classes and of cells
    cell_dim : str
        Dim of the cells, beside ``class_axis``.

    Returns
    -------
    tensor (class, cell)
    """
    import pymc as pm
    import pytensor.tensor as pt

    unit = 1 / np.sqrt(2.0 * np.asarray(number))
    count = pt.as_tensor(np.asarray(number, dtype=np.float64))

    def stretched(z: Any, scale: Any, bend: Any, size: Any) -> Any:
        excess = bend * (by_column(pt.sqr(z)) - count)
        return z * scale * _stretch(excess)[column]

    def draw(scale: Any, bend: Any, size: Any) -> Any:
        return stretched(pm.Normal.dist(0.0, 1.0, size=scale.shape), scale, bend, size)

    def log_p(value: Any, scale: Any, bend: Any) -> Any:
        y = _operation()(by_column(pt.sqr(value / scale)), bend, count)
        excess = bend * (y - count)
        root = pt.sqrt(1 + pt.sqr(excess))
        out = -y / 2 - count * pt.log(excess + root) - pt.log1p(2 * bend * y / root)
        return out.sum() - (pt.log(scale) + np.log(2 * np.pi) / 2).sum()

    bend = centring * omega * unit
    scale = pt.exp(centring * pt.log(tau))
    cells = pt.ones((shape[0], 1)) * scale[column]
    pm.modelcontext(None).add_coords({f"{prefix}class_axis": np.arange(shape[0])})
    raw = pm.CustomDist(
        f"{prefix}deviation_raw",
        cells,
        bend,
        dist=draw,
        logp=log_p,
        support_point=lambda rv, size, *inputs: pt.zeros_like(rv),
        signature="(c,f),(d)->(c,f)",
        class_name="StretchedNormal",
        shape=shape,
        dims=(f"{prefix}class_axis", cell_dim),
    )
    y = _operation()(by_column(pt.sqr(raw / cells)), bend, count)
    ratio = _stretch(omega * unit * (y - count)) / _stretch(bend * (y - count))
    return raw * (tau / scale * ratio)[column]


def _stretch(excess: Any) -> Any:
    """exp(asinh(excess)) > 0: grows and falls like a line, so that NUTS meets no cliff."""
    import pytensor.tensor as pt

    return excess + pt.sqrt(1 + pt.sqr(excess))


@cache
def _operation() -> Any:
    """`kernels.stretched.squared_radius` as a PyTensor operation on (..., feature)."""
    import pytensor.tensor as pt
    from pytensor.gradient import disconnected_type
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op
    from pytensor.graph.replace import _vectorize_node
    from pytensor.link.numba.dispatch.basic import register_funcify_default_op_cache_key
    from pytensor.tensor.type import tensor

    from bayesgen.numerics.kernels.compiling import version
    from bayesgen.numerics.kernels.stretched import squared_radius

    class SquaredRadius(Op):
        __props__ = ()

        def make_node(self, *inputs: Any) -> Any:
            shape = max((i.type.shape for i in inputs), key=len)
            return Apply(self, list(inputs), [tensor(dtype="float64", shape=shape)])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            every = np.broadcast_arrays(*inputs)
            flat = squared_radius(*(np.ravel(a) for a in every))
            outputs[0][0] = flat.reshape(every[0].shape)

        def connection_pattern(self, node: Any) -> list[list[bool]]:
            return [[True], [True], [False]]

        def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
            (_, bend, size), y, g = inputs, outputs[0], cotangents[0]
            excess = bend * (y - size)
            root = pt.sqrt(1 + pt.sqr(excess))
            slope = root + 2 * bend * y
            by_square = root / (pt.sqr(excess + root) * slope)
            return [g * by_square, -2 * g * y * (y - size) / slope, disconnected_type()]

    @_vectorize_node.register(SquaredRadius)
    def vectorized(op: Any, node: Any, *inputs: Any) -> Any:
        return op.make_node(*inputs)

    @register_funcify_default_op_cache_key(SquaredRadius)
    def radius(op: Any, **kwargs: Any) -> Any:
        return squared_radius, version()

    return SquaredRadius()
