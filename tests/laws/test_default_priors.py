"""Default priors: the same for chunks, equivariant under shift and scale."""

import numpy as np
import pytest

from bayesgen.families.names import CLASS
from tests.laws.cases import (
    close,
    defaults,
    has_cells_of_both_signs,
    has_defaults,
    has_real_columns,
    only,
    renamed,
    same_posterior,
)


@only(has_defaults)
def test_default_priors_resolve_alike_for_chunks(case):
    X, y = case.rows(20)
    default, stats = defaults(case), case.stats(X, y)
    merged = case.stats(X[:3], y[:3]).merge(case.stats(X[3:], y[3:]))
    resolved = default.resolve(stats)
    same_posterior(resolved, default.resolve(merged), X, stats)
    same_posterior(resolved, resolved.resolve(stats), X, stats, tol=1e-14)
    new = np.array([2, 0, 1])
    moved = stats.reindex_classes(new, 3)
    same_posterior(renamed(resolved, (CLASS,), new), default.resolve(moved), X, moved)


@only(has_real_columns, has_defaults, has_cells_of_both_signs)
@pytest.mark.parametrize("n", [24, 3], ids=["many_rows", "few_rows"])
def test_default_priors_are_equivariant_under_shift_and_scale(case, n):
    X, y = case.rows(24)
    default = defaults(case)
    # a column without two values in the rows learnt from has no unit, and is left out
    X = np.where([len({*x}) < 2 for x in X[:n].T], np.nan, X)
    scales = [np.full(4, -3.7)]
    if not any("spherical" in str(v) for v in case.prior.settings().values()):
        scales += [np.array([-3.7, 0.01, 25.0, 1.0])]  # else one variance: one unit
    move = np.array([100.0, -7.0, 0.0, 3.0])

    def density(X):
        stats = case.prior.stats(X[:n], y[:n], case.n_classes)
        prior = default.resolve(stats)
        return prior.log_predictive(X), prior.update(stats).log_predictive(X)

    for scale in scales:
        for there, known in zip(density(X * scale + move), density(X), strict=True):
            prior = default.resolve(case.stats(X[:n], y[:n]))  # constant columns are left out
            counted = ~np.isnan(X) & ~getattr(prior, "ignored", np.False_)
            jacobian = (np.log(np.abs(scale)) * counted).sum(axis=1, keepdims=True)
            close(there + jacobian, known, 1e-8)  # shifted data have lost a few digits themselves


EXTREME = np.array([1e-150, 1e150, 1e77, 1e-80])  # one after the other, and mixed


@only(has_real_columns, has_defaults)
def test_scales_from_1e_150_to_1e150_change_nothing(case):
    X, y = case.rows(24)
    default = defaults(case)
    scales = [np.full(4, s) for s in EXTREME]
    if not any("spherical" in str(v) for v in case.prior.settings().values()):
        scales += [EXTREME]  # else one variance: one unit

    def found(X):
        stats = case.prior.stats(X, y, case.n_classes)
        prior = default.resolve(stats)
        posterior = prior.update(stats)
        theta = posterior.draw(case.rng(3), 20)
        # ratios of classes and of draws, from which the unit goes out
        yield from (np.diff(f.log_predictive(X), axis=1) for f in (prior, posterior))
        yield np.diff(posterior.log_likelihood(X, theta), axis=2)

    for scale in scales:
        with np.errstate(over="raise", invalid="raise"):
            for there, here in zip(found(X * scale), found(X), strict=True):
                close(there, here, 1e-8)


@only(has_real_columns, has_defaults, has_cells_of_both_signs)
def test_an_offset_of_1e10_costs_no_digits(case):
    X, y = case.rows(24)
    X = np.round(X * 1024) / 1024  # so that the offset is exact
    default = defaults(case)

    def density(X):
        parts = (slice(0, 9), slice(9, 15), slice(15, 24), slice(0, 0))
        a, b, c, none = (case.prior.stats(X[s], y[s], case.n_classes) for s in parts)
        stats = none.merge(a.merge(b).merge(c).remove(b))
        prior = default.resolve(stats)
        posterior = prior.update(stats)
        moved = posterior.update(b)
        yield from (f.log_predictive(X) for f in (prior, posterior, moved))
        yield np.array(prior.log_evidence(stats))

    for there, here in zip(density(X + 1e10), density(X), strict=True):
        close(there, here)
