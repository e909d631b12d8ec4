"""More classes than there are quasi-random coordinates: what each needs, and no more."""

from functools import partial

import numpy as np
import pytest
from scipy import special, stats

from bayesgen.predict import inversion
from bayesgen.predict.expansion import Joints, Points, skewed
from bayesgen.predict.intervals import class_probability_intervals
from bayesgen.predict.inversion import OWN, Cumulants, densities, responsibilities
from bayesgen.predict.request import IntervalRequest
from tests.predict.interval.cases import case, log_joint, weights_alone


@pytest.mark.parametrize(
    "name", ["gaussian", "categorical", "multinomial", "poisson", "lda", "gaussian_tied"]
)
@pytest.mark.parametrize("given", ["training", "training and row"])
def test_ends_against_draws_of_theta(name, given):
    """80 classes, of few rows each; given the row, draws weighted by p(x | theta)."""
    model, X = case(name, 3, 4, n_classes=80, new=2)
    found = class_probability_intervals(model, X, IntervalRequest(0.8, "eti", "auto", given))
    assert set(found.method) == {"margins"}
    a = log_joint(model, X, 4000)
    total = special.logsumexp(a, axis=-1, keepdims=True)
    log_rho = a - total
    odds = log_rho - np.log(-np.expm1(np.minimum(log_rho, -1e-300)))
    weight = np.full(a.shape[:2], 1 / len(a))
    if given != "training":
        weight = special.softmax(total[..., 0], axis=0)
    for tail, end in ((0.1, found.log_odds_lower), (0.9, found.log_odds_upper)):
        below = (odds <= end) - tail
        miss = np.einsum("sn,snc->nc", weight, below)
        mcse = np.sqrt(np.einsum("sn,snc->nc", weight**2, below**2))
        z = miss / (mcse + found.error[:, None])
        assert np.abs(z).max() < stats.norm.isf(1e-4 / z.size), (np.abs(z).max(), miss.mean())
        assert abs(miss.mean()) < 0.01


@pytest.mark.parametrize("name", ["lda", "gaussian_tied"])
def test_shared_variances_given_any_label_from_those_given_the_likeliest(name):
    """Weighted points of one label, and points of the label itself; classes in another order."""
    model, X = case(name, 2, 2, n_classes=6, new=1)
    joints = Joints(model, X, np.arange(6)[::-1], None, Points(np.random.default_rng(0)))
    p = responsibilities(model, X, joints.classes)
    n = 1 << 12
    (plain, own), ratio = joints.of_labels(joints.law, n, slice(None), p)
    for label in range(6):
        given = joints.law(n, slice(None), label)
        weight = ratio[0, label] / n
        for c in range(6):
            one = (own if c == label else plain).loc[0, c]
            for power in (1, 2):
                a, b = one**power, given.loc[0, c] ** power
                se = np.sqrt(weight**2 @ (a - weight @ a) ** 2 + b.var() / n)
                assert abs(weight @ a - b.mean()) < 5 * se


@pytest.mark.parametrize("label", [None, 1, OWN])
def test_a_density_given_variances_by_inversion(label):
    """Quantiles of the sum of a log Gamma variable and a noncentral chi-squared one."""
    model, X = case("lda", 3, 2, n_classes=4, new=2)
    joints = Joints(model, X, np.arange(4), None, Points(np.random.default_rng(0)))
    u, kappa, d = np.full((2, 4, 1), 1.7), np.array([1.1, 2.1, 2.1, 3.0]), np.array([3, 3])
    k = joints._given_variances(u, kappa, d, label)[0]
    which, given = np.array([1, 3]), partial(joints._densities_given, u, kappa, d, label)
    k = Cumulants(*(f[:, which] for f in k))
    place = k.mean[..., None], k.sd[..., None]
    invert = np.ones((2, 2), dtype=bool)
    law = joints._of_cumulants(1 << 12, which, k, place, given, invert, strict=True, exact=True)
    rng = np.random.default_rng(1)
    for at, c in enumerate((1, 3)):
        alpha = model.alpha[c] + (label in (c, OWN))
        a = np.log(rng.gamma(alpha, size=20_000))
        a -= rng.noncentral_chisquare(3, kappa[c] * 1.7, size=20_000) / (2 * kappa[c])
        assert stats.ks_2samp(a, law.draws[0, at]).pvalue > 1e-4


def test_given_the_row_shared_variances_are_drawn_once(monkeypatch):
    from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart

    calls, right = [], NormalInverseWishart.distance_draws
    monkeypatch.setattr(
        NormalInverseWishart, "distance_draws", lambda f, *a: (calls.append(1), right(f, *a))[1]
    )
    model, X = case("lda", 2, 3, n_classes=70, new=2)
    asked = IntervalRequest(0.8, "eti", "auto", "training and row")
    assert set(class_probability_intervals(model, X, asked).method) == {"margins"}
    assert len(calls) == len(X)


@pytest.mark.parametrize("given", ["training", "training and row"])
def test_a_row_without_cells_has_dirichlet_probabilities(given):
    alpha = np.concatenate([[30.0, 7.0], np.full(70, 0.8)])
    model, X = weights_alone(alpha)
    found = class_probability_intervals(model, X, IntervalRequest(0.8, "eti", "auto", given))
    law = stats.beta(alpha, alpha.sum() - alpha)
    slack = 5 * found.error[0]
    np.testing.assert_allclose(law.cdf(found.lower[0]), 0.1, atol=slack)
    np.testing.assert_allclose(law.cdf(found.upper[0]), 0.9, atol=slack)


@pytest.mark.parametrize("name", ["gaussian", "categorical", "multinomial", "qda"])
def test_a_density_by_the_parameters_of_its_class_alone(name, monkeypatch):
    """The cgf of the whole family along one axis, after the row was seen as that class or not."""
    monkeypatch.setattr(inversion, "MANY", 1)
    model, X = case(name, 3, 6, n_classes=4)
    s = np.array([0.3, 1.7])
    for label in (None, 2, OWN):
        for c, one in enumerate(densities(model, X, np.arange(4), None, label).contrasts):
            start = np.eye(4)[c] if label in (c, OWN) else np.zeros(4)
            t = start + 1j * s[:, None] * np.eye(4)[c]
            want = model.family.cgf(X, t[:, None]) - model.family.cgf(X, start[None, None])
            a = model.alpha[c] + start[c]
            want = want + (special.loggamma(a + 1j * s) - special.gammaln(a))[:, None]
            (found,) = one.on_axis([(np.arange(len(X)), s)])
            np.testing.assert_allclose(np.exp(found.T), np.exp(want), rtol=1e-9)


@pytest.mark.parametrize("skewness", [-2.0, -1.2, -0.4, 1e-9, 0.8])
def test_a_gamma_variable_by_its_skewness(skewness):
    p = np.array([0.02, 0.055, 0.3, 0.5, 0.9, 0.945, 0.98])
    w = np.polynomial.polynomial.polyval(stats.norm.ppf(p), skewed(np.array(skewness)))
    assert (np.diff(w) > 0).all()
    np.testing.assert_allclose(stats.pearson3(skewness).cdf(w), p, atol=0.015)


@pytest.mark.parametrize("given", ["training", "training and row"])
def test_cost_is_linear_in_the_classes(given, monkeypatch):
    from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
    from bayesgen.predict import inversion

    cells, inverted = [], []
    right, invert = GammaPoisson.cgf, inversion.invert

    def counted(self, X, t):
        cells.append(np.size(t))
        return right(self, X, t)

    monkeypatch.setattr(GammaPoisson, "cgf", counted)
    monkeypatch.setattr(
        inversion, "invert", lambda f, k, at: (inverted.append(len(at)), invert(f, k, at))[1]
    )
    found = {}
    for n_classes in (100, 400):
        cells.clear()
        inverted.clear()
        model, X = case("poisson", 3, 4, n_classes=n_classes, new=1)
        class_probability_intervals(model, X, IntervalRequest(0.8, "eti", "auto", given))
        found[n_classes] = sum(cells), sum(inverted)
    assert found[400][1] <= 2 * 400
    one, two = (cells / inverted for cells, inverted in found.values())
    assert two < 2 * one  # what an inversion takes does not grow with the classes
