"""A classifier whose posterior is draws, without a sampler: exact draws of its closed form."""

from typing import Any


def drawn(clf: Any, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
    """Fit in closed form, and return the classifier of draws of that posterior."""
    clf.fit(X, y, sample_weight)
    return clf.with_posterior(clf.draw_posterior(**options))
