"""The average of a pool and its members alone: by pools fitted apart, bootstrap draws, refits."""

import copy

import numpy as np
import pytest
from sklearn.datasets import load_iris

import bayesgen as bg

MEMBERS = {"naive": bg.GaussianNB(), "linear": bg.LinearDiscriminant()}


@pytest.fixture(scope="module")
def rows():
    X, y = load_iris(return_X_y=True)
    return X[50:120:2], np.array(["versicolor", "virginica"])[y[50:120:2] - 1]


@pytest.fixture(scope="module")
def averaged(rows):
    return bg.LogLinearPool(MEMBERS, average=True).fit(*rows)


@pytest.fixture(scope="module")
def apart(rows):
    """The same pools, each fitted by itself."""
    alone = [bg.LogLinearPool({k: m}, shape=4.0).fit(*rows) for k, m in MEMBERS.items()]
    return [bg.LogLinearPool(MEMBERS).fit(*rows), *alone]


def test_probabilities_are_averaged(averaged, apart):
    X = load_iris().data[1::2]
    weights = averaged.weights_
    assert weights.shape == (3,)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    expected = sum(w * pool.predict_proba(X) for w, pool in zip(weights, apart, strict=True))
    np.testing.assert_allclose(averaged.predict_proba(X), expected, rtol=1e-10)
    np.testing.assert_allclose(averaged.exponents_, apart[0].exponents_)


def test_weights_are_those_of_the_bayesian_bootstrap():
    """Of 200 rows that overlap: sums of their scores are nearly Normal."""
    rng = np.random.default_rng(3)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 2)) @ [[1.0, 0.3], [0.0, 1.0]] + 0.8 * y[:, None]
    pools = [bg.LogLinearPool(MEMBERS)]
    pools += [bg.LogLinearPool({name: clf}, shape=4.0) for name, clf in MEMBERS.items()]
    label = np.stack([pool.fit(X, y).loo(X, y).elpd_i.values for pool in pools])
    share = rng.dirichlet(np.ones(200), size=20_000) * 200
    z = share @ label.T + np.log([0.5, 0.25, 0.25])
    w = np.exp(z - z.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    error = 4 * w.std(axis=0) / np.sqrt(len(w)) + 0.005
    found = bg.LogLinearPool(MEMBERS, average=True).fit(X, y).weights_
    assert (np.abs(found - w.mean(axis=0)) < error).all()
    assert found.min() > 0.02


def test_the_order_of_rows_is_of_no_consequence(rows, averaged):
    X, y = rows
    back = bg.LogLinearPool(MEMBERS, average=True).fit(X[::-1], y[::-1])
    np.testing.assert_allclose(back.weights_, averaged.weights_, rtol=1e-7)
    np.testing.assert_allclose(back.predict_proba(X), averaged.predict_proba(X), atol=1e-8)


def test_terms_add_up_to_the_log_odds():
    X, y = load_iris(return_X_y=True)
    pool = bg.LogLinearPool(MEMBERS | {"quadratic": bg.QuadraticDiscriminant()}, average=True)
    pool.fit(X[::3], y[::3])
    log_p = pool.predict_log_proba(X[1::3])
    for a, b in ((0, 2), (2, 1)):
        found = pool.explain(X[1::3], classes=(a, b))
        np.testing.assert_allclose(found["log_odds"], log_p[:, a] - log_p[:, b], rtol=1e-9)
        total = found["by_feature"].sum("feature") + found["rest"] + found["intercept"]
        np.testing.assert_allclose(total, found["log_odds"], rtol=1e-9)


def test_terms_where_a_weight_has_underflown(rows, averaged):
    pool = copy.copy(averaged)
    pool._average = averaged._average._replace(weights=np.array([0.0, 0.4, 0.6]))
    p = pool.predict_log_proba(rows[0])
    table = pool.explain(rows[0])
    np.testing.assert_allclose(table["log_odds"], np.ptp(p, axis=1), rtol=1e-9)


def test_draws_are_of_the_pool_or_of_one_member(averaged):
    eta, _ = averaged._draw_exponents(np.random.default_rng(0), 4000)
    used = eta > 0
    shares = [used.all(axis=1), used[:, 0] & ~used[:, 1], used[:, 1] & ~used[:, 0]]
    for share, weight in zip(shares, averaged.weights_, strict=True):
        assert abs(share.mean() - weight) < 4 * np.sqrt(weight * (1 - weight) / 4000)


def test_leave_one_out_is_nearly_that_of_refits(rows, averaged):
    X, y = rows
    own = []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        refit = bg.LogLinearPool(MEMBERS, average=True).fit(X[rest], y[rest])
        own.append(refit.predict_log_proba(X[[i]])[0, int(y[i] == "virginica")])
    with_row = averaged.predict_log_proba(X)[np.arange(len(y)), (y == "virginica").astype(int)]
    gap = with_row.sum() - sum(own)
    assert gap > 0
    assert abs(averaged.loo(X, y).elpd - sum(own)) < 0.4 * gap


def test_class_weights_multiply_the_odds(rows, averaged):
    p = averaged.predict_proba(rows[0])
    other = averaged.predict_proba(rows[0], class_prior=[0.9, 0.1])
    frequency = np.unique(rows[1], return_counts=True)[1] + 1.0
    ratio = (0.9 / 0.1) / (frequency[0] / frequency[1])
    np.testing.assert_allclose(other[:, 0] / other[:, 1], ratio * p[:, 0] / p[:, 1], rtol=1e-9)


def test_files_hold_it(rows, averaged, tmp_path):
    averaged.save(tmp_path / "pool.nc")
    back = bg.load(tmp_path / "pool.nc")
    np.testing.assert_array_equal(back.weights_, averaged.weights_)
    np.testing.assert_array_equal(back.predict_proba(rows[0]), averaged.predict_proba(rows[0]))
    one, other = (clf.predict_interval(rows[0][:3], draws=200) for clf in (averaged, back))
    np.testing.assert_array_equal(one["interval"], other["interval"])


def test_where_it_does_not_hold(rows):
    for argument in ({"exponents": "feature"}, {"inference": "nuts"}):
        with pytest.raises(ValueError, match="average=True needs exponents='model'"):
            bg.LogLinearPool([bg.GaussianNB()], average=True, **argument).fit(*rows)
    assert bg.LogLinearPool(MEMBERS).fit(*rows).weights_.tolist() == [1.0]


def test_choice_of_members_is_averaged_by_default(rows):
    pool = bg.LogLinearPool().fit(*rows)
    assert len(pool.weights_) == len(pool.members_) + 1
    assert "Averaged with members alone" in str(pool.summary())
    assert pool.summary().to_dataframe()["weight_alone"].sum() < 1
    assert len(bg.LogLinearPool(average=False).fit(*rows).weights_) == 1
