"""Contributions to the log-odds against SciPy, enumeration and draws made apart."""

from dataclasses import replace
from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from tests.estimators.cases import CASES, KINDS, Case, sample, table
from tests.rows import bits, reals, reals_with_gaps

FOREST, POOL = bg.MetaTreeForest, bg.LogLinearPool
MORE = {
    "tree augmented": Case(bg.TreeAugmentedNB, bits),
    "label trees": Case(lambda: FOREST(n_trees=20), reals_with_gaps),
    "pool": Case(lambda: POOL([bg.GaussianNB(), bg.LinearDiscriminant()]), reals),
    "pool of a table": Case(lambda: POOL([bg.MixedNB(KINDS), FOREST(8)]), table),
}
INDEPENDENT = ("BernoulliNB", "CategoricalNB", "PoissonNB", "GaussianNB", "GaussianNB tied")
INDEPENDENT += ("MixedNB",)
TOKENS = ("MultinomialNB", "MarkovNB 2")
DEPENDENT = ("GaussianNB spherical", "GaussianNB class_spherical", *MORE)
DEPENDENT += ("LinearDiscriminant", "QuadraticDiscriminant")
KINDS_OF_MODELS = INDEPENDENT + TOKENS + DEPENDENT


def rows(kind, n_classes=2):
    """(classifier, X, y, new rows) with a missing cell where the kind has them."""
    case = (CASES | MORE)[kind]
    X, codes, y = sample(case, 60)
    few = np.flatnonzero(codes < n_classes)
    X, y = take(X, few), y[few]
    new = take(X, np.arange(8, 13))
    if kind in ("LinearDiscriminant", "QuadraticDiscriminant", "pool"):
        new[0, 1] = np.nan
    return case.make().fit(X, y), X, y, new


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
@pytest.mark.parametrize("kind", KINDS_OF_MODELS)
def test_contributions_add_up_to_the_log_odds(kind, n_classes):
    clf, _, _, new = rows(kind, n_classes)
    table = clf.explain(new)
    expected = log_odds(clf, new, table)
    assert np.isfinite(table["predictive"]).all()
    np.testing.assert_allclose(total(table), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(table["predictive_log_odds"], expected, rtol=0, atol=1e-9)
    if n_classes == 2:
        np.testing.assert_allclose(expected, clf.decision_function(new), atol=1e-9)


@pytest.mark.parametrize("kind", ["MixedNB", "pool of a table"])
def test_features_have_the_names_of_the_frame(kind):
    clf, X, _, new = rows(kind)
    assert clf.explain(new)["feature"].values.tolist() == [*X]


@pytest.mark.parametrize("kind", [k for k in KINDS_OF_MODELS if k not in ("pool", "label trees")])
def test_the_intercept_is_the_log_odds_of_the_class_weights(kind):
    clf, _, _, new = rows(kind, 3)
    table = clf.explain(new, classes=("cedar", "ash"))
    if kind != "pool of a table":
        weights = clf.fitted_.posterior.class_weights()
        expected = np.log(weights[2] / weights[0])
        np.testing.assert_allclose(table["predictive_intercept"], expected, atol=1e-9)
    prior = {"ash": 0.2, "birch": 0.5, "cedar": 0.3}
    other = clf.explain(new, classes=("cedar", "ash"), class_prior=prior)
    np.testing.assert_allclose(other["predictive"], table["predictive"], atol=1e-12)
    log_p = clf.predict_log_proba(new, class_prior=prior)
    np.testing.assert_allclose(total(other), log_p[:, 2] - log_p[:, 0], atol=1e-9)


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
    values = np.zeros(new.shape)
    for s in sets:
        share = 1 / (d * comb(d - 1, len(s))) if len(s) < d else 0.0
        for j in set(range(d)) - s:
            values[:, j] += share * (value[s | {j}] - value[s])
    return values


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


@pytest.mark.parametrize("kind", ["BernoulliNB", "PoissonNB", "GaussianNB tied"])
def test_contributions_of_independent_columns_are_shapley_values(kind):
    clf, _, _, new = rows(kind)
    table = clf.explain(new, classes=("birch", "ash"))
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


@pytest.mark.parametrize("kind", ["QuadraticDiscriminant", "label trees", "pool", "tree augmented"])
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
    posterior = pool.fitted_.posterior
    scores = posterior.evidence(pool.fitted_.encoded(new)).scores
    odds = posterior.exponents.mean[0] @ (scores[..., 1] - scores[..., 0])
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
    contribution = float(table["predictive"][0, j])
    assert contribution == pytest.approx(
        (whole - pool.decision_function(sparse.csr_matrix(less)))[0]
    )


# -------------------------------------------------------------------------------- questions


def test_which_classes():
    clf, _, _, new = rows("GaussianNB", 3)
    joint = clf.predict_joint_log_proba(new)
    order = clf.classes_[np.argsort(-joint, axis=1)]
    top = clf.explain(new)
    assert top["label"].values.tolist() == order[:, 0].tolist()
    assert top["against"].values.tolist() == order[:, 1].tolist()
    assert "runner-up" in top.attrs["pair"]
    one = clf.explain(new, classes="birch")
    assert set(one["label"].values) == {"birch"}
    assert "birch" not in one["against"].values
    ab, ba = clf.explain(new, ("ash", "birch")), clf.explain(new, ["birch", "ash"])
    np.testing.assert_allclose(ab["predictive"], -ba["predictive"], atol=1e-12)


@pytest.mark.parametrize("kind", ["GaussianNB", "LinearDiscriminant"])
def test_a_class_of_weight_0_has_infinite_log_odds_against_it(kind):
    clf, _, _, new = rows(kind, 3)
    table = clf.explain(new, classes=("birch", "ash"), class_prior=[0.0, 1.0, 0.0])
    for name in ("predictive_intercept", "predictive_log_odds"):
        assert (table[name] == np.inf).all(), name
    assert np.isfinite(table["predictive"]).all()
    neither = clf.explain(new, classes=("ash", "cedar"), class_prior=[0.0, 1.0, 0.0])
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
        ({"classes": ("ash", "ash")}, "two different"),
        ({"classes": ("ash",)}, "pair"),
        ({"classes": ("ash", "birch", "ash")}, "pair"),
    ],
)
def test_bad_questions(options, message):
    clf, _, _, new = rows("BernoulliNB")
    with pytest.raises(ValueError, match=message):
        clf.explain(new, **options)


def test_one_class_and_whole_rows_are_not_explained():
    with pytest.raises(ValueError, match="two classes"):
        bg.BernoulliNB().fit([[0], [1]], ["a", "a"]).explain([[1]])
    clf, _, _, new = rows("BernoulliNB")
    whole = "the log density is of whole rows"
    clf.fitted_ = replace(clf.fitted_, reader=replace(clf.fitted_.reader, whole=whole))
    with pytest.raises(NotImplementedError, match=f"rows with missing cells: {whole}"):
        clf.explain(np.nan_to_num(new))
