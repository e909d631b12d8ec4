"""fit(unlabelled=...) against refits, Gibbs and labelled rows alone; what it says and refuses."""

import numpy as np
import pytest
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.inference import fitting
from bayesgen.inference.unlabelled import WEIGHTS
from tests.laws.test_classifiers import CASES, N, Y, same

LABELLED = np.arange(N) % 2 == 0
OF_EACH_KIND = ("GaussianNB", "MixedNB", "MultinomialNB", "MarkovNB")
SOME = np.where(LABELLED, Y, None)


def tried(clf, X, y, *weights):
    """The fit whose candidates are these weights alone."""
    clf.fitted_ = clf._learner()._weighed(X, y, None, weights)
    return clf


def two_groups(n=40, gap=3.0, n_labelled=8, seed=1):
    rng = np.random.default_rng(seed)
    true = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + gap * true[:, None]
    return X, np.where(np.arange(n) < n_labelled, true, -1), true


# ------------------------------------------------------------------------------------- the weight


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_weight_0_is_the_fit_to_the_labelled_rows(name):
    make, X = CASES[name]
    alone = make().fit(take(X, np.flatnonzero(LABELLED)), Y[LABELLED])
    same(tried(make(), X, SOME, 0.0), alone, X, tol=1e-12)
    same(make().fit(X, SOME, unlabelled="ignore"), alone, X, tol=1e-12)


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_every_classifier_weighs_rows_without_a_label(name):
    make, X = CASES[name]
    clf = make().fit(X, SOME, unlabelled="weighted")
    assert 0 <= clf.unlabelled_weight_ < 1
    assert (clf.n_rows_seen_, clf.n_unlabelled_) == (N, N // 2)
    assert clf.stats_.count.sum() == pytest.approx(N / 2 * (1 + clf.unlabelled_weight_))
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1, rtol=1e-9)


def test_missing_cells_are_summed_by_each_fit_of_the_average():
    rng = np.random.default_rng(1)
    y = np.where(np.arange(38) < 8, np.arange(38) % 2, -1)
    X = np.where(rng.random((38, 3)) < np.where(np.arange(38) % 2, 0.2, 0.8)[:, None], "a", "b")
    gaps = np.array([["a", None, "b"], [None, None, "a"]], dtype=object)
    clf = bg.TreeAugmentedNB().fit(X, y, unlabelled="weighted")
    mass = [probability for probability, _ in clf.fitted_.posterior.mixture]
    each = [tried(bg.TreeAugmentedNB(), X, y, w).predict_proba(gaps) for w in WEIGHTS]
    assert np.ptp(each, axis=0).max() > 0.01
    np.testing.assert_allclose(clf.predict_proba(gaps), np.tensordot(mass, each, 1), rtol=1e-12)


@pytest.mark.parametrize("make", [bg.MarkovNB, bg.CategoricalNB, bg.TreeAugmentedNB, bg.MixedNB])
def test_a_vocabulary_that_misleads_goes_with_the_rows(make):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, -1], [3, 3, 60])
    letters = np.where(
        y[:, None] >= 0, rng.integers(2, size=(66, 4)), rng.integers(40, size=(66, 4))
    )
    X = np.array([["abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"[k] for k in row] for row in letters])
    X[y == 1] = np.char.replace(X[y == 1], "a", "b")
    X = ["".join(row) for row in X] if make is bg.MarkovNB else X.astype(object)
    with pytest.warns(UserWarning, match="of a class that no label names"):
        clf = make().fit(X, y, unlabelled="weighted")
    labelled = np.flatnonzero(y >= 0)
    alone = make().fit(take(X, labelled), y[labelled])
    assert (clf.unlabelled_weight_, clf.n_unlabelled_) == (0, 60)
    few = take(X, labelled)
    np.testing.assert_allclose(clf.predict_proba(few), alone.predict_proba(few), rtol=1e-12)
    assert clf.predict_interval(few)["interval"].equals(alone.predict_interval(few)["interval"])


@pytest.mark.filterwarnings("ignore:.*of a class that no label names")
def test_of_no_weight_they_leave_no_trace_in_bins(monkeypatch):
    monkeypatch.setattr(fitting, "better_alone", lambda *_: True)
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1, -1], [8, 8, 24])
    X = rng.normal(size=(40, 3)) * np.where(y < 0, 9.0, 1.0)[:, None] + y[:, None]
    clf = bg.TreeAugmentedNB().fit(X, y, unlabelled="weighted")
    assert clf.unlabelled_weight_ == 0
    alone = bg.TreeAugmentedNB().fit(X[y >= 0], y[y >= 0])
    np.testing.assert_allclose(clf.predict_proba(X), alone.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("make", [bg.GaussianNB, bg.QuadraticDiscriminant, bg.PoissonNB])
def test_scores_are_those_of_refits(make):
    X, y, _ = two_groups(n=30)
    X = np.round(np.abs(X) * 3) if make is bg.PoissonNB else X
    clf = make().fit(X, y, unlabelled="weighted")
    labelled, others = y >= 0, y < 0
    prior = clf.prior_  # of the labelled rows: every refit has it

    def fitted(rows, codes, weight=None):
        again = bg.GenerativeClassifier(prior.family, class_alpha=prior.alpha)
        return again.fit(rows, codes, sample_weight=weight)

    def passed(rows, weight):
        one = fitted(X[rows], y[rows])
        for _ in range(5 if weight else 0):
            q = one.predict_proba(X[others])
            soft = weight * q.T.ravel()
            stacked = np.vstack([X[rows], X[others], X[others]])
            codes = np.r_[y[rows], np.repeat([0, 1], others.sum())]
            one = fitted(
                stacked, codes, np.r_[np.ones(len(rows)), np.where(soft > 1e-300, soft, 0)]
            )
        return one

    rows = np.flatnonzero(labelled)
    want = [
        sum(passed(rows[rows != i], w).predict_log_proba(X[[i]])[0, y[i]] for i in rows)
        for w in WEIGHTS
    ]
    weighed = clf.fitted_.training.weighed
    np.testing.assert_allclose(weighed.log_scores, want, rtol=1e-10)
    mass = np.exp(np.array(want) - max(want)) * [3 / 4, 1 / 12, 1 / 12, 1 / 12]
    parts = [passed(rows, w) for w in WEIGHTS]
    mean = np.tensordot(mass / mass.sum(), [one.predict_proba(X) for one in parts], 1)
    np.testing.assert_allclose(clf.predict_proba(X), mean, rtol=1e-9)
    densities = np.exp([one.score_samples(X) for one in parts])
    np.testing.assert_allclose(np.exp(clf.score_samples(X)), mass / mass.sum() @ densities)
    assert clf.unlabelled_weight_ == pytest.approx(mass / mass.sum() @ WEIGHTS)
    first = {"class_prior": [0.2, 0.8]}
    shifted = [one.predict_proba(X, **first) for one in parts]
    mean = np.tensordot(mass / mass.sum(), shifted, 1)
    np.testing.assert_allclose(clf.predict_proba(X, **first), mean, rtol=1e-9)


def test_weight_1_is_the_fit_to_all_labels_where_classes_do_not_overlap():
    X, y, true = two_groups(n=20, gap=20.0)
    prior = bg.GaussianNB().fit(X, true).prior_
    make = lambda: bg.GenerativeClassifier(prior.family, class_alpha=prior.alpha)  # noqa: E731
    one = tried(make(), X, y, 1.0)
    every = make().fit(X, true)
    np.testing.assert_allclose(
        one.predict_joint_log_proba(X), every.predict_joint_log_proba(X), rtol=1e-9
    )


def test_integer_weights_are_repeated_rows_of_those_without_a_label():
    X, y, _ = two_groups()
    twice = np.where(y < 0, 2, 1)
    clf = bg.GaussianNB().fit(X, y, twice, unlabelled="weighted")
    rows = np.repeat(np.arange(len(y)), twice)
    again = bg.GaussianNB().fit(X[rows], y[rows], unlabelled="weighted")
    np.testing.assert_allclose(clf.predict_proba(X), again.predict_proba(X), rtol=1e-9)


# ------------------------------------------------------------------------------------ what it says


def test_summary_says_what_rows_without_a_label_weigh(tmp_path):
    X, y, _ = two_groups()
    clf = bg.GaussianNB().fit(X, y, unlabelled="weighted")
    says = f"32 unlabelled rows count as {32 * clf.unlabelled_weight_:.1f}"
    assert says in str(clf.summary())
    assert "Log evidence" not in str(clf.summary())
    clf.save(tmp_path / "model.nc")
    again = bg.load(tmp_path / "model.nc")
    assert again.unlabelled_weight_ == clf.unlabelled_weight_
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert bg.GaussianNB().fit(X[:8], y[:8], unlabelled="weighted").unlabelled_weight_ is None


def test_rows_of_a_class_without_labels_are_named():
    X, y, _ = two_groups(n=60, n_labelled=20)
    X[40:] += [0.0, 40.0]
    with pytest.warns(
        UserWarning, match=r"20 rows without a label .*\(lowest: rows [45]\d, [45]\d, .*no label"
    ):
        clf = bg.GaussianNB().fit(X, y, unlabelled="weighted")
    assert "20 rows without a label are less probable" in str(clf.summary())
    assert clf.typicality(X[40:])["overall"].max() < 0.1


# -------------------------------------------------------------------------------- what is refused


def test_what_a_posterior_of_guessed_labels_cannot_say_is_refused():
    X, y, true = two_groups()
    clf = bg.GaussianNB().fit(X, y, unlabelled="weighted")
    for ask in (
        lambda: clf.predict_interval(X),
        lambda: clf.predict_posterior(X),
        lambda: clf.predict_uncertainty(X),
        lambda: clf.to_pymc(),
        lambda: clf.log_evidence_,
    ):
        with pytest.raises(NotImplementedError, match="refused after unlabelled='weighted'"):
            ask()
    for ask in (
        lambda: clf.merge(bg.GaussianNB().fit(X, true)),
        lambda: clf.partial_fit(X, true),
        lambda: clf.forget(X[:1], true[:1]),
    ):
        with pytest.raises(bg.NoClosedFormError, match="unlabelled='weighted' has weighed"):
            ask()
    with pytest.raises(bg.NoClosedFormError, match="leave-one-out after unlabelled='weighted'"):
        clf.loo(X, y)


@pytest.mark.parametrize(
    ("make", "options", "says"),
    [
        (bg.GaussianNB, {"unlabelled": "some"}, "unlabelled"),
        (bg.GaussianNB, {"unlabelled": "full"}, "unlabelled must be"),
        (bg.GaussianNB, {"unlabelled": "weighted", "draws": 10}, "got draws"),
        (bg.StudentTNB, {"unlabelled": "weighted"}, "is sampled by NUTS"),
    ],
)
def test_clashes_are_refused(make, options, says):
    X, y, _ = two_groups()
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=says):
        make().fit(X, y, **options)


# ------------------------------------------------------------------------------------------ pools


def test_a_pool_takes_labelled_rows_alone():
    X, y, _ = two_groups(n=80, n_labelled=20, gap=1.5)
    members, labelled = [bg.GaussianNB(), bg.LinearDiscriminant()], y >= 0
    ignoring = bg.LogLinearPool(members).fit(X, y, unlabelled="ignore")
    same_pool = bg.LogLinearPool(members).fit(X[labelled], y[labelled])
    np.testing.assert_allclose(ignoring.predict_proba(X), same_pool.predict_proba(X), rtol=1e-9)
    with pytest.raises(ValueError, match="unlabelled must be one of 'ignore', got 'weighted'"):
        bg.LogLinearPool(members).fit(X, y, unlabelled="weighted")
