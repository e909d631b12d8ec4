r"""What each feature contributes to the log-odds of two classes, and how sure that is.

Two sums, which are not the same numbers:

- *mean*: given theta, :math:`\log \frac{p(a, x \mid \theta)}{p(b, x \mid \theta)}` is a sum over
  features. Each term has a distribution under the posterior of theta; the means add up to the
  mean of the log-odds. Quantiles do not add up.
- *predictive*: where the features are independent given the class also when theta is integrated
  out, :math:`\log p(x_j \mid a, D) - \log p(x_j \mid b, D)` add up to the log-odds of
  p(y | x, D). A document's tokens are not: the next depends on those before. A token's term is the
  mean of its terms in the chain rule over all orders of the tokens, which has a closed form.
  Correlated features, or features that share a variance, have no such sum without an order, and
  get none.

The terms of a mean come from the cumulant generating function of one cell, as if all others were
missing; so do their intervals (`uncertainty`). Correlated features (one covariance: the linear
form; several: parts of the quadratic forms) have means in closed form, and intervals by draws.

N rows, D features, S draws.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from bayesgen.datatree import tree
from bayesgen.families import capabilities
from bayesgen.families.contract import ConjugateFamily, Theta
from bayesgen.families.errors import MissingCapabilityError, NotLinearError
from bayesgen.families.names import BOUND, CLASS, FEATURE, MEMBER, OBS
from bayesgen.families.shared.separate_columns import separate_columns
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, distinct_pairs, log_gamma_difference
from bayesgen.posterior.drawn import DrawnPosterior, effective_sample_size, of_rows
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import (
    ClassModel,
    draw_shape,
    log_class_weights,
    log_weights,
    split_chains,
)
from bayesgen.posterior.pooled import Member, MemberRows, PooledPosterior
from bayesgen.predict.intervals import contrast_interval
from bayesgen.predict.inversion import TINY, Contrast, WeightCGF, class_weights, cumulants
from bayesgen.predict.probabilities import posterior_of
from bayesgen.predict.request import IntervalRequest

if TYPE_CHECKING:
    import xarray as xr


N_DRAWS = 4096
_ITEMS = 1 << 14  # cells whose distributions are found at a time
_CELLS = 1 << 22  # numbers of one array of draws: 32 MiB
_ODDS = np.array([1.0, -1.0])
_POINT = np.array([[[0.3 + 0.7j, 0.2 - 0.9j]]])  # where no two distributions agree by chance
TERMS = "the log-odds as a sum over features"


class Terms(NamedTuple):
    """(N, D + 1) each: the terms of the features, and last that of the class weights."""

    mean: Array
    lower: Array
    upper: Array
    error: Array  # of the posterior probability below an end: bound, or standard error of draws
    predictive: Array  # NaN where features have none: see `additive`


@dataclass(frozen=True)
class Request(IntervalRequest):
    """Which intervals, of which log-odds.

    Parameters
    ----------
    prob, kind, method
        As in `IntervalRequest`.
    given : {"training"}
        A term of one feature has no interval given the row: its distribution would depend on all
        other features of the row.
    class_prior : (C,), optional
        Class weights that replace the fitted ones.
    seed : int
        Of draws.
    intervals : bool
        False: no ends, where means alone are asked for.
    """

    class_prior: Array | None = None
    seed: int = 0
    intervals: bool = True

    def __post_init__(self) -> None:
        """Refuse what is not one of these."""
        super().__post_init__()
        if self.given != "training":
            raise ValueError(
                "the interval of the term of one feature is given='training' only: given the row "
                "too it would depend on every other feature of the row, and no longer be that "
                "feature's own; predict_interval(given='training and row') is of all together"
            )


# ------------------------------------------------------------------------------- closed form


def terms(model: ClassModel, X: Matrix, n_features: int, pairs: Array, request: Request) -> Terms:
    """Terms of the log-odds of class ``pairs[i, 0]`` against ``pairs[i, 1]`` in each row i.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    X : (N, D)
    n_features : int
        D; of token sequences the number of distinct n-grams in X.
    pairs : (N, 2)

    Examples
    --------
    The thirteen samples: p(y = 0 | (1, 1), D) = 1568/4493.

    >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    >>> ones, zeros = np.array([[2.0, 2], [5, 5]]), np.array([[1.0, 1], [9, 9]])
    >>> model = ClassModel(np.array([2.0, 13.0]), BetaBernoulli(ones, zeros))
    >>> found = terms(model, np.array([[1, 1]]), 2, np.array([[0, 1]]), Request(0.9))
    >>> found.predictive.round(3), float(np.exp(found.predictive.sum()) * (4493 - 1568))
    (array([[ 0.624,  0.624, -1.872]]), 1568.0)
    >>> found.mean.round(3)
    array([[ 0.597,  0.597, -2.103]])
    """
    shape = (X.shape[0], n_features + 1)
    out = Terms(*(np.zeros(shape) for _ in Terms._fields))
    every = np.arange(n_features)
    for columns, family, *_ in model.family.blocks():
        x = X if isinstance(columns, slice) else X[:, columns]
        if family.separable:
            _put_terms(out, (slice(None), every[columns]), _separable(family, x, pairs, request))
            continue
        tokens = family.capability(capabilities.TokenDraws)
        urns = None if tokens is None else tokens.urns(x)
        for (a, b), rows in by_pair(pairs):
            if urns is not None:
                part = _of_urns(urns, [a, b], rows, n_features, request)
            else:
                part = _correlated(family.at(CLASS, [a, b]), x[rows], request)
            _put_terms(out, (rows[:, None], every[columns]), part)
    _put_terms(out, (slice(None), -1), _intercept(model, X, pairs, request))
    return out


def _put_terms(out: Terms, at: Any, part: Terms) -> None:
    for mine, theirs in zip(out, part, strict=True):
        mine[at] = theirs


def _along_paths(model: ClassModel, X: Matrix, n: int, pairs: Array, request: Request) -> Terms:
    """Terms of a model that has class probabilities alone: all of it is theirs."""
    out = Terms(*(np.zeros((X.shape[0], n + 1)) for _ in Terms._fields))
    family, tail = model.family, (1 - request.prob) / 2
    own = capabilities.require(family, capabilities.FeatureTerms, TERMS)
    for (a, b), rows in by_pair(pairs):
        terms, rest = own.log_odds_terms(X[rows], a, b)
        out.predictive[rows] = np.column_stack([terms, rest])
        for at, columns, draws in _term_draws(family, X[rows], request.seed, a, b):
            cells = np.ix_(rows[at], columns)
            out.mean[cells] = draws.mean(axis=0)
            ends = request.ends_of_draws(np.moveaxis(draws, 0, -1))
            out.lower[cells], out.upper[cells] = ends
            error = np.sqrt(tail * (1 - tail) / len(draws))
            out.error[cells] = np.where(ends[0] == ends[1], 0.0, error)
    return out


def additive(family: ConjugateFamily) -> bool:
    """Whether the features have predictive terms that add up to the predictive log-odds."""
    families = (block.family for block in family.blocks())
    return all(f.independent or f.capability(capabilities.TokenDraws) is not None for f in families)


def by_pair(pairs: Array) -> Iterator[tuple[tuple[int, int], Array]]:
    """((a, b), rows) of the distinct pairs of classes (N, 2)."""
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    for k, (a, b) in enumerate(distinct.tolist()):
        yield (a, b), np.flatnonzero(which.ravel() == k)


def _in_blocks(cgf: Any, n: int, t: Array) -> Array:
    """(K, n) values at t (K, 1, 2), for some items at a time."""
    blocks = np.split(np.arange(n), range(_ITEMS, n, _ITEMS))
    return np.concatenate([cgf(items, t) for items in blocks], axis=1)


def _distributions(source: Any, predictive: Array, request: Request) -> Terms:
    """(n,) terms of n items: ``source.cgf(items, t)`` is (K, n), t (K, n or 1, 2)."""
    n = len(predictive)
    mean, lower, upper = (predictive.copy() for _ in range(3))
    out = Terms(mean, lower, upper, np.zeros(n), predictive)
    finite = np.flatnonzero(np.isfinite(predictive))  # else impossible under one class
    for start in range(0, len(finite), _ITEMS):
        items = finite[start : start + _ITEMS]
        if not request.intervals:
            out.mean[items] = source.cgf(items, 1j * TINY * _ODDS[None, None])[0].imag / TINY
            continue
        contrast = Contrast(source, items, lambda t: np.zeros(len(t)), _ODDS)
        k = cumulants(contrast)
        ends = contrast_interval(contrast, request, k=k)
        out.mean[items], out.error[items] = k.mean, ends.error
        out.lower[items], out.upper[items] = ends.low, ends.high
    return out


@dataclass(frozen=True)
class _Cells:
    """Items: cells, each of a pair of classes (2, n)."""

    columns: capabilities.SeparateColumns
    x: Array
    column: Array
    classes: Array

    def cgf(self, items: Array, t: Array) -> Array:
        at = self.x[items], self.column[items], self.classes[:, items]
        return self.columns.cell_cgf(*at, t)


def _separable(family: ConjugateFamily, X: Matrix, pairs: Array, request: Request) -> Terms:
    """Each distinct cell of a column and a pair once, and cells of one distribution once.

    Columns with equal pseudo-counts, as words that are as rare as each other, are told by one value
    of the cumulant generating function, which is then the same to the last bit.
    """
    x = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    distinct, pair = np.unique(pairs, axis=0, return_inverse=True)
    seen = ~np.isnan(x)
    row, column = np.nonzero(seen)
    cell = np.stack([x[seen], column, pair.ravel()[row]])
    order = np.lexsort(cell)
    cell = cell[:, order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (cell[:, 1:] != cell[:, :-1]).any(axis=0)
    item = np.empty(len(order), dtype=np.intp)
    item[order] = np.cumsum(fresh) - 1
    values, (columns, which) = cell[0, fresh], cell[1:, fresh].astype(np.intp)
    cells = _Cells(separate_columns(family), values, columns, distinct[which].T)
    log_p = _in_blocks(cells.cgf, len(values), np.eye(2)[:, None])
    with np.errstate(invalid="ignore"):  # impossible under both
        predictive = log_p[0] - log_p[1]
    value = _in_blocks(cells.cgf, len(values), _POINT)[0]
    _, law = distinct_pairs(value.real, value.imag)
    _, law = distinct_pairs(law, predictive)
    _, one = np.unique(law, return_index=True)
    each = replace(cells, x=values[one], column=columns[one], classes=cells.classes[:, one])
    found = _distributions(each, predictive[one], request)
    out = Terms(*(np.zeros(x.shape) for _ in Terms._fields))
    _put_terms(out, seen, Terms(*(part[law[item]] for part in found)))
    return out if family.independent else out._replace(predictive=np.full(x.shape, np.nan))


@dataclass(frozen=True)
class _Tokens:
    """Items: draws from urns, (2, n) pseudo-counts of two classes."""

    n: Array
    cell: Array
    total: Array

    def cgf(self, items: Array, t: Array) -> Array:
        out: Any = 0.0
        for c in range(2):
            power = t[..., c] * self.n[items]
            out = out + log_gamma_difference(self.cell[c, items], power)
            out = out - log_gamma_difference(self.total[c, items], power)
        return out


def _of_urns(
    urns: capabilities.Urns, pair: list[int], rows: Array, n_features: int, request: Request
) -> Terms:
    """Tokens of some rows; a feature that a row does not show contributes 0."""
    place = np.full(int(max(urns.row.max(initial=-1), rows.max(initial=-1))) + 1, -1)
    place[rows] = np.arange(len(rows))
    own = np.flatnonzero(place[urns.row] >= 0)
    n, cell, total = urns.n[own], urns.cell[pair][:, own], urns.total[pair][:, own]
    drawn = urns.drawn[own]
    # mean over all orders of the row's draws of what the token adds in the chain rule
    share = log_gamma_difference(cell, n) - n / drawn * log_gamma_difference(total, drawn)
    table = np.concatenate([n[None], cell, total])
    distinct, first, item = np.unique(table, axis=1, return_index=True, return_inverse=True)
    tokens = _Tokens(distinct[0], distinct[1:3], distinct[3:])
    found = _distributions(tokens, (share[0] - share[1])[first], request)
    out = Terms(*(np.zeros((len(rows), n_features)) for _ in Terms._fields))
    at = place[urns.row[own]], urns.feature[own]
    for mine, theirs in zip(out[:4], found, strict=False):
        mine[at] = theirs[item.ravel()]
    out[4][at] = share[0] - share[1]
    return out


def _correlated(family: ConjugateFamily, X: Matrix, request: Request) -> Terms:
    """Means in closed form, intervals from draws that are the same for all rows."""
    mean, _ = capabilities.require(family, capabilities.FeatureTerms, TERMS).log_odds_terms(X, 0, 1)
    if not request.intervals:
        unknown = np.full(mean.shape, np.nan)
        return Terms(mean, unknown, unknown, unknown, unknown)
    lower, upper = np.zeros(mean.shape), np.zeros(mean.shape)
    for rows, columns, draws in _term_draws(family, X, request.seed):
        at = rows[:, None], columns
        lower[at], upper[at] = request.ends_of_draws(np.moveaxis(draws, 0, -1))
    tail = (1 - request.prob) / 2
    error = np.full(mean.shape, np.sqrt(tail * (1 - tail) / N_DRAWS))
    return Terms(
        mean, lower, upper, np.where(lower == upper, 0.0, error), np.full(mean.shape, np.nan)
    )


def _term_draws(
    family: ConjugateFamily, X: Matrix, seed: int, a: int = 0, b: int = 1
) -> Iterator[tuple[Array, Array, Array]]:
    """As in `TermDraws`; elsewhere theta is drawn, in blocks, and the same for all rows."""
    if (closed := family.capability(capabilities.TermDraws)) is not None:
        yield from closed.draw_log_odds_terms(np.random.default_rng(seed), X, a, b, N_DRAWS)
        return
    own = capabilities.require(family, capabilities.FeatureTerms, TERMS)
    block = max(1, _CELLS // max(1, family.n_parameters()))
    sizes = [min(block, N_DRAWS - k) for k in range(0, N_DRAWS, block)]
    columns, step = np.arange(X.shape[1]), max(1, _CELLS // (N_DRAWS * max(1, X.shape[1])))
    for start in range(0, X.shape[0], step):
        rng, x = np.random.default_rng(seed), X[start : start + step]
        draws = [own.log_odds_terms(x, a, b, family.draw(rng, size))[0] for size in sizes]
        yield np.arange(start, start + x.shape[0]), columns, np.concatenate(draws)


@dataclass(frozen=True)
class _Intercepts:
    """Items: rows, each of a pair of classes; what no feature accounts for, and the weights."""

    rest: Sequence[tuple[capabilities.UnattributedTerm, Matrix]]
    weights: WeightCGF
    pairs: Array
    unit: Array  # (C, C)

    def cgf(self, items: Array, t: Array) -> Array:
        out = np.empty((len(t), len(items)), dtype=t.dtype)
        for (a, b), own in by_pair(self.pairs[items]):
            s = t @ self.unit[[a, b]]
            out[:, own] = self.weights(s)
            for family, x in self.rest:
                out[:, own] += family.rest_cgf(x[items[own]], s)
        return out


def _intercept(model: ClassModel, X: Matrix, pairs: Array, request: Request) -> Terms:
    """(N,) terms of the class weights, and of what no feature accounts for."""
    prior = request.class_prior
    with np.errstate(invalid="ignore"):  # NaN where neither class can be
        ratio = log_weights(model.alpha / model.alpha.sum() if prior is None else prior)[pairs]
        predictive = ratio[:, 0] - ratio[:, 1]
    rest, kind = [], pairs
    for columns, family, *_ in model.family.blocks():
        if (own := family.capability(capabilities.UnattributedTerm)) is not None:
            rest.append((own, X if isinstance(columns, slice) else X[:, columns]))
            kind = np.column_stack([pairs, np.isnan(X)])
    _, one, item = np.unique(kind, axis=0, return_index=True, return_inverse=True)
    weights, unit = class_weights(model, prior), np.eye(len(model.alpha))
    source = _Intercepts([(f, x[one]) for f, x in rest], weights, pairs[one], unit)
    found = _distributions(source, predictive[one], request)
    return Terms(*(part[item.ravel()] for part in found))


# ------------------------------------------------------------------------------------------------
# What features contribute to the log-odds of two classes, from posterior draws that are given.
#
# Terms as above, without a predictive: draws have none for one feature.
#
# N rows, D features.

_BEYOND = 1e300  # nats: of a class that cannot be


def terms_of_draws(
    model: ClassModel, theta: Theta, X: Matrix, n_features: int, pairs: Array, request: Request
) -> Terms:
    """As `terms`, from draws {name: (chain, draw, *dims)}; without a predictive.

    ``error`` is a Monte Carlo standard error, for Markov chains.
    """
    out = Terms(*(np.zeros((X.shape[0], n_features + 1)) for _ in range(5)))
    every = np.arange(n_features)

    put = partial(_put, out, request)
    for (a, b), rows in by_pair(pairs):
        log_pi = _log_weights(model, theta, request.class_prior, X)
        with np.errstate(invalid="ignore"):  # NaN where neither class can be
            ratio = log_pi[..., a] - log_pi[..., b]
        rest = ratio[..., rows]
        for columns, family, _, own, _ in model.family.blocks(theta=theta):
            x = X[rows] if isinstance(columns, slice) else X[rows][:, columns]
            own = _theta_at(family, own, CLASS, [a, b])
            for j, term, left in _columns_of_draws(family.at(CLASS, [a, b]), own, x):
                rest = rest + left
                put(rows, every[columns][j], term)
        put(rows, np.array([n_features]), rest[..., None])
    return out


def _put(out: Terms, request: Request, rows: Array, columns: Array, draws: Array) -> None:
    """Mean and interval of draws (chain, draw, n, d) of some terms."""
    flat = draws.reshape(-1, *draws.shape[2:])
    bounded = np.clip(np.moveaxis(flat, 0, -1), -_BEYOND, _BEYOND)  # inf has no differences
    lower, upper = (
        np.where(np.abs(end) >= _BEYOND, np.copysign(np.inf, end), end)
        for end in request.ends_of_draws(bounded)
    )
    at = np.ix_(rows, columns)
    out.mean[at], out.lower[at], out.upper[at] = flat.mean(axis=0), lower, upper
    for end in (lower, upper):
        below = np.moveaxis(draws <= end, (0, 1), (-2, -1)).astype(np.float64)
        share = below.mean(axis=(-2, -1))
        error = np.sqrt(share * (1 - share) / effective_sample_size(below))
        out.error[at] = np.maximum(out.error[at], np.where(lower == upper, 0.0, error))


def _log_weights(model: ClassModel, theta: Theta, class_prior: Array | None, X: Matrix) -> Array:
    """(chain, draw, N, C)."""
    if class_prior is None:
        log_pi = of_rows(log_class_weights(model.family, theta), X)
    else:
        log_pi = log_weights(class_prior)[None]
    lead = draw_shape(model.family, theta)
    return np.broadcast_to(log_pi, (*lead, X.shape[0], log_pi.shape[-1]))


def _theta_at(family: ConjugateFamily, theta: Theta, dim: str, index: Any) -> dict[str, Array]:
    return {
        name: theta[name].take(index, dims.index(dim) - len(dims)) if dim in dims else theta[name]
        for name, dims in family.params.items()
    }


def _columns_of_draws(
    family: ConjugateFamily, theta: Theta, X: Matrix
) -> Iterator[tuple[Any, Array, Any]]:
    """Columns, their terms (chain, draw, n, d), and what is left over, (chain, draw, n) or 0."""
    if family.separable:
        for j in range(X.shape[1]):
            part = family.at(FEATURE, [j])
            log_p = part.log_likelihood(X[:, [j]], _theta_at(family, theta, FEATURE, [j]))
            yield [j], (log_p[..., 0] - log_p[..., 1])[..., None], 0.0
    elif family.capability(capabilities.TokenDraws) is not None:
        try:
            w, _ = capabilities.require(family, capabilities.LinearRule, TERMS).linear_form(theta)
        except NotLinearError:
            raise NotImplementedError(
                f"the terms of {type(family).__name__} are not read from draws; leave `posterior` "
                "out, and do not ask for method='draws'"
            ) from None
        x = np.asarray(X.toarray() if sparse.issparse(X) else X)
        for j in range(x.shape[1]):
            term = (w[..., 0, j] - w[..., 1, j])[..., None, None]
            yield [j], np.where(x[:, [j]] == 0, 0.0, x[:, [j]] * term), 0.0
    else:
        term, rest = capabilities.require(family, capabilities.FeatureTerms, TERMS).log_odds_terms(
            X, 0, 1, theta
        )
        yield slice(None), term, rest


# ------------------------------------------------------------------------------------------------
# Which log-odds are explained in each row, and their terms from either kind of posterior.

_BYTES = 4 << 30  # a table that would be larger is refused

RULES = {
    "second": "the second class against the first",
    "top": "the most probable class of each row against its runner-up",
    "label": "the label given against the most probable other class of each row",
    "pair": "the pair given",
}


def explain(
    fitted: Fitted, X: Any, classes: Any, request: Request, posterior: Any = None
) -> "xr.Dataset":
    """Contributions of features to log-odds, as `GenerativeClassifier.explain` gives them."""
    if posterior is None and fitted.training.unlabelled_weight:
        fitted.refuse_estimated_weights("explain")
    own = posterior_of(fitted, posterior)
    weights = request.class_prior
    encoded = fitted.encoded_near(X)
    names = fitted.reader.term_names(encoded, fitted.family)
    size = 8 * 6 * encoded.shape[0] * (len(names) + 1)
    if size > _BYTES:
        raise ValueError(
            f"the contributions of {len(names)} features in {encoded.shape[0]} rows would take "
            f"{size / (1 << 30):.1f} GiB: give fewer rows at a time"
        )
    joint = own.log_joint(encoded, "posterior_predictive", weights, "probability")
    how = rule(classes, len(fitted.classes))
    pairs = pairs_of(_chosen(fitted, classes, how), joint)
    found = explanation(own, encoded, len(names), joint, pairs, request)
    terms, by_feature = found.terms, (OBS, FEATURE)
    ends = np.stack([terms.lower, terms.upper], axis=-1)
    variables: dict[str, Any] = {
        "mean": (by_feature, terms.mean[:, :-1]),
        "interval": ((*by_feature, BOUND), ends[:, :-1]),
        "error": (by_feature, terms.error[:, :-1]),
        "mean_intercept": ((OBS,), terms.mean[:, -1]),
        "interval_intercept": ((OBS, BOUND), ends[:, -1]),
        "label": ((OBS,), fitted.classes[pairs[:, 0]]),
        "against": ((OBS,), fitted.classes[pairs[:, 1]]),
        "mean_log_odds": ((OBS,), found.mean),
    }
    if found.additive:
        variables["predictive"] = (by_feature, terms.predictive[:, :-1])
        variables["predictive_intercept"] = ((OBS,), terms.predictive[:, -1])
    if found.predictive is not None:
        variables["predictive_log_odds"] = ((OBS,), found.predictive)
    names_of = {FEATURE: names, BOUND: ["lower", "upper"], MEMBER: [m.name for m in own.members]}
    out = tree.group({**variables, **found.of_members}, names_of)
    return out.assign_attrs(prob=request.prob, kind=request.kind, unit="nats", pair=RULES[how])


def _chosen(fitted: Fitted, classes: Any, how: str) -> list[int] | None:
    """Codes of the label or the two labels that the user names."""
    if len(fitted.classes) < 2:
        raise ValueError("explain: log-odds need two classes, and the classifier knows one")
    if classes is None:
        return None
    labels = list(classes) if how == "pair" else [classes]
    if how == "pair" and len(labels) != 2:
        raise ValueError(
            f"classes must be one label or a pair of labels, got {len(labels)} of them"
        )
    codes = [int(k) for k in fitted.codes_of(labels)]
    if len(codes) == 2 and codes[0] == codes[1]:
        raise ValueError(f"classes must be two different labels, got {labels[0]!r} twice")
    return codes


def rule(classes: Any, n_classes: int) -> str:
    """The name among `RULES` of what the user's `classes` asks for."""
    if classes is None:
        return "second" if n_classes == 2 else "top"
    return "pair" if isinstance(classes, list | tuple | np.ndarray) else "label"


def pairs_of(codes: list[int] | None, joint: Array) -> Array:
    """(N, 2) class codes: the log-odds of the first against the second are explained.

    Parameters
    ----------
    codes : list of one or two class codes, optional
    joint : (N, C)
        Log joint densities, which say what is most probable in a row.
    """
    n, n_classes = joint.shape
    if codes is None and n_classes == 2:
        return np.broadcast_to([1, 0], (n, 2))
    if codes is None:
        return np.argsort(-joint, axis=1, kind="stable")[:, :2]
    if len(codes) == 2:
        return np.broadcast_to(codes, (n, 2))
    others = np.array(joint)
    others[:, codes[0]] = -np.inf
    rival = np.argmax(others, axis=1)
    rival[rival == codes[0]] = 0 if codes[0] else 1  # all others are impossible
    return np.stack([np.full(n, codes[0]), rival], axis=1)


class Explanation(NamedTuple):
    """Terms of the log-odds of pairs of classes, and what they add up to."""

    terms: Terms
    mean: Array  # (N,) mean log-odds under the posterior
    additive: bool  # whether the terms have predictives that add up to those of `predict_proba`
    predictive: Array | None  # (N,) log-odds of `predict_proba`
    of_members: Mapping[str, Any] = MappingProxyType({})  # further variables, of a pool


@singledispatch
def explanation(
    own: Any, X: Matrix, n_features: int, joint: Array, pairs: Array, request: Request
) -> Explanation:
    """Of the log-odds of class ``pairs[i, 0]`` against ``pairs[i, 1]`` in each row i.

    Parameters
    ----------
    own : ExactPosterior, DrawnPosterior or PooledPosterior
    X, n_features, pairs, request
        As in `terms`.
    joint : (N, C)
        Log joint densities of the posterior predictive.
    """
    raise NotImplementedError


@explanation.register
def _(own: ExactPosterior, X: Any, n_features: int, joint: Any, pairs: Any, request: Any) -> Any:
    model = own.model
    if model.family.discriminative:
        found = _along_paths(model, X, n_features, pairs, request)
        return Explanation(found, found.mean.sum(axis=1), True, _odds(joint, pairs))
    found = terms(model, X, n_features, pairs, request)
    if request.method == "draws":
        rng = np.random.default_rng(request.seed)
        theta = split_chains(model.draw(rng, N_DRAWS), 4)
        drawn = terms_of_draws(model, theta, X, n_features, pairs, request)
        found = found._replace(lower=drawn.lower, upper=drawn.upper, error=drawn.error)
    with np.errstate(invalid="ignore"):  # impossible under both
        predictive = _odds(joint, pairs)
    return Explanation(found, found.mean.sum(axis=1), additive(model.family), predictive)


@explanation.register
def _(own: DrawnPosterior, X: Any, n_features: int, joint: Any, pairs: Any, request: Any) -> Any:
    model, theta = own.model, own.theta
    found = terms_of_draws(model, theta, X, n_features, pairs, request)
    blocks = own.log_joint_draws(X, request.class_prior)
    each = [_odds(density, pairs[rows]).mean(axis=(0, 1)) for rows, density in blocks]
    return Explanation(found, np.concatenate(each) if each else np.empty(0), False, None)


@explanation.register
def _(own: PooledPosterior, X: Any, n_features: int, joint: Any, pairs: Any, request: Any) -> Any:
    """Of draws of exponents and intercepts; members' contributions are their posterior means."""
    scores, rows = own.scores(X), np.arange(len(pairs))
    a, b = pairs.T
    odds = (scores[:, rows, a] - scores[:, rows, b]).T
    weights, intercept = own.exponents.terms(scores, pairs)
    shift = own.shift(request.class_prior)
    by_member = np.empty((len(pairs), len(own.members)))
    columns: list[list[tuple[int, Array]]] = [[] for _ in range(n_features)]  # exponent, of what
    reader = X.rows.reader
    names = reader.term_names(X, own.model.family)
    for m, member in enumerate(own.members):
        by_member[:, m] = weights[:, m] * odds[:, m]
        features, units = _of_member(member, X, pairs, odds[:, m])
        if (where := reader.places(member, features, names)) is not None:
            for j, unit in zip(where.tolist(), units.T, strict=True):
                columns[j].append((m, unit))
    eta, intercepts = own.exponents
    out = Terms(*(np.zeros((len(pairs), n_features + 1)) for _ in Terms._fields))
    total = eta @ odds.T + (intercepts + shift)[..., a] - (intercepts + shift)[..., b]
    mean, rest = total.mean(axis=(0, 1)), total
    for j, parts in enumerate(columns):
        if parts:
            drawn = np.sum([eta[..., [k]] * unit for k, unit in parts], axis=0)
            _put(out, request, rows, np.array([j]), drawn[..., None])
            out.predictive[:, j] = np.sum([weights[:, k] * unit for k, unit in parts], axis=0)
            rest = rest - drawn
    _put(out, request, rows, np.array([n_features]), rest[..., None])
    alone = by_member.sum(axis=1) - out.predictive[:, :-1].sum(axis=1)
    out.predictive[:, -1] = intercept + shift[a] - shift[b] + alone
    of_members = {"by_member": ((OBS, MEMBER), by_member), "rest": ((OBS,), alone)}
    return Explanation(out, mean, True, _odds(joint, pairs), of_members)


def _of_member(member: Member, X: MemberRows, pairs: Array, odds: Array) -> tuple[list[Any], Array]:
    """Features, and (N, d) posterior means of what they contribute to its log-odds (N,).

    There are none where log-odds are known as a whole alone.
    """
    fitted = member.fitted
    none: tuple[list[Any], Array] = [], np.zeros((len(odds), 0))
    if member.selection is not None and member.selection.documents:
        return [*member.texts], odds[:, None]
    family: Any = fitted.family
    if any(block.family.capability(capabilities.UnattributedTerm) for block in family.blocks()):
        return none  # products of features are no feature's own
    try:
        encoded = fitted.encoded(X.read(member))
        names = fitted.reader.term_names(encoded, family)
        joint = fitted.posterior.log_joint(encoded, quantity="probability")
        request = Request.of(0.9, "eti", intervals=False)
        found = explanation(fitted.posterior, encoded, len(names), joint, pairs, request)
    except (MissingCapabilityError, NotImplementedError, ValueError):
        return none
    return names, found.terms.mean[:, :-1]


def _odds(joint: Array, pairs: Array) -> Array:
    """(..., N) of log joint densities (..., N, C)."""
    rows = np.arange(len(pairs))
    return np.asarray(joint[..., rows, pairs[:, 0]] - joint[..., rows, pairs[:, 1]])
