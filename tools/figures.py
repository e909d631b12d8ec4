"""Draw the figures of docs/figures: `make figures`, or name them to draw only some."""

import argparse
import json
import tomllib
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import NullLocator
from scipy.stats import t

import bayesgen as bg
from bayesgen.datasets import load_penguins
from bayesgen.plots import style as plots
from bayesgen.plots.style import CLASSES, HAIR, INK, MUTED

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "figures"
BLUE, ORANGE = CLASSES[:2]
STYLE = plots.STYLE | {
    "figure.constrained_layout.use": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "bayesgen",
}


def first_screen() -> Figure:
    """The picture beside the first lines of the README: the same calls."""
    X, y = load_penguins()
    few = y.groupby(y).sample(20, random_state=1).index
    pool = bg.LogLinearPool().fit(X.loc[few], y[few])
    birds = X.loc[[60, 73, 330, 271]]
    ax = bg.plots.plot_class_probability(pool, birds)
    return ax.figure


# --------------------------------------------------------------------------------- architecture

PURPOSES = {  # of the layers of the import contract, by their first package
    "cli": "commands",
    "reporting": "pages",
    "plots": "pictures",
    "estimators": "scikit-learn interface: read once, fit, delegate",
    "explain": "why; is the posterior right? which model?",
    "predict": "intervals, entropies, costs, new proportions",
    "inference": "closed form, empirical Bayes, NUTS",
    "datatree": "trees for ArviZ: built and read",
    "posterior": "class weights x a family: exact, or draws",
    "io": "one reader of tables; streams, dask, model files",
    "encoding": "tables, texts and labels to arrays and codes",
    "families": "one file or folder for one prior and likelihood",
    "numerics": "stable sums, kernels; tables",
    "errors": "what a user did wrong, and the remedy",
}
DOWN, UP = 0.605, 0.87  # the lanes of fit and of predict
JOURNEY = (  # lane, layer, what X has become there
    (DOWN, "estimators", "X, y"),
    (DOWN, "encoding", "arrays, codes"),
    (DOWN, "families", "statistics"),
    (UP, "posterior", "posterior"),
    (UP, "predict", "log p(y, x | D)"),
    (UP, "estimators", "p(y | x, D)"),
)
FITTED = 4  # so many of them are the fit's
STEPS = (  # beside the arrow that leaves each but the last
    "read once",
    "",
    "prior.update",
    "new rows",
    "one softmax\nper row",
)


def architecture() -> Figure:
    """Layers from the command line down to numerics, and the way of the data through them."""
    project = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (c["layers"] for c in project["tool"]["importlinter"]["contracts"] if "layers" in c)
    fig, ax = plt.subplots(figsize=(7.4, 7.6))
    fig.subplots_adjust(0, 0, 1, 1)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    top, height = 0.905, 0.054
    pitch = (top - height - 0.015) / (len(layers) - 1)
    middle = {layer.split(" ")[0]: top - height / 2 - i * pitch for i, layer in enumerate(layers)}
    head = {"size": 12, "weight": "bold", "va": "center"}
    ax.text(0.02, 0.962, "Imports point downwards", **head)
    ax.text(DOWN - 0.08, 0.962, "The way of the data", **head)
    ax.text(DOWN, middle["cli"], "fit", color=BLUE, ha="center", **head)
    ax.text(UP, middle["cli"], "predict", color=ORANGE, ha="center", **head)
    for layer in layers:
        y, purpose = middle[layer.split(" ")[0]], PURPOSES[layer.split(" ")[0]]
        ax.add_patch(_box(0.02, y, 0.455, height, "#eef2f5"))
        ax.text(0.035, y + 0.0095, layer.replace("|", "·"), va="center", weight="bold", size=8.7)
        ax.text(0.035, y - 0.0098, purpose, va="center", color=MUTED, size=9)
    for i, (x, row, text) in enumerate(JOURNEY):
        colour = BLUE if i < FITTED else ORANGE
        ax.plot([0.475, x], [middle[row]] * 2, color=HAIR, lw=0.9, zorder=0)
        ax.add_patch(_box(x - 0.08, middle[row], 0.16, 0.045, colour))
        ax.text(x, middle[row], text, color="white", weight="bold", ha="center", va="center")
    for (x0, i, _), (x1, j, _), step in zip(JOURNEY, JOURNEY[1:], STEPS, strict=False):
        arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.3, "shrinkA": 0, "shrinkB": 1}
        if x0 == x1:
            sign = 1 if middle[j] < middle[i] else -1
            ends = (x0, middle[i] - sign * 0.0225), (x1, middle[j] + sign * 0.0225)
        else:
            ends = (x0 + 0.08, middle[i]), (x1, middle[j] - 0.0225)
            arrow["connectionstyle"] = "angle,angleA=0,angleB=90,rad=6"
        ax.annotate("", ends[1], ends[0], arrowprops=arrow)
        beside = (ends[0] if x0 == x1 else ends[1])[0] + 0.012, (ends[0][1] + ends[1][1]) / 2
        paper = {"fc": "white", "ec": "none", "pad": 0.3}  # hairlines pass behind the words
        if step:
            ax.text(*beside, step, va="center", size=9, bbox=paper)
    return fig


def _box(x, y, width, height, colour):
    box = "round,pad=0,rounding_size=0.012"
    return FancyBboxPatch((x, y - height / 2), width, height, boxstyle=box, fc=colour, ec="none")


# ------------------------------------------------------------------------------ learning curves

CURVES = FOLDER.parents[1] / "tests" / "benchmarks" / "learning_curves.jsonl"
RIVALS = (("generative", BLUE, "o"), ("discriminative", ORANGE, "s"))
PAIRS = ("linear", "quadratic")
CLASSES = {"penguins": 3, "iris": 3, "wine": 3, "Pokémon": 2}


def learning_curves() -> Figure:
    """Log loss against rows per class: discriminants beside logistic regressions, four tables."""
    losses: dict[tuple[str, str], dict[int, list[float]]] = {}  # by table and model, then by rows
    for line in CURVES.read_text(encoding="utf-8").splitlines():
        key, value = json.loads(line)
        if key.startswith((*CLASSES,)):
            table, n, _, model = key.split("|")
            losses.setdefault((table, model), {}).setdefault(int(n), []).append(value[0])
    fig, axes = plt.subplots(2, len(CLASSES), figsize=(7.4, 4.7), sharex=True, sharey="col")
    fig.subplots_adjust(left=0.112, right=0.985, bottom=0.1, top=0.77, hspace=0.13, wspace=0.32)
    for (i, pair), (j, table) in product(enumerate(PAIRS), enumerate(CLASSES)):
        ax = axes[i, j]
        for rival, colour, mark in RIVALS:
            by_rows = losses[table, f"{pair} {rival}"]
            loss = np.array([*by_rows.values()])  # (size, repeat)
            half = t.ppf(0.975, loss.shape[1] - 1) * loss.std(axis=1, ddof=1)
            half /= np.sqrt(loss.shape[1])
            mean = loss.mean(axis=1)
            ax.fill_between([*by_rows], mean - half, mean + half, color=colour, alpha=0.2, lw=0)
            ax.plot([*by_rows], mean, color=colour, marker=mark, ms=4, lw=1.5)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xticks([4, 8, 16, 32, 64], ["4", "8", "16", "32", "64"])
        ax.xaxis.set_minor_locator(NullLocator())
        if i == 0:
            ax.set_title(table, size=10.5, weight="bold")
        guess = np.log(CLASSES[table])
        if ax.get_ylim()[0] < guess < ax.get_ylim()[1]:
            ax.axhline(guess, color=MUTED, lw=0.8, ls=(0, (4, 2.2)), zorder=0)
            ax.text(3.6, guess * 0.985, "guessing", color=MUTED, size=8.5, va="top")
        if j == 0:
            ax.set_ylabel(f"{pair} features\nlog loss [nats a row]", linespacing=1.4)
    for ax in axes[0]:  # few round numbers on the narrow axes, one scale per column
        low, high = ax.get_ylim()
        ticks = [v for v in (0.02, 0.05, 0.1, 0.2, 0.5, 0.6, 0.7, 0.8, 1.0) if low < v < high]
        ticks = ticks if high / low < 3 else [v for v in ticks if v not in (0.6, 0.7, 0.8)]
        ax.set_yticks(ticks, [f"{v:g}" for v in ticks])
        ax.yaxis.set_minor_locator(NullLocator())
    for ax in axes[-1]:
        ax.set_xlabel("training rows per class")
    fig.text(
        0.015,
        0.985,
        "On three tables of four the generative model needs fewer rows;\n"
        "on Pokémon, whose types overlap, neither is ahead throughout",
        va="top",
        size=12.5,
        weight="bold",
        linespacing=1.25,
    )
    fig.text(0.015, 0.852, "discriminant analysis", color=BLUE, weight="bold")
    fig.text(0.245, 0.852, "logistic regression", color=ORANGE, weight="bold")
    says = f"mean and 95 % interval of {loss.shape[1]} training sets"
    fig.text(0.985, 0.852, says, color=MUTED, ha="right")
    return fig


FIGURES = {
    "architecture": (architecture, ("svg", "png")),
    "first_screen": (first_screen, ("png",)),
    "learning_curves": (learning_curves, ("png",)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(FIGURES))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.names:
        draw, kinds = FIGURES[name]
        with mpl.rc_context(STYLE):
            fig = draw()
            for kind in kinds:
                # no date: the same figure is the same file
                metadata = {"Date": None} if kind == "svg" else {}
                fig.savefig(arguments.folder / f"{name}.{kind}", dpi=200, metadata=metadata)
            plt.close(fig)


if __name__ == "__main__":
    main()
