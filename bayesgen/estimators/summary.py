"""What a fitted classifier is: columns, classes, priors, evidence and warnings, on one page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import stats as distributions

from bayesgen.datatree import tree
from bayesgen.datatree.tree import POSTERIOR, SAMPLE_STATS
from bayesgen.encoding.literals import listed, one_line, without_controls
from bayesgen.encoding.tables import KeptRows
from bayesgen.families.names import BOUND, CATEGORY, CLASS, FEATURE, FEATURE_BIS, MEMBER
from bayesgen.inference.unlabelled import unlike_labelled
from bayesgen.numerics.special import Array
from bayesgen.posterior.fitted import Fitted, Training
from bayesgen.posterior.pooled import PooledPosterior
from bayesgen.predict.draws import IntervalRequest
from bayesgen.predict.leave_one_out import LabelScore, label_score

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SHOWN = 20  # columns, classes or members in print
_FEW_ROWS = 5  # of a class: fewer are worth a remark


@dataclass(frozen=True)
class Summary:
    """What ``clf.summary()`` returns; `print` shows it, notebooks as HTML.

    Attributes
    ----------
    title : str
    table : xarray.Dataset
        (feature) ``kind``, ``missing`` cells (NaN where statistics do not tell), ``prior`` in the
        column's units, and ``prior_range``, where 90 % of its cells would be under the prior
        alone; (class) ``rows``. Attributes: ``log_evidence``, ``inference``, ``class_prior``;
        where the training rows are known ``log_loss`` of their labels by exact leave-one-out (of
        at most 4000 rows, ``scored_rows``), and that of the class frequencies,
        ``log_loss_of_frequencies``. Of a pool: ``exponent`` and ``interval`` (member),
        ``intercept`` and ``intercept_interval`` (class).
    sentences : tuple of str
        Class counts, priors that are no column's, evidence, leave-one-out, warnings.
    """

    title: str
    table: "xr.Dataset"
    sentences: tuple[str, ...]

    def to_dataframe(self) -> "pd.DataFrame":
        """Return one row per column, or per member of a pool."""
        table = self.table
        if MEMBER in table.dims:
            frame: pd.DataFrame = table["interval"].to_pandas()
            frame.insert(0, "exponent", table["exponent"].values)
            return frame
        return table.drop_dims(CLASS).to_dataframe()

    def _shown(self) -> "tuple[pd.DataFrame, int]":
        """Return the first lines of the table, as text, and how many are left out."""
        frame = self.to_dataframe().rename_axis(None)
        more, frame = len(frame) - SHOWN, frame.iloc[:SHOWN]
        frame = frame.set_axis([one_line(name) for name in frame.index])
        if "missing" in frame:
            missing = [f"{n:.0f}" if n else "" for n in np.nan_to_num(frame["missing"])]
            frame = frame.assign(missing=missing)
            frame.columns = frame.columns.str.replace("_", " ")
            return frame.loc[:, (frame != "").any()], more
        return frame.map("{:.3f}".format), more

    def __repr__(self) -> str:
        lines, (frame, more) = [self.title], self._shown()
        if len(frame):
            rows = [["", *frame.columns], *frame.reset_index().astype(str).values.tolist()]
            width = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines += ["  " + "  ".join(map(str.ljust, row, width)).rstrip() for row in rows]
        if more > 0:
            lines.append(f"  ... and {more} more")
        return without_controls("\n".join([*lines, *self.sentences]))

    def _repr_html_(self) -> str:
        frame, more = self._shown()
        table = frame.to_html(border=0) if len(frame) else ""
        told = [*([f"... and {more} more"] if more > 0 else []), *self.sentences]
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in told)
        html = f"<div><p><b>{escape(self.title)}</b></p>{table}<ul>{items}</ul></div>"
        return without_controls(html)


def with_summary(clf) -> str:
    """HTML for notebooks: scikit-learn's diagram, and once fitted the summary below it."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import estimator_html_repr

    diagram: str = estimator_html_repr(clf)
    try:
        return diagram + clf.summary()._repr_html_()
    except NotFittedError:
        return diagram


def summary(fitted: Fitted, rows: KeptRows | None = None) -> Summary:
    """Columns and kinds, class counts, missing cells, priors, evidence and warnings of a fit.

    `rows` are those to be scored, of a classifier that has kept none.
    """
    posterior, training = fitted.posterior, fitted.training
    coords = fitted.coords
    names = fitted.column_names
    n = len(names)
    kind, words, spread = (np.full(n, "", dtype=object) for _ in range(3))
    missing, of_all = np.full(n, np.nan), []
    stats = posterior.stats.features if posterior.exact else None
    for block in posterior.prior.family.blocks(stats):
        positions = np.arange(n)[block.columns]
        kind[positions] = block.family.column_kind()
        descriptions = prior_words(block.family, len(positions))
        words[positions] = [text for text, _ in descriptions]
        spread[positions] = [limits for _, limits in descriptions]
        missing[positions] = _n_missing(fitted, block)
        if general := words_of_all(block.family):
            of_all.append(general)
    variables: dict[str, Any] = {
        "kind": ((FEATURE,), kind.astype(str)),
        "missing": ((FEATURE,), missing),
        "prior": ((FEATURE,), words.astype(str)),
        "prior_range": ((FEATURE,), spread.astype(str)),
        "rows": ((CLASS,), np.asarray(posterior.stats.count, dtype=float)),
    }
    exact = training.inference == "closed form" and not posterior.prior.family.no_evidence
    exact = exact and not training.unlabelled_weight
    evidence = posterior.prior.log_evidence(posterior.stats) if exact else np.nan
    table = tree.group(variables, {FEATURE: names, CLASS: coords[CLASS]})
    score = label_score(fitted, rows)
    table = table.assign_attrs(
        log_evidence=float(evidence),
        inference=training.inference,
        class_prior=np.asarray(posterior.prior.alpha).tolist(),
        **attributes_of(score),
    )
    how = _ROUTES.get(training.inference, training.inference)
    title = f"{fitted.name}, {how}: {_rows(training.n_rows)}"
    told = _sentences(fitted, [*dict.fromkeys(of_all)], float(evidence))
    return Summary(title, table, (*told, *sentences_of(score, fitted)))


def attributes_of(score: LabelScore | None) -> dict[str, Any]:
    """Return the attributes of a summary's table, if the score is known."""
    names = ("log_loss", "log_loss_of_frequencies", "scored_rows")
    return {} if score is None else dict(zip(names, score, strict=True))


def sentences_of(score: LabelScore | None, fitted: Fitted) -> list[str]:
    """Return the leave-one-out score in words; warn if class frequencies are as good."""
    if score is None:
        return []
    sentences = [
        f"Log loss of the labels, each without its row: {score.log_loss:.3f} nats "
        f"({_rows(score.n_rows)}); of the class frequencies alone: {score.of_frequencies:.3f}."
    ]
    if score.log_loss >= score.of_frequencies > 0:  # 0: there is one class
        advice = "these columns do not tell the classes apart, or too few rows do"
        if not fitted.posterior.members:
            advice = (
                "the model does not fit the rows. Take LogLinearPool() (on the command line "
                "--model auto), or calibrate this model by LogLinearPool([clf])"
            )
        sentences.append(
            f"Warning: its probabilities are no better than class frequencies: {advice}."
        )
    return sentences


def _n_missing(fitted: Fitted, block) -> float | Array:
    """Missing cells of the columns of a block, NaN where statistics do not tell."""
    cells = None if block.stats is None else block.family.observed_cells(block.stats)
    if cells is None:
        family = block.family
        complete = not family.fits_missing or family.missing != "marginalised"
        return 0.0 if complete and block.stats is not None else np.nan
    lost: Array = fitted.posterior.stats.count.sum() - cells.sum(axis=0)
    lost = np.maximum(np.round(lost, 6), 0.0)
    return lost


def _sentences(fitted: Fitted, of_all: list[str], evidence: float) -> list[str]:
    training, prior, rows = fitted.training, fitted.posterior.prior, fitted.posterior.stats.count
    sentences = [rows_of_classes(fitted, rows)]
    if prior.family.discriminative:
        sentences.append("Discriminative: p(y | x) alone; nothing is said of x.")
    elif np.isfinite(prior.alpha).all():
        alpha = count(np.ravel(prior.alpha), "pseudo-count")
        sentences.append(f"Class weights: {alpha} of each class.")
    sentences += [f"Prior: {general}." for general in of_all]
    choice = training.prior.words() if training.prior else ""
    if choice:
        sentences.append(f"{choice}. The evidence is conditional on it.")
    if evidence == evidence:
        sentences.append(f"Log evidence: {evidence:.2f} nats.")
    if why := prior.family.no_evidence:
        sentences.append(f"No evidence: {why}.")
    return sentences + [f"Warning: {text}." for text in _cautions(fitted, rows)]


def rows_of_classes(fitted: Fitted, rows: Array) -> str:
    """Return the (C,) numbers of rows of the classes, in words."""
    training = fitted.training
    counts = zip(map(one_line, fitted.classes), rows, strict=True)
    each = listed([f"{name} ({n:g})" for name, n in counts], SHOWN)
    labelled = training.n_rows - training.n_unlabelled
    weighted = rows.sum() != labelled or (rows != np.round(rows)).any()
    how = ", counted by weight as missing cells are" if weighted else ""
    return f"Rows{how}: {each}."


def _cautions(fitted: Fitted, rows: Array) -> list[str]:
    """Return what to look at before the numbers are believed."""
    training = fitted.training
    cautions = [f"column {name!r} {why}" for name, why in training.suspects.items()]
    if len(few := np.flatnonzero(rows < _FEW_ROWS)):
        names = listed([f"{one_line(fitted.classes[c])} ({rows[c]:g})" for c in few], SHOWN)
        cautions.append(
            f"classes with fewer than {_FEW_ROWS} rows, where the prior decides: {names}"
        )
    n, share = training.n_unlabelled, training.unlabelled_weight
    if share is not None:
        cautions.append(unlabelled_rows(n, share))
        if training.weighed is not None and len(unlike := training.weighed.unlike):
            cautions.append(unlike_labelled(unlike))
    elif n:
        cautions.append(f"{_rows(n)} without a label were averaged over")
    if training.inference != "closed form":
        cautions += _cautions_of_draws(training)
    return cautions


def _cautions_of_draws(training: Training) -> list[str]:
    from bayesgen.inference import nuts

    draws: Any = training.draws
    stats: Any = draws[SAMPLE_STATS].to_dataset() if SAMPLE_STATS in draws else {}
    return nuts.diagnose(draws[POSTERIOR].to_dataset(), stats).complaints()


def unlabelled_rows(n: int, share: float) -> str:
    """Return the weight of rows without a label, in words."""
    return f"{n} unlabelled row{' counts' if n == 1 else 's count'} as {share * n:.1f}"


_ROUTES = {"nuts": "sampled by NUTS"}


def _rows(n: float) -> str:
    return f"{n:g} row" + ("" if n == 1 else "s")


def summary_of_pool(fitted: Fitted, prob: float | None) -> Summary:
    """Exponents and intercepts with intervals, and what they mean."""
    pooled = cast(PooledPosterior, fitted.posterior)
    request = IntervalRequest.of(prob, "eti")
    tails = [(1 - request.prob) / 2, (1 + request.prob) / 2]
    exponents, intercepts = (np.quantile(v, tails, axis=0).T for v in pooled.exponents.flat)
    mean, mean_intercept = pooled.exponents.mean
    variables: dict[str, Any] = {
        "exponent": ((MEMBER,), mean),
        "interval": ((MEMBER, BOUND), exponents),
        "intercept": ((CLASS,), mean_intercept),
    }
    if pooled.prior.family.intercepts:
        variables["intercept_interval"] = ((CLASS, BOUND), intercepts)
    score = label_score(fitted)
    table = tree.group(variables, fitted.coords | {BOUND: ["lower", "upper"]}).assign_attrs(
        prob=request.prob, rows=pooled.n_rows, **attributes_of(score)
    )
    title = f"{fitted.name}: exponents from {pooled.n_rows} rows left out in turn"
    told = _pool_sentences(fitted, exponents[0])
    return Summary(title, table, (*told, *sentences_of(score, fitted)))


def _pool_sentences(fitted: Fitted, interval: Array) -> list[str]:
    """Say what exponents mean; `interval` (2,) is that of the first."""
    pooled = cast(PooledPosterior, fitted.posterior)
    exponents, members = pooled.exponents.mean[0], pooled.members
    total = float(exponents.sum())
    sentences = [rows_of_classes(fitted, pooled.count)]
    if len(members) == 1:
        low, high = interval
        if high < 1:
            meaning = "the model is overconfident: it counts evidence more than once"
        elif low > 1:
            meaning = (
                "the model is not sure enough: its probabilities are less extreme than its evidence"
            )
        else:
            meaning = "the interval holds 1: no sign that its evidence is over- or undercounted"
        sentences.append(f"Exponent {total:.2f} in place of 1: {meaning}.")
    else:
        k = int(np.argmax(exponents))
        top = members[k].name
        share = exponents[k] / total
        parts = len({member.selection for member in members})
        right = "a single model that were right" if parts == 1 else "right models of each part"
        sentences.append(
            f"{top!r} has {share:.0%} of the exponents. Their sum is {total:.2f}; {right} would "
            f"have {parts}."
        )
    if any(member.fitted.posterior.n_draws for member in members):
        sentences.append("Scores of sampled members are by Pareto-smoothed importance sampling.")
    for name, reason in fitted.training.left_out.items():
        sentences.append(f"Left out: {name} ({reason}).")
    odd = fitted.training.suspects
    return sentences + [f"Warning: column {name!r} {why}." for name, why in odd.items()]


# ------------------------------------------------------------------------------------------------
# The prior of each column in words and in the column's units.

_TAIL = 0.05  # of the prior range of a cell, at either end

Values = Mapping[str, Array]  # {hyper-parameter: its values of one column, over classes}


def prior_words(family, n_columns: int) -> list[tuple[str, str]]:
    """Return (prior in words, range of a cell under it or "") for each column of a block."""
    family = family.margins()
    arrays = {k: (dims, a) for k, (dims, a) in family.arrays().items() if FEATURE in dims}
    described = [("", "")] * n_columns
    for names, words in _WORDS:
        if n_columns and arrays.keys() >= {*names}:
            columns = [{k: _at(*arrays[k], j) for k in names} for j in range(n_columns)]
            if "shift" in arrays:
                columns = [
                    v | {"mu": v["mu"] + shift}
                    for v, shift in zip(columns, arrays["shift"][1], strict=True)
                ]
            return [words(family.kind, values) for values in columns]
    return described


def _at(dims: tuple[str, ...], value: Array, j: int) -> Array:
    """Return the values of column j, flat; for categories those that exist."""
    if FEATURE_BIS in dims and value.ndim > 1:
        value, dims = np.diagonal(value, axis1=-2, axis2=-1), dims[:-1]
    axis = dims.index(FEATURE) - len(dims)
    value = value.take(j if value.shape[axis] > 1 else 0, axis)
    return np.ravel(value[value > 0] if CATEGORY in dims else value)


def shown(values: Array) -> str:
    """One number, or the range of several."""
    low, high = float(values.min()), float(values.max())
    same = high - low <= 1e-9 * max(abs(low), abs(high))
    return _number(low) if same else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"


def count(values: Array, what: str) -> str:
    """Return a number of things in words."""
    text = shown(values)
    return f"{text} {what}" + ("" if text == "1" else "s")


def _gaussian(kind: str, v: Values) -> tuple[str, str]:
    words = (
        f"mean {shown(v['mu'])}, worth {count(v['kappa'], 'row')}; "
        f"sd {shown(np.sqrt(v['sigma2']))}, worth {count(v['nu'], 'row')}"
    )
    half = distributions.t.isf(_TAIL, v["nu"]) * np.sqrt(v["sigma2"] * (1 + 1 / v["kappa"]))
    low, high = (v["mu"] - half).min(), (v["mu"] + half).max()
    if kind == "lognormal":
        words, low, high = f"logarithm: {words}", np.exp(low), np.exp(high)
    return words, f"{_number(low)} to {_number(high)}"


def _poisson(kind: str, v: Values) -> tuple[str, str]:
    low, high = distributions.nbinom.ppf(
        [[_TAIL], [1 - _TAIL]], v["shape"], v["rate"] / (1 + v["rate"])
    )
    words = f"{shown(v['shape'] / v['rate'])} a row, worth {count(v['rate'], 'row')}"
    return words, f"{_number(low.min())} to {_number(high.max())}"


def _bits(kind: str, v: Values) -> tuple[str, str]:
    return f"{count(v['alpha'], 'pseudo-count')} of ones, {shown(v['beta'])} of zeros", ""


_WORDS: tuple[tuple[tuple[str, ...], Callable[[str, Values], tuple[str, str]]], ...] = (
    (("mu", "kappa", "nu", "sigma2"), _gaussian),
    (("shape", "rate"), _poisson),
    (("alpha", "beta"), _bits),
    (("alpha",), lambda kind, v: (f"{count(v['alpha'], 'pseudo-count')} of each", "")),
    (
        ("location", "scale"),
        lambda kind, v: (f"around {shown(v['location'])}, in units of {shown(v['scale'])}", ""),
    ),
    (("rate",), lambda kind, v: (f"around {shown(v['rate'])} a row", "")),
)


def words_of_all(family) -> str:
    """Return what belongs to no single column: tokens, tables of pairs, forms of the model."""
    arrays = family.arrays()
    said = [
        f"{name} {shown(arrays[name][1])}"
        for name in ("alpha", "strength", "root_weight", "concentration")
        if name in arrays and FEATURE not in arrays[name][0]
    ]
    for name, value in family.settings().items():
        if name not in ("length", "seed") and type(value) in (str, int, float):
            said.append(f"{name}={value!r}")
    return ", ".join(said)
