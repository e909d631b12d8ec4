"""Rows to statistics to posterior: fit, in parts, and merged."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
)

from bayesgen.encoding.labels import (
    code_labels,
    labels_and_mask,
    refuse_mixed,
    refuse_two_types,
    refuse_unlabelled,
)
from bayesgen.estimators.face import NoClosedFormError
from bayesgen.estimators.sampling import Sampling
from bayesgen.families.contract import Record, Stats
from bayesgen.inference.closed_form import posterior as closed_form_posterior
from bayesgen.numerics.rows import class_counts
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassStats

Inference = Literal["closed form", "nuts", "gibbs", "laplace", "advi", "pathfinder"]
_SAMPLED: tuple[str, ...] = get_args(Inference)[1:]


def _adds_up(self: Any) -> bool:
    """Whether rows can be added: scikit-learn tells it by the attribute ``partial_fit``."""
    if not self._conjugate():
        raise NoClosedFormError(
            f"partial_fit adds up sufficient statistics, and the family of {type(self).__name__} "
            "has none: fit all rows together"
        )
    return True


class Fitting(Sampling):
    """Methods that learn from rows."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        inference: Inference | None = None,
        **sample_options: Any,
    ) -> Self:
        """Posterior of all parameters given rows.

        Parameters
        ----------
        X : (N, D)
            NaN is a missing cell. With a full covariance such rows need ``inference="nuts"``.
        y : (N,)
            Labels of any sortable type. With ``inference="nuts"`` labels may be missing: masked
            (`numpy.ma`), None, NaN or NA, or, if y has none of these, -1 in numbers. (Beside one
            other label or another negative one, -1 is refused: it may be a label. In closed form
            it always is one.)
        sample_weight : (N,), optional
            Non-negative weights that multiply the statistics: an integer weight is that many
            equal rows, a weight of 0 is no row.
        inference : {"closed form", "nuts", "gibbs", "laplace", "advi", "pathfinder"}, optional
            Default: the closed form where the family has one, else NUTS. NUTS takes what has no
            closed form, for the same model: missing labels and missing cells are integrated out,
            not filled in. ``posterior_`` then holds its draws, which the predict methods average
            over, and in the group ``posterior_predictive`` draws of the unknown labels
            (``imputed_label``) and, with a full covariance, cells (``imputed``). It takes a minute
            where the closed form takes milliseconds. ``"gibbs"`` draws missing labels and theta
            in turn, for conjugate families: nothing to compile. The last three approximate the
            posterior by a Normal in unconstrained coordinates, for large data;
            ``posterior_.attrs`` and a warning say how far that can be trusted.
        **sample_options
            Of NUTS: ``draws``, ``tune``, ``chains``, ``random_seed``, ``sampler``,
            ``progressbar``, and what the sampler takes (``target_accept``), as in
            `sample_posterior`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            On input that the model cannot take; the message names the row and column.

        Warns
        -----
        SamplingWarning
            If NUTS reports divergences, or the chains disagree or are too short.

        Notes
        -----
        Priors that the data set (defaults) come from all rows; those without a label count for
        every class in equal parts. Missing cells and labels are assumed missing at random: that
        they are missing says nothing of their values beyond what is observed.
        """
        with self._all_or_nothing():
            self._unlearn()
            if inference is None:
                inference = "closed form" if self._conjugate() else "nuts"
            if inference in _SAMPLED:
                return self._sample(X, y, sample_weight, inference, sample_options)
            if inference != "closed form":
                allowed = ", ".join(map(repr, get_args(Inference)))
                raise ValueError(f"inference must be one of {allowed}, got {inference!r}")
            if sample_options:
                raise TypeError(
                    f"fit() got {', '.join(sample_options)}, which is for inference='nuts' alone"
                )
            return self._add(X, y, sample_weight, None)

    @available_if(_adds_up)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows; the result is that of one fit to all rows so far.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array, optional
            All labels that may come. Without it, new labels are added as they appear; a class
            without rows keeps its prior.
        """
        self._refuse_draws("partial_fit")
        with self._all_or_nothing():
            return self._add(X, y, sample_weight, classes)

    def merge(self, other: Self) -> Self:
        """Add another fitted classifier's rows, through its statistics alone; returns self.

        Workers and sites fit on their own rows and merge; the result is that of one fit to all
        rows. `other` must have the same constructor arguments.
        """
        check_is_fitted(self, "prior_")
        check_is_fitted(other, "prior_")
        if type(other) is not type(self):
            raise TypeError(f"cannot merge {type(other).__name__} into {type(self).__name__}")
        for each in (self, other):
            each._refuse_draws("merge")
        self._check_same_arguments(other)
        with self._all_or_nothing():
            self._merge_statistics(other)
            return self._settle()

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows away that were learned before; the result is that of one fit to the others.

        Only the statistics are kept, so nothing can tell whether the rows were really among those
        learned; what the statistics show to be impossible is refused. Classes, categories and
        tokens stay known when their last row goes, as if they had been declared.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Raises
        ------
        ValueError
            If the rows hold a label, category or token that was never learned; if more would be
            taken away than there is, or all there is; or after a fit by NUTS.

        Warns
        -----
        UserWarning
            If the rows carry almost all the variance of a Gaussian feature, so that rounding is
            what is left.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X, y = [[1.0], [1.4], [4.0], [4.4], [9.0]], ["a", "a", "b", "b", "b"]
        >>> clf = bg.GaussianNB().fit(X, y).forget([[9.0]], ["b"])
        >>> rest = bg.GaussianNB().fit(X[:4], y[:4])
        >>> round(clf.log_evidence_ - rest.log_evidence_, 9)
        0.0
        """
        self._refuse_draws("forget")
        check_is_fitted(self, "prior_")
        with self._all_or_nothing():
            before = self.stats_.features
            rows, n_rows = self._statistics(X, y, sample_weight, self.classes_)
            if _form(self.stats_.features) != _form(before):
                raise ValueError(f"{_FORGET}: X holds categories or tokens that were never learned")
            if not np.any(self.stats_.count > rows.count):
                raise ValueError(
                    f"{_FORGET}: there are {self.stats_.count.sum():g} (by weight), and this would "
                    "leave none"
                )
            try:
                self.stats_ = self.stats_.remove(rows)
            except ValueError as error:
                raise ValueError(f"{_FORGET}: {error}") from None
            self.n_rows_seen_ = max(0, self.n_rows_seen_ - n_rows)
            return self._settle()

    def _unlearn(self) -> None:
        for name in _LEARNT:
            self.__dict__.pop(name, None)

    def _refuse_no_statistics(self, what: str) -> None:
        if not self._conjugate():
            raise NoClosedFormError(
                f"{what} works on sufficient statistics, and {type(self._make_family()).__name__} "
                "has none: fit all rows together"
            )

    def _refuse_draws(self, what: str) -> None:
        self._refuse_no_statistics(what)
        if self.__dict__.get("inference_", "closed form") != "closed form":
            raise NoClosedFormError(
                f"{what} works on sufficient statistics, and this classifier was fitted by "
                f"{self.inference_.upper()}: its draws do not add up. Fit all rows together, or "
                "without inference="
            )

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A call that fails leaves what was learnt before: no attribute is changed in place."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_same_arguments(self, other: Self) -> None:
        theirs = other.get_params(deep=False)
        for name, mine in self.get_params(deep=False).items():
            if not _same_argument(mine, theirs[name]):
                raise ValueError(
                    f"cannot merge models that differ in {name}: {mine!r} and {theirs[name]!r}"
                )

    def _check_same_features(self, other: Self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            mine, theirs = (np.asarray(getattr(clf, name, None)) for clf in (self, other))
            if not np.array_equal(mine, theirs):
                raise ValueError(f"cannot merge models that differ in {name}: {mine} and {theirs}")

    def _add(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> Self:
        self._absorb(X, y, sample_weight, classes)
        return self._settle()

    def _absorb(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> None:
        """Add rows to ``stats_`` alone; streams and workers settle once, at the end."""
        first = "stats_" not in self.__dict__
        stats, n_rows = self._statistics(X, y, sample_weight, classes)
        self.stats_ = stats if first else self.stats_.merge(stats)
        self.n_rows_seen_ = n_rows if first else self.n_rows_seen_ + n_rows

    def _merge_statistics(self, other: Self) -> None:
        """Add the rows behind ``other.stats_`` to ``stats_`` alone."""
        self._check_same_features(other)
        codes = self._cover_classes(other.classes_)
        align = self._widen(getattr(other, "encoder_", None))
        stats = ClassStats(other.stats_.count, align(other.stats_.features))
        self.stats_ = self.stats_.merge(stats.reindex_classes(codes, len(self.classes_)))
        self.n_rows_seen_ += other.n_rows_seen_

    def _statistics(
        self, X: Any, y: Any, sample_weight: Any, classes: Any
    ) -> tuple[ClassStats, int]:
        """Of rows, and how many they are; what was learned before is made to cover them."""
        if not self._conjugate():
            raise NoClosedFormError(
                f"{type(self._make_family()).__name__} has no closed form: leave inference= out, "
                "or choose 'nuts'"
            )
        first = "stats_" not in self.__dict__
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        self.inference_, self.n_unlabelled_ = "closed form", 0
        read = self._read_to_fit if sample_weight is None else self._read
        X = read(X, reset=first)
        y, masked = labels_and_mask(y)
        refuse_unlabelled(masked)
        check_consistent_length(X, y)
        X, y, weight = self._drop_weightless(X, y, sample_weight)
        labels, codes = code_labels(y)
        if classes is not None:
            refuse_mixed(classes)
            classes = np.unique(np.asarray(classes))
            refuse_two_types(labels, classes)
            strange = np.setdiff1d(labels, classes)
            if strange.size:
                raise ValueError(
                    f"y holds labels that are not in classes: {strange.tolist()}; the classes are "
                    f"{classes.tolist()}"
                )
            codes, labels = np.searchsorted(classes, labels)[codes], classes
        encoder = self._learn(X)
        if first:
            self.classes_, self.encoder_ = labels, encoder
        else:
            codes = self._cover_classes(labels)[codes]
            self._widen(encoder)
        encoded = self._encode_as_read(X)
        family: Any = self._make_family()
        stats = ClassStats(
            class_counts(codes, len(self.classes_), weight),
            family.stats(encoded, codes, len(self.classes_), weight),
        )
        self._refuse_infinite(X, stats.features)
        return stats, len(y)

    def _drop_weightless(self, X: Any, y: Array, sample_weight: Any) -> tuple[Any, Array, Any]:
        """Rows of weight 0 are no rows: they teach neither a label nor a category."""
        if sample_weight is None:
            return X, y, None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        keep = weight > 0
        if not keep.any():
            raise ValueError("sample_weight is 0 for every row: there is nothing to fit")
        if keep.all():
            return X, y, weight
        return _safe_indexing(X, np.flatnonzero(keep)), y[keep], weight[keep]

    def _cover_classes(self, labels: Array) -> Array:
        """Make ``classes_`` cover `labels`; their codes."""
        refuse_two_types(labels, self.classes_)
        union = np.union1d(self.classes_, labels)
        if len(union) > len(self.classes_):
            moved = np.searchsorted(union, self.classes_)
            self.stats_ = self.stats_.reindex_classes(moved, len(union))
            self.classes_ = union
        return np.searchsorted(self.classes_, labels)

    def _settle(self) -> Self:
        """Prior and posterior from ``stats_``."""
        self.__dict__.pop("_draws", None)
        family: Any = self._make_family()
        self.prior_, self.model_ = closed_form_posterior(
            family, self.class_alpha, self.prior, self.stats_
        )
        return self


# attributes of an earlier fit, by either route
_LEARNT = ("stats_", "model_", "prior_", "inference_", "_draws", "_rough", "_rough_stats")

_FORGET = "forget takes away rows that were learned before"


def _form(stats: Stats) -> Any:
    """Shapes and settings of statistics: they grow with the categories and tokens known."""
    return {name: value.shape for name, (_, value) in stats.arrays().items()}, stats.settings()


def _same_argument(a: Any, b: Any) -> bool:
    """Whether two constructor arguments are equal; two functions cannot be compared."""
    if a is b or (callable(a) and callable(b)):
        return True
    if isinstance(a, Record):
        same_type = type(a) is type(b)
        return same_type and all(
            _same_argument(x, y)
            for x, y in ((a.settings(), b.settings()), (a.arrays(), b.arrays()))
        )
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same_argument(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same_argument, a, b))
    return np.array_equal(np.asarray(a), np.asarray(b))
