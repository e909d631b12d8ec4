"""Intervals, uncertainty and draws of class probabilities are functions of the same draws."""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.special import entr

import bayesgen as bg
from bayesgen.posterior.interface import JointDraws
from bayesgen.predict import draws
from bayesgen.predict.draws import IntervalRequest, averages, intervals


def drawn(joint, **options):
    blocks = iter([(slice(0, joint.shape[2]), joint)])
    return JointDraws(blocks, joint.shape, **options)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    X = rng.normal(size=(45, 3)) + y[:, None]
    return bg.GaussianNB().fit(X, y), X[:6]


def test_draws_are_not_pickled_and_a_new_posterior_has_others(fitted):
    clf, X = fitted
    clf.predict_interval(X)
    assert clf.fitted_.posterior._drawn
    again = pickle.loads(pickle.dumps(clf))
    assert "_drawn" not in vars(again.fitted_.posterior)
    np.testing.assert_array_equal(
        again.predict_interval(X)["interval"], clf.predict_interval(X)["interval"]
    )
    again.partial_fit(X + 1, np.arange(6) % 3)
    assert "_drawn" not in vars(again.fitted_.posterior)


def test_the_seed_decides(fitted):
    clf, X = fitted
    one, same, other = (
        clf.predict_interval(X, random_state=s)["log_odds"].values for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()


def test_the_error_of_a_percentile():
    """Of independent draws binomial; of a chain by its autocorrelation."""
    rng = np.random.default_rng(1)
    joint = np.zeros((4, 1000, 1, 2))
    joint[..., 1] = rng.normal(size=(4, 1000, 1))
    request = IntervalRequest(0.8, "eti")
    error = intervals(drawn(joint), request).error[0]
    assert error == pytest.approx(np.sqrt(0.1 * 0.9 / 4000), rel=1e-3)
    joint[..., 1] = np.repeat(joint[:, ::10, :, 1], 10, axis=1)
    slow = intervals(drawn(joint, independent=False), request).error[0]
    assert slow == pytest.approx(np.sqrt(0.1 * 0.9 / 400), rel=0.25)


def test_ends_of_two_classes_mirror_each_other():
    joint = np.random.default_rng(2).normal(size=(1, 500, 3, 2))
    for kind in ("eti", "hdi"):
        ends = intervals(drawn(joint.copy()), IntervalRequest(0.9, kind))
        np.testing.assert_array_equal(ends.lower[:, 0], -ends.upper[:, 1])
        np.testing.assert_array_equal(ends.upper[:, 0], -ends.lower[:, 1])


def test_impossible_classes_and_rows():
    joint = np.random.default_rng(3).normal(size=(1, 500, 2, 3))
    joint[:, :, 0, 1] = -np.inf
    joint[:, :, 1] = -np.inf
    ends = intervals(drawn(joint), IntervalRequest(0.9))
    assert ends.lower[0, 1] == ends.upper[0, 1] == -np.inf
    assert np.isfinite(ends.lower[0, [0, 2]]).all()
    assert np.isnan(ends.lower[1]).all()


def test_entropies_are_those_of_beta_draws():
    """E H and H(E) of rho ~ Beta(a, b), by quadrature."""
    a, b = 2.0, 3.5
    rho = np.random.default_rng(4).beta(a, b, size=(1, 200_000, 1))
    joint = np.log(np.stack([rho, 1 - rho], axis=-1))
    means = averages(drawn(joint))
    law = stats.beta(a, b)
    expected = law.expect(lambda p: entr(p) + entr(1 - p))
    assert means.aleatoric[0] == pytest.approx(expected, abs=5 * means.error[0])
    total = entr(a / (a + b)) + entr(b / (a + b))
    assert means.total[0] == pytest.approx(total, abs=5 * means.error[0])
    assert means.top[0, 0] == pytest.approx(law.sf(0.5), abs=5 * means.error[0])


def test_the_bias_of_the_entropy_of_a_mean_is_removed():
    """Of few draws the plain entropy is too small by Var(mean) / (2 mean), summed."""
    rng = np.random.default_rng(5)
    rho = rng.beta(2.0, 2.0, size=(4000, 1, 20, 1, 1))
    joint = np.log(np.concatenate([rho, 1 - rho], axis=-1))
    totals = [averages(drawn(one)).total[0] for one in joint]
    error = np.std(totals) / np.sqrt(len(totals))
    assert np.mean(totals) == pytest.approx(np.log(2), abs=4 * error + 5e-4)


def test_bits_of_which_many_are_absent():
    """Most of the absent columns enter as one Normal variable."""
    rng = np.random.default_rng(6)
    y = np.arange(20) % 2
    X = (rng.random((20, 500)) < rng.beta(0.3, 3.0, size=(2, 500))[y]).astype(int)
    clf = bg.BernoulliNB(alpha=0.5).fit(X, y)
    family, row = clf.model_.family, X[:1]
    theta = family.draw(rng, 1500)
    plain = family.log_likelihood(row, theta)[:, 0]
    drawn_directly = family.draw_log_density([1], row, 1500)[:, 0]
    for c in range(2):
        assert stats.ks_2samp(plain[:, c], drawn_directly[:, c]).pvalue > 1e-4


def test_probabilities_that_underflow_are_drawn_as_logarithms():
    """Pseudo-counts of .001: theta itself is often 0, its logarithm near -1000."""
    X = np.eye(6, dtype=int).repeat(3, axis=0)
    clf = bg.MultinomialNB(alpha=0.001).fit(X, np.arange(18) // 9)
    row = [[1, 0, 0, 0, 0, 1]]  # a word of either class alone
    table = clf.predict_interval(row, 0.8)
    assert np.isfinite(table["log_odds"]).all()
    rho = clf.predict_posterior(row)["predictions"]["class_probability"].values
    assert not np.isnan(rho).any()


def test_summaries_do_not_depend_on_the_blocks(monkeypatch):
    joint = np.random.default_rng(3).standard_normal((2, 25, 11, 3))
    for summary in (averages, lambda given: intervals(given, IntervalRequest(0.9))):
        whole = summary(drawn(joint, independent=False))
        for numbers in (1, 450):
            monkeypatch.setattr(draws, "_NUMBERS", numbers)
            parts = iter([(slice(0, 4), joint[:, :, :4]), (slice(4, 11), joint[:, :, 4:])])
            in_blocks = summary(JointDraws(parts, joint.shape, independent=False))
            for name, value in vars(whole).items():
                np.testing.assert_allclose(vars(in_blocks)[name], value, rtol=1e-12)


# --------------------------------------------------------------- requests, and ends from draws


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prob": 0.0}, "prob must be between 0 and 1, got 0.0"),
        ({"prob": 1.0}, "prob must be between 0 and 1"),
        ({"prob": float("nan")}, "prob must be between 0 and 1"),
        ({"kind": "sd"}, "kind must be one of 'eti', 'hdi', got 'sd'"),
    ],
)
def test_what_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        IntervalRequest(**{"prob": 0.9, **wrong})


def test_arviz_is_asked_for_what_the_user_leaves_open():
    import arviz_base

    with arviz_base.rc_context({"stats.ci_prob": 0.7, "stats.ci_kind": "hdi"}):
        assert IntervalRequest.of() == IntervalRequest(0.7, "hdi")
        assert IntervalRequest.of(0.5, "eti") == IntervalRequest(0.5, "eti")


def shortest_by_hand(values, prob):
    """Ends of the shortest interval of sorted values that holds more than the probability."""
    inside = int(np.floor(prob * len(values)))
    first = int(np.argmin(values[inside:] - values[:-inside]))
    return first, first + inside


@pytest.mark.parametrize("centre", [-50.0, -3.0, 0.0, 3.0, 50.0])
def test_shortest_interval_of_a_probability_from_draws_of_its_log_odds(centre):
    rng = np.random.default_rng(3)
    draws = centre + 1.5 * rng.standard_normal((2, 400))
    low, high = IntervalRequest(0.8, "hdi").ends_of_log_odds(draws)
    for k, row in enumerate(np.sort(draws, axis=1)):
        # of the smaller of the two probabilities, which has its digits
        small = np.exp(-np.logaddexp(0.0, row if centre > 0 else -row))
        order = np.argsort(small)
        i, j = sorted(order[list(shortest_by_hand(small[order], 0.8))])
        assert (low[k], high[k]) == (row[i], row[j])


def test_shortest_interval_is_that_of_arviz():
    from arviz_stats.base import array_stats

    values = np.random.default_rng(4).gamma(0.5, size=(3, 200))
    lower, upper = draws.shortest(values, 0.9)
    np.testing.assert_allclose(np.stack([lower, upper], -1), array_stats.hdi(values, 0.9, axis=-1))


def test_equal_tails_of_draws_are_numpys_percentiles():
    values = np.random.default_rng(4).gamma(0.5, size=(3, 5, 200))
    lower, upper = draws.equal_tails(values, 0.9)
    for tail, end in ((5, lower), (95, upper)):
        expected = np.percentile(values, tail, axis=-1)
        np.testing.assert_allclose(end, expected, rtol=1e-12)
