"""
plot_contributions: why this class?
===================================

Contributions of the columns to one row's log-odds. They add up to the log-
odds of ``predict_proba``.
"""

import numpy as np

import bayesgen as bg

X, y = bg.datasets.load_penguins()
test = np.arange(len(X)) % 3 == 2
clf = bg.MixedNB().fit(X[~test], y[~test])

bird = X.loc[[332]]
bg.plots.plot_contributions(clf, bird)
