"""
plot_regions: where is the class uncertain?
===========================================

Lines hold 50 % and 90 % of each predictive density. The overlay is dark where
p(y | x, θ) is uncertain.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm", "flipper_length_mm"]].dropna()
y = y[X.index]
few = y.groupby(y).head(5).index
clf = bg.QuadraticDiscriminant().fit(X.loc[few], y[few])

bg.plots.plot_regions(clf, X.loc[few], y[few], boundaries=["posterior_predictive", "mle"])
