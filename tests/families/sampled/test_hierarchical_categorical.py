"""Categories with pooled log-odds: densities, defaults, and what the fit makes of few rows."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import softmax

import bayesgen as bg
from bayesgen.families.sampled.hierarchical_categorical import HierarchicalCategorical
from bayesgen.posterior.model import ClassModel
from tests.families.sampled.recovery import inside, likelier, sound
from tests.families.sampled.test_hierarchical_bernoulli import stretched
from tests.graphs import PYTHON, named_at

RNG = np.random.default_rng(5)
K = np.array([2, 4, 3])
REAL = np.arange(4) < K[:, None]
THETA = softmax(np.where(REAL, RNG.normal(size=(2, 3, 3, 4)), -np.inf), axis=-1)
Y = np.array([0, 1, 2, 2, 1, 0, 0])
CODES = np.array([[0, 3, 2], [1, 0, 0], [0, 1, 1], [1, 2, 2], [1, 3, 0], [0, 0, 1], [1, 1, 2.0]])
GAPS = CODES.copy()
GAPS[0, 1] = GAPS[3] = np.nan


def resolved(X: Any = GAPS, y: Any = Y, **options: Any) -> Any:
    return HierarchicalCategorical(n_categories=K, **options).with_defaults(X, y, 3)


@pytest.mark.parametrize("X", [CODES, GAPS], ids=["complete", "with gaps"])
def test_densities_are_sums_of_log_probabilities(X):
    expected = np.zeros((2, len(X), 3))
    for s, i, c, j in np.ndindex(2, len(X), 3, 3):
        if np.isfinite(X[i, j]):
            expected[s, i, c] += np.log(THETA[s, c, j, int(X[i, j])])
    found = resolved().log_likelihood(X, {"theta": THETA})
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    by_csr = resolved().log_likelihood(sparse.csr_matrix(X), {"theta": THETA})
    np.testing.assert_allclose(by_csr, expected, rtol=1e-12, atol=1e-12)


def test_a_category_never_seen_has_the_share_of_a_uniform_prior():
    family = resolved()
    n = np.array([[np.isfinite(GAPS[c == Y, j]).sum() for j in range(3)] for c in range(3)])
    np.testing.assert_allclose(family.new, 1 / (n + K + 1))
    found = family.log_likelihood(np.array([[-1, np.nan, 3]]), {"theta": THETA[0]})
    np.testing.assert_allclose(found[0], np.log(family.new[:, [0, 2]]).sum(axis=1))


def test_the_share_of_the_classes_in_what_is_known_is_a_share():
    """Of categories that no row has shown, too."""
    for X in (GAPS, np.zeros_like(GAPS)):
        share = resolved(X).share
        assert (share >= 0).all()
        assert (share.sum(axis=0) < 1).all()
        assert (share[:, REAL] > 0).all()


def test_defaults_go_with_the_categories():
    """Renamed categories; CSR; weights as repeated rows."""
    one = resolved(CODES)
    other = HierarchicalCategorical(n_categories=K).with_defaults(K - 1 - CODES, Y, 3)
    np.testing.assert_allclose(other.scale, one.scale)
    np.testing.assert_allclose(other.new, one.new)
    for j, k in enumerate(K):
        np.testing.assert_allclose(other.share[:, j, :k], one.share[:, j, :k][:, ::-1])
    w = np.array([1, 2, 1, 3, 1, 1, 2])
    weighted = HierarchicalCategorical(n_categories=K).with_defaults(CODES, Y, 3, w)
    repeated = resolved(np.repeat(CODES, w, axis=0), np.repeat(Y, w))
    for other in (repeated, resolved(sparse.csr_matrix(np.repeat(CODES, w, axis=0)), Y.repeat(w))):
        for name, (_, value) in other.arrays().items():
            np.testing.assert_allclose(getattr(weighted, name), value)


def test_codes_beyond_the_declared_ones_are_refused():
    with pytest.raises(ValueError, match="feature 0 has 2 declared categories, but codes beyond"):
        resolved(CODES + np.array([2, 0, 0]))
    with pytest.raises(ValueError, match="n_categories has 3 entries for 2 features"):
        resolved(CODES[:, :2])


def test_the_prior_and_the_likelihood_are_those_of_the_formulas():
    family = resolved()
    coords = {"class": list("abc"), "feature": list("uvw")}
    model = ClassModel(np.ones(3), family).to_pymc(coords, X=GAPS, y=Y)
    rng = np.random.default_rng(0)
    point = {k: rng.normal(size=np.shape(v)) for k, v in model.initial_point().items()}
    names = ["theta", "base", "tau", "inequality"]
    listed, listed_base, tau, omega = named_at(model, names)(point)
    assert model.named_vars_to_dims["theta"] == ("class", "feature_category")
    assert model.coords["feature_category"][:3] == ("0, 0", "0, 1", "1, 0")  # no names are known
    theta, base = np.zeros((3, *REAL.shape)), np.zeros(REAL.shape)
    theta[:, REAL], base[REAL] = listed, listed_base
    place = np.split(np.arange(6), np.cumsum(K - 1)[:-1])  # of the contrasts of each column
    bases, turns = model["basis"].get_value(), model["axes"].get_value()
    total = family.share.sum(axis=0)
    known = family.share * (total - family.share) / np.maximum(total * (1 - total), 1e-9)
    log_prior = log_raw = 0.0
    for j, (k, at) in enumerate(zip(K, place, strict=True)):
        basis = bases[j, :k, : k - 1]
        np.testing.assert_allclose(basis @ basis.T, np.eye(k) - 1 / k, atol=1e-12)
        np.testing.assert_allclose(turns[..., j] @ turns[..., j].T, np.eye(3), atol=1e-12)
        raw = point["deviation_raw"][:, at]
        rotated, log_p = stretched(raw, tau, omega, known[:, j, :k].mean())
        log_raw += log_p
        delta = turns[..., j] @ rotated @ basis.T
        mu = point["level"][at] - (family.share[:, j, :k] * delta).sum(axis=0) @ basis
        log_prior += stats.norm.logpdf(mu, 0, family.scale[j]).sum()
        np.testing.assert_allclose(
            theta[:, j, :k], softmax(mu @ basis.T + delta, axis=1), rtol=1e-10
        )
        np.testing.assert_allclose(base[j, :k], softmax(mu @ basis.T), rtol=1e-10)
    found = model.compile_logp(vars=[model["tau"]], jacobian=False, mode=PYTHON)(point)
    assert found == pytest.approx(stats.lognorm.logpdf(tau, 1, 0, 0.5))
    found = model.compile_logp(vars=[model["deviation_raw"]], jacobian=False, mode=PYTHON)(point)
    assert found == pytest.approx(log_raw)
    log_p = model.compile_logp(vars=[model["x"]], jacobian=False, mode=PYTHON)(point)
    expected = family.log_likelihood(GAPS, {"theta": theta})[np.arange(7), Y].sum()
    assert log_p == pytest.approx(expected, rel=1e-12)
    level = model.compile_logp(vars=[model["level"]], jacobian=False, mode=PYTHON)(point)
    assert level == pytest.approx(log_prior, rel=1e-10)


def test_a_column_with_one_category_is_certain():
    import pymc as pm

    X = np.array([[0, 2], [0, 1], [0, np.nan]])
    family = HierarchicalCategorical(n_categories=np.array([1, 3]))
    family = family.with_defaults(X, np.array([0, 1, 1]), 2)
    coords = {"class": [0, 1], "feature": ["u", "v"]}
    model = ClassModel(np.ones(2), family).to_pymc(coords, X=X, y=np.array([0, 1, 1]))
    theta = pm.draw(model["theta"], 3, mode=PYTHON)
    assert model.coords["feature_category"] == ("0, 0", "1, 0", "1, 1", "1, 2")
    np.testing.assert_array_equal(theta[:, :, 0], 1)
    np.testing.assert_allclose(theta[:, :, 1:].sum(axis=-1), 1)
    assert np.isfinite(model.compile_logp(mode=PYTHON)(model.initial_point()))


# ----------------------------------------------------------------------------------- by NUTS


@pytest.fixture(scope="module")
def rare() -> Any:
    """15 rows a class of 8 columns with 3 to 10 categories, most of them rare and not shown."""
    rng = np.random.default_rng(8)
    k = np.array([3, 10, 4, 8, 10, 5, 10, 6])
    real = np.arange(10) < k[:, None]
    mu = np.where(real, rng.normal(0, 1.5, (8, 10)), -np.inf)
    theta = softmax(mu + rng.normal(0, 0.5, (3, 8, 10)), axis=-1)
    y = rng.integers(3, size=1500)
    y[:45] = np.arange(45) % 3
    X = np.stack([[rng.choice(10, p=theta[c, j]) for j in range(8)] for c in y]).astype(float)
    gaps = X[:50].copy()
    gaps[rng.random((50, 8)) < 0.05] = np.nan
    labels = np.ma.masked_array(y[:50], np.arange(50) >= 45)
    names = [[int(c) for c in range(n)] for n in k]
    clf = bg.HierarchicalCategoricalNB(categories=names, random_state=1)
    return clf.fit(gaps, labels, progressbar=False), X, y, theta, real, names


@pytest.mark.slow
def test_parameters_are_recovered(rare):
    clf, _, _, theta, real, _ = rare
    posterior = sound(clf)
    assert inside(posterior["tau"], 0.5, 0.98)
    covered = inside(posterior["theta"], theta[:, real], 0.9).mean()  # the cells that exist
    assert abs(covered - 0.9) < 4 * np.sqrt(0.09 / real.sum())  # classes go together


# 1 row of 1450: the warning is right, and the row does not matter here
@pytest.mark.filterwarnings("ignore::bayesgen.posterior.drawn.MonteCarloWarning")
@pytest.mark.slow
def test_rare_categories_are_better_used_than_by_dirichlet_priors(rare):
    clf, X, y, _, _, names = rare
    sibling = bg.CategoricalNB(categories=names).fit(X[:45], y[:45])
    assert likelier(clf, sibling, X[50:], y[50:])
    assert np.isfinite(clf.predict_log_proba([[99.0] * 8])).all()
