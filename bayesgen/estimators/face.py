"""What a face decides: its family, how it reads X, the names of things."""

from collections.abc import Callable, Mapping
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesgen.encoding.labels import codes_of
from bayesgen.families.contract import ConjugateFamily, Family, Stats
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel, ClassStats

Align = Callable[[Stats], Stats]


class NoClosedFormError(ValueError):
    """What is asked for has no closed form after this fit."""


class Face(ClassifierMixin, BaseEstimator):
    """Choices of one estimator; the other parts of a classifier rest on these methods alone."""

    family: Any
    class_alpha: Any
    prior: str = "default"
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

    def __getattr__(self, name: str) -> Any:
        """Say why a posterior in closed form is not there after a fit by NUTS."""
        if name in ("model_", "stats_") and "_rough" in self.__dict__:
            conjugate = self._conjugate()
            raise NoClosedFormError(
                "the posterior has no closed form: "
                + (
                    "the fit had rows without a label or with missing cells"
                    if conjugate
                    else f"{type(self._make_family()).__name__} has no conjugate prior"
                )
                + ". The posterior is in posterior_, as draws, and the predict methods use it; "
                "what needs the closed form is not available (evidence, partial_fit, merge, "
                "linear_form, mutual information, draws by draw_posterior and sample_posterior)"
                + (": fit complete labelled rows for that" if conjugate else "")
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _scorer(self) -> ClassModel:
        """The model whose family scores draws of theta: the posterior, or a rough one after NUTS.

        What the family itself holds enters the scores of draws only where theta is silent: a
        category never seen, columns left out, the contexts of a language model.
        """
        check_is_fitted(self, "prior_")
        model: ClassModel = self.__dict__.get("_rough") or self.model_
        return model

    def _scorer_stats(self) -> ClassStats:
        """The statistics behind `_scorer`."""
        stats: ClassStats = self.__dict__.get("_rough_stats") or self.stats_
        return stats

    @property
    def _drawn(self) -> bool:
        """Whether the fit left draws instead of a closed form."""
        return bool(self.inference_ != "closed form")

    def _conjugate(self) -> bool:
        """Whether the family has closed forms; known before any data are."""
        family = getattr(self, "family", None)
        return not isinstance(family, Family) or isinstance(family, ConjugateFamily)

    def _make_family(self) -> Family:
        """The unresolved prior; ``self.encoder_`` is known."""
        if self.family is None:
            from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma

            return NormalInverseGamma()
        if not isinstance(self.family, Family):
            raise TypeError(f"family must be an instance of a Family, got {self.family!r}")
        return self.family

    def _learn(self, X: Any) -> Any:
        """What must be known of X before it can be encoded (categories, vocabulary)."""
        return None

    def _widen(self, encoder: Any) -> Align:
        """Make ``encoder_`` cover `encoder` too and realign ``stats_``; aligner of the other's."""
        return lambda stats: stats

    def _read(self, X: Any, *, reset: bool) -> Any:
        """Check X, set the sklearn attributes; what `_learn` and `_encode` take."""
        return self._validated(X, reset=reset, ensure_all_finite="allow-nan")

    def _read_to_fit(self, X: Any, *, reset: bool) -> Any:
        """As `_read`; infinite cells may be left to `_refuse_infinite`."""
        return self._read(X, reset=reset)

    def _refuse_infinite(self, X: Any, stats: Stats) -> None:
        """Raise where `stats` show what `_read_to_fit` has not looked for."""

    def _validated(self, X: Any, **options: Any) -> Any:
        sparse = "csr" if self._accepts_sparse() else False
        return validate_data(self, X, dtype="numeric", accept_sparse=sparse, **options)

    def _of_table(self, X: Any) -> Any:
        """What `fit` takes of a data frame that was cut from a file: all columns but the labels."""
        return X

    def _encode(self, X: Any) -> Any:
        """What the family takes."""
        return X

    def _encode_as_read(self, X: Any) -> Any:
        """The same for one pass (`stats`, densities of rows): may encode rows as they are read."""
        return self._encode(X)

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


def package_version() -> str:
    """Of bayesgen."""
    from bayesgen import __version__

    return __version__
