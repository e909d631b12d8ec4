"""Bits in one pass against plain Python and the NumPy form, for every kind of array."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayesgen as bg
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.shared.codes import Thresholded, first_invalid_bit
from bayesgen.numerics import kernels
from bayesgen.numerics.kernels import codes, threads
from tests.selection import rest_is_slow

N_CLASSES = 4


@pytest.fixture
def always_compiled(monkeypatch):
    """The compiled form whatever the size."""
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)


def rows(n=203, d=9, missing=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < rng.random(d)).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, rng.integers(N_CLASSES - 1, size=n), rng.gamma(1.0, size=n)  # the last class is empty


def every_form(X):
    """The same numbers in all kinds of memory, none of them writeable."""
    wide = np.empty((2 * len(X), 3 * X.shape[1]))
    wide[::2, 1::3] = X
    whole = np.nan_to_num(X)
    forms = [
        X,
        X.astype("f4"),
        X.astype("f2"),
        np.asfortranarray(X),
        wide[::2, 1::3],
        X[::-1][::-1],
    ]
    forms += [X.astype(">f8"), X.astype(np.longdouble)]
    forms += [whole.astype(t) for t in (bool, "u1", "i1", "u2", "i4", "i8", "u8", ">i4")]
    for form in forms:
        form.flags.writeable = False
    return forms


# the others are float32 and int64, for which the kernels are compiled anew
every_form_of_memory = pytest.mark.parametrize(
    "form", rest_is_slow(range(16), {*range(16)} - {1, 13})
)


def counted(X, y, w, c, j, what):
    """By a loop over plain Python numbers."""
    return sum(w[i] for i in range(len(y)) if y[i] == c and what(float(X[i, j])))


@pytest.mark.parametrize("weighted", [False, True])
@every_form_of_memory
def test_counts_by_class(form, weighted):
    X, y, w = rows()
    X = every_form(X)[form]
    weight = w if weighted else None
    ones, missing = codes.ones_and_missing(X, y, N_CLASSES, weight, 0.0)
    each = w if weighted else np.ones(len(y))
    for c, j in product(range(N_CLASSES), (0, 4, 8)):
        assert ones[c, j] == pytest.approx(counted(X, y, each, c, j, lambda v: v > 0), rel=1e-12)
        assert missing[c, j] == pytest.approx(
            counted(X, y, each, c, j, lambda v: v != v), rel=1e-12
        )


@every_form_of_memory
def test_sums_of_log_masses(form):
    X, _, _ = rows(missing=0.03)
    X[5] = np.nan
    X = every_form(X)[form]
    p = np.random.default_rng(1).beta(0.2, 0.2, size=(3, X.shape[1]))
    on, off = np.log(p), np.log1p(-p)
    out = codes.log_masses(X, on, off, 0.5)
    expected = [
        [
            sum(on[c, j] if v == 1 else off[c, j] for j, v in enumerate(x) if v == v)
            for c in range(3)
        ]
        for x in X.tolist()
    ]
    assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 3, 4, 5])
def test_few_rows(n):
    X, y, _ = rows(n, missing=0.0)
    ones, missing = codes.ones_and_missing(X, y, N_CLASSES, None, 0.0)
    assert_array_equal(ones, np.eye(N_CLASSES)[y].T @ X)
    assert not missing.any()
    table = np.arange(2.0 * X.shape[1]).reshape(2, -1)
    assert_allclose(codes.log_masses(X, table, -table, 0.0), (2 * X - 1) @ table.T, rtol=1e-12)


def test_an_impossible_bit_is_impossible_and_an_impossible_zero_too():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [np.nan, 0.0], [np.nan, np.nan], [1.0, 1.0]])
    with np.errstate(divide="ignore"):
        on, off = np.log([[0.0, 1.0]]), np.log1p([[-0.0, -1.0]])
    expected = [[-np.inf], [0.0], [-np.inf], [0.0], [-np.inf]]
    assert_array_equal(codes.log_masses(X, on, off, 0.0), expected)


@pytest.mark.parametrize(
    "threshold", [-1.5, -1.0, 0.0, 0.3, 0.5, 1.0, 2.7, 1e6, 1e200, 300.0, 2.0**70]
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "u1", "i1", "i8", "u8", bool])
def test_a_threshold_compares_as_numpy_does(dtype, threshold):
    values = np.array([-1e200, -2, -1, -0.0, 0, 0.3, 0.5, 1, 2, 3, 1e6, 255, 1e200])
    if dtype in ("f4", "f2"):
        values = values[np.abs(values) < 1e4]
    elif dtype != "f8":
        values = np.abs(values[np.abs(values) < 128])
    X = values.astype(dtype)[:, None]
    with np.errstate(over="ignore"):
        expected = Thresholded(X, threshold)[:]
    with np.errstate(over="ignore"):
        ones, _ = codes.ones_and_missing(X, np.arange(len(X)), len(X), None, threshold)
        out = codes.log_masses(X, np.array([[2.0]]), np.array([[3.0]]), threshold)
    assert_array_equal(ones, expected)
    assert_array_equal(out, 3 - expected.astype(float))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1"])
def test_the_first_invalid_cell_is_named(dtype):
    X = np.nan_to_num(rows(700, 600)[0]).astype(dtype)
    assert codes.first_invalid(X) is None
    X[650, 7] = X[650, 9] = X[699, 0] = 3
    assert codes.first_invalid(X) == first_invalid_bit(X) == (650, 7)


@pytest.mark.parametrize("row", [0, 3, 698, 699])
def test_infinity_is_refused_where_it_stands(row):
    X, y, _ = rows(700, 600)
    X[row, 7] = -np.inf
    with pytest.raises(codes.InfiniteCellError, match=f"infinity: row {row}, column 7"):
        codes.ones_and_missing(X, y, N_CLASSES, None, 0.0)
    with pytest.raises(codes.InfiniteCellError, match=f"infinity: row {row}, column 7"):
        codes.log_masses(X, X[:2], X[:2], 0.0)


def test_threads_do_not_change_a_bit(monkeypatch):
    X, y, w = rows(3000, 400)
    table = np.random.default_rng(2).normal(size=(3, 400))
    found = []
    for n in (1, 2, 5):
        monkeypatch.setattr(threads, "n_threads", lambda n=n: n)
        found.append(
            [
                *codes.ones_and_missing(X, y, N_CLASSES, w, 0.0),
                codes.log_masses(X, table, -table, 0),
            ]
        )
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert_array_equal(a, b)


# ------------------------------------------------------------------ the family and its classifier


def test_both_forms_of_the_family_agree(monkeypatch):
    X, y, w = rows()
    for form in every_form(X):
        found = []
        for least in (1 << 60, 0):
            monkeypatch.setattr(kernels, "COMPILE_FROM", least)
            family = BetaBernoulli(0.3, 0.7)
            stats = family.stats(form, y, N_CLASSES, w)
            posterior = family.resolve(stats).update(stats)
            plug_in = {"theta": np.where(posterior.mean()["theta"] > 0.6, 1.0, 0.0)}
            found.append(
                [
                    stats.ones,
                    stats.zeros,
                    posterior.log_predictive(form),
                    posterior.log_likelihood(form, posterior.mean()),
                    posterior.log_likelihood(form, plug_in),
                ]
            )
        for a, b in zip(*found, strict=True):
            assert_allclose(b, a, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("least", [0, 1 << 60])
def test_what_is_no_bit_is_refused(monkeypatch, least):
    monkeypatch.setattr(kernels, "COMPILE_FROM", least)
    X, y, _ = rows()
    X[17, 3] = 2.0
    family = BetaBernoulli(np.ones((2, 9)), np.ones((2, 9)))
    for call in (
        lambda: family.stats(X, y, N_CLASSES),
        lambda: family.log_predictive(X),
        lambda: family.log_likelihood(X, family.mean()),
    ):
        with pytest.raises(ValueError, match="row 17, feature 3 is 2"):
            call()


@pytest.mark.parametrize("binarize", rest_is_slow([-0.5, 0.0, 0.4, 1.0], [0.0, 0.4]))
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_the_classifier_is_the_same_at_every_size(monkeypatch, binarize, missing):
    rng = np.random.default_rng(3)
    X, y, w = rows(missing=missing)
    X = X + np.where(rng.random(X.shape) < 0.5, rng.normal(size=X.shape), 0.0)
    found = []
    for least in (1 << 60, 0):
        monkeypatch.setattr(kernels, "COMPILE_FROM", least)
        clf = bg.BernoulliNB(binarize=binarize).fit(X, y, w)
        draws = clf.draw_posterior(400)
        found.append(
            [
                clf.stats_.features.ones,
                clf.predict_log_proba(X),
                clf.predict_log_proba(X, method="posterior_mean"),
                clf.predict_proba(X, posterior=draws),
                clf.score_samples(X),
            ]
        )
    for a, b in zip(*found, strict=True):
        assert_allclose(b, a, rtol=1e-12)


def test_a_row_of_bits_means_the_same_alone_and_among_others():
    """0 and 1 are compared with the threshold like any other number."""
    X, y = np.array([[0.0, 5.0], [9.0, 1.0], [1.0, 1.0], [7.0, 6.0]]), [0, 1, 0, 1]
    clf = bg.BernoulliNB(binarize=4.0).fit(X, y)
    assert_array_equal(clf.predict_proba(X[2:3])[0], clf.predict_proba(X)[2])


def test_the_classifier_refuses_infinity_at_every_size(always_compiled):
    X, y, _ = rows()
    clf = bg.BernoulliNB().fit(X, y)
    X[3, 1] = np.inf
    for call in (
        lambda: bg.BernoulliNB().fit(X, y),
        lambda: bg.BernoulliNB(binarize=None).fit(X, y),
        lambda: clf.predict_proba(X),
        lambda: clf.predict_proba(X, method="map"),
        lambda: clf.predict_proba(X, posterior=clf.draw_posterior(10)),
        lambda: clf.predict_interval(X),
    ):
        with pytest.raises(ValueError, match="Input X contains infinity"):
            call()


def test_without_a_threshold_the_cell_that_is_no_bit_is_named(always_compiled):
    X, y, _ = rows()
    X[3, 1] = 4.0
    with pytest.raises(ValueError, match="got 4 in row 3, column 'x1'; give a threshold"):
        bg.BernoulliNB(binarize=None).fit(X, y)
