r"""Cumulants of log-odds and of log densities, from the joint cgf of a model alone.

A *contrast* is the cgf of one real variable, along a line through the joint cumulant generating
function K:

.. math:: K_w(s) = K(t_0 + s w) - K(t_0) = \log E\, e^{s\, w \cdot a}, \quad
          a_c = \log p(c, x | \theta)

:math:`w = e_a - e_b` gives the log-odds of two classes. :math:`t_0 = e_c` tilts: expectations are
then under the posterior that has also seen the row as one of class c (MATH.md D).

Everything is read off the imaginary axis, where every cgf exists: no family has to say how far its
cgf reaches, and a user's own family needs nothing but ``cgf``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_gamma_difference
from bayesgen.posterior.model import ClassModel

# ------------------------------------------------------------------------------- class weights

WeightCGF = Callable[[Array], Array]  # t (..., C) -> (...)


def dirichlet_cgf(alpha: Array) -> WeightCGF:
    """Joint cgf of the logs of Dirichlet class weights."""
    return lambda t: (
        log_gamma_difference(alpha, t).sum(axis=-1)
        - log_gamma_difference(alpha.sum(), t.sum(axis=-1))
    )


def gamma_cgf(alpha: Array) -> WeightCGF:
    """Joint cgf of the logs of the independent Gamma variables behind Dirichlet weights.

    Their sum is common to the classes and cancels from every class probability.
    """
    return lambda t: log_gamma_difference(alpha, t).sum(axis=-1)


def fixed_cgf(weights: Array) -> WeightCGF:
    """Cgf of the logs of known class weights; t is 0 where a weight is."""
    weights = np.asarray(weights, dtype=np.float64)
    log_weights = np.log(np.where(weights > 0, weights, 1.0))
    return lambda t: t @ log_weights


# ----------------------------------------------------------------------------------- contrasts


@dataclass(frozen=True)
class Contrast:
    """The cgf of ``w . a`` for each row, a function of one complex variable.

    Parameters
    ----------
    family : ConjugateFamily
        The posterior.
    X : (N, D)
    weights : cgf of the log class weights
    direction : (C,)
        w.
    tilt : (C,), optional
        t_0; default 0.
    """

    family: Any
    X: Matrix
    weights: WeightCGF
    direction: Array
    tilt: Array | None = None

    def __call__(self, rows: Array, s: Array) -> Array:
        """(K, n) values at s, (K, 1) for all of the rows or (K, n) for each its own."""
        t, X = s[..., None] * self.direction, self.X[rows]
        if self.tilt is None:
            return self.weights(t) + self.family.cgf(X, t)
        t = t + self.tilt
        start = self.weights(self.tilt) + self.family.cgf(X, self.tilt)
        return self.weights(t) + self.family.cgf(X, t) - start

    def on_axis(self, scale: Array, nodes: Array) -> Array:
        """(N, K) values at ``i scale nodes``; rows of one scale share a call.

        Families make one table for all rows of a call, so a few scales are much cheaper than one
        for each row.
        """
        out = np.empty((len(scale), len(nodes)), dtype=np.complex128)
        for one in np.unique(scale):
            rows = np.flatnonzero(scale == one)
            out[rows] = self(rows, 1j * one * nodes[:, None]).T
        return out

    def at(self, rows: Array) -> "Contrast":
        """The contrast of some of the rows."""
        return Contrast(self.family, self.X[rows], self.weights, self.direction, self.tilt)


def class_weights(model: ClassModel, class_prior: Array | None) -> WeightCGF:
    """Cgf of the log class weights: Dirichlet, or fixed where a class prior is given."""
    return dirichlet_cgf(model.alpha) if class_prior is None else fixed_cgf(class_prior)


def log_odds(
    model: ClassModel,
    X: Matrix,
    a: int,
    b: int,
    class_prior: Array | None = None,
    tilt: int | None = None,
) -> Contrast:
    """The contrast ``L = log p(a, x | theta) - log p(b, x | theta)``.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    X : (N, D)
    a, b : int
        Class codes.
    class_prior : (C,), optional
        Fixed class weights that replace the fitted ones.
    tilt : int, optional
        The distribution after the row itself was seen with this label.

    Examples
    --------
    The thirteen samples: one (1, 1) of class 0, four of each other row of class 1.

    >>> import numpy as np
    >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    >>> from bayesgen.predict.interval.contrast import cumulants, log_odds
    >>> X = np.array([[1, 1]] + 4 * [[1, 0], [0, 1], [0, 0]])
    >>> model = ClassModel(1.0, BetaBernoulli(alpha=1.0, beta=1.0))
    >>> stats = model.stats(X, np.array([0] + 12 * [1]), 2)
    >>> posterior = model.resolve(stats).update(stats)
    >>> k = cumulants(log_odds(posterior, np.array([[1, 1]]), 0, 1))
    >>> print(f"{k.mean[0]:.6f} {k.sd[0]:.6f} {k.skewness[0]:.6f}")
    -0.909610 1.232663 -0.433056
    """
    direction = np.zeros(len(model.alpha))
    direction[a], direction[b] = 1.0, -1.0
    at = None if tilt is None else np.eye(len(model.alpha))[tilt]
    return Contrast(model.family, X, class_weights(model, class_prior), direction, at)


def log_density(
    model: ClassModel, X: Matrix, c: int, class_prior: Array | None = None, tilted: bool = False
) -> Contrast:
    """The contrast ``log g_c + log p(x | theta_c)``, g_c the Gamma variable behind a class weight.

    Where classes are independent given the data, so are these variables, and their softmax is the
    vector of class probabilities.
    """
    weights = gamma_cgf(model.alpha) if class_prior is None else fixed_cgf(class_prior)
    own = np.eye(len(model.alpha))[c]
    return Contrast(model.family, X, weights, own, own if tilted else None)


def possible_classes(
    model: ClassModel, X: Matrix, class_prior: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """(rows, classes) that can have produced them at all, a partition of the rows."""
    possible = np.isfinite(model.family.log_predictive(X))
    if class_prior is not None:
        possible &= np.asarray(class_prior) > 0
    patterns, which = np.unique(possible, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        yield np.flatnonzero(which.ravel() == k), np.flatnonzero(pattern)


# ----------------------------------------------------------------------------------- cumulants

_NODES = 8
_DROP = 0.125  # -Re K at the outermost node: half a standard deviation, for a normal variable
_REACH = 2.0**20  # of the search for the scale
_NOISE = 1e-11  # of Re K, a sum over the features


def _taylor(n_nodes: int, degree: int) -> tuple[Array, Array]:
    """Chebyshev nodes x on (0, 1], and the least-squares map to coefficients of powers of x^2.

    K(ix) is even in its real and odd in its imaginary part, so these are 2 n nodes on [-1, 1].
    """
    x = np.cos((2 * np.arange(1, n_nodes + 1) - 1) * np.pi / (4 * n_nodes))
    return x, np.linalg.pinv(np.vander(x * x, degree + 1, increasing=True))


_X, _EXACT = _taylor(_NODES, _NODES - 1)
_, _PILOT = _taylor(_NODES, _NODES - 2)


class Cumulants(NamedTuple):
    """Of one variable for each row, (N,) each.

    A row whose cgf does not vary has sd 0; one that varies without ever spreading (a near atom)
    has infinite `error`.
    """

    mean: Array
    sd: Array
    skewness: Array
    kurtosis: Array  # excess
    fifth: Array  # fifth cumulant over sd^5
    error: Array  # bound on the error of skewness and kurtosis
    unit: Array  # a power of 2 near sd, shared by many rows

    def part(self, rows: Array) -> "Cumulants":
        """Some of the rows."""
        return Cumulants(*(f[rows] for f in self))


def cumulants(contrast: Contrast) -> Cumulants:
    """Mean, standard deviation, skewness and excess kurtosis of each row's variable."""
    h, spread = _scale(contrast)
    values = contrast.on_axis(h, _X)
    odd, even = values.imag / _X, values.real / _X**2

    def moments(weights: Array) -> tuple[Array, ...]:
        # of the variable times h, x = u/h: Im K/x = k1 - k3 x^2/6 + k5 x^4/120 - ...,
        # Re K/x^2 = -k2/2 + k4 x^2/24 - ...
        c, d = odd @ weights[:3].T, even @ weights[:2].T
        k2 = np.maximum(-2 * d[:, 0], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            g = -6 * c[:, 1] / k2**1.5, 24 * d[:, 1] / k2**2, 120 * c[:, 2] / k2**2.5
            return c[:, 0] / h, np.sqrt(k2) / h, *g

    mean, sd, skewness, kurtosis, fifth = moments(_EXACT)
    _, _, pilot3, pilot4, _ = moments(_PILOT)
    with np.errstate(invalid="ignore"):
        error = np.maximum(np.abs(pilot3 - skewness), np.abs(pilot4 - kurtosis))
    constant = spread == 0
    error = np.where(constant, 0.0, np.where(np.isfinite(error) & (spread > 0), error, np.inf))
    return Cumulants(
        mean,
        np.where(constant, 0.0, sd),
        np.where(constant, 0.0, skewness),
        np.where(constant, 0.0, kurtosis),
        np.where(constant, 0.0, fifth),
        error,
        0.5 / h,
    )


def _scale(contrast: Contrast) -> tuple[Array, Array]:
    """(N,) powers of 2 where |phi| is near exp(-1/8); and 1, 0 (constant) or -1 (near atom)."""
    n = contrast.X.shape[0] if hasattr(contrast.X, "shape") else len(contrast.X)
    h, drop = np.ones(n), np.zeros(n)
    todo = np.arange(n)
    for attempt in range(40):
        for one in np.unique(h[todo]):
            rows = todo[h[todo] == one]
            drop[rows] = -contrast(rows, np.array([[1j * one]]))[0].real
        bad = ~np.isfinite(drop[todo])
        if bad.any():
            raise ValueError(
                f"the cgf of {type(contrast.family).__name__} is not finite on the imaginary axis "
                f"(row {todo[np.flatnonzero(bad)[0]]}, s = {h[todo][bad][0]:g}i)"
            )
        todo = todo[((drop[todo] < _DROP / 4) & (h[todo] < _REACH)) | (drop[todo] > 2 * _DROP)]
        if not todo.size:
            break
        with np.errstate(divide="ignore"):
            factor = np.sqrt(_DROP / np.maximum(drop[todo], _NOISE))
        # |phi| of a wide variable falls so slowly that it does not tell how wide
        step = np.clip(np.rint(np.log2(factor)), -5, 8)
        step = np.where(step == -5, -5 * (1 + attempt // 4), step)
        h[todo] = np.minimum(
            h[todo] * np.exp2(np.where(step == 0, np.sign(factor - 1), step)), _REACH
        )
    found = drop >= _DROP / 4
    return np.where(found, h, 1.0), np.where(found, 1, np.where(drop <= 1e-9, 0, -1))
