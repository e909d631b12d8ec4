r"""Whether draws of a covariance have the density that the family claims for them.

Let T_e multiply every off-diagonal element by 1 + e. Were the draws those of T_e applied to
draws of the density p, the logarithm of their density would change with e, at e = 0, by minus

.. math:: \psi(\theta) = \frac{d}{de} \big[\log p(T_e \theta) + \log |T_e'|\big],

the score of e. Its expectation under p is 0, and no other function of one draw tells e from 0 with
fewer draws (Cox and Hinkley, Theoretical Statistics (1974), section 4.8). An element by element
comparison hardly sees an off-diagonal that is 3 % too small: its own spread is ten times as large.
"""

import numpy as np

from bayesgen.families.capabilities import ThetaDensity, require
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.names import FEATURE, FEATURE_BIS
from bayesgen.numerics.special import Array

_STEP = 1e-4


def covariances(family: ConjugateFamily) -> list[str]:
    """Names of the parameters that are matrices over the features."""
    return [
        name
        for name, dims in family.params.items()
        if len(dims) > 1 and dims[-1].endswith(FEATURE_BIS) and dims[-2].endswith(FEATURE)
    ]


def off_diagonal_score(family: ConjugateFamily, theta: dict[str, Array], name: str) -> Array:
    """(S,) the score of each draw, the off-diagonals of all classes scaled at once.

    Parameters
    ----------
    theta : {name: (S, *dims)}
    """
    density = require(family, ThetaDensity, "the score of draws")
    value = theta[name]
    n_features = value.shape[-1]
    off = value * (1 - np.eye(n_features))
    ahead, behind = (
        density.log_density(theta | {name: value + sign * _STEP * off}) for sign in (1, -1)
    )
    # columns that no density looks at do not count
    one = {k: np.repeat(v[:1], n_features, axis=0) for k, v in theta.items()}
    cross = np.eye(n_features)[:, :, None] + np.eye(n_features)[:, None, :]  # row and column j
    cross = cross.reshape(n_features, *[1] * (value.ndim - 3), n_features, n_features)
    moved = density.log_density(
        one | {name: one[name] + _STEP * cross * np.repeat(off[:1], n_features, 0)}
    )
    seen = int((moved != density.log_density(one)).sum())
    n_matrices = value[0].size // n_features**2
    return (ahead - behind) / (2 * _STEP) + n_matrices * seen * (seen - 1) / 2
