"""top_words: log odds of words and their intervals, against quadrature of Beta densities."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import beta
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import bayesgen as bg

TEXTS = ["free money now", "free prize money", "meeting at noon", "lunch at noon now"] * 5
LABELS = ["spam", "spam", "ham", "ham"] * 5


@pytest.mark.parametrize("estimator", [bg.MultinomialNB, bg.BernoulliNB])
def test_log_odds_and_intervals_are_those_of_two_betas(estimator):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.poisson(np.array([[0.2, 1.0, 3.0], [2.0, 1.0, 0.1]])[y])
    table = bg.top_words(estimator().fit(X, y), n=3, prob=0.8)
    data = X if estimator is bg.MultinomialNB else X > 0
    a = 1.0 + np.array([data[y == c].sum(axis=0) for c in (0, 1)])
    b = a.sum(axis=1)[:, None] - a if estimator is bg.MultinomialNB else 2.0 + 30 - a
    for c in (0, 1):
        of_class = table.sel({"class": c}).to_dataframe().set_index("word")
        assert of_class.index[0] == ["x2", "x0"][c]
        assert of_class["lower"].is_monotonic_decreasing
        for j in range(3):
            row = of_class.loc[f"x{j}"]
            terms = digamma(a[:, j]) - digamma((a + b)[:, j])
            assert row["log_odds"] == pytest.approx(terms[c] - terms[1 - c], abs=0.05)
            assert row["count"] == data[y == c, j].sum()
            mine, other = (beta(a[k, j], b[k, j]) for k in (c, 1 - c))
            for end, tail in (("lower", 0.1), ("upper", 0.9)):
                ratio = np.exp(row[end])
                p, _ = quad(lambda v, r=ratio, m=mine, o=other: m.cdf(r * v) * o.pdf(v), 0, 1)
                assert abs(p - tail) < 5 * np.sqrt(0.1 * 0.9 / 4000)


def test_names_come_from_the_vectorizer_and_the_table_is_tidy():
    clf = make_pipeline(CountVectorizer(), bg.MultinomialNB()).fit(TEXTS, LABELS)
    words = bg.top_words(clf, n=2)
    assert set(words["word"].sel({"class": "spam"}).values) == {"free", "money"}
    assert set(words["word"].sel({"class": "ham"}).values) == {"at", "noon"}
    table = words.to_dataframe().reset_index()
    columns = ["class", "rank", "word", "log_odds", "lower", "upper", "count"]
    assert list(table.columns) == columns
    frame = pd.DataFrame({"up": [1, 1, 0, 0], "down": [0, 0, 1, 1]})
    bits = bg.BernoulliNB().fit(frame, ["b", "b", "a", "a"])
    assert bg.top_words(bits, n=1)["word"].values.tolist() == [["down"], ["up"]]


def test_more_words_than_there_are_and_more_than_two_classes():
    X = np.eye(3).repeat(8, axis=0) * 4
    table = bg.top_words(bg.MultinomialNB().fit(X, np.repeat(list("abc"), 8)), n=9)
    assert table.sizes == {"class": 3, "rank": 3}
    assert table["word"].values[:, 0].tolist() == ["x0", "x1", "x2"]


@pytest.mark.parametrize(
    ("best", "others"),
    [  # shares of rows of class a, the common and the rare one that have the word
        # against classes as they come the first is surest; against classes alike, the others are
        ((0.98, 0.01, 0.9), (0.3, 0.05, 0.05)),
        # of the rare class too little is known of the first, which matters as little as the class
        ((0.98, 0.01, 0.0), (0.6, 0.01, 0.5)),
    ],
)
def test_few_words_are_the_first_of_many(best, others):
    rows = [200, 4000, 40]
    y = np.repeat(["a", "common", "rare"], rows)
    X = np.zeros((len(y), 13))
    for j, shares in enumerate([best] + 12 * [others]):
        has = [np.arange(n) < round(share * n) for n, share in zip(rows, shares, strict=True)]
        X[:, j] = np.concatenate(has)
    clf = bg.BernoulliNB().fit(X, y)
    for n in (13, 1):
        assert bg.top_words(clf, n=n)["word"].sel({"class": "a"}).values[0] == "x0"


def test_other_classifiers_are_refused():
    with pytest.raises(TypeError, match=r"BernoulliNB or MultinomialNB.*GaussianNB"):
        bg.top_words(bg.GaussianNB().fit([[0.0], [1.0]], [0, 1]))
