"""Categories: against enumeration, SciPy, a numerical optimiser, and the declared category."""

from dataclasses import replace

import numpy as np
import pytest

from bayesgen.families.conjugate.dirichlet_categorical import CategoricalStats, DirichletCategorical
from bayesgen.families.errors import UndefinedEstimateError

SIZES = (3, 2, 4, 1)


def some_rows(seed=0, n=60, n_classes=3, missing=0.0):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in SIZES], axis=1).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, rng.integers(n_classes, size=n)


def fitted(X, y, n_classes=3, weight=None, n_categories=SIZES, **prior):
    family = DirichletCategorical(n_categories=n_categories, **prior)
    seen = family.stats(X, y, n_classes, weight)
    return family.resolve(seen).update(seen), seen


def test_an_unseen_category_is_one_that_had_been_declared():
    X, y = some_rows(missing=0.2)
    alpha = np.random.default_rng(1).gamma(2.0, size=(3, 4, 4)) + 0.1
    alpha *= np.arange(4) < np.array(SIZES)[:, None]
    posterior, _ = fitted(X, y, alpha=alpha)
    for j, k in enumerate(SIZES):
        wider = np.zeros((3, 4, 5))
        wider[..., :4] = alpha
        wider[:, j, k] = alpha[:, j].sum(axis=-1) / k
        sizes = tuple(size + (i == j) for i, size in enumerate(SIZES))
        if max(sizes) == 4:
            wider = wider[..., :4]
        declared, _ = fitted(X, y, n_categories=sizes, alpha=wider)
        unseen, known = np.full((2, 4), np.nan)[:, None, :]
        unseen[0, j], known[0, j] = -1, k
        expected = declared.log_predictive(known)
        for cell in (-1, k, k + 7, 0.5):
            unseen[0, j] = cell
            np.testing.assert_allclose(posterior.log_predictive(unseen), expected, rtol=1e-12)


def test_chunks_with_different_categories_add_up():
    family = DirichletCategorical()
    X, y = some_rows()
    low = X[:, 2] < 2
    a, b = family.stats(X[low][:, :3], y[low], 3), family.stats(X[~low][:, :3], y[~low], 3)
    whole = family.stats(X[:, :3], y, 3)
    assert a.counts.shape != b.counts.shape
    np.testing.assert_array_equal(a.merge(b).counts, whole.counts)
    np.testing.assert_array_equal(b.merge(a).counts, whole.counts)
    np.testing.assert_array_equal(whole.remove(a).counts, b.counts)
    with pytest.raises(ValueError, match="only rows that were merged"):
        a.remove(b)


def test_alpha_may_be_given_for_classes_features_or_categories():
    X, y = some_rows()
    by_class, _ = fitted(X, y, alpha=[[1.0], [2.0], [3.0]])
    by_feature, _ = fitted(X, y, alpha=[1.0, 2.0, 3.0, 4.0])
    plain, seen = fitted(X, y, alpha=1.0)
    extra = by_class.alpha - plain.alpha
    assert {*np.unique(extra[1])} == {0.0, 1.0}
    assert by_feature.alpha[0, 3, 0] - plain.alpha[0, 3, 0] == 3
    full = np.where(plain.alpha > 0, 0.5, 0.0)
    resolved = DirichletCategorical(full).resolve(seen)
    np.testing.assert_array_equal(resolved.alpha, full)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ({"alpha": -1.0}, "alpha must be > 0"),
        ({"alpha": np.ones((3, 4, 2))}, "does not broadcast"),
        ({"alpha": np.ones((3, 4, 4))}, "0 beyond them"),
        ({"alpha": np.zeros((3, 4, 4))}, "zeros may only pad"),
        ({"n_categories": (3, 2, 4)}, "3 entries for 4 features"),
        ({"new": -1.0}, "new must be >= 0"),
    ],
)
def test_impossible_priors_are_refused(prior, message):
    with pytest.raises(ValueError, match=message):
        fitted(*some_rows(), **prior)


def test_codes_that_are_none_are_refused_in_training():
    X, y = some_rows()
    for bad in (-1, 4, 0.5):
        X[7, 2] = bad
        said = rf"row 7, feature 2: {float(bad)} is not one of the category codes 0 \.\. 3"
        with pytest.raises(ValueError, match=said):
            fitted(X, y)
    X[7, 2] = 0
    X[5, 1] = 3  # a code, but not of this feature
    with pytest.raises(ValueError, match="feature 1 has 2 declared categories"):
        fitted(X, y)


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        ([1, 3, 2, 0], [0, 2 / 3, 1 / 3, 0]),
        ([7, 0, 0, 0], [1, 0, 0, 0]),
        ([0.2, 0, 0, 0], [1, 0, 0, 0]),
        ([1, 1, 0, 0], "flat"),
        ([0.9, 5, 5, 0], "unbounded"),
    ],
)
def test_map_at_the_edge(alpha, expected):
    full = np.full((2, 3, 4), 2.0)
    full[1, 2] = alpha
    family = DirichletCategorical(full)
    if isinstance(expected, str):
        with pytest.raises(UndefinedEstimateError, match=f"class 1, feature 2: .*{expected}"):
            family.map()
    else:
        np.testing.assert_allclose(family.map()["theta"][1, 2], expected)


def test_huge_counts():
    counts = np.array([[[1e12, 3e12, 5.0]], [[0.0, 2.0, 7e12]]])
    family = DirichletCategorical(n_categories=(3,))
    seen = CategoricalStats(counts)
    posterior = family.resolve(seen).update(seen)
    X = np.array([[0], [1], [2], [-1]])
    total = counts.sum(axis=-1) + 3
    expected = np.log((counts[:, 0] + 1) / total).T
    np.testing.assert_allclose(posterior.log_predictive(X[:3]), expected, rtol=1e-13)
    np.testing.assert_allclose(
        posterior.log_predictive(X)[3], np.log(1 / (total[:, 0] + 1)), rtol=1e-13
    )
    for x in X[:3]:
        one = family.stats(x[None], np.array([0]), 2)
        one = replace(
            one, counts=np.pad(one.counts, ((0, 0), (0, 0), (0, 3 - one.counts.shape[2])))
        )
        assert posterior.log_evidence(one) == pytest.approx(
            posterior.log_predictive(x[None])[0, 0], rel=1e-11
        )


def test_an_unseen_category_under_the_other_plug_ins():
    X, y = some_rows()
    posterior, seen = fitted(X, y, alpha=2.0)
    declared, wider = fitted(X, y, alpha=2.0, n_categories=(4, 2, 4, 1))
    unseen = np.array([[-1.0, np.nan, np.nan, np.nan]])
    known = np.array([[3.0, np.nan, np.nan, np.nan]])
    for method, ours, theirs in (
        ("map", posterior.map(), declared.map()),
        ("mle", posterior.mle(seen), declared.mle(wider)),
        ("posterior_mean", posterior.mean(), declared.mean()),
    ):
        np.testing.assert_allclose(
            posterior.for_plug_in(method).log_likelihood(unseen, ours),
            declared.log_likelihood(known, theirs),
            rtol=1e-12,
        )
    impossible = posterior.for_plug_in("mle")
    assert np.all(impossible.log_likelihood(unseen, posterior.mle(seen)) == -np.inf)
