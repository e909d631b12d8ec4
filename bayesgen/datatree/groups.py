"""What each posterior draw says of given rows: the groups that ArviZ criticises a model by.

Likelihoods are computed and rows are replicated by the families' own NumPy code, for draws from
the closed form and from NUTS alike.

Shapes: theta is {name: (chain, draw, *dims)} with the class weights; results (chain, draw, N).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.datatree import tree
from bayesgen.families.capabilities import ThetaDensity, require
from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CHAIN, CLASS_WEIGHTS, DRAW, FEATURE, OBS
from bayesgen.families.shared.densities import log_dirichlet_density
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_sum_exp, log_sum_of_others
from bayesgen.posterior.drawn import log_joint_blocks
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import ClassModel, draw_shape, log_weights

if TYPE_CHECKING:
    import xarray as xr

_BYTES = 4 << 30  # a group that would be larger is refused
OF_ROWS = (
    tree.POSTERIOR_PREDICTIVE,
    tree.LOG_LIKELIHOOD,
)  # made of rows unless other groups are asked for
Variables = dict[str, tuple[tuple[str, ...], Array]]  # {name: (dims, values)}


class CodedRows(NamedTuple):
    """Labelled rows, encoded: X (N, D) as the family takes it, class codes y (N,)."""

    X: Any
    y: Array


class Asked(NamedTuple):
    """Which groups are to be made, of what."""

    names: list[str]  # among `tree.REQUESTS`
    replicate: Sequence[str]  # what the predictive groups hold; indicators have likelihoods too
    rows: CodedRows | None
    classes: Array  # (C,) labels, which name the indicators

    @property
    def indicators(self) -> Array:
        """Return the classes (C,) that have an indicator, or none of them."""
        return self.classes if tree.INDICATORS in self.replicate else self.classes[:0]

    @property
    def with_label(self) -> bool:
        """Return whether labels are replicated."""
        return bool({tree.LABEL, tree.INDICATORS} & {*self.replicate})

    @property
    def with_x(self) -> bool:
        """Return whether features are replicated."""
        has_table = self.rows is not None and _is_table(self.rows.X)
        return has_table and tree.FEATURES in self.replicate


def asked_for(
    groups: Sequence[str] | None, replicate: Sequence[str], rows: CodedRows | None, classes: Array
) -> Asked:
    """Check, before any work, which groups are to be made; None: `OF_ROWS`, if there are rows."""
    if groups is None:
        names = [] if rows is None else list(OF_ROWS)
    else:
        names = [groups] if isinstance(groups, str) else list(groups)
    variables = [replicate] if isinstance(replicate, str) else list(replicate)
    unknown = sorted(set(names) - set(tree.REQUESTS))
    if unknown:
        raise ValueError(f"groups must be of {', '.join(tree.REQUESTS)}; got {unknown}")
    if set(variables) - {tree.LABEL, tree.INDICATORS, tree.FEATURES} or isinstance(replicate, str):
        raise ValueError(
            f"replicate must be a sequence of 'label', 'indicators' and 'x', got {replicate!r}"
        )
    wrong = [str(c) for c in classes if tree.INDICATORS in variables and "/" in str(c)]
    if wrong:
        raise ValueError(
            f"'indicators' names a variable of a DataTree is_<class>, which may not contain '/': "
            f"replicate ['label'], or fit to labels that call {wrong[0]!r} something else"
        )
    for name in (tree.PRIOR_PREDICTIVE, tree.POSTERIOR_PREDICTIVE, tree.LOG_LIKELIHOOD):
        if name in names and rows is None:
            raise ValueError(f"the group {name!r} is about rows: give X and y")
    return Asked(names, replicate, rows, classes)


def add_groups(
    fitted: Fitted,
    whole: "xr.DataTree",
    asked: Asked,
    theta: Theta,
    rng: np.random.Generator,
    draw_prior: Callable[[int], dict[str, Array]],
) -> None:
    """Put the groups asked for into a tree.

    Of the rows, what is replicated becomes ``observed_data``, and the rest ``constant_data``.

    Parameters
    ----------
    theta : {name: (chain, draw, *dims)}
        Posterior draws. Rows are scored and replicated by the posterior's family: what theta does
        not tell, such as a category never seen, is integrated out over the posterior.
    draw_prior : callable
        n draws from the prior, of a family that has none of its own.
    """
    made = _requested(fitted, asked, theta, rng, draw_prior)
    family = fitted.posterior.model.family
    if asked.rows is not None:
        rows: Variables = {tree.LABEL: ((OBS,), asked.rows.y)}
        observed = _indicators(rows, asked.indicators)
        if _is_table(asked.rows.X):
            rows |= _features(family, (), np.asarray(asked.rows.X))
        replicated = dict.fromkeys(rows, asked.with_x) | {tree.LABEL: asked.with_label}
        observed |= {k: v for k, v in rows.items() if replicated[k]}
        made = {tree.OBSERVED_DATA: observed, **made}
        others = tree.group({k: v for k, v in rows.items() if not replicated[k]}, fitted.coords)
        constants = whole[tree.CONSTANT_DATA].to_dataset()
        others = tree.described(others, classes=asked.classes)
        whole[tree.CONSTANT_DATA] = constants.merge(others)
    for name, variables in made.items():
        given_x = name == tree.PRIOR_PREDICTIVE and family.discriminative  # it has no class weights
        kind = tree.POSTERIOR_PREDICTIVE if given_x else name
        group = tree.group(variables, fitted.coords)
        whole[name] = tree.described(group, kind, asked.classes)


def _indicators(variables: Variables, classes: Array) -> Variables:
    """Return ``is_<class>``, 1 in rows of the class, from ``label``."""
    dims, codes = variables[tree.LABEL]
    return {tree.indicator(c): (dims, (codes == k).astype(int)) for k, c in enumerate(classes)}


def _requested(
    fitted: Fitted,
    asked: Asked,
    theta: Theta,
    rng: np.random.Generator,
    draw_prior: Callable[[int], dict[str, Array]],
) -> dict[str, Variables]:
    """Return {group: variables} of the groups asked for."""
    names, rows, posterior = asked.names, asked.rows, fitted.posterior
    prior, family, stats = posterior.prior, posterior.model.family, posterior.stats.features
    lead = draw_shape(prior.family, theta)
    _refuse_large(asked, lead, theta)
    made: dict[str, Variables] = {}
    # of the tables that theta has, where those grow with rows
    prior = replace(prior, family=prior.family.prepared(stats))
    if tree.PRIOR in names or tree.PRIOR_PREDICTIVE in names:
        n = lead[0] * lead[1]
        flat = prior.draw(rng, n) if prior.family.conjugate else draw_prior(n)
        drawn = {k: v.reshape(*lead, *v.shape[1:]) for k, v in flat.items()}
        if tree.PRIOR in names:
            free = prior.family.pymc_coordinates(drawn, stats)
            params = {k: (prior.params[k], v) for k, v in drawn.items()}
            made[tree.PRIOR] = tree.with_draws(params | free)
        if tree.PRIOR_PREDICTIVE in names and rows is not None:
            if prior.family.discriminative:
                codes = labels_given_x(rng, prior.family, drawn, rows.X)
            else:
                codes = labels(rng, drawn, len(rows.y))
            made[tree.PRIOR_PREDICTIVE] = _replicates(asked, rng, prior.family, drawn, codes, codes)
    if tree.POSTERIOR_PREDICTIVE in names and rows is not None:
        codes = labels_given_x(rng, family, theta, rows.X) if asked.with_label else rows.y
        replicates = _replicates(asked, rng, family, theta, codes, rows.y)
        made[tree.POSTERIOR_PREDICTIVE] = replicates
    if tree.LOG_LIKELIHOOD in names and rows is not None:
        scores = log_likelihood(family, theta, *rows, asked.indicators)
        made[tree.LOG_LIKELIHOOD] = _of_each_draw(scores, OBS)
    if tree.LOG_PRIOR in names:
        made[tree.LOG_PRIOR] = _of_each_draw(log_prior(prior, theta))
    return made


def _of_each_draw(density: dict[str, Array], *dims: str) -> Variables:
    return {k: ((CHAIN, DRAW, *dims), break_ties(v)) for k, v in density.items()}


def _replicates(
    asked: Asked, rng: np.random.Generator, family: Family, theta: Theta, codes: Array, y: Array
) -> Variables:
    """Return drawn labels, `codes` (chain, draw, N), and features drawn given the labels y."""
    variables: Variables = {}
    if asked.with_label:
        variables[tree.LABEL] = ((CHAIN, DRAW, OBS), codes)
        variables |= _indicators(variables, asked.indicators)
    if asked.with_x:
        assert asked.rows is not None, "features are replicated of rows"
        x = features_given_label(rng, family.given_rows(asked.rows.X), theta, y)
        variables |= _features(family, (CHAIN, DRAW), x)
    return variables


def _is_table(X) -> bool:
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"


def _features(family: Family, lead: tuple[str, ...], X: Array) -> Variables:
    """Return X (*lead, N, D), given or drawn, as the PyMC model of the rows has it.

    ``x``, or ``{block}_x`` for each of several blocks; counts and codes are integers.
    """
    if family.discriminative:
        return {"x": ((*lead, OBS, FEATURE), X)}
    variables: Variables = {}
    for columns, block, _, _, prefix in family.blocks():
        values = X[..., columns]
        if block.holds != "real" and not np.any(values % 1):  # NaN, a missing cell, is not whole
            values = values.astype(np.int64)
        variables[f"{prefix}x"] = ((*lead, OBS, f"{prefix}{FEATURE}"), values)
    return variables


def _refuse_large(asked: Asked, lead: tuple[int, ...], theta: Theta) -> None:
    """Raise ValueError for groups above `_BYTES` in all."""
    draws, rows, names = int(np.prod(lead)), asked.rows, {*asked.names}
    n_parameters = sum(np.size(value) for value in theta.values()) // draws
    each = n_parameters if names & {tree.PRIOR, tree.PRIOR_PREDICTIVE} else 0  # numbers per draw
    if rows is not None:
        n_predictive = len(names & {tree.PRIOR_PREDICTIVE, tree.POSTERIOR_PREDICTIVE})
        n_columns = rows.X.shape[1] if asked.with_x else 0
        each += len(rows.y) * n_predictive * (1 + len(asked.indicators) + n_columns)
        each += len(rows.y) * (tree.LOG_LIKELIHOOD in names) * (2 + len(asked.indicators))
    size = 8 * each * draws
    if size > _BYTES:
        raise ValueError(
            f"{', '.join(asked.names)} of {draws} draws would take {size / (1 << 30):.1f} GiB; "
            "give fewer rows, draws or `groups`"
        )


def log_likelihood(
    family: Family, theta: Theta, X: Matrix, y: Array, indicators: Iterable[object] = ()
) -> dict[str, Array]:
    """Score labelled rows, for each draw.

    ArviZ pairs a log likelihood with the observed and the replicated variable of its name: the
    one that scores ``label`` has that name, and so has each indicator's.

    Parameters
    ----------
    theta : {name: (chain, draw, *dims)}
    X, y : (N, D), (N,) class codes
    indicators : labels of all classes, or none

    Returns
    -------
    {name: (chain, draw, N)}
        ``label``, log p(y_i | x_i, theta); unless the family says nothing of x, ``joint``,
        log p(y_i, x_i | theta); for each indicator ``is_<class>``, log p(y = c | x, theta) in rows
        of the class c, log(1 - p) in the others, each to its own digits.
    """
    shape = *draw_shape(family, theta), len(y)
    names = [tree.JOINT, tree.LABEL, *map(tree.indicator, indicators)]
    scores = {name: np.empty(shape) for name in names}
    for rows, density in log_joint_blocks(family, theta, X):
        here = (..., np.arange(density.shape[-2]), y[rows])
        joint_of_label = density[here]
        with np.errstate(invalid="ignore"):  # no class can produce the row: 0/0
            others = log_sum_of_others(np.moveaxis(density, -1, 0)) if names[2:] else ()
            for c, (name, log_others) in enumerate(zip(names[2:], others, strict=True)):
                odds = density[..., c] - log_others
                scores[name][..., rows] = -np.logaddexp(0.0, np.where(y[rows] == c, -odds, odds))
            density[here] = -np.inf
            given_x = -np.logaddexp(0.0, log_sum_exp(density) - joint_of_label)  # the others' odds
        scores[tree.JOINT][..., rows] = joint_of_label
        scores[tree.LABEL][..., rows] = given_x
    if family.discriminative:
        del scores[tree.JOINT]
    return scores


def labels_given_x(rng: np.random.Generator, family: Family, theta: Theta, X: Matrix) -> Array:
    """Draw class codes (chain, draw, N) from p(y | x_i, theta) of each draw."""
    lead = draw_shape(family, theta)
    codes = np.empty((*lead, X.shape[0]), dtype=np.int64)
    for rows, density in log_joint_blocks(family, theta, X):
        # Gumbel's trick: the largest of log weights with Gumbel noise is a draw by the weights
        codes[..., rows] = np.argmax(density + rng.gumbel(size=density.shape), axis=-1)
    return codes


def features_given_label(rng: np.random.Generator, family: Family, theta: Theta, y: Array) -> Array:
    """Draw features (chain, draw, N, D) from p(x | y_i, theta) of each draw.

    `y` is (N,), or (chain, draw, N).
    """
    lead = draw_shape(family, theta)
    codes = np.broadcast_to(y, (*lead, np.shape(y)[-1]))
    draws = [
        family.simulate(rng, {k: v[draw] for k, v in theta.items()}, codes[draw])
        for draw in np.ndindex(*lead)
    ]
    return np.stack(draws).reshape(*lead, *draws[0].shape)


def labels(rng: np.random.Generator, theta: Theta, n: int) -> Array:
    """Draw class codes (chain, draw, n) from the class weights of each draw."""
    weights = log_weights(theta[CLASS_WEIGHTS])[..., None, :]
    noise = rng.gumbel(size=(*weights.shape[:-2], n, weights.shape[-1]))
    return np.argmax(weights + noise, axis=-1)


def log_prior(prior: ClassModel, theta: Theta) -> dict[str, Array]:
    """Return log prior densities {name: (chain, draw)} of class weights and features' theta."""
    density = require(prior.family, ThetaDensity, "the group 'log_prior'")
    return {
        CLASS_WEIGHTS: log_dirichlet_density(theta[CLASS_WEIGHTS], prior.alpha),
        "theta": density.log_density(theta),
    }


def break_ties(log_p: Array) -> Array:
    """Return log densities (chain, draw, ...) for a tree, not the same in all draws.

    ArviZ fits a generalised Pareto distribution to the largest differences between draws, and
    stops or returns NaN where there are none: under a flat prior, or where a row's label is
    certain. Where all draws agree to 1e-10 + 1e-12 times the density, different numbers below that
    are subtracted: far above rounding, and far below what a comparison of models can resolve.

    A limitation: such densities in a tree are not exact in their last digits, and the Pareto k of
    such a row describes the numbers subtracted, not the model. Nothing in the package reads them
    back; `log_likelihood` and `log_prior` return the exact ones.
    """
    lead = log_p.shape[:2]
    height = 1e-10 + 1e-12 * np.abs(log_p[0, 0])
    with np.errstate(invalid="ignore"):  # -inf in every draw
        same = np.ptp(log_p, axis=(0, 1)) < height
    if not same.any():
        return log_p
    spread = np.arange(lead[0] * lead[1]) * 0.6180339887498949 % 1  # no trend in it
    return log_p - spread.reshape(*lead, *(1,) * same.ndim) * np.where(same, height, 0.0)
