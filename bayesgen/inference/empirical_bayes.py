"""Empirical Bayes: the scale of each kind of hyper-parameter that maximises the evidence.

Type-II maximum likelihood over one multiplicative factor for each name in ``family.tunable``, so
that unequal hyper-parameters keep their proportions. The prior then depends on the data: the
evidence it reaches is optimistic when models are compared.

Source: Bishop, Pattern Recognition and Machine Learning (2006), section 3.5.
"""

import warnings
from typing import Any

import numpy as np

from bayesgen.families.contract import ConjugateFamily

_LOG_LIMIT = np.log(1e6)  # a factor beyond it means that the evidence has no interior maximum


def maximise_evidence(prior: ConjugateFamily, stats: Any) -> ConjugateFamily:
    """The resolved `prior` rescaled to the largest log evidence of `stats`.

    Warns when a factor runs to the limit of 1e6: the data ask for a degenerate prior.
    """
    blocks = prior.blocks(stats)  # their evidences add: one at a time
    best: ConjugateFamily = prior.with_blocks([_maximised(b.family, b.stats) for b in blocks])
    return best


def _maximised(prior: ConjugateFamily, stats: Any) -> ConjugateFamily:
    """The prior of one block."""
    from scipy.optimize import minimize  # 0.1 s of import that a plain fit does not need

    names = prior.tunable
    if not names:
        raise ValueError(f"{type(prior).__name__} has no hyper-parameters for prior='empirical'")

    def rescaled(log_factors: np.ndarray) -> ConjugateFamily:
        return prior.scaled(dict(zip(names, np.exp(log_factors), strict=True)))

    def loss(log_factors: np.ndarray) -> float:
        value = rescaled(log_factors).log_evidence(stats)
        return -value if np.isfinite(value) else 1e300

    start = np.zeros(len(names))
    scale = max(1.0, abs(loss(start)))
    best = minimize(
        loss,
        start,
        method="Nelder-Mead",
        bounds=[(-_LOG_LIMIT, _LOG_LIMIT)] * len(names),
        options={
            "xatol": 1e-6,
            "fatol": 1e-10 * scale,
            "maxiter": 500 * len(names),
            "initial_simplex": np.vstack([start, np.eye(len(names))]),
        },
    )
    at_limit = [n for n, v in zip(names, best.x, strict=True) if abs(v) > 0.999 * _LOG_LIMIT]
    if at_limit:
        warnings.warn(
            f"prior='empirical': the evidence has no interior maximum in {', '.join(at_limit)}; "
            "the factor stopped at 1e6 or 1e-6 of the default",
            UserWarning,
            stacklevel=3,
        )
    # The evidence is flat at its top: digits beyond these are rounding, and would make repeated
    # rows and weighted rows differ.
    return rescaled(np.round(best.x, 4))
