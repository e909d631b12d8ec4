r"""One class against all others, for classes that are independent given the data.

With :math:`a_c = \log g_c + \log p(x | \theta_c)`, g_c the independent Gamma variables behind the
class weights, the C variables are independent, each with a cgf of its own, and

.. math:: P(\text{logit}\,\rho_c < l) = E\, F_c\Big(l + \log\sum_{d \ne c} e^{a_d}\Big).

F_c is inverted exactly; the expectation over the others is an average over scrambled Sobol points
taken through their exact quantile functions. The integrand is smooth, so a few hundred points do
what 10^5 draws would; independent scrambles give its error.

Given the row too, the distribution is a mixture: for each label that the row may have, the same
with the margin of that one class tilted (`contrast`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.draws import REPLICATES, Sample, log_sum_of_others, replicates
from bayesgen.predict.interval.contrast import Contrast
from bayesgen.predict.interval.cumulants import cumulants
from bayesgen.predict.interval.inversion import Table, invert, solve

POINTS = {"auto": 1024, "exact": 4096}
_MERGED = 4  # neighbours that stand for one point in the average
LEAST = 1e-5  # weight of all labels that a mixture leaves out
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
    def rest(self) -> Array:
        """(C n, S) log of the sum over the other classes."""
        return log_sum_of_others(self.draws).reshape(self.exact.size, -1)

    @cached_property
    def _sample(self) -> Sample:
        """Draws of the log-odds of each class against the rest."""
        return Sample(self.odds)

    @property
    def odds(self) -> Array:
        """(C n, S) draws of the log-odds of each class against the rest."""
        return self.draws.reshape(self.exact.size, -1) - self.rest

    def pilot(self, p: Array) -> Array:
        """(C n, Q) the quantiles of the draws themselves."""
        return self._sample.quantile(p)

    def quantile(self, p: Array) -> tuple[Array, Array]:
        """(C n, Q) quantiles at p (C n, Q) of the log-odds of each class against the rest.

        And the largest standard error of their percentiles, (C n,), from the replicates.
        """
        out, error = self.pilot(p), np.zeros(len(p))
        for items, table, rest in self.terms:
            for q in range(p.shape[1]):
                l, each = table.quantile_of_sum(rest, p[items, q], out[items, q])
                out[items, q], error[items] = l, np.maximum(error[items], each)
        return out, error

    @cached_property
    def terms(self) -> list[tuple[Array, Table, Array]]:
        """[(items (m,), their table, (m, S) log of the sum over the other classes)]."""
        found = []
        for items, table in self.tables:
            # neighbours in size, within a replicate, are so close that F is linear between them
            ordered = np.sort(self.rest[items].reshape(len(items), REPLICATES, -1), axis=2)
            found.append((items, table, ordered.reshape(len(items), -1, _MERGED).mean(axis=2)))
        return found

    def with_margin(self, c: int, rows: Array, own: "Margins") -> "Margins":
        """Of some rows, `own` (those of one class of the same rows) in place of class c."""
        n, m = self.exact.shape[1], len(rows)
        exact, draws = self.exact[:, rows], self.draws[:, rows]
        exact[c], draws[c] = own.exact[0], own.draws[0]
        tables = [(c * m + items, table) for items, table in own.tables]
        place = np.full(n, -1)
        place[rows] = np.arange(m)
        for items, table in self.tables:
            of, row = np.divmod(items, n)
            kept = np.flatnonzero((of != c) & (place[row] >= 0))
            if len(kept):
                tables.append((of[kept] * m + place[row[kept]], table.part(kept)))
        return Margins(exact, draws, tables)


@dataclass(frozen=True)
class MixedMargins:
    """The distribution of n rows as a mixture over the labels that each row may have.

    Parameters
    ----------
    plain : Margins
        Of the n rows, given the training rows alone.
    parts : [(rows (m,), weights (m,), Margins of these rows)]
        Of one label each; the weights of a row sum to 1.
    left_out : float
        Bound on the weight of the labels that are not there.
    """

    plain: Margins
    parts: list[tuple[Array, Array, Margins]]
    left_out: float

    @property
    def smooth(self) -> Array:
        """(n,) as of `Margins`, with every label."""
        out = self.plain.smooth
        for rows, _, part in self.parts:
            out[rows] &= part.smooth
        return out

    @cached_property
    def _sample(self) -> Sample:
        """Draws of the log-odds of each class against the rest."""
        l, weights = [], []
        for items, weight, part in self._by_item:
            odds = self.plain.odds  # of rows that cannot have this label: with weight 0
            own = np.zeros(odds.shape)
            odds[items], own[items] = part.odds, weight[:, None]
            l.append(odds)
            weights.append(own)
        return Sample(np.concatenate(l, axis=1), np.concatenate(weights, axis=1))

    def pilot(self, p: Array) -> Array:
        """(C n, Q) the quantiles of the draws themselves."""
        return self._sample.quantile(p)

    def quantile(self, p: Array) -> tuple[Array, Array]:
        """As of `Margins`."""
        out, error = self.pilot(p), np.zeros(len(p))
        items = np.flatnonzero(np.tile(self.smooth, len(self.plain.exact)))
        low, high = np.full(len(p), np.inf), np.full(len(p), -np.inf)
        for at, _, part in self._by_item:
            for own, table, rest in part.terms:
                left, right = table.span(rest)
                low[at[own]] = np.minimum(low[at[own]], left)
                high[at[own]] = np.maximum(high[at[own]], right)
        for q in range(p.shape[1]):
            full = out[:, q].copy()

            def average(l: Array, full: Array = full) -> tuple[Array, Array]:
                full[items] = l
                each, slope = self._average(full)
                return each[items], slope[items]

            ends = p[items, q], out[items, q], low[items], high[items]
            out[items, q], each = solve(average, *ends)
            error[items] = np.maximum(error[items], each)
        return out, error + self.left_out

    @property
    def _by_item(self) -> Iterator[tuple[Array, Array, Margins]]:
        """(items (k,), weights (k,), Margins) of each label."""
        n_classes, n = self.plain.exact.shape
        for rows, weight, part in self.parts:
            yield (
                (np.arange(n_classes)[:, None] * n + rows).ravel(),
                np.tile(weight, n_classes),
                part,
            )

    def _average(self, l: Array) -> tuple[Array, Array]:
        """(C n, replicate) P(log-odds < l) for l (C n,), and (C n,) the density."""
        value, density = np.zeros((len(l), REPLICATES)), np.zeros(len(l))
        for items, weight, part in self._by_item:
            for own, table, rest in part.terms:
                at, w = items[own], weight[own]
                each, slope = table.average(rest, l[at])
                value[at] += w[:, None] * each
                density[at] += w * slope
        return value, density


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


def mixed_margins(plain: Margins, tilted: Sequence[Contrast], p: Array, u: Array) -> MixedMargins:
    """Of theta given the row too.

    Parameters
    ----------
    plain : Margins
        Of C classes and n rows, given the training rows.
    tilted : C contrasts of the same rows
        Each class after the row was seen with its label.
    p : (n, C)
        p(y = c | x, D).
    u : (S, C) the points behind `plain`
    """
    p = np.where(p > LEAST / len(tilted), p, 0.0)
    p /= p.sum(axis=1, keepdims=True)
    parts = []
    for c, contrast in enumerate(tilted):
        rows = np.flatnonzero(p[:, c])
        if len(rows):
            own = margins([replace(contrast, X=contrast.X[rows])], u[:, [c]])
            parts.append((rows, p[rows, c], plain.with_margin(c, rows, own)))
    return MixedMargins(plain, parts, LEAST)
