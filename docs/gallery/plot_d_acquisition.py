"""
Which cell should be measured next?
===================================

Cells of birds are hidden and measured one by one: the one that is expected to tell most of this
bird, the best order for all birds, an order at random. A mistake costs 1, a measurement .02.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayesgen as bg

X, y = bg.datasets.load_penguins()
test = np.arange(len(y)) % 3 == 2
clf = bg.MixedNB().fit(X[~test], y[~test])
mistakes = 1 - np.eye(3)
curve = bg.acquisition_curve(clf, X[test], y[test], cost=0.02, decision_cost=mistakes)

fig, axes = plt.subplots(1, 2, figsize=(8.2, 3.2), layout="constrained")
bg.plots.plot_acquisition(curve, ax=axes[0])
bg.plots.plot_acquisition(curve, show="cost", ax=axes[1])
