"""label_errors against evidences of relabelled rows; what it finds, refuses, does to a fit."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

import bayesgen as bg
from tests.drawn import drawn
from tests.estimators.cases import CASES, LABELS, sample
from tests.selection import rest_is_slow

ALIKE = {"exponent": 1, "form": "one flip"}


def two_groups(n=200, share=0.1, seed=0, gap=4.0):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2)) + gap * true[:, None] * [1, 0.3]
    wrong = rng.random(n) < share
    return X, np.where(wrong, 1 - true, true), wrong


# --------------------------------------------------------------------------------- one flip


@pytest.mark.parametrize("name", rest_is_slow(list(CASES), ["GaussianNB tied", "MixedNB"]))
def test_one_flip_is_the_evidence_of_each_relabelling(name):
    X, codes, y = sample(CASES[name], n=24)
    clf = CASES[name].make().fit(X, y)
    if clf.prior_.family.no_evidence:
        pytest.skip("no evidence")
    table = bg.label_errors(clf, X, y, label_noise=0.12, **ALIKE)
    channel = 0.88 * np.eye(3) + 0.06 * (1 - np.eye(3))
    rows = clf.fitted_.encoded(X)
    for i in range(0, 24, 5):
        evidence = []
        for c in range(3):
            labels = np.where(np.arange(24) == i, c, codes)
            evidence.append(clf.prior_.log_evidence(clf.prior_.stats(rows, labels, 3)))
        posterior = np.array(evidence) + np.log(channel[:, codes[i]])
        posterior = np.exp(posterior - logsumexp(posterior))
        want = np.delete(posterior, codes[i]).sum()
        assert float(table["wrong"][i]) == pytest.approx(want, rel=1e-8, abs=1e-12)
        posterior[codes[i]] = -1
        assert table["other"][i].item() == LABELS[posterior.argmax()]


def test_rate_0_is_no_error():
    X, y, _ = two_groups()
    assert (bg.label_errors(bg.GaussianNB().fit(X, y), X, y, label_noise=0)["wrong"] == 0).all()


def test_rate_and_exponent_are_integrated_out():
    """On a fine mesh of log-odds of the rate and log exponent, from leave-one-out alone."""
    X, y, _ = two_groups(n=40, gap=2.0)
    clf = bg.GaussianNB().fit(X, y)
    joint = clf.loo_log_joint(X, y)
    gap = joint[np.arange(40), 1 - y] - joint[np.arange(40), y]
    l, u = np.linspace(-25, 5, 601), np.linspace(-6, 4, 301)
    rate = expit(l)[:, None]
    total, sum_of_rate, sum_of_wrong = 0.0, 0.0, np.zeros(40)
    for each in u:
        right = (1 - rate) * expit(-np.exp(each) * gap)
        wrong = rate * expit(np.exp(each) * gap)
        prior = stats.beta.pdf(rate, 1, 4) * rate * (1 - rate) * stats.norm.pdf(each)
        density = np.exp(np.log(right + wrong).sum(axis=1, keepdims=True)) * prior
        total += density.sum()
        sum_of_rate += (density * rate).sum()
        sum_of_wrong += (density * wrong / (right + wrong)).sum(axis=0)
    found = bg.label_errors(clf, X, y, form="one flip")
    np.testing.assert_allclose(found["wrong"], sum_of_wrong / total, rtol=2e-4)
    assert float(found["noise_rate"]) == pytest.approx(sum_of_rate / total, rel=2e-4)


# ------------------------------------------------------------------------------- what it finds


@pytest.mark.parametrize("n", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_it_finds_flipped_labels_and_their_rate(n):
    X, y, wrong = two_groups(n=n)
    found = bg.label_errors(bg.GaussianNB().fit(X, y), X, y, prob=0.99)
    p = found["wrong"].values
    low, high = found["noise_rate_interval"].values
    assert low < wrong.mean() < high
    assert p.sum() == pytest.approx(wrong.sum(), abs=4 * np.sqrt(np.sum(p * (1 - p))) + 1)
    assert found.attrs["passes"] > 0
    assert np.mean(p[wrong] > 0.5) > 0.8


@pytest.mark.parametrize(("rate", "too_low"), [(0.02, 0.0), (0.1, 0.0), (0.25, 0.2)])
def test_as_many_labels_are_wrong_as_stated(rate, too_low):
    """Where the model is right; with 25 % flipped its probabilities are too low, by .2 at most."""
    rng = np.random.default_rng(3)
    stated, wrong, data_set = [], [], []
    for r in range(16):
        scale = 2 / np.sqrt(rng.chisquare(4, (2, 2)))
        true = rng.integers(0, 2, 120)
        X = rng.normal((rng.normal(size=(2, 2)) * scale / np.sqrt(0.3))[true], scale[true])
        flipped = rng.random(120) < rate
        clf = bg.GaussianNB(0.0, 0.3, 4.0, 1.0).fit(X, true ^ flipped)
        stated.append(bg.label_errors(clf, X, true ^ flipped)["wrong"].values)
        wrong.append(flipped)
        data_set.append(np.full(120, r))
    p, wrong, r = map(np.concatenate, (stated, wrong, data_set))
    for low, high in ((0, 0.05), (0.05, 0.2), (0.2, 0.8), (0.8, 1)):
        inside = (p >= low) & (p < high)
        gaps = np.bincount(r[inside], (wrong - p)[inside], 16)
        n, error = inside.sum(), 4 * np.sqrt(np.square(gaps).sum() + 1)
        assert -error <= gaps.sum() <= error + too_low * n, (
            low,
            p[inside].mean(),
            wrong[inside].mean(),
        )


def test_a_model_that_is_too_sure_is_tempered_and_makes_no_pass():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = np.repeat(rng.normal(size=(400, 1)) + 3 * y[:, None], 12, axis=1)  # one column, 12 times
    X += 0.1 * rng.normal(size=X.shape)
    clf = bg.GaussianNB().fit(X, y)
    tempered = bg.label_errors(clf, X, y)
    assert tempered["exponent"] < 0.5
    assert tempered.attrs["form"] == "one flip"
    assert tempered["wrong"].mean() < 0.02  # no label is wrong
    assert bg.label_errors(clf, X, y, exponent=1)["wrong"].mean() > 0.04


def test_names_weights_strings_missing_cells_and_five_rows():
    table = pd.DataFrame(
        {"a": [1.0, 1.2, np.nan, 4.0, 4.1], "b": ["u", "u", "v", "v", None]},
        index=list("pqrst"),
    )
    y = ["cat", "cat", "dog", "dog", "dog"]
    found = bg.label_errors(bg.MixedNB().fit(table, y), table, y)
    assert found["obs_id"].values.tolist() == list("pqrst")
    assert found["other"].values.tolist() == ["dog", "dog", "cat", "cat", "cat"]
    weight = np.array([1.0, 2.0, 0.0, 1.0, 3.0])
    clf = bg.MixedNB().fit(table, y, sample_weight=weight)
    found = bg.label_errors(clf, table, y, weight)
    assert found["position"].values.tolist() == [0, 1, 3, 4]
    with pytest.raises(ValueError, match="training rows"):
        bg.label_errors(clf, table, y)


def test_a_row_of_weight_2_counts_for_the_rate_as_two_rows():
    X, y, _ = two_groups(n=40)
    width = []
    for weight in (np.ones(40), np.full(40, 2.0)):
        clf = bg.GaussianNB().fit(X, y, weight)
        found = bg.label_errors(clf, X, y, weight, form="one flip")
        width.append(np.ptp(found["noise_rate_interval"].values))
    assert width[1] < 0.85 * width[0]


# --------------------------------------------------------------------------- pools and draws


def test_pools_by_their_own_leave_one_out():
    X, y, wrong = two_groups(n=60, share=0.15, seed=1)
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()]).fit(X, y)
    found = bg.label_errors(pool, X, y, label_noise=0.1, **ALIKE)
    q = np.exp(pool.loo(X, y).elpd_i.values)
    np.testing.assert_allclose(found["wrong"], 0.1 * (1 - q) / (0.9 * q + 0.1 * (1 - q)), rtol=1e-8)
    again = bg.label_errors(pool, X, y)
    assert again.attrs["form"] == "iterated"
    assert again["wrong"].values[wrong].mean() > 0.7


@pytest.mark.filterwarnings("ignore::bayesgen.MonteCarloWarning")
def test_draws_take_one_flip():
    X, y, _ = two_groups(n=40)
    clf = drawn(bg.GaussianNB(), X, y)
    assert bg.label_errors(clf, X, y).attrs["form"] == "one flip"
    with pytest.raises(bg.NoClosedFormError, match="after a fit by draws use form='one flip'"):
        bg.label_errors(clf, X, y, form="iterated")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"label_noise": 0.5}, "a rate of at least 0 and below 0.5, got 0.5: with 2 classes"),
        ({"label_noise": -0.1}, "a rate of at least 0 and below 0.5"),
        ({"label_noise": [0.1, 0.1]}, "label_noise must be 'estimate' or a number"),
        ({"label_noise": "guess"}, "label_noise"),
        ({"exponent": 0}, "exponent must be"),
        ({"form": "twice"}, "form"),
    ],
)
def test_what_is_refused(options, match):
    X, y, _ = two_groups(n=20)
    with pytest.raises(ValueError, match=match):
        bg.label_errors(bg.GaussianNB().fit(X, y), X, y, **options)


def test_one_class_has_no_other_label():
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match="two classes, and every label is 'a'"):
        bg.label_errors(bg.GaussianNB().fit(X, ["a"] * 6), X, ["a"] * 6)
