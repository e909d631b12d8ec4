"""What is kept of a fit beside its posterior: how many rows there were, and the rows themselves."""

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.predict.left_out import LeftOut

GIVEN: Final = "draws given"  # how a posterior was found that the user brings

_MOST = 64 << 20  # bytes: more are not kept alive
_LOOKED_AT = 200  # objects whose size is taken for that of all


class KeptRows(NamedTuple):
    """What `fit` was given, by reference."""

    X: Any
    y: Any
    sample_weight: Any = None


class LabelledRows(NamedTuple):
    """Rows as the family takes them, with what is known of each."""

    X: Any
    codes: np.ndarray  # (N,) of classes, -1 where there is no label
    weight: np.ndarray  # (N,)
    groups: np.ndarray | None = None  # (N,) rows of the same number are left out together

    def at(self, rows: np.ndarray) -> "LabelledRows":
        """Return some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return LabelledRows(self.X[rows], self.codes[rows], self.weight[rows], groups)

    @property
    def scored(self) -> np.ndarray:
        """Positions of the rows that have a label and a weight."""
        return np.flatnonzero((self.codes >= 0) & (self.weight > 0))

    def only_scored(self) -> "LabelledRows":
        """Return the scored rows; raise ValueError if there is none."""
        positions = self.scored
        if not len(positions):
            raise ValueError("no training row has a label and a weight above 0")
        return self if len(positions) == len(self.codes) else self.at(positions)


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
    left_out: dict[str, str] = field(default_factory=dict)
    draws: "xr.DataTree | None" = None
    prior: Any = None

    @property
    def estimated(self) -> str:
        """Return the argument of `fit` by which weights of rows were estimated, or ""."""
        return "unlabelled='weighted'" if self.unlabelled_weight else ""


def kept(X, y, sample_weight) -> KeptRows | None:
    """Return a reference to rows of at most 64 MiB; None for more, and for unknown sizes."""
    size = sum(_size(values) for values in (X, y, sample_weight) if values is not None)
    return KeptRows(X, y, sample_weight) if size <= _MOST else None


def _size(values) -> float:
    """Return the bytes that a reference keeps alive, about; infinite where nothing tells."""
    if isinstance(values, list | tuple):
        return sys.getsizeof(values) + _size_of_objects(values)
    if isinstance(values, np.ndarray):
        base = values.base if isinstance(values.base, np.ndarray) else values  # a view keeps all
        objects = values.ravel() if values.dtype.kind == "O" else ()
        return base.nbytes + _size_of_objects(objects)
    if hasattr(values, "memory_usage"):  # pandas
        return float(np.sum(values.memory_usage(deep=True)))
    if hasattr(values, "estimated_size"):  # polars
        return float(values.estimated_size())
    if hasattr(values, "tocsr"):
        return 16.0 * values.nnz + 8.0 * values.shape[0]
    size = getattr(values, "nbytes", None)
    return float(size) if isinstance(size, int | np.integer) else np.inf


def _size_of_objects(values) -> float:
    """Return the bytes of Python objects, about, from some of them."""
    some = values[:: 1 + len(values) // _LOOKED_AT]
    sizes = [_size(v) if isinstance(v, list | tuple) else sys.getsizeof(v) for v in some]
    return float(np.mean(sizes)) * len(values) if sizes else 0.0
