"""
az.plot_ppc_pava: are class indicators calibrated?
==================================================

ArviZ reads class codes as numbers. ``replicate=["indicators"]`` adds a variable of 0 and 1 for each
class, such as ``is_Adelie``, with its own log likelihood. The first picture shows the frequency of
each class against its predicted probability, the second the leave-one-out PIT.
"""

import arviz as az

import bayesgen as bg

az.style.use("arviz-variat")
X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm"]].dropna()
y = y[X.index]
tree = bg.GaussianNB().fit(X, y).posterior_groups(X, y, replicate=["indicators"])
species = [f"is_{name}" for name in ("Adelie", "Chinstrap", "Gentoo")]

az.plot_ppc_pava(tree, var_names=species, figure_kwargs={"figsize": (7.2, 2.8)})

# %%
# The steps stay in their bands, and the PIT stays near 0, so the probabilities are calibrated.

az.plot_loo_pit(tree, var_names=species, figure_kwargs={"figsize": (7.2, 2.6)})
