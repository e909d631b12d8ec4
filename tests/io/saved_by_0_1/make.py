"""How the model files of this folder were made, with version 0.1: python make.py FOLDER.

Beside each file stands what the same process predicted. They are not to be made anew: that newer
versions read them is what `tests/io/test_saved_by_0_1.py` is for.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

import bayesgen as bg
from bayesgen.datasets import load_penguins


def cases():
    """{name: (classifier, X, y, rows to predict, options of fit)}."""
    rng = np.random.default_rng(0)
    X, y = load_penguins()
    measured = X.select_dtypes("number")
    complete = measured.dropna().index
    counts = rng.poisson([[1, 2, 3, 4], [4, 3, 2, 1]], size=(15, 2, 4)).reshape(30, 4)
    texts = ["hyvää päivää", "good day", "guten Tag", "hyvää yötä", "good night", "gute Nacht"]
    small = np.round(rng.normal(size=(12, 2)) + np.tile([0, 1], 6)[:, None], 3)
    partly = np.array(["a", "b"] * 6, dtype=object)
    partly[[3, 8]] = None
    gibbs = {
        "inference": "gibbs",
        "draws": 100,
        "chains": 2,
        "random_seed": 1,
        "progressbar": False,
    }
    return {
        "gaussian": (bg.GaussianNB(), measured, y, measured[3::45], {}),
        "mixed": (bg.MixedNB(), X, y, X[3::45], {}),
        "markov": (bg.MarkovNB(order=2), texts, ["fi", "en", "de"] * 2, texts, {}),
        "linear_discriminant": (
            bg.LinearDiscriminant(),
            measured.loc[complete],
            y[complete],
            measured.loc[complete][::45],
            {},
        ),
        "multinomial": (bg.MultinomialNB(), counts, np.tile([0, 1], 15), counts[:8], {}),
        "gaussian_gibbs": (bg.GaussianNB(), small, partly, small[:6], gibbs),
        # by the last state whose files end without a digest of their bytes
        "categorical": (bg.CategoricalNB(), X[["island", "sex"]], y, X[["island", "sex"]][:6], {}),
    }


def main(folder):
    """Write all files."""
    for name, (clf, X, y, new, options) in cases().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.fit(X, y, **options)
        if name == "categorical":
            clf.typicality(new)  # the file has the leave-one-out scores too
        clf.save(folder / f"{name}.nc")
        cells = new if isinstance(new, list) else np.asarray(new, dtype=object).tolist()
        record = {
            "version": bg.__version__,
            "estimator": type(clf).__name__,
            "classes": clf.classes_.tolist(),
            "columns": list(new.columns) if hasattr(new, "columns") else None,
            "rows": [
                [None if v != v else v for v in row] if isinstance(row, list) else row
                for row in cells
            ],
            "posterior_predictive": clf.predict_proba(new).tolist(),
            "posterior_mean": clf.predict_proba(new, method="posterior_mean").tolist(),
            "log_evidence": None if options else clf.log_evidence_,
        }
        text = json.dumps(record, ensure_ascii=False, indent=1)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
