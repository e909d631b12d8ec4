"""
Which columns depend on each other?
===================================

Edges of the forests of a `TreeAugmentedNB`, as dark as they are probable: an exact average over
all forests, not one best tree. Below, how two classes differ.
"""

import matplotlib.pyplot as plt

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X.select_dtypes("number").dropna()
clf = bg.TreeAugmentedNB().fit(X, y[X.index])

fig, axes = plt.subplots(2, 1, figsize=(7.4, 9), layout="constrained")
bg.plots.plot_edges(clf, classes="Gentoo", ax=axes[0])
bg.plots.plot_edges(clf, classes=["Gentoo", "Chinstrap"], ax=axes[1])
