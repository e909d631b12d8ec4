"""Compare plug-ins with the full predictive on held-out rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bayesgen.datatree import tree
from bayesgen.encoding.labels import codes_of
from bayesgen.encoding.literals import count
from bayesgen.families.contract import Family
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS, MODEL, PREDICTIVE, Method
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.fitted import Fitted, fitted_models, fitted_of, through_pipelines
from bayesgen.predict.probabilities import log_joint

if TYPE_CHECKING:
    import xarray as xr

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
