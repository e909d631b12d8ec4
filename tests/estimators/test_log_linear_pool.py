"""Pools: definition, routes, refusals, files."""

import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from arviz_stats.base import array_stats
from scipy import sparse
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB as PlugInNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayesgen as bg
from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.suspects import ColumnWarning
from bayesgen.encoding.tables import Table
from bayesgen.inference.exponents import sample
from bayesgen.posterior.pooled import Evidence, LogLinear, MemberRows, comparable
from tests.drawn import drawn
from tests.inference.test_exponents import log_posterior, logits

WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
LEAVES_WHOLE = "a row of weight 2 leaves whole, and of two equal rows one stays: exponents differ"
FULL = (
    "missing cells are refused in fit and marginalised in predict, which the check does not foresee"
)
few_exponents = pytest.mark.usefixtures("few_exponents")


def expected_failures(pool):
    if pool.members == "auto":
        return dict.fromkeys((WEIGHTS, WEIGHTS.replace("dense", "sparse")), LEAVES_WHOLE)
    return {WEIGHTS: LEAVES_WHOLE, "check_estimators_nan_inf": FULL}


@parametrize_with_checks(
    [bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()])],
    expected_failed_checks=expected_failures,
)
@few_exponents
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([bg.LogLinearPool()], expected_failed_checks=expected_failures)
def test_scikit_learn_of_members_for_the_columns(estimator, check):
    check(estimator)


@few_exponents
def test_definition(iris):
    X, y = iris
    members = [bg.GaussianNB(), bg.QuadraticDiscriminant()]
    pool = bg.LogLinearPool(members).fit(X, y)
    fits = [m.fit(X, y) for m in members]
    others = np.full((150, 3), 51.0)  # rows of each class, and a pseudo-count
    others[np.arange(150), y] -= 1
    log_pi = np.log(others / 152)
    scores = comparable(np.stack([f.loo_log_joint(X, y) - log_pi for f in fits]))
    found = sample(Evidence(scores, log_pi, np.ones(150)), y, np.ones(150), LogLinear(0.5))
    np.testing.assert_allclose(pool.exponents_, found.exponents.mean(axis=(0, 1)))
    densities = [f.predict_joint_log_proba(X) - np.log(1 / 3) for f in fits]
    draws = np.einsum("cdm,mnk->cdnk", found.exponents, densities) + found.intercepts[:, :, None]
    p = np.exp(log_softmax(draws, axis=-1)).mean(axis=(0, 1))
    np.testing.assert_allclose(pool.predict_proba(X), p, atol=1e-9)
    assert set(pool.members_) == {"GaussianNB", "QuadraticDiscriminant"}


def test_one_member_is_calibrated():
    X, y = load_breast_cancer(return_X_y=True)
    train = np.arange(len(y)) % 3 != 2
    plain = bg.GaussianNB().fit(X[train], y[train])
    pool = bg.LogLinearPool([bg.GaussianNB()]).fit(X[train], y[train])
    test = np.flatnonzero(~train)

    def loss(clf):
        return -clf.predict_log_proba(X[test])[np.arange(len(test)), y[test]].mean()

    assert pool.exponents_[0] < 0.2
    assert loss(pool) < 0.35 * loss(plain)
    assert "overconfident" in repr(pool.summary())


@few_exponents
def test_class_prior_does_not_depend_on_the_order_of_members(penguins):
    X, y = penguins
    members = [("discriminative", bg.MetaTreeForest(20)), ("columns", bg.MixedNB())]
    weights = {"Adelie": 0.1, "Chinstrap": 0.6, "Gentoo": 0.3}
    trained = np.log((y.value_counts().sort_index().to_numpy() + 1) / (len(y) + 3))
    for given in (members, members[::-1]):
        pool = bg.LogLinearPool(given).fit(X, y)
        shifted = pool.predict_log_proba(X, class_prior=weights)
        expected = pool.predict_log_proba(X) - trained + np.log(list(weights.values()))
        np.testing.assert_allclose(shifted, log_softmax(expected, axis=1), atol=1e-12)


def rare_rows(rng, n, share):
    """Rows of a rare class that two dependent columns tell, and a third a little."""
    y = (np.arange(n) < share * n).astype(int)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 3 * y
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    X[:, 2] += 0.5 * y
    return pd.DataFrame(X, columns=list("abcd")), y


def test_rows_that_lack_the_strong_columns_are_calibrated():
    """Exponents temper the evidence and not the class weights."""
    rng = np.random.default_rng(0)
    X, y = rare_rows(rng, 1000, 0.03)
    new, truth = rare_rows(rng, 4000, 0.03)
    pool = bg.LogLinearPool().fit(X, y)
    weak = new.assign(a=np.nan, b=np.nan)
    p = pool.predict_proba(weak)[:, 1]
    assert 0.02 < p.mean() < 0.045

    def loss(p):
        return -np.log(np.where(truth == 1, p, 1 - p)).mean()

    assert loss(p) < 1.01 * loss(truth.mean())
    empty = pool.predict_proba(new.iloc[:1] * np.nan)
    np.testing.assert_allclose(empty, [[971 / 1002, 31 / 1002]], rtol=1e-12)
    X.loc[::7, "a"] = np.nan
    again = bg.LogLinearPool().fit(X, y).predict_proba(new.iloc[:1] * np.nan)
    np.testing.assert_allclose(again, empty, rtol=1e-12)


@few_exponents
def test_texts_without_a_known_token_have_the_class_frequencies():
    texts = ["cheap pills now"] * 3 + ["see you at noon", "lunch at noon", "see you then"] * 9
    pool = bg.LogLinearPool().fit(texts, ["spam"] * 3 + ["ham"] * 27)
    p = pool.predict_proba(["", "  ", "\u041f\u0440\u0438\u0432\u0435\u0442"])
    np.testing.assert_allclose(p[[0, 2]], [[28 / 32, 4 / 32]] * 2, rtol=1e-12)


def test_intervals_hold_parameters_and_exponents(penguins):
    X, y = penguins
    X = X[["bill_length_mm", "sex"]]
    one = bg.MixedNB().fit(X, y).predict_interval(X[:40], prob=0.9, kind="eti")
    single = bg.LogLinearPool([bg.MixedNB()]).fit(X, y)
    both = single.predict_interval(X[:40], prob=0.9, kind="eti")
    wider = both["log_odds"].diff("bound").mean() / one["log_odds"].diff("bound").mean()
    assert 0.7 < float(wider) < 2.5  # the exponent is about 1 and uncertain
    entropy = single.predict_uncertainty(X[:40], unit="bits")
    assert (entropy["epistemic"] > -1e-9).all()


@few_exponents
def test_explanation_adds_up(penguins):
    X, y = penguins
    for members in ("auto", [bg.MixedNB()]):
        pool = bg.LogLinearPool(members).fit(X, y)
        table = pool.explain(X[:20], classes=("Gentoo", "Adelie"))
        log_p = pool.predict_log_proba(X[:20])
        odds = log_p[:, 2] - log_p[:, 0]
        np.testing.assert_allclose(table["predictive_log_odds"], odds, rtol=1e-6)
        total = table["predictive"].sum("feature") + table["predictive_intercept"]
        np.testing.assert_allclose(total, odds, rtol=0, atol=1e-9)
        assert list(table["feature"].values) == list(X.columns)


@few_exponents
def test_files(penguins, tmp_path):
    X, y = (of_all[::3] for of_all in penguins)
    pool = bg.LogLinearPool().fit(X, y)
    pool.save(tmp_path / "pool.nc")
    again = bg.load(tmp_path / "pool.nc")
    np.testing.assert_array_equal(again.predict_proba(X), pool.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), pool.predict(X))
    assert repr(again.summary()) == repr(pool.summary())
    expected = pool.predict_interval(X[:3])["interval"]
    found = again.predict_interval(X[:3], training=(X, y))["interval"]
    np.testing.assert_allclose(found, expected)
    with pytest.raises(ValueError, match="holds no rows"):
        again.to_pymc()
    found, known = (
        p.to_pymc(*given)["score"].get_value() for p, given in ((again, (X, y)), (pool, ()))
    )
    np.testing.assert_allclose(found, known, atol=1e-9)


def test_pipelines_and_names(iris):
    X, y = iris
    pool = bg.LogLinearPool(
        [("scaled", make_pipeline(StandardScaler(), bg.GaussianNB())), bg.GaussianNB()]
    ).fit(X, y)
    assert list(pool.members_) == ["scaled", "GaussianNB"]
    rows = pool.fitted_.read(X).encoded
    a, b = (rows.log_joint(m) for m in pool.fitted_.posterior.members)
    np.testing.assert_allclose(log_softmax(a, axis=1), log_softmax(b, axis=1), atol=1e-9)
    with pytest.raises(TypeError, match="is a pipeline"):
        pool.save("nowhere.nc")


def test_documents_and_counts():
    texts = np.array(["aab", "abb", "aba", "ccd", "cdc", "ddc"] * 3, dtype=object)
    y = np.repeat(["x", "y"], 3).tolist() * 3
    pool = bg.LogLinearPool().fit(texts, y)
    assert "characters, order 2" in pool.members_
    assert (pool.predict(texts) == y).all()
    counts = sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, size=(18, 5)))
    assert set(bg.LogLinearPool().fit(counts, y).members_) == {"bits", "counts"}


def test_a_sample_of_a_stream(penguins):
    X, y = penguins
    X = X[["bill_length_mm", "bill_depth_mm"]]
    streamed = bg.MixedNB()
    for k in range(4):
        streamed.partial_fit(X[k::4], y[k::4])
    whole = bg.MixedNB().fit(X, y)
    a = bg.LogLinearPool([streamed], prefit=True).fit(X, y)
    b = bg.LogLinearPool([whole]).fit(X, y)
    np.testing.assert_allclose(a.exponents_, b.exponents_, rtol=1e-6)
    some = bg.LogLinearPool([streamed], prefit=True).fit(X[::3], y[::3])
    assert some.n_rows_ == len(X[::3])
    with pytest.raises(ValueError, match="training rows"):
        bg.LogLinearPool([whole], prefit=True).fit(X + 1.0, y)


def test_rows_of_dask(iris):
    import dask.array as da

    X, y = iris
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()]).fit(X, y)
    found = pool.predict_proba(da.from_array(X, chunks=(40, 4)))
    np.testing.assert_allclose(found, pool.predict_proba(X), rtol=1e-12)


@pytest.fixture(scope="module", params=["dask", "xarray"])
def held(request, iris):
    """A pool of rows in a holder, the rows, and the pool of the same rows in memory."""
    import dask.array as da

    X, y = iris
    table = (
        da.from_array(X, chunks=(40, 3))
        if request.param == "dask"
        else xr.DataArray(X, {"feature": ["a", "b", "c", "d"]}, ("flower", "feature"))
    )
    members = [bg.GaussianNB(), bg.LinearDiscriminant()]
    return bg.LogLinearPool(members).fit(table, y), table, bg.LogLinearPool(members).fit(X, y)


@pytest.mark.parametrize("method", ["predict_interval", "predict_set", "explain", "decide"])
def test_results_of_dask_and_xarray_rows(held, iris, method):
    pool, table, expected = held
    ask = bg.decide if method == "decide" else getattr(bg.LogLinearPool, method)
    found, known = ask(pool, table[:5]), ask(expected, iris[0][:5])
    for name, values in known.data_vars.items():
        np.testing.assert_array_equal(found[name].values, values.values)


def test_leave_one_out_of_dask_and_xarray_rows(held, iris):
    pool, table, expected = held
    assert pool.loo(table, iris[1]).elpd == pytest.approx(expected.loo(*iris).elpd)


def test_many_rows_give_exponents_from_some(iris):
    X, y = iris
    pool = bg.LogLinearPool([bg.GaussianNB()], max_rows=50, random_state=1).fit(X, y)
    assert pool.n_rows_ == 50
    assert pool.members_["GaussianNB"].stats_.count.sum() == 150


def test_a_sampled_member_takes_part_by_importance_sampling(iris):
    X, y = iris
    member = drawn(bg.GaussianNB(), X, y, draws=400)
    pool = bg.LogLinearPool([member, bg.GaussianNB().fit(X, y)], prefit=True).fit(X, y)
    evidence, codes, _ = pool.fitted_.posterior.scored
    a, b = log_softmax(evidence.scores, axis=2)[:, np.arange(150), codes]
    np.testing.assert_allclose(a, b, atol=0.1)
    assert "importance sampling" in repr(pool.summary())
    assert pool.predict_interval(X[:3])["interval"].shape == (3, 3, 2)


def test_leave_one_out_is_that_of_refits_of_the_exponents():
    """The members' scores of the other rows stay as they are."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 16)
    X = rng.normal(size=(48, 3)) + rng.normal(size=(48, 1)) + y[:, None] * [1.0, 0.8, 0.0]
    members = [bg.GaussianNB(), bg.GaussianNB(variance="tied")]
    pool = bg.LogLinearPool(members).fit(X, y)
    posterior = pool.fitted_.posterior
    evidence, codes, weight = posterior.scored
    refits, mcse = np.empty((2, len(y)))
    for i in range(0, len(y), 24):
        rest = np.arange(len(y)) != i
        own = sample(evidence[rest], codes[rest], weight[rest], posterior.prior.family, i)
        refits[i] = own.log_proba(evidence[[i]])[0, y[i]]
        p = np.exp(log_softmax(logits(*own, evidence[[i]])[:, :, 0], axis=2))[..., y[i]]
        mcse[i] = array_stats.mcse(p, chain_axis=0, draw_axis=1, method="mean") / p.mean()
    found = pool.loo(X, y)
    some = slice(0, len(y), 24)
    gap = found.elpd_i.values[some] - refits[some]
    assert (np.abs(gap) <= 8 * mcse[some]).all()  # of both: weights cost draws
    in_sample = pool.predict_log_proba(X)[np.arange(len(y)), y].sum()
    assert found.elpd < in_sample - 4  # nats
    np.testing.assert_allclose(found.p, in_sample - found.elpd)
    assert found.pareto_k.max() < 0.7


@few_exponents
def test_prediction_sets(iris, tmp_path):
    """They hold the label of rows that the pool has not seen as often as they say."""
    X, y = iris
    train = np.arange(len(y)) % 2 == 0
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()]).fit(X[train], y[train])
    found = pool.predict_set(X[~train], coverage=0.9)
    covered = found["included"].values[np.arange(75), y[~train]].mean()
    assert abs(covered - 0.9) < 3 * np.sqrt(2 * 0.9 * 0.1 / 75)  # limit and rows are both of 75
    p = pool.predict_proba(X[~train])
    limit = found["limit"].values[0]
    np.testing.assert_array_equal(found["included"].values, p >= limit * (1 - 1e-12))
    pool.save(tmp_path / "pool.nc")
    again = bg.load(tmp_path / "pool.nc").predict_set(X[~train], coverage=0.9)
    xr.testing.assert_identical(again, found)
    given = pool.predict_set(X[~train], coverage=0.9, training=(X[train], y[train]))
    xr.testing.assert_identical(given, found)
    with pytest.raises(ValueError, match="training rows"):
        pool.loo(X[~train] + 1, y[~train])
    with pytest.raises(NotImplementedError, match="density of x"):
        pool.loo(X[train], y[train], target="joint")


def test_a_column_without_cells_says_next_to_nothing(iris):
    X, y = iris
    pool = bg.LogLinearPool().fit(np.c_[X, np.full(150, np.nan)], y)
    known = bg.LogLinearPool().fit(X, y)
    own = known.fitted_.posterior
    joint = logits(*own.exponents.flat, own.evidence(known.fitted_.encoded(X)))
    mcse = np.exp(log_softmax(joint, axis=2)).std(axis=0) * np.sqrt(2 / 1000)  # effective draws
    gap = pool.predict_proba(np.c_[X, np.full(150, np.nan)]) - known.predict_proba(X)
    assert (np.abs(gap) < 5 * mcse + 0.01).all()  # a forest has one tree more


def test_refusals(iris):
    X, y = iris
    with pytest.raises(TypeError, match="no exact leave-one-out"):
        bg.LogLinearPool([PlugInNB()]).fit(X, y)
    with pytest.raises(ValueError, match="at least one"):
        bg.LogLinearPool([]).fit(X, y)
    with pytest.raises(ValueError, match="given twice"):
        bg.LogLinearPool([("a", bg.GaussianNB()), ("a", bg.GaussianNB())]).fit(X, y)
    with pytest.raises(ValueError, match="members must be 'auto'"):
        bg.LogLinearPool("all").fit(X, y)
    with pytest.raises(ValueError, match="different classes"):
        bg.LogLinearPool(
            [bg.GaussianNB().fit(X[:100], y[:100]), bg.GaussianNB().fit(X, y)], prefit=True
        ).fit(X, y)
    with pytest.raises(ValueError, match=r"missing|label"):
        bg.LogLinearPool().fit(X, np.where(y == 0, np.nan, y))
    with pytest.raises(TypeError, match="takes no draws="):
        bg.LogLinearPool().fit(X, y, draws=10)


def test_pymc_density_is_that_of_the_draws(iris):
    """The compiled log density of (log eta, b), up to a constant."""
    X, y = iris
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()]).fit(X, y)
    logp = pool.to_pymc().compile_logp(mode="FAST_COMPILE")
    rng = np.random.default_rng(0)
    values, own = [], pool.fitted_.posterior
    for _ in range(3):
        u, b = rng.normal(size=2), rng.normal(size=3)
        known = log_posterior(np.exp(u), b, *own.scored, own.prior.family) + u.sum()
        values.append(float(logp({"exponent_log__": u, "intercept": b})) - known)
    np.testing.assert_allclose(values, 0, atol=1e-6)


@pytest.mark.slow
def test_draws_are_those_of_nuts():
    X, y = load_breast_cancer(return_X_y=True)
    members = [bg.GaussianNB(), bg.LinearDiscriminant()]
    pool = bg.LogLinearPool(members, random_state=1).fit(X[::2, :4], y[::2])
    with pool.to_pymc():
        nuts = pm.sample(
            2000, tune=1000, chains=4, random_seed=1, target_accept=0.99, progressbar=False
        )
    own, other = pool.posterior_["posterior"], nuts["posterior"]
    assert pool.posterior_.attrs["r_hat"] < 1.01
    for name in ("exponent", "intercept"):
        for f in (lambda v: v, np.square, np.sqrt) if name == "exponent" else (lambda v: v,):
            a, b = f(own[name]), f(other[name])
            mcse = [az.mcse(v.to_dataset(name="v"))["v"].values for v in (a, b)]
            gap = a.mean(("chain", "draw")).values - b.mean(("chain", "draw")).values
            assert (np.abs(gap) < 5 * np.hypot(*mcse)).all()


def test_categories_of_single_rows_do_not_tell_the_label_left_out():
    """A class that has lost a row is one row smaller than the others of a balanced design."""
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1, 2], 14)
    names = [f"p{i}" for i in range(30)] + ["q", "r", "s"] * 4
    X = pd.DataFrame({"x": rng.normal(size=42), "who": rng.permutation(names)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # so many categories
        pool = bg.LogLinearPool().fit(X, y)
        only = bg.LogLinearPool().fit(X.iloc[:30].assign(who=names[:30]).drop(columns="x"), y[:30])
    evidence, codes, _ = pool.fitted_.posterior.scored
    score = log_softmax(evidence.scores + evidence.log_weights, axis=2)[
        :, np.arange(42), codes
    ].mean(axis=1)
    assert (score < 0.8 * np.log(1 / 3)).all()  # labels at random: no member knows more
    assert {"linear", "quadratic on normal scores"} <= {*only.left_out_}


def test_a_row_alone_tells_as_much_as_leave_one_out_says(iris):
    X, y = iris
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()]).fit(X, y)
    again = pool.with_posterior(pool.posterior_).predict_proba(X)
    np.testing.assert_array_equal(again, pool.predict_proba(X))
    with pytest.raises(TypeError, match="LogLinearPool has no exact leave-one-out"):
        bg.LogLinearPool([pool]).fit(X, y)


@few_exponents
def test_missing_cells_are_means_in_training_and_integrated_out_later():
    rng = np.random.default_rng(3)
    y = np.arange(60) % 2
    X = pd.DataFrame(rng.normal(size=(60, 3)) + y[:, None], columns=list("abc"))
    X.loc[::7, "a"] = np.nan
    pool = bg.LogLinearPool().fit(X, y)
    alone = bg.LinearDiscriminant().fit(X.fillna(X.mean()), y)
    (member,) = (m for m in pool.fitted_.posterior.members if m.name == "linear")
    found = pool.fitted_.encoded(X).log_joint(member)
    np.testing.assert_allclose(
        log_softmax(found, axis=1), alone.predict_log_proba(X), rtol=1e-9, atol=1e-9
    )
    left_out = pool.fitted_.encoded(X).log_joint_without(member, y, np.ones(60))
    np.testing.assert_allclose(left_out, alone.loo_log_joint(X.fillna(X.mean()), y), rtol=1e-9)


def test_the_seed_of_a_pool_is_that_of_its_label_trees(iris):
    X, y = iris
    pool = bg.LogLinearPool(random_state=5).fit(X[::3], y[::3])
    assert pool.members_["label trees"].random_state == 5


@few_exponents
def test_a_table_is_encoded_once_for_the_members_that_see_it_alike(iris, monkeypatch):
    X, y = iris
    pool = bg.LogLinearPool().fit(X, y)
    tables, encoded = [], []
    made, encode = Table.__init__, TableSchema.encode
    monkeypatch.setattr(Table, "__init__", lambda self, X: tables.append(X) or made(self, X))
    monkeypatch.setattr(TableSchema, "encode", lambda self, X: encoded.append(X) or encode(self, X))
    pool.predict_proba(X)
    assert len(tables) == 1
    assert len(encoded) == 1  # MixedNB, all views and label trees
    tables.clear(), encoded.clear()
    bg.LogLinearPool().fit(X, y)
    assert (len(tables), len(encoded)) == (1, 1)


@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
def test_members_share_readings_only_where_they_read_alike():
    X = pd.DataFrame({"a": list("uvw") * 8, "x": np.arange(24.0) % 7})
    y = np.arange(24) % 2

    class Own(bg.MixedNB):
        def fit(self, X, y, sample_weight=None):  # which is given the rows themselves
            return super().fit(X[["a", "x"]], y, sample_weight)

    some = [bg.MixedNB(), bg.MixedNB(unseen="prior"), Own(variance="tied")]
    some += [bg.TreeAugmentedNB(n_bins=n, missing="category") for n in (2, 3, 3)]
    pool = bg.LogLinearPool(some).fit(X, y)
    new = pd.DataFrame({"a": ["u", "never", None], "x": [1.0, 2.0, np.nan]})
    rows = pool.fitted_.encoded(new)
    for member in pool.fitted_.posterior.members:
        alone = member.clf.predict_joint_log_proba(new)
        np.testing.assert_allclose(
            log_softmax(rows.log_joint(member), axis=1), log_softmax(alone, axis=1), atol=1e-12
        )
    assert len({id(rows.read(member)) for member in pool.fitted_.posterior.members}) == 4


def test_views_that_no_later_member_sees_are_dropped(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 150)
    X = np.column_stack([rng.normal(y, 1.0), rng.exponential(1 + y), rng.poisson(2 + y)])
    few = {"max_rows": 100, "random_state": 0}
    held = []
    forget = MemberRows.forget

    def watched(self, later):
        forget(self, later)
        held.append(len(self._made))

    monkeypatch.setattr(MemberRows, "forget", watched)
    dropped = bg.LogLinearPool(**few).fit(X, y).predict_proba(X)
    assert held[-1] == 0 < max(held)
    monkeypatch.setattr(MemberRows, "forget", lambda self, later: None)
    np.testing.assert_array_equal(bg.LogLinearPool(**few).fit(X, y).predict_proba(X), dropped)
