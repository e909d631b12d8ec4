"""
Do frequencies agree with probabilities?
========================================

Held-out rows. Above, bins of equally many with Jeffreys intervals; below, the rising curve of
pool-adjacent-violators and where 90 % of the curves of a calibrated classifier would be. Naive
Bayes counts what columns share once for each of them, and is overconfident; its pool is much less
so.
"""

import matplotlib.pyplot as plt
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

fig, axes = plt.subplots(2, 1, figsize=(9, 9.4), layout="constrained")
bg.plots.plot_reliability(models, X[test], y[test], bins=6, prob=0.9, ax=axes[0])
del models["its MAP plug-in"]
bg.plots.plot_reliability(models, X[test], y[test], kind="isotonic", prob=0.9, ax=axes[1])
