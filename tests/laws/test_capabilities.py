"""Every capability that a family offers is what its protocol says, found by walking the folder.

What is asked of sampled families alone (starting points, identified functions) is in the tests of
each family and of its sampler.
"""

from functools import cache

import numpy as np
from scipy.special import gammaln

from bayesgen.families.capabilities import FeatureInformation, LinearRule, TokenDraws
from bayesgen.families.errors import NotLinearError
from tests.graphs import declare, values_of
from tests.laws.cases import close, first, in_pymc, only, takes_missing, within_mcse
from tests.laws.test_pymc import Y, coords_of, on_rows


@cache
def fitted(case):
    """Two classes, their posterior, its rows, and the statistics."""
    case = case.sized(2, 3)
    return case, *case.fitted(12)


def offering(kind):
    """Of the cases whose posterior has the capability."""
    return only(lambda case: fitted(case)[1].capability(kind) is not None)


def offered(case, kind):
    """The fit, and what answers for the capability."""
    return *fitted(case), fitted(case)[1].capability(kind)


def observed_cells(case):
    _, posterior, _, _, stats = fitted(case)
    return posterior.observed_cells(stats)


def contrast(log_p):
    """Differences between the classes of a row: all that a common term leaves."""
    return log_p - log_p[..., :1]


def alone(X, j):
    """Rows of which one column is observed."""
    cells = np.full(X.shape, np.nan)
    cells[:, j] = X[:, j]
    return cells


def test_a_discriminant_is_the_likelihood_up_to_a_common_term(case):
    case, posterior, X, _, _ = fitted(case)
    theta = posterior.draw(case.rng(1), 3)
    close(contrast(posterior.discriminant(X, theta)), contrast(posterior.log_likelihood(X, theta)))


@only(lambda case: observed_cells(case) is not None)
def test_observed_cells_are_those_that_are_not_missing(case):
    case, posterior, X, y, _ = fitted(case)
    X = X.astype(float)
    X[::5, 1] = np.nan
    weight = np.arange(len(y)) % 3 + 0.5
    cells = posterior.observed_cells(case.prior.stats(X, y, 2, weight))
    expected = [[weight[(y == c) & ~np.isnan(x)].sum() for x in X.T] for c in range(2)]
    close(cells, np.array(expected))


@offering(LinearRule)
def test_a_linear_rule_is_the_likelihood_up_to_a_common_term(case):
    case, posterior, X, _, _, rule = offered(case, LinearRule)
    draws = first(posterior.draw(case.rng(1), 1))
    cases = {None: posterior.log_predictive(X), "theta": posterior.log_likelihood(X, draws)}
    for name, expected in cases.items():
        try:
            w, w0 = rule.linear_form(None if name is None else draws)
        except NotLinearError:
            continue
        close(contrast(X @ w.T + w0), contrast(expected))


@offering(TokenDraws)
def test_tokens_are_drawn_from_the_urns(case):
    """The predictive of a row is the product of Polya's urns, up to a term of the classes."""
    _, posterior, X, _, _, tokens_drawn = offered(case, TokenDraws)
    urns = tokens_drawn.urns(X)
    tokens = gammaln(urns.cell + urns.n) - gammaln(urns.cell)
    whole = gammaln(urns.total + urns.drawn) - gammaln(urns.total)
    tokens -= urns.n / urns.drawn * whole  # an urn is named once for each of its tokens
    log_p = np.zeros((2, len(X)))
    np.add.at(log_p.T, urns.row, tokens.T)
    close(contrast(log_p.T), contrast(posterior.log_predictive(X)))


@only(takes_missing, lambda case: fitted(case)[1].capability(FeatureInformation) is not None)
def test_information_of_a_feature_is_that_of_simulated_rows(case):
    case, posterior, _, _, _, features = offered(case, FeatureInformation)
    theta = first(posterior.draw(case.rng(6), 1))
    weights = np.array([0.4, 0.6])
    rng, n = case.rng(7), 6000
    y = (rng.random(n) < weights[1]).astype(np.int64)
    rows = np.asarray(posterior.simulate(rng, theta, y), dtype=np.float64)
    information = features.information(theta, weights)
    for j in range(3):
        log_p = posterior.log_likelihood(alone(rows, j), theta)
        of_class = log_p[np.arange(n), y]
        gain = of_class - np.logaddexp(*(log_p + np.log(weights)).T)
        within_mcse(gain, information[j], f"information of feature {j}")


@only(lambda case: fitted(case)[1].margins() is not fitted(case)[1])
def test_margins_are_the_columns_one_by_one(case):
    _, posterior, X, *_ = fitted(case)
    margins = posterior.margins()
    for j in range(3):
        close(margins.log_predictive(alone(X, j)), posterior.log_predictive(alone(X, j)))


def has_coordinates(case):
    return case.prior.pymc_coordinates(case.prior.draw(case.rng(10), 1), None) != {}


@only(in_pymc, has_coordinates)
def test_coordinates_behind_theta_give_theta_in_pymc(case):
    case, prior, X = on_rows(case)
    stats = case.stats(X, Y)
    draws = prior.draw(case.rng(10), 2)
    for given, on in ((None, {}), (stats, {"stats": stats}), (stats, {"X": X, "y": Y})):
        model, theta = declare(prior, coords_of(prior), **on)
        values = values_of(model, theta)
        for s in range(2):
            one = {name: value[s] for name, value in draws.items()}
            behind = {k: v for k, (_, v) in prior.pymc_coordinates(one, given).items()}
            for name, value in values(one | behind).items():
                close(value, one[name], 1e-8)
        for name, value in prior.pymc_data(given).items():
            np.testing.assert_allclose(model[name].get_value(), value, err_msg=name)
