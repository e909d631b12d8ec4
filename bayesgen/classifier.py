"""The scikit-learn face of every generative classifier: validate, call, name the classes.

No mathematics lives here. A face chooses a family and how to read X; this class does the rest.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, _safe_indexing
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from bayesgen import predict as prediction
from bayesgen import storage, tree
from bayesgen.family import ConjugateFamily, Record, Stats, UndefinedEstimateError
from bayesgen.inference.closed_form import posterior as closed_form_posterior
from bayesgen.labels import (
    code_labels,
    codes_of,
    refuse_mixed,
    refuse_two_types,
    weights_by_class,
)
from bayesgen.model import ClassModel, ClassStats
from bayesgen.names import CLASS, FEATURE, FEATURE_BIS, FIT, POSTERIOR, Method
from bayesgen.numerics import Array, log_sum_exp
from bayesgen.rows import class_counts

if TYPE_CHECKING:
    import xarray as xr

Align = Callable[[Stats], Stats]
_DRAW_BYTES = 1 << 30  # posterior_ draws fewer parameters than asked rather than exceed this


class LinearForm(NamedTuple):
    """Weights of a linear rule.

    Two classes: ``w`` (D,) and ``w0`` a number, with ``X @ w + w0`` the log-odds of
    ``classes_[1]`` (that is `decision_function`). More: ``w`` (C, D) and ``w0`` (C,), with
    ``X @ w.T + w0`` the log joint densities up to a constant of the row.
    """

    w: Array
    w0: Array | float


class GenerativeClassifier(ClassifierMixin, BaseEstimator):
    """Classifier from any conjugate family, the user's own included.

    Parameters
    ----------
    family : ConjugateFamily, optional
        An unresolved prior, e.g. ``NormalInverseGamma(variance="tied")``. None: Normal features
        with a variance per class, as `GaussianNB`.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows; in the order of ``classes_``.
    prior : {"default", "empirical"}
        ``"empirical"`` rescales the family's hyper-parameters to the largest evidence.

    Attributes
    ----------
    classes_ : array (class,)
        Labels, sorted.
    prior_, model_ : ClassModel
        Prior and posterior: hyper-parameters as arrays.
    stats_ : ClassStats
        Sufficient statistics of all rows seen.
    log_evidence_ : float
        log p(X, y), everything integrated out.
    posterior_ : xarray.DataTree
        Posterior draws and hyper-parameters.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X had column names.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families.normal_inverse_gamma import NormalInverseGamma
    >>> X, y = np.array([[1.0], [1.4], [4.0], [4.4]]), ["a", "a", "b", "b"]
    >>> clf = GenerativeClassifier(NormalInverseGamma(variance="tied")).fit(X, y)
    >>> clf.predict([[1.1], [4.2]])
    array(['a', 'b'], dtype='<U1')
    """

    stats_: ClassStats
    model_: ClassModel
    prior_: ClassModel
    classes_: Array
    encoder_: Any

    def __init__(
        self, family: Any = None, *, class_alpha: Any = 1.0, prior: str = "default"
    ) -> None:
        self.family = family
        self.class_alpha = class_alpha
        self.prior = prior

    # -- what a face decides -----------------------------------------------------------------

    def _make_family(self) -> ConjugateFamily:
        """The unresolved prior; ``self.encoder_`` is known."""
        if self.family is None:
            from bayesgen.families.normal_inverse_gamma import NormalInverseGamma

            return NormalInverseGamma()
        if not isinstance(self.family, ConjugateFamily):
            raise TypeError(f"family must be an instance of a ConjugateFamily, got {self.family!r}")
        return self.family

    def _learn(self, X: Any) -> Any:
        """What must be known of X before it can be encoded (categories, vocabulary)."""
        return None

    def _widen(self, encoder: Any) -> Align:
        """Make ``encoder_`` cover `encoder` too and realign ``stats_``; aligner of the other's."""
        return lambda stats: stats

    def _read(self, X: Any, *, reset: bool) -> Any:
        """Check X, set the sklearn attributes; what `_learn` and `_encode` take."""
        return validate_data(
            self,
            X,
            reset=reset,
            dtype="numeric",
            accept_sparse="csr" if self._accepts_sparse() else False,
            ensure_all_finite="allow-nan",
        )

    def _encode(self, X: Any) -> Any:
        """What the family takes."""
        return X

    def _decode(self, X: Any) -> Any:
        """Simulated rows as the user writes them."""
        return X

    def _coords(self) -> dict[str, Any]:
        names = self._feature_names()
        return {CLASS: self.classes_, FEATURE: names, FEATURE_BIS: names}

    def _state(self) -> dict[str, Any]:
        """What `_learn` found, as JSON."""
        return {}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Inverse of `_state`."""

    def _accepts_sparse(self) -> bool:
        return type(self._make_family()).sparse

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Posterior of all parameters given labelled rows.

        Parameters
        ----------
        X : (N, D)
            NaN is a missing cell.
        y : (N,)
            Labels of any sortable type.
        sample_weight : (N,), optional
            Non-negative weights that multiply the statistics: an integer weight is that many
            equal rows, a weight of 0 is no row.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            On input that the model cannot take; the message names the row and column.
        """
        with self._all_or_nothing():
            self.__dict__.pop("stats_", None)
            return self._add(X, y, sample_weight, None)

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
        with self._all_or_nothing():
            return self._add(X, y, sample_weight, classes)

    def merge(self, other: Self) -> Self:
        """Add another fitted classifier's rows, through its statistics alone; returns self.

        Workers and sites fit on their own rows and merge; the result is that of one fit to all
        rows. `other` must have the same constructor arguments.
        """
        check_is_fitted(self, "model_")
        check_is_fitted(other, "model_")
        if type(other) is not type(self):
            raise TypeError(f"cannot merge {type(other).__name__} into {type(self).__name__}")
        self._check_same_arguments(other)
        self._check_same_features(other)
        with self._all_or_nothing():
            codes = self._cover_classes(other.classes_)
            align = self._widen(getattr(other, "encoder_", None))
            stats = ClassStats(other.stats_.count, align(other.stats_.features))
            self.stats_ = self.stats_.merge(stats.reindex_classes(codes, len(self.classes_)))
            self.n_rows_seen_ += other.n_rows_seen_
            return self._settle()

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
        first = not hasattr(self, "stats_")
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        X = self._read(X, reset=first)
        refuse_mixed(y)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        X, y, weight = self._drop_weightless(X, y, sample_weight)
        labels, codes = code_labels(y)
        if classes is not None:
            refuse_mixed(classes)
            classes = np.unique(np.asarray(classes))
            refuse_two_types(labels, classes)
            strange = np.setdiff1d(labels, classes)
            if strange.size:
                raise ValueError(f"y holds labels that are not in classes: {strange.tolist()}")
            codes, labels = np.searchsorted(classes, labels)[codes], classes
        encoder = self._learn(X)
        if first:
            self.classes_, self.encoder_ = labels, encoder
            self.n_rows_seen_ = 0
        else:
            codes = self._cover_classes(labels)[codes]
            self._widen(encoder)
        encoded = self._encode(X)
        family = self._make_family()
        stats = ClassStats(
            class_counts(codes, len(self.classes_), weight),
            family.stats(encoded, codes, len(self.classes_), weight),
        )
        self.stats_ = stats if first else self.stats_.merge(stats)
        self.n_rows_seen_ += len(y)
        return self._settle()

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
        self.prior_, self.model_ = closed_form_posterior(
            self._make_family(), self.class_alpha, self.prior, self.stats_
        )
        return self

    # -- prediction --------------------------------------------------------------------------

    def predict_joint_log_proba(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
    ) -> Array:
        """(N, C) log p(y = c, x) of each row on its own.

        Parameters
        ----------
        X : (N, D)
        method : {"posterior_predictive", "posterior_mean", "map", "mle"}
            Integrate the parameters out, or plug one estimate in.
        class_prior : array (class,) or {label: weight}, optional
            Class weights that replace the fitted ones; must sum to 1.
        """
        check_is_fitted(self, "model_")
        prediction.check_method(method)
        weights = None if class_prior is None else weights_by_class(class_prior, self.classes_)
        encoded = self._encode(self._read(X, reset=False))
        try:
            return prediction.log_joint(self.model_, self.stats_, encoded, method, weights)
        except UndefinedEstimateError as error:
            raise error.renamed(self.classes_, self._feature_names()) from None

    def predict_log_proba(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
    ) -> Array:
        """(N, C) log of `predict_proba`."""
        joint = self.predict_joint_log_proba(X, method, class_prior)
        return prediction.log_class_probability(joint, method)

    def predict_proba(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
    ) -> Array:
        """(N, C) p(y = c | x); by default the exact posterior predictive.

        A ratio of expectations, E[pi_c p(x | theta_c)] / sum_d E[pi_d p(x | theta_d)], for each
        row on its own. It is neither a plug-in nor the mean over draws of p(y | x, theta).

        Parameters
        ----------
        X, method, class_prior
            As in `predict_joint_log_proba`.

        Raises
        ------
        ValueError
            If the estimate that `method` plugs in does not exist (naming class and feature), or
            if a row has probability 0 under every class.
        """
        return np.exp(self.predict_log_proba(X, method, class_prior))

    def predict(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
    ) -> Array:
        """(N,) most probable labels."""
        log_p = self.predict_log_proba(X, method, class_prior)
        return self.classes_[np.argmax(log_p, axis=1)]

    def decision_function(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
    ) -> Array:
        """(N,) log-odds of ``classes_[1]`` for two classes, else (N, C) log p(y = c | x)."""
        joint = self.predict_joint_log_proba(X, method, class_prior)
        log_p = prediction.log_class_probability(joint, method)  # refuses impossible rows
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else log_p

    def score_samples(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
    ) -> Array:
        """(N,) log p(x): how odd each row is under every class."""
        return log_sum_exp(self.predict_joint_log_proba(X, method, class_prior))

    def simulate(
        self,
        n: int,
        y: Any = None,
        random_state: Any = 0,
        source: Literal["predictive", "draw"] = "predictive",
    ) -> tuple[Any, Array]:
        """New labelled rows.

        Parameters
        ----------
        n : int
        y : label or array (n,) of labels, optional
            None draws them from the class weights.
        random_state : int or numpy.random.Generator
        source : {"predictive", "draw"}
            Fresh parameters for every row (the posterior predictive), or one posterior draw
            for all rows.

        Returns
        -------
        X, y
            Rows as the classifier reads them, and their labels.
        """
        check_is_fitted(self, "model_")
        if source not in ("predictive", "draw"):
            raise ValueError(f"source must be 'predictive' or 'draw', got {source!r}")
        if n < 0:
            raise ValueError(f"n must be >= 0, got {n}")
        rng = np.random.default_rng(random_state)
        model: ClassModel = self.model_
        theta = {k: v[0] for k, v in model.draw(rng, 1).items()} if source == "draw" else None
        if y is None:
            weights = model.class_weights("posterior_mean", self.stats_)
            if theta is not None:
                weights = theta["pi"]
            codes = rng.choice(len(weights), size=n, p=weights)
        else:
            codes = np.broadcast_to(self._codes_of(y), (n,))
        if theta is None:
            X = model.family.simulate_predictive(rng, codes)
        else:
            X = model.family.simulate(rng, theta, codes)
        return self._decode(X), self.classes_[codes]

    def to_pymc(
        self,
        X: Any = None,
        y: Any = None,
        *,
        likelihood: Literal["statistics", "rows"] = "statistics",
        observed: bool = True,
    ) -> Any:
        """The model as a PyMC graph: the same priors on the same data.

        Parameters
        ----------
        X, y : rows and labels, optional
            Needed for ``likelihood="rows"``: a fitted classifier keeps statistics, not rows.
        likelihood : {"statistics", "rows"}
            Potentials of the sufficient statistics, so that a gradient costs the same for 10^3
            rows as for 10^8; or the rows as given, ``label`` and ``x`` observed. The log
            posteriors differ by a constant.
        observed : bool
            False: the prior alone.

        Returns
        -------
        pymc.Model
            Variable names, dims and coords are those of ``posterior_``.
        """
        check_is_fitted(self, "model_")
        coords = self._coords()
        if not observed:
            return self.prior_.to_pymc(coords)
        if likelihood == "statistics":
            return self.prior_.to_pymc(coords, stats=self.stats_)
        if likelihood != "rows":
            raise ValueError(f"likelihood must be 'statistics' or 'rows', got {likelihood!r}")
        if X is None or y is None:
            raise ValueError(
                "likelihood='rows' needs the rows: call to_pymc(X, y, likelihood='rows')"
            )
        encoded = self._encode(self._read(X, reset=False))
        return self.prior_.to_pymc(coords, X=encoded, y=self._codes_of(column_or_1d(y)))

    def linear_form(self, method: Method = "posterior_predictive") -> LinearForm:
        """Weights (w, w0) of the rule, where it is linear in the features.

        Returns
        -------
        LinearForm
            Two classes: w (D,), w0 a number. More: w (C, D), w0 (C,).

        Raises
        ------
        NotLinearError
            With the reason: a full predictive is often curved where its plug-in is linear.
        """
        check_is_fitted(self, "model_")
        prediction.check_method(method)
        model: ClassModel = self.model_
        theta = None
        try:
            if method != "posterior_predictive":
                theta = model.estimate(method, self.stats_)
            weights = model.class_weights(method, self.stats_)
        except UndefinedEstimateError as error:
            raise error.renamed(self.classes_, self._feature_names()) from None
        w, w0 = model.family.linear_form(theta)
        with np.errstate(divide="ignore"):
            w0 = w0 + np.log(weights)
        if len(self.classes_) == 2:
            return LinearForm(w[1] - w[0], float(w0[1] - w0[0]))
        return LinearForm(w, w0)

    # -- what was learnt ---------------------------------------------------------------------

    @property
    def log_evidence_(self) -> float:
        """log p(X, y) of the training rows, everything integrated out."""
        check_is_fitted(self, "model_")
        return float(self.prior_.log_evidence(self.stats_))

    @property
    def posterior_(self) -> "xr.DataTree":
        """DataTree with groups ``posterior`` (4 chains of 500 exact draws) and ``fit``.

        Made on first use, with seed 0; `draw_posterior` gives another number of draws.
        """
        check_is_fitted(self, "model_")
        if "_draws" not in self.__dict__:
            self._draws = self.draw_posterior()
        return self._draws

    def draw_posterior(
        self, draws: int = 500, chains: int = 4, random_state: Any = 0
    ) -> "xr.DataTree":
        """Independent draws of all parameters from the closed-form posterior.

        Parameters
        ----------
        draws, chains : int
            Draws of each chain. Fewer, with a warning, if they would exceed 1 GiB.
        random_state : int or numpy.random.Generator

        Returns
        -------
        xarray.DataTree
            Groups ``posterior`` (chain, draw, ...) and ``fit``.
        """
        import warnings

        import xarray as xr

        check_is_fitted(self, "model_")
        family = self.model_.family
        fit = max(1, int(_DRAW_BYTES / (8 * chains * family.n_parameters())))
        if fit < draws:
            warnings.warn(
                f"{draws} draws of {family.n_parameters()} parameters would take more than "
                f"1 GiB: drawing {fit} a chain",
                UserWarning,
                stacklevel=2,
            )
            draws = fit
        sampled = self.model_.draw(np.random.default_rng(random_state), draws * chains)
        coords = self._coords()
        posterior = tree.draws_dataset(
            tree.split_chains(sampled, chains), self.model_.params, coords
        )
        out = xr.DataTree.from_dict({f"/{POSTERIOR}": posterior, f"/{FIT}": self._fit_dataset()})
        out.attrs |= {"route": "closed form", "estimator": type(self).__name__}
        out.attrs |= {"family": type(family).__name__, "bayesgen_version": _version()}
        if isinstance(random_state, int):
            out.attrs["seed"] = random_state
        return out

    def _fit_dataset(self) -> "xr.Dataset":
        return tree.fit_dataset(self.prior_, self.model_, self.stats_, self._coords())

    def save(self, path: Any) -> None:
        """Write the model to a netCDF file; `bayesgen.load` reads it. No pickle."""
        check_is_fitted(self, "model_")
        parameters = {
            name: storage.to_json(value, name)
            for name, value in self.get_params(deep=False).items()
            if name not in self._unsaved()
        }
        state = {
            "estimator": type(self).__name__,
            "version": _version(),
            "parameters": parameters,
            "unsaved": [name for name in self._unsaved() if getattr(self, name) is not None],
            "classes": storage.labels_to_json(self.classes_),
            "n_features": getattr(self, "n_features_in_", None),
            "feature_names": (
                self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
            ),
            "n_rows_seen": int(self.n_rows_seen_),
            **self._state(),
        }
        fit = self._fit_dataset().drop_vars([CLASS], errors="ignore")
        storage.write(path, fit, state)

    def _unsaved(self) -> tuple[str, ...]:
        """Constructor arguments that a file cannot hold."""
        return ("family",)

    def _load(self, fit: "xr.Dataset", state: Mapping[str, Any]) -> Self:
        """Fill a new instance from a model file."""
        self.classes_ = storage.labels_from_json(state["classes"])
        if state["n_features"] is not None:
            self.n_features_in_ = state["n_features"]
        if state["feature_names"] is not None:
            self.feature_names_in_ = np.array(state["feature_names"], dtype=object)
        self.n_rows_seen_ = state["n_rows_seen"]
        self.encoder_ = None
        self._restore(state)
        family = type(self._make_family())
        if family.__name__ != fit.attrs["family"]:
            raise ValueError(f"the file holds a {fit.attrs['family']}, not a {family.__name__}")
        self.prior_, self.model_, self.stats_ = tree.read_fit(fit, family)
        return self

    # -- names -------------------------------------------------------------------------------

    def _feature_names(self) -> list[Any]:
        if hasattr(self, "feature_names_in_"):
            return list(self.feature_names_in_)
        return [f"x{j}" for j in range(self.n_features_in_)]

    def _codes_of(self, labels: Any) -> Array:
        return codes_of(labels, self.classes_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        family = type(self._make_family())
        tags.input_tags.allow_nan = family.missing == "marginalised" and family.fits_missing
        tags.input_tags.sparse = self._accepts_sparse()
        return tags


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


def _version() -> str:
    from bayesgen import __version__

    return __version__
