"""The closed form against NUTS on the same prior and the same rows.

NUTS knows the prior, the likelihood and PyMC; nothing of the closed form's algebra. What is
compared:

- every parameter, and for some rows log p(x | theta_c) and the log-odds of y given x and theta:
  their distributions over draws (`agreement`);
- the exact predictive densities and p(y | x, D) with their estimates from the draws of NUTS;
- the densities with each other, without a sampler (`coherence`): an error of the closed form that
  is too small for a sampler to see on many rows shows there to many digits.
"""

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils.validation import column_or_1d

from bayesgen.checks.agreement import STATISTICS, Agreement, compare
from bayesgen.checks.coherence import contradictions, unchecked
from bayesgen.datatree.tree import read_draws
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.names import CLASS_WEIGHTS, FEATURE, FEATURE_BIS
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp
from bayesgen.posterior.monte_carlo import log_densities
from bayesgen.predict.probabilities import log_joint, monte_carlo

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_REFERENCE = 20_000  # independent draws from the closed form, fewer where theta is large
_NUMBERS = 1 << 26  # of the reference: 512 MB
_ROWS = 20  # whose densities and probabilities are compared
_R_HAT = 1.01
_FEWEST = 100.0  # effective draws of the worst quantity, below which nothing is concluded
_SOUND = 1 / 3  # of the draws an estimate of p(x | D) must rest on: else its error is not Normal
_NEGLIGIBLE = 20.0  # nats below the largest log density of a row


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
        What was found, if the verdict is another one; and what could not be checked.
    checks : xarray.Dataset
        dims (check, statistic): ``nuts``, ``closed_form``, ``z``; (check,) ``ess``, ``r_hat``,
        ``variable``. The same as the group ``validation`` of `tree`.
    threshold : float
        |z| that the largest of all z-scores exceeds with probability `false_alarm`, or less, if
        the closed form is right (Bonferroni).
    false_alarm : float
    tree : xarray.DataTree
        Draws of NUTS, as from ``sample_posterior``, with the group ``validation``.
    """

    verdict: str
    reasons: tuple[str, ...]
    checks: "xr.Dataset"
    threshold: float
    false_alarm: float
    tree: "xr.DataTree"

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
            f"verdict: {self.verdict}",
            *(f"- {reason}" for reason in self.reasons),
        ]
        return "\n".join(lines)


def validate(
    clf: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    X_test: Any = None,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    random_seed: int = 0,
    sampler: str = "nutpie",
    false_alarm: float = 0.01,
    progressbar: bool = True,
    **options: Any,
) -> Validation:
    """Check a classifier's closed form against NUTS on the same prior and rows.

    Parameters
    ----------
    clf : GenerativeClassifier
        Is cloned and fitted to the rows; stays as it is.
    X, y, sample_weight
        Training rows. Few are better than many: against many rows a wrong pseudo-count is small.
    X_test : (N, D), optional
        Rows whose densities and class probabilities are compared, at most 20 of them, evenly
        spaced. Default: of X.
    draws, tune, chains, random_seed, sampler, progressbar, **options
        As in ``sample_posterior``.
    false_alarm : float
        Probability of the verdict "disagree" on a closed form that is right.

    Returns
    -------
    Validation

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = [[0.1], [0.5], [0.4], [2.0], [2.6]], [0, 0, 0, 1, 1]
    >>> result = bg.validate(bg.GaussianNB(), X, y, progressbar=False)  # doctest: +SKIP
    >>> result.passed  # doctest: +SKIP
    True
    """
    from time import perf_counter

    if not 0 < false_alarm < 1:
        raise ValueError(f"false_alarm must be between 0 and 1, got {false_alarm!r}")
    fitted = clone(clf).fit(X, y, sample_weight=sample_weight)
    start = perf_counter()
    tree = fitted.sample_posterior(
        draws,
        tune,
        chains,
        random_seed,
        sampler,
        groups=(),
        progressbar=progressbar,
        **options,
    )
    seconds = perf_counter() - start
    rows = _encoded(fitted, X if X_test is None else X_test)
    rows = rows[np.unique(np.linspace(0, rows.shape[0] - 1, _ROWS).astype(int))]
    names, agreement, r_hat = _compared(fitted, tree, rows, np.random.default_rng(random_seed))
    checks = _dataset(names, agreement, r_hat)
    divergences = int(tree["sample_stats"]["diverging"].sum())
    comparisons = int(np.isfinite(checks["z"].values).sum())
    checks.attrs |= {
        "estimator": type(fitted).__name__,
        "chains": chains,
        "draws": draws,
        "divergences": divergences,
        "seconds": seconds,
        "comparisons": comparisons,
    }
    threshold = float(norm.isf(false_alarm / (2 * max(1, comparisons))))
    codes = fitted._codes_of(column_or_1d(y))
    broken = contradictions(
        fitted.prior_,
        fitted.model_,
        fitted.stats_,
        _encoded(fitted, X),
        codes,
        sample_weight,
        fitted.classes_.tolist(),
    )
    verdict, reasons = _verdict(checks, threshold, divergences, broken)
    reasons = (*reasons, *unchecked(fitted.model_.family))
    checks.attrs |= {"verdict": verdict, "threshold": threshold, "false_alarm": false_alarm}
    tree["validation"] = checks
    return Validation(verdict, reasons, checks, threshold, false_alarm, tree)


def _encoded(fitted: Any, X: Any) -> Any:
    return fitted._encode(fitted._read(X, reset=False))


def _compared(
    fitted: Any, tree: "xr.DataTree", rows: Array, rng: np.random.Generator
) -> tuple[dict[str, list[str]], Agreement, Array]:
    """Names by variable, agreement and R-hat of every quantity."""
    model = fitted.model_
    chain = read_draws(tree, model.params, fitted._coords())
    n = int(max(2000, min(_REFERENCE, _NUMBERS // model.family.n_parameters())))
    reference = model.draw(rng, n)
    names: dict[str, list[str]] = {}
    parts: list[Agreement] = []
    r_hats: list[Array] = []

    def add(name: str, labels: list[str], mine: Array, other: Array) -> None:
        names[name] = labels
        parts.append(compare(mine, other))
        r_hats.append(_r_hat(mine))

    for name, value in chain.items():
        labels = _labels(name, fitted.posterior_["posterior"][name])
        used = np.flatnonzero(_live(model.family, model.params[name], value.shape[2:]))
        mine, other = value.reshape(*value.shape[:2], -1), reference[name].reshape(n, -1)
        add(name, [labels[k] for k in used], mine[..., used], other[:, used])
    places = [f"row {i}, {c}" for i in range(rows.shape[0]) for c in fitted.classes_]
    ours = {k: v[None] for k, v in reference.items()}
    density, expected = (_densities(model.family, t, rows) for t in (chain, ours))
    flat = expected.reshape(n, -1)
    add("log p(x | theta)", places, density.reshape(*density.shape[:2], -1), flat)
    if len(fitted.classes_) > 1:
        odds = [
            log_odds(f + np.log(t[CLASS_WEIGHTS])[..., None, :])
            for f, t in ((density, chain), (expected, ours))
        ]
        mine, other = odds[0].reshape(*density.shape[:2], -1), odds[1].reshape(n, -1)
        add("log odds of y | x, theta", places, mine, other)
    for name, agreement in _predictive(fitted, chain, rows).items():
        if np.isnan(agreement.z).all():
            continue  # nowhere do the draws tell enough
        names[name] = places
        parts.append(agreement)
        r_hats.append(np.full(len(places), np.nan))
    joined = Agreement(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    return names, joined, np.concatenate(r_hats)


def log_odds(joint: Array) -> Array:
    """(..., C) log-odds of each class against the rest, from log joint densities (..., C).

    A probability rounds to 1 and its odds do not: draws that differ stay different.
    """
    out = np.empty(joint.shape)
    for c in range(joint.shape[-1]):
        out[..., c] = joint[..., c] - log_sum_exp(np.delete(joint, c, axis=-1))
    return out


def _densities(family: ConjugateFamily, theta: dict[str, Array], rows: Array) -> Array:
    """(chain, draw, N, C) log p(x_i | theta_c)."""
    n_classes = theta[CLASS_WEIGHTS].shape[-1]
    return np.concatenate([f for _, f in log_densities(family, theta, rows, n_classes)], axis=2)


def _predictive(fitted: Any, chain: dict[str, Array], rows: Array) -> dict[str, Agreement]:
    """Exact densities and probabilities of rows, and their estimates where those are sound."""
    estimated = monte_carlo(fitted.model_, chain, rows)
    joint = log_joint(fitted.model_, fitted.stats_, rows)
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
    out = {}
    for name, (mine, exact, mcse, usable) in pairs.items():
        table = np.full((3, exact.size, len(STATISTICS)), np.nan)
        table[0, :, 0], table[1, :, 0] = mine.ravel(), exact.ravel()
        with np.errstate(invalid="ignore", divide="ignore"):
            table[2, :, 0] = np.where(usable & (mcse > 0), (mine - exact) / mcse, np.nan).ravel()
        out[name] = Agreement(table[0], table[1], table[2], estimated.weight_ess.ravel())
    return out


def _labels(name: str, variable: "xr.DataArray") -> list[str]:
    """``mu[setosa, x0]`` for each element, in the order of the array."""
    dims = variable.dims[2:]
    axes = [variable[d].values if d in variable.coords else range(variable.sizes[d]) for d in dims]
    if not axes:
        return [name]
    return [f"{name}[{', '.join(map(str, at))}]" for at in itertools.product(*axes)]


def _live(family: ConjugateFamily, dims: tuple[str, ...], shape: tuple[int, ...]) -> Array:
    """Which elements of a parameter rows say anything about: not those of ignored columns."""
    out = np.ones(shape, dtype=bool)
    ignored = getattr(family, "ignored", None)
    if ignored is not None:
        for axis, dim in enumerate(dims):
            if dim in (FEATURE, FEATURE_BIS):
                np.moveaxis(out, axis, -1)[..., np.asarray(ignored, dtype=bool)] = False
    return out


def _r_hat(series: Array) -> Array:
    """(K,) rank-normalised split R-hat of (chain, draw, K); NaN for a constant."""
    import arviz as az
    import xarray as xr

    out = np.full(series.shape[-1], np.nan)
    moving = np.flatnonzero((series != series[:1, :1]).any(axis=(0, 1)))
    if moving.size:
        data = xr.Dataset({"q": (("chain", "draw", "k"), series[..., moving])})
        out[moving] = az.rhat(data)["q"].values
    return out


def _dataset(names: dict[str, list[str]], agreement: Agreement, r_hat: Array) -> "xr.Dataset":
    import xarray as xr

    check, both = ("check",), ("check", "statistic")
    variables = [name for name, labels in names.items() for _ in labels]
    return xr.Dataset(
        {
            "nuts": (both, agreement.chain),
            "closed_form": (both, agreement.reference),
            "z": (both, agreement.z),
            "ess": (check, agreement.ess),
            "r_hat": (check, r_hat),
            "variable": (check, np.array(variables, dtype=str)),
        },
        {
            "check": np.array([label for labels in names.values() for label in labels], dtype=str),
            "statistic": np.array(STATISTICS),
        },
    )


def _verdict(
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
    if z.max() > threshold:
        k, s = np.unravel_index(z.argmax(), z.shape)
        place, statistic = checks["check"].values[k], checks["statistic"].values[s]
        if checks["variable"].values[k] not in place:
            place = f"{checks['variable'].values[k]}, {place}"
        reasons.append(
            f"{statistic} of {place}: {float(checks['nuts'][k, s]):.6g} by NUTS, "
            f"{float(checks['closed_form'][k, s]):.6g} in closed form (|z| = {z.max():.1f}); "
            f"{int((z > threshold).sum())} of {z.size} comparisons are beyond {threshold:.2f}"
        )
    if broken or (z.max() > threshold and not trouble):
        return "disagree", tuple(reasons)
    if trouble and (z.max() > threshold or r_hat > _R_HAT or ess < _FEWEST):
        advice = "sample longer (draws, tune) or with a larger target_accept"
        return "inconclusive", (*reasons, *trouble, advice)
    return "agree", ()


def _own(checks: "xr.Dataset") -> Array:
    """Which checks compare distributions: those with an R-hat."""
    return ~np.isnan(checks["r_hat"].values)


def _largest(values: Array) -> float:
    finite = values[~np.isnan(values)]
    return float(finite.max()) if finite.size else float("nan")
