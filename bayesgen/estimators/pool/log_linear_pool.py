"""A pool of classifiers with exponents learned from exact leave-one-out: LogLinearPool."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from bayesgen.datatree.tree import named_rows
from bayesgen.encoding import suspects
from bayesgen.encoding.labelled import labelled
from bayesgen.encoding.labels import code_labels, codes_of, weights_by_class
from bayesgen.encoding.tables import feature_names
from bayesgen.estimators.lazy_attributes import LazyAttributes
from bayesgen.estimators.lazy_rows import row_by_row
from bayesgen.estimators.pool.explanation import explained, feature_scores
from bayesgen.estimators.pool.leave_one_out import PoolLeaveOneOut
from bayesgen.estimators.pool.members import (
    Member,
    as_rows,
    chosen,
    fitted,
    named,
    unfitted,
)
from bayesgen.estimators.pool.record import read_record, record
from bayesgen.estimators.pool.sampling import draws_of, pymc_model
from bayesgen.estimators.pool.summary import PoolSummary
from bayesgen.estimators.pool.typicality import PoolTypicality, left_out_joints, member_ranks
from bayesgen.estimators.pool.uncertainty import PoolUncertainty
from bayesgen.estimators.summary import with_summary
from bayesgen.families.errors import UndefinedEstimateError, refuse_unknown
from bayesgen.inference.exponents import ExponentPrior, Exponents, comparable, sample
from bayesgen.io import storage
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.predict.leave_one_out import TrainingRows
from bayesgen.predict.member_ranks import MemberRanks

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr


class LogLinearPool(
    PoolUncertainty, PoolTypicality, PoolLeaveOneOut, LazyAttributes, ClassifierMixin, BaseEstimator
):
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
    _exponents: Exponents

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
        X, values, weight = given.X, given.labels, given.weight_of_each()
        members, left_out = self._members(X, values, given.weight)
        classes = _common_classes(members)
        codes = codes_of(values, classes)
        rows = self._sample_of(codes)
        data = X, values, weight, rows
        scores, ranks = self._leave_one_out(members, *data, known=not self.prefit)
        prior = self._prior(members, scores)
        offset = self._offset(members)
        own = scores, codes[rows], weight[rows]
        found = sample(*own, prior, offset, self.random_state)
        self.classes_, self._members_, self.left_out_ = classes, members, left_out
        self.members_ = {member.name: member.clf for member in members}
        self._exponents, self._prior_, self._offset_ = found, prior, offset
        self._data, self._loo_scores, self._ranks = own, None, ranks
        self.n_rows_ = len(rows)
        self._set_features(X)
        self.exponents_, self.intercepts_ = found.mean
        names = self.__dict__.get("feature_names_in_")
        used = None if names is None else {*names} - {*self.text_columns_}
        self._suspects = suspects.find(X, used)
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
        self, X: Any, y: Array, sample_weight: Array | None
    ) -> tuple[list[Member], dict[str, str]]:
        """Fitted members."""
        if self.prefit:
            return fitted(self.members), {}
        left_out: dict[str, str] = {}
        if isinstance(self.members, str):
            n_classes = len(code_labels(y)[0])
            per_feature = self.exponents == "feature"
            members, left_out = chosen(X, n_classes, separable=per_feature)
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
        some = len(rows) < len(y)
        X = _safe_indexing(X, rows) if some else X
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
        data = own.X, own.labels, weight, every
        scores, _ = self._leave_one_out(self._members_, *data, known=False)
        at = every if own.at is None else own.at
        return scores, at, TrainingRows(own.X, self._codes_of(own.labels), weight)

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
        weights: Array = members[0].log_class_weights
        return weights

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
        log_p = self._exponents.log_proba(self._scores(as_rows(X)), self._offset_)
        out: Array = log_softmax(log_p + self._shift(class_prior))
        return out

    def _scores(self, X: Any) -> Array:
        """(M, N, C) `comparable` scores of new rows: of members, or of features of each."""
        if self.exponents == "feature":
            nobody = np.zeros(_num_samples(X))
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

    def _log_joint(
        self, X: Any, method: str, class_prior: Any, posterior: Any, quantity: str
    ) -> Array:
        """(N, C) log probabilities, for what compares methods of one classifier."""
        if method != "posterior_predictive":
            raise UndefinedEstimateError(
                method, "a pool is of predictives, and plugs no estimate of its members in"
            )
        return self._log_proba(X, class_prior)

    def _codes_of(self, labels: Any) -> Array:
        return codes_of(labels, self.classes_)

    def _shift(self, class_prior: Any) -> Array:
        """(C,) log-odds that other class weights add."""
        if class_prior is None:
            return np.zeros(len(self.classes_))
        weights = weights_by_class(class_prior, self.classes_)
        with np.errstate(divide="ignore"):
            shift: Array = np.log(weights) - self._log_frequencies()
        return shift

    def _log_frequencies(self) -> Array:
        """(C,) log class weights of training."""
        return np.asarray(self._members_[0].log_class_weights)

    # -- what it is ----------------------------------------------------------------------------

    def to_pymc(self) -> "pm.Model":
        """Model of the exponents and intercepts, labels given the members' scores.

        Priors are Gamma and Normal. Members' scores are data: leave-one-out log joint densities
        (member, obs_id, class). NUTS on it and `posterior_` agree.
        """
        check_is_fitted(self, "classes_")
        return pymc_model(self)

    def _rows_behind(self) -> tuple[Array, Array, Array]:
        if self._data is None:
            raise ValueError(
                "a pool that was read from a file holds no rows: fit it again for its PyMC model"
            )
        return self._data

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
        return draws_of(self)

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
        return explained(self, X, classes)

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the pool, members and all, to one netCDF file; `bayesgen.load` reads it."""
        check_is_fitted(self, "exponents_")
        storage.write(path, *record(self))

    def _load(
        self,
        fit: "xr.Dataset",
        state: Mapping[str, Any],
        groups: Mapping[str, "xr.Dataset"],
        known: Mapping[str, Any],
    ) -> Self:
        """Fill a new instance from a model file; `known` are the classes of members."""
        read_record(self, fit, state, groups, known)
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
