"""What looks odd about a table: columns not meant for features, rows that are copies of others."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import numpy as np

from bayesgen.encoding.column import Column
from bayesgen.encoding.literals import count, listed, shown
from bayesgen.encoding.tables import Table, feature_names, is_table
from bayesgen.errors import Facts, warn
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd

_LOOKED_AT = 10_000  # first rows of a table
_FEW = 20  # cells below which nothing is said of a column
_SOME = 200  # distinct texts of a column that are looked at
_MOST = 0.9  # of them that begin with digits where numbers are meant
_CATEGORIES = 2 / 3  # as many different texts as cells
_SENTENCE = 4  # words, on average, of a column of sentences
_DISTINCT = 10  # different values, from which a column is no column of a few codes
_NAMED = 5  # columns that share an oddity

_ID = re.compile(r"(?i:(^|[^a-z])(id|ids|index|uuid|row_?num(ber)?)$|^unnamed: *\d+$)|[a-z]I[Dd]$")
_NUMBER = re.compile(r"[-+\u2212(<>=~\u2264\u2265$\u20ac\u00a3\u00a5 ]*[.,]?\d")  # begins so

REMEDIES = {  # what a user of Python does; COLUMN stands for a name
    "drop": "leave it out",
    "kind": "make its kind {kind}",
    "missing": "replace it by NaN",
    "texts": "read it by a model of texts (MarkovNB; LogLinearPool, of columns with names)",
    "convert": "make numbers of it, such as days or minutes",
}


class ColumnWarning(Facts, UserWarning):
    """Columns look like identifiers or unread numbers, or hold one or two values."""


def find(
    X,
    used: Collection[str] | None = None,
    chosen: Collection[str] = (),
    text: bool = True,
    normal: Collection[str] = (),
    remedies: Mapping[str, str] = REMEDIES,
) -> dict[str, str]:
    """Return what is odd about the columns of a data frame, and what to do.

    Of the first 10 000 rows, and of columns with at least 20 cells that are not missing:

    - whole numbers, all different, that increase from row to row or have no gaps, or in a column
      whose name says that it identifies rows (``id``, ``row_id``, ``PassengerId``, ``index``);
    - text with more than two different values for every three cells;
    - a single value, unless it is 0 or 1: indicator columns are constant in many a subset;
    - text with at least 10 different values, 9 of 10 of which begin with digits and have no more
      letters than digits: numbers, with a unit or without, dates and times;
    - two different numbers in a column of `normal`;
    - a least or largest number that repeats and is farther from all others than they are from each
      other, such as -999: it may stand for a missing cell.

    And of all rows, however few: nothing but missing cells.

    Parameters
    ----------
    X : data frame; of anything else nothing is said
    used : names of the columns that are features; None: all
    chosen : names
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
        present = column.values if column.codes is not None else column.values[column.present]
        n_present = int(column.present.sum())
        why = ""
        if not n_present and _all_missing(X, name):
            why = "holds nothing but missing cells, and is left out"
        elif n_present >= _FEW and column.kind == "text":
            if text:
                distinct = sorted(present.tolist())
                why = _of_text(distinct, n_present, name in chosen or column.nominal, remedies)
        elif n_present >= _FEW and column.kind in ("integer", "real"):
            with np.errstate(over="ignore"):
                why = _of_numbers(present, name, remedies)
                why = why or (_two_numbers(present, remedies) if name in normal else "")
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
        if _many(distinct := sorted(column.values.tolist()), int(column.present.sum()))
        and _words(distinct) >= _SENTENCE
    ]


def _columns(X, used: Collection[str] | None = None) -> Iterator[tuple[str, Column]]:
    """Yield names and first cells of the columns of a data frame that can be read."""
    if not is_table(X):
        return
    table = Table(nw.from_native(X).head(_LOOKED_AT).to_native())
    chosen = None if used is None else frozenset(used)
    for j, name in enumerate(_names(table)):
        if chosen is not None and name not in chosen:
            continue
        try:
            yield name, table.column(j)
        except (TypeError, ValueError):  # whoever reads it for good will say so
            continue


def _names(table: Table) -> list[str]:
    return list(table.names or [f"x{j}" for j in range(table.n_columns)])


def _all_missing(X, name: str) -> bool:
    """Tell whether a column whose first cells are missing has no cell at all."""
    table = Table(X)
    return table.n_rows > 0 and not table.column(_names(table).index(name)).present.any()


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
        together = listed(map(repr, names), _NAMED) + (" each" if len(names) > 1 else "")
        each.append(f"{together} {why.replace('COLUMN', column)}")
    return each


def _of_numbers(present: Array, name: str, remedies: Mapping[str, str]) -> str:
    first = present[0]
    if (present == first).all():
        return "" if first in (0, 1) else f"holds one value, {first:g}: it tells nothing"
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
    if np.all(present[1:] > present[:-1]):
        return True
    gapless = float(present.max()) - float(present.min()) + 1 == len(present)
    is_named = _ID.search(name) is not None
    return (gapless or is_named) and len(np.unique(present)) == len(present)


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


def _two_numbers(present: Array, remedies: Mapping[str, str]) -> str:
    """Say that a Normal density is no model of two values."""
    low, high = present.min(), present.max()
    if not ((present == low) | (present == high)).all():
        return ""
    kind = "bernoulli" if (low, high) == (0, 1) else "categorical"
    remedy = remedies["kind"].format(kind=kind)
    return f"holds {low:g} and {high:g} alone, for which a Normal is no model: {remedy}"


def _of_text(distinct: list[str], n_present: int, chosen: bool, remedies: Mapping[str, str]) -> str:
    if len(distinct) == 1:
        return f"holds one value, {shown(distinct[0])}: it tells nothing"
    some = distinct[:: max(1, len(distinct) // _SOME)]
    others = [text for text in some if not _may_be_number(text)]
    if not chosen and len(distinct) >= _DISTINCT and len(others) <= (1 - _MOST) * len(some):
        if others:
            what = f"numbers as text but for {listed(map(shown, others), 3)}"
            codes = (remedies["missing"].format(code=shlex.quote(text)) for text in others)
            remedy = " ".join(dict.fromkeys(codes))
        else:
            what = f"numbers, dates or times as text, such as {shown(some[0])}"
            remedy = remedies["convert"]
        return f"holds {what}, each a category of its own: {remedy}"
    if _many(distinct, n_present):
        read = f", or {remedies['texts']}" if _words(distinct) >= _SENTENCE else ""
        return (
            f"has {len(distinct)} categories in {n_present} rows, which say nothing of other "
            f"rows: {remedies['drop']}{read}"
        )
    return ""


def _may_be_number(text: str) -> bool:
    """Tell whether a text begins with digits, and has no more letters than digits."""
    digits, letters = (sum(map(kind, text)) for kind in (str.isdigit, str.isalpha))
    return _NUMBER.match(text) is not None and letters <= digits


def _many(distinct: list[str], n_present: int) -> bool:
    return len(distinct) > _CATEGORIES * n_present


def _words(distinct: list[str]) -> float:
    """Return the mean number of words of some of the texts, counted up to `_SENTENCE`."""
    some = distinct[:: max(1, len(distinct) // _SOME)]
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
    reals = frame.loc[:, [dtype.kind == "f" for dtype in frame.dtypes]]
    if any(len(frame) - cells.nunique(dropna=False) < fewest for _, cells in reals.items()):
        return None  # copies repeat the values of every column
    cells = reals.to_numpy(np.float64, na_value=np.nan)
    cells = cells[:, (np.where(np.isfinite(cells), cells, 0.0) % 1 != 0).any(axis=0)]
    if not cells.shape[1]:
        return None
    columns = [pd.Series(np.asarray(labels)), *(column for _, column in frame.items())]
    try:
        hashes = [pd.util.hash_pandas_object(rows, index=False) for rows in (frame, columns[0])]
    except TypeError:  # cells that cannot be hashed
        return None
    blank = (cells == 0).all(axis=1)
    keys = hashes[0].to_numpy() + hashes[1].to_numpy()
    keys[blank] = np.arange(blank.sum())
    codes, _ = pd.factorize(keys)
    count = np.bincount(codes)
    n_copies = len(codes) - len(count)
    distinct = max((count == 1).sum(), pd.DataFrame(cells).nunique().max())
    if n_copies < fewest or distinct < len(count) / 2:
        return None
    by_chance = len(codes) ** 2 * np.prod([_equal_cells(column) for column in columns])
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
    """X as a pandas frame; None of texts and sparse rows.

    Its numbers are in the machine's byte order: pandas hashes no others, as FITS files hold.
    """
    import pandas as pd

    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.dtype.kind not in "biufO":
            return None
        return pd.DataFrame(X.astype(X.dtype.newbyteorder("="), copy=False), copy=False)
    if not is_table(X):
        return None
    frame = X if isinstance(X, pd.DataFrame) else nw.from_native(X).to_pandas()
    foreign = {
        name: dtype.newbyteorder("=")
        for name, dtype in frame.dtypes.items()
        if isinstance(dtype, np.dtype) and not dtype.isnative
    }
    return frame.astype(foreign) if foreign else frame


def _equal_cells(column: "pd.Series") -> float:
    """Return the probability that two cells of a column are equal."""
    share = column.value_counts(normalize=True, dropna=False).to_numpy()
    return float(np.square(share).sum())
