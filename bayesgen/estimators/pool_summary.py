"""What exponents say of the members of a pool, as a table and in sentences."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.estimators.summary import (
    SHOWN,
    Summary,
    attributes_of,
    rows_of_classes,
    sentences_of,
    unlabelled_rows,
)
from bayesgen.families.names import BOUND, CLASS, MEMBER
from bayesgen.posterior.fitted import Fitted
from bayesgen.predict.leave_one_out import label_score
from bayesgen.predict.request import IntervalRequest

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True, repr=False)
class PoolSummary(Summary):
    """Exponents, intercepts and sentences; `print` shows it, notebooks as HTML.

    Attributes
    ----------
    title : str
    table : xarray.Dataset
        ``exponent`` and ``interval`` (member), ``intercept`` and ``intercept_interval`` (class).
    sentences : tuple of str
    """

    @classmethod
    def of(cls, fitted: Fitted, prob: float | None) -> "PoolSummary":
        """Return the summary of a fitted pool."""
        pooled: Any = fitted.posterior
        request = IntervalRequest.of(prob, "eti")
        tails = [(1 - request.prob) / 2, (1 + request.prob) / 2]
        exponents, intercepts = (np.quantile(v, tails, axis=0).T for v in pooled.exponents.flat)
        mean, mean_intercept = pooled.exponents.mean
        variables: dict[str, Any] = {
            "exponent": ((MEMBER,), mean),
            "interval": ((MEMBER, BOUND), exponents),
            "intercept": ((CLASS,), mean_intercept),
        }
        if pooled.prior.family.intercepts:
            variables["intercept_interval"] = ((CLASS, BOUND), intercepts)
        coords = fitted.coords | {BOUND: ["lower", "upper"]}
        table = tree.group(variables, coords).assign_attrs(prob=request.prob, rows=pooled.n_rows)
        score = label_score(fitted)
        table = table.assign_attrs(attributes_of(score))
        title = f"{fitted.name}: exponents from {pooled.n_rows} rows left out in turn"
        told = (*_sentences(fitted, table), *sentences_of(score, fitted))
        return cls(title, table, told)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return one row per member: exponent and interval."""
        interval = self.table["interval"].to_pandas()
        frame: pd.DataFrame = interval.assign(exponent=self.table["exponent"].values)
        return frame[["exponent", "lower", "upper"]]

    def _shown(self) -> "pd.DataFrame":
        frame = self.to_dataframe().iloc[:SHOWN].rename_axis(None)
        return frame.map("{:.3f}".format)

    def _n_lines(self) -> int:
        return int(self.table.sizes[MEMBER])


def _sentences(fitted: Fitted, table: "xr.Dataset") -> list[str]:
    pooled: Any = fitted.posterior
    exponents, members = table["exponent"].values, pooled.members
    total = float(exponents.sum())
    sentences = [rows_of_classes(fitted, pooled.count)]
    if len(members) == 1:
        low, high = table["interval"].values[0]
        if high < 1:
            meaning = "the model is overconfident: it counts evidence more than once"
        elif low > 1:
            meaning = (
                "the model is not sure enough: its probabilities are less extreme than its evidence"
            )
        else:
            meaning = "the interval holds 1: no sign that its evidence is over- or undercounted"
        sentences.append(f"Exponent {total:.2f} in place of 1: {meaning}.")
    else:
        k = int(np.argmax(exponents))
        top = members[k].name
        share = exponents[k] / total
        parts = len({member.selection for member in members})
        right = "a single model that were right" if parts == 1 else "right models of each part"
        sentences.append(
            f"{top!r} has {share:.0%} of the exponents. Their sum is {total:.2f}; {right} would "
            f"have {parts}."
        )
    if any(member.fitted.posterior.n_draws for member in members):
        sentences.append("Scores of sampled members are by Pareto-smoothed importance sampling.")
    if (share := fitted.training.unlabelled_weight) is not None:
        sentences.append(
            f"{unlabelled_rows(fitted.training.n_unlabelled, share)}, on average over members."
        )
    for name, reason in fitted.training.left_out.items():
        sentences.append(f"Left out: {name} ({reason}).")
    odd = fitted.training.suspects
    return sentences + [f"Warning: column {name!r} {why}." for name, why in odd.items()]
