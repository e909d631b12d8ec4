"""The warning of cells whose category no training row had."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from bayesgen.encoding.literals import count, listed, shown
from bayesgen.errors import Facts, warn

_NAMED = 5  # columns in one warning


class UnknownCategoryWarning(Facts, UserWarning):
    """New rows hold categories, or texts of words, that no training row had."""


class UnknownCells(NamedTuple):
    """Cells of one column whose category is unknown."""

    column: Any
    value: Any  # of the first of them
    row: int
    n: int

    def __str__(self) -> str:
        cells = count(self.n, "cell")
        return f"column {self.column!r}: {cells}, the first {shown(self.value)} in row {self.row}"


def warn_of(cells: Iterable[UnknownCells], unseen: str) -> None:
    """Warn once of the unknown categories of all columns, if there are any."""
    if not (cells := list(cells)):
        return
    done = (
        "scored by its prior pseudo-count, which favours classes with few rows"
        if unseen == "prior"
        else "treated as a missing cell"
    )
    warn(
        UnknownCategoryWarning(
            "categories that no training row had: " + listed(map(str, cells), _NAMED, "; "),
            f". Each is {done}",
            column=cells[0].column,
            advice='give categories= to declare what may occur, or unseen="raise" to refuse it',
        )
    )
