"""
What does the prior decide?
===========================

Three birds of each species train. The class probabilities of others, under priors half to twice as
strong: where the line crosses one half, the prior decides.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm", "bill_depth_mm"]].dropna()
y = y[X.index]
few = y.groupby(y).head(3).index
clf = bg.GaussianNB().fit(X.loc[few], y[few])

bg.plots.plot_prior_sensitivity(bg.prior_sensitivity(clf, X.drop(few)), most=15)
