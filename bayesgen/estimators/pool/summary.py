"""What exponents say of the members of a pool, as a table and in sentences."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.estimators.summary import SHOWN, Summary
from bayesgen.families.names import BOUND
from bayesgen.predict.interval.request import IntervalRequest

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesgen.estimators.pool.log_linear_pool import LogLinearPool


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
    def of(cls, pool: "LogLinearPool", prob: float | None) -> "PoolSummary":
        """Of a fitted pool."""
        request = IntervalRequest.of(prob, "eti")
        tails = [(1 - request.prob) / 2, (1 + request.prob) / 2]
        exponents, intercepts = (np.quantile(v, tails, axis=0).T for v in pool._exponents.flat)

        variables: dict[str, Any] = {
            "exponent": (("member",), pool.exponents_),
            "interval": (("member", BOUND), exponents),
            "intercept": (("class",), pool.intercepts_),
        }
        if pool.intercepts:
            variables["intercept_interval"] = (("class", BOUND), intercepts)
        coords = {"member": pool._names(), "class": pool.classes_, BOUND: ["lower", "upper"]}
        table = tree.group(variables, coords).assign_attrs(prob=request.prob, rows=pool.n_rows_)
        title = f"LogLinearPool: exponents from {pool.n_rows_} rows left out in turn"
        return cls(title, table, tuple(_sentences(pool, table)))

    def to_dataframe(self) -> "pd.DataFrame":
        """One row per member: exponent and interval."""
        interval = self.table["interval"].to_pandas()
        frame: pd.DataFrame = interval.assign(exponent=self.table["exponent"].values)
        return frame[["exponent", "lower", "upper"]]

    def _shown(self) -> "pd.DataFrame":
        frame = self.to_dataframe().iloc[:SHOWN].rename_axis(None)
        return frame.map("{:.3f}".format)

    def _n_lines(self) -> int:
        return int(self.table.sizes["member"])


def _sentences(pool: "LogLinearPool", table: "xr.Dataset") -> list[str]:
    total = float(pool.exponents_.sum())
    out = []
    if pool.exponents == "feature":
        below = float((pool.exponents_ < 1).mean())
        out.append(
            f"{below:.0%} of the columns have an exponent below 1: together they repeat evidence, "
            "as dependent columns do."
        )
    elif len(pool.members_) == 1:
        low, high = table["interval"].values[0]
        if high < 1:
            meaning = "the model is overconfident: it counts evidence more than once"
        elif low > 1:
            meaning = (
                "the model is not sure enough: its probabilities are less extreme than its evidence"
            )
        else:
            meaning = "the interval holds 1: no sign that its evidence is over- or undercounted"
        out.append(f"Exponent {total:.2f} in place of 1: {meaning}.")
    else:
        k = int(np.argmax(pool.exponents_))
        top = list(pool.members_)[k]
        share = pool.exponents_[k] / total
        parts = len({member.selection for member in pool._members_})
        right = "a single model that were right" if parts == 1 else "right models of each part"
        out.append(
            f"{top!r} has {share:.0%} of the exponents. Their sum is {total:.2f}; {right} would "
            f"have {parts}."
        )
    if any(member.smoothed for member in pool._members_):
        out.append("Scores of sampled members are by Pareto-smoothed importance sampling.")
    for name, reason in pool.left_out_.items():
        out.append(f"Left out: {name} ({reason}).")
    odd = pool.__dict__.get("_suspects", {})
    return out + [f"Warning: column {name!r} {why}." for name, why in odd.items()]
