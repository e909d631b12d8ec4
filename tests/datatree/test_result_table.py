"""Results that are Datasets print as tables of one line per row, or row and class."""

import html

import numpy as np
import pytest
import xarray as xr

import bayesgen as bg

RNG = np.random.default_rng(0)
Y = np.repeat(["a", "b", "c"], 12)
X = RNG.normal(size=(36, 2)) + 2.0 * (Y == "b")[:, None]
CLF = bg.GaussianNB().fit(X, Y)


RESULTS = [  # question, words of the title, columns, index
    (
        lambda: CLF.predict_interval(X[:4], kind="eti"),
        "89 % intervals (eti)",
        "lower upper log_odds_lower log_odds_upper predictive error",
        "obs_id class",
    ),
    (
        lambda: CLF.predict_uncertainty(X[:4]),
        "entropy of each row's label",
        "total aleatoric epistemic error",
        "obs_id",
    ),
    (lambda: CLF.predict_set(X[:4]), "in 90 % of rows", "included size", "obs_id"),
    (
        lambda: bg.label_errors(CLF, X, Y),
        "probability that each label is wrong",
        "wrong label other position",
        "obs_id",
    ),
]


@pytest.mark.parametrize(("ask", "title", "columns", "index"), RESULTS)
def test_a_result_prints_as_a_table_and_stays_a_dataset(ask, title, columns, index):
    table = ask()
    frame = table.to_dataframe()
    assert " ".join(frame.columns) == columns
    assert " ".join(frame.index.names) == index
    text = repr(table)
    assert title in text.splitlines()[0]
    assert columns.split()[0] in text
    assert title in html.unescape(table._repr_html_())
    assert isinstance(table, xr.Dataset)
    xr.testing.assert_identical(table.dataset, xr.Dataset(table.data_vars, attrs=table.attrs))
    assert "xarray.Dataset" in repr(table.dataset)


def test_selections_print_too_and_numbers_are_those_of_the_dataset():
    table = CLF.predict_interval(X[:4])
    frame = table.to_dataframe()
    ends = table["interval"].sel({"class": "b"}).values
    np.testing.assert_array_equal(frame.xs("b", level="class")[["lower", "upper"]], ends)
    one = table.sel({"class": "b"})
    assert len(repr(one).splitlines()) == 1 + 2 + 4 + 1  # title, heads, rows, other variables
    assert "xarray" in repr(table.isel(obs_id=0).sel({"class": "b"}))  # one number each


def test_the_most_suspect_labels_come_first_and_the_others_are_counted():
    labels = Y.copy()
    labels[20] = "a"
    lines = repr(bg.label_errors(bg.GaussianNB().fit(X, labels), X, labels)).splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("obs_id")]
    assert lines[heads[0] + 1].split()[0] == "20"
    assert any("16 more lines" in line for line in lines)


def test_sets_are_named():
    table = CLF.predict_set(X, coverage=0.9)
    for text, inside in zip(
        table.to_dataframe()["included"], table["included"].values, strict=True
    ):
        assert text == ", ".join(np.array(["a", "b", "c"])[inside])
