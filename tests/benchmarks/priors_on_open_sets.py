"""Default and chosen priors on the open sets, beside scikit-learn's class of the same name.

    python tests/benchmarks/priors_on_open_sets.py              every pair at two sizes, 5 splits
    python tests/benchmarks/priors_on_open_sets.py --scan       other scale matrices and weights
    python tests/benchmarks/priors_on_open_sets.py --chosen     the prior that fit chooses

Rows, splits and sizes are those of `open_sets`: two thirds of each class, or 20 rows of it, and the
same third tests both; of a set with more than 5000 rows a fixed sample, of a test third at most
1500 rows. A pair is *lost* where our mean log loss is above 1.02 times scikit-learn's by more than
two standard errors of the paired difference. Two errors are computed and the larger one counts:
that of the mean over splits, and that of the mean over rows, each row averaged over the splits in
which it is tested, because splits of a small set share their test rows. A lost pair is measured
once more with 40 splits. Left out are peers that raise or return a probability of 0 or NaN.

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
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from threadpoolctl import threadpool_limits

import bayesgen as bg
from tests.benchmarks import sets as open_sets
from tests.benchmarks.scoring import calibration_error
from tests.benchmarks.sets import take

MARGIN = 1.02
MOST_ROWS, MOST_TEST_ROWS = 5000, 1500
GAUSSIAN = ("GaussianNB", "LinearDiscriminant", "QuadraticDiscriminant")
Log = Callable[[Any, Any, Any], np.ndarray]  # rows, labels, new rows to log p(class | new row)


class View(NamedTuple):
    """A set as one class of scikit-learn can read it."""

    model: str
    name: str
    X: Any
    y: np.ndarray
    options: dict[str, Any]


class Scored(NamedTuple):
    """One classifier in one split."""

    rows: np.ndarray
    losses: np.ndarray
    ece: float


# ------------------------------------------------------------------------------------------- views


def views(folder: Path) -> Iterator[View]:
    """Each set as each class."""
    for found in open_sets.load(folder).values():
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


def _readings(found: open_sets.OpenSet) -> Iterator[tuple[str, Any]]:
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
    """{label: estimator}; the first is what a user would call."""
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


def splits(view: View, n: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(size, training rows, test rows)."""
    for size, seed, train, test in open_sets.splits(view.y, n):
        if len(test) > MOST_TEST_ROWS:
            test = np.random.default_rng(seed).permutation(test)[:MOST_TEST_ROWS]
        yield size, train, test


def ours(view: View, **options: Any) -> Log:
    """Our class with its stated prior, or other arguments."""

    def log_p(X: Any, y: Any, T: Any) -> np.ndarray:
        return (
            getattr(bg, view.model)(**{"prior": "default"} | view.options | options)
            .fit(X, y)
            .predict_log_proba(T)
        )

    return log_p


def theirs(estimator: Any) -> Log:
    """Of scikit-learn."""
    return lambda X, y, T: estimator.fit(X, y).predict_log_proba(T)


def measured(view: View, methods: dict[str, Log], n: int) -> dict[tuple[str, str], list[Scored]]:
    """{(size, method): one `Scored` a split}; without the methods that fail in some split."""
    out: dict[tuple[str, str], list[Scored]] = {}
    for size, train, test in splits(view, n):
        X, y, T, t = view.X[train], view.y[train], view.X[test], view.y[test]
        for name, method in methods.items():
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    log_p = method(X, y, T)
                    losses = -log_p[np.arange(len(t)), t]
                except (ValueError, np.linalg.LinAlgError):
                    losses = np.full(len(t), np.nan)
            if np.isfinite(losses).all():
                ece = calibration_error(np.exp(log_p), t)
                out.setdefault((size, name), []).append(Scored(test, losses, ece))
    return {k: v for k, v in out.items() if len(v) == n}


def mean_loss(own: list[Scored]) -> float:
    return float(np.mean([s.losses.mean() for s in own]))


def excess(own: list[Scored], peer: list[Scored]) -> tuple[float, float]:
    """Mean of our log loss less 1.02 times theirs, and its standard error."""
    gaps = [a.losses - MARGIN * b.losses for a, b in zip(own, peer, strict=True)]
    means = np.array([g.mean() for g in gaps])
    total = np.zeros(max(s.rows.max() for s in own) + 1)
    times = np.zeros_like(total)
    for s, gap in zip(own, gaps, strict=True):
        total[s.rows] += gap
        times[s.rows] += 1
    by_row = total[times > 0] / times[times > 0]
    errors = [v.std(ddof=1) / np.sqrt(len(v)) for v in (means, by_row)]
    return float(means.mean()), float(max(errors))


def compare(folder: Path, only: list[str] | None, n: int) -> None:
    """The table of pairs, and the pairs that are lost."""
    print(f"{'class':22s}{'set':15s}{'size':13s}{'peer':12s}", end="")
    print(f"{'ours':>9s}{'theirs':>11s}{'ratio':>9s}{'excess/se':>10s}{'ECE':>7s}{'theirs':>7s}")
    lost, above, n_pairs = [], 0, 0
    for view in views(folder):
        if only and view.model not in only:
            continue
        estimators = peers(view)
        methods = {"ours": ours(view)} | {f"sk {k}": theirs(e) for k, e in estimators.items()}
        found = measured(view, methods, n)
        for (size, name), own in found.items():
            if name == "ours":
                continue
            a, line = found[size, "ours"], _line(view, size, name, found[size, "ours"], own)
            gap, error = excess(a, own)
            print(line, flush=True)
            n_pairs += 1
            above += gap > 0
            if gap > 2 * error:
                lost.append((view, size, name))
        for name in methods:
            for size in ("two thirds", "20 per class"):
                if (size, name) not in found:
                    print(f"{view.model:22s}{view.name:15s}{size:13s}{name[3:]:12s} fails")
    print(f"\n{n_pairs} pairs; {above} above 1.02; {len(lost)} of them by more than 2 errors")
    for view, size, name in lost:
        methods = {"ours": ours(view), name: theirs(peers(view)[name[3:]])}
        found = measured(view, methods, 40)
        print("40 splits:", _line(view, size, name, found[size, "ours"], found[size, name]))


def _line(view: View, size: str, name: str, own: list[Scored], peer: list[Scored]) -> str:
    gap, error = excess(own, peer)
    a, b = mean_loss(own), mean_loss(peer)
    text = f"{view.model:22s}{view.name:15s}{size:13s}{name[3:]:12s}{a:9.4f}{b:11.4g}{a / b:9.3f}"
    calibration = "".join(f"{np.mean([s.ece for s in v]):7.3f}" for v in (own, peer))
    return f"{text}{gap / max(error, 1e-300):10.1f}{calibration}"


# --------------------------------------------------------------------------------- other constants


def scale_matrix(X: np.ndarray, y: np.ndarray, kind: str) -> np.ndarray:
    """Pooled within-class variances and correlations, the correlations shrunken by `kind`.

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
    """Another scale matrix, nu0 times which is psi0."""

    def log_p(X: Any, y: Any, T: Any) -> np.ndarray:
        varies = X.min(axis=0) < X.max(axis=0)
        X, T = X[:, varies], T[:, varies]
        nu0 = nu(X.shape[1])
        clf = getattr(bg, view.model)(nu0=nu0, psi0=nu0 * scale_matrix(X, y, kind))
        return clf.fit(X, y).predict_log_proba(T)

    return log_p


def against_default(
    folder: Path, model: str, methods: Callable[[View], dict[str, Log]], n: int
) -> None:
    """Log loss over the default's: geometric mean, least and largest over sets; pairs lost."""
    ratios: dict[tuple[str, str], list[float]] = {}
    lost: dict[str, list[str]] = {}
    for view in views(folder):
        if view.model != model:
            continue
        tried = {"default": ours(view), **methods(view)}
        rivals = {f"sk {k}": theirs(e) for k, e in peers(view).items()}
        found = measured(view, tried | rivals, n)
        for (size, name), own in found.items():
            if name in tried:
                ratio = mean_loss(own) / mean_loss(found[size, "default"])
                ratios.setdefault((name, size), []).append(ratio)
                for rival in rivals:
                    if (size, rival) in found:
                        gap, error = excess(own, found[size, rival])
                        if gap > 2 * error:
                            lost.setdefault(name, []).append(f"{view.name}, {size}")
    for name in dict.fromkeys(k for k, _ in ratios):
        cells = ""
        for size in ("20 per class", "two thirds"):
            r = ratios[name, size]
            mean = np.exp(np.mean(np.log(r)))
            cells += f"   {size} x {mean:.3f} [{min(r):.2f}, {max(r):.2f}]"
        print(f"{model:22s}{name:28s}{cells}   lost: {'; '.join(lost.get(name, [])) or 'none'}")


def scan(folder: Path, n: int) -> None:
    """What the defaults were chosen from."""
    kinds = ("diagonal", "clear 1", "clear 2", "clear 3")
    for model in GAUSSIAN[1:]:
        against_default(
            folder,
            model,
            lambda v: (
                {k: discriminant(v, k, lambda D: D + 2) for k in kinds}
                | {"clear 2, nu0 = 2 D + 2": discriminant(v, "clear 2", lambda D: 2 * D + 2)}
            ),
            n,
        )
    naive = [{"nu0": v} for v in (1.0, 2.0, 5.0, 10.0)] + [{"kappa0": v} for v in (0.01, 1.0)]
    against_default(folder, "GaussianNB", lambda v: {str(o): ours(v, **o) for o in naive}, n)


# ------------------------------------------------------------------------------- chosen priors


def _tables(folder: Path, part: str) -> Iterator[open_sets.OpenSet]:
    """Tables that chose nothing of at most 40 columns, every so many-th."""
    mine, parts = map(int, part.split("/"))
    every = [s for which in ("second", "first") for s in open_sets.unseen(folder, which)]
    yield from [s for s in every if s.X.shape[1] <= 40][mine::parts]


def _columns_by_class(table: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    """What each classifier reads of a table: rows and columns as they are, reals, bits, counts."""
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


def chosen(folder: Path, part: str) -> None:
    """Log loss with the prior that `fit` chooses over that with the stated one, on open tables.

    One split: at most 400 test rows; for training 12 rows per class, or 400 of all.
    """
    ratios: dict[tuple[str, int], list[tuple[float, str]]] = {}
    for s in _tables(folder, part):
        y = np.unique(s.y, return_inverse=True)[1]
        for model, X in _columns_by_class(s.X):
            cells = pd.DataFrame(X)
            complete = np.ones(len(y), bool) if model == "MixedNB" else cells.notna().all(axis=1)
            rows = np.random.default_rng(0).permutation(np.flatnonzero(complete))
            rest, test = np.delete(rows, np.s_[::3]), rows[::3][:400]
            by_class = [rest[y[rest] == c][:12] for c in np.unique(y[rest])]
            for size, train in ((12, np.concatenate(by_class)), (400, rest[:400])):
                known = np.unique(y[train])
                T = test[np.isin(y[test], known)]
                if len(known) < 2 or len(T) < 20:
                    continue
                options = {}
                if model == "CategoricalNB":
                    options = {"categories": [range(-1, k + 1) for k in X.max(axis=0)]}
                losses = []
                for prior in ("default", None):
                    clf = getattr(bg, model)(prior=prior, **options)
                    with warnings.catch_warnings(), np.errstate(all="ignore"):
                        warnings.simplefilter("ignore")
                        log_p = clf.fit(take(X, train), y[train]).predict_log_proba(take(X, T))
                    loss = -log_p[np.arange(len(T)), np.searchsorted(known, y[T])].mean()
                    losses.append(max(loss, 1e-3))
                ratios.setdefault((model, size), []).append((losses[1] / losses[0], s.name))
    print("| classifier | training rows | tables | mean | better | worse | worst |")
    print("|---|---|---:|---:|---:|---:|---|")
    for (model, size), of_tables in sorted(ratios.items()):
        r = np.array([ratio for ratio, _ in of_tables])
        cells = f"{len(r)} | {np.exp(np.log(r).mean()):.3f} | {(r < 0.98).sum()}"
        rows_of = "12 per class" if size == 12 else "at most 400"
        worst = f"{r.max():.2f} ({max(of_tables)[1]})"
        print(f"| `{model}` | {rows_of} | {cells} | {(r > MARGIN).sum()} | {worst} |")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=open_sets.FOLDER, help="folder of DATA.md")
    parser.add_argument("--only", nargs="*", help="classes to run, as GaussianNB")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--scan", action="store_true", help="other constants than the defaults")
    parser.add_argument("--chosen", action="store_true", help="on tables that chose nothing")
    parser.add_argument("--part", default="0/1", help="every so many-th table, with --chosen")
    args = parser.parse_args()
    if args.scan:
        scan(args.data, args.splits)
    elif args.chosen:
        chosen(args.data, args.part)
    else:
        compare(args.data, args.only, args.splits)


if __name__ == "__main__":
    with threadpool_limits(limits=1, user_api="blas"):
        main()
