"""
az.plot_psense_dist: does the prior matter?
===========================================

``psense_summary`` raises the prior and the likelihood to powers near 1. A tree has two likelihoods,
``joint`` of the rows and ``label`` of their labels. Name one of them, or ArviZ adds them up.

The default prior of the variances has the spread of all birds together, and one species varies
less. ArviZ calls this a potential prior-data conflict. It does not know that the scale of the prior
comes from the same columns. The prior matters for five birds per species; its influence vanishes
with more rows. Set a scale of your own with ``sigma2_0``.
"""

import arviz as az
import numpy as np

import bayesgen as bg

az.style.use("arviz-variat")
X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm", "flipper_length_mm"]].dropna()
y = y[X.index]
few = y.groupby(y).head(5).index
clf = bg.GaussianNB().fit(X.loc[few], y[few])
tree = clf.posterior_groups(X.loc[few], y[few], groups=["log_likelihood", "log_prior"])
draws = tree["posterior"].to_dataset()
tree["posterior"] = draws.assign(sd=np.sqrt(draws["sigma2"]))
of = {"var_names": ["mu", "sd"], "likelihood_var_names": "joint"}
of["coords"] = {"feature": "bill_length_mm"}
az.psense_summary(tree, **of)

# %%
# The standard deviations under priors and likelihoods of other powers.

of["var_names"] = ["sd"]
az.plot_psense_dist(tree, **of, figure_kwargs={"figsize": (7.2, 5.2)})
