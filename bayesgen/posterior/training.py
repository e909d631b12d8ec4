"""What is kept of a fit beside its posterior: how many rows there were, and the rows themselves."""

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.predict.left_out import LeftOut, MemberRanks

GIVEN: Final = "draws given"  # how a posterior was found that the user brings

_MOST = 64 << 20  # bytes: more are not kept alive
_LOOKED_AT = 200  # objects of a column, columns of a frame, whose size is taken for that of all


class KeptRows(NamedTuple):
    """What `fit` was given, by reference."""

    X: Any
    y: Any
    sample_weight: Any = None


@dataclass(frozen=True)
class Training:
    """The rows behind a posterior.

    Parameters
    ----------
    n_rows, n_unlabelled : int
    inference : str
        How the posterior was found: "closed form", "nuts", or `GIVEN`.
    unlabelled_weight : float, optional
        That of rows without a label, where it was found by leave-one-out.
    weighed : Weighed, optional
        How it was found, and the scores of the labelled rows.
    rows : KeptRows, optional
        While they are in memory anyway.
    groups : (N,) int, optional
        Of all rows that fit was given: those of the same number are left out together.
    weight : (N,), optional
        Of all rows that fit was given, where copies count as one row.
    suspects : {column: what is odd about it}
    scores : LeftOut, optional
        What the posterior says of each row without it, once it was asked for.
    ranks : MemberRanks, optional
        What the members of a pool say of it.
    left_out : {member of a pool: why it was not taken}
    draws : xarray.DataTree, optional
        Those of the fit, or of a posterior in closed form once they were asked for.
    prior : PriorChoice, optional
        How the prior was chosen, of a fit in closed form.
    """

    n_rows: int
    n_unlabelled: int = 0
    inference: str = "closed form"
    unlabelled_weight: float | None = None
    weighed: Any = None
    rows: KeptRows | None = None
    groups: np.ndarray | None = None
    weight: np.ndarray | None = None
    suspects: dict[str, str] = field(default_factory=dict)
    scores: "LeftOut | None" = None
    ranks: "MemberRanks | None" = None
    left_out: dict[str, str] = field(default_factory=dict)
    draws: "xr.DataTree | None" = None
    prior: Any = None

    @property
    def estimated(self) -> str:
        """The argument of `fit` by which weights of rows were estimated, or ""."""
        return "unlabelled='weighted'" if self.unlabelled_weight else ""


def kept(X, y, sample_weight) -> KeptRows | None:
    """Return a reference to rows of at most 64 MiB; None for more, and for unknown sizes."""
    sizes = [_size(part) for part in (X, y, sample_weight) if part is not None]
    known_sizes = [size for size in sizes if size is not None]
    small = len(known_sizes) == len(sizes) and sum(known_sizes) <= _MOST
    return KeptRows(X, y, sample_weight) if small else None


def _size(values) -> float | None:
    """Bytes that a reference keeps alive, about."""
    if isinstance(values, np.ndarray):
        base = values.base if isinstance(values.base, np.ndarray) else values  # a view keeps all
        return base.nbytes + (_of_objects(values.ravel()) if values.dtype.kind == "O" else 0)
    if hasattr(values, "iloc"):  # pandas
        dtypes = [values.dtype] if values.ndim == 1 else values.dtypes.tolist()
        plain = len(values) * sum(getattr(dtype, "itemsize", 8) for dtype in dtypes)
        objects = np.flatnonzero([getattr(dtype, "kind", "") == "O" for dtype in dtypes])
        if not len(objects):
            return float(plain)
        columns = [values if values.ndim == 1 else values.iloc[:, j] for j in _some(objects)]
        sizes = [_of_cells(getattr(c, "array", c)) for c in columns]  # a Categorical is its own
        return plain + float(np.mean(sizes)) * len(objects)
    if hasattr(values, "estimated_size"):  # polars
        return float(values.estimated_size())
    if hasattr(values, "tocsr"):
        return 16.0 * values.nnz + 8.0 * values.shape[0]
    if isinstance(values, list | tuple):
        return sys.getsizeof(values) + _of_objects(values)
    size = getattr(values, "nbytes", None)
    return float(size) if isinstance(size, int | np.integer) else None


def _of_cells(values) -> float:
    """Bytes of a column of pandas that is not of numbers."""
    in_python = getattr(values.dtype, "storage", "python") == "python"
    return _of_objects(values) if in_python else float(values.nbytes)


def _of_objects(values) -> float:
    """Bytes of objects, from the size of some of them."""
    n = len(values)
    if not n:
        return 0.0
    positions = _some(np.arange(n))
    some = [values[i] for i in positions] if isinstance(values, list | tuple) else values[positions]
    sizes = [
        sys.getsizeof(v) + (_of_objects(v) if isinstance(v, list | tuple) else 0) for v in some
    ]
    return float(np.mean(sizes)) * n


def _some(positions: np.ndarray) -> np.ndarray:
    """At most `_LOOKED_AT` of them, evenly spread."""
    n = len(positions)
    return positions[np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(int)]
