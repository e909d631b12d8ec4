r"""Densities of rows, theta integrated out, and of the means and covariances.

The posterior predictive is multivariate Student t, of the observed cells of each row: degrees of
freedom nu - D + 1, shape psi (1 + 1/kappa)/df. Source: Gelman et al., Bayesian Data
Analysis (3rd ed.), section 3.6.

Draws of the class log-densities at a cost that does not grow with D: no covariance is drawn.

With W ~ Wishart(nu, G), G the products of a row's distances from the class means in the
metric of psi^-1, the squared distance of class c is
:math:`[(z + \sqrt{\kappa W_{cc}})^2 + \chi^2_{D-1}]/\kappa`. Exact for each row.

The predictive of a training row without the row itself: a rank-one change of psi.

With row i of weight w in class k, :math:`\delta_c = x_i - m_c`, :math:`\kappa' = \kappa_k - w`,
:math:`r = w \kappa_k / \kappa'` and distances :math:`q_{cd} = \delta_c^T \Psi^{-1} \delta_d`:

.. math:: \Psi' = \Psi - r\, \delta_k \delta_k^T, \qquad |\Psi'| = |\Psi| (1 - r q_{kk}), \qquad
          \delta_c^T \Psi'^{-1} \delta_c = q_{cc} + \frac{r\, q_{ck}^2}{1 - r q_{kk}}

and :math:`x_i - m_k' = \delta_k \kappa_k / \kappa'`. One triangular solve for all rows and no
matrix of any row's own. Source: the Sherman-Morrison formula and the matrix determinant lemma.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen.families.contract import Theta
from bayesgen.families.shared.densities import density_by_draws, log_inverse_wishart_density
from bayesgen.families.shared.gaussian import noncentral
from bayesgen.families.shared.mahalanobis import (
    common_patterns,
    observed_distances,
    pattern_blocks,
    reader,
    squared_distances,
)
from bayesgen.numerics import kernels
from bayesgen.numerics.kernels import pays
from bayesgen.numerics.rows import Matrix, dense_block, row_blocks
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart

_MOST_COLUMNS = 64  # beyond, products of matrices by BLAS are faster than the kernel
_FEW_ROWS = 64  # of a pattern of missing cells: each is factorised by itself, all in one pass


def log_predictive(f: "NormalInverseWishart", X: Matrix) -> Array:
    """(N, C), as in `ConjugateFamily.log_predictive`."""
    out = np.empty((X.shape[0], len(f.mu)))
    least = _FEW_ROWS if len(f.live) <= _MOST_COLUMNS else 1
    rare, common = common_patterns(X, f.live, least)
    if len(rare):
        _row_by_row(f, X, rare, out)
    for rows, columns in common:
        part = f if len(columns) == f.dim else f.marginal(columns)
        read, n = reader(X, rows, columns)
        if len(columns) <= _MOST_COLUMNS and kernels.pays(n * part.mu.size, predicting=True):
            if n == X.shape[0] and part is f:
                return _compiled(f, X)
            out[rows] = _compiled(part, X[rows][:, columns])
            continue
        scale, log_norm, power = part.student
        q = squared_distances(read, n, part.shift, part.mu, part.factor)
        q *= scale
        np.log1p(q, out=q)
        q *= -power
        q += log_norm
        out[rows] = q
    return out


def student(f: "NormalInverseWishart") -> tuple[Array, Array, Array]:
    """(C,) each: ``log_norm - power log(1 + scale q)`` is the log density at a distance q^2."""
    scale, log_norm, power = _student(f, f.dim)
    arrays = scale, log_norm - f.log_det / 2, power
    scale, log_norm, power = (np.array(np.broadcast_to(a, len(f.mu))) for a in arrays)
    return scale, log_norm, power


def _student(f: "NormalInverseWishart", dim: Any) -> tuple[Array, Array, Array]:
    """As `student`, of so many of the columns, but for the determinant."""
    df = f.nu - f.dim + 1
    log_norm = log_gamma_difference(df / 2, dim / 2) - dim / 2 * (
        np.log(np.pi) + np.log1p(1 / f.kappa)
    )
    return f.kappa / (f.kappa + 1), log_norm, (f.nu - (f.dim - dim) + 1) / 2


def _row_by_row(f: "NormalInverseWishart", X: Matrix, rows: Array, out: Array) -> None:
    """`log_predictive` of some rows, each with missing cells of its own."""
    live = f.live
    scale, log_norm, power = _student(f, np.arange(f.dim + 1)[:, None])
    psi = f.psi[:, live[:, None], live]
    for block in row_blocks(len(rows), len(live)):
        x = dense_block(X, rows[block])[:, live] - f.shift[live]
        q, half_log_det = observed_distances(x, f.mu[:, live], psi)
        seen = (~np.isnan(x)).sum(axis=1)
        density = log_norm[seen] - power[seen] * np.log1p(scale * q)
        out[rows[block]] = density - half_log_det


def _compiled(f: "NormalInverseWishart", X: Array) -> Array:
    """Of all rows and columns of a dense X, by a kernel."""
    from bayesgen.numerics.kernels.compiling import as_data, as_rows, row_slices
    from bayesgen.numerics.kernels.student import correlated_t
    from bayesgen.numerics.kernels.threads import over_blocks

    tables = (np.broadcast_to(f.shift, f.dim), *f.whitening, *f.student)
    arguments = [as_data(np.ascontiguousarray(a, dtype=np.float64)) for a in tables]
    shift, whiten, centre, step, scale, log_norm, power = arguments
    columns = as_data(np.arange(f.dim, dtype=np.uint64))
    out = np.empty((X.shape[0], len(f.mu)))

    def part(start: int, stop: int) -> None:
        for rows in row_slices(X, start, stop):
            x, own = as_rows(X[rows]), out[rows]
            correlated_t(x, columns, shift, whiten, centre, step, scale, log_norm, power, own)

    for _ in over_blocks(part, X.shape[0], X.shape[1], most=32):
        pass
    return out


def log_density(f: "NormalInverseWishart", theta: Theta) -> Array:
    """(...) inverse Wishart densities of Sigma, Normal ones of mu given Sigma, live columns."""
    live = f.live
    part = f if len(live) == f.dim else f.marginal(live)

    def of_draws(t: dict[str, Array]) -> Array:
        sigma = t["Sigma"][:, None] if f.shared else t["Sigma"]
        sigma = sigma[..., live[:, None], live]
        factor, inside = _cholesky(sigma)
        out = log_inverse_wishart_density(factor, part.nu, part.factor).sum(axis=-1)
        length = np.linalg.norm(factor, axis=-1)
        step = (t["mu"][..., live] - part.shift - part.mu) / length
        white = np.linalg.solve(factor / length[..., None], step[..., None])[..., 0]
        log_norm = len(live) * np.log(part.kappa / (2 * np.pi))
        log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        q = part.kappa * np.square(white).sum(axis=-1)
        out += 0.5 * (log_norm - log_det - q).sum(axis=-1)
        return np.where(inside, out, -np.inf)

    return density_by_draws(of_draws, theta, f.params)


def _cholesky(sigma: Array) -> tuple[Array, Array]:
    """Lower factors of matrices (S, G, D, D), and (S,) whether all G are positive definite.

    Where they are not the factor is the identity.
    """
    try:
        return np.linalg.cholesky(sigma), np.ones(len(sigma), dtype=bool)
    except np.linalg.LinAlgError:
        pass
    factor = np.broadcast_to(np.eye(sigma.shape[-1]), sigma.shape).copy()
    inside = np.zeros(len(sigma), dtype=bool)
    for s, matrices in enumerate(sigma):
        try:
            factor[s] = np.linalg.cholesky(matrices)
            inside[s] = True
        except np.linalg.LinAlgError:
            continue
    return factor, inside


def distances(
    f: "NormalInverseWishart", rng: np.random.Generator, X: Matrix, n: int, label: int | None = None
) -> tuple[Array, Array, Array]:
    """As in `SharedVariances`."""
    n_classes, more = len(f.mu), int(label is not None)
    out, d = np.zeros((X.shape[0], n_classes, n)), np.zeros(X.shape[0], dtype=np.intp)
    triangles: dict[int, Array] = {}
    kappa = f.kappa
    for rows, columns in pattern_blocks(X, f.live):
        if not len(columns):
            continue
        part = f if len(columns) == f.dim else f.marginal(columns)
        x = dense_block(X, rows)[:, columns] - part.shift
        gram = _products(part, x)
        if label is not None:  # psi grows by a matrix of rank 1, and the mean moves to the row
            share = kappa[label] / (kappa[label] + 1)
            own = gram[:, label]
            step = share / (1 + share * own[:, label])
            gram -= step[:, None, None] * own[:, :, None] * own[:, None, :]
            gram[:, label] *= share
            gram[:, :, label] *= share
        rank = min(n_classes, part.dim)
        size, axes = np.linalg.eigh(gram)
        root = axes[..., -rank:] * np.sqrt(np.maximum(size[:, None, -rank:], 0.0))
        if part.dim not in triangles:
            triangles[part.dim] = _triangles(rng, part.nu[0] + more, rank, n)
        out[rows], d[rows] = _diagonals(root, triangles[part.dim]), part.dim
    if label is not None:
        kappa = kappa + np.eye(n_classes)[label]
    return out, kappa, d


def _products(f: "NormalInverseWishart", x: Array) -> Array:
    """(n, C, C) products of the distances from the class means in the metric of psi^-1."""
    d = (x[:, None] - f.mu).reshape(-1, f.dim).T
    z = solve_triangular(f.factor[0], d, lower=True).T.reshape(len(x), -1, f.dim)
    return np.asarray(z @ z.transpose(0, 2, 1))


def _diagonals(root: Array, triangles: Array) -> Array:
    """(n, C, S) diagonals of R W R^T, root (n, C, r), for S matrices W by their factors."""
    n_rows, n_classes, rank = root.shape
    out = np.empty((n_rows, n_classes, len(triangles)))
    wide = np.ascontiguousarray(triangles.transpose(1, 2, 0))
    if pays(out.size * rank * rank):
        from bayesgen.numerics.kernels.mixtures import wishart_diagonals

        wishart_diagonals(root, wide, out)
        return out
    for c in range(n_classes):
        w = (root[:, c] @ wide.reshape(rank, -1)).reshape(n_rows, rank, -1)
        np.einsum("nrs,nrs->ns", w, w, out=out[:, c])
    return out


def _triangles(rng: np.random.Generator, nu: float, rank: int, n: int) -> Array:
    """(n, rank, rank) Cholesky factors of draws of Wishart(nu, I): Bartlett's decomposition."""
    out = np.zeros((n, rank, rank))
    i, j = np.tril_indices(rank, -1)
    out[:, i, j] = rng.standard_normal(size=(n, len(i)))
    k = np.arange(rank)
    out[:, k, k] = np.sqrt(rng.chisquare(nu - k, size=(n, rank)))
    return out


def draw(f: "NormalInverseWishart", rng: np.random.Generator, X: Matrix, n: int) -> Array:
    """(n, N, C), as in `DensityDraws`."""
    z = rng.standard_normal(size=(n, len(f.mu)))
    if f.shared:
        return noncentral(rng, z, *distances(f, rng, X, n, None))
    out = np.zeros((n, X.shape[0], len(f.mu)))
    for rows, columns in pattern_blocks(X, f.live):
        if len(columns):
            part = f if len(columns) == f.dim else f.marginal(columns)
            x = dense_block(X, rows)[:, columns] - part.shift
            out[:, rows] = _of_complete_rows(part, rng, z, x)
    return out


def _of_complete_rows(
    f: "NormalInverseWishart", rng: np.random.Generator, z: Array, x: Array
) -> Array:
    """(n, N, C) of classes with covariances of their own."""
    n, dim = len(z), f.dim
    rest = rng.chisquare(dim - 1, size=z.shape) if dim > 1 else np.zeros(z.shape)
    out = np.empty((n, len(x), len(f.mu)))
    for c, (nu, kappa) in enumerate(zip(f.nu, f.kappa, strict=True)):
        d = solve_triangular(f.factor[c], (x - f.mu[c]).T, lower=True)
        w = rng.chisquare(nu, size=(n, 1))
        # |precision| |psi| is a product of chi-squares, the first of them w
        others = rng.chisquare(nu - np.arange(1, dim), size=(n, dim - 1))
        log_det = np.log(w[:, 0]) + np.log(others).sum(axis=1) - f.log_det[c]
        u = np.sqrt(kappa * w * np.square(d).sum(axis=0))
        q = (np.square(z[:, c, None] + u) + rest[:, c, None]) / kappa
        out[:, :, c] = 0.5 * log_det[:, None] - dim / 2 * np.log(2 * np.pi) - 0.5 * q
    return out


_FAR = 100.0  # class means further apart, in standard deviations, are not subtracted afterwards


def log_predictive_without(
    f: "NormalInverseWishart", X: Matrix, y: Array, weight: Array
) -> tuple[Array, Array]:
    """(N, C) and (N,), as in `RowRemoval`; rows of the training set have no missing cells."""
    n_classes, live = len(f.mu), f.live
    part = f if len(live) == f.dim else f.marginal(live)
    left = np.ones(X.shape[0])
    if not len(live):
        return np.zeros((X.shape[0], n_classes)), left
    if f.shared:
        out = np.empty((X.shape[0], n_classes))
        for rows in row_blocks(X.shape[0], len(live) * n_classes):
            x = dense_block(X, rows)[:, live] - part.shift
            out[rows], left[rows] = _of_shared(part, x, y[rows], weight[rows])
        return out, left
    out = f.log_predictive(X)
    for k in range(n_classes):
        own = np.flatnonzero(y == k)
        for block in row_blocks(len(own), len(live)):
            rows_of_k = own[block]
            x = dense_block(X, rows_of_k)[:, live] - part.shift
            z = _whitened(part, k, x - part.mu[k])
            change = _Change.of(part, k, np.einsum("nd,nd->n", z, z), weight[rows_of_k])
            out[rows_of_k, k], left[rows_of_k] = change.of_own_class(), change.left
    return out, left


def _whitened(f: "NormalInverseWishart", g: int, d: Array) -> Array:
    """(n, D) differences in the metric of psi^-1."""
    z: Array = solve_triangular(f.factor[g], d.T, lower=True, check_finite=False).T
    return z


def _of_shared(f: "NormalInverseWishart", x: Array, own: Array, w: Array) -> tuple[Array, Array]:
    """(n, C) and (n,): a matrix that classes share loses the row in all of them."""
    rows = np.arange(len(x))
    centre = f.mu.mean(axis=0)
    steps = _whitened(f, 0, f.mu - centre)
    if np.abs(steps).max() < _FAR:  # one product; else the difference of two would lose digits
        z = _whitened(f, 0, x - centre) - steps[:, None]  # (C, n, D)
    else:
        z = np.stack([_whitened(f, 0, x - mu) for mu in f.mu])
    mine = z[own, rows]
    q = np.einsum("cnd,cnd->nc", z, z)
    cross = np.einsum("cnd,nd->nc", z, mine)
    change = _Change.of(f, own, q[rows, own], w)
    with np.errstate(invalid="ignore", divide="ignore"):
        q += (change.rank / change.left)[:, None] * np.square(cross)
        out = change.log_t(q.T, f.kappa[:, None]).T
    out[rows, own] = change.of_own_class()
    return out, change.left


class _Change(NamedTuple):
    """What a posterior is without each of n rows, as far as their densities need it."""

    dim: int
    nu: Array  # (n,)
    log_det: Array  # (n,)
    rank: Array  # (n,) factor r of the outer product that leaves psi
    ratio: Array  # (n,) kappa / kappa'
    kappa: Array  # (n,) kappa'
    q: Array  # (n,) squared distance from the own class's mean, in the metric of psi^-1
    left: Array  # (n,) 1 - r q

    @classmethod
    def of(cls, f: "NormalInverseWishart", own: Any, q: Array, w: Array) -> Self:
        """Rows of the classes `own` (n,), or all of one; `q` (n,), weights `w` (n,)."""
        kappa = f.kappa[own]
        kappa_left = kappa - w
        ratio = kappa / kappa_left
        left = 1 - w * ratio * q
        g = 0 if f.shared else own
        with np.errstate(invalid="ignore", divide="ignore"):
            log_det = f.log_det[g] + np.log(left)
        return cls(f.dim, f.nu[g] - w, log_det, w * ratio, ratio, kappa_left, q, left)

    def log_t(self, q: Array, kappa: Array) -> Array:
        """Student t density at squared distances in the metric of psi' without the rows."""
        df = self.nu - self.dim + 1
        norm = log_gamma_difference(df / 2, self.dim / 2) - self.dim / 2 * np.log(np.pi)
        norm = norm - self.log_det / 2 - self.dim / 2 * np.log1p(1 / kappa)
        density: Array = norm - (self.nu + 1) / 2 * np.log1p(q * kappa / (kappa + 1))
        return density

    def of_own_class(self) -> Array:
        """(n,) log densities in the row's own class, whose mean has moved away from it."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.log_t(np.square(self.ratio) * self.q / self.left, self.kappa)
