"""Contributions to the log-odds against SciPy, enumeration and draws made apart."""

from dataclasses import replace
from itertools import combinations, permutations
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesgen as bg

N = 40
LABELS = np.array(["a", "b", "c"])


def rows(kind, n_classes=2, seed=0):
    """(classifier, X, y, new rows) with a missing cell where the kind has them."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % n_classes
    bits = (rng.random((N, 3)) < 0.2 + 0.2 * y[:, None]).astype(float)
    counts = rng.poisson(2.0 + y[:, None], (N, 3)).astype(float)
    real = rng.normal(size=(N, 3)) @ [[1, 0.8, 0], [0, 1, 0], [0, 0, 1]] + y[:, None]
    gaps = [bits.copy(), counts.copy(), real.copy()]
    for table in gaps:
        table[0, 1] = np.nan
    frame = pd.DataFrame(
        {"size": gaps[2][:, 0], "wet": bits[:, 1] > 0, "kind": rng.choice(list("uvw"), N)}
    )
    texts = ["".join(rng.choice(list("abc"), 6)) for _ in range(N)]
    clf, X = {
        "bernoulli": (bg.BernoulliNB(), gaps[0]),
        "categorical": (bg.CategoricalNB(), rng.integers(0, 3, (N, 3))),
        "poisson": (bg.PoissonNB(), gaps[1]),
        "gaussian": (bg.GaussianNB(), gaps[2]),
        "tied": (bg.GaussianNB(variance="tied"), gaps[2]),
        "spherical": (bg.GaussianNB(variance="spherical"), gaps[2]),
        "class_spherical": (bg.GaussianNB(variance="class_spherical"), gaps[2]),
        "multinomial": (bg.MultinomialNB(), sparse.csr_matrix(counts)),
        "markov": (bg.MarkovNB(order=2), texts),
        "mixed": (bg.MixedNB(), frame),
        "linear": (bg.LinearDiscriminant(), real),
        "quadratic": (bg.QuadraticDiscriminant(), real),
        "tree augmented": (bg.TreeAugmentedNB(), bits),
        "label trees": (bg.MetaTreeForest(n_trees=20), gaps[2]),
        "pool": (bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()]), real),
        "pool of a table": (bg.LogLinearPool([bg.MixedNB(), bg.MetaTreeForest(8)]), frame),
    }[kind]
    new = gaps[2][:5] if kind in ("linear", "quadratic", "pool") else X[:5]
    if kind == "tree augmented":
        new = gaps[0][:5]
    return clf.fit(X, LABELS[y]), X, LABELS[y], new


INDEPENDENT = ("bernoulli", "categorical", "poisson", "gaussian", "tied", "mixed")
TOKENS = ("multinomial", "markov")
DEPENDENT = (
    "spherical", "class_spherical", "linear", "quadratic", "tree augmented", "label trees",
    "pool", "pool of a table",
)  # fmt: skip
KINDS = INDEPENDENT + TOKENS + DEPENDENT


def log_odds(clf, new, table):
    """Of the classes that a table explains, by `predict_log_proba`."""
    log_p = clf.predict_log_proba(new)
    a, b = (np.searchsorted(clf.classes_, table[k].values) for k in ("label", "against"))
    every = np.arange(len(a))
    return log_p[every, a] - log_p[every, b]


def total(table):
    return table["predictive"].sum("feature") + table["predictive_intercept"]


# ------------------------------------------------------------------------------- additivity


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_contributions_add_up_to_the_log_odds(kind, n_classes):
    clf, _, _, new = rows(kind, n_classes)
    table = clf.explain(new)
    expected = log_odds(clf, new, table)
    assert np.isfinite(table["predictive"]).all()
    np.testing.assert_allclose(total(table), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(table["predictive_log_odds"], expected, rtol=0, atol=1e-9)
    if n_classes == 2:
        np.testing.assert_allclose(expected, clf.decision_function(new), atol=1e-9)


def test_features_have_the_names_of_the_frame():
    for kind in ("mixed", "pool of a table"):
        clf, _, _, new = rows(kind)
        assert clf.explain(new)["feature"].values.tolist() == ["size", "wet", "kind"]


def test_a_pipeline_is_explained_by_its_last_step():
    _, X, y, new = rows("quadratic")
    pipe = make_pipeline(StandardScaler(), bg.QuadraticDiscriminant()).fit(X, y)
    clf, seen = bg.final_estimator(pipe, new)
    table = clf.explain(seen)
    np.testing.assert_allclose(total(table), log_odds(pipe, new, table), atol=1e-9)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("pool", "label trees")])
def test_the_intercept_is_the_log_odds_of_the_class_weights(kind):
    clf, _, _, new = rows(kind, 3)
    table = clf.explain(new, classes=("c", "a"))
    if kind != "pool of a table":
        weights = clf.fitted_.posterior.class_weights()
        expected = np.log(weights[2] / weights[0])
        np.testing.assert_allclose(table["predictive_intercept"], expected, atol=1e-9)
    prior = {"a": 0.2, "b": 0.5, "c": 0.3}
    other = clf.explain(new, classes=("c", "a"), class_prior=prior)
    np.testing.assert_allclose(other["predictive"], table["predictive"], atol=1e-12)
    log_p = clf.predict_log_proba(new, class_prior=prior)
    np.testing.assert_allclose(total(other), log_p[:, 2] - log_p[:, 0], atol=1e-9)


@pytest.mark.parametrize("kind", ["gaussian", "linear", "quadratic"])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_matter(kind, scale):
    clf, X, y, new = rows(kind)
    expected = clf.explain(new)
    table = clf.fit(X * scale, y).explain(new * scale)
    for name in ("predictive", "predictive_log_odds"):
        np.testing.assert_allclose(table[name], expected[name], rtol=1e-6, atol=1e-9)


# ------------------------------------------------------------------------------ the numbers


def test_words_are_averaged_over_the_orders_of_the_chain_rule():
    X, y = np.array([[3, 1, 0], [0, 2, 2], [1, 0, 4]]), [0, 1, 1]
    clf = bg.MultinomialNB(alpha=0.5).fit(X, y)
    new = np.array([[2, 1, 1]])
    words = [0, 0, 1, 2]
    counts = np.array([[3.5, 1.5, 0.5], [1.5, 2.5, 6.5]])
    expected = np.zeros(3)
    orders = list(permutations(words))
    for order in orders:
        urn = counts.copy()
        for w in order:
            p = urn[:, w] / urn.sum(axis=1)
            expected[w] += np.log(p[1] / p[0]) / len(orders)
            urn[:, w] += 1
    table = clf.explain(new)
    np.testing.assert_allclose(table["predictive"][0], expected, rtol=1e-12)


def test_language_models_name_their_ngrams():
    clf = bg.MarkovNB(order=2).fit(["abab", "aabb", "bbba", "bbbb"], [0, 0, 1, 1])
    table = clf.explain(["ab", "bx", ""], classes=(1, 0))
    assert table["feature"].values.tolist() == ["⊢a", "⊢b", "ab"]
    # after "a" class 0 had b, b, a, b and class 1 nothing
    cell = table.sel(feature="ab")["predictive"].values
    np.testing.assert_allclose(cell, [np.log((1 / 2) / (4 / 6)), 0, 0], atol=1e-12)
    assert not table["predictive"][2].any()
    one = bg.MarkovNB(order=1).fit(["aab", "abb", "bbb"], [0, 0, 1])
    bag = bg.MultinomialNB().fit([[2, 1], [1, 2], [0, 3]], [0, 0, 1])
    np.testing.assert_allclose(
        one.explain(["abba"])["predictive"], bag.explain([[2, 2]])["predictive"], rtol=1e-9
    )


def shapley(clf, new, a, b):
    """(N, D) means over all orders of the columns, by predictions of incomplete rows."""
    d = new.shape[1]
    sets = [frozenset(s) for k in range(d + 1) for s in combinations(range(d), k)]
    value = {}
    for s in sets:
        log_p = clf.predict_log_proba(np.where([j in s for j in range(d)], new, np.nan))
        value[s] = log_p[:, a] - log_p[:, b]
    out = np.zeros(new.shape)
    for s in sets:
        share = 1 / (d * comb(d - 1, len(s))) if len(s) < d else 0.0
        for j in set(range(d)) - s:
            out[:, j] += share * (value[s | {j}] - value[s])
    return out


def correlated(clf, n_columns):
    rng = np.random.default_rng(2)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, n_columns)) + 0.7 * y[:, None]
    X += rng.normal(size=(60, 1))
    return clone(clf).fit(X, y), X[:6]


JOINT = (
    bg.GaussianNB(),
    bg.LinearDiscriminant(),
    bg.QuadraticDiscriminant(),
    bg.TreeAugmentedNB(n_bins=3),
    bg.MetaTreeForest(n_trees=20),
    bg.LogLinearPool([bg.QuadraticDiscriminant(), bg.MetaTreeForest(n_trees=10)]),
)


@pytest.mark.parametrize("n_columns", [1, 2, 4])
@pytest.mark.parametrize("clf", JOINT)
def test_contributions_of_few_columns_are_shapley_values(clf, n_columns):
    clf, new = correlated(clf, n_columns)
    new[0, 0] = np.nan
    table = clf.explain(new, classes=(2, 0))
    np.testing.assert_allclose(table["predictive"], shapley(clf, new, 2, 0), atol=1e-9)


@pytest.mark.parametrize("kind", ["bernoulli", "poisson", "tied"])
def test_contributions_of_independent_columns_are_shapley_values(kind):
    clf, _, _, new = rows(kind)
    table = clf.explain(new, classes=("b", "a"))
    np.testing.assert_allclose(table["predictive"], shapley(clf, new, 1, 0), atol=1e-9)


@pytest.mark.parametrize("clf", [JOINT[1], JOINT[2], JOINT[4]])
def test_the_error_is_that_of_the_orders(clf):
    clf, new = correlated(clf, 7)
    exact = shapley(clf, new[:2], 2, 0)
    z = []
    for seed in range(25):
        table = clf.explain(new[:2], classes=(2, 0), random_state=seed)
        assert (
            table["error"].max("feature") <= 0.05 * np.abs(table["predictive"]).max("feature")
        ).all()
        z.append((table["predictive"].values - exact) / (table["error"].values + 1e-12))
    assert 0.4 < np.median(np.abs(z)) < 1.3  # of Student's t with 3 degrees of freedom .76


@pytest.mark.parametrize("kind", ["quadratic", "label trees", "pool", "tree augmented"])
def test_a_row_has_the_same_contributions_alone(kind):
    clf, _, _, new = rows(kind)
    table = clf.explain(new)
    for i in (0, 3):
        alone = clf.explain(new[[i]])
        for name in ("predictive", "error"):
            np.testing.assert_allclose(alone[name][0], table[name][i], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("clf", [bg.BernoulliNB(), bg.PoissonNB()])
def test_sparse_rows_of_many_columns(clf):
    rng = np.random.default_rng(0)
    X = sparse.random(60, 5_000, density=4e-3, format="csr", random_state=rng)
    X.data[:] = 1.0
    clf.fit(X, np.arange(60) % 2)
    table = clf.explain(X[:3])
    np.testing.assert_allclose(total(table), clf.decision_function(X[:3]), rtol=1e-9)


# ------------------------------------------------------------------------------------ pools


def test_words_of_a_pool_leave_a_rest():
    texts = ["free money now", "call me now", "free call", "money money", "see you", "you see me"]
    y = [1, 0, 1, 1, 0, 0]
    pool = bg.LogLinearPool([bg.MarkovNB(1, tokens="word"), bg.MarkovNB(2)]).fit(texts, y)
    new = ["Free money!", "see cafe\u0301", "?x?", ""]
    table = pool.explain(new)
    names = table["feature"].values.tolist()
    assert names == ["cafe", "free", "money", "see"]  # "!", "?" and "x" are unknown
    np.testing.assert_allclose(total(table) + table["rest"], log_odds(pool, new, table), atol=1e-9)
    own = pool.fitted_.posterior
    scores = own.evidence(pool.fitted_.encoded(new)).scores
    odds = own.exponents.mean[0] @ (scores[..., 1] - scores[..., 0])
    np.testing.assert_allclose(table["predictive"].sum("feature"), odds, atol=1e-9)
    assert not table["predictive"][2:].any()
    words = table["predictive"].sel(feature=["free", "money"])[0].values
    assert (words > 0.1).all()


def test_other_members_of_a_pool_of_texts_are_one_feature():
    texts = ["a", "b", "aaaaaa", "bbbbbbb aa", "b a", "aaaa bbbb"]
    pool = bg.LogLinearPool().fit(texts, [0, 0, 1, 1, 0, 1])
    table = pool.explain(texts)
    assert "(length)" in table["feature"]
    assert table["predictive"].sel(feature="(length)")[2] > 0


def test_counts_in_a_pool_leave_out_a_kind():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = sparse.csr_matrix(rng.poisson(1 + y[:, None], (40, 4)))
    pool = bg.LogLinearPool([bg.MultinomialNB(), bg.PoissonNB()]).fit(X, y)
    table = pool.explain(X[:2])
    less = X[:1].toarray()
    j = int(np.flatnonzero(less[0])[0])
    less[0, j] = 0
    whole = pool.decision_function(X[:1])
    found = float(table["predictive"][0, j])
    assert found == pytest.approx((whole - pool.decision_function(sparse.csr_matrix(less)))[0])


# -------------------------------------------------------------------------------- questions


def test_which_classes():
    clf, _, _, new = rows("gaussian", 3)
    joint = clf.predict_joint_log_proba(new)
    order = clf.classes_[np.argsort(-joint, axis=1)]
    top = clf.explain(new)
    assert top["label"].values.tolist() == order[:, 0].tolist()
    assert top["against"].values.tolist() == order[:, 1].tolist()
    assert "runner-up" in top.attrs["pair"]
    one = clf.explain(new, classes="b")
    assert set(one["label"].values) == {"b"}
    assert "b" not in one["against"].values
    ab, ba = clf.explain(new, ("a", "b")), clf.explain(new, ["b", "a"])
    np.testing.assert_allclose(ab["predictive"], -ba["predictive"], atol=1e-12)


@pytest.mark.parametrize("kind", ["gaussian", "linear"])
def test_a_class_of_weight_0_has_infinite_log_odds_against_it(kind):
    clf, _, _, new = rows(kind, 3)
    found = clf.explain(new, classes=("b", "a"), class_prior=[0.0, 1.0, 0.0])
    for name in ("predictive_intercept", "predictive_log_odds"):
        assert (found[name] == np.inf).all(), name
    assert np.isfinite(found["predictive"]).all()
    neither = clf.explain(new, classes=("a", "c"), class_prior=[0.0, 1.0, 0.0])
    assert np.isnan(neither["predictive_log_odds"]).all()


def test_a_category_that_cannot_be():
    from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical

    family = DirichletCategorical(n_categories=(2,), new=[[0.0], [1.0]])
    clf = bg.GenerativeClassifier(family).fit(np.array([[0.0], [1], [1]]), [0, 0, 1])
    table = clf.explain([[-1.0], [1.0]])
    assert table["predictive"].values[0, 0] == np.inf
    assert np.isfinite(table["predictive"].values[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "z"}, "'z' is not a class"),
        ({"classes": ("a", "a")}, "two different"),
        ({"classes": ("a",)}, "pair"),
        ({"classes": ("a", "b", "a")}, "pair"),
    ],
)
def test_bad_questions(options, message):
    clf, _, _, new = rows("bernoulli")
    with pytest.raises(ValueError, match=message):
        clf.explain(new, **options)


def test_one_class_and_whole_rows_are_not_explained():
    with pytest.raises(ValueError, match="two classes"):
        bg.BernoulliNB().fit([[0], [1]], ["a", "a"]).explain([[1]])
    clf, _, _, new = rows("bernoulli")
    whole = "the log density is of whole rows"
    clf.fitted_ = replace(clf.fitted_, reader=replace(clf.fitted_.reader, whole=whole))
    with pytest.raises(NotImplementedError, match=f"rows with missing cells: {whole}"):
        clf.explain(np.nan_to_num(new))
