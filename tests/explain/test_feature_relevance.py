"""Bayes factors and averaged prediction against all structures, their evidences made by SciPy."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import betaln, gammaln, logsumexp

import bayesgen as bg
from bayesgen.families import registry
from bayesgen.families.approximate_family import ApproximateFamily
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.shared.separate_columns import OneByOne, separate_columns
from tests.selection import rest_is_slow

# ------------------------------------------------- log evidence of one column under one parameter


def bits(x):
    return betaln(1 + x.sum(), 2 + (1 - x).sum()) - betaln(1, 2)


def categories(x):
    n = np.bincount(x.astype(int), minlength=3)
    return gammaln(0.5 + n).sum() - gammaln(1.5 + n.sum()) - 3 * gammaln(0.5) + gammaln(1.5)


def counts(x):
    """Gamma(2, 0.5) rate: product of one-step negative binomials."""
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    rate = 0.5 + np.arange(len(x))
    return stats.nbinom.logpmf(x, 2 + before, rate / (rate + 1)).sum()


def reals(x):
    """Mean 0 (weight .5 rows), variance scale 2 (weight 3 rows): product of one-step t."""
    m, k, nu, ss, total = 0.0, 0.5, 3.0, 6.0, 0.0
    for value in x:
        total += stats.t.logpdf(value, nu, m, np.sqrt(ss / nu * (1 + 1 / k)))
        ss += k / (k + 1) * (value - m) ** 2
        m, k, nu = (k * m + value) / (k + 1), k + 1, nu + 1
    return total


def case(kind, n_classes=2, n_features=3, n=14, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    shift = y[:, None] * (np.arange(n_features) == 0)
    return {
        "bits": (
            bg.BernoulliNB(1.0, 2.0),
            bits,
            (rng.random((n, n_features)) < 0.3 + 0.5 * (shift > 0)).astype(float),
        ),
        "categories": (
            bg.CategoricalNB(0.5, categories=3),
            categories,
            ((rng.integers(0, 2, (n, n_features)) + shift) % 3).astype(float),
        ),
        "counts": (
            bg.PoissonNB(2.0, 0.5),
            counts,
            rng.poisson(1 + 3 * shift).astype(float),
        ),
        "reals": (
            bg.GaussianNB(mu0=0.0, kappa0=0.5, nu0=3.0, sigma2_0=2.0),
            reals,
            rng.normal(2.0 * shift),
        ),
    }[kind] + (y,)  # fmt: skip


def by_structures(evidence, X, y, x, prior):
    """p(c | x, D): the average over 2^D structures, with the new row appended to each class."""
    n_classes, n_features = y.max() + 1, X.shape[1]

    def log_joint(X, y, structure):
        out = sum(gammaln(1 + np.sum(y == c)) for c in range(n_classes)) - gammaln(
            n_classes + len(y)
        )
        for j, depends in enumerate(structure):
            log_p = np.log(prior[j] if depends else 1 - prior[j])
            groups = [X[y == c, j] for c in range(n_classes)] if depends else [X[:, j]]
            out += log_p + sum(evidence(g) for g in groups)
        return out

    structures = list(product([False, True], repeat=n_features))
    each = [
        logsumexp([log_joint(np.vstack([X, x]), np.append(y, c), s) for s in structures])
        for c in range(n_classes)
    ]
    posterior = np.array([log_joint(X, y, s) for s in structures])
    weight = np.exp(posterior - logsumexp(posterior))
    return np.exp(each - logsumexp(each)), weight @ np.array(structures, dtype=float)


KINDS = [(kind, c) for kind in ("bits", "categories", "counts", "reals") for c in (2, 3)]


@pytest.mark.parametrize("kind_and_classes", rest_is_slow(KINDS, set(KINDS) - {("reals", 3)}))
def test_averages_over_all_structures(kind_and_classes):
    kind, n_classes = kind_and_classes
    clf, evidence, X, y = case(kind, n_classes)
    clf.fit(X, y)
    odds = np.array([1.0, 0.25, 3.0])
    for prior_odds in (1.0, odds):
        table = bg.feature_relevance(clf, prior_odds)
        prior = np.broadcast_to(prior_odds, 3) / (1 + np.broadcast_to(prior_odds, 3))
        for x in X[:3]:
            expected, probability = by_structures(evidence, X, y, x, prior)
            np.testing.assert_allclose(table["probability"], probability, rtol=1e-9)
            got = clf.predict_proba([x], relevance=table)[0]
            np.testing.assert_allclose(got, expected, rtol=1e-9)
            if np.ndim(prior_odds) == 0:
                np.testing.assert_allclose(
                    clf.predict_proba([x], relevance="averaged")[0], expected, rtol=1e-9
                )
    alone = [sum(evidence(X[y == c, j]) for c in range(n_classes)) for j in range(3)]
    factors = [a - evidence(X[:, j]) for j, a in enumerate(alone)]
    np.testing.assert_allclose(table["log_bayes_factor"], factors, rtol=1e-9, atol=1e-10)


def test_odds_of_0_and_infinity_are_the_two_models():
    clf, _, X, y = case("counts")
    clf.fit(X, y)
    always = bg.feature_relevance(clf, np.inf)
    np.testing.assert_allclose(
        clf.predict_log_proba(X, relevance=always), clf.predict_log_proba(X), rtol=1e-12
    )
    never = bg.feature_relevance(clf, 0.0)
    prior = np.broadcast_to(clf.model_.alpha / clf.model_.alpha.sum(), (len(X), 2))
    np.testing.assert_allclose(clf.predict_proba(X, relevance=never), prior, rtol=1e-12)
    assert never["probability"].values.tolist() == [0, 0, 0]


@pytest.mark.parametrize("variance", ["tied", "spherical", "class_spherical"])
def test_one_variance_for_classes_or_columns(variance):
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 1], 5)
    X = rng.normal(size=(15, 2)) + y[:, None] * [2, 0]
    clf = bg.GaussianNB(mu0=0.0, kappa0=0.5, nu0=3.0, sigma2_0=2.0, variance=variance).fit(X, y)
    table = bg.feature_relevance(clf)
    assert table["unit"].values.tolist() == ([0, 1] if variance == "tied" else [0, 0])
    # a common mean: the rows all of one class, in a classifier of one class
    one = bg.GaussianNB(mu0=0.0, kappa0=0.5, nu0=3.0, sigma2_0=2.0, variance=variance)
    columns = [[0], [1]] if variance == "tied" else [[0, 1]]
    for c in columns:
        own = clone_fit(clf, X[:, c], y)
        common = one.fit(X[:, c], np.zeros(15))
        log_labels = betaln(1 + 5, 1 + 10) - betaln(1, 1)
        expected = own.log_evidence_ - log_labels - common.log_evidence_
        assert float(table["log_bayes_factor"][c[0]]) == pytest.approx(expected, rel=1e-10)


def clone_fit(clf, X, y):
    from sklearn.base import clone

    return clone(clf).fit(X, y)


CONJUGATE = sorted(k for k, f in registry().items() if issubclass(f, ConjugateFamily))


@pytest.mark.parametrize("name", CONJUGATE)
def test_every_family_pools_and_sums(name):
    if issubclass(registry()[name], ApproximateFamily):
        pytest.skip("it has no evidence")
    for family in registry()[name].examples(3, 2):
        rng = np.random.default_rng(2)
        y = np.arange(12) % 3
        X = family.simulate_predictive(rng, y)
        stat = family.stats(X, y, 3)
        if family.independent:  # the sum of them: laws/test_capabilities.py
            each = separate_columns(family).log_evidence_by_feature(stat)
            apart = OneByOne(family).log_evidence_by_feature(stat)
            np.testing.assert_allclose(each, apart, rtol=1e-12)
        pooled, direct = stat.pooled(), family.stats(X, np.zeros(12, dtype=int), 1)
        for key, (_, value) in direct.arrays().items():
            got = pooled.arrays()[key][1]
            if key == "shift":
                continue
            np.testing.assert_allclose(got, value, rtol=1e-9, atol=1e-9, err_msg=key)
        prior = family.at("class", [0, 0, 0]) if name != "Columns" else None
        if prior is not None:
            common = prior.pooled()
            assert np.isfinite(common.log_evidence(pooled))


def test_documents_and_correlated_columns_are_judged_as_wholes():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 20)
    words = rng.poisson(np.where(y[:, None] == 0, [3, 1, 1], [1, 1, 3]))
    clf = bg.MultinomialNB().fit(sparse.csr_matrix(words), y)
    table = bg.feature_relevance(clf)
    totals = np.stack([words[y == c].sum(axis=0) for c in (0, 1)])

    def log_b(a):
        return gammaln(a).sum() - gammaln(a.sum())

    expected = sum(log_b(1 + t) - log_b(np.ones(3)) for t in totals)
    expected -= log_b(1 + totals.sum(axis=0)) - log_b(np.ones(3))
    np.testing.assert_allclose(table["log_bayes_factor"], [expected] * 3, rtol=1e-9)
    assert table["unit"].values.tolist() == [0, 0, 0]
    p = float(table["probability"][0])
    family, common = (
        clf.model_.family,
        clf.prior_.family.pooled().update(clf.stats_.features.pooled()),
    )
    mixed = np.log(
        p * np.exp(family.log_predictive(words[:2]))
        + (1 - p) * np.exp(common.log_predictive(words[:2]))
    )
    got = clf.predict_joint_log_proba(words[:2], relevance="averaged")
    np.testing.assert_allclose(got, mixed + np.log(0.5), rtol=1e-10)
    for other in (bg.LinearDiscriminant(), bg.QuadraticDiscriminant()):
        other.fit(rng.normal(size=(40, 2)), y)
        assert bg.feature_relevance(other)["unit"].values.tolist() == [0, 0]
        assert np.all(np.isfinite(other.predict_proba(np.zeros((1, 2)), relevance="averaged")))
    text = bg.MarkovNB(order=2).fit(["abab", "abba", "bbbb", "bbab"], [0, 0, 1, 1])
    assert bg.feature_relevance(text)["feature"].values.tolist() == ["document"]
    assert text.predict_proba(["ab", "xx"], relevance="averaged").shape == (2, 2)


def test_mixed_columns_by_name():
    rng = np.random.default_rng(4)
    y = np.repeat(["u", "v"], 30)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=60) + (y == "v"),
            "noise": rng.normal(size=60),
            "wet": rng.random(60) < 0.3 + 0.4 * (y == "v"),
        }
    )
    frame.loc[3, "size"] = np.nan
    clf = bg.MixedNB().fit(frame, y)
    table = bg.feature_relevance(clf, {"wet": 0.1})
    assert table["prior_odds"].values.round(3).tolist() == [1, 1, 0.1]
    assert float(table["probability"].sel(feature="size")) > 0.5
    assert float(table["probability"].sel(feature="noise")) < 0.5
    alone = bg.BernoulliNB().fit(frame[["wet"]].astype(float), y)
    assert float(table["log_bayes_factor"][2]) == pytest.approx(
        float(bg.feature_relevance(alone)["log_bayes_factor"][0]), rel=1e-10
    )
    p = clf.predict_proba(frame[:5], relevance=table)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert clf.predict(frame[:5], relevance="averaged").shape == (5,)


def test_noise_no_longer_speaks():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 40)
    X = (rng.random((40, 400)) < 0.5).astype(int)
    X[:, 7] = (rng.random(40) < 0.1 + 0.8 * y).astype(int)
    clf = bg.BernoulliNB().fit(X[:20], y[:20])
    table = bg.feature_relevance(clf, 1 / 400)
    plain, averaged = (
        clf.predict_log_proba(X[20:], relevance=r)[np.arange(20), y[20:]].mean()
        for r in (None, table)
    )
    assert averaged > plain
    spread = clf.predict_proba(sparse.csr_matrix(X[20:]), relevance=table)
    np.testing.assert_allclose(spread, clf.predict_proba(X[20:], relevance=table), rtol=1e-10)


def test_bad_questions():
    clf, _, X, y = case("bits")
    clf.fit(X, y)
    for odds, message in (
        (-1, ">= 0"),
        ([1, 2], "one for each of the 3"),
        ({"x9": 1}, "'x9'"),
        (np.nan, ">= 0"),
    ):
        with pytest.raises(ValueError, match=message):
            bg.feature_relevance(clf, odds)
    with pytest.raises(ValueError, match="relevance"):
        clf.predict_proba(X, relevance="some")
    with pytest.raises(TypeError, match="feature_relevance"):
        clf.predict_proba(X, relevance=0.5)
    with pytest.raises(ValueError, match="posterior predictive"):
        clf.predict_proba(X, method="mle", relevance="averaged")
    with pytest.raises(ValueError, match="of 3 features"):
        bg.BernoulliNB().fit(X[:, :2], y).predict_proba(
            X[:, :2], relevance=bg.feature_relevance(clf)
        )
    unequal = bg.BernoulliNB(alpha=[[1.0], [2.0]]).fit(X, y)
    with pytest.raises(ValueError, match="'alpha' differs between classes"):
        bg.feature_relevance(unequal)
    words = bg.MultinomialNB().fit([[1, 2], [2, 1]], [0, 1])
    with pytest.raises(ValueError, match="same prior odds"):
        bg.feature_relevance(words, [1, 2])


def test_nothing_is_said_without_the_range_over_the_strength_of_the_prior():
    rng = np.random.default_rng(9)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + np.array([0.25, 3.0, 0.0]) * y[:, None]
    prior = {"mu0": 0.0, "nu0": 3.0, "sigma2_0": 2.0}
    table = bg.feature_relevance(bg.GaussianNB(**prior, kappa0=0.1).fit(X, y))

    def evidence(x, k):  # the closed form of reals(), at k times the strength
        kappa, nu, n = 0.1 * k, 3.0 * k, len(x)
        q = nu * 2.0 + ((x - x.mean()) ** 2).sum() + kappa * n / (kappa + n) * x.mean() ** 2
        return (
            gammaln((nu + n) / 2)
            - gammaln(nu / 2)
            + 0.5 * np.log(kappa / (kappa + n))
            + nu / 2 * np.log(nu * 2.0)
            - (nu + n) / 2 * np.log(q)
        )

    for j in range(3):
        parts = [X[y == 0, j], X[y == 1, j]]
        factors = [
            sum(evidence(x, k) for x in parts) - evidence(X[:, j], k)
            for k in [1.0, *np.geomspace(1 / 30, 30, 13)]
        ]
        assert table["log_bayes_factor"][j] == pytest.approx(factors[0], rel=1e-9)
        found = table["log_bayes_factor_range"][j]
        np.testing.assert_allclose(found, [min(factors), max(factors)], rtol=1e-9)
    low, high = table["log_bayes_factor_range"].values.T
    assert low[0] < 0 < high[0]
    assert low[1] > 0
    assert high[2] < 0


class NoStrength(registry()["NormalInverseGamma"]):
    """A family that says nothing of its strength."""

    tunable = pseudo_counts = ()


def test_without_a_strength_the_range_is_not_known():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    table = bg.feature_relevance(bg.GenerativeClassifier(NoStrength()).fit(X, y))
    assert np.isfinite(table["log_bayes_factor"]).all()
    assert (np.abs(table["log_bayes_factor_range"]) == np.inf).all()
