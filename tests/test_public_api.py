"""What users may rely on: the public names and their parameters are those of public_api.txt.

A change is entered on purpose: ``tools/public_api.py --update``, and the diff is read.
"""

import ast
import runpy
from pathlib import Path

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families import registry

ROOT = Path(__file__).parents[1]
PRESENT = runpy.run_path(str(ROOT / "tools" / "public_api.py"))["public_api"]
KNOWN = (ROOT / "tests" / "public_api.txt").read_text(encoding="utf-8").splitlines()


def extends(new: str, old: str) -> bool:
    """Whether every call that fits the signature ``old``, "(a, b=1)", fits ``new`` and means it."""

    def read(signature: str) -> tuple[list, dict, bool, bool]:
        of = ast.parse(f"def f{signature}: ...").body[0].args
        defaults = [*[None] * (len(of.args) - len(of.defaults)), *map(ast.unparse, of.defaults)]
        by_position = list(zip([a.arg for a in of.args], defaults, strict=True))
        by_name = {
            a.arg: None if default is None else ast.unparse(default)
            for a, default in zip(of.kwonlyargs, of.kw_defaults, strict=True)
        }
        return by_position, by_name, of.vararg is not None, of.kwarg is not None

    position, name, starred, double = read(new)
    old_position, old_name, old_starred, old_double = read(old)
    n = len(old_position)
    known = dict(position) | name
    needed = [a for a, default in [*position[n:], *name.items()] if default is None]
    return (
        [a for a, _ in position[:n]] == [a for a, _ in old_position]
        # what had to be given may be left out now
        and all(
            old in (None, new) for (_, new), (_, old) in zip(position, old_position, strict=False)
        )
        and all(known[a] == default if a in known else double for a, default in old_name.items())
        and all(a in old_name for a in needed)
        and starred >= old_starred
        and double >= old_double
    )


def signatures(lines: list[str]) -> dict[str, str]:
    """{name: "(parameters)"} of the lines that have parameters."""
    cut = [line.partition("(") for line in lines if line.endswith(")") and " = " not in line]
    return {name: f"({rest}" for name, bracket, rest in cut if bracket}


@pytest.fixture(scope="module")
def present() -> list[str]:
    return PRESENT()


def test_names_and_parameters_are_those_that_were_entered(present):
    new = set(present) - set(KNOWN)
    families = tuple(f"bayesgen.families.{name}(" for name in registry())  # a file is the entry
    assert [line for line in new if not line.startswith(families)] == []
    assert set(KNOWN) - set(present) == set()


def test_a_classifiers_own_methods_accept_the_calls_of_all(present):
    now = signatures(present)
    methods = {n.rpartition(".")[2]: s for n, s in now.items() if "GenerativeClassifier." in n}
    for name, of in now.items():
        cls, _, method = name.removeprefix("bayesgen.").rpartition(".")
        if method in methods and isinstance(getattr(bg, cls, None), type):
            assert extends(of, methods[method]) or not issubclass(
                getattr(bg, cls), bg.GenerativeClassifier
            ), name


BITS = np.array([[1, 0], [1, 1], [0, 1], [0, 0]])
REALS = BITS + np.array([0.5, 0.25])
OF_SCIKIT_LEARN = {"n_features_in_", "feature_names_in_", "coef_", "intercept_", "theta_", "var_"}
OF_SCIKIT_LEARN |= {"covariance_", "means_", "feature_log_prob_"}


@pytest.mark.parametrize(
    ("name", "X"),
    [
        ("BernoulliNB", BITS),
        ("CategoricalNB", BITS),
        ("GaussianNB", REALS),
        ("GenerativeClassifier", REALS),
        ("LinearDiscriminant", REALS),
        ("MarkovNB", ["ab", "ba", "bc", "cb"]),
        ("MixedNB", BITS),
        ("MultinomialNB", BITS + 1),
        ("PoissonNB", BITS),
        ("QuadraticDiscriminant", REALS),
    ],
)
def test_a_fitted_classifier_has_the_documented_attributes_or_says_why_not(name, X):
    clf = getattr(bg, name)().fit(X, ["a", "a", "b", "b"])
    absent = {}
    for line in KNOWN:
        owner, _, attribute = line.partition(" has ")
        if owner in (f"bayesgen.{name}", "bayesgen.GenerativeClassifier") and attribute:
            try:
                getattr(clf, attribute)
            except AttributeError as error:
                absent[attribute] = str(error)
    assert set(absent) <= OF_SCIKIT_LEARN
    assert not any("object has no attribute" in reason for reason in absent.values())
