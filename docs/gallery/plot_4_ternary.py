"""
Three classes in a triangle
===========================

Each cloud is the posterior of p(y | x, θ) for one row; the diamond is its exact predictive.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm", "bill_depth_mm"]].dropna()
y = y[X.index]
few = y.groupby(y).head(4).index
clf = bg.QuadraticDiscriminant().fit(X.loc[few], y[few])

rows = [12, 283, 220]
bg.plots.plot_ternary(clf, X.loc[rows], y[rows], draws=300)
