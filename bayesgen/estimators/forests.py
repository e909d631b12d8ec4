"""Naive Bayes with dependences between columns, averaged over forests: TreeAugmentedNB."""

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.datatree import tree
from bayesgen.encoding.reader import Reader
from bayesgen.encoding.views import MissingCells
from bayesgen.estimators.arguments import (
    Categories,
    Kinds,
    Labels,
    PriorValue,
    RowsLike,
    make_constructor,
)
from bayesgen.estimators.binned import BinnedColumns
from bayesgen.estimators.tables import TableClassifier
from bayesgen.families.conjugate import dirichlet_forest
from bayesgen.families.conjugate.dirichlet_forest import DirichletForest
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS, StructureName
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassStats

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

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
