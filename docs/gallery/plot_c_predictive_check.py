"""
Can the model produce such rows?
================================

Sixty data sets from the posterior, one line each, and the one observed: flippers of two species
taken for one class have two modes, which a Normal cannot produce.
"""

import numpy as np

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X.loc[y.isin(["Adelie", "Gentoo"]), ["flipper_length_mm"]].dropna()
penguin = np.where(np.arange(len(X)) % 2, "odd row", "even row")
clf = bg.GaussianNB().fit(X, penguin)

bg.plots.plot_predictive_check(clf, X, penguin, "flipper_length_mm")
