"""`loo` and `loo_log_joint` of fitted classifiers: refits, NUTS, ArviZ, refusals."""

import warnings
from contextlib import nullcontext

import arviz as az
import numpy as np
import pytest

import bayesgen as bg
from tests.drawn import drawn


def test_scores_and_their_error(iris):
    X, y = iris
    clf = bg.QuadraticDiscriminant().fit(X, y)
    joint = clf.loo_log_joint(X, y)
    scores = joint[np.arange(150), y] - np.logaddexp.reduce(joint, axis=1)
    label, both = clf.loo(X, y), clf.loo(X, y, target="joint")
    np.testing.assert_allclose(label.elpd_i, scores, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(label.elpd, scores.sum())
    np.testing.assert_allclose(label.se, np.sqrt(150) * scores.std())
    np.testing.assert_allclose(both.elpd, joint[np.arange(150), y].sum())
    full = clf.predict_log_proba(X)[np.arange(150), y]
    np.testing.assert_allclose(label.p, (full - scores).sum())
    assert label.kind == "loo"
    assert not label.warning
    assert label.elpd_i.dims == ("obs_id",)
    assert "Exact leave-one-out" in str(label)


def test_arviz_compares_exact_and_smoothed(iris):
    X, y = iris
    draws = drawn(bg.GaussianNB(), X, y, draws=1000)
    exact = bg.GaussianNB().fit(X, y)
    scores = {
        "exact": exact.loo(X, y),
        "smoothed": draws.loo(X, y),
        "lda": bg.LinearDiscriminant().fit(X, y).loo(X, y),
    }
    table = az.compare(scores)
    assert set(table.index) == set(scores)
    az.plot_compare(table, backend="none")
    assert scores["smoothed"].pareto_k.max() < 0.7
    for target, tolerance in (("label", 0.1), ("joint", 0.3)):  # of 150 rows with 4000 draws
        a, b = exact.loo(X, y, target), draws.loo(X, y, target)
        assert abs(a.elpd - b.elpd) < tolerance
        np.testing.assert_allclose(a.elpd_i, b.elpd_i, atol=0.1)


def test_folds_and_labels_of_groups(penguins):
    X, y = penguins
    X = X[["bill_length_mm", "sex"]]
    clf = bg.MixedNB().fit(X, y)
    site = np.array(list("abcde"))[np.arange(len(y)) % 5]
    folds, sites = clf.loo_log_joint(X, y, groups=5), clf.loo_log_joint(X, y, groups=site)
    np.testing.assert_allclose(folds, sites, rtol=1e-9)
    each = clf.loo_log_joint(X, y, groups=np.arange(len(y)))
    np.testing.assert_allclose(each, clf.loo_log_joint(X, y), rtol=1e-9)
    assert "5 groups" in str(clf.loo(X, y, groups=site))


def test_some_rows_have_their_scores_among_all(iris):
    X, y = iris
    clf = bg.GaussianNB().fit(X, y)
    part = clf.loo(X[::10], y[::10], partial=True)
    np.testing.assert_allclose(part.elpd_i, clf.loo(X, y).elpd_i[::10], rtol=1e-9)


def test_some_rows_of_a_fit_by_draws_are_scored(iris):
    X, y = iris
    w = np.linspace(0.5, 2, len(y))
    clf = drawn(bg.GaussianNB(), X, y, w, draws=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bg.MonteCarloWarning)
        part = clf.loo(X[::5], y[::5], sample_weight=w[::5], partial=True)
    assert part.n_data_points == 30


@pytest.mark.filterwarnings("ignore::bayesgen.posterior.drawn.MonteCarloWarning")
def test_rows_of_weight_0_are_left_out_of_the_scores_of_a_fit_by_draws(iris):
    X, y = iris
    w = np.where(np.arange(len(y)) % 10 == 0, 0.0, 1.0)
    clf = drawn(bg.GaussianNB(), X, y, w, draws=50)
    scores = clf.loo(X, y, sample_weight=w)
    assert list(scores.elpd_i.obs_id.values) == list(np.flatnonzero(w))
    scores_of_these = drawn(bg.GaussianNB(), X[w > 0], y[w > 0], draws=50).loo(X[w > 0], y[w > 0])
    np.testing.assert_allclose(scores.elpd_i, scores_of_these.elpd_i)


def test_a_row_without_cells_leaves_draws_as_they_are():
    X = np.array([[0.1], [0.4], [np.nan], [2.0], [2.2], [np.nan]])
    y = np.array([0, 0, 0, 1, 1, 1])
    exact = bg.GaussianNB().fit(X, y).fitted_.posterior
    theta = exact.draw(np.random.default_rng(0), 200, 4)
    posterior = exact.with_draws(theta, exact_weights=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bg.MonteCarloWarning)
        joint, k = posterior.log_joint_without(X, y, np.ones(6))
    assert np.isneginf(k[[2, 5]]).all()
    np.testing.assert_allclose(joint[[2, 5], [0, 1]], np.log(3 / 7), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::bayesgen.posterior.drawn.MonteCarloWarning")
@pytest.mark.parametrize(("draws", "chains"), [(1, 1), (3, 1), (2, 2), (4, 1)])
def test_draws_too_few_for_a_tail_or_an_error_are_said_to_be(iris, draws, chains):
    X, y = iris
    said = pytest.warns(UserWarning, match="one draw, which has no spread")
    with said if draws == 1 else nullcontext():
        clf = drawn(bg.GaussianNB(), X, y, draws=draws, chains=chains)
    with pytest.warns(bg.MonteCarloWarning, match=r"Pareto k .*largest, inf"):
        assert np.isposinf(clf.loo(X, y).pareto_k).all()
    if draws < 4:
        by_error = [clf.predict_uncertainty, clf.predict_interval]
        by_rows = [clf.typicality, clf.predict_set]  # one draw is its own mean, without an error
        for ask in by_error + by_rows * (draws > 1):
            with pytest.raises(ValueError, match="4 or more are needed"):
                ask(X[:3])
    if draws == 1:  # scores of training rows are made once, for both
        with pytest.warns(bg.MonteCarloWarning, match=r"Pareto k .*largest, inf"):
            [ask(X[:3]) for ask in by_rows]
