"""Learning from the rows of a file that may be larger than memory, a million cells at a time.

What the columns hold is decided on the first million cells and checked on all others. Where later
rows hold something else, all rows are looked through and learning starts anew: the model is that of
all rows at once, up to the rounding of sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.cli.columns import Feature, Labelled, Reader, take
from bayesgen.cli.console import UserError, blamed_on, busy, note
from bayesgen.cli.files import read_whole, rows_of
from bayesgen.cli.models import Plan
from bayesgen.encoding.labelled import RowSample, labelled
from bayesgen.encoding.literals import count, shown
from bayesgen.errors import InputError
from bayesgen.io.tabular import joined
from bayesgen.predict.leave_one_out import SCORED

if TYPE_CHECKING:
    import pandas as pd

    from bayesgen.io.tabular import Rows

_HEAD = 10_000  # rows that are looked at once more, for what is odd about them


class _OtherRowsError(Exception):
    """Later rows hold something else than the first."""


def learn(plan: Plan) -> tuple[Any, "Tally"]:
    """A fitted classifier, and what the columns held."""
    with blamed_on(plan.table.path, (InputError,), advice=plan.advice):
        if plan.at_once:
            clf, rows, tally = prepared(plan)
            with busy("learning"), blamed_on_rows(plan, rows):
                clf.fit(rows.X, rows.labels)
            return clf, tally
        try:
            return _in_parts(plan, {})
        except _OtherRowsError:
            return _in_parts(plan, _of_all_rows(plan))


def _in_parts(plan: Plan, known: dict[str, str]) -> tuple[Any, "Tally"]:
    """`known` is what the columns hold; {} leaves it to the first rows."""
    holds, selection = known, Selection(plan)
    clf: Any = None
    learner: Any = None
    state: Any = None
    waiting: list[Labelled] = []

    def gathered(parts: list[Labelled]) -> Any:
        rows = _joined(parts)
        X = rows.X  # a pool may find fault with a row when it has all: their numbers are the index
        with blamed_on_rows(plan, rows):
            X = X if learner.passes == 1 or isinstance(X, list) else X.set_axis(rows.numbers)
            if learner.passes == 1:
                tally.sample(labelled(X, rows.labels, None))
            return learner.gather(state, X, rows.labels)

    def all_together() -> Any:
        numbers = getattr(getattr(state, "X", None), "index", ())
        return blamed_on(plan.table.path, rows=numbers, advice=plan.advice)

    for rows in rows_of(plan.table, plan.wanted, "learning"):
        if clf is None:
            holds = known or _first_look(plan, rows)
            if not known and "empty" in holds.values():
                raise _OtherRowsError
            features = plan.features(holds)
            clf, reader, tally = plan.untrained(features), Reader(features), Tally(features)
            learner = clf.__bayesgen_learner__()
        elif not known and any(
            joined({holds[name], rows.cells(name).holds()}) != holds[name]
            for name in (plan.target, *plan.checked)
            if holds[name] != "text"
        ):
            raise _OtherRowsError
        part = selection.take(rows, reader.read(rows), holds[plan.target], clf)
        if not len(part.labels):
            continue
        tally.add(part.X)
        waiting.append(part)
        # a column without a category teaches nothing; a pool, which samples, reads the same parts
        if learner.passes > 1 or state is not None or tally.all_seen():
            state, waiting = gathered(waiting), []
    selection.report(clf)
    if waiting:
        state = gathered(waiting)
    with busy("learning"), all_together():
        again = learner.then(state)
    if again is not None:
        learner, state, selection = again, None, Selection(plan)
        for rows in rows_of(plan.table, plan.wanted, "counting"):
            part = selection.take(rows, reader.read(rows), holds[plan.target], clf)
            if len(part.labels):
                state = gathered([part])
    with busy("learning"), all_together():
        clf.fitted_ = learner.settle(state)
        return clf, tally


def blamed_on_rows(plan: Plan, rows: Labelled) -> Any:
    """Errors of the library about rows, with their numbers in the file and our advice."""
    return blamed_on(plan.table.path, rows=rows.numbers, advice=plan.advice)


def prepared(plan: Plan) -> tuple[Any, Labelled, "Tally"]:
    """The classifier, not yet fitted, all rows as it takes them, and what the columns held."""
    rows = read_whole(plan.table, plan.wanted)
    holds = _first_look(plan, rows)
    with busy("sorting out columns"):
        features = plan.features(holds)
        X = Reader(features).read(rows)
    clf, tally, selection = plan.untrained(features), Tally(features), Selection(plan)
    found = selection.take(rows, X, holds[plan.target], clf)
    selection.report(clf)
    tally.add(found.X)
    return clf, found, tally


def _first_look(plan: Plan, rows: "Rows") -> dict[str, str]:
    """What the columns hold; says which are read as numbers and may be codes, or have None."""
    holds = {name: rows.cells(name).holds() for name in plan.wanted}
    for name in (plan.target, *plan.checked):
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
    return holds


def _of_all_rows(plan: Plan) -> dict[str, str]:
    """What the columns of a whole file hold."""
    found: dict[str, set[str]] = {name: set() for name in plan.wanted}
    for rows in rows_of(plan.table, plan.wanted, "sorting out columns"):
        for name, kinds in found.items():
            if "text" not in kinds:
                kinds.add(rows.cells(name).holds())
    return {name: joined(kinds) for name, kinds in found.items()}


def _joined(parts: Sequence[Labelled]) -> Labelled:
    if len(parts) == 1:
        return parts[0]
    import pandas as pd

    X, labels, numbers = zip(*parts, strict=True)
    return Labelled(pd.concat(X, ignore_index=True), *map(np.concatenate, (labels, numbers)))


@dataclass
class Selection:
    """Which rows are learned from: those with a label and, if need be, without missing cells."""

    plan: Plan
    n_rows: int = 0
    n_unlabelled: int = 0
    n_incomplete: int = 0
    first_incomplete: tuple[int, str] = (0, "")  # number of the row and name of a missing cell

    def take(self, rows: "Rows", X: Any, form: str, clf: Any) -> Labelled:
        """The rows to be learned from, with labels of the given form."""
        from sklearn.utils import get_tags

        if form == "empty":
            raise InputError(f"column {self.plan.target!r} is empty: there are no labels")
        keep, labels = rows.cells(self.plan.target).labelled(form)
        self.n_rows += rows.n_rows
        self.n_unlabelled += rows.n_rows - len(labels)
        X = X if keep.all() else take(X, keep)
        found = Labelled(X, labels, rows.first + np.flatnonzero(keep))
        takes_missing = get_tags(clf).input_tags.allow_nan and not self.plan.drop_incomplete
        if isinstance(X, list) or takes_missing:
            return found
        incomplete = X.isna().to_numpy().any(axis=1)
        if not incomplete.any():
            return found
        if not self.n_incomplete:
            at = int(np.argmax(incomplete))
            name = X.columns[X.iloc[at].isna()][0]
            self.first_incomplete = int(found.numbers[at]), name
        self.n_incomplete += int(incomplete.sum())
        return found.where(~incomplete)

    def report(self, clf: Any) -> None:
        """Say how many rows were left out, or why that cannot be done."""
        if self.n_unlabelled:
            lost = count(self.n_unlabelled, "row")
            note(f"{self.plan.table.path}: {lost} without {self.plan.target!r} dropped")
        if not self.n_incomplete:
            return
        if not self.plan.drop_incomplete:
            row, name = self.first_incomplete
            raise UserError(
                f"{type(clf).__name__} cannot learn from rows with missing cells: "
                f"{count(self.n_incomplete, 'row')}, the first is row {row} (column {name!r}); "
                "leave them out by --drop-incomplete, or use another model"
            )
        if self.n_incomplete == self.n_rows - self.n_unlabelled:
            raise UserError("every row has a missing cell: --drop-incomplete leaves none")
        lost = count(self.n_incomplete, "row")
        note(f"{self.plan.table.path}: {lost} with missing cells dropped")


@dataclass
class Tally:
    """What the columns held that were learned from."""

    features: list[Feature]
    missing: dict[str, int] = field(default_factory=dict)
    ends: dict[str, tuple[float, float]] = field(default_factory=dict)
    found: dict[str, set[Any]] = field(default_factory=dict)
    scored: RowSample | None = None  # rows that a model in parts is scored by
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

    def sample(self, rows: Any) -> None:
        """Keep a sample of labelled rows for `label_score`."""
        before = [] if self.scored is None else [self.scored]
        own = RowSample.of_rows(rows, 0, sum(part.n_rows for part in before))
        self.scored = RowSample.of_parts([*before, own], SCORED)

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
