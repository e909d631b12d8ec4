"""What families of documents share: rows of word counts, given their lengths."""

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from bayesgen.families.names import GIVEN_TOTAL
from bayesgen.numerics.rows import Matrix, has_nan, refuse_negative_counts
from bayesgen.numerics.special import Array


class WordCounts:
    """Counts without gaps, of which a CSR matrix holds those above 0."""

    describes: ClassVar[str] = GIVEN_TOTAL
    holds: ClassVar[str] = "count"
    kind: ClassVar[str] = "multinomial"
    sparse: ClassVar[bool] = True
    missing: ClassVar[str] = (
        "a document with an unknown word count has an unknown length, and the other counts do not "
        "say how it is distributed; count the words, or leave the column out"
    )

    def given_rows(self: Any, X: Matrix) -> Any:
        """Draws documents of the lengths of those in X."""
        return replace(self, length=np.rint(np.ravel(X.sum(axis=1))).astype(np.int64))

    def check(self, X: Matrix) -> None:
        """Refuse missing and negative counts."""
        if has_nan(X):
            raise ValueError(f"missing counts (NaN) are refused: {self.missing}")
        refuse_negative_counts(X)


def row_of_cells(cells: sparse.csr_matrix) -> Array:
    """(nnz,) the row of each stored cell."""
    return np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))


# ------------------------------------------------------------------------------------------------
# Products mu (mu + delta) (mu + 2 delta) ... of x factors, which bursts are made of.
#
# With delta = 0 they are powers, as in Poisson and multinomial masses; with delta = 1 quotients of
# gamma functions, as in the Dirichlet-multinomial's. As a sum of logarithms no digit is lost near
# delta = 0, and the sum over all cells of a table needs one logarithm a distinct factor, however
# many rows there are.
#
# C classes, D features.

_FACTORS = 64  # of one product as logarithms; gamma functions do the rest


class Factors(NamedTuple):
    """The distinct factors mu_at + k delta_at of some cells, and the products too long to list."""

    at: Array  # (U,) which mu and delta
    k: Array  # (U,)
    number: Array  # (U,) of cells that have this factor
    long_at: Array  # (V,)
    long: Array  # (V,) counts above 64
    long_number: Array  # (V,)

    @classmethod
    def of(cls, at: Array, counts: Array) -> Self:
        """Of whole counts > 0, whose mu and delta stand at places `at`."""
        counts = counts.astype(np.int64)
        short = np.minimum(counts, _FACTORS)
        k = np.arange(short.sum()) - np.repeat(np.cumsum(short) - short, short)
        pairs = np.stack([np.repeat(at, short), k])
        (at_, k_), number = np.unique(pairs, axis=1, return_counts=True)
        many = counts > _FACTORS
        long_pairs = np.stack([at[many], counts[many]])
        (long_at, long), long_number = np.unique(long_pairs, axis=1, return_counts=True)
        return cls(at_, k_, number, long_at, long, long_number)

    def log_sum(self, name: str, mu: Any, delta: Any) -> Any:
        """Tensor: sum over the cells of the log of their products.

        Parameters
        ----------
        name : str
            Of the data containers, in the PyMC model on the stack.
        mu, delta : tensor (R,)
        """
        import pymc as pm
        import pytensor.tensor as pt

        at, k = pm.Data(f"{name}_at", self.at), pm.Data(f"{name}_k", self.k.astype(np.float64))
        number = pm.Data(f"{name}_number", self.number.astype(np.float64))
        out = (number * pt.log(mu[at] + k * delta[at])).sum()
        if len(self.long):
            at = pm.Data(f"{name}_long_at", self.long_at)
            x = pm.Data(f"{name}_long", self.long.astype(np.float64))
            number = pm.Data(f"{name}_long_number", self.long_number.astype(np.float64))
            first = mu[at] + float(_FACTORS) * delta[at]
            out += (number * log_product(first, delta[at], x - float(_FACTORS))).sum()
        return out


def log_product(mu: Any, delta: Any, x: Any) -> Any:
    """Tensor: log of mu (mu + delta) ... of x factors; all digits as delta goes to 0.

    With a = mu/delta it is x log delta + log gamma(a + x) - log gamma(a), whose terms cancel where
    a is large: at a = 1e16 what is left is noise of many nats. From a = 64 on Stirling's series is
    exact to rounding, and its terms are subtracted one by one.
    """
    import pytensor.tensor as pt

    a = mu / delta
    large, small = pt.maximum(a, float(_FACTORS)), pt.minimum(a, float(_FACTORS))
    change = (large + x - 0.5) * pt.log1p(x / large) - x + _series(large + x) - _series(large)
    exact = pt.gammaln(small + x) - pt.gammaln(small)
    return pt.switch(a >= float(_FACTORS), x * pt.log(mu) + change, x * pt.log(delta) + exact)


def _series(z: Any) -> Any:
    """What Stirling's formula leaves of log gamma(z), z >= 64: the next term is below 1e-16."""
    inverse = 1 / z
    square = inverse**2
    return inverse * (1 / 12 - square * (1 / 360 - square / 1260))


def refuse_fractional_counts(values: Array) -> None:
    """Raise unless the counts are whole; NaN is not looked at."""
    if np.any((values != np.floor(values)) & (values == values)):
        worst = values[(values != np.floor(values)) & (values == values)][0]
        raise ValueError(
            f"counts must be whole numbers to be fitted, got {worst:g}; a table of weights "
            "(tf-idf) has no likelihood here: give the counts themselves"
        )
