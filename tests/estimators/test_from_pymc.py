"""A PyMC model as a classifier: against NumPy and SciPy, from draws that are made by hand."""

from collections.abc import Callable
from typing import Any, NamedTuple

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import special, stats

import bayesgen as bg
from tests.graphs import pm

# a dozen draws are too few for a posterior, and enough for arithmetic
pytestmark = pytest.mark.filterwarnings("ignore:posterior draws are too few")
N, S = 24, 12
RNG = np.random.default_rng(31)
Y = np.arange(N) % 3
REAL = RNG.normal(size=(N, 2)) + Y[:, None]
COUNT = RNG.poisson(1.0 + Y) * RNG.integers(2, size=N)
FEW = COUNT[:, None] + np.array([0, 1])
SLOPE = RNG.normal(size=(N, 2))
NAMES = ["oak", "ash", "elm"]  # not sorted
SORTED = np.argsort(NAMES)
LABELS = np.array(NAMES)[Y]
COORDS = {"species": NAMES, "size": ["long", "wide"], "row": np.arange(N), "part": [0, 1]}
Draws = dict[str, np.ndarray]


class Case(NamedTuple):
    model: Any
    draws: Draws  # {name: (S, ...)}
    X: np.ndarray
    log_joint: np.ndarray  # (S, N, C) at the draws, in the order of the model


def labelled() -> Any:
    return pm.Categorical("label", pm.Dirichlet("weights", [1.0, 1, 1], dims="species"), observed=Y)


def start() -> Draws:
    rng = np.random.default_rng(5)
    return {
        "weights": rng.dirichlet([5.0, 6, 7], S),
        "normal": rng.normal(size=(S, 3)),
        "pair": np.arange(3)[:, None] + rng.normal(scale=0.3, size=(S, 3, 2)),
        "scale": rng.gamma(9.0, 1 / 9, size=(S, 3, 2)),
        "one": rng.gamma(9.0, 1 / 9, size=S),
    }


def robust() -> Case:
    with pm.Model(coords=COORDS) as model:
        y = labelled()
        mu = pm.Normal("mu", 0, 10, dims=("species", "size"))
        sigma = pm.HalfNormal("sigma", 5, dims=("species", "size"))
        nu = pm.Gamma("nu", 2, 0.1)
        pm.StudentT("x", nu=nu, mu=mu[y], sigma=sigma[y], observed=REAL, dims=("row", "size"))
    d = start()
    d |= {"mu": d["pair"], "sigma": d["scale"], "nu": 3 + d["one"]}
    nu = d["nu"][:, None, None, None]
    cells = stats.t.logpdf(REAL[:, None], nu, d["mu"][:, None], d["sigma"][:, None])
    return Case(model, d, REAL, cells.sum(axis=-1) + np.log(d["weights"])[:, None])


def regression_of_weights() -> Case:
    with pm.Model(coords=COORDS) as model:
        slope = pm.Data("slope", SLOPE, dims=("row", "part"))
        beta = pm.Normal("beta", 0, 1, dims=("part", "species"))
        p = pm.math.softmax(slope @ beta, axis=-1)
        y = pm.Categorical("label", p, observed=Y, dims="row")
        mu = pm.Normal("mu", 0, 10, dims="species")
        pm.Normal("length", mu[y], 1.5, observed=REAL[:, 0], dims="row")
    d = start()
    d |= {"beta": np.swapaxes(d["pair"], 1, 2), "mu": d["normal"]}
    log_w = special.log_softmax(SLOPE @ d["beta"], axis=-1)
    log_joint = log_w + stats.norm.logpdf(REAL[:, :1], d["mu"][:, None], 1.5)
    return Case(model, d, np.column_stack([REAL[:, 0], SLOPE]), log_joint)


CASES = {f.__name__: f for f in (robust, regression_of_weights)}


def trace(model: Any, draws: Draws, chains: int = 2) -> xr.Dataset:
    """Return draws (S, ...) of the free variables as a sampler does."""
    variables = {}
    for v in model.free_RVs:
        dims = model.named_vars_to_dims.get(v.name) or [f"{v.name}_dim_{i}" for i in range(v.ndim)]
        values = draws[v.name].reshape(chains, -1, *draws[v.name].shape[1:])
        variables[v.name] = (("chain", "draw", *dims), values)
    return xr.Dataset(variables)


def classified(name: str) -> tuple[Case, Any]:
    case = CASES[name]()
    return case, bg.from_pymc(case.model).with_posterior(trace(case.model, case.draws))


@pytest.fixture(scope="module", params=list(CASES))
def each(request: pytest.FixtureRequest) -> tuple[Case, Any]:
    """The case, and its classifier with draws."""
    return classified(request.param)


@pytest.fixture(scope="module")
def student() -> tuple[Case, Any]:
    return classified("robust")


@pytest.fixture(scope="module")
def weighted() -> tuple[Case, Any]:
    return classified("regression_of_weights")


def test_predictions_average_joint_densities(each: Any) -> None:
    case, clf = each
    f = case.log_joint[..., SORTED]
    expected = special.logsumexp(f, axis=0) - np.log(S)
    assert clf.classes_.tolist() == sorted(NAMES)
    p = special.softmax(expected, axis=1)
    np.testing.assert_allclose(clf.predict_proba(case.X), p, rtol=1e-9)
    np.testing.assert_allclose(clf.predict_joint_log_proba(case.X), expected, rtol=1e-9)
    rho = clf.predict_posterior(case.X)["predictions"]["class_probability"].values
    np.testing.assert_allclose(rho.reshape(S, N, 3), special.softmax(f, axis=-1), rtol=1e-9)


def test_groups_are_those_of_the_rows(each: Any) -> None:
    case, clf = each
    groups = clf.posterior_groups(case.X, LABELS, replicate=["label", "x"])
    assert groups["posterior_predictive"]["x"].shape == (2, S // 2, N, case.X.shape[1])
    log_likelihood = groups["log_likelihood"]["label"].values
    label = special.log_softmax(case.log_joint, axis=-1)[:, np.arange(N), Y]
    np.testing.assert_allclose(log_likelihood.reshape(S, N), label, rtol=1e-6, atol=1e-8)


def test_rows_are_read_by_name(each: Any) -> None:
    case, clf = each
    p = clf.predict_proba(case.X)
    frame = pd.DataFrame(case.X, columns=clf.columns_)[clf.columns_[::-1]].assign(other="text")
    np.testing.assert_array_equal(clf.predict_proba(frame), p)
    table = xr.DataArray(frame[clf.columns_[::-1]].to_numpy(), dims=("obs_id", "column"))
    table = table.assign_coords(column=clf.columns_[::-1])
    np.testing.assert_array_equal(clf.predict_proba(table), p)
    with pytest.raises(ValueError, match=f"no column '{clf.columns_[0]}'"):
        clf.predict_proba(frame.drop(columns=clf.columns_[0]))


def test_rows_of_containers_are_a_dataset(weighted: Any) -> None:
    case, clf = weighted
    rows = xr.Dataset({"slope": (("row", "part"), SLOPE), "length": ("row", REAL[:, 0])})
    np.testing.assert_array_equal(clf.predict_proba(rows), clf.predict_proba(case.X))


def test_weights_that_depend_on_the_row_are_not_replaced(weighted: Any) -> None:
    case, clf = weighted
    with pytest.raises(ValueError, match="depend on the row"):
        clf.predict_proba(case.X, class_prior=[0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="depend on the row"):
        bg.estimate_class_prior(clf, case.X)
    with pytest.raises(NotImplementedError, match="no distribution of 'slope'"):
        clf.simulate(3)


def test_simulated_rows_have_the_moments_of_the_model(student: Any) -> None:
    case, _ = student
    same = {k: np.repeat(v[:1], 4, axis=0) for k, v in case.draws.items()}
    clf = bg.from_pymc(case.model).with_posterior(trace(case.model, same))
    X, y = clf.simulate(4000, y="ash", source="draw")
    nu, mu, sigma = (case.draws[k][0] for k in ("nu", "mu", "sigma"))
    sd = sigma[1] * np.sqrt(nu / (nu - 2))
    assert set(y) == {"ash"}
    assert np.all(np.abs(X.mean(axis=0) - mu[1]) < 5 * sd / np.sqrt(4000))
    below = (stats.t.ppf(0.2, nu, mu[1], sigma[1]) > X).mean(axis=0)
    assert np.all(np.abs(below - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 4000))


def test_draws_may_be_stacked_or_whole_trees(student: Any) -> None:
    case, clf = student
    draws, expected = trace(case.model, case.draws), clf.predict_proba(case.X)
    whole = xr.DataTree.from_dict({"/posterior": draws})
    np.testing.assert_array_equal(clf.with_posterior(whole).predict_proba(case.X), expected)
    stacked = az.extract(whole)
    np.testing.assert_array_equal(clf.with_posterior(stacked).predict_proba(case.X), expected)
    with pytest.raises(ValueError, match="no variable 'nu'"):
        clf.with_posterior(draws.drop_vars("nu"))


@pytest.mark.parametrize("named", [True, False])
def test_class_weights_may_be_called_pi_and_dims_class(student: Any, named: bool) -> None:
    draws = student[0].draws
    coords = {"class": NAMES, "size": ["long", "wide"]}
    with pm.Model(coords=coords) as model:
        y = pm.Categorical("kind", pm.Dirichlet("pi", [1.0, 1, 1], dims="class"), observed=Y)
        mu = pm.Normal("mu", 0, 10, dims=("class", "size"))
        pm.Normal("x", mu=mu[y], sigma=1.0, observed=REAL)
    tree = trace(model, draws | {"pi": draws["weights"]})
    tree = tree.assign_coords(coords if named else {})
    clf = bg.from_pymc(model, label="kind").with_posterior(tree)
    normal = stats.norm.logpdf(REAL[:, None], draws["mu"][:, None], 1.0).sum(axis=-1)
    f = normal + np.log(draws["weights"])[:, None]
    p = special.softmax(special.logsumexp(f, axis=0), axis=1)[:, SORTED]
    np.testing.assert_allclose(clf.predict_proba(REAL), p, rtol=1e-9)
    oak = clf.posterior_["posterior"]["mu"].sel({"class": "oak"}).values[0, 0, 0]
    assert oak == pytest.approx(draws["mu"][0, 0, 0])


def test_it_is_compared_with_closed_forms(student: Any) -> None:
    models = {"t": student[1], "normal": bg.GaussianNB().fit(REAL, LABELS)}
    with pytest.warns(bg.MonteCarloWarning, match="Pareto k"):
        table = bg.compare_models(models, REAL, LABELS)
    assert set(table.table["model"].values) == {"t", "normal"}
    assert "PyMCClassifier" in repr(student[1].summary())
    assert "pseudo" not in repr(student[1].summary())


# ------------------------------------------------------------------------- what is refused, and why


def model_of(rows: Callable[[Any], Any], **coords: Any) -> Any:
    with pm.Model(coords=COORDS | coords) as model:
        rows(labelled())
    return model


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            lambda y: pm.Normal("x", pm.Normal("mu", shape=3)[Y], 1.0, observed=REAL[:, 0]),
            r"'x' depends on an array that equals.*theta\[label\]",
        ),
        (
            lambda y: pm.Normal("x", pm.Normal("mu"), 1.0, observed=REAL[:, 0]),
            "'x' do not depend on 'label'",
        ),
        (lambda y: None, "nothing but the label"),
        (
            lambda y: pm.Normal("x", SLOPE[:, 0] + y, 1.0, observed=REAL[:, 0]),
            "an array of 24 rows.*make it pm.Data",
        ),
        (
            lambda y: pm.Normal("x", pm.Normal("effect", shape=N) + y, 1.0, observed=REAL[:, 0]),
            "'effect' has a value for each of the 24 rows",
        ),
        (
            lambda y: (
                pm.Normal("x", y, 1.0, observed=REAL[:, 0]),
                pm.Potential("more", pm.Normal("z") * y.sum()),
            ),
            "the potential 'more'",
        ),
        (
            lambda y: pm.Normal("x", pm.Normal("pi", shape=3)[y], 1, observed=REAL[:, 0]),
            "call the class weights 'pi'",
        ),
    ],
    ids=["copy of y", "independent", "no rows", "array", "effects of rows", "potential", "pi"],
)
def test_models_that_are_no_classifiers_are_refused(rows: Any, reason: str) -> None:
    with pm.Model(coords=COORDS) as model:
        rows(labelled())
    with pytest.raises(ValueError, match=reason):
        bg.from_pymc(model)


def test_what_is_no_model_or_no_label_is_refused(student: Any) -> None:
    with pytest.raises(TypeError, match=r"a pymc\.Model, got dict"):
        bg.from_pymc({})
    with pytest.raises(ValueError, match=r"must be a Categorical or Bernoulli.*x .StudentT."):
        bg.from_pymc(student[0].model, label="x")


def test_what_it_cannot_have_is_refused(student: Any) -> None:
    case, clf = student
    assert clf.to_pymc() is case.model
    with pytest.raises(TypeError, match="takes no rows"):
        clf.fit(REAL, Y)
    with pytest.raises(TypeError, match="cannot hold a PyMC model"):
        clf.save("model.nc")
    with pytest.raises(bg.NoClosedFormError):
        clf.log_evidence_  # noqa: B018


# ------------------------------------------------------------------------------ other models


def test_columns_may_depend_on_each_other_and_are_counts() -> None:
    with pm.Model(coords=COORDS) as model:
        y = labelled()
        first = pm.Poisson("first", pm.Gamma("a", 2, 1, dims="species")[y], observed=FEW[:, 0])
        rate = pm.Gamma("b", 2, 1, dims="species")[y] * (1 + first)
        pm.Poisson("second", rate, observed=FEW[:, 1])
    d = start()
    d |= {"a": d["scale"][..., 0], "b": d["scale"][..., 1]}
    clf = bg.from_pymc(model).with_posterior(trace(model, d))
    f = np.log(d["weights"])[:, None] + stats.poisson.logpmf(FEW[:, :1], d["a"][:, None])
    f += stats.poisson.logpmf(FEW[:, 1:], d["b"][:, None] * (1 + FEW[:, :1]))
    p = special.softmax(special.logsumexp(f, axis=0), axis=1)[:, SORTED]
    np.testing.assert_allclose(clf.predict_proba(FEW), p, rtol=1e-9)
    with pytest.raises(ValueError, match="'first' holds whole numbers"):
        clf.predict_proba([[1.5, 2]])


CODES = np.column_stack([np.clip(COUNT, 0, 3), (COUNT + Y) % 4])

ROUND = {
    "bits": (bg.BernoulliNB(alpha=0.7), (REAL > 1).astype(int)),
    "counts": (bg.PoissonNB(), FEW),
    "codes": (bg.CategoricalNB(), CODES),
    "tied": (bg.GaussianNB(variance="tied"), REAL),
    "diagonal": (bg.LinearDiscriminant(covariance="diagonal"), REAL),
    "gaps": (bg.GaussianNB(), np.where(REAL > 2, np.nan, REAL)),
    "columns": (
        bg.MixedNB({"categorical": [0], "gaussian": [1]}),
        np.column_stack([CODES[:, 0], REAL[:, 0]]),
    ),
}


@pytest.mark.parametrize("kind", ROUND)
def test_the_graph_of_a_classifier_is_that_classifier(kind: str) -> None:
    clf, X = ROUND[kind]
    clf.fit(X, LABELS)
    draws = clf.draw_posterior(50)
    again = bg.from_pymc(clf.to_pymc(X, LABELS, likelihood="rows")).with_posterior(draws)
    expected = clf.with_posterior(draws).predict_proba(X)
    np.testing.assert_allclose(again.predict_proba(X), expected, rtol=1e-9)


def test_a_model_without_rows_of_their_own_is_refused() -> None:
    texts = np.array(["".join(RNG.choice(list("abc "), 9)) for _ in Y], dtype=object)
    model = bg.MarkovNB(2).fit(texts, Y).to_pymc(texts, Y, likelihood="rows")
    with pytest.raises(ValueError, match="its first axis must be the 24 rows"):
        bg.from_pymc(model)
