"""Pictures as inline SVG, in colours that the page sets: light, dark and print from one drawing.

A picture is 5.2 inches wide, so that its letters are as large on a phone as beside the text.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.encoding.literals import one_line
from bayesgen.numerics.special import Array
from bayesgen.plots.models import Bins
from bayesgen.plots.style import CLASSES, HAIR, INK, MUTED, STYLE
from bayesgen.reporting.parts import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 5.2  # inches
_NAME = 22  # letters of a label on an axis
_PAPER = "#fefefe"  # what becomes the background of the page
_VARIABLES = {INK: "ink", MUTED: "muted", HAIR: "hair", _PAPER: "paper"} | {
    colour: f"c{k}" for k, colour in enumerate(CLASSES)
}
_serial = count()


class _Drawing:
    """Axes to draw on; afterwards the SVG."""

    def __init__(self, axes: "Axes") -> None:
        self.axes = axes
        self.svg = ""

    def figure(self, alt: str, caption: str) -> Figure:
        """The picture; `alt` says what it shows."""
        from html import escape

        label = f'<svg role="img" aria-label="{escape(alt, quote=True)}"'
        head, inside = self.svg.replace("<svg", label, 1).split(">", 1)
        # the label says it all: ticks would be read one by one
        inside = inside.rpartition("</svg>")[0]
        return Figure(f'{head}><g aria-hidden="true">{inside}</g></svg>', alt, caption)


@contextmanager
def _drawing(height: float) -> Iterator[_Drawing]:
    """Axes of the house's style, `height` inches high."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise ImportError('a report needs matplotlib: pip install "bayesgen[report]"') from None
    style = STYLE | {
        "svg.fonttype": "none",  # text stays text: small, and in the font of the page
        "svg.hashsalt": "bayesgen",
        "font.size": 10.5,
        "text.parse_math": False,  # names with dollar signs are names
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
    }
    with mpl.rc_context(style):  # type: ignore[arg-type]
        canvas = Canvas(figsize=(_WIDTH, height))
        out = _Drawing(canvas.subplots())
        yield out
        out.svg = _svg(canvas)


def _svg(canvas: Any) -> str:
    """The picture without header, metadata, addresses and fixed size, with ids of its own."""
    import io

    file = io.StringIO()
    canvas.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"| version="[^"]*"', "", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = text.replace("xlink:href", "href")
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    own = f"p{next(_serial)}-"
    text = re.sub(r'( id="|url\(#|href="#)', rf"\1{own}", text)
    text = re.sub(r"<[^>]*>", _rounded, text)
    text = re.sub(r"font: ([^;\"]*?)px [^;\"]*", r"font-size: \1px", text)  # the page has the font
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    return re.sub(r"\n\s*", "\n", text)


def _rounded(tag: re.Match[str]) -> str:
    """A tag with its numbers to a hundredth of a point."""
    return re.sub(r"(\d+\.\d{2})\d+", r"\1", tag[0])


def _grid(axes: "Axes", axis: Any = "x") -> None:
    if axis == "x":
        axes.locator_params(axis="x", nbins=6)
    axes.grid(axis=axis, color=HAIR, lw=0.5)
    axes.set_axisbelow(True)


def _lines(axes: "Axes", names: Sequence[str]) -> None:
    """One labelled line per name, the first on top."""
    axes.set_yticks(range(len(names)), [one_line(name, 32) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)


def reliability(bins: Bins, what: str, prob: str) -> Figure:
    """Observed frequency against predicted probability."""
    with _drawing(4.3) as drawing:
        ax = drawing.axes
        _grid(ax, "both")
        ax.plot([0, 1], [0, 1], color=MUTED, lw=1)
        ax.vlines(bins.predicted, bins.lower, bins.upper, color=CLASSES[0], lw=2.6, alpha=0.55)
        ax.plot(bins.predicted, bins.observed, "o", color=CLASSES[0], ms=6, mec=_PAPER, mew=0.8)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set_xlabel(f"predicted probability of {what}")
        ax.set_ylabel("how often it was right" if "probable" in what else "how often it was so")
        ax.annotate(
            "calibrated", (0.06, 0.1), color=MUTED, rotation=45, rotation_mode="anchor", size=9.5
        )
    n_off = int(((bins.lower > bins.predicted) | (bins.upper < bins.predicted)).sum())
    alt = (
        f"Reliability diagram of {len(bins.size)} groups of rows: {n_off} of the intervals miss "
        f"the diagonal. Predicted {_series(bins.predicted)}; observed {_series(bins.observed)}."
    )
    size = (
        f"{bins.size.min():g} to {bins.size.max():g}" if np.ptp(bins.size) else f"{bins.size[0]:g}"
    )
    caption = (
        f"Each point: {size} rows of about the same predicted probability. Bars: {prob} intervals "
        "of the frequency; points on the diagonal keep their word."
    )
    return drawing.figure(alt, caption)


def _series(values: Array) -> str:
    return ", ".join(f"{v:.2f}" for v in values)


def predictives(names: list[str], gap: Array, se: Array, known: Array) -> Figure:
    """Log loss of each plug-in above that of the full predictive, with 2 standard errors."""
    at = np.flatnonzero(known & np.isfinite(gap))
    with _drawing(1.0 + 0.42 * len(at)) as drawing:
        ax = drawing.axes
        _grid(ax)
        ax.axvline(0, color=MUTED, lw=1)
        for line, i in enumerate(at):
            tint = CLASSES[0] if i == 0 else CLASSES[1]
            ax.hlines(line, gap[i] - 2 * se[i], gap[i] + 2 * se[i], color=tint, lw=3, alpha=0.5)
            ax.plot(gap[i], line, "o", color=tint, ms=6.5, mec=_PAPER, mew=0.8)
        _lines(ax, [names[i] for i in at])
        ax.set_xlabel("log loss above that of the full predictive (nats)")
    told = "; ".join(f"{names[i]} {gap[i]:+.4f} (standard error {se[i]:.4f})" for i in at[1:])
    caption = "Right of the line: worse than integrating the parameters out. Bars: two standard "
    return drawing.figure(
        f"Log loss of plug-in estimates less that of the full predictive: {told or 'none known'}.",
        caption + "errors of the paired difference.",
    )


def row_intervals(
    rows: list[str], classes: Array, labels: list[str], p: Array, ends: Array, prob: str
) -> Figure:
    """Class probabilities of a few rows with their intervals, two classes a row.

    Parameters
    ----------
    classes : (n, 2) codes
    p, ends : (n, 2), (n, 2, 2)
    """
    with _drawing(1.05 + 0.4 * len(rows)) as drawing:
        ax = drawing.axes
        _grid(ax)
        many = len(labels) > len(CLASSES)  # no colour stands for two classes
        for i in range(len(rows)):
            for k, c in enumerate(classes[i]):
                tint, y = CLASSES[k if many else c], i + 0.3 * (k - 0.5)
                ax.hlines(y, *ends[i, k], color=tint, lw=3, alpha=0.5)
                ax.plot(p[i, k], y, "o", color=tint, ms=5.5, mec=_PAPER, mew=0.8)
        _lines(ax, rows)
        ax.set_xlim(-0.02, 1.02)
        ax.set_xlabel(f"class probability, {prob} interval")
        shown = ["most probable", "runner-up"] if many else labels
        codes = [0, 1] if many else sorted(set(classes.ravel().tolist()))
        for c in codes:
            ax.plot([], [], "o", color=CLASSES[c], label=one_line(shown[c], _NAME))
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    told = "; ".join(
        f"{rows[i]}: "
        + ", ".join(
            f"{labels[c]} {p[i, k]:.2f} ({ends[i, k, 0]:.2f} to {ends[i, k, 1]:.2f})"
            for k, c in enumerate(classes[i])
        )
        for i in range(len(rows))
    )
    caption = "Dots: the predictive probability. Bars: what the training rows leave open."
    return drawing.figure(f"Class probabilities of the least certain rows. {told}.", caption)


def intervals(
    names: list[str],
    value: Array,
    ends: Array,
    line: float,
    xlabel: str,
    what: str,
    caption: str,
) -> Figure:
    """One number with an interval on each line, beside a vertical line to compare with."""
    with _drawing(0.85 + 0.3 * len(names)) as drawing:
        ax = drawing.axes
        _grid(ax)
        ax.axvline(line, color=MUTED, lw=1)
        place = np.arange(len(names))
        ax.hlines(place, ends[:, 0], ends[:, 1], color=CLASSES[0], lw=3, alpha=0.5)
        ax.plot(value, place, "o", color=CLASSES[0], ms=5.5, mec=_PAPER, mew=0.8)
        _lines(ax, names)
        ax.set_xlabel(xlabel)
    told = "; ".join(f"{n} {v:.3g}" for n, v in zip(names, value, strict=True))
    return drawing.figure(f"{what}: {told}.", caption)


def bars(names: list[str], value: Array, xlabel: str, what: str, caption: str) -> Figure:
    """One bar per name, from 0."""
    with _drawing(0.85 + 0.28 * len(names)) as drawing:
        ax = drawing.axes
        _grid(ax)
        ax.barh(range(len(names)), value, height=0.62, color=CLASSES[0])
        _lines(ax, names)
        ax.set_xlabel(xlabel)
    told = "; ".join(f"{n} {v:.3g}" for n, v in zip(names, value, strict=True))
    return drawing.figure(f"{what}: {told}.", caption)


def matrix(
    values: Array,
    rows: list[str],
    columns: list[str],
    texts: list[list[str]],
    what: str,
    caption: str,
) -> Figure:
    """A table of numbers between 0 and 1 as shades, with the numbers in the cells."""
    size = min(max(2.4, 0.62 + 0.36 * len(rows)), 6.5)
    turned = len(columns) * max(map(len, columns)) > 48
    with _drawing(size + 0.9 * turned) as drawing:
        ax = drawing.axes
        for i in range(len(rows)):
            for j in range(len(columns)):
                shade = 0.06 + 0.6 * float(values[i, j])
                box = (j - 0.5, i - 0.5)
                ax.add_patch(_box(box, shade if values[i, j] > 0 else 0.0))
                if len(columns) <= 12:
                    ax.text(j, i, texts[i][j], ha="center", va="center", size=9.5)
        ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
        ax.set_yticks(range(len(rows)), [one_line(name, 18) for name in rows])
        names = [one_line(name, 16) for name in columns]
        ax.set_xticks(range(len(columns)), names)
        if turned:
            ax.tick_params(axis="x", rotation=40)
            for label in ax.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
        ax.tick_params(length=0, labelcolor=INK)
        for side in ax.spines.values():
            side.set_visible(False)
    return drawing.figure(what, caption)


def _box(corner: tuple[float, float], alpha: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, 0.98, 0.98, fc=CLASSES[0], alpha=alpha, ec="none")


def histogram(values: Array, bins: int, xlabel: str, what: str, caption: str) -> Figure:
    """Shares of rows between 0 and 1 in equal bins, with the share that each would have."""
    edges = np.linspace(0, 1, bins + 1)
    shares = np.histogram(values, edges)[0] / len(values)
    with _drawing(2.7) as drawing:
        ax = drawing.axes
        _grid(ax, "y")
        ax.bar(edges[:-1], shares, 1 / bins * 0.94, align="edge", color=CLASSES[0], alpha=0.8)
        ax.axhline(1 / bins, color=INK, lw=1)
        ax.set(xlim=(0, 1))
        ax.set_xlabel(xlabel)
        ax.set_ylabel("share of rows")
    told = ", ".join(f"{s:.2f}" for s in shares)
    return drawing.figure(f"{what}: shares of rows in {bins} equal bins {told}.", caption)


def z_scores(names: list[str], z: Array, labels: list[str], limit: float) -> Figure:
    """Standardised differences of each feature, a dot per class and statistic.

    Parameters
    ----------
    z : (feature, class, statistic); NaN where there is none
    """
    with _drawing(1.1 + 0.3 * len(names)) as drawing:
        ax = drawing.axes
        _grid(ax)
        ax.axvspan(-limit, limit, color=MUTED, alpha=0.12, lw=0)
        ax.axvline(0, color=MUTED, lw=1)
        many = len(labels) > len(CLASSES)
        shown = np.clip(z, -8, 8)
        for c in range(z.shape[1]):
            tint = CLASSES[0 if many else c]
            for s, marker in enumerate("oD"):
                values = shown[:, c, s]
                place = np.arange(len(names)) + 0.16 * (2 * s - 1)
                ax.plot(values, place, marker, color=tint, ms=4.8, mec=_PAPER, mew=0.6, ls="")
            if not many:
                ax.plot([], [], "o", color=tint, label=one_line(labels[c], _NAME))
        _lines(ax, names)
        ax.set_xlim(-8.5, 8.5)
        ax.set_xlabel("held-out rows less replicates (standard deviations)")
        if not many:
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
    largest = np.nanmax(np.abs(z.reshape(len(z), -1)), axis=1, initial=0.0)
    told = "; ".join(f"{n} {v:.1f}" for n, v in zip(names, largest, strict=True))
    caption = (
        "Circles: means or shares; diamonds: standard deviations. Within the band: what the model "
        "would produce itself, in 95 % of cases. Beyond 8 at the edge."
    )
    return drawing.figure(
        f"Predictive checks, largest difference of each feature: {told}.", caption
    )
