"""Narrow floats, constant columns, many features; offsets and units are in tests/laws."""

import mpmath
import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS
from tests.estimators.cases import LABELS, reals

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
@pytest.mark.parametrize("sizes", [(800, 800, 4), (20, 3, 3)])
def test_a_constant_column_leaves_the_probabilities_alone(name, sizes):
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(3), sizes)
    X, y = reals(rng, codes), LABELS[codes]
    new = reals(rng, np.arange(30) % 3)
    make = REAL[name]
    alone = make().fit(X, y)
    for constant, later in ((5.0, 5.0), (0.0, 3.0), (-1e8, 0.0), (0.1, 1e6), (0.0, 1e200)):
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


mpmath.mp.dps = 50


def test_many_features_do_not_underflow():
    rng = np.random.default_rng(0)
    X, y = rng.random((20, 100_000)) < 0.5, np.arange(20) % 2
    clf = bg.BernoulliNB().fit(X, y)
    joint = clf.predict_joint_log_proba(X)
    assert joint.max() < -10_000
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1, rtol=1e-14)
