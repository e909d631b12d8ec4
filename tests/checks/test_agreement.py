"""Draws against draws and against known means: as often apart as stated, and no oftener."""

import numpy as np
import pytest
from scipy import signal, stats

from bayesgen.checks.comparison import (
    PROBS,
    STATISTICS,
    compare,
    compare_mean,
    drawn,
    failed,
    identity,
    r_hat,
    sentence,
    skipped,
    table,
)

SLOW = pytest.mark.slow


def ar1(rng: np.random.Generator, shape: tuple[int, ...], rho: float) -> np.ndarray:
    """Standard Normal chains (chain, draw, K) with autocorrelation rho."""
    noise = rng.normal(size=(shape[0], shape[1] + 200, shape[2])) * np.sqrt(1 - rho**2)
    return signal.lfilter([1.0], [1.0, -rho], noise, axis=1)[:, 200:]


def z_of(chain: np.ndarray, reference: np.ndarray) -> dict[str, np.ndarray]:
    return {name: one.difference for name, one in compare(chain, reference).items()}


@pytest.mark.parametrize(
    ("quantile", "rho"),
    [
        pytest.param(stats.norm.ppf, 0.5, id="normal"),
        pytest.param(stats.norm.ppf, -0.3, id="antithetic", marks=SLOW),
        pytest.param(stats.cauchy.ppf, 0.5, id="cauchy", marks=SLOW),
        pytest.param(lambda p: (p < 0.02) * 1.0, 0.5, id="rare"),
    ],
)
def test_z_scores_are_standard_normal_if_both_are_right(rho, quantile):
    rng = np.random.default_rng(3)
    k = 300
    chain = quantile(stats.norm.cdf(ar1(rng, (4, 1000, k), rho)))
    for name, z in z_of(chain, quantile(rng.random((8000, k)))).items():
        # sd of 300 standard Normals: 1 +- .041; antithetic chains are better than they are
        # taken for, and where all draws are alike in one respect there is nothing to compare
        assert z.std() < 1.15, name
        assert z.std() > 0.85 or rho < 0 or not z.any(), name
        assert abs(z.mean()) < 4.5 / np.sqrt(k), name


def test_a_wrong_mean_scale_or_tail_is_seen():
    rng = np.random.default_rng(4)
    chain, reference = rng.normal(size=(4, 1000, 4)), rng.normal(size=(20_000, 4))
    chain[..., 1] += 0.12
    chain[..., 2] *= 1.08
    chain[..., 3] = np.where(np.abs(chain[..., 3]) < 1.645, chain[..., 3], 0.0)
    z = z_of(chain, reference)
    assert max(abs(one[0]) for one in z.values()) < 4
    assert z["mean"][1] > 6
    assert z["sd"][2] > 4
    assert z["q05"][3] < -6


@pytest.mark.parametrize("quantile", [stats.norm.ppf, stats.expon.ppf], ids=["normal", "skewed"])
def test_a_shift_of_the_stated_size_is_seen_nine_times_in_ten(quantile):
    """The error of the mean, in standard deviations of the draws: an upper bound if skewed."""
    rng, k, threshold = np.random.default_rng(10), 300, 3.5
    chain = quantile(stats.norm.cdf(ar1(rng, (4, 500, k), 0.5)))
    reference = quantile(rng.random((9000, k)))
    error = compare(chain, reference)["mean"].error
    shift = (threshold + stats.norm.ppf(0.9)) * error * chain.std()
    share = np.mean(np.abs(z_of(chain + shift, reference)["mean"]) > threshold)
    assert share > 0.9 - 4.5 * np.sqrt(0.09 / k)
    if quantile is stats.norm.ppf:
        assert share < 0.9 + 4.5 * np.sqrt(0.09 / k)


def test_statistics_are_in_the_quantities_own_unit():
    rng = np.random.default_rng(5)
    chain, reference = rng.gamma(3, 2, size=(2, 500, 1)), rng.gamma(3, 2, size=(5000, 1))
    scores = compare(chain, reference)
    for field, draws in (("value", chain.ravel()), ("expected", reference.ravel())):
        expected = [draws.mean(), draws.std(), *np.quantile(draws, PROBS)]
        found = [getattr(scores[name], field)[0] for name in STATISTICS]
        np.testing.assert_allclose(found, expected)


def test_constants_and_atoms():
    rng = np.random.default_rng(6)
    chain, reference = np.ones((4, 200, 3)), np.ones((1000, 3))
    chain[..., 1] = 2.0
    chain[..., 2] += 1e-15 * rng.random((4, 200))
    z = np.stack([*z_of(chain, reference).values()])
    assert not z[:, [0, 2]].any()
    assert np.abs(z[:, 1]).max() > 30


def test_r_hat_is_of_each_series_and_nan_where_there_is_none():
    chain = np.random.default_rng(8).normal(size=(4, 500, 2))
    chain[..., 1] += np.arange(4)[:, None]
    near, far = r_hat(chain)
    assert near < 1.01 < 1.5 < far
    for without in (np.ones((4, 500, 2)), chain[:1], chain[:, :3]):
        assert np.isnan(r_hat(without)).all()


def test_a_mean_is_compared_where_its_error_is_normal():
    rng = np.random.default_rng(9)
    k = 300
    series = np.concatenate(
        [rng.gamma(4.0, size=(4, 1000, k)), ar1(rng, (4, 1000, k), 0.6)], axis=-1
    )
    exact = np.repeat([4.0, 0.0], k)

    def z_of_mean(chain: np.ndarray, exact: np.ndarray) -> np.ndarray:
        return compare_mean(chain, exact)["mean"].difference

    z = z_of_mean(series, exact)
    for part in (z[:k], z[k:]):  # sd of 300 standard Normals: 1 +- .041
        assert abs(part.std() - 1) < 0.16
        assert abs(part.mean()) < 4.5 / np.sqrt(k)
    assert (z_of_mean(series, exact + 0.2) < -2).mean() > 0.9
    heavy = z_of_mean(1 / rng.gamma(1.5, size=(4, 1000, 20)), np.full(20, 2.0))
    assert np.isnan(heavy).all()  # no variance
    rare = z_of_mean((rng.random((4, 1000, 20)) < 2e-3) * 1.0, np.full(20, 2e-3))
    assert np.isnan(rare).all()
    assert z_of_mean(np.ones((4, 1000, 2)), np.array([1.0, 1.1])).tolist() == [0.0, np.inf]


# ------------------------------------------------------------------------------------ the table


def test_an_identity_is_judged_at_its_worst_place_and_by_the_size_of_its_terms():
    value, expected = np.array([[1.0, 2.0], [3.0, -np.inf]]), np.array([[1.0, 2.3], [3.1, -np.inf]])
    routes = {"one": value, "another": expected}
    line = identity("densities", "p", routes, place=lambda i, c: f"row {i}, {c}", note="mend it")
    (worst,) = table([line], 0.01).itertuples()
    assert worst.difference == pytest.approx(0.3 / 3.3)
    assert sentence(worst) == "p of row 0, 1: 2 by one, 2.3 by another: mend it"
    for size, n_failed in ((1e6, 1), (1e9, 0)):
        assert len(failed(table([identity("densities", "p", routes, size)], 0.01))) == n_failed
    broken = identity("densities", "p", {"one": [np.nan, 1.0], "another": [1.0, 1.0]})
    assert table([broken], 0.01)["difference"].item() == np.inf


def test_all_draws_together_are_allowed_to_exceed_the_threshold_as_rarely_as_stated():
    rng = np.random.default_rng(2)
    lines = [
        drawn("parameters", name, list("abc"), compare(rng.normal(size=(2, 100, 3)), x), "NUTS")
        for name, x in (("mu", rng.normal(size=(500, 3))), ("sigma", rng.normal(size=(500, 3)) + 9))
    ]
    checks = table([*lines, skipped("densities", "p", "no reason")], 0.05)
    assert checks["allowed"].dropna().unique() == pytest.approx(stats.norm.isf(0.05 / (2 * 30)))
    bad = failed(checks)
    assert set(bad["variable"]) == {"sigma"}
    assert sentence(next(bad.itertuples())).startswith("mean of sigma of a: ")
