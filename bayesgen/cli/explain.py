"""``bayesgen explain``: why a model says what it says of a few rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesgen.cli.console import (
    AsJson,
    ModelFile,
    Most,
    Texts,
    UserError,
    blamed_on,
    busy,
    plain_table,
    short,
    show_caption,
    show_json,
    shown_columns,
    stdout,
)

if TYPE_CHECKING:
    import xarray as xr

_MOST_ROWS = 100
_REFUSALS = (ValueError, TypeError, NotImplementedError)


def explain(
    model: ModelFile,
    data: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Rows to explain: .csv, .tsv or .parquet.")
    ],
    row: Annotated[
        list[int] | None,
        typer.Option("--row", min=1, metavar="N", help="Which row, from 1; repeatable."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="A,B",
            help="Odds of A against B; default: the most probable class against the runner-up.",
        ),
    ] = None,
    prob: Annotated[
        float | None,
        typer.Option("--prob", min=0.01, max=0.999, metavar="P", help="Of the intervals."),
    ] = None,
    most: Most = None,
    text: Texts = None,
    as_json: AsJson = False,
) -> None:
    """Show what each column adds to the log-odds of two classes, row by row.

    Contributions and class weights add up to the log-odds, in nats: 0.7 doubles the odds. The
    interval is what the training rows leave open.

    Examples
    --------
    bayesgen explain penguins.nc new.csv --row 3
    bayesgen explain penguins.nc new.csv --row 1 --row 2 --classes Adelie,Gentoo
    bayesgen explain sms.nc inbox.csv --text message --row 1 --json
    """
    import numpy as np

    from bayesgen.cli import columns, files

    wanted = np.unique(row or [1])
    if len(wanted) > _MOST_ROWS:
        raise UserError(f"--row: at most {_MOST_ROWS} rows at a time, got {len(wanted)}")
    n_shown = shown_columns(most, as_json)
    table = files.open_table(data)
    clf = files.load_model(model)
    if len(clf.classes_) < 2:
        raise UserError(f"{model} knows one class: there are no odds to explain")
    X = columns.picked_rows(clf, table, wanted, text)
    with busy("explaining"), blamed_on(data, _REFUSALS, wanted):
        pairs = _pairs(clf, classes, X)
    found = []
    for k, pair in enumerate(pairs):
        with busy("explaining"), blamed_on(data, _REFUSALS, wanted[k:]):
            one = clf.explain(X[k : k + 1], classes=pair, prob=prob)
        found.append(one.isel(obs_id=0))
    if as_json:
        show_json([_record(f, int(i)) for f, i in zip(found, wanted, strict=True)])
        return
    for k, (one, i) in enumerate(zip(found, wanted, strict=True)):
        _show(one, X, int(i), k, n_shown)
    show_caption(stdout(), "In nats of log-odds; 0.7 doubles the odds.")


def _pairs(clf: Any, classes: str | None, X: Any) -> list[Any]:
    """The two labels of each row."""
    import numpy as np

    if classes is None:
        order = np.argsort(-clf.predict_proba(X), axis=1, kind="stable")[:, :2]
        return [tuple(clf.classes_[codes].tolist()) for codes in order]
    known = {str(label): label for label in clf.classes_.tolist()}
    names = [name.strip() for name in classes.split(",")]
    if len(names) != 2 or names[0] == names[1] or any(name not in known for name in names):
        raise UserError(f"--classes {classes}: name two of {', '.join(known)}, as in A,B")
    return [tuple(known[name] for name in names)] * len(X)


def _record(one: "xr.Dataset", row: int) -> dict[str, Any]:
    """What `--json` shows of a row."""
    entries = zip(
        map(str, one["feature"].values),
        one["mean"].values.tolist(),
        one["interval"].values.tolist(),
        strict=True,
    )
    features = [
        {"feature": name, "contribution": mean, "interval": ends} for name, mean, ends in entries
    ]
    return {
        "row": row,
        "label": str(one["label"].item()),
        "against": str(one["against"].item()),
        "log_odds": one["mean_log_odds"].item(),
        "class_weights": one["mean_intercept"].item(),
        "features": features,
    }


def _show(one: "xr.Dataset", X: Any, row: int, k: int, most: int) -> None:
    from rich.text import Text

    from bayesgen.reporting.parts import cell_text

    record = _record(one, row)
    is_table, _pooled = hasattr(X, "columns"), "interval" not in one
    head = f"row {record['row']}: {record['label']} rather than {record['against']}"
    prob = f"{100 * one.attrs['prob']:.3g} % interval"
    out = plain_table({head: 24} | ({"value": 5} if is_table else {}), adds=6, **{prob: 14})

    def line(name: str, adds: float, ends: Any = None, value: str = "", style: str = "") -> None:
        cells: list[Any] = [short(name), *([Text(value)] if is_table else []), f"{adds:+.2f}"]
        cells.append("" if ends is None else f"{ends[0]:+.2f} to {ends[1]:+.2f}")
        out.add_row(*cells, style=style)

    features = sorted(record["features"], key=lambda entry: -abs(entry["contribution"]))
    for entry in features[:most]:
        name = entry["feature"]
        value = cell_text(X[name].iloc[k], 20) if is_table and name in X.columns else ""
        line(name, entry["contribution"], entry["interval"], value)
    shown = sum(entry["contribution"] for entry in features[:most])
    rest = record["log_odds"] - record["class_weights"] - shown
    if len(features) > most or abs(rest) > 5e-3:
        line("all else", rest)
    together = ", columns together" if "rest" in one else ""  # of a pool
    line(f"class weights{together}", record["class_weights"])
    line("log-odds", record["log_odds"], style="bold")
    console = stdout()
    console.print(out)
    console.print()
