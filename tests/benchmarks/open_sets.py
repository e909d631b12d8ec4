"""The open sets of DATA.md as data frames, as a user has them, and their splits.

Sets that are not the package's or scikit-learn's are read from the folder that the variable
BAYESGEN_DATA names, else from ``../shared/data``, and left out where they are not there.
"""

import csv
import json
import os
import time
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sklearn.datasets
from sklearn.feature_extraction.text import CountVectorizer

import bayesgen as bg

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("BAYESGEN_DATA", ROOT.parent / "shared" / "data"))
X_WINDOWS = "xwindows"  # codespell:ignore xwindows


class OpenSet(NamedTuple):
    """A labelled table, or documents."""

    name: str
    X: Any  # data frame, or an object array of documents
    y: np.ndarray
    kind: str  # "real", "mixed", "categories", "bits" or "text"


@lru_cache
def load(folder: Path = SHARED) -> dict[str, OpenSet]:
    """{name: OpenSet}."""
    return {s.name: s for s in _sets(folder)}


def _sets(folder: Path) -> Iterator[OpenSet]:
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True, as_frame=True)
        yield OpenSet(name, X, y.to_numpy(), "real")
    birds, species = bg.datasets.load_penguins()
    yield OpenSet("penguins", birds, species.to_numpy(), "mixed")
    table, kind = bg.datasets.load_pokemon()
    two = kind.isin(["water", "normal"]).to_numpy()
    stats = table.loc[two, list(bg.datasets.POKEMON_STATS)].reset_index(drop=True)
    yield OpenSet("pokemon", stats.astype(float), kind[two].to_numpy(), "real")
    for path in sorted(folder.glob("tables/*.csv.gz")):
        table = pd.read_csv(path)
        y = table.pop("class").astype(str).to_numpy()
        text = [c for c in table if not pd.api.types.is_numeric_dtype(table[c])]
        kind_of = "real" if not text else "mixed" if len(text) < table.shape[1] else "categories"
        yield OpenSet(path.name.split(".")[0], table, y, kind_of)
    yield from _documents(folder)


def _documents(folder: Path) -> Iterator[OpenSet]:
    if (path := folder / "house_votes_84.csv").is_file():
        table = pd.read_csv(path)
        yield OpenSet("votes", table, table.pop("party").to_numpy(), "categories")
    if (path := folder / f"{X_WINDOWS}.npz").is_file():
        z = np.load(path)
        bits = np.vstack(
            [np.unpackbits(z[f"{k}_bits"], axis=1)[:, :600] for k in ("train", "test")]
        )
        yield OpenSet(X_WINDOWS, _bits(bits), np.r_[z["train_label"], z["test_label"]], "bits")
    if (path := folder / "news4_w100.npz").is_file():
        z = np.load(path)
        bits = np.unpackbits(z["bits"], axis=1)[:, :100]
        yield OpenSet("news4", _bits(bits), z["label"], "bits")
    if (path := folder / "sms_spam.tsv").is_file():
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        texts = np.array([row["text"] for row in rows], dtype=object)
        yield OpenSet("sms", texts, np.array([row["label"] for row in rows]), "text")


def _bits(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X.astype(bool), columns=[f"w{j}" for j in range(X.shape[1])])


REAL = ("penguins", "iris", "wine", "breast_cancer", "digits", "banana", "ionosphere", "letter",
        "segment", "vehicle")  # fmt: skip


def real_sets() -> list[str]:
    """Names of the sets of `REAL` that are there."""
    return [name for name in REAL if name in load()]


def numbers(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a set, complete rows and columns that vary, and codes of the labels."""
    table = load()[name]
    X = table.X.select_dtypes("number").dropna()
    X = X.loc[:, X.var() > 0]
    return X.to_numpy(float), np.unique(table.y[X.index], return_inverse=True)[1]


def words(n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Counts of the 200 most frequent words of all messages, or of the first n."""
    messages = load()["sms"]
    counts = CountVectorizer(max_features=200).fit_transform(messages.X[:n])
    return np.asarray(counts.todense()), messages.y[:n]


def split(y: np.ndarray, seed: int, share: float = 2 / 3) -> tuple[np.ndarray, np.ndarray]:
    """Positions of that share of the rows of every class, and of all others."""
    rng = np.random.default_rng(seed)
    train = [
        rng.permutation(np.flatnonzero(y == c))[: round(share * np.sum(y == c))]
        for c in np.unique(y)
    ]
    rows = np.sort(np.concatenate(train))
    return rows, np.setdiff1d(np.arange(len(y)), rows)


def splits(y: np.ndarray, n: int = 5) -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
    """(size, seed, training rows, test rows): two thirds of the rows, and 20 rows per class.

    Both sizes of one seed share their test rows, a third of each class.
    """
    for seed in range(n):
        rng = np.random.default_rng(seed)
        few, many, test = [], [], []
        for c in np.unique(y):
            rows = rng.permutation(np.flatnonzero(y == c))
            cut = len(rows) - len(rows) // 3
            few.append(rows[: min(20, cut)])
            many.append(rows[:cut])
            test.append(rows[cut:])
        held_out = np.sort(np.concatenate(test))
        yield "two thirds", seed, np.sort(np.concatenate(many)), held_out
        yield "20 per class", seed, np.sort(np.concatenate(few)), held_out


def take(X: Any, rows: np.ndarray) -> Any:
    """Some rows."""
    return X.iloc[rows].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[rows]


def results(file: Path) -> dict[str, list[float]]:
    """{what was measured: numbers} of a file that `keep` wrote; {} if there is none."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def keep(file: Path, known: dict[str, list[float]]) -> None:
    """Write results, one on a line."""
    lines = (f"{json.dumps(key)}: {json.dumps(values)}" for key, values in known.items())
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def fitted(model: Any, X: Any, y: np.ndarray, T: Any) -> tuple[np.ndarray, float]:
    """Class probabilities of the rows T, and processor seconds of fit and prediction."""
    start = time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        proba = np.asarray(model.fit(X, y).predict_proba(T))
    return proba, time.process_time() - start


def scores(proba: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, float]:
    """-log p(y | x) of each row (bounded by 1e-300), and the calibration error in 15 bins."""
    own = np.clip(proba[np.arange(len(codes)), codes], 1e-300, None)
    top, right = proba.max(axis=1), proba.argmax(axis=1) == codes
    bins = np.minimum((top * 15).astype(int), 14)
    gaps = [abs((top - right)[bins == b].sum()) for b in range(15)]
    return -np.log(own), float(sum(gaps) / len(codes))


def least_ece(proba: np.ndarray, draws: int = 200) -> float:
    """Mean calibration error of labels drawn from the probabilities: what chance alone makes."""
    rng = np.random.default_rng(0)
    below = rng.random((draws, len(proba), 1)) > proba.cumsum(axis=1)[None]
    labels = np.minimum(below.sum(axis=2), proba.shape[1] - 1)
    return float(np.mean([scores(proba, codes)[1] for codes in labels]))
