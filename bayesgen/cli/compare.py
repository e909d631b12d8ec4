"""``bayesgen compare``: every label is scored by models that have not seen it."""

import functools
from collections.abc import Callable
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

_REFUSALS = (ValueError, TypeError, NotImplementedError)
_SCORES = {"accuracy": "accuracy", "log_loss": "log loss", "brier": "Brier", "ece": "ECE"}
_ABOVE = {
    "log_loss_above_best": "diff", "log_loss_above_best_se": "se",
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
    import numpy as np

    from bayesgen.checks.compare import compare_models, compare_predictives, fitted_models
    from bayesgen.cli.columns import models_with_rows

    names: list[str] = []
    for path in models:
        names.append(path.stem if path.stem not in names else str(path))
    fits = dict(zip(names, models_with_rows(models, data, reading, target, text), strict=True))
    classifiers = {name: clf for name, (clf, _) in fits.items()}
    with console.blamed_on():
        fitted_models(classifiers, "bayesgen compare")
    numbers = functools.reduce(np.intersect1d, (rows.numbers for _, rows in fits.values()))
    # without the rows that a model cannot take, such as those with a missing cell
    common = {name: rows.where(np.isin(rows.numbers, numbers)) for name, (_, rows) in fits.items()}
    tables, labels = {name: rows.X for name, rows in common.items()}, common[names[0]].labels
    left_out = _are_of_the_fits(classifiers, common)
    score: Callable[..., Any] = compare_models if left_out else compare_predictives
    busy = console.busy("leaving out" if left_out else "scoring")
    with busy, console.blamed_on(data, _REFUSALS, numbers):
        scores = score(classifiers, tables, labels)
    if left_out:
        console.show(str(scores))
    else:
        _show_held_out(scores, classifiers)


def _are_of_the_fits(classifiers: dict[str, Any], common: "dict[str, LabelledTable]") -> bool:
    """Return whether the models were fitted to these rows: any changed cell changes statistics."""
    from bayesgen.predict.leave_one_out import training_rows

    seen, others = [], []
    for name, rows in common.items():
        try:
            with console.numbered_warnings(rows.numbers):
                training_rows(classifiers[name].fitted_, rows.X, rows.labels)
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


def _show_held_out(scores: "xr.Dataset", classifiers: dict[str, Any]) -> None:
    """Print the scores of each model's predictives, and their differences to the best model."""
    from bayesgen.datatree.tree import result_table
    from bayesgen.posterior.fitted import is_pool

    several = len(classifiers) > 1
    heads = _SCORES | (_ABOVE if several else {})
    title = listed(f"{name}: {type(clf).__name__}" for name, clf in classifiers.items())
    title += f" on {count(scores.attrs['rows'], 'row')}"
    if several:
        title += (
            "; diff: log loss above the lowest of a posterior predictive, its standard error and "
            "median over rows; rows won: share of those on which it is negative"
        )
    if all(map(is_pool, classifiers.values())):  # which plug no estimate in
        scores = scores.isel(predictive=[0])
    else:
        title += "; posterior_mean, map and mle are plug-ins"
    table = scores.reset_coords(drop=True)[[*heads, "note"]].rename(heads)
    console.show(str(result_table(table, title, [*heads.values()])))
