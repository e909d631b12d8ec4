"""The rows of a report, and what the classifier says of them: computed once."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from bayesgen.checks.compare import Joints, joints_of, scored
from bayesgen.encoding.labels import codes_of
from bayesgen.encoding.literals import one_line
from bayesgen.encoding.reader import Rows
from bayesgen.encoding.tables import as_table, is_table
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS
from bayesgen.numerics.special import Array, count_tails, log_softmax
from bayesgen.predict.costs import read_costs
from bayesgen.predict.draws import IntervalRequest
from bayesgen.predict.leave_one_out import training_rows

if TYPE_CHECKING:
    import xarray as xr

_MOST = 20_000  # rows that are scored, where predictions are closed forms
_EQUAL = 0.2  # share of rows that equal training rows, beyond copies, from which on it is said
_MOST_BY_DRAWS = 2_000  # where every row is averaged over draws
_DOUBTFUL = 8


@dataclass(frozen=True)
class HeldOut:
    """A fitted classifier and labelled rows that it has not seen.

    Parameters
    ----------
    clf : fitted classifier of this package
    X, y : the rows that are looked at, and their labels
    places : (n,) of the rows among those given
    n_given : int
    prob : float
        Of all intervals.
    seed : int
        Of everything that is drawn.
    training : (X, y) or (X, y, sample_weight), or None
    is_training : bool
        Whether the rows given are those of the fit, by what its statistics say of them.
    cost : (class, decision) array, DataFrame or dict, or None
        As in `decide`.
    """

    clf: Any
    X: Any
    y: Array
    places: Array
    n_given: int
    prob: float
    seed: int
    training: Any = None
    is_training: bool = False
    cost: Any = None

    @classmethod
    def of(
        cls,
        clf,
        X,
        y,
        training,
        prob: float | None,
        max_rows: int | None,
        seed: int,
        cost=None,
    ) -> "HeldOut":
        """Return at most `max_rows` of the rows, drawn at random."""
        if not hasattr(clf, "fitted_"):
            raise TypeError(
                f"report: {type(clf).__name__} is not a classifier of bayesgen, nor a pipeline "
                "that ends in one"
            )
        if y is None:
            raise TypeError("report: y is None; give the labels of the rows X")
        codes = codes_of(y, clf.classes_, True)  # refuses unknown labels before any work
        read_costs(cost, clf.classes_)
        n = _num_samples(X)
        if codes.shape != (n,):
            raise ValueError(f"report: X has {n} rows, but y has shape {codes.shape}")
        if not n:
            raise ValueError("report: X has no rows")
        X = X.tocsr() if sparse.issparse(X) else X  # some other forms have no rows to take
        most = (_MOST if _closed_form(clf) else _MOST_BY_DRAWS) if max_rows is None else max_rows
        labels = clf.classes_[codes]
        is_training = _are_of_the_fit(clf, X, labels)
        places = np.arange(n)
        if n > most:
            places = np.sort(np.random.default_rng(seed).choice(n, int(most), replace=False))
            X, labels = _safe_indexing(X, places), labels[places]
        prob = IntervalRequest.of(prob).prob
        return cls(clf, X, labels, places, n, prob, seed, training, is_training, cost)

    @property
    def n(self) -> int:
        """Number of rows that are looked at."""
        return len(self.y)

    @cached_property
    def codes(self) -> Array:
        """Return (n,) class codes."""
        codes: Array = codes_of(self.y, self.clf.classes_)
        return codes

    @cached_property
    def labels(self) -> list[str]:
        """Classes as text."""
        return [one_line(label, 40) for label in self.clf.classes_.tolist()]

    @cached_property
    def seen(self) -> Rows:
        """Rows as the classifier reads them, once."""
        return self.clf.fitted_.read(self.X)

    @cached_property
    def joints(self) -> Joints:
        """Return (n, C) log joint densities by each method, or why there are none.

        Of training rows those without the row itself, by the full predictive alone.
        """
        if self.without_row is None:
            return joints_of(self.clf.fitted_, self.seen)
        seen_all = "these are the training rows, and an estimate from all of them has seen each row"
        plug_ins = {name: UndefinedEstimateError(name, seen_all) for name in METHODS[1:]}
        return {METHODS[0]: self.without_row, **plug_ins}

    @cached_property
    def without_row(self) -> Array | None:
        """Return (n, C) log joint densities of training rows, each without itself, or None."""
        if not self.is_training:
            return None
        fitted, training = self.clf.fitted_, self.clf.fitted_.training
        groups = None if training.groups is None else training.groups[self.places]
        weight = None if training.weight is None else training.weight[self.places]
        try:
            rows = training_rows(fitted, self.X, self.y, weight, self.n < self.n_given, groups)
            joint: Array = fitted.posterior.log_joint_without(*rows)[0]
        except (ValueError, NotImplementedError):  # a single label tree; estimated weights
            return None
        return joint

    @cached_property
    def n_seen(self) -> int:
        """Return the number of rows that equal training rows; 0 if chance explains them.

        A new row equals a training row by chance with a probability of about 1 less the share of
        training rows that no other one equals. Source: Good (1953), The population frequencies of
        species and the estimation of population parameters.
        """
        kept = self.clf.fitted_.training.rows
        if self.is_training or kept is None:
            return 0
        trained, new = _row_hashes(kept.X), _row_hashes(self.X)
        if trained is None or new is None:
            return 0
        times = np.unique(trained, return_counts=True)[1]
        by_chance = 1 - (times == 1).sum() / len(trained)
        equal = np.isin(new, trained)
        return int(equal.sum()) if equal.mean() > by_chance + _EQUAL else 0

    @cached_property
    def scores(self) -> "tuple[xr.Dataset, dict[str, list[Array]]]":
        """Scores of each method, and their terms (n,) per row."""
        return scored(type(self.clf).__name__, self.joints, self.codes)

    @cached_property
    def costs(self):
        """Costs (class, decision), and the decisions; without `cost` a wrong class costs 1."""
        return read_costs(self.cost, self.clf.classes_)

    @cached_property
    def log_p(self) -> Array:
        """Return (n, C) log predictive probabilities; NaN for a row that no class can have made."""
        with np.errstate(invalid="ignore"):
            return np.asarray(log_softmax(np.asarray(self.joints[METHODS[0]])))

    @cached_property
    def p(self) -> Array:
        """Return (n, C) predictive probabilities; 0 for a row that no class can have made."""
        return np.nan_to_num(np.exp(self.log_p))

    @cached_property
    def right(self) -> Array:
        """Return (n,) whether the most probable label is the given one."""
        right: Array = (self.p.argmax(axis=1) == self.codes) & (self.p.max(axis=1) > 0)
        return right

    @cached_property
    def class_chances(self) -> list[float]:
        """Probability of a count of each class as extreme as that seen, on either side.

        It is exact if every stated probability is true.
        """
        counts = np.bincount(self.codes, minlength=len(self.labels))
        tails = [count_tails(q, int(k)) for q, k in zip(self.p.T, counts, strict=True)]
        return [min(1.0, 2 * min(both)) for both in tails]

    @cached_property
    def doubtful(self) -> Array:
        """Positions of a few rows, those whose most probable class is the least probable."""
        return np.argsort(self.p.max(axis=1), kind="stable")[:_DOUBTFUL]

    @cached_property
    def doubtful_rows(self):
        """Return those rows as X has them."""
        return _safe_indexing(self.X, self.doubtful)

    @cached_property
    def typicality(self) -> "xr.Dataset":
        """Typicality of the rows; ValueError where the classifier has no density of x."""
        if not self.is_pool:
            self.clf.fitted_.refuse_if_discriminative("typicality")
        return self.clf.typicality(self.seen, self.training)

    @cached_property
    def summary(self):
        """Result of `clf.summary`."""
        return self.clf.summary(self.prob) if self.is_pool else self.clf.summary()

    @property
    def is_pool(self) -> bool:
        """True for a pool of other classifiers."""
        return bool(self.clf.fitted_.posterior.members)

    @cached_property
    def class_weights(self) -> Array:
        """Return (C,) of the classifier; of a discriminative one the frequencies in these rows."""
        posterior = self.clf.fitted_.posterior
        if not posterior.has_weights:
            return np.bincount(self.codes, minlength=len(self.labels)) / self.n
        return np.asarray(posterior.class_weights())

    def name(self, i: int) -> str:
        """Return what row i is called: by its index, or its number from 0 among those given."""
        if hasattr(self.X, "iloc"):
            return one_line(self.X.index[i], 20)
        return str(self.places[i])

    def document(self, i: int) -> str:
        """Return the beginning of a text; "" if the rows are none."""
        if len(getattr(self.X, "shape", (0,))) == 2:
            return ""
        one = (self.X.iloc if hasattr(self.X, "iloc") else self.X)[i]
        return one_line(one, 60) if isinstance(one, str) else ""


def _row_hashes(X) -> Array | None:
    """Return (N,) hashes of rows, the same for equal cells of any type; None of sparse rows."""
    import pandas as pd

    if sparse.issparse(X):
        return None
    if not is_table(X) and np.ndim(X) == 1:
        return pd.util.hash_array(np.array([str(text) for text in X], dtype=object))
    table = as_table(X)
    columns = (table.column(j) for j in range(table.n_columns))
    cells = {
        j: column.values.astype(np.float64)
        if column.codes is None
        else np.array([*column.values, None], dtype=object)[column.codes]
        for j, column in enumerate(columns)
    }
    return pd.util.hash_pandas_object(pd.DataFrame(cells), index=False).to_numpy()


def _are_of_the_fit(clf, X, y: Array) -> bool:
    """Return whether these are the rows of the fit, by what its statistics say of them."""
    first, rows = clf.fitted_.parts(X, of_training=True)[0]
    if first.training.n_rows != len(y) or not first.posterior.exact:
        return False
    try:
        training_rows(first, rows, y)
    except ValueError:
        return False
    return True


def _closed_form(clf) -> bool:
    return all(model.training.inference == "closed form" for model in clf.fitted_.models)
