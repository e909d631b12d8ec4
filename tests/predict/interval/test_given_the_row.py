"""Intervals given the training rows, and given the row too: mixtures, kinds, weights, coverage."""

from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import expit, logsumexp

import bayesgen as bg
from bayesgen.families.capabilities import SharedVariances
from bayesgen.families.conjugate import normal_inverse_gamma
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.posterior.drawn import MonteCarloWarning
from bayesgen.posterior.model import ClassModel
from bayesgen.predict import inversion
from bayesgen.predict.draws import Sample
from bayesgen.predict.expansion import Joints, Points
from bayesgen.predict.intervals import class_probability_intervals
from bayesgen.predict.inversion import OWN, invert
from bayesgen.predict.request import IntervalRequest
from tests.predict.interval.cases import (
    FAMILIES,
    case,
    fit,
    interval,
    log_joint,
    log_odds,
    thirteen,
    weights_alone,
)
from tests.selection import crossed


def given_row(model, X, prob=0.9, kind="eti", method="auto", **options):
    request = IntervalRequest(prob, kind, method, "training and row")
    return class_probability_intervals(model, X, request, **options)


def weighted(model, X, n):
    """(n, N) weights of sum 1 and (n, N, C) log-odds of exact draws of theta | D."""
    a = log_joint(model, X, n)
    log_x = logsumexp(a, axis=-1)
    return np.exp(log_x - logsumexp(log_x, axis=0)), log_odds(a)


def miss(end, tail, weights, odds):
    """(N, C) error of the probability below an end, and its standard error."""
    below = odds <= end
    found = np.einsum("sn,snc->nc", weights, below - tail)
    return found, np.sqrt(np.einsum("sn,snc->nc", weights**2, (below - tail) ** 2))


@pytest.mark.parametrize("weights", [None, np.array([0.1, 0.2, 0.3, 0.4])])
def test_a_label_changes_the_law_of_its_class_alone(weights, monkeypatch):
    model, X = case("poisson", 3, 6, n_classes=4)
    points = Points(np.random.default_rng(0))
    joints = Joints(model, X, np.arange(4), weights, points)
    plain, own = (joints.law(256, slice(None), k, exact=True).draws for k in (None, OWN))
    for label in range(4):
        found = joints.law(256, slice(None), label, exact=True)
        others = np.delete(np.arange(4), label)
        np.testing.assert_array_equal(found.draws[:, others], plain[:, others])
        np.testing.assert_allclose(found.draws[:, label], own[:, label], rtol=1e-12)
        learned = model.update(model.stats(X[:1], np.array([label]), 4))
        known = Joints(learned, X[:1], np.arange(4), weights, points)
        want = known.law(256, slice(None), exact=True)
        np.testing.assert_allclose(found.draws[0], want.draws[0], rtol=1e-5, atol=1e-6)
        x = np.median(want.draws[0, label])
        for law in (found, want):
            place = (x - law.loc[0, label, 0]) / law.scale[0, label, 0] - law.start[0, label]
            j, f = divmod(place / law.spacing[0, label], 1)
            cell = law.cells[law.first[0, label] + int(j)]
            assert abs(np.polynomial.polynomial.polyval(f, cell) - 0.5) < 0.01
    counts = []
    monkeypatch.setattr(
        inversion, "invert", lambda f, k, at: (counts.append(len(at)), invert(f, k, at))[1]
    )
    given_row(model, X, method="exact")
    assert sum(counts) == len(X) * (4 + 4)  # each class once, and once more as the label


# -------------------------------------------------------------------------------- closed forms


@pytest.mark.parametrize("kind", ["eti", "hdi"])
@pytest.mark.parametrize("alpha", [[1.5, 3.0], [1.5, 3.0, 0.7]])
def test_a_row_of_which_nothing_is_observed_says_nothing(alpha, kind):
    # the mixture over labels of Dirichlet(alpha + e_c), in the ratio of alpha, is Dirichlet(alpha)
    model, X = weights_alone(alpha)
    plain, found = interval(model, X, kind=kind), given_row(model, X, kind=kind)
    slack = 5 * (plain.error[0] + found.error[0]) + 1e-6
    for c, a in enumerate(alpha):
        law = stats.beta(a, sum(alpha) - a)
        low, high = law.cdf([found.lower[0, c], found.upper[0, c]])
        np.testing.assert_allclose(high - low, 0.9, atol=slack)
        if kind == "eti":
            np.testing.assert_allclose(low, 0.05, atol=slack)


def test_the_density_of_the_log_odds_of_two_bits():
    # thirteen samples, theta on a grid: p(theta | D) p(x | theta), and the log-odds of each node
    model, X = thirteen(), np.array([[1.0, 1.0]])
    rng, n = np.random.default_rng(1), 400_000
    pi = rng.beta(2, 13, n)
    one = rng.beta(2, 1, (2, n)).prod(axis=0)
    two = rng.beta(5, 9, (2, n)).prod(axis=0)
    weight = pi * one + (1 - pi) * two
    l = np.log(pi * one) - np.log((1 - pi) * two)
    found = given_row(model, X, method="exact")
    assert found.method[0] == "inversion"
    for tail, end in ((0.05, found.log_odds_lower[0, 0]), (0.95, found.log_odds_upper[0, 0])):
        share = (weight * (l <= end)).mean() / weight.mean()
        se = np.sqrt((weight**2 * ((l <= end) - tail) ** 2).mean() / n) / weight.mean()
        assert abs(share - tail) < 4 * se
    # the mean of the mixture is the predictive 1568/4493, which the plain posterior's is not
    assert abs((weight * expit(l)).mean() / weight.mean() - 1568 / 4493) < 0.002


@pytest.mark.parametrize(("name", "n_classes"), crossed(FAMILIES, [2, 3]))
@pytest.mark.parametrize("kind", ["eti", "hdi"])
def test_against_weighted_draws(name, n_classes, kind):
    model, X = case(name, 3, 5, n_classes=n_classes)
    weights, odds = weighted(model, X, 20_000)
    found = given_row(model, X, 0.8, kind, n_draws=1 << 12)
    below, se_low = miss(found.log_odds_lower, 0.1, weights, odds)
    above, se_high = miss(found.log_odds_upper, 0.9, weights, odds)
    slack = 4 * (np.hypot(se_low, se_high) + found.error[:, None]) + 1e-3
    if kind == "eti":
        assert (np.abs(below) < slack).all()
        assert (np.abs(above) < slack).all()
    assert (np.abs(above - below) < 2 * slack).all()


def test_the_shortest_interval_is_not_longer():
    for n_classes in (2, 3):
        model, X = case("gaussian", 3, 4, n_classes=n_classes)
        eti, hdi = (given_row(model, X, 0.8, kind) for kind in ("eti", "hdi"))
        assert (hdi.upper - hdi.lower <= eti.upper - eti.lower + 1e-3).all()


def test_two_classes_are_one_pair_of_three_with_a_class_left_out():
    model, X = case("poisson", 3, 5, n_classes=3)
    prior = np.array([0.5, 0.0, 0.5])
    found = given_row(model, X, class_prior=prior, method="exact")
    assert (found.upper[:, 1] == 0).all()
    np.testing.assert_allclose(found.lower[:, 0], 1 - found.upper[:, 2], rtol=1e-9)


def test_sparse_rows_and_blocks_of_rows():
    for n_classes in (2, 3):
        model, X = case("multinomial", 5, 4, n_classes=n_classes, new=6)
        dense, csr = given_row(model, X), given_row(model, sparse.csr_matrix(X))
        np.testing.assert_allclose(csr.lower, dense.lower, rtol=1e-7)
        np.testing.assert_allclose(given_row(model, X[[4]]).lower[0], dense.lower[4], rtol=1e-3)


def test_one_class_and_no_rows():
    model = fit(FAMILIES["bernoulli"](1.0), np.ones((3, 2)), [0, 0, 0], n_classes=1)
    found = given_row(model, np.array([[1.0, 0.0]]))
    assert found.lower.tolist() == found.upper.tolist() == [[1.0]]
    assert given_row(thirteen(), np.empty((0, 2))).lower.shape == (0, 2)


def test_many_training_rows_leave_nothing_for_the_row_to_say():
    model, X = case("gaussian", 2, 3000, n_classes=3)
    plain, found = interval(model, X, method="exact"), given_row(model, X, method="exact")
    np.testing.assert_allclose(found.lower, plain.lower, atol=2e-3)


# ------------------------------------------------------------------------ parts of the machinery


@pytest.mark.parametrize("sizes", [[50, 30], [7, 200]])
def test_a_weighted_sample_is_a_sample_with_draws_repeated(sizes):
    rng = np.random.default_rng(0)
    draws, times = rng.normal(size=(2, sum(sizes))), rng.integers(1, 4, (2, sum(sizes)))
    p = np.tile([[0.0, 0.1, 0.33, 0.8, 1.0]], (2, 1))
    found = Sample(draws, times.astype(float)).quantile(p)
    for i in range(2):
        every = np.sort(np.repeat(draws[i], times[i]))
        gap = np.abs(np.subtract.outer(found[i], every))
        at = np.quantile(every, p[i], method="hazen")
        share = (np.searchsorted(every, found[i]) - np.searchsorted(every, at)) / len(every)
        assert np.abs(share).max() <= 3 / len(every)
        assert gap.min(axis=1).max() < 1
    np.testing.assert_allclose(
        Sample(draws, np.ones(draws.shape)).quantile(p), Sample(draws).quantile(p), rtol=1e-12
    )


# -------------------------------------------------------------------------------------- coverage


def covered(given, of_theta, repeats, n_features, n_rows, n_classes=2, per_theta=6, seed=5):
    """How often intervals of .9 hold the truth, and its standard error, by simulation of the prior.

    theta ~ Gamma(1, 1), training rows of theta; new rows of the same theta, or of another that has
    nothing to do with it.
    """
    ones = np.ones((n_classes, n_features))
    prior = ClassModel(np.full(n_classes, 2.0), GammaPoisson(shape=ones, rate=ones))
    rng, hits = np.random.default_rng(seed), []
    for _ in range(repeats):
        theta, other = ({k: v[0] for k, v in prior.draw(rng, 1).items()} for _ in range(2))
        y = rng.choice(n_classes, p=theta["pi"], size=n_rows)
        X = prior.family.simulate(rng, theta, y)
        source = theta if of_theta else other
        labels = rng.choice(n_classes, p=source["pi"], size=per_theta)
        new = prior.family.simulate(rng, source, labels)
        truth = log_odds(np.log(theta["pi"]) + prior.family.log_likelihood(new, theta))[:, 0]
        model = prior.update(prior.stats(X, y, n_classes))
        request = IntervalRequest(0.9, "eti", "auto", given)
        found = class_probability_intervals(model, new, request)
        inside = (found.log_odds_lower[:, 0] <= truth) & (truth <= found.log_odds_upper[:, 0])
        hits.append(inside.mean())
    return np.mean(hits), np.std(hits, ddof=1) / np.sqrt(repeats)


@pytest.mark.slow
def test_which_rows_an_interval_covers():
    share, se = covered("training and row", True, 40, 30, 10)
    assert abs(share - 0.9) < 4 * se
    share, se = covered("training", True, 40, 30, 10)
    assert share + 3 * se < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_rows", [10, 40])
def test_coverage_of_both(n_rows, n_classes):
    """A hundred columns: .65 with 10 rows and .83 with 40 where theta is given the rows alone."""
    for given, of_theta in (("training", False), ("training and row", True)):
        share, se = covered(given, of_theta, 200, 100, n_rows, n_classes)
        assert abs(share - 0.9) < 3.5 * se, (given, share, se)
    share, se = covered("training", True, 200, 100, n_rows, n_classes)
    assert share + 3 * se < 0.9
    if n_classes == 2:
        assert abs(share - {10: 0.65, 40: 0.83}[n_rows]) < 0.04


# ---------------------------------------------------------------------------- posteriors by draws


def test_rows_on_which_too_few_draws_carry_the_weight_are_named():
    import bayesgen as bg

    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2)) + (np.arange(12) % 2)[:, None]
    clf = bg.GaussianNB().fit(X, np.arange(12) % 2)
    theta = clf.draw_posterior(1000, 1, random_state=1, groups=[])
    new = np.array([[0.5, 0.5], [60.0, -60.0], [0.2, 0.1]])
    with pytest.warns(MonteCarloWarning) as caught:
        found = clf.predict_interval(new, posterior=theta, given="training and row")
    (message,) = [str(w.message) for w in caught if "given='training and row'" in str(w.message)]
    assert "1 of 3 row(s), at positions 1: weighted by p(x | theta), 50 draws are enough" in message
    ess = found["weight_ess"].values
    assert ess[1] < 50 < min(ess[0], ess[2])
    assert "weight_ess" not in clf.predict_interval(new[:1], posterior=theta)


def test_draws_and_closed_form_agree():
    import bayesgen as bg

    rng = np.random.default_rng(2)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 2)) + 0.5 * y[:, None]
    clf = bg.LinearDiscriminant().fit(X, y)
    theta = clf.draw_posterior(4000, 1, random_state=1, groups=[])
    for kind in ("eti", "hdi"):
        exact, drawn = (
            clf.predict_interval(
                X[:4], prob=0.8, kind=kind, given="training and row", posterior=posterior
            )
            for posterior in (None, theta)
        )
        assert drawn.attrs["given"] == "training and row"
        gap = np.abs(exact["interval"] - drawn["interval"]).max()
        assert gap < 0.03
        assert (drawn["error"] < 0.02).all()


@pytest.mark.parametrize("label", [0, 1, 2])
def test_distances_given_the_row_are_those_of_a_model_that_has_learned_it(label):
    """With one variance for all classes: the same variates, and statistics with the row added."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 3
    f = bg.GaussianNB(variance="tied").fit(X, y).model_.family
    row = np.array([[1.5, -0.7]])
    learned = f.update(f.stats(row, np.array([label]), 3, None))
    ours = normal_inverse_gamma.distances(f, np.random.default_rng(0), row, 5, label)
    theirs = normal_inverse_gamma.distances(learned, np.random.default_rng(0), row, 5, None)
    for a, b in zip(ours[:2], theirs[:2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_cumulants_given_variances_are_those_of_a_noncentral_chi_square():
    """Taylor coefficients of log E exp(s a), a = -|z/sqrt(kappa) + delta|^2/2 of d columns."""
    u, kappa, d = np.array([[[0.7], [3.0]], [[0.0], [1.2]]]), np.array([2.0, 0.6]), np.array([3, 1])

    class Given:
        def capability(self, kind):
            return self if kind is SharedVariances else None

        def distance_draws(self, points, X, n, at):
            return u.copy(), kappa, d

    model = SimpleNamespace(family=Given(), alpha=np.ones(2))
    joints = Joints(model, np.zeros((2, 1)), np.arange(2), np.array([0.5, 0.5]), None)
    found, loc, scale = joints._given_variances(u, kappa, d, None)
    for i, c in np.ndindex(2, 2):

        def log_mgf(s, i=i, c=c):
            q = 1 + s / kappa[c]
            return -mp.mpf(int(d[i])) / 2 * mp.log(q) - s * u[i, c, 0] / (2 * q)

        k = [mp.factorial(r) * v for r, v in enumerate(mp.taylor(log_mgf, 0, 5))]
        sd = mp.sqrt(k[2])
        expected = [k[1] + np.log(0.5), sd, k[3] / sd**3, k[4] / sd**4, k[5] / sd**5]
        own = [field[i, c] for field in found[:5]]
        np.testing.assert_allclose(own, np.array(expected, dtype=float), rtol=1e-9)
        np.testing.assert_allclose([loc[i, c, 0], scale[i, c, 0]], own[:2], rtol=1e-9)
