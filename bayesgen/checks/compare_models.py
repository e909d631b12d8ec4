"""Compare several models of the same training rows by exact leave-one-out."""

import textwrap
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.checks.compare import rows_of_each, score
from bayesgen.encoding.literals import count, listed
from bayesgen.errors import placed
from bayesgen.families.errors import NoPosteriorError
from bayesgen.families.names import GIVEN_TOTAL, MODEL
from bayesgen.inference.exponents import sample
from bayesgen.numerics.rows import class_counts
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.fitted import (
    Fitted,
    at_training_rows,
    fitted_models,
    fitted_of,
    through_pipelines,
)
from bayesgen.posterior.pooled import Evidence, LogLinear, weights_without
from bayesgen.predict import leave_one_out
from bayesgen.predict.leave_one_out import TrainingRows

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from arviz_stats.utils import ELPDData


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
) -> "tuple[ELPDData, Array, TrainingRows]":
    """Return the score; (n, C) log joint densities of the n rows that it scores; those rows.

    Arguments are those of `GenerativeClassifier.loo`.
    """
    from bayesgen.checks.loo import elpd

    if target not in ("label", "joint"):
        raise ValueError(f"target must be 'label' or 'joint', got {target!r}")
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
        None if k is None else k[positions],
        posterior.n_draws,
        n_groups,
    )
    return scores, log_joint, some


_WIDTH = 100  # of notes
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
        ``stacking``, weights of a mixture of the models; ``evidence_weight``, p(model | X, y) at
        equal prior weights; ``pool``, exponents of a `LogLinearPool` of these models.
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

    The table has three kinds of weights:

    - ``stacking``: the mixture of the models' probabilities that predicts best (Yao et al. 2018,
      Using stacking to average Bayesian predictive distributions).
    - ``pool``: exponents of the product of the probabilities, which also calibrate. They do not sum
      to 1; one far below 1 shows that its model is too sure. `LogLinearPool` adds intercepts.
    - ``evidence_weight``: Bayesian model averaging. Use it only if one of the models may be true
      for x and y. Evidence is that of p(x, y), and x dominates it: a model can describe x better
      and separate the classes worse. It also depends on how wide the priors are. Models are
      compared by evidence if they describe the same data: densities or probabilities, of the same
      columns, bins and tokens. NaN: it is not known, or the rows have chosen the structure.

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
    import xarray as xr

    if not isinstance(models, Mapping) or not models:
        raise ValueError("models must be {name: fitted classifier}, with one or more of them")
    every = fitted_models(models, "compare_models")
    rows = rows_of_each(models, X)
    scores_of, columns, joints = {}, {}, {}
    for name, clf in models.items():
        with placed(f"model {name!r}"):
            scores_of[name], joints[name], scored = loo(
                every[name], rows[name], y, "label", sample_weight
            )
        codes = scored.codes
        scores = score(joints[name], codes)
        columns[name] = {
            "elpd": scores_of[name].elpd,
            "se": scores_of[name].se,
            "log_loss": -scores_of[name].elpd / len(codes),
            "accuracy": scores["accuracy"],
            "ece": scores["ece"],
            "log_evidence": _log_evidence(clf),
        }
    order = sorted(models, key=lambda name: -np.nan_to_num(scores_of[name].elpd, nan=-np.inf))
    best = scores_of[order[0]]
    for name in order:
        gap = _gap(scores_of[name].elpd_i.values, best.elpd_i.values)
        columns[name]["elpd_diff"] = float(gap.sum())
        columns[name]["dse"] = _se(gap)
    stacking, remarks = _stacking({name: scores_of[name] for name in order})
    evidence = np.array([columns[name]["log_evidence"] for name in order])
    described = [
        _what_is_described(clf) for clf in models.values() if not clf.fitted_.posterior.members
    ]
    same = all(one == described[0] for one in described)
    weights = {
        "stacking": stacking,
        "pool": _exponents([joints[name] for name in order], codes, scored.weight),
        "evidence_weight": _evidence_weights(evidence, same),
    }
    names = ("elpd", "se", "elpd_diff", "dse", "log_loss", "accuracy", "ece")
    table = xr.Dataset(
        {key: (MODEL, [columns[name][key] for name in order]) for key in names}
        | {"stacking": (MODEL, weights["stacking"]), "pool": (MODEL, weights["pool"])}
        | {"log_evidence": (MODEL, evidence)}
        | {"evidence_weight": (MODEL, weights["evidence_weight"])},
        coords={MODEL: order},
        attrs={"rows": best.n_data_points},
    )
    notes = (
        *_of_differences(table),
        *_of_draws(scores_of),
        *remarks,
        *_of_evidence(table, same, scores_of),
    )
    return ModelComparison(table, {name: scores_of[name] for name in order}, notes)


def _log_evidence(clf) -> float:
    closed = clf.inference_ == "closed form"
    try:
        return float(clf.log_evidence_) if closed else float("nan")
    except NoPosteriorError:  # a predictive that is no exact posterior's
        return float("nan")


def _gap(a: Array, b: Array) -> Array:
    """a - b, and 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, a - b)


def _se(terms: Array) -> float:
    """Standard error of the sum of independent terms; NaN where one is infinite."""
    if not np.isfinite(terms).all():
        return float("nan")
    return float(np.sqrt(len(terms) * terms.var()))


def _stacking(loo: "Mapping[str, ELPDData]") -> tuple[Array, tuple[str, ...]]:
    """ArviZ's stacking weights, and what it warns of; a model that is impossible gets none."""
    import arviz as az

    sound = {name: scores for name, scores in loo.items() if np.isfinite(scores.elpd)}
    weights = np.zeros(len(loo))
    if len(sound) < 2:
        weights[[name in sound for name in loo]] = 1.0
        return (weights if sound else np.full(len(loo), np.nan)), ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = az.compare(sound, method="stacking", round_to="none")
    # those of Pareto k are said once, with the names of the models
    remarks = {str(w.message) for w in caught if "chance" in str(w.message)}
    weight = table["weight"].clip(0, 1)
    column = {name: i for i, name in enumerate(loo)}
    for name in sound:
        weights[column[name]] = weight[name] / weight.sum()
    return weights, tuple(sorted(remarks))


def _exponents(joints: list[Array], codes: Array, weight: Array) -> Array:
    """Mean exponents of the pool of all models, under the default prior of `LogLinearPool`."""
    prior = LogLinear(1 / len(joints))
    log_pi = weights_without(class_counts(codes, joints[0].shape[1], weight), codes, weight)
    evidence = Evidence.of(joints, [None] * len(joints), log_pi, np.ones(len(codes)))
    return sample(evidence, codes, weight, prior).mean[0]


def _what_is_described(clf) -> dict[str, Any]:
    """Return what the evidence is a density of, by column: only such models are compared."""
    fitted = fitted_of(clf, "compare_models")
    names, read = fitted.column_names or ["document"], fitted.reader.cells_as_read
    described: dict[str, Any] = {}
    for family, columns in ((b.family, b.columns) for b in clf.prior_.family.blocks()):
        positions = np.arange(len(names))[columns]
        left_out = np.broadcast_to(getattr(family, "ignored", False), len(positions))
        what = family.describes or type(family)
        together = tuple(positions) if what == GIVEN_TOTAL else ()
        for j in positions[~left_out]:
            described[str(names[j])] = (what, together, read[j])
    return described


def _evidence_weights(log_evidence: Array, same: bool) -> Array:
    if not same or np.isnan(log_evidence).any():
        return np.full(len(log_evidence), np.nan)
    weight = np.exp(log_evidence - log_evidence.max())
    return np.asarray(weight / weight.sum())


# ------------------------------------------------------------------------------------------ notes


def _of_differences(table: "xr.Dataset") -> list[str]:
    names = table[MODEL].values.tolist()
    pairs = zip(names, table["elpd_diff"].values, table["dse"].values, strict=True)
    close = [name for name, gap, se in [*pairs][1:] if abs(gap) <= _APART * se]
    sentences = []
    if close:
        sentences.append(
            f"{listed(map(repr, close))} may be as good as {names[0]!r}: the difference is "
            f"within {_APART} standard errors"
        )
    if impossible := [n for n, v in zip(names, table["elpd"].values, strict=True) if v == -np.inf]:
        sentences.append(
            f"{listed(map(repr, impossible))} gave some row probability 0 of being what it is: "
            "the score is minus infinity"
        )
    return sentences


def _of_draws(loo: "Mapping[str, ELPDData]") -> list[str]:
    sentences = []
    for name, scores in loo.items():
        if scores.warning:
            bad = int((scores.pareto_k > scores.good_k).sum())
            sentences.append(
                f"{name!r} was fitted by draws, and for {bad} of {scores.n_data_points} rows the "
                f"score without the row is not reliable (Pareto k above {scores.good_k:.2f}): the "
                "elpd is too high, perhaps by much"
            )
    return sentences


def _of_evidence(table: "xr.Dataset", same: bool, loo: "Mapping[str, ELPDData]") -> list[str]:
    evidence = table["log_evidence"].values
    defined = ~np.isnan(evidence)
    if not defined.any():
        return []
    names = table[MODEL].values.tolist()
    note = (
        "log evidence is that of p(x, y), which x dominates: it is not a guide to classification; "
        "choose by elpd"
    )
    if not same:
        return [
            f"{note}. Nor can it be compared here: the models describe different things (densities "
            "or probabilities, other columns, bins or tokens), so there are no evidence weights"
        ]
    favourite = int(np.nanargmax(evidence))
    if favourite and defined.sum() > 1:
        gap, se = float(table["elpd_diff"][favourite]), float(table["dse"][favourite])
        note += (
            f". Here it would choose {names[favourite]!r}, whose elpd is {-gap:.1f} (standard "
            f"error {se:.1f}) below that of {names[0]!r}"
        )
    sentences = [note]
    if len(loo) > 1:
        text = (
            "weights: stacking for the mixture of probabilities that predicts labels best; pool, "
            "exponents of bg.LogLinearPool, which calibrates too"
        )
        if not np.isnan(table["evidence_weight"]).any():
            text += "; evidence_weight (Bayesian model averaging) only if one of these is the truth"
        sentences.append(text)
    return sentences
