"""
az.plot_forest: how much do more rows tell?
===========================================

``plot_forest`` takes the ``posterior_`` of several fits. The picture shows the mean bill length of
three species after five birds of each and after all birds.
"""

import arviz as az

import bayesgen as bg

az.style.use("arviz-variat")
X, y = bg.datasets.load_penguins()
X = X[["bill_length_mm", "flipper_length_mm"]].dropna()
y = y[X.index]
few = y.groupby(y).head(5).index
trees = {
    "5 birds of each species": bg.GaussianNB().fit(X.loc[few], y[few]).posterior_,
    "all 342 birds": bg.GaussianNB().fit(X, y).posterior_,
}

plot = az.plot_forest(
    trees,
    var_names=["mu"],
    coords={"feature": "bill_length_mm"},
    combined=True,
    labels=["class"],
    figure_kwargs={"figsize": (6.6, 2.9)},
)
plot.add_legend("model", title="", loc="outside upper right", ncols=2)
