"""The columns of a separable family, one by one: its own formulas, or the family of each column."""

from dataclasses import dataclass

import numpy as np

from bayesgen.families.capabilities import SeparateColumns, require
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.numerics.special import Array


def separate_columns(family: ConjugateFamily) -> SeparateColumns:
    """What answers for the single columns of `family`.

    Raises
    ------
    MissingCapabilityError
        If the density is no product over the columns.
    """
    if family.separable and family.capability(SeparateColumns) is None:
        return OneByOne(family)
    return require(family, SeparateColumns, f"a column of {type(family).__name__} on its own")


@dataclass(frozen=True)
class OneByOne:
    """A separable family, cut into its columns: each costs a call."""

    family: ConjugateFamily

    def cell_cgf(self, x: Array, column: Array, classes: Array, t: Array) -> Array:
        """(K, n) joint cgf of single cells, as in `SeparateColumns`."""
        n = len(x)
        out = np.empty((len(t), n), dtype=np.complex128 if np.iscomplexobj(t) else np.float64)
        kinds = np.vstack([column, np.broadcast_to(classes, (len(classes), n))])
        distinct, which = np.unique(kinds, axis=1, return_inverse=True)
        for k, (j, *codes) in enumerate(distinct.T):
            own = np.flatnonzero(which.ravel() == k)
            t_own = t if t.shape[1] == 1 else t[:, own]
            family = self.family.at(FEATURE, [j]).at(CLASS, codes)
            out[:, own] = family.cgf(x[own, None], t_own)
        return out
