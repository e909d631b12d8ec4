"""``bayesgen predict``: class probabilities for the rows of a file, chunk by chunk."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesgen.cli.console import (
    Costs,
    ModelFile,
    Reject,
    Texts,
    UserError,
    blamed_on,
    class_counts,
    reads_tables,
    show,
)
from bayesgen.errors import Facts
from bayesgen.io.formats import Reading, file_format

if TYPE_CHECKING:
    import pyarrow

    from bayesgen.cli.files import Table
    from bayesgen.encoding.reader import Rows
    from bayesgen.numerics.special import Array

_LABEL, _DECISION = "prediction", "decision"
_REFUSALS = (ValueError, TypeError, OSError, NotImplementedError)
# what is read and given to the model at once: the last bits of a product of matrices depend on it
_BLOCK_ROWS, _BLOCK_CELLS = 8192, 4_000_000
_SLOW_ROWS = 256  # where a row takes milliseconds: the bar moves, and n-grams are columns


@reads_tables
def predict(
    model: ModelFile,
    new: Annotated[
        Path,
        typer.Argument(metavar="NEW", help="Rows to classify: CSV or Parquet."),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Result: .csv or .parquet."),
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="Copy a column to the result; repeatable."),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            min=0.01,
            max=0.999,
            metavar="P",
            help="Add credible intervals of this probability: columns low_LABEL and high_LABEL.",
        ),
    ] = None,
    reasons: Annotated[
        int,
        typer.Option(
            "--explain",
            min=0,
            metavar="N",
            help="Add the N columns that say most: reason_1, reason_2 and so on.",
        ),
    ] = 0,
    price: Costs = None,
    reject: Reject = None,
    text: Texts = None,
    *,
    reading: Reading,
) -> None:
    """Classify the rows of a table with a saved model.

    Writes a row for every row, in the same order: the most probable label in the column
    "prediction" and the probability of every class in columns "p_LABEL", by the exact posterior
    predictive. With --cost or --reject the column "decision" has the label of lowest expected cost,
    or "reject". With --explain the columns "reason_1", "reason_2" and so on have a text like
    "bill_length_mm: +1.8": the column's evidence for the prediction against the runner-up, in nats.

    The file is read in parts, so it may be larger than memory. Columns that the model does not know
    are left out; the result is written whole or not at all. Labels and kept columns stand in it as
    they are: a spreadsheet takes text that begins with =, +, - or @ for a formula.

    Examples
    --------
    bayesgen predict penguins.nc new.csv -o out.csv
    bayesgen predict penguins.nc new.parquet -o out.parquet --keep id
    bayesgen predict penguins.nc new.csv -o out.csv --interval 0.9
    bayesgen predict penguins.nc new.csv -o out.csv --explain 3
    bayesgen predict credit.nc new.csv -o out.csv --cost bad,good=5 --reject 0.4
    bayesgen predict sms.nc inbox.csv -o out.csv --text message
    """
    import numpy as np
    import pandas as pd

    from bayesgen.cli import columns, files

    file_format(output)
    files.check_output(output, model, new)
    table = files.open_table(new, files.stored_reading(model, reading))
    clf = files.load_model(model)
    kept = list(dict.fromkeys(columns.find(name, table) for name in keep or []))
    selection = columns.columns_of(clf, table, text, kept)
    costs, labels = columns.costs(price, reject, clf.classes_), {_LABEL: clf.classes_}
    if costs is not None:
        mixed = costs.decisions.dtype == object  # numbers and "reject"
        labels[_DECISION] = costs.decisions.astype(str) if mixed else costs.decisions
    names = [*kept, *labels, *(f"p_{label}" for label in clf.classes_.tolist())]
    fitted = clf.fitted_
    if interval is not None:
        if fitted.posterior.draws_need_rows and fitted.training.rows is None:
            raise UserError(
                "--interval: intervals of this model need its training rows, and the file holds "
                "none (it holds at most 64 MiB of them): fit the model to a sample of the rows"
            )
        names += [f"{end}_{label}" for label in clf.classes_.tolist() for end in ("low", "high")]
    names += [f"reason_{k + 1}" for k in range(reasons)]
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise UserError(f"--keep {min(twice)}: the result has a column of that name")
    counts = np.zeros(len(clf.classes_), dtype=int)
    block = max(1, min(_BLOCK_ROWS, _BLOCK_CELLS // len(selection.types)))
    if reasons or interval is not None:
        block = min(block, _SLOW_ROWS)
    with files.open_writer(
        output, names, lambda: _schema(table, kept, labels, names, reasons)
    ) as write:
        for rows in files.rows_of(table, selection.types, "predicting", block, kept):
            X = selection.select(rows.frame)
            with blamed_on(new, _REFUSALS, rows.frame.index, _advice):
                X = clf.fitted_.read(X)  # once: of unknown categories it warns once
                p = clf.predict_proba(X)
                codes = p.argmax(axis=1)
                cells = [clf.classes_[codes]]
                if costs is not None:
                    cells.append(labels[_DECISION][costs.expected(p).argmin(axis=1)])
                cells += [*p.T]
                if interval is not None:
                    ends = clf.predict_interval(X, prob=interval)["interval"].values
                    cells += list(ends.reshape(len(codes), -1).T)
                if reasons:
                    cells += list(_reasons(clf, X, codes, reasons))
            cells = [*(rows.copied[name].array for name in kept), *cells]
            write(pd.DataFrame(dict(zip(names, cells, strict=True))))
            counts += np.bincount(codes, minlength=len(counts))
    show(f"Predicted {class_counts(clf.classes_, counts)}. Written to {output}.")


def _advice(mistake: Facts) -> str | None:
    """Say what to do about a row without an interval."""
    from bayesgen.families.errors import IncompleteRowError

    return "fill the cell" if isinstance(mistake, IncompleteRowError) else None


def _reasons(clf, X: "Rows", codes: "Array", n: int) -> "Array":
    """Return (n, N) texts: the columns with most evidence for the prediction, or against it.

    A contribution that rounds to 0 has no text.
    """
    import numpy as np

    table = clf.explain(X)
    names = table["feature"].values
    sign = np.where(table["label"].values == clf.classes_[codes], 1.0, -1.0)
    terms = sign[:, None] * table["predictive"].values
    texts = np.full((n, len(codes)), "", dtype=object)
    for i, row in enumerate(terms):
        largest = np.argsort(-np.abs(row), kind="stable")[:n]
        for k, j in enumerate(largest[row[largest].round(1) != 0]):
            texts[k, i] = f"{names[j]}: {row[j]:+.1f}"
    return texts


def _schema(
    table: "Table", kept: list[str], labels: "dict[str, Array]", names: list[str], reasons: int
) -> "pyarrow.Schema":
    """Return the arrow schema of the result."""
    import pyarrow

    copied = [table.schema.field(name).type if table.schema else pyarrow.string() for name in kept]
    copied = [t.value_type if pyarrow.types.is_dictionary(t) else t for t in copied]
    types = [*copied, *(pyarrow.array(each.tolist()).type for each in labels.values())]
    types += [pyarrow.float64()] * (len(names) - len(types) - reasons)
    types += [pyarrow.string()] * reasons
    return pyarrow.schema(list(zip(names, types, strict=True)))
