"""
How many rows are enough?
=========================

Held-out log loss by rows of each class, of the posterior predictive and of the maximum likelihood
plug-in. With few rows the plug-in is sometimes sure of the wrong species: the axis is logarithmic,
as its mean loss is hundreds of times larger.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X.select_dtypes("number").dropna()
y = y[X.index]
models = {"naive": bg.GaussianNB(), "one covariance per class": bg.QuadraticDiscriminant()}
curve = bg.learning_curve(
    models, X, y, (3, 5, 10, 20, 40), methods=("posterior_predictive", "mle"), progressbar=False
)

bg.plots.plot_learning_curve(curve)
