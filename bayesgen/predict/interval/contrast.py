r"""Real variables of a posterior of which the cumulant generating function (cgf) is known.

A *contrast* is a linear combination of the log joint densities, :math:`w \cdot a`. Its cgf lies on
a line through the joint cgf K of a model:

.. math:: K_w(s) = K(t_0 + s w) - K(t_0) = \log E\, e^{s\, w \cdot a}, \quad
          a_c = \log p(c, x | \theta)

:math:`w = e_a - e_b` gives the log-odds of two classes. :math:`t_0 = e_c` tilts: expectations are
then under the posterior that has also seen the row as one of class c. The posterior that has seen
the row without its label is the mixture of these, with weights p(y = c | x, D) in the ratio of
:math:`e^{K(e_c)}`, so that

.. math:: \log E[e^{s\, w \cdot a} \mid D, x]
          = \log \sum_c e^{K(e_c + s w)} - \log \sum_c e^{K(e_c)}.

Everything is read off the imaginary axis, where every cgf exists: no family has to say how far its
cgf reaches, and a user's own family needs nothing but ``cgf``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesgen.families.names import CLASS
from bayesgen.numerics.rows import Matrix, has_nan
from bayesgen.numerics.special import Array, log_gamma_difference, log_softmax
from bayesgen.posterior.model import ClassModel, log_weights

# ------------------------------------------------------------------------------- class weights

WeightCGF = Callable[[Array], Array]  # t (..., C) -> (...)


def dirichlet_cgf(alpha: Array) -> WeightCGF:
    """Joint cgf of the logs of Dirichlet class weights."""
    return lambda t: (
        log_gamma_difference(alpha, t).sum(axis=-1)
        - log_gamma_difference(alpha.sum(), t.sum(axis=-1))
    )


def gamma_cgf(alpha: Array, c: int) -> WeightCGF:
    """Cgf of the log of one of the independent Gamma variables behind Dirichlet weights.

    Their sum is common to the classes and cancels from every class probability.
    """
    return lambda t: log_gamma_difference(alpha[c], t[..., c])


def fixed_cgf(weights: Array) -> WeightCGF:
    """Cgf of the logs of known class weights; t is 0 where a weight is."""
    weights = np.asarray(weights, dtype=np.float64)
    log_weights = np.log(np.where(weights > 0, weights, 1.0))
    return lambda t: t @ log_weights


def class_weights(model: ClassModel, class_prior: Array | None) -> WeightCGF:
    """Cgf of the log class weights: Dirichlet, or fixed where a class prior is given."""
    return dirichlet_cgf(model.alpha) if class_prior is None else fixed_cgf(class_prior)


# ----------------------------------------------------------------------------------- contrasts

_CALL = 1024  # densities of one class that take as long as one call of a cgf, roughly
LEAST = 1e-5  # weight of all labels that a mixture leaves out
MANY = 64  # classes, the quasi-random coordinates: of more, each has what it needs alone
OWN = -1  # in place of a label: each class, given that the row is one of it
_CELLS = 1 << 19  # complex numbers of one temporary: 8 MiB

Part = tuple[Array, Array]  # rows (m,), and s (K,) of points i s on the imaginary axis


@dataclass(frozen=True)
class Contrast:
    """The cgf of ``w . a`` for each row, a function of one complex variable.

    Parameters
    ----------
    family : ConjugateFamily
        The posterior.
    X : (N, D)
    weights : cgf of the log class weights
    direction : (C,)
        w.
    tilts : (M, C), optional
        t_0; default 0. The mixture of the distributions of several, in the ratio of exp K(t_0).
    """

    family: Any
    X: Matrix
    weights: WeightCGF
    direction: Array
    tilts: Array | None = None

    def on_axis(self, parts: Sequence[Part]) -> list[Array]:
        """[(m, K)] values at ``i s``, for some rows and their points each."""
        return on_axis([self], parts)

    def scaled(self, rows: Array, scale: Array, nodes: Array) -> Array:
        """(m, K) values at ``i scale nodes`` for scales (m,), few of which differ."""
        scales, which = np.unique(scale, return_inverse=True)
        members = [np.flatnonzero(which == k) for k in range(len(scales))]
        parts = [(rows[own], one * nodes) for own, one in zip(members, scales, strict=True)]
        out = np.empty((len(rows), len(nodes)), dtype=np.complex128)
        for own, values in zip(members, self.on_axis(parts), strict=True):
            out[own] = values
        return out

    @cached_property
    def at_tilts(self) -> tuple[Array, Array]:
        """(N,) the tilt with the largest K(t_0), and the log of the sum of exp K(t_0)."""
        t = np.asarray(self.tilts)
        each = self.family.cgf(self.X, t[:, None]) + self.weights(t)[:, None]
        return each.argmax(axis=0), np.logaddexp.reduce(each, axis=0)


def on_axis(contrasts: Sequence[Contrast], parts: Sequence[Part]) -> list[Array]:
    """[(m, K)] values at ``i s`` of contrasts of N rows each: variable ``k N + i`` is row i of k.

    Families make one table for all rows of a call, so that a few points common to many rows cost
    much less than points of each row's own. Parts share a call while the values that nobody asked
    for cost less than the calls saved.
    """
    n_rows = contrasts[0].X.shape[0]
    out = [np.empty((len(rows), len(s)), dtype=np.complex128) for rows, s in parts]
    for batch in _batches(parts, n_rows, int(np.count_nonzero(contrasts[0].direction))):
        own = contrasts[batch[0].rows[0] // n_rows]
        rows, column = np.unique(np.concatenate([b.rows for b in batch]), return_inverse=True)
        points, line = np.unique(np.concatenate([b.s for b in batch]), return_inverse=True)
        rows %= n_rows
        X = own.X if len(rows) == n_rows else own.X[rows]
        t = 1j * points[:, None] * own.direction
        if own.tilts is None:
            values = own.family.cgf(X, t[:, None]) + own.weights(t)[:, None]
        else:
            moved = [t + one for one in own.tilts]
            each = [own.family.cgf(X, m[:, None]) + own.weights(m)[:, None] for m in moved]
            heaviest, total = (v[rows] for v in own.at_tilts)
            values = _log_sum(np.stack(each), heaviest) - total
        i, j = 0, 0
        for b in batch:
            m, n = len(b.rows), len(b.s)
            out[b.part][b.at] = values[line[j : j + n], column[i : i + m, None]]
            i, j = i + m, j + n
    return out


def _log_sum(each: Array, heaviest: Array) -> Array:
    """(K, n) log of the sum of the exponentials of M values (M, K, n), on the principal branch."""
    if len(each) == 1:
        return np.asarray(each[0])
    # of what is summed the first is 1 and the largest near s = 0: far from the logarithm's cut
    first = np.take_along_axis(each, heaviest[None, None], axis=0)[0]
    each -= first
    top = each.real.max(axis=0)
    return np.asarray(first + top + np.log(np.exp(each - top).sum(axis=0)))


class _Block(NamedTuple):
    """Some rows of a part."""

    part: int
    at: slice
    rows: Array  # (n,)
    s: Array  # (K,)


def _batches(parts: Sequence[Part], n_rows: int, n_classes: int) -> Iterator[list[_Block]]:
    """Blocks of one contrast that share a call."""
    batch: list[_Block] = []
    s, rows, asked = np.empty(0), np.empty(0, dtype=np.intp), 0  # of the batch
    for block in sorted(_blocks(parts, n_rows), key=lambda b: b.rows[0] // n_rows):
        asked += len(block.s) * len(block.rows)
        free = asked + _CALL // n_classes * len(batch)
        alike = batch and block.rows[0] // n_rows == rows[0] // n_rows
        if alike and max(len(s), len(block.s)) * max(len(rows), len(block.rows)) <= free:
            both = np.union1d(s, block.s), np.union1d(rows, block.rows)
            if len(both[0]) * len(both[1]) <= free:
                batch, (s, rows) = [*batch, block], both
                continue
        if batch:
            yield batch
        batch, s, rows = [block], block.s, block.rows
        asked = len(s) * len(rows)
    if batch:
        yield batch


def _blocks(parts: Sequence[Part], n_rows: int) -> Iterator[_Block]:
    """Blocks of rows of one contrast that fit the memory."""
    for k, (rows, s) in enumerate(parts):
        step = max(1, _CELLS // len(s))
        ends = np.searchsorted(rows, n_rows * np.arange(1, rows.max(initial=0) // n_rows + 2))
        for first, end in zip([0, *ends], ends, strict=False):
            for start in range(first, end, step):
                at = slice(start, min(start + step, end))
                yield _Block(k, at, rows[at], s)


def log_odds(
    model: ClassModel,
    X: Matrix,
    a: int,
    b: int,
    class_prior: Array | None = None,
    tilts: Sequence[int] = (),
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
    tilts : class codes
        The distribution after the row itself was seen, with one of these labels.

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
    direction = np.zeros(len(model.alpha))
    direction[a], direction[b] = 1.0, -1.0
    at = np.eye(len(model.alpha))[list(tilts)] if len(tilts) else None
    return Contrast(model.family, X, class_weights(model, class_prior), direction, at)


def densities(
    model: ClassModel,
    X: Matrix,
    classes: Array,
    class_prior: Array | None = None,
    label: int | None = None,
) -> "Densities":
    """The variables ``log g_c + log p(x | theta_c)``, g_c the Gamma variable behind a class weight.

    Where classes are independent given the data, so are these variables, and their softmax is the
    vector of class probabilities. With `label`, a position in `classes` or `OWN`, after the rows
    were seen as that.
    """
    contrasts, many = [], len(model.alpha) > MANY
    for k, c in enumerate(classes):
        family, at, place = model.family, slice(None), c
        if many:  # each by its own parameters, or the cost would be quadratic in C
            family = family.with_blocks([b.family.at(CLASS, [c]) for b in family.blocks()])
            at, place = slice(c, c + 1), 0
        alpha, unit = model.alpha[at], np.eye(len(model.alpha[at]))[place]
        known = None if class_prior is None else fixed_cgf(np.asarray(class_prior)[at])
        tilt = unit[None] if label in (k, OWN) else None
        contrasts.append(Contrast(family, X, known or gamma_cgf(alpha, place), unit, tilt))
    return Densities(contrasts)


@dataclass(frozen=True)
class Densities:
    """Of n rows in several classes: variable ``k n + i`` is row i in class k."""

    contrasts: Sequence[Contrast]

    def on_axis(self, parts: Sequence[Part]) -> list[Array]:
        """As that of one contrast."""
        return on_axis(self.contrasts, parts)


def responsibilities(
    model: ClassModel, X: Matrix, classes: Array, class_prior: Array | None = None
) -> Array:
    """(N, C) p(y = c | x, D) where only `classes` (C,) are possible."""
    weights = model.alpha if class_prior is None else np.asarray(class_prior)
    joint = model.family.log_predictive(X) + log_weights(weights)
    p: Array = np.exp(log_softmax(joint[:, classes]))
    return p


def seen(model: ClassModel, X: Matrix, c: int) -> tuple[ClassModel, Matrix]:
    """The posterior after the one row of X, of class c, and the row; both without missing cells."""
    if not model.family.fits_missing and has_nan(X):
        observed = np.flatnonzero(~np.isnan(X[0]) & ~model.family.ignored)
        if not len(observed):
            own = np.eye(len(model.alpha))[c]
            return replace(model, alpha=model.alpha + own), X
        model, X = replace(model, family=model.family.marginal(observed)), X[:, observed]
    return model.update(model.stats(X, np.array([c]), len(model.alpha))), X
