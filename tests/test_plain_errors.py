"""What used to end in an error of another library: it works, or one sentence says what to do."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen.cli import app

RNG = np.random.default_rng(0)
Y = np.arange(40) % 2
A = RNG.normal(size=(40, 2)) + 2 * Y[:, None]
CLF = bg.GaussianNB().fit(A, Y)


# ------------------------------------------------------------------------------------- what works


@pytest.mark.parametrize("make", [bg.MixedNB, bg.TreeAugmentedNB, bg.MetaTreeForest])
def test_a_column_may_have_an_empty_name(make):
    X = pd.DataFrame(A, columns=["", "b"])
    named = X.rename(columns={"": "a"})
    p = make().fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(p, make().fit(named, Y).predict_proba(named))


def test_labels_beyond_int64(tmp_path):
    y = np.array([2**63, 2**63 + 1], dtype=np.uint64)[Y]
    clf = bg.GaussianNB().fit(A, y)
    np.testing.assert_array_equal(clf.classes_, np.unique(y), strict=True)
    expected = bg.GaussianNB().fit(A, Y).predict_proba(A)
    np.testing.assert_array_equal(clf.predict_proba(A), expected)
    clf.save(tmp_path / "m.nc")
    np.testing.assert_array_equal(bg.load(tmp_path / "m.nc").predict(A), clf.predict(A))


@pytest.mark.parametrize("fill", [0, np.nan])
def test_sparse_columns_of_pandas(fill):
    dense = pd.DataFrame(A, columns=["a", "b"])
    some = dense.astype(pd.SparseDtype(float, fill))
    clf = bg.GaussianNB().fit(some, Y)
    expected = bg.GaussianNB().fit(dense, Y).predict_proba(dense)
    np.testing.assert_array_equal(clf.predict_proba(some), expected)


# ------------------------------------------------------------------------------------ what is told


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: CLF.loo(A, Y, groups=pd.Series(["a", None] * 20)),
            ValueError,
            "groups has no name in row 1",
        ),
        (
            lambda: CLF.loo(A, Y, groups=[["a"], 1] * 20),
            TypeError,
            "groups must be labels that can be hashed",
        ),
        (
            lambda: bg.GaussianNB().fit(A, Y, sample_weight={0: 1, 1: 2}),
            TypeError,
            r"\[weights\[label\] for label in y\]",
        ),
        (
            lambda: bg.GaussianNB().fit(A, Y, sample_weight="balanced"),
            TypeError,
            "one for each row, got 'balanced'",
        ),
        (
            lambda: bg.GaussianNB(class_weight="balanced"),
            TypeError,
            "GaussianNB has no argument 'class_weight': use class_prior=",
        ),
        (
            lambda: bg.LinearDiscriminant(n_components=1),
            TypeError,
            "LinearDiscriminant has no argument 'n_components'",
        ),
        (
            lambda: bg.LinearDiscriminant(nonsense=1),
            TypeError,
            "LinearDiscriminant got an unexpected keyword argument 'nonsense'",
        ),
        (
            lambda: bg.LogLinearPool().fit(["a", "b", None, "c", "d", "e"], [0, 1] * 3),
            ValueError,
            "document 2 is missing",
        ),
        (lambda: CLF.predict_interval(A, prob="x"), ValueError, "prob must be between 0 and 1"),
        (lambda: CLF.merge(None), TypeError, "cannot merge NoneType .* a fitted GaussianNB"),
    ],
)
def test_one_sentence_says_what_to_do(call, error, words):
    with pytest.raises(error, match=words):
        call()


# -------------------------------------------------------------------------------- the command line


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    X = pd.DataFrame({"x": A[:, 0], "flag": A[:, 1] > 1, "k": np.arange(40) % 5})
    X.assign(y=np.where(Y, "b", "a")).to_csv(folder / "t.csv", index=False)
    model = folder / "m.nc"
    data = folder / "t.csv"
    assert run("fit", data, "-t", "y", "-o", model, "-m", "meta-trees").exit_code == 0
    return folder


def test_truth_values_for_a_saved_forest(files):
    found = run("predict", files / "m.nc", files / "t.csv", "-o", files / "p.csv")
    assert found.exit_code == 0, found.output
    X = pd.read_csv(files / "t.csv").drop(columns="y")
    expected = bg.load(files / "m.nc").predict_proba(X)
    found = pd.read_csv(files / "p.csv")[["p_a", "p_b"]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_target_is_not_a_column_of_the_model(files):
    found = run("compare", files / "m.nc", files / "t.csv", "-t", "x")
    assert found.exit_code == 2
    assert "--target x: the model reads this column" in found.output


def test_two_costs_of_one_mistake(files):
    costs = ["--cost", "a,b=1", "--cost", "a,b=3"]
    found = run("predict", files / "m.nc", files / "t.csv", "-o", files / "p.csv", *costs)
    assert found.exit_code == 2
    assert "--cost a,b=3 and --cost a,b=1 are of the same labels" in found.output


def test_an_identifier_of_5000_digits_is_text(files):
    table = pd.read_csv(files / "t.csv").astype({"k": str})
    table.loc[3, "k"] = "7" * 5000
    table.to_csv(files / "long.csv", index=False)
    model = files / "long.nc"
    found = run("fit", files / "long.csv", "-t", "y", "-o", model, "-m", "mixed")
    assert found.exit_code == 0, found.output
    clf = bg.load(model)
    assert dict(zip(clf.feature_names_in_, clf.schema_.kinds, strict=True))["k"] == "categorical"


def test_a_frame_without_columns_is_named():
    with pytest.raises(ValueError, match=r"X has no columns: 0 feature\(s\) \(shape=\(4, 0\)\)"):
        bg.GaussianNB().fit(pd.DataFrame(index=range(4)), [0, 1, 0, 1])
