"""Cells of a matrix that cannot be used: refused with column, row and what to do.

Real cells are squared and added up, so that beyond 1e151 they soon are infinite; columns that vary
by less than 1e-151 have a variance of 0. From 2**53 on a count and the next are the same number.
Who has such numbers can change their unit.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.errors import Facts, InputError
from bayesgen.families.contract import Family, Stats
from bayesgen.numerics.rows import Matrix, first_cell
from bayesgen.numerics.special import Array

_SMALLEST_SPREAD = 1e-302  # of squares: of deviations of 1e-151
LARGE = 1e9  # no smaller cell is so far, unless its column varies by less than 1e-21
_FARTHEST = 1e30  # standard deviations from the mean: powers of its square are still float64

Names = Callable[[], list]


def refuse_cells(
    X: Matrix,
    bad: Array,
    names: Names,
    what: str,
    why: str = "",
    advice: str | None = None,
    rows: Array | None = None,
    error: type[Facts] = InputError,
) -> None:
    """Raise an error for the first cell that is bad, if there is one.

    Parameters
    ----------
    X : (N, D), dense or CSR
    bad : bool, of the shape of X, or of the stored cells of CSR
    names : callable
        The names of the columns, where they are needed.
    what, why, advice
        As in `Facts`; ``{name!r}`` and ``{value:g}`` in the first two are those of the cell.
    rows : (N,), optional
        What rows are called. None: their positions.
    """
    if bad.any():
        row, j, value = first_cell(X, bad)
        facts = {"name": names()[j], "value": value}
        raise error(
            what.format(**facts),
            why.format(**facts),
            row=row if rows is None else rows[row],
            column=facts["name"],
            advice=advice,
        )


def stored(X: Matrix) -> Array:
    """Return X, or the stored cells of CSR."""
    return X.data if sparse.issparse(X) else X


def refuse_infinite(X: Matrix, names: Names) -> None:
    """Raise ValueError at the first infinite cell of floats."""
    advice = "make it finite, or NaN if it is missing"
    refuse_cells(X, np.isinf(stored(X)), names, "column {name!r} holds {value}", "", advice)


def refuse_large_cells(
    family: Family, X, names: Names, stats: Stats | None = None, rows: Array | None = None
) -> None:
    """Raise a ValueError for the first cell beyond `Stats.largest_cell`.

    Parameters
    ----------
    family : Family
    X : (N, D) as the family takes it
    names, rows : as in `refuse_cells`
    stats : Stats, optional
        Of X: only where they are large is there anything to look for.
    """
    if getattr(X, "ndim", 0) != 2 or not isinstance(getattr(X, "dtype", None), np.dtype):
        return  # documents; bits that are read as they are used
    for block in family.blocks(stats):
        largest = np.float64(block.family.statistics.largest_cell)  # beyond what float32 holds
        if stats is not None and _peak(block.stats) < largest / 2:
            continue
        cells = X[:, block.columns]
        values = stored(cells)
        if values.dtype.kind in "iuf":
            refuse_cells(
                cells,
                (values > largest) | (values < -largest),
                _names_of(block, names),
                "column {name!r} holds {value:g}",
                f", beyond {largest:.4g}, where float64 has no exact arithmetic",
                "correct it, or give the column in a larger unit",
                rows,
            )


def _names_of(block, names: Names) -> Names:
    """Return the names of the columns of a block of a family."""
    return lambda: np.array(names(), dtype=object)[block.columns].tolist()


def _peak(stats: Stats) -> float:
    """Return the largest number of statistics; infinity if one is none."""
    arrays = [np.abs(a).max(initial=0.0) for _, a in stats.arrays().values() if a.dtype.kind == "f"]
    peak = float(np.max(arrays, initial=0.0))
    return peak if peak == peak else np.inf


def _real_blocks(family: Family, stats: Stats) -> Iterator[tuple[Any, Array]]:
    """Yield the blocks of real columns, and the sums of squares (C, D) of each."""
    for block in family.blocks(stats):
        scatter = getattr(block.stats, "scatter", None)
        if scatter is not None:
            square = scatter.ndim == 3
            yield block, np.diagonal(scatter, axis1=1, axis2=2) if square else scatter


def refuse_small_spread(family: Family, stats: Stats, names: Names) -> None:
    """Raise a ValueError for a real column whose variance is lost, though it varies."""
    for block, scatter in _real_blocks(family, stats):
        mean = block.stats.mean
        square = scatter.sum(axis=0) + np.square(mean).max(axis=0)
        moves = (scatter != 0).any(axis=0) | (mean != 0).any(axis=0)  # about a row of its own
        for j in np.flatnonzero(moves & (square < _SMALLEST_SPREAD))[:1]:
            column = _names_of(block, names)()[j]
            raise InputError(
                f"column {column!r} varies by less than 1e-151, so that its variance is 0 in "
                "float64",
                column=column,
                advice="give it in a smaller unit, or leave it out",
            )


def refuse_far_cells(family: Family, X, stats: Stats | None, names: Names) -> None:
    """Raise a ValueError for a cell of new rows whose densities under draws overflow.

    `stats` are those of the fit, None without.
    """
    refuse_large_cells(family, X, names)
    for block, scatter in () if stats is None else _real_blocks(family, stats):
        n = block.stats.n.reshape(len(block.stats.n), -1)
        total = np.maximum(n.sum(axis=0), 1.0)
        mean = (n * block.stats.mean).sum(axis=0) / total
        variance = (scatter + n * np.square(block.stats.mean - mean)).sum(axis=0) / total
        farthest = np.where(variance > 0, _FARTHEST * np.sqrt(variance), np.inf)
        rows = X[:, block.columns]
        cells = getattr(block.family, "cells", np.asarray)(rows)
        refuse_cells(
            rows,
            np.abs(cells - (block.stats.shift + mean)) > farthest,
            _names_of(block, names),
            "column {name!r} holds {value:g}",
            f", more than {_FARTHEST:g} standard deviations from its mean, where float64 does "
            "not hold how sure the classes are",
            "correct it, or make it missing",
        )
