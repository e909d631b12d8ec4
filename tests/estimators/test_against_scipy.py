"""Every number by SciPy's own densities; the stated priors of Gaussians by their formulas."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.families.names import METHODS
from bayesgen.predict.probabilities import ImpossibleRowError
from tests.estimators.cases import CASES, KINDS, PLUG_INS, PSI, REAL_KINDS, sample

# ------------------------------------------------------------------ {method: (N, C)} log densities


def of_each_class(density):
    """Of all classes, from ``density(rows of one class, new rows, ...)``, {method: (N,)}."""

    def of_all(X, codes, new, *prior):
        each = [density(X[codes == c], new, *prior) for c in range(codes.max() + 1)]
        return {method: np.stack([one[method] for one in each], axis=1) for method in METHODS}

    return of_all


@of_each_class
def bernoulli(rows, new, a0, b0):
    ones, zeros = (rows == 1).sum(axis=0), (rows == 0).sum(axis=0)
    a, b = a0 + ones, b0 + zeros
    p = {"mle": ones / (ones + zeros), "map": (a - 1) / (a + b - 2), "posterior_mean": a / (a + b)}
    cells = {m: stats.bernoulli.logpmf(new, p[m]) for m in PLUG_INS}
    cells["posterior_predictive"] = stats.betabinom.logpmf(new, 1, a, b)
    return {m: np.nansum(log_p, axis=1) for m, log_p in cells.items()}


@of_each_class
def poisson(rows, new, shape, rate):
    n, total = np.sum(~np.isnan(rows), axis=0), np.nansum(rows, axis=0)
    a, b = shape + total, rate + n
    means = {"mle": total / n, "map": (a - 1) / b, "posterior_mean": a / b}
    cells = {m: stats.poisson.logpmf(new, means[m]) for m in PLUG_INS}
    cells["posterior_predictive"] = stats.nbinom.logpmf(new, a, b / (b + 1))
    return {m: np.nansum(log_p, axis=1) for m, log_p in cells.items()}


def shares(n, alpha):
    """Probabilities under a Dirichlet prior, by method."""
    a = alpha + n
    p = {"mle": n / n.sum(), "map": (a - 1) / (a - 1).sum(), "posterior_mean": a / a.sum()}
    return p | {"posterior_predictive": p["posterior_mean"]}


@of_each_class
def categorical(rows, new, levels, alpha):
    densities = {m: np.zeros(len(new)) for m in METHODS}
    for j, values in enumerate(levels):
        p = shares(np.array([np.sum(rows[:, j] == v) for v in values]), alpha)
        cells = np.array([[v == cell for v in values] for cell in new[:, j]])
        seen = cells.any(axis=1)  # the others are missing
        for method in METHODS:
            densities[method][seen] += stats.multinomial.logpmf(cells[seen], 1, p[method])
    return densities


@of_each_class
def multinomial(rows, new, alpha):
    n, length = rows.sum(axis=0), new.sum(axis=1).astype(int)
    densities = {m: stats.multinomial.logpmf(new, length, shares(n, alpha)[m]) for m in PLUG_INS}
    whole = new.astype(int)
    return densities | {
        "posterior_predictive": stats.dirichlet_multinomial.logpmf(whole, alpha + n, length)
    }


def normal_inverse_gamma(X, codes, new, m0, k0, nu0, s2, variance):
    shape = codes.max() + 1, X.shape[1]
    n, mean, scatter = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for c in range(len(n)):
        rows = X[codes == c]
        n[c], mean[c] = np.sum(~np.isnan(rows), axis=0), np.nanmean(rows, axis=0)
        scatter[c] = np.nansum((rows - mean[c]) ** 2, axis=0)
    k = k0 + n
    m = (k0 * m0 + n * mean) / k
    axes = {"class": (), "tied": (0,), "class_spherical": (1,), "spherical": (0, 1)}[variance]

    def grouped(cells):
        return cells.sum(axis=axes, keepdims=True) if axes else cells

    nu = nu0 + grouped(n)
    SS = nu0 * s2 + grouped(scatter + k0 * n / k * (mean - m0) ** 2)
    sigma2 = {
        "mle": grouped(scatter) / grouped(n),
        "map": SS / (nu + 2 + grouped(np.ones(shape))),
        "posterior_mean": SS / (nu - 2),
    }
    densities = {}
    for method in PLUG_INS:
        center = mean if method == "mle" else m
        sd = np.sqrt(np.broadcast_to(sigma2[method], shape))
        densities[method] = np.nansum(stats.norm.logpdf(new[:, None], center, sd), axis=2)
    nu, scale = np.broadcast_to(nu, shape), np.broadcast_to(SS / nu, shape) * (1 + 1 / k)
    if "spherical" not in variance:
        cells = stats.t.logpdf(new[:, None], nu, m, np.sqrt(scale))
        return densities | {"posterior_predictive": np.nansum(cells, axis=2)}
    predictive = np.zeros((len(new), len(n)))  # one multivariate t over the observed cells
    for i, row in enumerate(new):
        o = ~np.isnan(row)
        for c in range(len(n)):
            t = stats.multivariate_t(m[c, o], np.diag(scale[c, o]), nu[c, 0])
            predictive[i, c] = t.logpdf(row[o])
    return densities | {"posterior_predictive": predictive}


def normal_inverse_wishart(X, codes, new, m0, k0, nu0, psi0, shared, methods=METHODS):
    C, D = codes.max() + 1, X.shape[1]
    n = np.bincount(codes)
    mean = np.stack([X[codes == c].mean(axis=0) for c in range(C)])
    scatter = np.stack([(n[c] - 1) * np.cov(X[codes == c].T) for c in range(C)])
    k = k0 + n
    m = (k0 * m0 + n[:, None] * mean) / k[:, None]
    step = (k0 * n / k)[:, None, None] * np.einsum("ci,cj->cij", mean - m0, mean - m0)
    rows, means = n[:, None, None], 1
    if shared:
        scatter, step, rows, means = (*(v.sum(axis=0) for v in (scatter, step, rows)), C)
    nu, psi = nu0 + rows, psi0 + scatter + step
    df = np.broadcast_to(np.ravel(nu - D + 1), C)
    matrices = {
        "mle": scatter / rows,
        "map": psi / (nu + D + 1 + means),
        "posterior_mean": psi / (nu - D - 1),
        "posterior_predictive": psi * (1 + 1 / k[:, None, None]) / df[:, None, None],
    }
    unit = np.sqrt(np.diagonal(psi, axis1=-2, axis2=-1)).reshape(-1, D).mean(axis=0)
    matrices = {name: matrix / np.outer(unit, unit) for name, matrix in matrices.items()}
    new, mean, m = new / unit, mean / unit, m / unit  # SciPy refuses what only looks singular
    densities = {method: np.zeros((len(new), C)) for method in methods}
    for o in np.unique(~np.isnan(new), axis=0):  # the other cells are integrated out
        some = np.flatnonzero((~np.isnan(new) == o).all(axis=1))
        for c, method in np.ndindex(C, len(methods)):
            method = methods[method]
            center = (mean if method == "mle" else m)[c, o]
            matrix = np.broadcast_to(matrices[method], (C, D, D))[c][np.ix_(o, o)]
            if method == "posterior_predictive":
                density = stats.multivariate_t(center, matrix, df[c])
            else:
                density = stats.multivariate_normal(center, matrix)
            densities[method][some, c] = (
                density.logpdf(new[np.ix_(some, o)]) - np.log(unit[o]).sum()
            )
    return densities


# --------------------------------------------------------------------------------- the comparison


def log_class_weights(codes, alpha=1.0):
    n = np.bincount(codes)
    a = n + alpha
    weights = {"mle": n, "map": a - 1, "posterior_mean": a, "posterior_predictive": a}
    return {method: np.log(w / w.sum()) for method, w in weights.items()}


MU0, B0 = np.array([1.0, 0.0, 4.0]), np.array([2.0, 1, 1, 3])
LEVELS = [["red", "green", "blue"], ["S", "M", "L", "XL"]]
# E Sigma^-1 = nu0/psi0: a scaled-inverse-chi2(nu0, psi0/nu0)
DIAGONAL, WISHART = (1.0, 0.5, 4.0, 2.0 / 4.0), (MU0, 0.5, 6.0, PSI)
ORACLES = {  # of a case: densities, and their hyper-parameters
    "BernoulliNB": (bernoulli, 1.5, B0),
    "CategoricalNB": (categorical, LEVELS, 1.0),
    "CategoricalNB declared": (categorical, LEVELS, 1.5),
    "MultinomialNB": (multinomial, 1.5),
    "PoissonNB rate": (poisson, 2.0, 0.5),
    "GaussianNB class": (normal_inverse_gamma, MU0, 0.5, 4.0, np.array([1.5, 2, 1]), "class"),
    "GaussianNB tied": (normal_inverse_gamma, MU0, 0.5, 4.0, 1.5, "tied"),
    "GaussianNB spherical": (normal_inverse_gamma, MU0, 0.5, 4.0, 1.5, "spherical"),
    "GaussianNB class_spherical": (normal_inverse_gamma, MU0, 0.5, 4.0, 1.5, "class_spherical"),
    "LinearDiscriminant diagonal": (normal_inverse_gamma, *DIAGONAL, "tied"),
    "LinearDiscriminant spherical": (normal_inverse_gamma, *DIAGONAL, "spherical"),
    "QuadraticDiscriminant diagonal": (normal_inverse_gamma, *DIAGONAL, "class"),
    "QuadraticDiscriminant spherical": (normal_inverse_gamma, *DIAGONAL, "class_spherical"),
    "LinearDiscriminant full": (normal_inverse_wishart, *WISHART, True),
    "QuadraticDiscriminant full": (normal_inverse_wishart, *WISHART, False),
}


@pytest.mark.parametrize("class_alpha", [2.0, [2.0, 3.0, 4.0]])
@pytest.mark.parametrize("name", ORACLES)
def test_all_methods_are_scipys(name, class_alpha):
    X, codes, y = sample(CASES[name])
    new, _, _ = sample(CASES[name], n=15, seed=8)
    if "Discriminant" in name:  # which take missing cells in prediction alone
        gaps = np.random.default_rng(1).random(new.shape) < 0.4
        gaps[:, 0] &= ~gaps.all(axis=1)
        new = np.vstack([new, np.where(gaps, np.nan, new)])
    clf = CASES[name].make().set_params(class_alpha=class_alpha).fit(X, y)
    oracle, *prior = ORACLES[name]
    with np.errstate(divide="ignore"):
        densities = oracle(X, codes, new, *prior)
    weights = log_class_weights(codes, np.array(class_alpha))
    for method, log_x in densities.items():
        expected = log_x + weights[method]
        joint = clf.predict_joint_log_proba(new, method=method)
        np.testing.assert_allclose(joint, expected, rtol=1e-8, err_msg=method)
        possible = np.isfinite(expected).any(axis=1)
        p = clf.predict_proba(take(new, possible), method=method)
        np.testing.assert_allclose(p, softmax(expected[possible], axis=1), rtol=1e-7)


# ------------------------------------------------------------------------------- the stated priors


def default_scale(groups):
    """Variances and shrunken correlations of (n_c, D) rows of each class, cell by cell."""
    rows = np.concatenate(groups)
    residuals = np.concatenate([g - g.mean(axis=0) for g in groups])
    f, D = len(rows) - len(groups), rows.shape[1]
    s2 = ((residuals**2).sum(axis=0) + rows.var(axis=0)) / (1 + f)
    r = np.corrcoef(residuals, rowvar=False)  # the mean of residuals is 0
    cells = [r[j, k] for j in range(D) for k in range(D) if j != k]
    shrinkage = 2 * D * np.mean([(1 - c**2) ** 2 / f for c in cells]) / np.mean(np.square(cells))
    shrinkage = min(1, max(shrinkage, 1 / f, 0.001))
    return np.sqrt(np.outer(s2, s2)) * ((1 - shrinkage) * r + shrinkage * np.eye(D))


@pytest.mark.parametrize("model", [bg.GaussianNB, bg.LinearDiscriminant, bg.QuadraticDiscriminant])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer, load_digits])
def test_stated_priors_by_formula(model, load):
    X, y = load(return_X_y=True)
    test = np.arange(len(y)) % 3 == 2
    clf = model().fit(X[~test], y[~test])
    varies = X[~test].min(axis=0) < X[~test].max(axis=0)
    rows, codes, new = X[~test][:, varies], y[~test], X[test][:, varies]
    scale, D = default_scale([rows[codes == c] for c in np.unique(y)]), rows.shape[1]
    prior = rows.mean(axis=0), 0.1
    if model is bg.GaussianNB:
        with np.errstate(divide="ignore", invalid="ignore"):  # maximum likelihood
            densities = normal_inverse_gamma(rows, codes, new, *prior, 3, np.diag(scale), "class")
    else:
        prior = *prior, D + 2, (D + 2) * scale, model is bg.LinearDiscriminant
        predictive = ("posterior_predictive",)
        densities = normal_inverse_wishart(rows, codes, new, *prior, predictive)
    joint = densities["posterior_predictive"] + log_class_weights(codes)["posterior_predictive"]
    log_p = joint - logsumexp(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_log_proba(X[test]), log_p, rtol=1e-7, atol=1e-8)


# ------------------------------------------------------------------- categories, columns and texts


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
