"""Model files: damaged, so that only the very model may be read, and forged with other content."""

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tests.fuzz.judge import DefectError, ask, check_evidence, check_probabilities, refusal

# ------------------------------------------------------------------------- files kept in memory


@contextmanager
def in_memory():
    """`save` and `load` without netCDF, which takes nine tenths of a case's time.

    What would be written is kept by its path, and its JSON made and read; a file that was not
    written here is read as ever.
    """
    from bayesgen.io import storage
    from bayesgen.io.output import replacing

    kept, write, read = {}, storage.write, storage.read

    def keep(path, fit, state, draws=None):
        record = json.dumps({"format": storage.FORMAT, **state})
        groups = {name: group.copy(deep=True) for name, group in (draws or {}).items()}
        kept[Path(path)] = fit.copy(deep=True), record, groups
        with replacing(path) as temporary:
            temporary.write_bytes(b"in memory")
        return Path(path)

    def take(path):
        if Path(path) not in kept:
            return read(path)
        fit, record, groups = kept[Path(path)]
        return fit.copy(deep=True), json.loads(record), dict(groups)

    storage.write, storage.read = keep, take
    try:
        yield
    finally:
        storage.write, storage.read = write, read


# ------------------------------------------------------------------------------------- models

made = {}  # name: (bytes of a file, X, y, log probabilities)


def make_models(sampled=False):
    """Models of every form, with the bytes of their files; NUTS fits take a minute more."""
    import bayesgen as bg
    from tests.io.test_storage import BITS, COUNTS, FIRST, REAL, TEXTS, WORDS, Y
    from tests.io.test_storage import CASES as SAVED

    fitted = {name: (make().fit(X, Y), X) for name, (make, X) in SAVED.items() if name in FIRST}
    fitted |= {
        clf if isinstance(clf, str) else f"{type(clf).__name__} {k}": (clf.fit(X, Y), X)
        for k, (clf, X) in enumerate(
            [
                (bg.LinearDiscriminant(), REAL),
                (bg.TreeAugmentedNB(), WORDS),
                (bg.TreeAugmentedNB(structure="tree"), BITS),
                (bg.TreeAugmentedGaussianNB(), REAL),
                (bg.AnDE(), WORDS),
                (bg.AnDE(2, weights="evidence"), BITS),
                (bg.HistogramNB(n_bins=3), REAL),
                (bg.MarkovNB(2, smoothing="hierarchical"), TEXTS),
                (bg.MarkovNB(2, smoothing="context_tree"), TEXTS),
                (bg.MarkovNB(2), TEXTS),
                (bg.LogLinearPool([bg.PoissonNB(), bg.GaussianNB()]), COUNTS),
                (bg.LogLinearPool([bg.BernoulliNB(), bg.PoissonNB()], exponents="feature"), BITS),
            ]
        )
    }
    scored = bg.BernoulliNB().fit(BITS, Y)
    scored.typicality(BITS)
    fitted["with scores"] = scored, BITS
    partly = np.where(np.arange(len(Y)) % 5 == 0, None, Y.astype(object))
    gibbs = {"inference": "gibbs", "draws": 10, "chains": 2, "random_state": 1}
    fitted["gibbs"] = bg.GaussianNB().fit(REAL, partly, progressbar=False, **gibbs), REAL
    if sampled:
        kinds = (bg.StudentTNB, bg.BayesianLogisticRegression)
        kinds += (bg.MixtureDiscriminant,)
        rows = dict.fromkeys(kinds, REAL) | {bg.HierarchicalBernoulliNB: BITS}
        rows[bg.NegativeBinomialNB] = COUNTS
        for estimator, X in rows.items():
            clf = estimator(draws=5, tune=200, chains=2, random_state=1)
            fitted[estimator.__name__] = clf.fit(X, Y, progressbar=False), X
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.nc"
        for name, (clf, X) in fitted.items():
            clf.save(path)
            made[name] = path.read_bytes(), X, Y, clf.predict_log_proba(X)
            for seed in range(3):  # what questions import is imported once
                ask(clf, X, Y, np.random.default_rng(seed))


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


def damaged(rng, folder):
    """A damaged model file: refused, or the very model."""
    import bayesgen as bg

    bare = rng.random() < 0.01  # few without a digest: another process reads them first, for 0.5 s
    name = str(rng.choice(list(made)))
    raw, X, _, expected = made[name]
    changed = changed_bytes(rng, raw)
    while not bare and b"bayesgen" not in changed[-90:]:
        changed = changed_bytes(rng, raw)
    path = folder / "m.nc"
    path.write_bytes(changed)
    with refusal():
        clf = bg.load(path)
    if not np.array_equal(clf.predict_log_proba(X), expected, equal_nan=True):
        raise DefectError(f"another model was read from a damaged {name}")
    return "same"


# -------------------------------------------------------------------------------------- forged

ODD = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-320, 1e300, -1e300, 0.5, 2.0**53)
ODD_JSON = (
    *(None, True, -1, 0, 2, 1e308, "", "x", [], {}, [[]], ["a", "b"]),
    *({"tuple": [1]}, "\x1b[2J", {"array": [1.0], "dtype": "<f8"}, 10**400, "a" * 10_000),
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
            value = ODD[rng.integers(len(ODD))]
            with np.errstate(all="ignore"):  # float32 has no 1e308
                values.flat[cells] = (
                    value
                    if values.dtype.kind == "f"
                    else int(
                        np.clip(np.nan_to_num(value), 0 if values.dtype.kind == "u" else -9, 99)
                    )
                )
            data[name] = (v.dims, values, v.attrs)
        case 3 if v.ndim and len(values):
            rest = np.delete(values, 0, axis=0)
            return data.drop_vars(name).assign(
                {name: ((f"{v.dims[0]}_", *v.dims[1:]), rest, v.attrs)}
            )
        case 4 if values.dtype.kind != "U":
            with np.errstate(all="ignore"):  # int8 has no NaN
                values = values.astype([np.float32, np.int8, "U3"][rng.integers(3)])
            data[name] = (v.dims, values, v.attrs)
        case 5:
            return data.drop_vars(name)
        case _:
            attrs = {**v.attrs, "axes": str(changed_json(rng, v.attrs.get("axes", "[]")))}
            data[name] = (v.dims, values, attrs)
    return data


contents = {}  # of model files, read once


def forged_content(rng, content):
    """The three parts of a model file with one or two changes."""
    fit, state, draws = content
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
    return fit, state, draws


def forged(rng, folder):
    """A well-formed file with another content: refused, or a model that is valid."""
    import bayesgen as bg
    from bayesgen.io import storage

    name = str(rng.choice(list(made)))
    raw, X, *_ = made[name]
    path = folder / "m.nc"
    if name not in contents:
        path.write_bytes(raw)
        contents[name] = storage.read(path)
    fit, state, draws = forged_content(rng, contents[name])
    try:
        storage.write(path, fit, state, draws)
    except Exception:  # noqa: BLE001 - xarray cannot write that
        return "not written"
    with refusal():
        clf = bg.load(path)
    Z = X[:6] if not hasattr(X, "iloc") else X.iloc[:6]
    with refusal():  # the rows may not be those of this model
        p = clf.predict_proba(Z)
    check_probabilities(p, len(clf.classes_))
    check_evidence(clf)
    ask(clf, Z, clf.classes_[np.arange(6) % len(clf.classes_)], rng)
    with refusal():
        clf.save(folder / "again.nc")
    return "valid"
