"""The model in PyMC: inverse-gamma variances, Normal means, Normal cells.

``mu`` is the location itself, as in closed-form draws, and so has the resolution of a double at
that location: 1e-8 at 1e8. The sampler moves in the distance from the prior mean in units of the
prior scale, and the statistics are held about the prior's `shift`, which cancels from the compiled
log density: no digit is lost to an offset.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.shared import pymc_parts
from bayesgen.families.shared.pymc_parts import centred_normal, observe_cells, prefixed
from bayesgen.numerics.rows import Matrix

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_gamma.family import NormalInverseGamma


def declare(
    f: "NormalInverseGamma", prefix: str, X: Matrix | None, y: Any, stats: Any
) -> dict[str, Any]:
    """Variables of the model on the stack, with rows or statistics, or neither."""
    import pymc as pm
    import pytensor.tensor as pt

    prior = pymc_parts.declare(f, "prior", prefix)
    nu, scale = f.as_theta(prior["nu"]), f.as_theta(prior["sigma2"])
    dims = {name: prefixed(prefix, d) for name, d in f.params.items()}
    sigma2 = pm.InverseGamma(f"{prefix}sigma2", nu / 2, nu * scale / 2, dims=dims["sigma2"] or None)
    variance = f.with_axes(sigma2)
    mu = centred_normal(
        f"{prefix}mu",
        prior["shift"] + prior["mu"],
        pt.sqrt(variance / prior["kappa"]),
        pt.sqrt(f.with_axes(scale)),
        dims["mu"],
    )
    if stats is not None and X is None:
        about = {"n": stats.n, "mean": stats.about(f.shift), "scatter": stats.scatter}
        n, mean, scatter = (
            pymc_parts.container(
                f"{prefix}stats_{name}",
                np.asarray(value * f.live, dtype=np.float64),
                (CLASS, f"{prefix}{FEATURE}"),
            )
            for name, value in about.items()
        )
        step = mean - (mu - prior["shift"])
        log_p = n * pt.log(2 * np.pi * variance) + (scatter + n * step * step) / variance
        pm.Potential(f"{prefix}x", -0.5 * log_p.sum())
    elif X is not None:
        sd = pt.broadcast_to(pt.sqrt(variance), mu.shape)
        observe_cells(prefix, X, pm.Normal.dist, mu[y], sd[y], counted=f.live)
    return {"mu": mu, "sigma2": sigma2}


def log_likelihood(f: "NormalInverseGamma", X: Matrix, theta: Any, *, prefix: str = "") -> Any:
    """(N, C) tensor, over the observed cells of the live columns."""
    import pymc as pm
    import pytensor.tensor as pt

    seen = ~np.isnan(X) & f.live
    x = pm.Data(f"{prefix}rows", np.where(seen, X - f.shift, 0.0))[:, None, :]
    mask = pm.Data(f"{prefix}seen", seen.astype(np.float64))[:, None, :]
    variance = f.with_axes(theta["sigma2"])
    step = x - (theta["mu"] - f.shift)
    cells = pt.log(2 * np.pi * variance) + pt.square(step) / variance
    return -0.5 * (mask * cells).sum(axis=-1)
