"""From the cells of a file to what a model takes.

The kind of a column is decided once, from the whole training file, and is in the model from then
on. New cells are read as that kind asks, one by one: how a column is read depends neither on the
chunk nor on the other cells in it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bayesgen.cli.console import UserError, blamed_on, note
from bayesgen.cli.files import read_whole
from bayesgen.encoding.literals import count, did_you_mean, listed, shown
from bayesgen.encoding.schema import KINDS
from bayesgen.errors import InputError
from bayesgen.io.tabular import Cells
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.cli.files import Table
    from bayesgen.io.tabular import Rows

# ------------------------------------------------------------------------------------ features


@dataclass
class Feature:
    """One column of X: how its cells are read, and how many of them were new categories so far."""

    name: str
    kind: str  # one of schema.KINDS; or "real", any number; "text"; "documents"; "unused"
    form: str = "number"  # "number", "text" or "boolean": what a categorical cell becomes
    categories: tuple[Any, ...] | None = None  # of a categorical column: what the model knows
    n_unseen: int = 0
    first_unseen: str = ""

    def read(self, cells: Cells) -> Array:
        """(N,) float64, or objects unless the form is number; what fits a kind, the model knows."""
        if self.kind == "documents":
            return cells.documents()
        if self.form == "boolean":
            return cells.booleans()
        if self.kind == "text" or (self.kind == "categorical" and self.form == "text"):
            values = cells.texts()
        else:
            known = self.categories if self.kind == "categorical" else None
            unknown = float(max(known)) + 1.0 if known else None  # a category that is not there
            values = cells.numbers(self.kind in ("categorical", "bernoulli"), unknown)
        if self.categories is not None:
            self._count_unseen(values, cells)
        return values

    def _count_unseen(self, values: Array, cells: Cells) -> None:
        assert self.categories is not None
        if self.form == "text":
            known = {*self.categories, None}
            unseen = np.fromiter((value not in known for value in values), bool, len(values))
        else:
            unseen = ~np.isin(values, np.array(self.categories, dtype=float)) & ~np.isnan(values)
        if unseen.any() and not self.n_unseen:
            self.first_unseen = str(cells[int(np.argmax(unseen))])
        self.n_unseen += int(unseen.sum())


@dataclass
class Reader:
    """How chunks of one file become the X of one model."""

    features: list[Feature]
    named: bool = True  # whether the model knows its columns by name
    unseen: str = "prior"  # what the model does with a category that it does not know

    @property
    def columns(self) -> list[str]:
        """What is read from the file."""
        return [feature.name for feature in self.features if feature.kind != "unused"]

    def read(self, rows: "Rows") -> Any:
        """X of some rows: a data frame, or a list of documents; InputError at a wrong cell."""
        import pandas as pd

        if self.features[0].kind == "documents":
            return self.features[0].read(rows.cells(self.features[0].name)).tolist()
        data: dict[Any, Any] = {}
        for k, feature in enumerate(self.features):
            if feature.kind == "unused":
                values = np.full(rows.n_rows, np.nan)
            else:
                values = feature.read(rows.cells(feature.name))
            if feature.n_unseen and self.unseen == "raise":
                raise InputError(
                    f"column {feature.name!r} holds {shown(feature.first_unseen)}, which was not "
                    "seen in training, and the model was told to refuse that (unseen='raise')",
                    column=feature.name,
                )
            if values.dtype == object:  # else pandas would infer a type
                values = pd.Series(values, dtype=object)
            data[feature.name if self.named else k] = values
        if all(values.dtype == np.float64 for values in data.values()):  # as one block of memory
            return pd.DataFrame(np.stack(list(data.values())).T, columns=list(data))
        return pd.DataFrame(data)

    def report_unseen(self) -> None:
        """Say which columns held categories that the model does not know."""
        done = "scored by the prior" if self.unseen == "prior" else "treated as missing"
        for feature in self.features:
            if feature.n_unseen:
                note(
                    f"column {feature.name!r}: {count(feature.n_unseen, 'cell')} with a category "
                    f"not seen in training, the first {shown(feature.first_unseen)}; {done}"
                )


def reader_for(
    clf: Any, table: "Table", text: str | None = None, ignored: Iterable[str] = ()
) -> Reader:
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
    features, named = _features(clf, table, text)
    reader = Reader(features, named, getattr(clf, "unseen", "prior"))
    held = set(table.names)
    if lost := [name for name in reader.columns if name not in held]:
        hint = did_you_mean(lost[0], table.names) if len(lost) == 1 else ""
        raise UserError(
            f"{table.path} lacks {'a column' if len(lost) == 1 else 'columns'} of the model: "
            f"{listed(map(shown, lost))}{hint or '; add what is not known as empty cells'}"
        )
    known = {*(feature.name for feature in features), *ignored}
    if extra := [name for name in table.names if name not in known]:
        note(f"{table.path}: {listed(map(shown, extra))} left out, not among the model's columns")
    return reader


def name_columns(clf: Any, names: Any) -> None:
    """Let a fitted classifier keep names of columns that it was not given."""
    reader = replace(clf.fitted_.reader, names=np.array(names, dtype=object))
    clf.fitted_ = replace(clf.fitted_, reader=reader)


def _features(clf: Any, table: "Table", text: str | None) -> tuple[list[Feature], bool]:
    """What the model reads, and whether it knows its columns by name."""
    names = getattr(clf, "feature_names_in_", None)
    if hasattr(clf, "members_"):  # which read the same table: as the first does
        own = next(iter(clf.members_.values()))
        texts = clf.text_columns_
        if names is not None and not texts and not hasattr(own, "feature_names_in_"):
            name_columns(own, names)
        features: list[Feature] = []
        named = True
        if not texts or len(texts) < len(clf.feature_names_in_):
            features, named = _features(own, table, text)
        features += [Feature(name, "text") for name in texts]
        for feature in features:
            if feature.kind == "bernoulli":  # its members look at what the cells are
                feature.form = "boolean"
        return features, named
    if hasattr(clf, "raw_documents_"):
        return [Feature(_text_column(clf, table, text, names), "documents")], True
    if text is not None:
        raise UserError(f"--text is for language models, but the model is a {type(clf).__name__}")
    if names is None:
        n = clf.n_features_in_
        if len(table.names) != n:
            raise UserError(
                f"the model was fitted without column names and takes {n} columns in their order, "
                f"but {table.path} has {len(table.names)}"
            )
        return _kinds(clf, list(table.names)), False
    return _kinds(clf, [str(name) for name in names]), True


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


def _kinds(clf: Any, names: list[str]) -> list[Feature]:
    schema = getattr(clf, "schema_", getattr(getattr(clf, "encoder_", None), "schema", None))
    if schema is not None:  # columns of several kinds
        out = [Feature(name, "unused") for name in names]
        categories = iter(schema.categories.values)
        for j, kind in zip(schema.positions, schema.kinds, strict=True):
            known = next(categories) if kind == "categorical" else None
            out[j] = Feature(names[j], kind, _form(known), known)
        return out
    if (categories := getattr(clf, "categories_", None)) is not None:
        pairs = zip(names, categories, strict=True)
        return [Feature(name, "categorical", _form(known), known) for name, known in pairs]
    family = clf.prior_.family
    any_number = family.holds == "real" or getattr(clf, "binarize", None) is not None
    kind = family.kind if family.kind in KINDS and not any_number else "real"
    return [Feature(name, kind) for name in names]


def _form(categories: tuple[Any, ...] | None) -> str:
    return "text" if categories and isinstance(categories[0], str) else "number"


# --------------------------------------------------------------------------------------- labels


def find(name: str, table: "Table") -> str:
    """`name` if the table has it, else an error with the nearest name."""
    if name in table.names:
        return name
    raise UserError(f"{table.path} has no column {name!r}{did_you_mean(name, table.names)}")


class Labelled(NamedTuple):
    """Rows of a file that have a label, as a model takes them."""

    X: Any
    labels: Array
    numbers: Array  # of the rows in the file, from 1

    def where(self, keep: Array) -> Self:
        """Some of the rows."""
        return type(self)(take(self.X, keep), self.labels[keep], self.numbers[keep])

    def indexed(self) -> Self:
        """X as a frame or a series whose index is the numbers of the rows in the file."""
        import pandas as pd

        documents = isinstance(self.X, list)
        X = pd.Series(self.X, dtype=object) if documents else self.X
        return self._replace(X=X.set_axis(self.numbers))


def labelled_rows(clf: Any, table: "Table", target: str, text: str | None) -> Labelled:
    """The rows that a fitted model can be held to; says what it does not know."""
    reader = reader_for(clf, table, text, [target])
    rows = read_whole(table, [target, *reader.columns])
    with blamed_on(table.path, (InputError,)):
        found = with_labels(reader.read(rows), rows, target, table, clf.classes_)
    reader.report_unseen()
    return found


def with_labels(
    X: Any, rows: "Rows", target: str, table: "Table", like: Array | None = None
) -> Labelled:
    """X of all rows with the labels of those that have one; says how many have none.

    Parameters
    ----------
    like : array, optional
        Classes whose type the labels must have; None: text, booleans or numbers (whole ones as
        integers), as the column holds.
    """
    cells = rows.cells(target)
    n_lost = int(cells.missing.sum())
    if n_lost == rows.n_rows:
        raise UserError(f"{table.path}: column {target!r} is empty: there are no labels")
    if n_lost:
        note(f"{table.path}: {count(n_lost, 'row')} without {target!r} dropped")
    keep, labels = cells.labelled(cells.holds() if like is None else _form_of_labels(like))
    return Labelled(take(X, keep), labels, rows.first + np.flatnonzero(keep))


def costs(given: list[str] | None, classes: Array) -> dict[Any, dict[Any, float]] | None:
    """{class: {decision: cost}} of ``--cost``, as `decide` takes them."""
    if not given:
        return None
    own = classes.tolist()
    named = {str(c): c for c in own}
    found = {c: {d: 1.0 for d in own if d != c} for c in own}
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
        found[named[pairs[0][0]]][named[pairs[0][1]]] = cost
    return found


def _form_of_labels(classes: Array) -> str:
    if classes.dtype.kind == "M":
        raise UserError("the model's classes are dates, which a table's labels cannot be")
    return {"b": "boolean", "i": "number", "u": "number", "f": "number"}.get(
        classes.dtype.kind, "text"
    )


def take(X: Any, keep: Array) -> Any:
    """The rows of a frame, or the documents, where `keep` is true."""
    if not isinstance(X, list):
        return X[keep]
    return [text for text, kept in zip(X, keep, strict=True) if kept]
