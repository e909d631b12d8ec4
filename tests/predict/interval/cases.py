"""Posteriors to ask, and exact draws to hold the answers against."""

import os

import numpy as np
from scipy.special import logsumexp

from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical
from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.intervals import class_probability_intervals
from bayesgen.predict.request import IntervalRequest

# the thirteen samples of MATH.md I: class 0 once (1, 1); class 1 four times each other row
THIRTEEN = np.array([[1.0, 1.0]] + 4 * [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])

# whole grids, and coverage of a thousand: BAYESGEN_WHOLE_GRID=1, about 40 minutes of a core
WHOLE = bool(os.environ.get("BAYESGEN_WHOLE_GRID"))


def fit(family, X, y, n_classes=2, alpha=1.0):
    model = ClassModel(alpha, family)
    stats = model.stats(X, np.asarray(y), n_classes)
    return model.resolve(stats).update(stats)


def interval(model, X, prob=0.9, kind="eti", method="auto", **kwargs):
    return class_probability_intervals(model, X, IntervalRequest(prob, kind, method), **kwargs)


def thirteen():
    return fit(BetaBernoulli(alpha=1.0, beta=1.0), THIRTEEN, [0] + 12 * [1])


def weights_alone(alpha):
    """A model asked for a row without cells: its class probabilities are Dirichlet(alpha)."""
    n = len(alpha)
    family = BetaBernoulli(alpha=np.ones((n, 1)), beta=np.ones((n, 1)))
    return ClassModel(np.asarray(alpha, float), family), np.full((1, 1), np.nan)


FAMILIES = {
    "bernoulli": lambda c: BetaBernoulli(alpha=c, beta=c),
    "categorical": lambda c: DirichletCategorical(alpha=c),
    "multinomial": lambda c: DirichletMultinomial(alpha=c),
    "poisson": lambda c: GammaPoisson(shape=c, rate=c),
    "gaussian": lambda c: NormalInverseGamma(kappa=c),
    "gaussian_tied": lambda c: NormalInverseGamma(kappa=c, variance="tied"),
    "gaussian_spherical": lambda c: NormalInverseGamma(kappa=c, variance="spherical"),
    "lda": lambda c: NormalInverseWishart(kappa=c, shared=True),
    "qda": lambda c: NormalInverseWishart(kappa=c),
}
SHARED = ("gaussian_tied", "gaussian_spherical", "lda")  # classes share a parameter


def rows(name, rng, y, n_features, n_classes):
    """(N, D) rows of one theta drawn at random."""
    if name == "bernoulli":
        return (rng.random((len(y), n_features)) < rng.random((n_classes, n_features))[y]) * 1.0
    if name == "categorical":
        upto = rng.dirichlet(np.ones(4), size=(n_classes, n_features)).cumsum(axis=-1)[y]
        return np.minimum((rng.random((len(y), n_features, 1)) > upto).sum(axis=-1), 3) * 1.0
    if name == "multinomial":
        p = rng.dirichlet(np.full(n_features, 0.5), size=n_classes)
        return rng.multinomial(5 if n_features < 100 else 30, p[y]).astype(float)
    if name == "poisson":
        return rng.poisson(rng.gamma(1, 2, size=(n_classes, n_features))[y]).astype(float)
    mean = rng.normal(size=(n_classes, n_features))
    return mean[y] + rng.normal(size=(len(y), n_features))


def case(name, n_features, per_class, concentration=1.0, n_classes=2, new=3, seed=7):
    """A posterior, and new rows."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.repeat(np.arange(n_classes), per_class), np.arange(new) % n_classes])
    X = rows(name, rng, y, n_features, n_classes)
    train = slice(0, n_classes * per_class)
    return fit(FAMILIES[name](concentration), X[train], y[train], n_classes), X[train.stop :]


def log_joint(model, X, n, seed=0):
    """(n, N, C) exact draws of log p(c, x | theta): theta drawn, densities written out here."""
    rng = np.random.default_rng(seed)
    family = model.family
    density = {
        BetaBernoulli: _bits,
        NormalInverseGamma: _normal,
        NormalInverseWishart: _correlated,
    }.get(type(family), lambda f, rng, X, n: f.log_likelihood(X, f.draw(rng, n)))
    block = max(1, (1 << 21) // max(1, family.n_parameters() * max(1, len(X))))
    out = []
    for start in range(0, n, block):
        size = min(block, n - start)
        weights = np.log(rng.dirichlet(model.alpha, size=size))[:, None]
        out.append(weights + density(family, rng, X, size))
    return np.concatenate(out)


def _bits(family, rng, X, n):
    # log(1 - theta) is drawn itself: 1 - theta rounds to 0 for theta near 1
    def log_gamma(a):  # Gamma(a) = Gamma(a + 1) U^(1/a)
        size = (n, *a.shape)
        return np.log(rng.gamma(a + 1, size=size)) - rng.exponential(size=size) / a

    one, zero = log_gamma(family.alpha), log_gamma(family.beta)
    norm = np.logaddexp(one, zero)
    is_one, is_zero = (X == 1).astype(float), (X == 0).astype(float)
    return np.swapaxes((one - norm) @ is_one.T + (zero - norm) @ is_zero.T, 1, 2)


def _normal(family, rng, X, n):
    theta = family.draw(rng, n)
    mean, sigma2 = theta["mu"], family._variance_of(theta)
    out = np.empty((n, *X.shape[:1], len(family.mu)))
    for i, x in enumerate(X):
        out[:, i] = np.nansum(
            -0.5 * (np.log(2 * np.pi * sigma2) + (x - mean) ** 2 / sigma2), axis=-1
        )
    return out


def _correlated(family, rng, X, n):
    theta = family.draw(rng, n)
    mean, sigma = theta["mu"], theta["Sigma"]
    sigma = sigma[:, None] if family.shared else sigma
    out = np.empty((n, X.shape[0], mean.shape[1]))
    for observed in np.unique(~np.isnan(X), axis=0):  # a matrix is solved once for rows alike
        (alike,) = np.nonzero((~np.isnan(X) == observed).all(axis=1))
        (j,) = np.nonzero(observed)
        part = sigma[..., j[:, None], j]
        d = X[alike[:, None], j] - mean[:, :, None, j]  # (n, C, rows, d)
        size = mean.shape[1] * len(alike) // part.shape[1]  # classes may share a matrix
        right = d.reshape(*part.shape[:2], size, len(j))
        q = (right * np.linalg.solve(part, right.swapaxes(2, 3)).swapaxes(2, 3)).sum(axis=-1)
        log_det = np.linalg.slogdet(2 * np.pi * part)[1][..., None]
        out[:, alike] = -0.5 * (q.reshape(d.shape[:3]) + log_det).swapaxes(1, 2)
    return out


def log_odds(a):
    """(..., C) log-odds of each class against the rest."""
    others = [logsumexp(np.delete(a, c, axis=-1), axis=-1) for c in range(a.shape[-1])]
    return a - np.stack(others, axis=-1)
