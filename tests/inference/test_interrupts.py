"""An interrupt is a KeyboardInterrupt, and draws that are not all there are an error."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bayesgen as bg
from bayesgen.inference import nuts
from bayesgen.inference.nuts import SamplingError, not_swallowed, refuse_incomplete

X = np.array([[0.1, 1.0], [0.7, 1.5], [0.4, 0.8], [2.0, 0.2], [2.6, 0.3], [2.2, 0.9]])
Y = np.array([0, 0, 0, 1, 1, 1])


@pytest.fixture(autouse=True)
def _pythons_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# --------------------------------------------------------------------------------- interrupts


def guarded(work: Any) -> None:
    """Call `work` where no interrupt is swallowed."""
    with not_swallowed():
        work()


def test_code_that_swallows_an_interrupt_does_not():
    reached = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            reached.append("after the signal")
        except KeyboardInterrupt:
            reached.append("swallowed")
        reached.append("returned")

    with pytest.raises(KeyboardInterrupt):
        guarded(work)
    assert reached == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_lost_in_a_finalizer_is_raised_at_the_end(monkeypatch):
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: lost.append(what.exc_type))

    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        guarded(Finalized)
    assert len(lost) == 1


def test_an_error_on_the_way_out_does_not_hide_the_interrupt():
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            raise OSError("the worker is dead")

    with pytest.raises(KeyboardInterrupt):
        guarded(work)


def test_other_errors_and_other_handlers_are_left_alone():
    with pytest.raises(OSError, match="full"), not_swallowed():
        raise OSError("full")
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append("handled"))
    with not_swallowed():
        signal.raise_signal(signal.SIGINT)
    assert seen == ["handled"]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with not_swallowed():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_thread_that_gets_no_signals_changes_no_handler():
    found: list[Any] = []

    def work() -> None:
        with not_swallowed():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


# ------------------------------------------------------------------------------ incomplete draws


def test_the_chain_and_its_number_of_draws_are_named():
    draws = {"pi": np.ones((3, 10, 2)), "mu": np.ones((3, 10, 2, 2))}
    refuse_incomplete(draws, 3, 10, "NUTS")
    refuse_incomplete({"k": np.ones((3, 10), dtype=int)}, 3, 10, "NUTS")
    draws["mu"][1, 7:] = np.nan
    with pytest.raises(SamplingError, match="NUTS: chain 1 has 7 of 10 draws of 'mu'"):
        refuse_incomplete(draws, 3, 10, "NUTS")
    draws["mu"][0, 4, 1, 0] = np.inf
    with pytest.raises(SamplingError, match=r"chain 0 has 9 of 10 draws of 'mu'; .* not finite"):
        refuse_incomplete(draws, 3, 10, "NUTS")
    with pytest.raises(SamplingError, match="chain 0 has 10 of 20 draws of 'pi'"):
        refuse_incomplete(draws, 3, 20, "NUTS")
    with pytest.raises(SamplingError, match="3 of 4 chains were returned"):
        refuse_incomplete(draws, 4, 10, "NUTS")


def dataset(n_chains: int, n_draws: int, nan_from: int | None = None) -> xr.Dataset:
    """Draws of a `GaussianNB`, as a sampler returns them."""
    shapes = {"pi": ("class",), "mu": ("class", "feature"), "sigma2": ("class", "feature")}
    out = xr.Dataset()
    for name, dims in shapes.items():
        value = np.full((n_chains, n_draws, *[2 for _ in dims]), 0.5)
        if nan_from is not None:
            value[-1, nan_from:] = np.nan
        out[name] = (("chain", "draw", *dims), value)
    return out


STUBS = {
    "short": (dataset(2, 30), "chain 0 has 30 of 50 draws"),
    "padded": (dataset(2, 50, nan_from=20), "chain 1 has 20 of 50 draws"),
    "fewer chains": (dataset(1, 50), "1 of 2 chains"),
}


@pytest.mark.parametrize("sampler", ["nutpie", "pymc"])
@pytest.mark.parametrize("kind", STUBS)
def test_truncated_draws_are_an_error_and_change_nothing(kind, sampler, monkeypatch):
    posterior, message = STUBS[kind]
    tree = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": xr.Dataset()})
    monkeypatch.setattr(nuts, f"_by_{sampler}", lambda *_, **__: tree)
    clf = bg.GaussianNB().fit(X, Y)
    before, probability = clf.__dict__.copy(), clf.predict_proba(X)
    options = {"draws": 50, "chains": 2, "nuts_sampler": sampler, "progressbar": False}
    with pytest.raises(SamplingError, match=rf"NUTS \({sampler}\): {message}"):
        clf.sample_posterior(**options)
    assert clf.__dict__ == before
    np.testing.assert_array_equal(clf.predict_proba(X), probability)


SCRIPT = """
import os, signal, sys, threading, warnings
warnings.simplefilter("ignore")
import nutpie
import numpy as np
import bayesgen as bg

def interrupt(*_, draw=None, **__):
    if draw is None or draw.draw_idx == 30:
        os.kill(os.getpid(), signal.SIGINT)

X, y = np.random.default_rng(0).normal(size=(30, 1)), np.arange(30) % 2
clf = bg.GaussianNB().fit(X, y)
before = clf.__dict__.copy()
options = {"draws": 3_000_000, "chains": 2, "progressbar": False}
route = sys.argv[1]
if route == "nutpie":
    sample = nutpie.sample
    def later(*args, **kwargs):
        threading.Timer(0.5, interrupt).start()
        return sample(*args, **kwargs)
    nutpie.sample = later
else:
    options |= {"nuts_sampler": "pymc", "callback": interrupt, "cores": 1}
try:
    clf.sample_posterior(**options)
    print("returned")
except KeyboardInterrupt:
    print("interrupted, earlier fit kept:", clf.__dict__ == before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("route", ["nutpie", "pymc"])
def test_ctrl_c_while_a_sampler_runs(route):
    root = str(Path(bg.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, route],
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "interrupted, earlier fit kept: True" in run.stdout, run.stdout + run.stderr
