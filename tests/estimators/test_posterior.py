"""`posterior_`: a tree that ArviZ takes, with the user's names."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

import bayesgen as bg
from tests.estimators.cases import CASES, KINDS, LABELS, fitted, sample


def test_draws_are_reproducible_and_as_many_as_asked():
    clf, _, _ = fitted(CASES["GaussianNB"])
    a, b, c = (clf.draw_posterior(7, 3, seed)["posterior"].to_dataset() for seed in (1, 1, 2))
    assert (a.sizes["chain"], a.sizes["draw"]) == (3, 7)
    xr.testing.assert_identical(a, b)
    assert not a.equals(c)
    assert clf.draw_posterior(random_state=np.random.default_rng(0)).attrs.get("seed") is None
    assert clf.draw_posterior(random_state=5).attrs["seed"] == 5


frames = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


@frames
@pytest.mark.parametrize(
    "make", [bg.GaussianNB, bg.LinearDiscriminant, bg.GenerativeClassifier, bg.MixedNB]
)
def test_names_of_features_and_classes_reach_the_coordinates(frame, make):
    names = ["bill", "flipper", "mass"]
    dim = "gaussian_feature" if make is bg.MixedNB else "feature"
    X, _, y = sample(CASES["LinearDiscriminant"])
    named = frame(dict(zip(names, X.T, strict=True)))
    clf, plain = make().fit(named, y), make().fit(X, y)
    coords = clf.posterior_["posterior"].coords
    assert coords[dim].values.tolist() == names == clf.feature_names_in_.tolist()
    assert coords["class"].values.tolist() == LABELS.tolist()
    np.testing.assert_array_equal(clf.predict_proba(named), plain.predict_proba(X))
    assert plain.posterior_["posterior"].coords[dim].values.tolist() == ["x0", "x1", "x2"]


@frames
def test_names_of_columns_of_several_kinds_reach_the_coordinates(frame):
    X, _, y = sample(CASES["MixedNB"])
    clf = bg.MixedNB(KINDS).fit(X if frame is pd.DataFrame else pl.from_pandas(X), y)
    coords = clf.posterior_["posterior"].coords
    for kind in ("gaussian", "poisson", "bernoulli"):
        assert coords[f"{kind}_feature"].values.tolist() == KINDS[kind]
    features = coords["categorical_feature_category"].attrs["feature"]
    assert list(dict.fromkeys(features)) == KINDS["categorical"]
    one = bg.CategoricalNB().fit(frame({"colour": ["red", "blue"]}), ["a", "b"])
    coords = one.posterior_["posterior"].coords
    assert coords["feature"].values.tolist() == ["colour"]
    assert coords["category"].values.tolist() == ["blue", "red"]


@pytest.mark.parametrize("estimator", [bg.CategoricalNB, bg.MixedNB])
@pytest.mark.parametrize("likelihood", ["statistics", "rows"])
def test_pymc_names_a_category_that_it_has_no_parameter_for(estimator, likelihood):
    X = pd.DataFrame({"size": [1.5, 2.0, 2.5, 1.0], "island": list("pqpq")})
    X = X if estimator is bg.MixedNB else X[["island"]]
    clf, y = estimator(unseen="prior").fit(X, [0, 0, 1, 1]), [0, 0, 1, 1]
    new = X.assign(island=["p", "a; b", "q", None])
    said = r"column 'island' holds 'a; b' in row 1, .* \('p', 'q'\); the PyMC model has no param"
    with pytest.raises(ValueError, match=said):
        clf.to_pymc(new, y, likelihood=likelihood)
    assert clf.to_pymc(new.iloc[[0, 2, 3]], [0, 1, 1], likelihood=likelihood).free_RVs
