"""`bg.validate`: agrees with what is right, refuses what was broken on purpose."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import signal, stats
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen.checks import quantities
from bayesgen.checks import validate as module
from bayesgen.checks.agreement import PROBS, STATISTICS, compare, compare_mean, r_hat, r_hat_limit
from bayesgen.cli import app
from bayesgen.families.errors import NoClosedFormError
from tests.checks.planted import EXACT
from tests.predict.against_nuts import percentile_errors
from tests.selection import rest_is_slow

RNG = np.random.default_rng(11)
Y = np.array(list("aabbbaabbbaabbb"))
X = RNG.normal(size=(15, 2)) + (Y == "b")[:, None] * [1.5, -0.5]
BITS = (X > 0).astype(int)
QUIET = {"progressbar": False, "random_state": 5}


# --------------------------------------------------------------------------------- agreement


def ar1(rng: np.random.Generator, shape: tuple[int, ...], rho: float) -> np.ndarray:
    """Standard Normal chains (chain, draw, K) with autocorrelation rho."""
    noise = rng.normal(size=(shape[0], shape[1] + 200, shape[2])) * np.sqrt(1 - rho**2)
    return signal.lfilter([1.0], [1.0, -rho], noise, axis=1)[:, 200:]


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("quantile", "rho"),
    [
        pytest.param(stats.norm.ppf, 0.0, id="normal-0.0", marks=SLOW),
        pytest.param(stats.norm.ppf, 0.5, id="normal-0.5"),
        pytest.param(stats.norm.ppf, -0.3, id="normal-antithetic", marks=SLOW),
        pytest.param(stats.cauchy.ppf, 0.0, id="cauchy-0.0", marks=SLOW),
        pytest.param(stats.cauchy.ppf, 0.5, id="cauchy-0.5", marks=SLOW),
        pytest.param(stats.cauchy.ppf, -0.3, id="cauchy-antithetic", marks=SLOW),
    ],
)
def test_z_scores_are_standard_normal_if_both_are_right(rho, quantile):
    rng = np.random.default_rng(3)
    k = 400
    chain = quantile(stats.norm.cdf(ar1(rng, (4, 1000, k), rho)))
    result = compare(chain, quantile(rng.random((8000, k))))
    assert result.z.shape == (k, len(STATISTICS))
    # sd of 400 standard Normals: 1 +- .035; antithetic chains are better than they are taken for
    sd = result.z.std(axis=0)
    assert np.all(sd < 1.13), sd
    if rho >= 0:
        assert np.all(sd > 0.87), sd
    assert np.all(np.abs(result.z.mean(axis=0)) < 4.5 / np.sqrt(k))
    share = np.mean(np.abs(result.z) > 1.96)
    assert share < 0.08


def test_a_wrong_mean_scale_or_tail_is_seen():
    rng = np.random.default_rng(4)
    chain, reference = rng.normal(size=(4, 1000, 4)), rng.normal(size=(20_000, 4))
    chain[..., 1] += 0.12
    chain[..., 2] *= 1.08
    chain[..., 3] = np.where(np.abs(chain[..., 3]) < 1.645, chain[..., 3], 0.0)
    z = np.abs(compare(chain, reference).z)
    assert z[0].max() < 4
    assert z[1, STATISTICS.index("mean")] > 6
    assert z[2, STATISTICS.index("sd")] > 4
    assert z[3, STATISTICS.index("q05")] > 6


@pytest.mark.parametrize("quantile", [stats.norm.ppf, stats.expon.ppf], ids=["normal", "skewed"])
def test_a_shift_of_the_stated_size_is_seen_nine_times_in_ten(quantile):
    """The error of the mean, in standard deviations of the draws: an upper bound if skewed."""
    rng, k, threshold = np.random.default_rng(10), 300, 3.5
    chain, reference = (quantile(stats.norm.cdf(ar1(rng, (4, 500, k), 0.5)))), rng.random((9000, k))
    error = compare(chain, quantile(reference)).error[:, 0]
    shift = (threshold + stats.norm.ppf(0.9)) * error * chain.std()
    z = np.abs(compare(chain + shift, quantile(reference)).z[:, 0])
    share, chance = np.mean(z > threshold), np.sqrt(0.09 / k)
    assert share > 0.9 - 4.5 * chance
    if quantile is stats.norm.ppf:
        assert share < 0.9 + 4.5 * chance
        assert np.mean(np.abs(compare(chain + shift / 2, quantile(reference)).z[:, 0]) > 3.5) < 0.4


def test_statistics_are_in_the_quantities_own_unit():
    rng = np.random.default_rng(5)
    chain, reference = rng.gamma(3, 2, size=(2, 500, 1)), rng.gamma(3, 2, size=(5000, 1))
    result = compare(chain, reference)
    for field, draws in ((result.chain, chain.ravel()), (result.reference, reference.ravel())):
        expected = [draws.mean(), draws.std(), *np.quantile(draws, PROBS)]
        np.testing.assert_allclose(field[0], expected)


def test_constants_and_atoms():
    rng = np.random.default_rng(6)
    chain, reference = np.ones((4, 200, 3)), np.ones((1000, 3))
    chain[..., 1] = 2.0
    chain[..., 2], reference[:, 2] = rng.random((4, 200)) < 0.3, rng.random(1000) < 0.3
    z = compare(chain, reference).z
    assert np.all(z[0] == 0)
    assert np.all(np.isinf(z[1]))
    assert np.all(np.abs(z[2]) < 4)


def test_r_hat_is_of_each_series_and_nan_where_there_is_none():
    chain = np.random.default_rng(8).normal(size=(4, 500, 2))
    chain[..., 1] += np.arange(4)[:, None]
    near, far = r_hat(chain)
    assert near < 1.01 < 1.5 < far
    for without in (np.ones((4, 500, 2)), chain[:1], chain[:, :3]):
        assert np.isnan(r_hat(without)).all()


@pytest.mark.parametrize("rho", [0.0, 0.85])
def test_r_hat_exceeds_its_limit_as_rarely_as_stated(rho):
    rng, k = np.random.default_rng(12), 250
    chain = ar1(rng, (4, 1000, k), rho)
    alarms = (r_hat(chain) > r_hat_limit(chain, 0.05, 1)).sum()
    assert 0 < alarms <= stats.binom.ppf(0.999, k, 0.07)  # the tail of chi squared is approximate
    many = r_hat_limit(chain, 0.05, k)
    assert (r_hat(chain) > many).sum() <= 2
    if rho:
        assert np.median(many) > 1.02  # where 1.01 is an alarm by chance
    chain[3] += 1.8  # a difference between chains does not lower the effective size within them
    np.testing.assert_allclose(r_hat_limit(chain, 0.05, k), many, rtol=0.02)
    assert (r_hat(chain) > many).all()


def test_a_mean_is_compared_where_its_error_is_normal():
    rng = np.random.default_rng(9)
    k = 300
    series = np.concatenate(
        [rng.gamma(4.0, size=(4, 1000, k)), ar1(rng, (4, 1000, k), 0.6)], axis=-1
    )
    exact = np.repeat([4.0, 0.0], k)
    z = compare_mean(series, exact).z[:, 0]
    for part in (z[:k], z[k:]):  # sd of 300 standard Normals: 1 +- .041
        assert abs(part.std() - 1) < 0.16
        assert abs(part.mean()) < 4.5 / np.sqrt(k)
    shifted = compare_mean(series, exact + 0.2).z[:, 0]
    assert (shifted < -2).mean() > 0.9
    heavy = compare_mean(1 / rng.gamma(1.5, size=(4, 1000, 20)), np.full(20, 2.0))
    assert np.isnan(heavy.z).all()  # no variance
    rare = compare_mean((rng.random((4, 1000, 20)) < 2e-3) * 1.0, np.full(20, 2e-3))
    assert np.isnan(rare.z).all()
    constant = compare_mean(np.ones((4, 1000, 2)), np.array([1.0, 1.1])).z[:, 0]
    assert constant.tolist() == [0.0, np.inf]


def test_log_odds_keep_what_probabilities_round_away():
    joint = np.array([[0.0, -50.0, -60.0], [0.0, -51.0, -60.0]])
    odds = quantities.against_rest(joint)
    assert odds[0, 0] != odds[1, 0]
    np.testing.assert_allclose(odds[0], [50 - np.log1p(np.exp(-10)), -50, -60], rtol=1e-12)
    p = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))[:, 1:]
    np.testing.assert_allclose(odds[:, 1:], np.log(p) - np.log1p(-p), rtol=1e-12)


ESTIMATORS: dict[str, tuple[Any, Any]] = {
    "BernoulliNB": (bg.BernoulliNB(), BITS),
    "GaussianNB": (bg.GaussianNB(kappa0=2.0), X),
    "missing": (bg.GaussianNB(), np.where(RNG.random(X.shape) < 0.2, np.nan, X)),
    "LinearDiscriminant": (bg.LinearDiscriminant(), X),
    "QuadraticDiscriminant": (bg.QuadraticDiscriminant(), X),
    "MarkovNB": (bg.MarkovNB(), ["".join("ab"[b] for b in row) + "ab" for row in BITS]),
}
# errors of `planted.EXACT` that NUTS alone finds
PLANTED = {
    "BernoulliNB": ("pseudo-count off by one",),
    "GaussianNB": ("n - 1", "kappa dropped", "class prior forgotten"),
    "LinearDiscriminant": ("n - 1",),
}


# ------------------------------------------------------------------------------- against NUTS


@pytest.mark.parametrize("share", [-0.1, 0.0, 1.0])
def test_false_alarm_is_a_probability(share):
    with pytest.raises(ValueError, match="false_alarm must be between 0 and 1"):
        bg.validate(bg.GaussianNB(), X, Y, false_alarm=share)


class Exact:
    """Draws of the closed form in place of NUTS: what the verdict does if both are right."""

    def __init__(self, monkeypatch: Any, wrong: Any = None) -> None:
        from bayesgen.estimators.classifier import GenerativeClassifier

        def sample(self: Any, draws: int, tune: int, chains: int, seed: int, *_: Any, **__: Any):
            tree = self.draw_posterior(draws, chains, seed, groups=())
            diverging = np.zeros((chains, draws), dtype=bool)
            stats = xr.Dataset({"diverging": (("chain", "draw"), diverging)})
            tree["sample_stats"] = stats
            return wrong(tree) if wrong else tree

        monkeypatch.setattr(GenerativeClassifier, "sample_posterior", sample)
        monkeypatch.setattr(module, "_SIMULATED", 5000)


@pytest.mark.parametrize(
    "name",
    rest_is_slow(
        ["BernoulliNB", "GaussianNB", "LinearDiscriminant", "MarkovNB"],
        ["GaussianNB", "MarkovNB"],
    ),
)
def test_verdict_of_equal_distributions(name, monkeypatch):
    Exact(monkeypatch)
    clf, data = ESTIMATORS[name]
    result = bg.validate(clf, data, Y, **QUIET)
    assert result.passed, str(result)
    assert result.verdict == "agree"
    assert result.reasons == ()
    assert 1.5 < result.largest_z < result.threshold
    text = str(result)
    assert f"{type(clf).__name__}: closed form against NUTS" in text
    assert "verdict: agree" in text
    assert result.tree["validation"].attrs["verdict"] == "agree"
    assert set(result.tree["validation"]["statistic"].values) == set(STATISTICS)
    means = result.tree["validation"].to_dataset().sel(statistic="mean")
    own = means.isel(check=np.flatnonzero(means["variable"] == "log p(x, y | D)"))
    step = (own["nuts"] - own["closed_form"]).values
    np.testing.assert_array_equal(np.sign(step), np.sign(own["z"].values))
    assert step.all()
    summary = result.summary()
    assert summary.loc["pi", "numbers"] == 2
    assert (summary["R-hat"].dropna() <= 1.01).all()


def test_one_class_has_no_intervals_to_compare(monkeypatch):
    Exact(monkeypatch)
    result = bg.validate(bg.GaussianNB(), X, np.zeros(15), draws=200, **QUIET)
    assert result.passed, str(result)
    assert "credible intervals: one class has probability 1" in result.not_compared


def test_columns_left_out_are_not_compared(monkeypatch):
    Exact(monkeypatch)
    constant = np.column_stack([X, np.full(15, 7.0)])
    result = bg.validate(bg.QuadraticDiscriminant(), constant, Y, draws=200, **QUIET)
    names = result.checks["check"].values
    assert "mu[a, x1]" in names
    assert not any("x2" in name for name in names)
    assert result.passed, str(result)


def test_a_classifier_without_a_closed_form_is_refused_before_it_is_fitted(monkeypatch):
    monkeypatch.setattr(bg.StudentTNB, "fit", None)
    with pytest.raises(NoClosedFormError, match="StudentTNB has none"):
        bg.validate(bg.StudentTNB(), [[1.0], [2.0], [4.0]], [0, 1, 1])


@pytest.mark.parametrize("weight", [None, np.arange(15.0)])
@pytest.mark.parametrize("name", ["BernoulliNB", "LinearDiscriminant", "missing"])
def test_a_rank_that_forgets_the_row_itself_is_refused(name, weight, monkeypatch):
    from bayesgen.predict import left_out

    clf, data = ESTIMATORS[name]
    fitted = clf.fit(data, Y, sample_weight=weight)
    exact = {o.what: o for o in module._exact(fitted, module._Data.of(fitted, data, Y, weight))}
    assert not exact["typicality"].wrong
    assert not exact["typicality"].skipped
    right = left_out.tail_probability
    monkeypatch.setattr(left_out, "tail_probability", lambda s, r, w: right(s, r, w) - 1 / 99)
    exact = {o.what: o for o in module._exact(fitted, module._Data.of(fitted, data, Y, weight))}
    assert "typicality of row" in exact["typicality"].wrong[0]


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated(monkeypatch):
    Exact(monkeypatch)
    alarms, n = 0, 0
    for name in ("BernoulliNB", "GaussianNB", "QuadraticDiscriminant"):
        for seed in range(12):
            clf, data = ESTIMATORS[name]
            result = bg.validate(clf, data, Y, random_state=seed, draws=500, false_alarm=0.1)
            alarms, n = alarms + (result.verdict == "disagree"), n + 1
    assert alarms <= stats.binom.ppf(0.999, n, 0.1)


def test_a_sampler_that_cannot_be_trusted_is_inconclusive(monkeypatch):
    def stuck(tree: Any) -> Any:
        posterior = tree["posterior"].to_dataset()
        shift = np.array([0.0, 0.0, 0.0, 3.0])[:, None, None, None]
        tree["posterior"] = posterior.assign(
            mu=posterior["mu"] + float(posterior["mu"].std()) * shift
        )
        return tree

    Exact(monkeypatch, stuck)
    result = bg.validate(bg.GaussianNB(), X, Y, **QUIET)
    assert result.verdict == "inconclusive"
    assert not result.passed
    assert any("R-hat" in reason for reason in result.reasons)
    assert any("target_accept" in reason for reason in result.reasons)


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "errors"), PLANTED.items(), ids=PLANTED)
def test_closed_form_and_nuts_agree_and_planted_errors_are_refused(estimator, errors, monkeypatch):
    clf, data = ESTIMATORS[estimator]
    result = bg.validate(clf, data, Y, **QUIET)
    assert result.passed, str(result)
    assert result.tree.attrs["route"] == "nuts"
    assert result.checks.attrs["divergences"] == 0
    off, mcse = percentile_errors(clf.fit(data, Y), data, result.tree)
    assert np.abs(off / mcse).max() < stats.norm.isf(5e-3 / off.size), np.abs(off).max()
    for error in errors:  # compiled once: the model's shape is the same
        with monkeypatch.context() as patch:
            EXACT[error][1](patch, type(clf.prior_.family))
            patch.setattr(module, "_exact", lambda *_: [])  # NUTS alone
            wrong = bg.validate(clf, data, Y, draws=4000, **QUIET)
        assert wrong.verdict == "disagree", f"{error}\n{wrong}"
        assert "by NUTS" in wrong.reasons[0]


@SLOW
def test_of_a_pool_the_members_that_have_a_graph(tmp_path):
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.TreeAugmentedNB(prior="default")])
    sampled = {"draws": 200, "tune": 300, "chains": 2} | QUIET
    with pytest.warns(UserWarning, match="'TreeAugmentedNB' was not validated"):
        found = bg.validate(pool, X, Y, X_test=X[:3], **sampled)
    alone = bg.validate(bg.GaussianNB(), X, Y, X_test=X[:3], **sampled)
    assert list(found) == ["GaussianNB"]
    xr.testing.assert_allclose(found["GaussianNB"].checks, alone.checks)
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    pool.fit(frame, Y).save(tmp_path / "pool.nc")
    frame.assign(label=Y).to_csv(tmp_path / "rows.csv", index=False)
    words = "validate", tmp_path / "pool.nc", tmp_path / "rows.csv", "--target", "label"
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        shown = CliRunner().invoke(app, [str(word) for word in (*words, "--draws", 300)])
    assert "GaussianNB, GaussianNB on 15 rows: closed form against NUTS" in shown.output
    assert "'TreeAugmentedNB' was not validated" in " ".join(shown.output.split())
