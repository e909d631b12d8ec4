"""The posterior in closed form."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from bayesgen.families.capabilities import DensityDraws
from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.names import CLASS_WEIGHTS, Method
from bayesgen.numerics.rows import LEAST_LEFT, Matrix, class_counts, row_blocks
from bayesgen.numerics.special import Array, draw_log_gamma, log_sum_exp
from bayesgen.posterior.drawn import DrawnPosterior, no_density
from bayesgen.posterior.interface import (
    BLOCK,
    KEPT,
    DrawRequest,
    JointDraws,
    Posterior,
    Training,
    weights_of_draws,
)
from bayesgen.posterior.model import (
    ClassModel,
    ClassStats,
    Quantity,
    log_weights,
    log_weights_without,
    score,
    split_chains,
)

# ------------------------------------------------------------------------------------------------
# The posterior without some of its rows, exactly and without refitting.
#
# A posterior is a function of statistics that add up, so a row leaves as it came: a family takes it
# from its hyper-parameters (`ConjugateFamily.log_predictive_without`), and says how many digits
# that has cost. Rows that are nearly all of a sum, those of large weights, and all rows of a family
# without such a form are left out by adding up the others instead. Groups of rows are left out by
# halving the list of groups: each half is added to the rows outside, so that nothing is subtracted.
# Source: Vehtari, Gelman and Gabry (2017), section 2, for the target; Gelman et al. (2013),
# section 3.3, for the updates.


def log_predictive_without(
    family: ConjugateFamily, X: Matrix, y: Array, weight: Array
) -> tuple[Array, Array]:
    """Return the sum over blocks of columns of `ConjugateFamily.log_predictive_without`."""
    blocks = list(family.blocks())
    if not blocks:
        raise ValueError("the family has no columns")
    log_x: Any = 0.0
    left = np.ones(X.shape[0])
    for block in blocks:
        columns = X if len(blocks) == 1 else X[:, block.columns]
        # beside a row of weight 1e15 the prior is rounded off: NaN or infinity, and refitted
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_part, kept = block.family.log_predictive_without(columns, y, weight)
        log_x = log_x + log_part
        left = np.minimum(left, kept)
    return log_x, left


def leave_out_each[S: Stats](
    groups: Sequence[Array],
    stats_of: Callable[[Array], S],
    others: S,
    visit: Callable[[Array, S], None],
) -> None:
    """Call ``visit(rows, statistics of all other rows)`` for each group of rows in turn.

    Parameters
    ----------
    groups : sequence of (n,) positions of rows, without overlap
    stats_of : rows to their statistics
    others : Stats
        Of the rows that are in no group.

    Notes
    -----
    Every row is read log2(number of groups) times and statistics are only ever added.
    """
    if len(groups) == 1:
        visit(groups[0], others)
        return
    if groups:
        middle = len(groups) // 2
        halves = groups[:middle], groups[middle:]
        for half, other_half in (halves, halves[::-1]):
            more = stats_of(np.concatenate(other_half))
            leave_out_each(half, stats_of, others.merge(more), visit)


def averaged(mass: Array, joints: Array) -> Array:
    """Average class probabilities and densities of (K, N, C) log joint densities: (N, C)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mass, log_x = np.log(mass)[:, None], log_sum_exp(joints)
        log_p = np.where(np.isfinite(log_x)[..., None], joints - log_x[..., None], -np.inf)
    mean: Array = log_sum_exp(log_p + log_mass[..., None], axis=0)
    return mean + log_sum_exp(log_x + log_mass, axis=0)[:, None]


@dataclass(frozen=True, eq=False)
class ExactPosterior(Posterior):
    """Hyper-parameters of prior and posterior, and the statistics between them.

    Parameters
    ----------
    prior, model : ClassModel
        Prior and posterior of one conjugate family.
    stats : ClassStats
        Of all training rows.
    mixture : tuple of (probability, ExactPosterior)
        Whose predictives are averaged, where there are several; `model` then describes them.
    """

    prior: ClassModel
    model: ClassModel
    stats: ClassStats
    mixture: tuple[tuple[float, "ExactPosterior"], ...] = ()

    exact: ClassVar[bool] = True
    exact_weights = True
    members = ()

    def with_draws(self, theta: Theta, exact_weights: bool) -> DrawnPosterior:
        """Return the posterior as draws {name: (chain, draw, *dims)} of `params`."""
        return DrawnPosterior(self.prior, self.model, self.stats, theta, exact_weights)

    def class_weights(self, method: Method = "posterior_predictive") -> Array:
        """Return (C,) p(y = c) under a method."""
        return self.model.class_weights(method, self.stats)

    def estimate(self, method: Method) -> Theta:
        """Return the features' theta of a plug-in method."""
        return self.model.estimate(method, self.stats)

    def _predictive(self, X: Matrix, class_prior: Array | None, quantity: Quantity) -> Array:
        """Return the closed form; of a mixture, the average of its predictives."""
        if self.mixture:
            mass, parts = zip(*self.mixture, strict=True)
            joints = [component.log_joint(X, class_prior=class_prior) for component in parts]
            return averaged(np.array(mass), np.stack(joints))
        log_x = self.model.family.log_predictive(X)
        log_x += self.model.log_mean_weights(class_prior)
        return log_x

    def without_each(
        self, X: Matrix, codes: Array, weight: Array, groups: Array | None = None
    ) -> tuple[Array, Array]:
        """By the family's closed form; groups, and what costs too many digits, by refitting."""
        family, exactly = self.model.family, np.full(len(codes), -np.inf)
        if family.discriminative:
            of_groups = () if groups is None else (groups,)
            return family.log_predictive_without(X, codes, weight, *of_groups)[0], exactly
        log_x, left = log_predictive_without(family, X, codes, weight)
        log_pi = log_weights_without(self.prior.alpha, self.stats.count, codes, weight)
        log_joint = log_x + log_pi
        left = np.minimum(left, 1 - weight / self.model.alpha[codes])  # and of a class weight
        again, group = ~(left > LEAST_LEFT) | ~(log_x < np.inf).all(axis=1), np.arange(len(codes))
        if groups is not None:
            _, group, size = np.unique(groups, return_inverse=True, return_counts=True)
            again |= size[group] > 1
        rows = np.flatnonzero(again)
        if len(rows):
            rows = rows[np.argsort(group[rows], kind="stable")]
            parts = np.split(rows, np.flatnonzero(np.diff(group[rows])) + 1)
            log_joint[rows] = self.log_joint_without_groups(X, codes, weight, parts)[rows]
        return log_joint, exactly

    def log_joint_without_groups(
        self, X: Matrix, codes: Array, weight: Array, groups: Sequence[Array]
    ) -> Array:
        """Return (N, C) of rows without their group, from added statistics of all other rows.

        `groups` are positions of rows; other rows are not filled in.
        """
        log_joint = np.empty((X.shape[0], len(self.model.alpha)))

        def stats_of(rows: Array) -> ClassStats:
            return self.prior.stats(X[rows], codes[rows], len(self.model.alpha), weight[rows])

        def settle(rows: Array, stats: ClassStats) -> None:
            less = replace(self, model=self.prior.update(stats), stats=stats)
            log_joint[rows] = less.log_joint(X[rows])

        left_out = np.concatenate(groups)
        outside = np.ones(X.shape[0], dtype=bool)
        outside[left_out] = False
        if np.isclose(weight.sum(), self.stats.count.sum(), rtol=1e-9):
            others = stats_of(np.flatnonzero(outside))
        else:  # some of the training rows: what the others have added is known by subtraction
            others = self.stats.remove(stats_of(left_out))
        leave_out_each(groups, stats_of, others, settle)
        return log_joint

    def draw(self, rng: np.random.Generator, draws: int, chains: int) -> dict[str, Array]:
        """{name: (chain, draw, *dims)} independent draws of every parameter."""
        return split_chains(self.model.draw(rng, draws * chains), chains)

    def draw_features(self, rng: np.random.Generator, draws: int, chains: int) -> dict[str, Array]:
        """Return the same of the features' parameters alone, without class weights."""
        return split_chains(self.model.family.draw(rng, draws * chains), chains)

    # -- draws of the log joint densities of rows --------------------------------------------

    def log_joint_draws(self, X: Matrix, request: DrawRequest) -> JointDraws:
        """Draw log p(y = c, x_i | theta) of rows; the family says how many draws are usual.

        One theta serves all rows, and the draws of theta are kept for the next call with this seed
        if they take at most 256 MiB. Where they take more, or the family says that a row alone
        costs less (`DensityDraws`), densities are drawn row by row. A model without theta (label
        trees) is fitted again for each draw.
        """
        family, seed = self.model.family, request.seed
        n_draws = request.n_draws or family.default_draws
        shape = 1, n_draws, X.shape[0], len(self.model.alpha)
        by_row, log_pi = self._by_row, np.zeros((n_draws, shape[3]))
        if request.class_prior is not None:
            log_pi += log_weights(request.class_prior)
        elif not family.discriminative:
            rng = np.random.default_rng([seed, 1])
            # independent Gamma variables: what makes them add up to 1 is common to the classes
            log_pi = draw_log_gamma(rng, self.model.alpha, log_pi.shape)
        joint, numbers = True, BLOCK
        if family.discriminative:
            draw = partial(self._by_weights, n_draws, seed, request.training)
        elif by_row is not None and (by_row.draws_by_row or self.too_large(n_draws)):
            draw, joint = partial(by_row.draw_log_density, [seed, 2], n=n_draws), False
        else:
            draw = partial(self.draw_log_density, seed, n=n_draws)
            # what a family derives from theta it derives once per block: no fewer rows than that
            numbers = max(BLOCK, min(n_draws * self._n_parameters // 4, 8 * BLOCK))

        def blocks() -> Iterator[tuple[slice, Array]]:
            for rows in row_blocks(X.shape[0], log_pi.size, numbers):
                log_joint = draw(X[rows])
                if np.isnan(log_joint.min()):
                    raise no_density(log_joint, X, rows.start)
                yield rows, (log_joint + log_pi[:, None])[None]

        return JointDraws(blocks(), shape, joint=joint)

    def too_large(self, n_draws: int) -> bool:
        """Return whether so many draws of theta take more memory than is kept."""
        return 8 * n_draws * self._n_parameters > KEPT

    @cached_property
    def _by_row(self) -> DensityDraws | None:
        """Return the family where it draws the densities of a row on its own."""
        return self.model.family.capability(DensityDraws)

    @cached_property
    def _n_parameters(self) -> int:
        return self.model.family.n_parameters()

    @cached_property
    def _drawn(self) -> dict[str, tuple[tuple[int, int], Any]]:
        """Return what was last drawn, by kind, with its seed and number."""
        return {}

    def __getstate__(self):
        """Return what is pickled and copied: draws are made again."""
        return {k: v for k, v in vars(self).items() if k != "_drawn"}

    def _once[T](
        self, kind: str, key: tuple[int, int], made: Iterator[T], keep: bool
    ) -> Iterator[T]:
        """Yield what was last drawn by this key, else what is made; keep it for the next time."""
        if (last := self._drawn.get(kind)) and last[0] == key:
            yield from last[1]
            return
        kept = []
        for drawn in made:
            if keep:
                kept.append(drawn)
            yield drawn
        if keep:
            self._drawn[kind] = key, kept

    def _theta_parts(self, n_draws: int, seed: int) -> Iterator[Theta]:
        """Draws of theta, all of them or some at a time, always the same."""
        rng = np.random.default_rng([seed, 0])
        blocks = row_blocks(n_draws, self._n_parameters, KEPT // 8)
        parts = (self.model.family.draw(rng, draws.stop - draws.start) for draws in blocks)
        return self._once("theta", (seed, n_draws), parts, not self.too_large(n_draws))

    def draw_log_density(self, seed: int, X: Matrix, n: int) -> Array:
        """Draw (S, N, C) log p(x | theta) of rows, of all rows under the same draws of theta."""
        density, by_row = score(self.model.family, "probability"), self._by_row
        parts = [density(X, theta) for theta in self._theta_parts(n, seed)]
        log_x = np.concatenate(parts) if len(parts) > 1 else np.array(parts[0])
        if by_row is not None:  # theta itself may underflow, its logarithm does not
            lost = np.flatnonzero(np.isneginf(log_x.min(axis=0)).any(axis=1))
            if len(lost):
                log_x[:, lost] = by_row.draw_log_density([seed, 2], X[lost], n)
        return log_x

    def _by_weights(self, n_draws: int, seed: int, training: Training | None, X: Matrix) -> Array:
        """Return the predictives of fits to randomly weighted training rows."""
        fits = self.random_fits(n_draws, seed, training)
        return np.stack([fit.log_joint(X) for fit in fits])

    def random_fits(
        self, n_draws: int, seed: int, training: Training | None
    ) -> Iterator["ExactPosterior"]:
        """Fits to randomly weighted training rows, always the same; kept if they are small."""
        size = sum(value.nbytes for _, value in self.model.family.arrays().values())
        fits = self._refits(n_draws, seed, training)
        return self._once("fits", (seed, n_draws), fits, 2 * n_draws * size <= KEPT)

    def _refits(
        self, n_draws: int, seed: int, training: Training | None
    ) -> Iterator["ExactPosterior"]:
        if training is None:
            raise ValueError("draws by random weights of the training rows need these rows")
        X, codes, weight, *_ = training()
        n_classes = len(self.model.alpha)
        weights = weight * weights_of_draws(n_draws, seed, len(codes))
        families = self.prior.family.refits(X, codes, n_classes, weight, weights)
        for new, family in zip(weights, families, strict=True):
            alpha = self.prior.alpha + class_counts(codes, n_classes, new)
            yield replace(self, model=replace(self.model, alpha=alpha, family=family))

    def simulate(
        self, rng: np.random.Generator, n: int, codes: Array | None, one_theta: bool
    ) -> tuple[Matrix, Array]:
        """New rows and their class codes (n,)."""
        family = self.model.family
        if not one_theta:
            if codes is None:
                codes = _draw_codes(rng, self.class_weights("posterior_mean"), n)
            return family.simulate_predictive(rng, codes), codes
        theta = {name: value[0] for name, value in self.model.draw(rng, 1).items()}
        if codes is None:
            codes = _draw_codes(rng, theta[CLASS_WEIGHTS], n)
        return family.simulate(rng, theta, codes), codes


def _draw_codes(rng: np.random.Generator, weights: Array, n: int) -> Array:
    return rng.choice(len(weights), size=n, p=weights)
