r"""Over-dispersed counts: x_j | y=c ~ negative binomial, mean w mu, variance w mu (1 + w delta).

.. math::

    p(x \mid \mu, \delta, w) = \frac{\prod_{k<x} (\mu + k\delta)}{x!}\,
        w^x\, (1 + w\delta)^{-x - \mu/\delta}

w is the exposure of the row (the length of a paper, 1 if there is none), mu the rate of a feature
in a class, delta the *non-Poissonness* of the feature: each row has a rate of its own,
Gamma(mu/delta, 1/delta), and a Poisson count with w times that rate. delta = 0 is Poisson.

.. math::

    \log \mu_{cj} = \log \text{common}_j + \text{spread}\, z_{cj}, \quad
    z_j \sim \text{ZeroSumNormal}(1), \quad
    \log \text{common}_j \sim \text{Normal}(\log m_j, 1),

    \text{spread} \sim \text{HalfNormal}(1), \quad
    \delta_j \sim \text{Exponential}(\text{mean } 1/\bar w + m_j)

m_j is the rate of the feature in all rows. The rates of the classes are shrunk to a common one, by
as much as the features together say. Prefer it to Poisson where counts come in bursts: a word
that is used four times in one message is then no fourfold evidence.

Source: Mosteller and Wallace, Inference and Disputed Authorship: The Federalist (1964), chapters
3 and 4 (negative binomial, mu and delta, pooled rates); the shrinkage is hierarchical where
theirs was fixed.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from bayesgen.errors import InputError
from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CLASS, FEATURE, OBS
from bayesgen.families.records import Hyperparameter, PriorObject, array, prior_object
from bayesgen.families.shared import pymc_parts
from bayesgen.families.shared.documents import refuse_fractional_counts, row_of_cells
from bayesgen.numerics import rows as passes
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_negative_binomial

_TABLE = 1 << 20  # numbers of one table (draw, class, distinct cell): 8 MiB
_POISSON = 1e-12  # of mu: no smaller delta is told from 0


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Family):
    """Independent negative binomial counts, rates of the classes shrunk to a common one.

    Parameters
    ----------
    mu, delta : prior objects, optional
        Of the rates (class, feature), in events per unit of exposure, and of the non-Poissonness
        (feature,), in the same unit: events, per unit of exposure, beyond the first. None: the
        default above. A prior of mu stands for common and spread as well.
    spread : prior object, optional
        Of the standard deviation of the classes' log rates about the common one; a number.
    rate : array (feature,), optional
        m of the default priors. None: events over exposure in all rows.
    exposure : array (feature,), optional
        1 at the column that holds the rows' exposure, 0 elsewhere; None or no 1: exposure 1.
        That column is given, not modelled: its own mu and delta keep their priors.
    unit : float, optional
        Mean exposure, that of simulated rows. None: from the rows.
    """

    holds: ClassVar[str] = "count"
    kind: ClassVar[str] = "negative binomial"
    sums_rows: ClassVar[bool] = True
    sparse: ClassVar[bool] = True

    mu: PriorObject = prior_object()
    delta: PriorObject = prior_object()
    spread: PriorObject = prior_object()
    rate: Hyperparameter = array(FEATURE, default=None)
    exposure: Hyperparameter = array(FEATURE, default=None)
    unit: Hyperparameter = array(default=None)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``mu``: events per unit of exposure; ``delta``: non-Poissonness."""
        return {"mu": (CLASS, FEATURE), "delta": (FEATURE,)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Few events and many; the first column as exposure."""
        rate = np.exp2(np.arange(n_features))
        first = (np.arange(n_features) == 0).astype(np.float64)
        plain = cls(
            rate=rate,
            exposure=0 * first,
            unit=np.array(1.0),
        )
        return [plain, replace(plain, exposure=first, unit=np.array(3.0))]

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Add up the observed cells: (..., N, C); fractional counts have the continued mass."""
        X, w = self._split(X)
        mu, delta = (np.asarray(theta[name], dtype=np.float64) for name in ("mu", "delta"))
        *batch, n_classes, n_features = mu.shape
        mu = mu.reshape(-1, n_classes, n_features)
        delta = np.broadcast_to(delta, (*batch, n_features)).reshape(-1, 1, n_features)
        delta = np.maximum(delta, _POISSON * mu)
        counted = np.flatnonzero(self._counted(n_features))
        X, mu, delta = X[:, counted], mu[..., counted], delta[..., counted]
        log_p = np.empty((len(mu), X.shape[0], n_classes))
        for value in np.unique(w):  # a row of exposure w: rates w mu, non-Poissonness w delta
            rows = np.flatnonzero(w == value)
            block = X if len(rows) == len(w) else X[rows]
            for draws in passes.row_blocks(
                len(mu), min(block.shape[0], 1 << 10) * n_classes, _TABLE
            ):
                log_p[draws, rows] = _log_mass(block, value * mu[draws], value * delta[draws])
        return log_p.reshape(*batch, X.shape[0], n_classes)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Draw (N, D) counts, int64; float with an exposure column, whose values are `unit`."""
        mu = self.rows_of(theta, "mu", y)
        delta = np.broadcast_to(self.rows_of(theta, "delta", y), mu.shape)
        delta = np.maximum(delta, _POISSON * mu)
        counted = self._counted(mu.shape[-1])
        w = 1.0 if counted.all() else np.broadcast_to(self.unit, len(y))[:, None]
        x = rng.poisson(w * delta * rng.standard_gamma(mu / delta))
        return x if counted.all() else np.where(counted, x, w)

    def given_rows(self, X: Matrix) -> Self:
        """Draws rows of the exposures of those in X."""
        return replace(self, unit=self._split(X)[1])

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Pooled rates and the mean exposure."""
        exposure = np.zeros(X.shape[1]) if self.exposure is None else np.asarray(self.exposure)
        family = replace(self, exposure=exposure)
        X, w = family._split(X)
        weight = np.ones(len(w)) if weight is None else weight
        family = family.filled(unit=np.average(w, weights=weight))
        counts, missing = passes.split_missing(X)
        all_rows = np.zeros(len(w), dtype=np.int64)
        events = passes.class_sums(counts, all_rows, 1, weight)[0]
        seen = np.full(X.shape[1], weight @ w)
        if missing is not None:
            seen -= passes.class_sums(missing, all_rows, 1, weight * w)[0]
        rate = (events + 0.5) / np.where(seen > 0, seen, family.unit)
        return family.filled(rate=np.where(family._counted(X.shape[1]), rate, 1.0))

    def to_pymc(
        self,
        *,
        prefix: str = "",
        X: Matrix | None = None,
        y=None,
        stats=None,
        summed: bool = False,
    ) -> dict[str, Any]:
        """Declare the hierarchy of rates; rows, or the sum of their densities by distinct cells."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = pymc_parts.declare(self, "prior", prefix)
        m = prior["rate"]
        delta = pymc_parts.parameter(
            self,
            prefix,
            "delta",
            lambda name, dims: pm.Exponential(name, scale=1 / prior["unit"] + m, dims=dims),
        )

        def shrunk(name: str, dims: tuple[str, ...]):
            spread = pymc_parts.variable(
                f"{prefix}spread", self.spread, (), lambda name, _: pm.HalfNormal(name, 1.0)
            )
            common = pm.LogNormal(f"{prefix}common", pt.log(m), 1.0, dims=dims[1:])
            deviation = pymc_parts.declare_contrasts(prefix, dims[1])
            return pm.Deterministic(name, common * pt.exp(spread * deviation), dims=dims)

        mu = pymc_parts.parameter(self, prefix, "mu", shrunk)
        if X is not None and summed:
            counts, _ = self._split(X)  # an exposure may be a fraction
            refuse_fractional_counts(counts)
            theta = {"mu": mu, "delta": delta}
            log_p = self.pymc_log_likelihood(X, theta, prefix=f"{prefix}x_")
            pm.Potential(f"{prefix}x", log_p[pt.arange(X.shape[0]), y].sum())
        elif X is not None:
            self._observe(prefix, X, y, mu, delta)
        return {"mu": mu, "delta": delta}

    def _observe(self, prefix: str, X: Matrix, y, mu, delta) -> None:
        """Rows as they are; the column of the exposure is looked up, and has no density."""
        import pymc as pm

        X, w = self._split(X)
        refuse_fractional_counts(X)
        counted = self._counted(X.shape[1])
        exposure = pm.Data(f"{prefix}exposure", w, dims=OBS)[:, None]

        def cells(mu, alpha, **size):
            return pm.NegativeBinomial.dist(mu=mu, alpha=alpha, **size)

        params = exposure * mu[y], mu[y] / delta
        pymc_parts.observe_cells(prefix, X, cells, *params, counted=counted)

    def pymc_log_likelihood(self, X: Matrix, theta, *, prefix: str = ""):
        """Sums over the cells that are positive or missing, and what a row of zeros has."""
        import pymc as pm

        X, w = self._split(X)
        cells = passes.stored_cells(X, slice(None))
        exposures, exposure_of = np.unique(w, return_inverse=True)
        counted = self._counted(X.shape[1]).astype(np.float64)
        alpha = theta["mu"] / theta["delta"]  # (C, D)

        def log_p(x, w, columns):
            mean = w * theta["mu"][:, columns]
            return pm.logp(pm.NegativeBinomial.dist(mu=mean, alpha=alpha[:, columns]), x)

        each = pm.Data(f"{prefix}exposures", exposures)[:, None, None]
        zeros = (log_p(0.0, each, slice(None)) * counted).sum(axis=-1)  # (W, C)
        values = np.where(np.isnan(cells.data), -1.0, cells.data)
        kinds = np.stack([cells.indices, exposure_of[row_of_cells(cells)], values])
        kinds, place = np.unique(kinds, axis=1, return_inverse=True)
        column = pm.Data(f"{prefix}column", kinds[0].astype(np.int64))
        own_exposure = pm.Data(f"{prefix}exposure", exposures[kinds[1].astype(np.int64)])
        count = pm.Data(f"{prefix}count", np.maximum(kinds[2], 0.0))
        seen = pm.Data(f"{prefix}seen", (kinds[2] >= 0).astype(np.float64))
        table = seen * log_p(count, own_exposure, column) - log_p(0.0, own_exposure, column)
        shared = sparse.csr_matrix(
            (np.ones(len(cells.data)), place.ravel(), cells.indptr), shape=(len(w), kinds.shape[1])
        )
        row = pm.Data(f"{prefix}exposure_of", exposure_of.astype(np.int64))
        return zeros[row] + pymc_parts.sum_cells(f"{prefix}counts", shared, table.T)

    # -- exposure ----------------------------------------------------------------------------

    def _counted(self, n_features: int) -> Array:
        """Return (D,) bool: the columns that are counts."""
        if self.exposure is None:
            return np.ones(n_features, dtype=bool)
        return np.broadcast_to(np.asarray(self.exposure) == 0, (n_features,))

    def _split(self, X: Matrix) -> tuple[Matrix, Array]:
        """X with zeros in the exposure's column, and the exposures (N,)."""
        passes.refuse_negative_counts(X)
        exposed = np.flatnonzero(~self._counted(X.shape[1]))
        if not len(exposed):
            return X, np.ones(X.shape[0])
        j = int(exposed[0])
        column = X[:, [j]]
        w = np.ravel(column.toarray() if sparse.issparse(X) else column).astype(np.float64)
        if sparse.issparse(X):
            X = sparse.csr_matrix(X, copy=True)
            X.data = np.where(X.indices == j, 0, X.data)
            X.eliminate_zeros()
        else:
            X = np.where(np.arange(X.shape[1]) == j, 0, X)
        unknown = np.isnan(w)
        if unknown.any():
            others = np.arange(X.shape[1]) != j
            for row in np.flatnonzero(unknown):
                cells = X[[row]]
                cells = cells.toarray() if sparse.issparse(X) else cells
                if not np.isnan(cells[0, others]).all():
                    what = "exposure is missing (NaN)"
                    raise InputError(what, ", which has counts", row=row, column=j)
            w = np.where(unknown, 1.0, w)
        if not (np.isfinite(w) & (w > 0)).all():
            i = int(np.flatnonzero(~(np.isfinite(w) & (w > 0)))[0])
            what = f"exposure must be > 0 and finite, got {w[i]:g}"
            raise InputError(what, row=i, column=j)
        return X, w


def _log_mass(X: Matrix, mu: Array, delta: Array) -> Array:
    """Add up the observed cells of rows of exposure 1: (S, N, C); mu (S, C, D), delta alike."""
    shape = mu / delta
    none = passes.exact_parts(shape * np.log1p(delta))  # -log of the mass of 0
    log_mass = np.empty((len(mu), X.shape[0], mu.shape[1]))
    for rows, cells in passes.stored_blocks(X, 0):
        counts, missing = passes.split_missing(cells)
        if missing is None:
            log_mass[:, rows] = -none.sum(axis=(0, -1))[:, None, :]
        else:
            missing.eliminate_zeros()
            log_mass[:, rows] = -passes.sum_except(missing, none)
            counts.eliminate_zeros()
        column, x, shared = passes.distinct_cells(counts)
        if len(x):
            a, d = shape[..., column], np.broadcast_to(delta, mu.shape)[..., column]
            mass = log_negative_binomial(x, a, 1 / d) + a * np.log1p(d)
            log_mass[:, rows] += np.moveaxis(passes.shared_sums(shared, mass), -1, -2)
    return log_mass
