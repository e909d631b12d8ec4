"""Simulation-based calibration of the families that are fitted by MCMC, with many replicates.

    .venv/bin/python tests/benchmarks/sampled_calibration.py               # an hour, one core
    .venv/bin/python tests/benchmarks/sampled_calibration.py --only Mixture --replicates 100

Of every example of every family: the smallest p-value of all ranks, the threshold at which it is
refused (false alarm 0.01 in each family), what it is of, the fewest effective draws of 99 (the
mean over replicates), and CPU seconds, compilation included.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from threadpoolctl import threadpool_limits

from tests.checks.test_sampled_calibration import SAMPLED, calibrated, examples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--only", default="", help="families whose name contains this")
    parser.add_argument("--first", action="store_true", help="the first example of each family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--thin", type=int, default=5, help="one of so many draws is kept")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{asked.replicates} replicates")
    print(f"{'family':28}{'verdict':>8}{'min p':>10}{'limit':>10}{'ess':>5}{'CPU s':>7}  of")
    with threadpool_limits(1, user_api="blas"):
        for name in (k for k in SAMPLED if asked.only in k):
            for k, family in enumerate(examples(name)[: 1 if asked.first else None]):
                begun = time.process_time()
                table = calibrated(family, asked.replicates, asked.seed, thin=asked.thin)
                worst = table["p_value"].idxmin().item()
                tested = table["ess"].where(table["p_value"].notnull())
                print(
                    f"{name + '-' + str(k):28}{'passed' if table['passed'] else 'REFUSED':>8}"
                    f"{float(table['p_value'].min()):10.2g}{float(table['threshold']):10.2g}"
                    f"{float(tested.min()):5.0f}{time.process_time() - begun:7.0f}  {worst}",
                    flush=True,
                )
                if not table["passed"]:
                    columns = ["p_value", "pit_mean", "pit_sd", "ess"]
                    frame = table[columns].to_dataframe().sort_values("p_value")
                    print(frame.head(8).to_string(), flush=True)


if __name__ == "__main__":
    main()
