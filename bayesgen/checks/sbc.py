r"""Simulation-based calibration: test inference over the whole prior, by either route.

Each replicate draws theta from the prior, labelled rows from theta, and L posterior draws given
the rows. If the posterior is right, theta and the draws are L+1 draws of one distribution, and
theta is any of them: for every function of parameters and rows, the rank of its value at theta
among its values at the draws is uniform on 0 .. L. An error in the prior, in the simulated rows,
in the statistics, in the update or in the sampler makes some rank not uniform.

The functions are all elements of all parameters, and the log likelihood of the rows. The latter
sees what no parameter alone can: the prior, returned as the posterior, has uniform ranks in
every parameter. Where the likelihood does not tell some parameters apart (which cluster is the
first, the sign of a loading), functions stand for them that it does (`PartlyIdentified`).

Source: Talts et al. (2018), Validating Bayesian inference algorithms with simulation-based
calibration; Modrák et al. (2023), Simulation-based calibration checking for Bayesian computation:
the choice of test quantities shapes sensitivity; for the test, `bayesgen.checks.uniformity`.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bayesgen.checks import replicates as routes
from bayesgen.checks import uniformity
from bayesgen.datatree import tree
from bayesgen.errors import refuse_below, warn
from bayesgen.families.capabilities import PartlyIdentified, PreparedPrior
from bayesgen.families.names import CLASS, CLASS_WEIGHTS
from bayesgen.families.shared.pymc_parts import by_cell
from bayesgen.io.progress import row_progress
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import effective_sample_size, log_densities
from bayesgen.posterior.fitted import fitted_of
from bayesgen.posterior.model import ClassModel, log_class_weights

if TYPE_CHECKING:
    import xarray as xr

Route = Literal["closed form", "nuts"]
Quantities = dict[str, tuple[tuple[str, ...], Array]]  # {name: (dims, (n, *dims))}

PRIOR_SBC = "prior_sbc"  # ArviZ's name for the group that plot_ecdf_pit reads
CALIBRATION = "calibration"
QUANTITY = "quantity"
LOG_LIKELIHOOD = "log_likelihood"
_BYTES = 4 << 30  # of the draws of one replicate, or of all ranks
_ENOUGH = 0.8  # effective draws per draw, below which ranks are not quite uniform


def simulation_based_calibration(
    clf: Any,
    n_rows: int = 20,
    replicates: int = 200,
    draws: int = 99,
    *,
    route: Route | None = None,
    X: Any = None,
    false_alarm: float = 0.01,
    random_state: Any = 0,
    thin: int = 5,
    progressbar: bool = True,
    **options: Any,
) -> "xr.DataTree":
    """Calibrate inference under the prior of a classifier, on rows simulated from that prior.

    Parameters
    ----------
    clf : fitted classifier, or ClassModel
        Only its prior is used, ``clf.prior_``, and its names of classes and features.
    n_rows : int
        Rows of each simulated data set. Few rows show errors in the prior's part of the posterior
        best; classes may remain empty.
    replicates : int
        Data sets.
    draws : int
        Posterior draws of each data set among which theta is ranked.
    route : {"closed form", "nuts"}, optional
        None: the closed form where there is one. NUTS compiles once (5 to 60 s), then takes a
        fraction of a second for each replicate. A family that is fitted by MCMC is sampled on
        the rows, as in a fit; if the simulated classes differ in which of them are empty, some
        families (Normal ones) are compiled for each pattern: a `class_alpha` of 10 or more
        prevents that.
    X : (M, D), optional
        Rows for a discriminative classifier, which does not model x: for each replicate n_rows of
        them are drawn with replacement and labelled. Other classifiers simulate their rows.
    false_alarm : float
        Largest probability that correct inference is refused, that is, that any p-value falls below
        `false_alarm` over the number of quantities tested (Bonferroni, which holds however
        the quantities depend on each other).
    random_state : int or numpy.random.Generator
    thin : int
        With NUTS, one of so many successive draws is kept: ranks are uniform among
        independent draws.
    progressbar : bool
    **options
        With NUTS, those of ``clf.sample_posterior``: ``tune`` (default 500), ``nuts_sampler``,
        ``target_accept`` (default: that of the classifier's ``fit``), ...

    Returns
    -------
    xarray.DataTree
        ``prior_sbc``: the probability integral transform of every quantity under its posterior,
        ``(chain, draw, *dims)`` with one draw a replicate; ``az.plot_ecdf_pit(tree)`` plots it. It
        is (rank + u)/(draws + 1), u uniform on [0, 1): exactly uniform if inference is right.

        ``calibration``: by ``quantity`` ``p_value`` (NaN: not tested, and ``note`` says why),
        ``pit_mean`` (above 1/2: posterior draws are too low) and ``pit_sd`` (above 0.289: too
        narrow), with NUTS ``ess``, the mean number of effective draws; ``threshold``, the p-value
        at which a quantity is refused; ``passed``. For people:
        ``tree["calibration"].to_dataset().to_dataframe()``.

    Warns
    -----
    UserWarning
        If the draws of NUTS are so dependent that ranks are not uniform: raise `thin`.

    Examples
    --------
    >>> import bayesgen as bg
    >>> clf = bg.BernoulliNB().fit([[0, 1], [1, 1], [1, 0], [0, 0]], ["a", "a", "b", "b"])
    >>> found = bg.simulation_based_calibration(clf, replicates=100)
    >>> found["calibration"]["passed"].item()
    True
    """
    import xarray as xr

    prior, coords = _prior_of(clf)
    refuse_below(1, n_rows=n_rows, replicates=replicates, draws=draws, thin=thin)
    if not 0 < false_alarm < 1:
        raise ValueError(f"false_alarm must lie in (0, 1), got {false_alarm!r}")
    conjugate = prior.family.conjugate
    if route is None:
        route = "closed form" if conjugate else "nuts"
    if route not in ("closed form", "nuts"):
        raise ValueError(f"route must be 'closed form' or 'nuts', got {route!r}")
    if route == "closed form" and not conjugate:
        raise ValueError(
            f"the posterior of {type(prior.family).__name__} has no closed form: use route='nuts'"
        )
    if options and route == "closed form":
        raise TypeError(f"the closed form takes no option {next(iter(options))!r}")
    X = _rows_to_label(clf, prior, X)

    rng = generator(random_state)
    spawned = rng.spawn(replicates)
    if conjugate:
        _refuse_large(max(draws, replicates), prior.family.n_parameters())
    if route == "nuts":
        accept = getattr(clf, "_target_accept", None)
        own = {} if accept is None else {"target_accept": accept}
        sampler = routes.by_nuts(prior, coords, draws, thin, own | options)
    else:
        sampler = routes.by_closed_form(prior, draws)
    thetas = routes.thetas(prior, coords, spawned)
    runs: list[_Replicate] = []
    quantities: Quantities = {}
    bar = row_progress(f"calibrating, {route}", float(replicates), progressbar)
    # threads would fight for matrices this small
    with threadpool_limits(1, user_api="blas"), bar as advance:
        for each, theta in zip(spawned, thetas, strict=True):
            rows = routes.rows(prior, each, theta, n_rows, X)
            run, quantities = _replicate(prior, theta, sampler(each, *rows), *rows, each, coords)
            runs.append(run)
            advance(len(runs), len(runs) * n_rows)
    rank, constant, ess = (np.stack(part) for part in zip(*runs, strict=True))
    pit = (rank + rng.random(rank.shape)) / (draws + 1)
    names = _element_names(quantities, coords)
    verdict = _verdict(rank, constant.all(axis=0), pit, names, draws, false_alarm)
    if route == "nuts":
        verdict["ess"] = (QUANTITY, ess.mean(axis=0))
        _warn_dependent(verdict, draws)
    transforms = tree.group(_as_variables(pit, quantities), coords)
    out = xr.DataTree.from_dict({PRIOR_SBC: transforms, CALIBRATION: verdict})
    library = options.get("nuts_sampler", "nutpie") if route == "nuts" else "bayesgen"
    out.attrs |= tree.provenance(type(prior.family).__name__, route, random_state, library)
    out.attrs |= {"n_rows": n_rows, "replicates": replicates}
    out.attrs |= {"draws": draws, "false_alarm": false_alarm}
    return out


# ----------------------------------------------------------------------------------- what is tested


def _prior_of(clf: Any) -> tuple[ClassModel, dict[str, Any]]:
    """The prior, whose theta has the same shape in every replicate, and labels of its dims."""
    known: dict[str, Any] = {}
    if isinstance(clf, ClassModel):
        prior, known = clf, clf.family.coords()
    else:
        fitted = fitted_of(clf, "simulation_based_calibration")
        prior, known = fitted.posterior.prior, fitted.coords
    prepared = prior.family.capability(PreparedPrior)
    if prepared is not None:  # theta has one shape, whatever rows are drawn
        prior = replace(prior, family=prepared.prepared(None))
    sizes = routes.sizes(prior)
    labels = {dim: known.get(dim, ()) for dim in {*sizes, *known}}
    coords = {d: np.arange(n) if len(labels[d]) != n else labels[d] for d, n in sizes.items()}
    wanted = {dim for dims in prior.params.values() for dim in dims}
    if not wanted <= {*coords, *known}:
        raise ValueError(
            f"the prior of {type(prior.family).__name__} does not give the lengths of dims "
            f"{sorted(wanted - set(coords))}: give the fitted classifier"
        )
    return prior, dict(known) | coords


def _rows_to_label(clf: Any, prior: ClassModel, X: Any) -> Any:
    """The rows of a discriminative model as its family takes them."""
    name = type(prior.family).__name__
    if not prior.family.discriminative:
        if X is not None:
            raise TypeError(f"{name} draws its own rows: leave X out")
        return None
    if X is None:
        raise ValueError(f"{name} models y given x and not x: give rows X to be labelled")
    return X if isinstance(clf, ClassModel) else clf.fitted_.read(X).encoded


def _refuse_large(n: int, n_parameters: int) -> None:
    size = 8 * (n + 1) * n_parameters
    if size > _BYTES:
        raise ValueError(
            f"{n} values of {n_parameters} parameters would take {size / (1 << 30):.1f} GiB; "
            "calibrate a classifier with fewer features"
        )


class _Replicate(NamedTuple):
    """Ranks of theta, in the order of the parameters; the log likelihood is last."""

    rank: Array  # (Q,) of 0 .. draws
    constant: Array  # (Q,) whether theta and all draws are the same
    ess: Array  # (Q,) effective draws


def _replicate(
    prior: ClassModel,
    theta: Mapping[str, Array],
    posterior: Mapping[str, Array],
    X: Any,
    y: Array,
    rng: np.random.Generator,
    coords: Mapping[str, Any],
) -> tuple[_Replicate, Quantities]:
    """Rank one theta among the posterior draws given its rows; what has been ranked."""
    both = {name: np.concatenate([value, posterior[name]]) for name, value in theta.items()}
    draws = len(next(iter(both.values()))) - 1
    quantities = {k: by_cell(*v, coords) for k, v in _quantities(prior, both).items()}
    columns = [value.reshape(draws + 1, -1) for _, value in quantities.values()]
    values = np.column_stack([*columns, _log_likelihood(prior, both, X, y)])
    below = (values[1:] < values[0]).sum(axis=0)
    ties = (values[1:] == values[0]).sum(axis=0)  # theta may come before, between or after them
    ranked = _Replicate(
        below + rng.integers(0, ties + 1),
        ties == draws,
        effective_sample_size(values[1:].T[:, None]) if draws >= 4 else np.full(len(ties), np.nan),
    )
    return ranked, quantities


def _quantities(prior: ClassModel, theta: Mapping[str, Array]) -> Quantities:
    """What is ranked, of {name: (n, *dims)}: class weights, parameters, hyper-parameters."""
    own = {} if prior.family.discriminative else {CLASS_WEIGHTS: ((CLASS,), theta[CLASS_WEIGHTS])}
    hyper = routes.hyperparameters(prior).items()
    more = {name: (dims, theta[name]) for name, dims in hyper if name in theta}
    partly = prior.family.capability(PartlyIdentified)
    if partly is not None:
        return own | partly.identified(theta) | more
    return own | {k: (d, np.asarray(theta[k])) for k, d in prior.family.params.items()} | more


def _log_likelihood(prior: ClassModel, theta: Mapping[str, Array], X: Any, y: Array) -> Array:
    """(n,) log p(y, X | theta), or log p(y | X, theta), at {name: (n, *dims)}."""
    one_chain = {name: theta[name][None] for name in prior.params}
    weights = log_class_weights(prior.family, one_chain)
    out = np.broadcast_to(weights, (1, len(theta[next(iter(theta))]), len(prior.alpha)))[0][:, y]
    total = out.sum(axis=1)
    for rows, density in log_densities(prior.family, one_chain, X, len(prior.alpha)):
        codes = y[rows]
        total += density[0][:, np.arange(len(codes)), codes].sum(axis=1)
    return total


# ---------------------------------------------------------------------------------------- verdict


def _verdict(
    rank: Array, constant: Array, pit: Array, names: list[str], draws: int, false_alarm: float
) -> "xr.Dataset":
    """Tests of (R, Q) ranks: what is `constant` has none, what has the same ranks has one."""
    import xarray as xr

    first: dict[bytes, int] = {}
    p_value, note = np.full(len(names), np.nan), np.full(len(names), "", dtype=object)
    note[constant] = "constant"
    for q in np.flatnonzero(~constant).tolist():
        # a covariance stands in its matrix twice; of two probabilities, one is 1 minus the other
        key = min(rank[:, q].tobytes(), (draws - rank[:, q]).tobytes())
        if (twin := first.setdefault(key, q)) != q:
            note[q] = f"as {names[twin]}"
    tested = list(first.values())
    p_value[tested] = uniformity.p_values(rank[:, tested], draws)
    threshold = false_alarm / max(1, len(tested))
    by = QUANTITY
    return xr.Dataset(
        {
            "p_value": (by, p_value),
            "pit_mean": (by, pit.mean(axis=0)),
            "pit_sd": (by, pit.std(axis=0)),
            "note": (by, note.astype(str)),
            "threshold": threshold,
            "passed": bool(np.all(p_value[tested] >= threshold)),
        },
        {by: names},
    )


def _as_variables(pit: Array, quantities: Quantities) -> Quantities:
    """{quantity: (dims, (chain, draw, *dims))} of (R, Q) values."""
    out, start = {}, 0
    for name, (dims, value) in quantities.items():
        part = pit[:, start : start + value[0].size]
        out[name] = (dims, part.reshape(1, len(pit), *value.shape[1:]))
        start += part.shape[1]
    return tree.with_draws(out | {LOG_LIKELIHOOD: ((), pit[None, :, start])})


def _element_names(quantities: Quantities, coords: Mapping[str, Any]) -> list[str]:
    """``mu[Adelie, bill_length_mm]``, and so on; the log likelihood is last."""
    names = []
    for name, (dims, _) in quantities.items():
        for labels in product(*(coords[dim] for dim in dims)):
            names.append(f"{name}[{', '.join(map(str, labels))}]" if dims else name)
    return [*names, LOG_LIKELIHOOD]


def _warn_dependent(verdict: "xr.Dataset", draws: int) -> None:
    """Warn where NUTS has kept draws that depend on each other."""
    ess = verdict["ess"].where(verdict["p_value"].notnull())
    if (ess < _ENOUGH * draws).any():
        worst = ess.idxmin().item()
        warn(
            f"the {draws} draws kept of {worst} are worth {ess.min().item():.0f} independent ones "
            "in the mean, so that its ranks are not quite uniform even if all is right; raise "
            "`thin`",
            UserWarning,
        )
