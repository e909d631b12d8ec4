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
fit has kept.
"""

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.optimize import minimize

from bayesgen.encoding.labels import is_labelled, labels_and_mask
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CHAIN, CLASS_WEIGHTS, DRAW, Method
from bayesgen.families.shared.graph_rows import numpy_mode, third_parties
from bayesgen.inference import sampled
from bayesgen.inference.chosen_priors import LabelledRows
from bayesgen.numerics.special import Array
from bayesgen.posterior.fitted import Fitted

if TYPE_CHECKING:
    import xarray as xr

_FARTHEST = 20.0  # posterior standard deviations
_LEVEL = 1e-9  # a log density that gains less has levelled off
_DRAWS = 1000  # by which the posterior mean and standard deviations are known
_COMPUTED: "WeakKeyDictionary[Any, dict[Method, dict[str, Array]]]" = WeakKeyDictionary()


def optimum(fitted: Fitted, method: Method, training: Any = None) -> dict[str, Array]:
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
    known = _COMPUTED.setdefault(fitted.posterior, {})
    if method not in known:
        known[method] = _sought(fitted, method, training)
    return known[method]


def _sought(fitted: Fitted, method: Method, training: Any) -> dict[str, Array]:
    posterior = fitted.posterior
    family = posterior.prior.family
    draws = fitted.training.draws
    if family.conjugate or fitted.training.inference != "nuts" or draws is None:
        raise UndefinedEstimateError(
            method,
            "the posterior is known by draws of another's, which do not tell a maximum",
            advice="use method='posterior_predictive' or 'posterior_mean'",
        )
    if family.no_pymc:
        raise UndefinedEstimateError(
            method,
            "the model is a PyMC model of your own, whose variables are not known by name here",
            advice="pymc.find_MAP(model) seeks its mode",
        )
    rows = _rows(fitted, method, training)
    n_classes = len(fitted.classes)
    if method == "mle":
        theta = family.mle_of_rows(rows.X, rows.codes, n_classes, rows.weight)
        if theta is not None:
            return theta | {CLASS_WEIGHTS: posterior.class_weights(method)}
    model = sampled.graph(posterior.prior, rows, fitted.coords)
    mean, sd = _coordinates(model, draws["posterior"].to_dataset())
    point = _climb(model, method, mean, sd)
    names = [*family.params, *([CLASS_WEIGHTS] if CLASS_WEIGHTS in model.named_vars else [])]
    return dict(zip(names, _values(model, names, point), strict=True))


def _rows(fitted: Fitted, method: Method, training: Any) -> LabelledRows:
    """The labelled training rows, as the fit encoded them."""
    rows = fitted.training.rows if training is None else training
    if rows is None:
        raise UndefinedEstimateError(
            method,
            "it is computed from the training rows, which this model has not kept",
            advice=f"call estimates({method!r}, training=(X, y)) first",
        )
    X, y, weight = (*rows, None)[:3]
    labels, mask = labels_and_mask(y)
    use = np.flatnonzero(is_labelled(labels, mask))
    encoded = fitted.encoded(X)[use]
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)[use]
    return LabelledRows(encoded, fitted.codes_of(labels[use].tolist()), weight)


def _coordinates(model: Any, draws: "xr.Dataset") -> tuple[Array, Array]:
    """(K,) mean and standard deviation of the sampler's coordinates of the free variables."""
    import pytensor

    variables = model.free_RVs
    transforms = [model.rvs_to_transforms[v] for v in variables]
    coordinates = [
        v if transform is None else transform.forward(v, *v.owner.inputs)
        for v, transform in zip(variables, transforms, strict=True)
    ]
    with third_parties():
        forward = pytensor.function(
            variables, coordinates, mode=numpy_mode("fast_compile"), on_unused_input="ignore"
        )
    flat = [draws[v.name].stack(sample=(CHAIN, DRAW)).transpose("sample", ...) for v in variables]
    step = max(1, flat[0].sizes["sample"] // _DRAWS)
    each = zip(*(values.values[::step] for values in flat), strict=True)
    points = np.array([np.concatenate([np.ravel(c) for c in forward(*draw)]) for draw in each])
    return points.mean(axis=0), points.std(axis=0)


def _climb(model: Any, method: Method, mean: Array, sd: Array) -> Array:
    """(K,) coordinates of the optimum."""
    import pytensor
    import pytensor.tensor as pt
    from pymc.pytensorf import join_nonshared_inputs

    with third_parties():
        terms = [*model.observed_RVs, *model.potentials] if method == "mle" else None
        log_p: Any = model.logp(vars=terms, jacobian=False)
        point = model.initial_point()
        (log_p,), flat = join_nonshared_inputs(point, [log_p], model.value_vars)
        slope: Any = pt.grad(log_p, flat)
        function = pytensor.function([flat], [log_p, slope], mode=numpy_mode())

    def loss(u: Array) -> tuple[float, Array]:
        with np.errstate(all="ignore"):
            value, gradient = function(mean + sd * u)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(u)
        return -float(value), -np.nan_to_num(gradient) * sd

    bounds = [(-_FARTHEST, _FARTHEST)] * len(mean)
    options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-7, "maxcor": 30}
    found = minimize(
        loss, np.zeros(len(mean)), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    distance = np.abs(found.x).max()
    # a likelihood that levels off has no slope long before it is that far
    away = found.x * (_FARTHEST / distance) if distance > 1.0 else None
    if away is not None and loss(away)[0] <= found.fun + _LEVEL:
        sizes = [np.size(point[v.name]) for v in model.value_vars]
        owner = np.repeat(np.arange(len(sizes)), sizes)[np.abs(found.x).argmax()]
        name = model.free_RVs[owner].name
        what = "likelihood" if method == "mle" else "posterior density"
        raise UndefinedEstimateError(
            method,
            f"from the posterior mean the {what} grows until {name!r} is {_FARTHEST:.0f} posterior "
            "standard deviations away",
            advice="use method='posterior_predictive' or 'posterior_mean'",
        )
    return np.asarray(mean + sd * found.x)


def _values(model: Any, names: list[str], point: Array) -> list[Array]:
    """Values of named variables at coordinates of the free ones."""
    import pytensor
    from pymc.blocking import DictToArrayBijection, RaveledVars

    start = model.initial_point()
    info = DictToArrayBijection.map({v.name: start[v.name] for v in model.value_vars})
    at_point = DictToArrayBijection.rmap(RaveledVars(point, info.point_map_info))
    with third_parties():
        outputs = model.replace_rvs_by_values([model[name] for name in names])
        function = pytensor.function(
            model.value_vars,
            outputs,
            mode=numpy_mode("fast_compile"),
            on_unused_input="ignore",
        )
    return [np.asarray(v) for v in function(*(at_point[v.name] for v in model.value_vars))]
