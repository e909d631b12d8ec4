"""What the laws share: one case for each example prior, and comparisons.

A family makes its own data: theta is drawn from one of its `examples`, rows are simulated from
theta. Nothing here knows a formula of a family; a new file in the folder of families is held to
all of it. What only compares two roads to one closed form is held to 1e-9; what compares draws
with a closed form is held to five Monte Carlo standard errors, with fixed seeds.

``pytest tests/laws --family BetaBernoulli`` runs one family.
"""

import inspect
import json
import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy import sparse

from bayesgen.families import registry
from bayesgen.families.capabilities import ThetaDensity
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import FEATURE, FEATURE_BIS
from bayesgen.families.records import Record

EXACT = 1e-9
N_SIGMA = 5.0  # fixed seeds, about 1e4 comparisons in all: a true law fails with odds 1 in 200


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
        return examples(self.family, self.n_classes, self.n_features)[self.index]

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
def examples(family, n_classes, n_features):
    return family.examples(n_classes, n_features)


def conjugate_families():
    return [f for f in _concrete() if is_exact(f)]


def is_exact(family):
    return issubclass(family, ConjugateFamily) and not family.no_theta


def _concrete():
    return [f for f in registry().values() if not inspect.isabstract(f)]


def pytest_generate_tests(metafunc):
    """`case`: two examples of each conjugate family; `family`: those of each that is sampled.

    `model`: all of these. `missing`: with and, where the family takes them, without all cells; of
    a second example without alone.
    """
    only = metafunc.config.getoption("--family", default=[])
    families = {f.__name__: f for f in _concrete()}
    if unknown := set(only) - set(families):
        raise pytest.UsageError(f"--family {', '.join(unknown)}: known are {', '.join(families)}")
    chosen = [f for name, f in families.items() if not only or name in only]
    cases = [Case(family, i) for family in chosen if is_exact(family) for i in _indices(family)]
    cases = {f"{c.family.__name__}-{c.index}": c for c in cases}
    sampled = {
        f"{family.__name__}-{i}": example
        for family in chosen
        if not issubclass(family, ConjugateFamily)
        for i, example in enumerate(examples(family, 3, 2)[:2])
    }
    for name, found in {"case": cases, "family": sampled, "model": cases | sampled}.items():
        if name in metafunc.fixturenames:
            _parametrize(metafunc, name, found)


def _indices(family):
    """Of the first and the last example."""
    return sorted({0, len(examples(family, 3, 4)) - 1})


def _parametrize(metafunc, name, found):
    applies = getattr(metafunc.function, "applies", lambda case: True)
    found = {k: v for k, v in found.items() if applies(v)}
    if "missing" not in metafunc.fixturenames:
        metafunc.parametrize(name, found.values(), ids=found)
        return
    pairs = {}
    for k, value in found.items():
        takes = fits_missing if isinstance(value, Case) else family_takes_missing
        index, both = int(k.rpartition("-")[2]), takes(value)
        for missing in ([True] if index else [False, True]) if both else [False]:
            pairs[f"{k}-{'missing' if missing else 'whole'}"] = value, missing
    metafunc.parametrize((name, "missing"), pairs.values(), ids=pairs)


def only(*conditions):
    """Decorator of a law: of the cases or families for which all conditions hold."""

    def of(law):
        law.applies = lambda case: all(condition(case) for condition in conditions)
        return law

    return of


def first_prior(case) -> bool:
    """For laws that compile a graph for each case."""
    return case.index == 0 if isinstance(case, Case) else case is examples(type(case), 3, 2)[0]


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
    missing = rng.random(X.shape) < share
    missing[0], missing[1] = True, False
    X[missing] = np.nan
    return X


@cache
def has_table(case) -> bool:
    """Whether rows have cells, of which any may be missing."""
    return is_table(case.rows(6)[0])


@cache
def has_real_columns(case) -> bool:
    return is_real(case.rows(24)[0])


@cache
def has_cells_of_both_signs(case) -> bool:
    """Whether cells may be moved: not of positive columns."""
    return bool((case.rows(24)[0] < 0).any())


def takes_missing(case) -> bool:
    """Whether NaN is marginalised in prediction; where not, the family is held to refusing it."""
    return case.family.missing == "marginalised" and has_table(case)


@cache
def fits_missing(case) -> bool:
    """Whether it is in training too."""
    if not takes_missing(case):
        return False
    X, y = case.rows(6)
    try:
        case.stats(with_missing(X, case.rng()), y)
    except ValueError:
        return False
    return True


def family_takes_missing(family) -> bool:
    """Of a sampled family."""
    return family.missing == "marginalised" and not family.discriminative


def has_density(case) -> bool:
    """A family may leave `log_density` out."""
    return case.prior.capability(ThetaDensity) is not None


def in_pymc(case) -> bool:
    """Else the family says why its theta is not what a PyMC model has variables of."""
    return not (case.family if isinstance(case, Case) else case).no_pymc


@cache
def has_defaults(case) -> bool:
    """Whether it can be constructed without numbers."""
    try:
        defaults(case)
    except TypeError:
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
    """The same class and fields, bit for bit; a file makes lists of tuples."""
    assert type(a) is type(b)
    assert json.dumps(a.settings()) == json.dumps(b.settings())
    left, right = a.arrays(), b.arrays()
    assert left.keys() == right.keys()
    for name, (dims, value) in left.items():
        assert dims == right[name][0]
        np.testing.assert_array_equal(value, right[name][1])


def relative_variance(case, posterior, X):
    """(N, C) variance over theta of p(x | theta_c), over its squared mean.

    The mean of the square is the predictive times that after the row.
    """
    before = posterior.log_predictive(X)
    after = np.empty(before.shape)
    for i, c in np.ndindex(*before.shape):
        grown = posterior.update(case.stats(X[i : i + 1], np.array([c])))
        after[i, c] = grown.log_predictive(X[i : i + 1])[0, c]
    return np.exp(after - before) - 1


def likelihood_over_predictive_is_one(case, posterior, X, n_draws: int) -> None:
    """Draws pushed through the likelihood average to the predictive.

    Where a few draws carry all the weight (a row far from its class) the average of any number of
    draws that a test can afford says nothing, and its estimated error neither: such cells are
    known by the variance, and left out.
    """
    variance = relative_variance(case, posterior, X)
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
    arrays = {}
    for name, (dims, value) in record.arrays().items():
        for axis, dim in enumerate(dims):
            if dim in axes and value.shape[axis] == len(old_of_new):
                value = value.take(old_of_new, axis=axis)
        arrays[name] = value
    return record.from_parts(arrays, record.settings())


def defaults(case):
    """The family as constructed without numbers."""
    return case.family(**case.prior.settings())
