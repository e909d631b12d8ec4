"""The outcome of `validate`: numbers, what was compared and what could not be, the verdict."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesgen.checks.quantities import INDEPENDENT, NUTS
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_R_HAT = 1.01
_FEWEST = 100.0  # effective draws of the worst quantity, below which nothing is concluded


@dataclass(frozen=True)
class Validation:
    """Outcome of `validate`; print it for the table.

    Attributes
    ----------
    verdict : {"agree", "disagree", "inconclusive"}
        ``"inconclusive"`` if NUTS itself cannot be trusted (R-hat, effective draws).
    passed : bool
        Whether the verdict is ``"agree"``.
    reasons : tuple of str
        What was found, if the verdict is another one.
    checks : xarray.Dataset
        dims (check, statistic): ``nuts``, ``closed_form``, ``z``; (check,) ``ess``, ``r_hat``,
        ``variable``; ``source`` of the draws behind ``nuts``, which is "NUTS" or, where the
        closed form is compared with itself, "independent draws". The same as the group
        ``validation`` of `tree`.
    threshold : float
        |z| that the largest of all z-scores exceeds with probability `false_alarm`, or less, if
        the closed form is right (Bonferroni).
    false_alarm : float
    tree : xarray.DataTree
        Draws of NUTS, as from ``sample_posterior``, with the group ``validation``.
    exact : tuple of str
        What was compared without draws, to many digits; it cannot be a false alarm.
    not_compared : tuple of str
        What could not be compared, and why.
    """

    verdict: str
    reasons: tuple[str, ...]
    checks: "xr.Dataset"
    threshold: float
    false_alarm: float
    tree: "xr.DataTree"
    exact: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether closed form and NUTS agree."""
        return self.verdict == "agree"

    @property
    def largest_z(self) -> float:
        """Largest |z| of all comparisons."""
        return float(np.nanmax(np.abs(self.checks["z"].values)))

    def summary(self) -> "pd.DataFrame":
        """One line a variable: how many numbers, largest |z| by statistic, R-hat, ESS."""
        import pandas as pd

        checks = self.checks
        lines = {}
        for name in dict.fromkeys(checks["variable"].values.tolist()):
            part = checks.isel(check=np.flatnonzero(checks["variable"].values == name))
            z = np.abs(part["z"].values)
            quantiles = z[:, 2:]
            lines[name] = {
                "numbers": len(z),
                "mean |z|": _largest(z[:, 0]),
                "sd |z|": _largest(z[:, 1]),
                "quantile |z|": _largest(quantiles),
                "R-hat": _largest(part["r_hat"].values),
                "ESS": float(np.min(part["ess"].values)),
            }
        return pd.DataFrame.from_dict(lines, orient="index")

    def __str__(self) -> str:
        table = self.summary()
        digits = {"R-hat": 3, "ESS": 0}
        shown = {
            name: f"{{:.{digits.get(name, 2)}f}}".format for name in table if name != "numbers"
        }
        attrs = self.checks.attrs
        lines = [
            f"{attrs['estimator']}: closed form against NUTS "
            f"({attrs['chains']} x {attrs['draws']} draws, {attrs['divergences']} divergences, "
            f"{attrs['seconds']:.1f} s)",
            table.to_string(formatters=shown, na_rep=""),
            f"largest |z| {self.largest_z:.2f} of {self.checks.attrs['comparisons']}; beyond "
            f"{self.threshold:.2f} with probability {self.false_alarm:g} if both are right",
            *(f"compared to many digits: {what}" for what in [", ".join(self.exact)] if what),
            *(f"not compared: {what}" for what in self.not_compared),
            f"verdict: {self.verdict}",
            *(f"- {reason}" for reason in self.reasons),
        ]
        return "\n".join(lines)


def verdict_of(
    checks: "xr.Dataset", threshold: float, divergences: int, broken: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """The verdict and what speaks for it."""
    reasons = list(broken)
    z = np.nan_to_num(np.abs(checks["z"].values), nan=0.0)
    r_hat, ess = _largest(checks["r_hat"].values), float(np.min(checks["ess"].values[_own(checks)]))
    trouble = []
    if r_hat > _R_HAT:
        trouble.append(f"R-hat is {r_hat:.3f} (at most {_R_HAT} is wanted)")
    if ess < _FEWEST:
        trouble.append(f"the worst quantity has {ess:.0f} effective draws")
    if divergences:
        trouble.append(f"{divergences} draws diverged")
    by_nuts = checks["source"].values == NUTS
    for source, rows in ((NUTS, by_nuts), (INDEPENDENT, ~by_nuts)):
        own = np.where(rows[:, None], z, 0.0)
        if own.max(initial=0.0) <= threshold:
            continue
        k, s = np.unravel_index(own.argmax(), z.shape)
        n_compared = int(np.isfinite(checks["z"].values[rows]).sum())
        place, statistic = checks["check"].values[k], checks["statistic"].values[s]
        if checks["variable"].values[k] not in place:
            place = f"{checks['variable'].values[k]}, {place}"
        reasons.append(
            f"{statistic} of {place}: {float(checks['nuts'][k, s]):.6g} by {source}, "
            f"{float(checks['closed_form'][k, s]):.6g} in closed form (|z| = {own.max():.1f}); "
            f"{int((own > threshold).sum())} of {n_compared} comparisons are beyond {threshold:.2f}"
        )
    far = [bool((z[rows] > threshold).any()) for rows in (by_nuts, ~by_nuts)]
    if broken or far[1] or (far[0] and not trouble):
        return "disagree", tuple(reasons)
    if trouble and (far[0] or r_hat > _R_HAT or ess < _FEWEST):
        advice = "sample longer (draws, tune) or with a larger target_accept"
        return "inconclusive", (*reasons, *trouble, advice)
    return "agree", ()


def _own(checks: "xr.Dataset") -> Array:
    """Which checks compare distributions: those with an R-hat."""
    return ~np.isnan(checks["r_hat"].values)


def _largest(values: Array) -> float:
    finite = values[~np.isnan(values)]
    return float(finite.max()) if finite.size else float("nan")
