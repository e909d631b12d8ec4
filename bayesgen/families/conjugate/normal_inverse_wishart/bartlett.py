r"""A Normal-inverse-Wishart prior as PyMC variables, in Bartlett's coordinates.

In a basis B with :math:`\Psi = B\,\mathrm{diag}(w)\,B^T` and :math:`\Psi + S = B B^T`, S the
scatter of the rows, :math:`\Sigma = B A^{-T} A^{-1} B^T` with A lower triangular. The free
variables have textbook priors:

* ``precision_diagonal`` :math:`a_{jj}^2 \sim \text{Gamma}((\nu - j)/2, w_j/2)`, j from 0
* ``precision_lower`` :math:`a_{ij} \sim \text{Normal}(0, 1/w_i)`, i > j
* ``mu_white`` z, Normal given A, where :math:`\mu = \bar m + B A^{-T} z/\sqrt{\kappa + n}`
  and :math:`\bar m` is the average of prior mean and mean row, weighted by kappa and n.

``mu`` and ``Sigma`` are functions of these. Given the rows, z is standard Normal and the lower
triangle nearly so. B and :math:`\bar m` decide on the coordinates alone, not on the density of mu
and Sigma, and all numbers are data of the model. The log density of the statistics is made of
elementwise operations and sums: no solve, inverse or determinant.

Shapes: C classes, G covariances (C, or 1 that the classes share), D features. The axes of A count
the columns that the prior ignores first.

Source: Muirhead, Aspects of Multivariate Statistical Theory (1982), theorem 3.2.14.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.families.contract import Theta
from bayesgen.families.names import CLASS, FEATURE, OBS
from bayesgen.families.shared.pymc_parts import cells_data, container, prefixed
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart
    from bayesgen.families.conjugate.normal_inverse_wishart.scatter import ScatterStats


class Coordinates(NamedTuple):
    """Numbers that the coordinates are made of, under the names of the model's data."""

    prior_nu: Array  # (G,)
    prior_kappa: Array  # (C,)
    prior_location: Array  # (C, D)
    prior_weight: Array  # (G, D) w: the prior's share of Psi + S along each axis
    stats_n: Array  # (C,)
    stats_weight: Array  # (G, D) the rows' share; 0 on ignored axes
    stats_step: Array  # (C, D) from the prior mean to the mean row, in the basis
    base: Array  # (G, D, D) B, features by axes
    live: Array  # (D,) 0 on ignored axes
    log_norm: Array  # (G,) log density of a row at its mean where A is the identity


def coordinates(prior: "NormalInverseWishart", stats: "ScatterStats | None") -> Coordinates:
    """Of a prior and the statistics of rows; without rows those of the prior alone."""
    groups, dim = prior.psi.shape[:2]
    dead = np.broadcast_to(prior.ignored, dim)
    live, dead = np.flatnonzero(~dead), np.flatnonzero(dead)
    n, scatter, e = np.zeros(len(prior.mu)), np.zeros_like(prior.psi), np.zeros(prior.mu.shape)
    if stats is not None:
        n, scatter = stats.n, stats.scatter
        e = np.where(n[:, None] > 0, stats.mean_about(prior.shift) - prior.mu, 0.0)

    # Psi and Psi + S made diagonal together; a factor of Psi has twice the digits of Psi
    both = live[:, None], live
    total = np.linalg.cholesky((prior.psi + scatter)[:, *both])
    u, s, _ = np.linalg.svd(np.linalg.solve(total, np.linalg.cholesky(prior.psi[:, *both])))
    part = total @ u
    # ignored columns come first: A^T and B are then block triangular, and the covariance of
    # the live columns depends on the last rows and columns of A alone
    base, weight = np.zeros((groups, dim, dim)), np.ones((groups, dim))
    first, last = np.arange(len(dead)), np.arange(len(dead), dim)
    base[:, live[:, None], last] = part
    weight[:, last] = np.square(s)
    if len(dead):
        cross = np.linalg.solve(prior.psi[:, *both], prior.psi[:, live[:, None], dead])
        rest = prior.psi[:, dead[:, None], dead] - prior.psi[:, dead[:, None], live] @ cross
        base[:, dead[:, None], first] = np.linalg.cholesky(rest)
        base[:, dead[:, None], last] = np.swapaxes(cross, 1, 2) @ part
    step = np.zeros(prior.mu.shape)
    step[:, last] = np.linalg.solve(part, e[:, live, None])[..., 0]
    mask = np.zeros(dim)
    mask[last] = 1.0
    log_det = np.log(np.diagonal(total, axis1=1, axis2=2)).sum(axis=1)
    return Coordinates(
        prior_nu=prior.nu,
        prior_kappa=prior.kappa,
        prior_location=prior.mu + prior.shift,
        prior_weight=weight,
        stats_n=n,
        stats_weight=mask * np.maximum(1 - weight, 0.0),
        stats_step=step,
        base=base,
        live=mask,
        log_norm=-log_det - 0.5 * len(live) * np.log(2 * np.pi),
    )


def of_draws(
    at: Coordinates, theta: Theta, shared: bool
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """{name: (dims, values)} of ``precision_diagonal``, ``precision_lower`` and ``mu_white``."""
    mu, Sigma = np.asarray(theta["mu"]), np.asarray(theta["Sigma"])
    if shared:
        Sigma = Sigma[..., None, :, :]
    whiten = np.linalg.inv(at.base)
    K = whiten @ Sigma @ np.swapaxes(whiten, -1, -2)  # A^-T A^-1: upper times lower
    upper = np.linalg.cholesky(K[..., ::-1, ::-1])[..., ::-1, ::-1]
    A = np.swapaxes(np.linalg.inv(upper), -1, -2)
    share = (at.stats_n / (at.stats_n + at.prior_kappa))[:, None]
    d = (whiten @ (mu - at.prior_location)[..., None])[..., 0] - share * at.stats_step
    z = (np.swapaxes(A, -1, -2) @ d[..., None])[..., 0]
    z *= np.sqrt(at.prior_kappa[:, None] + at.stats_n[:, None] * at.live)
    i, j = np.tril_indices(mu.shape[-1], -1)
    square = np.square(np.diagonal(A, axis1=-2, axis2=-1))
    lower = A[..., i, j]
    if shared:
        square, lower = square[..., 0, :], lower[..., 0, :]
    group = () if shared else (CLASS,)
    return {
        "precision_diagonal": ((*group, "axis"), square),
        "precision_lower": ((*group, "axis_pair"), lower),
        "mu_white": ((CLASS, "axis"), z),
    }


def declare(
    prior: "NormalInverseWishart",
    at: Coordinates,
    prefix: str,
    X: Matrix | None,
    y: Any,
    on_statistics: bool,
) -> dict[str, Any]:
    """The prior, and Normal rows (X, y) or the statistics behind `at`, in the model on the stack.

    Parameters as in `Family.to_pymc`; columns that the prior ignores keep it.
    """
    import pymc as pm
    import pytensor.tensor as pt

    shared, dim = prior.shared, prior.mu.shape[1]
    axis, pair, group = f"{prefix}axis", f"{prefix}axis_pair", () if shared else (CLASS,)
    i, j = np.tril_indices(dim, -1)
    pm.modelcontext(None).add_coords({axis: np.arange(dim), pair: np.arange(len(i))})
    by_axis, feature = (CLASS, axis), f"{prefix}{FEATURE}"
    own_dims = {
        "prior_location": (CLASS, feature),
        "prior_weight": by_axis,
        "stats_weight": by_axis,
        "stats_step": by_axis,
        "base": (CLASS, feature, axis),
        "live": (axis,),
    }
    data = {
        name: container(f"{prefix}{name}", value, own_dims.get(name, (CLASS,)))
        for name, value in at._asdict().items()
    }
    if shared:  # tell PyTensor of the axis that broadcasts
        for name in ("prior_nu", "prior_weight", "stats_weight", "base", "log_norm"):
            data[name] = data[name][0][None]
    nu, kappa = data["prior_nu"], data["prior_kappa"][:, None]
    weight, base, step = data["prior_weight"], data["base"], data["stats_step"]
    live, n = data["live"], data["stats_n"][:, None]

    k: Any = 0 if shared else slice(None)  # theta has no first axis of one covariance
    square = pm.Gamma(
        f"{prefix}precision_diagonal",
        ((nu[:, None] - np.arange(dim)) / 2)[k],
        weight[k] / 2,
        dims=(*group, axis),
    )
    lower = pm.Normal(
        f"{prefix}precision_lower", 0.0, (1 / pt.sqrt(weight))[k][..., i], dims=(*group, pair)
    )
    if shared:
        square, lower = square[None], lower[None]
    diagonal = pt.sqrt(square)
    below = np.zeros((len(i), dim))
    below[np.arange(len(i)), j] = 1.0
    # A^T step, (C, D); as a sum, for numba takes 15 s to compile a product of matrices
    turned = diagonal * step + ((lower * step[:, i])[:, :, None] * below).sum(axis=1)
    share = n / (n + kappa)
    unit = 1 / pt.sqrt(n * live + kappa)
    z = pm.Normal(
        f"{prefix}mu_white",
        -share * turned / unit,
        1 / (unit * pt.sqrt(kappa)),
        dims=(CLASS, axis),
    )

    A = pt.zeros((len(at.base), dim, dim))[:, i, j].set(lower)
    A = A[:, np.arange(dim), np.arange(dim)].set(diagonal)
    # A^-1 by Newton's method, exact in log2(D) steps because A is triangular, and products as
    # sums: PyTensor's batched linear algebra takes numba 10 to 20 s to compile, these 2
    inverse = np.eye(dim) / diagonal[:, None, :]
    for _ in range(max(dim - 1, 0).bit_length()):
        inverse = _product(inverse, 2 * np.eye(dim) - _product(A, inverse))
    root = _product(inverse, base.transpose(0, 2, 1))
    Sigma = _product(root.transpose(0, 2, 1), root)
    white = ((unit * z)[:, :, None] * root).sum(axis=1)
    centre = ((share * step)[:, None, :] * base).sum(axis=2)
    middle = data["prior_location"] + centre
    dims = {name: prefixed(prefix, d) for name, d in prior.params.items()}
    mu = pm.Deterministic(f"{prefix}mu", middle + white, dims=dims["mu"])
    Sigma = pm.Deterministic(f"{prefix}Sigma", Sigma[k], dims=dims["Sigma"])

    if X is not None:
        whiten = container(
            f"{prefix}whiten", np.swapaxes(np.linalg.inv(at.base), 1, 2), own_dims["base"]
        )
        factor = _product(whiten[0][None] if shared else whiten, A)
        log_det = (live * pt.log(diagonal)).sum(axis=1) + data["log_norm"]
        own = pt.zeros_like(y) if shared else y
        pm.CustomDist(
            f"{prefix}x",
            middle[y],
            factor[own],
            (unit * z)[y],
            live,
            log_det[own],
            root[own],
            dist=_draw_whitened,
            logp=_log_whitened,
            signature="(d),(d,d),(d),(d),(),(d,d)->(d)",
            class_name="MvNormal",
            observed=cells_data(prefix, X),
            dims=(OBS, f"{prefix}{FEATURE}"),
        )
    elif on_statistics:
        members = n.sum(axis=0, keepdims=True) if shared else n
        spread = data["stats_weight"]
        log_p = members * (live * pt.log(square)).sum(axis=1, keepdims=True)
        log_p -= (spread * square).sum(axis=1, keepdims=True)
        log_p -= ((spread[:, i] * live[j]) * pt.square(lower)).sum(axis=1, keepdims=True)
        gap = unit * z - (1 - share) * turned
        constant = (members[:, 0] * data["log_norm"]).sum()
        distance = (n * live * pt.square(gap)).sum()
        pm.Potential(f"{prefix}x", 0.5 * (log_p.sum() - distance) + constant)
    return {"mu": mu, "Sigma": Sigma}


def _product(a: Any, b: Any) -> Any:
    """Batched product of matrices (G, D, D), as one sum."""
    return (a[:, :, :, None] * b[:, None, :, :]).sum(axis=2)


def _draw_whitened(
    mean: Any, factor: Any, z: Any, live: Any, log_det: Any, root: Any, size: Any
) -> Any:
    """Rows of precision factor factor^T about mean + factor^-T z; root is factor^-1."""
    import pymc as pm
    import pytensor.tensor as pt
    from pymc.distributions.shape_utils import rv_size_is_none

    if not rv_size_is_none(size):
        z = pt.broadcast_to(z, (*size, z.shape[-1]))
    return mean + (pm.Normal.dist(z)[..., None] * root).sum(axis=-2)


def _log_whitened(
    x: Any, mean: Any, factor: Any, z: Any, live: Any, log_det: Any, root: Any
) -> Any:
    """Log density of the live columns of `_draw_whitened`."""
    import pytensor.tensor as pt

    white = ((x - mean)[..., None] * factor).sum(axis=-2) - z
    return log_det - 0.5 * (live * pt.square(white)).sum(axis=-1)
