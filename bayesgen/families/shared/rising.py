r"""Products mu (mu + delta) (mu + 2 delta) ... of x factors, which bursts are made of.

With delta = 0 they are powers, as in Poisson and multinomial masses; with delta = 1 quotients of
gamma functions, as in the Dirichlet-multinomial's. As a sum of logarithms no digit is lost near
delta = 0, and the sum over all cells of a table needs one logarithm a distinct factor, however
many rows there are.

C classes, D features.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from bayesgen.numerics.special import Array

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
            shape, unit = mu[at] / delta[at], delta[at]
            rest = pt.gammaln(shape + x) - pt.gammaln(shape + float(_FACTORS))
            out += (number * (rest + (x - float(_FACTORS)) * pt.log(unit))).sum()
        return out


def refuse_fractional_counts(values: Array) -> None:
    """Raise unless the counts are whole; NaN is not looked at."""
    if np.any((values != np.floor(values)) & (values == values)):
        worst = values[(values != np.floor(values)) & (values == values)][0]
        raise ValueError(
            f"counts must be whole numbers to be fitted, got {worst:g}; a table of weights "
            "(tf-idf) has no likelihood here: give the counts themselves"
        )
