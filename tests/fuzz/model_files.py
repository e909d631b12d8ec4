"""Damaged model files: only the very model may be read."""

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tests.fuzz.judge import DefectError, ask, refusal

# ------------------------------------------------------------------------- files kept in memory


@contextmanager
def in_memory():
    """`save` and `load` without netCDF, which takes nine tenths of a case's time.

    What would be written is kept by its path, and its JSON made and read; a file that was not
    written here is read as ever.
    """
    from bayesgen.io import storage
    from bayesgen.io.storage import replacing

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


def make_models():
    """Fit models of every form, and keep the bytes of their files."""
    import bayesgen as bg
    from tests.io.test_storage import BITS, COUNTS, FIRST, REAL, TEXTS, WORDS, Y
    from tests.io.test_storage import CASES as SAVED

    fitted = {name: (make().fit(X, Y), X) for name, (make, X) in SAVED.items() if name in FIRST}
    more = (
        *((bg.LinearDiscriminant(), REAL), (bg.TreeAugmentedNB(), WORDS), (bg.MarkovNB(2), TEXTS)),
        (bg.TreeAugmentedNB(structure="tree"), BITS),
        (bg.LogLinearPool([bg.PoissonNB(), bg.GaussianNB()]), COUNTS),
    )
    fitted |= {str(clf): (clf.fit(X, Y), X) for clf, X in more}
    scored = bg.BernoulliNB().fit(BITS, Y)
    scored.typicality(BITS)
    fitted["with scores"] = scored, BITS
    exact = bg.GaussianNB().fit(REAL, Y)
    fitted["draws"] = exact.with_posterior(exact.draw_posterior(10, 2)), REAL
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
    start = int(rng.integers(len(raw) if rng.random() < 0.7 else min(4096, len(raw))))
    n = int(2 ** rng.uniform(0, 9))
    match rng.integers(6):
        case 0 | 1:
            for i in rng.integers(len(raw), size=rng.integers(1, 4)):
                raw[i] ^= 1 << int(rng.integers(8))
        case 2:
            raw[start : start + n] = rng.bytes(n)
        case 3:
            del raw[start : start + n]
        case 4:
            raw[start:start] = raw[start : start + n]
        case 5:
            raw = raw[:start]
    return bytes(raw)


def damaged(rng, folder):
    """A damaged model file: refused, or the very model."""
    import bayesgen as bg

    name = str(rng.choice(list(made)))
    raw, X, _, expected = made[name]
    changed = changed_bytes(rng, raw)
    while b"bayesgen" not in changed[-90:]:  # its digest was cut off: nothing is compared
        changed = changed_bytes(rng, raw)
    path = folder / "m.nc"
    path.write_bytes(changed)
    with refusal():
        clf = bg.load(path)
    if not np.array_equal(clf.predict_log_proba(X), expected, equal_nan=True):
        raise DefectError(f"another model was read from a damaged {name}")
    return "same"
