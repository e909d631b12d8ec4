"""Every number by SciPy's own densities."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp, softmax

import bayesgen as bg
from bayesgen.families.names import METHODS
from bayesgen.predict.probabilities import ImpossibleRowError
from tests.estimators.cases import (
    CASES,
    FULL,
    KINDS,
    LABELS,
    PLUG_INS,
    PSI,
    REAL_KINDS,
    missing_cells,
    sample,
)


def by_class(X, codes, density):
    """Stack ``density(rows of class c, c)`` -> {method: (N,)} over the classes."""
    columns = [density(X[codes == c], c) for c in range(3)]
    return {m: np.stack([column[m] for column in columns], axis=1) for m in METHODS}


def log_class_weights(codes, alpha=1.0):
    n = np.bincount(codes, minlength=3)
    a = n + alpha
    weights = {"mle": n, "map": a - 1, "posterior_mean": a, "posterior_predictive": a}
    return {method: np.log(w / w.sum()) for method, w in weights.items()}


def bernoulli(X, codes, new, a0, b0):
    def density(rows, c):
        ones, zeros = (rows == 1).sum(axis=0), (rows == 0).sum(axis=0)
        a, b = a0 + ones, b0 + zeros
        p = {
            "mle": ones / (ones + zeros),
            "map": (a - 1) / (a + b - 2),
            "posterior_mean": a / (a + b),
        }
        out = {m: np.nansum(stats.bernoulli.logpmf(new, p[m]), axis=1) for m in PLUG_INS}
        out["posterior_predictive"] = np.nansum(stats.betabinom.logpmf(new, 1, a, b), axis=1)
        return out

    return by_class(X, codes, density)


def categorical(X, codes, new, levels, alpha):
    def density(rows, c):
        out = dict.fromkeys(METHODS, 0.0)
        for j, values in enumerate(levels):
            n = np.array([np.sum(rows[:, j] == v) for v in values])
            a = alpha + n
            p = {"mle": n / n.sum(), "map": (a - 1) / (a - 1).sum(), "posterior_mean": a / a.sum()}
            p["posterior_predictive"] = p["posterior_mean"]
            cells = np.array([[v == cell for v in values] for cell in new[:, j]])
            seen = cells.any(axis=1)  # the others are missing
            for method in METHODS:
                mass = stats.multinomial.logpmf(cells[seen], 1, p[method])
                out[method] = out[method] + np.bincount(np.flatnonzero(seen), mass, len(new))
        return out

    return by_class(X, codes, density)


def multinomial(X, codes, new, alpha):
    def density(rows, c):
        n = rows.sum(axis=0)
        a, length = alpha + n, new.sum(axis=1).astype(int)
        p = {"mle": n / n.sum(), "map": (a - 1) / (a - 1).sum(), "posterior_mean": a / a.sum()}
        out = {m: stats.multinomial.logpmf(new, length, p[m]) for m in PLUG_INS}
        whole = new.astype(int)
        out["posterior_predictive"] = stats.dirichlet_multinomial.logpmf(whole, a, length)
        return out

    return by_class(X, codes, density)


def poisson(X, codes, new, shape, rate):
    def density(rows, c):
        n, total = np.sum(~np.isnan(rows), axis=0), np.nansum(rows, axis=0)
        a, b = shape + total, rate + n
        at = {"mle": total / n, "map": (a - 1) / b, "posterior_mean": a / b}
        out = {m: np.nansum(stats.poisson.logpmf(new, at[m]), axis=1) for m in PLUG_INS}
        out["posterior_predictive"] = np.nansum(stats.nbinom.logpmf(new, a, b / (b + 1)), axis=1)
        return out

    return by_class(X, codes, density)


def normal_inverse_gamma(X, codes, new, m0, k0, nu0, s2, variance):
    D = X.shape[1]
    n, mean, scatter = np.zeros((3, D)), np.zeros((3, D)), np.zeros((3, D))
    for c in range(3):
        rows = X[codes == c]
        n[c], mean[c] = np.sum(~np.isnan(rows), axis=0), np.nanmean(rows, axis=0)
        scatter[c] = np.nansum((rows - mean[c]) ** 2, axis=0)
    k = k0 + n
    m = (k0 * m0 + n * mean) / k
    ss = scatter + k0 * n / k * (mean - m0) ** 2
    axes = {"class": (), "tied": (0,), "class_spherical": (1,), "spherical": (0, 1)}[variance]

    def grouped(cells):
        return cells.sum(axis=axes, keepdims=True) if axes else cells

    nu = nu0 + grouped(n)
    SS = nu0 * s2 + grouped(ss)
    J = grouped(np.ones((3, D)))
    sigma2 = {
        "mle": grouped(scatter) / grouped(n),
        "map": SS / (nu + 2 + J),
        "posterior_mean": SS / (nu - 2),
    }
    nu, scale = np.broadcast_to(nu, (3, D)), np.broadcast_to(SS / nu, (3, D)) * (1 + 1 / k)
    out = {}
    for method in PLUG_INS:
        at, sd = (mean if method == "mle" else m), np.sqrt(np.broadcast_to(sigma2[method], (3, D)))
        columns = [np.nansum(stats.norm.logpdf(new, at[c], sd[c]), axis=1) for c in range(3)]
        out[method] = np.stack(columns, axis=1)
    if "spherical" not in variance:
        columns = [stats.t.logpdf(new, nu[c], m[c], np.sqrt(scale[c])) for c in range(3)]
        out["posterior_predictive"] = np.stack([np.nansum(t, axis=1) for t in columns], axis=1)
        return out
    predictive = np.zeros((len(new), 3))  # one multivariate t over the observed cells
    for i, row in enumerate(new):
        o = ~np.isnan(row)
        for c in range(3):
            t = stats.multivariate_t(m[c, o], np.diag(scale[c, o]), nu[c, 0])
            predictive[i, c] = t.logpdf(row[o])
    return out | {"posterior_predictive": predictive}


def normal_inverse_wishart(X, codes, new, m0, k0, nu0, psi0, shared):
    D = X.shape[1]
    n = np.bincount(codes, minlength=3)
    mean = np.stack([X[codes == c].mean(axis=0) for c in range(3)])
    scatter = np.stack([(n[c] - 1) * np.cov(X[codes == c].T) for c in range(3)])
    k = k0 + n
    m = (k0 * m0 + n[:, None] * mean) / k[:, None]
    step = (k0 * n / k)[:, None, None] * np.einsum("ci,cj->cij", mean - m0, mean - m0)
    rows, means = n[:, None, None], 1
    if shared:
        scatter, step, rows, means = (*(v.sum(axis=0) for v in (scatter, step, rows)), 3)
    nu, psi = nu0 + rows, psi0 + scatter + step
    sigma = {
        "mle": scatter / rows,
        "map": psi / (nu + D + 1 + means),
        "posterior_mean": psi / (nu - D - 1),
    }
    nu = np.broadcast_to(np.ravel(nu), 3)
    psi = np.broadcast_to(psi, (3, D, D))
    out = {method: np.zeros((len(new), 3)) for method in METHODS}
    for i, row in enumerate(new):
        o = ~np.isnan(row)  # the others are integrated out
        for c in range(3):
            for method in PLUG_INS:
                at = (mean if method == "mle" else m)[c, o]
                cov = np.broadcast_to(sigma[method], (3, D, D))[c][np.ix_(o, o)]
                out[method][i, c] = stats.multivariate_normal.logpdf(row[o], at, cov)
            df = nu[c] - D + 1
            shape = psi[c][np.ix_(o, o)] * (1 + 1 / k[c]) / df
            out["posterior_predictive"][i, c] = stats.multivariate_t.logpdf(
                row[o], m[c, o], shape, df
            )
    return out


def check_against(clf, new, densities, codes, class_alpha=1.0, tol=1e-9):
    """All methods of a fitted estimator against an oracle."""
    weights = log_class_weights(codes, class_alpha)
    for method, log_x in densities.items():
        joint = clf.predict_joint_log_proba(new, method=method)
        np.testing.assert_allclose(joint, log_x + weights[method], rtol=tol, err_msg=method)
        p = softmax(log_x + weights[method], axis=1)
        np.testing.assert_allclose(clf.predict_proba(new, method=method), p, rtol=1e-7)


def split(case, n_new=15):
    """A fitted estimator, its training rows and codes, and new rows of the same kind."""
    X, codes, y = sample(case)
    new, _, _ = sample(case, n=n_new, seed=8)
    return case.make().fit(X, y), X, codes, new


def test_bernoulli_by_scipy():
    clf, X, codes, new = split(CASES["BernoulliNB"])
    check_against(clf, new, bernoulli(X, codes, new, 1.5, np.array([2.0, 1, 1, 3])), codes)
    table = np.array([[1.5, 2], [2, 3], [4, 5]])[:, [0, 1, 1, 0]]  # a pseudo-count for each cell
    clf = bg.BernoulliNB(table, 2.5, class_alpha=[2.0, 3.0, 4.0]).fit(X, LABELS[codes])
    log_x = np.zeros((len(new), 3))
    for c in range(3):
        log_x[:, c] = bernoulli(X, codes, new, table[c], 2.5)["map"][:, c]
    expected = log_x + log_class_weights(codes, np.array([2.0, 3, 4]))["map"]
    np.testing.assert_allclose(clf.predict_joint_log_proba(new, "map"), expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["CategoricalNB", "CategoricalNB declared"])
def test_categorical_by_scipy(name):
    alpha = 1.0 if name == "CategoricalNB" else 1.5
    clf, X, codes, new = split(CASES[name])
    levels = [["red", "green", "blue"], ["S", "M", "L", "XL"]]
    with np.errstate(divide="ignore"):
        oracle = categorical(X, codes, new, levels, alpha)
    possible = np.isfinite(np.stack(list(oracle.values()))).any(axis=2).all(axis=0)
    oracle = {method: log_x[possible] for method, log_x in oracle.items()}
    check_against(clf, new[possible], oracle, codes)


@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
def test_unseen_categories_as_if_declared_or_ignored():
    X, codes, y = sample(CASES["CategoricalNB"])
    new = np.array([["violet", "S"], ["red", "XXL"], ["violet", "XXL"]], dtype=object)
    colours, sizes = ["red", "green", "blue"], ["S", "M", "L", "XL"]
    clf = bg.CategoricalNB(1.5, unseen="prior").fit(X, y)
    for i, new_colours, new_sizes in (
        (0, ["violet"], []),
        (1, [], ["XXL"]),
        (2, ["violet"], ["XXL"]),
    ):
        declared = [colours + new_colours, sizes + new_sizes]
        with np.errstate(divide="ignore"):
            oracle = categorical(X, codes, new[[i]], declared, 1.5)
        weights = log_class_weights(codes)
        for method in METHODS if i == 2 else METHODS[:1]:
            joint = clf.predict_joint_log_proba(new[[i]], method=method)
            np.testing.assert_allclose(joint, oracle[method] + weights[method], rtol=1e-12)
    with pytest.raises(ImpossibleRowError):
        clf.predict(new, method="mle")
    clf.unseen = "ignore"  # as by set_params
    gaps = np.array([[None, "S"], ["red", None], [None, None]], dtype=object)
    np.testing.assert_array_equal(clf.predict_proba(new), clf.predict_proba(gaps))


@pytest.mark.parametrize("clf", [bg.CategoricalNB(), bg.MixedNB()])
def test_unseen_categories_are_named_once_a_call(clf):
    X, _, y = sample(CASES["CategoricalNB"])
    frame = pd.DataFrame(X, columns=["colour", "size"])
    new = frame.iloc[:2].assign(size="XXL", colour=["violet", "red"])
    pool = bg.LogLinearPool([clf, bg.TreeAugmentedNB(), bg.MetaTreeForest(4)])
    for model in (clf, pool):
        model.fit(frame, y)
        with pytest.warns(bg.UnknownCategoryWarning) as caught:
            model.predict_proba(new)
        assert len(caught) == 1
        for said in ("'colour': 1 cell, the first 'violet' in row 0", "'size': 2 cells", "'XXL'"):
            assert said in str(caught[0].message)
    clf.unseen = "raise"
    with pytest.raises(ValueError, match=r"column 'size' holds 'XXL' in row 1"):
        clf.predict(frame.iloc[:2].assign(colour="red", size=["S", "XXL"]))


def test_multinomial_by_scipy():
    clf, X, codes, new = split(CASES["MultinomialNB"])
    check_against(clf, new, multinomial(X, codes, new, 1.5), codes, class_alpha=2.0)


def test_poisson_by_scipy():
    clf, X, codes, new = split(CASES["PoissonNB rate"])
    check_against(clf, new, poisson(X, codes, new, 2.0, 0.5), codes)
    clf, X, codes, new = split(CASES["PoissonNB"])  # by default a shape of 1 at the pooled mean
    check_against(clf, new, poisson(X, codes, new, 1.0, 1 / np.nanmean(X, axis=0)), codes)


@pytest.mark.parametrize("variance", ["class", "tied", "spherical", "class_spherical"])
def test_gaussian_by_scipy(variance):
    clf, X, codes, new = split(CASES[f"GaussianNB {variance}"])
    m0, s2 = np.array([1.0, 0.0, 4.0]), clf.sigma2_0
    check_against(clf, new, normal_inverse_gamma(X, codes, new, m0, 0.5, 4.0, s2, variance), codes)


@pytest.mark.parametrize(
    ("estimator", "covariance", "variance"),
    [
        (bg.LinearDiscriminant, "diagonal", "tied"),
        (bg.LinearDiscriminant, "spherical", "spherical"),
        (bg.QuadraticDiscriminant, "diagonal", "class"),
        (bg.QuadraticDiscriminant, "spherical", "class_spherical"),
    ],
)
def test_discriminants_without_correlations_by_scipy(estimator, covariance, variance):
    clf, X, codes, new = split(CASES[f"{estimator.__name__} {covariance}"])
    new = missing_cells(np.random.default_rng(1), np.repeat(new, 2, axis=0), 0.3)
    # E Sigma^-1 = nu0/psi0: a scaled-inverse-chi2(nu0, psi0/nu0)
    oracle = normal_inverse_gamma(X, codes, new, 1.0, 0.5, 4.0, 2.0 / 4.0, variance)
    check_against(clf, new, oracle, codes)


@pytest.mark.parametrize("estimator", [bg.LinearDiscriminant, bg.QuadraticDiscriminant])
def test_discriminants_by_scipy(estimator):
    clf, X, codes, new = split(CASES[f"{estimator.__name__} full"])
    new = np.vstack([new, missing_cells(np.random.default_rng(1), np.repeat(new, 2, axis=0), 0.4)])
    new = new[~np.isnan(new).all(axis=1)]
    assert np.isnan(new).any()
    shared = estimator is bg.LinearDiscriminant
    m0 = np.array(FULL["mu0"])
    check_against(
        clf, new, normal_inverse_wishart(X, codes, new, m0, 0.5, 6.0, PSI, shared), codes, tol=1e-8
    )


def sum_of_kinds(columns, models, X, y, new, method):
    """The class weights once, and the densities of classifiers of some columns each."""
    total = np.zeros((len(new), 3))
    for kind, model in models.items():
        model.fit(X[columns[kind]], y)
        joint = model.predict_joint_log_proba(new[columns[kind]], method=method)
        total += joint - np.log(model.model_.class_weights(method, model.stats_))
    return total + np.log(model.model_.class_weights(method, model.stats_))


@pytest.mark.parametrize("method", METHODS)
def test_mixed_columns_are_the_sum_of_their_kinds(method):
    X, _, y = sample(CASES["MixedNB"])
    new, _, _ = sample(CASES["MixedNB"], n=15, seed=8)
    hyper = {"mu0": 1.0, "kappa0": 0.5, "nu0": 4.0, "sigma2_0": 1.5}
    clf = bg.MixedNB(KINDS, alpha=1.5, beta=2.0, shape=2.0, rate=0.5, **hyper).fit(X, y)
    models = {
        "bernoulli": bg.BernoulliNB(1.5, 2.0),
        "categorical": bg.CategoricalNB(1.5),
        "poisson": bg.PoissonNB(2.0, 0.5),
        "gaussian": bg.GaussianNB(**hyper),
    }
    expected = sum_of_kinds(KINDS, models, X, y, new, method)
    joint = clf.predict_joint_log_proba(new, method=method)
    np.testing.assert_allclose(joint, expected, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_logarithms_have_a_jacobian(method):
    X, _, y = sample(CASES["MixedNB real"])
    new, _, _ = sample(CASES["MixedNB real"], n=15, seed=8)
    logs, new_logs = (rows.assign(income=np.log(rows["income"])) for rows in (X, new))
    models = dict.fromkeys(REAL_KINDS, bg.GaussianNB())
    expected = sum_of_kinds(REAL_KINDS, models, logs, y, new_logs, method)
    expected -= np.nan_to_num(new_logs["income"].to_numpy())[:, None]
    joint = bg.MixedNB(REAL_KINDS).fit(X, y).predict_joint_log_proba(new, method=method)
    np.testing.assert_allclose(joint, expected, rtol=1e-9)


def test_perplexity_is_the_geometric_mean_of_surprise():
    X, codes, y = sample(CASES["MarkovNB 1"])
    clf = bg.MarkovNB(2, 1.5).fit(X, y)
    new = ["ab", "cab c", "a"]
    joint = clf.predict_joint_log_proba(new)
    log_p = joint - log_class_weights(codes)["posterior_predictive"]
    np.testing.assert_allclose(clf.perplexity(new, "birch"), np.exp(-log_p[:, 1] / [2, 5, 1]))
    np.testing.assert_allclose(clf.perplexity(new), np.exp(-logsumexp(joint, axis=1) / [2, 5, 1]))
