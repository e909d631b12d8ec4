"""What is measured: data, the call of the peer, ours, and the goal.

Peers are scikit-learn's classifiers (plug-ins; ours is the exact posterior predictive). Where there
is none the peer is what a user would write with NumPy and SciPy. A workload scaled by s has s times
the rows and the same columns. Models that predict were fitted to a tenth of the rows, which is not
timed (to 5000 rows at least).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import gammaln, softmax
from sklearn import discriminant_analysis as da
from sklearn import naive_bayes as nb

import bayesgen as bg

Call = Callable[[], Any]
N_CLASSES = 5
DRAWS = 1000


@dataclass(frozen=True)
class Workload:
    """A call of ours beside a peer's, on the same data.

    Attributes
    ----------
    size : str
        Rows x columns at scale 1, and what else matters.
    data : scale -> (X, y)
    ours, peer : (X, y) -> the call that is timed
    goal : float, optional
        Least ratio of the peer's time to ours.
    """

    name: str
    size: str
    data: Callable[[float], tuple[Any, Any]]
    ours: Callable[[Any, Any], Call]
    peer: Callable[[Any, Any], Call]
    goal: float | None = None
    peer_name: str = "scikit-learn"

    @property
    def label(self) -> str:
        return f"{self.name}, {self.size}"


# --------------------------------------------------------------------------------------------- data


def _rows(n: float, scale: float) -> int:
    return max(100, int(n * scale))


def _labels(rng: np.random.Generator, n: int, n_classes: int = N_CLASSES) -> np.ndarray:
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return y


@lru_cache(maxsize=1)  # neighbours in the list share their data; the next data set replaces it
def _data(kind: str, n: float, d: int, scale: float, dtype: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    rows = _rows(n, scale)
    if kind == "words":
        return _words(rng, rows, d)
    y = _labels(rng, rows)
    if kind == "real":
        X = rng.standard_normal((rows, d))
        X += rng.standard_normal((N_CLASSES, d))[y]
    elif kind == "categories":
        X = rng.integers(0, 10, (rows, d), dtype=np.int64)
        X[rng.random(rows) < 0.5] //= 2
    elif kind == "bits":
        X = np.empty((rows, d), dtype)
        p = rng.random((N_CLASSES, d), np.float32)
        for k in range(0, rows, 1000):
            part = slice(k, k + 1000)
            X[part] = rng.random((len(y[part]), d), np.float32) < p[y[part]]
    return X.astype(dtype, copy=False), y


def _words(rng: np.random.Generator, n: int, d: int) -> tuple[Any, Any]:
    """CSR counts: 116 different words a document on average, as 20newsgroups; C 20."""
    length = np.clip(rng.lognormal(4.59, 0.9, n).astype(int), 5, 2000)
    word = np.minimum((d ** rng.random(length.sum()) - 1).astype(np.int64), d - 1)  # Zipf
    document = np.repeat(np.arange(n), length)
    X = sparse.csr_matrix((np.ones(len(word), np.int64), (document, word)), shape=(n, d))
    X.sum_duplicates()
    return X, _labels(rng, n, 20)


def data(kind: str, n: float, d: int, dtype: str = "float64") -> Callable[[float], Any]:
    """Data of a workload, made when asked for."""
    return lambda scale: _data(kind, n, d, scale, dtype)


# -------------------------------------------------------------------------------------------- calls


def _part(X: Any, y: Any) -> tuple[Any, Any]:
    n = max(min(len(y), 5000), len(y) // 10)  # no class of 500 columns without full rank
    return X[:n], y[:n]


def new(make: Callable[[], Any]) -> Any:
    """Return a classifier; ours has its stated prior, as its peers state theirs."""
    ours = isinstance(make, type) and issubclass(make, bg.GenerativeClassifier)
    return make(prior="default") if ours else make()


def fit(make: Callable[[], Any]) -> Callable[[Any, Any], Call]:
    return lambda X, y: lambda: new(make).fit(X, y)


def predict(make: Callable[[], Any], **options: Any) -> Callable[[Any, Any], Call]:
    def prepare(X: Any, y: Any) -> Call:
        clf = new(make).fit(*_part(X, y))
        return lambda: clf.predict_proba(X, **options)

    return prepare


def gaussian_loop(X: Any, y: Any) -> Call:
    """Draws of a GaussianNB one after the other, each as scikit-learn predicts."""
    clf = bg.GaussianNB(prior="default").fit(*_part(X, y))
    theta = clf.model_.draw(np.random.default_rng(0), DRAWS)

    def density(s: int) -> np.ndarray:
        out = np.empty((len(X), N_CLASSES))
        for c in range(N_CLASSES):
            mu, sigma2 = theta["mu"][s, c], theta["sigma2"][s, c]
            out[:, c] = -0.5 * np.log(2 * np.pi * sigma2).sum()
            out[:, c] -= 0.5 * ((X - mu) ** 2 / sigma2).sum(axis=1)
        return out

    return _each_draw(density, theta, len(X))


def bernoulli_loop(X: Any, y: Any) -> Call:
    """Draws of a BernoulliNB one after the other, a matrix product each."""
    clf = bg.BernoulliNB(prior="default").fit(*_part(X, y))
    theta = clf.model_.draw(np.random.default_rng(0), DRAWS)

    def density(s: int) -> np.ndarray:
        p = theta["theta"][s]
        return X @ (np.log(p) - np.log1p(-p)).T + np.log1p(-p).sum(axis=1)

    return _each_draw(density, theta, len(X))


def _each_draw(density: Callable[[int], np.ndarray], theta: Any, n: int) -> Call:
    def call() -> np.ndarray:
        out = np.empty((DRAWS, n, N_CLASSES))
        for s in range(DRAWS):
            out[s] = softmax(density(s) + np.log(theta["pi"][s]), axis=1)
        return out

    return call


def draws(make: Callable[[], Any]) -> Callable[[Any, Any], Call]:
    def prepare(X: Any, y: Any) -> Call:
        clf = new(make).fit(*_part(X, y))
        drawn = clf.with_posterior(clf.draw_posterior(DRAWS, chains=1, groups=()))
        return lambda: drawn.predict_posterior(X)

    return prepare


def urn_by_lgamma(X: Any, y: Any) -> Call:
    """The Dirichlet-multinomial as its formula stands, a lgamma for each cell and class."""
    alpha = bg.MultinomialNB(prior="default").fit(*_part(X, y)).model_.family.alpha
    counts = np.bincount(_part(X, y)[1]) + 1.0
    log_pi = np.log(counts / counts.sum())

    def call() -> np.ndarray:
        length = np.asarray(X.sum(axis=1)).ravel()
        out = np.empty((X.shape[0], len(alpha)))
        for c, a in enumerate(alpha):
            cells = gammaln(a[X.indices] + X.data) - gammaln(a[X.indices])
            out[:, c] = np.add.reduceat(cells, X.indptr[:-1]) + log_pi[c]
            out[:, c] += gammaln(a.sum()) - gammaln(a.sum() + length)
        return softmax(out, axis=1)

    return call


def stream_ours(X: Any, y: Any) -> Call:
    blocks = [(X, y)] * 20
    return lambda: bg.fit_stream(bg.GaussianNB(), blocks)


def stream_peer(X: Any, y: Any) -> Call:
    def call() -> Any:
        clf = nb.GaussianNB()
        for _ in range(20):
            clf.partial_fit(X, y, classes=np.arange(N_CLASSES))
        return clf

    return call


def dask_ours(X: Any, y: Any) -> Call:
    import dask.array

    step = max(1, len(y) // 20)
    X, y = (dask.array.from_array(a, chunks=(step, *a.shape[1:])) for a in (X, y))
    return lambda: bg.fit_dask(bg.GaussianNB(), X, y)


# ----------------------------------------------------------------------------------------- the list


def intervals(make: Callable[[], Any], method: str = "predict_interval", **options: Any) -> Any:
    """A method with rows alone, of a classifier that is fitted to a part of them."""

    def of(X: Any, y: Any) -> Call:
        clf = new(make).fit(*_part(X, y))
        return lambda: getattr(clf, method)(X, **options)

    return of


def shared_draws(make: Callable[[], Any]) -> Any:
    """Percentiles of class probabilities under draws of theta that all rows share."""

    def of(X: Any, y: Any) -> Call:
        clf = new(make).fit(*_part(X, y))

        def call() -> Any:
            rho = clf.predict_posterior(X, draws=DRAWS)["predictions"]
            return np.quantile(rho["class_probability"].values, [0.05, 0.95], axis=(0, 1))

        return call

    return of


def _pair(
    name: str,
    size: str,
    rows: Callable[[float], Any],
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    goals: tuple[float | None, float | None],
) -> list[Workload]:
    """Fit and predict of the same classifier."""
    return [
        Workload(f"{name} fit", size, rows, fit(ours), fit(peer), goals[0]),
        Workload(f"{name} predict", size, rows, predict(ours), predict(peer), goals[1]),
    ]


def all_workloads() -> list[Workload]:
    """Every workload; neighbours share data."""
    words = data("words", 2e4, 100_000)
    wide = data("real", 1e5, 500)
    lsqr = lambda: da.LinearDiscriminantAnalysis(solver="lsqr")  # noqa: E731 - a factory, as the classes are
    lda, qda = bg.LinearDiscriminant, bg.QuadraticDiscriminant
    return [
        *_pair("GaussianNB", "1e6 x 20, C 5", data("real", 1e6, 20),
               bg.GaussianNB, nb.GaussianNB, (25, 10)),
        *_pair("CategoricalNB", "1e6 x 20, K 10, int64", data("categories", 1e6, 20, "int64"),
               bg.CategoricalNB, nb.CategoricalNB, (40, 8)),
        *_pair("BernoulliNB", "1e5 x 1000, float64", data("bits", 1e5, 1000),
               bg.BernoulliNB, nb.BernoulliNB, (15, 6)),
        *_pair("BernoulliNB", "1e5 x 1000, uint8", data("bits", 1e5, 1000, "uint8"),
               bg.BernoulliNB, nb.BernoulliNB, (60, 15)),
        *_pair("MultinomialNB", "CSR 2e4 x 1e5, 116 a row, C 20", words,
               bg.MultinomialNB, nb.MultinomialNB, (1, 0.6)),
        Workload("MultinomialNB predict", "CSR 2e4 x 1e5, 116 a row, C 20", words,
                 predict(bg.MultinomialNB), urn_by_lgamma, 15, "lgamma form"),
        Workload("LDA fit", "1e5 x 500, C 5", wide, fit(lda),
                 fit(da.LinearDiscriminantAnalysis), 10, "scikit-learn, svd"),
        Workload("LDA fit", "1e5 x 500, C 5", wide, fit(lda), fit(lsqr), 2,
                 "scikit-learn, lsqr"),
        Workload("LDA predict, multivariate t", "1e5 x 500, C 5", wide, predict(lda),
                 predict(lsqr), None, "scikit-learn, linear"),
        Workload("LDA predict, plug-in", "1e5 x 500, C 5", wide,
                 predict(lda, method="posterior_mean"), predict(lsqr), 1, "scikit-learn"),
        *_pair("QDA", "1e5 x 500, C 5", wide, qda, da.QuadraticDiscriminantAnalysis, (6, 2)),
        Workload("GaussianNB, 1000 draws", "1e4 x 20, C 5", data("real", 1e4, 20),
                 draws(bg.GaussianNB), gaussian_loop, 4, "loop over draws"),
        Workload("BernoulliNB, 1000 draws", "1e4 x 20, C 5", data("bits", 1e4, 20),
                 draws(bg.BernoulliNB), bernoulli_loop, 4, "loop over draws"),
        Workload("BernoulliNB, 1000 draws", "1e4 x 1000, C 5", data("bits", 1e4, 1000),
                 draws(bg.BernoulliNB), bernoulli_loop, 4, "loop over draws"),
        *(
            Workload(f"{name}, {what}", "5e3 x 10, C 5", data("real", 5e3, 10),
                     intervals(make, method, **options), shared_draws(make), goal,
                     "1000 draws that rows share")
            for name, make, goals in (("GaussianNB", bg.GaussianNB, (3, 1)), ("LDA", lda, (1, 1)))
            for goal, (what, method, options) in zip(
                goals,
                (("intervals", "predict_interval", {"prob": 0.9, "kind": "eti"}),
                 ("entropies", "predict_uncertainty", {})),
                strict=True,
            )
        ),
        Workload("GaussianNB stream", "20 blocks of 1e6 x 10, float32",
                 data("real", 1e6, 10, "float32"), stream_ours, stream_peer, None,
                 "scikit-learn, partial_fit"),
        Workload("GaussianNB fit by dask", "1e7 x 10 in 20 chunks", data("real", 1e7, 10),
                 dask_ours, fit(bg.GaussianNB), None, "ours in memory"),
    ]  # fmt: skip
