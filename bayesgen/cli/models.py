"""The classifiers by their short names, and what is to be learned of the columns of a table."""

import re
import shlex
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bayesgen.cli.console import UserError, blamed_on, note
from bayesgen.encoding.literals import MISSING, listed, parse_number, parse_written, shown
from bayesgen.errors import Facts, InputError
from bayesgen.io.formats import TableError

if TYPE_CHECKING:
    import pandas as pd

    from bayesgen.cli.columns import UsedRows
    from bayesgen.cli.files import Table

_HEAD = 10_000  # rows that are looked at for what may be doubted
_HEAD_CELLS = 1_000_000
AT_ONCE = 1 << 25  # bytes of a file whose rows are read together
_TWO_LETTERS, _PADDED = re.compile("[A-Z]{2}"), re.compile(r"0\d+")
_REMEDIES = {
    "drop": "leave it out by --drop COLUMN",
    "kind": "--kind COLUMN={kind}",
    "missing": "--missing {code}",
    "texts": "read it by --model auto or markov",
    "convert": "write the numbers alone, all alike; with decimal commas: --decimal ,",
}


class Model(StrEnum):
    """The classifiers by their short names."""

    MIXED = "mixed"
    GAUSSIAN = "gaussian"
    BERNOULLI = "bernoulli"
    CATEGORICAL = "categorical"
    MULTINOMIAL = "multinomial"
    POISSON = "poisson"
    LDA = "lda"
    QDA = "qda"
    FOREST = "forest"
    META_TREES = "meta-trees"
    MARKOV = "markov"
    AUTO = "auto"


def classifier(model: Model) -> Any:
    """Return the public class that a short name stands for."""
    from bayesgen.estimators import ESTIMATORS, LogLinearPool

    return next(one for one in (*ESTIMATORS, LogLinearPool) if short_name(one) == model)


def short_name(kind: type) -> str:
    """Return what the command line calls a class: as it says itself, or the word before NB."""
    return str(vars(kind).get("_short_name", kind.__name__.removesuffix("NB").lower()))


def _kind_of(model: Model) -> str:
    """Return the kind of all columns of X, by the family; "" where each has its own."""
    family = getattr(classifier(model)(), "_family_type", None)
    if family is None or family.holds == "code":
        return ""
    return "gaussian" if family.holds == "real" else str(family.kind)


@dataclass(frozen=True)
class Plan:
    """What is to be learned from a file: a model of some of its columns."""

    table: "Table"
    target: str
    names: list[str]  # of the columns of X
    model: Model
    kind: str  # of all columns; "" where each has its own
    kinds: dict[str, str]  # of columns, as the user has named them
    documents: bool  # whether X is one column of texts
    drop_incomplete: bool = False
    fold_labels: bool = False
    group: str | None = None  # the column whose rows of equal cells are left out together

    @classmethod
    def of(
        cls,
        table: "Table",
        target: str,
        model: Model,
        drop: list[str],
        kind: list[str],
        text: str | None,
        group: str | None,
        **options: bool,
    ) -> "Plan":
        """Return the plan of a command's arguments; an error where they do not fit the table."""
        from bayesgen.cli.columns import find

        if group is not None:
            if find(group, table) == target:
                raise UserError(f"--group {group}: it is the target")
            drop = [*drop, group]
        of_all = _kind_of(model)
        kinds = _parsed(kind, model, of_all, table, {target, *drop})
        names, documents = _chosen(table, target, model, drop, text)
        return cls(table, target, names, model, of_all, kinds, documents, group=group, **options)

    @property
    def at_once(self) -> bool:
        """Return whether all rows are read together: they choose the prior, or the bins.

        A file above 32 MiB is read in parts, by which the prior is the stated one.
        """
        if self.group is not None:
            return True
        if self.model is Model.AUTO:  # a sample of the rows is kept
            return False
        return self.table.size <= AT_ONCE or self.model in (Model.FOREST, Model.META_TREES)

    def advice(self, mistake: Facts) -> str | None:
        """Say what can be done about a column that the model cannot learn from."""
        if mistake.column not in self.names:
            return None
        other = ", or use --model mixed" if self.kind else ""
        return f"leave it out by --drop{other}"

    def look(self) -> "tuple[dict[str, str], UsedRows]":
        """Return {column: kind} and the rows to use; say what may be read otherwise."""
        from bayesgen.cli.columns import FileColumns, UsedRows

        looked_at = [self.target] if self.documents else [self.target, *self.names]
        with blamed_on(errors=(InputError,), advice=self.advice):
            holds = self.table.kinds(looked_at)
        if not holds:
            raise TableError(f"{self.table.path} has a header and no rows")
        for name, held in holds.items():
            if held == "empty":
                what = "there are no labels" if name == self.target else "leave it out by --drop"
                raise UserError(f"{self.table.path}: column {name!r} is empty: {what}")
        if self.table.reading.codes.pop(self.target, None) is not None:
            holds[self.target] = "text"  # labels are not searched for missing numbers
        for name, code in self.table.reading.codes.items():
            note(
                f"column {name!r} holds numbers, and {shown(code)}, read as missing (if it is a "
                f"category: --not-missing {shlex.quote(code)})"
            )
        kinds, types = {}, {}
        for name in self.names:
            kinds[name], types[name] = self._kind_and_type(name, holds.get(name, ""))
        selection = UsedRows(
            self.table, FileColumns(types, self.names), self.target, holds[self.target],
            self.group, self.drop_incomplete,
        )  # fmt: skip
        self._say_doubts(selection, kinds, holds)
        return kinds, selection

    def _kind_and_type(self, name: str, held: str) -> tuple[str, str | None]:
        """Return how a column is modelled, and as which type its cells are read."""
        if self.documents:
            return "documents", None
        kind = self.kind
        if not kind:
            looks = {"boolean": "bernoulli", "text": "categorical"}.get(held, "gaussian")
            looks = "categorical" if name in self.table.nominal else looks
            kind = self.kinds.get(name, looks)
        bits = kind == "bernoulli" and held == "boolean"
        return kind, held if bits or kind == "categorical" else "number"

    def _say_doubts(
        self, selection: "UsedRows", kinds: dict[str, str], holds: dict[str, str]
    ) -> None:
        """Say, before anything is learned, what may be read otherwise or not be meant."""
        from bayesgen.encoding import suspects

        copied = [self.target]
        if not self.documents and self.kind in ("", "categorical"):
            copied += [n for n in self.names if self.kinds.get(n, "categorical") == "categorical"]
        copied = [] if self.table.schema is not None else copied
        types = selection.types
        with blamed_on(errors=(InputError,), advice=self.advice):
            n_rows = min(_HEAD, max(1000, _HEAD_CELLS // len(types)))
            head = next(self.table.rows(types, n_rows, copied), None)
        if head is None:  # a damaged Parquet file declares rows, and holds none
            raise TableError(f"{self.table.path} holds no rows that can be read")
        if holds[self.target] == "text":
            self._fold_labels(head.frame[self.target])
        for name in copied:
            self._say_codes(name, head.copied[name].str.strip(), holds[name])
        if self.documents:
            return
        X = selection.columns.select(head.frame)
        texts = suspects.documents(X) if self.model is Model.AUTO else []
        normal = {name for name, kind in kinds.items() if kind == "gaussian"}
        doubts = suspects.find(
            X,
            {*self.names} - {*texts},
            chosen=self.kinds,
            normal=normal - {*self.kinds} if self.model is Model.MIXED else (),
            remedies=_REMEDIES,
        )
        for doubt in suspects.sentences(doubts):
            note(doubt)

    def _fold_labels(self, cells: "pd.Series[str]") -> None:
        """Make one class of labels that differ by case or blanks, or say how to."""
        from bayesgen.cli.columns import fold
        from bayesgen.cli.files import read_whole

        if self.fold_labels:
            cells = read_whole(self.table, {self.target: "text"})[self.target]
        counts = cells.value_counts()
        spellings: dict[str, list[str]] = {}
        for label in counts.index:
            spellings.setdefault(fold(label), []).append(label)
        alike = {key: labels for key, labels in spellings.items() if len(labels) > 1}
        told = "; ".join(
            listed(f"{label!r} ({counts[label]})" for label in labels) for labels in alike.values()
        )
        if self.fold_labels:
            spelled = {key: labels[0].strip() for key, labels in spellings.items()}
            self.table.reading = replace(self.table.reading, labels=spelled)
        if alike:
            done = "are one class" if self.fold_labels else "are classes of their own"
            advice = "" if self.fold_labels else "; make one class of them by --fold-labels"
            note(f"labels that differ by case or blanks {done}: {told}{advice}")

    def _say_codes(self, name: str, cells: "pd.Series[str]", held: str) -> None:
        """Say which cells of a column look like codes that were read as something else."""
        decimal = self.table.decimal
        for cell in cells.unique() if held == "number" else ():
            number, is_padded = parse_written(cell, decimal), _PADDED.fullmatch(cell)
            is_written = number is not None and parse_number(cell.replace(decimal, ".")) is None
            if is_padded or is_written:
                zeros = "; if its zeros matter, as in postal codes, write a letter before each cell"
                note(
                    f"column {name!r} holds {shown(cell)}, read as the number {number:.12g}"
                    + zeros * bool(is_padded)
                )
                break
        others = set(cells.unique()) - MISSING
        of_countries = len(others) > 1 and all(map(_TWO_LETTERS.fullmatch, others))
        for word in ("None", "?", *(["NA"] if of_countries else [])):
            if held == "text" and (cells == word).any() and word not in self.table.reading.present:
                note(
                    f"column {name!r} holds {word}, read as a missing cell: if it is one of the "
                    f"categories: --not-missing {word}"
                )

    def untrained(self, kinds: dict[str, str]) -> Any:
        """Return the classifier, not yet fitted."""
        options: dict[str, Any] = {}
        if not self.kind and self.model is not Model.AUTO:
            options["columns"] = {
                kind: [name for name in kinds if kinds[name] == kind]
                for kind in dict.fromkeys(kinds.values())
            }
        elif self.kind == "bernoulli":
            options["binarize"] = None
        return classifier(self.model)(**options)


_BINNED = ("gaussian", "categorical", "bernoulli")  # kinds of models that cut columns into bins


def _parsed(
    options: list[str], model: Model, of_all: str, table: "Table", taken: set[str]
) -> dict[str, str]:
    """Return {column: kind} of ``COLUMN=KIND`` arguments."""
    from bayesgen.cli.columns import find
    from bayesgen.encoding.schema import KINDS

    kinds = KINDS if model is Model.MIXED else _BINNED
    if options and (of_all or model is Model.AUTO):
        alike = f"in a {model} model all columns are alike"
        why = alike if of_all else "auto chooses by what cells are"
        raise UserError(f"--kind is for --model mixed or forest; {why}")
    chosen: dict[str, str] = {}
    for argument in options:
        name, equals, kind = argument.rpartition("=")
        if not equals:
            raise UserError(f"--kind {argument}: write COLUMN=KIND, such as visits=poisson")
        if find(name, table) in taken:
            raise UserError(f"--kind {argument}: {name!r} is the target or dropped")
        if kind not in kinds:
            raise UserError(
                f"--kind {argument}: {model} has no kind {kind!r}; its kinds are {listed(kinds)}"
            )
        if chosen.setdefault(name, kind) != kind:
            raise UserError(f"--kind gives {name!r} two kinds, {chosen[name]} and {kind}")
    return chosen


def _holds_texts(table: "Table", name: str) -> bool:
    """Return whether the only column holds texts, as its first rows have it; say so."""
    from bayesgen.encoding import suspects

    with blamed_on(errors=(InputError,)):
        if table.kinds([name]).get(name) != "text":
            return False
        head = next(table.rows({name: None}, _HEAD)).frame
    texts = bool(suspects.documents(head))
    if texts:
        note(f"{table.path}: {name!r}, the only column, is read as texts (--text {name!r})")
    return texts


def _chosen(
    table: "Table", target: str, model: Model, drop: list[str], text: str | None
) -> tuple[list[str], bool]:
    """Return the columns of X, in the order of the file, and whether they are one of texts."""
    from bayesgen.cli.columns import find

    dropped = {find(name, table) for name in drop}
    if target in dropped:
        raise UserError(f"--drop {target}: it is the target")
    names = [name for name in table.names if name != target and name not in dropped]
    if not names:
        raise UserError(f"{table.path} has no column left to learn from")
    if text is None:
        if model is Model.MARKOV and len(names) > 1:
            raise UserError(
                f"name the column with the texts by --text; there are {listed(map(shown, names))}"
            )
        may_be_texts = model is Model.AUTO and len(names) == 1
        return names, model is Model.MARKOV or (may_be_texts and _holds_texts(table, names[0]))
    if model not in (Model.MARKOV, Model.AUTO):
        raise UserError("--text is for --model markov or auto")
    if find(text, table) not in names:
        raise UserError(f"--text {text}: it is the target or dropped")
    if others := [name for name in names if name != text]:
        unread = listed(map(shown, others))
        note(f"{table.path}: {unread} left out, a language model reads one column")
    return [text], True
