"""fit_stream: the numbers of one fit, whatever the chunks, and after any kill."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bayesgen as bg
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.inference.fitting import Learner
from bayesgen.io import tabular
from tests.selection import rest_is_slow

N = 400


def rows_of(kind):
    """(classifier, X, y) whose last rows bring a class, and categories or tokens, of their own."""
    rng = np.random.default_rng(5)
    y = np.sort(rng.choice(["a", "b", "c"], N, p=[0.5, 0.4, 0.1]))
    real = 1e6 + rng.normal(size=(N, 3)) + (y == "b")[:, None]
    words = np.array(["red", "green", "blue", "grey"], dtype=object)
    colour = words[rng.integers(0, 3, N) + (y == "c")]
    frame = pd.DataFrame({"length": real[:, 0], "colour": colour, "wet": rng.random(N) < 0.5})
    texts = [" ".join(rng.choice(words[: 3 + (label == "c")], 4)) for label in y]
    missing_cells = np.where(rng.random(real.shape) < 0.1, np.nan, real)
    return {
        "gaussian": (bg.GaussianNB(), missing_cells, y),
        "family": (bg.GenerativeClassifier(NormalInverseGamma(variance="tied")), real, y),
        "mixed": (bg.MixedNB(), frame, y),
        "markov": (bg.MarkovNB(order=2, tokens="word"), np.array(texts, dtype=object), y),
    }[kind]


KINDS = ("gaussian", "family", "mixed", "markov")


def cut(X, y, size=90, stop=None):
    for k, start in enumerate(range(0, len(y), size)):
        if k == stop:
            raise KeyboardInterrupt
        rows = slice(start, start + size)
        yield (X.iloc[rows] if hasattr(X, "iloc") else X[rows]), y[rows]


def agree(streamed, whole, X):
    assert streamed.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9)
    assert streamed.n_rows_seen_ == whole.n_rows_seen_
    np.testing.assert_allclose(streamed.predict_proba(X), whole.predict_proba(X), rtol=1e-7)


def same_bits(a, b):
    for name in ("stats_", "prior_", "model_"):
        parts = [getattr(clf, name) for clf in (a, b)]
        records = [part.features if name == "stats_" else part.family for part in parts]
        for (_, mine), (_, theirs) in zip(
            *(record.arrays().values() for record in records), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs, strict=True)
    np.testing.assert_array_equal(a.stats_.count, b.stats_.count)
    np.testing.assert_array_equal(a.classes_, b.classes_)
    assert (a.n_rows_seen_, a.log_evidence_) == (b.n_rows_seen_, b.log_evidence_)


# ---------------------------------------------------------------------------------- after a kill


# the others in the slow tests: each writes ten files
@pytest.mark.parametrize("kind", rest_is_slow(KINDS, ("mixed", "markov")))
def test_taken_up_again_bit_for_bit(kind, tmp_path):
    clf, X, y = rows_of(kind)
    whole = bg.fit_stream(rows_of(kind)[0], cut(X, y))
    path = tmp_path / "stream.nc"
    for stop in (1, 4):
        with pytest.raises(KeyboardInterrupt):
            bg.fit_stream(clf, cut(X, y, stop=stop), checkpoint=path, every=1 + stop % 2)
        assert not hasattr(clf, "stats_")
    bg.fit_stream(clf, cut(X, y), checkpoint=path)
    same_bits(clf, whole)
    arguments = {"family": clf.family} if kind == "family" else {}
    same_bits(bg.load(path, **arguments), whole)
    same_bits(bg.fit_stream(rows_of(kind)[0], cut(X, y), checkpoint=path), whole)  # is finished


def test_a_failed_stream_leaves_the_classifier_as_it_was():
    clf, X, y = rows_of("gaussian")
    clf.fit(X, y)
    before = clf.log_evidence_
    with pytest.raises(ValueError, match=r"^chunk 1: X has 2 features, but GaussianNB"):
        bg.fit_stream(clf, [(X + 1, y), (X[:, :2], y)])
    assert clf.log_evidence_ == before


# ------------------------------------------------------------------------------------- containers


@pytest.fixture
def small_reads(monkeypatch):
    monkeypatch.setattr(tabular, "_CELLS", 300)


def as_record_batches(frame):
    return pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=70)


def parquet_files(frame, folder):
    for k, part in enumerate(np.array_split(np.arange(N), 3)):
        frame.iloc[part].to_parquet(folder / f"part-{k}.parquet", row_group_size=50)
    return folder


def csv_files(frame, folder):
    for k, part in enumerate(np.array_split(np.arange(N), 3)):
        frame.iloc[part].to_csv(folder / f"part-{k}.csv", index=False, sep=";")
    return [folder / "part-0.csv", str(folder / "part-[12].*")]


CONTAINERS = {
    "pandas": lambda frame, _: [frame[:150], frame[:0], frame[150:]],
    "polars": lambda frame, _: pl.from_pandas(frame).iter_slices(60),
    "record batches": lambda frame, _: as_record_batches(frame),
    "arrow table": lambda frame, _: [pa.Table.from_pandas(frame, preserve_index=False)],
    "a folder of Parquet files": parquet_files,
    "CSV files": csv_files,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_fit_to_all_rows_of_any_container(container, tmp_path, small_reads):
    _, X, y = rows_of("mixed")
    X.loc[::9, "colour"] = None
    frame = X.assign(label=y, weight=np.arange(N) % 3 * 1.0)
    chunks = CONTAINERS[container](frame, tmp_path)
    clf = bg.fit_stream(bg.MixedNB(), chunks, target="label", sample_weight="weight")
    agree(clf, bg.MixedNB().fit(X, y, sample_weight=frame.weight), X)
    assert clf.feature_names_in_.tolist() == X.columns.tolist()


def test_the_fit_to_all_rows_of_arrays():
    clf, X, y = rows_of("gaussian")
    weight = np.arange(N) % 3 * 1.0
    weight[:100] = 0
    chunks = [(X[:50], y[:50], weight[:50]), (X[:0], y[:0]), (X[50:], y[50:], weight[50:])]
    agree(bg.fit_stream(clf, chunks), bg.GaussianNB().fit(X, y, sample_weight=weight), X)


def test_texts_in_a_file_are_its_cells_as_they_stand(tmp_path, small_reads):
    documents = ["NA", "", '"quoted"', "ab", "ba", "null"] * 60
    frame = pd.DataFrame({"text": documents, "label": [0, 1] * 180})
    frame.to_csv(tmp_path / "texts.csv", index=False)
    clf = bg.fit_stream(bg.MarkovNB(order=1), tmp_path / "texts.csv", target="label")
    agree(clf, bg.MarkovNB(order=1).fit(documents, frame.label), documents)
    frame.assign(more="a").to_csv(tmp_path / "two.csv", index=False)
    with pytest.raises(ValueError, match="one column of texts, and there are"):
        bg.fit_stream(clf, tmp_path / "two.csv", target="label")


def test_files_taken_up_again_and_added_to(tmp_path, small_reads, monkeypatch):
    _, X, y = rows_of("mixed")
    frame = X.assign(label=y)
    for k in range(3):
        frame[k * 100 : k * 100 + 150].to_parquet(tmp_path / f"{k}.parquet", row_group_size=40)
    path, pattern = tmp_path / "stream.nc", str(tmp_path / "*.parquet")
    whole = bg.fit_stream(bg.MixedNB(), pattern, target="label")
    real = Learner.gather

    def interrupted(learner, before, *rows):
        if before is not None and before.n_rows >= 200:
            raise KeyboardInterrupt
        return real(learner, before, *rows)

    monkeypatch.setattr(Learner, "gather", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bg.fit_stream(bg.MixedNB(), pattern, target="label", checkpoint=path, every=2)
    monkeypatch.setattr(Learner, "gather", real)
    same_bits(bg.fit_stream(bg.MixedNB(), pattern, target="label", checkpoint=path), whole)
    frame[:37].to_parquet(tmp_path / "3.parquet")
    again = bg.fit_stream(bg.MixedNB(), pattern, target="label", checkpoint=path)
    same_bits(again, bg.fit_stream(bg.MixedNB(), pattern, target="label"))


# --------------------------------------------------------------------------------------- refusals


@pytest.fixture
def stream(tmp_path):
    """A finished stream of five chunks, and its rows."""
    clf, X, y = rows_of("gaussian")
    bg.fit_stream(clf, cut(X, y), checkpoint=tmp_path / "c.nc")
    return tmp_path / "c.nc", X, y


@pytest.mark.parametrize(
    ("clf", "options", "match"),
    [
        (bg.GaussianNB(kappa0=2.0), {}, r"was 'GaussianNB\(\)' and is 'GaussianNB\(kappa0=2.0\)'"),
        (bg.LinearDiscriminant(), {}, r"was 'GaussianNB\(\)' and is 'LinearDiscriminant\(\)'"),
        (bg.GaussianNB(), {"classes": ["a", "b", "c"]}, "classes was None and is"),
        (bg.GaussianNB(), {"size": 200}, "it holds 5 chunks, and there are 2"),
        (bg.GaussianNB(), {"target": "y"}, "target was None and is 'y'"),
    ],
)
def test_a_checkpoint_of_another_stream_is_refused(clf, options, match, stream):
    path, X, y = stream
    before = path.read_bytes()
    chunks = cut(X, y, options.pop("size", 90))
    with pytest.raises(ValueError, match=match):
        bg.fit_stream(clf, chunks, checkpoint=path, **options)
    assert path.read_bytes() == before
    assert not hasattr(clf, "stats_")


def test_what_is_no_checkpoint_is_refused(stream, tmp_path):
    path, X, y = stream
    bg.GaussianNB().fit(X, y).save(tmp_path / "model.nc")
    path.write_bytes(path.read_bytes()[:-100])
    for name, match in (
        ("model.nc", "is a model, not the checkpoint of a stream"),
        ("c.nc", "not a readable model file|is damaged"),
        ("", "it is a folder"),
    ):
        with pytest.raises(ValueError, match=match):
            bg.fit_stream(bg.GaussianNB(), cut(X, y), checkpoint=tmp_path / name)


X2, Y2 = np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 1])
OF_Y = {"target": "y"}
REFUSED = [  # chunks, options, error, message
    ([], {}, ValueError, "chunks holds no rows"),
    (X2, {}, TypeError, r"got ndarray: rows that are all there go to clf.fit"),
    ((X2, Y2), {}, TypeError, r"chunk 0 is a ndarray: a chunk must be \(X, y\)"),
    ([(X2, Y2)], OF_Y, TypeError, "chunk 0 is a tuple: with target='y'"),
    ([pd.DataFrame({"a": [1.0]})], OF_Y, ValueError, "chunk 0 has no column 'y'"),
    ([(X2, Y2)], {"sample_weight": X2}, TypeError, "sample_weight names a column"),
    ([(X2, Y2)], {"sample_weight": "w"}, ValueError, "name target too"),
    ([(X2, Y2)], {"classes": [0]}, ValueError, r"chunk 0: y holds labels that are not in"),
    ([(X2, Y2), (X2, ["a"] * 3)], {}, TypeError, r"chunk 1: labels \['a'\] cannot be mixed"),
    ([(X2, Y2)], {"checkpoint": "c.nc", "every": 0}, ValueError, "every must be an integer >= 1"),
    (["a.csv", (X2, Y2)], OF_Y, TypeError, "mixes paths and rows"),
    ("a.csv", {}, ValueError, "target must name the column"),
    ("no.csv", OF_Y, FileNotFoundError, "no file 'no.csv'"),
    ("no-*.csv", OF_Y, FileNotFoundError, r"no file 'no-\*.csv'"),
    (".", OF_Y, FileNotFoundError, r"no .csv, .tsv or .parquet file in '.'"),
]


@pytest.mark.parametrize(("chunks", "options", "error", "match"), REFUSED)
def test_bad_chunks(chunks, options, error, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=match):
        bg.fit_stream(bg.GaussianNB(), chunks, **options)


ROWS = b"".join(b"%d,%d\n" % (k, k % 2) for k in range(300))


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"a.csv.gz": b"\x1f\x8b\x08\0"}, "a.csv.gz cannot be read"),
        ({"a.csv": b"a,y\n"}, "chunks holds no rows"),
        ({"a.csv": b"a,b\n1,2\n"}, r"a.csv has no column 'y'; known are a, b"),
        ({"a.csv": b"a,y\n1,2\n3,\n"}, r"a.csv: y has no label in 1 row"),
        ({"a.csv": b"x,y\n" + ROWS + b"2 wide,1\n"}, "a.csv: column 'x' holds '2 wide' in row 301"),
        ({"a.csv": b"x,y\n" + ROWS + b"1e200,1\n"}, r"a.csv: column 'x' holds 1e\+200 in row 301"),
        ({"1.csv": b"a,y\n1,2\n", "2.csv": b"b,y\n1,2\n"}, r"2.csv and .*1.csv differ .*: 'a'"),
    ],
)
def test_bad_files(files, match, tmp_path, small_reads):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=match):
        bg.fit_stream(bg.GaussianNB(), [tmp_path / name for name in files], target="y")


def test_a_class_without_rows_yet(tmp_path):
    chunks, path = [(X2, Y2), (X2, Y2 + 1)], tmp_path / "c.nc"
    clf = bg.GaussianNB(class_alpha=[1.0, 2.0, 3.0])
    assert bg.fit_stream(clf, chunks).model_.alpha.tolist() == [2.0, 5.0, 5.0]
    assert bg.fit_stream(clf, chunks, classes=[0, 1, 2], checkpoint=path).n_rows_seen_ == 6


def test_a_classifier_without_statistics_is_refused():
    with pytest.raises(ValueError, match=r"works on sufficient statistics, and .* has none"):
        bg.fit_stream(bg.StudentTNB(), [(X2, Y2)])
