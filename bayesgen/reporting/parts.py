"""What a report is made of: sections of sentences, tables, figures and numbers."""

import warnings
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bayesgen.encoding import literals
from bayesgen.plots.style import STYLE


@dataclass(frozen=True)
class Table:
    """Lines of named cells; numbers stay numbers, and `forms` has the texts of some columns."""

    caption: str
    lines: list[dict[str, Any]]
    forms: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)

    @property
    def head(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.lines[0])

    @property
    def rows(self) -> list[list[str]]:
        """Return the cells as texts."""
        return [
            [self.forms.get(name, cell_text)(cell) for name, cell in line.items()]
            for line in self.lines
        ]

    @property
    def text(self) -> int:
        """Return how many columns, from the left, are text; the others are numbers."""
        cells = list(self.lines[0].values())
        return next((i for i, cell in enumerate(cells) if not isinstance(cell, str)), len(cells))

    @property
    def width(self) -> int:
        """Return the letters of the longest cell of each column, together."""
        return sum(max(map(len, column)) for column in zip(self.head, *self.rows, strict=True))


@dataclass(frozen=True)
class Figure:
    """A picture: what draws it, what it shows in words for who does not see it, and its caption.

    Parameters
    ----------
    draw : callable
        Draws on the axes that it gets as ``ax``.
    width, height : float
        In inches.
    """

    draw: Callable[..., Any]
    width: float
    height: float
    alt: str
    caption: str

    @cached_property
    def source(self) -> str:
        """Return the drawing, made when it is first asked for, as the source of an image."""
        import io

        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure as Canvas
        except ImportError:
            raise ImportError('a report needs matplotlib: pip install "bayesgen[report]"') from None
        style: dict[Any, Any] = STYLE | {
            "svg.fonttype": "none",  # text stays text: small, and with the letters of the reader
            "svg.hashsalt": "bayesgen",
            "font.size": 10.5,
            "text.parse_math": False,  # names with dollar signs are names
        }
        file = io.StringIO()
        with mpl.rc_context(style), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # the reader has more fonts
            canvas = Canvas(figsize=(self.width, self.height))
            self.draw(ax=canvas.subplots())
            canvas.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
        svg = literals.without_controls(file.getvalue().replace(r"\$", "$"))
        svg = svg.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
        return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"


@dataclass
class Section:
    """One heading of the page."""

    key: str  # of TITLES
    text: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # how it was computed, what was left out
    data: dict[str, Any] = field(default_factory=dict)  # numbers that no table has, for JSON

    @property
    def title(self) -> str:
        """Return the heading, which is a word of the navigation too."""
        return TITLES[self.key]

    @property
    def record(self) -> dict[str, Any]:
        """Return all but the figures, for JSON."""
        tables = [{"caption": table.caption, "rows": table.lines} for table in self.tables]
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
    if p != p:
        return "–"
    if 0.9995 <= p < 1:
        return "> 99.9\u00a0%"
    if 0 < p < 0.0005:
        return "< 0.1\u00a0%"
    return f"{100 * p:.3g}\u00a0%"


def number(value: float, digits: int = 3) -> str:
    """Return a score; a dash where there is none, and no 0.000 for what is not 0."""
    if value != value:
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}".replace("-", "−")
    if text.strip("−0."):
        return text
    return f"< {10.0**-digits:.{digits}f}" if value > 0 and digits > 2 else text.lstrip("−")


def ends(interval: Sequence[float], text: Callable[[float], str] = number) -> str:
    """Return an interval; a dash where there is none."""
    low, high = interval
    return "–" if low != low else f"{text(low)} to {text(high)}"


def signed(value: float, digits: int = 3) -> str:
    """Return a number with its sign; 0.000 for what is nearly 0."""
    text = number(value, digits)
    return f"{0:.{digits}f}" if text[0] == "<" else text if text[0] in "−–∞" else f"+{text}"


def cell_text(value: Any) -> str:
    """Return a text, a number or an interval as the cell of a table."""
    if isinstance(value, tuple):
        return ends(value)
    return number(value) if isinstance(value, float) else str(value)
