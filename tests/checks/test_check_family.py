"""`check_family` passes families that are right, and names each fault that is planted in one."""

from dataclasses import dataclass

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.checks import validate
from bayesgen.checks.comparison import failed, table
from bayesgen.families import (
    BetaBernoulli,
    Family,
    GammaPoisson,
    NormalInverseGamma,
    NormalInverseWishart,
    StudentT,
)
from bayesgen.families.capabilities import ThetaDensity
from tests.checks.planted import DRAWN, EXACT
from tests.graphs import pm

CELLS = ("class", "feature")
RNG = np.random.default_rng(3)
Y = np.repeat(["a", "b"], 15)
X = RNG.laplace(np.where(Y == "a", 0.0, 2.0)[:, None], size=(30, 2))
BITS = RNG.integers(2, size=(30, 2))


@dataclass(frozen=True, eq=False)
class Laplace(Family):
    """Independent Laplace columns, each with one scale for all classes."""

    params = {"mu": CELLS, "b": ("feature",)}  # noqa: RUF012

    def log_likelihood(self, X, theta):
        mu, b = theta["mu"][..., None, :, :], theta["b"][..., None, None, :]
        return np.nansum(-np.abs(X[:, None, :] - mu) / b - np.log(2 * b), axis=-1)

    def simulate(self, rng, theta, y):
        return rng.laplace(self.rows_of(theta, "mu", y), self.rows_of(theta, "b", y))

    def to_pymc(self, *, prefix="", X=None, y=None, stats=None):
        mu = pm.Normal("mu", 0.0, 3.0, dims=CELLS)
        b = pm.Gamma("b", 4.0, 2.0, dims="feature")
        if X is not None:
            seen = pm.Data("seen", ~np.isnan(X) * 1.0)
            cells = pm.Data("cells", np.nan_to_num(X))

            def log_p(x, seen, mu, b):
                return seen * pm.logp(pm.Laplace.dist(mu, b), x)

            def draw(seen, mu, b, size):
                return pm.Laplace.dist(mu, b, size=size)

            pm.CustomDist("x", seen, mu[y], b, logp=log_p, dist=draw, observed=cells)
        return {"mu": mu, "b": b}


class Short(Laplace):  # what is left out is that of `to_pymc`
    log_likelihood, simulate = Family.log_likelihood, Family.simulate


class Rate(Laplace):
    def log_likelihood(self, X, theta):
        return super().log_likelihood(X, dict(theta) | {"b": 1 / theta["b"]})


class WithoutConstant(Laplace):
    def log_likelihood(self, X, theta):
        return super().log_likelihood(X, theta) + np.log(theta["b"]).sum(axis=-1)[..., None, None]


class FilledCells(Laplace):
    def log_likelihood(self, X, theta):
        return super().log_likelihood(np.nan_to_num(X), theta)


class OneDraw(Laplace):
    def log_likelihood(self, X, theta):
        first = {k: v[(0,) * (v.ndim - len(self.params[k]))] for k, v in theta.items()}
        out = super().log_likelihood(X, first)
        return np.broadcast_to(out, (*theta["mu"].shape[:-2], *out.shape))


class OtherRows(Laplace):
    def simulate(self, rng, theta, y):
        return super().simulate(rng, dict(theta) | {"b": np.sqrt(2) * theta["b"]}, y)


class OtherDims(Laplace):
    params = {"mu": CELLS, "b": CELLS}  # noqa: RUF012


class OtherDraws(Short):
    """PyMC's draws are not of its density."""

    def to_pymc(self, *, prefix="", X=None, y=None, stats=None):
        mu = pm.Normal("mu", 0.0, 1.0, dims=CELLS)
        b = pm.Gamma("b", 4.0, 2.0, dims="feature")
        if X is not None:
            pm.CustomDist(
                "x",
                mu[y],
                b,
                logp=lambda x, mu, b: pm.logp(pm.Laplace.dist(mu, b), x),
                dist=lambda mu, b, size: pm.Laplace.dist(mu, b * b, size=size),
                observed=X,
                dims=("obs_id", "feature"),
            )
        return {"mu": mu, "b": b}


class PriorAlone(GammaPoisson):
    """Observes rows, and takes no notice of statistics."""

    def to_pymc(self, *, prefix="", X=None, y=None, stats=None):
        rows = {} if X is None else {"X": X, "y": y}
        return super().to_pymc(prefix=prefix, **rows)


class WeightlessRows(GammaPoisson):
    def stats(self, X, y, n_classes, weight=None):
        return super().stats(X, y, n_classes)


class DrawsByScale(GammaPoisson):
    """Takes the rate of the gamma distribution for its scale."""

    def draw(self, rng, n):
        return {"rate": rng.gamma(self.shape, self.rate, size=(n, *self.shape.shape))}


@pytest.mark.parametrize(
    ("family", "rows"),
    [
        (Laplace(), X),
        (Short(), X),
        (StudentT(), X),
        (BetaBernoulli(), BITS),
        (GammaPoisson(), BITS),
        (NormalInverseGamma(), X),
        (NormalInverseWishart(), X),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Family) else "",
)
def test_a_family_that_is_right_passes(family, rows):
    found = bg.check_family(family, rows, Y)
    compared = found.difference.notna()
    assert (found.difference[compared] <= found.allowed[compared]).all()
    assert found.loc["log_likelihood", "difference"] < 1e-8
    left = {"parameters", "simulate and to_pymc", "statistics"}
    if not isinstance(family, Short | NormalInverseWishart):
        left = {"parameters"}
    assert set(found.index[~compared]) <= left, found.note
    assert np.isfinite(found.loc["missing cells", "difference"])


@pytest.mark.parametrize(
    "family",
    [Rate, WithoutConstant, FilledCells, OneDraw, OtherRows, OtherDims, OtherDraws],
)
def test_a_planted_fault_is_found(family):
    with pytest.raises(ValueError, match=rf"^{family.__name__}: .*\d.*\d"):
        bg.check_family(family(), X, Y)


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (PriorAlone, "to_pymc given the statistics, .* by log_likelihood of the weighted rows"),
        (WeightlessRows, "stats must use the weights"),
        (DrawsByScale, r"rate\[0, 0\]: .* by draw of the prior, .* by PyMC's draws"),
    ],
)
def test_closed_forms_are_compared_with_the_graph(family, words):
    with pytest.raises(ValueError, match=rf"^{family.__name__}: .*{words}"):
        bg.check_family(family(3.0, 2.0), BITS, Y)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("shape off by one", "evidence and predictive of rows"),
        ("map is the mean", "by map: its log posterior density is not the highest"),
        ("mle is the mean", "by mle: its log likelihood is not the highest"),
        ("mean is the mode", r"E rate\[0, 0\]: .* by independent draws, .* by closed form"),
    ],
)
def test_an_error_in_a_closed_form_is_found(error, words, monkeypatch):
    (EXACT | DRAWN)[error][1](monkeypatch, GammaPoisson)
    with pytest.raises(ValueError, match=rf"^GammaPoisson: .*{words}"):
        bg.check_family(GammaPoisson(3.0, 2.0), BITS, Y)


@pytest.mark.parametrize("mistaken", [GammaPoisson, WeightlessRows, DrawsByScale])
def test_validate_compares_with_the_graph_where_theta_has_no_density(mistaken):
    @dataclass(frozen=True, eq=False)
    class Silent(mistaken):
        def capability(self, kind):
            return None if kind is ThetaDensity else super().capability(kind)

    weight = np.linspace(0.5, 3.0, len(Y))
    clf = bg.GenerativeClassifier(Silent(3.0, 2.0)).fit(BITS, Y, sample_weight=weight)
    lines = table(validate._identities(clf, validate._case(clf, BITS, Y, weight), BITS), 1e-6)
    (skipped,) = lines.loc[lines["difference"].isna(), "note"]
    assert "ThetaDensity (log_density), which Silent does not offer" in skipped
    by_graph = {"statistics", "rate", "method='map'"}
    assert by_graph <= set(lines["variable"])
    assert bool(by_graph & set(failed(lines)["variable"])) == (mistaken is not GammaPoisson)
