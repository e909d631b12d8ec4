"""The workloads by pytest-benchmark: statistics of each side, kept and compared between commits.

For ratios use `make bench`, where both sides alternate; here each is timed by itself.
"""

import pytest

from tests.benchmarks.measure import floor
from tests.benchmarks.workloads import Workload, all_workloads

pytestmark = pytest.mark.filterwarnings("ignore")  # the peers' opinions of random data
WORKLOADS = [pytest.param(w, id=f"{w.label} beside {w.peer_name}") for w in all_workloads()]


@pytest.mark.parametrize("side", ["peer", "ours"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_speed(benchmark, workload: Workload, side: str, scale: float):
    X, y = workload.data(scale)
    benchmark.group = f"{workload.label} beside {workload.peer_name}"
    benchmark.name = side
    benchmark.extra_info.update(goal=workload.goal, floor=floor(X), scale=scale)
    call = getattr(workload, side)(X, y)
    result = benchmark.pedantic(call, rounds=5, warmup_rounds=1)
    assert result is not None
