"""Averages over forests of dependent columns, TreeAugmentedNB; of label trees, MetaTreeForest."""

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.datatree import tree
from bayesgen.encoding.cells import refuse_cells
from bayesgen.encoding.reader import Align, Reader, Rows
from bayesgen.encoding.schema import named_kinds
from bayesgen.encoding.views import BinnedTable, MissingCells
from bayesgen.errors import refuse_below, refuse_not_positive
from bayesgen.estimators.arguments import (
    Categories,
    Kinds,
    Labels,
    PriorValue,
    RowsLike,
    make_constructor,
)
from bayesgen.estimators.tables import MixedColumns, TableClassifier
from bayesgen.families.conjugate import dirichlet_forest
from bayesgen.families.conjugate.dirichlet_forest import DirichletForest
from bayesgen.families.contract import Family
from bayesgen.families.errors import IncompleteRowError, NoClosedFormError
from bayesgen.families.meta_tree import MetaTree
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS, StructureName
from bayesgen.numerics.special import Array, integer_seed
from bayesgen.posterior.model import ClassStats

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

_MOST_PAIRED = 1 << 15  # columns of which all pairs can be counted


@dataclass(frozen=True, eq=False)
class BinnedColumns(MixedColumns):
    """Tables as codes: categories, bits, real columns cut into bins.

    What the user has named: `n_bins`, `given_cuts`, `kinds`, `declared` categories, and `missing`,
    whether missing cells are a category. Other missing cells of new rows are summed over.
    """

    n_bins: int = 5
    given_cuts: Any = None
    missing: MissingCells = "auto"

    sums_missing: ClassVar[bool] = True
    unseen_words: ClassVar[tuple[str, ...]] = ("ignore", "raise")

    def learnt(self, rows: Rows, exact: bool) -> tuple[Self, Rows]:
        """Return the reader that knows the bins."""
        table = rows.table
        named = named_kinds(self.kinds, None, table.names, table.n_columns)
        width = table.n_columns - list(named.values()).count("drop")
        if width > _MOST_PAIRED:  # before each is cut into bins
            raise ValueError(f"pairs of {width} columns need 1e9 counts or more: drop some")
        binned = BinnedTable.of_rows(
            rows, self.n_bins, self.kinds, self.declared, self.given_cuts, self.missing
        )
        reader = replace(self, encoder=binned)
        codes = binned.codes(rows.cells(binned))
        reader._refuse_unknown(codes)
        return reader, rows.by(reader, codes)

    def further(self, rows: Rows) -> tuple[Self, Align, Align]:
        """Return the reader itself: later parts take the bins and categories of the first."""
        self._refuse_unknown(rows.encoded)
        return self.unchanged()

    def merged(self, other: Self) -> tuple[Self, Align, Align]:
        """Return the reader itself; raises where the other codes otherwise."""
        if other is not self and other.encoder != self.encoder:
            raise ValueError(
                "the two sides have different bins, categories or codes of missing cells, and "
                "tables of pairs cannot be recoded: declare cuts=, categories= and missing= on both"
            )
        return self.unchanged()

    def refuse_single(self, rows: Rows, n_before: int) -> None:
        """Raise where later rows tell nothing of a column that varies: it has the one bin.

        Of columns that vary within these rows; of all, if there was one row before.
        """
        names = self.encoder.names or self.encoder.positions
        cut_columns = set(map(str, self.given_cuts or {}))
        single = [
            j
            for j, ends in enumerate(self.encoder.cuts)
            if self.encoder.kinds[j] == "gaussian" and not ends and str(names[j]) not in cut_columns
        ]
        if not single:
            return
        try:
            cells = rows.cells(self.encoder)
        except (TypeError, ValueError):  # whoever reads the rows for good will say so
            return
        ends = (f.reduce(cells, axis=0, initial=np.nan) for f in (np.fmin, np.fmax))
        varies = np.less(*ends)
        lost = [j for j in single if varies[j] or n_before == 1]
        if lost:
            raise ValueError(
                f"column {self.columns[lost[0]]!r} had one value in the first rows, from "
                "which bins are taken, so that what comes later tells nothing: declare cuts= (an "
                "empty list leaves the column one bin), or begin with more rows"
            )

    def _refuse_unknown(self, codes: Array) -> None:
        """Raise where a training cell has no code."""
        refuse_cells(
            codes,
            np.isnan(codes),
            lambda: self.columns,
            "column {name!r} is not known",
            ": missing, or a category that the first rows did not have; pairs of incomplete rows "
            "have no common margins",
            "give missing='category', and declare categories= where rows come in parts",
        )

    def refuse_incomplete(self, encoded: Any) -> None:
        """Raise where a cell is not known: what is not summed over needs it."""
        refuse_cells(
            encoded,
            np.isnan(encoded),
            lambda: self.columns,
            "column {name!r}",
            ": missing, or a category that the training rows did not have. Probabilities sum "
            "over what it may be; intervals and entropies need it",
            "fit with missing='category', fill the cell, or leave the row out",
            error=IncompleteRowError,
        )

    def encode(self, rows: Rows) -> Array:
        """Return (N, D) codes; NaN where a cell is not known."""
        cells = super().encode(rows)
        codes: Array = self.encoder.codes(cells)
        return codes

    @property
    def normal_by_type(self) -> Collection[str]:
        """Return (): numbers are cut into bins."""
        return ()

    def coords(self, family: Family) -> dict[str, Any]:
        """{dim: labels} of the posterior."""
        return Reader.coords(self, family)


_WIDEST = 150  # columns, of the average: about .05 s a row and class, 20 MB of tables a class


@make_constructor
class TreeAugmentedNB(TableClassifier):
    r"""Naive Bayes with an exact average over all forests of dependences among the columns.

    Within a class each column depends on at most one other. The tables and the forest are
    integrated out in closed form: with W_u and W_uv the Dirichlet-multinomial evidences of columns
    and pairs, :math:`w_{uv} = W_{uv}/(W_u W_v)`, and Z the sum over all rooted forests of the
    product of the weights of their edges, times :math:`\rho` for each root,

    .. math:: p(x \mid y=c, D) = \prod_u p(x_u \mid D_c)\,
              \frac{Z\{w_{uv}\, r_{uv}(x)\}}{Z\{w_{uv}\}}, \quad
              r_{uv}(x) = \frac{p(x_u, x_v \mid D_c)}{p(x_u \mid D_c)\, p(x_v \mid D_c)}.

    :math:`\rho \to \infty` is naive Bayes, :math:`\rho \to 0` an average over single trees.

    Parameters
    ----------
    strength : float, array (class,), or None
        A: pseudo-counts in the table of each pair of columns, in rows; A/(K_u K_v) a cell. None:
        chosen, the same for all classes (`prior`).
    root_weight : float, array (class,), or None
        rho: prior weight of each column that depends on no other, where an edge has weight 1.
        None: chosen (`prior`).
    structure : {"average", "tree", "map", "fixed"}
        ``"average"``: over all forests, at a cost of D^3 for each row and class, for at most 150
        columns. ``"tree"``: one tree in each class, of the largest evidence, plugged in (D a row);
        ``"map"``: one forest. ``"fixed"``: the forest of `edges`.
    edges : array (D, D) or (class, D, D), optional
        1 where two columns are neighbours, else 0; symmetric. Of an average: where they may be;
        not for ``"tree"`` and ``"map"``, which choose them.
    n_bins : int, default 5
        Real columns are cut at so many quantiles of the training rows, without their labels. A
        value of 30 % of the cells or more has one bin more of its own.
    cuts : {column: rising numbers}, optional
        Ends of bins of some columns in place of quantiles: for streams, and for `merge`.
    columns : {kind: list of names or positions}, optional
        Kinds are "gaussian" (real, binned), "categorical", "bernoulli", "drop". None: by dtype,
        as `MixedNB`.
    categories : {column: list}, optional
        Declared categories, as in `CategoricalNB`.
    missing : {"auto", "category", "refuse"}
        A missing cell is a category of its own in columns that have one in the training rows
        ("auto"), in all, or in none: then missing cells in training are refused. A missing cell
        of a new row in a column that has no such category is summed over by predictions: exactly
        along one forest, and for an average where its completions are few (4096, or a tenth of a
        second). Of more, each of 1024 to 8192 drawn forests is summed over exactly; a
        `MonteCarloWarning` names rows whose class probabilities have a standard error above .01.
        The draws are the same at every call. The time of a row is bounded (8192 D K^2 steps for
        each class), and memory does not grow with the number of rows. Plug-ins and averages over
        the draws of `with_posterior` sum exactly. Intervals, entropies and explanations refuse the
        row.
    unseen : {"ignore", "raise"}
        A category never seen: as a missing cell, or an error.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"loo", "default", "empirical"} or None
        How `strength` and `root_weight` are chosen. ``"default"``: by evidence where they are
        None. ``"loo"``: from there, or from naive Bayes, to the largest leave-one-out score of the
        labels, in `fit` alone (`GenerativeClassifier`). None: ``"loo"`` in `fit` for an average of
        which both are None, else ``"default"``.

    Notes
    -----
    Everything is conditional on the bins and on the categories, and, where they are None, on
    `strength` and `root_weight`: exact leave-one-out does not learn these again. A tree or forest
    that the rows choose is chosen again without each row; given it, the same rows have no evidence
    (``log_evidence_`` raises NoPosteriorError). ``partial_fit``,
    streams and dask take the bins and categories of the first rows; parts that are merged must
    have the same: declare `cuts`, `categories` and `missing`. The prior over rooted forests is
    uniform but for the number of roots.

    References
    ----------
    Friedman, Geiger and Goldszmidt (1997); Meila and Jaakkola (2000); Cerquides and Lopez de
    Mantaras (2005).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[a, a ^ c] for a in (0, 1) for c in (0, 1)] * 10, dtype=bool)
    >>> y = [c for a in (0, 1) for c in (0, 1)] * 10  # each column alone tells nothing
    >>> clf = TreeAugmentedNB().fit(X, y)
    >>> clf.predict_proba([[True, True], [True, False]]).round(3)
    array([[0.983, 0.017],
           [0.017, 0.983]])
    """

    _short_name = "forest"  # on the command line

    _family_type = DirichletForest

    strength: PriorValue = None
    root_weight: PriorValue = None
    _: KW_ONLY
    structure: StructureName = "average"
    edges: ArrayLike | None = None
    n_bins: int = 5
    cuts: Mapping[Any, ArrayLike] | None = None
    columns: Kinds = None
    categories: Categories = None
    missing: MissingCells = "auto"
    unseen: str = "ignore"
    class_alpha: PriorValue = 1.0
    prior: str | None = None

    def _reader(self) -> Reader:
        return BinnedColumns(
            type(self).__name__,
            unseen=self.unseen,
            n_bins=self.n_bins,
            given_cuts=self.cuts,
            kinds=self.columns,
            declared=self.categories,
            missing=self.missing,
        )

    def _prior_choice(self) -> str | None:
        if self.prior is None and self.structure != "average":
            return "default"
        return super()._prior_choice()

    def _family(self, reader: Reader, classes: Array) -> DirichletForest:
        levels = reader.encoder.levels
        if self.structure == "average" and len(levels) > _WIDEST:
            raise ValueError(
                f"an average over all forests of {len(levels)} columns would take "
                f"{len(levels) ** 3:.0e} operations for each row and class; beyond {_WIDEST} "
                'columns use structure="tree" (one tree in each class), or fewer columns'
            )
        return DirichletForest(
            self.strength, self.root_weight, levels, self.edges, structure=self.structure
        )

    # -- what the forests say --------------------------------------------------------------------

    def edge_probabilities(self) -> "xr.Dataset":
        """Posterior probability that two columns are neighbours in the forest of a class.

        Returns
        -------
        xarray.Dataset
            (class, feature, feature_bis) ``probability``, symmetric, 0 on the diagonal; (class,
            feature) ``root``, that a column is the root of its tree: naive Bayes is 1 everywhere.

        Notes
        -----
        An edge says that two columns, binned as they are, share information within the class
        which no other neighbour carries. It has no direction, and is no causal claim: a common
        cause that is not in the table makes edges as well. Two columns that copy each other split
        the edges to a third between them, and each looks less probable.
        """
        fitted = self._fitted()
        family: Any = fitted.family
        names = fitted.feature_names
        table = {
            "probability": ((CLASS, FEATURE, FEATURE_BIS), family.edge_probabilities()),
            "root": ((CLASS, FEATURE), family.root_probabilities()),
        }
        return tree.group(table, {CLASS: fitted.classes, FEATURE: names, FEATURE_BIS: names})

    # -- PyMC ------------------------------------------------------------------------------------

    def to_pymc(
        self,
        X: RowsLike = None,
        y: Labels = None,
        *,
        likelihood: Literal["statistics", "rows"] = "statistics",
        observed: bool = True,
        X_new: RowsLike = None,
        structure: ArrayLike | None = None,
    ) -> "pm.Model":
        """Return the model of the tables of given forests, as a forest is a discrete parameter.

        Parameters
        ----------
        X, y : rows and labels, optional
            In place of the statistics of the fit.
        likelihood : {"statistics"}
        observed : bool
            False: the prior alone.
        X_new : None
            Refused: the tables of the classes are variables of their own.
        structure : array of int, "all", or None
            (D,) or (class, D), the position of the column that each column depends on, -1 for none;
            "all": the mixture over all rooted forests of at most 4 columns. None: the forest of the
            fit, if it has one, else "all".

        Returns
        -------
        pymc.Model
        """
        import pymc as pm
        import pytensor.tensor as pt

        fitted = self._fitted_to(X, y)
        if likelihood != "statistics":
            raise ValueError("likelihood must be 'statistics': rows are not independent given pi")
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together")
        if X_new is not None:
            raise NotImplementedError(
                f"X_new= needs the tables of all classes in one, which the model of {fitted.name} "
                "has not: predict_posterior has class_probability of new rows"
            )
        exact = fitted.closed_form
        stats: ClassStats = exact.stats
        if X is not None:
            stats = exact.prior.stats(fitted.encoded(X), fitted.codes_of(y), len(fitted.classes))
        family: Any = exact.prior.family
        forests = _forests(family, structure)
        features: Any = stats.features
        pairs = features.pairs if observed else None
        with pm.Model(coords={CLASS: fitted.classes}) as model:
            pi = pm.Dirichlet("pi", exact.prior.alpha, dims=CLASS)
            if observed:
                pm.Potential("label", (stats.count * pt.log(pi)).sum())
            dirichlet_forest.declare(family, pairs, forests)
        return model


def _forests(prior: DirichletForest, structure) -> list[Array]:
    """Return (F, D) parents for each class: those that `structure` names."""
    n_classes, n_columns = len(prior.pairs), len(prior.levels)
    if structure is None and prior.is_forest:
        parents = prior.draw(np.random.default_rng(0), 1)["parents"][0].astype(np.int64)
        return list(parents[:, None])
    if structure is None or (isinstance(structure, str) and structure == "all"):
        if n_columns > dirichlet_forest.MOST or prior.is_forest:
            raise ValueError(
                f"the mixture over all rooted forests of {n_columns} columns has "
                f"{(n_columns + 1) ** (n_columns - 1)} terms, and is a model for at most "
                f"{dirichlet_forest.MOST} columns of an average: give structure=, the position "
                "of the column that each column depends on, -1 for none"
            )
        return [dirichlet_forest.rooted_forests(n_columns)] * n_classes
    parents = np.broadcast_to(np.asarray(structure, dtype=np.int64), (n_classes, n_columns))
    return list(parents[:, None])


# ------------------------------------------------------------------------------------------------
# Label trees.


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
