r"""Label trees: Dirichlet leaves, averaged exactly over all prunings of each of many trees.

The rows fall into two halves. Half A chooses the tests of a tree, half B decides how far the tree
is to be believed. At a node s that rows of B reach with labels :math:`n_s`,

.. math:: P_e(s) = \frac{\Gamma(C a)}{\Gamma(C a + \sum_c n_{sc})}
          \prod_c \frac{\Gamma(a + n_{sc})}{\Gamma(a)}

is their probability if the tree ends there, and with the prior probability q that it does not,

.. math:: P_w(s) = (1 - q)\, P_e(s) + q\, P_w(s_1)\, P_w(s_2), \qquad P_w = P_e \text{ at a leaf,}

is their probability averaged over all prunings below s. Given the labels, s is a leaf of the pruned
tree, if its ancestors are none, with probability :math:`w_s = (1 - q) P_e(s) / P_w(s)`, and the
probability of class c in a row is one sum along its path,

.. math:: p_s = w_s\, e_s + (1 - w_s)\, p_{s'}, \qquad
          e_{sc} = \frac{a + m_{sc}}{C a + \sum_d m_{sd}},

s' the child that the row goes to and m the labels of all rows at s. The forest's probability is the
mean over trees; A and B are swapped in every second tree.

A cell that is missing in the row and was known in all rows that chose a test of it sends the row to
both sides, s_1 with the share of the rows of A that went there. Then :math:`p_{s'}` is the mean of
both sides with these weights, and a training row is counted in both by its parts. Below a node
whose tests are all on missing cells nothing is learned, so that the row ends there with e_s: with
all cells missing a tree returns the class frequencies of all rows.

Leave-one-out is exact given the structures: a row of B leaves the counts of its path, which changes
one factor of each P_e and P_w on it. A row is scored by the trees that it did not choose. Rows of
one group are in the same half of every tree, and leave it together.

Cuts are between neighbouring values of the training rows, found by ranks. Hashes of the rows
(`numerics.row_keys`) decide on halves and on the order of rows, columns and classes. So units and
rising maps of columns, names, and the order of rows and columns change nothing.

Source: Buntine (1992), Learning classification trees; Willems, Shtarkov and Tjalkens (1995), The
context-tree weighting method (the recursion); Dobashi et al. (2021), Meta-tree random forest (trees
of several structures); Geurts, Ernst and Wehenkel (2006), Extremely randomized trees (the tests).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import batched
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import gammaln

from bayesgen.families.contract import ConjugateFamily, Stats, Tensors, Theta
from bayesgen.families.errors import NoPosteriorError, UndefinedEstimateError
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.records import Hyperparameter, array
from bayesgen.numerics.row_keys import RowKeys, key_groups, mixed
from bayesgen.numerics.rows import Matrix, row_blocks
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.numerics.kernels.meta_trees import Forest, Nodes, Rows

NODE, TREE, VALUE = "node", "tree", "value"
_TABLE = 1 << 16  # entries of log Gamma
_ROOT = 30  # half A is divided down to the root of the number of all rows over this, or 1 row
_A_OF_TESTS = 0.1  # pseudo-count of each class where tests are compared
_SMALLER = 0.2, 0.1, 0.05  # pseudo-counts that leaves may have, if less than the stated one
_SCORED = 500  # rows that choose among them
_WIDTH = 16  # columns of a block of rows: each tree is read once for a block
_COUNTED = 1 << 22  # counts of several weights that are held at a time: 32 MiB
_NO_KEYS = np.zeros(0, np.uint64), np.zeros(0, np.int64)  # every row is counted


@dataclass(frozen=True, eq=False)
class MetaTreeStats(Stats):
    """Weights of the rows of each class that pass each node."""

    count: Array = array(NODE, CLASS)
    grown: Any = field(default=None, metadata={"prior": True})  # the family with its structures

    def reindex_classes(self, codes: Array, n_classes: int) -> Self:
        """Return the same rows, with class k renamed ``codes[k]`` among `n_classes` classes."""
        wide = np.zeros((2, len(self.count), n_classes))
        wide[:, :, codes] = self.grown.chosen, self.count
        class_key = np.zeros(n_classes, np.uint64)
        class_key[codes] = self.grown.class_key
        grown = replace(self.grown, chosen=wide[0], class_key=class_key)
        return replace(self, count=wide[1], grown=grown)


@dataclass(frozen=True, eq=False)
class MetaTree(ConjugateFamily):
    """p(y | x) as the mean over trees of the averages over their prunings.

    Parameters
    ----------
    nominal : int array (feature,)
        1 for a column of codes of categories, else 0.
    n_trees : int
    split : float in (0, 1)
        q, the prior probability that a node is divided.
    alpha : float > 0, optional
        a, the pseudo-count of each class in a leaf; None: the first rows choose it, `_chosen_a`.
    seed : int
        Of halves and tests.
    candidates : float > 0
        Tests that are compared at a node, times the root of the number of columns.
    roots, test, cut, child
        The structures, from the first rows: `numerics.kernels.meta_trees` says how.
    chosen, count : array (node, class)
        Labels of half A, and of all rows; those of half B are the difference.
    value, value_key, n_values, class_key
        Values and classes of the first rows: `numerics.row_keys.RowKeys`.
    """

    holds: ClassVar[str] = "code"
    kind: ClassVar[str] = "meta-tree"
    discriminative: ClassVar[bool] = True
    default_draws: ClassVar[int] = 100
    no_theta: ClassVar[str] = (
        "each tree has a posterior given the half of the rows that chose its structure, and the "
        "mean over trees is the posterior of none"
    )
    statistics: ClassVar[type[Stats]] = MetaTreeStats

    nominal: Hyperparameter = array(FEATURE)
    n_trees: int = 200
    split: float = 0.999
    alpha: float | None = None
    seed: int = 0
    candidates: float = 6.0
    roots: Hyperparameter = array(TREE, default=None)
    test: Hyperparameter = array(NODE, default=None)
    cut: Hyperparameter = array(NODE, default=None)
    child: Hyperparameter = array(NODE, default=None)
    chosen: Hyperparameter = array(NODE, CLASS, default=None)
    count: Hyperparameter = array(NODE, CLASS, default=None)
    value: Hyperparameter = array(VALUE, default=None)
    value_key: Hyperparameter = array(VALUE, default=None)
    n_values: Hyperparameter = array(FEATURE, default=None)
    class_key: Hyperparameter = array(CLASS, default=None)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: the class probabilities of each node as a leaf."""
        return {"theta": (NODE, CLASS)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """None: there is no density of rows to draw them from."""
        return []

    # -- statistics --------------------------------------------------------------------------

    def stats(
        self,
        X: Matrix,
        y: Array,
        n_classes: int,
        weight: Array | None = None,
        groups: Array | None = None,
    ) -> MetaTreeStats:
        """Count rows at each node; where there are no nodes yet, these rows choose them.

        Rows of one of the `groups` (N,) are in one half; None: each row is a group of its own.
        """
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        X, y = _cells(X), np.asarray(y, dtype=np.int64)
        if not (some := weight > 0).all():
            X, y, weight = X[some], y[some], weight[some]
            groups = None if groups is None else groups[some]
        rows = X, y, weight, *_NO_KEYS
        if self.roots is not None:
            return MetaTreeStats(self._counts(rows, n_classes), self)
        grown = self._grown(X, y, weight, n_classes, groups)
        posterior = replace(grown, count=grown._counts(rows, n_classes))
        if self.alpha is None:
            grown = replace(grown, alpha=posterior._chosen_a(X, y, weight, groups))
        return MetaTreeStats(posterior.count, grown)

    def further(self, stats: MetaTreeStats) -> Self:
        """Return the family that counts further rows at the same nodes."""
        grown: Self = stats.grown
        return grown

    def read_stats(self, arrays, settings) -> Stats:
        """Statistics from a file, of these structures."""
        return MetaTreeStats(**arrays, grown=self)

    def _a(self, n_classes: int) -> float:
        return min(0.5, 1 / n_classes) if self.alpha is None else self.alpha

    def _chosen_a(self, X: Array, y: Array, weight: Array, groups: Array | None) -> float:
        """Return the pseudo-count that predicts training rows best, each without its group.

        Candidates are the lesser of 1/2 and 1/C, and smaller ones. Whole groups are scored, about
        `_SCORED` rows: hashes choose them.
        """
        stated = self._a(self.count.shape[1])
        candidates = [stated, *(a for a in _SMALLER if a < stated)]
        if self.n_trees < 2:
            return stated
        *_, keys, _ = self._rows(X, y, weight, groups)
        some = keys <= np.sort(keys)[:_SCORED][-1]
        rows = X[some], y[some], weight[some], None if groups is None else groups[some]
        order, scores = np.arange(some.sum()), []
        for a in candidates:
            log_p, _ = replace(self, alpha=a).log_predictive_without(*rows)
            scores.append(rows[2] @ log_p[order, rows[1]])
        return float(candidates[np.argmax(scores)])

    @property
    def _tests(self) -> "Forest":
        return self.nominal, self.test, self.cut, self.child, self.roots, self._left

    @cached_property
    def _left(self) -> Array:
        """Return (node,) share of the rows that chose a test that went to its left side."""
        if self.chosen is None:  # of no use to the rows that choose
            return np.zeros(len(self.test))
        n_rows, child = self.chosen.sum(axis=1), np.where(self.test < 0, 0, self.child)
        both = n_rows[child] + n_rows[np.minimum(child + 1, len(n_rows) - 1)]
        return np.where(both > 0, n_rows[child] / np.where(both > 0, both, 1.0), 0.5)

    def _grown(
        self, X: Array, y: Array, weight: Array, n_classes: int, groups: Array | None
    ) -> Self:
        """Return the family with structures that half of the rows choose, for each tree its own.

        Trees see ranks instead of numbers, and rows, columns and classes in an order that their
        content decides: neither units nor names nor the order of the table matter.
        """
        from bayesgen.numerics.kernels import meta_trees as kernels
        from bayesgen.numerics.kernels.threads import run_in_threads

        row_keys, ranked = RowKeys.learn(X, y, self.nominal, n_classes)
        family = replace(self, **vars(row_keys))
        keys, copies = family._halves(ranked.keys, weight, groups)
        order = np.lexsort((weight, ranked.keys, copies, keys))
        gaps, places = np.isnan(X), ranked.columns
        cells = np.where(self.nominal == 1, X, np.where(gaps, np.nan, ranked.codes))
        columns = cells.T[places].take(order, axis=1)
        kinds = np.where(gaps.any(axis=0) | (self.nominal == 1), self.nominal, -1)[places]
        codes, weights = ranked.classes[y][order], weight[order]
        a, whole = _A_OF_TESTS, np.arange(min(len(X) + 1, _TABLE))
        tables = gammaln(a + whole), gammaln(a * n_classes + whole)
        n_candidates = int(np.ceil(self.candidates * np.sqrt(X.shape[1])))
        least = max(1, int(np.sqrt(len(X)) / _ROOT))
        seeds = np.random.SeedSequence(self.seed).generate_state(self.n_trees, np.uint64)

        def tree(t: int) -> tuple[Array, Array, Array]:
            half = kernels.half(keys[order], copies[order], t)
            grown: tuple[Array, Array, Array] = kernels.grow(
                columns, codes, weights, half, kinds, n_classes, a, tables, n_candidates,
                least, seeds[t],
            )  # fmt: skip
            return grown

        trees = run_in_threads(tree, range(self.n_trees))
        roots = np.cumsum([0, *(len(test) for test, _, _ in trees)])[:-1]
        test, cut, child = (np.concatenate([arrays[k] for arrays in trees]) for k in range(3))
        child += np.repeat(roots, np.diff([*roots, len(test)]))
        inner = test >= 0
        test[inner] = 3 * places[test[inner] // 3] + test[inner] % 3
        family = replace(family, roots=roots, test=test, cut=family._values(test, cut), child=child)
        return replace(family, chosen=family._counts((X, y, weight, keys, copies), n_classes))

    def _values(self, test: Array, cut: Array) -> Array:
        """Return cuts of numbers instead of cuts of ranks.

        A cut is between two neighbouring values of the training rows. Rank k is the lower one;
        k + 1/2 is just below the upper one. The middle would not be the middle after a rising map.
        """
        value = cut.copy()
        numbers = (test >= 0) & (self.nominal[test // 3] == 0) & (cut < len(self.value))
        start = np.cumsum(self.n_values) - self.n_values
        place = start[test[numbers] // 3] + cut[numbers].astype(np.int64)
        upper = np.nextafter(self.value[np.minimum(place + 1, len(self.value) - 1)], -np.inf)
        value[numbers] = np.where(cut[numbers] % 1 > 0, upper, self.value[place])
        return value

    def _halves(self, keys: Array, weight: Array, groups: Array | None) -> tuple[Array, Array]:
        """Return hashes that decide on the half of each row's group, and which copy it is."""
        group_key, copies = key_groups(keys, weight, groups)
        return mixed(group_key + np.uint64(self.seed)), copies

    def _rows(self, X: Array, y: Array, weight: Array, groups: Array | None = None) -> "Rows":
        """Return training rows with what decides on their halves."""
        keys = RowKeys(self.value, self.value_key, self.n_values, self.class_key).of_rows(X, y)
        return X, y, weight, *self._halves(keys, weight, groups)

    def _counts(self, rows: "Rows", n_classes: int) -> Array:
        """Return (node, C) weights of the rows; of those that choose, if they have keys.

        For several weights (N, S) they are (node, C, S).
        """
        from bayesgen.numerics.kernels.meta_trees import count
        from bayesgen.numerics.kernels.threads import run_in_threads

        cells, codes, weight, keys, copies = rows
        each = np.ascontiguousarray(weight.reshape(len(codes), -1))
        counts = np.zeros((len(self.test), n_classes, each.shape[1]))
        of_each = cells, codes, each, keys, copies
        run_in_threads(lambda t: count(of_each, t, self._tests, counts), range(self.n_trees))
        return counts if weight.ndim == 2 else counts[..., 0]

    # -- posterior ---------------------------------------------------------------------------

    def resolve(self, stats: MetaTreeStats) -> Self:
        """Return the prior: structures, and the labels of the rows that chose them."""
        return replace(stats.grown, count=stats.grown.chosen)

    def update(self, stats: MetaTreeStats) -> Self:
        """Update with the labels of all rows."""
        return replace(self, count=stats.count)

    @cached_property
    def _nodes(self) -> "Nodes":
        from bayesgen.numerics.kernels.meta_trees import prune

        n_nodes, n_classes = self.count.shape
        a = self._a(n_classes)
        held = np.maximum(self.count - self.chosen, 0.0)
        log_e, log_w = np.empty(n_nodes), np.empty(n_nodes)
        prune(self._tests, held, a, self.split, log_e, log_w)
        share = np.where(self.test < 0, 1.0, np.exp(np.log1p(-self.split) + log_e - log_w))
        mean = (self.count + a) / (self.count.sum(axis=1, keepdims=True) + a * n_classes)
        return held, self.count, log_e, log_w, share, mean

    def log_predictive(self, X: Matrix) -> Array:
        """Return (N, C) log p(y = c | x_i, D)."""
        from bayesgen.numerics.kernels.meta_trees import predict
        from bayesgen.numerics.kernels.threads import run_in_threads

        x, log_p = _cells(X), np.zeros((X.shape[0], self.count.shape[1]))

        def predict_some(rows: slice) -> None:
            predict(x[rows], self._tests, self._nodes, log_p[rows])

        run_in_threads(predict_some, row_blocks(len(x), _WIDTH))
        return np.log(log_p, out=log_p)

    def log_predictive_without(
        self, X: Matrix, y: Array, weight: Array, groups: Array | None = None
    ) -> tuple[Array, Array]:
        """Return (N, C) log p(y = c | x_i, D without the group of row i).

        Only trees whose structure the group did not choose are asked. The groups are those of the
        fit; None: each row is a group of its own.
        """
        from bayesgen.numerics.kernels.meta_trees import predict_without
        from bayesgen.numerics.kernels.threads import run_in_threads

        if self.n_trees < 2:
            raise ValueError(
                "a row is left out by trees whose structure it did not choose, and half of the "
                "rows choose the only one: leave-one-out needs n_trees=2 or more"
            )
        rows = self._rows(_cells(X), np.asarray(y, dtype=np.int64), weight, groups)
        self._refuse_other_groups(rows)
        p, a = np.zeros((X.shape[0], self.count.shape[1])), self._a(self.count.shape[1])
        order, starts = np.arange(len(p)), np.arange(len(p) + 1)
        if groups is not None:
            order = np.argsort(groups, kind="stable")
            starts = np.flatnonzero(np.append(True, np.diff(groups[order]) != 0))
            starts = np.append(starts, len(p))

        def predict_some(block: slice) -> None:
            of_block = starts[block.start : block.stop + 1]
            predict_without(rows, order, of_block, self._tests, self._nodes, a, self.split, p)

        run_in_threads(predict_some, row_blocks(len(starts) - 1, _WIDTH))
        return np.log(p, out=p), np.ones(len(p))

    def _refuse_other_groups(self, rows: "Rows") -> None:
        """Raise if the halves of all first rows are not those that chose the structures.

        Some of the rows, or later ones too, cannot be checked.
        """
        from bayesgen.numerics.kernels.meta_trees import half

        _, y, weight, keys, copies = rows
        chosen = self.chosen[self.roots]
        if not np.isclose(weight.sum(), chosen[:2].sum(), rtol=1e-9):
            return
        for tree, of_tree in enumerate(chosen):
            some = half(keys, copies, tree)
            count = np.bincount(y[some], weight[some], len(of_tree))
            if not np.allclose(count, of_tree, rtol=1e-9):
                raise ValueError(
                    "groups must be those of the fit, for which the halves of label trees were "
                    "chosen: give the groups that fit(groups=) was given, or none if it had none"
                )

    def refits(
        self,
        X: Matrix,
        y: Array,
        n_classes: int,
        weight: Array,
        new_weights: Iterable[Array],
        groups: Array | None = None,
    ) -> Iterator[Self]:
        """Yield the same trees with counts of new weights, in each half of the rows."""
        rows = self._rows(_cells(X), np.asarray(y, dtype=np.int64), weight, groups)
        cells, codes, _, keys, copies = rows
        some = max(1, _COUNTED // (len(self.test) * n_classes))
        for weights in batched(new_weights, some):
            each = np.stack(weights, axis=1)
            chosen = self._counts((cells, codes, each, keys, copies), n_classes)
            count = self._counts((cells, codes, each, *_NO_KEYS), n_classes)
            for s in range(each.shape[1]):
                yield replace(
                    self,
                    chosen=np.ascontiguousarray(chosen[..., s]),
                    count=np.ascontiguousarray(count[..., s]),
                )

    # -- what there is not -------------------------------------------------------------------

    def _refuse(self, what: str) -> NoPosteriorError:
        return NoPosteriorError(f"{what} is refused: {self.no_theta}")

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Refuse: theta is not known."""
        raise self._refuse("the likelihood of theta")

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array):
        """Refuse: theta is not known."""
        raise self._refuse("simulation under one theta")

    def mle(self, stats: MetaTreeStats) -> dict[str, Array]:
        """Refuse: the predictive is the only estimate."""
        raise UndefinedEstimateError("mle", self.no_theta)

    def map(self) -> dict[str, Array]:
        """Refuse: the predictive is the only estimate."""
        raise UndefinedEstimateError("map", self.no_theta)

    def mean(self) -> dict[str, Array]:
        """Refuse: the predictive is the only estimate."""
        raise UndefinedEstimateError("posterior_mean", self.no_theta)

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Refuse: there is no posterior to draw from."""
        raise self._refuse("a draw of theta")

    def log_evidence(self, stats: MetaTreeStats) -> float:
        """Refuse: it is not defined."""
        raise self._refuse("the evidence")

    # -- PyMC --------------------------------------------------------------------------------

    def coords(self) -> dict[str, Any]:
        """Nodes by their numbers."""
        return {} if self.test is None else {NODE: np.arange(len(self.test))}

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """One tree: Dirichlet leaves, and all prunings summed out of the labels of half B."""
        import pymc as pm
        import pytensor.tensor as pt

        if len(self.roots) > 1 or X is not None:
            raise NotImplementedError(
                "a forest has no PyMC model, and one tree has that of the counts of its fit: "
                "to_pymc() after a fit with n_trees=1"
            )
        n_classes = self.chosen.shape[1]
        alpha = np.full(self.chosen.shape, self._a(n_classes))
        theta = pm.Dirichlet(f"{prefix}theta", alpha, dims=(NODE, CLASS))
        if stats is not None:
            trees = self.prunings()
            leaves, prior = np.array([t for t, _ in trees]), np.array([p for _, p in trees])
            held = pm.Data(f"{prefix}stats_held", stats.count - self.chosen, dims=(NODE, CLASS))
            ends = (held * pt.log(theta)).sum(axis=1)
            pm.Potential(f"{prefix}label", pt.logsumexp(pt.dot(leaves, ends) + np.log(prior)))
        return {"theta": theta}

    def prunings(self, tree: int = 0, most: int = 5000) -> list[tuple[Array, float]]:
        """Each pruning of a tree: its leaves as a bool array (node,), and its prior probability."""

        def below(s: int) -> list[tuple[list[int], float]]:
            if self.test[s] < 0:
                return [([s], 1.0)]
            left, right = below(self.child[s]), below(self.child[s] + 1)
            if len(left) * len(right) > most:
                raise ValueError(f"the tree has more than {most} prunings: fit fewer rows")
            pairs = [(k + m, self.split * p * r) for k, p in left for m, r in right]
            return [([s], 1 - self.split), *pairs]

        nodes = np.arange(len(self.test))
        return [(np.isin(nodes, ends), p) for ends, p in below(int(self.roots[tree]))]


def _cells(X: Matrix) -> Array:
    return np.ascontiguousarray(X, dtype=np.float64)
