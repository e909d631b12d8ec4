"""Compare predictives of models: on held-out rows, and by exact leave-one-out."""

import textwrap
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bayesgen.datatree import tree
from bayesgen.encoding.labels import codes_of
from bayesgen.encoding.literals import count, listed
from bayesgen.errors import placed, refuse_unknown
from bayesgen.families.contract import Family
from bayesgen.families.errors import NoPosteriorError, UndefinedEstimateError
from bayesgen.families.names import METHODS, MODEL, PREDICTIVE, Method
from bayesgen.inference.exponents import sample
from bayesgen.numerics.rows import class_counts
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.fitted import (
    Fitted,
    LabelledRows,
    at_training_rows,
    fitted_of,
    through_pipelines,
)
from bayesgen.posterior.model import log_weights_without
from bayesgen.posterior.pooled import Evidence, LogLinear, comparable
from bayesgen.predict import leave_one_out
from bayesgen.predict.probabilities import log_joint

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from arviz_stats.utils import ELPDData

    from bayesgen.datatree.result_table import ResultTable

ECE_BINS = 15
PROPER: Final = ("log_loss", "brier")


@through_pipelines
def compare_predictives(clf: Any, X: Any, y: Any) -> "ResultTable":
    """Score the posterior predictive and every plug-in of fitted models on the same rows.

    Parameters
    ----------
    clf : fitted classifier, or {name: fitted classifier}
        Several must have the same classes.
    X : (N, D)
        Held-out rows; {name: rows} if several models read different columns.
    y : (N,)
        Their labels, all among ``clf.classes_``.

    Returns
    -------
    xarray.Dataset, which prints as a table
        Dim ``predictive`` (``method`` is an option of ``Dataset.sel``), one entry for each of
        `names.METHODS`; of several models (model, predictive). ``accuracy``; ``log_loss``, mean of
        -log p(y | x) in nats; ``brier``, mean of the squared error summed over classes; ``ece``,
        expected calibration error of the top probability in 15 equal bins; ``impossible``, the
        number of rows that have probability 0 under every class; ``note``, why a method has no
        numbers (its estimate does not exist) or infinite ones, or that it is a local optimum.
        After a fit by draws also ``log_loss_mcse``, the Monte Carlo error of the log loss of the
        posterior predictive.
        Of log loss and Brier score also, here for log loss:
        ``log_loss_se``, standard error over rows, and ``log_loss_median``; ``log_loss_diff``, the
        excess over the posterior predictive of the same model, with ``log_loss_diff_se``, the
        standard error of that paired difference, ``log_loss_diff_median``, and
        ``log_loss_diff_wins``, the share of rows on which the excess is negative (half of the rows
        on which it is 0 are added); with several models ``log_loss_above_best`` and its ``_se``,
        ``_median`` and ``_wins``, relative to the posterior predictive of the model with the lowest
        log loss. `plots.plot_comparison` draws the table.

    Notes
    -----
    A row that is impossible under every class has no class probabilities: it counts as wrong,
    with an infinite log loss and a Brier error of 1. An infinite mean has no standard error (NaN).
    Standard errors are about other rows, not about other training sets.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = [[0, 1], [1, 1], [1, 0], [0, 0]], ["a", "a", "b", "b"]
    >>> table = compare_predictives(bg.BernoulliNB().fit(X, y), X, y)
    >>> table.accuracy.sel(predictive="posterior_predictive").item()
    1.0
    """
    if isinstance(clf, list | tuple | set):
        raise TypeError(
            f"compare_predictives takes a classifier or {{name: classifier}}, got a "
            f"{type(clf).__name__}: give each model a name"
        )
    if not isinstance(clf, Mapping):
        table = _compared(fitted_of(clf, "compare_predictives", pools=True), X, y)[0]
        return _printed(table, table.attrs["estimator"])
    if not clf:
        raise ValueError("clf is {}: there is no model to compare")
    fitted = fitted_models(clf, "compare_predictives")
    rows = rows_of_each(clf, X)
    tables = {name: _compared(fitted_one, rows[name], y) for name, fitted_one in fitted.items()}
    return _printed(side_by_side(tables), f"{len(tables)} models")


def fitted_models(models: Mapping[str, Any], function: str) -> dict[str, Fitted]:
    """Return what each of {name: fitted classifier or pool} has learnt; refuse unequal classes."""
    fits = {
        name: fitted_of(clf, f"model {name!r}: {function}", pools=True)
        for name, clf in models.items()
    }
    (first, reference), *others = fits.items()
    for name, fitted in others:
        if not np.array_equal(fitted.classes, reference.classes):
            raise ValueError(
                f"the models differ in their classes: {first!r} has "
                f"{reference.classes.tolist()}, {name!r} has {fitted.classes.tolist()}"
            )
    return fits


def _printed(table: "xr.Dataset", what: str) -> "ResultTable":
    """Return scores that print as the few columns which compare predictives."""
    title = (
        f"{what}, {table.attrs['rows']} rows, log loss in nats; diff: above the posterior "
        "predictive, diff_se: standard error of this paired difference"
    )
    columns = ["log_loss", "log_loss_diff", "log_loss_diff_se", "brier", "accuracy"]
    columns += [name for name in ("log_loss_mcse",) if name in table]
    return tree.result_table(table, title, columns)


Scored = tuple["xr.Dataset", dict[str, list[Array]]]  # `scored` of a model


def side_by_side(found: Mapping[str, Scored]) -> "xr.Dataset":
    """Scores of several models on the same rows, and their differences to the best."""
    import xarray as xr

    tables = [table for table, _ in found.values()]
    joined = xr.concat(tables, MODEL, combine_attrs="drop").assign_coords({MODEL: list(found)})
    joined = joined.assign_coords(estimator=(MODEL, [table.attrs["estimator"] for table in tables]))
    for name in PROPER:
        mean = joined[name].sel({PREDICTIVE: METHODS[0]}).values
        best = found[list(found)[int(np.nanargmin(mean))]][1][name][0]
        gap = paired(np.array([terms[name] for _, terms in found.values()]), best)
        for key, value in gap.named(f"{name}_above_best").items():
            joined[key] = ((MODEL, PREDICTIVE), value)
    return joined.assign_attrs(rows=tables[0].attrs["rows"])


def _compared(fitted: Fitted, X, y) -> Scored:
    """`compare_predictives` of one model, and {proper score: terms (N,) of each predictive}."""
    codes = codes_of(y, fitted.classes, True)
    posterior: Any = fitted.posterior
    table, terms = scored(fitted.name, joints_of(fitted, X), codes)
    if not posterior.drawn:
        return table, terms
    error = np.full(len(METHODS), np.nan)
    if not fitted.reader.sums_missing:
        error[0] = posterior.log_loss_error(fitted.encoded(X), codes)
    optimum = np.isfinite(table["log_loss"].values) & np.isin(METHODS, _optima(fitted))
    note = np.where(optimum, "local optimum from the posterior mean", table["note"].values)
    columns = {"log_loss_mcse": (PREDICTIVE, error), "note": (PREDICTIVE, note)}
    return table.assign(columns), terms


def _optima(fitted: Fitted) -> list[Method]:
    """Estimates that are local optima: all maxima but those in closed form."""
    closed = type(fitted.family).mle_of_rows is not Family.mle_of_rows
    return ["map"] if closed else ["map", "mle"]


Joints = Mapping[Method, Array | UndefinedEstimateError]  # (N, C), or why there is none


def joints_of(fitted: Fitted, X: Any) -> Joints:
    """Log joint densities of the rows by each method."""

    def joint(method: Method) -> Array | UndefinedEstimateError:
        try:
            return log_joint(fitted, X, method)
        except UndefinedEstimateError as error:
            return error

    return {method: joint(method) for method in METHODS}


def scored(estimator: str, joints: Joints, codes: Array) -> Scored:
    """Return scores of each method's log joint densities, and the terms (N,) of the proper ones."""
    import pandas as pd

    lines: dict[str, dict[str, Any]] = {}
    terms: dict[str, list[Array]] = {name: [] for name in PROPER}
    for method, joint in joints.items():
        line: dict[str, Any]
        if isinstance(joint, UndefinedEstimateError):
            line, errors = {"note": joint.cause}, dict.fromkeys(PROPER, np.full(len(codes), np.nan))
        elif codes.shape != joint.shape[:1]:
            raise ValueError(f"X has {len(joint)} rows, but y has shape {codes.shape}")
        else:
            scores, errors = score(joint, codes), proper_scores(joint, codes)
            line = scores | {"note": _remark(scores, len(codes))}
        for name, of_rows in errors.items():
            terms[name].append(of_rows)
            spread, gap = paired(of_rows), paired(of_rows, terms[name][0]).named(f"{name}_diff")
            gap = {f"{name}_se": spread.se, f"{name}_median": spread.median} | gap
            line |= {k: float(value) for k, value in gap.items()}
        lines[method] = line
    table = pd.DataFrame.from_dict(lines, orient="index").rename_axis(PREDICTIVE).to_xarray()
    return table.assign_attrs(estimator=estimator, rows=len(codes)), terms


def _remark(scores: Mapping[str, float], n_rows: int) -> str:
    """Say why scores are infinite."""
    if n := scores["impossible"]:
        return f"{n:.0f} of {count(n_rows, 'row')} cannot occur under any class, counted as wrong"
    if scores["log_loss"] == np.inf:
        return "infinite log loss: some rows get probability 0 of being what they are"
    return ""


class Paired(NamedTuple):
    """Differences along the last axis; mean and error are infinite and NaN where tails are."""

    mean: Array
    se: Array
    median: Array
    wins: Array  # share of negative differences, and half of those that are 0

    def named(self, name: str) -> dict[str, Array]:
        """{name: mean, name_se: ..., name_median: ..., name_wins: ...}."""
        more = {f"{name}_{k}": value for k, value in self._asdict().items()}
        return {name: more.pop(f"{name}_mean")} | more


def paired(a: Array, b: Array | float = 0.0) -> Paired:
    """Compare losses a (..., n) with b; equal up to rounding, or the same infinity, is a tie."""
    with np.errstate(invalid="ignore"):  # infinite losses have no finite error
        gap = np.where(np.isclose(a, b, rtol=1e-12, atol=0.0), 0.0, np.subtract(a, b))
        mean, n = gap.mean(axis=-1), gap.shape[-1]
        se = gap.std(axis=-1, ddof=1) / np.sqrt(n) if n > 1 else np.full(mean.shape, np.nan)
        se = np.where(np.isfinite(mean), se, np.nan)
        wins = np.where(np.isnan(gap), np.nan, (1 - np.sign(gap)) / 2).mean(axis=-1)
        return Paired(mean, se, np.median(gap, axis=-1), wins)


def _log_p(joint: Array) -> Array:
    """Return (N, C) log probabilities; -inf in a row that is impossible under every class."""
    impossible = np.isneginf(joint).all(axis=1, keepdims=True)
    log_p: Array = np.where(impossible, -np.inf, log_softmax(joint))
    return log_p


def proper_scores(joint: Array, codes: Array) -> dict[str, Array]:
    """{"log_loss", "brier"}: (N,) errors of log joint densities (N, C), whose means `score` has."""
    log_p = _log_p(joint)
    hit = np.eye(log_p.shape[1])[codes]
    return {
        "log_loss": -log_p[np.arange(len(codes)), codes],
        "brier": np.square(np.exp(log_p) - hit).sum(axis=1),
    }


def rows_of_each(models: Mapping[str, Any], X: Any) -> Mapping[str, Any]:
    """{name: rows} of models that may read different columns."""
    rows = X if isinstance(X, Mapping) else dict.fromkeys(models, X)
    if absent := [name for name in models if name not in rows]:
        raise ValueError(f"X has no rows for the model(s) {absent}")
    return rows


def score(joint: Array, codes: Array) -> dict[str, float]:
    """Accuracy, log loss, Brier score, calibration error of log joint densities (N, C)."""
    p, impossible = np.exp(_log_p(joint)), np.isneginf(joint).all(axis=1)
    top, right = p.max(axis=1), (p.argmax(axis=1) == codes) & ~impossible
    bins = np.minimum((top * ECE_BINS).astype(int), ECE_BINS - 1)
    gap = np.bincount(bins, weights=right - top, minlength=ECE_BINS)
    return {
        "accuracy": float(right.mean()),
        **{name: float(terms.mean()) for name, terms in proper_scores(joint, codes).items()},
        "ece": float(np.abs(gap).sum() / len(codes)),
        "impossible": float(impossible.sum()),
    }


# ------------------------------------------------------------------------------------------------
# Leave-one-out scores of a fit, and what they rest on.


def loo(
    fitted: Fitted,
    X: Any,
    y: Any,
    target: str = "label",
    sample_weight: Any = None,
    groups: Any = None,
    partial: bool = False,
) -> "tuple[ELPDData, Array, LabelledRows]":
    """Return the score; (n, C) log joint densities of the n rows that it scores; those rows.

    Arguments are those of `GenerativeClassifier.loo`.
    """
    from bayesgen.checks.loo import elpd

    refuse_unknown("target", target, ("label", "joint"))
    if target == "joint":
        fitted.refuse_if_discriminative("target='joint'")
    posterior = fitted.posterior
    rows = leave_one_out.training_rows(fitted, X, y, sample_weight, partial, groups)
    positions, some = rows.scored, rows.only_scored()
    log_joint, k = posterior.log_joint_without(*rows)
    n_groups = None if rows.groups is None else len(np.unique(rows.groups))
    nobody = np.full(len(positions), -1)
    full, _ = posterior.log_joint_without(some.X, nobody, some.weight)
    log_joint = left_out = log_joint[positions]
    if target == "label":
        full, left_out = log_softmax(full), log_softmax(left_out)
    own_class = np.arange(len(positions)), some.codes
    scores = elpd(
        left_out[own_class],
        full[own_class],
        positions,
        target,
        k[positions] if posterior.n_draws else None,
        posterior.n_draws,
        n_groups,
    )
    return scores, log_joint, some


_WIDTH = 100  # of notes
_COLUMNS = ["elpd", "se", "elpd_diff", "dse", "log_loss", "accuracy", "ece"]
_COLUMNS += ["stacking", "pool", "log_evidence"]
_APART = 2  # standard errors of a difference that is more than chance


@dataclass(frozen=True)
class ModelComparison:
    """Outcome of `compare_models`; print it for the table and its notes.

    Attributes
    ----------
    table : xarray.Dataset
        (model), the best first: ``elpd``, sum over rows of log p(y_i | x_i, D without row i), and
        its standard error ``se``; ``elpd_diff``, the difference from the best (0 or negative),
        and ``dse``, the standard error of that paired difference; ``log_loss``, mean of
        -log p(y_i | x_i, D without row i) in nats; ``accuracy`` and ``ece`` (15 bins) of the
        leave-one-out predictions; ``log_evidence``, log p(X, y), NaN without a closed form;
        ``stacking``, weights of a mixture of the models; ``pool``, exponents of a `LogLinearPool`
        of these models.
    loo : {name: ELPDData}
        Entries for `arviz.compare` and `arviz.plot_compare`.
    notes : tuple of str
        Cautions before a choice.
    """

    table: "xr.Dataset"
    loo: "Mapping[str, ELPDData]"
    notes: tuple[str, ...]

    def to_dataframe(self) -> "pd.DataFrame":
        """Return one row per model."""
        return self.table.to_dataframe()

    def __repr__(self) -> str:
        attrs = self.table.attrs
        return "\n".join(
            [
                f"{count(len(self.loo), 'model')} by leave-one-out of {attrs['rows']} labels",
                self._shown().to_string(na_rep="-"),
                *(textwrap.fill(note, _WIDTH, subsequent_indent="  ") for note in self.notes),
            ]
        )

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"{self._shown().to_html(na_rep='-')}<ul>{notes}</ul>"

    def _shown(self) -> "pd.DataFrame":
        """Columns that say something, to the digits that are known."""
        digits = dict.fromkeys(("elpd", "se", "elpd_diff", "dse", "log_evidence"), 1)
        table = self.to_dataframe().dropna(axis="columns", how="all").rename_axis(None)
        for name in table:
            form = f"{{:.{digits.get(str(name), 3)}f}}".format
            table[name] = [form(value) if value == value else "-" for value in table[name]]
        return table


@at_training_rows
@through_pipelines
def compare_models(
    models: Mapping[str, Any], X: Any, y: Any, sample_weight: Any = None
) -> ModelComparison:
    """Compare classifiers by their leave-one-out probabilities of the training labels.

    Parameters
    ----------
    models : {name: classifier}
        All with the same classes; fitted in closed form or by draws; pools of them too. One that
        is not fitted is cloned and fitted to these rows.
    X, y, sample_weight : the training rows
        The arguments that `fit` was given; they are checked against the statistics of each model.
        If the models read different columns, `X` is {name: rows}, with the rows in the same order.

    Returns
    -------
    ModelComparison
        ``table``, ``loo`` (entries for `arviz.compare`), ``notes``, ``to_dataframe()``;
        `plots.plot_comparison` draws it.

    Raises
    ------
    ValueError
        If the models differ in their classes, or were fitted to other rows.

    Notes
    -----
    Leave-one-out is exact if the posterior has a closed form: it takes one pass over the rows and
    no refit. After a fit by draws, and for the exponents of a pool (`LogLinearPool.loo`), it is
    Pareto-smoothed importance sampling, with a note if that cannot be trusted. A row counts once,
    whatever its weight; only the exponents ``pool`` use the weights. Some things are chosen from
    all rows and are not left out (bins, strengths, scales, ``prior="loo"``):
    `GenerativeClassifier.loo_log_joint` lists them.

    The table has two kinds of weights:

    - ``stacking``: the mixture of the models' probabilities that predicts best (Yao et al. 2018,
      Using stacking to average Bayesian predictive distributions).
    - ``pool``: exponents of the product of the probabilities, which also calibrate. They do not sum
      to 1; one far below 1 shows that its model is too sure. `LogLinearPool` adds intercepts.

    Evidence is that of p(x, y), and x dominates it: a model can describe x better and separate the
    classes worse. It depends on how wide the priors are, and compares models of the same data
    alone: densities or probabilities, of the same columns, bins and tokens. NaN: it is not known,
    or the rows have chosen the structure.

    Documents with tokens outside a vocabulary are refused, because `MarkovNB` scores them too high.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = bg.datasets.load_penguins()
    >>> X = X[["bill_length_mm", "bill_depth_mm"]].dropna()
    >>> y = y[X.index]
    >>> models = {"naive": bg.GaussianNB(), "full": bg.QuadraticDiscriminant()}
    >>> found = bg.compare_models(models, X, y)
    >>> found.table["elpd"].to_series().round(1).to_dict()
    {'full': -31.2, 'naive': -56.9}
    >>> found.table["elpd_diff"].sel(model="naive").item() < -2 * found.table["dse"].max().item()
    True
    """
    import pandas as pd

    if not isinstance(models, Mapping) or not models:
        raise ValueError("models must be {name: fitted classifier}, with one or more of them")
    every = fitted_models(models, "compare_models")
    rows = rows_of_each(models, X)
    scores: dict[str, ELPDData] = {}
    joints, columns = {}, {}
    for name, clf in models.items():
        with placed(f"model {name!r}"):
            by_row = loo(every[name], rows[name], y, "label", sample_weight)
        scores[name], joints[name], scored = by_row
        of_labels = score(joints[name], scored.codes)
        columns[name] = {
            "elpd": scores[name].elpd,
            "se": scores[name].se,
            "log_loss": -scores[name].elpd / len(scored.codes),
            "accuracy": of_labels["accuracy"],
            "ece": of_labels["ece"],
            "log_evidence": _log_evidence(clf),
        }
    table = pd.DataFrame.from_dict(columns, orient="index").rename_axis(MODEL)
    table = table.sort_values("elpd", ascending=False, kind="stable")
    scores = {name: scores[name] for name in table.index}
    terms = np.array([one.elpd_i.values for one in scores.values()])
    with np.errstate(invalid="ignore"):
        gaps = np.where(terms == terms[0], 0.0, terms - terms[0])  # or the same infinity
    table["elpd_diff"] = gaps.sum(axis=1)
    table["dse"] = [_se(gap) for gap in gaps]
    table["stacking"], remarks = _stacking(scores)
    table["pool"] = _exponents([joints[n] for n in table.index], scored.codes, scored.weight)
    notes = (*_of_differences(table), *_of_draws(scores), *remarks, *_of_evidence(table))
    dataset = table[_COLUMNS].to_xarray().assign_attrs(rows=len(scored.codes))
    return ModelComparison(dataset, scores, notes)


def _log_evidence(clf) -> float:
    closed = clf.inference_ == "closed form"
    try:
        return float(clf.log_evidence_) if closed else float("nan")
    except NoPosteriorError:  # a predictive that is no exact posterior's
        return float("nan")


def _se(terms: Array) -> float:
    """Return the standard error of the sum of independent terms; NaN where one is infinite."""
    if not np.isfinite(terms).all():
        return float("nan")
    return float(np.sqrt(len(terms) * terms.var()))


def _stacking(scores: "Mapping[str, ELPDData]") -> "tuple[pd.Series, list[str]]":
    """Return ArviZ's stacking weights, and what it warns of; a model that is impossible has 0."""
    import arviz as az
    import pandas as pd

    sound = {name: one for name, one in scores.items() if np.isfinite(one.elpd)}
    weights = pd.Series(0.0 if sound else np.nan, index=[*scores])
    if len(sound) < 2:
        weights[[*sound]] = 1.0
        return weights, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        weight = az.compare(sound, method="stacking", round_to="none")["weight"].clip(0, 1)
    weights.update(weight / weight.sum())
    # those of Pareto k are said once, with the names of the models
    return weights, sorted({str(w.message) for w in caught if "chance" in str(w.message)})


def _exponents(joints: list[Array], codes: Array, weight: Array) -> Array:
    """Return mean exponents of the pool of all models, under `LogLinearPool`'s default prior."""
    prior = LogLinear(1 / len(joints))
    n_classes = joints[0].shape[1]
    count = class_counts(codes, n_classes, weight)
    log_pi = log_weights_without(np.ones(n_classes), count, codes, weight)
    scores = np.stack([comparable(joint - log_pi) for joint in joints])
    evidence = Evidence(scores, log_pi, np.ones(len(codes)))
    return sample(evidence, codes, weight, prior).mean[0]


# ------------------------------------------------------------------------------------------ notes


def _of_differences(table: "pd.DataFrame") -> Iterator[str]:
    best, *others = table.index
    is_close = table["elpd_diff"].abs() <= _APART * table["dse"]
    if close := [name for name in others if is_close[name]]:
        yield (
            f"{listed(map(repr, close))} may be as good as {best!r}: the difference is "
            f"within {_APART} standard errors"
        )
    if impossible := table.index[table["elpd"] == -np.inf].tolist():
        yield (
            f"{listed(map(repr, impossible))} gave some row probability 0 of being what it is: "
            "the score is minus infinity"
        )


def _of_draws(scores: "Mapping[str, ELPDData]") -> Iterator[str]:
    for name, one in scores.items():
        if one.warning:
            bad = int((one.pareto_k > one.good_k).sum())
            yield (
                f"{name!r} was fitted by draws, and for {bad} of {one.n_data_points} rows the "
                f"score without the row is not reliable (Pareto k above {one.good_k:.2f}): the "
                "elpd is too high, perhaps by much"
            )


def _of_evidence(table: "pd.DataFrame") -> Iterator[str]:
    evidence = table["log_evidence"].dropna()
    if evidence.empty:
        return
    note = (
        "log evidence is that of p(x, y), which x dominates: it is not a guide to classification; "
        "choose by elpd"
    )
    if (favourite := evidence.idxmax()) != table.index[0] and len(evidence) > 1:
        gap, se = table.loc[favourite, ["elpd_diff", "dse"]]
        note += (
            f". Here it would choose {favourite!r}, whose elpd is {-gap:.1f} (standard error "
            f"{se:.1f}) below that of {table.index[0]!r}"
        )
    yield note
    if len(table) > 1:
        yield (
            "weights: stacking for the mixture of probabilities that predicts labels best; pool, "
            "exponents of bg.LogLinearPool, which calibrates too"
        )
