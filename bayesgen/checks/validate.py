"""The closed form against NUTS on the same prior and the same rows.

NUTS uses the prior and the likelihood in PyMC, and none of the closed form's algebra. Compared are

- every parameter, and for some rows log p(x | theta_c) and the log-odds of y given x and theta:
  their distributions over draws (`agreement`);
- with draws of NUTS or independent ones: predictive densities and p(y | x, D), class weights, the
  posterior probability of credible intervals, rows that `simulate` makes, expectations;
- without a sampler (`closed_forms`): densities with each other, the evidence by the chain rule,
  leave-one-out by refits, merged halves, contributions, maxima, class weights. An error of the
  closed form that is too small for a sampler to see on many rows shows there to many digits.

All of it is one table (`comparison`). Where several quantities disagree, the one from which others
are computed is named first: it may be the cause of all others.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from bayesgen.checks import closed_forms, comparison
from bayesgen.checks.closed_forms import NUMBERS, Case, elements, log_joint, spaced
from bayesgen.checks.comparison import (
    DENSITIES,
    EXPLANATIONS,
    IDENTITY,
    INDEPENDENT,
    INTERVALS,
    LEFT_OUT,
    MERGED,
    NUTS,
    PARAMETERS,
    PROBABILITIES,
    SIMULATED,
    STAGES,
    Scores,
    compare,
    compare_mean,
    drawn,
    identity,
    of_draws,
    place,
    r_hat,
    sentence,
    skipped,
    table,
)
from bayesgen.datatree.tree import read_draws
from bayesgen.errors import warn
from bayesgen.families.capabilities import ThetaDensity
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.names import CLASS_WEIGHTS, Method
from bayesgen.inference.nuts import SamplingWarning
from bayesgen.numerics.special import Array, generator, log_odds_against_rest, log_softmax
from bayesgen.posterior.drawn import DrawnPosterior, effective_sample_size, log_densities
from bayesgen.posterior.fitted import is_pool, refuse_others

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Validation", "validate"]

_REFERENCE = 20_000  # independent draws from the closed form, fewer where theta is large
_ROWS = 20  # whose densities and probabilities are compared
_FEW_ROWS = 5  # whose intervals are
_INTERVAL_DRAWS = 20_000  # of the intervals that are compared: their error hides little
_PROB = 0.9  # of intervals
_SIMULATED, _CELLS = 50_000, 1 << 22  # simulated rows of a class, and their cells, at most
_FEWEST_MADE = 1000  # fewer of them tell nothing
_SOUND = 1 / 3  # of the draws an estimate of p(x | D) must rest on: else its error is not Normal
_NEGLIGIBLE = 20.0  # nats below the largest log density of a row
_SEEN = 0.9  # probability with which the printed errors are seen
_FEWEST = 100.0  # effective draws of the worst quantity, below which nothing is concluded
_DIGITS = {"numbers": 0, "ESS": 0, "R-hat": 3}
_FAILED = ("stage", "variable", "check", "statistic", "source", "value", "against", "expected")
_ENDS = "label", "against"  # of log-odds that are explained

NOT_CHECKED = (
    "not checked: whether the model fits the rows; the log loss of the labels without their rows "
    "tells: that of clf.summary() and bg.compare_models, or of bayesgen fit and compare"
)


@dataclass(frozen=True)
class Validation:
    """Outcome of `validate`; print it for the table.

    Attributes
    ----------
    verdict : {"agree", "disagree", "inconclusive"}
        ``"inconclusive"`` if NUTS itself cannot be trusted: too few effective draws, as also of
        chains that have not mixed.
    passed : bool
        Whether the verdict is ``"agree"``.
    reasons : tuple of str
        The findings, if the verdict is another one. The quantity from which others are computed
        comes before them.
    checks : pandas.DataFrame
        A line for each comparison: ``stage``, ``variable``, ``check`` (the element); ``statistic``;
        ``value`` by ``source`` and ``expected`` by ``against``; their ``difference``, a z-score,
        and what is ``allowed``; ``error`` (standard error of the comparison: of a mean in ``unit``,
        of a standard deviation relative, of a quantile in probability); ``ess`` and ``r_hat`` of
        draws by NUTS. Without draws the statistic is "identity", and the difference relative. What
        could not be compared has no difference, and a ``note``.
    tree : xarray.DataTree
        Draws of NUTS in the form of ``sample_posterior``.
    false_alarm : float
    run : dict
        ``estimator``, ``chains``, ``draws``, ``divergences``, ``seconds`` of the sampler.
    threshold : float
        |z| that the largest of all z-scores exceeds with probability `false_alarm`, or less, if
        the closed form is right (Bonferroni).
    not_compared : tuple of str
        Quantities that could not be compared, with the reason.
    exact : tuple of str
        Quantities that were compared without draws; they cannot be a false alarm.
    """

    checks: "pd.DataFrame"
    tree: "xr.DataTree"
    false_alarm: float
    run: Mapping[str, Any]

    @property
    def exact(self) -> tuple[str, ...]:
        """Quantities compared to many digits."""
        exact = self.checks["statistic"] == IDENTITY
        return tuple(self.checks.loc[exact, "variable"].unique())

    @property
    def not_compared(self) -> tuple[str, ...]:
        """Quantities without a comparison, and why."""
        left = self.checks[self.checks["difference"].isna()]
        return tuple(f"{line.variable}: {line.note}" for line in left.itertuples())

    @property
    def passed(self) -> bool:
        """True if closed form and NUTS agree."""
        return self.verdict == "agree"

    @property
    def verdict(self) -> str:
        """Whether they agree."""
        return self._outcome[0]

    @property
    def reasons(self) -> tuple[str, ...]:
        """What speaks against it."""
        return self._outcome[1]

    @cached_property
    def _drawn(self) -> "pd.DataFrame":
        return self.checks[of_draws(self.checks)]

    @property
    def threshold(self) -> float:
        """Largest |z| that is allowed."""
        return float(self._drawn["allowed"].max())

    @property
    def largest_z(self) -> float:
        """Largest |z| of all comparisons."""
        return float(self._drawn["difference"].abs().max())

    def summary(self) -> "pd.DataFrame":
        """Return a line per variable: number of elements, largest |z| by statistic, R-hat, ESS."""
        drawn = self._drawn
        statistic = drawn["statistic"].where(drawn["statistic"].isin(["mean", "sd"]), "quantile")
        size = drawn["difference"].abs().groupby([drawn["variable"], statistic]).max().unstack()
        size = size.reindex(columns=["mean", "sd", "quantile"]).add_suffix(" |z|")
        by_variable = drawn.groupby("variable", sort=False)
        summary = by_variable["check"].nunique().to_frame("numbers").join(size)
        ends = {"R-hat": by_variable["r_hat"].max(), "ESS": by_variable["ess"].min()}
        return summary.assign(**ends).rename_axis(index=None)

    def failed(self) -> "pd.DataFrame":
        """Return the lines of `checks` that disagree; `plots.plot_validation` draws all of them.

        Earlier stages come first: later ones are computed from them. Within a stage, identities
        and the largest |z| come first. Empty if all agree.
        """
        lines = comparison.failed(self.checks)
        size = lines["difference"].abs().where(lines["statistic"] != IDENTITY, np.inf)
        place = lines["stage"].map(STAGES.index)
        order = np.lexsort([-size, place])
        return lines.iloc[order][[*_FAILED, "difference", "note"]]

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
        if not 0 < probability < 1:
            raise ValueError(f"probability must be between 0 and 1, got {probability!r}")
        drawn = self._drawn
        lines = drawn[(drawn["statistic"] == "mean") | (drawn["unit"] == "probability")]
        lines = lines.assign(shift=lines["error"] * (self.threshold + norm.ppf(probability)))
        ends = {"stage": "first", "shift": "max", "unit": "first"}
        return lines.groupby("variable", sort=False)[list(ends)].agg(ends).rename_axis(index=None)

    def remarks(self) -> tuple[str, ...]:
        """Sentences below the table: the largest |z| and R-hat, what was seen, what was not."""
        seen = self.power().groupby(["stage", "unit"], sort=False)["shift"].max()
        words: dict[str, list[str]] = {}
        for (stage, unit), shift in seen.items():
            words.setdefault(stage, []).append(f"{shift:.2g} {unit}")
        stages = "; ".join(f"{stage} {', '.join(sizes)}" for stage, sizes in words.items())
        worst, largest = self._worst_sampled, self.checks["r_hat"].max()
        return (
            f"Largest |z| {self.largest_z:.2f} of {len(self._drawn)} comparisons; beyond "
            f"{self.threshold:.2f} with probability {self.false_alarm:g} if both are right.",
            f"Largest R-hat {largest:.3f}; fewest effective draws {worst.ess:.0f}, of "
            f"{place(worst)}; {_FEWEST:g} are needed.",
            f"Shifts that are seen with probability {_SEEN:g}, or sooner: {stages}.",
            f"Compared to many digits: {', '.join(self.exact)}.",
            *(f"Not compared: {what}." for what in self.not_compared),
        )

    def __str__(self) -> str:
        run = self.run
        lines = [
            f"{run['estimator']}: closed form against NUTS ({run['chains']} x {run['draws']} "
            f"draws, {run['divergences']} divergences, {run['seconds']:.1f} s)",
            as_text(self.summary()).to_string(),
            *self.remarks(),
            f"verdict: {self.verdict}",
            *(f"- {reason}" for reason in self.reasons),
            NOT_CHECKED,
        ]
        return "\n".join(lines)

    @property
    def _worst_sampled(self) -> Any:
        """Return the line with the fewest effective draws of NUTS."""
        sampled = self._drawn[(self._drawn["source"] == NUTS) & (self._drawn["unit"] == "sd")]
        return sampled.loc[sampled["ess"].idxmin()]

    @cached_property
    def _outcome(self) -> tuple[str, tuple[str, ...]]:
        """Return the verdict and what speaks for it, the most upstream quantity first."""
        worst, trouble = self._worst_sampled, []
        too_few = worst.ess < _FEWEST
        if too_few:
            trouble.append(
                f"{place(worst)} has {worst.ess:.0f} effective draws and R-hat {worst.r_hat:.3f}; "
                f"{_FEWEST:g} draws are needed"
            )
        if n := self.run["divergences"]:
            trouble.append(f"{n} draws diverged")
        failed = self.failed()
        # draws that cannot be trusted are no cause of anything: they come last
        unsound = (failed["source"] == NUTS) & bool(trouble)
        reasons = [*self._reasons(failed[~unsound]), *self._reasons(failed[unsound])]
        if not unsound.all():
            return "disagree", tuple(reasons)
        if too_few or len(failed):
            advice = "sample longer (draws, tune) or with a larger target_accept"
            return "inconclusive", (*reasons, *trouble, advice)
        return "agree", ()

    def _reasons(self, failed: "pd.DataFrame") -> Iterator[str]:
        """Yield a sentence per stage and source of numbers, in table order."""
        for (stage, source), lines in failed.groupby(["stage", "source"], sort=False):
            worst = next(lines.itertuples())
            words = f"{stage}: {sentence(worst)}"
            if worst.statistic != IDENTITY:
                same = (self._drawn["stage"] == stage) & (self._drawn["source"] == source)
                words += f"; {len(lines)} of {same.sum()} comparisons disagree"
            yield words


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

    The draws check parameters, densities and class probabilities of rows, their intervals,
    ``"posterior_mean"``, and rows of `simulate`. These are compared to many digits, on some of the
    rows: the evidence; `loo_log_joint` with fits without the row; merged halves with the whole;
    sums of contributions; class weights; estimates by ``"mle"`` and ``"map"``.

    *Not* checked are prediction sets, `predict_uncertainty`, `typicality`, mutual information,
    label shift, files and streams, and the model itself. `bg.compare_models` and predictive checks
    show whether the model fits the rows.

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
        Probability of the verdict "disagree" on a closed form that is right.

    Returns
    -------
    Validation
        The verdict; ``checks``, the table of comparisons; and what could not be compared.
        ``failed()`` has those that disagree, in the order in which each is computed from others;
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
    sampling = options | {"draws": draws, "tune": tune, "chains": chains}
    sampling |= {"random_state": random_state, "nuts_sampler": nuts_sampler}
    sampling["progressbar"] = progressbar
    if is_pool(clf):
        sampling["false_alarm"] = false_alarm
        # the base of scikit-learn has no types, so that no overload could tell pools apart
        validation: Any = _of_members(clf, X, y, sample_weight, X_test, sampling)
        return validation
    if not clf.__bayesgen_learner__().family_type.conjugate:  # before it is sampled
        raise NoClosedFormError(
            f"validate compares a closed form with NUTS, and {type(clf).__name__} has none"
        )
    fitted = clone(clf).fit(X, y, sample_weight=sample_weight)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # the result says it
        tree = fitted.sample_posterior(groups=(), **sampling)
    run = {"estimator": type(fitted).__name__, "chains": chains, "draws": draws}
    run["divergences"] = int(tree["sample_stats"]["diverging"].sum())
    run["seconds"] = perf_counter() - start
    case = _case(fitted, X, y, sample_weight)
    tested = X if X_test is None else X_test
    lines = [*_by_draws(fitted, case, tree, tested, generator(random_state))]
    lines += _identities(fitted, case, X)
    return Validation(table(lines, false_alarm), tree, false_alarm, run)


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


def _case(fitted, X, y, sample_weight) -> Case:
    """Return a fit and its training rows, as the family takes them."""
    codes = fitted.fitted_.codes_of(column_or_1d(y))
    weight = np.broadcast_to(1.0 if sample_weight is None else sample_weight, codes.shape)
    return Case(
        fitted.prior_,
        fitted.model_,
        fitted.stats_,
        fitted.fitted_.encoded(X),
        codes,
        weight.astype(np.float64),
        fitted.classes_.tolist(),
        fitted.fitted_.coords,
    )


def _class_weights(fitted, case: Case) -> tuple[Array, Array]:
    """Return (C,) the constructor's class_alpha, and rows of each class by weight."""
    n_classes = len(case.classes)
    alpha = np.broadcast_to(np.asarray(fitted.class_alpha, dtype=np.float64), n_classes)
    return alpha, np.bincount(case.y, case.weight, n_classes)


# ------------------------------------------------------------------------------ with draws


def _by_draws(
    fitted, case: Case, tree: "xr.DataTree", tested, rng: np.random.Generator
) -> Iterator["pd.DataFrame"]:
    """Yield the lines of every comparison with draws."""
    model, classes = case.model, case.classes
    rows = fitted.fitted_.encoded(tested)
    used = spaced(rows.shape[0], _ROWS)
    rows = rows[used]
    n = int(np.clip(NUMBERS // model.family.n_parameters(), 2000, _REFERENCE))
    theta = read_draws(tree, model.params, case.coords)
    exact = {name: value[None] for name, value in model.draw(rng, n).items()}
    for name in theta:
        (labels, chain), (_, reference) = (elements(case, name, t[name]) for t in (theta, exact))
        yield _distribution(PARAMETERS, name, labels, chain, reference)
    places = [f"row {i}, {c}" for i in range(len(used)) for c in classes]
    density, joint = zip(*(_densities(case, t, rows) for t in (theta, exact)), strict=True)
    yield _distribution(DENSITIES, "log p(x | theta)", places, *density)
    odds = [against_rest(j) for j in joint]
    if len(classes) > 1:
        yield _distribution(PROBABILITIES, "log odds of y | x, theta", places, *odds)
    yield from _predictive(fitted, theta, rows, places)
    alpha, count = _class_weights(fitted, case)
    weights = (alpha + count) / (alpha + count).sum()
    labels = [f"class {c!r}" for c in classes]
    yield drawn(PARAMETERS, "p(y | D)", labels, compare_mean(theta[CLASS_WEIGHTS], weights), NUTS)
    if len(classes) > 1:
        few = spaced(len(used), _FEW_ROWS)
        places = [f"row {i}, {c}" for i in few for c in classes]
        yield from coverage(fitted, _safe_indexing(tested, used[few]), odds[0][:, :, few], places)
    else:
        yield skipped(INTERVALS, "credible intervals", "one class has probability 1")
    yield from _simulated(case, rng)
    yield from closed_forms.means(case, rng)


def _distribution(
    stage: str, variable: str, labels: list[str], chain: Array, reference: Array
) -> "pd.DataFrame":
    """Compare draws (chain, draw, ...) of NUTS with independent ones."""
    chain = chain.reshape(*chain.shape[:2], -1)
    scores = compare(chain, reference.reshape(-1, chain.shape[-1]))
    return drawn(stage, variable, labels, scores, NUTS, r_hat=r_hat(chain))


def _densities(case: Case, theta: dict[str, Array], rows) -> tuple[Array, Array]:
    """Return (chain, draw, N, C) log p(x_i | theta_c), and the same plus log pi_c."""
    blocks = log_densities(case.model.family, theta, rows, len(case.classes))
    density = np.concatenate([block for _, block in blocks], axis=2)
    return density, density + np.log(theta[CLASS_WEIGHTS])[..., None, :]


def against_rest(joint: Array) -> Array:
    """Return (..., C) log-odds of each class against the rest, from log joint densities (..., C).

    A probability rounds to 1 and its odds do not: draws that differ stay different.
    """
    return np.moveaxis(log_odds_against_rest(np.moveaxis(joint, -1, 0)), 0, -1)


def _predictive(
    fitted, theta: dict[str, Array], rows, places: list[str]
) -> Iterator["pd.DataFrame"]:
    """Compare densities and probabilities of rows with their estimates, where those are sound."""
    posterior = fitted.fitted_.posterior
    by_draws = DrawnPosterior(posterior.prior, posterior.model, posterior.stats, theta)
    estimated = by_draws.monte_carlo(rows)
    joint, ess = posterior.log_joint(rows), estimated.weight_ess
    n_draws = theta[CLASS_WEIGHTS].shape[0] * theta[CLASS_WEIGHTS].shape[1]
    sound = ess >= _SOUND * n_draws
    # the error of the log of a mean, to first order
    error = np.sqrt(np.maximum(1 / np.maximum(ess, 1.0) - 1 / n_draws, 0.0))
    # a class that matters nowhere, were its density even as large as it may be, does no harm
    top = estimated.log_joint.max(axis=1, keepdims=True)
    harmless = sound | (estimated.upper < top - _NEGLIGIBLE)
    is_known = sound & harmless.all(axis=1, keepdims=True) & (estimated.mcse > 1e-7)
    p, mcse = np.exp(log_softmax(joint)), estimated.mcse
    for stage, name, unit, value, exact, se, usable in (
        (DENSITIES, "log p(x, y | D)", "nats", estimated.log_joint, joint, error, sound),
        (PROBABILITIES, "p(y | x, D)", "probability", estimated.probability, p, mcse, is_known),
    ):
        z = np.full(se.shape, np.nan)
        np.divide(value - exact, se, out=z, where=usable & (se > 0))
        scores = Scores(*(field.ravel() for field in (value, exact, z, se, ess)))
        yield drawn(stage, name, places, {"mean": scores}, NUTS, unit=unit)


def coverage(fitted, X, odds: Array, places: list[str]) -> Iterator["pd.DataFrame"]:
    """Compare the tails of ``predict_interval`` with the share of draws in them.

    Intervals with equal tails at both ends, shortest ones as a whole. The ends are compared as
    log-odds, which tell probabilities apart that round to 1.

    Parameters
    ----------
    fitted : GenerativeClassifier
    X : N rows, as its methods take them
    odds : (chain, draw, N, C)
        Draws of the log-odds of each class.
    places : N * C words
    """
    tail = (1 - _PROB) / 2
    for kind in ("eti", "hdi"):
        intervals = fitted.predict_interval(X, prob=_PROB, kind=kind, draws=_INTERVAL_DRAWS)
        ends = intervals["log_odds"].transpose("obs_id", "class", "bound").values
        error = intervals["error"].values[:, None] * np.ones(ends.shape[1])
        # a draw that equals the end is on both sides
        below, above = (
            (sign * odds < sign * end) + 0.5 * (odds == end)
            for sign, end in ((1, ends[..., 0]), (-1, ends[..., 1]))
        )
        scores = {"q05": _share(below, tail, error), "q95": _share(above, tail, error)}
        if kind == "hdi":
            scores = {"mean": _share(1 - below - above, _PROB, 2 * error)}
        name = f"{100 * _PROB:.0f} % interval, {kind}"
        lines = drawn(INTERVALS, name, places, scores, NUTS, "predict_interval", "probability")
        yield lines[np.isfinite(lines["difference"])]


def _share(series: Array, share: float, error: Array) -> Scores:
    """Score means over (chain, draw, N, C) draws in an interval that has the `error` (N, C)."""
    n_draws = series.shape[0] * series.shape[1]
    ess = effective_sample_size(np.moveaxis(series, (0, 1), (-2, -1)))
    se = np.sqrt(share * (1 - share) / np.minimum(ess, n_draws) + error**2)
    mean = series.mean(axis=(0, 1))
    fields = mean, np.full(mean.shape, share), (mean - share) / se, se, ess
    return Scores(*(field.ravel() for field in fields))


def _simulated(case: Case, rng: np.random.Generator) -> Iterator["pd.DataFrame"]:
    """Compare rows that `simulate` makes with the predictive that they are said to come from.

    The other density is the predictive after one more row, each class's likeliest.
    """
    model, X, y = case.model, case.X, case.y
    cells = X.shape[1] if X.ndim == 2 else sum(map(len, X)) // len(X)
    n = int(min(_SIMULATED, NUMBERS // model.family.n_parameters(), _CELLS // max(1, cells)))
    if n < _FEWEST_MADE:
        yield skipped(SIMULATED, "simulated rows", "too few would fit into memory")
        return
    log_p = model.family.log_predictive(X)[np.arange(len(y)), y]
    pairs, labels = [], []
    for c in np.unique(y):
        seen = np.flatnonzero(y == c)
        i = seen[log_p[seen].argmax()]
        grown = model.update(model.stats(X[i : i + 1], y[i : i + 1], len(case.classes)))
        families, codes = (model.family, grown.family), np.full(n, c)
        with np.errstate(all="ignore"):  # of a wrong closed form, which may have no density
            made = [family.simulate_predictive(rng, codes) for family in families]
            pairs.append([np.stack([f.log_predictive(m)[:, c] for f in families]) for m in made])
        labels.append(f"class {case.classes[c]!r}, before and after one more row {i}")
    scores = closed_forms.overlaps(pairs)
    yield drawn(SIMULATED, "gap in overlap of simulated rows", labels, scores, INDEPENDENT)


# ------------------------------------------------------------------------- without draws


def _identities(fitted, case: Case, X) -> Iterator["pd.DataFrame"]:
    """Yield the lines of identities that hold to rounding."""
    few, some_rows = case.few, _safe_indexing(X, case.few)

    def of_row(i: int, c: int) -> str:
        return f"row {few[i]}, class {case.classes[c]!r}"

    def probabilities() -> "pd.DataFrame":
        log_joint_of_rows = log_joint(case.model, case.X[few])
        routes = {
            "predict_proba": fitted.predict_proba(some_rows),
            "log predictive and class weights": np.exp(log_softmax(log_joint_of_rows)),
        }
        return identity(PROBABILITIES, "p(y | x, D)", routes, place=of_row)

    def left_out() -> "pd.DataFrame":
        every = np.arange(len(case.y))
        scores = fitted.loo_log_joint(X, fitted.classes_[case.y], case.weight)
        refits = [log_joint(case.fitted_to(every[every != i]), case.X[i : i + 1])[0] for i in few]
        routes = {"loo_log_joint": scores[few], "a fit without the row": refits}
        return identity(LEFT_OUT, "leave-one-out", routes, place=of_row)

    def contributions() -> "pd.DataFrame":
        explained = fitted.explain(some_rows)
        joint, rows = fitted.predict_joint_log_proba(some_rows), np.arange(len(few))
        ends = [joint[rows, fitted.fitted_.codes_of(explained[k].values)] for k in _ENDS]
        terms = np.column_stack([explained["predictive"], explained["predictive_intercept"]])
        routes = {"the sum of explain": terms.sum(axis=1), "log-odds": ends[0] - ends[1]}
        size = np.abs(terms).sum(axis=1)
        return identity(
            EXPLANATIONS, "contributions", routes, size, lambda i: f"row {few[i]} and the intercept"
        )

    checks: dict[tuple[str, str], Callable[[], pd.DataFrame]] = {
        (DENSITIES, "evidence and predictive"): lambda: closed_forms.chain_rule(case),
        (DENSITIES, "densities of theta"): lambda: closed_forms.theta_densities(case),
        (DENSITIES, "class weights"): lambda: _of_class_weights(fitted, case, some_rows),
        (PROBABILITIES, "p(y | x, D)"): probabilities,
        (LEFT_OUT, "leave-one-out"): left_out,
        (MERGED, "merge"): lambda: closed_forms.merged(case),
        (EXPLANATIONS, "contributions"): contributions,
    }
    if case.model.family.capability(ThetaDensity) is None:
        checks[DENSITIES, "statistics"] = lambda: closed_forms.graph_statistics(case)
        checks[PARAMETERS, "draw"] = lambda: closed_forms.graph_draws(case)
    with np.errstate(all="ignore"):  # what is broken may well divide by zero
        for (stage, variable), check in checks.items():
            try:
                yield check()
            except (NotImplementedError, ValueError) as error:  # refused, with the reason
                yield skipped(stage, variable, error)
        yield from closed_forms.maxima(case)


def _of_class_weights(fitted, case: Case, X) -> "pd.DataFrame":
    """Compare class weights of predictions and plug-ins with those of counted rows."""
    alpha, count = _class_weights(fitted, case)
    posterior = alpha + count
    expected: dict[Method, Array] = {"mle": count, "posterior_mean": posterior}
    if len(alpha) > 1 and np.all(posterior > 1):
        expected["map"] = posterior - 1
    by_method = [case.model.class_weights(method, case.stats) for method in expected]
    log_x = case.model.family.log_predictive(case.X[case.few])
    used = np.exp(fitted.predict_joint_log_proba(X) - log_x)
    names = [*(f"method={method!r}" for method in expected), *(f"row {i}" for i in case.few)]
    counted = np.array([*expected.values(), *[posterior] * len(used)])
    counted /= counted.sum(axis=1, keepdims=True)
    return identity(
        DENSITIES,
        "class weights",
        {
            "predictions": [*by_method, *used],
            "class_alpha + rows": counted / counted.sum(1)[:, None],
        },
        place=lambda i, c: f"p(y = {case.classes[c]!r} | D) of {names[i]}",
    )
