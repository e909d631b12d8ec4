"""Tables of categories, bits and binned real columns, for joint tables of several columns."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.encoding.reader import Align, Rows
from bayesgen.encoding.schema import named_kinds
from bayesgen.encoding.views import BinnedTable, MissingCells
from bayesgen.errors import InputError
from bayesgen.estimators.tables import TableReader
from bayesgen.families.errors import IncompleteRowError
from bayesgen.numerics.special import Array

_WIDEST = 1 << 15  # columns of which all pairs can be counted


@dataclass(frozen=True, eq=False)
class BinnedColumns(TableReader):
    """Tables as codes: categories, bits, real columns cut into bins.

    What the user has named: `n_bins`, `given_cuts`, `kinds`, `declared` categories, and `missing`,
    whether missing cells are a category. Other missing cells of new rows are summed over.
    """

    n_bins: int = 5
    given_cuts: Any = None
    kinds: Any = None
    declared: Any = None
    missing: MissingCells = "auto"

    encoder_type = BinnedTable
    sums_missing: ClassVar[bool] = True
    unseen_words: ClassVar[tuple[str, ...]] = ("ignore", "raise")

    @property
    def chosen(self) -> Collection[str]:
        """Columns that `columns` or `categories` name."""
        return self.encoder.schema.chosen

    def learnt(self, rows: Rows, exact: bool) -> tuple[Self, Rows]:
        """Return the reader that knows the bins."""
        table = rows.table
        named = named_kinds(self.kinds, None, table.names, table.n_columns)
        width = table.n_columns - list(named.values()).count("drop")
        if width > _WIDEST:  # before each is cut into bins
            raise ValueError(f"pairs of {width} columns need 1e9 counts or more: drop some")
        binned, codes = BinnedTable.learn(
            rows, self.n_bins, self.kinds, self.declared, self.given_cuts, self.missing
        )
        reader = replace(self, encoder=binned)
        reader._refuse_unknown(codes)
        return reader, rows.by(reader, codes)

    def further(self, rows: Rows) -> tuple[Self, Align, Align]:
        """Return the reader itself: later parts take the bins and categories of the first."""
        self._refuse_unknown(rows.encoded)
        return self.unchanged()

    def merged(self, other: Self) -> tuple[Self, Align, Align]:
        """Return the reader itself; raises where the other codes otherwise."""
        if other is not self and other.encoder.to_json() != self.encoder.to_json():
            raise ValueError(
                "the two sides have different bins, categories or codes of missing cells, and "
                "tables of pairs cannot be recoded: declare cuts=, categories= and missing= on both"
            )
        return self.unchanged()

    def refuse_single(self, rows: Rows, n_before: int) -> None:
        """Raise where later rows tell nothing of a column that varies: it has the one bin.

        Of columns that vary within these rows; of all, if there was one row before.
        """
        schema, cut_columns = self.encoder.schema, set(map(str, self.given_cuts or {}))
        names = schema.names or schema.positions
        single = [
            j
            for j, (kind, ends) in enumerate(zip(schema.kinds, self.encoder.cuts, strict=True))
            if kind == "gaussian" and not ends and str(names[j]) not in cut_columns
        ]
        if not single:
            return
        try:
            cells = rows.cells(schema)
        except (TypeError, ValueError):  # whoever reads the rows for good will say so
            return
        ends = (f.reduce(cells, axis=0, initial=np.nan) for f in (np.fmin, np.fmax))
        varies = np.less(*ends)
        lost = [j for j in single if varies[j] or n_before == 1]
        if lost:
            raise ValueError(
                f"column {names[lost[0]]!r} had one value in the first rows, from "
                "which bins are taken, so that what comes later tells nothing: declare cuts= (an "
                "empty list leaves the column one bin), or begin with more rows"
            )

    def _refuse_unknown(self, codes: Array) -> None:
        """Raise where a training cell has no code."""
        gone = np.argwhere(np.isnan(codes))
        if len(gone):
            i, j = gone[0]
            schema = self.encoder.schema
            names = schema.names
            name = schema.positions[j] if names is None else names[j]
            raise InputError(
                "row",
                f", column {name!r}: missing, or a category that the first rows did not have; "
                "pairs of incomplete rows have no common margins",
                row=i,
                column=name,
                advice="give missing='category', and declare categories= where rows come in parts",
                place=" {}",
            )

    def refuse_incomplete(self, encoded: Any) -> None:
        """Raise where a cell is not known: what is not summed over needs it."""
        gone = np.argwhere(np.isnan(encoded))
        if len(gone):
            i, j = gone[0]
            name = self.columns[j]
            raise IncompleteRowError(
                f"column {name!r}",
                ": missing, or a category that the training rows did not have. Probabilities sum "
                "over what it may be; intervals and entropies need it",
                row=i,
                column=name,
                advice="fit with missing='category', fill the cell, or leave the row out",
            )

    def encode(self, rows: Rows) -> Array:
        """Return (N, D) codes; NaN where a cell is not known."""
        if self.unseen == "raise":
            self.encoder.schema.refuse_unseen(rows.table)
        codes: Array = self.encoder.encode(rows)
        return codes

    def decode(self, X: Any) -> Any:
        """Return a data frame of the columns; a bin is shown by a number inside it."""
        import pandas as pd

        return pd.DataFrame(dict(zip(self.columns, self.encoder.decode(X), strict=True)))

    @property
    def columns(self) -> list[Any]:
        """Names of the columns, but for those that are left out."""
        return super().columns if self.encoder is None else list(self.encoder.schema.labels)
