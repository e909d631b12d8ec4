r"""One class against all others, for classes that are independent given the data.

With :math:`a_c = \log g_c + \log p(x | \theta_c)`, g_c the independent Gamma variables behind the
class weights, the C variables are independent, each with a cgf of its own, and

.. math:: P(\text{logit}\,\rho_c < l) = E\, F_c\Big(l + \log\sum_{d \ne c} e^{a_d}\Big).

F_c is inverted exactly; the expectation over the others is an average over scrambled Sobol points
taken through their exact quantile functions. The integrand is smooth, so a few hundred points do
what 10^5 draws would; independent scrambles give its error.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesgen.model import ClassModel
from bayesgen.numerics import Array
from bayesgen.rows import Matrix
from bayesgen.uncertainty.draws import (
    REPLICATES,
    log_odds_against_rest,
    order_statistic,
    replicates,
)
from bayesgen.uncertainty.inversion import invert
from bayesgen.uncertainty.log_odds import cumulants, log_density
from bayesgen.uncertainty.tabulated import Table

POINTS = 2048
_WORST = 1e-5  # error of a margin that still counts as exact


@dataclass(frozen=True)
class Margins:
    """The inverted margins of n rows.

    Parameters
    ----------
    good : (n,) bool
        Rows all of whose margins could be inverted.
    draws : (n, S, C)
        a_c at S Sobol points, those of one replicate after the other.
    tables : for each class, [(rows (m,), Table of m rows)]
    """

    good: Array
    draws: Array
    tables: list[list[tuple[Array, Table]]]

    @cached_property
    def odds(self) -> Array:
        """(n, S, C) log-odds of each class against the rest."""
        return log_odds_against_rest(self.draws)

    def rest(self, j: int) -> Array:
        """(n, S) log of the sum over the other classes."""
        return self.draws[..., j] - self.odds[..., j]

    def quantile(self, j: int, p: Array) -> Array:
        """(n, Q) quantiles at p (n, Q) of the log-odds of class j against the rest."""
        return self._solve(j, p, self.rest(j))

    def draft(self, j: int, p: Array) -> Array:
        """The same, from the draws alone."""
        return order_statistic(np.sort(self.odds[..., j], axis=1), p)

    def error(self, low: Array, high: Array) -> Array:
        """(n,) largest standard error of the probability below an end (n, C), over replicates."""
        out = np.zeros(len(self.good))
        for j, groups in enumerate(self.tables):
            rest = self.rest(j)
            for rows, table in groups:
                for end in (low[rows, j], high[rows, j]):
                    value, _ = table.cdf_and_pdf(end[:, None] + rest[rows])
                    each = value.reshape(len(rows), REPLICATES, -1).mean(axis=2)
                    out[rows] = np.maximum(out[rows], each.std(axis=1, ddof=1))
        return out / np.sqrt(REPLICATES)

    def _solve(self, j: int, p: Array, rest: Array) -> Array:
        """Newton's method on the average of F_j(l + rest), from the quantile of the draws."""
        out = self.draft(j, p)
        for rows, table in self.tables[j]:
            for q in range(p.shape[1]):
                l = out[rows, q]
                low, high = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
                for _ in range(12):
                    value, slope = table.cdf_and_pdf(l[:, None] + rest[rows])
                    miss = value.mean(axis=1) - p[rows, q]
                    low, high = np.where(miss < 0, l, low), np.where(miss > 0, l, high)
                    with np.errstate(divide="ignore", invalid="ignore"):
                        step = l - miss / slope.mean(axis=1)
                    middle = np.where(np.isfinite(high - low), (low + high) / 2, l)
                    l = np.where((step > low) & (step < high), step, middle)
                    if np.abs(miss).max(initial=0.0) < 1e-4:  # and squared by the last step
                        break
                out[rows, q] = l
        return out


def independent(model: ClassModel, X: Matrix) -> Array:
    """(N,) whether the class densities of a row are independent: whether their cgf is additive."""
    n_classes = len(model.alpha)
    t = 1j * 0.4 * (1 + np.arange(n_classes) / n_classes) * (-1.0) ** np.arange(n_classes)
    joint = model.family.cgf(X, t)
    apart = sum(model.family.cgf(X, t * one) for one in np.eye(n_classes))
    return np.abs(joint - apart) <= 1e-8 * (1 + np.abs(joint))


def margins(
    model: ClassModel,
    X: Matrix,
    rng: np.random.Generator,
    classes: Array,
    class_prior: Array | None = None,
    n_points: int = POINTS,
) -> Margins:
    """Invert the margin of each of `classes`, and send the Sobol points through it."""
    n = X.shape[0]
    size = (n_points // REPLICATES, len(classes))
    u = np.concatenate([g.random(size) for g in replicates(rng, n_points)])
    good, draws = np.ones(n, dtype=bool), np.zeros((n, n_points, len(classes)))
    tables: list[list[tuple[Array, Table]]] = []
    for j, c in enumerate(classes):
        line = log_density(model, X, c, class_prior)
        k = cumulants(line)
        good &= k.sd > 0
        tables.append([])
        for group in invert(line, k, np.flatnonzero(k.sd > 0)):
            good[group.rows[group.error > _WORST]] = False
            table = group.table()
            draws[group.rows, :, j] = table.quantile(u[:, j])
            tables[-1].append((group.rows, table))
    return Margins(good, draws, tables)
