"""A pool of classifiers with exponents learned from exact leave-one-out: LogLinearPool."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from bayesgen.datatree import tree
from bayesgen.datatree.tree import LEAVE_ONE_OUT, MEMBER_RANKS, named_rows
from bayesgen.encoding import suspects
from bayesgen.encoding.labelled import labelled
from bayesgen.encoding.labels import code_labels, codes_of, weights_by_class
from bayesgen.encoding.reader import Reader, Rows
from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.suspects import ColumnWarning, documents
from bayesgen.encoding.tables import Table, feature_names, refuse_elsewhere
from bayesgen.encoding.views import BinnedTable, Selection, TableView
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.estimators.counts import BernoulliNB, MultinomialNB
from bayesgen.estimators.forests import TreeAugmentedNB
from bayesgen.estimators.gaussian import LinearDiscriminant, QuadraticDiscriminant
from bayesgen.estimators.gaussian_forest import TreeAugmentedGaussianNB
from bayesgen.estimators.lazy_attributes import LazyAttributes
from bayesgen.estimators.lazy_rows import row_by_row
from bayesgen.estimators.saving import refuse_subclass
from bayesgen.estimators.summary import SHOWN, Summary, with_summary
from bayesgen.estimators.super_parents import AnDE
from bayesgen.estimators.tables import CategoricalNB, MixedNB, TableReader
from bayesgen.estimators.text import MarkovNB
from bayesgen.families.conjugate.dirichlet_forest import n_pairs
from bayesgen.families.conjugate.dirichlet_super_parents import n_cells
from bayesgen.families.contract import Theta
from bayesgen.families.errors import MissingCapabilityError, NoClosedFormError, refuse_unknown
from bayesgen.families.names import BOUND, CHAIN, CLASS, DRAW, FEATURE, MEMBER, OBS
from bayesgen.inference.exponents import (
    ExponentPrior,
    Exponents,
    comparable,
    sample,
    without_each_row,
)
from bayesgen.io import storage
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp
from bayesgen.posterior.drawn import DrawnPosterior, MonteCarloWarning, log_joint_blocks
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import Quantity, is_generative, log_weights
from bayesgen.predict import distribution
from bayesgen.predict.draws import log_joint_draws
from bayesgen.predict.leave_one_out import TrainingRows, log_weights_of, training_rows
from bayesgen.predict.left_out import (
    LeftOut,
    MemberRanks,
    check_coverage,
    log_odds,
    prediction_sets,
)
from bayesgen.predict.probabilities import log_joint
from bayesgen.predict.request import IntervalRequest
from bayesgen.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr
    from arviz_stats.utils import ELPDData

    from bayesgen.predict.request import KindName


# ------------------------------------------------------------------------------------------------
# Members of a pool: a classifier, and how it sees the rows.

_WIDEST = 1000  # columns of a view for which a member with full covariances is considered
_MOST_WORK = 4e9  # rows x columns^2 x covariances
_WIDEST_FOREST = 100  # columns up to which an average over forests predicts 1000 rows a second
_WIDEST_GAUSSIAN_FOREST = 60  # columns; indicators of categories are columns
_MOST_FOREST_WORK = 4e9  # rows x classes x columns^3, a second or two
_MOST_GAUSSIAN_FOREST_WORK = 1e9  # the same; each row has sums of its own: five seconds
_MOST_DRAWS = 1 << 26  # bytes of a member's parameters that all rows share
_MOST_COUNTS = 1 << 22  # of two super-parents, all classes: a few seconds
_MOST_PAIRS = 1 << 24  # of forests, all classes: a second, 134 MB


def as_rows(X: Any) -> Any:
    """X, or the array that it stands for; sparse formats as CSR."""
    if sparse.issparse(X):
        return X.tocsr()
    if hasattr(X, "shape") or isinstance(X, list | tuple):
        return X
    refuse_elsewhere(X)
    return np.asarray(X)


@dataclass
class Member:
    """One classifier of a pool.

    Parameters
    ----------
    name : str
    clf : GenerativeClassifier
    view : TableView, optional
        What the classifier sees of a table; None: the rows as they come.
    front : Pipeline, optional
        Fitted steps of a user's pipeline before the classifier.
    selection : Selection, optional
        The columns of a data frame that it sees, before its view; None: all.
    """

    name: str
    clf: GenerativeClassifier
    view: TableView | None = None
    front: Any = None
    selection: Selection | None = None

    def fit(self, X: "MemberRows", y: Any, sample_weight: Any) -> Self:
        """Fit the classifier to rows; the pipeline first."""
        if self.front is not None:
            rows = self.front.fit_transform(X.X, y)
        else:
            ours = type(self.clf).fit is GenerativeClassifier.fit
            rows = X.given(self, self.clf.__bayesgen_learner__().reader) if ours else X.seen(self)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ColumnWarning)  # the pool says it once
            clf = self.clf.fit(rows, y, sample_weight=sample_weight)
        if clf.fitted_.training.rows is not None and clf.fitted_.training.rows.X is not X.X:
            clf.fitted_ = clf.fitted_.with_training(rows=None)  # nobody else keeps them
        return replace(self, clf=clf)

    def scores(
        self, X: Any, y: Any, sample_weight: Any, *, partial: bool, known: bool = False
    ) -> Array:
        """(N, C) log joint densities of training rows, each without itself.

        `partial`, `known`: as in `leave_one_out`.
        """
        read = MemberRows.of(X).read(self)
        rows = training_rows(self.clf.fitted_, read, y, sample_weight, partial, known=known)
        log_joint, _ = self.clf.fitted_.posterior.log_joint_without(*rows)
        return log_joint

    def log_joint(self, X: Any, quantity: Quantity = "probability") -> Array:
        """(N, C) of new rows; for a probability up to a term that classes share."""
        return log_joint(self.clf.fitted_, MemberRows.of(X).read(self), quantity=quantity)

    def encoded(self, X: Any) -> Any:
        """New rows as the family takes them; see `Fitted.encoded`."""
        return self.clf.fitted_.encoded(MemberRows.of(X).read(self))

    @property
    def has_density(self) -> bool:
        """Whether there is a density of rows; else of labels alone."""
        return is_generative(type(self.clf.prior_.family))

    def left_out_densities(self, scores: Array, codes: Array, weight: Array) -> Array:
        """(2, N) log p(x_i | y_i, D without i) and log p(x_i | D without i), from `scores`."""
        of_class = scores - log_weights_of(self.clf.fitted_, codes, weight)
        return np.stack([of_class[np.arange(len(codes)), codes], log_sum_exp(scores)])

    @property
    def approximate(self) -> bool:
        """Whether there is a predictive and no posterior to draw from."""
        return bool(self.clf.fitted_.posterior.prior.family.approximate)

    def draw(self, rng: np.random.Generator, draws: int) -> Theta:
        """{name: (1, draws, *dims)} of the posterior; {} where there is none."""
        own = self.clf.fitted_.posterior
        if self.approximate:
            return {}
        if isinstance(own, ExactPosterior):
            return own.draw(rng, draws, 1)
        flat = {k: np.asarray(v).reshape(-1, *np.shape(v)[2:]) for k, v in own.theta.items()}
        at = rng.integers(len(next(iter(flat.values()))), size=draws)
        return {k: v[at][None] for k, v in flat.items()}

    def too_large(self, draws: int) -> bool:
        """Whether draws of all parameters would fill the memory: the rows at hand need fewer."""
        own = self.clf.fitted_.posterior
        exact = isinstance(own, ExactPosterior) and not self.approximate
        return exact and 8 * draws * own.model.family.n_parameters() > _MOST_DRAWS

    def log_joint_drawn(
        self, X: Any, rng: np.random.Generator, draws: int, together: bool
    ) -> Array:
        """(draws, N, C) of rows under draws of what these rows need.

        `together`: jointly for all rows. Documents always are; of others all parameters are drawn.
        """
        model, rows = self.clf.fitted_.posterior.model, self.encoded(X)
        return log_joint_draws(model, rows, rng, draws, by_theta=together and rows.ndim == 2)

    def log_joint_of_draws(self, X: Any, theta: Theta) -> Array:
        """(draws, N, C) of rows under each draw; (1, N, C), the predictive, where there is none."""
        if not theta:
            return self.log_joint(X)[None]
        rows, model = self.encoded(X), self.clf.fitted_.posterior.model
        parts = [part[0] for _, part in log_joint_blocks(model.family, theta, rows)]
        return np.concatenate(parts, axis=1)

    @property
    def origin(self) -> Array | None:
        """Column of the table that each feature of the classifier shows; None: not known."""
        if self.front is not None:
            return None
        return None if self.view is None else self.view.origin

    @property
    def log_class_weights(self) -> Array:
        """(C,) log of the fitted class weights; 0 of a discriminative member."""
        own = self.clf.fitted_.posterior
        if not self.has_density:
            return np.zeros(len(self.clf.classes_))
        return np.log(own.class_weights())

    @property
    def smoothed(self) -> bool:
        """Whether its leave-one-out scores are importance-sampled."""
        return isinstance(self.clf.fitted_.posterior, DrawnPosterior)


class MemberRows:
    """Rows as the members of a pool see and read them, each view and encoding made once."""

    def __init__(self, X: Any) -> None:
        self.X = as_rows(X)
        self._made: list[tuple[tuple[Any, ...], Any]] = []
        self._read: list[tuple[Any, Rows]] = []

    @classmethod
    def of(cls, X: Any) -> Self:
        """Those of X, if it is not these."""
        return X if isinstance(X, cls) else cls(X)

    def _once[T](self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        found: T | None = next((value for known, value in self._made if known == key), None)
        if found is None:
            found = make()
            self._made.append((key, found))
        return found

    def selected(self, selection: Selection | None) -> Rows:
        """All columns or some, read once for all who see them."""

        def select() -> Rows:
            X = self.X if selection is None else selection.rows(self.X)
            return Rows(X, Reader("pool"))

        return self._once(("selected", selection), select)

    def cells(self, selection: Selection | None, schema: TableSchema) -> Array:
        """(N, D) of a table, as the schema encodes them."""
        table = self.selected(selection).table
        return self._once(("cells", selection, schema), lambda: schema.encode(table))

    def seen(self, member: Member) -> Any:
        """Rows as the member's classifier takes them, before it reads them."""
        front, view, selection = member.front, member.view, member.selection
        if front is not None:
            return self._once(("seen", id(front)), lambda: front.transform(self.X))
        if view is None:
            return self.selected(selection).X
        cells = self.cells(selection, view.schema)
        return self._once(("seen", selection, view), lambda: view.of_cells(cells))

    def given(self, member: Member, reader: Reader) -> Any:
        """The same; to a reader of tables with the table that others see too."""
        own, X = self.selected(member.selection), self.seen(member)
        return own if isinstance(reader, TableReader) and X is own.X else X

    def read(self, member: Member) -> Rows:
        """Rows as the member's fitted classifier has read them, or one that reads alike."""
        X = self.given(member, reader := member.clf.fitted_.reader)
        for known, rows in self._read:
            if known is X and rows.reader.reads_as(reader):
                return rows
        rows = reader.read(X)
        self._read.append((X, rows))
        return rows


def named(members: Any) -> list[tuple[str, Any]]:
    """(name, estimator) of what the user gave."""
    given = list(members.items()) if isinstance(members, dict) else list(members)
    if not given:
        raise ValueError("members: a pool needs at least one classifier")
    pairs = [g if isinstance(g, tuple) and len(g) == 2 else (None, g) for g in given]
    out: list[tuple[str, Any]] = []
    taken = {name for name, _ in pairs if name is not None}
    for name, estimator in pairs:
        last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        if not isinstance(last, GenerativeClassifier):
            raise TypeError(
                f"members: {type(last).__name__} has no exact leave-one-out; a member is a "
                "classifier of this package, or a scikit-learn Pipeline that ends in one"
            )
        if name is None:
            stem = name = type(last).__name__
            k = 1
            while name in taken:
                k += 1
                name = f"{stem}-{k}"
            taken.add(name)
        elif not isinstance(name, str):
            raise TypeError(f"members: a name must be a string, got {name!r}")
        out.append((name, estimator))
    names = [name for name, _ in out]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"members: the name {sorted(twice)[0]!r} is given twice")
    return out


def unfitted(members: Any) -> list[Member]:
    """Members from copies of the user's estimators."""
    return [_member(name, clone(estimator)) for name, estimator in named(members)]


def fitted(members: Any) -> list[Member]:
    """Members that the user has fitted before."""
    pairs = named(members)
    for _, estimator in pairs:
        check_is_fitted(estimator)
    return [_member(name, estimator) for name, estimator in pairs]


def _member(name: str, estimator: Any) -> Member:
    if not isinstance(estimator, Pipeline):
        return Member(name, estimator)
    front = estimator[:-1] if len(estimator.steps) > 1 else None
    return Member(name, estimator.steps[-1][1], None, front)


# ----------------------------------------------------------------------------- chosen by columns


def chosen(X: Any, n_classes: int, *, separable: bool) -> tuple[list[Member], dict[str, str]]:
    """Members for the columns at hand, and why others were left out.

    Parameters
    ----------
    X : training rows: a table, sparse counts, or documents
    n_classes : int
    separable : bool
        Only those whose density is a product over the columns.
    """
    rows = MemberRows.of(X)
    if sparse.issparse(rows.X):
        return _of_counts(rows.X), {}
    if _is_text(rows.X):
        return _of_documents(), {}
    if texts := documents(rows.X):
        return _of_table_and_texts(rows, texts, n_classes, separable)
    return _of_table(rows, None, n_classes, separable)


def _is_text(X: Any) -> bool:
    if len(getattr(X, "shape", (0,))) == 2 or hasattr(X, "columns"):
        return False
    cells: Sequence[Any] = list(X[:5] if not hasattr(X, "iloc") else X.iloc[:5])
    return bool(cells) and all(isinstance(cell, str) for cell in cells)


def _of_documents() -> list[Member]:
    orders = [Member(f"characters, order {n}", MarkovNB(order=n)) for n in (1, 2, 3, 4)]
    words = [Member(f"words, order {n}", MarkovNB(order=n, tokens="word")) for n in (1, 2)]
    # leave-one-out flatters context trees, whose base has seen all rows: no members
    # little weight for shorter contexts: exponents undo what is too sure then
    sharp = partial(MarkovNB, 4, smoothing="hierarchical", concentration=10.0, strength=3000.0)
    mixed = [
        Member("characters, orders mixed", sharp()),
        Member("words, orders mixed", sharp(tokens="word")),
    ]
    return orders + words + mixed


def _of_counts(X: Any) -> list[Member]:
    values = X.data[X.data != 0]
    members = [Member("bits", BernoulliNB(binarize=0.0))]
    if (values > 0).all() and (np.round(values) == values).all():
        members.append(Member("counts", MultinomialNB()))
    return members


def _of_table(
    rows: MemberRows, own: Selection | None, n_classes: int, separable: bool
) -> tuple[list[Member], dict[str, str]]:
    table: Table = rows.selected(own).table
    schema = TableSchema.learn(table)
    cells, n_rows = rows.cells(own, schema), table.n_rows
    numbers = TableView.learn_from(schema, cells, "numbers")
    kinds = set(schema.kinds)
    left_out: dict[str, str] = {}
    members = [Member("independent columns", MixedNB())]
    if "gaussian" in kinds:
        if not separable:
            members.append(_second_of_numbers(numbers, n_rows * n_classes))
        bins = TableView.learn_from(schema, cells, "bins")
        members.append(Member("bins", CategoricalNB(categories=bins.n_categories), bins))
    if separable:
        return members, left_out
    n_columns = len(schema.kinds)
    work = n_rows * n_classes * n_columns**3
    if n_columns > _WIDEST_FOREST or work > _MOST_FOREST_WORK:
        for name, what in (("forest", "forests"), ("super-parents", "pairs of super-parents")):
            left_out[name] = (
                f"an average over {what} of {n_columns} columns would take {work:.0e} operations"
            )
    else:
        members += _of_dependences(table, schema, n_classes, left_out)
    views = [("", numbers)]
    if "gaussian" in kinds:
        views.append((" on normal scores", TableView.learn_from(schema, cells, "normal scores")))
    width = numbers.n_columns
    for suffix, view in views:
        for name, clf, n in (
            ("linear", LinearDiscriminant(), 1),
            ("quadratic", QuadraticDiscriminant(), n_classes),
        ):
            work = n_rows * width**2 + n * width**3
            if not width:
                left_out[name + suffix] = "no category is in two rows, and there are no numbers"
            elif width > _WIDEST or work > _MOST_WORK:
                left_out[name + suffix] = (
                    f"a full covariance of {width} columns and {n_rows} rows would take "
                    f"{work:.0e} operations"
                )
            else:
                members.append(Member(name + suffix, clf, view))
    return members, left_out


def _of_dependences(
    table: Table, schema: TableSchema, n_classes: int, left_out: dict[str, str]
) -> list[Member]:
    """Forests and super-parents, without columns whose many categories need too many counts."""
    out = []
    found: tuple[tuple[str, Any, int, Any, float], ...] = (
        ("forest", TreeAugmentedNB(missing="category", prior="default"), 2, n_pairs, _MOST_PAIRS),
        ("super-parents", AnDE(2, missing="category"), 3, partial(n_cells, n=2), _MOST_COUNTS),
    )
    levels_of = cache(lambda bins: BinnedTable.learn(table, bins, missing="category").levels)
    for name, clf, least, counted, most in found:
        levels = levels_of(clf.n_bins)
        kept = np.argsort(levels, kind="stable")
        needed = n_classes * counted(levels)
        while len(kept) >= least and n_classes * counted(levels[kept]) > most:
            categories = schema.names is not None and levels[kept[-1]] > clf.n_bins + 1
            kept = kept[:-1] if categories else kept[:0]  # else the columns are too many
        if len(kept) < least:
            if len(levels) >= least:
                left_out[name] = f"{name} of {len(levels)} columns would need {needed:.0e} counts"
            continue
        if len(kept) < len(levels):
            columns: dict[str, list[str]] = {}
            for j, (column, kind) in enumerate(zip(schema.names or (), schema.kinds, strict=True)):
                columns.setdefault(kind if j in kept else "drop", []).append(column)
            for column in columns["drop"]:
                left_out[f"{name} of {column!r}"] = (
                    f"with the many categories it would need {needed:.0e} counts"
                )
            clf.set_params(columns=columns)
        out.append(Member(name, clf))
    return out


def _of_table_and_texts(
    rows: MemberRows, texts: list[str], n_classes: int, separable: bool
) -> tuple[list[Member], dict[str, str]]:
    """Language models of each column of texts, and the members for the other columns."""
    names = tuple(feature_names(rows.X) or ())
    others = Selection(names, tuple(name for name in names if name not in texts))
    members: list[Member] = []
    left_out: dict[str, str] = {}
    if others.chosen:
        members, left_out = _of_table(rows, others, n_classes, separable)
        members = [replace(member, selection=others) for member in members]
    for name in texts:
        if separable and members:
            left_out[name] = "a language model has no exponent for each column"
            continue
        own = Selection(names, (name,), documents=True)
        members += [replace(m, name=f"{name}: {m.name}", selection=own) for m in _of_documents()]
    return members, left_out


def _second_of_numbers(numbers: TableView, size: int) -> Member:
    """The average over forests of Normal columns; of a wide table, variances that classes share.

    `size`: rows times classes.
    """
    width = numbers.n_columns
    if 1 < width <= _WIDEST_GAUSSIAN_FOREST and size * width**3 <= _MOST_GAUSSIAN_FOREST_WORK:
        return Member("Gaussian forest", TreeAugmentedGaussianNB(), numbers)
    return Member("independent columns with tied variances", MixedNB(variance="tied"))


# How sure a pool is: class probabilities under draws of the members' parameters and exponents.

_CENTRED = 1e-6  # largest difference of a mean probability and its prediction
_MOST_STEPS = 200


def _centred(joint: Array, log_p: Array) -> Array:
    """(S, n, C) with a constant for each row and class, so that mean probabilities are `log_p`."""
    p = np.exp(log_p)
    for _ in range(_MOST_STEPS):
        mean = np.exp(log_softmax(joint)).mean(axis=0)
        if np.abs(mean - p).max() < _CENTRED:
            break
        known = (mean > 0) & (p > 0)
        joint = joint + np.log(np.where(known, p, 1.0) / np.where(known, mean, 1.0))
    return joint


# ------------------------------------------------------------------------------------------------
# The log-odds of a pool as sums over its members and their features, column by column.


def _contributions(member: Member, X: Any, pairs: Array) -> Array:
    """(N, D of the member) posterior mean contributions to each row's log-odds."""
    from bayesgen.explain.contributions import Request, explanation

    clf = member.clf
    encoded = member.encoded(X)
    names = clf.fitted_.reader.term_names(encoded, clf.fitted_.family)
    joint = clf.fitted_.posterior.log_joint(encoded, quantity="probability")
    request = Request.of(0.9, "eti", intervals=False)
    found = explanation(clf.fitted_.posterior, encoded, len(names), joint, pairs, request)
    terms: Array = found.terms.mean[:, :-1]
    return terms


def _feature_names(pool: "LogLinearPool") -> list[str]:
    if hasattr(pool, "feature_names_in_"):
        return [str(name) for name in pool.feature_names_in_]
    for member in pool._members_:
        if member.view is not None:
            return member.view.schema.labels
    return [str(name) for name in pool._members_[0].clf.fitted_.feature_names]


def _add(
    out: Array, terms: Array, features: list[str], member: Member, pool: "LogLinearPool"
) -> None:
    """Add a member's terms to those of the table's columns, if it says which they are."""
    at = {name: j for j, name in enumerate(features)}
    if member.origin is not None:
        origin = member.origin
        if member.selection is not None:
            origin = np.array([at[name] for name in member.selection.chosen])[origin]
        np.add.at(out.T, origin, terms.T)
        return
    own = [str(name) for name in member.clf.fitted_.feature_names]
    if member.front is None and own == [f"x{j}" for j in range(len(features))]:
        own = features  # by position: not every classifier reads the names of a DataArray
    if terms.shape[1] == len(own) and all(name in at for name in own):
        for k, name in enumerate(own):
            out[:, at[name]] += terms[:, k]


_MOST = 2.5e8  # scores held: 2 GB


def feature_scores(member: Member, X: Any, y: Any, weight: Array) -> Array:
    """(D, N, C) log predictive densities of cells, `comparable` between its classes.

    Parameters
    ----------
    X : rows
    y : (N,) labels of training rows, each of which is left out; None: new rows
    weight : (N,)

    Raises
    ------
    NoClosedFormError
        Of a member by draws.
    MissingCapabilityError
        Of a density that is no product over the columns.
    MemoryError
        If the scores would not fit.
    """
    clf = member.clf
    own = clf.fitted_.posterior
    if not isinstance(own, ExactPosterior):
        raise NoClosedFormError(
            f"exponents='feature' needs scores of each column in closed form, and {member.name!r} "
            "is known by draws; use exponents='model'"
        )
    if y is None:
        rows, codes = member.encoded(X), np.full(len(weight), -1)
    else:
        read, some = MemberRows.of(X).read(member), len(y) != clf.n_rows_seen_
        training = training_rows(clf.fitted_, read, y, weight, some)
        rows, codes = training.X, training.codes
    size = rows.shape[0] * rows.shape[1] * len(clf.classes_)
    if size > _MOST:
        raise MemoryError(
            f"exponents='feature' holds a score for each of {rows.shape[0]} rows, {rows.shape[1]} "
            f"columns and {len(clf.classes_)} classes, {size * 8 / 2**30:.1f} GiB: use "
            "exponents='model', a smaller max_rows, or predict fewer rows at a time"
        )
    return comparable(own.log_columns_without(rows, codes, weight))


def feature_draws(member: Member, rows: Any, theta: Theta, exponents: Array) -> tuple[Array, int]:
    """(draws, N, C) exponents times `comparable` scores less their means, summed; how many columns.

    Parameters
    ----------
    rows : as the family takes them
    theta : {name: (1, draws, *dims)}
    exponents : (draws, D or more)
    """
    family = member.clf.fitted_.posterior.model.family
    n_draws, n_classes = len(exponents), len(member.clf.classes_)
    out = np.zeros((n_draws, rows.shape[0], n_classes))
    used = 0
    for block in family.blocks(theta=theta):
        x = rows[:, block.columns]
        where = np.arange(x.shape[1]) if isinstance(block.columns, slice) else block.columns
        for j, at in enumerate(where):
            one = block.family.at(FEATURE, [j])
            own = {
                name: np.take(block.theta[name], [j], axis=dims.index(FEATURE) - len(dims))
                if FEATURE in dims
                else block.theta[name]
                for name, dims in block.family.params.items()
            }
            cells = comparable(one.log_likelihood(x[:, [j]], own)[0])
            out += exponents[:, at, None, None] * (cells - cells.mean(axis=0))
            used += 1
    return out, used


# ------------------------------------------------------------------------------------------------
# Whether new rows are like the training rows, by all members of a pool that have a density.


def left_out_joints(
    members: list[Member], X: Any, y: Array, weight: Array, *, known: bool
) -> list[Array]:
    """Of each member (N, C) log joint densities of training rows, or some, without themselves.

    `known`: as in `Member.scores`.
    """
    X, out = MemberRows.of(X), []
    for member in members:
        partial = len(y) != getattr(member.clf, "n_rows_seen_", len(y))
        out.append(member.scores(X, y, weight, partial=partial, known=known))
    return out


def member_ranks(
    members: list[Member], scores: list[Array], codes: Array, weight: Array
) -> MemberRanks | None:
    """From the members' log joint densities (N, C) of training rows without themselves."""
    seen = weight > 0
    found = [
        member.left_out_densities(own[seen], codes[seen], weight[seen])
        for member, own in zip(members, scores, strict=True)
        if member.has_density
    ]
    return MemberRanks(codes[seen], weight[seen], *np.stack(found, axis=1)) if found else None


# ------------------------------------------------------------------------------------------------
# What exponents say of the members of a pool, as a table and in sentences.


@dataclass(frozen=True, repr=False)
class PoolSummary(Summary):
    """Exponents, intercepts and sentences; `print` shows it, notebooks as HTML.

    Attributes
    ----------
    title : str
    table : xarray.Dataset
        ``exponent`` and ``interval`` (member), ``intercept`` and ``intercept_interval`` (class).
    sentences : tuple of str
    """

    @classmethod
    def of(cls, pool: "LogLinearPool", prob: float | None) -> "PoolSummary":
        """Of a fitted pool."""
        request = IntervalRequest.of(prob, "eti")
        tails = [(1 - request.prob) / 2, (1 + request.prob) / 2]
        exponents, intercepts = (np.quantile(v, tails, axis=0).T for v in pool._exponents.flat)

        variables: dict[str, Any] = {
            "exponent": (("member",), pool.exponents_),
            "interval": (("member", BOUND), exponents),
            "intercept": (("class",), pool.intercepts_),
        }
        if pool.intercepts:
            variables["intercept_interval"] = (("class", BOUND), intercepts)
        coords = {"member": pool._names(), "class": pool.classes_, BOUND: ["lower", "upper"]}
        table = tree.group(variables, coords).assign_attrs(prob=request.prob, rows=pool.n_rows_)
        title = f"LogLinearPool: exponents from {pool.n_rows_} rows left out in turn"
        return cls(title, table, tuple(_sentences(pool, table)))

    def to_dataframe(self) -> "pd.DataFrame":
        """One row per member: exponent and interval."""
        interval = self.table["interval"].to_pandas()
        frame: pd.DataFrame = interval.assign(exponent=self.table["exponent"].values)
        return frame[["exponent", "lower", "upper"]]

    def _shown(self) -> "pd.DataFrame":
        frame = self.to_dataframe().iloc[:SHOWN].rename_axis(None)
        return frame.map("{:.3f}".format)

    def _n_lines(self) -> int:
        return int(self.table.sizes["member"])


def _sentences(pool: "LogLinearPool", table: "xr.Dataset") -> list[str]:
    total = float(pool.exponents_.sum())
    out = []
    if pool.exponents == "feature":
        below = float((pool.exponents_ < 1).mean())
        out.append(
            f"{below:.0%} of the columns have an exponent below 1: together they repeat evidence, "
            "as dependent columns do."
        )
    elif len(pool.members_) == 1:
        low, high = table["interval"].values[0]
        if high < 1:
            meaning = "the model is overconfident: it counts evidence more than once"
        elif low > 1:
            meaning = (
                "the model is not sure enough: its probabilities are less extreme than its evidence"
            )
        else:
            meaning = "the interval holds 1: no sign that its evidence is over- or undercounted"
        out.append(f"Exponent {total:.2f} in place of 1: {meaning}.")
    else:
        k = int(np.argmax(pool.exponents_))
        top = list(pool.members_)[k]
        share = pool.exponents_[k] / total
        parts = len({member.selection for member in pool._members_})
        right = "a single model that were right" if parts == 1 else "right models of each part"
        out.append(
            f"{top!r} has {share:.0%} of the exponents. Their sum is {total:.2f}; {right} would "
            f"have {parts}."
        )
    if any(member.smoothed for member in pool._members_):
        out.append("Scores of sampled members are by Pareto-smoothed importance sampling.")
    for name, reason in pool.left_out_.items():
        out.append(f"Left out: {name} ({reason}).")
    odd = pool.__dict__.get("_suspects", {})
    return out + [f"Warning: column {name!r} {why}." for name, why in odd.items()]


# ------------------------------------------------------------------------------------------------
# A pool as the content of one model file: its own numbers, and a record of each member.

_FIT = "fit"


def record_of(
    pool: "LogLinearPool",
) -> tuple["xr.Dataset", dict[str, Any], dict[str, "xr.Dataset"]]:
    """What `storage.write` takes."""
    import xarray as xr

    members, groups = [], {}
    for k, member in enumerate(pool._members_):
        if member.front is not None:
            raise TypeError(
                f"cannot save the pool: member {member.name!r} is a pipeline, and its steps before "
                "the classifier have no place in a model file; transform X before the pool"
            )
        refuse_subclass(member.clf)
        fit, state, draws = member.clf.__bayesgen_record__(member.clf.fitted_)
        for name, group in {_FIT: fit, **draws}.items():
            groups[f"member_{k}_{name}"] = group
        view = None if member.view is None else member.view.to_json()
        seen = None if member.selection is None else member.selection.to_json()
        entry = {"name": member.name, "state": state, "view": view, "selection": seen}
        members.append(entry | {"draws": list(draws)})
    found, prior = pool._exponents, pool._prior_
    names = getattr(pool, "feature_names_in_", None)
    groups[LEAVE_ONE_OUT] = xr.Dataset(pool._left_out().arrays())
    if pool._ranks is not None:
        groups[MEMBER_RANKS] = xr.Dataset(pool._ranks.arrays())
    own = xr.Dataset(
        {
            "exponents": (("chain", "draw", "member"), found.exponents),
            "intercepts": (("chain", "draw", "class"), found.intercepts),
            "offset": (("class",), pool._offset_),
        }
    )
    parameters = {
        name: storage.to_json(value, name)
        for name, value in pool.get_params(deep=False).items()
        if name != "members"
    }
    state = {
        "estimator": type(pool).__name__,
        "version": __version__,
        "parameters": parameters,
        "unsaved": [],
        "auto": isinstance(pool.members, str),
        "classes": storage.labels_to_json(pool.classes_),
        "n_features": getattr(pool, "n_features_in_", None),
        "feature_names": None if names is None else [str(name) for name in names],
        "n_rows": pool.n_rows_,
        "prior": [prior.shape, prior.mean, prior.intercept_scale],
        "left_out": pool.left_out_,
        "members": members,
    }
    return own, state, groups


class LogLinearPool(LazyAttributes, ClassifierMixin, BaseEstimator):
    r"""Log-linear pool of generative classifiers, calibrated by exact leave-one-out.

    .. math:: p(y = c \mid x) \propto \exp\Big(\sum_m \eta_m J_{mc}(x) + b_c\Big)

    :math:`J_{mc}(x) = \log p_m(y = c, x \mid D)` is the joint predictive of member m, its
    parameters integrated out. Exponents :math:`\eta_m > 0` and intercepts b are learned from the
    members' leave-one-out joints, in which no row has scored itself. A single member is
    calibrated: an exponent below 1 says that it counts evidence more than once, as naive Bayes
    does with dependent columns.

    It is a pool of predictives with a discriminative layer of M + C numbers; not Bayesian model
    averaging, which weighs members by their evidence and ends with one of them
    (`bayesgen.compare_models` shows both). Exponents and intercepts are integrated out: predictions
    are means over 2000 draws of their posterior.

    Parameters
    ----------
    members : "auto", list, or {name: estimator}
        Classifiers of this package, conjugate or sampled, or scikit-learn pipelines that end in
        one; also as (name, estimator) pairs. They are cloned and fitted once. ``"auto"`` chooses
        for the columns: independent columns, quantile bins, the averages over forests of
        dependences (`TreeAugmentedNB`, `TreeAugmentedGaussianNB`) and pairs of super-parents
        (`AnDE`) where they take seconds, linear and quadratic discriminants on numbers (categories
        as indicators) and on normal scores; bits and counts of sparse matrices; language models of
        documents, and of each named column of a data frame that holds texts (of four words or
        more, most of them different), whose missing cells are empty texts.
    exponents : {"model", "feature"}
        One exponent per member, or one for each feature of each member (whose density must be a
        product over columns).
    intercepts : bool
        Learn b. An exponent tempers the class weights too: with unequal classes intercepts are
        needed.
    prefit : bool
        The members are fitted: X and y of `fit` are their training rows, or, of a stream, a sample
        of them.
    shape : float, default 0.5
        Shape of the Gamma prior of an exponent; its mean is 1 / M (``"feature"``: 1), of members of
        G parts of the columns (texts and others) G / M.
    intercept_scale : float, default 2.0
        Prior standard deviation of an intercept, in nats.
    max_rows : int, default 20000
        Exponents are learned from at most so many rows, drawn at random.
    random_state : int, optional
        Of that draw, and of the draws of exponents, which None leaves reproducible.

    Attributes
    ----------
    classes_ : array (class,)
    members_ : {name: fitted classifier}
    exponents_ : array (member,) or (feature of a member,)
        Posterior means, to be read: predictions use the draws.
    intercepts_ : array (class,)
        Likewise.
    text_columns_ : tuple of str
        Columns of a data frame that ``"auto"`` has given to language models.
    posterior_ : xarray.DataTree
        Draws of exponents and intercepts, 8 chains of 250; R-hat and effective sample size in its
        attributes.
    left_out_ : {name: reason}
        Members that ``"auto"`` did not take, and columns that some of its members do not see.

    Notes
    -----
    The prior of an exponent is Gamma(shape, shape M); draws are by Hamiltonian Monte Carlo, made
    longer until R-hat is at most 1.01. Scores are taken relative to each row's best class and cut
    at -300 nats. With few rows that the members separate without error exponents stay near their
    prior mean 1 / M, and the pool is less confident than its best member. Views of ``"auto"``
    (bins, normal scores, means in place of missing cells for full covariances) are learned from
    all rows without labels and stay when a row is left out.

    References
    ----------
    Genest, Weerahandi and Zidek (1984), Aggregating opinions through logarithmic pooling. Raina,
    Shen, Ng and McCallum (2003), Classification with hybrid generative/discriminative models.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = bg.datasets.load_penguins()
    >>> pool = bg.LogLinearPool([bg.MixedNB(), bg.MixedNB(variance="tied")]).fit(X, y)
    >>> pool.predict(X[:2])
    array(['Adelie', 'Adelie'], dtype=object)
    >>> pool.exponents_.round(1)
    array([0.4, 0.6])
    """

    _short_name = "auto"  # on the command line

    classes_: Array
    exponents_: Array
    intercepts_: Array
    n_features_in_: int
    n_rows_: int
    _members_: list[Member]
    _exponents: Exponents
    _prior_: ExponentPrior
    _offset_: Array
    _data: tuple[Array, Array, Array] | None
    _loo_scores: LeftOut | None
    _ranks: MemberRanks | None

    def __init__(
        self,
        members: Any = "auto",
        *,
        exponents: Literal["model", "feature"] = "model",
        intercepts: bool = True,
        prefit: bool = False,
        shape: float = 0.5,
        intercept_scale: float = 2.0,
        max_rows: int = 20_000,
        random_state: int | None = None,
    ) -> None:
        self.members = members
        self.exponents = exponents
        self.intercepts = intercepts
        self.prefit = prefit
        self.shape = shape
        self.intercept_scale = intercept_scale
        self.max_rows = max_rows
        self.random_state = random_state

    # -- fit -----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the members; draw exponents and intercepts given their leave-one-out joints.

        Parameters
        ----------
        X : (N, D) table, sparse counts, or documents, as the members take them
        y : (N,) labels, none missing
        sample_weight : (N,), optional
            A row is left out whole, whatever its weight: repeat the rows of a table of counts, as
            in ``X.loc[X.index.repeat(count)]``, or exponents are learned without any equal row.

        Raises
        ------
        ValueError
            If members know different classes, or (``prefit``) these are not their training rows.

        Warns
        -----
        SamplingWarning
            If chains of the exponents' draws disagree.
        """
        self._check_arguments()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        given = labelled(as_rows(X), y, sample_weight)
        X, values, weight = MemberRows(given.X), given.labels, given.weight_of_each()
        members, left_out = self._members(X, values, given.weight)
        classes = _common_classes(members)
        codes = codes_of(values, classes)
        rows = self._sample_of(codes)
        scores, ranks = self._leave_one_out(members, X, values, weight, rows, known=not self.prefit)
        prior = self._prior(members, scores)
        offset = self._offset(members)
        own = scores, codes[rows], weight[rows]
        found = sample(*own, prior, offset, self.random_state)
        self.classes_, self._members_, self.left_out_ = classes, members, left_out
        self.members_ = {member.name: member.clf for member in members}
        self._exponents, self._prior_, self._offset_ = found, prior, offset
        self._data, self._loo_scores, self._ranks = own, None, ranks
        self.n_rows_ = len(rows)
        self._set_features(X.X)
        self.exponents_, self.intercepts_ = found.mean
        names = self.__dict__.get("feature_names_in_")
        used = None if names is None else {*names} - {*self.text_columns_}
        self._suspects = suspects.find(X.X, used)
        suspects.warn(self._suspects)
        return self

    def _check_arguments(self) -> None:
        refuse_unknown("exponents", self.exponents, ("model", "feature"))
        if not self.max_rows > 0:
            raise ValueError(f"max_rows must be > 0, got {self.max_rows!r}")
        ExponentPrior(self.shape, 1.0, self.intercept_scale)
        if isinstance(self.members, str) and self.members != "auto":
            raise ValueError(
                f"members must be 'auto' or a list of classifiers, got {self.members!r}"
            )
        if self.prefit and isinstance(self.members, str):
            raise ValueError("prefit=True needs fitted members, not members='auto'")

    def _members(
        self, X: MemberRows, y: Array, sample_weight: Array | None
    ) -> tuple[list[Member], dict[str, str]]:
        """Fitted members."""
        if self.prefit:
            return fitted(self.members), {}
        left_out: dict[str, str] = {}
        if isinstance(self.members, str):
            n, by_column = len(code_labels(y)[0]), self.exponents == "feature"
            members, left_out = chosen(X, n, separable=by_column)
        else:
            members = unfitted(self.members)
        return [member.fit(X, y, sample_weight) for member in members], left_out

    def _sample_of(self, codes: Array) -> Array:
        """Rows that exponents are learned from: all, or `max_rows` of them."""
        rows = np.arange(len(codes))
        if len(rows) > self.max_rows:
            rng = np.random.default_rng(self.random_state)
            rows = np.sort(rng.choice(rows, size=self.max_rows, replace=False))
        return rows

    def _leave_one_out(
        self, members: list[Member], X: Any, y: Array, weight: Array, rows: Array, *, known: bool
    ) -> tuple[Array, MemberRanks | None]:
        """(M, n, C) comparable scores of the rows, without themselves; their densities likewise."""
        if len(rows) < len(y):
            X = MemberRows(_safe_indexing(X.X, rows))
        y, weight = y[rows], weight[rows]
        if self.exponents == "feature":
            by_feature = [feature_scores(m, X, y, weight) for m in members]
            return np.concatenate(by_feature), None
        joints = left_out_joints(members, X, y, weight, known=known)
        ranks = member_ranks(members, joints, codes_of(y, _common_classes(members)), weight)
        return np.stack([comparable(joint) for joint in joints]), ranks

    def _training_scores(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Array, Array, TrainingRows]:
        own = labelled(as_rows(X), y, sample_weight)
        weight, every = own.weight_of_each(), np.arange(len(own.labels))
        data = MemberRows(own.X), own.labels, weight, every
        scores, _ = self._leave_one_out(self._members_, *data, known=False)
        at = every if own.at is None else own.at
        return scores, at, TrainingRows(own.X, codes_of(own.labels, self.classes_), weight)

    def _prior(self, members: list[Member], scores: Array) -> ExponentPrior:
        parts = len({member.selection for member in members})  # of the columns
        mean = 1.0 if self.exponents == "feature" else parts / len(scores)
        return ExponentPrior(self.shape, mean, self.intercept_scale if self.intercepts else None)

    @property
    def text_columns_(self) -> tuple[str, ...]:
        """Columns of a data frame that ``members="auto"`` has given to language models."""
        check_is_fitted(self, "exponents_")
        seen = [m.selection for m in self._members_ if m.selection is not None]
        return tuple(dict.fromkeys(s.chosen[0] for s in seen if s.documents))

    def _offset(self, members: list[Member]) -> Array:
        """(C,) log class weights, where scores are of features alone."""
        if self.exponents == "model":
            return np.zeros(len(members[0].clf.classes_))
        return members[0].log_class_weights

    def _set_features(self, X: Any) -> None:
        shape = getattr(X, "shape", None)
        names = feature_names(X) if shape is not None and len(shape) == 2 else None
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if shape is not None and len(shape) == 2:
            self.n_features_in_ = int(shape[1])
        elif isinstance(X, list) and X and isinstance(X[0], list | tuple):
            self.n_features_in_ = len(X[0])
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    # -- predict -------------------------------------------------------------------------------

    @row_by_row
    def predict_log_proba(self, X: Any, class_prior: Any = None) -> Array:
        """(N, C) log of `predict_proba`."""
        return self._log_proba(X, class_prior)

    def _log_proba(self, X: Any, class_prior: Any = None) -> Array:
        """The same as an array in memory, whatever holds the rows."""
        check_is_fitted(self, "exponents_")
        log_p = self._exponents.log_proba(self._scores(X), self._offset_)
        out: Array = log_softmax(log_p + self._shift(class_prior))
        return out

    def _scores(self, X: Any) -> Array:
        """(M, N, C) `comparable` scores of new rows: of members, or of features of each."""
        X = MemberRows.of(X)
        if self.exponents == "feature":
            nobody = np.zeros(_num_samples(X.X))
            return np.concatenate([feature_scores(m, X, None, nobody) for m in self._members_])
        return np.stack([comparable(member.log_joint(X)) for member in self._members_])

    @row_by_row
    def predict_proba(self, X: Any, class_prior: Any = None) -> Array:
        """(N, C) pooled class probabilities.

        Parameters
        ----------
        X : rows as in `fit`
        class_prior : array (class,) or {label: weight}, optional
            Class weights of the population that X comes from: the odds are multiplied by their
            ratio to the class weights of training.

        Returns
        -------
        (N, C)
            In the order of ``classes_``; members' parameters, exponents and intercepts are
            integrated out.
        """
        return np.exp(self._log_proba(X, class_prior))

    @row_by_row
    def predict(self, X: Any, class_prior: Any = None) -> Array:
        """(N,) the most probable label of each row."""
        check_is_fitted(self, "exponents_")
        labels: Array = self.classes_[self._log_proba(X, class_prior).argmax(axis=1)]
        return labels

    def _shift(self, class_prior: Any) -> Array:
        """(C,) log-odds that other class weights add."""
        if class_prior is None:
            return np.zeros(len(self.classes_))
        weights = weights_by_class(class_prior, self.classes_)
        with np.errstate(divide="ignore"):
            shift: Array = np.log(weights) - self._members_[0].log_class_weights
        return shift

    # -- how sure it is ------------------------------------------------------------------------

    @named_rows
    def predict_interval(
        self,
        X: Any,
        prob: float | None = None,
        kind: "KindName | None" = None,
        given: Literal["training", "training and row"] = "training",
        class_prior: Any = None,
        draws: int = 1000,
        random_state: Any = 0,
    ) -> "xr.Dataset":
        """Interval of the pooled probability of each class, by draws of parameters and exponents.

        What varies are exponents and intercepts, drawn from their posterior, and the members'
        scores, by their parameters' posteriors as if all members erred together (they learn from
        the same rows, and independent errors would cancel). Each row's draws are shifted in log
        odds, so that their mean is the prediction. An interval that would still not hold the
        prediction is made wider, so that a pool's always does; that of a single classifier may
        not (`GenerativeClassifier.predict_interval`, Notes). It is an interval
        of what the pool may say, no posterior of a model of x: how often it holds the probability
        that made the rows is measured in the documentation (benchmarks, "Pools").

        Parameters
        ----------
        X : rows
        prob, kind, class_prior
            As in `GenerativeClassifier.predict_interval`.
        given : {"training"}
            ``"training and row"`` is refused: a pool has no density of a row to learn from.
        draws : int
            Of the members' parameters, with as many of exponents and intercepts.
        random_state : int or numpy.random.Generator

        Returns
        -------
        xarray.Dataset
            ``interval`` and ``log_odds`` (obs_id, class, bound), ``predictive`` (obs_id, class),
            ``error`` (obs_id), as of a generative classifier.

        Warns
        -----
        UserWarning
            If members have a predictive and no posterior (hierarchical smoothing): they enter by
            it, and what their parameters leave open is not in the interval.
        """
        if given != "training":
            raise NotImplementedError(
                "given='training and row' needs a density of x, and a pool of predictives has "
                "none; ask a member: pool.members_[name].predict_interval(X, given=...)"
            )
        check_is_fitted(self, "exponents_")
        request = IntervalRequest.of(prob, kind)
        blocks = self._joint_draws(X, draws, random_state, class_prior)
        found = distribution.by_rows(lambda joint: distribution.interval(joint, request), blocks)
        log_p = self._log_proba(X, class_prior)
        by_class, by_end, p, odds = (
            (OBS, CLASS),
            (OBS, CLASS, BOUND),
            np.exp(log_p),
            log_odds(log_p),
        )

        def ends(lower: Array, upper: Array, own: Array) -> Array:
            return np.stack([np.minimum(lower, own), np.maximum(upper, own)], axis=-1)

        out = tree.group(
            {
                "interval": (by_end, ends(found.lower, found.upper, p)),
                "log_odds": (by_end, ends(found.log_odds_lower, found.log_odds_upper, odds)),
                "predictive": (by_class, p),
                "route": ((OBS,), found.method),
                "error": ((OBS,), found.error),
            },
            {CLASS: self.classes_, BOUND: ["lower", "upper"]},
        )
        return out.assign_attrs(prob=request.prob, kind=request.kind)

    @named_rows
    def predict_uncertainty(
        self,
        X: Any,
        unit: Literal["nats", "bits"] = "nats",
        class_prior: Any = None,
        draws: int = 1000,
        random_state: Any = 0,
    ) -> "xr.Dataset":
        """Entropy of the label, and how much of it is of parameters and exponents.

        As `GenerativeClassifier.predict_uncertainty`, by the draws of `predict_interval`: ``mean``
        is `predict_proba`, to 1e-6, or to 1e-3 in rows that 200 steps do not centre.
        """
        if unit not in ("nats", "bits"):
            raise ValueError(f"unit must be 'nats' or 'bits', got {unit!r}")
        check_is_fitted(self, "exponents_")
        blocks = self._joint_draws(X, draws, random_state, class_prior)
        found = distribution.by_rows(distribution.averages, blocks)
        scale = 1.0 if unit == "nats" else 1 / np.log(2)
        by_row, by_class = (OBS,), (OBS, CLASS)
        out = tree.group(
            {
                "total": (by_row, found.total * scale),
                "aleatoric": (by_row, found.aleatoric * scale),
                "epistemic": (by_row, (found.total - found.aleatoric) * scale),
                "mean": (by_class, found.mean),
                "sd": (by_class, found.sd),
                "top": (by_class, found.top),
                "route": (by_row, np.full(len(found.total), "draws")),
                "error": (by_row, found.error),
            },
            {CLASS: self.classes_},
        )
        return out.assign_attrs(unit=unit, given="training")

    @named_rows
    def predict_posterior(
        self, X: Any, draws: int = 1000, class_prior: Any = None, random_state: Any = 0
    ) -> "xr.DataTree":
        """Draws of the class probabilities, as `predict_interval` makes them.

        Their mean is `predict_proba`, to 1e-6, or to 1e-3 in rows that 200 steps do not centre.
        """
        import xarray as xr

        check_is_fitted(self, "exponents_")
        blocks = self._joint_draws(X, draws, random_state, class_prior, together=True)
        rho = np.concatenate([np.exp(log_softmax(joint)) for _, joint in blocks], axis=2)
        group = tree.group(
            {"class_probability": ((CHAIN, DRAW, OBS, CLASS), rho)}, {CLASS: self.classes_}
        )
        return xr.DataTree.from_dict({"/predictions": group})

    def _joint_draws(
        self, X: Any, draws: int, random_state: Any, class_prior: Any, together: bool = False
    ) -> Iterator[tuple[slice, Array]]:
        """(rows, (1, draws, n, C) pooled scores), blocks of rows.

        Members with very many parameters draw them anew for each block, unless all rows are to be
        taken `together`: of one row the distribution is the same.
        """
        if not isinstance(draws, int | np.integer) or draws < 2:
            raise ValueError(f"draws must be an integer >= 2, got {draws!r}")
        if held := [member.name for member in self._members_ if member.approximate]:
            warnings.warn(
                f"members without a posterior enter by their predictive ({', '.join(held)}): how "
                "uncertain their parameters are is not in these intervals and draws",
                UserWarning,
                stacklevel=3,
            )
        n = _num_samples(X)
        if n == 0:
            raise ValueError("Found array with 0 sample(s): there are no rows to draw for")
        rng = np.random.default_rng(random_state)
        anew = [self.exponents == "model" and m.too_large(draws) for m in self._members_]
        thetas = [
            {} if each else m.draw(rng, draws) for m, each in zip(self._members_, anew, strict=True)
        ]
        at = rng.permutation(np.arange(draws) % self._exponents.n_draws)
        eta, b = (drawn[at] for drawn in self._exponents.flat)
        b = b + self._offset_ + self._shift(class_prior)
        large = 128 if any(anew) else 8  # blocks of 256 or 16 MiB
        blocks = row_blocks(n, max(1, draws * len(self.classes_) // large))
        for rows in [slice(0, n)] if together else blocks:
            part = MemberRows(_safe_indexing(X, np.arange(rows.start, rows.stop)))
            scores = self._scores(part)
            joint = np.einsum("sm,mnc->snc", eta, scores, optimize=True) + b[:, None]
            away, sd = np.zeros_like(joint), []
            first = 0
            for member, theta, each in zip(self._members_, thetas, anew, strict=True):
                if self.exponents == "feature":
                    own, used = feature_draws(member, member.encoded(part), theta, eta[:, first:])
                    first += used
                else:
                    drawn = (
                        member.log_joint_drawn(part, rng, draws, together)
                        if each
                        else member.log_joint_of_draws(part, theta)
                    )
                    own = comparable(drawn)
                    own = eta[:, first, None, None] * (own - own.mean(axis=0))
                    first += 1
                away += own
                sd.append(np.sqrt((own - own.mean(axis=2, keepdims=True)).var(axis=0).mean(axis=1)))
            lost = np.sqrt(np.square(sd).sum(axis=0))  # of independent draws: some cancel
            away *= np.where(lost > 0, np.sum(sd, axis=0) / np.where(lost > 0, lost, 1), 1)[:, None]
            target = log_softmax(
                self._exponents.log_proba(scores, self._offset_) + self._shift(class_prior)
            )
            yield rows, _centred(joint + away, target)[None]

    # -- training rows without themselves ------------------------------------------------------

    def loo(
        self, X: Any, y: Any, target: Literal["label"] = "label", sample_weight: Any = None
    ) -> "ELPDData":
        """Leave-one-out score of the labels, as ArviZ holds it.

        Parameters
        ----------
        X, y, sample_weight : the training rows
        target : {"label"}
            A pool has no joint density of x and y.

        Returns
        -------
        arviz_stats ELPDData
            As of `GenerativeClassifier.loo`.

        Notes
        -----
        Members are without the row exactly (or by importance sampling, where they were fitted by
        draws). Exponents and intercepts are without it by Pareto-smoothed importance weights of
        their draws; new draws are made without a row that has a tenth of the weight or more. The
        members' scores of the other rows stay as they are.
        """
        return self.__bayesgen_loo__(X, y, target, sample_weight)[0]

    def __bayesgen_loo__(
        self, X: Any, y: Any, target: str = "label", sample_weight: Any = None
    ) -> "tuple[ELPDData, Array, TrainingRows]":
        """`loo`; (n, C) log probabilities of the rows that it scores; those rows."""
        if target != "label":
            raise ValueError(f"target must be 'label', got {target!r}: a pool has no density of x")
        check_is_fitted(self, "exponents_")
        scores, at, rows = self._training_scores(X, y, sample_weight)
        log_p, k = self._without_each_row(scores, rows.codes, rows.weight)
        own_class = np.arange(len(rows.codes)), rows.codes
        from bayesgen.checks.loo import elpd

        in_sample = self._log_proba(rows.X)[own_class]
        found = elpd(log_p[own_class], in_sample, at, target, k, self._exponents.n_draws)
        return found, log_p, rows

    def _without_each_row(self, scores: Array, codes: Array, weight: Array) -> tuple[Array, Array]:
        data = scores, codes, weight, self._prior_, self._offset_, self.random_state
        return without_each_row(self._exponents, *data)

    @named_rows
    def predict_set(
        self, X: Any, coverage: float = 0.9, by_class: bool = False, training: Any = None
    ) -> "xr.Dataset":
        """A set of labels for each row; about a share `coverage` of the sets hold the true one.

        As `GenerativeClassifier.predict_set`, from the leave-one-out probabilities of `loo`.

        Parameters
        ----------
        X : rows
        coverage, by_class
            As there.
        training : (X, y) or (X, y, sample_weight), optional
            A pool keeps the scores of its training rows, and needs none.
        """
        check_is_fitted(self, "exponents_")
        coverage = check_coverage(coverage)
        left_out = self._left_out(training)
        joint = self._log_proba(X)
        return prediction_sets(left_out, joint, self.classes_, coverage, by_class)

    def _left_out(self, training: Any = None) -> LeftOut:
        if training is None and self._loo_scores is not None:
            return self._loo_scores
        if training is not None:
            scores, _, rows = self._training_scores(*training, *[None] * (3 - len(training)))
            codes, weight = rows.codes, rows.weight
        else:
            assert self._data is not None, "read from a file, and then the scores are"
            scores, codes, weight = self._data
        odds = log_odds(self._without_each_row(scores, codes, weight)[0])
        unknown = np.full(len(codes), np.nan)
        own = odds[np.arange(len(codes)), codes]
        self._loo_scores = LeftOut(codes, weight, unknown, unknown, own).sorted()
        return self._loo_scores

    @named_rows
    def typicality(self, X: Any, training: Any = None) -> "xr.Dataset":
        r"""How likely a row this improbable, or more so, is among rows like the training rows.

        A pool has no density of rows, but members have, and their tail probabilities
        (`GenerativeClassifier.typicality`) differ: a row may be unlike the others in single
        columns, in pairs of them, or in all together. Their harmonic mean is small where one of
        them is. The result is the rank of this mean among those of the training rows, each
        computed without the row itself, and so is a tail probability again.

        Parameters
        ----------
        X : rows
        training : (X, y) or (X, y, sample_weight), optional
            The training rows. Needed once of a pool with ``exponents="feature"``.

        Returns
        -------
        xarray.Dataset
            ``by_class`` (obs_id, class), from densities given the class among training rows of
            that class; ``overall`` (obs_id), from densities among all training rows.

        Raises
        ------
        NotImplementedError
            If no member has a density of rows.
        ValueError
            If the training rows are needed and not given, or are not those of the fit.

        Notes
        -----
        Small values have their nominal frequency, or a little less, in new rows drawn as the
        training rows were; where members count bins, large ones are too frequent
        (``tests/benchmarks/typicality.py --alike``). Rows with different missing cells, and
        documents of different lengths, have densities without a common scale. With more than
        `max_rows` rows the ranks are among those that exponents are learned from. After a fit by
        draws a density far from all rows rests on few of them; its rank is about the lowest in any
        case.

        References
        ----------
        Wilson (2019), The harmonic mean p-value for combining dependent tests.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = bg.datasets.load_penguins()
        >>> X = X[["bill_length_mm", "bill_depth_mm"]].dropna()
        >>> pool = bg.LogLinearPool().fit(X.to_numpy(), y[X.index])
        >>> pool.typicality([[39.0, 18.0], [39.0, 30.0]])["overall"].values.round(3)
        array([0.904, 0.003])
        """
        check_is_fitted(self, "exponents_")
        ranks, X = self._member_ranks(training), MemberRows(X)
        of_class, overall = [], []
        with warnings.catch_warnings():  # a row whose density draws cannot tell ranks last or so
            warnings.simplefilter("ignore", MonteCarloWarning)
            for member in self._members_:
                if member.has_density:
                    joint = member.log_joint(X, "density")
                    weights = member.clf.fitted_.posterior.class_weights()
                    of_class.append(joint - log_weights(weights))
                    overall.append(log_sum_exp(joint))
        return tree.group(
            {
                "by_class": ((OBS, CLASS), ranks.typical_of_class(np.stack(of_class))),
                "overall": ((OBS,), ranks.typical_overall(np.stack(overall))),
            },
            {CLASS: self.classes_},
        )

    def _member_ranks(self, training: Any) -> MemberRanks:
        if not any(member.has_density for member in self._members_):
            raise NotImplementedError("typicality needs a member with a density of rows")
        if training is not None:
            if not isinstance(training, tuple | list) or len(training) not in (2, 3):
                raise ValueError("training must be (X, y) or (X, y, sample_weight)")
            own = labelled(as_rows(training[0]), *training[1:], *[None] * (3 - len(training)))
            X, weight = own.X, own.weight_of_each()
            joints = left_out_joints(self._members_, X, own.labels, weight, known=False)
            codes = codes_of(own.labels, self.classes_)
            self._ranks = member_ranks(self._members_, joints, codes, weight)
        if self._ranks is None:
            raise ValueError(
                'the densities of the training rows are not known with exponents="feature": pass '
                "training=(X, y) or (X, y, sample_weight)"
            )
        return self._ranks

    # -- what it is ----------------------------------------------------------------------------

    def to_pymc(self) -> "pm.Model":
        """Model of the exponents and intercepts, labels given the members' scores.

        Priors are Gamma and Normal. Members' scores are data: leave-one-out log joint densities
        (member, obs_id, class). NUTS on it and `posterior_` agree.
        """
        check_is_fitted(self, "classes_")
        import pymc as pm
        import pytensor.tensor as pt

        if self._data is None:
            raise ValueError(
                "a pool that was read from a file holds no rows: fit it again for its PyMC model"
            )
        scores, codes, weight = self._data
        prior = self._prior_
        coords = {MEMBER: self._names(), CLASS: self.classes_, OBS: np.arange(len(codes))}
        with pm.Model(coords=coords) as model:
            j = pm.Data("score", scores, dims=(MEMBER, OBS, CLASS))
            eta = pm.Gamma("exponent", prior.shape, prior.shape / prior.mean, dims=MEMBER)
            logit = pt.tensordot(eta, j, axes=1) + self._offset_
            if prior.intercept_scale is not None:
                logit += pm.Normal("intercept", 0.0, prior.intercept_scale, dims=CLASS)
            if (weight == 1).all():
                pm.Categorical("label", logit_p=logit, observed=codes, dims=OBS)
            else:
                log_p = pt.special.log_softmax(logit, axis=1)
                pm.Potential("label", (weight * log_p[pt.arange(len(codes)), codes]).sum())
        return model

    def _names(self) -> list[str]:
        if self.exponents == "model":
            return list(self.members_)
        return [
            f"{m.name}: {feature}"
            for m in self._members_
            for feature in m.clf.fitted_.feature_names
        ]

    @property
    def posterior_(self) -> "xr.DataTree":
        """Draws of exponents and intercepts, with R-hat and effective sample size as attributes."""
        check_is_fitted(self, "exponents_")
        import xarray as xr

        from bayesgen.inference.nuts import diagnose

        found = self._exponents
        variables = {"exponent": ((CHAIN, DRAW, MEMBER), found.exponents)}
        if self.intercepts:
            variables["intercept"] = ((CHAIN, DRAW, CLASS), found.intercepts)
        posterior = tree.group(variables, {MEMBER: self._names(), CLASS: self.classes_})
        out = xr.DataTree.from_dict({"/posterior": posterior})
        out.attrs |= tree.provenance(type(self).__name__, "hmc", self.random_state)
        out.attrs |= diagnose(posterior, xr.Dataset()).attributes()
        return out

    def summary(self, prob: float | None = None) -> PoolSummary:
        """Exponents and intercepts with intervals, and what they say of the members.

        Parameters
        ----------
        prob : float in (0, 1), optional
            Of the intervals; default ``az.rcParams["stats.ci_prob"]``.
        """
        check_is_fitted(self, "exponents_")
        return PoolSummary.of(self, prob)

    _html_repr = with_summary

    @named_rows
    def explain(self, X: Any, classes: Any = None) -> "xr.Dataset":
        """Log-odds of two classes as a sum over members and, where they tell, features.

        Parameters
        ----------
        X : rows
        classes : (label, label), optional
            The log-odds are those of the first against the second. None: the most probable of
            each row against its runner-up.

        Returns
        -------
        xarray.Dataset
            In nats: ``by_member`` (obs_id, member), exponents times the members' log-odds;
            ``intercept`` (obs_id); their sum ``log_odds``. Exponents and intercepts are means over
            their draws with the weights that make the sum exact in each row. ``by_feature``
            (obs_id, feature), the members' own contributions (posterior means) times their
            exponents; ``rest`` (obs_id), what no feature accounts for alone: quadratic
            discriminants, pipelines; ``label`` and ``against``.
        """
        check_is_fitted(self, "exponents_")
        if len(self.classes_) < 2:
            raise ValueError("explain: log-odds need two classes, and the pool knows one")
        X = MemberRows(X)
        scores = self._scores(X)
        n = scores.shape[1]
        if classes is None:
            log_p = self._exponents.log_proba(scores, self._offset_)
            pairs = np.argsort(-log_p, axis=1, kind="stable")[:, :2]
        else:
            labels = list(classes)
            if len(labels) != 2:
                raise ValueError(f"classes must be a pair of labels, got {len(labels)} of them")
            pairs = np.tile(codes_of(labels, self.classes_), (n, 1))
        a, b = pairs.T
        rows = np.arange(n)
        by_member = np.empty((n, len(self._members_)))
        features = _feature_names(self)
        by_feature = np.zeros((n, len(features)))
        exponents, intercept = self._exponents.terms(scores, self._offset_, pairs)
        parts = exponents * (scores[:, rows, a] - scores[:, rows, b]).T
        first = 0
        for m, member in enumerate(self._members_):
            if self.exponents == "feature":
                own = parts[:, first : first + len(member.clf.fitted_.feature_names)]
                first += own.shape[1]
                by_member[:, m] = own.sum(axis=1)
                _add(by_feature, own, features, member, self)
                continue
            by_member[:, m] = parts[:, m]
            if isinstance(member.clf, QuadraticDiscriminant):
                continue  # products of features are no feature's own: they are in `rest`
            if member.selection is not None and member.selection.documents:
                by_feature[:, features.index(member.selection.chosen[0])] += by_member[:, m]
                continue
            try:
                terms = exponents[:, [m]] * _contributions(member, X, pairs)
            except (MissingCapabilityError, NotImplementedError, ValueError):
                continue  # its log-odds are known as a whole: they are in `rest`
            _add(by_feature, terms, features, member, self)
        return tree.group(
            {
                "by_member": ((OBS, "member"), by_member),
                "by_feature": ((OBS, FEATURE), by_feature),
                "rest": ((OBS,), by_member.sum(axis=1) - by_feature.sum(axis=1)),
                "intercept": ((OBS,), intercept),
                "log_odds": ((OBS,), by_member.sum(axis=1) + intercept),
                "label": ((OBS,), self.classes_[a]),
                "against": ((OBS,), self.classes_[b]),
            },
            {"member": list(self.members_), FEATURE: features},
        ).assign_attrs(unit="nats")

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the pool, members and all, to one netCDF file; `bayesgen.load` reads it."""
        check_is_fitted(self, "exponents_")
        storage.write(path, *record_of(self))

    def _load(
        self,
        fit: "xr.Dataset",
        state: Mapping[str, Any],
        groups: Mapping[str, "xr.Dataset"],
        known: Mapping[str, Any],
    ) -> Self:
        """Fill a new instance from a model file; `known` are the classes of members."""
        self.classes_ = storage.labels_from_json(state["classes"])
        members = []
        for k, entry in enumerate(state["members"]):
            own = entry["state"]
            if own["unsaved"]:
                raise ValueError(
                    f"member {entry['name']!r} was saved with {own['unsaved'][0]}=..., which a "
                    "file cannot hold: save the members one by one, and pool them with prefit=True"
                )
            if own["estimator"] not in known:
                raise ValueError(f"member {entry['name']!r} is of an unknown class")
            arguments = storage.arguments_from_json(own["parameters"])
            draws = {name: groups[f"member_{k}_{name}"] for name in entry["draws"]}
            clf = known[own["estimator"]](**arguments)
            clf.fitted_ = clf.__bayesgen_load__(groups[f"member_{k}_{_FIT}"], own, draws)
            if not np.array_equal(clf.classes_, self.classes_):
                raise ValueError(f"member {entry['name']!r} knows other classes than the pool")
            view = None if entry["view"] is None else TableView.from_json(entry["view"])
            seen = entry["selection"]
            selection = None if seen is None else Selection.from_json(seen)
            members.append(Member(entry["name"], clf, view, selection=selection))
        self._members_ = members
        self.members_ = {member.name: member.clf for member in members}
        self.members = "auto" if state["auto"] else [(m.name, m.clf) for m in members]
        eta, b, offset = (np.asarray(fit[k].values) for k in ("exponents", "intercepts", "offset"))
        by_feature = state["parameters"]["exponents"] == "feature"
        number = (
            sum(len(m.clf.fitted_.feature_names) for m in members) if by_feature else len(members)
        )
        size, n_classes = eta.shape[:2], len(self.classes_)
        shapes = (*size, number), (*size, n_classes), (n_classes,)
        for value, shape in zip((eta, b, offset), shapes, strict=True):
            if value.shape != shape or not value.size or not np.isfinite(value).all():
                raise ValueError(
                    "the exponents of the pool are not as many finite numbers as it needs"
                )
        if np.any(eta < 0):
            raise ValueError("exponents of a pool are not negative")
        self._exponents, self._offset_ = Exponents(eta, b), offset
        self.exponents_, self.intercepts_ = self._exponents.mean
        self._prior_ = ExponentPrior(*state["prior"])
        held = groups[LEAVE_ONE_OUT]
        self._loo_scores = LeftOut(**{str(k): held[k].values for k in held.data_vars})
        self._loo_scores.refuse_invalid(len(self.classes_))
        self._data = self._ranks = None
        if MEMBER_RANKS in groups:
            held = groups[MEMBER_RANKS]
            self._ranks = MemberRanks(**{str(k): held[k].values for k in held.data_vars})
            with_density = sum(member.has_density for member in members)
            self._ranks.refuse_invalid(with_density, len(self.classes_))
        self.n_rows_, self.left_out_ = storage.whole(state, "n_rows"), dict(state["left_out"])
        n_features, names = storage.columns_from_json(state)
        if n_features is not None:
            self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = names
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        own = tags.input_tags
        if isinstance(self.members, str):
            own.allow_nan = own.sparse = own.string = own.categorical = True
            return tags
        inner = [get_tags(estimator).input_tags for _, estimator in named(self.members)]
        for name in ("allow_nan", "sparse", "string", "categorical", "positive_only"):
            some = any if name == "positive_only" else all
            setattr(own, name, some(getattr(of, name) for of in inner))
        return tags


def _common_classes(members: list[Member]) -> Array:
    """The classes that all members know."""
    first = members[0]
    for member in members[1:]:
        if not np.array_equal(member.clf.classes_, first.clf.classes_):
            raise ValueError(
                f"members know different classes: {first.name!r} {first.clf.classes_.tolist()}, "
                f"{member.name!r} {member.clf.classes_.tolist()}; fit them to the same rows"
            )
    classes: Array = first.clf.classes_
    return classes


def seen_by_members(pool: LogLinearPool, X: Any) -> Iterator[tuple[str, GenerativeClassifier, Any]]:
    """(name, fitted classifier, rows of X as it takes them) of the members, one by one."""
    rows = MemberRows(X)
    return ((member.name, member.clf, rows.seen(member)) for member in pool._members_)
