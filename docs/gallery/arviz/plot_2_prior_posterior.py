"""
az.plot_prior_posterior: what did twelve birds change?
======================================================

The group ``prior`` holds draws of the same parameters. The first picture shows the share of each
species among penguins before any bird was seen and after twelve.
"""

import arviz as az

import bayesgen as bg

az.style.use("arviz-variat")
X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm", "flipper_length_mm"]].dropna().sample(12, random_state=1)
y = y[X.index]
clf = bg.GaussianNB().fit(X, y)
tree = clf.posterior_groups(X, y, groups=["prior"])

az.plot_prior_posterior(tree, var_names=["pi"], figure_kwargs={"figsize": (7.2, 2.6)})

# %%
# Rows drawn from the posterior, given the labels, next to the observed rows.

replicated = clf.posterior_groups(X, y, groups=["posterior_predictive"], replicate=["x"])
az.plot_ppc_dist(replicated, var_names=["x"], num_samples=50, figure_kwargs={"figsize": (7.2, 2.8)})
