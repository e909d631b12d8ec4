"""Pools of tables with columns of texts: each is read by language models of its own."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import softmax

import bayesgen as bg
from bayesgen.encoding.suspects import documents
from bayesgen.posterior.pooled import comparable

pytestmark = pytest.mark.usefixtures("few_exponents")
N = 60
WORDS = {"a": "the cat sat on my old warm mat today", "b": "a dog ran off with your new red ball"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = np.array(list("ab"))[rng.integers(2, size=N)]
    mixed = [WORDS[c if rng.random() < 0.8 else "b"].split() for c in y]
    text = [" ".join(rng.choice(words, 6)) for words in mixed]
    x = rng.normal(size=N) + (y == "a")
    return pd.DataFrame({"x": x, "text": text, "kind": rng.choice(["u", "v"], N)}), y


@pytest.fixture(scope="module")
def pool(table):
    return bg.LogLinearPool().fit(*table)


def test_each_part_of_the_columns_has_members(table, pool):
    X, y = table
    assert documents(X) == documents(pl.from_pandas(X)) == ["text"]
    posterior = pool.fitted_.posterior
    seen = {m.selection for m in posterior.members}
    assert seen == {"text", ("x", "kind")}
    assert not pool.fitted_.training.suspects
    rows = pool.fitted_.encoded(X)
    for name, clf in pool.members_.items():  # each scores what it was shown
        member = next(m for m in posterior.members if m.name == name)
        seen = rows.seen(member)
        alone = type(clf)(**clf.get_params()).fit(seen, y)
        if isinstance(clf, bg.MetaTreeForest):  # without a density of rows: class weights are 1 / C
            expected = alone.predict_log_proba(seen) - np.log(2)
        else:
            expected = alone.predict_joint_log_proba(seen)
        np.testing.assert_allclose(rows.log_joint(member), expected)
    assert posterior.prior.family.mean == 2 / len(pool.members_)
    assert "would have 2" in str(pool.summary())


def test_a_missing_text_is_an_empty_one_which_explains_nothing(table, pool):
    X, _ = table
    gaps, empty = (X.assign(text=[text, *X["text"][1:]]) for text in (None, ""))
    np.testing.assert_array_equal(pool.predict_proba(gaps), pool.predict_proba(empty))
    assert not pool.explain(empty[:1])["predictive"].sel(feature="text").any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[["x", "text"]], "seen at fit time, yet now missing:\n- kind"),
        (lambda X: X[["text", "kind", "x"]], "in the same order as they were in fit"),
        (lambda X: X.assign(z=1), "unseen at fit time:\n- z"),
        (lambda X: X.assign(text=3), "column 'text' holds 3 in row 0"),
        (lambda X: X.to_numpy(), "without names of columns"),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_other_columns(table, pool, change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        pool.predict_proba(change(table[0]))


def test_texts_alone(table):
    X, y = table
    alone = bg.LogLinearPool().fit(X[["text"]], y)
    listed = bg.LogLinearPool().fit(X["text"], y)
    p = listed.predict_proba(X["text"])
    np.testing.assert_allclose(alone.predict_proba(X[["text"]]), p, rtol=1e-12)


def test_draws_of_a_wide_model_fit_into_memory(table):
    texts = [f"{a} w{i} w{i + 1} w{i + 2}" for i, a in enumerate(WORDS["a"].split() * 400)]
    y = np.arange(len(texts)) % 2
    pool = bg.LogLinearPool([bg.MarkovNB(2, tokens="word")]).fit(texts, y)
    intervals = pool.predict_interval(texts[:3], draws=20)
    assert np.isfinite(intervals["interval"]).all()


def test_evidence_of_long_documents_is_tempered_by_their_roots():
    rng = np.random.default_rng(1)
    y = np.arange(40) % 2
    texts = ["".join(rng.choice(list("aab" if c else "abb"), 3 + 2 * i)) for i, c in enumerate(y)]
    pool = bg.LogLinearPool([bg.MarkovNB(1)], intercepts=False).fit(texts, y)
    new = ["ab", "a" * 9, "ab" * 60]
    mean = np.sqrt([len(text) for text in texts]).mean()
    factor = np.minimum(mean / np.sqrt([len(text) for text in new]), 1.5)
    evidence = pool.members_["MarkovNB"].predict_joint_log_proba(new) - np.log(0.5)
    eta, _ = pool.fitted_.posterior.exponents.flat
    logit = eta[:, :, None] * (factor[:, None] * evidence)
    p = softmax(logit, axis=2).mean(axis=0)
    np.testing.assert_allclose(pool.predict_proba(new), p, rtol=1e-9)
    posterior, rows = pool.fitted_.posterior, pool.fitted_.encoded(texts)
    left_out = rows.log_joint_without(posterior.members[0], y, np.ones(40))
    weights = np.where(y[:, None] == [0, 1], 20, 21) / 41  # of the other rows, and pseudo-counts
    factor = np.minimum(mean / np.sqrt([len(text) for text in texts]), 1.5)
    scores = comparable(left_out - np.log(weights)) * factor[:, None]
    np.testing.assert_allclose(posterior.scored.evidence.scores[0], scores, rtol=1e-9, atol=1e-9)


def test_a_fit_that_is_worse_than_the_class_frequencies_warns():
    rng = np.random.default_rng(1)
    texts = [
        "".join(rng.choice(list("abcd"), 200, p=rng.dirichlet(np.ones(4)))) for _ in range(120)
    ]
    with pytest.warns(UserWarning, match=r"log loss .* and 0\.70 of the class.*LogLinearPool\(\["):
        bg.MarkovNB(1).fit(texts, np.arange(120) % 2)
