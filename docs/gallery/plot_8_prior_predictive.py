"""
Is the prior reasonable?
========================

Sixty data sets that the prior makes, one line each, and the one observed, which should not stand
out.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X.select_dtypes("number").dropna()
y = y[X.index]
clf = bg.GaussianNB().fit(X, y)

bg.plots.plot_prior_predictive(clf, X, y, "bill_length_mm")
