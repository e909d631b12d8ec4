r"""N-grams of documents: counting them, finding them again, and the contexts that they have.

A document is an array of token codes 0 .. V-1, or `UNKNOWN` for a token outside the vocabulary.
An n-gram is a row of n codes: a token, and before it the n-1 tokens of its context, `START` where
they lie before the document. Sets of n-grams are arrays (G, n) of distinct rows in lexicographic
order; the n-grams of one context stand together in them.

Nothing here knows of probabilities. Notation of the docstrings: N documents of T tokens in all,
C classes, G n-grams, M contexts, V tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Self

import numpy as np
from scipy import sparse

from bayesgen.errors import InputError
from bayesgen.families.contract import Stats
from bayesgen.families.errors import refuse_negative
from bayesgen.families.names import CLASS
from bayesgen.families.records import array
from bayesgen.numerics.special import Array

START = -2  # stands before the first token; sorts before every token
UNKNOWN = -1  # a token outside the vocabulary

_MOST_CONTEXTS = 4096  # a table of the prior lists every possible context up to so many

# -------------------------------------------------------------------------------------- counting


def _base(n_tokens: int) -> int:
    """Number of codes: the tokens, START and UNKNOWN; a Python int, which cannot overflow."""
    return int(n_tokens) - START


def concatenate(X: Array, n_tokens: int | None = None) -> tuple[Array, Array]:
    """All codes of the documents (T,), and their lengths (N,); codes are checked."""
    lengths = np.fromiter(map(len, X), dtype=np.int64, count=len(X))
    parts = [document for document, length in zip(X, lengths, strict=True) if length]
    tokens = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    if tokens.dtype.kind not in "iu":
        raise TypeError(f"documents must be arrays of integer token codes, got {tokens.dtype}")
    tokens = tokens.astype(np.int64, copy=False)
    bad = tokens < UNKNOWN
    if n_tokens is not None:
        bad |= tokens >= n_tokens
    if bad.any():
        first = int(np.argmax(bad))
        row = int(np.searchsorted(np.cumsum(lengths), first, side="right"))
        last = "" if n_tokens is None else n_tokens - 1
        why = f" has the token code {tokens[first]}; codes are 0 .. {last}, and -1 for an unknown "
        raise InputError("document", f"{why}token", row=row, place=" {}")
    return tokens, lengths


def _ngrams(tokens: Array, lengths: Array, order: int) -> list[Array]:
    """`order` columns (T,): the tokens before each token, padded by START, and the token."""
    position = np.arange(len(tokens)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    columns = []
    for back in range(order - 1, 0, -1):
        column = np.full(len(tokens), START, dtype=np.int64)
        column[back:] = tokens[:-back]
        column[position < back] = START
        columns.append(column)
    return [*columns, tokens]


def without_lone_tokens(X: Array) -> Array:
    """Documents in which a token that no other document has is outside the vocabulary."""
    tokens, lengths = concatenate(X)
    row = np.repeat(np.arange(len(X)), lengths)
    n_tokens = int(tokens.max(initial=-1)) + 1
    first = np.full(n_tokens + 1, len(X))
    last = np.full(n_tokens + 1, -1)
    np.minimum.at(first, tokens, row)  # the last place is that of UNKNOWN
    np.maximum.at(last, tokens, row)
    tokens = np.where(first[tokens] == last[tokens], UNKNOWN, tokens)
    documents = np.empty(len(X), dtype=object)
    documents[:] = np.split(tokens, np.cumsum(lengths)[:-1])
    return documents


def known_ngrams(X: Array, order: int, n_tokens: int) -> tuple[Array, Array, Array]:
    """Distinct n-grams (U, order) of the tokens in the vocabulary, and where these tokens are.

    A token outside the vocabulary has no n-gram, but stands in the contexts of others.

    Returns
    -------
    grams : (U, order)
    gram : (T,) n-gram of each of the tokens
    row : (T,) its document
    """
    tokens, lengths = concatenate(X, n_tokens)
    columns, row = _ngrams(tokens, lengths, order), np.repeat(np.arange(len(X)), lengths)
    is_word = tokens != UNKNOWN
    if not is_word.all():
        columns, row = [column[is_word] for column in columns], row[is_word]
    return *_distinct(columns, len(row), n_tokens), row


def _distinct(columns: list[Array], n: int, n_tokens: int) -> tuple[Array, Array]:
    """Distinct rows (U, k) in lexicographic order, and the place of each of the n rows there."""
    base = _base(n_tokens)
    key, width = np.zeros(n, dtype=np.int64), 1
    for column in columns:
        if width * base >= 2**63:  # replace the prefix by its rank: order kept, width at most n
            _, key = np.unique(key, return_inverse=True)
            width = n
        key = key * base + (column - START)
        width *= base
    if columns and width == base ** len(columns) and width <= n:  # few: marked, not sorted
        ranks, inverse = _ranks(key, width)
        codes = np.unravel_index(ranks, (base,) * len(columns))
        return np.stack(codes, axis=1) + START, inverse
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    rows = np.empty((len(first), len(columns)), dtype=np.int64)
    for k, column in enumerate(columns):
        rows[:, k] = column[first]
    return rows, inverse


def _ranks(key: Array, width: int) -> tuple[Array, Array]:
    """Distinct keys 0 .. width-1 in order, and the place of each there."""
    if width > max(len(key), 1 << 16):
        return np.unique(key, return_inverse=True)
    seen = np.zeros(width, dtype=bool)
    seen[key] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[key]


def first_of_contexts(grams: Array) -> Array:
    """Return (G,) which n-grams, in order, are the first of their context."""
    fresh = np.ones(len(grams), dtype=bool)
    fresh[1:] = (grams[1:, :-1] != grams[:-1, :-1]).any(axis=1)
    return fresh


# --------------------------------------------------------------------------- finding them again


class PrefixTree:
    """Prefix tree over distinct sorted rows of codes: finds rows, a column at a time.

    A node of depth k is numbered by the rank of its k-prefix, so that the last depth numbers the
    rows themselves. Keys are (node above, code): they fit 64 bits whatever the order.
    """

    def __init__(self, rows: Array, n_tokens: int) -> None:
        self._base = _base(n_tokens)
        self._levels = []
        self._any = len(rows) > 0
        above = np.zeros(len(rows), dtype=np.int64)
        fresh = np.arange(len(rows)) == 0
        for column in rows.T:
            fresh[1:] |= column[1:] != column[:-1]
            self._levels.append(above[fresh] * self._base + (column[fresh] - START))
            above = np.cumsum(fresh) - 1

    def path(self, rows: Array) -> Iterator[Array]:
        """Nodes (n,) at depth 0, 1, .. k of rows or prefixes (n, k); -1 where there is none."""
        node = np.full(len(rows), 0 if self._any else -1, dtype=np.int64)
        yield node
        for keys, column in zip(self._levels, rows.T, strict=False):
            if self._any:
                key = node * self._base + (column - START)  # negative below an absent node
                place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
                node = np.where(keys[place] == key, place, -1)
            yield node

    def find(self, rows: Array) -> Array:
        """Return (n,) number of each row or prefix, -1 where absent."""
        *_, node = self.path(rows)
        return node


class GramIndex:
    """What follows from the distinct n-grams of a training set; holds no counts.

    Parameters
    ----------
    grams : (G, n) distinct n-grams in lexicographic order
    n_tokens : int
        V, the size of the vocabulary.

    Attributes
    ----------
    tree : PrefixTree
        Of the n-grams; depth n-1 numbers the H contexts that have a continuation.
    starts : (H,) array of int
        First n-gram of each of those contexts.
    """

    def __init__(self, grams: Array, n_tokens: int) -> None:
        self.grams, self.n_tokens = grams, n_tokens
        self.tree = PrefixTree(grams, n_tokens)
        self.starts = np.flatnonzero(first_of_contexts(grams))

    @cached_property
    def contexts(self) -> Array:
        """Return (M, n-1) contexts with a continuation or to which n-grams lead; or all there are.

        The last n-1 tokens of an n-gram are the context of what comes next. Without n-grams every
        context that is possible is listed: ValueError if there are more than 4096.
        """
        order = self.grams.shape[1]
        if len(self.grams) == 0:
            return _every_context(order, self.n_tokens)
        both = np.concatenate([self.grams[self.starts, :-1], self.grams[:, 1:]])
        return _distinct(list(both.T), len(both), self.n_tokens)[0]

    @property
    def n_contexts(self) -> int:
        """M, also where there are too many for a list of them."""
        if len(self.grams) == 0:
            return _n_possible_contexts(self.grams.shape[1], self.n_tokens)
        return len(self.contexts)

    @cached_property
    def prefixes(self) -> PrefixTree:
        """Finds rows of `contexts`."""
        return PrefixTree(self.contexts, self.n_tokens)

    @cached_property
    def context_of(self) -> Array:
        """Return (G,) place of each n-gram's context among `contexts`."""
        return self.prefixes.find(self.grams[:, :-1])

    def totals(self, counts: Array) -> Array:
        """Return (C, H) sums over the n-grams of each context that has a continuation."""
        if len(self.starts) == 0:
            return np.zeros((len(counts), 0))
        return np.add.reduceat(counts, self.starts, axis=1)

    def dense(self, counts: Array) -> Array:
        """Return (C, M, V) table of the counts."""
        table = np.zeros((len(counts), len(self.contexts), self.n_tokens))
        table[:, self.context_of, self.grams[:, -1]] = counts
        return table


def _n_possible_contexts(order: int, n_tokens: int) -> int:
    return sum(n_tokens**k for k in range(order))


def _every_context(order: int, n_tokens: int) -> Array:
    """Return (M, n-1) every context there can be, those that begin before the document included."""
    many = _n_possible_contexts(order, n_tokens)
    if many > _MOST_CONTEXTS:
        raise ValueError(
            f"no context has been seen, and {many} are possible: too many for a table of the "
            f"prior (at most {_MOST_CONTEXTS}); fit some documents first, or use "
            "simulate_predictive and log_predictive, which need no table"
        )
    rows = [
        (START,) * n_start + tail
        for n_start in range(order - 1, -1, -1)
        for tail in product(range(n_tokens), repeat=order - 1 - n_start)
    ]
    return np.array(rows, dtype=np.int64).reshape(many, order - 1)


# ----------------------------------------------------------------------------------- documents


@dataclass(frozen=True)
class DocumentCounts:
    """Documents as counts: one entry for each (document, n-gram), in order; P of them.

    Tokens outside the vocabulary are not counted: they are no evidence of the class.

    A *run* is the entries of one document after one context; there are R. U distinct n-grams.
    """

    n_rows: int
    grams: Array  # (U, n) distinct n-grams of these documents
    row: Array  # (P,) document of the entry
    gram: Array  # (P,) its place in `grams`
    n: Array  # (P,) how often, float
    run: Array  # (P,) its run
    run_row: Array  # (R,)
    run_gram: Array  # (R,) one n-gram of the run: tells its context
    run_n: Array  # (R,) tokens of the run, float

    @classmethod
    def count(cls, X: Array, order: int, n_tokens: int) -> Self:
        """Count the n-grams of each document of X, an object array (N,)."""
        grams, gram, row = known_ngrams(X, order, n_tokens)
        many = max(1, len(grams))
        entry, n = np.unique(row * many + gram, return_counts=True)
        row, gram = np.divmod(entry, many)
        context = np.cumsum(first_of_contexts(grams))
        fresh = np.ones(len(row), dtype=bool)
        fresh[1:] = (row[1:] != row[:-1]) | (context[gram[1:]] != context[gram[:-1]])
        run = np.cumsum(fresh) - 1
        n = n.astype(np.float64)
        return cls(len(X), grams, row, gram, n, run, row[fresh], gram[fresh], np.bincount(run, n))

    def matrix(self) -> sparse.csr_matrix:
        """Return (N, U) counts of the n-grams."""
        return sparse.csr_matrix((self.n, (self.row, self.gram)), (self.n_rows, len(self.grams)))

    def sum(self, entries: Array, runs: Array) -> Array:
        """Return (N,) sum over the entries of each document minus the sum over its runs."""
        return np.bincount(self.row, entries, self.n_rows) - np.bincount(
            self.run_row, runs, self.n_rows
        )


# ------------------------------------------------------------------------------------------------
# Counts of n-grams: the sufficient statistics of documents.


@dataclass(frozen=True, eq=False)
class MarkovStats(Stats):
    """Weighted counts of the n-grams that occur in some class, in lexicographic order.

    Codes are those of one vocabulary; `recode_tokens` brings two together before a merge.
    """

    grams: Array = array("gram", "position", signed=True)  # codes, START before the document
    counts: Array = array(CLASS, "gram")
    n_tokens: int = 0

    def merge(self, other: Self) -> Self:
        """Sum of the counts over the union of the n-grams."""
        grams, mine, theirs = self._aligned(other)
        n_tokens = max(self.n_tokens, other.n_tokens)
        return type(self)(grams, mine + theirs, n_tokens)

    def remove(self, other: Self) -> Self:
        """Counts after forgetting; n-grams that nobody has any more are dropped."""
        grams, mine, theirs = self._aligned(other)
        left = mine - theirs
        refuse_negative("counts", left, mine)
        left[left <= 8 * np.finfo(float).eps * mine] = 0.0  # rounding of fractional weights
        keep = left.any(axis=0)
        return type(self)(grams[keep], left[:, keep], self.n_tokens)

    def recode_tokens(self, codes: Array, n_tokens: int) -> Self:
        """Return the same documents in another vocabulary: token k becomes ``codes[k]``.

        Parameters
        ----------
        codes : (V,) distinct codes in 0 .. n_tokens - 1
        n_tokens : int
            Size of the new vocabulary.
        """
        codes = np.asarray(codes, dtype=np.int64)
        if codes.shape != (self.n_tokens,) or len(np.unique(codes)) != len(codes):
            raise ValueError(f"codes must be {self.n_tokens} distinct numbers, one per token")
        if codes.size and not (codes.min() >= 0 and codes.max() < n_tokens):
            raise ValueError(f"codes must lie in 0 .. {n_tokens - 1}")
        grams = np.where(self.grams >= 0, np.append(codes, 0)[self.grams], self.grams)
        order = np.lexsort(grams.T[::-1])
        return type(self)(grams[order], self.counts[:, order], n_tokens)

    def _aligned(self, other: Self) -> tuple[Array, Array, Array]:
        """Return the union of the n-grams (U, n), and the counts (C, U) of both over it."""
        if self.grams.shape[1] != other.grams.shape[1]:
            raise ValueError(
                f"statistics of order {self.grams.shape[1]} and of order "
                f"{other.grams.shape[1]} do not add up"
            )
        rows = np.concatenate([self.grams, other.grams])
        n_tokens = max(self.n_tokens, other.n_tokens)
        grams, place = _distinct(list(rows.T), len(rows), n_tokens)
        wide = np.zeros((2, len(self.counts), len(grams)))
        wide[0][:, place[: len(self.grams)]] = self.counts
        wide[1][:, place[len(self.grams) :]] = other.counts
        return grams, *wide


def check_ngrams(stats: MarkovStats, order: int, n_tokens: int) -> None:
    """Refuse statistics of another order, of more tokens, or of what is none (from a file)."""
    if stats.grams.dtype.kind not in "iu":
        raise ValueError(f"tokens of n-grams are {stats.grams.dtype}, not integers")
    if stats.grams.shape[1] != order:
        raise ValueError(f"statistics of order {stats.grams.shape[1]} for a model of order {order}")
    if stats.n_tokens > n_tokens:
        raise ValueError(
            f"statistics over {stats.n_tokens} tokens for a model of {n_tokens} tokens"
        )


def count_ngrams(
    X: Array, y: Array, n_classes: int, weight: Array | None, order: int, n_tokens: int
) -> MarkovStats:
    """Statistics of documents, `n_tokens` 0 for the largest code plus one.

    Raises
    ------
    ValueError
        At a token outside the vocabulary.
    """
    tokens, lengths = concatenate(X, n_tokens or None)
    if tokens.size and tokens.min() < 0:
        row = int(np.searchsorted(np.cumsum(lengths), np.argmin(tokens), side="right"))
        raise InputError(
            "document",
            " has a token outside the vocabulary (-1); the training documents define the "
            "vocabulary, or it must be declared to hold their tokens",
            row=row,
            place=" {}",
        )
    n_tokens = n_tokens or int(tokens.max(initial=-1)) + 1
    grams, gram, document = known_ngrams(X, order, n_tokens)
    each = None if weight is None else np.asarray(weight, dtype=np.float64)[document]
    cell = np.asarray(y, dtype=np.int64)[document] * len(grams) + gram
    total = np.bincount(cell, each, minlength=n_classes * len(grams))
    counts = total.reshape(n_classes, len(grams)).astype(np.float64)
    keep = counts.any(axis=0)
    return MarkovStats(grams[keep], counts[:, keep], n_tokens)


def every_ngram(n_classes: int, order: int, n_tokens: int) -> MarkovStats:
    """Statistics that hold every n-gram, never seen."""
    try:
        contexts = GramIndex(np.empty((0, order), dtype=np.int64), n_tokens).contexts
    except ValueError:
        raise ValueError(
            f"a model of order {order} over {n_tokens} tokens has too many contexts for tables "
            "of all of them, which calibration draws; calibrate a lower order or fewer tokens"
        ) from None
    tokens = np.tile(np.arange(n_tokens), len(contexts))
    grams = np.column_stack([np.repeat(contexts, n_tokens, axis=0), tokens])
    return MarkovStats(grams, np.zeros((n_classes, len(grams))), n_tokens)
