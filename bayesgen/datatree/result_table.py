"""Results that are Datasets of xarray and print as a table."""

from collections.abc import Hashable, Sequence
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bayesgen.encoding.literals import listed
from bayesgen.families.names import BOUND, CLASS

if TYPE_CHECKING:
    import pandas as pd

_NOTE = "note"  # a variable of texts, which are printed below the table
_WIDTH = 100
_LINES = 20
_NAMED = 6  # variables that are not in the table


class ResultTable(xr.Dataset):
    """A Dataset that prints as a table, and is like any other Dataset of xarray in all else.

    The table has a line for each label of the dims of the first variable. Ends of intervals stand
    in two columns, and a boolean for each class is a list of the classes for which it is true.
    Variables with further dims are named below the table.

    Attributes say what is printed: ``title``, above the table; ``shown``, names of variables
    (default: all); ``first``, the variable whose largest values come first.
    """

    __slots__ = ()

    @property
    def dataset(self) -> xr.Dataset:
        """Return the same variables as a plain Dataset, which prints as xarray's."""
        return xr.Dataset(self.data_vars, self.coords, self.attrs)

    def to_dataframe(self, dim_order: Sequence[Hashable] | None = None) -> "pd.DataFrame":
        """Return the table as a DataFrame: all its variables, to all digits."""
        return self._frame(self._fitting(list(self.data_vars)), dim_order)

    def _lines(self, name: Hashable) -> set[Hashable]:
        """Dims of a variable that are lines of a table."""
        variable = self[name]
        return set(variable.dims) - {BOUND} - ({CLASS} if variable.dtype == bool else set())

    def _fitting(self, names: list[Hashable]) -> list[Hashable]:
        """Return the variables that vary along dims of the first, and along no others."""
        lines = self._lines(names[0]) if names else set()
        each = {name: self._lines(name) for name in names}
        return [name for name, dims in each.items() if dims <= lines and bool(dims) == bool(lines)]

    def _frame(
        self, names: list[Hashable], dim_order: Sequence[Hashable] | None = None
    ) -> "pd.DataFrame":
        columns: dict[Hashable, xr.DataArray] = {}
        for name in names:
            variable = self[name]
            if variable.dtype == bool and CLASS in variable.dims:
                variable = _listed(variable)
            if BOUND in variable.dims:
                prefix = "" if name == "interval" else f"{name}_"
                for end in variable[BOUND].values.tolist():
                    columns[f"{prefix}{end}"] = variable.sel({BOUND: end}, drop=True)
            else:
                columns[name] = variable
        first = next(iter(columns.values()))
        return xr.Dataset(columns).to_dataframe(dim_order or first.dims or None)

    def _notes(self) -> list[str]:
        """Return each text of the variable ``note`` once, with the lines that have it."""
        if _NOTE not in self.data_vars:
            return []
        lines: dict[str, list[str]] = {}
        for label, text in self._frame([_NOTE])[_NOTE].items():
            if text:
                name = ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
                lines.setdefault(str(text), []).append(name)
        return [f"{listed(names)}: {text}" for text, names in lines.items()]

    def __repr__(self) -> str:
        """Return the title, the table to four decimals, and the names of other variables."""
        wanted = self.attrs.get("shown", self.data_vars)
        names = self._fitting([name for name in wanted if name in self.data_vars])
        if not names or not self._lines(names[0]):
            return super().__repr__()
        n_lines = int(np.prod([self.sizes[dim] for dim in self._lines(names[0])]))
        remarks = self._notes()
        if (first := self.attrs.get("first")) in names:
            frame = self._frame(names).sort_values(first, ascending=False, kind="stable")
        else:
            frame = self.isel({self[names[0]].dims[0]: slice(_LINES)})._frame(names)
        if n_lines > _LINES:
            remarks.append(f"... and {n_lines - _LINES} more lines: .to_dataframe() has them all")
        if others := [str(n) for n in self.data_vars if n not in names and n != _NOTE]:
            remarks.append(f"also in .dataset: {listed(others, _NAMED)}")
        table = frame.head(_LINES).to_string(float_format="{:.4f}".format, na_rep="-")
        lines = [fill(self.attrs.get("title", ""), _WIDTH), *map(str.rstrip, table.splitlines())]
        lines += [fill(remark, _WIDTH, subsequent_indent="  ") for remark in remarks]
        return "\n".join(filter(None, lines))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def _listed(included: xr.DataArray) -> xr.DataArray:
    """Return the names of the classes of which a boolean (..., class) is true, as text."""
    classes = [str(label) for label in included[CLASS].values.tolist()]
    rows = included.values.reshape(-1, len(classes))
    text = [", ".join(c for c, inside in zip(classes, row, strict=True) if inside) for row in rows]
    values = np.array(text, dtype=object).reshape(included.shape[:-1])
    coords = {name: c for name, c in included.coords.items() if CLASS not in c.dims}
    return xr.DataArray(values, coords, included.dims[:-1])
