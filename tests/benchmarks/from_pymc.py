"""CPU seconds of `bg.from_pymc` from a model and its draws to the first class probabilities.

    .venv/bin/python tests/benchmarks/from_pymc.py  # a minute

A Student t with 500 rows, 4 columns, 3 classes and 1000 draws, beside what a user writes: by SciPy,
and by PyMC (a function of `pm.logp`, draw by draw). The first turn has the imports and what is
compiled.
"""

import resource
import warnings
from typing import Any

import numpy as np

N, COLUMNS, CLASSES, DRAWS = 500, 4, 3, 1000


def seconds() -> float:
    """Return the CPU seconds of this process and its children."""
    used = [resource.getrusage(k) for k in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def by_scipy(model: Any, draws: Any, X: np.ndarray) -> np.ndarray:
    """Compute class probabilities as a user does from draws."""
    from scipy import special, stats

    flat = draws.stack(sample=("chain", "draw")).transpose("sample", ...)
    w, mu, sigma, nu = (flat[k].values for k in ("w", "mu", "sigma", "nu"))
    log_p = np.log(w)[:, None].repeat(len(X), axis=1)
    for c in range(CLASSES):
        log_x = stats.t.logpdf(X, nu[:, None, None], mu[:, None, c], sigma[:, None, c])
        log_p[:, :, c] += log_x.sum(axis=-1)
    return special.softmax(special.logsumexp(log_p, axis=0), axis=1)


def by_pymc(model: Any, draws: Any, X: np.ndarray) -> np.ndarray:
    """Compute them by a compiled density that is called for each draw and class."""
    import pymc as pm
    import pytensor
    import pytensor.tensor as pt
    from scipy import special

    flat = draws.stack(sample=("chain", "draw")).transpose("sample", ...)
    w, mus, sigmas, nus = (flat[k].values for k in ("w", "mu", "sigma", "nu"))
    x, mu, sigma, nu = pt.matrix("x"), pt.vector("mu"), pt.vector("sigma"), pt.scalar("nu")
    log_p = pm.logp(pm.StudentT.dist(nu=nu, mu=mu, sigma=sigma), x).sum(axis=-1)
    density = pytensor.function([x, mu, sigma, nu], log_p)
    log_joint = np.log(w)[:, None].repeat(len(X), axis=1)
    for s, c in np.ndindex(len(w), CLASSES):
        log_joint[s, :, c] += density(X, mus[s, c], sigmas[s, c], nus[s])
    return special.softmax(special.logsumexp(log_joint, axis=0), axis=1)


def by_package(model: Any, draws: Any, X: np.ndarray) -> np.ndarray:
    """Compute them by `bg.from_pymc`."""
    import bayesgen as bg

    return bg.from_pymc(model).with_posterior(draws).predict_proba(X)


def predict() -> None:
    """Print CPU seconds of each way, twice."""
    import pymc as pm
    import xarray as xr

    rng = np.random.default_rng(0)
    y = np.arange(N) % CLASSES
    X = rng.normal(size=(N, COLUMNS)) + y[:, None]
    shape = 4, DRAWS // 4
    lead, table = ("chain", "draw"), ("chain", "draw", "kind", "column")
    mu = np.arange(CLASSES)[:, None] + 0.1 * rng.normal(size=(*shape, CLASSES, COLUMNS))
    draws = xr.Dataset(
        {
            "w": ((*lead, "kind"), rng.dirichlet(np.full(CLASSES, 9.0), shape)),
            "mu": (table, mu),
            "sigma": (table, rng.gamma(20, 0.05, mu.shape)),
            "nu": (lead, rng.gamma(4, 2, shape)),
        }
    )
    warnings.simplefilter("ignore")
    for turn in ("first", "second"):
        with pm.Model(coords={"kind": range(CLASSES), "column": range(COLUMNS)}) as student:
            weights = pm.Dirichlet("w", np.ones(CLASSES), dims="kind")
            label = pm.Categorical("label", weights, observed=y)
            centre = pm.Normal("mu", 0, 5, dims=("kind", "column"))
            scale = pm.HalfNormal("sigma", 2, dims=("kind", "column"))
            nu = pm.Gamma("nu", 2, 0.1)
            pm.StudentT("x", nu=nu, mu=centre[label], sigma=scale[label], observed=X)
        answers = {}
        for way in (by_package, by_scipy, by_pymc):
            begin = seconds()
            answers[way] = way(student, draws, X)
            print(f"{way.__name__:10} {turn:7} CPU {seconds() - begin:6.2f} s", flush=True)
        assert all(np.allclose(p, answers[by_scipy], atol=1e-10) for p in answers.values())


if __name__ == "__main__":
    predict()
