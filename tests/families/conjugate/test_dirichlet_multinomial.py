"""Documents: information of a token, 60 digits at counts of 1e12, edges of the support."""

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse, stats

from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial


def exact_predictive(x, alpha):
    with mp.workdps(60):
        x, alpha = ([mp.mpf(float(v)) for v in values] for values in (x, alpha))

        def rising(a, n):
            return mp.loggamma(a + n) - mp.loggamma(a) - mp.loggamma(n + 1)

        return float(sum(map(rising, alpha, x)) - rising(sum(alpha), sum(x)))


def exact_multinomial(x, alpha):
    """Log mass under the probabilities alpha/sum(alpha)."""
    with mp.workdps(60):
        x, alpha = ([mp.mpf(float(v)) for v in values] for values in (x, alpha))
        words = [
            n * mp.log(a / sum(alpha)) - mp.loggamma(n + 1) for n, a in zip(x, alpha, strict=True)
        ]
        return float(mp.loggamma(sum(x) + 1) + sum(words))


def test_cells_stored_twice_are_added():
    parts = ([1.0, 2.0, 4.0, 1.0], [1, 1, 0, 2], [0, 3, 4])
    messy, clean = sparse.csr_matrix(parts, shape=(2, 3)), np.array([[4, 3, 0], [0, 0, 1]])
    family, y = DirichletMultinomial(np.ones((2, 3))), np.array([0, 1])
    stats_of_messy, stats_of_clean = (family.stats(X, y, 2) for X in (messy, clean))
    np.testing.assert_array_equal(stats_of_messy.counts, stats_of_clean.counts)
    np.testing.assert_allclose(stats_of_messy.log_coefficient, stats_of_clean.log_coefficient)
    np.testing.assert_allclose(family.log_predictive(messy), family.log_predictive(clean))
    assert messy.nnz == 4  # the user's matrix is left as it was


def test_lengths_are_not_summed_in_float32():
    X = np.array([[2.0**24, 1.0, 1.0], [0.3, 0.7, 5.0]], dtype=np.float32)
    family = DirichletMultinomial(np.array([[1.0, 2.0, 3.0], [2.0, 0.5, 9.0]]))
    expected = family.log_predictive(X.astype(np.float64))
    np.testing.assert_allclose(family.log_predictive(X), expected, rtol=1e-12)
    np.testing.assert_allclose(family.log_predictive(sparse.csr_matrix(X)), expected, rtol=1e-12)


def test_one_word_is_certain():
    family = DirichletMultinomial(np.array([[0.3]]))
    assert family.map()["theta"][0, 0] == family.mean()["theta"][0, 0] == 1
    assert family.log_predictive(np.array([[7]]))[0, 0] == pytest.approx(0, abs=1e-13)


def test_shares_of_information_add_up_to_that_of_a_token():
    theta = np.random.default_rng(0).dirichlet(np.ones(5), size=3)
    pi = np.array([0.2, 0.3, 0.5])
    joint = pi[:, None] * theta
    expected = stats.entropy(pi) + stats.entropy(joint.sum(axis=0)) - stats.entropy(joint.ravel())
    shares = DirichletMultinomial(np.ones((3, 5))).information({"theta": theta}, pi)
    assert shares.sum() == pytest.approx(expected, rel=1e-12)
    assert np.all(shares >= 0)


HUGE_ALPHA = np.array([[1e12, 3e12, 5, 0.3], [1e12 + 1e6, 3e12, 8, 2.0], [1e12, 1e3, 1e3, 1e5]])
HUGE_ROWS = np.array(
    [
        [1e12, 3e12, 0, 0],
        [1e12, 3e12 + 1e5, 3, 0],
        [2.5e11, 7.5e11, 0, 2.5],
        [5000, 15010, 0, 0],
        [2**14 - 1, 0, 0, 0],
        [0, 0, 0, 1e12],
    ]
)


@pytest.mark.parametrize("container", [np.array, sparse.csr_matrix])
@pytest.mark.parametrize("alpha", [HUGE_ALPHA, np.ones((1, 4)), np.full((1, 4), 1e-3)])
def test_huge_counts(container, alpha):
    """The plain sums of log-gammas are wrong by 1e-2 here."""
    family, X = DirichletMultinomial(alpha), container(HUGE_ROWS)
    expected = [[exact_predictive(x, a) for a in alpha] for x in HUGE_ROWS]
    # one of these documents has probability .998
    np.testing.assert_allclose(family.log_predictive(X), expected, rtol=1e-9, atol=5e-11)
    expected = [[exact_multinomial(x, a) for a in alpha] for x in HUGE_ROWS]
    np.testing.assert_allclose(family.log_likelihood(X, family.mean()), expected, rtol=1e-9)


def test_the_prior_that_the_evidence_prefers_at_huge_counts():
    X, y = np.array([[1e12, 3e12, 7.0], [2e12, 6e12, 3.0]]), np.zeros(2, dtype=int)
    priors = np.array([[[1e9, 3e9, 1.0]], [[1.0, 1.0, 1.0]]])
    seen = DirichletMultinomial().stats(X, y, 1)
    gain = np.subtract(*[DirichletMultinomial(a).log_evidence(seen) for a in priors])
    exact = np.subtract(*[exact_predictive(X.sum(axis=0), a[0]) for a in priors])
    assert gain == pytest.approx(exact, rel=1e-9)


def test_a_million_words_stay_sparse():
    X = sparse.random(30, 1_000_000, density=1e-5, format="csr", rng=np.random.default_rng(0))
    X.data = np.ceil(4 * X.data)
    family, y = DirichletMultinomial(), np.arange(30) % 2
    seen = family.stats(X, y, 2)
    posterior = family.resolve(seen).update(seen)
    log_p = posterior.log_predictive(X[:2])
    for i, c in np.ndindex(2, 2):
        alpha = posterior.alpha[c, X[i].indices]
        other_words = posterior.alpha[c].sum() - alpha.sum()
        exact = exact_predictive(np.append(X[i].data, 0), np.append(alpha, other_words))
        assert log_p[i, c] == pytest.approx(exact, rel=1e-9)
    assert np.isfinite(posterior.log_evidence(seen))
