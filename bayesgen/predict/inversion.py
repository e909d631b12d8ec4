r"""Distribution function and quantiles by inversion of the characteristic function.

Gil-Pelaez (1951) on a midpoint grid, with phi centred at c:

.. math:: F(l) = \tfrac12 - \frac{\Delta}{\pi} \sum_k
          \text{Im}\,\frac{e^{-i t_k (l - c)} \varphi(t_k)}{t_k}, \qquad
          t_k = (k + \tfrac12) \Delta

The sum has two errors, and both are measured here. It is periodic: with period
:math:`2\pi/\Delta` around c, it is wrong by no more than the probability beyond half a period,
which is F at the left edge itself. It is cut where :math:`|\varphi|` falls below 1e-9; a
characteristic function that decays like a power of t, when a density has a pole, may not get there.

Source: Gil-Pelaez (1951), Note on the inversion theorem; Davies (1973), Numerical inversion of a
characteristic function, for the grid and its error.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, log_expit

from bayesgen.families.names import CLASS
from bayesgen.numerics.rows import Matrix, has_nan
from bayesgen.numerics.special import Array, log_gamma_difference, log_softmax
from bayesgen.posterior.model import ClassModel, log_weights

# ------------------------------------------------------------------------------------------------
# Real variables of a posterior of which the cumulant generating function (cgf) is known.
#
# A *contrast* is a linear combination of the log joint densities, :math:`w \cdot a`. Its cgf lies
# on a line through the joint cgf K of a model:
#
# .. math:: K_w(s) = K(t_0 + s w) - K(t_0) = \log E\, e^{s\, w \cdot a}, \quad
#           a_c = \log p(c, x | \theta)
#
# :math:`w = e_a - e_b` gives the log-odds of two classes. :math:`t_0 = e_c` tilts: expectations
# are then under the posterior that has also seen the row as one of class c. The posterior that has
# seen the row without its label is the mixture of these, with weights p(y = c | x, D) in the ratio
# of :math:`e^{K(e_c)}`, so that
#
# .. math:: \log E[e^{s\, w \cdot a} \mid D, x]
#           = \log \sum_c e^{K(e_c + s w)} - \log \sum_c e^{K(e_c)}.
#
# Everything is read off the imaginary axis, where every cgf exists: no family has to say how far
# its cgf reaches, and a user's own family needs nothing but ``cgf``.

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

_CALL = 2048  # densities of one class that take as long as one call of a cgf, roughly
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
    >>> from bayesgen.predict.inversion import cumulants
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


# ------------------------------------------------------------------------------------------------
# Cumulants of contrasts: coefficients of a polynomial through the cgf at points of the imaginary
# axis. They set the grid of an inversion, and the shape of a density where five are enough.

_NODES = 8
_DROP = 0.125  # -Re K at the outermost node: half a standard deviation, for a normal variable
_START = 2.0**-4  # first scale: -Re K tells the variance where it is above _NOISE and below 1
_REACH = 2.0**20  # of the search for the scale
_NOISE = 1e-11  # of Re K, a sum over the features
TINY = 2.0**-200  # of a step along the imaginary axis: Im K(ih)/h is K'(0) to the last digit


def _taylor(n_nodes: int, degree: int) -> tuple[Array, Array]:
    """Chebyshev nodes x on (0, 1], and the least-squares map to coefficients of powers of x^2.

    K(ix) is even in its real and odd in its imaginary part, so these are 2 n nodes on [-1, 1].
    """
    x = np.cos((2 * np.arange(1, n_nodes + 1) - 1) * np.pi / (4 * n_nodes))
    return x, np.linalg.pinv(np.vander(x * x, degree + 1, increasing=True))


_X, _EXACT = _taylor(_NODES, _NODES - 1)
_, _PILOT = _taylor(_NODES, _NODES - 2)


class Cumulants(NamedTuple):
    """Of n variables, (n,) each.

    One whose cgf does not vary has sd 0; one that varies without ever spreading (a near atom) has
    infinite `error`.
    """

    mean: Array
    sd: Array
    skewness: Array
    kurtosis: Array  # excess
    fifth: Array  # fifth cumulant over sd^5
    error: Array  # bound on the error of skewness and kurtosis
    unit: Array  # a power of 2 near sd, shared by many variables


def cumulants(contrast: Contrast) -> Cumulants:
    """Mean, standard deviation, skewness, excess kurtosis and fifth cumulant of each variable."""
    h, values, spread, mean = _at_nodes(contrast)
    odd, even = values.imag / _X, values.real / _X**2

    def moments(weights: Array) -> tuple[Array, ...]:
        # of the variable times h, x = u/h: Im K/x = k1 - k3 x^2/6 + k5 x^4/120 - ...,
        # Re K/x^2 = -k2/2 + k4 x^2/24 - ...
        c, d = odd @ weights[:3].T, even @ weights[:2].T
        k2 = np.maximum(-2 * d[:, 0], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            g = -6 * c[:, 1] / k2**1.5, 24 * d[:, 1] / k2**2, 120 * c[:, 2] / k2**2.5
            return np.sqrt(k2) / h, *g

    sd, skewness, kurtosis, fifth = moments(_EXACT)
    _, pilot3, pilot4, _ = moments(_PILOT)
    with np.errstate(invalid="ignore"):
        error = np.maximum(np.abs(pilot3 - skewness), np.abs(pilot4 - kurtosis))
    constant = spread == 0
    error = np.where(constant, 0.0, np.where(np.isfinite(error) & (spread > 0), error, np.inf))
    return Cumulants(
        mean,
        np.where(constant, 0.0, sd),
        np.where(constant, 0.0, skewness),
        np.where(constant, 0.0, kurtosis),
        np.where(constant, 0.0, fifth),
        error,
        0.5 / h,
    )


def _at_nodes(contrast: Contrast) -> tuple[Array, Array, Array, Array]:
    """Powers of 2 h (n,) where |phi| is near exp(-1/8), and the cgf at ``i h x`` (n, K).

    And 1, or 0 (constant), or -1 (near atom), (n,); and the mean.
    """
    n = contrast.X.shape[0]
    todo, h = np.arange(n), np.full(n, _START)
    values = np.empty((n, _NODES), dtype=np.complex128)
    first = contrast.scaled(todo, h, np.array([1.0, TINY]))
    drop, mean = _finite_drop(contrast, todo, h, first), first[:, 1].imag / (h * TINY)
    for attempt in range(40):
        with np.errstate(divide="ignore"):
            factor = np.sqrt(_DROP / np.maximum(drop[todo], _NOISE))
        # |phi| of a wide variable falls so slowly that it does not tell how wide
        step = np.clip(np.rint(np.log2(factor)), -5, 8)
        step = np.where(step == -5, -5 * (1 + attempt // 4), step)
        if attempt:
            step = np.where(step == 0, np.sign(factor - 1), step)
        h[todo] = np.minimum(h[todo] * np.exp2(step), _REACH)
        values[todo] = contrast.scaled(todo, h[todo], _X)
        drop[todo] = _finite_drop(contrast, todo, h, values[todo])
        todo = todo[((drop[todo] < _DROP / 4) & (h[todo] < _REACH)) | (drop[todo] > 2 * _DROP)]
        if not todo.size:
            break
    found = drop >= _DROP / 4
    flat = np.flatnonzero(~found & (h != 1))
    if flat.size:  # no scale is its own
        h[flat] = 1.0
        values[flat] = contrast.scaled(flat, h[flat], _X)
    return h, values, np.where(found, 1, np.where(drop <= 1e-9, 0, -1)), mean


def _finite_drop(contrast: Contrast, rows: Array, h: Array, values: Array) -> Array:
    """(m,) -Re K at the first node."""
    drop = -values[:, 0].real
    bad = np.flatnonzero(~np.isfinite(drop))
    if bad.size:
        row = rows[bad[0]]
        raise ValueError(
            f"the cgf of {type(contrast.family).__name__} is not finite on the imaginary axis "
            f"(row {row}, s = {h[row]:g}i)"
        )
    return np.asarray(drop)


# ---------------------------------------------------------------------------------- inversion

_SMALL = 1e-9  # |phi| where the sum is cut
_EDGE = 1e-8  # probability beyond half a period
_SIZES = np.array([16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048])
MAX_NODES = int(_SIZES[-1])


@dataclass(frozen=True)
class Table:
    """n distribution functions on G equidistant points each: look-up, row by row.

    Between grid points F is the cubic with the right values and slopes (Hermite). Where one look-up
    is not enough, `Inverse.quantile` sums the series itself.

    Parameters
    ----------
    start, spacing : (n,)
        Left end and distance of the grid points.
    cdf : (n, G), non-decreasing from about 0 to about 1
    pdf : (n, G)
    """

    start: Array
    spacing: Array
    cdf: Array
    pdf: Array

    @property
    def grid(self) -> Array:
        """(n, G) points."""
        return self.start[:, None] + self.spacing[:, None] * np.arange(self.cdf.shape[1])

    def part(self, rows: slice | Array) -> Self:
        """Some of the n distributions."""
        return type(self)(self.start[rows], self.spacing[rows], self.cdf[rows], self.pdf[rows])

    def cdf_and_pdf(self, l: Array) -> tuple[Array, Array]:
        """(n, Q) each at the points l (n, Q); 0 or 1 outside the grid."""
        size = self.cdf.shape[1]
        place = (l - self.start[:, None]) / self.spacing[:, None]
        place = np.clip(place, 0.0, size - 1.0)
        j = np.minimum(place.astype(np.intp), size - 2)
        f0, a, b, c = self._cubic(j)
        s = place - j
        slope = (a + s * (2 * b + 3 * s * c)) / self.spacing[:, None]
        return f0 + s * (a + s * (b + s * c)), slope

    def quantile(self, p: Array) -> Array:
        """(n, Q) quantiles at p, (Q,) or (n, Q); the ends of the grid for p beyond them."""
        p = np.broadcast_to(p, (len(self.cdf), np.shape(p)[-1]))
        j = find(self.cdf, p)
        f0, a, b, c = self._cubic(j)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.clip(np.nan_to_num((p - f0) / (a + b + c)), 0.0, 1.0)
            for _ in range(3):
                miss = f0 + s * (a + s * (b + s * c)) - p
                step = s - miss / (a + s * (2 * b + 3 * s * c))
                s = np.where((step >= 0) & (step <= 1), step, s)
        return self.start[:, None] + self.spacing[:, None] * (j + s)

    def _cubic(self, j: Array) -> tuple[Array, ...]:
        """Coefficients of 1, s, s^2, s^3 in the cells j (n, Q)."""
        size = self.cdf.shape[1]
        at = j + size * np.arange(len(j))[:, None]
        cdf, pdf = self.cdf.ravel(), self.pdf.ravel()
        f0, rise = cdf[at], cdf[at + 1] - cdf[at]
        d0, d1 = pdf[at] * self.spacing[:, None], pdf[at + 1] * self.spacing[:, None]
        return f0, d0, 3 * rise - 2 * d0 - d1, d0 + d1 - 2 * rise


def find(cdf: Array, p: Array) -> Array:
    """(n, Q) cells j of each row with cdf[j] <= p <= cdf[j + 1], for non-decreasing cdf (n, G)."""
    n, size = cdf.shape
    offset = 2.0 * np.arange(n)[:, None]  # rows one after the other: one sorted array
    j = np.searchsorted((cdf + offset).ravel(), (p + offset).ravel(), side="right") - 1
    return np.clip(j.reshape(p.shape) - size * np.arange(n)[:, None], 0, size - 2)


@dataclass(frozen=True)
class Inverse:
    """Distributions of n rows with K nodes each.

    Parameters
    ----------
    rows : (n,) int
        Their positions.
    centre, step : (n,)
        c and Delta.
    phi : (n, K) complex
        Centred characteristic function at (k + 1/2) Delta.
    error : (n,)
        Bound on the error of `cdf`.
    """

    rows: Array
    centre: Array
    step: Array
    phi: Array
    error: Array

    @property
    def half_period(self) -> Array:
        """(n,) the grid of `table` reaches this far from the centre."""
        return np.pi / self.step

    def part(self, rows: slice | Array) -> Self:
        """Some of the n rows."""
        return type(self)(*(getattr(self, f)[rows] for f in self.__dataclass_fields__))

    def blocks(self, columns: int) -> Iterator[tuple[slice, Self]]:
        """Blocks of rows for which an array (n, columns) is small."""
        size = max(1, _CELLS // columns)
        for start in range(0, len(self.rows), size):
            block = slice(start, start + size)
            yield block, self.part(block)

    # -- exact sums --------------------------------------------------------------------------

    def cdf_and_pdf(self, l: Array) -> tuple[Array, Array]:
        """(n, Q) each, at the points l (n, Q); 0 or 1 beyond half a period from the centre."""
        n_nodes = self.phi.shape[1]
        half = np.arange(n_nodes) + 0.5
        cdf, pdf = np.empty(l.shape), np.empty(l.shape)
        for block, own in self.blocks(n_nodes * l.shape[1]):
            angle = -own.step[:, None] * (l[block] - own.centre[:, None])
            wave = np.exp(1j * angle[..., None] * half) * own.phi[:, None, :]
            cdf[block] = 0.5 - (wave.imag @ (1 / half)) / np.pi
            pdf[block] = wave.real.sum(axis=-1) * own.step[:, None] / np.pi
        distance = l - self.centre[:, None]
        beyond = np.abs(distance) > self.half_period[:, None]
        return np.where(beyond, distance > 0, cdf), np.where(beyond, 0.0, pdf)

    def pilot(self, p: Array) -> Array:
        """(n, Q) quantiles at p (n, Q) from one table: near those of `quantile`, at less cost."""
        return self._table.quantile(p)

    @cached_property
    def _table(self) -> Table:
        return self.table()

    def quantile(self, p: Array) -> Array:
        """(n, Q) quantiles at p, (Q,) or (n, Q): Newton's method inside one cell of the table."""
        p = np.broadcast_to(p, (len(self.rows), np.shape(p)[-1]))
        out = np.empty(p.shape)
        for block, own in self.blocks(4 * self.phi.shape[1]):
            table = own.table(fine=2)
            low = table.start[:, None] + find(table.cdf, p[block]) * table.spacing[:, None]
            high = low + table.spacing[:, None]
            l = table.quantile(p[block])
            for _ in range(8):
                value, slope = own.cdf_and_pdf(l)
                miss = value - p[block]
                low, high = np.where(miss < 0, l, low), np.where(miss > 0, l, high)
                with np.errstate(divide="ignore", invalid="ignore"):
                    step = l - miss / slope
                inside = (step >= low) & (step <= high)
                l = np.where(miss == 0, l, np.where(inside, step, (low + high) / 2))
                if np.abs(miss).max(initial=0.0) < 1e-10:
                    break
            out[block] = l
        return out

    # -- on a grid ---------------------------------------------------------------------------

    def table(self, fine: int = 8) -> Table:
        """The distributions on a grid over one period, by one fast Fourier transform per row.

        The grid has at least `fine` points for each wave of the last node, and is a power of 2.
        """
        n_nodes = self.phi.shape[1]
        size = 1 << (fine * n_nodes - 1).bit_length()
        half = np.arange(n_nodes) + 0.5
        # l - c = -pi/Delta + 2 pi j/(G Delta): the phase is (k + 1/2)(pi - 2 pi j/G)
        phi = self.phi * np.exp(1j * np.pi * half)
        turn = np.exp(-1j * np.pi * np.arange(size) / size)
        cdf = 0.5 - (turn * np.fft.fft(phi / half, size, axis=1)).imag / np.pi
        pdf = (turn * np.fft.fft(phi, size, axis=1)).real * self.step[:, None] / np.pi
        cdf = np.clip(np.maximum.accumulate(cdf, axis=1), 0.0, 1.0)
        spacing = 2 * self.half_period / size
        return Table(self.centre - self.half_period, spacing, cdf, np.maximum(pdf, 0.0))


def invert(contrast: Contrast | Densities, k: Cumulants, rows: Array) -> list[Inverse]:
    """Invert the cgf of the given rows, in groups of equally many nodes.

    Parameters
    ----------
    contrast : Contrast, or several as `Densities`
    k : Cumulants
        Of all rows of the contrast; they set the grid, not the result.
    rows : (n,) int
        Rows with a positive sd, ascending.

    Returns
    -------
    list of Inverse
        Together they cover `rows`. Rows whose sum does not converge within 2048 nodes are there,
        with the error that is left.
    """
    out: list[Inverse] = []
    with np.errstate(over="ignore", invalid="ignore"):
        reach = 8 + 4 * np.abs(k.skewness) ** 1.5 + np.abs(k.kurtosis)
    reach = np.where(np.isfinite(k.error), np.clip(reach, 8.0, 64.0), 32.0)
    sd = np.where(k.sd > 0, k.sd, k.unit)
    step = np.exp2(np.floor(2 * np.log2(np.pi / (reach * sd))) / 2)  # few different grids
    while rows.size:
        again = [rows[:0]]
        for own, phi in _until_small(contrast, k, list(_sums(k, step, sd, rows))):
            edge = _beyond_half_period(phi)
            more = (edge > _EDGE) & (phi.shape[1] < MAX_NODES // 2)
            part = Inverse(own, k.mean[own], step[own], phi, edge + _cut(phi))
            out.append(part.part(~more))
            again.append(own[more])
        rows = np.sort(np.concatenate(again))
        step[rows] /= 2
    return _joined(out)


class _Sum(NamedTuple):
    """Rows of one step that have come equally far."""

    rows: Array
    step: float
    last: int  # index in _SIZES of the number of nodes to come to
    first: Array  # (n,) index of the number at which a sum may end
    phi: Array  # (n, K)


def _until_small(
    contrast: Contrast | Densities, k: Cumulants, going: list[_Sum]
) -> list[tuple[Array, Array]]:
    """Rows (n,), and phi (n, K) at as many nodes as they need."""
    out = []
    while going:
        points = [one.step * (np.arange(one.phi.shape[1], _SIZES[one.last]) + 0.5) for one in going]
        found = contrast.on_axis([(one.rows, s) for one, s in zip(going, points, strict=True)])
        sums, going = zip(going, points, found, strict=True), []
        for (rows, step, last, first, phi), s, values in sums:
            values -= 1j * s * k.mean[rows][:, None]
            phi = np.concatenate([phi, np.exp(values)], axis=1)
            for index in range(first.min(), last + 1):
                size = _SIZES[index]
                small = np.abs(phi[:, size - 4 : size]).max(axis=1) < _SMALL
                done = (first <= index) & (small | (size == MAX_NODES))
                if done.any():
                    out.append((rows[done], phi[done, :size]))
                    rows, first, phi = rows[~done], first[~done], phi[~done]
            if len(rows):
                upto = min(last + 2, len(_SIZES) - 1)
                going.append(_Sum(rows, step, upto, np.full(len(rows), last + 1), phi))
    return out


def _sums(k: Cumulants, step: Array, sd: Array, rows: Array) -> Iterator[_Sum]:
    r"""Sums to begin, by step and number of nodes: as many as phi needs to become small.

    For one with the variance and kurtosis of the row that is where
    :math:`-\text{Re} K = (\sqrt{1 + \beta \sigma^2 t^2} - 1)/\beta`, beta = kurtosis/3, is large
    enough. Most need less than a quarter more.
    """
    with np.errstate(invalid="ignore"):
        beta = np.clip(np.where(k.error[rows] < 1, k.kurtosis[rows] / 3, 0.0), 0.0, 1.0)
    level = -np.log(_SMALL)
    wanted = np.sqrt(level * (2 + beta * level)) / (step[rows] * sd[rows])
    first, last = (
        np.minimum(np.searchsorted(_SIZES, w), len(_SIZES) - 1) for w in (wanted, 1.25 * wanted)
    )
    keys, which = np.unique(np.stack([step[rows], last]), axis=1, return_inverse=True)
    for j, (one, upto) in enumerate(keys.T.tolist()):
        own = which.ravel() == j
        phi = np.empty((own.sum(), 0), dtype=np.complex128)
        yield _Sum(rows[own], one, int(upto), first[own], phi)


def _beyond_half_period(phi: Array) -> Array:
    """(n,) |F| at the left edge of the period."""
    half = np.arange(phi.shape[1]) + 0.5
    sign = 1.0 - 2.0 * (np.arange(len(half)) % 2)
    return np.abs(0.5 - (phi.real * sign) @ (1 / half) / np.pi)


def _cut(phi: Array) -> Array:
    """(n,) bound on what is cut: phi beyond the last node falls at least like a power of t."""
    n_nodes, size = phi.shape[1], np.abs(phi)
    last, middle = size[:, -4:].max(axis=1), size[:, n_nodes // 2 - 4 : n_nodes // 2].max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.log2(middle / last)
        return np.where(last > 0, last / (np.pi * np.maximum(power, 1e-3)), 0.0)


def _joined(parts: list[Inverse]) -> list[Inverse]:
    """Parts with about equally many nodes as one, of a power of 2: phi is 0 at what is added."""
    sizes: dict[int, list[Inverse]] = {}
    for part in parts:
        if len(part.rows):
            size = 1 << (part.phi.shape[1] - 1).bit_length()
            phi = np.pad(part.phi, ((0, 0), (0, size - part.phi.shape[1])))
            sizes.setdefault(size, []).append(replace(part, phi=phi))
    names = Inverse.__dataclass_fields__
    return [
        Inverse(*(np.concatenate([getattr(part, name) for part in same]) for name in names))
        for same in sizes.values()
    ]


# ------------------------------------------------------------------------------------------------
# Expectations of functions of a class probability, from the inverted law of its log-odds.

_WIDEST = 0.7  # spacing at which sums of a sigmoid are exact to 1e-12
_LARGEST = 4096
_STEP, _MOMENTS_REACH = 0.25, 48.0  # of sums against a derivative of a sigmoid


def entropy_of(l: Array) -> Array:
    """Entropy of a coin with log-odds l."""
    return -expit(l) * log_expit(l) - expit(-l) * log_expit(-l)


def expectations(part: Inverse) -> tuple[Array, Array, Array, Array]:
    r"""E rho, Var rho, E H(rho) and P(rho > 1/2) of the first class, (n,) each.

    Sums on equidistant points, whose error falls exponentially with the spacing: of density times
    function on the grid of the density, where that is fine enough for a sigmoid; else, where the
    distribution is wide, by parts: :math:`g(-\infty) + \int g'(l)\,(1 - F(l))\,dl`.

    Notes
    -----
    Integrals over the frequency are the same numbers (Parseval). They oscillate
    when the mean is far from 0; these do not.
    """
    size = np.max(2 * part.half_period, initial=0.0) / _WIDEST
    fine = max(8.0, size / part.phi.shape[1])
    if fine * part.phi.shape[1] <= _LARGEST:
        table = part.table(int(np.ceil(fine)))
        l, mass = table.grid, table.pdf * table.spacing[:, None]
        rho = expit(l)
        mean = np.clip((rho * mass).sum(axis=1), 0.0, 1.0)
        variance = (np.square(rho - mean[:, None]) * mass).sum(axis=1)
        entropy = (entropy_of(l) * mass).sum(axis=1)
    else:
        l = np.arange(-_MOMENTS_REACH, _MOMENTS_REACH + _STEP, _STEP)
        beyond = 1 - part.table().cdf_and_pdf(np.broadcast_to(l, (len(part.rows), len(l))))[0]
        slope = _STEP * expit(l) * expit(-l)
        mean = np.clip(beyond @ slope, 0.0, 1.0)
        variance = np.maximum(beyond @ (2 * expit(l) * slope) - mean**2, 0.0)
        entropy = np.maximum(beyond @ (-l * slope), 0.0)
    below, _ = part.cdf_and_pdf(np.zeros((len(part.rows), 1)))
    return mean, variance, entropy, np.clip(1 - below[:, 0], 0.0, 1.0)
