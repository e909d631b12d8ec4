r"""N-gram language models that interpolate between orders: Kneser-Ney with a concentration.

The model behind it is a hierarchy of Pitman-Yor processes: what follows a context s of k tokens is
drawn about what follows s without its first token,

.. math:: \theta_{c,s} \sim \text{PY}(d, b, \theta_{c, \pi(s)}), \qquad
          \theta_{c,\emptyset} \sim \text{PY}(d, b_0, \text{uniform}),

with discount d and concentrations b and, of the empty context, :math:`b_0`; d = 0 is a hierarchy of
Dirichlet distributions. Its posterior has no closed form. Here every context is taken to have one
table for each distinct token (one customer is sent up for each), which is interpolated Kneser-Ney
smoothing:

.. math:: p_k(x \mid s) = \frac{(n_{sx} - d)^+ + \{b_k + \sum_{x'} \min(n_{sx'}, d)\}\,
          p_{k-1}(x \mid \pi(s))}{n_s + b_k}, \qquad p_{-1} = \frac{1}{V + 1},

with n the counts for contexts of D = order - 1 tokens, and for shorter ones the number of distinct
tokens to the left of the n-gram, :math:`n_{sx} = \sum_{x'} \min(n_{x's\,x}, 1)`. (With weights that
are not whole, minima in place of numbers keep the sum over x at 1 and all of it continuous.)

Sources: Teh (2006), A hierarchical Bayesian language model based on Pitman-Yor processes, section
5; Chen and Goodman (1999), An empirical study of smoothing techniques, section 3.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from bayesgen.families.approximate_family import ApproximateFamily
from bayesgen.families.names import CLASS, CONTEXT, TOKEN
from bayesgen.families.records import array
from bayesgen.families.shared import ngrams
from bayesgen.families.shared.hyperparameters import broadcast_prior, broadcast_priors
from bayesgen.families.shared.pymc_parts import container
from bayesgen.numerics.rows import row_blocks, row_sums
from bayesgen.numerics.special import Array

_DISCOUNT = 0.75
_DISCOUNTS = (0.5, 0.9)  # tried beside it by prior="loo"


class Weights(NamedTuple):
    """Of contexts of one length; the last column of each stands for what was never seen."""

    counts: Array  # (C, G + 1)
    total: Array  # (C, H + 1)
    discounted: Array  # (C, H + 1) sum of min(count, d)


@dataclass(frozen=True, eq=False)
class InterpolatedMarkov(ngrams.SuffixFamily, ApproximateFamily):
    """Documents by an n-gram model that falls back on shorter contexts in proportion.

    X holds the token codes of each document, as in `DirichletMarkov`.

    Parameters
    ----------
    order, n_tokens, length, grams, counts
        As in `DirichletMarkov`: the longest context has ``order - 1`` tokens, and `grams` are the
        n-grams behind a posterior.
    discount : float or array (class,), in [0, 1)
        d: taken off the count of each distinct token, in tokens.
    concentration : float or array (class,), > 0
        b: weight of the shorter context, in tokens.
    strength : float or array (class,), > 0
        b_0: pseudo-counts of the empty context, in distinct n-grams. Large: tokens after contexts
        never seen tell little of the class.

    Notes
    -----
    The defaults are the best compromise over sets and their sizes in cross-validation
    (`tests/benchmarks/smoothing.py --defaults`); with ten documents a class and fewer, less is
    better. ``prior="loo"`` tries discounts of 0.5 and 0.9 and multiples of concentration and
    strength beside them, by the exact leave-one-out score of the labels.

    A document is scored token by token with the counts of training: it does not teach the model
    while it is read. All tokens outside the vocabulary are one further token, which is never
    simulated.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.empty(1, dtype=object)
    >>> X[0] = np.array([0, 1, 0])
    >>> family = InterpolatedMarkov(order=1, discount=0.5, strength=1.0)
    >>> stats = family.stats(X, np.array([0]), n_classes=1)
    >>> posterior = family.resolve(stats).update(stats)
    >>> X[0] = np.array([0])
    >>> np.exp(posterior.log_predictive(X)).round(4)  # (1.5 + 2/3) / 4
    array([[0.5417]])
    """

    tunable: ClassVar[tuple[str, ...]] = ("concentration", "strength")
    approximate: ClassVar[str] = (
        "interpolated Kneser-Ney smoothing approximates the mean of a hierarchical Pitman-Yor "
        "posterior, and knows nothing else of it: as a sequence of predictions its evidence would "
        "depend on the order of the documents. smoothing='dirichlet' and 'context_tree' are exact"
    )

    order: int = 2
    n_tokens: int = 0
    discount: Any = array(CLASS, default=_DISCOUNT)
    concentration: Any = array(CLASS, default=100.0)
    strength: Any = array(CLASS, default=10_000.0)
    length: int = 100
    grams: Any = array("gram", "position", default=None)
    counts: Any = array(CLASS, "gram", default=None)

    # methods with a page of their own

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: p(token | context, y = c) of the hierarchy that `to_pymc` declares."""
        return {"theta": (CLASS, CONTEXT, TOKEN)}

    @property
    def contexts(self) -> Array:
        """(M, D) the longest contexts that were seen with a continuation."""
        return self.levels[-1].contexts

    @cached_property
    def weights(self) -> list[Weights]:
        """Counts of contexts of 0 .. D tokens; of all but the longest, numbers of distinct ones."""
        out: list[Weights] = []
        counts = self.counts
        for level in reversed(self.levels):
            if out:
                counts = level.counts_of_longer(np.minimum(counts, 1.0))
            total = level.index.totals(counts)
            discounted = level.index.totals(np.minimum(counts, self.discount[:, None]))
            out.insert(
                0, Weights(*(np.pad(a, ((0, 0), (0, 1))) for a in (counts, total, discounted)))
            )
        return out

    def to_pymc(
        self, *, prefix: str = "", X: Any = None, y: Any = None, stats: Any = None
    ) -> dict[str, Any]:
        """The hierarchy of Dirichlet distributions (d = 0) on the counts of n-grams.

        ``theta_0`` .. are the tables of contexts of each length (class, context, token + 1),
        ``theta`` those of the longest. The last token is the one outside the vocabulary.
        """
        import pymc as pm
        import pytensor.tensor as pt

        if X is not None:
            raise ValueError(
                "the hierarchy is a model of the counts of n-grams: likelihood='statistics'"
            )
        if (self.discount > 0).any():
            raise ValueError(
                "with a discount above 0 the hierarchy is of Pitman-Yor processes, which have no "
                "density: the PyMC model is for discount=0"
            )
        whole = self if stats is None else self.update(stats)
        b = container(f"{prefix}prior_concentration", self.concentration, (CLASS,))[:, None, None]
        width = self.n_tokens + 1
        root = container(f"{prefix}prior_strength", self.strength, (CLASS,))[:, None, None]
        above: Any = root * pt.ones((1, 1, width)) / width
        for k, level in enumerate(whole.levels):
            about = b * above[:, whole.levels[k - 1].context] if k else above
            last = k == self.order - 1
            above = pm.Dirichlet(
                f"{prefix}theta" if last else f"{prefix}theta_{k}",
                about,
                shape=(len(self.discount), len(level.index.starts), width),
            )
        if stats is not None:
            index = whole.levels[-1].index
            context = np.searchsorted(index.starts, np.arange(len(index.grams)), side="right") - 1
            n = container(f"{prefix}stats_counts", whole.counts, (CLASS, f"{prefix}gram"))
            pm.Potential(f"{prefix}x", (n * pt.log(above[:, context, index.grams[:, -1]])).sum())
        return {"theta": above}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Orders 1, 2 and 3 over `n_features` tokens; d = 0 and above, unequal by class."""
        ones = np.ones(n_classes)
        made = [
            cls(1, n_features, 0.5 * ones, 2.0, 3.0 * ones, 6),
            cls(2, n_features, 0.0 * ones, 1.0 + np.arange(n_classes), 2.0, 6),
            cls(3, n_features, 0.9 / (1.0 + np.arange(n_classes)), 0.5, 1.5 * ones, 6),
        ]
        return [f.resolve(ngrams.every_ngram(n_classes, f.order, n_features)) for f in made]

    def resolve(self, stats: ngrams.MarkovStats) -> Self:
        """Size of the vocabulary, discount and concentration of each class."""
        n_classes = len(stats.counts)
        discount = broadcast_prior("discount", self.discount, (n_classes,), positive=False)
        if (discount < 0).any() or (discount >= 1).any():
            raise ValueError(f"discount must be in [0, 1), got {self.discount!r}")
        known = replace(self, **self._known(stats), discount=discount)
        return broadcast_priors(known, (n_classes,), "concentration", "strength")

    def other_scales(self, given: Any) -> list[Any]:
        """Two other discounts, where it is the default."""
        if not np.array_equal(given.discount, _DISCOUNT):
            return []
        return [replace(self, discount=np.full_like(self.discount, d)) for d in _DISCOUNTS]

    def concentrations(self, k: int) -> Array:
        """(C, 1) weight of what stands below a context of k tokens."""
        return (self.concentration if k else self.strength)[:, None]

    def log_predictive(self, X: Array) -> Array:
        """(N, C) sum of the log probabilities of the tokens."""
        out = np.empty((len(X), len(self.discount)))
        n = len(self.discount) * (sum(map(len, X)) // max(1, len(X)) + 1)
        for rows in row_blocks(len(X), n):
            docs = ngrams.DocumentCounts.count(X[rows], self.order, self.n_tokens)
            log_p = np.log(self.probabilities(docs.grams))
            for c, own in enumerate(log_p):
                out[rows, c] = np.bincount(docs.row, own[docs.gram] * docs.n, docs.n_rows)
        return out

    def probabilities(self, grams: Array) -> Array:
        """(C, n) probability of the last token of n-grams (n, order) given those before it."""
        d = self.discount[:, None]
        p = np.full((len(d), len(grams)), 1.0 / (self.n_tokens + 1))
        for k, (level, own) in enumerate(zip(self.levels, self.weights, strict=True)):
            context, gram = level.find(grams[:, self.order - 1 - k :])
            above, b = np.maximum(own.counts[:, gram] - d, 0.0), self.concentrations(k)
            p = (above + (b + own.discounted[:, context]) * p) / (own.total[:, context] + b)
        return p

    def log_predictive_without(self, X: Array, y: Array, weight: Array) -> tuple[Array, Array]:
        """(N, C) and (N,), as in `RowRemoval`: its n-grams leave the counts of every length."""
        out, kept = self.log_predictive(X), np.ones(len(X))
        for c in np.unique(y):
            rows = np.flatnonzero(y == c)
            size = self.order * (sum(len(X[i]) for i in rows) // len(rows) + 1)
            for block in row_blocks(len(rows), size):
                own = rows[block]
                out[own, c], kept[own] = self._without(X[own], int(c), weight[own])
        return out, kept

    def _without(self, X: Array, c: int, weight: Array) -> tuple[Array, Array]:
        """(n,) log p(x_i | y = c) of documents of class c, each without itself; and what is left.

        That is the least share that is left of the weight of a context, the constant included.
        """
        kept = np.ones(len(X))
        levels = ngrams.document_levels(X, self.order, self.n_tokens)
        d = self.discount[c]
        removed = levels[-1].docs.n * weight[levels[-1].docs.row]
        terms: list[tuple[Array, Array, Array]] = []  # from the longest context
        for k in range(self.order - 1, -1, -1):
            docs, own, b = levels[k].docs, self.weights[k], self.concentrations(k)[c, 0]
            context, gram = self.levels[k].find(docs.grams)
            before = own.counts[c, gram[docs.gram]]
            left = before - removed
            left[left <= 8 * np.finfo(np.float64).eps * before] = 0.0
            change = before - left, np.minimum(before, d) - np.minimum(left, d)
            context = context[docs.run_gram]
            total, discounted = (
                (all_[c, context] - row_sums(part, docs.starts))[docs.run]
                for all_, part in zip((own.total, own.discounted), change, strict=True)
            )
            total = np.maximum(total, 0.0)
            share = (total + b) / (own.total[c, context][docs.run] + b)
            np.minimum.at(kept, docs.row, share)
            terms.insert(0, (np.maximum(left - d, 0.0), b + np.maximum(discounted, 0.0), total + b))
            if k:
                fewer = np.minimum(before, 1.0) - np.minimum(left, 1.0)
                at = levels[k - 1].entry
                removed = np.bincount(at, fewer, len(levels[k - 1].docs.row))
        p = np.full(len(levels[0].docs.row), 1.0 / (self.n_tokens + 1))
        for k, (above, rest, total) in enumerate(terms):
            if k:
                p = p[levels[k - 1].entry]
            p = (above + rest * p) / total
        whole = levels[-1].docs
        return np.bincount(whole.row, whole.n * np.log(p), whole.n_rows), kept

    def n_parameters(self) -> int:
        """Classes times contexts times tokens."""
        return int(len(self.discount) * len(self.contexts) * (self.n_tokens + 1))

    def simulate_predictive(self, rng: np.random.Generator, y: Array) -> Array:
        """(N,) documents of the classes `y`, all in step."""
        y = np.asarray(y)
        out = np.empty(len(y), dtype=object)
        back = self.order - 1
        left_over = (
            np.maximum(w.counts[:, :-1] - self.discount[:, None], 0.0) for w in self.weights
        )
        above = [np.pad(np.cumsum(n, axis=1), ((0, 0), (1, 0))) for n in left_over]
        for rows in row_blocks(len(y), self.length):
            own = y[rows]
            text = np.full((len(own), back + self.length), ngrams.START, dtype=np.int64)
            for i in range(self.length):
                before = text[:, i : i + back]
                left = np.arange(len(own))
                while len(left):  # an unknown token is drawn again
                    token = _next(self, rng, own[left], before[left], above)
                    text[left, back + i] = token
                    left = left[token == self.n_tokens]
            for k, document in enumerate(text[:, back:]):
                out[rows.start + k] = document.copy()
        return out


# ------------------------------------------------------------------------------------------------
# Documents drawn token by token: a context falls back on the shorter one in proportion.


def _next(
    f: "InterpolatedMarkov", rng: np.random.Generator, y: Array, before: Array, above: list[Array]
) -> Array:
    """(n,) tokens after contexts (n, D) in classes `y`; V is the token outside the vocabulary.

    `above` are running sums over the n-grams of each length of their counts less the discount.
    """
    token = rng.integers(f.n_tokens + 1, size=len(y))
    left = np.arange(len(y))
    for k in range(f.order - 1, -1, -1):
        level, own = f.levels[k], f.weights[k]
        c = y[left]
        *_, at = level.index.tree.path(before[left, f.order - 1 - k :])
        b = f.concentrations(k)[c, 0]
        u = rng.random(len(left)) * (b + own.total[c, at]) - b - own.discounted[c, at]
        mine = np.flatnonzero(u >= 0)
        edges = np.append(level.index.starts, len(level.index.grams))
        for k_class in np.unique(c[mine]):
            some = mine[c[mine] == k_class]
            first, last = edges[at[some]], edges[at[some] + 1] - 1
            upto = above[k][k_class]
            gram = np.searchsorted(upto, upto[first] + u[some], side="right") - 1
            token[left[some]] = level.index.grams[np.clip(gram, first, last), -1]
        left = np.delete(left, mine)
    return token
