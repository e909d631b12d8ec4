"""Seconds of a fit by `bg.from_pymc` beside `pm.sample`.

    .venv/bin/python tests/benchmarks/from_pymc.py  # some minutes

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

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "13_your_own_pymc_model.ipynb"
OPTIONS = {"draws": 1000, "tune": 1000, "chains": 4, "progressbar": False}
ROUTES = ("fit", "pm.sample nutpie", "pm.sample pymc")


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--route", choices=ROUTES)
    route = parser.parse_args().route
    for one in ROUTES if route is None else ():
        subprocess.run([sys.executable, __file__, "--route", one], check=True)
    if route is not None:
        run(route)
