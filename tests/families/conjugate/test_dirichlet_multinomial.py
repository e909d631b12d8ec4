"""Documents: against SciPy, enumeration, quadrature, and 60 digits at counts of 1e12."""

import mpmath as mp
import numpy as np
import pytest
from scipy import sparse, stats

from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.families.errors import UndefinedEstimateError


def fitted(X, y, n_classes, weight=None, **prior):
    family = DirichletMultinomial(**prior)
    seen = family.stats(X, y, n_classes, weight)
    return family.resolve(seen).update(seen), seen


def digits(values):
    return [mp.mpf(float(v)) for v in values]


def exact_predictive(x, alpha):
    with mp.workdps(60):
        x, alpha = digits(x), digits(alpha)

        def rising(a, n):
            return mp.loggamma(a + n) - mp.loggamma(a) - mp.loggamma(n + 1)

        return float(sum(map(rising, alpha, x)) - rising(sum(alpha), sum(x)))


def exact_multinomial(x, alpha, t=1):
    """log mass under the probabilities alpha/sum(alpha)."""
    with mp.workdps(60):
        x, alpha = digits(x), digits(alpha)
        total = sum(alpha)
        words = sum(
            n * mp.log(a / total) - mp.loggamma(n + 1) for n, a in zip(x, alpha, strict=True)
        )
        return float(mp.loggamma(sum(x) + 1) + words)


def test_cells_stored_twice_are_added():
    parts = ([1.0, 2.0, 4.0, 1.0], [1, 1, 0, 2], [0, 3, 4])
    messy = sparse.csr_matrix(parts, shape=(2, 3))
    clean = np.array([[4, 3, 0], [0, 0, 1]])
    y = np.array([0, 1])
    posterior, seen = fitted(clean, y, 2)
    _, again = fitted(messy, y, 2)
    np.testing.assert_array_equal(again.counts, seen.counts)
    np.testing.assert_allclose(again.log_coefficient, seen.log_coefficient)
    np.testing.assert_allclose(posterior.log_predictive(messy), posterior.log_predictive(clean))
    assert messy.nnz == 4  # the user's matrix is left as it was


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        ([1, 3, 2], [0, 2 / 3, 1 / 3]),
        ([1, 1, 1], "class 1: .*flat"),
        ([5, 0.9, 5], "class 1, feature 1: .*unbounded"),
    ],
)
def test_map_at_the_edge(alpha, expected):
    family = DirichletMultinomial(np.array([[2.0, 3, 4], alpha]))
    if isinstance(expected, str):
        with pytest.raises(UndefinedEstimateError, match=expected):
            family.map()
    else:
        np.testing.assert_allclose(family.map()["theta"][1], expected)


def test_one_word_is_certain():
    family = DirichletMultinomial(np.array([[0.3]]))
    assert family.map()["theta"][0, 0] == family.mean()["theta"][0, 0] == 1
    assert family.log_predictive(np.array([[7]]))[0, 0] == pytest.approx(0, abs=1e-13)


def test_mle_of_a_class_without_words_is_undefined():
    family = DirichletMultinomial()
    seen = family.stats(np.array([[1, 2], [0, 0]]), np.array([0, 1]), 2)
    with pytest.raises(UndefinedEstimateError, match="class 1: it has no words"):
        family.mle(seen)


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
        [1e5, 3e5, 1, 0],
        [5000, 15010, 0, 0],
        [2**14 - 1, 0, 0, 0],
        [10, 30, 0, 0],
        [0, 0, 0, 1e12],
    ]
)


def test_the_prior_that_the_evidence_prefers_at_huge_counts():
    X = np.array([[1e12, 3e12, 7.0], [2e12, 6e12, 3.0]])
    y = np.zeros(2, dtype=int)
    seen = DirichletMultinomial().stats(X, y, 1)
    priors = [np.array([[1e9, 3e9, 1.0]]), np.array([[1.0, 1.0, 1.0]])]
    got = np.subtract(*[DirichletMultinomial(a).log_evidence(seen) for a in priors])
    exact = np.subtract(*[exact_predictive(X.sum(axis=0), a[0]) for a in priors])
    assert got == pytest.approx(exact, rel=1e-9)


def test_a_million_words_stay_sparse():
    rng = np.random.default_rng(0)
    X = sparse.random(30, 1_000_000, density=1e-5, format="csr", random_state=rng)
    X.data = np.ceil(4 * X.data)
    y = np.arange(30) % 2
    posterior, seen = fitted(X, y, 2)
    got = posterior.log_predictive(X[:3])
    for i in range(3):
        row = X[i]
        used = np.append(row.data, 0)
        for c in range(2):
            alpha = posterior.alpha[c, row.indices]
            rest = posterior.alpha[c].sum() - alpha.sum()
            assert got[i, c] == pytest.approx(
                exact_predictive(used, np.append(alpha, rest)), rel=1e-9
            )
    assert np.isfinite(posterior.log_evidence(seen))


@pytest.mark.parametrize("container", [np.array, sparse.csr_matrix])
@pytest.mark.parametrize("alpha", [HUGE_ALPHA, np.ones((1, 4)), np.full((1, 4), 1e-3)])
def test_huge_counts(container, alpha):
    """The plain sums of log-gammas are wrong by 1e-2 here."""
    family, X = DirichletMultinomial(alpha), container(HUGE_ROWS)
    expected = [[exact_predictive(x, a) for a in alpha] for x in HUGE_ROWS]
    close = {"rtol": 1e-9, "atol": 5e-11}  # one of these documents has probability .998
    np.testing.assert_allclose(family.log_predictive(X), expected, **close)
    expected = [[exact_multinomial(x, a) for a in alpha] for x in HUGE_ROWS]
    theta = family.mean()
    np.testing.assert_allclose(family.log_likelihood(X, theta), expected, rtol=1e-9)
    draws = {"theta": np.stack([theta["theta"]] * 2)}
    np.testing.assert_allclose(family.log_likelihood(X, draws), [expected] * 2, rtol=1e-9)
