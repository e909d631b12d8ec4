"""NUTS finds what made the rows: theta of the prior, rows of theta, and a fit to these rows.

That the graph has the density of the rows and its prior is asked in test_pymc; here the sampler
goes through it. theta is a draw of the posterior as the others are, so that the log likelihood of
the rows under it has any rank among theirs; that rank alone is the same for clusters in any order.
"""

from dataclasses import replace

import numpy as np
import pytest

import bayesgen as bg
from tests.laws.cases import examples, family_takes_missing
from tests.laws.test_sampled_families import draws

N, UNLIKELY = 120, 0.002
CLASSIFIERS = {
    "HierarchicalBernoulli": bg.HierarchicalBernoulliNB(random_state=1),
    "LogisticRegression": bg.BayesianLogisticRegression(random_state=1),
    "GaussianMixture": bg.MixtureDiscriminant(2, random_state=1),
    "NegativeBinomial": bg.NegativeBinomialNB(draws=2000, random_state=1),
    "StudentT": bg.StudentTNB(random_state=1),
}


def rows_of(family, theta, rng):
    """Rows and labels of theta; some cells are missing where that is integrated out."""
    y = np.arange(N) % 3
    if family.discriminative:
        X = family.location + family.scale * rng.normal(size=(N, 2))
        p = np.exp(family.log_likelihood(X, theta))
        return X, (rng.random((N, 1)) > p.cumsum(axis=1)).sum(axis=1)
    X = np.asarray(family.simulate(rng, theta, y), dtype=float)
    if family_takes_missing(family):
        X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize("clf", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_theta_is_one_of_the_draws(clf):
    family = examples(clf._family_type, 3, 2)[0]
    if family.discriminative:  # so that every class has rows
        family = replace(family, intercept_scale=0.5)
    theta = {name: value[1] for name, value in draws(family).items()}
    X, y = rows_of(family, theta, np.random.default_rng(7))
    clf.fit(X, y, progressbar=False)  # chains that disagree, or diverge, are warned of
    posterior = clf.posterior_["posterior"].to_dataset()
    found = {name: np.concatenate(posterior[name].values) for name in family.params}
    rows = np.arange(N), y
    fitted = clf.prior_.family.log_likelihood(clf.fitted_.encoded(X), found)[:, *rows].sum(axis=1)
    rank = np.mean(fitted < family.log_likelihood(X, theta)[rows].sum())
    assert UNLIKELY < rank < 1 - UNLIKELY
    if not family.discriminative and "component" not in posterior.dims:
        for name, value in theta.items():
            below = np.mean(found[name] < value, axis=0)
            assert np.all((below > UNLIKELY) & (below < 1 - UNLIKELY)), name
