"""Compiled logarithms, exponentials and class probabilities against NumPy's and exact numbers."""

import numba
import numpy as np
import pytest

import bayesgen as bg
from bayesgen.numerics import kernels
from bayesgen.numerics import special as numerics
from bayesgen.numerics.kernels import arithmetic
from bayesgen.numerics.kernels.mixtures import log_softmax
from bayesgen.predict.distribution import write_probabilities
from bayesgen.predict.probabilities import ImpossibleRowError, log_class_probability


def over_arrays(kernel):
    """Compiled anew for a caller that may reorder sums, as programs of PyTensor may."""
    f = numba.jit(**kernel.targetoptions)(kernel.py_func)

    @numba.njit(fastmath={"arcp", "contract", "afn", "reassoc", "nsz"})
    def each(x):
        out = np.empty_like(x)
        for i in range(len(x)):
            out[i] = f(x[i])
        return out

    return each


log1p, exp = over_arrays(arithmetic.log1p), over_arrays(arithmetic.exp)


def test_log1p_is_right_to_the_last_places():
    rng = np.random.default_rng(0)
    x = np.r_[10 ** rng.uniform(-300, 300, 20000), rng.uniform(0, 4, 20000), 1, 2**53, 1e300]
    exact = np.log1p(x.astype(np.longdouble))
    assert np.abs(log1p(x) / exact - 1).max() < 2.5e-16
    np.testing.assert_array_equal(log1p(np.array([0.0, 5e-324, np.nan])), [0.0, 5e-324, np.nan])


def test_exp_is_right_to_the_last_places():
    rng = np.random.default_rng(0)
    x = np.r_[rng.uniform(-708, 700, 20000), rng.uniform(-1, 1, 20000), 1e-300, -1e-20, 0]
    exact = np.exp(x.astype(np.longdouble))
    assert np.abs(exp(x) / exact - 1).max() < 2.5e-16
    tiny = np.linspace(-745, -708, 100)  # below the smallest normal number
    np.testing.assert_allclose(exp(tiny), np.exp(tiny), rtol=1e-15, atol=5e-324)
    np.testing.assert_array_equal(exp(np.array([-746.0, -1e9, -np.inf, np.nan])), [0, 0, 0, np.nan])


@pytest.mark.parametrize("n_classes", [1, 2, 5, 300])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_normalised_as_numpy_does(n_classes, order):
    rng = np.random.default_rng(1)
    a = np.asarray(rng.normal(0, 30, (700, n_classes)), order=order)
    a[::9] *= 100
    a[::5, 0] = -np.inf
    a[3], a[600], a[601, -1], a[602, -1] = -np.inf, -np.inf, np.nan, np.inf
    nowhere = np.isneginf(a).all(axis=1)
    with np.errstate(invalid="ignore"):
        expected = numerics.log_softmax(a)
    assert log_softmax(a) == nowhere.sum()
    assert np.isneginf(a[nowhere]).all()
    np.testing.assert_allclose(a[~nowhere], expected[~nowhere], rtol=1e-13, atol=0)


def test_probabilities_of_draws_do_not_depend_on_the_route(monkeypatch):
    """Compiled or not, one chain or two, whole or in blocks: one answer, or one error."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((300, 3)), rng.integers(0, 3, 300)
    for make in (bg.GaussianNB, bg.BernoulliNB, bg.LinearDiscriminant):
        clf = make().fit(X, y)
        tree = clf.draw_posterior(40, chains=2, groups=())
        theta = clf.model_.draw(np.random.default_rng(0), 6)
        rho = []
        for compile_from in (0, 1 << 60):
            monkeypatch.setattr(kernels, "COMPILE_FROM", compile_from)
            for weights in (None, [0.2, 0.3, 0.5]):
                found = clf.predict_posterior(X, posterior=tree, class_prior=weights)
                rho.append(found["predictions"]["class_probability"].values)
                assert rho[-1].shape == (2, 40, 300, 3)
        np.testing.assert_allclose(rho[0], rho[2], rtol=1e-12)
        np.testing.assert_allclose(rho[1], rho[3], rtol=1e-12)
        draws = {name: np.array(value)[None] for name, value in theta.items()}
        draws[next(iter(clf.model_.family.params))][0, 4] = np.nan
        for compile_from in (0, 1 << 60):
            monkeypatch.setattr(kernels, "COMPILE_FROM", compile_from)
            with pytest.raises(ValueError, match=r"NaN for draw \d, row 0"):
                write_probabilities(
                    np.empty((6, 300, 3)), clf.model_.family, draws, clf.fitted_.read(X).encoded
                )


@pytest.mark.parametrize("compile_from", [0, 1 << 60], ids=["compiled", "NumPy"])
def test_impossible_rows_are_refused(compile_from, monkeypatch):
    monkeypatch.setattr(kernels, "COMPILE_FROM", compile_from)
    joint = np.array([[-1.0, -np.inf], [-np.inf, -np.inf], [-3.0, -3.0]])
    with pytest.raises(ImpossibleRowError, match=r"1 row\(s\), the first at position 1,"):
        log_class_probability(joint.copy(), "mle")
    found = log_class_probability(joint[::2].copy(), "mle")
    np.testing.assert_allclose(found, [[0, -np.inf], [-np.log(2), -np.log(2)]], rtol=1e-15)
    assert np.isnan(log_class_probability(np.array([[np.nan, np.nan]]), "map")).all()


def test_every_way_to_ask_gives_one_answer(monkeypatch):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((500, 3)), rng.integers(0, 2, 500)
    clf = bg.GaussianNB().fit(X, y)
    expected = clf.predict_log_proba(X), clf.decision_function(X), clf.predict(X)
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    np.testing.assert_allclose(clf.predict_log_proba(X), expected[0], rtol=1e-12)
    np.testing.assert_allclose(clf.predict_proba(X), np.exp(expected[0]), rtol=1e-12)
    np.testing.assert_allclose(clf.decision_function(X), expected[1], rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(clf.predict(X), expected[2])
