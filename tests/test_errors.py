"""Errors carry facts: row, column, advice. Whoever tells them elsewhere reads no message.

Rows and columns of what is refused: tests/estimators/test_errors.
"""

import importlib
import pickle
import pkgutil
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import bayesgen as bg
from bayesgen.errors import Facts, InputError, InputTypeError, placed
from bayesgen.families.errors import NoClosedFormError, UndefinedEstimateError

X = pd.DataFrame({"a": [0.5, 1.5, 2.5, 3.0], "row 1": [1.0, 0.0, 2.0, 1.0]})
Y = ["p", "p", "q", "q"]
CODES = np.arange(40) % 2
A = np.random.default_rng(0).normal(size=(40, 2)) + 2 * CODES[:, None]


def own_errors():
    """Every error and warning that a module of the package defines."""
    for module in pkgutil.walk_packages(bg.__path__, "bayesgen."):
        if ".numerics.kernels." not in module.name and not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                is_error = isinstance(value, type) and issubclass(value, Exception)
                if is_error and value.__module__ == module.name and not name.startswith("_"):
                    yield value


def test_every_error_of_the_package_has_facts():
    errors = set(own_errors())
    assert {Facts, InputError, NoClosedFormError, UndefinedEstimateError} < errors
    assert {e.__name__ for e in errors if not issubclass(e, Facts)} <= {"UserError"}  # of the cli


def test_told_with_other_facts():
    error = InputError("column 'a' holds 'row 3'", ", no number", row=3, column="a", advice="x=1")
    assert str(error) == "column 'a' holds 'row 3' in row 3, no number; x=1"
    assert error.told(8, "--x") == "column 'a' holds 'row 3' in row 8, no number; --x"
    assert error.told(None, None) == "column 'a' holds 'row 3', no number"
    inside = error.within("chunk 2")
    assert str(inside) == "chunk 2: column 'a' holds 'row 3' in row 3, no number; x=1"
    assert (type(inside), inside.row, inside.column) == (InputError, 3, "a")
    assert str(error).startswith("column")


@pytest.mark.parametrize(
    "error",
    [
        InputTypeError("x", row=1, column=0),
        NoClosedFormError("none", advice="use another"),
        UndefinedEstimateError("mle", "0/0", 0, 1, "p", "a", "use more rows"),
    ],
)
def test_errors_travel_between_processes(error):
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))


def test_placed_keeps_the_type():
    for error in (ValueError("x"), TypeError("x"), InputError("x", row=2)):
        with pytest.raises(type(error), match=r"^there: x") as caught, placed("there"):
            raise error
        assert getattr(caught.value, "row", None) == getattr(error, "row", None)
    with pytest.raises(KeyError), placed("there"):
        raise KeyError("x")


def test_warnings_name_the_line_of_the_caller():
    """Behind decorators and a pipeline of scikit-learn."""
    y = np.arange(20) % 2
    numbered = pd.DataFrame({"a": np.arange(20.0), "b": [None] * 20})
    for call in (
        lambda: bg.MixedNB().fit(numbered, y),
        lambda: make_pipeline(bg.MixedNB()).fit(numbered, y),
    ):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        assert {w.filename for w in seen} == {__file__}


# ------------------------------------------------------------------------------------- what works


@pytest.mark.parametrize("make", [bg.MixedNB, bg.TreeAugmentedNB, bg.MetaTreeForest])
def test_a_column_may_have_an_empty_name(make):
    frame = pd.DataFrame(A, columns=["", "b"])
    named = frame.rename(columns={"": "a"})
    p = make().fit(frame, CODES).predict_proba(frame)
    np.testing.assert_array_equal(p, make().fit(named, CODES).predict_proba(named))


def test_labels_beyond_int64(tmp_path):
    y = np.array([2**63, 2**63 + 1], dtype=np.uint64)[CODES]
    clf = bg.GaussianNB().fit(A, y)
    np.testing.assert_array_equal(clf.classes_, np.unique(y), strict=True)
    expected = bg.GaussianNB().fit(A, CODES).predict_proba(A)
    np.testing.assert_array_equal(clf.predict_proba(A), expected)
    clf.save(tmp_path / "m.nc")
    np.testing.assert_array_equal(bg.load(tmp_path / "m.nc").predict(A), clf.predict(A))


@pytest.mark.parametrize("fill", [0, np.nan])
def test_sparse_columns_of_pandas(fill):
    dense = pd.DataFrame(A, columns=["a", "b"])
    some = dense.astype(pd.SparseDtype(float, fill))
    clf = bg.GaussianNB().fit(some, CODES)
    expected = bg.GaussianNB().fit(dense, CODES).predict_proba(dense)
    np.testing.assert_array_equal(clf.predict_proba(some), expected)


# ------------------------------------- one spelling of an argument; PyMC's and ArviZ's is answered


def test_the_seed_of_pymc_is_answered():
    clf = bg.GaussianNB().fit(A, CODES)
    for call in (
        lambda: clf.sample_posterior(chains=1, random_seed=1),
        lambda: bg.StudentTNB().fit([[1.0]], ["a"], random_seed=1),
    ):
        with pytest.raises(TypeError, match="random_state"):
            call()
