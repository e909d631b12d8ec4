"""What looks odd about a table: columns not meant for features, rows that are copies of others."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping

import narwhals.stable.v2 as nw
import numpy as np

from bayesgen.encoding.column import Column, is_lognormal, spike_of
from bayesgen.encoding.literals import count, listed, parse_number, parse_written, shown
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
_DISTINCT = 10  # different values, from which a column is no column of a few codes
_NAMED = 5  # columns that share an oddity

_ID = re.compile(r"(?i:(^|[^a-z])(id|ids|index|uuid|row_?num(ber)?)$|^unnamed: *\d+$)|[a-z]I[Dd]$")
_DATE = re.compile(
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}([T ]\d{1,2}:\d{2}.*)?"  # 2026-11-22, with or without a time
    r"|\d{1,2}([-/.])\d{1,2}\3\d{2,4}([T ]\d{1,2}:\d{2}.*)?"  # 22.11.2026, 11/22/26
)
_TIME = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[APap]\.?[Mm]\.?)?")
# 5k, 12 kg, 90+, <5, EUR 3.50: a number beside a unit or a sign
_MEASURE = re.compile(
    r"([<>\u2264\u2265~=]{1,2} ?|[A-Z]{3} )?[-+]?(\d+|\d{1,3}(,\d{3})+)([.,]\d+)?"
    r"( ?[^\W\d_]{1,4}(/[^\W\d_]{1,4})?|\+)?"
)

REMEDIES = {  # what a user of Python does; COLUMN stands for a name
    "drop": "leave it out",
    "kind": "make its kind {kind}",
    "missing": "replace it by NaN",
    "texts": "read it by a model of texts (MarkovNB; LogLinearPool, of columns with names)",
    "bins": "cut it into bins, or take a LogLinearPool",
    "convert": "convert it, with missing cells for what is no number",
}


class ColumnWarning(Facts, UserWarning):
    """Columns look like identifiers, dates, unread numbers, or hold one or two values."""


def find(
    X,
    used: Collection[str] | None = None,
    chosen: bool | Collection[str] = False,
    text: bool = True,
    normal: Collection[str] = (),
    remedies: Mapping[str, str] = REMEDIES,
) -> dict[str, str]:
    """Return what is odd about the columns of a data frame, and what to do.

    Of the first 10 000 rows, and of columns with at least 20 cells that are not missing:

    - text in which 9 of 10 different values (of 200) are dates, and at least 5 are different;
    - text in which 9 of 10 different values are times, or numbers, or numbers with a unit, and at
      least 10 are different;
    - text with more than two different values for every three cells;
    - whole numbers, all different, that increase from row to row or have no gaps, or in a column
      whose name says that it identifies rows (``id``, ``row_id``, ``PassengerId``, ``index``);
    - a least or largest number that repeats and is farther from all others than they are from each
      other, such as -999: it may stand for a missing cell;
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
    remedies : {remedy: text}
        How the user does what `REMEDIES` says.

    Returns
    -------
    {name: why}
        Columns of a frame without names are x0, x1, ...
    """
    oddities = {}
    for name, column in _columns(X, used):
        if not column.present.any() and _all_missing(X, name):
            oddities[name] = "holds nothing but missing cells, and is left out"
            continue
        if column.kind == "text" and not text:
            continue
        named = chosen if isinstance(chosen, bool) else name in chosen
        with np.errstate(over="ignore"):
            why = _oddity(column, name, named, remedies)
            if not why and name in normal and column.kind in ("integer", "real"):
                present = column.values[column.present].astype(np.float64)
                if len(present) >= _FEW:
                    why = _two_numbers(present, remedies) or _no_normal(present, remedies)
        if why:
            oddities[name] = why
    return oddities


def documents(X) -> list[str]:
    """Return columns with names that hold texts of several words, most of them different."""
    if feature_names(X) is None:
        return []
    return [
        name
        for name, column in _columns(X)
        if column.kind == "text" and column.present.sum() >= _FEW and not column.nominal
        if _many(distinct := sorted(column.learn()), int(column.present.sum()))
        and _words(distinct) >= _SENTENCE
    ]


def _columns(X, used: Collection[str] | None = None) -> Iterator[tuple[str, Column]]:
    """Yield names and first cells of the columns of a data frame that can be read."""
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


def _all_missing(X, name: str) -> bool:
    """Tell whether a column whose first cells are missing has no cell at all."""
    table = Table(X)
    names = list(table.names or [f"x{j}" for j in range(table.n_columns)])
    return table.n_rows > 0 and not table.column(names.index(name)).present.any()


def _all_real(frame) -> Array | None:
    """Return all cells of a frame of finite floats: one read for thousands of columns."""
    if not all(dtype == nw.Float64 for dtype in frame.schema.dtypes()):
        return None
    cells = frame.to_numpy()
    return cells if cells.dtype == np.float64 and not np.isinf(cells).any() else None


def warn_of(oddities: dict[str, str]) -> None:
    """Warn of all that `find` has found in one `ColumnWarning`, if there is any."""
    if oddities:
        which = "this column" if len(oddities) == 1 else f"these {len(oddities)} columns"
        warn(f"look at {which} again: {'; '.join(sentences(oddities))}", ColumnWarning)


def sentences(oddities: Mapping[str, str]) -> list[str]:
    """Return a sentence about each oddity that `find` has found."""
    whys: dict[str, list[str]] = {}
    for name, why in oddities.items():
        whys.setdefault(why, []).append(name)
    each = []
    for why, names in whys.items():
        column = shlex.quote(names[0]) if len(names) == 1 else "COLUMN"
        each.append(f"{_listed(names)} {why.replace('COLUMN', column)}")
    return each


def _listed(names: list[str]) -> str:
    return listed(map(repr, names), _NAMED) + (" each" if len(names) > 1 else "")


def _two_numbers(present: Array, remedies: Mapping[str, str]) -> str:
    """Say that a Normal density is no model of two values."""
    if len(set(present[:_FEW].tolist())) > 2:
        return ""
    low, high = present.min(), present.max()
    if low == high or not ((present == low) | (present == high)).all():
        return ""
    kind = "bernoulli" if (low, high) == (0, 1) else "categorical"
    remedy = remedies["kind"].format(kind=kind)
    return f"holds {low:g} and {high:g} alone, for which a Normal is no model: {remedy}"


def _no_normal(present: Array, remedies: Mapping[str, str]) -> str:
    """Say that another kind is a better model of a real column."""
    spike = spike_of(present)
    if spike is not None and (share := (present == spike).mean()) >= _WARNED:
        return (
            f"holds {spike:g} in {share:.0%} of its cells, for which a Normal is no model: "
            f"{remedies['bins']}"
        )
    if is_lognormal(present):
        remedy = remedies["kind"].format(kind="lognormal")
        return f"is positive and skewed, its sd above its mean: {remedy}"
    return ""


def _oddity(column: Column, name: str, chosen: bool, remedies: Mapping[str, str]) -> str:
    n_present = int(column.present.sum())
    if n_present < _FEW:
        return ""
    if column.kind == "text":
        return _of_text(sorted(column.learn()), n_present, chosen or column.nominal, remedies)
    present = column.values[column.present]
    if column.kind in ("integer", "real"):
        first = present[0]
        if first not in (0, 1) and (present == first).all():
            return f"holds one value, {first:g}: it tells nothing"
        if _numbers_rows(present, name):
            return f"numbers the rows: {remedies['drop']}"
        if (code := _far_code(present.astype(np.float64))) is not None:
            n = int((present == code).sum())
            return (
                f"holds {code:g} in {count(n, 'row')}, far from all other numbers: if it stands "
                f"for a missing cell, {remedies['missing'].format(code=f'{code:g}')}"
            )
    return ""


def _numbers_rows(present: Array, name: str) -> bool:
    """Tell whether whole numbers, all different, are in order, gapless, or identify by name."""
    if np.any(present != np.trunc(present)):  # a file's numbers are all floats
        return False
    low, high = float(present.min()), float(present.max())
    if np.all(present[1:] > present[:-1]):
        return True
    if _ID.search(name) is None and high - low + 1 != len(present):
        return False
    return len(np.unique(present)) == len(present)


def _far_code(present: Array) -> float | None:
    """Return the least or largest number if it repeats far from all others, or None."""
    distinct, counts = np.unique(present, return_counts=True)
    if len(distinct) < _DISTINCT:
        return None
    ends = ((0, distinct[1:]), (-1, distinct[:-1]))
    for end, others in ends:
        gap = np.abs(distinct[end] - others).min()
        if counts[end] > 1 and gap > others[-1] - others[0]:
            return float(distinct[end])
    return None


def _of_text(distinct: list[str], n_present: int, chosen: bool, remedies: Mapping[str, str]) -> str:
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
        others = [text for text in unread if not _is_written_number(text)]
        if len(distinct) >= _DISTINCT and len(others) <= (1 - _MOST) * len(some):
            but = f" but for {listed(map(shown, others), 3)}" if others else ""
            form = f", such as {shown(unread[0])}" if len(unread) > len(others) == 0 else ""
            remedy = remedies["convert"]
            if others:
                codes = " ".join(remedies["missing"].format(code=shlex.quote(t)) for t in others)
                remedy = codes if "{" in remedies["missing"] else remedy
            return f"holds numbers as text{form}{but}, each a category of its own: {remedy}"
        for pattern, what, remedy in (
            (_TIME, "times", "make a number of it, such as minutes"),
            (_MEASURE, "numbers with a unit", "write the numbers alone, all in one unit"),
        ):
            alike = sum(pattern.fullmatch(text.strip()) is not None for text in some)
            if len(distinct) >= _DISTINCT and alike >= _MOST * len(some):
                return f"holds {what} as text, such as {shown(unread[0])}: {remedy}"
    if _many(distinct, n_present):
        texts = _words(distinct) >= _SENTENCE
        read = f", or {remedies['texts']}" if texts else ""
        return (
            f"has {len(distinct)} categories in {n_present} rows, which say nothing of other "
            f"rows: {remedies['drop']}{read}"
        )
    return ""


def _is_written_number(text: str) -> bool:
    return any(parse_written(text, decimal) is not None for decimal in (".", ","))


def _many(distinct: list[str], n_present: int) -> bool:
    return len(distinct) > _CATEGORIES * n_present


def _words(distinct: list[str]) -> float:
    """Return the mean number of words of some of the texts, counted up to `_SENTENCE`."""
    some = distinct[:: max(1, len(distinct) // _PARSED)]
    return sum(len(text.split(maxsplit=_SENTENCE)) for text in some) / len(some)


# ------------------------------------------------------------------------------------------------
# Rows that are exact copies of others: a join, a form sent twice, oversampling.

_LEAST = 0.02  # share of rows that repeat another from which on groups are made
_FEWEST = 5  # rows that repeat another: of a few coarse rows some are equal by chance
_TIMES = 10  # as many equal pairs of rows as by chance
_MOST_CELLS = 20_000_000  # cells


class CopiedRowsWarning(Facts, UserWarning):
    """Training rows are exact copies of others, and are left out together."""


def copied_rows(X, labels: Array, done: str) -> Array | None:
    """Return the code (N,) of each distinct row of a table; None where rows are not copies.

    Parameters
    ----------
    X : rows as the user has them
    labels : (N,)
    done : str
        What is done about copies, for the warning.

    Notes
    -----
    Equal rows with equal labels are copies where all of this holds: the table has a column of real
    numbers; at least half of the distinct rows occur once or have a value of their own in such a
    column; at least 5 rows, and 2 % of the rows, repeat another one; there are 10 times as many
    equal pairs of rows as independent columns would give by chance. Rows without a real number
    other than 0 are no copies: "none" is often said by several columns at once.
    """
    import pandas as pd

    frame = _pandas_frame(X)
    if frame is None or frame.size > _MOST_CELLS or len(frame) < 2:
        return None
    fewest = max(_FEWEST, _LEAST * len(frame))
    reals = frame.iloc[:, [j for j, dtype in enumerate(frame.dtypes) if dtype.kind == "f"]]
    for _, values in reals.items():  # copies repeat the values of every column
        if len(frame) - values.nunique(dropna=False) < fewest:
            return None
    cells = reals.astype(np.float64).to_numpy()
    whole = np.where(np.isfinite(cells), cells, 0.0) % 1 == 0
    cells = cells[:, ~whole.all(axis=0)]
    if not cells.shape[1]:
        return None
    try:
        keys = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    except TypeError:  # cells that cannot be hashed
        return None
    _, keys = np.unique(keys, return_inverse=True)
    blank = (cells == 0).all(axis=1)
    keys[blank] = len(keys) + np.arange(blank.sum())
    label_codes = pd.factorize(np.asarray(labels), use_na_sentinel=False)[0]
    _, codes, count = np.unique(
        keys.astype(np.int64) * (1 + label_codes.max()) + label_codes,
        return_inverse=True,
        return_counts=True,
    )
    n_copies = len(codes) - len(count)
    distinct = max((count == 1).sum(), pd.DataFrame(cells).nunique().max())
    if n_copies < fewest or distinct < len(count) / 2:
        return None
    columns = [labels, *(values for _, values in frame.items())]
    by_chance = len(codes) ** 2 * np.prod([_equal_cells(values) for values in columns])
    if (count * (count - 1.0)).sum() < _TIMES * by_chance:
        return None
    share = (count[codes] > 1).mean()
    warn(
        CopiedRowsWarning(
            f"{share:.0%} of the rows are exact copies of one another, label included",
            f". Leave-one-out leaves copies out together; {done}",
            advice="leave repeated rows out, or give groups= where rows belong to subjects",
        )
    )
    return codes


def _pandas_frame(X):
    """X as a pandas frame; None of texts and sparse rows."""
    import pandas as pd

    if isinstance(X, np.ndarray):
        return pd.DataFrame(X, copy=False) if X.ndim == 2 and X.dtype.kind in "biufO" else None
    if not is_table(X):
        return None
    return X if isinstance(X, pd.DataFrame) else nw.from_native(X).to_pandas()


def _equal_cells(values) -> float:
    """Return the probability that two cells of a column are equal."""
    import pandas as pd

    share = pd.Series(values).value_counts(normalize=True, dropna=False).to_numpy()
    return float(np.square(share).sum())
