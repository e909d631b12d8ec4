"""The cumulant generating function of the class log densities."""

import numpy as np
import pytest

from tests.laws.cases import (
    EXACT,
    close,
    defaults,
    has_cells_of_both_signs,
    has_defaults,
    has_real_columns,
    stack,
    with_missing,
    within_mcse,
)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_cgf_at_a_unit_vector_is_the_log_predictive(case, dtype):
    posterior, X, _, _ = case.fitted()
    expected = posterior.log_predictive(X)
    for c in range(case.n_classes):
        t = np.eye(case.n_classes, dtype=dtype)[c]
        value = posterior.cgf(X, t)
        assert value.dtype == dtype
        close(value, expected[:, c].astype(dtype))
        close(posterior.cgf(X, 0 * t), np.zeros(len(expected), dtype), 1e-13)


def test_cgf_takes_one_t_for_all_rows_or_one_for_each(case):
    posterior, X, _, _ = case.fitted()
    rng = case.rng(5)
    K, N, C = 4, X.shape[0], case.n_classes
    t = rng.random((K, C)) + 1j * rng.normal(size=(K, C))
    for values in (t, t.real):
        one_by_one = np.array([posterior.cgf(X, values[k]) for k in range(K)])
        assert one_by_one.shape == (K, N)
        close(posterior.cgf(X, values[:, None, :]), one_by_one, 1e-12)
        each = np.broadcast_to(values[:, None, :], (K, N, C))
        close(posterior.cgf(X, each), one_by_one, 1e-12)
        own = posterior.cgf(X, values[np.arange(N) % K])  # (N, C): a t of each row's own
        close(own, one_by_one[np.arange(N) % K, np.arange(N)], 1e-12)
        lead = posterior.cgf(X, each.reshape(2, 2, N, C))
        close(lead, one_by_one.reshape(2, 2, N), 1e-12)


def test_cgf_along_one_class_is_that_of_the_class_alone(case):
    """As intervals of many classes ask for it."""
    posterior, X, _, _ = case.fitted()
    s = 1j * np.array([0.3, 2.0])[:, None, None]
    for c in range(case.n_classes):
        own = posterior.with_blocks([b.family.at("class", [c]) for b in posterior.blocks()])
        close(own.cgf(X, s), posterior.cgf(X, s * np.eye(case.n_classes)[c]), 1e-12)


def test_cgf_is_conjugate_symmetric_and_a_characteristic_function(case):
    posterior, X, _, _ = case.fitted()
    rng = case.rng(6)
    shape = (6, 1, case.n_classes)
    t = rng.random(shape) + 1j * rng.normal(size=shape) * 3
    close(posterior.cgf(X, t.conj()), posterior.cgf(X, t).conj(), 1e-12)
    scale = np.array([1e-3, 0.1, 1.0, 3.0, 10.0, 100.0])[:, None, None]
    modulus = posterior.cgf(X, 1j * scale * rng.normal(size=shape)).real
    assert np.all(modulus <= 1e-11)


def test_cgf_is_one_branch_of_the_logarithm(case):
    """Along a ray of imaginary t there is no jump, as the logarithm of a product would make."""
    X, y = case.rows(6)
    prior, stats = case.prior, case.stats(X, y)
    if has_real_columns(case) and has_defaults(case) and has_cells_of_both_signs(case):
        # classes far apart under a prior that lets them, and rows far from each
        far = 1e3 * case.rng(20).normal(size=X.shape)
        stats = case.stats(X + far[y], y)
        prior, X = defaults(case).resolve(stats), stack([X + far[y], far])
    posterior = prior.update(stats)
    rows = np.arange(X.shape[0])
    grid = np.geomspace(1e-8, 8, 240)  # far rows turn at once, near ones slowly
    for direction in (np.ones(case.n_classes), case.rng(18).normal(size=case.n_classes)):

        def along(s, u=1j * direction):
            return posterior.cgf(X, s[..., None] * u)

        path = along(np.repeat(grid[:, None], X.shape[0], axis=1))  # (240, N)
        suspect = np.abs(np.diff(path, n=2, axis=0)).argmax(axis=0) + np.arange(2)[:, None]
        for k in suspect:  # the step before and the step after the sharpest bend
            left, right = grid[k], grid[k + 1]
            at_left, at_right = path[k, rows], path[k + 1, rows]
            for _ in range(30):
                middle = (left + right) / 2
                at_middle = along(middle)
                here = np.abs(at_middle - at_left) > np.abs(at_right - at_middle)
                left, at_left = np.where(here, (left, at_left), (middle, at_middle))
                right, at_right = np.where(here, (middle, at_middle), (right, at_right))
                left, right = left.real, right.real
                if (largest := np.abs(at_right - at_left).max()) < 0.1:
                    break  # a jump would be as large in every interval around it
            assert largest < 0.1


def test_cgf_at_powers_is_the_evidence_of_rows_that_often(case, missing):
    """E prod_c p(x | theta_c)^t_c: t_c rows x in class c, to sums of t far above 2."""
    posterior, _, _, _ = case.fitted()
    X, _ = case.rows(4, salt=4)
    if missing:
        X = with_missing(X, case.rng())
    C, labels = case.n_classes, np.arange(case.n_classes)
    whole = case.rng(22).integers(1, 4, size=(6, C))
    whole[:3] = [3 * np.eye(C, dtype=int)[0], np.full(C, 2), 40 * np.eye(C, dtype=int)[-1]]
    powers = 5 * case.rng(23).random((3, C))  # a weight is a power of the likelihood
    t = np.concatenate([whole, powers])[:, None]
    found = posterior.cgf(X, t)
    of_each_row = posterior.cgf(X, np.repeat(t, X.shape[0], axis=1) + 0j)
    for i in range(X.shape[0]):
        row = X[i : i + 1]
        of_rows = [stack([row] * int(n.sum())) for n in whole]
        stats = [case.stats(x, np.repeat(labels, n)) for x, n in zip(of_rows, whole, strict=True)]
        stats += [case.stats(stack([row] * C), labels, t) for t in powers]
        expected = np.array([posterior.log_evidence(s) for s in stats])
        close(found[:, i], expected)
        close(of_each_row[:, i], expected + 0j)


def test_cgf_after_a_row_is_that_before_it_one_step_on(case):
    """E exp(a_c + t.a | D) = p(x | c, D) E exp(t.a | D and the row): complex t of any size."""
    posterior, _, _, _ = case.fitted()
    X, _ = case.rows(3, salt=5)
    rng = case.rng(24)
    t = 6 * rng.random((5, case.n_classes)) + 1j * rng.normal(size=(5, case.n_classes))
    predictive = posterior.log_predictive(X)
    for i in range(X.shape[0]):
        row = X[i : i + 1]
        for c in range(case.n_classes):
            after = posterior.update(case.stats(row, np.array([c]))).cgf(row, t[:, None])[:, 0]
            before = posterior.cgf(row, (t + np.eye(case.n_classes)[c])[:, None])[:, 0]
            gap = before - after
            turns = 2 * np.pi * np.round((gap.imag) / (2 * np.pi))  # a logarithm
            scale = np.abs(before) + np.abs(after)
            assert np.all(np.abs(gap - 1j * turns - predictive[i, c]) <= EXACT * (1 + scale))


def test_cgf_is_not_finite_outside_its_domain(case):
    posterior, X, _, _ = case.fitted()
    draws = posterior.draw(case.rng(), 8)
    random = np.ptp(posterior.log_likelihood(X, draws), axis=0) > 1e-9  # (N, C)
    for c in range(case.n_classes):
        with np.errstate(all="ignore"):
            value = posterior.cgf(X, -1234.5 * np.eye(case.n_classes)[c])
        assert not np.isfinite(value[random[:, c]]).any()


def test_cgf_derivatives_at_zero_are_the_moments_of_the_log_likelihood(case):
    case = case.sized(2, 2)
    posterior, _, _, _ = case.fitted(40)
    X, _ = case.rows(5, salt=3)
    h = 1e-3  # truncation and rounding both stay below 1e-5 of the value
    e = np.eye(2)

    def curvature(direction):  # Re K(i h u) is even in h
        near, far = (posterior.cgf(X, 1j * step * direction).real / step**2 for step in (h, 2 * h))
        return -2 * (4 * near - far) / 3

    gradient = np.array([posterior.cgf(X, 1j * h * u).imag / h for u in e])
    v0, v1, v01 = curvature(e[0]), curvature(e[1]), (curvature(e[0] + e[1]))
    hessian = np.array([[v0, (v01 - v0 - v1) / 2], [(v01 - v0 - v1) / 2, v1]])

    draws = posterior.log_likelihood(X, posterior.draw(case.rng(7), 4000))  # (S, N, C)
    scale = draws.std(axis=0)
    centred = draws - gradient.T
    within_mcse(centred / scale, np.zeros_like(scale), "mean of log-likelihood")
    products = centred[..., :, None] * centred[..., None, :]
    norm = scale[..., :, None] * scale[..., None, :]
    within_mcse(products / norm, np.moveaxis(hessian, -1, 0) / norm, "covariance")
