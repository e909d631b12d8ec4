"""Dirichlet-Markov: enumeration, the chain rule in exact fractions, SciPy, mpmath, plain loops."""

from collections import Counter
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from bayesgen.families.conjugate.dirichlet_markov import DirichletMarkov
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.shared.ngrams import START, MarkovStats
from bayesgen.numerics import kernels

RNG = np.random.default_rng


def documents(*lists):
    X = np.empty(len(lists), dtype=object)
    for i, document in enumerate(lists):
        X[i] = np.array(document, dtype=np.int64)
    return X


def every_document(n_tokens, longest):
    return documents(*(d for k in range(longest + 1) for d in product(range(n_tokens), repeat=k)))


def random_documents(rng, n, n_tokens, longest=8):
    return documents(*(rng.integers(n_tokens, size=rng.integers(longest + 1)) for _ in range(n)))


def fitted(X, y, order, n_tokens, alpha=1.0, n_classes=None, **settings):
    family = DirichletMarkov(order, n_tokens, alpha, **settings)
    stats = family.stats(X, np.asarray(y), n_classes or int(np.max(y)) + 1)
    return family.resolve(stats).update(stats)


def ngram_counts(X, order):
    """Counter of (context, token) by a plain loop."""
    counts = Counter()
    for document in X:
        padded = [START] * (order - 1) + [int(v) for v in document]
        for i in range(order - 1, len(padded)):
            counts[tuple(padded[i - order + 1 : i]), padded[i]] += 1
    return counts


def chain_rule(train, document, order, alpha):
    """p(document) as a product of one-step predictives, updated within it: an exact fraction."""
    counts = ngram_counts(train, order)
    alpha = [Fraction(float(a)) for a in alpha]
    p = Fraction(1)
    padded = [START] * (order - 1) + [int(v) for v in document]
    for i in range(order - 1, len(padded)):
        h = tuple(padded[i - order + 1 : i])
        total = sum(alpha) + sum(counts[h, v] for v in range(len(alpha)))
        p *= (alpha[padded[i]] + counts[h, padded[i]]) / total
        counts[h, padded[i]] += 1
    return p


@pytest.mark.parametrize(("order", "n_tokens"), [(1, 3), (2, 1), (2, 3), (3, 2)])
def test_predictive_is_the_chain_rule_and_sums_to_one(order, n_tokens):
    rng = RNG(order * 10 + n_tokens)
    X, y = random_documents(rng, 12, n_tokens), np.arange(12) % 2
    alpha = rng.integers(1, 9, size=(3, n_tokens)) / 4  # class 2 has no rows
    posterior = fitted(X, y, order, n_tokens, alpha, n_classes=3)
    new = every_document(n_tokens, 4)
    p = np.exp(posterior.log_predictive(new))
    lengths = np.array([len(d) for d in new])
    for k in range(5):
        np.testing.assert_allclose(p[lengths == k].sum(axis=0), 1.0, rtol=1e-12)
    for c in range(3):
        exact = [float(chain_rule(X[y == c], d, order, alpha[c])) for d in new]
        np.testing.assert_allclose(p[:, c], exact, rtol=1e-12)
    at_mean = posterior.log_likelihood(new, posterior.mean())
    np.testing.assert_allclose(posterior.log_density_at_mean(new), at_mean, atol=1e-12)


def test_huge_counts_keep_their_digits():
    grams = np.array([[START, 0], [0, 0], [0, 1]])
    stats = MarkovStats(grams, np.array([[5.0, 1e12, 3e12]]), 2)
    prior = DirichletMarkov(2, 2, 0.5).resolve(stats)
    got = prior.update(stats).log_predictive(documents([0, 0, 1, 1, 0, 1]))[0, 0]
    # START->0; 0->0, 0->1 twice from the counts; 1->1, 1->0 from the prior
    a, b, f = mpmath.mpf(1e12) + 0.5, mpmath.mpf(3e12) + 0.5, mpmath.mpf
    want = mpmath.log(f("5.5") / 6 * a * b * (b + 1) / ((a + b) * (a + b + 1) * (a + b + 2)) / 8)
    assert got == pytest.approx(float(want), rel=1e-12)


def test_a_vocabulary_whose_ngrams_overflow_64_bits():
    rng = RNG(1)
    words = rng.integers(10**6, size=7)
    X = documents(*(rng.choice(words, size=20) for _ in range(30)))
    family = DirichletMarkov(5, 10**6, 0.1)
    stats = family.stats(X, np.zeros(30, dtype=int), 1)
    want = ngram_counts(X, 5)
    got = {
        (tuple(g[:-1]), g[-1]): n
        for g, n in zip(stats.grams.tolist(), stats.counts[0], strict=True)
    }
    assert got == want
    assert np.array_equal(stats.grams, sorted(stats.grams.tolist()))


def test_unknown_tokens_are_left_out_of_the_product():
    order, rng = 2, RNG(5)
    X, y = random_documents(rng, 12, 3), np.arange(12) % 2
    posterior = fitted(X, y, order, 3, alpha=np.array([[0.5, 1, 2], [1, 1, 3]]))
    document = [0, -1, 2, 2, -1, 0, 1]
    for c, alpha in enumerate(posterior.alpha):
        seen, before, want = ngram_counts(X[y == c], order), Counter(), 0.0
        for (h, v), n in ngram_counts([document], order).items():
            for _ in range(n if v >= 0 else 0):
                total = alpha.sum() + sum(seen[h, k] + before[h, k] for k in range(3))
                want += np.log((alpha[v] + seen[h, v] + before[h, v]) / total)
                before[h, v] += 1
        assert posterior.log_predictive(documents(document))[0, c] == pytest.approx(want, rel=1e-12)
    nothing = documents([-1, -1], [])
    assert not posterior.log_predictive(nothing).any()
    assert not posterior.log_likelihood(nothing, posterior.mean()).any()
    assert not posterior.draw_log_density(0, nothing, 3).any()


def test_contexts_are_closed_under_reading_on():
    posterior = fitted(documents([0, 1], [1, 1, 2]), [0, 0], 3, 3)
    S = START
    assert posterior.contexts.tolist() == [[S, S], [S, 0], [S, 1], [0, 1], [1, 1], [1, 2]]
    assert posterior.mean()["theta"].shape == (1, 6, 3)
    assert posterior.n_parameters() == 18


def test_a_prior_lists_every_context_or_says_why_not():
    prior = DirichletMarkov.examples(2, 2)[3]
    S = START
    want = [[S, S], [S, 0], [S, 1], [0, 0], [0, 1], [1, 0], [1, 1]]
    assert prior.contexts.tolist() == want
    assert prior.draw(RNG(0), 5)["theta"].shape == (5, 2, 7, 2)
    assert prior.n_parameters() == 28
    large = DirichletMarkov.examples(2, 100)[3]
    assert large.n_parameters() == 2 * (1 + 100 + 100**2) * 100
    with pytest.raises(ValueError, match="10101 are possible"):
        large.draw(RNG(0), 1)
    assert np.isfinite(large.log_predictive(documents([1, 99, 4]))).all()


def test_theta_of_another_posterior_is_refused():
    a, b = fitted(documents([0, 1]), [0], 2, 2), fitted(documents([0]), [0], 2, 2)
    with pytest.raises(ValueError, match=r"theta is a table of 3 contexts .* has 2 and 2"):
        b.log_likelihood(documents([0]), a.mean())


def test_mle_makes_everything_unseen_impossible():
    family = DirichletMarkov(2, 3)
    stats = family.stats(documents([0, 1, 0, 2], [1]), np.array([0, 1]), 2)
    posterior = family.resolve(stats).update(stats)
    new = documents([0, 1], [0, 1, -1], [1], [0, 0])
    log_p = posterior.log_likelihood(new, family.mle(stats))
    np.testing.assert_allclose(np.exp(log_p), [[0.5, 0], [0.5, 0], [0, 1], [0, 0]])
    stats = family.stats(documents([0, 1], []), np.array([0, 1]), 2)
    with pytest.raises(UndefinedEstimateError, match="class 1") as caught:
        family.mle(stats)  # which needs a token in every class
    assert (caught.value.class_index, caught.value.feature_index) == (1, None)


def test_generation_gives_valid_codes_also_at_dead_ends():
    family = DirichletMarkov(3, 5, 0.01, length=50)
    stats = family.stats(documents([0, 1, 2], [3]), np.array([0, 1]), 2)
    posterior, rng = family.resolve(stats).update(stats), RNG(0)
    for theta in (family.mle(stats), posterior.mean()):
        text = np.stack(list(posterior.simulate(rng, theta, np.array([0, 1, 1]))))
        assert text.shape == (3, 50)
        assert text.min() >= 0
        assert text.max() < 5


@pytest.mark.parametrize("order", [1, 2, 3])
def test_compiled_urns_agree(order, monkeypatch):
    """Known, unknown and repeated tokens, contexts never seen, empty documents."""
    rng = np.random.default_rng(order)
    train = documents(*(rng.integers(0, 4, n) for n in (9, 30, 0, 12)))
    alpha = np.array([0.3, 1.0, 2.0, 0.5, 1.0])
    posterior = fitted(train, np.array([0, 0, 1, 1]), order, 5, alpha)
    lengths = (*rng.integers(0, 40, 60), 3000)
    X = documents(*(rng.integers(-1, 5, n) for n in lengths))
    plain = posterior.log_predictive(X)
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    np.testing.assert_allclose(posterior.log_predictive(X), plain, rtol=1e-12, atol=1e-12)
