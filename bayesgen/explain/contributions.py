r"""What each feature of a row contributes to the log-odds of two classes.

*Chain rule.* For an order of the columns, the contribution of the k-th is the log-odds with it less
the log-odds without it, given the columns before it in the order and with all later ones missing.
The sum over the columns is the log-odds of the row less those of a row without known cells, for
every model. Contributions are means over pairs of a random order and its reverse; they estimate
Shapley values (Castro, Gómez and Tejada 2009, Polynomial calculation of the Shapley value based on
sampling). Pairs are added until their standard error is small against the row's largest term. Of
few columns all orders are asked.

*Independent columns.* Where the log predictive is a sum over columns, every order gives the terms
of that sum.

*Words.* The tokens of a document are dependent once theta is integrated out. One urn per class and
context has a closed form of the mean over all orders of its tokens. In a pool of documents, these
contributions of the members are added up by word, times the mean exponents. In a pool of sparse
counts all counts of a column are left out together. What does not add up is ``rest``.

N rows, D features, C classes, P pairs of orders.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from bayesgen.datatree import tree
from bayesgen.encoding.tables import feature_names
from bayesgen.encoding.unknown import UnknownCategoryWarning
from bayesgen.families.capabilities import FeatureTerms, TokenDraws, Urns, require
from bayesgen.families.names import FEATURE, OBS
from bayesgen.families.shared.ngrams import known_ngrams
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array, log_gamma_difference
from bayesgen.posterior.drawn import MonteCarloWarning
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import log_weights
from bayesgen.posterior.pooled import Member, MemberRows
from bayesgen.predict import probabilities

if TYPE_CHECKING:
    import xarray as xr

_DRAWS = 2000  # of the coefficients of a regression
_PAIRS, _MOST_PAIRS = 4, 64  # of an order and its reverse: at first, and at most
_FEW = 5  # columns of which all sets are fewer than those along the first orders
_ERROR = 0.05  # standard error of a contribution, of the largest of its row
_CELLS = 1 << 20  # of rows with missing cells that are evaluated together
_BLOCK = 32  # independent columns that are evaluated together
_TEXTS = 1 << 12  # sparse rows that are evaluated together
_BYTES = 4 << 30  # a table that would be larger is refused

LogJoint = Callable[[Any], Array]  # rows to (n, C)


class Terms(NamedTuple):
    """What is said of N rows."""

    names: list[Any]
    mean: Array  # (N, D) contributions
    intercept: Array  # (N,) log-odds of a row without known cells
    error: Array | None = None  # (N, D) standard errors; None: exact
    adds_up: bool = True


@dataclass(frozen=True)
class Question:
    """Whose log-odds are explained, and how.

    Parameters
    ----------
    fitted : Fitted
    pairs : (N, 2) class codes
        The log-odds of the first against the second.
    seed : int
        Of orders and draws.
    """

    fitted: Fitted
    pairs: Array
    seed: int

    def rng(self) -> np.random.Generator:
        """Return the generator that every row starts with."""
        return np.random.default_rng(self.seed)

    def odds(self, log_joint: Array, rows: Array) -> Array:
        """Return (n,) log-odds of log joint densities (n, C) of some rows."""
        a, b = self.pairs[rows].T
        each = np.arange(len(rows))
        with np.errstate(invalid="ignore"):  # NaN where neither class can be
            return np.asarray(log_joint[each, a] - log_joint[each, b])


def explain(fitted: Fitted, X, classes, class_prior, seed: int) -> "xr.Dataset":
    """Return contributions to log-odds, as `GenerativeClassifier.explain` says."""
    if len(fitted.classes) < 2:
        raise ValueError("explain: log-odds need two classes, and the classifier knows one")
    rows = fitted.read(X)
    log_joint = probabilities.log_joint(fitted, rows, class_prior=class_prior)
    pairs, which = _pairs(fitted, classes, log_joint)
    question = Question(fitted, pairs, seed)
    terms = _terms(question, rows)
    every = np.arange(len(log_joint))
    log_odds, intercept = question.odds(log_joint, every), terms.intercept
    if class_prior is not None:  # other class weights move the intercept and nothing else
        fitted_odds = question.odds(probabilities.log_joint(fitted, rows), every)
        with np.errstate(invalid="ignore"):
            intercept = intercept + (log_odds - fitted_odds)
    by_feature = (OBS, FEATURE)
    error = np.zeros(terms.mean.shape) if terms.error is None else terms.error
    variables: dict[str, Any] = {
        "predictive": (by_feature, terms.mean),
        "error": (by_feature, error),
        "predictive_intercept": ((OBS,), intercept),
        "predictive_log_odds": ((OBS,), log_odds),
        "label": ((OBS,), fitted.classes[question.pairs[:, 0]]),
        "against": ((OBS,), fitted.classes[question.pairs[:, 1]]),
    }
    if not terms.adds_up:
        variables["rest"] = ((OBS,), log_odds - intercept - terms.mean.sum(axis=1))
    dataset = tree.group(variables, {FEATURE: terms.names})
    return dataset.assign_attrs(unit="nats", pair=which)


def _terms(question: Question, rows) -> Terms:
    """Return the terms of rows that the reader has read, by the rule for their model."""
    fitted = question.fitted
    posterior = fitted.posterior
    family, encoded = fitted.family, rows.encoded
    if posterior.members:
        return _of_pool(question, encoded)
    names = fitted.reader.term_names(encoded, family)
    _refuse_large(len(rows), len(names))
    if family.capability(FeatureTerms) is not None:
        return _of_regression(question, names, encoded)
    if family.capability(TokenDraws) is not None:
        return _of_tokens(question, names, encoded)
    why = fitted.reader.whole
    if not why and family.missing != "marginalised":
        why = family.missing
    if why:
        raise NotImplementedError(f"explain needs predictions for rows with missing cells: {why}")
    x = encoded.toarray() if sparse.issparse(encoded) else np.asarray(encoded)
    x = x.astype(np.float64)
    conjugate = posterior.exact and not posterior.mixture
    if conjugate and all(block.family.independent for block in family.blocks()):
        return _of_independent(question, names, x)
    present = ~np.isnan(x) & ~_covariates(family, x.shape[1])
    cells = MaskedTable(present, lambda at, keep: np.where(keep | ~present[at], x[at], np.nan))
    return _by_orders(question, names, cells, partial(probabilities.predictive_of_encoded, fitted))


def _refuse_large(n_rows: int, n_features: int) -> None:
    size = 8 * 4 * n_rows * (n_features + 1)
    if size > _BYTES:
        raise ValueError(
            f"the contributions of {n_features} features in {n_rows} rows would take "
            f"{size / (1 << 30):.1f} GiB: give fewer rows at a time"
        )


def _covariates(family, n_columns: int) -> Array:
    """Return (D,) bool: columns that the density of the others is given, such as an exposure."""
    exposure = getattr(family, "exposure", None)
    return np.zeros(n_columns, bool) if exposure is None else np.asarray(exposure) != 0


# ------------------------------------------------------------------------------ orders of columns


class MaskedTable(NamedTuple):
    """Rows of which cells can be left out."""

    present: Array  # (N, D) bool
    masked: Callable[[Array, Array], Any]  # positions (n,), cells that stay (n, D) -> rows


def _by_orders(question: Question, names, cells: MaskedTable, log_joint: LogJoint) -> Terms:
    """Return means over pairs of orders, until their error is small in every row."""
    shape = cells.present.shape
    rng, left = question.rng(), np.arange(shape[0])
    total, square, error = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    n_pairs, mean, intercept = 0, np.zeros(shape), np.zeros(shape[0])
    while len(left) and n_pairs < _MOST_PAIRS:
        orders = _orders(rng, shape[1], max(_PAIRS, n_pairs))
        n_pairs += len(orders) // 2
        each, intercept[left] = _along(question, cells, log_joint, orders, left)
        total[left] += each.sum(axis=0)
        square[left] += np.square(each).sum(axis=0)
        mean[left] = total[left] / n_pairs
        if shape[1] <= _FEW:
            break
        variance = np.maximum(square[left] / n_pairs - np.square(mean[left]), 0.0)
        error[left] = np.sqrt(variance / (n_pairs - 1))
        largest = np.abs(mean[left]).max(axis=1, initial=0.0)
        left = left[error[left].max(axis=1, initial=0.0) > _ERROR * largest]
    return Terms(names, mean, intercept, error)


def _orders(rng: np.random.Generator, n_columns: int, n_pairs: int) -> Array:
    """Return (2 P, D) random orders, each before its reverse; all orders of few columns."""
    if n_columns <= _FEW:
        every = [p for p in permutations(range(n_columns)) if p[:1] <= p[-1:]]
        one = np.array(every, dtype=np.int64).reshape(len(every), n_columns)
    else:
        one = rng.permuted(np.tile(np.arange(n_columns), (n_pairs, 1)), axis=1)
    return np.stack([one, one[:, ::-1]], axis=1).reshape(2 * len(one), n_columns)


def _along(
    question: Question, cells: MaskedTable, log_joint: LogJoint, orders: Array, rows: Array
) -> tuple[Array, Array]:
    """Return (P, n, D) contributions along pairs of orders and (n,) intercepts."""
    n_orders, n_columns = orders.shape
    step_of = np.argsort(orders, axis=1)  # of each column
    keep = step_of[:, None] < np.arange(n_columns + 1)[:, None]
    sets, place = np.unique(keep.reshape(-1, n_columns), axis=0, return_inverse=True)
    pairs = np.arange(len(sets) * len(rows))  # of a set and a row
    parts = []
    for block in row_blocks(len(pairs), n_columns, _CELLS):
        which, row = np.divmod(pairs[block], len(rows))
        with warnings.catch_warnings():  # the whole row has warned already
            warnings.simplefilter("ignore", MonteCarloWarning)
            warnings.simplefilter("ignore", UnknownCategoryWarning)
            values = log_joint(cells.masked(rows[row], sets[which]))
        parts.append(question.odds(values, rows[row]))
    odds = np.concatenate(parts).reshape(len(sets), len(rows))
    odds = odds[place.reshape(n_orders, n_columns + 1)]
    with np.errstate(invalid="ignore"):  # a row that neither class can produce
        steps = np.diff(odds, axis=1)  # (2 P, D, n)
    steps = np.take_along_axis(steps, step_of[..., None], axis=1).swapaxes(1, 2)
    steps = np.where(cells.present[rows], steps, 0.0)
    return steps.reshape(n_orders // 2, 2, len(rows), n_columns).mean(axis=1), odds[0, 0]


# --------------------------------------------------------------------------- independent columns


def _of_independent(question: Question, names, X: Array) -> Terms:
    """Return the log-odds of each cell on its own."""
    mean = np.zeros(X.shape)
    for columns, family, *_ in question.fitted.family.blocks():
        positions = np.arange(X.shape[1])[columns]
        for some in row_blocks(len(positions), 1, _BLOCK):
            x = X[:, positions[some]]
            n, width = x.shape
            alone = np.where(np.eye(width, dtype=bool), x[:, None], np.nan).reshape(-1, width)
            of_some = family.at(FEATURE, np.arange(some.start, some.stop))
            odds = question.odds(of_some.log_predictive(alone), np.repeat(np.arange(n), width))
            mean[:, positions[some]] = odds.reshape(n, width)
    return Terms(names, mean, _prior_odds(question))


def _prior_odds(question: Question) -> Array:
    """Return (N,) log-odds of the fitted class weights."""
    log_pi = log_weights(question.fitted.posterior.class_weights())
    return np.asarray(log_pi[question.pairs[:, 0]] - log_pi[question.pairs[:, 1]])


# --------------------------------------------------------------------------------- other models


def _of_regression(question: Question, names, X: Array) -> Terms:
    """Return posterior means of coefficients times cells; no cell may be missing."""
    posterior = question.fitted.posterior
    family = require(posterior.model.family, FeatureTerms, "explain")
    theta = posterior.draw_features(question.rng(), _DRAWS, 1)
    mean, intercept = np.zeros((len(X), len(names))), np.zeros(len(X))
    distinct, which = np.unique(question.pairs, axis=0, return_inverse=True)
    for k, (a, b) in enumerate(distinct.tolist()):
        rows = np.flatnonzero(which.ravel() == k)
        terms, constant = family.log_odds_terms(X[rows], a, b, theta)
        mean[rows], intercept[rows] = terms.mean(axis=(0, 1)), constant.mean(axis=(0, 1))
    return Terms(names, mean, intercept, adds_up=False)


def _of_tokens(question: Question, names, X) -> Terms:
    """Return means over all orders of a document's tokens, in closed form."""
    posterior = question.fitted.posterior
    if not posterior.exact:
        raise NotImplementedError(
            "explain of tokens needs the posterior in closed form, and this classifier has draws"
        )
    urns = require(posterior.model.family, TokenDraws, "explain").urns(X)
    mean = np.zeros((X.shape[0], len(names)))
    mean[urns.row, urns.feature] = _odds_of_draws(question, urns)
    return Terms(names, mean, _prior_odds(question))


def _odds_of_draws(question: Question, urns: Urns) -> Array:
    """Return (P,) means over the orders of a document's tokens, of its draws from urns."""
    whole = urns.n / urns.drawn * log_gamma_difference(urns.total, urns.drawn)
    share = log_gamma_difference(urns.cell, urns.n) - whole
    (a, b), each = question.pairs[urns.row].T, np.arange(len(urns.n))
    return np.asarray(share[a, each] - share[b, each])


# --------------------------------------------------------------------------------------- pools


def _of_pool(question: Question, X) -> Terms:
    """Return the terms of a pool: its own predictions of rows that the user could have given."""
    fitted = question.fitted

    def log_joint(rows) -> Array:
        return probabilities.log_joint(fitted, rows)

    if sparse.issparse(X.X):
        return _of_counts(question, X.X, log_joint)
    if fitted.reader.n_features is None:
        return _of_documents(question, X)
    _refuse_large(X.shape[0], fitted.reader.n_features)
    return _by_orders(question, fitted.reader.columns, _table(X.X), log_joint)


def _table(X) -> MaskedTable:
    """Return the rows of a table with missing cells as the user writes them."""
    import narwhals.stable.v2 as nw
    import pandas as pd

    if hasattr(X, "dims") and (names := feature_names(X)) is not None:
        X = pd.DataFrame(np.asarray(X), columns=names)
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(frame.to_dict(as_series=False))
        present = table.notna().to_numpy()
        return MaskedTable(
            present, lambda at, keep: table.take(at).reset_index(drop=True).where(keep)
        )
    cells = np.asarray(X)
    if cells.dtype.kind in "biu":
        cells = cells.astype(np.float64)
    elif cells.dtype.kind != "f":
        cells = cells.astype(object)
    missing = np.nan if cells.dtype.kind == "f" else None
    return MaskedTable(~pd.isna(cells), lambda at, keep: np.where(keep, cells[at], missing))


def _of_counts(question: Question, X: sparse.csr_matrix, log_joint: LogJoint) -> Terms:
    """Return the log-odds of sparse rows less those without all counts of a column."""
    _refuse_large(*X.shape)
    every, mean = np.arange(X.shape[0]), np.zeros(X.shape)
    whole = question.odds(log_joint(X), every)
    all_rows, all_columns = X.nonzero()
    for block in row_blocks(len(all_rows), 1, _TEXTS):
        row, column = all_rows[block], all_columns[block]
        less = X[row].tolil()
        less[np.arange(len(row)), column] = 0
        mean[row, column] = whole[row] - question.odds(log_joint(less.tocsr()), row)
    nothing = np.repeat(log_joint(sparse.csr_matrix((1, X.shape[1]))), len(every), axis=0)
    names = question.fitted.reader.columns
    return Terms(names, mean, question.odds(nothing, every), adds_up=False)


def _of_documents(question: Question, X: MemberRows) -> Terms:
    """Return mean exponents times the members' contributions, n-grams added up by word."""
    posterior: Any = question.fitted.posterior
    places: dict[str, int] = {}
    row, column, value = [], [], []
    factors = posterior.exponents.mean[0][:, None] * X.tempers(posterior.members)
    for member, factor in zip(posterior.members, factors, strict=True):
        for name, rows, odds in _of_member(question, member, X):
            row.append(rows)
            column.append(np.array([places.setdefault(n, len(places)) for n in name], np.int64))
            value.append(factor[rows] * odds)
    names, shape = list(places), (X.shape[0], len(places))
    _refuse_large(*shape)
    cells = np.concatenate(row), np.concatenate(column)
    mean = sparse.coo_matrix((np.concatenate(value), cells), shape).toarray()
    order = sorted(range(len(names)), key=lambda k: str(names[k]))
    return Terms([names[k] for k in order], mean[:, order], _prior_odds(question), adds_up=False)


def _of_member(
    question: Question, member: Member, X: MemberRows
) -> Iterator[tuple[list[str], Array, Array]]:
    """Yield names, rows and log-odds of the tokens of documents; of other rows of the member."""
    encoded = X.read(member).encoded
    family: Any = member.fitted.family
    if not hasattr(member.fitted.reader, "words") or not member.fitted.posterior.exact:
        odds = question.odds(X.scores(member), np.arange(X.shape[0]))
        yield [f"({member.name})"] * X.shape[0], np.arange(X.shape[0]), odds
        return
    urns = family.urns(encoded)
    odds = _odds_of_draws(question, urns) / urns.n  # of one token
    _, gram, row = known_ngrams(encoded, family.order, family.n_tokens)
    width = 1 + int(gram.max(initial=0))
    entry = np.searchsorted(urns.row * width + urns.feature, row * width + gram)
    words = member.fitted.reader.words(X.seen(member))
    present = np.concatenate(encoded) >= 0 if len(encoded) else ()
    yield (
        [word for word, is_known in zip(words, present, strict=True) if is_known],
        row,
        odds[entry],
    )


# --------------------------------------------------------------------------------- the classes


def _pairs(fitted: Fitted, classes: Any, log_joint: Array) -> tuple[Array, str]:
    """Return (N, 2) class codes, of which the first is explained against the second, and why.

    Parameters
    ----------
    classes : label, or two labels, optional
    log_joint : (N, C)
        Which says what is most probable in a row.
    """
    n, n_classes = log_joint.shape
    if classes is None and n_classes == 2:
        return np.broadcast_to([1, 0], (n, 2)), "the second class against the first"
    if classes is None:
        most_probable = np.argsort(-log_joint, axis=1, kind="stable")[:, :2]
        return most_probable, "the most probable class of each row against its runner-up"
    if not isinstance(classes, list | tuple | np.ndarray):
        (label,) = fitted.codes_of([classes])
        others = np.array(log_joint)
        others[:, label] = -np.inf
        rival = np.argmax(others, axis=1)
        rival[rival == label] = 0 if label else 1  # all others are impossible
        pairs = np.stack([np.full(n, label), rival], axis=1)
        return pairs, "the label given against the most probable other class of each row"
    if len(classes) != 2:
        raise ValueError(
            f"classes must be one label or a pair of labels, got {len(classes)} of them"
        )
    first, second = fitted.codes_of(list(classes))
    if first == second:
        raise ValueError(f"classes must be two different labels, got {classes[0]!r} twice")
    return np.broadcast_to([first, second], (n, 2)), "the pair given"
