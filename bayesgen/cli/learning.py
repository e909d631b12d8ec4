"""Learning from the rows of a file that may be larger than memory, a million cells at a time.

What the columns hold is decided by a first look at all rows.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sklearn.utils import get_tags

from bayesgen.cli.columns import LabelledTable
from bayesgen.cli.console import blamed_on, busy
from bayesgen.cli.files import rows_of
from bayesgen.cli.models import Plan
from bayesgen.encoding.labelled import RowSample, labelled
from bayesgen.io import streams
from bayesgen.predict.leave_one_out import SCORED

if TYPE_CHECKING:
    import pandas as pd


def learn(plan: Plan) -> tuple[Any, "Tally"]:
    """Return a fitted classifier, and what the columns held."""
    kinds, selection = plan.look()
    clf, tally, path = plan.untrained(kinds), Tally(kinds), plan.table.path
    if not get_tags(clf).input_tags.allow_nan:
        selection.refuses_gaps = type(clf).__name__
    if plan.at_once:
        rows = selection.read_whole(plan.advice)
        tally.add(rows, False)
        with busy("learning"), blamed_on(path, rows=rows.numbers, advice=plan.advice):
            clf.fit(rows.X, rows.labels, groups=rows.groups)
        return clf, tally
    scored = not clf.__bayesgen_learner__().keeps_rows  # a pool keeps a sample of its own

    def chunks() -> Iterator[streams.Chunk]:
        for chunk in rows_of(plan.table, selection.types, "learning", advice=plan.advice):
            rows = selection.take(chunk.frame)
            if len(rows.labels):
                tally.add(rows, scored)
            yield streams.Chunk(rows.X, rows.labels, None, "", 0.0, rows.numbers)
        selection.report()
        signs.enter_context(busy("learning"))  # a pool: its members have still to be pooled

    with ExitStack() as signs, blamed_on(path, advice=plan.advice):
        clf.fitted_ = streams.learn(clf, chunks(), progressbar=False)
    return clf, tally


@dataclass
class Tally:
    """What the columns held that were learned from; `kinds` is {column: kind}."""

    kinds: dict[str, str]
    categories: dict[str, set[Any]] = field(default_factory=dict)
    scored: RowSample | None = None  # rows that a model in parts is scored by
    _numbers: "list[pd.DataFrame]" = field(default_factory=list)  # a table for each chunk

    def add(self, rows: LabelledTable, scored: bool) -> None:
        """Count more rows; `scored`: keep a sample of them for `label_score`."""
        import pandas as pd

        if scored:
            before = [] if self.scored is None else [self.scored]
            chunk = labelled(rows.X, rows.labels, None)
            sample = RowSample.of_rows(chunk, 0, sum(sample.n_rows for sample in before))
            self.scored = RowSample.of_parts([*before, sample], SCORED)
        X = rows.X
        if X.ndim == 1:  # documents
            return
        numbers = X.select_dtypes(["number", "bool"]).astype(float)
        columns = {"missing": X.isna().sum(), "least": numbers.min(), "most": numbers.max()}
        self._numbers.append(pd.DataFrame(columns))
        for name in X.columns:
            if self.kinds[name] == "categorical" or X[name].dtype == object:
                self.categories.setdefault(name, set()).update(X[name].dropna().unique().tolist())

    @property
    def numbers(self) -> "pd.DataFrame | None":
        """Return by column: missing cells, the least and the largest number; None of documents."""
        import pandas as pd

        if not self._numbers:
            return None
        columns = pd.concat(self._numbers).groupby(level=0)
        return columns.agg({"missing": "sum", "least": "min", "most": "max"})
