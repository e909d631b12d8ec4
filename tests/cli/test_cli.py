"""The command line: what it prints, what it writes, and what it says when it cannot."""

import errno
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen import cli
from bayesgen.cli import app
from bayesgen.datasets import load_languages, load_penguins
from tests.selection import rest_is_slow

PENGUINS = str(Path(bg.datasets.__file__).with_name("penguins.csv"))
LANGUAGES = str(Path(bg.datasets.__file__).with_name("udhr_10.tsv"))


def run(*args, code=0, columns=100):
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(app, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*args):
    """The one line on stderr of a run that must fail as the user's mistake."""
    result = run(*args, code=2)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note:")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert result.stdout == ""
    return lines[0]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.fixture(scope="module")
def penguin_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "penguins.nc"
    run("fit", "-m", "mixed", PENGUINS, "--target", "species", "--drop", "year", "-o", path)
    return path


# ------------------------------------------------------------------------------------- demo


def test_demo_shows_what_integration_gains():
    """On few rows the predictive is best beyond its standard error; on many nothing is lost."""
    out = run("demo", columns=80).stdout
    found = [re.findall(r"([\d.]+) \+- ([\d.]+)", line) for line in out.splitlines()]
    (few, se), (many, _) = np.array([*filter(None, found)], dtype=float).transpose(1, 2, 0)
    assert few[0] + 2 * se[1] < few[1]
    assert np.ptp(many) < 0.1
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out


# ---------------------------------------------------------------------------- program as such


def test_console_script_and_version():
    script = Path(sys.executable).with_name("bayesgen")
    for command in ([script], [sys.executable, "-m", "bayesgen.cli"]):
        out = subprocess.run([*command, "--version"], capture_output=True, check=True, text=True)
        assert out.stdout == f"bayesgen {bg.__version__}\n"


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom bayesgen.cli import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pandas', 'xarray', 'pyarrow'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_help_gives_examples():
    for command in ("demo", "fit", "predict", "compare", "report", "validate"):
        assert f"bayesgen {command} " in run(command, "--help").stdout.partition("Examples")[2]


def test_broken_pipe_is_silent():
    code = f"{sys.executable} -m bayesgen --help | true; exit ${{PIPESTATUS[0]}}"
    out = subprocess.run(["bash", "-c", code], capture_output=True, text=True)
    assert (out.returncode, out.stderr) == (128 + signal.SIGPIPE, "")


# ------------------------------------------------------------------------- fit and predict


def read(path):
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def counts(holds=int):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 60)
    X = rng.poisson(1 + 2 * y[:, None], (60, 3))
    return pd.DataFrame(X > 1 if holds is bool else X, columns=["a", "b", "c"]), pd.Series(y)


ESTIMATORS = {  # classifier and rows
    "mixed": (bg.MixedNB(), load_penguins),
    "gaussian": (bg.GaussianNB(), counts),
    "lda": (bg.LinearDiscriminant(), counts),
    "qda": (bg.QuadraticDiscriminant(), counts),
    "poisson": (bg.PoissonNB(), counts),
    "multinomial": (bg.MultinomialNB(), counts),
    "categorical": (bg.CategoricalNB(), counts),
    "bernoulli": (bg.BernoulliNB(binarize=None), lambda: counts(bool)),
    "forest": (bg.TreeAugmentedNB(), counts),
}


@pytest.mark.parametrize("model", rest_is_slow(ESTIMATORS, ["mixed", "lda", "categorical"]))
@pytest.mark.parametrize(("ending", "result"), [(".csv", ".parquet"), (".parquet", ".csv")])
def test_every_model_predicts_as_in_python(tmp_path, model, ending, result):
    clf, rows = ESTIMATORS[model]
    X, y = rows()
    data, path, out = tmp_path / f"data{ending}", tmp_path / "model.nc", tmp_path / f"out{result}"
    table = X.assign(label=y)
    table.to_parquet(data) if ending == ".parquet" else table.to_csv(data, index=False)
    told = run("fit", data, "--target", "label", "-m", model, "-o", path).stdout
    run("predict", path, data, "-o", out)
    clf = clf.fit(X, y)
    assert type(bg.load(path)) is type(clf)
    if model == "mixed":
        assert str(clf.summary()) in told
    got = read(out)
    assert list(got) == ["prediction", *(f"p_{label}" for label in clf.classes_)]
    assert got["prediction"].tolist() == clf.predict(X).tolist()
    np.testing.assert_allclose(got.iloc[:, 1:], clf.predict_proba(X), rtol=1e-9)


@pytest.mark.slow
def test_language_model(tmp_path):
    X, y = load_languages()
    model, out = tmp_path / "model.nc", tmp_path / "out.csv"
    arguments = ("--target", "lang", "--model", "markov", "--text", "text")
    assert "'para' left out" in run("fit", LANGUAGES, *arguments, "-o", model).stderr
    run("predict", model, LANGUAGES, "-o", out, "--keep", "para")  # the model knows its column
    got = pd.read_csv(out)
    clf = bg.MarkovNB().fit(X, y)
    assert list(got)[:2] == ["para", "prediction"]
    np.testing.assert_allclose(got.iloc[:, 2:], clf.predict_proba(X), rtol=1e-12, atol=1e-300)
    renamed = write(tmp_path / "one.csv", "greeting\nhyvää päivää\n")
    assert "'text'" in refused("predict", model, renamed, "-o", tmp_path / "o.csv")
    run("predict", model, renamed, "-o", tmp_path / "o.csv", "--text", "greeting")
    assert read(tmp_path / "o.csv")["prediction"].tolist() == ["fin"]
    elpd = clf.loo(list(X), list(y)).elpd
    assert f"  {elpd:.1f} " in run("compare", model, LANGUAGES, "--target", "lang").stdout


def test_kinds_of_columns(tmp_path):
    data = write(
        tmp_path / "data.csv",
        "visits,code,smokes,age,ill\n0,1,TRUE,31,y\n3,2,False,42.5,n\n1,1,true,,n\n9,3,,51,y\n",
    )
    kinds = ("--kind", "visits=poisson", "--kind", "code=categorical", "--kind", "age=lognormal")
    told = run("fit", "-m", "mixed", data, "-t", "ill", *kinds, "-o", tmp_path / "m.nc").stdout
    lines = ["poisson: visits", "categorical: code", "bernoulli: smokes", "lognormal: age"]
    assert told.splitlines()[:4] == lines
    schema = bg.load(tmp_path / "m.nc").schema_
    assert schema.kinds == ("poisson", "categorical", "bernoulli", "lognormal")
    assert schema.categories[1] == (1, 2, 3)


ZEROS = "".join(f"{i:05d},0.{i},{'ab'[i % 2]}\n" for i in range(8, 24))


@pytest.mark.parametrize(("text", "arguments", "words"), [
    (f"zip,x,y\n{ZEROS}", [], ["column 'zip' holds '00008', read as the number 8; if its zeros"]),
    ("k,x,y\n1,1,a\n2,2,b\n" + "7" * 5000 + ",3,a\n", [], ["categorical: k gaussian: x"]),
    ("x,y\n1,a\n2,\n3,b\n4,NA\n5,b\n", [], ["2 rows without 'y' dropped", "a (1), b (2)"]),
    ("u,v,y\n1,2,a\n2,,b\n3,1,b\n4,5,a\n", ["-m", "lda", "--drop-incomplete"],
     ["1 row with missing cells dropped"]),
])  # fmt: skip
def test_what_fit_says(tmp_path, text, arguments, words):
    data = write(tmp_path / "d.csv", text)
    result = run("fit", "-m", "mixed", data, "-t", "y", *arguments, "-o", tmp_path / "m.nc")
    told = " ".join(result.output.split())
    assert all(one in told for one in words), result.output
    assert result.stderr.count("note:") <= 1


@pytest.mark.parametrize(("labels", "expected"), [
    (["TRUE", "false"], [True, False]),
    (["1.0", "2.0"], [1, 2]),
    (["1", "x"], ["1", "x"]),
])  # fmt: skip
def test_types_of_labels(tmp_path, labels, expected):
    text = "x,y\n" + "".join(f"{5 * k},{label}\n" for k, label in enumerate(labels))
    data, model, out = write(tmp_path / "d.csv", text), tmp_path / "m.nc", tmp_path / "o.parquet"
    run("fit", "-m", "mixed", data, "--target", "y", "-o", model)
    run("predict", model, data, "-o", out)
    assert read(out)["prediction"].tolist() == expected
    assert "by leave-one-out of 2 labels" in run("compare", model, data, "--target", "y").stdout


def test_models_made_in_python(tmp_path):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(20, 2)), columns=["u", "v"]), np.arange(20) % 2
    model, data, out = (tmp_path / name for name in ("m.nc", "d.csv", "o.csv"))
    dropped = bg.MixedNB(columns={"gaussian": ["u"], "drop": ["v"]}).fit(X, y)
    nameless = bg.GaussianNB().fit(X.to_numpy(), y)
    for clf, columns in ((dropped, ["u"]), (nameless, ["u", "v"])):
        clf.save(model)
        X[columns].to_csv(data, index=False)
        run("predict", model, data, "-o", out)
        rows = X if clf is dropped else X.to_numpy()
        np.testing.assert_allclose(read(out)[["p_0", "p_1"]], clf.predict_proba(rows), rtol=1e-12)
    X.assign(w=1).to_csv(data, index=False)
    assert "without column names" in refused("predict", model, data, "-o", tmp_path / "p.csv")


# -------------------------------------------------------------------------------- streaming


TRICKY = """number,code,flag,word,y
1,1,True,red,a
2.5,2,FALSE,blue,b
,,,,a
,,,,b
NA,3,true,red,a
7,1,False,blue,b
-1e3,2,TRUE,NA,a
4,3,,red,b
"""
NEW = """word,flag,code,number
,,,
,,,
,,,
"green",1,7,1
red,TRUE,1.0,2
blue,false,9,3
NA,0,2,1e2
red,True,3, 4
"""


@pytest.mark.parametrize("ending", rest_is_slow([".csv", ".parquet"], [".csv"]))
def test_chunks_do_not_change_the_result(tmp_path, monkeypatch, ending):
    """Columns that are empty in a chunk, codes and flags in every spelling, new categories."""
    data, model = write(tmp_path / "data.csv", TRICKY), tmp_path / "model.nc"
    run("fit", data, "--target", "y", "--kind", "code=categorical", "-o", model)
    new = write(tmp_path / "new.csv", NEW)
    results, notes = [], []
    for rows in (1, 3, 100):
        out = tmp_path / f"out{ending}"
        monkeypatch.setattr("bayesgen.cli.predict._BLOCK_ROWS", rows)
        notes.append(run("predict", model, new, "-o", out).stderr)
        results.append(read(out))
    for other in results[1:]:
        pd.testing.assert_frame_equal(other, results[0])
    assert len(set(notes)) == 1
    assert notes[0].count("column 'code': 2 cells, the first 7.0 in row 4;") == 1
    assert "column 'word': 1 cell, the first 'green' in row 4" in notes[0]
    X = pd.DataFrame({
        "number": [np.nan] * 3 + [1, 2, 3, 100, 4],
        "code": [np.nan] * 3 + [7, 1, 8, 2, 3],
        "flag": [np.nan] * 3 + [1, 1, 0, 0, 1],
        "word": [None] * 3 + ["green", "red", "blue", None, "red"],
    })  # fmt: skip
    with pytest.warns(UserWarning, match="no training row had"):
        expected = bg.load(model).predict_proba(X)
    np.testing.assert_allclose(results[0][["p_a", "p_b"]], expected, rtol=1e-12)


def test_kept_columns_keep_their_type(tmp_path, penguin_model, monkeypatch):
    X, _ = load_penguins()
    when = pd.Timestamp("2026-01-01")
    table = X.assign(when=when, nr=range(len(X)), isle=X["island"].astype("category"))
    table.to_parquet(tmp_path / "new.parquet", row_group_size=50)
    monkeypatch.setattr("bayesgen.cli.predict._BLOCK_ROWS", 64)
    arguments = ("--keep", "when", "--keep", "nr", "--keep", "isle")
    for ending in (".parquet", ".csv"):
        out = tmp_path / f"out{ending}"
        run("predict", penguin_model, tmp_path / "new.parquet", "-o", out, *arguments)
        got = read(out)
        assert got["nr"].tolist() == list(range(len(X)))
        assert got["isle"].tolist() == X["island"].tolist()
        assert pd.to_datetime(got["when"]).eq(when).all()


def test_an_error_in_the_middle_leaves_the_old_result(tmp_path, penguin_model, monkeypatch):
    header = write(tmp_path / "no_rows.csv", Path(PENGUINS).read_text().splitlines()[0] + "\n")
    run("predict", penguin_model, header, "-o", tmp_path / "empty.csv")
    assert (tmp_path / "empty.csv").read_text() == "prediction,p_Adelie,p_Chinstrap,p_Gentoo\n"
    monkeypatch.setattr("bayesgen.cli.predict._BLOCK_ROWS", 10)
    text = Path(PENGUINS).read_text()
    new = write(tmp_path / "new.csv", text + "x,Dream,wide,,,,,\n")
    out = write(tmp_path / "out.csv", "old")
    line = refused("predict", penguin_model, new, "-o", out)
    assert "column 'bill_length_mm' holds 'wide' in row 345" in line
    assert out.read_text() == "old"
    assert leftovers(tmp_path) == []


def test_interrupt_leaves_nothing(tmp_path, penguin_model, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayesgen.cli.predict._reasons", interrupted)
    arguments = ("predict", penguin_model, PENGUINS, "-o", tmp_path / "out.csv", "--explain", 1)
    result = run(*arguments, code=130)
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_terminated_run_leaves_by_every_finally(monkeypatch):
    def command(prog_name):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)

    monkeypatch.setattr(cli, "app", command)
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGPIPE)}
    try:
        with pytest.raises(SystemExit) as found:
            cli.main()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert found.value.code == 128 + signal.SIGTERM


def test_a_full_disk_is_one_line_and_leaves_the_old_file(tmp_path, penguin_model):
    fit = ["fit", PENGUINS, "--target", "species", "--model", "mixed"]
    predict = ["predict", str(penguin_model), PENGUINS]
    outs = [write(tmp_path / name, "old") for name in ("a.csv", "a.parquet", "model.nc")]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for out in outs:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            line = refused(*(fit if out.suffix == ".nc" else predict), "-o", out)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert line == f"error: cannot write {out}: {os.strerror(errno.EFBIG)}"
    assert [out.read_text() for out in outs] == ["old"] * 3
    assert sorted(tmp_path.iterdir()) == sorted(outs)


# ------------------------------------------------------------------------------------ files


@pytest.mark.parametrize(("text", "message"), [
    ("", "is empty"),
    ("x,y\n", "no rows"),
    ("x,y\n,a\n,b\n", "column 'x' is empty"),
    ("x,y\n1,\n2,NA\n", "column 'y' is empty"),
    ("y\na\nb\n", "no column left"),
    ("x,y\ninf,a\n2,b\n", "finite"),
])  # fmt: skip
def test_files_that_cannot_be_learned_from(tmp_path, text, message):
    data = write(tmp_path / "d.csv", text)
    line = refused("fit", "-m", "mixed", data, "--target", "y", "-o", tmp_path / "m.nc")
    assert message in line
    assert not (tmp_path / "m.nc").exists()


# ----------------------------------------------------------------------------------- errors


FIT = ["fit", PENGUINS, "-t", "species", "-o", "m.nc"]
PREDICT = ["predict", "MODEL", PENGUINS, "-o", "o.csv"]


@pytest.mark.parametrize(("arguments", "message"), [
    (["fitt"], "No such command"),
    (["fit", PENGUINS, "-o", "m.nc"], "Missing option '--target'"),
    ([*FIT, "--modle", "lda"], "--modle"),
    ([*FIT, "--model", "nb"], "'nb' is not one of"),
    ([*FIT, "-t", "SPECIES"], "did you mean 'species'?"),
    ([*FIT, "-o", "no/m.nc"], "is not a folder"),
    ([*FIT, "-o", "/dev/null"], "not a file"),
    ([*FIT, "-o", PENGUINS], "it is the file to be read"),
    (["fit", PENGUINS[:-5] + ".csv", "-t", "y", "-o", "m.nc"], "did you mean"),
    (["fit", ".", "-t", "y", "-o", "m.nc"], "error: . is a folder"),
    ([*FIT, "--drop", "yeer"], "mean 'year'?"),
    ([*FIT, "--drop", "species"], "the target"),
    ([*FIT, "--kind", "sex"], "COLUMN=KIND"),
    ([*FIT, "--kind", "sex=weibull"], "lognormal"),
    ([*FIT, "--kind", "sex=gaussian"], "'male'"),
    ([*FIT, "-m", "forest", "--kind", "year=poisson"], "kinds are gaussian, categorical"),
    ([*FIT, "-m", "lda", "--kind", "sex=x"], "--kind is for"),
    ([*FIT, "-m", "auto", "--kind", "year=poisson"], "auto chooses"),
    ([*FIT, "-m", "lda"], "'Torgersen'"),
    ([*FIT, "--order", "3"], "No such option"),
    ([*FIT, "-m", "mixed", "--text", "sex"], "--model markov"),
    ([*FIT, "-m", "markov"], "by --text"),
    ([*FIT, "-t", "year", "-m", "bernoulli", "--drop", "island", "--drop", "species", "--drop",
      "sex"], "takes 0 and 1 only"),
    (["compare", PENGUINS, "-t", "species"], "Missing argument 'MODEL'"),
    ([*FIT, "-m", "lda", "--drop", "island", "--drop", "sex"], "row 4 (column 'bill_length_mm'); "
     "leave them out by --drop-incomplete"),
    (["compare", "MODEL", PENGUINS, "-t", "island"], "the model reads this column"),
    ([*PREDICT, "--cost", "Adelie,Gento=2"], "two of the labels Adelie, Chinstrap, Gentoo"),
    ([*PREDICT, "--cost", "Adelie,Gentoo=x"], "TRUE,DECISION=NUMBER"),
    ([*PREDICT, "--cost", "Adelie=2"], "TRUE,DECISION=NUMBER"),
    ([*PREDICT, "--cost", "Adelie,Gentoo=-1"], "cost of Gentoo where Adelie is true must be"),
    (["predict", "no.nc", PENGUINS, "-o", "o.csv"], "no model file at no.nc"),
    (["predict", PENGUINS, PENGUINS, "-o", "o.csv"], "is not a readable model file"),
    (["predict", "MODEL", PENGUINS, "-o", "o.txt"], "must end in .csv"),
    (["predict", "MODEL", PENGUINS, "-o", PENGUINS], "is the file to be read"),
    ([*PREDICT, "--keep", "yeer"], "did you mean 'year'?"),
    ([*PREDICT, "--text", "sex"], "is for language models"),
])  # fmt: skip
def test_mistakes_are_one_line(tmp_path, monkeypatch, penguin_model, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(*(penguin_model if each == "MODEL" else each for each in arguments))
    assert list(tmp_path.iterdir()) == []


def test_missing_columns_are_named(tmp_path, penguin_model):
    new = tmp_path / "new.csv"
    X, _ = load_penguins()
    X.drop(columns="sex").assign(Sex=X["sex"]).to_csv(new, index=False)
    line = refused("predict", penguin_model, new, "-o", tmp_path / "o.csv")
    assert "lacks a column of the model: 'sex'; did you mean 'Sex'?" in line
    X[["island"]].to_csv(new, index=False)
    line = refused("predict", penguin_model, new, "-o", tmp_path / "o.csv")
    assert "'bill_length_mm', 'bill_depth_mm'" in line


def test_unknown_categories_and_labels_are_named_by_their_row(tmp_path, monkeypatch):
    monkeypatch.setattr("bayesgen.cli.predict._BLOCK_ROWS", 1)
    data = write(tmp_path / "d.csv", "x,z,y\nu,p,a\nu,p,a\nv,q,b\n")
    run("fit", "-m", "mixed", data, "--target", "y", "-o", tmp_path / "m.nc")
    unknown = write(tmp_path / "u.csv", "x,z\nu,p\nw,q\n")
    held_out = write(tmp_path / "h.csv", "x,z,y\nu,p,a\nu,p,c\nw,q,b\n")
    for row, arguments in (
        (2, ("predict", tmp_path / "m.nc", unknown, "-o", tmp_path / "o.csv", "--explain", 1)),
        (3, ("compare", tmp_path / "m.nc", held_out, "-t", "y")),
        (3, ("report", tmp_path / "m.nc", held_out, "-t", "y", "-o", tmp_path / "r.md")),
    ):
        said = run(*arguments).stderr
        assert f"column 'x': 1 cell, the first 'w' in row {row}. Each is treated as" in said
        assert said.count("no training row had") == 1
        assert ("1 row left out, whose labels the model lacks: 'c' (1)" in said) == (row == 3)


# ------------------------------------------------------------------------------------- pools


def test_a_column_of_texts_is_read_by_language_models(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    words = np.array([["cat", "sat", "on", "mat"], ["dog", "ran", "off", "red"]])
    X = pd.DataFrame({"x": rng.normal(size=60)})
    X["note"] = [f"{' '.join(rng.permutation(words[c]))} {i}" for i, c in enumerate(y)]
    X.loc[3, "note"] = None
    data, model, out = (tmp_path / name for name in ("data.csv", "pool.nc", "out.csv"))
    X.assign(y=y).to_csv(data, index=False)
    result = run("fit", data, "--target", "y", "--model", "auto", "-o", model)
    assert "text: note\n" in result.output
    run("predict", model, data, "-o", out)
    expected = bg.LogLinearPool().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(read(out)[["p_0", "p_1"]], expected, rtol=1e-9)
