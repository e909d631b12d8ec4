"""The pool of texts against tf-idf with linear classifiers: ``docs/benchmarks/language_models.md``.

    python -m tests.benchmarks.language_models [--data FOLDER] [--set NAME ...] [--members]

Log loss of texts that were not fitted. FOLDER has ``sms_spam.tsv`` (tests/benchmarks/open_sets.py
says where it is looked for); without it that set is left out. Docstrings are those of the packages
of this environment, the class is the package. One split of each set, the same whatever is asked.
``--members``: leave-one-out log loss of the pool without each of its members, over that of the
pool, on the training rows.
"""

import argparse
import ast
import importlib.util
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import log_softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import bayesgen as bg
from bayesgen.posterior.pooled import Scored

PACKAGES = ("IPython", "dask", "docutils", "matplotlib", "numpy", "pandas", "scipy", "sklearn")
LONGEST = 400  # characters of a docstring


def docstrings():
    """First paragraphs of docstrings, and their packages."""
    texts, labels = [], []
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        seen = set()
        for path in sorted(Path(spec.submodule_search_locations[0]).rglob("*.py")):
            if "test" in str(path):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    text = " ".join((ast.get_docstring(node) or "").split("\n\n")[:2])[:LONGEST]
                    if len(text.split()) >= 5:
                        seen.add(text)
        texts += sorted(seen)
        labels += [package] * len(seen)
    return np.array(texts, dtype=object), np.array(labels, dtype=object)


def messages(folder):
    """Text messages, ham or spam."""
    table = pd.read_csv(folder / "sms_spam.tsv", sep="\t", header=None, quoting=3)
    table = table[table[0].isin(["ham", "spam"])]
    return table[1].to_numpy(), table[0].to_numpy()


def split(texts, labels, n_train, n_test, per_class=True):
    """Texts for training and for a test, so many of each class or in all."""
    rng = np.random.default_rng(0)
    groups = [labels == c for c in np.unique(labels)] if per_class else [np.ones(len(labels), bool)]
    orders = [rng.permutation(np.flatnonzero(group)) for group in groups]
    train = np.concatenate([order[:n_train] for order in orders])
    test = np.concatenate([order[n_train : n_train + n_test] for order in orders])
    return texts[train], labels[train], texts[test], labels[test]


def addresses():
    """Passages of addresses, and their presidents."""
    texts, labels = bg.datasets.load_addresses()
    return np.asarray(texts), np.asarray(labels)


def sets(folder):
    """{name: function of no arguments that returns a split}."""
    found = {
        "docstrings, 100 per package": lambda: split(*docstrings(), 100, 60),
        "docstrings, 36 per package": lambda: split(*docstrings(), 36, 60),
        "addresses, 33 per president": lambda: split(*addresses(), 33, 17),
    }
    if folder is not None and (folder / "sms_spam.tsv").is_file():
        for n in (1500, 100):
            found[f"messages, {n}"] = partial(_messages, folder, n)
    return found


def _messages(folder, n_train):
    return split(*messages(folder), n_train, 1500, per_class=False)


def classifiers():
    """{name: unfitted classifier of texts}."""
    linear = LogisticRegression(C=10, max_iter=1000)
    svc = CalibratedClassifierCV(LinearSVC(), cv=3)
    return {
        "tf-idf, logistic regression": make_pipeline(TfidfVectorizer(), linear),
        "tf-idf, calibrated linear SVC": make_pipeline(TfidfVectorizer(), svc),
        "MarkovNB()": bg.MarkovNB(),
        "LogLinearPool([MarkovNB()])": bg.LogLinearPool([bg.MarkovNB()]),
        "LogLinearPool()": bg.LogLinearPool(),
    }


def without_members(name, texts, labels):
    """Print the leave-one-out log loss of the pool without each member, over that of the pool."""
    pool = bg.LogLinearPool().fit(list(texts), labels)
    posterior = pool.fitted_.posterior
    evidence, codes, weight = posterior.scored

    def loss(members):
        scored = Scored(replace(evidence, scores=evidence.scores[members]), codes, weight)
        exponents = posterior.sample(*scored)
        log_p = exponents.without_each_row(*scored, posterior.sample)[0]
        return -log_softmax(log_p, axis=1)[np.arange(len(codes)), codes].mean()

    every = np.arange(len(posterior.members))
    whole = loss(every)
    ratios = [loss(np.delete(every, k)) / whole for k in every]
    print(f"| {name} |", " | ".join(f"{ratio:.3f}" for ratio in ratios), "|", flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--set", nargs="*", default=None)
    parser.add_argument("--members", action="store_true")
    given = parser.parse_args()
    print("| texts | classes |", " | ".join(classifiers()), "| fit of the pool |")
    print("|---|---|" + "---|" * (len(classifiers()) + 1))
    for name, make in sets(given.data).items():
        if given.set is not None and not any(name.startswith(some) for some in given.set):
            continue
        texts, labels, new, truth = make()
        if given.members:
            without_members(name, texts, labels)
            continue
        losses = []
        for clf in classifiers().values():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf.fit(list(texts), labels)
            seconds = time.process_time() - start
            proba = clf.predict_proba(list(new))
            losses.append(f"{log_loss(truth, proba, labels=clf.classes_):.3f}")
        n_classes = len(np.unique(labels))
        print(f"| {name} | {n_classes} |", " | ".join(losses), f"| {seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
