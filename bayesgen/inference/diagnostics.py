"""What a sampler's own numbers say of its draws, as one warning that says what to try.

Source: Vehtari et al. (2021), Rank-normalization, folding, and localization: an improved R-hat;
Betancourt (2016), Diagnosing suboptimal cotangent disintegrations (divergences).
"""

import warnings
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.families.names import CHAIN
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr

LARGEST_R_HAT = 1.01
FEWEST_DRAWS = 100  # effective, of each chain


class SamplingWarning(UserWarning):
    """Posterior draws with divergences, or of chains that disagree or are too short."""


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
    broken: str = ""  # what no number tells: chains that do not move, or are one chain

    def attributes(self) -> dict[Hashable, Any]:
        """For the attributes of a tree; ``verdict`` is ``"sound"`` or `complaints`."""
        own = {"divergences": self.divergences, "r_hat": self.r_hat, "ess": self.ess}
        return own | {"verdict": "; ".join(self.complaints()) or "sound"}

    def complaints(self, disagreement: str = "") -> list[str]:
        """What is wrong, and what to try; empty if nothing is.

        `disagreement`, if any, says what it means in this model that chains disagree.
        """
        out = [self.broken] if self.broken else []
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
    with np.errstate(invalid="ignore", over="ignore"):  # what is infinite is no constant
        moving = {str(k): v.std((CHAIN, "draw")).values != 0 for k, v in posterior.items()}
    moving = {k: at for k, at in moving.items() if at.any()}
    broken = _broken({k: posterior[k].values for k in moving})
    if not moving:
        return Diagnosis(diverging, np.inf, "every parameter", 0.0, "it", n_chains, broken)
    own = posterior[list(moving)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a constant among numbers that vary has no R-hat
        import arviz as az

        found = {"r_hat": az.rhat(own)}
        found |= {method: az.ess(own, method=method) for method in ("bulk", "tail")}
    # a component that varies and has none is the worst there is
    r_hat = {
        k: float(np.where(np.isnan(v := found["r_hat"][k].values), np.inf, v)[at].max())
        for k, at in moving.items()
    }
    ess = {
        k: min(float(np.nan_to_num(found[m][k].values)[at].min()) for m in ("bulk", "tail"))
        for k, at in moving.items()
    }
    worst, fewest = max(r_hat, key=r_hat.__getitem__), min(ess, key=ess.__getitem__)
    return Diagnosis(diverging, r_hat[worst], worst, ess[fewest], fewest, n_chains, broken)


def _broken(draws: Mapping[str, Array]) -> str:
    """What is wrong with chains {name: (chain, draw, *dims)} of which R-hat may say nothing."""
    retry = "sample again with another random_seed, and look at the priors"
    if not draws:
        return f"no parameter varies: the chains never moved; {retry}"
    flat = np.concatenate([v.reshape(*v.shape[:2], -1) for v in draws.values()], axis=2)
    if not np.isfinite(flat).all():
        return f"some draws are not finite; {retry}"
    stuck = np.flatnonzero((flat == flat[:, :1]).all(axis=(1, 2)))
    if len(stuck):
        return f"chain {stuck[0]} never moved; {retry}"
    if len(flat) == 1:
        return "one chain has no other to be compared with; try chains=4"
    for chain in range(1, len(flat)):
        twin = np.flatnonzero((flat[:chain] == flat[chain]).all(axis=(1, 2)))
        if len(twin):
            return f"chains {twin[0]} and {chain} are identical, hence one chain; {retry}"
    return ""


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
