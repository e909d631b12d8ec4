"""TreeAugmentedNB: tables of several kinds, missing cells, refusals."""

import itertools
import warnings
from functools import partial

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.families.conjugate import dirichlet_forest
from bayesgen.posterior.drawn import MonteCarloWarning


def table(n=120, seed=0, gaps=True):
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b"], size=n)
    first = rng.integers(3, size=n)
    second = np.where(rng.random(n) < 0.8, (first + (y == "a")) % 3, rng.integers(3, size=n))
    X = pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"])[first],
            "size": np.array(["S", "M", "L"])[second],
            "length": rng.normal(size=n) + first,
            "old": rng.random(n) < 0.3 + 0.3 * (y == "b"),
        }
    )
    if gaps:
        X.loc[::9, "length"] = np.nan
    return X, y


each = pytest.mark.parametrize("structure", ["average", "tree"])


def test_dependence_is_found_where_naive_bayes_sees_nothing():
    X, y = table(300, gaps=False)
    X, new, y, truth = X[:200], X[200:], y[:200], y[200:]
    forest = bg.TreeAugmentedNB().fit(X, y)
    none = np.zeros((4, 4))
    naive = bg.TreeAugmentedNB(structure="fixed", edges=none).fit(X, y)
    labels = np.arange(100), np.searchsorted(forest.classes_, truth)
    better = forest.predict_log_proba(new)[labels] - naive.predict_log_proba(new)[labels]
    assert better.mean() > 3 * better.std() / 10
    edges = forest.edge_probabilities()
    pair = edges["probability"].sel(feature="colour", feature_bis="size")
    assert (pair > 0.9).all()
    assert (edges["probability"].sel(feature="old", feature_bis="size") < 0.5).all()
    assert edges["probability"].dims == ("class", "feature", "feature_bis")
    total = edges["probability"].sum(["feature", "feature_bis"]) / 2 + edges["root"].sum("feature")
    np.testing.assert_allclose(total, 4.0)


def test_strengths_by_leave_one_out_are_the_default_of_an_average():
    X, y = table(150)
    assert bg.TreeAugmentedNB(strength=4.0)._prior_choice() == "default"
    assert bg.TreeAugmentedNB(structure="tree")._prior_choice() == "default"
    scored, plain = bg.TreeAugmentedNB().fit(X, y), bg.TreeAugmentedNB(prior="default").fit(X, y)
    assert scored.loo(X, y).elpd >= plain.loo(X, y).elpd
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.integers(3, size=(90, 6)).astype(str))
    naive = bg.TreeAugmentedNB().fit(noise, np.arange(90) % 2)
    assert not naive.edge_probabilities()["probability"].any()


@each
def test_blocks_of_workers_need_declared_bins(structure):
    X, y = table()
    clf = bg.TreeAugmentedNB(structure=structure, prior="default")
    blocks = dd.from_pandas(X.assign(label=y), npartitions=3)  # each has quantiles of its own
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match="declare cuts="):
        bg.fit_dask(clf, blocks[list(X.columns)], blocks["label"])


def completions(row, n_codes):
    """Every way to fill the missing cells of a row of codes."""
    gaps = np.isnan(row)
    ways = list(itertools.product(range(n_codes), repeat=gaps.sum()))
    rows = np.repeat(row[None], len(ways), axis=0)
    rows[:, gaps] = ways
    return rows


@pytest.mark.parametrize("structure", ["average", "tree", "map"])
def test_forests_sum_over_many_missing_cells(structure, monkeypatch):
    rng = np.random.default_rng(0)
    z, y = rng.integers(3, size=80), np.arange(80) % 2
    X = np.where(rng.random((80, 7)) < 0.7, z[:, None], rng.integers(3, size=(80, 7)))
    clf = bg.TreeAugmentedNB(structure=structure).fit(X.astype(str), y)
    rows = X[:6].astype(str).astype(object)
    for i, row in enumerate(rows):
        row[rng.choice(7, size=1 + i, replace=False)] = None
    posterior, encoded = clf.fitted_.posterior, clf.fitted_.read(pd.DataFrame(rows)).encoded
    each = [posterior.log_joint(completions(row, 3)) for row in encoded]
    expected = np.array([np.logaddexp.reduce(values, axis=0) for values in each])
    exact = clf.predict_joint_log_proba(rows)
    np.testing.assert_allclose(exact, expected, rtol=1e-11)
    monkeypatch.setattr(dirichlet_forest, "_STEPS", 0)  # all by draws of forests
    _, error = posterior.model.family.log_predictive_with_error(encoded)
    drawn = clf.predict_joint_log_proba(rows)
    if structure != "average":
        assert not error.any()
        np.testing.assert_allclose(drawn, expected, rtol=1e-11)
        return
    assert (np.abs(drawn - expected) <= 5 * error + 1e-10).all()
    assert error.max() < 0.03
    mle = [posterior.log_joint(completions(row, 3), "mle") for row in encoded]
    expected = [np.logaddexp.reduce(values, axis=0) for values in mle]
    np.testing.assert_allclose(clf.predict_joint_log_proba(rows, method="mle"), expected)


def test_draws_of_forests_sum_over_missing_cells_exactly():
    """Of one set of draws: all completions of few cells, and of many the sum rule for one more."""
    rng = np.random.default_rng(2)
    X, y = rng.integers(4, size=(40, 9)).astype(str), np.arange(40) % 2
    clf = bg.TreeAugmentedNB(prior="default").fit(X, y)
    drawn = clf.with_posterior(clf.draw_posterior(draws=20, chains=1, random_state=0))

    def joint(rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MonteCarloWarning)  # few draws, and the same ones
            return drawn.predict_joint_log_proba(rows)

    for gaps, each in (([2, 5], itertools.product("0123", repeat=2)), (range(8), "0123")):
        row = X[0].astype(object)
        row[list(gaps)] = None
        filled = np.repeat(row[None], 4 ** (2 if len(gaps) == 2 else 1), axis=0)
        at = list(gaps) if len(gaps) == 2 else [3]
        filled[:, at] = [list(codes) for codes in each]
        expected = np.logaddexp.reduce(joint(filled), axis=0)
        np.testing.assert_allclose(joint(np.stack([row, X[1]]))[0], expected, rtol=1e-11)


def test_a_category_of_its_own_for_missing_cells():
    X, y = table()
    clf = bg.TreeAugmentedNB().fit(X, y)
    assert clf.encoder_.missing == (False, False, True, False)
    assert clf.predict_proba(X[:10]).shape == (10, 2)


@each
def test_later_rows_need_bins_of_the_first(structure):
    make = partial(bg.TreeAugmentedNB, prior="default", structure=structure)
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2
    with pytest.raises(ValueError, match=r"column 'x0' had one value in the first rows.*cuts="):
        make().partial_fit(X[:1], y[:1]).partial_fit(X[1:], y[1:])
    late = np.column_stack([X[:, 0], np.where(np.arange(6) < 4, 7.0, X[:, 1])])
    with pytest.raises(ValueError, match="column 'x1' had one value in the first rows"):
        make().partial_fit(late[:4], y[:4]).partial_fit(late[4:], y[4:])
    X[:, 1] = 7.0
    assert make().partial_fit(X[:4], y[:4]).partial_fit(X[4:], y[4:]).n_rows_seen_ == 6
    one_bin = make(cuts={1: []}).partial_fit(X[:4], y[:4]).partial_fit(X[4:], y[4:])
    assert one_bin.forget(X[4:], y[4:]).stats_.count.sum() == 4
    make().fit(X, y).forget(X[:1], y[:1])


def test_many_columns_ask_for_one_tree():
    X, y = np.random.default_rng(0).random((40, 160)) < 0.5, np.arange(40) % 2
    clf = bg.TreeAugmentedNB(structure="tree").fit(X, y)
    assert np.isfinite(clf.predict_log_proba(X[:3])).all()
    assert clf.edge_probabilities()["probability"].sum() == 2 * 2 * 159


def test_models_in_pymc_are_of_given_forests_or_of_few_columns():
    X, y = table()
    clf = bg.TreeAugmentedNB(n_bins=2).fit(X, y)
    model = clf.to_pymc(structure=[-1, 0, 0, -1])
    assert {"pi", "tables_0_0", "tables_1_1_0", "tables_1_3"} <= set(model.named_vars)
    assert model.named_vars_to_dims["tables_1_1_0"] == ("code_0", "code_1")
    assert all(v.name in model.named_vars_to_dims for v in model.free_RVs)
    assert len(clf.to_pymc(observed=False).free_RVs) == 1 + 2 * (4 + 12)
    tree = bg.TreeAugmentedNB(structure="tree").fit(X, y).to_pymc(X[:20], y[:20])
    assert len(tree.free_RVs) == 1 + 2 * 4
    wide = bg.TreeAugmentedNB().fit(np.tile(X[["old"]].to_numpy(), 5), y)
    with pytest.raises(ValueError, match="at most 4 columns"):
        wide.to_pymc()


def test_draws_of_other_variables_are_refused_before_sampling(monkeypatch):
    monkeypatch.setattr("bayesgen.inference.nuts.sample", None)
    X, y = table()
    X = X[["colour", "old"]]
    clf = bg.TreeAugmentedNB().fit(X, y)
    for ask in (clf.sample_posterior, lambda: bg.validate(clf, X, y)):
        with pytest.raises(NotImplementedError, match="are not the parameters of posterior_"):
            ask()


@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
def test_a_category_never_seen_is_summed_over_or_named():
    """Plug-ins too sum over what the cell may be; what needs the cell says which it is."""
    X, y = table(60, gaps=False)
    chain = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    tree = bg.TreeAugmentedNB(structure="fixed", edges=chain).fit(X, y)
    new = X.iloc[[3]].copy()
    new["size"] = "XL"
    every = pd.concat([new] * 3, ignore_index=True)
    every["size"] = ["S", "M", "L"]
    joint = tree.predict_joint_log_proba(every, method="mle")
    expected = np.logaddexp.reduce(joint, axis=0)
    summed = tree.predict_joint_log_proba(new, method="mle")
    np.testing.assert_allclose(summed[0], expected, rtol=1e-12)
    clf = bg.TreeAugmentedNB().fit(X, y)
    for ask in (clf.predict_interval, clf.predict_uncertainty):
        with pytest.raises(ValueError, match="column 'size' in row 0: missing, or a category that"):
            ask(new)
    with pytest.raises(ValueError, match="XL"):
        clf.set_params(unseen="raise").predict(new)
