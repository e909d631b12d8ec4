"""Full disks, and processes that get a signal at a random moment."""

import json
import os
import resource
import signal
import sys
import time

import numpy as np

from tests.fuzz.judge import DefectError, refusal
from tests.fuzz.tables import command


def write_work(folder, what):
    """Something that replaces the files of a folder."""
    import bayesgen as bg

    rng = np.random.default_rng(1)
    chunks = [(rng.normal(size=(30, 3)), np.arange(30) % 2) for _ in range(6)]
    match what:
        case "save":
            bg.GaussianNB().fit(*chunks[0]).save(folder / "m.nc")
        case "stream":
            bg.fit_stream(bg.GaussianNB(), chunks, checkpoint=folder / "s.nc", every=1)
        case "fit":
            command("fit", "-m", "mixed", folder / "in.csv", "-t", "y", "-o", folder / "m.nc")
        case "predict":
            command("predict", folder / "old.nc", folder / "in.csv", "-o", folder / "out.csv")
        case "report":
            arguments = ("-t", "y", "-o", folder / "report.json", "--max-rows", 10)
            command("report", folder / "old.nc", folder / "in.csv", *arguments)
        case "sample":
            clf = bg.GaussianNB().fit(*chunks[0])
            clf.with_posterior(clf.draw_posterior()).save(folder / "m.nc")


def old_files(folder):
    """A table, a model, and files to be replaced."""
    import bayesgen as bg

    rows = [f"{i % 7},{i % 5},{'pq'[i % 2]}" for i in range(3000)]
    (folder / "in.csv").write_text("\n".join(["a,b,y", *rows]))
    for name in ("old.nc", "m.nc"):
        bg.MixedNB().fit([[1.0, 2.0], [2.0, 1.0], [0.0, 3.0]], ["p", "q", "p"]).save(folder / name)
    table = "a,b,y\n1,2,p\n2,2,q\n3,1,p\n1,1,q"
    (folder / "small.csv").write_text(table)
    command("fit", "-m", "mixed", folder / "small.csv", "-t", "y", "-o", folder / "old.nc")
    (folder / "out.csv").write_text("old")
    (folder / "report.json").write_text("{}")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


WORKS = ("save", "stream", "fit", "predict", "report", "sample")


def check_files(folder, before, leftovers):
    """Every file is the old one or a whole new one; no other file is left unless it was killed."""
    import bayesgen as bg

    for path in folder.iterdir():
        if path.name.startswith("."):
            if not leftovers:
                raise DefectError(f"{path.name} is left over")
        elif path.suffix == ".nc":
            bg.load(path)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.name == "out.csv":
            raw = path.read_bytes()
            if raw != b"old" and raw.count(b"\n") != 3001:
                raise DefectError("out.csv is there in part")
        elif path.read_bytes() != before[path.name]:
            raise DefectError(f"{path.name} is another file")


def disk(rng, folder):
    """A disk that is full, here by a limit on the size of files."""
    before = old_files(folder)
    what = str(rng.choice(WORKS))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(10 ** rng.uniform(0, 5.3)), limits[1]))
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # Python cuts it short
    try:
        with refusal():
            write_work(folder, what)
        return "written"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        sys.dont_write_bytecode = bytecode
        check_files(folder, before, leftovers=False)


_WAITS = 10.0  # seconds that finished work waits for its signal
DROPPED = 99  # exit code: Python itself drops what is raised within a destructor or a callback


def killed(rng, work, seconds):
    """Fork `work`, send it a signal after so many seconds; the code it ends with, and the signal.

    It waits for the signal when it is through: code 0 says that a signal was swallowed. Where
    Python dropped the exception, which it tells `sys.unraisablehook`, the signal is sent anew,
    later: a forked process is at the same place after the same time, and a callback that compiles
    takes a second.
    """
    number = int(rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
    for attempt in range(10):
        code = _code_after(number, work, min(seconds * 1.5**attempt, seconds + _WAITS / 2))
        if code != DROPPED:
            break
    if code not in {128 + number, -number}:
        raise DefectError(f"exit code {code} after signal {number}")
    return code, number


def _code_after(number, work, seconds):
    heard, ready = os.pipe()  # before it is ready Python drops signals
    child = os.fork()
    if not child:
        came, dropped = [], []  # as on the command line: a module may make another error of an exit

        def come(what, frame):
            came.append(128 + what)
            if what == signal.SIGTERM:
                sys.exit(143)
            signal.default_int_handler(what, frame)

        def drop(what):
            dropped.extend(came if what.exc_type in (KeyboardInterrupt, SystemExit) else ())

        try:
            sys.unraisablehook = drop
            for what in (signal.SIGINT, signal.SIGTERM):
                signal.signal(what, come)
            os.write(ready, b".")
            work()
            time.sleep(0 if dropped else _WAITS)
        except KeyboardInterrupt:
            os._exit(130)
        except SystemExit as end:
            os._exit(end.code or 0)
        finally:
            code = came[0] if came else 1
            os._exit(code if sys.exc_info()[0] is not None else DROPPED if dropped else 0)
    os.read(heard, 1)
    os.close(heard)
    os.close(ready)
    time.sleep(seconds)
    os.kill(child, number)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill(rng, folder):
    """A process that gets a signal at a random moment."""
    before = old_files(folder)
    what = str(rng.choice(WORKS))
    seconds = 10 ** rng.uniform(-2.5, 0)
    code, number = killed(rng, lambda: write_work(folder, what), seconds)
    check_files(folder, before, leftovers=number == signal.SIGKILL)
    write_work(folder, what)  # it is taken up again, or done anew
    return f"code {code}"


SAMPLING = {"draws": 300, "tune": 300, "chains": 2, "progressbar": False}
took = []  # seconds of a run of NUTS that nobody disturbs


def sample(clf, X):
    """Return the classifier with draws of NUTS, which are all or none; `clf` stays as it is."""
    before = clf.predict_proba(X)
    try:
        drawn = clf.with_posterior(clf.sample_posterior(random_state=1, **SAMPLING))
    except BaseException:
        if not np.array_equal(clf.predict_proba(X), before):
            os._exit(3)  # the earlier fit is not what it was
        raise
    sizes = drawn.posterior_["posterior"].sizes
    if (sizes["chain"], sizes["draw"]) != (2, 300) or np.isnan(drawn.predict_proba(X)).any():
        os._exit(4)  # part of the draws was taken for all
    return drawn


def kill_sampling(rng, folder):
    """A process that gets a signal while NUTS compiles or samples."""
    import bayesgen as bg

    rows = np.random.default_rng(1).normal(size=(12, 2))
    y = np.arange(12) % 2
    clf = bg.GaussianNB().fit(rows[:6], y[:6])
    if not took:  # compiled once; the processes forked after it have the compiled model
        sample(clf, rows)
        began = time.monotonic()
        sample(clf, rows)
        took.append(time.monotonic() - began)
    path = folder / "m.nc"
    clf.save(path)
    before = {path.name: path.read_bytes()}

    def work():
        sample(clf, rows).save(path)

    code, number = killed(rng, work, rng.uniform(0, 1.1 * took[0]))
    check_files(folder, before, leftovers=number == signal.SIGKILL)
    draws = bg.load(path).posterior_["posterior"] if path.read_bytes() != before["m.nc"] else None
    if draws is not None and draws.sizes["draw"] != 300:
        raise DefectError("a file has a part of the draws")
    return f"code {code}"
