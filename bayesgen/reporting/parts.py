"""What a report is made of: sections of sentences, tables and figures, and their numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesgen.encoding import literals
from bayesgen.reporting.figures import Figure


@dataclass(frozen=True)
class TextTable:
    """Cells as text; the first of a line is its head.

    Parameters
    ----------
    caption : str
    head : names of the columns
    rows : lines of cells
    text : number of columns, from the left, that are text; the others are numbers, flush right
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: int = 1

    @property
    def width(self) -> int:
        """Return the letters of the longest cell of each column, together."""
        return sum(max(map(len, column)) for column in zip(self.head, *self.rows, strict=True))


@dataclass
class Section:
    """One heading of the page."""

    key: str  # of TITLES
    text: list[str] = field(default_factory=list)
    tables: list[TextTable] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # how it was computed, what was left out
    data: dict[str, Any] = field(default_factory=dict)  # every number, for JSON

    @property
    def title(self) -> str:
        """Return the heading, which is a word of the navigation too."""
        return TITLES[self.key]

    @property
    def record(self) -> dict[str, Any]:
        """Return all but the figures, for JSON."""
        tables = [{"caption": t.caption, "columns": t.head, "rows": t.rows} for t in self.tables]
        shared = {"title": self.title, "text": self.text, "tables": tables}
        return shared | {"notes": self.notes, "data": self.data}


TITLES = {
    "verdict": "Verdict",
    "predictives": "Full predictive or plug-in",
    "calibration": "Calibration",
    "doubts": "Least certain rows",
    "decisions": "Decisions",
    "confusions": "Confusions",
    "model": "Model",
    "typicality": "Typicality",
    "sampling": "Sampling",
    "limits": "What it should not be used for",
}


def count(n: float, what: str) -> str:
    """Return ``1 row``, ``12 000 rows``, on one line."""
    return literals.count(n, what, "\u202f")


def share(p: float) -> str:
    """Return a percentage: ``98.3 %``; never a rounded 100 % or 0 % of what is not."""
    if 0.9995 <= p < 1:
        return "> 99.9\u00a0%"
    if 0 < p < 0.0005:
        return "< 0.1\u00a0%"
    return f"{100 * p:.3g}\u00a0%"


def number(value: float, digits: int = 3) -> str:
    """Return a score; a dash where there is none, and no 0.000 for what is not 0."""
    if value is None or value != value:
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}".replace("-", "−")
    if text.strip("−0."):
        return text
    return f"< {10.0**-digits:.{digits}f}" if value > 0 and digits > 2 else text.lstrip("−")


def ends(low: float, high: float, text: Callable[[float], str] = number) -> str:
    """Return an interval; a dash where there is none."""
    return "–" if low != low else f"{text(low)} to {text(high)}"


def signed(value: float, digits: int = 3) -> str:
    """Return a number with its sign; 0.000 for what is nearly 0."""
    text = number(value, digits)
    return f"{0:.{digits}f}" if text[0] == "<" else text if text[0] in "−–∞" else f"+{text}"


def cell_text(value, most: int = 40) -> str:
    """Return a cell of the user's table, shortened."""
    if value is None or (isinstance(value, float | np.floating) and value != value):
        return "missing"
    if isinstance(value, float | np.floating):
        return f"{value:.{4 if abs(float(value)) < 1e4 else 6}g}"
    return literals.one_line(value, most)


def plain(value):
    """Return what JSON can hold: arrays as lists, NaN and infinities as null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
