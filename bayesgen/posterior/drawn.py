"""The posterior as draws, from a sampler or from a tree that the user gives."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import expit

from bayesgen.errors import Facts, InputError, warn
from bayesgen.families.contract import Family, Theta
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CLASS_WEIGHTS, Method
from bayesgen.numerics.rows import Matrix, has_nan, row_blocks
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp, log_sum_of_others
from bayesgen.posterior.interface import BLOCK, DrawRequest, JointDraws, Posterior
from bayesgen.posterior.model import (
    ClassModel,
    ClassStats,
    Quantity,
    draw_shape,
    log_class_weights,
    log_weights,
    score,
)

# ------------------------------------------------------------------------------------------------
# Class probabilities of new rows from posterior draws, with the error that the draws leave.
#
# From draws :math:`\theta_s`, closed-form or by NUTS, with :math:`f_{sc} = \log p(x |
# \theta_{sc})`,
#
# .. math:: \hat p(c, x) = \bar\pi_c \, \frac1S \sum_s e^{f_{sc}}, \qquad
#           \hat p(c | x) = \frac{\hat p(c, x)}{\sum_d \hat p(d, x)}.
#
# Joint densities are averaged, then normalised. The class weights, independent of theta a
# posteriori, are integrated out exactly: only their mean enters. The error is that of a ratio of
# means: with :math:`R_{sc} = \bar\pi_c e^{f_{sc}}` the influence of a draw is
# :math:`\phi_{sc} = (R_{sc} - \hat p_c \sum_d R_{sd}) / \overline{\textstyle\sum_d R_{sd}}`,
# and the error of its mean is known by the means of ten batches of each chain.
#
# Shapes as in `bayesgen.families.contract`; theta is {name: (chain, draw, *dims)}.

_SLICE = 1 << 19  # of these, worked on at a time: a few temporaries of 4 MiB
_FEWEST_OF_A_TAIL = 5  # draws, of which ArviZ takes a fifth for the tail
_FEWEST_DRAWS = 4  # of a chain, below which no autocorrelation can be estimated

# When an estimate is trusted. Too few draws miss the part of the mean that is in the tail, so that
# the log density of a class may be larger than its estimate: by .7 standard deviations of
# log p(x | theta) over the root of the draws that the mean rests on. `tests/benchmarks/doubt.py`
# tries it on 4800 rows of small fits that did not choose the .7, against the closed form: of the
# 1337 rows whose probability was off by more than 0.02 the rule names 82 %, of the 357 that were
# off by more than 0.1 all but 5, of the right ones 28 %. Half a standard deviation, whatever the
# number of draws: 86 %, all but 7, 37 %. On 17 280 rows of fits by NUTS (Student t, negative
# binomial) against long runs: 79 %, all but 3 of 1182, 30 %; half a one 79 %, all but 3, 42 %.
_ENOUGH = 50.0
_WIDTH = 0.7
_MATTERS = 1e-3  # a class below this probability at its best is left aside
_BATCHES = 10  # of a chain; draws that depend on each other for longer count as 10 or fewer
_OPEN = 0.02  # a probability may be anywhere in an interval of this width, and no wider


class MonteCarloWarning(Facts, UserWarning):
    """There are too few posterior draws for some rows: their estimates are unreliable."""


class MonteCarlo(NamedTuple):
    """Estimates from draws for N rows and C classes, and how far they can be trusted.

    A row that no class can produce under any draw has ``log_joint`` -inf, probability 0 and
    ``mcse`` inf.
    """

    log_joint: Array  # (N, C) log p(y = c, x)
    probability: Array  # (N, C) p(y = c | x)
    mcse: Array  # (N, C) Monte Carlo standard error of `probability`
    weight_ess: Array  # (N, C) number of draws that the mean of p(x | theta_c) rests on
    upper: Array  # (N, C) what `log_joint` may be: itself where `weight_ess` is enough

    def density_in_doubt(self) -> Array:
        """Return (N,) whether the density of a class that matters rests on too few draws."""
        high = log_softmax(self.upper)  # NaN in an impossible row: no doubt
        return ((self.upper > self.log_joint) & (high > np.log(_MATTERS))).any(axis=1)

    def probability_in_doubt(self) -> Array:
        """Return (N,) whether the log joint densities in their ranges leave p(y | x) open by 0.02.

        Where a class is certain whatever its density, its probability is not in doubt.
        """
        low, high = self.log_joint.T, self.upper.T
        with np.errstate(invalid="ignore"):  # of an impossible row
            most = expit(high - log_sum_of_others(low))
            least = expit(low - log_sum_of_others(high))
            return np.asarray((most - least > _OPEN).any(axis=0))


def refuse_few_draws(chain_length: int) -> None:
    """Raise a ValueError where autocorrelations cannot be estimated."""
    if chain_length < _FEWEST_DRAWS:
        raise ValueError(
            f"the posterior has {chain_length} draw(s) in a chain; {_FEWEST_DRAWS} or more are "
            "needed to estimate the Monte Carlo error"
        )


def warn_in_doubt(result: MonteCarlo, quantity: Quantity) -> None:
    """One `MonteCarloWarning` for all rows whose `quantity` cannot be trusted."""
    doubt = result.density_in_doubt() if quantity == "density" else result.probability_in_doubt()
    if not doubt.any():
        return
    rows = np.flatnonzero(doubt)
    ess = np.where(result.upper > result.log_joint, result.weight_ess, np.inf)[rows].min(axis=1)
    worst = rows[ess.argmin()]
    what = "log densities" if quantity == "density" else "class probabilities"
    warn(
        MonteCarloWarning(
            f"posterior draws are too few for the {what} of {len(rows)} of {len(doubt)} row(s), "
            "and their Monte Carlo error is larger than it says. The worst row",
            f", rests on {ess.min():.1f} draws, where {_ENOUGH:g} are enough. The number needed "
            "grows exponentially with the variance of log p(x | theta): more draws help little",
            row=worst,
            advice="use the closed form where there is one (the classifier before with_posterior)",
            place=", at position {}",
        ),
    )


def smoothed_weights(log_ratios: Array) -> tuple[Array, Array]:
    """Smooth (n, S) log importance ratios of draws; return (n, S) log weights and k (n,).

    Where the largest ratios are equal, as of draws that do not move, or draws are fewer than five,
    or ratios differ so much that the fit overflows, there is no tail to fit: k is infinite, and the
    ratios are the weights.
    """
    from arviz_stats.base import array_stats

    weights, k = log_softmax(log_ratios), np.full(len(log_ratios), np.inf)
    for i, row in enumerate(log_ratios if log_ratios.shape[1] >= _FEWEST_OF_A_TAIL else ()):
        with np.errstate(all="ignore"), suppress(ValueError):
            smoothed, shape = array_stats.psislw(-row)
            if not (np.isnan(shape) or np.isnan(smoothed).any()):
                weights[i], k[i] = smoothed, shape
    return weights, k


def largest_good_k(n_draws: int) -> float:
    """Pareto k up to which importance weights of so many draws can be trusted.

    Source: Vehtari et al. (2024), Pareto smoothed importance sampling, section 3.2.4.
    """
    return float(min(1 - 1 / np.log10(max(n_draws, 11)), 0.7))


def warn_large_k(pareto_k: Array, n_draws: int) -> None:
    """One `MonteCarloWarning` for all training rows whose leave-one-out estimate is in doubt."""
    limit = largest_good_k(n_draws)
    doubt = pareto_k > limit
    if doubt.any():
        warn(
            MonteCarloWarning(
                f"for {int(doubt.sum())} of {len(doubt)} training rows the draws cannot tell what "
                f"their score is without the row (Pareto k above {limit:.2f}; the largest, "
                f"{pareto_k.max():.2f}",
                "): more draws help little",
                row=pareto_k.argmax(),
                advice="use the closed form where there is one",
                place=", at position {}",
            ),
        )


def log_densities(
    family: Family, theta: Theta, X: Matrix, n_classes: int, quantity: Quantity = "density"
) -> Iterator[tuple[slice, Array]]:
    """Yield rows and their (chain, draw, n, C) log densities, in blocks of rows and of draws.

    All draws of a row are held at once, which its autocorrelations need; the parameters of
    only some draws are in the family's hands at a time. The caller may overwrite a block. For
    the ``"probability"`` of classes a term that they have in common may be left out.
    """
    density = score(family, quantity)
    theta = {name: np.asarray(theta[name]) for name in family.params}
    lead = next(iter(theta.values())).shape[:2]
    n_draws = int(np.prod(lead))
    flat = {name: value.reshape(n_draws, *value.shape[2:]) for name, value in theta.items()}
    size = sum(value[0].size for value in flat.values())  # of one theta
    # what a family derives from theta it derives once per block: no fewer rows than that is worth
    numbers = max(BLOCK, n_draws * size // 8)
    for rows in row_blocks(X.shape[0], n_draws * n_classes, numbers):
        f = np.empty((n_draws, rows.stop - rows.start, n_classes))  # ours, to be overwritten
        for draws in row_blocks(n_draws, size, BLOCK):
            f[draws] = density(X[rows], {k: v[draws] for k, v in flat.items()})
        if np.isnan(f.min()):
            raise no_density(f, X, rows.start)
        yield rows, f.reshape(*lead, *f.shape[1:])


def no_density(f: Array, X: Matrix, first_row: int) -> InputError:
    """Return what to raise where (s, n, C) log densities of X from `first_row` on are NaN."""
    draw, row, c = np.argwhere(np.isnan(f))[0]
    row += first_row
    why = "the draws are no parameters of this family"
    if has_gap(X, row):
        why = MISSING_WITHOUT_DENSITY
    what = f"log p(x | theta) is NaN for draw {draw}"
    return InputError(what, f", class {c}: {why}", row=row, place=", row {}")


MISSING_WITHOUT_DENSITY = (
    "the row has a missing cell (NaN), which the family's log density must leave out; or let its "
    "class variable `missing` say why NaN is refused"
)


def has_gap(X: Matrix, row: int) -> bool:
    """Return whether a row has a missing cell; of documents there is none."""
    return X.dtype.kind == "f" and has_nan(X[[row]])


def _of_block(f: Array, log_pi: Array) -> tuple[Array, ...]:
    """Return the fields of `MonteCarlo` from (n, C, chain, draw) log densities."""
    draws = (-2, -1)
    top = f.max(axis=draws)
    shift = np.where(np.isfinite(top), top, 0.0)
    weight = np.exp(f - shift[..., None, None])
    mean = weight.mean(axis=draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = log_pi + shift + np.log(mean)
        spread = error_of_mean(weight) / mean
    weight_ess = np.where(mean > 0, 1 / (spread**2 + 1 / (f.shape[-2] * f.shape[-1])), 0.0)
    upper = joint.copy()
    if (poor := (weight_ess < _ENOUGH) & np.isfinite(joint)).any():
        possible_draws = np.where(np.isfinite(f[poor]), f[poor], np.nan)
        upper[poor] += _WIDTH * np.nanstd(possible_draws, axis=draws) / np.sqrt(weight_ess[poor])

    # one shift of a row for all its classes; `most` is that of the largest R
    most = np.max(log_pi + top, axis=1, keepdims=True)
    possible = np.isfinite(most)
    scale = np.exp(np.where(possible, log_pi + top - np.where(possible, most, 0.0), -np.inf))
    total = np.where(possible, (scale * mean).sum(axis=1, keepdims=True), 1.0)
    probability = scale * mean / total
    ratio = weight * (scale / total)[..., None, None]
    influence = ratio - probability[..., None, None] * ratio.sum(axis=1, keepdims=True)
    mcse = np.where(possible, error_of_mean(influence), np.inf)
    return joint, probability, mcse, weight_ess, upper


def error_of_mean(series: Array) -> Array:
    """Return (...,) standard errors of means over (..., chain, draw), by means of batches."""
    refuse_few_draws(series.shape[-1])
    size = max(1, series.shape[-1] // _BATCHES)
    n = series.shape[-1] // size
    batches = series[..., : n * size].reshape(*series.shape[:-1], n, size).mean(axis=-1)
    spread: Array = batches.std(axis=(-2, -1), ddof=1)
    return spread / np.sqrt(n * series.shape[-2])


def effective_sample_size(series: Array) -> Array:
    """Return (...,) effective sample sizes of the means of (..., chain, draw), by ArviZ."""
    from arviz_stats.base import array_stats

    refuse_few_draws(series.shape[-1])
    sizes: Array = array_stats.ess(series, chain_axis=-2, draw_axis=-1, method="mean")
    return sizes


_SAME = 1e-10  # spread of a log likelihood over draws that is rounding


@dataclass(frozen=True, eq=False)
class DrawnPosterior(Posterior):
    """Draws of theta.

    Parameters
    ----------
    prior : ClassModel
    model : ClassModel
        A posterior whose family scores the draws: the one in closed form, or that of a pilot fit.
        Of its hyper-parameters only those matter on which theta is silent: a category never seen,
        columns left out, the contexts of a language model.
    stats : ClassStats
        Behind `model`.
    theta : {name: (chain, draw, *dims)}
    exact_weights : bool
        Whether `model` has the exact posterior of the class weights, independent of theta, and of
        columns with a closed form. False if some training rows had no label: then pi and theta are
        dependent, and pi is drawn; and of draws that the user gave.
    """

    prior: ClassModel
    model: ClassModel
    stats: ClassStats
    theta: Theta
    exact_weights: bool = True

    drawn: ClassVar[bool] = True
    members = ()

    @property
    def n_draws(self) -> int:
        """Return the number of draws of all chains."""
        return int(np.prod(self.shape))

    def with_draws(self, theta: Theta, exact_weights: bool) -> Self:
        """Return the same with other draws."""
        is_known = np.isfinite(self.model.alpha).all()  # NaN: a prior that only draws know
        return replace(self, theta=theta, exact_weights=exact_weights and bool(is_known))

    def at(self, theta: Theta) -> Self:
        """Return the same with one draw, which is then its mean."""
        return replace(self, theta={name: value[None, None] for name, value in theta.items()})

    def refuse_invalid(self) -> None:
        """Raise a ValueError for draws from a file under which a row has no density."""
        if not self.model.generative:
            return  # any coefficients will do
        weights = self.theta[CLASS_WEIGHTS]
        if np.any(weights < 0) or not np.allclose(weights.sum(axis=-1), 1, rtol=1e-6):
            raise ValueError(f"{CLASS_WEIGHTS!r} of the posterior are no probabilities")
        with np.errstate(all="ignore"):
            flat = {k: v.reshape(-1, *v.shape[2:])[:1] for k, v in self.theta.items()}
            codes = np.zeros(1, dtype=int)
            row = self.model.family.simulate(np.random.default_rng(0), flat, codes)
            for _, joint in log_densities(self.model.family, self.theta, row, weights.shape[-1]):
                if np.isnan(joint).any():
                    raise ValueError("a draw of the posterior is no parameter of the model")

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of chains, and of draws of each."""
        return draw_shape(self.model.family, self.theta)

    def class_weights(self, method: Method = "posterior_predictive") -> Array:
        """Return (C,) p(y = c); the mean of the draws, where these are all that is known of it."""
        if self.exact_weights or not self.model.generative:
            return self.model.class_weights(method, self.stats)
        weights: Array = self.theta[CLASS_WEIGHTS].mean(axis=(0, 1))
        return weights

    def _predictive(self, X: Matrix, class_prior: Array | None, quantity: Quantity) -> Array:
        """Average over draws; one draw is its own mean.

        Warns
        -----
        MonteCarloWarning
            Where the average cannot be trusted for what `quantity` says: draws too few for a
            density may be plenty for the probability of a class that is certain.
        """
        if self.n_draws == 1:
            return self._plugged_in(X, "posterior_mean", class_prior, quantity)
        result = self.monte_carlo(X, class_prior)
        warn_in_doubt(result, quantity)
        return result.log_joint

    def monte_carlo(self, X: Matrix, class_prior: Array | None = None) -> MonteCarlo:
        """Return the posterior predictive with its Monte Carlo error.

        The class weights are integrated exactly where that is possible. Where they are drawn, and
        depend on theta, pi_c p(x | theta_c) is averaged.

        Raises
        ------
        ValueError
            If a chain has fewer than 4 draws.

        Examples
        --------
        A row (1, 1) after one such row of the first class and twelve others: exactly 0.348987.

        >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
        >>> ones, zeros = np.array([[2.0, 2], [5, 5]]), np.array([[1.0, 1], [9, 9]])
        >>> model = ClassModel(np.array([2.0, 13.0]), BetaBernoulli(ones, zeros))
        >>> draws = model.draw(np.random.default_rng(0), 4000)
        >>> theta = {k: value.reshape(4, 1000, *value.shape[1:]) for k, value in draws.items()}
        >>> result = DrawnPosterior(model, model, None, theta).monte_carlo(np.array([[1, 1]]))
        >>> float(result.probability[0, 0]), float(result.mcse[0, 0])
        (0.3485, 0.0026)
        """
        weights = self._known_weights if class_prior is None else class_prior
        one = np.ones(n_classes := len(self.model.alpha))
        log_pi = log_weights(one if weights is None else weights)
        parts = []
        blocks = log_joint_blocks(
            self.model.family, self.theta, X, None if weights is None else one
        )
        for _, f in blocks:
            for rows in row_blocks(f.shape[2], f.size // f.shape[2], _SLICE):
                # (n, C, chain, draw): every sum below is over the last axes
                block = np.ascontiguousarray(np.moveaxis(f[:, :, rows], (0, 1), (2, 3)))
                parts.append(_of_block(block, log_pi))
        if not parts:
            return MonteCarlo(*(np.empty((0, n_classes)) for _ in MonteCarlo._fields))
        return MonteCarlo(*map(np.concatenate, zip(*parts, strict=True)))

    @property
    def _known_weights(self) -> Array | None:
        """Return (C,) class weights that are integrated exactly; None where they are drawn."""
        if self.exact_weights or not self.model.generative:
            return self.model.mean_weights()
        return None

    def log_loss_error(self, X: Matrix, codes: Array) -> float:
        """Return the Monte Carlo standard error of the mean of -log p(y_i | x_i).

        All rows share the draws, so the influence of a draw is summed over rows before its
        variance is taken. It is that of a ratio of means, see the head of this file.
        """
        influence = np.zeros(self.shape)
        blocks = log_joint_blocks(self.model.family, self.theta, X, self._known_weights)
        for rows, joint in blocks:
            of_label = joint[:, :, np.arange(joint.shape[2]), codes[rows]]
            for sign, log_density in ((-1, of_label), (1, log_sum_exp(joint))):
                with np.errstate(invalid="ignore"):  # a row that is impossible: NaN
                    scaled = np.exp(log_density - log_density.max(axis=(0, 1)))
                    influence += sign * (scaled / scaled.mean(axis=(0, 1))).sum(axis=2)
        return float(error_of_mean(influence) / X.shape[0])

    def log_joint_draws(self, X: Matrix, request: DrawRequest) -> JointDraws:
        """Return the draws that there are, or some of them, evenly spaced along each chain."""
        n_draws, class_prior = request.n_draws, request.class_prior
        theta, (chains, length) = self.theta, self.shape
        if n_draws is not None and n_draws < chains * length:
            kept = np.linspace(0, length - 1, max(1, n_draws // chains)).astype(int)
            theta, length = {k: v[:, kept] for k, v in theta.items()}, len(kept)
        blocks = log_joint_blocks(self.model.family, theta, X, class_prior, "probability")
        shape = chains, length, X.shape[0], len(self.model.alpha)
        return JointDraws(blocks, shape, independent=False)

    def _as_it_is(self, X: Matrix) -> Array:
        """Average over draws however few they are, as `without_each` does."""
        log_joint = np.empty((X.shape[0], len(self.model.alpha)))
        for rows, draws in log_joint_blocks(self.model.family, self.theta, X, self._known_weights):
            joint = draws.reshape(-1, *draws.shape[2:])
            log_joint[rows] = log_sum_exp(joint, axis=0) - np.log(len(joint))
        return log_joint

    def without_each(
        self, X: Matrix, codes: Array, weight: Array, groups: Array | None = None
    ) -> tuple[Array, Array]:
        """By Pareto-smoothed importance sampling.

        A draw has the weight of one over the likelihood of the row under it (Vehtari et al. 2017).
        A row that is as likely under every draw (no observed cell) keeps every draw: its k is -inf.
        Whole groups cannot leave: their importance weights would rest on few draws.

        Warns
        -----
        MonteCarloWarning
            Where k is too large for the estimate to be trusted (`largest_good_k`).
        """
        exact = self.exact_weights and self.model.generative
        log_joint, k = np.empty((X.shape[0], len(self.model.alpha))), np.empty(X.shape[0])
        moving = any(np.ptp(v.reshape(-1, *v.shape[2:]), axis=0).any() for v in self.theta.values())
        weights = np.ones(len(self.model.alpha)) if exact else None
        for rows, draws in log_joint_blocks(self.model.family, self.theta, X, weights):
            joint = draws.reshape(-1, *draws.shape[2:])  # (S, n, C)
            of_label = joint[:, np.arange(joint.shape[1]), codes[rows]].T
            log_likelihood = weight[rows, None] * of_label
            log_w, k[rows] = smoothed_weights(-log_likelihood)
            with np.errstate(invalid="ignore"):  # impossible under every draw
                says_nothing = np.ptp(log_likelihood, axis=1) < _SAME
            if moving:
                log_w[says_nothing], k[rows][says_nothing] = -np.log(len(joint)), -np.inf
            log_joint[rows] = log_sum_exp(log_w.T[:, :, None] + joint, axis=0)
        if exact:
            log_joint += self.log_class_weights(codes, weight)
        warn_large_k(k, self.n_draws)
        return log_joint, k

    def draw(self, rng: np.random.Generator, draws: int, chains: int) -> Theta:
        """Return the draws that there are, whatever is asked for."""
        return self.theta

    def simulate(
        self, rng: np.random.Generator, n: int, codes: Array | None, one_theta: bool
    ) -> tuple[Matrix, Array]:
        """New rows and their class codes (n,).

        A row of a given class has a theta drawn with weight pi_c: class weights and theta are
        dependent where labels were missing in training.
        """
        family = self.model.family
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in self.theta.items()}
        pi = flat[CLASS_WEIGHTS]
        if one_theta:
            s = int(rng.integers(len(pi)))
            one = {k: v[s] for k, v in flat.items()}
            if codes is None:
                codes = rng.choice(pi.shape[1], size=n, p=pi[s] / pi[s].sum())
            return family.simulate(rng, one, codes), codes
        if codes is None:
            which = rng.integers(len(pi), size=n)
            codes = np.argmax(log_weights(pi[which]) + rng.gumbel(size=(n, pi.shape[1])), axis=1)
        else:
            which = np.empty(n, dtype=np.int64)
            for c in np.unique(codes):
                own_rows = np.flatnonzero(codes == c)
                which[own_rows] = rng.choice(
                    len(pi), size=len(own_rows), p=pi[:, c] / pi[:, c].sum()
                )
        return family.simulate(rng, {k: v[which] for k, v in flat.items()}, codes), codes

    def estimate(self, method: Method) -> Theta:
        """Mean over chains and draws; a maximum is refused, as draws do not tell it."""
        if method != "posterior_mean":
            raise UndefinedEstimateError(
                method,
                "the posterior is known by draws, which do not tell a maximum",
                advice="use method='posterior_predictive' or 'posterior_mean', or a fit in closed "
                "form",
            )
        for name in self.model.family.positions:
            value = np.asarray(self.theta[name])
            if (value != value[:1, :1]).any():
                raise UndefinedEstimateError(
                    method,
                    f"{name} differ from draw to draw, and positions have no mean",
                    advice="method='posterior_predictive' averages over them",
                )
        return {name: np.asarray(value).mean(axis=(0, 1)) for name, value in self.theta.items()}


def log_joint_blocks(
    family: Family,
    theta: Theta,
    X: Matrix,
    class_weights: Array | None = None,
    quantity: Quantity = "density",
) -> Iterator[tuple[slice, Array]]:
    """Yield (rows, (chain, draw, n, C) log p(c, x_i | theta)) in blocks of rows.

    Parameters
    ----------
    family : Family
    theta : {name: (chain, draw, *dims)}
    X : (N, D)
    class_weights : (C,), optional
        In place of those of the draws.
    quantity : {"density", "probability"}
        As in `log_densities`.
    """
    if class_weights is None:
        log_pi = log_class_weights(family, theta)[..., None, :]
    else:
        log_pi = log_weights(class_weights)[None]
    for rows, density in log_densities(family, theta, X, log_pi.shape[-1], quantity):
        density += log_pi
        yield rows, density
