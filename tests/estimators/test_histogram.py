"""HistogramNB: a density over the reals, the rule of its bins, bins learned or declared."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import expon, uniform

import bayesgen as bg
from bayesgen.families.errors import NoClosedFormError

EDGES = [[0.0, 1.0, 3.0], [-1.0, 2.0]]


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.gamma(1 + 2 * y[:, None], size=(n, 2)) * [1.0, -2.0]
    return X, y


def test_predictive_is_mass_times_density_within_the_bin():
    X, y = rows()
    clf = bg.HistogramNB(0.5, edges=EDGES).fit(X, y)
    # SciPy's densities within the bins of the first column; tails start at the height of a
    # bin with the width of their neighbour
    within = [expon(-0.0, 1.0), uniform(0, 1), uniform(1, 2), expon(3.0, 2.0)]
    counts = np.histogram(X[y == 1, 0], [-np.inf, 0, 1, 3, np.inf])[0]
    mass = (counts + 0.5) / (counts.sum() + 2.0)
    x = np.array([-1.7, 0.0, 0.4, 1.0, 2.9, 3.0, 8.0])
    code = np.array([0, 1, 1, 2, 2, 3, 3])
    density = [within[k].pdf(-v if k == 0 else v) for k, v in zip(code, x, strict=True)]
    new = np.column_stack([x, np.full(len(x), np.nan)])
    joint = clf.predict_joint_log_proba(new)[:, 1]
    np.testing.assert_allclose(np.exp(joint), 31 / 62 * mass[code] * density, rtol=1e-12)


@pytest.mark.parametrize("edges", [None, EDGES], ids=["quantiles", "declared"])
def test_density_integrates_to_one(edges):
    X, y = rows()
    clf = bg.HistogramNB(edges=edges).fit(X, y)
    for j, own in enumerate(clf.edges_):

        def density(v, j=j):
            row = np.full((1, 2), np.nan)
            row[0, j] = v
            return float(np.exp(clf.score_samples(row))[0])

        ends = [-np.inf, *own, np.inf]
        parts = [quad(density, a, b, limit=60)[0] for a, b in itertools.pairwise(ends)]
        assert sum(parts) == pytest.approx(1, abs=1e-8)


def test_rule_is_that_of_the_categories_of_bins():
    X, y = rows()
    X[3, 0] = X[5, 1] = np.nan
    clf = bg.HistogramNB(0.7, edges=EDGES).fit(X, y)
    bins = np.column_stack([np.digitize(X[:, j], EDGES[j]) for j in (0, 1)]).astype(float)
    bins[np.isnan(X)] = np.nan
    by_bin = bg.CategoricalNB(0.7, [range(4), range(3)]).fit(bins, y)
    np.testing.assert_allclose(clf.predict_proba(X), by_bin.predict_proba(bins), rtol=1e-12)
    # the evidence is that of the sequence of bins and of the places within them
    widths = {0: [1.0, 1.0, 2.0, 2.0], 1: [3.0, 3.0, 3.0]}
    log_within = 0.0
    for j, ends in enumerate(EDGES):
        x = X[~np.isnan(X[:, j]), j]
        scale = np.array(widths[j])[np.digitize(x, ends)]
        beyond = np.maximum(ends[0] - x, 0) + np.maximum(x - ends[-1], 0)
        log_within -= np.sum(np.log(scale) + beyond / scale)
    assert clf.log_evidence_ == pytest.approx(by_bin.log_evidence_ + log_within, rel=1e-12)


def test_bins_of_equal_mass_and_columns_with_few_values():
    n = 500
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=n), np.repeat([0.0, 1000.0], [230, 270]), np.full(n, 7.0)])
    y = rng.integers(2, size=n)
    clf = bg.HistogramNB().fit(X, y)
    first, second, third = clf.edges_
    counts = np.histogram(X[:, 0], [-np.inf, *first, np.inf])[0]
    assert len(counts) == 10  # the cube root of 1000
    assert np.ptp(counts) <= 1
    assert second == (0.0, 1000.0)
    assert third == (7.0,)
    np.testing.assert_allclose(
        clf.predict_proba(X), bg.HistogramNB().fit(X[:, :2], y).predict_proba(X[:, :2]), atol=0.02
    )
    moved = bg.HistogramNB().fit(X * 8.0 + 3.0, y)  # equivariant
    np.testing.assert_allclose(moved.predict_proba(X * 8.0 + 3.0), clf.predict_proba(X), rtol=1e-12)


def test_parts_need_declared_edges():
    X, y = rows()
    with pytest.raises(AttributeError, match=r"no attribute 'partial_fit': .* give edges="):
        bg.HistogramNB().partial_fit(X, y)
    learned = bg.HistogramNB().fit(X, y)
    with pytest.raises(NoClosedFormError, match="give edges="):
        learned.merge(bg.HistogramNB().fit(X, y))
    with pytest.raises(NoClosedFormError, match=r"fit_stream .* give edges="):
        bg.fit_stream(bg.HistogramNB(), [(X, y)], progressbar=False)
    assert learned.forget(X[:3], y[:3]).n_rows_seen_ == len(y) - 3


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ({"a": [1.0, 2.0]}, "column 'b' has none"),
        ({"a": [1.0, 2.0], "b": []}, "'b': at least one"),
        ({"a": [1.0, 2.0], "b": [2.0, 1.0]}, "'b' must be rising"),
        ({"a": [1.0, 2.0], "c": [1.0]}, "no column 'c'"),
    ],
)
def test_edges_that_are_no_edges(edges, message):
    X, y = rows()
    with pytest.raises(ValueError, match=message):
        bg.HistogramNB(edges=edges).fit(pd.DataFrame(X, columns=["a", "b"]), y)


def test_file_and_names_of_bins(tmp_path):
    X, y = rows()
    clf = bg.HistogramNB(n_bins=5).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    clf.save(tmp_path / "model.nc")
    back = bg.load(tmp_path / "model.nc")
    new = pd.DataFrame(X, columns=["a", "b"])
    np.testing.assert_array_equal(back.predict_proba(new), clf.predict_proba(new))
    assert back.edges_ == clf.edges_
    draws = clf.draw_posterior(draws=5, chains=1).posterior["theta"]
    assert "feature_category" in draws.dims
    assert str(draws.feature_category.values[0]).startswith("a, [-inf, ")


@pytest.mark.slow
def test_nuts_agrees():
    X, y = rows(40)
    clf = bg.HistogramNB(edges=EDGES).fit(X, y)
    found = bg.validate(clf, X, y, draws=500, chains=2, random_state=1, progressbar=False)
    assert found.passed, str(found)
