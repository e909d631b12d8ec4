r"""Real variables of a posterior of which the cumulant generating function (cgf) is known.

A *contrast* is a linear combination of the log joint densities, :math:`w \cdot a`. Its cgf lies on
a line through the joint cgf K of a model:

.. math:: K_w(s) = K(t_0 + s w) - K(t_0) = \log E\, e^{s\, w \cdot a}, \quad
          a_c = \log p(c, x | \theta)

:math:`w = e_a - e_b` gives the log-odds of two classes. :math:`t_0 = e_c` tilts: expectations are
then under the posterior that has also seen the row as one of class c (MATH.md D).

Everything is read off the imaginary axis, where every cgf exists: no family has to say how far its
cgf reaches, and a user's own family needs nothing but ``cgf``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_gamma_difference
from bayesgen.posterior.model import ClassModel

# ------------------------------------------------------------------------------- class weights

WeightCGF = Callable[[Array], Array]  # t (..., C) -> (...)


def dirichlet_cgf(alpha: Array) -> WeightCGF:
    """Joint cgf of the logs of Dirichlet class weights."""
    return lambda t: (
        log_gamma_difference(alpha, t).sum(axis=-1)
        - log_gamma_difference(alpha.sum(), t.sum(axis=-1))
    )


def gamma_cgf(alpha: Array) -> WeightCGF:
    """Joint cgf of the logs of the independent Gamma variables behind Dirichlet weights.

    Their sum is common to the classes and cancels from every class probability.
    """
    return lambda t: log_gamma_difference(alpha, t).sum(axis=-1)


def fixed_cgf(weights: Array) -> WeightCGF:
    """Cgf of the logs of known class weights; t is 0 where a weight is."""
    weights = np.asarray(weights, dtype=np.float64)
    log_weights = np.log(np.where(weights > 0, weights, 1.0))
    return lambda t: t @ log_weights


def class_weights(model: ClassModel, class_prior: Array | None) -> WeightCGF:
    """Cgf of the log class weights: Dirichlet, or fixed where a class prior is given."""
    return dirichlet_cgf(model.alpha) if class_prior is None else fixed_cgf(class_prior)


# ----------------------------------------------------------------------------------- contrasts

_CALL = 512  # values that take as long as one call of a cgf, roughly
_CELLS = 1 << 19  # complex numbers of one temporary: 8 MiB

Part = tuple[Array, Array]  # items (m,), points s (K,) on the imaginary axis over i


@dataclass(frozen=True)
class Contrast:
    """M contrasts of each of N rows: M N variables, those of one direction after the other.

    Parameters
    ----------
    family : ConjugateFamily
        The posterior.
    X : (N, D)
    weights : cgf of the log class weights
    directions : (M, C)
        w.
    tilts : (M, C), optional
        t_0; default 0.
    """

    family: Any
    X: Matrix
    weights: WeightCGF
    directions: Array
    tilts: Array | None = None

    def __len__(self) -> int:
        """M N."""
        return len(self.directions) * self.X.shape[0]

    def on_axis(self, parts: Sequence[Part]) -> list[Array]:
        """[(m, K)] values of the cgf at ``i s``, for parts of the items and their points s.

        Families make one table for all rows of a call, so that a few points common to many rows
        cost much less than points of each row's own. Parts share a call while the values that
        nobody asked for cost less than the calls saved.
        """
        out = [np.empty((len(items), len(s)), dtype=np.complex128) for items, s in parts]
        for batch in self._batches(parts):
            rows, place = np.unique(np.concatenate([b.rows for b in batch]), return_inverse=True)
            t = [1j * b.s[:, None] * self.directions[b.direction] for b in batch]
            which = np.repeat([b.direction for b in batch], [len(b.s) for b in batch])
            values = self._cgf(rows, np.concatenate(t), which)
            row, point = 0, 0
            for b in batch:
                columns = place[row : row + len(b.rows)]
                out[b.part][b.at] = values[point : point + len(b.s), columns].T
                row, point = row + len(b.rows), point + len(b.s)
        return out

    def scaled(self, items: Array, scale: Array, nodes: Array) -> Array:
        """(m, K) values at ``i scale nodes`` for scales (m,), few of which differ."""
        scales, which = np.unique(scale, return_inverse=True)
        members = [np.flatnonzero(which == k) for k in range(len(scales))]
        parts = [(items[own], one * nodes) for own, one in zip(members, scales, strict=True)]
        out = np.empty((len(items), len(nodes)), dtype=np.complex128)
        for own, values in zip(members, self.on_axis(parts), strict=True):
            out[own] = values
        return out

    def _cgf(self, rows: Array, t: Array, which: Array) -> Array:
        """(T, n) at t (T, C), each along the direction `which` (T,)."""
        X = self.X if len(rows) == self.X.shape[0] else self.X[rows]
        if self.tilts is None:
            return self.weights(t)[:, None] + self.family.cgf(X, t[:, None])
        t = t + self.tilts[which]
        start = self._at_tilt[which][:, rows]
        return self.weights(t)[:, None] + self.family.cgf(X, t[:, None]) - start

    @cached_property
    def _at_tilt(self) -> Array:
        """(M, N) K(t_0)."""
        t = np.asarray(self.tilts)
        return self.weights(t)[:, None] + self.family.cgf(self.X, t[:, None])

    def _blocks(self, parts: Sequence[Part]) -> Iterator["_Block"]:
        """Parts by direction, and in blocks of rows that fit the memory."""
        for k, (items, s) in enumerate(parts):
            which, rows = np.divmod(items, self.X.shape[0])
            step = max(1, _CELLS // len(s))
            for w in np.unique(which).tolist():
                own = np.flatnonzero(which == w)
                for start in range(0, len(own), step):
                    at = own[start : start + step]
                    yield _Block(w, s, rows[at], k, at)

    def _batches(self, parts: Sequence[Part]) -> Iterator[list["_Block"]]:
        """Blocks that share a call."""
        batch: list[_Block] = []
        rows, points, wanted = np.empty(0, dtype=np.intp), 0, 0
        for block in self._blocks(parts):
            points, wanted = points + len(block.s), wanted + len(block.rows) * len(block.s)
            free = wanted + _CALL * len(batch)
            if points * max(len(rows), len(block.rows)) <= free:
                union = np.union1d(rows, block.rows)
                if points * len(union) <= free:
                    batch, rows = [*batch, block], union
                    continue
            yield batch
            batch, rows = [block], block.rows
            points, wanted = len(block.s), len(block.rows) * len(block.s)
        if batch:
            yield batch


class _Block(NamedTuple):
    """Some items of one direction, and their points."""

    direction: int
    s: Array  # (K,)
    rows: Array  # (n,)
    part: int
    at: Array  # (n,) places in the part


def log_odds(
    model: ClassModel,
    X: Matrix,
    a: int,
    b: int,
    class_prior: Array | None = None,
    tilt: int | None = None,
) -> Contrast:
    """The contrast ``L = log p(a, x | theta) - log p(b, x | theta)``.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    X : (N, D)
    a, b : int
        Class codes.
    class_prior : (C,), optional
        Fixed class weights that replace the fitted ones.
    tilt : int, optional
        The distribution after the row itself was seen with this label.

    Examples
    --------
    The thirteen samples: one (1, 1) of class 0, four of each other row of class 1.

    >>> import numpy as np
    >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    >>> from bayesgen.predict.interval.cumulants import cumulants
    >>> X = np.array([[1, 1]] + 4 * [[1, 0], [0, 1], [0, 0]])
    >>> model = ClassModel(1.0, BetaBernoulli(alpha=1.0, beta=1.0))
    >>> stats = model.stats(X, np.array([0] + 12 * [1]), 2)
    >>> posterior = model.resolve(stats).update(stats)
    >>> k = cumulants(log_odds(posterior, np.array([[1, 1]]), 0, 1))
    >>> print(f"{k.mean[0]:.6f} {k.sd[0]:.6f} {k.skewness[0]:.6f}")
    -0.909610 1.232663 -0.433056
    """
    one = np.eye(len(model.alpha))
    at = None if tilt is None else one[[tilt]]
    return Contrast(model.family, X, class_weights(model, class_prior), one[[a]] - one[[b]], at)


def log_densities(
    model: ClassModel,
    X: Matrix,
    classes: Array,
    class_prior: Array | None = None,
    tilt: int | None = None,
) -> Contrast:
    """The contrasts ``log g_c + log p(x | theta_c)``, g_c the Gamma variable behind a class weight.

    Where classes are independent given the data, so are these variables, and their softmax is the
    vector of class probabilities. `tilt` is a position in `classes`.
    """
    weights = gamma_cgf(model.alpha) if class_prior is None else fixed_cgf(class_prior)
    own = np.eye(len(model.alpha))[classes]
    at = None if tilt is None else own * (np.arange(len(classes)) == tilt)[:, None]
    return Contrast(model.family, X, weights, own, at)


def possible_classes(
    model: ClassModel,
    X: Matrix,
    class_prior: Array | None = None,
    joint: Array | None = None,
) -> Iterator[tuple[Array, Array]]:
    """(rows, classes) that can have produced them at all, a partition of the rows.

    `joint` (N, C) is log p(c, x | D) with the class prior, where it is known already.
    """
    if joint is None:
        possible = np.isfinite(model.family.log_predictive(X))
        if class_prior is not None:
            possible &= np.asarray(class_prior) > 0
    else:
        possible = np.isfinite(joint)
    patterns, which = np.unique(possible, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        yield np.flatnonzero(which.ravel() == k), np.flatnonzero(pattern)
