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
from scipy.special import logit

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.draws import (
    REPLICATES,
    log_sum_of_others,
    order_statistic,
    replicates,
)
from bayesgen.predict.interval.contrast import Contrast, cumulants, log_density
from bayesgen.predict.interval.inversion import invert
from bayesgen.predict.interval.tabulated import Table

POINTS = {"auto": 1024, "exact": 4096}
_MERGED = 4  # neighbours that stand for one point in the average
_WORST = 1e-5  # error of a margin that still counts as exact


@dataclass(frozen=True)
class Margins:
    """The inverted margins of n rows.

    Parameters
    ----------
    good : (n,) bool
        Rows all of whose margins could be inverted.
    draws : (C, n, S)
        a_c at S Sobol points, those of one replicate after the other.
    tables : for each class, [(rows (m,), Table of m rows)]
    """

    good: Array
    draws: Array
    tables: list[list[tuple[Array, Table]]]

    @cached_property
    def rest(self) -> Array:
        """(C, n, S) log of the sum over the other classes."""
        return log_sum_of_others(self.draws)

    def others(self, j: int) -> Array:
        """(n, S/4) the same for one class: neighbours in size, within a replicate, are averaged.

        They are so close that F is linear between them.
        """
        n = len(self.good)
        ordered = np.sort(self.rest[j].reshape(n, REPLICATES, -1), axis=2)
        return ordered.reshape(n, -1, _MERGED).mean(axis=2)

    def quantile(self, j: int, p: Array) -> tuple[Array, Array]:
        """(n, Q) quantiles at p (n, Q) of the log-odds of class j against the rest.

        And the largest standard error of their percentiles, (n,), from the replicates.
        """
        rest, out, error = self.others(j), self.draft(j, p), np.zeros(len(p))
        for rows, table in self.tables[j]:
            for q in range(p.shape[1]):
                l, each = _solve(table, rest[rows], p[rows, q], out[rows, q])
                out[rows, q], error[rows] = l, np.maximum(error[rows], each)
        return out, error

    def draft(self, j: int, p: Array) -> Array:
        """The quantiles of the draws themselves."""
        return order_statistic(np.sort(self.draws[j] - self.rest[j], axis=1), p)


def _solve(table: Table, rest: Array, p: Array, l: Array) -> tuple[Array, Array]:
    """Newton's method for the average of F(l + rest), and the error of that average; (n,) each.

    On the scale of its logit, which is nearly straight far out, where F itself is flat and a step
    would end anywhere.
    """
    low = table.start - rest.max(axis=1)
    high = table.start + table.spacing * (table.cdf.shape[1] - 1) - rest.min(axis=1)
    for _ in range(20):
        value, slope = table.cdf_and_pdf(l[:, None] + rest)
        each = value.reshape(len(l), REPLICATES, -1).mean(axis=2)
        mean = np.clip(each.mean(axis=1), 0.0, 1.0)
        low, high = np.where(mean < p, l, low), np.where(mean > p, l, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            miss = logit(mean) - logit(p)
            step = l - miss * mean * (1 - mean) / slope.mean(axis=1)
        l = np.where((step >= low) & (step <= high), step, (low + high) / 2)
        if (np.abs(miss) < 0.01).all():  # about squared by the last step
            break
    return l, each.std(axis=1, ddof=1) / np.sqrt(REPLICATES)


def independent(model: ClassModel, X: Matrix) -> Array:
    """(N,) whether the class densities of a row are independent: whether their cgf is additive."""
    n_classes = len(model.alpha)
    t = 1j * 0.4 * (1 + np.arange(n_classes) / n_classes) * (-1.0) ** np.arange(n_classes)
    joint = model.family.cgf(X, t)
    apart = sum(model.family.cgf(X, t * one) for one in np.eye(n_classes))
    return np.abs(joint - apart) <= 1e-8 * (1 + np.abs(joint))


def sobol(rng: np.random.Generator, n_points: int, n_classes: int) -> Array:
    """(S, C) points, those of one replicate after the other."""
    size = (n_points // REPLICATES, n_classes)
    return np.concatenate([g.random(size) for g in replicates(rng, n_points)])


def margin(contrast: Contrast, u: Array) -> tuple[Array, Array, list[tuple[Array, Table]]]:
    """Draws (n, S) of one contrast at the probabilities u (S,), whether good, and the tables.

    A contrast that does not vary has no table.
    """
    k = cumulants(contrast)
    good = k.error < np.inf
    draws = np.repeat(k.mean[:, None], len(u), axis=1)
    tables = []
    order = np.argsort(u)  # look-ups in order stay in the cache
    for group in invert(contrast, k, np.flatnonzero((k.sd > 0) | ~good)):
        good[group.rows] = group.error <= _WORST
        for _, part in group.blocks(16 * group.phi.shape[1]):
            table = part.table()
            draws[part.rows[:, None], order] = table.quantile(u[order])
            tables.append((part.rows, table))
    return draws, good, tables


def margins(
    model: ClassModel,
    X: Matrix,
    u: Array,
    classes: Array,
    class_prior: Array | None = None,
) -> Margins:
    """Invert the margin of each of `classes`, and send the points u (S, C) through it."""
    good, draws = np.ones(X.shape[0], dtype=bool), np.empty((len(classes), X.shape[0], len(u)))
    tables = []
    for j, c in enumerate(classes):
        draws[j], fine, own = margin(log_density(model, X, c, class_prior), u[:, j])
        good &= fine
        tables.append(own)
        if len(own):
            varies = np.zeros(len(good), dtype=bool)
            varies[np.concatenate([rows for rows, _ in own])] = True
            good &= varies  # F of a constant is a step: nothing is smooth
        else:
            good[:] = False
    return Margins(good, draws, tables)
