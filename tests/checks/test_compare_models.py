"""compare_models against refits, weights by other algorithms, and what it refuses."""

import arviz as az
import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression

import bayesgen as bg
from bayesgen.posterior.drawn import MonteCarloWarning
from tests.checks.test_compare import calibration_error
from tests.drawn import drawn

X, Y = load_wine(return_X_y=True)
X, Y = X[:, :6], np.array(["red", "rose", "white"])[Y]
TRUTH = np.arange(len(Y)), np.unique(Y, return_inverse=True)[1]


@pytest.fixture(scope="module")
def models():
    made = {"tied": bg.GaussianNB(variance="tied"), "nb": bg.GaussianNB()}
    made["qda"] = bg.QuadraticDiscriminant()
    return {name: clf.fit(X, Y) for name, clf in made.items()}


@pytest.fixture(scope="module")
def found(models):
    return bg.compare_models(models, X, Y)


def left_out(clf):
    """(N, C) probabilities of each row under a posterior of all others, one by one."""
    joint, prior, codes = [], clf.prior_, TRUTH[1]
    for i in range(len(Y)):
        others = np.arange(len(Y)) != i
        posterior = prior.update(prior.stats(X[others], codes[others], 3))
        log_x = posterior.family.log_predictive(X[i : i + 1])[0]
        joint.append(log_x + np.log(posterior.mean_weights()))
    return np.exp(log_softmax(joint, axis=1))


def test_scores_are_those_of_refits(models, found):
    terms = {}
    for name, clf in models.items():
        p, row = left_out(clf), found.table.sel(model=name)
        terms[name] = np.log(p[TRUTH])
        hit = p.argmax(axis=1) == TRUTH[1]
        expected = {"elpd": terms[name].sum(), "se": np.sqrt(len(Y)) * terms[name].std()}
        expected |= {"log_loss": -terms[name].mean(), "accuracy": hit.mean()}
        expected |= {"ece": calibration_error(p.max(axis=1), hit)}
        expected |= {"log_evidence": clf.log_evidence_}
        for key, value in expected.items():
            assert float(row[key]) == pytest.approx(value, rel=1e-8, abs=1e-9), key
    names = found.table.model.values.tolist()
    assert names == sorted(terms, key=lambda name: -terms[name].sum())
    for name in names:
        gap, row = terms[name] - terms[names[0]], found.table.sel(model=name)
        assert float(row.elpd_diff) == pytest.approx(gap.sum(), rel=1e-7)
        assert float(row.dse) == pytest.approx(np.sqrt(len(gap)) * gap.std(), rel=1e-7)


def test_stacking_weights_are_the_best_mixture(found):
    """By EM for the weights of a mixture: another algorithm with the same maximum."""
    names = found.table.model.values.tolist()
    density = np.exp([found.loo[name].elpd_i.values for name in names]).T
    w = np.full(len(names), 1 / len(names))
    for _ in range(20_000):
        share = w * density
        w = (share / share.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(found.table.stacking.values, w, atol=0.01)
    assert found.table.stacking.sum() == pytest.approx(1)


def test_exponents_are_those_of_the_pool(models, found):
    names = found.table.model.values.tolist()
    pool = bg.LogLinearPool({name: models[name] for name in names}).fit(X, Y)
    np.testing.assert_allclose(found.table.pool, pool.exponents_, rtol=1e-6)
    both = bg.compare_models({**models, "pool": pool}, X, Y).table.sel(model="pool")
    assert np.isnan(both.log_evidence)
    np.testing.assert_allclose(both.elpd, pool.loo(X, Y).elpd)


def test_arviz_takes_the_entries(found):
    table = az.compare(found.loo, round_to="none")
    for name in table.index:
        row = found.table.sel(model=name)
        assert table.elpd_diff[name] == pytest.approx(float(row.elpd_diff))
        assert table.dse[name] == pytest.approx(float(row.dse))
    az.plot_compare(table, backend="none")


def test_what_it_shows(found):
    text = repr(found)
    assert "not a guide to classification" in text
    assert "by leave-one-out of 178 labels" in text
    assert list(found.to_dataframe().index) == found.table.model.values.tolist()
    assert "<table" in found._repr_html_()


def test_the_favourite_of_the_evidence_is_named():
    """Four columns that depend on each other and not on the class; a fifth whose spread does."""
    rng = np.random.default_rng(3)
    y = np.arange(80) % 2
    rows = rng.normal(size=(80, 1)) + 0.02 * rng.normal(size=(80, 4))
    rows = np.column_stack([rows, rng.normal(size=80) * (1 + 4 * y)])
    models = {"lda": bg.LinearDiscriminant().fit(rows, y), "nb": bg.GaussianNB().fit(rows, y)}
    found = bg.compare_models(models, rows, y)
    assert found.table.model.values.tolist() == ["nb", "lda"]
    assert found.table.log_evidence.diff("model") > 100
    gap, se = -float(found.table.elpd_diff[1]), float(found.table.dse[1])
    text = " ".join(repr(found).split())
    assert f"would choose 'lda', whose elpd is {gap:.1f} (standard error {se:.1f}) below" in text


def test_weights_of_rows_and_rows_of_each_model():
    w, rows = np.where(np.arange(len(Y)) % 3 == 0, 2.0, 1.0), {"two": X[:, :2], "six": X}
    models = {name: bg.GaussianNB().fit(rows[name], Y, w) for name in rows}
    found = bg.compare_models(models, rows, Y, w)
    scores = models["two"].loo(rows["two"], Y, "label", w)
    assert float(found.table.elpd.sel(model="two")) == scores.elpd
    alone = bg.compare_models({"six": models["six"]}, X, Y, w).table
    exponents = bg.LogLinearPool([models["six"]]).fit(X, Y, w).exponents_
    np.testing.assert_allclose(alone.pool, exponents, rtol=1e-6)
    assert alone.stacking.item() == 1
    assert alone.elpd_diff.item() == alone.dse.item() == 0


def test_draws_that_cannot_tell_are_named(models):
    few = drawn(bg.QuadraticDiscriminant(), X, Y, draws=30, chains=2)
    with pytest.warns(MonteCarloWarning, match="draws cannot tell"):
        found = bg.compare_models({"drawn": few, "exact": models["nb"]}, X, Y)
    assert "'drawn' was fitted by draws" in repr(found)
    assert "Pareto k" in repr(found)
    assert np.isnan(found.table.log_evidence.sel(model="drawn"))


def test_refusals(models):
    with pytest.raises(ValueError, match="model 'tied': leave-one-out needs the training rows"):
        bg.compare_models(models, X + 1, Y)
    other = bg.GaussianNB().fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match=r"'tied' has .*'iris' has"):
        bg.compare_models({**models, "iris": other}, X, Y)
    with pytest.raises(TypeError, match="LogisticRegression"):
        bg.compare_models({"lr": LogisticRegression()}, X, Y)
    with pytest.raises(ValueError, match="one or more"):
        bg.compare_models({}, X, Y)
    with pytest.raises(ValueError, match="no rows for"):
        bg.compare_models(models, {"nb": X}, Y)


def test_an_impossible_row_is_no_nan():
    rows = np.array([[0, 1], [1, 1], [1, 0], [0, 0]] * 3)
    y = np.array(["a", "a", "b", "b"] * 3)
    sure = bg.BernoulliNB(1e-300, 1e-300, class_alpha=1e-300).fit(rows, y)
    found = bg.compare_models({"sure": sure, "plain": bg.BernoulliNB().fit(rows, y)}, rows, y)
    assert not np.isnan(found.table.elpd).any()
    assert found.table.stacking.sum() == pytest.approx(1)
