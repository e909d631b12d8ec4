"""What `speed` measures: data, our call, the call of a peer, and the goal.

Peers are scikit-learn's classifiers (plug-ins; ours is the exact posterior predictive). Where there
is none the peer is what a user would write with NumPy and SciPy. A workload scaled by s has s times
the rows and the same columns. Models that predict were fitted to a tenth of the rows, which is not
timed (to 5000 rows at least).
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import softmax
from sklearn import discriminant_analysis as da
from sklearn import naive_bayes as nb
from sklearn.ensemble import StackingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import bayesgen as bg
from bayesgen.numerics import kernels

Call = Callable[[], Any]
Prepare = Callable[[Any, Any], Call]  # rows and labels to the call that is timed
N_CLASSES = 5
DRAWS = 1000


@dataclass(frozen=True)
class Workload:
    """A call of ours next to a peer's, on the same data.

    Attributes
    ----------
    size : str
        Rows x columns at scale 1, and what else matters.
    data : scale -> (X, y)
    goal : float, optional
        Least ratio of the peer's time to ours.
    """

    name: str
    call: str
    size: str
    data: Callable[[float], tuple[Any, Any]]
    ours: Prepare
    peer: Prepare
    goal: float | None = None
    peer_name: str = "scikit-learn"


# --------------------------------------------------------------------------------------------- data


@lru_cache(maxsize=1)  # neighbours in a list share their data; the next data set replaces it
def _data(kind: str, n: float, d: int, dtype: str, scale: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    n = max(100, int(n * scale))
    if kind == "documents":
        return _documents(rng, n, d)
    y = rng.integers(0, N_CLASSES, n)
    y[:N_CLASSES] = np.arange(N_CLASSES)
    if kind == "categories":
        X = rng.integers(0, 10, (n, d), dtype=np.int64)
        X[rng.random(n) < 0.5] //= 2
    elif kind.startswith("bits"):
        X = np.empty((n, d), dtype)
        p = rng.random((N_CLASSES, d), np.float32)
        for k in range(0, n, 1000):
            block = slice(k, k + 1000)
            X[block] = rng.random((len(y[block]), d), np.float32) < p[y[block]]
    elif kind in ("counts", "dense words", "words"):
        mean = {"counts": 1.0, "dense words": 1.5, "words": 0.05}[kind]
        X = rng.poisson(mean * rng.gamma(2.0, size=(N_CLASSES, d))[y])
    elif kind == "texts":
        letters = np.array(list("abcdefgh ijklmnop"))
        codes = rng.integers(0, 9, (n, d)) + 2 * y[:, None] % 9
        return ["".join(row) for row in letters[codes]], y
    elif kind == "mixed":
        words = np.array([f"category {k}" for k in range(10)], dtype=object)
        table = {f"r{j}": rng.standard_normal(n) + y for j in range(d // 2)}
        table |= {f"s{j}": words[(rng.integers(0, 8, n) + y) % 10] for j in range(d - d // 2)}
        return pd.DataFrame(table), y
    else:
        X = rng.standard_normal((n, d))
        X += rng.standard_normal((N_CLASSES, d))[y]
    X = X.astype(dtype, copy=False)
    if kind.endswith("gaps"):
        X[rng.random(X.shape) < 0.05] = np.nan
    labels = np.array([f"class {c}" for c in range(N_CLASSES)])
    return sparse.csr_matrix(X) if kind == "words" else X, labels[y] if "labels" in kind else y


def _documents(rng: np.random.Generator, n: int, d: int) -> tuple[Any, Any]:
    """CSR counts: 116 different words a document on average, as 20newsgroups; C 20."""
    length = np.clip(rng.lognormal(4.59, 0.9, n).astype(int), 5, 2000)
    word = np.minimum((d ** rng.random(length.sum()) - 1).astype(np.int64), d - 1)  # Zipf
    document = np.repeat(np.arange(n), length)
    X = sparse.csr_matrix((np.ones(len(word), np.int64), (document, word)), shape=(n, d))
    X.sum_duplicates()
    y = rng.integers(0, 20, n)
    y[:20] = np.arange(20)
    return X, y


def data(kind: str, n: float, d: int, dtype: str = "float64") -> Callable[[float], Any]:
    """Return data of a workload, made when asked for."""
    return partial(_data, kind, n, d, dtype)


# -------------------------------------------------------------------------------------------- calls


def part(X: Any, y: Any) -> tuple[Any, Any]:
    """Return a tenth of the rows, or 5000: no class of 500 columns without full rank."""
    n = max(min(len(y), 5000), len(y) // 10)
    return X[:n], y[:n]


def new(make: Callable[[], Any]) -> Any:
    """Return a classifier; ours has its stated prior, as its peers state theirs."""
    ours = isinstance(make, type) and issubclass(make, bg.GenerativeClassifier)
    return make(prior="default") if ours else make()


def fit(make: Callable[[], Any]) -> Prepare:
    """Time a fit."""
    return lambda X, y: lambda: new(make).fit(X, y)


def predict(make: Callable[[], Any], name: str = "predict_proba", **options: Any) -> Prepare:
    """Time a method by its name, of a classifier that is fitted to a part of the rows."""

    def prepare(X: Any, y: Any) -> Call:
        clf = new(make).fit(*part(X, y))
        return lambda: getattr(clf, name)(X, **options)

    return prepare


def without_gaps(prepare: Prepare) -> Prepare:
    """Time a call on the same table without missing cells."""
    return lambda X, y: prepare(np.nan_to_num(X), y)


def from_steps(prepare: Prepare, limit: int) -> Prepare:
    """Time a call with kernels from so many steps on."""

    def timed(X: Any, y: Any) -> Call:
        call = prepare(X, y)

        def patched() -> Any:
            with patch.object(kernels, "COMPILE_FROM", limit):
                return call()

        return patched

    return timed


def gaussian(theta: Any, X: np.ndarray, s: int) -> np.ndarray:
    """Return the log densities (N, C) of a draw as scikit-learn's GaussianNB computes them."""
    log_p = np.empty((len(X), N_CLASSES))
    for c in range(N_CLASSES):
        mu, sigma2 = theta["mu"][s, c], theta["sigma2"][s, c]
        log_p[:, c] = -0.5 * np.log(2 * np.pi * sigma2).sum()
        log_p[:, c] -= 0.5 * ((X - mu) ** 2 / sigma2).sum(axis=1)
    return log_p


def bernoulli(theta: Any, X: np.ndarray, s: int) -> np.ndarray:
    """Return the log densities (N, C) of a draw as scikit-learn's BernoulliNB computes them."""
    p = theta["theta"][s]
    return X @ (np.log(p) - np.log1p(-p)).T + np.log1p(-p).sum(axis=1)


def loop(make: Callable[[], Any], density: Callable[[Any, Any, int], np.ndarray]) -> Prepare:
    """Time class probabilities of draws, one after the other."""

    def prepare(X: Any, y: Any) -> Call:
        theta = new(make).fit(*part(X, y)).model_.draw(np.random.default_rng(0), DRAWS)

        def call() -> np.ndarray:
            p = np.empty((DRAWS, len(X), N_CLASSES))
            for s in range(DRAWS):
                p[s] = softmax(density(theta, X, s) + np.log(theta["pi"][s]), axis=1)
            return p

        return call

    return prepare


def draws(make: Callable[[], Any]) -> Prepare:
    """Time class probabilities of draws that are there."""

    def prepare(X: Any, y: Any) -> Call:
        clf = new(make).fit(*part(X, y))
        drawn = clf.with_posterior(clf.draw_posterior(DRAWS, chains=1, groups=()))
        return lambda: drawn.predict_posterior(X)

    return prepare


def shared_draws(make: Callable[[], Any]) -> Prepare:
    """Time percentiles of class probabilities under as many draws of theta."""

    def prepare(X: Any, y: Any) -> Call:
        clf = new(make).fit(*part(X, y))

        def call() -> Any:
            rho = clf.predict_posterior(X, draws=DRAWS)["predictions"]
            return np.quantile(rho["class_probability"].values, [0.05, 0.95], axis=(0, 1))

        return call

    return prepare


def stream_ours(X: Any, y: Any) -> Call:
    """Time a stream of 20 blocks."""
    return lambda: bg.fit_stream(bg.GaussianNB(), [(X, y)] * 20)


def stream_peer(X: Any, y: Any) -> Call:
    """Time 20 increments of scikit-learn's."""

    def call() -> Any:
        clf = nb.GaussianNB()
        for _ in range(20):
            clf.partial_fit(X, y, classes=np.arange(N_CLASSES))
        return clf

    return call


def dask_ours(X: Any, y: Any) -> Call:
    """Time a fit by dask, in 20 chunks."""
    import dask.array

    step = max(1, len(y) // 20)
    X, y = (dask.array.from_array(a, chunks=(step, *a.shape[1:])) for a in (X, y))
    return lambda: bg.fit_dask(bg.GaussianNB(), X, y)


def process(statements: str) -> Prepare:
    """Time a fresh Python."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", statements]
    return lambda X, y: lambda: subprocess.run(command, cwd=root, check=True, capture_output=True)


class Mixed:
    """What a user of scikit-learn writes: an encoder, a CategoricalNB and a GaussianNB."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "Mixed":
        """Learn both parts."""
        self.texts = [name for name in X if name.startswith("s")]
        self.encoder = OrdinalEncoder()
        self.words = nb.CategoricalNB().fit(self.encoder.fit_transform(X[self.texts]), y)
        self.numbers = nb.GaussianNB().fit(X.drop(columns=self.texts).to_numpy(), y)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return class probabilities; the class weights count once."""
        words = self.words.predict_joint_log_proba(self.encoder.transform(X[self.texts]))
        numbers = self.numbers.predict_joint_log_proba(X.drop(columns=self.texts).to_numpy())
        return softmax(words + numbers - self.words.class_log_prior_, axis=1)


def bigrams() -> Any:
    """Return a classifier of counts of bigrams."""
    counter = CountVectorizer(analyzer="char", ngram_range=(2, 2), lowercase=False)
    return make_pipeline(counter, nb.MultinomialNB())


def pool() -> Any:
    """Return a pool of four classifiers."""
    return bg.LogLinearPool(
        [
            bg.GaussianNB(),
            bg.GaussianNB(variance="tied"),
            bg.LinearDiscriminant(),
            bg.QuadraticDiscriminant(),
        ]
    )


def stacking() -> Any:
    """Return the same four classifiers, stacked."""
    members = [(f"m{k}", member) for k, member in enumerate(pool().members)]
    return StackingClassifier(members, LogisticRegression(max_iter=2000), cv=5)


# ------------------------------------------------------------------------------------------- lists


def both(
    name: str,
    size: str,
    rows: Callable[[float], Any],
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    goals: tuple[float | None, float | None] = (None, None),
) -> list[Workload]:
    """Return fit and predict of the same classifier."""
    calls = zip((("fit", fit), ("predict", predict)), goals, strict=True)
    return [Workload(name, c, size, rows, of(ours), of(peer), goal) for (c, of), goal in calls]


def start(what: str, ours: str, peer: str, peer_name: str = "scikit-learn") -> Workload:
    """Return statements in fresh processes."""
    return Workload("start-up", what, "", lambda scale: (None, None), process(ours), process(peer),
                    peer_name=peer_name)  # fmt: skip


def large() -> list[Workload]:
    """Return tables of a million cells and more, draws, streams, and start-up."""
    documents, wide = data("documents", 2e4, 100_000), data("real", 1e5, 500)
    lsqr = partial(da.LinearDiscriminantAnalysis, solver="lsqr")
    lda, qda, loops = bg.LinearDiscriminant, bg.QuadraticDiscriminant, "loop over draws"
    csr = "CSR 2e4 x 1e5, 116 a row, C 20"
    small = (
        "import numpy as np; r = np.random.default_rng(0); X = r.normal(size=(150, 4)); "
        "y = np.arange(150) % 3; GaussianNB().fit(X, y).predict_proba(X)"
    )
    ours, theirs = "from bayesgen import GaussianNB", "from sklearn.naive_bayes import GaussianNB"
    return [
        *both("GaussianNB", "1e6 x 20, C 5", data("real", 1e6, 20),
              bg.GaussianNB, nb.GaussianNB, (25, 10)),
        *both("CategoricalNB", "1e6 x 20, K 10, int64", data("categories", 1e6, 20, "int64"),
              bg.CategoricalNB, nb.CategoricalNB, (40, 8)),
        *both("BernoulliNB", "1e5 x 1000, float64", data("bits", 1e5, 1000),
              bg.BernoulliNB, nb.BernoulliNB, (15, 6)),
        *both("BernoulliNB", "1e5 x 1000, uint8", data("bits", 1e5, 1000, "uint8"),
              bg.BernoulliNB, nb.BernoulliNB, (60, 15)),
        *both("MultinomialNB", csr, documents, bg.MultinomialNB, nb.MultinomialNB, (1, 0.6)),
        Workload("LDA", "fit", "1e5 x 500, C 5", wide, fit(lda),
                 fit(da.LinearDiscriminantAnalysis), 10, "scikit-learn, svd"),
        Workload("LDA", "fit", "1e5 x 500, C 5", wide, fit(lda), fit(lsqr), 2,
                 "scikit-learn, lsqr"),
        Workload("LDA", "predict, multivariate t", "1e5 x 500, C 5", wide, predict(lda),
                 predict(lsqr), None, "scikit-learn, linear"),
        Workload("LDA", "predict, plug-in", "1e5 x 500, C 5", wide,
                 predict(lda, method="posterior_mean"), predict(lsqr), 1),
        *both("QDA", "1e5 x 500, C 5", wide, qda, da.QuadraticDiscriminantAnalysis, (6, 2)),
        *(Workload(make.__name__, "1000 draws", f"1e4 x {d}, C 5", data(kind, 1e4, d),
                   draws(make), loop(make, density), 4, loops)
          for make, kind, density, d in ((bg.GaussianNB, "real", gaussian, 20),
                                         (bg.BernoulliNB, "bits", bernoulli, 20),
                                         (bg.BernoulliNB, "bits", bernoulli, 1000))),
        *(Workload(name, f"{what}, 1000 draws", "5e3 x 10, C 5", data("real", 5e3, 10),
                   predict(make, method, **options), shared_draws(make), 1,
                   "percentiles of 1000 draws")
          for name, make in (("GaussianNB", bg.GaussianNB), ("LDA", lda))
          for what, method, options in (
              ("intervals", "predict_interval", {"prob": 0.9, "kind": "eti", "draws": DRAWS}),
              ("entropies", "predict_uncertainty", {"draws": DRAWS}))),
        Workload("GaussianNB", "stream", "20 blocks of 1e6 x 10, float32",
                 data("real", 1e6, 10, "float32"), stream_ours, stream_peer, None,
                 "scikit-learn, partial_fit"),
        Workload("GaussianNB", "fit by dask", "1e7 x 10 in 20 chunks", data("real", 1e7, 10),
                 dask_ours, fit(bg.GaussianNB), None, "ours in memory"),
        start("import", ours, theirs),
        start("import, GaussianNB fit and predict of 150 rows", f"{ours}; {small}",
              f"{theirs}; {small}"),
        start("bayesgen --help, next to an import", "import runpy, sys; sys.argv[1:] = ['--help']; "
              "runpy.run_module('bayesgen', run_name='__main__')", theirs),
        start("import alone, next to that of NumPy", "import bayesgen", "import numpy", "NumPy"),
    ]  # fmt: skip


Case = tuple[str, str, Callable[[], Any], Callable[[], Any], dict[tuple[int, int], tuple]]
SMALL: list[Case] = [  # goals of fit and predict where there are any
    ("GaussianNB", "real", bg.GaussianNB, nb.GaussianNB,
     {(150, 4): (None, 0.8), (3000, 20): (None, 1), (30_000, 20): (None, 4),
      (400_000, 20): (18, None)}),
    ("CategoricalNB", "categories", bg.CategoricalNB, nb.CategoricalNB,
     {(150, 4): (None, 0.8), (3000, 200): (None, 2), (30_000, 20): (None, 4),
      (400_000, 20): (25, None)}),
    ("BernoulliNB", "bits", bg.BernoulliNB, nb.BernoulliNB,
     {(150, 4): (None, 0.8), (3000, 200): (None, 2), (30_000, 20): (None, 4)}),
    ("PoissonNB", "counts", bg.PoissonNB, nb.MultinomialNB,
     {(150, 4): (None, 0.8), (30_000, 20): (None, None)}),
    ("MultinomialNB, sparse", "words", bg.MultinomialNB, nb.MultinomialNB,
     {(3000, 1000): (1, 1), (30_000, 1000): (1, 1)}),
    ("MultinomialNB, dense", "dense words", bg.MultinomialNB, nb.MultinomialNB,
     {(3000, 1000): (None, 0.33)}),
    ("LDA", "real", bg.LinearDiscriminant, da.LinearDiscriminantAnalysis,
     {(150, 4): (None, 0.8), (30_000, 20): (None, 0.8)}),
    ("QDA", "real", bg.QuadraticDiscriminant, da.QuadraticDiscriminantAnalysis,
     {(150, 4): (None, 0.8), (30_000, 20): (None, None)}),
    ("MixedNB", "mixed", bg.MixedNB, Mixed, {(150, 20): (None, None), (30_000, 20): (3, 3)}),
    ("GaussianNB, text labels", "real, text labels", bg.GaussianNB, nb.GaussianNB,
     {(400_000, 20): (None, None)}),
    ("GaussianNB, 5 % missing", "real with gaps", bg.GaussianNB, bg.GaussianNB,
     {(30_000, 20): (None, 0.5)}),
    ("BernoulliNB, 5 % missing", "bits with gaps", bg.BernoulliNB, bg.BernoulliNB,
     {(30_000, 20): (None, 0.5)}),
    ("MarkovNB", "texts", bg.MarkovNB, bigrams, {(30_000, 20): (None, 2)}),
    ("pool of four", "real", pool, stacking, {(1000, 20): (None, None)}),
]  # fmt: skip
COMPILED = [
    ("GaussianNB", (400_000, 20)),
    ("GaussianNB, 5 % missing", (30_000, 20)),
    ("CategoricalNB", (400_000, 20)),
    ("PoissonNB", (30_000, 20)),
    ("MultinomialNB, sparse", (30_000, 1000)),
    ("MultinomialNB, dense", (3000, 1000)),
    ("MarkovNB", (30_000, 20)),
]


def sizes() -> list[Workload]:
    """Return small and middling tables; with missing cells the peer is ours without them."""
    return [
        replace(work, peer=without_gaps(work.peer), peer_name="without gaps")
        if "gaps" in kind
        else work
        for name, kind, ours, peer, goals in SMALL
        for (n, d), goal in goals.items()
        for work in both(name, f"{n} x {d}", data(kind, n, d), ours, peer, goal)
    ]


def compiled() -> list[Workload]:
    """Return our calls with compiled kernels next to the same in NumPy."""
    cases = {name: (kind, ours) for name, kind, ours, *_ in SMALL}
    return [
        replace(
            work,
            ours=from_steps(work.ours, 0),
            peer=from_steps(work.peer, 1 << 62),
            peer_name="NumPy",
        )
        for name, (n, d) in COMPILED
        for kind, ours in [cases[name]]
        for work in both(name, f"{n} x {d}", data(kind, n, d), ours, ours)
    ]
