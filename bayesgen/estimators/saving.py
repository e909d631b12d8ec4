"""A fitted classifier as a netCDF file, and back; what the file holds of the training rows."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from bayesgen.datatree.fit import fit_dataset, read_fit
from bayesgen.datatree.tree import CONSTANT_DATA, FIT, LEAVE_ONE_OUT, TRAINING_ROWS
from bayesgen.encoding.labels import by_name, is_labelled, labels_of
from bayesgen.encoding.reader import Reader
from bayesgen.encoding.tables import KeptRows, is_table
from bayesgen.families.names import CLASS, CONTEXT, OBS, TOKEN
from bayesgen.inference.chosen_priors import PriorChoice
from bayesgen.inference.trees import tree_of, with_draws
from bayesgen.io import storage
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.fitted import Fitted, Training
from bayesgen.predict.left_out import LeftOut
from bayesgen.version import __version__

if TYPE_CHECKING:
    import xarray as xr

_MIXED = "mixed"  # in a model file, posteriors whose predictives are averaged
_OF_STATE = [CLASS, CONTEXT, TOKEN]  # labels of dims that `state` has, vocabularies with it


def refuse_subclass(clf) -> None:
    """Raise TypeError for a classifier whose file `bayesgen.load` would not know."""
    if type(clf).__module__.partition(".")[0] != "bayesgen":
        raise TypeError(
            f"model files hold classifiers of bayesgen, and {type(clf).__name__} is a class of "
            "your own, which bayesgen.load does not know: pickle it"
        )


def unsaved(clf) -> tuple[str, ...]:
    """Constructor arguments that a file cannot hold."""
    names = [name for name in clf._unsaved if name in vars(clf)]
    return tuple(name for name in names if not isinstance(getattr(clf, name), str))


def by_column(clf, argument: str, value, reader: Reader):
    """{column: value} of an argument by column, a dict or a Series; else the value as it is."""
    named = by_name(value) if argument in clf._by_column else None
    if named is None or not (isinstance(value, Mapping) or reader.names is not None):
        return value  # columns without names are told by position
    return named


def state_of(clf, fitted: Fitted, absent: Collection[str]) -> dict[str, Any]:
    """Return what the file of any classifier holds: arguments but the absent, classes, columns."""
    training, reader = fitted.training, fitted.reader
    return {
        "estimator": type(clf).__name__,
        "version": __version__,
        "parameters": {
            name: storage.to_json(by_column(clf, name, value, reader), name)
            for name, value in clf.get_params(deep=False).items()
            if name not in absent
        },
        "classes": storage.to_json(fitted.classes, "class labels"),
        "reader": {k: storage.to_json(getattr(reader, k), k) for k in reader.saved},
        "n_rows_seen": int(training.n_rows),
        "n_unlabelled": int(training.n_unlabelled),
        "unlabelled_weight": training.unlabelled_weight,
        "inference": training.inference,
        "prior": None if training.prior is None else list(training.prior),
        "left_out": training.left_out,
    }


def record(clf, fitted: Fitted) -> tuple["xr.Dataset", dict[str, Any], dict[str, "xr.Dataset"]]:
    """Return the record that `storage.write` takes."""
    posterior, training = fitted.posterior, fitted.training
    absent = unsaved(clf)
    state = state_of(clf, fitted, absent) | {
        "unsaved": [name for name in absent if getattr(clf, name) is not None],
        "mixture": [mass for mass, _ in getattr(posterior, "mixture", ())],
    }
    coords = fitted.coords
    fit = fit_dataset(posterior.prior, posterior.model, posterior.stats, coords)
    fit = fit.drop_vars(_OF_STATE, errors="ignore")
    draws = {}
    for k, (_, component) in enumerate(getattr(posterior, "mixture", ())):
        group = fit_dataset(component.prior, component.model, component.stats, coords)
        draws[f"{_MIXED}_{k}"] = group.drop_vars(_OF_STATE, errors="ignore")
    if isinstance(posterior, DrawnPosterior):
        tree = training.draws
        assert tree is not None, "a fit by draws has them"
        state["draws"] = {str(k): storage.to_json(v, str(k)) for k, v in tree.attrs.items()}
        draws = {name: tree[name].to_dataset() for name in tree.children}
        draws = {
            name: group.drop_vars(list(coords), errors="ignore")  # known by `state`
            for name, group in draws.items()
            if name not in (FIT, CONSTANT_DATA)
        }
    return fit, state, draws | groups_of_training(fitted)


def loaded(
    clf, fit: "xr.Dataset", state: Mapping[str, Any], draws: Mapping[str, "xr.Dataset"]
) -> Fitted:
    """Return the fit that a model file holds, of a classifier with the file's arguments."""
    classes = storage.from_json(state["classes"])
    learner = clf._learner()
    reader = replace(learner.reader, **storage.arguments_from_json(state["reader"]))
    unresolved = learner.unresolved(reader, classes)
    family = type(unresolved.family)
    if family.__name__ != fit.attrs["family"]:
        raise ValueError(f"the file holds a {fit.attrs['family']}, not a {family.__name__}")
    draws = dict(draws)
    training = training_of(state, draws, classes)
    mass = state["mixture"]
    mixed = [read_fit(draws.pop(f"{_MIXED}_{k}"), family) for k in range(len(mass))]
    resolved, model, stats = read_fit(fit, family)
    prior = replace(resolved, family=resolved.family.with_prior_objects(unresolved.family))
    name = type(clf).__name__
    if training.inference == "closed form":
        components = [ExactPosterior(prior, *component[1:]) for component in mixed]
        exact = ExactPosterior(prior, model, stats, tuple(zip(mass, components, strict=True)))
        return Fitted(name, classes, reader, exact, training)
    fitted = Fitted(name, classes, reader, DrawnPosterior(prior, model, stats, {}), training)
    attrs = {k: storage.from_json(v) for k, v in state["draws"].items()}
    tree = tree_of(fitted, draws, attrs["route"])
    tree.attrs |= attrs  # who drew them and when
    return with_draws(fitted, tree)


# ------------------------------------------------------------------------------------------------
# Training rows: their scores, and rows that draws are fitted to again.

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
        rows = _read_rows(held, classes, storage.from_json(state["reader"]["names"]))
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


def _read_rows(group: "xr.Dataset", classes: Array, names: Array | None) -> dict[str, Any]:
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
