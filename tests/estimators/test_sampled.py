"""Every classifier without a closed form has the methods of all others.

NUTS is replaced by draws from the prior: what is asked here does not depend on how good the draws
are, and nothing is compiled. That NUTS is right is asked in laws/test_recovery.
"""

import copy
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone

import bayesgen as bg
from bayesgen.estimators import ESTIMATORS
from bayesgen.estimators.sampled import SampledClassifier
from bayesgen.families.errors import NoClosedFormError
from bayesgen.inference import nuts
from bayesgen.inference.nuts import Diagnosis
from tests.selection import checks_of_a_fit

RNG = np.random.default_rng(6)
N = 24
Y = np.array(list("abc") * (N // 3))
SHIFT = np.array([0.0, 2.0, 1.0])[np.arange(N) % 3]
REALS = RNG.normal(size=(N, 3)) + SHIFT[:, None]
COUNTS = RNG.poisson(np.exp(REALS / 2))
ROWS = {  # what each estimator is fitted to; a new one is given its row here
    bg.BayesianLogisticRegression: REALS,
    bg.HierarchicalBernoulliNB: (REALS > 1).astype(int),
    bg.MixtureDiscriminant: REALS,
    bg.NegativeBinomialNB: COUNTS,
    bg.StudentTNB: REALS,
}
FEW = {"draws": 30, "tune": 1, "chains": 2, "random_state": 4}
SOUND = Diagnosis(0, 1.0, "pi", 1e4, "pi", 2)


def draws_of_the_prior(model: Any, draws: int, chains: int, random_state: Any, **_: Any) -> Any:
    """In place of NUTS."""
    names = [v.name for v in (*model.free_RVs, *model.deterministics)]
    names = [k for k in names if k in model.named_vars_to_dims]
    theta = nuts.draw_prior(model, names, chains * draws, random_state)
    variables = {
        k: (("chain", "draw", *model.named_vars_to_dims[k]), v.reshape(chains, draws, *v.shape[1:]))
        for k, v in theta.items()
    }
    used = {d for dims, _ in variables.values() for d in dims}
    coords = {k: list(v) for k, v in model.coords.items() if k in used and v is not None}
    none = np.zeros((chains, draws), dtype=bool)
    return xr.Dataset(variables, coords), xr.Dataset({"diverging": (("chain", "draw"), none)})


@pytest.fixture(autouse=True)
def prior_for_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nuts, "sample", draws_of_the_prior)
    monkeypatch.setattr("bayesgen.inference.nuts.warn_unless_sound", lambda *_, **__: SOUND)


@cache
def fitted(estimator: Any) -> Any:
    """Return a classifier that is fitted once for all tests."""
    return estimator(**FEW).fit(ROWS[estimator], Y, progressbar=False)


pytestmark = pytest.mark.filterwarnings("ignore::bayesgen.posterior.drawn.MonteCarloWarning")


@pytest.fixture(params=[e for e in ESTIMATORS if issubclass(e, SampledClassifier)])
def each(request):
    """A classifier and its rows."""
    return copy.copy(fitted(request.param)), ROWS[request.param]


def test_predictions(each):
    clf, X = each
    p = clf.predict_proba(X)
    assert p.shape == (N, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    intervals = clf.predict_interval(X, prob=0.8)
    assert intervals["interval"].shape == (N, 3, 2)
    np.testing.assert_allclose(intervals["predictive"], p)
    table = clf.predict_uncertainty(X)
    np.testing.assert_allclose(table["total"], table["aleatoric"] + table["epistemic"])
    rho = clf.predict_posterior(X[:5])["predictions"]["class_probability"]
    assert rho.shape == (2, 30, 5, 3)
    plug_in = clf.predict_proba(X, method="posterior_mean")
    np.testing.assert_allclose(plug_in.sum(axis=1), 1, rtol=1e-12)


def test_summary(each):
    clf, _ = each
    summary = clf.summary()
    text = str(summary)
    assert text.startswith(f"{type(clf).__name__}, sampled by NUTS: 24 rows")
    assert "Log evidence" not in text
    assert np.isnan(summary.table.attrs["log_evidence"])
    assert " nan" not in text
    assert "Rows: a (8), b (8), c (8)." in text or clf.prior_.family.discriminative


def test_report():
    clf, X = copy.copy(fitted(bg.HierarchicalBernoulliNB)), ROWS[bg.HierarchicalBernoulliNB]
    report = bg.report(clf, X, Y, training=(X, Y))
    keys = [section.key for section in report.sections]
    assert {"verdict", "doubts", "sampling"} <= set(keys)
    assert report.sections[keys.index("sampling")].data["divergences"] == 0
    assert len(report.to_html()) < 300_000


def test_contributions_add_up(each):
    clf, X = each
    table = clf.explain(X[:4])
    total = table["predictive"].sum("feature") + table["predictive_intercept"]
    total = total + table.get("rest", 0.0)
    np.testing.assert_allclose(total, table["predictive_log_odds"], rtol=0, atol=1e-9)
    assert np.isfinite(table["predictive"]).all()


def test_new_rows_come_from_a_density_of_rows(each):
    clf, X = each
    if clf.prior_.family.discriminative:
        for name in ("simulate", "score_samples", "typicality"):
            assert not hasattr(clf, name)
        assert clf.predict_set(X, training=(X, Y))["included"].shape == (N, 3)
        return
    rows, labels = clf.simulate(7, random_state=1)
    assert (len(rows), len(labels)) == (7, 7)
    assert np.isfinite(clf.score_samples(X)).all()
    model = clf.to_pymc(X[:5], Y[:5], likelihood="rows")
    assert [v.name for v in model.observed_RVs] == ["label", "x"]
    assert model.named_vars_to_dims["x"] == ("obs_id", "feature")


def test_a_file_holds_it(each, tmp_path):
    clf, X = each
    clf.save(tmp_path / "m.nc")
    again = bg.load(tmp_path / "m.nc")
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.posterior_.attrs["route"] == "nuts"
    assert again.get_params() == clf.get_params()


def test_groups_for_arviz(each):
    clf, X = each
    groups = clf.posterior_groups(X, Y, ["log_likelihood", "posterior_predictive", "prior"])
    assert groups["log_likelihood"]["label"].shape == (2, 30, N)
    assert ("joint" in groups["log_likelihood"]) != clf.prior_.family.discriminative
    assert set(groups["prior"].data_vars) == set(clf.prior_.params)
    with pytest.raises(ValueError, match=r"log_prior of .* is known to PyMC alone"):
        clf.posterior_groups(X, Y, ["log_prior"])


def test_what_needs_a_closed_form_says_so(each):
    clf, X = each
    for use in (
        lambda: clf.log_evidence_,
        lambda: clf.merge(clf),
        clf.linear_form,
        clf.draw_posterior,
        clf.sample_posterior,
    ):
        with pytest.raises(NoClosedFormError):
            use()
    assert not hasattr(clf, "partial_fit")
    with pytest.raises(NoClosedFormError, match=r"call to_pymc\(X, y\)"):
        clf.to_pymc()
    assert "label" in clf.to_pymc(X, Y).named_vars


def test_weights_are_taken_and_counts_may_be_float32():
    weight = np.linspace(0.5, 2, N)
    one, other = (
        bg.NegativeBinomialNB(**FEW).fit(rows, Y, sample_weight=weight, progressbar=False)
        for rows in (COUNTS.astype(np.float32), COUNTS)
    )
    np.testing.assert_allclose(one.predict_proba(COUNTS), other.predict_proba(COUNTS), rtol=1e-6)


def test_a_regression_names_the_column_of_a_missing_cell():
    X = pd.DataFrame(REALS, columns=["age", "height", "weight"])
    clf = bg.BayesianLogisticRegression(**FEW).fit(X, Y, progressbar=False)
    X.loc[4, "height"] = np.nan
    for ask in (clf.predict, lambda X: clone(clf).fit(X, Y)):
        with pytest.raises(ValueError, match=r"NaN: column 'height' in row 4; p\(y \| x\) says"):
            ask(X)


def test_a_prior_object_is_asked_for_when_a_file_is_read(tmp_path):
    import pymc as pm

    def prior(name: str, dims: Any) -> Any:
        return pm.Gamma(name, 3.0, 0.3, dims=dims)

    clf = bg.StudentTNB(nu=prior, **FEW).fit(REALS, Y, progressbar=False)
    clf.save(tmp_path / "m.nc")
    with pytest.raises(ValueError, match=r"saved with nu=\.\.\., which a file cannot hold"):
        bg.load(tmp_path / "m.nc")
    again = bg.load(tmp_path / "m.nc", nu=prior)
    assert again.prior_.family.nu is prior


# ------------------------------------------------------------------------ scikit-learn's checks


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("clf", "check"),
    checks_of_a_fit(
        # a model of the columns, and one of the labels alone
        estimator(draws=20, tune=1, chains=1, random_state=0)
        for estimator in (bg.StudentTNB, bg.BayesianLogisticRegression)
    ),
)
def test_scikit_learn(clf, check):
    check(clf)
