"""The rows of a report, and what the classifier says of them: computed once."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from bayesgen.encoding.labels import codes_of
from bayesgen.encoding.literals import one_line
from bayesgen.estimators.pool import seen_by_members
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.predict.leave_one_out import training_rows
from bayesgen.predict.probabilities import log_joint_of
from bayesgen.predict.request import IntervalRequest

_MOST = 20_000  # rows that are scored, where predictions are closed forms
_MOST_BY_DRAWS = 2_000  # where every row is averaged over draws


@dataclass(frozen=True)
class HeldOut:
    """A fitted classifier and labelled rows that it has not seen.

    Parameters
    ----------
    clf : fitted classifier of this package
    X, y : the rows that are looked at, and their labels
    at : (n,) where they stand among those given
    n_given : int
    prob : float
        Of all intervals.
    seed : int
        Of everything that is drawn.
    training : (X, y) or (X, y, sample_weight), or None
    is_training : bool
        Whether the rows given are those of the fit, by what its statistics say of them.
    labelled : bool
        Whether `y` are labels; else they are predictions.
    """

    clf: Any
    X: Any
    y: Array
    at: Array
    n_given: int
    prob: float
    seed: int
    training: Any = None
    is_training: bool = False
    labelled: bool = True

    @classmethod
    def of(
        cls, clf: Any, X: Any, y: Any, training: Any, prob: float | None, max_rows: Any, seed: int
    ) -> "HeldOut":
        """With at most `max_rows` of the rows, drawn at random."""
        if not (hasattr(clf, "fitted_") or hasattr(clf, "members_")):
            raise TypeError(
                f"report: {type(clf).__name__} is not a classifier of bayesgen; of a pipeline, "
                "give the last step and the rows as it was given them"
            )
        labelled, y = y is not None, clf.predict(X) if y is None else y
        codes = codes_of(y, clf.classes_)  # refuses unknown labels before any work
        n = _num_samples(X)
        if codes.shape != (n,):
            raise ValueError(f"report: X has {n} rows, but y has shape {codes.shape}")
        if not n:
            raise ValueError("report: X has no rows")
        X = X.tocsr() if sparse.issparse(X) else X  # some other forms have no rows to take
        most = (_MOST if _closed_form(clf) else _MOST_BY_DRAWS) if max_rows is None else max_rows
        labels = clf.classes_[codes]
        is_training = labelled and _are_of_the_fit(clf, X, labels)
        at = np.arange(n)
        if n > most:
            at = np.sort(np.random.default_rng(seed).choice(n, int(most), replace=False))
            X, labels = _safe_indexing(X, at), labels[at]
        own = IntervalRequest.of(prob).prob
        return cls(clf, X, labels, at, n, own, seed, training, is_training, labelled)

    @property
    def n(self) -> int:
        """Number of rows that are looked at."""
        return len(self.y)

    @cached_property
    def codes(self) -> Array:
        """(n,) class codes."""
        codes: Array = codes_of(self.y, self.clf.classes_)
        return codes

    @cached_property
    def labels(self) -> list[str]:
        """The classes, as text."""
        return [one_line(label, 40) for label in self.clf.classes_.tolist()]

    @cached_property
    def p(self) -> Array:
        """(n, C) predictive probabilities; 0 for a row that no class can have made."""
        joint = log_joint_of(self.clf, self.X)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(np.exp(log_softmax(np.asarray(joint))))

    @cached_property
    def right(self) -> Array:
        """(n,) whether the most probable label is the given one."""
        right: Array = (self.p.argmax(axis=1) == self.codes) & (self.p.max(axis=1) > 0)
        return right

    @property
    def what(self) -> str:
        """One of the rows, by what it is to the model."""
        known = "training row" if self.is_training else "held-out row"
        return known if self.labelled else "unlabelled row"

    def label(self, value: Any) -> str:
        """One of the classes, as text."""
        return self.labels[int(codes_of([value], self.clf.classes_)[0])]

    @property
    def is_pool(self) -> bool:
        """Whether the classifier is a pool of others."""
        return hasattr(self.clf, "members_")

    @cached_property
    def class_weights(self) -> Array:
        """(C,) of the classifier; of a discriminative one the frequencies in these rows."""
        own = next(iter(self.clf.members_.values())) if self.is_pool else self.clf
        if own.prior_.family.discriminative:
            return np.bincount(self.codes, minlength=len(self.labels)) / self.n
        return np.asarray(own.fitted_.posterior.class_weights())

    def rows(self, at: Any) -> Any:
        """Some of the rows, as X has them."""
        return _safe_indexing(self.X, at)

    def some(self, most: int) -> Array:
        """Positions of at most so many rows, drawn at random."""
        if self.n <= most:
            return np.arange(self.n)
        rng = np.random.default_rng(self.seed)
        return np.sort(rng.choice(self.n, max(1, most), replace=False))

    def name(self, i: int) -> str:
        """What row i is called: by the frame's index, or counted from 0 among those given."""
        if hasattr(self.X, "iloc"):
            return one_line(self.X.index[i], 20)
        return str(self.at[i])

    def value(self, i: int, feature: str) -> str:
        """The cell of a row in a column, as text; "" where X has no such column."""
        if hasattr(self.X, "columns") and feature in list(self.X.columns):
            values = self.X[feature]
            return _cell((values.iloc if hasattr(values, "iloc") else values)[i])
        return ""

    def document(self, i: int) -> str:
        """The beginning of a text; "" if the rows are none."""
        if len(getattr(self.X, "shape", (0,))) == 2:
            return ""
        one = (self.X.iloc if hasattr(self.X, "iloc") else self.X)[i]
        return one_line(one, 60) if isinstance(one, str) else ""


def _are_of_the_fit(clf: Any, X: Any, y: Array) -> bool:
    """Whether these are the rows of the fit, by what its statistics say of them."""
    n = len(y)
    if hasattr(clf, "members_"):
        _, clf, X = next(seen_by_members(clf, X))
    if getattr(clf, "n_rows_seen_", None) != n or not hasattr(clf, "stats_"):
        return False
    try:
        training_rows(clf.fitted_, X, y)
    except ValueError:
        return False
    return True


def _closed_form(clf: Any) -> bool:
    members = getattr(clf, "members_", {"": clf}).values()
    return all(getattr(member, "inference_", "closed form") == "closed form" for member in members)


def _cell(value: Any) -> str:
    """A cell of the user's table, shortened."""
    if value is None or (isinstance(value, float | np.floating) and value != value):
        return "missing"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return one_line(value, 40)
