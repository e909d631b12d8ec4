"""``bayesgen validate``: the closed form against NUTS."""

from pathlib import Path
from typing import Annotated

import typer

from bayesgen.cli.console import ModelFile, Target, Texts, blamed_on, reads_tables, show
from bayesgen.io.formats import Reading


@reads_tables
def validate(
    model: ModelFile,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Labelled rows: .csv, .tsv or .parquet.")
    ],
    target: Target,
    text: Texts = None,
    draws: Annotated[
        int, typer.Option("--draws", min=100, metavar="N", help="Draws of each of 4 chains.")
    ] = 1000,
    *,
    reading: Reading,
) -> None:
    """Fit the model's kind anew to the rows, exactly and by NUTS, and compare the two.

    Every parameter, the densities of some rows and their class probabilities are compared; the
    verdict has a stated rate of false alarms. Exit code 1 unless they agree. Compiling the model
    takes up to a minute. Of a pool each member is compared that has a model in PyMC.

    Examples
    --------
    bayesgen validate penguins.nc penguins.csv --target species
    bayesgen validate sms.nc sms.tsv --target label --text text --draws 2000
    """
    from bayesgen.checks.validate import validate as compare
    from bayesgen.cli.columns import models_with_rows

    [(clf, rows)] = models_with_rows([model], data, reading, target, text)
    with blamed_on(data, rows=rows.numbers):
        results = compare(clf, rows.X, rows.labels, draws=draws)
    members = results if isinstance(results, dict) else {"": results}
    for name, result in members.items():
        show(*[f"Member {name!r}:"] * bool(name), str(result), "")
    if not members or not all(result.passed for result in members.values()):
        raise typer.Exit(1)
