"""The stated priors by formula; columns that say nothing; digits that are lost."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

import bayesgen as bg
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS
from tests.estimators.cases import LABELS, reals

VARIANCES = ("class", "tied", "spherical", "class_spherical")
MODELS = [
    *(pytest.param(bg.GaussianNB(variance=v), id=f"GaussianNB {v}") for v in VARIANCES),
    pytest.param(bg.LinearDiscriminant(), id="LinearDiscriminant"),
    pytest.param(bg.QuadraticDiscriminant(), id="QuadraticDiscriminant"),
]
BY_COLUMN = [m for m in MODELS if "spherical" not in m.id]  # columns of one unit know no other


def split(X, y):
    test = np.arange(len(y)) % 3 == 2
    return X[~test], y[~test], X[test], y[test]


# ------------------------------------------------------------------------------------ by formula


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


@pytest.mark.parametrize("model", ["GaussianNB", "LinearDiscriminant", "QuadraticDiscriminant"])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer, load_digits])
def test_defaults_by_formula(model, load):
    """By cells of the covariance and SciPy's Student t."""
    X, y, T, _ = split(*load(return_X_y=True))
    varies = X.min(axis=0) < X.max(axis=0)
    X, T = X[:, varies], T[:, varies]
    C, (N, D) = y.max() + 1, X.shape
    m, total, kappa0 = X.mean(axis=0), X.var(axis=0), 0.1
    groups = [X[y == c] for c in range(C)]
    s2 = (sum(((g - g.mean(axis=0)) ** 2).sum(axis=0) for g in groups) + total) / (1 + N - C)
    centred = [g - g.mean(axis=0) for g in groups]
    steps = [np.sqrt(kappa0 * len(g) / (kappa0 + len(g))) * (g.mean(axis=0) - m) for g in groups]
    added = [a.T @ a + np.outer(step, step) for a, step in zip(centred, steps, strict=True)]
    if model == "LinearDiscriminant":
        added, rows = [sum(added)] * C, [N] * C
    else:
        rows = [len(g) for g in groups]
    log_joint = np.empty((len(T), C))
    for c, g in enumerate(groups):
        kappa = kappa0 + len(g)
        loc = (kappa0 * m + g.sum(axis=0)) / kappa
        if model == "GaussianNB":
            nu = 3 + rows[c]
            scale = np.sqrt((3 * s2 + np.diag(added[c])) / nu * (1 + 1 / kappa))
            density = stats.t.logpdf(T, nu, loc, scale).sum(axis=1)
        else:
            df = D + 2 + rows[c] - D + 1
            shape = ((D + 2) * default_scale(groups) + added[c]) / df * (1 + 1 / kappa)
            unit = np.sqrt(s2)  # SciPy refuses matrices that only look singular
            t = stats.multivariate_t(loc / unit, shape / np.outer(unit, unit), df)
            density = t.logpdf(T / unit)
        log_joint[:, c] = density + np.log(len(g) + 1)
    top = log_joint.max(axis=1, keepdims=True)
    log_p = log_joint - top - np.log(np.exp(log_joint - top).sum(axis=1, keepdims=True))
    X, y, T, _ = split(*load(return_X_y=True))
    ours = getattr(bg, model)().fit(X, y).predict_log_proba(T)
    np.testing.assert_allclose(ours, log_p, rtol=1e-7, atol=1e-8)


# ------------------------------------------------------------- columns and classes that say little


def unequal():
    """Iris with classes of 800, 800 and 4 rows."""
    X, y = load_iris(return_X_y=True)
    rows = np.r_[np.repeat(np.r_[0:40, 50:90], 20), 100:104]
    return X[rows], y[rows], X


@pytest.mark.filterwarnings("ignore:prior='empirical'.* no interior maximum in nu")  # tied
@pytest.mark.parametrize("clf", BY_COLUMN)
def test_constant_columns_change_neither_evidence_nor_empirical_prior(clf):
    X, y = load_iris(return_X_y=True)
    wide = np.c_[X, np.full((len(X), 5), 7.0)]
    without = clf.fit(X, y).log_evidence_
    assert clf.fit(wide, y).log_evidence_ == pytest.approx(without, rel=1e-12)
    assert (bg.mutual_information(clf).values[4:] == 0).all()
    empirical = clone(clf).set_params(prior="empirical")
    without = empirical.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(empirical.fit(wide, y).predict_proba(wide), without, atol=1e-5)


@pytest.mark.parametrize("variance", ["spherical", "class_spherical"])
def test_constant_column_of_a_common_unit_counts(variance):
    """Beside columns of its own unit a column that does not move is evidence, and finite."""
    X, y, T = unequal()
    wide, wide_T = (np.c_[A, np.full(len(A), 7.0)] for A in (X, T))
    clf = bg.GaussianNB(variance=variance).fit(wide, y)
    assert np.all(np.isfinite(clf.predict_log_proba(wide_T)))
    assert np.all(
        clf.model_.family.sigma2 < bg.GaussianNB(variance=variance).fit(X, y).model_.family.sigma2
    )


@pytest.mark.parametrize("clf", BY_COLUMN)
def test_a_unit_given_by_the_user_is_used(clf):
    """A constant column is left out for want of a unit, not because it is constant."""
    X, y, T = unequal()
    wide, wide_T = (np.c_[A, np.full(len(A), 7.0)] for A in (X, T))
    name = "sigma2_0" if isinstance(clf, bg.GaussianNB) else "psi0"
    given = clone(clf).set_params(**{name: 1.0})
    without, with_it = given.fit(X, y).predict_proba(T), given.fit(wide, y).predict_proba(wide_T)
    if "tied" in clf.get_params().values():  # one variance: the classes differ in kappa + n alone
        assert np.abs(with_it - without).max() > 1e-6
    else:
        assert np.abs(with_it - without).max() > 1e-3


@pytest.mark.parametrize("clf", MODELS)
def test_column_without_variation_inside_the_classes(clf):
    """Between them it does vary: the total variance stands in for one row, nothing is infinite."""
    y = np.repeat([0, 1], 30)
    X = np.c_[np.where(y == 0, 2.0, 5.0), np.random.default_rng(0).normal(size=60)]
    T = np.array([[2.0, 0.0], [5.0, 0.0], [3.5, 0.0], [-40.0, 0.0], [1e6, 0.0]])
    log_p = clf.fit(X, y).predict_log_proba(T)
    assert np.all(np.isfinite(log_p))
    p = np.exp(log_p)
    if "spherical" not in str(clf.get_params().get("variance")):
        assert p[0, 0] > 0.99
        assert p[1, 1] > 0.99
    assert 0.1 < p[2, 0] < 0.9
    assert np.isfinite(clf.log_evidence_)


REAL = {  # without a unit that columns share: there constant ones take part
    **{f"GaussianNB {v}": (lambda v=v: bg.GaussianNB(variance=v)) for v in ("class", "tied")},
    **{
        f"{estimator.__name__} {v}": (lambda estimator=estimator, v=v: estimator(covariance=v))
        for estimator in (bg.LinearDiscriminant, bg.QuadraticDiscriminant)
        for v in ("full", "diagonal")
    },
    "MixedNB": bg.MixedNB,
}


def test_float32_that_has_lost_its_digits_is_said():
    codes = np.arange(60) % 3
    X, y = reals(np.random.default_rng(0), codes), LABELS[codes]
    with pytest.warns(UserWarning, match="column 'x1' is float32 with mean 1e\\+08"):
        bg.GaussianNB().fit((X + np.array([0, 1e8, 0])).astype(np.float32), y)
    bg.GaussianNB().fit((X + 100).astype(np.float32), y)  # no warning: digits are left


@pytest.mark.parametrize("name", REAL)
def test_a_constant_column_leaves_the_probabilities_alone(name):
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(3), (80, 20, 4))
    X, y = reals(rng, codes), LABELS[codes]
    new = reals(rng, np.arange(30) % 3)
    make = REAL[name]
    alone = make().fit(X, y)
    for constant, later in ((5.0, 5.0), (-1e8, 0.0), (0.1, 1e6), (0.0, 1e200)):
        wide = make().fit(np.insert(X, 1, constant, axis=1), y)
        rows = np.insert(new, 1, later, axis=1)
        for method in METHODS:
            if method == "mle":
                with pytest.raises(UndefinedEstimateError):
                    wide.predict_proba(rows, method=method)
                continue
            np.testing.assert_allclose(
                wide.predict_proba(rows, method=method),
                alone.predict_proba(new, method=method),
                rtol=1e-7,
                atol=1e-12,
            )


def test_nothing_but_constant_columns_leaves_the_class_weights():
    for make in REAL.values():
        clf = make().fit(np.full((5, 2), 3.0), [0, 0, 0, 1, 1])
        np.testing.assert_allclose(clf.predict_proba([[3.0, 4.0]]), [[4 / 7, 3 / 7]], rtol=1e-9)
