"""``bayesgen compare``: predictives on held-out rows, models by exact leave-one-out."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bayesgen.cli.console import (
    AsJson,
    Target,
    Texts,
    UserError,
    blamed_on,
    busy,
    count,
    note,
    records,
    show_comparison,
    show_json,
    show_scores,
    stdout,
)
from bayesgen.cli.models import Model

if TYPE_CHECKING:
    from bayesgen.cli.files import Table
    from bayesgen.io.tabular import Rows as FileRows
    from bayesgen.numerics.special import Array


_REFUSALS = (ValueError, TypeError, NotImplementedError)


class Rows(StrEnum):
    """What the rows are to the models."""

    TRAINING = "training"
    HELD_OUT = "held-out"


class _Entry(NamedTuple):
    """A fitted model, and the labelled rows as it takes them."""

    clf: Any
    X: Any
    labels: "Array"
    numbers: "Array"  # of the rows in the file


def compare(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model that fit has written; none with --model."),
    ],
    held_out: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TABLE",
            help="Further models, and at the end labelled rows, .csv, .tsv or .parquet: of one "
            "model rows that it has not seen, of several the rows that they were fitted to.",
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
            help="training or held-out; default: held-out for one model, training for several.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score models by the probabilities that they give to labels they have not seen.

    One model on held-out rows: the posterior predictive and every plug-in estimate. Accuracy; log
    loss in nats, and Brier score, which reward honest probabilities; and the expected calibration
    error of the top probability (ECE). Rows without a label are dropped.

    Several models on the rows that they were fitted to: exact leave-one-out. Every label is scored
    by each model without its row, with no refit; elpd is the sum of log probabilities, with the
    paired difference to the best model. With --model NAME models are fitted here, with their
    defaults.

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
    table = files.open_table(data)
    columns.find(target, table)
    entries = _of_files(saved, table, target, text) | _of_names(
        named or [], table, target, drop or [], text
    )
    if drop_incomplete:
        entries = _complete(entries)
    training = rows is Rows.TRAINING or (rows is None and (len(entries) > 1 or bool(named)))
    if training:
        entries = _learned(entries, {str(name) for name in named or []}, data)
        _leave_one_out(entries, data, as_json)
    elif named:
        raise UserError("--model fits models to the table: its rows cannot be held out")
    else:
        _held_out(entries, data, as_json)


# ----------------------------------------------------------------------------------------- models


def _of_files(
    paths: list[Path], table: "Table", target: str, text: str | None
) -> dict[str, _Entry]:
    from bayesgen.cli import columns, files

    out = {}
    for path in paths:
        clf = files.load_model(path)
        *rows, reader = columns.labelled_rows(clf, table, target, text)
        reader.report_unseen()
        name = path.stem if path.stem not in out else str(path)
        out[name] = _Entry(clf, *rows)
    return out


def _of_names(
    names: list[Model], table: "Table", target: str, drop: list[str], text: str | None
) -> dict[str, _Entry]:
    """Models that are not fitted yet."""
    from bayesgen.cli import files
    from bayesgen.cli.models import choose_columns, reads_texts, untrained

    out = {}
    for model in names:
        if model is Model.AUTO:
            raise UserError(
                "--model auto is a pool of several models: name its members, the column pool has "
                "their exponents"
            )
        documents = reads_texts(model)
        used = choose_columns(table, target, drop, documents, text if documents else None)
        if not documents and text in used:
            used.remove(str(text))
        whole = files.read_whole(table, [target, *used])
        clf, X, _ = untrained(whole, table, used, model, {}, documents)
        out[str(model)] = entry_of(clf, X, whole, target, table)
    return out


def entry_of(clf: Any, X: Any, whole: "FileRows", target: str, table: "Table") -> _Entry:
    """A classifier with those rows of a whole file that have a label."""
    import numpy as np

    from bayesgen.cli import columns

    labelled, labels = columns.labels(whole.cells(target), table)
    return _Entry(clf, columns.take(X, labelled), labels, whole.first + np.flatnonzero(labelled))


def _complete(entries: dict[str, _Entry]) -> dict[str, _Entry]:
    """Without the rows that have a missing cell in a column of any model."""
    import numpy as np

    from bayesgen.cli.columns import take

    keep = np.ones(len(next(iter(entries.values())).labels), dtype=bool)
    for entry in entries.values():
        if hasattr(entry.X, "notna"):
            keep &= entry.X.notna().all(axis=1).to_numpy()
    if not keep.any():
        raise UserError("every row has a missing cell: --drop-incomplete leaves none")
    if not keep.all():
        note(f"{count(int((~keep).sum()), 'row')} with missing cells dropped")
    return {
        name: _Entry(clf, take(X, keep), labels[keep], numbers[keep])
        for name, (clf, X, labels, numbers) in entries.items()
    }


def _learned(entries: dict[str, _Entry], named: set[str], data: Path) -> dict[str, _Entry]:
    """With the models fitted that were given by name."""
    from sklearn.utils import get_tags

    for name in sorted(named):
        clf, X, labels, numbers = entries[name]
        gaps = hasattr(X, "isna") and bool(X.isna().any(axis=None))
        if gaps and not get_tags(clf).input_tags.allow_nan:
            raise UserError(
                f"--model {name} cannot learn from rows with missing cells: leave them out by "
                "--drop-incomplete"
            )
        with busy(f"learning {name}"), blamed_on(f"{data}: --model {name}", rows=numbers):
            clf.fit(X, labels)
    return entries


# ----------------------------------------------------------------------------------------- scores


def _leave_one_out(entries: dict[str, _Entry], data: Path, as_json: bool) -> None:
    from bayesgen.checks.compare_models import compare_models

    models = {name: entry.clf for name, entry in entries.items()}
    first = next(iter(entries.values()))
    try:
        with busy("leaving out"), blamed_on(data, _REFUSALS, first.numbers):
            found = compare_models(
                models, {k: entry.X for k, entry in entries.items()}, first.labels
            )
    except UserError as mistake:
        raise UserError(
            f"{mistake}; models are compared on the rows that they were fitted to, on others by "
            "--rows held-out"
        ) from mistake
    if as_json:
        show_json({"models": records(found.table), "notes": found.notes})
    else:
        show_comparison(stdout(), found)


def _held_out(entries: dict[str, _Entry], data: Path, as_json: bool = False) -> None:
    from bayesgen.checks.compare import compare_predictives

    parts = []
    for name, (clf, X, labels, numbers) in entries.items():
        with busy("scoring"), blamed_on(data, rows=numbers):
            scores = compare_predictives(clf, X, labels)
        title = f"{type(clf).__name__} on {count(len(labels), 'row')}"
        parts.append((title if len(entries) == 1 else f"{name}: {title}", scores))
    if as_json:
        names = list(entries)
        show_json({k: records(scores) for k, (_, scores) in zip(names, parts, strict=True)})
    else:
        show_scores(stdout(), parts)
