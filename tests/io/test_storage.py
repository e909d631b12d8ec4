"""Model files: what was saved is what is loaded, and nothing else passes for it."""

import errno
import json
import os
import pickle
import re
import resource
from contextlib import contextmanager
from itertools import product

import h5netcdf
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from scipy import sparse
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.suspects import ColumnWarning
from bayesgen.encoding.tokens import Vocabulary
from bayesgen.encoding.views import TableView, TextLength
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS
from bayesgen.io import storage
from tests.selection import rest_is_slow

# -------------------------------------------------------------------------------------- data

N = 24
Y = np.array(["ash", "birch", "cedar"])[np.arange(N) % 3]


def rng():
    return np.random.default_rng(11)


REAL = rng().normal(size=(N, 3)) + np.arange(N)[:, None] % 3
MISSING_CELLS = np.where(rng().random((N, 3)) < 0.1, np.nan, REAL)
COUNTS = rng().poisson(1 + 2 * (np.arange(N)[:, None] % 3), (N, 4)).astype(float)
BITS = (COUNTS > 2).astype(float)
WORDS = np.array([["red", "S"], ["blue", "M"], ["red", None], ["green", "L"]], dtype=object)[
    rng().integers(0, 4, N)
]
TABLE = pd.DataFrame(MISSING_CELLS, columns=["length", "weight", "depth"]).assign(
    colour=WORDS[:, 0], size=pd.Categorical(WORDS[:, 1], ["S", "M", "L", "XL"]), wild=BITS[:, 0] > 0
)
TEXTS = ["".join(rng().permutation(list("abac bc"))[: 2 + i % 5]) for i in range(N)]

# containers, declared columns, settings that files keep; every classifier: laws/test_classifiers.py
CASES = {
    "BernoulliNB": (lambda: bg.BernoulliNB([0.5, 1, 2, 1], class_alpha=[1.0, 2, 3]), BITS),
    "BernoulliNB sparse": (lambda: bg.BernoulliNB(np.ones((3, 1))), sparse.csr_matrix(BITS)),
    "CategoricalNB": (lambda: bg.CategoricalNB(0.5), WORDS),
    "CategoricalNB declared": (
        lambda: bg.CategoricalNB(categories={1: ["S", "M", "L", "XL"]}, unseen="ignore"),
        WORDS,
    ),
    "MultinomialNB": (bg.MultinomialNB, COUNTS),
    "PoissonNB": (bg.PoissonNB, pd.DataFrame(COUNTS, columns=["ü/1", "β", "c d", ""])),
    "GaussianNB": (bg.GaussianNB, MISSING_CELLS),
    "MixedNB named": (
        lambda: bg.MixedNB(
            {"gaussian": ["depth"], "categorical": ["colour", "size"], "drop": ["length"]}
            | {"bernoulli": ("wild",), "poisson": "weight"},
            {"colour": ["red", "blue", "green", "violet"]},
        ),
        TABLE.assign(weight=COUNTS[:, 0]),
    ),
    "MixedNB polars": (bg.MixedNB, pl.from_pandas(TABLE)),
    "QuadraticDiscriminant": (lambda: bg.QuadraticDiscriminant(psi0=np.eye(3) * 2), REAL),
    "MarkovNB tokens": (bg.MarkovNB, [list(text) for text in TEXTS]),
    "GenerativeClassifier": (bg.GenerativeClassifier, REAL),
    "arrays": (
        lambda: bg.GaussianNB([0.0, 1, 2], np.full((3, 1), 2.0), sigma2_0=np.float32(1.5)),
        REAL,
    ),
    "a Series": (lambda: bg.GaussianNB(mu0=pd.Series([0.0, 1.0, 2.0])), REAL),
    "positions": (lambda: bg.MixedNB({"gaussian": [0, np.int64(1)], "drop": (2,)}), REAL),
}
# one of each kind and each container; their variants in the slow tests, as each writes files
FIRST = ("BernoulliNB", "CategoricalNB declared", "MultinomialNB", "PoissonNB", "GaussianNB")
FIRST += ("MixedNB named", "QuadraticDiscriminant", "MarkovNB tokens", "GenerativeClassifier")
FIRST += ("arrays", "positions")


def assert_equal(a, b, X):
    """Every number of two classifiers, to the last bit."""
    assert type(a) is type(b)
    np.testing.assert_array_equal(a.classes_, b.classes_)
    assert a.classes_.dtype == b.classes_.dtype
    assert a.n_rows_seen_ == b.n_rows_seen_
    assert a.log_evidence_ == b.log_evidence_
    for method in METHODS:
        try:
            joint = a.predict_joint_log_proba(X, method=method)
        except UndefinedEstimateError as error:
            with pytest.raises(UndefinedEstimateError, match=re.escape(str(error))):
                b.predict_joint_log_proba(X, method=method)
            continue
        np.testing.assert_array_equal(b.predict_joint_log_proba(X, method=method), joint)
    np.testing.assert_array_equal(b.predict(X), a.predict(X))


# -------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", rest_is_slow(CASES, FIRST))
def test_what_was_saved_is_loaded(name, tmp_path):
    make, X = CASES[name]
    path = tmp_path / "model.nc"
    clf = make().fit(take(X, np.arange(16)), Y[:16])
    assert clf.save(path) is None
    loaded = bg.load(path)
    assert_equal(clf, loaded, X)
    for attribute in ("n_features_in_", "feature_names_in_"):
        np.testing.assert_array_equal(*(getattr(c, attribute, None) for c in (loaded, clf)))
    for argument, value in clf.get_params(deep=False).items():
        if not isinstance(value, dict):
            np.testing.assert_array_equal(getattr(loaded, argument), value)
    # draws come from the same numbers, with the same names
    xr.testing.assert_identical(
        loaded.draw_posterior(3, 2)["posterior"].to_dataset(),
        clf.draw_posterior(3, 2)["posterior"].to_dataset(),
    )
    for one in (clf, loaded):  # which goes on learning
        one.partial_fit(take(X, np.arange(16, N)), Y[16:])
    assert_equal(clf, loaded, X)


TABLE = [["a", 1.5], ["b", 2.5], ["a", None]]
SCHEMA = TableSchema.learn(TABLE)
JSON = {
    "str": np.array(["p", "qq"]),
    "empty string": np.array(["", "x"]),
    "object": np.array(["p", "qq"], dtype=object),
    "int": np.array([-5, 2**62]),
    "uint8": np.array([1, 255], dtype=np.uint8),
    "bool": np.array([False, True]),
    "date": np.array(["2020-01-01", "2021-06-30"], dtype="datetime64[D]"),
    "no dimension": np.array(2.5),
    "nested": {"a": (1, [2.5, None]), 3: {"b": "c"}},
    "tokens": Vocabulary.learn([["a", "é", "\ud800", 3, 2.0, 1.5, False, "", ("a", 1)]]),
    "view": TableView.learn(SCHEMA, SCHEMA.encode(TABLE), "normal scores"),
    "length": TextLength("ab"),
}


@pytest.mark.parametrize("value", JSON.values(), ids=JSON)
def test_arrays_and_arguments_keep_their_type_as_json(value):
    again = storage.from_json(json.loads(json.dumps(storage.to_json(value, "value"))))
    assert type(again) is type(value)
    if isinstance(value, np.ndarray):
        np.testing.assert_array_equal(again, value, strict=True)
    else:
        assert repr(again) == repr(value)  # 1 is not True


@pytest.mark.parametrize(
    "value",
    [np.array([0, 1], dtype=np.longdouble), np.array([0, 1], dtype="m8[D]"), object()],
    ids=["long double", "duration", "object"],
)
def test_what_json_cannot_hold_is_refused(value, tmp_path):
    with pytest.raises(TypeError, match="cannot save mu0="):
        bg.GaussianNB().fit(REAL, Y).set_params(mu0=value).save(tmp_path / "m.nc")
    assert list(tmp_path.iterdir()) == []


COLUMNS = {
    "text": ["red", "blue", None],
    "awkward text": ["", "ä\n'\"\\", "None"],
    "integers": [3, -1, 2**53 + 1],
    "floats": [0.5, np.nan, -1e300],
    "booleans": [True, False, None],
    "pandas categories": pd.Categorical(["b", "a", None], ["c", "b", "a"]),
    "unused categories": pd.Categorical([None, None, None], ["u", "v"]),
    "pandas strings": pd.array(["x", None, "y"], dtype="string"),
}


@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
def test_categories_keep_their_type(tmp_path):
    X = pd.DataFrame(COLUMNS)
    with pytest.warns(ColumnWarning, match="'unused categories' holds nothing but missing"):
        clf = bg.CategoricalNB().fit(X, [0, 1, 1])
    clf.save(tmp_path / "m.nc")
    loaded = bg.load(tmp_path / "m.nc")
    assert loaded.categories_ == clf.categories_
    for mine, theirs in zip(clf.categories_, loaded.categories_, strict=True):
        assert list(map(type, mine)) == list(map(type, theirs))
    assert_equal(clf, loaded, X)
    assert_equal(clf, loaded, X.assign(text="unseen", integers=7))


# ------------------------------------------------------------- what a file cannot hold is asked


def test_a_tokenizer_is_asked_for(tmp_path):
    path = tmp_path / "m.nc"
    clf = bg.MarkovNB(1, tokens=str.split).fit(["ab cd", "cd cd", "ef ab"], ["a", "a", "b"])
    clf.save(path)
    with pytest.raises(ValueError, match=r"saved with tokens=.*load\(path, tokens=\.\.\.\)"):
        bg.load(path)
    assert_equal(clf, bg.load(path, tokens=str.split), ["cd ab"])


def test_a_family_is_asked_for(tmp_path):
    path, family = tmp_path / "m.nc", NormalInverseGamma(variance="tied")
    clf = bg.GenerativeClassifier(family).fit(REAL, Y)
    clf.save(path)
    with pytest.raises(ValueError, match=r"load\(path, family=\.\.\.\)"):
        bg.load(path)
    with pytest.raises(ValueError, match="holds a NormalInverseGamma, not a BetaBernoulli"):
        bg.load(path, family=BetaBernoulli())
    loaded = bg.load(path, family=family)
    assert_equal(clf, loaded, REAL)
    assert_equal(clf.partial_fit(REAL, Y), loaded.partial_fit(REAL, Y), REAL)


def test_classes_of_the_user_s_own_are_refused(tmp_path):
    class Mine(bg.GaussianNB):
        pass

    clf = Mine().fit(REAL, Y)
    for model in (clf, bg.LogLinearPool([Mine()]).fit(REAL, Y)):
        with pytest.raises(TypeError, match=r"Mine is a class of your own.*pickle it"):
            model.save(tmp_path / "m.nc")
    assert list(tmp_path.iterdir()) == []
    chunks = [(REAL[:4], Y[:4]), (REAL[4:], Y[4:])]  # a checkpoint is read with the class at hand
    for _ in range(2):
        again = bg.fit_stream(Mine(), chunks, checkpoint=tmp_path / "c.nc")
    assert again.log_evidence_ == pytest.approx(clf.log_evidence_)


# --------------------------------------------------------------------- damaged and foreign files


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.nc"
    clf = bg.GaussianNB().fit(REAL, Y)
    clf.save(path)
    return clf, path.read_bytes()


FOREIGN = {
    "empty": lambda path, model: path.write_bytes(b""),
    "a pickle": lambda path, model: path.write_bytes(pickle.dumps({"a": 1})),
    "HDF5": lambda path, model: h5py.File(path, "w").close(),
    "netCDF": lambda path, model: xr.DataTree.from_dict(
        {"/fit": xr.Dataset({"a": ("x", [1, 2])})}
    ).to_netcdf(path, engine="h5netcdf"),
    "the start of a model": lambda path, model: path.write_bytes(model[: len(model) // 100]),
    "a model without its end": lambda path, model: path.write_bytes(model[:-2]),
}


@pytest.mark.parametrize("write", FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_model_file(write, model, tmp_path):
    path = tmp_path / "foreign.nc"
    write(path, model[1])
    match = r"foreign\.nc is (not a readable model|a netCDF file but|damaged)"
    with pytest.raises(ValueError, match=match):
        bg.load(path)


@pytest.mark.filterwarnings("error")
def test_no_file_and_a_folder(tmp_path):
    for path in (tmp_path / "none.nc", tmp_path, str(tmp_path / "none.nc")):
        with pytest.raises(FileNotFoundError, match="no model file at"):
            bg.load(path)
    clf = bg.GaussianNB().fit(REAL, Y)
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        clf.save(tmp_path / "no" / "model.nc")
    with pytest.raises(ValueError, match="not a file"):
        clf.save(tmp_path)


def edited(model, path, change):
    """The model's file with another record, and no digest."""
    path.write_bytes(model[1].rpartition(storage._MARK)[0])
    with h5py.File(path, "r+") as file:
        record = json.loads(file.attrs[storage._ATTRIBUTE])
        file.attrs[storage._ATTRIBUTE] = json.dumps(change(record))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r | {"format": 99}, "model format 99, this version of bayesgen reads format 1"),
        (lambda r: {k: v for k, v in r.items() if k != "format"}, "model format None"),
        (lambda r: r | {"estimator": "NeuralNet"}, "'NeuralNet', which this version.*BernoulliNB"),
        (lambda r: r | {"estimator": "LinearDiscriminant"}, "does not hold a complete Linear"),
        (lambda r: {k: v for k, v in r.items() if k != "classes"}, "KeyError: 'classes'"),
        (lambda r: r | {"parameters": {"gamma": 1}}, "unexpected keyword argument 'gamma'"),
    ],
)
def test_another_record(change, message, model, tmp_path):
    path = tmp_path / "edited.nc"
    edited(model, path, change)
    with pytest.raises(ValueError, match=f"(?s)edited.nc.*{message}"):
        bg.load(path)


def test_damage_is_found_before_hdf5_reads(model, tmp_path, monkeypatch):
    """One flipped bit in a header kept HDF5 busy for ever."""
    monkeypatch.setattr(h5py, "File", None)
    for at in (0, 30, len(model[1]) // 2, len(model[1]) - 90, len(model[1]) - 2):
        damaged = bytearray(model[1])
        damaged[at] ^= 1
        (tmp_path / "flipped.nc").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"flipped\.nc is damaged"):
            bg.load(tmp_path / "flipped.nc")


def test_a_file_that_xarray_wrote_again(model, tmp_path):
    path = tmp_path / "old.nc"
    path.write_bytes(model[1])
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        tree = tree.load()
    tree.to_netcdf(path, engine="h5netcdf")
    assert_equal(model[0], bg.load(path), REAL)


def test_arrays_that_a_file_cannot_hold_are_refused(tmp_path):
    path = tmp_path / "large.nc"
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"x": 1 << 40}
        file.create_variable("fit/a", ("x",), "f4", chunks=(1 << 20,))
    with pytest.raises(ValueError, match="its arrays declare 4398046511104 bytes"):
        bg.load(path)


@pytest.mark.filterwarnings("ignore:posterior draws are too few")
def test_draws_with_attributes_of_a_sampler(tmp_path):
    """``pm.sample`` writes integers among the attributes of its groups."""
    clf = bg.GaussianNB().fit(REAL, Y)
    draws = clf.draw_posterior(500, 2)["posterior"].to_dataset()
    stats = xr.Dataset(
        {"lp": (("chain", "draw"), np.zeros((2, 500)))}, attrs={"tuning_steps": 1000}
    )
    tree = xr.DataTree.from_dict({"posterior": draws, "sample_stats": stats})
    given = clf.with_posterior(tree)
    given.save(tmp_path / "m.nc")
    loaded = bg.load(tmp_path / "m.nc")
    np.testing.assert_array_equal(loaded.predict_proba(REAL), given.predict_proba(REAL))
    assert loaded.posterior_["sample_stats"].attrs["tuning_steps"] == 1000


# -------------------------------------------------------------------------------- writing whole


@contextmanager
def largest_file(size):
    """A write beyond so many bytes of any file fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_an_error_and_leaves_the_old_file(model, tmp_path):
    """HDF5 ended the process by a segmentation fault where a write failed."""
    old, new, checkpoint = (tmp_path / name for name in ("old.nc", "new.nc", "stream.nc"))
    old.write_bytes(model[1])
    chunks = [(rng().normal(size=(20, 50)), np.arange(20) % 2) for _ in range(3)]
    fitted = bg.GaussianNB().fit(*chunks[0])
    for limit, path in product((0, 5_000), (old, new)):
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)) as caught, largest_file(limit):
            fitted.save(path)
        assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    clf = bg.GaussianNB()
    with pytest.raises(OSError, match=os.strerror(errno.EFBIG)) as caught, largest_file(5_000):
        bg.fit_stream(clf, chunks, checkpoint=checkpoint, every=1)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(checkpoint))
    assert not hasattr(clf, "stats_")
    assert old.read_bytes() == model[1]
    assert list(tmp_path.iterdir()) == [old]


# ------------------------------------------------------------------------------------ no pickle


def test_loading_uses_no_pickle(model, tmp_path, monkeypatch):
    path = tmp_path / "model.nc"
    path.write_bytes(model[1])

    def refuse(*arguments, **options):
        raise AssertionError("pickle is used")

    for name in ("load", "loads", "dump", "dumps", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    loaded = bg.load(path)
    loaded.save(tmp_path / "again.nc")
    monkeypatch.undo()
    assert_equal(model[0], loaded, REAL)


def test_one_class_and_a_class_without_rows(tmp_path):
    clf = bg.QuadraticDiscriminant().fit(REAL, np.zeros(N, dtype=int))
    clf.save(tmp_path / "m.nc")
    assert_equal(clf, bg.load(tmp_path / "m.nc"), REAL)
    clf = bg.MarkovNB(2).partial_fit(TEXTS, Y, classes=[*np.unique(Y), "yew"])
    clf.save(tmp_path / "m.nc")
    assert_equal(clf, bg.load(tmp_path / "m.nc"), TEXTS)


def test_a_long_name_of_a_column_is_not_repeated_in_full():
    name = "a" * 10_000
    for clf in (bg.MixedNB(), bg.GaussianNB()):
        clf.fit(pd.DataFrame({name: REAL[:, 0], "b": REAL[:, 1]}), Y)
        with pytest.raises(ValueError, match="aaa") as caught:
            clf.predict(pd.DataFrame({"c": REAL[:, 0], "b": BITS[:, 0]}))
        assert len(str(caught.value)) < 1100
