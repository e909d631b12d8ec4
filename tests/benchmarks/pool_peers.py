"""Log loss and calibration of what users call today, on the open sets: kept in pool_peers.json.

    .venv/bin/python -m tests.benchmarks.pool_peers [--only iris,wine] [--splits 5]

One line for each set, size, split and peer, added to the file as it is finished.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from tests.benchmarks.open_sets import fitted, keep, load, results, scores, splits, take

FILE = Path(__file__).with_name("pool_peers.json")
SLOW = {("letter", "HGB"), ("sms", "HGB")}  # hours of trees


def table(X, ordinal=False, scale=True):
    """Transformer of a data frame: numbers (missing: mean), categories (one-hot or codes)."""
    numbers = [c for c in X if X[c].dtype.kind in "fiub"]
    text = [c for c in X if c not in numbers]
    real = make_pipeline(
        FunctionTransformer(lambda Z: Z.astype(float)),
        SimpleImputer(keep_empty_features=True),
        *([StandardScaler()] if scale else []),
    )
    if ordinal:
        code = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    else:
        code = OneHotEncoder(handle_unknown="ignore")
    return make_column_transformer((real, numbers), (code, text))


def peers(s, X, y):
    """{name: unfitted estimator}."""
    folds = StratifiedKFold(min(5, np.unique(y, return_counts=True)[1].min()))
    lr = LogisticRegressionCV(
        Cs=10, cv=folds, scoring="neg_log_loss", max_iter=2000, use_legacy_attributes=False
    )
    rf = RandomForestClassifier(500, min_samples_leaf=2, random_state=0, n_jobs=1)
    hgb = GridSearchCV(
        HistGradientBoostingClassifier(random_state=0, max_iter=100, early_stopping=False),
        {"learning_rate": [0.05, 0.15], "max_leaf_nodes": [7, 31]},
        scoring="neg_log_loss",
        cv=3,
    )
    if s.kind == "text":
        words = CountVectorizer()
        out = {"LR-CV": lr, "RF": rf, "MultinomialNB": MultinomialNB()}
        out = {k: make_pipeline(words, m) for k, m in out.items()}
        nb = out["MultinomialNB"]
    else:
        out = {
            "LR-CV": make_pipeline(table(X), lr),
            "RF": make_pipeline(table(X, ordinal=True), SimpleImputer(), rf),
            "HGB": make_pipeline(table(X, ordinal=True, scale=False), hgb),
        }
        if s.kind == "real":
            lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
            out |= {"NB": GaussianNB(), "LDA": make_pipeline(StandardScaler(), lda)}
        elif s.kind == "bits":
            out["NB"] = BernoulliNB()
        else:
            dense = FunctionTransformer(lambda Z: Z.toarray() if hasattr(Z, "toarray") else Z)
            out["NB"] = make_pipeline(table(X), dense, GaussianNB())
        nb = out["NB"]
    for how in ("temperature", "sigmoid", "isotonic"):
        out[f"NB + {how}"] = CalibratedClassifierCV(nb, method=how, cv=folds)
    return out


def main():
    """Measure what is not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    known = results(FILE)
    sets = load()
    for s in sets.values():
        if not options.only or s.name in options.only.split(","):
            for size, seed, rows, test in splits(s.y, options.splits):
                X, y = take(s.X, rows), s.y[rows]
                classes = np.unique(y)
                for name, peer in peers(s, X, y).items():
                    key = f"{s.name}|{size}|{seed}|{name}"
                    if key in known or (s.name, name) in SLOW:
                        continue
                    try:
                        p, seconds = fitted(peer, X, y, take(s.X, test))
                    except ValueError as error:
                        print(key, str(error)[:200])
                        continue
                    loss, ece = scores(p, np.searchsorted(classes, s.y[test]))
                    known[key] = [round(float(loss.mean()), 6), round(ece, 5), round(seconds, 2)]
                    keep(FILE, known)
                    print(key, known[key], flush=True)


if __name__ == "__main__":
    main()
