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

from bayesgen.errors import InputError
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart, ScatterStats
from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.errors import UndefinedEstimateError, refuse_undefined
from bayesgen.families.names import CLASS, DENSITY, FEATURE, FEATURE_BIS, StructureName
from bayesgen.families.records import array
from bayesgen.families.shared import forests
from bayesgen.families.shared.densities import density_by_draws
from bayesgen.families.shared.forests import START, ForestAverage, best_forest, graph, search, value
from bayesgen.families.shared.gaussian import prior_location, unit_information
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics.rows import has_nan, row_blocks
from bayesgen.numerics.spanning_trees import heaviest_tree
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
            why = f", feature {j} is missing (NaN): {self.missing}"
            raise InputError("row", why, row=i, column=int(j), place=" {}")
        return X - self.shift

    def log_likelihood(self, X: Any, theta: Theta) -> Array:
        """(..., N, C) sum of Normal log densities of the cells given their parents."""
        return log_likelihood(self.cells(X) + self.shift, theta, ~self.ignored)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) Normal rows."""
        parents, mu, slope, sigma2 = (
            np.broadcast_to(self.rows_of(theta, name, y), (len(y), self.n_columns))
            for name in self.params
        )
        step = np.sqrt(sigma2) * rng.standard_normal(mu.shape)
        return mu + along(parents.astype(np.int64), slope, step)

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
        mu, shift = prior_location(self.mu, self.shift, default, stats.shift, shape[0])
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

    def terms_given(self, X: Any, theta: Theta, c: int) -> Array:
        """By the Normal margins of the columns."""
        own = {name: np.asarray(theta[name])[..., c, :] for name in self.params}
        return terms(self.cells(X) + self.shift, own, ~self.ignored)

    # -- theta -----------------------------------------------------------------------------------

    def log_density(self, theta: Theta) -> Array:
        """(...) log probability of the forests plus log density of the others given them."""
        return density_by_draws(lambda t: log_density(self, t), theta, self.params)

    def mle(self, stats: ScatterStats) -> dict[str, Array]:
        """Forest of the largest likelihood (Chow and Liu 1968), least squares in it."""
        return mle(stats, self.edges, self.ignored)

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """{name: (n, C, D)} forests in proportion to their evidence, and parameters given them."""
        shape = (n, *self.mu.shape)
        out = {name: np.empty(shape) for name in self.params}
        for c in range(shape[1]):
            parents = self.draw_parents(rng, n, c)
            slope, width, scale, freedom = given_parent(self, c, parents)
            sigma2 = scale / rng.chisquare(freedom)
            z = rng.standard_normal((2, *sigma2.shape))
            slope = np.where(parents < 0, 0.0, slope + np.sqrt(sigma2) / np.sqrt(width) * z[0])
            out["parents"][:, c], out["slope"][:, c], out["sigma2"][:, c] = parents, slope, sigma2
            deviation = along(parents, slope, np.sqrt(sigma2 / self.kappa[c]) * z[1])
            out["mu"][:, c] = self.mu[c] + self.shift + deviation
        return out


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


# ------------------------------------------------------------------------------------------------
# Normal columns along given forests: draws, densities, estimates, new rows.


def along(parents: Array, slope: Array, step: Array, add: Any = np.add) -> Array:
    """(n, D) deviations d_u = slope_u d_parent + step_u in forests (n, D).

    With ``add=np.hypot`` and standard deviations as steps: the standard deviations of all columns.
    """
    out, root = step, parents < 0
    for _ in range(parents.shape[1]):
        above = np.take_along_axis(out, np.where(root, 0, parents), axis=-1)
        new = add(step, np.where(root, 0.0, slope * above))
        if (new == out).all():
            break
        out = new
    return out


def given_parent(f: "NormalForest", c: int, parents: Array) -> tuple[Array, Array, Array, Array]:
    """What the prior of class c says of columns given their parents in forests (n, D).

    Returns
    -------
    slope : (n, D) mean of the slope, 0 of a root
    width : (n, D) the variance of the slope is sigma2 / width
    scale, freedom : (n, D) sigma2 is scale over a chi-squared with so many degrees of freedom
    """
    psi, column, root = f.psi[c], np.arange(f.n_columns), parents < 0
    other = np.where(root, column, parents)
    width = psi[other, other]
    slope = np.where(root, 0.0, psi[column, other] / width)
    scale = psi[column, column] - slope * psi[column, other]
    return slope, width, scale, f.nu[c] + ~root


def log_density(f: "NormalForest", theta: dict[str, Array]) -> Array:
    """(n,) log probability of the forests plus the log density of the others given them."""
    out = np.zeros(len(theta["parents"]))
    for c in range(len(f.mu)):
        parents = theta["parents"][:, c].astype(np.int64)
        sigma2, slope = theta["sigma2"][:, c], theta["slope"][:, c]
        sd = np.sqrt(sigma2)
        out += f.log_probability(c, parents)
        mean, width, scale, freedom = given_parent(f, c, parents)
        half = freedom / 2
        terms = (
            half * np.log(scale / 2)
            - log_gamma_difference(np.ones_like(half), half - 1)
            - (half + 1) * np.log(sigma2)
            - scale / (2 * sigma2)
        )
        root = parents < 0
        terms = terms + np.where(root, 0.0, _log_normal(slope - mean, sd / np.sqrt(width)))
        deviation = theta["mu"][:, c] - f.shift - f.mu[c]
        above = np.take_along_axis(deviation, np.where(root, 0, parents), axis=1)
        residual = deviation - np.where(root, 0.0, slope * above)
        out += (terms + _log_normal(residual, sd / np.sqrt(f.kappa[c]))).sum(axis=1)
    return out


def _log_normal(residual: Array, sd: Array) -> Any:
    # of standard deviations: the variance of a slope between columns of 1e150 and 1e-150 overflows
    return -0.5 * (np.log(2 * np.pi) + np.square(residual / sd)) - np.log(sd)


def log_likelihood(X: Array, theta: Any, live: Array) -> Array:
    """(..., N, C) log p(x | theta) of the live columns of rows."""
    names = ("parents", "mu", "slope", "sigma2")
    parents, mu, slope, sigma2 = (np.asarray(theta[name], dtype=np.float64) for name in names)
    *lead, n_classes, n_features = mu.shape
    flat = [a.reshape(-1, n_features) for a in (parents, mu, slope, sigma2)]
    out = np.empty((len(flat[0]), len(X)))
    for rows in row_blocks(len(X), n_features):
        for s, (up, centre, b, variance) in enumerate(zip(*flat, strict=True)):
            deviation = X[rows] - centre
            up = up.astype(np.int64)
            above = np.where(up < 0, 0.0, deviation[:, up])
            terms = _log_normal(deviation - b * above, np.sqrt(variance))
            out[s, rows] = terms[:, live].sum(axis=1)
    return np.moveaxis(out.reshape(*lead, n_classes, len(X)), -1, -2)


def terms(X: Array, theta: dict[str, Array], live: Array) -> Array:
    """(..., N, D) terms of log p(x | theta) of one class, 0 of columns that are not live."""
    lead = theta["mu"].shape[:-1]
    parents, mu, slope, sigma2 = (
        theta[name].reshape(-1, X.shape[1]) for name in ("parents", "mu", "slope", "sigma2")
    )
    parents = parents.astype(np.int64)
    sd = np.sqrt(sigma2)
    margin = along(parents, np.abs(slope), sd, np.hypot)
    deviation = X - mu[:, None]
    above = np.take_along_axis(deviation, np.where(parents < 0, 0, parents)[:, None], axis=-1)
    given = _log_normal(deviation - slope[:, None] * above, sd[:, None])
    alone = _log_normal(deviation, margin[:, None])
    found = forests.of_draws(parents, np.where(live, given, 0.0), np.where(live, alone, 0.0))
    return found.reshape(*lead, *X.shape)


def mle(stats: "ScatterStats", edges: Array, ignored: Array) -> dict[str, Array]:
    """The allowed forest of the largest likelihood in each class, and least squares in it."""
    refuse_undefined("mle", stats.n <= 0, "it has no row")
    shape = stats.mean.shape
    out = {name: np.zeros(shape) for name in ("parents", "slope", "sigma2")}
    column = np.arange(shape[1])
    for c, (n, scatter) in enumerate(zip(stats.n, stats.scatter, strict=True)):
        variance = np.where(ignored, 1.0, np.diagonal(scatter) / n)
        if (variance <= 0).any():
            j = int(np.argmax(variance <= 0))
            raise UndefinedEstimateError("mle", "its rows do not vary", c, j)
        width = np.sqrt(variance)
        r2 = np.square(scatter / n / width / width[:, None])
        np.fill_diagonal(r2, 0.0)
        if (r2 >= 1 - 1e-12).any():
            j = int(np.argwhere(r2 >= 1 - 1e-12)[0][0])
            raise UndefinedEstimateError("mle", "another column determines it", c, j)
        gain = -n / 2 * np.log1p(-r2)
        # every edge gains at least 0, and a root -1: there are no more roots than must be
        parents = heaviest_tree(graph(gain, np.exp(-1.0), edges[c]))[1:] - 1
        root = parents < 0
        up = np.where(root, column, parents)
        slope = np.where(root, 0.0, scatter[column, up] / n / variance[up])
        out["parents"][c], out["slope"][c] = parents, slope
        out["sigma2"][c] = variance * np.where(root, 1.0, 1 - r2[column, up])
    return out | {"mu": stats.mean + stats.shift}


# ------------------------------------------------------------------------------------------------
# PyMC model of Normal columns along given forests.


def declare(
    f: "NormalForest", stats: "ScatterStats | None", forest: Array, X_new: Array | None = None
) -> Any:
    """Declare the parameters and the potential ``x`` in the PyMC model on the stack.

    Variables of class number c: ``sigma2_{c}`` and ``mu_{c}`` (feature), ``slope_{c}`` of the
    columns that have a parent, in their order.

    Parameters
    ----------
    f : prior
    stats : statistics of the rows, or None for the prior alone
    forest : (C, D) parents, -1 for a root
    X_new : (N, D), optional
        Of which the (N, C) tensor of log p(x | theta) is returned.
    """
    import pymc as pm
    import pytensor.tensor as pt

    total: Any = 0.0
    rows = None if X_new is None else pm.Data("new_rows", np.asarray(X_new, dtype=np.float64))
    log_x: list[Any] = []
    for c, parents in enumerate(forest):
        mean, width, scale, freedom = (a[0] for a in given_parent(f, c, parents[None]))
        child = np.flatnonzero(parents >= 0)
        up = np.where(parents < 0, np.arange(len(parents)), parents)
        sigma2 = pm.InverseGamma(f"sigma2_{c}", freedom / 2, scale / 2)
        slope = pt.zeros(len(parents))
        if len(child):
            own = pm.Normal(f"slope_{c}", mean[child], pt.sqrt(sigma2[child] / width[child]))
            slope = slope[child].set(own)
        centre = f.mu[c] + f.shift
        mu: list[Any] = [None] * len(parents)
        step = pm.Normal(f"mu_{c}_step", 0.0, 1.0, shape=len(parents))
        while any(m is None for m in mu):
            for u, p in enumerate(parents):
                if mu[u] is None and (p < 0 or mu[p] is not None):
                    above = 0.0 if p < 0 else slope[u] * (mu[p] - centre[p])
                    mu[u] = centre[u] + above + pt.sqrt(sigma2[u] / f.kappa[c]) * step[u]
        mu_c = pm.Deterministic(f"mu_{c}", pt.stack(mu))
        if rows is not None:
            step_x = rows - mu_c
            terms = pt.log(2 * np.pi * sigma2) + (step_x - slope * step_x[:, up]) ** 2 / sigma2
            log_x.append(-(terms * ~f.ignored).sum(axis=1) / 2)
        if stats is None:
            continue
        n, s, columns = stats.n[c], stats.scatter[c], np.arange(len(parents))
        deviation = stats.mean[c] + stats.shift - mu_c
        residual = deviation - slope * deviation[up]
        squares = s[columns, columns] - 2 * slope * s[columns, up] + slope**2 * s[up, up]
        squares = squares + n * residual**2
        terms = n * pt.log(2 * np.pi * sigma2) + squares / sigma2
        total = total - (terms * ~f.ignored).sum() / 2
    if stats is not None:
        pm.Potential("x", total)
    return pt.stack(log_x, axis=1) if log_x else None
