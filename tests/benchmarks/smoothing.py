"""Language models of fixed orders beside those that mix orders: log loss on held-out documents.

Languages from the package's data by the first 20 and 50 characters and by whole paragraphs, spam
by characters and by words; row i is held out if i % 3 == 2. Log losses in nats: as fitted, at the
best temperature of the held-out rows (one number, from outside), and as a `LogLinearPool` of one
member, which has its exponent and intercepts from leave-one-out. Written to ``smoothing.json``
and, ``--update``, to the page of benchmarks.

``--strength`` asks what the default strength of hierarchical smoothing should be: log losses in
five folds of the training rows, the held-out ones above never seen.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

import bayesgen as bg
from tests.benchmarks.open_sets import SHARED, load
from tests.benchmarks.tables import markdown, write_between

FILE = Path(__file__).with_name("smoothing.json")
STRENGTHS = (100.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0)


class Task(NamedTuple):
    """Documents, how they are cut, and lengths of what is held out (None: whole)."""

    name: str
    X: np.ndarray
    y: np.ndarray
    tokens: str
    lengths: tuple[int | None, ...]


def tasks(folder: Path) -> Iterator[Task]:
    """Those whose data are there."""
    X, y = bg.datasets.load_languages()
    yield Task("languages", np.array(X, dtype=object), np.array(y), "char", (20, 50, None))
    if "sms" in (sets := load(folder)):
        s = sets["sms"]
        for tokens in ("char", "word"):
            yield Task(f"sms by {tokens}s", s.X, s.y, tokens, (None,))


def models(tokens: str) -> dict[str, Any]:
    """{name: classifier}."""
    orders = (1, 2, 3, 4) if tokens == "char" else (1, 2)
    fixed = {f"order {n}": bg.MarkovNB(n, tokens=tokens) for n in orders}
    mixed = {
        s: bg.MarkovNB(4, tokens=tokens, smoothing=s) for s in ("hierarchical", "context_tree")
    }
    chosen = bg.MarkovNB(4, tokens=tokens, smoothing="hierarchical", prior="loo")
    return fixed | mixed | {"hierarchical, strengths by LOO": chosen}


def log_loss(log_joint: np.ndarray, codes: np.ndarray, temperature: float = 1.0) -> float:
    """Mean of -log p(label | document), in nats."""
    scaled = log_joint / temperature
    return float(np.mean(logsumexp(scaled, axis=1) - scaled[np.arange(len(codes)), codes]))


def measure(task: Task, clf: Any) -> Iterator[tuple[int | None, dict[str, float]]]:
    """(length, figures) of one classifier."""
    test = np.arange(len(task.y)) % 3 == 2
    start = time.process_time()
    clf.fit(task.X[~test], task.y[~test])
    fitted = time.process_time()
    pool = bg.LogLinearPool([clf], prefit=True).fit(task.X[~test], task.y[~test])
    for length in task.lengths:
        X = np.array([text[:length] for text in task.X[test]], dtype=object)
        codes = np.searchsorted(clf.classes_, task.y[test])
        begun = time.process_time()
        log_joint = clf.predict_joint_log_proba(X)
        done = time.process_time()
        best = minimize_scalar(
            lambda u, a=log_joint, c=codes: log_loss(a, c, np.exp(u)),
            bounds=(-2, 4),
            method="bounded",
        )
        yield (
            length,
            {
                "log_loss": round(log_loss(log_joint, codes), 4),
                "temperature": round(float(np.exp(best.x)), 2),
                "log_loss_at_best_temperature": round(float(best.fun), 4),
                "log_loss_of_pool": round(log_loss(pool.predict_log_proba(X), codes), 4),
                "accuracy": round(float((log_joint.argmax(axis=1) == codes).mean()), 4),
                "fit_s": round(fitted - start, 2),
                "predict_s": round(done - begun, 2),
                "documents": int(test.sum()),
            },
        )


def by_strength(task: Task) -> Iterator[tuple[int | None, dict[str, float]]]:
    """(length, log losses by strength) of hierarchical smoothing, in 5 folds of training rows."""
    train = np.arange(len(task.y)) % 3 != 2
    X, y, fold = task.X[train], task.y[train], np.arange(train.sum()) % 5
    for length in task.lengths:
        found = {}
        for strength in STRENGTHS:
            each = []
            for k in range(5):
                clf = bg.MarkovNB(
                    4, tokens=task.tokens, smoothing="hierarchical", strength=strength
                )
                clf.fit(X[fold != k], y[fold != k])
                rows = np.array([text[:length] for text in X[fold == k]], dtype=object)
                codes = np.searchsorted(clf.classes_, y[fold == k])
                each.append(log_loss(clf.predict_joint_log_proba(rows), codes))
            found[f"{strength:g}"] = round(float(np.mean(each)), 4)
        yield length, found


def page(known: dict[str, Any]) -> str:
    """A line for each task and model: as fitted / at the best temperature (which) / as a pool."""
    fields = ("log_loss", "log_loss_at_best_temperature", "temperature", "log_loss_of_pool")
    rows = []
    for task, found in known.items():
        if task == "strength":
            continue
        fixed = {name: of for name, of in found.items() if name.startswith("order")}
        for field, how in (("log_loss", "as fitted"), (fields[1], "at its best temperature")):
            best = min(fixed, key=lambda name, f=field, of=fixed: of[name][f])
            rows.append([task, f"{best}, best {how}", *(str(fixed[best][f]) for f in fields)])
        for name in ("hierarchical", "hierarchical, strengths by LOO", "context_tree"):
            rows.append([task, name, *(str(found[name][f]) for f in fields)])
    head = ("held-out documents", "smoothing", "as fitted", "at T", "T", "with exponent")
    return markdown(head, rows, 2)


def main() -> None:
    """Measure everything and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="names of tasks that hold this")
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--strength", action="store_true", help="of training rows alone")
    parser.add_argument("--update", action="store_true", help="the page from what is kept")
    options = parser.parse_args()
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    if options.update:
        return write_between("smoothing", page(known))
    for task in tasks(options.data):
        if options.only not in task.name:
            continue
        if options.strength:
            for length, found in by_strength(task):
                key = task.name if length is None else f"{task.name}, {length} characters"
                known.setdefault("strength", {})[key] = found
                print(f"{key:28}", found, flush=True)
        for name, clf in () if options.strength else models(task.tokens).items():
            for length, figures in measure(task, clf):
                key = task.name if length is None else f"{task.name}, {length} characters"
                known.setdefault(key, {})[name] = figures
                print(f"{key:28} {name:14}", *figures.values(), flush=True)
        FILE.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
