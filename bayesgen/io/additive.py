"""What a classifier must offer to learn from parts of the rows: its statistics add up."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr
    from sklearn.utils import Tags


class Gathered(Protocol):
    """Statistics of rows."""

    @property
    def classes(self) -> Array:
        """Labels."""

    @property
    def n_rows(self) -> int:
        """How many rows."""


class Columns(Protocol):
    """How rows are read."""

    def of_table(self, X: Any, /) -> Any:
        """X as it is read, of a data frame's columns but the labels."""


class Learner(Protocol):
    """What a classifier chooses; it changes nothing."""

    @property
    def reader(self) -> Columns:
        """How rows are read."""

    @property
    def unsaved(self) -> tuple[str, ...]:
        """Names of the constructor's arguments that a file cannot hold."""

    def refuse_no_statistics(self, what: str, /) -> None:
        """Raise if the model has no sufficient statistics, for the caller `what`."""

    def gather(
        self, before: Any, X: Any, y: Any, sample_weight: Any = None, classes: Any = None, /
    ) -> Any:
        """Statistics of rows, added to those before."""

    def merge(self, mine: Any, theirs: Any, /) -> Any:
        """Statistics of the rows of both."""

    def gathered(self, fitted: Any, /) -> Any:
        """Statistics behind a fit."""

    def settle(self, gathered: Any, /) -> Any:
        """Turn statistics into a fit."""


class Additive(Protocol):
    """A classifier, fitted or not, that `fit_stream` and `fit_dask` take."""

    fitted_: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments."""

    def __sklearn_tags__(self) -> "Tags":
        """Tell what X may hold."""

    def __bayesgen_learner__(self) -> Learner:
        """Return its choices."""

    def __bayesgen_record__(
        self, fitted: Any, /
    ) -> tuple["xr.Dataset", dict[str, Any], dict[str, "xr.Dataset"]]:
        """Return what `storage.write` takes of a fit."""

    def __bayesgen_load__(
        self, fit: "xr.Dataset", state: Mapping[str, Any], draws: Mapping[str, "xr.Dataset"], /
    ) -> Any:
        """Return the fit that `storage.read` has read."""


def refuse_other(clf: Any, what: str) -> Learner:
    """Raise unless `clf` learns by adding up; its choices.

    Raises
    ------
    TypeError
        If it is no classifier of this package, or a class rather than an instance.
    NoClosedFormError
        If its model has no sufficient statistics.
    """
    if isinstance(clf, type) or not hasattr(clf, "__bayesgen_learner__"):
        raise TypeError(f"clf must be a classifier such as GaussianNB(), got {clf!r}")
    learner: Learner = clf.__bayesgen_learner__()
    learner.refuse_no_statistics(what)
    return learner
