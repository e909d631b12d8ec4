"""The pictures of docs/benchmarks: each is drawn from the tables of its own page."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

PAGES = Path(__file__).with_name("benchmarks")
INK, GREY, BLUE, ORANGE, GREEN = "#22272e", "#8a939d", "#0072b2", "#c85200", "#00805e"
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "legend.frameon": False,
}


class Table(NamedTuple):
    """The cells of a table of a page, as written."""

    head: list[str]
    rows: list[list[str]]


def tables(page: str) -> Iterator[Table]:
    """The tables of a page, in order."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        head, _, *rows = [
            [cell.replace("`", "").strip() for cell in line.strip().strip("|").split("|")]
            for line in block.strip().splitlines()
        ]
        yield Table(head, rows)


def number(cell: str) -> float:
    """The first number of a cell; nan if there is none."""
    found = re.search(r"-?\d*\.?\d+(?:e[-+]?\d+)?", cell.replace("\N{MINUS SIGN}", "-"))
    return float(found[0]) if found else np.nan


def draw(picture: str) -> None:
    """Draw the picture of a page into a new figure; two are on the page of pools."""
    with plt.rc_context(STYLE):
        page = "pools" if picture == "learning_large" else picture
        globals()[f"_{picture}"](*tables(page))


def _lines(names: list[str], width: float = 6.6):
    """Axes with a line per name, the first on top."""
    _, ax = plt.subplots(figsize=(width, 0.8 + 0.24 * len(names)))
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color="#e6e9ec")
    ax.set_axisbelow(True)
    return ax


def _ratios(ax, ticks: tuple[float, ...]) -> None:
    """A logarithmic axis of ratios with a line at 1."""
    ax.set_xscale("log")
    ax.axvline(1, color=INK, lw=0.8)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def _legend(ax) -> None:
    """Entries in one line above the axes."""
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, handletextpad=0.2, borderpad=0)


def _plug_ins(ratios, *_):
    rows = ratios.rows
    ax = _lines([f"{name}, {n} rows per class" for name, n, *_ in rows])
    for k, (_, _, mean, largest, *_) in enumerate(rows):
        ax.plot([number(mean), number(largest)], [k, k], color=GREY, lw=1)
        ax.plot(number(mean), k, "o", color=BLUE)
    _ratios(ax, (0.15, 0.25, 0.5, 0.7, 1, 1.3))
    ax.set_xlabel("ratio of log losses, full predictive to posterior mean")


def _nuts(runs, *_):
    ax = _lines([f"{data}, {name}" for data, name, *_ in runs.rows])
    for k, (_, _, _, z, *_) in enumerate(runs.rows):
        largest, limit = (float(v) for v in re.findall(r"[\d.]+", z))
        ax.plot([0, largest], [k, k], color=BLUE, lw=4, solid_capstyle="butt")
        ax.plot(limit, k, "|", color=ORANGE, ms=11, mew=2)
    ax.set_xlim(0, 5)
    ax.set_xlabel("largest |z| (blue) and its limit (orange)")


def _pools(unseen, *_):
    """A block per training size: its first row has all tables, the next rows groups of them."""
    peers = unseen.head[1:-1]
    rows = [row for row in unseen.rows if row[0] in ("two thirds of the rows", "20 rows per class")]
    ax = _lines([f"{peer}, {row[0]}" for row in rows for peer in peers])
    for k, cell in enumerate(cell for row in rows for cell in row[1:-1]):
        ratio, error = (float(v) for v in re.findall(r"\d*\.\d+", cell))
        colour = ORANGE if k >= len(peers) else BLUE
        ax.errorbar(ratio, k, xerr=2 * error, fmt="o", color=colour, capsize=2)
    _ratios(ax, (0.7, 0.8, 0.9, 1, 1.1, 1.2))
    ax.set_xlabel("log loss of the pool over that of the other")


def _curves(rows: list[int], lines: dict[str, list[float]]):
    """Axes with log loss against rows."""
    _, ax = plt.subplots(figsize=(6.6, 3.6))
    colours = (BLUE, GREEN, GREY, ORANGE, "#b3589a", INK, "#b8860b")
    for colour, (name, values) in zip(colours, lines.items(), strict=False):
        ax.plot(rows[: len(values)], values, "o-", color=colour, ms=4, lw=1.3, label=name)
    ax.set_xscale("log")
    ax.set_xticks(rows, [f"{n:,}".replace(",", " ") for n in rows])
    ax.minorticks_off()
    ax.set_ylabel("log loss, nats")
    ax.legend(loc="upper right")
    return ax


def _few_rows(losses, *_):
    sizes = [int(number(name)) for name in losses.head if name.endswith(" rows")]
    values = ([number(cell) for cell in row[1 : 1 + len(sizes)]] for row in losses.rows)
    ax = _curves(sizes, dict(zip((row[0] for row in losses.rows), values, strict=True)))
    ax.set_yscale("log")
    ax.set_ylim(0.2, 4)
    ax.set_yticks([0.25, 0.5, 1, 2], ["0.25", "0.5", "1", "2"])
    ax.minorticks_off()
    ax.set_xlabel("rows per class")


def _learning_large(*found):
    (table,) = (t for t in found if t.head[0] == "training rows")
    lines: dict[str, list[float]] = {}
    for _, name, loss, *_ in table.rows:
        lines.setdefault(name, []).append(number(loss))
    sizes = dict.fromkeys(int(row[0].replace(" ", "")) for row in table.rows)
    _curves(list(sizes), lines).set_xlabel("training rows")


def _forests(summary, *_):
    ax = _lines([row[0] for row in summary.rows])
    few = len(summary.head) // 2 + 1
    for column, colour, label in (
        (1, BLUE, "two thirds of the rows"),
        (few, ORANGE, "20 per class"),
    ):
        values = [number(row[column]) for row in summary.rows]
        ax.plot(values, range(len(values)), "o", color=colour, label=label)
    _ratios(ax, (0.3, 0.4, 0.5, 0.7, 1, 1.3))
    ax.set_xlabel("log loss over that of naive Bayes on the same bins")
    _legend(ax)


def _labels(errors, *_):
    ax = _lines([row[0] for row in errors.rows])
    for column, colour, label in ((1, BLUE, "5 % wrong"), (2, ORANGE, "20 % wrong")):
        values = [number(row[column]) for row in errors.rows]
        ax.plot(values, range(len(values)), "o", color=colour, label=label)
    _ratios(ax, (0.2, 0.3, 0.5, 0.7, 1))
    ax.set_xlabel("largest ratio of log losses over eight tables")
    _legend(ax)


def _speed(large, *_):
    rows = [row for row in large.rows if number(row[4]) > 0]
    ax = _lines([f"{name} / {peer}" for name, peer, *_ in rows], width=7.4)
    for k, row in enumerate(rows):
        ratio = number(row[4])
        ax.plot(
            [1, ratio], [k, k], color=BLUE if ratio >= 1 else ORANGE, lw=5, solid_capstyle="butt"
        )
    _ratios(ax, (0.1, 0.3, 1, 3, 10, 30, 100, 300))
    ax.tick_params(axis="y", labelsize=7.5)
    ax.set_xlabel("times as fast as the peer")
