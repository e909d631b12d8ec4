"""Real-valued open data sets, for interpreters that do not have the package too."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn import datasets

ROOT = Path(__file__).resolve().parents[2]
# where the sets are that neither the package nor scikit-learn brings; left out where it is not
ELSEWHERE = Path(os.environ.get("BAYESGEN_DATA", ROOT.parent / "shared" / "data")) / "tables"
Rows = tuple[np.ndarray, np.ndarray]


def _of_sklearn(load: Callable) -> Callable[[], Rows]:
    def rows() -> Rows:
        X, y = load(return_X_y=True)
        return X[:, X.var(axis=0) > 0], y

    return rows


def penguins() -> Rows:
    import pandas as pd

    table = pd.read_csv(ROOT / "bayesgen" / "datasets" / "penguins.csv")
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    table = table.dropna(subset=columns)
    return table[columns].to_numpy(float), np.unique(table["species"], return_inverse=True)[1]


def _of_table(path: Path) -> Callable[[], Rows]:
    def rows() -> Rows:
        import pandas as pd

        table = pd.read_csv(path)
        X = table.drop(columns="class").to_numpy(float)
        return X[:, X.var(axis=0) > 0], np.unique(table["class"], return_inverse=True)[1]

    return rows


SETS: dict[str, Callable[[], Rows]] = {
    "penguins": penguins,
    "iris": _of_sklearn(datasets.load_iris),
    "wine": _of_sklearn(datasets.load_wine),
    "breast_cancer": _of_sklearn(datasets.load_breast_cancer),
    "digits": _of_sklearn(datasets.load_digits),
    **{
        name: _of_table(ELSEWHERE / f"{name}.csv.gz")
        for name in ("banana", "ionosphere", "letter", "segment", "vehicle")
        if (ELSEWHERE / f"{name}.csv.gz").exists()
    },
}


def split(y: np.ndarray, seed: int, share: float = 2 / 3) -> tuple[np.ndarray, np.ndarray]:
    """Positions of that share of the rows of every class, and of all others."""
    rng = np.random.default_rng(seed)
    train = [
        rng.permutation(np.flatnonzero(y == c))[: round(share * np.sum(y == c))]
        for c in np.unique(y)
    ]
    chosen = np.sort(np.concatenate(train))
    return chosen, np.setdiff1d(np.arange(len(y)), chosen)
