r"""The laws of log joint densities of classes that are independent given something.

Of each row and class a table of the distribution function, and values at quasi-random points, which
all rows have in common: by Cornish and Fisher's expansion from five cumulants, in closed form where
the family has them (`Joints.expanded`), or by inversion of the characteristic function
(`Joints.inverted`).

Classes that share variances are independent given these: location and scale then differ from point
to point, with the draws of the variances, and the shape is that at the mean draw.

Shapes: n rows, C classes, S points, G cells of a table.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from bayesgen.families.capabilities import DensityCumulants, DensityDraws, SharedVariances
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.shared.density_cumulants import log_gamma_derivatives
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel, log_weights
from bayesgen.predict.draws import QuasiGenerator
from bayesgen.predict.interval.contrast import OWN, Densities, densities
from bayesgen.predict.interval.cumulants import (
    Cumulants,
    cornish_fisher_applies,
    cumulants,
    expansion,
    of_difference,
    skewed,
    standardised,
)
from bayesgen.predict.interval.inversion import Table, invert

POINTS = {"expanded": 256, "shared": 1024, "auto": 1024, "exact": 4096}
_WORST = 1e-5  # error of an inverted margin that still counts as exact
_REACH, _CELLS = 6.0, 64  # of the table of an expansion: standard deviations, and cells
_BY_CLASS = "draws", "loc", "scale", "first", "size", "start", "spacing", "varies", "good"
_TRUSTED = 3.0  # normal quantiles beyond which an expansion goes on as a straight line


class Law(NamedTuple):
    """The log joint densities of n rows under one posterior, given what the classes share."""

    draws: Array  # (n, C, S)
    loc: Array  # (n, C, S or 1) of the variables that the tables are of
    scale: Array  # (n, C, S or 1)
    cells: Array  # (K, 4) cubics of distribution functions, cell by cell
    first: Array  # (n, C) where a table begins
    size: Array  # (n, C) its number of cells
    start: Array  # (n, C) its left end
    spacing: Array  # (n, C)
    varies: Array  # (n,) whether no variable is a constant, of which F is a step
    good: Array  # (n,) whether it also is as exact as it should be

    def part(self, rows: Array) -> "Law":
        """Some of the rows."""
        return Law(*(f if f is self.cells else f[rows] for f in self))


def under_all(flags: list[Array], weight: Array) -> Array:
    """(n,) rows with a flag (n,) under each of some labels whose weight (n, labels) is positive."""
    out: Array = ((weight == 0) | np.stack(flags, axis=1)).all(axis=1)
    return out


@dataclass(frozen=True)
class Points:
    """Quasi-random points, scrambled by `rng`, that all rows of a call have in common."""

    rng: np.random.Generator
    sets: dict[int, QuasiGenerator] = field(default_factory=dict)

    def __call__(self, n: int) -> QuasiGenerator:
        """The generator of n points, at its first coordinate."""
        if n not in self.sets:
            self.sets[n] = QuasiGenerator(self.rng, n)
        return self.sets[n].restarted()


def is_average(family: ConjugateFamily) -> bool:
    """Whether densities are averages over structures: cheap to draw, and slow to invert."""
    offer = family.capability
    quick = offer(SharedVariances) is not None or offer(DensityCumulants) is not None
    return not quick and offer(DensityDraws) is not None


@dataclass(frozen=True)
class Joints:
    """The laws of the log joint densities of some classes, of n rows that they can produce.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    X : (n, D)
    classes : (C,) codes
    class_prior : (all classes,), optional
        Fixed class weights that replace the fitted ones.
    points : Points
    compiled : bool
        Whether the work on all rows pays for compiled loops.
    """

    model: ClassModel
    X: Matrix
    classes: Array
    class_prior: Array | None
    points: "Points"
    compiled: bool = False

    shared: SharedVariances | None = field(init=False)
    closed: DensityCumulants | None = field(init=False)
    known: dict[Any, Any] = field(init=False, default_factory=dict)  # cumulants found before

    def __post_init__(self) -> None:
        """Ask the family what it knows of its densities."""
        offer, own = self.model.family.capability, vars(self)
        own["shared"], own["closed"] = offer(SharedVariances), offer(DensityCumulants)

    @cached_property
    def independent(self) -> Array:
        """(n,) whether the class densities of a row are independent: if their cgf is additive."""
        n, every = self.X.shape[0], len(self.model.alpha)
        if self.closed is not None:
            return np.ones(n, dtype=bool)
        codes = np.arange(every)
        t = 1j * 0.4 * (1 + codes / every) * (-1.0) ** codes
        # in halves, by the digits of their codes: any two classes are in different ones once
        one = (codes >> np.arange(max(1, (every - 1).bit_length()))[:, None]) & 1
        halves = np.concatenate([t[None], t * one, t * (1 - one)])
        joint, *parts = self.model.family.cgf(self.X, halves[:, None])
        apart = np.add(parts[: len(one)], parts[len(one) :])
        same = np.abs(joint - apart) <= 1e-8 * (1 + np.abs(joint))
        return np.broadcast_to(same.all(axis=0), n)

    # -- by expansions -----------------------------------------------------------------------

    def expanded(self, n_points: int, rows: slice | Array, label: int | None = None) -> Law | None:
        """Some rows by Cornish and Fisher's expansions; None if their classes share more.

        Given the row too where `label` is a position in `classes`, or `OWN`: each class as if the
        row were one of it.
        """
        if self.shared is not None:
            # the points of the variances come after those of the classes
            points = self.points(n_points)
            points.standard_normal((n_points, len(self.classes)))
            k, loc, scale = self._given_variances(points, n_points, rows, label)
        elif self.independent.all():
            k = Cumulants(*(f[rows] for f in self._cumulants(label)))
            loc, scale = k.mean[..., None], k.sd[..., None]
        else:
            return None
        law = self._of_expansions(n_points, k, loc, scale)
        varies = law.varies.all(axis=1)
        return law._replace(varies=varies, good=law.good.all(axis=1) & varies)

    def mixed(
        self, n_points: int, rows: slice | Array, heavy: Array, label: int | None = None
    ) -> Law:
        """Some rows of very many classes, which are independent: each by what it needs.

        Expansions where they are good; of the others inversion, if a class is `heavy` (C,), and a
        Gamma variable with its first three cumulants if it is not.
        """
        k = Cumulants(*(f[rows] for f in self._cumulants(label)))
        law = self._of_expansions(n_points, k, k.mean[..., None], k.sd[..., None], skewed)
        unknown = ~(k.error < np.inf)
        which = np.flatnonzero((~law.good & (heavy | unknown)).any(axis=0))
        law.good[:] = law.varies
        if len(which):
            law = _with_classes(law, self._inverted(n_points, rows, which, label), which)
        return law._replace(varies=law.varies.all(axis=1), good=law.good.all(axis=1))

    def _of_expansions(
        self, n_points: int, k: Cumulants, loc: Array, scale: Array, other: Any = None
    ) -> Law:
        """By expansions of `k`, or `other` where they are not good; varies and good are (n, C)."""
        normal = self.points(n_points).standard_normal((n_points, len(self.classes)))
        z, g = np.ascontiguousarray(normal.T), expansion(k.skewness, k.kurtosis, k.fifth)
        varies = k.sd > 0
        good = cornish_fisher_applies(k) & varies
        if other is not None:
            g = np.where(good[..., None], g, other(k.skewness))
        first = _CELLS * np.arange(k.mean.size).reshape(k.mean.shape)
        size, start, width = (
            np.full(k.mean.shape, v) for v in (_CELLS, -_REACH, 2 * _REACH / _CELLS)
        )
        cells = expansion_cells(g.reshape(-1, 5), self.compiled)
        draws = _draws(g, z, loc, scale, self.compiled)
        return Law(draws, loc, scale, cells, first, size, start, width, varies, good)

    def _cumulants(self, label: int | None) -> Cumulants:
        """(n, C) of log joint densities that are independent: plain, or given the label too."""
        if label in self.known:
            return self.known[label]
        if self.closed is None and label is None:
            found = self._densities(self.X, np.arange(len(self.classes)), None)
            each = [cumulants(c) for c in found.contrasts]
            out = Cumulants(*(np.stack(f, axis=1) for f in zip(*each, strict=True)))
        elif self.closed is None:  # the label changes nothing of the other classes
            which = np.arange(len(self.classes)) if label == OWN else np.array([label])
            own = [cumulants(c) for c in self._densities(self.X, which, label).contrasts]
            out = Cumulants(*(f.copy() for f in self._cumulants(None)))
            for k, column in enumerate(out):
                column[:, which] = np.stack([each[k] for each in own], axis=1)
        elif label == OWN:
            out = standardised(self._closed_form(1) + self._weight_cumulants(label)[:, None])
        else:
            k = self._closed_form(0) + self._weight_cumulants(label)[:, None]
            if label is not None:
                k[..., label] += (self._closed_form(1) - self._closed_form(0))[..., label]
            out = standardised(k)
        return self.known.setdefault(label, out)

    @property
    def log_odds(self) -> Cumulants | None:
        """(n,) of the first of two classes against the second; None if not in closed form."""
        if self.closed is None:
            return None
        return of_difference(self._closed_form(0) + self._weight_cumulants(None)[:, None])

    def _closed_form(self, seen: int) -> Array:
        """(5, n, C) as in `DensityCumulants`."""
        own: Any = self.closed
        if ("seen", seen) not in self.known:
            self.known["seen", seen] = own.density_cumulants(self.X, seen)[..., self.classes]
        return np.asarray(self.known["seen", seen])

    def _weight_cumulants(self, label: int | None) -> Array:
        """(5, C) of the log class weights."""
        if self.class_prior is not None:
            out = np.zeros((5, len(self.classes)))
            out[0] = log_weights(np.asarray(self.class_prior, dtype=np.float64)[self.classes])
            return out
        seen = np.full(len(self.classes), float(label == OWN))
        if label is not None:
            seen[label] = 1.0
        return log_gamma_derivatives(self.model.alpha[self.classes] + seen)

    def _given_variances(
        self, points: Any, n_points: int, rows: slice | Array, label: int | None
    ) -> tuple[Cumulants, Array, Array]:
        """Cumulants at the mean draw of the variances; location and scale at each draw."""
        own: Any = self.shared
        at = None if label is None else int(self.classes[label])
        u, kappa, d = own.distance_draws(points, self.X[rows], n_points, at)
        if len(self.classes) < u.shape[1]:
            u, kappa = u[:, self.classes], kappa[self.classes]
        weights, mean = self._weight_cumulants(label), u.mean(axis=2)
        r = np.arange(1, 6)[:, None, None]
        sign = np.array([-0.5, 0.5, -1.0, 3.0, -12.0])[:, None, None]  # (-1)^r (r - 1)!/2
        k = weights[:, None] + sign * (d[:, None] + r * kappa * mean) / kappa**r
        scale = u / kappa[:, None]
        scale += (weights[1] + d[:, None] / (2 * kappa**2))[..., None]
        loc = np.multiply(u, -0.5, out=u)
        loc += (weights[0] - d[:, None] / (2 * kappa))[..., None]
        return standardised(k), loc, np.sqrt(scale, out=scale)

    # -- by inversion ------------------------------------------------------------------------

    def inverted(
        self,
        n_points: int,
        rows: slice | Array,
        label: int | None = None,
    ) -> Law:
        """Some rows by inversion of the characteristic functions; `label` as in `expanded`."""
        key = ("inverted", n_points, rows.tobytes() if isinstance(rows, np.ndarray) else repr(rows))
        if key not in self.known:
            for old in [k for k in self.known if isinstance(k, tuple) and k[0] == "inverted"]:
                del self.known[old]  # of rows that are done with
            self.known[key] = self._inverted(n_points, rows, np.arange(len(self.classes)), None)
        law: Law = self.known[key]
        if label is not None:  # which changes nothing of the other classes
            which = np.arange(len(self.classes)) if label == OWN else np.array([label])
            law = _with_classes(law, self._inverted(n_points, rows, which, label), which)
        return law._replace(varies=law.varies.all(axis=1), good=law.good.all(axis=1))

    def _inverted(self, n_points: int, rows: slice | Array, which: Array, label: int | None) -> Law:
        """The law of `which` (C',) of the classes; whether they vary and are good (n, C')."""
        of_all = self._cumulants(label)
        k = Cumulants(*(f[rows][:, which].T.ravel() for f in of_all))  # class by class
        u = self.points(n_points).random((n_points, len(self.classes)))
        u = np.ascontiguousarray(u.T[which])
        order = np.argsort(u, axis=1)  # look-ups in order stay in the cache
        found = self._densities(self.X[rows], which, label)
        varies = (k.sd > 0) | (k.error == np.inf)
        n_classes, n = len(which), len(varies) // len(which)
        draws = np.repeat(k.mean[:, None], n_points, axis=1)
        good = varies.copy()  # F of a constant is a step
        first, size = np.zeros((2, len(good)), dtype=np.intp)
        start, spacing = np.zeros(len(good)), np.ones(len(good))
        tables: list[Table] = []
        length = 0
        for group in invert(found, k, np.flatnonzero(varies)):
            good[group.rows] = group.error <= _WORST
            for _, part in group.blocks(16 * group.phi.shape[1]):
                own, table = part.rows, part.table()
                at = order[own // n]  # rows of a class share their points
                found_at = table.quantile(np.take_along_axis(u[own // n], at, axis=1))
                draws[own[:, None], at] = found_at
                width = table.cdf.shape[1] - 1
                first[own] = np.arange(len(own)) * width + length
                size[own], start[own], spacing[own] = width, table.start, table.spacing
                tables.append(table)
                length += len(own) * width
        cells = [cubics(t.cdf, t.pdf * t.spacing[:, None]).reshape(-1, 4) for t in tables]
        fields = draws, first, np.maximum(size, 1), start, spacing, good
        draws, first, size, start, spacing, good = (
            np.ascontiguousarray(f.reshape(n_classes, n, *f.shape[1:]).swapaxes(0, 1))
            for f in fields
        )
        zero = np.zeros((n, n_classes, 1))
        joined = np.concatenate(cells) if cells else np.zeros((1, 4))
        return Law(draws, zero, zero + 1, joined, first, size, start, spacing, good, good)

    def _densities(self, X: Matrix, which: Array, label: int | None) -> Densities:
        """Of `which` of the classes."""
        here = label
        if label is not None and label != OWN:
            here = which.tolist().index(label) if label in which else None
        return densities(self.model, X, self.classes[which], self.class_prior, here)


def _with_classes(law: Law, own: Law, which: Array) -> Law:
    """The law with `own`, of the classes `which`, in their place."""

    def put(name: str, value: Array) -> Array:
        out: Array = getattr(law, name).copy()
        out[:, which] = value
        return out

    of_class = {name: getattr(own, name) for name in _BY_CLASS} | {
        "first": own.first + len(law.cells)
    }
    changed = {name: put(name, value) for name, value in of_class.items()}
    return law._replace(cells=np.concatenate([law.cells, own.cells]), **changed)


def _draws(g: Array, z: Array, loc: Array, scale: Array, compiled: bool) -> Array:
    """(n, C, S): normal points z (C, S) through the expansions g (n, C, 5), located and scaled."""
    if compiled:
        from bayesgen.numerics.kernels.mixtures import draw

        out = np.empty((len(g), *z.shape))
        draw(g, z, np.ascontiguousarray(loc), np.ascontiguousarray(scale), out)
        return out
    c0, c1, c2, c3, c4 = np.moveaxis(g, -1, 0)[..., None]
    return np.asarray(loc + scale * (c0 + z * (c1 + z * (c2 + z * (c3 + z * c4)))))


def cubics(f: Array, d: Array) -> Array:
    """(..., G - 1, 4) cubics with the values f and the slopes d (..., G) at 0, 1, 2, ..."""
    rise = np.diff(f)
    left, right = d[..., :-1], d[..., 1:]
    terms = f[..., :-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise
    return np.stack(terms, axis=-1)


def expansion_cells(g: Array, compiled: bool) -> Array:
    """(m G, 4) cubics of the distribution functions of expansions g (m, 5), one after another."""
    spacing = 2 * _REACH / _CELLS
    if compiled:
        from bayesgen.numerics.kernels import mixtures

        out = np.empty((len(g), _CELLS, 4))
        mixtures.expansion_cells(g, -_REACH, spacing, _TRUSTED, out)
        return out.reshape(-1, 4)
    w = -_REACH + spacing * np.arange(_CELLS + 1)
    c0, c1, c2, c3, c4 = g.T[..., None]
    x = np.broadcast_to(w, (len(g), len(w)))
    for _ in range(5):
        y = np.clip(x, -_TRUSTED, _TRUSTED)
        value = c0 + y * (c1 + y * (c2 + y * (c3 + y * c4)))
        slope = np.maximum(c1 + y * (2 * c2 + y * (3 * c3 + y * 4 * c4)), 0.1)
        x = x - (value + (x - y) * slope - w) / slope
    pdf = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) / slope
    return cubics(ndtr(x), pdf * spacing).reshape(-1, 4)
