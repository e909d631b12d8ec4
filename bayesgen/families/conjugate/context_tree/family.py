r"""Language models whose order depends on the context, averaged over all of them exactly.

The tokens before a token are matched from the nearest backwards, as far as a tree goes: its leaves
are contexts s of 0 to D = order - 1 tokens, and each leaf has a table of its own,

.. math:: x_i \mid x_{<i}, y=c, T \sim \text{Categorical}(\theta_{c,s}), \quad
          s = \text{leaf of } T_c \text{ above } x_{<i}, \qquad
          \theta_{c,s} \sim \text{Dirichlet}(a\, m_c).

A context of fewer than D tokens is a leaf with probability :math:`\beta`, else it is split by the
token before it (any of the vocabulary, a start symbol, an unknown token). The sum over all trees
is exact (Willems, Shtarkov and Tjalkens 1995): with :math:`P_s` the Dirichlet-multinomial
evidence of what followed s,

.. math:: L_s = \log\{\beta P_s + (1-\beta) \textstyle\prod_j e^{L_{js}}\}, \qquad
          L_s = \log P_s \text{ at depth } D,

the evidence of a class is :math:`L` of the empty context. A posteriori s is a leaf, if none of its
suffixes is, with :math:`\log w_s/(1-w_s) = \log \beta/(1-\beta) + \log P_s - \sum_j L_{js}`. A
document adds its counts, so :math:`\log p(x \mid c)` is a difference of two such sums:

.. math:: \delta_s = \log\{w_s P_s(n+x)/P_s(n) + (1-w_s) \textstyle\prod_j e^{\delta_{js}}\}

over the contexts that it visits. The length of a document is given, not modelled.

Sources: Willems, Shtarkov and Tjalkens (1995), The context-tree weighting method; Kontoyiannis et
al. (2022), Bayesian context trees, for the posterior.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.conjugate.context_tree import cumulants, documents, trees
from bayesgen.families.contract import ConjugateFamily, Theta
from bayesgen.families.errors import UndefinedEstimateError, refuse_undefined
from bayesgen.families.names import CLASS, CONTEXT, TOKEN
from bayesgen.families.records import array
from bayesgen.families.shared.densities import density_by_draws
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.families.shared.markov_stats import (
    MarkovStats,
    SuffixFamily,
    check_ngrams,
    every_ngram,
)
from bayesgen.families.shared.ngrams import union_of_counts
from bayesgen.families.shared.suffixes import document_levels
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class ContextTree(SuffixFamily, ConjugateFamily):
    """Documents under all context trees of at most `order` - 1 tokens, with Dirichlet tables.

    X holds the token codes of each document, as in `DirichletMarkov`.

    Parameters
    ----------
    order, n_tokens, length, grams, counts
        As in `DirichletMarkov`: the longest context has ``order - 1`` tokens, and `grams` are the
        n-grams behind a posterior.
    strength : float or array (class,), > 0
        a: pseudo-counts of each table, in tokens.
    leaf : float or array (class,), in (0, 1)
        beta: probability that a context is not split.
    base : array broadcasting to (class, outcome), > 0, or None
        m, scaled to sum 1, of the V tokens and, last, of all others. None: of each class,
        in proportion to 1 + the counts of its tokens in the training rows; everything is then
        conditional on that base.

    Notes
    -----
    *Theta* is ``tables`` (class, context, token): of a leaf its probabilities, of other contexts 0.
    So the probability of a token is the sum over the contexts of all lengths before it, and the
    mean of theta gives the predictive of a single token. Contexts that nobody has seen are
    integrated out under the prior.

    *Tokens outside the vocabulary* are one further token of the alphabet, with its share of the
    base. They are never simulated.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.empty(1, dtype=object)
    >>> X[0] = np.array([0, 1] * 8)
    >>> family = ContextTree(order=2, base=[1.0, 1.0, 1e-9], strength=2.0)
    >>> stats = family.stats(X, np.array([0]), n_classes=1)
    >>> posterior = family.resolve(stats).update(stats)
    >>> X[0] = np.array([0, 1, 0])
    >>> np.exp(posterior.log_predictive(X)).round(3)
    array([[0.533]])
    """

    tunable: ClassVar[tuple[str, ...]] = ("strength",)
    no_pymc: ClassVar[str] = (
        "the tree is a discrete parameter; MarkovNB(smoothing='dirichlet') is the model of the "
        "full tree of one order"
    )

    order: int = 2
    n_tokens: int = 0
    strength: Any = array(CLASS, default=30.0)
    leaf: Any = array(CLASS, default=0.5)
    base: Any = array(CLASS, "outcome", default=None)  # the tokens and, last, all others
    length: int = 100
    grams: Any = array("gram", "position", default=None)
    counts: Any = array(CLASS, "gram", default=None)

    # methods with a page of their own
    leaf_probabilities = trees.leaf_probabilities
    cgf = cumulants.cgf
    simulate_predictive = documents.draw
    draw_log_density = trees.draw_log_density

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``tables``: p(token | leaf, y = c) over `contexts`, 0 where a context is no leaf."""
        return {"tables": (CLASS, CONTEXT, TOKEN)}

    # -- the tree --------------------------------------------------------------------------------

    @cached_property
    def weights(self) -> "list[trees.Weights]":
        """Counts, totals and posterior log odds of being a leaf, level by level."""
        return trees.weigh(self)[0]

    @property
    def contexts(self) -> list[tuple[int, ...]]:
        """Codes of the contexts of theta, shorter ones first; -2 before the document."""
        return [tuple(row) for level in self.levels for row in level.contexts.tolist()]

    @cached_property
    def offsets(self) -> Array:
        """(D + 2,) where the contexts of each length begin among all."""
        return np.cumsum([0] + [len(level.index.starts) for level in self.levels])

    def depth_probabilities(self) -> Array:
        """(C, D + 1) expected share of the training tokens whose leaf has 0 .. D tokens.

        Of a class without a token: NaN.
        """
        totals = [w.total[:, :-1] for w in self.weights]
        n = totals[0].sum(axis=1)
        leaf = np.split(self.leaf_probabilities(), self.offsets[1:-1], axis=1)
        share = np.stack([(p * t).sum(axis=1) for p, t in zip(leaf, totals, strict=True)], axis=1)
        return np.divide(share, n[:, None], out=np.full(share.shape, np.nan), where=n[:, None] > 0)

    # -- rows ------------------------------------------------------------------------------------

    def log_likelihood(self, X: Array, theta: Theta) -> Array:
        """(..., N, C) log probability of each token sequence under tables of leaves.

        Below a context that is not a leaf, contexts that theta does not have are integrated out:
        the mean over draws of theta is exactly the predictive. Of a mean of theta, which leaves
        them a share of the probability, they have the base.
        """
        return trees.log_likelihood(self, X, np.asarray(theta["tables"]))

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N,) documents of `length` tokens; what theta does not have is integrated out."""
        return documents.draw(self, rng, y, np.asarray(theta["tables"]))

    # -- prior and posterior ---------------------------------------------------------------------

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Orders 1, 2 and 3, trees in doubt; a token outside the vocabulary hardly occurs."""
        outside = np.full((n_classes, 1), 1e-13)
        flat = np.hstack([np.ones((n_classes, n_features)), outside])
        steps = 0.5 + np.arange(n_classes * n_features).reshape(n_classes, n_features) % 5
        uneven = np.hstack([steps, outside])
        ones = np.ones(n_classes)
        made = [
            cls(1, n_features, 3.0 * ones, 0.5 * ones, flat, 4),
            cls(2, n_features, 15.0 + np.arange(n_classes), 0.3 * ones, uneven, 3),
            cls(3, n_features, 25.0 * ones, 1 / (2.0 + np.arange(n_classes)), flat, 3),
        ]
        nothing = (every_ngram(n_classes, f.order, n_features) for f in made)
        return [f.resolve(none).update(none) for f, none in zip(made, nothing, strict=True)]

    def resolve(self, stats: MarkovStats) -> Self:
        """Size of the vocabulary, and the base of each class."""
        known = self._known(stats)
        n_classes, n_tokens = len(stats.counts), known["n_tokens"]
        base = self.base
        if base is None:
            last = stats.grams[:, -1]
            base = np.array([np.bincount(last, own, n_tokens + 1) for own in stats.counts]) + 1.0
        base = broadcast_prior("base", base, (n_classes, n_tokens + 1))
        leaf = broadcast_prior("leaf", self.leaf, (n_classes,))
        if (leaf >= 1).any():
            raise ValueError(f"leaf must be a probability below 1, got {self.leaf!r}")
        return replace(
            self,
            **known,
            strength=broadcast_prior("strength", self.strength, (n_classes,)),
            leaf=leaf,
            base=base / base.sum(axis=1, keepdims=True),
        )

    # -- closed forms ----------------------------------------------------------------------------

    def log_predictive(self, X: Array) -> Array:
        """(N, C) of documents as wholes, trees and tables integrated out."""
        out = np.empty((len(X), len(self.strength)))
        cells = self.order * (sum(map(len, X)) // max(1, len(X)) + 1)
        one = np.ones(1)
        for rows in row_blocks(len(X), cells):
            docs = document_levels(X[rows], self.order, self.n_tokens)
            for c in range(out.shape[1]):
                out[rows, c] = cumulants.log_change(self, docs, c, one)
        return out

    def log_evidence(self, stats: MarkovStats) -> float:
        """Sum over classes of L of the empty context, with the rows less without them."""
        check_ngrams(stats, self.order, self.n_tokens)
        grams, mine, new = union_of_counts(
            (self.grams, self.counts), (stats.grams, stats.counts), self.n_tokens
        )
        after, before = (replace(self, grams=grams, counts=n) for n in (mine + new, mine))
        return float((trees.weigh(after)[1] - trees.weigh(before)[1]).sum())

    # -- theta -----------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Trees from the root down, exactly and independently; given them, Dirichlet tables."""
        return {"tables": trees.draw(self, rng, n)}

    def n_parameters(self) -> int:
        """Classes times contexts times tokens."""
        return int(len(self.strength) * self.offsets[-1] * (self.n_tokens + 1))

    def mle(self, stats: MarkovStats) -> dict[str, Array]:
        """The full tree, the likeliest of all, with relative frequencies."""
        refuse_undefined("mle", stats.counts.sum(axis=1) <= 0, "it has no token (0/0)")
        seen = replace(self, counts=0.0 * self.counts).update(stats)
        tables = seen.dense()
        tables[:, : seen.offsets[-2]] = 0.0
        total = tables.sum(axis=-1, keepdims=True)
        np.divide(tables, total, out=tables, where=total > 0)
        return {"tables": tables}

    def map(self) -> dict[str, Array]:
        """Refused: probabilities of trees and densities of their tables have no common mode."""
        raise UndefinedEstimateError(
            "map", "trees have tables of different dimensions, whose densities cannot be compared"
        )

    def mean(self) -> dict[str, Array]:
        """Probability of being a leaf times (a m + counts)/(a + total)."""
        tables = self.concentrations()
        tables *= (self.leaf_probabilities() / tables.sum(axis=-1))[..., None]
        return {"tables": tables}

    def dense(self) -> Array:
        """(C, M, V + 1) counts of what followed each of `contexts`."""
        out = np.zeros((len(self.counts), self.offsets[-1], self.n_tokens + 1))
        for level, own, start in zip(self.levels, self.weights, self.offsets, strict=False):
            context = np.searchsorted(
                level.index.starts, np.arange(len(level.index.grams)), "right"
            )
            out[:, start + context - 1, level.index.grams[:, -1]] = own.counts[:, :-1]
        return out

    def concentrations(self) -> Array:
        """(C, M, V + 1) posterior pseudo-counts of the table of each context, were it a leaf."""
        out = self.dense()
        out += (self.strength[:, None] * self.base)[:, None]
        return out

    def log_density(self, theta: Theta) -> Array:
        """(...) log probability of the trees, seen contexts alone, and density of their tables."""
        return density_by_draws(lambda t: trees.log_density(self, t["tables"]), theta, self.params)
