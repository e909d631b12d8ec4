r"""One class against all others, for classes that are independent given the data.

With :math:`a_c = \log g_c + \log p(x | \theta_c)`, g_c the independent Gamma variables behind the
class weights, the C variables are independent, each with a cgf of its own, and

.. math:: P(\text{logit}\,\rho_c < l) = E\, F_c\Big(l + \log\sum_{d \ne c} e^{a_d}\Big).

F_c is inverted exactly; the expectation over the others is an average over scrambled Sobol points
taken through their exact quantile functions. The integrand is smooth, so a few hundred points do
what 10^5 draws would; independent scrambles give its error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.draws import REPLICATES, Sample, log_sum_of_others, replicates
from bayesgen.predict.interval.contrast import Contrast
from bayesgen.predict.interval.cumulants import cumulants
from bayesgen.predict.interval.inversion import Table, invert

POINTS = {"auto": 1024, "exact": 4096}
_MERGED = 4  # neighbours that stand for one point in the average
_WORST = 1e-5  # error of a margin that still counts as exact


@dataclass(frozen=True)
class Margins:
    """The inverted margins of n rows and C classes.

    Items are the pairs of a class and a row, all rows of a class after each other.

    Parameters
    ----------
    exact : (C, n) bool
        Whether the draws of a margin are through its exact quantile function.
    draws : (C, n, S)
        a_c at S Sobol points, those of one replicate after the other.
    tables : [(items (m,), Table of m items)]
        Of those that vary.
    """

    exact: Array
    draws: Array
    tables: list[tuple[Array, Table]]

    @property
    def smooth(self) -> Array:
        """(n,) rows all of whose margins are exact and vary: F of a constant is a step."""
        varies = np.zeros(self.exact.size, dtype=bool)
        for items, _ in self.tables:
            varies[items] = True
        return (self.exact & varies.reshape(self.exact.shape)).all(axis=0)

    @cached_property
    def _rest(self) -> Array:
        """(C n, S) log of the sum over the other classes."""
        return log_sum_of_others(self.draws).reshape(self.exact.size, -1)

    @cached_property
    def _sample(self) -> Sample:
        """Draws of the log-odds of each class against the rest."""
        return Sample(self.draws.reshape(self.exact.size, -1) - self._rest)

    def pilot(self, p: Array) -> Array:
        """(C n, Q) the quantiles of the draws themselves."""
        return self._sample.quantile(p)

    def quantile(self, p: Array) -> tuple[Array, Array]:
        """(C n, Q) quantiles at p (C n, Q) of the log-odds of each class against the rest.

        And the largest standard error of their percentiles, (C n,), from the replicates.
        """
        out, error = self.pilot(p), np.zeros(len(p))
        for items, table in self.tables:
            # neighbours in size, within a replicate, are so close that F is linear between them
            ordered = np.sort(self._rest[items].reshape(len(items), REPLICATES, -1), axis=2)
            rest = ordered.reshape(len(items), -1, _MERGED).mean(axis=2)
            for q in range(p.shape[1]):
                l, each = table.quantile_of_sum(rest, p[items, q], out[items, q])
                out[items, q], error[items] = l, np.maximum(error[items], each)
        return out, error


def independent(model: ClassModel, X: Matrix) -> Array:
    """(N,) whether the class densities of a row are independent: whether their cgf is additive."""
    n_classes = len(model.alpha)
    t = 1j * 0.4 * (1 + np.arange(n_classes) / n_classes) * (-1.0) ** np.arange(n_classes)
    joint, *each = model.family.cgf(X, np.concatenate([t[None], np.diag(t)])[:, None])
    return np.abs(joint - sum(each)) <= 1e-8 * (1 + np.abs(joint))


def sobol(rng: np.random.Generator, n_points: int, n_classes: int) -> Array:
    """(S, C) points, those of one replicate after the other."""
    size = (n_points // REPLICATES, n_classes)
    return np.concatenate([g.random(size) for g in replicates(rng, n_points)])


def margins(contrasts: Sequence[Contrast], u: Array) -> Margins:
    """Invert C contrasts of the same n rows, and send the points u (S, C) through them."""
    n, n_points = contrasts[0].X.shape[0], len(u)
    exact = np.empty((len(contrasts), n), dtype=bool)
    draws = np.empty((len(contrasts), n, n_points))
    tables = []
    for c, contrast in enumerate(contrasts):
        k = cumulants(contrast)
        exact[c] = k.error < np.inf
        draws[c] = k.mean[:, None]
        order = np.argsort(u[:, c])  # look-ups in order stay in the cache
        for group in invert(contrast, k, np.flatnonzero((k.sd > 0) | ~exact[c])):
            exact[c, group.rows] = group.error <= _WORST
            for _, part in group.blocks(16 * group.phi.shape[1]):
                table = part.table()
                draws[c, part.rows[:, None], order] = table.quantile(u[order, c])
                tables.append((c * n + part.rows, table))
    return Margins(exact, draws, tables)
