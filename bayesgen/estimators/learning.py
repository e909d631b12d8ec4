"""Rows to posterior: fit, in parts, merged, forgotten; in closed form or by draws."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Self, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.datatree.names import POSTERIOR, POSTERIOR_PREDICTIVE, SAMPLE_STATS
from bayesgen.encoding import suspects
from bayesgen.encoding.labels import refuse_two_types
from bayesgen.encoding.tables import is_table
from bayesgen.estimators.estimator import Estimator, available_if
from bayesgen.estimators.extremes import refuse_large_cells, refuse_small_spread
from bayesgen.estimators.imputation import imputed
from bayesgen.estimators.labelled import Labelled, among, labelled
from bayesgen.estimators.merging import refuse_other_arguments
from bayesgen.estimators.training import Training, kept
from bayesgen.families.contract import Stats
from bayesgen.inference import approximation, diagnostics, sampled
from bayesgen.inference.closed_form import NEEDS_ROWS, NoClosedFormError
from bayesgen.inference.closed_form import posterior as closed_form_posterior
from bayesgen.inference.label_score import LabelledRows
from bayesgen.inference.sampled import SAMPLED, Inference
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import ClassStats


def _adds_up(self: Any) -> bool:
    """Whether rows can be added: scikit-learn tells it by the attribute ``partial_fit``."""
    self._refuse_no_conjugate("partial_fit")
    if self.prior is None:  # a default, which scikit-learn must not take for one that takes parts
        self._refuse_no_statistics("partial_fit")
    return True


class Learning(Estimator):
    """Methods that learn from rows."""

    _training: Training | None  # what `fit` was given, while it is in memory
    _suspects: dict[str, str]  # {column: what is odd about it}

    def __getstate__(self) -> dict[str, Any]:
        """A copy or a pickle does not carry the training rows."""
        return {k: v for k, v in super().__getstate__().items() if k != "_training"}

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
            equal rows, a weight of 0 is no row. Quantile bins count a row once, and what leaves
            rows out (``prior="loo"``, `loo`) takes it away whole: repeat the rows of a table of
            counts there, as in ``X.loc[X.index.repeat(count)]``.
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
        UserWarning
            If with ``prior="empirical"`` the evidence is largest where a factor may go no further.
        ColumnWarning
            If columns of a data frame look like row numbers, names, dates or numbers as text, hold
            one value, or are two numbers that became Normal (`bayesgen.encoding.suspects.find`).

        Notes
        -----
        Default priors that depend on the data are set from all rows; a row without a label counts
        for every class in equal parts. Missing cells and labels are assumed missing at random: that
        they are missing says nothing of their values beyond what is observed.

        A reference to the rows, not a copy, is kept if they are at most 64 MiB, for `typicality`
        and `predict_set`; copies, pickles and model files are without it.
        """
        with self._all_or_nothing():
            self._unlearn()
            if inference is None:
                inference = "closed form" if self._conjugate() else "nuts"
            if inference in SAMPLED:
                self._sample(X, y, sample_weight, inference, sample_options)
                self._keep(X, y, sample_weight)
                return self
            if inference != "closed form":
                allowed = ", ".join(map(repr, get_args(Inference)))
                raise ValueError(f"inference must be one of {allowed}, got {inference!r}")
            if sample_options:
                raise TypeError(
                    f"fit() got {', '.join(sample_options)}, which is for inference='nuts' alone"
                )
            self._absorb(X, y, sample_weight)
            rows = None
            if self._prior_choice() == "loo":
                own = self._labelled(X, y, sample_weight, reset=False, unlabelled=False)
                rows = LabelledRows(self._encode(own.X), own.coded()[1], own.weight)
            self._settle(rows)
            self._keep(X, y, sample_weight)
            return self

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
            self._absorb(X, y, sample_weight, classes)
            return self._settle()

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
        refuse_other_arguments(self.get_params(deep=False), other.get_params(deep=False))
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

    def _prior_choice(self) -> str:
        """What `prior` stands for with the other arguments as they are."""
        return self.prior or "default"

    # -- what may be asked --------------------------------------------------------------------

    def _refuse_no_statistics(self, what: str) -> None:
        self._refuse_no_conjugate(what)
        if self._prior_choice() == "loo":
            raise NoClosedFormError(
                f"{what} works on sufficient statistics, and {NEEDS_ROWS}: fit all rows together, "
                "or set prior='default' and give the hyper-parameters of the prior_ of a fit "
                "to some of them"
            )

    def _refuse_no_conjugate(self, what: str) -> None:
        if not self._conjugate():
            raise NoClosedFormError(
                f"{what} works on sufficient statistics, and {self._family_type.__name__} "
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
        self.__dict__.pop("_made", None)  # arguments may have been set since

    def _check_same_features(self, other: Self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            mine, theirs = (np.asarray(getattr(clf, name, None)) for clf in (self, other))
            if not np.array_equal(mine, theirs):
                raise ValueError(f"cannot merge models that differ in {name}: {mine} and {theirs}")

    # -- fits ---------------------------------------------------------------------------------

    def _keep(self, X: Any, y: Any, sample_weight: Any) -> None:
        """A reference to the rows of a fit, and what is odd about their columns, with a warning."""
        self._training = kept(X, y, sample_weight)
        if is_table(X):
            self._suspects = suspects.find(
                X,
                set(self._feature_names()),
                chosen=getattr(self, "columns", True) is not None,  # the kinds of the columns
                text=hasattr(self, "categories"),
                normal=self._normal_by_type(),
            )
            suspects.warn(self._suspects, stacklevel=4)

    def _normal_by_type(self) -> Collection[str]:
        """Columns of a table of several kinds that are Normal because they hold numbers."""
        return ()

    def _unlearn(self) -> None:
        for name in _LEARNT:
            self.__dict__.pop(name, None)

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

    def _labelled(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, unlabelled: bool
    ) -> Labelled:
        """Rows of any fit, read but not encoded."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        # whether all cells are finite may show in the statistics, but draws have none
        looks_later = sample_weight is None and not unlabelled
        X = (self._read_to_fit if looks_later else self._read)(X, reset=reset)
        return labelled(X, y, sample_weight, unlabelled=unlabelled)

    # -- in closed form

    def _absorb(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> None:
        """Add rows to ``stats_`` alone; streams and workers settle once, at the end."""
        first = "stats_" not in self.__dict__
        stats, n_rows = self._statistics(X, y, sample_weight, classes)
        self.stats_ = stats if first else self.stats_.merge(stats)
        self.n_rows_seen_ = n_rows if first else self.n_rows_seen_ + n_rows

    def _statistics(
        self, X: Any, y: Any, sample_weight: Any, classes: Any
    ) -> tuple[ClassStats, int]:
        """Of rows, and how many they are; what was learned before is made to cover them."""
        if not self._conjugate():
            raise NoClosedFormError(
                f"{self._family_type.__name__} has no closed form: leave inference= out, "
                "or choose 'nuts'"
            )
        first = "stats_" not in self.__dict__
        self.inference_, self.n_unlabelled_ = "closed form", 0
        rows = self._labelled(X, y, sample_weight, reset=first, unlabelled=False)
        labels, codes = rows.coded()
        if classes is not None:
            labels, codes = among(classes, labels, codes)
        encoder = self._learn(rows.X)
        if first:
            self.classes_, self.encoder_ = labels, encoder
        else:
            codes = self._cover_classes(labels)[codes]
            self._widen(encoder)
        encoded = self._encode_as_read(rows.X)
        family = self._unresolved().family
        with np.errstate(over="ignore", invalid="ignore"):  # infinite sums are refused below
            stats = self._unresolved().stats(encoded, codes, len(self.classes_), rows.weight)
        self._refuse_infinite(rows.X, stats.features)
        refuse_large_cells(family, encoded, self._feature_names, stats.features, rows.at)
        return stats, len(codes)

    def _cover_classes(self, labels: Array) -> Array:
        """Make ``classes_`` cover `labels`; their codes."""
        refuse_two_types(labels, self.classes_)
        union = np.union1d(self.classes_, labels)
        if len(union) > len(self.classes_):
            moved = np.searchsorted(union, self.classes_)
            self.stats_ = self.stats_.reindex_classes(moved, len(union))
            self.classes_ = union
        return np.searchsorted(self.classes_, labels)

    def _merge_statistics(self, other: Self) -> None:
        """Add the rows behind ``other.stats_`` to ``stats_`` alone."""
        self._check_same_features(other)
        codes = self._cover_classes(other.classes_)
        align = self._widen(getattr(other, "encoder_", None))
        stats = ClassStats(other.stats_.count, align(other.stats_.features))
        self.stats_ = self.stats_.merge(stats.reindex_classes(codes, len(self.classes_)))
        self.n_rows_seen_ += other.n_rows_seen_

    def _settle(self, rows: LabelledRows | None = None) -> Self:
        """Prior and posterior from ``stats_``, and from the `rows` behind it if need be."""
        for name in ("_draws", *_OF_ONE_FIT):
            self.__dict__.pop(name, None)
        refuse_small_spread(self._unresolved().family, self.stats_.features, self._feature_names)
        self.prior_, self.model_ = closed_form_posterior(
            self._unresolved(), self._prior_choice(), self.stats_, rows
        )
        self._posterior = ExactPosterior(self.prior_, self.model_, self.stats_)
        return self

    # -- by draws

    def _sample(
        self, X: Any, y: Any, sample_weight: Any, inference: Any, options: dict[str, Any]
    ) -> Self:
        """`fit` with an `inference` that draws."""
        options = sampled.check_options(inference, self._sample_options(), options)
        rows = self._labelled(X, y, sample_weight, reset=True, unlabelled=True)
        self.inference_ = inference
        (self.classes_, codes), self.encoder_ = rows.coded(), self._learn(rows.X)
        self.n_rows_seen_, self.n_unlabelled_ = len(codes), int((codes < 0).sum())
        data = sampled.Data(self._encode(rows.X), codes, len(self.classes_), rows.weight)
        refuse_large_cells(self._unresolved().family, data.X, self._feature_names, rows=rows.at)
        goal = sampled.target(self._unresolved(), self._prior_choice(), data)
        self._aim_at(goal)
        posterior, sample_stats = sampled.sample(goal, data, self._coords(), inference, options)
        seed = options.get("random_seed")
        library = {"advi": "pymc", "pathfinder": "pymc-extras"}.get(inference, "bayesgen")
        if inference == "nuts":
            library = options.get("sampler", "nutpie")
        groups = {POSTERIOR: posterior, SAMPLE_STATS: sample_stats}
        out = self._tree(groups, inference, seed, library)
        if inference == "nuts":
            out.attrs["sampler"] = library
        if inference in approximation.APPROXIMATIONS:
            out.attrs |= {"approximation": "a Normal in unconstrained coordinates"}
        self._draws = out
        self._posterior = drawn = self._drawn_posterior(out)
        group = imputed(drawn, goal.exact, np.random.default_rng(seed), data)
        if group is not None:
            out[POSTERIOR_PREDICTIVE] = group.named(self._feature_names(), rows.at)
        if inference in approximation.APPROXIMATIONS:
            out.attrs["pareto_k"] = sample_stats.attrs["pareto_k"]
            approximation.warn_unless_close(inference, sample_stats)
        else:
            name = {"nuts": "NUTS", "gibbs": "Gibbs"}[inference]
            why = self._chains_disagree(posterior)
            found = diagnostics.warn_unless_sound(posterior, sample_stats, name, why)
            out.attrs |= found.attributes()
        return self

    def _aim_at(self, goal: sampled.Target) -> None:
        """Take prior and pilot fit, before there are draws."""
        self.prior_ = goal.prior
        if goal.exact:
            self.model_, self.stats_ = goal.pilot, goal.pilot_stats
        self._posterior = DrawnPosterior(goal.prior, goal.pilot, goal.pilot_stats, {})

    def _chains_disagree(self, posterior: Any) -> str:
        """What to say where they do, if this model knows more than that they do."""
        return ""

    def _sample_options(self) -> dict[str, Any]:
        """Of the sampler, where `fit` is not told otherwise."""
        return {}


# attributes of an earlier fit, by either route
_OF_ONE_FIT = ("_training", "_loo_scores", "_suspects")  # not known of rows that come in parts
_LEARNT = (
    *("stats_", "model_", "prior_", "inference_", "_draws", "_posterior", "_made"),
    *_OF_ONE_FIT,
)

_FORGET = "forget takes away rows that were learned before"


def _form(stats: Stats) -> Any:
    """Shapes and settings of statistics: they grow with the categories and tokens known."""
    return {name: value.shape for name, (_, value) in stats.arrays().items()}, stats.settings()
