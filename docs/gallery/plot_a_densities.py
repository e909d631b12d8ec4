"""
plot_densities: what does each class look like?
===============================================

Posterior predictive of a real and of a categorical column in each class, the others summed out.
Below the curves lie the middle 50 % and 90 % of each, and the rows.
"""

import matplotlib.pyplot as plt

import bayesgen as bg

X, y = bg.datasets.load_penguins()
few = y.groupby(y).head(12).index
clf = bg.MixedNB().fit(X.loc[few], y[few])

fig, axes = plt.subplots(2, 1, figsize=(7.2, 6.4), layout="constrained")
bg.plots.plot_densities(clf, X.loc[few], y[few], "bill_length_mm", ax=axes[0])
bg.plots.plot_densities(clf, X.loc[few], y[few], "island", ax=axes[1])
