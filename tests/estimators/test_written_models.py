"""Models that had a classifier of their own, written in PyMC: the numbers which that gave.

The reference probabilities are by the classes of commit e6f3f570, 8000 draws of NUTS each.
"""

import numpy as np
import pytest

import bayesgen as bg

pm = pytest.importorskip("pymc")
pt = pytest.importorskip("pytensor.tensor")

N = 24
RNG = np.random.default_rng(11)
Y = np.arange(N) % 2
REAL = RNG.normal(size=(N, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]]) * [1.0, 5.0]
REAL = REAL + Y[:, None] * [1.0, 2.0]
P_WORD = np.array([[0.6, 0.2, 0.1, 0.1], [0.2, 0.5, 0.1, 0.2]])
WORDS = np.stack([RNG.multinomial(12, RNG.dirichlet(4 * P_WORD[k])) for k in Y])
LETTERS = np.where(RNG.random(N) < 0.6, 2 * Y, RNG.integers(0, 4, N))
NEW_WORDS = np.array([[6, 3, 2, 1], [1, 7, 0, 4], [3, 3, 3, 3]])


def label():
    return pm.Categorical("label", pm.Dirichlet("weights", np.ones(2)), observed=Y)


def scales_and_correlations():
    """LKJ discriminant: Normal means, half-Normal scales, LKJ correlations."""
    m = np.median(REAL, axis=0)
    low, high = np.quantile(
        REAL - np.stack([np.median(REAL[c == Y], axis=0) for c in (0, 1)])[Y], [0.25, 0.75], axis=0
    )
    s = (high - low) / 1.349
    y = label()
    mu = pm.Normal("mu", m, np.sqrt(10) * s, shape=(2, 2))
    sigma = pm.HalfNormal("sigma", 2.5 * s, shape=(2, 2))
    rho = 2 * pm.Beta("half", 2, 2, shape=2) - 1  # the LKJ prior with eta = 2 of two columns
    corner = [[pt.ones(2), pt.zeros(2)], [rho, pt.sqrt(1 - rho**2)]]
    factor = pt.stack([pt.stack(row, axis=-1) for row in corner], axis=-2)
    chol = sigma[:, :, None] * factor
    pm.MvNormal("x", mu[y], chol=chol[y], observed=REAL)


def bursts():
    """Dirichlet-compound multinomial."""
    y = label()
    length = pm.Data("long", WORDS.sum(axis=1))  # as "half": to PyTensor the name of a dtype
    mean = pm.Dirichlet("mean", np.ones((2, 4)))
    strength = pm.LogNormal("strength", np.log(12), 2, shape=2)
    pm.DirichletMultinomial("x", n=length, a=(strength[:, None] * mean)[y], observed=WORDS)


def shared_strength():
    """Categories whose classes are pooled towards the frequencies of the column."""
    log_rate = np.log(np.bincount(LETTERS, minlength=4) + 0.5)
    scale = np.sqrt(1 + log_rate.var())
    y = label()
    base = pm.ZeroSumNormal("base", scale, shape=4)
    z = pm.ZeroSumNormal("z", 1, shape=(2, 4))  # of each class, over the categories
    tau = pm.LogNormal("tau", np.log(0.5), 1)
    omega = pm.HalfNormal("omega", 0.5)
    u = ((z**2).sum() - 6) / np.sqrt(12)
    theta = pt.special.softmax(base + tau * pt.exp(pt.arcsinh(omega * u)) * z, axis=-1)
    pm.Categorical("x", theta[y], observed=LETTERS)


def correlated_words():
    """Logistic-normal documents of one factor, summed out over Gauss-Hermite nodes."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(15)
    y = label()
    length = pm.Data("length", WORDS.sum(axis=1))
    centre = pm.Dirichlet("centre", np.ones((2, 4)))
    spread = pm.HalfNormal("spread", 1, shape=(2, 1))
    loading = spread * pm.ZeroSumNormal("unit", 1, shape=(2, 4))
    log_odds = pt.log(centre)[:, None, :] + nodes[:, None] * loading[:, None, :]
    each = pm.Multinomial.dist(n=length[:, None], p=pt.special.softmax(log_odds, axis=-1)[y])
    pm.Mixture("x", mass / mass.sum(), each, observed=WORDS)


counted = np.column_stack([NEW_WORDS, NEW_WORDS.sum(axis=1)])
CASES = {
    scales_and_correlations: ([[0.0, 0.0], [1.0, 4.0], [2.0, -3.0]], [0.3793, 0.6826, 0.8414]),
    bursts: (counted, [0.1955, 0.9387, 0.5273]),
    shared_strength: ([[0], [1], [2], [3]], [0.1442, 0.7306, 0.862, 0.7329]),
    correlated_words: (counted, [0.0055, 0.9847, 0.0236]),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesgen.SamplingWarning")
@pytest.mark.parametrize("declare", CASES, ids=lambda declare: declare.__name__)
def test_a_written_model_has_the_numbers_of_the_class(declare):
    X, expected = CASES[declare]
    with pm.Model() as model:
        declare()
    clf = bg.from_pymc(model).fit(
        draws=600, tune=600, target_accept=0.95, random_state=1, progressbar=False
    )
    p = clf.predict_proba(np.asarray(X))[:, 1]
    # both are means over draws; 400 effective ones, at the least
    error = np.sqrt(2 / 400) * clf.predict_uncertainty(np.asarray(X))["sd"].values[:, 1]
    assert np.all(np.abs(p - expected) < 5 * error), (p, expected, error)
