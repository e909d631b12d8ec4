"""Context trees against an enumeration of all of them, token by token."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

from bayesgen.families.conjugate.context_tree import ContextTree
from bayesgen.families.errors import UndefinedEstimateError
from tests.laws.cases import close

START, UNKNOWN = -2, -1


def texts(*documents):
    out = np.empty(len(documents), dtype=object)
    out[:] = [np.array(d, dtype=np.int64) for d in documents]
    return out


def trees(symbols, depth):
    """Every context tree: its leaves as tuples of codes, nearest token first, and split nodes."""
    if depth == 0:
        return [([()], 0, 0)]  # leaves, stopped above full depth, split
    below = trees(symbols, depth - 1)
    out = [([()], 1, 0)]
    for choice in itertools.product(below, repeat=len(symbols)):
        leaves = [
            (s, *leaf) for s, (some, _, _) in zip(symbols, choice, strict=True) for leaf in some
        ]
        out.append((leaves, sum(c[1] for c in choice), 1 + sum(c[2] for c in choice)))
    return out


def log_dirichlet_multinomial(counts, alpha):
    return (
        gammaln(alpha.sum())
        - gammaln(alpha.sum() + counts.sum())
        + (gammaln(alpha + counts) - gammaln(alpha)).sum()
    )


def enumerated(documents, n_tokens, depth, strength, leaf, base, symbols):
    """Log of the sum over all trees of prior times evidence, by counting for each tree anew."""
    total = []
    for leaves, stopped, split in trees(symbols, depth):
        counts = {s: np.zeros(n_tokens + 1) for s in leaves}
        for document in documents:
            padded = [START] * depth + list(document)
            for i, token in enumerate(document):
                before = tuple(padded[i : i + depth][::-1])
                own = next(s for s in leaves if before[: len(s)] == s)
                counts[own][token] += 1
        log_p = sum(log_dirichlet_multinomial(n, strength * base) for n in counts.values())
        total.append(log_p + stopped * math.log(leaf) + split * math.log1p(-leaf))
    return np.logaddexp.reduce(total)


CASES = {
    "K = 2, depth 1": (2, 1, 0.5),
    "K = 2, depth 2": (2, 2, 0.3),
    "K = 3, depth 1": (3, 1, 0.6),
    "K = 2, depth 2, unequal base": (2, 2, 0.7),
}


@pytest.mark.parametrize("case", CASES)
def test_evidence_and_predictive_are_sums_over_all_trees(case):
    n_tokens, depth, leaf = CASES[case]
    rng = np.random.default_rng(5)
    base = np.append(np.ones(n_tokens), 0.5) if "unequal" not in case else np.array([3.0, 1, 0.2])
    base = base / base.sum()
    symbols = (START, *range(n_tokens))  # a start symbol is a branch like any other
    train = [rng.integers(n_tokens, size=n) for n in (6, 1, 9, 0)]
    new = [rng.integers(n_tokens, size=n) for n in (5, 3)]
    family = ContextTree(depth + 1, n_tokens, 2.5, leaf, base)
    stats = family.stats(texts(*train), np.zeros(4, dtype=int), 1)
    prior = family.resolve(stats)
    arguments = (n_tokens, depth, 2.5, leaf, base, symbols)
    known = enumerated(train, *arguments)
    close(prior.log_evidence(stats), known, 1e-12)
    found = prior.update(stats).log_predictive(texts(*new))[:, 0]
    expected = [enumerated([*train, document], *arguments) - known for document in new]
    close(found, np.array(expected), 1e-11)


def test_there_are_as_many_trees_as_there_should_be():
    """Of two symbols and depth 2: one, and the root split with 2 x 2 subtrees; of three, 1 + 8."""
    assert len(trees((0, 1), 2)) == 1 + 2**2
    assert len(trees((START, 0, 1), 2)) == 9


def test_probabilities_of_the_leaves_are_those_of_the_trees():
    n_tokens, depth, leaf, base = 2, 2, 0.4, np.array([0.5, 0.4, 0.1])
    train = [[0, 1, 0, 0, 1, 1, 0, 1], [1, 0, 0, 1]]
    family = ContextTree(depth + 1, n_tokens, 1.5, leaf, base)
    stats = family.stats(texts(*train), np.zeros(2, dtype=int), 1)
    posterior = family.resolve(stats).update(stats)
    symbols = (START, 0, 1)
    weights, chosen = [], []
    for tree in trees(symbols, depth):
        counts = {s: np.zeros(3) for s in tree[0]}
        for document in train:
            padded = [START] * depth + document
            for i, token in enumerate(document):
                before = tuple(padded[i : i + depth][::-1])
                counts[next(s for s in tree[0] if before[: len(s)] == s)][token] += 1
        log_p = sum(log_dirichlet_multinomial(n, 1.5 * base) for n in counts.values())
        weights.append(log_p + tree[1] * math.log(leaf) + tree[2] * math.log1p(-leaf))
        chosen.append(set(tree[0]))
    p = np.exp(np.array(weights) - np.logaddexp.reduce(weights))
    for context, found in zip(posterior.contexts, posterior.leaf_probabilities()[0], strict=True):
        nearest_first = tuple(context[::-1])
        close(found, sum(w for w, own in zip(p, chosen, strict=True) if nearest_first in own))
    total = {0: 12, 1: 12, 2: 12}
    expected = np.zeros(3)
    for w, own in zip(p, chosen, strict=True):
        for document in train:
            padded = [START] * depth + document
            for i in range(len(document)):
                before = tuple(padded[i : i + depth][::-1])
                expected[len(next(s for s in own if before[: len(s)] == s))] += w / total[0]
    close(posterior.depth_probabilities()[0], expected)


def test_next_symbols_have_probability_one_with_the_unknown_token():
    rng = np.random.default_rng(3)
    train = texts(*(rng.integers(3, size=8) for _ in range(6)))
    family = ContextTree(3)
    stats = family.stats(train, np.arange(6) % 2, 2)
    posterior = family.resolve(stats).update(stats)
    for before in ([], [0], [2, 1, 1], [1, UNKNOWN], [UNKNOWN, UNKNOWN, 0]):
        after = posterior.log_predictive(texts(*([*before, x] for x in (0, 1, 2, UNKNOWN))))
        so_far = posterior.log_predictive(texts(before))
        close(np.exp(after - so_far).sum(axis=0), np.ones(2), 1e-12)


def test_a_class_without_a_token_has_no_relative_frequencies():
    stats = ContextTree(2).stats(texts([0, 1]), np.array([0]), 2)
    with pytest.raises(UndefinedEstimateError, match=r"class 1.*it has no token"):
        ContextTree(2).resolve(stats).mle(stats)


def test_the_base_of_a_class_is_its_tokens_and_one():
    stats = ContextTree(2).stats(texts([0, 0, 1], [2]), np.array([0, 1]), 2)
    base = ContextTree(2).resolve(stats).base
    close(base, np.array([[3, 2, 1, 1], [1, 1, 2, 1]]) / np.array([[7.0], [5.0]]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"leaf": 1.0}, "below 1"),
        ({"leaf": 0.0}, "leaf must be > 0"),
        ({"strength": -1.0}, "strength must be > 0"),
        ({"base": [1.0, 2.0]}, "base has shape"),
        ({"order": 0}, "order must be at least 1"),
    ],
)
def test_what_is_refused(arguments, message):
    stats = ContextTree(2).stats(texts([0, 1, 2]), np.array([0]), 1)
    with pytest.raises(ValueError, match=message):
        ContextTree(**arguments).resolve(stats)
