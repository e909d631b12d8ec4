r"""Over-dispersed counts: x_j | y=c ~ negative binomial, mean w mu, variance w mu (1 + w delta).

.. math::

    p(x \mid \mu, \delta, w) = \frac{\prod_{k<x} (\mu + k\delta)}{x!}\,
        w^x\, (1 + w\delta)^{-x - \mu/\delta}

w is the exposure of the row (the length of a paper, 1 if there is none), mu the rate of a feature
in a class, delta the *non-Poissonness* of the feature: each row has a rate of its own,
Gamma(mu/delta, 1/delta), and a Poisson count with w times that rate. delta = 0 is Poisson.

.. math::

    \log \mu_{cj} \sim \text{Normal}(\log \text{common}_j, \text{spread}^2), \quad
    \log \text{common}_j \sim \text{Normal}(\log m_j, 1), \quad
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
from scipy.special import gammaln

from bayesgen.errors import InputError
from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CLASS, FEATURE, OBS, PROBABILITY
from bayesgen.families.records import array, guide, prior_object
from bayesgen.families.shared import documents
from bayesgen.families.shared.pymc_parts import (
    declare,
    guided,
    known_codes,
    observe_cells,
    parameter,
    sum_cells,
)
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
    log_rate, precision : array (class, feature), optional
        What the labelled rows say of log mu: the coordinates in which mu is sampled go by it, and
        no density depends on it. None: from the rows.
    """

    describes: ClassVar[str] = PROBABILITY
    holds: ClassVar[str] = "count"
    kind: ClassVar[str] = "negative binomial"
    sums_rows: ClassVar[bool] = True
    sparse: ClassVar[bool] = True

    mu: Any = prior_object()
    delta: Any = prior_object()
    spread: Any = prior_object()
    rate: Any = array(FEATURE, default=None)
    exposure: Any = array(FEATURE, default=None)
    unit: Any = array(default=None)
    log_rate: Any = guide(CLASS, FEATURE)
    precision: Any = guide(CLASS, FEATURE)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``mu``: events per unit of exposure; ``delta``: non-Poissonness."""
        return {"mu": (CLASS, FEATURE), "delta": (FEATURE,)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Few events and many; the first column as exposure."""
        rate = np.exp2(np.arange(n_features))
        precision = 4.0 * np.arange(n_classes * n_features).reshape(n_classes, n_features)
        first = (np.arange(n_features) == 0).astype(np.float64)
        plain = cls(
            rate=rate,
            exposure=0 * first,
            unit=np.array(1.0),
            log_rate=np.zeros_like(precision),
            precision=precision,
        )
        return [plain, replace(plain, exposure=first, unit=np.array(3.0))]

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) sums over the observed cells; of fractional counts the continued mass."""
        X, w = self._split(X)
        mu, delta = (np.asarray(theta[name], dtype=np.float64) for name in ("mu", "delta"))
        *batch, n_classes, n_features = mu.shape
        mu = mu.reshape(-1, n_classes, n_features)
        delta = np.broadcast_to(delta, (*batch, n_features)).reshape(-1, 1, n_features)
        delta = np.maximum(delta, _POISSON * mu)
        counted = np.flatnonzero(self._counted(n_features))
        X, mu, delta = X[:, counted], mu[..., counted], delta[..., counted]
        out = np.empty((len(mu), X.shape[0], n_classes))
        for value in np.unique(w):  # a row of exposure w: rates w mu, non-Poissonness w delta
            rows = np.flatnonzero(w == value)
            part = X if len(rows) == len(w) else X[rows]
            for own in passes.row_blocks(len(mu), min(part.shape[0], 1 << 10) * n_classes, _TABLE):
                out[own, rows] = _log_mass(part, value * mu[own], value * delta[own])
        return out.reshape(*batch, X.shape[0], n_classes)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) counts, as int64; with an exposure column, whose values are `unit`, as float."""
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
        """Pooled rates, mean exposure, and what the labelled rows say of each rate."""
        n_features = X.shape[1]
        exposure = np.zeros(n_features) if self.exposure is None else np.asarray(self.exposure)
        out = replace(self, exposure=exposure)
        X, w = out._split(X)
        counted = out._counted(n_features)
        weight = np.ones(len(w)) if weight is None else weight
        out = out.filled(unit=np.average(w, weights=weight))
        counts, missing = passes.split_missing(X)
        labelled = np.flatnonzero(y >= 0)

        pooled = passes.class_sums(counts, np.zeros(len(w), dtype=np.int64), 1, weight)[0]
        seen = np.full(n_features, weight @ w)
        if missing is not None:
            seen -= passes.class_sums(missing, np.zeros(len(w), dtype=np.int64), 1, weight * w)[0]
        rate = (pooled + 0.5) / np.where(seen > 0, seen, out.unit)
        out = out.filled(rate=np.where(counted, rate, 1.0))
        # by class, labelled rows alone; half an event at the pooled rate for those without
        own, codes, each = counts[labelled], y[labelled], (weight * w)[labelled]
        events = passes.class_sums(own, codes, n_classes, weight[labelled])
        total = np.broadcast_to(passes.class_counts(codes, n_classes, each)[:, None], events.shape)
        if missing is not None:
            total = total - passes.class_sums(missing[labelled], codes, n_classes, each)
        return out.filled(
            log_rate=np.log((events + 0.5) / (np.maximum(total, 0) + 0.5 / out.rate)),
            # of a log rate: events over their prior dispersion 1 + delta w
            precision=np.where(counted, events / (2 + out.unit * out.rate), 0.0),
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
        """The hierarchy of rates; rows, summed over distinct factors."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = declare(self, "prior", prefix)
        m = prior["rate"]
        delta = parameter(
            self,
            prefix,
            "delta",
            lambda delta, dims: pm.Exponential(delta, scale=1 / prior["unit"] + m, dims=dims),
        )

        def shrunk(name: str, dims: tuple[str, ...]) -> Any:
            spread = parameter(self, prefix, "spread", lambda name, _: pm.HalfNormal(name, 1.0))
            common = pm.LogNormal(f"{prefix}common", pt.log(m), 1.0, dims=dims[1:])
            seen, precision = prior["log_rate"], prior["precision"]
            return guided(
                name,
                pm.LogNormal,
                (pt.log(common), spread),
                (seen, precision),
                _standardised(),
                dims,
            )

        mu = parameter(self, prefix, "mu", shrunk)
        if X is not None and summed:
            pm.Potential(f"{prefix}x", self._log_rows(f"{prefix}x", X, known_codes(y), mu, delta))
        elif X is not None:
            self._observe(prefix, X, y, mu, delta)
        return {"mu": mu, "delta": delta}

    def _observe(self, prefix: str, X: Matrix, y: Any, mu: Any, delta: Any) -> None:
        """Rows as they are; the column of the exposure is looked up, and has no density."""
        import pymc as pm

        X, w = self._split(X)
        documents.refuse_fractional_counts(passes.stored_cells(X, slice(None)).data)
        counted = self._counted(X.shape[1])
        exposure = pm.Data(f"{prefix}exposure", w, dims=OBS)[:, None]

        def cells(mu: Any, alpha: Any, **size: Any) -> Any:
            return pm.NegativeBinomial.dist(mu=mu, alpha=alpha, **size)

        observe_cells(prefix, X, cells, exposure * mu[y], mu[y] / delta, counted=counted)

    def _log_rows(self, name: str, X: Matrix, y: Array, mu: Any, delta: Any) -> Any:
        """Tensor: log likelihood of labelled rows.

        With G = log(1 + w delta), a cell has sum_k log(mu + k delta) - (x + mu/delta) G and
        constants: the factors are few, and so are the distinct exposures w.
        """
        import pymc as pm
        import pytensor.tensor as pt

        X, w = self._split(X)
        counts, missing = passes.split_missing(X)
        cells = passes.stored_cells(counts, slice(None))
        documents.refuse_fractional_counts(cells.data)
        n_features, n_classes = X.shape[1], len(self.precision)
        owner = documents.row_of_cells(cells)
        factors = documents.Factors.of(y[owner] * n_features + cells.indices, cells.data)
        values, at = np.unique(w, return_inverse=True)
        events = passes.class_sums(counts, at, len(values))  # (W, D)
        kind, n_kinds = y * len(values) + at, n_classes * len(values)
        n_rows = passes.class_counts(kind, n_kinds)[:, None] * self._counted(n_features)
        if missing is not None:
            n_rows -= passes.class_sums(missing, kind, n_kinds)
        n_rows = n_rows.reshape(n_classes, len(values), n_features)
        same = bool((n_rows == n_rows[..., :1]).all())
        constant = float(np.sum(cells.data * np.log(w[owner]) - gammaln(cells.data + 1)))
        data = {
            k: pm.Data(f"{name}_{k}", v)
            for k, v in {
                "exposures": values,
                "events": events,
                "rows": n_rows[..., 0] if same else n_rows,
            }.items()
        }
        n = data["rows"][..., None] if same else data["rows"]
        growth = pt.log1p(data["exposures"][:, None] * delta)  # (W, D)
        rate = (n * growth).sum(axis=1) / delta  # (C, D)
        spread = pt.zeros((n_classes, n_features)) + delta
        return (
            factors.log_sum(name, mu.ravel(), spread.ravel())
            - (data["events"] * growth).sum()
            - (rate * mu).sum()
            + pm.Data(f"{name}_constant", constant)
        )

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """Sums over the cells that are positive or missing, and what a row of zeros has."""
        import pymc as pm
        import pytensor.tensor as pt

        X, w = self._split(X)
        cells = passes.stored_cells(X, slice(None))
        mu, delta = theta["mu"].T, theta["delta"]
        shape = mu / delta[:, None]  # (D, C)
        values, at = np.unique(w, return_inverse=True)
        exposures = pm.Data(f"{prefix}exposures", values)
        growth = pt.log1p(exposures[:, None] * delta)  # (W, D)
        counted = self._counted(X.shape[1]).astype(np.float64)
        zeros = -(growth[:, :, None] * (counted[:, None] * shape)).sum(axis=1)  # (W, C)
        owner = documents.row_of_cells(cells)
        is_nan = np.isnan(cells.data)
        kinds = np.stack([cells.indices, at[owner], np.where(is_nan, -1.0, cells.data)])
        kinds, place = np.unique(kinds, axis=1, return_inverse=True)
        is_nan = kinds[2] < 0
        column = pm.Data(f"{prefix}column", kinds[0].astype(np.int64))
        which = pm.Data(f"{prefix}which", kinds[1].astype(np.int64))
        seen = pm.Data(f"{prefix}seen", np.where(is_nan, 0.0, kinds[2]))[:, None]
        mask = pm.Data(f"{prefix}missing", is_nan.astype(np.float64))[:, None]
        a, g = shape[column], growth[which, column][:, None]
        log_w = pt.log(exposures[which])[:, None]
        table = documents.log_product(mu[column], delta[column][:, None], seen) + seen * (log_w - g)
        table = table - pt.gammaln(seen + 1) + mask * a * g
        shared = sparse.csr_matrix(
            (np.ones(len(cells.data)), place.ravel(), cells.indptr), shape=(len(w), len(is_nan))
        )
        row = pm.Data(f"{prefix}exposure_of", at.astype(np.int64))
        return zeros[row] + sum_cells(f"{prefix}counts", shared, table)

    # -- exposure ----------------------------------------------------------------------------

    def _counted(self, n_features: int) -> Array:
        """(D,) bool: the columns that are counts."""
        if self.exposure is None:
            return np.ones(n_features, dtype=bool)
        return np.broadcast_to(np.asarray(self.exposure) == 0, (n_features,))

    def _split(self, X: Matrix) -> tuple[Matrix, Array]:
        """X with zeros in the exposure's column, and the exposures (N,)."""
        passes.refuse_negative_counts(X)
        given = np.flatnonzero(~self._counted(X.shape[1]))
        if not len(given):
            return X, np.ones(X.shape[0])
        j = int(given[0])
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
    """(S, N, C) sums over the observed cells of rows of exposure 1; mu (S, C, D), delta alike."""
    shape = mu / delta
    none = passes.exact_parts(shape * np.log1p(delta))  # -log of the mass of 0
    out = np.empty((len(mu), X.shape[0], mu.shape[1]))
    for rows, cells in passes.stored_blocks(X, 0):
        counts, missing = passes.split_missing(cells)
        if missing is None:
            out[:, rows] = -none.sum(axis=(0, -1))[:, None, :]
        else:
            missing.eliminate_zeros()
            out[:, rows] = -passes.sum_except(missing, none)
            counts.eliminate_zeros()
        column, x, shared = passes.distinct_cells(counts)
        if len(x):
            a, d = shape[..., column], np.broadcast_to(delta, mu.shape)[..., column]
            mass = log_negative_binomial(x, a, 1 / d) + a * np.log1p(d)
            out[:, rows] += np.moveaxis(passes.shared_sums(shared, mass), -1, -2)
    return out


def _standardised() -> Any:
    r"""Transform of a log-Normal mu, log mu ~ Normal(m, s), to what the rows leave open of it.

    If the rows alone say log mu ~ Normal(seen, 1/precision), then given m and s

    .. math:: \log\mu \sim \text{Normal}(w\,\text{seen} + (1 - w)\,m, (1 - w)\,s^2), \qquad
              w = \frac{s^2}{s^2 + 1/\text{precision}}

    The transform is the distance from that mean in that standard deviation: nearly Normal(0, 1),
    whatever m and s, for rates with many events (where it is the centred parametrisation) and
    with none (where it is the non-centred one). So there is no funnel where the spread is small.
    seen and precision are guides (`guided`).

    Source: Papaspiliopoulos, Roberts and Sköld (2003), Non-centered parameterisations for
    hierarchical models and data augmentation.
    """
    import pytensor.tensor as pt
    from pymc.logprob.transforms import Transform

    def mean_and_sd(_: Any, m: Any, s: Any, seen: Any, precision: Any, *__: Any) -> tuple[Any, Any]:
        rest = 1 / (1 + precision * s**2)  # 1 - w
        return seen + rest * (m - seen), s * pt.sqrt(rest)

    class Standardised(Transform):
        name = "standardised"
        ndim_supp = 0

        def forward(self, value: Any, *inputs: Any) -> Any:
            mean, sd = mean_and_sd(*inputs)
            return (pt.log(value) - mean) / sd

        def backward(self, value: Any, *inputs: Any) -> Any:
            mean, sd = mean_and_sd(*inputs)
            return pt.exp(mean + sd * value)

        def log_jac_det(self, value: Any, *inputs: Any) -> Any:
            mean, sd = mean_and_sd(*inputs)
            return mean + sd * value + pt.log(sd)

    return Standardised()
