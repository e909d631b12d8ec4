"""Of every kind of pool, and of a model: intervals, uncertainty and draws are of one law."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import entr, softmax

import bayesgen as bg
from bayesgen.posterior.joint_draws import weights_of_draws


def table(n_classes, n, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n)
    means = rng.normal(size=(n_classes, 4)) * 1.5
    shared = rng.normal(size=(len(y) + 20, 1))
    every = np.r_[y, rng.integers(n_classes, size=20)]
    X = means[every] + rng.normal(size=(len(every), 4)) + shared
    return X[: len(y)], y, X[len(y) :]


def of_table():
    members = [bg.GaussianNB(), bg.LinearDiscriminant()]
    return bg.LogLinearPool(members), *table(3, 13)


def of_a_model():
    return bg.GaussianNB(), *table(3, 13)


def of_one_member():
    return bg.LogLinearPool([bg.GaussianNB()]), *table(2, 20, 3)


def of_counts():
    rng = np.random.default_rng(5)
    y = np.arange(60) % 2
    X = sparse.csr_matrix(rng.poisson(0.3 + 0.5 * (y[:, None] == np.arange(12) % 2)))
    return bg.LogLinearPool([bg.MultinomialNB(), bg.PoissonNB()]), X[:40], y[:40], X[40:]


def of_texts():
    rng = np.random.default_rng(6)
    y = np.arange(60) % 2
    X = np.array(["".join(rng.choice(list("abcd" + "aabb"[2 * c :]), 9)) for c in y], dtype=object)
    return bg.LogLinearPool([bg.MarkovNB(order=1), bg.MarkovNB(order=2)]), X[:40], y[:40], X[40:]


KINDS = (of_a_model, of_table, of_one_member, of_counts, of_texts)


@pytest.mark.usefixtures("few_exponents")
@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
def test_the_three_answers_agree(kind):
    clf, X, y, new = kind()
    clf.fit(X, y)
    table = clf.predict_interval(new, 0.8, "eti")
    np.testing.assert_allclose(table["predictive"], clf.predict_proba(new), rtol=1e-12)
    rho = clf.predict_posterior(new)["predictions/class_probability"].values[0]
    expected = np.moveaxis(np.percentile(rho, [10, 90], axis=0), 0, -1)
    np.testing.assert_allclose(table["interval"], expected, atol=0.01)
    found = clf.predict_uncertainty(new)
    np.testing.assert_allclose(found["mean"], rho.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found["sd"], rho.std(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found["aleatoric"], entr(rho).sum(axis=-1).mean(axis=0), rtol=1e-9)
    alone = clf.predict_interval(new[3:4], 0.8, "eti")["interval"]
    np.testing.assert_allclose(alone, table["interval"][3:4], rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("few_exponents")
def test_draws_of_one_member_are_of_its_densities():
    """By hand: each draw has one theta of a member fitted to randomly weighted rows."""
    clf, X, y, new = of_one_member()
    own = clf.fit(X, y).fitted_.posterior
    rows, new_rows = (clf.fitted_.reader.read(table).encoded for table in (X, new))
    training = (rows, y, np.ones(len(y)))
    drawn = own.log_joint_draws(new_rows, 100, 0, training=lambda: training)
    rho = np.concatenate([softmax(joint[0], axis=2) for _, joint in drawn.blocks], axis=1)
    member = own.members[0].fitted.posterior
    fits = list(member.random_fits(100, 0, lambda: (X, y, np.ones(len(y)))))
    log_pi = np.log([1 + weight @ np.eye(2)[y] for weight in weights_of_draws(100, 0, len(y))])
    which = np.random.default_rng(0).permutation(np.arange(100) % own.n_draws)
    eta, b = (values[which] for values in own.exponents.flat)
    log_x = np.array([fit.drawn_density(new, s) for s, fit in enumerate(fits)])
    logit = eta[:, :, None] * log_x + (log_pi + b)[:, None]
    np.testing.assert_allclose(rho, softmax(logit, axis=2), rtol=1e-9)


@pytest.mark.usefixtures("few_exponents")
def test_a_pool_without_its_training_rows_asks_for_them():
    clf, X, y, new = of_table()
    clf.fit(X, y)
    expected = clf.predict_interval(new)["interval"]
    clf.fitted_ = clf.fitted_.with_training(rows=None)  # they take more than 64 MiB
    with pytest.raises(ValueError, match=r"pass training=\(X, y\)"):
        clf.predict_interval(new)
    found = clf.predict_interval(new, training=(X, y))["interval"]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("estimator", [bg.GaussianNB, bg.QuadraticDiscriminant, bg.MetaTreeForest])
def test_a_fit_of_the_same_weights_is_the_same_fit(estimator):
    X, y, new = table(3, 20)
    weight = np.random.default_rng(7).gamma(2.0, 0.5, len(y))
    options = {} if estimator is bg.MetaTreeForest else {"prior": "default"}
    own = estimator(**options).fit(X, y, sample_weight=weight).fitted_.posterior
    again = own.prior.family.reweighted(X, y, 3, weight, weight)
    expected = own.model.family.log_predictive(new)
    np.testing.assert_allclose(again.log_predictive(new), expected, rtol=1e-9)


def test_row_weights_have_mean_1_and_variance_four_thirds():
    weights = weights_of_draws(500, 8, 400)
    assert weights.mean() == pytest.approx(1.0, abs=5 * np.sqrt(4 / 3 / weights.size))
    assert weights.var() == pytest.approx(4 / 3, rel=0.05)
