"""Categories that the user declares, in any of the forms that `Categories.learn` takes."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bayesgen.encoding.column import Values, canonical
from bayesgen.encoding.column_names import find_column, places_of


def declared_categories(
    declared: Any, names: tuple[str, ...] | None, n_columns: int
) -> list[Values | None]:
    """The declared categories of each column, None where there are none."""
    entries: list[Any]
    if declared is None or isinstance(declared, int | np.integer):
        entries = [declared] * n_columns
    elif isinstance(declared, Mapping):
        entries = [None] * n_columns
        places = places_of(names)
        for key, entry in declared.items():
            entries[find_column(key, places, n_columns, "categories")] = entry
    elif isinstance(declared, str) or not isinstance(declared, Iterable):
        raise TypeError(
            "categories must be None, a number, a list with one entry per column, or a dict "
            f"{{column: entry}}, not {declared!r}"
        )
    else:
        entries = list(declared)
    if len(entries) != n_columns:
        raise ValueError(
            f"categories has {len(entries)} entries for {n_columns} columns; give one per column, "
            "None where a column is to be learned"
        )
    return [
        None
        if e is None
        else _entry(e, f"categories of column {names[j]!r}" if names else f"categories[{j}]")
        for j, e in enumerate(entries)
    ]


def _entry(entry: Any, where: str) -> Values:
    """What the user declared for one column: K, or a sequence of categories."""
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        if entry < 1:
            raise ValueError(f"{where}: there must be at least one category, got {entry}")
        return tuple(range(int(entry)))
    if isinstance(entry, str | bytes | bool) or not isinstance(entry, Iterable):
        raise TypeError(f"{where}: give a number or a list of categories, not {entry!r}")
    return canonical(entry, where)
