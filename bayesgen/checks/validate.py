"""The closed form against NUTS on the same prior and the same rows.

NUTS uses the prior and the likelihood in PyMC, and none of the closed form's algebra. The
comparison has these parts:

- every parameter, and for some rows log p(x | theta_c) and the log-odds of y given x and theta:
  their distributions over draws (`agreement`);
- with draws of NUTS or independent ones (`quantities`): predictive densities and p(y | x, D), class
  weights, the posterior probability of credible intervals,
  mean log-odds that `explain` divides, rows that `simulate` makes, covariances; expectations
  (`plug_ins`);
- without a sampler (`coherence`): the densities with each other, the evidence by the chain rule,
  leave-one-out and typicality by refits, merged halves, contributions. An error of the closed form
  that is too small for a sampler to see on many rows shows there to many digits. So do the maxima
  of the likelihood and of the posterior density, and the class weights (`plug_ins`).

Quantities stand in the order in which each is computed from those before it (`STAGES`). Where
several disagree, the first is named first: it may be the cause of all others.
"""

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from bayesgen.checks import coherence, plug_ins, quantities
from bayesgen.checks.agreement import STATISTICS, compare_mean
from bayesgen.checks.check_family import contradiction_with_graph
from bayesgen.checks.coherence import contradictions
from bayesgen.checks.quantities import (
    DENSITIES,
    ESTIMATES,
    EXPLANATIONS,
    INDEPENDENT,
    LEFT_OUT,
    MERGED,
    NUTS,
    PARAMETERS,
    PROBABILITIES,
    SIMULATED,
    STAGES,
    Comparisons,
    Draws,
)
from bayesgen.datatree.tree import read_draws
from bayesgen.errors import warn
from bayesgen.families.capabilities import ThetaDensity
from bayesgen.families.errors import MissingCapabilityError, NoClosedFormError
from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.inference.nuts import SamplingWarning
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.fitted import is_pool, refuse_others

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import xarray as xr

__all__ = ["Validation", "validate"]

_REFERENCE = 20_000  # independent draws from the closed form, fewer where theta is large
_NUMBERS = 1 << 26  # of the reference: 512 MB
_SCORES = 30_000  # draws of covariances, of which only densities are kept
_ROWS = 20  # whose densities and probabilities are compared
_FEW_ROWS = 5  # whose intervals are
_SIMULATED, _CELLS = 100_000, 1 << 22  # simulated rows of a class, and their cells, at most
_FEWEST_MADE = 1000  # fewer of them tell nothing
_R_HAT = 1.01  # or what chance reaches, where that is more
_IDENTITY = "identity"  # of a quantity that is compared without draws
_SEEN = 0.9  # probability with which the printed errors are seen
_FEWEST = 100.0  # effective draws of the worst quantity, below which nothing is concluded
_DIGITS = {"numbers": 0, "ESS": 0, "R-hat": 3}
_ENDS = "label", "against"  # of log-odds that are explained


NOT_CHECKED = (
    "not checked: whether the model fits the rows; clf.summary() has the log loss of the labels "
    "without their rows, and bg.compare_models that of other models"
)


class Identity(NamedTuple):
    """What was compared to many digits; what is wrong with it; why it could not be compared."""

    stage: str
    what: str
    wrong: tuple[str, ...] = ()
    skipped: str = ""


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
        The findings, if the verdict is another one. The quantity from which others are computed
        comes before them.
    checks : xarray.Dataset
        dims (check, statistic): ``nuts``, ``closed_form``, ``z``, ``error`` (standard error of the
        comparison: of a mean in ``unit``, of a standard deviation relative, of a quantile in
        probability); (check,) ``stage``, ``variable``, ``unit``, ``ess``, ``slack`` (difference
        that counts as none), ``r_hat`` and ``r_hat_limit``; ``source`` of the draws behind
        ``nuts``, which is "NUTS" or, where the closed form is compared with itself, "independent
        draws". The same as the group ``validation`` of `tree`.
    threshold : float
        |z| that the largest of all z-scores exceeds with probability `false_alarm`, or less, if
        the closed form is right (Bonferroni).
    false_alarm : float
    tree : xarray.DataTree
        Draws of NUTS in the form of ``sample_posterior``, with the group ``validation``.
    identities : tuple of Identity
        Quantities compared without draws: ``stage``, ``what``, ``wrong``, ``skipped``.
    not_compared : tuple of str
        Quantities that could not be compared, with the reason.
    exact : tuple of str
        Names of `identities` that were compared; they cannot be a false alarm.
    """

    verdict: str
    reasons: tuple[str, ...]
    checks: "xr.Dataset"
    threshold: float
    false_alarm: float
    tree: "xr.DataTree"
    identities: tuple[Identity, ...] = ()
    not_compared: tuple[str, ...] = ()

    @property
    def exact(self) -> tuple[str, ...]:
        """Quantities compared to many digits."""
        return tuple(one.what for one in self.identities if not one.skipped)

    @property
    def passed(self) -> bool:
        """True if closed form and NUTS agree."""
        return self.verdict == "agree"

    @property
    def largest_z(self) -> float:
        """Largest |z| of all comparisons."""
        return float(np.nanmax(np.abs(self.checks["z"].values)))

    def summary(self) -> "pd.DataFrame":
        """Return a line per variable: number of elements, largest |z| by statistic, R-hat, ESS."""
        import pandas as pd

        lines = {}
        for name, group in self._by_variable():
            z = np.abs(group["z"].values)
            quantiles = z[:, 2:]
            lines[name] = {
                "numbers": len(z),
                "mean |z|": _largest(z[:, 0]),
                "sd |z|": _largest(z[:, 1]),
                "quantile |z|": _largest(quantiles),
                "R-hat": _largest(group["r_hat"].values),
                "ESS": float(np.min(group["ess"].values)),
            }
        return pd.DataFrame.from_dict(lines, orient="index")

    def failed(self) -> "pd.DataFrame":
        """Return a line per comparison that disagrees; `plots.plot_validation` draws all of them.

        Returns
        -------
        pandas.DataFrame
            ``stage``, ``variable``, ``check``, ``statistic``, ``source``, ``nuts``,
            ``closed_form``, ``z``: |z| beyond `threshold`, and identities that do not hold (without
            numbers, and with their words as ``check``). Earlier stages first: later ones are
            computed from them. Within a stage, the largest |z| first. Empty if all agree.
        """
        import pandas as pd

        lines = [
            (one.stage, one.what, words, _IDENTITY, _IDENTITY, np.nan, np.nan, np.nan)
            for one in self.identities
            for words in one.wrong
        ]
        checks = self.checks
        words = [checks[k].values for k in ("stage", "variable", "check", "source")]
        for k, s in np.argwhere(np.abs(checks["z"].values) > self.threshold):
            stage, variable, check, source = (values[k] for values in words)
            numbers = (float(checks[name][k, s]) for name in ("nuts", "closed_form", "z"))
            lines.append((stage, variable, check, STATISTICS[s], source, *numbers))
        order = {stage: i for i, stage in enumerate(STAGES)}
        lines.sort(key=lambda line: (order[line[0]], -np.nan_to_num(abs(line[-1]), nan=np.inf)))
        names = ("stage", "variable", "check", "statistic", "source", "nuts", "closed_form", "z")
        return pd.DataFrame(lines, columns=names)

    def power(self, probability: float = _SEEN) -> "pd.DataFrame":
        """Return the size of an error that each variable's comparison would have seen.

        Parameters
        ----------
        probability : float
            With which the error is seen, in any one element of the variable.

        Returns
        -------
        pandas.DataFrame
            A line per variable: ``stage``; ``shift``, the smallest one that is seen in every
            element; ``unit``: "sd", standard deviations of the draws, of a shift of all of them;
            "nats" of a log density; "probability", of p(y | x, D) or of the draws in an interval.

        Notes
        -----
        The threshold plus a Normal quantile, times the standard error of the comparison. It is
        that of one comparison alone: an error that moves several quantities is seen sooner. In
        "sd" it holds for a Normal quantity, and is an upper bound for others (Chernoff and
        Savage, 1958). Draws of NUTS that cannot be trusted see nothing.
        """
        import pandas as pd

        if not 0 < probability < 1:
            raise ValueError(f"probability must be between 0 and 1, got {probability!r}")
        lines = {}
        for name, group in self._by_variable():
            error = np.where(np.isnan(group["z"].values), np.nan, group["error"].values)
            error = error[:, :1] if np.isfinite(error[:, 0]).any() else error
            seen = (self.threshold + norm.ppf(probability)) * error
            lines[name] = {
                "stage": str(group["stage"].values[0]),
                "shift": _largest(group["slack"].values[:, None] + seen),
                "unit": str(group["unit"].values[0]),
            }
        return pd.DataFrame.from_dict(lines, orient="index")

    def _by_variable(self) -> "Iterator[tuple[str, xr.Dataset]]":
        variable = self.checks["variable"].values
        for name in dict.fromkeys(variable.tolist()):
            yield name, self.checks.isel(check=np.flatnonzero(variable == name))

    def remarks(self) -> tuple[str, ...]:
        """Sentences below the table: the largest |z| and R-hat, what was seen, what was not."""
        attrs, checks = self.checks.attrs, self.checks
        r_hat, limit = checks["r_hat"].values, checks["r_hat_limit"].values
        sentences = [
            f"Largest |z| {self.largest_z:.2f} of {attrs['comparisons']} comparisons; beyond "
            f"{self.threshold:.2f} with probability {self.false_alarm:g} if both are right."
        ]
        if (defined := ~np.isnan(r_hat)).any():
            worst = np.nanargmax(r_hat)
            sentences.append(
                f"Largest R-hat {r_hat[worst]:.3f} of {defined.sum()} quantities; beyond "
                f"{limit[worst]:.3f} by chance with probability {self.false_alarm:g}; at most "
                f"{_R_HAT}, or that, is wanted."
            )
        power = self.power()
        seen = power.groupby(["stage", "unit"], sort=False)["shift"].max()
        words: dict[str, list[str]] = {}
        for (stage, unit), shift in seen.items():
            words.setdefault(stage, []).append(f"{shift:.2g} {unit}")
        stages = "; ".join(f"{stage} {', '.join(sizes)}" for stage, sizes in words.items())
        sentences.append(f"Shifts that are seen with probability {_SEEN:g}, or sooner: {stages}.")
        if self.exact:
            sentences.append(f"Compared to many digits: {', '.join(self.exact)}.")
        return (*sentences, *(f"Not compared: {what}." for what in self.not_compared))

    def __str__(self) -> str:
        attrs = self.checks.attrs
        lines = [
            f"{attrs['estimator']}: closed form against NUTS "
            f"({attrs['chains']} x {attrs['draws']} draws, {attrs['divergences']} divergences, "
            f"{attrs['seconds']:.1f} s)",
            as_text(self.summary()).to_string(),
            *self.remarks(),
            f"verdict: {self.verdict}",
            *(f"- {reason}" for reason in self.reasons),
            NOT_CHECKED,
        ]
        return "\n".join(lines)


def as_text(summary: "pd.DataFrame") -> "pd.DataFrame":
    """`Validation.summary` to the digits that are known; "" where there is no number."""
    table = summary.astype(object)
    for name in table:
        form = f"{{:.{_DIGITS.get(str(name), 2)}f}}".format
        table[name] = ["" if value != value else form(value) for value in table[name]]
    return table


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
    random_state: int = 0,
    nuts_sampler: str = "nutpie",
    false_alarm: float = 0.01,
    progressbar: bool = True,
    **options: Any,
) -> Validation:
    """Check a classifier's closed form against NUTS on the same prior and rows.

    The draws check parameters, densities and class probabilities of rows, their intervals, and rows
    of `simulate`. These are compared to many digits, on some of the rows: the evidence;
    `loo_log_joint` and `typicality` with fits without the row; merged halves with the whole; sums
    of contributions; estimates by ``"mle"`` and ``"map"``.

    *Not* checked are prediction sets, `predict_uncertainty`, mutual
    information, label shift, files and streams, and the model itself. `bg.compare_models` and
    predictive checks show whether the model fits the rows.

    Parameters
    ----------
    clf : GenerativeClassifier
        Fitted or not: a clone is fitted to the rows. For a pool its members are checked.
    X, y, sample_weight
        Training rows. Use few: with many rows a wrong pseudo-count has a small effect.
    X_test : (N, D), optional
        Rows whose densities and class probabilities are compared, at most 20 of them, evenly
        spaced. Default: of X.
    draws, tune, chains, random_state, nuts_sampler, progressbar, **options
        Options of NUTS: see ``sample_posterior``.
    false_alarm : float
        Probability of the verdict "disagree" on a closed form that is right; and of an R-hat beyond
        its limit, if the chains have mixed.

    Returns
    -------
    Validation
        The verdict, the comparisons, and quantities that could not be compared. ``failed()`` is the
        table of those that disagree, in the order in which each is computed from those before it;
        ``power()`` is the size of the errors that would have been seen; `plots.plot_validation`
        draws all. Of a pool {name: Validation} of the members that can be checked; a warning names
        the others.

    Raises
    ------
    NoClosedFormError
        If there is no closed form, for example for a classifier that is fitted by NUTS.
    NotImplementedError
        If the PyMC model has other variables than the posterior (averages over structures).

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
    refuse_others(clf, "validate")
    if is_pool(clf):
        options |= {"draws": draws, "tune": tune, "chains": chains, "random_state": random_state}
        options |= {"nuts_sampler": nuts_sampler, "progressbar": progressbar}
        options["false_alarm"] = false_alarm
        # the base of scikit-learn has no types, so that no overload could tell pools apart
        validation: Any = _of_members(clf, X, y, sample_weight, X_test, options)
        return validation
    if not clf.__bayesgen_learner__().family_type.conjugate:  # before it is sampled
        raise NoClosedFormError(
            f"validate compares a closed form with NUTS, and {type(clf).__name__} has none"
        )
    fitted = clone(clf).fit(X, y, sample_weight=sample_weight)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # the result says it
        tree = fitted.sample_posterior(
            draws,
            tune,
            chains,
            random_state,
            nuts_sampler,
            groups=(),
            progressbar=progressbar,
            **options,
        )
    seconds = perf_counter() - start
    data = _Data.of(fitted, X, column_or_1d(y), sample_weight)
    tested = X if X_test is None else X_test
    rng = generator(random_state)
    comparisons, skipped = _compared(fitted, tree, data, tested, rng, false_alarm)
    checks = comparisons.dataset()
    divergences = int(tree["sample_stats"]["diverging"].sum())
    n_comparisons = int(np.isfinite(checks["z"].values).sum())
    checks.attrs |= {
        "estimator": type(fitted).__name__,
        "chains": chains,
        "draws": draws,
        "divergences": divergences,
        "seconds": seconds,
        "comparisons": n_comparisons,
    }
    threshold = float(norm.isf(false_alarm / (2 * max(1, n_comparisons))))
    checks.attrs |= {"threshold": threshold, "false_alarm": false_alarm}
    tree["validation"] = checks
    identities = tuple(_exact(fitted, data))
    skipped = [*(f"{o.what}: {o.skipped}" for o in identities if o.skipped), *skipped]
    validation = Validation(
        *("", (), checks, threshold, false_alarm, tree, identities), tuple(skipped)
    )
    verdict, reasons = _verdict(validation)
    tree["validation"].attrs["verdict"] = checks.attrs["verdict"] = verdict
    return replace(validation, verdict=verdict, reasons=reasons)


def _of_members(
    pool, X, y, sample_weight, X_test, options: dict[str, Any]
) -> dict[str, Validation]:
    """`validate` of each member, on the rows as it sees them."""
    fitted = clone(pool).fit(X, y, sample_weight=sample_weight).fitted_
    seen = fitted.read(X).encoded.as_training
    tested = seen if X_test is None else fitted.read(X_test).encoded
    validations: dict[str, Validation] = {}
    for member in fitted.posterior.members:
        rows, others = seen.seen(member), tested.seen(member)
        try:
            validations[member.name] = validate(
                member.clf, rows, y, sample_weight, X_test=others, **options
            )
        except (NotImplementedError, NoClosedFormError) as error:
            warn(f"member {member.name!r} was not validated: {error}", UserWarning)
    return validations


# ------------------------------------------------------------------------------- the verdict


def _verdict(found: Validation) -> tuple[str, tuple[str, ...]]:
    """Return the verdict and what speaks for it, the most upstream quantity first."""
    checks = found.checks
    r_hat, ess = checks["r_hat"].values, float(np.min(checks["ess"].values[_own(checks)]))
    beyond = np.flatnonzero(r_hat > np.fmax(checks["r_hat_limit"].values, _R_HAT))
    divergences, trouble = checks.attrs["divergences"], []
    if beyond.size:
        worst = beyond[np.argmax(r_hat[beyond])]
        limit = max(_R_HAT, float(checks["r_hat_limit"][worst]))
        trouble.append(
            f"R-hat of {checks['check'].values[worst]} is {r_hat[worst]:.3f} (at most {limit:.3f} "
            f"is wanted; one of {np.isfinite(r_hat).sum()} quantities)"
        )
    if ess < _FEWEST:
        trouble.append(f"the worst quantity has {ess:.0f} effective draws")
    if divergences:
        trouble.append(f"{divergences} draws diverged")
    failed = found.failed()
    by_nuts = (failed["source"] == NUTS).to_numpy()
    sound = ~by_nuts if trouble else np.ones(len(failed), dtype=bool)
    # draws that cannot be trusted are no cause of anything: they come last
    reasons = [*_reasons(failed[sound], checks), *_reasons(failed[~sound], checks)]
    if sound.any():
        return "disagree", tuple(reasons)
    if trouble and (by_nuts.any() or beyond.size or ess < _FEWEST):
        advice = "sample longer (draws, tune) or with a larger target_accept"
        return "inconclusive", (*reasons, *trouble, advice)
    return "agree", ()


def _reasons(failed: "pd.DataFrame", checks: "xr.Dataset") -> list[str]:
    """Return a sentence per identity, and per stage and source of draws, in table order."""
    reasons = []
    for (stage, source), failures in failed.groupby(["stage", "source"], sort=False):
        if source == _IDENTITY:
            reasons += [f"{stage}: {words}" for words in failures["check"]]
            continue
        worst = failures.iloc[0]
        place = str(worst["check"])
        if worst["variable"] not in place:
            place = f"{worst['variable']}, {place}"
        chosen = (checks["stage"].values == stage) & (checks["source"].values == source)
        n_compared = int(np.isfinite(checks["z"].values[chosen]).sum())
        reasons.append(
            f"{stage}: {worst['statistic']} of {place}: {worst['nuts']:.6g} by {source}, "
            f"{worst['closed_form']:.6g} in closed form (|z| = {abs(worst['z']):.1f}); "
            f"{len(failures)} of {n_compared} comparisons disagree"
        )
    return reasons


def _own(checks: "xr.Dataset") -> Array:
    """Return which checks compare distributions: those with an R-hat."""
    return ~np.isnan(checks["r_hat"].values)


def _largest(values: Array) -> float:
    finite = values[~np.isnan(values)]
    return float(finite.max()) if finite.size else float("nan")


# --------------------------------------------------------------------------------- the rows


class _Data(NamedTuple):
    """Training rows, as the user and as the family has them, and the class prior."""

    X: Any
    rows: Any  # encoded
    codes: Array  # (N,)
    weight: Array  # (N,)
    alpha: Array  # (C,) the constructor's class_alpha
    n_rows: Array  # (C,) rows of each class, by weight

    @classmethod
    def of(cls, fitted, X, y: Array, sample_weight) -> "_Data":
        codes = fitted.fitted_.codes_of(y)
        weights = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        weight = np.broadcast_to(weights, codes.shape)
        n_classes = len(fitted.classes_)
        alpha = np.broadcast_to(np.asarray(fitted.class_alpha, dtype=np.float64), n_classes)
        n_rows = np.array([weight[codes == c].sum() for c in range(n_classes)])
        return cls(X, fitted.fitted_.encoded(X), codes, weight, alpha, n_rows)

    @property
    def class_weights(self) -> Array:
        """Return (C,) p(y = c | D) = (alpha_c + n_c)/(A + N)."""
        posterior: Array = self.alpha + self.n_rows
        return posterior / posterior.sum()


def _spaced(n: int, most: int) -> Array:
    """At most so many of n positions, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, most).astype(int))


# ------------------------------------------------------------------------------ with draws


def _compared(
    fitted,
    tree: "xr.DataTree",
    data: _Data,
    tested,
    rng: np.random.Generator,
    false_alarm: float,
) -> tuple[Comparisons, list[str]]:
    """Every comparison with draws, and what could not be compared."""
    model, classes = fitted.model_, fitted.classes_
    rows = fitted.fitted_.encoded(tested)
    used = _spaced(rows.shape[0], _ROWS)
    rows = rows[used]
    places = [[f"row {i}, {c}" for c in classes] for i in range(rows.shape[0])]
    every_place = [place for places_of_row in places for place in places_of_row]
    n = int(max(2000, min(_REFERENCE, _NUMBERS // model.family.n_parameters())))
    chain = Draws.of(model.family, read_draws(tree, model.params, fitted.fitted_.coords), rows)
    drawn = {name: value[None] for name, value in model.draw(rng, n).items()}
    reference = Draws.of(model.family, drawn, rows)

    comparisons, skipped = Comparisons(), []
    quantities.distributions(comparisons, fitted, chain, reference, every_place, false_alarm)
    quantities.predictive(comparisons, fitted, chain.theta, rows, every_place)
    labels = [f"p(y = {c!r})" for c in classes.tolist()]
    weights = compare_mean(chain.theta[CLASS_WEIGHTS], data.class_weights)
    comparisons.add("p(y | D)", labels, weights, PARAMETERS)
    few = _spaced(rows.shape[0], _FEW_ROWS)
    shown = [places[i] for i in few]
    if len(classes) > 1:
        joint = {
            source: draws.log_joint[:, :, few]
            for source, draws in ((NUTS, chain), (INDEPENDENT, reference))
        }
        some_rows, probabilities = (
            _safe_indexing(tested, used[few]),
            [p for of_row in shown for p in of_row],
        )
        odds = {source: quantities.against_rest(a) for source, a in joint.items()}
        quantities.add_coverage(comparisons, fitted, some_rows, odds, probabilities)
    else:
        skipped.append("credible intervals: one class has probability 1")
    skipped += _add_simulated(comparisons, fitted, data, rng)
    skipped += _add_expectations(comparisons, fitted, drawn, rng)
    skipped += _add_scores(comparisons, fitted, rng)
    return comparisons, skipped


def _add_simulated(into: Comparisons, fitted, data: _Data, rng: np.random.Generator) -> list[str]:
    """Rows that `simulate` makes, with the predictive that they are said to come from.

    The ratio of the predictive after one more row to that before it has mean 1 over rows of the
    predictive, whatever that row is: it is each class's least likely, its median and its likeliest.
    """
    model, rows = fitted.model_, data.rows
    log_p = model.family.log_predictive(rows)[np.arange(len(data.codes)), data.codes]
    n = int(min(_SIMULATED, _NUMBERS // model.family.n_parameters(), _CELLS // _cells(rows)))
    for c, label in enumerate(fitted.classes_):
        seen = np.flatnonzero(data.codes == c)
        if not len(seen) or n < _FEWEST_MADE:
            continue
        made, _ = fitted.fitted_.posterior.simulate(rng, n, np.full(n, c), False)
        before = model.family.log_predictive(made)[:, c]
        order = seen[np.argsort(log_p[seen])]
        used = np.unique(order[[0, len(order) // 2, -1]])
        ratios = []
        for i in used:
            grown = model.update(
                model.stats(rows[i : i + 1], data.codes[i : i + 1], len(model.alpha))
            )
            with np.errstate(all="ignore"):  # of a wrong closed form, which may have no density
                ratio = np.exp(grown.family.log_predictive(made)[:, c] - before)
            ratios.append(ratio if np.isfinite(ratio).all() else np.zeros(n))
        agreement = compare_mean(
            np.stack(ratios, axis=-1)[None], np.ones(len(used)), independent=True
        )
        places = [f"after row {i}, {label}" for i in used]
        name = "simulated p(x | D and a row)/p(x | D)"
        into.add(name, places, agreement, SIMULATED, source=INDEPENDENT)
    return [] if n >= _FEWEST_MADE else ["simulate: too few rows would fit into memory"]


def _cells(rows) -> int:
    """About how many numbers a row has."""
    if rows.ndim == 2:
        return max(1, rows.shape[1])
    return max(1, sum(map(len, rows)) // max(1, len(rows)))


def _add_expectations(
    into: Comparisons, fitted, drawn: dict[str, Array], rng: np.random.Generator
) -> list[str]:
    """``posterior_mean`` with the mean of independent draws."""
    reference = {name: value[0] for name, value in drawn.items()}
    elements = partial(quantities.elements, fitted)
    agreements, why = plug_ins.expectation(fitted.model_, fitted.stats_, reference, rng, elements)
    if why:
        return [f"method='posterior_mean': {why}"]
    skipped = []
    for name, agreement in agreements.items():
        labels = quantities.element_labels(fitted, name)
        into.add(f"E {name}", labels, agreement, ESTIMATES, source=INDEPENDENT)
        left = int(np.isnan(agreement.z[:, 0]).sum())
        if left:
            skipped.append(
                f"method='posterior_mean' of {left} of {len(agreement.ess)} elements of {name}: "
                "the mean of independent draws has an error that is far from Normal"
            )
    return skipped


def _add_scores(into: Comparisons, fitted, rng: np.random.Generator) -> list[str]:
    """Off-diagonals of covariances with the density that is claimed for them."""
    skipped = []
    for name in quantities.covariances(fitted.model_.family):
        family = plug_ins.repeated_rows(fitted.model_, fitted.stats_).family
        n = int(max(2000, min(_SCORES, _NUMBERS // (4 * family.n_parameters()))))
        try:
            score = quantities.off_diagonal_score(family, family.draw(rng, n), name)
        except NotImplementedError as error:
            skipped.append(f"off-diagonals of {name}: {error}")
            continue
        if score.any():  # a covariance of one column has no off-diagonal
            agreement = compare_mean(score[None, :, None], np.zeros(1), independent=True)
            labels = [f"score of the off-diagonals of {name}"]
            into.add(f"density of {name}", labels, agreement, PARAMETERS, source=INDEPENDENT)
    return skipped


# ------------------------------------------------------------------------- without draws


def _exact(fitted, data: _Data) -> list[Identity]:
    """Identities that hold to rounding."""
    model, stats, classes = fitted.model_, fitted.stats_, fitted.classes_.tolist()
    rows, codes, weight = data.rows, data.codes, data.weight
    few = _spaced(rows.shape[0], _FEW_ROWS)
    some_rows, encoded = _safe_indexing(data.X, few), rows[few]
    with np.errstate(all="ignore"):  # what is broken may well divide by zero
        log_x = model.family.log_predictive(encoded)
        log_joint = fitted.predict_joint_log_proba(some_rows)
        weights = coherence.class_weights(np.exp(log_joint - log_x), data.class_weights, classes)
        probability = np.exp(log_softmax(log_x + np.log(data.class_weights)))
        words = {
            (DENSITIES, "class weights"): weights
            or plug_ins.class_weights(model, stats, data.alpha, data.n_rows),
            (PROBABILITIES, "p(y | x, D)"): coherence.unequal(
                "predict_proba", fitted.predict_proba(some_rows), probability
            ),
        }
        maxima = {
            "mle": plug_ins.likelihood_maximum(model, stats, rows, codes, weight, classes),
            "map": plug_ins.density_maximum(model, classes),
        }
    identities = [_densities(fitted, data), *_of_graph(fitted, data)]
    identities += [Identity(*what, (wrong,) if wrong else ()) for what, wrong in words.items()]
    for method, value in maxima.items():
        wrong = (value.wrong,) if value.wrong else ()
        identities.append(Identity(ESTIMATES, f"method={method!r}", wrong, value.skipped))
    return identities + _of_rows(fitted, data, few)


def _of_rows(fitted, data: _Data, few: Array) -> list[Identity]:
    """Evidence, leave-one-out, merge and contributions of a few rows."""
    prior, rows = fitted.prior_, (data.rows, data.codes, data.weight)

    def left_out() -> str:
        joint = fitted.loo_log_joint(data.X, fitted.classes_[data.codes], data.weight)
        return coherence.left_out(joint[few], prior, *rows, few)

    def typical() -> str:
        positions = few[data.weight[few] > 0]
        some = _safe_indexing(data.X, positions), fitted.classes_[data.codes[positions]]
        ranks = fitted.typicality(some[0], (*some, data.weight[positions]), partial=True)
        values = ranks["by_class"].values, ranks["overall"].values
        return coherence.typical(*values, prior, *rows, positions)

    def contributions() -> str:
        some_rows = _safe_indexing(data.X, few)
        table = fitted.explain(some_rows)
        joint, place = fitted.predict_joint_log_proba(some_rows), np.arange(len(few))
        ends = [joint[place, fitted.fitted_.codes_of(table[k].values)] for k in _ENDS]
        terms, intercept = table["predictive"].values, table["predictive_intercept"].values
        return coherence.additive(terms, intercept, ends[0] - ends[1])

    checks = {
        (DENSITIES, "evidence by the chain rule"): lambda: coherence.chain_rule(
            prior, data.rows[few], data.codes[few]
        ),
        (LEFT_OUT, "leave-one-out"): left_out,
        (LEFT_OUT, "typicality"): typical,
        (MERGED, "merge"): lambda: coherence.merged(prior, fitted.stats_, *rows, few),
        (EXPLANATIONS, "contributions"): contributions,
    }
    identities = []
    for what, check in checks.items():
        try:
            with np.errstate(all="ignore"):
                wrong = check()
        except (NotImplementedError, ValueError) as error:  # refused, with the reason
            identities.append(Identity(*what, skipped=str(error)))
        else:
            identities.append(Identity(*what, (wrong,) if wrong else ()))
    return identities


def _of_graph(fitted, data: _Data) -> list[Identity]:
    """Compare closed forms with the graph, where the family does not tell the density of theta."""
    family, rows = fitted.prior_.family, data.rows
    if family.capability(ThetaDensity) is not None or family.discriminative:
        return []
    what = DENSITIES, "statistics, draws and estimates against to_pymc"
    if not isinstance(rows, np.ndarray):
        return [Identity(*what, skipped="the rows are not an array")]
    n_classes = len(fitted.classes_)
    try:
        wrong = contradiction_with_graph(family, rows, data.codes, n_classes, data.weight)
    except NotImplementedError as error:
        return [Identity(*what, skipped=str(error))]
    return [Identity(*what, (wrong,) if wrong else ())]


def _densities(fitted, data: _Data) -> Identity:
    what = DENSITIES, "evidence and predictive against densities of theta"
    posterior = fitted.prior_, fitted.model_, fitted.stats_
    rows = data.rows, data.codes, data.weight
    try:
        return Identity(*what, contradictions(*posterior, *rows, fitted.classes_.tolist()))
    except MissingCapabilityError as error:
        return Identity(*what, skipped=str(error))
