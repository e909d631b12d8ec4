"""Tables of categories, bits and binned real columns, for joint tables of several columns."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.encoding.cells import refuse_cells
from bayesgen.encoding.reader import Align, Reader, Rows
from bayesgen.encoding.schema import named_kinds
from bayesgen.encoding.views import BinnedTable, MissingCells
from bayesgen.estimators.tables import MixedColumns
from bayesgen.families.contract import Family
from bayesgen.families.errors import IncompleteRowError
from bayesgen.numerics.special import Array

_WIDEST = 1 << 15  # columns of which all pairs can be counted


@dataclass(frozen=True, eq=False)
class BinnedColumns(MixedColumns):
    """Tables as codes: categories, bits, real columns cut into bins.

    What the user has named: `n_bins`, `given_cuts`, `kinds`, `declared` categories, and `missing`,
    whether missing cells are a category. Other missing cells of new rows are summed over.
    """

    n_bins: int = 5
    given_cuts: Any = None
    missing: MissingCells = "auto"

    sums_missing: ClassVar[bool] = True
    unseen_words: ClassVar[tuple[str, ...]] = ("ignore", "raise")

    def learnt(self, rows: Rows, exact: bool) -> tuple[Self, Rows]:
        """Return the reader that knows the bins."""
        table = rows.table
        named = named_kinds(self.kinds, None, table.names, table.n_columns)
        width = table.n_columns - list(named.values()).count("drop")
        if width > _WIDEST:  # before each is cut into bins
            raise ValueError(f"pairs of {width} columns need 1e9 counts or more: drop some")
        binned = BinnedTable.of_rows(
            rows, self.n_bins, self.kinds, self.declared, self.given_cuts, self.missing
        )
        reader = replace(self, encoder=binned)
        codes = binned.codes(rows.cells(binned))
        reader._refuse_unknown(codes)
        return reader, rows.by(reader, codes)

    def further(self, rows: Rows) -> tuple[Self, Align, Align]:
        """Return the reader itself: later parts take the bins and categories of the first."""
        self._refuse_unknown(rows.encoded)
        return self.unchanged()

    def merged(self, other: Self) -> tuple[Self, Align, Align]:
        """Return the reader itself; raises where the other codes otherwise."""
        if other is not self and other.encoder != self.encoder:
            raise ValueError(
                "the two sides have different bins, categories or codes of missing cells, and "
                "tables of pairs cannot be recoded: declare cuts=, categories= and missing= on both"
            )
        return self.unchanged()

    def refuse_single(self, rows: Rows, n_before: int) -> None:
        """Raise where later rows tell nothing of a column that varies: it has the one bin.

        Of columns that vary within these rows; of all, if there was one row before.
        """
        names = self.encoder.names or self.encoder.positions
        cut_columns = set(map(str, self.given_cuts or {}))
        single = [
            j
            for j, ends in enumerate(self.encoder.cuts)
            if self.encoder.kinds[j] == "gaussian" and not ends and str(names[j]) not in cut_columns
        ]
        if not single:
            return
        try:
            cells = rows.cells(self.encoder)
        except (TypeError, ValueError):  # whoever reads the rows for good will say so
            return
        ends = (f.reduce(cells, axis=0, initial=np.nan) for f in (np.fmin, np.fmax))
        varies = np.less(*ends)
        lost = [j for j in single if varies[j] or n_before == 1]
        if lost:
            raise ValueError(
                f"column {self.columns[lost[0]]!r} had one value in the first rows, from "
                "which bins are taken, so that what comes later tells nothing: declare cuts= (an "
                "empty list leaves the column one bin), or begin with more rows"
            )

    def _refuse_unknown(self, codes: Array) -> None:
        """Raise where a training cell has no code."""
        refuse_cells(
            codes,
            np.isnan(codes),
            lambda: self.columns,
            "column {name!r} is not known",
            ": missing, or a category that the first rows did not have; pairs of incomplete rows "
            "have no common margins",
            "give missing='category', and declare categories= where rows come in parts",
        )

    def refuse_incomplete(self, encoded: Any) -> None:
        """Raise where a cell is not known: what is not summed over needs it."""
        refuse_cells(
            encoded,
            np.isnan(encoded),
            lambda: self.columns,
            "column {name!r}",
            ": missing, or a category that the training rows did not have. Probabilities sum "
            "over what it may be; intervals and entropies need it",
            "fit with missing='category', fill the cell, or leave the row out",
            error=IncompleteRowError,
        )

    def encode(self, rows: Rows) -> Array:
        """Return (N, D) codes; NaN where a cell is not known."""
        cells = super().encode(rows)
        codes: Array = self.encoder.codes(cells)
        return codes

    @property
    def normal_by_type(self) -> Collection[str]:
        """Return (): numbers are cut into bins."""
        return ()

    def coords(self, family: Family) -> dict[str, Any]:
        """{dim: labels} of the posterior."""
        return Reader.coords(self, family)
