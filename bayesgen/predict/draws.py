r"""Joint draws of the log joint densities of all classes, and what they say of a probability.

For two classes nothing is drawn (`inversion`), and for classes that are independent given the data,
or given variances that they share, only the combination of their laws is averaged (`against_rest`).
Draws remain where neither holds, for few rows with a shared covariance, and where a series does not
converge.
"""

import pickle
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import entr, gammaincinv, log_ndtr, ndtr, ndtri
from scipy.stats import qmc

from bayesgen.families.capabilities import DensityDraws
from bayesgen.families.contract import ConjugateFamily
from bayesgen.numerics.rows import Matrix, row_blocks
from bayesgen.numerics.special import Array, draw_log_gamma
from bayesgen.posterior.model import ClassModel

REPLICATES = 8
_COORDINATES = 64
_CELLS = 3 << 20  # numbers of one block of draws: 24 MiB
_FEW_SHOW = 16  # draws that show a class: below, replicates do not tell the error
_FEW = 4  # quantiles that take less time by partition than by sorting


class QuasiGenerator:
    """Scrambled Sobol points with the interface of `numpy.random.Generator`.

    The first axis of every ``size`` is the point; each other cell is one coordinate. The first 64
    coordinates are quasi-random, the rest, and draws of any other size or kind, pseudo-random.
    Averages over n points of a smooth function of few coordinates are wrong by about 1/n instead of
    1/sqrt(n).

    Parameters
    ----------
    rng : numpy.random.Generator
        Scrambles the points: generators with other scrambles are independent replicates.
    n : int
        Points, a power of 2.
    """

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self._given = rng
        points = pickle.loads(_scrambled(pickle.dumps(rng))).random(n)
        rng.spawn(1)  # as a new engine would: its scramble is that of the next child
        self._points = np.clip(points, 2.0**-32, 1 - 2.0**-32)
        self._used = 0
        self._made: dict[Any, Array] = {}

    def restarted(self) -> "QuasiGenerator":
        """The same numbers again, from the first; those asked for before are kept, not remade."""
        out = object.__new__(type(self))
        vars(out).update({k: v for k, v in vars(self).items() if k != "_rng"}, _used=0)
        return out

    def __getattr__(self, name: str) -> Any:
        """Other distributions are pseudo-random."""
        if name == "_rng":
            # its own, so that a restart begins anew; `deepcopy` takes five times as long
            self._rng = pickle.loads(pickle.dumps(self._given))
            return self._rng
        return getattr(self._rng, name)

    def random(self, size: Any = None) -> Any:
        """Uniform."""
        if not isinstance(size, tuple) or size[0] != len(self._points):
            return self._rng.random(size)
        wanted = int(np.prod(size[1:]))
        quasi = self._points[:, self._used : self._used + wanted]
        self._used += quasi.shape[1]
        if quasi.shape[1] == wanted:
            return quasi.reshape(size)
        pseudo = self._rng.random((size[0], wanted - quasi.shape[1]))
        return np.concatenate([quasi, pseudo], axis=1).reshape(size)

    def standard_normal(self, size: Any = None) -> Any:
        """Normal(0, 1)."""
        return self._once(size, "normal", ndtri)

    def _once(self, size: Any, key: Any, function: Any) -> Any:
        """``function(uniform numbers)``, computed once for all that restart."""
        start, u = self._used, self.random(size)
        if self._used == start + u[:1].size:  # quasi-random throughout
            if (start, size, key) not in self._made:
                self._made[start, size, key] = function(u)
            return self._made[start, size, key]
        return function(u)

    def standard_exponential(self, size: Any = None) -> Any:
        """Exponential(1)."""
        return -np.log1p(-self.random(size))

    def standard_gamma(self, shape: Any, size: Any = None) -> Any:
        """Gamma(shape, 1)."""
        size = np.shape(shape) if size is None else size
        key = np.asarray(shape, dtype=np.float64).tobytes()
        n, left = len(self._points), self._points.shape[1] - self._used
        if not isinstance(size, tuple) or size[:1] != (n,) or np.prod(size[1:]) <= left:
            return self._once(size, key, lambda u: gammaincinv(shape, u))
        # the others are pseudo-random: inversion would take a hundred times as long
        a = np.broadcast_to(shape, size).reshape(n, -1)
        first = self._once((n, left), key, lambda u: gammaincinv(a[:, :left], u))
        return np.concatenate([first, self._rng.standard_gamma(a[:, left:])], axis=1).reshape(size)

    def chisquare(self, df: Any, size: Any = None) -> Any:
        """Chi-squared."""
        return 2 * self.standard_gamma(np.asarray(df) / 2, size)


@lru_cache(maxsize=8 * REPLICATES)
def _scrambled(generator: bytes) -> bytes:
    """A Sobol engine scrambled by a pickled generator, pickled (10 kB).

    Scrambling takes longer than a thousand points, and each row of a request takes the same.
    """
    return pickle.dumps(qmc.Sobol(_COORDINATES, rng=pickle.loads(generator)))


def replicates(rng: np.random.Generator, n: int) -> Iterator[QuasiGenerator]:
    """Independent generators of n points in all."""
    for child in rng.spawn(REPLICATES):
        yield QuasiGenerator(child, n // REPLICATES)


def log_joint_draws(
    model: ClassModel,
    X: Matrix,
    rng: Any,
    n: int,
    class_prior: Array | None = None,
    by_theta: bool = False,
) -> Array:
    """(n, N, C) draws of log p(y = c, x_i | theta), up to a term common to the classes of a row.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    X : (N, D)
    rng : numpy.random.Generator or QuasiGenerator
    n : int
    class_prior : (C,), optional
        Fixed class weights that replace the fitted ones.
    by_theta : bool
        Draw all parameters, so that the rows too are jointly distributed.
    """
    if class_prior is None:
        # independent Gamma variables: the normaliser of the Dirichlet is common to the classes
        log_weights = draw_log_gamma(rng, model.alpha, (n, len(model.alpha)))
    else:
        with np.errstate(divide="ignore"):
            log_weights = np.log(class_prior)[None]
    own = model.family.capability(DensityDraws)
    if own is not None and model.family.discriminative:
        return own.draw_log_density(rng, X, n)
    if own is not None and not by_theta:
        return log_weights[:, None, :] + own.draw_log_density(rng, X, n)
    return log_weights[:, None, :] + _draws_by_theta(model.family, rng, X, n)


def _draws_by_theta(family: ConjugateFamily, rng: Any, X: Matrix, n: int) -> Array:
    """(n, N, C) log densities of the rows at draws of theta, in blocks of draws."""
    out = np.empty((n, X.shape[0], 0))
    for part in row_blocks(n, family.n_parameters() + X.shape[0]):
        found = family.log_likelihood(X, family.draw(rng, part.stop - part.start))
        if not out.shape[2]:
            out = np.empty((n, *found.shape[1:]))
        out[part] = found
    return out


def order_statistic(ordered: Array, place: Array) -> Array:
    """(n, Q) values at places (n, Q) among the sorted draws (n, S), linear between them."""
    n, size = ordered.shape
    place = np.clip(place, 0.0, size - 1.0)
    j = np.minimum(place.astype(np.intp), size - 2)
    at = j + size * np.arange(n)[:, None]
    flat = ordered.ravel()
    with np.errstate(invalid="ignore"):  # both -inf or +inf
        step = np.nan_to_num((place - j) * (flat[at + 1] - flat[at]))
    return flat[at] + step


class Sample:
    """Quantiles of n samples of S draws each: sorted once, or not at all where few are wanted.

    Parameters
    ----------
    draws : (n, S), in any order
    weights : (n, S), optional
        In proportion to which a draw counts.
    """

    def __init__(self, draws: Array, weights: Array | None = None) -> None:
        self._draws, self._sorted, self._below = draws, False, None
        if weights is not None:
            order = np.argsort(draws, axis=1)
            self._draws, self._sorted = np.take_along_axis(draws, order, axis=1), True
            each = np.take_along_axis(weights, order, axis=1)
            upto = np.cumsum(each, axis=1)
            self._below = (upto - each / 2) / upto[:, -1:]

    def quantile(self, p: Array) -> Array:
        """(n, Q) quantiles at p (n, Q), linear between draws; at 0 and 1 the extreme draws."""
        if self._below is not None:
            upto = np.arange(self._draws.shape[1])
            at = [np.interp(*own, upto) for own in zip(p, self._below, strict=True)]
            return order_statistic(self._draws, np.reshape(at, p.shape))
        place = p * self._draws.shape[1] - 0.5
        if not self._sorted and p.shape[1] <= _FEW and (p == p[:1]).all():
            size = self._draws.shape[1]
            j = np.clip(place[:1], 0, size - 2).astype(np.intp).ravel()
            part = np.partition(self._draws, np.union1d(j, j + 1), axis=1)
            return order_statistic(part, place)
        if not self._sorted:
            self._draws, self._sorted = np.sort(self._draws, axis=1), True
        return order_statistic(self._draws, place)


def percentile_error(l: Array, end: Array, weights: Array | None = None) -> Array:
    """(n,) standard error of the share of the draws (n, draw, replicate) below an end (n,).

    `weights` (draw,) sum to 1.
    """
    below = l <= end[:, None, None]
    share = below.mean(axis=1) if weights is None else np.einsum("ndr,d->nr", below, weights)
    return share.std(axis=1, ddof=1) / np.sqrt(l.shape[2])


def rare_classes(mean: Array, sd: Array, n_draws: int) -> tuple[Array, Array]:
    """(n,) what a class that few of the draws may show, or none, can add to a mean and to a total.

    A class of which log p(c | x, theta) has this mean and sd (n, C) has about the probability
    E min(1, e^L), L normal: q. Where q n_draws is small, replicates do not tell their error. It is
    q itself, or that of a share of n_draws.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        tail = np.exp(mean + sd**2 / 2 + log_ndtr(-mean / sd - sd))
        q = np.nan_to_num(np.clip(ndtr(mean / sd) + tail, 0.0, 1.0))
        seen = q * n_draws
        part = np.where(seen < _FEW_SHOW, np.minimum(1.0, 1 / np.sqrt(seen)), 0.0)
    return (part * q).sum(axis=1), (part * entr(q)).sum(axis=1)


def block_rows(n_draws: int, n_classes: int) -> int:
    """Rows of one block of draws."""
    return max(1, _CELLS // (n_draws * n_classes))
