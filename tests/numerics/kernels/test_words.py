"""Documents in one pass: against high precision and the NumPy form, for every kind of matrix."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import bayesgen as bg
from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.numerics import kernels
from bayesgen.numerics.kernels import threads, words
from tests.selection import rest_is_slow

N_CLASSES = 5


def documents(n=150, d=40, seed=0):
    """Counts with empty documents, long ones, words that never occur; the last class is empty."""
    rng = np.random.default_rng(seed)
    X = rng.negative_binomial(0.2, 0.05, size=(n, d)) * (rng.random((n, d)) < 0.3)
    X[:, 3] = 0
    X[7] = 0
    X[8, 5] = 20_000
    X[9, 6] = 100
    return X, rng.integers(N_CLASSES - 1, size=n), rng.gamma(1.0, size=n)


def every_form(X):
    """The same counts in all kinds of memory, none of them writeable."""
    whole = sparse.csr_matrix(X)
    unsorted = whole.copy()
    for i in range(len(X)):
        own = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[own] = unsorted.indices[own][::-1].copy()
        unsorted.data[own] = unsorted.data[own][::-1].copy()
    unsorted.has_sorted_indices = False
    rows, columns = whole.nonzero()
    rest = whole.data - whole.data // 3
    twice = sparse.csr_matrix(X.shape)
    order = np.argsort(np.concatenate([rows, rows]), kind="stable")
    twice.data = np.concatenate([whole.data // 3, rest])[order].astype(float)
    twice.indices = np.concatenate([columns, columns])[order].astype(np.int32)
    twice.indptr = 2 * whole.indptr
    wide_index = sparse.csr_array(whole.astype("f4"))
    wide_index.indices, wide_index.indptr = (
        a.astype(np.int64) for a in (wide_index.indices, wide_index.indptr)
    )
    zeros = sparse.csr_matrix(X + 1.0)  # every cell stored
    zeros.data -= 1
    dense = [X.astype("f8"), X, X.astype("f4"), np.asfortranarray(X), np.repeat(X, 2, 1)[:, ::2]]
    forms = [*dense, whole, whole.astype("u2"), unsorted, twice, wide_index, zeros]
    for form in forms:
        for memory in (form.data, form.indices, form.indptr) if sparse.issparse(form) else (form,):
            if isinstance(memory, np.ndarray):
                memory.flags.writeable = False
    return forms


@pytest.mark.parametrize("form", rest_is_slow(range(11), [0, 5, 8]))
def test_both_forms_of_the_family_agree(monkeypatch, form):
    X, y, w = documents()
    X = every_form(X)[form]
    for weight, alpha in ((None, 0.01), (w, 3.0)):
        found = []
        for least in (1 << 60, 0):
            monkeypatch.setattr(kernels, "COMPILE_FROM", least)
            family = DirichletMultinomial(alpha)
            stats = family.stats(X, y, N_CLASSES, weight)
            posterior = family.resolve(stats).update(stats)
            found.append([stats.counts, stats.log_coefficient, posterior.log_predictive(X)])
        for a, b in zip(*found, strict=True):
            assert_allclose(b, a, rtol=1e-12, atol=1e-12)


def test_fractional_counts(monkeypatch):
    X, y, _ = documents()
    X = sparse.csr_matrix(np.log1p(X))
    found = []
    for least in (1 << 60, 0):
        monkeypatch.setattr(kernels, "COMPILE_FROM", least)
        family = DirichletMultinomial(0.5)
        stats = family.stats(X, y, N_CLASSES)
        found.append([stats.log_coefficient, family.resolve(stats).log_predictive(X)])
    for a, b in zip(*found, strict=True):
        assert_allclose(b, a, rtol=1e-12, atol=1e-12)


def exact_mass(x, alpha):
    """log Dirichlet-multinomial mass in 250 digits."""
    with mpmath.workdps(250):
        lg = mpmath.loggamma
        alpha = [mpmath.mpf(float(a)) for a in alpha]
        total, length = sum(alpha), mpmath.mpf(float(x.sum()))
        out = lg(length + 1) - lg(total + length) + lg(total)
        for n, a in zip(x.tolist(), alpha, strict=True):
            out += lg(a + n) - lg(a) - lg(mpmath.mpf(n) + 1)
        return float(out)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e4, 5e6, 1e12, 1e100, 1e200])
def test_masses_in_high_precision(monkeypatch, scale):
    """At 5e6 the pseudo-counts add up to 2e8, as those of a class of 2e8 words do."""
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    rng = np.random.default_rng(1)
    alpha = scale * rng.gamma(1.0, size=(2, 40)) + 1e-9
    X, _, _ = documents()
    X = X[[0, 1, 7, 8, 9]].astype(float)
    X[0, :12] = [1, 2, 3, 31, 32, 33, 63, 64, 65, 66, 255, 256]
    X[1, :15] = [1, 2, 3, 31, 32, 33, 256, 257, 10_000, 6000, 0, 0.5, 33.3, 1e6, 0]
    found = DirichletMultinomial(alpha).log_predictive(sparse.csr_matrix(X))
    expected = [[exact_mass(x, a) for a in alpha] for x in X]
    assert_allclose(found, expected, rtol=1e-12, atol=2.5e-11)


def test_tables_hold_only_the_words_that_occur():
    """A few documents over a vocabulary that would fill the memory twenty times."""
    d = 3_000_000
    X = sparse.csr_matrix(([1.0, 2.0, 1.0], ([0, 0, 1], [0, d - 1, 70])), shape=(2, d))
    alpha = np.broadcast_to(np.float64(2.0), (3, d))
    found = DirichletMultinomial(alpha).log_predictive(X)
    total = 2.0 * d
    one, both = np.log(2 / total), np.log(2 * 2 * 3 * 3) - np.log(total + np.arange(3)).sum()
    assert_allclose(found, [[both] * 3, [one] * 3], rtol=1e-9)


def test_threads_do_not_change_a_bit(monkeypatch):
    X, y, w = documents(9000, 100)
    X = sparse.csr_matrix(X)
    found = []
    for n in (1, 2, 5):
        monkeypatch.setattr(threads, "n_threads", lambda n=n: n)
        found.append(words.sums(X, y, N_CLASSES, w))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert_array_equal(a, b)


def test_no_documents_and_no_words():
    alpha = np.ones((2, 4))
    for X in (np.zeros((0, 4)), sparse.csr_matrix((0, 4))):
        assert DirichletMultinomial(alpha).log_predictive(X).shape == (0, 2)
        counts, coefficients = words.sums(X, np.zeros(0, int), 2, None)
        assert_array_equal(counts, np.zeros((2, 4)))
        assert_array_equal(coefficients, [0, 0])
    found = DirichletMultinomial(alpha).log_predictive(sparse.csr_matrix((3, 4)))
    assert_array_equal(found, np.zeros((3, 2)))


@pytest.mark.parametrize("least", [0, 1 << 60])
@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix])
def test_what_is_no_count_is_refused(monkeypatch, least, make):
    monkeypatch.setattr(kernels, "COMPILE_FROM", least)
    X, y, _ = documents()
    clf = bg.MultinomialNB().fit(X, y)
    bad = X.astype(float)
    for value, message in ((-2.0, "got -2 in row 4, column 'x2'"), (np.nan, "NaN.* in row 4")):
        bad[4, 2] = value
        for call in (lambda: bg.MultinomialNB().fit(make(bad), y), lambda: clf.predict(make(bad))):
            with pytest.raises(ValueError, match=message):
                call()
