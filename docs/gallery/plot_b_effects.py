"""
plot_effects: which columns matter, and how?
============================================

A panel for each column, those that change it most first, numbers and categories alike. The other
columns stay at their medians, or most frequent values.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm", "bill_depth_mm", "island", "sex"]]
few = y.groupby(y).head(12).index
clf = bg.MixedNB().fit(X.loc[few], y[few])

bg.plots.plot_effects(clf, X.loc[few], y[few], classes="Chinstrap")
