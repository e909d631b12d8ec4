"""Simulation-based calibration of families fitted by MCMC, on rows as a fit has them."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from bayesgen.checks.replicates import sizes
from bayesgen.checks.sbc import simulation_based_calibration
from bayesgen.families import registry
from bayesgen.families.capabilities import DataScaledDefaults, require
from bayesgen.families.contract import ConjugateFamily, Family
from bayesgen.families.sampled.student_t import StudentT
from bayesgen.inference import nuts
from bayesgen.posterior.model import ClassModel

FALSE_ALARM = 0.01  # of all that is tested here together
N_ROWS = 24
ALPHA = np.full(2, 10.0)  # of the class weights: both classes have rows, which is one program
REPLICATES = 40
SAMPLED = {k: f for k, f in registry().items() if not issubclass(f, ConjugateFamily)}
# steps below NUTS's own, as the estimators take them; theirs are smaller still
CAREFUL = {
    "GaussianMixture": 0.95,
    "HierarchicalBernoulli": 0.9,
}


def examples(name: str) -> list[Any]:
    """Priors of a family, of two classes."""
    return SAMPLED[name].examples(2, 2)


def test_the_lengths_of_the_dims_of_theta_are_known():
    for family in (f for name in SAMPLED for f in examples(name)):
        found = sizes(ClassModel(ALPHA, family))
        assert {dim for dims in family.params.values() for dim in dims} <= found.keys()
        for dim, labels in family.coords().items():
            assert found[dim] == len(labels)


def calibrated(
    family: Any, n: int = REPLICATES, seed: int = 0, n_rows: int = N_ROWS, **options: Any
) -> Any:
    """Group ``calibration`` of `n` replicates."""
    name = next(k for k, kind in SAMPLED.items() if isinstance(family, kind))
    if family.discriminative:
        rng = np.random.default_rng(5)
        options["X"] = family.location + family.scale * rng.normal(size=(60, 2))
    if name in CAREFUL:
        options["target_accept"] = CAREFUL[name]
    tree = simulation_based_calibration(
        ClassModel(ALPHA, family),
        n_rows,
        n,
        false_alarm=FALSE_ALARM / len(SAMPLED),
        tune=300,
        random_state=seed,
        progressbar=False,
        **options,
    )
    return tree["calibration"].to_dataset()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the 99 draws kept of:UserWarning")  # some are worth 70
@pytest.mark.parametrize("name", SAMPLED)
def test_posteriors_are_those_of_the_prior(name):
    before = list(map(id, nuts.PROGRAMS))
    table = calibrated(examples(name)[0])
    worst = table.to_dataframe().sort_values("p_value").head()
    assert table["passed"], worst
    # be rows and words many or few; counts above 64 have a graph of their own
    assert len({id(p) for p in nuts.PROGRAMS} - {*before}) <= 2


class TwiceTheScale(StudentT):
    """The PyMC model of rows has another prior than that which theta is drawn from."""

    def to_pymc(self, *, X=None, **options):
        factor = 1 if X is None else 2
        other = replace(StudentT.examples(2, 2)[0], scale=factor * self.scale)
        return other.to_pymc(X=X, **options)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the 99 draws kept of:UserWarning")
def test_a_prior_of_twice_the_scale_is_found():
    """By two rows, which leave much of it; both are sampled by one program."""
    right, wrong = StudentT.examples(2, 2)[0], TwiceTheScale.examples(2, 2)[0]
    assert calibrated(right, 100, n_rows=2)["passed"]
    table = calibrated(wrong, 100, n_rows=2)
    assert not table["passed"]
    of_theta = table["p_value"].drop_sel(quantity="log_likelihood")  # which sigma moves as well
    assert of_theta.idxmin().item().startswith("sigma[")


# ------------------------------------------------------------------------------- without sampling


def test_what_has_no_closed_form_says_so():
    prior = ClassModel(ALPHA, StudentT.examples(2, 2)[0])
    with pytest.raises(ValueError, match="StudentT has no closed form: use route='nuts'"):
        simulation_based_calibration(prior, route="closed form")
    with pytest.raises(TypeError, match="draws its own rows: leave X out"):
        simulation_based_calibration(prior, X=np.ones((3, 2)))


def test_a_discriminative_model_asks_for_rows():
    family = SAMPLED["LogisticRegression"].examples(2, 2)[0]
    with pytest.raises(ValueError, match="give rows X to be labelled"):
        simulation_based_calibration(ClassModel(ALPHA, family))


def test_a_prior_that_does_not_know_its_columns_says_so():
    with pytest.raises(ValueError, match=r"dims \['feature'\]: give the fitted classifier"):
        simulation_based_calibration(ClassModel(ALPHA, StudentT()))


def test_quantities_are_the_same_for_clusters_in_any_order():
    family = SAMPLED["GaussianMixture"].examples(3, 2)[1]  # 1, 2 and 1 clusters
    rng = np.random.default_rng(3)
    theta = {k: rng.random((4, 3) + (2,) * (len(d) - 1)) for k, d in family.params.items()}
    other = {k: v.copy() for k, v in theta.items()}
    for value in other.values():
        value[:, 1] = value[:, 1, ::-1]
    for name, (dims, value) in family.identified(theta).items():
        assert dims == family.params[name]
        np.testing.assert_array_equal(value, family.identified(other)[name][1])
        np.testing.assert_array_equal(value[:, [0, 2]], theta[name][:, [0, 2]])


@pytest.mark.parametrize("name", SAMPLED)
def test_coordinates_follow_the_rows_and_the_prior_does_not(name):
    """Guides by other rows change, and nothing else."""
    family: Family = SAMPLED[name].examples(2, 3)[0]
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 3, size=(30, 3)).astype(float), np.arange(30) % 2
    if name == "HierarchicalBernoulli":
        X = (X > 1).astype(np.uint8)
    moved = require(family.without_guides(), DataScaledDefaults, "").with_defaults(X, y, 2)
    guides = {f.name for f in fields(family) if "guide" in f.metadata}
    for key, (_, value) in family.arrays().items():
        same = np.array_equal(
            np.broadcast_to(value, moved.arrays()[key][1].shape), moved.arrays()[key][1]
        )
        assert same is (key not in guides), key
    assert family.settings() == moved.settings()
