"""What holds for every estimator in closed form, whatever its family: its answers agree."""

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import logsumexp, softmax
from sklearn.utils import _safe_indexing as take

from bayesgen.estimators import ESTIMATORS, MetaTreeForest, TreeAugmentedNB
from bayesgen.estimators.sampled import SampledClassifier
from bayesgen.families.errors import UndefinedEstimateError
from tests.estimators.cases import (
    CASES,
    KINDS,
    LABELS,
    PLUG_INS,
    REAL_KINDS,
    defined,
    degenerate,
    every_case,
    fitted,
    sample,
)


def test_every_estimator_has_a_case():
    closed = {estimator for estimator in ESTIMATORS if not issubclass(estimator, SampledClassifier)}
    closed -= {TreeAugmentedNB, MetaTreeForest}  # test_binned, test_meta_trees: without plug-ins
    assert {type(case.make()) for case in CASES.values()} == closed


@every_case
def test_probabilities_joint_densities_and_row_densities_agree(case):
    clf, X, y = fitted(case)
    for method, joint in defined(clf, X).items():
        possible = np.isfinite(joint).any(axis=1)
        if not possible.all():
            assert method == "mle" or method == "map"
            X, y, joint = take(X, possible.nonzero()[0]), y[possible], joint[possible]
        log_x = logsumexp(joint, axis=1)
        p = clf.predict_proba(X, method=method)
        np.testing.assert_allclose(p, softmax(joint, axis=1), rtol=1e-12)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
        np.testing.assert_allclose(clf.score_samples(X, method=method), log_x, rtol=1e-12)
        log_p = clf.predict_log_proba(X, method=method)
        np.testing.assert_allclose(log_p, joint - log_x[:, None], rtol=1e-10, atol=1e-12)
        best = clf.classes_[joint.argmax(axis=1)]
        np.testing.assert_array_equal(clf.predict(X, method=method), best)
        np.testing.assert_array_equal(clf.decision_function(X, method=method), log_p)
    assert clf.score(X, y) == np.mean(clf.predict(X) == y) > 0.5


@every_case
def test_another_class_prior_is_an_exact_label_shift(case):
    clf, X, _ = fitted(case)
    new = np.array([0.7, 0.1, 0.2])
    for method in ("posterior_predictive", "posterior_mean"):
        old = clf.predict_proba(X, method=method)
        shifted = old * new / clf.model_.class_weights(method, clf.stats_)
        expected = shifted / shifted.sum(axis=1, keepdims=True)
        p = clf.predict_proba(X, method=method, class_prior=new)
        np.testing.assert_allclose(p, expected, rtol=1e-9)
        log_x = clf.score_samples(X, method=method, class_prior=new)
        joint = clf.predict_joint_log_proba(X, method=method, class_prior=new)
        np.testing.assert_allclose(log_x, logsumexp(joint, axis=1), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
@degenerate
@every_case
def test_one_class_is_certain(case):
    X, codes, y = sample(case)
    rows = np.flatnonzero(codes == 1)
    clf = case.make().fit(take(X, rows), y[rows])
    np.testing.assert_array_equal(clf.predict_proba(X), np.ones((60, 1)))
    assert set(clf.predict(X)) == {"birch"}
    assert np.isfinite(clf.log_evidence_)


@every_case
@pytest.mark.parametrize("source", ["predictive", "draw"])
def test_simulated_rows_are_rows_of_the_classifier(case, source):
    clf, _, _ = fitted(case)
    (X, y), (again, labels), (other, _) = (
        clf.simulate(40, random_state=seed, source=source) for seed in (1, 1, 2)
    )
    assert len(X) == len(y) == 40
    assert set(y) <= set(LABELS)
    X, again, other = (np.asarray(rows, dtype=object) for rows in (X, again, other))
    np.testing.assert_array_equal(again, X)
    np.testing.assert_array_equal(labels, y)
    assert not np.array_equal(other, X)
    X, y = clf.simulate(40, random_state=1, source=source)
    assert np.isfinite(clf.score_samples(X)).all()
    assert case.make().fit(X, y).n_rows_seen_ == 40
    wanted = ["cedar", "ash", "cedar"]
    for n, labels in ((3, "birch"), (3, wanted), (0, None)):
        X, y = clf.simulate(n, labels, source=source)
        assert len(X) == n
        assert y.tolist() == ([labels] * 3 if labels == "birch" else labels or [])


@every_case
def test_estimates_are_what_is_plugged_in(case):
    clf, _, _ = fitted(case)
    for method in PLUG_INS:
        try:
            theta = clf.model_.estimate(method, clf.stats_)
        except UndefinedEstimateError:
            with pytest.raises(ValueError, match=method):
                clf.estimates(method)
            continue
        estimates = clf.estimates(method)
        assert list(estimates["pi"]["class"].values) == list(clf.classes_)
        np.testing.assert_allclose(estimates["pi"], clf.model_.class_weights(method, clf.stats_))
        for name, value in theta.items():
            if estimates[name].shape == np.shape(value):
                np.testing.assert_array_equal(estimates[name], value)
            else:  # categories that exist, in one dim
                assert estimates[name].dims[-1].endswith("feature_category")
                assert estimates[name].sum() == pytest.approx(np.sum(value))


@every_case
def test_the_summary_counts_rows_and_missing_cells(case):
    clf, X, y = fitted(case)
    summary = clf.summary()
    text = str(summary)
    assert text.startswith(f"{type(clf).__name__}, closed form: 60 rows\n")
    assert f"Log evidence: {clf.log_evidence_:.2f} nats." in text
    assert summary.table["rows"].values.tolist() == [np.sum(y == label) for label in LABELS]
    assert summary.table.attrs["log_evidence"] == clf.log_evidence_
    cells = pd.DataFrame(X).isna().sum()
    if clf.prior_.family.missing == "marginalised" and len(summary.to_dataframe()):
        assert summary.table["missing"].values.tolist() == cells.tolist()
    assert len(summary.to_dataframe()) == summary.table.sizes.get("feature", 0)
    assert " nan" not in text
    assert clf.summary()._repr_html_() in clf._repr_html_()


@every_case
def test_the_posterior_is_a_tree_that_arviz_takes(case):
    clf, X, y = fitted(case)
    tree = clf.posterior_
    assert isinstance(tree, xr.DataTree)
    assert set(tree.children) == {"posterior", "fit", "constant_data", "observed_data"}
    assert tree.attrs["route"] == "closed form"
    assert tree.attrs["estimator"] == type(clf).__name__
    draws = tree["posterior"].to_dataset()
    assert (draws.sizes["chain"], draws.sizes["draw"]) == (4, 500)
    assert draws["pi"].dims == ("chain", "draw", "class")
    np.testing.assert_allclose(draws["pi"].sum("class"), 1)
    assert draws["class"].values.tolist() == LABELS.tolist()
    order = ["chain", "draw", "class", "context", "feature", "feature_bis", "category", "token"]
    order += ["feature_category", "axis", "axis_pair"]
    prefixes = tuple(KINDS | REAL_KINDS)
    for variable in draws.data_vars.values():
        dims = [d.split("_", 1)[-1] if d.startswith(prefixes) else d for d in variable.dims]
        assert dims == sorted(dims, key=order.index)
        assert np.isfinite(variable).all()
    n = tree["observed_data"]["stats_class"]
    np.testing.assert_array_equal(n, np.bincount(np.searchsorted(LABELS, y)))
    assert az.summary(tree, var_names=["pi"]).index.tolist() == [f"pi[{c}]" for c in LABELS]
    assert clf.posterior_ is tree  # made once
    clf.partial_fit(X, y)
    assert clf.posterior_ is not tree  # and made anew
