"""The prior of each column in words and in the column's units."""

from collections.abc import Callable, Mapping

import numpy as np
from scipy import stats

from bayesgen.families.names import CATEGORY, FEATURE, FEATURE_BIS
from bayesgen.numerics.special import Array

_TAIL = 0.05  # of the prior range of a cell, at either end

Values = Mapping[str, Array]  # {hyper-parameter: its values of one column, over classes}


def columns_of(family, n_columns: int) -> list[tuple[str, str]]:
    """Return (prior in words, range of a cell under it or "") for each column of a block."""
    family = family.margins()
    arrays = {k: (dims, a) for k, (dims, a) in family.arrays().items() if FEATURE in dims}
    described = [("", "")] * n_columns
    for names, words in _WORDS:
        if n_columns and arrays.keys() >= {*names}:
            columns = [{k: _at(*arrays[k], j) for k in names} for j in range(n_columns)]
            if "shift" in arrays:
                columns = [
                    v | {"mu": v["mu"] + shift}
                    for v, shift in zip(columns, arrays["shift"][1], strict=True)
                ]
            return [words(family.kind, values) for values in columns]
    return described


def _at(dims: tuple[str, ...], value: Array, j: int) -> Array:
    """Return the values of column j, flat; for categories those that exist."""
    if FEATURE_BIS in dims and value.ndim > 1:
        value, dims = np.diagonal(value, axis1=-2, axis2=-1), dims[:-1]
    axis = dims.index(FEATURE) - len(dims)
    value = value.take(j if value.shape[axis] > 1 else 0, axis)
    return np.ravel(value[value > 0] if CATEGORY in dims else value)


def shown(values: Array) -> str:
    """One number, or the range of several."""
    low, high = float(values.min()), float(values.max())
    same = high - low <= 1e-9 * max(abs(low), abs(high))
    return _number(low) if same else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"


def count(values: Array, what: str) -> str:
    """Return a number of things in words."""
    text = shown(values)
    return f"{text} {what}" + ("" if text == "1" else "s")


def _gaussian(kind: str, v: Values) -> tuple[str, str]:
    words = (
        f"mean {shown(v['mu'])}, worth {count(v['kappa'], 'row')}; "
        f"sd {shown(np.sqrt(v['sigma2']))}, worth {count(v['nu'], 'row')}"
    )
    half = stats.t.isf(_TAIL, v["nu"]) * np.sqrt(v["sigma2"] * (1 + 1 / v["kappa"]))
    low, high = (v["mu"] - half).min(), (v["mu"] + half).max()
    if kind == "lognormal":
        words, low, high = f"logarithm: {words}", np.exp(low), np.exp(high)
    return words, f"{_number(low)} to {_number(high)}"


def _poisson(kind: str, v: Values) -> tuple[str, str]:
    low, high = stats.nbinom.ppf([[_TAIL], [1 - _TAIL]], v["shape"], v["rate"] / (1 + v["rate"]))
    words = f"{shown(v['shape'] / v['rate'])} a row, worth {count(v['rate'], 'row')}"
    return words, f"{_number(low.min())} to {_number(high.max())}"


def _bits(kind: str, v: Values) -> tuple[str, str]:
    return f"{count(v['alpha'], 'pseudo-count')} of ones, {shown(v['beta'])} of zeros", ""


_WORDS: tuple[tuple[tuple[str, ...], Callable[[str, Values], tuple[str, str]]], ...] = (
    (("mu", "kappa", "nu", "sigma2"), _gaussian),
    (("shape", "rate"), _poisson),
    (("alpha", "beta"), _bits),
    (("alpha",), lambda kind, v: (f"{count(v['alpha'], 'pseudo-count')} of each", "")),
    (
        ("location", "scale"),
        lambda kind, v: (f"around {shown(v['location'])}, in units of {shown(v['scale'])}", ""),
    ),
    (("rate",), lambda kind, v: (f"around {shown(v['rate'])} a row", "")),
)


def of_all_columns(family) -> str:
    """Return what belongs to no single column: tokens, tables of pairs, forms of the model."""
    arrays = family.arrays()
    said = [
        f"{name} {shown(arrays[name][1])}"
        for name in ("alpha", "strength", "root_weight", "concentration")
        if name in arrays and FEATURE not in arrays[name][0]
    ]
    for name, value in family.settings().items():
        if name not in ("length", "seed") and type(value) in (str, int, float):
            said.append(f"{name}={value!r}")
    return ", ".join(said)
