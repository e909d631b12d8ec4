"""``bayesgen fit --test``: some rows are held out, and scored by a model of the others."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesgen.cli import columns, compare, files
from bayesgen.cli.console import UserError, blamed_on, class_counts, show_scores, stdout

if TYPE_CHECKING:
    from bayesgen.cli.files import Table

_SEED = 0


def fit(
    table: "Table", target: str, names: list[str], how: tuple[Any, ...], share: float, output: Path
) -> None:
    """Fit to a part of the rows, save, and show the scores of the others.

    Parameters
    ----------
    how : model, kinds, documents, order, tokens, drop_incomplete of ``bayesgen fit``
    share : float
        Of the labelled rows that are held out.
    """
    import numpy as np

    from bayesgen.checks.compare import compare_predictives
    from bayesgen.cli.learning import note_doubtful
    from bayesgen.cli.models import decided_by_cells, save, untrained

    model, kinds, documents, order, tokens, drop_incomplete = how
    whole = files.read_whole(table, [target, *names])
    looked_at = [target, *decided_by_cells(names, model, kinds, documents)]
    note_doubtful(looked_at, whole, {name: whole.cells(name).holds() for name in looked_at})
    clf, X, _ = untrained(whole, table, names, model, kinds, documents, order, tokens)
    entries = {str(model): compare.entry_of(clf, X, whole, target, table)}
    if drop_incomplete:
        entries = compare._complete(entries)
    clf, X, labels, numbers = entries[str(model)]
    held_out = np.random.default_rng(_SEED).random(len(labels)) < share
    known = np.isin(labels, labels[~held_out])
    if not (held_out & known).any() or held_out.all():
        raise UserError(f"--test {share:g}: of {len(labels)} rows none would be left on one side")
    part = compare._Entry(clf, columns.take(X, ~held_out), labels[~held_out], numbers[~held_out])
    compare._learned({str(model): part}, {str(model)}, table.path)
    if documents:
        columns.name_columns(clf, names)
    save(clf, table, output)
    tested = held_out & known
    with blamed_on(table.path, rows=numbers[tested]):
        scores = compare_predictives(clf, columns.take(X, tested), labels[tested])
    if hasattr(clf, "members_"):  # a pool plugs no estimate in
        scores = scores.isel(predictive=[0])
    console = stdout()
    show_scores(console, [(f"{type(clf).__name__}, {int(tested.sum())} rows held out", scores)])
    counts = [int((part.labels == label).sum()) for label in clf.classes_]
    lines = [
        f"{type(clf).__name__} has learned from {class_counts(clf.classes_, counts)}; the others "
        f"were drawn at random (seed {_SEED}) and are not in the model.",
        f"Written to {output}.",
    ]
    if lost := int((held_out & ~known).sum()):
        lines.insert(0, f"{lost} rows were of classes that only they have: not scored.")
    console.print(*lines, sep="\n", markup=False, soft_wrap=True)
