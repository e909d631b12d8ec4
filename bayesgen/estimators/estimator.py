"""What an estimator chooses (its family, how it reads X, names), and the posterior it was given."""

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesgen.datatree import tree
from bayesgen.encoding.column_names import find_column, refuse_other_order
from bayesgen.encoding.in_memory import refuse_elsewhere
from bayesgen.encoding.labels import by_name, codes_of, weights_by_class
from bayesgen.encoding.literals import shortened
from bayesgen.encoding.tables import feature_names, refuse_text, with_nan
from bayesgen.estimators.extremes import LARGE, refuse_far_cells
from bayesgen.estimators.lazy_attributes import LazyAttributes
from bayesgen.families.contract import Family, Stats
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS, METHODS, Method
from bayesgen.inference.closed_form import NoClosedFormError
from bayesgen.numerics.rows import has_nan
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import ClassModel, ClassStats, is_generative
from bayesgen.predict.probabilities import check_method

if TYPE_CHECKING:  # scikit-learn's has no types: a method would be Any behind it

    def available_if[Of](check: Callable[[Any], bool]) -> Callable[[Of], Of]:
        """Mark a method that not every classifier has."""

else:
    from sklearn.utils.metaestimators import available_if  # noqa: F401 - for its neighbours

Align = Callable[[Stats], Stats]
Posterior = ExactPosterior | DrawnPosterior


# arguments that scikit-learn's classes have, and what answers for them here
_WEIGHTS = "class_prior= of the predict methods, or class_alpha=, the prior of the class weights"
_COVARIANCE = "nu0= and psi0=, the prior of the covariance, or prior='loo', which chooses it"
_ANSWERS = {
    "priors": _WEIGHTS,
    "class_prior": _WEIGHTS,
    "fit_prior": _WEIGHTS,
    "var_smoothing": "nu0= and sigma2_0=, the prior of the variances",
    "min_categories": "categories=, the declared categories of the columns",
    "force_alpha": "alpha= alone, which is taken as it is",
    "shrinkage": _COVARIANCE,
    "reg_param": _COVARIANCE,
    "store_covariance": "covariance_, which is always there",
}

# of errors of NumPy and scikit-learn that name no column
_OF_A_CELL = ("could not convert string to float", "setting an array element", "Complex data")

# attributes that are computed when asked for, of every family; its own: `Family.attributes`
_COMPUTED = ("coef_", "intercept_", "class_count_", "class_log_prior_")


def validated(estimator: Any, X: Any, **options: Any) -> Any:
    """scikit-learn's `validate_data`, without the middle of the long names that it repeats."""
    try:
        return validate_data(estimator, X, **options)
    except ValueError as error:
        if (text := shortened(str(error))) != str(error):
            raise ValueError(text) from None
        raise


class Estimator(LazyAttributes, ClassifierMixin, BaseEstimator):
    """Choices of one estimator; the public methods rest on these alone, not on each other."""

    _by_column: tuple[str, ...] = ()  # arguments that may be {column: value}

    def __new__(cls, *args: Any, **arguments: Any) -> Self:
        """Answer arguments of scikit-learn's class of this name."""
        for name in _ANSWERS.keys() & arguments.keys():
            if name not in inspect.signature(cls).parameters:
                raise TypeError(f"{cls.__name__} has no argument {name!r}: use {_ANSWERS[name]}")
        return super().__new__(cls)

    family: Any
    class_alpha: Any
    prior: str | None = "default"  # None: as other arguments ask
    n_features_in_: int
    feature_names_in_: Array
    n_rows_seen_: int
    stats_: ClassStats
    model_: ClassModel
    prior_: ClassModel
    classes_: Array
    encoder_: Any
    inference_: str
    n_unlabelled_: int
    _posterior: Posterior
    _array_names: list[str] | None

    if not TYPE_CHECKING:  # with __getattr__, every misspelt attribute would be right

        def __getattr__(self, name: str) -> Any:
            """Of a fit: what is computed when asked for, or why there is no closed form."""
            needs_closed_form = name in ("model_", "stats_", "log_evidence_")
            if needs_closed_form and "_posterior" in self.__dict__:
                conjugate = self._conjugate()
                raise NoClosedFormError(
                    "the posterior has no closed form: "
                    + (
                        "the fit had rows without a label or with missing cells"
                        if conjugate
                        else f"{self._family_type.__name__} has no conjugate prior"
                    )
                    + ". The posterior is in posterior_, as draws, and the predict methods use it; "
                    "what needs the closed form is not available (evidence, partial_fit, merge, "
                    "linear_form, mutual information, draws by draw_posterior and sample_posterior)"
                    + (": fit complete labelled rows for that" if conjugate else "")
                )
            if "_posterior" in self.__dict__ and (
                name in _COMPUTED or name in self._posterior.model.family.attributes
            ):
                return self._computed(name)
            why, hidden = "", inspect.getattr_static(type(self), name, None)
            if hasattr(hidden, "check"):  # by `available_if`, which may know the reason
                try:
                    hidden.__get__(self, type(self))
                except AttributeError as error:
                    why = "" if error.__cause__ is None else f": {error.__cause__}"
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{why}")

    def _refuse_no_closed_form(self) -> None:
        """Raise before a fit, and after one by draws."""
        check_is_fitted(self, "prior_")
        self.model_  # noqa: B018 - raises where there is none

    def _computed(self, name: str) -> Any:
        """An attribute of the fit that is not kept."""
        raise NotImplementedError

    # -- the fitted posterior ----------------------------------------------------------------

    def _fitted(self) -> Posterior:
        """The posterior of the fit: in closed form or as draws, with one interface."""
        check_is_fitted(self, "prior_")
        return self._posterior

    def _posterior_of(self, posterior: Any, method: Method = "posterior_predictive") -> Posterior:
        """The posterior of the fit, or the draws of a tree of this model's parameters.

        `method`, of whatever will be asked of it, is checked.
        """
        own = self._fitted()
        if method not in METHODS:
            check_method(method)
        return own if posterior is None else self._drawn_posterior(posterior)

    def _drawn_posterior(self, draws: Any) -> DrawnPosterior:
        """The posterior as a tree of draws has it."""
        own = self._fitted()
        theta = tree.read_draws(draws, own.params, self._coords())
        return DrawnPosterior(own.prior, own.model, own.stats, theta, self.n_unlabelled_ == 0)

    def _given_weights(self, class_prior: Any) -> Array | None:
        """(C,) class weights that replace the fitted ones."""
        if class_prior is None:
            return None
        self._refuse_if_discriminative("class_prior=")
        return weights_by_class(class_prior, self.classes_)

    def _refuse_if_discriminative(self, what: str) -> None:
        if not is_generative(self._family_type):
            raise NotImplementedError(
                f"{what} needs a density of x, and {type(self).__name__} is discriminative: it "
                "knows p(y | x) and says nothing of x; use a generative classifier for that"
            )

    # -- the family --------------------------------------------------------------------------

    _family_type: type[Family]  # of what `_make_family` makes, known before any data are

    def _make_family(self) -> Family:
        """The unresolved prior; ``self.encoder_`` is known."""
        raise NotImplementedError

    def _unresolved(self) -> ClassModel:
        """Hyper-parameters as the user gave them, made once for a fit and an encoder."""
        made = self.__dict__.get("_made")
        if made is None or made[0] is not self.encoder_:
            refuse_other_order("class_alpha", self.class_alpha, self._known_classes())
            family = self._in_order()._make_family()
            self._made = made = (self.encoder_, ClassModel(self.class_alpha, family))
        model: ClassModel = made[1]
        return model

    def _known_classes(self) -> list[Any]:
        return list(self.classes_.tolist()) if "classes_" in self.__dict__ else []

    def _in_order(self) -> Self:
        """The same with arguments {column: value} as arrays over the columns."""
        every = {k: getattr(self, k, None) for k in self._by_column}
        named = {
            k: self._named(k, v) for k, v in every.items() if not (v is None or np.isscalar(v))
        }
        columns = list(getattr(self, "feature_names_in_", ()))
        for argument, value in named.items():
            refuse_other_order(argument, value, self._known_classes(), columns)
        given = {k: v for k, v in named.items() if isinstance(v, Mapping)}
        if not given:
            return self
        out, names = copy.copy(self), self._feature_names()
        at = {name: j for j, name in enumerate(names)}
        for argument, values in given.items():
            found = {find_column(k, at, len(at), argument): v for k, v in values.items()}
            if absent := [name for j, name in enumerate(names) if j not in found]:
                raise ValueError(f"{argument} has no value for column {absent[0]!r}")
            columns = [np.asarray(found[j], dtype=np.float64) for j in range(len(names))]
            setattr(out, argument, np.stack(np.broadcast_arrays(*columns), axis=-1))
        return out

    def _named(self, argument: str, value: Any) -> Any:
        """{column: value} of an argument by column, a dict or a Series; else the value as it is."""
        named = by_name(value) if argument in self._by_column else None
        if named is None or not (isinstance(value, Mapping) or hasattr(self, "feature_names_in_")):
            return value  # columns without names are told by position
        return named

    def _conjugate(self) -> bool:
        """Whether the family has closed forms."""
        return bool(self._family_type.conjugate)

    # -- rows --------------------------------------------------------------------------------

    def _read(self, X: Any, *, reset: bool) -> Any:
        """Check X, set the sklearn attributes; what `_learn` and `_encode` take."""
        return self._validated(X, reset=reset, ensure_all_finite="allow-nan")

    def _read_to_fit(self, X: Any, *, reset: bool) -> Any:
        """As `_read`; infinite cells may be left to `_refuse_infinite`."""
        return self._read(X, reset=reset)

    def _refuse_infinite(self, X: Any, stats: Stats) -> None:
        """Raise where `stats` show what `_read_to_fit` has not looked for."""

    def _check_names_of_array(self, X: Any, *, reset: bool) -> None:
        """Columns of a DataArray by the names of the fit: scikit-learn asks data frames alone."""
        names = feature_names(X) if hasattr(X, "dims") else None
        if reset:
            self._array_names = names
            return
        known = self.__dict__.get("_array_names") or self.__dict__.get("feature_names_in_")
        if names is not None and known is not None and names != list(known):
            raise ValueError(
                "The feature names should match those that were passed during fit, in their order: "
                + shortened(f"{names} in place of {list(known)}")
            )

    def _validated(self, X: Any, *, reset: bool, ensure_all_finite: Any) -> Any:
        self._check_names_of_array(X, reset=reset)
        if self._takes_as_it_is(X, reset, ensure_all_finite):
            return X
        options = {"reset": reset, "ensure_all_finite": ensure_all_finite}
        sparse_as = "csr" if self._accepts_sparse() else False
        if np.ma.is_masked(X) and X.dtype.kind in "biufO":  # whose hidden cells would be data
            X = (X if X.dtype.kind in "Of" else X.astype(np.float64)).filled(np.nan)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # its sum tells of infinite cells
                out = validated(self, X, dtype="numeric", accept_sparse=sparse_as, **options)
        except Exception as error:
            refuse_elsewhere(X)
            feature_names(X)  # refuses those that occur twice
            cell = isinstance(error, TypeError) or any(part in str(error) for part in _OF_A_CELL)
            if cell and not sparse.issparse(X):
                refuse_text(X, type(self).__name__)  # which says where
            if "'NAType'" in str(error) or "'NaTType'" in str(error):
                return self._validated(
                    with_nan(X), reset=reset, ensure_all_finite=ensure_all_finite
                )
            raise
        if out.dtype.kind in "mM":
            raise TypeError(
                f"X holds {out.dtype}, not numbers: give dates as days or seconds since a first "
                "one, or leave the columns out"
            )
        if out.dtype.kind == "O":  # of a categorical dtype, or of lists with pandas.NA
            refuse_text(X, type(self).__name__)
            out = with_nan(out).astype(np.float64)
        if not out.dtype.isnative:  # as of FITS files; PyTensor and compiled kernels have no others
            out = out.astype(out.dtype.newbyteorder("="))
        return out

    def _takes_as_it_is(self, X: Any, reset: bool, ensure_all_finite: Any) -> bool:
        """Whether X is an array or CSR matrix that `validate_data` would return unchanged.

        That asks many libraries whether X is theirs: more than 150 rows take otherwise.
        """
        stored = type(X) is sparse.csr_matrix and self._accepts_sparse()
        if not (stored or type(X) is np.ndarray) or X.ndim != 2 or min(X.shape) == 0:
            return False
        if X.dtype.kind not in "biuf" or not X.dtype.isnative:
            return False
        if "feature_names_in_" in self.__dict__:
            return False
        if not reset and X.shape[1] != self.n_features_in_:
            return False
        if ensure_all_finite and X.dtype.kind == "f":
            cells = X.data if stored else X
            with np.errstate(over="ignore", invalid="ignore"):  # the sum tells of infinite cells
                finite = np.isfinite(cells.sum())
            if not finite and ensure_all_finite == "allow-nan":  # these pass over NaN
                low, high = (f.reduce(cells, axis=None) for f in (np.fmin, np.fmax))
                finite = low > -np.inf and high < np.inf
            if not finite:
                return False
        if reset:
            self.n_features_in_ = X.shape[1]
        return True

    def _accepts_sparse(self) -> bool:
        return self._family_type.sparse

    def _of_table(self, X: Any) -> Any:
        """What `fit` takes of a data frame that was cut from a file: all columns but the labels."""
        return X

    def _learn(self, X: Any) -> Any:
        """What must be known of X before it can be encoded (categories, vocabulary)."""
        return None

    def _widen(self, encoder: Any) -> Align:
        """Make ``encoder_`` cover `encoder` too and realign ``stats_``; aligner of the other's."""
        return lambda stats: stats

    def _encode(self, X: Any) -> Any:
        """What the family takes."""
        return X

    def _refuse_missing(self, X: Array, why: str) -> None:
        """Raise ValueError at the first missing cell of (N, D)."""
        if has_nan(X):
            row, j = np.argwhere(np.isnan(X))[0]
            raise ValueError(
                f"Input X contains NaN: column {self._feature_names()[j]!r} in row {row}; {why}"
            )

    def _refuse_unseen(self, X: Any) -> None:
        """Raise ValueError where a cell of X, as read, is a category that theta does not have."""

    def _encode_as_read(self, X: Any) -> Any:
        """The same for one pass (`stats`, densities of rows): may encode rows as they are read."""
        return self._encode(X)

    def _encoded(self, X: Any) -> Any:
        """New rows as the family takes them."""
        return self._encode(self._read(X, reset=False))

    def _encoded_checked(self, X: Any) -> Any:
        """The same; a ValueError for a cell too far away to say how sure the classes are.

        Where no cell is beyond `LARGE`, one pass is all.
        """
        encoded = self._encoded(X)
        cells = encoded.data if sparse.issparse(encoded) else encoded
        if getattr(getattr(cells, "dtype", None), "kind", "O") in "iuf" and cells.size:
            ends = np.fmin.reduce(cells, axis=None), np.fmax.reduce(cells, axis=None)
            if max(abs(float(end)) for end in ends) > LARGE:
                stats = getattr(self, "stats_", None)
                features = None if stats is None else stats.features
                refuse_far_cells(self.prior_.family, encoded, features, self._feature_names)
        return encoded

    def _decode(self, X: Any) -> Any:
        """Simulated rows as the user writes them."""
        return X

    # -- names -------------------------------------------------------------------------------

    def _feature_names(self) -> list[Any]:
        if hasattr(self, "feature_names_in_"):
            return list(self.feature_names_in_)
        return [f"x{j}" for j in range(self.n_features_in_)]

    def _coords(self) -> dict[str, Any]:
        names = self._feature_names()
        return {CLASS: self.classes_, FEATURE: names, FEATURE_BIS: names}

    def _codes_of(self, labels: Any) -> Array:
        return codes_of(labels, self.classes_)

    # -- files -------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """What `_learn` found, as JSON."""
        return {}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Inverse of `_state`."""

    def _unsaved(self) -> tuple[str, ...]:
        """Constructor arguments that a file cannot hold."""
        return ("family",) if "family" in self.__dict__ else ()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        family = self._family_type
        tags.input_tags.allow_nan = family.missing == "marginalised" and family.fits_missing
        tags.input_tags.sparse = self._accepts_sparse()
        return tags


def package_version() -> str:
    """Of bayesgen."""
    from bayesgen import __version__

    return __version__
