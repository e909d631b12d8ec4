"""``bayesgen compare``: every label is scored by models that have not seen it."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesgen.cli import console
from bayesgen.cli.console import AsJson, Group, Target, Texts, UserError
from bayesgen.cli.models import Model
from bayesgen.encoding.literals import count, listed
from bayesgen.io.formats import Reading

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.checks.compare import Scored
    from bayesgen.cli.columns import LabelledTable
    from bayesgen.cli.files import Table

    type Entries = dict[str, tuple[Any, LabelledTable]]  # a model, and rows as it takes them

_REFUSALS = (ValueError, TypeError, NotImplementedError)


class Role(StrEnum):
    """What the rows are to the models."""

    TRAINING = "training"
    HELD_OUT = "held-out"


@console.reads_tables
def compare(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model that fit has written; none with --model."),
    ],
    held_out: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TABLE",
            help="Further models, and at the end labelled rows, .csv, .tsv or .parquet. Rows that "
            "the models were fitted to are each left out; all others are held-out rows.",
        ),
    ] = None,
    target: Target = ...,  # type: ignore[assignment] # required, behind an argument that is not
    text: Texts = None,
    named: Annotated[
        list[Model] | None,
        typer.Option(
            "--model", "-m", metavar="NAME", help="Fit this model to the table too; repeatable."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMN", help="Leave a column out of --model; repeatable."),
    ] = None,
    drop_incomplete: Annotated[
        bool,
        typer.Option(
            "--drop-incomplete",
            help="Leave out rows with a missing cell, as the models were fitted without them.",
        ),
    ] = False,
    rows: Annotated[
        Role | None,
        typer.Option(
            "--rows",
            metavar="WHICH",
            help="training or held-out; default: training if the models were fitted to these rows.",
        ),
    ] = None,
    group: Group = None,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Score models by the probabilities that they give to labels they have not seen.

    Rows that no model was fitted to: the posterior predictive and every plug-in estimate. Accuracy;
    log loss in nats, and Brier score, which reward honest probabilities; and the expected
    calibration error of the top probability (ECE). Of several models also the paired difference of
    the log loss to the best, with its standard error. Rows without a label are dropped.

    Rows that all models were fitted to: exact leave-one-out. Every label is scored by each model
    without its row, with no refit; elpd is the sum of log probabilities, with the paired difference
    to the best model. With --model NAME models are fitted here, with their defaults.

    Examples
    --------
    bayesgen compare penguins.nc held_out.csv --target species
    bayesgen compare sms.nc held_out.tsv --target label --text text
    bayesgen compare mixed.nc lda.nc penguins.csv --target species --drop-incomplete
    bayesgen compare iris.csv --target kind --model gaussian --model lda --model qda
    """
    from bayesgen.cli import columns, files

    *saved, data = [model, *(held_out or [])]
    if not saved and not named:
        raise UserError(
            f"Missing argument 'TABLE'. There is only {str(data)!r}: name a model file before the "
            "table, or models to fit by --model"
        )
    if drop and not named:
        raise UserError("--drop is for --model NAME: a model file says which columns it reads")
    for path in saved[:1]:
        reading = files.stored_reading(path, reading)
    table = files.open_table(data, reading)
    columns.find(target, table)
    if group is not None and not named:
        raise UserError("--group is for --model NAME: a model file says which column groups rows")
    entries = _of_files(saved, table, target, text)
    if group is None and table.reading.roles.get("group") in table.names:
        group = table.reading.roles["group"]  # as the first model's fit
    entries |= _of_names(named or [], table, target, drop or [], text, group)
    if drop_incomplete:
        entries = _complete(entries)
    if rows is None:
        rows = Role.TRAINING if named else _recognised(entries)
    if rows is Role.TRAINING:
        _fit({str(name): entries[str(name)] for name in named or []}, data)
        _leave_one_out(entries, data, as_json)
    elif named:
        raise UserError("--model fits models to the table: its rows cannot be held out")
    else:
        _held_out(entries, data, as_json)


# ----------------------------------------------------------------------------------------- models


def _of_files(paths: list[Path], table: "Table", target: str, text: str | None) -> "Entries":
    from bayesgen.cli import columns, files

    entries: Entries = {}
    for path in paths:
        clf = files.load_model(path)
        name = path.stem if path.stem not in entries else str(path)
        entries[name] = clf, columns.labelled_rows(clf, table, target, text)
    return entries


def _of_names(
    names: list[Model],
    table: "Table",
    target: str,
    drop: list[str],
    text: str | None,
    group: str | None,
) -> "Entries":
    """Return models that are not fitted yet, and their rows."""
    from bayesgen.cli.models import Plan, reads_texts

    entries: Entries = {}
    for model in names:
        if model is Model.AUTO:
            raise UserError(
                "--model auto is a pool of several models: name its members, the column pool has "
                "their exponents"
            )
        of_texts = reads_texts(model)
        dropped = drop if of_texts or text is None else [*drop, text]
        plan = Plan.of(table, target, model, dropped, [], text if of_texts else None, group=group)
        kinds, selection = plan.look()
        entries[str(model)] = plan.untrained(kinds), selection.read_whole(plan.advice)
    return entries


def _complete(entries: "Entries") -> "Entries":
    """Leave out the rows that have a missing cell in a column of any model."""
    import numpy as np

    tables = [rows.X for _, rows in entries.values() if hasattr(rows.X, "notna")]
    if not tables:
        return entries
    keep = np.all([X.notna().all(axis=1).to_numpy() for X in tables], axis=0)
    if not keep.any():
        raise UserError("every row has a missing cell: --drop-incomplete leaves none")
    if not keep.all():
        console.note(f"{count(int((~keep).sum()), 'row')} with missing cells dropped")
    return {name: (clf, rows.where(keep)) for name, (clf, rows) in entries.items()}


def _fit(entries: "Entries", data: Path) -> None:
    """Fit the models that were given by name."""
    from sklearn.utils import get_tags

    for name, (clf, rows) in sorted(entries.items()):
        gaps = hasattr(rows.X, "isna") and bool(rows.X.isna().any(axis=None))
        if gaps and not get_tags(clf).input_tags.allow_nan:
            raise UserError(
                f"--model {name} cannot learn from rows with missing cells: leave them out by "
                "--drop-incomplete"
            )
        with (
            console.busy(f"learning {name}"),
            console.blamed_on(f"{data}: --model {name}", rows=rows.numbers),
        ):
            rows.fit(clf)


def _recognised(entries: "Entries") -> Role:
    """Return what the rows are to saved models: any changed cell changes a fit's statistics."""
    from bayesgen.predict.leave_one_out import training_rows

    are_of_fit = {}
    for name, (clf, rows) in entries.items():
        try:
            with console.numbered_warnings(rows.numbers):
                training_rows(clf.fitted_, rows.X, rows.labels)
            are_of_fit[name] = True
        except _REFUSALS:  # what is wrong with the rows is said when they are scored
            are_of_fit[name] = False
    if all(are_of_fit.values()):
        return Role.TRAINING
    if seen := [name for name, fitted in are_of_fit.items() if fitted]:
        others = listed([name for name in are_of_fit if name not in seen])
        raise UserError(
            f"{listed(seen)} {'were' if len(seen) > 1 else 'was'} fitted to these rows, and "
            f"{others} to others: compare models "
            "on rows that none has seen, or fit all to these by --model"
        )
    console.note(
        "these are not all of the rows that the models were fitted to: taken as held-out, so none "
        "of them may have been seen"
    )
    return Role.HELD_OUT


# ----------------------------------------------------------------------------------------- scores


def _leave_one_out(entries: "Entries", data: Path, as_json: bool) -> None:
    from bayesgen.checks.compare_models import compare_models

    models = {name: clf for name, (clf, _) in entries.items()}
    tables = {name: rows.X for name, (_, rows) in entries.items()}
    _, first = next(iter(entries.values()))
    try:
        with console.busy("leaving out"), console.blamed_on(data, _REFUSALS, first.numbers):
            comparison = compare_models(models, tables, first.labels)
    except UserError as mistake:
        raise UserError(
            f"{mistake}; models are compared on the rows that they were fitted to, on others by "
            "--rows held-out"
        ) from mistake
    if as_json:
        table = console.records(comparison.table)
        console.show_json({"models": table, "notes": comparison.notes})
    else:
        console.show_comparison(console.stdout(), comparison)


def of_estimates(clf: Any, scores: "xr.Dataset") -> "xr.Dataset":
    """Return the scores of the estimates that there are: a pool plugs none in."""
    from bayesgen.posterior.fitted import is_pool

    return scores.isel(predictive=[0]) if is_pool(clf) else scores


def scores_of(clf: Any, rows: "LabelledTable") -> "Scored":
    """Return `compare_predictives` and its terms, with notes in terms of the command line."""
    from bayesgen.checks.compare import joints_of, scored
    from bayesgen.encoding.labels import codes_of

    joints = joints_of(clf.fitted_, rows.X)
    table, terms = scored(type(clf).__name__, joints, codes_of(rows.labels, clf.classes_))
    notes = [console.told(one) if isinstance(one, Exception) else "" for one in joints.values()]
    return table.assign(note=("predictive", notes)), terms


def _held_out(entries: "Entries", data: Path, as_json: bool) -> None:
    from bayesgen.checks.compare import side_by_side
    from bayesgen.posterior.fitted import fitted_models

    with console.blamed_on():
        fitted_models({name: clf for name, (clf, _) in entries.items()}, "bayesgen compare")
    scored, titles = {}, []
    for name, (clf, rows) in entries.items():
        with console.busy("scoring"), console.blamed_on(data, rows=rows.numbers):
            scored[name] = scores_of(clf, rows)
        title = f"{type(clf).__name__} on {count(len(rows.labels), 'row')}"
        titles.append(title if len(entries) == 1 else f"{name}: {title}")
    tables = {name: table for name, (table, _) in scored.items()}
    several = side_by_side(scored) if len(scored) > 1 else None
    if several is not None:
        table = several.drop_vars("estimator")
        tables = {name: table.sel(model=name, drop=True) for name in tables}
    if as_json:
        console.show_json({name: console.records(table) for name, table in tables.items()})
        return
    shown = [of_estimates(clf, tables[name]) for name, (clf, _) in entries.items()]
    console.show_scores(console.stdout(), list(zip(titles, shown, strict=True)))
    if several is not None:
        console.show_above_best(console.stdout(), several)
