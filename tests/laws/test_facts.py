"""What a family says of itself: what its columns hold, what they are called."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.cli.models import Model, classifier, short_name
from bayesgen.estimators import ESTIMATORS
from bayesgen.estimators.sampled import SampledClassifier
from bayesgen.families import registry

CLASSIFIERS = (*ESTIMATORS, bg.LogLinearPool)
HOLDS = ("real", "count", "bit", "category", "code", "token")


@pytest.mark.parametrize("name", sorted(set(registry()) - {"Columns"}))
def test_no_family_forgets_what_its_columns_hold(name):
    family = registry()[name]
    assert family.holds in HOLDS
    assert family.kind
    for example in family.examples(2, 3) if family.conjugate else ():
        if family.holds not in ("real", "token"):
            x = example.simulate(np.random.default_rng(0), draw(example), np.array([0, 1, 1]))
            cells = np.asarray(x.toarray() if hasattr(x, "toarray") else x, dtype=float)
            assert (cells % 1 == 0).all()


def draw(family):
    return {k: v[0] for k, v in family.draw(np.random.default_rng(0), 1).items()}


def quoted(text):
    """Strings of a module that are no docstrings, annotations or entries of an ``__all__``."""
    tree = ast.parse(text)
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        names = [ast.unparse(t) for t in getattr(node, "targets", ())]
        notes = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
            notes.append(node.args[0])
        for part in [*filter(None, notes), *([node.value] if names == ["__all__"] else ())]:
            skipped |= {*ast.walk(part)}
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n not in skipped]
    return {n.value for n in nodes if isinstance(n.value, str)}


def test_no_module_knows_a_family_or_a_classifier_by_the_name_of_its_class():
    known = {*registry(), *(one.__name__ for one in CLASSIFIERS)}
    quotes = re.compile(rf"['\"]({'|'.join(known)})['\"]")
    texts = {file: file.read_text() for file in Path(bg.__file__).parent.rglob("*.py")}
    found = {file: quoted(text) & known for file, text in texts.items() if quotes.search(text)}
    assert not any(found.values()), found


def test_the_command_line_has_a_name_for_every_classifier_in_closed_form():
    closed = [one for one in CLASSIFIERS if not issubclass(one, SampledClassifier)]
    closed.remove(bg.GenerativeClassifier)
    assert sorted(map(short_name, closed)) == sorted(Model)
    assert all(classifier(model) in closed for model in Model)
