"""Quasi-random numbers, quantiles of samples, and sums over the other classes."""

import numpy as np
import pytest
from scipy.special import gammaincinv, logsumexp
from scipy.stats import qmc

from bayesgen.numerics.special import log_odds_against_rest, log_sum_of_others
from bayesgen.predict import draws
from bayesgen.predict.draws import QuasiGenerator, Sample, block_rows, percentile_error


def generator():
    return QuasiGenerator(np.random.default_rng(3), 64)


def test_points_are_even_in_the_first_coordinates_and_any_number_can_be_asked():
    u = generator().random((64, 7, 10))
    assert u.shape == (64, 7, 10)
    cells = np.sort((u.reshape(64, 70) * 64).astype(int), axis=0)
    np.testing.assert_array_equal(cells[:, :64], np.arange(64)[:, None] * np.ones(64, dtype=int))
    assert (cells[:, 64:] != np.arange(64)[:, None]).any(axis=0).all()
    assert generator().random((5, 2)).shape == (5, 2)  # of another size: pseudo-random


def test_every_generator_of_one_parent_has_the_scramble_that_scipy_gives_it():
    for _ in range(2):  # the second time the scrambles are known
        rng, theirs = np.random.default_rng(3), np.random.default_rng(3)
        for n in (8, 8, 16):
            found = QuasiGenerator(rng, n).random((n, 64))
            np.testing.assert_allclose(found, qmc.Sobol(64, rng=theirs).random(n), atol=1e-9)


def test_restarted_it_gives_the_same_numbers_again():
    q = generator()
    once = [q.standard_normal((64, 3)), q.standard_gamma([0.5, 2.0], (64, 2)), q.random((64, 70))]
    q = q.restarted()
    again = [q.standard_normal((64, 3)), q.standard_gamma([0.5, 2.0], (64, 2)), q.random((64, 70))]
    for a, b in zip(once, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(once[2], q.random((64, 70)))


def test_gammas_beyond_the_even_coordinates_are_drawn_as_usual(monkeypatch):
    inverted = []

    def counting(a, u):
        inverted.append(u.size)
        return gammaincinv(a, u)

    monkeypatch.setattr(draws, "gammaincinv", counting)
    q = QuasiGenerator(np.random.default_rng(3), 4096)
    shape = np.linspace(0.5, 9.0, 400)
    q.standard_normal((4096, 10))
    found = q.standard_gamma(shape, (4096, 400))
    assert sum(inverted) == 54 * 4096  # inversion takes a hundred times as long
    z = (found.mean(axis=0) - shape) / np.sqrt(shape / 4096)
    assert np.abs(z[:54]).max() < 0.5  # evenly spread
    assert 0.9 < z[54:].std() < 1.1
    assert np.abs(z).max() < 5
    np.testing.assert_allclose(found.var(axis=0), shape, rtol=0.3)
    again = q.restarted()
    again.standard_normal((4096, 10))
    np.testing.assert_array_equal(again.standard_gamma(shape, (4096, 400)), found)
    assert sum(inverted) == 54 * 4096


def test_a_block_of_draws_has_a_row_at_least():
    for n_draws, n_classes in ((1 << 10, 3), (1 << 21, 2), (1 << 22, 10)):
        n = block_rows(n_draws, n_classes)
        assert n >= 1
        assert n == 1 or n * n_draws * n_classes <= 1 << 22


@pytest.mark.parametrize("n", [2, 9])  # quantiles: by partition, and by sorting
def test_quantiles_are_those_of_numpy(n):
    rng = np.random.default_rng(4)
    draws, p = rng.normal(size=(5, 40)), np.linspace(0, 1, n)
    expected = np.quantile(draws, p, axis=1, method="hazen").T
    ps = np.broadcast_to(p, (5, n))
    np.testing.assert_allclose(Sample(draws).quantile(ps), expected)
    np.testing.assert_allclose(Sample(draws, np.full((5, 40), 0.3)).quantile(ps), expected)
    each = rng.uniform(size=(5, n))  # another p for each sample
    found = Sample(draws).quantile(each)
    for own, sample, wanted in zip(found, draws, each, strict=True):
        np.testing.assert_allclose(own, np.quantile(sample, wanted, method="hazen"))


def test_a_whole_weight_is_so_many_draws():
    rng = np.random.default_rng(5)
    draws, weight = np.sort(rng.normal(size=(1, 30))), rng.integers(1, 4, size=(1, 30))
    p = np.array([[0.1, 0.5, 0.9]])
    often = np.repeat(draws[0], weight[0])
    found = Sample(draws, weight.astype(float)).quantile(p)[0]
    step = np.diff(draws[0]).max()
    np.testing.assert_allclose(found, np.quantile(often, p[0], method="hazen"), atol=step)


def test_the_others_are_summed_without_cancellation():
    a = np.random.default_rng(6).normal(size=(4, 6)) * [[1.0], [30.0], [900.0], [2.0]]
    a[3, 0] = -np.inf
    expected = [logsumexp(np.delete(a, c, axis=0), axis=0) for c in range(4)]
    np.testing.assert_allclose(log_sum_of_others(a), expected, rtol=1e-12)
    odds = log_odds_against_rest(a)
    np.testing.assert_allclose(odds[:3], (a - expected)[:3], rtol=1e-12)
    assert odds[3, 0] == -np.inf


def test_the_error_of_a_share_is_that_of_replicates():
    l = np.random.default_rng(7).normal(size=(3, 50, 8))
    below = (l <= 0.2).mean(axis=1)
    expected = below.std(axis=1, ddof=1) / np.sqrt(8)
    np.testing.assert_allclose(percentile_error(l, np.full(3, 0.2)), expected)
    even = np.full(50, 1 / 50)
    np.testing.assert_allclose(percentile_error(l, np.full(3, 0.2), even), expected)
