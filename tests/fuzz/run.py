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
from contextlib import contextmanager, redirect_stdout, suppress
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

    name = str(rng.choice(list(models())))
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
                values.flat[cells] = ODD[rng.integers(len(ODD))]
            data[name] = (v.dims, values, v.attrs)
        case 3 if v.ndim:
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


@kind
def forged(rng, folder):
    """A well-formed file with another content: refused, or a model that is valid."""
    import bayesgen as bg
    from bayesgen.io import storage

    name = str(rng.choice(list(models())))
    raw, X, _ = models()[name]
    path = folder / "m.nc"
    path.write_bytes(raw)
    fit, state, draws = storage.read(path)
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
        running, text, why = None, b"", "the process died"
        while True:
            if not select.select([there], [], [], SECONDS)[0]:
                why = f"it took more than {SECONDS} s"
                break
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
    ends = [time.monotonic() + options.seconds * (k + 1) / len(names) for k in range(len(names))]
    n_defects = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models()
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
