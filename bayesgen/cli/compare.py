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

    from bayesgen.checks.compare import Scored
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
    from bayesgen.checks.compare import side_by_side

    scored = {}
    for name, (clf, rows) in entries.items():
        with console.busy("scoring"), console.blamed_on(data, rows=rows.numbers):
            scored[name] = scores_of(clf, rows)
        title = f"{type(clf).__name__} on {count(len(rows.labels), 'row')}"
        show_scores(title if len(entries) == 1 else f"{name}: {title}", clf, scored[name][0])
    if len(scored) > 1:
        _show_above_best(side_by_side(scored))


def scores_of(clf: Any, rows: "LabelledTable") -> "Scored":
    """Return `compare_predictives` and its terms, with why an estimate does not exist."""
    from bayesgen.checks.compare import joints_of, scored
    from bayesgen.encoding.labels import codes_of

    joints = joints_of(clf.fitted_, rows.X)
    table, terms = scored(type(clf).__name__, joints, codes_of(rows.labels, clf.classes_))
    notes = [getattr(joint, "cause", "") for joint in joints.values()]
    return table.assign(note=("predictive", notes)), terms


def show_scores(title: str, clf: Any, scores: "xr.Dataset") -> None:
    """Print scores of a model's predictives, and why one has no numbers, or infinite ones."""
    from bayesgen.posterior.fitted import is_pool

    scores = scores.isel(predictive=[0]) if is_pool(clf) else scores  # which plugs none in
    names = [console.method_name(method) for method in scores["predictive"].values.tolist()]
    frame = scores[[*_SCORES]].to_dataframe().rename(columns=_SCORES).set_axis(names)
    console.show_frame(title, frame)
    n_rows = count(scores.attrs["rows"], "row")
    notes = scores["note"].values.tolist()
    for name, note, loss, n in zip(
        names, notes, frame["log loss"], scores["impossible"].values, strict=True
    ):
        if n > 0:
            note = f"{n:.0f} of {n_rows} cannot occur under any class, counted as wrong"
        elif loss == float("inf"):
            note = "infinite log loss: some rows get probability 0 of being what they are"
        if note:
            console.show_caption(f"{name}: {note}")
    console.show("")


def _show_above_best(scores: "xr.Dataset") -> None:
    """Print the log loss of each model's predictive above the lowest."""
    exact = scores.sel(predictive="posterior_predictive").sortby("log_loss")
    frame = exact[[*_ABOVE]].to_dataframe()[[*_ABOVE]].rename(columns=_ABOVE)
    wins = (100 * frame["rows won"]).map("{:.0f} %".format)
    frame = frame.assign(**{"rows won": wins})
    console.show_frame("posterior predictive", frame, widths=(24, 6))
    console.show_caption(
        "diff: above the model with the lowest log loss, its mean, standard error and median over "
        "rows; rows won: those on which it is negative"
    )
