r"""One class against all others: quasi-random points through the law of each class.

With :math:`a_c = \log g_c + \log p(x | \theta_c)`, g_c the independent Gamma variables behind
the class weights, of classes that are independent given the data, or given variances that they
share,

.. math:: P(\text{logit}\,\rho_c < l) = E\, F_c\Big(l + \log\sum_{d \ne c} e^{a_d}\Big).

The expectation is an average over scrambled Sobol points, which all rows have in common: one
coordinate for each class, taken through the quantile function of its a_c. The integrand is smooth,
so a few hundred points do what 10^5 draws would. F_c is a table of cubics.

The law of a class is Cornish and Fisher's expansion to third order where its cumulants are small
enough, and by inversion of its characteristic function where not. With z the normal quantile, He
Hermite's polynomials of z and :math:`\gamma_r = \kappa_{r+2}/\sigma^{r+2}`,

.. math:: w = z + \frac{\gamma_1}{6} He_2 + \frac{\gamma_2}{24} He_3
              - \frac{\gamma_1^2}{36} (2 He_3 + He_1) + \frac{\gamma_3}{120} He_4
              - \frac{\gamma_1 \gamma_2}{24} (He_4 + He_2)
              + \frac{\gamma_1^3}{324} (12 He_4 + 19 He_2)

Inverting every class takes longer than draws of theta where rows are many and have many columns:
of ten Normal columns the cgf alone takes 20 us per class and row, as much as three classes may
take in all.

Given shared variances, location and scale of a class differ from point to point, and its shape is
that at the mean draw. Given the row too, the distribution is a mixture over the labels that the row
may have: each component is the same of a posterior that has seen the row with that label.

Where no law of the classes is known, all is by draws (`by_draws`).

Shapes: n rows, C classes, S points, G cells of a table, M components of a mixture.

Source: Cornish and Fisher (1938), Moments and cumulants in the specification of distributions;
Abramowitz and Stegun (1964), 26.2.49; Wilson and Hilferty (1931), The distribution of chi-square.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logit, ndtr, ndtri

from bayesgen.families.capabilities import DensityCumulants, SharedVariances
from bayesgen.families.shared.densities import log_gamma_derivatives
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array, log_odds_against_rest, log_sum_exp, log_sum_of_others
from bayesgen.posterior.model import ClassModel, log_weights
from bayesgen.predict import inversion
from bayesgen.predict.draws import (
    REPLICATES,
    QuasiGenerator,
    Sample,
    block_rows,
    log_joint_draws,
    percentile_error,
    replicates,
)
from bayesgen.predict.inversion import LEAST, MANY, OWN, Contrast, Cumulants, Densities, seen
from bayesgen.predict.request import IntervalRequest

POINTS = {"auto": (256, 1024), "exact": (4096,)}  # the first where they are enough
MAX_CUMULANT = 0.4  # skewness and excess kurtosis with which an expansion is wrong by .0015
_WORST = 1e-5  # error of an inverted law that still counts as exact
_REACH, _CELLS = 6.0, 32  # of the table of an expansion: standard deviations, and cells
_BY_CLASS = "draws", "loc", "scale", "first", "size", "start", "spacing", "good"
_TRUSTED = 3.0  # normal quantiles beyond which an expansion goes on as a straight line


class Law(NamedTuple):
    """The log joint densities of n rows under one posterior, given what the classes share."""

    draws: Array  # (n, C, S)
    loc: Array  # (n, C, S or 1) of the standardised variables that the tables are of
    scale: Array  # (n, C, S or 1)
    cells: Array  # (K, 4) cubics of distribution functions, cell by cell
    first: Array  # (n, C) where a table begins
    size: Array  # (n, C) its number of cells
    start: Array  # (n, C) its left end
    spacing: Array  # (n, C)
    good: Array  # (n, C) whether it varies, and is known as exactly as it should be

    @property
    def inverted(self) -> Array:
        """(n,) whether one of the classes was inverted."""
        return np.asarray((self.size != _CELLS).any(axis=1))

    def part(self, rows: Array) -> "Law":
        """Some of the rows."""
        return Law(*(f if f is self.cells else f[rows] for f in self))


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

    def law(
        self,
        n_points: int,
        rows: slice | Array,
        label: int | None = None,
        exact: bool = False,
        heavy: Any = None,
        distances: Any = None,
    ) -> Law:
        """Some rows, given the row too where `label` is a position in `classes`, or `OWN`.

        `OWN`: each class as if the row were one of it.

        Parameters
        ----------
        exact : bool
            Invert every class.
        heavy : bool (n, C), optional
            Of very many classes: whether the law of a class has to be as exact as it should be.
            What is not is a Gamma variable with the first three cumulants.
        distances : as in `SharedVariances`, optional
            Where the variances were drawn before.
        """
        every = np.arange(len(self.classes))
        if self.shared is not None:
            u, kappa, d = distances or self._distances(n_points, rows, label)
            k, *place = self._given_variances(u, kappa, d, label)
            given = partial(self._densities_given, u, kappa, d, label)
            to_invert = np.zeros(k.sd.shape, dtype=bool) if heavy is None else heavy
            return self._of_cumulants(n_points, every, k, place, given, to_invert, heavy is None)

        def of_classes(which: Array, label: int | None) -> Law:
            k = Cumulants(*(f[rows][:, which] for f in self._cumulants(label)))
            given = partial(self._densities, self.X[rows], label)
            to_invert = np.ones(k.sd.shape, dtype=bool) if heavy is None else heavy[:, which]
            place = k.mean[..., None], k.sd[..., None]
            strict = heavy is None
            return self._of_cumulants(n_points, which, k, place, given, to_invert, strict, exact)

        key = n_points, rows.tobytes() if isinstance(rows, np.ndarray) else repr(rows)
        if self.known.get("rows") != key:
            self.known.update(rows=key, plain=of_classes(every, None))
        plain: Law = self.known["plain"]
        if label is None:
            return plain
        which = every if label == OWN else every[[label]]  # the others' stay what they are
        return _with_classes(plain, of_classes(which, label), which)

    def _of_cumulants(
        self,
        n_points: int,
        which: Array,
        k: Cumulants,
        place: Sequence[Array],
        given: Callable[[Array], Densities],
        to_invert: Array,
        strict: bool,
        exact: bool = False,
    ) -> Law:
        """The law of the classes `which`, of their cumulants, location and scale.

        By expansions, and by inversion where these are not good enough (none is if `exact`) and it
        is `to_invert` (n, C); what is left is not good if `strict`, or a Gamma variable.
        """
        shape = n_points, len(self.classes)
        z = self.points(n_points).standard_normal(shape).T[which]
        varies = (k.sd > 0) | (k.error > 0)
        good = varies & applies(k) & (not exact)
        g = expansion(*(np.where(good, f, 0.0) for f in (k.skewness, k.kurtosis, k.fifth)))
        if not strict:
            g = np.where(good[..., None], g, skewed(np.where(k.error < np.inf, k.skewness, 0.0)))
            to_invert = to_invert | (k.error == np.inf)
        inverted = varies & ~good & to_invert
        good |= varies & (not strict)
        w = polynomial(g, z)
        first = _CELLS * np.arange(good.size).reshape(good.shape)
        size, start, spacing = (
            np.full(good.shape, v) for v in (_CELLS, -_REACH, 2 * _REACH / _CELLS)
        )
        cells = [expansion_cells(g.reshape(-1, 5))]
        columns = np.flatnonzero(inverted.any(axis=0))
        if len(columns):
            u = self.points(n_points).random(shape).T[which]
            length, order = len(cells[0]), np.argsort(u, axis=1)  # look-ups that stay in the cache
            mean, sd = k.mean, np.where(k.sd > 0, k.sd, 1.0)
            by_class = Cumulants(*(f[:, columns].T.ravel() for f in k))
            rows = np.flatnonzero(inverted[:, columns].T)
            for group in inversion.invert(given(which[columns]), by_class, rows):
                for _, part in group.blocks(16 * group.phi.shape[1]):
                    table, (c, i) = part.table(), np.divmod(part.rows, len(good))
                    c = columns[c]
                    x = table.quantile(np.take_along_axis(u[c], order[c], axis=1))
                    x = (x - mean[i, c, None]) / sd[i, c, None]
                    w[i[:, None], c[:, None], order[c]] = x
                    width = table.cdf.shape[1] - 1
                    first[i, c], size[i, c] = length + width * np.arange(len(i)), width
                    start[i, c] = (table.start - mean[i, c]) / sd[i, c]
                    spacing[i, c] = table.spacing / sd[i, c]
                    good[i, c] = part.error <= _WORST
                    own = cubics(table.cdf, table.pdf * table.spacing[:, None])
                    cells.append(own.reshape(-1, 4))
                    length += width * len(i)
        loc, scale = place[0], np.where(inverted[..., None] & (place[1] == 0), 1.0, place[1])
        w *= scale
        w += loc
        return Law(w, loc, scale, np.concatenate(cells), first, size, start, spacing, good)

    def of_labels(
        self, law_of: Callable[..., Any], n_points: int, rows: Array, weight: Array
    ) -> tuple[list[Any], Array | None]:
        r"""What `Mixture.of_labels` asks for: the plain law and that given each class as the label.

        Of classes that share variances V the points are of one posterior for all labels, that of
        the likeliest label a of one row, and weighted (n, C, S): with u as in `SharedVariances`,

        .. math:: p(V \mid x, c) \propto p(V \mid x, a)\, e^{(s_a u_a - s_c u_c)/2}, \qquad
                  s_c = \kappa_c/(\kappa_c + 1)

        `law_of` is `law`. It is not good if the weights leave less than an eighth of the points.
        """
        if self.shared is None:
            return [law_of(n_points, rows, k) for k in (None, OWN)], None
        top = int(weight[0].argmax())
        u, kappa, d = self._distances(n_points, rows, top)
        kappa = kappa - np.eye(len(kappa))[top]
        share = (kappa / (kappa + 1))[:, None]
        u[:, top] /= share[top] ** 2
        ratio = share[top] * u[:, [top]] - share * u
        ratio = np.exp((ratio - ratio.max(axis=2, keepdims=True)) / 2)
        ratio /= ratio.mean(axis=2, keepdims=True)
        enough = np.einsum("nc,ncs->n", weight, ratio**2) < n_points * 8
        plain = law_of(n_points, rows, None, distances=(u, kappa, d))
        own = law_of(n_points, rows, OWN, distances=(u * share**2, kappa + 1, d))
        return [plain, own._replace(good=own.good & enough[:, None])], ratio

    def _cumulants(self, label: int | None) -> Cumulants:
        """(n, C) of log joint densities that are independent: plain, or given the label too."""
        if label in self.known:
            return self.known[label]
        if self.closed is None and label is None:
            found = self._densities(self.X, None, np.arange(len(self.classes)))
            each = [inversion.cumulants(c) for c in found.contrasts]
            out = Cumulants(*(np.stack(f, axis=1) for f in zip(*each, strict=True)))
        elif self.closed is None:  # the label changes nothing of the other classes
            which = np.arange(len(self.classes)) if label == OWN else np.array([label])
            own = [inversion.cumulants(c) for c in self._densities(self.X, label, which).contrasts]
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

    def _distances(
        self, n_points: int, rows: slice | Array, label: int | None
    ) -> tuple[Array, Array, Array]:
        """As in `SharedVariances`, of `classes`."""
        own: Any = self.shared
        points = self.points(n_points)
        points.standard_normal((n_points, len(self.classes)))  # those of the classes come first
        at = None if label is None else int(self.classes[label])
        u, kappa, d = own.distance_draws(points, self.X[rows], n_points, at)
        if not np.array_equal(self.classes, np.arange(u.shape[1])):
            u, kappa = u[:, self.classes], kappa[self.classes]
        return u, kappa, d

    def _given_variances(
        self, u: Array, kappa: Array, d: Array, label: int | None
    ) -> tuple[Cumulants, Array, Array]:
        """Cumulants at the mean draw of the variances; location and scale at each draw."""
        weights, mean = self._weight_cumulants(label), u.mean(axis=2)
        r = np.arange(1, 6)[:, None, None]
        sign = np.array([-0.5, 0.5, -1.0, 3.0, -12.0])[:, None, None]  # (-1)^r (r - 1)!/2
        k = weights[:, None] + sign * (d[:, None] + r * kappa * mean) / kappa**r
        scale = u / kappa[:, None]
        scale += (weights[1] + d[:, None] / (2 * kappa**2))[..., None]
        loc = -0.5 * u
        loc += (weights[0] - d[:, None] / (2 * kappa))[..., None]
        return standardised(k), loc, np.sqrt(scale, out=scale)

    def _densities(self, X: Matrix, label: int | None, which: Array) -> Densities:
        """Of `which` of the classes."""
        here = label
        if label is not None and label != OWN:
            here = which.tolist().index(label) if label in which else None
        return inversion.densities(self.model, X, self.classes[which], self.class_prior, here)

    def _densities_given(
        self, u: Array, kappa: Array, d: Array, label: int | None, which: Array
    ) -> Densities:
        """The same given the mean draw of the variances."""
        contrasts = []
        for c, code in zip(which, self.classes[which], strict=True):
            x = np.stack([u[:, c].mean(axis=1), d], axis=1)
            weights = inversion.gamma_cgf(self.model.alpha[[code]] + float(label in (c, OWN)), 0)
            if self.class_prior is not None:
                weights = inversion.fixed_cgf(np.asarray(self.class_prior)[[code]])
            contrasts.append(Contrast(_Distance(float(kappa[c])), x, weights, np.ones(1)))
        return Densities(contrasts)


@dataclass(frozen=True)
class _Distance:
    """-1/2 of a noncentral chi-squared variable over kappa, of rows (u, d): `SharedVariances`."""

    kappa: float

    def cgf(self, X: Matrix, t: Array) -> Array:
        """(..., n)."""
        s, (u, d) = t[..., 0], X.T
        q = 1 + s / self.kappa
        return np.asarray(-(d * np.log(q) + s * u / q) / 2)


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


def standardised(k: Array) -> Cumulants:
    """Of the first five cumulants themselves (5, ...), in closed form."""
    sd = np.sqrt(np.maximum(k[1], 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        g3, g4, g5 = (np.where(sd > 0, k[r - 1] / sd**r, 0.0) for r in (3, 4, 5))
    return Cumulants(k[0], sd, g3, g4, g5, np.zeros(sd.shape), np.where(sd > 0, sd, 1.0))


def expansion(g1: Array, g2: Array, g3: Array) -> Array:
    """(..., 5) coefficients of 1, z, .., z^4 in w, of skewness, kurtosis and fifth cumulant."""
    return np.stack(
        [
            -g1 / 6 + g3 / 40 - g1 * g2 / 12 + 17 * g1**3 / 324,
            1 - g2 / 8 + 5 * g1**2 / 36,
            g1 / 6 - g3 / 20 + 5 * g1 * g2 / 24 - 53 * g1**3 / 324,
            g2 / 24 - g1**2 / 18,
            g3 / 120 - g1 * g2 / 24 + g1**3 / 27,
        ],
        axis=-1,
    )


def skewed(g1: Array) -> Array:
    """(..., 5) as `expansion`, of a Gamma variable of this skewness (Wilson and Hilferty 1931).

    A cubic that increases everywhere and has the light tail on the right side: of any skewness.
    """
    a = 1 - g1**2 / 36
    first = -g1 / 6 + g1**3 / 216 - g1**5 / 23328
    return np.stack([first, a**2, a * g1 / 6, g1**2 / 108, 0 * g1], axis=-1)


def applies(k: Cumulants) -> Array:
    """Whether the percentiles of an expansion are right to .0015.

    That is so of log-odds of beta variables of every shape; without the third order they would be
    wrong by .0025, and by .006 with skewness to .6 and kurtosis to 1.
    """
    small = (np.abs(k.skewness) <= MAX_CUMULANT) & (np.abs(k.kurtosis) <= MAX_CUMULANT)
    return np.asarray(small & (k.error < 0.01))


def polynomial(g: Array, z: Array) -> Array:
    """(n, C, S): points z (C, S) through the expansions g (n, C, 5)."""
    c0, c1, c2, c3, c4 = np.moveaxis(g, -1, 0)[..., None]
    out = c4 * z
    for c in (c3, c2, c1):
        out += c
        out *= z
    out += c0
    return np.asarray(out)


def cubics(f: Array, d: Array) -> Array:
    """(..., G - 1, 4) cubics with the values f and the slopes d (..., G) at 0, 1, 2, ..."""
    rise = np.diff(f)
    left, right = d[..., :-1], d[..., 1:]
    terms = f[..., :-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise
    return np.stack(terms, axis=-1)


def expansion_cells(g: Array) -> Array:
    """(m G, 4) cubics of the distribution functions of expansions g (m, 5), one after another."""
    spacing = 2 * _REACH / _CELLS
    w = -_REACH + spacing * np.arange(_CELLS + 1)
    c0, c1, c2, c3, c4 = np.ascontiguousarray(g.T)[..., None]
    d1, d2, d3 = 2 * c2, 3 * c3, 4 * c4
    x: Array = w
    for _ in range(5):  # Newton's steps
        y = np.clip(x, -_TRUSTED, _TRUSTED)
        value = c0 + y * (c1 + y * (c2 + y * (c3 + y * c4)))
        slope = np.maximum(c1 + y * (d1 + y * (d2 + y * d3)), 0.1)
        x = y + (w - value) / slope
    pdf = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) / slope
    return cubics(ndtr(x), pdf * spacing).reshape(-1, 4)


# ------------------------------------------------------------------------------------------------
# Averages over the points.

# of percentiles at 256 points: 99 of 100 are within it, and all within twice of it
# (of LinearDiscriminant with 10 classes, 99 of 100 within .005)
ERROR_AGAINST_REST = 0.003
_GOLDEN = (np.sqrt(5.0) - 1) / 2
_BLOCKS = 8  # of consecutive points: their spread tells the error, and more than it


@dataclass(frozen=True)
class Mixture:
    """The distribution of n rows: M laws with weights (n, M, C), or (n, M, 1) of all classes."""

    weight: Array
    laws: Sequence[Law]
    compiled: bool = False

    @classmethod
    def of_labels(
        cls, weight: Array, laws: Sequence[Law], ratio: Array | None, compiled: bool
    ) -> Self:
        """The mixture over many labels of weights (n, C), in two components.

        `laws` are the plain one, and that of each class given that it is the label; a label changes
        the law of its class alone. Of a class c: it is the label itself, or another is, which is
        drawn for each point anew. `ratio` (n, C, S) weights the points under each label.
        """
        plain, own = laws
        n, _, n_points = plain.draws.shape
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
                rest.append(_log_sum_of_others(moved))
                continue
            moved[row, label, point] = -np.inf
            rest[0][row, label, point] = log_sum_exp(moved, axis=1)
        both = [(own, _log_sum_of_others(plain.draws)), (plain, rest[0])]
        if ratio is not None:
            given = np.repeat(ratio[row, label, point][:, None], weight.shape[1], axis=1)
            given[row, label, point] = ratio[row, other, point]
            both = [_resampled(*one, w) for one, w in zip(both, (ratio, given), strict=True)]
        out = cls(np.stack([weight, 1 - weight], axis=1), [law for law, _ in both], compiled)
        vars(out)["rest"] = [others for _, others in both]
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
        return [_log_sum_of_others(law.draws) for law in self.laws]

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

        base = np.cumsum([0, *(len(law.cells) for law in self.laws[:-1])])
        parts = [law._replace(first=law.first + b) for law, b in zip(self.laws, base, strict=True)]

        names = "first", "size", "start", "spacing", "draws", "loc", "scale"
        fields = [_of_all([getattr(part, name) for part in parts]) for name in names]
        n, n_parts, n_classes = self.weight.shape[0], len(parts), fields[0].shape[2]
        weight = np.ascontiguousarray(np.broadcast_to(self.weight, (n, n_parts, n_classes)))
        fields[4:5] = [weight, fields[4], _of_all(self.rest)]
        cells = parts[0].cells if len(parts) == 1 else np.concatenate([f.cells for f in parts])

        arrays = *fields, np.ascontiguousarray(p), logit(p), ndtri(p), error, l

        compiled(cells, *arrays)


def _resampled(law: Law, rest: Array, weight: Array) -> tuple[Law, Array]:
    """Points of each class in proportion to weights (n, C, S): equal ones change nothing."""
    n_points = weight.shape[2]
    upto = np.cumsum(weight, axis=2)
    upto *= n_points / upto[..., -1:]
    count: Any = np.diff(np.floor(upto + 0.5).astype(np.intp), axis=2, prepend=0).ravel()
    point = np.arange(n_points)
    at = np.repeat(np.broadcast_to(point, weight.shape).ravel(), count).reshape(weight.shape)

    def take(a: Array) -> Array:
        return np.take_along_axis(a, at, axis=2)

    moved = law._replace(draws=take(law.draws), loc=take(law.loc), scale=take(law.scale))
    return moved, take(rest)


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


def _log_sum_of_others(a: Array) -> Array:
    """(n, C, S) log of the sum of exp(a_d), d != c, of a (n, C, S)."""
    return np.moveaxis(log_sum_of_others(np.moveaxis(a, 1, 0)), 0, 1)


# ------------------------------------------------------------------------------------------------
# Intervals of class probabilities from quasi-random draws of the log joint densities.
#
# What is left where no law is known in closed form or by inversion.

_FEWEST = 32  # draws of one label in one replicate


def by_draws(
    model: ClassModel,
    X: Matrix,
    classes: Array,
    request: IntervalRequest,
    class_prior: Array | None,
    rng: Any,
    n_draws: int,
) -> tuple[Array, Array, Array]:
    """Lower and upper ends of the log-odds of `classes` (n, C), and their error (n,), row by row.

    An integer `rng` gives every call the same draws.
    """
    with_row = request.given == "training and row"
    low, high = np.empty((2, X.shape[0], len(classes)))
    error = np.full(X.shape[0], LEAST if with_row else 0.0)
    draws: Any = _given_row if with_row else _given_training
    for row, l, weight in draws(model, X, classes, class_prior, rng, n_draws):
        flat = None
        if weight is not None:
            flat = np.broadcast_to(weight[:, None], l.shape).reshape(len(classes), -1)
        sample = Sample(l.reshape(len(classes), -1), flat)
        low[row], high[row] = request.ends(len(classes), sample.quantile)
        error[row] += max(percentile_error(l, e[row], weight).max() for e in (low, high))
    return low, high, error


def _given_training(
    model: ClassModel, X: Matrix, classes: Array, class_prior: Array | None, rng: Any, n_draws: int
) -> Iterator[tuple[int, Array, None]]:
    """(row, draws of its log-odds (C, draw, replicate), no weights)."""
    size = block_rows(n_draws, len(model.alpha))
    for start in range(0, X.shape[0], size):
        x = X[start : start + size]
        a = np.stack(
            [
                log_joint_draws(model, x, g, n_draws // REPLICATES, class_prior).T[classes]
                for g in replicates(generator(rng), n_draws)
            ],
            axis=-1,
        )  # (C, n, draw, replicate)
        for i in range(a.shape[1]):  # one row fits the cache
            yield start + i, log_odds_against_rest(a[:, i]), None


def _given_row(
    model: ClassModel, X: Matrix, classes: Array, class_prior: Array | None, rng: Any, n_draws: int
) -> Iterator[tuple[int, Array, Array]]:
    """The same under the mixture over the labels that the row may have, draws of each; weights."""
    each = n_draws // REPLICATES
    p = inversion.responsibilities(model, X, classes, class_prior)
    for row in range(X.shape[0]):
        labels = np.flatnonzero(p[row] > least_weight(p[[row]])[0])
        parts, weights = [], []
        for k in labels:
            own, x = seen(model, X[[row]], int(classes[k]))
            size = max(_FEWEST, each >> round(-np.log2(p[row, k])))  # about its part of `each`
            a = [
                log_joint_draws(own, x, g, size, class_prior)[:, 0, classes].T
                for g in replicates(generator(rng), size * REPLICATES)
            ]
            parts.append(log_odds_against_rest(np.stack(a, axis=-1)))
            weights.append(np.full(size, p[row, k] / p[row, labels].sum() / size))
        yield row, np.concatenate(parts, axis=1), np.concatenate(weights)


def least_weight(p: Array, total: float = LEAST) -> Array:
    """(n, 1) of labels with probabilities p (n, C): lighter ones have less than `total` in all."""
    if p.shape[1] <= MANY:
        return np.full((len(p), 1), total / p.shape[1])
    ordered = np.sort(p, axis=1)
    first = np.minimum((ordered.cumsum(axis=1) < total).sum(axis=1), p.shape[1] - 1)
    return np.nextafter(ordered[np.arange(len(p)), first], 0.0)[:, None]
