"""What a family says of itself: what its columns hold, what they are called."""

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


def test_the_command_line_has_a_name_for_every_classifier_in_closed_form():
    closed = [one for one in CLASSIFIERS if not issubclass(one, SampledClassifier)]
    closed.remove(bg.GenerativeClassifier)
    assert sorted(map(short_name, closed)) == sorted(Model)
    assert all(classifier(model) in closed for model in Model)
