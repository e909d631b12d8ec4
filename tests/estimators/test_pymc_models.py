"""Models as different people write them: equal to an average by NumPy and SciPy, or refused.

The draws are those of the prior, so that nothing is sampled. A density is (draw, row, class).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import special, stats

import bayesgen as bg
from tests.graphs import PYTHON, pm, pt

pytestmark = pytest.mark.filterwarnings("ignore::bayesgen.posterior.drawn.MonteCarloWarning")
N, S = 21, 20
RNG = np.random.default_rng(77)
Y = np.arange(N) % 3
X = RNG.normal(size=(N, 2)) + Y[:, None]
AGE = RNG.normal(size=N)
COUNT = RNG.poisson(1.0 + Y) * RNG.integers(2, size=N)
WORDS = RNG.multinomial(9, [0.5, 0.3, 0.2], size=N)
POSITIVE = np.abs(X[:, 0]) + 0.1
SITE = RNG.integers(4, size=N)
Draws = dict[str, np.ndarray]


class Written(NamedTuple):
    model: Any
    X: Any
    log_x: Callable[[Draws], np.ndarray]  # (S, N, C)
    weights: Callable[[Draws], np.ndarray] = lambda d: d["w"][:, None]  # (S, 1 or N, C)


def three() -> Any:
    return pm.Categorical("label", pm.Dirichlet("w", np.full(3, 9.0)), observed=Y)


def means(**options: Any) -> Any:
    return pm.Normal("mu", 0, 1, shape=(3, 2), **options)


def normal(x: np.ndarray, mu: np.ndarray, sd: Any = 1.0) -> np.ndarray:
    """Of rows (N, D) with means (S, C, D)."""
    return stats.norm.logpdf(x[:, None], mu[:, None], sd).sum(axis=-1)


def by_class(x: np.ndarray, log_p: Any, *parameters: np.ndarray) -> np.ndarray:
    """Of one column (N,) with parameters (S, C)."""
    return log_p(x[:, None], *(p[:, None] for p in parameters))


def two(p: np.ndarray) -> np.ndarray:
    """(..., 2) of the probability of the second class."""
    return np.stack([1 - p, p], axis=-1)


# -------------------------------------------------------------------------------- plain and robust


def plates_with_dims() -> Written:
    with pm.Model(coords={"kind": ["a", "b", "c"], "col": ["u", "v"], "row": range(N)}) as m:
        w = pm.Dirichlet("w", np.ones(3), dims="kind")
        y = pm.Categorical("label", w, observed=Y, dims="row")
        mu = pm.Normal("mu", 0, 1, dims=("kind", "col"))
        sigma = pm.Gamma("sigma", 9, 9, dims=("kind", "col"))
        pm.Normal("x", mu[y], sigma[y], observed=X, dims=("row", "col"))
    return Written(m, X, lambda d: normal(X, d["mu"], d["sigma"][:, None]))


def indices_of_pandas() -> Written:
    codes, levels = pd.factorize(np.array(["rye", "oat", "fig"])[Y])
    with pm.Model() as m:
        y = pm.Categorical("label", pm.Dirichlet("w", np.ones(len(levels))), observed=codes)
        mu = means()
        for j, name in enumerate(["first", "second"]):
            pm.Normal(name, mu[:, j][y], 0.5 + j, observed=pd.Series(X[:, j]))
    return Written(m, X, lambda d: normal(X, d["mu"], np.array([0.5, 1.5])))


def containers() -> Written:
    with pm.Model(coords={"row": range(N)}) as m:
        y, x = pm.Data("y", Y, dims="row"), pm.Data("rows", X)
        pm.Categorical("label", pm.Dirichlet("w", np.ones(3)), observed=y, dims="row")
        pm.Normal("x", means()[y], 1.5, observed=x)
    return Written(m, X, lambda d: normal(X, d["mu"], 1.5))


def student() -> Written:
    with pm.Model() as m:
        y, nu = three(), pm.Exponential("nu", 0.1)
        pm.StudentT("x", nu=nu + 1, mu=means()[y], sigma=0.7, observed=X)

    def log_x(d: Draws) -> np.ndarray:
        nu = d["nu"][:, None, None, None] + 1
        return stats.t.logpdf(X[:, None], nu, d["mu"][:, None], 0.7).sum(axis=-1)

    return Written(m, X, log_x)


def non_centred() -> Written:
    with pm.Model() as m:
        y = three()
        centre, spread = pm.Normal("centre"), pm.HalfNormal("spread")
        mu = pm.Deterministic("mu", centre + spread * pm.Normal("z", shape=3))
        pm.Laplace("x", mu[y], 1.2, observed=X[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        mu = d["centre"][:, None] + d["spread"][:, None] * d["z"]
        return by_class(X[:, 0], lambda x, m: stats.laplace.logpdf(x, m, 1.2), mu)

    return Written(m, X[:, :1], log_x)


def effects_that_sum_to_zero() -> Written:
    with pm.Model() as m:
        mu = pm.Normal("a") + pm.ZeroSumNormal("b", shape=3)
        pm.Logistic("x", mu[three()], 0.8, observed=X[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        mu = d["a"][:, None] + d["b"]
        return by_class(X[:, 0], lambda x, m: stats.logistic.logpdf(x, m, 0.8), mu)

    return Written(m, X[:, :1], log_x)


def columns_of_several_kinds() -> Written:
    colour = (SITE + Y) % 3
    with pm.Model() as m:
        y = three()
        pm.Gamma("wait", alpha=pm.Gamma("shape", 9, 3, shape=3)[y], beta=2.0, observed=POSITIVE)
        pm.LogNormal("size", means()[y, 1], 0.5, observed=POSITIVE)
        pm.Categorical("colour", pm.Dirichlet("p", np.ones((3, 3)))[y], observed=colour)

    def log_x(d: Draws) -> np.ndarray:
        out = by_class(POSITIVE, lambda x, a: stats.gamma.logpdf(x, a, scale=0.5), d["shape"])
        out = out + by_class(
            np.log(POSITIVE), lambda x, m: stats.norm.logpdf(x, m, 0.5) - x, d["mu"][..., 1]
        )
        return out + np.log(d["p"][:, :, colour]).transpose(0, 2, 1)

    return Written(m, np.column_stack([POSITIVE, POSITIVE, colour]), log_x)


# ------------------------------------------------------------------------------- several dimensions


def one_covariance() -> Written:
    with pm.Model() as m:
        chol, _, _ = pm.LKJCholeskyCov("packed", n=2, eta=2, sd_dist=pm.Gamma.dist(9, 9))
        pm.MvNormal("x", means()[three()], chol=chol, observed=X)

    def log_x(d: Draws) -> np.ndarray:
        out = np.empty((S, N, 3))
        for s, (a, b, c) in enumerate(d["packed"]):
            root = np.array([[a, 0], [b, c]])
            for k, mu in enumerate(d["mu"][s]):
                out[s, :, k] = stats.multivariate_normal.logpdf(X, mu, root @ root.T)
        return out

    return Written(m, X, log_x)


def a_covariance_per_class() -> Written:
    with pm.Model() as m:
        y, rho = three(), pm.Uniform("rho", -0.9, 0.9, shape=3)
        cov = pt.stack([pt.stack([rho * 0 + 1, rho], -1), pt.stack([rho, rho * 0 + 1], -1)], -1)
        pm.MvNormal("x", means()[y], cov=cov[y], observed=X)

    def log_x(d: Draws) -> np.ndarray:
        out = np.empty((S, N, 3))
        for s, k in np.ndindex(S, 3):
            cov = np.array([[1, d["rho"][s, k]], [d["rho"][s, k], 1]])
            out[s, :, k] = stats.multivariate_normal.logpdf(X, d["mu"][s, k], cov)
        return out

    return Written(m, X, log_x)


def words() -> Written:
    with pm.Model() as m:
        n = pm.Data("n", WORDS.sum(axis=1))
        p = pm.Dirichlet("p", np.full((3, 3), 2.0))
        pm.Multinomial("words", n=n, p=p[three()], observed=WORDS)

    def log_x(d: Draws) -> np.ndarray:
        return stats.multinomial.logpmf(WORDS[:, None], 9, d["p"][:, None])

    return Written(m, np.column_stack([WORDS, WORDS.sum(axis=1)]), log_x)


def words_in_bursts() -> Written:
    with pm.Model() as m:
        a = pm.Gamma("a", 4, 2, shape=(3, 3))
        pm.DirichletMultinomial("words", n=9, a=a[three()], observed=WORDS)

    def log_x(d: Draws) -> np.ndarray:
        return stats.dirichlet_multinomial.logpmf(WORDS[:, None], d["a"][:, None], 9)

    return Written(m, WORDS, log_x)


def topics_summed_over_nodes() -> Written:
    nodes, mass = np.polynomial.hermite_e.hermegauss(5)
    mass = mass / mass.sum()
    with pm.Model() as m:
        y = three()
        centre, loading = (pm.Normal(k, shape=(3, 1, 3)) for k in ("centre", "loading"))
        p = pt.special.softmax(centre + nodes[:, None] * loading, axis=-1)
        pm.Mixture("words", mass, pm.Multinomial.dist(n=9, p=p[y]), observed=WORDS)

    def log_x(d: Draws) -> np.ndarray:
        p = special.softmax(d["centre"] + nodes[:, None] * d["loading"], axis=-1)
        each = stats.multinomial.logpmf(WORDS[:, None, None], 9, p[:, None])
        return special.logsumexp(each + np.log(mass), axis=-1)

    return Written(m, WORDS, log_x)


# ------------------------------------------------------------------------------------ bits, counts


def bits() -> Written:
    with pm.Model() as m:
        theta = pm.Beta("theta", 2, 2, shape=(3, 2))
        pm.Bernoulli("bit", theta[three()], observed=X > 1)
    return Written(
        m, X > 1, lambda d: stats.bernoulli.logpmf((X > 1)[:, None], d["theta"][:, None]).sum(-1)
    )


def bits_by_log_odds() -> Written:
    with pm.Model() as m:
        pm.Bernoulli("bit", logit_p=means()[three()], observed=(X > 1).astype("int8"))

    def log_x(d: Draws) -> np.ndarray:
        return stats.bernoulli.logpmf((X > 1)[:, None], special.expit(d["mu"])[:, None]).sum(-1)

    return Written(m, (X > 1).astype(int), log_x)


def counts_with_exposure() -> Written:
    hours = np.exp(AGE)
    with pm.Model() as m:
        exposure = pm.Data("hours", hours)
        rate = pm.Gamma("rate", 3, 2, shape=3)
        pm.Poisson("count", mu=rate[three()] * exposure, observed=COUNT)

    def log_x(d: Draws) -> np.ndarray:
        return stats.poisson.logpmf(COUNT[:, None], d["rate"][:, None] * hours[:, None])

    return Written(m, np.column_stack([COUNT, hours]), log_x)


def overdispersed_counts() -> Written:
    with pm.Model() as m:
        y, rate = three(), pm.Gamma("rate", 3, 2, shape=3)
        pm.NegativeBinomial("count", mu=rate[y], alpha=pm.HalfNormal("alpha", 5), observed=COUNT)

    def log_x(d: Draws) -> np.ndarray:
        a = d["alpha"][:, None]
        return by_class(COUNT, stats.nbinom.logpmf, np.broadcast_to(a, (S, 3)), a / (a + d["rate"]))

    return Written(m, COUNT[:, None], log_x)


def zero_inflated_counts() -> Written:
    with pm.Model() as m:
        y, rate, psi = three(), pm.Gamma("rate", 3, 2, shape=3), pm.Beta("psi", 2, 2)
        pm.ZeroInflatedPoisson("count", psi=psi, mu=rate[y], observed=COUNT)

    def log_x(d: Draws) -> np.ndarray:
        psi = d["psi"][:, None, None]
        own = by_class(COUNT, stats.poisson.pmf, d["rate"])
        return np.log((1 - psi) * (COUNT == 0)[:, None] + psi * own)

    return Written(m, COUNT[:, None], log_x)


def hurdle_counts() -> Written:
    with pm.Model() as m:
        y, rate, psi = three(), pm.Gamma("rate", 3, 2, shape=3), pm.Beta("psi", 2, 2, shape=3)
        pm.HurdlePoisson("count", psi=psi[y], mu=rate[y], observed=COUNT)

    def log_x(d: Draws) -> np.ndarray:
        psi, rate = d["psi"][:, None], d["rate"][:, None]
        with np.errstate(divide="ignore"):
            above = np.log(psi) - np.log1p(-np.exp(-rate))
        zero = (COUNT == 0)[:, None]
        return np.where(zero, np.log(1 - psi), above + stats.poisson.logpmf(COUNT[:, None], rate))

    return Written(m, COUNT[:, None], log_x)


def grades() -> Written:
    grade = np.clip(COUNT, 0, 3)
    with pm.Model() as m:
        y, eta = three(), pm.Normal("eta", shape=3)
        gaps = pm.Gamma("gaps", 4, 4, shape=3)
        pm.OrderedLogistic("grade", eta=eta[y], cutpoints=pt.cumsum(gaps) - 2, observed=grade)

    def log_x(d: Draws) -> np.ndarray:
        cut = np.cumsum(d["gaps"], axis=1) - 2
        below = special.expit(cut[:, None] - d["eta"][..., None])
        edges = np.concatenate([np.zeros((S, 3, 1)), below, np.ones((S, 3, 1))], axis=-1)
        return np.log(np.diff(edges, axis=-1)[:, :, grade]).transpose(0, 2, 1)

    return Written(m, grade[:, None], log_x)


# -------------------------------------------------------------------- bounds, directions, mixtures


def censored() -> Written:
    seen = np.clip(X[:, 0], 0, 1.5)
    with pm.Model() as m:
        y, mu = three(), pm.Normal("mu", shape=3)
        pm.Censored("x", pm.Normal.dist(mu[y], 0.8), lower=0, upper=1.5, observed=seen)

    def log_x(d: Draws) -> np.ndarray:
        x, mu = seen[:, None], d["mu"][:, None]
        out = np.where(x >= 1.5, stats.norm.logsf(1.5, mu, 0.8), stats.norm.logpdf(x, mu, 0.8))
        return np.where(x <= 0, stats.norm.logcdf(0, mu, 0.8), out)

    return Written(m, seen[:, None], log_x)


def truncated_normal(upper: Any = None) -> Written:
    x = np.abs(X)
    with pm.Model() as m:
        y, sd = three(), pm.Gamma("sd", 9, 9)
        pm.TruncatedNormal("x", means()[y], sd, lower=0.0, observed=x)

    def log_x(d: Draws) -> np.ndarray:
        sd = d["sd"][:, None, None, None]
        mu = d["mu"][:, None]
        return stats.truncnorm.logpdf(x[:, None], -mu / sd, np.inf, mu, sd).sum(axis=-1)

    return Written(m, x, log_x)


def truncated_anything() -> Written:
    x = np.minimum(POSITIVE, 2.5)
    with pm.Model() as m:
        y, a = three(), pm.Gamma("a", 9, 6, shape=3)
        pm.Truncated("x", pm.Gamma.dist(alpha=a[y], beta=1.5), upper=3.0, observed=x)

    def log_x(d: Draws) -> np.ndarray:
        own = stats.gamma(d["a"][:, None], scale=1 / 1.5)
        return own.logpdf(x[:, None]) - own.logcdf(3.0)

    return Written(m, x[:, None], log_x)


def directions() -> Written:
    angle = np.arctan2(X[:, 0], X[:, 1])
    with pm.Model() as m:
        y = three()
        mu, kappa = pm.VonMises("mu", 0, 1, shape=3), pm.Gamma("kappa", 4, 2, shape=3)
        pm.VonMises("angle", mu=mu[y], kappa=kappa[y], observed=angle)
    return Written(
        m, angle[:, None], lambda d: by_class(angle, stats.vonmises.logpdf, d["kappa"], d["mu"])
    )


def a_mixture_in_every_class() -> Written:
    with pm.Model() as m:
        y, share = three(), pm.Dirichlet("share", np.ones((3, 2)))
        pm.NormalMixture("x", w=share[y], mu=means()[y], sigma=0.6, observed=X[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        own = stats.norm.pdf(X[:, 0, None, None], d["mu"][:, None], 0.6)
        return np.log((d["share"][:, None] * own).sum(axis=-1))

    return Written(m, X[:, :1], log_x)


def outliers_of_two_distributions() -> Written:
    with pm.Model() as m:
        y, mu, share = three(), pm.Normal("mu", shape=3), pm.Beta("share", 9, 1)
        wide = [pm.Normal.dist(mu[y], 0.5), pm.StudentT.dist(nu=3, mu=mu[y], sigma=2.0)]
        pm.Mixture("x", w=pt.stack([share, 1 - share]), comp_dists=wide, observed=X[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        x, mu, share = X[:, :1], d["mu"][:, None], d["share"][:, None, None]
        own = share * stats.norm.pdf(x, mu, 0.5) + (1 - share) * stats.t.pdf(x, 3, mu, 2.0)
        return np.log(own)

    return Written(m, X[:, :1], log_x)


def a_density_of_its_own() -> Written:
    def log_p(value: Any, mu: Any) -> Any:
        return -abs(value - mu) - np.log(2.0)

    with pm.Model() as m:
        mu = pm.Normal("mu", shape=3)
        pm.CustomDist("x", mu[three()], logp=log_p, observed=X[:, 0])
    return Written(m, X[:, :1], lambda d: by_class(X[:, 0], stats.laplace.logpdf, d["mu"]))


def a_distribution_of_its_own() -> Written:
    def shifted(mu: Any, size: Any) -> Any:
        return mu + pm.Exponential.dist(2.0, size=size)

    x = X[:, 0] + 9
    with pm.Model() as m:
        mu = pm.Uniform("mu", 0, 4, shape=3)
        pm.CustomDist("x", mu[three()], dist=shifted, observed=x)
    return Written(
        m, x[:, None], lambda d: by_class(x, lambda v, u: stats.expon.logpdf(v, u, 0.5), d["mu"])
    )


# -------------------------------------------------------------------- covariates, labels and priors


def regression_given_age() -> Written:
    with pm.Model() as m:
        age, y = pm.Data("age", AGE), three()
        a, b = pm.Normal("a", shape=3), pm.Normal("b", shape=3)
        pm.Normal("x", a[y] + b[y] * age, 0.9, observed=X[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        mean = d["a"][:, None] + d["b"][:, None] * AGE[:, None]
        return stats.norm.logpdf(X[:, :1], mean, 0.9)

    return Written(m, np.column_stack([X[:, 0], AGE]), log_x)


def sites() -> Written:
    with pm.Model() as m:
        site, y = pm.Data("site", SITE), three()
        effect = pm.Normal("effect", 0, pm.HalfNormal("spread"), shape=4)
        mu = pm.Normal("mu", shape=3)
        pm.Normal("x", mu[y] + effect[site], 0.9, observed=X[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        mean = d["mu"][:, None] + d["effect"][:, SITE, None]
        return stats.norm.logpdf(X[:, :1], mean, 0.9)

    return Written(m, np.column_stack([X[:, 0], SITE]), log_x)


def a_column_given_another() -> Written:
    with pm.Model() as m:
        y, mu = three(), means()
        first = pm.Normal("first", mu[y, 0], 1.0, observed=X[:, 0])
        pm.Normal("second", mu[y, 1] + 0.5 * first, 1.0, observed=X[:, 1])

    def log_x(d: Draws) -> np.ndarray:
        mean = d["mu"][..., 1][:, None] + 0.5 * X[:, :1]
        return normal(X[:, :1], d["mu"][..., :1]) + stats.norm.logpdf(X[:, 1:], mean)

    return Written(m, X, log_x)


def label_of_two() -> Written:
    with pm.Model() as m:
        y = pm.Bernoulli("label", pm.Beta("p", 2, 2), observed=Y > 0)
        base, effect = pm.Normal("base"), pm.Normal("effect")
        pm.Normal("x", base + effect * y, 0.9, observed=X[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        mu = np.stack([d["base"], d["base"] + d["effect"]], axis=-1)
        return normal(X[:, :1], mu[..., None], 0.9)

    return Written(m, X[:, :1], log_x, lambda d: two(d["p"])[:, None])


def label_of_two_by_log_odds() -> Written:
    with pm.Model() as m:
        age = pm.Data("age", AGE)
        odds = pm.Normal("a") + pm.Normal("b") * age
        y = pm.Bernoulli("label", logit_p=odds, observed=pm.Data("y", (Y > 0).astype(int)))
        mu = pm.Normal("mu", shape=2)
        pm.Normal("x", pm.math.switch(y, mu[1], mu[0]), 0.9, observed=X[:, 0])

    def weights(d: Draws) -> np.ndarray:
        return two(special.expit(d["a"][:, None] + d["b"][:, None] * AGE))

    return Written(
        m,
        np.column_stack([X[:, 0], AGE]),
        lambda d: normal(X[:, :1], d["mu"][..., None], 0.9),
        weights,
    )


def label_by_softmax() -> Written:
    with pm.Model() as m:
        age = pm.Data("age", AGE)
        odds = pm.Normal("a", shape=3) + age[:, None] * pm.Normal("b", shape=3)
        y = pm.Categorical("label", logit_p=odds, observed=Y)
        pm.Normal("x", means()[y], 1.0, observed=X)

    def weights(d: Draws) -> np.ndarray:
        return special.softmax(d["a"][:, None] + AGE[:, None] * d["b"][:, None], axis=-1)

    return Written(m, np.column_stack([X, AGE]), lambda d: normal(X, d["mu"]), weights)


def weights_by_log_odds() -> Written:
    with pm.Model() as m:
        y = pm.Categorical("label", logit_p=pm.Normal("odds", shape=3), observed=Y.astype("int8"))
        pm.Normal("x", means()[y], 1.0, observed=X.astype("float32"))
    return Written(
        m,
        X.astype("float32"),
        lambda d: normal(X.astype("float32").astype(float), d["mu"]),
        lambda d: special.softmax(d["odds"], axis=-1)[:, None],
    )


def weights_by_sticks() -> Written:
    with pm.Model() as m:
        v = pm.Beta("v", 2, 2, shape=2)
        p = pm.Deterministic("p", pt.stack([v[0], (1 - v[0]) * v[1], (1 - v[0]) * (1 - v[1])]))
        pm.Normal("x", means()[pm.Categorical("label", p, observed=Y)], 1.0, observed=X)

    def weights(d: Draws) -> np.ndarray:
        a, b = d["v"].T
        return np.stack([a, (1 - a) * b, (1 - a) * (1 - b)], axis=-1)[:, None]

    return Written(m, X, lambda d: normal(X, d["mu"]), weights)


def transforms_of_priors() -> Written:
    ways = pm.distributions.transforms
    with pm.Model() as m:
        y = three()
        mu = pm.Normal("mu", 0, 1, shape=3, transform=ways.ordered, initval=[-1.0, 0, 1])
        sd = pm.TruncatedNormal("sd", 1, 1, lower=0.2, upper=3, transform=ways.Interval(0.2, 3))
        nu = pm.Gamma("nu", 4, 1, transform=ways.log)
        pm.StudentT("x", nu=nu, mu=mu[y], sigma=sd, observed=X[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        nu, sd = d["nu"][:, None, None], d["sd"][:, None, None]
        return stats.t.logpdf(X[:, :1], nu, d["mu"][:, None], sd)

    return Written(m, X[:, :1], log_x)


def a_potential_of_the_prior() -> Written:
    with pm.Model() as m:
        y, mu = three(), means()
        pm.Potential("close", -pt.sum((mu - mu.mean(axis=0)) ** 2))
        pm.Normal("x", mu[y], 1.0, observed=X)
    return Written(m, X, lambda d: normal(X, d["mu"]))


def hyper_parameters_as_long_as_rows() -> Written:
    wide = RNG.normal(size=(N, N))
    with pm.Model() as m:
        y, centre = three(), pm.Data("centre", np.linspace(0, 1, N))
        mu = centre + pm.Normal("z", shape=(3, N))
        pm.Normal("x", mu[y], pm.Data("sd", np.full(N, 2.0)), observed=wide)
    return Written(m, wide, lambda d: normal(wide, np.linspace(0, 1, N) + d["z"], 2.0))


def hyper_parameters_of_a_prior() -> Written:
    with pm.Model() as m:
        strength = pm.Data("strength", np.full(N, 2.0))
        p = pm.Dirichlet("p", strength, shape=(3, N))
        pm.Categorical("kind", p[three()], observed=SITE)
        pm.Normal("x", 0, 1, observed=X[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        log_p = np.log(d["p"][:, :, SITE]).transpose(0, 2, 1)
        return log_p + stats.norm.logpdf(X[:, :1])

    return Written(m, np.column_stack([SITE, X[:, 0]]), log_x)


def masked(x: Any, sd: Any) -> Written:
    gaps = np.array(x)
    gaps[::4, 0] = gaps[1::5, 1] = np.nan
    with pm.Model() as m:
        y, scale = three(), pm.Gamma("scale", 9, 9, shape=2) if sd is None else sd
        pm.Normal("x", means()[y], scale, observed=np.ma.masked_invalid(gaps))

    def log_x(d: Draws) -> np.ndarray:
        scale = d["scale"][:, None, None] if sd is None else sd
        own = stats.norm.logpdf(gaps[:, None], d["mu"][:, None], scale)
        return np.where(np.isnan(gaps)[:, None], 0.0, own).sum(axis=-1)

    return Written(m, gaps, log_x)


def cells_are_missing() -> Written:
    return masked(X, None)


def cells_are_missing_and_scale_is_known() -> Written:
    return masked(X, 1.3)


def cells_of_a_mixture_are_missing() -> Written:
    gaps = np.where(X[:, 0] > 1.5, np.nan, X[:, 0])
    with pm.Model() as m:
        y, _ = three(), pm.Normal("other", 0, 1, observed=np.ma.masked_less(AGE, -1))
        own = [pm.Normal.dist(means()[y, 0], 0.5), pm.Normal.dist(0, 3)]
        pm.Mixture("x", w=[0.8, 0.2], comp_dists=own, observed=np.ma.masked_invalid(gaps))

    def log_x(d: Draws) -> np.ndarray:
        x = gaps[:, None]
        own = 0.8 * stats.norm.pdf(x, d["mu"][:, None, :, 0], 0.5) + 0.2 * stats.norm.pdf(x, 0, 3)
        known = np.where(AGE < -1, 0, stats.norm.logpdf(AGE))[:, None]
        return np.where(np.isnan(x), 0.0, np.log(own)) + known

    return Written(m, np.column_stack([np.where(AGE < -1, np.nan, AGE), gaps]), log_x)


NOT_MODELS = (three, means, normal, by_class, two, masked)
ACCEPTED = [
    f
    for f in list(globals().values())
    if getattr(f, "__module__", "") == __name__ and callable(f) and not isinstance(f, type)
    if f not in NOT_MODELS
]


def draws_of(model: Any) -> Draws:
    """(S, ...) of the free variables, from their prior."""
    drawn = pm.draw(model.free_RVs, draws=S, random_seed=3, mode=PYTHON)
    draws = dict(zip([v.name for v in model.free_RVs], drawn, strict=True))
    ordered = [
        k for k in draws if "ordered" in model.rvs_to_transforms[model[k]].__class__.__name__
    ]
    return draws | {k: np.sort(draws[k], axis=-1) for k in ordered}


def trace(model: Any, draws: Draws) -> xr.Dataset:
    """As a sampler returns them: without cells that PyMC imputes."""
    out = {}
    for v in model.free_RVs:
        if not v.name.endswith("_unobserved"):
            dims = model.named_vars_to_dims.get(v.name)
            dims = dims or [f"{v.name}_dim_{i}" for i in range(v.ndim)]
            out[v.name] = (("chain", "draw", *dims), draws[v.name][None])
    return xr.Dataset(out)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Data in")
@pytest.mark.parametrize("written", ACCEPTED, ids=lambda f: f.__name__)
def test_predictions_are_the_average_over_draws(written: Callable[[], Written]) -> None:
    own = written()
    draws = draws_of(own.model)
    clf = bg.from_pymc(own.model).with_posterior(trace(own.model, draws))
    joint = own.log_x(draws) + np.log(own.weights(draws))
    expected = special.logsumexp(joint, axis=0) - np.log(S)
    rows = np.asarray(own.X, dtype=float)
    np.testing.assert_allclose(clf.predict_joint_log_proba(rows), expected, rtol=1e-10, atol=1e-10)
    p = special.softmax(expected, axis=1)
    np.testing.assert_allclose(clf.predict_proba(rows), p, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------------- what is refused, and why


def loop_over_classes(y: Any) -> None:
    for k in range(3):
        pm.Normal(f"x_{k}", pm.Normal(f"mu_{k}"), 1, observed=X[: N - 3][Y[: N - 3] == k])


def words_in_long_form(y: Any) -> None:
    document, word = np.nonzero(WORDS)
    p = pm.Dirichlet("p", np.ones((3, 3)))
    pm.Categorical("word", p[y[document]], observed=word)


def a_total_size(y: Any) -> None:
    pm.Normal("x", means()[y], 1, observed=X, total_size=(100, None))


def gaps_in_a_vector(y: Any) -> None:
    pm.MvNormal("x", means()[y], np.eye(2), observed=np.ma.masked_greater(X, 2))


def gaps_that_others_depend_on(y: Any) -> None:
    first = pm.Normal("first", means()[y, 0], 1, observed=np.ma.masked_greater(X[:, 0], 2))
    pm.Normal("second", first, 1, observed=X[:, 1])


@pytest.mark.filterwarnings("ignore:Data in")
@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            loop_over_classes,
            r"'x_0' has shape \(6, 2\).*one variable for all classes.*theta\[label",
        ),
        (words_in_long_form, r"'word' has shape.*every row one line: counts in a pm.Multinomial"),
        (a_total_size, "'x' has total_size=.*leave it out"),
        (
            gaps_in_a_vector,
            "cells of 'x' are missing.*MultivariateNormal.* whole rows: leave incomplete",
        ),
        (gaps_that_others_depend_on, "'first' are missing: other columns depend on 'first'"),
    ],
)
def test_models_are_refused_with_what_to_write(rows: Any, reason: str) -> None:
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(3))
        rows(pm.Categorical("label", w, observed=np.append(Y[: N - 3], [0, 0, 0])))
    with pytest.raises(ValueError, match=reason):
        bg.from_pymc(model)


@pytest.mark.filterwarnings("ignore:Data in")
def test_labels_are_needed() -> None:
    with pm.Model() as model:
        y = pm.Categorical("label", np.ones(3) / 3, observed=np.ma.masked_equal(Y, 2))
        pm.Normal("x", means()[y], 1.0, observed=X)
    with pytest.raises(ValueError, match="'label' are missing: leave rows without a label out"):
        bg.from_pymc(model)
    with pm.Model() as model:
        loop_over_classes(None)
    with pytest.raises(ValueError, match=r"x_0 \(Normal\).*one variable with parameters theta"):
        bg.from_pymc(model)


# ----------------------------------------------------------------------- what a family has besides


@pytest.mark.slow
def test_known_parameters_explain_each_cell() -> None:
    own = regression_given_age()
    draws = {k: np.repeat(v[:1], S, axis=0) for k, v in draws_of(own.model).items()}
    with own.model:
        pm.Poisson("count", 3.0, observed=COUNT)
    clf = bg.from_pymc(own.model).with_posterior(trace(own.model, draws))
    rows = np.column_stack([X[:, 0], COUNT, AGE])[:4]
    rows[1, 0] = np.nan
    table = clf.explain(rows, classes=(1, 0))
    log_x, w = own.log_x(draws)[0], draws["w"][0]
    expected = np.zeros((4, 3))
    expected[:, 0] = np.where(np.isnan(rows[:, 0]), 0, log_x[:4, 1] - log_x[:4, 0])
    np.testing.assert_allclose(table["predictive"], expected, atol=1e-10)
    np.testing.assert_allclose(table["predictive_intercept"], np.log(w[1] / w[0]), rtol=1e-10)
    with pytest.raises(ValueError, match=r"column 'age'.*no distribution of this column"):
        clf.predict_proba(np.where(np.arange(3) == 2, np.nan, rows))
    with pytest.raises(TypeError, match="X and y together"):
        clf.loo(rows)
    own_rows = np.column_stack([X[:, 0], COUNT, AGE])
    assert clf.loo().elpd == clf.loo(own_rows, Y).elpd
    np.testing.assert_array_equal(clf.loo_log_joint(), clf.loo_log_joint(own_rows, Y))
    assert clf.posterior_groups()["log_likelihood"]["label"].shape == (1, S, N)


@pytest.mark.slow
def test_vectors_are_not_explained() -> None:
    own = one_covariance()
    clf = bg.from_pymc(own.model).with_posterior(trace(own.model, draws_of(own.model)))
    with pytest.raises(ValueError, match=r"column 'x\[1\]'.*MultivariateNormal.* whole rows"):
        clf.predict_proba([[0.5, np.nan]])
    with pytest.raises(NotImplementedError, match="missing cells: the density of 'x'"):
        clf.explain(X[:2])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Data in")
def test_local_optima_are_those_of_conjugate_models() -> None:
    gaps, names = np.where(X > 2, np.nan, X), ["c", "a", "b"]
    with pm.Model(coords={"class": names, "column": ["u", "v"]}) as model:
        y = pm.Categorical("label", pm.Dirichlet("pi", np.full(3, 2.0), dims="class"), observed=Y)
        mu = pm.Normal("mu", 1, 2, dims=("class", "column"))
        pm.Normal("x", mu[y], 0.8, observed=np.ma.masked_invalid(gaps))
    rng = np.random.default_rng(1)
    draws = {"pi": rng.dirichlet([8, 8, 8], 50), "mu": 1 + rng.normal(size=(50, 3, 2))}
    given = trace(model, draws).assign_coords({"class": names})
    clf = bg.from_pymc(model).with_posterior(given)
    n = np.stack([np.isfinite(gaps[k == Y]).sum(axis=0) for k in range(3)])
    total = np.stack([np.nansum(gaps[k == Y], axis=0) for k in range(3)])
    mode = (total / 0.64 + 1 / 4) / (n / 0.64 + 1 / 4)
    for method, mu in (("mle", total / n), ("map", mode)):
        found = clf.estimates(method)
        np.testing.assert_allclose(found["mu"].sel({"class": names}), mu, rtol=1e-5)
        np.testing.assert_allclose(found["pi"], 1 / 3, rtol=1e-5)
        assert clf.predict_proba(X, method=method).shape == (N, 3)


@pytest.mark.slow
def test_ordered_priors_are_part_of_the_model() -> None:
    """Means that rise, against independent Normal posteriors of which only these are kept."""
    x, codes = np.array([0.4, 0.1, -0.3, 0.2, -0.1, 0.3]), np.array([0, 0, 1, 1, 2, 2])
    with pm.Model() as model:
        y = pm.Categorical("label", pm.Dirichlet("w", np.ones(3)), observed=codes)
        rising = pm.distributions.transforms.ordered
        mu = pm.Normal("mu", 0, 1, shape=3, transform=rising, initval=[-1.0, 0, 1])
        pm.Normal("x", mu[y], 1, observed=x)
    total = np.bincount(codes, x)
    rng = np.random.default_rng(0)
    drawn = total / 3 + rng.normal(size=(300_000, 3)) / np.sqrt(3)
    kept = drawn[(np.diff(drawn, axis=1) > 0).all(axis=1)]
    new = np.array([[-0.5], [0.8]])
    density = stats.norm.pdf(new, kept[:, None]).mean(axis=0)
    expected = density / density.sum(axis=1, keepdims=True)
    options = {"draws": 2000, "chains": 2, "target_accept": 0.97, "progressbar": False}
    clf = bg.from_pymc(model).fit(random_state=0, **options)
    np.testing.assert_allclose(clf.predict_proba(new), expected, atol=0.02)
    free = stats.norm.pdf(new, total / 3, np.sqrt(4 / 3))  # what the independent prior says
    assert np.abs(free / free.sum(axis=1, keepdims=True) - expected).max() > 0.1
