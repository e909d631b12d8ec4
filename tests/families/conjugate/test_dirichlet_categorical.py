"""Categories: one never seen is one that had been declared; edges, refusals, counts of 1e12."""

import numpy as np
import pytest

from bayesgen.families.conjugate.dirichlet_categorical import CategoricalStats, DirichletCategorical

SIZES = (3, 2, 4, 1)
RNG = np.random.default_rng(0)
X = np.stack([RNG.integers(0, k, 60) for k in SIZES], axis=1).astype(float)
Y = RNG.integers(3, size=60)
GAPS = np.where(RNG.random(X.shape) < 0.2, np.nan, X)


def fitted(rows=X, n_categories=SIZES, **prior):
    family = DirichletCategorical(n_categories=n_categories, **prior)
    seen = family.stats(rows, Y, 3)
    return family.resolve(seen).update(seen), seen


@pytest.mark.parametrize("j", range(4))
def test_an_unseen_category_is_one_that_had_been_declared(j):
    alpha = np.random.default_rng(1).gamma(2.0, size=(3, 4, 5)) + 0.1
    alpha *= np.arange(5) < np.array(SIZES)[:, None]
    posterior, _ = fitted(GAPS, alpha=alpha[..., :4])
    k, sizes = SIZES[j], np.array(SIZES) + (np.arange(4) == j)
    alpha[:, j, k] = alpha[:, j].sum(axis=-1) / k
    declared, _ = fitted(GAPS, tuple(sizes), alpha=alpha[..., : max(sizes)])
    named = np.where(np.arange(4) == j, k, np.nan)[None]
    expected = declared.log_predictive(named)
    for cell in (-1, k, k + 7, 0.5):
        unseen = np.where(np.arange(4) == j, cell, np.nan)[None]
        np.testing.assert_allclose(posterior.log_predictive(unseen), expected, rtol=1e-12)


def test_an_unseen_category_under_the_other_plug_ins():
    posterior, seen = fitted(alpha=1.5)
    declared, wider = fitted(n_categories=(4, 2, 4, 1), alpha=1.5)
    unseen, named = np.full((2, 1, 4), np.nan)
    unseen[0, 0], named[0, 0] = -1, 3
    for method, ours, theirs in (
        ("map", posterior.map(), declared.map()),
        ("mle", posterior.mle(seen), declared.mle(wider)),
        ("posterior_mean", posterior.mean(), declared.mean()),
    ):
        log_p = posterior.for_plug_in(method).log_likelihood(unseen, ours)
        np.testing.assert_allclose(log_p, declared.log_likelihood(named, theirs), rtol=1e-12)
        assert np.isneginf(log_p).all() == (method == "mle")


def test_chunks_with_different_categories_add_up():
    family, low = DirichletCategorical(), X[:, 2] < 2
    a, b, whole = (family.stats(X[r, :3], Y[r], 3) for r in (low, ~low, low | ~low))
    assert a.counts.shape != b.counts.shape
    np.testing.assert_array_equal(a.merge(b).counts, whole.counts)
    np.testing.assert_array_equal(b.merge(a).counts, whole.counts)
    np.testing.assert_array_equal(whole.remove(a).counts, b.counts)
    with pytest.raises(ValueError, match="only rows that were merged"):
        a.remove(b)


def test_huge_counts():
    counts = np.array([[[1e12, 3e12, 5.0]], [[0.0, 2.0, 7e12]]])
    family, seen = DirichletCategorical(n_categories=(3,)), CategoricalStats(counts)
    posterior = family.resolve(seen).update(seen)
    total = counts.sum(axis=-1) + 3
    expected = [*np.log((counts[:, 0] + 1) / total).T, np.log(1 / (total[:, 0] + 1))]
    log_p = posterior.log_predictive(np.array([[0], [1], [2], [-1]]))
    np.testing.assert_allclose(log_p, expected, rtol=1e-13)
    one = CategoricalStats(np.array([[[0.0, 1, 0]], [[0.0, 0, 0]]]))
    assert posterior.log_evidence(one) == pytest.approx(expected[1][0], rel=1e-11)
