"""Interval end points held to posterior draws by NUTS, which shares no code with them."""

from typing import Any

import numpy as np

from bayesgen.posterior.drawn import effective_sample_size


def percentile_errors(
    clf: Any, X: Any, tree: Any, prob: float = 0.9, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """How far the ends of `predict_interval` are from the percentiles that they stand for.

    Returns
    -------
    error : (K,)
        Share of the draws below the end point, minus its nominal value, of every row, class and
        end; but for ends that floats cannot tell from 0 or 1.
    mcse : (K,)
        Standard error of that share: of as many independent draws as these are worth.
    """
    nominal = np.array([(1 - prob) / 2, (1 + prob) / 2])
    ends = clf.predict_interval(X, prob=prob, kind="eti", **options)["interval"].values
    drawn = clf.with_posterior(tree).predict_posterior(X)["predictions"]["class_probability"].values
    told = (ends > 1e-12) & (ends < 1 - 1e-12)
    below = (drawn[..., None] < ends)[:, :, told].astype(np.float64)  # (chain, draw, K)
    share = np.broadcast_to(nominal, ends.shape)[told]
    ess = np.minimum(effective_sample_size(np.moveaxis(below, -1, 0)), below[..., 0].size)
    return below.mean(axis=(0, 1)) - share, np.sqrt(share * (1 - share) * (1 / ess + 1 / 2000))
