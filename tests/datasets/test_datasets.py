"""The bundled tables: shapes, types and figures that DATA.md and the sources give."""

import subprocess
import sys

import numpy as np
import pytest

import bayesgen as bg
from bayesgen import datasets


def test_penguins():
    X, y = datasets.load_penguins()
    assert X.shape == (344, 6)
    assert y.name == "species"
    assert y.value_counts().to_dict() == {"Adelie": 152, "Gentoo": 124, "Chinstrap": 68}
    assert int(X.isna().sum().sum()) == 19
    assert "year" not in X
    assert X["body_mass_g"].dtype == float
    assert X["bill_length_mm"].mean() == pytest.approx(43.92, abs=5e-3)
    assert set(X["island"]) == {"Biscoe", "Dream", "Torgersen"}


def test_pokemon_split_and_means_of_the_seed():
    X, y = datasets.load_pokemon()
    assert X.shape == (800, 11)
    assert y.nunique() == 18
    assert list(datasets.POKEMON_STATS) == [name for name in X if name in datasets.POKEMON_STATS]
    train = X["id"] < 400
    of = {kind: X[train & (y == kind)] for kind in ("water", "normal")}
    assert [len(rows) for rows in of.values()] == [79, 61]
    assert [int((~train & (y == kind)).sum()) for kind in of] == [33, 37]
    pair = ["defense", "sp_defense"]
    np.testing.assert_allclose(of["water"][pair].mean(), [75.038, 71.329], atol=5e-4)
    np.testing.assert_allclose(of["normal"][pair].mean(), [55.557, 59.836], atol=5e-4)


def test_languages():
    X, y = datasets.load_languages()
    assert len(X) == len(y) == 584
    assert y.nunique() == 10
    assert X.map(len).min() > 0
    assert X[0].startswith("Whereas recognition of the inherent dignity")


def test_workers_are_those_of_the_book():
    """Counts and means as published: 96 union members, 350 married, 9.02 dollars an hour."""
    X, y = datasets.load_workers()
    assert X.shape == (534, 10)
    assert y.value_counts()["other"] == 156
    assert {name: int((X[name] == "yes").sum()) for name in ("south", "union", "married")} == {
        "south": 156,
        "union": 96,
        "married": 350,
    }
    assert X["wage"].mean() == pytest.approx(9.024, abs=5e-4)
    assert ((X["education"] + X["experience"] + 6) == X["age"]).sum() == 533
    assert not X.isna().any().any()


def test_addresses():
    X, y = datasets.load_addresses()
    assert y.value_counts().to_dict() == dict.fromkeys(y.unique(), 50)
    assert y.nunique() == 6
    assert X.str.split().map(len).between(60, 120).all()
    assert X.is_unique
    assert X.map(str.isascii).all()


def test_submodule_is_lazy_and_light():
    code = (
        "import sys, bayesgen as bg; assert 'bayesgen.datasets' not in sys.modules; "
        "bg.datasets.load_penguins; assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "datasets" in dir(bg)
