"""Laws that every conjugate family obeys, found by walking the folder of families.

A family makes its own data: theta is drawn from one of its `examples`, rows are simulated from
theta. Nothing here knows a formula of a family; a new file in the folder is held to all of it.
What only compares two roads to one closed form is held to 1e-9; what compares draws with a closed
form is held to five Monte Carlo standard errors, with fixed seeds.

``pytest tests/laws/test_family_laws.py --family BetaBernoulli`` runs one family.
"""

import copy
import inspect
import json
import pickle
import zlib
from dataclasses import FrozenInstanceError, dataclass, fields
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bayesgen.families import registry
from bayesgen.families.contract import ConjugateFamily, Record, UndefinedEstimateError
from bayesgen.families.names import CATEGORY, CLASS, FEATURE, FEATURE_BIS, TOKEN

EXACT = 1e-9
N_SIGMA = 5.0  # fixed seeds, about 1e4 comparisons in all: a true law fails with odds 1 in 200


# --------------------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """One example prior of one family, at one size."""

    family: type[ConjugateFamily]
    index: int
    n_classes: int = 3
    n_features: int = 4

    def sized(self, n_classes: int, n_features: int) -> "Case":
        return Case(self.family, self.index, n_classes, n_features)

    @property
    def prior(self) -> ConjugateFamily:
        return _examples(self.family, self.n_classes, self.n_features)[self.index]

    def rng(self, salt: int = 0) -> np.random.Generator:
        return np.random.default_rng([zlib.crc32(self.family.__name__.encode()), self.index, salt])

    def rows(self, n: int, salt: int = 0):
        """X, y of one theta of the prior. The same theta for every salt of one size."""
        theta = first(self.prior.draw(self.rng(), 1))
        rng = self.rng(1 + salt)
        y = rng.integers(self.n_classes, size=n)
        return self.prior.simulate(rng, theta, y), y

    def stats(self, X, y, weight=None):
        return self.prior.stats(X, y, self.n_classes, weight)

    def fitted(self, n: int = 24):
        """A posterior and the rows and statistics behind it."""
        X, y = self.rows(n)
        stats = self.stats(X, y)
        return self.prior.update(stats), X, y, stats


@cache
def _examples(family, n_classes, n_features):
    return family.examples(n_classes, n_features)


def conjugate_families():
    return [
        f
        for f in registry().values()
        if issubclass(f, ConjugateFamily) and not inspect.isabstract(f)
    ]


def pytest_generate_tests(metafunc):
    if "case" not in metafunc.fixturenames:
        return
    only = metafunc.config.getoption("--family", default=[])
    known = {f.__name__: f for f in conjugate_families()}
    if unknown := set(only) - set(known):
        raise pytest.UsageError(f"--family {', '.join(unknown)}: known are {', '.join(known)}")
    cases = [
        Case(family, i)
        for name, family in known.items()
        if not only or name in only
        for i in range(len(_examples(family, 3, 4)))
    ]
    metafunc.parametrize("case", cases, ids=lambda c: f"{c.family.__name__}-{c.index}")


# ----------------------------------------------------------------------------- small vocabulary


def first(theta):
    return {name: value[0] for name, value in theta.items()}


def stack(parts):
    """Rows of several blocks as one."""
    return sparse.vstack(parts).tocsr() if sparse.issparse(parts[0]) else np.concatenate(parts)


def is_table(X) -> bool:
    """Whether X is a dense (N, D) array of numbers, as opposed to sequences of tokens."""
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"


def is_real(X) -> bool:
    """Whether every column is real-valued."""
    return is_table(X) and bool((np.round(X) != X).any(axis=0).all())


def with_missing(X, rng, share: float = 0.3):
    """Float copy of X with NaN in some cells, in the whole first row, but not in the second."""
    X = np.array(X, dtype=np.float64)
    gone = rng.random(X.shape) < share
    gone[0], gone[1] = True, False
    X[gone] = np.nan
    return X


def needs_missing(case, *, in_training: bool):
    """Skip unless NaN is marginalised; where it is refused, hold the family to refusing it."""
    X, _ = case.rows(6)
    if not is_table(X):
        pytest.skip("X is not a float matrix, so no cell can be NaN")
    if case.family.missing != "marginalised":
        pytest.skip("refuses missing cells; see test_missing_cells_are_refused_with_the_reason")
    if in_training and not _fits_missing(case):
        pytest.skip("marginalises missing cells in prediction, refuses them in training")


def needs_density(case):
    """Skip a family that leaves `log_density` out, as it may."""
    if case.family.log_density is ConjugateFamily.log_density:
        pytest.skip("the density of theta is not defined")


def _fits_missing(case) -> bool:
    X, y = case.rows(6)
    try:
        case.stats(with_missing(X, case.rng()), y)
    except ValueError:
        return False
    return True


def close(actual, expected, tol: float = EXACT) -> None:
    """|actual - expected| <= tol (1 + |expected|), with equal infinities; NaN is never close."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"shapes {actual.shape}, {expected.shape}"
    assert not np.isnan(actual).any(), "NaN"
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)


def within_mcse(draws, expected, what: str) -> None:
    """The mean over the leading axis of `draws` is `expected`, up to its own standard error."""
    n = len(draws)
    mean, mcse = draws.mean(axis=0), draws.std(axis=0) / np.sqrt(n)
    slack = N_SIGMA * mcse + EXACT * (1 + np.abs(expected))
    worst = np.max(np.abs(mean - expected) / slack, initial=0.0)
    assert worst <= 1, f"{what}: {worst * N_SIGMA:.1f} Monte Carlo standard errors"


def same_posterior(a, b, X, stats, tol: float = EXACT) -> None:
    """Two families are the same distribution, as far as anything can be computed from them.

    Not field by field: a family may hold its numbers about any reference point.
    """
    close(a.log_predictive(X), b.log_predictive(X), tol)
    close(a.log_evidence(stats), b.log_evidence(stats), tol)
    try:
        mean = a.mean()
    except UndefinedEstimateError:
        return
    for name, value in b.mean().items():
        close(mean[name], value, tol)


def same_stats(case, a, b, tol: float = EXACT) -> None:
    """Two statistics say the same: same evidence, and the same posterior after them."""
    X, y = case.rows(9, salt=99)
    close(case.prior.log_evidence(a), case.prior.log_evidence(b), tol)
    same_posterior(case.prior.update(a), case.prior.update(b), X, case.stats(X, y), tol)


def identical(a: Record, b: Record) -> None:
    """The same class and fields, bit for bit."""
    assert type(a) is type(b)
    assert a.settings() == b.settings()
    left, right = a.arrays(), b.arrays()
    assert left.keys() == right.keys()
    for name, (dims, value) in left.items():
        assert dims == right[name][0]
        np.testing.assert_array_equal(value, right[name][1])


def relative_variance(posterior, X):
    """(N, C) variance over theta of p(x | theta_c), over its squared mean: from the cgf alone."""
    unit = np.eye(posterior.log_predictive(X).shape[1])
    first, second = (np.stack([posterior.cgf(X, k * e) for e in unit], axis=-1) for k in (1, 2))
    return np.exp(second - 2 * first) - 1


def likelihood_over_predictive_is_one(case, posterior, X, n_draws: int) -> None:
    """Draws pushed through the likelihood average to the predictive.

    Where a few draws carry all the weight (a row far from its class) the average of any number of
    draws that a test can afford says nothing, and its estimated error neither: such cells are
    known by the variance that the cgf tells, and left out.
    """
    variance = relative_variance(posterior, X)
    sane = variance < 2.0
    assert sane.mean() > 0.25
    draws = posterior.log_likelihood(X, posterior.draw(case.rng(8), n_draws))
    ratio = np.exp(draws - posterior.log_predictive(X))[:, sane]
    within_mcse(ratio, np.ones(ratio.shape[1]), "likelihood over predictive")
    mcse = np.sqrt(variance[sane] / n_draws)
    assert np.all(np.abs(ratio.mean(axis=0) - 1) <= N_SIGMA * mcse + EXACT)


def with_columns_moved(family: ConjugateFamily, new_of_old):
    """The family for rows whose column k has moved to ``new_of_old[k]``."""
    settings = family.settings()
    if "columns" not in settings:
        return renamed(family, (FEATURE, FEATURE_BIS), new_of_old)
    arrays = {name: value for name, (_, value) in family.arrays().items()}
    moved = [[int(new_of_old[k]) for k in block] for block in settings["columns"]]
    return family.from_parts(arrays, settings | {"columns": moved})


def renamed(record: Record, axes: tuple[str, ...], new_of_old):
    """The record with index k of every such axis renamed ``new_of_old[k]``."""
    old_of_new = np.argsort(new_of_old)
    out = {}
    for name, (dims, value) in record.arrays().items():
        for axis, dim in enumerate(dims):
            if dim in axes and value.shape[axis] == len(old_of_new):
                value = value.take(old_of_new, axis=axis)
        out[name] = value
    return record.from_parts(out, record.settings())


# ------------------------------------------------------------------------------------ the folder


def test_the_folder_holds_conjugate_families():
    assert "BetaBernoulli" in {f.__name__ for f in conjugate_families()}


def test_examples_are_resolved_and_differ(case):
    priors = _examples(case.family, 3, 4)
    X, y = case.rows(8)
    again = case.prior.resolve(case.stats(X, y))
    same_posterior(again, case.prior, X, case.stats(X, y), tol=1e-14)
    for one, other in pairwise(priors):
        assert one.settings() != other.settings() or any(
            value.shape != other.arrays()[name][1].shape
            or not np.array_equal(value, other.arrays()[name][1])
            for name, (_, value) in one.arrays().items()
        )


# ---------------------------------------------------------------------------------------- merge


def test_merge_is_associative_and_commutative_and_makes_the_whole(case):
    X, y = case.rows(24)
    a, b, c = (case.stats(X[s], y[s]) for s in (slice(0, 5), slice(5, 6), slice(6, 24)))
    whole = case.stats(X, y)
    same_stats(case, a.merge(b).merge(c), whole)
    same_stats(case, a.merge(b.merge(c)), whole)
    same_stats(case, c.merge(a).merge(b), whole)
    same_stats(case, b.merge(a), a.merge(b))


def test_an_empty_block_of_rows_is_neutral(case):
    X, y = case.rows(10)
    stats, empty = case.stats(X, y), case.stats(X[:0], y[:0])
    same_stats(case, stats.merge(empty), stats, tol=1e-14)
    same_stats(case, empty.merge(stats), stats, tol=1e-14)
    same_stats(case, stats.remove(empty), stats, tol=1e-14)
    assert case.prior.log_evidence(empty) == 0.0
    posterior = case.prior.update(empty)
    same_posterior(posterior, case.prior, X, stats, tol=1e-14)
    assert posterior.log_predictive(X[:0]).shape == (0, case.n_classes)
    assert posterior.cgf(X[:0], np.ones((2, 1, case.n_classes))).shape == (2, 0)
    theta = posterior.draw(case.rng(), 2)
    assert posterior.log_likelihood(X[:0], theta).shape == (2, 0, case.n_classes)
    assert len(posterior.simulate_predictive(case.rng(), y[:0])) == 0


def test_a_family_renames_its_classes_in_its_statistics(case):
    X, y = case.rows(20)
    codes = np.array([4, 0, 2])
    wide = case.sized(5, case.n_features)
    theirs = case.stats(X, y).reindex_classes(codes, 5)
    same_stats(wide, theirs, wide.stats(X, codes[y]))
    same_stats(wide, theirs.merge(wide.stats(X, y)), wide.stats(stack([X, X]), np.r_[codes[y], y]))


@pytest.mark.filterwarnings("ignore:remove")  # one row of weight 2 is left: it has no scatter
@pytest.mark.parametrize("weight", [1.0, 0.01, 1e3])
def test_remove_undoes_merge_in_any_order(case, weight):
    X, y = case.rows(20)
    weights = weight * case.rng().gamma(2.0, size=20)
    kept, a, b = (
        case.stats(X[s], y[s], weights[s]) for s in (slice(0, 9), slice(9, 12), slice(12, 20))
    )
    whole = kept.merge(a).merge(b)
    same_stats(case, whole.remove(b).remove(a), kept)
    same_stats(case, whole.remove(a).remove(b), kept)
    same_stats(case, whole.remove(a.merge(b)), kept)
    same_stats(case, whole.remove(kept).remove(b), a)
    for name, (_, value) in whole.remove(b).remove(kept).arrays().items():
        if not name.endswith(("mean", "shift", "scatter", "grams")):
            assert np.all(value >= 0), f"{name}: rounding must not leave a negative weight"


def test_removing_everything_leaves_the_prior(case):
    _, X, y, stats = case.fitted(12)
    nothing = stats.remove(case.stats(X[6:], y[6:])).remove(case.stats(X[:6], y[:6]))
    same_posterior(case.prior.update(nothing), case.prior, X, stats)


def test_removing_rows_that_were_never_there_is_refused(case):
    X, y = case.rows(12)
    few = case.stats(X[:3], y[:3])
    with pytest.raises(ValueError, match="remove"):
        few.remove(case.stats(X, y))
    with pytest.raises(ValueError, match="remove"):
        case.stats(X[:0], y[:0]).remove(few)
    zeros = np.zeros_like(y)
    with pytest.raises(ValueError, match="remove"):
        case.stats(X, zeros).remove(case.stats(X[:6], zeros[:6] + 1))


def test_update_in_parts_is_update_at_once(case):
    X, y = case.rows(20)
    a, b = case.stats(X[:7], y[:7]), case.stats(X[7:], y[7:])
    Xt, yt = case.rows(9, salt=1)
    probe = case.stats(Xt, yt)
    at_once = case.prior.update(a.merge(b))
    same_posterior(case.prior.update(a).update(b), at_once, Xt, probe)
    same_posterior(case.prior.update(b).update(a), at_once, Xt, probe)


# -------------------------------------------------------------------------------------- evidence


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
def test_evidence_is_the_product_of_one_step_predictives_in_any_order(case, missing):
    if missing:
        needs_missing(case, in_training=True)
    X, y = case.rows(14)
    if missing:
        X = with_missing(X, case.rng())
    evidence = case.prior.log_evidence(case.stats(X, y))
    for order in (range(14), case.rng().permutation(14)):
        total, family = 0.0, case.prior
        for i in order:
            row = slice(i, i + 1)
            total += family.log_predictive(X[row])[0, y[i]]
            family = family.update(case.stats(X[row], y[row]))
        close(total, evidence)


def test_evidence_of_parts_adds_up_under_the_posterior_of_the_first(case):
    X, y = case.rows(20)
    weight = case.rng().gamma(1.0, size=20)  # holds for a power likelihood as well
    a, b = (case.stats(X[s], y[s], weight[s]) for s in (slice(0, 8), slice(8, 20)))
    parts = case.prior.log_evidence(a) + case.prior.update(a).log_evidence(b)
    close(parts, case.prior.log_evidence(a.merge(b)))


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
def test_evidence_is_likelihood_times_prior_over_posterior_at_any_theta(case, missing):
    """Candidate's formula: log_evidence, log_likelihood, update and log_density as one."""
    needs_density(case)
    if missing:
        needs_missing(case, in_training=True)
    X, y = case.rows(20)
    if missing:
        X = with_missing(X, case.rng())
    weight = case.rng().gamma(1.0, size=20)  # holds for a power likelihood as well
    stats = case.stats(X, y, weight)
    posterior = case.prior.update(stats)
    evidence = case.prior.log_evidence(stats)
    # draws of the posterior, and of one that has seen a hundredth of the data: near and far
    for some in (posterior, case.prior.update(case.stats(X, y, weight / 100))):
        theta = some.draw(case.rng(21), 4)
        likelihood = posterior.log_likelihood(X, theta)[:, np.arange(20), y] @ weight
        candidate = likelihood + case.prior.log_density(theta) - posterior.log_density(theta)
        # terms as large as the likelihood cancel
        size = np.max(np.abs(likelihood)) / (1 + np.abs(evidence))
        close(candidate, np.full(4, evidence), EXACT * (1 + size))


# ------------------------------------------------------------------------------------------- cgf


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_cgf_at_a_unit_vector_is_the_log_predictive(case, dtype):
    posterior, X, _, _ = case.fitted()
    expected = posterior.log_predictive(X)
    for c in range(case.n_classes):
        t = np.eye(case.n_classes, dtype=dtype)[c]
        value = posterior.cgf(X, t)
        assert value.dtype == dtype
        close(value, expected[:, c].astype(dtype))
        close(posterior.cgf(X, 0 * t), np.zeros(len(expected), dtype), 1e-13)


def test_cgf_takes_one_t_for_all_rows_or_one_for_each(case):
    posterior, X, _, _ = case.fitted()
    rng = case.rng(5)
    K, N, C = 4, X.shape[0], case.n_classes
    t = rng.random((K, C)) + 1j * rng.normal(size=(K, C))
    for values in (t, t.real):
        one_by_one = np.array([posterior.cgf(X, values[k]) for k in range(K)])
        assert one_by_one.shape == (K, N)
        close(posterior.cgf(X, values[:, None, :]), one_by_one, 1e-12)
        each = np.broadcast_to(values[:, None, :], (K, N, C))
        close(posterior.cgf(X, each), one_by_one, 1e-12)
        own = posterior.cgf(X, values[np.arange(N) % K])  # (N, C): a t of each row's own
        close(own, one_by_one[np.arange(N) % K, np.arange(N)], 1e-12)
        lead = posterior.cgf(X, each.reshape(2, 2, N, C))
        close(lead, one_by_one.reshape(2, 2, N), 1e-12)


def test_cgf_is_conjugate_symmetric_and_a_characteristic_function(case):
    posterior, X, _, _ = case.fitted()
    rng = case.rng(6)
    shape = (6, 1, case.n_classes)
    t = rng.random(shape) + 1j * rng.normal(size=shape) * 3
    close(posterior.cgf(X, t.conj()), posterior.cgf(X, t).conj(), 1e-12)
    scale = np.array([1e-3, 0.1, 1.0, 3.0, 10.0, 100.0])[:, None, None]
    modulus = posterior.cgf(X, 1j * scale * rng.normal(size=shape)).real
    assert np.all(modulus <= 1e-11)


def test_cgf_is_one_branch_of_the_logarithm(case):
    """Along a ray of imaginary t there is no jump, as the logarithm of a product would make."""
    X, y = case.rows(12)
    prior, stats = case.prior, case.stats(X, y)
    if is_real(X):  # classes far apart under a prior that lets them, and rows far from each
        far = 1e3 * case.rng(20).normal(size=X.shape)
        stats = case.stats(X + far[y], y)
        prior, X = _defaults(case).resolve(stats), stack([X + far[y], far])
    posterior = prior.update(stats)
    rows = np.arange(X.shape[0])
    grid = np.geomspace(1e-8, 8, 240)  # far rows turn at once, near ones slowly
    for direction in (np.ones(case.n_classes), *case.rng(18).normal(size=(2, case.n_classes))):

        def along(s, u=1j * direction):
            return posterior.cgf(X, s[..., None] * u)

        path = along(np.repeat(grid[:, None], X.shape[0], axis=1))  # (240, N)
        suspect = np.abs(np.diff(path, n=2, axis=0)).argmax(axis=0) + np.arange(2)[:, None]
        for k in suspect:  # the step before and the step after the sharpest bend
            left, right = grid[k], grid[k + 1]
            at_left, at_right = path[k, rows], path[k + 1, rows]
            for _ in range(30):
                middle = (left + right) / 2
                at_middle = along(middle)
                here = np.abs(at_middle - at_left) > np.abs(at_right - at_middle)
                left, at_left = np.where(here, (left, at_left), (middle, at_middle))
                right, at_right = np.where(here, (middle, at_middle), (right, at_right))
                left, right = left.real, right.real
            assert np.abs(at_right - at_left).max() < 0.1


def test_cgf_is_not_finite_outside_its_domain(case):
    posterior, X, _, _ = case.fitted()
    draws = posterior.draw(case.rng(), 8)
    random = np.ptp(posterior.log_likelihood(X, draws), axis=0) > 1e-9  # (N, C)
    for c in range(case.n_classes):
        with np.errstate(all="ignore"):
            value = posterior.cgf(X, -1234.5 * np.eye(case.n_classes)[c])
        assert not np.isfinite(value[random[:, c]]).any()


def test_cgf_derivatives_at_zero_are_the_moments_of_the_log_likelihood(case):
    case = case.sized(2, 2)
    posterior, _, _, _ = case.fitted(40)
    X, _ = case.rows(5, salt=3)
    h = 1e-3  # truncation and rounding both stay below 1e-5 of the value
    e = np.eye(2)

    def curvature(direction):  # Re K(i h u) is even in h
        near, far = (posterior.cgf(X, 1j * step * direction).real / step**2 for step in (h, 2 * h))
        return -2 * (4 * near - far) / 3

    gradient = np.array([posterior.cgf(X, 1j * h * u).imag / h for u in e])
    v0, v1, v01 = curvature(e[0]), curvature(e[1]), (curvature(e[0] + e[1]))
    hessian = np.array([[v0, (v01 - v0 - v1) / 2], [(v01 - v0 - v1) / 2, v1]])

    draws = posterior.log_likelihood(X, posterior.draw(case.rng(7), 4000))  # (S, N, C)
    scale = draws.std(axis=0)
    centred = draws - gradient.T
    within_mcse(centred / scale, np.zeros_like(scale), "mean of log-likelihood")
    products = centred[..., :, None] * centred[..., None, :]
    norm = scale[..., :, None] * scale[..., None, :]
    within_mcse(products / norm, np.moveaxis(hessian, -1, 0) / norm, "covariance")


# --------------------------------------------------------------------------------------- weights


def test_integer_weights_are_repeated_rows_and_zero_is_absence(case):
    X, y = case.rows(16)
    weight = case.rng().integers(4, size=16)
    assert (weight == 0).any()
    weighted = case.stats(X, y, weight.astype(np.float64))
    index = np.repeat(np.arange(16), weight)
    same_stats(case, weighted, case.stats(X[index], y[index]))
    nobody = case.stats(X, y, np.zeros(16))
    assert case.prior.log_evidence(nobody) == 0.0
    same_stats(case, nobody, case.stats(X[:0], y[:0]), tol=1e-14)


def test_a_weight_of_two_is_a_merge_with_itself(case):
    X, y = case.rows(16)
    once = case.stats(X, y)
    same_stats(case, case.stats(X, y, np.full(16, 2.0)), once.merge(once))
    same_stats(case, case.stats(X, y, np.ones(16)), once, tol=1e-14)


# ----------------------------------------------------------------------------------------- draws


def test_draws_pushed_through_the_likelihood_converge_to_the_predictive(case):
    case = case.sized(2, 2)
    posterior, _, _, _ = case.fitted(40)
    X, _ = case.rows(6, salt=4)
    likelihood_over_predictive_is_one(case, posterior, X, 4000)


def test_the_mean_of_the_draws_is_the_mean(case):
    posterior, _, _, _ = case.fitted(60)
    try:
        mean = posterior.mean()
    except UndefinedEstimateError:
        pytest.skip("this posterior has no mean")
    draws = posterior.draw(case.rng(9), 6000)
    assert mean.keys() == draws.keys()
    for name, value in mean.items():
        assert value.shape == draws[name].shape[1:]
        within_mcse(draws[name], value, f"mean of {name}")


def test_draws_have_the_dims_that_params_promises(case):
    posterior, _, _, _ = case.fitted()
    draws = posterior.draw(case.rng(), 5)
    assert draws.keys() == posterior.params.keys()
    sizes = {CLASS: case.n_classes, FEATURE: case.n_features, FEATURE_BIS: case.n_features}
    for name, dims in posterior.params.items():
        assert draws[name].ndim == 1 + len(dims)
        assert len(draws[name]) == 5
        assert draws[name].dtype == np.float64
        for size, dim in zip(draws[name].shape[1:], dims, strict=True):
            # a product of families has axes of its own for each block of columns
            assert dim not in sizes or size == sizes[dim] or case.family.__name__ == "Columns"
    assert posterior.n_parameters() == sum(v[0].size for v in draws.values())
    again = posterior.draw(case.rng(), 5)
    assert all(np.array_equal(again[name], value) for name, value in draws.items())


def test_theta_may_have_any_leading_axes(case):
    posterior, X, _, _ = case.fitted()
    draws = posterior.draw(case.rng(), 6)
    flat = posterior.log_likelihood(X, draws)
    assert flat.shape == (6, X.shape[0], case.n_classes)
    assert flat.dtype == np.float64
    chains = {name: v.reshape(2, 3, *v.shape[1:]) for name, v in draws.items()}
    close(posterior.log_likelihood(X, chains), flat.reshape(2, 3, *flat.shape[1:]), 1e-12)
    for s in range(6):
        one = {name: v[s] for name, v in draws.items()}
        close(posterior.log_likelihood(X, one), flat[s], 1e-12)
    none = {name: v[:0] for name, v in draws.items()}
    assert posterior.log_likelihood(X, none).shape == (0, *flat.shape[1:])


def test_log_density_takes_theta_with_any_leading_axes(case):
    needs_density(case)
    posterior, _, _, _ = case.fitted()
    draws = posterior.draw(case.rng(), 6)
    flat = posterior.log_density(draws)
    assert flat.shape == (6,)
    assert flat.dtype == np.float64
    chains = {name: v.reshape(2, 3, *v.shape[1:]) for name, v in draws.items()}
    close(posterior.log_density(chains), flat.reshape(2, 3), 1e-12)
    close(posterior.log_density(first(draws)), flat[0], 1e-12)
    assert posterior.log_density({name: v[:0] for name, v in draws.items()}).shape == (0,)


def test_draws_follow_the_density_of_theta(case):
    """E_a sqrt(b/a) = E_b sqrt(a/b): the affinity of two posteriors, from either side."""
    needs_density(case)
    case = case.sized(2, 2)
    X, y = case.rows(12)
    rng, S = case.rng(22), 4000
    a = case.prior.update(case.stats(X, y))
    b = case.prior.update(case.stats(X, y, np.full(12, 0.6)))
    sides = []
    for here, there in ((a, b), (b, a)):
        theta = here.draw(rng, S)
        sides.append(np.exp(0.5 * (there.log_density(theta) - here.log_density(theta))))
    mcse = np.hypot(*(s.std() / np.sqrt(S) for s in sides))
    assert abs(sides[0].mean() - sides[1].mean()) <= N_SIGMA * mcse + EXACT
    assert mcse < 0.05


# ---------------------------------------------------------------------------------- permutations


def test_permuting_columns_permutes_nothing_but_the_parameters(case):
    X, y = case.rows(20)
    if not is_table(X):
        pytest.skip("rows are token sequences: there are no columns, see the law of token codes")
    new = np.array([2, 0, 3, 1])
    there = with_columns_moved(case.prior, new)
    Xp = X[:, np.argsort(new)]
    stats, moved = case.stats(X, y), there.stats(Xp, y, case.n_classes)
    close(there.log_evidence(moved), case.prior.log_evidence(stats))
    here, there = case.prior.update(stats), there.update(moved)
    close(there.log_predictive(Xp), here.log_predictive(X))
    t = case.rng().normal(size=case.n_classes) * 1j
    close(there.cgf(Xp, t), here.cgf(X, t))
    same_posterior(with_columns_moved(here, new), there, Xp, moved)


def test_permuting_codes_of_tokens_or_categories_permutes_nothing_else(case):
    X, y = case.rows(20)
    sizes = {
        value.shape[dims.index(axis)]
        for dims, value in case.prior.arrays().values()
        for axis in (CATEGORY, TOKEN)
        if axis in dims
    }
    if len(sizes) != 1:
        pytest.skip("no codes")
    if any(CATEGORY in d and (v == 0).any() for d, v in case.prior.arrays().values()):
        pytest.skip("features have different numbers of categories: no permutation fits all")
    new = case.rng().permutation(sizes.pop())
    Xp = new[X] if is_table(X) else np.fromiter((new[x] for x in X), dtype=object)
    there = renamed(case.prior, (CATEGORY, TOKEN), new)
    stats, moved = case.stats(X, y), there.stats(Xp, y, case.n_classes)
    close(there.log_evidence(moved), case.prior.log_evidence(stats))
    here, there = case.prior.update(stats), there.update(moved)
    close(there.log_predictive(Xp), here.log_predictive(X))
    t = case.rng().normal(size=case.n_classes) * 1j
    close(there.cgf(Xp, t), here.cgf(X, t))


def test_permuting_classes_permutes_classes(case):
    X, y = case.rows(20)
    new = np.array([2, 0, 1])
    there = renamed(case.prior, (CLASS,), new)
    stats, moved = case.stats(X, y), there.stats(X, new[y], case.n_classes)
    close(there.log_evidence(moved), case.prior.log_evidence(stats))
    here, there = case.prior.update(stats), there.update(moved)
    close(there.log_predictive(X)[:, new], here.log_predictive(X))
    t = case.rng().normal(size=case.n_classes) * 1j
    close(there.cgf(X, t[np.argsort(new)]), here.cgf(X, t))
    same_posterior(renamed(here, (CLASS,), new), there, X, moved)


def test_a_class_without_rows_keeps_its_prior(case):
    X, y = case.rows(12)
    posterior = case.prior.update(case.stats(X, np.zeros_like(y)))
    if all(dims[:1] == (CLASS,) for dims in posterior.params.values()):
        close(posterior.log_predictive(X)[:, 1:], case.prior.log_predictive(X)[:, 1:], 1e-12)
        return
    prior_mean, mean = case.prior.mean(), posterior.mean()  # classes share a parameter
    for name, dims in posterior.params.items():
        if dims[:1] == (CLASS,):
            close(mean[name][1:], prior_mean[name][1:], 1e-12)


# --------------------------------------------------------------------------------- missing cells


def test_a_row_without_observed_cells_says_nothing(case):
    needs_missing(case, in_training=False)
    posterior, X, y, stats = case.fitted()
    X = with_missing(X, case.rng())[:1]
    assert np.isnan(X).all()
    close(posterior.log_predictive(X), np.zeros((1, case.n_classes)), 1e-13)
    theta = posterior.draw(case.rng(), 3)
    close(posterior.log_likelihood(X, theta), np.zeros((3, 1, case.n_classes)), 1e-13)
    close(posterior.cgf(X, np.array([0.3, 1.0, 0.2]) + 1j), np.zeros(1, dtype=complex), 1e-12)
    if _fits_missing(case):
        assert case.prior.log_evidence(case.stats(X, y[:1])) == 0.0
        same_stats(case, stats.merge(case.stats(X, y[:1])), stats, tol=1e-14)


def test_cgf_and_draws_leave_out_the_same_cells_as_the_predictive(case):
    needs_missing(case, in_training=False)
    case = case.sized(2, 3)
    posterior, _, _, _ = case.fitted(40)
    X = with_missing(case.rows(6, salt=5)[0], case.rng())
    expected = posterior.log_predictive(X)
    for c in range(2):
        close(posterior.cgf(X, np.eye(2)[c]), expected[:, c])
        close(posterior.cgf(X, np.eye(2, dtype=complex)[c]).real, expected[:, c])
    likelihood_over_predictive_is_one(case, posterior, X, 2000)


@pytest.mark.parametrize("what", ["likelihood", "predictive"])
def test_leaving_a_cell_out_integrates_over_it(case, what):
    """E over x_j ~ p(x_j) of p(x_rest, x_j)/p(x_j) is p(x_rest), whatever the family."""
    needs_missing(case, in_training=False)
    case = case.sized(2, 3)
    posterior, _, _, _ = case.fitted(40)
    theta, rng = first(posterior.draw(case.rng(), 1)), case.rng(11)
    S, j = 4000, 1
    for c in range(2):
        y = np.full(S, c)
        if what == "likelihood":
            cells = posterior.simulate(rng, theta, y)[:, j]
            density = partial(posterior.log_likelihood, theta=theta)
        else:
            cells = posterior.simulate_predictive(rng, y)[:, j]
            density = posterior.log_predictive
        alone = np.full((S, 3), np.nan)
        alone[:, j] = cells
        base = density(alone)[:, c]
        for row in np.array(case.rows(3, salt=6)[0], dtype=np.float64):
            mixed = np.tile(row, (S, 1))
            mixed[:, j] = cells
            row = row.copy()
            row[j] = np.nan
            without = density(row[None])[0, c]
            ratio = np.exp(density(mixed)[:, c] - base - without)
            within_mcse(ratio, 1.0, "integral over the cell")


def test_missing_cells_are_refused_with_the_reason(case):
    X, y = case.rows(6)
    if not is_table(X):
        pytest.skip("X is not a float matrix, so no cell can be NaN")
    X = with_missing(X, case.rng())
    if case.family.missing == "marginalised":
        if not _fits_missing(case):
            with pytest.raises(ValueError, match=r"(?i)nan|missing"):
                case.stats(X, y)
        return
    posterior = case.fitted()[0]
    theta = posterior.draw(case.rng(), 2)
    for call in (
        lambda: case.stats(X, y),
        lambda: posterior.log_predictive(X),
        lambda: posterior.log_likelihood(X, theta),
        lambda: posterior.cgf(X, np.zeros(case.n_classes)),
    ):
        with pytest.raises(ValueError, match=r"(?i)nan|missing") as error:
            call()
        assert case.family.missing in str(error.value)


# ----------------------------------------------------------------------------------- round trips


def test_records_survive_files_and_pickles(case):
    posterior, X, _, stats = case.fitted()
    for record in (case.prior, posterior, stats):
        arrays = {name: value for name, (_, value) in record.arrays().items()}
        through_json = json.loads(json.dumps(record.settings()))
        read = case.prior.read_stats if record is stats else type(record).from_parts
        again = read(arrays, through_json)
        pickled = pickle.loads(pickle.dumps(record))
        for name, (dims, value) in record.arrays().items():
            assert value.dtype.kind in "fiub", f"{name} cannot be stored"
            assert value.ndim == len(dims), f"{name}: {value.shape} for {dims}"
            if case.family.__name__ != "Columns":
                sizes = {CLASS: case.n_classes, FEATURE: case.n_features}
                for size, dim in zip(value.shape, dims, strict=True):
                    assert dim not in sizes or size in (1, sizes[dim]), f"{name}: {dim} {size}"
        for other in (again, pickled):
            left, right = record.arrays(), other.arrays()
            assert left.keys() == right.keys()
            for name, (dims, value) in left.items():
                assert right[name][0] == dims
                np.testing.assert_array_equal(right[name][1], value)
            assert json.dumps(other.settings()) == json.dumps(record.settings())
        if record is not stats:
            for other in (again, pickled):
                same_posterior(other, record, X, stats, tol=1e-15)
        else:
            same_stats(case, again, stats, tol=1e-15)
            same_stats(case, pickled, stats, tol=1e-15)


def test_families_and_statistics_are_frozen(case):
    posterior, _, _, stats = case.fitted(6)
    for record in (posterior, stats):
        for f in fields(record):
            with pytest.raises(FrozenInstanceError):
                setattr(record, f.name, None)


def test_nothing_is_changed_in_place(case):
    X, y = case.rows(12)
    a, b = case.stats(X[:6], y[:6]), case.stats(X[6:], y[6:])
    whole = a.merge(b)
    records = (case.prior, a, b, whole)
    before = pickle.dumps(records)
    whole.remove(b)
    posterior = case.prior.update(a).update(b)
    posterior.log_predictive(X)
    case.prior.log_evidence(whole)
    case.prior.resolve(whole)
    posterior.cgf(X, np.ones(case.n_classes))
    posterior.draw(case.rng(), 2)
    a.reindex_classes(np.array([1, 2, 0]), 3)
    for record, original in zip(records, pickle.loads(before), strict=True):
        identical(record, original)


# ---------------------------------------------------------------------------------- default prior


def _defaults(case):
    """The family as constructed without numbers, or skip."""
    try:
        return case.family(**case.prior.settings())
    except TypeError:
        pytest.skip("cannot be constructed without arguments")


def test_default_priors_resolve_alike_for_chunks(case):
    X, y = case.rows(20)
    default, stats = _defaults(case), case.stats(X, y)
    merged = case.stats(X[:3], y[:3]).merge(case.stats(X[3:], y[3:]))
    resolved = default.resolve(stats)
    same_posterior(resolved, default.resolve(merged), X, stats)
    same_posterior(resolved, resolved.resolve(stats), X, stats, tol=1e-14)
    new = np.array([2, 0, 1])
    moved = stats.reindex_classes(new, 3)
    same_posterior(renamed(resolved, (CLASS,), new), default.resolve(moved), X, moved)


@pytest.mark.parametrize("each_column", [False, True], ids=["common", "each_column"])
@pytest.mark.parametrize("n", [24, 3], ids=["many_rows", "few_rows"])
def test_default_priors_are_equivariant_under_shift_and_scale(case, each_column, n):
    X, y = case.rows(24)
    if not is_real(X):
        pytest.skip("columns are not all real-valued: there is no unit to change")
    default = _defaults(case)
    if each_column and any("spherical" in str(v) for v in case.prior.settings().values()):
        pytest.skip("one variance for all features: they have one unit")
    scale = np.array([-3.7, 0.01, 25.0, 1.0]) if each_column else np.full(4, -3.7)
    move = np.array([100.0, -7.0, 0.0, 3.0])

    def density(X):
        stats = case.stats(X[:n], y[:n])
        prior = default.resolve(stats)
        return prior.log_predictive(X), prior.update(stats).log_predictive(X)

    jacobian = np.log(np.abs(scale)).sum()
    for there, here in zip(density(X * scale + move), density(X), strict=True):
        close(there + jacobian, here, 1e-8)  # the shifted data have lost a few digits themselves


def test_an_offset_of_1e10_costs_no_digits(case):
    X, y = case.rows(24)
    if not is_real(X):
        pytest.skip("columns are not all real-valued")
    X = np.round(X * 1024) / 1024  # so that the offset is exact
    default = _defaults(case)

    def density(X):
        a, b, c = (case.stats(X[s], y[s]) for s in (slice(0, 9), slice(9, 15), slice(15, 24)))
        stats = case.stats(X[:0], y[:0]).merge(a.merge(b).merge(c).remove(b))
        prior = default.resolve(stats)
        posterior = prior.update(stats)
        moved = posterior.update(b)
        yield from (f.log_predictive(X) for f in (prior, posterior, moved))
        yield moved.cgf(X, np.array([0.3, 1.0, 0.2]) * 1j)
        yield np.array(prior.log_evidence(stats))

    for there, here in zip(density(X + 1e10), density(X), strict=True):
        close(there, here)


# ------------------------------------------------------------------------------------- estimates


def test_no_theta_explains_the_data_better_than_the_mle(case):
    X, y = case.rows(60)
    weight = case.rng().gamma(1.0, size=60)
    stats = case.stats(X, y, weight)
    try:
        mle = case.prior.mle(stats)
    except UndefinedEstimateError:
        pytest.skip("this data set has no maximum-likelihood estimate")
    rows = np.arange(len(y))
    best = case.prior.update(stats).log_likelihood(X, mle)[rows, y] @ weight
    assert np.isfinite(best)
    assert mle.keys() >= case.prior.params.keys()
    for _ in range(5):  # from far away to close by
        posterior = case.prior.update(stats)
        draws = posterior.draw(case.rng(12), 100)
        assert all(v.shape[1:] == mle[name].shape for name, v in draws.items())
        theirs = posterior.log_likelihood(X, draws)[:, rows, y] @ weight
        assert theirs.max() <= best + 1e-9 * (1 + abs(best))
        for _ in range(4):
            stats = stats.merge(stats)


def test_estimates_of_a_large_sample_meet(case):
    X, y = case.rows(60)
    stats = case.stats(X, y)
    for _ in range(30):
        stats = stats.merge(stats)  # 2^30 copies: the prior is worth 1e-9 of the data
    posterior = case.prior.update(stats)
    own = np.arange(len(y)), y
    predictive = posterior.log_predictive(X)[own]
    estimates = {
        "mle": (lambda: case.prior.mle(stats), 1e-6),
        "map": (posterior.map, 1e-6),
        "mean": (posterior.mean, 1e-6),
        "draw": (lambda: first(posterior.draw(case.rng(), 1)), 1e-2),
    }
    defined = 0
    for estimate, tol in estimates.values():
        try:
            theta = estimate()
        except UndefinedEstimateError:  # a cell that no copy of the data has shown
            continue
        close(posterior.log_likelihood(X, theta)[own], predictive, tol)
        defined += 1
    assert defined >= 2


# ------------------------------------------------------------------------------------ simulation


def test_simulated_rows_can_be_learnt_from(case):
    posterior, X, _, _ = case.fitted()
    rng, y = case.rng(13), np.array([2, 0, 0, 1, 2])
    draws = posterior.draw(rng, 5)
    for rows in (
        posterior.simulate(rng, first(draws), y),
        posterior.simulate(rng, draws, y),  # a theta of each row's own
        posterior.simulate_predictive(rng, y),
    ):
        assert rows.dtype == X.dtype
        assert rows.shape == (5, *X.shape[1:])
        posterior.update(case.stats(rows, y))
        assert np.isfinite(posterior.log_predictive(rows)).all()


def test_a_theta_for_each_row_is_used_for_that_row(case):
    """Rows simulated with theta k are likelier under theta k, on average."""
    case = case.sized(2, 4)
    S = 1500
    two = case.prior.draw(case.rng(14), 2)
    which, y = np.arange(S) % 2, (np.arange(S) // 2) % 2
    own = {name: value[which] for name, value in two.items()}
    rows = case.prior.simulate(case.rng(15), own, y)
    log_p = case.prior.log_likelihood(rows, two)[:, np.arange(S), y]
    with np.errstate(invalid="ignore"):
        gain = log_p[which, np.arange(S)] - log_p[1 - which, np.arange(S)]
    assert not np.isnan(gain).any()
    capped = np.clip(gain, -5, 5)
    for part in (which == 0, which == 1):
        assert capped[part].mean() > 0


@pytest.mark.parametrize("what", ["likelihood", "predictive"])
def test_rows_are_simulated_from_the_density_that_is_evaluated(case, what):
    """E_c sqrt(p_d/p_c) = E_d sqrt(p_c/p_d): the affinity of two classes, from either side."""
    case = case.sized(2, 2)
    posterior, _, _, _ = case.fitted(30)
    theta, rng, S = first(posterior.draw(case.rng(16), 1)), case.rng(17), 4000
    sides = []
    for c in range(2):
        y = np.full(S, c)
        if what == "likelihood":
            log_p = posterior.log_likelihood(posterior.simulate(rng, theta, y), theta)
        else:
            log_p = posterior.log_predictive(posterior.simulate_predictive(rng, y))
        sides.append(np.exp(0.5 * (log_p[:, 1 - c] - log_p[:, c])))
    mcse = np.hypot(*(s.std() / np.sqrt(S) for s in sides))
    assert abs(sides[0].mean() - sides[1].mean()) <= N_SIGMA * mcse + EXACT


@pytest.mark.parametrize("what", ["likelihood", "predictive"])
def test_one_row_reweights_the_prior_predictive_to_its_posterior(case, what):
    """E over x ~ p(x) of p(x | x1)/p(x) is 1: rows, draws and the update know of each other."""
    case = case.sized(2, 2)
    S, rng = 4000, case.rng(19)
    ones, _ = case.rows(4, salt=7)
    for c in range(2):
        y = np.full(S, c)
        if what == "likelihood":
            rows = case.prior.simulate(rng, case.prior.draw(rng, S), y)
        else:
            rows = case.prior.simulate_predictive(rng, y)
        before = case.prior.log_predictive(rows)[:, c]
        for k in range(4):
            posterior = case.prior.update(case.stats(ones[k : k + 1], y[:1]))
            ratio = np.exp(posterior.log_predictive(rows)[:, c] - before)
            within_mcse(ratio, 1.0, f"class {c}, given row {k}")


# ------------------------------------------------------------------------------- kinds of input


def _everything(case, X, y, weight, theta):
    """Every number that a family computes from rows."""
    stats = case.stats(X, y, weight)
    posterior = case.prior.update(stats)
    t = np.array([0.2, 0.5, 0.1])
    return (
        posterior.log_predictive(X),
        posterior.log_likelihood(X, theta),
        posterior.cgf(X, t),
        posterior.cgf(X, t * 1j),
        np.array(case.prior.log_evidence(stats)),
    )


def _same_input(case, X, same, y=None, weight=None, tol=1e-12):
    if y is None:
        y = np.arange(X.shape[0]) % case.n_classes
    # one theta for both: draws that reject may go different ways for numbers 1e-16 apart
    theta = case.prior.update(case.stats(same, y, weight)).draw(case.rng(), 3)
    for actual, expected in zip(
        _everything(case, X, y, weight, theta),
        _everything(case, same, y, weight, theta),
        strict=True,
    ):
        assert type(actual) is np.ndarray
        close(actual, expected, tol)


def test_narrow_numbers_give_the_result_of_wide_ones(case):
    X, _ = case.rows(20)
    if not is_table(X):
        pytest.skip("rows are token sequences: there is no float to narrow")
    narrow = X.astype(np.float32)
    _same_input(case, narrow, narrow.astype(np.float64))
    if np.array_equal(X, np.round(X)):
        wide = X.astype(np.float64)
        for dtype in (np.int64, np.int32, np.uint8 if X.max() < 256 else np.uint64):
            _same_input(case, X.astype(dtype), wide)
        if set(np.unique(X)) <= {0, 1}:
            _same_input(case, X.astype(bool), wide)


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
def test_sparse_rows_give_the_result_of_dense_ones(case, missing):
    if not case.family.sparse:
        pytest.skip("dense rows only")
    if missing:
        needs_missing(case, in_training=True)
    X, _ = case.rows(20)
    weight = case.rng().gamma(2.0, size=20)
    if missing:
        X = with_missing(X, case.rng())
    for container in (sparse.csr_matrix, sparse.csr_array):
        for dtype in (np.float64, np.float32, *(() if missing else (np.int64,))):
            _same_input(case, container(X.astype(dtype)), X, weight=weight)
    messy = sparse.csr_matrix(X.astype(np.float64))
    for start, stop in pairwise(messy.indptr):  # columns of a row in falling order
        messy.indices[start:stop] = messy.indices[start:stop][::-1].copy()
        messy.data[start:stop] = messy.data[start:stop][::-1].copy()
    messy.has_sorted_indices = False
    _same_input(case, messy, X)
    stored_zero = sparse.csr_matrix(X.astype(np.float64))
    stored_zero.data[0] = 0.0
    _same_input(case, stored_zero, np.asarray(stored_zero.todense()))


def test_any_memory_layout_will_do_and_nothing_is_written_to(case):
    X, y = case.rows(20)
    weight = case.rng().gamma(2.0, size=20)
    if not is_table(X):
        layouts = [X]
    else:
        wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)
        layouts = [X, np.asfortranarray(X), wide[::2, ::3], np.ascontiguousarray(X[::-1])[::-1]]
        if case.family.missing == "marginalised" and _fits_missing(case):
            layouts.append(with_missing(X, case.rng()))
    for layout in layouts:
        before = copy.deepcopy(layout)
        for a in (layout, y, weight, *(layout if layout.dtype == object else ())):
            a.setflags(write=False)
        _same_input(case, layout, before, y, weight)
        for now, then in zip(layout, before, strict=True):
            np.testing.assert_array_equal(now, then)
    theta = case.prior.draw(case.rng(), 2)
    for value in theta.values():
        value.setflags(write=False)
    case.prior.log_likelihood(X, theta)
    case.prior.simulate(case.rng(), first(theta), y)
    t = np.full((2, 1, case.n_classes), 0.1j)
    t.setflags(write=False)
    case.prior.cgf(X, t)


# ------------------------------------------------------------------------------------ properties

anything = settings(max_examples=8, deadline=None, derandomize=True, database=None)


@pytest.mark.filterwarnings("ignore:remove")
@anything
@given(
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(0, 20),
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, "integer", "real"]),
)
def test_any_split_of_any_rows_at_any_size(case, n_classes, n_features, n, seed, weights):
    case = case.sized(n_classes, n_features)
    rng = np.random.default_rng(seed)
    X, y = case.rows(n, salt=seed % 1000)
    weight = {
        None: None,
        "integer": rng.integers(3, size=n).astype(float),
        "real": rng.gamma(0.5, size=n),
    }[weights]
    part = rng.integers(3, size=n)
    parts = [
        case.stats(X[part == k], y[part == k], None if weight is None else weight[part == k])
        for k in range(3)
    ]
    whole = case.stats(X, y, weight)
    same_stats(case, parts[2].merge(parts[0]).merge(parts[1]), whole, 1e-8)
    same_stats(case, whole.remove(parts[1]), parts[0].merge(parts[2]), 1e-7)
    family, total = case.prior, 0.0
    for stats in parts:
        total += family.log_evidence(stats)
        family = family.update(stats)
    close(total, case.prior.log_evidence(whole), 1e-8)
    posterior = case.prior.update(whole)
    expected = posterior.log_predictive(X)
    assert expected.shape == (n, n_classes)
    for c in range(n_classes):
        close(posterior.cgf(X, np.eye(n_classes)[c]), expected[:, c])
