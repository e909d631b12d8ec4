"""What every tree says of itself, and what is drawn only if it is asked for."""

import datetime as dt
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import bayesgen as bg
from bayesgen.datatree import tree as names
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.columns import Columns
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from tests.datatree.fits import Fit
from tests.drawn import drawn
from tests.graphs import PYTHON, pm
from tests.selection import rest_is_slow

RNG = np.random.default_rng(5)
N = 24
READERS = ("GaussianNB", "LinearDiscriminant diagonal", "BernoulliNB", "MarkovNB 2", "MixedNB")
Y = np.array(["ant", "bee", "cow"])[np.arange(N) % 3]
REALS = RNG.normal(size=(N, 2)) + (np.arange(N) % 3)[:, None]
BITS = (REALS > 1).astype(float)
TEXTS = ["".join(RNG.choice(list("xyz"), 6)) for _ in range(N)]


# of others, for them to mend
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def gaussian() -> Any:
    return bg.GaussianNB().fit(REALS, Y)


# ------------------------------------------------------------------------------------ provenance


def assert_told(tree: Any, route: str, library: str = "bayesgen", seed: int | None = None) -> None:
    attrs = tree.attrs
    made = dt.datetime.fromisoformat(attrs["created_at"])
    assert made.utcoffset() == dt.timedelta(0)
    assert abs(dt.datetime.now(dt.UTC) - made) < dt.timedelta(minutes=10)
    assert attrs["route"] == route
    assert attrs["inference_library"] == library
    expected = bg.__version__ if library == "bayesgen" else version(library)
    assert attrs["inference_library_version"] == expected
    assert attrs["bayesgen_version"] == bg.__version__
    assert attrs["family"] == "NormalInverseGamma"
    assert attrs.get("seed") == seed


def test_trees_of_the_closed_form_say_who_made_them(gaussian: Any) -> None:
    assert_told(gaussian.posterior_, "closed form", seed=0)
    assert_told(gaussian.draw_posterior(9, 2, random_state=np.int64(4)), "closed form", seed=4)
    assert_told(gaussian.draw_posterior(9, 2, np.random.default_rng(4)), "closed form")
    assert_told(gaussian.posterior_groups(REALS, Y), "closed form", seed=0)
    assert_told(gaussian.predict_posterior(REALS[:2], 9, random_state=3), "closed form", seed=3)
    shift = bg.estimate_class_prior(gaussian, REALS, draws=20, random_state=6)
    assert_told(shift, "gibbs", seed=6)


def test_what_is_made_of_given_draws_has_their_provenance(gaussian: Any) -> None:
    drawn = gaussian.draw_posterior(9, 2, random_state=4)
    drawn.attrs |= {"route": "nuts", "inference_library": "nutpie", "seed": 17}
    drawn.attrs["inference_library_version"] = version("nutpie")
    made = gaussian.with_posterior(drawn).predict_posterior(REALS[:2])
    assert_told(made, "nuts", "nutpie", 17)
    of_draws = gaussian.with_posterior(drawn["posterior"].to_dataset())
    alone = of_draws.predict_posterior(REALS[:2])
    assert alone.attrs["route"] == "draws given"
    assert "seed" not in alone.attrs


# ------------------------------------------------------------------------------ what is called how


def test_variables_say_what_they_were_drawn_from(gaussian: Any) -> None:
    tree = gaussian.draw_posterior(9, 2, X=REALS, y=Y, groups=names.REQUESTS)
    told = {name: tree[name]["label"].attrs for name in tree.children if "label" in tree[name]}
    assert set(told) == {
        "observed_data", "log_likelihood", "posterior_predictive", "prior_predictive"
    }  # fmt: skip
    assert "p(y | x, theta)" in told["posterior_predictive"]["long_name"]
    assert "class weights pi" in told["prior_predictive"]["long_name"]
    assert "log p(y | x, theta)" in told["log_likelihood"]["long_name"]
    assert "log p(y, x | theta)" in tree["log_likelihood"]["joint"].attrs["long_name"]
    for name in ("observed_data", "posterior_predictive", "prior_predictive"):
        assert told[name]["classes"] == ["ant", "bee", "cow"]


def test_indicators_are_the_labels_class_by_class(gaussian: Any) -> None:
    asked = {"X": REALS, "y": Y, "groups": ["prior_predictive", *of_rows()]}
    plain = gaussian.draw_posterior(9, 2, **asked)
    tree = gaussian.draw_posterior(9, 2, **asked, replicate=["indicators"])
    scores = tree["log_likelihood"].to_dataset()
    of_rows_alone = plain["log_likelihood"].to_dataset()
    xr.testing.assert_identical(scores[["joint", "label"]], of_rows_alone)
    assert set(scores) - set(of_rows_alone) == {"is_ant", "is_bee", "is_cow"}
    for k, label in enumerate(["ant", "bee", "cow"]):
        has_label = plain["observed_data"]["label"].values == k
        of_class = scores[f"is_{label}"].values[..., has_label]
        np.testing.assert_allclose(of_class, scores["label"].values[..., has_label], atol=1e-9)
    total = sum(  # a row of another class: 1 - p, and the p add up to 1
        np.where(tree["observed_data"][f"is_{c}"] == 1, p, 1 - p)
        for c in ("ant", "bee", "cow")
        for p in [np.exp(scores[f"is_{c}"].values)]
    )
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)
    for name in ("observed_data", "posterior_predictive", "prior_predictive"):
        group = tree[name].to_dataset()
        xr.testing.assert_identical(group["label"], plain[name]["label"])
        for k, label in enumerate(["ant", "bee", "cow"]):
            np.testing.assert_array_equal(group[f"is_{label}"], group["label"] == k)


def test_the_two_labels_are_what_they_say_and_pymc_s_is_the_class_weights_one() -> None:
    """Classes far apart: given x the label is certain, by the class weights it is not."""
    far = REALS + 100.0 * (np.arange(N) % 3)[:, None]
    clf = bg.GaussianNB().fit(far, Y)
    tree = clf.draw_posterior(50, 2, X=far, y=Y, groups=["prior_predictive", *of_rows()])
    assert (tree["posterior_predictive"]["label"] == np.arange(N) % 3).all()
    hit = (tree["prior_predictive"]["label"] == np.arange(N) % 3).mean()
    assert abs(float(hit) - 1 / 3) < 5 * np.sqrt(stats.dirichlet([1, 1, 1]).var()[0] / 100)
    with clf.to_pymc(far, Y, likelihood="rows"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*implicitly frozen")
        new = pm.sample_posterior_predictive(
            tree, random_seed=1, progressbar=False, compile_kwargs={"mode": PYTHON}
        )
    by_weights = new["posterior_predictive"]["label"]
    hit = (by_weights == np.arange(N) % 3).mean()
    assert abs(float(hit) - 1 / 3) < 5 * np.sqrt(2 / 9 / by_weights.size)


def of_rows() -> tuple[str, ...]:
    return ("posterior_predictive", "log_likelihood")


# ------------------------------------------------------------------------------ on request only


def test_draws_with_dates_for_labels_are_known_again(tmp_path: Any) -> None:
    """Trees hold dates in units of xarray's own, and files in others."""
    days = np.array(["2024-03-01", "2024-01-02", "2025-01-01"], dtype="datetime64[D]")
    clf = bg.GaussianNB().fit(REALS, days[np.arange(N) % 3])
    expected = clf.predict_proba(REALS)
    tree = clf.draw_posterior(1000, 2)
    near = clf.with_posterior(tree).predict_proba(REALS)
    assert np.abs(near - expected).max() < 0.1
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "tree.nc", engine="h5netcdf") as back:
        group = back["posterior"].to_dataset().isel({"class": [2, 0, 1]})
        again = clf.with_posterior(group)
        np.testing.assert_array_equal(again.predict_proba(REALS), near)
        other = group.assign_coords({"class": group["class"] + np.timedelta64(1, "D")})
        with pytest.raises(ValueError, match=r"2025-01-02.* where it has .*2024-01-02"):
            clf.with_posterior(other)


def test_the_posterior_alone_unless_more_is_asked_for(gaussian: Any) -> None:
    alone = {"posterior", "constant_data", "observed_data", "fit"}
    assert set(gaussian.posterior_.children) == alone
    assert set(gaussian.draw_posterior(9).children) == alone
    of_rows = {"log_likelihood", "posterior_predictive"}
    assert set(gaussian.draw_posterior(9, X=REALS, y=Y).children) == alone | of_rows
    assert "prior" in gaussian.draw_posterior(9, groups="prior").children


def test_a_language_model_of_order_3_has_a_posterior() -> None:
    """Its prior has a table for every context, more than fit in memory."""
    X, y = bg.datasets.load_languages()
    keep = np.arange(0, len(y), 100)
    clf = bg.MarkovNB(order=3).fit([X[i] for i in keep], np.asarray(y)[keep])
    tree = clf.draw_posterior(2, 2)
    assert set(tree.children) == {"posterior", "constant_data", "observed_data", "fit"}
    prior = clf.draw_posterior(2, 2, groups=["prior"])["prior"]["theta"]
    assert prior.sizes["context"] == tree["posterior"].sizes["context"]
    np.testing.assert_allclose(prior.sum("token"), 1.0)


def test_draws_of_a_prior_of_tables_are_draws_of_the_prior() -> None:
    clf = bg.MarkovNB(order=2, alpha=0.7).fit(TEXTS, Y)
    theta = clf.draw_posterior(500, 4, groups=["prior"])["prior"]["theta"]
    n_tokens = theta.sizes["token"]
    law = stats.beta(0.7, 0.7 * (n_tokens - 1))
    cells = theta.values.reshape(2000, -1)
    for k in range(0, cells.shape[1], 5):
        assert stats.kstest(cells[:, k], law.cdf).pvalue > 1e-4


# ------------------------------------------------------------------------------ to_pymc of rows


def log_p(model: pm.Model) -> np.ndarray:
    """Log densities of a model at three points that are the same for every model of its shape."""
    point, density = model.initial_point(0), model.compile_logp(mode=PYTHON)
    rngs = map(np.random.default_rng, range(3))
    moved = [{k: v + 0.3 * rng.normal(size=v.shape) for k, v in point.items()} for rng in rngs]
    return np.array([float(density(at)) for at in moved])


@pytest.mark.parametrize("name", rest_is_slow(READERS, ["MarkovNB 2", "MixedNB"]))
def test_a_graph_of_other_rows_is_conditioned_on_them(name: str) -> None:
    """By statistics and by rows the log posteriors differ by a constant; the fit's do not."""
    fit = Fit(name, N, ())
    clf, some = fit.fitted, (fit.X[:11], fit.y[:11])
    of_rows = clf.to_pymc(*some, likelihood="rows")
    of_statistics, of_fit = clf.to_pymc(*some), clf.to_pymc()
    np.testing.assert_array_equal(
        of_statistics["stats_class"].get_value(), np.bincount(fit.codes[:11])
    )
    gap, other = (log_p(model) - log_p(of_rows) for model in (of_statistics, of_fit))
    np.testing.assert_allclose(gap, gap[0], rtol=1e-9, atol=1e-9)
    assert np.ptp(other) > 1e-2
    for data in of_fit.data_vars:  # the prior is that of the fit, whatever the rows' scale
        if data.name.startswith(("prior_", "bernoulli_prior", "gaussian_prior")):
            np.testing.assert_array_equal(
                data.get_value(), of_statistics[data.name].get_value(), err_msg=data.name
            )


def test_constants_of_blocks_have_the_names_and_values_of_the_graph() -> None:
    """Of a block with coordinates of its own, and of one with the data of its prior."""
    full, bits = NormalInverseWishart(), BetaBernoulli(alpha=1.0, beta=1.0)
    family = Columns(("full", "bits"), (full, bits), ((0, 1), (2,)))
    X = np.column_stack([REALS, BITS[:, 0]])
    clf = bg.GenerativeClassifier(family).fit(X, Y)
    constants, graph = clf.draw_posterior(3, 1, X=X, y=Y)["constant_data"], clf.to_pymc()
    assert {"full_base", "full_prior_nu", "prior_bits_alpha"} <= set(constants.data_vars)
    for name in set(constants.data_vars) & {v.name for v in graph.data_vars}:
        np.testing.assert_allclose(constants[name], graph[name].get_value(), err_msg=name)
    assert set(constants.data_vars) - {v.name for v in graph.data_vars} <= {"bits_x", "full_x"}


def test_a_fit_to_draws_keeps_its_prior_for_other_rows() -> None:
    """Rows of another scale would have another default prior."""
    clf = drawn(bg.GaussianNB(), REALS, Y, draws=20)
    model = clf.to_pymc(1e3 * REALS[:3], Y[:3])
    for name in ("mu", "kappa", "nu", "sigma2"):
        expected = clf.prior_.family.arrays()[name][1]
        np.testing.assert_array_equal(model[f"prior_{name}"].get_value(), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": REALS}, "X and y must be given together"),
        ({"X": REALS, "y": Y, "observed": False}, "leave X and y out"),
        ({"likelihood": "rows"}, "likelihood='rows' needs the rows"),
        ({"likelihood": "cells"}, "likelihood must be one of 'statistics', 'rows'"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(
    gaussian: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        gaussian.to_pymc(**options)


def test_sampling_takes_rows_for_what_it_says(
    gaussian: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statistics are those of the fit whatever rows the groups are about."""
    from bayesgen.inference import nuts

    seen: list[pm.Model] = []

    def sample(model: pm.Model, **_: Any) -> tuple[xr.Dataset, xr.Dataset]:
        seen.append(model)
        return gaussian.posterior_["posterior"].to_dataset(), xr.Dataset()

    monkeypatch.setattr(nuts, "sample", sample)
    some = {"X": REALS[:5], "y": Y[:5]}
    tree = gaussian.sample_posterior(**some, random_state=3)
    assert tree["observed_data"]["label"].values.tolist() == [0, 1, 2, 0, 1]
    np.testing.assert_array_equal(seen[0]["stats_class"].get_value(), [8, 8, 8])
    assert_told(tree, "nuts", "nutpie", 3)


def test_hyper_parameters_and_statistics_have_dims(gaussian: Any) -> None:
    model = gaussian.to_pymc()
    bare = [v.name for v in model.data_vars if not model.named_vars_to_dims.get(v.name)]
    assert bare == []
