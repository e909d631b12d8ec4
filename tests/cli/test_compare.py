"""``bayesgen compare`` of several models: exact leave-one-out, held-out rows, refusals."""

import pytest

import bayesgen as bg
from tests.cli.test_cli import PENGUINS, refused, run

DROP = [f"--drop={name}" for name in ("island", "sex", "year")]
BILL = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
ON = ["--target", "species"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    run("fit", "-m", "mixed", PENGUINS, *ON, "-o", path / "mixed.nc")
    run("fit", PENGUINS, *ON, *DROP, "--model", "gaussian", "-o", path / "nb.nc")
    lda = ["--model=lda", "--drop-incomplete"]
    run("fit", PENGUINS, *ON, *DROP, *lda, "-o", path / "lda.nc")
    return path


@pytest.fixture(scope="module")
def rows():
    X, y = bg.datasets.load_penguins()
    return X[BILL], y


def shown(out, name):
    """The numbers in the line of a model."""
    line = next(line for line in out.splitlines() if line.startswith(f"{name} "))
    return line.split()[1:]


def test_saved_models_by_leave_one_out(folder, rows):
    out = run("compare", folder / "mixed.nc", folder / "nb.nc", PENGUINS, *ON).stdout
    loo = bg.load(folder / "nb.nc").loo(*rows)
    elpd, gap, se, loss, *_ = shown(out, "nb")
    assert elpd == f"{loo.elpd:.1f}"
    assert loss == f"{-loo.elpd / 344:.4f}"
    assert float(gap) < -2 * float(se)
    assert shown(out, "mixed")[1] == "0.0"
    assert "Leave-one-out of 344 rows" in out
    assert "not a guide to classification" in " ".join(out.split())


def test_rows_are_counted_as_in_the_file(folder, tmp_path):
    X, y = bg.datasets.load_penguins()
    frame = X.assign(species=y).iloc[::9].reset_index(drop=True)
    frame.loc[2, "species"] = None  # rows without a label are dropped
    frame.loc[8, "bill_depth_mm"] = None
    frame.to_csv(data := tmp_path / "data.csv", index=False)
    assert "'bill_depth_mm' in row 9" in refused("validate", folder / "lda.nc", data, *ON)
    frame.loc[8, "bill_depth_mm"] = 1e200
    frame.to_csv(data, index=False)
    told = "'bill_depth_mm' holds 1e+200 in row 9"
    assert told in refused("compare", data, "--model", "mixed", *ON)
    assert told in refused("fit", "-m", "mixed", data, *ON, "--test", 0.5, "-o", tmp_path / "m.nc")


def test_models_by_name_are_fitted_to_the_table(folder, rows):
    X, y = rows
    complete = X.notna().all(axis=1)
    X, y = X[complete], y[complete]
    models = {"lda": bg.LinearDiscriminant(), "qda": bg.QuadraticDiscriminant()}
    want = bg.compare_models({k: clf.fit(X, y) for k, clf in models.items()}, X, y).table
    names = ["--model", "lda", "--model", "qda"]
    result = run("compare", PENGUINS, *ON, *DROP, *names, "--drop-incomplete")
    for name in models:
        row = want.sel(model=name)
        numbers = shown(result.stdout, name)
        assert numbers[:2] == [f"{row[key].item():.1f}" for key in ("elpd", "elpd_diff")]
        assert numbers[-2:] == [f"{row.pool.item():.2f}", f"{row.log_evidence.item():.1f}"]
    assert "2 rows with missing cells dropped" in result.stderr
    both = run("compare", folder / "lda.nc", PENGUINS, *ON, *DROP, *names[2:], "--drop-incomplete")
    assert shown(both.stdout, "lda")[0] == shown(result.stdout, "lda")[0]


def test_which_rows(folder):
    one = [folder / "lda.nc", PENGUINS, *ON, "--drop-incomplete"]
    assert "stacking" in run("compare", *one).stdout  # the rows of the fit are recognised
    assert "plug-in" in run("compare", *one, "--rows", "held-out").stdout
    nb = folder / "nb.nc"
    assert "lda was fitted to these rows, and nb to others" in refused("compare", nb, *one)
    both = run("compare", nb, *one, "--rows", "held-out").stdout
    assert "nb: GaussianNB on 342 rows" in both
    assert "lda: LinearDiscriminant on 342 rows" in both


def test_names_that_are_taken(folder, tmp_path):
    other = tmp_path / "nb.nc"
    other.write_bytes((folder / "nb.nc").read_bytes())
    out = run("compare", folder / "nb.nc", other, PENGUINS, *ON).stdout
    assert out.count(shown(out, "nb")[0]) == 2


def test_texts():
    from bayesgen.datasets import load_languages
    from tests.cli.test_cli import LANGUAGES

    out = run("compare", LANGUAGES, "--target=lang", "--text=text", "--model=markov").stdout
    X, y = load_languages()
    want = bg.MarkovNB().fit(list(X), y).loo(list(X), y).elpd
    assert float(shown(out, "markov")[0]) == pytest.approx(want, abs=0.06)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([PENGUINS, *ON], "Missing argument 'TABLE'"),
        ([PENGUINS, *ON, *DROP, "--model=lda"], "cannot learn from rows with missing cells"),
        ([PENGUINS, *ON, "--model=lda"], "leave it out by --drop"),
        ([PENGUINS, *ON, "--model=auto"], "name its members"),
        ([PENGUINS, *ON, "--model=mixed", "--rows=held-out"], "cannot be held out"),
        ([PENGUINS, *ON, "--model=mixed", "--rows=other"], "other"),
    ],
)
def test_refusals(arguments, message):
    assert message in refused("compare", *arguments)


def test_rows_of_no_fit_are_held_out(folder, tmp_path, rows):
    X, y = rows
    other = X.iloc[::3].dropna().round(0)
    other.assign(species=y[other.index], sex="male", island="Dream", year=2008).to_csv(
        some := tmp_path / "some.csv", index=False
    )
    both = run("compare", folder / "lda.nc", folder / "nb.nc", some, *ON)
    assert "taken as held-out" in both.stderr
    models = {name: bg.load(folder / f"{name}.nc") for name in ("lda", "nb")}
    want = bg.compare_predictives(models, other, y[other.index]).sel(
        predictive="posterior_predictive"
    )
    own = want.sel(model="nb")
    found = [line.split() for line in both.stdout.splitlines() if line.startswith("nb ")]
    names = ("", "_above_best", "_above_best_se", "_above_best_median")
    assert found[0][1:5] == [f"{own[f'log_loss{name}'].item():.4f}" for name in names]
    assert found[0][5] == f"{100 * own['log_loss_above_best_wins'].item():.0f}"
    assert "the fit had" in refused("compare", folder / "lda.nc", some, *ON, "--rows=training")


def test_names_of_models_are_whole_at_every_width(tmp_path):
    """The example of --help: at 80 columns the names were one letter."""
    X, y = bg.datasets.load_penguins()
    X[BILL].dropna()[::6].assign(kind=y).to_csv(tmp_path / "iris.csv", index=False)
    names = ("gaussian", "lda", "qda")
    models = [f"--model={name}" for name in names]
    command = ["compare", tmp_path / "iris.csv", "--target", "kind", *models]
    wide = run(*command, columns=200).stdout
    assert all(len(shown(wide, name)) == 9 for name in names)
    for columns in (60, 80, 100):
        lines = [line.split() for line in run(*command, columns=columns).stdout.splitlines()]
        for name in names:
            numbers = [number for line in lines if line[:1] == [name] for number in line[1:]]
            assert numbers == shown(wide, name)
