"""Tests of peers' own suites, asked of ours: same data, same call, the same number.

Named by suite and test. Where ours differ by design the test says how: a prior of no weight for a
peer without one, ``method="posterior_mean"`` for a peer that plugs estimates in.
"""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

import bayesgen as bg

TINY = 1e-10  # a prior that weighs nothing
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
