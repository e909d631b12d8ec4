"""The rows that the classifier is least certain of, and why; what features did for all rows."""

from typing import Any

import numpy as np

from bayesgen.encoding.literals import one_line
from bayesgen.families.errors import IncompleteRowError, NoPosteriorError
from bayesgen.numerics.special import Array
from bayesgen.reporting import figures
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, Table, number, share, signed

_DOUBTFUL = 8
_REASONS = 3  # features named for a row
_EXPLAINED = 200  # rows behind the mean contributions
_TERMS = 2_000_000  # rows x features of an explanation
_FEATURES = 15  # of a picture


def least_certain(held: HeldOut) -> Section:
    """Intervals and reasons of a few rows."""
    top = held.p.max(axis=1)
    at = np.argsort(top, kind="stable")[:_DOUBTFUL]
    X = held.rows(at)
    ends, p, without = None, held.p[at], []
    try:
        ends = held.clf.predict_interval(X, prob=held.prob)["interval"].values
    except NoPosteriorError:  # probabilities alone: the summary says why
        pass
    except IncompleteRowError as reason:
        without.append(f"Without intervals: {reason}.")
    pair = np.argsort(-p, axis=1, kind="stable")[:, :2]
    line = np.arange(len(at))[:, None]
    reasons, notes = _reasons(held, at, X)
    notes = [*without, *notes]
    documents = [held.document(int(i)) for i in at]
    rows = []
    for k, i in enumerate(at):
        (a, *others), given = pair[k], held.codes[i]
        cells = [held.name(int(i)), held.labels[given] + ("" if a == given else " (missed)")]
        for c in [a, *others]:
            cell = f"{held.labels[c]} {number(p[k, c], 2)}"
            if ends is not None:
                cell += f" ({number(ends[k, c, 0], 2)} to {number(ends[k, c, 1], 2)})"
            cells.append(cell)
        rows.append([*cells, reasons[k] or documents[k]])
    head = ["row", "label", "most probable", *(["runner-up"] if p.shape[1] > 1 else []), "reasons"]
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    text = [
        f"The most probable class has less than 0.5 in {share(float(np.mean(top < 0.5)))} of the "
        f"rows, less than 0.9 in {share(float(np.mean(top < 0.9)))}."
    ]
    if ends is not None:
        width = ends[..., 1] - ends[..., 0]
        widest = int(np.argmax(width[line, pair].max(axis=1)))
        text[0] += (
            f" Of those below, the training rows leave most open for row {rows[widest][0]}: an "
            f"interval of {number(float(width[widest].max()), 2)}."
        )
    data = {
        "rows": [
            {
                "row": held.name(int(i)),
                "label": held.labels[held.codes[i]],
                "probability": dict(zip(held.labels, p[k].tolist(), strict=True)),
                "interval": None
                if ends is None
                else dict(zip(held.labels, ends[k].tolist(), strict=True)),
                "reasons": reasons[k],
            }
            for k, i in enumerate(at)
        ]
    }
    out = Section("doubts", "Least certain rows", text, notes=notes, data=data)
    intervals = "" if ends is None else f" with {share(held.prob)} intervals"
    caption = f"Probabilities{intervals}"
    if head[-1] == "reasons":
        caption += "; reasons: what speaks for which class, in nats of log-odds"
    out.tables = [Table(caption, head, rows, len(head))]
    if p.shape[1] > 1 and ends is not None:
        names = [f"row {row[0]}" for row in rows]
        shown = p[line, pair], ends[line, pair]
        out.figures = [figures.row_intervals(names, pair, held.labels, *shown, share(held.prob))]
    return out


def _reasons(held: HeldOut, at: Array, X: Any) -> tuple[list[str], list[str]]:
    """The largest contributions to the log-odds of each row, in words; and what is to be noted."""
    nothing = [""] * len(at)
    try:
        table = held.clf.explain(X)
    except (NotImplementedError, ValueError) as error:
        return nothing, [f"No reasons: {error}."]
    mean = table["by_feature" if held.is_pool else "mean"].values
    if not mean.shape[1]:
        return nothing, [
            "No reasons: the members of the pool do not say what a column contributes."
        ]
    names = [str(name) for name in table["feature"].values]
    shown, out = _shown(held, names), []
    for k, i in enumerate(at):
        largest = np.argsort(-np.abs(mean[k]), kind="stable")[:_REASONS]
        parts = []
        for j in largest[np.abs(mean[k][largest]) > 1e-3]:
            label = held.label(table["label" if mean[k, j] > 0 else "against"].values[k])
            value = held.value(int(i), names[j])
            cell = shown[j] + (f" = {value}" if value else "")
            parts.append(f"{cell}: {signed(abs(float(mean[k, j])), 1)} for {label}")
        out.append("; ".join(parts))
    return out, []


def _shown(held: HeldOut, features: list[str]) -> list[str]:
    """Names of columns; of documents n-grams in quotes, as they may end in a blank."""
    is_table = len(getattr(held.X, "shape", (0,))) == 2
    return [one_line(name, 40) if is_table else repr(name) for name in features]


def contributions(held: HeldOut) -> Section:
    """Mean size of each feature's contribution to the log-odds."""
    width = held.clf.explain(held.rows([0])).sizes["feature"]
    if not width:
        raise ValueError("the members of the pool do not say what a column contributes")
    at = held.some(int(np.clip(_TERMS // width, 1, _EXPLAINED)))
    table = held.clf.explain(held.rows(at))
    size = np.abs(table["by_feature" if held.is_pool else "mean"].values).mean(axis=0)
    names = [str(name) for name in table["feature"].values]
    order = np.argsort(-size, kind="stable")[:_FEATURES]
    shown = _shown(held, [names[j] for j in order])
    figure = figures.bars(
        shown,
        size[order],
        "mean size of the contribution (nats)",
        "Mean absolute contribution to the log-odds",
        "Of the most probable class against the runner-up; of two classes, of one against the "
        "other.",
    )
    ahead = (
        f"{shown[0]} moves the log-odds most, by {number(float(size[order[0]]), 2)} nats "
        "on average."
    )
    return Section(
        "contributions",
        "What the features do",
        [ahead],
        figures=[figure],
        notes=[f"Of {len(at)} of the rows."] if len(at) < held.n else [],
        data={"rows": len(at), "mean_contribution": {names[j]: float(size[j]) for j in order}},
    )
