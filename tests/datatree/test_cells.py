"""Features with categories of their own: NumPy pads, trees and PyMC list the cells that exist."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesgen as bg
from bayesgen.families.shared.pymc_parts import Cells, by_cell, category_coords, cells_dim, padded
from tests.drawn import drawn

RNG = np.random.default_rng(11)
N = 30
Y = np.array(["ant", "bee", "cow"])[np.arange(N) % 3]
TABLE = pd.DataFrame(
    {
        "size": RNG.choice(["S", "M", "L"], N),
        "hue": RNG.choice(["red", "blue"], N),
        "wing": RNG.choice(["yes", "no"], N),
    }
)
CELLS = ["size, L", "size, M", "size, S", "hue, blue", "hue, red", "wing, no", "wing, yes"]


# of others, for them to mend; and draws are few on purpose
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore::bayesgen.posterior.drawn.MonteCarloWarning",
)


@pytest.fixture(scope="module")
def clf() -> Any:
    return bg.CategoricalNB().fit(TABLE, Y)


def test_names_of_the_cells(clf: Any) -> None:
    theta = clf.posterior_["posterior"]["theta"]
    assert theta.dims == ("chain", "draw", "class", "feature_category")
    assert theta["feature_category"].values.tolist() == CELLS
    for feature in TABLE:
        of_feature = np.array(theta["feature_category"].attrs["feature"]) == feature
        np.testing.assert_allclose(
            theta.isel(feature_category=of_feature).sum("feature_category"), 1.0
        )


def test_shared_categories_keep_their_dim() -> None:
    X = TABLE[["hue"]].assign(eye=TABLE["hue"].iloc[::-1].to_numpy())
    theta = bg.CategoricalNB().fit(X, Y).posterior_["posterior"]["theta"]
    assert theta.dims[2:] == ("class", "feature", "category")
    assert theta["category"].values.tolist() == ["blue", "red"]


def test_draws_are_taken_by_the_names_of_their_cells(clf: Any) -> None:
    new = clf.draw_posterior(50, 2)
    expected = clf.with_posterior(new).predict_proba(TABLE)
    shuffled = new["posterior"].to_dataset().isel(feature_category=RNG.permutation(7))
    again = clf.with_posterior(shuffled)
    np.testing.assert_array_equal(again.predict_proba(TABLE), expected)


def test_padded_draws_are_refused(clf: Any) -> None:
    """Of a trace of the user's own: which cells are padding is not for us to guess."""
    dims = ("chain", "draw", "class", "feature", "category")
    draws = {"pi": (dims[:3], np.full((1, 2, 3), 1 / 3)), "theta": (dims, np.ones((1, 2, 3, 3, 3)))}
    with pytest.raises(ValueError, match=r"'theta' of the posterior has dims.*feature_category"):
        clf.with_posterior(xr.Dataset(draws))


def test_draws_of_other_categories_are_refused(clf: Any) -> None:
    other = TABLE.replace({"hue": {"red": "green"}})
    draws = bg.CategoricalNB().fit(other, Y).draw_posterior(5)
    with pytest.raises(ValueError, match=r"labels of 'feature_category'.*'hue, green'"):
        clf.with_posterior(draws)
    fewer = bg.CategoricalNB().fit(TABLE.replace({"size": {"L": "M"}}), Y).draw_posterior(5)
    with pytest.raises(
        ValueError, match="has 6 along 'feature_category', but the classifier has 7"
    ):
        clf.with_posterior(fewer)


@pytest.mark.parametrize("make", [bg.CategoricalNB, bg.MixedNB])
def test_a_file_of_draws_predicts_the_same(make: Any, tmp_path: Any) -> None:
    clf = drawn(make(), TABLE, Y, draws=20)
    clf.save(tmp_path / "model.nc")
    again = bg.load(tmp_path / "model.nc")
    assert again.posterior_.attrs == clf.posterior_.attrs
    a, b = (c.posterior_["posterior"].to_dataset() for c in (clf, again))
    xr.testing.assert_identical(a.drop_attrs(), b.drop_attrs())
    dim = next(d for d in a.dims if str(d).endswith("feature_category"))
    assert a[dim].attrs == b[dim].attrs
    np.testing.assert_array_equal(again.predict_proba(TABLE), clf.predict_proba(TABLE))


def test_cells_of_blocks_have_the_prefix_of_the_block() -> None:
    coords = category_coords(["a", "b"], [["u"], ["u", "v"]], "categorical_")
    cells = coords["categorical_feature_category"]
    assert isinstance(cells, Cells)
    dims = ("class", "categorical_feature", "categorical_category")
    assert cells_dim(dims) == "categorical_feature_category"
    for others in (("class", "feature"), ("class", "feature_bis", "category"), ("class",), ()):
        assert cells_dim(others) is None
    table = np.array([[[1.0, 0.0], [0.3, 0.7]]])
    named, listed = by_cell(dims, table, coords)
    assert named == ("class", "categorical_feature_category")
    np.testing.assert_array_equal(listed, [[1.0, 0.3, 0.7]])
    np.testing.assert_array_equal(padded(listed, cells), table)


def test_labels_of_any_type_are_written(tmp_path: Any) -> None:
    mixed = TABLE[["hue"]].assign(n=np.arange(N) % 3, flag=np.arange(N) % 2 == 0)
    tree = bg.CategoricalNB().fit(mixed, Y).draw_posterior(4, 1)
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "tree.nc", engine="h5netcdf") as back:
        names = back["posterior"]["feature_category"]
        assert {"n, 2", "flag, True", "hue, red"} <= set(names.values.tolist())
        assert (
            list(names.attrs["feature"]) == tree["posterior"]["feature_category"].attrs["feature"]
        )
