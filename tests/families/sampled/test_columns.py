"""Sampled columns of `MixedNB` beside columns in closed form."""

import numpy as np
import pandas as pd
import pytest
from arviz_stats.base import array_stats
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import log_softmax, logsumexp

import bayesgen as bg
from bayesgen.families.errors import NoClosedFormError

pytestmark = [
    pytest.mark.slow,  # 20 s of compilation
    # of few draws
    pytest.mark.filterwarnings("ignore::bayesgen.inference.nuts.SamplingWarning"),
    pytest.mark.filterwarnings("ignore::bayesgen.posterior.drawn.MonteCarloWarning"),
]
KINDS = {"student_t": ["t"], "negative_binomial": ["c"]}
FEW = {"draws": 60, "tune": 100, "chains": 2, "random_state": 1, "progressbar": False}
N = 48


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    columns = {
        "g": rng.normal(y, 1),
        "k": rng.choice(list("ab"), N),
        "t": rng.standard_t(3, N) + y,
        "c": rng.negative_binomial(2, 0.3, N) + y,
    }
    X = pd.DataFrame(columns)
    X.loc[3, "t"], X.loc[4, "k"] = np.nan, None
    return X, y


@pytest.fixture(scope="module")
def clf(rows):
    return bg.MixedNB(columns=KINDS).fit(*rows, **FEW)


def drawn(clf, name):
    values = clf.posterior_["posterior"][name].values
    return values.reshape(-1, *values.shape[2:])


def test_closed_columns_are_integrated_and_the_others_averaged(clf, rows):
    X, y = rows
    closed = bg.MixedNB().fit(X[["g", "k"]], y).predict_log_proba(X[["g", "k"]])
    mu, sigma, nu = (drawn(clf, f"student_t_{k}") for k in ("mu", "sigma", "nu"))
    t, c = X["t"].to_numpy()[:, None], X["c"].to_numpy()[:, None]
    log_t = stats.t.logpdf(t, nu[:, None], mu[:, None, :, 0], sigma[:, None, :, 0])
    rate, delta = (drawn(clf, f"negative_binomial_{k}") for k in ("mu", "delta"))
    log_c = stats.nbinom.logpmf(c, rate[:, None, :, 0] / delta[:, None], 1 / (1 + delta[:, None]))
    joint = closed + logsumexp(np.where(np.isnan(t), 0.0, log_t) + log_c, axis=0)
    assert_allclose(clf.predict_log_proba(X), log_softmax(joint, axis=1), atol=1e-10)


def test_closed_columns_are_drawn_from_their_posterior(clf, rows):
    X, y = rows
    of_closed = bg.MixedNB().fit(X[["g", "k"]], y).fitted_.family
    mean = of_closed.mean()
    for name in ("gaussian_mu", "categorical_theta"):
        values = drawn(clf, name)
        error = values.std(axis=0) / np.sqrt(len(values))
        assert np.all(np.abs(values.mean(axis=0) - mean[name]) < 4.5 * error)
    ends = clf.predict_interval(X[:5])["interval"].values
    assert np.all(ends[..., 0] < ends[..., 1])


def test_save_and_load(clf, rows, tmp_path):
    X, _ = rows
    clf.save(tmp_path / "m.nc")
    again = bg.load(tmp_path / "m.nc")
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.predict_interval(X[:3]).equals(clf.predict_interval(X[:3]))


def test_pictures_along_a_column_hold_what_its_kind_holds(clf, rows):
    """A grid of reals around a column of counts would begin below 0, which it refuses."""
    X, y = rows
    own = {ax.get_title(loc="left"): ax for ax in bg.plots.plot_effects(clf, X, y)}
    assert own.keys() == {*X.columns}
    assert_array_equal(own["c"].lines[3].get_xdata(), np.arange(X["c"].min(), X["c"].max() + 1))


def test_what_needs_closed_forms_is_refused(clf, rows):
    X, y = rows
    assert not hasattr(clf, "partial_fit")
    with pytest.raises(NoClosedFormError):
        clf.log_evidence_  # noqa: B018
    some = np.where(np.arange(N) < 6, -1, y)
    with pytest.raises(NoClosedFormError, match="unlabelled='ignore'"):
        bg.MixedNB(columns=KINDS).fit(X, some, **FEW)
    with pytest.raises(ValueError, match="must not be negative"):
        bg.MixedNB(columns=KINDS).fit(X.assign(c=-1), y, **FEW)


def test_draws_of_the_user_s_are_taken_for_all_columns(clf, rows):
    X, y = rows
    shifted = clf.posterior_.copy()
    own = shifted["posterior"].to_dataset()
    shifted["posterior"] = own.assign(gaussian_mu=own["gaussian_mu"] + [[5.0], [-5.0]])
    found = bg.MixedNB(columns=KINDS).with_posterior(shifted, X=X, y=y)
    assert np.abs(found.predict_proba(X) - clf.predict_proba(X)).max() > 0.1


def test_the_graph_has_all_columns(clf, rows):
    names = clf.to_pymc(*rows, likelihood="rows").named_vars
    assert {"gaussian_mu", "categorical_theta", "student_t_mu", "negative_binomial_mu"} <= {*names}


def test_against_nuts_of_the_whole_graph(rows):
    import pymc as pm

    X, y = rows
    options = {"draws": 2000, "tune": 1000, "chains": 2, "random_state": 3, "progressbar": False}
    clf = bg.MixedNB(columns=KINDS).fit(X, y, **options)
    with clf.to_pymc(X, y):
        whole = pm.sample(
            draws=2000, tune=1000, chains=2, random_seed=4, nuts_sampler="nutpie", progressbar=False
        )
    others = bg.MixedNB(columns=KINDS).with_posterior(whole, X=X, y=y)
    for name in ("student_t_mu", "student_t_sigma", "negative_binomial_mu", "gaussian_mu"):
        a, b = (one.posterior_["posterior"][name].values for one in (clf, others))
        error = np.hypot(*(array_stats.mcse(v, chain_axis=0, draw_axis=1) for v in (a, b)))
        assert np.all(np.abs(a.mean(axis=(0, 1)) - b.mean(axis=(0, 1))) < 4.5 * error), name
    a, b = clf.predict_monte_carlo(X), others.predict_monte_carlo(X)  # here all columns are drawn
    error = np.hypot(a["mcse"], b["mcse"])
    assert np.all(np.abs(a["probability"] - b["probability"]) < 5 * error)
    assert float(a["mcse"].mean()) < float(b["mcse"].mean())
