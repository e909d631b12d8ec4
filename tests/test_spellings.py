"""One spelling of an argument over the whole package; that of PyMC and ArviZ is answered."""

import inspect
import pickle

import pytest

import bayesgen as bg
from bayesgen.errors import SPELLINGS
from bayesgen.estimators import ESTIMATORS

FUNCTIONS = [f for name in bg.__all__ if inspect.isfunction(f := getattr(bg, name))]
FUNCTIONS += [getattr(bg.plots, name) for name in bg.plots.__all__]
METHODS = [f for cls in ESTIMATORS for f in vars(cls).values() if inspect.isfunction(f)]
METHODS = [f for f in METHODS if not f.__name__.startswith("_")]


def test_no_argument_has_another_spelling():
    for function in (*FUNCTIONS, *METHODS, *(cls.__init__ for cls in ESTIMATORS)):
        wrong = SPELLINGS.keys() & inspect.signature(function).parameters.keys()
        assert not wrong, function.__qualname__


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_answer_the_other_spelling(function):
    parameters = inspect.signature(function).parameters
    for other, own in SPELLINGS.items():
        if own in parameters:
            with pytest.raises(TypeError, match=f"no argument {other!r}: use {own}="):
                function(**{other: 1})
    assert pickle.loads(pickle.dumps(function)) is function


def test_methods_and_constructors_answer_it():
    clf = bg.GaussianNB().fit([[1.0], [1.4], [4.0], [4.4]], ["a", "a", "b", "b"])
    for call in (
        lambda: clf.sample_posterior(random_seed=1),
        lambda: clf.draw_posterior(seed=1),
        lambda: bg.StudentTNB().fit([[1.0]], ["a"], random_seed=1),
        lambda: bg.StudentTNB(random_seed=1),
    ):
        with pytest.raises(TypeError, match="use random_state="):
            call()
    with pytest.raises(TypeError, match="use prob="):
        clf.predict_interval([[1.0]], ci_prob=0.9)
    with pytest.raises(TypeError, match="use nuts_sampler="):
        clf.sample_posterior(sampler="pymc")
