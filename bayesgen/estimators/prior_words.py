"""The prior of each column in words and in the column's units."""

from collections.abc import Callable, Mapping

import numpy as np
from scipy import stats

from bayesgen.families.names import CATEGORY, FEATURE, FEATURE_BIS
from bayesgen.numerics.special import Array

_TAIL = 0.05  # of the prior range of a cell, at either end
_NO_PRIOR = (
    "shift",
    "ignored",
    "levels",
    "edges",
    "pairs",
    "grams",
    "counts",
    "parents",
    "cells",
    "log_w",
    *("nominal", "roots", "test", "cut", "child", "chosen", "count"),
)

Values = Mapping[str, Array]  # {hyper-parameter: its values of one column, over classes}


def columns_of(family, n_columns: int) -> list[tuple[str, str]]:
    """Return (prior in words, range of a cell under it or "") for each column of a block."""
    if n_columns:
        family = family.margins()
    dims_of = {k: d for k, (d, _) in family.arrays().items()}
    arrays = {k: a for k, (_, a) in family.arrays().items() if a.dtype.kind in "fiub"}
    if "mu" in arrays and "shift" in arrays:
        arrays["mu"] = arrays["mu"] + arrays["shift"]
    arrays = {
        k: a for k, a in arrays.items() if k not in _NO_PRIOR and FEATURE in dims_of[k] and a.size
    }
    words = _WORDS.get(frozenset(arrays), _in_general)
    spread = _RANGES.get(frozenset(arrays), lambda values: "")
    described = []
    for j in range(n_columns):
        values = {k: _at(a, dims_of[k], j) for k, a in arrays.items()}
        if family.kind == "lognormal":
            words_and_range = f"logarithm: {_gaussian(values)}", _gaussian_range(values, np.exp)
        else:
            words_and_range = words(values), spread(values)
        described.append(words_and_range)
    return described


def _at(value: Array, dims: tuple[str, ...], j: int) -> Array:
    """Return the values of column j, flat; for categories those that exist."""
    if FEATURE_BIS in dims and value.ndim > 1:
        value, dims = np.diagonal(value, axis1=-2, axis2=-1), dims[:-1]
    axis = dims.index(FEATURE) - len(dims)
    if value.ndim >= -axis:
        value = value.take(j if value.shape[axis] > 1 else 0, axis)
    if CATEGORY in dims:
        value = value[value > 0]
    return np.ravel(value)


def shown(values: Array, root: bool = False) -> str:
    """One number, or the range of several."""
    values = np.sqrt(values) if root else values
    low, high = float(values.min()), float(values.max())
    same = high - low <= 1e-9 * max(abs(low), abs(high))
    return _number(low) if same else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"


def _count(values: Array, what: str) -> str:
    text = shown(values)
    return f"{text} {what}" + ("" if text == "1" else "s")


def _gaussian(v: Values) -> str:
    return (
        f"mean {shown(v['mu'])}, worth {_count(v['kappa'], 'row')}; "
        f"sd {shown(v['sigma2'], root=True)}, worth {_count(v['nu'], 'row')}"
    )


def _gaussian_range(v: Values, unit=float) -> str:
    mu, kappa, nu, sigma2 = (v[k] for k in ("mu", "kappa", "nu", "sigma2"))
    half = stats.t.isf(_TAIL, nu) * np.sqrt(sigma2 * (1 + 1 / kappa))
    return f"{_number(unit((mu - half).min()))} to {_number(unit((mu + half).max()))}"


def _poisson(v: Values) -> str:
    rate = v["shape"] / v["rate"]
    return f"{shown(rate)} a row, worth {_count(v['rate'], 'row')}"


def _poisson_range(v: Values) -> str:
    ends = stats.nbinom.ppf([[_TAIL], [1 - _TAIL]], v["shape"], v["rate"] / (1 + v["rate"]))
    return f"{_number(ends[0].min())} to {_number(ends[1].max())}"


def _bits(v: Values) -> str:
    return f"{_count(v['alpha'], 'pseudo-count')} of ones, {shown(v['beta'])} of zeros"


def _pseudo_counts(v: Values) -> str:
    return _count(v["alpha"], "pseudo-count") + " of each"


def _sampled_scale(v: Values) -> str:
    return f"around {shown(v['location'])}, in units of {shown(v['scale'])}"


def _in_general(v: Values) -> str:
    return ", ".join(f"{name} {shown(value)}" for name, value in v.items() if value.size)


_WORDS: dict[frozenset[str], Callable[[Values], str]] = {
    frozenset(("mu", "kappa", "nu", "sigma2")): _gaussian,
    frozenset(("shape", "rate")): _poisson,
    frozenset(("alpha", "beta")): _bits,
    frozenset(("alpha", "new")): _pseudo_counts,
    frozenset(("alpha",)): _pseudo_counts,
    frozenset(("location", "scale")): _sampled_scale,
}
_RANGES: dict[frozenset[str], Callable[[Values], str]] = {
    frozenset(("mu", "kappa", "nu", "sigma2")): _gaussian_range,
    frozenset(("shape", "rate")): _poisson_range,
}


def of_all_columns(family) -> str:
    """Return sentences on a prior that belongs to no single column: tokens, tables of pairs."""
    if family.margins() is not family:  # all of it is said column by column
        return ""
    values = {
        name: np.ravel(value)
        for name, (dims, value) in family.arrays().items()
        if name not in _NO_PRIOR
        and FEATURE not in dims
        and value.size
        and value.dtype.kind in "fiu"
    }
    settings = [
        f"{name}={value!r}"
        for name, value in family.settings().items()
        if isinstance(value, str | int | float) and not isinstance(value, bool) and name != "length"
    ]
    return ", ".join([_in_general(values)] * bool(values) + settings)
