"""Offsets, units, narrow floats, and counts of 1e12 cost no digits."""

import mpmath
import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS
from tests.estimators.cases import LABELS, reals

DYADIC = {  # cells are multiples of 1/64: an offset of 1e8 loses nothing
    **{
        f"GaussianNB {v}": (lambda v=v: bg.GaussianNB(variance=v))
        for v in ("class", "tied", "spherical", "class_spherical")
    },
    **{
        f"{estimator.__name__} {v}": (lambda estimator=estimator, v=v: estimator(covariance=v))
        for estimator in (bg.LinearDiscriminant, bg.QuadraticDiscriminant)
        for v in ("full", "diagonal", "spherical")
    },
    "MixedNB": bg.MixedNB,
}


def dyadic(seed=0, n=60):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = np.round(64 * reals(rng, codes)) / 64
    return X, LABELS[codes]


@pytest.mark.parametrize("make", DYADIC.values(), ids=DYADIC)
def test_an_offset_of_1e8_costs_no_digits(make):
    """A plug-in's theta holds the mean itself, which at 1e8 is rounded to 1e-8."""
    X, y = dyadic()
    new, _ = dyadic(1)
    offset = np.array([1e8, -1e8, 1e8])
    near = make().fit(X, y)
    far = make().fit(X + offset, y)
    parts = make()
    for rows in (slice(0, 20), slice(20, 25), slice(25, 60)):
        parts.partial_fit(X[rows] + offset, y[rows])
    merged = make().fit(X[:31] + offset, y[:31])
    merged.merge(make().fit(X[31:] + offset, y[31:]))
    for clf in (far, parts, merged):
        assert clf.log_evidence_ == pytest.approx(near.log_evidence_, rel=1e-9)
        for method in METHODS:
            np.testing.assert_allclose(
                clf.predict_joint_log_proba(new + offset, method=method),
                near.predict_joint_log_proba(new, method=method),
                rtol=1e-9 if method == "posterior_predictive" else 1e-7,
                atol=1e-9,
            )


@pytest.mark.parametrize("make", DYADIC.values(), ids=DYADIC)
def test_another_unit_is_the_same_model(make):
    X, y = dyadic()
    spherical = "spherical" in str(make())
    scale = np.full(3, 2.0**20) if spherical else 2.0 ** np.array([-30, 0, 40])
    a, b = make().fit(X, y), make().fit(X * scale, y)
    for method in METHODS:
        np.testing.assert_allclose(
            b.predict_proba(X * scale, method=method), a.predict_proba(X, method=method), rtol=1e-9
        )


@pytest.mark.parametrize("make", DYADIC.values(), ids=DYADIC)
def test_float32_is_read_as_the_float64_it_holds(make):
    X, y = dyadic()
    short = X.astype(np.float32)
    np.testing.assert_array_equal(short, X)
    a, b = make().fit(short, y), make().fit(X, y)
    for clf in (a, b):
        for rows in (short, X):
            np.testing.assert_allclose(clf.predict_proba(rows), b.predict_proba(X), rtol=1e-12)
    assert a.predict_proba(short).dtype == np.float64


def test_float32_that_has_lost_its_digits_is_said():
    X, y = dyadic()
    with pytest.warns(UserWarning, match="column 'x1' is float32 with mean 1e\\+08"):
        bg.GaussianNB().fit((X + np.array([0, 1e8, 0])).astype(np.float32), y)
    bg.GaussianNB().fit((X + 100).astype(np.float32), y)  # no warning: digits are left


@pytest.mark.parametrize("name", [n for n in DYADIC if "spherical" not in n])
@pytest.mark.parametrize("sizes", [(800, 800, 4), (20, 3, 3)])
def test_a_constant_column_leaves_the_probabilities_alone(name, sizes):
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(3), sizes)
    X, y = reals(rng, codes), LABELS[codes]
    new = reals(rng, np.arange(30) % 3)
    make = DYADIC[name]
    alone = make().fit(X, y)
    for constant, later in ((5.0, 5.0), (0.0, 3.0), (-1e8, 0.0), (0.1, 0.1), (1e-300, 0.0)):
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
    for name, make in DYADIC.items():
        if "spherical" not in name:  # there columns share a unit and constant ones take part
            clf = make().fit(np.full((5, 2), 3.0), [0, 0, 0, 1, 1])
            np.testing.assert_allclose(clf.predict_proba([[3.0, 4.0]]), [[4 / 7, 3 / 7]], rtol=1e-9)


mpmath.mp.dps = 50


def mp_negative_binomial(x, a, b):
    x, a, b = mpmath.mpf(x), mpmath.mpf(a), mpmath.mpf(b)
    log_choose = mpmath.loggamma(a + x) - mpmath.loggamma(a) - mpmath.loggamma(x + 1)
    return log_choose + a * mpmath.log(b / (b + 1)) - x * mpmath.log(b + 1)


def test_counts_of_1e12_poisson():
    X = np.array([[10**12, 3], [10**12 + 10**6, 5], [10**12 + 2 * 10**6, 10**9], [7, 10**9 + 5]])
    y = np.array([0, 0, 1, 1])
    clf = bg.PoissonNB(shape=2.0, rate=0.5).fit(X, y)
    new = np.array([[10**12 + 10**5, 4], [10**12 + 2 * 10**6, 10**9 + 7], [0, 0]])
    expected = np.zeros((3, 2))
    for c in range(2):
        a = [2 + int(v) for v in X[y == c].sum(axis=0)]
        for i, row in enumerate(new):
            log_p = sum(mp_negative_binomial(int(v), a[j], 2.5) for j, v in enumerate(row))
            expected[i, c] = log_p + mpmath.log(0.5)
    np.testing.assert_allclose(clf.predict_joint_log_proba(new), expected, rtol=1e-9)


def mp_dirichlet_multinomial(x, a):
    x, a = [mpmath.mpf(v) for v in x], [mpmath.mpf(v) for v in a]
    out = mpmath.loggamma(sum(x) + 1) + mpmath.loggamma(sum(a)) - mpmath.loggamma(sum(a) + sum(x))
    return out + sum(
        mpmath.loggamma(b + v) - mpmath.loggamma(b) - mpmath.loggamma(v + 1)
        for v, b in zip(x, a, strict=True)
    )


def test_counts_of_1e12_multinomial():
    X = np.array([[10**12, 3, 10**6], [10**11, 5, 10**9], [10**12, 10**12, 8]])
    y = np.array([0, 0, 1])
    clf = bg.MultinomialNB(alpha=0.5).fit(X, y)
    new = np.array([[10**12, 7, 10**8], [5, 1, 0], [10**12, 10**12, 10**3]])
    expected = np.zeros((3, 2))
    for c in range(2):
        a = [0.5 + int(v) for v in X[y == c].sum(axis=0)]
        for i, row in enumerate(new):
            log_p = mp_dirichlet_multinomial([int(v) for v in row], a)
            expected[i, c] = log_p + mpmath.log(mpmath.mpf([3, 2][c]) / 5)
    np.testing.assert_allclose(clf.predict_joint_log_proba(new), expected, rtol=1e-9)


def test_weights_of_1e12():
    weight = np.array([1e12, 3e12, 2e12, 2e12])
    clf = bg.BernoulliNB(alpha=0.5, beta=0.5).fit([[1], [0], [1], [0]], [0, 0, 1, 1], weight)
    a, b = mpmath.mpf(1e12) + 0.5, mpmath.mpf(3e12) + 0.5
    expected = mpmath.log(a / (a + b)) + mpmath.log(mpmath.mpf(4e12 + 1) / mpmath.mpf(8e12 + 2))
    assert clf.predict_joint_log_proba([[1]])[0, 0] == pytest.approx(float(expected), rel=1e-15)


def test_many_features_do_not_underflow():
    rng = np.random.default_rng(0)
    X, y = rng.random((20, 100_000)) < 0.5, np.arange(20) % 2
    clf = bg.BernoulliNB().fit(X, y)
    joint = clf.predict_joint_log_proba(X)
    assert joint.max() < -10_000
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1, rtol=1e-14)
