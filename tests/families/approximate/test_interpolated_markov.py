"""Interpolated n-grams against dictionaries of counts, and against a hierarchy by NUTS."""

from collections import Counter

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.approximate.interpolated_markov import InterpolatedMarkov
from tests.laws.cases import close

START, UNKNOWN = -2, -1


def texts(*documents):
    out = np.empty(len(documents), dtype=object)
    out[:] = [np.array(d, dtype=np.int64) for d in documents]
    return out


def tables(documents, weights, depth):
    """{(context, token): count} for contexts of 0 .. depth tokens."""
    longest = Counter()
    for document, weight in zip(documents, weights, strict=True):
        padded = [START] * depth + list(document)
        for i, token in enumerate(document):
            longest[(*padded[i : i + depth], token)] += weight
    out = [longest]
    for _ in range(depth):
        shorter = Counter()
        for gram, n in out[0].items():
            shorter[gram[1:]] += min(n, 1.0)
        out.insert(0, shorter)
    return out


def probability(levels, context, token, n_tokens, discount, concentration, strength):
    p = 1 / (n_tokens + 1)
    for k, counts in enumerate(levels):
        before = tuple(context[len(context) - k :])
        after = {gram[-1]: n for gram, n in counts.items() if gram[:-1] == before}
        b = concentration if k else strength
        rest = b + sum(min(n, discount) for n in after.values())
        p = (max(after.get(token, 0) - discount, 0) + rest * p) / (sum(after.values()) + b)
    return p


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("discount", [0.0, 0.6])
@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_are_those_of_counts_in_dictionaries(order, discount, weighted):
    rng = np.random.default_rng(order)
    documents = [rng.integers(3, size=n) for n in (7, 1, 12, 5)]
    weight = np.array([0.4, 2.0, 0.7, 1.5]) if weighted else np.ones(4)
    family = InterpolatedMarkov(order, 3, discount, 1.5, 2.5)
    stats = family.stats(texts(*documents), np.zeros(4, dtype=int), 1, weight)
    posterior = family.resolve(stats).update(stats)
    levels = tables(documents, weight, order - 1)
    new = [0, 2, 2, UNKNOWN, 1, 0, 2]
    padded = [START] * (order - 1) + new
    expected = sum(
        np.log(probability(levels, padded[i : i + order - 1], x, 3, discount, 1.5, 2.5))
        for i, x in enumerate(new)
    )
    close(posterior.log_predictive(texts(new))[0, 0], expected, 1e-12)
    for i in range(len(new)):
        before = padded[i : i + order - 1]
        grams = np.array([[*before, x] for x in (0, 1, 2, UNKNOWN)], dtype=np.int64)
        close(posterior.probabilities(grams).sum(axis=1), np.ones(1), 1e-12)


def test_what_a_row_leaves_is_no_rounding():
    """Counts of a row alone are 0 without it, whatever order tenths were added in."""
    rng = np.random.default_rng(391)
    order = int(rng.integers(2, 5))
    documents = [rng.integers(3, size=n) for n in rng.integers(1, 30, size=4)]
    weight = rng.choice([0.1, 0.2, 0.3, 0.7, 0.9], size=4)
    family = InterpolatedMarkov(order, 3, 0.0, 1e-14, 1e-14)  # strengths that roundings outweigh

    def posterior(rows):
        own = texts(*[documents[i] for i in rows])
        stats = family.stats(own, np.zeros(len(rows), dtype=int), 1, weight[rows])
        return family.resolve(stats).update(stats)

    every = np.arange(4)
    found, _ = posterior(every).log_predictive_without(
        texts(*documents), np.zeros(4, dtype=int), weight
    )
    for i in every:
        left = posterior(np.delete(every, i))
        close(found[i], left.log_predictive(texts(documents[i]))[0], 1e-9)


def test_prior_loo_moves_the_strengths_and_keeps_what_was_given():
    rng = np.random.default_rng(1)
    X = ["".join(rng.choice(list("aab" if c else "abb"), 9)) for c in np.arange(40) % 2]
    y = np.arange(40) % 2
    chosen = bg.MarkovNB(4, smoothing="hierarchical", prior="loo").fit(X, y)
    plain = bg.MarkovNB(4, smoothing="hierarchical").fit(X, y)
    assert chosen.loo(X, y).elpd >= plain.loo(X, y).elpd
    given = bg.MarkovNB(4, smoothing="hierarchical", discount=0.3, prior="loo").fit(X, y)
    np.testing.assert_array_equal(given.prior_.family.discount, [0.3, 0.3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"discount": 1.0}, "in \\[0, 1\\)"),
        ({"discount": -0.1}, "in \\[0, 1\\)"),
        ({"concentration": 0.0}, "concentration must be > 0"),
        ({"strength": 0.0}, "strength must be > 0"),
    ],
)
def test_what_is_refused(arguments, message):
    stats = InterpolatedMarkov(2).stats(texts([0, 1, 2]), np.array([0]), 1)
    with pytest.raises(ValueError, match=message):
        InterpolatedMarkov(**arguments).resolve(stats)


def test_the_pymc_model_is_of_a_hierarchy_of_dirichlet_distributions():
    clf = bg.MarkovNB(2, smoothing="hierarchical").fit(["ab", "ba"], [0, 1])
    with pytest.raises(ValueError, match="discount=0"):
        clf.to_pymc()
    clf = bg.MarkovNB(3, smoothing="hierarchical", discount=0.0).fit(["ab", "ba"], [0, 1])
    free = [variable.name for variable in clf.to_pymc().free_RVs]
    assert [name for name in free if name.startswith("theta")] == ["theta_0", "theta_1", "theta"]


@pytest.mark.slow
def test_nuts_on_the_hierarchy_is_near_the_interpolation():
    """d = 0, three tokens, contexts of one: the posterior mean of the hierarchy, and its stand-in.

    One customer for each distinct token is an approximation, for whose error no bound is known. It
    is measured: .125 in a probability here, after six rows, by runs of 2000 and of 1000 draws
    (.127 and .122, with Monte Carlo errors of .003 and .004). On average it is less than that of
    contexts each on its own.
    """
    import arviz as az
    import pymc as pm

    rng = np.random.default_rng(8)
    chain = np.array([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.6, 0.1, 0.3]])
    documents = []
    for _ in range(6):
        text = [0]
        for _ in range(11):
            text.append(int(rng.choice(3, p=chain[text[-1]])))
        documents.append(text)
    X = ["".join("abc"[k] for k in d) for d in documents]
    clf = bg.MarkovNB(
        2, smoothing="hierarchical", discount=0.0, concentration=5.0, strength=4.0
    ).fit(X, [0] * 6)
    with clf.to_pymc():
        draws = pm.sample(
            500, tune=400, chains=2, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    theta = draws.posterior["theta"].mean(("chain", "draw")).to_numpy()[0]
    mcse = az.mcse(draws, var_names=["theta"], method="mean")["theta"].to_numpy().max()
    family = clf.model_.family
    assert theta.shape == (4, 4)  # contexts: start, a, b, c; tokens: a, b, c, unknown
    grams = np.array([[*c, x] for c in family.contexts for x in (0, 1, 2, UNKNOWN)])
    ours = family.probabilities(grams)[0].reshape(4, 4)
    alone = np.array([[1.25 + 0 * x for x in range(4)]] * 4)
    for gram, n in zip(family.grams, family.counts[0], strict=True):
        place = [tuple(c) for c in family.contexts.tolist()].index((int(gram[0]),))
        alone[place, gram[1]] += n
    alone /= alone.sum(axis=1, keepdims=True)
    assert np.abs(ours - theta).max() < 0.125 + 5 * mcse
    assert np.abs(ours - theta).mean() < np.abs(alone - theta).mean()
