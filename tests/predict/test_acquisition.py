"""Which cell to measure next: against enumeration, draws and quadrature of completed rows."""

import functools
import itertools
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import bayesgen as bg
from tests.benchmarks.real_sets import ELSEWHERE

CODES = np.random.default_rng(0).integers(0, 3, size=(60, 4))
LABELS = np.random.default_rng(1).integers(0, 3, size=60)
CODES[np.arange(60), LABELS] = LABELS
WORDS = pd.DataFrame(np.array(["low", "mid", "high"])[CODES], columns=list("abcd"))
COST = np.array([[0, 2, 1], [4, 0, 1], [1, 1, 0.0]])
GAPS = [[0, 2], [0, 1, 2, 3], [1]]  # missing cells of the first rows


WITH_CATEGORIES = ("CategoricalNB", "BernoulliNB", "MixedNB", "TreeAugmentedNB", "AnDE")


@functools.cache
def case_of(name):
    """The classifier, rows with missing cells, values of a cell."""
    words = WORDS[:3].astype(object)
    codes, bits = CODES[:3].astype(float), (CODES[:3] > 0).astype(float)
    for i, gaps in enumerate(GAPS):
        words.iloc[i, gaps] = None
        codes[i, gaps] = bits[i, gaps] = np.nan
    if name == "CategoricalNB":
        return bg.CategoricalNB().fit(CODES, LABELS), codes, [0, 1, 2]
    if name == "BernoulliNB":
        return bg.BernoulliNB().fit(CODES > 0, LABELS), bits, [0, 1]
    return getattr(bg, name)().fit(WORDS, LABELS), words, ["low", "mid", "high"]


def completed(X, i, j, values):
    """The row i with each value in its column j."""
    rows = pd.DataFrame(X).iloc[[i] * len(values)].reset_index(drop=True)
    rows[rows.columns[j]] = pd.Series(values)
    return rows if isinstance(X, pd.DataFrame) else rows.to_numpy()


def entropy(p):
    return stats.entropy(p, axis=-1)


@pytest.mark.parametrize("name", WITH_CATEGORIES)
def test_categories_equal_enumeration_of_completed_rows(name):
    clf, X, values = case_of(name)
    found = clf.next_measurement(X, cost=[0.1, 0.2, 0.3, 0.4], decision_cost=COST)
    for i, j in itertools.product(range(3), range(4)):
        if j not in GAPS[i]:
            assert np.isnan(found["gain"][i, j])
            assert np.isnan(found["value"][i, j])
            continue
        rows = completed(X, i, j, values)
        p_v = np.exp(clf.predict_joint_log_proba(rows)).sum(axis=1)
        after, now = clf.predict_proba(rows), clf.predict_proba(X[i : i + 1])[0]
        p_v /= p_v.sum()
        gain = entropy(now) - p_v @ entropy(after)
        saving = (now @ COST).min() - p_v @ (after @ COST).min(axis=1)
        assert found["gain"][i, j] == pytest.approx(gain, abs=1e-12)
        assert found["value"][i, j] == pytest.approx(saving - 0.1 * (j + 1), abs=1e-12)


@pytest.mark.parametrize("name", WITH_CATEGORIES)
def test_gains_are_not_negative_and_obey_the_chain_rule(name):
    clf, X, values = case_of(name)
    found = clf.next_measurement(X)["gain"].values
    assert np.nanmin(found) >= 0

    def both(first, then):
        rows = completed(X, 0, first, values)
        p_v = np.exp(clf.predict_joint_log_proba(rows)).sum(axis=1)
        return (
            found[0, first] + p_v @ clf.next_measurement(rows)["gain"].values[:, then] / p_v.sum()
        )

    assert both(0, 2) == pytest.approx(both(2, 0), abs=1e-10)


def reals(n=45):
    rng = np.random.default_rng(1)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 3)) @ np.array([[1, 0.9, 0.2], [0, 0.5, 0.1], [0, 0, 1]])
    X += y[:, None] * np.array([0.8, 0.0, 0.5])
    X[y == 2] *= 3
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize(
    "clf",
    [
        bg.GaussianNB(),
        bg.GaussianNB(variance="tied"),
        bg.GaussianNB(variance="spherical"),
        bg.LinearDiscriminant(),
        bg.QuadraticDiscriminant(),
        bg.HistogramNB(),
        bg.PoissonNB(),
    ],
    ids=str,
)
def test_gains_of_numbers_are_those_of_a_million_draws(clf):
    X, y = reals()
    if isinstance(clf, bg.PoissonNB):
        X = np.floor(np.abs(X) * 4)
    clf.fit(X, y)
    row = np.full((1, 3), np.nan)
    found = clf.next_measurement(row)["gain"].values[0]
    cells, _ = clf.simulate(1_000_000 if clf.fitted_.family.separable else 200_000, random_state=3)
    for j in range(3):
        rows = np.full(cells.shape, np.nan)
        rows[:, j] = cells[:, j]
        drawn = entropy(clf.predict_proba(row)[0]) - entropy(clf.predict_proba(rows))
        mcse = drawn.std() / np.sqrt(len(drawn))
        assert abs(found[j] - drawn.mean()) < 3 * mcse


@pytest.mark.parametrize(
    "clf",
    [bg.GaussianNB(variance="spherical"), bg.LinearDiscriminant(), bg.QuadraticDiscriminant()],
    ids=str,
)
@pytest.mark.parametrize("first", [0.3, 30.0])
def test_gains_of_numbers_given_others_are_integrals_over_completed_rows(clf, first):
    X, y = reals()
    clf.fit(X, y)
    row = np.array([[first, np.nan, -1.0]])
    v = 0.3 * np.sinh(np.linspace(-14, 14, 40_001))
    rows = np.repeat(row, len(v), axis=0)
    rows[:, 1] = v
    joint, p = np.exp(clf.predict_joint_log_proba(rows)), clf.predict_proba(row)[0]
    after = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
    weight = joint.sum(axis=1) * np.gradient(v)
    gain = entropy(p) - weight @ np.nan_to_num(entropy(after)) / weight.sum()
    assert clf.next_measurement(row)["gain"].values[0, 1] == pytest.approx(gain, abs=1e-4)


def test_a_tempered_gain_is_that_of_the_stated_rule():
    clf = bg.CategoricalNB().fit(CODES, LABELS)
    row = np.array([[1.0, np.nan, 2.0, 0.0]])
    found = clf.next_measurement(row, temper=0.4)
    pi = clf.model_.mean_weights()

    def tempered(rows):
        log_x = clf.predict_joint_log_proba(rows) - np.log(pi)
        out = pi * np.exp(0.4 * log_x)
        return out / out.sum(axis=1, keepdims=True), np.exp(log_x)

    rows = completed(row, 0, 1, [0.0, 1.0, 2.0])
    (now, x), (after, x_v) = tempered(row), tempered(rows)
    p_v = (now * x_v / x).sum(axis=1)
    assert found["gain"].values[0, 1] == pytest.approx((entropy(now) - p_v @ entropy(after))[0])
    assert found.attrs["exponent"] == 0.4


def test_the_exponent_by_leave_one_out_is_low_where_columns_repeat():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    x = rng.normal(size=300) + y
    clf = bg.GaussianNB().fit(np.repeat(x[:, None], 10, axis=1), y)
    exponent = clf.next_measurement(np.full((1, 10), np.nan), temper="loo").attrs["exponent"]
    assert 0.05 < exponent < 0.2  # ten columns are worth one


def test_cells_that_tell_only_together_are_seen_two_steps_ahead():
    a, b = np.tile([0, 0, 1, 1], 50), np.tile([0, 1, 0, 1], 50)
    X = pd.DataFrame({"a": a, "b": b, "c": np.random.default_rng(0).integers(0, 2, 200)})
    clf = bg.TreeAugmentedNB(root_weight=0.01).fit(X.astype(str), a ^ b)
    row = pd.DataFrame({"a": [None], "b": [None], "c": ["0"]}, dtype=object)
    one, two = (clf.next_measurement(row, cost=0.1, steps=k) for k in (1, 2))
    assert one["stop"].item()
    assert not two["stop"].item()
    assert two["best"].item() in ("a", "b")


def test_two_steps_equal_enumeration():
    clf = bg.CategoricalNB().fit(CODES, LABELS)
    row = np.array([[np.nan, np.nan, 2.0, 0.0]])
    one, two = (clf.next_measurement(row, 0.05, COST, steps=k)["value"].values[0] for k in (1, 2))
    rows = completed(row, 0, 0, [0.0, 1.0, 2.0])
    p_v = np.exp(clf.predict_joint_log_proba(rows)).sum(axis=1)
    later = np.maximum(clf.next_measurement(rows, 0.05, COST)["value"].values[:, 1], 0)
    assert two[0] == pytest.approx(one[0] + p_v @ later / p_v.sum(), abs=1e-12)


def test_stops_where_nothing_pays_and_goes_on_where_several_cells_do():
    rng = np.random.default_rng(0)
    y = (np.arange(400) % 10 == 0).astype(int)  # no single bit outweighs one in ten
    X = rng.random((400, 8)) < np.where(y[:, None] == 1, 0.75, 0.25)
    clf = bg.BernoulliNB().fit(X, y)
    row, mistakes = np.full((1, 8), np.nan), 1 - np.eye(2)
    cheap = clf.next_measurement(row, 0.001, mistakes)
    assert cheap["value"].max() < 0
    assert not cheap["stop"].item()
    assert cheap["best"].item()
    dear = clf.next_measurement(row, 0.2, mistakes)
    assert dear["stop"].item()
    assert dear["best"].item() == ""
    assert clf.next_measurement(np.zeros((1, 8)))["stop"].item()  # nothing is left to measure


def test_a_missing_cell_is_open_where_missing_is_a_category():
    table = WORDS.astype(object).copy()
    table.loc[::7, "a"] = None
    clf = bg.TreeAugmentedNB().fit(table, LABELS)
    found = clf.next_measurement(table[:1])
    assert np.isfinite(found["gain"][0, 0])
    assert np.isnan(found["gain"][0, 1:]).all()


def test_a_constant_column_tells_nothing():
    X, y = reals()
    X[:, 1] = 5.0
    for clf in (bg.GaussianNB(), bg.LinearDiscriminant(), bg.QuadraticDiscriminant()):
        found = clf.fit(X, y).next_measurement([[0.1, np.nan, np.nan]])["gain"].values[0]
        assert found[1] == pytest.approx(0, abs=1e-12)
        assert found[2] > 1e-3


@pytest.mark.filterwarnings("ignore::bayesgen.SamplingWarning")
def test_a_posterior_of_draws_can_be_asked():
    labels = np.where(np.arange(60) % 10 == 0, -1, LABELS)
    clf = bg.CategoricalNB().fit(CODES, labels, inference="gibbs", draws=100, tune=50)
    row = np.array([[1.0, np.nan, 2.0, 0.0]])
    found = clf.next_measurement(row)["gain"].values[0, 1]
    rows = completed(row, 0, 1, [0.0, 1.0, 2.0])
    p_v = np.exp(clf.predict_joint_log_proba(rows)).sum(axis=1)
    gain = entropy(clf.predict_proba(row)[0]) - p_v @ entropy(clf.predict_proba(rows)) / p_v.sum()
    assert found == pytest.approx(gain, abs=1e-9)


def test_class_weights_of_another_population():
    clf = bg.CategoricalNB().fit(CODES, LABELS)
    row, weights = np.array([[1.0, np.nan, 2.0, 0.0]]), [0.7, 0.3, 0.0]
    found = clf.next_measurement(row, class_prior=weights)["gain"].values[0, 1]
    rows = completed(row, 0, 1, [0.0, 1.0, 2.0])
    p_v = np.exp(clf.predict_joint_log_proba(rows, class_prior=weights)).sum(axis=1)
    now, after = (clf.predict_proba(x, class_prior=weights) for x in (row, rows))
    assert found == pytest.approx(entropy(now)[0] - p_v @ entropy(after) / p_v.sum(), abs=1e-12)


def test_costs_by_name_and_frames_of_rows():
    X, y = bg.datasets.load_penguins()
    clf = bg.MixedNB().fit(X, y)
    bird = X[5:6].assign(bill_length_mm=np.nan, body_mass_g=np.nan, flipper_length_mm=np.nan)
    names = list(X.columns)
    found = clf.next_measurement(bird, dict.fromkeys(names, 0.5) | {"body_mass_g": 0.0})
    assert found["obs_id"].item() == 5
    assert found["best"].item() == "body_mass_g"
    with pytest.raises(ValueError, match="no column 'sx'"):
        clf.next_measurement(bird, {"sx": 1.0})
    with pytest.raises(ValueError, match="cost has no entry for column 'island'"):
        clf.next_measurement(bird, {"sex": 1.0})
    for wrong in (-1.0, np.inf, [1.0, 2.0]):
        with pytest.raises(ValueError, match="cost must be"):
            clf.next_measurement(bird, wrong)


def test_what_cannot_be_asked_is_refused_with_the_reason():
    X, y = reals()
    with pytest.raises(NotImplementedError, match="missing cells"):
        bg.TreeAugmentedGaussianNB().fit(X, y).next_measurement(X[:1])
    with pytest.raises(NotImplementedError, match="missing cells"):
        bg.MultinomialNB().fit(np.abs(X).round(), y).next_measurement(np.ones((1, 3)))
    clf = bg.GaussianNB().fit(X, y)
    for wrong in (0.0, "auto", np.inf):
        with pytest.raises(ValueError, match="temper must be"):
            clf.next_measurement(X[:1], temper=wrong)
    with pytest.raises(ValueError, match="steps must be"):
        clf.next_measurement(X[:1], steps=3)
    wide = bg.GaussianNB().fit(np.tile(X, 20), y)
    with pytest.raises(ValueError, match="use steps=1"):
        wide.next_measurement(np.full((1, 60), np.nan), steps=2)
    bits = bg.BernoulliNB().fit(X > 0, y)
    with pytest.raises(TypeError, match="sparse"):
        bits.next_measurement(sparse.csr_matrix(np.ones((1, 3))))


def test_sixty_columns_take_less_than_a_millisecond_a_row():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 60)) + 0.3 * y[:, None]
    clf = bg.GaussianNB().fit(X, y)
    rows = np.where(rng.random((1000, 60)) < 0.5, np.nan, X[rng.integers(300, size=1000)])
    clf.next_measurement(rows[:10])
    start = time.process_time()
    clf.next_measurement(rows)
    assert time.process_time() - start < 1.0


def test_the_curve_measures_what_there_is_and_ends_at_the_complete_rows():
    X, y = bg.datasets.load_penguins()
    test = np.arange(len(y)) % 3 == 2
    clf = bg.MixedNB().fit(X[~test], y[~test])
    rows, labels = X[test], y[test]
    curve = bg.acquisition_curve(clf, rows, labels, cost=0.02, decision_cost=1 - np.eye(3))
    p = clf.predict_proba(rows)
    loss = -np.log(p[np.arange(len(p)), np.searchsorted(clf.classes_, labels)]).mean()
    assert curve["log_loss"][:, -1].values == pytest.approx(np.full(3, loss))
    cells = rows.notna().to_numpy().sum() / len(rows)
    assert curve["measured"][:, -1].values == pytest.approx(np.full(3, 0.02 * cells))
    assert sorted(curve["order"].values) == sorted(X.columns)
    assert curve["total_cost"][0] < curve["total_cost"][1] < curve["total_cost"][2]
    with pytest.raises(ValueError, match="X has 114 rows, but y has 3"):
        bg.acquisition_curve(clf, rows, labels[:3])


@pytest.mark.slow
def test_fewer_questions_on_splice_than_the_best_fixed_order():
    path = ELSEWHERE / "splice.csv.gz"
    if not path.is_file():
        pytest.skip("the table is not in the repository")
    table = pd.read_csv(path)
    y, test = table.pop("class").to_numpy(), np.arange(len(table)) % 3 == 2
    clf = bg.CategoricalNB().fit(table[~test], y[~test])
    cells = bg.acquisition_curve(clf, table[test], y[test])["cells_to_probability"].values
    assert cells[0] <= 0.85 * cells[1]
    assert cells[0] <= 0.5 * cells[2]
