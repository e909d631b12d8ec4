"""How good the probabilities are: verdict, predictives, calibration, confusions, doubtful rows."""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.checks.compare import paired
from bayesgen.encoding.literals import listed, one_line
from bayesgen.families.errors import IncompleteRowError, NoPosteriorError
from bayesgen.families.names import METHOD_NAMES, METHODS
from bayesgen.numerics.special import Array, count_probabilities, count_tails
from bayesgen.plots import drawing
from bayesgen.plots.drawing import Bins
from bayesgen.plots.models import jeffreys, plot_comparison, reliability
from bayesgen.plots.rows import cells_of
from bayesgen.reporting.decisions import auc
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Figure, Section, Table, count, ends, number, share, signed

if TYPE_CHECKING:
    import xarray as xr

_APART = 2  # standard errors of a difference that is more than chance
_CHANCE = 0.025  # probability below which what is seen speaks against the stated probabilities
_OTHERS = "bg.estimate_class_prior estimates the class weights here; class_prior= takes them."
_NOTHING = 0.001  # nats: differences that are not drawn
_DRAWN = 8  # rows in a reliability diagram
_CERTAIN = 0.99  # probability above which a row is not drawn
_MOST_CLASSES = 12  # of the whole table of confusions
_NAMES: dict[str, str] = METHOD_NAMES | {METHODS[0]: "full predictive"}


class Tile(NamedTuple):
    """One number of the first screen."""

    what: str
    value: str
    how: str


def verdict(held: HeldOut) -> tuple[Section, list[Tile]]:
    """Return sentences and numbers of the first screen."""
    compared, terms = held.scores
    n, top, k = held.n, held.p.max(axis=1), float(held.right.sum())
    low, high = (float(end) for end in jeffreys(k, n, held.prob))
    often = float(np.mean(held.codes == np.argmax(held.class_weights)))
    loss, se, brier, ece = (
        float(compared[name][0]) for name in ("log_loss", "log_loss_se", "brier", "ece")
    )
    with np.errstate(divide="ignore"):
        of_frequencies = -np.log(held.class_weights[held.codes])
    base, gain = float(of_frequencies.mean()), paired(of_frequencies, terms["log_loss"][0])
    expected, seen = float(top.mean()), k / n
    tails = count_tails(top, int(k))
    is_certain = bool(np.all((top == 0) | (top == 1)))
    words = _calibration_words(tails, expected, seen, is_certain, _shown_against(held))
    off = min(tails) < _CHANCE and not (held.is_pool or held.is_training)
    error = f" (standard error {number(se)})" if se == se else ""
    text = [
        f"{_gain_words(float(gain.mean), float(gain.se))}: log loss {number(loss)} nats per row"
        f"{error} against {number(base)}.",
        words + (" A LogLinearPool of it would calibrate it." if off else ""),
        f"The most probable class is the label in {k:.0f} of {n} rows, {share(seen)} "
        f"({share(held.prob)} interval {ends((low, high), share)}); that of always naming the "
        f"most frequent class is {share(often)}.",
        *_plug_in_words(compared),
    ]
    if held.is_training:
        text.insert(
            0,
            "These are the rows that the model was fitted to: every score is by leave-one-out, of "
            "each row by a model that has not seen it."
            if held.without_row is not None
            else "These are the rows that the model was fitted to, and it has seen their labels: "
            "scores and comparisons flatter it. Give rows that it has not seen.",
        )
    elif held.n_seen:
        text.insert(
            0,
            f"{held.n_seen} of these rows equal training rows, so that every score is too good. "
            "Leave them out, or give all training rows: those are scored without themselves.",
        )
    notes = []
    if n < held.n_given:
        notes.append(
            f"Scores are of {count(n, 'row')} drawn at random from the "
            f"{count(held.n_given, 'row')} given (seed {held.seed}); max_rows= takes more."
        )
    if n < 50:
        few = "1 row is" if n == 1 else f"{count(n, 'row')} are"
        notes.append(f"{few} few: look at the intervals, not at the numbers.")
    if absent := [held.labels[c] for c in np.setdiff1d(np.arange(len(held.labels)), held.codes)]:
        notes.append(f"No row of {', '.join(absent[:8])}: nothing is known of these classes here.")
    saw = f"expected {share(expected)} right, saw {share(seen)}"
    within = f"± {number(_APART * se)}; " * (se == se) + f"class frequencies {number(base)}"
    best = f"{ends((low, high), share)}; most frequent class {share(often)}"
    tiles = [
        Tile("Log loss", number(loss), within),
        Tile("Calibration error", share(ece), saw),
        Tile("Accuracy", share(seen), best),
        Tile("Brier score", number(brier), "0 is perfect, 2 the worst"),
    ]
    area = auc(held) if len(held.labels) == 2 and not absent else None
    if area is not None:
        tiles[3] = Tile("AUC", number(area.value), f"{ends(area[1:])}; 0.5 is chance")
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
        "log_loss_gain": gain[0],
        "log_loss_gain_se": gain[1],
        "brier": brier,
        "ece": ece,
        "auc": area and area.value,
        "mean_top_probability": expected,
        "calibration_tails": tails,
        "interval_probability": held.prob,
    }
    return Section("verdict", text, notes=notes, data=data), tiles


def _gain_words(gain: float, se: float) -> str:
    """Compare the probabilities with the class frequencies, in words."""
    if gain > _APART * se:
        return "Its probabilities are better than the class frequencies alone"
    if gain < -_APART * se or np.isneginf(gain):
        return "Its probabilities are worse than the class frequencies alone"
    return "These rows do not show whether its probabilities are better than the class frequencies"


def _unlikely_classes(held: HeldOut) -> list[str]:
    """Return the classes with too many or too few rows; one false alarm in 40 pages."""
    limit = _CHANCE / len(held.labels)
    chances = zip(held.labels, held.class_chances, strict=True)
    return [label for label, chance in chances if chance < limit]


def _shown_against(held: HeldOut) -> str:
    """Return what the section "Calibration" shows against the probabilities, in words."""
    if _unlikely_classes(held):
        return "the classes have other frequencies"
    if held.n < _DRAWN:
        return ""
    diagram = _diagram(held)
    if diagram.chance < _CHANCE:
        return f"{diagram.n_off} of {len(diagram.bins.size)} intervals miss the diagonal"
    return ""


def _calibration_words(
    tails: tuple[float, float], expected: float, seen: float, is_certain: bool, shown_against: str
) -> str:
    """Return the verdict on calibration; `tails` are P(so few right) and P(so many right)."""
    means = f"it expected to be right in {share(expected)} and was in {share(seen)}"
    if tails[0] < _CHANCE:
        return f"It is too sure of itself: {means}."
    if tails[1] < _CHANCE:
        return f"It is not sure enough: {means}."
    if is_certain:
        return "It is certain of every row."
    if shown_against:
        return f"I{means[1:]}, but {shown_against}: see Calibration."
    return f"Nothing speaks against its probabilities: {means}, a difference within chance."


def _plug_in_words(compared: "xr.Dataset") -> list[str]:
    loss = compared["log_loss"].values[1:]
    if np.isnan(loss).all() or compared.attrs["rows"] < 2:
        return []
    best = 1 + int(np.nanargmin(loss))
    gap, se = (float(compared[name][best]) for name in ("log_loss_diff", "log_loss_diff_se"))
    name = _NAMES[METHODS[best]]
    if np.isinf(gap):
        return [
            "Every plug-in estimate that there is gives some of these labels probability 0; the "
            "full predictive does not."
        ]
    if abs(gap) + _APART * se < _NOTHING:
        return [
            f"The full predictive and the best plug-in, {name}, differ by less than {_NOTHING:g} "
            "nats."
        ]
    chance = "" if abs(gap) > _APART * se else ", a difference within chance"
    return [
        f"The best plug-in estimate, {name}, has a log loss {number(abs(gap), 4)} "
        f"{'above' if gap > 0 else 'below'} that of the full predictive "
        f"(standard error {number(se, 4)}){chance}."
    ]


def predictives(held: HeldOut) -> Section:
    """Compare the full predictive with plug-in estimates."""
    compared, _ = held.scores
    remarks = compared["note"].values.tolist()
    if compared["log_loss"][1:].isnull().all():
        raise ValueError(remarks[1])
    columns = {
        "accuracy": "accuracy", "log_loss": "log loss", "log_loss_diff": "above the full",
        "log_loss_diff_se": "standard error", "brier": "Brier",
    }  # fmt: skip
    lines, notes = [], []
    for method, remark in zip(METHODS, remarks, strict=True):
        one, name = compared.sel(predictive=method), _NAMES[method]
        if method == METHODS[0]:  # which has no difference to itself
            one = one.assign(log_loss_diff=np.nan, log_loss_diff_se=np.nan)
        lines.append({"predictive": name} | {h: float(one[k]) for k, h in columns.items()})
        if remark:
            notes.append(f"{name}: {remark}.")
    table = Table(
        "Scores of the same rows; of all but accuracy, less is better. The standard error is that "
        "of the paired difference.",
        lines,
        {"accuracy": share, "above the full": partial(signed, digits=4),
         "standard error": partial(number, digits=4)},
    )  # fmt: skip
    text = (
        "The full predictive integrates the parameters out; a plug-in puts one estimate of "
        "them in their place and forgets how uncertain it is."
    )
    told = "; ".join(f"{row[0]} {row[3]}" for row in table.rows[1:])
    figure = Figure(
        partial(plot_comparison, compared),
        7.2,
        2.3,
        f"Log loss of each estimate less that of the full predictive: {told}.",
        "Right of the line: worse than integrating the parameters out.",
    )
    return Section("predictives", [text], [table], [figure], notes)


class Diagram(NamedTuple):
    """A reliability diagram, and how many of its intervals miss the diagonal."""

    bins: Bins
    n_off: int
    expected_off: float  # of a calibrated classifier
    chance: float  # probability that so many or more miss, of a calibrated classifier


def _diagram(held: HeldOut) -> Diagram:
    """Return the reliability diagram of one of two classes, or of the most probable class."""
    two = len(held.labels) == 2
    p, hit = (held.p[:, 1], held.codes == 1) if two else (held.p.max(axis=1), held.right)
    bins = reliability(p, hit, int(np.clip(held.n // 20, 4, 12)), held.prob)
    cuts = np.cumsum(bins.size)[:-1]
    misses = np.array([_miss_probability(group, held.prob) for group in np.split(np.sort(p), cuts)])
    n_off = int(((bins.lower > bins.predicted) | (bins.upper < bins.predicted)).sum())
    return Diagram(bins, n_off, float(misses.sum()), count_tails(misses, n_off)[1])


def _miss_probability(p: Array, prob: float) -> float:
    """Return the probability that the interval of a bin misses the mean of its true p (n,)."""
    lower, upper = jeffreys(np.arange(len(p) + 1), len(p), prob)
    misses = (lower > p.mean()) | (upper < p.mean())
    return float(min(1.0, count_probabilities(p)[misses].sum()))


def calibration(held: HeldOut) -> Section:
    """Compare stated probabilities with frequencies, by bins and by class."""
    two = len(held.labels) == 2
    what = held.labels[1] if two else "the most probable class"
    prob, lines = share(held.prob), []
    for (c, label), chance in zip(enumerate(held.labels), held.class_chances, strict=True):
        k, expected = int((held.codes == c).sum()), float(held.p[:, c].sum())
        low, high = (float(held.n * end) for end in jeffreys(k, held.n, held.prob))
        cells = {"class": label, "expected": expected, "observed": k}
        lines.append(cells | {f"{prob} interval": (low, high), "chance": chance})
    short = partial(number, digits=1)
    table = Table(
        "Rows of each class: the sum of its probabilities, and how many there were",
        lines,
        {"expected": short, f"{prob} interval": partial(ends, text=short)},
    )
    if held.n < _DRAWN:
        few = f"{count(held.n, 'row')}: too few for a diagram."
        return Section("calibration", [few], [table])
    diagram = _diagram(held)
    bins, off = diagram.bins, diagram.n_off
    text = [
        f"{off} of {len(bins.size)} intervals miss the diagonal. For a calibrated classifier, "
        f"{diagram.expected_off:.1f} would on average"
        + (f"; the probability of {off} or more is {number(diagram.chance)}." if off else ".")
    ]
    if far := _unlikely_classes(held):
        text.append(f"It expected other numbers of rows of {listed(far, 6, ' and ')}. {_OTHERS}")
    predicted, observed = (", ".join(f"{v:.2f}" for v in values) for values in bins[:2])
    size = f"{bins.size.min():g} to " * bool(np.ptp(bins.size)) + count(bins.size.max(), "row")
    figure = Figure(
        partial(drawing.diagram, bins=bins, what=what, prob=held.prob),
        5.2,
        4.3,
        f"Reliability diagram of {len(bins.size)} groups of rows: {off} of the intervals miss "
        f"the diagonal. Predicted {predicted}; observed {observed}.",
        f"Each point: {size} of about the same predicted probability. Bars: {prob} intervals "
        "of the frequency. On the diagonal, predicted and observed frequencies are equal.",
    )
    return Section("calibration", text, [table], [figure], data={"bins": bins._asdict()})


def confusions(held: HeldOut) -> Section:
    """Count which classes are taken for which."""
    n_classes, names = len(held.labels), held.labels
    counts = np.zeros((n_classes, n_classes), dtype=int)
    np.add.at(counts, (held.codes, held.p.argmax(axis=1)), 1)
    section = Section("confusions", data={"classes": names, "counts": counts})
    if n_classes <= _MOST_CLASSES:
        lines = [
            {"label": name} | dict(zip(names, line.tolist(), strict=True))
            for name, line in zip(names, counts, strict=True)
        ]
        section.tables.append(Table("Rows by label (down) and most probable class (across)", lines))
    wrong = counts * ~np.eye(n_classes, dtype=bool)
    order = np.argsort(-wrong, axis=None, kind="stable")[:10]
    pairs = [np.unravel_index(i, wrong.shape) for i in order if wrong.flat[i]]
    lines = [
        {"label": names[a], "most probable": names[b], "rows": int(wrong[a, b]),
         "of the label": wrong[a, b] / counts[a].sum()} for a, b in pairs
    ]  # fmt: skip
    if lines:
        most = Table("The most frequent confusions", lines, {"of the label": share})
        section.tables.append(most)
    else:
        section.text = ["None: the most probable class of every row is its label."]
    return section


# ------------------------------------------------------------------------------------------------
# The rows that the classifier is least certain of, and why.

_SEEN = 0.005  # of a probability: half of the last digit that is printed
_REASONS = 3  # features named for a row


def least_certain(held: HeldOut) -> Section:
    """Show a few rows with intervals and reasons."""
    places = held.doubtful.tolist()
    p, top = held.p[places], held.p.max(axis=1)
    reasons, notes = _reasons(held)
    intervals = np.full((*p.shape, 2), np.nan)
    try:
        intervals = held.clf.predict_interval(held.doubtful_rows, prob=held.prob)["interval"].values
    except NoPosteriorError:  # probabilities alone: the summary says why
        pass
    except IncompleteRowError as reason:
        notes.append(f"Without intervals: {reason}.")
    has_intervals, prob = not np.isnan(intervals).all(), share(held.prob)
    shown = np.argsort(-p, axis=1, kind="stable")[:, : 1 + (p.shape[1] > 2)]
    lines: list[dict[str, Any]] = []
    for k, i in enumerate(places):
        missed = " (missed)" * bool(shown[k, 0] != held.codes[i])
        line = {"row": held.name(i), "label": held.labels[held.codes[i]] + missed}
        for head, c in zip(("most probable", "runner-up"), shown[k], strict=False):
            within = ends(intervals[k, c], partial(number, digits=2))
            interval = f" ({within})" if has_intervals else ""
            line[head] = f"{held.labels[c]} {number(p[k, c], 2)}{interval}"
        lines.append(line | {"reasons": reasons[k] or held.document(i)})
    if not any(line["reasons"] for line in lines):
        for line in lines:
            del line["reasons"]
    section = Section("doubts", _certainty_words(top, p.shape[1]), notes=notes)
    caption = "Probabilities" + f" with {prob} intervals" * has_intervals
    if "reasons" in lines[0]:
        caption += "; reasons: what speaks for which class, in nats of log-odds"
    section.tables = [Table(caption, lines)]
    section.data = {"probability": p, "interval": intervals, "classes": held.labels}
    if not has_intervals or p.shape[1] < 2:
        return section
    each = np.arange(len(places))[:, None]
    width = np.ptp(intervals, axis=-1)[each, shown].max(axis=1)
    section.text[0] += (
        f" Of those below, row {lines[int(width.argmax())]['row']} has the widest interval: "
        f"{number(width.max())}."
    )
    low, high = np.moveaxis(intervals, -1, 0)
    outside = ((p < low - _SEEN) | (p > high + _SEEN))[each, shown].any(axis=1)
    if outside.any() and not held.is_pool:
        far = ", ".join(lines[k]["row"] for k in np.flatnonzero(outside))
        notes.append(
            f"Outside its interval is a probability of row {far}. That is no error: the interval "
            "is of p(y | x, parameters), and the prediction counts those parameters most under "
            "which the row is likely (a ratio of expectations; outside in 6 % of the rows of "
            "simulated tables). Few training rows, or a row unlike them, are the usual cause: see "
            "the typicality of the row."
        )
    if top.min() < _CERTAIN:
        names = [f"row {line['row']}" for line in lines]
        draw = partial(
            drawing.class_probabilities, names=names, labels=held.labels, codes=shown, p=p,
            ends=intervals, interval=f"{prob} interval",
        )  # fmt: skip
        cells = [", ".join([*line.values()][2:4]) for line in lines]
        told = "; ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))
        alt = f"Class probabilities of the least certain rows. {told}."
        caption = f"Diamonds: the predictive probability. Lines: {prob} intervals."
        section.figures = [Figure(draw, 7.2, 1.05 + 0.4 * len(lines), alt, caption)]
    return section


def _certainty_words(top: Array, n_classes: int) -> list[str]:
    """Say how probable the most probable classes (N,) are."""
    if top.min() >= _CERTAIN:
        return [f"The most probable class has {_CERTAIN} or more in every row."]
    limits = (0.5, 0.9, _CERTAIN)[n_classes < 3 :]
    below = [f"less than {t} in {count(float((top < t).sum()), 'row')}" for t in limits]
    return [f"The most probable class has {', '.join(below)} of {len(top)}."]


def _reasons(held: HeldOut) -> tuple[list[str], list[str]]:
    """Return the largest contributions to each doubtful row, in words; and notes."""
    try:
        table = held.clf.explain(held.doubtful_rows)
    except (NotImplementedError, ValueError) as error:
        return [""] * len(held.doubtful), [f"No reasons: {error}."]
    names = [str(name) for name in table["feature"].values]
    cells = cells_of(held.clf, held.doubtful_rows)
    sides = [table[name].values.tolist() for name in ("label", "against")]
    reasons = []
    for k, terms in enumerate(table["predictive"].values):
        largest = np.argsort(-np.abs(terms), kind="stable")[:_REASONS]
        told = [
            f"{cells(j)[k] if cells else repr(names[j])}: {signed(abs(float(terms[j])), 1)} for "
            f"{one_line(sides[int(terms[j] < 0)][k], 40)}"
            for j in largest[np.abs(terms[largest]) > 1e-3]
        ]
        reasons.append("; ".join(told))
    return reasons, []
