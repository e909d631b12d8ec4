"""Mutual information against enumeration, quadrature and scikit-learn's tools."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import bayesgen as bg
from bayesgen.families import BetaBernoulli, Columns


def from_table(joint):
    """Mutual information, in nats, of a joint table (class, value)."""
    joint = np.asarray(joint) / np.sum(joint)
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    used = joint > 0
    return float(np.sum(joint[used] * np.log(joint[used] / independent[used])))


def _pi(clf, method="posterior_mean"):
    return clf.model_.class_weights(method, clf.stats_)


def test_several_categories_by_enumeration():
    rng = np.random.default_rng(5)
    X, y = np.array(["p", "q", "r", "s"])[rng.integers(0, 4, (50, 2))], rng.integers(0, 3, 50)
    clf = bg.CategoricalNB(alpha=0.5).fit(X, y)
    for j in range(2):
        n = np.array([[np.sum((y == c) & (X[:, j] == v)) for v in "pqrs"] for c in range(3)])
        plain = bg.mutual_information(clf, base=np.e, method="mle")[j]
        assert float(plain) == pytest.approx(from_table(n), rel=1e-10)
        theta = (n + 0.5) / (n + 0.5).sum(axis=1, keepdims=True)
        pi = (n.sum(axis=1) + 1) / 53
        smoothed = bg.mutual_information(clf, base=np.e)[j]
        assert float(smoothed) == pytest.approx(from_table(pi[:, None] * theta), rel=1e-10)


def test_real_features_by_quadrature():
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b", "c"], [20, 30, 10])
    X = rng.normal(size=(60, 2)) + np.where(y == "b", 2.0, 0.0)[:, None]
    for clf in (bg.GaussianNB(), bg.GaussianNB(variance="tied"), bg.QuadraticDiscriminant()):
        clf.fit(X, y)
        theta, pi = clf.model_.estimate("map", clf.stats_), _pi(clf, "map")
        sigma2 = theta.get("sigma2")
        if sigma2 is None:
            sigma2 = np.diagonal(theta["Sigma"], axis1=-2, axis2=-1)
        sd = np.sqrt(np.broadcast_to(sigma2, theta["mu"].shape))
        for j in range(2):

            def integrand(x, j=j, theta=theta, sd=sd, pi=pi):
                p = pi * stats.norm.pdf(x, theta["mu"][:, j], sd[:, j])
                return np.sum(p * (np.log(p) - np.log(pi) - np.log(p.sum())))

            expected = integrate.quad(integrand, -15, 15, limit=400, epsabs=1e-12)[0]
            got = bg.mutual_information(clf, base=np.e, method="map")[j]
            assert float(got) == pytest.approx(expected, abs=1e-8)


def test_counts_by_summation():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], 25)
    X = rng.poisson(np.where(y == 0, 2.0, 6.0)[:, None], (50, 2))
    clf = bg.PoissonNB().fit(X, y)
    rate, pi = clf.model_.estimate("posterior_mean", clf.stats_)["rate"], _pi(clf)
    for j in range(2):
        joint = pi[:, None] * stats.poisson.pmf(np.arange(80), rate[:, j, None])
        expected = from_table(joint)
        got = bg.mutual_information(clf, base=np.e)[j]
        assert float(got) == pytest.approx(expected, rel=1e-8)


def test_words_add_up_to_the_information_of_a_token():
    X, y = np.array([[3, 1, 0], [2, 2, 1], [0, 1, 5]]), [0, 0, 1]
    clf = bg.MultinomialNB().fit(X, y)
    theta, pi = clf.model_.estimate("posterior_mean", clf.stats_)["theta"], _pi(clf)
    total = float(bg.mutual_information(clf, base=np.e).sum())
    assert total == pytest.approx(from_table(pi[:, None] * theta), rel=1e-10)


def test_mixed_columns_each_by_its_own_family():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 30)
    frame = pd.DataFrame({"size": rng.normal(size=60) + y, "wet": rng.random(60) < 0.3 + 0.4 * y})
    both = bg.mutual_information(bg.MixedNB().fit(frame, y))
    assert both.coords["feature"].values.tolist() == ["size", "wet"]
    alone = bg.GaussianNB().fit(frame[["size"]], y)
    assert float(both[0]) == pytest.approx(float(bg.mutual_information(alone)[0]), rel=1e-10)


def test_arguments_are_checked():
    clf = bg.BernoulliNB().fit([[0, 1], [1, 1]], [0, 1])
    with pytest.raises(ValueError, match="one theta"):
        bg.mutual_information(clf, method="posterior_predictive")
    with pytest.raises(ValueError, match="base"):
        bg.mutual_information(clf, base=1)
    with pytest.raises(NotImplementedError, match="DirichletMarkov"):
        bg.mutual_information(bg.MarkovNB().fit(["ab", "ba"], [0, 1]))


# --------------------------------------------------------------------------------- posterior


def ask(clf, **options):
    options = {"unit": "nats", "prob": 0.9, "kind": "eti", "draws": 2000} | options
    return bg.mutual_information(clf, posterior=True, **options)


def test_posterior_of_the_thirteen_samples():
    X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
    clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
    assert float(bg.mutual_information(clf, unit="nats", method="mle")[0]) == pytest.approx(
        0.0787269, abs=5e-8
    )
    assert float(bg.mutual_information(clf, unit="nats")[0]) == pytest.approx(0.0226386, abs=5e-8)
    table = ask(clf, draws=1500)
    # MATH.md: posterior mean .0412, 90 % in [.0002, .1458]; sd .0503
    assert float(np.abs(table["mean"] - 0.04116).max()) < 4 * 0.0503 / np.sqrt(1500)
    np.testing.assert_allclose(table["mcse"], table["sd"] / np.sqrt(1500))
    rng = np.random.default_rng(1)
    pi, a, b = (rng.beta(*ab, 400_000) for ab in ((2, 13), (2, 1), (5, 9)))
    joint = [pi * a, pi * (1 - a), (1 - pi) * b, (1 - pi) * (1 - b)]
    nats = sum(special.xlogy(p, p) for p in joint) + stats.bernoulli.entropy(pi)
    mean = pi * a + (1 - pi) * b
    nats += stats.bernoulli.entropy(mean)
    ends = table["interval"].values
    below = np.mean(nats[:, None] <= ends.ravel(), axis=0).reshape(2, 2)
    np.testing.assert_allclose(below, [[0.05, 0.95]] * 2, atol=4 * np.sqrt(0.05 * 0.95 / 1500))
    bits = ask(clf, draws=1500, unit="bits")
    np.testing.assert_allclose(bits["mean"], table["mean"] / np.log(2))
    np.testing.assert_array_equal(bits["above_floor"], table["above_floor"])


def chance(kind, n, rng):
    """A classifier and data of features that are independent of the class."""
    y = (np.arange(n) % 3 == 0).astype(int)
    return {
        "bits": (bg.BernoulliNB(), (rng.random((n, 2)) < 0.3).astype(float)),
        "categories": (bg.CategoricalNB(categories=3), rng.integers(0, 3, (n, 2)).astype(float)),
        "counts": (bg.PoissonNB(), rng.poisson(2.0, (n, 2)).astype(float)),
        "reals": (bg.GaussianNB(), rng.normal(size=(n, 2))),
        "tied": (bg.GaussianNB(variance="tied"), rng.normal(size=(n, 2))),
        "linear": (bg.LinearDiscriminant(), rng.normal(size=(n, 2))),
        "words": (bg.MultinomialNB(), rng.multinomial(6, [0.5, 0.3, 0.2], n)),
    }[kind] + (y,)  # fmt: skip


@pytest.mark.parametrize("kind", ["bits", "linear", pytest.param("words", marks=pytest.mark.slow)])
def test_floor_is_what_permuted_labels_show(kind):
    rng = np.random.default_rng(6)
    clf, X, y = chance(kind, 30, rng)
    table = ask(clf.fit(X, y), draws=400)
    shown = []
    for _ in range(60):
        other = clone(clf).fit(X, rng.permutation(y))
        shown.append(ask(other, draws=10)["mean"].values)
    shown = np.array(shown)
    error = np.hypot(shown.std(axis=0) / np.sqrt(60), table["floor"] / np.sqrt(200))
    assert np.all(np.abs(shown.mean(axis=0) - table["floor"]) < 4 * error)
    assert np.all(table["floor_interval"][:, 0] < table["floor"])
    assert np.all(table["floor_interval"][:, 1] > table["floor"])


@pytest.mark.parametrize(
    ("kind", "degrees"), [("bits", 1), ("categories", 2), ("counts", 1), ("reals", 2), ("tied", 1)]
)
def test_floor_of_many_rows(kind, degrees):
    clf, X, y = chance(kind, 6000, np.random.default_rng(7))
    table = ask(clf.fit(X, y), draws=500)
    # (K - 1)(C - 1)/2N of the estimate's own chance, and as much of the posterior's
    np.testing.assert_allclose(table["floor"], degrees / 6000, rtol=4 * np.sqrt(2 / 500))


@pytest.mark.parametrize("model", [bg.LinearDiscriminant, bg.QuadraticDiscriminant])
def test_correlated_features_by_their_margins(model):
    rng = np.random.default_rng(9)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 3)) @ [[1, 0.9, 0], [0, 1, 0.5], [0, 0, 1]] + y[:, None]
    clf = model().fit(np.c_[X, np.ones(40)], y)
    table = ask(clf, draws=600)
    draws = clf.draw_posterior(300, 2)
    full = bg.mutual_information(clf, posterior=draws, unit="nats", draws=20)
    error = np.hypot(table["mcse"], full["mcse"])
    assert np.all(np.abs(table["mean"] - full["mean"]) <= 4 * error)
    assert float(table["mean"][3]) == 0


def test_features_that_speak_stand_above_the_floor():
    rng = np.random.default_rng(10)
    y = np.repeat(["u", "v", "w"], 30)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=90) + (y == "v"),
            "noise": rng.normal(size=90),
            "kind": np.where(rng.random(90) < 0.7, y, "u"),
            "wet": rng.random(90) < 0.5,
        }
    )
    frame.loc[5, ["size"]] = np.nan
    table = ask(bg.MixedNB().fit(frame, y), draws=400)
    above = dict(zip(frame.columns, table["above_floor"].values, strict=True))
    assert min(above["size"], above["kind"]) > 0.95
    assert 0.05 < above["noise"] < 0.9
    assert 0.05 < above["wet"] < 0.9
    assert table.attrs["kind"] == "eti"
    short = ask(bg.MixedNB().fit(frame, y), draws=400, kind="hdi")
    width = [t["interval"][:, 1] - t["interval"][:, 0] for t in (table, short)]
    assert np.all(width[1].values <= 1.01 * width[0].values)


def test_one_class_says_nothing():
    table = ask(bg.BernoulliNB().fit([[0], [1]], ["a", "a"]), draws=10)
    np.testing.assert_allclose([table["mean"], table["floor"]], 0, atol=1e-12)


def test_arguments_of_the_posterior_are_checked():
    clf = bg.BernoulliNB().fit([[0, 1], [1, 1]], [0, 1])
    for options, message in (
        ({"draws": 1}, "draws"),
        ({"prob": 2}, "prob"),
        ({"kind": "x"}, "kind"),
        ({"unit": "bytes"}, "unit"),
        ({"base": 2}, "not both"),
    ):
        with pytest.raises(ValueError, match=message):
            ask(clf, **options)
    with pytest.raises(NotImplementedError, match="DirichletMarkov"):
        ask(bg.MarkovNB().fit(["ab", "ba"], [0, 1]))


def test_a_floor_that_a_family_cannot_draw_is_refused():
    class Own(BetaBernoulli):
        draw_null = None

    X, y = [[0, 1], [1, 1], [1, 0]], [0, 1, 1]
    clf = bg.GenerativeClassifier(Own()).fit(X, y)
    plain = bg.mutual_information(bg.BernoulliNB().fit(X, y))
    np.testing.assert_allclose(bg.mutual_information(clf), plain)
    with pytest.raises(NotImplementedError, match=r"floor .* NullDistribution .* Own"):
        ask(clf)
    mixed = Columns(("a", "b"), (BetaBernoulli(), Own()), ((0,), (1,)))
    with pytest.raises(NotImplementedError, match=r"NullDistribution \(draw_null\), which Own"):
        ask(bg.GenerativeClassifier(mixed).fit(X, y))


# ---------------------------------------------------------------------------------- selector


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 300)
    X = (rng.random((300, 40)) < 0.5).astype(int)
    X[:, [5, 17]] = (rng.random((300, 2)) < 0.2 + 0.6 * y[:, None]).astype(int)
    return X, y


def test_selector_finds_the_columns_that_matter(noisy):
    X, y = noisy
    selector = bg.MutualInformationSelector(n_features=2).fit(X, y)
    assert np.flatnonzero(selector.get_support()).tolist() == [5, 17]
    np.testing.assert_array_equal(selector.transform(X), X[:, [5, 17]])
    share = clone(selector).set_params(n_features=0.1).fit(X, y)
    assert share.get_support().sum() == 4


def test_selector_in_a_pipeline(noisy):
    X, y = noisy
    few = make_pipeline(bg.MutualInformationSelector(n_features=2), bg.BernoulliNB())
    score = cross_val_score(few, X, y, scoring="neg_log_loss").mean()
    assert score > cross_val_score(bg.BernoulliNB(), X, y, scoring="neg_log_loss").mean()


def test_selector_takes_any_estimator_and_names(noisy):
    X, y = noisy
    frame = pd.DataFrame(X + 0.0, columns=[f"f{j}" for j in range(40)])
    selector = bg.MutualInformationSelector(bg.GaussianNB(), n_features=2, method="map")
    assert selector.fit(frame, y).get_feature_names_out().tolist() == ["f5", "f17"]
    with pytest.raises(ValueError, match="n_features"):
        bg.MutualInformationSelector(n_features=0).fit(X, y)


def test_a_posterior_prints_as_a_table_with_a_line_for_each_feature():
    X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
    clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
    table = bg.mutual_information(clf, posterior=True, draws=10, random_state=0)
    assert "mutual information" in repr(table)
    assert table.to_dataframe().shape[0] == 2
