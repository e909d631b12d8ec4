"""Training rows in model files, where draws fit the model to them again: pools and label trees."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from bayesgen.encoding.labels import is_labelled, labels_and_mask
from bayesgen.encoding.tables import Table, is_table
from bayesgen.families.names import OBS
from bayesgen.numerics.special import Array
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.training import KeptRows

if TYPE_CHECKING:
    import xarray as xr

_SPARSE = ("data", "indices", "indptr")


def written_rows(fitted: Fitted) -> "xr.Dataset | None":
    """Return the training rows as arrays; None where a file needs or can hold none."""
    import xarray as xr

    training = fitted.training
    if training.rows is None or not fitted.posterior.draws_need_rows:
        return None
    cells = _cells(training.rows.X)
    if cells is None:
        return None
    values, masked = labels_and_mask(training.rows.y, unlabelled=training.n_unlabelled > 0)
    labelled, codes = is_labelled(values, masked), np.full(len(values), -1)
    codes[labelled] = fitted.codes_of(values[labelled])
    of_rows = {
        "code": codes,
        "sample_weight": training.rows.sample_weight,
        "group": training.groups,
        "weight_of_copies": training.weight,
    }
    of_rows = {name: (OBS, np.asarray(v)) for name, v in of_rows.items() if v is not None}
    return xr.Dataset(cells | of_rows)


def _cells(X) -> dict[str, Any] | None:
    if sparse.issparse(X):
        matrix = X.tocsr()
        parts = {name: (f"{name}_place", getattr(matrix, name)) for name in _SPARSE}
        return parts | {"shape": ("axis", np.array(matrix.shape))}
    if not is_table(X) and getattr(X, "ndim", 1) == 1:
        texts = list(X)
        plain = all(isinstance(text, str) and "\0" not in text for text in texts)
        return {"text": (OBS, np.array(texts, dtype=object))} if plain else None
    table = Table(X)
    if table.numbers is not None:
        return {"cells": ((OBS, "feature"), table.numbers)}
    cells: dict[str, Any] = {"n_columns": table.n_columns}
    for j in range(table.n_columns):
        column = table.column(j)
        if column.codes is None:
            cells[f"column_{j}"] = OBS, column.values
            continue
        if any("\0" in text for text in column.values):
            return None
        cells[f"column_{j}"] = OBS, column.codes.astype(np.int32)
        cells[f"texts_{j}"] = f"text_{j}", column.values.astype(object)
    return cells


def read_rows(group: "xr.Dataset", classes: Array, names: list[str] | None) -> Mapping[str, Any]:
    """Return the rows of a file as `Training` holds them: ``rows``, ``groups``, ``weight``."""
    arrays = {str(name): group[name].values for name in group.variables}
    code = arrays["code"]
    if len(code) and not -1 <= code.min() <= code.max() < len(classes):
        raise ValueError("a training row is of no class of the model")
    labels: Any = classes[code]
    if (code < 0).any():
        labels = labels.astype(object)
        labels[code < 0] = None
    rows = KeptRows(_table(arrays, names), labels, arrays.get("sample_weight"))
    return {
        "rows": rows,
        "groups": arrays.get("group"),
        "weight": arrays.get("weight_of_copies"),
    }


def _table(arrays: Mapping[str, Array], names: list[str] | None):
    import pandas as pd

    if "text" in arrays:
        return arrays["text"].tolist()
    if "data" in arrays:
        parts = tuple(arrays[name] for name in _SPARSE)
        return sparse.csr_matrix(parts, shape=tuple(arrays["shape"].tolist()))
    if "cells" in arrays:
        cells = arrays["cells"]
        return cells if names is None else pd.DataFrame(cells, columns=names)
    columns: dict[int, Any] = {}
    for j in range(int(arrays["n_columns"])):
        cells = arrays[f"column_{j}"]
        if f"texts_{j}" in arrays:
            cells = np.array([*arrays[f"texts_{j}"], None], dtype=object)[cells]
        columns[j] = cells
    table = pd.DataFrame(columns)
    return table if names is None else table.set_axis(names, axis=1)
