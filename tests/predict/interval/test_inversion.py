"""Inverted distributions against the beta, gamma and Laplace distributions of SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betaln, expit, log_expit, logit

from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.expansion import applies, expansion, expansion_cells
from bayesgen.predict.inversion import Table, cumulants, find, invert, log_odds
from bayesgen.predict.request import shortest
from tests.predict.interval.cases import case, weights_alone

P = np.array([0.001, 0.025, 0.05, 0.3, 0.5, 0.8, 0.95, 0.999])


def inverse_of(model, X, **kwargs):
    contrast = log_odds(model, X, 0, 1, **kwargs)
    return invert(contrast, cumulants(contrast), np.arange(X.shape[0]))


def beta_log_odds(a, b):
    """The only part of `invert`: two class weights with counts a and b."""
    return inverse_of(*weights_alone([a, b]))[0]


@given(st.floats(0.05, 1e6), st.floats(0.05, 1e6))
@settings(max_examples=60, deadline=None)
def test_class_weights_are_beta(a, b):
    found, exact = beta_log_odds(a, b), stats.beta(a, b)
    l = found.quantile(P[None])
    # of the probability itself or of its complement, whichever has its digits
    tail = np.where(l < 0, exact.cdf(expit(l)), stats.beta(b, a).sf(expit(-l)))
    np.testing.assert_allclose(tail, P[None], atol=found.error[0] + 3e-9)
    assert found.error[0] < 1e-7


@pytest.mark.parametrize(("a", "b"), [(2, 13), (0.1, 0.1), (0.05, 40), (300, 1)])
def test_density_and_table(a, b):
    found = beta_log_odds(a, b)
    l = found.quantile(np.linspace(0.01, 0.99, 41)[None])
    cdf, pdf = found.cdf_and_pdf(l)
    exact = np.exp(a * log_expit(l) + b * log_expit(-l) - betaln(a, b))
    np.testing.assert_allclose(pdf, exact, rtol=1e-5, atol=1e-8)
    by_table, slope = found.table().cdf_and_pdf(l)
    np.testing.assert_allclose(by_table, cdf, atol=2e-5)
    np.testing.assert_allclose(slope, pdf, rtol=0.02)
    np.testing.assert_allclose(found.table().quantile(cdf), l, atol=2e-4 / pdf.min())


def test_the_error_is_no_larger_than_stated_and_stated_where_it_is_large():
    # no counts at all: each log-odds is minus the difference of two exponential rates, Laplace; its
    # characteristic function falls like 1/t^2 and is cut before it is small
    family = GammaPoisson(shape=np.ones((2, 1)), rate=np.ones((2, 1)))
    model = ClassModel(np.ones(2), family)
    (found,) = inverse_of(model, np.zeros((1, 1)), class_prior=np.array([0.5, 0.5]))
    assert 1e-8 < found.error[0] < 1e-3
    l = np.array([[-3.0, -0.4, -0.01, 0.0, 0.2, 5.0]])
    wrong = np.abs(found.cdf_and_pdf(l)[0] - stats.laplace.cdf(l))
    assert wrong.max() < found.error[0]


def test_beyond_its_period_the_series_is_not_asked():
    found = beta_log_odds(4, 11_375)
    reach = found.half_period[0] * np.array([-30, -1.9, -1.01, 1.01, 1.7, 40])
    cdf, pdf = found.cdf_and_pdf((found.centre[0] + reach)[None])
    assert cdf.tolist() == [[0, 0, 0, 1, 1, 1]]
    assert (pdf == 0).all()


@pytest.mark.parametrize("name", ["multinomial", "poisson", "qda", "lda"])
def test_rows_do_not_depend_on_their_neighbours(name):
    model, X = case(name, 5, 4, new=9)
    together = np.empty((len(X), len(P)))
    for part in inverse_of(model, X):
        together[part.rows] = part.quantile(P)
    for i in range(len(X)):
        (alone,) = inverse_of(model, X[[i]])
        np.testing.assert_allclose(together[i], alone.quantile(P)[0], rtol=1e-6, atol=1e-6)


def test_many_rows_of_every_scale_at_once():
    model, _ = case("gaussian", 2, 4)
    X = np.outer(10.0 ** np.arange(-3, 7), [1.0, -1.0])
    for part in inverse_of(model, X):
        assert (part.error < 1e-6).all()
        cdf, _ = part.cdf_and_pdf(part.quantile(P))
        np.testing.assert_allclose(cdf, np.broadcast_to(P, cdf.shape), atol=1e-8)


# ------------------------------------------------------------------------------- Cornish-Fisher


def test_an_expansion_that_applies_keeps_percentiles():
    rng = np.random.default_rng(0)
    p = np.concatenate([[0.0005, 0.005], np.linspace(0.025, 0.975, 39), [0.995, 0.9995]])
    worst, used = 0.0, 0
    for a, b in 10 ** rng.uniform(-1.5, 3, size=(400, 2)):
        k = cumulants(log_odds(*weights_alone([a, b]), 0, 1))
        if applies(k)[0]:
            g = expansion(k.skewness[0], k.kurtosis[0], k.fifth[0])
            w = np.polynomial.polynomial.polyval(stats.norm.ppf(p), g)
            l, used = k.mean + k.sd * w, used + 1
            worst = max(worst, np.abs(stats.beta(a, b).cdf(expit(l)) - p).max())
    assert used > 60
    assert 0.0005 < worst < 0.0015


def test_cells_of_an_expansion_are_its_distribution_function():
    """Phi(z) at w(z), and their derivatives; between the ends of cells to 1e-4."""
    poly = np.polynomial.polynomial
    g = expansion(*np.array([[0.0, 0.2, -0.2], [0.0, 0.1, 0.2], [0.0, 0.02, 0.0]]))
    cells = expansion_cells(g).reshape(3, -1, 4)
    spacing = 12 / cells.shape[1]
    z = np.linspace(-2.9, 2.9, 100_001)
    for own, c in zip(cells, g, strict=True):
        w, slope = poly.polyval(z, c), poly.polyval(z, poly.polyder(c))
        j, f = np.divmod((w + 6) / spacing, 1)
        found = poly.polyval(f, own[j.astype(int)].T, tensor=False)
        np.testing.assert_allclose(found, stats.norm.cdf(z), atol=1e-4)
        ends = -6 + spacing * np.arange(len(own))
        inside = (ends > w[0]) & (ends < w[-1])
        at = np.interp(ends[inside], w, z)
        np.testing.assert_allclose(own[inside, 0], stats.norm.cdf(at), atol=1e-7)
        density = stats.norm.pdf(at) * spacing / np.interp(at, z, slope)
        np.testing.assert_allclose(own[inside, 1], density, atol=1e-7)


# --------------------------------------------------------------------------------------- tables


def test_a_table_knows_its_grid():
    grid = np.linspace(-9, 9, 200)
    table = Table(
        grid[:1], np.diff(grid)[:1], stats.norm.cdf(grid)[None], stats.norm.pdf(grid)[None]
    )
    x = np.linspace(-4, 4, 33)[None]
    np.testing.assert_allclose(table.grid[0], grid, atol=1e-12)
    np.testing.assert_allclose(table.cdf_and_pdf(x)[0], stats.norm.cdf(x), atol=1e-7)
    np.testing.assert_allclose(table.quantile(stats.norm.cdf(x)), x, atol=1e-5)
    low, high = table.cdf_and_pdf(np.array([[-1e300, 1e300]]))[0][0]
    assert low < 1e-15
    assert high > 1 - 1e-15


def test_a_quantile_of_a_table_is_where_its_distribution_function_is():
    """By Newton steps in a cubic: to the digits that a double has."""
    table = beta_log_odds(2, 13).table()
    p = np.linspace(0.001, 0.999, 997)[None]
    np.testing.assert_allclose(table.cdf_and_pdf(table.quantile(p))[0], p, rtol=0, atol=1e-13)


def test_find_looks_into_the_own_row_alone():
    cdf = np.array([[0.0, 0.5, 1.0], [0.2, 0.2, 0.9]])
    assert find(cdf, np.array([[0.1, 0.6], [0.1, 0.95]])).tolist() == [[0, 1], [0, 1]]


# ---------------------------------------------------------------------------------- the shortest


@pytest.mark.parametrize(("a", "b"), [(5, 3), (1.5, 40), (0.5, 0.5), (0.3, 4), (7, 0.4), (1, 1)])
@pytest.mark.parametrize("prob", [0.5, 0.9])
def test_shortest_interval_of_a_beta(a, b, prob):
    exact = stats.beta(a, b)
    u, width = shortest(lambda p: logit(exact.ppf(p)), 2, prob)
    brute = np.linspace(0, 1 - prob, 20_001)
    widths = exact.ppf(np.minimum(brute + prob, 1.0)) - exact.ppf(brute)
    assert widths.min() <= width[0] + 1e-9
    np.testing.assert_allclose(width, widths.min(), rtol=2e-5)
    np.testing.assert_allclose(exact.ppf(u + prob) - exact.ppf(u), width, rtol=1e-9)
