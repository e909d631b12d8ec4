"""Normal columns along given forests: draws, densities, estimates, new rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.errors import UndefinedEstimateError, refuse_undefined
from bayesgen.families.shared import forest_terms
from bayesgen.families.shared.forests import graph
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.spanning_trees import heaviest_tree
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_forest.family import NormalForest
    from bayesgen.families.conjugate.normal_inverse_wishart.scatter import ScatterStats


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


def draw(f: "NormalForest", rng: np.random.Generator, n: int) -> dict[str, Array]:
    """{name: (n, C, D)} forests in proportion to their evidence, and parameters given them."""
    shape = (n, *f.mu.shape)
    out = {name: np.empty(shape) for name in f.params}
    for c in range(shape[1]):
        parents = f.draw_parents(rng, n, c)
        slope, width, scale, freedom = given_parent(f, c, parents)
        sigma2 = scale / rng.chisquare(freedom)
        z = rng.standard_normal((2, *sigma2.shape))
        slope = np.where(parents < 0, 0.0, slope + np.sqrt(sigma2) / np.sqrt(width) * z[0])
        out["parents"][:, c], out["slope"][:, c], out["sigma2"][:, c] = parents, slope, sigma2
        deviation = along(parents, slope, np.sqrt(sigma2 / f.kappa[c]) * z[1])
        out["mu"][:, c] = f.mu[c] + f.shift + deviation
    return out


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
    found = forest_terms.of_draws(parents, np.where(live, given, 0.0), np.where(live, alone, 0.0))
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
