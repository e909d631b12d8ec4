"""Entropies against closed forms of the Dirichlet, Fourier integrals, and weighted draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import digamma, entr, softmax

from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.predict import uncertainty
from bayesgen.predict.draws import rare_classes
from bayesgen.predict.inversion import log_odds
from bayesgen.predict.probabilities import log_class_probability
from bayesgen.predict.uncertainty import _errors, entropies
from tests.predict.interval.cases import FAMILIES, case, fit, log_joint, thirteen, weights_alone
from tests.selection import crossed, rest_is_slow

NEW = np.array([[1.0, 1.0]])
every_family = pytest.mark.parametrize(
    "name", rest_is_slow(FAMILIES, set(FAMILIES) - {"multinomial", "gaussian_spherical"})
)
in_turn = pytest.mark.parametrize(("name", "n_classes"), crossed(FAMILIES, [3, 2]))


def predictive(model, X):
    joint = ExactPosterior(model, model, None).log_joint(X)
    return np.exp(log_class_probability(joint, "posterior_predictive"))


def test_thirteen_samples():
    found = entropies(thirteen(), NEW)
    np.testing.assert_allclose(found.mean[0, 0], 0.334160, atol=5e-7)
    np.testing.assert_allclose(found.sd[0], 0.211, atol=5e-4)
    np.testing.assert_allclose([found.total[0], found.aleatoric[0]], [0.63709, 0.52908], atol=6e-6)
    found = entropies(thirteen(), NEW, pair="predictive")
    np.testing.assert_allclose(found.mean[0, 0], 0.348987, atol=5e-7)
    values = found.total[0], found.aleatoric[0], found.epistemic[0]
    np.testing.assert_allclose(values, [0.64682, 0.53259, 0.11422], atol=6e-6)


def dirichlet(alpha):
    total = alpha.sum()
    mean = alpha / total
    return {
        "mean": mean,
        "sd": np.sqrt(mean * (1 - mean) / (total + 1)),
        "total": entr(mean).sum(),
        "aleatoric": digamma(total + 1) - (mean * digamma(alpha + 1)).sum(),
    }


@given(st.floats(0.05, 1e5), st.floats(0.05, 1e5))
@settings(max_examples=60, deadline=None)
def test_two_class_weights(a, b):
    found = entropies(*weights_alone([a, b]))
    for name, want in dirichlet(np.array([a, b])).items():
        atol = 1e-5 if name == "sd" else 2e-7  # of the variance, below: it may be 1e-9
        np.testing.assert_allclose(getattr(found, name)[0], want, atol=atol)
    want = dirichlet(np.array([a, b]))["sd"][0]
    np.testing.assert_allclose(found.sd[0] ** 2, want**2, rtol=1e-4, atol=1e-10)
    np.testing.assert_allclose(found.top[0, 0], stats.beta(a, b).sf(0.5), atol=1e-7)


@pytest.mark.parametrize("alpha", [[1.0, 2.0, 0.5], [30.0, 20.0, 5.0], [0.1, 0.2, 0.1, 3.0]])
def test_more_class_weights(alpha):
    alpha = np.array(alpha)
    found = entropies(*weights_alone(alpha))
    assert found.method[0] == "margins"
    assert found.error[0] < 5e-3
    for name, want in dirichlet(alpha).items():
        np.testing.assert_allclose(getattr(found, name)[0], want, atol=5 * found.error[0])


# Gauss-Legendre, of 20 points in each of 70 parts of [0, 14]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)
T = (np.arange(70)[:, None] + (NODES + 1) / 2).ravel() / 5
WEIGHT = np.tile(WEIGHTS / 10, 70)


def within_twice_the_error(misses):
    """95 % of each number and none far out, of {number: [|estimate - exact|/error]}."""
    for name, each in misses.items():
        ratio = np.concatenate(each)
        assert (ratio < 2).mean() >= 0.95, (name, np.sort(ratio)[-10:])
        assert ratio.max() < 5, (name, np.sort(ratio)[-10:])


# of the logs of the weights: classes alike, or not
@pytest.mark.parametrize("spread", rest_is_slow([0.3, 1.5], [1.5]))
def test_the_error_is_true_for_class_weights(spread):
    rng = np.random.default_rng(11)
    misses = {name: [] for name in ("total", "aleatoric", "epistemic", "mean", "variance")}
    for n_classes in (3, 6):
        for scale in np.geomspace(0.05, 50, 10):
            alpha = scale * np.exp(spread * rng.normal(size=n_classes))
            found, want = entropies(*weights_alone(alpha)), dirichlet(alpha)
            want["epistemic"] = want["total"] - want["aleatoric"]
            want["variance"] = want["sd"] ** 2
            for name, each in misses.items():
                value = found.sd[0] ** 2 if name == "variance" else getattr(found, name)[0]
                each.append(np.atleast_1d(np.abs(value - want[name]).max() / found.error[0]))
    within_twice_the_error(misses)


def test_the_error_of_a_total_is_steep_where_a_mean_is_small():
    rare = 1e-3 * (1 + 0.2 * np.random.default_rng(0).normal(size=8))
    zero, none = np.zeros((1, 8, 2)), np.zeros(1)
    mean = np.stack([rare, 1 - rare], axis=1)[None]
    error, of_total = _errors([mean, zero, zero, np.zeros((1, 8))], none, none)
    se, p = rare.std(ddof=1) / np.sqrt(8), rare.mean()
    wider = stats.t(7).ppf(0.975) / 1.96
    np.testing.assert_allclose(error, wider * se, atol=3e-5)
    np.testing.assert_allclose(of_total, wider * se * np.log((1 - p) / p), rtol=0.05, atol=3e-5)


def test_a_class_that_no_draw_shows_has_an_error():
    mean, sd = np.array([[-40.0, -14.0, 0.0]]), np.array([[1.0, 4.0, 0.0]])
    own, total = rare_classes(mean, sd, 1 << 13)
    q = np.minimum(np.exp(mean[0, 1] + sd[0, 1] * np.random.default_rng(0).normal(size=10**6)), 1)
    q = q.mean()  # 0.001, of which 8192 draws show eight
    np.testing.assert_allclose(own, q / np.sqrt(8192 * q), rtol=0.05)
    np.testing.assert_allclose(total, -np.log(q) * q / np.sqrt(8192 * q), rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [3, 6])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_error_is_true(name, n_classes):
    """Classes far apart and alike, few columns and many: rare classes, and all of them likely."""
    misses = {}
    sizes = ((2, 5, 60_000), (10, 5, 40_000), (10, 50, 40_000), (30, 20, 20_000))
    for n_features, per_class, n_draws in sizes:
        model, X = case(name, n_features, per_class, n_classes=n_classes, new=5)
        found = entropies(model, X)
        parts = []
        for seed in range(20):
            rho = softmax(log_joint(model, X, n_draws // 20, seed=seed), axis=-1)
            parts.append((rho.mean(axis=0), entr(rho).sum(axis=-1).mean(axis=0)))
        means, entropy = (np.stack(part) for part in zip(*parts, strict=True))

        def numbers(chosen, means=means, entropy=entropy):
            mean, aleatoric = means[chosen].mean(axis=0), entropy[chosen].mean(axis=0)
            total = entr(mean).sum(axis=-1)
            return {"total": total, "aleatoric": aleatoric, "epistemic": total - aleatoric}

        every = np.arange(20)
        without = [numbers(every != k) for k in every]
        for key, want in numbers(every).items():
            each = np.stack([w[key] for w in without])
            noise = np.sqrt(19 * each.var(axis=0))  # of the draws: jackknife
            miss = np.maximum(np.abs(getattr(found, key) - want) - 2 * noise, 0)
            misses.setdefault(key, []).append(miss / found.error)
    within_twice_the_error(misses)


@every_family
def test_two_classes_against_the_integrals_over_the_frequency(name):
    model, X = case(name, 3, 6)
    found = entropies(model, X)
    for i in range(len(X)):
        contrast = log_odds(model, X[[i]], 0, 1)

        phi = np.exp(contrast.on_axis([(np.array([0]), T)])[0][0])
        sinh = np.sinh(np.pi * T)
        mean = 0.5 + WEIGHT @ (phi.imag / sinh)
        square = mean - WEIGHT @ (T * phi.real / sinh)
        entropy = WEIGHT @ ((np.pi * T / np.tanh(np.pi * T) - 1) / (T * sinh) * phi.real)
        np.testing.assert_allclose(found.mean[i, 0], mean, atol=1e-7)
        np.testing.assert_allclose(found.sd[i, 0] ** 2, square - mean**2, atol=3e-7)
        np.testing.assert_allclose(found.aleatoric[i], entropy, atol=1e-7)


@in_turn
def test_both_pairs_against_draws(name, n_classes):
    model, X = case(name, 3, 5, n_classes=n_classes)
    n = 40_000
    a = log_joint(model, X, n)
    rho = softmax(a, axis=-1)
    weight = np.exp(a - a.max(axis=(0, 2), keepdims=True)).sum(axis=-1)
    for pair, w in (("posterior", np.ones((n, len(X)))), ("predictive", weight)):
        w = w / w.sum(axis=0)
        ess = 1 / np.square(w).sum(axis=0).max()
        mean = (w[..., None] * rho).sum(axis=0)
        top = (w[..., None] * (rho == rho.max(axis=-1, keepdims=True))).sum(axis=0)
        square = (w[..., None] * rho**2).sum(axis=0)
        found = entropies(model, X, pair)
        atol = 4 * found.error.max() + 2.5 / np.sqrt(ess)
        np.testing.assert_allclose(found.mean, mean, atol=atol)
        np.testing.assert_allclose(found.top, top, atol=atol)
        np.testing.assert_allclose(found.sd**2, square - mean**2, atol=atol)
        np.testing.assert_allclose(found.total, entr(mean).sum(axis=-1), atol=2 * atol)
        aleatoric = (w * entr(rho).sum(axis=-1)).sum(axis=0)
        np.testing.assert_allclose(found.aleatoric, aleatoric, atol=2 * atol)


@in_turn
def test_the_predictive_pair_belongs_to_predict_proba(name, n_classes):
    model, X = case(name, 3, 5, n_classes=n_classes)
    found, p = entropies(model, X, "predictive"), predictive(model, X)
    np.testing.assert_allclose(found.mean, p, rtol=1e-9)
    np.testing.assert_allclose(found.total, entr(p).sum(axis=1), rtol=1e-9)


@every_family
def test_the_mixture_of_posteriors_has_the_predictive_as_its_mean(name):
    # the mean by the mixture is not used, for it is known: so it is a check of the integrals
    model, X = case(name, 3, 5)
    p = predictive(model, X)
    mixture = np.zeros(len(X))
    for c in (0, 1):
        for i in range(len(X)):
            seen = model.update(model.stats(X[[i]], np.array([c]), 2))
            mixture[i] += p[i, c] * entropies(seen, X[[i]]).mean[0, 0]
    np.testing.assert_allclose(mixture, p[:, 0], atol=1e-7)


@pytest.mark.parametrize(("name", "pair"), crossed(FAMILIES, ["posterior", "predictive"]))
def test_parts_add_up_and_are_never_negative(name, pair):
    for n_classes in (2, 3):
        model, X = case(name, 4, 3, 0.1, n_classes=n_classes, new=2)
        found = entropies(model, X, pair)
        np.testing.assert_allclose(found.total, found.aleatoric + found.epistemic, rtol=1e-12)
        assert (found.epistemic >= 0).all()
        assert (found.aleatoric >= 0).all()
        assert (found.total <= np.log(n_classes) + 5 * found.error).all()
        np.testing.assert_allclose(found.top.sum(axis=1), 1, atol=1e-9)


def test_wide_and_narrow_distributions():
    model, _ = case("gaussian", 2, 4)
    X = np.outer(10.0 ** np.arange(0, 5), [1.0, -1.0])
    found = entropies(model, X)
    a = log_joint(model, X, 100_000)
    rho = softmax(a, axis=-1)
    np.testing.assert_allclose(found.mean, rho.mean(axis=0), atol=0.008)
    np.testing.assert_allclose(found.aleatoric, entr(rho).sum(axis=-1).mean(axis=0), atol=0.008)


@pytest.mark.parametrize(("name", "n_classes"), crossed(["gaussian_tied", "lda", "qda"], [3, 2]))
def test_missing_cells(name, n_classes):
    model, X = case(name, 3, 5, n_classes=n_classes)
    X[0, 1] = np.nan
    X[1] = np.nan
    a = log_joint(model, X, 40_000)
    rho, weight = softmax(a, axis=-1), np.exp(a).sum(axis=-1)
    for pair, w in (("posterior", np.ones(weight.shape)), ("predictive", weight)):
        want = (w * entr(rho).sum(axis=-1)).sum(axis=0) / w.sum(axis=0)
        np.testing.assert_allclose(entropies(model, X, pair).aleatoric, want, atol=0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("pair", ["posterior", "predictive"])
def test_blocks_of_rows_are_put_where_they_belong(n_classes, pair, monkeypatch):
    model, X = case("bernoulli", 3, 5, n_classes=n_classes)
    X = np.concatenate([X, 1.0 - X])[:7]
    whole = entropies(model, X, pair)
    monkeypatch.setattr(uncertainty, "_BLOCK", 3)
    parts = entropies(model, X, pair)
    one_by_one = [entropies(model, X[i : i + 1], pair) for i in range(len(X))]
    assert np.unique(whole.total.round(9)).size > 1
    for name in ("total", "aleatoric", "epistemic", "mean", "sd", "top", "error"):
        expected = getattr(whole, name)
        np.testing.assert_allclose(getattr(parts, name), expected, rtol=1e-9, atol=1e-9)
        alone = np.concatenate([getattr(found, name) for found in one_by_one])
        np.testing.assert_allclose(alone, expected, rtol=1e-9, atol=1e-9)
    assert (parts.method == whole.method).all()


def test_rows_of_no_class_are_nan_in_every_block(monkeypatch):
    model, X = case("bernoulli", 3, 5, n_classes=2)
    monkeypatch.setattr(uncertainty, "_BLOCK", 2)

    def none_possible(model, x, class_prior):
        yield np.arange(len(x)), np.array([], dtype=np.intp)

    monkeypatch.setattr(uncertainty, "possible_classes", none_possible)
    found = entropies(model, np.repeat(X[:1], 5, axis=0))
    for name in ("total", "aleatoric", "epistemic", "mean", "sd", "top"):
        assert np.isnan(getattr(found, name)).all(), name


def test_one_class_and_no_rows():
    model = fit(BetaBernoulli(), np.ones((3, 2)), [0, 0, 0], n_classes=1)
    found = entropies(model, NEW, "predictive")
    assert found.total[0] == found.epistemic[0] == 0
    assert found.mean.tolist() == found.top.tolist() == [[1.0]]
    assert entropies(thirteen(), NEW[:0]).total.shape == (0,)


def test_classes_that_are_out_have_no_mean():
    model, X = case("bernoulli", 3, 5, n_classes=3)
    found = entropies(model, X, class_prior=np.array([0.5, 0.0, 0.5]))
    assert (found.mean[:, 1] == 0).all()
    np.testing.assert_allclose(found.mean.sum(axis=1), 1)
