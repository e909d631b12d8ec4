"""Real columns that depend on each other, averaged over forests: TreeAugmentedGaussianNB."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.encoding.reader import Reader
from bayesgen.estimators.binned import GivenStructure
from bayesgen.estimators.forests import edge_table, refuse_wide
from bayesgen.estimators.gaussian import Reals
from bayesgen.families.conjugate import normal_forest
from bayesgen.families.conjugate.normal_forest import NormalForest
from bayesgen.families.errors import NoPosteriorError
from bayesgen.families.names import StructureName
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassStats

if TYPE_CHECKING:
    import xarray as xr


class TreeAugmentedGaussianNB(GivenStructure):
    r"""Gaussian classes with an exact average over all forests of dependences among the columns.

    Within a class each column depends linearly on at most one other. Means, variances, slopes and
    the forest itself are integrated out in closed form, as in `TreeAugmentedNB`, with Student t
    densities of columns and pairs in place of tables:

    .. math:: p(x \mid y=c, D) = \prod_u p(x_u \mid D_c)\,
              \frac{Z\{w_{uv}\, r_{uv}(x)\}}{Z\{w_{uv}\}}.

    Between `GaussianNB` (no column depends on another) and `QuadraticDiscriminant` (each on all).

    Parameters
    ----------
    mu0, kappa0, class_alpha, prior
        As in `GaussianNB`.
    nu0 : float or array (class,), > 0, optional
        Degrees of freedom of the variance of one column, in rows; of the covariance of a pair one
        more. None: 3, as `GaussianNB`.
    psi0 : float, array (feature,), (feature, feature) or (class, feature, feature), optional
        Scale matrix: the variance of a column is scaled-inverse-chi2(nu0, psi0_jj / nu0), and
        elements off the diagonal are prior correlations. None: nu0 times the pooled within-class
        variances, without correlations.
    root_weight : float, array (class,), or None
        Prior weight of each column that depends on no other, where an edge has weight 1. None: of
        the largest evidence. Large values are `GaussianNB`.
    structure, edges
        As in `TreeAugmentedNB`.

    Notes
    -----
    Cells must not be missing: a forest with a column summed out is a forest no more. Columns that
    are constant in training are left out, under the default psi0. The prior over rooted forests is
    uniform but for the number of roots; exact leave-one-out does not choose `root_weight` again.
    Columns that are not Normal, such as grades and counts, make edges certain that predict nothing:
    ``prior="loo"`` also tries `GaussianNB`, which the evidence then rules out.

    `to_pymc` declares ``pi`` (class) and, of class number c, ``mu_{c}`` and ``sigma2_{c}``
    (feature): mean, and variance given the parent; ``slope_{c}`` of the columns that have a parent,
    in their order.

    References
    ----------
    Dawid and Lauritzen (1993); Meila and Jaakkola (2000).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=60)
    >>> y = np.arange(60) % 2  # each column alone tells nothing, their correlation does
    >>> X = np.column_stack([a, np.where(y == 1, a, -a) + 0.5 * rng.normal(size=60)])
    >>> clf = TreeAugmentedGaussianNB().fit(X, y)
    >>> clf.predict_proba([[1.0, 1.0], [1.0, -1.0]]).round(2)
    array([[0., 1.],
           [1., 0.]])
    """

    _short_name = "gaussian-forest"  # on the command line

    _family_type = NormalForest
    _by_column = ("mu0", "psi0")

    def __init__(
        self,
        mu0: Any = None,
        kappa0: Any = None,
        nu0: Any = None,
        psi0: Any = None,
        root_weight: Any = None,
        *,
        structure: StructureName = "average",
        edges: Any = None,
        class_alpha: Any = 1.0,
        prior: str = "default",
    ) -> None:
        self.mu0 = mu0
        self.kappa0 = kappa0
        self.nu0 = nu0
        self.psi0 = psi0
        self.root_weight = root_weight
        self.structure = structure
        self.edges = edges
        self.class_alpha = class_alpha
        self.prior = prior

    def _reader(self) -> Reader:
        why = (
            f"{NormalForest.missing}. Drop or impute the rows, or use GaussianNB, or "
            "TreeAugmentedNB(missing='category')"
        )
        return Reals(type(self).__name__, self._family_type.sparse, why)

    def _family(self, reader: Reader, classes: Array) -> NormalForest:
        refuse_wide(len(reader.columns), self.structure)
        return NormalForest(
            self.mu0,
            self.kappa0,
            self.nu0,
            self.psi0,
            self.root_weight,
            self.edges,
            structure=self.structure,
        )

    def edge_probabilities(self) -> "xr.Dataset":
        """Posterior probability that two columns are neighbours in the forest of a class.

        Returns
        -------
        xarray.Dataset
            (class, feature, feature_bis) ``probability``, symmetric, 0 on the diagonal; (class,
            feature) ``root``, that a column is the root of its tree: `GaussianNB` is 1 everywhere.

        Notes
        -----
        An edge says that two columns are correlated within the class beyond what their other
        neighbours carry. It has no direction, and is no causal claim.
        """
        return edge_table(self._fitted())

    def _declare(self, prior: Any, features: Any, structure: Any, X_new: Any) -> Any:
        return normal_forest.declare(prior, features, structure, X_new)

    def _structure(self, prior: Any, stats: ClassStats, structure: Any) -> Array:
        """(C, D) parents."""
        n_classes, n_columns = prior.mu.shape
        if structure is not None:
            parents = np.asarray(structure, dtype=np.int64)
            forest: Array = np.broadcast_to(parents, (n_classes, n_columns))
            return forest
        if not prior.is_forest:
            raise NoPosteriorError(
                "the posterior is an average over forests, and to_pymc declares one of them: give "
                "structure=, the position of the column that each column depends on, -1 for none; "
                "draw_posterior() has exact draws of the average"
            )
        rng = np.random.default_rng(0)
        return np.stack([prior.draw_parents(rng, 1, c)[0] for c in range(n_classes)])
