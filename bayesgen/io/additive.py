"""What a classifier must offer to learn from parts of the rows: its statistics add up."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr
    from sklearn.utils import Tags


@runtime_checkable
class Additive(Protocol):
    """A classifier, fitted or not, that `fit_stream` and `fit_dask` take."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments."""

    def __sklearn_tags__(self) -> "Tags":
        """Tell what X may hold."""

    def _refuse_no_statistics(self, what: str, /) -> None:
        """Raise if the model has no sufficient statistics, for the caller `what`."""

    def _of_table(self, X: Any, /) -> Any:
        """X as `_absorb` takes it, of a data frame's columns but the labels."""

    def _absorb(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None, /) -> None:
        """Add the statistics of rows, and nothing else."""

    def _merge_statistics(self, other: Any, /) -> None:
        """Add the statistics that another classifier has absorbed."""

    def _settle(self) -> Self:
        """Turn statistics into the posterior."""

    def _unlearn(self) -> None:
        """Forget all rows."""

    def _all_or_nothing(self) -> AbstractContextManager[None]:
        """Undo what an error has interrupted."""

    def _unsaved(self) -> tuple[str, ...]:
        """Names of the constructor's arguments that a file cannot hold."""

    def _record(self) -> tuple["xr.Dataset", dict[str, Any], dict[str, "xr.Dataset"]]:
        """What `storage.write` takes."""

    def _load(
        self, fit: "xr.Dataset", state: Mapping[str, Any], draws: Mapping[str, "xr.Dataset"], /
    ) -> Self:
        """Fill a new classifier with what `storage.read` returns."""


class Absorbing(Additive, Protocol):
    """The same once it has absorbed rows."""

    classes_: Array
    n_rows_seen_: int


def refuse_other(clf: Any, what: str) -> None:
    """Raise unless `clf` learns by adding up.

    Raises
    ------
    TypeError
        If it is no classifier of this package, or a class rather than an instance.
    NoClosedFormError
        If its model has no sufficient statistics.
    """
    if isinstance(clf, type) or not isinstance(clf, Additive):
        raise TypeError(f"clf must be a classifier such as GaussianNB(), got {clf!r}")
    clf._refuse_no_statistics(what)
