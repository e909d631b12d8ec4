"""fit_stream: the numbers of one fit, whatever the chunks, and after any kill."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from scipy import sparse
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen.cli import app
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.contract import Stats
from bayesgen.inference.fitting import Learner
from bayesgen.io import tabular
from tests.selection import rest_is_slow

N = 400


def rows_of(kind):
    """(classifier, X, y) whose last rows bring a class, and categories or tokens, of their own."""
    rng = np.random.default_rng(5)
    y = np.sort(rng.choice(["a", "b", "c"], N, p=[0.5, 0.4, 0.1]))
    real = 1e6 + rng.normal(size=(N, 3)) + (y == "b")[:, None]
    counts = rng.poisson(2.0, size=(N, 5))
    words = np.array(["red", "green", "blue", "grey"], dtype=object)
    colour = words[rng.integers(0, 3, N) + (y == "c")]
    frame = pd.DataFrame({"length": real[:, 0], "colour": colour, "wet": rng.random(N) < 0.5})
    texts = [" ".join(rng.choice(words[: 3 + (label == "c")], 4)) for label in y]
    missing_cells = np.where(rng.random(real.shape) < 0.1, np.nan, real)
    return {
        "gaussian": (bg.GaussianNB(), missing_cells, y),
        "family": (bg.GenerativeClassifier(NormalInverseGamma(variance="tied")), real, y),
        "multinomial": (bg.MultinomialNB(), sparse.csr_matrix(counts), y),
        "categorical": (bg.CategoricalNB(), frame[["colour", "wet"]], y),
        "mixed": (bg.MixedNB(), frame, y),
        "markov": (bg.MarkovNB(order=2, tokens="word"), np.array(texts, dtype=object), y),
    }[kind]


KINDS = ("gaussian", "family", "multinomial", "categorical", "mixed", "markov")


def cut(X, y, size=90, stop=None):
    for k, start in enumerate(range(0, len(y), size)):
        if k == stop:
            raise KeyboardInterrupt
        rows = slice(start, start + size)
        yield (X.iloc[rows] if hasattr(X, "iloc") else X[rows]), y[rows]


def numbers(record):
    """All arrays of statistics or hyper-parameters."""
    if not isinstance(record, Stats) and hasattr(record, "alpha"):
        return [record.alpha, *(a for _, a in record.family.arrays().values())]
    return [record.count, *(a for _, a in record.features.arrays().values())]


def same_bits(a, b):
    for name in ("stats_", "prior_", "model_"):
        pairs = zip(numbers(getattr(a, name)), numbers(getattr(b, name)), strict=True)
        for mine, theirs in pairs:
            np.testing.assert_array_equal(mine, theirs, strict=True)
    np.testing.assert_array_equal(a.classes_, b.classes_)
    assert a.n_rows_seen_ == b.n_rows_seen_
    assert a.log_evidence_ == b.log_evidence_


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


CHILD = """
    import os, signal, sys
    import bayesgen as bg
    sys.path.insert(0, {folder!r})
    from test_streams import cut, rows_of

    def die(*args):
        os.kill(os.getpid(), signal.SIGKILL)

    where, after, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    clf, X, y = rows_of("mixed")

    def chunks():
        for k, chunk in enumerate(cut(X, y, 20)):
            if where == "between" and k == after:
                die()
            yield chunk

    if where == "during":
        import xarray as xr
        write, calls = os.replace, []
        def replace(*args):
            calls.append(args)
            die() if len(calls) == after else write(*args)
        os.replace = replace
    bg.fit_stream(clf, chunks(), checkpoint=path, every=2)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
@pytest.mark.parametrize("kills", [[("between", 7)], [("during", 3), ("during", 1)]], ids=str)
def test_killed_and_taken_up_again(kills, tmp_path):
    path = tmp_path / "stream.nc"
    code = textwrap.dedent(CHILD.format(folder=os.path.dirname(__file__)))
    cut_short = 0
    for where, after in kills:
        child = [sys.executable, "-c", code, where, str(after), str(path)]
        run = subprocess.run(child, capture_output=True, text=True, check=False)
        assert run.returncode == -signal.SIGKILL, run.stderr
        assert 0 < bg.load(path).n_rows_seen_ < N
        cut_short += where == "during"  # each leaves its temporary file
        assert len(os.listdir(tmp_path)) == 1 + cut_short
    clf, X, y = rows_of("mixed")
    bg.fit_stream(clf, cut(X, y, 20), checkpoint=path)
    same_bits(clf, bg.fit_stream(rows_of("mixed")[0], cut(X, y, 20)))


def test_weights_and_empty_chunks():
    clf, X, y = rows_of("gaussian")
    weight = np.random.default_rng(0).integers(0, 3, N) * 1.0
    weight[:100] = 0
    chunks = [(X[:50], y[:50], weight[:50]), (X[:0], y[:0]), (X[50:], y[50:], weight[50:])]
    bg.fit_stream(clf, chunks)
    whole = bg.GaussianNB().fit(X, y, sample_weight=weight)
    assert clf.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-12)
    assert clf.n_rows_seen_ == (weight > 0).sum()


def test_a_failed_stream_leaves_the_classifier_as_it_was():
    clf, X, y = rows_of("gaussian")
    clf.fit(X, y)
    before = clf.log_evidence_
    with pytest.raises(ValueError, match=r"^chunk 1: X has 2 features, but GaussianNB"):
        bg.fit_stream(clf, [(X + 1, y), (X[:, :2], y)])
    assert clf.log_evidence_ == before


# ------------------------------------------------------------------------------- tables and files


@pytest.fixture
def small_reads(monkeypatch):
    monkeypatch.setattr(tabular, "_CELLS", 300)


def frame_of(kind):
    clf, X, y = rows_of(kind)
    return clf, X.assign(label=y, weight=np.arange(N) % 3 + 1.0)


def as_record_batches(frame):
    return pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=70)


@pytest.mark.parametrize(
    "chunks",
    [
        lambda frame: [frame[:150], frame[150:]],
        lambda frame: pl.from_pandas(frame).iter_slices(60),
        as_record_batches,
        lambda frame: [pa.Table.from_pandas(frame, preserve_index=False)],
        pytest.param(
            lambda frame: pl.from_pandas(frame).lazy(),
            marks=pytest.mark.skipif(
                not hasattr(pl.LazyFrame, "collect_batches"),
                reason="polars before 1.34 gives no batches of a LazyFrame",
            ),
        ),
        lambda frame: pyarrow.dataset.dataset(as_record_batches(frame)),
    ],
    ids=["pandas", "polars", "record batches", "arrow table", "LazyFrame", "Dataset"],
)
def test_data_frames(chunks):
    clf, frame = frame_of("mixed")
    bg.fit_stream(clf, chunks(frame), target="label", sample_weight="weight")
    X = frame.drop(columns=["label", "weight"])
    whole = bg.MixedNB().fit(X, frame.label, sample_weight=frame.weight)
    assert clf.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)
    assert clf.feature_names_in_.tolist() == X.columns.tolist()
    np.testing.assert_allclose(clf.predict_proba(X), whole.predict_proba(X), rtol=1e-7)


@pytest.mark.parametrize(("kind", "ending"), [("mixed", "parquet"), ("categorical", "csv")])
def test_files(kind, ending, tmp_path, small_reads):
    clf, frame = frame_of(kind)
    frame.loc[::9, "colour"] = None
    for k, part in enumerate(np.array_split(np.arange(N), 3)):
        path, rows = tmp_path / f"part-{k}.{ending}", frame.iloc[part]
        if ending == "parquet":
            rows.to_parquet(path)
        else:
            rows.to_csv(path, index=False, sep=";")
    X = frame.drop(columns=["label", "weight"])
    whole = type(clf)().fit(X, frame.label, sample_weight=frame.weight)
    columns = {"target": "label", "sample_weight": "weight"}
    paths = sorted(tmp_path.iterdir())
    for source in (tmp_path, paths, [paths[0], str(tmp_path / "part-[12].*")]):
        bg.fit_stream(clf, source, **columns)
        assert clf.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9)
        np.testing.assert_allclose(clf.predict_proba(X), whole.predict_proba(X), rtol=1e-7)


def test_texts_in_a_file(tmp_path, small_reads):
    clf, X, y = rows_of("markov")
    pd.DataFrame({"text": X, "label": y}).to_csv(tmp_path / "texts.csv", index=False)
    bg.fit_stream(clf, tmp_path / "texts.csv", target="label")
    whole = rows_of("markov")[0].fit(X, y)
    assert clf.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-12)
    pd.DataFrame({"text": X, "more": X, "label": y}).to_csv(tmp_path / "two.csv", index=False)
    documents = ["NA", "", '"quoted"', "ab", "ba", "null"]
    pd.DataFrame({"text": documents, "label": [0, 1] * 3}).to_csv(tmp_path / "d.csv", index=False)
    clf = bg.fit_stream(bg.MarkovNB(order=1), tmp_path / "d.csv", target="label")
    assert clf.log_evidence_ == bg.MarkovNB(order=1).fit(documents, [0, 1] * 3).log_evidence_
    with pytest.raises(ValueError, match="one column of texts, and there are"):
        bg.fit_stream(clf, tmp_path / "two.csv", target="label")


def test_a_csv_column_with_text_anywhere_is_text_throughout(tmp_path, small_reads):
    code = [str(k % 4) for k in range(399)] + ["x"]
    frame = pd.DataFrame({"code": code, "size": np.arange(400.0), "y": np.arange(400) % 2})
    frame.to_csv(tmp_path / "codes.csv", index=False)
    clf = bg.fit_stream(bg.MixedNB(), tmp_path / "codes.csv", target="y")
    assert clf.schema_.categories[0] == ("0", "1", "2", "3", "x")


def test_files_taken_up_again_and_added_to(tmp_path, small_reads, monkeypatch):
    clf, frame = frame_of("mixed")
    frame = frame.drop(columns="weight")
    for k in range(3):
        frame[k * 100 : k * 100 + 150].to_parquet(tmp_path / f"{k}.parquet", row_group_size=40)
    path, pattern = tmp_path / "stream.nc", str(tmp_path / "*.parquet")
    whole = bg.fit_stream(bg.MixedNB(), pattern, target="label")
    real = Learner.gather

    def interrupted(own, before, *rows):
        if before is not None and before.n_rows >= 200:
            raise KeyboardInterrupt
        return real(own, before, *rows)

    monkeypatch.setattr(Learner, "gather", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bg.fit_stream(clf, pattern, target="label", checkpoint=path, every=2)
    monkeypatch.setattr(Learner, "gather", real)
    same_bits(bg.fit_stream(clf, pattern, target="label", checkpoint=path), whole)
    frame[:37].to_parquet(tmp_path / "3.parquet")
    again = bg.fit_stream(clf, pattern, target="label", checkpoint=path)
    same_bits(again, bg.fit_stream(bg.MixedNB(), pattern, target="label"))


# --------------------------------------------------------------------------------------- refusals


@pytest.fixture
def stream(tmp_path):
    """A finished stream of five chunks, and its rows."""
    clf, X, y = rows_of("gaussian")
    bg.fit_stream(clf, cut(X, y), checkpoint=tmp_path / "c.nc")
    return tmp_path / "c.nc", X, y


@pytest.mark.parametrize(
    ("make", "options", "match"),
    [
        (lambda: bg.GaussianNB(kappa0=2.0), {}, "kappa0 was None and is 2.0. Delete it"),
        (bg.LinearDiscriminant, {}, "the classifier was 'GaussianNB' and is 'LinearD"),
        (bg.GaussianNB, {"classes": ["a", "b", "c"]}, "classes was None and is"),
        (bg.GaussianNB, {"size": 200}, "it holds 5 chunks, and there are 2"),
        (bg.GaussianNB, {"target": "y"}, "target was None and is 'y'"),
    ],
)
def test_a_checkpoint_of_another_stream_is_refused(make, options, match, stream):
    path, X, y = stream
    before, clf = path.read_bytes(), make()
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


def test_another_family_is_another_classifier(tmp_path):
    clf, X, y = rows_of("family")
    bg.fit_stream(clf, cut(X, y), checkpoint=tmp_path / "c.nc")
    other = bg.GenerativeClassifier(NormalInverseGamma(variance="class"))
    with pytest.raises(ValueError, match='family was "NormalInverseGamma'):
        bg.fit_stream(other, cut(X, y), checkpoint=tmp_path / "c.nc")


X2, Y2 = np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 1])


@pytest.mark.parametrize(
    ("chunks", "options", "error", "match"),
    [
        ([], {}, ValueError, "chunks holds no rows"),
        (X2, {}, TypeError, r"got ndarray: rows that are all there go to clf.fit"),
        ((X2, Y2), {}, TypeError, r"chunk 0 is a ndarray: a chunk must be \(X, y\)"),
        ([(X2, Y2)], {"target": "y"}, TypeError, "chunk 0 is a tuple: with target='y'"),
        ([pd.DataFrame({"a": [1.0]})], {"target": "y"}, ValueError, "chunk 0 has no column 'y'"),
        ([(X2, Y2)], {"sample_weight": X2}, TypeError, "sample_weight names a column"),
        ([(X2, Y2)], {"sample_weight": "w"}, ValueError, "name target too"),
        ([(X2, Y2)], {"classes": [0]}, ValueError, r"chunk 0: y holds labels that are not in"),
        ([(X2, Y2), (X2, ["a"] * 3)], {}, TypeError, r"chunk 1: labels \['a'\] cannot be mixed"),
        ([(X2, Y2)], {"checkpoint": "c.nc", "every": 0}, ValueError, "every must be a number"),
        (["a.csv", (X2, Y2)], {"target": "y"}, TypeError, "mixes paths and rows"),
        ("a.csv", {}, ValueError, "target must name the column"),
        ("no.csv", {"target": "y"}, FileNotFoundError, "no file 'no.csv'"),
        ("no-*.csv", {"target": "y"}, FileNotFoundError, r"no file 'no-\*.csv'"),
        (".", {"target": "y"}, FileNotFoundError, r"no .csv, .tsv or .parquet file in '.'"),
    ],
)
def test_bad_chunks(chunks, options, error, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=match):
        bg.fit_stream(bg.GaussianNB(), chunks, **options)


@pytest.mark.parametrize("cell", ["2 wide", "1e200"])
def test_a_cell_is_named_with_its_row_in_the_file(cell, tmp_path, small_reads):
    rows = [f"{k},{k % 2}" for k in range(400)]
    rows[321] = f"{cell},1"
    (tmp_path / "a.csv").write_text("\n".join(["x,y", *rows]))
    name = "'2 wide'" if cell == "2 wide" else r"1e\+200"
    with pytest.raises(ValueError, match=f"a.csv: column 'x' holds {name} in row 322"):
        bg.fit_stream(bg.GaussianNB(), tmp_path / "a.csv", target="y")


def test_a_csv_file_is_the_same_to_streams_and_to_the_command_line(tmp_path, small_reads):
    """What is a number, a truth value, text or missing, in every chunk and in the whole file."""
    cells = {
        "size": ["1", " 2.5 ", "NA", "", " ", "1e3", "null", "-3", "+4", "nan"],
        "wet": ["true", "FALSE", "True", "N/A", " true", "false", "", "true", "false", "true"],
        "code": ["1", "2", "x", "", "1", "None", "true", "2", " ", "1"],
        "id": [str(2**53 + k % 3) for k in range(10)],
    }
    frame = pd.DataFrame({name: column * 30 for name, column in cells.items()})
    frame["y"] = np.arange(300) % 3
    path, model = tmp_path / "data.csv", tmp_path / "model.nc"
    frame.to_csv(path, index=False)
    streamed = bg.fit_stream(bg.MixedNB(), path, target="y")
    arguments = ["fit", str(path), "--model", "mixed", "--target", "y", "-o", str(model)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    whole = bg.load(model)
    assert streamed.schema_.kinds == ("gaussian", "bernoulli", "categorical", "categorical")
    assert streamed.schema_.kinds == tuple(
        whole.schema_.kinds[k] for k in place_of(whole, streamed)
    )
    assert streamed.schema_.categories == whole.schema_.categories
    assert streamed.schema_.categories[2] == ("1", "2", "true", "x")
    assert streamed.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-12)
    assert streamed.classes_.tolist() == whole.classes_.tolist() == [0, 1, 2]


def place_of(whole, streamed):
    """Where the columns of one schema stand in the other."""
    return [whole.schema_.names.index(name) for name in streamed.schema_.names]


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.csv.gz", b"\x1f\x8b\x08\0", "a.csv.gz cannot be read"),
        ("b.csv", b"a,y\n", "chunks holds no rows"),
        ("c.csv", b"a,b\n1,2\n", r"c.csv has no column 'y'; known are a, b"),
        ("i.csv", b"a,y\n1,2\n3,\n", r"i.csv: y has no label in 1 row"),
    ],
)
def test_bad_files(name, content, match, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=match):
        bg.fit_stream(bg.GaussianNB(), tmp_path / name, target="y")


def test_files_of_other_columns(tmp_path):
    (tmp_path / "1.csv").write_text("a,y\n1,2\n")
    (tmp_path / "2.csv").write_text("b,y\n1,2\n")
    with pytest.raises(ValueError, match=r"2.csv and .*1.csv differ in their columns: 'a'"):
        bg.fit_stream(bg.GaussianNB(), tmp_path, target="y")


def test_a_class_without_rows_yet(tmp_path):
    chunks, path = [(X2, Y2), (X2, Y2 + 1)], tmp_path / "c.nc"
    clf = bg.GaussianNB(class_alpha=[1.0, 2.0, 3.0])
    assert bg.fit_stream(clf, chunks).model_.alpha.tolist() == [2.0, 5.0, 5.0]
    with pytest.raises(ValueError, match=r"So far there are the classes \[0, 1\]: if others come"):
        bg.fit_stream(clf, chunks, checkpoint=path, every=1)
    assert bg.fit_stream(clf, chunks, classes=[0, 1, 2], checkpoint=path).n_rows_seen_ == 6


def test_a_classifier_without_statistics_is_refused():
    with pytest.raises(ValueError, match=r"works on sufficient statistics, and .* has none"):
        bg.fit_stream(bg.StudentTNB(), [(X2, Y2)])
