"""Compiled forms agree with the NumPy forms of the families to 1e-12, on rows of every kind."""

import numpy as np
import pytest
from scipy import sparse

from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.families.conjugate.normal_inverse_gamma import GaussianStats, NormalInverseGamma
from bayesgen.families.shared import codes
from bayesgen.numerics import kernels
from bayesgen.numerics import rows as passes
from bayesgen.numerics.kernels import threads
from tests.laws.cases import fits_missing, pytest_generate_tests, with_missing  # noqa: F401

NEVER = 1 << 62


@pytest.fixture
def both(monkeypatch):
    """Return a function that asks a question of the compiled form and of the NumPy form."""

    def ask(question):
        answers = []
        for limit in (0, NEVER):
            monkeypatch.setattr(kernels, "COMPILE_FROM", limit)
            answers.append(question())
        return answers

    return ask


def agree(compiled, plain, tolerance=1e-12):
    scale = max(1.0, float(np.abs(plain[np.isfinite(plain)]).max(initial=1.0)))
    np.testing.assert_allclose(compiled, plain, rtol=tolerance, atol=tolerance * scale)


def arrays(stats):
    return [value for value in vars(stats).values() if isinstance(value, np.ndarray)]


def test_statistics_and_predictives_of_every_family(case, both):
    X, y = case.rows(70)
    if fits_missing(case):
        X = with_missing(X, case.rng(5))
    weight = case.rng(6).uniform(0.5, 2.0, len(y))

    def question():
        stats = case.stats(X, y, weight)
        posterior = case.prior.update(stats)
        return stats, posterior.log_predictive(X)

    (stats, log_predictive), (plain_stats, plain) = both(question)
    for values in zip(arrays(stats), arrays(plain_stats), strict=True):
        agree(*values)
    agree(log_predictive, plain)


def test_threads_change_no_bit(case, monkeypatch):
    blocks = passes.row_blocks
    monkeypatch.setattr(passes, "row_blocks", lambda n, width, cells=0: blocks(n, 1, 9))
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    X, y = case.rows(70)
    answers = []
    for n in (1, 3):
        monkeypatch.setattr(threads, "n_threads", lambda n=n: n)
        stats = case.stats(X, y)
        answers.append((*arrays(stats), case.prior.update(stats).log_predictive(X)))
    for one, three in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("dtype", [float, np.int64, np.uint8])
@pytest.mark.parametrize("largest", [1, 3])
def test_bits_of_a_large_table(dtype, largest, monkeypatch):
    monkeypatch.setattr(threads, "n_threads", lambda: 3)
    rng = np.random.default_rng(8)
    X, y = rng.integers(0, largest, (120_000, 20), endpoint=True), np.arange(120_000) % 3
    bits, is_finite = codes.threshold_bits(X.astype(dtype), 0.5)
    np.testing.assert_array_equal(bits, X > 0)
    assert bits.dtype == np.uint8
    assert is_finite
    sums = [(X[y == c] > 0).sum(axis=0) for c in range(3)]
    np.testing.assert_array_equal(passes.class_sums(bits, y, 3), sums)
    weight = np.full(len(y), 2.0)
    np.testing.assert_array_equal(passes.class_sums(bits, y, 3, weight), 2 * np.array(sums))


def test_student_t_where_squares_overflow_and_columns_differ(both):
    rng = np.random.default_rng(2)
    X = with_missing(rng.normal(size=(300, 150)), rng)
    posterior = NormalInverseGamma().resolve(
        stats := GaussianStats.of_rows(X, np.arange(300) % 2, 2)
    )
    posterior = posterior.update(stats)
    X[5, 7], X[6, 0], X[7] = 1e200, -1e170, 1e90
    agree(*both(lambda: posterior.log_predictive(X)))


@pytest.mark.parametrize("dtype", [float, np.int64, np.uint8])
def test_codes_never_seen_and_missing(both, dtype):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 7, (200, 5)).astype(dtype)
    if dtype is float:
        X[3, 1], X[4, 2], X[5, 0] = np.nan, 2.5, -1.0
    table = rng.normal(size=(4, 2, 5, 6))  # four codes, another number, a missing cell
    table[0, 1, 2, 3] = -np.inf
    agree(*both(lambda: codes.look_up(X, table)))
    whole = np.nan_to_num(np.abs(np.trunc(X))).astype(dtype)
    agree(*both(lambda: codes.count_codes(whole, np.arange(200) % 3, 3, 7)))


def test_a_code_that_is_none_is_named(both):
    X = np.zeros((50, 2))
    X[31, 1] = 4.5
    for limit in (0, NEVER):
        with pytest.raises(ValueError, match=r"row 31, feature 1: 4.5 is not one of"):
            kernels_at(limit, lambda: codes.count_codes(X, np.zeros(50, int), 1, 3))


def kernels_at(limit, question):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "COMPILE_FROM", limit)
        return question()


def test_counts_that_are_large_or_no_whole_numbers(both):
    rng = np.random.default_rng(4)
    X = rng.poisson(4.0, (200, 3)).astype(float)
    X[2, 0], X[3, 1], X[4, 2] = 1e6, 2.5, np.nan
    family = GammaPoisson(shape=rng.uniform(0.5, 9, (2, 3)), rate=rng.uniform(0.5, 9, (2, 3)))
    agree(*both(lambda: family.log_predictive(X)))


@pytest.mark.parametrize("largest", [1, 2])
def test_documents_of_words_that_occur_once_or_twice(both, largest):
    rng = np.random.default_rng(8)
    X = rng.integers(0, largest, (70, 30), endpoint=True)
    family = DirichletMultinomial(rng.uniform(0.1, 3.0, (3, 30)))
    agree(*both(lambda: family.log_predictive(X)))


@pytest.mark.parametrize("form", ["dense", "sorted", "in parts"])
def test_documents_with_large_counts_and_long_ones(both, form):
    rng = np.random.default_rng(5)
    X = rng.poisson(0.4, (120, 30)).astype(float)
    X[1, 2], X[2, 3], X[3] = 300.0, 2.5, 900.0
    X[4] = 0.0
    y = np.arange(120) % 2
    if form != "dense":
        X = sparse.csr_matrix(X)
    if form == "in parts":  # a cell stored twice is the sum of both
        order = rng.permutation(2 * X.nnz)
        order = order[np.argsort(np.tile(X.tocoo().row, 2)[order], kind="stable")]
        data, columns = np.tile(X.data, 2)[order], np.tile(X.indices, 2)[order]
        X = sparse.csr_matrix((data, columns, 2 * X.indptr), shape=X.shape)
    family = DirichletMultinomial(rng.uniform(0.1, 3.0, (2, 30)))
    compiled, plain = both(lambda: family.stats(X, y, 2))
    agree(compiled.counts, plain.counts)
    agree(compiled.log_coefficient, plain.log_coefficient)
    agree(*both(lambda: family.log_predictive(X)))
