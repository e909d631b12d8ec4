"""Priors chosen from the rows: by label score (``"loo"``), by evidence (``"empirical"``)."""

import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine

import bayesgen as bg
from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.inference import chosen_priors
from bayesgen.posterior.fitted import LabelledRows
from bayesgen.posterior.model import ClassModel
from tests.cli.test_cli import run


@pytest.fixture(autouse=True, scope="module")
def stated_priors():
    """Fits choose their prior, as they do for users."""


def few(load, rows, seed=0):
    """(training rows, their labels, the others, theirs) with some rows of each class."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    train = np.concatenate([order[y[order] == c][:rows] for c in np.unique(y)])
    others = np.setdiff1d(order, train)
    return X[train], y[train], X[others], y[others]


REALS, Y, _, _ = few(load_wine, 12)
BITS = (np.median(REALS, axis=0) < REALS).astype(int)
COUNTS = np.floor(REALS / REALS.std(axis=0)).astype(int)
MIXED = np.c_[REALS[:, :3], BITS[:, 3:6]]
KINDS = {"gaussian": [0, 1, 2], "bernoulli": [3, 4, 5]}
EXACT = {
    "GaussianNB": (bg.GaussianNB, REALS),
    "GaussianNB tied": (partial(bg.GaussianNB, variance="tied"), REALS),
    "BernoulliNB": (bg.BernoulliNB, BITS),
    "CategoricalNB": (bg.CategoricalNB, BITS),
    "MultinomialNB": (bg.MultinomialNB, sp.csr_matrix(COUNTS)),
    "PoissonNB": (bg.PoissonNB, COUNTS),
    "MixedNB": (bg.MixedNB, MIXED),
    "two kinds": (partial(bg.MixedNB, columns=KINDS), MIXED),
}
CASES = EXACT | {  # scored by folds: their scales are chosen too
    "LinearDiscriminant": (bg.LinearDiscriminant, REALS),
    "QuadraticDiscriminant": (bg.QuadraticDiscriminant, REALS),
    "given psi0": (partial(bg.QuadraticDiscriminant, psi0=2.0), REALS),
}
some = pytest.mark.parametrize("name", ["GaussianNB", "QuadraticDiscriminant", "MixedNB"])


@pytest.mark.parametrize("name", EXACT)
def test_the_score_is_never_below_that_of_the_default(name):
    make, X = EXACT[name]
    default, best = make(prior="default").fit(X, Y), make(prior="loo").fit(X, Y)
    assert best.loo(X, Y).elpd >= default.loo(X, Y).elpd
    np.testing.assert_array_equal(best.prior_.alpha, default.prior_.alpha)


def penalty(factors, n_rows):
    """Minus the log density of a prior: log factors are Normal about log 2."""
    variance = np.log(2) ** 2 * (1 + n_rows / 100)
    return np.square(np.log(factors / 2)).sum() / (2 * variance)


def search_of(family, X, y, groups=None):
    model = ClassModel(1.0, family)
    stats = model.stats(X, y, y.max() + 1)
    return chosen_priors._Search(
        family, model.resolve(stats), stats, LabelledRows(X, y, np.ones(len(y)), groups)
    )


@pytest.mark.parametrize("shared", [False, True])
def test_scales_that_rows_teach_are_scored_by_fits_to_the_other_folds(shared):
    X = REALS[:, :5]
    search = search_of(NormalInverseWishart(shared=shared), X, Y)
    assert sorted(np.concatenate([fold.rows for fold in search.folds])) == list(range(len(Y)))
    score = 0.0
    for fold in search.folds:
        others = np.setdiff1d(np.arange(len(Y)), fold.rows)
        make = bg.LinearDiscriminant if shared else bg.QuadraticDiscriminant
        log_p = make(prior="default").fit(X[others], Y[others]).predict_log_proba(X[fold.rows])
        score += log_p[np.arange(len(log_p)), Y[fold.rows]].sum()
    start = chosen_priors._Point((0,), (0.0,) * 3)
    np.testing.assert_allclose(search._score(start), score, rtol=1e-9)


def test_a_fold_holds_all_of_a_group_or_nothing():
    groups = np.arange(len(Y)) // 3 * 7
    folds = search_of(NormalInverseGamma(), REALS, Y, groups).folds
    of_each = [set(groups[fold.rows]) for fold in folds]
    assert len(set.union(*of_each)) == sum(map(len, of_each)) == 12


def columns(n, seed, correlated):
    """25 columns of two classes that differ in their standard deviations alone."""
    rng = np.random.default_rng([42, correlated])
    sd = np.sqrt([rng.uniform(2, 3, 25), rng.uniform(0.2, 1, 25)])
    mix = rng.normal(size=(25, 25)) * rng.gamma(1, 1, 25) if correlated else np.eye(25)
    mix /= np.linalg.norm(mix, axis=1, keepdims=True)
    y = np.repeat([0, 1], n)
    return np.random.default_rng(seed).normal(size=(2 * n, 25)) @ mix.T * sd[y], y


@pytest.mark.parametrize(("correlated", "most"), [(False, 0.05), (True, 0.03)])
def test_many_columns_of_classes_with_other_scales(correlated, most):
    """Log losses of .51 and .25 under the stated prior."""
    (X, y), (T, t) = columns(50, 1, correlated), columns(300, 2, correlated)
    clf = bg.QuadraticDiscriminant().fit(X, y)
    assert -clf.predict_log_proba(T)[np.arange(600), t].mean() < most
    assert "standard deviations of each class" in str(clf.summary())


@some
def test_fits_in_parts_have_the_stated_prior(name):
    make, X = CASES[name]
    stated, without_five = make(prior="default").fit(X, Y), make(prior="default").fit(X[5:], Y[5:])
    assert make().fit(X, Y).fitted_.training.prior.factors
    one, other = ((X[part], Y[part]) for part in (slice(0, None, 2), slice(1, None, 2)))
    for clf, same in (
        (make().fit(*one).partial_fit(*other), stated),
        (make().fit(*one).merge(make().fit(*other)), stated),
        (bg.fit_stream(make(), [one, other]), stated),
        (make().fit(X, Y).forget(X[:5], Y[:5]), without_five),
    ):
        np.testing.assert_allclose(clf.predict_proba(X), same.predict_proba(X), rtol=1e-6)
        assert "chosen by" not in str(clf.summary())


def test_a_hyper_parameter_that_is_given_stays():
    X, y = few(load_breast_cancer, 12)[:2]
    assert bg.GaussianNB(kappa0=0.5).fit(X, y).prior_.family.kappa.max() == 0.5
    assert bg.GaussianNB(kappa0=0.5, prior="loo").fit(X, y).prior_.family.kappa.max() > 0.5


@some
def test_the_choice_is_told_and_kept(name, tmp_path):
    make, X = CASES[name]
    clf = make(prior="loo").fit(X, Y)
    words = clf.fitted_.training.prior.words()
    assert words.startswith("Prior chosen by leave-one-out (prior='loo'): ")
    assert words in str(clf.summary())
    assert clf.draw_posterior(2).attrs["prior"] == words
    clf.save(tmp_path / "model.nc")
    loaded = bg.load(tmp_path / "model.nc")
    for again in (loaded, pickle.loads(pickle.dumps(clf))):
        assert words in str(again.summary())
        np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
        for field, (_, value) in clf.prior_.family.arrays().items():
            np.testing.assert_array_equal(again.prior_.family.arrays()[field][1], value)
    with pytest.raises(ValueError, match="the training rows themselves"):
        loaded.partial_fit(X, Y)
    np.testing.assert_array_equal(loaded.fit(X, Y).predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize("rows", [[0], [0, 1], [0, 0, 0, 1, 2]])
@pytest.mark.parametrize("model", [bg.GaussianNB, bg.LinearDiscriminant, bg.QuadraticDiscriminant])
def test_next_to_no_rows(model, rows):
    """Classes of one row, and one class alone, choose no factor by the noise of so few scores."""
    X = np.random.default_rng(0).normal(size=(len(rows), 3)) + np.array(rows)[:, None]
    p = model().fit(X, rows).predict_proba(X)
    assert np.isfinite(p).all()


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_rows_changes_nothing(name):
    make, X = CASES[name]
    order = np.random.default_rng(1).permutation(len(Y))
    one, other = make(prior="loo").fit(X, Y), make(prior="loo").fit(X[order], Y[order])
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), rtol=1e-7, atol=1e-12)


def test_nor_where_a_part_of_the_rows_is_scored(monkeypatch):
    monkeypatch.setattr(chosen_priors, "_MOST_ROWS", 20)
    X = sp.csr_matrix(COUNTS)
    order = np.random.default_rng(1).permutation(len(Y))
    orders = ((X, Y), (X[order], Y[order]))
    parts = [search_of(DirichletMultinomial(), *rows).scored for rows in orders]
    tokens = [sorted(map(tuple, part.X.toarray())) for part in parts]
    assert tokens[0] == tokens[1]
    assert len(parts[0].codes) == 20
    assert len(np.unique(parts[0].codes)) == 3  # of rows in the order of their classes
    fits = [bg.MultinomialNB(prior="loo").fit(*rows) for rows in orders]
    np.testing.assert_array_equal(*(f.prior_.family.alpha for f in fits))


@pytest.mark.parametrize("seed", range(2))
def test_no_step_of_a_factor_has_a_larger_penalised_score(seed):
    """The score by `loo`, and the prior of the log factor."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], 15)
    X = rng.poisson(rng.gamma(0.5, size=(2, 12))[y] * rng.gamma(2.0, size=(30, 1)))

    def scores(alpha):
        elpd = float(bg.MultinomialNB(alpha, prior="default").fit(X, y).loo(X, y).elpd)
        return elpd, elpd - penalty(np.array(alpha), 30)

    factor = float(bg.MultinomialNB(prior="loo").fit(X, y).prior_.family.alpha.flat[0])
    default, (_, best) = scores(1.0), scores(factor)
    assert best >= default[1]
    for other in (factor / np.sqrt(2), factor * np.sqrt(2)):
        elpd, penalised = scores(other)
        assert penalised <= best + 0.01 or elpd < default[0] + 0.01


def test_classes_that_differ_in_nothing_but_rows_keep_the_default():
    X = np.zeros((10, 1))
    fits = [bg.GaussianNB(prior=p).fit(X, [0] * 5 + [1] * 5) for p in ("default", "loo")]
    np.testing.assert_array_equal(*(f.prior_.family.nu for f in fits))


def test_a_limit_that_is_met_is_told():
    X, y, _, _ = few(load_breast_cancer, 20)
    with pytest.warns(UserWarning, match="no interior maximum in kappa; the factor stopped at 100"):
        best = bg.LinearDiscriminant(prior="empirical").fit(X, y)
    np.testing.assert_allclose(best.prior_.family.kappa, 10.0, rtol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bg.LinearDiscriminant(prior="empirical").fit(*load_wine(return_X_y=True))


def test_the_command_line_chooses_the_prior_that_python_does(tmp_path):
    frame = pd.DataFrame(REALS).add_prefix("x")
    data, file = tmp_path / "wine.csv", tmp_path / "wine.nc"
    frame.assign(label=Y).to_csv(data, index=False)
    run("fit", data, "--target", "label", "--model", "gaussian", "-o", file)
    loaded, expected = bg.load(file), bg.GaussianNB().fit(frame, Y)
    np.testing.assert_allclose(
        loaded.predict_proba(frame), expected.predict_proba(frame), rtol=1e-9
    )
