"""Log densities and cumulant generating functions, assembled block by block."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array


def density_by_draws(
    density: Callable[[dict[str, Array]], Array],
    theta: Mapping[str, Array],
    params: Mapping[str, tuple[str, ...]],
) -> Array:
    """Assemble a log density (...) from ``density({name: (n, *dims)}) -> (n,)``, block by block."""
    arrays = {name: np.asarray(theta[name], dtype=np.float64) for name in params}
    shapes = {name: a.shape[a.ndim - len(params[name]) :] for name, a in arrays.items()}
    name, first = next(iter(arrays.items()))
    lead = first.shape[: first.ndim - len(params[name])]
    n = math.prod(lead)
    flat = {name: a.reshape(n, *shapes[name]) for name, a in arrays.items()}
    out = np.empty(n)
    for draws in row_blocks(n, sum(map(math.prod, shapes.values()))):
        out[draws] = density({name: a[draws] for name, a in flat.items()})
    return out.reshape(lead)


def cgf_by_rows(
    cell: Callable[[slice, Array], Array], n_rows: int, n_features: int, t: Array
) -> Array:
    """Assemble a cgf (..., N) from ``cell(rows, t_rows) -> (..., n)``, in blocks of rows.

    `t` is (..., C) as in `ConjugateFamily.cgf`; `t_rows` is (..., n or 1, C).
    """
    t = np.asarray(t)
    if t.ndim == 1:
        t = t[None]
    lead = t.shape[:-2]
    dtype = np.complex128 if np.iscomplexobj(t) else np.float64
    out = np.empty((*lead, n_rows), dtype=dtype)
    for rows in row_blocks(n_rows, n_features * max(1, int(np.prod(lead)))):
        out[..., rows] = cell(rows, t if t.shape[-2] == 1 else t[..., rows, :])
    return out
