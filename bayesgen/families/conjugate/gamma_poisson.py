r"""Counts with a Gamma prior: x_j | y=c ~ Poisson(r_cj), r_cj ~ Gamma(shape_cj, rate_cj).

Posterior: shape + sum of the counts, rate + number of rows. Predictive of a count: negative
binomial, :math:`\frac{\Gamma(a+x)}{\Gamma(a)\,x!}\left(\frac{b}{b+1}\right)^a (b+1)^{-x}`,
which has heavier tails than any Poisson that could be plugged in.

Source: Gelman et al., Bayesian Data Analysis (3rd ed., 2013), section 2.6.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from bayesgen.families.contract import ConjugateFamily, Stats, Tensors, Theta
from bayesgen.families.errors import NotLinearError, refuse_undefined
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.records import Hyperparameter, array
from bayesgen.families.shared import densities, pymc_parts
from bayesgen.families.shared.codes import look_up_counts
from bayesgen.families.shared.documents import IN_STATISTICS, refuse_fractional_counts
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics import rows as passes
from bayesgen.numerics import special
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_factorial

_LARGE = 2.0**14  # from this count on x log(rate) - rate - log x! is summed without cancellation


@dataclass(frozen=True, eq=False)
class PoissonStats(Stats):
    """Weighted sums over the observed cells."""

    largest_cell: ClassVar[float] = special.LARGEST_COUNT

    total: Array = array(CLASS, FEATURE)  # sum of counts
    rows: Array = array(CLASS, FEATURE)  # number of observed rows
    log_factorial: Array = array(CLASS, FEATURE, signed=True)  # sum of log x!


@dataclass(frozen=True, eq=False)
class GammaPoisson(ConjugateFamily):
    """Independent Poisson counts with Gamma priors on their rates.

    Counts need not be whole numbers: the mass is continued by the gamma function.

    Parameters
    ----------
    shape : float or array broadcasting to (class, feature), > 0
        Shape of the Gamma prior: its pseudo-count of events. The prior's coefficient of variation
        is ``1/sqrt(shape)``.
    rate : float or array broadcasting to (class, feature), > 0, or None
        Rate (inverse scale) of the Gamma prior: its pseudo-count of rows. None: ``shape`` divided
        by the column's mean count over all classes, so that the prior mean is that mean and
        weighs `shape` events in every column, rare or frequent. A column with nothing but zeros,
        or with no observed cell, has no scale of its own: there the rate is 1, one row, since
        one event per row is the scale of the smallest count there is.

    Examples
    --------
    >>> import numpy as np
    >>> family = GammaPoisson(rate=1.0)
    >>> stats = family.stats(np.array([[2, 0], [1, 0]]), np.array([0, 0]), n_classes=2)
    >>> posterior = family.resolve(stats).update(stats)
    >>> np.exp(posterior.log_predictive(np.array([[1, 0]]))).round(3)
    array([[0.237, 0.125]])
    """

    holds: ClassVar[str] = "count"
    kind: ClassVar[str] = "poisson"
    sparse: ClassVar[bool] = True
    statistics: ClassVar[type[Stats]] = PoissonStats
    tunable: ClassVar[tuple[str, ...]] = ("shape", "rate")
    separable: ClassVar[bool] = True

    shape: Hyperparameter = array(CLASS, FEATURE, default=1.0)
    rate: Hyperparameter = array(CLASS, FEATURE, default=None)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``rate``: expected count of a row."""
        return {"rate": (CLASS, FEATURE)}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) sum of log Poisson masses over the observed cells."""
        passes.refuse_negative_counts(X)
        rate = np.asarray(theta["rate"], dtype=np.float64)
        factorials = np.empty(X.shape[0])
        large = np.zeros(X.shape[0], dtype=bool)
        for rows, cells in passes.stored_blocks(X, 0):
            seen = np.nan_to_num(cells.data)
            factorials[rows] = passes.row_sums(log_factorial(seen), cells.indptr)
            scores = np.flatnonzero(seen >= _LARGE)
            large[rows.start + np.searchsorted(cells.indptr, scores, side="right") - 1] = True
        missing = passes.has_nan(X)

        def tables(rate: Array):
            if missing or (rate == 0).any():
                return rate, None
            return passes.columns_of(np.log(rate)), rate.sum(axis=-1).ravel()

        def score(block: Matrix, rows: slice, tables, log_p: Array) -> None:
            weights, none = tables
            if none is not None:
                passes.multiply(block, weights, log_p)
                log_p -= none
            else:
                counts, missing = passes.split_missing(block)
                scores = passes.dot_log(counts, weights)
                if missing is None:
                    scores -= weights.sum(axis=-1)[..., None, :]
                else:
                    scores -= passes.sum_except(missing, passes.exact_parts(weights))
                log_p[:] = np.moveaxis(scores, 0, 1).reshape(log_p.shape)
            log_p -= factorials[rows, None]

        log_p = passes.over_draws(X, rate, tables, score)
        for row in passes.few_at_a_time(np.flatnonzero(large)):
            log_p[..., row, :] = _by_cell(passes.stored_cells(X, row), rate)
        return log_p

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) counts, as int64."""
        rate = self.rows_of(theta, "rate", y)
        return rng.poisson(rate, size=(len(y), rate.shape[-1]))

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """Gamma priors; Poisson rows (the observed cells, whole counts), or the sums of counts."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = pymc_parts.declare(self, "prior", prefix)
        dims = pymc_parts.prefixed(prefix, self.params["rate"])
        rate = pm.Gamma(f"{prefix}rate", alpha=prior["shape"], beta=prior["rate"], dims=dims)
        if stats is not None and X is None:
            n = pymc_parts.declare(stats, "stats", prefix)
            log_p = n["total"] * pt.log(rate) - n["rows"] * rate - n["log_factorial"]
            pm.Potential(f"{prefix}x", log_p.sum())
        elif X is not None:
            passes.refuse_negative_counts(X)
            refuse_fractional_counts(X, IN_STATISTICS)
            pymc_parts.observe_cells(prefix, X, pm.Poisson.dist, rate[y])
        return {"rate": rate}

    def pymc_log_likelihood(self, X: Matrix, theta, *, prefix: str = ""):
        """Sums over the cells that are positive or missing, and what a row of zeros has."""
        import pymc as pm
        import pytensor.tensor as pt

        passes.refuse_negative_counts(X)
        counts, missing = passes.split_missing(X)
        cells, rate = passes.stored_cells(counts, slice(None)), theta["rate"].T
        log_p = pymc_parts.sum_cells(f"{prefix}counts", cells, pt.log(rate)) - rate.sum(axis=0)
        if missing is not None:
            log_p = log_p + pymc_parts.sum_cells(
                f"{prefix}missing", passes.stored_cells(missing, slice(None)), rate
            )
        constant = passes.row_sums(log_factorial(cells.data), cells.indptr)
        return log_p - pm.Data(f"{prefix}log_factorial", constant)[:, None]

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> PoissonStats:
        """Sums of counts, rows and log-factorials over the observed cells."""
        passes.refuse_negative_counts(X)
        n_rows = passes.class_counts(y, n_classes, weight)[:, None]
        counts, missing = passes.split_missing(X)
        total = passes.class_sums(counts, y, n_classes, weight)
        rows = np.broadcast_to(n_rows, total.shape)
        if missing is not None:
            rows = passes.remainder(rows, passes.class_sums(missing, y, n_classes, weight))
        factorials = passes.class_sums(counts, y, n_classes, weight, log_factorial)
        return PoissonStats(total, np.array(rows), factorials)

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Few events expected and many, unequal by class and feature."""
        unequal = 0.5 + np.arange(n_classes * n_features).reshape(n_classes, n_features) % 5
        flat = np.ones((n_classes, n_features))
        return [cls(flat, flat), cls(unequal, 0.5 + unequal[::-1]), cls(40 * flat, 0.5 * flat)]

    def observed_cells(self, stats: PoissonStats) -> Array:
        """Return (C, D) rows of each class in which the column was not missing."""
        return stats.rows

    def resolve(self, stats: PoissonStats) -> Self:
        """Broadcast to (class, feature); a rate of None becomes shape/(pooled column mean)."""
        shape = broadcast_prior("shape", self.shape, stats.total.shape)
        rate = self.rate
        if rate is None:
            total, rows = stats.total.sum(axis=0), stats.rows.sum(axis=0)
            some = (total > 0) & (rows > 0)
            mean = np.where(some, total, 1.0) / np.where(some, rows, 1.0)
            with np.errstate(over="ignore"):  # refused below
                rate = np.where(some, shape / mean, 1.0)
        return replace(self, shape=shape, rate=broadcast_prior("rate", rate, shape.shape))

    def update(self, stats: PoissonStats) -> Self:
        """Shape + events, rate + rows."""
        return replace(self, shape=self.shape + stats.total, rate=self.rate + stats.rows)

    def mle(self, stats: PoissonStats) -> dict[str, Array]:
        """Mean count; 0 where no event was seen."""
        refuse_undefined("mle", stats.rows <= 0, "it has no observed row (0/0)")
        return {"rate": stats.total / stats.rows}

    def map(self) -> dict[str, Array]:
        """Return (shape - 1)/rate, the mode on the scale of the rate."""
        refuse_undefined(
            "map",
            self.shape < 1,
            "a Gamma density is unbounded at 0 if its shape plus counts is below 1",
            "use shape >= 1, or method='posterior_mean'",
        )
        return {"rate": (self.shape - 1) / self.rate}

    def mean(self) -> dict[str, Array]:
        """shape/rate."""
        return {"rate": self.shape / self.rate}

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Independent Gamma draws."""
        return {"rate": rng.standard_gamma(self.shape, size=(n, *self.shape.shape)) / self.rate}

    def log_density(self, theta: Theta) -> Array:
        """Return (...) sum of log Gamma densities."""
        return densities.density_by_draws(
            lambda t: densities.log_gamma_density(t["rate"], self.shape, self.rate),
            theta,
            self.params,
        )

    def log_predictive(self, X: Matrix) -> Array:
        """Return (N, C) sum of log negative binomial masses over the observed cells."""
        passes.refuse_negative_counts(X)
        if sparse.issparse(X):
            return self._log_masses(X)
        log_mass = look_up_counts(
            X, self.shape, 1 / (1 + self.rate), -self.shape * np.log1p(1 / self.rate)
        )
        others = np.flatnonzero(np.isnan(log_mass[:, 0]))
        if len(others):
            log_mass[others] = self._log_masses(X[others])
        return log_mass

    def _log_masses(self, X: Matrix) -> Array:
        """Return `log_predictive`, each distinct cell of a block once."""
        a, b = self.shape, self.rate
        n_classes = len(a)

        def mass(c: int, columns, counts: Array) -> Array:
            return special.log_negative_binomial(counts, a[c][columns], b[c][columns])

        masses = [
            passes.small_count_table(partial(mass, c), X, n_classes) for c in range(n_classes)
        ]
        no_event = passes.exact_parts(a * np.log1p(1 / b))  # -log of the mass of 0
        log_mass = np.empty((X.shape[0], n_classes))
        for rows, cells in passes.stored_blocks(X, a.size):
            log_mass[rows] = -passes.sum_except(passes.pattern(cells), no_event)
            cells = _observed(cells)
            for c in range(n_classes):
                log_mass[rows, c] += passes.row_sums(
                    masses[c](cells.indices, cells.data), cells.indptr
                )
        return log_mass

    def log_evidence(self, stats: PoissonStats) -> float:
        """Sum over cells of a log b - lG(a) + lG(a') - a' log b' - log x!.

        It is arranged as the negative binomial mass of the total, times the multinomial mass of
        the rows given their total, which no hyper-parameter enters. The first is exact at totals
        of 1e12. The second carries the rounding of the sum of log-factorials, 1e-16 of its size:
        a constant, the same for every prior.
        """
        some = stats.rows > 0
        n = np.where(some, stats.rows, 1.0)
        total = np.where(some, stats.total, 0.0)
        cells = special.log_negative_binomial(total, self.shape, self.rate / n)
        cells += log_factorial(total) - total * np.log(n) - stats.log_factorial
        return float(np.sum(cells, where=some))

    def log_predictive_without(self, X: Matrix, y: Array, weight: Array) -> tuple[Array, Array]:
        """Subtract the row from the counts and rows of its class."""
        log_x, left = self.log_predictive(X), np.ones(X.shape[0])
        for c, w, rows in passes.equal_weights(y, weight):
            a = self.shape[c]
            b, is_lost = passes.without_weight(self.rate[c], w)
            cells = passes.stored_cells(X[rows], slice(None))
            no_event = passes.exact_parts((a * np.log1p(1 / b))[None])
            log_x[rows, c] = -passes.sum_except(passes.pattern(cells), no_event)[:, 0]
            cells = _observed(cells)
            n, before = cells.data, a[cells.indices]
            mass = special.log_negative_binomial(n, before - w * n, b[cells.indices])
            log_x[rows, c] += passes.row_sums(mass, cells.indptr)
            row = np.repeat(rows, np.diff(cells.indptr))
            np.minimum.at(left, row, 1 - w * n / before)
            left[rows] = np.where(is_lost.any(), 0.0, left[rows])
        return log_x, left

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Log rates as weights of the counts, minus the sum of rates; plug-ins only."""
        if theta is None:
            raise NotLinearError(
                "the posterior predictive of a count is negative binomial: the log-gamma function "
                "of shape + x is not linear in x; ask for the linear form of a plug-in, such as "
                "method='posterior_mean'"
            )
        rate = theta["rate"]
        with np.errstate(divide="ignore"):
            return np.log(rate), -rate.sum(axis=-1)

    def information(self, theta: Theta, weights: Array) -> Array:
        """Return (D,) mutual information of each count and the class, in nats, by summing masses.

        The sum runs over all counts but those in tails of mass exp(-40).
        """
        present = np.flatnonzero(weights > 0)
        return count_information(theta["rate"][present], weights[present])


def _observed(cells: sparse.csr_matrix) -> sparse.csr_matrix:
    """Without the NaN cells."""
    is_nan = np.isnan(cells.data)
    if not is_nan.any():
        return cells
    kept = np.concatenate([[0], np.cumsum(~is_nan)])
    parts = (cells.data[~is_nan], cells.indices[~is_nan], kept[cells.indptr])
    return sparse.csr_matrix(parts, shape=cells.shape)


def _by_cell(cells: sparse.csr_matrix, rate: Array) -> Array:
    """Add up log Poisson masses cell by cell, for counts of any size: (..., n, C)."""
    log_mass = -passes.sum_except(passes.pattern(cells), passes.exact_parts(rate))
    cells = _observed(cells)
    for index in np.ndindex(rate.shape[:-1]):
        masses = special.log_poisson(cells.data, rate[index][cells.indices])
        log_mass[(*index[:-1], slice(None), index[-1])] += passes.row_sums(masses, cells.indptr)
    return log_mass


# ------------------------------------------------------------------------------------------------
# Mutual information of a Poisson count and the class, by summing the masses.

_TAIL = 40.0  # a Poisson window leaves out a mass of about exp(-40) on each side
_FEW = 64.0  # up to this rate the sum runs over all counts from 0 on
_BLOCK = 1 << 19  # cells of a block


def count_information(rate: Array, pi: Array) -> Array:
    """Return (D,) mutual information in nats of each of D counts and the class.

    Parameters
    ----------
    rate : (C, D)
        Expected counts.
    pi : (C,)
        Probabilities of the classes, all > 0.
    """
    top = rate.max(axis=0)
    order = np.argsort(top, kind="stable")  # columns that need equally many counts together
    n_few = int(np.sum(top <= _FEW))
    nats = np.empty(len(top))
    for group, information in (
        (order[:n_few], _information_of_few),
        (order[n_few:], _information_of_many),
    ):
        for columns in (
            group[block] for block in passes.row_blocks(len(group), len(pi) * 256, _BLOCK)
        ):
            nats[columns] = information(rate[:, columns], pi)
    return np.maximum(nats, 0.0)  # -1e-12 between equal rates of 1e12


def _window(rate: Array) -> tuple[Array, Array]:
    """Counts between which a Poisson variable lies but for a mass of exp(-40) on either side.

    Source: Boucheron, Lugosi and Massart, Concentration Inequalities (2013), section 2.7.
    """
    low = np.maximum(0.0, rate - np.sqrt(2 * _TAIL * rate))
    high = rate + _TAIL / 3 + np.sqrt(_TAIL**2 / 9 + 2 * _TAIL * rate)
    return np.floor(low), np.ceil(high)


def _information_of_few(rate: Array, pi: Array) -> Array:
    """Return (D,) mutual information from rates (C, D), summed over the counts from 0 on."""
    x = np.arange(float(_window(rate.max())[1]) + 1)
    none = rate == 0
    logs = np.log(np.where(none, 1.0, rate))[..., None] * x - rate[..., None] - log_factorial(x)
    mass = np.exp(logs)
    mass[none] = x == 0
    mixture = np.tensordot(pi, mass, axes=1)
    logs -= np.log(np.where(mixture > 0, mixture, 1.0))
    return np.tensordot(pi, np.sum(mass * logs, axis=-1), axes=1)


def _information_of_many(rate: Array, pi: Array) -> Array:
    """Return (D,) mutual information from rates (C, D): sum of pi KL(Poisson(rate_c) || mixture).

    Each class is summed over its own window, in steps of one count or of 1/16 standard
    deviation, where that is more: the terms are then so smooth in the count that the sum over
    the grid is exact to rounding.
    """
    nats = np.zeros(rate.shape[1])
    for class_rate, weight in zip(rate, pi, strict=True):
        step = np.maximum(1.0, np.floor(np.sqrt(class_rate) / 16))
        low, high = _window(class_rate)
        nodes = np.arange(np.max((high - low) / step) + 1)
        x = low[:, None] + step[:, None] * nodes
        log_mass = special.log_poisson(x, class_rate[:, None])
        mass = np.exp(log_mass)
        some = mass > 0
        # p(x | all classes) / p(x | own), by at most exp(700)
        ratios = special.log_poisson(x, rate[..., None]) - np.where(some, log_mass, 0.0)
        mixture = np.tensordot(pi, np.exp(np.minimum(ratios, 700.0)), axes=1)
        terms = np.where(some, mass * np.log(np.where(some, mixture, 1.0)), 0.0)
        nats -= weight * step * terms.sum(axis=-1)
    return nats
