"""TreeAugmentedGaussianNB: limits, edges, intervals, PyMC of a given tree."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import dirichlet

import bayesgen as bg
from tests.graphs import draw, log_densities


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 4)) + y[:, None] * [0.5, 0.0, 1.0, 0.0]
    X[:, 1] += np.where(y == 1, 1.5, -1.5) * X[:, 0]
    return X * [1.0, 10.0, 0.1, 1.0] + [0.0, 50.0, 0.0, -3.0], y


def test_many_roots_are_naive_bayes_and_two_columns_without_a_root_are_quadratic():
    X, y = rows()
    naive, forest = bg.GaussianNB().fit(X, y), bg.TreeAugmentedGaussianNB(root_weight=1e16)
    np.testing.assert_allclose(
        forest.fit(X, y).predict_proba(X), naive.predict_proba(X), rtol=1e-8, atol=1e-12
    )
    pair = {"mu0": [0.0, 50.0], "kappa0": 0.4}
    psi = np.array([[2.0, 5.0], [5.0, 150.0]])
    whole = bg.QuadraticDiscriminant(**pair, nu0=5.0, psi0=psi).fit(X[:, :2], y)
    tree = bg.TreeAugmentedGaussianNB(**pair, nu0=4.0, psi0=psi, structure="tree").fit(X[:, :2], y)
    np.testing.assert_allclose(
        tree.predict_joint_log_proba(X[:, :2]), whole.predict_joint_log_proba(X[:, :2]), rtol=1e-9
    )
    tree.set_params(structure="fixed", edges=1 - np.eye(2)).fit(X[:, :2], y)
    assert tree.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)


def test_edges_have_the_names_of_columns_and_units_do_not_matter():
    X, y = rows(60)
    names = list("abcd")
    table = pd.DataFrame(X, columns=names)
    clf = bg.TreeAugmentedGaussianNB().fit(table, y)
    found = clf.edge_probabilities()
    edge = found["probability"].sel(feature="a", feature_bis="b")
    assert (edge > 0.99).all()
    assert found["probability"].sel({"class": 0, "feature": "c", "feature_bis": "d"}) < 0.5
    moved = bg.TreeAugmentedGaussianNB().fit(table * 7.0 - 3.0, y)
    np.testing.assert_allclose(
        moved.edge_probabilities()["probability"], found["probability"], atol=1e-9
    )


def test_a_constant_column_is_left_out():
    X, y = rows()
    wide = np.column_stack([X, np.full(len(y), 3.0)])
    new = wide.copy()
    new[:, 4] = 9.0
    for structure in ("average", "map"):
        options = {"root_weight": 2.0, "structure": structure}
        clf = bg.TreeAugmentedGaussianNB(**options).fit(wide, y)
        four = bg.TreeAugmentedGaussianNB(**options).fit(X, y)
        np.testing.assert_allclose(clf.predict_proba(new), four.predict_proba(X), rtol=1e-8)
        assert clf.edge_probabilities()["probability"][..., 4].max() == 0


def test_intervals_and_simulation():
    X, y = rows()
    clf = bg.TreeAugmentedGaussianNB().fit(X, y)
    interval = clf.predict_interval(X[:4], prob=0.9)
    low, high = (interval.sel(bound=b) for b in ("lower", "upper"))
    assert (low.to_array() <= high.to_array()).all()
    new, labels = clf.simulate(400, random_state=1)
    own = new[labels == 1]
    assert np.corrcoef(own[:, 0], own[:, 1])[0, 1] > 0.4
    where = "column 'x0' in row 1.*no closed form.*use GaussianNB"
    with pytest.raises(ValueError, match=where):
        clf.predict_proba([[1.0] * 4, [np.nan, 1.0, 1.0, 1.0]])
    with pytest.raises(ValueError, match=where):
        clf.fit([[1.0] * 4, [np.nan, 1.0, 1.0, 1.0]], [0, 1])


@pytest.mark.parametrize("observed", [True, False], ids=["rows", "prior"])
def test_pymc_model_of_a_tree_has_the_densities_of_the_family(observed):
    X, y = rows(12)
    clf = bg.TreeAugmentedGaussianNB().fit(X, y)
    parents = [[-1, 0, 1, -1], [1, -1, 1, 2]]
    model = clf.to_pymc(structure=parents, observed=observed)
    point = draw(model, {name: model[name] for name in ("mu_0", "mu_1")}, 1)[0]
    parents = np.array(parents)
    slope = np.zeros((2, 4))
    for c in (0, 1):
        slope[c, parents[c] >= 0] = point[f"slope_{c}"]
    theta = {
        "parents": parents.astype(float),
        "mu": np.stack([point["mu_0"], point["mu_1"]]),
        "slope": slope,
        "sigma2": np.stack([point["sigma2_0"], point["sigma2_1"]]),
    }
    family = clf.prior_.family
    # log p(theta | forest): that of the average, less that of the forests
    expected = family.log_density(theta) - sum(
        family.log_probability(c, parents[c][None])[0] for c in (0, 1)
    )
    # of the steps, in place of the means
    jacobian = sum(np.log(theta["sigma2"][c] / family.kappa[c]).sum() / 2 for c in (0, 1))
    prior, data = log_densities(model)([point])[0]
    weights = dirichlet.logpdf(point["pi"], np.ones(2))
    assert prior - weights == pytest.approx(expected + jacobian, rel=1e-9)  # of steps of the means
    if observed:
        own = family.log_likelihood(X, theta)[np.arange(12), y].sum()
        labels = np.log(point["pi"][y]).sum()
        assert data == pytest.approx(own + labels, rel=1e-9)


def test_an_average_says_how_its_posterior_is_drawn():
    X = np.random.default_rng(0).normal(size=(20, 2))
    clf = bg.TreeAugmentedGaussianNB().fit(X, np.arange(20) % 2)
    with pytest.raises(
        NotImplementedError, match=r"average over forests.*draw_posterior\(\) has exact"
    ):
        clf.sample_posterior(progressbar=False)
