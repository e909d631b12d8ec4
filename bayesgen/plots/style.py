"""Colours and axes of the house."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.names import Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, HAIR = "#22272e", "#5b6570", "#c9d0d7"
# Okabe and Ito (2008), the yellow left out and the vermilion darkened: they are read on white
CLASSES = ("#0072b2", "#c85200", "#009e73", "#a3528a", "#b8860b", "#3f9fd0", "#6b4f3a", "#7f7f7f")
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture on every machine
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}

METHOD_NAMES: dict[Method, str] = {
    "posterior_predictive": "predictive",
    "posterior_mean": "plug-in (mean)",
    "map": "plug-in (MAP)",
    "mle": "plug-in (MLE)",
}


def colour(k: int) -> str:
    """Of class k."""
    return CLASSES[k % len(CLASSES)]


@contextmanager
def canvas(ax: "Axes | None", size: tuple[float, float]) -> Iterator["Axes"]:
    """The user's axes in the user's style, or new ones in the style of the house."""
    try:
        import matplotlib as mpl
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "bayesgen[plots]"') from None
    if ax is not None:
        yield ax
        return
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        _, ax = plt.subplots(figsize=size)
        yield ax


def percent(prob: float) -> str:
    """As in a label: "89 %"."""
    return f"{100 * prob:.3g} %"


def feature_names(clf: Any) -> list[str]:
    """Of the columns of X."""
    return [str(name) for name in clf._feature_names()]


def feature_index(clf: Any, feature: Any) -> int:
    """Position of a column, given as that or by its name."""
    names = feature_names(clf)
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"there is no feature {feature!r}; known are {', '.join(names)}")
        return names.index(feature)
    if not 0 <= int(feature) < len(names):
        raise ValueError(f"feature must be 0 .. {len(names) - 1} or a name, got {feature!r}")
    return int(feature)


def rows_like(X: Any, values: Any) -> Any:
    """`values` (N, D) as the kind of table that X is."""
    if hasattr(X, "columns"):
        return type(X)({name: values[:, j] for j, name in enumerate(X.columns)})
    return values


def refuse_other_labels(clf: Any, y: Any, n: int) -> None:
    """Raise if `y` is not one known label for each of n rows."""
    if y is not None and clf._codes_of(np.asarray(y)).shape != (n,):
        raise ValueError(f"X has {n} rows, but y has shape {np.shape(y)}")
