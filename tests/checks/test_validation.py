"""The table of a validation, and intervals held to draws, on numbers that are known."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from bayesgen.checks.agreement import STATISTICS, Agreement
from bayesgen.checks.quantities import INDEPENDENT, PARAMETERS, Comparisons, add_coverage
from bayesgen.checks.validate import Validation


def test_the_table_shows_the_largest_of_each_statistic():
    z = np.random.default_rng(0).normal(size=(4, len(STATISTICS)))
    z[2, 3] = np.nan
    into, ess = Comparisons(), np.array([50.0, 7.0, 9.0, 80.0])
    r_hat = np.column_stack([[1, 1.2, 1.1, 1], np.full(4, 1.3)])
    labels = list("abcd")
    into.add("mu", labels, Agreement(z, z, z, ess, np.ones_like(z), np.zeros(4)), PARAMETERS, r_hat)
    found = Validation("agree", (), into.dataset(), 3.0, 0.01, xr.DataTree()).summary().loc["mu"]
    expected = {"numbers": 4, "mean |z|": np.abs(z[:, 0]).max(), "sd |z|": np.abs(z[:, 1]).max()}
    expected |= {"quantile |z|": np.nanmax(np.abs(z[:, 2:])), "R-hat": 1.2, "ESS": 7.0}
    assert found.to_dict() == pytest.approx(expected)


@pytest.mark.parametrize("error", [0.0, 0.004, 0.03])
def test_an_interval_is_held_to_its_share_within_its_own_error(error):
    n, low, high = 4000, -1.7, 1.2
    draws = np.random.default_rng(1).normal(size=(1, n, 1, 1))

    def predict_interval(X, prob, kind, draws):
        ends = (("obs_id", "class", "bound"), np.array([[[low, high]]]))
        return xr.Dataset({"log_odds": ends, "error": ("obs_id", [error])})

    into = Comparisons()
    fitted = SimpleNamespace(predict_interval=predict_interval)
    add_coverage(into, fitted, None, {INDEPENDENT: draws}, ["row 0"])
    found = into.dataset().set_index(check="variable")
    below, above = (draws < low).mean(), (draws > high).mean()
    for kind, statistic, share, wanted, ends in (
        ("eti", "q05", below, 0.05, 1),
        ("eti", "q95", above, 0.05, 1),
        ("hdi", "mean", 1 - below - above, 0.9, 2),
    ):
        gap, slack = share - wanted, ends * error
        excess = np.sign(gap) * max(abs(gap) - slack, 0.0)
        expected = excess / np.sqrt(wanted * (1 - wanted) / n + slack**2)
        (name,) = [v for v in found["check"].values if kind in v]
        own = found["z"].sel(check=name).values.ravel()[STATISTICS.index(statistic)]
        assert own == pytest.approx(expected, abs=1e-12)
        assert float(found["slack"].sel(check=name).item()) == pytest.approx(slack)
