"""Columns that say nothing, at all or inside the classes; digits that are lost."""

from functools import partial

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.errors import UndefinedEstimateError
from tests.estimators.cases import LABELS, PLUG_INS, reals

BY_COLUMN = {  # without a unit that columns share: there constant ones take part
    **{f"GaussianNB {v}": partial(bg.GaussianNB, variance=v) for v in ("class", "tied")},
    **{
        f"{estimator.__name__} {v}": partial(estimator, covariance=v)
        for estimator in (bg.LinearDiscriminant, bg.QuadraticDiscriminant)
        for v in ("full", "diagonal")
    },
    "MixedNB": bg.MixedNB,
}
SPHERICAL = {v: partial(bg.GaussianNB, variance=v) for v in ("spherical", "class_spherical")}
RNG = np.random.default_rng(4)
CODES = np.repeat(np.arange(3), (80, 20, 4))
X, Y = reals(RNG, CODES), LABELS[CODES]
NEW = reals(RNG, np.arange(30) % 3)


@pytest.mark.parametrize("name", BY_COLUMN)
def test_a_constant_column_leaves_the_probabilities_alone(name):
    make = BY_COLUMN[name]
    alone = make().fit(X, Y)
    for constant, later in ((5.0, 5.0), (-1e8, 0.0), (0.1, 1e6), (0.0, 1e200)):
        wide = make().fit(np.insert(X, 1, constant, axis=1), Y)
        rows = np.insert(NEW, 1, later, axis=1)
        for method in ("posterior_predictive", "posterior_mean", "map"):
            p = wide.predict_proba(rows, method=method)
            expected = alone.predict_proba(NEW, method=method)
            np.testing.assert_allclose(p, expected, rtol=1e-7, atol=1e-12)
        with pytest.raises(UndefinedEstimateError):
            wide.predict_proba(rows, method=PLUG_INS[-1])
        assert wide.log_evidence_ == pytest.approx(alone.log_evidence_, rel=1e-12)
        assert bg.mutual_information(wide).values[1] == 0


@pytest.mark.filterwarnings("ignore:prior='empirical'.* no interior maximum")
@pytest.mark.parametrize("name", BY_COLUMN)
def test_nor_the_prior_of_the_largest_evidence(name):
    alone, wide = (BY_COLUMN[name](prior="empirical") for _ in range(2))
    p = wide.fit(np.insert(X, 1, 7.0, axis=1), Y).predict_proba(np.insert(NEW, 1, 7.0, axis=1))
    np.testing.assert_allclose(p, alone.fit(X, Y).predict_proba(NEW), atol=1e-5)


@pytest.mark.parametrize("make", SPHERICAL.values(), ids=SPHERICAL)
def test_constant_column_of_a_common_unit_counts(make):
    """Beside columns of its own unit a column that does not move is evidence, and finite."""
    clf = make().fit(np.insert(X, 1, 7.0, axis=1), Y)
    assert np.isfinite(clf.predict_log_proba(np.insert(NEW, 1, 7.0, axis=1))).all()
    assert np.all(clf.model_.family.sigma2 < make().fit(X, Y).model_.family.sigma2)


@pytest.mark.parametrize("name", BY_COLUMN)
def test_a_unit_given_by_the_user_is_used(name):
    """A constant column is left out for want of a unit, not because it is constant."""
    unit = "psi0" if "Discriminant" in name else "sigma2_0"
    alone, wide = (BY_COLUMN[name](**{unit: 1.0}) for _ in range(2))
    p = wide.fit(np.insert(X, 1, 7.0, axis=1), Y).predict_proba(np.insert(NEW, 1, 7.0, axis=1))
    # of one variance of all classes: these differ in kappa + n alone
    least = 1e-6 if name.startswith("Linear") or "tied" in name else 1e-3
    assert np.abs(p - alone.fit(X, Y).predict_proba(NEW)).max() > least


@pytest.mark.parametrize("name", [*BY_COLUMN, *SPHERICAL])
def test_column_without_variation_inside_the_classes(name):
    """Between them it does vary: the total variance stands in for one row, nothing is infinite."""
    y = np.repeat([0, 1], 30)
    rows = np.c_[np.where(y == 0, 2.0, 5.0), np.random.default_rng(0).normal(size=60)]
    new = np.array([[2.0, 0.0], [5.0, 0.0], [3.5, 0.0], [-40.0, 0.0], [1e6, 0.0]])
    clf = (BY_COLUMN | SPHERICAL)[name]().fit(rows, y)
    log_p = clf.predict_log_proba(new)
    assert np.isfinite(log_p).all()
    p = np.exp(log_p)
    if name in BY_COLUMN:
        assert min(p[0, 0], p[1, 1]) > 0.99
    assert 0.1 < p[2, 0] < 0.9
    assert np.isfinite(clf.log_evidence_)


def test_nothing_but_constant_columns_leaves_the_class_weights():
    for make in BY_COLUMN.values():
        clf = make().fit(np.full((5, 2), 3.0), [0, 0, 0, 1, 1])
        np.testing.assert_allclose(clf.predict_proba([[3.0, 4.0]]), [[4 / 7, 3 / 7]], rtol=1e-9)


def test_float32_that_has_lost_its_digits_is_said():
    with pytest.warns(UserWarning, match="column 'x1' is float32 with mean 1e\\+08"):
        bg.GaussianNB().fit((X + np.array([0, 1e8, 0])).astype(np.float32), Y)
    bg.GaussianNB().fit((X + 100).astype(np.float32), Y)  # no warning: digits are left
