"""
plot_comparison: which model is best?
=====================================

Exact leave-one-out: difference of each model's label score to the best, with its standard error.
"""

import bayesgen as bg

X, y = bg.datasets.load_penguins()
X = X.select_dtypes("number").dropna()
y = y[X.index]
models = {
    "naive": bg.GaussianNB(),
    "naive, one variance": bg.GaussianNB(variance="tied"),
    "one covariance": bg.LinearDiscriminant(),
    "one per class": bg.QuadraticDiscriminant(),
}
found = bg.compare_models({name: clf.fit(X, y) for name, clf in models.items()}, X, y)
bg.plots.plot_comparison(found)
