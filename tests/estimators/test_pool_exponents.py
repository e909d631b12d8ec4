"""Numbers of pools: the exponents and what they do, calibration, leave-one-out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer

import bayesgen as bg
from bayesgen.encoding.suspects import ColumnWarning
from bayesgen.inference.exponents import sample
from bayesgen.posterior.pooled import Evidence, LogLinear, comparable
from tests.inference.test_exponents import log_posterior


@pytest.fixture(scope="module")
def flowers(iris):
    X, y = iris
    return X[::3], y[::3]


@pytest.fixture(scope="module")
def pool(flowers):
    return bg.LogLinearPool([bg.GaussianNB(), bg.LinearDiscriminant()]).fit(*flowers)


def test_definition(flowers, pool):
    X, y = flowers
    fits = [bg.GaussianNB().fit(X, y), bg.LinearDiscriminant().fit(X, y)]
    rows = np.arange(len(y))
    others = np.full((len(y), 3), np.bincount(y) + 1.0)  # rows of each class, and a pseudo-count
    others[rows, y] -= 1
    log_pi = np.log(others / (len(y) + 2))
    scores = comparable(np.stack([f.loo_log_joint(X, y) - log_pi for f in fits]))
    evidence = Evidence(scores, log_pi, np.ones(len(y)))
    drawn = sample(evidence, y, np.ones(len(y)), LogLinear(1 / 2))
    np.testing.assert_allclose(pool.exponents_, drawn.exponents.mean(axis=(0, 1)))
    log_w = np.log((np.bincount(y) + 1) / (len(y) + 3))
    densities = [f.predict_joint_log_proba(X) - log_w for f in fits]
    logit = np.einsum("cdm,mnk->cdnk", drawn.exponents, densities) + log_w
    p = np.exp(log_softmax(logit + drawn.intercepts[:, :, None], axis=-1)).mean(axis=(0, 1))
    np.testing.assert_allclose(pool.predict_proba(X), p, atol=1e-9)


def test_one_member_is_calibrated():
    X, y = load_breast_cancer(return_X_y=True)
    train = np.arange(len(y)) % 3 != 2
    plain = bg.GaussianNB().fit(X[train], y[train])
    pool = bg.LogLinearPool([bg.GaussianNB()]).fit(X[train], y[train])
    test = np.flatnonzero(~train)

    def loss(clf):
        return -clf.predict_log_proba(X[test])[np.arange(len(test)), y[test]].mean()

    assert pool.exponents_[0] < 0.2
    assert loss(pool) < 0.35 * loss(plain)
    assert "overconfident" in repr(pool.summary())


def rare_rows(rng, n, share):
    """Rows of a rare class that two dependent columns tell, and a third a little."""
    y = (np.arange(n) < share * n).astype(int)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 3 * y
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    X[:, 2] += 0.5 * y
    return pd.DataFrame(X, columns=list("abcd")), y


def test_rows_that_lack_the_strong_columns_are_calibrated():
    """Exponents temper the evidence and not the class weights."""
    rng = np.random.default_rng(0)
    X, y = rare_rows(rng, 1000, 0.03)
    new, truth = rare_rows(rng, 4000, 0.03)
    pool = bg.LogLinearPool().fit(X, y)
    p = pool.predict_proba(new.assign(a=np.nan, b=np.nan))[:, 1]
    assert 0.02 < p.mean() < 0.045

    def loss(p):
        return -np.log(np.where(truth == 1, p, 1 - p)).mean()

    assert loss(p) < 1.01 * loss(truth.mean())


@pytest.mark.usefixtures("few_exponents")
def test_a_column_without_cells_is_no_column_whose_cells_are_unknown(flowers):
    X, y = flowers
    wider = np.c_[X, np.full(len(y), np.nan)]
    fitted = bg.LogLinearPool([bg.MixedNB()]).fit(wider, y).fitted_
    np.testing.assert_array_equal(fitted.encoded(wider).known(fitted.posterior.members), 1)


@pytest.mark.usefixtures("few_exponents")
@pytest.mark.parametrize("gaps", [False, True])
def test_a_row_without_cells_has_the_class_frequencies(gaps):
    X, y = rare_rows(np.random.default_rng(0), 100, 0.1)
    if gaps:
        X.loc[::7, "a"] = np.nan
    empty = bg.LogLinearPool().fit(X, y).predict_proba(X.iloc[:1] * np.nan)
    np.testing.assert_allclose(empty, [[91 / 102, 11 / 102]], rtol=1e-12)


class DrawnNB(bg.GaussianNB):
    """A classifier whose fit is known by draws, without a sampler."""

    def fit(self, X, y, sample_weight=None, **options):
        super().fit(X, y, sample_weight, **options)
        self.fitted_ = self.with_posterior(self.draw_posterior(400)).fitted_
        return self


def test_a_sampled_member_takes_part_by_importance_sampling(iris):
    X, y = iris
    pool = bg.LogLinearPool([DrawnNB(), bg.GaussianNB()]).fit(X, y)
    evidence, codes, *_ = pool.fitted_.posterior.scored
    a, b = log_softmax(evidence.scores, axis=2)[:, np.arange(len(y)), codes]
    np.testing.assert_allclose(a, b, atol=0.1)
    assert "importance sampling" in repr(pool.summary())
    assert pool.predict_interval(X[:3])["interval"].shape == (3, 3, 2)


def test_leave_one_out_is_lower_than_the_score_of_rows_that_were_learnt():
    """Of one row it is that of a refit: tests/inference/test_exponents."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 16)
    X = rng.normal(size=(48, 3)) + rng.normal(size=(48, 1)) + y[:, None] * [1.0, 0.8, 0.0]
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.GaussianNB(variance="tied")]).fit(X, y)
    loo = pool.loo(X, y)
    in_sample = pool.predict_log_proba(X)[np.arange(len(y)), y].sum()
    assert loo.elpd < in_sample - 4  # nats
    np.testing.assert_allclose(loo.p, in_sample - loo.elpd)
    assert loo.pareto_k.max() < 0.7


def test_pymc_density_is_that_of_the_draws(pool):
    """The compiled log density of (log eta, b), up to a constant."""
    logp = pool.to_pymc().compile_logp(mode="FAST_COMPILE")
    rng = np.random.default_rng(0)
    values, posterior = [], pool.fitted_.posterior
    for _ in range(3):
        u, b = rng.normal(size=2), rng.normal(size=3)
        density = (
            log_posterior(np.exp(u), b, *posterior.scored[:3], posterior.prior.family) + u.sum()
        )
        values.append(float(logp({"exponent_log__": u, "intercept": b})) - density)
    np.testing.assert_allclose(values, 0, atol=1e-6)


def test_categories_of_single_rows_do_not_tell_the_label_left_out():
    """A class that has lost a row is one row smaller than the others of a balanced design."""
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1, 2], 14)
    names = [f"p{i}" for i in range(30)] + ["q", "r", "s"] * 4
    X = pd.DataFrame({"x": rng.normal(size=42), "who": rng.permutation(names)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # so many categories
        pool = bg.LogLinearPool().fit(X, y)
        only = bg.LogLinearPool().fit(X.iloc[:30].assign(who=names[:30]).drop(columns="x"), y[:30])
    evidence, codes, *_ = pool.fitted_.posterior.scored
    score = log_softmax(evidence.scores + evidence.log_weights, axis=2)[:, np.arange(42), codes]
    assert (score.mean(axis=1) < 0.8 * np.log(1 / 3)).all()  # labels at random: none knows more
    assert {"linear", "quadratic on normal scores"} <= {*only.left_out_}
