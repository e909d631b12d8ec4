r"""Correlated real features: x | y=c ~ Normal(mu_c, Sigma), Normal-inverse-Wishart prior.

.. math:: \Sigma \sim \text{InvWishart}(\nu, \Psi), \qquad
          \mu_c \mid \Sigma \sim \text{Normal}(m_c, \Sigma/\kappa_c)

One Sigma per class is quadratic discriminant analysis; one Sigma shared by the classes is linear
discriminant analysis. The posterior adds the rows to nu and their scatter, plus
kappa n/(kappa + n) (xbar - m)(xbar - m)^T, to Psi. The predictive is a multivariate Student t with
nu - D + 1 degrees of freedom; it exists for n_c <= D, and for no rows at all.

Source: Gelman et al., Bayesian Data Analysis (3rd ed.), section 3.6; Murphy (2007), section 9;
Geisser (1964), Posterior odds for multivariate normal classifications.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.errors import Facts
from bayesgen.families.conjugate.normal_inverse_gamma import GaussianStats, NormalInverseGamma
from bayesgen.families.contract import ConjugateFamily, Stats, Tensors, Theta, Variables
from bayesgen.families.errors import (
    NotLinearError,
    UndefinedEstimateError,
    refuse_undefined,
)
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS
from bayesgen.families.records import Hyperparameter, array
from bayesgen.families.shared import densities, gaussian
from bayesgen.families.shared.gaussian import prior_location
from bayesgen.families.shared.hyperparameters import LARGEST, broadcast_prior
from bayesgen.families.shared.pymc_parts import observe_rows, prefixed
from bayesgen.numerics import rows as passes
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_gamma_difference, log_multigamma_difference

# ------------------------------------------------------------------------------------------------
# Counts, means and scatter matrices of rows: the sufficient statistics of Normal classes.
#
# C classes, D features; G scatter matrices, C or 1 that the classes share.

_CELLS = 1 << 18  # of a block of rows: 2 MiB of float64 ...
_MOST_CELLS = 1 << 20  # ... or 8 MiB, where fewer rows would be too few
_ROWS = 1024  # for the product of a block to outweigh that it is added to the scatter
_ROWS_A_CLASS = 32  # for arithmetic on a class's rows to outweigh the call
_MOST_COVARIANCES = 1 << 31  # 17 GB


@dataclass(frozen=True, eq=False)
class ScatterStats(GaussianStats):
    """Count, mean and scatter matrix of each class, about a fixed reference row.

    With `shared`, the scatter of all classes about their own means is one matrix (1, D, D).
    """

    n: Array = array(CLASS)
    scatter: Array = array(CLASS, FEATURE, FEATURE_BIS, signed=True)
    shared: bool = False

    def reindex_classes(self, codes: Array, n_classes: int) -> Self:
        """Rename the classes as in `Stats`; a shared scatter stays one matrix."""
        stats = super().reindex_classes(codes, n_classes)
        return replace(stats, scatter=self.scatter) if self.shared else stats

    def pooled(self) -> Self:
        """Pool the classes as in `Stats`; a shared scatter counts once."""
        if not self.shared:
            return super().pooled()
        means = replace(self, scatter=np.zeros((len(self.n), *self.scatter.shape[1:])))
        stats = Stats.pooled(means)
        return replace(stats, scatter=stats.scatter + self.scatter)

    def squares(self, weight: Array, step: Array) -> Array:
        """Return (G, D, D) weighted outer products of one step per class (C, D)."""
        root = np.sqrt(weight)[:, None] * step  # so that the products are symmetric, bit for bit
        if self.shared:
            return (root.T @ root)[None]
        return root[:, :, None] * root[:, None, :]

    def variation(self) -> Array:
        """Return (G, D) the diagonals."""
        return np.diagonal(self.scatter, axis1=1, axis2=2)

    def grouped(self, n: Array) -> Array:
        """Return (G, 1)."""
        return (n.sum(keepdims=True) if self.shared else n)[:, None]

    @classmethod
    def of_rows(
        cls,
        X: Matrix,
        y: Array,
        n_classes: int,
        weight: Array | None = None,
        *,
        shared: bool = False,
    ) -> Self:
        """Compute the statistics of complete dense rows in one pass.

        Raises
        ------
        MissingCellError
            At the first NaN.
        ValueError
            If the covariances are more than 2^31 numbers.

        Notes
        -----
        Block by block the rows of each class are centred about their own mean, and multiplied with
        themselves. Blocks are merged as in `merge`.
        """
        n_rows, n_features = X.shape
        cells = (1 if shared else n_classes) * n_features**2
        if cells > _MOST_COVARIANCES:
            raise ValueError(
                f"covariances of {n_features} columns need {8e-9 * cells:.0f} GB; the limit is "
                f'{8e-9 * _MOST_COVARIANCES:.0f} GB. Use covariance="diagonal", or fewer columns'
            )
        shift = _reference(X)
        groups = 1 if shared else n_classes
        n, mean = np.zeros(n_classes), np.zeros((n_classes, n_features))
        stats = cls(n, mean, np.zeros((groups, n_features, n_features)), shift, shared)
        block_cells = n_features * max(_ROWS, _ROWS_A_CLASS * n_classes)
        for rows in passes.row_blocks(
            n_rows, n_features, min(_MOST_CELLS, max(_CELLS, block_cells))
        ):
            d = passes.dense_block(X, rows) - shift
            codes, w = y[rows], None if weight is None else np.asarray(weight[rows], dtype=float)
            if w is not None and not w.all():  # rows of weight 0 may hold anything
                d, codes, w = d[w > 0], codes[w > 0], w[w > 0]
            if passes.has_nan(d):
                _refuse_missing(X, rows, weight)
            count = passes.class_counts(codes, n_classes, w)
            indicator = passes.one_hot(codes, n_classes, w)
            centre = indicator @ d / np.where(count > 0, count, 1.0)[:, None]
            d -= centre[codes]
            if w is not None:
                d *= np.sqrt(w)[:, None]
            members = [d] if shared else (d[codes == c] for c in range(n_classes))
            scatter = np.array([z.T @ z for z in members])
            stats = stats.merge(cls(count, centre, scatter, shift, shared))
        return stats


class MissingCellError(Facts, ValueError):
    """A training row with a missing cell, where there is no closed form.

    Parameters
    ----------
    row, column : int
    """

    def __init__(self, row: int, column: int) -> None:
        super().__init__(
            "training rows with missing cells have no closed form under a full covariance (first",
            f", column {column})",
            row=row,
            column=column,
            advice="drop or impute the rows, use covariance='diagonal', or GaussianNB",
        )


def _reference(X: Matrix) -> Array:
    """Return (D,) the median of the first rows, of an odd number: one outlier is no reference."""
    head = passes.dense_block(X, slice(0, 101))
    head = head[~np.isnan(head).any(axis=1)]
    if not len(head):
        return np.zeros(X.shape[1])
    return np.median(head[: len(head) - (len(head) + 1) % 2], axis=0)


def _refuse_missing(X: Array, rows: slice, weight: Array | None) -> None:
    """Raise at the first NaN of a row that counts; values that overflowed are let pass."""
    is_nan = np.isnan(np.asarray(X[rows], dtype=np.float64))
    if weight is not None:
        is_nan &= weight[rows, None] > 0
    if is_nan.any():
        row, column = np.argwhere(is_nan)[0]
        raise MissingCellError(rows.start + int(row), int(column))


# ------------------------------------------------------------------------------------------------
# Draws of the class log-densities at a cost that does not grow with D: no covariance is drawn.
#
# With W ~ Wishart(nu, G), G the products of a row's distances from the class means in the
# metric of psi^-1, the squared distance of class c is
# :math:`[(z + \sqrt{\kappa W_{cc}})^2 + \chi^2_{D-1}]/\kappa`. Exact for each row.


def _shared_draws(f: "NormalInverseWishart", seed: passes.Seed, X: Matrix, n: int) -> Array:
    """Return (n, N, C) draws of -1/2 of the squared distances, less what the classes share."""
    log_x = np.zeros((n, X.shape[0], len(f.mu)))
    for rows, family, x in f.parts(X):
        if not family.dim:
            continue
        rng = np.random.default_rng(seed)  # the same numbers for every pattern of missing cells
        z = rng.standard_normal((n, len(f.mu)))
        # a squared distance is noncentral chi-squared: the direction of the mean, and all others
        others = rng.chisquare(family.dim - 1, size=z.shape) if family.dim > 1 else 0.0
        d = (x[:, None] - family.mu).reshape(-1, family.dim)
        away = (d @ family.whiten[0].T).reshape(len(x), -1, family.dim)
        # not by the products z z', in which a far row's differences of the classes are lost
        root = np.linalg.qr(away.transpose(0, 2, 1), mode="r").transpose(0, 2, 1)
        triangles = _triangles(rng, family.nu[0], min(len(f.mu), family.dim), n)
        u = _diagonals(root, triangles).transpose(2, 0, 1)  # (S, n, C)
        distance = np.square(z[:, None] + np.sqrt(f.kappa * u))
        log_x[:, rows] = -0.5 / f.kappa * (distance + np.expand_dims(others, 1))
    return log_x


def _diagonals(root: Array, triangles: Array) -> Array:
    """Return (n, C, S) diagonals of R W R^T, root (n, C, r), for S matrices W by their factors."""
    n_rows, n_classes, rank = root.shape
    diagonals = np.empty((n_rows, n_classes, len(triangles)))
    wide = np.ascontiguousarray(triangles.transpose(1, 2, 0))
    for c in range(n_classes):
        w = (root[:, c] @ wide.reshape(rank, -1)).reshape(n_rows, rank, -1)
        np.einsum("nrs,nrs->ns", w, w, out=diagonals[:, c])
    return diagonals


def _triangles(rng: np.random.Generator, nu: float, rank: int, n: int) -> Array:
    """Draw (n, rank, rank) Cholesky factors of Wishart(nu, I): Bartlett's decomposition."""
    factors = np.zeros((n, rank, rank))
    i, j = np.tril_indices(rank, -1)
    factors[:, i, j] = rng.standard_normal(size=(n, len(i)))
    k = np.arange(rank)
    factors[:, k, k] = np.sqrt(rng.chisquare(nu - k, size=(n, rank)))
    return factors


def _draws_of_complete_rows(
    f: "NormalInverseWishart", seed: passes.Seed, n: int, x: Array
) -> Array:
    """Return (n, N, C) of classes with covariances of their own."""
    rng, dim = np.random.default_rng(seed), f.dim
    z = rng.standard_normal(size=(n, len(f.mu)))
    remaining = rng.chisquare(dim - 1, size=z.shape) if dim > 1 else np.zeros(z.shape)
    log_x = np.empty((n, len(x), len(f.mu)))
    for c, (nu, kappa) in enumerate(zip(f.nu, f.kappa, strict=True)):
        d = (x - f.mu[c]) @ f.whiten[c].T
        w = rng.chisquare(nu, size=(n, 1))
        # |precision| |psi| is a product of chi-squares, the first of them w
        others = rng.chisquare(nu - np.arange(1, dim), size=(n, dim - 1))
        log_det = np.log(w[:, 0]) + np.log(others).sum(axis=1) - f.log_det[c]
        u = np.sqrt(kappa * w * np.square(d).sum(axis=1))
        q = (np.square(z[:, c, None] + u) + remaining[:, c, None]) / kappa
        log_x[:, :, c] = 0.5 * log_det[:, None] - dim / 2 * np.log(2 * np.pi) - 0.5 * q
    return log_x


@dataclass(frozen=True, eq=False)
class NormalInverseWishart(ConjugateFamily):
    """Normal features with full covariance, per class or shared.

    Parameters
    ----------
    mu : float or array broadcasting to (class, feature), or None
        Prior mean of the class means, minus `shift`; in the units of the features. None: the
        pooled mean.
    kappa : float or array (class,), > 0, or None
        Weight of the prior mean, in rows. None: 0.1.
    nu : float or array (class,) (one number if shared), > D - 1, or None
        Degrees of freedom of the inverse Wishart. None: D + 2, the least integer with a finite
        prior mean.
    psi : float, (D,), (D, D) or (class, D, D), positive definite, or None
        Scale matrix of the inverse Wishart: a number or a vector is its diagonal. E Sigma =
        psi/(nu - D - 1), E Sigma^-1 = nu psi^-1. None: nu times the matrix of pooled within-class
        variances and shrunken correlations (`scatter`), which matches the precision.
    shift : array (feature,)
        Reference row: locations are held relative to it.
    ignored : bool array (feature,)
        Columns that are left out of every density, as if missing. Set by the default prior for
        columns that are constant in training: they have no unit and no correlation.
    shared : bool
        One covariance for all classes (linear discriminant analysis).

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0, 2.0], [2.0, 1.0], [8.0, 9.0]]), np.array([0, 0, 1])
    >>> family = NormalInverseWishart(mu=0.0, kappa=1.0, nu=4.0, psi=1.0)
    >>> stats = family.stats(X, y, n_classes=2)
    >>> family.resolve(stats).update(stats).log_predictive(np.array([[1.0, 1.0]])).round(3)
    array([[-1.556, -3.546]])
    """

    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "gaussian"
    statistics: ClassVar[type[Stats]] = ScatterStats
    tunable: ClassVar[tuple[str, ...]] = ("kappa", "nu", "psi")
    learns_scales: ClassVar[bool] = True
    attributes: ClassVar[Mapping[str, str]] = {"means_": "mu", "covariance_": "Sigma"}
    missing: ClassVar[str] = "marginalised"
    fits_missing: ClassVar[bool] = False

    mu: Hyperparameter = array(CLASS, FEATURE, default=None)
    kappa: Hyperparameter = array(CLASS, default=None)
    nu: Hyperparameter = array(CLASS, default=None)
    psi: Hyperparameter = array(CLASS, FEATURE, FEATURE_BIS, default=None)
    shift: Hyperparameter = array(FEATURE, default=0.0)
    ignored: Hyperparameter = array(FEATURE, default=False)
    shared: bool = False

    @cached_property
    def factor(self) -> Array:
        """Return (C or 1, D, D) lower Cholesky factors of psi."""
        try:
            return np.linalg.cholesky(self.psi)
        except np.linalg.LinAlgError:
            raise ValueError(
                "psi0 must be symmetric positive definite; add a little to its diagonal"
            ) from None

    @cached_property
    def whiten(self) -> Array:
        """Return (C or 1, D, D) inverses of `factor`."""
        return gaussian.inverse_of_lower(self.factor)

    @cached_property
    def log_det(self) -> Array:
        """Return (C or 1,) log determinants of psi."""
        return 2 * np.log(np.diagonal(self.factor, axis1=1, axis2=2)).sum(axis=1)

    @cached_property
    def dim(self) -> int:
        """D, with the ignored columns."""
        return self.mu.shape[1]

    def marginal(self, columns: Array) -> Self:
        """Return the same family for some of the columns: nu drops by the number of the others."""
        return replace(
            self,
            mu=self.mu[:, columns],
            nu=self.nu - (self.dim - len(columns)),
            psi=self.psi[:, columns[:, None], columns],
            shift=self.shift[columns],
            ignored=np.zeros(len(columns), dtype=bool),
        )

    def of_live(self, columns: Array) -> Self:
        """Return the family of some columns that are not ignored, in their order."""
        return self if len(columns) == self.dim else self.marginal(columns)

    @cached_property
    def live(self) -> Array:
        """Columns that are not ignored."""
        return np.flatnonzero(~np.broadcast_to(self.ignored, self.dim))

    def parts(self, X: Matrix, least: int = 1) -> Iterator[tuple[Array | slice, Self, Array]]:
        """Yield (rows, family of their columns, cells) for each of `gaussian.patterns`.

        The cells are minus the `shift` of that family.
        """
        for rows, columns in gaussian.patterns(X, self.live, least):
            family = self.of_live(columns)
            for some, x in gaussian.cell_blocks(X, rows, columns):
                yield some, family, x - family.shift

    # -- contract ----------------------------------------------------------------------------

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``mu``: class means; ``Sigma``: covariance, with a class dim unless shared."""
        sigma = (FEATURE, FEATURE_BIS)
        return {"mu": (CLASS, FEATURE), "Sigma": sigma if self.shared else (CLASS, *sigma)}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) Normal log-densities of the observed part of each row."""
        mu, sigma = self.flat(theta)
        log_p = gaussian.log_normal_of_draws(X, mu, sigma, self.live)
        return log_p.reshape(*np.shape(theta["mu"])[:-2], *log_p.shape[1:])

    def discriminant(self, X: Matrix, theta: Theta) -> Array:
        """Return the log-likelihood less its quadratic part, which classes share with Sigma."""
        if not self.shared:
            return self.log_likelihood(X, theta)
        mu, sigma = self.flat(theta)
        centre = mu.sum(axis=(0, 1)) / max(1, mu[..., 0].size)

        log_odds = np.empty((len(mu), X.shape[0], mu.shape[1]))
        for rows, columns in gaussian.patterns(X, self.live):
            step = (mu - centre)[..., columns]
            block = sigma[:, 0, columns[:, None], columns]
            w = np.swapaxes(np.linalg.solve(block, np.swapaxes(step, 1, 2)), 1, 2)
            level = -0.5 * (w * step).sum(axis=-1)
            flat = w.reshape(level.size, len(columns)).T
            for some, x in gaussian.cell_blocks(X, rows, columns):
                scores = ((x - centre[columns]) @ flat).reshape(len(x), *level.shape)
                log_odds[:, some] = scores.swapaxes(0, 1) + level[:, None]
        return log_odds.reshape(*np.shape(theta["mu"])[:-2], *log_odds.shape[1:])

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """w = Sigma^-1 mu of plug-ins with a shared covariance."""
        if theta is None:
            raise NotLinearError(
                "the posterior predictive is a multivariate Student t: even with one covariance "
                "its boundary is curved unless the classes have equal counts and weights, and its "
                "log-odds are not linear even then; a plug-in "
                "(method='posterior_mean', 'map' or 'mle') with a shared covariance is linear"
            )
        if not self.shared:
            raise NotLinearError(
                "each class has its own covariance, so the rule is quadratic; "
                "LinearDiscriminant is linear"
            )
        live, mu = self.live, np.asarray(theta["mu"])
        w = np.zeros(mu.shape)
        sigma = np.asarray(theta["Sigma"])[live[:, None], live]
        w[:, live] = np.linalg.solve(sigma, mu[:, live].T).T
        return w, -0.5 * (w * mu).sum(axis=-1)

    def flat(self, theta: Theta) -> tuple[Array, Array]:
        """mu (S, C, D) and Sigma (S, G, D, D) of all draws."""
        mu, sigma = (np.asarray(theta[name], dtype=np.float64) for name in ("mu", "Sigma"))
        if self.shared:
            sigma = sigma[..., None, :, :]
        n = math.prod(mu.shape[:-2])
        return mu.reshape(n, *mu.shape[-2:]), sigma.reshape(n, *sigma.shape[-3:])

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) Normal rows."""
        mean, sigma = self.rows_of(theta, "mu", y), self.rows_of(theta, "Sigma", y)
        z = rng.standard_normal((len(y), mean.shape[-1]))
        return mean + np.einsum("nij,nj->ni", np.linalg.cholesky(sigma), z)

    # -- in PyMC -------------------------------------------------------------------------------
    #
    # In a basis B with Psi = B diag(w) B^T and Psi + S = B B^T, S the scatter of the rows,
    # Sigma = B T^-1 T^-T B^T with T lower triangular. The free variables are
    #
    # * ``precision_diagonal`` t_jj^2 ~ Gamma((nu - D + 1 + j)/2, w_j/2), j from 0
    # * ``precision_lower`` t_ij ~ Normal(0, 1/w_j), i > j
    # * ``mu_white`` z, Normal given T, where mu = m + B T^-1 z/sqrt(kappa + n), and m is the
    #   average of prior mean and mean row, weighted by kappa and n
    #
    # Given the rows, z is standard Normal and T nearly so below its diagonal. B and m decide on the
    # coordinates alone, not on the density of mu and Sigma. The density of the statistics has
    # elementwise operations and sums alone, which numba compiles in half the time that it takes
    # for factors and solves. Source: Muirhead (1982), Aspects of Multivariate Statistical Theory,
    # theorem 3.2.14.

    def coordinates(self, stats: ScatterStats | None) -> Variables:
        """{name: (dims, array)} that the variables of the live columns are made of.

        Of a covariance that classes share, arrays have no first axis.
        """
        live, group = self.live, () if self.shared else (CLASS,)
        family, n = self.of_live(live), np.zeros(len(self.mu))
        psi, step = family.psi, np.zeros(family.mu.shape)
        if stats is not None:
            n = stats.n
            psi = psi + stats.scatter[:, live[:, None], live]
            mean = stats.about(self.shift)[:, live]
            step = np.where(n[:, None] > 0, mean - family.mu, 0.0)
        # Psi and Psi + S made diagonal together; a factor of Psi has twice the digits of Psi
        total = np.linalg.cholesky(psi)
        u, s, _ = np.linalg.svd(np.linalg.solve(total, family.factor))
        base, weight = total @ u, np.square(s)
        log_det = np.log(np.diagonal(total, axis1=1, axis2=2)).sum(axis=1)
        k: Any = 0 if self.shared else slice(None)
        return {
            "prior_nu": (group, family.nu[k]),
            "prior_kappa": ((CLASS,), self.kappa),
            "prior_location": ((CLASS, FEATURE), self.mu + self.shift),
            "prior_weight": ((*group, "axis"), weight[k]),
            "stats_n": ((CLASS,), n),
            "stats_weight": ((*group, "axis"), np.maximum(1 - weight, 0.0)[k]),
            "stats_step": ((CLASS, "axis"), np.linalg.solve(base, step[..., None])[..., 0]),
            "base": ((*group, "live", "axis"), base[k]),
            "log_norm": (group, (-log_det - 0.5 * len(live) * np.log(2 * np.pi))[k]),
        }

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """Declare the exact prior in Bartlett's coordinates; Normal rows, or their statistics.

        Columns that are `ignored` are constants.
        """
        import pymc as pm
        import pytensor.tensor as pt

        if X is not None:
            of_rows = self.stats(X, y.get_value(), len(self.mu))  # refuses missing cells
            stats = of_rows if stats is None else stats
        live, group = self.live, () if self.shared else (CLASS,)
        dim, (i, j) = len(live), np.tril_indices(len(live), -1)
        pm.modelcontext(None).add_coords(
            {f"{prefix}axis": np.arange(dim), f"{prefix}axis_pair": np.arange(len(i))}
        )
        data = {
            name: pm.Data(f"{prefix}{name}", value, dims=prefixed(prefix, dims))
            for name, (dims, value) in self.coordinates(stats).items()
        }
        kappa, n, step = data["prior_kappa"][:, None], data["stats_n"][:, None], data["stats_step"]
        weight, base, location = data["prior_weight"], data["base"], data["prior_location"]

        square = pm.Gamma(
            f"{prefix}precision_diagonal",
            (data["prior_nu"][..., None] - np.arange(dim)[::-1]) / 2,
            weight / 2,
            dims=prefixed(prefix, (*group, "axis")),
        )
        lower = pm.Normal(
            f"{prefix}precision_lower",
            0.0,
            (1 / pt.sqrt(weight))[..., j],
            dims=prefixed(prefix, (*group, "axis_pair")),
        )
        on_diagonal, eye = np.arange(dim), np.eye(dim)
        T = pt.zeros((*weight.shape[:-1], dim, dim))[..., i, j].set(lower)
        T = T[..., on_diagonal, on_diagonal].set(pt.sqrt(square))
        turned = (T * step[:, None, :]).sum(axis=-1)
        share, unit = n / (n + kappa), 1 / pt.sqrt(n + kappa)
        z = pm.Normal(
            f"{prefix}mu_white",
            -share * turned / unit,
            1 / (unit * pt.sqrt(kappa)),
            dims=prefixed(prefix, (CLASS, "axis")),
        )

        # T^-1 by Newton's method, exact in log2(D) steps because T is triangular, and products as
        # sums, for the same reason
        inverse = eye / pt.sqrt(square)[..., None, :]
        for _ in range(max(dim - 1, 0).bit_length()):
            inverse = _product(inverse, 2 * eye - _product(T, inverse))
        factor = _product(base, inverse)
        step_of_mean = (base * (share * step)[:, None]).sum(axis=-1)
        move = (factor * (unit * z)[:, None]).sum(axis=-1) + step_of_mean
        Sigma = _product(factor, factor.mT)
        if dim < self.dim:
            unit_scale = np.eye(self.dim) * (self.psi / self.nu[:, None, None])
            whole = pt.as_tensor(unit_scale[0] if self.shared else unit_scale)
            Sigma = whole[..., live[:, None], live].set(Sigma)
        dims = {name: prefixed(prefix, d) for name, d in self.params.items()}
        mu = pm.Deterministic(f"{prefix}mu", location[:, live].inc(move), dims=dims["mu"])
        Sigma = pm.Deterministic(f"{prefix}Sigma", Sigma, dims=dims["Sigma"])

        if X is not None:
            self._observe(prefix, X, y, mu, Sigma)
        elif stats is not None:
            members = n.sum() if self.shared else n[:, 0]
            gap = unit * z - (1 - share) * turned
            log_p = members * (pt.log(square).sum(axis=-1) / 2 + data["log_norm"])
            squares = (data["stats_weight"][..., None, :] * pt.sqr(T)).sum() + (
                n * pt.sqr(gap)
            ).sum()
            pm.Potential(f"{prefix}x", log_p.sum() - squares / 2)
        return {"mu": mu, "Sigma": Sigma}

    def _observe(self, prefix: str, X: Matrix, y, mu, Sigma) -> None:
        """Observe rows, of whose density the live columns are part."""
        import pymc as pm

        live, group = self.live, "" if self.shared else "c,"

        def draw(y, mu, Sigma, size):
            return pm.MvNormal.dist(mu[y], Sigma if self.shared else Sigma[y], size=size)

        def log_likelihood(x, seen, mu, Sigma):
            block = Sigma[..., live[:, None], live]
            return gaussian.log_normal(
                mu[:, live], block[None] if self.shared else block, x[:, live]
            )

        signature = f"(c,d),({group}d,d)->(d)"
        observe_rows(prefix, X, y, "MvNormal", draw, log_likelihood, signature, mu, Sigma)

    def pymc_log_likelihood(self, X: Matrix, theta, *, prefix: str = ""):
        """Normal densities of the observed cells; the others are integrated out."""
        sigma = theta["Sigma"][None] if self.shared else theta["Sigma"]
        cells = np.where(self.ignored, np.nan, np.asarray(X, dtype=np.float64))
        return gaussian.log_density(cells, theta["mu"], sigma, f"{prefix}rows")

    def pymc_coordinates(self, theta: Theta, stats: ScatterStats | None) -> Variables:
        """``precision_diagonal``, ``precision_lower`` and ``mu_white`` behind mu and Sigma."""
        data = {name: value for name, (_, value) in self.coordinates(stats).items()}
        live, group = self.live, () if self.shared else (CLASS,)
        kappa, n = data["prior_kappa"][:, None], data["stats_n"][:, None]
        whiten = np.linalg.inv(data["base"])
        block = np.asarray(theta["Sigma"])[..., live[:, None], live]
        T = np.linalg.inv(np.linalg.cholesky(whiten @ block @ np.swapaxes(whiten, -1, -2)))
        d = (np.asarray(theta["mu"]) - data["prior_location"])[..., live]
        white = (whiten @ d[..., None])[..., 0] - n / (n + kappa) * data["stats_step"]
        z = ((T[..., None, :, :] if self.shared else T) @ white[..., None])[..., 0]
        i, j = np.tril_indices(len(live), -1)
        return {
            "precision_diagonal": ((*group, "axis"), np.square(np.diagonal(T, axis1=-2, axis2=-1))),
            "precision_lower": ((*group, "axis_pair"), T[..., i, j]),
            "mu_white": ((CLASS, "axis"), z * np.sqrt(n + kappa)),
        }

    def pymc_data(self, stats: ScatterStats | None, *, prefix: str = "") -> dict[str, Array]:
        """Return the coordinate system, which holds prior and statistics."""
        return {f"{prefix}{name}": value for name, (_, value) in self.coordinates(stats).items()}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Per class and shared, with correlated psi."""
        pattern = np.arange(n_classes * n_features).reshape(n_classes, n_features) % 4
        psi = 2.0 * (np.eye(n_features) + 0.4)
        priors = []
        for shared in (False, True):
            k = 1 if shared else n_classes
            priors.append(
                cls(
                    mu=pattern - 1.0,
                    kappa=0.5 + np.arange(n_classes),
                    nu=n_features + 4.0 + np.arange(k),
                    psi=psi * (1.0 + np.arange(k))[:, None, None],
                    shift=np.zeros(n_features),
                    ignored=np.zeros(n_features, dtype=bool),
                    shared=shared,
                )
            )
        return priors

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> ScatterStats:
        """Block by block: centred products about the first row."""
        return ScatterStats.of_rows(X, y, n_classes, weight, shared=self.shared)

    def resolve(self, stats: ScatterStats) -> Self:
        """Fill in the data-scaled defaults from the pooled statistics."""
        n_classes, n_features = shape = stats.mean.shape
        groups = (1,) if self.shared else (n_classes,)
        n = stats.n[:, None]
        default = gaussian.unit_information(n, stats.mean, stats.variation(), stats.shift)
        ignored = default.constant & (self.psi is None)
        mu, shift = prior_location(self.mu, self.shift, default, stats.shift, shape[0])
        nu = broadcast_prior("nu0", n_features + 2.0 if self.nu is None else self.nu, groups)
        if np.any(nu <= n_features - 1):
            raise ValueError(
                f"nu0 must be > D - 1 = {n_features - 1} for a proper inverse Wishart prior of "
                f"{n_features} features, got {np.min(nu):g}"
            )
        if self.psi is None:  # the live columns have nu - n_ignored degrees of freedom
            weight = nu - ignored.sum() if not ignored.all() else np.ones(groups)
            psi = weight[:, None, None] * self._default_scale(stats, default, n)
        else:
            psi = _scale_matrices(self.psi, groups[0], n_features)
        resolved = replace(
            self,
            mu=mu,
            kappa=broadcast_prior("kappa0", 0.1 if self.kappa is None else self.kappa, shape[:1]),
            nu=nu,
            psi=psi,
            shift=shift,
            ignored=ignored,
        )
        resolved.factor  # noqa: B018 - raises where psi is not positive definite
        return resolved

    @staticmethod
    def _default_scale(stats: ScatterStats, default: gaussian.UnitInformation, n: Array) -> Array:
        """Return (D, D) pooled within-class variances with shrunken correlations."""
        live = np.flatnonzero(~default.constant)
        freedom = np.maximum(n - 1, 0).sum(axis=0).min(initial=np.inf)
        pooled = stats.scatter.sum(axis=0)[live[:, None], live]
        matrix = np.eye(len(default.variance))
        matrix[live[:, None], live] = shrunken_correlations(pooled, freedom)
        width = np.sqrt(default.variance)
        return matrix * width * width[:, None]

    def update(self, stats: ScatterStats) -> Self:
        """Add rows to kappa and nu, scatter and the step of the mean to psi."""
        prior = self.mu + (self.shift - stats.shift)
        kappa = self.kappa + stats.n
        step = np.where((stats.n > 0)[:, None], stats.mean - prior, 0.0)
        share = stats.n / kappa
        added = stats.squares(self.kappa * share, step)
        n = stats.grouped(stats.n)[:, 0]
        return replace(
            self,
            mu=prior + share[:, None] * step,
            kappa=kappa,
            nu=self.nu + n,
            psi=self.psi + stats.scatter + added,
            shift=stats.shift,
        )

    def mle(self, stats: ScatterStats) -> dict[str, Array]:
        """Sample means; scatter over count, per class or pooled."""
        refuse_undefined("mle", stats.n <= 0, "it has no row")
        n = stats.grouped(stats.n)[:, 0]
        sigma = stats.scatter / n[:, None, None]
        for c, matrix in enumerate(sigma):
            varies = np.all(np.diagonal(matrix) > 0)
            if not varies or np.linalg.eigvalsh(correlations(matrix))[0] < 1e-12:
                raise UndefinedEstimateError(
                    "mle",
                    f"the sample covariance of {n[c]:g} rows in {sigma.shape[1]} features "
                    "is singular",
                    None if self.shared else c,
                    advice="use method='map' or the posterior predictive",
                )
        return {"mu": stats.mean + stats.shift, "Sigma": sigma[0] if self.shared else sigma}

    def map(self) -> dict[str, Array]:
        """Joint mode in (mu, Sigma): psi/(nu + D + 1 + J), J the number of means on one Sigma.

        D and nu are those of the live columns: the mode does not know of columns left out.
        """
        means = len(self.mu) if self.shared else 1
        live = len(self.live)
        return self._theta(self.nu - (self.dim - live) + live + 1 + means)

    def mean(self) -> dict[str, Array]:
        """E mu = m; E Sigma = psi/(nu - D - 1), which needs nu > D + 1."""
        d = self.nu - self.dim - 1
        refuse_undefined(
            "posterior_mean",
            d <= 0,
            f"the covariance has no expectation while nu0 + rows <= D + 1 = {self.dim + 1}",
            "use a larger nu0 or more rows",
        )
        return self._theta(d)

    def _theta(self, divisor: Array) -> dict[str, Array]:
        sigma = self.psi / divisor[:, None, None]
        return {"mu": self.mu + self.shift, "Sigma": sigma[0] if self.shared else sigma}

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Bartlett's decomposition of the precision, then mu given Sigma."""
        k, dim = len(self.psi), self.dim
        a = np.tril(rng.standard_normal((n, k, dim, dim)), -1)
        df = self.nu[:, None] - np.arange(dim)
        a[..., np.arange(dim), np.arange(dim)] = np.sqrt(rng.chisquare(df, size=(n, k, dim)))
        # psi = L L^T, precision = (L^-T A)(L^-T A)^T, hence Sigma = B^T B with B = A^-1 L^T
        b = np.linalg.solve(a, np.broadcast_to(np.swapaxes(self.factor, 1, 2), a.shape))
        sigma = np.swapaxes(b, -1, -2) @ b
        z = rng.standard_normal((n, *self.mu.shape))
        step = np.einsum("skji,scj->sci" if self.shared else "scji,scj->sci", b, z)
        mu = self.mu + self.shift + step / np.sqrt(self.kappa)[:, None]
        return {"mu": mu, "Sigma": sigma[:, 0] if self.shared else sigma}

    def n_parameters(self) -> int:
        """Means and covariance matrices."""
        return self.mu.size + self.psi.size

    def log_evidence(self, stats: ScatterStats) -> float:
        """log p(X | y) of the live columns, means and covariances integrated out."""
        live = self.live
        if len(live) < self.dim:
            live_stats = replace(
                stats,
                mean=stats.mean[:, live],
                scatter=stats.scatter[:, live[:, None], live],
                shift=stats.shift[live],
            )
            return self.marginal(live).log_evidence(live_stats)
        posterior = self.update(stats)
        n = stats.grouped(stats.n)[:, 0]
        groups = (
            log_multigamma_difference(self.nu / 2, n / 2, self.dim)
            - n * self.dim / 2 * np.log(np.pi)
            - self.nu / 2 * (posterior.log_det - self.log_det)
            - n / 2 * posterior.log_det
        )
        return float(groups.sum() - self.dim / 2 * np.log1p(stats.n / self.kappa).sum())

    def information(self, theta: Theta, weights: Array) -> Array:
        """Return (D,) of each feature on its own (its Normal margins), in nats; 0 where ignored."""
        mu = np.asarray(theta["mu"])
        variances = np.diagonal(theta["Sigma"], axis1=-2, axis2=-1)
        nats = gaussian.gaussian_information(mu, np.broadcast_to(variances, mu.shape), weights)
        return np.where(self.ignored, 0.0, nats)

    def scaled(self, factors: Mapping[str, float]) -> Self:
        """Scale as in `ConjugateFamily`; nu is scaled above its limit D - 1."""
        family = super().scaled({k: f for k, f in factors.items() if k != "nu"})
        limit = self.dim - 1
        return replace(family, nu=limit + (self.nu - limit) * factors.get("nu", 1.0))

    def strengthened(self, factors: Mapping[str, float]) -> Self:
        """nu above its limit, or all of it; psi in proportion, so that E Sigma^-1 stays."""
        f = factors.get("nu", 1.0)
        family = self.scaled(factors)
        nu = self.nu * f if f > 1 else family.nu
        return replace(family, nu=nu, psi=family.psi * (nu / self.nu)[:, None, None])

    def other_scales(self, given: Self, stats: ScatterStats) -> dict[str, Self]:
        """Other correlations, and standard deviations of each class, where psi is the default.

        As in regularised discriminant analysis (Friedman 1989): no correlations, or those of the
        pooled scatter; with pooled standard deviations, or the class's own.
        """
        if given.psi is not None or len(self.live) < 2:
            return {}
        width = np.sqrt(np.diagonal(self.psi, axis1=1, axis2=2))
        shrunken = self.psi / width[:, :, None] / width[:, None]
        shares = {"no correlations": np.eye(self.dim)}
        freedom = np.maximum(stats.n - 1, 0)
        if freedom.sum() >= _CLEAR * len(self.live):
            pooled, both = np.array(shrunken), (self.live[:, None], self.live)
            pooled[:, *both] = correlations(stats.scatter.sum(axis=0)[both], _LEAST)
            shares["pooled correlations"] = pooled
        scales = {name: r * width[:, :, None] * width[:, None] for name, r in shares.items()}
        if not self.shared:
            # one row's worth of the pooled variance, for classes with few rows or none
            weight = (self.nu - self.dim + len(self.live))[:, None]
            class_width = np.sqrt(
                (weight * stats.variation() + np.square(width)) / (freedom[:, None] + 1)
            )
            shares = {"shrunken correlations": shrunken, **shares}
            scales |= {
                f"standard deviations of each class, {name}": r
                * class_width[:, :, None]
                * class_width[:, None]
                for name, r in shares.items()
            }
        return {name: replace(self, psi=psi) for name, psi in scales.items()}

    def log_density(self, theta: Theta) -> Array:
        """Add inverse Wishart densities of Sigma and Normal ones of mu, of live columns."""
        live, family = self.live, self.of_live(self.live)

        def of_draws(t: dict[str, Array]) -> Array:
            sigma = t["Sigma"][:, None] if self.shared else t["Sigma"]
            sigma = sigma[..., live[:, None], live]
            factor, inside = _cholesky(sigma)
            log_p = densities.log_inverse_wishart_density(factor, family.nu, family.factor).sum(
                axis=-1
            )
            length = np.linalg.norm(factor, axis=-1)
            step = (t["mu"][..., live] - family.shift - family.mu) / length
            white = np.linalg.solve(factor / length[..., None], step[..., None])[..., 0]
            log_norm = len(live) * np.log(family.kappa / (2 * np.pi))
            log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
            q = family.kappa * np.square(white).sum(axis=-1)
            log_p += 0.5 * (log_norm - log_det - q).sum(axis=-1)
            return np.where(inside, log_p, -np.inf)

        return densities.density_by_draws(of_draws, theta, self.params)

    def log_predictive(self, X: Matrix) -> Array:
        """Return (N, C), as in `ConjugateFamily.log_predictive`."""
        log_p = np.empty((X.shape[0], len(self.mu)))
        for rows, family, x in self.parts(X, _FEW_ROWS):
            dim: Any = family.dim
            if passes.has_nan(x):
                q, half_log_det = gaussian.observed_distances(x, family.mu, family.psi)
                dim = (~np.isnan(x)).sum(axis=1)[:, None]
            else:
                q = gaussian.squared_distances(x, family.mu, family.whiten)
                half_log_det = family.log_det / 2
            df = family.nu - family.dim + 1
            log_p[rows] = _log_student(q, df, dim, family.kappa, half_log_det)
        return log_p

    def log_predictive_without(self, X: Matrix, y: Array, weight: Array) -> tuple[Array, Array]:
        """Update by rank one; rows of the training set have no missing cells."""
        live, family = self.live, self.of_live(self.live)
        n_rows, n_classes = X.shape[0], len(self.mu)
        log_x = np.zeros((n_rows, n_classes)) if self.shared else self.log_predictive(X)
        left = np.ones(n_rows)
        for k in range(n_classes) if len(live) else ():
            # a matrix that classes share loses the row in all of them
            changed = slice(None) if self.shared else slice(k, k + 1)
            members = np.flatnonzero(y == k)
            for block in passes.row_blocks(len(members), len(live) + n_classes):
                rows = members[block]
                x = passes.dense_block(X, rows)[:, live] - family.shift
                log_x[rows, changed], left[rows] = _without(family, x, k, changed, weight[rows])
        return log_x, left

    def draw_log_density(self, seed: passes.Seed, X: Matrix, n: int) -> Array:
        """Draw (n, N, C), as in `DensityDraws`; rows share the random numbers."""
        if self.shared:
            return _shared_draws(self, seed, X, n)
        log_x = np.zeros((n, X.shape[0], len(self.mu)))
        for rows, family, x in self.parts(X):
            if family.dim:
                log_x[:, rows] = _draws_of_complete_rows(family, seed, n, x)
        return log_x

    def margins(self) -> NormalInverseGamma:
        """Independent columns: a variance is inverse chi-squared with D - 1 degrees less."""
        nu = (self.nu - (self.mu.shape[1] - 1))[:, None]
        psi = np.diagonal(self.psi, axis1=1, axis2=2)
        variance: Any = "tied" if self.shared else "class"
        kappa = np.broadcast_to(self.kappa[:, None], self.mu.shape)
        nu = np.broadcast_to(nu, psi.shape)
        return NormalInverseGamma(self.mu, kappa, nu, psi / nu, self.shift, self.ignored, variance)


def _product(a, b):
    """Return products of matrices (..., D, D), as one sum."""
    return (a[..., :, :, None] * b[..., None, :, :]).sum(axis=-2)


def _scale_matrices(psi, groups: int, n_features: int) -> Array:
    """psi as (groups, D, D) symmetric matrices."""
    value = np.asarray(psi, dtype=np.float64)
    if value.ndim <= 1:
        diagonal = broadcast_prior("psi0", value, (n_features,), largest=LARGEST**2)
        value = np.diag(diagonal)
    try:
        matrices = np.array(np.broadcast_to(value, (groups, n_features, n_features)))
    except ValueError:
        raise ValueError(
            f"psi0 has shape {value.shape}; give a number, ({n_features},), "
            f"({n_features}, {n_features}) or ({groups}, {n_features}, {n_features})"
        ) from None
    if not np.all(np.isfinite(matrices)) or not np.allclose(
        matrices, np.swapaxes(matrices, 1, 2), rtol=1e-8
    ):
        raise ValueError("psi0 must be finite and symmetric")
    return matrices


# ------------------------------------------------------------------------------------------------
# The default scale matrix: what all classes together say of variances and correlations.
#
# With the pooled within-class scatter W, its degrees of freedom :math:`f = \sum_c \max(n_c - 1,
# 0)`, the correlations r of W and the variances :math:`s^2` of `gaussian.unit_information`,
#
# .. math:: T_{jk} = s_j s_k\, [(1 - \rho)\, r_{jk} + \rho\, 1(j = k)], \qquad
#           \rho = 2 D\, \frac{\sum_{j \ne k} (1 - r_{jk}^2)^2 / f}{\sum_{j \ne k} r_{jk}^2}
#
# held between max(1/f, 1/1000) and 1. Without the factor 2 D it is the shrinkage of Schäfer and
# Strimmer (2005), A shrinkage approach to large-scale covariance matrix estimation, with the
# variance of a correlation under a Normal, :math:`(1 - r^2)^2/f`, which needs no moment but the
# second: T is a function of statistics that add up, equivariant under shift and scale of each
# column. Their loss is that of single correlations; what classes are told apart by is the inverse,
# to which errors of all D columns add. The factor was chosen by
# ``tests/benchmarks/priors_on_open_sets.py``: correlations that are clear are kept, so that
# directions with little variance in all classes are not drowned, and doubtful ones are dropped.
# Training rows with missing cells (of a fit by draws) tell of variances alone: there T is
# diagonal.

_FIRMNESS = 2.0  # times D
_CLEAR = 3.5  # times D: of fewer degrees of freedom pooled correlations may be nearly singular
_LEAST = 1e-3  # of rho: T stays positive definite by a margin, duplicated columns or not


def shrunken_correlations(scatter: Array, freedom: float) -> Array:
    """Return (D, D) correlations of a pooled within-class scatter, shrunken towards 0.

    Parameters
    ----------
    scatter : (D, D)
    freedom : float
        Degrees of freedom of it; without one nothing is known, and the identity is returned.
    """
    r2 = np.square(correlations(scatter))
    np.fill_diagonal(r2, 0.0)
    strength = r2.sum()
    if freedom <= 1 or strength == 0:
        return np.eye(len(scatter))
    doubt = (np.square(1 - r2).sum() - len(r2)) / freedom
    rho = min(1.0, max(_FIRMNESS * len(r2) * doubt / strength, 1 / freedom, _LEAST))
    return correlations(scatter, rho)


def correlations(scatter: Array, rho: float = 0.0) -> Array:
    """Return (D, D) correlations times 1 - rho; 0 where a column does not vary."""
    width = np.sqrt(np.maximum(np.diagonal(scatter), 0.0))
    unit = np.where(width > 0, width, 1.0)
    r = (1 - rho) * np.clip(scatter / unit / unit[:, None], -1.0, 1.0)
    np.fill_diagonal(r, 1.0)
    return r


# ------------------------------------------------------------------------------------------------
# The predictive of a training row without the row itself: a rank-one change of psi.
#
# With row i of weight w in class k, :math:`\delta_c = x_i - m_c`, :math:`\kappa' = \kappa_k - w`,
# :math:`r = w \kappa_k / \kappa'` and distances :math:`q_{cd} = \delta_c^T \Psi^{-1} \delta_d`:
#
# .. math:: \Psi' = \Psi - r\, \delta_k \delta_k^T, \qquad |\Psi'| = |\Psi| (1 - r q_{kk}), \qquad
#           \delta_c^T \Psi'^{-1} \delta_c = q_{cc} + \frac{r\, q_{ck}^2}{1 - r q_{kk}}
#
# and :math:`x_i - m_k' = \delta_k \kappa_k / \kappa'`. No row has a matrix of its own. Source: the
# Sherman-Morrison formula and the matrix determinant lemma.


def _without(
    f: "NormalInverseWishart", x: Array, k: int, changed: slice, w: Array
) -> tuple[Array, Array]:
    """Return the densities (n, changed classes) without the rows, of class k; (n,) 1 - r q."""
    g, own_class = (0, k) if f.shared else (k, 0)
    whiten, mu = f.whiten[g].T, f.mu[changed]
    d, steps = (x - f.mu[k]) @ whiten, (mu - f.mu[k]) @ whiten
    # no digit is lost: psi holds the row, which is near its own class in the metric of psi^-1
    q_own, along = np.einsum("nd,nd->n", d, d), d @ steps.T
    q = q_own[:, None] - 2 * along + np.square(steps).sum(axis=1)
    kappa = f.kappa[k] - w
    ratio = f.kappa[k] / kappa
    left = 1 - w * ratio * q_own
    kappas = np.tile(f.kappa[changed], (len(x), 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        q += (w * ratio / left)[:, None] * np.square(q_own[:, None] - along)
        # the mean of its own class has moved away from the row
        q[:, own_class], kappas[:, own_class] = np.square(ratio) * q_own / left, kappa
        half_log_det = (f.log_det[g] + np.log(left)) / 2
        df = f.nu[g] - w - f.dim + 1
        return _log_student(q, df[:, None], f.dim, kappas, half_log_det[:, None]), left


# ------------------------------------------------------------------------------------------------
# Densities of rows, theta integrated out, and of the means and covariances.
#
# The posterior predictive is multivariate Student t, of the observed cells of each row: degrees of
# freedom nu - D + 1, shape psi (1 + 1/kappa)/df. Source: Gelman et al., Bayesian Data
# Analysis (3rd ed.), section 3.6.

_FEW_ROWS = 64  # of a pattern of missing cells: each is factorised by itself, all in one pass


def _log_student(q: Array, df: Array, dim, kappa: Array, half_log_det: Array) -> Array:
    """Return Student t densities of `dim` columns at squared distances in the metric of psi^-1."""
    log_norm = log_gamma_difference(df / 2, dim / 2) - half_log_det
    log_norm = log_norm - dim / 2 * (np.log(np.pi) + np.log1p(1 / kappa))
    return np.asarray(log_norm - (df + dim) / 2 * np.log1p(kappa / (kappa + 1) * q))


def _cholesky(sigma: Array) -> tuple[Array, Array]:
    """Lower factors of matrices (S, G, D, D), and (S,) whether all G are positive definite.

    Where they are not the factor is the identity.
    """
    factor = np.broadcast_to(np.eye(sigma.shape[-1]), sigma.shape).copy()
    inside = np.zeros(len(sigma), dtype=bool)
    for s, matrices in enumerate(sigma):
        with contextlib.suppress(np.linalg.LinAlgError):
            factor[s] = np.linalg.cholesky(matrices)
            inside[s] = True
    return factor, inside
