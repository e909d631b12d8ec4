"""Bursty documents: the mass against SciPy, the coordinates of the simplex, one fit by NUTS."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

import bayesgen as bg
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.sampled.dirichlet_compound import DirichletCompound
from bayesgen.posterior.model import ClassModel
from tests.families.sampled.recovery import inside, likelier, sound
from tests.graphs import PYTHON, pt

RNG = np.random.default_rng(6)
C, D, N = 2, 4, 12
THETA = {"mean": RNG.dirichlet(np.ones(D), C), "concentration": np.array([0.7, 60.0])}
Y = np.arange(N) % C


def documents() -> np.ndarray:
    X = RNG.negative_binomial(0.5, 0.1, (N, D)).astype(float)
    X[3] = 0
    X[4, 1] = 150  # more factors than are listed one by one
    return X


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_mass_is_scipys(form):
    X = documents()
    alpha = THETA["mean"] * THETA["concentration"][:, None]
    expected = [
        [stats.dirichlet_multinomial.logpmf(x.astype(int), a, int(x.sum())) for a in alpha]
        for x in X
    ]
    found = DirichletCompound().log_likelihood(form(X), THETA)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_with_a_large_concentration_it_is_the_multinomial():
    X = documents().astype(int)
    theta = {"mean": THETA["mean"], "concentration": np.full(C, 1e13)}
    expected = [[stats.multinomial.logpmf(x, x.sum(), p) for p in THETA["mean"]] for x in X]
    found = DirichletCompound().log_likelihood(X, theta)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_a_word_that_cannot_occur():
    theta = {"mean": np.array([[0.0, 1.0]]), "concentration": np.array([3.0])}
    found = DirichletCompound().log_likelihood(np.array([[0, 4], [1, 3]]), theta)
    np.testing.assert_array_equal(found, [[0.0], [-np.inf]])


def test_simulated_documents_may_have_the_lengths_of_others():
    X = documents()
    family = DirichletCompound().given_rows(sparse.csr_matrix(X))
    drawn = family.simulate(np.random.default_rng(0), THETA, Y)
    np.testing.assert_array_equal(drawn.sum(axis=1), X.sum(axis=1))


def test_defaults_by_hand():
    X, y = np.array([[3, 1], [0, 2], [4, 0]]), np.array([0, 1, -1])
    for form in (np.asarray, sparse.csr_matrix):
        family = DirichletCompound().with_defaults(form(X), y, 2, np.array([1.0, 1, 2]))
        assert family.typical == pytest.approx(14 / 4)
        assert family.length == 4
        np.testing.assert_allclose(family.reference, [[2, 2], [1, 2]])
        np.testing.assert_array_equal(family.alpha, np.ones((2, 2)))


# ---------------------------------------------------------------------------------------- PyMC


def test_the_prior_is_a_dirichlet():
    family = DirichletCompound.examples(C, D)[1]
    coords = {CLASS: ["a", "b"], FEATURE: list("pqrs")}
    model = ClassModel(np.ones(C), family).to_pymc(coords)
    point = model.initial_point()
    value = model.rvs_to_values[model["mean"]]
    transform = model.rvs_to_transforms[model["mean"]]
    point[value.name] = transform.forward(
        pt.as_tensor(THETA["mean"]), *model["mean"].owner.inputs
    ).eval(mode=PYTHON)
    found = model.compile_logp(vars=[model["mean"]], jacobian=False, mode=PYTHON)(point)
    rows = zip(THETA["mean"], family.alpha, strict=True)
    expected = sum(stats.dirichlet.logpdf(p, a) for p, a in rows)
    assert found == pytest.approx(expected)


# -------------------------------------------------------------------------------------- errors


def test_unknown_and_fractional_counts_are_refused():
    X = documents()
    X[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN: nan in row 1, column 'x2'; a document"):
        bg.DirichletCompoundMultinomialNB().fit(X, Y)
    X[1, 2] = 0.5
    with pytest.raises(ValueError, match=r"counts must be whole numbers to be fitted, got 0\.5"):
        bg.DirichletCompoundMultinomialNB().fit(X, Y)
    with pytest.raises(ValueError, match="missing counts"):
        DirichletCompound().log_likelihood(np.array([[np.nan, 1]]), THETA)


# ---------------------------------------------------------------------------------------- NUTS


def bursty(rng: np.random.Generator, n: int, d: int) -> Any:
    mean = rng.dirichlet(np.ones(d), 1) * np.exp(0.5 * rng.normal(size=(2, d)))
    truth = {"mean": mean / mean.sum(axis=1, keepdims=True), "concentration": np.array([5.0, 15.0])}
    y = rng.integers(0, 2, n)
    length = rng.integers(5, 60, n)
    return DirichletCompound(length=length).simulate(rng, truth, y), y, truth


@pytest.mark.slow
def test_nuts_finds_the_bursts_and_beats_the_multinomial():
    n, d = 300, 20
    X, y, truth = bursty(np.random.default_rng(3), 2 * n, d)
    labels = y[:n].astype(object)
    labels[:60] = None
    clf = bg.DirichletCompoundMultinomialNB(draws=1000, tune=500, chains=4, random_state=1)
    clf.fit(sparse.csr_matrix(X[:n]), labels, progressbar=False)
    posterior = sound(clf, 1.02)
    held = [inside(posterior[name], value).ravel() for name, value in truth.items()]
    assert np.concatenate(held).mean() >= 0.9
    assert likelier(clf, bg.MultinomialNB().fit(X[60:n], y[60:n]), X[n:], y[n:])
