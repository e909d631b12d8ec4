"""Posterior trees in the hands of PyMC and ArviZ, without an adapter: their numbers are ours."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen.families.contract import Theta
from tests.graphs import PYTHON
from tests.selection import rest_is_slow

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings at import of these packages are not ours
    import arviz as az
    import pymc as pm

PYMC: dict[str, Any] = {"progressbar": False, "compile_kwargs": {"mode": PYTHON}}
JOINT: dict[str, Any] = {"likelihood_var_names": "joint"}
GROUPS = ("prior", "log_prior", "log_likelihood", "posterior_predictive")


@pytest.fixture(autouse=True)
def _third_parties() -> Iterator[None]:
    """Deprecations inside these packages are for them to mend; pictures are not shown."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with warnings.catch_warnings(), az.rc_context({"plot.backend": "matplotlib"}):
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        yield
    plt.close("all")


@dataclass
class Case:
    """A classifier with its rows, fitted and drawn from once."""

    name: str
    clf: Any
    X: Any
    y: np.ndarray
    flat: bool = True  # whether the prior is uniform

    @cached_property
    def fitted(self) -> Any:
        return self.clf.fit(self.X, self.y)

    @cached_property
    def encoded(self) -> Any:
        return self.fitted.fitted_.read(self.X).encoded

    @cached_property
    def codes(self) -> np.ndarray:
        return self.fitted.fitted_.codes_of(self.y)

    @cached_property
    def tree(self) -> Any:
        return self.fitted.draw_posterior(
            X=self.X, y=self.y, groups=GROUPS, replicate=("label", "x")
        )

    @property
    def params(self) -> list[str]:
        return list(self.fitted.model_.params)

    def mean(self) -> Theta:
        """Posterior means of all parameters, in closed form, as the tree has them."""
        model = self.fitted.model_
        found = {"pi": model.alpha / model.alpha.sum(), **model.family.mean()}
        if self.name == "categorical":  # listed by cell
            found["theta"] = found["theta"][:, model.family.alpha[0] > 0]
        return found


RNG = np.random.default_rng(3)
N = 36
TWO, THREE = np.arange(N) % 2, np.arange(N) % 3
IRIS, SPECIES = load_iris(return_X_y=True, as_frame=True)
IRIS = IRIS.iloc[::3, 2:].rename(columns=lambda name: name.removesuffix(" (cm)"))
SPECIES = np.array(["setosa", "versicolor", "virginica"])[SPECIES[::3]]
HAM = np.array(["ham", "spam"])[TWO]
CATTLE = np.array(["bull", "calf", "cow"])[THREE]
COUNTS = RNG.poisson(1.0 + TWO[:, None] * [0, 1, 2]).astype(float)
BITS = (RNG.random((N, 4)) < 0.3 + 0.3 * TWO[:, None]).astype(float)
WORDS = np.array([[RNG.choice(list(s)) for s in ("uvw", "p", "rs")] for _ in range(N)])
TABLE = pd.DataFrame(
    {"size": RNG.normal(TWO), "bit": RNG.random(N) < 0.4, "word": RNG.choice(["u", "v"], N)}
)
TEXTS = ["".join(RNG.choice(list("xy"), RNG.integers(2, 8))) for _ in range(N)]
CASES = [
    Case("gaussian", bg.GaussianNB(), IRIS, SPECIES, flat=False),
    Case("linear", bg.LinearDiscriminant(), IRIS, SPECIES, flat=False),
    Case("multinomial", bg.MultinomialNB(), COUNTS, HAM),
    Case("bernoulli", bg.BernoulliNB(), BITS, TWO),
    Case("categorical", bg.CategoricalNB(), WORDS, CATTLE),
    Case("mixed", bg.MixedNB(), TABLE, HAM, flat=False),
    Case("markov", bg.MarkovNB(order=2), TEXTS, HAM),
]
BY_NAME = {case.name: case for case in CASES}
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
PICTURES = [BY_NAME[name] for name in ("gaussian", "categorical")]
case_of_pictures = pytest.mark.parametrize(
    "case", rest_is_slow(CASES, PICTURES), ids=lambda case: case.name
)


# ------------------------------------------------------------------------------------------ PyMC


def test_pymc_computes_our_log_likelihood_of_other_rows() -> None:
    clf = bg.LinearDiscriminant().fit(IRIS[::2], SPECIES[::2])
    tree = clf.draw_posterior(5, 1, X=IRIS[1::2], y=SPECIES[1::2])
    model = clf.to_pymc(IRIS[1::2], SPECIES[1::2], likelihood="rows")
    found = pm.compute_log_likelihood(tree, model=model, extend_inferencedata=False, **PYMC)
    total = found["x"].values + found["label"].values
    np.testing.assert_allclose(total, tree["log_likelihood"]["joint"], rtol=1e-9)


# ---------------------------------------------------------------------------------------- summary


def test_summary_speaks_of_the_user_s_classes_and_columns() -> None:
    rows = az.summary(BY_NAME["gaussian"].tree).index
    assert {"pi[setosa]", "mu[virginica, petal width]", "sigma2[setosa, petal length]"} <= set(rows)
    rows = az.summary(BY_NAME["mixed"].tree).index
    assert {"bernoulli_theta[ham, bit]", "categorical_theta[spam, word, u]"} <= set(rows)
    assert "theta[spam, x, y]" in az.summary(BY_NAME["markov"].tree).index


# ------------------------------------------------------------------------------------------ plots


def cells(case: Case, visual: Any) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """(parameter, {dim: label}, what is drawn) of one kind of visual element."""
    for name in case.params:
        values = visual[name]
        dims = case.tree["posterior"][name].dims[2:]
        for at in np.ndindex(*(values.sizes[d] for d in dims)):
            where = dict(zip(dims, at, strict=True))
            yield name, where, values.isel(where)


@case_of_pictures
def test_forest_is_drawn(case: Case) -> None:
    plots = az.plot_forest(case.tree, combined=True)
    assert isinstance(plots, az.PlotCollection)
    for name, where, point in cells(case, plots.viz["point_estimate"]):
        x = float(point.item().get_offsets()[0, 0])
        draws = case.tree["posterior"][name].isel(where)
        se = float(draws.std()) / np.sqrt(draws.size)
        exact = np.asarray(case.mean()[name])[tuple(where.values())]
        assert abs(x - exact) <= 4.5 * se + 1e-12
    labels = plots.viz["class_label"]["pi"].values
    assert [text.get_text() for text in labels] == [str(c) for c in case.fitted.classes_]


@case_of_pictures
def test_calibration_of_the_labels_is_drawn(case: Case) -> None:
    """The x axis is p(y = c | x_i), averaged over draws, in order."""
    n_classes = len(case.fitted.classes_)
    with warnings.catch_warnings():
        if n_classes == 2:
            warnings.filterwarnings("ignore", message=".*appears to be binary")
        plain = case.fitted.draw_posterior(X=case.X, y=case.y)  # labels alone are replicated
        plots = az.plot_ppc_pava(plain, data_type="categorical")
    assert isinstance(plots, az.PlotCollection)
    drawn = plain["posterior_predictive"]["label"]
    mean = plain["log_likelihood"]["label"]
    for c in range(n_classes):
        x, calibrated = plots.viz["lines"][f"label {c} vs others"].item().get_data()
        np.testing.assert_allclose(x, np.sort((drawn == c).mean(("chain", "draw"))), atol=1e-12)
        assert (np.diff(calibrated) >= 0).all()
        assert calibrated.sum() == pytest.approx((case.codes == c).sum())
        own = case.codes == c
        p = np.exp(mean.values[..., own]).mean(axis=(0, 1))
        seen = (drawn == c).mean(("chain", "draw")).values[own]
        assert (np.abs(seen - p) < 4.5 * np.sqrt(p * (1 - p) / 2000) + 1e-3).all()
    if n_classes == 2:
        plots = az.plot_ppc_pava(case.tree, var_names="label", data_type="binary")
        drawn = case.tree["posterior_predictive"]["label"]
        x, _ = plots.viz["lines"]["label"].item().get_data()
        np.testing.assert_allclose(x, np.sort(drawn.mean(("chain", "draw"))), atol=1e-12)


@pytest.mark.slow
def test_other_pictures_are_drawn() -> None:
    case = BY_NAME["mixed"]
    elpd = az.loo(case.tree, var_name="joint", pointwise=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*look (binary|discrete)", category=UserWarning)
        warnings.filterwarnings("ignore", message=".*chain dimension to be longer")
        for plots in (
            az.plot_dist(case.tree),
            az.plot_prior_posterior(case.tree),
            az.plot_trace_dist(case.tree, var_names="pi"),
            az.plot_rank(case.tree, var_names="pi"),
            az.plot_pair(case.tree, var_names="pi"),
            az.plot_ppc_dist(case.tree, var_names="gaussian_x", num_samples=20),
            az.plot_ppc_rootogram(case.tree, var_names="label"),
            az.plot_psense_dist(case.tree, var_names="pi", **JOINT),
            az.plot_khat(elpd),
            az.plot_compare(az.compare({"joint": elpd, "again": elpd})),
        ):
            assert hasattr(plots, "savefig")


# ------------------------------------------------------------------------------ leave-one-out


def left_out(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """(N, C) log p(y_i = c, x_i | others) and p(y_i = c | x_i, others): a fit without each row."""
    prior, codes, n_classes = case.fitted.prior_, case.codes, len(case.fitted.classes_)
    joint = np.empty((len(codes), n_classes))
    for i in range(len(codes)):
        others = np.arange(len(codes)) != i
        model = prior.update(prior.stats(case.encoded[others], codes[others], n_classes))
        joint[i] = model.family.log_predictive(case.encoded[[i]])[0] + np.log(model.alpha)
    joint -= np.log(model.alpha.sum())
    return joint, np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))


@every_case
def test_loo_is_leave_one_out(case: Case) -> None:
    own = np.arange(len(case.codes)), case.codes
    joint, law = left_out(case)
    for name, exact in (("joint", joint[own]), ("label", np.log(law[own]))):
        with warnings.catch_warnings():  # of large k where a label is as good as certain
            warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
            found = az.loo(case.tree, var_name=name, pointwise=True)
        assert found.n_data_points == len(case.y)
        good = found.pareto_k.values < 0.7
        assert np.abs(found.elpd_i.values - exact)[good].max() < 0.15
        assert found.elpd == pytest.approx(exact.sum(), abs=1.0)
        assert found.se == pytest.approx(np.sqrt(len(exact) * exact.var(ddof=1)), rel=0.1)
        assert good[exact < -1e-2].mean() > 0.9
        assert not np.isnan(found.pareto_k).any()


def test_loo_takes_rows_whose_labels_are_certain() -> None:
    """Classes so far apart that p(y | x) is 1 to the last digit, and one class alone."""
    far = IRIS.to_numpy() + 1e3 * (SPECIES == "setosa")[:, None]
    for y in (np.where(SPECIES == "setosa", "near", "far"), np.full(len(far), "all")):
        clf = bg.GaussianNB().fit(far, y)
        found = az.loo(clf.draw_posterior(X=far, y=y), var_name="label", pointwise=True)
        assert found.elpd == pytest.approx(0.0, abs=1e-7)
        assert np.isfinite(found.pareto_k).all()
        assert not found.warning


# ------------------------------------------------- functions that pair the groups by their names


def replicated(case: Case) -> Any:
    """What a user calls."""
    return case.fitted.posterior_groups(case.X, case.y)


@case_of_pictures
def test_loo_score_is_the_ranked_probability_score(case: Case) -> None:
    """CRPS of a class code k: minus the sum over codes of (F(k) - [y <= k])^2."""
    tree = replicated(case)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        found = az.loo_score(tree, var_name="label", pointwise=True)
    cdf = np.cumsum(left_out(case)[1], axis=1)
    exact = -np.square(cdf - (case.codes[:, None] <= np.arange(cdf.shape[1]))).sum(axis=1)
    good = found.pareto_k.values < 0.7
    assert np.abs(found.pointwise.values - exact)[good].max() < 0.1
    assert found.mean == pytest.approx(exact.mean(), abs=0.03)


def scored(tree: Any, name: str) -> dict[str, float]:
    """Leave-one-out scores of a class by ArviZ."""
    found = {
        kind: az.loo_metrics(tree, kind=kind, var_name=name, round_to="none").mean
        for kind in ("acc", "rmse")
    }
    return found | {"crps": az.loo_score(tree, var_name=name, round_to="none").mean}


@case_of_pictures
def test_a_class_is_scored_by_its_indicator(case: Case) -> None:
    """Brier score, accuracy, elpd and transform of "is it of this class?", by refits."""
    tree = case.fitted.posterior_groups(case.X, case.y, replicate=["indicators"])
    law = left_out(case)[1]
    # of a mean of 2000 draws of 0 and 1; importance weights and the rest of the label double it
    mcse = 2 * np.sqrt(law * (1 - law) / 2000)
    for c, label in enumerate(case.fitted.classes_):
        name, hit, p = f"is_{label}", case.codes == c, law[:, c]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
            found = scored(tree, name)
            score = az.loo_score(tree, var_name=name, pointwise=True)
            elpd = az.loo(tree, var_name=name, pointwise=True)
        brier, slope = np.square(p - hit), 2 * np.abs(p - hit)
        error = 5 * (slope * mcse[:, c]).mean() + 5 * np.square(mcse[:, c]).mean()
        assert -found["crps"] == pytest.approx(brier.mean(), abs=error)
        assert found["rmse"] ** 2 == pytest.approx(brier.mean(), abs=error)
        near = np.abs(p - 0.5) < 5 * mcse[:, c]
        right = np.mean((p > 0.5) == hit)
        assert found["acc"] == pytest.approx(right, abs=near.mean() + 1e-12)
        good = score.pareto_k.values < 0.7
        row_error = 5 * slope * mcse[:, c] + 25 * np.square(mcse[:, c])
        assert (np.abs(-score.pointwise.values - brier) <= row_error + 1e-3)[good].all()
        exact = np.where(hit, np.log(p), np.log1p(-p))
        assert np.abs(elpd.elpd_i.values - exact)[elpd.pareto_k.values < 0.7].max() < 0.15
        pit = az.loo_pit(tree, var_names=name)[name].values
        assert (pit > np.where(hit, 1 - p, 0.0) - 0.08).all()
        assert (pit < np.where(hit, 1.0, 1 - p) + 0.08).all()


def test_scores_of_a_class_do_not_depend_on_the_alphabet() -> None:
    """Penguins that are separable, under names that put a species first and another last."""
    X, y = bg.datasets.load_penguins()
    X = X[["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]].dropna()
    X = X.loc[y[X.index].groupby(y[X.index]).head(12).index]
    y = y[X.index]
    hits = []
    for first in ("Adelie", "Gentoo"):
        names = np.where(y == first, "A " + first, y)  # the alphabet's first
        clf = bg.LinearDiscriminant().fit(X, names)
        tree = clf.posterior_groups(X, names, replicate=["indicators"])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
            for label in clf.classes_:
                found = scored(tree, f"is_{label}")
                assert found["acc"] == 1.0
                assert -found["crps"] < 0.01
            hits.append(az.loo_metrics(tree, kind="acc", var_name="label").mean)
    assert min(hits) < 0.7  # why: codes are taken for numbers


def kin(tree: Any, binary: bool) -> Iterator[Any]:
    """Every function of ArviZ that looks up the log likelihood by the observed variable."""
    yield az.loo_metrics(tree, kind="acc", var_name="label")  # a score where binary
    yield az.loo_expectations(tree, var_name="label", log_likelihood_var_name="label")
    yield az.loo_influence(tree, var_names="pi", group="posterior", log_likelihood_var_name="label")
    yield az.loo_i(3, tree, var_name="label")
    yield az.loo_subsample(tree, observations=20, var_name="label", seed=1)
    yield az.metrics(tree, kind="acc", var_name="label")
    yield az.plot_loo_pit(tree)
    yield az.plot_loo_interval(tree)
    yield az.plot_ppc_pit(tree)
    yield az.plot_ppc_dist_pit(tree)
    yield az.plot_ppc_dist(tree)
    yield az.plot_ppc_interval(tree)
    yield az.plot_ppc_tstat(tree)
    yield az.plot_ppc_rootogram(tree)
    yield az.plot_khat(az.loo(tree, var_name="label", pointwise=True))
    x = np.arange(tree["observed_data"].sizes["obs_id"])
    if binary:
        yield az.plot_loo_pava(tree)
        yield az.plot_ppc_pava(tree)
        yield az.loo_r2(tree, var_name="label")
        yield az.plot_ppc_pava_residuals(tree, x)
    else:
        yield az.plot_ppc_pava_residuals(tree, x, data_type="categorical")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "multinomial"])
def test_functions_of_arviz_find_what_scores_the_label(name: str) -> None:
    case = BY_NAME[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what labels look like, and of Pareto k
        found = [*kin(replicated(case), binary=len(case.fitted.classes_) == 2)]
    assert all(each is not None for each in found)
    hits = (left_out(case)[1].argmax(axis=1) == case.codes).mean()
    if len(case.fitted.classes_) == 2:
        assert found[0].mean == pytest.approx(hits, abs=1.5 / len(case.codes))


# ---------------------------------------------------------------------------------- sensitivity


@every_case
def test_a_flat_prior_has_no_weight(case: Case) -> None:
    with warnings.catch_warnings():
        if case.name == "categorical":
            warnings.filterwarnings("ignore", message="invalid value", category=RuntimeWarning)
        table = az.psense_summary(case.tree, var_names=case.params, **JOINT)
    moving = table["likelihood"].notna()  # the constants of a ragged table
    if case.flat:
        assert (table["prior"][moving] == 0).all()
        assert (table["diagnosis"] == "✓").all()
    assert (table["likelihood"][moving] > 0.05).all()
