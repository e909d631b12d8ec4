"""Inputs at random, each of which must give the right result or one clear error.

``make fuzz ARGS="--cases 1000 --kind forged"``; ``--only 123`` runs one case again. A kind is a
function of `KINDS`: it makes a case from a generator, tries it, and returns what happened in a
word. `refused` is the only way in which a case may fail; whatever else it raises, a limit of time
or memory that it exceeds, and a process that dies are defects. Cases run in forked processes.
"""

import argparse
import collections
import io
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import numpy as np

KINDS = {}
SECONDS, BYTES = 60, 4 << 30  # of one case


def kind(function):
    """Enter a function among the kinds."""
    KINDS[function.__name__] = function
    return function


class DefectError(Exception):
    """What no input may lead to."""


@contextmanager
def refusal():
    """Of a block that may refuse its input: one error of a user's class, readable and short."""
    try:
        yield
    except (ValueError, TypeError, OSError, NotImplementedError) as error:
        text = str(error)
        if not text or len(text) > 2000:
            raise DefectError(f"{type(error).__name__} of {len(text)} characters") from error
        own = [f.filename for f in traceback.extract_tb(error.__traceback__)]
        if type(error) is TypeError and "bayesgen" not in own[-1] and "sklearn" not in own[-1]:
            raise DefectError(f"TypeError by accident: {text}") from error
        raise RefusedError(f"{type(error).__name__}: {text}") from error


class RefusedError(Exception):
    """A case that ended with one clear error."""


# ------------------------------------------------------------------------------------ the judge


def check_probabilities(p, n_classes):
    """Rows of probabilities: finite, in [0, 1], of sum 1."""
    p = np.asarray(p)
    if p.shape[1] != n_classes or not np.isfinite(p).all() or (p < 0).any() or (p > 1).any():
        raise DefectError(f"these are no probabilities: {p[:3]}")
    if np.abs(p.sum(axis=1) - 1).max(initial=0.0) > 1e-12:
        raise DefectError(f"probabilities add up to {p.sum(axis=1)[:5]}")


def use(clf, X):
    """Ask a model what every model can tell."""
    check_probabilities(clf.predict_proba(X), len(clf.classes_))
    if "stats_" in clf.__dict__ and not np.isfinite(clf.log_evidence_):
        raise DefectError(f"the log evidence is {clf.log_evidence_}")
    if "stats_" in clf.__dict__:
        found = clf.predict_interval(X[:2])
        if any(v.isnull().any() for v in found.data_vars.values() if v.dtype.kind == "f"):
            raise DefectError("an interval is NaN")
        clf.simulate(2, random_state=0)
    repr(clf)


# ---------------------------------------------------------------------------------- model files


def models():
    """{name: (bytes of a file, X, log joint)} of models of every form."""
    if not models.made:
        import bayesgen as bg
        from tests.io.test_storage import BITS, COUNTS, FIRST, REAL, TEXTS, WORDS, Y
        from tests.io.test_storage import CASES as SAVED

        made = {name: (make().fit(X, Y), X) for name, (make, X) in SAVED.items() if name in FIRST}
        made["LinearDiscriminant"] = bg.LinearDiscriminant().fit(REAL, Y), REAL
        made["TreeAugmentedNB"] = bg.TreeAugmentedNB().fit(WORDS, Y), WORDS
        scored = bg.BernoulliNB().fit(BITS, Y)
        scored.typicality(BITS)
        made["with scores"] = scored, BITS
        partly = np.where(np.arange(len(Y)) % 5 == 0, None, Y.astype(object))
        gibbs = {"inference": "gibbs", "draws": 100, "chains": 2, "random_seed": 1}
        made["gibbs"] = bg.GaussianNB().fit(REAL, partly, progressbar=False, **gibbs), REAL
        made["pool"] = bg.LogLinearPool([bg.PoissonNB(), bg.GaussianNB()]).fit(COUNTS, Y), COUNTS
        made["texts"] = bg.MarkovNB(2).fit(TEXTS, Y), TEXTS
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.nc"
            for name, (clf, X) in made.items():
                clf.save(path)
                models.made[name] = path.read_bytes(), X, log_proba(clf, X)
                use(clf, X)  # what it imports is imported once
        for path in Path("tests/io/saved_by_0_1").glob("*.nc"):
            X = [] if path.stem == "markov" else None  # loaded, and no more than that
            models.made[f"{path.stem} of 0.1"] = path.read_bytes(), X, None
    return models.made


models.made = {}


def log_proba(clf, X):
    return clf.predict_log_proba(X)


def changed_bytes(rng, raw):
    """A file with bits flipped, parts cut out, repeated or written over."""
    raw = bytearray(raw)
    at = (
        int(rng.integers(len(raw)))
        if rng.random() < 0.7
        else int(rng.integers(min(4096, len(raw))))
    )
    n = int(2 ** rng.uniform(0, 9))
    match rng.integers(6):
        case 0 | 1:
            for i in rng.integers(len(raw), size=rng.integers(1, 4)):
                raw[i] ^= 1 << int(rng.integers(8))
        case 2:
            raw[at : at + n] = rng.bytes(n)
        case 3:
            del raw[at : at + n]
        case 4:
            raw[at:at] = raw[at : at + n]
        case 5:
            raw = raw[:at]
    return bytes(raw)


@kind
def damaged(rng, folder):
    """A damaged model file: refused, or the very model."""
    import bayesgen as bg

    old = rng.random() < 0.05  # few: another process reads them first, which takes 0.2 s
    name = str(rng.choice([name for name in models() if name.endswith("of 0.1") == old]))
    raw, X, expected = models()[name]
    path = folder / "m.nc"
    path.write_bytes(changed_bytes(rng, raw))
    with refusal():
        clf = bg.load(path)
    if expected is not None and not np.array_equal(log_proba(clf, X), expected, equal_nan=True):
        raise DefectError(f"another model was read from a damaged {name}")
    return "same"


ODD = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-320, 1e300, -1e300, 0.5, 2.0**53)
ODD_JSON = (
    None,
    True,
    -1,
    0,
    2,
    1e308,
    "",
    "x",
    [],
    {},
    [[]],
    ["a", "b"],
    {"tuple": [1]},
    "\x1b[2J",
)


def changed_json(rng, value):
    """A record with one leaf, key or item changed."""
    if isinstance(value, dict) and value and rng.random() < 0.95:
        key = str(rng.choice(list(value)))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: changed_json(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        k = int(rng.integers(len(value)))
        if rng.random() < 0.2:
            return value[:k] + value[k + 1 :]
        return [*value[:k], changed_json(rng, value[k]), *value[k + 1 :]]
    if isinstance(value, str) and value[:1] in "[{" and rng.random() < 0.9:
        try:
            return json.dumps(changed_json(rng, json.loads(value)))
        except ValueError:
            pass
    return ODD_JSON[rng.integers(len(ODD_JSON))]


def changed_dataset(rng, data):
    """A group with one variable changed: its numbers, type, shape, dims, or that it is there."""
    data = data.copy(deep=True)
    names = list(data.data_vars)
    if not names:
        return data
    name = names[rng.integers(len(names))]
    v = data[name].variable
    values = np.array(v.values)
    match rng.integers(7):
        case 0 | 1 | 2 if values.size and values.dtype.kind in "biuf":
            cells = rng.integers(values.size, size=rng.integers(1, 3))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = ODD[rng.integers(len(ODD))]
            values.flat[cells] = (
                value if values.dtype.kind == "f" else int(np.clip(np.nan_to_num(value), -9, 99))
            )
            data[name] = (v.dims, values, v.attrs)
        case 3 if v.ndim and len(values):
            rest = np.delete(values, 0, axis=0)
            return data.drop_vars(name).assign(
                {name: ((f"{v.dims[0]}_", *v.dims[1:]), rest, v.attrs)}
            )
        case 4:
            data[name] = (
                v.dims,
                values.astype([np.float32, np.int8, "U3"][rng.integers(3)]),
                v.attrs,
            )
        case 5:
            return data.drop_vars(name)
        case _:
            attrs = {**v.attrs, "axes": str(changed_json(rng, v.attrs.get("axes", "[]")))}
            data[name] = (v.dims, values, attrs)
    return data


contents = {}  # of model files, read once


@kind
def forged(rng, folder):
    """A well-formed file with another content: refused, or a model that is valid."""
    import bayesgen as bg
    from bayesgen.io import storage

    name = str(rng.choice(list(models())))
    raw, X, _ = models()[name]
    path = folder / "m.nc"
    path.write_bytes(raw)
    if name not in contents:
        contents[name] = storage.read(path)
    fit, state, draws = contents[name]
    fit = fit.copy()
    for _ in range(rng.integers(1, 3)):
        what = rng.random()
        if what < 0.4:
            state = changed_json(rng, {k: v for k, v in state.items() if k != "format"})
        elif what < 0.8 or not draws:
            fit = changed_dataset(rng, fit)
            if rng.random() < 0.2:
                key = str(rng.choice(list(fit.attrs)) if fit.attrs else "family")
                fit.attrs[key] = str(changed_json(rng, fit.attrs.get(key, "")))
        else:
            group = str(rng.choice(list(draws)))
            draws = draws | {group: changed_dataset(rng, draws[group])}
        if not isinstance(state, dict):
            state = {}
    try:
        storage.write(path, fit, state, draws)
    except Exception:  # noqa: BLE001 - xarray cannot write that
        return "not written"
    with refusal():
        clf = bg.load(path)
    if X is not None:
        with refusal():  # the rows may not be those of this model
            Z = X[:4] if not hasattr(X, "iloc") else X.iloc[:4]
            clf.predict(Z)
        use(clf, Z)
    with refusal():
        clf.save(folder / "again.nc")
    return "valid"


# ------------------------------------------------------------------------------------- tables

CELLS = ("", "NA", "1", "0", "-1", "1e308", "1e-320", "nan", "inf", "TRUE", "x", "=1+1", "\x1b[2J")
CELLS += ("9007199254740993", "é\u202e", '"', "a,b", "x" * 5000, "\x00", "1_000", " 2 ", "٣")


def table_text(rng):
    """A small CSV file: of numbers, categories and texts, in places spoiled."""
    n, names = int(rng.integers(0, 30)), [*"abcd"[: rng.integers(1, 5)], "y"]
    columns = [rng.choice(CELLS, 3).tolist() if rng.random() < 0.4 else None for _ in names]
    lines = [",".join(names)]
    for _ in range(n):
        cells = [f"{rng.normal():.3f}" if c is None else str(rng.choice(c)) for c in columns]
        cells[-1] = str(rng.choice(["p", "q"]))
        if rng.random() < 0.1:
            cells[rng.integers(len(cells))] = CELLS[rng.integers(len(CELLS))]
        lines.append(",".join(cells))
    raw = "\n".join(lines).encode()
    return changed_bytes(rng, raw) if len(raw) > 4 and rng.random() < 0.3 else raw


def command(*arguments):
    """Run a command in this process; its exit code, 0 or 2, and in that case one short line."""
    from bayesgen.cli import app

    said = io.StringIO()
    code = 0
    with redirect_stderr(said):
        try:
            app([str(a) for a in arguments], prog_name="bayesgen")
        except SystemExit as end:
            code = end.code or 0
    errors = [line for line in said.getvalue().splitlines() if not line.startswith("note: ")]
    if code == 0 and not errors:
        return
    if code in {130, 143}:  # a signal
        sys.exit(code)
    if code != 2 or len(errors) != 1 or len(errors[0]) > 2100 or "\x1b" in errors[0]:
        raise DefectError(f"exit code {code}, {errors[:3]}"[:1000])
    raise RefusedError(errors[0])


def fit_and_predict(rng, path, folder):
    """Learn from a table and classify its rows, by a model at random."""
    import pandas as pd

    model = str(rng.choice(["mixed", "gaussian", "categorical", "bernoulli", "poisson", "lda"]))
    command("fit", path, "-t", "y", "-o", folder / "m.nc", "--model", model)
    command("predict", folder / "m.nc", path, "-o", folder / "out.parquet")
    p = pd.read_parquet(folder / "out.parquet").drop(columns="prediction").to_numpy()
    check_probabilities(p, p.shape[1])
    return "predicted"


@kind
def csv(rng, folder):
    """A CSV file through the command line."""
    path = folder / "in.csv"
    path.write_bytes(table_text(rng))
    return fit_and_predict(rng, path, folder)


@kind
def parquet(rng, folder):
    """A damaged Parquet file through the command line."""
    import pandas as pd

    n = int(rng.integers(1, 200))
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["u", "v"], n)})
    frame = frame.assign(c=rng.random(n) < 0.5, y=rng.choice(["p", "q"], n))
    path = folder / "in.parquet"
    frame.to_parquet(path, index=False, compression=str(rng.choice(["none", "snappy", "zstd"])))
    path.write_bytes(changed_bytes(rng, path.read_bytes()))
    return fit_and_predict(rng, path, folder)


# ----------------------------------------------------------------------------------- Python


def array_at_random(rng, n, d):
    """Rows of any type, container and size."""
    form = rng.integers(6)
    X = rng.normal(size=(n, d)) if form < 2 else rng.integers(0, 4, (n, d)).astype(float)
    if X.size and rng.random() < 0.4:
        X.flat[rng.integers(X.size, size=2)] = ODD[rng.integers(len(ODD))]
    if form == 3:
        return rng.choice(np.array(["a", "b", None], dtype=object), (n, d))
    if form == 4:
        with np.errstate(all="ignore"):
            return X.astype(rng.choice(["f4", "f2", "i8", "u1", "?", "c16", "M8[s]", "O", "U5"]))
    if form == 5:
        import pandas as pd
        from scipy import sparse

        names = [f"x{j}" for j in range(d)]  # no polars: its threads do not outlive a fork
        makers = (sparse.csr_matrix, sparse.coo_array, lambda v: pd.DataFrame(v, columns=names))
        makers += (np.ma.masked_invalid, np.asfortranarray)
        return makers[rng.integers(len(makers))](X)
    return X


@kind
def python(rng, folder):
    """Rows, labels, weights and hyper-parameters at random through the estimators."""
    import bayesgen as bg

    n, d = int(rng.choice([0, 1, 2, 5, 20])), int(rng.choice([0, 1, 2, 5]))
    y = rng.choice([0, 1, 2], n) if rng.random() < 0.7 else rng.choice(["a", "b"], n)
    if rng.random() < 0.1:
        y = rng.choice(np.array([None, np.nan, 1, "a", True], dtype=object), n)
    weight = None if rng.random() < 0.6 else rng.choice([0, 1, 0.5, 1e15, *ODD], n)
    names = ("GaussianNB", "LinearDiscriminant", "QuadraticDiscriminant", "BernoulliNB", "MixedNB")
    names += ("CategoricalNB", "MultinomialNB", "PoissonNB", "TreeAugmentedNB", "MarkovNB")
    clf = getattr(bg, str(rng.choice(names)))()
    own = [k for k, v in clf.get_params().items() if isinstance(v, float)]
    if own and rng.random() < 0.2:
        clf.set_params(**{str(rng.choice(own)): ODD[rng.integers(len(ODD))]})
    X = array_at_random(rng, n, d)
    with refusal():
        clf.fit(X, y, sample_weight=weight)
    with refusal():
        p = clf.predict_proba(X)
    check_probabilities(p, len(clf.classes_))
    if not np.isfinite(clf.log_evidence_):
        raise DefectError(f"the log evidence is {clf.log_evidence_}")
    with refusal():
        clf.save(folder / "m.nc")
    if not np.array_equal(bg.load(folder / "m.nc").predict_proba(X), p):
        raise DefectError("another model is loaded than was saved")
    return "predicted"


# --------------------------------------------------------------------- full disks and kills


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
            command("fit", folder / "in.csv", "-t", "y", "-o", folder / "m.nc")
        case "predict":
            command("predict", folder / "old.nc", folder / "in.csv", "-o", folder / "out.csv")
        case "report":
            arguments = ("-t", "y", "-o", folder / "report.json", "--max-rows", 10)
            command("report", folder / "old.nc", folder / "in.csv", *arguments)
        case "sample":
            clf, (X, y) = bg.GaussianNB(), chunks[0]
            y = np.where(np.arange(30) % 7 == 0, -1, y)
            clf.fit(X, y, inference="gibbs", draws=400, progressbar=False).save(folder / "m.nc")


def old_files(folder):
    """A table, a model, and files to be replaced."""
    import bayesgen as bg

    rows = [f"{i % 7},{i % 5},{'pq'[i % 2]}" for i in range(3000)]
    (folder / "in.csv").write_text("\n".join(["a,b,y", *rows]))
    for name in ("old.nc", "m.nc"):
        bg.MixedNB().fit([[1.0, 2.0], [2.0, 1.0], [0.0, 3.0]], ["p", "q", "p"]).save(folder / name)
    table = "a,b,y\n1,2,p\n2,2,q\n3,1,p\n1,1,q"
    (folder / "small.csv").write_text(table)
    command("fit", folder / "small.csv", "-t", "y", "-o", folder / "old.nc")
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


@kind
def disk(rng, folder):
    """A disk that is full, here by a limit on the size of files."""
    before = old_files(folder)
    what = str(rng.choice(WORKS))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(10 ** rng.uniform(0, 5.3)), limits[1]))
    try:
        with refusal():
            write_work(folder, what)
        return "written"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        check_files(folder, before, leftovers=False)


@kind
def kill(rng, folder):
    """A process that gets a signal at a random moment."""
    before = old_files(folder)
    what = str(rng.choice(WORKS))
    number = int(rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as the command line has it
            write_work(folder, what)
        except KeyboardInterrupt:
            os._exit(130)
        except SystemExit as end:
            os._exit(end.code or 0)
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    time.sleep(10 ** rng.uniform(-2.5, 0.3))
    with suppress(ProcessLookupError):
        os.kill(child, number)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in {0, 130, 143, -number}:
        raise DefectError(f"exit code {code} of {what} after signal {number}")
    check_files(folder, before, leftovers=number == signal.SIGKILL)
    write_work(folder, what)  # it is taken up again, or done anew
    return f"code {code}"


# -------------------------------------------------------------------------------------- machinery


def run_cases(name, seed, numbers, pipe):
    """In a child: try cases one by one, and write what happened to a pipe."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, resource.RLIM_INFINITY))
    for number in numbers:
        os.write(pipe, (json.dumps([number, None, ""]) + "\n").encode())
        folder = Path(tempfile.mkdtemp(prefix="fuzz"))
        what, detail = "defect", ""
        try:
            with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", RuntimeWarning)
                rng = np.random.default_rng([*name.encode(), seed, number])
                what = KINDS[name](rng, folder)
        except RefusedError as error:
            what, detail = "refused", str(error)
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            lines = traceback.format_exception(error)
            detail = f"{type(error).__name__}: {error}\n" + "".join(lines)[-3000:]
        shutil.rmtree(folder, ignore_errors=True)
        os.write(pipe, (json.dumps([number, what, detail[-3000:]]) + "\n").encode())


def cpu_seconds(process):
    """Time that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def try_all(name, seed, numbers, deadline):
    """Yield (number, what happened, detail) of the cases of a kind, in processes of their own."""
    numbers = list(numbers)
    while numbers and time.monotonic() < deadline:
        batch, there, here = numbers[:200], *os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            try:
                os.close(there)
                os.setpgrp()
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                run_cases(name, seed, batch, here)
            finally:
                os._exit(0)
        os.close(here)
        running, text, why, used = None, b"", "the process died", []
        while True:
            if not select.select([there], [], [], SECONDS)[0]:
                used.append(cpu_seconds(child))  # the machine may be busy with other things
                stands = len(used) > 1 and used[-1] < used[-2] + 0.1
                if stands or used[-1] > used[0] + SECONDS or time.monotonic() > deadline:
                    why = f"it took more than {SECONDS} s"
                    break
                continue
            used = []
            part = os.read(there, 1 << 16)
            if not part:
                break
            *lines, text = (text + part).split(b"\n")
            for line in lines:
                number, what, detail = json.loads(line)
                running = number if what is None else None
                if what is not None:
                    numbers.remove(number)
                    yield number, what, detail
            if time.monotonic() > deadline:
                break
        late = time.monotonic() > deadline
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(there)
        if running is not None and not late:
            numbers.remove(running)
            yield running, "defect", f"{why} (status {status})"


def main():
    """Run cases and count what happened; exit code 1 if there is a defect."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", type=int, default=100, help="of each kind")
    parser.add_argument("--kind", choices=[*KINDS], action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="number of a case")
    parser.add_argument("--seconds", type=float, default=np.inf, help="in all, at most")
    parser.add_argument("--verbose", action="store_true", help="show every error")
    options = parser.parse_args()
    names = options.kind or [*KINDS]
    n_defects = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models()
    ends = [time.monotonic() + options.seconds * (k + 1) / len(names) for k in range(len(names))]
    for name, end in zip(names, ends, strict=True):
        counts, seen = collections.Counter(), set()
        numbers = range(options.cases) if options.only is None else [options.only]
        for number, what, detail in try_all(name, options.seed, numbers, end):
            counts[what] += 1
            if what == "defect":
                n_defects += 1
                key = detail.rstrip().rsplit("\n", 1)[-1]
                if key not in seen or options.verbose:
                    print(f"--- {name} {number}: {detail}")
                seen.add(key)
            elif options.verbose:
                print(f"{name} {number}: {what} {detail}")
        told = ", ".join(f"{what} {n}" for what, n in counts.most_common())
        print(f"{name}: {counts.total()} cases: {told}", flush=True)
    return 1 if n_defects else 0


if __name__ == "__main__":
    sys.exit(main())
