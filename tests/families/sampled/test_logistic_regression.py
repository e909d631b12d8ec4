"""Logistic regression: scikit-learn's estimate is the mode, and what it refuses."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
import pytest
from sklearn.linear_model import LogisticRegression as Penalised

from bayesgen.families.sampled.logistic_regression import LogisticRegression
from bayesgen.posterior.model import ClassModel
from tests.graphs import PYTHON


def rows(n: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 3.0]
    W = rng.normal(size=(n_classes, 3))
    logits = (X - X.mean(0)) / X.std(0) @ W.T
    y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    return X, y


def products(z: np.ndarray) -> np.ndarray:
    j, k = np.triu_indices(z.shape[1])
    return z[:, j] * z[:, k]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("features", ["linear", "quadratic"])
def test_scikit_learns_estimate_is_the_mode(n_classes, features):
    """With the same prior: the gradient of PyMC's log posterior vanishes there."""
    X, y = rows(80, n_classes)
    family: Any = LogisticRegression(features=features, coef_scale=1.5, intercept_scale=4.0)
    family = family.with_defaults(X, y, n_classes)
    z = (X - X.mean(0)) / X.std(0)
    sd = np.concatenate([[4.0], np.full(3, 1.5)])
    design = np.column_stack([np.ones(len(X)), z])
    if features == "quadratic":
        design, sd = np.column_stack([design, products(z)]), np.append(sd, np.full(6, 0.75))
    # a column times s, under the penalty of 1, has the prior of standard deviation s
    C = 1.0 if n_classes == 2 else 0.5  # two classes: one vector, the difference
    oracle = Penalised(C=C, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(design * sd, y)
    w = oracle.coef_ * sd
    if n_classes == 2:
        w = np.concatenate([-w / 2, w / 2])
    coords = {"class": range(n_classes), "feature": range(3), "feature_bis": range(3)}
    model = ClassModel(np.ones(n_classes), family).to_pymc(coords, X=X, y=y)
    np.testing.assert_allclose(w.sum(axis=0), 0.0, atol=1e-6)
    point = {"intercept_raw": w[:, 0], "coef_raw": w[:, 1:4].T, "quadratic_raw": w[:, 4:].T}
    free = {}
    for v in model.free_RVs:
        value = model.rvs_to_transforms[v].forward(pt.as_tensor(point[v.name]))
        free[model.rvs_to_values[v].name] = value.eval()
    slope = model.compile_dlogp(mode=PYTHON)(free)
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)


@pytest.mark.parametrize("features", ["linear", "quadratic"])
def test_terms_of_columns_add_up_to_the_log_odds(features):
    X, y = rows(6, 3)
    family: Any = LogisticRegression(features=features).with_defaults(X, y, 3)
    rng = np.random.default_rng(1)
    theta = {"intercept": rng.normal(size=(1, 1, 3)), "coef": rng.normal(size=(1, 1, 3, 3))}
    if features == "quadratic":
        half = rng.normal(size=(1, 1, 3, 3, 3))
        theta["quadratic"] = half + half.swapaxes(-1, -2)
    log_p = family.log_likelihood(X, theta)
    terms, intercept = family.log_odds_terms(X, 2, 0, theta)
    np.testing.assert_allclose(terms.sum(-1) + intercept, log_p[..., 2] - log_p[..., 0], rtol=1e-9)


def test_nothing_depends_on_units():
    X, y = rows(50, 3)
    w = np.linspace(0.5, 2, 50)
    a = LogisticRegression().with_defaults(X, y, 3, w)
    b = LogisticRegression().with_defaults(X * [2.0, -0.5, 100.0] + 7, y, 3, w)
    np.testing.assert_allclose(a.location, np.average(X, axis=0, weights=w))
    np.testing.assert_allclose(b.location, a.location * [2.0, -0.5, 100.0] + 7)
    np.testing.assert_allclose(b.scale, a.scale * [2.0, 0.5, 100.0])
    constant = LogisticRegression().with_defaults(np.full((4, 1), 0.1), np.zeros(4, int), 1)
    np.testing.assert_array_equal(constant.scale, 1.0)
