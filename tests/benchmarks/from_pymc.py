"""Seconds of `bg.from_pymc`: to a fit beside `pm.sample`, to the first prediction beside NumPy.

    .venv/bin/python tests/benchmarks/from_pymc.py  # some minutes
    .venv/bin/python tests/benchmarks/from_pymc.py --route prediction  # a minute

Prediction: a Student t with 500 rows, 4 columns, 3 classes and 1000 draws, from the model and its
draws to class probabilities, in CPU seconds, beside what a user writes: by SciPy, and by PyMC (a
function of `pm.logp`, draw by draw). The first turn has the imports and what is compiled.

The model is that of notebooks/13_your_own_pymc_model.ipynb. Each sampler runs in a process of its
own, the first time with what is compiled, then on a second model of the same graph. CPU seconds
include child processes.
"""

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "13_your_own_pymc_model.ipynb"
OPTIONS = {"draws": 1000, "tune": 1000, "chains": 4, "progressbar": False}
ROUTES = ("fit", "pm.sample nutpie", "pm.sample pymc")
N, COLUMNS, CLASSES, DRAWS = 500, 4, 3, 1000


def model() -> Any:
    """The model of the notebook, by its cells up to the one that makes it."""
    space: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            with contextlib.redirect_stdout(None):
                exec("\n".join(k for k in source.split("\n") if k[:1] != "%"), space)
            if "model" in space:
                return space["model"]
    raise ValueError(f"{NOTEBOOK} makes no model")


def seconds() -> tuple[float, float]:
    """Wall and CPU."""
    used = [resource.getrusage(k) for k in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(u.ru_utime + u.ru_stime for u in used)


def run(route: str) -> None:
    """Print seconds of the first and of the second time."""
    import pymc as pm

    import bayesgen as bg

    warnings.simplefilter("ignore")
    for turn in ("first", "second"):
        own = model()
        wall, cpu = seconds()
        if route == "fit":
            bg.from_pymc(own).fit(random_state=0, **OPTIONS)
        else:
            with own:
                pm.sample(random_seed=0, nuts_sampler=route.split()[1], **OPTIONS)
        end, used = seconds()
        print(f"{route:18} {turn:7} wall {end - wall:6.1f} s, CPU {used - cpu:6.1f} s", flush=True)


# ------------------------------------------------------------------------------ first prediction


def by_scipy(model: Any, draws: Any, X: np.ndarray) -> np.ndarray:
    """Class probabilities as a user computes them from draws."""
    from scipy import special, stats

    flat = draws.stack(sample=("chain", "draw")).transpose("sample", ...)
    w, mu, sigma, nu = (flat[k].values for k in ("w", "mu", "sigma", "nu"))
    log_p = np.log(w)[:, None].repeat(len(X), axis=1)
    for c in range(CLASSES):
        own = stats.t.logpdf(X, nu[:, None, None], mu[:, None, c], sigma[:, None, c])
        log_p[:, :, c] += own.sum(axis=-1)
    return special.softmax(special.logsumexp(log_p, axis=0), axis=1)


def by_pymc(model: Any, draws: Any, X: np.ndarray) -> np.ndarray:
    """The same, by a compiled density that is called for each draw and class."""
    import pymc as pm
    import pytensor
    import pytensor.tensor as pt
    from scipy import special

    flat = draws.stack(sample=("chain", "draw")).transpose("sample", ...)
    w, mus, sigmas, nus = (flat[k].values for k in ("w", "mu", "sigma", "nu"))
    x, mu, sigma, nu = pt.matrix("x"), pt.vector("mu"), pt.vector("sigma"), pt.scalar("nu")
    log_p = pm.logp(pm.StudentT.dist(nu=nu, mu=mu, sigma=sigma), x).sum(axis=-1)
    density = pytensor.function([x, mu, sigma, nu], log_p)
    out = np.log(w)[:, None].repeat(len(X), axis=1)
    for s, c in np.ndindex(len(w), CLASSES):
        out[s, :, c] += density(X, mus[s, c], sigmas[s, c], nus[s])
    return special.softmax(special.logsumexp(out, axis=0), axis=1)


def by_package(model: Any, draws: Any, X: np.ndarray) -> np.ndarray:
    """The same, by `bg.from_pymc`."""
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
        found = {}
        for way in (by_package, by_scipy, by_pymc):
            begin = seconds()[1]
            found[way] = way(student, draws, X)
            print(f"{way.__name__:10} {turn:7} CPU {seconds()[1] - begin:6.2f} s", flush=True)
        assert all(np.allclose(p, found[by_scipy], atol=1e-10) for p in found.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--route", choices=(*ROUTES, "prediction"))
    route = parser.parse_args().route
    for one in ROUTES if route is None else ():
        subprocess.run([sys.executable, __file__, "--route", one], check=True)
    if route == "prediction":
        predict()
    elif route is not None:
        run(route)
