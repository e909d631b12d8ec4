r"""Exponents and intercepts of a log-linear pool of predictives, integrated out.

.. math:: p(y_i = c \mid \eta, b) \propto \pi_{ic} \exp\Big(\sum_m \eta_m E_{imc} + k_i b_c\Big),
          \qquad \eta_m \sim \text{Gamma}(1/2, M/2), \qquad b_c \sim \text{Normal}(0, 2^2)

E are log densities of row i given its class by M members *without that row*, pi the class weights
without it, k the share of its cells that are known: a multinomial logistic regression on M + C
columns whose coefficients of scores are positive. Predictions are means over
draws of the posterior of (eta, b), by Hamiltonian Monte Carlo in coordinates z without a boundary,

.. math:: \eta_m = z_m^2 / M

The prior of z is exactly standard Normal, and an exponent of 0 is a point like any other: log
exponents have long tails there, in which Laplace's method and medians go wrong. The sum of the
intercepts changes no probability and has its prior. Sources: Genest, Weerahandi and Zidek (1984),
Aggregating opinions through logarithmic pooling; Neal (2011), MCMC using Hamiltonian dynamics,
section 5.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, helmert
from scipy.special import ndtri
from scipy.stats import rankdata

from bayesgen.errors import warn
from bayesgen.inference.nuts import LARGEST_R_HAT, SamplingWarning
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array
from bayesgen.posterior.pooled import INTERCEPT_SCALE, SHAPE, Evidence, Exponents, LogLinear

CHAINS, DRAWS = 8, 250  # of each chain, kept
_GOOD_R_HAT = 1.0099  # from which on a run is made longer
_LONGEST_RUN = 16  # transitions for each draw that is kept
_TURNS = 2  # of a transition
_WARM_UP = 100
_PATH = 2.5  # length of the longest trajectory, in standard deviations
_LONGEST = 32  # steps of a trajectory
_ACCEPTED = 0.8  # share of trajectories that the step size aims at
_NEWTON_STEPS = 200
_GRAIN = 2.0**-13  # nats: far below what draws tell of an exponent
_CONVERGED = 1e-10  # of the objective, relative
_PRECISION = INTERCEPT_SCALE**-2.0  # of the prior of an intercept
_MANY = 1 << 16  # log odds of all rows, which are then of single precision


def sample(
    evidence: Evidence,
    codes: Array,
    weight: Array,
    prior: LogLinear,
    seed: int = 0,
) -> Exponents:
    """Draw exponents and intercepts from their posterior.

    Parameters
    ----------
    evidence : Evidence
        Of rows without themselves.
    codes, weight : (N,) classes and weights of the rows
    prior : LogLinear
    seed : int

    Raises
    ------
    ValueError
        If there are no rows.

    Warns
    -----
    SamplingWarning
        If chains disagree after the longest run.
    """
    if not len(codes):
        raise ValueError("exponents need rows to be fitted to")
    rng = np.random.default_rng(seed)
    # compiled scores differ in the last digits, which chains would carry into the first
    scores = np.round(evidence.scores / _GRAIN) * _GRAIN
    # in an order that no label has a part in; odds are against the first, which is seldom far off
    count = np.bincount(codes, weight, scores.shape[2])
    order = np.lexsort([-count, -(weight @ scores.sum(axis=0))])
    place = np.argsort(order)
    ordered = Evidence(scores[..., order], evidence.log_weights[:, order], evidence.known_share)
    target = _Target(ordered, place[codes], weight, prior)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # too long a step: rejected
        draws = _hamiltonian(target, rng)
    eta, b = target.exponents(draws)
    b = b[..., place]
    if prior.intercepts:  # what no row tells
        common = rng.normal(0.0, INTERCEPT_SCALE / np.sqrt(b.shape[-1]), (*b.shape[:-1], 1))
        b = b + common
    return Exponents(eta, b)


# --------------------------------------------------------------------------------- log posterior


class _Block(NamedTuple):
    """Some of the rows; log odds are against the first class."""

    scores: Array  # (M, (C - 1) n)
    prior_odds: Array  # (C - 1, n) of the class weights
    known_share: Array  # (n,)
    weight: Array  # (n,)


class _Rows:
    """Log likelihood of K points u (K, M + C - 1) at a time, blocks of rows that fit the cache.

    u are exponents, and intercepts less that of the first class; scores and class weights are
    likewise.
    """

    def __init__(self, evidence: Evidence, codes: Array, weight: Array) -> None:
        scores = evidence.scores
        self.m, n, n_classes = scores.shape
        of_class = np.bincount(codes, weight * evidence.known_share, n_classes)[1:]
        of_own = (scores[:, np.arange(n), codes] - scores[:, :, 0]) @ weight
        self.own = np.concatenate([of_own, of_class])
        many = n * (n_classes - 1) > _MANY
        self.dtype = np.dtype(np.float32 if many else np.float64)
        self.largest = 80.0 if many else 600.0  # log odds; exp of larger ones overflows
        self.blocks: list[_Block] = []
        blocks = row_blocks(n, CHAINS * (n_classes - 1))
        for rows in blocks if n_classes > 1 else ():  # one class: nothing to tell
            j = (scores[:, rows, 1:] - scores[:, rows, :1]).transpose(0, 2, 1)
            j = np.ascontiguousarray(j).reshape(self.m, -1)
            log_weights = evidence.log_weights[rows]
            prior_odds = np.ascontiguousarray((log_weights[:, 1:] - log_weights[:, :1]).T)
            parts = j, prior_odds, evidence.known_share[rows], weight[rows]
            self.blocks.append(_Block(*(values.astype(self.dtype) for values in parts)))

    def _logits(self, block: "_Block", u: Array) -> Array:
        """Return (K, C - 1, n) log odds against the first class."""
        u = u.astype(self.dtype)
        z: Array = (u[:, : self.m] @ block.scores).reshape(len(u), *block.prior_odds.shape)
        z += block.prior_odds
        z += u[:, self.m :, None] * block.known_share
        return z

    def _proba(self, block: "_Block", u: Array) -> Array:
        """Return (K, C - 1, n) probabilities of all classes but the first."""
        z = np.minimum(self._logits(block, u), self.largest)
        np.exp(z, out=z)
        z /= (z.sum(axis=1) + 1)[:, None]
        return z

    def value(self, u: Array) -> Array:
        """Return (K,) log likelihood."""
        total: Array = u @ self.own
        for block in self.blocks:
            z = self._logits(block, u)
            top = np.maximum(z.max(axis=1), 0.0)
            z -= top[:, None]
            log_sum = np.log(np.exp(z, out=z).sum(axis=1) + np.exp(-top)) + top
            total -= log_sum @ block.weight
        return total

    def slopes(self, u: Array) -> Array:
        """Return (K, M + C - 1) gradients."""
        gradient = np.empty((len(u), len(self.own)))  # np.tile takes longer than the sums
        gradient[:] = self.own
        for block in self.blocks:
            p = self._proba(block, u)
            p *= block.weight
            gradient[:, : self.m] -= p.reshape(len(p), -1) @ block.scores.T
            gradient[:, self.m :] -= p @ block.known_share
        return gradient

    def curvature(self, u: Array) -> Array:
        """Return (M + C - 1, M + C - 1) minus the Hessian at one point."""
        m = self.m
        bend = np.zeros((len(u),) * 2)
        for block in self.blocks:
            (p,) = self._proba(block, u[None])
            p_w, share = p * block.weight, block.known_share
            j = block.scores.reshape(m, *p.shape)
            weighted = (j - (j * p).sum(axis=1, keepdims=True)) * p_w
            bend[:m, :m] += weighted.reshape(m, -1) @ j.reshape(m, -1).T
            bend[:m, m:] += weighted @ share
            bend[m:, m:] += np.diag(p_w @ share**2) - (p_w * share**2) @ p.T
        bend[m:, :m] = bend[:m, m:].T
        return bend


class _Target:
    """Log posterior density in coordinates x = (z, v), intercepts b = Q v of sum 0."""

    def __init__(self, evidence: Evidence, codes: Array, weight: Array, prior: LogLinear) -> None:
        n_members, _, n_classes = evidence.scores.shape
        self.m, self.unit = n_members, prior.mean
        self.contrasts = helmert(n_classes).T if prior.intercepts else np.zeros((n_classes, 0))
        self.size = n_members + self.contrasts.shape[1]
        self.diagonal = np.diag_indices(self.size)
        # points (eta, v) as those of the rows: u = point @ basis
        self.basis = block_diag(np.eye(n_members), (self.contrasts[1:] - self.contrasts[0]).T)
        self.rows = _Rows(evidence, codes, weight)
        self.mode = self._mode()
        near = np.abs(self.mode) < 2.0**-8  # an exponent, which must not become 0
        self.mode = np.where(near, self.mode, _rounded(self.mode))
        self.bend = self._curvature(self.mode)

    def _prior_curvature(self, point: Array) -> Array:
        """Return minus the second derivatives of the log prior of (log eta, v), as (eta, v)."""
        eta, v = point[: self.m], point[self.m :]
        return np.r_[SHAPE / eta**2, np.full(len(v), _PRECISION)]

    def exponents(self, x: Array) -> tuple[Array, Array]:
        """Exponents (..., M) and intercepts (..., C)."""
        z, v = x[..., : self.m], x[..., self.m :]
        return self.unit * z**2, v @ self.contrasts.T

    def _slopes(self, point: Array) -> Array:
        """Return (K, size) gradient of the log likelihood in (eta, v)."""
        return self.rows.slopes(point @ self.basis) @ self.basis.T

    def _curvature(self, point: Array) -> Array:
        """Return (size, size), minus its Hessian at one point."""
        bend: Array = self.basis @ self.rows.curvature(point @ self.basis) @ self.basis.T
        return bend

    def _point(self, x: Array) -> Array:
        """Return (K, size) (eta, v) of x = (z, v)."""
        return np.concatenate([self.unit * x[:, : self.m] ** 2, x[:, self.m :]], axis=1)

    def value(self, x: Array) -> Array:
        """Return (K,) log density."""
        log_likelihood = self.rows.value(self._point(x) @ self.basis)
        z, v = x[:, : self.m], x[:, self.m :]
        prior: Array = (np.square(z).sum(axis=1) + _PRECISION * np.square(v).sum(axis=1)) / 2
        return log_likelihood - prior

    def slopes(self, x: Array) -> Array:
        """Return (K, size) its gradient."""
        m, z = self.m, x[:, : self.m]
        gradient = self._slopes(self._point(x))
        gradient[:, :m] = (2 * self.unit * gradient[:, :m] - 1) * z
        gradient[:, m:] -= _PRECISION * x[:, m:]
        return gradient

    def _mode(self) -> Array:
        """Find that of (log eta, v), as (eta, v): the one minimum of a convex function."""
        m, rate = self.m, SHAPE / self.unit
        point = np.zeros(self.size)
        point[:m] = self.unit
        value = self._loss(point)
        for _ in range(_NEWTON_STEPS):
            eta, v = point[:m], point[m:]
            prior = np.concatenate([rate - SHAPE / eta, _PRECISION * v])
            gradient = prior - self._slopes(point[None])[0]
            hessian = self._curvature(point)
            hessian[self.diagonal] += self._prior_curvature(point)
            step = -np.linalg.lstsq(hessian, gradient)[0]
            down = step[:m] < 0
            room = eta[down] / -step[:m][down]
            length = min(1.0, 0.95 * room.min(initial=np.inf))  # exponents stay positive
            least = 1e-12 * length  # with zero curvature the whole step may be 1e14 long
            while length > least:
                trial = point + length * step
                new = self._loss(trial)
                if new <= value + 1e-4 * length * (gradient @ step):
                    break
                length /= 2
            else:
                break
            point, change, value = trial, value - new, new
            if change <= _CONVERGED * (1 + abs(value)):
                break
        return point

    def _loss(self, point: Array) -> float:
        eta, v = point[: self.m], point[self.m :]
        fit = self.rows.value((point @ self.basis)[None])[0]
        prior = SHAPE * (np.log(eta) - eta / self.unit).sum()
        return float(_PRECISION * v @ v / 2 - fit - prior)

    def pairs(self) -> tuple[Array, Array]:
        """Return (2, P) pairs of members, and how often each is turned.

        Half of the turns take any pair; half prefer pairs that a turn moves far, in proportion to
        the squared distance: their sum, or less where the rows tell the two members apart.
        """
        eta, bend = self.mode[: self.m], self.bend
        i, j = pairs = np.array(np.triu_indices(self.m, 1))
        total, told = eta[i] + eta[j], bend[i, i] + bend[j, j] - 2 * bend[i, j]
        reach = total / total.max(initial=0.0) / np.hypot(1, total * np.sqrt(np.maximum(told, 0)))
        reach = (reach / reach.max(initial=0.0)) ** 2
        return pairs, (reach / reach.sum() + 1 / max(len(reach), 1)) / 2

    def start(self) -> tuple[Array, Array]:
        """Return the mode as x, and the covariance that the curvature there says."""
        m, x = self.m, self.mode.copy()
        x[:m] = np.sqrt(x[:m] / self.unit)
        unit = np.ones(self.size)
        unit[:m] = self.unit * 2 * x[:m]  # d eta / d z
        curvature = self.bend * unit * unit[:, None]
        curvature[self.diagonal] += np.r_[1 / x[:m] ** 2, np.full(len(x) - m, _PRECISION)]
        return x, np.linalg.pinv(curvature, hermitian=True)


# -------------------------------------------------------------------------------------- sampling


def _hamiltonian(target: _Target, rng: np.random.Generator) -> Array:
    """Draw (chain, draw, size) x, all chains at a time."""
    x, covariance = target.start()
    walk = _Walk(target, rng, x, covariance)
    first = np.array([walk.step(adapt=True) for _ in range(_WARM_UP // 2)])
    walk.remetric(first[_WARM_UP // 8 :], covariance)
    for _ in range(_WARM_UP - _WARM_UP // 2):
        walk.step(adapt=True)
    kept: list[Array] = []
    for thin in range(1, _LONGEST_RUN + 1):
        kept += [walk.step() for _ in range(DRAWS)]
        draws = np.array(kept[::thin]).swapaxes(0, 1)
        # z and -z are one exponent; to fold the chains themselves would be wrong with this metric
        draws[..., : target.m] = np.abs(draws[..., : target.m])
        r_hat = _r_hat(draws)
        if r_hat <= _GOOD_R_HAT:
            break
    if r_hat > LARGEST_R_HAT:
        warn(
            f"exponents of the pool: R-hat is {r_hat:.3f} (> {LARGEST_R_HAT}): chains disagree; "
            "fewer members, or more rows, are easier to draw from",
            SamplingWarning,
        )
    return draws


def _rounded(x: Array) -> Array:
    """To 2^-16: libraries of linear algebra differ in last digits, which chains would amplify."""
    return np.round(x * 65536) / 65536


class _Walk:
    """Chains of Hamiltonian Monte Carlo with one metric and one step size."""

    def __init__(
        self, target: _Target, rng: np.random.Generator, x: Array, covariance: Array
    ) -> None:
        self.target, self.rng = target, rng
        self.pairs, self.chances = target.pairs()
        self._scale(covariance)
        away = rng.standard_normal((CHAINS, len(x))) @ self.root.T
        least = target.value(x[None])[0] - 2 * len(x)  # from further down a chain may never start
        while True:
            self.x = _rounded(x + away)
            self.x[:, : target.m] = np.abs(self.x[:, : target.m])
            self.value = target.value(self.x)
            if not (low := ~(self.value >= least)).any() or np.abs(away).max() < _CONVERGED:
                break
            away[low] /= 2
        self._adapt_from(len(x) ** -0.25)

    def _scale(self, covariance: Array) -> None:
        values, vectors = np.linalg.eigh(covariance)
        # the symmetric root: eigenvectors have any sign, by the library that finds them
        self.root = vectors * np.sqrt(np.maximum(values, 1e-12 * values[-1])) @ vectors.T

    def remetric(self, seen: Array, before: Array) -> None:
        """Metric from draws (n, chain, size), shrunk to the one `before`."""
        size, n = seen.shape[-1], seen.shape[0] * CHAINS / 4  # neighbours are alike
        m = self.target.m
        seen[..., :m] *= np.where(seen[..., :m].mean(axis=0) < 0, -1.0, 1.0)  # chains on one side
        covariance = np.atleast_2d(np.cov(seen.reshape(-1, size).T))
        self._scale((n * covariance + size * before) / (n + size))
        self._adapt_from(self.step_size)

    def _adapt_from(self, size: float) -> None:
        """Begin to average step sizes. Source: Hoffman and Gelman (2014), section 3.2."""
        self.step_size, self._centre = size, np.log(3 * size)
        self._average, self._gap, self._count = 0.0, 0.0, 0

    def _accept(self, x: Array, gain: Array, value: Array) -> None:
        accepted = np.log(self.rng.random(CHAINS)) < gain
        self.x = np.where(accepted[:, None], x, self.x)
        self.value = np.where(accepted, value, self.value)

    def _turn(self) -> None:
        """Turn two z of each chain by any angle, signs as they are: the sum of exponents stays."""
        x, every = self.x.copy(), np.arange(CHAINS)
        i, j = self.pairs[:, self.rng.choice(len(self.chances), CHAINS, p=self.chances)]
        angle = self.rng.uniform(-np.pi, np.pi, CHAINS)
        x[every, i] = np.cos(angle) * self.x[every, i] - np.sin(angle) * self.x[every, j]
        x[every, j] = np.sin(angle) * self.x[every, i] + np.cos(angle) * self.x[every, j]
        # or the metric would learn from jumps between sides
        x = _rounded(np.copysign(x, self.x))
        value = self.target.value(x)
        self._accept(x, value - self.value, value)

    def step(self, *, adapt: bool = False) -> Array:
        """Move on by turns and a trajectory; return (chain, size)."""
        rng, root = self.rng, self.root
        for _ in range(_TURNS if self.target.m > 1 else 0):
            self._turn()
        size = self.step_size if adapt else np.exp(self._average)
        n = int(np.clip(np.ceil(rng.uniform(0.2, 1.0) * _PATH / size), 1, _LONGEST))
        size = size * rng.uniform(0.9, 1.1)
        p = start = rng.standard_normal(self.x.shape)
        x = self.x
        slopes = self.target.slopes(x)
        p = p + size / 2 * slopes @ root
        for k in range(n):
            x = x + size * p @ root.T
            slopes = self.target.slopes(x)
            p = p + (size if k < n - 1 else size / 2) * slopes @ root
        x = _rounded(x)
        value = self.target.value(x)
        gain = value - self.value - (np.square(p) - np.square(start)).sum(axis=1) / 2
        chance = np.exp(np.minimum(np.where(np.isnan(gain), -np.inf, gain), 0.0))
        self._accept(x, gain, value)
        if adapt:
            self._count += 1
            self._gap += (_ACCEPTED - chance.mean() - self._gap) / (self._count + 10)
            log_size = self._centre - np.sqrt(self._count) / 0.05 * self._gap
            self._average += (log_size - self._average) * self._count**-0.75
            self.step_size = float(np.float32(np.exp(log_size)))  # as `_rounded`, whatever its size
        return self.x.copy()


def _r_hat(draws: Array) -> float:
    """Return the largest R-hat (split, of ranks and of folded ranks) of draws (chain, draw, size).

    ArviZ has the same number, but importing it takes longer than fitting a pool to 150 rows.
    Source: Vehtari et al. (2021), Rank-normalization, folding, and localization.
    """
    half, size = draws.shape[1] // 2, draws.shape[2]
    parts = np.concatenate([draws[:, :half], draws[:, -half:]])
    worst = 1.0
    for values in (parts, np.abs(parts - np.median(parts, axis=(0, 1)))):
        ranks = rankdata(values.reshape(-1, size), axis=0)
        z = ndtri((ranks - 3 / 8) / (len(ranks) + 1 / 4)).reshape(values.shape)
        within = np.maximum(z.var(axis=1, ddof=1).mean(axis=0), np.finfo(float).tiny)
        between = z.mean(axis=1).var(axis=0, ddof=1)
        worst = max(worst, np.sqrt((half - 1) / half + between / within).max(initial=1.0))
    return float(worst)
