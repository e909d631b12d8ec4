"""Which columns of a file a model reads, and as which types; the rows that have a label."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bayesgen.cli.console import UserError, blamed_on, note
from bayesgen.cli.files import read_whole
from bayesgen.encoding.literals import count, did_you_mean, listed, near_name, shown
from bayesgen.io import tabular
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd

    from bayesgen.cli.files import Table

type Categories = tuple[Any, ...]


@dataclass
class Columns:
    """The columns of X, and how many cells were categories that the model does not know.

    Parameters
    ----------
    types : {column: type}
        As `bayesgen.io.tabular` reads them.
    names : list of str
        All columns of the model; one that it does not use need not be in the file.
    named : bool
        Whether the model knows its columns by name.
    categories : {column: categories}
        Of the categorical columns of a fitted model.
    """

    types: dict[str, str | None]
    names: list[str]
    named: bool = True
    categories: dict[str, Categories] = field(default_factory=dict)
    _unseen: dict[str, tuple[Any, int]] = field(default_factory=dict)

    def read(self, frame: "pd.DataFrame") -> Any:
        """Return X: a data frame, or a series of documents; its index is that of `frame`."""
        if "document" in self.types.values():
            return frame[next(iter(self.types))].astype(object)
        X = frame.reindex(columns=self.names)
        for name, known in self.categories.items():
            new = X[name][X[name].notna() & ~X[name].isin(known)]
            if len(new):
                first, n = self._unseen.get(name, (str(new.iloc[0]), 0))
                self._unseen[name] = first, n + len(new)
        return X if self.named else X.set_axis(range(X.shape[1]), axis=1)

    def note_unseen(self) -> None:
        """Say which columns held categories that the model does not know."""
        for name, (first, n) in self._unseen.items():
            note(
                f"column {name!r}: {count(n, 'cell')} with a category not seen in training, "
                f"the first {shown(first)}; treated as missing"
            )


def columns_of(
    clf: Any, table: "Table", text: str | None = None, ignored: Iterable[str] = ()
) -> Columns:
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
    held = set(table.names)
    if lost := [name for name in columns.types if name not in held]:
        hints = {name: near_name(name, held) for name in lost}
        near = [
            shown(hint) + (f" for {shown(name)}" if len(lost) > 1 else "")
            for name, hint in hints.items()
            if hint
        ]
        hint = f"did you mean {listed(near)}?" if near else "add what is not known as empty cells"
        raise UserError(
            f"{table.path} lacks {'a column' if len(lost) == 1 else 'columns'} of the model: "
            f"{listed(map(shown, lost))}; {hint}"
        )
    for name in table.reading.percent:
        if columns.types.get(name) == "number":
            columns.types[name] = "percent"
    known = {*columns.names, *ignored}
    if extra := [name for name in table.names if name not in known]:
        note(f"{table.path}: {listed(map(shown, extra))} left out, not among the model's columns")
    return columns


def name_columns(clf: Any, names: Any) -> None:
    """Let a classifier that was just fitted keep names of columns that it was not given."""
    reader = replace(clf.fitted_.reader, names=np.array(names, dtype=object))
    clf.fitted_ = replace(clf.fitted_, reader=reader)


def _columns(clf: Any, table: "Table", text: str | None) -> Columns:
    names = getattr(clf, "feature_names_in_", None)
    first, texts = _first_member(clf), getattr(clf, "text_columns_", ())
    if hasattr(first, "raw_documents_") and not texts:
        name = _text_column(first, table, text, names)
        return Columns({name: "document"}, [name])
    if text is not None:
        raise UserError(f"--text is for language models, but the model is a {type(clf).__name__}")
    if names is None:
        n = clf.n_features_in_
        if len(table.names) != n:
            raise UserError(
                f"the model was fitted without column names and takes {n} columns in their order, "
                f"but {table.path} has {len(table.names)}"
            )
    all_names = table.names if names is None else [str(name) for name in names]
    others = [name for name in all_names if name not in texts]
    columns = _by_kind(first, others) if others else Columns({}, [])
    types = columns.types | dict.fromkeys(texts, "text")
    return Columns(types, all_names, names is not None, columns.categories)


def _first_member(clf: Any) -> Any:
    """Return the first member of a pool that reads its table; a model itself."""
    members = getattr(clf, "members_", None)
    return clf if members is None else next(iter(members.values()))


def _text_column(clf: Any, table: "Table", text: str | None, names: Any) -> str:
    if not clf.raw_documents_:
        raise UserError("the model was fitted to token sequences; a file holds texts only")
    if text is not None:
        return find(text, table)
    if names is not None:
        return str(names[0])
    if len(table.names) == 1:
        return table.names[0]
    raise UserError(
        f"name the column with the texts by --text; there are {listed(map(shown, table.names))}"
    )


def _schema(clf: Any) -> Any:
    """Return the schema of a model of columns of several kinds, or None."""
    from bayesgen.encoding.schema import TableSchema

    encoder = getattr(clf, "encoder_", None)
    return encoder if isinstance(encoder, TableSchema) else getattr(encoder, "schema", None)


def _by_kind(clf: Any, names: list[str]) -> Columns:
    """Return the columns of a model of a table, by what its kinds of columns hold."""
    schema = _schema(clf)
    if schema is not None:
        nominal = (
            j
            for j, kind in zip(schema.positions, schema.kinds, strict=True)
            if kind == "categorical"
        )
        categories = dict(zip(nominal, schema.categories.values, strict=True))
        kinds: dict[int, str] = dict(zip(schema.positions, schema.kinds, strict=True))
    elif (known := getattr(clf, "categories_", None)) is not None:
        categories, kinds = dict(enumerate(known)), {}
    else:
        family = clf.prior_.family
        bits = family.kind == "bernoulli" and getattr(clf, "binarize", None) is None
        categories, kinds = {}, dict.fromkeys(range(len(names)), "bernoulli" if bits else "real")
    types: dict[str, str | None] = {}
    for j, name in enumerate(names):
        if j in categories:
            types[name] = _type_of(categories[j])
        elif j in kinds:
            types[name] = "boolean" if kinds[j] == "bernoulli" else "number"
    by_name = {names[j]: values for j, values in categories.items()}
    return Columns(types, names, categories=by_name)


def _type_of(categories: Categories) -> str:
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


class Labelled(NamedTuple):
    """Rows of a file that have a label, as a model takes them; the index of X numbers them."""

    X: Any
    labels: Array

    @property
    def numbers(self) -> Array:
        """(N,) numbers of the rows in the file, from 1."""
        return self.X.index.to_numpy()

    def where(self, keep: Array) -> Self:
        """Return some of the rows."""
        return type(self)(self.X[keep], self.labels[keep])


def labelled_rows(clf: Any, table: "Table", target: str, text: str | None) -> Labelled:
    """Return the rows that a fitted model can be held to; say what it does not know."""
    columns = columns_of(clf, table, text, [target])
    if target in columns.types:
        raise UserError(
            f"--target {target}: the model reads this column; name the column with the labels"
        )
    kind = clf.classes_.dtype.kind
    if kind == "M":
        raise UserError("the model's classes are dates, which a table's labels cannot be")
    form = {"b": "boolean", "i": "number", "u": "number", "f": "number"}.get(kind, "text")
    rows = with_labels(columns, read_whole(table, {**columns.types, target: form}), target, table)
    columns.note_unseen()
    known = np.isin(rows.labels, clf.classes_)
    if known.all():
        return rows
    lost, n = np.unique(rows.labels[~known].astype(str), return_counts=True)
    named = listed((f"{shown(label)} ({k})" for label, k in zip(lost, n, strict=True)), 8)
    if not known.any():
        raise UserError(f"{table.path}: the model knows none of the labels {named}")
    left_out = count(int(n.sum()), "row")
    note(f"{table.path}: {left_out} left out, whose labels the model lacks: {named}")
    return rows.where(known)


def with_labels(columns: Columns, frame: "pd.DataFrame", target: str, table: "Table") -> Labelled:
    """Return X and labels of the rows that have a label; say how many have none."""
    known = frame[target].notna().to_numpy()
    if not known.any():
        raise UserError(f"{table.path}: column {target!r} is empty: there are no labels")
    if not known.all():
        lost = count(int((~known).sum()), "row")
        note(f"{table.path}: {lost} without {target!r} dropped")
    with blamed_on(table.path):
        labels = labels_of(frame[target][known], table)
    return Labelled(columns.read(frame[known]), labels)


def labels_of(cells: "pd.Series[Any]", table: "Table") -> Array:
    """Return labels, folded if the fit has folded them."""
    labels, spelled = tabular.labels(cells), table.reading.labels
    if not spelled or labels.dtype.kind != "U":
        return labels
    return np.array([spelled.get(fold(label), label) for label in labels.tolist()])


def fold(label: str) -> str:
    """Return a label without its capitals and the blanks around it."""
    return " ".join(label.split()).casefold()


def costs(given: list[str] | None, classes: Array) -> dict[Any, dict[Any, float]] | None:
    """{class: {decision: cost}} of ``--cost``, as `decide` takes them."""
    if not given:
        return None
    own = classes.tolist()
    named = {str(c): c for c in own}
    found = {c: {d: 1.0 for d in own if d != c} for c in own}
    told: dict[tuple[Any, Any], str] = {}
    for text in given:
        labels, _, number = text.rpartition("=")
        parts = labels.split(",")  # a label may have a comma
        pairs = [(",".join(parts[:k]), ",".join(parts[k:])) for k in range(1, len(parts))]
        pairs = [(c, d) for c, d in pairs if c in named and d in named]
        try:
            cost = float(number)
        except ValueError:
            pairs = []
        if len(pairs) != 1:
            raise UserError(
                f"--cost {text} is not TRUE,DECISION=NUMBER with two of the labels "
                f"{listed(list(named), 10)}"
            )
        if pairs[0] in told:
            raise UserError(f"--cost {text} and --cost {told[pairs[0]]} are of the same labels")
        told[pairs[0]] = text
        found[named[pairs[0][0]]][named[pairs[0][1]]] = cost
    return found
