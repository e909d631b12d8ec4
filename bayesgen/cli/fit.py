"""``bayesgen fit``: learn a classifier from a table and save it."""

from pathlib import Path
from typing import Annotated

import typer

from bayesgen.cli.console import (
    Group,
    Target,
    Texts,
    blamed_on,
    reads_tables,
    show,
)
from bayesgen.cli.models import Model, Plan
from bayesgen.encoding.literals import listed, one_line
from bayesgen.io.formats import Reading


@reads_tables
def fit(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="Table with labels: CSV or Parquet."),
    ],
    target: Target,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes (netCDF).")
    ],
    model: Annotated[
        Model | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help=f"{', '.join(Model)}. Default: auto, with --kind mixed.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMN", help="Leave a column out; repeatable."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="COLUMN=KIND",
            help="Read a column of mixed or forest as gaussian, categorical or bernoulli, of mixed "
            "also as poisson, multinomial or lognormal (positive, skewed); repeatable.",
        ),
    ] = None,
    drop_incomplete: Annotated[
        bool,
        typer.Option(
            "--drop-incomplete",
            help="Leave out rows with a missing cell; lda, qda and multinomial ask for it.",
        ),
    ] = False,
    text: Texts = None,
    fold_labels: Annotated[
        bool,
        typer.Option("--fold-labels", help="Labels that differ by case or blanks are one class."),
    ] = False,
    group: Group = None,
    *,
    reading: Reading,
) -> None:
    """Learn a classifier from a table and save it.

    auto pools several models of the same columns, with exponents from exact leave-one-out: it has
    the best probabilities on most tables. The other models can be read. A mixed model takes numbers
    for gaussian, text for categorical, true and false for bernoulli columns, unless --kind says
    otherwise; so does forest, which cuts numbers into bins and lets columns depend on each other.
    In the others all columns are alike. An empty cell, NA, NaN, null or None is missing and is left
    out exactly. Rows without a label are dropped.

    A file above 32 MiB is read in parts, so it may be larger than memory (but not for forest); its
    model has the stated prior. From a smaller file, leave-one-out chooses the strength of the
    prior. A first look at all rows decides what the columns hold. auto learns from a uniform sample
    of at most 200000 rows.

    With --group the rows of one subject, site or source are left out together wherever a row is
    scored without itself: the strength of the prior, the exponents of auto, and the log loss that
    is printed. The column is not a feature; the file is read at once.

    Examples
    --------
    bayesgen fit penguins.csv --target species -o penguins.nc
    bayesgen fit penguins.csv --target species --drop year -o penguins.nc
    bayesgen fit visits.parquet --target ill --kind visits=poisson -o ill.nc
    bayesgen fit penguins.csv --target species --model mixed -o mixed.nc
    bayesgen fit iris.csv --target kind --model lda -o iris.nc
    bayesgen fit sms.tsv --target label --model markov --text text -o sms.nc
    """
    from bayesgen.cli import columns, files, learning
    from bayesgen.encoding.tables import KeptRows
    from bayesgen.estimators.summary import summary

    files.check_output(output, data)
    table = files.open_table(data, reading)
    columns.find(target, table)
    model = model or (Model.MIXED if kind else Model.AUTO)
    plan = Plan.of(
        table, target, model, drop or [], kind or [], text, group,
        drop_incomplete=drop_incomplete, fold_labels=fold_labels,
    )  # fmt: skip
    clf, kinds, scored = learning.learn(plan)
    _save(clf, plan, output)
    kinds |= dict.fromkeys(getattr(clf, "text_columns_", ()), "text")
    for how in dict.fromkeys(kinds.values()):
        show(f"{how}: {listed((one_line(name) for name in kinds if kinds[name] == how), 20)}")
    told = clf.summary() if scored is None else summary(clf.fitted_, KeptRows(*scored.parts))
    show("", str(told), f"Written to {output}.")


def _save(clf, plan: Plan, output: Path) -> None:
    """Write the model, unless the table holds what no model file can."""
    from bayesgen.cli.files import save_model

    roles = {"text": plan.names[0]} if plan.documents else {}
    roles |= {} if plan.group is None else {"group": plan.group}
    with blamed_on(plan.table.path), blamed_on(f"cannot write {output}", (OSError,)):
        save_model(clf, output, plan.table, plan.target, roles)
