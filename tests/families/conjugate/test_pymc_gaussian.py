"""PyMC models of the Gaussian families: their log posteriors are ours, by both likelihoods."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import digamma, polygamma

import bayesgen as bg
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.posterior.model import ClassModel
from tests.graphs import PYTHON
from tests.selection import rest_is_slow

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings at import of PyMC and PyTensor are not ours
    import pymc as pm
    import pytensor
    from pytensor.compile.mode import Mode

RNG = np.random.default_rng(0)
N, Y = 24, np.array(list("abc"))[np.arange(24) % 3]
X = RNG.normal(size=(N, 3)) @ [[1.0, 0.8, 0.0], [0.0, 0.6, 0.0], [0.5, 0.0, 20.0]]
X += (np.arange(N) % 3)[:, None] * [1.0, -0.5, 30.0] + [5.0, -3.0, 200.0]


@dataclass
class Case:
    """A classifier with its rows, fitted once."""

    clf: Any
    X: Any
    name: str

    @cached_property
    def fitted(self) -> Any:
        return self.clf.fit(self.X, Y)

    @cached_property
    def encoded(self) -> Any:
        return self.fitted.fitted_.read(self.X).encoded


def _changed(cells: dict[tuple[int | slice, int], float]) -> np.ndarray:
    out = X.copy()
    for cell, value in cells.items():
        out[cell] = value
    return out


GAPS = _changed({(2, 1): np.nan, (5, 0): np.nan, (5, 2): np.nan})
CONSTANT = _changed({(slice(None), 1): 7.0})
TABLE = pd.DataFrame(GAPS[:, :2], columns=["p", "q"]).assign(
    bit=RNG.random(N) < 0.4, word=RNG.choice(["u", "v", "w"], N)
)
SEPARATE = [
    *(
        Case(bg.GaussianNB(variance=v), X, v)
        for v in ("class", "tied", "class_spherical", "spherical")
    ),
    Case(bg.GaussianNB(1.0, 0.5, 4.0, [1.0, 2.0, 300.0]), X, "own-prior"),
    Case(bg.GaussianNB(), GAPS, "missing"),
    Case(bg.GaussianNB(variance="tied"), CONSTANT, "constant"),
    Case(bg.MixedNB(), TABLE, "mixed"),
]
PSI = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 4.0], [0.0, 4.0, 300.0]])
FULL = [
    Case(bg.LinearDiscriminant(), X, "linear"),
    Case(bg.LinearDiscriminant(1.0, [0.5, 1.0, 2.0], 4.5, PSI), X, "linear-own-prior"),
    Case(bg.LinearDiscriminant(), CONSTANT, "linear-constant"),
    Case(bg.QuadraticDiscriminant(), X, "quadratic"),
    Case(bg.QuadraticDiscriminant(nu0=[3.0, 5.0, 7.0], psi0=PSI), X, "quadratic-own-prior"),
    Case(bg.QuadraticDiscriminant(), CONSTANT, "quadratic-constant"),
    Case(bg.QuadraticDiscriminant(), X[:, :1], "quadratic-one-feature"),
]
# the laws hold the families to their graphs; here are what classifiers make of them
FAST = ["missing", "mixed", "linear-constant", "quadratic-own-prior"]
every_case = pytest.mark.parametrize(
    "case",
    [
        case if case.name in FAST else pytest.param(case, marks=pytest.mark.slow)
        for case in SEPARATE + FULL
    ],
    ids=lambda case: case.name,
)


@pytest.fixture(autouse=True)
def _third_parties() -> Iterator[None]:
    """Deprecations inside PyTensor, PyMC and ArviZ are for them to mend."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        yield


def compiled(model: Any, *, jacobian: bool) -> Any:
    """Log density as a function of the free variables themselves, by their names."""
    log_p = model.compile_logp(jacobian=jacobian, mode=PYTHON)
    forward = {}
    for rv in model.free_RVs:
        transform, value = model.rvs_to_transforms[rv], model.rvs_to_values[rv]
        forward[rv.name] = (value.name, rv, transform)

    def at(theta: dict[str, np.ndarray]) -> float:
        point = {}
        for name, (value_name, rv, transform) in forward.items():
            z = theta[name]
            if transform is not None:  # where it depends on other variables, at their values
                z = transform.forward(np.asarray(z), *rv.owner.inputs)
                given = {v: theta[v.name] for v in model.free_RVs if v is not rv}
                z = z.eval(
                    {v: g for v, g in given.items() if v in pytensor.graph.ancestors([z])},
                    mode=PYTHON,
                    on_unused_input="ignore",
                )
            point[value_name] = z
        return float(log_p(point))

    return at


def draw(clf: Any, seed: int) -> dict[str, np.ndarray]:
    """One draw of the prior, near enough to the data for digits to be left."""
    draws = ClassModel.draw(clf.model_, np.random.default_rng(seed), 1)
    return {name: value[0] for name, value in draws.items()}


def with_coordinates(family: Any, theta: dict[str, np.ndarray], rows: Any) -> dict[str, Any]:
    if isinstance(family, NormalInverseWishart):
        return theta | {k: v for k, (_, v) in family.pymc_coordinates(theta, rows).items()}
    return theta


def log_prior(family: Any, theta: dict[str, np.ndarray]) -> float:
    if isinstance(family, bg.families.Columns):
        parts = [
            log_prior(block, {k: theta[f"{name}_{k}"] for k in block.params})
            for name, block, _ in family._blocks()
        ]
        return float(sum(parts))
    if isinstance(family, NormalInverseGamma):
        variance = family._variance_of(theta)
        out = stats.invgamma.logpdf(
            variance, family.nu / 2, scale=family.nu * family.sigma2 / 2
        ).sum()
        sd = np.sqrt(variance / family.kappa)
        return float(out + stats.norm.logpdf(theta["mu"], family.mu + family.shift, sd).sum())
    if isinstance(family, NormalInverseWishart):
        return log_prior_full(family, theta)
    if isinstance(family, bg.families.BetaBernoulli):
        return float(stats.beta.logpdf(theta["theta"], family.alpha, family.beta).sum())
    alpha, p = (a.reshape(-1, a.shape[-1]) for a in (family.alpha, theta["theta"]))
    return sum(float(stats.dirichlet.logpdf(q, a)) for q, a in zip(p, alpha, strict=True))


def log_prior_full(family: Any, theta: dict[str, np.ndarray]) -> float:
    mu, groups = theta["mu"], len(family.psi)
    Sigma = np.broadcast_to(theta["Sigma"], (len(mu), *family.psi.shape[1:]))
    out = sum(stats.invwishart.logpdf(Sigma[g], family.nu[g], family.psi[g]) for g in range(groups))
    for c, m in enumerate(family.mu + family.shift):
        out += stats.multivariate_normal.logpdf(mu[c], m, Sigma[c] / family.kappa[c])
    return float(out)


def log_joint(case: Case, theta: dict[str, np.ndarray]) -> float:
    """log prior + log likelihood of rows and labels, in NumPy and SciPy."""
    clf, codes = case.fitted, case.fitted.fitted_.codes_of(Y)
    family = clf.prior_.family
    rows = family.log_likelihood(case.encoded, theta)[np.arange(N), codes]
    out = rows.sum() + np.log(theta["pi"])[codes].sum()
    out += stats.dirichlet.logpdf(theta["pi"], clf.prior_.alpha) + log_prior(family, theta)
    return float(out)


def log_jacobian(family: Any, theta: dict[str, np.ndarray], rows: Any) -> float:
    """log |d coordinates / d (mu, lower half of Sigma)|, by central differences."""
    mu, factor = theta["mu"], np.linalg.cholesky(theta["Sigma"])
    dim = mu.shape[-1]
    i, j = np.tril_indices(dim)
    scale = np.sqrt(np.diagonal(theta["Sigma"], axis1=-2, axis2=-1))
    unit_mu = np.broadcast_to(scale, mu.shape)
    sizes = mu.size, factor[..., i, j].size
    h = 1e-5

    def coordinates(moves: np.ndarray) -> np.ndarray:
        step = (moves[:, : sizes[0]]).reshape(-1, *mu.shape) * unit_mu
        half = (moves[:, sizes[0] :]).reshape(-1, *factor[..., i, j].shape)
        delta = np.zeros((len(moves), *factor.shape))
        delta[..., i, j] = half
        delta[..., j, i] = half
        Sigma = theta["Sigma"] + factor @ delta @ np.swapaxes(factor, -1, -2)
        out = family.pymc_coordinates({"mu": mu + step, "Sigma": Sigma}, rows)
        return np.concatenate([v.reshape(len(moves), -1) for _, v in out.values()], axis=1)

    eye = h * np.eye(sum(sizes))
    jacobian = (coordinates(eye) - coordinates(-eye)) / (2 * h)
    # the steps were in units of the standard deviation, and of L delta L^T: |L|^(D + 1)
    units = np.log(unit_mu).sum()
    units += (dim + 1) * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum()
    return float(np.linalg.slogdet(jacobian)[1] - units)


@every_case
def test_log_posterior_is_ours(case: Case) -> None:
    clf = case.fitted
    family, rows = clf.prior_.family, clf.stats_.features
    by_rows = compiled(clf.to_pymc(case.X, Y, likelihood="rows"), jacobian=False)
    by_statistics = compiled(clf.to_pymc(), jacobian=False)
    for seed in range(2):
        theta = draw(clf, seed)
        free = with_coordinates(family, theta, rows)
        ours = log_joint(case, theta)
        if isinstance(family, NormalInverseWishart):
            ours -= log_jacobian(family, theta, rows)
        assert by_rows(free) == pytest.approx(by_statistics(free), rel=1e-11)
        assert by_statistics(free) == pytest.approx(ours, rel=1e-7 if "Sigma" in theta else 1e-10)


@pytest.mark.parametrize("case", [SEPARATE[1], FULL[0], FULL[5]], ids=lambda case: case.name)
def test_rows_and_statistics_have_the_same_coordinates(case: Case) -> None:
    clf = case.fitted
    models = [clf.to_pymc(), clf.to_pymc(case.X, Y, likelihood="rows")]
    by_statistics, by_rows = (m.compile_logp(mode=PYTHON) for m in models)
    start = models[0].initial_point(0)
    for _ in range(3):
        point = {name: v + 0.3 * RNG.normal(size=v.shape) for name, v in start.items()}
        assert by_rows(point) == pytest.approx(by_statistics(point), rel=1e-10)


@pytest.mark.parametrize("case", [FULL[1], FULL[5]], ids=lambda case: case.name)
def test_mu_and_Sigma_are_those_of_the_coordinates(case: Case) -> None:
    clf = case.fitted
    family, rows = clf.prior_.family, clf.stats_.features
    theta = draw(clf, 0)
    for model, given in ((clf.to_pymc(), rows), (clf.to_pymc(observed=False), None)):
        free = with_coordinates(family, theta, given)
        inputs = {v: free[v.name] for v in model.free_RVs if v.name != "pi"}
        for name in ("mu", "Sigma"):
            ours = model[name].eval(inputs, mode=PYTHON, on_unused_input="ignore")
            np.testing.assert_allclose(ours, theta[name], rtol=1e-8, atol=1e-8)


@every_case
def test_variables_are_those_of_the_closed_form_draws(case: Case) -> None:
    clf = case.fitted
    draws = clf.posterior_["posterior"]
    coordinates = {"precision_diagonal", "precision_lower", "mu_white"} if case in FULL else set()
    for model in (
        clf.to_pymc(),
        clf.to_pymc(case.X, Y, likelihood="rows"),
        clf.to_pymc(observed=False),
    ):
        names = {v.name for v in model.free_RVs + model.deterministics}
        assert names == set(draws.data_vars)
        assert coordinates <= names
        for name in draws.data_vars:
            dims = draws[name].dims[2:]
            assert tuple(model.named_vars_to_dims.get(name, ())) == dims
            for dim in dims:
                assert list(model.coords[dim]) == draws[dim].values.tolist()
        assert model.str_repr()
        assert model.table() is not None


@pytest.mark.parametrize("case", [SEPARATE[7], FULL[3]], ids=lambda case: case.name)
def test_graph_is_drawn(case: Case) -> None:
    pytest.importorskip("graphviz")
    clf = case.fitted
    assert "label" in pm.model_to_graphviz(model=clf.to_pymc(case.X, Y, likelihood="rows")).source


def assert_mean(draws: np.ndarray, expected: Any) -> None:
    """Independent draws (n, ...) have this mean, within Monte Carlo error."""
    se = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - expected) < 4.5 * se)


@pytest.mark.parametrize(
    "case",
    rest_is_slow([*SEPARATE[:5], FULL[1], FULL[4], FULL[5]], [SEPARATE[1], FULL[5]]),
    ids=lambda case: case.name,
)
def test_prior_is_sampled(case: Case) -> None:
    clf, family = case.fitted, case.fitted.prior_.family
    with clf.to_pymc(observed=False):
        tree = pm.sample_prior_predictive(draws=400, random_seed=1, compile_kwargs={"mode": PYTHON})
    prior = {name: v.values[0] for name, v in tree["prior"].data_vars.items()}
    d = prior["mu"] - (family.mu + family.shift)
    if case in SEPARATE:
        log_sigma2 = np.log(family._variance_of(prior))
        expected = np.log(family.nu * family.sigma2 / 2) - digamma(family.nu / 2)
        assert_mean(log_sigma2, expected)
        assert_mean((log_sigma2 - expected) ** 2, polygamma(1, family.nu / 2))
        z = d * np.sqrt(family.kappa) / np.exp(log_sigma2 / 2)
        assert_mean(z, 0.0)
        assert_mean(z**2, 1.0)
        return
    Sigma = prior["Sigma"][:, None] if family.shared else prior["Sigma"]
    precision = np.linalg.inv(Sigma)
    assert_mean(precision, family.nu[:, None, None] * np.linalg.inv(family.psi))
    k = np.arange(family.psi.shape[1])
    log_det = digamma((family.nu[:, None] - k) / 2).sum(1) + len(k) * np.log(2)
    assert_mean(np.linalg.slogdet(precision)[1], log_det - np.linalg.slogdet(family.psi)[1])
    q = np.einsum("sci,scij,scj->sc", d, np.broadcast_to(precision, (*d.shape, len(k))), d)
    assert_mean(family.kappa * q, len(k))
    assert_mean(d / np.sqrt(np.diagonal(Sigma, axis1=-2, axis2=-1)), 0.0)


@pytest.mark.parametrize("case", [FULL[1], FULL[3], SEPARATE[3]], ids=lambda case: case.name)
def test_closed_form_draws_feed_the_model(case: Case) -> None:
    clf, family = case.fitted, case.fitted.prior_.family
    tree = clf.draw_posterior(draws=3, chains=1)
    theta = {name: tree["posterior"][name].values for name in clf.model_.params}
    with clf.to_pymc(case.X, Y, likelihood="rows") as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the progress bar, and of what PyMC does not track
        for name, variable in tree["posterior"].data_vars.items():
            assert variable.dims == ("chain", "draw", *model.named_vars_to_dims.get(name, ()))
        options: dict[str, Any] = {"progressbar": False, "compile_kwargs": {"mode": PYTHON}}
        rows = pm.compute_log_likelihood(tree, extend_inferencedata=False, **options)
        new = pm.sample_posterior_predictive(tree, random_seed=1, **options)
    ours = family.log_likelihood(case.encoded, theta)[0][:, np.arange(N), clf.fitted_.codes_of(Y)]
    by_row = rows["x"].values[0]
    by_row = by_row if by_row.ndim == 2 else by_row.sum(axis=-1)
    np.testing.assert_allclose(by_row, ours, rtol=1e-9)
    assert new["posterior_predictive"]["x"].shape == (1, 3, N, X.shape[1])


def test_an_offset_costs_no_digits() -> None:
    """At 1e8 the log density of the statistics is that of the centred rows."""
    shifted = X + 1e8
    near = bg.GaussianNB().fit(shifted - 1e8, Y).to_pymc()
    far = bg.GaussianNB().fit(shifted, Y).to_pymc()
    mode = Mode(linker="py", optimizer="fast_run")  # rewrites cancel the shift
    a, b = near.compile_logp(mode=mode), far.compile_logp(mode=mode)
    point = near.initial_point(0)
    point = {name: v + 0.3 * RNG.normal(size=v.shape) for name, v in point.items()}
    assert b(point) == pytest.approx(a(point), rel=1e-11)


def test_rows_with_missing_cells_are_refused_under_a_full_covariance() -> None:
    clf = bg.LinearDiscriminant().fit(X, Y)
    with pytest.raises(ValueError, match="missing cells"):
        clf.to_pymc(GAPS, Y, likelihood="rows")
