"""``bayesgen compare`` of several models: exact leave-one-out, held-out rows, refusals."""

import pytest

import bayesgen as bg
from tests.cli.test_cli import PENGUINS, refused, run

DROP = [f"--drop={name}" for name in ("island", "sex", "year")]
BILL = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
ON = ["--target", "species"]
X, Y = bg.datasets.load_penguins()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    run("fit", "-m", "mixed", PENGUINS, *ON, "-o", path / "mixed.nc")
    run("fit", PENGUINS, *ON, *DROP, "--model", "gaussian", "-o", path / "nb.nc")
    lda = ["--model=lda", "--drop-incomplete"]
    run("fit", PENGUINS, *ON, *DROP, *lda, "-o", path / "lda.nc")
    return path


def shown(out, name):
    """The numbers in the lines of a model."""
    lines = [line.split() for line in out.splitlines() if line.startswith(f"{name} ")]
    return [numbers for _, *numbers in lines]


def test_training_rows_are_left_out(folder, tmp_path):
    (other := tmp_path / "nb.nc").write_bytes((folder / "nb.nc").read_bytes())
    out = run("compare", folder / "mixed.nc", folder / "nb.nc", other, PENGUINS, *ON).stdout
    want = bg.load(folder / "nb.nc").loo(X[BILL], Y).elpd
    (numbers,) = shown(out, "nb")
    assert numbers[0] == f"{want:.1f}"
    assert numbers[4] == f"{-want / 344:.3f}"
    assert float(numbers[2]) < -2 * float(numbers[3])
    assert shown(out, "mixed")[0][2] == "0.0"
    assert shown(out, str(other))[0][:6] == numbers[:6]  # whose name was taken
    assert "3 models by leave-one-out of 344 labels" in out
    assert "not a guide to classification" in " ".join(out.split())


def test_other_rows_are_held_out(folder, tmp_path):
    other = X.iloc[::3].dropna().round(0)
    frame = other.assign(species=Y[other.index], year=2008)
    frame.to_csv(some := tmp_path / "some.csv", index=False)
    result = run("compare", folder / "lda.nc", folder / "nb.nc", some, *ON)
    assert "taken as held-out" in result.stderr
    assert f"lda: LinearDiscriminant, nb: GaussianNB on {len(frame)} rows" in result.stdout
    models = {name: bg.load(folder / f"{name}.nc") for name in ("lda", "nb")}
    want = bg.compare_predictives(models, other[BILL], Y[other.index]).sel(model="nb")
    above = [f"log_loss_above_best{end}" for end in ("", "_se", "_median", "_wins")]
    for method in want.predictive.values:
        scores = want.sel(predictive=method)[["accuracy", "log_loss", "brier", "ece", *above]]
        line = [f"{value.item():.4f}" for value in scores.values()]
        told = [row.split() for row in result.stdout.splitlines()]
        assert [method, *line] in [cells[-9:] for cells in told]


def test_a_pool_has_one_line(tmp_path):
    pool = bg.LogLinearPool([bg.GaussianNB(), bg.GaussianNB(variance="tied")])
    pool.fit(X[BILL][::3], Y[::3]).save(model := tmp_path / "pool.nc")
    X[1::3].assign(species=Y[1::3]).to_csv(some := tmp_path / "some.csv", index=False)
    assert len(run("compare", model, some, *ON).stdout.splitlines()) == 4


def test_which_rows(folder, tmp_path):
    lda = folder / "lda.nc"
    result = run("compare", lda, PENGUINS, *ON)  # the rows of the fit are recognised
    assert "1 model by leave-one-out of 342 labels" in result.stdout
    assert "2 rows with missing cells dropped" in result.stderr
    assert "lda was fitted to these rows, and nb to others" in refused(
        "compare", folder / "nb.nc", lda, PENGUINS, *ON
    )
    frame = X.assign(species=Y).iloc[::9].reset_index(drop=True)
    frame.loc[2, "species"] = None  # rows without a label are dropped
    frame.loc[8, "bill_depth_mm"] = 1e200
    frame.to_csv(data := tmp_path / "data.csv", index=False)
    told = "'bill_depth_mm' holds 1e+200 in row 9"
    assert told in refused("fit", "-m", "mixed", data, *ON, "-o", tmp_path / "m.nc")
    assert "in row 9" in refused("validate", folder / "nb.nc", data, *ON)
