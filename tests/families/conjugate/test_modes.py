"""Modes at the edge of the support, and densities that have none: refused by class and feature."""

import numpy as np
import pytest

from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical
from bayesgen.families.conjugate.dirichlet_markov import DirichletMarkov
from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.families.errors import UndefinedEstimateError


def edged(entry, *shape):
    """Hyper-parameters of 2 but for class 1, feature 2."""
    full = np.full(shape, 2.0)
    full[1, 2] = entry
    return full


def bits(alpha, beta):
    return BetaBernoulli(edged(alpha, 2, 3), edged(beta, 2, 3))


def counts(shape):
    return GammaPoisson(edged(shape, 2, 3), np.ones((2, 3)))


def codes(alpha):
    return DirichletCategorical(edged(alpha, 2, 3, 4))


def words(*alpha):
    return DirichletMultinomial(np.array([[2.0, 3, 4], alpha]))


def letters(*documents, order=1, alpha=1.0):
    X = np.empty(len(documents), dtype=object)
    X[:] = [np.array(document) for document in documents]
    family = DirichletMarkov(order, 2, alpha)
    stats = family.stats(X, np.arange(len(X)), len(X))
    return family.resolve(stats).update(stats)


IN_CLASS, IN_CELL = np.s_[-1], np.s_[1, 2]
MODES = [
    (bits(1, 3), IN_CELL, 0.0),
    (bits(3, 1), IN_CELL, 1.0),
    (counts(1.0), IN_CELL, 0.0),
    (codes([1, 3, 2, 0]), IN_CELL, [0, 2 / 3, 1 / 3, 0]),
    (codes([0.2, 0, 0, 0]), IN_CELL, [1, 0, 0, 0]),
    (words(1, 3, 2), IN_CLASS, [0, 2 / 3, 1 / 3]),
    (letters([0, 1]), IN_CLASS, [[0.5, 0.5]]),
    (letters([0, 0]), IN_CLASS, [[1.0, 0.0]]),
    (letters([0, 0, 1], alpha=0.5), IN_CLASS, [[0.75, 0.25]]),
]
NONE = [
    (bits(0.5, 3), (1, 2), "class 1, feature 2: a Beta density"),
    (bits(1, 1), (1, 2), "class 1, feature 2: a Beta density"),
    (counts(0.99), (1, 2), "class 1, feature 2: a Gamma density"),
    (codes([1, 1, 0, 0]), (1, 2), "class 1, feature 2: .*flat"),
    (codes([0.9, 5, 5, 0]), (1, 2), "class 1, feature 2: .*unbounded"),
    (words(1, 1, 1), (1, None), "class 1: .*flat"),
    (words(5, 0.9, 5), (1, 1), "class 1, feature 1: .*unbounded"),
    (letters([0, 1, 0], [1, 1], order=2), (1, 1), r"class 1.*\(0,\).*alpha > 1"),
]


@pytest.mark.parametrize(("family", "place", "mode"), MODES)
def test_a_mode_at_the_edge(family, place, mode):
    (theta,) = family.map().values()
    np.testing.assert_allclose(theta[place], mode)


@pytest.mark.parametrize(("family", "place", "message"), NONE)
def test_a_density_without_a_mode_is_named(family, place, message):
    with pytest.raises(UndefinedEstimateError, match=message) as caught:
        family.map()
    assert (caught.value.class_index, caught.value.feature_index) == place
