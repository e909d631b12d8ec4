"""
Which columns depend on each other?
===================================

Edges of the forests of a `TreeAugmentedNB`, as dark as they are probable: an exact average over
all forests, not one best tree.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X.select_dtypes("number").dropna()
clf = bg.TreeAugmentedNB().fit(X, y[X.index])

bg.plots.plot_edges(clf, class_="Gentoo")
