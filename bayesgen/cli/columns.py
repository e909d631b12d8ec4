"""Which columns of a file a model reads, and as which types; the rows that are used."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bayesgen.cli.console import UserError, blamed_on, note
from bayesgen.cli.files import load_model, open_table, read_whole, stored_reading
from bayesgen.encoding.literals import (
    count,
    did_you_mean,
    listed,
    near_name,
    parse_number,
    shown,
)
from bayesgen.io import tabular
from bayesgen.io.formats import Reading
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd

    from bayesgen.cli.console import Advice
    from bayesgen.cli.files import Table
    from bayesgen.predict.costs import Costs


class FileColumns(NamedTuple):
    """The columns of X.

    Parameters
    ----------
    types : {column: type}
        As `bayesgen.io.tabular` reads them; None of a column of documents.
    names : list of str
        All columns of the model; one that it does not use need not be in the file.
    named : bool
        Whether the model knows its columns by name.
    """

    types: dict[str, str | None]
    names: list[str]
    named: bool = True

    def select(self, frame: "pd.DataFrame"):
        """Return X: a data frame, or a series of documents; its index is that of `frame`."""
        if None in self.types.values():
            return frame[next(iter(self.types))].astype(object)
        X = frame.reindex(columns=self.names)
        return X if self.named else X.set_axis(range(X.shape[1]), axis=1)


def columns_of(
    clf, table: "Table", text: str | None = None, ignored: Iterable[str | None] = ()
) -> FileColumns:
    """Match a file with a fitted model; columns that the model does not know are left out.

    Parameters
    ----------
    clf : fitted classifier
    table : open file
    text : str, optional
        The column with the documents, for a `MarkovNB`.
    ignored : names
        Columns that the user has named for another purpose: left out without a word.
    """
    columns = _columns(clf, table, text)
    if lost := [name for name in columns.types if name not in table.names]:
        near = [near for name in lost if (near := near_name(name, table.names))]
        advice = "add what is not known as empty cells"
        if near:
            advice = f"did you mean {listed(map(shown, near))}?"
        raise UserError(
            f"{table.path} lacks {'a column' if len(lost) == 1 else 'columns'} of the model: "
            f"{listed(map(shown, lost))}; {advice}"
        )
    used = {*columns.names, *ignored}
    if extra := [name for name in table.names if name not in used]:
        note(f"{table.path}: {listed(map(shown, extra))} left out, not among the model's columns")
    return columns


def _columns(clf, table: "Table", text: str | None) -> FileColumns:
    from bayesgen.posterior.fitted import is_pool

    names = getattr(clf, "feature_names_in_", None)
    first, texts = clf, ()
    if is_pool(clf):
        first, texts = next(iter(clf.members_.values())), clf.text_columns_
    if hasattr(first, "raw_documents_") and not texts:
        name = _text_column(first, table, text or table.reading.roles.get("text"))
        return FileColumns({name: None}, [name])
    if text is not None:
        raise UserError(f"--text is for language models, but the model is a {type(clf).__name__}")
    if names is None and len(table.names) != clf.n_features_in_:
        raise UserError(
            f"the model was fitted without column names and takes {clf.n_features_in_} columns in "
            f"their order, but {table.path} has {len(table.names)}"
        )
    all_names = table.names if names is None else [str(name) for name in names]
    others = [name for name in all_names if name not in texts]
    types = _types_of(first, others) if others else {}
    return FileColumns(types | dict.fromkeys(texts, "text"), all_names, names is not None)


def _text_column(clf, table: "Table", text: str | None) -> str:
    if not clf.raw_documents_:
        raise UserError("the model was fitted to token sequences; a file holds texts only")
    if text is not None:
        return text if text == table.reading.roles.get("text") else find(text, table)
    if len(table.names) == 1:
        return table.names[0]
    raise UserError(
        f"name the column with the texts by --text; there are {listed(map(shown, table.names))}"
    )


def _types_of(clf, names: list[str]) -> dict[str, str | None]:
    """Return the types of cells of the columns that a model uses, by what it learned of them."""
    from bayesgen.encoding.schema import TableSchema

    schema = getattr(clf, "encoder_", None)
    if isinstance(schema, TableSchema):
        return {
            names[j]: _type_of(values)
            if kind == "categorical"
            else "boolean"
            if kind == "bernoulli"
            else "number"
            for j, kind, values in zip(
                schema.positions, schema.kinds, schema.categories, strict=True
            )
        }
    bits = clf.prior_.family.kind == "bernoulli" and getattr(clf, "binarize", None) is None
    return dict.fromkeys(names, "boolean" if bits else "number")


def _type_of(categories: tuple[object, ...]) -> str:
    """Return the type of cells that may be such categories."""
    if all(isinstance(value, str) for value in categories):
        return "text"
    return "boolean" if all(isinstance(value, bool) for value in categories) else "number"


# --------------------------------------------------------------------------------------- labels


def find(name: str, table: "Table") -> str:
    """Return `name` if the table has it, else raise an error with the nearest name."""
    if name in table.names:
        return name
    raise UserError(f"{table.path} has no column {name!r}{did_you_mean(name, table.names)}")


class LabelledTable(NamedTuple):
    """Rows of a file that have a label, as a model takes them; the index of X numbers them."""

    X: Any
    labels: Array
    groups: Array | None = None  # names; rows of one group are left out together

    @property
    def numbers(self) -> Array:
        """Return the numbers (N,) of the rows in the file, from 1."""
        return self.X.index.to_numpy()

    def where(self, keep: Array) -> Self:
        """Return some of the rows."""
        groups = None if self.groups is None else self.groups[keep]
        return type(self)(self.X[keep], self.labels[keep], groups)


@dataclass
class UsedRows:
    """The rows of a file that are used: those with a label and, if need be, without missing cells.

    Parameters
    ----------
    table, columns, target
        The file, its columns of features and that of the labels.
    label_type : str
        As `bayesgen.io.tabular` reads them.
    group : str, optional
        The column that names the group of each row.
    drop_incomplete : bool
        Whether rows with a missing cell are left out.
    refuses_gaps : str
        The name of a classifier that cannot learn from missing cells; "" of one that can.
    """

    table: "Table"
    columns: FileColumns
    target: str
    label_type: str
    group: str | None = None
    drop_incomplete: bool = False
    refuses_gaps: str = ""
    n_labelled: int = 0
    n_unlabelled: int = 0
    n_incomplete: int = 0
    first_gap: str = ""

    @property
    def types(self) -> dict[str, str | None]:
        """Return the types of all columns that are read."""
        groups = {} if self.group is None else {self.group: "text"}
        return {**self.columns.types, **groups, self.target: self.label_type}

    def take(self, frame: "pd.DataFrame") -> LabelledTable:
        """Return the rows of a chunk that are used, and count the others."""
        has_label = frame[self.target].notna().to_numpy()
        self.n_labelled += int(has_label.sum())
        self.n_unlabelled += int((~has_label).sum())
        frame = frame[has_label]
        X = self.columns.select(frame)
        if X.ndim == 2 and (self.drop_incomplete or self.refuses_gaps):
            gaps = X.isna()
            incomplete = gaps.any(axis=1).to_numpy()
            if incomplete.any() and not self.n_incomplete:
                row = X.index[incomplete.argmax()]
                self.first_gap = f"row {row} (column {X.columns[gaps.loc[row]][0]!r})"
            self.n_incomplete += int(incomplete.sum())
            frame, X = frame[~incomplete], X[~incomplete]
        with blamed_on(self.table.path):
            labels = _labels_of(frame[self.target], self.table)
        groups = None if self.group is None else frame[self.group].to_numpy()
        return LabelledTable(X, labels, groups)

    def report(self) -> None:
        """Say how many rows were left out, or why that cannot be done."""
        path, target = self.table.path, self.target
        if not self.n_labelled:
            raise UserError(f"{path}: column {target!r} is empty: there are no labels")
        if self.n_unlabelled:
            note(f"{path}: {count(self.n_unlabelled, 'row')} without {target!r} dropped")
        if not self.n_incomplete:
            return
        lost = count(self.n_incomplete, "row")
        if not self.drop_incomplete:
            raise UserError(
                f"{self.refuses_gaps} cannot learn from rows with missing cells: {lost}, the first "
                f"is {self.first_gap}; leave them out by --drop-incomplete, or use another model"
            )
        if self.n_incomplete == self.n_labelled:
            raise UserError("every row has a missing cell")
        note(f"{path}: {lost} with missing cells dropped")

    def read_whole(self, advice: "Advice | None" = None) -> LabelledTable:
        """Return the rows of the whole file; say which are left out."""
        rows = self.take(read_whole(self.table, self.types, advice))
        self.report()
        return rows


def models_with_rows(
    paths: Sequence[Path], data: Path, reading: Reading, target: str, text: str | None
) -> list[tuple[Any, LabelledTable]]:
    """Load models; return each with the labelled rows of a file as it takes them."""
    table = open_table(data, stored_reading(paths[0], reading))
    find(target, table)
    models = [load_model(path) for path in paths]
    return [(clf, _labelled_rows(clf, table, target, text)) for clf in models]


def _labelled_rows(clf, table: "Table", target: str, text: str | None) -> LabelledTable:
    """Return the rows that a fitted model can be held to; say what it does not know.

    Whole groups of rows stay together if the fit had groups and the file has their column.
    """
    from sklearn.utils import get_tags

    group = table.reading.roles.get("group")
    group = group if group in table.names else None
    columns = columns_of(clf, table, text, [target, group])
    if target in columns.types:
        raise UserError(
            f"--target {target}: the model reads this column; name the column with the labels"
        )
    kind = clf.classes_.dtype.kind
    if kind == "M":
        raise UserError("the model's classes are dates, which a table's labels cannot be")
    form = {"b": "boolean", "i": "number", "u": "number", "f": "number"}.get(kind, "text")
    takes_gaps = get_tags(clf).input_tags.allow_nan
    rows = UsedRows(table, columns, target, form, group, not takes_gaps).read_whole()
    has_class = np.isin(rows.labels, clf.classes_)
    if not has_class.all():
        lost, n = np.unique(rows.labels[~has_class].astype(str), return_counts=True)
        named = listed((f"{shown(label)} ({k})" for label, k in zip(lost, n, strict=True)), 8)
        if not has_class.any():
            raise UserError(f"{table.path}: the model knows none of the labels {named}")
        left_out = count(int(n.sum()), "row")
        note(f"{table.path}: {left_out} left out, whose labels the model lacks: {named}")
        rows = rows.where(has_class)
    if rows.groups is not None:
        from bayesgen.encoding.labels import group_codes

        with blamed_on(table.path, rows=rows.numbers):
            codes = group_codes(rows.groups, len(rows.labels))
        clf.fitted_ = clf.fitted_.with_training(groups=codes)
    return rows


def _labels_of(cells: "pd.Series[Any]", table: "Table") -> Array:
    """Return labels, folded if the fit has folded them."""
    labels, spelled = tabular.labels(cells), table.reading.labels
    if not spelled or labels.dtype != object:
        return labels
    return np.array([spelled.get(fold(label), label) for label in labels], dtype=object)


def fold(label: str) -> str:
    """Return a label without its capitals and the blanks around it."""
    return " ".join(label.split()).casefold()


def costs(options: list[str] | None, reject: float | None, classes: Array) -> "Costs | None":
    """Return what decisions cost by ``--cost`` and ``--reject``; None if neither is given."""
    from bayesgen.predict.costs import read_costs

    if not options and reject is None:
        return None
    names, values = [*map(str, classes.tolist())], 1.0 - np.eye(len(classes))
    for text in options or ():
        labels, _, number = text.rpartition("=")
        pairs = [(c, d) for c, d in np.ndindex(values.shape) if f"{names[c]},{names[d]}" == labels]
        cost = parse_number(number)
        if len(pairs) != 1 or cost is None:
            raise UserError(
                f"--cost {text} is not TRUE,DECISION=NUMBER with two of the labels "
                f"{listed(names, 10)}"
            )
        values[pairs[0]] = cost
    with blamed_on("--cost"):
        return read_costs(values, classes, reject)
