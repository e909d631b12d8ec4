"""``bayesgen report``: what a model is worth on held-out rows, as one page."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bayesgen.cli.console import (
    Costs,
    ModelFile,
    Reject,
    Target,
    Texts,
    blamed_on,
    reads_tables,
    show,
    tell,
)
from bayesgen.io.formats import Reading


@reads_tables
def report(
    model: ModelFile,
    held_out: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="Labelled rows it has not seen: .csv, .tsv or .parquet."
        ),
    ],
    target: Target,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The report: .html, .md or .json."),
    ],
    price: Costs = None,
    reject: Reject = None,
    text: Texts = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Heading of the page.")
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option("--max-rows", min=1, metavar="N", help="Rows looked at, drawn at random."),
    ] = None,
    *,
    reading: Reading,
) -> None:
    """Write what a model is worth on held-out rows as one page that can be passed on.

    A verdict in sentences, the full predictive against plug-in estimates, calibration, and the
    least certain rows with intervals and reasons; then confusions, what was fitted and typicality.
    The page has its pictures inside and fetches nothing.

    Examples
    --------
    bayesgen report penguins.nc held_out.csv --target species -o report.html
    bayesgen report credit.nc held_out.csv -t class -o report.html --cost bad,good=5 --reject 0.4
    bayesgen report sms.nc held_out.tsv -t label --text text -o report.md
    bayesgen report penguins.nc held_out.csv -t species -o figures.json
    """
    import pandas as pd

    from bayesgen.cli import columns, files
    from bayesgen.reporting.report import check_report
    from bayesgen.reporting.report import report as make

    with blamed_on("-o"):
        check_report(output)
    files.check_output(output, model, held_out)
    [(clf, rows)] = columns.models_with_rows([model], held_out, reading, target, text)
    options: dict[str, Any] = {"title": title, "max_rows": max_rows}
    if (costs := columns.costs(price, reject, clf.classes_)) is not None:
        options["cost"] = pd.DataFrame(costs.values, clf.classes_, costs.decisions)
    with blamed_on(errors=(ImportError,)):
        with blamed_on(held_out, rows=rows.numbers):
            clf.predict(rows.X)  # the page keeps its warnings to itself
            page = make(clf, rows.X, rows.labels, **options)
        with blamed_on(f"cannot write {output}", (OSError,)):
            page.save(output)
    for sentence in page.sections[0].text:
        tell(sentence)
    show(f"Written to {output}.")
