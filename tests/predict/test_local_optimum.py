"""MAP and MLE of sampled families against optima that SciPy finds on densities of its own.

NUTS is replaced by draws near the truth: where the search begins does not matter here.
"""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.optimize import minimize
from scipy.special import log_softmax

import bayesgen as bg
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.inference import nuts

RNG = np.random.default_rng(3)
N = 60
Y = np.arange(N) % 2
X = RNG.standard_t(3, size=(N, 1)) + 2.0 * Y[:, None]
ALPHA = np.array([3.0, 2.0])


@pytest.fixture(autouse=True)
def prior_for_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand draws of the prior in place of NUTS: nothing is compiled."""

    def sample(model: Any, random_state: Any = 0, **_: Any) -> Any:
        names = [v.name for v in (*model.free_RVs, *model.deterministics)]
        draws = nuts.draw_prior(model, names, 1000, random_state)
        dims = {k: model.named_vars_to_dims.get(k, ()) for k in names}
        variables = {k: (("chain", "draw", *dims[k]), v[None]) for k, v in draws.items()}
        used = {d for of_variable in dims.values() for d in of_variable}
        coords = {k: list(v) for k, v in model.coords.items() if k in used and v is not None}
        stats = xr.Dataset({"diverging": (("chain", "draw"), np.zeros((1, 1000), dtype=bool))})
        return xr.Dataset(variables, coords), stats

    monkeypatch.setattr(nuts, "sample", sample)
    sound = nuts.Diagnosis(0, 1.0, "pi", 1e4, "pi", 1)
    monkeypatch.setattr("bayesgen.inference.nuts.warn_unless_sound", lambda *_, **__: sound)


pytestmark = pytest.mark.filterwarnings("ignore::bayesgen.posterior.drawn.MonteCarloWarning")


def log_p_of_t(u: np.ndarray, prior: Any, with_prior: bool) -> float:
    """Log density of one column by SciPy; u holds two locations, two log scales, log nu."""
    mu, r, nu = u[:2], np.exp(u[2:4]), np.exp(u[4])
    m, s, h = prior.location[0], prior.scale[0], prior.resolution[0]
    sigma = np.sqrt(r**2 + h**2 / 12)
    log_p = stats.t.logpdf(X[:, 0], nu, mu[Y], sigma[Y]).sum()
    if with_prior:
        log_p += stats.norm.logpdf(mu, m, np.sqrt(10) * s).sum()
        log_p += stats.lognorm.logpdf(r, 1, scale=s).sum()
        log_p += stats.gamma.logpdf(nu, 2, scale=10)
    return float(log_p)


@pytest.mark.parametrize("method", ["map", "mle"])
def test_student_t_is_scipys_optimum(method):
    clf = bg.StudentTNB(class_alpha=ALPHA).fit(X, Y, progressbar=False)
    prior = clf.fitted_.posterior.prior.family
    start = np.array([0.0, 2.0, 0.0, 0.0, 1.0])
    best = minimize(
        lambda u: -log_p_of_t(u, prior, method == "map"), start, method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000},
    ).x  # fmt: skip
    theta = clf.estimates(method)
    sigma = np.sqrt(np.exp(2 * best[2:4]) + prior.resolution[0] ** 2 / 12)
    np.testing.assert_allclose(theta["mu"].values[:, 0], best[:2], atol=1e-4)
    np.testing.assert_allclose(theta["sigma"].values[:, 0], sigma, rtol=1e-4)
    np.testing.assert_allclose(theta["nu"].values[0], np.exp(best[4]), rtol=1e-3)
    count = np.bincount(Y) + (ALPHA - 1 if method == "map" else 0)
    np.testing.assert_allclose(theta["pi"].values, count / count.sum(), rtol=1e-5)
    log_x = stats.t.logpdf(X, theta["nu"].values, theta["mu"].values.T, theta["sigma"].values.T)
    expected = log_softmax(log_x + np.log(theta["pi"].values), axis=1)
    np.testing.assert_allclose(clf.predict_log_proba(X, method), expected, atol=1e-9)


@pytest.mark.parametrize("method", ["map", "mle"])
def test_logistic_regression_is_scipys_optimum(method):
    clf = bg.BayesianLogisticRegression().fit(X, Y, progressbar=False)
    prior = clf.fitted_.posterior.prior.family
    z = (X[:, 0] - prior.location[0]) / prior.scale[0]

    def loss(u: np.ndarray) -> float:  # the log-odds of the second class, b + w z
        signs = np.where(Y == 1, 1.0, -1.0)
        log_p = -np.logaddexp(0, -signs * (u[0] + u[1] * z)).sum()
        if method == "map":  # of differences of two classes
            log_p += stats.norm.logpdf(u, 0, [prior.intercept_scale, prior.coef_scale]).sum()
        return -float(log_p)

    best = minimize(loss, np.zeros(2), tol=1e-12).x
    theta = clf.estimates(method)
    b, w = np.diff(theta["intercept"].values)[0], np.diff(theta["coef"].values[:, 0])[0]
    np.testing.assert_allclose([b, w], best, rtol=1e-4)
    np.testing.assert_allclose(theta["coef"].values.sum(axis=0), 0, atol=1e-12)


def test_bits_have_the_ratio_of_counts():
    bits = (RNG.random((N, 3)) < 0.3 + 0.4 * Y[:, None]).astype(float)
    bits[0, 0] = np.nan
    clf = bg.HierarchicalBernoulliNB().fit(bits, Y, progressbar=False)
    expected = [np.nanmean(bits[c == Y], axis=0) for c in range(2)]
    np.testing.assert_allclose(clf.estimates("mle")["theta"].values, expected)


def test_a_likelihood_without_bound_is_refused():
    """Separated classes: the log-odds grow for ever."""
    clf = bg.BayesianLogisticRegression().fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    with pytest.raises(UndefinedEstimateError, match="20 posterior standard deviations"):
        clf.estimates("mle")
    assert np.isfinite(clf.predict_proba([[3.0]], "map")).all()


def test_a_loaded_model_needs_the_rows(tmp_path):
    clf = bg.BayesianLogisticRegression().fit(X, Y, progressbar=False)
    clf.save(tmp_path / "m.nc")
    loaded = bg.load(tmp_path / "m.nc")
    with pytest.raises(UndefinedEstimateError, match=r"training=\(X, y\)"):
        loaded.predict_proba(X, "map")
    theta = loaded.estimates("map", training=(X, Y))
    xr.testing.assert_allclose(theta, clf.estimates("map"), rtol=1e-6)
    np.testing.assert_allclose(
        loaded.predict_proba(X, "map"), clf.predict_proba(X, "map"), rtol=1e-5
    )


def test_every_model_has_four_columns_or_a_reason():
    clf = bg.StudentTNB().fit(X, Y, progressbar=False)
    table = bg.compare_predictives(clf, X, Y)
    assert np.isfinite(table["log_loss"].values).all()
    notes = dict(zip(table["predictive"].values, table["note"].values, strict=True))
    assert notes["posterior_mean"] == ""
    assert notes["map"] == notes["mle"] == "local optimum from the posterior mean"
