r"""What is not known of the label: total = aleatoric + epistemic, as one coherent pair.

With :math:`\rho = p(y \mid x, \theta)` and H the entropy,

.. math:: \underbrace{H(E\rho)}_\text{total} = \underbrace{E\,H(\rho)}_\text{aleatoric}
          + \underbrace{I(y; \theta)}_\text{epistemic}

under *one* distribution of theta: the posterior, or ``"predictive"``: the posterior that has seen
the row itself without its label, under which E rho is p(y | x, D) exactly. The latter is a mixture
of ordinary posteriors, :math:`p(\theta | D, x) = \sum_c p(c | x, D)\, p(\theta | D, (x, c))`, each
reached by tilting the cgf, so nothing is weighted. H(p(y | x, D)) - E H(rho) under the posterior
mixes the two; it is no information and can be negative.

Source: Depeweg et al. (2018), Decomposition of uncertainty in Bayesian deep learning.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import entr, expit, stdtrit

from bayesgen.families.errors import refuse_unknown
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.model import ClassModel
from bayesgen.predict import draws, inversion
from bayesgen.predict.draws import REPLICATES
from bayesgen.predict.expansion import Joints, Points
from bayesgen.predict.intervals import is_average, possible_classes

Pair = Literal["posterior", "predictive"]
Unit = Literal["nats", "bits"]

N_DRAWS = 1 << 13
_METHODS = np.array(["constant", "inversion", "margins", "draws"])
_CODE = {name: code for code, name in enumerate(_METHODS)}
_BLOCK = 1024  # rows
_CELLS = 1 << 18  # numbers of one array
_POINTS = 1 << 10  # where all classes are nearly normal: expansions are no better
_OF_EXPANSION = 1e-4
_CONVERGED = 1e-5
_BOUND = 1e-5  # error of an inverted margin; draws have none
_WIDER = float(stdtrit(REPLICATES - 1, 0.975) / 1.96)  # of an error that eight replicates tell


@dataclass(frozen=True)
class Uncertainty:
    """Of N rows.

    Parameters
    ----------
    total, aleatoric, epistemic : (N,)
        In the unit asked for; total = aleatoric + epistemic.
    mean, sd : (N, C)
        Of each class probability, under the distribution of theta of the pair.
    top : (N, C)
        Probability that a class is the most probable one.
    method : (N,) str
        "constant", "inversion", "margins" or "draws".
    error : (N,)
        Of any of the numbers (of `sd`, its square), in nats: a bound (inversion); for margins and
        draws twice the error holds each number in at least 95 of 100 rows. It comes from randomised
        replicates of the points, and bounds on what these have in common.
    """

    total: Array
    aleatoric: Array
    epistemic: Array
    mean: Array
    sd: Array
    top: Array
    method: Array
    error: Array


class Moments(NamedTuple):
    """Expectations over theta for n rows and C classes."""

    mean: Array  # (n, C) E rho
    variance: Array  # (n, C) Var rho
    top: Array  # (n, C)
    entropy: Array  # (n,) E H(rho)
    noise: Array  # (n, C) variance of `mean` as an estimate
    error: Array  # (n,) of mean, variance, top and entropy
    error_of_total: Array  # (n,) of H(mean), and of its difference from `entropy`
    method: Array  # (n,) position in _METHODS

    @classmethod
    def empty(cls, n: int, n_classes: int) -> Self:
        """Zeros, "constant"."""
        wide = [np.zeros((n, n_classes)) for _ in range(4)]
        method = np.zeros(n, dtype=np.intp)
        zero = [np.zeros(n) for _ in range(3)]
        return cls(wide[0], wide[1], wide[2], zero[0], wide[3], zero[1], zero[2], method)

    def put(self, rows: Array | slice, other: "Moments") -> None:
        """Overwrite some of the rows."""
        for mine, theirs in zip(self, other, strict=True):
            mine[rows] = theirs

    def add(self, weight: Array, other: "Moments") -> None:
        """Add a component of a mixture, with weights (n,); `mean` is that of the mixture."""
        apart = np.square(other.mean - self.mean)
        self.variance[:] += weight[:, None] * (other.variance + apart)
        self.top[:] += weight[:, None] * other.top
        self.entropy[:] += weight * other.entropy
        self.error[:] += weight * other.error
        np.maximum(self.method, other.method, out=self.method)


def entropies(
    model: ClassModel,
    X: Matrix,
    pair: Pair = "posterior",
    unit: Unit = "nats",
    class_prior: Array | None = None,
    rng: Any = 0,
    n_draws: int = N_DRAWS,
) -> Uncertainty:
    """Entropy of the label, and how it divides.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    X : (N, D)
        Rows as the family takes them.
    pair : {"posterior", "predictive"}
        Under which distribution of theta: what the training rows say, or what they and the row
        itself say. Only the second has the entropy of p(y | x, D) as its total.
    unit : {"nats", "bits"}
    class_prior : (C,), optional
        Class weights >= 0 that replace the fitted ones, and are not uncertain.
    rng : int, Generator
        Of the Sobol points and draws.
    n_draws : int
        A power of 2; for three classes and more.

    Returns
    -------
    Uncertainty
        Two classes: integrals, exact to `error`. More: averages over points or draws; the bias
        -Var(mean)/(2 mean) of the entropy of a mean is removed.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    >>> X = np.array([[1, 1]] + 4 * [[1, 0], [0, 1], [0, 0]])
    >>> model = ClassModel(1.0, BetaBernoulli(alpha=1.0, beta=1.0))
    >>> stats = model.stats(X, np.array([0] + 12 * [1]), 2)
    >>> found = entropies(model.resolve(stats).update(stats), np.array([[1, 1]]))
    >>> found.total.round(5), found.aleatoric.round(5), found.mean.round(6), found.sd.round(3)
    (array([0.63709]), array([0.52908]), array([[0.33416, 0.66584]]), array([[0.211, 0.211]]))
    """
    refuse_unknown("pair", str(pair), ("posterior", "predictive"))
    refuse_unknown("unit", str(unit), ("nats", "bits"))
    n, n_classes = X.shape[0], len(model.alpha)
    moments, total = Moments.empty(n, n_classes), np.full(n, np.nan)
    points = Points(generator(rng))
    compiled = kernels.pays(16 * _POINTS * n * n_classes)
    size = _BLOCK
    for start in range(0, n, size):
        x = X[start : start + size]
        for rows, classes in possible_classes(model, x, class_prior):
            if not len(classes):
                moments.put(rows + start, Moments.empty(len(rows), n_classes))
                for field in (moments.mean, moments.variance, moments.top, moments.entropy):
                    field[rows + start] = np.nan
                continue
            source = _Source(model, x[rows], classes, class_prior, rng, n_draws, points, compiled)
            if pair == "posterior":
                part = source.moments(None)
                bias = (part.noise / (2 * np.maximum(part.mean, 1e-300))).sum(axis=1)
                total[rows + start] = entr(part.mean).sum(axis=1) + bias
                error = np.maximum(part.error, part.error_of_total)
            else:
                p = inversion.responsibilities(model, x[rows], classes, class_prior)
                part = Moments.empty(len(rows), len(classes))._replace(mean=p)  # it is known
                for j in range(len(classes)):
                    part.add(p[:, j], source.moments(j))
                total[rows + start] = entr(p).sum(axis=1)
                error = part.error
            wide = Moments.empty(len(rows), n_classes)
            for name in ("mean", "variance", "top", "noise"):
                getattr(wide, name)[:, classes] = getattr(part, name)
            moments.put(
                rows + start,
                wide._replace(entropy=part.entropy, error=error, method=part.method),
            )
    scale = 1 / np.log(2) if unit == "bits" else 1.0
    # the difference is an information: what rounding leaves below 0 is 0
    epistemic = np.maximum(total - moments.entropy, 0.0)
    return Uncertainty(
        scale * total,
        scale * (total - epistemic),
        scale * epistemic,
        moments.mean,
        np.sqrt(moments.variance),
        moments.top,
        _METHODS[moments.method],
        moments.error,
    )


@dataclass(frozen=True)
class _Source:
    """Rows that the same classes can produce, and where their moments come from."""

    model: ClassModel
    X: Matrix
    classes: Array
    class_prior: Array | None
    rng: Any
    n_draws: int
    points: Points
    compiled: bool  # whether the work on all rows pays for compiled loops

    def moments(self, tilt: int | None) -> Moments:
        """Under the posterior, or that which has seen the rows as the class at `tilt`."""
        n = self.X.shape[0]
        if len(self.classes) == 1:
            one = np.ones((n, 1))
            return Moments.empty(n, 1)._replace(mean=one, top=one)
        out = Moments.empty(n, len(self.classes))
        by = self._inverted if len(self.classes) == 2 else self._against_rest
        left = np.arange(n)
        if tilt is not None or not is_average(self.model.family):
            left = by(out, tilt)
        if len(left):
            out.put(left, self._drawn(left, tilt))
        return out

    def _inverted(self, out: Moments, tilt: int | None) -> Array:
        """Two classes; returns the rows that are left."""
        a, b = map(int, self.classes)
        at = [] if tilt is None else [int(self.classes[tilt])]
        contrast = inversion.log_odds(self.model, self.X, a, b, self.class_prior, at)
        k = inversion.cumulants(contrast)
        constant = (k.sd == 0) & (k.error == 0)
        l = k.mean[constant]
        top = np.where(l == 0, 0.5, l > 0)
        out.put(
            np.flatnonzero(constant),
            _both(expit(l), 0 * l, inversion.entropy_of(l), top, 0 * l, "constant"),
        )
        left = []
        for group in inversion.invert(contrast, k, np.flatnonzero(~constant)):
            for _, part in group.blocks(1 << 12):
                out.put(part.rows, _both(*inversion.expectations(part), part.error, "inversion"))
            left.append(group.rows[group.error > _CONVERGED])
        return np.concatenate(left) if left else np.empty(0, dtype=np.intp)

    @cached_property
    def joints(self) -> Joints:
        """The laws of the classes, of which a label changes one."""
        return Joints(
            self.model, self.X, self.classes, self.class_prior, self.points, self.compiled
        )

    def _against_rest(self, out: Moments, tilt: int | None) -> Array:
        """Three classes and more, independent given something; returns the rows that are left."""
        rows = np.arange(self.X.shape[0])
        if self.joints.shared is None and not self.joints.independent.all():
            return rows
        left = []
        for size in (min(self.n_draws, _POINTS), self.n_draws):
            step, again = max(1, _CELLS // (size * len(self.classes))), [rows[:0]]
            for part in np.split(rows, np.arange(step, len(rows), step)):
                law = self.joints.law(size, part, tilt)
                a = law.draws.reshape(*law.draws.shape[:2], REPLICATES, -1)
                out.put(part, _averages(a, "margins", self.compiled))
                good = law.good.all(axis=1)
                left.append(part[~good])
                again.append(part[good & law.inverted])  # skewed: more points
            rows = np.concatenate(again)
            if not len(rows):
                break
        return np.concatenate(left)

    def _drawn(self, rows: Array, tilt: int | None) -> Moments:
        """Joint draws; a tilted posterior is another one for every row."""
        out = Moments.empty(len(rows), len(self.classes))
        each = self.n_draws // REPLICATES
        size = 1 if tilt is not None else draws.block_rows(self.n_draws, len(self.model.alpha))
        for start in range(0, len(rows), size):
            model, X = self.model, self.X[rows[start : start + size]]
            if tilt is not None:
                model, X = inversion.seen(model, X, int(self.classes[tilt]))
            a = np.stack(
                [
                    draws.log_joint_draws(model, X, g, each, self.class_prior)[..., self.classes]
                    for g in draws.replicates(generator(self.rng), self.n_draws)
                ]
            )
            # (replicate, draw, n, C) -> (n, C, replicate, draw)
            out.put(slice(start, start + size), _averages(a.transpose(2, 3, 0, 1), "draws", False))
        return out


def _averages(a: Array, method: str, compiled: bool) -> Moments:
    """Moments of draws (n, C, replicate, draw) of log joint densities."""
    *each, level, spread = _sums(a, compiled)
    rare = draws.rare_classes(level, spread, a.shape[2] * a.shape[3])
    noise = each[0].var(axis=1, ddof=1) / REPLICATES
    mean, variance, top, entropy = (v.mean(axis=1) for v in each)
    error, of_total = _errors(each, *rare)
    if method == "margins":
        error, of_total = error + _OF_EXPANSION, of_total + _OF_EXPANSION
    method_code = np.full(len(a), _CODE[method])
    return Moments(mean, variance, top, entropy, noise, error, of_total, method_code)


def _sums(a: Array, compiled: bool) -> list[Array]:
    """Of each replicate, (n, replicate, C) or (n, replicate), and of log rho, (n, C), all in all.

    The mean of rho, of its squared deviation from the mean of all, of being the largest, and of the
    entropy; mean and standard deviation of log rho.
    """
    n, n_classes, n_replicates, _ = a.shape
    if compiled:
        from bayesgen.numerics.kernels.mixtures import averages

        wide = [np.empty((n, n_replicates, n_classes)) for _ in range(3)]
        out = [*wide, np.empty((n, n_replicates)), *np.empty((2, n, n_classes))]
        averages(np.ascontiguousarray(a), *out)
        return out
    log_rho = log_softmax(np.moveaxis(a, 1, -1))
    rho = np.exp(log_rho)
    mean = rho.mean(axis=(1, 2), keepdims=True)
    first = rho == rho.max(axis=-1, keepdims=True)
    return [
        rho.mean(axis=2),
        np.square(rho - mean).mean(axis=2),
        (first / first.sum(axis=-1, keepdims=True)).mean(axis=2),
        entr(rho).sum(axis=-1).mean(axis=2),
        log_rho.mean(axis=(1, 2)),
        log_rho.std(axis=(1, 2)),
    ]


def _errors(each: list[Array], rare: Array, rare_total: Array) -> tuple[Array, Array]:
    """(n,) each: errors of the averages, and of the total and the epistemic entropy.

    By the jackknife over replicates, `each` (n, replicate, ...) of the averages: the total is a
    function of a mean, and where that is small, a steep one. Widened so that, as in a normal
    distribution, 95 % are within twice the error. Added is what replicates have in common: `_BOUND`
    for each class, and what `rare_classes` tells, (n,).
    """
    without = [(v.sum(axis=1, keepdims=True) - v) / (REPLICATES - 1) for v in each]
    total = entr(without[0]).sum(axis=-1)
    bound = _BOUND * each[0].shape[2]

    def worst(values: list[Array]) -> Array:
        errors = [np.sqrt((REPLICATES - 1) * v.var(axis=1)) for v in values]
        flat = np.concatenate([e.reshape(len(e), -1) for e in errors], axis=1)
        return bound + _WIDER * flat.max(axis=1)

    return worst(without) + rare, worst([total, total - without[3]]) + rare_total


def _both(
    mean: Array, variance: Array, entropy: Array, top: Array, error: Array, method: str
) -> Moments:
    """Moments of both classes from those of the first; 1 - rho is the second's."""
    return Moments(
        np.stack([mean, 1 - mean], axis=1),
        np.stack([variance, variance], axis=1),
        np.stack([top, 1 - top], axis=1),
        entropy,
        np.zeros((len(mean), 2)),
        error,
        error * (1 - np.log(np.clip(np.minimum(mean, 1 - mean), np.maximum(error, 1e-300), 1.0))),
        np.full(len(mean), _CODE[method]),
    )
