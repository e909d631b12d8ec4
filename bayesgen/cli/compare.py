"""``bayesgen compare``: full predictive against plug-ins on held-out rows."""

from pathlib import Path
from typing import Annotated

import typer

from bayesgen.cli.console import blamed_on, busy, count, show_scores, stdout, with_examples


def register(app: typer.Typer) -> None:
    """Add the command."""
    text = with_examples(
        compare,
        "bayesgen compare penguins.nc held_out.csv --target species",
        "bayesgen compare sms.nc held_out.tsv --target label --text text",
    )
    app.command("compare", help=text)(compare)


def compare(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that fit has written.")],
    held_out: Annotated[
        Path,
        typer.Argument(
            metavar="HELDOUT",
            help="Labelled rows that the model has not seen: .csv, .tsv or .parquet.",
        ),
    ],
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="COLUMN", help="Column with the labels.")
    ],
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="COLUMN", help="Column with the texts (language models)."),
    ] = None,
) -> None:
    """Score the posterior predictive and every plug-in estimate on the same held-out rows.

    Accuracy; log loss in nats, and Brier score, which reward honest probabilities; and the expected
    calibration error of the top probability (ECE). Rows without a label are dropped.
    """
    from bayesgen.checks.compare import compare_predictives
    from bayesgen.cli import columns, files

    table = files.open_table(held_out)
    columns.find(target, table)
    clf = files.load_model(model)
    X, labels, reader = columns.labelled_rows(clf, table, target, text)
    with busy("scoring"), blamed_on(held_out):
        scores = compare_predictives(clf, X, labels)
    reader.report_unseen()
    title = f"{type(clf).__name__} on {count(len(labels), 'row')}"
    show_scores(stdout(), [(title, scores)])
