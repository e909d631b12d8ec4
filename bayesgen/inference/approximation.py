r"""Approximate posteriors: a Normal in the coordinates that a sampler would move in.

=========== ====================================================== ==============================
laplace     at the mode, covariance the inverse Hessian            up to some 3000 coordinates
advi        independent coordinates, least Kullback-Leibler        any number; too narrow where
            divergence from q to p (PyMC)                          coordinates are correlated
pathfinder  the best of the Normals along a way to the mode        needs pymc-extras
=========== ====================================================== ==============================

Each says how far it can be trusted: the shape :math:`\hat k` of the largest importance ratios
p/q. Above 0.7 the approximation has left out what matters.

Source: Yao, Vehtari, Simpson and Gelman (2018), Yes, but did it work? Evaluating variational
inference; Kucukelbir et al. (2017), Automatic differentiation variational inference; Zhang et al.
(2022), Pathfinder.
"""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import linalg, optimize

from bayesgen.errors import warn
from bayesgen.families.names import CHAIN, DRAW
from bayesgen.families.shared.graph_rows import third_parties
from bayesgen.inference import nuts
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr

Approximation = Literal["laplace", "advi", "pathfinder"]
APPROXIMATIONS: tuple[Approximation, ...] = ("laplace", "advi", "pathfinder")
LARGEST_K = 0.7
_MOST_COORDINATES = 3000  # a Hessian beyond it is larger than 72 MB


class _Normal(NamedTuple):
    """q: mean (n,), and a factor of the covariance, (n, n) lower or (n,) of a diagonal one."""

    mean: Array
    factor: Array

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """(n, K) points and (n,) their log density."""
        z = rng.standard_normal((n, len(self.mean)))
        diagonal = self.factor if self.factor.ndim == 1 else np.diag(self.factor)
        step = z * self.factor if self.factor.ndim == 1 else z @ self.factor.T
        log_norm = np.log(diagonal).sum() + len(self.mean) / 2 * np.log(2 * np.pi)
        return self.mean + step, -0.5 * np.square(z).sum(axis=1) - log_norm


def sample(
    model: Any,
    method: Approximation,
    draws: int = 1000,
    random_state: int | None = None,
    progressbar: bool = True,
    start: "nuts.Start | None" = None,
    **options: Any,
) -> tuple["xr.Dataset", "xr.Dataset"]:
    """Draws from an approximation of the posterior of a PyMC model.

    Parameters
    ----------
    model : pymc.Model
    method : {"laplace", "advi", "pathfinder"}
    draws : int
    random_state : int, optional
    progressbar : bool
    start : callable, optional
        As in `nuts.sample`.
    **options
        To `scipy.optimize.minimize` (laplace), `pymc.fit` (advi: ``n``, the number of steps), or
        `pymc_extras.fit_pathfinder`.

    Returns
    -------
    posterior : xarray.Dataset
        (chain, draw, ...), one chain.
    sample_stats : xarray.Dataset
        ``lp``, and ``log_q`` of the approximation, both in unconstrained coordinates; attribute
        ``pareto_k``. Pathfinder: the attribute alone.
    """
    with third_parties(), nuts.not_swallowed() as interrupts:
        if method == "pathfinder":
            posterior, stats = _pathfinder(model, draws, random_state, progressbar, options)
        else:
            value_and_gradient, origin = _log_density(model, random_state, start)
            if method == "laplace":
                q = _laplace(value_and_gradient, origin, options)
            else:
                q = _advi(model, random_state, progressbar, interrupts, options)
            points, log_q = q.draw(generator(random_state), draws)
            log_p = np.array([value_and_gradient(u)[0] for u in points])
            posterior, stats = nuts.turned(model, points[None]), _stats(log_p, log_q)
    found = {str(name): variable.values for name, variable in posterior.data_vars.items()}
    nuts.refuse_incomplete(found, 1, options.get("num_draws", draws), method)
    return posterior, stats


def warn_unless_close(method: str, sample_stats: "xr.Dataset") -> None:
    """One `SamplingWarning` if the importance ratios say that the approximation is poor."""
    k = sample_stats.attrs["pareto_k"]
    if not k <= LARGEST_K:
        warn(
            f"{method}: the posterior is not close to this approximation (Pareto k {k:.2f} > "
            f"{LARGEST_K}): means and intervals may be off; try inference='nuts', or more rows",
            nuts.SamplingWarning,
        )


def _stats(log_p: Array, log_q: Array) -> "xr.Dataset":
    import xarray as xr

    stats = {"lp": ((CHAIN, DRAW), log_p[None]), "log_q": ((CHAIN, DRAW), log_q[None])}
    return xr.Dataset(stats, attrs={"pareto_k": pareto_k(log_p - log_q)})


def pareto_k(log_ratio: Array) -> float:
    """Shape of the tail of importance ratios; NaN where there are too few to tell."""
    from arviz_stats.base import array_stats

    if len(log_ratio) < 25:
        return np.nan
    finite = np.isfinite(log_ratio)
    if not finite.any():
        return np.inf
    ratio = np.where(finite, log_ratio, log_ratio[finite].min())  # outside the support: weight 0
    if np.ptp(ratio) < 1e-10:
        return 0.0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # ArviZ is given log likelihoods, of which the ratios are the inverse
        return float(np.max(array_stats.psislw(-ratio)[1]))


def _log_density(
    model: Any, seed: int | None, start: "nuts.Start | None"
) -> tuple[Callable[[Array], tuple[float, Array]], Array]:
    """log p and its gradient as a function of the flat unconstrained point; a point to start at."""
    names = [model.rvs_to_values[v].name for v in model.free_RVs]
    if not names:
        raise ValueError("the model has no free variable: there is nothing to approximate")
    function = model.logp_dlogp_function(ravel_inputs=True)
    function.set_extra_values({})
    point = model.initial_point(random_seed=seed)
    if start is not None:
        flat = nuts.starting_points(model, start, lambda _: None)(0 if seed is None else seed)
    else:
        flat = None
    if flat is None:
        flat = np.concatenate([np.ravel(point[name]) for name in names]).astype(np.float64)

    def value_and_gradient(u: Array) -> tuple[float, Array]:
        with np.errstate(all="ignore"):
            value, gradient = function(np.ascontiguousarray(u))
        return float(value), np.asarray(gradient, dtype=np.float64)

    return value_and_gradient, flat


def _laplace(
    log_density: Callable[[Array], tuple[float, Array]], origin: Array, options: dict[str, Any]
) -> _Normal:
    n = len(origin)
    if n > _MOST_COORDINATES:
        raise ValueError(
            f"inference='laplace' inverts a matrix of {n} x {n} second derivatives; beyond "
            f"{_MOST_COORDINATES} coordinates use 'advi' or 'pathfinder'"
        )

    def negative(u: Array) -> tuple[float, Array]:
        value, gradient = log_density(u)
        return (-value, -gradient) if np.isfinite(value) else (np.inf, np.zeros(n))

    found = optimize.minimize(
        negative, origin, jac=True, method="L-BFGS-B", options={"maxiter": 10_000} | options
    )
    mode = found.x
    step = 1e-4 * np.maximum(1.0, np.abs(mode))
    hessian = np.empty((n, n))
    for k in range(n):
        ahead, behind = mode.copy(), mode.copy()
        ahead[k] += step[k]
        behind[k] -= step[k]
        hessian[k] = (negative(ahead)[1] - negative(behind)[1]) / (ahead[k] - behind[k])
    hessian = (hessian + hessian.T) / 2
    try:
        upper = linalg.cholesky(hessian)  # H = U^T U, so that H^-1 = U^-1 U^-T
        inverse = linalg.solve_triangular(upper, np.eye(n))
    except linalg.LinAlgError:
        raise ValueError(
            "inference='laplace': the posterior has no isolated mode that a Normal could be laid "
            f"at ({found.message}); use inference='nuts'"
        ) from None
    return _Normal(mode, linalg.cholesky(inverse @ inverse.T, lower=True))


def _advi(
    model: Any,
    seed: int | None,
    progressbar: bool,
    interrupts: nuts.Interrupts,
    options: dict[str, Any],
) -> _Normal:
    import pymc as pm

    settings: dict[str, Any] = {"n": 20_000, "random_seed": seed, "progressbar": progressbar}
    settings |= options
    settings["callbacks"] = [interrupts, *(settings.get("callbacks") or ())]
    with model:
        found = pm.fit(method="advi", **settings)
    mean, sd = (np.asarray(v.eval()) for v in (found.mean, found.std))
    place = {name: part[1] for name, part in found.ordering.items()}
    order = np.concatenate(
        [np.arange(len(mean))[place[model.rvs_to_values[v].name]] for v in model.free_RVs]
    )
    return _Normal(mean[order], sd[order])


def _pathfinder(
    model: Any, draws: int, seed: int | None, progressbar: bool, options: dict[str, Any]
) -> tuple["xr.Dataset", "xr.Dataset"]:
    try:
        import pymc_extras as pmx
    except ImportError:
        raise ImportError(
            "inference='pathfinder' needs pymc-extras: pip install pymc-extras; 'advi' and "
            "'laplace' need nothing else"
        ) from None
    # one process: pymc-extras' workers import the script again, which hangs without a main guard
    settings: dict[str, Any] = {"num_draws": draws, "random_seed": seed, "parallel": False}
    settings["progressbar"] = progressbar
    tree = pmx.fit_pathfinder(model=model, **(settings | options))
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    names = [v.name for v in (*model.free_RVs, *model.deterministics)]
    k = float(np.max(tree["pathfinder"]["pareto_k"])) if "pathfinder" in tree.children else np.nan
    return posterior[names], xr.Dataset(attrs={"pareto_k": k})
