"""log_likelihood_ratio against Student t densities, draws, and refits without each row."""

import numpy as np
import pytest
from scipy import stats

import bayesgen as bg


def three_groups(n=45, seed=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + y[:, None], np.array(["a", "b", "c"])[y]


def test_log_lr_is_that_of_the_predictive_densities():
    X, y = three_groups()
    clf = bg.GaussianNB().fit(X, y)
    found = clf.log_likelihood_ratio(X, "a", "c")
    own = clf.model_.family
    scale = np.sqrt(own.sigma2 * (1 + 1 / own.kappa))
    log_x = stats.t.logpdf(X[:, None], own.nu, own.mu + own.shift, scale).sum(axis=-1)
    np.testing.assert_allclose(found["log_lr"], log_x[:, 0] - log_x[:, 2], rtol=1e-9)


def test_interval_is_that_of_draws():
    X, y = three_groups()
    clf = bg.GaussianNB().fit(X, y)
    found = clf.log_likelihood_ratio(X[:6], "a", "c", prob=0.8)
    theta = clf.draw_posterior(draws=20_000, chains=1)["posterior"]
    mu, sd = theta["mu"].values[0], np.sqrt(theta["sigma2"].values[0])
    for i in range(6):
        log_x = stats.norm.logpdf(X[i], mu, sd).sum(axis=-1)
        below = (log_x[:, 0] - log_x[:, 2])[:, None] < found["interval"].values[i]
        se = np.sqrt(0.1 * 0.9 / len(below))
        np.testing.assert_allclose(below.mean(axis=0), [0.1, 0.9], atol=5 * se)


@pytest.mark.parametrize("weighted", [False, True])
def test_cllr_is_that_of_refits_without_each_row(weighted):
    X, y = three_groups()
    weight = np.where(np.arange(len(y)) % 2, 2.0, 1.0) if weighted else np.ones(len(y))
    clf = bg.GaussianNB().fit(X, y, weight)
    found = clf.log_likelihood_ratio(X[:1], "a", "c")
    prior, cost, share = clf.prior_, {"a": 0.0, "c": 0.0}, {"a": 0.0, "c": 0.0}
    for i in np.flatnonzero(y != "b"):
        rest = np.arange(len(y)) != i
        one = bg.GenerativeClassifier(prior.family, class_alpha=prior.alpha)
        one.fit(X[rest], y[rest], weight[rest])
        log_p = one.predict_log_proba(X[[i]], class_prior=[0.5, 0.0, 0.5])[0]
        sign = 1 if y[i] == "a" else -1
        cost[y[i]] += weight[i] * np.log2(1 + np.exp(-sign * (log_p[0] - log_p[2])))
        share[y[i]] += weight[i]
    want = np.mean([cost[k] / share[k] for k in "ac"])
    assert found["cllr"].item() == pytest.approx(want, rel=1e-9)
    assert 0 <= found["cllr_min"].item() <= found["cllr"].item()


def test_cllr_min_of_perfect_ranks_is_0_and_pools_have_ratios():
    X, y = three_groups()
    X = X + 30 * (y == "c")[:, None]
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()]).fit(X, y)
    found = pool.log_likelihood_ratio(X, "a", "c", training=(X, y))
    assert found["cllr_min"].item() == 0
    log_odds = np.diff(pool.predict_log_proba(X)[:, [2, 0]], axis=1)[:, 0]
    np.testing.assert_allclose(found["log_lr"], log_odds, atol=1e-9)  # equal classes


def test_one_class_is_no_pair():
    X, y = three_groups()
    clf = bg.GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="the same class, 'a'"):
        clf.log_likelihood_ratio(X, "a", "a")
    with pytest.raises(ValueError, match="'d' is not a class"):
        clf.log_likelihood_ratio(X, "a", "d")
