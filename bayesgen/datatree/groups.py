"""What each posterior draw says of given rows: the groups that ArviZ criticises a model by.

Likelihoods are computed and rows are replicated by the families' own NumPy code, for draws from
the closed form and from NUTS alike.

Shapes: theta is {name: (chain, draw, *dims)} with the class weights; results (chain, draw, N).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.datatree import tree
from bayesgen.families import capabilities
from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CHAIN, CLASS_WEIGHTS, DRAW, FEATURE, OBS
from bayesgen.families.shared.densities import log_dirichlet_density
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_sum_exp, log_sum_of_others
from bayesgen.posterior.drawn import log_joint_blocks
from bayesgen.posterior.model import ClassModel, draw_shape, log_weights

if TYPE_CHECKING:
    import xarray as xr

_BYTES = 4 << 30  # a group that would be larger is refused
OF_ROWS = (
    tree.POSTERIOR_PREDICTIVE,
    tree.LOG_LIKELIHOOD,
)  # made of rows unless other groups are asked for
Variables = dict[str, tuple[tuple[str, ...], Array]]  # {name: (dims, values)}


class Rows(NamedTuple):
    """Labelled rows, encoded: X (N, D) as the family takes it, class codes y (N,)."""

    X: Any
    y: Array


class Asked(NamedTuple):
    """Which groups are to be made, of what."""

    names: list[str]  # among `tree.REQUESTS`
    replicate: Sequence[str]  # what the predictive groups hold; indicators have likelihoods too
    rows: Rows | None
    classes: Array  # (C,) labels, which name the indicators


def asked_for(
    groups: Sequence[str] | None, replicate: Sequence[str], rows: Rows | None, classes: Array
) -> Asked:
    """Groups to make, checked before any work; None: `OF_ROWS`, if there are rows."""
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
    out: "xr.DataTree",
    asked: Asked,
    made: dict[str, Variables],
    family: Family,
    theta: Theta,
    coords: tree.Coords,
) -> None:
    """Put groups into a tree; of the rows, what is replicated is observed, the rest constant."""
    _, replicate, rows, classes = asked
    say = partial(tree.described, classes=classes, discriminative=family.discriminative)
    if rows is not None:
        label, features = row_variables(family, theta, rows)
        observed = label if {tree.LABEL, tree.INDICATORS} & {*replicate} else {}
        if tree.INDICATORS in replicate:
            observed = observed | _indicators(label, classes)
        observed = observed | (features if tree.FEATURES in replicate else {})
        made = {tree.OBSERVED_DATA: observed, **made}
        rest = {k: v for k, v in (label | features).items() if k not in observed}
        constants = out[tree.CONSTANT_DATA].to_dataset()
        out[tree.CONSTANT_DATA] = constants.merge(say(tree.group(rest, coords)))
    for name, variables in made.items():
        out[name] = say(tree.group(variables, coords), name)


def _indicators(variables: Variables, classes: Array) -> Variables:
    """``is_<class>``, 1 in rows of the class, from ``label``."""
    dims, codes = variables[tree.LABEL]
    return {tree.indicator(c): (dims, (codes == k).astype(int)) for k, c in enumerate(classes)}


def row_variables(family: Family, theta: Theta, rows: Rows) -> tuple[Variables, Variables]:
    """``label``, and ``x`` if it is a dense matrix.

    `theta` as in `requested_groups`: any draws of the family's parameters.
    """
    features = _features(family, theta, (), np.asarray(rows.X)) if _is_table(rows.X) else {}
    return {tree.LABEL: ((OBS,), rows.y)}, features


def requested_groups(
    asked: Asked,
    rng: np.random.Generator,
    prior: ClassModel,
    family: Family,
    theta: Theta,
    stats: Any,
    draw_prior: Callable[[int], dict[str, Array]] | None = None,
) -> dict[str, Variables]:
    """{group: variables} of the groups asked for.

    Parameters
    ----------
    prior : ClassModel
    family : Family
        The posterior's, which scores and replicates rows at `theta`: what theta does not tell,
        such as a category never seen, is integrated out over the posterior.
    theta : {name: (chain, draw, *dims)}
        Posterior draws.
    stats : Stats
        Features' statistics of the fit: they decide on the coordinates of the PyMC model, which
        ``prior`` shares with the posterior.
    draw_prior : callable, optional
        n draws from the prior, of a family that has none of its own.
    """
    names, replicate, rows, classes = asked
    lead = draw_shape(prior.family, theta)
    indicators = classes if tree.INDICATORS in replicate else classes[:0]
    with_label = tree.LABEL in replicate or tree.INDICATORS in replicate
    with_x = rows is not None and tree.FEATURES in replicate and _is_table(rows.X)
    _refuse_large(names, lead, theta, rows, with_x, len(indicators))
    by_draw = (CHAIN, DRAW)
    out: dict[str, Variables] = {}
    prepared = prior.family.capability(capabilities.PreparedPrior)
    if prepared is not None:  # of the tables that theta has, where those grow with rows
        prior = replace(prior, family=prepared.prepared(stats))
    if tree.PRIOR in names or tree.PRIOR_PREDICTIVE in names:
        n = lead[0] * lead[1]
        drawn = prior.draw(rng, n) if draw_prior is None else draw_prior(n)
        at = {k: v.reshape(*lead, *v.shape[1:]) for k, v in drawn.items()}
        if tree.PRIOR in names:
            out[tree.PRIOR] = {k: (prior.params[k], v) for k, v in at.items()}
            own = prior.family.capability(capabilities.SamplerCoordinates)
            free = {} if own is None else own.pymc_coordinates(at, stats)
            out[tree.PRIOR] = tree.with_draws(out[tree.PRIOR] | free)
        if tree.PRIOR_PREDICTIVE in names and rows is not None:
            if prior.family.discriminative:
                codes = labels_given_x(rng, prior.family, at, rows.X)
            else:
                codes = labels(rng, at, len(rows.y))
            out[tree.PRIOR_PREDICTIVE] = (
                {tree.LABEL: ((*by_draw, OBS), codes)} if with_label else {}
            )
            if with_label:
                out[tree.PRIOR_PREDICTIVE] |= _indicators(out[tree.PRIOR_PREDICTIVE], indicators)
            if with_x:
                x = features_given_label(rng, as_long(prior.family, rows.X), at, codes)
                out[tree.PRIOR_PREDICTIVE] |= _features(prior.family, at, by_draw, x)
    if tree.POSTERIOR_PREDICTIVE in names and rows is not None:
        out[tree.POSTERIOR_PREDICTIVE] = {}
        if with_label:
            codes = labels_given_x(rng, family, theta, rows.X)
            out[tree.POSTERIOR_PREDICTIVE][tree.LABEL] = ((*by_draw, OBS), codes)
            out[tree.POSTERIOR_PREDICTIVE] |= _indicators(
                out[tree.POSTERIOR_PREDICTIVE], indicators
            )
        if with_x:
            x = features_given_label(rng, as_long(family, rows.X), theta, rows.y)
            out[tree.POSTERIOR_PREDICTIVE] |= _features(family, theta, by_draw, x)
    if tree.LOG_LIKELIHOOD in names and rows is not None:
        found = log_likelihood(family, theta, *rows, indicators=len(indicators) > 0)
        density = (
            {} if family.discriminative else {tree.JOINT: found.joint}
        )  # else nothing is said of x
        density |= {tree.LABEL: found.label}
        density |= {tree.indicator(c): v for c, v in zip(indicators, found.indicators, strict=True)}
        out[tree.LOG_LIKELIHOOD] = {k: ((*by_draw, OBS), break_ties(v)) for k, v in density.items()}
    if tree.LOG_PRIOR in names:
        out[tree.LOG_PRIOR] = {
            k: (by_draw, break_ties(v)) for k, v in log_prior(prior, theta).items()
        }
    return out


def _is_table(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"


def _features(family: Family, theta: Theta, lead: tuple[str, ...], X: Array) -> Variables:
    """X (*lead, N, D), given or drawn, as the PyMC model of the rows has it.

    ``x``, or ``{block}_x`` for each of several blocks; counts and codes are integers.
    """
    if family.discriminative:
        return {"x": ((*lead, OBS, FEATURE), X)}
    out: Variables = {}
    for columns, block, _, own, prefix in family.blocks(theta=theta):
        one = {name: own[name][0, 0] for name in block.params}
        first = X.reshape(-1, X.shape[-1])[:1, columns]
        drawing = as_long(block, first)
        drawn = drawing.simulate(np.random.default_rng(0), one, np.zeros(1, dtype=np.int64))
        values = X[..., columns]
        if drawn.dtype.kind in "iu" and values.dtype.kind not in "iu" and _is_whole(values):
            values = values.astype(np.int64)
        out[f"{prefix}x"] = ((*lead, OBS, f"{prefix}{FEATURE}"), values)
    return out


def as_long(family: Family, X: Array) -> Family:
    """The family that draws rows with the lengths or exposures of the rows X."""
    own = family.capability(capabilities.GivenRows)
    return family if own is None else own.given_rows(X)


def _is_whole(values: Array) -> bool:
    return not np.any(values % 1)  # NaN, a missing cell, is not


def _refuse_large(
    names: Sequence[str],
    lead: tuple[int, ...],
    theta: Theta,
    rows: Rows | None,
    with_x: bool,
    indicators: int,
) -> None:
    draws = int(np.prod(lead))
    parameters = sum(np.size(value) for value in theta.values()) // draws
    # {group: numbers per draw, of what}; the prior predictive rests on draws of the prior
    numbers = dict.fromkeys(
        (tree.PRIOR, tree.PRIOR_PREDICTIVE), (parameters, f"{parameters} parameters")
    )
    _refuse_above(names, numbers, draws)
    if rows is not None:
        n, cells = len(rows.y), 1 + indicators + (rows.X.shape[1] if with_x else 0)
        what = f"{n} rows" + (f", {indicators} indicators" if indicators else "")
        by_row = dict.fromkeys((tree.PRIOR_PREDICTIVE, tree.POSTERIOR_PREDICTIVE), cells)
        by_row[tree.LOG_LIKELIHOOD] = 2 + indicators
        _refuse_above(names, {k: (n * each, what) for k, each in by_row.items()}, draws)


def _refuse_above(names: Sequence[str], numbers: dict[str, tuple[int, str]], draws: int) -> None:
    for name, (each, what) in numbers.items():
        size = 8 * each * draws
        if name in names and size > _BYTES:
            raise ValueError(
                f"the group {name!r} of {what} and {draws} draws would take "
                f"{size / (1 << 30):.1f} GiB; give fewer rows or draws, or leave it out of `groups`"
            )


class LogLikelihood(NamedTuple):
    """Densities of a labelled row given theta; models are compared by the first two.

    ArviZ pairs a log likelihood with the observed and the replicated variable of its name: the
    one that scores `label` has that name, and so has each indicator's.
    """

    joint: Array  # (chain, draw, N) log p(y_i, x_i | theta)
    label: Array  # (chain, draw, N) log p(y_i | x_i, theta)
    indicators: Array  # (C, chain, draw, N) log p([y_i = c] | x_i, theta); (0, ...) unless wanted


def log_likelihood(
    family: Family, theta: Theta, X: Matrix, y: Array, indicators: bool = False
) -> LogLikelihood:
    """Score labelled rows, for each draw.

    Parameters
    ----------
    theta : {name: (chain, draw, *dims)}
    X, y : (N, D), (N,) class codes
    indicators : bool
        Whether each class has its own: log p(y = c | x, theta) in rows of the class c,
        log(1 - p) in the others, each to its own digits.
    """
    lead = draw_shape(family, theta)
    joint, label = np.empty((*lead, len(y))), np.empty((*lead, len(y)))
    each = np.empty((0, *lead, len(y)))
    for rows, density in log_joint_blocks(family, theta, X):
        if indicators and not len(each):
            each = np.empty((density.shape[-1], *lead, len(y)))
        here = (..., np.arange(density.shape[-2]), y[rows])
        own = density[here]
        with np.errstate(invalid="ignore"):  # no class can produce the row: 0/0
            for c, others in enumerate(log_sum_of_others(np.moveaxis(density, -1, 0))[: len(each)]):
                odds = density[..., c] - others
                each[c][..., rows] = -np.logaddexp(0.0, np.where(y[rows] == c, -odds, odds))
            density[here] = -np.inf
            given_x = -np.logaddexp(0.0, log_sum_exp(density) - own)  # of others against own
        joint[..., rows], label[..., rows] = own, given_x
    return LogLikelihood(joint, label, each)


def labels_given_x(rng: np.random.Generator, family: Family, theta: Theta, X: Matrix) -> Array:
    """(chain, draw, N) class codes drawn from p(y | x_i, theta) of each draw."""
    lead = draw_shape(family, theta)
    out = np.empty((*lead, X.shape[0]), dtype=np.int64)
    for rows, density in log_joint_blocks(family, theta, X):
        # Gumbel's trick: the largest of log weights with Gumbel noise is a draw by the weights
        out[..., rows] = np.argmax(density + rng.gumbel(size=density.shape), axis=-1)
    return out


def features_given_label(rng: np.random.Generator, family: Family, theta: Theta, y: Array) -> Array:
    """(chain, draw, N, D) features drawn from p(x | y_i, theta) of each draw.

    `y` is (N,), or (chain, draw, N).
    """
    lead = draw_shape(family, theta)
    codes = np.broadcast_to(y, (*lead, np.shape(y)[-1]))
    draws = [
        family.simulate(rng, {k: v[at] for k, v in theta.items()}, codes[at])
        for at in np.ndindex(*lead)
    ]
    return np.stack(draws).reshape(*lead, *draws[0].shape)


def labels(rng: np.random.Generator, theta: Theta, n: int) -> Array:
    """(chain, draw, n) class codes drawn from the class weights of each draw."""
    weights = log_weights(theta[CLASS_WEIGHTS])[..., None, :]
    noise = rng.gumbel(size=(*weights.shape[:-2], n, weights.shape[-1]))
    return np.argmax(weights + noise, axis=-1)


def log_prior(prior: ClassModel, theta: Theta) -> dict[str, Array]:
    """{name: (chain, draw)} log prior density of the class weights and of the features' theta."""
    density = capabilities.require(prior.family, capabilities.ThetaDensity, "the group 'log_prior'")
    return {
        CLASS_WEIGHTS: log_dirichlet_density(theta[CLASS_WEIGHTS], prior.alpha),
        "theta": density.log_density(theta),
    }


def break_ties(log_p: Array) -> Array:
    """Log densities (chain, draw, ...) for a tree, not the same in all draws.

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
