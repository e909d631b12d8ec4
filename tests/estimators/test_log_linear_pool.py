"""Pools whatever their exponents are: members, ways in, refusals, files."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse
from scipy.special import log_softmax
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayesgen as bg
from bayesgen.posterior.pooled import MemberRows
from tests.selection import checks_of_a_fit

pytestmark = pytest.mark.usefixtures("few_exponents")
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a row of weight 2 leaves whole, and of two equal rows one stays: exponents differ"
    ),
    "check_estimators_nan_inf": "missing cells are refused in fit and marginalised in predict",
}


def two():
    return bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()])


@parametrize_with_checks([two()], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize(("pool", "check"), checks_of_a_fit([bg.LogLinearPool()]))
def test_scikit_learn_of_members_for_the_columns(pool, check):
    check(pool)


@pytest.fixture(scope="module")
def flowers(iris):
    X, y = iris
    return X[::4], y[::4]


@pytest.fixture(scope="module")
def pool(flowers):
    return two().fit(*flowers)


def test_texts_without_a_known_token_have_the_class_frequencies():
    texts = ["cheap pills now"] * 3 + ["see you at noon", "lunch at noon", "see you then"] * 9
    pool = bg.LogLinearPool().fit(texts, ["spam"] * 3 + ["ham"] * 27)
    p = pool.predict_proba(["", "  ", "\u041f\u0440\u0438\u0432\u0435\u0442"])
    np.testing.assert_allclose(p[[0, 2]], [[28 / 32, 4 / 32]] * 2, rtol=1e-12)


def test_pipelines_and_names(flowers):
    X, y = flowers
    scaled = make_pipeline(StandardScaler(), bg.GaussianNB())
    pool = bg.LogLinearPool([("scaled", scaled), bg.GaussianNB()]).fit(X, y)
    assert list(pool.members_) == ["scaled", "GaussianNB"]
    rows = pool.fitted_.read(X).encoded
    a, b = (rows.log_joint(m) for m in pool.fitted_.posterior.members)
    np.testing.assert_allclose(log_softmax(a, axis=1), log_softmax(b, axis=1), atol=1e-9)
    with pytest.raises(TypeError, match="is a pipeline"):
        pool.save("nowhere.nc")


def test_documents_and_counts():
    texts = np.array(["aab", "abb", "aba", "ccd", "cdc", "ddc"] * 3, dtype=object)
    y = np.repeat(["x", "y"], 3).tolist() * 3
    pool = bg.LogLinearPool().fit(texts, y)
    assert "characters, order 2" in pool.members_
    assert (pool.predict(texts) == y).all()
    counts = sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, size=(18, 5)))
    assert set(bg.LogLinearPool().fit(counts, y).members_) == {"bits", "counts"}


def test_many_rows_give_exponents_from_some(flowers):
    member = bg.GaussianNB()
    pool = bg.LogLinearPool([member], max_rows=20, random_state=1).fit(*flowers)
    assert pool.n_rows_ == 20
    assert len(np.unique(pool.fitted_.posterior.scored.codes)) == 3  # drawn, not the first
    assert pool.members_["GaussianNB"].stats_.count.sum() == len(flowers[1])
    assert not hasattr(member, "fitted_")  # its clone is


def test_prediction_sets(iris):
    """They hold the label of rows that the pool has not seen as often as they say."""
    X, y = iris
    train = np.arange(len(y)) % 2 == 0
    pool = two().fit(X[train], y[train])
    sets = pool.predict_set(X[~train], coverage=0.9)
    covered = sets["included"].values[np.arange(75), y[~train]].mean()
    assert abs(covered - 0.9) < 3 * np.sqrt(2 * 0.9 * 0.1 / 75)  # limit and rows are both of 75
    p = pool.predict_proba(X[~train])
    limit = sets["limit"].values[0]
    np.testing.assert_array_equal(sets["included"].values, p >= limit * (1 - 1e-12))
    by_rows = pool.predict_set(X[~train], coverage=0.9, training=(X[train], y[train]))
    xr.testing.assert_identical(by_rows, sets)


def test_draws_of_the_exponents_are_taken_back(flowers, pool):
    p = pool.predict_proba(flowers[0])
    again = pool.with_posterior(pool.posterior_).predict_proba(flowers[0])
    np.testing.assert_array_equal(again, p)


def test_missing_cells_are_means_in_training_and_integrated_out_later():
    rng = np.random.default_rng(3)
    y = np.arange(60) % 2
    X = pd.DataFrame(rng.normal(size=(60, 3)) + y[:, None], columns=list("abc"))
    X.loc[::7, "a"] = np.nan
    pool = bg.LogLinearPool().fit(X, y)
    alone = bg.LinearDiscriminant().fit(X.fillna(X.mean()), y)
    (member,) = (m for m in pool.fitted_.posterior.members if m.name == "linear")
    scores = pool.fitted_.encoded(X).log_joint(member)
    np.testing.assert_allclose(
        log_softmax(scores, axis=1), alone.predict_log_proba(X), rtol=1e-9, atol=1e-9
    )
    left_out = pool.fitted_.encoded(X).log_joint_without(member, y, np.ones(60))
    np.testing.assert_allclose(left_out, alone.loo_log_joint(X.fillna(X.mean()), y), rtol=1e-9)


def test_label_trees_have_the_random_state_of_the_pool(flowers):
    """That a table is read once for all members: tools/structure.py."""
    assert bg.LogLinearPool(random_state=5).fit(*flowers).members_["label trees"].random_state == 5


@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
def test_members_share_readings_only_where_they_read_alike():
    X = pd.DataFrame({"a": list("uvw") * 8, "x": np.arange(24.0) % 7})
    y = np.arange(24) % 2

    class Own(bg.MixedNB):
        def fit(self, X, y, sample_weight=None):  # which is given the rows themselves
            return super().fit(X[["a", "x"]], y, sample_weight)

    members = [bg.MixedNB(), bg.MixedNB(unseen="prior"), Own(variance="tied")]
    members += [bg.TreeAugmentedNB(n_bins=n, missing="category") for n in (2, 3, 3)]
    pool = bg.LogLinearPool(members).fit(X, y)
    new = pd.DataFrame({"a": ["u", "never", None], "x": [1.0, 2.0, np.nan]})
    rows = pool.fitted_.encoded(new)
    for member in pool.fitted_.posterior.members:
        alone = member.clf.predict_joint_log_proba(new)
        np.testing.assert_allclose(
            log_softmax(rows.log_joint(member), axis=1), log_softmax(alone, axis=1), atol=1e-12
        )
    assert len({id(rows.read(member)) for member in pool.fitted_.posterior.members}) == 4


def test_views_that_no_later_member_sees_are_dropped(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = np.column_stack([rng.normal(y, 1.0), rng.exponential(1 + y), rng.poisson(2 + y)])
    few = {"max_rows": 25, "random_state": 0}
    held = []
    forget = MemberRows.forget

    def watched(self, later):
        forget(self, later)
        held.append(len(self._made))

    monkeypatch.setattr(MemberRows, "forget", watched)
    dropped = bg.LogLinearPool(**few).fit(X, y).predict_proba(X)
    assert held[-1] == 0 < max(held)
    monkeypatch.setattr(MemberRows, "forget", lambda self, later: None)
    np.testing.assert_array_equal(bg.LogLinearPool(**few).fit(X, y).predict_proba(X), dropped)
