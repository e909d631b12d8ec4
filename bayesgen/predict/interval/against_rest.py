r"""One class against all others, of classes that are independent given something.

With :math:`a_c = \log g_c + \log p(x | \theta_c)`, g_c the independent Gamma variables behind the
class weights,

.. math:: P(\text{logit}\,\rho_c < l) = E\, F_c\Big(l + \log\sum_{d \ne c} e^{a_d}\Big).

The expectation is an average over scrambled Sobol points, which all rows have in common: one
coordinate for each class, taken through the quantile function of its a_c. The integrand is smooth,
so a few hundred points do what 10^5 draws would. F_c is a table of cubics (`laws`).

Given the row too, the distribution is a mixture over the labels that the row may have: each
component is the same of a posterior that has seen the row with that label.

Shapes: n rows, C classes, S points, M components.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import logit, ndtri

from bayesgen.numerics.special import Array, log_sum_exp, log_sum_of_others
from bayesgen.predict.draws import Sample
from bayesgen.predict.interval.laws import Law
from bayesgen.predict.interval.request import IntervalRequest

# of percentiles by expansions at 256 points: 99 of 100 are within it, and all within twice of it
# (of LinearDiscriminant with 10 classes, 99 of 100 within .005)
ERROR = 0.003
_GOLDEN = (np.sqrt(5.0) - 1) / 2
_BLOCKS = 8  # of consecutive points: their spread tells the error, and more than it


@dataclass(frozen=True)
class Mixture:
    """The distribution of n rows: M laws with weights (n, M, C), or (n, M, 1) of all classes."""

    weight: Array
    laws: Sequence[Law]
    compiled: bool = False

    @classmethod
    def of_labels(cls, weight: Array, laws: Sequence[Law], compiled: bool) -> Self:
        """The mixture over many labels of weights (n, C), in two components.

        `laws` are the plain one, and that of each class given that it is the label; a label changes
        the law of its class alone. Of a class c: it is the label itself, or another is, which is
        drawn for each point anew.
        """
        plain, own = laws
        n, _, n_points = plain.draws.shape
        out = cls(np.stack([weight, 1 - weight], axis=1), [own, plain], compiled)
        upto = np.cumsum(weight, axis=1)
        upto /= upto[:, -1:]
        last = weight.shape[1] - 1 - (weight[:, ::-1] > 0).argmax(axis=1)[:, None]

        def labels(p: Array) -> Array:
            found = [np.searchsorted(*own, side="right") for own in zip(upto, p, strict=True)]
            return np.minimum(found, last)

        # two sequences of low discrepancy: each block of points has its share of every label
        u, v = np.modf(np.arange(1, n_points + 1) * np.array([[_GOLDEN], [np.sqrt(2.0)]]))[0]
        row, point = np.ogrid[:n, :n_points]
        label = labels(np.broadcast_to(u, (n, n_points)))
        before = upto[row, label] - weight[row, label]
        p = v * (1 - weight[row, label])
        other = labels(p + np.where(p >= before, weight[row, label], 0.0))  # for class `label`
        rest: list[Array] = []
        for k in (label, other):
            moved = plain.draws.copy()
            moved[row, k, point] = own.draws[row, k, point]
            if not rest:
                rest.append(_log_sum_of_others(moved, compiled))
                continue
            moved[row, label, point] = -np.inf
            rest[0][row, label, point] = log_sum_exp(moved, axis=1)
        vars(out)["rest"] = [_log_sum_of_others(plain.draws, compiled), *rest]
        return out

    def intervals(self, request: IntervalRequest, least_error: float) -> tuple[Array, Array, Array]:
        """(n, C) lower and upper ends of each class against the rest, and (n,) their error."""
        shape = self.rest[0].shape[:2]
        error = np.full(shape[0], least_error)

        def quantile(p: Array) -> Array:
            l, each = self.quantile(p)
            np.maximum(error, each, out=error)
            return l

        low, high = request.ends(math.prod(shape), quantile, self.pilot)
        return low.reshape(shape), high.reshape(shape), error

    @cached_property
    def rest(self) -> list[Array]:
        """M times (n, C, S): log of the sum over the other classes."""
        return [_log_sum_of_others(law.draws, self.compiled) for law in self.laws]

    @cached_property
    def odds(self) -> Array:
        """(n, C, M S) draws of the log-odds of each class against the rest."""
        pairs = zip(self.laws, self.rest, strict=True)
        return np.concatenate([law.draws - rest for law, rest in pairs], axis=2)

    @cached_property
    def _sample(self) -> Sample:
        flat = self.odds.reshape(-1, self.odds.shape[2])
        if len(self.laws) == 1:
            return Sample(flat)
        return Sample(flat, self._weights.reshape(flat.shape))

    @property
    def _weights(self) -> Array:
        """(n, C, M S) of `odds`."""
        n, _, n_points = self.rest[0].shape
        each = np.broadcast_to(self.weight, (n, len(self.laws), self.odds.shape[1]))
        return np.repeat(np.moveaxis(each, 1, 2), n_points, axis=2)

    def pilot(self, p: Array) -> Array:
        """(n C, Q) the quantiles of the draws themselves, of the log-odds against the rest."""
        return self._sample.quantile(p)

    def quantile(self, p: Array) -> tuple[Array, Array]:
        """(n C, Q) quantiles at p (n C, Q) of the log-odds of each class against the rest.

        And (n,) the largest standard error of their percentiles, as blocks of the points tell it.
        """
        n, n_classes, n_points = self.laws[0].draws.shape
        l, error = np.empty(p.shape), np.zeros(n)
        if self.compiled:
            self._solve_compiled(p.reshape(n, n_classes, -1), l.reshape(n, n_classes, -1), error)
            return l, error
        weight = self._weights / n_points
        mean = (self.odds * weight).sum(axis=2, keepdims=True)
        sd = np.sqrt((np.square(self.odds - mean) * weight).sum(axis=2)).ravel()
        low, high = (np.reshape(end, n * n_classes) for end in self._span)
        for q in range(p.shape[1]):
            at = np.clip(mean.ravel() + sd * ndtri(p[:, q]), low, high)
            l[:, q], each = _solve(self._average, p[:, q], at, low, high, sd)
            np.maximum(error, each.reshape(n, n_classes).max(axis=1), out=error)
        return l, error

    @property
    def _span(self) -> tuple[Array, Array]:
        """(n, C) each: where all distribution functions are still 0, and where they are 1."""
        low: Any = np.inf
        high: Any = -np.inf
        for m, (law, rest) in enumerate(zip(self.laws, self.rest, strict=True)):
            end = law.start + law.size * law.spacing
            left, right = (law.loc + law.scale * e[..., None] - rest for e in (law.start, end))
            used = self.weight[:, m] > 0
            low = np.minimum(low, np.where(used, left.min(axis=2), np.inf))
            high = np.maximum(high, np.where(used, right.max(axis=2), -np.inf))
        return low, high

    def _average(self, l: Array) -> tuple[Array, Array]:
        """(n C, block) P(log-odds < l) for l (n C,), and (n C,) the density."""
        value: Any = 0.0
        density: Any = 0.0
        each_weight = np.moveaxis(self.weight, 1, 0)
        for weight, law, rest in zip(each_weight, self.laws, self.rest, strict=True):
            rate = 1 / (law.scale * law.spacing[..., None])
            at = l.reshape(*law.first.shape, 1) + rest - law.loc
            place = at * rate - (law.start / law.spacing)[..., None]
            place = np.clip(place, 0.0, law.size[..., None] * (1 - 1e-12))
            j = place.astype(np.intp)
            f = place - j
            c0, c1, c2, c3 = np.moveaxis(law.cells[law.first[..., None] + j], -1, 0)
            each = c0 + f * (c1 + f * (c2 + f * c3))
            blocks = each.reshape(*each.shape[:2], _BLOCKS, -1).mean(axis=3)
            value = value + weight[..., None] * blocks
            slope = rate * (c1 + f * (2 * c2 + 3 * f * c3))
            density = density + weight * slope.mean(axis=2)
        return value.reshape(len(l), _BLOCKS), density.ravel()

    def _solve_compiled(self, p: Array, l: Array, error: Array) -> None:
        from bayesgen.numerics.kernels.mixtures import solve as compiled
        from bayesgen.numerics.kernels.threads import over_blocks

        base = np.cumsum([0, *(len(law.cells) for law in self.laws[:-1])])
        parts = [law._replace(first=law.first + b) for law, b in zip(self.laws, base, strict=True)]

        names = "first", "size", "start", "spacing", "draws", "loc", "scale"
        fields = [_of_all([getattr(part, name) for part in parts]) for name in names]
        n, n_parts, n_classes = self.weight.shape[0], len(parts), fields[0].shape[2]
        weight = np.ascontiguousarray(np.broadcast_to(self.weight, (n, n_parts, n_classes)))
        fields[4:5] = [weight, fields[4], _of_all(self.rest)]
        cells = parts[0].cells if len(parts) == 1 else np.concatenate([f.cells for f in parts])

        arrays = *fields, np.ascontiguousarray(p), logit(p), ndtri(p), error, l

        def block(start: int, stop: int) -> None:
            compiled(cells, *(f[start:stop] for f in arrays))

        for _ in over_blocks(block, len(p), 4 * fields[5][0].size):
            pass


def _solve(
    average: Callable[[Array], tuple[Array, Array]],
    p: Array,
    l: Array,
    low: Array,
    high: Array,
    sd: Array,
) -> tuple[Array, Array]:
    """(n,) points at which averages are p (n,), and standard errors of p, (n,).

    Newton's method works on the scale of the average's logit: that is nearly straight far out,
    where a distribution function is flat and a step would end anywhere. So it would on an average
    of narrow distributions, which is nearly a step function: the last step, after which nothing is
    evaluated, is shorter than the miss in standard deviations, as where an average is smooth.

    Parameters
    ----------
    average : (n,) points -> averages of each of some blocks (n, block), and slopes (n,)
    l, low, high, sd : (n,)
        First values, and bounds; standard deviations of the variables.
    """
    for _ in range(40):
        each, slope = average(l)
        mean = np.clip(each.mean(axis=1), 0.0, 1.0)
        low, high = np.where(mean < p, l, low), np.where(mean > p, l, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            miss = logit(mean) - logit(p)
            step = l - miss * mean * (1 - mean) / slope
            inside = (step >= low) & (step <= high)
            short = inside & (np.abs(step - l) < np.abs(miss) * sd)
        done = (np.abs(miss) < 0.001) | (np.abs(miss) < 0.01) & short  # about squared by the step
        l = np.where(short | inside & ~done, step, np.where(done, l, (low + high) / 2))
        if done.all():
            break
    return l, each.std(axis=1, ddof=1) / np.sqrt(each.shape[1])


def _of_all(arrays: Sequence[Array]) -> Array:
    """(n, M, ...) of M arrays (n, ...), without a copy if there is one."""
    one = np.ascontiguousarray(arrays[0])  # of one layout, for which a loop is compiled
    return one[:, None] if len(arrays) == 1 else np.stack(arrays, axis=1)


def _log_sum_of_others(a: Array, compiled: bool) -> Array:
    """(n, C, S) log of the sum of exp(a_d), d != c, of a (n, C, S)."""
    if not compiled:
        return np.moveaxis(log_sum_of_others(np.moveaxis(a, 1, 0)), 0, 1)
    from bayesgen.numerics.kernels import mixtures

    out = np.empty(a.shape)
    mixtures.log_sum_of_others(np.ascontiguousarray(a), out)
    return out
