"""A user's `random_state`: what is taken, and one error for the rest."""

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.numerics.special import generator, integer_seed

X = np.random.default_rng(0).normal(size=(24, 2))
y = np.arange(24) % 3
NB = bg.GaussianNB().fit(X, y)
CALLS = {
    "LogLinearPool": lambda seed: bg.LogLinearPool(random_state=seed).fit(X, y),
    "MetaTreeForest": lambda seed: bg.MetaTreeForest(n_trees=2, random_state=seed).fit(X, y),
    "nuts": lambda seed: bg.StudentTNB(draws=5, tune=5).fit(X, y, random_state=seed),
    "predict_interval": lambda seed: NB.predict_interval(X, random_state=seed),
    "predict_uncertainty": lambda seed: NB.predict_uncertainty(X, random_state=seed),
    "predict_posterior": lambda seed: NB.predict_posterior(X, 3, random_state=seed),
    "simulate": lambda seed: NB.simulate(3, random_state=seed),
}


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
@pytest.mark.parametrize("name", CALLS)
def test_a_seed_that_is_none_is_refused(name, seed):
    with pytest.raises(ValueError, match="random_state must be"):
        CALLS[name](seed)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"nuts"}))
@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_generators_are_taken(name, kind):
    CALLS[name](kind(0))


@pytest.mark.parametrize("name", ["LogLinearPool", "MetaTreeForest"])
def test_a_forged_file_with_a_negative_seed_is_refused(name, tmp_path):
    clf = CALLS[name](0)
    clf.random_state = -1
    clf.save(tmp_path / "forged.nc")
    with pytest.raises(ValueError, match="random_state must be"):
        bg.load(tmp_path / "forged.nc").fit(X, y)


def test_integers_are_seeds_themselves():
    assert [integer_seed(s) for s in (None, 0, 7, True)] == [0, 0, 7, 1]
    assert 0 <= integer_seed(1 << 80) < 1 << 63
    assert integer_seed(np.random.RandomState(3)) == integer_seed(np.random.RandomState(3))
    assert generator(5).random() == np.random.default_rng(5).random()
