"""Rows without a label: what they add to a few labels per class, and when they hurt.

    .venv/bin/python tests/benchmarks/unlabelled.py                     # half an hour
    .venv/bin/python tests/benchmarks/unlabelled.py --only wine votes

At most `--rows` rows of each table; 5 or 10 of each class have their label, a third of the others
are test rows, the rest has no label. Test log loss of the fit to the labelled rows; and over it
that of ``unlabelled="weighted"``, of weight 1 (what Bayes' rule says if the model is right, by the
same passes), and of self-training (rows with a class of probability .75 and more get it as their
label, ten times). z: mean difference of "weighted" to the fit to labelled rows over its standard
error.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import pandas as pd

import bayesgen as bg
from tests.benchmarks.open_sets import SHARED, OpenSet, load, take

MODELS: dict[str, dict[str, Callable[[], Any]]] = {
    "real": {"GaussianNB": bg.GaussianNB, "LinearDiscriminant": bg.LinearDiscriminant},
    "mixed": {"MixedNB": bg.MixedNB, "TreeAugmentedNB": bg.TreeAugmentedNB},
    "categories": {"CategoricalNB": bg.CategoricalNB, "TreeAugmentedNB": bg.TreeAugmentedNB},
    "bits": {"BernoulliNB": bg.BernoulliNB, "MultinomialNB": bg.MultinomialNB},
    "text": {"MarkovNB(1)": partial(bg.MarkovNB, 1), "MarkovNB(2)": partial(bg.MarkovNB, 2)},
}
WIDEST_TREE = 30  # columns; wider tables have naive Bayes of pooled strength in its place


def tables(folder: Path) -> dict[str, OpenSet]:
    out = load(folder)
    X, y = out["digits"].X, out["digits"].y
    out["digits bits"] = OpenSet("digits bits", (X > 7).astype(bool), y, "bits")
    if (path := folder / "udhr_10.tsv").is_file():
        rows = pd.read_csv(path, sep="\t")
        out["udhr"] = OpenSet(
            "udhr", rows["text"].to_numpy(object), rows["lang"].to_numpy(), "text"
        )
    return out


def models(table: OpenSet) -> dict[str, Callable[[], Any]]:
    found = dict(MODELS[table.kind])
    if "TreeAugmentedNB" in found and table.X.shape[1] > WIDEST_TREE:
        del found["TreeAugmentedNB"]
        found["CategoricalNB(alpha=.5)"] = partial(bg.CategoricalNB, alpha=0.5)
    return found


def self_trained(clf: Any, X: Any, y: np.ndarray, threshold: float = 0.75) -> Any:
    """Rows without a label (-1) get one once it is probable enough."""
    given = y.copy()
    for _ in range(10):
        known = np.flatnonzero(given >= 0)
        clf.fit(take(X, known), given[known])
        open_ = np.flatnonzero(given < 0)
        if not len(open_):
            break
        p = clf.predict_proba(take(X, open_))
        sure = p.max(axis=1) >= threshold
        if not sure.any():
            break
        given[open_[sure]] = clf.classes_[p[sure].argmax(axis=1)]
    return clf


def losses(table: OpenSet, make: Callable[[], Any], n: int, most: int, seed: int) -> list[float]:
    """Test log loss of labelled rows alone, weighted, weight 1, self-training; and the weight."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(table.y))[:most]
    X, y = take(table.X, rows), np.unique(table.y[rows], return_inverse=True)[1]
    known = np.concatenate([np.flatnonzero(y == c)[:n] for c in range(y.max() + 1)])
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), known))
    test, train = others[: len(others) // 3], np.sort(np.r_[known, others[len(others) // 3 :]])
    X_train, given = take(X, train), np.where(np.isin(train, known), y[train], -1)
    weighted = make().fit(X_train, given, unlabelled="weighted")
    whole = make()
    whole.fitted_ = whole._learner()._weighed(X_train, given, None, (1.0,))
    fits = [
        make().fit(X_train, given, unlabelled="ignore"),
        weighted,
        whole,
        self_trained(make(), X_train, given),
    ]
    own = np.arange(len(test)), y[test]
    X_test = take(X, test)
    out = [-np.maximum(clf.predict_log_proba(X_test)[own], -690).mean() for clf in fits]
    return [*map(float, out), weighted.unlabelled_weight_]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", metavar="TABLE")
    parser.add_argument("--repeats", type=int, default=4, metavar="N")
    parser.add_argument("--rows", type=int, default=900, metavar="N")
    parser.add_argument("--data", type=Path, default=SHARED, metavar="FOLDER")
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    sets, ratios = tables(args.data), []
    print("| data | model | labels | alone | weighted | weight 1 | self-training | weight | z |")
    print("|---" * 9 + "|")
    for name in args.only or sets:
        for model, make in models(sets[name]).items():
            for n in (5, 10):
                own = np.array(
                    [losses(sets[name], make, n, args.rows, seed) for seed in range(args.repeats)]
                )
                mean, gap = own.mean(axis=0), own[:, 1] - own[:, 0]
                se = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
                ratio = mean[1:4] / mean[0]
                ratios.append([*ratio, gap.mean() / max(se, 1e-12)])
                cells = [f"{mean[0]:.3f}", *(f"{v:.2f}" for v in ratio), f"{mean[4]:.3f}"]
                print(
                    f"| {name} | {model} | {n} | {' | '.join(cells)} | {ratios[-1][3]:.1f} |",
                    flush=True,
                )
    r = np.array(ratios)
    for k, how in enumerate(("weighted", "weight 1", "self-training")):
        geometric = np.exp(np.log(r[:, k]).mean())
        print(f"{how}: geometric mean {geometric:.3f}, {r[:, k].min():.2f} to {r[:, k].max():.2f}")
    print(
        f"weighted above 1.05: {(r[:, 0] > 1.05).sum()} of {len(r)}; z > 2: {(r[:, 3] > 2).sum()}"
    )


if __name__ == "__main__":
    main()
