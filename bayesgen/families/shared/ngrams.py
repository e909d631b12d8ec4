r"""N-grams of documents: counting them, finding them again, and the contexts that they have.

A document is an array of token codes 0 .. V-1, or `UNKNOWN` for a token outside the vocabulary.
An n-gram is a row of n codes: a token, and before it the n-1 tokens of its context, `START` where
they lie before the document. Sets of n-grams are arrays (G, n) of distinct rows in lexicographic
order; the n-grams of one context stand together in them.

Nothing here knows of probabilities. Notation of the docstrings: N documents of T tokens in all,
C classes, G n-grams, M contexts, V tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Self

import numpy as np
from scipy import sparse

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
        raise ValueError(
            f"document {row} has the token code {tokens[first]}; codes are 0 .. "
            f"{'' if n_tokens is None else n_tokens - 1}, and -1 for an unknown token"
        )
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


def distinct_ngrams(
    tokens: Array, lengths: Array, order: int, n_tokens: int
) -> tuple[Array, Array]:
    """Distinct n-grams (G, order) of documents, and (T,) where that of each token is among them.

    `tokens` and `lengths` are what `concatenate` returns.
    """
    return _distinct(_ngrams(tokens, lengths, order), len(tokens), n_tokens)


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
        found, inverse = _ranks(key, width)
        codes = np.unravel_index(found, (base,) * len(columns))
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
    """(G,) which n-grams, in order, are the first of their context."""
    fresh = np.ones(len(grams), dtype=bool)
    fresh[1:] = (grams[1:, :-1] != grams[:-1, :-1]).any(axis=1)
    return fresh


def without_first(grams: Array, n_tokens: int) -> tuple[Array, Array]:
    """Distinct n-grams (U, n - 1) after a context one token shorter, and (G,) which is whose."""
    return _distinct(list(grams[:, 1:].T), len(grams), n_tokens)


def union_of_counts(
    a: tuple[Array, Array], b: tuple[Array, Array], n_tokens: int
) -> tuple[Array, Array, Array]:
    """Union of two sets of n-grams, and the counts (C, U) of both over it.

    `a` and `b` are pairs: n-grams (G, n) and their counts (C, G).
    """
    rows = np.concatenate([a[0], b[0]])
    grams, at = _distinct(list(rows.T), len(rows), n_tokens)
    wide = []
    for counts, place in ((a[1], at[: len(a[0])]), (b[1], at[len(a[0]) :])):
        out = np.zeros((len(counts), len(grams)))
        out[:, place] = counts
        wide.append(out)
    return grams, wide[0], wide[1]


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
                at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
                node = np.where(keys[at] == key, at, -1)
            yield node

    def find(self, rows: Array) -> Array:
        """(n,) number of each row or prefix, -1 where absent."""
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
        """(M, n-1) contexts with a continuation, and those to which n-grams lead; or all there are.

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
    def context_tree(self) -> PrefixTree:
        """Finds rows of `contexts`."""
        return PrefixTree(self.contexts, self.n_tokens)

    @cached_property
    def context_of(self) -> Array:
        """(G,) place of each n-gram's context among `contexts`."""
        return self.context_tree.find(self.grams[:, :-1])

    def totals(self, counts: Array) -> Array:
        """(C, H) sums over the n-grams of each context that has a continuation."""
        if len(self.starts) == 0:
            return np.zeros((len(counts), 0))
        return np.add.reduceat(counts, self.starts, axis=1)

    def dense(self, counts: Array) -> Array:
        """(C, M, V) table of the counts."""
        table = np.zeros((len(counts), len(self.contexts), self.n_tokens))
        table[:, self.context_of, self.grams[:, -1]] = counts
        return table


def _n_possible_contexts(order: int, n_tokens: int) -> int:
    return sum(n_tokens**k for k in range(order))


def _every_context(order: int, n_tokens: int) -> Array:
    """(M, n-1) every context there can be, those that begin before the document included."""
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
    run_unknown: Array  # (R,) how many of them are outside the vocabulary, float

    @classmethod
    def count(cls, X: Array, order: int, n_tokens: int) -> Self:
        """Count the n-grams of each document of X, an object array (N,)."""
        tokens, lengths = concatenate(X, n_tokens)
        grams, inverse = distinct_ngrams(tokens, lengths, order, n_tokens)
        many = max(1, len(grams))
        rows = np.repeat(np.arange(len(X)), lengths)
        entry, n = np.unique(rows * many + inverse, return_counts=True)
        row, gram = np.divmod(entry, many)
        return cls._of_entries(len(X), grams, row, gram, n.astype(np.float64))

    @classmethod
    def _of_entries(cls, n_rows: int, grams: Array, row: Array, gram: Array, n: Array) -> Self:
        """From entries in order of (document, n-gram)."""
        context = np.cumsum(first_of_contexts(grams))
        fresh = np.ones(len(row), dtype=bool)
        fresh[1:] = (row[1:] != row[:-1]) | (context[gram[1:]] != context[gram[:-1]])
        run = np.cumsum(fresh) - 1
        return cls(
            n_rows=n_rows,
            grams=grams,
            row=row,
            gram=gram,
            n=n,
            run=run,
            run_row=row[fresh],
            run_gram=gram[fresh],
            run_n=np.bincount(run, n),
            run_unknown=np.bincount(run, n * (grams[gram, -1] == UNKNOWN)),
        )

    def shorter(self, n_tokens: int) -> tuple[Self, Array]:
        """The same documents after contexts that are one token shorter.

        Returns
        -------
        DocumentCounts
        at : (P,)
            Its entry that each entry of these has become part of.
        """
        grams, of_gram = without_first(self.grams, n_tokens)
        many = max(1, len(grams))
        entry, at = np.unique(self.row * many + of_gram[self.gram], return_inverse=True)
        row, gram = np.divmod(entry, many)
        n = np.bincount(at, self.n, len(entry))
        return self._of_entries(self.n_rows, grams, row, gram, n), at

    @property
    def starts(self) -> Array:
        """(R + 1,) where each run begins among the entries, and their number."""
        return np.searchsorted(self.run, np.arange(len(self.run_row) + 1))

    @property
    def known(self) -> Self:
        """The same entries and runs, with no count of tokens outside the vocabulary."""
        n = np.where(self.grams[self.gram, -1] == UNKNOWN, 0.0, self.n)
        rest = self.run_n - self.run_unknown
        return replace(self, n=n, run_n=rest, run_unknown=np.zeros_like(rest))

    def sum(self, entries: Array, runs: Array) -> Array:
        """(N,) sum over the entries of each document minus the sum over its runs."""
        return np.bincount(self.row, entries, self.n_rows) - np.bincount(
            self.run_row, runs, self.n_rows
        )

    def terms(self, cell: Array, total: Array) -> tuple[Array, Array, Array, Array]:
        """The sum over entries minus runs, with equal (parameter, count) taken together.

        `cell` (P,) is a function of `gram`, `total` (R,) one of `run_gram`.

        Returns
        -------
        terms : (2, K) distinct parameters and counts
        kind, factor : (E,) for each row in turn its terms and how many there are, with sign
        indptr : (N + 1,) where each row begins
        """
        table = np.zeros((2, len(self.grams)))
        table[0, self.gram], table[1, self.run_gram] = cell, total
        values, rank = np.unique(table, return_inverse=True)
        kind = rank.reshape(table.shape)
        n = np.concatenate([self.n, self.run_n]).astype(np.int64)
        width = int(n.max(initial=0)) + 1
        key = np.concatenate([kind[0, self.gram], kind[1, self.run_gram]]) * width + n
        distinct, kind = _ranks(key, width * len(values))
        row = np.concatenate([self.row, self.run_row])
        sign = np.repeat([1.0, -1.0], [len(cell), len(total)])
        found = sparse.csr_matrix((sign, (row, kind)), shape=(self.n_rows, len(distinct)))
        terms = np.stack([values[distinct // width], distinct % width])
        return terms, found.indices, found.data, found.indptr
