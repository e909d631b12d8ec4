"""Credible intervals against exact draws, enumeration and their own coverage."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse, stats

from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.posterior.model import ClassModel
from tests.predict.interval.cases import (
    FAMILIES,
    SHARED,
    WHOLE,
    case,
    fit,
    interval,
    log_joint,
    log_odds,
    thirteen,
    weights_alone,
)
from tests.selection import crossed, rest_is_slow

NEW = np.array([[1.0, 1.0]])


def percentile_errors(model, X, draws, prob=0.9, **kwargs):
    """Largest error of the probability below an end, and the intervals; over rows and classes."""
    found = interval(model, X, prob, **kwargs)
    tail = (1 - prob) / 2
    l = log_odds(draws)
    low, high = (l <= found.log_odds_lower).mean(axis=0), (l <= found.log_odds_upper).mean(axis=0)
    return max(np.abs(low - tail).max(), np.abs(high - 1 + tail).max()), found


def noise(n_draws, n_ends, tail=0.05):
    """What the largest of n_ends errors of a perfect interval may be by the draws' own noise."""
    return stats.norm.ppf(1 - 1e-3 / (2 * n_ends)) * np.sqrt(tail * (1 - tail) / n_draws)


# ------------------------------------------------------------------------------- worked numbers


@pytest.mark.parametrize("method", ["auto", "exact", "draws"])
def test_thirteen_samples(method):
    found = interval(thirteen(), NEW, method=method)
    atol = 0.006 if method == "draws" else 5e-5
    np.testing.assert_allclose(found.lower[0], [0.0447, 1 - 0.7232], atol=atol)
    np.testing.assert_allclose(found.upper[0], [0.7232, 1 - 0.0447], atol=atol)
    assert found.method.tolist() == ["draws" if method == "draws" else "inversion"]


@pytest.mark.parametrize("kind", ["eti", "hdi"])
@pytest.mark.parametrize(("a", "b"), [(2.0, 13.0), (0.5, 0.7), (40.0, 90.0), (0.2, 6.0)])
def test_class_weights_alone_are_beta(kind, a, b):
    model, X = weights_alone([a, b])
    found, exact = interval(model, X, 0.8, kind, method="exact"), stats.beta(a, b)
    low, high = found.lower[0, 0], found.upper[0, 0]
    np.testing.assert_allclose(exact.cdf(high) - exact.cdf(low), 0.8, atol=1e-7)
    if kind == "eti":
        np.testing.assert_allclose([low, high], exact.ppf([0.1, 0.9]), rtol=1e-6)
    else:
        u = np.linspace(0, 0.2, 20_001)
        widths = exact.ppf(np.minimum(u + 0.8, 1.0)) - exact.ppf(u)
        np.testing.assert_allclose(high - low, widths.min(), rtol=1e-4)


@pytest.mark.parametrize("kind", ["eti", "hdi"])
def test_three_class_weights_are_dirichlet(kind):
    alpha = np.array([1.5, 3.0, 0.7])
    found = interval(*weights_alone(alpha), 0.9, kind, method="exact")
    assert found.method[0] == "margins"
    assert found.error[0] < 5e-4
    for c, a in enumerate(alpha):
        exact = stats.beta(a, alpha.sum() - a)
        low, high = exact.cdf([found.lower[0, c], found.upper[0, c]])
        np.testing.assert_allclose(high - low, 0.9, atol=2e-3)
        if kind == "eti":
            np.testing.assert_allclose(low, 0.05, atol=4 * found.error[0] + 1e-4)
        else:
            u = np.linspace(0, 0.1, 2_001)
            widths = exact.ppf(np.minimum(u + 0.9, 1.0)) - exact.ppf(u)
            width = found.upper[0, c] - found.lower[0, c]
            np.testing.assert_allclose(width, widths.min(), rtol=0.02)


# --------------------------------------------------------------------------- against exact draws


@pytest.mark.parametrize("name", FAMILIES)
def test_two_classes_against_draws(name):
    model, X = case(name, 3, 4)
    n = 40_000
    draws = log_joint(model, X, n)
    limit = noise(n, 2 * len(X))
    error, found = percentile_errors(model, X, draws, method="exact")
    assert error < limit
    assert found.error.max() < 1e-6
    error, _ = percentile_errors(model, X, draws, method="auto")
    assert error < limit + 0.002


@pytest.mark.parametrize(
    "name", rest_is_slow(FAMILIES, ["bernoulli", "poisson", "gaussian", "lda"])
)
def test_three_classes_against_draws(name):
    model, X = case(name, 3, 4, n_classes=3)
    n = 40_000
    draws = log_joint(model, X, n)
    limit = noise(n, 6 * len(X))
    error, found = percentile_errors(model, X, draws, method="exact")
    assert set(found.method) == {"draws" if name in SHARED else "margins"}
    assert error < limit + 4 * found.error.max()
    assert found.error.max() < (3e-3 if name in SHARED else 5e-4)
    if name not in SHARED:  # whose one way is by draws
        error, found = percentile_errors(model, X, draws, method="auto")
        assert error < limit + 4 * found.error.max()


@pytest.mark.parametrize(
    "name", rest_is_slow(["bernoulli", "categorical", "gaussian", "qda"], ["bernoulli", "gaussian"])
)
def test_the_route_by_draws(name):
    model, X = case(name, 3, 4, n_classes=3)
    n = 40_000
    error, found = percentile_errors(model, X, log_joint(model, X, n), method="draws")
    assert set(found.method) == {"draws"}
    assert error < noise(n, 6 * len(X)) + 4 * found.error.max()


@pytest.mark.parametrize(("name", "n_classes"), crossed(["gaussian", *SHARED, "qda"], [3, 2]))
def test_missing_cells(name, n_classes):
    model, X = case(name, 3, 5, n_classes=n_classes, new=4)
    X[0, 1] = X[1, :2] = np.nan
    X[2] = np.nan
    n = 40_000
    draws = log_joint(model, X, n)
    for method in ("draws",) if n_classes == 3 and name in SHARED else ("exact", "draws"):
        error, found = percentile_errors(model, X, draws, method=method)
        assert error < noise(n, 2 * n_classes * len(X)) + 4 * found.error.max()


def test_shortest_intervals_by_every_route_agree():
    for name in ("bernoulli", "lda"):
        model, X = case(name, 3, 4, n_classes=2)
        widths = []
        for method in ("exact", "draws"):
            found = interval(model, X, 0.8, "hdi", method)
            widths.append(found.upper - found.lower)
            equal_tails = interval(model, X, 0.8, "eti", method)
            assert (widths[-1] <= equal_tails.upper - equal_tails.lower + 1e-9).all()
        np.testing.assert_allclose(widths[1], widths[0], atol=0.02)


# ---------------------------------------------------------------------------------------- manners


def test_two_classes_are_mirror_images():
    model, X = case("qda", 3, 4)
    for kind in ("eti", "hdi"):
        found = interval(model, X, kind=kind)
        np.testing.assert_array_equal(found.log_odds_lower[:, 0], -found.log_odds_upper[:, 1])
        np.testing.assert_allclose(found.lower[:, 0], 1 - found.upper[:, 1], atol=1e-12)


def test_probabilities_that_round_to_one_keep_their_digits():
    model, X = case("gaussian_tied", 4, 50)
    found = interval(model, 30 * X, method="exact")
    one = found.lower == 1
    assert one.any()
    assert np.isfinite(found.log_odds_lower[one]).all()
    np.testing.assert_allclose(found.upper[one[:, ::-1]], np.exp(-found.log_odds_lower[one]))


def test_one_class_is_certain():
    model = fit(BetaBernoulli(), np.ones((3, 2)), [0, 0, 0], n_classes=1)
    found = interval(model, np.array([[1.0, 0.0], [np.nan, np.nan]]))
    assert found.lower.tolist() == found.upper.tolist() == [[1.0], [1.0]]
    assert found.method.tolist() == ["constant"] * 2


def test_no_rows():
    model, X = case("bernoulli", 3, 4)
    assert interval(model, X[:0]).lower.shape == (0, 2)


def test_sparse_rows_are_dense_rows():
    model, X = case("multinomial", 5, 4, new=6)
    dense, csr = interval(model, X), interval(model, sparse.csr_matrix(X))
    np.testing.assert_allclose(csr.lower, dense.lower, rtol=1e-9)


def test_fixed_class_weights_shift_the_log_odds():
    model, X = case("gaussian", 3, 5)
    a, b = (interval(model, X, class_prior=np.array(p), method="exact") for p in ([1, 1], [3, 1]))
    np.testing.assert_allclose(
        b.log_odds_lower[:, 0] - a.log_odds_lower[:, 0], np.log(3), rtol=1e-6
    )


def test_a_class_of_weight_zero_is_out():
    model, X = case("bernoulli", 3, 5, n_classes=3)
    found = interval(model, X, class_prior=np.array([0.5, 0.0, 0.5]))
    assert (found.upper[:, 1] == 0).all()
    np.testing.assert_allclose(found.lower[:, 0], 1 - found.upper[:, 2], rtol=1e-9)
    one = interval(model, X, class_prior=np.array([0.0, 0.0, 0.5]))
    assert one.lower.tolist() == [[0.0, 0.0, 1.0]] * len(X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_nothing_observed_and_known_weights_leave_nothing_to_be_unsure_of(n_classes):
    model, X = case("gaussian", 2, 5, n_classes=n_classes)
    prior = np.arange(1.0, n_classes + 1)
    found = interval(model, np.full_like(X, np.nan), class_prior=prior)
    for end in (found.lower, found.upper):
        np.testing.assert_allclose(end, np.tile(prior / prior.sum(), (len(X), 1)), rtol=1e-9)


def test_a_series_that_does_not_converge_is_replaced_by_draws():
    family = BetaBernoulli(alpha=np.full((2, 1), 0.1), beta=np.full((2, 1), 1e-5))
    model = ClassModel(np.ones(2), family)
    found = interval(model, np.ones((1, 1)), method="exact", class_prior=np.array([0.5, 0.5]))
    assert found.method.tolist() == ["draws"]


def test_results_do_not_depend_on_the_other_rows_and_repeat():
    for name in ("bernoulli", "lda"):
        model, X = case(name, 3, 4, n_classes=3, new=7)
        whole = interval(model, X)
        again = interval(model, X[[4]])
        np.testing.assert_allclose(again.lower[0], whole.lower[4], rtol=1e-3)
        np.testing.assert_array_equal(interval(model, X).lower, whole.lower)


def test_identical_classes_are_symmetric():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(6, 2))
    model = fit(NormalInverseWishart(shared=True), np.tile(half, (2, 1)), np.repeat([0, 1], 6))
    found = interval(model, half, method="exact")
    np.testing.assert_allclose(found.log_odds_lower, -found.log_odds_upper, rtol=1e-6)


# ----------------------------------------------------------------------------------- long checks

SOME = ((2, 2), (10, 10), (100, 2))


def covered(name, n_classes, repeats, n_features=3, per_class=4, prob=0.9):
    """How often the interval of class 0 holds the truth, theta and its rows drawn from the prior.

    The new row is of another theta that fits the rows as well. One of the true theta would tell of
    it: the interval is of theta given the training rows alone, and covers 89 % there.
    """
    family = FAMILIES[name](1.0)
    y = np.repeat(np.arange(n_classes), per_class)
    shape = (n_classes, n_features)
    family = next(
        f
        for f in type(family).examples(*shape)
        if getattr(f, "variance", None) == getattr(family, "variance", None)
        and getattr(f, "shared", None) == getattr(family, "shared", None)
    )
    prior = ClassModel(np.full(n_classes, 2.0), family)
    rng = np.random.default_rng(5)
    theta = prior.draw(rng, repeats)
    hits = 0
    for s in range(repeats):
        own = {k: v[s] for k, v in theta.items()}
        labels = rng.choice(n_classes, p=own["pi"], size=len(y))
        X = family.simulate(rng, own, labels)
        model = prior.update(prior.stats(X, labels, n_classes))
        other = {k: v[0] for k, v in model.draw(rng, 1).items()}
        new = family.simulate(rng, other, rng.choice(n_classes, p=other["pi"], size=1))
        truth = log_odds(np.log(own["pi"]) + family.log_likelihood(new, own))[0, 0]
        found = interval(model, new, prob, method="auto", n_draws=1 << 11)
        hits += found.log_odds_lower[0, 0] <= truth <= found.log_odds_upper[0, 0]
    return hits


REPEATS = {2: 1000 if WHOLE else 150, 3: 200 if WHOLE else 100}  # by the number of classes


@pytest.mark.parametrize("of", rest_is_slow(product(FAMILIES, REPEATS), [("bernoulli", 2)]))
def test_coverage(of):
    name, n_classes = of
    low, high = stats.binom.ppf([1e-3, 1 - 1e-3], REPEATS[n_classes], 0.9)
    assert low <= covered(name, n_classes, REPEATS[n_classes]) <= high


@pytest.mark.slow
@pytest.mark.parametrize("concentration", [0.1, 1.0])
@pytest.mark.parametrize("name", FAMILIES)
def test_grid_of_regimes(name, concentration):
    n = 200_000 if WHOLE else 40_000
    for n_features in (2, 10, 100):
        for per_class in (2, 10, 1000):
            if not WHOLE and (n_features, per_class) not in SOME:
                continue
            model, X = case(name, n_features, per_class, concentration)
            full = name in ("lda", "qda")  # a draw of theta is a matrix
            size = min(n, 20_000) if full and (n_features >= 100 or not WHOLE) else n
            draws = log_joint(model, X, size)
            limit = noise(size, 2 * len(X))
            error, found = percentile_errors(model, X, draws, method="exact")
            regime = (name, n_features, per_class, concentration, error)
            assert error < max(0.0015, limit), regime
            assert set(found.method) == {"inversion"}, regime
            error, _ = percentile_errors(model, X, draws, method="auto")
            assert error < max(0.003, limit + 0.0015), regime


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bernoulli", "multinomial", "gaussian", "gaussian_tied"])
def test_a_thousand_features(name):
    model, X = case(name, 1000, 10, 0.1)
    draws = log_joint(model, X, 20_000)
    for method in ("exact", "auto"):
        error, _ = percentile_errors(model, X, draws, method=method)
        assert error < noise(20_000, 2 * len(X)) + (0.002 if method == "auto" else 0)
