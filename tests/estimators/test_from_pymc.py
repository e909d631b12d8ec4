"""A PyMC model as a classifier: rows by name, draws of any form, refusals.

Its numbers stand in test_pymc_models, whose two models with names are asked here.
"""

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import special, stats

import bayesgen as bg
from tests.estimators.test_pymc_models import (
    COUNT,
    NAMES,
    RNG,
    SITE,
    Classified,
    N,
    S,
    X,
    Y,
    by_class,
    class_weights_of_each_row,
    classified,
    draws_of,
    plates_with_dims,
    three,
    trace,
)
from tests.graphs import pm

# a dozen draws are too few for a posterior, and enough for arithmetic
pytestmark = pytest.mark.filterwarnings("ignore:posterior draws are too few")
LABELS = NAMES[Y]


@pytest.fixture(scope="module")
def plates() -> Classified:
    return classified(plates_with_dims)


@pytest.fixture(scope="module")
def weighted() -> Classified:
    return classified(class_weights_of_each_row)


@pytest.fixture(scope="module", params=["plates", "weighted"])
def each(request: pytest.FixtureRequest) -> Classified:
    return request.getfixturevalue(request.param)


def test_draws_of_probabilities_and_groups_are_those_of_the_rows(each: Classified) -> None:
    clf, rows = each.clf, each.X
    log_p = special.log_softmax(each.log_joint, axis=-1)
    rho = clf.predict_posterior(rows)["predictions"]["class_probability"].values
    np.testing.assert_allclose(rho[0], np.exp(log_p), rtol=1e-9)
    groups = clf.posterior_groups(rows, LABELS, replicate=["label", "x"])
    assert groups["posterior_predictive"]["x"].shape == (1, S, *np.shape(groups["observed_data"].x))
    expected = log_p[:, np.arange(N), np.argsort(np.argsort(NAMES))[Y]]
    label = groups["log_likelihood"]["label"].values[0]
    np.testing.assert_allclose(label, expected, rtol=1e-6, atol=1e-8)


def test_rows_are_read_by_name(each: Classified) -> None:
    clf, names = each.clf, each.clf.columns_
    p = clf.predict_proba(each.X)
    frame = pd.DataFrame(each.X, columns=names)[names[::-1]].assign(other="text")
    np.testing.assert_array_equal(clf.predict_proba(frame), p)
    with pytest.raises(ValueError, match=f"no column '{names[0]}'"):
        clf.predict_proba(frame.drop(columns=names[0]))


def test_weights_that_depend_on_the_row_are_not_replaced(weighted: Classified) -> None:
    clf, rows = weighted.clf, weighted.X
    for use in (
        lambda: clf.predict_proba(rows, class_prior=[0.2, 0.3, 0.5]),
        lambda: bg.estimate_class_prior(clf, rows),
    ):
        with pytest.raises(ValueError, match="depend on the row"):
            use()
    with pytest.raises(NotImplementedError, match="no distribution of 'slope'"):
        clf.simulate(3)


def test_simulated_rows_have_the_moments_of_the_model(plates: Classified) -> None:
    same = {k: np.repeat(v[:1], 4, axis=0) for k, v in plates.draws.items()}
    clf = plates.clf.with_posterior(trace(plates.model, same))
    rows, y = clf.simulate(4000, y="ash", source="draw")
    assert set(y) == {"ash"}
    nu, mu, sigma = (same[k][0] for k in ("nu", "mu", "sigma"))
    for share in (0.2, 0.7):
        below = (rows < stats.t.ppf(share, nu, mu[1], sigma[1])).mean(axis=0)
        assert np.all(np.abs(below - share) < 5 * np.sqrt(share * (1 - share) / 4000))


def test_draws_may_be_stacked_or_whole_trees(plates: Classified) -> None:
    clf, draws = plates.clf, trace(plates.model, plates.draws)
    whole = xr.DataTree.from_dict({"/posterior": draws})
    for form in (whole, az.extract(whole)):
        p = clf.with_posterior(form).predict_proba(X)
        np.testing.assert_array_equal(p, clf.predict_proba(X))
    with pytest.raises(ValueError, match="no variable 'nu'"):
        clf.with_posterior(draws.drop_vars("nu"))


@pytest.mark.parametrize("named", [True, False])
def test_class_weights_may_be_called_pi_and_dims_class(named: bool) -> None:
    coords = {"class": list(NAMES), "size": ["long", "wide"]}
    with pm.Model(coords=coords) as model:
        y = pm.Categorical("kind", pm.Dirichlet("pi", [1.0, 1, 1], dims="class"), observed=Y)
        mu = pm.Normal("mu", 0, 10, dims=("class", "size"))
        pm.Normal("x", mu=mu[y], sigma=1.0, observed=X)
    draws = draws_of(model)
    tree = trace(model, draws).assign_coords(coords if named else {})
    clf = bg.from_pymc(model, label="kind").with_posterior(tree)
    log_x = stats.norm.logpdf(X[:, None], by_class(draws)["mu"], 1.0).sum(axis=-1)
    joint = special.logsumexp(log_x + np.log(draws["pi"])[:, None], axis=0)
    p = special.softmax(joint, axis=1)[:, np.argsort(NAMES)]
    np.testing.assert_allclose(clf.predict_proba(X), p, rtol=1e-9)
    oak = clf.posterior_["posterior"]["mu"].sel({"class": "oak"})
    np.testing.assert_array_equal(oak[0], draws["mu"][:, 0])


def test_it_is_compared_with_closed_forms(plates: Classified) -> None:
    models = {"t": plates.clf, "normal": bg.GaussianNB().fit(X, LABELS)}
    with pytest.warns(bg.MonteCarloWarning, match="Pareto k"):
        table = bg.compare_models(models, X, LABELS)
    assert set(table.table["model"].values) == {"t", "normal"}
    summary = repr(plates.clf.summary())
    assert "PyMCClassifier" in summary
    assert "pseudo" not in summary


def test_columns_may_depend_on_each_other_and_are_counts() -> None:
    few = COUNT[:, None] + [0, 1]
    with pm.Model() as model:
        y = three()
        first = pm.Poisson("first", pm.Gamma("a", 2, 1, shape=3)[y], observed=few[:, 0])
        pm.Poisson("second", pm.Gamma("b", 2, 1, shape=3)[y] * (1 + first), observed=few[:, 1])
    draws = draws_of(model)
    clf, d = bg.from_pymc(model).with_posterior(trace(model, draws)), by_class(draws)
    log_x = stats.poisson.logpmf(few[:, :1], d["a"])
    log_x += stats.poisson.logpmf(few[:, 1:], d["b"] * (1 + few[:, :1]))
    p = special.softmax(special.logsumexp(log_x + np.log(d["w"]), axis=0), axis=1)
    np.testing.assert_allclose(clf.predict_proba(few), p, rtol=1e-9)
    with pytest.raises(ValueError, match="'first' holds whole numbers"):
        clf.predict_proba([[1.5, 2]])


CLASSIFIERS = {
    "bits": (bg.BernoulliNB(alpha=0.7), (X > 1).astype(int)),
    "gaps": (bg.GaussianNB(), np.where(X > 2, np.nan, X)),
    "matrices": (bg.LinearDiscriminant(), X),
    "columns": (
        bg.MixedNB({"categorical": [0], "gaussian": [1]}),
        np.column_stack([(SITE + Y) % 4, X[:, 0]]),
    ),
}


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_the_graph_of_a_classifier_is_that_classifier(kind: str) -> None:
    clf, rows = CLASSIFIERS[kind]
    draws = clf.fit(rows, LABELS).draw_posterior(50)
    again = bg.from_pymc(clf.to_pymc(rows, LABELS, likelihood="rows")).with_posterior(draws)
    expected = clf.with_posterior(draws).predict_proba(rows)
    np.testing.assert_allclose(again.predict_proba(rows), expected, rtol=1e-9)


# ------------------------------------------------------------------------- what is refused, and why


def test_what_is_no_model_or_no_label_is_refused(plates: Classified) -> None:
    with pytest.raises(TypeError, match=r"a pymc\.Model, got dict"):
        bg.from_pymc({})
    with pytest.raises(ValueError, match=r"must be a Categorical or Bernoulli.*x .StudentT."):
        bg.from_pymc(plates.model, label="x")
    texts = np.array(["".join(RNG.choice(list("abc "), 9)) for _ in Y], dtype=object)
    model = bg.MarkovNB(2).fit(texts, Y).to_pymc(texts, Y, likelihood="rows")
    with pytest.raises(ValueError, match="its first axis must be the 21 rows"):
        bg.from_pymc(model)


def test_what_it_cannot_have_is_refused(plates: Classified) -> None:
    clf = plates.clf
    assert clf.to_pymc() is plates.model
    with pytest.raises(ValueError, match="the model is the user's own"):
        clf.to_pymc(X, Y)
    with pytest.raises(TypeError, match="takes no rows"):
        clf.fit(X, Y)
    with pytest.raises(TypeError, match="cannot hold a PyMC model"):
        clf.save("model.nc")
    with pytest.raises(bg.NoClosedFormError):
        clf.log_evidence_  # noqa: B018
