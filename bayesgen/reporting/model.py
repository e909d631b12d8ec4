"""What was fitted: columns and priors, members of a pool, typicality of the rows, sampling."""

from functools import partial
from typing import Any

import numpy as np

from bayesgen.checks.validate import Validation, as_text
from bayesgen.encoding.literals import listed, one_line
from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, Table, count, number, share

_SHOWN = 60  # columns in a table
_TYPICAL_ROWS = 8
_UNLIKE = 0.01  # share of training rows as improbable as a row that is unlike them


def fitted(held: HeldOut) -> Section:
    """Describe the columns, classes and priors; of a pool the exponents of its members."""
    summary, what = held.summary, "member" if held.is_pool else "column"
    frame = summary.to_dataframe()
    if "missing" in frame:  # numbers to the right of texts
        frame["missing"] = frame.pop("missing").fillna(0.0)
    frame = frame.loc[:, frame.astype(bool).any()].rename(
        columns={"prior_range": "90 % of cells under it"}
    )
    cells = zip(frame.index[:_SHOWN], frame.to_dict("records"), strict=False)
    lines = [{what: one_line(name, 40), **line} for name, line in cells]
    more = "" if len(frame) <= _SHOWN else f"; {len(frame) - _SHOWN} more"
    caption = f"Columns, and priors in their units{more}"
    if held.is_pool:
        caption = (
            f"Exponents of the members, with {share(held.prob)} intervals. An exponent below 1 "
            "counts a member's evidence for less than it claims."
        )
    warnings = [sentence for sentence in summary.sentences if sentence.startswith("Warning")]
    told = [sentence for sentence in summary.sentences if sentence not in warnings]
    return Section(
        "model",
        [" ".join([f"{summary.title}.", *told])],
        [Table(caption, lines, {"missing": "{:.0f}".format})] if lines else [],
        notes=warnings,
        data={"attributes": dict(summary.table.attrs)},
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
    texts = as_text(validation.summary()).T
    lines = [{"variable": str(name)} | texts[name].to_dict() for name in texts]
    return Section(
        "sampling",
        [f"Closed form against NUTS: {validation.verdict}.", *validation.reasons],
        [Table("What was compared", lines)],
        notes=list(validation.remarks()),
        data={"verdict": validation.verdict},
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
    lines = [
        {"row": held.name(int(i)), "label": held.labels[held.codes[i]],
         "nearest class": held.labels[int(by_class[i].argmax())],
         "overall": tail[i], "within that class": by_class[i].max()}
        for i in np.argsort(tail, kind="stable")[:_TYPICAL_ROWS]
    ]  # fmt: skip
    caption = "The least typical rows: share of training rows at most as probable"
    forms = dict.fromkeys(("overall", "within that class"), partial(number, digits=4))
    quantiles = np.quantile(tail, [0, 0.01, 0.05, 0.25, 0.5, 0.75, 1])
    data = {"below_0.01": n_strange, "expected": expected, "quantiles": quantiles}
    return Section("typicality", [text], [Table(caption, lines, forms)], data=data)


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
