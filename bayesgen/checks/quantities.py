"""What `validate` compares with the draws of NUTS, and with independent draws."""

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.checks.agreement import STATISTICS, Agreement, compare, r_hat
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.names import CLASS_WEIGHTS, FEATURE, FEATURE_BIS
from bayesgen.families.shared.cells import by_cell
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.monte_carlo import log_densities

if TYPE_CHECKING:
    import xarray as xr

NUTS, INDEPENDENT = "NUTS", "independent draws"
_SOUND = 1 / 3  # of the draws an estimate of p(x | D) must rest on: else its error is not Normal
_NEGLIGIBLE = 20.0  # nats below the largest log density of a row

Theta = dict[str, Array]


class _Part(NamedTuple):
    variable: str
    labels: list[str]
    agreement: Agreement
    r_hat: Array
    source: str


class Comparisons:
    """Numbers from draws beside those of the closed form."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def add(
        self,
        variable: str,
        labels: list[str],
        agreement: Agreement,
        r_hats: Array | None = None,
        source: str = NUTS,
    ) -> None:
        """Add K comparisons under one name; those that are NaN throughout are left out."""
        used = np.flatnonzero(~np.isnan(agreement.z).all(axis=1))
        if used.size:
            r = np.full(len(labels), np.nan) if r_hats is None else r_hats
            kept = Agreement(*(field[used] for field in agreement))
            own = [labels[k] for k in used]
            self._parts.append(_Part(variable, own, kept, r[used], source))

    def dataset(self) -> "xr.Dataset":
        """dims (check, statistic), as in `Validation.checks`."""
        import xarray as xr

        check, both = ("check",), ("check", "statistic")
        parts = self._parts
        fields = zip(*(p.agreement for p in parts), strict=True)
        joined = Agreement(*(np.concatenate(field) for field in fields))
        variable, source = (
            np.array([part[k] for part in parts for _ in part.labels], dtype=str) for k in (0, 4)
        )
        return xr.Dataset(
            {
                "nuts": (both, joined.chain),
                "closed_form": (both, joined.reference),
                "z": (both, joined.z),
                "ess": (check, joined.ess),
                "r_hat": (check, np.concatenate([p.r_hat for p in parts])),
                "variable": (check, variable),
                "source": (check, source),
            },
            {
                "check": np.array([label for p in parts for label in p.labels], dtype=str),
                "statistic": np.array(STATISTICS),
            },
        )


class Draws(NamedTuple):
    """Draws of theta, and of what they say of N rows."""

    theta: Theta  # {name: (chain, draw, *dims)}
    log_density: Array  # (chain, draw, N, C) log p(x_i | theta_c)
    log_joint: Array  # the same, plus log pi_c

    @classmethod
    def of(cls, family: ConjugateFamily, theta: Theta, rows: Array) -> "Draws":
        """Of all rows."""
        n_classes = theta[CLASS_WEIGHTS].shape[-1]
        blocks = [f for _, f in log_densities(family, theta, rows, n_classes)]
        density = np.concatenate(blocks, axis=2)
        return cls(theta, density, density + np.log(theta[CLASS_WEIGHTS])[..., None, :])

    def flat(self, name: str) -> Array:
        """(chain * draw, K) the elements of a parameter."""
        value = self.theta[name]
        return value.reshape(value.shape[0] * value.shape[1], -1)


def distributions(
    into: Comparisons, fitted: Any, chain: Draws, reference: Draws, places: list[str]
) -> None:
    """Parameters, densities and log-odds of NUTS and of independent draws."""

    def add(name: str, labels: list[str], mine: Array, other: Array) -> None:
        mine = mine.reshape(*mine.shape[:2], -1)
        other = other.reshape(other.shape[0] * other.shape[1], -1)
        into.add(name, labels, compare(mine, other), r_hat(mine))

    for name, value in chain.theta.items():
        mine, other = (elements(fitted, name, v) for v in (value, reference.theta[name]))
        add(name, element_labels(fitted, name), mine, other)
    add("log p(x | theta)", places, chain.log_density, reference.log_density)
    if len(fitted.classes_) > 1:
        odds = log_odds(chain.log_joint), log_odds(reference.log_joint)
        add("log odds of y | x, theta", places, *odds)


def log_odds(joint: Array) -> Array:
    """(..., C) log-odds of each class against the rest, from log joint densities (..., C).

    A probability rounds to 1 and its odds do not: draws that differ stay different.
    """
    out = np.empty(joint.shape)
    for c in range(joint.shape[-1]):
        out[..., c] = joint[..., c] - log_sum_exp(np.delete(joint, c, axis=-1))
    return out


def predictive(
    into: Comparisons, fitted: Any, chain: Theta, rows: Array, places: list[str]
) -> None:
    """Exact densities and probabilities of rows, and their estimates where those are sound."""
    own: ExactPosterior = fitted.fitted_.posterior
    estimated = DrawnPosterior(own.prior, own.model, own.stats, chain).estimate(rows)
    joint = own.log_joint(rows)
    n_draws = chain[CLASS_WEIGHTS].shape[0] * chain[CLASS_WEIGHTS].shape[1]
    sound = estimated.weight_ess >= _SOUND * n_draws
    # the error of the log of a mean, to first order
    error = np.sqrt(np.maximum(1 / np.maximum(estimated.weight_ess, 1.0) - 1 / n_draws, 0.0))
    # a class that matters nowhere, were its density even as large as it may be, does no harm
    top = estimated.log_joint.max(axis=1, keepdims=True)
    harmless = sound | (estimated.upper < top - _NEGLIGIBLE)
    pairs = {
        "log p(x, y | D)": (estimated.log_joint, joint, error, sound),
        "p(y | x, D)": (
            estimated.probability,
            np.exp(log_softmax(joint)),
            estimated.mcse,
            sound & harmless.all(axis=1, keepdims=True) & (estimated.mcse > 1e-7),
        ),
    }
    for name, (mine, exact, mcse, usable) in pairs.items():
        table = np.full((3, exact.size, len(STATISTICS)), np.nan)
        table[0, :, 0], table[1, :, 0] = mine.ravel(), exact.ravel()
        with np.errstate(invalid="ignore", divide="ignore"):
            table[2, :, 0] = np.where(usable & (mcse > 0), (mine - exact) / mcse, np.nan).ravel()
        into.add(
            name, places, Agreement(table[0], table[1], table[2], estimated.weight_ess.ravel())
        )


def elements(fitted: Any, name: str, value: Array) -> Array:
    """(..., K) the elements of a parameter (..., *dims) that rows say anything of.

    Not those of ignored columns, nor of categories that do not exist.
    """
    lead = np.ndim(value) - len(fitted.model_.params[name])
    dims, value = by_cell(fitted.model_.params[name], value, fitted.fitted_.coords)
    used = _live(fitted.model_.family, dims, value.shape[lead:])
    return value.reshape(*value.shape[:lead], -1)[..., used]


def element_labels(fitted: Any, name: str) -> list[str]:
    """``mu[setosa, x0]`` for each of the `elements`, in their order."""
    variable = fitted.posterior_["posterior"][name]
    dims = variable.dims[2:]
    axes = [variable[d].values if d in variable.coords else range(variable.sizes[d]) for d in dims]
    used = _live(fitted.model_.family, dims, variable.shape[2:])
    if not axes:
        return [name]
    every = [f"{name}[{', '.join(map(str, at))}]" for at in itertools.product(*axes)]
    return [every[k] for k in used]


def _live(family: ConjugateFamily, dims: tuple[Any, ...], shape: tuple[int, ...]) -> Array:
    """Positions of the elements that do not belong to ignored columns."""
    out = np.ones(shape, dtype=bool)
    ignored = getattr(family, "ignored", None)
    if ignored is not None:
        for axis, dim in enumerate(dims):
            if dim in (FEATURE, FEATURE_BIS):
                np.moveaxis(out, axis, -1)[..., np.asarray(ignored, dtype=bool)] = False
    return np.flatnonzero(out)
