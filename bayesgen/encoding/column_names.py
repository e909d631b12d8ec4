"""Columns by name: found, compared between two tables, and proposed where a name is unknown."""

from typing import Any

import numpy as np

from bayesgen.encoding.literals import did_you_mean, shortened


def places_of(names: tuple[str, ...] | None) -> dict[str, int] | None:
    """Positions of columns by name, for `find_column`."""
    return None if names is None else {name: j for j, name in enumerate(names)}


def find_column(key: Any, places: dict[str, int] | None, n_columns: int, where: str) -> int:
    """Position of the column that a user calls `key`, a name or a position."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < n_columns:
        return int(key)
    if places is None:
        raise ValueError(f"{where}: no column {key!r}; columns are 0 .. {n_columns - 1}")
    if key in places:
        return places[key]
    raise ValueError(f"{where}: no column {key!r}{did_you_mean(key, places)}")


def refuse_other_order(argument: str, values: Any, *labels: list[Any]) -> None:
    """Raise ValueError if a Series, frame or DataArray has the right labels in another order.

    It is read by position. `labels` are those of the last axes, [] where there are none.
    """
    for own, expected in zip(reversed(_labels_of(values)), reversed(labels), strict=False):
        if own != expected and set(own) == set(expected):
            raise ValueError(
                f"{argument} is labelled {shortened(str(own))}, and is read by position, in the "
                f"order {shortened(str(expected))}: bring it into that order"
            )


def _labels_of(values: Any) -> list[list[Any]]:
    """Of each axis, [] where it has none."""
    if hasattr(values, "coords"):
        of = {d: values.coords[d].values.tolist() for d in values.dims if d in values.coords}
        return [of.get(d, []) for d in values.dims]
    axes: list[Any] = [getattr(values, name, None) for name in ("index", "columns")]
    axes = axes[: getattr(values, "ndim", 0)]
    return [a.tolist() if getattr(a, "nlevels", 0) == 1 else [] for a in axes]


def common_names(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Names that two tables agree in; where one has none, those of the other."""
    if a is None or b is None or a == b:
        return b if a is None else a
    j, (mine, theirs) = next((j, p) for j, p in enumerate(zip(a, b, strict=True)) if p[0] != p[1])
    raise ValueError(
        f"column {j} is {mine!r} on one side and {theirs!r} on the other; "
        "give both the same columns in the same order"
    )
