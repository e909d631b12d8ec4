"""What users may rely on: the public names and their parameters are those of public_api.txt.

A change is entered on purpose: ``tools/public_api.py --update``, and the diff is read.
"""

import runpy
from pathlib import Path

from bayesgen.families import registry
from tests.estimators.cases import every_case, fitted

ROOT = Path(__file__).parents[1]
PRESENT = runpy.run_path(str(ROOT / "tools" / "public_api.py"))["public_api"]
KNOWN = (ROOT / "tests" / "public_api.txt").read_text(encoding="utf-8").splitlines()


def test_names_and_parameters_are_those_that_were_entered():
    present = set(PRESENT())
    new = present - set(KNOWN)
    families = tuple(f"bayesgen.families.{name}(" for name in registry())  # a file is the entry
    assert [line for line in new if not line.startswith(families)] == []
    assert set(KNOWN) - present == set()


OF_SCIKIT_LEARN = {"n_features_in_", "feature_names_in_", "coef_", "intercept_", "theta_", "var_"}
OF_SCIKIT_LEARN |= {"covariance_", "means_", "feature_log_prob_"}


@every_case
def test_a_fitted_classifier_has_the_documented_attributes_or_says_why_not(case):
    clf, *_ = fitted(case)
    names = f"bayesgen.{type(clf).__name__}", "bayesgen.GenerativeClassifier"
    absent = {}
    for line in KNOWN:
        owner, _, attribute = line.partition(" has ")
        if owner in names and attribute:
            try:
                getattr(clf, attribute)
            except AttributeError as error:
                absent[attribute] = str(error)
    assert set(absent) <= OF_SCIKIT_LEARN
    assert not any("object has no attribute" in reason for reason in absent.values())
