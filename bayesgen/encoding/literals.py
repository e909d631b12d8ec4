"""What text stands for: a missing cell, a number. The one place that decides it.

A number is what Python's ``float`` takes, spaces around it included, but without an underscore:
``1_000`` is a number to Python alone::

    >>> parse_number(" 2.5e3 "), parse_number("1_000"), parse_written("1,234.5")
    (2500.0, None, 1234.5)
"""

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Real
from typing import Any

Json = dict[str, Any]  # an object of a JSON file

# what pandas.read_csv takes for missing, and the question mark of the UCI repository; blanks too
_NOTHING = "|#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None"
MISSING = frozenset(f"{_NOTHING}|n/a|nan|null|?".split("|"))


def is_missing(cell) -> bool:
    """Tell whether a cell is None, NaN, pandas.NA or NaT."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    compared = isinstance(cell, Real) or type(cell).__name__ == "datetime64"  # without NumPy
    return compared and bool(cell != cell)


def parse_number(text: str) -> float | None:
    """Return the number that a text stands for, or None."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _grouped(decimal: str, other: str) -> re.Pattern[str]:
    thousands = rf"(?P<mark>[\s'\u2019{other}])\d{{3}}((?P=mark)\d{{3}})*"
    return re.compile(rf"[-+]?[1-9]\d{{0,2}}{thousands}({re.escape(decimal)}\d+)?")


_MONEY = re.compile(r"^([-+]?)\s*[$€£¥]\s*(?=[\d.,])|(?<=\d)()\s*[€£¥$]$")
_GROUPED = {".": _grouped(".", ","), ",": _grouped(",", ".")}


def parse_written(text: str, decimal: str = ".") -> float | None:
    """Return the number that a text in a file stands for, or None.

    Understood are what Python reads, thousands (``1,234.5``, ``1 234``, ``1'234``), percentages
    (``5 %`` is 0.05), amounts of money, negative ones in brackets too, and the minus sign U+2212.

        >>> parse_written("($1,234.50)"), parse_written("12,5 %", decimal=",")
        (-1234.5, 0.125)
    """
    if decimal == "." and (number := parse_number(text)) is not None:
        return number
    text = text.strip().replace("\N{MINUS SIGN}", "-")
    if text.endswith("%"):
        number = parse_written(text[:-1], decimal)
        return None if number is None else number / 100
    if re.fullmatch(r"\([^-+]*\)", text):
        text = f"-{text[1:-1]}"
    text = _MONEY.sub(r"\1\2", text, count=1)
    if grouped := _GROUPED[decimal].fullmatch(text):
        text = text.replace(grouped["mark"], "")
    elif decimal == "," and "." in text:
        return None
    return parse_number(text.replace(decimal, "."))


def shortened(text: str, most: int = 1000) -> str:
    """Return a message without the middle of a long cell, name or argument that it repeats."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} [...] {text[-half:]}"


def one_line(value, most: int = 60) -> str:
    """Return a text without line breaks; the middle of a long one is left out."""
    text = " ".join(str(value).split())
    end = (most - 3) // 2  # names of columns often differ in their ends
    return text if len(text) <= most else f"{text[: most - 3 - end]}...{text[-end:]}"


def listed(texts: Iterable[str], most: int = 8, last: str = ", ") -> str:
    """Join texts, before the last of them `last`; the first few of many."""
    texts = list(texts)
    if len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most} more"
    return last.join([*([", ".join(texts[:-1])] if texts[1:] else ()), *texts[-1:]])


def count(n: float, what: str, gap: str = " ") -> str:
    """Return ``1 row``, ``2 rows``, ``12 000 rows``; `gap` stands between thousands."""
    return f"{n:,.0f}".replace(",", gap) + f" {what}" + ("" if n == 1 else "s")


def near_name(word, names: Iterable) -> str | None:
    """Return the known name that an unknown word is likely to stand for."""
    names, word = [str(name) for name in names], str(word)
    alike = [name for name in names if name.strip().lower() == word.strip().lower()]
    return next(iter([*alike, *get_close_matches(word, names, n=1)]), None)


def did_you_mean(word, names: Iterable) -> str:
    """Return the end of an error about an unknown word: the nearest known one, or all of them."""
    names = [str(name) for name in names]
    near = near_name(word, names)
    return f"; known are {listed(names, 100)}" if near is None else f"; did you mean {near!r}?"


def shown(cell, most: int = 80) -> str:
    """Return a cell as errors show it: on one line, and not in full if it is long."""
    text = repr(cell[: most + 1] if isinstance(cell, str) else cell)
    return text if len(text) <= most + 2 else f"{text[:most]}...{text[:1] * isinstance(cell, str)}"


def without_controls(text: str) -> str:
    """Replace by question marks what steers a terminal or turns text around.

    Those of Unicode's category C (control, format, surrogate, private), but for line feeds.
    """
    if text.isprintable() or text == "\n":
        return text
    steering = {c for c in set(text) - {"\n"} if unicodedata.category(c)[0] == "C"}
    return text.translate(dict.fromkeys(map(ord, steering), "?"))
