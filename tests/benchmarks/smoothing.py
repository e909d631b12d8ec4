"""Language models of fixed orders beside those that mix orders: log loss on held-out documents.

Languages from the package's data by the first 20 and 50 characters and by whole paragraphs, spam
by characters and by words; row i is held out if i % 3 == 2. Log losses in nats: as fitted, at the
best temperature of the held-out rows (one number, from outside), and as a `LogLinearPool` of one
member, which has its exponent and intercepts from leave-one-out. Written to ``smoothing.json``
and, ``--update``, to the page of benchmarks.

``--defaults`` asks what the defaults of hierarchical smoothing should be: log losses in five folds,
trained on all documents of the other four or on at most ``--per-class`` of each class, over those
of the best fixed order.
"""

import argparse
import json
import time
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

import bayesgen as bg
from tests.benchmarks.open_sets import SHARED, load
from tests.benchmarks.tables import markdown, write_between

FILE = Path(__file__).with_name("smoothing.json")
CONCENTRATIONS = (10.0, 30.0, 100.0, 300.0)  # b of shorter contexts
STRENGTHS = (3e3, 1e4, 3e4, 1e5)  # b_0 of the empty one


class Task(NamedTuple):
    """Documents, how they are cut, and lengths of what is held out (None: whole)."""

    name: str
    X: np.ndarray
    y: np.ndarray
    tokens: str
    lengths: tuple[int | None, ...]

    @property
    def names(self) -> list[str]:
        """Of each length."""
        return [self.name if n is None else f"{self.name}, {n} characters" for n in self.lengths]


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


def measure(task: Task, clf: Any) -> Iterator[dict[str, float]]:
    """Figures of one classifier for each length."""
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
        yield {
            "log_loss": round(log_loss(log_joint, codes), 4),
            "temperature": round(float(np.exp(best.x)), 2),
            "log_loss_at_best_temperature": round(float(best.fun), 4),
            "log_loss_of_pool": round(log_loss(pool.predict_log_proba(X), codes), 4),
            "accuracy": round(float((log_joint.argmax(axis=1) == codes).mean()), 4),
            "fit_s": round(fitted - start, 2),
            "predict_s": round(done - begun, 2),
            "documents": int(test.sum()),
        }


def cross_validated(task: Task, clf: Any, per_class: int) -> dict[str, float]:
    """Log loss of each length in five folds; of few documents, the mean over three partitions."""
    X, y = task.X, task.y
    repeats = 3 if min(len(y), 10 * per_class) < 2000 else 1
    out = dict.fromkeys(task.names, 0.0)
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        fold = np.arange(len(y))[np.argsort(order)] % 5
        for k in range(5):
            others = order[fold[order] != k]
            train = np.concatenate([others[y[others] == c][:per_class] for c in np.unique(y)])
            clf.fit(X[train], y[train])
            codes = np.searchsorted(clf.classes_, y[fold == k])
            for name, length in zip(task.names, task.lengths, strict=True):
                rows = np.array([text[:length] for text in X[fold == k]], dtype=object)
                loss = log_loss(clf.predict_joint_log_proba(rows), codes)
                out[name] += loss * len(codes) / len(y) / repeats
    return {name: round(value, 4) for name, value in out.items()}


def by_defaults(every: list[Task], per_class: int) -> Iterator[tuple[str, dict[str, float]]]:
    """(setting, {task: log loss}) of fixed orders, then of weights of shorter contexts."""
    for order in (1, 2, 3):
        losses = [cross_validated(t, bg.MarkovNB(order, tokens=t.tokens), per_class) for t in every]
        yield f"order {order}", {k: v for own in losses for k, v in own.items()}
    for b, b_0 in product(CONCENTRATIONS, STRENGTHS):
        mixed = partial(bg.MarkovNB, 4, smoothing="hierarchical", concentration=b, strength=b_0)
        losses = [cross_validated(t, mixed(tokens=t.tokens), per_class) for t in every]
        yield f"{b:g}, {b_0:g}", {k: v for own in losses for k, v in own.items()}


def over_best_order(found: dict[str, dict[str, float]]) -> Iterator[str]:
    """A line for each setting: log losses over those of the best order.

    First their geometric means over the tasks, and over the sets, whose lengths count as one.
    """
    fixed = [of for name, of in found.items() if name.startswith("order")]
    best = {task: min(of[task] for of in fixed) for task in fixed[0]}
    for name, of in found.items():
        logs = {task: np.log(of[task] / best[task]) for task in best}
        sets = {task.split(",")[0] for task in best}
        by_set = [np.mean([v for t, v in logs.items() if t.split(",")[0] == s]) for s in sets]
        means = f"{np.exp(np.mean([*logs.values()])):.3f} {np.exp(np.mean(by_set)):.3f}"
        yield f"{name:14} {means}  " + " ".join(f"{np.exp(v):.2f}" for v in logs.values())


def page(known: dict[str, Any]) -> str:
    """A line for each task and model; of the fixed orders, the one that is best as fitted."""
    fields = ("log_loss", "log_loss_at_best_temperature", "temperature", "log_loss_of_pool")
    rows = []
    for task, found in known.items():
        fixed = {name: of for name, of in found.items() if name.startswith("order")}
        best = min(fixed, key=lambda name, of=fixed: of[name]["log_loss"])
        rows.append([task, f"{best}, the best fixed one", *(str(fixed[best][f]) for f in fields)])
        for name in ("hierarchical", "hierarchical, strengths by LOO", "context_tree"):
            rows.append([task, name, *(str(found[name][f]) for f in fields)])
    head = ("held-out documents", "smoothing", "as fitted", "at T", "T", "with exponent")
    return markdown(head, rows, 2)


def main() -> None:
    """Measure everything and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="names of tasks that hold this")
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--defaults", action="store_true", help="of hierarchical smoothing")
    parser.add_argument("--per-class", type=int, default=10**9, help="of --defaults: documents")
    parser.add_argument("--update", action="store_true", help="the page from what is kept")
    options = parser.parse_args()
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    if options.update:
        return write_between("smoothing", page(known))
    chosen = [task for task in tasks(options.data) if options.only in task.name]
    if options.defaults:
        found = dict(by_defaults(chosen, options.per_class))
        return print(*over_best_order(found), sep="\n")
    for task in chosen:
        for name, clf in models(task.tokens).items():
            for key, figures in zip(task.names, measure(task, clf), strict=True):
                known.setdefault(key, {})[name] = figures
                print(f"{key:28} {name:14}", *figures.values(), flush=True)
    FILE.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
