"""Perplexity of MarkovNB: labels of documents, tokens outside the vocabulary."""

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


def test_perplexity_of_unknown_tokens_is_marked():
    """Over the next token, an unknown one included, the probabilities sum to more than 1."""
    clf = bg.MarkovNB(4, 0.5).fit(TEXTS, LABELS)
    log_p = clf.predict_joint_log_proba(["a", "b", "c", " ", "?"])
    weights = np.exp(clf.predict_joint_log_proba([""])[0])
    total, known = (np.exp(part).sum(axis=0) / weights for part in (log_p, log_p[:4]))
    np.testing.assert_allclose(known, 1.0, rtol=1e-12)
    assert (total > 1.02).all()
    assert np.isfinite(clf.perplexity(["abba", "c"])).all()
    with pytest.warns(UserWarning, match="2 tokens are outside the vocabulary"):
        clf.perplexity(["abba", "a??"])
