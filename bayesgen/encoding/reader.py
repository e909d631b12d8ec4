"""How rows are read: checked against the columns of the fit, encoded once, and written back.

A `Reader` is what a classifier knows of its columns. ``admit`` checks rows, the first of which give
the columns their names; ``learnt`` finds what must be known before they can be encoded (categories,
bins, a vocabulary); from then on ``read(X)`` makes `Rows`, and nothing of a reader changes. Readers
of other kinds of columns are in `bayesgen.estimators`, one file for each kind.
"""

import functools
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import validate_data

from bayesgen.encoding.cells import refuse_cells, refuse_infinite
from bayesgen.encoding.literals import shortened
from bayesgen.encoding.tables import (
    Table,
    feature_names,
    refuse_elsewhere,
    refuse_no_rows,
)
from bayesgen.encoding.unknown import UnknownCategoryWarning
from bayesgen.errors import warn
from bayesgen.families.contract import Family, Stats
from bayesgen.families.names import FEATURE, FEATURE_BIS
from bayesgen.numerics.rows import Matrix, has_nan
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.encoding.schema import TableSchema

Align = Callable[[Stats], Stats]


def validated(estimator, X, **options):
    """Validate by scikit-learn, and leave out the middle of the long names that it repeats."""
    try:
        return validate_data(estimator, X, **options)
    except ValueError as error:
        if (text := shortened(str(error))) != str(error):
            raise ValueError(text) from None
        raise


class Rows:
    """Rows that a reader has checked, and their encodings, each made once.

    Attributes
    ----------
    X : as checked
    """

    def __init__(self, X, reader: "Reader", table=None, shared: "Rows | None" = None) -> None:
        self.X, self.reader = X, reader
        self._cells: list[tuple[TableSchema, Array]] = [] if shared is None else shared._cells
        self.warned: set[Hashable] = set() if shared is None else shared.warned  # columns
        if table is not None:
            self.__dict__["table"] = table

    def __len__(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    @cached_property
    def table(self):
        """Return the columns, read one at a time."""
        return Table(self.X)

    def cells(self, schema) -> Array:
        """Return cells (N, D) as a schema encodes them, made once for all who share the table."""
        encoded = next((cells for other, cells in self._cells if other == schema), None)
        if encoded is None:
            encoded = schema.encode(self.table)
            self._cells.append((schema, encoded))
            self.warn_of_unknown(schema, encoded)
        return encoded

    def warn_of_unknown(self, encoder, codes) -> None:
        """Warn of unknown categories, once for all who share these rows."""
        unseen = getattr(self.reader, "unseen", "ignore")
        if unseen == "raise":
            return
        cells = [c for c in encoder.unknown_cells(self.table, codes) if c.column not in self.warned]
        self.warned.update(c.column for c in cells)
        if cells:
            warn(UnknownCategoryWarning.of(cells, unseen))

    @cached_property
    def encoded(self):
        """Return the rows as the family takes them."""
        return self.reader.encode(self)

    def take(self, positions: Array) -> "Rows":
        """Return some of the rows."""
        return Rows(_safe_indexing(self.X, positions), self.reader)

    def by(self, reader: "Reader", encoded=None) -> "Rows":
        """Return the same rows, read by another reader; `encoded`, if it is known."""
        rows = Rows(self.X, reader, self.__dict__.get("table"), self)
        if encoded is not None:
            rows.__dict__["encoded"] = encoded
        return rows


def _is_numeric(X) -> bool:
    """Tell whether X is a plain table of numbers or booleans that needs no conversion."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.size == 0:
        return False
    return X.dtype.kind in "biuf" and X.dtype.isnative


@functools.cache
def _named(owner: str) -> type[BaseEstimator]:
    """Return a class from which scikit-learn's checks take an estimator's name and columns."""
    return type(owner, (BaseEstimator,), {})


@dataclass(frozen=True, eq=False)
class Reader:
    """Columns of numbers.

    Parameters
    ----------
    owner : str
        The classifier, as errors call it.
    sparse : bool
        Whether sparse rows are taken.
    whole, no_closed_form : str
        Why no cell may be missing, if that is so; of training rows for a posterior in closed form.
    encoder : optional
        What `learnt` found of the columns; None of numbers.
    n_features : int, optional
        None before the first rows, and of documents.
    names : array of str, optional
        Names of the columns of a data frame or an xarray.DataArray.
    """

    owner: str
    sparse: bool = False
    whole: str = ""
    n_features: int | None = None
    names: Array | None = None
    no_closed_form: str = ""
    encoder: Any = None

    saved: ClassVar[tuple[str, ...]] = ("n_features", "names", "encoder")  # in a model file
    sums_missing: ClassVar[bool] = False  # predictions are summed over what a cell may be
    shares: ClassVar[bool] = False  # the table of `Rows` that another reader has checked

    # -- rows --------------------------------------------------------------------------------

    def read(self, X) -> Rows:
        """Check new rows."""
        return self.admit(X)[1]

    def admit(self, X, *, first: bool = False) -> tuple[Self, Rows]:
        """Check rows; return the reader that knows their columns.

        `first`: these are the first rows, whose columns are those of all others.
        """
        reader, X = self.checked(X, first)
        if reader.whole:
            reader.refuse_missing(X, reader.whole)
        return reader, Rows(X, reader)

    def checked(self, X, first: bool) -> tuple[Self, Any]:
        """Return finite numbers in an array or CSR matrix, of the columns of the fit."""
        if sparse.issparse(X):
            options = {"accept_sparse": "csr" if self.sparse else False, "dtype": "numeric"}
            reader, X = self.validated(X, first, ensure_all_finite=False, **options)
        elif _is_numeric(X):
            reader = self.of_columns(X, first)
        else:
            refuse_elsewhere(X)
            table = Table(X)
            refuse_no_rows(table.n_rows, table.n_columns)
            cells = table.as_numbers(self.owner)
            reader, X = self.of_columns(X, first), cells
        reader.refuse_infinite(X)
        return reader, X

    def of_columns(self, X, first: bool) -> Self:
        """Return the reader that knows the columns of X; raise where they differ from the fit's."""
        # scikit-learn asks many libraries whether X is theirs: 150 rows take less
        if _is_numeric(X) and self.names is None:
            if first:
                return replace(self, n_features=X.shape[1])
            if X.shape[1] == self.n_features:
                return self
        if hasattr(X, "dims") and (names := feature_names(X)) is not None:
            import pandas as pd

            X = pd.DataFrame(columns=names)
        return self.validated(X, first, skip_check_array=True)[0]

    def validated(self, X, first: bool, **options) -> tuple[Self, Any]:
        """Validate the columns of X by scikit-learn, against those of the fit."""
        seen: Any = _named(self.owner)()
        if not first:
            if self.n_features is not None:
                seen.n_features_in_ = self.n_features
            if self.names is not None:
                seen.feature_names_in_ = self.names
        cells = validated(seen, X, reset=first, **options)
        if not first:
            return self, cells
        names = getattr(seen, "feature_names_in_", None)
        return replace(self, n_features=seen.n_features_in_, names=names), cells

    def refuse_infinite(self, X: Matrix) -> None:
        """Raise ValueError at the first infinite cell."""
        cells = X.data if sparse.issparse(X) else X
        with np.errstate(over="ignore", invalid="ignore"):
            if cells.dtype.kind == "f" and not np.isfinite(cells.sum()):  # or all are finite
                refuse_infinite(X, lambda: self.columns)

    def refuse_missing(self, X: Array, why: str) -> None:
        """Raise ValueError at the first missing cell of (N, D)."""
        if has_nan(X):
            what = "Input X contains NaN: column {name!r}"
            refuse_cells(X, np.isnan(X), lambda: self.columns, what, "", why)

    def refuse_incomplete(self, encoded) -> None:
        """Raise where a cell of encoded rows must be known, and is not."""

    def warn_of_doubts(self, rows: Rows) -> None:
        """Warn where training rows are not such as the model is for."""

    def refuse_unseen(self, rows: Rows) -> None:
        """Raise ValueError where a cell is a category that theta does not have."""

    def refuse_single(self, rows: Rows, n_before: int) -> None:
        """Raise where later rows tell nothing of a column, as it was coded by the first."""

    def refuse_parts(self, what: str) -> None:
        """Raise NoClosedFormError where rows that come in parts cannot be encoded alike."""

    def of_table(self, X):
        """Return what is read of a data frame cut from a file: all columns but the labels."""
        return X

    def reads_as(self, other: "Reader") -> bool:
        """Tell whether both read and encode rows alike, whatever classifiers they are of."""
        mine, theirs, alike = vars(self), vars(other), type(self) is type(other)
        return alike and all(_same(mine[k], theirs.get(k)) for k in mine if k != "owner")

    # -- encodings ---------------------------------------------------------------------------

    def learnt(self, rows: Rows, exact: bool) -> tuple[Self, Rows]:
        """Return the reader that can encode the first rows, and the rows by it.

        `exact`: they are for a posterior in closed form.
        """
        if exact and self.no_closed_form:
            self.refuse_missing(rows.X, self.no_closed_form)
        if (encoder := self.learn_encoder(rows)) is None:
            return self, rows
        reader = replace(self, encoder=encoder)
        return reader, rows.by(reader)

    def learn_encoder(self, rows: Rows) -> Any:
        """Return what must be known of the first rows to encode any, or None."""

    def further(self, rows: Rows) -> tuple[Self, Align, Align]:
        """Return the reader of further rows too; how to align statistics, old and new."""
        return self.merged(self.learnt(rows, True)[0])

    def merged(self, other: Self) -> tuple[Self, Align, Align]:
        """Return the reader of the rows of both; how to align the statistics of each."""
        if self.encoder is None:
            return self.unchanged()
        encoder, mine, theirs = self.encoder.merge(other.encoder)
        align = partial(self.recoded, encoder)
        return replace(self, encoder=encoder), partial(align, mine), partial(align, theirs)

    def unchanged(self) -> tuple[Self, Align, Align]:
        """Return this reader for the rows of both, whose statistics stay as they are."""
        return self, _as_they_are, _as_they_are

    def recoded(self, encoder, codes, stats):
        """Return `stats` in the codes of a merged encoder: `codes` of it for each of the old."""
        raise NotImplementedError

    def refuse_other_columns(self, other: Self) -> None:
        """Raise where columns differ in number or names."""
        for name, mine, theirs in (
            ("n_features_in_", self.n_features, other.n_features),
            ("feature_names_in_", self.names, other.names),
        ):
            if not np.array_equal(np.asarray(mine), np.asarray(theirs)):
                raise ValueError(f"cannot merge models that differ in {name}: {mine} and {theirs}")

    def encode(self, rows: Rows):
        """Return rows as the family takes them."""
        return rows.X

    def decode(self, X):
        """Return encoded rows as the user writes them."""
        return X

    # -- names -------------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """Return names of the columns."""
        if self.names is not None:
            return list(self.names)
        return [f"x{j}" for j in range(self.n_features or 0)]

    @property
    def chosen(self) -> Collection[str]:
        """Return names of the columns whose kinds the user has chosen."""
        return self.columns

    @property
    def normal_by_type(self) -> Collection[str]:
        """Return columns of a table of several kinds that are Normal because they hold numbers."""
        return ()

    def feature_names(self, family: Family) -> list[str]:
        """Return names of the features of a posterior's family."""
        return self.columns

    def term_names(self, encoded, family: Family) -> list[str]:
        """Return names of the features that terms of the log-odds of rows belong to."""
        return self.columns

    def coords(self, family: Family) -> dict:
        """Return {dim: labels} of the posterior, but for the classes."""
        names = self.columns
        return {FEATURE: names, FEATURE_BIS: names}


def _same(a, b) -> bool:
    try:
        return a is b or (type(a) is type(b) and bool(np.all(a == b)))
    except ValueError:  # arrays of other shapes, or in a mapping
        return False


def _as_they_are(stats: Stats) -> Stats:
    return stats
