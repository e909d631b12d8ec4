"""Held-out scores against the number of training rows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from bayesgen.checks.compare import paired, score
from bayesgen.encoding.labels import coded
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS, MODEL, PREDICTIVE, Method
from bayesgen.io.progress import row_progress
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array
from bayesgen.predict.probabilities import log_joint

if TYPE_CHECKING:
    import xarray as xr

TRAIN_SIZE, REPEAT = "train_size", "repeat"
_SCORES = ("accuracy", "log_loss", "brier", "ece")


def learning_curve(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    train_sizes: Sequence[int] = (4, 8, 16, 32, 64),
    repeats: int = 20,
    random_state: Any = 0,
    methods: Sequence[Method] = ("posterior_predictive",),
    progressbar: bool = True,
) -> "xr.Dataset":
    """Score models on held-out rows after fits to few rows of each class, and to more.

    Parameters
    ----------
    models : {name: classifier}
        Fitted or not: clones are fitted. Any scikit-learn classifier with ``predict_proba``.
    X, y : labelled rows
        Every repeat draws a training set of n rows of each class; all other rows are the test. All
        models have the same.
    train_sizes : sequence of int
        Rows of each class, fewer than the smallest class has. Sizes that are too large are left
        out; if all are, that is an error.
    repeats : int, >= 2
    random_state : int or numpy.random.Generator
    methods : sequence of {"posterior_predictive", "posterior_mean", "map", "mle"}
        Plug-ins to score in addition to the posterior predictive. The probabilities
        of other classifiers count as the posterior predictive.
    progressbar : bool
        On stderr, if that is a terminal.

    Returns
    -------
    xarray.Dataset
        (model, predictive, train_size, repeat) ``accuracy``, ``log_loss``, ``brier``, ``ece`` (see
        `compare_predictives`), NaN if an estimate does not exist; (model, predictive,
        train_size) ``log_loss_mean``, ``log_loss_se``, ``log_loss_median``; ``log_loss_diff``,
        above the first model and method, and ``log_loss_within``, above the first method of the
        same model, each paired over repeats, with ``_se``, ``_median`` and ``_wins``, the share of
        repeats in which the difference is negative (and half of those in which it is 0). Where a
        plug-in gives a row probability 0 in any repeat, means are infinite, and medians and wins
        say more. `plots.plot_learning_curve` draws it.

    Notes
    -----
    Standard errors over repeats are about training sets of these rows. Repeats share test rows, so
    they slightly understate the uncertainty for other rows.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = bg.datasets.load_penguins()
    >>> X = X[["bill_length_mm", "bill_depth_mm", "body_mass_g"]].dropna()
    >>> models = {"lda": bg.LinearDiscriminant(), "qda": bg.QuadraticDiscriminant()}
    >>> found = bg.learning_curve(models, X, y[X.index], train_sizes=(5, 40), repeats=10)
    >>> for name in models:
    ...     print(name, found["log_loss_mean"].sel(model=name).values.round(2))
    lda [[0.06 0.02]]
    qda [[0.11 0.03]]
    """
    import xarray as xr

    if not isinstance(models, Mapping) or not models:
        raise ValueError("models must be {name: classifier}, with one or more of them")
    if repeats < 2:
        raise ValueError(f"repeats must be at least 2, for a standard error; got {repeats}")
    if not methods or any(method not in METHODS for method in methods):
        raise ValueError(f"methods must be some of {METHODS}, got {methods!r}")
    X = X.tocsr() if sparse.issparse(X) else X  # some other forms have no rows to take
    classes, codes = coded(y)
    fewest = int(np.bincount(codes).min())
    sizes = [int(n) for n in train_sizes if 1 <= n < fewest]
    if not sizes:
        raise ValueError(
            f"train_sizes must be from 1 to {fewest - 1}, or the smallest class, of {fewest} rows, "
            f"has none left to test on; got {list(train_sizes)}"
        )
    rng = generator(random_state)
    shape = (len(models), len(methods), len(sizes), repeats)
    out = {name: np.full(shape, np.nan) for name in _SCORES}
    total = len(sizes) * repeats
    with row_progress("fitting", float(total), progressbar) as advance:
        for k, n in enumerate(sizes):
            for r in range(repeats):
                train, test = _split(codes, n, rng)
                parts = [_safe_indexing(part, at) for at in (train, test) for part in (X, y)]
                for m, clf in enumerate(models.values()):
                    fitted = clone(clf).fit(*parts[:2])
                    for p, method in enumerate(methods):
                        joint = _log_joint(fitted, parts[2], method)
                        if joint is not None:
                            found = score(joint, codes[test])
                            for name in _SCORES:
                                out[name][m, p, k, r] = found[name]
                advance(k * repeats + r + 1, len(codes))
    dims = (MODEL, PREDICTIVE, TRAIN_SIZE, REPEAT)
    loss = out["log_loss"]
    own = paired(loss)
    means = {"log_loss_mean": own.mean, "log_loss_se": own.se, "log_loss_median": own.median}
    means |= paired(loss, loss[:1, :1]).named("log_loss_diff")
    means |= paired(loss, loss[:, :1]).named("log_loss_within")
    return xr.Dataset(
        {name: (dims, value) for name, value in out.items()}
        | {name: (dims[:-1], value) for name, value in means.items()},
        coords={
            MODEL: list(models),
            PREDICTIVE: list(methods),
            TRAIN_SIZE: sizes,
            REPEAT: np.arange(repeats),
        },
        attrs={"rows": len(codes), "classes": len(classes)},
    )


def _split(codes: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Positions of n training rows of each class, and of all others."""
    train = np.concatenate(
        [rng.choice(np.flatnonzero(codes == c), n, replace=False) for c in np.unique(codes)]
    )
    return np.sort(train), np.setdiff1d(np.arange(len(codes)), train)


def _log_joint(clf: Any, X: Any, method: Method) -> Array | None:
    """(N, C) up to a constant of the row; None where the estimate does not exist."""
    if not hasattr(clf, "fitted_"):
        if method != METHODS[0]:
            return None
        if hasattr(clf, "predict_log_proba"):  # a p of less than 1e-308 too
            return np.asarray(clf.predict_log_proba(X))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(clf.predict_proba(X)))
    try:
        return log_joint(clf.fitted_, X, method)
    except UndefinedEstimateError:
        return None
