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
from typing import Self

import numpy as np

from bayesgen.numerics.special import Array
from bayesgen.predict.interval.contrast import Contrast, Cumulants
from bayesgen.predict.interval.tabulated import Table, find

_SMALL = 1e-9  # |phi| where the sum is cut
_EDGE = 1e-8  # probability beyond half a period
_CHUNK = 16
MAX_NODES = 2048
_CELLS = 1 << 19  # complex numbers of one temporary: 8 MiB


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
        """The distributions on a grid over one period, by one fast Fourier transform a row.

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


def invert(contrast: Contrast, k: Cumulants, rows: Array) -> list[Inverse]:
    """Invert the cgf of the given rows, in groups of equally many nodes.

    Parameters
    ----------
    contrast : Contrast
    k : Cumulants
        Of all rows of the contrast; they set the grid, not the result.
    rows : (n,) int
        Rows with a positive sd.

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
    step = np.pi / (reach * np.where(k.sd > 0, k.sd, k.unit))
    step = np.exp2(np.floor(2 * np.log2(step)) / 2)  # few different grids: see `Contrast.on_axis`
    todo = rows
    while todo.size:
        again = []
        for one in np.unique(step[todo]):
            same = todo[step[todo] == one]
            for part in _sum_until_small(contrast, k.mean, one, same):
                edge = _beyond_half_period(part)
                more = (edge > _EDGE) & (part.phi.shape[1] < MAX_NODES // 2)
                out.append(_with_error(part.part(np.flatnonzero(~more)), edge[~more]))
                again.append(part.rows[more])
        todo = np.concatenate(again)
        step[todo] /= 2
    return _joined(out)


def _sum_until_small(
    contrast: Contrast, mean: Array, step: float, rows: Array
) -> Iterator[Inverse]:
    """Nodes in chunks until phi is small, each row as far as it needs."""
    chunks: list[Array] = []
    size, n_nodes = _CHUNK, 0
    while rows.size:
        t = step * (np.arange(n_nodes, n_nodes + size) + 0.5)[:, None]
        values = np.concatenate(
            [contrast(part, 1j * t) - 1j * t * mean[part] for part in _slices(rows, size)], axis=1
        )
        phi = np.exp(values).T
        n_nodes += size
        chunks.append(phi)
        done = np.abs(phi[:, -4:]).max(axis=1) < _SMALL
        done |= n_nodes >= MAX_NODES
        if done.any():
            whole = np.concatenate([c[done] for c in chunks], axis=1)
            ended = rows[done]
            step_of = np.full(len(ended), step)
            yield Inverse(ended, mean[ended], step_of, whole, np.zeros(len(ended)))
            chunks, rows = [c[~done] for c in chunks], rows[~done]
        size = min(max(_CHUNK, n_nodes // 2), MAX_NODES - n_nodes)


def _slices(rows: Array, size: int) -> Iterator[Array]:
    block = max(1, _CELLS // size)
    for start in range(0, len(rows), block):
        yield rows[start : start + block]


def _beyond_half_period(part: Inverse) -> Array:
    """(n,) |F| at the left edge of the period."""
    half = np.arange(part.phi.shape[1]) + 0.5
    sign = 1.0 - 2.0 * (np.arange(len(half)) % 2)
    return np.abs(0.5 - (part.phi.real * sign) @ (1 / half) / np.pi)


def _with_error(part: Inverse, edge: Array) -> Inverse:
    """The edge plus what is cut: phi beyond the last node falls at least like a power of t."""
    n_nodes = part.phi.shape[1]
    size = np.abs(part.phi)
    last, middle = size[:, -4:].max(axis=1), size[:, n_nodes // 2 - 4 : n_nodes // 2].max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.log2(middle / last)
        cut = np.where(last > 0, last / (np.pi * np.maximum(power, 1e-3)), 0.0)
    return Inverse(part.rows, part.centre, part.step, part.phi, edge + cut)


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
