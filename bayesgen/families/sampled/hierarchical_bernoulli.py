r"""Bits whose classes share strength: log-odds about the column's own, how far is learned.

.. math:: x_j \mid y = c \sim \text{Bernoulli}(\theta_{cj}), \quad
          \text{logit}\, \theta_{cj} = \mu_j + \delta_{cj}, \quad
          \mu_j \sim \text{Normal}(m, s^2)

.. math:: \delta_{cj} = \tau z_{cj} e^{\text{asinh}\, \omega u_j}, \quad
          z_{cj} \sim \text{Normal}(0, 1), \quad
          u_j = \Bigl(\sum_c z_{cj}^2 - C\Bigr) / \sqrt{2C}

.. math:: \log \tau \sim \text{Normal}(\log 0.5, 1), \quad \omega \sim \text{HalfNormal}(0.5)

Classes are pooled towards the base rate of their column, and columns towards a common spread tau,
in log-odds; omega says how unequal the columns are. At 0 all deviations are Normal; above it some
columns stand out, with tails as of the cube of a Normal variable. m and s^2 are the mean and 1 +
variance of the columns' log-odds, all classes together.

Prefer it to Beta priors where there are many columns or few rows per class: a rare word needs no
pseudo-count of its own, its classes share one base rate, and columns that tell little are shrunk
to less. Log-odds rather than a Beta with learned concentration: at a base rate of 0.001 a Beta of
small concentration has its mass at log-odds of -100 and beyond, where nothing is believed and no
sampler goes. A function of Normal variables rather than a Student t: where a class has never
shown a word its likelihood is flat towards minus infinity, and the tail of a t is explored slowly.

Sampled is what the rows determine best: instead of z coordinates between z and delta
(`pooled_log_odds`), along contrasts of the classes, and instead of mu the level mu + sum_c w_c
delta_c, w the share of the classes in what is known of the column. The model depends on no choice.

Source: Gelman et al., Bayesian Data Analysis (2013), section 5.4 and chapter 16; Hoaglin (1985),
Summarizing shape numerically: the g-and-h distributions (a Normal variable stretched, as here);
Papaspiliopoulos, Roberts and Sköld (2007), A general framework for the parametrization of
hierarchical models (z, w).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CLASS, FEATURE, PROBABILITY
from bayesgen.families.records import array, guide, prior_object
from bayesgen.families.shared import pymc_parts
from bayesgen.families.shared.codes import pymc_log_likelihood_of_bits
from bayesgen.numerics import rows as passes
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class HierarchicalBernoulli(Family):
    """Independent bits, log-odds of the classes partially pooled.

    Parameters
    ----------
    mu : prior object, optional
        Of the base log-odds (feature,). None: the default above, as in all.
    tau, inequality : prior objects, optional
        Of the spread of the classes about them, in log-odds, and of omega, ().
    location, scale : array (feature,), optional
        m and s, in log-odds. None: from the rows.
    share : array (class, feature), optional
        w. None: from the rows.
    """

    describes: ClassVar[str] = PROBABILITY
    holds: ClassVar[str] = "bit"
    kind: ClassVar[str] = "bernoulli"
    sums_rows: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    mu: Any = prior_object()
    tau: Any = prior_object()
    inequality: Any = prior_object()
    location: Any = array(FEATURE, default=None)
    scale: Any = array(FEATURE, default=None)
    share: Any = guide(CLASS, FEATURE)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: p(x_j = 1 | y = c)."""
        return {"theta": (CLASS, FEATURE)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Levels that are base rates, and that are not; base rates that differ by column."""
        cells = np.arange(n_classes * n_features).reshape(n_classes, n_features)
        unit = np.ones(n_features)
        return [
            cls(location=0 * unit, scale=unit, share=0.0 * cells),
            cls(location=-unit.cumsum(), scale=2 * unit, share=cells / cells.size),
        ]

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) sums over the observed cells."""
        # a log-odds beyond 37 rounds to certainty, which no finite log-odds is
        p = np.clip(np.asarray(theta["theta"], dtype=np.float64), 1e-300, 1 - 2.0**-53)
        on, off = np.log(p), np.log1p(-p)
        ones, missing = passes.split_missing(X)
        if missing is None:
            return passes.dot(ones, on - off) + off.sum(axis=-1)[..., None, :]
        # a row without observed cells is worth 0, not a rounding error
        return passes.dot(ones, on) - passes.sum_except(ones + missing, passes.exact_parts(-off))

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) rows of 0 and 1, as uint8."""
        p = self.rows_of(theta, "theta", y)
        return (rng.random((len(y), p.shape[-1])) < p).astype(np.uint8)

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """The columns' log-odds with half a row of either bit; information of the labelled rows."""
        one = np.zeros(X.shape[0], dtype=np.int64)
        ones, zeros = (a[0] for a in _count(X, one, 1, weight))
        log_odds = np.log((ones + 0.5) / (zeros + 0.5))
        unit = np.ones_like(log_odds)
        known = np.flatnonzero(y >= 0)
        own = None if weight is None else weight[known]
        on, off = _count(X[known], y[known], n_classes, own)
        p = (on + (ones + 0.5) / (ones + zeros + 1)) / (on + off + 1)
        information = (on + off) * p * (1 - p)
        return self.filled(
            location=log_odds.mean() * unit,
            scale=np.sqrt(1 + log_odds.var()) * unit,
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
        """Normal log-odds; Bernoulli rows, summed by their counts of ones and zeros."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = pymc_parts.declare(self, "prior", prefix)
        dims = pymc_parts.prefixed(prefix, self.params["theta"])
        n_classes, n_features = self.share.shape
        known = pymc_parts.known_share(prior["share"]).mean(axis=0)
        rotated = pymc_parts.declare_deviations(
            self,
            prefix,
            known / (1 + known),
            np.full(n_features, n_classes),
            np.arange(n_features),
            lambda cells: cells.sum(axis=0),
            shape=(n_classes, n_features),
            cell_dim=dims[1],
        )
        axes = pm.Data(f"{prefix}axes", pymc_parts.class_axes(self.share))
        deviation = (axes * rotated).sum(axis=1)

        def base_rates(name: str, dims: tuple[str, ...]) -> Any:
            shift = (prior["share"] * deviation).sum(axis=0)
            level = pm.Normal(
                f"{prefix}level", prior["location"] + shift, prior["scale"], dims=dims
            )
            return pm.Deterministic(name, level - shift, dims=dims)

        mu = pymc_parts.parameter(self, prefix, "mu", base_rates)
        log_odds = mu + deviation
        theta = pm.Deterministic(f"{prefix}theta", pt.sigmoid(log_odds), dims=dims)
        if X is not None and not summed:
            pymc_parts.observe_cells(
                prefix, X, lambda z, **size: pm.Bernoulli.dist(logit_p=z, **size), log_odds[y]
            )
        elif X is not None:
            codes = pymc_parts.known_codes(y)
            on, off = _count(X, codes, len(pm.modelcontext(None).coords[CLASS]))
            ones, total = (pm.Data(f"{prefix}{k}", v) for k, v in (("ones", on), ("n", on + off)))
            log_p = ones * log_odds - total * pt.softplus(log_odds)
            pm.Potential(f"{prefix}x", log_p.sum())
        return {"theta": theta}

    pymc_log_likelihood = pymc_log_likelihood_of_bits


def _count(X: Matrix, y: Array, n_classes: int, weight: Array | None = None) -> tuple[Array, Array]:
    """(C, D) weighted counts of ones and of zeros among the observed cells."""
    ones, missing = passes.split_missing(X)
    if not sparse.issparse(X):
        ones = np.asarray(ones, dtype=np.float64)
    on = passes.class_sums(ones, y, n_classes, weight)
    seen = on if missing is None else on + passes.class_sums(missing, y, n_classes, weight)
    return on, passes.remainder(passes.class_counts(y, n_classes, weight)[:, None], seen)
