"""``bayesgen ask``: which missing cell of a row to measure next."""

from pathlib import Path
from typing import Annotated

import typer

from bayesgen.cli.console import (
    AsJson,
    ModelFile,
    Most,
    UserError,
    blamed_on,
    plain_table,
    short,
    show_json,
    shown_columns,
    stdout,
)


def ask(
    model: ModelFile,
    data: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Rows with empty cells: .csv, .tsv or .parquet.")
    ],
    row: Annotated[int, typer.Option("--row", min=1, metavar="N", help="Which row, from 1.")] = 1,
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--cost", metavar="[COLUMN=]X", help="What a measurement costs, in nats; repeatable."
        ),
    ] = None,
    most: Most = None,
    as_json: AsJson = False,
) -> None:
    """Show which empty cell of a row to measure next, and whether to stop.

    The gain of a cell is by how much knowing it is expected to lower the entropy of the label, in
    nats; its value is the gain less its cost. A column without a cost has the one that is given
    without a name, else 0.

    Examples
    --------
    bayesgen ask penguins.nc new.csv
    bayesgen ask penguins.nc new.csv --row 3 --cost 0.05 --cost body_mass_g=0.01
    bayesgen ask penguins.nc new.csv --json
    """
    import numpy as np

    from bayesgen.cli import columns, files

    n_shown = shown_columns(most, as_json)
    table = files.open_table(data)
    clf = files.load_model(model)
    if not hasattr(clf, "next_measurement"):
        raise UserError(f"{model} is a {type(clf).__name__}: ask one of its members")
    X = columns.picked_rows(clf, table, np.array([row]))
    with blamed_on(data, (ValueError, TypeError, NotImplementedError), rows=[row]):
        p = np.asarray(clf.predict_proba(X))[0]
        found = clf.next_measurement(X, _costs(price or [], clf)).isel(obs_id=0)
    open_ = found[["gain", "value"]].dropna("feature").sortby("value", ascending=False)
    probabilities = dict(zip(map(str, clf.classes_.tolist()), p.tolist(), strict=True))
    if as_json:
        worth = open_.to_dataframe()[["gain", "value"]].to_dict("index")
        best = {"stop": bool(found["stop"]), "best": str(found["best"].item())}
        show_json({"row": row, "probability": probabilities, **best, "cells": worth})
        return
    console = stdout()
    top = max(probabilities, key=probabilities.__getitem__)
    console.print(f"Row {row}: {top} with probability {probabilities[top]:.3f}.", markup=False)
    out = plain_table({"measure": 7}, gain=7, value=7)
    for name in open_["feature"].values[:n_shown]:
        one = open_.sel(feature=name)
        out.add_row(short(name), f"{float(one['gain']):.4f}", f"{float(one['value']):.4f}")
    console.print(out)
    text = "Stop: no measurement is expected to pay." if found["stop"] else ""
    console.print(text or f"Measure {found['best'].item()} next.", markup=False)


def _costs(given: list[str], clf: object) -> dict[str, float] | None:
    """{column: cost} of all columns."""
    names = clf.fitted_.column_names  # type: ignore[attr-defined]  # of any classifier
    parts = [text.rpartition("=") for text in given]
    try:
        named = {name: float(number) for name, _, number in parts}
    except ValueError:
        raise UserError(f"--cost takes NUMBER or COLUMN=NUMBER, got {' '.join(given)}") from None
    common = named.pop("", 0.0)
    return {**dict.fromkeys(names, common), **named}
