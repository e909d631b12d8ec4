"""
az.plot_rank: have the chains mixed, and do they agree?
=======================================================

``validate`` samples the same model by NUTS and compares. Its tree is that of any sampler: ranks of
the chains are uniform if they have mixed.
"""

import arviz as az

import bayesgen as bg

az.style.use("arviz-variat")
X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm", "flipper_length_mm"]].dropna()
y = y[X.index]
few = y.groupby(y).head(5).index
result = bg.validate(bg.GaussianNB(), X.loc[few], y[few], progressbar=False)

bills = {"feature": "bill_length_mm"}
az.plot_rank(result.tree, var_names=["mu"], coords=bills, figure_kwargs={"figsize": (7.2, 2.6)})

# %%
# Draws in their order, and their densities chain by chain.

az.plot_trace_dist(
    result.tree, var_names=["mu"], coords=bills, figure_kwargs={"figsize": (7.2, 4.6)}
)

# %%
# The energy of the chains, and the share of it that one step renews (BFMI, above 0.3).

az.plot_energy(result.tree, figure_kwargs={"figsize": (8, 2.8)})

# %%
# Every quantity of the closed form against the draws, the causes above their consequences.

bg.plots.plot_validation(result)
