"""Plug-in against full predictive on held-out rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS, PREDICTIVE
from bayesgen.numerics.special import Array, log_softmax

if TYPE_CHECKING:
    import xarray as xr

ECE_BINS = 15


def compare_predictives(clf: Any, X: Any, y: Any) -> "xr.Dataset":
    """Score the posterior predictive and every plug-in of one fitted model on the same rows.

    Parameters
    ----------
    clf : fitted classifier
    X : (N, D)
        Held-out rows.
    y : (N,)
        Their labels, all among ``clf.classes_``.

    Returns
    -------
    xarray.Dataset
        Dim ``predictive`` (``method`` is an option of ``Dataset.sel``), one entry for each of
        `names.METHODS`. ``accuracy``; ``log_loss``, mean of -log p(y | x) in nats; ``brier``, mean
        of the squared error summed over classes; ``ece``, expected calibration error of the top
        probability in 15 equal bins; ``impossible``, the number of rows that have probability 0
        under every class; ``note``, why a method has no numbers (its estimate does not exist).

    Notes
    -----
    A row that is impossible under every class gets no probability anywhere: it counts as wrong,
    with an infinite log loss and a Brier error of 1.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = [[0, 1], [1, 1], [1, 0], [0, 0]], ["a", "a", "b", "b"]
    >>> table = compare_predictives(bg.BernoulliNB().fit(X, y), X, y)
    >>> table.accuracy.sel(predictive="posterior_predictive").item()
    1.0
    """
    import xarray as xr

    labels = np.asarray(y)
    codes = clf._codes_of(labels)
    rows: dict[str, list[float]] = {
        name: [] for name in ("accuracy", "log_loss", "brier", "ece", "impossible")
    }
    notes = []
    for method in METHODS:
        try:
            joint = clf._log_joint(X, method, None, None, "probability")
        except UndefinedEstimateError as error:
            for values in rows.values():
                values.append(np.nan)
            notes.append(str(error))
            continue
        if codes.shape != joint.shape[:1]:
            raise ValueError(f"X has {len(joint)} rows, but y has shape {codes.shape}")
        for name, value in score(joint, codes).items():
            rows[name].append(value)
        notes.append("")
    return xr.Dataset(
        {name: (PREDICTIVE, values) for name, values in rows.items()}
        | {"note": (PREDICTIVE, notes)},
        coords={PREDICTIVE: list(METHODS)},
        attrs={"estimator": type(clf).__name__, "rows": len(codes)},
    )


def score(joint: Array, codes: Array) -> dict[str, float]:
    """Accuracy, log loss, Brier score, calibration error of log joint densities (N, C)."""
    impossible = np.isneginf(joint).all(axis=1)
    log_p = np.where(impossible[:, None], -np.inf, log_softmax(joint))
    p = np.exp(log_p)
    truth = np.arange(len(codes)), codes
    top, right = p.max(axis=1), (p.argmax(axis=1) == codes) & ~impossible
    hit = np.zeros_like(p)
    hit[truth] = 1.0
    bins = np.minimum((top * ECE_BINS).astype(int), ECE_BINS - 1)
    gap = np.bincount(bins, weights=right - top, minlength=ECE_BINS)
    return {
        "accuracy": float(right.mean()),
        "log_loss": float(-log_p[truth].mean()),
        "brier": float(np.square(p - hit).sum(axis=1).mean()),
        "ece": float(np.abs(gap).sum() / len(codes)),
        "impossible": float(impossible.sum()),
    }
