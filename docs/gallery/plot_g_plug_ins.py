"""
plot_comparison: what do plug-ins lose?
=======================================

``compare_predictives`` after six birds of each species: mean log loss above that of the posterior
predictive, and the share of birds to whose species a plug-in gives more probability. Plug-ins win
most birds by a little, and lose a few by much.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X.select_dtypes("number").dropna()
y = y[X.index]
few = y.groupby(y).head(6).index
models = {"naive": bg.GaussianNB(), "one covariance": bg.LinearDiscriminant()}
fitted = {name: clf.fit(X.loc[few], y[few]) for name, clf in models.items()}
rest = X.drop(few)

bg.plots.plot_comparison(bg.compare_predictives(fitted, rest, y[rest.index]))
