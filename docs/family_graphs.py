"""The PyMC graph of each classifier's page, drawn by matplotlib: graphviz is no Python package.

Nothing is compiled or sampled: the model is built and its nodes are asked for.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Ellipse, FancyArrowPatch, FancyBboxPatch

import bayesgen as bg
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS, OBS
from bayesgen.plots.style import HAIR, INK, MUTED, STYLE
from bayesgen.posterior.model import ClassModel

Y = np.arange(6) % 2
REALS = np.random.default_rng(0).normal(size=(6, 3)) + Y[:, None]
BITS = (REALS > 0.5).astype(int)
OF_BITS = """BernoulliNB CategoricalNB HierarchicalBernoulliNB
TreeAugmentedNB"""
OF_COUNTS = """MultinomialNB PoissonNB NegativeBinomialNB"""
TABLES: dict[str, Any] = dict.fromkeys(OF_BITS.split(), BITS)
TABLES |= dict.fromkeys(OF_COUNTS.split(), BITS + 1)
TABLES["MarkovNB"] = ["ab", "ba", "aab", "bb", "abba", "bab"]
TABLES["MixedNB"] = pd.DataFrame(
    {"mass": REALS[:, 0], "male": BITS[:, 1] == 1, "island": list("uvwuvw")}
)
# the model is one of statistics, for a given structure
STRUCTURE = {"TreeAugmentedNB": [-1, 0, 1]}
ARGUMENTS = {"MetaTreeForest": {"n_trees": 1}}  # a forest has no graph, a tree has
SPELT = {
    "CellsDirichlet": "Dirichlet",
    "Halfnormal": "Half-Normal",
    "Invgamma": "Inverse-Gamma",
    "Lognormal": "Log-Normal",
    "T": "Student t",
}
WIDE, HIGH = 2.9, 1.75  # distances of nodes


@cache
def model_of(name: str) -> Any:
    """The PyMC model of a classifier, on six rows."""
    X = TABLES.get(name, REALS)
    if name == "LogLinearPool":
        members = [bg.GaussianNB(), bg.LinearDiscriminant()]
        return bg.LogLinearPool(members).fit(X, Y).to_pymc()
    clf = getattr(bg, name)(**ARGUMENTS.get(name, {}))
    if clf.__bayesgen_learner__().family_type.conjugate:
        clf.fit(X, Y)
        if name in STRUCTURE:
            return clf.to_pymc(structure=STRUCTURE[name])
        if name in ARGUMENTS:
            return clf.to_pymc()
        return clf.to_pymc(X, Y, likelihood="rows")
    prior = clf.__bayesgen_learner__().family_type.examples(2, 3)[0]
    names = ["u", "v", "w"]
    coords = prior.coords() | {CLASS: ["a", "b"], FEATURE: names, FEATURE_BIS: names}
    return ClassModel(np.ones(2), prior).to_pymc(coords, X=X, y=Y)


class Node:
    """A variable of the model: its distribution, dims, parents and layer."""

    def __init__(self, info: Any, dims: str) -> None:
        from pymc.model_graph import NodeType, random_variable_symbol

        self.name: str = info.var.name
        self.dims = dims
        self.kind = info.node_type
        self.random = self.kind in (NodeType.FREE_RV, NodeType.OBSERVED_RV)
        self.observed = self.kind in (NodeType.OBSERVED_RV, NodeType.POTENTIAL)
        symbol = random_variable_symbol(info.var) if self.random else self.kind.value
        self.says = SPELT.get(symbol, symbol)
        self.parents: list[Node] = []

    @property
    def layer(self) -> int:
        """Steps from the variables without parents."""
        return 1 + max((parent.layer for parent in self.parents), default=-1)


def nodes_of(model: Any) -> list[Node]:
    """All but the data: hyper-parameters and rows are numbers, not variables."""
    from pymc.model_graph import ModelGraph, NodeType

    graph = ModelGraph(model)
    nodes: dict[str, Node] = {}
    for plate in graph.get_plates():
        names = [str(name).removesuffix("_bis") for name in plate.dim_info.names if name]
        dims = " × ".join(n if n == OBS else n.rpartition("_")[2] for n in names)  # of its block
        for info in sorted(plate.variables, key=lambda own: own.var.name):
            if info.node_type != NodeType.DATA:
                nodes[info.var.name] = Node(info, dims)
    edges = graph.edges()
    observed_as = {data: own for data, own in edges if data not in nodes and own in nodes}
    for child, parent in sorted((child, observed_as.get(on, on)) for child, on in edges):
        if child in nodes and parent in nodes and child != parent:
            nodes[child].parents.append(nodes[parent])
    return list(nodes.values())


def sentences(model: Any) -> Iterator[str]:
    """The graph in words, a sentence a variable."""
    for node in sorted(nodes_of(model), key=lambda own: (own.layer, own.name)):
        how = f"is {node.says}" if node.random else f"is a {node.says.lower()}"
        on = [parent.name for parent in node.parents]
        given = f" given {', '.join(on)}" if on else ""
        over = f", over {node.dims}" if node.dims else ""
        seen = ", observed" if node.observed and node.random else ""
        yield f"{node.name} {how}{given}{over}{seen}."


def draw(name: str) -> None:
    """Draw the graph into a new figure: parents above, what is observed shaded."""
    nodes = nodes_of(model_of(name))
    layers = [[n for n in nodes if n.layer == k] for k in range(max(n.layer for n in nodes) + 1)]
    at: dict[str, tuple[float, float]] = {}
    for depth, row in enumerate(layers):
        row.sort(key=lambda own: (np.mean([at[on.name][0] for on in own.parents] or [0]), own.name))
        for i, node in enumerate(row):
            at[node.name] = ((i - (len(row) - 1) / 2) * WIDE, -HIGH * depth)
    width, height = WIDE * max(map(len, layers)) + 0.8, HIGH * len(layers)
    with plt.rc_context(STYLE):
        ax = plt.subplots(figsize=(0.62 * max(width, 6), 0.62 * height))[1]
        patches = {node.name: _shape(ax, node, at[node.name]) for node in nodes}
        for node in nodes:
            for parent in node.parents:
                start, end = at[parent.name], at[node.name]
                straight = node.layer - parent.layer == 1 or start[0] != end[0]
                ends = {"patchA": patches[parent.name], "patchB": patches[node.name]}
                line = {"arrowstyle": "-|>", "mutation_scale": 10, "lw": 1.1, "color": MUTED}
                bent = "arc3,rad=0" if straight else "arc3,rad=0.5"  # past what is between
                ax.add_patch(FancyArrowPatch(start, end, connectionstyle=bent, **line, **ends))
        ax.set(xlim=(-width / 2, width / 2), ylim=(0.5 * HIGH - height, 0.5 * HIGH), aspect="equal")
        ax.axis("off")


def _shape(ax: Any, node: Node, place: tuple[float, float]) -> Any:
    """An ellipse of a random variable, a box of what follows from others; shaded if observed."""
    x, y = place
    if node.random:
        patch: Any = Ellipse(place, 2.5, 1.1)
    else:
        patch = FancyBboxPatch((x - 1.15, y - 0.44), 2.3, 0.88, boxstyle="round,pad=0.04")
    patch.set(fc=HAIR if node.observed else "white", ec=INK, lw=1.1, zorder=2)
    ax.add_patch(patch)
    middle = {"ha": "center", "va": "center", "zorder": 3}
    ax.text(x, y + 0.26, node.name, size=8.5 if len(node.name) < 15 else 7, weight="bold", **middle)
    ax.text(x, y - 0.02, node.says, size=7.5, **middle)
    ax.text(x, y - 0.27, node.dims, size=6.5 if len(node.dims) < 25 else 5.2, color=INK, **middle)
    return patch
