r"""Normal features that depend on each other along a forest, averaged over all forests.

Within class c, x is Normal and every column but the roots of a forest T depends on one other,

.. math:: x_u \mid x_p \sim \text{Normal}(\mu_u + b_u (x_p - \mu_p),\; \sigma^2_u),

with the prior of `DirichletForest` over T, and for T the hyper-inverse-Wishart prior whose cliques,
single columns and pairs of neighbours S, have margins of one Normal-inverse-Wishart distribution:

.. math:: \Sigma_S \sim \text{InvWishart}(\nu + |S| - 1,\; \Psi_S), \qquad
          \mu_S \mid \Sigma_S \sim \text{Normal}(m_S, \Sigma_S/\kappa).

The direction of an edge does not matter, and everything adds up as in the Normal-inverse-Wishart
family. With W the Normal evidences of columns and of pairs, the evidence is that of
`DirichletForest`: :math:`\prod_u W_u` times a ratio of two sums over forests with the weights
:math:`w_{uv} = W_{uv}/(W_u W_v)`. So is the predictive, whose columns and pairs are Student t.

Sources: Dawid and Lauritzen (1993), Hyper Markov laws in the statistical analysis of decomposable
graphical models; Meila and Jaakkola (2000) for the sum over trees.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.conjugate.normal_forest import structures
from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart
from bayesgen.families.conjugate.normal_inverse_wishart.scatter import ScatterStats
from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import (
    CLASS,
    DENSITY,
    FEATURE,
    FEATURE_BIS,
    StructureName,
)
from bayesgen.families.records import array
from bayesgen.families.shared import forest_cumulants
from bayesgen.families.shared.densities import density_by_draws
from bayesgen.families.shared.forests import ForestAverage, best_forest
from bayesgen.families.shared.gaussian import unit_information
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.families.shared.strengths import START, search, value
from bayesgen.numerics.rows import has_nan
from bayesgen.numerics.special import Array, log1p, log_gamma_difference

_ALIKE = 1 - 2.0**-50  # the largest correlation: of columns that weights of 1e15 make one


@dataclass(frozen=True, eq=False)
class NormalForest(ForestAverage, ConjugateFamily):
    """Normal features along forests of dependences.

    Parameters
    ----------
    mu : float or array broadcasting to (class, feature), or None
        Prior mean of the class means, minus `shift`; in the units of the features. None: the
        pooled mean.
    kappa : float or array (class,), > 0, or None
        Weight of the prior mean, in rows. None: 0.1.
    nu : float or array (class,), > 0, or None
        Degrees of freedom of the variance of one column. None: 3.
    psi : float, (D,), (D, D) or (class, D, D), positive definite, or None
        Scale matrix: the variance of column u is inverse Wishart (nu, psi_uu). None: nu times the
        pooled within-class variances, without correlations.
    root_weight : float or array (class,), > 0, or None
        As in `DirichletForest`.
    edges : array broadcasting to (class, feature, feature_bis), or None
        As in `DirichletForest`.
    log_w : array (class, feature, feature_bis), or None
        Log weights of the edges behind a posterior. None: zeros, a prior.
    shift : array (feature,)
        Reference row: locations are held relative to it.
    ignored : bool array (feature,)
        Columns that are left out of every density: those constant in training, by default.
    structure : {"average", "tree", "map", "fixed"}
        As in `DirichletForest`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.1], [1.0, 1.2], [2.0, 1.9], [3.0, 3.0]])
    >>> family = NormalForest(psi=1.0, root_weight=1.0)
    >>> stats = family.stats(X, np.zeros(4, dtype=int), n_classes=1)
    >>> posterior = family.resolve(stats).update(stats)
    >>> posterior.log_predictive(np.array([[1.0, 1.0], [1.0, 2.0]])).round(3)
    array([[-1.499],
           [-2.648]])
    """

    describes: ClassVar[str] = DENSITY
    positions: ClassVar[tuple[str, ...]] = ("parents",)
    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "gaussian"
    statistics: ClassVar[type[Stats]] = ScatterStats
    tunable: ClassVar[tuple[str, ...]] = ("kappa", "nu", "psi")
    missing: ClassVar[str] = (
        "a forest with a column summed out is a forest no more, and the average over forests has "
        "no closed form then"
    )
    no_pymc: ClassVar[str] = (
        "the forest is a discrete parameter; TreeAugmentedGaussianNB.to_pymc(structure=...) is the "
        "model for given forests"
    )

    mu: Any = array(CLASS, FEATURE, default=None)
    kappa: Any = array(CLASS, default=None)
    nu: Any = array(CLASS, default=None)
    psi: Any = array(CLASS, FEATURE, FEATURE_BIS, default=None)
    root_weight: Any = array(CLASS, default=None)
    edges: Any = array(CLASS, FEATURE, FEATURE_BIS, default=None)
    log_w: Any = array(CLASS, FEATURE, FEATURE_BIS, default=None)
    shift: Any = array(FEATURE, default=0.0)
    ignored: Any = array(FEATURE, default=False)
    structure: StructureName = "average"

    # methods with a page of their own
    draw = structures.draw

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``parents``: position of the column that each depends on, -1 for a root.

        ``mu``: class means; ``slope`` on the parent, 0 of a root; ``sigma2``: variance given it.
        """
        return dict.fromkeys(("parents", "mu", "slope", "sigma2"), (CLASS, FEATURE))

    @property
    def n_columns(self) -> int:
        """D."""
        return int(self.mu.shape[1])

    @property
    def log_weights(self) -> list[Array]:
        """Of each class (D, D) log weights of the edges."""
        return list(self.log_w)

    # -- rows ------------------------------------------------------------------------------------

    def cells(self, X: Any) -> Array:
        """(N, D) rows less `shift`; raises ValueError at a missing cell."""
        X = np.asarray(X, dtype=np.float64)
        if has_nan(X):
            i, j = np.argwhere(np.isnan(X))[0]
            raise ValueError(f"row {i}, feature {j} is missing (NaN): {self.missing}")
        return X - self.shift

    def log_likelihood(self, X: Any, theta: Theta) -> Array:
        """(..., N, C) sum of Normal log densities of the cells given their parents."""
        return structures.log_likelihood(self.cells(X) + self.shift, theta, ~self.ignored)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) Normal rows."""
        parents, mu, slope, sigma2 = (
            np.broadcast_to(self.rows_of(theta, name, y), (len(y), self.n_columns))
            for name in self.params
        )
        step = np.sqrt(sigma2) * rng.standard_normal(mu.shape)
        return mu + structures.along(parents.astype(np.int64), slope, step)

    def stats(self, X: Any, y: Array, n_classes: int, weight: Array | None = None) -> ScatterStats:
        """Counts, means and scatter matrices."""
        X = np.asarray(X)
        if has_nan(X):
            self.cells(X)  # refuses them, with the reason
        return ScatterStats.of_rows(X, y, n_classes, weight)

    # -- prior and posterior ---------------------------------------------------------------------

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Unequal by class, with correlations; and neighbouring columns alone as neighbours."""
        pattern = np.arange(n_classes * n_features).reshape(n_classes, n_features) % 4 - 1.0
        psi = 2.0 * (np.eye(n_features) + 0.4) * (1.0 + np.arange(n_classes))[:, None, None]
        by_class = 1.0 + np.arange(n_classes)
        near = np.abs(np.arange(n_features)[:, None] - np.arange(n_features)) <= 1
        none = ScatterStats.of_rows(
            np.zeros((0, n_features)), np.zeros(0, dtype=np.int64), n_classes
        )
        return [
            cls(pattern, 0.5 * by_class, 4.0 + by_class, psi, 0.7 * by_class).resolve(none),
            cls(0.0, 1.0, 5.0, 3.0, 1.0, near).resolve(none),
        ]

    def resolve(self, stats: ScatterStats) -> Self:
        """Data-scaled defaults from the pooled statistics, the root weight by the evidence."""
        n_classes, n_features = shape = stats.mean.shape
        diagonal = np.diagonal(stats.scatter, axis1=1, axis2=2)
        default = unit_information(stats.n[:, None], stats.mean, diagonal, stats.shift)
        ignored = self.ignored if self.psi is not None else default.constant
        if self.mu is None:
            mu, shift = np.array(np.broadcast_to(default.mean, shape)), stats.shift
        else:
            mu = broadcast_prior("mu0", self.mu, shape, positive=False)
            shift = broadcast_prior("shift", self.shift, shape[1:], positive=False)
        nu = broadcast_prior("nu0", 3.0 if self.nu is None else self.nu, shape[:1])
        psi = default.variance * nu[0] if self.psi is None else self.psi
        full = NormalInverseWishart(mu, 1.0, n_features + 2.0, psi).resolve(stats).psi
        if self.psi is None:
            full = full * (nu / nu[0])[:, None, None]
        edges = self.given_edges(n_classes, n_features, self.log_w is not None)
        ignored = np.array(np.broadcast_to(ignored, n_features))
        if ignored.any():
            edges = edges * ~(ignored | ignored[:, None])
        known = replace(
            self,
            mu=mu,
            kappa=broadcast_prior("kappa0", 0.1 if self.kappa is None else self.kappa, shape[:1]),
            nu=nu,
            psi=full,
            edges=edges,
            log_w=np.zeros_like(full) if self.log_w is None else self.log_w,
            shift=shift,
            ignored=ignored,
        )
        looking = self.chooses and self.edges is None
        return known._with_structure(stats, looking)

    def _with_structure(self, stats: ScatterStats, looking: bool) -> Self:
        """The weight of roots and the best forests, where they are not given."""
        n_classes = len(self.mu)
        rows = replace(self, structure="average").update(stats)
        root_weight = self.root_weight
        if root_weight is None:
            singles = np.zeros(self.mu.shape)

            def evidence(_: float, rho: float) -> float:
                prior = replace(self, root_weight=np.full(n_classes, rho))
                if not looking:
                    return float(prior.log_sums(singles, rows.log_w).sum())
                best = sum(best_forest(w, rho)[1] for w in rows.log_w)
                forests = np.log(rho) + (self.n_columns - 1) * np.log(rho + self.n_columns)
                return best - n_classes * float(forests)

            rho = value(self.n_columns, START)[1]
            if stats.n.any() and (self.structure == "average" or looking):
                rho = search(evidence, self.n_columns, (False, True))[1]
            root_weight = rho
        known = replace(self, root_weight=broadcast_prior("root_weight", root_weight, (n_classes,)))
        if looking:
            known = replace(known, edges=known.chosen(rows.log_w))
        return known

    def update(self, stats: ScatterStats) -> Self:
        """As Normal-inverse-Wishart; the weights of edges by the evidence of the rows."""
        whole = NormalInverseWishart(self.mu, self.kappa, self.nu, self.psi, self.shift)
        new = whole.update(stats)
        before, after = (_log_pair_constants(f.nu, f.psi) for f in (whole, new))
        log_w = self.log_w + np.where(self.ignored | self.ignored[:, None], 0.0, after - before)
        return replace(
            self,
            mu=new.mu,
            kappa=new.kappa,
            nu=new.nu,
            psi=new.psi,
            shift=new.shift,
            log_w=log_w,
            edges=self.chosen(log_w) if self.chooses else self.edges,
        )

    def chosen(self, log_weights: Any) -> Array:
        """(C, D, D) edges of the heaviest forests, of columns that are not left out."""
        found: Array = super().chosen(log_weights) * ~(self.ignored | self.ignored[:, None])
        return found

    def over_all(self) -> Self:
        """Over all forests of columns that are not left out."""
        every = super().over_all()
        live = ~(self.ignored | self.ignored[:, None])
        return replace(every, edges=every.edges * live) if self.ignored.any() else every

    # -- closed forms ----------------------------------------------------------------------------

    def log_evidence(self, stats: ScatterStats) -> float:
        """Log evidences of columns, and of the ratio of sums over forests, of all classes."""
        new = self.update(stats)
        n = stats.n[:, None]
        singles = (
            log_gamma_difference(self.nu[:, None] / 2, n / 2)
            - n / 2 * np.log(np.pi)
            - np.log1p(n / self.kappa[:, None]) / 2
            - new.nu[:, None] / 2 * np.log(_diagonal(new.psi))
            + self.nu[:, None] / 2 * np.log(_diagonal(self.psi))
        )
        singles = np.where(self.ignored, 0.0, singles)
        none = np.zeros_like(singles)
        after, before = self.log_sums(singles, new.log_w), self.log_sums(none, self.log_w)
        return float((after - before).sum())

    def changes(self, c: int, cells: Array, t: Array) -> tuple[Array, Array]:
        """By rows of weight t: Student t densities where t is 1."""
        i, j = self.neighbours[c]
        nu, kappa = self.nu[c], self.kappa[c]
        z, q = self._distances(c, cells)
        t = t[..., None]
        share = kappa * t / (kappa + t)
        grown = log1p(share * np.square(z))
        one = log_gamma_difference(nu / 2, t / 2) - t / 2 * np.log(np.pi) - log1p(t / kappa) / 2
        columns = one - t / 2 * np.log(_diagonal(self.psi)[c]) - (nu + t) / 2 * grown
        columns = np.where(self.ignored, 0.0, columns)
        left = self._left(c)
        both = log1p(share * q)
        edges = (
            log_gamma_difference((nu + 1) / 2, t / 2)
            - log_gamma_difference(nu / 2, t / 2)
            - t / 2 * np.log(left)
            - (nu + 1 + t) / 2 * both
            + (nu + t) / 2 * (grown[..., i] + grown[..., j])
        )
        return columns, edges

    def _correlations(self, c: int) -> Array:
        """(P,) of the pairs that may be neighbours, in the scale matrix."""
        i, j = self.neighbours[c]
        width = np.sqrt(_diagonal(self.psi)[c])  # a product of variances would overflow
        found = self.psi[c, i, j] / width[i] / width[j]
        return np.clip(found, -_ALIKE, _ALIKE)

    def _left(self, c: int) -> Array:
        """(P,) 1 - r^2."""
        r = self._correlations(c)
        return (1 - r) * (1 + r)

    def _distances(self, c: int, cells: Array) -> tuple[Array, Array]:
        """(n, D) standardised cells; (n, P) squared distances in the metric of the pairs."""
        i, j = self.neighbours[c]
        z = (cells - self.mu[c]) / np.sqrt(_diagonal(self.psi)[c])
        r, a = self._correlations(c), z[:, i]
        b = np.copysign(z[:, j], z[:, j] * r)
        # of columns that nearly repeat each other the difference is what counts
        return z, (np.square(a - b) + 2 * (1 - np.abs(r)) * a * b) / self._left(c)

    def log_predictive_without(self, X: Any, y: Array, weight: Array) -> tuple[Array, Array]:
        """As of any forests; and what is left of the least sum of squares."""
        left, every = np.ones(len(X)), self.over_all()
        for c in np.unique(y):
            rows = np.flatnonzero(y == c)
            z, q = every._distances(c, self.cells(X[rows]))
            furthest = np.maximum(np.square(z).max(axis=1), q.max(axis=1, initial=0.0))
            kappa, w = self.kappa[c], weight[rows]
            rest = kappa - w
            taken = w * kappa / np.where(rest > 0, rest, 1.0) * furthest
            left[rows] = np.where(rest > 0, 1 - taken, 0.0)
        log_x, kept = super().log_predictive_without(X, y, weight)
        return log_x, np.minimum(left, kept)

    def log_predictive(self, X: Any) -> Array:
        """(N, C) product of the columns' Student t densities times a ratio of sums over forests."""
        cells, unit = self.cells(X), np.eye(len(self.mu))
        return np.stack([forest_cumulants.cgf(self, cells, e) for e in unit], axis=1)

    def cgf(self, X: Any, t: Array) -> Array:
        """In closed form: rows of weight t (`forest_cumulants`)."""
        with np.errstate(invalid="ignore", divide="ignore"):  # real t outside the domain: NaN
            return forest_cumulants.cgf(self, self.cells(X), t)

    def terms_given(self, X: Any, theta: Theta, c: int) -> Array:
        """By the Normal margins of the columns."""
        own = {name: np.asarray(theta[name])[..., c, :] for name in self.params}
        return structures.terms(self.cells(X) + self.shift, own, ~self.ignored)

    # -- theta -----------------------------------------------------------------------------------

    def log_density(self, theta: Theta) -> Array:
        """(...) log probability of the forests plus log density of the others given them."""
        return density_by_draws(lambda t: structures.log_density(self, t), theta, self.params)

    def mle(self, stats: ScatterStats) -> dict[str, Array]:
        """Forest of the largest likelihood (Chow and Liu 1968), least squares in it."""
        return structures.mle(stats, self.edges, self.ignored)

    def map(self) -> dict[str, Array]:
        """Refused: probabilities of forests and densities given them have no common mode."""
        raise UndefinedEstimateError(
            "map",
            "forests have parameters of different dimensions, whose densities cannot be compared; "
            "structure='map' plugs in the most probable forest",
        )


def _diagonal(psi: Array) -> Array:
    return np.diagonal(psi, axis1=-2, axis2=-1)


def _log_pair_constants(nu: Array, psi: Array) -> Array:
    """(C, D, D) whose differences between posterior and prior are log evidences of edges."""
    diagonal = _diagonal(psi)
    width = np.sqrt(diagonal)
    r = psi / width[:, :, None] / width[:, None, :]
    np.einsum("cii->ci", r)[:] = 0.0
    np.clip(r, -_ALIKE, _ALIKE, out=r)
    nu = nu[:, None, None]
    return (
        log_gamma_difference(nu / 2, 0.5)
        - np.log(width)[:, :, None]
        - np.log(width)[:, None, :]
        - (nu + 1) / 2 * (np.log1p(-r) + np.log1p(r))
    )
