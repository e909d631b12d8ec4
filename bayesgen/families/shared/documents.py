"""What families of documents share: rows of word counts, given their lengths."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from bayesgen.numerics.rows import Matrix, has_nan, refuse_negative_counts
from bayesgen.numerics.special import Array


class WordCounts:
    """Counts without gaps, of which a CSR matrix holds those above 0."""

    holds: ClassVar[str] = "count"
    kind: ClassVar[str] = "multinomial"
    sparse: ClassVar[bool] = True
    missing: ClassVar[str] = (
        "a document with an unknown word count has an unknown length, and the other counts do not "
        "say how it is distributed; count the words, or leave the column out"
    )

    def given_rows(self: Any, X: Matrix):
        """Draws documents of the lengths of those in X."""
        length = np.ravel(X.sum(axis=1, dtype=np.float64))
        return replace(self, length=np.rint(length).astype(np.int64))

    def check(self, X: Matrix) -> None:
        """Refuse missing and negative counts."""
        if has_nan(X):
            raise ValueError(f"missing counts (NaN) are refused: {self.missing}")
        refuse_negative_counts(X)


def row_of_cells(cells: sparse.csr_matrix) -> Array:
    """Return (nnz,) the row of each stored cell."""
    return np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))


def refuse_fractional_counts(
    X: Matrix, why: str = "a table of weights (tf-idf) has no likelihood: give the counts"
) -> None:
    """Raise unless the counts are whole, as PyMC's distributions take them; NaN is let pass."""
    values = X.data if sparse.issparse(X) else np.asarray(X)
    fractional = values[(values != np.floor(values)) & (values == values)]
    if len(fractional):
        raise ValueError(f"counts must be whole numbers here, got {fractional[0]:g}; {why}")


# of closed forms, whose mass is continued by the gamma function
IN_STATISTICS = (
    "likelihood='rows' observes counts; likelihood='statistics' has the same density, continued"
)
