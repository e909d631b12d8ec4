r"""From texts to token codes and back: what stands before a language model.

A *document* is a string, cut into tokens by a `Tokenizer`, or a sequence of hashable tokens, taken
as it is. A `Vocabulary` numbers the tokens::

    >>> documents = Tokenizer("word")(["The dog barks.", "The cat doesn't."])
    >>> documents
    [['the', 'dog', 'barks'], ['the', 'cat', "doesn't"]]
    >>> vocabulary = Vocabulary.learn(documents)
    >>> vocabulary.tokens
    ('barks', 'cat', "doesn't", 'dog', 'the')
    >>> vocabulary.encode([["the", "cat", "barks"], ["the", "bird"], []]).tolist()
    [array([4, 1, 0]), array([ 4, -1]), array([], dtype=int64)]

Numbers are tokens by value: 1, 1.0 and True are one token.
"""

import numbers
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import repeat
from typing import Any, Literal, Self

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from bayesgen.encoding.literals import is_missing, shown
from bayesgen.errors import InputError, InputTypeError
from bayesgen.numerics.special import Array

Document = Sequence  # of hashable tokens; a string is that of its characters
Split = Literal["char", "word", "distinct word", "word part"] | Callable[[str], Iterable[Hashable]]

_PARTS = (3, 4, 5)  # characters of the parts of words
_ACCENTS = re.compile("[\u0300-\u036f]")  # vowel signs of other scripts are letters
UNKNOWN = -1  # code of a token outside the vocabulary

# ------------------------------------------------------------------------------------ documents


@dataclass(frozen=True)
class Tokenizer:
    """Cuts raw strings into tokens; documents that are sequences already are left as they are.

    Parameters
    ----------
    tokens : {"char", "word", "distinct word", "word part"} or callable
        ``"char"``: every character (Unicode code point), case and spaces included.
        ``"word"``: the text in lower case, then every run of letters, digits, underscores and
        combining marks, with apostrophes inside it (``don't`` is one word); all else separates.
        ``"distinct word"``: each of these words once.
        ``"word part"``: the text in lower case, then the 3, 4 and 5 characters at every place of
        what stands between blanks, with a blank before and after it.
        A callable gets one string and returns its tokens.
    fold : bool
        Texts in lower case and without accents, before they are cut; tokens of lists stay.

    Notes
    -----
    X is a sequence of documents: a list, tuple, 1-D array, or a pandas, polars or other Series
    that narwhals takes; or a table (2-D array or data frame) whose rows are token sequences, where
    missing cells at the end of a row are padding. Empty documents are legal.

    Texts, and tokens that are strings, are brought to Unicode's form NFC: a letter with an accent
    is one character, however it was typed.
    """

    tokens: Split = "char"
    fold: bool = False

    def __post_init__(self) -> None:
        if not callable(self.tokens) and self.tokens not in tuple(_CUTS):
            names = ", ".join(map(repr, _CUTS))
            raise ValueError(f"tokens must be one of {names}, or a callable, got {self.tokens!r}")

    def __call__(self, X) -> list[Document]:
        """Return tokens of each document."""
        return self.read(X)[0]

    def read(self, X, *, whole: bool = False) -> tuple[list[Document], bool]:
        """Return tokens of each document, and whether the documents were raw strings.

        `whole`: a string that is cut into its characters stays a string.

        Raises
        ------
        TypeError
            If X is one bare string, or something in it is neither a string nor a sequence of
            hashable tokens, or strings and sequences are mixed.
        ValueError
            If there is no document, a document is missing, or a gap or infinity is inside one.
        """
        documents, raw = _documents(X)
        if raw:
            documents = [self._normal(text) for text in documents]
        if raw and not (whole and self.tokens == "char"):
            documents = [self._split(text, i) for i, text in enumerate(documents)]
        if callable(self.tokens) or not raw:
            for i, document in enumerate(documents):
                _check_tokens(document, i)
        return documents, raw

    def _normal(self, text: str) -> str:
        return folded(text) if self.fold else _nfc(text)

    def _split(self, text: str, i: int) -> Document:
        if not callable(self.tokens):
            return _CUTS[self.tokens](text)
        tokens = self.tokens(text)
        if isinstance(tokens, str | bytes) or not isinstance(tokens, Iterable):
            why = f": the callable tokens= must return a list of tokens, got {tokens!r:.60}"
            raise _wrong(InputTypeError, i, why)
        return [_plain(token) for token in tokens]

    def words(self, text: str) -> list:
        """Return, for each token of a text, the word in which it stands, folded.

        Blanks belong to what stands before them; a run of punctuation is a word.
        """
        text = self._normal(text)
        if self.tokens == "char":
            return _words_of_characters(text)
        if self.tokens == "word part":
            return [
                words[min(max(start - 1 + size // 2, 0), len(words) - 1)]
                for words in map(_words_of_characters, text.split())
                for start, size in _places_of_parts(len(words))
            ]
        return [folded(w) if isinstance(w, str) else w for w in self._split(text, 0)]

    def join(self, document: Sequence[Hashable]):
        """Join the tokens of a generated document; a list if a callable made them."""
        if callable(self.tokens):
            return list(document)
        return ("" if self.tokens == "char" else " ").join(map(str, document))


def folded(text: str) -> str:
    """Return the text in lower case, without the accents of Latin, Greek and Cyrillic letters."""
    text = text.lower()
    if text.isascii():
        return text
    return _nfc(_ACCENTS.sub("", unicodedata.normalize("NFD", text)))


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _words(text: str) -> list[str]:
    return _word_pattern().findall(text.lower())


def _distinct_words(text: str) -> list[str]:
    return list(dict.fromkeys(_words(text)))


def _word_parts(text: str) -> list[str]:
    return [
        padded[start : start + size]
        for padded in (f" {word} " for word in text.lower().split())
        for start, size in _places_of_parts(len(padded) - 2)
    ]


def _places_of_parts(length: int) -> Iterator[tuple[int, int]]:
    """Yield where parts of a word of some length, with a blank at each end, begin, and sizes."""
    for size in _PARTS:
        for start in range(max(1, length + 3 - size)):
            yield start, size
        if length + 2 <= size:
            break


def _words_of_characters(text: str) -> list[str]:
    pieces = list(_piece_pattern().finditer(text))
    ends = [*(piece.start() for piece in pieces[1:]), len(text)]
    words: list[str] = []
    for piece, end in zip(pieces, ends, strict=True) if pieces else ():
        words += [folded(piece[0])] * (end - len(words))
    return words or [" "] * len(text)


_CUTS: dict[str, Callable[[str], list[str]]] = {
    "char": list,
    "word": _words,
    "distinct word": _distinct_words,
    "word part": _word_parts,
}


@cache
def _word_pattern() -> re.Pattern[str]:
    # \w has no combining marks, without which words of Turkish, Hindi and Arabic are split
    marks = "".join(map(chr, filter(_is_mark, range(0x300, 0x1F000))))
    return re.compile(rf"\w+(?:(?:[{marks}]+|['’](?=\w))\w*)*")


@cache
def _piece_pattern() -> re.Pattern[str]:
    return re.compile(rf"{_word_pattern().pattern}|(?:(?!\w)\S)+")


def _is_mark(code: int) -> bool:
    return unicodedata.category(chr(code))[0] == "M"


def _documents(X) -> tuple[list, bool]:
    """Return the documents as strings or lists, and whether they are strings."""
    if isinstance(X, str | bytes):
        raise TypeError("X is one string, not a sequence of documents; for one document give [X]")
    if sparse.issparse(X):
        raise TypeError(
            "X is a sparse matrix: counts do not tell the order of the tokens; give texts or token "
            "sequences, or use MultinomialNB on the counts"
        )
    X = nw.from_native(X, allow_series=True, pass_through=True)
    if isinstance(X, nw.LazyFrame):
        raise TypeError("X is a lazy frame: give X.collect()")
    if isinstance(X, nw.DataFrame):
        X = X.to_numpy()
    elif isinstance(X, nw.Series):
        X = X.to_list()
    elif hasattr(X, "__array__") and not isinstance(X, np.ndarray):
        X = np.asarray(X)
    if isinstance(X, np.ndarray):
        if X.dtype.kind == "c":
            raise ValueError("Complex data not supported: tokens are strings, numbers or booleans")
        if X.ndim == 2:
            return _rows(X), False
        if X.ndim != 1:
            raise ValueError(
                f"X must be a sequence of documents or a table with one per row, got an array of "
                f"{X.ndim} dimensions"
            )
        X = X.tolist()
    elif isinstance(X, dict | set | frozenset) or not isinstance(X, Iterable):
        raise TypeError(f"X must be a sequence of documents, got {type(X).__name__}")
    documents = list(X)
    if not documents:
        raise ValueError("X has no documents: 0 sample(s) while a minimum of 1 is required.")
    raw = isinstance(documents[0], str)
    return [_document(document, i, raw) for i, document in enumerate(documents)], raw


def _document(document, i: int, raw: bool):
    """Return one document: a string, or a list of tokens not yet looked at."""
    if isinstance(document, str):
        if raw:
            return document
        advice = "give strings only, or token sequences only"
        raise _wrong(InputTypeError, i, " is a string but document 0 is not", advice)
    if is_missing(document):
        advice = "leave it out, or give an empty document"
        raise _wrong(InputError, i, f" is missing ({document})", advice)
    kind = type(document).__name__
    if raw:
        raise _wrong(InputTypeError, i, f" must be a string like document 0, got {kind}")
    if isinstance(document, Sequence) and not isinstance(document, bytes | bytearray | memoryview):
        return [_plain(token) for token in document]
    for method in ("tolist", "to_list"):  # an array; a Series of pandas, of polars
        if hasattr(document, method) and getattr(document, "ndim", 1) == 1:
            return list(getattr(document, method)())
    remedy = "decode it to a string first" if isinstance(document, bytes | bytearray) else None
    why = f" must be a string or a sequence of tokens, got {kind}"
    raise _wrong(InputTypeError, i, why, remedy)


def _wrong[Error: (InputError, InputTypeError)](
    kind: type[Error], i: int, why: str, advice: str | None = None
) -> Error:
    return kind("document", why, row=i, advice=advice, place=" {}")


def _rows(X: Array) -> list[Document]:
    """Return rows of a table as sequences, without the missing cells at the end of each."""
    if X.shape[0] == 0:
        raise ValueError(f"X has no documents: 0 sample(s) (shape={X.shape}) while 1 is required.")
    if X.shape[1] == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    import pandas as pd

    lengths = np.where(pd.isna(X), 0, np.arange(1, X.shape[1] + 1)).max(axis=1)
    return [row[:n] for row, n in zip(X.tolist(), lengths, strict=True)]


def _check_tokens(document: Document, i: int) -> None:
    """Raise at the first token that is missing, infinite or not hashable."""
    try:
        distinct = set(document)
    except TypeError:
        for j, token in enumerate(document):
            if not isinstance(token, Hashable) or isinstance(token, tuple):
                why = f", position {j}: tokens must be hashable (strings, numbers, ...), got "
                why += type(token).__name__
                raise _wrong(InputTypeError, i, why) from None
        raise
    for token in distinct:
        if type(token) is str:
            continue
        if is_missing(token):
            what, advice = "a missing token (NaN or None)", "only the end of a row may be padded"
        elif isinstance(token, numbers.Real) and token in (float("inf"), float("-inf")):
            what, advice = "an infinity (inf)", None
        else:
            continue
        j = next(j for j, other in enumerate(document) if other is token or other == token)
        raise _wrong(InputError, i, f" has {what} at position {j}", advice)


def refuse_texts(documents: list[Document], split: Split, why: str) -> None:
    """Raise ValueError at a text where a token was to be; `why`: why they are no tokens."""
    for i, document in enumerate(documents):
        for token in document:
            if isinstance(token, str) and (
                len(token) > 1 if split == "char" else any(map(str.isspace, token))
            ):
                raise _wrong(
                    InputError,
                    i,
                    f" is a sequence with the token {shown(token)}, and {why}",
                    "give a sequence of texts, as the column X[:, 0] of an array or X['text'] of "
                    "a data frame",
                )


def _plain(token):
    """Return NumPy scalars as Python's own, strings in form NFC."""
    token = token.item() if isinstance(token, np.generic) else token
    return _nfc(token) if type(token) is str and not token.isascii() else token


# ----------------------------------------------------------------------------------- vocabulary


def _rank(token) -> tuple[int, Any]:
    """Return the sort key of a token: numbers, then strings, then the rest by what they print."""
    if isinstance(token, numbers.Real):
        return 0, token
    if isinstance(token, str):
        return 1, token
    return 2, (type(token).__name__, repr(token))


@dataclass(frozen=True)
class Vocabulary:
    """Distinct tokens, sorted; a token's code is its place.

    Parameters
    ----------
    tokens : tuple
        Sorted: numbers, strings, then anything else by type and ``repr``. `learn` sorts.
    """

    tokens: tuple[Hashable, ...]

    @classmethod
    def learn(cls, documents: Iterable[Iterable[Hashable]]) -> Self:
        """Return the tokens that occur."""
        distinct: set[Hashable] = set().union(*documents)
        return cls(tuple(sorted(distinct, key=_rank)))

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def _codes(self) -> dict[Hashable, int]:
        return {token: code for code, token in enumerate(self.tokens)}

    def encode(self, documents: Sequence[Iterable[Hashable]]) -> Array:
        """Return an (N,) object array of int64 code arrays; -1 for a token that is not here."""
        codes_of_documents = np.empty(len(documents), dtype=object)
        if documents and all(type(document) is str for document in documents):
            codes, end = self._of_characters("".join(documents)), 0  # type: ignore[arg-type]
            for i, document in enumerate(documents):
                start, end = end, end + len(document)  # type: ignore[arg-type]
                codes_of_documents[i] = codes[start:end]
            return codes_of_documents
        for i, document in enumerate(documents):
            each = map(self._codes.get, document, repeat(UNKNOWN))
            codes_of_documents[i] = np.fromiter(each, dtype=np.int64)
        return codes_of_documents

    def _of_characters(self, text: str) -> Array:
        """Return the codes (T,) of the characters of a text."""
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        table = np.full(1 + int(points.max(initial=0)), UNKNOWN, dtype=np.int64)
        for token, code in self._codes.items():
            if type(token) is str and len(token) == 1 and ord(token) < len(table):
                table[ord(token)] = code
        return table[points]

    def decode(self, codes: Iterable[int], other: Hashable = None) -> Document:
        """Return tokens of the codes; `other` for a negative code (unknown, start of document)."""
        return [self.tokens[code] if code >= 0 else other for code in codes]

    def merge(self, other: Self) -> tuple[Self, Array, Array]:
        """Return the union, and the new codes of the tokens of each: (V,) and (V_other,)."""
        union = type(self).learn([self.tokens, other.tokens])
        codes, others = union.encode([self.tokens, other.tokens])
        return union, codes, others
