"""Check the methods of a family against each other and against its PyMC model.

theta is drawn from the prior of `to_pymc`. Densities are compared to digits, draws by z-scores
whose false alarm is one in a million for each check.
"""

import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.checks import closed_forms
from bayesgen.checks.closed_forms import Case, spaced
from bayesgen.checks.comparison import (
    DENSITIES,
    PARAMETERS,
    SIMULATED,
    compare,
    drawn,
    failed,
    identity,
    sentence,
    skipped,
    table,
)
from bayesgen.datatree.fit import fit_dataset, read_fit
from bayesgen.errors import placed
from bayesgen.families.capabilities import ThetaDensity
from bayesgen.families.contract import Family, Stats
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS, OBS
from bayesgen.families.shared.graph_rows import (
    at_a_point,
    declared,
    observed_log_densities,
    of_family,
    points,
)
from bayesgen.numerics.special import Array, generator
from bayesgen.posterior.model import ClassModel, ClassStats

if TYPE_CHECKING:
    import pandas as pd

_FALSE_ALARM = 1e-6
_SIMULATED = 2000  # rows of a class
_ROWS = 50  # at which densities are compared, at most
_MISSING = 0.3  # share of cells


def check_family(family: Family, X: Any, y: Any, *, random_state: int | None = 0) -> "pd.DataFrame":
    """Check a family of your own; raise an error at the first parts that disagree.

    Parameters
    ----------
    family : Family
        As `GenerativeClassifier` takes it.
    X : array (N, D)
        Rows for which the family is meant; NaN is a missing cell.
    y : (N,)
        Labels.
    random_state : int, optional

    Returns
    -------
    pandas.DataFrame
        One line for each check: ``difference``, the largest that was found, and ``allowed``. Of
        draws it is a z-score, of densities relative to their size. What cannot be compared has NaN
        and a ``note``.

    Raises
    ------
    ValueError
        If two parts of the family disagree: which, where, and both numbers.

    Notes
    -----
    Compared are: `params` and the variables that `to_pymc` returns; `log_likelihood` and PyMC's
    log density of each row in each class, with missing cells if the family takes them; many draws
    at once and one by one; rows of `simulate`, PyMC's draws, and the density of both; a file. Of a
    conjugate family also its evidence, predictive and merge; `to_pymc` given statistics of
    weighted rows and the likelihood of these rows; `draw` and PyMC's draws; `map` and `mle` and the
    densities around them; `mean` and draws.

    Examples
    --------
    >>> import bayesgen as bg
    >>> found = bg.check_family(bg.families.BetaBernoulli(), [[0, 1], [1, 1], [1, 0]], [0, 1, 1])
    >>> bool(found.loc["log_likelihood", "difference"] < 1e-8)
    True
    """
    import pandas as pd

    cells = np.asarray(X, dtype=np.float64)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    checks = {}
    with np.errstate(all="ignore"), placed(type(family).__name__):
        for name, lines in _compared(family, cells, codes, len(classes), generator(random_state)):
            results = table(lines, _FALSE_ALARM)
            for line in failed(results).itertuples():
                raise ValueError(sentence(line))
            why = results.loc[results["difference"].isna(), "note"]
            checks[name] = (
                results["difference"].abs().max(),
                results["allowed"].max(),
                "; ".join(why),
            )
    return pd.DataFrame.from_dict(checks, orient="index", columns=["difference", "allowed", "note"])


Lines = Iterable["pd.DataFrame"]


def _compared(
    family: Any, X: Array, y: Array, n_classes: int, rng: np.random.Generator
) -> Iterator[tuple[str, Lines]]:
    """Yield the lines of each check, in the order in which an error explains the next."""
    if family.conjugate:
        of_columns = family.stats(X, y, n_classes)
        family = family.resolve(of_columns)
    else:
        of_columns, family = Stats(), family.with_defaults(X, y, n_classes)
    prior = model = ClassModel(np.ones(n_classes), family)
    stats = ClassStats(np.bincount(y, minlength=n_classes) * 1.0, of_columns)
    if family.conjugate:
        model = prior.update(stats)
    features = np.arange(X.shape[1])
    coords: dict[str, Any] = {CLASS: np.arange(n_classes), FEATURE: features}
    coords[FEATURE_BIS] = features
    coords |= family.coords()
    case = Case(prior, model, stats, X, y, np.ones(len(X)), range(n_classes), coords)
    graph, tensors = declared(family, coords)
    drawn_values = [at_a_point(graph, [*tensors.values()], point) for point in points(graph)]
    thetas = [dict(zip(tensors, values, strict=True)) for values in drawn_values]
    yield "parameters", [_parameters(case, thetas[0])]
    rows = X[spaced(len(X), _ROWS)]
    complete = rows[~np.isnan(rows).any(axis=1)]
    if not family.discriminative:
        yield "log_likelihood", [_densities(case, complete)]
        yield "missing cells", _missing(case, complete, thetas[0], rng)
    yield "many draws", [_many_draws(case, rows, thetas)]
    if not family.discriminative:
        yield "simulate and to_pymc", _simulated(case, thetas, rng)
        yield "simulate and log_likelihood", [_density_of_simulated(case, thetas, rng)]
    yield "file", [_file(case, rows, thetas[0])]
    if not family.conjugate:
        return
    yield "evidence", [closed_forms.chain_rule(case)]
    yield "merge", [closed_forms.merged(case)]
    if family.capability(ThetaDensity) is not None:
        yield "densities of theta", [closed_forms.theta_densities(case)]
    if not family.discriminative:
        weight = rng.uniform(0.5, 2.0, len(X))
        stats = prior.stats(X, y, n_classes, weight)
        weighted = replace(case, model=prior.update(stats), stats=stats, weight=weight)
        yield "statistics", [closed_forms.graph_statistics(weighted)]
        yield "draw", [closed_forms.graph_draws(case)]
        yield "map and mle", closed_forms.maxima(weighted)
        yield "mean", closed_forms.means(weighted, rng)


# ---------------------------------------------------------------------------------- densities


def _parameters(case: Case, theta: Mapping[str, Array]) -> "pd.DataFrame":
    for name, dims in case.prior.family.params.items():
        expected = tuple(len(case.coords[d]) for d in dims)
        if (actual_shape := np.shape(theta[name])) != expected:
            raise ValueError(
                f"params give {name!r} the dims {dims}, shape {expected}, and to_pymc returns it "
                f"with shape {actual_shape}"
            )
    return skipped(PARAMETERS, "params", "")


def _same_densities(routes: Mapping[str, Any], what: str = "row") -> "pd.DataFrame":
    """Compare log densities (..., N, C)."""
    return identity(
        DENSITIES,
        "log p(x | y)",
        routes,
        place=lambda *place: f"{what} {place[-2]} in class {place[-1]}",
    )


def _shaped(case: Case, density: Array, lead: tuple[int, ...], n_rows: int) -> Array:
    """Return what `log_likelihood` has returned, if it has the shape that it must have."""
    wanted = (*lead, n_rows, len(case.classes))
    if np.shape(density) != wanted:
        raise ValueError(
            f"log_likelihood of {n_rows} rows and draws of theta with leading axes {lead} has "
            f"shape {np.shape(density)}, not (*axes, rows, classes) = {wanted}"
        )
    return np.asarray(density)


def _densities(case: Case, X: Array, what: str = "row") -> "pd.DataFrame":
    """Compare `log_likelihood` with PyMC's log density of every row in every class."""
    from pymc.exceptions import ImputationWarning

    family, n_classes = case.prior.family, len(case.classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImputationWarning)
        model, tensors = declared(family, case.coords, X, np.zeros(len(X), dtype=np.int64))
    unknown = [v.name for v in model.free_RVs if v.name.endswith("_unobserved")]
    if unknown:
        why = f"to_pymc has missing cells as the variable {unknown[0]!r}"
        return skipped(DENSITIES, "log p(x | y)", why)
    if len(model.observed_RVs) != 1:
        raise ValueError("to_pymc must observe rows as one variable, with dims (obs_id, feature)")
    log_densities = observed_log_densities(model)
    by_family, by_graph = [], []
    for point in points(model):
        values = at_a_point(model, [*tensors.values()], point)
        theta = dict(zip(tensors, values, strict=True))
        by_family.append(_shaped(case, family.log_likelihood(X, theta), (), len(X)))
        columns = []
        for c in range(n_classes):
            model["y"].set_value(np.full(len(X), c, model["y"].dtype))
            (cells,) = log_densities(point)
            columns.append(cells.reshape(len(X), -1).sum(axis=1))
        by_graph.append(np.stack(columns, axis=1))
    return _same_densities({"log_likelihood": by_family, "to_pymc": by_graph}, what)


def _missing(case: Case, X: Array, theta: Mapping[str, Array], rng: np.random.Generator) -> Lines:
    """Cells that are missing say nothing; some of them, as PyMC has it."""
    family = case.prior.family
    if family.missing != "marginalised":
        yield skipped(DENSITIES, "log p(x | y)", family.missing)
        return
    density = family.log_likelihood(np.full_like(X[:1], np.nan), theta)
    routes = {"log_likelihood": density, "the cells that it has": 0.0}
    yield _same_densities(routes, "row without cells")
    if family.fits_missing:
        holes = np.where(rng.random(X.shape) < _MISSING, np.nan, X)
        yield _densities(case, holes, "row with missing cells")


def _many_draws(case: Case, rows: Array, thetas: list[dict[str, Array]]) -> "pd.DataFrame":
    """Compare draws of theta side by side with one at a time."""
    family, two = case.prior.family, (thetas[0], thetas[-1])
    both = {k: np.stack([theta[k] for theta in two])[None] for k in family.params}
    together = _shaped(case, family.log_likelihood(rows, both), (1, 2), len(rows))
    alone = [family.log_likelihood(rows, theta) for theta in two]
    return _same_densities({"log_likelihood of many draws": together[0], "that of one": alone})


# ------------------------------------------------------------------------------ simulated rows


def _rows_of(case: Case, theta: Mapping[str, Array], c: int, rng: np.random.Generator) -> Array:
    rows = case.prior.family.simulate(rng, theta, np.full(_SIMULATED, c))
    return np.asarray(rows, dtype=np.float64)


def _simulated(case: Case, thetas: list[dict[str, Array]], rng: np.random.Generator) -> Lines:
    """Compare columns of `simulate`, and their density, with PyMC's draws."""
    family, n_classes, n_features = case.prior.family, len(case.classes), case.X.shape[1]
    y = np.arange(n_classes)
    each = {k: np.stack([thetas[0][k]] * len(y)) for k in family.params}
    shape = np.shape(family.simulate(rng, each, y))
    if shape != (n_classes, n_features):
        raise ValueError(
            f"simulate with one theta for each of {n_classes} rows has "
            f"shape {shape}, not (rows, columns) = {(n_classes, n_features)}"
        )
    what = SIMULATED, "simulated rows"
    if type(family).simulate is Family.simulate:
        yield skipped(*what, "simulate is that of to_pymc")
        return
    labels = [*(f"column {j} of simulated rows" for j in range(n_features))]
    labels.append("log p(x | y) of simulated rows")
    try:
        graph = of_family(family, {dim: len(names) for dim, names in case.coords.items()}, case.X)
        for theta, c in itertools.product(thetas, range(n_classes)):
            both = [
                np.column_stack([rows, family.log_likelihood(rows, theta)[:, c]])
                for rows in (
                    _rows_of(case, theta, c, rng),
                    graph.simulate(rng, theta, np.full(_SIMULATED, c)),
                )
            ]
            names = [f"{label} of class {c}" for label in labels]
            scores = compare(both[0][None], both[1])
            yield drawn(*what, names, scores, "simulate", "PyMC's draws")
    except (ValueError, NotImplementedError) as error:
        yield skipped(*what, f"PyMC cannot draw rows: {error}")


def _density_of_simulated(
    case: Case, thetas: list[dict[str, Array]], rng: np.random.Generator
) -> "pd.DataFrame":
    """Compare the overlap of rows of two classes or thetas, as either sees it."""
    kinds = list(itertools.product(thetas, range(len(case.classes))))
    log_p = []
    for theta, c in kinds:
        rows = _rows_of(case, theta, c, rng)
        every = [case.prior.family.log_likelihood(rows, other).T for other in thetas]
        log_p.append(np.concatenate(every))
    pairs = [*itertools.combinations(range(len(kinds)), 2)]
    scores = closed_forms.overlaps([(log_p[a][[a, b]], log_p[b][[a, b]]) for a, b in pairs])
    labels = [f"classes {kinds[a][1]} and {kinds[b][1]}" for a, b in pairs]
    return drawn(SIMULATED, "difference of overlaps", labels, scores, "simulate", "log_likelihood")


# -------------------------------------------------------------------------------------- files


def _file(case: Case, rows: Array, theta: Mapping[str, Array]) -> "pd.DataFrame":
    """Compare hyper-parameters and densities with those that a file holds."""
    family = case.prior.family
    coords = {**case.coords, OBS: np.arange(len(case.X))}
    fit = fit_dataset(case.prior, case.prior, case.stats, coords)
    again = read_fit(fit, type(family))[0].family
    for name, (_, value) in family.arrays().items():
        if not np.array_equal(value, restored := again.arrays()[name][1], equal_nan=True):
            raise ValueError(
                f"{name!r} is {value} and {restored} after a file was written and read"
            )
    routes = {"log_likelihood": family, "that of a file": again}
    return _same_densities({k: f.log_likelihood(rows, theta) for k, f in routes.items()})
