"""The warning of cells whose category no training row had."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from bayesgen.encoding.literals import count, listed, shown
from bayesgen.errors import Facts

_NAMED = 5  # columns in one warning


@dataclass(frozen=True)
class UnknownCells:
    """Cells of one column whose category is unknown."""

    column: Any
    value: Any  # of the first of them
    row: int | str  # its position, or its name
    n: int

    def __str__(self) -> str:
        cells = count(self.n, "cell")
        return f"column {self.column!r}: {cells}, the first {shown(self.value)} in row {self.row}"


class UnknownCategoryWarning(Facts, UserWarning):
    """New rows hold categories, or texts of words, that no training row had."""

    cells: tuple[UnknownCells, ...] = ()
    unseen: str = ""

    @classmethod
    def of(cls, cells: Sequence[UnknownCells], unseen: str) -> Self:
        """Return the warning of some cells, which a classifier treats as its `unseen` says."""
        done = (
            "scored by its prior pseudo-count, which favours classes with few rows"
            if unseen == "prior"
            else "treated as a missing cell"
        )
        warning = cls(
            "categories that no training row had: " + listed(map(str, cells), _NAMED, "; "),
            f". Each is {done}",
            column=cells[0].column,
            advice='give categories= to declare what may occur, or unseen="raise" to refuse it',
        )
        warning.cells, warning.unseen = tuple(cells), unseen
        return warning

    def within(self, place: str, rows: Any = None) -> Self:
        """Return the same warning, of a part of the rows; see `Facts.within`."""
        numbered = self.cells
        if rows is not None and len(rows):
            numbered = tuple(replace(cell, row=rows[cell.row]) for cell in self.cells)
        return self.of(numbered, self.unseen)

    @classmethod
    def of_parts(cls, warnings: Sequence[Self]) -> Self:
        """Return one warning of all parts of some rows; a cell may be in several of them."""
        every = {(c.column, c.row): c for warning in warnings for c in warning.cells}
        merged: dict[Any, UnknownCells] = {}
        for cell in every.values():
            first = merged.setdefault(cell.column, replace(cell, n=0))
            merged[cell.column] = replace(first, n=first.n + cell.n)
        return cls.of(list(merged.values()), warnings[0].unseen)
