"""Model files: one netCDF file, written whole or not at all, read without pickle.

A model file is the DataTree group ``fit`` and a JSON attribute with the constructor's arguments;
after a fit by NUTS also the groups of its draws. Behind the netCDF file stand 82 bytes more: the
SHA-256 digest of all before them. It is compared before HDF5 reads anything, because a flipped bit
can keep HDF5 busy for ever. Files that xarray wrote again have no such end: another process reads
them first, because a process that hangs or dies cannot say so itself, and then they are held to the
digest of their numbers. A digest finds damage; it is no signature,
because who writes a file can write the digest that belongs to it. So a file is read with bounds on
what it declares, and its numbers and settings are held to what the model needs
(`bayesgen.datatree.fit.refuse_invalid`).
"""

import hashlib
import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.encoding.literals import shortened, shown
from bayesgen.io.output import replacing

if TYPE_CHECKING:
    import xarray as xr


# ------------------------------------------------------------------------------------------------
# Constructor arguments, labels and counts as plain JSON, and back: what a model file may hold.

_LONGEST = 1000  # characters of an argument that is text


def to_json(value: Any, name: str) -> Any:
    """A constructor argument as plain JSON; arrays and tuples are tagged."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": [to_json(v, name) for v in value.tolist()], "dtype": value.dtype.str}
    if isinstance(value, list):
        return [to_json(v, name) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [to_json(v, name) for v in value]}
    if isinstance(value, Mapping):
        return {"pairs": [[to_json(k, name), to_json(v, name)] for k, v in value.items()]}
    if hasattr(value, "__array__"):
        return to_json(np.asarray(value), name)
    raise TypeError(
        f"cannot save {name}={value!r}: a model file holds numbers, strings and arrays only"
    )


def from_json(value: Any) -> Any:
    """Inverse of `to_json`."""
    if isinstance(value, list):
        return [from_json(v) for v in value]
    if isinstance(value, dict):
        if "array" in value:
            return np.array([from_json(v) for v in value["array"]], dtype=_dtype(value["dtype"]))
        if "tuple" in value:
            return tuple(from_json(v) for v in value["tuple"])
        return {from_json(k): from_json(v) for k, v in value["pairs"]}
    return value


def arguments_from_json(record: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments; ValueError for a long text, because text names an option."""
    arguments = {name: from_json(value) for name, value in record.items()}
    for name, value in arguments.items():
        if isinstance(value, str) and len(value) > _LONGEST:
            raise ValueError(f"{name} is {shown(value)}, which is no option")
    return arguments


def labels_to_json(labels: np.ndarray) -> dict[str, Any]:
    """Class labels with their type."""
    kind = labels.dtype.kind
    if kind == "O" and all(isinstance(v, str) for v in labels):
        return {"labels": labels.tolist(), "dtype": "O"}
    if kind in "biufU" and labels.dtype.char != "g":  # JSON has no long double
        return {"labels": labels.tolist(), "dtype": labels.dtype.str}
    if kind == "M":
        return {"labels": labels.astype(str).tolist(), "dtype": labels.dtype.str}
    raise TypeError(
        f"cannot save class labels of type {labels.dtype}: use strings, numbers, booleans or dates"
    )


def labels_from_json(value: Mapping[str, Any]) -> np.ndarray:
    """Inverse of `labels_to_json`; ValueError if they are no labels of classes."""
    labels, dtype = value["labels"], _dtype(value["dtype"])
    text = all(isinstance(label, str) for label in labels)
    if not labels or (dtype.kind in "OUM") != text:
        raise ValueError(f"it has no classes, or their labels are not of type {dtype}")
    found = np.array(labels, dtype=dtype)
    if found.ndim != 1 or (len(found) > 1 and not np.all(found[:-1] < found[1:])):
        raise ValueError("the labels of its classes are not distinct and sorted")
    return found


def columns_from_json(state: Mapping[str, Any]) -> tuple[int | None, np.ndarray | None]:
    """Number and names of the columns of X, where the model knows them."""
    n, names = state["n_features"], state["feature_names"]
    if n is not None:
        n = whole(state, "n_features")
    if names is None:
        return n, None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of its columns are not text")
    if n is not None and n != len(names):
        raise ValueError(f"it has {n} columns and {len(names)} names")
    return n, np.array(names, dtype=object)


def whole(state: Mapping[str, Any], name: str) -> int:
    """A count in a record; ValueError if it is none."""
    value = state[name]
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{name} is {shown(value)}, not a whole number >= 0")
    return value


def share(state: Mapping[str, Any], name: str) -> float | None:
    """A part of a whole in a record, if there is one; ValueError if it is none."""
    value = state.get(name)
    if not (value is None or (isinstance(value, float) and 0 <= value <= 1)):
        raise ValueError(f"{name} is {shown(value)}, not between 0 and 1")
    return value


def _dtype(name: Any) -> np.dtype:
    """A type of numbers, text or dates, of a size that text has."""
    dtype = np.dtype(name)
    if dtype.kind not in "biufOUM" or dtype.itemsize > 1 << 20:
        raise ValueError(f"a model file holds no values of type {dtype}")
    return dtype


FIT = "fit"  # `datatree.names.FIT`, which a reader of files does not import
FORMAT = 1  # raised when a change would make older versions misread a file
_ATTRIBUTE = "bayesgen_model"
_CHECKSUM = "bayesgen_sha256"
_END = b"\nbayesgen-sha256 "  # and 64 hexadecimal digits, a line feed: the last bytes of a file
_MOST_DECLARED = 100  # bytes that arrays may declare for each byte of the file
_MOST_TEXTS = 100  # in one attribute
# the name of a dimension without labels, which holds nothing and is not read
_BARE = re.compile(rb"This is a netCDF dimension but not a netCDF variable\. *\d+")
_TRIAL = (  # what another process does with a file that carries no digest
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from bayesgen.io.storage import read_through; read_through(sys.argv[1])"
)
_TRIAL_SECONDS, _TRIAL_SPEED = 20.0, 1e7  # bytes a second


def write(
    path: str | os.PathLike[str],
    fit: "xr.Dataset",
    state: Mapping[str, Any],
    draws: Mapping[str, "xr.Dataset"] | None = None,
) -> Path:
    """Write a model file atomically: a killed run or a full disk leaves the old file or none.

    Parameters
    ----------
    draws : {group: Dataset}, optional
        Further groups, of a posterior that is known by its draws.
    """
    draws = draws or {}
    for group in (fit, *draws.values()):
        _refuse_null_characters(group)
    text = json.dumps({"format": FORMAT, **state})
    attrs = {_ATTRIBUTE: text, _CHECKSUM: _checksum(text, fit, draws)}
    content = _netcdf({FIT: fit, **draws}, attrs)
    end = _END + hashlib.sha256(content).hexdigest().encode() + b"\n"
    with replacing(path) as temporary:
        temporary.write_bytes(content + end)
    return Path(path)


def _netcdf(groups: Mapping[str, "xr.Dataset"], attrs: Mapping[str, str]) -> bytes:
    """The bytes of a netCDF file with some groups and global attributes.

    Made in memory, because HDF5 ends the process where a disk is full; by HDF5's own driver for
    that, because with a Python file object the garbage collector may run inside HDF5.
    """
    import h5netcdf
    import xarray as xr
    from xarray.backends import H5NetCDFStore

    name = secrets.token_hex(8)  # HDF5 takes two files of one name for the same one
    options = {"driver": "core", "backing_store": False, "track_order": True}
    with _file_class()(name, "w", **options) as memory:
        with h5netcdf.File(memory, "w") as file:
            xr.Dataset(attrs=attrs).dump_to_store(H5NetCDFStore(file, mode="a"))
            for group, dataset in groups.items():
                dataset.dump_to_store(H5NetCDFStore(file, group=f"/{group}", mode="a"))
        memory.flush()
        image: bytes = memory.id.get_file_image()
    return image


def _refuse_null_characters(group: "xr.Dataset") -> None:
    for name, variable in group.variables.items():
        if variable.dtype.kind in "OUT":
            for value in variable.values.ravel().tolist():
                if isinstance(value, str) and "\0" in value:
                    raise ValueError(
                        f"{value[:60]!r} ({name}) has a null character, which a model file cannot "
                        "hold: replace it, and fit again"
                    )


def read(
    path: str | os.PathLike[str],
) -> tuple["xr.Dataset", dict[str, Any], dict[str, "xr.Dataset"]]:
    """(fit dataset, state, draws) of a model file, or one clear error."""
    import h5netcdf
    import xarray as xr
    from xarray.backends import H5NetCDFStore

    if not Path(path).is_file():
        raise FileNotFoundError(f"no model file at {path}")
    if not _has_digest(path):
        _refuse_fatal(path)
    try:
        with _file_class()(path, "r") as file:  # h5netcdf leaves half a file open where it fails
            _refuse_excess(file, path)
            with h5netcdf.File(file, "r", decode_vlen_strings=True) as tree:
                text, checksum = (tree.attrs.get(name) for name in (_ATTRIBUTE, _CHECKSUM))
                groups = {
                    name: xr.open_dataset(H5NetCDFStore(tree, group=name), engine="store").load()
                    for name in tree.groups
                }
                fit = groups.pop(FIT, None)
    except Exception as error:  # noqa: BLE001 - h5py, h5netcdf and xarray fail in many ways
        raise ValueError(
            f"{path} is not a readable model file (damaged, cut short, or not netCDF-4): "
            f"{type(error).__name__}: {error}"
        ) from None
    if text is None or fit is None:
        raise ValueError(
            f"{path} is a netCDF file but not a bayesgen model: write one with clf.save(path)"
        )
    try:
        state = json.loads(text)
        found = state.get("format")
    except (AttributeError, RecursionError, TypeError, ValueError):
        raise ValueError(f"{path} is damaged: its record of the model cannot be read") from None
    if found != FORMAT:
        raise ValueError(
            f"{path} has model format {shown(found)}, this version of bayesgen reads "
            f"format {FORMAT}: fit and save it again with this version"
        )
    if checksum != _checksum(text, fit, groups):
        raise ValueError(f"{path} is damaged: its checksum does not fit its numbers")
    for name, own in fit.variables.items():
        if own.dtype.kind in "fiu" and own.dtype.itemsize != 8:  # arithmetic of int8 overflows
            raise ValueError(
                f"{path} was not written by bayesgen: {name!r} holds {own.dtype}, not float64 or "
                "int64"
            )
    return fit, state, groups


@cache
def _file_class() -> Any:
    """Of HDF5 files in which each entry is looked up once.

    h5netcdf looks it up again for every property of it, which takes half the time.
    """
    import h5py  # type: ignore[import-untyped]

    class Group(h5py.Group):
        def __init__(self, bind: Any, entries: dict[str, Any]) -> None:
            super().__init__(bind)
            self._entries = entries

        def __delitem__(self, name: Any) -> None:  # h5netcdf makes dimensions with labels anew
            self._entries.clear()
            super().__delitem__(name)

    class File(h5py.File):
        def __init__(self, *args: Any, **options: Any) -> None:
            self._entries: dict[str, Any] = {}
            super().__init__(*args, **options)

        def __getitem__(self, name: Any) -> Any:
            if not isinstance(name, str):  # a reference
                return super().__getitem__(name)
            if name not in self._entries:
                found = super().__getitem__(name)
                is_group = isinstance(found, h5py.Group)
                self._entries[name] = Group(found.id, self._entries) if is_group else found
            return self._entries[name]

    return File


def _has_digest(path: str | os.PathLike[str]) -> bool:
    """Whether a file ends with a digest; a ValueError if it is not that of its bytes."""
    length = len(_END) + 65
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        left = os.fstat(file.fileno()).st_size - length
        while left > 0 and (part := file.read(min(left, 1 << 20))):
            digest.update(part)
            left -= len(part)
        end = file.read(length)
    known = _END[:8] in end  # a piece of it: the file was cut short
    if known and end != _END + digest.hexdigest().encode() + b"\n":
        raise ValueError(f"{path} is damaged: its bytes are not those that were written")
    return known


def _refuse_fatal(path: str | os.PathLike[str]) -> None:
    """Raise a ValueError for a file that HDF5 does not come to an end of, or that ends the process.

    Found by a process of its own (0.2 s); what is only refused there is refused here once more. An
    application that is one frozen file has no interpreter to start.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        return
    command = [sys.executable, "-c", _TRIAL, os.fspath(path), json.dumps(sys.path)]
    seconds = _TRIAL_SECONDS + os.path.getsize(path) / _TRIAL_SPEED
    try:
        code = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        raise ValueError(f"{path} is damaged: HDF5 was not through after {seconds:.0f} s") from None
    if code not in (0, 1):  # 1: an exception
        raise ValueError(f"{path} is damaged: a process that read it died (exit code {code})")


def read_through(path: str) -> None:
    """Have HDF5 read everything in a file, within the bounds of `read`."""
    import h5py

    def look(_: str, entry: Any) -> None:
        dict(entry.attrs)
        if isinstance(entry, h5py.Dataset) and not _is_bare(entry):
            entry[()]

    with h5py.File(path, "r") as file:
        _refuse_excess(file, path)
        dict(file.attrs)
        file.visititems(look)


def _refuse_excess(file: Any, path: str | os.PathLike[str]) -> None:
    """Raise for what no writer of models makes: data elsewhere, or more than the file can hold.

    Nothing is read whose size is not known before. Arrays and attributes of fixed size may declare
    100 bytes for each byte of the file. Text of variable length stands in the file piece by piece:
    where all pieces together are longer than the file, cells share them.
    """
    import h5py

    size = os.path.getsize(path)
    declared = text = 0
    seen, folders = {h5py.h5o.get_info(file.id).addr}, [file]
    while folders:
        folder = folders.pop()
        for name in folder:
            if not isinstance(folder.get(name, getlink=True), h5py.HardLink):
                raise ValueError(f"{name!r} is a link to somewhere else")
            entry = folder[name]
            if (place := h5py.h5o.get_info(entry.id).addr) in seen:
                raise ValueError(f"{name!r} is another name of something in it")
            seen.add(place)
            if isinstance(entry, h5py.Group):
                folders.append(entry)
            elif not isinstance(entry, h5py.Dataset):
                raise ValueError(f"{name!r} is a type, not numbers or text")
            elif entry.is_virtual or entry.external:
                raise ValueError(f"the numbers of {name!r} are in another file")
            elif not _is_bare(entry):
                declared += entry.size * entry.dtype.itemsize
                text += _text_bytes(entry, path) if entry.dtype.hasobject else 0
            _refuse_beyond(declared, text, size)  # before attributes are read
            of_fixed_size, of_texts = _attribute_bytes(entry, size - text)
            declared, text = declared + of_fixed_size, text + of_texts
    of_fixed_size, of_texts = _attribute_bytes(file, size - text)
    _refuse_beyond(declared + of_fixed_size, text + of_texts, size)


def _refuse_beyond(declared: int, text: int, size: int) -> None:
    if declared > _MOST_DECLARED * size:
        raise ValueError(f"its arrays declare {declared} bytes, and the file has {size}")
    if text > size:
        raise ValueError(f"its texts have {text} bytes, and the file has {size}")


def _is_bare(dataset: Any) -> bool:
    """Whether a dataset is a dimension without labels."""
    if "NAME" not in dataset.attrs:
        return False
    kind = dataset.attrs.get_id("NAME")
    return (kind.dtype.kind, kind.shape) == ("S", ()) and bool(
        _BARE.fullmatch(bytes(dataset.attrs["NAME"]))
    )


def _text_bytes(dataset: Any, path: str | os.PathLike[str]) -> int:
    """Bytes of a dataset of texts of variable length, from the lengths that stand in the file."""
    import h5py

    if dataset.size == 0:
        return 0
    string, at = h5py.check_string_dtype(dataset.dtype), dataset.id.get_offset()
    if string is None or at is None:  # in pieces, or a fill value in place of the cells
        raise ValueError(f"{dataset.name!r} is not stored as numbers and texts of a model are")
    stored = dataset.id.get_storage_size()  # of each cell its length, and where it stands
    raw = np.fromfile(path, np.uint8, stored, offset=at)
    if len(raw) < stored or stored % (4 * dataset.size):
        raise ValueError(f"{dataset.name!r} is cut short")
    lengths = raw.reshape(dataset.size, -1)[:, :4].copy().view("<u4")
    return int(lengths.sum(dtype=np.uint64))


def _attribute_bytes(entry: Any, left: int) -> tuple[int, int]:
    """Bytes of an entry's attributes, of fixed size and of texts; ValueError for other types.

    A text is read to know its length: it is at most as long as the file. `left` bytes of texts
    may be read.
    """
    import h5py

    fixed = texts = 0
    for name in entry.attrs:
        kind = entry.attrs.get_id(name)
        fields = [kind.dtype[field] for field in kind.dtype.names or ()]
        if not any(f.hasobject and not h5py.check_ref_dtype(f) for f in fields or [kind.dtype]):
            fixed += kind.get_storage_size()
        elif name == "DIMENSION_LIST" and kind.shape == (getattr(entry, "ndim", -1),):
            texts += 8 * sum(h5py.h5ds.get_num_scales(entry.id, i) for i in range(entry.ndim))
        elif (
            h5py.check_string_dtype(kind.dtype) and np.prod(kind.shape, dtype=float) <= _MOST_TEXTS
        ):
            found = entry.attrs[name]
            texts += sum(map(len, [found] if isinstance(found, str) else found.ravel()))
        else:
            raise ValueError(f"the attribute {name!r} is not what a model has")
        if texts > left:
            raise ValueError("its texts are longer than the file")
    return fixed, texts


def _checksum(text: str, fit: "xr.Dataset", draws: Mapping[str, "xr.Dataset"] | None = None) -> str:
    """SHA-256 of all that a model is read from: a flipped bit must not predict in silence."""
    digest = hashlib.sha256(str(text).encode())
    _digest(digest, fit)
    for name, group in sorted((draws or {}).items()):
        digest.update(name.encode())
        _digest(digest, group)
    return digest.hexdigest()


def _digest(digest: Any, fit: "xr.Dataset") -> None:
    """Add the variables of a group, and its attributes."""
    for name in sorted(map(str, fit.data_vars)):
        variable = fit[name].variable
        values = np.ascontiguousarray(variable.values)
        record = [name, list(variable.dims), list(variable.shape), values.dtype.str]
        digest.update(json.dumps([record, sorted(variable.attrs.items())], default=str).encode())
        digest.update(values.tobytes())
    digest.update(json.dumps(sorted(fit.attrs.items()), default=str).encode())


_OF_CONTENT = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError),
    *(TypeError, ValueError),
)


@contextmanager
def complete(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Anything that goes wrong while a model is made from a file is a ValueError about the file."""
    try:
        yield
    except _OF_CONTENT as error:
        kind, text = (
            "" if isinstance(error, ValueError) else f"{type(error).__name__}: ",
            str(error),
        )
        reason = kind + shortened(text)  # an entry of the file is in it
        raise ValueError(f"{path} does not hold a complete {what} ({reason})") from error
