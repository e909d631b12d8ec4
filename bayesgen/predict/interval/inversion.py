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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from bayesgen.numerics.special import Array
from bayesgen.predict.interval.contrast import Contrast, Densities
from bayesgen.predict.interval.cumulants import Cumulants

_SMALL = 1e-9  # |phi| where the sum is cut
_EDGE = 1e-8  # probability beyond half a period
_SIZES = np.array([16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048])
MAX_NODES = int(_SIZES[-1])
_CELLS = 1 << 19  # complex numbers of one temporary: 8 MiB


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
    """Parts with equally many nodes as one."""
    sizes: dict[int, list[Inverse]] = {}
    for part in parts:
        if len(part.rows):
            sizes.setdefault(part.phi.shape[1], []).append(part)
    names = Inverse.__dataclass_fields__
    return [
        Inverse(*(np.concatenate([getattr(part, name) for part in same]) for name in names))
        for same in sizes.values()
    ]
