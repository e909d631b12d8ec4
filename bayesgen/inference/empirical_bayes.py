"""Empirical Bayes: the scale of each kind of hyper-parameter that maximises the evidence.

Type-II maximum likelihood over one multiplicative factor for each name in ``family.tunable``, so
that unequal hyper-parameters keep their proportions. The prior then depends on the data: the
evidence it reaches is optimistic when models are compared.

It is p(X, y) that is maximised, in which the features outweigh the labels. Where most columns say
nothing of the class the evidence asks for class means that are all equal (kappa without bound:
every row gets the class weights), and where columns repeat each other, for a scale of 0. Factors
therefore stay between 1/100 and 100.

Source: Bishop, Pattern Recognition and Machine Learning (2006), section 3.5.
"""

import warnings
from typing import Any

import numpy as np

from bayesgen.families.contract import ConjugateFamily

_LIMIT = 100  # of a factor: kappa0 = 0.1 grows to 10 rows, so that no class mean is given up
_LOG_LIMIT = np.log(_LIMIT)


def maximise_evidence(prior: ConjugateFamily, stats: Any) -> ConjugateFamily:
    """The resolved `prior` rescaled to the largest log evidence of `stats`.

    Warns when a factor runs to the limit of 100 or 1/100: the data ask for a prior that says more
    than they do, or next to nothing.
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
            f"the factor stopped at {_LIMIT} or 1/{_LIMIT} of the default",
            UserWarning,
            stacklevel=3,
        )
    # The evidence is flat at its top: digits beyond these are rounding, and would make repeated
    # rows and weighted rows differ.
    return rescaled(np.round(best.x, 4))
