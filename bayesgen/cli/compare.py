"""``bayesgen compare``: every label is scored by models that have not seen it."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesgen.cli import console
from bayesgen.cli.console import Target, Texts, UserError
from bayesgen.encoding.literals import count, listed
from bayesgen.io.formats import Reading

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.cli.columns import LabelledTable

    type Entries = dict[str, tuple[Any, LabelledTable]]  # a model, and rows as it takes them

_REFUSALS = (ValueError, TypeError, NotImplementedError)
_SCORES = {"accuracy": "accuracy", "log_loss": "log loss", "brier": "Brier", "ece": "ECE"}
_ABOVE = {
    "log_loss": "log loss", "log_loss_above_best": "diff", "log_loss_above_best_se": "se",
    "log_loss_above_best_median": "median", "log_loss_above_best_wins": "rows won",
}  # fmt: skip


@console.reads_tables
def compare(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL", help="Models that fit has written.")
    ],
    data: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="Labelled rows, .csv, .tsv or .parquet. Rows that the models were fitted to are "
            "each left out; all others are held-out rows.",
        ),
    ],
    target: Target,
    text: Texts = None,
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
    to the best model.

    Examples
    --------
    bayesgen compare penguins.nc held_out.csv --target species
    bayesgen compare sms.nc held_out.tsv --target label --text text
    bayesgen compare mixed.nc lda.nc penguins.csv --target species
    """
    from bayesgen.cli import columns, files
    from bayesgen.posterior.fitted import fitted_models

    table = files.open_table(data, files.stored_reading(models[0], reading))
    columns.find(target, table)
    entries: Entries = {}
    for path in models:
        clf = files.load_model(path)
        name = path.stem if path.stem not in entries else str(path)
        entries[name] = clf, columns.labelled_rows(clf, table, target, text)
    with console.blamed_on():
        fitted_models({name: clf for name, (clf, _) in entries.items()}, "bayesgen compare")
    entries = _common_rows(entries)
    (_leave_one_out if _are_of_the_fits(entries) else _held_out)(entries, data)


def _common_rows(entries: "Entries") -> "Entries":
    """Leave out the rows that a model cannot take, such as those with a missing cell."""
    import numpy as np

    numbers = functools.reduce(np.intersect1d, (rows.numbers for _, rows in entries.values()))
    return {
        name: (clf, rows.where(np.isin(rows.numbers, numbers)))
        for name, (clf, rows) in entries.items()
    }


def _are_of_the_fits(entries: "Entries") -> bool:
    """Return whether the models were fitted to these rows: any changed cell changes statistics."""
    from bayesgen.predict.leave_one_out import training_rows

    seen, others = [], []
    for name, (clf, rows) in entries.items():
        try:
            with console.numbered_warnings(rows.numbers):
                training_rows(clf.fitted_, rows.X, rows.labels)
            seen.append(name)
        except _REFUSALS:  # what is wrong with the rows is said when they are scored
            others.append(name)
    if seen and others:
        raise UserError(
            f"{listed(seen)} {'were' if len(seen) > 1 else 'was'} fitted to these rows, and "
            f"{listed(others)} to others: compare models on rows that none has seen, or fit all "
            "to these"
        )
    if others:
        console.note(
            "these are not all of the rows that the models were fitted to: taken as held-out, so "
            "none of them may have been seen"
        )
    return not others


def _leave_one_out(entries: "Entries", data: Path) -> None:
    """Print the table of `compare_models`."""
    from bayesgen.checks.compare_models import compare_models

    models = {name: clf for name, (clf, _) in entries.items()}
    tables = {name: rows.X for name, (_, rows) in entries.items()}
    _, first = next(iter(entries.values()))
    with console.busy("leaving out"), console.blamed_on(data, _REFUSALS, first.numbers):
        console.show(str(compare_models(models, tables, first.labels)))


def _held_out(entries: "Entries", data: Path) -> None:
    """Print the scores of each model's predictives, and the differences between models."""
    from bayesgen.checks.compare import compare_predictives
    from bayesgen.posterior.fitted import is_pool

    models = {name: clf for name, (clf, _) in entries.items()}
    tables = {name: rows.X for name, (_, rows) in entries.items()}
    _, first = next(iter(entries.values()))
    with console.busy("scoring"), console.blamed_on(data, rows=first.numbers):
        scores = compare_predictives(models, tables, first.labels)
    methods = [console.method_name(method) for method in scores["predictive"].values.tolist()]
    each = scores.assign_coords(predictive=methods)
    for name, clf in models.items():
        title = f"{name}: {type(clf).__name__} on {count(len(first.labels), 'row')}"
        shown = [0] if is_pool(clf) else slice(None)  # a pool plugs no estimate in
        _show(title, each.sel(model=name).isel(predictive=shown), _SCORES)
    if len(models) > 1:
        title = (
            "Posterior predictive; diff: log loss above the model with the lowest, its standard "
            "error and median over rows; rows won: share of those on which it is negative"
        )
        exact = scores.isel(predictive=0).drop_vars("note").sortby("log_loss")
        _show(title, exact, _ABOVE)


def _show(title: str, scores: "xr.Dataset", heads: dict[str, str]) -> None:
    """Print some of the scores under other heads."""
    from bayesgen.datatree.tree import result_table

    table = scores.reset_coords(drop=True)[[*heads, *{"note"} & scores.keys()]].rename(heads)
    console.show(str(result_table(table, title, [*heads.values()])), "")
