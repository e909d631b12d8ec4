"""What was fitted: columns and priors, members of a pool, typicality of the rows, sampling."""

from functools import partial
from typing import Any

import numpy as np

from bayesgen.checks.validate import Validation, as_text
from bayesgen.encoding.literals import listed, one_line
from bayesgen.plots import drawing
from bayesgen.reporting.figures import Figure, differences
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, TextTable, count, ends, number, share

_SHOWN = 60  # columns in a table
_MEMBERS = 20  # of a picture
_TYPICAL_ROWS = 8
_BINS = 20  # of typicality
_UNLIKE = 0.01  # share of training rows as improbable as a row that is unlike them


def fitted(held: HeldOut) -> Section:
    """Describe the columns, classes and priors; of a pool the exponents of its members."""
    return _members(held) if held.is_pool else _columns(held)


def _columns(held: HeldOut) -> Section:
    summary = held.summary
    warnings = [s for s in summary.sentences if s.startswith("Warning")]
    sentences = [s for s in summary.sentences if not s.startswith("Warning")]
    frame, table = summary.to_dataframe(), summary.table
    section = Section("model", [" ".join([f"{summary.title}.", *sentences])], notes=warnings)
    if len(frame):
        shown = frame.iloc[:_SHOWN]
        columns = {
            "column": [one_line(name, 40) for name in shown.index],
            "kind": shown["kind"],
            "prior": shown["prior"],
            "90 % of cells under it": shown["prior_range"],
            "missing": ["" if n != n or not n else f"{n:g}" for n in shown["missing"]],
        }
        heads = [head for head, cells in columns.items() if head == "column" or any(cells)]
        rows = list(zip(*(columns[head] for head in heads), strict=True))
        more = "" if len(frame) <= _SHOWN else f"; {len(frame) - _SHOWN} more"
        caption = f"Columns, and priors in their units{more}"
        section.tables.append(TextTable(caption, heads, rows, len(heads) - ("missing" in heads)))
    section.data = {
        "columns": frame.head(1000).to_dict("index"),
        "rows": table["rows"].values if "rows" in table else None,
        "attributes": dict(table.attrs),
    }
    return section


def _members(held: HeldOut) -> Section:
    summary = held.summary
    names = [str(name) for name in summary.table["member"].values]
    exponent, interval = summary.table["exponent"].values, summary.table["interval"].values
    order = np.argsort(-exponent, kind="stable")[:_MEMBERS]
    rows = [[names[j], number(exponent[j]), ends(*interval[j])] for j in order]
    figure = differences(
        [names[j] for j in order],
        exponent[order],
        interval[order],
        1 / len(names),
        "exponent",
        "Exponents of the pool",
        "An exponent below 1 counts a member's evidence for less than it claims. The line: equal "
        "shares.",
    )
    head = ["member", "exponent", f"{share(held.prob)} interval"]
    exponents = dict(zip(names, exponent.tolist(), strict=True))
    return Section(
        "model",
        list(summary.sentences),
        [TextTable("Exponents of the members", head, rows)],
        [figure],
        data={"exponents": exponents, "sentences": summary.sentences},
    )


def sampling(held: HeldOut, validation: Validation | None = None) -> Section:
    """Say whether the sampler can be trusted, or agrees with the closed form."""
    if validation is not None:
        return _of_validation(validation)
    route = held.clf.fitted_.training.inference
    if route == "closed form" or held.is_pool:  # a pool's summary describes its draws
        raise ValueError("nothing was sampled; validation=bg.validate(...) adds NUTS to the report")
    from bayesgen.inference.nuts import diagnose

    draws = held.clf.posterior_
    stats: Any = draws["sample_stats"].to_dataset() if "sample_stats" in draws else {}
    diagnosis = diagnose(draws["posterior"].to_dataset(), stats)
    by = "by NUTS" if route == "nuts" else f"({route})"
    text = (
        f"{diagnosis.n_chains} chains {by}: largest R-hat {number(diagnosis.r_hat)} "
        f"({diagnosis.r_hat_of or 'none'}), fewest effective draws {diagnosis.ess:.0f} "
        f"({diagnosis.ess_of}), {count(diagnosis.divergences, 'divergence')}."
    )
    complaints = [f"{c[0].upper()}{c[1:]}." for c in diagnosis.complaints()]
    data = {
        "route": route,
        "r_hat": diagnosis.r_hat,
        "ess": diagnosis.ess,
        "divergences": diagnosis.divergences,
    }
    return Section("sampling", [text, *(complaints or ["The chains agree."])], data=data)


def _of_validation(validation: Validation) -> Section:
    frame = validation.summary()
    lines = [[str(name), *line] for name, line in as_text(frame).T.items()]
    return Section(
        "sampling",
        [f"Closed form against NUTS: {validation.verdict}.", *validation.reasons],
        [TextTable("What was compared", ["variable", *map(str, frame.columns)], lines)],
        notes=list(validation.remarks()),
        data={"verdict": validation.verdict, "variables": frame.to_dict("index")},
    )


def typicality(held: HeldOut) -> Section:
    """Say whether the rows are like the training rows, and show those that are not."""
    tail, by_class = held.typicality["overall"].values, held.typicality["by_class"].values
    n_strange, expected = int((tail < _UNLIKE).sum()), _UNLIKE * held.n
    text = (
        f"Of {count(held.n, 'row')}, {n_strange} {'is' if n_strange == 1 else 'are'} less "
        f"probable than all but 1 % of the training rows; {expected:.1f} would be expected if they "
        "came from the same source."
    )
    if n_strange > expected + 3 * np.sqrt(expected) + 1:
        text += " They do not seem to come from the same source."
    rows = [
        [held.name(int(i)), held.labels[held.codes[i]], held.labels[int(by_class[i].argmax())],
         number(float(tail[i]), 4), number(float(by_class[i].max()), 4)]
        for i in np.argsort(tail, kind="stable")[:_TYPICAL_ROWS]
    ]  # fmt: skip
    caption = "The least typical rows: share of training rows at most as probable"
    head = ["row", "label", "nearest class", "overall", "within that class"]
    section = Section("typicality", [text], [TextTable(caption, head, rows, 3)])
    if held.n >= _TYPICAL_ROWS:
        section.figures = [_shares(tail, held.is_pool)]
    section.data = {
        "below_0.01": n_strange,
        "expected": expected,
        "quantiles": np.quantile(tail, [0, 0.01, 0.05, 0.25, 0.5, 0.75, 1]),
    }
    return section


def limits(held: HeldOut) -> Section:
    """Say what the classifier should not be used for."""
    try:
        n_unlike = int((held.typicality["overall"].values < _UNLIKE).sum())
        unlike = (
            f"Rows unlike the training rows: here {n_unlike} of {held.n}. clf.typicality finds "
            "them, before the probabilities are believed."
        )
    except (ValueError, NotImplementedError, TypeError):
        unlike = "Rows unlike the training rows, which this classifier does not recognise."
    weights = zip(held.labels, held.class_weights.tolist(), strict=True)
    frequencies = listed([f"{label} {share(weight)}" for label, weight in weights], 6, " and ")
    text = [
        unlike,
        "Labels that it has not seen: every row is given to one of "
        f"{listed(held.labels, 6, ' and ')}.",
        f"Rows among which the classes are not as frequent as in training ({frequencies})"
        + ", unless class_prior= says how frequent they are."
        * held.clf.fitted_.posterior.has_weights,
        "Effects of a change: it describes rows as they were collected, and does not know what "
        "happens if somebody changes a cell.",
    ]
    return Section("limits", text)


def _shares(tail: np.ndarray, is_pool: bool) -> Figure:
    each = np.histogram(tail, np.linspace(0, 1, _BINS + 1))[0] / len(tail)
    label = "share of training rows at most as probable"
    numbers = ", ".join(f"{value:.2f}" for value in each)
    caption = (
        "Level with the line if the rows are drawn as the training rows were; a peak at the left: "
        "rows unlike any seen." + (" Of a pool the right may stand higher." if is_pool else "")
    )
    return Figure(
        partial(drawing.shares, values=each, xlabel=label),
        2.7,
        f"Typicality of the rows: shares of rows in {_BINS} equal bins {numbers}.",
        caption,
    )
