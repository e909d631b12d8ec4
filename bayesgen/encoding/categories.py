r"""Categories of one column: what may be one, which are declared, their codes 0 .. K-1, and back.

A category is a str, int, float or bool, and all of a column are of one of these types. Text and
numbers do not mix: neither within a column, nor between learning and encoding.
"""

import numbers
from collections.abc import Iterable
from decimal import Decimal

import numpy as np

from bayesgen.errors import InputError
from bayesgen.numerics.special import Array

Values = tuple  # of str, int, float or bool, all of one of these types

EXACT = 2**53  # from here on float64 does not tell neighbouring integers apart


def canonical(values: Iterable, where: str) -> Values:
    """Return declared values as Python scalars of one type; errors begin with `where`."""
    scalars: list = []
    for value in values:
        if isinstance(value, str):
            scalars.append(str.__str__(value))
        elif isinstance(value, bool | np.bool):
            scalars.append(bool(value))
        elif isinstance(value, int | np.integer) and -(2**63) <= value < 2**64:
            scalars.append(int(value))
        elif isinstance(value, numbers.Real | Decimal) and np.isfinite(float(value)):
            scalars.append(float(value))
        else:
            raise TypeError(
                f"{where}: {value!r} ({type(value).__name__}) cannot be a category; "
                "give strings, as column.astype(str), finite numbers or booleans"
            )
    if not scalars:
        raise ValueError(f"{where}: there must be at least one category, got none")
    if len({isinstance(value, str) for value in scalars}) == 2:
        raise TypeError(f"{where}: text and numbers are mixed; make them all of one kind")
    if len(set(scalars)) < len(scalars):
        twice = next(value for k, value in enumerate(scalars) if value in scalars[:k])
        raise ValueError(f"{where}: {twice!r} is given twice; give each category once")
    return of_one_type(scalars, scalars)


def of_one_type(values: Iterable, among: Iterable) -> Values:
    """Return numbers as the narrowest of bool, int and float that holds `among`; text as it is."""
    among = list(among)
    if any(isinstance(v, str) for v in among) or all(isinstance(v, bool) for v in among):
        return tuple(values)
    if all(isinstance(v, int) or (v == int(v) and abs(v) < EXACT) for v in among):
        return tuple(int(v) for v in values)
    return tuple(float(v) for v in values)


def is_text(values: Values) -> bool:
    """Tell whether these categories are strings; False if there are none."""
    return bool(values) and isinstance(values[0], str)


def form(values: Values) -> str:
    """Return what errors call categories of this type."""
    return "text" if is_text(values) else "numbers"


def decode(codes: Array, values: Values, label: str) -> Array:
    """Return the values (N,) of codes, of the narrowest dtype; None or NaN where one is NaN.

    ValueError if a code is not NaN or one of 0 .. K-1.
    """
    missing = np.isnan(codes) if values else np.ones(len(codes), dtype=bool)
    k = np.where(missing, len(values), codes)
    bad = ~missing & ~((k >= 0) & (k < len(values)) & (k == np.trunc(k)))
    if bad.any():
        row = int(np.argmax(bad))
        why = f" is no category; codes are 0 .. {len(values) - 1}, or NaN for a missing cell"
        raise InputError(f"{label}: code {codes[row]:g}", why, row=row)
    if is_text(values):
        return np.array([*values, None], dtype=object)[k.astype(np.intp)]
    if missing.any() or not values:
        return np.array([*values, np.nan], dtype=np.float64)[k.astype(np.intp)]
    return np.array(values)[k.astype(np.intp)]


def merge(a: Values, b: Values, label: str) -> tuple[Values, Array, Array]:
    """Return the categories of both, and the codes among them of those of each.

    They are sorted, unless the order of one holds that of the other. TypeError for text and
    numbers.
    """
    if a and b and is_text(a) != is_text(b):
        raise TypeError(
            f"the categories of {label} are {form(a)} on one side and {form(b)} on the other; "
            "convert one of them"
        )
    merged = a if _within(b, a) else b if _within(a, b) else sorted({*a, *b})
    values = of_one_type(merged, a + b)
    code = {value: k for k, value in enumerate(values)}
    mine, theirs = (np.array([code[value] for value in each], dtype=np.intp) for each in (a, b))
    return values, mine, theirs


def _within(short: Values, long: Values) -> bool:
    """Tell whether `short` is `long` with values left out, in the same order."""
    remaining = iter(long)
    return all(value in remaining for value in short)
