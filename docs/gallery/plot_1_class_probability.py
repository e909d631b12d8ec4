"""
plot_class_probability: how sure is each row?
=============================================

A line is the credible interval of p(y = c | x, θ), a tick its mean; the diamond is the exact
predictive p(y = c | x, D), which is another number.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm", "bill_depth_mm"]].dropna()
y = y[X.index]
few = y.groupby(y).head(4).index
clf = bg.GaussianNB().fit(X.loc[few], y[few])

rows = X.drop(few).iloc[[10, 60, 150, 160, 190, 250]]
bg.plots.plot_class_probability(clf, rows)
