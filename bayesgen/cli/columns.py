"""From the cells of a file to what a model takes.

The kind of a column is decided once, from the whole training file, and is in the model from then
on. New cells are read as that kind asks, one by one: how a column is read depends neither on the
chunk nor on the other cells in it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.cli.console import UserError, count, did_you_mean, listed, note
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.cli.files import Cells, Chunk, Table

# what pandas.read_csv takes for missing, so that the command line and Python read a file alike
_NOTHING = "|#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None"
MISSING = frozenset(f"{_NOTHING}|n/a|nan|null".split("|"))
_BOOLEANS = {"true": 1.0, "false": 0.0}
_EXACT = 2**53  # from here on a float64 does not hold every integer: such numbers are identifiers


# --------------------------------------------------------------------------------------- cells


def is_missing(cell: Any) -> bool:
    """Whether a cell holds nothing."""
    if isinstance(cell, str):
        return cell in MISSING or cell.isspace()
    return cell is None or cell != cell


def missing(cells: "Cells") -> Array:
    """(N,) bool: which cells hold nothing."""
    if isinstance(cells, np.ndarray):
        return cells != cells
    return np.fromiter(map(is_missing, cells), bool, len(cells))


def what_it_holds(cells: "Cells") -> str:
    """``"boolean"``, ``"number"``, ``"text"`` or, if every cell is missing, ``"empty"``."""
    if isinstance(cells, np.ndarray):
        if cells.dtype == bool:
            return "boolean"
        if cells.dtype.kind == "f":
            return "empty" if np.isnan(cells).all() else "number"
        return "number" if np.all((cells < _EXACT) & (cells > -_EXACT)) else "text"
    present = {cell for cell in cells if not is_missing(cell)}
    if not present:
        return "empty"
    if all(_as_boolean(cell) is not None for cell in present):
        return "boolean"
    parsed = [None if isinstance(cell, bool) else _as_number(cell) for cell in present]
    if any(value is None for value in parsed):
        return "text"
    # a long row of digits is an identifier: as a float it would be another one
    return "text" if any(map(_is_identifier, present)) else "number"


def _is_identifier(cell: Any) -> bool:
    text = str(cell).strip().lstrip("+-")
    return len(text) > 15 and text.isdigit() and int(text) >= _EXACT


def _as_boolean(cell: Any) -> float | None:
    if isinstance(cell, bool):
        return float(cell)
    return _BOOLEANS.get(cell.strip().lower()) if isinstance(cell, str) else None


def _as_number(cell: Any) -> float | None:
    if isinstance(cell, str) and "_" in cell:
        return None  # Python reads 1_000 as a number, nobody else does
    try:
        return float(cell)
    except ValueError:
        return None


def numbers(cells: "Cells", refuse: Callable[[Any, int], float]) -> Array:
    """(N,) float64, NaN for missing cells, 1 and 0 for true and false.

    `refuse` gets a cell that is no number, and its position, and raises or returns a substitute.
    """
    if isinstance(cells, np.ndarray):
        return cells.astype(np.float64)
    try:
        if "_" not in "".join(cells):
            known = ["nan" if cell in MISSING else cell for cell in cells]
            return np.array(known, dtype=object).astype(np.float64)
    except (TypeError, ValueError):
        pass  # something else among them: one by one
    out = np.empty(len(cells))
    for i, cell in enumerate(cells):
        value: float | None = np.nan
        if not is_missing(cell):
            value = _as_number(cell)
            value = _as_boolean(cell) if value is None else value
        out[i] = refuse(cell, i) if value is None else value
    return out


def texts(cells: "Cells") -> Array:
    """(N,) object: str, None for missing cells. Whole numbers are written without a point."""
    if isinstance(cells, np.ndarray):
        cells = cells.tolist()
    return np.array([None if is_missing(cell) else _as_text(cell) for cell in cells], dtype=object)


def _as_text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell)


# ------------------------------------------------------------------------------------ features


@dataclass
class Feature:
    """One column of X: how its cells are read, and how many of them were new categories so far."""

    name: str
    kind: str  # one of schema.KINDS; or "real", any number; "documents"; "unused"
    form: str = "number"  # of a categorical column: "number", "text" or "boolean"
    categories: tuple[Any, ...] | None = None  # of a categorical column: what the model knows
    n_unseen: int = 0
    first_unseen: str = ""

    def read(self, cells: "Cells", first: int) -> Array:
        """(N,) float64, or objects unless the form is number; `first` numbers the first row."""
        if self.kind == "documents":
            return self._documents(cells, first)
        if self.kind == "categorical" and self.form == "text":
            values = texts(cells)
        else:
            values = numbers(cells, lambda cell, i: self._no_number(cell, first + i))
            self._refuse_strange(values, first)
        if self.categories is not None:
            self._count_unseen(values, cells)
        if self.form == "boolean":
            return np.array([None if v != v else bool(v) for v in values], dtype=object)
        return values

    def _no_number(self, cell: Any, row: int) -> float:
        if self.kind == "categorical" and self.categories:
            return float(max(self.categories)) + 1.0  # a category that the model does not know
        raise UserError(
            f"column {self.name!r} holds {cell!r} in row {row}, but the model needs a number there"
        )

    def _refuse_strange(self, values: Array, first: int) -> None:
        """Refuse numbers that do not fit the kind."""
        bad, need = np.isinf(values), "finite numbers"
        if self.kind == "bernoulli":
            bad, need = ~((values == 0) | (values == 1) | np.isnan(values)), "0, 1, true or false"
        elif self.kind in ("poisson", "multinomial"):
            bad, need = bad | (values < 0), "counts, which are not negative"
        if bad.any():
            i = int(np.argmax(bad))
            raise UserError(
                f"column {self.name!r} holds {values[i]:g} in row {first + i}, but a model of kind "
                f"{self.kind} takes {need} there"
            )

    def _documents(self, cells: "Cells", first: int) -> Array:
        if isinstance(cells, np.ndarray):
            raise UserError(f"column {self.name!r} holds numbers, not text")
        for i, cell in enumerate(cells):
            if not isinstance(cell, str):
                raise UserError(f"column {self.name!r} holds no text in row {first + i}: {cell!r}")
        return np.array(cells, dtype=object)

    def _count_unseen(self, values: Array, cells: "Cells") -> None:
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

    def read(self, chunk: "Chunk") -> Any:
        """X of a chunk: a data frame, or a list of documents."""
        import pandas as pd

        if self.features[0].kind == "documents":
            name = self.features[0].name
            return self.features[0].read(chunk.cells(name), chunk.first).tolist()
        data: dict[Any, Any] = {}
        for k, feature in enumerate(self.features):
            if feature.kind == "unused":
                values = np.full(chunk.n_rows, np.nan)
            else:
                values = feature.read(chunk.cells(feature.name), chunk.first)
            if feature.n_unseen and self.unseen == "raise":
                raise UserError(
                    f"column {feature.name!r} holds {feature.first_unseen!r}, which was not seen "
                    "in training, and the model was told to refuse that (unseen='raise')"
                )
            data[feature.name if self.named else k] = pd.Series(values, dtype=values.dtype)
        return pd.DataFrame(data)

    def report_unseen(self) -> None:
        """Say which columns held categories that the model does not know."""
        done = "scored by the prior" if self.unseen == "prior" else "treated as missing"
        for feature in self.features:
            if feature.n_unseen:
                note(
                    f"column {feature.name!r}: {count(feature.n_unseen, 'cell')} with a category "
                    f"not seen in training, the first {feature.first_unseen!r}; {done}"
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
    if lost := [name for name in reader.columns if name not in table.names]:
        hint = did_you_mean(lost[0], table.names) if len(lost) == 1 else ""
        raise UserError(
            f"{table.path} lacks {'a column' if len(lost) == 1 else 'columns'} of the model: "
            f"{listed(lost)}{hint or '; add what is not known as empty cells'}"
        )
    known = {*(feature.name for feature in features), *ignored}
    if extra := [name for name in table.names if name not in known]:
        note(f"{table.path}: {listed(extra)} left out, not among the model's columns")
    return reader


def _features(clf: Any, table: "Table", text: str | None) -> tuple[list[Feature], bool]:
    """What the model reads, and whether it knows its columns by name."""
    face = type(clf).__name__
    names = getattr(clf, "feature_names_in_", None)
    if face == "MarkovNB":
        return [Feature(_text_column(clf, table, text, names), "documents")], True
    if text is not None:
        raise UserError(f"--text is for language models, but the model is a {face}")
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
    raise UserError(f"name the column with the texts by --text; there are {listed(table.names)}")


def _kinds(clf: Any, names: list[str]) -> list[Feature]:
    face = type(clf).__name__
    if face == "MixedNB":
        out = [Feature(name, "unused") for name in names]
        categories = iter(clf.schema_.categories.values)
        for j, kind in zip(clf.schema_.positions, clf.schema_.kinds, strict=True):
            known = next(categories) if kind == "categorical" else None
            out[j] = Feature(names[j], kind, _form(known), known)
        return out
    if face == "CategoricalNB":
        pairs = zip(names, clf.categories_, strict=True)
        return [Feature(name, "categorical", _form(known), known) for name, known in pairs]
    counts = {"MultinomialNB": "multinomial", "PoissonNB": "poisson"}
    kind = counts.get(face, "real")
    if face == "BernoulliNB" and clf.binarize is None:
        kind = "bernoulli"
    return [Feature(name, kind) for name in names]


def _form(categories: tuple[Any, ...] | None) -> str:
    return "text" if categories and isinstance(categories[0], str) else "number"


# --------------------------------------------------------------------------------------- labels


def find(name: str, table: "Table") -> str:
    """`name` if the table has it, else an error with the nearest name."""
    if name in table.names:
        return name
    raise UserError(f"{table.path} has no column {name!r}{did_you_mean(name, table.names)}")


def labels(
    cells: "Cells", name: str, table: "Table", like: Array | None = None
) -> tuple[Array, Array]:
    """Which rows have a label, and their labels; says how many rows have none.

    Parameters
    ----------
    cells : the column
    name : its name
    table : its file
    like : array, optional
        Classes whose type the labels must have; None: text, booleans or numbers (whole ones as
        integers), as the column holds.
    """
    labelled = ~missing(cells)
    n_lost = int((~labelled).sum())
    if n_lost == len(labelled):
        raise UserError(f"{table.path}: column {name!r} is empty: there are no labels")
    if n_lost:
        note(f"{table.path}: {count(n_lost, 'row')} without {name!r} dropped")
    given = take(cells, labelled)
    form = what_it_holds(given) if like is None else _form_of_labels(like)
    return labelled, _labels(given, form, f"{table.path}: column {name!r}")


def _labels(cells: "Cells", form: str, where: str) -> Array:
    if form == "text":
        return texts(cells).astype(str)

    def refuse(cell: Any, i: int) -> float:
        raise UserError(f"{where} holds {cell!r}, but the model's classes are {form}s")

    values = numbers(cells, refuse)
    if form == "boolean":
        return values == 1
    whole = np.all(values == np.trunc(values))
    return values.astype(np.int64) if whole else values


def _form_of_labels(classes: Array) -> str:
    if classes.dtype.kind == "b":
        return "boolean"
    if classes.dtype.kind in "iuf":
        return "number"
    if classes.dtype.kind == "M":
        raise UserError("the model's classes are dates, which a table's labels cannot be")
    return "text"


def take(cells: "Cells", keep: Array) -> "Cells":
    """The cells where `keep` is true."""
    if isinstance(cells, np.ndarray):
        return cells[keep]
    return [cell for cell, kept in zip(cells, keep, strict=True) if kept]
