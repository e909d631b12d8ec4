"""The strength of the prior, against refits; hyper-parameters from ranges, against quadrature."""

import numpy as np
import pytest
from scipy import integrate, special, stats
from sklearn.exceptions import NotFittedError

import bayesgen as bg

K = 2.0 ** np.linspace(-1, 1, 5)


def birds():
    X, y = bg.datasets.load_penguins()
    X = X[["bill_length_mm", "bill_depth_mm", "body_mass_g"]].dropna()
    y = y[X.index].to_numpy()
    few = np.concatenate([np.flatnonzero(y == c)[:4] for c in np.unique(y)])
    return X.to_numpy()[few], y[few], X.to_numpy()[::17]


def agrees(clf, name, refit, rows):
    """What is said of a hyper-parameter is what ``refit(k)`` says."""
    table = bg.prior_sensitivity(clf, rows)
    found = table.sel(hyperparameter=name)
    base = clf.predict_proba(rows)
    best = np.arange(len(rows)), base.argmax(axis=1)
    several = [refit(k).predict_proba(rows) for k in K]
    own = np.array([p[best] for p in several])
    assert found["range"].values[:, 0] == pytest.approx(own.min(axis=0), rel=1e-10)
    assert found["range"].values[:, 1] == pytest.approx(own.max(axis=0), rel=1e-10)
    moved = np.any([p.argmax(axis=1) != best[1] for p in several], axis=0)
    np.testing.assert_array_equal(found["changes"], moved)
    assert list(table["label"].values) == list(clf.classes_[best[1]])

    def log_odds(p):
        others = p.copy()
        others[best] = 0
        return np.log(p[best]) - np.log(others.sum(axis=1))

    h = 0.02
    up, down = (log_odds(refit(np.exp(s * h)).predict_proba(rows)) for s in (1, -1))
    assert found["sensitivity"].values == pytest.approx((up - down) / (2 * h), rel=1e-2, abs=1e-4)


def test_of_bits_it_is_a_refit():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (15, 4)), np.arange(15) % 3

    def fit(k=1.0, of_class=1.0):
        return bg.BernoulliNB(k * 1.0, k * 2.0, class_alpha=of_class).fit(X, y)

    rows = rng.integers(0, 2, (12, 4))
    agrees(fit(), "alpha, beta", fit, rows)
    agrees(fit(), "class_alpha", lambda k: fit(1.0, k), rows)
    agrees(fit(), "all", lambda k: fit(k, k), rows)


def test_of_reals_it_is_a_refit_at_the_same_centre_and_variance():
    X, y, rows = birds()
    start = bg.GaussianNB().fit(X, y).prior_.family
    known = {"mu0": start.mu + start.shift, "sigma2_0": start.sigma2}

    def fit(kappa=1.0, nu=1.0):
        return bg.GaussianNB(**known, kappa0=0.1 * kappa, nu0=3.0 * nu).fit(X, y)

    agrees(fit(), "kappa", fit, rows)
    agrees(fit(), "nu", lambda k: fit(1.0, k), rows)


@pytest.mark.parametrize("make", [bg.QuadraticDiscriminant, bg.LinearDiscriminant])
def test_of_covariances_it_is_a_refit_above_the_limit_of_the_degrees_of_freedom(make):
    X, y, rows = birds()
    psi = np.diag([5.0, 1.0, 1e5])

    def fit(k=1.0):
        nu = 2 + 3 * k
        return make(mu0=X.mean(axis=0), kappa0=0.1, nu0=nu, psi0=psi * nu / 5).fit(X, y)

    agrees(fit(), "nu", fit, rows)


def test_one_bit_by_hand():
    clf = bg.BernoulliNB(class_alpha=1.0).fit([[1], [1], [0]], ["a", "a", "b"])
    found = bg.prior_sensitivity(clf, [[1]]).isel(obs_id=0)

    # a: (k + 2)/(2k + 3) (k + 2)/(2k + 2); b: (k + 1)/(2k + 3) k/(2k + 1)
    def log_odds(k):
        return np.log((k + 2) ** 2 * (2 * k + 1) / ((2 * k + 2) * (k + 1) * k))

    slope = 2 / 3 - 2 / 4 - 1 / 2 - 1 + 2 / 3
    own = found.sel(hyperparameter="all")
    assert own["sensitivity"].item() == pytest.approx(slope, rel=1e-6)
    ends = sorted(special.expit([log_odds(0.5), log_odds(2.0)]))
    assert own["range"].values == pytest.approx(ends, rel=1e-12)


def test_blocks_of_a_mixed_table_are_apart_and_all_is_their_sum():
    X, y = bg.datasets.load_penguins()
    clf = bg.MixedNB().fit(X[::9], y[::9])
    found = bg.prior_sensitivity(clf, X[1:60:2])
    names = ["class_alpha", "categorical_alpha", "gaussian_kappa", "gaussian_nu", "all"]
    assert found["hyperparameter"].values.tolist() == names
    parts = found["sensitivity"].values
    assert parts[:, -1] == pytest.approx(parts[:, :-1].sum(axis=1), rel=1e-5, abs=1e-7)
    assert found["obs_id"].values.tolist() == X.index[1:60:2].tolist()


def test_draws_are_within_their_error():
    X, y, rows = birds()
    clf = bg.GaussianNB(nu0=8.0, kappa0=0.5).fit(X, y)
    exact = bg.prior_sensitivity(clf, rows)
    drawn = bg.prior_sensitivity(clf, rows, posterior=clf.draw_posterior(1000, 4, random_state=1))
    off = np.abs(drawn["range"] - exact["range"]).max("bound")
    assert (off < 5 * drawn["mcse"] + 1e-12).all()
    assert (drawn["weight_ess"] > 50).all()
    assert drawn["mcse"].max() < 0.05


def test_draws_that_carry_no_weight_are_named():
    X, y, rows = birds()
    clf = bg.QuadraticDiscriminant().fit(X, y)
    with pytest.warns(bg.MonteCarloWarning, match="too few for a prior of strength 0.5"):
        bg.prior_sensitivity(clf, rows, posterior=clf.draw_posterior(20, 1))


def test_what_has_no_strength_is_refused():
    X, y, rows = birds()
    with pytest.raises(TypeError, match="ask a member"):
        bg.prior_sensitivity(bg.LogLinearPool([bg.GaussianNB()]).fit(X, y), rows)
    logistic = bg.BayesianLogisticRegression(draws=10, tune=10, chains=1)
    with pytest.raises(NotFittedError):
        bg.prior_sensitivity(logistic, rows)


def test_a_prior_that_is_not_conjugate_is_refused(monkeypatch):
    X, y, rows = birds()
    clf = bg.GaussianNB().fit(X, y)
    monkeypatch.setattr(type(clf.prior_.family), "conjugate", False)
    with pytest.raises(NotImplementedError, match="no conjugate prior"):
        bg.prior_sensitivity(clf, rows)


@pytest.mark.parametrize("prob", [0.5, 0.95])
def test_a_cell_to_come_is_in_the_range_of_a_gaussian_column(prob):
    found = bg.prior_from_range({"x": (30, 50)}, prob=prob, kappa0=0.4, nu0=5.0)
    frame = bg.datasets.load_penguins()[0][["bill_length_mm"]].dropna()[:20]
    frame = frame.set_axis(["x"], axis=1)
    prior = bg.GaussianNB(**found).fit(frame, np.arange(20) % 2).prior_.family

    def density(v):
        return float(np.exp(prior.log_predictive(np.array([[v]]))[0, 0]))

    assert integrate.quad(density, 30, 50)[0] == pytest.approx(prob, rel=1e-6)
    assert integrate.quad(density, -np.inf, 30)[0] == pytest.approx((1 - prob) / 2, rel=1e-5)


@pytest.mark.parametrize("ends", [(0.05, 0.2), (0.5, 0.99), (0.001, 0.9)])
def test_shares_of_bits_are_in_their_range(ends):
    found = bg.prior_from_range(ends, "bernoulli")
    low, high = stats.beta.cdf(ends, found["alpha"], found["beta"])
    assert (low, high) == pytest.approx((0.025, 0.975), abs=1e-9)


@pytest.mark.parametrize("ends", [(2, 20), (100, 101), (0.01, 50)])
def test_rates_of_counts_are_in_their_range(ends):
    found = bg.prior_from_range(ends, "poisson", prob=0.8)
    low, high = stats.gamma.cdf(ends, found["shape"], scale=1 / found["rate"])
    assert (low, high) == pytest.approx((0.1, 0.9), abs=1e-8)


def test_ranges_that_are_none_are_refused():
    for given, kind in (((5, 3), "gaussian"), ((0, 3), "poisson"), ((0.2, 1.0), "bernoulli")):
        with pytest.raises(ValueError, match="two rising numbers"):
            bg.prior_from_range(given, kind)
    with pytest.raises(ValueError, match="kind"):
        bg.prior_from_range((1, 2), "normal")
    with pytest.raises(ValueError, match="prob must be"):
        bg.prior_from_range((1, 2), prob=1)
