"""
plot_reliability: is it calibrated?
===================================

Held-out rows in bins of equal size, with Jeffreys intervals. Naive Bayes counts what columns share
once for each of them, and is overconfident. Its pool is much less so.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer

import bayesgen as bg

X, y = load_breast_cancer(return_X_y=True)
test = np.arange(len(y)) % 3 == 2
naive = bg.GaussianNB().fit(X[~test], y[~test])
models = {
    "naive Bayes": naive,
    "its MAP plug-in": naive.predict_proba(X[test], method="map"),
    "pool of naive Bayes": bg.LogLinearPool([bg.GaussianNB()]).fit(X[~test], y[~test]),
}

bg.plots.plot_reliability(models, X[test], y[test], bins=6)
