"""
az.plot_compare: which model has the best score?
================================================

``compare_models`` returns entries for ``az.compare``. They are exact and need no refit if the
posterior has a closed form.
"""

import arviz as az

import bayesgen as bg

az.style.use("arviz-variat")
X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm", "flipper_length_mm"]].dropna()
y = y[X.index]
models = {
    "naive": bg.GaussianNB(),
    "one covariance": bg.LinearDiscriminant(),
    "one per class": bg.QuadraticDiscriminant(),
}
found = bg.compare_models(models, X, y)

az.plot_compare(az.compare(found.loo), figure_kwargs={"figsize": (7.2, 2.4)})
