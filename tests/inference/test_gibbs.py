"""Missing labels by data augmentation, held to the sum over all labellings."""

from itertools import product

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.inference import sampled
from bayesgen.numerics.special import log_sum_exp
from bayesgen.posterior.drawn import effective_sample_size
from bayesgen.posterior.model import ClassModel
from tests.selection import rest_is_slow

QUIET = {"progressbar": False, "random_state": 3}
RNG = np.random.default_rng(8)
X = RNG.normal(size=(11, 2)) + np.array([0, 1] * 5 + [0])[:, None] * 1.5
CODES = np.array([0, 1, 0, 0, 0, 1, 0, 0, -1, -1, -1])
FAMILIES = {
    "bits": (BetaBernoulli(1.0, 1.0), (X > 0.8).astype(float)),
    "reals": (NormalInverseGamma(0.5, 1.0, 4.0, 1.0), X),
    "pairs": (NormalInverseWishart(shared=True), X),
}


def enumerated(prior: ClassModel, rows: np.ndarray, codes: np.ndarray) -> dict[str, np.ndarray]:
    """E theta, the labellings of the unlabelled rows weighed by their evidence."""
    loose = np.flatnonzero(codes < 0)
    log_p, means = [], []
    for labels in product(range(len(prior.alpha)), repeat=len(loose)):
        whole = codes.copy()
        whole[loose] = labels
        stats = prior.stats(rows, whole, len(prior.alpha))
        log_p.append(prior.log_evidence(stats))
        model = prior.update(stats)
        means.append(model.family.mean() | {"pi": model.mean_weights()})
    share = np.exp(np.array(log_p) - log_sum_exp(np.array(log_p)))
    return {k: np.tensordot(share, np.array([m[k] for m in means]), axes=1) for k in means[0]}


def estimated(draws):
    """Means of (chain, draw, ...) and their Monte Carlo standard errors."""
    draws = np.asarray(draws)
    chain = np.moveaxis(draws.reshape(*draws.shape[:2], -1), -1, 0)
    mcse = chain.std(axis=(1, 2)) / np.sqrt(effective_sample_size(chain))
    return chain.mean(axis=(1, 2)), np.maximum(mcse, 1e-15)


@pytest.mark.parametrize("name", rest_is_slow(FAMILIES, ["bits", "reals"]))
def test_posterior_means_are_those_of_all_labellings(name):
    family, rows = FAMILIES[name]
    known = CODES >= 0
    loose = ClassModel(1.0, family)
    prior = loose.resolve(loose.stats(rows[known], CODES[known], 2))
    draws = sampled.sample_labels(prior, rows, CODES, draws=800, tune=20, chains=2, **QUIET)
    for parameter, expected in enumerated(prior, rows, CODES).items():
        mean, mcse = estimated(draws[parameter])
        assert np.abs((mean - np.ravel(expected)) / mcse).max() < 4.5, parameter


def test_a_row_of_weight_two_is_two_rows():
    rows = FAMILIES["bits"][1]
    prior = ClassModel(np.ones(2), BetaBernoulli(np.ones((2, 2)), np.ones((2, 2))))
    weight = np.ones(len(CODES))
    weight[-1] = 2.0
    draws = sampled.sample_labels(prior, rows, CODES, weight, draws=800, tune=20, chains=2, **QUIET)
    twice = np.append(np.arange(len(CODES)), len(CODES) - 1)
    expected = enumerated(prior, rows[twice], CODES[twice])
    for parameter in ("pi", "theta"):
        mean, mcse = estimated(draws[parameter])
        assert np.abs((mean - np.ravel(expected[parameter])) / mcse).max() < 4.5
    weight[-1] = 1.5
    with pytest.raises(ValueError, match="must be a whole number"):
        sampled.sample_labels(prior, rows, CODES, weight, **QUIET)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of few draws
def test_the_estimator():
    y = np.where(CODES < 0, None, np.array(list("ab"))[CODES])
    few = {"draws": 100, "tune": 20, "chains": 2}
    clf = bg.GaussianNB().fit(X, y, inference="gibbs", **few, **QUIET)
    assert clf.posterior_.attrs["route"] == "gibbs"
    assert clf.posterior_["posterior_predictive"]["imputed_label"].shape == (2, 100, 3)
    p = clf.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    again = bg.GaussianNB().fit(X, y, inference="gibbs", **few, **QUIET)
    np.testing.assert_array_equal(p, again.predict_proba(X))
    with pytest.raises(ValueError, match="no closed form"):
        _ = clf.log_evidence_


@pytest.mark.slow
def test_nuts_says_the_same_of_more_labels_than_can_be_enumerated():
    rng = np.random.default_rng(4)
    truth = np.arange(60) % 2
    rows = rng.normal(size=(60, 2)) + 1.5 * truth[:, None]
    y = np.where(np.arange(60) < 20, truth, -1).astype(object)
    y[y == -1] = None
    found = []
    for inference in ("gibbs", "nuts"):
        clf = bg.GaussianNB().fit(rows, y, inference=inference, draws=1000, chains=4, **QUIET)
        draws = clf.posterior_["posterior"].to_dataset()
        rho = clf.predict_posterior(rows, posterior=clf.posterior_)["predictions"]
        each = draws["pi"], draws["mu"], rho["class_probability"][..., 0]
        found.append(np.concatenate([estimated(values) for values in each], axis=1))
    (a, s), (b, t) = found
    assert np.abs((a - b) / np.hypot(s, t)).max() < 4.5


def test_what_it_cannot_do():
    gap = X.copy()
    gap[0, 0] = np.nan
    y = np.where(CODES < 0, None, np.array(list("ab"))[CODES])
    with pytest.raises(ValueError, match="not missing cells"):
        bg.QuadraticDiscriminant().fit(gap, y, inference="gibbs", **QUIET)
    with pytest.raises(ValueError, match="conjugate posterior, and StudentT has none"):
        bg.StudentTNB(tune=5, draws=5).fit(X, y, inference="gibbs", progressbar=False)
