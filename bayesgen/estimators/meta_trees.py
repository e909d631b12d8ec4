"""Averaged prunings of label trees: MetaTreeForest."""

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import numpy as np

from bayesgen.encoding.reader import Align, Reader, Rows
from bayesgen.errors import refuse_below, refuse_not_positive
from bayesgen.estimators.arguments import Categories, Kinds, make_constructor
from bayesgen.estimators.tables import MixedColumns, TableClassifier
from bayesgen.families.contract import Family
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.meta_tree import MetaTree
from bayesgen.numerics.special import Array, integer_seed


@dataclass(frozen=True, eq=False)
class ColumnsOfTests(MixedColumns):
    """Columns of several kinds whose categories are those of the first fit."""

    unseen_words: ClassVar[tuple[str, ...]] = ("ignore", "raise")

    @property
    def normal_by_type(self) -> Collection[str]:
        """Return (): numbers are compared with cuts."""
        return ()

    def further(self, rows: Rows) -> tuple[Self, Align, Align]:
        """Return the columns unchanged: tests name categories by their codes."""
        return self.unchanged()

    def encode(self, rows: Rows) -> Array:
        """Return (N, D) numbers and codes, -1 for an unknown category: trees divide such rows."""
        if self.unseen == "raise":
            self.encoder.refuse_unseen(rows.table, advice='give unseen="ignore"')
        return rows.cells(self.encoder)

    def refuse_parts(self, what: str) -> None:
        """Raise if rows are removed, or come from another fit."""
        if what != "partial_fit":
            raise NoClosedFormError(
                f"{what} is refused: the first rows have chosen the structures of a "
                f"{self.owner}, and those of two fits differ. Fit all rows together, or add rows "
                "by partial_fit, which counts them in the structures of the first"
            )


@make_constructor
class MetaTreeForest(TableClassifier):
    r"""Label trees with Dirichlet leaves, averaged exactly over all prunings of each of many.

    Half of the rows choose the tests of a tree, the other half weight its prunings. With
    :math:`P_e` the Dirichlet-multinomial evidence of their labels at a node,

    .. math:: P_w(s) = (1 - q)\, P_e(s) + q\, P_w(s_1)\, P_w(s_2), \qquad
              w_s = (1 - q)\, P_e(s) / P_w(s),

    and :math:`p_s = w_s e_s + (1 - w_s)\, p_{s'}` along the path of a row. The halves are swapped
    in every second tree. Prefer it if the class depends on several columns together. It is
    discriminative: it does not model x.

    Parameters
    ----------
    n_trees : int, default 200
    split : float in (0, 1), default 0.999
        q, the prior probability that a node is divided.
    alpha : float, optional
        Pseudo-count of each class in a leaf, in rows. None: the lesser of 1/2 and 1/C, or .2, .1 or
        .05 if that is less, whichever predicts 500 training rows best by leave-one-out.
    columns : {kind: list of names or positions}, optional
        Kinds of the columns, with the names that `MixedNB` takes. A "categorical" column is tested
        by sets of categories, all other kinds by cuts. None: by dtype.
    categories : {column: list}, optional
        Declared categories of columns, known without any row (see `CategoricalNB`).
    unseen : {"ignore", "raise"}
        An unknown category. "ignore": the row goes to both sides of every test of the column,
        with a warning (`UnknownCategoryWarning`); "raise": an error.
    candidates : float, default 18
        Tests that are compared at a node, times the square root of the number of columns.
    random_state : int, default 0
        Seed of halves and tests. The same rows give the same forest in any order, in other units
        (any rising map of a column of numbers), with other names of classes, categories and
        columns, with columns in another order, and by any number of threads.

    Notes
    -----
    *Halves.* Hashes of the rows decide on them: of equal rows every second one chooses tests. Rows
    of one group are in the same half. A row of weight w is one row there and counts w times, so
    weights are not quite repeated rows.

    *Leaves* count all rows. This had 12 % less log loss than counting the rows of the second half
    alone, on 12 open tables; the weights of the prunings are of the second half alone.

    *Missing cells* go to the side of a test that explains the labels better, or a test separates
    them from all other cells. If no row that chose the test lacks the cell, the row goes to both
    sides, weighted by the rows that went there. A row without any cell gets the class frequencies.

    *Leave-one-out* (`loo`, `predict_set`) is exact given the structures: a row is scored by the
    trees whose structure it, or its group, did not choose. These are half of all trees, so with few
    rows the score is a little too low (5 % with 20 rows per class, 1 % with two thirds of 12 open
    tables).
    `partial_fit` counts new rows in every tree; structures stay those of the first call.

    *Intervals* are by random weights of the training rows, Gamma with mean 1 and variance 4/3, with
    which each draw counts them in every tree again; structures stay. They show how far the forest
    moves with other training rows, and not its error: where trees fit the classes badly, intervals
    of the forest alone hold few of the true probabilities. Use those of a pool. The forest keeps
    its training rows for them, in files and pickles too, up to 64 MiB; beyond that
    ``training=(X, y)`` gives them.

    *PyMC.* `to_pymc` gives the model of one tree (``n_trees=1``) with few prunings, given the
    labels of the second half.

    References
    ----------
    Buntine (1992), Learning classification trees; Willems, Shtarkov and Tjalkens (1995), The
    context-tree weighting method; Dobashi et al. (2021), Meta-tree random forest.

    Examples
    --------
    >>> X = np.array([[a, b] for a in (0, 1) for b in (0, 1)] * 20)
    >>> y = X[:, 0] ^ X[:, 1]  # each column alone tells nothing
    >>> clf = MetaTreeForest(n_trees=50).fit(X, y)
    >>> clf.predict_proba([[0, 0], [0, 1]]).round(1)
    array([[1., 0.],
           [0., 1.]])
    """

    _family_type: ClassVar[type[Family]] = MetaTree
    _short_name = "meta-trees"  # on the command line
    class_alpha = 1.0  # there are no class weights

    n_trees: int = 200
    split: float = 0.999
    alpha: float | None = None
    _: KW_ONLY
    columns: Kinds = None
    categories: Categories = None
    unseen: str = "ignore"
    candidates: float = 18.0
    random_state: int = 0

    def _reader(self) -> Reader:
        return ColumnsOfTests(
            type(self).__name__, unseen=self.unseen, kinds=self.columns, declared=self.categories
        )

    def _family(self, reader: Reader, classes: Array) -> MetaTree:
        refuse_below(1, n_trees=self.n_trees)
        alpha = 1.0 if self.alpha is None else self.alpha
        refuse_not_positive(alpha=alpha, candidates=self.candidates)
        if not 0 < self.split < 1:
            raise ValueError(f"split must be between 0 and 1, got {self.split!r}")
        nominal = np.array([kind == "categorical" for kind in reader.encoder.kinds], np.int64)
        seed, candidates = integer_seed(self.random_state), float(self.candidates)
        return MetaTree(nominal, int(self.n_trees), float(self.split), self.alpha, seed, candidates)
