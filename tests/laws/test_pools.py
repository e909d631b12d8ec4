"""Every kind of pool, and a model beside them: answers agree, however rows come and are kept."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from scipy import sparse
from scipy.special import entr, log_softmax, softmax
from sklearn.base import clone
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.posterior.interface import DrawRequest, weights_of_draws
from tests.drawn import draw_few_exponents

PENGUINS, SPECIES = (table[::8].reset_index(drop=True) for table in bg.datasets.load_penguins())
NUMBERS = PENGUINS.select_dtypes("number").fillna(0).to_numpy()
Y = np.arange(40) % 2
RNG = np.random.default_rng(6)
WORDS = [" ".join(RNG.choice(["cat", "dog", "sat", "cat" if c else "ran"], 5)) for c in Y]
TEXTS = np.array(["".join(RNG.choice(list("abcd" + "aabb"[2 * c :]), 9)) for c in Y], dtype=object)
COUNTS = sparse.csr_matrix(RNG.poisson(0.3 + 0.5 * (Y[:, None] == np.arange(12) % 2)))
WITH_TEXT = pd.DataFrame({"x": RNG.normal(size=40) + Y, "text": WORDS, "kind": list("uvwu") * 10})
UNLABELLED = SPECIES.where(np.arange(len(SPECIES)) % 5 > 0, None)
TWO = bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()])
GROUPS = {
    "groups": np.arange(len(SPECIES)) // 3,
    "sample_weight": np.linspace(0.5, 2, len(SPECIES)),
}
KINDS = {  # classifier, rows, labels, options of fit
    "a model": (bg.GaussianNB(), NUMBERS, SPECIES, {}),
    "two members": (TWO, NUMBERS, SPECIES, {}),
    "one member": (bg.LogLinearPool([bg.GaussianNB()]), NUMBERS, SPECIES, {}),
    "groups": (bg.LogLinearPool([bg.MixedNB()]), PENGUINS, SPECIES, GROUPS),
    "table": (bg.LogLinearPool(), PENGUINS, UNLABELLED, {"unlabelled": "ignore"}),
    "table with texts": (bg.LogLinearPool(), WITH_TEXT, Y, {}),
    "counts": (bg.LogLinearPool([bg.MultinomialNB(), bg.PoissonNB()]), COUNTS, Y, {}),
    "texts": (bg.LogLinearPool([bg.MarkovNB(1), bg.MarkovNB(2)]), TEXTS, Y, {}),
}


@pytest.fixture(scope="module", autouse=True)
def few_draws_of_exponents():
    with pytest.MonkeyPatch.context() as patch:
        draw_few_exponents(patch)
        yield


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def each(request):
    """A fit, its rows, labels and options."""
    clf, X, y, options = request.param
    return clf.fit(X, y, **options), X, y, options


def test_the_three_answers_agree(each):
    clf, X, *_ = each
    rows = take(X, np.arange(6))
    table = clf.predict_interval(rows, 0.8, "eti")
    np.testing.assert_allclose(table["predictive"], clf.predict_proba(rows), rtol=1e-12)
    rho = clf.predict_posterior(rows)["predictions/class_probability"].values[0]
    ends = np.moveaxis(np.percentile(rho, [10, 90], axis=0), 0, -1)
    np.testing.assert_allclose(table["interval"], ends, atol=0.01)
    entropies = clf.predict_uncertainty(rows)
    np.testing.assert_allclose(entropies["mean"], rho.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(entropies["sd"], rho.std(axis=0), rtol=1e-9, atol=1e-12)
    aleatoric = entr(rho).sum(axis=-1).mean(axis=0)
    np.testing.assert_allclose(entropies["aleatoric"], aleatoric, rtol=1e-9)
    alone = clf.predict_interval(take(rows, [3]), 0.8, "eti")["interval"]
    np.testing.assert_allclose(alone, table["interval"][3:4], rtol=1e-9, atol=1e-9)


def test_files_and_pickles_hold_it_with_its_training_rows(each, tmp_path):
    clf, X, *_ = each
    clf.save(tmp_path / "pool.nc")
    rows = take(X, np.arange(4))
    ends = clf.predict_interval(rows, draws=10)["interval"].values
    for again in (bg.load(tmp_path / "pool.nc"), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(again.predict_interval(rows, draws=10)["interval"], ends)
        np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), rtol=1e-12)
        if isinstance(clf, bg.LogLinearPool):
            assert repr(again.summary()) == repr(clf.summary())


def test_terms_of_the_columns_add_up_to_the_log_odds(each):
    clf, X, *_ = each
    table = clf.explain(take(X, np.arange(9)), classes=clf.classes_[[1, 0]])
    log_p = clf.predict_log_proba(take(X, np.arange(9)))
    odds = log_p[:, 1] - log_p[:, 0]
    np.testing.assert_allclose(table["predictive_log_odds"], odds, rtol=1e-6, atol=1e-9)
    terms = table["predictive"].sum("feature") + table.get("rest", 0.0)
    np.testing.assert_allclose(terms + table["predictive_intercept"], odds, rtol=0, atol=1e-9)


def test_another_class_prior_replaces_the_one_of_training(each):
    clf, X, y, options = each
    if isinstance(clf, bg.LogLinearPool) and "sample_weight" not in options:
        n = pd.Series(y).value_counts().sort_index().to_numpy()
        weights = np.arange(1.0, len(n) + 1) / np.arange(1.0, len(n) + 1).sum()
        expected = clf.predict_log_proba(X) - np.log(n + 1) + np.log(weights)
        shifted = clf.predict_log_proba(X, class_prior=weights)
        np.testing.assert_allclose(shifted, log_softmax(expected, axis=1), atol=1e-12)


def in_dask(X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(10, 3))


def in_xarray(X):
    columns = {"feature": [f"x{j}" for j in range(X.shape[1])]}
    return xr.DataArray(X, columns, ("penguin", "feature"))


@pytest.mark.parametrize(
    ("kind", "container"),
    [
        ("groups", pl.from_pandas),
        ("table with texts", pl.from_pandas),
        ("two members", in_xarray),
        ("two members", in_dask),
    ],
)
def test_rows_may_be_of_any_library(kind, container):
    clf, X, y, options = KINDS[kind]
    clf, other = (clone(clf).fit(rows, y, **options) for rows in (X, container(X)))
    for method in ("predict_interval", "predict_set", "explain"):
        results = getattr(other, method)(container(X)[:5])
        for name, values in getattr(clf, method)(X[:5]).data_vars.items():
            np.testing.assert_array_equal(results[name].values, values.values)
    if not options:
        assert other.loo(container(X), y).elpd == pytest.approx(clf.loo(X, y).elpd)


def test_rows_in_parts_are_one_fit(each):
    clf, X, y, options = each
    if isinstance(clf, bg.LogLinearPool) and not options:
        halves = (np.arange(0, 20), np.arange(20, len(y)))
        parts = [(take(X, rows), take(y, rows)) for rows in halves]
        in_parts = bg.fit_stream(bg.LogLinearPool(clf.members), parts)
        np.testing.assert_allclose(in_parts.predict_proba(X), clf.predict_proba(X), rtol=1e-9)


@pytest.fixture(scope="module")
def pool():
    return TWO.fit(NUMBERS, SPECIES)


def test_what_a_pool_cannot_have_is_absent_with_the_reason(pool):
    for name in ("score_samples", "simulate", "partial_fit", "stats_", "model_", "log_evidence_"):
        assert not hasattr(pool, name)
    with pytest.raises(AttributeError, match="simulate needs a density of x, and LogLinearPool"):
        pool.simulate(3)
    for ask in (pool.linear_form, pool.draw_posterior, lambda: pool.merge(pool)):
        with pytest.raises(ValueError, match="LogLinear has n"):
            ask()
    with pytest.raises(NotImplementedError, match="ask a member"):
        pool.posterior_groups(NUMBERS, SPECIES)
    without_rows = bg.LogLinearPool(pool.members).fit(NUMBERS, SPECIES)
    without_rows.fitted_ = without_rows.fitted_.with_training(rows=None)  # they take over 64 MiB
    with pytest.raises(ValueError, match=r"pass training=\(X, y\)"):
        without_rows.predict_interval(NUMBERS)
    ends = without_rows.predict_interval(NUMBERS, training=(NUMBERS, SPECIES))["interval"]
    np.testing.assert_allclose(ends, pool.predict_interval(NUMBERS)["interval"], atol=1e-9)


# ------------------------------------------------------------------------- draws of the members


def test_draws_of_one_member_are_of_its_densities():
    """By hand: each draw has one theta of a member fitted to randomly weighted rows."""
    X, y, new = NUMBERS[:, :3], np.arange(len(NUMBERS)) % 2, NUMBERS[:5, :3]
    clf = bg.LogLinearPool([bg.GaussianNB()]).fit(X, y)
    posterior = clf.fitted_.posterior
    rows, new_rows = (clf.fitted_.reader.read(table).encoded for table in (X, new))
    training = (rows, y, np.ones(len(y)))
    drawn = posterior.log_joint_draws(new_rows, DrawRequest(100, 0, training=lambda: training))
    rho = np.concatenate([softmax(joint[0], axis=2) for _, joint in drawn.blocks], axis=1)
    member = posterior.members[0].fitted.posterior
    fits = list(member.random_fits(100, 0, lambda: (X, y, np.ones(len(y)))))
    log_pi = np.log([1 + weight @ np.eye(2)[y] for weight in weights_of_draws(100, 0, len(y))])
    which = np.random.default_rng(0).permutation(np.arange(100) % posterior.n_draws)
    eta, b = (values[which] for values in posterior.exponents.flat)
    log_x = np.concatenate([fit.draw_log_density(s, new, 1) for s, fit in enumerate(fits)])
    logit = eta[:, :, None] * log_x + (log_pi + b)[:, None]
    np.testing.assert_allclose(rho, softmax(logit, axis=2), rtol=1e-9)


@pytest.mark.parametrize("estimator", [bg.GaussianNB, bg.QuadraticDiscriminant, bg.MetaTreeForest])
def test_a_fit_of_the_same_weights_is_the_same_fit(estimator):
    weight = np.random.default_rng(7).gamma(2.0, 0.5, len(SPECIES))
    options = {} if estimator is bg.MetaTreeForest else {"prior": "default"}
    clf = estimator(**options).fit(NUMBERS, SPECIES, sample_weight=weight)
    posterior, codes = clf.fitted_.posterior, clf.fitted_.codes_of(SPECIES)
    again = next(posterior.prior.family.refits(NUMBERS, codes, 3, weight, [weight]))
    expected = posterior.model.family.log_predictive(NUMBERS)
    np.testing.assert_allclose(again.log_predictive(NUMBERS), expected, rtol=1e-9)


def test_row_weights_have_mean_1_and_variance_four_thirds():
    weights = weights_of_draws(500, 8, 400)
    assert weights.mean() == pytest.approx(1.0, abs=5 * np.sqrt(4 / 3 / weights.size))
    assert weights.var() == pytest.approx(4 / 3, rel=0.05)
