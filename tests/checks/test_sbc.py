"""Simulation-based calibration: right posteriors pass, planted errors are found, by both routes."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import bayesgen as bg
from bayesgen.checks import uniformity
from bayesgen.checks.sbc import simulation_based_calibration
from bayesgen.families import registry
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.columns import Columns
from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical
from bayesgen.families.conjugate.dirichlet_markov import DirichletMarkov
from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.families.contract import ConjugateFamily
from bayesgen.posterior.model import ClassModel
from tests.selection import rest_is_slow

ALPHA = np.array([2.0, 1.0, 3.0])  # of the class weights
LABELS = np.array(["a", "b", "c"])[np.arange(30) % 3]


def calibrated(family, model=ClassModel, n_classes=3, **options):
    """Group ``calibration``, quietly."""
    options = {"n_rows": 6, "progressbar": False} | options
    prior = model(ALPHA[:n_classes], family)
    return simulation_based_calibration(prior, **options)["calibration"].to_dataset()


def conjugate_examples():
    return [
        pytest.param(family, id=f"{name}-{k}")
        for name, kind in registry().items()
        if issubclass(kind, ConjugateFamily) and not kind.no_theta
        for k, family in enumerate(kind.examples(3, 3))
    ]


# ------------------------------------------------------------------------------- what is returned


@pytest.fixture(scope="module")
def gaussian():
    X = np.random.default_rng(0).normal(size=(30, 2))
    return bg.GaussianNB().fit(X, LABELS)


@pytest.fixture(scope="module")
def result(gaussian):
    return bg.simulation_based_calibration(gaussian, n_rows=8, replicates=60, draws=49)


def test_every_element_has_a_transform_and_a_p_value(result):
    group, table = result["prior_sbc"], result["calibration"]
    assert group["pi"].dims == ("chain", "draw", "class")
    assert group["mu"].shape == (1, 60, 3, 2)
    assert group["log_likelihood"].dims == ("chain", "draw")
    assert group["mu"]["class"].values.tolist() == ["a", "b", "c"]
    assert table["quantity"].values.tolist() == [
        *(f"pi[{c}]" for c in "abc"),
        *(f"{p}[{c}, {x}]" for p in ("mu", "sigma2") for c in "abc" for x in ("x0", "x1")),
        "log_likelihood",
    ]
    assert table["p_value"].notnull().all()
    assert table["threshold"].item() == pytest.approx(0.01 / 16)
    assert table["passed"].item()
    assert result.attrs["route"] == "closed form"


def test_the_table_is_that_of_the_transforms(result):
    group, table = result["prior_sbc"], result["calibration"]
    pit = group["mu"].sel({"class": "b", "feature": "x1"}).values.ravel()
    row = table.sel(quantity="mu[b, x1]")
    assert row["pit_mean"].item() == pytest.approx(pit.mean())
    assert row["pit_sd"].item() == pytest.approx(pit.std())
    within = 50 * group["mu"].values.ravel() % 1.0  # 360 numbers, uniform within their rank
    assert abs(within.mean() - 0.5) < 5 / np.sqrt(12 * within.size)
    ranks = np.floor(pit * 50).astype(int)[:, None]
    assert row["p_value"].item() == pytest.approx(uniformity.p_values(ranks, 49)[0])


def test_same_seed_same_result_and_replicates_are_nested(gaussian, result):
    again = bg.simulation_based_calibration(gaussian, 8, 60, 49, progressbar=False)
    xr.testing.assert_identical(again["prior_sbc"].to_dataset(), result["prior_sbc"].to_dataset())
    other = bg.simulation_based_calibration(gaussian, 8, 60, 49, random_state=1)
    assert not np.array_equal(other["prior_sbc"]["pi"], result["prior_sbc"]["pi"])
    fewer = bg.simulation_based_calibration(gaussian, 8, 20, 49)
    ranks = [np.floor(t["prior_sbc"]["mu"].values[0, :20] * 50) for t in (fewer, result)]
    np.testing.assert_array_equal(*ranks)


def test_the_result_can_be_saved_and_plotted(result, tmp_path):
    import arviz as az
    import matplotlib as mpl

    mpl.use("Agg")
    result.to_netcdf(tmp_path / "sbc.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "sbc.nc", engine="h5netcdf") as back:
        assert back["calibration"]["passed"].item()
    picture = az.plot_ecdf_pit(result, var_names=["pi", "log_likelihood"], backend="matplotlib")
    assert "log_likelihood" in picture.viz["ecdf_lines"]
    mpl.pyplot.close("all")


def test_ranks_are_those_that_any_beta_posterior_gives():
    """One bit, one class: the rank of theta is checked against SciPy's Beta distribution."""
    family = BetaBernoulli(np.full((1, 1), 2.0), np.full((1, 1), 3.0))
    prior = ClassModel(np.ones(1), family)
    tree = simulation_based_calibration(prior, n_rows=5, replicates=300, draws=999)
    pit = tree["prior_sbc"]["theta"].values.ravel()
    exact = []
    for rng in np.random.default_rng(0).spawn(300):
        theta = prior.draw(rng, 1)
        y = rng.choice(1, size=5, p=np.ones(1))
        k = family.simulate(rng, {"theta": theta["theta"][0]}, y).sum()
        exact.append(stats.beta.cdf(theta["theta"].item(), 2 + k, 8 - k))
    assert np.abs(pit - exact).max() < 5 * 0.5 / np.sqrt(999)


def test_ties_are_broken_at_random():
    """Most draws of so wide a prior round to 0 or 1: ranks among them are uniform all the same."""
    wide = np.full((1, 1), 0.004)
    table = calibrated(BetaBernoulli(wide, wide), n_classes=1, n_rows=1, replicates=300)
    assert table["passed"], table["p_value"]


def test_constants_and_duplicates_are_not_tested_twice():
    table = calibrated(NormalInverseWishart.examples(2, 3)[1], n_classes=2, replicates=40)
    notes = {q: n for q, n in zip(table["quantity"].values, table["note"].values, strict=True) if n}
    assert notes == {
        "pi[1]": "as pi[0]",
        "Sigma[1, 0]": "as Sigma[0, 1]",
        "Sigma[2, 0]": "as Sigma[0, 2]",
        "Sigma[2, 1]": "as Sigma[1, 2]",
    }
    assert table["p_value"].isnull().sum() == 4
    assert table["threshold"].item() == pytest.approx(0.01 / (1 + 6 + 6 + 1))
    one = calibrated(BetaBernoulli.examples(1, 1)[0], n_classes=1, replicates=20)
    assert one["note"].values.tolist() == ["constant", "", ""]


def test_padding_is_no_quantity():
    ragged = np.array([[[1.0, 2.0, 0.5], [1.0, 0.7, 0.0]]])
    table = calibrated(DirichletCategorical(ragged, new=1.0), n_classes=1, replicates=40)
    notes = dict(zip(table["quantity"].values.tolist(), table["note"].values.tolist(), strict=True))
    cells = ["0, 0", "0, 1", "0, 2", "1, 0", "1, 1"]
    assert [*notes] == ["pi[0]", *(f"theta[0, {k}]" for k in cells), "log_likelihood"]
    assert notes["theta[0, 1, 1]"] == "as theta[0, 1, 0]"
    assert table["passed"]


def test_when_all_is_constant_nothing_is_refused():
    table = calibrated(DirichletMultinomial(np.ones((1, 1))), n_classes=1, replicates=10)
    assert table["p_value"].isnull().all()
    assert table["passed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_rows": 0}, "n_rows must be an integer >= 1"),
        ({"replicates": 2.5}, "replicates must be an integer >= 1"),
        ({"draws": 0}, "draws must be an integer"),
        ({"thin": 0}, "thin must be"),
        ({"false_alarm": 1.0}, "false_alarm must lie in"),
        ({"route": "gibbs"}, "route must be 'closed form' or 'nuts', got 'gibbs'"),
    ],
)
def test_bad_arguments_get_one_clear_error(gaussian, options, message):
    with pytest.raises(ValueError, match=message):
        bg.simulation_based_calibration(gaussian, **options)


def test_other_refusals(gaussian):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        bg.simulation_based_calibration(bg.GaussianNB())
    with pytest.raises(TypeError, match="takes no option 'target_accept'"):
        bg.simulation_based_calibration(gaussian, target_accept=0.9)
    texts = ["".join(map(chr, range(97, 97 + 70))), "ab"]
    with pytest.raises(ValueError, match="order 3 over 70 tokens has too many contexts"):
        bg.simulation_based_calibration(bg.MarkovNB(order=3).fit(texts, ["x", "y"]))
    wide = ClassModel(np.ones(2), BetaBernoulli(np.ones((2, 40_000)), np.ones((2, 40_000))))
    with pytest.raises(ValueError, match="would take 11"):
        simulation_based_calibration(wide, replicates=20_000)


# ------------------------------------------------------------------------------------ right ones


@pytest.mark.parametrize(
    "family",
    [BetaBernoulli.examples(3, 2)[1], NormalInverseGamma.examples(3, 2)[0]],
    ids=["bits", "reals"],
)
def test_right_posteriors_pass(family):
    assert calibrated(family, replicates=200)["passed"]


@pytest.mark.slow
@pytest.mark.parametrize("family", conjugate_examples())
def test_closed_forms_of_all_families_pass(family):
    table = calibrated(family, n_rows=12, replicates=400)
    assert table["passed"], table.to_dataframe().sort_values("p_value").head()


# --------------------------------------------------------------------------------- planted errors


def broken(kind, update):
    """The family (or model) with another update; `update` has (prior, right posterior)."""

    class Broken(kind):
        def update(self, stats):
            return update(self, super().update(stats))

    return Broken


def one_more(field):
    return lambda prior, right: replace(right, **{field: getattr(right, field) + 1})


def prior_returned(prior, right):
    return prior


def kappa_dropped(prior, right):
    """The weight of the prior mean is forgotten where there are rows."""
    seen = right.kappa > prior.kappa
    return replace(right, kappa=np.where(seen, right.kappa - prior.kappa, right.kappa))


def shrinkage_dropped(prior, right):
    """The prior mean does not pull: the posterior mean is that of the rows."""
    gained = right.kappa - prior.kappa
    rows = np.where(gained > 0, gained, 1.0)
    own = (right.kappa * right.mu - prior.kappa * prior.mu) / rows
    return replace(right, mu=np.where(gained > 0, own, right.mu))


def class_prior_forgotten(prior, right):
    return replace(right, alpha=np.maximum(right.alpha - prior.alpha, 1e-3))


ERRORS = {
    "pseudo-count of bits": (BetaBernoulli, one_more("alpha"), 0, "theta["),
    "pseudo-count of categories": (DirichletCategorical, one_more("alpha"), 0, "theta["),
    "pseudo-count of words": (DirichletMultinomial, one_more("alpha"), 2, "theta["),
    "shape of rates": (GammaPoisson, one_more("shape"), 0, "rate["),
    "nu of variances": (NormalInverseGamma, one_more("nu"), 0, "sigma2["),
    "nu of covariances": (NormalInverseWishart, one_more("nu"), 0, "Sigma["),
    "kappa of means": (NormalInverseGamma, kappa_dropped, 0, ""),
    "prior mean": (NormalInverseGamma, shrinkage_dropped, 0, ""),
    "prior of bits": (BetaBernoulli, prior_returned, 0, "log_likelihood"),
    "prior of reals": (NormalInverseGamma, prior_returned, 0, "log_likelihood"),
    "prior of columns": (Columns, prior_returned, 0, "log_likelihood"),
}


FAST = ["pseudo-count of bits", "kappa of means"]


@pytest.mark.parametrize("name", rest_is_slow(ERRORS, FAST))
def test_planted_errors_are_found_where_they_are(name):
    kind, update, example, where = ERRORS[name]
    family = broken(kind, update).examples(3, 2)[example]
    table = calibrated(family, n_rows=5, replicates=300)
    assert not table["passed"]
    assert table["p_value"].idxmin().item().startswith(where)


@pytest.mark.parametrize(
    "update", [class_prior_forgotten, pytest.param(one_more("alpha"), marks=pytest.mark.slow)]
)
def test_errors_in_the_class_weights_are_found(update):
    table = calibrated(BetaBernoulli.examples(3, 2)[0], broken(ClassModel, update), replicates=300)
    assert not table["passed"]
    assert table["p_value"].idxmin().item().startswith("pi[")


def test_only_the_log_likelihood_sees_that_the_prior_is_returned():
    family = broken(BetaBernoulli, prior_returned).examples(3, 2)[1]
    table = calibrated(family, broken(ClassModel, prior_returned), replicates=300)
    refused = table["quantity"][table["p_value"] < table["threshold"]]
    assert refused.values.tolist() == ["log_likelihood"]


def test_rows_that_are_not_of_the_model_are_found():
    class Shifted(NormalInverseGamma):
        def simulate(self, rng, theta, y):
            return super().simulate(rng, theta, y) + 0.5

    assert not calibrated(Shifted.examples(3, 2)[0], replicates=300)["passed"]


# --------------------------------------------------------------------------------------------- NUTS


NUTS = {  # replicates, and a prior of each family; the last ones are slow to compile or sample
    "bits": (200, BetaBernoulli.examples(3, 2)[1]),
    "reals": (60, NormalInverseGamma.examples(3, 2)[0]),
    "words": (60, DirichletMultinomial.examples(3, 3)[2]),
    "rates": (60, GammaPoisson.examples(3, 2)[1]),
    "ragged categories": (60, DirichletCategorical.examples(3, 3)[1]),
    "bigrams": (60, DirichletMarkov.examples(3, 3)[2]),
    "columns": (60, Columns.examples(3, 2)[0]),
    "covariances": (60, NormalInverseWishart.examples(3, 2)[0]),
    "one covariance": (60, NormalInverseWishart.examples(3, 2)[1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NUTS)
def test_nuts_passes(name):
    replicates, family = NUTS[name]
    table = calibrated(family, replicates=replicates, route="nuts", tune=250)
    assert table["passed"], table.to_dataframe().sort_values("p_value").head()
    assert (table["ess"] > 85).all()


class OneMoreInPyMC(BetaBernoulli):
    """The PyMC model takes its prior one pseudo-count off; the graph is that of the right one."""

    def to_pymc(self, **options):
        right = BetaBernoulli(self.alpha + 1, self.beta)
        return right.to_pymc(**options)


@pytest.mark.slow
def test_an_error_in_the_pymc_model_is_found():
    family = OneMoreInPyMC.examples(3, 2)[1]
    table = calibrated(family, replicates=100, route="nuts")
    assert not table["passed"]
    assert table["p_value"].idxmin().item().startswith("theta[")
    assert calibrated(family, replicates=100)["passed"]  # the closed form is right


@pytest.mark.slow
def test_dependent_draws_of_nuts_are_named():
    family = BetaBernoulli.examples(3, 2)[1]
    with pytest.warns(UserWarning, match="raise `thin`"):
        calibrated(family, replicates=3, route="nuts", thin=1, maxdepth=1)


# -------------------------------------------------------------------------------------------- simuk

N_ROWS = 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("right", [True, False], ids=["right", "flipped bits"])
def test_simuk_comes_to_the_same_verdict(right):
    """simuk's own simulations, sampled by PyMC's NUTS, against the closed form and our NUTS.

    simuk observes each simulated data set anew, as constants of the graph: no two graphs are the
    same, and each would be compiled. Hence few simulations, interpreted. To the PyMC model the
    codes y are the design of x, apart from the label observed.
    """
    import simuk
    from pytensor.compile.mode import Mode

    class Family(BetaBernoulli):
        def simulate(self, rng, theta, y):
            rows = super().simulate(rng, theta, y)
            return rows if right else 1 - rows

    family = Family(np.array([[1.0], [2.0]]), np.array([[1.0], [1.0]]))
    prior = ClassModel(np.array([2.0, 1.0]), family)
    codes = np.arange(N_ROWS) % 2
    coords = {"class": np.arange(2), "feature": np.arange(1)}
    model = prior.to_pymc(coords, X=np.zeros((N_ROWS, 1)), y=codes)

    def simulator(*, theta, pi, seed):
        rng = np.random.default_rng(int(seed))
        rows = family.simulate(rng, {"theta": np.asarray(theta)}, codes)
        return {"x": rows, "label": rng.choice(2, size=N_ROWS, p=np.asarray(pi))}

    logging.disable(logging.WARNING)  # that the simulator takes precedence, which is meant
    try:
        theirs = simuk.SBC(
            model,
            num_simulations=10,
            simulator=simulator,
            seed=1,
            progress_bar=False,
            sample_kwargs={
                "draws": 19,
                "tune": 60,
                "chains": 1,
                "cores": 1,
                "nuts_sampler": "pymc",
                "compile_kwargs": {"mode": Mode(linker="py", optimizer="fast_compile")},
            },
        )
        theirs.run_simulations()
    finally:
        logging.disable(logging.NOTSET)
    ranks = theirs.simulations["prior_sbc"]["theta"].values.reshape(10, -1)
    p = uniformity.p_values(ranks, 19)
    verdict = bool((p >= 0.01 / len(p)).all())
    assert verdict is right
    for route in ("closed form", "nuts"):
        ours = simulation_based_calibration(prior, N_ROWS, 60, route=route, progressbar=False)
        assert ours["calibration"]["passed"].item() is verdict
