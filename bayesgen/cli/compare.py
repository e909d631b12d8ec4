"""``bayesgen compare``: every label is scored by models that have not seen it."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesgen.cli import console
from bayesgen.cli.console import AsJson, Target, Texts, UserError
from bayesgen.cli.models import Model
from bayesgen.encoding.literals import count, listed
from bayesgen.io.formats import Reading

if TYPE_CHECKING:
    from bayesgen.checks.compare import Scored
    from bayesgen.cli.columns import Labelled
    from bayesgen.cli.files import Table

    type Entries = dict[str, tuple[Any, Labelled]]  # a model, the labelled rows as it takes them

_REFUSALS = (ValueError, TypeError, NotImplementedError)


class Rows(StrEnum):
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
        Rows | None,
        typer.Option(
            "--rows",
            metavar="WHICH",
            help="training or held-out; default: training if the models were fitted to these rows.",
        ),
    ] = None,
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
    entries = _of_files(saved, table, target, text)
    entries |= _of_names(named or [], table, target, drop or [], text)
    if drop_incomplete:
        entries = _complete(entries)
    if rows is None:
        rows = Rows.TRAINING if named else _recognised(entries)
    if rows is Rows.TRAINING:
        _fit({str(name): entries[str(name)] for name in named or []}, data)
        _leave_one_out(entries, data, as_json)
    elif named:
        raise UserError("--model fits models to the table: its rows cannot be held out")
    else:
        _held_out(entries, data, as_json)


# ----------------------------------------------------------------------------------------- models


def _of_files(paths: list[Path], table: "Table", target: str, text: str | None) -> "Entries":
    from bayesgen.cli import columns, files

    out: Entries = {}
    for path in paths:
        clf = files.load_model(path)
        name = path.stem if path.stem not in out else str(path)
        out[name] = clf, columns.labelled_rows(clf, table, target, text)
    return out


def _of_names(
    names: list[Model], table: "Table", target: str, drop: list[str], text: str | None
) -> "Entries":
    """Models that are not fitted yet."""
    from bayesgen.cli.columns import with_labels
    from bayesgen.cli.files import read_whole
    from bayesgen.cli.models import Plan, reads_texts

    out: Entries = {}
    for model in names:
        if model is Model.AUTO:
            raise UserError(
                "--model auto is a pool of several models: name its members, the column pool has "
                "their exponents"
            )
        own = drop if reads_texts(model) or text is None else [*drop, text]
        plan = Plan.of(table, target, model, own, [], text if reads_texts(model) else None)
        look = plan.look()
        types = {**look.columns.types, target: look.label_type}
        rows = with_labels(look.columns, read_whole(table, types, plan.advice), target, table)
        out[str(model)] = plan.untrained(look.kinds), rows
    return out


def _complete(entries: "Entries") -> "Entries":
    """Without the rows that have a missing cell in a column of any model."""
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
            clf.fit(rows.X, rows.labels)


def _recognised(entries: "Entries") -> Rows:
    """What the rows are to saved models: a change of any cell changes a fit's statistics."""
    from bayesgen.predict.leave_one_out import training_rows

    known = {}
    for name, (clf, rows) in entries.items():
        try:
            training_rows(clf.fitted_, rows.X, rows.labels)
            known[name] = True
        except _REFUSALS:  # what is wrong with the rows is said when they are scored
            known[name] = False
    if all(known.values()):
        return Rows.TRAINING
    if seen := [name for name, fitted in known.items() if fitted]:
        raise UserError(
            f"{listed(seen)} {'were' if len(seen) > 1 else 'was'} fitted to these rows, and "
            f"{listed([name for name in known if name not in seen])} to others: compare models "
            "on rows that none has seen, or fit all to these by --model"
        )
    console.note(
        "these are not all of the rows that the models were fitted to: taken as held-out, so none "
        "of them may have been seen"
    )
    return Rows.HELD_OUT


# ----------------------------------------------------------------------------------------- scores


def _leave_one_out(entries: "Entries", data: Path, as_json: bool) -> None:
    from bayesgen.checks.compare_models import compare_models

    models = {name: clf for name, (clf, _) in entries.items()}
    tables = {name: rows.X for name, (_, rows) in entries.items()}
    _, first = next(iter(entries.values()))
    try:
        with console.busy("leaving out"), console.blamed_on(data, _REFUSALS, first.numbers):
            found = compare_models(models, tables, first.labels)
    except UserError as mistake:
        raise UserError(
            f"{mistake}; models are compared on the rows that they were fitted to, on others by "
            "--rows held-out"
        ) from mistake
    if as_json:
        console.show_json({"models": console.records(found.table), "notes": found.notes})
    else:
        console.show_comparison(console.stdout(), found)


def scores_of(clf: Any, rows: "Labelled") -> "Scored":
    """`compare_predictives` and its terms, with notes in the terms of the command line."""
    from bayesgen.checks.compare import joints_of, scored
    from bayesgen.encoding.labels import codes_of

    joints = joints_of(clf.fitted_, rows.X)
    table, terms = scored(type(clf).__name__, joints, codes_of(rows.labels, clf.classes_))
    notes = [console.told(one) if isinstance(one, Exception) else "" for one in joints.values()]
    return table.assign(note=("predictive", notes)), terms


def _held_out(entries: "Entries", data: Path, as_json: bool) -> None:
    from bayesgen.checks.compare import side_by_side
    from bayesgen.posterior.fitted import fitted_models

    found, titles = {}, []
    with console.blamed_on():
        fitted_models({name: clf for name, (clf, _) in entries.items()}, "bayesgen compare")
    for name, (clf, rows) in entries.items():
        with console.busy("scoring"), console.blamed_on(data, rows=rows.numbers):
            found[name] = scores_of(clf, rows)
        title = f"{type(clf).__name__} on {count(len(rows.labels), 'row')}"
        titles.append(title if len(entries) == 1 else f"{name}: {title}")
    scores = {name: table for name, (table, _) in found.items()}
    if len(found) > 1:
        several = side_by_side(found)
        scores = {name: several.sel(model=name).drop_vars(["model", "estimator"]) for name in found}
    if as_json:
        console.show_json({name: console.records(table) for name, table in scores.items()})
        return
    console.show_scores(console.stdout(), list(zip(titles, scores.values(), strict=True)))
    if len(found) > 1:
        console.show_above_best(console.stdout(), several)
