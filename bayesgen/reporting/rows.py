"""How good the probabilities are: verdict, predictives, calibration, confusions."""

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from bayesgen.checks.compare import compare_predictives
from bayesgen.checks.expected_score import expected_score
from bayesgen.encoding.literals import one_line
from bayesgen.families.errors import IncompleteRowError, NoPosteriorError
from bayesgen.families.names import METHODS
from bayesgen.numerics.special import Array
from bayesgen.plots.models import reliability
from bayesgen.reporting import figures
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, Table, count, number, share, signed, whole

_APART = 2  # standard errors of a difference that is more than chance
_MOST_CLASSES = 12  # of a table of confusions
_NAMES = {
    "posterior_predictive": "full predictive",
    "posterior_mean": "posterior mean",
    "map": "posterior mode (MAP)",
    "mle": "maximum likelihood",
}


class Tile(NamedTuple):
    """One number of the first screen."""

    what: str
    value: str
    how: str


def jeffreys(k: float, n: float, prob: float) -> tuple[float, float]:
    """Interval of a share; 0 and 1 are inside where they were observed."""
    tail = (1 - prob) / 2
    low = 0.0 if k == 0 else float(stats.beta.ppf(tail, k + 0.5, n - k + 0.5))
    high = 1.0 if k == n else float(stats.beta.isf(tail, k + 0.5, n - k + 0.5))
    return low, high


def verdict(held: HeldOut, compared: Any) -> tuple[Section, list[Tile]]:
    """Sentences and numbers of the first screen."""
    n, p = held.n, held.p
    top, k = p.max(axis=1), float(held.right.sum())
    low, high = jeffreys(k, n, held.prob)
    often = float(np.mean(held.codes == np.argmax(held.class_weights)))
    exact = compared.sel(predictive=METHODS[0])
    loss, se = float(exact["log_loss"]), float(exact["log_loss_se"])
    with np.errstate(divide="ignore"):
        base = float(-np.log(held.class_weights[held.codes]).mean())
    z = _calibration_z(top, held.right)
    expected, seen = float(top.mean()), k / n
    off = abs(z) > _APART and not (held.is_pool or held.is_training)
    within = f"{share(held.prob)} interval {share(low)} to {share(high)}"
    text = [
        f"It names {whole(k)} of {count(n, 'row')} rightly, {share(seen)} ({within}); "
        f"always naming the most frequent class would be right in {share(often)}. "
        + _calibration_words(z, expected, seen)
        + (" A LogLinearPool of it would calibrate it." if off else ""),
        f"Log loss {number(loss)} nats (standard error {number(se)}) against {number(base)} of "
        f"the class frequencies alone. {_plug_in_words(compared)}",
    ]
    if held.is_training:
        text.insert(
            0,
            "These are the rows that the model was fitted to, and it has seen their labels: scores "
            "and comparisons flatter it. Give rows that it has not seen.",
        )
    notes = []
    if held.n < held.n_given:
        notes.append(
            f"Scores are of {count(n, 'row')} drawn at random from the "
            f"{count(held.n_given, 'row')} "
            f"given (seed {held.seed}); max_rows= takes more."
        )
    if n < 50:
        notes.append(f"{count(n, 'row')} are few: look at the intervals, not at the numbers.")
    if absent := [held.labels[c] for c in np.setdiff1d(np.arange(len(held.labels)), held.codes)]:
        notes.append(f"No row of {', '.join(absent[:8])}: nothing is known of these classes here.")
    tiles = [
        Tile("Accuracy", share(seen), f"{share(low)} to {share(high)}"),
        Tile("Log loss", number(loss), f"± {number(_APART * se)}; class frequencies "
            f"{number(base)}"),
        Tile("Calibration error", share(float(exact["ece"])), f"expected {share(expected)} right, "
             f"saw {share(seen)}"),
        Tile("Brier score", number(float(exact["brier"])), "0 is perfect, 2 the worst"),
    ]  # fmt: skip
    data = {
        "rows": n,
        "rows_given": held.n_given,
        "rows_of_the_fit": held.is_training,
        "accuracy": seen,
        "accuracy_interval": [low, high],
        "accuracy_most_frequent_class": often,
        "log_loss": loss,
        "log_loss_se": se,
        "log_loss_class_frequencies": base,
        "brier": float(exact["brier"]),
        "ece": float(exact["ece"]),
        "mean_top_probability": expected,
        "calibration_z": z,
        "interval_probability": held.prob,
    }
    return Section("verdict", "Verdict", text, notes=notes, data=data), tiles


def expected(held: HeldOut) -> tuple[Section, list[Tile]]:
    """Scores to expect of rows without labels."""
    found = expected_score(
        held.clf, held.X, training=held.training, prob=held.prob, random_state=held.seed
    )
    lines, tiles, data = [], [], {}
    for name in found["score"].values.tolist():
        one, what = found.sel(score=name), name.replace("_", " ").capitalize()
        mean, *ends = (
            share(v) if name == "accuracy" else number(v)
            for v in [float(one["mean"]), *one["interval"].values.tolist()]
        )
        within = " to ".join(ends)
        tiles.append(Tile(f"{what}, expected", mean, within))
        sds = [number(float(one[k])) for k in ("sd_parameters", "sd_chance")]
        lines.append([what, mean, within, *sds])
        data[name] = {k: one[k].values.tolist() for k in found.data_vars}
    n = count(held.n, held.what)
    text = (
        f"These are the scores that labels of {n} would give, from leave-one-out of the training "
        "rows, if the new rows are drawn as these were. Rows unlike the training rows are below."
    )
    head = ["score", "expected", f"{share(held.prob)} interval", "sd, parameters", "sd, chance"]
    table = Table("What to expect, and why it is not known better", head, lines)
    return Section("expected", "Scores to expect", [text], [table], data=data), tiles


def _calibration_z(top: Array, right: Array) -> float:
    """(right less expected) in standard deviations, if every probability were true."""
    sd = float(np.sqrt((top * (1 - top)).sum()))
    return float((right.sum() - top.sum()) / sd) if sd > 0 else float("nan")


def _calibration_words(z: float, expected: float, seen: float) -> str:
    means = f"it expected to be right in {share(expected)} and was in {share(seen)}"
    if z != z:
        return "It is certain of every row."
    if z < -_APART:
        return f"It is too sure of itself: {means}."
    if z > _APART:
        return f"It is not sure enough: {means}."
    return f"Its probabilities can be believed on the whole: {means}, a difference within chance."


def _plug_in_words(compared: Any) -> str:
    loss = compared["log_loss"].values[1:]
    if np.isnan(loss).all():
        return ""
    known = np.flatnonzero(~np.isnan(loss))
    at = 1 + int(known[np.argmin(loss[known])])
    gap, se = (float(compared[name][at]) for name in ("log_loss_diff", "log_loss_diff_se"))
    name = _NAMES[METHODS[at]]
    if np.isinf(gap):
        return (
            "Every plug-in estimate that there is gives some of these labels probability 0; the "
            "full predictive does not."
        )
    if abs(gap) <= _APART * se or gap == 0:
        return (
            f"The full predictive and the best plug-in, {name}, differ within chance: that has "
            f"{signed(gap, 4)} nats more (standard error {number(se, 4)})."
        )
    which = "above" if gap > 0 else "below"
    return (
        f"The best plug-in estimate, {name}, has a log loss {number(abs(gap), 4)} {which} that "
        "of the full predictive "
        f"(standard error {number(se, 4)})."
    )


def predictives(held: HeldOut) -> tuple[Section, Any]:
    """Full predictive against plug-in estimates."""
    compared = compare_predictives(held.clf, held.X, held.y)
    known = ~np.isnan(compared["log_loss"].values)
    names = [_NAMES[m] for m in METHODS]
    rows, notes = [], []
    for i, name in enumerate(names):
        one = compared.isel(predictive=i)
        values = [float(one[k]) for k in ("accuracy", "log_loss", "log_loss_diff", "brier")]
        gap = (
            ""
            if i == 0
            else f"{signed(values[2], 4)} ± {number(2 * float(one['log_loss_diff_se']), 4)}"
        )
        if not known[i]:
            gap = "–"
            notes.append(f"{name}: {one['note'].item()}.")
        elif one["impossible"].item():
            notes.append(
                f"{name}: {count(one['impossible'].item(), 'row')} have probability 0 under "
                "every class."
            )
        first = share(values[0]) if known[i] else "–"
        if i == 0 or known[1:].any():
            rows.append([name, first, number(values[1]), gap, number(values[3])])
    table = Table(
        "Scores of the same rows; of all but accuracy, less is better. ±: two standard errors of "
        "the paired difference.",
        ["predictive", "accuracy", "log loss", "above the full", "Brier"],
        rows,
    )
    out = Section("predictives", "Full predictive or plug-in?", tables=[table])
    if known[1:].any():
        out.text = [
            "The full predictive integrates the parameters out; a plug-in puts one estimate of "
            "them in their place and forgets how uncertain it is."
        ]
        above, se = (
            compared["log_loss_diff"].values,
            np.nan_to_num(compared["log_loss_diff_se"].values),
        )
        out.figures = [figures.predictives(names, above, se, known)]
    else:
        reason = notes[0].partition("undefined: ")[2] if notes else ""
        out.text = [f"There is no plug-in estimate{reason and ': ' + reason}"]
        notes = []
    out.notes = notes
    keep = (
        "accuracy",
        "log_loss",
        "log_loss_se",
        "log_loss_diff",
        "log_loss_diff_se",
        "brier",
        "ece",
    )
    out.data = {
        m: {k: float(compared[k][i]) for k in keep} | {"note": str(compared["note"][i].item())}
        for i, m in enumerate(METHODS)
    }
    return out, compared


def calibration(held: HeldOut) -> Section:
    """Reliability of the most probable class, and each class in the large."""
    two = len(held.labels) == 2
    said, hit = (held.p[:, 1], held.codes == 1) if two else (held.p.max(axis=1), held.right)
    what = held.labels[1] if two else "the most probable class"
    bins = reliability(said, hit, int(np.clip(held.n // 20, 4, 12)), held.prob)
    rows, data = [], {}
    for c, label in enumerate(held.labels):
        k, q = float((held.codes == c).sum()), held.p[:, c]
        low, high = (held.n * end for end in jeffreys(k, held.n, held.prob))
        sd = float(np.sqrt((q * (1 - q)).sum()))
        z = float((k - q.sum()) / sd) if sd > 0 else float("nan")
        rows.append([label, f"{q.sum():.1f}", f"{k:.0f}", f"{low:.1f} to {high:.1f}", signed(z, 1)])
        data[label] = {"expected": float(q.sum()), "observed": k, "z": z}
    table = Table(
        "Rows of each class: the sum of its probabilities, and how many there were",
        ["class", "expected", "observed", f"{share(held.prob)} interval", "z"],
        rows,
    )
    far = [label for label, d in data.items() if abs(d["z"]) > 3]
    off = int(((bins.lower > bins.predicted) | (bins.upper < bins.predicted)).sum())
    fair = (1 - held.prob) * len(bins.size)
    text = [
        f"{off} of {len(bins.size)} intervals miss the diagonal; of a calibrated classifier "
        f"{fair:.1f} would on average."
        + (f" The share of {', '.join(far[:6])} is not what it expects." if far else "")
    ]
    return Section(
        "calibration",
        "Calibration",
        text,
        [table],
        [figures.reliability(bins, what, share(held.prob))],
        data={"bins": bins._asdict(), "classes": data},
    )


def confusions(held: HeldOut) -> Section:
    """Which classes are taken for which."""
    n_classes = len(held.labels)
    said = held.p.argmax(axis=1)
    table = np.zeros((n_classes, n_classes))
    np.add.at(table, (held.codes, said), 1)
    wrong = table.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:10]
    pairs = [(*np.unravel_index(i, wrong.shape), wrong.flat[i]) for i in order if wrong.flat[i]]
    lines = [[held.labels[a], held.labels[b], f"{k:.0f}"] for a, b, k in pairs]
    out = Section("confusions", "Which classes are confused")
    if not lines:
        out.text = ["None: every row is named rightly."]
    else:
        out.tables = [
            Table("The most frequent confusions", ["labelled", "named", "rows"], lines, 2)
        ]
    if n_classes <= _MOST_CLASSES:
        shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
        told = "; ".join(f"{a} named {b} {k}" for a, b, k in lines) or "no row is named wrongly"
        texts = [[f"{v:.0f}" if v else "" for v in row] for row in table]
        names = held.labels
        caption = "Lines: the label. Columns: the most probable class. Shades: shares of the line."
        what = f"Table of labels against most probable classes: {told}."
        out.figures = [figures.matrix(shares, names, names, texts, what, caption)]
    out.data = {"classes": held.labels, "counts": table}
    return out


# ------------------------------------------------------------------------------------------------
# The rows that the classifier is least certain of, and why; what features did for all rows.

_DOUBTFUL = 8
_SEEN = 0.005  # of a probability: half of the last digit that is printed
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
    rows: list[list[str]] = []
    outside: list[str] = []
    for k, i in enumerate(at):
        (a, *others), given = pair[k], held.codes[i]
        cells = [held.name(int(i)), held.labels[given] + ("" if a == given else " (missed)")]
        for c in [a, *others]:
            cell = f"{held.labels[c]} {number(p[k, c], 2)}"
            if ends is not None:
                low, high = ends[k, c]
                cell += f" ({number(low, 2)} to {number(high, 2)})"
                if not low - _SEEN <= p[k, c] <= high + _SEEN:
                    outside.append(cells[0])
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
    if held.is_pool and ends is not None:
        notes.append("A pool's interval is made wider where it would not hold the prediction.")
    elif outside:
        notes.append(
            f"Outside its interval is a probability of row {', '.join(dict.fromkeys(outside))}. "
            "That is no error: the interval is of p(y | x, parameters), and the prediction counts "
            "those parameters most under which the row is likely (a ratio of expectations; outside "
            "in 6 % of the rows of simulated tables). Few training rows, or a row unlike them, are "
            "the usual cause: see the typicality of the row."
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
