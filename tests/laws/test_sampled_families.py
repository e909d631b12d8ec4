"""What must hold for every family that is fitted by MCMC; the folder is walked for them.

theta is drawn from the prior of the PyMC model, rows from `simulate`. Their densities are held to
PyMC's in test_pymc. No sampling: what NUTS makes of them is in tests/families/.
"""

from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from bayesgen.families.contract import Family
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS
from bayesgen.families.sampled.gaussian_mixture import GaussianMixture
from bayesgen.families.sampled.student_t import StudentT
from bayesgen.posterior.model import ClassModel
from tests.graphs import PYTHON, declare, draw, pm
from tests.laws.cases import family_takes_missing, only, with_missing
from tests.laws.test_pymc import coords_of, rows_of

N_CLASSES, N_FEATURES, N_DRAWS = 3, 2, 3
OF_GRAPH = (GaussianMixture, StudentT)  # rows are of theta alone


@cache
def draws(family: Any, n: int = N_DRAWS) -> dict[str, np.ndarray]:
    """{name: (n, *dims)} from the prior, by PyMC."""
    model, theta = declare(family, coords_of(family))
    points = draw(model, {name: theta[name] for name in family.params}, n)
    return {name: np.stack([point[name] for point in points]) for name in family.params}


def test_draws_stand_side_by_side(family):
    theta = draws(family, 4)
    X = rows_of(family, False)
    whole = family.log_likelihood(X, {k: v.reshape(2, 2, *v.shape[1:]) for k, v in theta.items()})
    assert whole.shape == (2, 2, len(X), N_CLASSES)
    for s in range(4):
        one = family.log_likelihood(X, {k: v[s] for k, v in theta.items()})
        np.testing.assert_allclose(whole[s // 2, s % 2], one, rtol=1e-12, atol=1e-12)


@only(lambda family: isinstance(family, OF_GRAPH))
def test_densities_and_rows_can_be_those_of_the_graph(family):
    """`to_pymc` alone gives the log_likelihood, missing cells too, and rows that have it."""
    left_out = {"log_likelihood": Family.log_likelihood, "simulate": Family.simulate}
    settings = {f.name: getattr(family, f.name) for f in fields(family)}
    of_graph = type("Own", (type(family),), left_out)(**settings)
    theta = draws(family)
    X = np.asarray(rows_of(family, False), dtype=np.float64)
    for cells in (X, with_missing(X, np.random.default_rng(2))):
        if family.missing == "marginalised" or cells is X:
            log_p, expected = (f.log_likelihood(cells, theta) for f in (of_graph, family))
            np.testing.assert_allclose(log_p, expected, rtol=1e-9, atol=1e-9)
    y = np.repeat(np.arange(N_CLASSES), 400)
    one = {k: v[0] for k, v in theta.items()}
    rng = np.random.default_rng(3)
    density = [family.log_likelihood(f.simulate(rng, one, y), one) for f in (of_graph, family)]
    for c in range(N_CLASSES):
        log_p, expected = (d[y == c, c] for d in density)
        assert stats.ks_2samp(log_p, expected).pvalue > 1e-5
    each = {k: v[np.arange(6) % N_DRAWS] for k, v in theta.items()}
    assert of_graph.simulate(rng, each, y[:6]).shape == (6, N_FEATURES)


def test_the_order_of_classes_and_columns_does_not_matter(family):
    theta = {k: v[0] for k, v in draws(family).items()}
    X = rows_of(family, False)
    turned = {}
    for name, value in theta.items():
        for axis, dim in enumerate(family.params[name]):
            if dim in (CLASS, FEATURE, FEATURE_BIS):
                value = np.flip(value, axis=axis)
        turned[name] = value
    arrays = {
        k: np.flip(a, axis=[i for i, d in enumerate(dims) if d in (CLASS, FEATURE)])
        for k, (dims, a) in family.arrays().items()
        if a.ndim == len(dims) and a.dtype != object
    }
    other = replace(family, **arrays)
    np.testing.assert_allclose(
        other.log_likelihood(X[:, ::-1], turned)[:, ::-1],
        family.log_likelihood(X, theta),
        rtol=1e-10,
        atol=1e-10,
    )


@only(family_takes_missing)
def test_a_row_without_cells_says_nothing(family):
    theta = draws(family)
    X = np.asarray(rows_of(family, False), dtype=np.float64)
    X[2] = np.nan
    log_p = family.log_likelihood(X, theta)
    np.testing.assert_array_equal(log_p[:, 2], 0.0)


@only(lambda family: not family.discriminative)
def test_rows_are_simulated_from_the_density_that_is_evaluated(family):
    """E_p q/(p + q) = E_q p/(p + q), of each class under two draws of theta."""
    theta, n = draws(family, 6), 4000
    y, overlaps = np.repeat(np.arange(N_CLASSES), n), []
    for pair in ((0, 1), (2, 3), (4, 5)):
        sides = []
        for s, against in (pair, pair[::-1]):
            p, q = ({k: v[i] for k, v in theta.items()} for i in (s, against))
            X = family.simulate(np.random.default_rng(s), p, y)
            log_p, log_q = (family.log_likelihood(X, t)[np.arange(len(y)), y] for t in (p, q))
            sides.append(expit(log_q - log_p).reshape(N_CLASSES, n))
        first, second = (side.mean(axis=1) for side in sides)
        error = np.hypot(*(side.std(axis=1) for side in sides)) / np.sqrt(n)
        assert (np.abs(first - second) <= 4.5 * error + 5 / n).all()
        overlaps.extend(first)
    assert max(overlaps) > 0.05  # else nothing was compared


# ------------------------------------------------------------------------------ prior objects


class _Extra:
    """As pymc-extras' Prior: `dims`, `deepcopy`, `create_variable`."""

    def __init__(self, dims: Any = None) -> None:
        self.dims = dims

    def deepcopy(self) -> "_Extra":
        return _Extra(self.dims)

    def create_variable(self, name: str) -> Any:
        return pm.Gamma(name, 2, 0.5, dims=self.dims)


def _preliz() -> Any:
    pz = pytest.importorskip("preliz")
    return pz.Gamma(2, 0.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pm.Gamma.dist(2, 0.5),
        pytest.param(_preliz, marks=pytest.mark.slow),  # a second to import
        _Extra,
        lambda: lambda name, dims: pm.Gamma(name, 2, 0.5, dims=dims),
    ],
    ids=["pymc", "preliz", "pymc-extras", "function"],
)
def test_priors_come_in_many_forms(make):
    prior = make()
    family = replace(StudentT.examples(N_CLASSES, N_FEATURES)[0], nu=prior)
    model = ClassModel(np.ones(N_CLASSES), family).to_pymc(coords_of(family))
    plain = ClassModel(np.ones(N_CLASSES), replace(family, nu=None)).to_pymc(coords_of(family))
    assert model.named_vars_to_dims["nu"] == (FEATURE,)
    nu = [1.5, 4.0]
    point = plain.initial_point() | {"nu_log__": np.log(nu)}
    log_p = model.compile_logp(vars=[model["nu"]], jacobian=False, mode=PYTHON)(point)
    shape, rate = 2.0, 0.5
    expected = sum(shape * np.log(rate) + (shape - 1) * np.log(v) - rate * v for v in nu)
    assert log_p == pytest.approx(expected, rel=1e-8)


def test_what_is_no_prior_is_refused():
    family = replace(StudentT.examples(N_CLASSES, N_FEATURES)[0], nu=3.0)
    with pytest.raises(TypeError, match="prior of 'nu' must be a distribution"):
        ClassModel(np.ones(N_CLASSES), family).to_pymc(coords_of(family))
