r"""The default scale matrix: what all classes together say of variances and correlations.

With the pooled within-class scatter W, its degrees of freedom :math:`f = \sum_c \max(n_c - 1, 0)`,
the correlations r of W and the variances :math:`s^2` of `gaussian.unit_information`,

.. math:: T_{jk} = s_j s_k\, [(1 - \rho)\, r_{jk} + \rho\, 1(j = k)], \qquad
          \rho = 2 D\, \frac{\sum_{j \ne k} (1 - r_{jk}^2)^2 / f}{\sum_{j \ne k} r_{jk}^2}

held between max(1/f, 1/1000) and 1. Without the factor 2 D it is the shrinkage of Schäfer and
Strimmer (2005), A shrinkage approach to large-scale covariance matrix estimation, with the variance
of a correlation under a Normal, :math:`(1 - r^2)^2/f`, which needs no moment but the second: T is a
function of statistics that add up, equivariant under shift and scale of each column. Their loss is
that of single correlations; what classes are told apart by is the inverse, to which errors of all D
columns add. The factor was chosen by ``tests/benchmarks/priors_on_open_sets.py --scan``:
correlations that are clear are kept, so that directions with little variance in all classes are not
drowned, and doubtful ones are dropped. Training rows with missing cells (of a fit by draws) tell of
variances alone: there T is diagonal.
"""

import numpy as np

from bayesgen.numerics.special import Array

_FIRMNESS = 2.0  # times D
_LEAST = 1e-3  # of rho: T stays positive definite by a margin, duplicated columns or not


def shrunken_correlations(scatter: Array, freedom: float) -> Array:
    """(D, D) correlations of a pooled within-class scatter, shrunken towards 0.

    Parameters
    ----------
    scatter : (D, D)
    freedom : float
        Degrees of freedom of it; without one nothing is known, and the identity is returned.
    """
    identity = np.eye(len(scatter))
    width = np.sqrt(np.maximum(np.diagonal(scatter), 0.0))
    unit = np.where(width > 0, width, 1.0)
    r = np.clip(scatter / unit / unit[:, None], -1.0, 1.0)
    r2 = np.square(r)
    np.fill_diagonal(r2, 0.0)
    strength = r2.sum()
    if freedom <= 1 or strength == 0:
        return identity
    doubt = (np.square(1 - r2).sum() - len(r)) / freedom
    rho = min(1.0, max(_FIRMNESS * len(r) * doubt / strength, 1 / freedom, _LEAST))
    out = (1 - rho) * r
    np.fill_diagonal(out, 1.0)
    return out
