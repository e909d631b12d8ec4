"""
ECDF of simulation-based calibration
====================================

Parameters drawn from the prior make data, and are ranked among the posterior draws of these data.
If inference is right, the PIT is uniform and its line stays near 0.
"""

import arviz as az

import bayesgen as bg

az.style.use("arviz-variat")
X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm"]].dropna()
clf = bg.GaussianNB().fit(X, y[X.index])
tree = bg.simulation_based_calibration(clf, replicates=200, progressbar=False)

az.plot_ecdf_pit(
    tree,
    var_names=["mu", "sigma2"],
    coords={"feature": "bill_length_mm"},
    col_wrap=3,
    figure_kwargs={"figsize": (9, 4.4)},
)
