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
from scipy import stats
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

    with (
        warnings.catch_warnings(),
        az.rc_context({"plot.backend": "matplotlib"}),
    ):
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

    @cached_property
    def few(self) -> Any:
        """A tree for what PyMC computes draw by draw, in Python."""
        return self.fitted.draw_posterior(
            60, 2, X=self.X, y=self.y, groups=GROUPS, replicate=("label", "x")
        )

    @cached_property
    def rows(self) -> pm.Model:
        return self.fitted.to_pymc(self.X, self.y, likelihood="rows")

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
some_cases = pytest.mark.parametrize(
    "case",
    rest_is_slow(CASES, [BY_NAME[name] for name in ("mixed", "multinomial", "markov")]),
    ids=lambda case: case.name,
)
PICTURES = [BY_NAME[name] for name in ("gaussian", "categorical")]
case_of_pictures = pytest.mark.parametrize(
    "case", rest_is_slow(CASES, PICTURES), ids=lambda case: case.name
)
one_case = pytest.mark.parametrize(
    "case", rest_is_slow(CASES, PICTURES[1:]), ids=lambda case: case.name
)


# ------------------------------------------------------------------------------------------ PyMC


def by_row(case: Case, densities: Any) -> np.ndarray:
    """Sum over the observed variables and cells of each row: (chain, draw, N)."""
    first, *_ = densities.data_vars.values()
    out = np.zeros((*first.shape[:2], len(case.y)))
    for values in densities.data_vars.values():
        if values.dims[2] == "cell":  # a token each
            for token, row in enumerate(case.rows["x_row"].eval(mode=PYTHON)):
                out[..., row] += values.values[..., token]
        else:
            out += values.values.reshape(*values.shape[:3], -1).sum(axis=-1)
    return out


@some_cases
def test_pymc_computes_our_log_likelihood(case: Case) -> None:
    found = pm.compute_log_likelihood(case.few, model=case.rows, extend_inferencedata=False, **PYMC)
    joint = case.few["log_likelihood"]["joint"]
    np.testing.assert_allclose(by_row(case, found), joint, rtol=1e-9)
    log_pi = np.log(case.few["posterior"]["pi"].values[..., case.codes])
    np.testing.assert_allclose(found["label"], log_pi, rtol=1e-9)


def test_pymc_computes_our_log_likelihood_of_other_rows() -> None:
    clf = bg.LinearDiscriminant().fit(IRIS[::2], SPECIES[::2])
    tree = clf.draw_posterior(5, 1, X=IRIS[1::2], y=SPECIES[1::2])
    model = clf.to_pymc(IRIS[1::2], SPECIES[1::2], likelihood="rows")
    found = pm.compute_log_likelihood(tree, model=model, extend_inferencedata=False, **PYMC)
    total = found["x"].values + found["label"].values
    np.testing.assert_allclose(total, tree["log_likelihood"]["joint"], rtol=1e-9)


@some_cases
def test_pymc_computes_our_log_prior(case: Case) -> None:
    found = pm.compute_log_prior(case.few, model=case.rows, extend_inferencedata=False, **PYMC)
    group = case.few["log_prior"]
    np.testing.assert_allclose(found["pi"], group["pi"], atol=1e-9)
    if case.name == "linear":  # of its coordinates, not of Sigma: see tests/laws/test_pymc.py
        assert all(np.isfinite(v).all() for v in found.data_vars.values())
        return
    features = sum(
        v.values.reshape(2, 60, -1).sum(axis=-1)
        for name, v in found.data_vars.items()
        if name != "pi"
    )
    np.testing.assert_allclose(features, group["theta"], rtol=1e-9, atol=1e-9)


def assert_same_mean(a: np.ndarray, b: np.ndarray) -> None:
    """Independent draws (n, ...) of two samplers have one mean, cell by cell."""
    se = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
    z = (a.mean(axis=0) - b.mean(axis=0)) / np.where(se > 0, se, 1.0)
    assert np.abs(z).max() < 4.5


@some_cases
def test_pymc_replicates_rows_as_we_do(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*implicitly frozen")  # which is what we want
        new = pm.sample_posterior_predictive(case.few, model=case.rows, random_seed=1, **PYMC)
    drawn, ours = new["posterior_predictive"], case.tree["posterior_predictive"]
    assert set(ours.data_vars) == set(drawn.data_vars) - ({"x"} if case.name == "markov" else set())
    for name in set(ours.data_vars) - {"label"}:  # PyMC's label is drawn by pi, not given x
        assert drawn[name].dims == ours[name].dims
        assert (drawn[name].dtype.kind in "iu") == (ours[name].dtype.kind in "iu")
        for dim in ours[name].dims[2:]:
            assert drawn[dim].values.tolist() == ours[dim].values.tolist()
        a, b = (v.values.reshape(-1, *v.shape[2:]).astype(float) for v in (drawn[name], ours[name]))
        assert_same_mean(a, b)
    observed = new["observed_data"]
    for name, values in case.tree["observed_data"].data_vars.items():
        np.testing.assert_array_equal(observed[name], values)
        assert observed[name].dtype == values.dtype
    pi = case.few["posterior"]["pi"].values.reshape(-1, len(case.fitted.classes_))
    hits = np.stack(
        [(drawn["label"] == c).mean("obs_id").values.ravel() for c in range(pi.shape[1])]
    )
    assert np.abs((hits - pi.T).mean(axis=1)).max() < 4.5 / np.sqrt(4 * hits.shape[1] * len(case.y))


# ---------------------------------------------------------------------------------------- summary


@some_cases
def test_summary_has_the_closed_form_means(case: Case) -> None:
    with warnings.catch_warnings():
        if case.name == "categorical":  # the one category of a column is a constant, 1
            warnings.filterwarnings("ignore", message="invalid value", category=RuntimeWarning)
        table = az.summary(case.tree, var_names=case.params, round_to="none")
        r_hat, ess = (f(case.tree, var_names=case.params) for f in (az.rhat, az.ess))
    exact = np.concatenate([np.ravel(case.mean()[name]) for name in case.params])
    moving = table["sd"].to_numpy() > 1e-12
    z = (table["mean"] - exact)[moving] / table["mcse_mean"][moving]
    assert np.abs(z).max() < 4.5
    np.testing.assert_allclose(table["mean"][~moving], exact[~moving])
    assert (table["r_hat"][moving].astype(float) < 1.01).all()
    assert (table["ess_bulk"][moving].astype(float) > 1500).all()  # 2000 independent draws
    for group, check in ((r_hat, lambda v: v < 1.01), (ess, lambda v: v > 1000)):
        for values in group.data_vars.values():
            ok = np.isfinite(values.values)
            assert check(values.values[ok]).all()


def test_summary_speaks_of_the_user_s_classes_and_columns() -> None:
    rows = az.summary(BY_NAME["gaussian"].tree).index
    assert {"pi[setosa]", "mu[virginica, petal width]", "sigma2[setosa, petal length]"} <= set(rows)
    rows = az.summary(BY_NAME["mixed"].tree).index
    assert {"bernoulli_theta[ham, bit]", "categorical_theta[spam, word, u]"} <= set(rows)
    assert "theta[spam, x, y]" in az.summary(BY_NAME["markov"].tree).index


def test_summary_has_the_categories_that_exist_and_no_others() -> None:
    case = BY_NAME["categorical"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="invalid value", category=RuntimeWarning)
        rows = [name for name in az.summary(case.tree).index if name.startswith("theta")]
    cells = ("x0, u", "x0, v", "x0, w", "x1, p", "x2, r", "x2, s")
    assert rows == [f"theta[{c}, {cell}]" for c in ("bull", "calf", "cow") for cell in cells]
    named = case.tree["posterior"]["feature_category"]
    assert named.attrs["feature"] == ["x0", "x0", "x0", "x1", "x2", "x2"]
    assert named.attrs["category"] == ["u", "v", "w", "p", "r", "s"]
    shared = bg.CategoricalNB().fit(WORDS[:, [0, 0]], CATTLE).posterior_["posterior"]["theta"]
    assert shared.dims[2:] == ("class", "feature", "category")
    assert shared["category"].values.tolist() == ["u", "v", "w"]


# ------------------------------------------------------------------------------------------ plots


def centre_of(line: Any) -> float:
    """Mean of a density that is drawn as a line."""
    x, density = line.get_data()
    return float(np.trapezoid(x * density, x) / np.trapezoid(density, x))


def cells(case: Case, visual: Any) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """(parameter, {dim: label}, what is drawn) of one kind of visual element."""
    for name in case.params:
        values = visual[name]
        dims = case.tree["posterior"][name].dims[2:]
        for at in np.ndindex(*(values.sizes[d] for d in dims)):
            where = dict(zip(dims, at, strict=True))
            yield name, where, values.isel(where)


def drawable(case: Case) -> Any:
    """The tree without the one category of a column, a constant whose density ArviZ warns of."""
    if case.name != "categorical":
        return case.tree
    return case.tree.map_over_datasets(
        lambda group: (
            group.drop_sel(feature_category="x1, p") if "feature_category" in group.dims else group
        )
    )


@one_case
def test_dist_is_drawn(case: Case) -> None:
    tree = drawable(case)
    plots = az.plot_dist(tree)
    assert isinstance(plots, az.PlotCollection)
    drawn = 0
    for name, where, line in cells(case, plots.viz["dist"]):
        draws = tree["posterior"][name].isel(where)
        assert centre_of(line.item()) == pytest.approx(
            float(draws.mean()), abs=0.2 * float(draws.std())
        )
        drawn += 1
    assert drawn == sum(tree["posterior"][name][0, 0].size for name in case.params)


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


@one_case
def test_prior_and_posterior_are_drawn(case: Case) -> None:
    tree = drawable(case)
    plots = az.plot_prior_posterior(tree)
    assert isinstance(plots, az.PlotCollection)
    for name, where, lines in cells(case, plots.viz["dist"]):
        draws = tree["posterior"][name].isel(where)
        posterior = centre_of(lines.sel(group="posterior").item())
        assert posterior == pytest.approx(float(draws.mean()), abs=0.2 * float(draws.std()))
        if name == "pi":  # of a uniform prior
            prior = centre_of(lines.sel(group="prior").item())
            assert prior == pytest.approx(1 / len(case.fitted.classes_), abs=0.05)


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
            az.plot_trace_dist(case.tree, var_names="pi"),
            az.plot_rank(case.tree, var_names="pi"),
            az.plot_pair(case.tree, var_names="pi"),
            az.plot_ppc_dist(case.tree, var_names="gaussian_x", num_samples=20),
            az.plot_ppc_rootogram(case.tree, var_names="label"),
            az.plot_psense_dist(case.tree, var_names="pi", **JOINT),
            az.plot_khat(elpd),
        ):
            assert hasattr(plots, "savefig")


# ------------------------------------------------------------------------------ leave-one-out


def left_out(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """(N,) log p(y_i, x_i | others) and log p(y_i | x_i, others): a fit without each row."""
    prior, codes, n_classes = case.fitted.prior_, case.codes, len(case.fitted.classes_)
    joint, label = np.empty(len(codes)), np.empty(len(codes))
    for i, c in enumerate(codes):
        others = np.arange(len(codes)) != i
        model = prior.update(prior.stats(case.encoded[others], codes[others], n_classes))
        log_p = np.log(model.alpha / model.alpha.sum())
        log_p = log_p + model.family.log_predictive(case.encoded[[i]])[0]
        joint[i], label[i] = log_p[c], log_p[c] - np.logaddexp.reduce(log_p)
    return joint, label


@every_case
def test_loo_is_leave_one_out(case: Case) -> None:
    for name, exact in zip(("joint", "label"), left_out(case), strict=True):
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


def test_compare_orders_models_by_leave_one_out() -> None:
    cases = [BY_NAME["gaussian"], BY_NAME["linear"]]
    exact = np.array([left_out(case) for case in cases])  # (model, kind, N)
    trees = {case.name: case.tree for case in cases}
    for k, name in enumerate(("joint", "label")):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
            table = az.compare(trees, var_name=name, round_to="none")
        d = exact[0, k] - exact[1, k]
        best = "gaussian" if d.sum() > 0 else "linear"
        assert table.index[0] == best
        assert table["elpd_diff"].iloc[1] == pytest.approx(-abs(d.sum()), abs=1.0)
        assert table["dse"].iloc[1] == pytest.approx(np.sqrt(len(d) * d.var()), rel=0.2)


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


def left_out_law(case: Case) -> np.ndarray:
    """(N, C) p(y_i = c | x_i, others): a fit without each row."""
    prior, codes, n_classes = case.fitted.prior_, case.codes, len(case.fitted.classes_)
    out = np.empty((len(codes), n_classes))
    for i in range(len(codes)):
        others = np.arange(len(codes)) != i
        model = prior.update(prior.stats(case.encoded[others], codes[others], n_classes))
        log_p = np.log(model.alpha / model.alpha.sum())
        log_p = log_p + model.family.log_predictive(case.encoded[[i]])[0]
        out[i] = np.exp(log_p - np.logaddexp.reduce(log_p))
    return out


@case_of_pictures
def test_loo_pit_of_labels_lies_within_the_step_of_the_predictive(case: Case) -> None:
    """Of a discrete label the transform is uniform between p(y~ < y) and p(y~ <= y)."""
    pit = az.loo_pit(replicated(case))["label"].values
    cdf = np.cumsum(left_out_law(case), axis=1)[np.arange(len(pit)), case.codes]
    below = cdf - left_out_law(case)[np.arange(len(pit)), case.codes]
    assert (pit > below - 0.08).all()
    assert (pit < cdf + 0.08).all()


@case_of_pictures
def test_loo_score_is_the_ranked_probability_score(case: Case) -> None:
    """CRPS of a class code k: minus the sum over codes of (F(k) - [y <= k])^2."""
    tree = replicated(case)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        found = az.loo_score(tree, var_name="label", pointwise=True)
    cdf = np.cumsum(left_out_law(case), axis=1)
    exact = -np.square(cdf - (case.codes[:, None] <= np.arange(cdf.shape[1]))).sum(axis=1)
    good = found.pareto_k.values < 0.7
    assert np.abs(found.pointwise.values - exact)[good].max() < 0.1
    assert found.mean == pytest.approx(exact.mean(), abs=0.03)


@one_case
def test_leave_one_out_calibration_is_drawn(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        warnings.filterwarnings("ignore", message=".*appears to be binary")
        plots = az.plot_loo_pava(replicated(case), data_type="categorical")
    law = left_out_law(case)
    for c in range(law.shape[1]):
        x, calibrated = plots.viz["lines"][f"label {c} vs others"].item().get_data()
        assert np.abs(x - np.sort(law[:, c])).max() < 0.1
        assert calibrated.sum() == pytest.approx((case.codes == c).sum())


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
    law = left_out_law(case)
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
    """Penguins that are separable, under names that put each species first, second and last."""
    X, y = bg.datasets.load_penguins()
    X = X[["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]].dropna()
    X = X.loc[y[X.index].groupby(y[X.index]).head(20).index]
    y = y[X.index]
    hits = []
    for first in ("Adelie", "Chinstrap", "Gentoo"):
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
    hits = (left_out_law(case).argmax(axis=1) == case.codes).mean()
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


def cjs_distance(cdf_p: np.ndarray, cdf_q: np.ndarray, width: float) -> float:
    """Cumulative Jensen-Shannon distance (Nguyen and Vreeken 2015) of two laws on a grid."""

    def divergence(p: np.ndarray, q: np.ndarray) -> float:
        ok = p > 0
        log_ratio = np.where(ok, np.log2(np.where(ok, p, 1) / np.where(ok, (p + q) / 2, 1)), 0)
        return float((p * log_ratio + (q - p) / (2 * np.log(2))).sum() * width)

    total = (cdf_p + cdf_q).sum() * width
    return float(np.sqrt((divergence(cdf_p, cdf_q) + divergence(cdf_q, cdf_p)) / total))


def test_prior_sensitivity_is_that_of_the_powered_prior() -> None:
    """A Beta prior to a power is a Beta prior: what psense estimates has a closed form."""
    y = np.arange(60) % 2
    X = np.column_stack([RNG.random(60) < 0.2, RNG.random(60) < 0.75]).astype(float)
    a, b = np.array([12.0, 3.0]), np.array([3.0, 1.5])  # the first against its data
    clf = bg.BernoulliNB(alpha=a, beta=b).fit(X, y)
    tree = clf.draw_posterior(2500, X=X, y=y, groups=["log_prior", "log_likelihood"])
    found = az.psense(tree, var_names="theta", alphas=(0.8, 1.25))["theta"].values
    theta = tree["posterior"]["theta"].values
    ones = np.array([X[y == c].sum(axis=0) for c in (0, 1)])
    for c, j in np.ndindex(2, 2):
        x = np.linspace(theta[..., c, j].min(), theta[..., c, j].max(), 10001)
        laws = [
            stats.beta(p * (a[j] - 1) + 1 + ones[c, j], p * (b[j] - 1) + 1 + 30 - ones[c, j]).cdf(x)
            for p in (1.0, 0.8, 1.25)
        ]
        distances = [
            max(
                cjs_distance(laws[0], law, 1.0),
                cjs_distance(1 - laws[0], 1 - law, 1.0),
            )
            for law in laws[1:]
        ]
        exact = sum(distances) / (2 * np.log2(1.25))
        assert found[c, j] == pytest.approx(exact, rel=0.1, abs=0.005)
    table = az.psense_summary(tree, var_names="theta", **JOINT)
    assert table["diagnosis"].str.contains("conflict").tolist() == [True, False, True, False]


# ----------------------------------------------------------------------------------------- NUTS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesgen.inference.nuts.SamplingWarning")
def test_a_tree_by_nuts_is_taken_as_well() -> None:
    case = BY_NAME["gaussian"]
    tree = case.fitted.sample_posterior(
        300, 300, 2, random_seed=1, X=case.X, y=case.y, groups=GROUPS, progressbar=False
    )
    sampled = Case("gaussian", case.clf, case.X, case.y, flat=False)
    sampled.__dict__ |= {"fitted": case.fitted, "tree": tree, "few": tree.isel(draw=slice(60))}
    table = az.summary(tree, round_to="none")
    exact = np.concatenate([np.ravel(case.mean()[name]) for name in case.params])
    order = [
        name
        for v in tree["posterior"].data_vars
        for name in table.index
        if name.startswith(f"{v}[")
    ]
    assert list(table.index) == order
    means = np.concatenate(
        [np.ravel(tree["posterior"][v].mean(("chain", "draw"))) for v in case.params]
    )
    errors = np.concatenate(
        [table["mcse_mean"][[i for i in table.index if i.startswith(f"{v}[")]] for v in case.params]
    )
    assert np.abs((means - exact) / errors).max() < 4.5
    assert (table["r_hat"].astype(float) < 1.05).all()
    joint, label = left_out(case)
    assert az.loo(tree, var_name="joint").elpd == pytest.approx(joint.sum(), abs=1.0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        found = az.loo(tree, var_name="label")
    assert found.elpd == pytest.approx(label.sum(), abs=1.0)
    assert (az.psense_summary(tree, **JOINT)["likelihood"] > 0.05).all()
    for plots in (
        az.plot_dist(tree),
        az.plot_forest(tree),
        az.plot_prior_posterior(tree),
        az.plot_ppc_pava(tree, var_names="label", data_type="categorical"),
        az.plot_trace_dist(tree, var_names="pi"),
    ):
        assert isinstance(plots, az.PlotCollection)
    found = pm.compute_log_likelihood(tree, model=case.rows, extend_inferencedata=False, **PYMC)
    np.testing.assert_allclose(by_row(case, found), tree["log_likelihood"]["joint"], rtol=1e-9)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*implicitly frozen")
        new = pm.sample_posterior_predictive(tree, model=case.rows, random_seed=1, **PYMC)
    assert new["posterior_predictive"]["x"].shape == (2, 300, len(case.y), 2)
