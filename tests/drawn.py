"""Draws without a sampler: of a closed form, and few of the exponents of a pool."""

from typing import Any

import numpy as np


def drawn(clf: Any, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
    """Fit in closed form, and return the classifier of draws of that posterior."""
    clf.fit(X, y, sample_weight)
    return clf.with_posterior(clf.draw_posterior(**options))


def draw_few_exponents(patch: Any) -> None:
    from bayesgen.inference import exponents

    for name, value in {"DRAWS": 20, "_WARM_UP": 32, "_LONGEST_RUN": 1}.items():
        patch.setattr(exponents, name, value)
    patch.setattr(exponents, "LARGEST_R_HAT", np.inf)
