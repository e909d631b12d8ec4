"""What a fit by NUTS to rows of a known theta must show."""

from typing import Any

import numpy as np

from bayesgen.inference.nuts import diagnose


def sound(clf: Any, r_hat: float = 1.01) -> Any:
    """Its draws, of chains that agree and do not diverge."""
    posterior = clf.posterior_["posterior"].to_dataset()
    diagnosis = diagnose(posterior, clf.posterior_["sample_stats"].to_dataset())
    assert diagnosis.divergences == 0
    assert diagnosis.r_hat <= r_hat
    return posterior


def inside(draws: Any, truth: Any, prob: float = 0.99) -> Any:
    """Whether each parameter lies in its central interval."""
    draws = np.asarray(draws).reshape(-1, *np.shape(truth))
    low, high = np.quantile(draws, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
    return (low <= truth) & (truth <= high)


def likelier(clf: Any, sibling: Any, X: Any, y: Any) -> bool:
    """Whether it says more of the labels of new rows, by two standard errors."""
    gain = clf.predict_log_proba(X) - sibling.predict_log_proba(X)
    gain = gain[np.arange(len(y)), y]
    return bool(gain.mean() > 2 * gain.std() / np.sqrt(len(gain)))
