"""The order of columns, classes and codes does not matter."""

import numpy as np

from bayesgen.families.names import CATEGORY, CLASS, TOKEN
from tests.laws.cases import (
    close,
    has_real_columns,
    has_table,
    is_table,
    only,
    renamed,
    same_posterior,
    with_columns_moved,
)


# the order of tokens is what some families model: no law says that it does not matter
@only(has_table)
def test_permuting_columns_permutes_nothing_but_the_parameters(case):
    X, y = case.rows(20)
    new = np.array([2, 0, 3, 1])
    there = with_columns_moved(case.prior, new)
    Xp = X[:, np.argsort(new)]
    stats, moved = case.stats(X, y), there.stats(Xp, y, case.n_classes)
    close(there.log_evidence(moved), case.prior.log_evidence(stats))
    here, there = case.prior.update(stats), there.update(moved)
    close(there.log_predictive(Xp), here.log_predictive(X))
    same_posterior(with_columns_moved(here, new), there, Xp, moved)


def n_codes(case):
    """Codes of tokens or categories of every column; 0 where none, or not equally many."""
    arrays = case.prior.arrays().values()
    if has_real_columns(case) or any(CATEGORY in d and (v == 0).any() for d, v in arrays):
        return 0
    sizes = {v.shape[d.index(axis)] for d, v in arrays for axis in (CATEGORY, TOKEN) if axis in d}
    return sizes.pop() if len(sizes) == 1 else 0


@only(n_codes)
def test_permuting_codes_of_tokens_or_categories_permutes_nothing_else(case):
    X, y = case.rows(20)
    new = case.rng().permutation(n_codes(case))
    Xp = new[X] if is_table(X) else np.fromiter((new[x] for x in X), dtype=object)
    there = renamed(case.prior, (CATEGORY, TOKEN), new)
    stats, moved = case.stats(X, y), there.stats(Xp, y, case.n_classes)
    close(there.log_evidence(moved), case.prior.log_evidence(stats))
    here, there = case.prior.update(stats), there.update(moved)
    close(there.log_predictive(Xp), here.log_predictive(X))


def test_permuting_classes_permutes_classes(case):
    X, y = case.rows(20)
    new = np.array([2, 0, 1])
    there = renamed(case.prior, (CLASS,), new)
    stats, moved = case.stats(X, y), there.stats(X, new[y], case.n_classes)
    close(there.log_evidence(moved), case.prior.log_evidence(stats))
    here, there = case.prior.update(stats), there.update(moved)
    close(there.log_predictive(X)[:, new], here.log_predictive(X))
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
