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
from bayesgen.families.sampled.student_t import StudentT
from bayesgen.posterior.model import ClassModel
from tests.graphs import pm

# a dozen draws are too few for a posterior, and enough for arithmetic
pytestmark = pytest.mark.filterwarnings("ignore:posterior draws are too few")
N, S = 24, 12
RNG = np.random.default_rng(31)
Y = np.arange(N) % 3
REAL = RNG.normal(size=(N, 2)) + Y[:, None]
COUNT = RNG.poisson(1.0 + Y) * RNG.integers(2, size=N)
GRADE = np.clip(RNG.poisson(0.5 + Y / 2), 0, 3)
SLOPE = RNG.normal(size=(N, 2))
NAMES = ["oak", "ash", "elm"]  # not sorted
COORDS = {"species": NAMES, "size": ["long", "wide"], "row": np.arange(N), "part": [0, 1]}

Draws = dict[str, np.ndarray]
LogP = Callable[[Draws, int], np.ndarray]  # of all draws and rows, in the class of a code: (S, N)


class Case(NamedTuple):
    model: Any
    draws: Draws  # {name: (S, ...)}
    log_p: LogP
    X: np.ndarray
    weights: Callable[[Draws], np.ndarray] = lambda d: d["weights"][:, None]  # (S, 1 or N, C)


def labelled() -> Any:
    return pm.Categorical("label", pm.Dirichlet("weights", [1.0, 1, 1], dims="species"), observed=Y)


def start() -> Draws:
    rng = np.random.default_rng(5)
    return {
        "weights": rng.dirichlet([5.0, 6, 7], S),
        "normal": rng.normal(size=(S, 3)),
        "pair": np.arange(3)[:, None] + rng.normal(scale=0.3, size=(S, 3, 2)),
        "scale": rng.gamma(9.0, 1 / 9, size=(S, 3, 2)),
        "share": rng.beta(4.0, 4, size=(S, 3)),
        "one": rng.gamma(9.0, 1 / 9, size=S),
        "two": rng.dirichlet([3.0, 4], size=(S, 3)),
    }


def hierarchical_means() -> Case:
    with pm.Model(coords=COORDS) as model:
        y = labelled()
        centre, spread = pm.Normal("centre", 0, 5), pm.HalfNormal("spread", 2)
        z = pm.Normal("z", dims="species")
        mu = pm.Deterministic("mu", centre + spread * z, dims="species")
        pm.Normal("length", mu[y], pm.HalfNormal("sigma", 2), observed=REAL[:, 0])
    d = start()
    d |= {"centre": d["normal"][:, 0], "spread": d["one"], "z": d["normal"], "sigma": d["one"]}

    def log_p(d: Draws, c: int) -> np.ndarray:
        mean = d["centre"] + d["spread"] * d["z"][:, c]
        return stats.norm.logpdf(REAL[:, 0], mean[:, None], d["sigma"][:, None])

    return Case(model, d, log_p, REAL[:, :1])


def robust() -> Case:
    with pm.Model(coords=COORDS) as model:
        y = labelled()
        mu = pm.Normal("mu", 0, 10, dims=("species", "size"))
        sigma = pm.HalfNormal("sigma", 5, dims=("species", "size"))
        nu = pm.Gamma("nu", 2, 0.1)
        pm.StudentT("x", nu=nu, mu=mu[y], sigma=sigma[y], observed=REAL, dims=("row", "size"))
    d = start()
    d |= {"mu": d["pair"], "sigma": d["scale"], "nu": 3 + d["one"]}

    def log_p(d: Draws, c: int) -> np.ndarray:
        nu, mu, sigma = d["nu"][:, None, None], d["mu"][:, None, c], d["sigma"][:, None, c]
        return stats.t.logpdf(REAL, nu, mu, sigma).sum(axis=-1)

    return Case(model, d, log_p, REAL)


def zero_inflated() -> Case:
    with pm.Model(coords=COORDS) as model:
        y = labelled()
        rate, psi = pm.Gamma("rate", 2, 1, dims="species"), pm.Beta("psi", 1, 1, dims="species")
        pm.ZeroInflatedPoisson("count", psi=psi[y], mu=rate[y], observed=COUNT)
    d = start()
    d |= {"rate": d["pair"][..., 0] ** 2 + 0.5, "psi": d["share"]}

    def log_p(d: Draws, c: int) -> np.ndarray:
        psi, rate = d["psi"][:, c, None], d["rate"][:, c, None]
        return np.log((1 - psi) * (COUNT == 0) + psi * stats.poisson.pmf(COUNT, rate))

    return Case(model, d, log_p, COUNT[:, None])


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

    def log_p(d: Draws, c: int) -> np.ndarray:
        return stats.norm.logpdf(REAL[:, 0], d["mu"][:, c, None], 1.5)

    def weights(d: Draws) -> np.ndarray:
        return special.softmax(np.einsum("np,spc->snc", SLOPE, d["beta"]), axis=-1)

    return Case(model, d, log_p, np.column_stack([REAL[:, 0], SLOPE]), weights)


CASES = {
    f.__name__: f
    for f in (
        hierarchical_means,
        robust,
        zero_inflated,
        regression_of_weights,
    )
}


def trace(model: Any, draws: Draws, chains: int = 2) -> xr.Dataset:
    """Draws (S, ...) of the free variables, as a sampler returns them."""
    out = {}
    for v in model.free_RVs:
        dims = model.named_vars_to_dims.get(v.name) or [f"{v.name}_dim_{i}" for i in range(v.ndim)]
        value = draws[v.name].reshape(chains, -1, *draws[v.name].shape[1:])
        out[v.name] = (("chain", "draw", *dims), value)
    return xr.Dataset(out)


@pytest.fixture(scope="module", params=list(CASES))
def case(request: pytest.FixtureRequest) -> tuple[Case, Any, Any]:
    """The case, its classifier without draws, and with them."""
    own = CASES[request.param]()
    clf = bg.from_pymc(own.model)
    return own, clf, clf.with_posterior(trace(own.model, own.draws))


def joint(own: Case) -> np.ndarray:
    """(S, N, C) in the order of the model."""
    log_x = np.stack([own.log_p(own.draws, c) for c in range(3)], axis=-1)
    return log_x + np.log(own.weights(own.draws))


def test_predictions_average_joint_densities(case: Any) -> None:
    own, _, clf = case
    at = np.argsort(NAMES)
    f = joint(own)[..., at]
    expected = special.logsumexp(f, axis=0) - np.log(S)
    assert clf.classes_.tolist() == sorted(NAMES)
    p = special.softmax(expected, axis=1)
    np.testing.assert_allclose(clf.predict_proba(own.X), p, rtol=1e-9)
    np.testing.assert_allclose(clf.predict_joint_log_proba(own.X), expected, rtol=1e-9)
    rho = clf.predict_posterior(own.X)["predictions"]["class_probability"].values
    np.testing.assert_allclose(rho.reshape(S, N, 3), special.softmax(f, axis=-1), rtol=1e-9)
    groups = clf.posterior_groups(own.X, np.array(NAMES)[Y], replicate=["label", "x"])
    assert groups["posterior_predictive"]["x"].shape == (2, S // 2, N, own.X.shape[1])
    found = groups["log_likelihood"]["label"].values
    label = special.log_softmax(f, axis=-1)[:, np.arange(N), np.argsort(at)[Y]]
    np.testing.assert_allclose(found.reshape(S, N), label, rtol=1e-6, atol=1e-8)


def test_rows_are_read_by_name(case: Any) -> None:
    own, _, clf = case
    p = clf.predict_proba(own.X)
    frame = pd.DataFrame(own.X, columns=clf.columns_)[clf.columns_[::-1]].assign(other="text")
    np.testing.assert_array_equal(clf.predict_proba(frame), p)
    table = xr.DataArray(frame[clf.columns_[::-1]].to_numpy(), dims=("obs_id", "column"))
    table = table.assign_coords(column=clf.columns_[::-1])
    np.testing.assert_array_equal(clf.predict_proba(table), p)
    with pytest.raises(ValueError, match=f"no column '{clf.columns_[0]}'"):
        clf.predict_proba(frame.drop(columns=clf.columns_[0]))


def test_fractions_are_no_counts() -> None:
    own = zero_inflated()
    clf = bg.from_pymc(own.model).with_posterior(trace(own.model, own.draws))
    with pytest.raises(ValueError, match="'count' holds whole numbers"):
        clf.predict_proba([[1.5]])


def test_rows_of_containers_are_a_dataset() -> None:
    own = regression_of_weights()
    clf = bg.from_pymc(own.model).with_posterior(trace(own.model, own.draws))
    rows = xr.Dataset({"slope": (("row", "part"), SLOPE), "length": ("row", REAL[:, 0])})
    np.testing.assert_array_equal(clf.predict_proba(rows), clf.predict_proba(own.X))
    with pytest.raises(ValueError, match="depend on the row"):
        clf.predict_proba(own.X, class_prior=[0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="depend on the row"):
        bg.estimate_class_prior(clf, own.X)
    with pytest.raises(NotImplementedError, match="no distribution of 'slope'"):
        clf.simulate(3)


def test_simulated_rows_have_the_moments_of_the_model() -> None:
    own = robust()
    many = {k: np.repeat(v[:1], 4, axis=0) for k, v in own.draws.items()}
    clf = bg.from_pymc(own.model).with_posterior(trace(own.model, many))
    X, y = clf.simulate(4000, y="ash", source="draw")
    nu, mu, sigma = (own.draws[k][0] for k in ("nu", "mu", "sigma"))
    sd = sigma[1] * np.sqrt(nu / (nu - 2))
    assert set(y) == {"ash"}
    assert np.all(np.abs(X.mean(axis=0) - mu[1]) < 5 * sd / np.sqrt(4000))
    below = (stats.t.ppf(0.2, nu, mu[1], sigma[1]) > X).mean(axis=0)
    assert np.all(np.abs(below - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 4000))
    X, y = clf.simulate(6, random_state=1)
    assert X.shape == (6, 2)
    assert len(np.unique(X)) == 12
    np.testing.assert_array_equal(X, clf.simulate(6, random_state=1)[0])


def test_draws_may_be_stacked_or_whole_trees() -> None:
    own = zero_inflated()
    clf, draws = bg.from_pymc(own.model), trace(own.model, own.draws)
    expected = clf.with_posterior(draws).predict_proba(own.X)
    whole = xr.DataTree.from_dict({"/posterior": draws})
    np.testing.assert_array_equal(clf.with_posterior(whole).predict_proba(own.X), expected)
    stacked = az.extract(whole)
    np.testing.assert_array_equal(clf.with_posterior(stacked).predict_proba(own.X), expected)
    with pytest.raises(ValueError, match="no variable 'psi'"):
        clf.with_posterior(draws.drop_vars("psi"))


def test_class_weights_may_be_called_pi_and_dims_class() -> None:
    own = robust()
    coords = {"class": NAMES, "size": ["long", "wide"]}
    with pm.Model(coords=coords) as model:
        y = pm.Categorical("kind", pm.Dirichlet("pi", [1.0, 1, 1], dims="class"), observed=Y)
        mu = pm.Normal("mu", 0, 10, dims=("class", "size"))
        pm.Normal("x", mu=mu[y], sigma=1.0, observed=REAL)
    draws = trace(model, own.draws | {"pi": own.draws["weights"]})
    clf = bg.from_pymc(model, label="kind").with_posterior(draws.assign_coords(coords))
    normal = stats.norm.logpdf(REAL[:, None], own.draws["mu"][:, None], 1.0).sum(axis=-1)
    f = normal + np.log(own.draws["weights"])[:, None]
    p = special.softmax(special.logsumexp(f, axis=0), axis=1)[:, np.argsort(NAMES)]
    np.testing.assert_allclose(clf.predict_proba(REAL), p, rtol=1e-9)
    assert clf.posterior_["posterior"]["mu"].sel({"class": "oak"}).values[0, 0, 0] == pytest.approx(
        own.draws["mu"][0, 0, 0]
    )


def test_it_is_compared_with_closed_forms() -> None:
    own = robust()
    clf = bg.from_pymc(own.model).with_posterior(trace(own.model, own.draws))
    labels = np.array(NAMES)[Y]
    models = {"t": clf, "normal": bg.GaussianNB().fit(REAL, labels)}
    with pytest.warns(bg.MonteCarloWarning, match="Pareto k"):
        table = bg.compare_models(models, REAL, labels)
    assert set(table.table["model"].values) == {"t", "normal"}
    assert "PyMCClassifier" in repr(clf.summary())
    assert "pseudo" not in repr(clf.summary())


# ------------------------------------------------------------------------- what is refused, and why


def model_of(rows: Callable[[Any], Any], **coords: Any) -> Any:
    with pm.Model(coords=COORDS | coords) as model:
        rows(labelled())
    return model


def test_rows_that_do_not_depend_on_the_label_are_refused() -> None:
    def raw(y: Any) -> None:
        pm.Normal("x", pm.Normal("mu", dims="species")[Y], 1.0, observed=REAL[:, 0])

    def none(y: Any) -> None:
        pm.Normal("x", pm.Normal("mu"), 1.0, observed=REAL[:, 0])

    with pytest.raises(ValueError, match=r"'x' depends on an array that equals.*theta\[label\]"):
        bg.from_pymc(model_of(raw))
    with pytest.raises(ValueError, match="'x' do not depend on 'label'"):
        bg.from_pymc(model_of(none))


def test_models_that_are_no_classifiers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"a pymc\.Model, got dict"):
        bg.from_pymc({})
    with pytest.raises(ValueError, match=r"must be a Categorical or Bernoulli.*x .Normal."):
        bg.from_pymc(model_of(lambda y: pm.Normal("x", y, 1.0, observed=REAL[:, 0])), label="x")
    with pytest.raises(ValueError, match="nothing but the label"):
        bg.from_pymc(model_of(lambda y: None))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            lambda y: pm.Normal(
                "x", pm.Normal("mu", dims="species")[y] + SLOPE[:, 0], 1.0, observed=REAL[:, 0]
            ),
            "an array of 24 rows.*make it pm.Data",
        ),
        (
            lambda y: pm.Normal(
                "x", pm.Normal("effect", dims="row") + y, 1.0, observed=REAL[:, 0], dims="row"
            ),
            "'effect' has a value for each of the 24 rows",
        ),
        (
            lambda y: (
                pm.Normal("x", pm.Normal("mu", dims="species")[y], 1.0, observed=REAL[:, 0]),
                pm.Potential("more", pm.Normal("z") * y.sum()),
            ),
            "the potential 'more'",
        ),
        (
            lambda y: pm.Normal("x", pm.Normal("pi", dims="species")[y], 1, observed=REAL[:, 0]),
            "call the class weights 'pi'",
        ),
    ],
)
def test_rows_without_a_density_of_their_own_are_refused(rows: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        bg.from_pymc(model_of(rows))


def test_what_it_cannot_have_is_refused() -> None:
    own = robust()
    clf = bg.from_pymc(own.model)
    assert clf.to_pymc() is own.model
    with pytest.raises(TypeError, match="takes no rows"):
        clf.fit(REAL, Y)
    with pytest.raises(TypeError, match="cannot hold a PyMC model"):
        clf.save("model.nc")
    with pytest.raises(bg.NoClosedFormError):
        clf.with_posterior(trace(own.model, own.draws)).log_evidence_  # noqa: B018


@pytest.mark.slow
def test_it_samples_its_own_rows() -> None:
    own = hierarchical_means()
    clf = bg.from_pymc(own.model)
    clf.fit(draws=3000, chains=2, target_accept=0.99, random_state=1, progressbar=False)
    assert clf.inference_ == "nuts"
    draws = clf.posterior_["posterior"].to_dataset()
    flat = {k: draws[k].values.reshape(-1, *draws[k].shape[2:]) for k in own.draws if k in draws}
    log_x = np.stack([own.log_p(flat, c) for c in range(3)], axis=-1)
    f = log_x + np.log(flat["weights"])[:, None]
    p = special.softmax(special.logsumexp(f, axis=0), axis=1)[:, np.argsort(NAMES)]
    np.testing.assert_allclose(clf.predict_proba(own.X), p, rtol=1e-9)
    assert float(draws["mu"].mean(("chain", "draw")).sel(species="elm")) == pytest.approx(
        REAL[Y == 2, 0].mean(), abs=0.7
    )


# ------------------------------------------------------------------------------ other models

FEW = COUNT[:, None] + np.array([0, 1])
CODES = np.column_stack([GRADE, (GRADE + Y) % 4])


def test_columns_may_depend_on_each_other() -> None:
    with pm.Model(coords=COORDS) as model:
        y = labelled()
        first = pm.Poisson("first", pm.Gamma("a", 2, 1, dims="species")[y], observed=FEW[:, 0])
        rate = pm.Gamma("b", 2, 1, dims="species")[y] * (1 + first)
        pm.Poisson("second", rate, observed=FEW[:, 1])
    clf = bg.from_pymc(model)
    d = start()
    d |= {"a": d["scale"][..., 0], "b": d["scale"][..., 1]}
    clf = clf.with_posterior(trace(model, d))
    f = np.log(d["weights"])[:, None] + stats.poisson.logpmf(FEW[:, :1], d["a"][:, None])
    f += stats.poisson.logpmf(FEW[:, 1:], d["b"][:, None] * (1 + FEW[:, :1]))
    p = special.softmax(special.logsumexp(f, axis=0), axis=1)[:, np.argsort(NAMES)]
    np.testing.assert_allclose(clf.predict_proba(FEW), p, rtol=1e-9)


ROUND = {
    "bits": (bg.BernoulliNB(alpha=0.7), (REAL > 1).astype(int)),
    "counts": (bg.PoissonNB(), FEW),
    "codes": (bg.CategoricalNB(), CODES),
    "reals": (bg.GaussianNB(), REAL),
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
    labels = np.array(NAMES)[Y]
    clf.fit(X, labels)
    draws = clf.draw_posterior(50)
    again = bg.from_pymc(clf.to_pymc(X, labels, likelihood="rows")).with_posterior(draws)
    expected = clf.with_posterior(draws).predict_proba(X)
    np.testing.assert_allclose(again.predict_proba(X), expected, rtol=1e-9)


def test_a_model_without_rows_of_their_own_is_refused() -> None:
    texts = np.array(["".join(RNG.choice(list("abc "), 9)) for _ in Y], dtype=object)
    model = bg.MarkovNB(2).fit(texts, Y).to_pymc(texts, Y, likelihood="rows")
    with pytest.raises(ValueError, match="its first axis must be the 24 rows"):
        bg.from_pymc(model)


def test_masks_of_the_package_are_missing_cells() -> None:
    X = np.where(REAL > 2, np.nan, REAL)
    family = StudentT().with_defaults(X, Y, 3)
    coords = {"class": [0, 1, 2], "feature": ["long", "wide"]}
    model = ClassModel(np.ones(3), family).to_pymc(coords, X=X, y=Y)
    own = bg.from_pymc(model)._known
    d = start()
    raw = np.sqrt(d["scale"] ** 2 - family.resolution**2 / 12)
    standard = (d["pair"] - family.location) / family.scale
    free = {"nu": np.stack([3 + d["one"]] * 2, axis=-1), "sigma_raw": raw, "mu_raw": standard}
    expected = family.log_likelihood(X, free | {"mu": d["pair"], "sigma": d["scale"]})
    np.testing.assert_allclose(own.log_likelihood(X, free), expected, rtol=1e-10)
