"""How good the probabilities are: verdict, predictives, calibration, confusions."""

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from bayesgen.checks.compare import compare_predictives
from bayesgen.families.names import METHODS
from bayesgen.numerics.special import Array
from bayesgen.plots.reliability import reliability
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
