r"""Classes and features together: Dirichlet class weights times a family.

.. math:: \pi \sim \text{Dirichlet}(\alpha), \quad y_i \sim \text{Categorical}(\pi), \quad
          x_i \mid y_i = c \sim p(\cdot \mid \theta_c)

The weights and the features' parameters are independent a posteriori, so their log densities and
evidences add. Source: Murphy (2012), section 3.5.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from bayesgen.families.capabilities import (
    ThetaDensity,
    UnlabelledRows,
    require,
)
from bayesgen.families.contract import ConjugateFamily, Family, Stats, Theta
from bayesgen.families.errors import refuse_undefined
from bayesgen.families.names import CLASS, CLASS_WEIGHTS, NEW_OBS, OBS, Method
from bayesgen.families.records import Record, array
from bayesgen.families.shared.densities import log_dirichlet_density, log_product
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics.rows import Matrix, class_counts
from bayesgen.numerics.special import (
    Array,
    draw_dirichlet,
    log_beta_difference,
)


@dataclass(frozen=True, eq=False)
class ClassStats(Stats):
    """Weight of the rows of each class, and the statistics of their features."""

    count: Array = array(CLASS)
    features: Any = None

    def merge(self, other: Self) -> Self:
        """Statistics of the rows of both."""
        return replace(
            self, count=self.count + other.count, features=self.features.merge(other.features)
        )

    def remove(self, other: Self) -> Self:
        """Statistics after forgetting the rows of `other`."""
        others = super().remove(other)  # of the counts alone: `arrays` holds nothing else
        return replace(others, features=self.features.remove(other.features))

    def reindex_classes(self, codes: Array, n_classes: int) -> Self:
        """Return the same rows with class k renamed ``codes[k]``."""
        return replace(
            super().reindex_classes(codes, n_classes),
            features=self.features.reindex_classes(codes, n_classes),
        )


@dataclass(frozen=True, eq=False)
class ClassModel(Record):
    """Prior or posterior of a whole generative classifier.

    Parameters
    ----------
    alpha : float or array (class,), > 0
        Dirichlet concentration of the class weights, in rows. NaN: they have another prior, and
        only draws know them.
    family : Family
        Everything but `to_pymc`, `class_weights` and `params` needs a conjugate one.
    """

    alpha: Any = array(CLASS)
    family: Any = None

    @property
    def generative(self) -> bool:
        """Return whether rows have a density and classes weights, not p(y | x, theta) alone."""
        return not self.family.discriminative

    def stats(
        self,
        X: Matrix,
        y: Array,
        n_classes: int,
        weight: Array | None = None,
        groups: Array | None = None,
    ) -> ClassStats:
        """Statistics of labelled rows; label trees choose their halves by `groups` (N,)."""
        by_groups = {} if groups is None or self.generative else {"groups": groups}
        features = self.family.stats(X, y, n_classes, weight, **by_groups)
        return ClassStats(class_counts(y, n_classes, weight), features)

    def resolve(self, stats: ClassStats) -> Self:
        """Return the prior with every hyper-parameter a full array."""
        alpha = broadcast_prior("class_alpha", self.alpha, stats.count.shape)
        return replace(self, alpha=alpha, family=self.family.resolve(stats.features))

    def update(self, stats: ClassStats) -> Self:
        """Return the posterior."""
        return replace(
            self, alpha=self.alpha + stats.count, family=self.family.update(stats.features)
        )

    # -- as a PyMC model ---------------------------------------------------------------------

    def to_pymc(
        self,
        coords: Mapping[str, Any],
        *,
        X=None,
        y: Array | None = None,
        stats: ClassStats | None = None,
        weight: Array | None = None,
        summed: bool = False,
        X_new=None,
    ):
        """PyMC model of this prior, conditioned on rows, on statistics, or on nothing.

        Parameters
        ----------
        coords : {dim: labels}
        X, y : rows as the family takes them, class codes (N,)
            Observed as ``x`` and ``label``.
        stats : ClassStats
            Without rows: potentials ``x`` and ``label``. With rows: those of the fit.
        weight : (N,), optional
            Of the rows: they are then the potential ``weighted``, of each one the log joint
            density at its class times its weight.
        summed : bool
            Rows in one number, the potential ``x``, by a family that can (`Family.sums_rows`).
        X_new : rows as the family takes them
            Of which the Deterministic ``class_probability`` is p(y | x, theta).

        Returns
        -------
        pymc.Model
        """
        import pymc as pm
        import pytensor.tensor as pt

        rows = {} if y is None else {OBS: np.arange(len(y))}
        # nutpie takes labels that are Python's numbers or strings, and no uint8
        labels = {k: v.tolist() if _are_numbers(v) else v for k, v in coords.items()}
        with pm.Model(coords={**self._counted(coords), **labels, **rows}) as model:
            pi = self._declare_weights() if self.generative else None
            if y is not None and weight is None:
                codes = pm.Data("y", np.asarray(y, dtype=np.int64), dims=OBS)
                if pi is not None:
                    pm.Categorical("label", p=pi, observed=codes, dims=OBS)
                fitted = None if stats is None else stats.features
                options = {"summed": True} if summed and self.family.sums_rows else {}
                theta = self.family.to_pymc(X=X, y=codes, stats=fitted, **options)
            elif y is None and stats is not None:
                if pi is not None:
                    count = pm.Data("stats_class", stats.count, dims=CLASS)
                    pm.Potential("label", (count * pt.log(pi)).sum())
                theta = self.family.to_pymc(stats=stats.features)
            else:
                theta = self.family.to_pymc()

            def log_joint(rows, prefix: str):
                what = "a model of weighted rows, or of new rows,"
                optionss_family = require(self.family, UnlabelledRows, what)
                log_x = optionss_family.pymc_log_likelihood(rows, theta, prefix=prefix)
                return log_x if pi is None else log_x + pt.log(pi)

            if y is not None and weight is not None:
                each = log_joint(X, "weighted_")[np.arange(len(y)), y]
                pm.Potential("weighted", (pm.Data("row_weight", weight) * each).sum())
            if X_new is not None:
                declare_probability(log_joint(X_new, "new_"))
        return model

    def _declare_weights(self):
        import pymc as pm
        import pytensor.tensor as pt

        alpha = pm.Data("prior_class", self.alpha, dims=CLASS)
        if len(self.alpha) == 1:  # a Dirichlet of one class is no random variable
            return pm.Deterministic(CLASS_WEIGHTS, pt.ones(1), dims=CLASS)
        return pm.Dirichlet(CLASS_WEIGHTS, a=alpha, dims=CLASS)

    def _counted(self, coords) -> dict[str, Any]:
        """Numbers for the dims of the parameters that have no labels."""
        labelled = set(coords) | set(self.family.coords())
        bare = {k: d for k, d in self.family.params.items() if not set(d) <= labelled}
        if not bare or not self.family.conjugate:
            return dict(self.family.coords())
        theta = self.family.draw(np.random.default_rng(0), 1)
        return {
            dim: np.arange(n)
            for name, dims in bare.items()
            for dim, n in zip(dims, theta[name].shape[1:], strict=True)
        }

    # -- what a method plugs in --------------------------------------------------------------

    def estimate(self, method: Method, stats: ClassStats) -> dict[str, Array]:
        """Return the features' theta of a plug-in method; `stats` are behind ``"mle"``."""
        family: ConjugateFamily = self.family
        if method == "mle":
            return family.mle(stats.features)
        return family.map() if method == "map" else family.mean()

    def class_weights(self, method: Method, stats: ClassStats) -> Array:
        """Return (C,) p(y = c) under a method; the predictive's is the posterior mean."""
        if not self.generative:
            return self.mean_weights()
        if method == "mle":
            return stats.count / stats.count.sum()
        if method == "map":
            if len(self.alpha) == 1:
                return np.ones(1)
            refuse_undefined(
                "map",
                (self.alpha < 1) | np.all(self.alpha == 1),
                "the Dirichlet density of the class weights has no mode unless every class_alpha "
                "plus count is at least 1 and one exceeds 1",
            )
            return (self.alpha - 1) / (self.alpha - 1).sum()
        return self.mean_weights()

    def mean_weights(self) -> Array:
        """Return (C,) posterior means of p(y = c); all equal of a discriminative model."""
        if not self.generative:
            return np.full(len(self.alpha), 1 / len(self.alpha))
        weights: Array = self.alpha / self.alpha.sum()
        return weights

    def log_mean_weights(self, class_prior: Array | None = None) -> Array:
        """Return (C,) their logarithms, or those of class weights that replace them."""
        return log_weights(self.mean_weights() if class_prior is None else class_prior)

    # -- integrated out ----------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """{name: (n, *dims)} independent draws of the weights and theta."""
        weights = draw_dirichlet(rng, self.alpha, n)
        return {CLASS_WEIGHTS: weights, **self.family.draw(rng, n)}

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """{name: dims} of every parameter, the class weights (of a generative model) first."""
        params: dict[str, tuple[str, ...]] = dict(self.family.params)
        return {CLASS_WEIGHTS: (CLASS,), **params} if self.generative else params

    def log_density(self, theta: Theta) -> Array:
        """Return (...) log densities at the class weights and the features' theta."""
        weights = log_dirichlet_density(theta[CLASS_WEIGHTS], self.alpha)
        density = require(self.family, ThetaDensity, "the density of theta")
        return log_product(np.stack([weights, density.log_density(theta)]), 0)

    def log_evidence(self, stats: ClassStats) -> float:
        """log p(X, y): the labelled sequence of rows, everything integrated out."""
        labels = float(log_beta_difference(self.alpha, stats.count))
        return labels + self.family.log_evidence(stats.features)


def _are_numbers(labels) -> bool:
    return isinstance(labels, np.ndarray) and labels.dtype.kind in "iuf"


def declare_probability(log_joint):
    """Declare ``class_probability`` of new rows, from (N, C) log joint densities, in the model."""
    import pymc as pm
    import pytensor.tensor as pt

    pm.modelcontext(None).add_coord(NEW_OBS, length=log_joint.shape[0])
    probability = pt.special.softmax(log_joint, axis=1)
    return pm.Deterministic("class_probability", probability, dims=(NEW_OBS, CLASS))


def split_chains(draws: Mapping[str, Array], chains: int) -> dict[str, Array]:
    """{name: (chains * n, ...)} to {name: (chains, n, ...)}."""
    return {k: v.reshape(chains, -1, *v.shape[1:]) for k, v in draws.items()}


def draw_shape(family: Family, theta: Theta) -> tuple[int, ...]:
    """Return the leading axes of draws of theta: (chain, draw)."""
    name, dims = next(iter(family.params.items()))
    shape = np.shape(theta[name])
    return shape[: len(shape) - len(dims)]


def log_class_weights(family: Family, theta: Theta) -> Array:
    """Return (..., C) log pi of draws; of a discriminative model, which has none, (C,) zeros."""
    if not family.discriminative:
        return log_weights(theta[CLASS_WEIGHTS])
    name, dims = next((k, d) for k, d in family.params.items() if CLASS in d)
    return np.zeros(np.shape(theta[name])[dims.index(CLASS) - len(dims)])


def log_weights(weights: Array) -> Array:
    """log of class weights; -inf for a class that cannot occur."""
    with np.errstate(divide="ignore"):
        return np.log(weights)


def log_weights_without(alpha: Array, count: Array, codes: Array, weight: Array) -> Array:
    """Return (N, C) log of the posterior mean class weights without each of the rows.

    Parameters
    ----------
    alpha : (C,) Dirichlet concentration of the prior
    count : (C,) weight of all rows
    codes, weight : (N,) of rows behind `count`
    """
    if len(alpha) == 1:
        return np.zeros((len(codes), 1))
    others = np.repeat(count[None], len(codes), axis=0)
    others[np.arange(len(codes)), codes] -= weight
    left = alpha + np.maximum(others, 0.0)
    return log_weights(left / left.sum(axis=1, keepdims=True))


# ------------------------------------------------------------------------------- scores of rows


Quantity = Literal["density", "probability"]
Score = Callable[[Matrix, Theta], Array]


def score(family: Family, quantity: Quantity) -> Score:
    """Return (X, theta) to (..., N, C) log densities.

    Up to a term that the classes of a row have in common, for the ``"probability"`` of a class and
    where the family has it cheaper.
    """
    return family.discriminant if quantity == "probability" else family.log_likelihood
