"""Tests of peers' own suites, asked of ours: same data, same call, the same number.

Named by suite and test. Where ours differ by design the test says how: a prior of no weight for a
peer without one, ``method="posterior_mean"`` for a peer that plugs estimates in.
"""

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

import bayesgen as bg

TINY = 1e-10  # a prior that weighs nothing
# ---------------------------------------------------- sklearn/tests/test_naive_bayes.py


def test_categoricalnb():
    even = {"class_prior": [0.5, 0.5]}
    codes = {0: range(3), 1: range(6)}
    clf = bg.CategoricalNB(categories=codes).fit([[1, 4], [2, 5]], [1, 2])
    np.testing.assert_allclose(clf.predict_proba([[2, 5]], **even), [[0.2, 0.8]])
    rows, labels = [[0, 0], [0, 1], [0, 0], [1, 1]], [1, 1, 2, 2]
    assert bg.CategoricalNB().fit(rows, labels).predict([[0, 0]], **even) == 1
    for factor in (1.0, 0.3, 5.0, 1e-4):
        clf = bg.CategoricalNB().fit(rows, labels, factor * np.array([1, 1, 10, 0.1]))
        assert clf.predict([[0, 0]], **even) == 2
        assert list(map(len, clf.categories_)) == [2, 2]
    wider = bg.CategoricalNB(categories={0: range(3), 1: range(4)}).fit(rows, labels)
    assert wider.predict([[0, 3]], **even) == 1


# ------------------------------------------------- sklearn/feature_extraction/tests/test_text.py

JUNK = [
    "the pizza pizza beer copyright",
    "the pizza burger beer copyright",
    "the the pizza beer beer copyright",
    "the burger beer beer copyright",
    "the coke burger coke copyright",
    "the coke burger burger",
]
FOOD = [
    "the salad celeri copyright",
    "the salad salad sparkling water copyright",
    "the the celeri celeri copyright",
    "the tomato tomato salad water",
    "the tomato salad water copyright",
]
DOCUMENTS, KIND = JUNK + FOOD, np.array([-1] * len(JUNK) + [1] * len(FOOD))


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(dtype=np.uint8),
        TfidfVectorizer(),
        TfidfVectorizer(dtype=np.float32, sublinear_tf=True),
        HashingVectorizer(n_features=64, alternate_sign=False),
    ],
    ids=lambda v: f"{type(v).__name__} {np.dtype(v.dtype)}",
)
def test_plug_ins_of_vectorised_texts(vectorizer):
    rows = vectorizer.fit_transform(DOCUMENTS)
    new = vectorizer.transform(["pizza unseen words", "salad salad beer", ""])
    for ours, theirs in ((bg.MultinomialNB, MultinomialNB), (bg.BernoulliNB, BernoulliNB)):
        clf = ours(class_alpha=TINY).fit(rows, KIND)
        expected = theirs().fit(rows, KIND).predict_proba(new)
        p = clf.predict_proba(new, method="posterior_mean")
        np.testing.assert_allclose(p, expected, rtol=1e-5 if rows.dtype.itemsize < 8 else 1e-9)


# ------------------------------------------------------------------- other packages


SENTENCES = [["a", "b", "c", "d"], ["<UNK>", "<UNK>", "a", "d", "b", "<UNK>"]]
VOCABULARY = ["a", "b", "c", "d", "z", "<s>", "</s>", "<UNK>"]


@pytest.mark.parametrize(
    ("alpha", "perplexity", "scores"),
    [
        (0.1, 17.0504, {("c", "d"): 1.1 / 1.8, ("c", "a"): 0.1 / 1.8}),
        (1.0, 8.7393, {("c", "d"): 2 / 9, ("c", "a"): 1 / 9}),
    ],
    ids=["Lidstone", "Laplace"],
)
def test_nltk_bigram_models(alpha, perplexity, scores):
    """nltk 3.10, test/unit/lm/test_models.py; a document begins with a start symbol in ours too."""
    ended = [[*s, "</s>"] for s in SENTENCES]
    clf = bg.MarkovNB(2, alpha, vocabulary=VOCABULARY).fit(ended, ["x", "x"])
    log_p = clf.score_samples([["a", "c", "<UNK>", "d", "c", "</s>"]], "posterior_mean")
    np.testing.assert_allclose(np.exp(-log_p / 6), perplexity, rtol=1e-4)
    theta = clf.estimates()["theta"].sel({"class": "x"})
    for (context, token), expected in scores.items():
        assert theta.sel(context=context, token=token) == pytest.approx(expected)
    np.testing.assert_allclose(theta.sum("token"), 1.0)


def test_nltk_bigram_maximum_likelihood():
    ended = [[*s, "</s>"] for s in SENTENCES]
    clf = bg.MarkovNB(2, vocabulary=VOCABULARY).fit(ended, ["x", "x"])
    seen = ["a", "b", "<UNK>", "a", "d", "</s>"]
    log_p = clf.score_samples([seen, ["a", "c", "d", "</s>"]], "mle")
    np.testing.assert_allclose(np.exp(-log_p / 6), [2.1398, np.inf], rtol=1e-4)


def test_nltk_naive_bayes():
    """nltk 3.10, test/classify.doctest: expected likelihood estimates, None a value like others."""
    rows = ["111", "111", "110", "011", "011", "001", "010", "000", "011", ("None", "1", "0")]
    clf = bg.CategoricalNB(0.5, class_alpha=0.5).fit([*map(list, rows)], list("yxyxyyxxyx"))
    p = clf.predict_proba([list(row) for row in ("101", "100", "011", "010")])
    expected = [[0.25, 0.75], [0.5833, 0.4167], [0.3571, 0.6429], [0.7, 0.3]]
    np.testing.assert_allclose(p, expected, atol=5e-5)


def test_creme_unseen_features():
    """creme 0.6.1, naive_bayes/test_multinomial.py: words that training has not seen."""
    rows = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]])  # cloudy cold; sunny warm; new word
    clf = bg.MultinomialNB(class_alpha=TINY).fit(rows, [0, 1])
    joint = clf.predict_joint_log_proba([[0, 0, 0, 0, 1, 1]], method="posterior_mean")[0]
    assert joint[0] == joint[1]
    assert np.exp(clf.feature_log_prob_[0, 4]) == pytest.approx(1 / (2 + 6))
    assert clf.predict([[0, 0, 0, 0, 1, 1]]) == 0  # the first of equals


@pytest.mark.parametrize("ess", [None, 5.0], ids=["K2", "BDeu"])
def test_pgmpy_scores_of_the_naive_bayes_graph(ess):
    """pgmpy 1.1, structure scores: the evidence, by a local score of each variable given y."""
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 3, (50, 4)), rng.integers(0, 2, 50)
    tables = [np.bincount(labels)[None]]
    tables += [np.array([np.bincount(x[labels == c], minlength=3) for c in (0, 1)]) for x in rows.T]
    expected = 0.0
    for n in tables:  # (parents' values, states)
        a = np.full(n.shape, 1.0 if ess is None else ess / n.size)
        expected += (gammaln(a.sum(1)) - gammaln((a + n).sum(1))).sum()
        expected += (gammaln(a + n) - gammaln(a)).sum()
    alpha, class_alpha = (1.0, 1.0) if ess is None else (ess / 6, ess / 2)
    clf = bg.CategoricalNB(alpha, class_alpha=class_alpha).fit(rows, labels)
    assert clf.log_evidence_ == pytest.approx(expected, rel=1e-13)
