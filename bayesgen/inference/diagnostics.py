"""What a sampler's own numbers say of its draws, as one warning that says what to try.

Source: Vehtari et al. (2021), Rank-normalization, folding, and localization: an improved R-hat;
Betancourt (2016), Diagnosing suboptimal cotangent disintegrations (divergences).
"""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesgen.families.names import CHAIN
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr

LARGEST_R_HAT = 1.01
FEWEST_DRAWS = 100  # effective, of each chain


class SamplingWarning(UserWarning):
    """Draws that their sampler, or their chains, do not vouch for."""


class SamplingError(RuntimeError):
    """A sampler returned fewer draws than were asked for, or draws that are not finite."""


def refuse_incomplete(draws: Mapping[str, Array], chains: int, n_draws: int, sampler: str) -> None:
    """Raise a `SamplingError` that names the first chain without `n_draws` finite draws.

    Parameters
    ----------
    draws : {name: (chain, draw, *dims)}
    chains, n_draws : int
        How many were asked for.
    sampler : str
        For the message.
    """
    retry = "nothing was kept; sample again, and if it stays, look at the priors"
    for name, value in draws.items():
        if value.shape[0] < chains:
            raise SamplingError(
                f"{sampler}: {value.shape[0]} of {chains} chains were returned; {retry}"
            )
        finite = np.ones(value.shape[:2], dtype=bool)
        if value.dtype.kind in "fc":
            finite = np.isfinite(value).all(axis=tuple(range(2, value.ndim)))
        for chain, n in enumerate(finite.sum(axis=1)):
            if n < n_draws:
                raise SamplingError(
                    f"{sampler}: chain {chain} has {n} of {n_draws} draws of {name!r}; the others "
                    f"are missing or not finite; {retry}"
                )


class Diagnosis(NamedTuple):
    """The worst of all parameters."""

    divergences: int
    r_hat: float
    r_hat_of: str
    ess: float
    ess_of: str
    n_chains: int

    def complaints(self, disagreement: str = "") -> list[str]:
        """What is wrong, and what to try; empty if nothing is.

        `disagreement`, if any, says what it means in this model that chains disagree.
        """
        out = []
        if self.divergences:
            out.append(
                f"{self.divergences} draw(s) diverged: regions of the posterior may have been left "
                "out; try target_accept=0.95, or priors that say more"
            )
        if self.r_hat > LARGEST_R_HAT:
            out.append(
                f"R-hat of {self.r_hat_of} is {self.r_hat:.4g} (> {LARGEST_R_HAT}): the chains "
                "disagree; "
                + (
                    disagreement
                    or "try more tune and draws, and if it stays, the posterior has several "
                    "modes: label more rows, or give priors that tell the classes apart"
                )
            )
        if self.ess < FEWEST_DRAWS * self.n_chains:
            out.append(
                f"{self.ess_of} has {self.ess:.0f} effective draws (< {FEWEST_DRAWS} a chain): "
                "its quantiles are not to be trusted; try more draws"
            )
        return out


def diagnose(posterior: "xr.Dataset", sample_stats: "xr.Dataset") -> Diagnosis:
    """Divergences, the largest R-hat and the smallest effective sample size (bulk and tail)."""
    n_chains, n_draws = posterior.sizes[CHAIN], posterior.sizes["draw"]
    diverging = int(sample_stats["diverging"].sum()) if "diverging" in sample_stats else 0
    if n_draws < 4:
        return Diagnosis(
            diverging, np.nan, "", float(n_chains * n_draws), "every parameter", n_chains
        )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter(
            "ignore"
        )  # constants (padding, the weight of one class) have no R-hat
        import arviz as az

        r_hat = {k: float(v.max()) for k, v in az.rhat(posterior).data_vars.items()}
        ess: dict[str, float] = {}
        for method in ("bulk", "tail"):
            for k, v in az.ess(posterior, method=method).data_vars.items():
                ess[str(k)] = min(ess.get(str(k), np.inf), float(v.min()))
    varies = {str(k): float(v.std((CHAIN, "draw")).max()) > 0 for k, v in posterior.items()}
    r_hat = {str(k): v for k, v in r_hat.items() if varies[str(k)] and np.isfinite(v)}
    ess = {k: v for k, v in ess.items() if varies[k] and np.isfinite(v)}
    worst = max(r_hat, key=r_hat.__getitem__, default="")
    fewest = min(ess, key=ess.__getitem__, default="")
    return Diagnosis(
        diverging, r_hat.get(worst, np.nan), worst, ess.get(fewest, np.inf), fewest, n_chains
    )


def warn_unless_sound(
    posterior: "xr.Dataset",
    sample_stats: "xr.Dataset",
    sampler: str = "NUTS",
    disagreement: str = "",
) -> Diagnosis:
    """One `SamplingWarning` with all `Diagnosis.complaints`, if there are any."""
    found = diagnose(posterior, sample_stats)
    complaints = found.complaints(disagreement)
    if complaints:
        warnings.warn(f"{sampler}: " + "; ".join(complaints), SamplingWarning, stacklevel=4)
    return found
