"""Graphs of PyMC models as small as the tests have them, evaluated as they stand.

Each is evaluated a few times: compiling it, or only rewriting it, takes a hundred times as long
as running every operation in Python.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bayesgen.families.names import CATEGORY, CLASS, FEATURE, FEATURE_CATEGORY, OBS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings at import of PyMC and PyTensor are not ours
    import pymc as pm
    import pytensor
    import pytensor.tensor as pt  # noqa: F401 - tests take it from here
    from pytensor.compile.mode import Mode

PYTHON = Mode(linker="py", optimizer=None)


def declare(
    family: Any, coords: Mapping[str, Any], *, prefix: str = "", X: Any = None, y: Any = None, **on
) -> tuple[Any, dict[str, Any]]:
    """The PyMC model of a family alone, conditioned as asked, and what `to_pymc` returned."""
    named = {d if d == CLASS else f"{prefix}{d}": labels for d, labels in coords.items()}
    rows = {} if y is None else {OBS: np.arange(len(y))}
    with pm.Model(coords=named | rows) as model:
        if y is not None:
            on |= {"X": X, "y": pm.Data("y", y, dims=OBS)}
        theta = family.to_pymc(prefix=prefix, **on)
    return model, theta


def dims_in_model(family: Any, dims: Sequence[str]) -> tuple[str, ...]:
    """Those of a parameter in the model: cells are listed where features differ in categories."""
    listed = FEATURE_CATEGORY in family.coords() and tuple(dims[-2:]) == (FEATURE, CATEGORY)
    return (*dims[:-2], FEATURE_CATEGORY) if listed else tuple(dims)


def log_densities(model: Any) -> Callable[[Sequence[Mapping[str, Any]]], np.ndarray]:
    """(n, 2) log densities of the prior, and of the data, at n points.

    The data are the variables and potentials ``x`` and ``label``, of a block ``{prefix}x``; all
    else is the prior. A point is {name: value} of the free variables, which are taken in their
    own coordinates from here on.
    """
    for rv in model.free_RVs:
        value = rv.type(name=rv.name)
        model.rvs_to_transforms[rv], model.rvs_to_values[rv] = None, value
        model.values_to_rvs[value] = rv
    variables = [*model.free_RVs, *model.observed_RVs, *model.potentials]
    terms = model.logp(vars=variables, jacobian=False, sum=False)
    data = np.array([v.name.split("_")[-1] in ("x", "label") for v in variables])
    values = [model.rvs_to_values[rv] for rv in model.free_RVs]
    f = pytensor.function(values, [t.sum() for t in terms], mode=PYTHON, on_unused_input="ignore")

    def at(points: Sequence[Mapping[str, Any]]) -> np.ndarray:
        out = []
        for point in points:
            found = f(*(np.asarray(point[v.name], dtype=v.type.dtype) for v in values))
            out.append([np.sum(found, where=~data), np.sum(found, where=data)])
        return np.array(out, dtype=np.float64)

    return at


def draw(model: Any, tensors: Mapping[str, Any], n: int, seed: int = 4) -> list[dict[str, Any]]:
    """n draws of the free variables, by their names in the model, and of functions of them."""
    wanted = {v.name: v for v in model.free_RVs} | dict(tensors)
    with model:
        found = pm.draw(list(wanted.values()), draws=n, random_seed=seed, mode=PYTHON)
    if n == 1:  # which PyMC returns without an axis
        found = [v[None] for v in found]
    return [{k: np.asarray(v[s]) for k, v in zip(wanted, found, strict=True)} for s in range(n)]


def values_of(
    model: Any, tensors: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], dict[str, np.ndarray]]:
    """{name: array} of tensors at values of the free variables that they are functions of."""
    free = model.free_RVs
    f = pytensor.function(free, list(tensors.values()), mode=PYTHON, on_unused_input="ignore")

    def at(point: Mapping[str, Any]) -> dict[str, np.ndarray]:
        found = f(*(np.asarray(point[v.name], dtype=v.type.dtype) for v in free))
        return dict(zip(tensors, map(np.asarray, found), strict=True))

    return at


def named_at(model: Any, names: Sequence[str]) -> Callable[[Mapping[str, Any]], list[np.ndarray]]:
    """Named variables at unconstrained values of the free ones."""
    outputs = model.replace_rvs_by_values([model[name] for name in names])
    return model.compile_fn(outputs, inputs=model.value_vars, mode=PYTHON, on_unused_input="ignore")
