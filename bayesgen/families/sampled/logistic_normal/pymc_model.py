"""The model in PyMC: in the coordinates of the prior, or in those that suit given rows."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.names import CLASS, FEATURE, OBS
from bayesgen.families.sampled.logistic_normal.factor_mode import Guide
from bayesgen.families.shared.pymc_parts import (
    cells_data,
    known_codes,
    parameter,
    prefixed,
    sum_cells,
)
from bayesgen.families.shared.pymc_parts import declare as declare_data
from bayesgen.families.shared.rising import refuse_fractional_counts
from bayesgen.families.shared.simplex import counted_dirichlet
from bayesgen.numerics.rows import Matrix, class_sums, row_sums, stored_cells
from bayesgen.numerics.special import Array, log_factorial

if TYPE_CHECKING:
    from bayesgen.families.sampled.logistic_normal.family import LogisticNormal

_ROUND = 1 << 21  # numbers of one matrix (class, word, coordinate) of a guide: 16 MiB


def declare(
    f: "LogisticNormal", prefix: str, X: Matrix | None, y: Any, summed: bool
) -> dict[str, Any]:
    """As `Family.to_pymc`."""
    import pymc as pm
    import pytensor.tensor as pt

    if X is not None and _has_guide(f):
        return _declare_round(f, prefix, X, y, summed)
    prior = declare_data(f, "prior", prefix)
    dims = {name: prefixed(prefix, d) for name, d in f.params.items()}
    w, r = prior["reference"], prior["direction"]
    centre = parameter(
        f,
        prefix,
        "centre",
        lambda centre, dims: counted_dirichlet(centre, prior["alpha"], w, dims),
    )
    by_factor = dims["loading"][:2]
    spread = parameter(f, prefix, "spread", lambda name, d: pm.HalfNormal(name, 1.0, dims=d))
    unit = pm.ZeroSumNormal(f"{prefix}unit", sigma=1.0, n_zerosum_axes=1, dims=dims["loading"])
    along = pm.HalfNormal(f"{prefix}along", 1.0, dims=by_factor)
    # the parts along r_l: of factor k itself `along`, of earlier ones those of `unit`, else 0
    parts = []
    for k in range(f.factors):
        part = unit[:, k]
        for l in range(k, f.factors):
            part = part - r[:, l] * (r[:, l] * part).sum(axis=-1, keepdims=True)
        parts.append(part + r[:, k] * along[:, k, None])
    loading = pm.Deterministic(
        f"{prefix}loading", spread[:, :, None] * pt.stack(parts, axis=1), dims=dims["loading"]
    )
    theta = {"centre": centre, "loading": loading}
    if X is not None:
        _condition(f, prefix, X, y, theta, summed)
    return theta


def _condition(
    f: "LogisticNormal", prefix: str, X: Matrix, y: Any, theta: Any, summed: bool
) -> None:
    import pymc as pm

    if summed:
        pm.Potential(f"{prefix}x", _log_rows(f, f"{prefix}x", X, known_codes(y), theta))
    else:
        _observe(f, prefix, X, y, theta)


def _observe(f: "LogisticNormal", prefix: str, X: Matrix, y: Any, theta: Any) -> None:
    """Rows as they are, each a multinomial with z on one node of the grid."""
    import pymc as pm
    import pytensor.tensor as pt

    f.check(X)
    refuse_fractional_counts(stored_cells(X, slice(None)).data)
    counts = cells_data(prefix, X, whole=True)
    z, log_w = f.grid()

    def draw(n: Any, log_centre: Any, loading: Any, size: Any) -> Any:
        k = pm.Categorical.dist(logit_p=log_w, size=n.shape if size is None else size)
        along = (pt.as_tensor(z)[k][..., None] * loading).sum(axis=-2)
        return pm.Multinomial.dist(n, pt.special.softmax(log_centre + along, axis=-1), size=size)

    def log_p(x: Any, n: Any, log_centre: Any, loading: Any) -> Any:
        words = log_centre[..., None, :] + (loading[..., None, :, :] * z[..., None]).sum(axis=-2)
        words = pt.special.log_softmax(words, axis=-1)
        each = (x[..., None, :] * words).sum(axis=-1) + log_w
        coefficient = pt.gammaln(n + 1) - pt.gammaln(x + 1).sum(axis=-1)
        return pt.logsumexp(each, axis=-1) + coefficient

    pm.CustomDist(
        f"{prefix}x",
        counts.sum(axis=1),
        pt.log(theta["centre"])[y],
        theta["loading"][y],
        dist=draw,
        logp=log_p,
        signature="(),(d),(f,d)->(d)",
        class_name="LogisticNormalMultinomial",
        observed=counts,
        dims=(OBS, f"{prefix}{FEATURE}"),
    )


def log_likelihood(f: "LogisticNormal", X: Matrix, theta: Any, prefix: str) -> Any:
    """(N, C), as in `UnlabelledRows`."""
    import pymc as pm
    import pytensor.tensor as pt

    f.check(X)
    cells = stored_cells(X, slice(None))
    length = row_sums(cells.data, cells.indptr)
    coefficient = log_factorial(length) - row_sums(log_factorial(cells.data), cells.indptr)
    z, log_w = f.grid()
    n_words = pm.Data(f"{prefix}length", length)
    exponent = log_w - n_words[:, None, None] * _log_norm(theta, z)
    for k in range(f.factors):
        along = sum_cells(f"{prefix}along_{k}", cells, theta["loading"][:, k].T)
        exponent = exponent + along[:, :, None] * z[:, k]
    words = sum_cells(f"{prefix}counts", cells, pt.log(theta["centre"]).T)
    constant = pm.Data(f"{prefix}coefficient", coefficient)[:, None]
    return _log_sum_exp(exponent, 2) + words + constant


def _has_guide(f: "LogisticNormal") -> bool:
    """Whether rows set the coordinates."""
    default = f.centre is None and f.spread is None and f.factors == 1
    return default and f.alpha.size * f.alpha.shape[1] <= _ROUND


def _declare_round(
    f: "LogisticNormal", prefix: str, X: Matrix, y: Any, summed: bool
) -> dict[str, Any]:
    """One factor under the default priors, given rows, in the coordinates of a `Guide`.

    ``loading_white`` is Normal given the spread; ``centre_white`` has the density of a
    Dirichlet centre, up to a constant, by the potential ``centre_prior``.
    """
    import pymc as pm
    import pytensor.tensor as pt

    f.check(X)
    prior = declare_data(f, "prior", prefix)
    n_classes, n_words = f.alpha.shape
    cells = stored_cells(X, slice(None)).astype(np.float64)
    z, log_w = f.grid()
    first = 0.3 * np.sqrt(n_words) * f.direction[:, 0]
    codes = known_codes(y)
    classes = [cells[codes == c] for c in range(n_classes)]
    found = Guide.of(classes, f.alpha, z[:, 0], log_w, first)
    at = {k: pm.Data(f"{prefix}guide_{k}", v) for k, v in found._asdict().items()}
    model: Any = pm.modelcontext(None)
    model.add_coords({f"{prefix}contrast": np.arange(n_words - 1)})
    each = (CLASS, f"{prefix}contrast")
    dims = {name: prefixed(prefix, d) for name, d in f.params.items()}

    spread = pm.HalfNormal(f"{prefix}spread", 1.0, dims=dims["loading"][:2])
    s = spread[:, 0][:, None]
    sd = 1 / pt.sqrt(at["information"] + s**-2)
    mean = at["pull"] * sd**2
    white = pm.Normal(f"{prefix}loading_white", -mean / sd, s / sd, dims=each)
    b = mean + sd * white
    loading = _times(at["axes"], b)
    loading = pm.Deterministic(f"{prefix}loading", loading[:, None, :], dims=dims["loading"])
    other = pm.Normal(f"{prefix}centre_white", 0.0, 1.0, dims=each)
    ell = at["origin"] + _times(at["slope"], b - at["place"]) + _times(at["width"], other)
    log_p = ell - _log_sum_exp(ell, 1)[:, None]
    centre = pm.Deterministic(f"{prefix}centre", pt.exp(log_p), dims=dims["centre"])
    density = (prior["alpha"] * log_p).sum() + (other**2).sum() / 2
    pm.Potential(f"{prefix}centre_prior", density)
    theta = {"centre": centre, "loading": loading}
    _condition(f, prefix, X, y, theta, summed)
    return theta


def _log_rows(f: "LogisticNormal", name: str, X: Matrix, y: Array, theta: Any) -> Any:
    """Tensor: log likelihood of labelled rows."""
    import pymc as pm
    import pytensor.tensor as pt

    f.check(X)
    cells = stored_cells(X, slice(None))
    refuse_fractional_counts(cells.data)
    centre, loading = theta["centre"], theta["loading"]
    n_classes = len(f.alpha)
    length = row_sums(cells.data, cells.indptr)
    counts = pm.Data(f"{name}_counts", class_sums(cells, y, n_classes))
    constant = float(np.sum(log_factorial(length)) - np.sum(log_factorial(cells.data)))
    out = (counts * pt.log(centre)).sum() + pm.Data(f"{name}_constant", constant)
    z, log_w = f.grid()
    cells = cells[np.argsort(y, kind="stable")]
    data = {
        "first": cells.indptr.astype(np.int64),
        "word": cells.indices.astype(np.int64),
        "count": cells.data.astype(np.float64),
        "of_class": np.searchsorted(np.sort(y), np.arange(n_classes + 1)),
    }
    rows = [pm.Data(f"{name}_{key}", value) for key, value in data.items()]
    grid = [pt.as_tensor(a) for a in (z, log_w)]
    return out + _operation()(pt.log(centre), loading, *grid, *rows)[0].sum()


@cache
def _operation() -> Any:
    """`kernels.factor_grid.grid_log_likelihood` as a PyTensor operation.

    One exponential for each document and node, for value and gradient together.
    """
    from pytensor.gradient import disconnected_type
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op
    from pytensor.link.numba.dispatch.basic import register_funcify_default_op_cache_key
    from pytensor.tensor.type import tensor

    from bayesgen.numerics.kernels.compiling import version
    from bayesgen.numerics.kernels.factor_grid import grid_log_likelihood

    class GridLogLikelihood(Op):
        __props__ = ()

        def make_node(self, *inputs: Any) -> Any:
            own = tensor(dtype="float64", shape=(None,))
            return Apply(self, list(inputs), [own, inputs[0].type(), inputs[1].type()])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            for cell, value in zip(outputs, grid_log_likelihood(*inputs), strict=True):
                cell[0] = value

        def connection_pattern(self, node: Any) -> list[list[bool]]:
            return [[True, False, False]] * 2 + [[False] * 3] * 6

        def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
            g = cotangents[0]
            own = [g[:, None] * outputs[1], g[:, None, None] * outputs[2]]
            return [*own, *(disconnected_type() for _ in inputs[2:])]

    @register_funcify_default_op_cache_key(GridLogLikelihood)
    def likelihood(op: Any, **kwargs: Any) -> Any:
        return grid_log_likelihood, version()

    return GridLogLikelihood()


def _times(matrix: Any, vector: Any) -> Any:
    """(C, D) product of tensors (C, D, M) and (C, M)."""
    import pytensor.tensor as pt

    return pt.matmul(matrix, vector[:, :, None])[:, :, 0]


def _log_norm(theta: Any, z: Array) -> Any:
    """(C, Q) tensor: log of the sum of centre_j exp(z . loading_j)."""
    import pytensor.tensor as pt

    words = pt.log(theta["centre"])[:, :, None]
    for k in range(z.shape[1]):
        words = words + theta["loading"][:, k, :, None] * z[:, k]
    return _log_sum_exp(words, 1)


def _log_sum_exp(a: Any, axis: int) -> Any:
    """PyTensor's, with one exponential for value and gradient together."""
    import pytensor.tensor as pt
    from pytensor.gradient import disconnected_grad

    top = disconnected_grad(a.max(axis=axis, keepdims=True))
    return pt.log(pt.exp(a - top).sum(axis=axis)) + top.squeeze(axis)
