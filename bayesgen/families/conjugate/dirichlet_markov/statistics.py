"""Counts of n-grams: the sufficient statistics of documents."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bayesgen.families.conjugate.dirichlet_markov.ngrams import union_of_counts
from bayesgen.families.contract import Stats
from bayesgen.families.errors import refuse_negative
from bayesgen.families.names import CLASS
from bayesgen.families.records import array
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
