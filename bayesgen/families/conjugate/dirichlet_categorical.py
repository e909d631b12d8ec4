r"""Categories with a Dirichlet prior: x_j | y=c ~ Categorical(theta_cj), theta_cj ~ Dirichlet.

Posterior: alpha + counts. Predictive of a cell: the posterior mean
:math:`\alpha'_{cjk} / \sum_l \alpha'_{cjl}`, so that for one row the plug-in of posterior means
*is* the posterior predictive.

A category that was never declared nor seen has probability :math:`a/(\sum_l \alpha'_{cjl} + a)`
with a the prior's own mean pseudo-count of that class and feature: exactly the predictive of the
model in which the category had been declared with that pseudo-count.

Features may have different numbers of categories K_j. Arrays are padded to the largest, K, and
``alpha == 0`` marks the padding.

Source: Murphy, Machine Learning: a Probabilistic Perspective (2012), section 3.4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import xlogy

from bayesgen.families.contract import ConjugateFamily, Stats, Tensors, Theta, padded
from bayesgen.families.errors import NotLinearError, refuse_undefined
from bayesgen.families.names import CATEGORY, CLASS, FEATURE, FEATURE_CATEGORY, Method
from bayesgen.families.records import Hyperparameter, array
from bayesgen.families.shared import densities, pymc_parts
from bayesgen.families.shared.codes import (
    count_codes,
    draw_codes,
    look_up,
    n_codes,
)
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics.rows import equal_weights, without_weight
from bayesgen.numerics.special import (
    Array,
    draw_dirichlet,
    log_beta_difference,
)


@dataclass(frozen=True, eq=False)
class CategoricalStats(Stats):
    """Weighted counts of each category; missing cells are in none."""

    counts: Array = array(CLASS, FEATURE, CATEGORY)

    def reindex_categories(self, codes: Sequence[Array], n_categories) -> Self:
        """Return the same rows, with category k of feature j renamed ``codes[j][k]``.

        Parameters
        ----------
        codes : for each feature an integer array (K_j,) without repeats
        n_categories : int or tuple of int
            Categories of the features afterwards; the padding goes up to the largest.
        """
        n_classes, n_features, _ = self.counts.shape
        counts = np.zeros((n_classes, n_features, int(np.max(n_categories))))
        for j, new in enumerate(codes):
            if self.counts[:, j, len(new) :].any():
                raise ValueError(f"feature {j} has counts beyond its {len(new)} renamed categories")
            counts[:, j, new] = self.counts[:, j, : len(new)]
        return replace(self, counts=counts)


@dataclass(frozen=True, eq=False)
class DirichletCategorical(ConjugateFamily):
    """Independent categorical features with Dirichlet priors.

    X holds the category codes 0 .. K_j - 1 as integers or floats. NaN is a missing cell; -1, or
    any number that is no code of the feature, is a category never declared nor seen.

    Parameters
    ----------
    alpha : float or array broadcasting to (class, feature), or (class, feature, category), > 0
        Pseudo-count of each category, in rows. In three dimensions zeros at the end of a
        feature's categories are padding.
    n_categories : tuple of int
        Number of categories of each feature. Empty: as many for every feature as the
        three-dimensional `alpha` or the training rows have.
    new : float or array broadcasting to (class, feature), >= 0, or None
        Pseudo-count of a category never declared nor seen; data do not change it. None: the mean
        of `alpha` over the categories. 0 makes such a row impossible.

    Examples
    --------
    >>> import numpy as np
    >>> family = DirichletCategorical(n_categories=(3, 2))
    >>> stats = family.stats(np.array([[2, 0], [2, 1]]), np.array([0, 0]), n_classes=2)
    >>> posterior = family.resolve(stats).update(stats)
    >>> np.exp(posterior.log_predictive(np.array([[2, 1], [-1, 1]]))).round(3)
    array([[0.3  , 0.167],
           [0.083, 0.125]])
    """

    holds: ClassVar[str] = "category"
    kind: ClassVar[str] = "categorical"
    statistics: ClassVar[type[Stats]] = CategoricalStats
    tunable: ClassVar[tuple[str, ...]] = ("alpha",)
    attributes: ClassVar[Mapping[str, str]] = {"feature_log_prob_": "theta"}
    separable: ClassVar[bool] = True

    alpha: Hyperparameter = array(CLASS, FEATURE, CATEGORY, default=1.0)
    n_categories: Sequence[int] = ()
    new: Hyperparameter = array(CLASS, FEATURE, default=None)

    # methods with a page of their own

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: p(x_j = k | y = c), 0 in the padding."""
        return {"theta": (CLASS, FEATURE, CATEGORY)}

    def coords(self) -> dict[str, Any]:
        """Return the cells that exist, where features have different numbers of categories."""
        real = np.asarray(self.alpha) > 0
        padding = real.ndim == 3 and not real.all()
        return {FEATURE_CATEGORY: pymc_parts.Cells.numbered(real[0])} if padding else {}

    def log_likelihood(self, X: Array, theta: Theta) -> Array:
        """Return (..., N, C) sum of log probabilities of the observed cells.

        `theta` has no place for a category never seen. It has the probability of the posterior
        predictive, `new`/(total + `new`), under every theta alike: a constant, so that the
        expectation over draws is right. For the MLE and the MAP that is not what they say:
        score those by ``family.for_plug_in(method)``.
        """
        with np.errstate(divide="ignore"):
            log_p = np.log(np.asarray(theta["theta"], dtype=np.float64))
            log_new = np.log(self.p_new())
        return look_up(X, self.extended(log_p, log_new))

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) codes, as int64."""
        return draw_codes(rng, theta["theta"], y)

    def to_pymc(self, *, prefix: str = "", X: Array | None = None, y=None, stats=None) -> Tensors:
        """Dirichlet priors; Categorical rows (the observed cells), or the counts of categories.

        ``theta`` is one variable whatever the numbers of categories. Where features differ in
        them it has one dim for the cells that exist, ``feature_category``; what is returned is
        padded with 0.
        """
        import pymc as pm
        import pytensor.tensor as pt

        # `new` is no part of the model of the training rows: they know their categories
        prior = pymc_parts.declare(replace(self, new=None), "prior", prefix)
        dims = pymc_parts.prefixed(prefix, self.params["theta"])
        theta = pymc_parts.dirichlet(f"{prefix}theta", self.alpha, prior["alpha"], dims)
        k = self.alpha.shape[2]
        if stats is not None and X is None:
            counts = padded(stats.counts, k)[..., :k]
            n = pymc_parts.declare(replace(stats, counts=counts), "stats", prefix)["counts"]
            cells = (slice(None), *np.nonzero(self.alpha[0] > 0))
            pm.Potential(f"{prefix}x", (n[cells] * pt.log(theta[cells])).sum())
        elif X is not None:
            # refuses codes that are not declared: training rows know their categories
            self.update(self.stats(X, np.zeros(X.shape[0], dtype=np.int64), 1))
            pymc_parts.observe_cells(prefix, X, pm.Categorical.dist, theta[y], signature="(k)->()")
        return {"theta": theta}

    def pymc_log_likelihood(self, X: Array, theta, *, prefix: str = ""):
        """Sums of the log probabilities of the observed cells."""
        return pymc_parts.sum_codes(f"{prefix}codes", X, self.alpha[0] > 0, theta["theta"])

    def stats(
        self, X: Array, y: Array, n_classes: int, weight: Array | None = None
    ) -> CategoricalStats:
        """Counts of each category among the observed cells.

        Raises
        ------
        ValueError
            If a code is not a whole number in 0 .. K - 1: training rows know their categories.
        """
        k = self._width() or n_codes(X)
        return CategoricalStats(count_codes(X, y, n_classes, k, weight))

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Three categories; and two to four, unequal pseudo-counts by class and category."""
        flat = cls(np.ones((n_classes, n_features, 3)))
        k = 2 + np.arange(n_features) % 3
        unequal = 0.5 + np.arange(n_classes * n_features * 4).reshape(n_classes, n_features, 4) % 7
        ragged = cls(np.where(np.arange(4) < k[:, None], unequal, 0.0))
        return [f.resolve(CategoricalStats(np.zeros(f.alpha.shape))) for f in (flat, ragged)]

    def observed_cells(self, stats: CategoricalStats) -> Array:
        """Return (C, D) rows of each class in which the column was not missing."""
        return np.asarray(stats.counts.sum(axis=-1))

    def resolve(self, stats: CategoricalStats) -> Self:
        """Broadcast to (class, feature, category), with zeros in the padding."""
        n_classes, n_features, seen = stats.counts.shape
        k = self._width() or seen
        shape = (n_classes, n_features, k)
        if np.ndim(self.alpha) == 3:
            alpha = _full_alpha(self.alpha, shape)
        else:
            alpha = broadcast_prior("alpha", self.alpha, shape[:2])[..., None] * np.ones(k)
        if len(self.n_categories):
            if len(self.n_categories) != n_features:
                raise ValueError(
                    f"n_categories has {len(self.n_categories)} entries for {n_features} features"
                )
            declared = np.arange(k) < np.asarray(self.n_categories)[:, None]
            if np.any((alpha > 0) != declared) and np.ndim(self.alpha) == 3:
                raise ValueError("alpha must be > 0 for the declared categories, and 0 beyond them")
            alpha = np.where(declared, alpha, 0.0)
        new = self.new
        if new is None:
            new = alpha.sum(axis=-1) / (alpha > 0).sum(axis=-1)
        new = broadcast_prior("new", new, shape[:2], positive=False)
        if np.any(new < 0):
            raise ValueError(f"new must be >= 0, got {self.new!r}")
        prior = replace(self, alpha=alpha, n_categories=(), new=new)
        prior.update(stats)  # refuses codes beyond the declared categories
        return prior

    def update(self, stats: CategoricalStats) -> Self:
        """Pseudo-counts + counts."""
        k = self.alpha.shape[2]
        outside = stats.counts[..., k:].any(axis=(0, 2))
        counts = padded(stats.counts, k)[..., :k]
        outside |= np.any((counts != 0) & (self.alpha == 0), axis=(0, 2))
        if outside.any():
            j = int(np.argmax(outside))
            n_j = int((self.alpha[0, j] > 0).sum())
            raise ValueError(f"feature {j} has {n_j} declared categories, but codes beyond them")
        return replace(self, alpha=self.alpha + counts)

    def scaled(self, factors) -> Self:
        """`new` is one of the pseudo-counts: it goes with `alpha`."""
        return replace(super().scaled(factors), new=self.new * factors.get("alpha", 1.0))

    def for_plug_in(self, method: Method) -> Self:
        """Give a category never seen the probability that it would have if it were declared.

        That is 0 under the MLE, (new - 1)/(sum of (alpha - 1) + new - 1) under the MAP.
        """
        if method == "mle":
            return replace(self, new=np.zeros_like(self.new))
        if method == "map":
            real = self.alpha > 0
            excess = np.maximum(self.new - 1, 0.0)
            others = np.where(real, self.alpha - 1, 0.0).sum(axis=-1)
            # the pseudo-count that gives it this share beside the total: p/(1 - p)
            share = np.divide(excess, others, out=np.zeros_like(excess), where=others > 0)
            return replace(self, new=self.alpha.sum(axis=-1) * share)
        return self

    def mle(self, stats: CategoricalStats) -> dict[str, Array]:
        """Relative frequencies; 0 for a category that the class never had.

        One that no class ever had has no place in theta: see `for_plug_in`.
        """
        total = stats.counts.sum(axis=-1)
        refuse_undefined("mle", total <= 0, "it has no observed row (0/0)")
        return {"theta": padded(stats.counts, self._width()) / total[..., None]}

    def map(self) -> dict[str, Array]:
        """Return (alpha - 1)/(sum of alpha - K_j), the mode on the simplex.

        A category with alpha = 1 beside others above 1 has probability 0.
        """
        return {"theta": densities.dirichlet_mode(self.alpha)}

    def mean(self) -> dict[str, Array]:
        """alpha/(sum of alpha)."""
        return {"theta": self.alpha / self.alpha.sum(axis=-1, keepdims=True)}

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Independent Dirichlet draws."""
        return {"theta": draw_dirichlet(rng, self.alpha, n)}

    def log_density(self, theta: Theta) -> Array:
        """Add up log Dirichlet densities of classes and features; theta is 0 in padding."""
        return densities.density_by_draws(
            lambda t: densities.log_dirichlet_density(t["theta"], self.alpha), theta, self.params
        )

    def log_predictive(self, X: Array) -> Array:
        """Return (N, C) by the posterior mean: cells are independent given the class."""
        return self.log_likelihood(X, self.mean())

    def log_evidence(self, stats: CategoricalStats) -> float:
        """Sum over cells of log B(posterior) - log B(prior): the probability of this sequence."""
        counts = padded(stats.counts, self.alpha.shape[2])
        return float(log_beta_difference(self.alpha, counts).sum())

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Refused: linear in one indicator for each category, not in the codes."""
        raise NotLinearError(
            "a categorical rule is linear in one 0/1 indicator for each category, with weights "
            "log theta, not in the codes: code 2 is not twice code 1; one-hot the columns"
        )

    def information(self, theta: Theta, weights: Array) -> Array:
        """Add up pi theta log(theta / mean theta) over classes and categories: (D,), in nats."""
        p, pi = theta["theta"], weights[:, None, None]
        mean = (pi * p).sum(axis=0)
        return ((pi * xlogy(p, p)).sum(axis=0) - xlogy(mean, mean)).sum(axis=-1)

    def _width(self) -> int:
        """K as far as the hyper-parameters tell, else 0."""
        if len(self.n_categories):
            return int(max(self.n_categories))
        return int(np.shape(self.alpha)[2]) if np.ndim(self.alpha) == 3 else 0

    def p_new(self) -> Array:
        """Return (C, D) probability of a category never seen."""
        return self.new / (self.alpha.sum(axis=-1) + self.new)

    def extended(self, table: Array, new: Array) -> Array:
        """Return (..., D, K + 2) values of codes 0 .. K - 1, of one never seen, of a missing cell.

        `table` is (..., D, K), `new` (..., D), which stands in the padding as well.
        """
        k = table.shape[-1]
        wide = np.zeros((*table.shape[:-1], k + 2), dtype=table.dtype)
        real = padded(self.alpha, k)[0] > 0
        wide[..., :k] = np.where(real, table, new[..., None])
        wide[..., k] = new
        return wide

    def log_predictive_without(self, X: Array, y: Array, weight: Array) -> tuple[Array, Array]:
        """Subtract the row from the pseudo-counts of its class."""
        log_x, left = self.log_predictive(X), np.ones(X.shape[0])
        for c, w, rows in equal_weights(y, weight):
            alpha = self.alpha[c]
            remaining, is_lost = without_weight(alpha, w)
            total, none_is_left = without_weight(alpha.sum(axis=-1, keepdims=True), w)
            one = self.at(CLASS, [c])
            log_x[rows, c] = one.log_likelihood(X[rows], {"theta": (remaining / total)[None]})[:, 0]
            kept = np.where(is_lost | none_is_left, 0.0, 1.0)[None]
            left[rows[np.isneginf(one.log_likelihood(X[rows], {"theta": kept})[:, 0])]] = 0.0
        return log_x, left


def _full_alpha(alpha, shape: tuple[int, ...]) -> Array:
    """Return a three-dimensional prior of `shape`, or an error."""
    try:
        table = np.array(np.broadcast_to(np.asarray(alpha, dtype=np.float64), shape))
    except ValueError:
        raise ValueError(
            f"alpha has shape {np.shape(alpha)}, which does not broadcast to "
            f"(class, feature, category) = {shape}"
        ) from None
    real = table > 0
    padding_last = np.all(real[..., :-1] >= real[..., 1:])
    if not (np.all(np.isfinite(table) & (table >= 0)) and real[..., 0].all() and padding_last):
        raise ValueError("alpha must be finite and > 0; zeros may only pad a feature's end")
    if np.any(real != real[:1]):
        raise ValueError("alpha has a different number of categories in different classes")
    return table
