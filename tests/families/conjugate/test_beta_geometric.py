"""Beta-geometric counts: SciPy's distributions, and a whole classifier from one file.

CONTRIBUTING.md takes this family as its example. What every family obeys is in tests/laws.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

import bayesgen as bg
from bayesgen.families import BetaGeometric
from bayesgen.families.errors import UndefinedEstimateError

ROOT = Path(__file__).parents[3]
RNG = np.random.default_rng(0)
Y = np.repeat([0, 1], [9, 7])
X = RNG.geometric(np.array([[0.7, 0.2], [0.3, 0.4]])[Y]) - 1.0
X[2, 0] = np.nan
A, B = np.array([[1.5, 2.0], [3.0, 1.0]]), np.array([[2.5, 4.0], [1.0, 1.5]])


def fitted():
    prior = BetaGeometric(A, B)
    sums = prior.stats(X, Y, 2)
    prior = prior.resolve(sums)
    return prior, sums, prior.update(sums)


def test_densities_are_those_of_scipy():
    _, _, posterior = fitted()
    p = np.array([[0.3, 0.8], [0.5, 0.01]])
    new = np.array([[0.0, 3.0], [40.0, 1.0]])
    found = posterior.log_likelihood(new, {"p": p})
    np.testing.assert_allclose(found, stats.geom.logpmf(new[:, None] + 1, p).sum(axis=-1))
    own = stats.betanbinom.logpmf(new[:, None], 1, posterior.alpha, posterior.beta)
    np.testing.assert_allclose(posterior.log_predictive(new), own.sum(axis=-1), rtol=1e-10)


def test_evidence_is_the_integral_of_the_likelihood():
    prior, sums, _ = fitted()
    whole = 0.0
    for c, j in np.ndindex(2, 2):
        x = X[c == Y, j]
        x = x[~np.isnan(x)]

        def density(p, x=x, a=A[c, j], b=B[c, j]):
            return np.exp(stats.geom.logpmf(x + 1, p).sum() + 20) * stats.beta.pdf(p, a, b)

        whole += np.log(integrate.quad(density, 0, 1, epsabs=0, epsrel=1e-10)[0]) - 20
    assert prior.log_evidence(sums) == pytest.approx(whole, rel=1e-8)


def test_estimates():
    prior, sums, posterior = fitted()
    observed = np.nanmean(X[Y == 1], axis=0)
    np.testing.assert_allclose(prior.mle(sums)["p"][1], 1 / (1 + observed))
    grid = np.linspace(0, 1, 100_001)[1:-1]
    log_p = stats.beta.logpdf(grid[:, None, None], posterior.alpha, posterior.beta)
    np.testing.assert_allclose(posterior.map()["p"], grid[log_p.argmax(axis=0)], atol=1e-5)
    np.testing.assert_allclose(
        posterior.mean()["p"], stats.beta.mean(posterior.alpha, posterior.beta)
    )
    with pytest.raises(UndefinedEstimateError, match="class 0, feature 0"):
        BetaGeometric(0.5, 0.5).resolve(sums).map()
    with pytest.raises(UndefinedEstimateError, match="no observed row"):
        prior.mle(prior.stats(X[:0], Y[:0], 2))


def test_a_success_that_is_certain_forbids_failures():
    p = {"p": np.ones((1, 2))}
    found = BetaGeometric().log_likelihood(np.array([[0.0, 0.0], [0.0, 1.0]]), p)
    np.testing.assert_array_equal(found, [[0.0], [-np.inf]])


def test_the_plug_in_rule_is_linear_and_the_predictive_is_not():
    _, _, posterior = fitted()
    theta = posterior.mean()
    w, w0 = posterior.linear_form(theta)
    new = np.array([[0.0, 3.0], [4.0, 1.0]])
    np.testing.assert_allclose(new @ w.T + w0, posterior.log_likelihood(new, theta))
    with pytest.raises(ValueError, match="beta-negative binomial"):
        posterior.linear_form(None)


# --------------------------------------------------------------------- a classifier from one file


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(1)
    y = np.repeat(["often", "rarely"], 20)
    X = rng.geometric(np.where(y == "often", 0.6, 0.2)[:, None], (40, 3)) - 1.0
    return bg.GenerativeClassifier(BetaGeometric()).fit(X, y), X, y


@pytest.mark.slow  # compiles
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_nuts_agrees(classifier):
    clf, X, y = classifier
    found = bg.validate(clf, X, y, random_state=1, progressbar=False)
    assert found.verdict == "agree", str(found)


def test_no_other_file_knows_of_it():
    """But a list of names for type checkers, which nothing reads when the package runs."""
    known = ("families/conjugate/beta_geometric.py", "conjugate/test_beta_geometric.py")
    for folder in ("bayesgen", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            if not path.as_posix().endswith((*known, "families/__init__.py")):
                text = path.read_text(encoding="utf-8").lower().replace("_", "")
                assert "betageometric" not in text, path
