"""compare_models against refits, weights by other algorithms, and what it refuses."""

import arviz as az
import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression

import bayesgen as bg
from bayesgen.posterior.drawn import MonteCarloWarning
from tests.drawn import drawn


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X[:, :6], np.array(["red", "rose", "white"])[y]


@pytest.fixture(scope="module")
def models(wine):
    make = {
        "tied": bg.GaussianNB(variance="tied"),
        "nb": bg.GaussianNB(),
        "qda": bg.QuadraticDiscriminant(),
    }
    return {name: clf.fit(*wine) for name, clf in make.items()}


@pytest.fixture(scope="module")
def found(models, wine):
    return bg.compare_models(models, *wine)


def left_out(clf, X, y):
    """(N, C) probabilities of each row under a posterior of all others, one by one."""
    out = []
    codes = np.searchsorted(clf.classes_, y)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        prior = clf.prior_
        posterior = prior.update(prior.stats(X[others], codes[others], len(clf.classes_)))
        joint = posterior.family.log_predictive(X[i : i + 1])[0] + np.log(posterior.mean_weights())
        out.append(np.exp(joint - np.logaddexp.reduce(joint)))
    return np.array(out), codes


def test_scores_are_those_of_refits(models, found, wine):
    terms = {}
    for name, clf in models.items():
        p, codes = left_out(clf, *wine)
        row = found.table.sel(model=name)
        terms[name] = np.log(p[np.arange(len(codes)), codes])
        assert float(row.elpd) == pytest.approx(terms[name].sum(), rel=1e-8)
        assert float(row.se) == pytest.approx(np.sqrt(len(codes)) * terms[name].std(), rel=1e-8)
        assert float(row.log_loss) == pytest.approx(-terms[name].mean(), rel=1e-8)
        assert float(row.accuracy) == np.mean(p.argmax(axis=1) == codes)
        top, right = p.max(axis=1), p.argmax(axis=1) == codes
        place = np.digitize(top, np.arange(1, 15) / 15)
        ece = sum(
            np.mean(place == k) * abs(right[place == k].mean() - top[place == k].mean())
            for k in np.unique(place)
        )
        assert float(row.ece) == pytest.approx(ece, abs=1e-9)
        assert float(row.log_evidence) == clf.log_evidence_
    names = found.table.model.values.tolist()
    assert names == sorted(terms, key=lambda name: -terms[name].sum())
    for name in names:
        gap = terms[name] - terms[names[0]]
        row = found.table.sel(model=name)
        assert float(row.elpd_diff) == pytest.approx(gap.sum(), rel=1e-7)
        assert float(row.dse) == pytest.approx(np.sqrt(len(gap)) * gap.std(), rel=1e-7)


def test_stacking_weights_are_the_best_mixture(models, found, wine):
    """By EM for the weights of a mixture: another algorithm with the same maximum."""
    names = found.table.model.values.tolist()
    density = np.exp([found.loo[name].elpd_i.values for name in names]).T
    w = np.full(len(names), 1 / len(names))
    for _ in range(20_000):
        share = w * density
        w = (share / share.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(found.table.stacking.values, w, atol=0.01)
    assert found.table.stacking.sum() == pytest.approx(1)


def test_exponents_are_those_of_the_pool(models, found, wine):
    names = found.table.model.values.tolist()
    pool = bg.LogLinearPool({name: models[name] for name in names}).fit(*wine)
    np.testing.assert_allclose(found.table.pool, pool.exponents_, rtol=1e-6)


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
    X = rng.normal(size=(80, 1)) + 0.02 * rng.normal(size=(80, 4))
    X = np.column_stack([X, rng.normal(size=80) * (1 + 4 * y)])
    models = {"lda": bg.LinearDiscriminant().fit(X, y), "nb": bg.GaussianNB().fit(X, y)}
    found = bg.compare_models(models, X, y)
    assert found.table.model.values.tolist() == ["nb", "lda"]
    assert found.table.log_evidence.diff("model") > 100
    gap, se = -float(found.table.elpd_diff[1]), float(found.table.dse[1])
    text = " ".join(repr(found).split())
    assert f"would choose 'lda', whose elpd is {gap:.1f} (standard error {se:.1f}) below" in text


def test_weights_of_rows_and_rows_of_each_model(wine):
    X, y = wine
    w = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    models = {"two": bg.GaussianNB().fit(X[:, :2], y, w), "six": bg.GaussianNB().fit(X, y, w)}
    found = bg.compare_models(models, {"two": X[:, :2], "six": X}, y, w)
    assert (
        float(found.table.elpd.sel(model="two")) == models["two"].loo(X[:, :2], y, "label", w).elpd
    )
    pool = bg.LogLinearPool([models[str(found.table.model.values[0])]])
    assert found.table.pool.dtype == float
    rows = {"two": X[:, :2], "six": X}[str(found.table.model.values[0])]
    alone = bg.compare_models({"only": pool.members[0]}, rows, y, w)
    np.testing.assert_allclose(alone.table.pool, pool.fit(rows, y, w).exponents_, rtol=1e-6)


def test_one_model(models, wine):
    found = bg.compare_models({"nb": models["nb"]}, *wine)
    assert found.table.stacking.item() == 1
    assert found.table.elpd_diff.item() == found.table.dse.item() == 0


def test_draws_that_cannot_tell_are_named(wine):
    X, y = wine
    few = drawn(bg.QuadraticDiscriminant(), X, y, draws=30, chains=2)
    with pytest.warns(MonteCarloWarning, match="draws cannot tell"):
        found = bg.compare_models({"drawn": few, "exact": bg.GaussianNB().fit(X, y)}, X, y)
    assert "'drawn' was fitted by draws" in repr(found)
    assert "Pareto k" in repr(found)
    assert np.isnan(found.table.log_evidence.sel(model="drawn"))


def test_a_pool_beside_its_members(models, wine):
    X, y = wine
    pool = bg.LogLinearPool(models).fit(X, y)
    found = bg.compare_models({**models, "pool": pool}, X, y)
    assert np.isnan(found.table.log_evidence.sel(model="pool"))
    np.testing.assert_allclose(found.table.elpd.sel(model="pool"), pool.loo(X, y).elpd)


def test_refusals(models, wine):
    X, y = wine
    with pytest.raises(ValueError, match="model 'tied': leave-one-out needs the training rows"):
        bg.compare_models(models, X + 1, y)
    other = bg.GaussianNB().fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match=r"'tied' has .*'iris' has"):
        bg.compare_models({**models, "iris": other}, X, y)
    with pytest.raises(TypeError, match="LogisticRegression"):
        bg.compare_models({"lr": LogisticRegression()}, X, y)
    with pytest.raises(ValueError, match="one or more"):
        bg.compare_models({}, X, y)
    with pytest.raises(ValueError, match="no rows for"):
        bg.compare_models(models, {"nb": X}, y)


def test_an_impossible_row_is_no_nan():
    X = np.array([[0, 1], [1, 1], [1, 0], [0, 0]] * 3)
    y = np.array(["a", "a", "b", "b"] * 3)
    sure = bg.BernoulliNB(1e-300, 1e-300, class_alpha=1e-300).fit(X, y)
    found = bg.compare_models({"sure": sure, "plain": bg.BernoulliNB().fit(X, y)}, X, y)
    assert not np.isnan(found.table.elpd).any()
    assert found.table.stacking.sum() == pytest.approx(1)
