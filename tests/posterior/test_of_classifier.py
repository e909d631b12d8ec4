"""Functions that take a classifier refuse everything else by one sentence, before any work."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesgen as bg

X, Y = load_iris(return_X_y=True)

OF_THE_POSTERIOR = {
    "mutual_information": bg.mutual_information,
    "estimate_class_prior": lambda clf: bg.estimate_class_prior(clf, X),
}
AT_TRAINING_ROWS = {
    "label_errors": lambda clf: bg.label_errors(clf, X, Y)["wrong"],
    "compare_models": lambda clf: bg.compare_models({"it": clf}, X, Y).table["elpd"],
}
OF_PREDICTIVES = {
    "compare_predictives": lambda clf: bg.compare_predictives(clf, X, Y),
    "several": lambda clf: bg.compare_predictives({"it": clf}, X, Y),
}
REFITTED = {"validate": lambda clf: bg.validate(clf, X, Y)}
EVERY = OF_THE_POSTERIOR | OF_PREDICTIVES | AT_TRAINING_ROWS | REFITTED


@pytest.mark.parametrize("given", EVERY)
def test_other_classifiers(given):
    name = {"several": "model 'it': compare_predictives"}.get(given, given)
    with pytest.raises(TypeError, match=f"{name} takes a generative .* LogisticRegression"):
        EVERY[given](LogisticRegression())


@pytest.mark.parametrize("name", OF_THE_POSTERIOR | REFITTED)
def test_pools_and_pipelines(name):
    if name != "validate":  # which takes the members of a pool
        with pytest.raises(TypeError, match=r"a LogLinearPool.*members"):
            EVERY[name](bg.LogLinearPool([bg.GaussianNB()]))
    if name != "estimate_class_prior":  # which takes rows, and a pipeline to read them
        with pytest.raises(TypeError, match=r"a Pipeline: clf, rows = bg\.final_estimator"):
            EVERY[name](make_pipeline(StandardScaler(), bg.GaussianNB()))


@pytest.mark.parametrize("name", OF_THE_POSTERIOR | OF_PREDICTIVES)
def test_unfitted(name):
    with pytest.raises(NotFittedError):
        EVERY[name](bg.GaussianNB())


@pytest.mark.parametrize("name", AT_TRAINING_ROWS)
def test_what_is_not_fitted_is_fitted_to_training_rows(name):
    for make in (bg.GaussianNB, lambda: make_pipeline(StandardScaler(), bg.GaussianNB())):
        clf = make()
        answer = AT_TRAINING_ROWS[name](clf)
        assert not hasattr(clf, "classes_")  # a clone is
        np.testing.assert_array_equal(answer, AT_TRAINING_ROWS[name](make().fit(X, Y)))


def test_decisions_need_probabilities_alone():
    clf = LogisticRegression(max_iter=1000).fit(X, Y)
    table = bg.decide(clf, X, 1 - np.eye(3))
    np.testing.assert_array_equal(table["decision"].values, clf.predict(X))
