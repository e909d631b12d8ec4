"""
Do frequencies agree with probabilities?
========================================

Held-out rows in bins of equally many; bars are Jeffreys intervals. Naive Bayes counts what
columns share once for each of them, and is overconfident; a model with correlations is much less
so.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import bayesgen as bg

X, y = load_breast_cancer(return_X_y=True)
test = np.arange(len(y)) % 3 == 2
naive = bg.GaussianNB().fit(X[~test], y[~test])
linear = bg.LinearDiscriminant().fit(X[~test], y[~test])

fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, clf in zip(axes, (naive, linear), strict=True):
    bg.plots.plot_reliability(clf, X[test], y[test], bins=6, prob=0.9, ax=ax)
    ax.set_title(type(clf).__name__)
