"""Compiled counts and sums of category codes against the NumPy form of the family."""

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.encoding import categories
from bayesgen.families.conjugate.dirichlet_categorical import DirichletCategorical
from bayesgen.families.shared.codes import Recoded
from bayesgen.numerics import kernels

N, D, C = 600, 6, 4  # the last class has no rows
SIZES = (3, 2, 5, 9, 1, 4)


def plain(monkeypatch):
    monkeypatch.setattr(kernels, "COMPILE_FROM", 1 << 60)


def compiled(monkeypatch):
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)


def some_codes(rng):
    return rng.integers(0, SIZES, (N, D)), rng.integers(0, C - 1, N)


def with_gaps(X, rng):
    X = X.astype(np.float64)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 1] = np.nan
    return X


FORMS = {
    "int64": lambda X, rng: X,
    "int8": lambda X, rng: X.astype(np.int8),
    "uint8": lambda X, rng: X.astype(np.uint8),
    "uint64": lambda X, rng: X.astype(np.uint64),
    "float64": lambda X, rng: X.astype(np.float64),
    "float32": lambda X, rng: X.astype(np.float32),
    "gaps": with_gaps,
    "Fortran order": lambda X, rng: np.asfortranarray(X),
    "every third column": lambda X, rng: np.repeat(X, 3, axis=1)[:, ::3],
    "big-endian": lambda X, rng: X.astype(">i4"),
    "one row": lambda X, rng: X[:1],
    "more than one block": lambda X, rng: np.tile(X, (120, 1)),
}


@pytest.fixture(params=FORMS, ids=str)
def rows(request):
    rng = np.random.default_rng(3)
    X, y = some_codes(rng)
    X = FORMS[request.param](X, rng).view()
    X.flags.writeable = False
    return X, np.resize(y, len(X))


def unknown(X):
    """The same rows with a few cells that are no codes."""
    X = X.copy()
    X[0, 0] = 77
    if X.dtype.kind == "f":
        X[0, 2], X[0, 3], X[0, 5] = 0.5, -1, 1e300 if X.dtype == np.float64 else 1e30
    elif X.dtype.kind == "i":
        X[0, 3] = -1
    else:
        X[0, 3] = np.iinfo(X.dtype).max
    return X


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_those_of_numpy(rows, weighted, monkeypatch):
    X, y = rows
    weight = np.random.default_rng(5).random(len(X)) if weighted else None
    family = DirichletCategorical(n_categories=SIZES)
    plain(monkeypatch)
    expected = family.stats(X, y, C, weight).counts
    compiled(monkeypatch)
    found = family.stats(X, y, C, weight).counts
    np.testing.assert_allclose(found, expected, rtol=1e-13 if weighted else 0)


def test_a_number_that_is_no_code_is_refused_by_name(rows, monkeypatch):
    X, y = rows
    family = DirichletCategorical(n_categories=SIZES)
    messages = []
    for way in (plain, compiled):
        way(monkeypatch)
        with pytest.raises(ValueError, match="row 0, feature 0: 77") as error:
            family.stats(unknown(X), y, C)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_sums_are_those_of_numpy(rows, monkeypatch):
    """Predictives, plug-ins and draws, of cells never seen as well; log 0 stays -inf."""
    X, y = rows
    plain(monkeypatch)
    family = DirichletCategorical(0.5, SIZES)
    stats = family.stats(X, y, C)
    posterior = family.resolve(stats).update(stats)
    draws = posterior.draw(np.random.default_rng(0), 6)
    theta = {"theta": draws["theta"].reshape(2, 3, *draws["theta"].shape[1:])}
    one = {"theta": draws["theta"][0]}
    mle = posterior.for_plug_in("mle")
    for rows_ in (X, unknown(X)):
        plain(monkeypatch)
        expected = posterior.log_predictive(rows_), posterior.log_likelihood(rows_, theta)
        impossible = mle.log_likelihood(rows_, one)
        compiled(monkeypatch)
        found = posterior.log_predictive(rows_), posterior.log_likelihood(rows_, theta)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        np.testing.assert_allclose(mle.log_likelihood(rows_, one), impossible, rtol=1e-12)


def test_codes_that_occur():
    """Small arrays are not looked at; infinity, fractions and large numbers are no codes."""
    X, _ = some_codes(np.random.default_rng(0))
    assert categories.occurring(X) is None
    assert categories.occurring(None) is None
    assert not categories.may_stand(X)


@pytest.mark.parametrize("value", [np.inf, -1.0, 0.5, 1024.0, 1e300])
def test_numbers_that_are_no_codes_are_left_to_the_columns(value, monkeypatch):
    compiled(monkeypatch)
    X = some_codes(np.random.default_rng(0))[0].astype(np.float64)
    X[3, 3] = np.nan
    found = categories.occurring(X)
    assert [column.tolist() for column in found] == [list(range(k)) for k in SIZES]
    X[7, 1] = value
    assert categories.occurring(X) is None
    assert categories.may_stand(X) == np.isfinite(value)


@pytest.mark.parametrize("unseen", ["prior", "ignore", "raise"])
@pytest.mark.parametrize("declared", [None, 10])
def test_a_classifier_says_the_same_either_way(rows, unseen, declared, monkeypatch):
    X, y = rows
    if len(X) == 1:
        pytest.skip("a class more than one row")
    found = []
    for way in (plain, compiled):
        way(monkeypatch)
        try:
            clf = bg.CategoricalNB(categories=declared, unseen=unseen).fit(X, y)
        except ValueError as error:
            found.append(str(error))
            continue
        before = X.copy()
        log_p = clf.predict_log_proba(X)
        try:
            new = clf.predict_log_proba(unknown(X))
        except ValueError as error:
            new = str(error)
        np.testing.assert_array_equal(X, before)
        found.append((clf.categories_, log_p, new))
    a, b = found
    if isinstance(a, str):
        assert a == b
        return
    assert a[0] == b[0]
    assert [[type(v) for v in column] for column in a[0]] == [
        [type(v) for v in column] for column in b[0]
    ]
    np.testing.assert_allclose(b[1], a[1], rtol=1e-10)
    if isinstance(a[2], str):
        assert a[2] == b[2]
    else:
        np.testing.assert_allclose(b[2], a[2], rtol=1e-10)


@pytest.mark.parametrize("shift", [0, 1, 2000], ids=["codes", "from one", "large numbers"])
def test_booleans_and_numbers_that_need_a_table(shift, monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 2, (500, 3)), rng.integers(0, 2, 500)
    for cells in (X + shift, X == 1):
        probabilities = []
        for way in (plain, compiled):
            way(monkeypatch)
            clf = bg.CategoricalNB().fit(cells, y)
            probabilities.append(clf.predict_proba(cells))
            assert clf.categories_[0] == (
                (False, True) if cells.dtype == bool else (shift, shift + 1)
            )
            assert type(clf.categories_[0][0]) is (bool if cells.dtype == bool else int)
        np.testing.assert_allclose(*probabilities, rtol=1e-12)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused_in_training_and_prediction(value, monkeypatch):
    compiled(monkeypatch)
    X, y = some_codes(np.random.default_rng(0))
    clf = bg.CategoricalNB().fit(X, y)
    bad = X.astype(np.float64)
    bad[5, 2], bad[6, 1] = value, np.nan
    for call in (lambda: bg.CategoricalNB().fit(bad, y), lambda: clf.predict(bad)):
        with pytest.raises(ValueError, match=r"column 2 holds -?inf in row 5"):
            call()


@pytest.mark.parametrize("unseen", ["prior", "ignore"])
@pytest.mark.parametrize("form", ["int64", "float32", "gaps", "Fortran order"])
def test_whole_numbers_that_are_not_the_codes_are_looked_up_as_they_are_read(
    form, unseen, monkeypatch
):
    """Numbers far apart, declared in an order of the user's own, one of them without rows."""
    rng = np.random.default_rng(1)
    declared = [[7, 3, 1000], [12, 9], [5, 4, 6, 40]]
    X = np.stack([rng.choice(column, N) for column in ([7, 3], [12, 9], [5, 4, 6, 40])], axis=1)
    y, new = rng.integers(0, 3, N), rng.integers(0, 50, (N, 3))
    new[:9] = -5, 1001, 12
    X, new = FORMS[form](X, rng), FORMS[form](new, rng)
    if form == "gaps":
        X[:, 1] = 12
    found = []
    for way, dtype in ((plain, object), (plain, X.dtype), (compiled, X.dtype)):
        way(monkeypatch)
        rows, others = X.astype(dtype), new.astype(dtype)  # objects are read column by column
        clf = bg.CategoricalNB(categories=declared, unseen=unseen).fit(rows, y)
        draws = clf.draw_posterior(300, chains=1, groups=())
        found.append(
            [
                clf.stats_.features.counts,
                clf.predict_log_proba(others),
                clf.predict_log_proba(others, posterior=draws),
                clf.predict_posterior(others, draws=3)["predictions"]["class_probability"].values,
            ]
        )
        assert isinstance(clf.fitted_.read(rows).as_read, Recoded) == (dtype is not object)
    for expected, *others in zip(*found, strict=True):
        for other in others:
            np.testing.assert_allclose(other, expected, rtol=1e-9)
    recoded = clf.fitted_.read(new).as_read
    np.testing.assert_array_equal(recoded[4:40], clf.fitted_.read(new).encoded[4:40])
