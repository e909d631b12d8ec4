"""The closed form against NUTS on the same prior and the same rows.

NUTS knows the prior, the likelihood and PyMC; nothing of the closed form's algebra. What is
compared:

- every parameter, and for some rows log p(x | theta_c) and the log-odds of y given x and theta:
  their distributions over draws (`agreement`);
- the exact predictive densities and p(y | x, D) with their estimates from the draws of NUTS, and
  so the class weights and the cumulant generating function of the log densities (`cumulants`);
- the posterior probability of credible intervals with the share of draws in them, by NUTS and
  independent (`coverage`); expectations and covariances with independent draws (`plug_ins`,
  `score`);
- the densities with each other, without a sampler (`coherence`): an error of the closed form that
  is too small for a sampler to see on many rows shows there to many digits. So do the maxima of
  the likelihood and of the posterior density, and the class weights.
"""

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from bayesgen.checks import coherence, plug_ins
from bayesgen.checks.agreement import compare_mean
from bayesgen.checks.coherence import contradictions
from bayesgen.checks.coverage import add_coverage
from bayesgen.checks.cumulants import add_cumulants
from bayesgen.checks.quantities import (
    INDEPENDENT,
    NUTS,
    Comparisons,
    Draws,
    distributions,
    element_labels,
    elements,
    log_odds,
    predictive,
)
from bayesgen.checks.score import covariances, off_diagonal_score
from bayesgen.checks.validation import Validation, verdict_of
from bayesgen.datatree.tree import read_draws
from bayesgen.families.errors import MissingCapabilityError, NoClosedFormError
from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.inference.diagnostics import SamplingWarning
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.fitted import refuse_others

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Validation", "validate"]

_REFERENCE = 20_000  # independent draws from the closed form, fewer where theta is large
_NUMBERS = 1 << 26  # of the reference: 512 MB
_SCORES = 30_000  # draws of covariances, of which only densities are kept
_ROWS = 20  # whose densities and probabilities are compared
_FEW_ROWS = 5  # whose intervals and cumulants are


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
    refuse_others(clf, "validate")
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
            random_seed,
            sampler,
            groups=(),
            progressbar=progressbar,
            **options,
        )
    seconds = perf_counter() - start
    data = _Data.of(fitted, X, column_or_1d(y), sample_weight)
    tested = X if X_test is None else X_test
    rng = np.random.default_rng(random_seed)
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


class _Data(NamedTuple):
    """Training rows, as the user and as the family has them, and the class prior."""

    X: Any
    rows: Any  # encoded
    codes: Array  # (N,)
    weight: Array | None  # (N,)
    alpha: Array  # (C,) the constructor's class_alpha
    n_rows: Array  # (C,) rows of each class, by weight

    @classmethod
    def of(cls, fitted: Any, X: Any, y: Array, sample_weight: Any) -> "_Data":
        codes = fitted.fitted_.codes_of(y)
        weight = None
        if sample_weight is not None:
            weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), codes.shape)
        n_classes = len(fitted.classes_)
        alpha = np.broadcast_to(np.asarray(fitted.class_alpha, dtype=np.float64), n_classes)
        own = [codes == c for c in range(n_classes)]
        n_rows = np.array([own_c.sum() if weight is None else weight[own_c].sum() for own_c in own])
        return cls(X, fitted.fitted_.encoded(X), codes, weight, alpha, n_rows.astype(np.float64))

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
    distributions(out, fitted, chain, reference, every_place)
    predictive(out, fitted, chain.theta, rows, every_place)
    labels = [f"p(y = {c!r})" for c in classes.tolist()]
    weights = compare_mean(chain.theta[CLASS_WEIGHTS], data.class_weights)
    out.add("p(y | D)", labels, weights)
    few = _spaced(rows.shape[0], _FEW_ROWS)
    shown = [places[i] for i in few]
    add_cumulants(out, model, rows[few], chain.log_joint[:, :, few], shown)
    if len(classes) > 1:
        odds = {
            source: log_odds(draws.log_joint[:, :, few])
            for source, draws in ((NUTS, chain), (INDEPENDENT, reference))
        }
        own = _safe_indexing(tested, used[few])
        add_coverage(out, fitted, own, odds, [p for places_of_row in shown for p in places_of_row])
    else:
        skipped.append("credible intervals: one class has probability 1")
    skipped += _add_expectations(out, fitted, drawn, rng)
    skipped += _add_scores(out, fitted, rng)
    return out, skipped


def _add_expectations(
    into: Comparisons, fitted: Any, drawn: dict[str, Array], rng: np.random.Generator
) -> list[str]:
    """``posterior_mean`` with the mean of independent draws."""
    reference = {name: value[0] for name, value in drawn.items()}
    own = partial(elements, fitted)
    found, why = plug_ins.expectation(fitted.model_, fitted.stats_, reference, rng, own)
    if why:
        return [f"method='posterior_mean': {why}"]
    skipped = []
    for name, agreement in found.items():
        into.add(f"E {name}", element_labels(fitted, name), agreement, source=INDEPENDENT)
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
    for name in covariances(fitted.model_.family):
        family = plug_ins.repeated_rows(fitted.model_, fitted.stats_).family
        n = int(max(2000, min(_SCORES, _NUMBERS // (4 * family.n_parameters()))))
        try:
            score = off_diagonal_score(family, family.draw(rng, n), name)
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
    return out


def _densities(fitted: Any, data: _Data) -> _Exact:
    what = "evidence and predictive against densities of theta"
    posterior = fitted.prior_, fitted.model_, fitted.stats_
    rows = data.rows, data.codes, data.weight
    try:
        return _Exact(what, contradictions(*posterior, *rows, fitted.classes_.tolist()))
    except MissingCapabilityError as error:
        return _Exact(what, skipped=str(error))
