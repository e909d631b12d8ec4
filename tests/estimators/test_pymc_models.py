"""Models as different people write them: equal to an average by NumPy and SciPy, or refused.

Each function writes one model, and returns its rows with their density at draws. The draws are
those of the prior, so that nothing is sampled: arrays (draw, 1, ...), so that a parameter of
classes is (draw, 1, class), and a number (draw, 1, 1). A density is (draw, row, class).
Other distributions: the examples of docs/how_to/other_models.md, which are fitted.
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
from tests.selection import rest_is_slow

pytestmark = pytest.mark.filterwarnings(
    "ignore::bayesgen.posterior.drawn.MonteCarloWarning", "ignore:Data in"
)
N, S = 21, 20
RNG = np.random.default_rng(77)
Y = np.arange(N) % 3
X = RNG.normal(size=(N, 2)) + Y[:, None]
FIRST = X[:, :1]
AGE = RNG.normal(size=N)
COUNT = RNG.poisson(1.0 + Y) * RNG.integers(2, size=N)
WORDS = RNG.multinomial(9, [0.5, 0.3, 0.2], size=N)
POSITIVE = np.abs(X[:, 0]) + 0.1
SITE = RNG.integers(4, size=N)
SLOPE = RNG.normal(size=(N, 2))
NAMES = np.array(["oak", "ash", "elm"])  # not sorted
COORDS = {"kind": list(NAMES), "column": ["long", "wide"], "row": range(N), "part": [0, 1]}
norm = stats.norm.logpdf
Draws = dict[str, np.ndarray]


class Written(NamedTuple):
    X: Any
    log_x: Callable[[Draws], np.ndarray]
    weights: Callable[[Draws], np.ndarray] = lambda d: d["w"]


def three() -> Any:
    return pm.Categorical("label", pm.Dirichlet("w", np.full(3, 9.0)), observed=Y)


def means() -> Any:
    return pm.Normal("mu", 0, 1, shape=(3, 2))


def normal(x: np.ndarray, d: Draws, sd: Any = 1.0) -> np.ndarray:
    return norm(x[:, None], d["mu"], sd).sum(axis=-1)


def plates_with_dims() -> Written:
    pm.modelcontext(None).add_coords(COORDS)
    y = pm.Categorical("label", pm.Dirichlet("w", np.ones(3), dims="kind"), observed=Y, dims="row")
    mu = pm.Normal("mu", 0, 1, dims=("kind", "column"))
    sigma = pm.Gamma("sigma", 9, 9, dims=("kind", "column"))
    nu = pm.Gamma("nu", 9, 1)
    pm.StudentT("x", nu=nu, mu=mu[y], sigma=sigma[y], observed=X, dims=("row", "column"))

    def log_x(d: Draws) -> np.ndarray:
        nu = d["nu"][..., None]
        return stats.t.logpdf(X[:, None], nu, d["mu"], d["sigma"]).sum(axis=-1)

    return Written(X, log_x)


def class_weights_of_each_row() -> Written:
    pm.modelcontext(None).add_coords(COORDS)
    slope = pm.Data("slope", SLOPE, dims=("row", "part"))
    beta = pm.Normal("beta", 0, 1, dims=("part", "kind"))
    p = pm.math.softmax(slope @ beta, axis=-1)
    y = pm.Categorical("label", p, observed=Y, dims="row")
    mu = pm.Normal("mu", 0, 1, dims="kind")
    pm.Normal("x", mu[y], 1.5, observed=X[:, 0], dims="row")
    return Written(
        np.column_stack([FIRST, SLOPE]),
        lambda d: norm(FIRST, d["mu"], 1.5),
        lambda d: special.softmax(SLOPE @ d["beta"][:, 0], axis=-1),
    )


def columns_of_pandas_and_containers() -> Written:
    codes, levels = pd.factorize(np.array(["rye", "oat", "fig"])[Y])
    pm.modelcontext(None).add_coord("row", range(N))
    y = pm.Data("y", codes, dims="row")
    pm.Categorical("label", pm.Dirichlet("w", np.ones(len(levels))), observed=y, dims="row")
    mu = means()
    pm.Normal("first", mu[:, 0][y], 0.5, observed=pd.Series(X[:, 0]))
    pm.Normal("second", mu[y, 1], 1.5, observed=pm.Data("rows", X[:, 1]))
    return Written(X, lambda d: normal(X, d, np.array([0.5, 1.5])))


def columns_of_several_kinds() -> Written:
    x, colour = POSITIVE[:, None], (SITE + Y) % 3
    y = three()
    pm.Gamma("wait", alpha=pm.Gamma("shape", 9, 3, shape=3)[y], beta=2.0, observed=POSITIVE)
    pm.LogNormal("size", means()[y, 1], 0.5, observed=POSITIVE)
    pm.Categorical("colour", pm.Dirichlet("p", np.ones((3, 3)))[y], observed=colour)

    def log_x(d: Draws) -> np.ndarray:
        wait = stats.gamma.logpdf(x, d["shape"], scale=0.5)
        size = norm(np.log(x), d["mu"][..., 1], 0.5) - np.log(x)
        return wait + size + np.log(d["p"][:, 0, :, colour]).transpose(1, 0, 2)

    return Written(np.column_stack([x, x, colour]), log_x)


def one_covariance() -> Written:
    chol, _, _ = pm.LKJCholeskyCov("packed", n=2, eta=2, sd_dist=pm.Gamma.dist(9, 9))
    pm.MvNormal("x", means()[three()], chol=chol, observed=X)

    def log_x(d: Draws) -> np.ndarray:
        a, b, c = np.moveaxis(d["packed"], -1, 0)[..., None]
        step = X[:, None] - d["mu"]
        first = step[..., 0] / a
        second = (step[..., 1] - b * first) / c
        return norm(first) + norm(second) - np.log(a * c)

    return Written(X, log_x)


def censored() -> Written:
    seen = np.clip(FIRST, 0, 1.5)
    y, mu = three(), pm.Normal("mu", shape=3)
    pm.Censored("x", pm.Normal.dist(mu[y], 0.8), lower=0, upper=1.5, observed=seen[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        mu = d["mu"]
        below, above = stats.norm.logcdf(0, mu, 0.8), stats.norm.logsf(1.5, mu, 0.8)
        return np.where(seen <= 0, below, np.where(seen >= 1.5, above, norm(seen, mu, 0.8)))

    return Written(seen, log_x)


def a_density_of_its_own() -> Written:
    def log_p(value: Any, mu: Any) -> Any:
        return -abs(value - mu) - np.log(2.0)

    mu = pm.Normal("mu", shape=3)
    pm.CustomDist("x", mu[three()], logp=log_p, observed=X[:, 0])
    return Written(FIRST, lambda d: stats.laplace.logpdf(FIRST, d["mu"]))


def regression_given_age() -> Written:
    age, y = pm.Data("age", AGE), three()
    a, b = pm.Normal("a", shape=3), pm.Normal("b", shape=3)
    pm.Normal("x", a[y] + b[y] * age, 0.9, observed=X[:, 0])
    rows = np.column_stack([FIRST, AGE])
    return Written(rows, lambda d: norm(FIRST, d["a"] + d["b"] * AGE[:, None], 0.9))


def a_design_matrix_with_the_label() -> Written:
    age, y = pm.Data("age", AGE), pm.Bernoulli("label", pm.Beta("p", 2, 2), observed=Y > 0)
    design = pt.stack([pt.ones(age.shape), y, age], axis=1)  # one label does not serve all rows
    pm.Normal("x", design @ pm.Normal("beta", shape=3), 0.9, observed=X[:, 0])

    def log_x(d: Draws) -> np.ndarray:
        a, b, c = np.moveaxis(d["beta"], -1, 0)[..., None]
        return norm(FIRST, a + b * [0, 1] + c * AGE[:, None], 0.9)

    return Written(np.column_stack([FIRST, AGE]), log_x, lambda d: np.abs([1, 0] - d["p"]))


def label_of_two_by_log_odds() -> Written:
    age = pm.Data("age", AGE)
    odds = pm.Normal("a") + pm.Normal("b") * age
    y = pm.Bernoulli("label", logit_p=odds, observed=pm.Data("y", (Y > 0).astype(int)))
    mu = pm.Normal("mu", shape=2)
    pm.Normal("x", pm.math.switch(y, mu[1], mu[0]), 0.9, observed=X[:, 0])
    return Written(
        np.column_stack([FIRST, AGE]),
        lambda d: norm(FIRST, d["mu"], 0.9),
        lambda d: special.expit((d["a"] + d["b"] * AGE[:, None]) * [-1, 1]),
    )


def a_potential_of_the_prior() -> Written:
    y, mu = three(), means()
    pm.Potential("close", -pt.sum((mu - mu.mean(axis=0)) ** 2))
    pm.Normal("x", mu[y], 1.0, observed=X)
    return Written(X, lambda d: normal(X, d))


def hyper_parameters_as_long_as_rows() -> Written:
    wide = RNG.normal(size=(N, N))
    y, centre = three(), pm.Data("centre", np.linspace(0, 1, N))
    mu = centre + pm.Normal("z", shape=(3, N))
    pm.Normal("x", mu[y], pm.Data("sd", np.full(N, 2.0)), observed=wide)
    return Written(wide, lambda d: normal(wide, {"mu": np.linspace(0, 1, N) + d["z"]}, 2.0))


def cells_are_missing() -> Written:
    gaps = X.copy()
    gaps[::4, 0] = gaps[1::5, 1] = np.nan
    y, scale = three(), pm.Gamma("scale", 9, 9, shape=2)
    pm.Normal("x", means()[y], scale, observed=np.ma.masked_invalid(gaps))

    def log_x(d: Draws) -> np.ndarray:
        return np.nansum(norm(gaps[:, None], d["mu"], d["scale"][:, :, None]), axis=-1)

    return Written(gaps, log_x)


def cells_of_a_mixture_are_missing() -> Written:
    gaps, age = np.where(FIRST > 1.5, np.nan, FIRST), np.where(AGE < -1, np.nan, AGE)[:, None]
    y, _ = three(), pm.Normal("other", 0, 1, observed=np.ma.masked_less(AGE, -1))
    two = [pm.Normal.dist(means()[y, 0], 0.5), pm.Normal.dist(0, 3)]
    pm.Mixture("x", w=[0.8, 0.2], comp_dists=two, observed=np.ma.masked_invalid(gaps[:, 0]))

    def log_x(d: Draws) -> np.ndarray:
        near, far = stats.norm.pdf(gaps, d["mu"][..., 0], 0.5), stats.norm.pdf(gaps, 0, 3)
        return np.nan_to_num(np.log(0.8 * near + 0.2 * far)) + np.nan_to_num(norm(age))

    return Written(np.column_stack([age, gaps]), log_x)


ACCEPTED = [
    f for f in [*globals().values()] if getattr(f, "__annotations__", {}).get("return") is Written
]


def draws_of(model: Any) -> Draws:
    """Draw (S, ...) values of the free variables from their prior."""
    drawn = pm.draw(model.free_RVs, draws=S, random_seed=3, mode=PYTHON)
    draws = {v.name: values for v, values in zip(model.free_RVs, drawn, strict=True)}
    for v in model.free_RVs:
        if "ordered" in type(model.rvs_to_transforms[v]).__name__:
            draws[v.name] = np.sort(draws[v.name], axis=-1)
    return draws


def by_class(draws: Draws) -> Draws:
    return {name: v.reshape(S, 1, *(v.shape[1:] or (1,))) for name, v in draws.items()}


def trace(model: Any, draws: Draws) -> xr.Dataset:
    """Return draws as a sampler does: without cells that PyMC imputes."""
    variables = {}
    for v in model.free_RVs:
        if not v.name.endswith("_unobserved"):
            dims = model.named_vars_to_dims.get(v.name)
            dims = dims or [f"{v.name}_dim_{i}" for i in range(v.ndim)]
            variables[v.name] = (("chain", "draw", *dims), draws[v.name][None])
    return xr.Dataset(variables)


class Classified(NamedTuple):
    """A classifier with draws, rows, and (draw, row, class) log densities in its order."""

    model: Any
    draws: Draws
    clf: Any
    X: np.ndarray
    log_joint: np.ndarray


def classified(write: Callable[[], Written]) -> Classified:
    with pm.Model() as model:
        written = write()
    draws = draws_of(model)
    clf = bg.from_pymc(model).with_posterior(trace(model, draws))
    joint = written.log_x(by_class(draws)) + np.log(written.weights(by_class(draws)))
    order = np.argsort(NAMES) if "kind" in model.coords else slice(None)
    return Classified(model, draws, clf, np.asarray(written.X, dtype=float), joint[..., order])


@pytest.mark.parametrize(
    "write",
    rest_is_slow(
        ACCEPTED,
        [plates_with_dims, class_weights_of_each_row, label_of_two_by_log_odds, cells_are_missing],
    ),
    ids=lambda f: f.__name__,
)
def test_predictions_are_the_average_over_draws(write: Callable[[], Written]) -> None:
    _, _, clf, rows, joint = classified(write)
    expected = special.logsumexp(joint, axis=0) - np.log(S)
    np.testing.assert_allclose(clf.predict_joint_log_proba(rows), expected, rtol=1e-10, atol=1e-10)
    p = special.softmax(expected, axis=1)
    np.testing.assert_allclose(clf.predict_proba(rows), p, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------------- what is refused, and why


def loop_over_classes(y: Any) -> None:
    for k in range(3):
        pm.Normal(f"x_{k}", pm.Normal(f"mu_{k}"), 1, observed=X[k == Y])


def words_in_long_form(y: Any) -> None:
    document, word = np.nonzero(WORDS)
    p = pm.Dirichlet("p", np.ones((3, 3)))
    pm.Categorical("word", p[y[document]], observed=word)


def gaps_that_others_depend_on(y: Any) -> None:
    first = pm.Normal("first", means()[y, 0], 1, observed=np.ma.masked_greater(X[:, 0], 2))
    pm.Normal("second", first, 1, observed=X[:, 1])


def a_potential_of_rows(y: Any) -> None:
    pm.Normal("x", y, 1.0, observed=FIRST[:, 0])
    pm.Potential("more", pm.Normal("z") * y.sum())


def normals(mean: Any, X: Any = X, **options: Any) -> None:
    pm.Normal("x", mean, 1.0, observed=X, **options)


REFUSED: dict[str, Callable[[Any], Any]] = {
    r"'x_0' has shape \(7, 2\).*one variable for all classes.*theta\[label": loop_over_classes,
    r"'word' has shape.*every row one line: counts in a pm.Multinomial": words_in_long_form,
    "'x' has total_size=.*leave it out": lambda y: normals(means()[y], total_size=(100, None)),
    "cells of 'x' are missing.*MultivariateNormal.* whole rows: leave incomplete": lambda y: (
        pm.MvNormal("x", means()[y], np.eye(2), observed=np.ma.masked_greater(X, 2))
    ),
    "'first' are missing: other columns depend on 'first'": gaps_that_others_depend_on,
    r"'x' depends on an array that equals.*theta\[label\]": lambda y: normals(means()[Y]),
    "'x' do not depend on 'label'": lambda y: normals(pm.Normal("mu")),
    "nothing but the label": lambda y: None,
    "an array of 21 rows.*make it pm.Data": lambda y: normals(AGE + y, X[:, 0]),
    "'effect' has a value for each of the 21 rows": lambda y: normals(
        pm.Normal("effect", shape=N) + y, X[:, 0]
    ),
    "the potential 'more'": a_potential_of_rows,
    "call the class weights 'pi'": lambda y: normals(pm.Normal("pi", shape=3)[y], X[:, 0]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_models_are_refused_with_what_to_write(reason: str) -> None:
    with pm.Model() as model:
        REFUSED[reason](three())
    with pytest.raises(ValueError, match=reason):
        bg.from_pymc(model)


def test_labels_are_needed() -> None:
    with pm.Model() as model:
        y = pm.Categorical("label", np.ones(3) / 3, observed=np.ma.masked_equal(Y, 2))
        normals(means()[y])
    with pytest.raises(ValueError, match="'label' are missing: leave rows without a label out"):
        bg.from_pymc(model)
    with pm.Model() as model:
        loop_over_classes(None)
    with pytest.raises(ValueError, match=r"x_0 \(Normal\).*one variable with parameters theta"):
        bg.from_pymc(model)


# ----------------------------------------------------------------------- what a family has besides


@pytest.fixture(scope="module")
def regression() -> Any:
    """A classifier of all its draws equal, its rows and the log densities of its first column."""
    with pm.Model() as model:
        written = regression_given_age()
        pm.Poisson("count", 3.0, observed=COUNT)
    draws = {k: np.repeat(v[:1], S, axis=0) for k, v in draws_of(model).items()}
    clf = bg.from_pymc(model).with_posterior(trace(model, draws))
    return clf, np.column_stack([FIRST, COUNT, AGE]), written.log_x(by_class(draws))[0], draws["w"]


@pytest.mark.slow
def test_known_parameters_explain_each_cell(regression: Any) -> None:
    clf, rows, log_x, w = regression
    rows = rows[:4].copy()
    rows[1, 0] = np.nan
    table = clf.explain(rows, classes=(1, 0))
    expected = np.zeros((4, 3))
    expected[:, 0] = np.where(np.isnan(rows[:, 0]), 0, log_x[:4, 1] - log_x[:4, 0])
    np.testing.assert_allclose(table["predictive"], expected, atol=1e-10)
    odds = np.log(w[0, 1] / w[0, 0])
    np.testing.assert_allclose(table["predictive_intercept"], odds, rtol=1e-10)
    with pytest.raises(ValueError, match=r"column 'age'.*no distribution of this column"):
        clf.predict_proba(np.where(np.arange(3) == 2, np.nan, rows))


@pytest.mark.slow
def test_rows_of_the_model_are_at_hand(regression: Any) -> None:
    clf, rows, _, _ = regression
    elpd = clf.loo(*clf.rows_).elpd
    assert elpd == clf.loo(rows, Y).elpd


@pytest.mark.slow
def test_vectors_are_not_explained() -> None:
    with pm.Model() as model:
        one_covariance()
    clf = bg.from_pymc(model).with_posterior(trace(model, draws_of(model)))
    with pytest.raises(ValueError, match=r"column 'x\[1\]'.*MultivariateNormal.* whole rows"):
        clf.predict_proba([[0.5, np.nan]])
    with pytest.raises(NotImplementedError, match="missing cells: the density of 'x'"):
        clf.explain(X[:2])


@pytest.mark.slow
def test_local_optima_are_those_of_conjugate_models() -> None:
    gaps, names = np.where(X > 2, np.nan, X), ["c", "a", "b"]
    with pm.Model(coords={"class": names, "column": ["u", "v"]}) as model:
        y = pm.Categorical("label", pm.Dirichlet("pi", np.full(3, 2.0), dims="class"), observed=Y)
        mu = pm.Normal("mu", 1, 2, dims=("class", "column"))
        pm.Normal("x", mu[y], 0.8, observed=np.ma.masked_invalid(gaps))
    rng = np.random.default_rng(1)
    draws = {"pi": rng.dirichlet([8, 8, 8], 50), "mu": 1 + rng.normal(size=(50, 3, 2))}
    clf = bg.from_pymc(model)
    clf = clf.with_posterior(trace(model, draws).assign_coords({"class": names}))
    n = np.stack([np.isfinite(gaps[k == Y]).sum(axis=0) for k in range(3)])
    total = np.stack([np.nansum(gaps[k == Y], axis=0) for k in range(3)])
    mode = (total / 0.64 + 1 / 4) / (n / 0.64 + 1 / 4)
    for method, mu in (("mle", total / n), ("map", mode)):
        estimates = clf.estimates(method)
        np.testing.assert_allclose(estimates["mu"].sel({"class": names}), mu, rtol=1e-5)
        np.testing.assert_allclose(estimates["pi"], 1 / 3, rtol=1e-5)
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
