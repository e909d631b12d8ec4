r"""Correlation matrices with the LKJ prior, in coordinates that are free of each other.

The canonical partial correlations :math:`r_{ij}`, i > j, of axes i and j given the axes before j,
make the Cholesky factor of a correlation matrix row by row:

.. math:: L_{ij} = r_{ij} \prod_{k<j} \sqrt{1 - r_{ik}^2}, \qquad
          L_{ii} = \prod_{k<i} \sqrt{1 - r_{ik}^2}

Any numbers in (-1, 1) do, and under the LKJ prior, :math:`p(\Omega) \propto |\Omega|^{\eta-1}`,
they are independent: :math:`(1 + r_{ij})/2 \sim \text{Beta}(b_j, b_j)` with
:math:`b_j = \eta + (D - 2 - j)/2`, j from 0. The prior does not depend on the order of the axes.

Source: Lewandowski, Kurowicka and Joe (2009), Generating random correlation matrices based on
vines and extended onion method, section 2.4.
"""

from functools import cache
from typing import Any

import numpy as np


def declare_correlation(
    name: str, eta: float, dims: tuple[str, ...], axes: tuple[str, ...], *, prefix: str = ""
) -> Any:
    """Declare correlation matrices with an LKJ prior in the PyMC model on the stack.

    Parameters
    ----------
    name : str
        Of the matrices, a function of the free variable ``{name}_partial``, (1 + r)/2.
    eta : float
    dims : dims that the matrices have one each of
    axes : their own two
    prefix : str
        Stands before both names and the dim ``pair``.

    Returns
    -------
    tensor (*dims, D, D)
    """
    import pymc as pm
    import pytensor.tensor as pt

    model = pm.modelcontext(None)
    shape = tuple(len(model.coords[d]) for d in dims)
    n_axes = len(model.coords[axes[0]])
    if n_axes == 1:
        return pm.Deterministic(f"{prefix}{name}", pt.ones((*shape, 1, 1)), dims=(*dims, *axes))
    j = np.tril_indices(n_axes, -1)[1]
    pair, b = f"{prefix}pair", eta + (n_axes - 2 - j) / 2
    model.add_coords({pair: np.arange(len(j))})
    half = pm.Beta(f"{prefix}{name}_partial", b, b, dims=(*dims, pair))

    omega = _operations()[0](half)
    return pm.Deterministic(f"{prefix}{name}", omega, dims=(*dims, *axes))


@cache
def _operations() -> tuple[Any, Any]:
    """`kernels.correlation` and its gradient as PyTensor operations on (..., D (D - 1)/2).

    The same as a graph of PyTensor's own takes numba a minute to compile.
    """
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op
    from pytensor.graph.replace import _vectorize_node
    from pytensor.link.numba.dispatch.basic import (
        numba_njit,
        register_funcify_default_op_cache_key,
    )
    from pytensor.tensor.type import tensor

    from bayesgen.numerics.kernels import correlation as kernels
    from bayesgen.numerics.kernels.compiling import version

    def matrices(half: Any) -> Any:
        flat = np.ascontiguousarray(half).reshape((-1, half.shape[-1]))
        out = kernels.correlation(flat)
        return out.reshape((*half.shape[:-1], *out.shape[1:]))

    def gradient(half: Any, weight: Any) -> Any:
        flat = np.ascontiguousarray(half).reshape((-1, half.shape[-1]))
        each = np.ascontiguousarray(weight).reshape((-1, *weight.shape[-2:]))
        return kernels.correlation_gradient(flat, each).reshape(half.shape)

    class CorrelationGradient(Op):
        __props__ = ()

        def make_node(self, *inputs: Any) -> Any:
            return Apply(self, list(inputs), [inputs[0].type()])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            outputs[0][0] = gradient(*inputs)

    class Correlation(Op):
        __props__ = ()

        def make_node(self, *inputs: Any) -> Any:
            lead = inputs[0].type.shape[:-1]
            return Apply(self, list(inputs), [tensor(dtype="float64", shape=(*lead, None, None))])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            outputs[0][0] = matrices(*inputs)

        def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
            return [CorrelationGradient()(*inputs, *cotangents)]

    @_vectorize_node.register(Correlation)
    def vectorized(op: Any, node: Any, *inputs: Any) -> Any:
        return op.make_node(*inputs)

    @register_funcify_default_op_cache_key(Correlation)
    def correlation(op: Any, **kwargs: Any) -> Any:
        return numba_njit(matrices), version()

    @register_funcify_default_op_cache_key(CorrelationGradient)
    def correlation_gradient(op: Any, **kwargs: Any) -> Any:
        return numba_njit(gradient), version()

    return Correlation(), CorrelationGradient()
