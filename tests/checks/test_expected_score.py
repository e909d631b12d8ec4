"""expected_score against scores of labels that are drawn, and what it refuses."""

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from tests.estimators.cases import CASES, sample
from tests.selection import rest_is_slow

SCORES = ("log_loss", "accuracy", "brier")


def rows(n, seed, weights=(0.5, 0.5), gap=1.5):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) > weights[0]).astype(int)
    return rng.normal(size=(n, 2)) + gap * y[:, None], y


def realised(clf, X, y, **options):
    log_p = clf.predict_log_proba(X, **options)
    own = np.arange(len(y)), y
    p = np.exp(log_p)
    accuracy = np.mean(clf.predict(X, **options) == y)
    return -log_p[own].mean(), accuracy, np.square(p - np.eye(2)[y]).sum(axis=1).mean()


def covered(n_train, n_new, make, repeats=150, **options):
    held = np.zeros(3)
    for seed in range(repeats):
        X, y = rows(n_train, seed)
        new, labels = rows(n_new, 1000 + seed)
        clf = make().fit(X, y)
        found = bg.expected_score(clf, new, prob=0.9, draws=400, **options)
        low, high = found["interval"].values.T
        truth = np.array(realised(clf, new, labels))
        held += (low <= truth) & (truth <= high)
    return held / repeats


@pytest.mark.parametrize("n_new", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_intervals_hold_the_scores_of_labels(n_new):
    held = covered(100, n_new, bg.GaussianNB)
    assert np.all(held > 0.9 - 4 * np.sqrt(0.09 / 150)), held
    assert np.all(held < 0.98), held


def test_of_a_model_that_is_too_sure_as_well():
    def four_times(X):
        return np.tile(X, (1, 4)) + 1e-3 * np.random.default_rng(0).normal(size=(len(X), 8))

    X, y = rows(400, 0)
    new, labels = rows(3000, 1)
    clf = bg.GaussianNB().fit(four_times(X), y)
    found = bg.expected_score(clf, four_times(new))
    truth = realised(clf, four_times(new), labels)
    assert found.attrs["exponent"] < 0.5
    gap = np.abs(found["mean"].values - truth)
    assert np.all(gap < 4 * found["sd"].values)
    p = clf.predict_proba(four_times(new)).max(axis=1).mean()
    assert p - truth[1] > 4 * found["sd"].sel(score="accuracy")  # as the model has it


def test_parameters_and_chance_are_apart():
    X, y = rows(200, 0)
    clf = bg.GaussianNB().fit(X, y)
    few, many = (bg.expected_score(clf, rows(n, 1)[0]) for n in (50, 5000))
    np.testing.assert_allclose(
        np.hypot(many["sd_parameters"], many["sd_chance"]), many["sd"], rtol=0.1
    )
    ratio = few["sd_chance"].values / many["sd_chance"].values
    np.testing.assert_allclose(ratio, 10, rtol=0.35)
    np.testing.assert_allclose(few["sd_parameters"], many["sd_parameters"], rtol=0.25)
    # a mean of 200 labels
    accuracy = float(many["mean"].sel(score="accuracy"))
    sd = np.sqrt(accuracy * (1 - accuracy) / 200)
    assert float(many["sd_parameters"].sel(score="accuracy")) == pytest.approx(sd, rel=0.25)


@pytest.mark.parametrize("known", [True, False])
def test_other_frequencies_of_the_classes(known):
    X, y = rows(400, 0)
    new, labels = rows(2000, 1, weights=(0.9, 0.1))
    clf = bg.GaussianNB().fit(X, y)
    weights = [0.9, 0.1] if known else bg.estimate_class_prior(clf, new, draws=50)
    found = bg.expected_score(clf, new, class_prior=weights, prob=0.99)
    mean = weights if known else weights["summary"]["mean"].values
    truth = realised(clf, new, labels, class_prior=mean)
    low, high = found["interval"].values.T
    assert np.all((low <= truth) & (truth <= high))
    without = bg.expected_score(clf, new, prob=0.99)["mean"].sel(score="accuracy")
    assert abs(without - truth[1]) > abs(found["mean"].sel(score="accuracy") - truth[1])


@pytest.mark.parametrize("name", rest_is_slow(list(CASES), ["GaussianNB tied", "MixedNB"]))
def test_every_classifier(name):
    X, _, y = sample(CASES[name])
    clf = CASES[name].make().fit(X, y)
    found = bg.expected_score(clf, X, draws=50)
    assert found["score"].values.tolist() == list(SCORES)
    assert np.isfinite(found["sd"].values).all()
    low, high = found["interval"].values.T
    assert np.all(low <= high)
    assert 0 <= low[1] <= high[1] <= 1


def test_pools_weights_frames_and_one_class():
    X, y = rows(60, 0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], size=60)
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()]).fit(frame, y, weight)
    found = bg.expected_score(pool, frame, training=(frame, y, weight), draws=50)
    assert 0.5 < found["mean"].sel(score="accuracy") <= 1
    alone = bg.GaussianNB().fit(X, np.zeros(60))
    sure = bg.expected_score(alone, X, draws=20)
    np.testing.assert_allclose(sure["mean"], [0, 1, 0], atol=1e-12)


def test_what_is_refused(tmp_path):
    X, y = rows(40, 0)
    clf = bg.GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="no rows"):
        bg.expected_score(clf, X[:0])
    with pytest.raises(ValueError, match="draws"):
        bg.expected_score(clf, X, draws=1)
    clf.save(tmp_path / "it.nc")
    with pytest.raises(ValueError, match=r"give training=\(X, y\)"):
        bg.expected_score(bg.load(tmp_path / "it.nc"), X)
    assert bg.expected_score(bg.load(tmp_path / "it.nc"), X, training=(X, y)).attrs["rows"] == 40
    with pytest.raises(ValueError, match="training rows"):
        bg.expected_score(clf, X, training=(X[:-1], y[:-1]))
    with pytest.raises(ValueError, match="class_prior"):
        bg.expected_score(clf, X, class_prior=[0.5, 0.6])
