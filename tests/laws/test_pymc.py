"""`to_pymc` of every family is the model of its closed forms.

At points theta, with l = `log_likelihood` of the rows under their classes: PyMC's log density of
rows is l; that of statistics is l up to a constant; that of the prior is `log_density`, of the
prior alone and beside either likelihood. Where PyMC's variables are not theta but what theta is a
function of, `log_density` has their Jacobian in addition, here by differences of the model's
graph. A sampled family has no `log_density`; its prior is the same beside rows as alone.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from pymc.model.fgraph import clone_model

from bayesgen.families.capabilities import ThetaDensity, UnlabelledRows, require
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS
from tests.graphs import (
    PYTHON,
    declare,
    dims_in_model,
    draw,
    log_densities,
    named_at,
    pm,
    pytensor,
    values_of,
)
from tests.laws.cases import (
    Case,
    close,
    first,
    first_prior,
    has_density,
    in_pymc,
    only,
    takes_missing,
    with_missing,
)

N_POINTS, N_CLASSES = 3, 3
STEP = 1e-3  # relative; differences of fourth order have about ten digits
Y = np.array([0, 1, 1, 0, 1, 0, 0])
Y_OF_THREE = np.array([0, 1, 2, 2, 1, 0, 0])


# ------------------------------------------------------------------------------- models and points


def on_rows(case):
    """The prior of two classes and two columns, with rows and their classes."""
    case = case.sized(2, 2)
    X, _ = case.rows(len(Y))
    return case, case.prior, X


def coords_of(family):
    """A label for each position along the dims of theta."""
    if not isinstance(family, ConjugateFamily):
        sizes = {CLASS: N_CLASSES, FEATURE: 2, FEATURE_BIS: 2}
        return {dim: np.arange(n) for dim, n in sizes.items()} | family.coords()
    theta = first(family.draw(np.random.default_rng(0), 1))
    return family.coords() | {
        dim: np.arange(n)
        for name, dims in family.params.items()
        for dim, n in zip(dims, theta[name].shape, strict=True)
    }


def conditioned(family, **on):
    """The model, its parameters, points of its free variables, and the parameters there."""
    model, theta = declare(family, coords_of(family), **on)
    assert theta.keys() == family.params.keys()
    for name, dims in family.params.items():
        assert tuple(model.named_vars_to_dims.get(name, ())) == dims_in_model(family, dims)
    points = draw(model, {f"theta {name}": t for name, t in theta.items()}, N_POINTS)
    thetas = [{name: point.pop(f"theta {name}") for name in theta} for point in points]
    return model, theta, points, thetas


def rows_under(family, X, y, thetas, weight=1.0):
    """Log likelihoods of labelled rows, one for each theta."""
    each = [family.log_likelihood(X, theta)[np.arange(len(y)), y] for theta in thetas]
    return np.array([(weight * row).sum() for row in each])


def log_jacobians(family, model, theta, points):
    """log |d theta / d free variables| at each point; 0 where PyMC's variables are theta."""
    free = {v.name for v in model.free_RVs}
    # what was listed by cell is returned padded, without a name
    variables = {name: getattr(t, "name", None) or name for name, t in theta.items()}
    made = {name: t for name, t in theta.items() if variables[name] not in free}
    moved = free - set(variables.values())
    if not moved:
        return np.zeros(len(points))
    values = values_of(model, made)

    def entries(point):
        parts = []
        for name, value in values(point).items():
            if any(d.endswith(FEATURE_BIS) for d in family.params[name]):  # symmetric
                value = value[(..., *np.tril_indices(value.shape[-1]))]
            parts.append(value.ravel())
        return np.concatenate(parts)

    def difference(point, name, index, h):
        sides = []
        for move in (h, -h):
            value = np.array(point[name], dtype=np.float64)
            value[index] += move
            sides.append(entries(point | {name: value}))
        return sides[0] - sides[1]

    jacobians = []
    for point in points:
        columns = []
        for name in moved:
            for index in np.ndindex(np.shape(point[name])):
                h = STEP * float(np.abs(point[name][index])) or STEP
                near, far = (difference(point, name, index, k * h) for k in (1, 2))
                columns.append((8 * near - far) / (12 * h))
        jacobians.append(np.linalg.slogdet(np.array(columns))[1])
    return np.array(jacobians)


def check_prior(family, model, theta, points, thetas, found):
    expected = np.array([float(family.log_density(t)) for t in thetas])
    jacobians = log_jacobians(family, model, theta, points)
    close(found, expected + jacobians, 1e-7 if jacobians.any() else 1e-9)


# ------------------------------------------------------------------------------ conjugate families


@only(in_pymc, has_density)
def test_the_prior_in_pymc_is_log_density(case):
    case, prior, X = on_rows(case)
    for family in (prior, prior.update(case.stats(X, Y))):  # a posterior is a prior as well
        model, theta, points, thetas = conditioned(family)
        log_p = log_densities(model)(points)
        check_prior(family, model, theta, points, thetas, log_p[:, 0])
        close(log_p[:, 1], np.zeros(N_POINTS))


@only(lambda case: not in_pymc(case))
def test_without_a_pymc_model_the_reason_is_given(case):
    with pytest.raises(NotImplementedError) as error:
        case.prior.to_pymc()
    assert case.family.no_pymc in str(error.value)


@only(in_pymc)
def test_statistics_in_pymc_have_the_log_likelihood_up_to_a_constant(case, missing):
    case, prior, X = on_rows(case)
    if missing:
        X = with_missing(X, case.rng())
    weight = case.rng().gamma(2.0, size=len(Y))
    model, theta, points, thetas = conditioned(prior, stats=case.stats(X, Y, weight))
    log_p = log_densities(model)(points)
    expected = rows_under(prior, X, Y, thetas, weight)
    assert np.ptp(expected) > 0
    close(log_p[:, 1] - log_p[0, 1], expected - expected[0])
    if prior.capability(ThetaDensity) is not None:
        check_prior(prior, model, theta, points, thetas, log_p[:, 0])


@only(in_pymc)
def test_a_block_of_columns_carries_its_prefix_in_pymc(case):
    case, prior, X = on_rows(case)
    plain, _ = declare(prior, coords_of(prior), X=X, y=Y)
    block, theta = declare(prior, coords_of(prior), prefix="block_", X=X, y=Y)
    assert theta.keys() == prior.params.keys()
    names = {name for name in plain.named_vars if name != "y"}
    prefixed = {name for name in block.named_vars if name != "y"}
    assert len(prefixed) == len(names)
    assert all("block_" in name for name in prefixed)
    variables = {v.name for v in plain.free_RVs + plain.deterministics + plain.observed_RVs}
    assert {f"block_{name}" for name in variables} <= prefixed
    dims = {d for name in prefixed for d in block.named_vars_to_dims.get(name, ())}
    assert all(d in (CLASS, "class_all", "obs_id") or d.startswith("block_") for d in dims)


# ------------------------------------------------------------------------------- sampled families


@cache
def drawn(family):
    """One draw of the prior, and rows of it; of a discriminative family, any."""
    rng = np.random.default_rng(1)
    if family.discriminative:
        return {}, rng.normal(size=(len(Y), 2))
    model, theta = declare(family, coords_of(family))
    one = draw(model, {name: theta[name] for name in family.params}, 1)[0]
    return one, np.asarray(family.simulate(rng, one, Y_OF_THREE))


def rows_of(family, missing):
    """Rows of one draw of the prior."""
    one, whole = drawn(family)
    if not missing:
        return whole
    X = with_missing(whole, np.random.default_rng(2))
    try:
        family.log_likelihood(X, one)
    except ValueError:  # the first column is an exposure, without which a row has no density
        X[:, 0] = whole[:, 0]
    return X


@only(lambda family: family.sums_rows)
def test_rows_of_a_sampled_family_summed_have_the_log_likelihood(family, missing):
    X = rows_of(family, missing)
    model, _, points, thetas = conditioned(family, X=X, y=Y_OF_THREE, summed=True)
    assert "x" in {v.name for v in model.potentials}
    close(log_densities(model)(points)[:, 1], rows_under(family, X, Y_OF_THREE, thetas))


def test_the_prior_of_a_sampled_family_is_the_same_beside_rows(family):
    model, _, points, thetas = conditioned(family, X=rows_of(family, False), y=Y_OF_THREE)
    prior, theta = declare(family, coords_of(family))
    if {v.name for v in prior.free_RVs} != {v.name for v in model.free_RVs}:
        pytest.skip("its coordinates depend on the rows; see the tests of the family")
    values = values_of(prior, theta)
    for point, one in zip(points, thetas, strict=True):
        for name, value in values(point).items():
            if not np.allclose(value, one[name]):
                pytest.skip("its coordinates depend on the rows; see the tests of the family")
    close(log_densities(model)(points)[:, 0], log_densities(prior)(points)[:, 0])


# -------------------------------------------------------------- both: rows, other rows, clones


def with_rows(model, missing=False):
    """A family, rows and their classes, of two classes or of three if it is sampled."""
    if not isinstance(model, Case):
        return model, rows_of(model, missing), Y_OF_THREE
    case, prior, X = on_rows(model)
    return prior, with_missing(X, case.rng()) if missing else X, Y


@only(in_pymc)
def test_rows_in_pymc_have_the_log_likelihood(model, missing):
    family, X, y = with_rows(model, missing)
    graph, theta, points, thetas = conditioned(family, X=X, y=y)
    log_p = log_densities(graph)(points)
    expected = rows_under(family, X, y, thetas)
    assert np.ptp(expected) > 0
    close(log_p[:, 1], expected)
    if family.capability(ThetaDensity) is not None:
        check_prior(family, graph, theta, points, thetas, log_p[:, 0])
    if not family.conjugate:  # each row has its own, for pm.compute_log_likelihood
        (x,) = graph.observed_RVs
        free = [graph.rvs_to_values[rv] for rv in graph.free_RVs]
        term = graph.logp(vars=[x], sum=False)[0]
        f = pytensor.function(free, term, mode=PYTHON, on_unused_input="ignore")
        by_row = f(*(points[0][v.name] for v in free)).reshape(len(X), -1).sum(axis=1)
        close(by_row, family.log_likelihood(X, thetas[0])[np.arange(len(X)), y])


@only(in_pymc)
def test_rows_without_a_label_in_pymc_have_the_log_likelihood_of_every_class(model, missing):
    family, X, y = with_rows(model, missing)
    if family.conjugate:  # locations of a posterior are relative to the rows
        family = family.update(family.stats(X, y, 2))
        if takes_missing(model):  # perhaps not in training
            X = with_missing(X, model.rng())
    graph, theta, points, thetas = conditioned(family)
    with graph:
        log_x = require(family, UnlabelledRows, "this law").pymc_log_likelihood(X, theta)
    values = values_of(graph, {"log_x": log_x})
    for point, one in zip(points, thetas, strict=True):
        close(values(point)["log_x"], family.log_likelihood(X, one))


FIXED = {"edges", "n_categories", "exposure", "ignored"}  # of which kind the columns are


def row_data(model):
    """{name: value} of the data containers that hold rows."""
    dims = {v.name: model.named_vars_to_dims.get(v.name) or (None,) for v in model.data_vars}
    return {
        v.name: v.get_value()
        for v in model.data_vars
        if str(dims[v.name][0]).endswith(("obs_id", "cell"))
    }


@only(in_pymc, first_prior)
def test_a_model_of_rows_takes_other_rows(model, missing):
    """N + 1 and 0 rows, and the first ones again; draws have the shape of the rows."""
    family, X, y = with_rows(model, missing)
    if X.dtype == object:  # documents: their contexts must have been seen
        family = family.update(family.stats(X, y, 2))
    more, y_more = np.concatenate([X[::-1], X[2:3]]), np.concatenate([y[::-1], y[2:3]])
    graph, _, points, thetas = conditioned(family, X=X, y=y)
    log_p = log_densities(graph)
    data_of_rows, labels, start = row_data(graph), graph.coords["obs_id"], log_p(points)
    observed = graph.observed_RVs
    seen = [graph.rvs_to_values[x] for x in observed]
    draw_rows = pm.compile([], [*observed, *seen], random_seed=3, mode=PYTHON)
    for rows, codes in [(more, y_more), (X[:0], y[:0]), (X, y)]:
        data, obs_id = data_of_rows, labels
        if rows is not X:
            other, _ = declare(family, coords_of(family), X=rows, y=codes)
            data, obs_id = row_data(other), other.coords["obs_id"]
        with graph:
            pm.set_data(data, coords={"obs_id": obs_id})
        now = log_p(points)
        close(now[:, 1], rows_under(family, rows, codes, thetas))
        close(now[:, 0], start[:, 0])
        assert len(graph.coords["obs_id"]) == len(codes)
        drawn = draw_rows()
        for x, new, old in zip(observed, drawn, drawn[len(observed) :], strict=False):
            assert new.shape == old.shape
            if graph.named_vars_to_dims[x.name] != ("cell",):
                assert len(new) == len(codes)


def log_p(model, point, **options):
    return model.compile_logp(mode=PYTHON, **options)(point)


@only(in_pymc, first_prior)
def test_clones_of_a_model_have_its_density(model):
    """`clone_model`, `pm.observe` and `pm.do` leave the density; `pm.do` moves the prior."""
    family, X, y = with_rows(model)
    graph, _ = declare(family, coords_of(family), X=X, y=y)
    rng = np.random.default_rng(1)
    start = {k: v + 0.3 * rng.normal(size=v.shape) for k, v in graph.initial_point(1).items()}
    expected = log_p(graph, start, jacobian=False)
    close(log_p(clone_model(graph), start, jacobian=False), expected)
    some = graph.free_RVs[::2]
    values = named_at(graph, [rv.name for rv in some])(start)
    observed = pm.observe(graph, {rv.name: v for rv, v in zip(some, values, strict=True)})
    point = {v.name: start[v.name] for v in observed.value_vars}
    close(log_p(observed, point, jacobian=False), expected)
    # the prior of other hyper-parameters, coordinates and all
    names = {
        name
        for name, (_, value) in family.arrays().items()
        if value.dtype.kind == "f" and name not in FIXED and hasattr(family, name)
    }
    other = replace(family, **{name: 1.25 * getattr(family, name) for name in names})
    altered, _ = declare(other, coords_of(family), X=X, y=y)
    rows = row_data(graph)
    changed = {v.name: v.get_value() for v in altered.data_vars if v.name not in rows}
    if changed:  # of a regression not: its location and scale are how rows are encoded
        moved = log_p(pm.do(graph, changed), start)
        close(moved, log_p(altered, start))
        assert np.isfinite(moved)
