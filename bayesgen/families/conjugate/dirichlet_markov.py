r"""N-gram language models: each token depends on the n-1 tokens before it, one table per class.

.. math:: x_i \mid x_{<i}, y=c \sim \text{Categorical}(\theta_{c,h}), \quad
          h = (x_{i-n+1}, \dots, x_{i-1}), \qquad
          \theta_{c,h} \sim \text{Dirichlet}(\alpha_c)

for every context h; positions before the document hold a start symbol. n = 1 is the unigram model:
a product over tokens. The length of a document is given, not modelled (no symbol
ends it), and the probability is that of the token *sequence*: no multinomial coefficient.

Posterior: alpha + counts of the n-grams. Predictive of a whole document, theta integrated out:

.. math:: \log p(x \mid c) = \sum_h \log B(\alpha_c + N_{ch} + n_h) - \log B(\alpha_c + N_{ch})

with n_h the counts in the document after h. It is not the product of posterior means: a document
that repeats itself teaches the model while it is read. Only n-grams seen in training are held; a
context never seen still has its prior.

Source: MacKay and Peto (1995), A hierarchical Dirichlet language model, section 2.
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Self

import numpy as np

from bayesgen.families.capabilities import Urns
from bayesgen.families.contract import ConjugateFamily, Stats, Tensors, Theta
from bayesgen.families.errors import NotLinearError, refuse_undefined
from bayesgen.families.names import CLASS, CONTEXT, OBS, TOKEN
from bayesgen.families.records import Hyperparameter, array
from bayesgen.families.shared import ngrams
from bayesgen.families.shared.densities import (
    density_by_draws,
    log_dirichlet_density,
)
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.families.shared.pymc_parts import container, dirichlet, prefixed, sum_cells
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import (
    Seed,
    dot_log,
    draws_of_each_row,
    row_blocks,
)
from bayesgen.numerics.special import Array, draw_dirichlet, draw_log_gamma, log_gamma_difference


@dataclass(frozen=True, eq=False)
class DirichletMarkov(ConjugateFamily):
    """N-gram language model of documents, with a Dirichlet prior on every context's table.

    X is a 1-D object array (N,) of integer arrays: the token codes 0 .. V-1 of each document, -1
    for a token outside the vocabulary (not in training). A document may be empty.

    Parameters
    ----------
    order : int >= 1
        n: a token depends on the n-1 before it.
    n_tokens : int
        V, the size of the vocabulary; 0: the largest code seen plus one.
    alpha : float or array broadcasting to (class, token), > 0
        Pseudo-counts of each token, in tokens; the same for every context.
    length : int
        Number of tokens of a simulated document; no part of the model.
    grams : int array (gram, position), or None
        Distinct n-grams seen, in lexicographic order; filled in by `update`.
    counts : array (class, gram), or None
        How often each class has shown them.

    Notes
    -----
    *Tokens outside the vocabulary* are no evidence: they are left out of the product, under every
    class. They keep their place in the contexts of the tokens that follow, and such a context is
    one that was never seen.

    *Tables.* theta is dense over `contexts`: those seen in training by any class, and those to
    which a seen n-gram leads (the last tokens of a document, after which nothing was seen). A
    prior that has seen nothing lists every context, if there are at most 4096.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.empty(2, dtype=object)
    >>> X[:] = [np.array([0, 1, 0]), np.array([1, 1])]
    >>> family = DirichletMarkov(order=1)
    >>> stats = family.stats(X, np.array([0, 1]), n_classes=2)
    >>> posterior = family.resolve(stats).update(stats)
    >>> np.exp(posterior.log_predictive(X)).round(3)  # 3/5 * 2/6 * 4/7, and so on
    array([[0.114, 0.05 ],
           [0.2  , 0.6  ]])
    """

    holds: ClassVar[str] = "token"
    kind: ClassVar[str] = "text"
    missing: ClassVar[str] = (
        "a document is a sequence of tokens, and a gap in it has no context to follow; leave the "
        "token out, or give it a name of its own"
    )
    statistics: ClassVar[type[Stats]] = ngrams.MarkovStats
    default_draws: ClassVar[int] = 500
    tunable: ClassVar[tuple[str, ...]] = ("alpha",)

    order: int = 2
    n_tokens: int = 0
    alpha: Hyperparameter = array(CLASS, TOKEN, default=1.0)
    length: int = 100
    grams: Hyperparameter = array("gram", "position", default=None)
    counts: Hyperparameter = array(CLASS, "gram", default=None)

    # -- the tables ----------------------------------------------------------------------------

    def __post_init__(self) -> None:
        """Refuse what is no integer, or too small."""
        for name, least in (("order", 1), ("n_tokens", 0), ("length", 0)):
            try:
                value = operator.index(getattr(self, name))
            except TypeError:
                raise TypeError(f"{name} must be an integer, got {getattr(self, name)!r}") from None
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
            object.__setattr__(self, name, value)

    @cached_property
    def index(self) -> ngrams.GramIndex:
        """Return the n-grams seen, and their contexts."""
        return ngrams.GramIndex(self.grams, self.n_tokens)

    @cached_property
    def totals(self) -> Array:
        """Return (C, H + 1) counts of the contexts that have a continuation; the last is 0."""
        return np.pad(self.index.totals(self.counts), ((0, 0), (0, 1)))

    @property
    def contexts(self) -> Array:
        """Return (M, order - 1) codes of theta's contexts; `START` (-2) before the document."""
        return self.index.contexts

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: p(token | context, y = c), over the rows of `contexts`."""
        return {"theta": (CLASS, CONTEXT, TOKEN)}

    def log_likelihood(self, X: Array, theta: Theta) -> Array:
        """Return (..., N, C) log probability of each token sequence under tables over `contexts`.

        What theta does not tell is integrated out: a context that is not in `contexts` has the
        Dirichlet-multinomial probability of its prior, and a token outside the vocabulary the
        mass that a Dirichlet enlarged by it gives. So the mean over draws of theta is exactly
        the predictive. A plug-in of the posterior mean is the prior mean where an unseen context
        occurs once.

        Under the MLE (and a MAP with zeros) unseen contexts are impossible, with no special
        case: the first context absent from `contexts` is reached by an n-gram that no class has
        shown, for the contexts to which seen n-grams lead are all there; that n-gram has
        probability 0. A context with a token outside the vocabulary has its prior.
        """
        table = np.asarray(theta["theta"])
        *lead, n_classes, n_contexts, n_tokens = table.shape
        if (n_contexts, n_tokens) != (len(self.contexts), self.n_tokens):
            raise ValueError(self._other_table(n_contexts, n_tokens))
        log_p = np.empty((*lead, len(X), n_classes))
        for rows in row_blocks(len(X), int(np.prod([*lead, n_classes])) * (1 + _mean_length(X))):
            docs = ngrams.DocumentCounts.count(X[rows], self.order, self.n_tokens)
            context = self.index.prefixes.find(docs.grams[:, :-1])
            block = self._integrated(docs, context)
            if (held := context >= 0).any():
                of_grams = table[..., context[held], docs.grams[held, -1]]
                block = block + dot_log(docs.matrix()[:, held], of_grams)
            log_p[..., rows, :] = block
        return log_p

    def _other_table(self, n_contexts: int, n_tokens: int) -> str:
        return (
            f"theta is a table of {n_contexts} contexts and {n_tokens} tokens, but this "
            f"family has {len(self.contexts)} and {self.n_tokens}; use the posterior from "
            "which it came"
        )

    def _integrated(self, docs: ngrams.DocumentCounts, at: Array) -> Array:
        """Return (N, C) the factors without theta; `at` (U,) places the n-grams in `contexts`."""
        away = at[docs.run_gram] < 0
        log_p = np.zeros((docs.n_rows, len(self.alpha)))
        for c, (cell, total) in enumerate(self.cells(docs)) if away.any() else ():
            entries = np.where(away[docs.run], log_gamma_difference(cell, docs.n), 0.0)
            runs = np.where(away, log_gamma_difference(total, docs.run_n), 0.0)
            log_p[:, c] = docs.sum(entries, runs)
        return log_p

    def pseudo_counts(self, grams: Array, starts: Array) -> tuple[Array, Array]:
        """Return those of n-grams (C, U), and of the contexts that begin at `starts`."""
        *_, context, place = self.index.tree.path(grams)
        cell = self.alpha[:, grams[:, -1]] + np.pad(self.counts, ((0, 0), (0, 1)))[:, place]
        return cell, self.alpha.sum(axis=1)[:, None] + self.totals[:, context[starts]]

    def cells(self, docs: ngrams.DocumentCounts) -> Iterator[tuple[Array, Array]]:
        """For each class the posterior pseudo-counts of the entries (P,) and of the runs (R,)."""
        for cell, total in zip(*self.pseudo_counts(docs.grams, docs.run_gram), strict=True):
            yield cell[docs.gram], total

    def to_pymc(self, *, prefix: str = "", X: Array | None = None, y=None, stats=None) -> Tensors:
        """Dirichlet priors; Categorical tokens given their contexts, or the counts of n-grams.

        ``theta`` spans the contexts of this family's n-grams and of the documents or statistics:
        a prior whose `grams` are those of a posterior, with zero `counts`, has its contexts
        whatever it is conditioned on. The counts of the family itself are pseudo-counts. Rows are
        listed token by token, dim ``{prefix}cell``; ``{prefix}x_row`` tells their documents, and
        ``{prefix}x_length`` (obs_id) their numbers of tokens.
        """
        import pymc as pm
        import pytensor.tensor as pt
        from pytensor.raise_op import Assert

        new = stats
        if X is not None:
            new = self.stats(X, np.zeros(len(X), dtype=np.int64), len(self.alpha))
        whole = self
        if new is not None:
            whole = self.prepared(new)
        index = whole.index
        dims = prefixed(prefix, self.params["theta"])
        named = pm.modelcontext(None).coords.get(dims[1])
        if named is not None and len(named) != len(index.contexts):
            raise ValueError(
                f"the documents have contexts that are not among the {len(named)} that were seen "
                "in training: fit these documents first"
            )
        a = container(f"{prefix}prior_alpha", self.alpha, (dims[0], dims[2]))[:, None, :]
        if whole.counts.any():
            a = a + container(f"{prefix}prior_counts", index.dense(whole.counts), dims)
        theta = dirichlet(f"{prefix}theta", whole.dense(), a, dims)
        if stats is not None and X is None:
            # a table as large as theta: statistics over the same contexts have the same shape
            counts = replace(whole, counts=np.zeros_like(whole.counts)).update(stats).counts
            n = container(f"{prefix}stats_counts", index.dense(counts), dims)
            pm.Potential(f"{prefix}x", (n * pt.log(theta)).sum())
        elif X is not None:
            grams, gram, document = ngrams.known_ngrams(X, self.order, self.n_tokens)
            place = index.prefixes.find(grams[:, :-1])[gram]
            cell = f"{prefix}cell"
            row = pm.Data(f"{prefix}x_row", document, dims=cell)
            lengths = np.bincount(document, minlength=len(X))
            length = pm.Data(f"{prefix}x_length", lengths, dims=OBS)
            context = pm.Data(f"{prefix}x_context", place, dims=cell)
            cells = pm.Data(f"{prefix}cells", grams[gram, -1], dims=cell)
            moved_together = Assert(
                f"the documents of {prefix}x_length have other tokens than {prefix}cells: set "
                f"{prefix}x_row, {prefix}x_context and {prefix}cells (dim {cell}) with the labels"
            )
            row = moved_together(row, pt.eq(length.sum(), cells.shape[0]))
            p = theta[y[row], context]
            pm.Categorical(f"{prefix}x", p=p, observed=cells, dims=cell)
        return {"theta": theta}

    def pymc_log_likelihood(self, X: Array, theta, *, prefix: str = ""):
        """Sums over the n-grams of each document, whose contexts this family must have."""
        import pymc as pm
        import pytensor.tensor as pt

        docs = ngrams.DocumentCounts.count(X, self.order, self.n_tokens)
        context = self.index.prefixes.find(docs.grams[:, :-1])
        if len(context) and context.min() < 0:
            raise ValueError("the documents have contexts that this family does not have")
        place = pm.Data(f"{prefix}ngrams_context", context.astype(np.int64))
        token = pm.Data(f"{prefix}ngrams_token", docs.grams[:, -1].astype(np.int64))
        table = pt.log(theta["theta"][:, place, token]).T
        return sum_cells(f"{prefix}ngrams", docs.matrix(), table)

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Refused: a document is no vector of features."""
        raise NotLinearError("the rule of DirichletMarkov is not linear in the features")

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Draw (N,) documents of `length` tokens; contexts not in theta follow the prior.

        Such a context is an urn of its own in each document, as in `simulate_predictive`; so is a
        context that an MLE leaves without probabilities.
        """
        table = np.asarray(theta["theta"])
        one_each = table.ndim > 3

        def rows_of_theta(rows: slice, context: Array) -> Array:
            which = (np.arange(len(y))[rows],) if one_each else ()
            return table[(*which, y[rows], context)]

        return self._draw(rng, y, rows_of_theta)

    def simulate_predictive(self, rng: np.random.Generator, y: Array) -> Array:
        """Draw (N,) documents by urns: no table is drawn."""
        return self._draw(rng, y)

    def _draw(
        self,
        rng: np.random.Generator,
        y: Array,
        rows_of_theta: Callable[[slice, Array], Array] | None = None,
    ) -> Array:
        """Return (N,) documents of the classes `y`, all in step, token by token.

        By Polya's urn: after context h a token has weight alpha + its training count after h + how
        often it followed h in this very document. No table is drawn, and a document has exactly
        the predictive.

        Parameters
        ----------
        rows_of_theta : callable, optional
            (rows, contexts) to the probabilities of the next token, (n, V); a context that theta
            does not tell is at -1, and one without probabilities has zeros: an urn stands for both.
        """
        y = np.asarray(y)
        documents = np.empty(len(y), dtype=object)
        back = self.order - 1
        width = self.length if rows_of_theta is None else max(self.length, self.n_tokens)
        for rows in row_blocks(len(y), width):
            text = np.full((len(y[rows]), back + self.length), ngrams.START, dtype=np.int64)
            for i in range(self.length):
                new = self._next(rng, y[rows], text, i)
                if rows_of_theta is not None:
                    context = self.index.prefixes.find(text[:, i : i + back])
                    p = np.cumsum(rows_of_theta(rows, context), axis=-1)
                    drawn = (p <= rng.random(len(p))[:, None] * p[:, -1:]).sum(axis=-1)
                    new = np.where((context >= 0) & (p[:, -1] > 0), drawn, new)
                text[:, back + i] = new
            for k, document in enumerate(text[:, back:]):
                documents[rows.start + k] = document.copy()
        return documents

    def _next(self, rng: np.random.Generator, y: Array, text: Array, i: int) -> Array:
        """Token `i` of each document: from the prior, the training counts, or a copy."""
        back = self.order - 1
        same = np.ones((len(y), i), dtype=bool)  # earlier places with the same context
        for k in range(back):
            same &= text[:, k : k + i] == text[:, i + k, None]
        context = self.index.tree.find(text[:, i : i + back])
        prior_sum, count_sum = self.running_sums
        prior, seen = prior_sum[y, -1], self.totals[y, context]
        u = rng.random(len(y)) * (prior + seen + same.sum(axis=1))
        pick = np.floor(u - prior - seen)  # the how-manieth of the earlier places, if >= 0
        new = np.zeros(len(y), dtype=np.int64)
        for c in np.unique(y):
            mine = (y == c) & (u < prior)
            new[mine] = np.searchsorted(prior_sum[c], u[mine], side="right")
            mine = (y == c) & (u >= prior) & (pick < 0)
            below = count_sum[c, self.index.starts[context[mine]]]
            gram = np.searchsorted(count_sum[c], below + (u - prior)[mine], side="right") - 1
            new[mine] = self.grams[np.minimum(gram, len(self.grams) - 1), -1]
        new = np.minimum(new, self.n_tokens - 1)
        if i:
            place = np.argmax(np.cumsum(same, axis=1) > pick[:, None], axis=1)
            new = np.where(pick >= 0, text[np.arange(len(y)), back + place], new)
        return new

    @cached_property
    def running_sums(self) -> tuple[Array, Array]:
        """Running sums of alpha (C, V), and of the counts (C, G + 1) from 0."""
        counts = np.pad(np.cumsum(self.counts, axis=1), ((0, 0), (1, 0)))
        return np.cumsum(self.alpha, axis=1), counts

    # -- conjugate -----------------------------------------------------------------------------

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Orders 1, 2 and 3 over `n_features` tokens; uniform, and unequal by class and token."""
        flat = np.ones((n_classes, n_features))
        pattern = 0.5 + np.arange(n_classes * n_features).reshape(n_classes, n_features) % 5
        return [
            cls(
                order,
                n_features,
                alpha,
                6,
                np.empty((0, order), np.int64),
                np.empty((n_classes, 0)),
            )
            for order, alpha in ((1, flat), (1, pattern), (2, pattern[::-1]), (3, 0.5 * flat))
        ]

    def stats(
        self, X: Array, y: Array, n_classes: int, weight: Array | None = None
    ) -> ngrams.MarkovStats:
        """Counts of the n-grams of each class; rows of weight 0 are as if absent."""
        return ngrams.count_ngrams(X, y, n_classes, weight, self.order, self.n_tokens)

    def resolve(self, stats: ngrams.MarkovStats) -> Self:
        """Size of the vocabulary, and the pseudo-counts broadcast to (class, token)."""
        n_classes, n_tokens = len(stats.counts), self.n_tokens or stats.n_tokens
        if n_tokens == 0:
            raise ValueError("the vocabulary is empty: every document is empty")
        ngrams.check_ngrams(stats, self.order, n_tokens)
        alpha = broadcast_prior("alpha", self.alpha, (n_classes, n_tokens))
        resolved = replace(self, n_tokens=n_tokens, alpha=alpha)
        if self.grams is not None:
            return resolved
        nothing = np.empty((0, self.order), dtype=np.int64)
        return replace(resolved, grams=nothing, counts=np.empty((n_classes, 0)))

    def update(self, stats: ngrams.MarkovStats) -> Self:
        """Counts added over the union of the n-grams; the rest stays the prior's."""
        ngrams.check_ngrams(stats, self.order, self.n_tokens)
        merged = ngrams.MarkovStats(self.grams, self.counts, self.n_tokens).merge(stats)
        return replace(self, grams=merged.grams, counts=merged.counts)

    def refits(
        self, X: Array, y: Array, n_classes: int, weight: Array, new_weights: Iterable[Array]
    ) -> Iterator[Self]:
        """Yield the posteriors of documents with new weights; n-grams are found once."""
        whole = self.prepared(self.stats(X, y, n_classes))
        grams, gram, row = ngrams.known_ngrams(X, self.order, self.n_tokens)
        shape = n_classes, len(whole.grams)
        cell = y[row] * shape[1] + whole.index.tree.find(grams)[gram]
        for new in new_weights:
            counts = np.bincount(cell, new[row], shape[0] * shape[1]).reshape(shape)
            family = replace(whole, counts=whole.counts + counts)
            vars(family)["index"] = whole.index
            yield family

    def prepared(self, stats: ngrams.MarkovStats | None) -> Self:
        """Prepare tables for the contexts of `stats`; None: for all contexts there are."""
        if stats is None:
            stats = ngrams.every_ngram(len(self.counts), self.order, self.n_tokens)
        return self.update(replace(stats, counts=np.zeros_like(stats.counts)))

    def mle(self, stats: ngrams.MarkovStats) -> dict[str, Array]:
        """Relative frequencies after each context, over the contexts of `stats`.

        A class that never saw a context of the union has a row of zeros there (0/0 has no value;
        the class cannot get there, or only by the last tokens of a document): what follows is
        impossible. A class without any token has no MLE at all.
        """
        refuse_undefined("mle", stats.counts.sum(axis=1) <= 0, "it has no token (0/0)")
        table = ngrams.GramIndex(stats.grams, self.n_tokens or stats.n_tokens).dense(stats.counts)
        total = table.sum(axis=-1, keepdims=True)
        np.divide(table, total, out=table, where=total > 0)
        return {"theta": table}

    def map(self) -> dict[str, Array]:
        """Return (a - 1)/(A - V) for pseudo-counts a with total A, the mode on the simplex.

        Undefined where a pseudo-count plus count is below 1, and where all are 1: with alpha = 1
        that is every context that some class has not seen.
        """
        table = self.dense()
        if self.n_tokens == 1:
            return {"theta": np.ones_like(table)}
        table -= 1
        total = table.sum(axis=-1, keepdims=True)
        bad = (table.min(axis=-1) < 0) | (total[..., 0] <= 0)
        if bad.any():
            m = int(np.argwhere(bad)[0, 1])
            refuse_undefined(
                "map",
                bad,
                f"after the context {tuple(self.contexts[m].tolist())} (row {m} of `contexts`) "
                "the Dirichlet density has no single mode, for which all pseudo-counts plus "
                "counts must be at least 1 and one exceed 1",
                "use alpha > 1, or method='posterior_mean'",
            )
        table /= total
        return {"theta": table}

    def mean(self) -> dict[str, Array]:
        """Return (alpha + counts)/total."""
        table = self.dense()
        table /= table.sum(axis=-1, keepdims=True)
        return {"theta": table}

    def dense(self) -> Array:
        """Return (C, M, V) posterior pseudo-counts."""
        table = self.index.dense(self.counts)
        table += self.alpha[:, None, :]
        return table

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Independent Dirichlet draws of each row, never exactly 0: n C M V numbers."""
        draws = draw_dirichlet(rng, self.dense(), n)
        return {"theta": np.maximum(draws, np.finfo(np.float64).tiny, out=draws)}

    def n_parameters(self) -> int:
        """Classes times contexts times tokens."""
        return self.alpha.size * self.index.n_contexts

    def log_density(self, theta: Theta) -> Array:
        """Return (...) sum over classes and contexts of log Dirichlet densities.

        A prior that has seen nothing has one density for every context: theta may then be a table
        over any contexts, such as those of a posterior.
        """
        alpha = self.dense() if len(self.grams) else self.alpha[:, None, :]
        _, n_contexts, n_tokens = np.shape(theta["theta"])[-3:]
        if len(self.grams) and (n_contexts, n_tokens) != alpha.shape[1:]:
            raise ValueError(self._other_table(n_contexts, n_tokens))
        return density_by_draws(
            lambda t: log_dirichlet_density(t["theta"], alpha), theta, self.params
        )

    def log_density_at_mean(self, X: Array) -> Array:
        """Return (N, C) log densities by the n-grams of the documents alone, without a table."""
        docs = ngrams.DocumentCounts.count(X, self.order, self.n_tokens)
        each = [
            docs.sum(docs.n * np.log(cell), docs.run_n * np.log(total))
            for cell, total in self.cells(docs)
        ]
        return np.stack(each, axis=1)

    def log_predictive(self, X: Array) -> Array:
        """Return (N, C) Dirichlet-multinomial of each context, without coefficient."""
        if kernels.pays(len(self.alpha) * len(X) * (1 + _mean_length(X))):
            return self._log_predictive_compiled(X)
        docs = ngrams.DocumentCounts.count(X, self.order, self.n_tokens)
        log_p = np.empty((len(X), len(self.alpha)))
        for c, (cell, total) in enumerate(self.cells(docs)):
            runs = log_gamma_difference(total, docs.run_n)
            log_p[:, c] = docs.sum(log_gamma_difference(cell, docs.n), runs)
        return log_p

    def _log_predictive_compiled(self, X: Array) -> Array:
        from bayesgen.numerics.kernels.words import sum_urns

        grams, gram, row = ngrams.known_ngrams(X, self.order, self.n_tokens)
        starts = ngrams.first_of_contexts(grams)
        cell, total = self.pseudo_counts(grams, starts)
        first = np.searchsorted(row, np.arange(len(X) + 1))
        log_mass = np.zeros((len(X), len(self.alpha)))
        sum_urns(gram, first, np.cumsum(starts) - 1, cell.T.copy(), total.T.copy(), log_mass)
        return log_mass

    def log_evidence(self, stats: ngrams.MarkovStats) -> float:
        """Sum over classes and contexts of log B(posterior) - log B(prior)."""
        ngrams.check_ngrams(stats, self.order, self.n_tokens)
        new = ngrams.GramIndex(stats.grams, self.n_tokens)
        cell, total = self.pseudo_counts(stats.grams, new.starts)
        cells = log_gamma_difference(cell, stats.counts)
        return float(cells.sum() - log_gamma_difference(total, new.totals(stats.counts)).sum())

    def urns(self, X: Array) -> Urns:
        """Return the tokens of documents, an urn for each context; features as in `grams_of`."""
        docs = ngrams.DocumentCounts.count(X, self.order, self.n_tokens)
        cell, total = (np.array(parts) for parts in zip(*self.cells(docs), strict=True))
        drawn = docs.run_n[docs.run]
        return Urns(docs.row, docs.gram, docs.n, drawn, cell, total[:, docs.run])

    def log_predictive_without(self, X: Array, y: Array, weight: Array) -> tuple[Array, Array]:
        """Subtract the document from the pseudo-counts of its tokens and contexts."""
        log_x, left = self.log_predictive(X), np.ones(len(y))
        docs = ngrams.DocumentCounts.count(X, self.order, self.n_tokens)
        entry_class, run_class = y[docs.row], y[docs.run_row]
        cell, total = np.empty(len(docs.row)), np.empty(len(docs.run_row))
        for c, (cells, totals) in enumerate(self.cells(docs)):
            np.copyto(cell, cells, where=entry_class == c)
            np.copyto(total, totals, where=run_class == c)
        # a context with a token outside the vocabulary has no counts that could leave
        seen = (docs.grams != ngrams.UNKNOWN).all(axis=1)
        other_cell = cell - weight[docs.row] * docs.n * seen[docs.gram]
        other_total = total - weight[docs.run_row] * docs.run_n * seen[docs.run_gram]
        entries = log_gamma_difference(other_cell, docs.n)
        log_x[np.arange(len(y)), y] = docs.sum(
            entries, log_gamma_difference(other_total, docs.run_n)
        )
        np.minimum.at(left, docs.row, other_cell / cell)
        np.minimum.at(left, docs.run_row, other_total / total)
        return log_x, left

    def draw_log_density(self, seed: Seed, X: Array, n: int) -> Array:
        """Draw (n, N, C) log probabilities, without the tables that the documents do not need."""
        return draws_of_each_row(partial(self._draws_of_row, n), seed, X)

    def _draws_of_row(self, n: int, rng: np.random.Generator, X: Array) -> Array:
        """Return (n, 1, C) of one document."""
        docs = ngrams.DocumentCounts.count(X, self.order, self.n_tokens)
        grams = docs.grams
        log_p = np.zeros((n, docs.n_rows, len(self.alpha)))
        if not len(grams):
            return log_p
        starts = np.flatnonzero(ngrams.first_of_contexts(grams))
        of = np.repeat(np.arange(len(starts)), np.diff([*starts, len(grams)]))
        cell, total = self.pseudo_counts(grams, starts)
        others = total - np.add.reduceat(cell, starts, axis=1)
        left = others > _ROUNDING * total
        counts = docs.matrix()
        for block in row_blocks(n, 4 * cell.size):
            size = block.stop - block.start
            logs = draw_log_gamma(rng, cell, (size, *cell.shape))
            log_others = draw_log_gamma(rng, np.where(left, others, 1.0), (size, *others.shape))
            top = np.maximum.reduceat(logs, starts, axis=-1)
            sums = np.add.reduceat(np.exp(logs - top[..., of]), starts, axis=-1)
            sums = np.log(sums + np.where(left, np.exp(log_others - top), 0.0)) + top
            logs -= sums[..., of]
            log_row = counts @ logs.reshape(-1, len(grams)).T
            log_p[block] += log_row.reshape(docs.n_rows, size, -1).transpose(1, 0, 2)
        return log_p

    def grams_of(self, X: Array) -> Array:
        """Return (U, order) distinct n-grams of documents; -1 in a context is an unknown token."""
        return ngrams.DocumentCounts.count(X, self.order, self.n_tokens).grams


# ------------------------------------------------------------------------------------------------
# Draws of the log probabilities of documents, without the tables that they do not need.

_ROUNDING = 1e-12  # of a context's pseudo-counts: no other token is left


def _mean_length(X: Array) -> int:
    """Tokens of a document."""
    return sum(map(len, X)) // max(1, len(X))
