"""Learning from the rows of a file that may be larger than memory, a million cells at a time.

What the columns hold is decided on the first million cells and checked on all others. Where later
rows hold something else, all rows are looked through and learning starts anew: the model is that of
all rows at once, up to the rounding of sums.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.cli.columns import Feature, Reader, take
from bayesgen.cli.console import UserError, blamed_on, busy, count, note
from bayesgen.cli.files import read_whole
from bayesgen.encoding.literals import shown
from bayesgen.io.formats import TableError
from bayesgen.io.progress import row_progress
from bayesgen.io.tabular import joined
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd

    from bayesgen.cli.files import Table
    from bayesgen.io.tabular import Rows

_HEAD = 10_000  # rows that are looked at once more, for what is odd about them


@dataclass(frozen=True)
class Plan:
    """What is to be learned from a file."""

    table: "Table"
    target: str
    names: list[str]  # of the columns of X
    checked: list[str]  # those for which it matters what they hold
    features_of: Callable[[dict[str, str]], list[Feature]]  # how they are read, by what they hold
    untrained: Callable[[list[Feature]], Any]  # the classifier of columns that are so read
    drop_incomplete: bool
    advice: str  # end of an error about a column

    @property
    def wanted(self) -> list[str]:
        """What is read from the file."""
        return [self.target, *self.names]


class _OtherRowsError(Exception):
    """Later rows hold something else than the first."""


def learn(plan: Plan) -> tuple[Any, "Tally"]:
    """A fitted classifier, and what the columns held."""
    try:
        return _one_pass(plan, {})
    except _OtherRowsError:
        return _one_pass(replace(plan, checked=[]), _of_all_rows(plan.table, plan.wanted))


def _one_pass(plan: Plan, known: dict[str, str]) -> tuple[Any, "Tally"]:
    """`known` is what the columns hold; {} leaves it to the first rows."""
    holds, selection = known, Selection(plan.target, plan.drop_incomplete)
    clf: Any = None
    learner: Any = None
    state: Any = None
    waiting: list[tuple[Any, Array, Array]] = []
    for rows in _rows(plan.table, plan.wanted, "learning"):
        if clf is None:
            holds = known or {name: rows.cells(name).holds() for name in plan.wanted}
            if not known:
                note_doubtful([plan.target, *plan.checked], rows, holds)
            if not known and "empty" in holds.values():
                raise _OtherRowsError
            with _advised(plan):
                features = plan.features_of(holds)
            clf, reader, tally = plan.untrained(features), Reader(features), Tally(features)
            learner = clf.__bayesgen_learner__()
        elif not known and any(
            joined({holds[name], rows.cells(name).holds()}) != holds[name]
            for name in (plan.target, *plan.checked)
            if holds[name] != "text"
        ):
            raise _OtherRowsError
        with _advised(plan):
            X = reader.read(rows)
        X, y, numbers = selection.take(rows, X, holds[plan.target], clf)
        if not len(y):
            continue
        tally.add(X)
        if state is None:  # nothing can be learned of a column without a category
            waiting.append((X, y, numbers))
            if not tally.all_seen():
                continue
            X, y, numbers = _joined_rows(waiting)
        with blamed_on(plan.table.path, rows=numbers):
            state = learner.gather(state, X, y)
    selection.report(clf)
    if state is None:
        X, y, numbers = _joined_rows(waiting)
        with blamed_on(plan.table.path, rows=numbers):
            state = learner.gather(state, X, y)
    with blamed_on(plan.table.path):
        clf.fitted_ = learner.settle(state)
        return clf, tally


def learn_at_once(plan: Plan) -> tuple[Any, "Tally"]:
    """The same with all rows in memory, for models that do not add up."""
    rows = read_whole(plan.table, plan.wanted)
    holds = {name: rows.cells(name).holds() for name in plan.wanted}
    note_doubtful([plan.target, *plan.checked], rows, holds)
    selection = Selection(plan.target, plan.drop_incomplete)
    with busy("sorting out columns"), _advised(plan):
        features = plan.features_of(holds)
        X = Reader(features).read(rows)
    clf, tally = plan.untrained(features), Tally(features)
    X, y, numbers = selection.take(rows, X, holds[plan.target], clf)
    selection.report(clf)
    tally.add(X)
    with busy("learning"), blamed_on(plan.table.path, rows=numbers):
        clf.fit(X, y)
    return clf, tally


def note_doubtful(names: Sequence[str], rows: "Rows", holds: dict[str, str]) -> None:
    """Say which columns are read as numbers and may be codes, or have None for a category."""
    for name in names:
        if holds[name] == "number" and (cell := rows.cells(name).padded()):
            note(
                f"column {name!r} holds {shown(cell)}, read as the number {int(cell)}: if its "
                "zeros matter, as in postal codes, write a letter before each cell"
            )
        if holds[name] == "text" and rows.cells(name).holds_none():
            note(
                f"column {name!r} holds None, read as a missing cell: if it is one of the "
                "categories, write it otherwise, as none"
            )


@contextmanager
def _advised(plan: Plan) -> Iterator[None]:
    """Errors about a column with the file, and what can be done."""
    try:
        yield
    except UserError as mistake:
        raise UserError(f"{plan.table.path}: {mistake}; {plan.advice}") from None


def _rows(table: "Table", names: Sequence[str], what: str) -> Iterator["Rows"]:
    n_rows = 0
    with row_progress(what, 1.0) as advance:
        for rows in table.rows(names):
            n_rows += rows.n_rows
            yield rows
            advance(rows.done, n_rows)
    if not n_rows:
        raise TableError(f"{table.path} has a header and no rows")


def _of_all_rows(table: "Table", names: Sequence[str]) -> dict[str, str]:
    """What the columns of a whole file hold."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for rows in _rows(table, names, "sorting out columns"):
        for name, kinds in found.items():
            if "text" not in kinds:
                kinds.add(rows.cells(name).holds())
    return {name: joined(kinds) for name, kinds in found.items()}


def _joined_rows(parts: list[tuple[Any, Array, Array]]) -> tuple[Any, Array, Array]:
    if len(parts) == 1:
        return parts[0]
    import pandas as pd

    X, y, numbers = zip(*parts, strict=True)
    return pd.concat(X, ignore_index=True), np.concatenate(y), np.concatenate(numbers)


@dataclass
class Selection:
    """Which rows are learned from: those with a label and, if need be, without missing cells."""

    target: str
    drop_incomplete: bool
    n_rows: int = 0
    n_unlabelled: int = 0
    n_incomplete: int = 0
    first_incomplete: tuple[int, str] = (0, "")  # number of the row and name of a missing cell

    def take(self, rows: "Rows", X: Any, form: str, clf: Any) -> tuple[Any, Array, Array]:
        """X, the labels, of the given form, and the numbers of the rows to be learned from."""
        from sklearn.utils import get_tags

        cells = rows.cells(self.target)
        labelled = ~cells.missing
        self.n_rows += len(labelled)
        if form == "empty":
            raise UserError(f"column {self.target!r} is empty: there are no labels")
        if not labelled.all():
            self.n_unlabelled += int((~labelled).sum())
            X, cells = take(X, labelled), cells.where(labelled)
        y = cells.strings() if form == "text" else cells.labels(form, _no_label)
        numbers = rows.first + np.flatnonzero(labelled)
        takes_missing = get_tags(clf).input_tags.allow_nan and not self.drop_incomplete
        if isinstance(X, list) or takes_missing:
            return X, y, numbers
        incomplete = X.isna().to_numpy().any(axis=1)
        if not incomplete.any():
            return X, y, numbers
        if not self.n_incomplete:
            at = int(np.argmax(incomplete))
            name = X.columns[X.iloc[at].isna()][0]
            self.first_incomplete = int(numbers[at]), name
        self.n_incomplete += int(incomplete.sum())
        return X[~incomplete], y[~incomplete], numbers[~incomplete]

    def report(self, clf: Any) -> None:
        """Say how many rows were left out, or why that cannot be done."""
        if self.n_unlabelled:
            note(f"{count(self.n_unlabelled, 'row')} without {self.target!r} dropped")
        if not self.n_incomplete:
            return
        if not self.drop_incomplete:
            row, name = self.first_incomplete
            raise UserError(
                f"{type(clf).__name__} cannot learn from rows with missing cells; there are "
                f"{self.n_incomplete}, the first is row {row} (column {name!r}): leave them out by "
                "--drop-incomplete, or use another model"
            )
        if self.n_incomplete == self.n_rows - self.n_unlabelled:
            raise UserError("every row has a missing cell: --drop-incomplete leaves none")
        note(f"{count(self.n_incomplete, 'row')} with missing cells dropped")


def _no_label(cell: Any, row: int) -> float:
    raise AssertionError(f"{cell!r} in row {row} has been checked")


@dataclass
class Tally:
    """What the columns held that were learned from."""

    features: list[Feature]
    missing: dict[str, int] = field(default_factory=dict)
    ends: dict[str, tuple[float, float]] = field(default_factory=dict)
    found: dict[str, set[Any]] = field(default_factory=dict)
    _heads: list[Any] = field(default_factory=list)

    def add(self, X: "pd.DataFrame | list[str]") -> None:
        """More rows."""
        if isinstance(X, list):
            return
        if (missing := _HEAD - sum(map(len, self._heads))) > 0:
            self._heads.append(X.head(missing))
        kinds = dict(zip(X.columns, (dtype.kind for dtype in X.dtypes), strict=True))
        self._add_numbers(X, [f.name for f in self.features if kinds[f.name] == "f"])
        for feature in self.features:
            if kinds[feature.name] != "f":
                self._add_cells(feature.name, X[feature.name], feature.kind)
            elif feature.kind == "categorical":
                self._add_found(feature.name, X[feature.name])

    def _add_numbers(self, X: "pd.DataFrame", names: list[str]) -> None:
        """Columns of floats together: one by one they would take a tenth of a millisecond each."""
        values = X[names].to_numpy()
        missing = np.isnan(values).sum(axis=0).tolist()
        ends = zip(
            np.fmin.reduce(values, axis=0, initial=np.inf).tolist(),
            np.fmax.reduce(values, axis=0, initial=-np.inf).tolist(),
            strict=True,
        )
        for name, n_missing, (low, high) in zip(names, missing, ends, strict=True):
            self.missing[name] = self.missing.get(name, 0) + n_missing
            if low <= high:
                before = self.ends.get(name, (np.inf, -np.inf))
                self.ends[name] = min(low, before[0]), max(high, before[1])

    def _add_cells(self, name: str, values: "pd.Series[Any]", kind: str) -> None:
        missing = values.isna()
        self.missing[name] = self.missing.get(name, 0) + int(missing.sum())
        if kind == "categorical":
            self._add_found(name, values)
        elif not missing.all():
            low, high = self.ends.get(name, (np.inf, -np.inf))
            self.ends[name] = min(low, values.min()), max(high, values.max())

    def _add_found(self, name: str, values: "pd.Series[Any]") -> None:
        found = {v for v in values.unique().tolist() if v is not None and v == v}
        self.found[name] = self.found.get(name, set()) | found

    @property
    def head(self) -> Any:
        """The first 10 000 rows: a data frame, or None of documents."""
        import pandas as pd

        return pd.concat(self._heads, ignore_index=True) if self._heads else None

    def all_seen(self) -> bool:
        """Whether every column of categories has one, as far as is known."""
        return all(self.found.values())
