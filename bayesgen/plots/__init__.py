"""Pictures of classifiers, rows and comparisons. They need matplotlib.

Every function returns axes. It draws into the axes that you pass as ``ax``, in the style of their
figure, or makes a new figure.

The arguments of a classifier and its rows come first and in the order ``(clf, X, y, feature)``. All
others are keywords: ``classes`` names one label or several, ``figsize`` is the size of a new
figure. A new figure is at most 12 inches tall. If there is more to show, the function shows the
most important part, and a label of the axes says so. Long names are split into two lines or
shortened.

A class has the same colour in every picture, by its place in ``classes_``. The colours are distinct
to people with any common kind of colour blindness. After eight classes they repeat with dashed
lines, hollow marks and hatched bars.
"""

from bayesgen.plots.features import (
    plot_densities,
    plot_effects,
    plot_regions,
)
from bayesgen.plots.models import (
    plot_comparison,
    plot_reliability,
    plot_validation,
)
from bayesgen.plots.rows import (
    plot_class_probability,
    plot_contributions,
)

__all__ = [
    "plot_class_probability",
    "plot_comparison",
    "plot_contributions",
    "plot_densities",
    "plot_effects",
    "plot_regions",
    "plot_reliability",
    "plot_validation",
]


def __dir__() -> list[str]:
    return __all__
