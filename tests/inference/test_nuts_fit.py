"""`fit` by NUTS: its arguments, the likelihood of weighted rows, what is said of chains."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

import bayesgen as bg
from bayesgen.inference import nuts, sampled
from tests.graphs import PYTHON, pytensor

ROWS, GAPS = [[1.0], [2.0], [4.0]], [[1.0, np.nan], [2.0, 1.0], [0.0, 3.0]]


# of others, for them to mend
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.mark.parametrize(
    ("make", "X", "options", "error", "message"),
    [
        (bg.GaussianNB, ROWS, {"draws": 100}, TypeError, "got draws: options of NUTS are for"),
        (bg.StudentTNB, ROWS, {"draws": 0}, ValueError, "draws must be an integer"),
        (bg.QuadraticDiscriminant, GAPS, {}, ValueError, r"have no closed form.*drop or impute"),
    ],
)
def test_arguments_of_fit(make, X, options, error, message):
    with pytest.raises(error, match=message):
        make().fit(X, ["a", "b", "b"], **options)


# ------------------------------------------------------------------------------ weighted rows

RNG = np.random.default_rng(7)
N = 12
CASES = {
    "student": (bg.StudentTNB(), RNG.normal(size=(N, 2))),
    "counts": (bg.NegativeBinomialNB(), RNG.poisson(3.0, (N, 2)).astype(float)),
    "regression": (bg.BayesianLogisticRegression(), RNG.normal(size=(N, 2))),
}
Y = np.arange(N) % 2


def value(tensor: Any, model: Any, theta: dict[str, np.ndarray]) -> Any:
    """A tensor of a model as a function of the parameters themselves."""
    inputs = [model[name] for name in theta]
    run = pytensor.function(inputs, tensor, mode=PYTHON, on_unused_input="ignore")
    return run(*theta.values())


@pytest.mark.parametrize("case", CASES)
def test_weights_multiply_the_log_likelihood_of_rows(case):
    clf, X = CASES[case]
    weight = np.arange(N) / 10 + 0.1
    fitted, rows = clf.__bayesgen_learner__()._undrawn(X, Y, weight)
    prior = fitted.posterior.prior
    model = sampled.graph(prior, rows, fitted.coords)
    (weighted,) = model.potentials
    for seed in range(3):
        theta = nuts.draw_prior(prior.to_pymc(fitted.coords), prior.params, 1, seed)
        one = {name: draws[0] for name, draws in theta.items()}
        joint = prior.family.log_likelihood(rows.X, one)
        if prior.generative:
            joint = joint + np.log(one["pi"])
        else:
            joint = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
        expected = weight @ joint[np.arange(N), Y]
        log_p = value(weighted, model, one)
        np.testing.assert_allclose(log_p, expected, rtol=1e-8)


# ------------------------------------------------------------------------------- diagnostics


def chains(shift: float = 0.0, divergences: int = 0, draws: int = 1000) -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, draws))
    x[1] += shift
    posterior = xr.Dataset(
        {"x": (("chain", "draw"), x), "constant": (("chain", "draw"), np.ones((2, draws)))},
        {"chain": [0, 1], "draw": np.arange(draws)},
    )
    diverging = np.arange(2 * draws).reshape(2, draws) < divergences
    return posterior, xr.Dataset({"diverging": (("chain", "draw"), diverging)})


def test_sound_chains_are_silent():
    diagnosis = nuts.warn_unless_sound(*chains())
    assert diagnosis.complaints() == []
    assert diagnosis.r_hat < 1.01
    assert diagnosis.ess > 1500


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"divergences": 3}, r"3 draw\(s\) diverged.*target_accept=0.95"),
        ({"shift": 1.0}, r"R-hat of x is 1\..*label more rows"),
        ({"draws": 60}, r"x has \d+ effective draws \(< 100 a chain\).*more draws"),
        ({"draws": 3}, "every parameter has 6 effective draws"),
    ],
)
def test_each_trouble_is_said_with_what_to_try(arguments, said):
    with pytest.warns(nuts.SamplingWarning, match=said) as caught:
        nuts.warn_unless_sound(*chains(**arguments))
    assert len(caught) == 1


def draws_of(x: Any) -> Any:
    """A posterior of one parameter from its draws (chain, draw)."""
    constant = np.full(np.shape(x), 3.0)
    variables = {"x": (("chain", "draw"), x), "constant": (("chain", "draw"), constant)}
    return xr.Dataset(variables), xr.Dataset()


_X = np.random.default_rng(0).normal(size=(4, 1000))


@pytest.mark.parametrize(
    "x",
    [
        np.where(np.arange(4)[:, None] == 2, 0.7, _X),
        np.zeros((4, 1000)),
        np.repeat([[0.0], [1.0]], 1000, axis=1),
    ],
    ids=["one stands still", "all at one place", "each at its place"],
)
def test_chains_that_do_not_move(x):
    with pytest.warns(nuts.SamplingWarning, match="R-hat of .* the chains disagree"):
        diagnosis = nuts.warn_unless_sound(*draws_of(x))
    assert diagnosis.attributes()["verdict"] != "sound"
