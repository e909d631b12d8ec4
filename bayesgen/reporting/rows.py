"""How good the probabilities are: verdict, predictives, calibration, confusions, doubtful rows."""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special, stats

from bayesgen.checks.compare import paired
from bayesgen.encoding.literals import listed, one_line
from bayesgen.families.errors import IncompleteRowError, NoPosteriorError
from bayesgen.families.names import METHOD_NAMES, METHODS
from bayesgen.numerics.special import Array, count_probabilities, count_tails
from bayesgen.plots import drawing
from bayesgen.plots.drawing import Bins
from bayesgen.plots.models import jeffreys, reliability
from bayesgen.reporting.figures import Figure, differences, matrix
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, TextTable, count, ends, number, share, signed

if TYPE_CHECKING:
    import xarray as xr

_APART = 2  # standard errors of a difference that is more than chance
_CHANCE = 0.025  # probability below which what is seen speaks against the stated probabilities
_OTHERS = "bg.estimate_class_prior estimates the class weights here; class_prior= takes them."
_NOTHING = 0.001  # nats: differences that are not drawn
_DRAWN = 8  # rows in a reliability diagram
_MOST_CLASSES, _BOTH = 12, 6  # of a picture of confusions; with counts and rates
_NAMES: dict[str, str] = METHOD_NAMES | {METHODS[0]: "full predictive"}
_KEPT = ("accuracy", "log_loss", "log_loss_se", "log_loss_diff", "log_loss_diff_se", "brier", "ece")


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
        f"({share(held.prob)} interval {ends(low, high, share)}); that of always naming the "
        f"most frequent class is {share(often)}.",
        *_plug_in_words(compared),
    ]
    if held.is_training:
        text.insert(
            0,
            "These are the rows that the model was fitted to: every score is by leave-one-out, of "
            "each row by a model that has not seen it."
            if held.left_out
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
    best = f"{ends(low, high, share)}; most frequent class {share(often)}"
    tiles = [
        Tile("Log loss", number(loss), within),
        Tile("Calibration error", share(ece), saw),
        Tile("Accuracy", share(seen), best),
        Tile("Brier score", number(brier), "0 is perfect, 2 the worst"),
    ]
    area = auc(held) if len(held.labels) == 2 and not absent else None
    if area is not None:
        tiles[3] = Tile("AUC", number(area.value), f"{ends(area.low, area.high)}; 0.5 is chance")
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
    scores = {name: compared[name].values for name in (*_KEPT, "impossible", "note")}
    names = [_NAMES[method] for method in METHODS]
    gap, se = scores["log_loss_diff"], np.nan_to_num(scores["log_loss_diff_se"])
    causes = [getattr(joint, "cause", "") for joint in held.joints.values()]
    exists = np.array([not cause for cause in causes])
    if not exists[1:].any():
        raise ValueError(causes[1])
    rows, notes = [], []
    for i, name in enumerate(names):
        above = f"{signed(gap[i], 4)} ± {number(2 * scores['log_loss_diff_se'][i], 4)}" if i else ""
        if not exists[i]:
            notes.append(f"{name}: {causes[i]}.")
        elif scores["impossible"][i]:
            n = count(scores["impossible"][i], "row")
            notes.append(f"{name}: {n} have probability 0 under every class.")
        first, above = (share(scores["accuracy"][i]), above) if exists[i] else ("–", "–")
        loss, brier = (number(scores[k][i]) for k in ("log_loss", "brier"))
        rows.append([name, first, loss, above, brier])
    table = TextTable(
        "Scores of the same rows; of all but accuracy, less is better. ±: two standard errors of "
        "the paired difference.",
        ["predictive", "accuracy", "log loss", "above the full", "Brier"],
        rows,
    )
    text = [
        "The full predictive integrates the parameters out; a plug-in puts one estimate of "
        "them in their place and forgets how uncertain it is."
    ]
    figures, drawn = [], np.flatnonzero(exists & np.isfinite(gap))
    if np.any(np.abs(gap[drawn]) + _APART * se[drawn] >= _NOTHING):
        bars = np.stack([gap - 2 * se, gap + 2 * se], axis=1)
        figure = differences(
            [names[i] for i in drawn],
            gap[drawn],
            bars[drawn],
            0.0,
            "log loss above that of the full predictive (nats)",
            "Log loss of each estimate less that of the full predictive",
            "Right of the line: worse than integrating the parameters out. Bars: two standard "
            "errors of the paired difference.",
        )
        figures.append(figure)
    data: dict[str, Any] = {
        method: {k: float(scores[k][i]) for k in _KEPT} | {"note": str(scores["note"][i])}
        for i, method in enumerate(METHODS)
    }
    return Section("predictives", text, [table], figures, notes, data)


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
    diagram = _diagram(held)
    bins, off = diagram.bins, diagram.n_off
    rows, data = [], {}
    for (c, label), chance in zip(enumerate(held.labels), held.class_chances, strict=True):
        k, q = float((held.codes == c).sum()), held.p[:, c]
        low, high = (held.n * end for end in jeffreys(k, held.n, held.prob))
        interval = f"{low:.1f} to {high:.1f}"
        rows.append([label, f"{q.sum():.1f}", f"{k:.0f}", interval, number(chance)])
        data[label] = {"expected": float(q.sum()), "observed": k, "chance": chance}
    prob = share(held.prob)
    table = TextTable(
        "Rows of each class: the sum of its probabilities, and how many there were",
        ["class", "expected", "observed", f"{prob} interval", "chance"],
        rows,
    )
    far = _unlikely_classes(held)
    text = [
        f"{off} of {len(bins.size)} intervals miss the diagonal. For a calibrated classifier, "
        f"{diagram.expected_off:.1f} would on average"
        + (f"; the probability of {off} or more is {number(diagram.chance)}." if off else ".")
    ]
    if far:
        text.append(f"It expected other numbers of rows of {listed(far, 6, ' and ')}. {_OTHERS}")
    predicted, observed = (", ".join(f"{v:.2f}" for v in values) for values in bins[:2])
    size = f"{bins.size.min():g} to " * bool(np.ptp(bins.size)) + count(bins.size.max(), "row")
    xlabel = f"predicted probability of {what}"
    ylabel = "how often it was so" if two else "how often it was right"
    figure = Figure(
        partial(drawing.diagram, bins=bins, xlabel=xlabel, ylabel=ylabel),
        4.3,
        f"Reliability diagram of {len(bins.size)} groups of rows: {off} of the intervals miss "
        f"the diagonal. Predicted {predicted}; observed {observed}.",
        f"Each point: {size} of about the same predicted probability. Bars: {prob} intervals "
        "of the frequency. On the diagonal, predicted and observed frequencies are equal.",
    )
    numbers = {"bins": bins._asdict(), "classes": data}
    if held.n < _DRAWN:
        few = [f"{count(held.n, 'row')}: too few for a diagram."]
        return Section("calibration", few, [table], data=numbers)
    return Section("calibration", text, [table], [figure], data=numbers)


class Area(NamedTuple):
    """Area under the ROC curve, and its interval; NaN ends where no pair is out of order."""

    value: float
    low: float
    high: float


def auc(held: HeldOut) -> Area:
    """Return the share of pairs in which the row of the second class has more probability of it.

    The interval is DeLong's (1988), Normal on the scale of the log-odds.
    """
    positive = held.codes == 1
    odds = np.nan_to_num(held.log_p[:, 1] - held.log_p[:, 0])
    rank, n1, n0 = stats.rankdata(odds), positive.sum(), (~positive).sum()
    above = (rank[positive] - stats.rankdata(odds[positive])) / n0  # share of the others below
    below = 1 - (rank[~positive] - stats.rankdata(odds[~positive])) / n1
    value = float(above.mean())
    if min(n0, n1) < 2 or not 0 < value < 1:
        return Area(value, np.nan, np.nan)
    se = np.sqrt(above.var(ddof=1) / n1 + below.var(ddof=1) / n0) / (value * (1 - value))
    reach = special.logit(value) + se * stats.norm.ppf(0.5 + np.array([-0.5, 0.5]) * held.prob)
    return Area(value, *special.expit(reach).tolist())


def decisions(held: HeldOut) -> Section:
    """Show rates of two classes at thresholds, and costs of the decisions of least cost."""
    section = Section("decisions")
    if len(held.labels) == 2:
        _add_thresholds(held, section)
    if held.cost is not None:
        _add_least_cost(held, section)
    if not section.text:
        raise ValueError("there are more than two classes, and cost= is not given")
    return section


def _add_thresholds(held: HeldOut, section: Section) -> None:
    is_positive, (other, name), prob = held.codes == 1, held.labels, share(held.prob)
    n1, n0 = int(is_positive.sum()), int((~is_positive).sum())
    cost, chosen, why = _chosen_threshold(held)
    thresholds = np.unique([*_THRESHOLDS, chosen])
    is_named = held.p[:, 1, None] > thresholds
    tp, fp = is_named[is_positive].sum(axis=0), is_named[~is_positive].sum(axis=0)
    fn, tn = n1 - tp, n0 - fp
    right, n = np.stack([tp, tn, tp, tn]), np.stack([tp + fn, tn + fp, tp + fp, tn + fn])
    with np.errstate(invalid="ignore"):
        rates = right / n
    mean = (np.stack([tn, fp, fn, tp]).T @ cost.ravel()) / held.n
    here = int(np.searchsorted(thresholds, chosen))
    low, high = jeffreys(right[:, here], n[:, here], held.prob)
    if n0 and n1:
        area = auc(held)
        within = f" ({prob} interval {ends(area.low, area.high)})"
        section.text.append(
            f"AUC {number(area.value)}{within * (area.low == area.low)}: of a row of "
            f"{name!r} and one of {other!r}, the first has the higher probability of {name!r} in "
            f"{share(area.value)} of all pairs."
        )
        section.data |= {"auc": area.value, "auc_interval": area[1:]}
    section.text.append(f"The threshold is {chosen:.3g}, {why}. The positive class is {name!r}.")
    words = (
        f"{name} named {name}",
        f"{other} named {other}",
        f"named {name} and right",
        f"named {other} and right",
    )
    lines = []
    for i, (rate, what) in enumerate(zip(_RATES, words, strict=True)):
        line = [rate, what, f"{right[i, here]} of {n[i, here]}", "–", "–"]
        if n[i, here]:
            line[3:] = share(rates[i, here]), ends(low[i], high[i], share)
        lines.append(line)
    head = ["rate", "rows", "number", "share", f"{prob} interval"]
    section.tables.append(TextTable(f"Rates at the threshold {chosen:.3g}", head, lines, 2))
    lines = []
    for j, threshold in enumerate(thresholds):
        shares = [share(rate) if rate == rate else "–" for rate in rates[:, j]]
        last = share(mean[j]) if held.cost is None else number(mean[j])
        mark = " (chosen)" if j == here else ""
        lines.append([f"{threshold:.3g}{mark}", str(tp[j] + fp[j]), *shares, last])
    caption = (
        f"By threshold: {name!r} is named where its probability is higher. PPV and NPV: positive "
        "and negative predictive value."
    )
    head = ["threshold", f"named {name}", "sensitivity", "specificity", "PPV", "NPV"]
    head.append("wrong" if held.cost is None else "cost per row")
    section.tables.append(TextTable(caption, head, lines))
    section.notes.append(
        f"Predictive values hold where {name!r} has {share(n1 / held.n)} of the rows, as here."
    )
    section.data |= dict(zip(("sensitivity", "specificity", "ppv", "npv"), rates, strict=True))
    section.data |= {"threshold": chosen, "positive": name, "thresholds": thresholds}
    section.data |= {"cost": mean, "intervals": np.stack([low, high], axis=1)}


def _chosen_threshold(held: HeldOut) -> tuple[Array, float, str]:
    """Return costs (class, decision), the threshold of lowest expected cost, and why it is so."""
    cost, why = held.costs.values, f"above which {held.labels[1]!r} is the most probable class"
    if not np.array_equal(held.costs.decisions, held.clf.classes_):
        return 1.0 - np.eye(2), 0.5, why
    wrong = cost[0, 1] - cost[0, 0], cost[1, 0] - cost[1, 1]  # more than the right decision
    if held.cost is None or min(wrong) <= 0:
        return cost, 0.5, why
    return cost, float(wrong[0] / sum(wrong)), "which has the lowest expected cost"


def _add_least_cost(held: HeldOut, section: Section) -> None:
    table, each = held.costs, np.arange(held.n)
    names = [one_line(name, 40) for name in table.decisions.tolist()]
    expected = table.expected(held.p)
    best = expected.argmin(axis=1)
    foreseen, seen = expected[each, best], table.values[held.codes, best]
    always = table.values[held.codes].mean(axis=0)
    cost, k = paired(seen), int(always.argmin())
    section.text.append(
        f"Decisions of lowest expected cost should cost {number(foreseen.mean())} per row and cost "
        f"{number(float(cost.mean))} here (standard error {number(float(cost.se))}). Always "
        f"deciding {names[k]!r} would cost {number(always[k])}."
    )
    lines = []
    for d, name in enumerate(names):
        taken = best == d
        costs = [number(v[taken].mean()) if taken.any() else "–" for v in (foreseen, seen)]
        lines.append([name, str(taken.sum()), *costs, number(always[d])])
    head = ["decision", "rows", "expected cost per row", "cost per row", "if always decided"]
    section.tables.append(TextTable("Decisions of lowest expected cost", head, lines))
    taken = np.bincount(best, minlength=len(names))
    section.data |= {
        "decisions": dict(zip(names, taken, strict=True)),
        "costs": [float(foreseen.mean()), float(seen.mean())],
        "always": always,
    }


_THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
_RATES = ("sensitivity", "specificity", "positive predictive value", "negative predictive value")


def confusions(held: HeldOut) -> Section:
    """Count which classes are taken for which."""
    n_classes, names = len(held.labels), held.labels
    table = np.zeros((n_classes, n_classes))
    np.add.at(table, (held.codes, held.p.argmax(axis=1)), 1)
    rate = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    wrong = table * ~np.eye(n_classes, dtype=bool)
    order = np.argsort(-wrong, axis=None, kind="stable")[:10]
    pairs = [np.unravel_index(i, wrong.shape) for i in order if wrong.flat[i]]
    lines = [[names[a], names[b], f"{table[a, b]:.0f}", share(float(rate[a, b]))] for a, b in pairs]
    section = Section("confusions")
    if not lines:
        section.text = ["None: the most probable class of every row is its label."]
    else:
        head = ["label", "most probable", "rows", "of the label"]
        section.tables = [TextTable("The most frequent confusions", head, lines, 2)]
    if n_classes <= _MOST_CLASSES:
        told = "; ".join(f"{a} named {b} {k}" for a, b, k, _ in lines) or "no row is named wrongly"
        small = n_classes <= _BOTH
        texts = [
            [(f"{k:.0f}\n{share(r)}" if small else f"{100 * r:.0f}") if k else ""
             for k, r in zip(*line, strict=True)] for line in zip(table, rate, strict=True)
        ]  # fmt: skip
        what = "Number of rows and their share" if small else "Numbers: percentage"
        section.figures = [
            matrix(
                rate,
                names,
                texts,
                f"Table of labels against most probable classes: {told}.",
                f"Down: the label. Across: the most probable class. {what} of all rows with the "
                "label.",
            )
        ]
    section.data = {"classes": names, "counts": table, "rates": rate}
    return section


# ------------------------------------------------------------------------------------------------
# The rows that the classifier is least certain of, and why.

_SEEN = 0.005  # of a probability: half of the last digit that is printed
_REASONS = 3  # features named for a row


def least_certain(held: HeldOut) -> Section:
    """Show a few rows with intervals and reasons."""
    top, places = held.p.max(axis=1), held.doubtful.tolist()
    intervals, p, notes = None, held.p[places], []
    try:
        intervals = held.clf.predict_interval(held.doubtful_rows, prob=held.prob)["interval"].values
    except NoPosteriorError:  # probabilities alone: the summary says why
        pass
    except IncompleteRowError as reason:
        notes.append(f"Without intervals: {reason}.")
    pair = np.argsort(-p, axis=1, kind="stable")[:, : 1 + (p.shape[1] > 2)]
    line = np.arange(len(places))[:, None]
    reasons, why = _reasons(held)
    notes += why
    rows: list[list[str]] = []
    outside: list[str] = []
    for k, i in enumerate(places):
        code = held.codes[i]
        cells = [held.name(i), held.labels[code] + " (missed)" * bool(pair[k, 0] != code)]
        for c in pair[k]:
            cell = f"{held.labels[c]} {number(p[k, c], 2)}"
            if intervals is not None:
                low, high = intervals[k, c]
                cell += f" ({ends(low, high, partial(number, digits=2))})"
                if not low - _SEEN <= p[k, c] <= high + _SEEN:
                    outside.append(cells[0])
            cells.append(cell)
        rows.append([*cells, reasons[k] or held.document(i)])
    head = ["row", "label", "most probable", *(["runner-up"] if p.shape[1] > 2 else []), "reasons"]
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    text = "The most probable class has 0.99 or more in every row."
    below = [f"less than {t} in {count(float((top < t).sum()), 'row')}" for t in (0.5, 0.9, 0.99)]
    if top.min() < 0.99:
        text = f"The most probable class has {', '.join(below[p.shape[1] < 3 :])} of {held.n}."
    if intervals is not None:
        width = intervals[..., 1] - intervals[..., 0]
        widest = int(np.argmax(width[line, pair].max(axis=1)))
        text += (
            f" Of those below, row {rows[widest][0]} has the widest interval: "
            f"{number(float(width[widest].max()))}."
        )
    if outside and not held.is_pool:
        notes.append(
            f"Outside its interval is a probability of row {', '.join(dict.fromkeys(outside))}. "
            "That is no error: the interval is of p(y | x, parameters), and the prediction counts "
            "those parameters most under which the row is likely (a ratio of expectations; outside "
            "in 6 % of the rows of simulated tables). Few training rows, or a row unlike them, are "
            "the usual cause: see the typicality of the row."
        )

    def by_label(values: Array) -> dict[str, Any]:
        return dict(zip(held.labels, values.tolist(), strict=True))

    data = [
        {
            "row": held.name(i),
            "label": held.labels[held.codes[i]],
            "probability": by_label(p[k]),
            "interval": None if intervals is None else by_label(intervals[k]),
            "reasons": reasons[k],
        }
        for k, i in enumerate(places)
    ]
    prob = share(held.prob)
    caption = "Probabilities" + ("" if intervals is None else f" with {prob} intervals")
    if head[-1] == "reasons":
        caption += "; reasons: what speaks for which class, in nats of log-odds"
    section = Section("doubts", [text], [TextTable(caption, head, rows, len(head))], notes=notes)
    section.data = {"rows": data}
    if p.shape[1] > 1 and intervals is not None and top.min() < 0.99:
        names, cells = [f"row {row[0]}" for row in rows], [", ".join(row[2:4]) for row in rows]
        told = "; ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))
        draw = partial(
            drawing.row_intervals,
            names=names,
            classes=pair,
            labels=held.labels,
            p=p[line, pair],
            ends=intervals[line, pair],
            xlabel=f"class probability, {prob} interval",
        )
        section.figures = [
            Figure(
                draw,
                1.05 + 0.4 * len(rows),
                f"Class probabilities of the least certain rows. {told}.",
                f"Dots: the predictive probability. Bars: {prob} intervals.",
            )
        ]
    return section


def _reasons(held: HeldOut) -> tuple[list[str], list[str]]:
    """Return the largest contributions to each doubtful row, in words; and notes."""
    nothing = [""] * len(held.doubtful)
    try:
        table = held.clf.explain(held.doubtful_rows)
    except (NotImplementedError, ValueError) as error:
        return nothing, [f"No reasons: {error}."]
    terms = table["predictive"].values
    names = [str(name) for name in table["feature"].values]
    sides = {k: held.label_names(table[k].values) for k in ("label", "against")}
    shown, reasons = _shown(held, names), []
    for k, i in enumerate(held.doubtful.tolist()):
        largest = np.argsort(-np.abs(terms[k]), kind="stable")[:_REASONS]
        parts = []
        for j in largest[np.abs(terms[k][largest]) > 1e-3]:
            value = held.value(i, names[j])
            cell = shown[j] + (f" = {value}" if value else "")
            label = sides["label" if terms[k, j] > 0 else "against"][k]
            parts.append(f"{cell}: {signed(abs(float(terms[k, j])), 1)} for {label}")
        reasons.append("; ".join(parts))
    return reasons, []


def _shown(held: HeldOut, features: list[str]) -> list[str]:
    """Return names of columns; of documents n-grams in quotes, as they may end in a blank."""
    is_table = len(getattr(held.X, "shape", (0,))) == 2
    return [one_line(name, 40) if is_table else repr(name) for name in features]
