r"""Real features without a shape: histograms with Dirichlet weights over bins.

With the bins :math:`B_{j0}, B_{j1}, \ldots` of column j, the same for all classes,

.. math:: p(x_j \mid y=c) = \theta_{cjk}\, h_{jk}(x_j), \quad x_j \in B_{jk}, \qquad
          \theta_{cj} \sim \text{Dirichlet}(\alpha_{cj}).

Between two edges h is uniform: one over the width. Beyond the outermost edges it is an exponential
density with the width of the next bin as its scale, so that a tail with the mass of that bin starts
at its height; with a single edge the scale is 1. Everything integrates to 1 over the reals. h is
common to the classes and leaves p(y | x) alone: that is the rule of `DirichletCategorical` on the
numbers of the bins.

Source: Gelman et al., Bayesian Data Analysis (3rd ed.), sections 3.4 and 23.1 (histograms with a
Dirichlet prior as the simplest density without a shape).
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np

from bayesgen.families.conjugate.dirichlet_categorical import CategoricalStats, DirichletCategorical
from bayesgen.families.contract import Stats, Theta
from bayesgen.families.errors import NotLinearError
from bayesgen.families.names import CLASS, DENSITY, EDGE, FEATURE, Method
from bayesgen.families.records import array
from bayesgen.families.shared.codes import count_codes, draw_codes
from bayesgen.families.shared.pymc_parts import observe_cells, sum_codes
from bayesgen.numerics.rows import Matrix, class_sums
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class HistogramStats(CategoricalStats):
    """Weighted counts of bins, and how far cells are beyond the outermost edges."""

    beyond: Array = array(CLASS, FEATURE)  # sums, in scales of the tails


@dataclass(frozen=True, eq=False)
class DirichletHistogram(DirichletCategorical):
    """Independent real features, each a histogram with a Dirichlet prior.

    Parameters
    ----------
    alpha : float or array broadcasting to (class, feature), or (class, feature, category), > 0
        Pseudo-count of each bin, in rows.
    n_categories, new
        Not to be given: bins cover the line.
    edges : array (feature, edge)
        Rising ends of the bins, at least one per feature; inf pads the rest. A value at an edge is
        in the bin above it. E edges make E + 1 bins, of which the first and the last are tails.

    Examples
    --------
    >>> import numpy as np
    >>> family = DirichletHistogram(edges=np.array([[0.0, 2.0]]))
    >>> X = np.array([[0.5], [1.0], [3.0]])
    >>> stats = family.stats(X, np.zeros(3, dtype=int), n_classes=1)
    >>> posterior = family.resolve(stats).update(stats)
    >>> np.exp(posterior.log_predictive(np.array([[1.5], [2.0], [4.0]]))).round(3)
    array([[0.25 ],
           [0.167],
           [0.061]])
    """

    describes: ClassVar[str] = DENSITY
    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "histogram"
    sparse: ClassVar[bool] = False
    statistics: ClassVar[type[Stats]] = HistogramStats

    edges: Any = field(kw_only=True, metadata={"dims": (FEATURE, EDGE), "padded": True})

    @property
    def n_edges(self) -> Array:
        """(D,) edges of each feature."""
        edges = np.asarray(self.edges, dtype=np.float64)
        return np.isfinite(edges).sum(axis=1)

    def codes(self, X: Matrix) -> Array:
        """(N, D) float64 numbers of bins; NaN where a cell is missing."""
        out = np.array(X, dtype=np.float64)
        missing = np.isnan(out)
        for j, edges in enumerate(self.edges):
            out[:, j] = np.searchsorted(edges, out[:, j], side="right")
        out[missing] = np.nan
        return out

    def beyond(self, X: Matrix) -> Array:
        """(N, D) distances from the outermost edges, in scales of the tails; 0 between them."""
        x = np.asarray(X, dtype=np.float64)
        column, last = np.arange(x.shape[1]), self.n_edges
        low, high = np.exp(-self.log_scales[column, [0 * last, last]])
        top = self.edges[column, last - 1]
        out = np.maximum((self.edges[:, 0] - x) * low, 0.0) + np.maximum((x - top) * high, 0.0)
        return np.where(np.isnan(x), 0.0, out)

    @cached_property
    def log_scales(self) -> Array:
        """(D, K) log width of each bin, of a tail that of its neighbour."""
        edges = np.asarray(self.edges, dtype=np.float64)
        out = np.zeros((edges.shape[0], edges.shape[1] + 1))
        for j, last in enumerate(self.n_edges):
            if last > 1:
                out[j, : last + 1] = np.pad(np.log(np.diff(edges[j, :last])), 1, mode="edge")
        return out

    def _log_within(self, X: Matrix, codes: Array) -> Array:
        """(N,) log density of each row within its bins; of missing cells 0."""
        known = ~np.isnan(codes)
        at = np.where(known, codes, 0).astype(np.int64)
        scales = np.where(known, self.log_scales[np.arange(at.shape[1]), at], 0.0)
        total: Array = -(scales + self.beyond(X)).sum(axis=1)
        return total

    # -- contract ----------------------------------------------------------------------------

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) sum of log masses of the bins and of log densities within them."""
        codes = self.codes(X)
        return super().log_likelihood(codes, theta) + self._log_within(X, codes)[:, None]

    def discriminant(self, X: Matrix, theta: Theta) -> Array:
        """Without the densities within the bins, which the classes share."""
        return super().log_likelihood(self.codes(X), theta)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) reals: a bin, then a place in it."""
        code = draw_codes(rng, theta["theta"], y)
        column, last = np.arange(code.shape[1]), self.n_edges
        scale = np.exp(self.log_scales)[column, code]
        low, high = code == 0, code == last
        place = np.where(low | high, rng.exponential(size=code.shape), rng.random(code.shape))
        start = self.edges[column, np.maximum(code - 1, 0)]
        return start + np.where(low, -scale, scale) * place

    def to_pymc(
        self, *, prefix: str = "", X: Matrix | None = None, y: Any = None, stats: Any = None
    ) -> dict[str, Any]:
        """Dirichlet priors over bins; rows with their densities, or the counts of bins."""
        if X is None:
            return super().to_pymc(prefix=prefix, stats=stats)
        out = super().to_pymc(prefix=prefix)
        observe_cells(prefix, X, self._cells, out["theta"][y], signature="(k)->()")
        return out

    def _cells(self, p: Any, size: Any = None) -> Any:
        """PyMC distribution of cells with masses `p` (..., D, K) over the bins of their columns."""
        import pymc as pm
        import pytensor.tensor as pt

        def log_p(value: Any, p: Any, edges: Any, log_scale: Any, last: Any) -> Any:
            code = pt.ge(value[..., None], edges).sum(axis=-1)
            own = pt.eq(code[..., None], np.arange(log_scale.type.shape[-1]))
            scale = pt.where(own, log_scale, 0.0).sum(axis=-1)
            top = pt.switch(pt.eq(np.arange(edges.type.shape[-1]), last[..., None] - 1), edges, 0.0)
            beyond = pt.maximum(edges[..., 0] - value, 0) + pt.maximum(value - top.sum(-1), 0)
            mass = pt.where(own, p, 0.0).sum(axis=-1)
            return pt.log(mass) - scale - beyond * pt.exp(-scale)

        def draw(p: Any, edges: Any, log_scale: Any, last: Any, rng: Any, size: Any) -> Array:
            full = np.broadcast_shapes(np.shape(p)[:-1], np.shape(last), size or ())
            row = np.broadcast_to(np.arange(np.prod(full, dtype=int)), (np.prod(full, dtype=int),))
            flat = [
                np.broadcast_to(a, (*full, *np.shape(a)[np.ndim(a) - k :])).reshape(
                    len(row), *np.shape(a)[np.ndim(a) - k :]
                )
                for a, k in ((p, 1), (edges, 1))
            ]
            one = replace(self, edges=flat[1])
            masses = {"theta": flat[0][None]}
            return one.simulate(rng, masses, np.zeros(1, dtype=np.int64)).reshape(full)

        return pm.CustomDist.dist(
            p,
            np.asarray(self.edges),
            self.log_scales,
            self.n_edges,
            logp=log_p,
            random=draw,
            signature="(k),(e),(k),()->()",
            size=size,
            class_name="Histogram",
        )

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """As `log_likelihood`."""
        codes = self.codes(X)
        masses = sum_codes(f"{prefix}codes", codes, self.alpha[0] > 0, theta["theta"])
        return masses + self._log_within(X, codes)[:, None]

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> HistogramStats:
        """Counts of each bin among the observed cells, log densities within them."""
        codes, k = self.codes(X), np.shape(self.edges)[1] + 1
        return HistogramStats(
            count_codes(codes, y, n_classes, k, weight),
            class_sums(self.beyond(X), y, n_classes, weight),
        )

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Three bins each; and two to four, with unequal pseudo-counts by class and bin."""
        flat = cls(2.0, edges=np.tile([-1.0, 2.0], (n_features, 1)))
        n = 1 + np.arange(n_features) % 3
        width = int(n.max())
        edges = np.cumsum(0.5 + np.arange(n_features * width).reshape(-1, width) % 4, axis=1) - 2.0
        edges[np.arange(width) >= n[:, None]] = np.inf
        unequal = 0.5 + np.arange(n_classes * edges.size + n_classes * n_features) % 7
        unequal = unequal.reshape(n_classes, n_features, width + 1)
        none = np.zeros((n_classes, n_features))
        ragged = cls(np.where(np.arange(width + 1) <= n[:, None], unequal, 0.0), edges=edges)
        return [
            f.resolve(HistogramStats(np.zeros((n_classes, n_features, k)), none))
            for f, k in ((flat, 3), (ragged, width + 1))
        ]

    def resolve(self, stats: CategoricalStats) -> Self:
        """Broadcast the pseudo-counts to (class, feature, bin)."""
        known = replace(self, edges=np.asarray(self.edges, dtype=np.float64))
        known = replace(known, n_categories=tuple((known.n_edges + 1).tolist()))
        return super(DirichletHistogram, known).resolve(stats)

    def for_plug_in(self, method: Method) -> Self:
        """Every real number has a bin."""
        return self

    def cgf(self, X: Matrix, t: Array) -> Array:
        """That of the numbers of the bins, and the densities within them, which are certain."""
        codes = self.codes(X)
        return super().cgf(codes, t) + np.asarray(t).sum(axis=-1) * self._log_within(X, codes)

    def density_cumulants(self, X: Matrix, seen: int) -> Array:
        """As `cgf`: densities within the bins shift the first cumulant."""
        codes = self.codes(X)
        out = super().density_cumulants(codes, seen)
        out[0] += self._log_within(X, codes)[:, None]
        return out

    def cell_cgf(self, x: Array, column: Array, classes: Array, t: Array) -> Array:
        """As `cgf`, cell by cell."""
        one = replace(self, edges=self.edges[column])
        codes = one.codes(x[None])[0]
        within = -one.log_scales[np.arange(len(x)), codes.astype(np.int64)] - one.beyond(x[None])[0]
        return super().cell_cgf(codes, column, classes, t) + t.sum(axis=-1) * within

    def log_evidence(self, stats: CategoricalStats) -> float:
        """Log probability of the sequence of bins, and density within them."""
        within = (stats.counts.sum(axis=0) * self.log_scales).sum()
        beyond = cast(HistogramStats, stats).beyond.sum()
        return float(super().log_evidence(stats) - within - beyond)

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Refused: linear in one indicator for each bin, not in the values."""
        raise NotLinearError(
            "a histogram's rule is linear in one 0/1 indicator for each bin, with weights log "
            "theta, not in the values themselves"
        )
