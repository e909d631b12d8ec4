"""MarkovNB: perplexity, tokens outside the vocabulary, and a warning of overconfidence."""

import numpy as np
import pytest

import bayesgen as bg

RNG = np.random.default_rng(0)
LABELS = np.arange(24) % 2
TEXTS = np.array(["".join(RNG.choice(list("aabc "), 12)) for _ in LABELS], dtype=object)


def test_perplexity_takes_one_label_or_one_for_each_document():
    clf = bg.MarkovNB().fit(["ab", "ba", "bb"], [0, 1, 1])
    rows = ["ab", "ba", "a"]
    np.testing.assert_array_equal(clf.perplexity(rows, 1), clf.perplexity(rows, [1, 1, 1]))
    for y in ([0, 1], [1], [[0, 1, 1]]):
        with pytest.raises(ValueError, match="X has 3 documents, and y has shape"):
            clf.perplexity(rows, y)


def test_perplexity_is_that_of_the_tokens_in_the_vocabulary():
    clf = bg.MarkovNB(1, 0.5).fit(TEXTS, LABELS)
    with pytest.warns(UserWarning, match="2 tokens are outside the vocabulary"):
        perplexity = clf.perplexity(["abba", "a?bb?a"])
    assert perplexity[0] == pytest.approx(perplexity[1], rel=1e-12)
    assert np.isnan(clf.perplexity([""])).all()


def test_a_fit_that_is_worse_than_the_class_frequencies_warns():
    rng = np.random.default_rng(1)
    texts = [
        "".join(rng.choice(list("abcd"), 200, p=rng.dirichlet(np.ones(4)))) for _ in range(120)
    ]
    with pytest.warns(UserWarning, match=r"log loss .* and 0\.70 of the class.*LogLinearPool\(\["):
        bg.MarkovNB(1).fit(texts, np.arange(120) % 2)
