r"""What `validate` compares with the draws of NUTS, and with independent draws.

Parameters, densities and probabilities of rows; and two that need an explanation.

**Intervals** hold the posterior probability they report: the share of draws in them.

**Draws of a covariance** have the density that the family claims for them. Let T_e multiply every
off-diagonal element by 1 + e. Were the draws those of T_e applied to draws of the density p, the
logarithm of their density would change with e, at e = 0, by minus

.. math:: \psi(\theta) = \frac{d}{de} \big[\log p(T_e \theta) + \log |T_e'|\big],

the score of e. Its expectation under p is 0, and no other function of one draw tells e from 0 with
fewer draws (Cox and Hinkley, Theoretical Statistics (1974), section 4.8). An element by element
comparison hardly sees an off-diagonal that is 3 % too small: its own spread is ten times as large.
"""

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.checks.agreement import (
    STATISTICS,
    Agreement,
    compare,
    r_hat,
    r_hat_limit,
)
from bayesgen.families.capabilities import ThetaDensity, require
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.names import CLASS_WEIGHTS, FEATURE, FEATURE_BIS
from bayesgen.families.shared.pymc_parts import by_cell
from bayesgen.numerics.special import Array, log_odds_against_rest, log_softmax
from bayesgen.posterior.drawn import DrawnPosterior, effective_sample_size, log_densities
from bayesgen.posterior.exact import ExactPosterior

if TYPE_CHECKING:
    import xarray as xr

NUTS, INDEPENDENT = "NUTS", "independent draws"
# each is computed from those before it: the first that is wrong is where to look
STAGES = (
    "parameters",
    "densities",
    "probabilities",
    "intervals",
    "plug-in estimates",
    "explanations",
    "simulated rows",
    "leave-one-out",
    "merged statistics",
)
(
    PARAMETERS,
    DENSITIES,
    PROBABILITIES,
    INTERVALS,
    ESTIMATES,
    EXPLANATIONS,
    SIMULATED,
    LEFT_OUT,
    MERGED,
) = STAGES
_INTERVAL_DRAWS = 20_000  # of the intervals that are compared: their error hides little
_SOUND = 1 / 3  # of the draws an estimate of p(x | D) must rest on: else its error is not Normal
_NEGLIGIBLE = 20.0  # nats below the largest log density of a row
_PROB = 0.9  # of intervals
_TAIL = (1 - _PROB) / 2
_SCORE_STEP = 1e-4

Theta = dict[str, Array]


class _Part(NamedTuple):
    variable: str
    labels: list[str]
    agreement: Agreement
    r_hat: Array  # (K, 2) R-hat and its limit
    source: str
    stage: str
    unit: str


class Comparisons:
    """Numbers from draws beside those of the closed form."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def add(
        self,
        variable: str,
        labels: list[str],
        agreement: Agreement,
        stage: str,
        r_hats: Array | None = None,
        source: str = NUTS,
        unit: str = "sd",
    ) -> None:
        """Add K comparisons under one name; those that are NaN throughout are left out.

        `r_hats` (K, 2) are R-hat and its limit, `unit` that of the agreement's error of the mean.
        """
        used = np.flatnonzero(~np.isnan(agreement.z).all(axis=1))
        if used.size:
            r = np.full((len(labels), 2), np.nan) if r_hats is None else r_hats
            kept = Agreement(*(field[used] for field in agreement))
            names = [labels[k] for k in used]
            self._parts.append(_Part(variable, names, kept, r[used], source, stage, unit))

    def dataset(self) -> "xr.Dataset":
        """dims (check, statistic), as in `Validation.checks`."""
        import xarray as xr

        check, both = ("check",), ("check", "statistic")
        parts = self._parts
        fields = zip(*(p.agreement for p in parts), strict=True)
        joined = Agreement(*(np.concatenate(field) for field in fields))
        words = {
            name: (check, np.array([getattr(p, name) for p in parts for _ in p.labels], dtype=str))
            for name in ("variable", "source", "stage", "unit")
        }
        r_hats = np.concatenate([p.r_hat for p in parts])
        return xr.Dataset(
            {
                "nuts": (both, joined.chain),
                "closed_form": (both, joined.reference),
                "z": (both, joined.z),
                "error": (both, joined.error),
                "slack": (check, joined.slack),
                "ess": (check, joined.ess),
                "r_hat": (check, r_hats[:, 0]),
                "r_hat_limit": (check, r_hats[:, 1]),
            }
            | words,
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
        """Score all rows."""
        n_classes = theta[CLASS_WEIGHTS].shape[-1]
        blocks = [f for _, f in log_densities(family, theta, rows, n_classes)]
        density = np.concatenate(blocks, axis=2)
        return cls(theta, density, density + np.log(theta[CLASS_WEIGHTS])[..., None, :])

    def flat(self, name: str) -> Array:
        """Return (chain * draw, K) elements of a parameter."""
        value = self.theta[name]
        return value.reshape(value.shape[0] * value.shape[1], -1)


def distributions(
    into: Comparisons,
    fitted,
    chain: Draws,
    reference: Draws,
    places: list[str],
    false_alarm: float,
) -> None:
    """Parameters, densities and log-odds of NUTS and of independent draws."""
    compared: list[tuple[str, list[str], str, Array, Array]] = []
    for name, value in chain.theta.items():
        mine, other = (elements(fitted, name, v) for v in (value, reference.theta[name]))
        compared.append((name, element_labels(fitted, name), PARAMETERS, mine, other))
    density = chain.log_density, reference.log_density
    compared.append(("log p(x | theta)", places, DENSITIES, *density))
    if len(fitted.classes_) > 1:
        odds = against_rest(chain.log_joint), against_rest(reference.log_joint)
        compared.append(("log odds of y | x, theta", places, PROBABILITIES, *odds))
    n_compared = sum(len(labels) for _, labels, *_ in compared)
    for name, labels, stage, mine, other in compared:
        mine = mine.reshape(*mine.shape[:2], -1)
        other = other.reshape(other.shape[0] * other.shape[1], -1)
        r_hats = np.stack([r_hat(mine), r_hat_limit(mine, false_alarm, n_compared)], axis=1)
        into.add(name, labels, compare(mine, other), stage, r_hats)


def against_rest(joint: Array) -> Array:
    """Return (..., C) log-odds of each class against the rest, from log joint densities (..., C).

    A probability rounds to 1 and its odds do not: draws that differ stay different.
    """
    return np.moveaxis(log_odds_against_rest(np.moveaxis(joint, -1, 0)), 0, -1)


def predictive(into: Comparisons, fitted, chain: Theta, rows: Array, places: list[str]) -> None:
    """Exact densities and probabilities of rows, and their estimates where those are sound."""
    posterior: ExactPosterior = fitted.fitted_.posterior
    estimated = DrawnPosterior(posterior.prior, posterior.model, posterior.stats, chain).estimate(
        rows
    )
    joint = posterior.log_joint(rows)
    n_draws = chain[CLASS_WEIGHTS].shape[0] * chain[CLASS_WEIGHTS].shape[1]
    sound = estimated.weight_ess >= _SOUND * n_draws
    # the error of the log of a mean, to first order
    error = np.sqrt(np.maximum(1 / np.maximum(estimated.weight_ess, 1.0) - 1 / n_draws, 0.0))
    # a class that matters nowhere, were its density even as large as it may be, does no harm
    top = estimated.log_joint.max(axis=1, keepdims=True)
    harmless = sound | (estimated.upper < top - _NEGLIGIBLE)
    pairs = {
        "log p(x, y | D)": (DENSITIES, "nats", estimated.log_joint, joint, error, sound),
        "p(y | x, D)": (
            PROBABILITIES,
            "probability",
            estimated.probability,
            np.exp(log_softmax(joint)),
            estimated.mcse,
            sound & harmless.all(axis=1, keepdims=True) & (estimated.mcse > 1e-7),
        ),
    }
    for name, (stage, unit, mine, exact, mcse, usable) in pairs.items():
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.where(usable & (mcse > 0), (mine - exact) / mcse, np.nan)
        agreement = Agreement.of(estimated.weight_ess, mean=(mine, exact, z, mcse))
        into.add(name, places, agreement, stage, unit=unit)


def elements(fitted, name: str, value: Array) -> Array:
    """Return (..., K) the elements of a parameter (..., *dims) that rows say anything of.

    Not those of ignored columns, nor of categories that do not exist.
    """
    lead = np.ndim(value) - len(fitted.model_.params[name])
    dims, value = by_cell(fitted.model_.params[name], value, fitted.fitted_.coords)
    used = _live(fitted.model_.family, dims, value.shape[lead:])
    return value.reshape(*value.shape[:lead], -1)[..., used]


def element_labels(fitted, name: str) -> list[str]:
    """``mu[setosa, x0]`` for each of the `elements`, in their order."""
    variable = fitted.posterior_["posterior"][name]
    dims = variable.dims[2:]
    axes = [variable[d].values if d in variable.coords else range(variable.sizes[d]) for d in dims]
    used = _live(fitted.model_.family, dims, variable.shape[2:])
    if not axes:
        return [name]
    every = [f"{name}[{', '.join(map(str, index))}]" for index in itertools.product(*axes)]
    return [every[k] for k in used]


def _live(family: ConjugateFamily, dims: tuple[Any, ...], shape: tuple[int, ...]) -> Array:
    """Positions of the elements that do not belong to ignored columns."""
    varies = np.ones(shape, dtype=bool)
    ignored = getattr(family, "ignored", None)
    if ignored is not None:
        for axis, dim in enumerate(dims):
            if dim in (FEATURE, FEATURE_BIS):
                np.moveaxis(varies, axis, -1)[..., np.asarray(ignored, dtype=bool)] = False
    return np.flatnonzero(varies)


# ------------------------------------------------------------------------------- intervals


def add_coverage(
    into: Comparisons,
    fitted,
    X,
    odds: dict[str, Array],
    places: list[str],
) -> None:
    """Compare the tails of ``predict_interval`` with the share of draws in them.

    Intervals with equal tails at both ends, shortest ones as a whole. The ends are compared as
    log-odds, which tell probabilities apart that round to 1.

    Parameters
    ----------
    fitted : GenerativeClassifier
    X : N rows, as its methods take them
    odds : {source: (chain, draw, N, C)}
        Draws of the log-odds of each class.
    places : N * C words
    """
    for kind in ("eti", "hdi"):
        intervals = fitted.predict_interval(X, prob=_PROB, kind=kind, draws=_INTERVAL_DRAWS)
        ends = intervals["log_odds"].transpose("obs_id", "class", "bound").values
        error = intervals["error"].values[:, None] * np.ones(ends.shape[1])
        for source, draws in odds.items():
            below, above = (
                _beyond(sign * draws, sign * ends[..., k]) for k, sign in ((0, 1), (1, -1))
            )
            parts = {"q05": (below, _TAIL, 1.0), "q95": (above, _TAIL, 1.0)}
            if kind == "hdi":
                parts = {"mean": (1 - below - above, _PROB, 2.0)}
            compared = {}
            for statistic, (series, share, n_ends) in parts.items():
                slack = n_ends * error
                mean, z, se, ess = _share(series, share, slack, source != NUTS)
                z[~np.isfinite(ends).all(axis=-1)] = np.nan
                compared[statistic] = mean, share, z, se
            name = f"{100 * _PROB:.0f} % interval, {kind}" + f", {source}" * (source != NUTS)
            intervals = Agreement.of(ess, slack, **compared)
            into.add(name, places, intervals, INTERVALS, source=source, unit="probability")


def _beyond(draws: Array, ends: Array) -> Array:
    """Return (chain, draw, N, C) 1 where a draw is below the end, 1/2 where it equals it."""
    return (draws < ends) + 0.5 * (draws == ends)


def _share(
    series: Array, share: float, error: Array, independent: bool
) -> tuple[Array, Array, Array, Array]:
    """Mean over draws, its z-score against `share`, the error of that, its draws; (N, C) each.

    `error` of the interval itself is a bound by one route and a standard error by another: it is
    taken for both.
    """
    n = series.shape[0] * series.shape[1]
    ess = np.full(series.shape[2:], float(n))
    if not independent:
        ess = np.minimum(effective_sample_size(np.moveaxis(series, (0, 1), (-2, -1))), n)
    mean = series.mean(axis=(0, 1))
    gap = mean - share
    beyond = np.sign(gap) * np.maximum(np.abs(gap) - error, 0.0)
    se = np.sqrt(share * (1 - share) / ess + error**2)
    return mean, beyond / se, se, ess


# ------------------------------------------------------------------- the score of covariances


def covariances(family: ConjugateFamily) -> list[str]:
    """Names of the parameters that are matrices over the features."""
    return [
        name
        for name, dims in family.params.items()
        if len(dims) > 1 and dims[-1].endswith(FEATURE_BIS) and dims[-2].endswith(FEATURE)
    ]


def off_diagonal_score(family: ConjugateFamily, theta: dict[str, Array], name: str) -> Array:
    """Return (S,) the score of each draw, the off-diagonals of all classes scaled at once.

    Parameters
    ----------
    theta : {name: (S, *dims)}
    """
    density = require(family, ThetaDensity, "the score of draws")
    value = theta[name]
    n_features = value.shape[-1]
    off = value * (1 - np.eye(n_features))
    ahead, behind = (
        density.log_density(theta | {name: value + sign * _SCORE_STEP * off}) for sign in (1, -1)
    )
    # columns that no density looks at do not count
    one = {k: np.repeat(v[:1], n_features, axis=0) for k, v in theta.items()}
    cross = np.eye(n_features)[:, :, None] + np.eye(n_features)[:, None, :]  # row and column j
    cross = cross.reshape(n_features, *[1] * (value.ndim - 3), n_features, n_features)
    moved = density.log_density(
        one | {name: one[name] + _SCORE_STEP * cross * np.repeat(off[:1], n_features, 0)}
    )
    seen = int((moved != density.log_density(one)).sum())
    n_matrices = value[0].size // n_features**2
    return (ahead - behind) / (2 * _SCORE_STEP) + n_matrices * seen * (seen - 1) / 2
