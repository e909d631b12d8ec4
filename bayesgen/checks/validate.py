"""The closed form against NUTS on the same prior and the same rows.

NUTS knows the prior, the likelihood and PyMC; nothing of the closed form's algebra. What is
compared:

- every parameter, and for some rows log p(x | theta_c) and the log-odds of y given x and theta:
  their distributions over draws (`agreement`);
- with draws of NUTS or independent ones (`quantities`): predictive densities and p(y | x, D), class
  weights, the cumulant generating function, the posterior probability of credible intervals,
  mean log-odds that `explain` divides, rows that `simulate` makes, covariances; expectations
  (`plug_ins`);
- without a sampler (`coherence`): the densities with each other, the evidence by the chain rule,
  leave-one-out and typicality by refits, merged halves, contributions. An error of the closed form
  that is too small for a sampler to see on many rows shows there to many digits. So do the maxima
  of the likelihood and of the posterior density, and the class weights (`plug_ins`).
"""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from bayesgen.checks import coherence, plug_ins, quantities
from bayesgen.checks.agreement import compare_mean
from bayesgen.checks.coherence import contradictions
from bayesgen.checks.quantities import INDEPENDENT, NUTS, Comparisons, Draws
from bayesgen.datatree.tree import read_draws
from bayesgen.families.errors import MissingCapabilityError, NoClosedFormError
from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.inference.nuts import SamplingWarning
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.fitted import refuse_others

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Validation", "validate"]

_REFERENCE = 20_000  # independent draws from the closed form, fewer where theta is large
_NUMBERS = 1 << 26  # of the reference: 512 MB
_SCORES = 30_000  # draws of covariances, of which only densities are kept
_ROWS = 20  # whose densities and probabilities are compared
_FEW_ROWS = 5  # whose intervals and cumulants are
_SIMULATED, _CELLS = 100_000, 1 << 22  # simulated rows of a class, and their cells, at most
_FEWEST_MADE = 1000  # fewer of them tell nothing
_R_HAT = 1.01
_FEWEST = 100.0  # effective draws of the worst quantity, below which nothing is concluded
_DIGITS = {"numbers": 0, "ESS": 0, "R-hat": 3}
_ENDS = "label", "against"  # of log-odds that are explained


NOT_CHECKED = (
    "not checked: whether the model fits the rows; clf.summary() has the log loss of the labels "
    "without their rows, and bg.compare_models that of other models"
)


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
        attrs = self.checks.attrs
        lines = [
            f"{attrs['estimator']}: closed form against NUTS "
            f"({attrs['chains']} x {attrs['draws']} draws, {attrs['divergences']} divergences, "
            f"{attrs['seconds']:.1f} s)",
            as_text(self.summary()).to_string(),
            f"largest |z| {self.largest_z:.2f} of {self.checks.attrs['comparisons']}; beyond "
            f"{self.threshold:.2f} with probability {self.false_alarm:g} if both are right",
            *(f"compared to many digits: {what}" for what in [", ".join(self.exact)] if what),
            *(f"not compared: {what}" for what in self.not_compared),
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

    Compared with draws: parameters, densities and class probabilities of rows, their intervals
    (``given="training and row"`` with draws weighted by p(x | theta)), the mean log-odds of
    `explain`, rows of `simulate`. To many digits, on some rows: the evidence, `loo_log_joint` and
    `typicality` with fits without the row, merged halves with the whole, sums of contributions,
    estimates by ``"mle"`` and ``"map"``.

    *Not* compared: prediction sets, `predict_uncertainty`, intervals of contributions, relevance
    and mutual information, label shift, files and streams; nor the model itself:
    `bg.compare_models` and predictive checks ask whether it fits the rows.

    Parameters
    ----------
    clf : GenerativeClassifier
        Is cloned and fitted to the rows; stays as it is.
    X, y, sample_weight
        Training rows. Few are better than many: against many rows a wrong pseudo-count is small.
    X_test : (N, D), optional
        Rows whose densities and class probabilities are compared, at most 20 of them, evenly
        spaced. Default: of X.
    draws, tune, chains, random_state, nuts_sampler, progressbar, **options
        As in ``sample_posterior``.
    false_alarm : float
        Probability of the verdict "disagree" on a closed form that is right.

    Returns
    -------
    Validation
        With the verdict, what was compared, and what could not be.

    Raises
    ------
    NoClosedFormError
        If there is none, as of a classifier that is fitted by NUTS.
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
    refuse_others(clf, "validate", pools=False)
    if not clf.__bayesgen_learner__().family_type.conjugate:  # before it is sampled
        raise NoClosedFormError(
            f"validate compares a closed form with NUTS, and {type(clf).__name__} has none: "
            "bg.simulation_based_calibration asks whether its draws are right"
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
    rng = np.random.default_rng(random_state)
    comparisons, skipped = _compared(fitted, tree, data, tested, rng)
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
    exact = _exact(fitted, data)
    broken = tuple(words for o in exact for words in o.wrong)
    verdict, reasons = verdict_of(checks, threshold, divergences, broken)
    checks.attrs |= {"verdict": verdict, "threshold": threshold, "false_alarm": false_alarm}
    tree["validation"] = checks
    return Validation(
        verdict,
        reasons,
        checks,
        threshold,
        false_alarm,
        tree,
        tuple(o.what for o in exact if not o.skipped),
        (*(f"{o.what}: {o.skipped}" for o in exact if o.skipped), *skipped),
    )


# ------------------------------------------------------------------------------- the verdict


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
    def of(cls, fitted: Any, X: Any, y: Array, sample_weight: Any) -> "_Data":
        codes = fitted.fitted_.codes_of(y)
        given = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        weight = np.broadcast_to(given, codes.shape)
        n_classes = len(fitted.classes_)
        alpha = np.broadcast_to(np.asarray(fitted.class_alpha, dtype=np.float64), n_classes)
        n_rows = np.array([weight[codes == c].sum() for c in range(n_classes)])
        return cls(X, fitted.fitted_.encoded(X), codes, weight, alpha, n_rows)

    @property
    def class_weights(self) -> Array:
        """(C,) p(y = c | D) = (alpha_c + n_c)/(A + N)."""
        posterior: Array = self.alpha + self.n_rows
        return posterior / posterior.sum()


def _spaced(n: int, most: int) -> Array:
    """At most so many of n positions, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, most).astype(int))


# ------------------------------------------------------------------------------ with draws


def _compared(
    fitted: Any, tree: "xr.DataTree", data: _Data, tested: Any, rng: np.random.Generator
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

    out, skipped = Comparisons(), []
    quantities.distributions(out, fitted, chain, reference, every_place)
    quantities.predictive(out, fitted, chain.theta, rows, every_place)
    labels = [f"p(y = {c!r})" for c in classes.tolist()]
    weights = compare_mean(chain.theta[CLASS_WEIGHTS], data.class_weights)
    out.add("p(y | D)", labels, weights)
    few = _spaced(rows.shape[0], _FEW_ROWS)
    shown = [places[i] for i in few]
    quantities.add_cumulants(out, model, rows[few], chain.log_joint[:, :, few], shown)
    if len(classes) > 1:
        joint = {
            source: draws.log_joint[:, :, few]
            for source, draws in ((NUTS, chain), (INDEPENDENT, reference))
        }
        own, at = _safe_indexing(tested, used[few]), [p for of_row in shown for p in of_row]
        odds = {source: quantities.against_rest(a) for source, a in joint.items()}
        quantities.add_coverage(out, fitted, own, odds, at)
        quantities.add_weighted(out, fitted, own, joint, at)
        skipped += _add_explained(out, fitted, own, reference.log_joint[:, :, few])
    else:
        skipped.append("credible intervals: one class has probability 1")
    skipped += _add_simulated(out, fitted, data, rng)
    skipped += _add_expectations(out, fitted, drawn, rng)
    skipped += _add_scores(out, fitted, rng)
    return out, skipped


def _add_explained(into: Comparisons, fitted: Any, X: Any, log_joint: Array) -> list[str]:
    """Mean log-odds that `explain` divides among features, with draws (1, S, n, C)."""
    try:
        table = fitted.explain(X)
    except (NotImplementedError, ValueError) as error:
        return [f"log-odds explained: {error}"]
    place, codes = (
        np.arange(log_joint.shape[2]),
        [fitted.fitted_.codes_of(table[k].values) for k in _ENDS],
    )
    drawn = log_joint[:, :, place, codes[0]] - log_joint[:, :, place, codes[1]]
    exact = table["mean_log_odds"].values
    agreement = compare_mean(drawn, exact, independent=True)
    into.add("log odds explained", [f"row {i}" for i in place], agreement, source=INDEPENDENT)
    return []


def _add_simulated(
    into: Comparisons, fitted: Any, data: _Data, rng: np.random.Generator
) -> list[str]:
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
        found = compare_mean(np.stack(ratios, axis=-1)[None], np.ones(len(used)), independent=True)
        places = [f"after row {i}, {label}" for i in used]
        into.add("simulated p(x | D and a row)/p(x | D)", places, found, source=INDEPENDENT)
    return [] if n >= _FEWEST_MADE else ["simulate: too few rows would fit into memory"]


def _cells(rows: Any) -> int:
    """About how many numbers a row has."""
    if rows.ndim == 2:
        return max(1, rows.shape[1])
    return max(1, sum(map(len, rows)) // max(1, len(rows)))


def _add_expectations(
    into: Comparisons, fitted: Any, drawn: dict[str, Array], rng: np.random.Generator
) -> list[str]:
    """``posterior_mean`` with the mean of independent draws."""
    reference = {name: value[0] for name, value in drawn.items()}
    own = partial(quantities.elements, fitted)
    found, why = plug_ins.expectation(fitted.model_, fitted.stats_, reference, rng, own)
    if why:
        return [f"method='posterior_mean': {why}"]
    skipped = []
    for name, agreement in found.items():
        into.add(
            f"E {name}", quantities.element_labels(fitted, name), agreement, source=INDEPENDENT
        )
        left = int(np.isnan(agreement.z[:, 0]).sum())
        if left:
            skipped.append(
                f"method='posterior_mean' of {left} of {len(agreement.ess)} elements of {name}: "
                "the mean of independent draws has an error that is far from Normal"
            )
    return skipped


def _add_scores(into: Comparisons, fitted: Any, rng: np.random.Generator) -> list[str]:
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
            found = compare_mean(score[None, :, None], np.zeros(1), independent=True)
            labels = [f"score of the off-diagonals of {name}"]
            into.add(f"density of {name}", labels, found, source=INDEPENDENT)
    return skipped


# ------------------------------------------------------------------------- without draws


class _Exact(NamedTuple):
    """What was compared to many digits; what is wrong with it; why it could not be compared."""

    what: str
    wrong: tuple[str, ...] = ()
    skipped: str = ""


def _exact(fitted: Any, data: _Data) -> list[_Exact]:
    """Identities that hold to rounding."""
    model, stats, classes = fitted.model_, fitted.stats_, fitted.classes_.tolist()
    rows, codes, weight = data.rows, data.codes, data.weight
    few = _spaced(rows.shape[0], _FEW_ROWS)
    own, encoded = _safe_indexing(data.X, few), rows[few]
    with np.errstate(all="ignore"):  # what is broken may well divide by zero
        log_x = model.family.log_predictive(encoded)
        log_joint = fitted.predict_joint_log_proba(own)
        weights = coherence.class_weights(np.exp(log_joint - log_x), data.class_weights, classes)
        probability = np.exp(log_softmax(log_x + np.log(data.class_weights)))
        words = {
            "class weights": weights
            or plug_ins.class_weights(model, stats, data.alpha, data.n_rows),
            "p(y | x, D)": coherence.unequal(
                "predict_proba", fitted.predict_proba(own), probability
            ),
            "cumulant generating function": coherence.cumulants(
                model, rows, data.class_weights, classes
            ),
        }
        maxima = {
            "mle": plug_ins.likelihood_maximum(model, stats, rows, codes, weight, classes),
            "map": plug_ins.density_maximum(model, classes),
        }
    out = [_densities(fitted, data)]
    out += [_Exact(what, (wrong,) if wrong else ()) for what, wrong in words.items()]
    for method, found in maxima.items():
        wrong = (found.wrong,) if found.wrong else ()
        out.append(_Exact(f"method={method!r}", wrong, found.skipped))
    return out + _of_rows(fitted, data, few)


def _of_rows(fitted: Any, data: _Data, few: Array) -> list[_Exact]:
    """Evidence, leave-one-out, merge and contributions of a few rows."""
    prior, rows = fitted.prior_, (data.rows, data.codes, data.weight)

    def left_out() -> str:
        found = fitted.loo_log_joint(data.X, fitted.classes_[data.codes], data.weight)
        return coherence.left_out(found[few], prior, *rows, few)

    def typical() -> str:
        at = few[data.weight[few] > 0]
        some = _safe_indexing(data.X, at), fitted.classes_[data.codes[at]]
        found = fitted.typicality(some[0], (*some, data.weight[at]), partial=True)
        values = found["by_class"].values, found["overall"].values
        return coherence.typical(*values, prior, *rows, at)

    def contributions() -> str:
        own = _safe_indexing(data.X, few)
        table = fitted.explain(own)
        joint, place = fitted.predict_joint_log_proba(own), np.arange(len(few))
        ends = [joint[place, fitted.fitted_.codes_of(table[k].values)] for k in _ENDS]
        log_odds = {
            "predictive": ("the log-odds of predict_proba", ends[0] - ends[1]),
            "mean": ("mean_log_odds", table["mean_log_odds"].values),
        }
        found = [
            coherence.additive(what, table[k].values, table[f"{k}_intercept"].values, value)
            for k, (what, value) in log_odds.items()
            if k in table
        ]
        return next(filter(None, found), "")

    checks = {
        "evidence by the chain rule": lambda: coherence.chain_rule(
            prior, data.rows[few], data.codes[few]
        ),
        "leave-one-out": left_out,
        "typicality": typical,
        "merge": lambda: coherence.merged(prior, fitted.stats_, *rows, few),
        "contributions": contributions,
    }
    out = []
    for what, check in checks.items():
        try:
            with np.errstate(all="ignore"):
                wrong = check()
        except (NotImplementedError, ValueError) as error:  # refused, with the reason
            out.append(_Exact(what, skipped=str(error)))
        else:
            out.append(_Exact(what, (wrong,) if wrong else ()))
    return out


def _densities(fitted: Any, data: _Data) -> _Exact:
    what = "evidence and predictive against densities of theta"
    posterior = fitted.prior_, fitted.model_, fitted.stats_
    rows = data.rows, data.codes, data.weight
    try:
        return _Exact(what, contradictions(*posterior, *rows, fitted.classes_.tolist()))
    except MissingCapabilityError as error:
        return _Exact(what, skipped=str(error))
