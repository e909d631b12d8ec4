"""Contexts of every length 0 .. n-1 behind a set of n-grams: a tree of suffixes.

The parent of a context is the context without its first token: what stands nearest to the next
token stays. Level k holds contexts of k tokens and what followed them.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from bayesgen.families.shared.ngrams import DocumentCounts, GramIndex, without_first
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class SuffixLevel:
    """Contexts of one length that were seen with a continuation; holds no counts."""

    index: GramIndex
    gram: Array  # (G',) of each n-gram one token longer, its place here; empty at the longest
    context: Array  # (H',) the same of each context

    @property
    def contexts(self) -> Array:
        """(H, k) their codes."""
        return self.index.grams[self.index.starts, :-1]

    @classmethod
    def all(cls, grams: Array, n_tokens: int) -> list[Self]:
        """Levels 0 .. n-1 of distinct n-grams (G, n) in lexicographic order."""
        none = np.empty(0, dtype=np.int64)
        out = [cls(GramIndex(grams, n_tokens), none, none)]
        for _ in range(grams.shape[1] - 1):
            longer = out[0].index
            shorter, gram = without_first(longer.grams, n_tokens)
            index = GramIndex(shorter, n_tokens)
            of_gram = np.searchsorted(index.starts, gram, side="right") - 1
            out.insert(0, cls(index, gram, of_gram[longer.starts]))
        return out

    def find(self, grams: Array) -> tuple[Array, Array]:
        """(n,) places of the contexts of n-grams, and of the n-grams; -1 where never seen."""
        *_, context, gram = self.index.tree.path(grams)
        return context, gram

    def sum_of_longer(self, values: Array) -> Array:
        """(C, H) sums over contexts one token longer, of values (C, H')."""
        return _sums(values, self.context, len(self.index.starts))

    def counts_of_longer(self, values: Array) -> Array:
        """(C, G) sums over n-grams one token longer, of values (C, G')."""
        return _sums(values, self.gram, len(self.index.grams))


def _sums(values: Array, place: Array, n: int) -> Array:
    return np.array([np.bincount(place, own, n) for own in values]).reshape(len(values), n)


class DocumentLevel(NamedTuple):
    """Documents after contexts of one length."""

    docs: DocumentCounts
    entry: Array  # (P',) of each entry after contexts one token longer, its entry here
    run: Array  # (R',) of each run after a context one token longer, its run here
    order: Array  # (R',) runs after contexts one token longer, those of one run here together
    edges: Array  # (R + 1,) where those of each run begin in `order`


def document_levels(X: Array, order: int, n_tokens: int) -> list[DocumentLevel]:
    """Levels 0 .. order-1 of documents."""
    none = np.empty(0, dtype=np.int64)
    longest = DocumentCounts.count(X, order, n_tokens)
    out = [DocumentLevel(longest, none, none, none, none)]
    for _ in range(order - 1):
        longer = out[0].docs
        docs, entry = longer.shorter(n_tokens)
        run = docs.run[entry[longer.starts[:-1]]]
        by_run = np.argsort(run, kind="stable")
        edges = np.searchsorted(run[by_run], np.arange(len(docs.run_row) + 1))
        out.insert(0, DocumentLevel(docs, entry, run, by_run, edges))
    return out
