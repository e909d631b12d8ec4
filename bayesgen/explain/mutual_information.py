"""Which features speak of the class: mutual information, at one theta or under the posterior.

The information of theta is a number with a posterior distribution of its own, and a feature that
has nothing to say has a positive one all the same: few rows make classes look different. The
*floor* is the distribution that such a feature would show, with the same margins and class sizes.

Source: Murphy (2012), section 3.5.4; Hutter and Zaffalon (2005), Distribution of mutual information
from complete and incomplete data.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from bayesgen.datatree.tree import group, read_draws, result_table
from bayesgen.errors import refuse_below
from bayesgen.families.capabilities import FeatureInformation, NullDistribution, require
from bayesgen.families.contract import Theta
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import BOUND, CLASS_WEIGHTS, FEATURE
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import effective_sample_size
from bayesgen.posterior.fitted import fitted_of
from bayesgen.posterior.model import ClassModel, ClassStats
from bayesgen.predict.draws import IntervalRequest

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.predict.draws import KindName

_FLOOR = "the floor of mutual_information(posterior=...), which plug-ins do without,"
PlugIn = Literal["posterior_mean", "map", "mle"]


@overload
def mutual_information(
    clf: Any,
    base: float | None = None,
    method: PlugIn = "posterior_mean",
    *,
    posterior: Literal[False] = False,
    unit: Literal["bits", "nats"] | None = None,
) -> "xr.DataArray": ...


@overload
def mutual_information(
    clf: Any,
    base: float | None = None,
    method: PlugIn = "posterior_mean",
    *,
    posterior: Any,
    draws: int = 1000,
    unit: Literal["bits", "nats"] | None = None,
    prob: float | None = None,
    kind: "KindName | None" = None,
    random_state: Any = 0,
) -> "xr.Dataset": ...


def mutual_information(
    clf: Any,
    base: float | None = None,
    method: PlugIn = "posterior_mean",
    *,
    posterior: Any = False,
    draws: int = 1000,
    unit: Literal["bits", "nats"] | None = None,
    prob: float | None = None,
    kind: "KindName | None" = None,
    random_state: Any = 0,
) -> "xr.DataArray | xr.Dataset":
    r"""Return the mutual information of each feature and the class.

    :math:`I(X_j; Y) = \sum_c \pi_c \, \text{KL}(p(x_j \mid \theta_{cj}) \,\|\, p(x_j))`, with
    0 log 0 = 0.

    Parameters
    ----------
    clf : fitted classifier
    base : float, optional
        Base of the logarithm; default 2, bits.
    method : {"posterior_mean", "map", "mle"}
        Estimate of theta and the class weights to plug in. I(E theta) is not E I(theta): an
        irrelevant feature has E I > 0.
    posterior : bool or xarray.DataTree, default False
        True: the posterior distribution of the information, from `draws` exact draws of class
        weights and theta, and the floor; a tree: from its draws. `method` is not used.
    draws : int
        Draws of the posterior, and of the floor.
    unit : {"bits", "nats"}, optional
        Instead of `base`.
    prob, kind
        Probability of the interval, and "eti" (equal tails) or "hdi" (shortest); default
        ``az.rcParams["stats.ci_prob"]`` and ``["stats.ci_kind"]``.
    random_state : int or numpy.random.Generator

    Returns
    -------
    xarray.DataArray
        Dim ``feature``. For `MultinomialNB` a word's share of the information that one token
        carries; for Gaussian features by quadrature; for correlated features each on its own.
    xarray.Dataset
        With `posterior`: (feature) ``mean``, ``sd``, ``mcse`` of the mean, ``interval``
        (feature, bound); ``floor``, the expected mean of a feature that is independent of the
        class, and ``floor_interval`` of its information; ``above_floor``, the posterior
        probability that the feature's information exceeds a draw of the floor: 1/2 or so where
        there is none, near 1 where there is some.

    Raises
    ------
    ValueError
        If the estimate does not exist.
    MissingCapabilityError
        For a family whose features are not columns (token sequences), and with `posterior` for a
        family of the user's own that does not draw its floor (`capabilities.NullDistribution`). A
        NotImplementedError.

    Notes
    -----
    *The floor.* Given the pooled statistics, those of the classes are drawn as if labels and
    column were independent (`capabilities.NullDistribution`); each draw is fitted, and theta drawn
    from its posterior. This is exact for any number of rows. The usual (K - 1)(C - 1)/(2N) nats of
    K values and C classes is a limit, and leaves out that chance also moves the estimate: for many
    rows the floor tends to (K - 1)(C - 1)/N.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
    >>> clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
    >>> mutual_information(clf, method="mle").values.round(6)
    array([0.113579, 0.113579])
    >>> table = mutual_information(clf, posterior=True, unit="nats", prob=0.9)
    >>> table["mean"].values.round(2), table["floor"].values.round(2)
    (array([0.04, 0.04]), array([0.03, 0.03]))
    """
    import xarray as xr

    fitted = fitted_of(clf, "mutual_information")
    if method not in ("posterior_mean", "map", "mle"):
        raise ValueError(
            f"method must be 'posterior_mean', 'map' or 'mle', got {method!r}: the information "
            "is that of one theta"
        )
    base, scale = _base(base, unit)
    names = fitted.feature_names
    if posterior is not False and posterior is not None:
        sampled = None
        if posterior is not True:
            sampled = read_draws(posterior, clf.model_.params, fitted.coords)
        request = IntervalRequest.of(prob, kind)
        dataset = _posterior(clf, sampled, draws, request, random_state, scale)
        title = "mutual information of each feature and the label"
        return result_table(dataset.assign_attrs(base=base), title)
    try:
        theta = clf.model_.estimate(method, clf.stats_)
        weights = clf.model_.class_weights(method, clf.stats_)
    except UndefinedEstimateError as error:
        raise error.renamed(clf.classes_, names) from None
    family = require(clf.model_.family, FeatureInformation, "mutual_information")
    nats = family.information(theta, weights)
    return xr.DataArray(
        nats * scale,
        dims=[FEATURE],
        coords={FEATURE: names},
        name="mutual_information",
        attrs={"base": base, "method": method},
    )


def _base(base: float | None, unit: str | None) -> tuple[float, float]:
    """Base of the logarithm, and what nats are multiplied by."""
    if unit is not None:
        if base is not None:
            raise ValueError("give base or unit, not both")
        if unit not in ("bits", "nats"):
            raise ValueError(f"unit must be 'bits' or 'nats', got {unit!r}")
        return (2.0, 1 / np.log(2.0)) if unit == "bits" else (math.e, 1.0)
    base = 2.0 if base is None else base
    if not base > 1:
        raise ValueError(f"base must be > 1, got {base}")
    return base, float(1 / np.log(base))


def _posterior(
    clf, sampled: Theta | None, draws: int, request: IntervalRequest, random_state, scale: float
) -> "xr.Dataset":
    """Return the information of each feature, and of the floor; `scale` is of one nat."""
    refuse_below(2, draws=draws)
    rng = generator(random_state)
    prior, model, stats = margins(clf.prior_, clf.model_, clf.stats_)
    require(model.family, FeatureInformation, "mutual_information")
    require(prior.family, NullDistribution, _FLOOR)  # before any work
    if sampled is None:
        bits = _information(model, _drawn(model, rng, draws), draws)
        error = bits.std(axis=0) / np.sqrt(draws)
    else:
        lead = np.shape(sampled[CLASS_WEIGHTS])[:2]
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in sampled.items()}
        bits = _information(clf.model_, iter([flat]), lead[0] * lead[1])
        by_chain = np.moveaxis(bits.reshape(*lead, -1), -1, 0)
        error = bits.std(axis=0) / np.sqrt(effective_sample_size(by_chain))
    floor = _floor(prior, model, stats, rng, draws)
    bits, floor, error = scale * bits, scale * floor, scale * error
    by = (FEATURE,)
    variables = {
        "mean": (by, bits.mean(axis=0)),
        "sd": (by, bits.std(axis=0)),
        "mcse": (by, error),
        "interval": ((*by, BOUND), np.stack(request.ends_of_draws(bits.T), axis=-1)),
        "floor": (by, floor.mean(axis=0)),
        "floor_interval": ((*by, BOUND), np.stack(request.ends_of_draws(floor.T), axis=-1)),
        "above_floor": (by, _exceeds(bits, floor)),
    }
    dataset = group(variables, {FEATURE: clf.fitted_.feature_names, BOUND: ["lower", "upper"]})
    return dataset.assign_attrs(prob=request.prob, kind=request.kind, draws=len(bits))


def margins(
    prior: ClassModel, model: ClassModel, stats: ClassStats
) -> tuple[ClassModel, ClassModel, ClassStats]:
    """Return the same with each feature on its own: correlated ones as independent features."""
    return (
        replace(prior, family=prior.family.margins()),
        replace(model, family=model.family.margins()),
        replace(stats, features=prior.family.margin_stats(stats.features)),
    )


def _drawn(model: ClassModel, rng: np.random.Generator, n: int):
    """Draws in blocks."""
    for rows in row_blocks(n, model.family.n_parameters()):
        yield model.draw(rng, rows.stop - rows.start)


def _information(model: ClassModel, blocks, n: int) -> Array:
    """Return (n, D) information under blocks of draws."""
    family = require(model.family, FeatureInformation, "mutual_information")
    rows = [
        family.information({k: v[s] for k, v in theta.items()}, theta[CLASS_WEIGHTS][s])
        for theta in blocks
        for s in range(len(theta[CLASS_WEIGHTS]))
    ]
    return np.stack(rows[:n])


def _floor(
    prior: ClassModel, model: ClassModel, stats: ClassStats, rng: np.random.Generator, n: int
) -> Array:
    """Return (n, D) information of features that are independent of the class."""
    null = require(prior.family, NullDistribution, _FLOOR)

    def blocks():
        for _ in range(n):
            chance = prior.family.update(null.draw_null(rng, stats.features))
            yield replace(model, family=chance).draw(rng, 1)

    return _information(model, blocks(), n)


def _exceeds(a: Array, b: Array) -> Array:
    """Return (D,) share of the pairs of draws, one of a (n, D) and one of b (m, D), with a > b."""
    return np.array(
        [
            np.searchsorted(np.sort(floor), values, side="left").mean() / len(floor)
            for values, floor in zip(a.T, b.T, strict=True)
        ]
    )
