"""``class_probability`` of new rows inside a PyMC model: draw by draw what the classifier says."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import special
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.families.names import CHAIN, DRAW
from tests.graphs import draw, pm
from tests.laws.test_classifiers import CASES, REAL, Y
from tests.laws.test_with_posterior import robust_draws
from tests.selection import rest_is_slow

IN_GRAPH = [name for name in CASES if name != "TreeAugmentedNB"]


def drawn(model, names, n=5):
    """Dataset of n prior draws of some variables, and of ``class_probability``."""
    names = [*names, "class_probability"]
    points = draw(model, {name: model[name] for name in names}, n)
    return xr.Dataset(
        {
            k: ((CHAIN, DRAW, *model.named_vars_to_dims[k]), np.stack([d[k] for d in points])[None])
            for k in names
        },
        {k: list(v) for k, v in model.coords.items() if v is not None},
    )


@pytest.mark.filterwarnings("ignore::bayesgen.MonteCarloWarning")
@pytest.mark.parametrize("name", rest_is_slow(IN_GRAPH, ("GaussianNB", "MixedNB")))
def test_it_is_that_of_predict_posterior(name):
    make, X = CASES[name]
    clf, few = make().fit(X, Y), take(X, np.arange(7))
    model = clf.to_pymc(observed=False, X_new=take(X, np.arange(8, 11)))
    new = clf.to_pymc(observed=False, X_new=few)
    # other and more rows need no other model
    rows = {v.name: v.get_value() for v in new.data_vars if v.name.startswith("new_")}
    pm.set_data(rows, model=model, coords={"new_obs_id": new.coords["new_obs_id"]})
    of_graph = drawn(model, clf.prior_.params)
    of_draws = clf.with_posterior(of_graph.drop_vars("class_probability"))
    p = of_draws.predict_posterior(few)
    p = p["predictions"]["class_probability"].values
    np.testing.assert_allclose(of_graph["class_probability"].values, p, rtol=1e-7, atol=1e-12)


def test_every_likelihood_takes_new_rows():
    clf, few = bg.GaussianNB().fit(REAL, Y), REAL[:4]
    for model in (
        clf.to_pymc(X_new=few),
        clf.to_pymc(REAL, Y, X_new=few),
        clf.to_pymc(REAL, Y, likelihood="rows", X_new=few),
    ):
        assert model.named_vars_to_dims["class_probability"] == ("new_obs_id", "class")
    np.testing.assert_array_equal(model["new_rows"].get_value(), few)  # as the user has them
    pm.set_data({"new_rows": REAL[:9]}, model=model)  # other rows need no other model
    frame = pd.DataFrame(REAL[:, :2], columns=["long", "wide"])
    robust = bg.StudentTNB().with_posterior(robust_draws(4), frame, Y)
    for likelihood in ("statistics", "rows"):
        model = robust.to_pymc(frame, Y, likelihood=likelihood, X_new=frame[:4])
        assert model["class_probability"].type.ndim == 2


@pytest.mark.slow
@pytest.mark.parametrize("features", ["linear", "quadratic"])
def test_new_rows_of_a_regression_are_as_the_user_has_them(features):
    clf = bg.BayesianLogisticRegression(features=features)
    model = clf.to_pymc(REAL, Y, X_new=REAL[:3])
    pm.set_data({"new_rows": REAL[:9]}, model=model, coords={"new_obs_id": range(9)})
    names = {"intercept", "coef", "quadratic"} & model.named_vars.keys()
    of_graph = drawn(model, names)
    of_draws = clf.with_posterior(of_graph.drop_vars("class_probability"), REAL, Y)
    p = of_draws.predict_posterior(REAL[:9])["predictions"]["class_probability"].values
    np.testing.assert_allclose(of_graph["class_probability"].values, p, rtol=1e-7, atol=1e-12)


def test_tables_of_given_forests_have_none():
    make, X = CASES["TreeAugmentedNB"]
    with pytest.raises(NotImplementedError, match="predict_posterior has class_probability"):
        make().fit(X, Y).to_pymc(X_new=take(X, np.arange(3)))


def test_a_pool_has_it():
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()], random_state=0)
    pool.fit(REAL, Y)
    model = pool.to_pymc(observed=False, X_new=REAL[:6])
    joints = [m.predict_joint_log_proba(REAL[:6]) for m in pool.members_.values()]
    for d in draw(model, {"class_probability": model["class_probability"]}, 4):
        logit = np.tensordot(d["exponent"], joints, axes=1) + d["intercept"]
        p = special.softmax(logit, axis=1)
        np.testing.assert_allclose(d["class_probability"], p, rtol=1e-7, atol=1e-12)


def test_a_prior_of_ones_own_is_put_in_the_place_of_a_hyper_parameter():
    clf = bg.GaussianNB().fit(REAL, Y)
    with clf.to_pymc(observed=False, X_new=REAL[:3]) as model:
        k = pm.LogNormal("k", 0.0, 1.0)
        replaced = pm.do(model, {"prior_kappa": k * np.ones((3, 3))})
    assert {v.name for v in replaced.free_RVs} == {"k", "pi", "sigma2", "mu"}
    draws = draw(replaced, {"class_probability": replaced["class_probability"]}, 60)
    family = clf.prior_.family
    centre = family.mu + family.shift
    z = np.array([(d["mu"] - centre) * np.sqrt(d["k"] / d["sigma2"]) for d in draws])
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / z.size)
