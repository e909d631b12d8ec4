r"""Categories whose classes share strength: log-odds about the column's own, how far is learned.

.. math:: x_j \mid y = c \sim \text{Categorical}(\theta_{cj}), \quad
          \theta_{cj} = \text{softmax}(\mu_j + \delta_{cj}), \quad
          \mu_{jk} \sim \text{Normal}(0, s_j^2)

.. math:: \delta_{cjk} = \tau z_{cjk} e^{\text{asinh}\, \omega u_j}, \quad
          z_{cjk} \sim \text{Normal}(0, 1), \quad
          u_j = \Bigl(\sum_{ck} z_{cjk}^2 - n_j\Bigr) / \sqrt{2 n_j}

.. math:: \log \tau \sim \text{Normal}(\log 0.5, 1), \quad \omega \sim \text{HalfNormal}(0.5)

of all that softmax looks at: the contrasts of the categories, n_j = C (K_j - 1) of z. As for bits,
classes are pooled towards the base probabilities of their column, softmax(mu_j), and
columns towards a common spread tau; omega says how unequal the columns are. s_j^2 is 1 + the
variance of the logarithms of the column's frequencies, all classes together.

Prefer it to Dirichlet priors of fixed pseudo-counts where classes have few rows, columns many
categories, or categories are rare: 1 a category is far too much where K is 50, and takes no notice
of which categories are common. tau stands where the concentration of a Dirichlet about a learned
base measure would, 1/tau^2 for it. That Dirichlet has pseudo-counts near 0 for rare categories, and
log-probabilities of -100 and beyond, where NUTS gets on slowly.

A category never seen is no part of theta: it has probability 1/(n_cj + K_j + 1) under every theta,
that of a uniform Dirichlet prior, n_cj the rows of class c.

Features may have different numbers of categories K_j: arrays are padded to the largest, with 0.

Sampled is what the rows determine best: instead of z coordinates between z and delta
(`pooled_log_odds`), along contrasts of the classes and of the categories, and instead of mu the
level mu + sum_c w_c delta_c, w the share of the classes in what is known of the category. The model
depends on no choice.

Source: Gelman et al., Bayesian Data Analysis (2013), chapter 16; Aitchison and Shen (1980),
Logistic-normal distributions: some properties and uses (in place of the Dirichlet).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import helmert

from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CATEGORY, CLASS, FEATURE, FEATURE_CATEGORY, PROBABILITY
from bayesgen.families.records import array, guide, prior_object
from bayesgen.families.shared import pymc_parts
from bayesgen.families.shared.codes import count_codes, draw_codes, look_up, n_codes
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class HierarchicalCategorical(Family):
    """Independent categorical features, probabilities of the classes partially pooled.

    X holds the category codes 0 .. K_j - 1; NaN is a missing cell; -1, or any number that is no
    code of the feature, is a category never seen. In a CSR matrix the cells that are not stored
    have code 0.

    Parameters
    ----------
    tau, inequality : prior objects, optional
        Of the spread of the classes about the base log-odds, and of omega, (). None: the defaults
        above.
    n_categories : array (feature,) of int
        Number of categories of each feature. Empty: as many for every feature as the rows have.
    new : array (class, feature), optional
        Probability of a category never seen. None: from the rows, as above.
    scale : array (feature,), optional
        s, in log-odds. None: from the rows.
    share : array (class, feature, category), optional
        w. None: from the rows.
    """

    describes: ClassVar[str] = PROBABILITY
    holds: ClassVar[str] = "category"
    kind: ClassVar[str] = "categorical"
    sums_rows: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    tau: Any = prior_object()
    inequality: Any = prior_object()
    n_categories: Any = array(FEATURE, default=())
    new: Any = array(CLASS, FEATURE, default=None)
    scale: Any = array(FEATURE, default=None)
    share: Any = guide(CLASS, FEATURE, CATEGORY)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: p(x_j = k | y = c), 0 in the padding."""
        return {"theta": (CLASS, FEATURE, CATEGORY)}

    @property
    def hyperparameters(self) -> dict[str, tuple[str, ...]]:
        """``base`` probabilities, spread ``tau`` and ``inequality``."""
        return {"base": (FEATURE, CATEGORY), "tau": (), "inequality": ()}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Three categories; and two to four."""
        new = np.full((n_classes, n_features), 0.1)
        unit = np.ones(n_features)
        several = 2 + np.arange(n_features) % 3
        share = np.arange(n_classes * n_features * 4).reshape(n_classes, n_features, 4) % 5 / 8
        return [
            cls(n_categories=3 * unit, new=new, scale=unit, share=share[..., :3]),
            cls(n_categories=several, new=new, scale=2 * unit, share=share[..., : several.max()]),
        ]

    def coords(self) -> dict[str, Any]:
        """Codes of the categories; the cells that exist, where features differ in them."""
        real = self._real()
        own = {} if real.all() else {FEATURE_CATEGORY: pymc_parts.Cells.numbered(real)}
        return {CATEGORY: np.arange(real.shape[1]), **own}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) sums of log probabilities of the observed cells."""
        p = np.asarray(theta["theta"], dtype=np.float64)
        log_new = np.log(self.new)
        table = np.zeros((*p.shape[:-1], p.shape[-1] + 2))  # at the end: never seen, and missing
        with np.errstate(divide="ignore"):
            table[..., :-2] = np.where(self._real(p.shape[-1]), np.log(p), log_new[..., None])
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
        k = np.asarray(self.n_categories, dtype=np.int64)
        if not len(k):
            k = np.full(n_features, n_codes(X))
        if len(k) != n_features:
            raise ValueError(f"n_categories has {len(k)} entries for {n_features} features")
        known = np.flatnonzero(y >= 0)
        own = None if weight is None else weight[known]
        counts = count_codes(X[known], y[known], n_classes, k.max(), own)
        outside = (np.arange(k.max()) >= k[:, None]) & (counts > 0).any(axis=0)
        if outside.any():
            j = int(np.argmax(outside.any(axis=1)))
            raise ValueError(f"feature {j} has {k[j]} declared categories, but codes beyond them")
        n = counts.sum(axis=-1, keepdims=True)
        real = np.arange(k.max()) < k[:, None]
        pooled = count_codes(X, np.zeros(X.shape[0], dtype=np.int64), 1, k.max(), weight)[0]
        log_rate = np.log(pooled + 0.5)
        mean = (log_rate * real).sum(axis=1) / k
        variance = (np.square(log_rate - mean[:, None]) * real).sum(axis=1) / k
        rate = np.where(real, pooled + 0.5, 0.0)
        p = (counts + rate / rate.sum(axis=1, keepdims=True)) / (n + 1)
        information = n * p * (1 - p)
        return replace(self, n_categories=k).filled(
            new=1 / (n[..., 0] + k + 1),
            scale=np.sqrt(1 + variance),
            share=information / (information.sum(axis=0) + 1 / pymc_parts.SPREAD**2),
        )

    def to_pymc(
        self,
        *,
        prefix: str = "",
        X: Matrix | None = None,
        y: Any = None,
        stats: Any = None,
        summed: bool = False,
    ) -> dict[str, Any]:
        """Normal log-odds; Categorical rows, summed by the counts of their categories."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = pymc_parts.declare(self, "prior", prefix)
        real = self._real()
        n_classes, n_features, width = self.share.shape
        k = real.sum(axis=1)
        basis = pm.Data(f"{prefix}basis", _contrasts(k, self.share))
        free = np.nonzero(np.arange(width - 1) < k[:, None] - 1)  # a column has k - 1 contrasts
        contrast = f"{prefix}category_contrast"
        pm.modelcontext(None).add_coords({contrast: np.arange(len(free[0]))})

        def in_columns(contrasts: Any) -> Any:  # (..., R - D) to (..., D, K - 1)
            empty: Any = pt.alloc(np.float64(0.0), *contrasts.shape[:-1], n_features, width - 1)
            return empty[(..., *free)].set(contrasts)

        def cells(contrasts: Any) -> Any:  # (..., D, K - 1) to (..., D, K)
            return (contrasts[..., None, :] * basis).sum(axis=-1)

        known = pymc_parts.known_share(prior["share"]).sum(axis=(0, 2)) / (n_classes * k)
        rotated = pymc_parts.declare_deviations(
            self,
            prefix,
            known / (1 + known),
            n_classes * np.maximum(k - 1, 1),
            free[0],
            lambda found: in_columns(found).sum(axis=(0, 2)),
            shape=(n_classes, len(free[0])),
            cell_dim=contrast,
        )
        axes = pm.Data(f"{prefix}axes", pymc_parts.class_axes(self.share.sum(axis=2) / k))
        turned = (axes[:, :, :, None] * in_columns(rotated)).sum(axis=1)
        deviation = cells(turned)
        common = (prior["share"] * deviation).sum(axis=0)
        shift = (common[..., None] * basis).sum(axis=1)
        level = pm.Normal(
            f"{prefix}level",
            shift[free],
            prior["scale"][free[0]],
            shape=len(free[0]),
            dims=contrast,
        )

        def log_softmax(log_odds: Any) -> Any:
            # of log-odds about 0 in each column: nothing to subtract first
            total = pt.switch(real, pt.exp(log_odds), 0.0).sum(axis=-1, keepdims=True)
            return log_odds - pt.log(total)

        def padded(log_p: Any) -> Any:
            return pt.switch(real, pt.exp(log_p), 0.0)

        dims = pymc_parts.prefixed(prefix, self.params["theta"])
        mu = cells(in_columns(level) - shift)
        pymc_parts.declare_probabilities(f"{prefix}base", padded(log_softmax(mu)), real, dims[1:])
        log_p = log_softmax(mu + deviation)
        theta = pymc_parts.declare_probabilities(f"{prefix}theta", padded(log_p), real, dims)
        if X is not None and not summed:
            pymc_parts.observe_cells(prefix, X, pm.Categorical.dist, theta[y], signature="(k)->()")
        elif X is not None:
            counts = pm.Data(
                f"{prefix}counts", count_codes(X, pymc_parts.known_codes(y), n_classes, width)
            )
            pm.Potential(f"{prefix}x", (counts * log_p).sum())
        return {"theta": theta}

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """Sums of the log probabilities of the observed cells."""
        return pymc_parts.sum_codes(f"{prefix}codes", X, self._real(), theta["theta"])

    def _real(self, width: int = 0) -> Array:
        """(D, K) False in the padding, up to `width` or the largest number of categories."""
        k = np.asarray(self.n_categories)
        return np.asarray(np.arange(width or k.max(initial=1)) < k[:, None])


def _contrasts(k: Array, share: Array) -> Array:
    """(D, K, K - 1) orthonormal contrasts of the k_j cells of each column, 0 in the padding.

    Axes of what the rows say of the cells: common and rare ones apart.
    """
    total = share.sum(axis=0)
    information = total / np.maximum(1 - total, 1e-9)
    out = np.zeros((*total.shape, total.shape[1] - 1))
    for j, n in enumerate(k):
        E = helmert(int(n)).T
        out[j, :n, : n - 1] = E @ np.linalg.eigh(E.T * information[j, :n] @ E)[1]
    return out
