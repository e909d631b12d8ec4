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
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.special import expit

from bayesgen.families.contract import ConjugateFamily, Theta
from bayesgen.families.errors import UndefinedEstimateError, refuse_undefined
from bayesgen.families.names import CLASS, CONTEXT, TOKEN
from bayesgen.families.records import array
from bayesgen.families.shared import ngrams
from bayesgen.families.shared.densities import density_by_draws, log_dirichlet_density
from bayesgen.families.shared.hyperparameters import broadcast_prior, broadcast_priors
from bayesgen.numerics import special
from bayesgen.numerics.rows import cgf_by_rows, dot_log, row_blocks, row_sums
from bayesgen.numerics.special import Array

# ------------------------------------------------------------------------------------------------
# Documents drawn token by token, all in step: a leaf, then a token from its urn.
#
# Of the contexts before a token one is the leaf, with the odds that training and this very
# document have left; its urn holds the base, the training counts and what the document had after
# it before. After each token the odds of all contexts on its path are updated, so that a document
# has exactly the predictive. Of given leaves the tables take the place of urns.


def draw_documents(
    f: "ContextTree", rng: np.random.Generator, y: Array, tables: Array | None = None
) -> Array:
    """(N,) documents of the classes `y`.

    Parameters
    ----------
    tables : (C, M, V + 1) or one for each document (N, C, M, V + 1), optional
        As theta. Contexts that it does not have are integrated out.
    """
    y = np.asarray(y)
    out = np.empty(len(y), dtype=object)
    back, width = f.order - 1, f.length + f.n_tokens
    for rows in row_blocks(len(y), f.order * width):
        own = y[rows]
        text = np.full((len(own), back + f.length), ngrams.START, dtype=np.int64)
        gain = np.zeros((f.order, len(own), f.length))  # of the log odds, where a token was
        each = None
        if tables is not None:
            each = tables[np.arange(len(y))[rows], own] if tables.ndim > 3 else tables[own]
        for i in range(f.length):
            _append(f, rng, own, text, gain, i, each)
        for k, document in enumerate(text[:, back:]):
            out[rows.start + k] = document.copy()
    return out


def _append(
    f: "ContextTree",
    rng: np.random.Generator,
    y: Array,
    text: Array,
    gain: Array,
    i: int,
    tables: Array | None,
) -> None:
    """Draw token `i` of each document into `text`, and update `gain`."""
    n, back = len(y), f.order - 1
    row = np.arange(n)
    before = text[:, i : i + back]
    same = np.ones((f.order, n, i), dtype=bool)  # earlier places with the same context
    for k in range(1, f.order):
        same[k] = same[k - 1] & (text[:, back - k : back - k + i] == before[:, back - k, None])
    odds, total, counts = _contexts(f, y, before)
    odds += (same * gain[:, :, :i]).sum(axis=2)
    total += f.strength[y] + same.sum(axis=2)
    outside = (f.strength * f.base[:, -1])[y] / total  # of an unknown token, which is not drawn

    fixed = None
    if tables is not None:
        nodes = path(f, np.hstack([before, np.zeros((n, 1), dtype=np.int64)]))
        fixed = np.zeros((n, f.n_tokens + 1))
        for at in nodes.T:
            seen = at >= 0
            fixed[seen] += tables[row[seen], at[seen]]
        odds[nodes.T >= 0] = -np.inf  # no leaf, or its table is in `fixed`
    stop = expit(odds)
    log_here = np.log(np.maximum(stop * (1 - outside), np.finfo(np.float64).tiny))
    log_here[stop == 0] = -np.inf
    log_here[1:] += np.cumsum(-np.logaddexp(0, odds[:-1]), axis=0)
    here = np.exp(log_here)
    upto = np.cumsum(here, axis=0)
    level = (upto <= rng.random(n) * upto[-1]).sum(axis=0)
    level = np.minimum(level, f.order - 1)

    cell = (f.strength[:, None] * f.base)[y, :-1]  # (n, V)
    urn = cell + counts[level, row]
    for j in range(i):
        again = same[level, row, j]
        urn[row[again], text[again, back + j]] += 1.0
    if fixed is not None:
        known = fixed.sum(axis=1) > 0
        urn[known] = fixed[known, :-1]
    sums = np.cumsum(urn, axis=1)
    token = (sums <= rng.random(n)[:, None] * sums[:, -1:]).sum(axis=1)
    token = np.minimum(token, f.n_tokens - 1)
    text[:, back + i] = token

    again = text[None, :, back : back + i] == token[:, None]
    urn_of_token = cell[row, token] + counts[:, row, token] + (same & again).sum(axis=2)
    share = urn_of_token / total
    below = share[-1]
    for k in range(f.order - 2, -1, -1):
        gain[k, :, i] = np.log(share[k]) - np.log(below)
        below = stop[k] * share[k] + (1 - stop[k]) * below


def _contexts(f: "ContextTree", y: Array, before: Array) -> tuple[Array, Array, Array]:
    """Log odds and totals (D + 1, n), and counts (D + 1, n, V), of all contexts of documents."""
    n, back = before.shape
    odds, total = np.empty((2, f.order, n))
    counts = np.zeros((f.order, n, f.n_tokens))
    for k, (level, own) in enumerate(zip(f.levels, f.weights, strict=True)):
        *_, at = level.index.tree.path(before[:, back - k :])
        odds[k], total[k] = own.log_odds[y, at], own.total[y, at]
        edges = np.append(level.index.starts, len(level.index.grams))
        seen = np.flatnonzero(at >= 0)
        many = (edges[1:] - edges[:-1])[at[seen]]
        row = np.repeat(seen, many)
        gram = np.arange(many.sum()) + np.repeat(edges[at[seen]] - np.cumsum(many) + many, many)
        counts[k, row, level.index.grams[gram, -1]] = own.counts[y[row], gram]
    return odds, total, counts


@dataclass(frozen=True, eq=False)
class ContextTree(ngrams.SuffixFamily, ConjugateFamily):
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
    simulate_predictive = draw_documents

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``tables``: p(token | leaf, y = c) over `contexts`, 0 where a context is no leaf."""
        return {"tables": (CLASS, CONTEXT, TOKEN)}

    # -- the tree --------------------------------------------------------------------------------

    @cached_property
    def weights(self) -> "list[Weights]":
        """Counts, totals and posterior log odds of being a leaf, level by level."""
        return weigh(self)[0]

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
        return log_likelihood(self, X, np.asarray(theta["tables"]))

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N,) documents of `length` tokens; what theta does not have is integrated out."""
        return draw_documents(self, rng, y, np.asarray(theta["tables"]))

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
        nothing = (ngrams.every_ngram(n_classes, f.order, n_features) for f in made)
        return [f.resolve(none).update(none) for f, none in zip(made, nothing, strict=True)]

    def resolve(self, stats: ngrams.MarkovStats) -> Self:
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
        base = base / base.sum(axis=1, keepdims=True)
        known |= {"leaf": leaf, "base": base}
        return broadcast_priors(replace(self, **known), (n_classes,), "strength")

    # -- closed forms ----------------------------------------------------------------------------

    def log_predictive(self, X: Array) -> Array:
        """(N, C) of documents as wholes, trees and tables integrated out."""
        out = np.empty((len(X), len(self.strength)))
        cells = self.order * (sum(map(len, X)) // max(1, len(X)) + 1)
        one = np.ones(1)
        for rows in row_blocks(len(X), cells):
            docs = ngrams.document_levels(X[rows], self.order, self.n_tokens)
            for c in range(out.shape[1]):
                out[rows, c] = log_change(self, docs, c, one)
        return out

    def log_evidence(self, stats: ngrams.MarkovStats) -> float:
        """Sum over classes of L of the empty context, with the rows less without them."""
        ngrams.check_ngrams(stats, self.order, self.n_tokens)
        grams, mine, new = ngrams.union_of_counts(
            (self.grams, self.counts), (stats.grams, stats.counts), self.n_tokens
        )
        after, before = (replace(self, grams=grams, counts=n) for n in (mine + new, mine))
        return float((weigh(after)[1] - weigh(before)[1]).sum())

    # -- theta -----------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Trees from the root down, exactly and independently; given them, Dirichlet tables."""
        return {"tables": draw(self, rng, n)}

    def n_parameters(self) -> int:
        """Classes times contexts times tokens."""
        return int(len(self.strength) * self.offsets[-1] * (self.n_tokens + 1))

    def mle(self, stats: ngrams.MarkovStats) -> dict[str, Array]:
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
        return density_by_draws(lambda t: log_density(self, t["tables"]), theta, self.params)

    def leaf_probabilities(self) -> Array:
        """(C, M) that each context is a leaf."""
        reached = np.ones((len(self.leaf), len(self.levels[0].index.starts)))
        out = []
        for level, own in zip(self.levels, self.weights, strict=True):
            z = own.log_odds[:, :-1]
            out.append(reached * expit(z))
            reached = (reached * expit(-z))[:, level.context]
        return np.concatenate(out, axis=1)

    def cgf(self, X: Array, t: Array) -> Array:
        """(..., N), as in `ConjugateFamily.cgf`."""
        t = np.asarray(t)
        n_entries = self.order * (sum(map(len, X)) // max(1, len(X)) + 1)

        def cell(rows: slice, t: Array) -> Array:
            own = X[rows]
            docs = ngrams.document_levels(own, self.order, self.n_tokens)
            out = np.zeros((*t.shape[:-2], len(own)), dtype=np.result_type(t, np.float64))
            for c in range(len(self.strength)):
                tc = t[..., c]
                if not tc.any():
                    continue
                if not np.iscomplexobj(t):
                    out += log_change(self, docs, c, tc)
                    continue
                found = changes(self, docs, c, tc[None])
                value = _by_document(docs, found.delta[0])[0]
                far = np.argwhere(found.turn >= _NEAR)  # else no sum has left its first branch
                if len(far):
                    at = tuple(far.T)
                    t_far = np.broadcast_to(tc, value.shape)[at]
                    value[at] = _followed(self, own[far[:, -1]], c, t_far, n_entries)
                out += value
            return out

        return cgf_by_rows(cell, len(X), n_entries, t)

    def draw_log_density(self, rng: np.random.Generator, X: Array, n: int) -> Array:
        """(n, N, C): leaves among contexts that documents visit, and of their tables what they use.

        The probabilities of some tokens and of all others together are a Dirichlet variable too.
        """
        out = np.zeros((n, len(X), len(self.leaf)))
        gamma = rng.spawn(1)[
            0
        ]  # so many shapes: quantiles of quasi-random numbers would take longer
        docs = ngrams.document_levels(X, self.order, self.n_tokens)
        for c in range(len(self.leaf)):
            leaf = np.zeros((n, 0), dtype=bool)
            reached = np.ones((n, len(docs[0].docs.run_row)), dtype=bool)
            for k, (level, weights) in enumerate(zip(docs, self.weights, strict=True)):
                own = level.docs
                if k:
                    reached = (reached & ~leaf)[:, docs[k - 1].run]
                context, gram = self.levels[k].find(own.grams)
                context = context[own.run_gram]
                leaf = reached & (gamma.random(reached.shape) < expit(weights.log_odds[c, context]))
                mass = self.strength[c] * self.base[c, own.grams[own.gram, -1]]
                mass += weights.counts[c, gram[own.gram]]
                rest = self.strength[c] + weights.total[c, context] - row_sums(mass, own.starts)
                rest = np.maximum(rest, np.finfo(np.float64).tiny)
                for r in np.flatnonzero(leaf.any(axis=0)):
                    draws, entries = np.flatnonzero(leaf[:, r]), slice(*own.starts[r : r + 2])
                    alpha = np.append(mass[entries], rest[r])
                    log_g = special.draw_log_gamma(gamma, alpha, (len(draws), len(alpha)))
                    log_p = log_g[:, :-1] - special.log_sum_exp(log_g)[:, None]
                    out[draws, own.run_row[r], c] += log_p @ own.n[entries]
        return out


# ------------------------------------------------------------------------------------------------
# Context trees: their weights, draws, densities, and documents under given ones.
#
# A tree and its tables are one array (context, token): the probabilities of a leaf, 0 of all else.

_LEFT = 1e-12  # of a probability; less is rounding


class Weights(NamedTuple):
    """Of contexts of one length; the last column of each stands for what was never seen."""

    counts: Array  # (C, G + 1)
    total: Array  # (C, H + 1)
    log_odds: Array  # (C, H + 1) of being a leaf, given that no suffix is one


def weigh(f: "ContextTree") -> tuple[list[Weights], Array]:
    """Weights of contexts of 0 .. D tokens, and the log evidence of each class (C,)."""
    cell, log_leaf, log_split = f.strength[:, None] * f.base, np.log(f.leaf), np.log1p(-f.leaf)
    out: list[Weights] = []
    counts, longer = f.counts, np.empty((len(f.leaf), 0))
    for k in range(f.order - 1, -1, -1):
        level = f.levels[k]
        total = level.index.totals(counts)
        token = level.index.grams[:, -1]
        log_p = level.index.totals(special.log_gamma_difference(cell[:, token], counts))
        log_p -= special.log_gamma_difference(f.strength[:, None], total)
        if k == f.order - 1:
            log_odds, unseen, log_sum = (
                np.full(total.shape, np.inf),
                np.full(len(f.leaf), np.inf),
                log_p,
            )
        else:
            unseen = log_leaf - log_split
            split = level.sum_of_longer(longer)
            log_odds = unseen[:, None] + log_p - split
            log_sum = log_mixture(unseen[:, None], log_p, split)
        out.insert(
            0,
            Weights(
                np.pad(counts, ((0, 0), (0, 1))),
                np.pad(total, ((0, 0), (0, 1))),
                np.hstack([log_odds, unseen[:, None]]),
            ),
        )
        if k:
            counts, longer = f.levels[k - 1].counts_of_longer(counts), log_sum
    return out, log_sum.sum(axis=1)  # of one context, or of none


def draw(f: "ContextTree", rng: np.random.Generator, n: int) -> Array:
    """(n, C, M, V + 1) leaves of trees with their tables."""
    out = np.zeros((n, len(f.leaf), f.offsets[-1], f.n_tokens + 1))
    alpha = f.concentrations()
    for c in range(len(f.leaf)):
        reached = np.ones((n, len(f.levels[0].index.starts)), dtype=bool)
        for level, own, start in zip(f.levels, f.weights, f.offsets, strict=False):
            leaf = reached & (rng.random(reached.shape) < expit(own.log_odds[c, :-1]))
            which, context = np.nonzero(leaf)
            tables = special.draw_dirichlet(rng, alpha[c, start + context], 1)[0]
            out[which, c, start + context] = np.maximum(tables, np.finfo(np.float64).tiny)
            reached = (reached & ~leaf)[:, level.context]
    return out


def log_density(f: "ContextTree", tables: Array) -> Array:
    """(n,) log probabilities of trees with leaves in (n, C, M, V + 1), and density of tables."""
    if tables.shape[2:] != (f.offsets[-1], f.n_tokens + 1):
        raise ValueError(
            f"theta has tables of {tables.shape[2]} contexts, and this family has "
            f"{f.offsets[-1]}; use the posterior from which it came, or `prepared`"
        )
    leaves = tables.sum(axis=-1) > 0.5
    out = np.zeros(len(tables))
    alpha = f.concentrations()
    reached = np.ones((len(tables), len(f.leaf), len(f.levels[0].index.starts)), dtype=bool)
    for level, own, start in zip(f.levels, f.weights, f.offsets, strict=False):
        z = own.log_odds[:, :-1]
        leaf = leaves[:, :, start : start + z.shape[1]]
        terms = np.where(leaf, -np.logaddexp(0, -z), -np.logaddexp(0, z))
        out += np.where(reached, terms, np.where(leaf, -np.inf, 0.0)).sum(axis=(1, 2))
        reached = (reached & ~leaf)[:, :, level.context]
    which, c, context = np.nonzero(leaves)
    terms = log_dirichlet_density(tables[which, c, context], alpha[c, context])
    out += np.bincount(which, terms, len(out))
    return out


# -- documents under given trees -----------------------------------------------------------------


def path(f: "ContextTree", grams: Array) -> Array:
    """(n, k) positions among `contexts` of the contexts of n-grams (n, k), from short to long.

    -1 for a context that has not been seen.
    """
    width = grams.shape[1]
    out = np.empty(grams.shape, dtype=np.int64)
    for k in range(width):
        context, _ = f.levels[k].find(grams[:, width - 1 - k :])
        out[:, k] = np.where(context >= 0, f.offsets[k] + context, -1)
    return out


def log_likelihood(f: "ContextTree", X: Array, tables: Array) -> Array:
    """(..., N, C) of documents under tables (..., C, M, V + 1)."""
    *lead, n_classes, n_contexts, width = tables.shape
    if (n_contexts, width) != (f.offsets[-1], f.n_tokens + 1):
        raise ValueError(
            f"theta has tables of {n_contexts} contexts and {width} tokens, but this family has "
            f"{f.offsets[-1]} and {f.n_tokens + 1}; use the posterior from which it came"
        )
    flat = tables.reshape(-1, n_classes, n_contexts, width)
    mass = flat.sum(axis=-1)
    out = np.empty((len(flat), len(X), n_classes))
    cells = f.order * (sum(map(len, X)) // max(1, len(X)) + 1)
    for rows in row_blocks(len(X), cells):
        docs = ngrams.document_levels(X[rows], f.order, f.n_tokens)
        nodes, away = path(f, docs[-1].docs.grams), _unseen(f, docs)
        n = n_classes * (len(nodes) + docs[0].docs.n_rows)
        for draws in row_blocks(len(flat), n):
            out[draws, rows] = _given(f, docs, nodes, flat[draws], mass[draws])
            out[draws, rows] += _integrated(away, mass[draws])
    return out.reshape(*lead, len(X), n_classes)


def _given(
    f: "ContextTree", docs: list[ngrams.DocumentLevel], nodes: Array, tables: Array, mass: Array
) -> Array:
    """(S, N, C) the factors of tokens whose leaf has been seen."""
    whole = docs[-1].docs
    token = whole.grams[:, -1]
    p = np.zeros((*mass.shape[:2], len(token)))
    for at in nodes.T:
        seen = at >= 0
        p[..., seen] += tables[:, :, at[seen], token[seen]]
    left = 1.0 - _above(mass, nodes)
    left[..., nodes[:, -1] >= 0] = 0.0  # nothing is below the longest context
    away = left == 1  # no leaf among the contexts that were seen
    p += np.where(away | (left < _LEFT), 0.0, left) * f.base[:, token]
    p[away] = 1.0
    matrix = sparse.csr_matrix((whole.n, (whole.row, whole.gram)), (whole.n_rows, len(token)))
    return dot_log(matrix, p)


def _above(mass: Array, nodes: Array) -> Array:
    """(S, C, n) sums of `mass` (S, C, M) over the contexts `nodes` (n, k), -1 for none."""
    out = np.zeros((*mass.shape[:2], len(nodes)))
    for at in nodes.T:
        seen = at >= 0
        out[..., seen] += mass[:, :, at[seen]]
    return out


class _Unseen(NamedTuple):
    """Contexts that documents visit and nobody has seen, those whose parent has been seen."""

    nodes: Array  # (T, D) seen contexts above each, -1 for none
    change: Array  # (C, T) log probability of what is below
    rows: sparse.csr_matrix  # (N, T) 1 where a document visits it


def _unseen(f: "ContextTree", docs: list[ngrams.DocumentLevel]) -> _Unseen:
    changes = [of_prior(f, docs, c) for c in range(len(f.leaf))]
    nodes, change, row = [], [], []
    for k, level in enumerate(docs):
        own = level.docs
        at = path(f, own.grams[own.run_gram])
        top = np.flatnonzero((at[:, k] < 0) & ((at[:, k - 1] >= 0) if k else True))
        nodes.append(np.pad(at[top, :k], ((0, 0), (0, f.order - 1 - k)), constant_values=-1))
        change.append(np.array([of_class[k][top] for of_class in changes]))
        row.append(own.run_row[top])
    rows = np.concatenate(row)
    visits = (np.ones(len(rows)), (rows, np.arange(len(rows))))
    shape = (docs[0].docs.n_rows, len(rows))
    return _Unseen(
        np.concatenate(nodes), np.concatenate(change, axis=1), sparse.csr_matrix(visits, shape)
    )


def _integrated(away: _Unseen, mass: Array) -> Array:
    """(S, N, C) the factors of contexts that nobody has seen, and that are below no leaf."""
    terms = np.where(_above(mass, away.nodes) == 0, away.change, 0.0)
    flat = terms.reshape(int(np.prod(mass.shape[:2])), terms.shape[-1]).T
    out: Array = (away.rows @ flat).T.reshape(*mass.shape[:2], away.rows.shape[0])
    return np.swapaxes(out, 1, 2)


# ------------------------------------------------------------------------------------------------
# Joint cumulant generating functions of whole documents, trees and tables integrated out.
#
# :math:`p(x \mid \theta, T)^t` adds t times the document's counts to those of the leaves of T, so
# that of the sums over trees nothing changes but the counts. For complex t every sum
# :math:`w e^a + (1-w) e^b` has a logarithm on one branch: a and b are known on theirs, the larger
# term is taken out, and where along the way from the real axis the two terms change places while
# they are whole turns apart, these turns are put right.

_NEAR = np.pi / 2  # radians from the real axis, within which no sum leaves its first branch
_HALF = 2.5  # radians that two terms may turn against each other at all, or
_STEP = 2.0  # between two points of a path
_FEWEST, _MOST = 8, 128  # points of a path


def log_mixture(log_odds: Array, a: Array, b: Array) -> Array:
    """log of w e^a + (1 - w) e^b, w of these log odds."""
    out: Array = np.logaddexp(a - np.logaddexp(0, -log_odds), b - np.logaddexp(0, log_odds))
    return out


def _complex_mixture(log_odds: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The same of complex a and b, and how far the terms have turned, in radians.

    The first axis is a path that begins on the real axis. Where a and b are on the branch that is
    continuous along it, so is the result, but for what happens between its points; b has turned
    against a by the second result between two of them, 0 if never by half a turn. Of a single
    point: either of them in all.
    """
    gap = b - a - log_odds
    first = gap.real <= 0
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        out = np.where(first, a - np.logaddexp(0, -log_odds), b - np.logaddexp(0, log_odds))
        out += special.log1p(np.exp(np.where(first, gap, -gap)))
        swap = first[1:] != first[:-1]
        if swap.any():  # where the terms are of equal size, at a phase that is interpolated
            part = gap.real[:-1] / np.where(swap, gap.real[:-1] - gap.real[1:], 1.0)
            phase = gap.imag[:-1] + part * (gap.imag[1:] - gap.imag[:-1])
            turns = 2 * np.pi * np.round(phase / (2 * np.pi))
            jump = np.where(swap, np.where(first[1:], turns, -turns), 0.0)
            out.imag[1:] += np.cumsum(np.where(np.isfinite(jump), jump, 0.0), axis=0)
    if len(gap) == 1:
        return out, np.maximum(np.abs(a.imag), np.abs(b.imag))[0]
    step = np.abs(np.diff(gap.imag, axis=0)).max(axis=0)
    return out, np.where(np.abs(gap.imag).max(axis=0) < _HALF, 0.0, step)


class Changes(NamedTuple):
    """Of the logs of sums over trees below contexts that documents visit."""

    delta: list[Array]  # (..., R) of each level 0 .. D
    turn: Array  # (..., N) for complex t, the furthest that terms have turned (`_complex_mixture`)


def changes(
    f: "ContextTree", docs: list[ngrams.DocumentLevel], c: int, t: Array, *, of_prior: bool = False
) -> Changes:
    """By counts of t times those of the documents, in class c.

    Parameters
    ----------
    docs : levels 0 .. D of n documents
    t : (..., n or 1)
        Complex: the first axis is a path from real t.
    of_prior : bool
        As if nothing had been seen.
    """
    delta: list[Array] = []
    turn = np.zeros((*t.shape[1:-1], docs[0].docs.n_rows))
    strength, cell = f.strength[c], f.strength[c] * f.base[c]
    for k in range(f.order - 1, -1, -1):
        own, weights = docs[k].docs, f.weights[k]
        context, gram = f.levels[k].find(own.grams)
        if of_prior:
            context, gram = np.full((2, len(own.grams)), -1)
        gram, context, token = gram[own.gram], context[own.run_gram], own.grams[own.gram, -1]
        each = t.shape[-1] > 1
        n, many = (
            count * (t[..., row] if each else t)
            for count, row in ((own.n, own.row), (own.run_n, own.run_row))
        )
        leaf = row_sums(
            special.log_gamma_difference(cell[token] + weights.counts[c, gram], n), own.starts
        )
        leaf = leaf - special.log_gamma_difference(strength + weights.total[c, context], many)
        if k == f.order - 1:
            delta = [leaf]
            continue
        split = row_sums(delta[0][..., docs[k].order], docs[k].edges)
        log_odds = weights.log_odds[c, context]
        if not np.iscomplexobj(t):
            delta.insert(0, log_mixture(log_odds, leaf, split))
            continue
        mixed, angle = _complex_mixture(log_odds, leaf, split)
        delta.insert(0, mixed)
        visited = np.flatnonzero(np.diff(own.run_row, prepend=-1))
        most = np.maximum.reduceat(angle, visited, axis=-1) if len(visited) else angle
        at = own.run_row[visited]
        turn[..., at] = np.maximum(turn[..., at], most)
    return Changes(delta, turn)


def of_prior(f: "ContextTree", docs: list[ngrams.DocumentLevel], c: int) -> list[Array]:
    """Of each level, (R,) log probabilities of what documents have after contexts never seen."""
    return changes(f, docs, c, np.ones(1), of_prior=True).delta


def log_change(f: "ContextTree", docs: list[ngrams.DocumentLevel], c: int, t: Array) -> Array:
    """(..., N) log E p(x | theta)^t in class c, for t (..., n or 1), on some branch."""
    return _by_document(docs, changes(f, docs, c, t).delta[0])


def _by_document(docs: list[ngrams.DocumentLevel], values: Array) -> Array:
    """(..., N) from values of the empty context (..., R); 0 of an empty document."""
    own = docs[0].docs
    out = np.zeros((*values.shape[:-1], own.n_rows), dtype=values.dtype)
    out[..., own.run_row] = values
    return out


def _followed(
    f: "ContextTree", X: Array, c: int, t: Array, n_entries: int, points: int = _FEWEST
) -> Array:
    """(n,) the same of documents (n,) at t (n,), along paths from its real part."""
    out = np.empty(len(t), dtype=np.complex128)
    along = np.linspace(0.0, 1.0, points)[:, None]
    rough = np.zeros(len(t), dtype=bool)
    for some in row_blocks(len(t), 4 * points * n_entries):
        docs = ngrams.document_levels(X[some], f.order, f.n_tokens)
        path = changes(f, docs, c, t[some].real + 1j * along * t[some].imag)
        out[some] = _by_document(docs, path.delta[0])[-1]
        rough[some] = path.turn > _STEP
    if rough.any() and points < _MOST:
        out[rough] = _followed(f, X[rough], c, t[rough], n_entries, 4 * points)
    return out
