"""Pictures of what a classifier is sure of. Axes in, axes out; needs matplotlib.

Every function draws into the axes that it is given, in the figure's own style, or makes a figure
in the house style.

A function of a classifier takes ``(clf, X, y, feature)``, as many of them as it needs and in this
order; a function of a table that another one makes takes the table. All else goes by keyword:
``classes``, one label or several, says which are drawn; ``ax`` where; ``figsize`` how large. A
figure that is made is at most 12 inches tall: where there is more to show, the most telling part is
shown, and a label says so. Long names are set on two lines, or lose their middle.

Classes have the same colours in every picture: those of their place in
``classes_``, distinct to people with any common kind of colour blindness. After eight classes the
colours come again with dashed lines, hollow marks and hatched bars.
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
