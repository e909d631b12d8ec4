"""Counts of n-grams: the sufficient statistics of documents."""

import operator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.contract import Stats
from bayesgen.families.errors import refuse_negative
from bayesgen.families.names import (
    CLASS,
    TOKENS,
)
from bayesgen.families.records import array
from bayesgen.families.shared.ngrams import (
    GramIndex,
    concatenate,
    distinct_ngrams,
    union_of_counts,
)
from bayesgen.families.shared.suffixes import SuffixLevel
from bayesgen.numerics.special import Array


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
        """The same documents in another vocabulary: token k becomes ``codes[k]``.

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
        if self.grams.shape[1] != other.grams.shape[1]:
            raise ValueError(
                f"statistics of order {self.grams.shape[1]} and of order "
                f"{other.grams.shape[1]} do not add up"
            )
        n_tokens = max(self.n_tokens, other.n_tokens)
        return union_of_counts((self.grams, self.counts), (other.grams, other.counts), n_tokens)


def check_ngrams(stats: MarkovStats, order: int, n_tokens: int) -> None:
    """Refuse statistics of another order, or of more tokens."""
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
        raise ValueError(
            f"document {row} has a token outside the vocabulary (-1); the training documents "
            "define the vocabulary, or it must be declared to hold their tokens"
        )
    n_tokens = n_tokens or int(tokens.max(initial=-1)) + 1
    grams, inverse = distinct_ngrams(tokens, lengths, order, n_tokens)
    cell = np.repeat(np.asarray(y, dtype=np.int64), lengths) * len(grams) + inverse
    each = None if weight is None else np.repeat(np.asarray(weight, np.float64), lengths)
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


class NgramFamily:
    """What families of documents with the fields order, n_tokens, length, grams, counts share."""

    describes: ClassVar[str] = TOKENS
    holds: ClassVar[str] = "token"
    kind: ClassVar[str] = "text"
    missing: ClassVar[str] = (
        "a document is a sequence of tokens, and a gap in it has no context to follow; leave the "
        "token out, or give it a name of its own"
    )
    statistics: ClassVar[type[Stats]] = MarkovStats

    def __post_init__(self: Any) -> None:
        for name, least in (("order", 1), ("n_tokens", 0), ("length", 0)):
            try:
                value = operator.index(getattr(self, name))
            except TypeError:
                raise TypeError(f"{name} must be an integer, got {getattr(self, name)!r}") from None
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
            object.__setattr__(self, name, value)

    def stats(
        self: Any, X: Array, y: Array, n_classes: int, weight: Array | None = None
    ) -> MarkovStats:
        """Counts of the n-grams of each class; rows of weight 0 are as if absent."""
        return count_ngrams(X, y, n_classes, weight, self.order, self.n_tokens)

    def _known(self: Any, stats: MarkovStats) -> dict[str, Any]:
        """Size of the vocabulary, `grams` and `counts` of a resolved prior for these rows."""
        n_tokens = self.n_tokens or stats.n_tokens
        if n_tokens == 0:
            raise ValueError("the vocabulary is empty: every document is empty")
        check_ngrams(stats, self.order, n_tokens)
        grams, counts = self.grams, self.counts
        if grams is None:
            grams = np.empty((0, self.order), dtype=np.int64)
            counts = np.empty((len(stats.counts), 0))
        return {"n_tokens": n_tokens, "grams": grams, "counts": counts}

    def update(self: Any, stats: MarkovStats) -> Any:
        """Counts added over the union of the n-grams; the rest stays the prior's."""
        check_ngrams(stats, self.order, self.n_tokens)
        grams, mine, new = union_of_counts(
            (self.grams, self.counts), (stats.grams, stats.counts), self.n_tokens
        )
        return replace(self, grams=grams, counts=mine + new)

    def prepared(self: Any, stats: MarkovStats | None) -> Any:
        """With tables for the contexts of `stats`; None: for all contexts there are."""
        if stats is None:
            stats = every_ngram(len(self.counts), self.order, self.n_tokens)
        return self.update(replace(stats, counts=np.zeros_like(stats.counts)))


class SuffixFamily(NgramFamily):
    """Of families whose contexts have all lengths up to order - 1."""

    @cached_property
    def levels(self: Any) -> list[SuffixLevel]:
        """Contexts of 0 .. order - 1 tokens."""
        return SuffixLevel.all(self.grams, self.n_tokens)
