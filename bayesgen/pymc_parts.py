"""Parts that the families' PyMC models share: data containers, dims, cells that are observed.

pymc is imported inside the functions: nothing here costs a user who does not sample.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.names import CLASS, FEATURE, OBS
from bayesgen.numerics import Array
from bayesgen.rows import Matrix, has_nan


def prefixed(prefix: str, dims: tuple[str, ...]) -> tuple[str, ...]:
    """The dims of a block: every dim but ``class`` carries the prefix."""
    return tuple(d if d == CLASS else f"{prefix}{d}" for d in dims)


def declare(record: Any, role: str, prefix: str) -> dict[str, Any]:
    """{field: pm.Data} of a record's arrays, as ``{prefix}{role}_{field}``.

    Hyper-parameters and statistics are data of the model, under the names that they have in the
    ``fit`` group: a compiled model of the same shape serves the next data set.
    """
    import pymc as pm

    return {
        name: pm.Data(f"{prefix}{role}_{name}", np.asarray(value, dtype=np.float64))
        for name, (_, value) in record.arrays().items()
        if np.asarray(value).dtype.kind in "fiub"
    }


def observe_cells(prefix: str, X: Matrix, distribution: Callable[[Array, Array], Any]) -> Any:
    """Observe ``{prefix}x``, cell by cell given theta.

    Complete rows have dims (obs_id, feature). With missing cells, which contribute nothing, the
    observed ones are listed, dim ``{prefix}cell``.

    Parameters
    ----------
    distribution : (rows, columns) -> unnamed PyMC distribution of those cells
        The indices broadcast to the shape of the observations.
    """
    import pymc as pm

    values = np.asarray(X.todense()) if sparse.issparse(X) else np.asarray(X)
    if has_nan(values):
        rows, columns = np.nonzero(~np.isnan(values))
        observed, dims = values[rows, columns], (f"{prefix}cell",)
    else:
        rows, columns = np.arange(len(values))[:, None], np.arange(values.shape[1])
        observed, dims = values, (OBS, f"{prefix}{FEATURE}")
    dist = distribution(rows, columns)
    if dist.type.dtype.startswith(("int", "uint", "bool")):
        observed = observed.astype(np.int64)
    return pm.modelcontext(None).register_rv(dist, f"{prefix}x", observed=observed, dims=dims)
