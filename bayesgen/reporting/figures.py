"""Pictures as inline SVG, in colours that the page sets: light, dark and print from one drawing.

A picture is 5.2 inches wide, so that its letters are as large on a phone as beside the text.
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING, Any

from bayesgen.numerics.special import Array
from bayesgen.plots import drawing
from bayesgen.plots.style import CLASSES, HAIR, INK, MUTED, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 5.2  # inches
_VARIABLES = {INK: "ink", MUTED: "muted", HAIR: "hair", "#ffffff": "paper"} | {
    colour: f"c{k}" for k, colour in enumerate(CLASSES)
}
_serial = count()


@dataclass(frozen=True)
class Figure:
    """A picture: what draws it, what it shows in words for who does not see it, and its caption.

    Parameters
    ----------
    draw : callable
        Draws on axes; of `bayesgen.plots.drawing`, with its data.
    height : float
        In inches.
    """

    draw: Callable[["Axes"], None]
    height: float
    alt: str
    caption: str

    @cached_property
    def svg(self) -> str:
        """Drawing, made when it is first asked for."""
        from html import escape

        label = f'<svg role="img" aria-label="{escape(self.alt, quote=True)}"'
        head, inside = _drawn(self.draw, self.height).replace("<svg", label, 1).split(">", 1)
        # the label says it all: ticks would be read one by one
        inside = inside.rpartition("</svg>")[0]
        return f'{head}><g aria-hidden="true">{inside}</g></svg>'


def _drawn(draw: Callable[["Axes"], None], height: float) -> str:
    """Return the picture without header, metadata and fixed size, with ids of its own."""
    import io

    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise ImportError('a report needs matplotlib: pip install "bayesgen[report]"') from None
    style: dict[Any, Any] = STYLE | {
        "svg.fonttype": "none",  # text stays text: small, and in the font of the page
        "svg.hashsalt": "bayesgen",
        "font.size": 10.5,
        "text.parse_math": False,  # names with dollar signs are names
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
    }
    file = io.StringIO()
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the page has a font of its own
        canvas = Canvas(figsize=(_WIDTH, height))
        draw(canvas.subplots())
        canvas.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    prefix = f"p{next(_serial)}-"
    for pattern, new in (
        (r"<metadata>(.|\n)*?</metadata>", ""),
        (r' xmlns(:xlink)?="[^"]*"| version="[^"]*"', ""),
        (r'(?<=<svg)([^>]*?) width="[^"]*" height="[^"]*"', r"\1"),
        ("xlink:href", "href"),
        (r'<g id="[^"]*"', "<g"),
        (r'( id="|url\(#|href="#)', rf"\1{prefix}"),
        (r"(\d+\.\d{2})\d+(?=[^<>]*>)", r"\1"),  # numbers in tags, to a hundredth of a point
        (r"font: ([^;\"]*?)px [^;\"]*", r"font-size: \1px"),  # the page has the font
        *((colour, f"var(--{variable})") for colour, variable in _VARIABLES.items()),
        (r"\n\s*", "\n"),
    ):
        text = re.sub(pattern, new, text)
    return text


# ------------------------------------------------------------------------------------------------
# Pictures that several sections have.


def matrix(
    shades: Array, names: list[str], texts: list[list[str]], alt: str, caption: str
) -> Figure:
    """Return a square of shades with texts in its cells."""
    height = min(max(2.4, 0.62 + 0.36 * len(names)), 6.5) + 0.9 * drawing.are_turned(names, 48)
    draw = partial(drawing.matrix, values=shades, rows=names, columns=names, texts=texts)
    return Figure(draw, height, alt, caption)


def differences(
    names: list[str], value: Array, ends: Array, line: float, xlabel: str, what: str, caption: str
) -> Figure:
    """Return a number with an interval per name, beside a vertical line."""
    draw = partial(
        drawing.differences, names=names, value=value, ends=ends, line=line, xlabel=xlabel
    )
    return Figure(draw, 0.85 + 0.3 * len(names), f"{what}: {told(names, value)}.", caption)


def told(names: list[str], value: Array) -> str:
    """Return names and numbers, as the words of a picture."""
    return "; ".join(f"{n} {v:.3g}" for n, v in zip(names, value, strict=True))
