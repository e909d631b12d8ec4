"""Information of Normal columns against quadrature.

Default priors under changes of unit: ``tests/laws/test_default_priors.py``.
"""

import numpy as np
import pytest
from scipy import integrate, special, stats

from bayesgen.families.shared.gaussian import gaussian_information


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
