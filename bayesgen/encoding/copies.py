"""Rows of a table that are exact copies of others: a join, a form sent twice, oversampling."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from bayesgen.encoding.tables import is_table
from bayesgen.errors import Facts, warn
from bayesgen.numerics.special import Array

_LEAST = 0.02  # share of rows that repeat another from which on groups are made
_FEWEST = 5  # rows that repeat another: of a few coarse rows some are equal by chance
_TIMES = 10  # as many equal pairs of rows as by chance
_LOOKED_AT = 20_000_000  # cells


class CopiedRowsWarning(Facts, UserWarning):
    """Training rows are exact copies of others, and are left out together."""


def copied_rows(X: Any, labels: Array, done: str) -> Array | None:
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

    frame = _frame(X)
    if frame is None or frame.size > _LOOKED_AT or len(frame) < 2:
        return None
    reals = [values for _, values in frame.items() if _is_real(values)]
    if not reals:
        return None
    try:
        keys = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    except TypeError:  # cells that cannot be hashed
        return None
    _, keys = np.unique(keys, return_inverse=True)
    blank = np.all([_cells(values) == 0 for values in reals], axis=0)
    keys[blank] = len(keys) + np.arange(blank.sum())
    label_codes = pd.factorize(np.asarray(labels), use_na_sentinel=False)[0]
    _, codes, count = np.unique(
        keys.astype(np.int64) * (1 + label_codes.max()) + label_codes,
        return_inverse=True,
        return_counts=True,
    )
    n_copies = len(codes) - len(count)
    distinct = max((count == 1).sum(), max(values.nunique() for values in reals))
    if n_copies < max(_FEWEST, _LEAST * len(codes)) or distinct < len(count) / 2:
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


def _frame(X: Any) -> Any:
    """X as a pandas frame; None of texts and sparse rows."""
    import pandas as pd

    if isinstance(X, np.ndarray):
        return pd.DataFrame(X) if X.ndim == 2 and X.dtype.kind in "biufO" else None
    if not is_table(X):
        return None
    return X if isinstance(X, pd.DataFrame) else nw.from_native(X).to_pandas()


def _equal_cells(values: Any) -> float:
    """Return the probability that two cells of a column are equal."""
    import pandas as pd

    share = pd.Series(values).value_counts(normalize=True, dropna=False).to_numpy()
    return float(np.square(share).sum())


def _is_real(values: Any) -> bool:
    """Tell whether a column holds numbers that are not all whole."""
    if getattr(values.dtype, "kind", "O") != "f":
        return False
    cells = _cells(values)
    return bool((cells[np.isfinite(cells)] % 1 != 0).any())


def _cells(values: Any) -> Array:
    cells: Array = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return cells
