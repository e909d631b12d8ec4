"""Score models by the log loss and the calibration of held-out rows."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from tests.benchmarks.measure import MIB, apart, peak
from tests.benchmarks.run import Record
from tests.benchmarks.sets import OpenSet, Split, take


def losses(
    record: Record,
    tables: Iterable[OpenSet],
    splits: Callable[[np.ndarray], Iterator[Split]],
    models: Callable[[OpenSet, Any, np.ndarray], dict[str, Any]],
    with_memory: bool = False,
) -> None:
    """Measure each model on each split of each table, as ``table|size|seed|model``.

    A result has log loss, calibration error, that of chance alone, processor seconds of fit and
    prediction, and with memory, by a process of its own, MiB.
    """
    score = partial(apart, _scored_with_memory) if with_memory else scored
    for s in tables:
        for size, seed, train, test in splits(s.y):
            X, y, T = take(s.X, train), s.y[train], take(s.X, test)
            codes = np.searchsorted(np.unique(y), s.y[test])
            for name, model in models(s, X, y).items():
                key = f"{s.name}|{size}|{seed}|{name}"
                record.measure(key, partial(score, model, X, y, T, codes))


def frame(record: Record, fields: str = "set size seed model", start: str = "") -> pd.DataFrame:
    """Return what `losses` kept, with columns loss, error, chance, seconds and mib."""
    return record.frame(fields, "loss error chance seconds mib", start).astype(float)


def scored(model: Any, X: Any, y: np.ndarray, T: Any, codes: np.ndarray) -> list[float]:
    """Return log loss, calibration error, that of chance alone, seconds, and no MiB."""
    start = time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        proba = np.asarray(model.fit(X, y).predict_proba(T))
    seconds = time.process_time() - start
    p_label = np.clip(proba[np.arange(len(codes)), codes], 1e-300, None)
    values = -np.log(p_label).mean(), calibration_error(proba, codes), chance(proba), seconds
    return [*(round(float(value), 5) for value in values), None]


def _scored_with_memory(
    model: Any, X: Any, y: np.ndarray, T: Any, codes: np.ndarray
) -> list[float]:
    rehearsal = partial(scored, clone(model), X[:200], y[:200], T[:200], codes[:200])
    with threadpool_limits(1):  # the rehearsal loads kernels and modules
        above, values = peak(partial(scored, model, X, y, T, codes), rehearsal)
    return [*values[:4], round(above / MIB, 1)]


def calibration_error(proba: np.ndarray, codes: np.ndarray) -> float:
    """Return the expected calibration error of the most probable class, in 15 bins."""
    gap = proba.max(axis=1) - (proba.argmax(axis=1) == codes)
    bins = np.minimum((proba.max(axis=1) * 15).astype(int), 14)
    return float(np.abs(np.bincount(bins, gap)).sum() / len(codes))


def chance(proba: np.ndarray, draws: int = 200) -> float:
    """Return the mean calibration error of labels drawn from the probabilities themselves."""
    rng = np.random.default_rng(0)
    below = rng.random((draws, len(proba), 1)) > proba.cumsum(axis=1)
    labels = np.minimum(below.sum(axis=2), proba.shape[1] - 1)
    return float(np.mean([calibration_error(proba, codes) for codes in labels]))
