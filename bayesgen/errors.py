"""Errors that carry facts: the row, the column and what to do, which nobody reads out of a message.

The library counts rows from 0 and advises in terms of its own arguments. Whoever knows better, as
the command line does of a file, tells the same error with another number and another advice::

    >>> error = InputError("column 'age' holds 'old'", ", not a number", row=3, column="age")
    >>> str(error)
    "column 'age' holds 'old' in row 3, not a number"
    >>> error.told(row=17, advice="leave it out by --drop age")
    "column 'age' holds 'old' in row 17, not a number; leave it out by --drop age"
"""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from numbers import Integral
from typing import Any, Self


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn at the line of the caller's code, however deep in the package this is called."""
    from importlib.util import find_spec

    names = ("bayesgen", "sklearn", "contextlib", "functools")
    origins = [spec.origin for name in names if (spec := find_spec(name)) and spec.origin]
    # shorter than a file name: CPython 3.12 compares all but its last letter
    places = [origin.removesuffix(".py").removesuffix("__init__") for origin in origins]
    warnings.warn(message, category, skip_file_prefixes=tuple(places))


class Facts(Exception):  # noqa: N818 - of warnings too
    """An error or a warning, with the facts that its message is made of.

    Parameters
    ----------
    what : str
        What is wrong, up to the row.
    why : str
        The rest of the sentence, behind the row.
    row : int, optional
        Position from 0 among the rows that were given.
    column : str or int, optional
        Name of the column; its position, where columns have no names.
    advice : str, optional
        What to do, in terms of the library's arguments.
    place : str
        How the row is called between `what` and `why`.
    """

    row: int | None = None
    column: Any = None
    advice: str | None = None

    def __init__(
        self,
        what: str = "",
        why: str = "",
        *,
        row: Any = None,
        column: Any = None,
        advice: str | None = None,
        place: str = " in row {}",
    ) -> None:
        self.what, self.why, self.place = what, why, place
        self.column, self.advice = column, advice
        self.row = None if row is None else int(row)
        super().__init__(str(self))

    def told(self, row: Any, advice: str | None) -> str:
        """Return the message with another number of the row and another advice."""
        place = "" if row is None else self.place.format(row)
        return f"{self.what}{place}{self.why}" + (f"; {advice}" if advice else "")

    def __str__(self) -> str:
        return self.told(self.row, self.advice)

    def within(self, place: str, rows: Any = None) -> Self:
        """Return the same error, of a part of the rows; `rows` are their numbers in the whole."""
        error = copy(self)
        error.what = f"{place}: {self.what}" if place else self.what
        if rows is not None and self.row is not None:
            error.row = int(rows[self.row])
        return error

    def __reduce__(self) -> Any:
        """Errors travel between processes, whatever their arguments are."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[Facts], args: tuple[Any, ...], facts: dict[str, Any]) -> Facts:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class InputError(Facts, ValueError):
    """A cell, a label or a row that cannot be used."""


class InputTypeError(Facts, TypeError):
    """A cell, a label or a row of a type that cannot be used."""


@contextmanager
def placed(place: str, rows: Any = None) -> Iterator[None]:
    """Name the part of the rows that an error is about; `rows` are the numbers to call them by."""
    try:
        yield
    except Facts as error:
        raise error.within(place, rows) from error
    except (ValueError, TypeError) as error:
        if not place or type(error) not in (ValueError, TypeError):
            raise
        raise type(error)(f"{place}: {error}") from error


def refuse_below(least: int, **counts: Any) -> None:
    """Raise ValueError unless each argument is an integer, and not below `least`."""
    for name, value in counts.items():
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")


def refuse_not_positive(**numbers: Any) -> None:
    """Raise ValueError unless each argument is above 0."""
    for name, value in numbers.items():
        if not value > 0:
            raise ValueError(f"{name} must be > 0, got {value!r}")


def refuse_unknown(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Raise ValueError, with the words that an argument may be, unless it is one of them."""
    if value not in (allowed := tuple(allowed)):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
