"""Learning from the rows of a file that may be larger than memory, a million cells at a time.

What the columns hold is decided by a first look at all rows.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.cli.columns import Labelled, labels_of
from bayesgen.cli.console import UserError, blamed_on, busy, note
from bayesgen.cli.files import read_whole, rows_of
from bayesgen.cli.models import Look, Plan
from bayesgen.encoding.labelled import RowSample, labelled
from bayesgen.encoding.literals import count
from bayesgen.io import streams
from bayesgen.predict.leave_one_out import SCORED

if TYPE_CHECKING:
    import pandas as pd


def learn(plan: Plan) -> tuple[Any, "Tally"]:
    """Return a fitted classifier, and what the columns held."""
    if plan.at_once:
        clf, rows, tally = prepared(plan)
        with busy("learning"), blamed_on_rows(plan, rows):
            clf.fit(rows.X, rows.labels)
        return clf, tally
    look = plan.look()
    clf, tally = plan.untrained(look.kinds), Tally(look.kinds)
    scored = not clf.__bayesgen_learner__().keeps_rows  # a pool keeps a sample of its own
    types = {**look.columns.types, plan.target: look.label_type}

    def chunks() -> Iterator[streams.Chunk]:
        selection = Selection(plan)
        for part in rows_of(plan.table, types, "learning", advice=plan.advice):
            rows = selection.take(part.frame, look, clf)
            if len(rows.labels):
                tally.add(rows, scored)
            yield streams.Chunk(rows.X, rows.labels, None, "", 0.0, rows.numbers)
        selection.report(clf)
        signs.enter_context(busy("learning"))  # a pool: its members have still to be pooled

    source = streams.Source(chunks, None)
    with ExitStack() as signs, blamed_on(plan.table.path, advice=plan.advice):
        clf.fitted_ = streams.learn(clf, source, progressbar=False)
    return clf, tally


def blamed_on_rows(plan: Plan, rows: Labelled) -> Any:
    """Errors of the library about rows, with their numbers in the file and our advice."""
    return blamed_on(plan.table.path, rows=rows.numbers, advice=plan.advice)


def prepared(plan: Plan) -> tuple[Any, Labelled, "Tally"]:
    """Return the classifier, not yet fitted, all rows, and what the columns held."""
    look = plan.look()
    clf, tally, selection = plan.untrained(look.kinds), Tally(look.kinds), Selection(plan)
    types = {**look.columns.types, plan.target: look.label_type}
    rows = selection.take(read_whole(plan.table, types, plan.advice), look, clf)
    selection.report(clf)
    tally.add(rows, False)
    return clf, rows, tally


@dataclass
class Selection:
    """Which rows are learned from: those with a label and, if need be, without missing cells."""

    plan: Plan
    n_rows: int = 0
    n_unlabelled: int = 0
    n_incomplete: int = 0
    first_incomplete: tuple[int, str] = (0, "")  # number of the row and name of a missing cell

    def take(self, frame: "pd.DataFrame", look: Look, clf: Any) -> Labelled:
        """Return the rows to be learned from."""
        from sklearn.utils import get_tags

        known = frame[self.plan.target].notna().to_numpy()
        self.n_rows += len(frame)
        self.n_unlabelled += int((~known).sum())
        frame = frame if known.all() else frame[known]
        rows = Labelled(
            look.columns.read(frame), labels_of(frame[self.plan.target], self.plan.table)
        )
        takes_missing = get_tags(clf).input_tags.allow_nan and not self.plan.drop_incomplete
        if self.plan.documents or takes_missing:
            return rows
        incomplete = rows.X.isna()
        wrong = incomplete.any(axis=1).to_numpy()
        if not wrong.any():
            return rows
        if not self.n_incomplete:
            i = int(np.argmax(wrong))
            name = rows.X.columns[incomplete.iloc[i]][0]
            self.first_incomplete = int(rows.numbers[i]), name
        self.n_incomplete += int(wrong.sum())
        return rows.where(~wrong)

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
    """What the columns held that were learned from; `kinds` is {column: kind}."""

    kinds: dict[str, str]
    n_rows: int = 0
    categories: dict[str, set[Any]] = field(default_factory=dict)
    scored: RowSample | None = None  # rows that a model in parts is scored by
    _missing: list[Any] = field(default_factory=list)  # of each chunk, a number for each column
    _ends: list[Any] = field(default_factory=list)

    def add(self, rows: Labelled, scored: bool) -> None:
        """Count more rows; `scored`: keep a sample of them for `label_score`."""
        import pandas as pd

        if scored:
            before = [] if self.scored is None else [self.scored]
            part = labelled(rows.X, rows.labels, None)
            sample = RowSample.of_rows(part, 0, sum(part.n_rows for part in before))
            self.scored = RowSample.of_parts([*before, sample], SCORED)
        X = rows.X
        if X.ndim == 2:
            self._missing.append(X.isna().sum())
            numbers = X.select_dtypes(["number", "bool"])
            self._ends.append(pd.DataFrame({"least": numbers.min(), "most": numbers.max()}))
            for name in X.columns:
                if self.kinds[name] == "categorical" or X[name].dtype == object:
                    seen = self.categories.setdefault(name, set())
                    seen.update(X[name].dropna().unique().tolist())
        self.n_rows += len(X)

    @property
    def missing(self) -> dict[str, int]:
        """{column: missing cells}; {} of documents."""
        return dict(sum(self._missing[1:], self._missing[0])) if self._missing else {}

    @property
    def ends(self) -> dict[str, tuple[float, float]]:
        """{column: least and largest number} of columns of numbers."""
        import pandas as pd

        if not self._ends:
            return {}
        ends = (
            pd.concat(self._ends)
            .astype(float)
            .groupby(level=0)
            .agg({"least": "min", "most": "max"})
        )
        return {name: (ends.loc[name, "least"], ends.loc[name, "most"]) for name in ends.index}
