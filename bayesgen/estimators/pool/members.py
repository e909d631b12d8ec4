"""Members of a pool: a classifier, and how it sees the rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples, check_is_fitted

from bayesgen.encoding.binned import BinnedTable
from bayesgen.encoding.in_memory import refuse_elsewhere
from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.selection import Selection
from bayesgen.encoding.suspects import ColumnWarning, documents
from bayesgen.encoding.tables import feature_names
from bayesgen.encoding.views import TableView
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.estimators.counts import BernoulliNB, MultinomialNB
from bayesgen.estimators.forests import TreeAugmentedNB
from bayesgen.estimators.gaussian import LinearDiscriminant, QuadraticDiscriminant
from bayesgen.estimators.gaussian_forest import TreeAugmentedGaussianNB
from bayesgen.estimators.super_parents import AnDE
from bayesgen.estimators.tables import CategoricalNB, MixedNB
from bayesgen.estimators.text import MarkovNB
from bayesgen.families.conjugate.dirichlet_forest.statistics import n_pairs
from bayesgen.families.conjugate.dirichlet_super_parents.statistics import n_cells
from bayesgen.families.contract import Theta
from bayesgen.numerics.special import Array, log_sum_exp
from bayesgen.posterior.drawn import DrawnPosterior, log_joint_blocks
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import Quantity, is_generative
from bayesgen.predict.draws import log_joint_draws
from bayesgen.predict.leave_one_out import log_weights_of, training_rows
from bayesgen.predict.probabilities import log_joint

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

    def rows(self, X: Any) -> Any:
        """Rows as the classifier takes them."""
        if self.selection is not None:
            X = self.selection.rows(X)
        if self.front is not None:
            return self.front.transform(X)
        return X if self.view is None else self.view.encode(X)

    def fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit the classifier to rows; the view or the pipeline first."""
        if self.front is not None:
            rows = self.front.fit_transform(X, y)
        else:
            rows = self.rows(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ColumnWarning)  # the pool says it once
            clf = self.clf.fit(rows, y, sample_weight=sample_weight)
        if rows is not X:
            clf.fitted_ = clf.fitted_.with_training(rows=None)  # nobody else keeps them
        return replace(self, clf=clf)

    def scores(
        self, X: Any, y: Any, sample_weight: Any, *, partial: bool, known: bool = False
    ) -> Array:
        """(N, C) log joint densities of training rows, each without itself.

        `partial`, `known`: as in `leave_one_out`.
        """
        rows = training_rows(self.clf.fitted_, self.rows(X), y, sample_weight, partial, known=known)
        log_joint, _ = self.clf.fitted_.posterior.log_joint_without(*rows)
        return log_joint

    def log_joint(self, X: Any, quantity: Quantity = "probability") -> Array:
        """(N, C) of new rows; for a probability up to a term that classes share."""
        return log_joint(self.clf.fitted_, self.rows(X), quantity=quantity)

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
        model, rows = self.clf.fitted_.posterior.model, self.clf.fitted_.encoded(self.rows(X))
        return log_joint_draws(model, rows, rng, draws, by_theta=together and rows.ndim == 2)

    def log_joint_of_draws(self, X: Any, theta: Theta) -> Array:
        """(draws, N, C) of rows under each draw; (1, N, C), the predictive, where there is none."""
        if not theta:
            return self.log_joint(X)[None]
        rows, model = self.clf.fitted_.encoded(self.rows(X)), self.clf.fitted_.posterior.model
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
    if sparse.issparse(X):
        return _of_counts(X), {}
    if _is_text(X):
        return _of_documents(), {}
    if texts := documents(X):
        return _of_table_and_texts(X, texts, n_classes, separable)
    return _of_table(X, n_classes, separable)


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


def _of_table(X: Any, n_classes: int, separable: bool) -> tuple[list[Member], dict[str, str]]:
    numbers = TableView.learn(X, "numbers")
    kinds = set(numbers.schema.kinds)
    left_out: dict[str, str] = {}
    members = [Member("independent columns", MixedNB())]
    if "gaussian" in kinds:
        if not separable:
            members.append(_second_of_numbers(numbers, _num_samples(X) * n_classes))
        bins = TableView.learn(X, "bins")
        members.append(Member("bins", CategoricalNB(categories=bins.n_categories), bins))
    if separable:
        return members, left_out
    n_rows, n_columns = _num_samples(X), len(numbers.schema.kinds)
    work = n_rows * n_classes * n_columns**3
    if n_columns > _WIDEST_FOREST or work > _MOST_FOREST_WORK:
        for name, what in (("forest", "forests"), ("super-parents", "pairs of super-parents")):
            left_out[name] = (
                f"an average over {what} of {n_columns} columns would take {work:.0e} operations"
            )
    else:
        members += _of_dependences(X, numbers.schema, n_classes, left_out)
    views = [("", numbers)]
    if "gaussian" in kinds:
        views.append((" on normal scores", TableView.learn(X, "normal scores")))
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
    X: Any, schema: TableSchema, n_classes: int, left_out: dict[str, str]
) -> list[Member]:
    """Forests and super-parents, without columns whose many categories need too many counts."""
    out = []
    found: tuple[tuple[str, Any, int, Any, float], ...] = (
        ("forest", TreeAugmentedNB(missing="category", prior="default"), 2, n_pairs, _MOST_PAIRS),
        ("super-parents", AnDE(2, missing="category"), 3, partial(n_cells, n=2), _MOST_COUNTS),
    )
    for name, clf, least, counted, most in found:
        levels = BinnedTable.learn(X, clf.n_bins, missing="category").levels
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
    X: Any, texts: list[str], n_classes: int, separable: bool
) -> tuple[list[Member], dict[str, str]]:
    """Language models of each column of texts, and the members for the other columns."""
    names = tuple(feature_names(X) or ())
    others = Selection(names, tuple(name for name in names if name not in texts))
    members: list[Member] = []
    left_out: dict[str, str] = {}
    if others.chosen:
        members, left_out = _of_table(others.rows(X), n_classes, separable)
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
