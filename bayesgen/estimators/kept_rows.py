"""What model files hold of the training rows: scores, and rows that draws are fitted to again."""

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from bayesgen.datatree.tree import LEAVE_ONE_OUT, TRAINING_ROWS
from bayesgen.encoding.labels import is_labelled, labels_of
from bayesgen.encoding.tables import is_table
from bayesgen.families.names import OBS
from bayesgen.inference.chosen_priors import PriorChoice
from bayesgen.numerics.special import Array
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.training import KeptRows, Training
from bayesgen.predict.left_out import LeftOut

if TYPE_CHECKING:
    import xarray as xr

# a variable of the group: the bytes of a Parquet file, or of scipy.sparse.save_npz
_FRAME, _ARRAY, _TEXTS, _SPARSE = "frame", "array", "texts", "sparse"


def groups_of_training(fitted: Fitted) -> "dict[str, xr.Dataset]":
    """Return the groups of a model file that are about its training rows."""
    import xarray as xr

    groups = {}
    if fitted.training.scores is not None:
        groups[LEAVE_ONE_OUT] = xr.Dataset(fitted.training.scores.arrays())
    if (rows := _written_rows(fitted)) is not None:
        groups[TRAINING_ROWS] = rows
    return groups


def training_of(
    state: Mapping[str, Any], groups: "dict[str, xr.Dataset]", classes: Array
) -> Training:
    """Return what a file knows of the training rows; their groups are taken out of `groups`."""
    scores, rows = None, {}
    if (held := groups.pop(LEAVE_ONE_OUT, None)) is not None:
        scores = LeftOut(**{str(k): held[k].values for k in held.data_vars})
    if (held := groups.pop(TRAINING_ROWS, None)) is not None:
        rows = _read_rows(held, classes, state["feature_names"])
    return Training(
        state["n_rows_seen"],
        state["n_unlabelled"],
        state["inference"],
        state["unlabelled_weight"],
        scores=scores,
        prior=PriorChoice(*state["prior"]) if state["prior"] else None,
        left_out=state["left_out"],
        **rows,
    )


def _written_rows(fitted: Fitted) -> "xr.Dataset | None":
    """Return the training rows as arrays; None where a file needs or can hold none."""
    import xarray as xr

    training = fitted.training
    if training.rows is None or not fitted.posterior.draws_need_rows:
        return None
    file = BytesIO()
    try:
        kind = _write(training.rows.X, file)
    except (TypeError, ValueError):  # tokens, or cells of several types in one column
        return None
    values = labels_of(training.rows.y, unlabelled=training.n_unlabelled > 0)
    labelled, codes = is_labelled(values), np.full(len(values), -1)
    codes[labelled] = fitted.codes_of(values[labelled])
    of_rows = {
        "code": codes,
        "sample_weight": training.rows.sample_weight,
        "group": training.groups,
        "weight_of_copies": training.weight,
    }
    arrays = {name: (OBS, np.asarray(v)) for name, v in of_rows.items() if v is not None}
    return xr.Dataset(arrays | {kind: ("byte", np.frombuffer(file.getvalue(), np.uint8))})


def _write(X, file: BytesIO) -> str:
    """Write rows; return what they are."""
    import pandas as pd

    if sparse.issparse(X):
        sparse.save_npz(file, X.tocsr(), compressed=False)
        return _SPARSE
    if isinstance(X, np.ndarray) and X.ndim == 2:
        kind, frame = _ARRAY, pd.DataFrame(X)
    elif is_table(X):
        kind, frame = _FRAME, nw.from_native(X, eager_only=True).to_pandas()
    else:
        kind, frame = _TEXTS, pd.DataFrame({"text": pd.array(list(X), dtype="string")})
    frame.set_axis(map(str, range(frame.shape[1])), axis=1).to_parquet(file, index=False)
    return kind


def _read_rows(group: "xr.Dataset", classes: Array, names: list[str] | None) -> dict[str, Any]:
    """Return the rows of a file as `Training` holds them: ``rows``, ``groups``, ``weight``."""
    import pandas as pd

    arrays = {str(name): group[name].values for name in group.variables}
    code = arrays["code"]
    if len(code) and not -1 <= code.min() <= code.max() < len(classes):
        raise ValueError("a training row is of no class of the model")
    labels: Any = classes[code]
    if (code < 0).any():
        labels = labels.astype(object)
        labels[code < 0] = None
    kind = next(kind for kind in (_FRAME, _ARRAY, _TEXTS, _SPARSE) if kind in arrays)
    file = BytesIO(arrays[kind].tobytes())
    X: Any
    if kind == _SPARSE:
        X = sparse.load_npz(file)
    else:
        frame: pd.DataFrame = pd.read_parquet(file)
        if kind == _FRAME:
            X = frame if names is None else frame.set_axis(names, axis=1)
        else:
            X = frame.to_numpy() if kind == _ARRAY else frame["0"].tolist()
    return {
        "rows": KeptRows(X, labels, arrays.get("sample_weight")),
        "groups": arrays.get("group"),
        "weight": arrays.get("weight_of_copies"),
    }
