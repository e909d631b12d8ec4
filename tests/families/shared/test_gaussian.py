"""What the Gaussian families share, against quadrature and under changes of unit."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from bayesgen.families.shared.gaussian import gaussian_information, unit_information
from bayesgen.numerics.rows import class_counts, class_sums


def test_gaussian_information_against_adaptive_quadrature():
    mu = np.array([[0.0, 0.0, 3.0, 1e4], [0.5, 0.0, -2.0, -1e4], [1.0, 0.0, 0.0, 0.0]])
    sigma2 = np.array([[1.0, 1.0, 1e-4, 1.0], [1.0, 1.0, 4.0, 2.0], [1.0, 1.0, 1.0, 3.0]])
    pi = np.array([0.5, 0.3, 0.2])
    nats = gaussian_information(mu, sigma2, pi)
    for j in (0, 2):

        def integrand(x, j=j):
            p = stats.norm.pdf(x, mu[:, j], np.sqrt(sigma2[:, j]))
            mix = pi @ p
            return float(pi @ special.xlogy(p, np.where(p > 0, p / mix, 1.0))) if mix > 0 else 0.0

        points = np.concatenate([mu[:, j] + k * np.sqrt(sigma2[:, j]) for k in (-4, 0, 4)])
        exact, _ = integrate.quad(integrand, -30, 30, points=points, limit=500, epsabs=1e-12)
        assert nats[j] == pytest.approx(exact, abs=1e-9)
    assert nats[1] == pytest.approx(0.0, abs=1e-12)  # the classes are alike
    assert nats[3] == pytest.approx(stats.entropy(pi), abs=1e-10)  # the classes are apart
    one = gaussian_information(mu, sigma2, np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(one, 0.0, atol=1e-12)


def test_unit_information_is_equivariant_and_positive():
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(12, 3)), np.arange(12) % 3

    def of(X, shift):
        n = class_counts(y, 3)[:, None]
        mean = class_sums(X, y, 3) / n
        scatter = class_sums((X - mean[y]) ** 2, y, 3)
        return unit_information(n, mean - shift, scatter, shift)

    here = of(X, np.zeros(3))
    scale, move = np.array([-2.0, 1e3, 0.1]), np.array([5.0, -1e3, 0.0])
    there = of(X * scale + move, move + 1.0)
    np.testing.assert_allclose(there.variance, here.variance * scale**2, rtol=1e-9)
    np.testing.assert_allclose(there.mean + move + 1.0, here.mean * scale + move, atol=1e-9)
    assert not there.constant.any()
    within = of(X, np.zeros(3)).variance
    assert np.all((within > 0.2) & (within < 5))
    flat = of(np.full((12, 3), 1 / 3), np.zeros(3))
    assert flat.constant.all()
    assert np.all(flat.variance > 0)
