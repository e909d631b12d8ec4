r"""Categories whose classes share strength: theta_cj ~ Dirichlet(kappa_j m_j), both learned.

.. math:: x_j \mid y = c \sim \text{Categorical}(\theta_{cj}), \quad
          \theta_{cj} \sim \text{Dirichlet}(\kappa_j m_j)

.. math:: m_j = \text{softmax}(1.5 r_j), \quad r_{jk} \sim \text{Normal}(0, 1), \quad
          \log \kappa_j \sim \text{Normal}(\log k, 1), \quad
          \log k \sim \text{Normal}(\log 10, 1)

m_j is the base measure of column j, the probabilities that the classes share; kappa_j, in rows,
is how much they share: the pseudo-count of m_j in every class. Columns are pooled towards a
common k. Prefer it to Dirichlet priors of fixed pseudo-counts where classes have few rows, columns
many categories, or categories are rare: 1 a category is far too much where K is 50, and takes no
notice of which categories are common.

A category never seen is no part of theta: it has probability 1/(n_cj + K_j + 1) under every theta,
that of a uniform Dirichlet prior, n_cj the rows of class c.

Features may have different numbers of categories K_j: arrays are padded to the largest, with 0.

Source: Gelman et al., Bayesian Data Analysis (2013), section 5.3 (Beta-binomial; here with K
categories); MacKay and Peto (1995), A hierarchical Dirichlet language model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.category_codes import count_codes, draw_codes, look_up, n_codes
from bayesgen.family import Family, Theta, array, prior_object
from bayesgen.names import CATEGORY, CLASS, FEATURE
from bayesgen.numerics import Array
from bayesgen.pymc_parts import dirichlet, prefixed, sum_codes, variable
from bayesgen.rows import Matrix


@dataclass(frozen=True, eq=False)
class HierarchicalCategorical(Family):
    """Independent categorical features, probabilities of the classes partially pooled.

    X holds the category codes 0 .. K_j - 1; NaN is a missing cell; -1, or any number that is no
    code of the feature, is a category never seen. In a CSR matrix the cells that are not stored
    have code 0.

    Parameters
    ----------
    concentration : prior object, optional
        Of kappa (feature,), in rows. None: the default above.
    n_categories : tuple of int
        Number of categories of each feature. Empty: as many for every feature as the rows have.
    new : array (class, feature), optional
        Probability of a category never seen. None: from the rows, as above.
    """

    sparse: ClassVar[bool] = True

    concentration: Any = prior_object()
    n_categories: Sequence[int] = ()
    new: Any = array(CLASS, FEATURE, default=None)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: p(x_j = k | y = c), 0 in the padding."""
        return {"theta": (CLASS, FEATURE, CATEGORY)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Three categories; and two to four."""
        new = np.full((n_classes, n_features), 0.1)
        ragged = tuple(2 + j % 3 for j in range(n_features))
        return [cls(None, (3,) * n_features, new), cls(None, ragged, new)]

    def coords(self) -> dict[str, Any]:
        """Codes of the categories."""
        return {CATEGORY: np.arange(max(self.n_categories, default=0))}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) sums of log probabilities of the observed cells."""
        p = np.asarray(theta["theta"], dtype=np.float64)
        log_new = np.log(self.new)
        table = np.zeros((*p.shape[:-1], p.shape[-1] + 2))  # at the end: never seen, and missing
        with np.errstate(divide="ignore"):
            table[..., :-2] = np.where(self._real(), np.log(p), log_new[..., None])
        table[..., -2] = log_new
        return look_up(X, table)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) codes, as int64."""
        return draw_codes(rng, np.asarray(theta["theta"]), y)

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """The numbers of categories; the probability of one never seen."""
        n_features = X.shape[1]
        k = tuple(map(int, self.n_categories)) or (n_codes(X),) * n_features
        if len(k) != n_features:
            raise ValueError(f"n_categories has {len(k)} entries for {n_features} features")
        known = np.flatnonzero(y >= 0)
        own = None if weight is None else weight[known]
        counts = count_codes(X[known], y[known], n_classes, max(k), own)
        outside = (np.arange(max(k)) >= np.asarray(k)[:, None]) & (counts > 0).any(axis=0)
        if outside.any():
            j = int(np.argmax(outside.any(axis=1)))
            raise ValueError(f"feature {j} has {k[j]} declared categories, but codes beyond them")
        new = self.new
        if new is None:
            new = 1 / (counts.sum(axis=-1) + np.asarray(k) + 1)
        new = np.broadcast_to(np.asarray(new, dtype=np.float64), (n_classes, n_features))
        return replace(self, n_categories=k, new=new.copy())

    def to_pymc(
        self, *, prefix: str = "", X: Matrix | None = None, y: Any = None, stats: Any = None
    ) -> dict[str, Any]:
        """Dirichlet probabilities; of rows the counts of their categories, the potential ``x``."""
        import pymc as pm
        import pytensor.tensor as pt

        model: Any = pm.modelcontext(None)
        n_classes, real = len(model.coords[CLASS]), self._real()
        by_feature, by_category = f"{prefix}{FEATURE}", f"{prefix}{CATEGORY}"
        dims = prefixed(prefix, self.params["theta"])
        kappa = variable(
            f"{prefix}concentration",
            self.concentration,
            (by_feature,),
            lambda: _concentration(prefix, by_feature),
        )
        raw = pm.Normal(f"{prefix}base_raw", 0.0, 1.0, dims=(by_feature, by_category))
        base = pt.special.softmax(pt.switch(real, 1.5 * raw, -np.inf), axis=-1)
        base = pm.Deterministic(f"{prefix}base", base, dims=(by_feature, by_category))
        pattern = np.broadcast_to(real * 1.0, (n_classes, *real.shape))
        a = pt.broadcast_to(kappa[:, None] * base, pattern.shape)
        theta = dirichlet(f"{prefix}theta", pattern, a, dims)
        if X is not None:
            codes = np.asarray(y.get_value() if hasattr(y, "get_value") else y)
            counts = count_codes(X, codes, n_classes, real.shape[1])
            n = pm.Data(f"{prefix}counts", counts)
            cells = (slice(None), *np.nonzero(real))
            pm.Potential(f"{prefix}x", (n[cells] * pt.log(theta[cells])).sum())
        return {"theta": theta}

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """Sums of the log probabilities of the observed cells."""
        return sum_codes(f"{prefix}codes", X, self._real(), theta["theta"])

    def _real(self) -> Array:
        """(D, K) False in the padding."""
        k = np.asarray(self.n_categories)
        return np.asarray(np.arange(k.max(initial=1)) < k[:, None])


def _concentration(prefix: str, dim: str) -> Any:
    """kappa (feature,): log-Normal about a common concentration, which is learned."""
    import pymc as pm
    import pytensor.tensor as pt

    typical = pm.LogNormal(f"{prefix}concentration_typical", np.log(10.0), 1.0)
    raw = pm.Normal(f"{prefix}concentration_raw", 0.0, 1.0, dims=dim)
    return pm.Deterministic(f"{prefix}concentration", typical * pt.exp(raw), dims=dim)
