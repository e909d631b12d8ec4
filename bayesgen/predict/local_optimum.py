r"""MAP and maximum likelihood of a family without a closed form: a local optimum.

The density of a Student t, or of a mixture, is unbounded, so that a global maximum may not exist.
What is called ``"map"`` and ``"mle"`` here is the local optimum that is reached from the posterior
mean, of

- the posterior density of the free variables of the PyMC graph, without the Jacobian of the
  coordinates in which they are sampled (as `pymc.find_MAP` has it), or
- the likelihood of the training rows and their labels.

It is sought in the sampler's coordinates, each in units of its posterior standard deviation, and
refused if one of them ends 20 or more from the posterior mean: the likelihood then grows on, and
what a search would return is where it stopped. It is computed on first use, from the rows that the
fit has kept, or that a model of `from_pymc` holds. Cells that PyMC imputes are integrated out.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.optimize import minimize

from bayesgen.encoding.labels import is_labelled, labels_of
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CHAIN, CLASS_WEIGHTS, DRAW, Method
from bayesgen.families.shared.graph_rows import numpy_mode, third_parties
from bayesgen.inference import nuts, trees
from bayesgen.numerics.special import Array
from bayesgen.posterior.fitted import Fitted, LabelledRows

_FARTHEST = 20.0  # posterior standard deviations
_LEVEL = 1e-9  # a log density that gains less has levelled off
_DRAWS = 1000  # by which the posterior mean and standard deviations are known
_COMPUTED: "WeakKeyDictionary[Any, dict[Method, dict[str, Array]]]" = WeakKeyDictionary()


def optimum(fitted: Fitted, method: Method, training=None) -> dict[str, Array]:
    """Return theta at the local optimum that is reached from the posterior mean.

    Parameters
    ----------
    fitted : Fitted
        By draws.
    method : {"map", "mle"}
    training : (X, y) or (X, y, sample_weight), optional
        The training rows, where the fit has not kept them (a loaded model).

    Returns
    -------
    {name: array}
        By the names in ``posterior_``, and the class weights ``pi``.

    Raises
    ------
    UndefinedEstimateError
        If there is none, or if the rows are not known.
    """
    computed = _COMPUTED.setdefault(fitted.posterior, {})
    if method not in computed:
        computed[method] = _sought(fitted, method, training)
    return computed[method]


def _sought(fitted: Fitted, method: Method, training) -> dict[str, Array]:
    posterior: Any = fitted.posterior
    family = posterior.prior.family
    draws = fitted.training.draws
    held = family.held_model(posterior.theta)
    if held is not None:
        model, values = held
        point = _climb(model, method, values)
        names = list(values)
        at_point = _values(model, names, names, point)
        return dict(family.theta_of(dict(zip(names, at_point, strict=True))))
    if family.conjugate or fitted.training.inference != "nuts" or draws is None:
        raise UndefinedEstimateError(
            method,
            "the posterior is known by draws of another's, which do not tell a maximum",
            advice="use method='posterior_predictive' or 'posterior_mean'",
        )
    rows = _rows(fitted, method, training)
    n_classes = len(fitted.classes)
    if method == "mle":
        theta = family.mle_of_rows(rows.X, rows.codes, n_classes, rows.weight)
        if theta is not None:
            return theta | {CLASS_WEIGHTS: posterior.class_weights(method)}
    model = trees.graph_of_rows(posterior.prior, rows, fitted.coords)
    posterior_draws = draws["posterior"].to_dataset().stack(sample=(CHAIN, DRAW))
    values = {
        v.name: posterior_draws[v.name].transpose("sample", ...).values for v in model.free_RVs
    }
    point = _climb(model, method, values)
    names = [*family.params, *([CLASS_WEIGHTS] if CLASS_WEIGHTS in model.named_vars else [])]
    return dict(zip(names, _values(model, names, list(values), point), strict=True))


def _rows(fitted: Fitted, method: Method, training) -> LabelledRows:
    """Return the labelled training rows, as the fit encoded them."""
    rows = fitted.training.rows if training is None else training
    if rows is None:
        raise UndefinedEstimateError(
            method,
            "it is computed from the training rows, which this model has not kept",
            advice=f"call estimates({method!r}, training=(X, y)) first",
        )
    X, y, weight = (*rows, None)[:3]
    labels = labels_of(y)
    use = np.flatnonzero(is_labelled(labels))
    of_each = np.ones(len(labels)) if weight is None else np.asarray(weight, dtype=np.float64)
    codes = fitted.codes_of(labels[use].tolist())
    return LabelledRows(fitted.encoded(X)[use], codes, of_each[use])


def _coordinates(model, draws: dict[str, Array]) -> tuple[Array, Array]:
    """Return (K,) mean and standard deviation of the coordinates of variables (S, ...)."""
    with third_parties():
        forward = nuts.to_coordinates(model, [model[name] for name in draws])
    step = max(1, len(next(iter(draws.values()))) // _DRAWS)
    each = zip(*(values[::step] for values in draws.values()), strict=True)
    points = np.array([np.concatenate([np.ravel(c) for c in forward(*draw)]) for draw in each])
    return points.mean(axis=0), points.std(axis=0)


def _climb(model, method: Method, draws: dict[str, Array]) -> Array:
    """Return (K,) coordinates of the optimum of these variables.

    Cells that PyMC imputes are none of them: they are integrated out.
    """
    import pytensor
    import pytensor.tensor as pt
    from pymc.pytensorf import join_nonshared_inputs

    mean, sd = _coordinates(model, draws)
    if not sd.all():
        raise UndefinedEstimateError(
            method,
            "draws that are all the same do not tell how far a search may go",
            advice="use method='posterior_predictive' or 'posterior_mean'",
        )
    variables = [model[name] for name in draws]
    values = [model.rvs_to_values[v] for v in variables]
    with third_parties():
        terms = [*model.observed_RVs, *model.potentials]
        log_p: Any = model.logp(
            vars=terms if method == "mle" else [*variables, *terms], jacobian=False
        )
        point = model.initial_point()
        (log_p,), flat = join_nonshared_inputs(point, [log_p], values)
        slope: Any = pt.grad(log_p, flat)
        imputed = {v: v.type.filter(point[v.name], allow_downcast=True) for v in model.value_vars}
        givens = {v: pt.constant(c) for v, c in imputed.items() if v not in values}
        function = pytensor.function([flat], [log_p, slope], mode=numpy_mode(), givens=givens)

    def loss(u: Array) -> tuple[float, Array]:
        with np.errstate(all="ignore"):
            value, gradient = function(mean + sd * u)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(u)
        return -float(value), -np.nan_to_num(gradient) * sd

    bounds = [(-_FARTHEST, _FARTHEST)] * len(mean)
    options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-7, "maxcor": 30}
    solution = minimize(
        loss, np.zeros(len(mean)), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    distance = np.abs(solution.x).max()
    # a likelihood that levels off has no slope long before it is that far
    away = solution.x * (_FARTHEST / distance) if distance > 1.0 else None
    if away is not None and loss(away)[0] <= solution.fun + _LEVEL:
        sizes = [np.size(point[v.name]) for v in values]
        name = np.repeat(list(draws), sizes)[np.abs(solution.x).argmax()]
        what = "likelihood" if method == "mle" else "posterior density"
        raise UndefinedEstimateError(
            method,
            f"from the posterior mean the {what} grows until {name!r} is {_FARTHEST:.0f} posterior "
            "standard deviations away",
            advice="use method='posterior_predictive' or 'posterior_mean'",
        )
    return np.asarray(mean + sd * solution.x)


def _values(model, names: list[str], variables: list[str], point: Array) -> list[Array]:
    """Values of named variables at coordinates (K,) of the free ones."""
    import pytensor

    start = model.initial_point()
    values = [model.rvs_to_values[model[name]] for name in variables]
    ends = np.cumsum([np.size(start[v.name]) for v in values])[:-1]
    for v, piece in zip(values, np.split(point, ends), strict=True):
        start[v.name] = piece.reshape(np.shape(start[v.name])).astype(v.dtype)
    with third_parties():
        outputs = model.replace_rvs_by_values([model[name] for name in names])
        function = pytensor.function(
            model.value_vars,
            outputs,
            mode=numpy_mode("fast_compile"),
            on_unused_input="ignore",
        )
    return [np.asarray(v) for v in function(*(start[v.name] for v in model.value_vars))]
