"""`MarkovNB` over mixed orders, as users have it."""

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.errors import (
    MissingCapabilityError,
    NoPosteriorError,
    UndefinedEstimateError,
)

RNG = np.random.default_rng(7)
CODES = np.arange(48) % 3
LABELS = np.array(["ash", "birch", "cedar"])[CODES]
TEXTS = np.array(
    ["".join(RNG.choice(list(("aab ", "abb ", "bccc ")[c]), 12)) for c in CODES], dtype=object
)
NEW = np.array(["abba", "ccb a", "", "xyz", "a?a"], dtype=object)


@pytest.fixture(params=["hierarchical", "context_tree"])
def smoothing(request):
    return request.param


def made(smoothing, **arguments):
    if smoothing == "hierarchical":  # the defaults are for more than a few hundred tokens
        arguments = {"concentration": 10.0, "strength": 3000.0} | arguments
    return bg.MarkovNB(4, smoothing=smoothing, **arguments)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_of_the_training_documents(smoothing, weighted):
    weight = RNG.choice([0.0, 0.5, 2.0], size=48) if weighted else np.ones(48)
    clf = made(smoothing).fit(TEXTS, LABELS, sample_weight=weight)
    wrong = TEXTS.copy()
    wrong[5] = "abcabc"
    with pytest.raises(ValueError, match="training rows"):
        clf.loo(wrong, LABELS, sample_weight=np.where(weight > 0, weight, 1.0))
    fewer = TEXTS.copy()
    fewer[weight > 0] = [text[:-1] for text in TEXTS[weight > 0]]
    with pytest.raises(ValueError, match="training rows"):
        clf.loo(fewer, LABELS, sample_weight=weight)


def test_perplexity_and_generated_text(smoothing):
    clf = made(smoothing).fit(TEXTS, LABELS)
    perplexity = clf.perplexity(NEW, y="ash")
    assert np.isnan(perplexity[2])
    assert 1 < perplexity[0] < perplexity[1] < perplexity[3]
    documents, labels = clf.simulate(60, y="cedar", random_state=1, length=9)
    assert set(labels) == {"cedar"}
    assert {len(d) for d in documents} == {9}
    assert set("".join(documents)) <= set("abc ")
    assert np.mean([d.count("c") for d in documents]) > 4
    assert (clf.predict(documents) == "cedar").mean() > 0.9


def test_an_unknown_token_and_the_start_have_the_probability_they_are_said_to_have(smoothing):
    """Over the next token, an unknown one included, probabilities sum to 1 at the first place."""
    clf = made(smoothing).fit(TEXTS, LABELS)
    log_p = clf.predict_joint_log_proba(["a", "b", "c", " ", "?"])
    weights = np.exp(clf.predict_joint_log_proba([""])[0])
    np.testing.assert_allclose(np.exp(log_p).sum(axis=0), weights, rtol=1e-12)


def test_the_tree_has_evidence_depths_and_draws():
    clf = made("context_tree").fit(TEXTS, LABELS)
    shuffled = RNG.permutation(48)
    again = made("context_tree").fit(TEXTS[shuffled], LABELS[shuffled])
    assert again.log_evidence_ == pytest.approx(clf.log_evidence_, rel=1e-12)
    depths = clf.context_depths()["probability"]
    np.testing.assert_allclose(depths.sum("depth"), 1.0, rtol=1e-12)
    tables = clf.draw_posterior(20, 1)["posterior"]["tables"]
    leaves = tables.sum("token")
    assert set(np.unique(leaves.round(9))) <= {0.0, 1.0}
    assert tables.token.to_numpy()[-1] == "␦"


def test_what_a_smoothing_does_not_have_is_refused_with_the_reason(smoothing):
    clf = made(smoothing).fit(TEXTS, LABELS)
    with pytest.raises(MissingCapabilityError, match="explain"):
        clf.explain(NEW)
    if smoothing == "context_tree":
        with pytest.raises(NotImplementedError, match="tree is a discrete parameter"):
            clf.to_pymc()
        with pytest.raises(UndefinedEstimateError, match="different dimensions"):
            clf.predict_proba(NEW, method="map")
        return
    for ask in (
        lambda: clf.log_evidence_,
        lambda: clf.posterior_,
        lambda: clf.predict_interval(NEW),
        lambda: clf.predict_uncertainty(NEW),
        lambda: clf.predict_posterior(NEW),
        lambda: clf.simulate(2, source="draw"),
        lambda: made(smoothing, prior="empirical").fit(TEXTS, LABELS),
    ):
        with pytest.raises(NoPosteriorError, match="Kneser-Ney"):
            ask()
    with pytest.raises(NotImplementedError, match="no trees"):
        clf.context_depths()
    table = bg.compare_models(
        {"mixed": clf, "fixed": bg.MarkovNB().fit(TEXTS, LABELS)}, TEXTS, LABELS
    )
    assert np.isnan(table.table["log_evidence"].sel(model="mixed"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"smoothing": "none"}, "smoothing must be one of"),
        ({"smoothing": "hierarchical", "alpha": 2.0}, "alpha is for smoothing='dirichlet'"),
        ({"discount": 0.5}, "discount is for smoothing='hierarchical'"),
        ({"smoothing": "context_tree", "base": "words"}, "base must be"),
        ({"smoothing": "hierarchical", "base": "uniform"}, "base is for smoothing='context_tree'"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        bg.MarkovNB(**arguments).fit(TEXTS, LABELS)


def test_a_base_names_tokens_and_what_is_outside():
    clf = made("context_tree", base={"a": 3.0, "b": 2.0, None: 1.0}).fit(TEXTS, LABELS)
    np.testing.assert_allclose(clf.prior_.family.base[0], np.array([1, 3, 2, 1, 1]) / 8)


def test_perplexity_takes_one_label_or_one_for_each_document():
    clf = bg.MarkovNB().fit(["ab", "ba", "bb"], [0, 1, 1])
    rows = ["ab", "ba", "a"]
    np.testing.assert_array_equal(clf.perplexity(rows, 1), clf.perplexity(rows, [1, 1, 1]))
    for y in ([0, 1], [1], [[0, 1, 1]]):
        with pytest.raises(ValueError, match="X has 3 documents, and y has shape"):
            clf.perplexity(rows, y)


def test_dirichlet_perplexity_of_unknown_tokens_is_marked_and_no_other():
    """Over the next token, an unknown one included, its probabilities sum to more than 1."""
    clf = bg.MarkovNB(4, 0.5).fit(TEXTS, LABELS)
    log_p = clf.predict_joint_log_proba(["a", "b", "c", " ", "?"])
    weights = np.exp(clf.predict_joint_log_proba([""])[0])
    total, known = (np.exp(part).sum(axis=0) / weights for part in (log_p, log_p[:4]))
    np.testing.assert_allclose(known, 1.0, rtol=1e-12)
    assert (total > 1.02).all()
    assert np.isfinite(clf.perplexity(["abba", "c"])).all()
    with pytest.warns(UserWarning, match="2 tokens are outside the vocabulary"):
        clf.perplexity(["abba", "a??"])
    others = {s: made(s).fit(TEXTS, LABELS) for s in ("hierarchical", "context_tree")}
    with pytest.raises(ValueError, match="document 0 has a token outside the vocabulary"):
        bg.compare_models({"dirichlet": clf} | others, ["a??", *TEXTS[1:]], LABELS)
