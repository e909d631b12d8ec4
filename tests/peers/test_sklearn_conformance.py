"""scikit-learn's own checks on every estimator, and its tools that users combine with them.

An exception from a check stands in `expected_failures` with its reason; `xfail_strict` keeps the
table honest: a listed check that passes is an error too.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

import bayesgen as bg
from bayesgen.estimators import ESTIMATORS
from bayesgen.estimators.sampled import SampledClassifier
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart


@pytest.fixture(autouse=True, scope="module")
def stated_priors():
    """Fits choose their prior, as they do for users."""


NEGATIVE = "counts are refused if negative (positive_only), and this check feeds negative numbers"
PREDICTS_NAN = (
    "missing cells are refused in fit, where they have no closed form with a full covariance, but "
    "marginalised exactly in predict, which this check does not foresee"
)
UNSEEN_RAISES = (
    "predicts numbers that training did not show; for categories that is what unseen='raise' is to "
    "refuse"
)
BINS = "bins are quantiles of the rows as they stand, whatever their weights"
HALVES = "a row of weight 2 is of one half of the rows, of two equal rows each is of its own"
CHOSEN = (
    "the prior that fit chooses is scored by rows left out: a row of weight 2 leaves whole, two "
    "equal rows leave one by one, or in folds where they are copies; prior='default' passes"
)
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
SPARSE_WEIGHTS = "check_sample_weight_equivalence_on_sparse_data"
PROBABILITIES = "check_decision_proba_consistency"
ONE_LABEL = "check_classifiers_one_label_sample_weights"
EXPECTED_FAILURES = {  # {check: reason} by class; nothing else may fail
    "BernoulliNB": {SPARSE_WEIGHTS: CHOSEN},
    "CategoricalNB": {SPARSE_WEIGHTS: CHOSEN},
    "GaussianNB": {WEIGHTS: CHOSEN},
    "LinearDiscriminant": {"check_estimators_nan_inf": PREDICTS_NAN},
    "MetaTreeForest": {WEIGHTS: HALVES},
    "MixedNB": {WEIGHTS: CHOSEN},
    "MultinomialNB": {PROBABILITIES: NEGATIVE, SPARSE_WEIGHTS: CHOSEN},
    "PoissonNB": {PROBABILITIES: NEGATIVE, SPARSE_WEIGHTS: CHOSEN},
    "QuadraticDiscriminant": {"check_estimators_nan_inf": PREDICTS_NAN},
    "TreeAugmentedNB": {WEIGHTS: BINS},
}
# those that are sampled: tests/estimators/test_sampled.py
SLOW = bg.TreeAugmentedNB
DEFAULTS = [e() for e in ESTIMATORS if not issubclass(e, (SampledClassifier, SLOW))]
DEFAULTS += [bg.MutualInformationSelector()]
UNSEEN = bg.CategoricalNB(0.5, unseen="raise")


def expected_failures(estimator):
    if estimator is UNSEEN:
        return dict.fromkeys((WEIGHTS, SPARSE_WEIGHTS, PROBABILITIES, ONE_LABEL), UNSEEN_RAISES)
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


@pytest.mark.filterwarnings("ignore::bayesgen.encoding.suspects.CopiedRowsWarning")
@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
@parametrize_with_checks(DEFAULTS, expected_failed_checks=expected_failures)
def test_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesgen.encoding.suspects.CopiedRowsWarning")
@parametrize_with_checks([SLOW(), UNSEEN], expected_failed_checks=expected_failures)
def test_check_of_other_configurations(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [bg.GaussianNB, bg.MixedNB])
def test_under_the_stated_prior_a_weight_is_that_many_rows(estimator):
    check_sample_weight_equivalence_on_dense_data("", estimator(prior="default"))


# ------------------------------------------------------------------------------------- tags

TAGS = [  # what each says of X, and so must do: missing cells in training, sparse, positive
    (bg.BernoulliNB(), True, True, False),
    (bg.CategoricalNB(), True, False, False),
    (bg.MultinomialNB(), False, True, True),
    (bg.PoissonNB(), True, True, True),
    (bg.GaussianNB(), True, False, False),
    (bg.MixedNB(), True, False, False),
    (bg.LinearDiscriminant(), False, False, False),
    (bg.LinearDiscriminant(covariance="diagonal"), True, False, False),
    (bg.QuadraticDiscriminant(), False, False, False),
    (bg.QuadraticDiscriminant(covariance="spherical"), True, False, False),
    (bg.GenerativeClassifier(), True, False, False),
    (bg.GenerativeClassifier(NormalInverseWishart()), False, False, False),
    (bg.MutualInformationSelector(bg.PoissonNB()), True, True, True),
    (bg.MutualInformationSelector(bg.LinearDiscriminant()), False, False, False),
]


@pytest.mark.parametrize(("clf", "missing", "sparse_", "positive"), TAGS, ids=str)
def test_tags_say_what_is_true(clf, missing, sparse_, positive):
    tags = get_tags(clf).input_tags
    assert (tags.allow_nan, tags.sparse, tags.positive_only) == (missing, sparse_, positive)
    assert tags.string == isinstance(clf, bg.CategoricalNB | bg.MixedNB)
    assert tags.categorical == isinstance(clf, bg.CategoricalNB)
    assert get_tags(bg.MarkovNB()).input_tags.string
    X, y = np.array([[0.0, 1], [1, 0], [1, 1], [0, 2], [2, 0], [2, 2]]), [0, 0, 0, 1, 1, 1]

    def accepted(X):
        try:
            clone(clf).fit(X, y)
        except (TypeError, ValueError):
            return False
        return True

    assert accepted(X)
    assert accepted(np.where(np.arange(12).reshape(6, 2) == 5, np.nan, X)) == missing
    assert accepted(sparse.csr_matrix(X)) == sparse_
    assert accepted(X - 1) != positive


# ------------------------------------------------------------------- cross-validation, pipelines

IRIS = load_iris(return_X_y=True)


def test_grid_search_over_hyper_parameters():
    X, y = IRIS
    grid = {"gaussiannb__variance": ["class", "tied"], "gaussiannb__kappa0": [0.1, 1.0]}
    search = GridSearchCV(make_pipeline(StandardScaler(), bg.GaussianNB()), grid, cv=3).fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert search.best_score_ > 0.93
    assert len(search.cv_results_["params"]) == 4
    arrays = {"alpha": [np.ones(4), np.full((3, 1), 0.5)]}  # per feature, per class
    bits = X - X.mean(axis=0) > 0
    best = GridSearchCV(bg.BernoulliNB(), arrays, cv=3).fit(bits, y).best_estimator_
    assert best.classes_.tolist() == [0, 1, 2]


def test_selector_hands_names_on():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X[::4], y[::4]
    selector = bg.MutualInformationSelector(bg.GaussianNB(), n_features=5)
    selector.set_output(transform="pandas").fit(X, y)
    kept = selector.transform(X)
    assert kept.columns.tolist() == selector.get_feature_names_out().tolist()
    pd.testing.assert_frame_equal(kept, X[kept.columns])
    grid = {"mutualinformationselector__n_features": [2, 0.5]}
    pipeline = make_pipeline(selector, bg.GaussianNB())
    assert GridSearchCV(pipeline, grid, cv=3).fit(X, y).best_score_ > 0.9


# ------------------------------------------------------------------------------ sample weights


@pytest.mark.parametrize("search", [False, True])
def test_groups_are_routed_to_fit(search):
    X, y = IRIS
    groups = np.arange(len(y)) // 2
    with config_context(enable_metadata_routing=True):
        clf = make_pipeline(StandardScaler(), bg.GaussianNB().set_fit_request(groups=True))
        if search:
            clf = GridSearchCV(clf, {"gaussiannb__variance": ["tied"]}, cv=GroupKFold(2))
            last = clf.fit(X, y, groups=groups).best_estimator_[-1]
            np.testing.assert_array_equal(last.fitted_.training.groups, groups)
        else:
            options = {"cv": GroupKFold(2), "return_estimator": True}
            for one in cross_validate(clf, X, y, params={"groups": groups}, **options)["estimator"]:
                assert np.bincount(one[-1].fitted_.training.groups).max() == 2


def test_weights_are_routed_through_cross_validation_and_grid_search():
    X, y = IRIS
    weight = np.random.default_rng(5).integers(0, 4, len(y)).astype(float)
    with config_context(enable_metadata_routing=True):
        clf = bg.GaussianNB().set_fit_request(sample_weight=True)
        clf.set_score_request(sample_weight=True)
        scores = cross_validate(clf, X, y, cv=3, params={"sample_weight": weight})["test_score"]
        search = GridSearchCV(clf, {"variance": ["tied"]}, cv=3)
        best = search.fit(X, y, sample_weight=weight).best_estimator_
        with pytest.raises(ValueError, match="sample_weight"):  # not requested: said, not dropped
            cross_validate(bg.GaussianNB(), X, y, cv=3, params={"sample_weight": weight})
    assert len(scores) == 3
    direct = bg.GaussianNB(variance="tied").fit(X, y, weight)
    np.testing.assert_allclose(best.predict_proba(X), direct.predict_proba(X), rtol=1e-12)


# ------------------------------------------------------------------- calibration and ensembles


def test_calibration_in_folds_votes_stacks_and_one_against_rest():
    X, y = IRIS
    parts = [("nb", bg.GaussianNB()), ("lda", bg.LinearDiscriminant())]
    for clf in (
        CalibratedClassifierCV(bg.QuadraticDiscriminant(), cv=3),
        VotingClassifier(parts, voting="soft"),
        StackingClassifier(parts, LogisticRegression(max_iter=1000), cv=3),
        OneVsRestClassifier(bg.GaussianNB()),
    ):
        assert clf.fit(X, y).score(X, y) > 0.93
