"""`bg.validate`: agrees with what is right, refuses what was broken on purpose."""

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen.checks import validate as module
from bayesgen.checks.comparison import NUTS, STATISTICS, Scores, drawn, table
from bayesgen.cli import app
from bayesgen.families.errors import NoClosedFormError
from tests.checks.planted import BITS, EXACT, REALS, RNG, Y, draws_in_place_of_nuts
from tests.predict.against_nuts import percentile_errors
from tests.selection import rest_is_slow

QUIET = {"progressbar": False, "random_state": 5}
ESTIMATORS: dict[str, tuple[Any, Any]] = {
    "BernoulliNB": (bg.BernoulliNB(), BITS),
    "GaussianNB": (bg.GaussianNB(kappa0=2.0), REALS),
    "LinearDiscriminant": (bg.LinearDiscriminant(), REALS),
    "QuadraticDiscriminant": (bg.QuadraticDiscriminant(), REALS),
    "MarkovNB": (bg.MarkovNB(), ["".join("ab"[b] for b in row) + "ab" for row in BITS]),
}
# errors of `planted.EXACT` that NUTS alone finds
PLANTED = {
    "BernoulliNB": ("pseudo-count off by one",),
    "GaussianNB": ("n - 1", "kappa dropped", "class prior forgotten"),
}


# ------------------------------------------------------------------------------------ the table


def test_the_table_shows_the_largest_of_each_statistic():
    z = np.random.default_rng(0).normal(size=(5, 4))
    z[3, 2] = np.nan
    ess, r_hat = np.array([50.0, 7.0, 9.0, 80.0]), np.array([1, 1.2, 1.1, 1])
    scores = {
        name: Scores(x, x, x, np.full(4, 0.1), ess) for name, x in zip(STATISTICS, z, strict=True)
    }
    lines = drawn("parameters", "mu", list("abcd"), scores, NUTS, r_hat=r_hat)
    result = module.Validation(table([lines], 0.01), xr.DataTree(), 0.01, {"divergences": 0})
    expected = {"numbers": 4, "mean |z|": np.abs(z[0]).max(), "sd |z|": np.abs(z[1]).max()}
    expected |= {"quantile |z|": np.nanmax(np.abs(z[2:])), "R-hat": 1.2, "ESS": 7.0}
    assert result.summary().loc["mu"].to_dict() == pytest.approx(expected)
    assert result.threshold == pytest.approx(stats.norm.isf(0.01 / (2 * 19)))
    assert result.verdict == "inconclusive"
    assert "b has 7 effective draws and R-hat 1.200" in result.reasons[0]
    assert result.power(0.5).loc["mu"].tolist() == ["parameters", result.threshold * 0.1, "sd"]


@pytest.mark.parametrize("error", [0.0, 0.03])
def test_an_interval_is_held_to_its_share_within_its_own_error(error):
    n, low, high = 4000, -1.7, 1.2
    draws = np.random.default_rng(1).normal(size=(2, n // 2, 1, 1))

    def predict_interval(X, prob, kind, draws):
        ends = (("obs_id", "class", "bound"), np.array([[[low, high]]]))
        return xr.Dataset({"log_odds": ends, "error": ("obs_id", [error])})

    fitted = SimpleNamespace(predict_interval=predict_interval)
    lines = pd.concat(module.coverage(fitted, None, draws, ["row 0"]))
    below, above = (draws < low).mean(), (draws > high).mean()
    expected = [
        (share - wanted) / np.sqrt(wanted * (1 - wanted) / n + (n_ends * error) ** 2)
        for share, wanted, n_ends in (
            (below, 0.05, 1),
            (above, 0.05, 1),
            (1 - below - above, 0.9, 2),
        )
    ]
    assert lines["statistic"].tolist() == ["q05", "q95", "mean"]
    # but for the effective number of the draws, which is estimated
    assert lines["difference"].tolist() == pytest.approx(expected, rel=0.1)


def test_log_odds_keep_what_probabilities_round_away():
    joint = np.array([[0.0, -50.0, -60.0], [0.0, -51.0, -60.0]])
    odds = module.against_rest(joint)
    assert odds[0, 0] != odds[1, 0]
    np.testing.assert_allclose(odds[0], [50 - np.log1p(np.exp(-10)), -50, -60], rtol=1e-12)
    p = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))[:, 1:]
    np.testing.assert_allclose(odds[:, 1:], np.log(p) - np.log1p(-p), rtol=1e-12)


# ------------------------------------------------------------------ draws in the place of NUTS


@pytest.mark.parametrize("share", [-0.1, 0.0, 1.0])
def test_false_alarm_is_a_probability(share):
    with pytest.raises(ValueError, match="false_alarm must be between 0 and 1"):
        bg.validate(bg.GaussianNB(), REALS, Y, false_alarm=share)


def test_a_classifier_without_a_closed_form_is_refused_before_it_is_fitted(monkeypatch):
    monkeypatch.setattr(bg.StudentTNB, "fit", None)
    with pytest.raises(NoClosedFormError, match="StudentTNB has none"):
        bg.validate(bg.StudentTNB(), [[1.0], [2.0], [4.0]], [0, 1, 1])


@pytest.mark.parametrize("name", rest_is_slow(list(ESTIMATORS), ["GaussianNB", "MarkovNB"]))
def test_verdict_of_equal_distributions(name, monkeypatch):
    draws_in_place_of_nuts(monkeypatch)
    clf, X = ESTIMATORS[name]
    result = bg.validate(clf, X, Y, **QUIET)
    assert result.passed, str(result)
    assert result.reasons == ()
    assert 1.5 < result.largest_z < result.threshold
    text = str(result)
    assert f"{type(clf).__name__}: closed form against NUTS (4 x 1000 draws" in text
    assert "verdict: agree" in text
    assert "Compared to many digits: evidence and predictive, densities of theta" in text
    checks = result.checks
    assert {*checks["statistic"]} == {*STATISTICS, "identity"}
    shown = checks[checks["variable"] == "log p(x, y | D)"]
    step = shown["value"] - shown["expected"]
    np.testing.assert_array_equal(np.sign(step), np.sign(shown["difference"]))
    assert step.all()
    assert result.summary().loc["pi", "numbers"] == 2
    assert result.failed().empty


def test_one_class_has_no_intervals_to_compare(monkeypatch):
    draws_in_place_of_nuts(monkeypatch)
    result = bg.validate(bg.GaussianNB(), REALS, np.zeros(15), draws=200, **QUIET)
    assert result.passed, str(result)
    assert "credible intervals: one class has probability 1" in result.not_compared


def test_columns_left_out_are_not_compared(monkeypatch):
    draws_in_place_of_nuts(monkeypatch)
    constant = np.column_stack([REALS, np.full(15, 7.0)])
    result = bg.validate(bg.QuadraticDiscriminant(), constant, Y, draws=200, **QUIET)
    names = result.checks["check"].tolist()
    assert "mu[a, x1]" in names
    assert not any("x2" in name for name in names)
    assert result.passed, str(result)


def test_categories_that_do_not_exist_are_not_compared(monkeypatch):
    X = np.column_stack([np.arange(15) % 3, np.arange(15) % 2])
    draws_in_place_of_nuts(monkeypatch)
    result = bg.validate(bg.CategoricalNB(), X, Y, **QUIET)
    assert result.passed, str(result)
    assert result.summary().loc[["theta", "E theta"], "numbers"].tolist() == [10, 10]


def test_the_outcome_says_what_could_not_be_compared(monkeypatch):
    X = RNG.normal(size=(8, 1))
    draws_in_place_of_nuts(monkeypatch)
    clf = bg.GaussianNB(nu0=1.0)
    result = bg.validate(clf, X, [0, 1, 1, 1, 1, 1, 1, 1], **QUIET)  # one row of class 0
    assert result.passed, str(result)
    (words,) = result.not_compared
    assert words.startswith("method='mle': class 0, feature 'x0': the rows do not vary")
    assert "class weights" in result.exact
    assert "method='mle'" not in result.exact
    assert f"Not compared: {words}." in str(result)


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated(monkeypatch):
    draws_in_place_of_nuts(monkeypatch)
    alarms, n = 0, 0
    for name in ("BernoulliNB", "GaussianNB", "QuadraticDiscriminant"):
        for seed in range(12):
            clf, X = ESTIMATORS[name]
            result = bg.validate(clf, X, Y, random_state=seed, draws=500, false_alarm=0.1)
            alarms, n = alarms + (result.verdict == "disagree"), n + 1
    assert alarms <= stats.binom.ppf(0.999, n, 0.1)


def test_a_sampler_that_cannot_be_trusted_is_inconclusive(monkeypatch):
    def stuck(tree: Any) -> Any:
        posterior = tree["posterior"].to_dataset()
        shift = np.array([0.0, 0.0, 0.0, 3.0])[:, None, None, None]
        mu = posterior["mu"] + float(posterior["mu"].std()) * shift
        tree["posterior"] = posterior.assign(mu=mu)
        return tree

    draws_in_place_of_nuts(monkeypatch, wrong=stuck)
    result = bg.validate(bg.GaussianNB(), REALS, Y, **QUIET)
    assert result.verdict == "inconclusive"
    assert not result.passed
    assert any("effective draws and R-hat" in reason for reason in result.reasons)
    assert "target_accept" in result.reasons[-1]


# ------------------------------------------------------------------------------- against NUTS


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "errors"), PLANTED.items(), ids=PLANTED)
def test_closed_form_and_nuts_agree_and_planted_errors_are_refused(estimator, errors, monkeypatch):
    clf, X = ESTIMATORS[estimator]
    result = bg.validate(clf, X, Y, **QUIET)
    assert result.passed, str(result)
    assert result.tree.attrs["route"] == "nuts"
    assert result.run["divergences"] == 0
    off, mcse = percentile_errors(clf.fit(X, Y), X, result.tree)
    assert np.abs(off / mcse).max() < stats.norm.isf(5e-3 / off.size), np.abs(off).max()
    for error in errors:  # compiled once: the model's shape is the same
        with monkeypatch.context() as patch:
            EXACT[error][1](patch, type(clf.prior_.family))
            patch.setattr(module, "_identities", lambda *_: [])  # NUTS alone
            wrong = bg.validate(clf, X, Y, draws=4000, **QUIET)
        assert wrong.verdict == "disagree", f"{error}\n{wrong}"
        assert "by NUTS" in wrong.reasons[0]


@pytest.mark.slow
def test_of_a_pool_the_members_that_have_a_graph(tmp_path):
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.TreeAugmentedNB(prior="default")])
    sampled = {"draws": 200, "tune": 300, "chains": 2} | QUIET
    with pytest.warns(UserWarning, match="'TreeAugmentedNB' was not validated"):
        found = bg.validate(pool, REALS, Y, X_test=REALS[:3], **sampled)
    alone = bg.validate(bg.GaussianNB(), REALS, Y, X_test=REALS[:3], **sampled)
    assert list(found) == ["GaussianNB"]
    pd.testing.assert_frame_equal(found["GaussianNB"].checks, alone.checks)
    frame = pd.DataFrame(REALS, columns=["x0", "x1"])
    pool.fit(frame, Y).save(tmp_path / "pool.nc")
    frame.assign(label=Y).to_csv(tmp_path / "rows.csv", index=False)
    words = "validate", tmp_path / "pool.nc", tmp_path / "rows.csv", "--target", "label"
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        shown = CliRunner().invoke(app, [str(word) for word in (*words, "--draws", 300)])
    assert "Member 'GaussianNB':\nGaussianNB: closed form against NUTS" in shown.output
    assert "'TreeAugmentedNB' was not validated" in " ".join(shown.output.split())
