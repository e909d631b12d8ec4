"""
How does the probability change along one feature?
==================================================

The other features stay at their medians. The band is the 90 % interval of p(y | x, θ), dashed the
plug-in of the posterior mode.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X.loc[y != "Gentoo"].select_dtypes("number").dropna()
y = y[X.index]
few = y.groupby(y).head(6).index
clf = bg.GaussianNB().fit(X.loc[few], y[few])

bg.plots.plot_section(clf, X.loc[few], y[few], "bill_length_mm", prob=0.9)
