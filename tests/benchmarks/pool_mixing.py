"""Do the chains of pools agree? R-hat of ranks and ESS on every open set, and the seconds of a fit.

.venv/bin/python -m tests.benchmarks.pool_mixing [--only iris wine]

ArviZ computes both, of every exponent and intercept; the largest R-hat and the smallest ESS of bulk
and tail stand in the line. One split of each set, two thirds of the rows and 20 per class.
"""

import argparse
import time

import arviz as az
import numpy as np

import bayesgen as bg
from tests.benchmarks.open_sets import load, splits, take


def main():
    """Print a line for each set and size, and the worst of all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=())
    only = parser.parse_args().only
    worst = []
    print(f"{'set':24} {'size':13} {'rows':>5} {'C':>3} {'K':>3} {'R-hat':>7} {'ESS':>6} {'s':>7}")
    for name, s in load().items():
        if only and name not in only:
            continue
        for size, _, rows, _ in splits(s.y, 1):
            start = time.process_time()
            pool = bg.LogLinearPool().fit(take(s.X, rows), s.y[rows])
            seconds = time.process_time() - start
            draws = pool.posterior_["posterior"].to_dataset()
            r_hat = az.rhat(draws, method="rank")
            ess = [az.ess(draws, method=method) for method in ("bulk", "tail")]
            found = (
                max(float(np.nanmax(r_hat[v])) for v in r_hat.data_vars),
                min(float(np.nanmin(e[v])) for e in ess for v in e.data_vars),
            )
            worst.append(found)
            sizes = len(rows), len(pool.classes_), len(pool.members_)
            print(f"{name:24} {size:13} {sizes[0]:5} {sizes[1]:3} {sizes[2]:3} "
                  f"{found[0]:7.4f} {found[1]:6.0f} {seconds:7.2f}", flush=True)  # fmt: skip
    print(f"{len(worst)} splits: R-hat at most {max(w[0] for w in worst):.4f}, "
          f"ESS at least {min(w[1] for w in worst):.0f}")  # fmt: skip


if __name__ == "__main__":
    main()
