"""Check the methods of a family against each other and against its PyMC model.

theta is drawn from the prior of `to_pymc`. Densities are compared to digits, draws by two-sample
tests whose false alarm is one in a million for each check.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from bayesgen.checks import coherence
from bayesgen.datatree.fit import fit_dataset, read_fit
from bayesgen.families.capabilities import ThetaDensity
from bayesgen.families.contract import Family, Stats
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS, OBS
from bayesgen.families.shared.graph_rows import (
    at_a_point,
    declared,
    numpy_mode,
    of_family,
    points,
)
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel, ClassStats

if TYPE_CHECKING:
    import pandas as pd

_EXACT = 1e-8  # relative to 1 + the size of a log density
_FALSE_ALARM = 1e-6
_SIMULATED = 2000  # rows of a class
_ROWS = 50  # at which densities are compared, at most
_MISSING = 0.3  # share of cells
_DRAWS = 20_000  # of the posterior, for its mean
_THETAS = 50  # with which an estimate is compared
_STEPS = (1e-3, 0.03, 0.3)  # shares of the way from an estimate to a draw


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
        One line for each check: ``difference``, the largest that was found, and ``allowed``; of
        rows that are simulated, the smallest p-value of a two-sample test in place of a
        difference. What has no such number, or cannot be compared, has NaN and a ``note``.

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
    with np.errstate(all="ignore"):
        checks = _Checks(family, cells, codes, len(classes), generator(random_state))
        lines = dict(checks.lines())
    return pd.DataFrame.from_dict(lines, orient="index", columns=["difference", "allowed", "note"])


def contradiction_with_graph(family: Any, X: Array, y: Array, n_classes: int, weight: Array) -> str:
    """Return what contradicts `to_pymc` in the closed forms of a family; "" if nothing does.

    Parameters
    ----------
    family : ConjugateFamily
        The resolved prior.
    X, y, weight : (N, D), (N,), (N,)
        Rows as the family takes them, class codes and weights.
    """
    checks = _Checks(family, X, y, n_classes, np.random.default_rng(0))
    try:
        checks.compare_with_graph(weight)
    except ValueError as error:
        return str(error)
    return ""


Line = tuple[float, float, str]


class _Checks:
    """The checks of one family at some rows, in the order in which an error explains the next."""

    def __init__(
        self, family, X: Array, y: Array, n_classes: int, rng: np.random.Generator
    ) -> None:
        self.name, self.rng = type(family).__name__, rng
        self.X, self.y, self.n_classes = X, y, n_classes
        if family.conjugate:
            self.stats: Any = family.stats(X, y, n_classes)
            self.family: Any = family.resolve(self.stats)
        else:
            self.stats, self.family = Stats(), family.with_defaults(X, y, n_classes)
        features = np.arange(X.shape[1])
        sizes = {CLASS: np.arange(n_classes), FEATURE: features, FEATURE_BIS: features}
        self.coords = sizes | self.family.coords()
        few = np.linspace(0, len(X) - 1, min(len(X), _ROWS)).astype(int)
        self.rows, self.codes = X[few], y[few]

    def lines(self) -> Iterator[tuple[str, Line]]:
        model, tensors = declared(self.family, self.coords)
        drawn = [at_a_point(model, [*tensors.values()], point) for point in points(model)]
        self.thetas = [dict(zip(tensors, values, strict=True)) for values in drawn]
        yield "parameters", self._parameters()
        complete = self.rows[~np.isnan(self.rows).any(axis=1)]
        if not self.family.discriminative:
            yield "log_likelihood", self._densities(complete)
            missing = self.family.missing
            if missing == "marginalised":
                yield "missing cells", self._missing(complete)
            else:
                yield "missing cells", (np.nan, np.nan, missing)
        yield "many draws", self._many_draws()
        if not self.family.discriminative:
            yield "simulate and to_pymc", self._simulated()
            yield "simulate and log_likelihood", self._density_of_simulated()
        yield "file", self._file()
        if self.family.conjugate:
            yield from self._closed_form()
        if self.family.conjugate and not self.family.discriminative:
            weight = self.rng.uniform(0.5, 2.0, len(self.X))
            yield from self.compare_with_graph(weight).items()

    def compare_with_graph(self, weight: Array) -> dict[str, Line]:
        """Return the checks of statistics, draws and estimates; raise if one fails."""
        return {
            "statistics": self._statistics(np.ones(len(self.X))),
            "weights": self._statistics(weight),
            "draw": self._draw(),
            **dict(self._estimates(weight)),
        }

    def _fail(self, what: str) -> None:
        raise ValueError(f"{self.name}: {what}")

    # -- densities ---------------------------------------------------------------------------

    def _parameters(self) -> Line:
        for name, dims in self.family.params.items():
            expected = tuple(len(self.coords[d]) for d in dims)
            if (actual_shape := np.shape(self.thetas[0][name])) != expected:
                self._fail(
                    f"params give {name!r} the dims {dims}, shape {expected}, and to_pymc returns "
                    f"it with shape {actual_shape}"
                )
        return 0.0, 0.0, ""

    def _densities(self, X: Array, note: str = "") -> Line:
        """`log_likelihood` (N, C) against PyMC's log density of every row in every class."""
        import pytensor
        from pymc.exceptions import ImputationWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImputationWarning)
            codes = np.zeros(len(X), dtype=np.int64)
            model, tensors = declared(self.family, self.coords, X, codes)
        unknown = [v.name for v in model.free_RVs if v.name.endswith("_unobserved")]
        if unknown:
            return np.nan, np.nan, f"to_pymc has missing cells as the variable {unknown[0]!r}"
        if len(model.observed_RVs) != 1:
            self._fail("to_pymc must observe rows as one variable, with dims (obs_id, feature)")
        free = {v: v.type(name=v.name) for v in model.free_RVs}
        log_p = _log_p_by_cell(model, free)
        f = pytensor.function(
            [*free.values()], log_p, mode=numpy_mode("fast_compile"), on_unused_input="ignore"
        )
        gap = 0.0
        for point in points(model):
            values = at_a_point(model, [*tensors.values()], point)
            theta = dict(zip(tensors, values, strict=True))
            density = np.asarray(self.family.log_likelihood(X, theta))
            if density.shape != (len(X), self.n_classes):
                self._fail(
                    f"log_likelihood of {len(X)} rows and one theta has shape {density.shape}, not "
                    f"(rows, classes) = {(len(X), self.n_classes)}"
                )
            for c in range(self.n_classes):
                model["y"].set_value(np.full(len(X), c, model["y"].dtype))
                graph_density = f(*(np.asarray(point[v], v.dtype) for v in free))
                graph_density = graph_density.reshape(len(X), -1).sum(axis=1)
                both = "log_likelihood", "to_pymc"
                gap = max(gap, self._compare(*both, density[:, c], graph_density, c, note))
        return gap, _EXACT, ""

    def _compare(self, a: str, b: str, found: Array, other: Array, c, note: str) -> float:
        """Return the largest relative difference; raise if it is more than rounding."""
        size = 1 + np.abs(np.nan_to_num(other, neginf=0.0))
        apart = np.where(found == other, 0.0, np.abs(found - other) / size)
        apart = np.nan_to_num(apart, nan=np.inf)
        i = int(apart.argmax())
        if apart[i] > _EXACT:
            self._fail(
                f"log p(x | y) of row {i}{note} in class {c} is {found[i]:.8g} by {a}, and "
                f"{other[i]:.8g} by {b}"
            )
        return float(apart[i])

    def _missing(self, X: Array) -> Line:
        """Cells that are missing say nothing; some of them, as PyMC has it."""
        empty = np.full_like(X[:1], np.nan)
        for c in range(self.n_classes):
            density = self.family.log_likelihood(empty, self.thetas[0])[:, c]
            both = "log_likelihood", "the cells that it has"
            self._compare(*both, density, np.zeros(1), c, " without cells")
        if not self.family.fits_missing:
            return 0.0, _EXACT, "of a row without cells"
        holes = np.where(self.rng.random(X.shape) < _MISSING, np.nan, X)
        return self._densities(holes, " with missing cells")

    def _many_draws(self) -> Line:
        """Draws of theta stand side by side."""
        two = self.thetas[0], self.thetas[-1]
        both = {k: np.stack([t[k] for t in two])[None] for k in self.family.params}
        together = self.family.log_likelihood(self.rows, both)
        gap = 0.0
        for s, theta in enumerate(two):
            one = self.family.log_likelihood(self.rows, theta)
            if together.shape != (1, 2, *one.shape):
                self._fail(
                    f"log_likelihood of (1, 2) draws has shape {together.shape}, not (1, 2, rows, "
                    f"classes) = {(1, 2, *one.shape)}"
                )
            for c in range(self.n_classes):
                compared = "log_likelihood of many draws", "that of one"
                gap = max(gap, self._compare(*compared, together[0, s, :, c], one[:, c], c, ""))
        return gap, _EXACT, ""

    # -- simulated rows ----------------------------------------------------------------------

    def _rows_of(self, theta: Mapping[str, Array], c: int) -> Array:
        return np.asarray(
            self.family.simulate(self.rng, theta, np.full(_SIMULATED, c)), dtype=np.float64
        )

    def _simulated(self) -> Line:
        """Columns of `simulate`, and their density, are distributed as PyMC's draws."""
        y = np.arange(self.n_classes)
        each = {k: np.stack([self.thetas[0][k]] * len(y)) for k in self.family.params}
        shape = np.shape(self.family.simulate(self.rng, each, y))
        if shape != (len(y), self.X.shape[1]):
            self._fail(
                f"simulate with one theta for each of {len(y)} rows has shape {shape}, not (rows, "
                f"columns) = {(len(y), self.X.shape[1])}"
            )
        if type(self.family).simulate is Family.simulate:
            return np.nan, np.nan, "simulate is that of to_pymc"
        sizes = {dim: len(labels) for dim, labels in self.coords.items()}
        try:
            graph = of_family(self.family, sizes, self.X)
            by_pymc = [
                graph.simulate(self.rng, t, np.full(_SIMULATED, c))
                for t in self.thetas
                for c in range(self.n_classes)
            ]
        except (ValueError, NotImplementedError) as error:
            return np.nan, np.nan, f"PyMC cannot draw rows: {error}"
        least, tests = 1.0, len(by_pymc) * (self.X.shape[1] + 1)
        for k, theirs in enumerate(by_pymc):
            theta, c = self.thetas[k // self.n_classes], k % self.n_classes
            theta_of_class = self._rows_of(theta, c)
            pairs = [*zip(theta_of_class.T, theirs.T, strict=True)]
            density = [
                self.family.log_likelihood(rows, theta)[:, c] for rows in (theta_of_class, theirs)
            ]
            for j, (a, b) in enumerate([*pairs, tuple(density)]):
                p = stats.ks_2samp(a, b, method="asymp").pvalue
                least = min(least, float(p))
                if p < _FALSE_ALARM / tests:
                    what = f"column {j}" if j < len(pairs) else "log p(x | y)"
                    self._fail(
                        f"{what} of simulated rows of class {c} has the median {np.median(a):.6g} "
                        f"by simulate, and {np.median(b):.6g} by PyMC's draws"
                    )
        return least, _FALSE_ALARM / tests, "p-value"

    def _density_of_simulated(self) -> Line:
        """E_p[q/(p + q)] = E_q[p/(p + q)] for rows of two classes or thetas, of densities p, q."""
        kinds = [(t, c) for t in self.thetas for c in range(self.n_classes)]
        rows = [self._rows_of(t, c) for t, c in kinds]
        log_p = [
            np.concatenate([self.family.log_likelihood(x, t).T for t in self.thetas]) for x in rows
        ]
        share = {
            (a, b): (_share(log_p[a][b] - log_p[a][a]), _share(log_p[b][a] - log_p[b][b]))
            for a in range(len(kinds))
            for b in range(a)
        }
        least = 1.0
        for (a, _), (left, right) in share.items():
            mean = (left.mean() + right.mean()) / 2  # a share of this mean varies by no more
            error = np.sqrt(2 * mean * (1 - mean) / _SIMULATED)
            z = (left.mean() - right.mean()) / max(error, 1e-12)
            p = float(2 * stats.norm.sf(abs(z)))
            least = min(least, p)
            if p < _FALSE_ALARM / len(share):
                self._fail(
                    f"rows simulated in class {kinds[a][1]} say that its density overlaps another "
                    f"by {left.mean():.6g}, and rows of that other one by {right.mean():.6g}: "
                    "simulate draws from another density than log_likelihood"
                )
        return least, _FALSE_ALARM / len(share), "p-value"

    # -- files, closed forms -----------------------------------------------------------------

    def _file(self) -> Line:
        """Hyper-parameters and statistics that a file holds are those that it was given."""
        prior = ClassModel(np.ones(self.n_classes), self.family)
        count = ClassStats(np.bincount(self.y, minlength=self.n_classes) * 1.0, self.stats)
        coords = {**self.coords, OBS: np.arange(len(self.X))}
        again = read_fit(fit_dataset(prior, prior, count, coords), type(self.family))[0].family
        for name, (_, value) in self.family.arrays().items():
            if not np.array_equal(value, restored := again.arrays()[name][1], equal_nan=True):
                self._fail(f"{name!r} is {value} and {restored} after a file was written and read")
        one = self.family.log_likelihood(self.rows, self.thetas[0])
        two = again.log_likelihood(self.rows, self.thetas[0])
        gaps = [
            self._compare("log_likelihood", "that of a file", one[:, c], two[:, c], c, "")
            for c in range(self.n_classes)
        ]
        return max(gaps), _EXACT, ""

    def _closed_form(self) -> Iterator[tuple[str, Line]]:
        prior = ClassModel(np.ones(self.n_classes), self.family)
        weight = np.ones(len(self.X))
        stats = prior.stats(self.X, self.y, self.n_classes)
        posterior, classes = prior.update(stats), range(self.n_classes)
        few = np.arange(len(self.rows))
        laws: dict[str, Callable[[], Any]] = {
            "evidence": lambda: coherence.chain_rule(prior, self.rows, self.codes),
            "merge": lambda: coherence.merged(prior, stats, self.X, self.y, weight, few),
        }
        if self.family.capability(ThetaDensity) is not None:
            laws["densities of theta"] = lambda: "; ".join(
                coherence.contradictions(prior, posterior, stats, self.X, self.y, weight, classes)
            )
        for name, law in laws.items():
            if words := law():
                self._fail(words)
            yield name, (np.nan, _EXACT, "agrees")

    # -- closed forms against the graph --------------------------------------------------------

    def _log_likelihoods(self, theta: Mapping[str, Array], weight: Array) -> Array:
        """Return the log likelihood (S,) of all rows, each times its weight, at draws of theta."""
        log_p = self.family.log_likelihood(self.X, theta)
        each: Array = log_p[:, np.arange(len(self.X)), self.y]
        return each @ weight

    def _statistics(self, weight: Array) -> Line:
        """Compare `to_pymc` given statistics with the prior times the likelihood of the rows."""
        counts = self.family.stats(self.X, self.y, self.n_classes, weight)
        prior, tensors = declared(self.family, self.coords)
        summed_model, same = declared(self.family, self.coords, stats=counts)
        if {v.name for v in summed_model.free_RVs} != {v.name for v in prior.free_RVs}:
            return np.nan, np.nan, "to_pymc has other free variables given statistics"
        before, after = _log_density(prior), _log_density(summed_model)
        gaps, sizes = [], [1.0]
        for point in points(prior):
            values = at_a_point(prior, [*tensors.values()], point)
            theta = {k: np.asarray(v)[None] for k, v in zip(tensors, values, strict=True)}
            likelihood = float(self._log_likelihoods(theta, weight)[0])
            values_by_name = {v.name: value for v, value in point.items()}
            again = at_a_point(
                summed_model,
                [*same.values()],
                {v: values_by_name[v.name] for v in summed_model.free_RVs},
            )
            if not all(map(np.allclose, again, values)):
                return np.nan, np.nan, "to_pymc has other coordinates given statistics"
            gap = after(values_by_name) - before(values_by_name) - likelihood
            if np.isfinite(gap):
                gaps.append(gap)
                sizes.append(abs(likelihood))
        difference = float(np.ptp(gaps) / max(sizes)) if len(gaps) > 1 else np.nan
        if difference > _EXACT:
            self._fail(
                f"to_pymc given the statistics of rows with weights {weight.min():.3g} to "
                f"{weight.max():.3g} is not the prior times the likelihood of these rows: the logs "
                f"differ by {min(gaps):.8g} at one theta and by {max(gaps):.8g} at another. "
                "It must use stats=, and stats must use the weights"
            )
        return difference, _EXACT, ""

    def _draw(self) -> Line:
        """Compare `draw` of the prior with PyMC's draws, number by number of theta."""
        import pymc as pm

        model, tensors = declared(self.family, self.coords)
        try:
            with model:
                seed = int(self.rng.integers(2**31))
                drawn = pm.draw([*tensors.values()], draws=_SIMULATED, random_seed=seed)
        except NotImplementedError as error:
            return np.nan, np.nan, f"PyMC cannot draw theta: {error}"
        drawn_again = self.family.draw(self.rng, _SIMULATED)
        least, n_tests = 1.0, sum(np.size(value[0]) for value in drawn)
        for name, theirs in zip(tensors, drawn, strict=True):
            columns = [x.reshape(_SIMULATED, -1).T for x in (drawn_again[name], theirs)]
            for a, b in zip(*columns, strict=True):
                p = float(stats.ks_2samp(a, b, method="asymp").pvalue)
                least = min(least, p)
                if p < _FALSE_ALARM / n_tests:
                    self._fail(
                        f"{name!r} has the median {np.median(a):.6g} by draw of the prior, and "
                        f"{np.median(b):.6g} by PyMC's draws of to_pymc"
                    )
        return least, _FALSE_ALARM / n_tests, "p-value"

    def _estimates(self, weight: Array) -> Iterator[tuple[str, Line]]:
        """Compare `map` and `mle` with theta around them, and `mean` with draws."""
        counts = self.family.stats(self.X, self.y, self.n_classes, weight)
        posterior = self.family.update(counts)
        model, tensors = declared(self.family, self.coords)
        prior = _log_density(model)

        def log_posterior(thetas: Mapping[str, Array]) -> Array:
            named = {tensors[k].name: v for k, v in thetas.items()}
            each = [{k: v[s] for k, v in named.items()} for s in range(_THETAS)]
            return self._log_likelihoods(thetas, weight) + np.array([*map(prior, each)])

        def log_likelihood(thetas: Mapping[str, Array]) -> Array:
            return self._log_likelihoods(thetas, weight)

        draws = posterior.draw(self.rng, _DRAWS)
        if {*tensors.values()} == {*model.free_RVs}:
            yield "map", self._highest("map", posterior.map, log_posterior, draws)
        else:
            yield "map", (np.nan, np.nan, "theta of to_pymc is not its free variables")
        mle = self.family.mle
        yield "mle", self._highest("mle", lambda: mle(counts), log_likelihood, draws)
        yield "mean", self._mean(posterior, draws)

    def _highest(
        self,
        name: str,
        estimate: Callable[[], dict[str, Array]],
        log_density: Callable[[Mapping[str, Array]], Array],
        draws: Mapping[str, Array],
    ) -> Line:
        """Compare the density at an estimate with that between the estimate and draws."""
        try:
            highest = estimate()
        except UndefinedEstimateError as error:
            return np.nan, np.nan, str(error)
        difference = 0.0
        for step in (0.0, *_STEPS):
            # the estimate itself is evaluated first, then theta on the way to each draw
            thetas = {
                k: highest[k] + step * (draws[k][:_THETAS] - highest[k]) for k in self.family.params
            }
            log_p = log_density(thetas)
            if not step:
                at_estimate = float(log_p[0])
            gain = float(np.nanmax(log_p) - at_estimate)
            if gain > _EXACT * (1 + abs(at_estimate)):
                what = "likelihood" if name == "mle" else "posterior density"
                self._fail(
                    f"{name} has the log {what} {at_estimate:.8g}, and another theta has "
                    f"{at_estimate + gain:.8g}: it is not the highest"
                )
            difference = max(difference, gain)
        return difference, _EXACT * (1 + abs(at_estimate)), ""

    def _mean(self, posterior, draws: Mapping[str, Array]) -> Line:
        """Compare `mean` of the posterior with the average of its draws."""
        try:
            means = posterior.mean()
        except UndefinedEstimateError as error:
            return np.nan, np.nan, str(error)
        least, n_tests = 1.0, sum(np.size(means[k]) for k in self.family.params)
        for name in self.family.params:
            average = draws[name].mean(axis=0)
            spread = draws[name].std(axis=0) / np.sqrt(_DRAWS)
            z = np.abs(average - means[name]) / np.maximum(spread, 1e-12 * (1 + np.abs(average)))
            worst = np.unravel_index(int(np.argmax(z)), z.shape)
            p = float(2 * stats.norm.sf(z[worst]))
            least = min(least, p)
            if p < _FALSE_ALARM / n_tests:
                self._fail(
                    f"{name!r} has the mean {means[name][worst]:.6g} by mean, and "
                    f"{average[worst]:.6g} by {_DRAWS} draws of the posterior"
                )
        return least, _FALSE_ALARM / n_tests, "p-value"


def _log_density(model) -> Callable[[Mapping[str, Array]], float]:
    """Return the log density of a model's free variables, in their own coordinates."""
    from pymc.model.transform.conditioning import remove_value_transforms

    plain = remove_value_transforms(model)
    f = plain.compile_fn(plain.logp(jacobian=False), mode=numpy_mode("fast_compile"))
    return lambda theta: float(f({v.name: theta[v.name] for v in plain.value_vars}))


def _share(log_ratio: Array) -> Array:
    """q/(p + q) of log q - log p, at rows of p."""
    return 1 / (1 + np.exp(-log_ratio))


def _log_p_by_cell(model, free: Mapping[Any, Any]):
    """Log density of the observed variable, cell by cell, as a function of the free ones."""
    from pymc.logprob.basic import conditional_logp

    (x,) = model.observed_RVs
    value = model.rvs_to_values[x]
    return conditional_logp({**free, x: value}, warn_rvs=False)[value]
