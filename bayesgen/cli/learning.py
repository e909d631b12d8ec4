"""Learning from the rows of a file that may be larger than memory, a million cells at a time.

What the columns hold is decided by a first look at all rows.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from sklearn.utils import get_tags

from bayesgen.cli.console import blamed_on, busy
from bayesgen.cli.files import rows_of
from bayesgen.cli.models import Plan
from bayesgen.encoding.labels import RowSample, labelled
from bayesgen.io import streams
from bayesgen.predict.leave_one_out import SCORED


def learn(plan: Plan) -> tuple[Any, dict[str, str], RowSample | None]:
    """Return a fitted classifier, the kinds of the columns, and a sample of rows to score.

    There is no sample of a classifier that keeps its rows.
    """
    kinds, selection = plan.look()
    clf, path = plan.untrained(kinds), plan.table.path
    if not get_tags(clf).input_tags.allow_nan:
        selection.refuses_gaps = type(clf).__name__
    if plan.at_once:
        rows = selection.read_whole(plan.advice)
        with busy("learning"), blamed_on(path, rows=rows.numbers, advice=plan.advice):
            clf.fit(rows.X, rows.labels, groups=rows.groups)
        return clf, kinds, None
    samples: list[RowSample] = []  # at most one

    def chunks() -> Iterator[streams.Chunk]:
        for chunk in rows_of(plan.table, selection.types, "learning", advice=plan.advice):
            rows = selection.take(chunk.frame)
            if len(rows.labels) and not clf.__bayesgen_learner__().keeps_rows:
                before = sum(sample.n_rows for sample in samples)
                sample = RowSample.of_rows(labelled(rows.X, rows.labels, None), 0, before)
                samples[:] = [RowSample.of_parts([*samples, sample], SCORED)]
            yield streams.Chunk(rows.X, rows.labels, None, "", 0.0, rows.numbers)
        selection.report()
        signs.enter_context(busy("learning"))  # a pool: its members have still to be pooled

    with ExitStack() as signs, blamed_on(path, advice=plan.advice):
        clf.fitted_ = streams.learn(clf, chunks(), progressbar=False)
    return clf, kinds, samples[0] if samples else None
