r"""Bits whose classes share strength: log-odds about the column's own, how far is learned.

.. math:: x_j \mid y = c \sim \text{Bernoulli}(\theta_{cj}), \quad
          \text{logit}\, \theta_{cj} = \mu_j + \delta_{cj}, \quad
          \mu_j \sim \text{Normal}(m, s^2)

.. math:: \delta_{\cdot j} \sim \text{multivariate t}(\nu, 0, \tau^2 I), \quad
          \log \tau \sim \text{Normal}(\log 0.5, 1), \quad \nu = 4

That is Normal log-odds with a variance tau_j^2 of each column, inverse-gamma about the common
tau^2 and integrated out. Classes are pooled towards the base rate of their column, and columns
towards a common spread, from which a few may stand out. m and s^2 are the mean and 1 + variance of
the columns' log-odds, all classes together.

Prefer it to Beta priors where there are many columns or few rows a class: a rare word needs no
pseudo-count of its own, its classes share one base rate, and columns that tell little are shrunk
to less. Log-odds rather than a Beta with learned concentration: at a base rate of 0.001 a Beta of
small concentration has its mass at log-odds of -100 and beyond, where nothing is believed and no
sampler goes.

Each log-odds is sampled by a coordinate between its distance from mu (few rows) and itself
(many): w of the way, w its information from the rows over that and the prior's. The model does
not depend on w.

Source: Gelman et al., Bayesian Data Analysis (2013), section 5.4 and chapter 16; Papaspiliopoulos,
Roberts and Sköld (2007), A general framework for the parametrization of hierarchical models (w).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from bayesgen.family import Family, Theta, array, prior_object
from bayesgen.names import CLASS, FEATURE
from bayesgen.numerics import Array
from bayesgen.pymc_parts import declare, prefixed, sum_cells, variable
from bayesgen.rows import (
    Matrix,
    class_counts,
    class_sums,
    dot,
    exact_parts,
    remainder,
    split_missing,
    stored_cells,
    sum_except,
)

_SPREADS = np.geomspace(0.03, 3.0, 40)  # where the rows' own spread is looked for


@dataclass(frozen=True, eq=False)
class HierarchicalBernoulli(Family):
    """Independent bits, log-odds of the classes partially pooled.

    Parameters
    ----------
    mu : prior object, optional
        Of the base log-odds (feature,). None: the default above, as in all.
    tau : prior object, optional
        Of the spread of the classes about them, in log-odds, ().
    nu : float > 0
        Degrees of freedom: the smaller, the more unequal the columns may be.
    location, scale : array (feature,), optional
        m and s, in log-odds. None: from the rows.
    centring : array (class, feature) in [0, 1], optional
        w. None: from the rows.
    """

    sparse: ClassVar[bool] = True

    mu: Any = prior_object()
    tau: Any = prior_object()
    nu: float = 4.0
    location: Any = array(FEATURE, default=None)
    scale: Any = array(FEATURE, default=None)
    centring: Any = array(CLASS, FEATURE, default=None)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: p(x_j = 1 | y = c)."""
        return {"theta": (CLASS, FEATURE)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Coordinates that are distances, and a mixture; base rates that differ by column."""
        cells = np.arange(n_classes * n_features).reshape(n_classes, n_features)
        unit = np.ones(n_features)
        return [
            cls(location=0 * unit, scale=unit, centring=0.0 * cells),
            cls(location=-unit.cumsum(), scale=2 * unit, centring=cells / cells.size),
        ]

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) sums over the observed cells."""
        # a log-odds beyond 37 rounds to certainty, which no finite log-odds is
        p = np.clip(np.asarray(theta["theta"], dtype=np.float64), 1e-300, 1 - 2.0**-53)
        on, off = np.log(p), np.log1p(-p)
        ones, missing = split_missing(X)
        if missing is None:
            return dot(ones, on - off) + off.sum(axis=-1)[..., None, :]
        # a row without observed cells is worth 0, not a rounding error
        return dot(ones, on) - sum_except(ones + missing, exact_parts(-off))

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
        rate = (ones + 0.5) / (ones + zeros + 1)
        defaults = {
            "location": log_odds.mean() * unit,
            "scale": np.sqrt(1 + log_odds.var()) * unit,
            "centring": _centring(on, off, rate),
        }
        return replace(
            self,
            **{
                k: v if (own := getattr(self, k)) is None else np.broadcast_to(own, v.shape) * 1.0
                for k, v in defaults.items()
            },
        )

    def to_pymc(
        self, *, prefix: str = "", X: Matrix | None = None, y: Any = None, stats: Any = None
    ) -> dict[str, Any]:
        """Normal log-odds; of rows their counts of ones and zeros, the potential ``x``."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = declare(self, "prior", prefix)
        by_feature = (f"{prefix}{FEATURE}",)
        dims = prefixed(prefix, self.params["theta"])
        mu = variable(
            f"{prefix}mu",
            self.mu,
            by_feature,
            lambda: pm.Normal(f"{prefix}mu", prior["location"], prior["scale"], dims=by_feature),
        )
        tau = variable(
            f"{prefix}tau",
            self.tau,
            (),
            lambda: pm.LogNormal(f"{prefix}tau", np.log(0.5), 1.0),
        )
        nu = pt.as_tensor(float(self.nu))
        w = prior["centring"]
        raw = pm.CustomDist(
            f"{prefix}log_odds_raw",
            mu,
            tau,
            nu,
            w,
            dist=_draw_raw,
            logp=_log_raw,
            support_point=_centre_raw,
            signature="(d),(),(),(c,d)->(c,d)",
            class_name="PooledLogOdds",
            dims=dims,
        )
        log_odds = mu + _deviation(raw, mu, tau, w)
        theta = pm.Deterministic(f"{prefix}theta", pt.sigmoid(log_odds), dims=dims)
        if X is not None:
            codes = np.asarray(y.get_value() if hasattr(y, "get_value") else y)
            on, off = _count(X, codes, len(pm.modelcontext(None).coords[CLASS]))
            ones, total = (pm.Data(f"{prefix}{k}", v) for k, v in (("ones", on), ("n", on + off)))
            log_p = ones * log_odds - total * pt.softplus(log_odds)
            pm.Potential(f"{prefix}x", log_p.sum())
        return {"theta": theta}

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """Sums over the cells that are 1 or missing, and what a row of zeros has."""
        import pytensor.tensor as pt

        ones, missing = split_missing(X)
        on, off = pt.log(theta["theta"]).T, pt.log1p(-theta["theta"]).T
        out = sum_cells(f"{prefix}ones", stored_cells(ones, slice(None)), on - off)
        if missing is not None:
            out = out - sum_cells(f"{prefix}missing", stored_cells(missing, slice(None)), off)
        return out + off.sum(axis=0)


def _deviation(raw: Any, mu: Any, tau: Any, w: Any) -> Any:
    """delta (class, feature) at the coordinates that are sampled."""
    import pytensor.tensor as pt

    return pt.exp((1 - w) * pt.log(tau)) * (raw - w * mu)


def _log_raw(raw: Any, mu: Any, tau: Any, nu: Any, w: Any) -> Any:
    """Log density of the coordinates, all columns."""
    import pytensor.tensor as pt

    n_classes, n_features = raw.shape[0], raw.shape[1]
    log_tau, power = pt.log(tau), (nu + n_classes) / 2
    squares = pt.sqr(pt.exp(-w * log_tau) * (raw - w * mu)).sum(axis=0)  # of delta/tau
    norm = pt.gammaln(power) - pt.gammaln(nu / 2) - n_classes / 2 * pt.log(np.pi * nu)
    return n_features * norm - power * pt.log1p(squares / nu).sum() - w.sum() * log_tau


def _draw_raw(mu: Any, tau: Any, nu: Any, w: Any, size: Any) -> Any:
    import pymc as pm
    import pytensor.tensor as pt

    chi2 = pm.Gamma.dist(nu / 2, 0.5, size=mu.shape)
    z = pm.Normal.dist(0.0, 1.0, size=w.shape) * pt.sqrt(nu / chi2)
    return w * mu + pt.exp(w * pt.log(tau)) * z


def _centre_raw(rv: Any, size: Any, mu: Any, tau: Any, nu: Any, w: Any) -> Any:
    """Where sampling starts: all classes at the base rates."""
    return w * mu


def _centring(on: Array, off: Array, rate: Array) -> Array:
    """(C, D) w from the counts of ones and zeros (C, D), and the rates (D,) of all classes.

    The information about each log-odds beside that of a Student t prior of the scale that explains
    the cells best: roughly, which is all that coordinates need.
    """
    n, n_classes = on + off, len(on)
    # to first order about the rates, which own rows have moved as well
    null = np.maximum(n * rate * (1 - rate), 1e-6)
    distance = (on - n * rate) / null * np.sqrt(n_classes / max(1, n_classes - 1))
    variance = np.square(_SPREADS)[:, None, None] + 1 / null
    log_p = -0.5 * np.log(variance) - 2.5 * np.log1p(np.square(distance) / (4 * variance))
    spread = _SPREADS[np.argmax(log_p.sum(axis=(1, 2)))]
    own = np.square(distance) - 1 / null
    own = (4 * spread**2 + np.maximum(own, 0.0).sum(axis=0)) / (4 + n_classes)  # of a column
    p = (on + rate) / (n + 1)
    information = n * p * (1 - p)
    return np.asarray(information / (information + 1 / own))


def _count(X: Matrix, y: Array, n_classes: int, weight: Array | None = None) -> tuple[Array, Array]:
    """(C, D) weighted counts of ones and of zeros among the observed cells."""
    ones, missing = split_missing(X)
    if not sparse.issparse(X):
        ones = np.asarray(ones, dtype=np.float64)
    on = class_sums(ones, y, n_classes, weight)
    seen = on if missing is None else on + class_sums(missing, y, n_classes, weight)
    return on, remainder(class_counts(y, n_classes, weight)[:, None], seen)
