"""Priors chosen from the rows: by label score (``"loo"``), by evidence (``"empirical"``)."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import bayesgen as bg


def few(load, rows, seed=0):
    """(training rows, their labels, the others, theirs) with some rows of each class."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    train = np.concatenate([order[y[order] == c][:rows] for c in np.unique(y)])
    rest = np.setdiff1d(order, train)
    return X[train], y[train], X[rest], y[rest]


def reals():
    return few(load_wine, 12)[:2]


def bits():
    X, y = reals()
    return (np.median(X, axis=0) < X).astype(int), y


def counts():
    X, y = reals()
    return np.floor(X / X.std(axis=0)).astype(int), y


def mixed():
    X, y = reals()
    return np.c_[X[:, :3], bits()[0][:, 3:6]], y


CASES = {
    "GaussianNB": (bg.GaussianNB, reals),
    "GaussianNB tied": (lambda: bg.GaussianNB(variance="tied"), reals),
    "LinearDiscriminant": (bg.LinearDiscriminant, reals),
    "QuadraticDiscriminant": (bg.QuadraticDiscriminant, reals),
    "given psi0": (lambda: bg.QuadraticDiscriminant(psi0=2.0), reals),
    "BernoulliNB": (bg.BernoulliNB, bits),
    "CategoricalNB": (bg.CategoricalNB, bits),
    "MultinomialNB": (bg.MultinomialNB, counts),
    "sparse": (bg.MultinomialNB, lambda: (sp.csr_matrix(counts()[0]), counts()[1])),
    "PoissonNB": (bg.PoissonNB, counts),
    "MixedNB": (bg.MixedNB, mixed),
    "two kinds": (
        lambda: bg.MixedNB(columns={"gaussian": [0, 1, 2], "bernoulli": [3, 4, 5]}),
        mixed,
    ),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def label_score(clf, X, y):
    """Sum over rows of the log probability of the label by a fit to the other rows.

    Hyper-parameters stay those of `clf`: each fit gets them as arguments.
    """
    total = 0.0
    family, alpha = clf.prior_.family, clf.prior_.alpha
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        own = bg.GenerativeClassifier(family, class_alpha=alpha).fit(X[rest], y[rest])
        total += own.predict_log_proba(X[[i]])[0, y[i]]
    return total


@cases
def test_the_score_is_never_below_that_of_the_default(case):
    make, data = case
    X, y = data()
    default = make().fit(X, y)
    best = make().set_params(prior="loo").fit(X, y)
    assert best.loo(X, y).elpd >= default.loo(X, y).elpd
    np.testing.assert_array_equal(best.prior_.alpha, default.prior_.alpha)


@pytest.mark.parametrize("name", ["GaussianNB", "QuadraticDiscriminant", "BernoulliNB"])
def test_the_score_by_refitting_is_better_by_the_penalty_at_least(name):
    make, data = CASES[name]
    X, y = data() if name == "BernoulliNB" else few(load_breast_cancer, 12)[:2]
    default, best = make().fit(X, y), make().set_params(prior="loo").fit(X, y)
    gain = label_score(best, X, y) - label_score(default, X, y)
    family, other = best.prior_.family, default.prior_.family
    logs = [
        np.log(np.ravel(getattr(family, own))[0] / np.ravel(getattr(other, own))[0])
        for own in family.tunable
        if own != "nu" and own != "psi"  # of a full covariance: not the factors themselves
    ]
    assert gain > 0
    assert gain > np.square(logs).sum() / (2 * np.log(3) ** 2)


@cases
def test_the_order_of_rows_changes_nothing(case):
    make, data = case
    X, y = data()
    order = np.random.default_rng(1).permutation(len(y))
    one = make().set_params(prior="loo").fit(X, y)
    other = make().set_params(prior="loo").fit(X[order], y[order])
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_nor_where_a_part_of_the_rows_is_scored(kind, monkeypatch):
    from bayesgen.inference import chosen_priors

    monkeypatch.setattr(chosen_priors, "_MOST_ROWS", 20)
    X, y = counts()
    X = sp.csr_matrix(X) if kind == "sparse" else X
    order = np.random.default_rng(1).permutation(len(y))
    rows = chosen_priors._scored(chosen_priors.LabelledRows(X, y))
    again = chosen_priors._scored(chosen_priors.LabelledRows(X[order], y[order]))
    dense = [sp.csr_matrix(r.X).toarray() for r in (rows, again)]
    assert len(rows.codes) == 20
    assert sorted(map(tuple, dense[0])) == sorted(map(tuple, dense[1]))
    assert 0.3 < np.mean(np.isin(np.arange(len(y))[:18], np.flatnonzero(_among(X, rows.X)))) < 0.8
    fits = [bg.MultinomialNB(prior="loo").fit(X[o], y[o]) for o in (slice(None), order)]
    np.testing.assert_array_equal(*(f.prior_.family.alpha for f in fits))


def _among(X, some):
    X, some = (sp.csr_matrix(a).toarray() for a in (X, some))
    return (X[:, None] == some[None]).all(axis=2).any(axis=1)


def test_documents_are_known_by_their_tokens():
    from bayesgen.inference import chosen_priors

    texts = ["one fish two fish", "red fish blue fish", "one fish two fish", "fish two fish one"]
    clf = bg.MarkovNB(prior="loo").fit(texts, [0, 1, 0, 1])
    keys = chosen_priors._keys(clf.fitted_.encoded(texts))
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3


@pytest.mark.parametrize("name", ["GaussianNB", "QuadraticDiscriminant", "MixedNB"])
def test_saved_and_loaded(name, tmp_path):
    make, data = CASES[name]
    X, y = data()
    clf = make().set_params(prior="loo").fit(X, y)
    clf.save(tmp_path / "model.nc")
    again = bg.load(tmp_path / "model.nc")
    assert again.prior == "loo"
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    for name, (_, value) in clf.prior_.family.arrays().items():
        np.testing.assert_array_equal(again.prior_.family.arrays()[name][1], value)
    with pytest.raises(ValueError, match="the training rows themselves"):
        again.partial_fit(X, y)
    np.testing.assert_array_equal(again.fit(X, y).predict_proba(X), clf.predict_proba(X))


def test_statistics_alone_are_refused_with_the_reason():
    X, y = reals()
    clf = bg.GaussianNB(prior="loo").fit(X, y)
    before = clf.predict_proba(X)
    reason = "works on sufficient statistics, and prior='loo'.*fit all rows together"
    with pytest.raises(ValueError, match=f"partial_fit {reason}"):
        clf.partial_fit(X, y)
    with pytest.raises(ValueError, match=f"merge {reason}"):
        clf.merge(bg.GaussianNB(prior="loo").fit(X, y))
    with pytest.raises(ValueError, match=f"forget {reason}"):
        clf.forget(X[:3], y[:3])
    with pytest.raises(ValueError, match=f"fit_stream {reason}"):
        bg.fit_stream(clf, [(X, y)])
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_it_helps_where_columns_repeat_each_other():
    """Naive Bayes counts ten copies of a column ten times; a firm, wide scale mends some of it."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    signal = rng.normal(size=(200, 1)) + y[:, None]
    X = signal + 0.1 * rng.normal(size=(200, 10))
    train = np.arange(200) % 2 == 0

    def loss(prior):
        log_p = bg.GaussianNB(prior=prior).fit(X[train], y[train]).predict_log_proba(X[~train])
        return -log_p[np.arange(100), y[~train]].mean()

    assert loss("loo") < 0.8 * loss("default")


@pytest.mark.parametrize("seed", range(4))
def test_no_step_of_a_factor_has_a_larger_penalised_score(seed):
    """The score by `loo`, and a prior of the log factor: Normal about log 4, sd log 5."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], 15)
    X = rng.poisson(rng.gamma(0.5, size=(2, 12))[y] * rng.gamma(2.0, size=(30, 1)))

    def scores(alpha):
        elpd = float(bg.MultinomialNB(alpha=alpha).fit(X, y).loo(X, y).elpd)
        return elpd, elpd - np.log(alpha / 4) ** 2 / (2 * np.log(5) ** 2)

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


# ----------------------------------------------------------------------------- empirical


@pytest.mark.filterwarnings("ignore:prior='empirical'. the evidence has no interior maximum")
@pytest.mark.parametrize("rows", [8, 20])
@pytest.mark.parametrize("model", [bg.LinearDiscriminant, bg.QuadraticDiscriminant, bg.GaussianNB])
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_the_largest_evidence_does_not_give_up_the_classes(load, model, rows):
    """Without limits the class means became one, and every row got the class weights."""
    X, y, T, _ = few(load, rows)
    p = model(prior="empirical").fit(X, y).predict_proba(T)
    assert np.all(np.isfinite(p))
    assert np.median(p.max(axis=1)) > 0.7


def test_a_limit_that_is_met_is_told():
    X, y, _, _ = few(load_breast_cancer, 20)
    with pytest.warns(UserWarning, match="no interior maximum in kappa; the factor stopped at 100"):
        best = bg.LinearDiscriminant(prior="empirical").fit(X, y)
    np.testing.assert_allclose(best.prior_.family.kappa, 10.0, rtol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bg.LinearDiscriminant(prior="empirical").fit(*load_wine(return_X_y=True))
