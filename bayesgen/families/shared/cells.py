"""Features with categories of their own: one dim for the cells that exist.

NumPy arrays of such parameters are padded, (..., feature, category) with zeros up to the largest
number of categories. In a PyMC model and in a DataTree they have one dim ``feature_category`` in
place of the two, which lists feature by feature the categories that exist: a summary has no rows
for others, and each row has the name of its category. Features that share their categories keep
the two dims.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesgen.families.names import CATEGORY, FEATURE, FEATURE_CATEGORY
from bayesgen.numerics.special import Array


class Cells(tuple[str, ...]):
    """Labels "feature, category" of the cells, as coordinates of ``feature_category``.

    Parameters
    ----------
    features : sequence (D,)
    categories : for each feature a sequence (K_j,)

    Attributes
    ----------
    feature, category : array (F,)
        The labels of each cell on their own.
    row, column : int array (F,)
        Where it stands in the two dims.

    Examples
    --------
    >>> cells = Cells(["size", "hue"], [["S", "M", "L"], ["red", "blue"]])
    >>> list(cells)
    ['size, S', 'size, M', 'size, L', 'hue, red', 'hue, blue']
    """

    feature: Array
    category: Array
    row: Array
    column: Array

    def __new__(cls, features: Sequence[Any], categories: Sequence[Sequence[Any]]) -> "Cells":
        """Of all features in their order."""
        pairs = list(zip(features, categories, strict=True))
        out = super().__new__(cls, (f"{f}, {k}" for f, own in pairs for k in own))
        out.feature = _labels([f for f, own in pairs for _ in own])
        out.category = _labels([k for _, own in pairs for k in own])
        number = [len(own) for own in categories]
        out.row = np.repeat(np.arange(len(number)), number)
        out.column = np.concatenate([np.arange(n) for n in number])
        return out

    @classmethod
    def numbered(cls, real: Array, features: Sequence[Any] | None = None) -> "Cells":
        """Of the true cells of (D, K), with numbers for what has no names."""
        number = np.asarray(real).sum(axis=-1).tolist()
        return cls(range(len(number)) if features is None else features, [range(n) for n in number])


def _labels(values: list[Any]) -> Array:
    """Of one type, as a file can hold it."""
    out = np.asarray(values)
    return out.astype(str) if out.dtype.kind == "O" else out


def category_coords(
    features: Sequence[Any], categories: Sequence[Sequence[Any]], prefix: str = ""
) -> dict[str, Any]:
    """{dim: labels} of the categories: one list of names if all features share it, else `Cells`."""
    first = list(categories[0]) if categories else []
    if first and all(list(own) == first for own in categories):
        return {f"{prefix}{CATEGORY}": first}
    codes = list(range(max(map(len, categories), default=0)))
    cells = Cells(features, categories)
    return {f"{prefix}{CATEGORY}": codes, f"{prefix}{FEATURE_CATEGORY}": cells}


def cells_dim(dims: Sequence[str]) -> str | None:
    """The dim that may stand for the last two of a parameter; None: for no other parameters."""
    prefix = dims[-1].removesuffix(CATEGORY) if dims else ""
    if len(dims) < 2 or tuple(dims[-2:]) != (f"{prefix}{FEATURE}", f"{prefix}{CATEGORY}"):
        return None
    return f"{prefix}{FEATURE_CATEGORY}"


def cells_of(dims: Sequence[str], coords: Mapping[str, Any]) -> Cells | None:
    """The cells that stand for the last two dims under these coordinates, if they do."""
    found = coords.get(cells_dim(dims) or "")
    return found if isinstance(found, Cells) else None


def by_cell(
    dims: tuple[str, ...], value: Array, coords: Mapping[str, Any]
) -> tuple[tuple[str, ...], Array]:
    """Dims and values as a tree has them, of a padded array (..., D, K); others as they are."""
    cells = cells_of(dims, coords)
    if cells is None:
        return dims, value
    return (*dims[:-2], str(cells_dim(dims))), np.asarray(value)[..., cells.row, cells.column]


def padded(value: Array, cells: Cells) -> Array:
    """(..., D, K) with zeros where there is no cell, of (..., F)."""
    shape = (int(cells.row[-1]) + 1, int(cells.column.max()) + 1)
    out = np.zeros((*np.shape(value)[:-1], *shape))
    out[..., cells.row, cells.column] = value
    return out
