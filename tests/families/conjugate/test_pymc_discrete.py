"""PyMC models of the discrete families: their log posteriors are ours, by both likelihoods."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

import bayesgen as bg
from bayesgen.families.contract import ConjugateFamily
from bayesgen.posterior.model import ClassModel
from tests.graphs import PYTHON

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings at import of PyMC and PyTensor are not ours
    import pymc as pm

RNG = np.random.default_rng(0)
N, Y = 30, np.array(list("abc"))[np.arange(30) % 3]


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


def _table(*n_categories: int) -> np.ndarray:
    columns = [RNG.integers(0, k, N) for k in n_categories]
    for k, column in zip(n_categories, columns, strict=True):
        column[:k] = np.arange(k)  # every category is seen
    return np.array([[f"{k}{v}" for v in c] for k, c in zip("pqrs", columns, strict=False)]).T


def _with_gaps(X: np.ndarray) -> np.ndarray:
    X = X.astype(object if X.dtype.kind in "US" else float)
    X[2, 1] = X[5, 0] = np.nan
    return X


BITS = (RNG.random((N, 4)) < 0.4).astype(float)
COUNTS = RNG.poisson(2.0, (N, 4)).astype(float)
TEXTS = ["".join(RNG.choice(list("xyz"), RNG.integers(1, 8))) for _ in range(N)]
CASES = [
    Case(bg.BernoulliNB(0.7, 2.0), BITS, "bernoulli"),
    Case(bg.BernoulliNB(), _with_gaps(BITS), "bernoulli-missing"),
    Case(bg.CategoricalNB(0.7), _table(3, 3, 3), "categorical"),
    Case(bg.CategoricalNB(0.7), RNG.integers(0, 3, (N, 3)), "categorical-shared"),
    Case(bg.CategoricalNB(0.7), _table(3, 1, 2, 4), "categorical-ragged"),
    Case(bg.CategoricalNB(2.0), _with_gaps(_table(2, 4, 1)), "categorical-ragged-missing"),
    Case(bg.CategoricalNB(), _table(1, 1), "categorical-constant"),
    Case(bg.MultinomialNB(0.6), COUNTS, "multinomial"),
    Case(bg.MultinomialNB(), sparse.csr_matrix(COUNTS), "multinomial-sparse"),
    Case(bg.PoissonNB(), COUNTS, "poisson"),
    Case(bg.PoissonNB(2.0, 0.5), _with_gaps(COUNTS), "poisson-missing"),
    Case(bg.MarkovNB(order=1, alpha=0.8), TEXTS, "markov-1"),
    Case(bg.MarkovNB(order=2, alpha=1.3), TEXTS, "markov-2"),
]
# the laws hold the families to their graphs; here are what classifiers make of them
FAST = ["bernoulli-missing", "categorical-ragged-missing", "markov-2"]
FAST += ["multinomial-sparse", "poisson"]
every_case = pytest.mark.parametrize(
    "case",
    [case if case.name in FAST else pytest.param(case, marks=pytest.mark.slow) for case in CASES],
    ids=lambda case: case.name,
)


@pytest.fixture(autouse=True)
def _third_parties() -> Iterator[None]:
    """Deprecations inside PyTensor, PyMC and ArviZ are for them to mend."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        yield


def compiled(model: Any) -> Any:
    """Log density as a function of the variables themselves, by their names."""
    log_p = model.compile_logp(jacobian=False, mode=PYTHON)
    values = {v.name: model.rvs_to_values[v] for v in model.free_RVs}
    transforms = {v.name: (v, model.rvs_to_transforms[v]) for v in model.free_RVs}

    def at(theta: dict[str, np.ndarray]) -> float:
        point = {}
        for name, value in values.items():
            rv, transform = transforms[name]
            forward = theta[name]
            if forward.ndim == rv.ndim + 1:  # listed by cell: padding is 0 in every class
                forward = forward[:, (forward > 0).any(axis=0)]
            if transform is not None:
                forward = transform.forward(forward, *rv.owner.inputs).eval(mode=PYTHON)
            point[value.name] = forward
        return float(log_p(point))

    return at


def log_dirichlet(theta: np.ndarray, alpha: np.ndarray) -> float:
    """Sum over the leading axes of Dirichlet log densities; alpha 0 is padding."""
    alpha = np.broadcast_to(alpha, theta.shape).reshape(-1, theta.shape[-1])
    return sum(
        float(stats.dirichlet.logpdf(p[a > 0], a[a > 0]))
        for p, a in zip(theta.reshape(alpha.shape), alpha, strict=True)
        if (a > 0).sum() > 1
    )


def log_prior(family: ConjugateFamily, theta: dict[str, np.ndarray]) -> float:
    match family:
        case bg.families.BetaBernoulli():
            return float(stats.beta.logpdf(theta["theta"], family.alpha, family.beta).sum())
        case bg.families.GammaPoisson():
            return float(
                stats.gamma.logpdf(theta["rate"], family.shape, scale=1 / family.rate).sum()
            )
        case bg.families.DirichletMarkov():
            return log_dirichlet(theta["theta"], family.alpha[:, None, :])
    return log_dirichlet(theta["theta"], family.alpha)


def log_joint(case: Case, theta: dict[str, np.ndarray]) -> float:
    """log prior + log likelihood of rows and labels, in NumPy and SciPy."""
    clf, codes = case.fitted, case.fitted.fitted_.codes_of(Y)
    rows = clf.model_.family.log_likelihood(case.encoded, theta)[np.arange(N), codes]
    out = rows.sum() + np.log(theta["pi"])[codes].sum()
    out += log_dirichlet(theta["pi"], clf.prior_.alpha) + log_prior(clf.prior_.family, theta)
    return float(out)


@every_case
def test_log_posterior_is_ours(case: Case) -> None:
    clf = case.fitted
    by_rows = compiled(clf.to_pymc(case.X, Y, likelihood="rows"))
    by_statistics = compiled(clf.to_pymc())
    for seed in range(3):
        draws = clf.prior_.draw(np.random.default_rng(seed), 1)
        if "markov" in case.name:  # the prior alone would list every context
            draws = clf.model_.draw(np.random.default_rng(seed), 1)
        theta = {name: value[0] for name, value in draws.items()}
        ours = log_joint(case, theta)
        assert by_rows(theta) == pytest.approx(ours, rel=1e-9)
        assert by_statistics(theta) == pytest.approx(ours, rel=1e-9)


@every_case
def test_variables_are_those_of_the_closed_form_draws(case: Case) -> None:
    clf = case.fitted
    draws = clf.posterior_["posterior"]
    names = set(draws.data_vars)
    for model in (
        clf.to_pymc(),
        clf.to_pymc(case.X, Y, likelihood="rows"),
        clf.to_pymc(observed=False),
    ):
        assert {v.name for v in model.free_RVs + model.deterministics} == names
        for name in names:
            dims = draws[name].dims[2:]
            assert tuple(model.named_vars_to_dims[name]) == dims
            for dim in dims:
                assert list(model.coords[dim]) == draws[dim].values.tolist()
        assert model.str_repr()
        assert model.table() is not None
    observed = clf.to_pymc(case.X, Y, likelihood="rows").observed_RVs
    assert [v.name for v in observed] == ["label", "x"]


@every_case
def test_prior_is_sampled(case: Case) -> None:
    clf = case.fitted
    with clf.to_pymc(observed=False):
        tree = pm.sample_prior_predictive(draws=20, random_seed=1, compile_kwargs={"mode": PYTHON})
    prior, posterior = tree["prior"], clf.posterior_["posterior"]
    assert set(prior.data_vars) == set(posterior.data_vars)
    for name, draws in prior.data_vars.items():
        assert draws.dims == posterior[name].dims
        assert draws.shape[2:] == posterior[name].shape[2:]
    sums_to_one = {"multinomial": "feature", "categorical": "category", "markov": "token"}
    last = sums_to_one.get(case.name.split("-")[0])
    if "feature_category" in prior.dims:
        assert_cells(case, prior["theta"])
    elif last:
        np.testing.assert_allclose(prior["theta"].sum(last), 1.0)


def assert_cells(case: Case, theta: Any) -> None:
    """The cells are the categories of each column by name, and add up to 1 in each."""
    expected = [
        (column, category)
        for column, known in zip(
            case.fitted.fitted_.feature_names, case.fitted.categories_, strict=True
        )
        for category in known
    ]
    assert theta["feature_category"].values.tolist() == [f"{j}, {k}" for j, k in expected]
    assert (theta > 0).all()
    for column in case.fitted.fitted_.feature_names:
        own = [j == column for j, _ in expected]
        np.testing.assert_allclose(theta.isel(feature_category=own).sum("feature_category"), 1.0)


@every_case
def test_graph_is_drawn(case: Case) -> None:
    pytest.importorskip("graphviz")
    source = pm.model_to_graphviz(case.fitted.to_pymc(case.X, Y, likelihood="rows")).source
    assert "label" in source
    assert "pi" in source


def test_ragged_theta_has_the_jacobian_of_pymc_s_simplex() -> None:
    """Row by row the density of the free coordinates is that of a Dirichlet of its own."""
    alpha = np.array([[[2.0, 1.0, 0.5], [1.0, 3.0, 0.0], [1.0, 0.0, 0.0]]])
    family = bg.families.DirichletCategorical(alpha, new=1.0)
    coords = {"class": ["a"], "feature": list("pqr"), "category": range(3)}
    with pm.Model(coords=coords) as ragged:
        family.to_pymc()
    with pm.Model() as parts:
        pm.Dirichlet("three", alpha[0, 0])
        pm.Dirichlet("two", alpha[0, 1, :2])
    ours, theirs = (m.compile_logp(mode=PYTHON) for m in (ragged, parts))
    for _ in range(3):
        z = RNG.normal(size=3)
        (value,) = ragged.value_vars
        assert ours({value.name: z[None]}) == pytest.approx(
            theirs({"three_simplex__": z[:2], "two_simplex__": z[2:]}), rel=1e-12
        )


def test_closed_form_draws_feed_the_ragged_model() -> None:
    case = next(c for c in CASES if c.name == "categorical-ragged")
    clf = case.fitted
    draws = clf.draw_posterior(draws=3, chains=1)
    with clf.to_pymc(case.X, Y, likelihood="rows"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the progress bar, and of what PyMC does not track
        options: dict[str, Any] = {"progressbar": False, "compile_kwargs": {"mode": PYTHON}}
        rows = pm.compute_log_likelihood(draws, extend_inferencedata=False, **options)
        new = pm.sample_posterior_predictive(draws, random_seed=1, **options)
    theta = draws["posterior"]["theta"].isel(chain=0)
    ours = np.zeros((3, N))
    for i, label in enumerate(Y):
        for j, category in enumerate(case.X[i]):
            p = theta.sel({"class": label, "feature_category": f"x{j}, {category}"})
            ours[:, i] += np.log(p.values)
    np.testing.assert_allclose(rows["x"].values[0].sum(axis=-1), ours, rtol=1e-9)
    assert (new["posterior_predictive"]["x"].max(("chain", "draw", "obs_id")) < [3, 1, 2, 4]).all()


def test_one_feature_of_a_multinomial_is_no_random_variable() -> None:
    clf = bg.MultinomialNB().fit(COUNTS[:, :1], Y)
    model = clf.to_pymc()
    assert [v.name for v in model.free_RVs] == ["pi"]
    assert [v.name for v in model.deterministics] == ["theta"]


@pytest.mark.parametrize("estimator", [bg.MultinomialNB, bg.PoissonNB])
def test_fractional_counts_go_through_statistics(estimator: Any) -> None:
    X = COUNTS + 0.25
    clf = estimator().fit(X, Y)
    case = Case(estimator(), X, "fractional")
    theta = {k: v[0] for k, v in clf.model_.draw(np.random.default_rng(0), 1).items()}
    assert compiled(clf.to_pymc())(theta) == pytest.approx(log_joint(case, theta), rel=1e-9)
    with pytest.raises(ValueError, match="likelihood='statistics'"):
        clf.to_pymc(X, Y, likelihood="rows")


def test_rows_with_a_category_never_declared_are_refused() -> None:
    X = _table(2, 3)
    clf = bg.CategoricalNB().fit(X, Y)
    X[0, 0] = "new"
    with pytest.raises(ValueError, match=r"column 0 holds .* in row 0, which is not among"):
        clf.to_pymc(X, Y, likelihood="rows")


def test_documents_with_other_contexts_are_refused() -> None:
    clf = bg.MarkovNB(order=2, vocabulary="abcd").fit(["abab", "bab", "abc"], list("xyz"))
    with pytest.raises(ValueError, match="contexts that are not among the"):
        clf.to_pymc(["dab"], ["x"], likelihood="rows")


def test_counts_of_a_markov_posterior_are_pseudo_counts() -> None:
    """A posterior used as the prior of more documents is the posterior of all."""
    clf = bg.MarkovNB(order=2).fit(TEXTS, Y)
    theta = {k: v[0] for k, v in clf.model_.draw(np.random.default_rng(0), 1).items()}
    posterior: ClassModel = clf.model_
    at = compiled(posterior.to_pymc(clf.fitted_.coords))
    expected = log_dirichlet(theta["pi"], posterior.alpha)
    expected += log_dirichlet(theta["theta"], posterior.family.dense())
    assert at(theta) == pytest.approx(expected, rel=1e-9)
