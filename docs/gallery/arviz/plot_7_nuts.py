"""
az.plot_rank: have the chains mixed, and do they agree?
=======================================================

``validate`` samples the same model by NUTS and compares both. All plots of ArviZ work on its tree.
The ranks of the chains are uniform if the chains have mixed.
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
# The draws in order, and the density of each chain.

az.plot_trace_dist(
    result.tree, var_names=["mu"], coords=bills, figure_kwargs={"figsize": (7.2, 4.6)}
)

# %%
# The energy of the chains, and the share that one step renews (BFMI). It should be above 0.3.

az.plot_energy(result.tree, figure_kwargs={"figsize": (8, 2.8)})

# %%
# Every quantity of the closed form against the draws. Each is computed from those above it.

bg.plots.plot_validation(result)
