"""Columns of a table that look as if they were not meant for features, or not in this form."""

import re
from collections.abc import Collection, Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from bayesgen.encoding.column import Column, is_lognormal, spike_of
from bayesgen.encoding.literals import listed, parse_number, shown
from bayesgen.encoding.tables import Table, feature_names, is_table
from bayesgen.errors import Facts, warn
from bayesgen.numerics.special import Array

_LOOKED_AT = 10_000  # first rows of a table
_FEW = 20  # cells below which nothing is said of a column
_PARSED = 200  # distinct texts of a column that are looked at for numbers and dates
_MOST = 0.9  # of them that must be one or the other
_CATEGORIES = 2 / 3  # as many different texts as cells
_SENTENCE = 4  # words, on average, of a column of sentences
_WARNED = 0.5  # share of one number in a column of others; a Normal may do below
_NAMED = 5  # columns that share an oddity

_ID = re.compile(r"(?i:(^|[^a-z])(id|ids|index|uuid|row_?num(ber)?)$|^unnamed: *\d+$)|[a-z]I[Dd]$")
_DATE = re.compile(
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}([T ]\d{1,2}:\d{2}.*)?"  # 2026-11-22, with or without a time
    r"|\d{1,2}([-/.])\d{1,2}\3\d{2,4}([T ]\d{1,2}:\d{2}.*)?"  # 22.11.2026, 11/22/26
)
# 3,5 and 12 % and 1,234.50: numbers to people, not to Python
_NUMBER = re.compile(r"[-+]?(\d+|\d{1,3}([,.' ]\d{3})+)([.,]\d+)? ?%?")


class ColumnWarning(Facts, UserWarning):
    """Columns look like identifiers, dates, unread numbers, or hold one or two values."""


def find(
    X: Any,
    used: Collection[str] | None = None,
    chosen: bool | Collection[str] = False,
    text: bool = True,
    normal: Collection[str] = (),
) -> dict[str, str]:
    """What is odd about the columns of a data frame.

    Of the first 10 000 rows, and of columns with at least 20 cells that are not missing:

    - text in which 9 of 10 different values (of 200) are dates, and at least 5 are different;
    - text in which 9 of 10 different values are numbers, and at least 10 are different;
    - text with more than two different values for every three cells;
    - whole numbers, all different, in a column whose name says that it identifies rows (``id``,
      ``row_id``, ``PassengerId``, ``index``, ``Unnamed: 0``);
    - a single value, unless it is 0 or 1: indicator columns are constant in many a subset;
    - two different numbers in a column of `normal`; numbers there of which a value has half or
      more (`spike_of`), or that are positive and skewed (`is_lognormal`).

    And of all rows, however few: nothing but missing cells.

    Parameters
    ----------
    X : data frame; of anything else nothing is said
    used : names of the columns that are features; None: all
    chosen : bool, or names
        Columns whose kind the user has named: dates and numbers as text are meant there.
    text : bool
        Whether text stands for categories; otherwise it was read as numbers, and is not looked at.
    normal : names
        Columns of a table of several kinds that have a Normal density because they hold numbers.

    Returns
    -------
    {name: why}
        Columns of a frame without names are x0, x1, ...
    """
    out = {}
    for name, column in _columns(X, used):
        if not column.present.any() and _all_missing(X, name):
            out[name] = "holds nothing but missing cells, and is left out"
            continue
        if column.kind == "text" and not text:
            continue
        why = _oddity(column, name, chosen if isinstance(chosen, bool) else name in chosen)
        if not why and name in normal:
            why = _two_numbers(column) or _no_normal(column)
        if why:
            out[name] = why
    return out


def documents(X: Any) -> list[str]:
    """Columns with names that hold texts of several words, most of them different."""
    if feature_names(X) is None:
        return []
    return [
        name
        for name, column in _columns(X)
        if column.kind == "text" and column.present.sum() >= _FEW and not column.nominal
        if _many(distinct := sorted(column.learn()), int(column.present.sum()))
        and _words(distinct) >= _SENTENCE
    ]


def _columns(X: Any, used: Collection[str] | None = None) -> Iterator[tuple[str, Column]]:
    """(name, the first cells) of the columns of a data frame that can be read."""
    if not is_table(X):
        return
    head = nw.from_native(X).head(_LOOKED_AT)
    table, numbers = Table(head.to_native()), _all_real(head)
    chosen = None if used is None else frozenset(used)
    for j, name in enumerate(table.names or [f"x{j}" for j in range(table.n_columns)]):
        if chosen is not None and name not in chosen:
            continue
        try:
            column = table.column(j) if numbers is None else Column(name, "real", numbers[:, j])
        except (TypeError, ValueError):  # whoever reads it for good will say so
            continue
        yield name, column


def _all_missing(X: Any, name: str) -> bool:
    """Whether no row of a frame has a cell of a column whose first cells are missing."""
    table = Table(X)
    names = list(table.names or [f"x{j}" for j in range(table.n_columns)])
    return table.n_rows > 0 and not table.column(names.index(name)).present.any()


def _all_real(frame: Any) -> Array | None:
    """All cells of a frame of finite floats: one read for thousands of columns."""
    if not all(dtype == nw.Float64 for dtype in frame.schema.dtypes()):
        return None
    cells = frame.to_numpy()
    return cells if cells.dtype == np.float64 and not np.isinf(cells).any() else None


def warn_of(found: dict[str, str]) -> None:
    """One `ColumnWarning` of all that `find` has found, if there are any."""
    if found:
        whys: dict[str, list[str]] = {}
        for name, why in found.items():
            whys.setdefault(why, []).append(name)
        each = "; ".join(f"{_listed(names)} {why}" for why, names in whys.items())
        warn(
            f"look at {'this column' if len(found) == 1 else f'these {len(found)} columns'} "
            f"again: {each}",
            ColumnWarning,
        )


def _listed(names: list[str]) -> str:
    return listed(map(repr, names), _NAMED) + (" each" if len(names) > 1 else "")


def _two_numbers(column: Column) -> str:
    """That a Normal density is no model of two values."""
    present = column.values[column.present] if column.kind in ("integer", "real") else np.zeros(0)
    if len(present) < _FEW or len(set(present[:_FEW].tolist())) > 2:
        return ""
    low, high = present.min(), present.max()
    if low == high or not ((present == low) | (present == high)).all():
        return ""
    kind = "bernoulli" if (low, high) == (0, 1) else "categorical"
    return f"holds {low:g} and {high:g} alone, for which a Normal is no model: make its kind {kind}"


def _no_normal(column: Column) -> str:
    """That another kind is a better model of a real column."""
    present = column.values[column.present] if column.kind in ("integer", "real") else np.zeros(0)
    if len(present) < _FEW:
        return ""
    spike = spike_of(present.astype(np.float64))
    if spike is not None and (share := (present == spike).mean()) >= _WARNED:
        return (
            f"holds {spike:g} in {share:.0%} of its cells, for which a Normal is no model: cut it "
            "into bins, or take a LogLinearPool"
        )
    if is_lognormal(present.astype(np.float64)):
        return "is positive and skewed, its sd above its mean: make its kind lognormal"
    return ""


def _oddity(column: Column, name: str, chosen: bool) -> str:
    n_present = int(column.present.sum())
    if n_present < _FEW:
        return ""
    if column.kind == "text":
        return _of_text(sorted(column.learn()), n_present, chosen or column.nominal)
    present = column.values[column.present]
    if column.kind in ("integer", "real"):
        first = present[0]
        if first not in (0, 1) and (present == first).all():
            return f"holds one value, {first:g}: it tells nothing"
        whole = bool(np.all(present == np.trunc(present)))  # a file's numbers are all floats
        if _ID.search(name) and whole and len(np.unique(present)) == len(present):
            return "numbers the rows: leave it out"
    return ""


def _of_text(distinct: list[str], n_present: int, chosen: bool) -> str:
    if len(distinct) == 1:
        return f"holds one value, {shown(distinct[0])}: it tells nothing"
    some = distinct[:: max(1, len(distinct) // _PARSED)]
    if not chosen:
        dates = sum(_DATE.fullmatch(text.strip()) is not None for text in some)
        if len(distinct) >= 5 and dates >= _MOST * len(some):
            return (
                f"holds dates as text, such as {shown(some[0])}, each a category of its own: make "
                "a number or a season of it"
            )
        unread = [text for text in some if parse_number(text) is None]
        others = [text for text in unread if not _NUMBER.fullmatch(text.strip())]
        if len(distinct) >= 10 and len(others) <= (1 - _MOST) * len(some):
            but = f" but for {shown(others[0])}" if others else ""
            form = f", such as {shown(unread[0])}" if len(unread) > len(others) == 0 else ""
            return (
                f"holds numbers as text{form}{but}, each a category of its own: convert it, with "
                "missing cells for what is no number"
            )
    if _many(distinct, n_present):
        texts = _words(distinct) >= _SENTENCE
        models = "MarkovNB; LogLinearPool, of columns with names"
        read = f", or read it by a model of texts ({models})" if texts else ""
        return (
            f"has {len(distinct)} categories in {n_present} rows, which say nothing of other "
            f"rows: leave it out{read}"
        )
    return ""


def _many(distinct: list[str], n_present: int) -> bool:
    return len(distinct) > _CATEGORIES * n_present


def _words(distinct: list[str]) -> float:
    """Mean number of words of some of the texts, counted up to `_SENTENCE`."""
    some = distinct[:: max(1, len(distinct) // _PARSED)]
    return sum(len(text.split(maxsplit=_SENTENCE)) for text in some) / len(some)
