"""What text stands for: a missing cell, a truth value, a number. The one place that decides it.

A number is what Python's ``float`` takes, spaces around it included, but without an underscore:
``1_000`` is a number to Python alone. A truth value is true or false, in capitals or not::

    >>> parse_number(" 2.5e3 "), parse_number("1_000"), parse_boolean("TRUE")
    (2500.0, None, True)
"""

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

Json = dict[str, Any]  # an object of a JSON file

# what pandas.read_csv takes for missing; beside it a cell of nothing but blanks
_NOTHING = "|#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None"
MISSING = frozenset(f"{_NOTHING}|n/a|nan|null".split("|"))

_BOOLEANS = {"true": True, "false": False}


def parse_number(text: str) -> float | None:
    """Return the number that a text stands for, or None."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


BLANKS = " \u00a0\u2009\u202f"  # between thousands: no-break and thin ones too
CURRENCIES = "$€£¥"
_PLAIN = {".": re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"),
          ",": re.compile(r"[-+]?(\d+,?\d*|,\d+)([eE][-+]?\d+)?")}  # fmt: skip


def _grouped(decimal: str, other: str) -> re.Pattern[str]:
    thousands = rf"(?P<mark>[{BLANKS}'\u2019{other}])\d{{3}}((?P=mark)\d{{3}})*"
    return re.compile(rf"[-+]?[1-9]\d{{0,2}}{thousands}({re.escape(decimal)}\d+)?")


_GROUPED = {".": _grouped(".", ","), ",": _grouped(",", ".")}


def parse_written(text: str, decimal: str = ".") -> tuple[float, str] | None:
    """Return the number that a text stands for and its unit, or None.

    Understood are what Python reads, thousands (``1,234.5``, ``1 234``, ``1'234``), percentages
    (unit ``"%"``; ``5 %`` is 0.05), amounts of money (unit ``"$"``), negative numbers in brackets
    as accountants write them, and the minus sign U+2212.

        >>> parse_written("(1,234.50)"), parse_written("12,5 %", decimal=",")
        ((-1234.5, ''), (0.125, '%'))
    """
    value = parse_number(text) if decimal == "." else None
    if value is not None:
        return value, ""
    text = text.strip().replace("\N{MINUS SIGN}", "-")
    negative = text.startswith("(") and text.endswith(")")
    text = text[1:-1].strip() if negative else text
    unit = ""
    if text.endswith("%"):
        unit, text = "%", text[:-1].rstrip()
    else:
        sign = text[:1] if text[:1] in "+-" else ""
        bare = text[len(sign) :].strip()
        for symbol in CURRENCIES:
            if bare.startswith(symbol) or bare.endswith(symbol):
                unit, text = symbol, sign + bare.strip(symbol).strip()
                break
    if negative and text[:1] in "+-":
        return None
    if grouped := _GROUPED[decimal].fullmatch(text):
        text = text.replace(grouped["mark"], "")
    elif not _PLAIN[decimal].fullmatch(text):
        return None
    value = float(text.replace(decimal, "."))
    return (-value if negative else value) / (100 if unit == "%" else 1), unit


def parse_boolean(text: str) -> bool | None:
    """Return the truth value that a text stands for, or None."""
    return _BOOLEANS.get(text.strip().lower())


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
