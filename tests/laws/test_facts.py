"""What a family says of itself: what it describes, what its columns hold, what they are called."""

import ast
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import bayesgen as bg
from bayesgen import families
from bayesgen.cli.models import Model, classifier, short_name
from bayesgen.estimators import ESTIMATORS
from bayesgen.estimators.sampled import SampledClassifier
from bayesgen.families import names, registry

CLASSIFIERS = (*ESTIMATORS, bg.LogLinearPool)
HOLDS = ("real", "count", "bit", "category", "code", "token")


@pytest.mark.parametrize("name", sorted(set(registry()) - {"Columns"}))
def test_no_family_forgets_what_it_describes(name):
    family = registry()[name]
    said = (names.DENSITY, names.PROBABILITY, names.GIVEN_TOTAL, names.TOKENS, names.LABEL)
    assert family.describes in said
    assert family.holds in HOLDS
    assert family.kind
    assert (family.describes == names.DENSITY) == (
        family.holds == "real" and not family.discriminative
    )
    assert (family.describes == names.LABEL) == family.discriminative
    for example in family.examples(2, 3) if family.conjugate else ():
        if family.describes != names.DENSITY and family.holds not in ("token",):
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


class Wrapped(families.NormalInverseGamma):
    """A family of one's own that says nothing of itself."""

    describes = holds = kind = ""


def test_a_family_of_ones_own_is_compared_with_its_like_alone():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    own, other = (bg.GenerativeClassifier(Wrapped(kappa=k)).fit(X, y) for k in (0.1, 1.0))
    assert own.prior_.family.column_kind() == "wrapped"
    weights = bg.compare_models({"own": own, "other": other}, X, y).table["evidence_weight"]
    assert weights.sum() == pytest.approx(1.0)
    known = bg.GaussianNB().fit(X, y)
    assert np.isnan(
        bg.compare_models({"own": own, "known": known}, X, y).table.evidence_weight
    ).all()


X = np.random.default_rng(1).normal(size=(60, 3)).round(1)
Y = np.arange(60) % 2
COUNTS = np.random.default_rng(2).poisson(2.0, size=(60, 3)) + np.array([1, 0, 0])
CUTS = {j: [-0.5, 0.5] for j in range(3)}
TREE = partial(bg.TreeAugmentedNB, prior="default")
SAME = {
    "Gaussian classes and covariances": (X, bg.GaussianNB(), bg.QuadraticDiscriminant()),
    "the same bins": (X, TREE(strength=4.0), TREE()),
    "blocks of columns": (X, bg.GaussianNB(), bg.MixedNB({"gaussian": [0, 1, 2]})),
}
OTHER = {
    "densities and bins": (X, bg.QuadraticDiscriminant(), TREE()),
    "other numbers of bins": (X, TREE(n_bins=4), TREE(n_bins=3)),
    "other cuts": (X, TREE(), TREE(cuts=CUTS)),
    "thresholds": (X, bg.BernoulliNB(binarize=0.0), bg.BernoulliNB(binarize=0.5)),
    "other columns": (X, bg.GaussianNB(), bg.MixedNB({"gaussian": [0, 1], "drop": [2]})),
    "one block of another kind": (
        COUNTS,
        bg.PoissonNB(),
        bg.MixedNB({"gaussian": [0], "poisson": [1, 2]}),
    ),
    "counts given their total": (COUNTS, bg.PoissonNB(), bg.MultinomialNB()),
}


@pytest.mark.parametrize("pair", [*SAME, *OTHER])
def test_evidence_is_compared_where_the_same_is_described(pair):
    rows, *models = (SAME | OTHER)[pair]
    fitted = {type(m).__name__ + str(k): m.fit(rows, Y) for k, m in enumerate(models)}
    found = bg.compare_models(fitted, rows, Y)
    weights, evidence = found.table["evidence_weight"].values, found.table["log_evidence"].values
    assert np.isfinite(evidence).all()
    if pair in SAME:
        expected = 1 / (1 + np.exp(evidence[::-1] - evidence))
        np.testing.assert_allclose(weights, expected, rtol=1e-9)
    else:
        assert np.isnan(weights).all()
        assert any("describe different things" in note for note in found.notes)


def test_one_split_of_texts_is_no_other():
    texts, y = ["a cat", "a dog", "the cat", "the dog"], [0, 1, 0, 1]
    models = {t: bg.MarkovNB(tokens=t).fit(texts, y) for t in ("char", "word")}
    assert np.isnan(bg.compare_models(models, texts, y).table["evidence_weight"]).all()
    models = {str(n): bg.MarkovNB(n).fit(texts, y) for n in (1, 2)}
    weights = bg.compare_models(models, texts, y).table["evidence_weight"]
    assert weights.sum() == pytest.approx(1.0)
