"""Model files: what was saved is what is loaded; anything else is one clear error."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesgen as bg
from bayesgen import storage
from bayesgen.families.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.normal_inverse_wishart import NormalInverseWishart

RNG = np.random.default_rng(0)
N = 30
Y = np.array(["ja", "nein", "weiß nicht"])[np.arange(N) % 3]
REAL = RNG.normal(size=(N, 3)) + (np.arange(N) % 3)[:, None]
BITS = (REAL > 1).astype(int)
COUNTS = RNG.poisson(np.array([[8, 2, 1], [1, 8, 2], [2, 1, 8]])[np.arange(N) % 3])
TABLE = pd.DataFrame(
    {
        "size": REAL[:, 0],
        "kind": np.array(["a", "b", "ü"])[RNG.integers(0, 3, N)],
        "wet": BITS[:, 1].astype(bool),
        "code": pd.Categorical(RNG.integers(0, 2, N), categories=[0, 1, 7]),
    }
)
TABLE.loc[3, "size"] = np.nan
TEXTS = ["".join(RNG.choice(list("abc "), 12)) for _ in range(N)]

CASES = {
    "bernoulli": (bg.BernoulliNB(alpha=[0.5, 1.0, 2.0]), BITS),
    "categorical": (bg.CategoricalNB(unseen="ignore"), TABLE[["kind", "code"]]),
    "multinomial": (bg.MultinomialNB(prior="empirical"), COUNTS),
    "poisson": (bg.PoissonNB(), COUNTS),
    "gaussian": (bg.GaussianNB(), REAL),
    "gaussian tied": (bg.GaussianNB(variance="tied", mu0=np.array([0.0, 1.0, 2.0])), REAL),
    "gaussian spherical": (bg.GaussianNB(variance="spherical"), REAL),
    "gaussian one column": (bg.GaussianNB(variance="class_spherical"), REAL[:, :1]),
    "mixed": (bg.MixedNB(), TABLE),
    "mixed named": (
        bg.MixedNB(
            columns={"gaussian": ["size"], "categorical": ["kind"], "drop": ["wet", "code"]}
        ),
        TABLE,
    ),
    "lda": (bg.LinearDiscriminant(), REAL),
    "lda diagonal": (bg.LinearDiscriminant(covariance="diagonal"), REAL),
    "qda": (bg.QuadraticDiscriminant(psi0=np.eye(3)), REAL + 1e8),
    "markov 1": (bg.MarkovNB(order=1, tokens="word"), TEXTS),
    "markov 3": (bg.MarkovNB(order=3), TEXTS),
}
cases = pytest.mark.parametrize("case", CASES)


def _rows(X, rows):
    if isinstance(X, list):
        return [x for x, keep in zip(X, rows, strict=True) if keep]
    return X[rows]


@cases
def test_round_trip(case, tmp_path):
    clf, X = CASES[case]
    clf.fit(X, Y)
    path = tmp_path / "model.nc"
    clf.save(path)
    again = bg.load(path)
    assert type(again) is type(clf)
    assert str(again.get_params()) == str(clf.get_params())
    np.testing.assert_array_equal(again.classes_, clf.classes_)
    for method in ("posterior_predictive", "posterior_mean"):
        np.testing.assert_array_equal(
            again.predict_joint_log_proba(X, method), clf.predict_joint_log_proba(X, method)
        )
    assert again.log_evidence_ == clf.log_evidence_
    xr.testing.assert_identical(
        again.posterior_["posterior"].dataset, clf.posterior_["posterior"].dataset
    )
    again.save(tmp_path / "again.nc")
    np.testing.assert_array_equal(bg.load(tmp_path / "again.nc").predict(X), clf.predict(X))


@cases
def test_a_loaded_model_resumes_and_merges(case, tmp_path):
    clf, X = CASES[case]
    first = np.arange(N) < 20
    parts = _rows(X, first), _rows(X, ~first)
    whole = type(clf)(**clf.get_params()).fit(X, Y)
    half = type(clf)(**clf.get_params()).fit(parts[0], Y[first])
    half.save(tmp_path / "half.nc")
    resumed = bg.load(tmp_path / "half.nc").partial_fit(parts[1], Y[~first])
    other = type(clf)(**clf.get_params()).fit(parts[1], Y[~first])
    merged = bg.load(tmp_path / "half.nc").merge(other)
    expected = whole.predict_joint_log_proba(X)
    tolerance = {"rtol": 1e-5} if clf.prior == "empirical" else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(resumed.predict_joint_log_proba(X), expected, **tolerance)
    np.testing.assert_allclose(merged.predict_joint_log_proba(X), expected, **tolerance)


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 2],
        [False, True],
        [1.0, 2.0],
        ["é", "日本"],
        np.array(["x", "y"], dtype=object),
        np.array(["2020-01-01", "2021-05-03"], dtype="M8[D]"),
    ],
    ids=["int", "bool", "float", "unicode", "object", "date"],
)
def test_labels_keep_their_type(labels, tmp_path):
    labels = np.asarray(labels)
    y = labels[np.arange(N) % len(labels)]
    clf = bg.GaussianNB().fit(REAL, y)
    clf.save(tmp_path / "model.nc")
    again = bg.load(tmp_path / "model.nc")
    assert again.classes_.dtype == clf.classes_.dtype
    np.testing.assert_array_equal(again.predict(REAL), clf.predict(REAL))


def test_family_of_ones_own(tmp_path):
    path = tmp_path / "model.nc"
    family = NormalInverseGamma(variance="tied")
    bg.GenerativeClassifier(family).fit(REAL, Y).save(path)
    with pytest.raises(ValueError, match="family="):
        bg.load(path)
    with pytest.raises(ValueError, match="NormalInverseGamma"):
        bg.load(path, family=NormalInverseWishart())
    assert bg.load(path, family=family).predict(REAL).shape == (N,)


def test_callable_tokens(tmp_path):
    path = tmp_path / "model.nc"
    clf = bg.MarkovNB(order=1, tokens=str.split).fit(["a b", "b c", "c c"] * 10, Y)
    clf.save(path)
    with pytest.raises(ValueError, match="tokens="):
        bg.load(path)
    again = bg.load(path, tokens=str.split)
    np.testing.assert_array_equal(again.predict_proba(["a c"]), clf.predict_proba(["a c"]))


# ------------------------------------------------------------------------------- bad files


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.nc"
    bg.GaussianNB().fit(REAL, Y).save(path)
    return path


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model file at .*nothing\.nc"):
        bg.load(tmp_path / "nothing.nc")
    with pytest.raises(FileNotFoundError, match="not a folder"):
        bg.GaussianNB().fit(REAL, Y).save(tmp_path / "no" / "model.nc")
    with pytest.raises(ValueError, match="not a file"):
        bg.GaussianNB().fit(REAL, Y).save(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_file(saved, share):
    data = saved.read_bytes()
    saved.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ValueError, match=r"model\.nc"):
        bg.load(saved)


def test_flipped_bytes_are_never_read_in_silence(saved):
    """Whatever byte changes, the file is refused or holds the same model."""
    data = saved.read_bytes()
    expected = bg.load(saved).predict_proba(REAL)
    refused = 0
    for place in RNG.integers(0, len(data), 60):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        saved.write_bytes(broken)
        try:
            got = bg.load(saved).predict_proba(REAL)
        except ValueError:
            refused += 1
        else:
            np.testing.assert_array_equal(got, expected)
    assert refused > 5


@pytest.mark.parametrize("content", [b"", b"not a model", pickle.dumps({"a": 1})])
def test_other_files(tmp_path, content):
    path = tmp_path / "other.nc"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a readable model file"):
        bg.load(path)


def test_foreign_netcdf(tmp_path):
    path = tmp_path / "weather.nc"
    xr.Dataset({"rain": ("day", [1.0, 2.0])}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(ValueError, match="not a bayesgen model"):
        bg.load(path)


def test_another_format_version(saved, monkeypatch):
    monkeypatch.setattr(storage, "FORMAT", 2)
    with pytest.raises(ValueError, match="format 1"):
        bg.load(saved)


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(xr.DataTree, "to_netcdf", fail)
    with pytest.raises(OSError, match="disk full"):
        bg.GaussianNB().fit(REAL[:10], Y[:10]).save(saved)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == ["model.nc"]


def test_nothing_is_unpickled(saved, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("pickle was used")

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)
    bg.load(saved)
    assert "pickle" not in Path(storage.__file__).read_text().replace("without pickle", "")
