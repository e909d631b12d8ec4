"""MetaTreeForest: enumeration of prunings, refits without a row, what it takes and refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import gammaln, logsumexp
from sklearn.base import clone

import bayesgen as bg
from bayesgen.numerics.kernels import threads
from bayesgen.numerics.kernels.meta_trees import chooses

SMALL = {"n_trees": 6, "random_state": 3}


def table(n=24, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "colour": rng.choice(["red", "blue", "green", None], n).astype(object),
            "length": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "flag": rng.random(n) < 0.5,
            "count": rng.integers(0, 3, n),
        }
    )
    return X, rng.integers(0, n_classes, n)


def fitted(n=24, weight=None, **options):
    X, y = table(n)
    return bg.MetaTreeForest(**(SMALL | options)).fit(X, y, sample_weight=weight), X, y


# --- an oracle in plain Python: parts of rows, prunings one by one, leaves


def steps(f, s, x):
    """{child: share of a row that goes there} of an inner node."""
    one, two = int(f.child[s]), int(f.child[s]) + 1
    column, side = divmod(f.test[s], 3)
    cell, cut = x[column], f.cut[s]
    if (np.isnan(cell) and side == 2) or (f.nominal[column] and cell < 0):
        share = f.chosen[one].sum() / f.chosen[s].sum()
        return {one: share, two: 1 - share}
    if np.isnan(cell):
        left = side == 1
    elif f.nominal[column]:
        left = cell in ({-1 - cut} if cut < 0 else {k for k in range(52) if int(cut) & 1 << k})
    else:
        left = cell <= cut
    return {one if left else two: 1.0}


def parts(f, s, x, part=1.0):
    """{node: part of a row that comes there} below s."""
    below = {s: part}
    if f.test[s] >= 0:
        for child, share in steps(f, s, x).items():
            below |= parts(f, child, x, part * share)
    return below


def learns_below(f, s, x):
    """Whether a test below s, where the row goes, is on a cell that is known or has a side."""
    if f.test[s] < 0:
        return False
    children = steps(f, s, x)
    return len(children) == 1 or any(learns_below(f, child, x) for child in children)


def predicted(f, s, leaves, x, e):
    """Class probabilities below s of a pruning: mean over the leaves that parts of a row reach."""
    if s in leaves or not learns_below(f, s, x):
        return e[s]
    return sum(p * predicted(f, k, leaves, x, e) for k, p in steps(f, s, x).items())


def prunings(f, s, q):
    """(leaves, prior probability) of every pruning below a node."""
    yield [s], 1.0 if f.test[s] < 0 else 1 - q
    if f.test[s] >= 0:
        for left, p in prunings(f, f.child[s], q):
            for right, r in prunings(f, f.child[s] + 1, q):
                yield left + right, q * p * r


def log_evidence(n, a):
    c = len(n)
    return gammaln(c * a) - gammaln(c * a + n.sum()) + (gammaln(a + n) - gammaln(a)).sum()


def enumerated(f, tree, x, count=None):
    """(C,) probabilities of one tree, a sum over all its prunings."""
    count = f.count if count is None else count
    a, root = f.alpha, int(f.roots[tree])
    e = (count + a) / (count + a).sum(axis=1, keepdims=True)
    weight, mean = [], []
    for leaves, prior in prunings(f, root, f.split):
        held = [count[s] - f.chosen[s] for s in leaves]
        weight.append(np.log(prior) + sum(log_evidence(n, a) for n in held))
        mean.append(predicted(f, root, set(leaves), x, e))
    return np.exp(weight - logsumexp(weight)) @ np.array(mean)


def without(f, tree, rows, codes, weight):
    """Counts of a tree without some rows."""
    count = f.count.copy()
    for x, k, w in zip(rows, codes, weight, strict=True):
        for s, part in parts(f, int(f.roots[tree]), x).items():
            count[s, k] -= w * part
    return count


def counted(f, rows, codes, weight):
    """(node, C) counts of rows, each by its parts."""
    count = np.zeros_like(f.count)
    for row, k, w in zip(rows, codes, weight, strict=True):
        for root in f.roots:
            for s, part in parts(f, int(root), row).items():
                count[s, k] += w * part
    return count


def cells(clf, X):
    return clf.fitted_.encoded(X)


# --- the numbers


@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_are_the_sum_over_all_prunings(weighted):
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.5], 24) if weighted else None
    clf, X, y = fitted(weight=weight)
    f, x = clf.model_.family, cells(clf, X)
    assert len(f.test) > 4 * f.n_trees
    assert {bool(f.nominal[t // 3]) for t in f.test if t >= 0} == {False, True}
    assert {t % 3 for t in f.test if t >= 0} == {0, 1, 2}
    w = np.ones(24) if weight is None else weight
    np.testing.assert_allclose(f.count, counted(f, x, y, w), rtol=1e-12)
    half = f.chosen[f.roots]  # A of one tree is B of its neighbour
    np.testing.assert_allclose(half[::2] + half[1::2], f.count[f.roots[::2]], rtol=1e-12)
    patterns = np.arange(16)[:, None] >> np.arange(4) & 1 == 1
    gaps = X.iloc[np.zeros(16, dtype=int)].astype({"flag": "boolean"}).mask(patterns)
    other = X[:3].assign(colour="violet")
    assert (cells(clf, other)[:, 0] == -1).all()  # goes to both sides of a test of colours
    for new in (X, gaps, other):
        rows = cells(clf, new)
        expected = [[enumerated(f, t, row) for t in range(f.n_trees)] for row in rows]
        p = clf.predict_proba(new)
        np.testing.assert_allclose(p, np.mean(expected, axis=1), rtol=1e-12)
    assert len(f.prunings(0)) == len(list(prunings(f, int(f.roots[0]), f.split)))
    assert sum(p for _, p in f.prunings(0)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("kind", ["rows", "weights", "groups", "one group"])
def test_a_group_leaves_the_trees_that_it_did_not_choose(kind):
    rng = np.random.default_rng(1)
    clf, X, y = fitted()
    x, weight, groups = cells(clf, X), np.ones(24), None
    if kind == "weights":
        weight = rng.choice([0.5, 1.0, 2.5], 24)
    elif kind != "rows":
        groups = rng.integers(0, 8, 24) * (kind == "groups")
    prior = clf._family(clf.fitted_.reader, clf.classes_)
    stats = prior.stats(x, y, 3, weight, groups)
    f = prior.resolve(stats).update(stats)
    assert f.alpha in (1 / 3, 0.2, 0.1, 0.05)
    left_out = np.exp(f.log_predictive_without(x, y, weight, groups)[0])
    *_, keys, copies = f._rows(x, y, weight, groups)
    names = np.arange(24) if groups is None else groups
    chose = np.array([[chooses(*z, t) for z in zip(keys, copies, strict=True)] for t in range(6)])
    assert all(len(np.unique(c[names == g])) == 1 for g in names for c in chose)
    for t, half in enumerate(chose):  # the halves are those that chose the tests
        nodes = slice(*np.append(f.roots, len(f.test))[t : t + 2])
        chosen = counted(f, x[half], y[half], weight[half])
        np.testing.assert_allclose(f.chosen[nodes], chosen[nodes], rtol=1e-12, atol=1e-14)
    for i in range(24):
        group = np.flatnonzero(names == names[i])
        rows = x[group], y[group], weight[group]
        trees = np.flatnonzero(~chose[:, i])
        each = [enumerated(f, t, x[i], without(f, t, *rows)) for t in trees]
        np.testing.assert_allclose(left_out[i], np.mean(each, axis=0), rtol=1e-9)
    with pytest.raises(ValueError, match="groups must be those of the fit"):
        f.log_predictive_without(x, y, weight, np.arange(24) // 3)


@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
def test_rows_added_later_leave_as_they_came():
    clf, X, y = fitted()
    more, z = table(12, seed=5)
    before = clf.model_.family
    clf.partial_fit(more, z)
    f = clf.model_.family
    for name in ("roots", "test", "cut", "child", "chosen"):
        np.testing.assert_array_equal(getattr(f, name), getattr(before, name))
    both, labels = pd.concat([X, more]), np.r_[y, z]
    x = cells(clf, both)
    np.testing.assert_allclose(f.count, counted(f, x, labels, np.ones(36)), rtol=1e-12)
    left_out = np.exp(clf.loo_log_joint(both, labels))
    for i in range(24, 36, 5):
        row = x[[i]], labels[[i]], [1.0]
        trees = [enumerated(f, t, x[i], without(f, t, *row)) for t in range(f.n_trees)]
        one, two = np.array(trees[::2]), np.array(trees[1::2])
        choices = np.array(np.meshgrid(*[[0, 1]] * len(one))).reshape(len(one), -1).T
        means = [np.where(c[:, None], one, two).mean(axis=0) for c in choices]
        assert np.abs(means - left_out[i]).max(axis=1).min() < 1e-12  # one tree of each pair
    clf.partial_fit(more.assign(colour="violet"), np.full(12, 7))  # a class, a category
    assert clf.classes_.tolist() == [0, 1, 2, 7]
    assert clf.predict_proba(more.assign(colour="violet"))[:, 3].min() > 0.1


def test_the_pymc_model_of_one_tree_sums_its_prunings():
    from tests.graphs import declare, log_densities

    X, y = table(20, n_classes=2)
    clf = bg.MetaTreeForest(n_trees=1, random_state=1).fit(X, y)
    prior, stats = clf.prior_.family, clf.stats_.features
    nodes = np.arange(len(prior.test))
    model, _ = declare(prior, {"class": [0, 1], "node": nodes}, stats=stats)
    theta = np.random.default_rng(0).dirichlet(np.ones(2), (4, len(nodes)))
    log_p = log_densities(model)([{"theta": t} for t in theta])
    held = stats.count - prior.chosen
    for (_, data), t in zip(log_p, theta, strict=True):
        ends = (held * np.log(t)).sum(axis=1)
        each = [np.log(p) + ends[k].sum() for k, p in prunings(prior, 0, prior.split)]
        assert data == pytest.approx(logsumexp(each), rel=1e-12)
    assert clf.to_pymc()["stats_held"].get_value().sum() == held.sum()
    with pytest.raises(NotImplementedError, match="n_trees=1"):
        fitted()[0].to_pymc()
    with pytest.raises(ValueError, match="n_trees=2"):
        clf.loo(X, y)


# --- what it learns, takes and refuses


CHANGES = {
    "scales": lambda X: X.assign(length=np.exp(3 * X["length"]), count=X["count"] ** 3 - 7.0),
    "names": lambda X: X.assign(colour=X["colour"].map({"red": "b", "blue": "c", "green": "a"})),
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_units_names_and_order_do_not_matter(change, gaps):
    X, y = table(60)
    if not gaps:
        X, y = X[X.notna().all(axis=1)], y[X.notna().all(axis=1)]
    new = table(60, seed=1)[0]
    kinds = {"columns": {"gaussian": ["length", "count"]}}
    one = bg.MetaTreeForest(**SMALL, **kinds).fit(X, y)
    other = bg.MetaTreeForest(**SMALL, **kinds).fit(change(X), y)
    p = one.predict_proba(new)
    np.testing.assert_allclose(other.predict_proba(change(new)), p, rtol=1e-9)
    left_out = one.loo_log_joint(X, y)
    np.testing.assert_allclose(other.loo_log_joint(change(X), y), left_out, rtol=1e-9)


def test_neither_threads_nor_the_kind_of_table_nor_a_file_matter(monkeypatch, tmp_path):
    clf, X, y = fitted(40)
    expected = clf.predict_proba(X)
    later, latest = table(9, seed=8), table(5, seed=9)
    clone(clf).fit(X, y).partial_fit(*later).save(tmp_path / "model.nc")
    in_parts = clone(clf).fit(X, y).partial_fit(*later).partial_fit(*latest).predict_proba(X)
    loaded = bg.load(tmp_path / "model.nc").partial_fit(*latest)
    np.testing.assert_array_equal(loaded.predict_proba(X), in_parts)
    monkeypatch.setattr(threads, "n_threads", lambda: 3)
    np.testing.assert_array_equal(clone(clf).fit(X, y).predict_proba(X), expected)
    frame = pl.from_pandas(X)
    np.testing.assert_array_equal(clone(clf).fit(frame, y).predict_proba(frame), expected)
    assert (clone(clf).set_params(random_state=4).fit(X, y).predict_proba(X) != expected).any()


def test_many_classes_many_categories_one_pure_column_of_nothing():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 20
    X = pd.DataFrame({"code": [f"c{k:03}" for k in (y * 3 + rng.integers(0, 3, 200))]})
    X["none"], X["one"], X["z"] = np.nan, 1.0, rng.normal(size=200)
    with pytest.warns(UserWarning, match="none"):
        clf = bg.MetaTreeForest(20).fit(X, y)
    assert (clf.predict(X) == y).mean() > 0.9
    assert np.isfinite(clf.predict_interval(X[:2])["interval"]).all()
    alone = bg.MetaTreeForest(**SMALL).fit(X[["z"]], np.zeros(200))
    assert (alone.predict_proba(X[["z"]]) == 1).all()


def test_missing_cells_have_a_side_of_their_own():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    y = rng.integers(0, 2, 200)
    x[y == 1] = np.where(rng.random((int(y.sum()), 1)) < 0.8, np.nan, x[y == 1])
    clf = bg.MetaTreeForest().fit(x, y)
    assert clf.predict_proba([[np.nan]])[0, 1] > 0.95


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_missing_strong_columns_leave_the_share_of_a_rare_class(share):
    rng = np.random.default_rng(4)
    y = (rng.random(5000) < share).astype(int)
    X = rng.normal(size=(5000, 4))
    X[:, :2] += 2.5 * y[:, None]
    clf = bg.MetaTreeForest(n_trees=50).fit(X[:1000], y[:1000])
    new = X[1000:].copy()
    new[:, :2] = np.nan
    rare, expected = clf.predict_proba(new)[:, 1].mean(), y[:1000].mean()
    assert abs(rare / expected - 1) < 0.15


def test_leaves_have_the_pseudo_count_of_the_best_leave_one_out():
    X, y = table(60)
    y = np.where(X["count"] > 0, y, 2)
    chosen = bg.MetaTreeForest(**SMALL).fit(X, y)
    fits = [bg.MetaTreeForest(**SMALL, alpha=a).fit(X, y) for a in (1 / 3, 0.2, 0.1, 0.05)]
    best = max(fits, key=lambda clf: clf.loo(X, y).elpd)
    np.testing.assert_array_equal(chosen.predict_proba(X), best.predict_proba(X))
    assert bg.MetaTreeForest(n_trees=1).fit(X, y).model_.family.alpha == pytest.approx(1 / 3)
