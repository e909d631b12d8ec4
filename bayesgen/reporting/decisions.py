"""Decisions: AUC and rates of two classes by threshold, costs of the decisions of least cost."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from bayesgen.checks.compare import paired
from bayesgen.encoding.literals import one_line
from bayesgen.numerics.special import Array
from bayesgen.plots.models import jeffreys
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, Table, ends, number, share

_THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)


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
    if n0 and n1:
        area = auc(held)
        within = f" ({prob} interval {ends(area[1:])})"
        section.text.append(
            f"AUC {number(area.value)}{within * (area.low == area.low)}: of a row of "
            f"{name!r} and one of {other!r}, the first has the higher probability of {name!r} in "
            f"{share(area.value)} of all pairs."
        )
        section.data |= {"auc": area.value, "auc_interval": area[1:]}
    section.text.append(f"The threshold is {chosen:.3g}, {why}. The positive class is {name!r}.")
    section.data |= {"threshold": chosen, "positive": name}
    rates = {  # name: the rows, how many are right, and of how many
        "sensitivity": (f"{name} named {name}", tp, tp + fn),
        "specificity": (f"{other} named {other}", tn, tn + fp),
        "positive predictive value": (f"named {name} and right", tp, tp + fp),
        "negative predictive value": (f"named {other} and right", tn, tn + fn),
    }
    here = int(np.searchsorted(thresholds, chosen))
    at_threshold, interval = [], f"{prob} interval"
    for rate, (what, right, n) in rates.items():
        k, total = int(right[here]), int(n[here])
        low, high = map(float, jeffreys(k, total, held.prob)) if total else (np.nan, np.nan)
        line = {"rate": rate, "rows": what, "number": f"{k} of {total}"}
        at_threshold.append(line | {"share": k / total if total else np.nan, interval: (low, high)})
    forms: dict[str, Any] = {"share": share, interval: partial(ends, text=share)}
    section.tables.append(Table(f"Rates at the threshold {chosen:.3g}", at_threshold, forms))
    with np.errstate(invalid="ignore"):
        sensitivity, specificity, ppv, npv = (right / n for _, right, n in rates.values())
    mean = (np.stack([tn, fp, fn, tp]).T @ cost.ravel()) / held.n
    last = "wrong" if held.cost is None else "cost per row"
    by_threshold = [
        {
            "threshold": f"{threshold:.3g}" + " (chosen)" * (j == here),
            f"named {name}": int(tp[j] + fp[j]),
            "sensitivity": sensitivity[j],
            "specificity": specificity[j],
            "PPV": ppv[j],
            "NPV": npv[j],
            last: mean[j],
        }
        for j, threshold in enumerate(thresholds)
    ]
    caption = (
        f"By threshold: {name!r} is named where its probability is higher. PPV and NPV: positive "
        "and negative predictive value."
    )
    forms = dict.fromkeys(("sensitivity", "specificity", "PPV", "NPV", "wrong"), share)
    section.tables.append(Table(caption, by_threshold, forms))
    section.notes.append(
        f"Predictive values hold where {name!r} has {share(n1 / held.n)} of the rows, as here."
    )


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
        costs = [v[taken].mean() if taken.any() else np.nan for v in (foreseen, seen)]
        cells = [int(taken.sum()), *costs, always[d]]
        heads = ("rows", "expected cost per row", "cost per row", "if always decided")
        lines.append({"decision": name} | dict(zip(heads, cells, strict=True)))
    section.tables.append(Table("Decisions of lowest expected cost", lines))
    section.data["costs"] = [float(foreseen.mean()), float(seen.mean())]
