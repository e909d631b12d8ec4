"""Model files: one netCDF file, written whole or not at all, read without pickle.

A model file is the DataTree group ``fit`` and a JSON attribute with the constructor's arguments;
after a fit by NUTS also the groups of its draws. The SHA-256 digest of the netCDF file stands in
the 82 bytes behind it. It is compared before HDF5 reads anything, so that a damaged file is an
error. A file that another program wrote again has no digest and is read without this check.

The digest is not a signature. Open files that you trust: a file can predict whatever its author
wants.
"""

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.encoding.literals import Json, shortened
from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.tokens import Vocabulary
from bayesgen.encoding.views import BinnedTable, TableView, TextLength

if TYPE_CHECKING:
    import xarray as xr


# ------------------------------------------------------------------------------------------------
# Constructor arguments, labels, counts and what readers know of columns as plain JSON, and back:
# what a model file may hold.

_RECORDS: dict[str, Any] = {
    kind.__name__: kind for kind in (BinnedTable, TableSchema, TableView, TextLength, Vocabulary)
}


def to_json(value, name: str):
    """Return a value as plain JSON; arrays, tuples and records are tagged."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        plain = value.astype(str) if value.dtype.kind == "M" else value  # JSON has no dates
        return {"array": to_json(plain.tolist(), name), "dtype": value.dtype.str}
    if isinstance(value, list):
        return [to_json(v, name) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [to_json(v, name) for v in value]}
    if isinstance(value, Mapping):
        return {"pairs": [[to_json(k, name), to_json(v, name)] for k, v in value.items()]}
    if type(value) in _RECORDS.values():
        content = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"record": type(value).__name__, "fields": to_json(content, name)}
    if hasattr(value, "__array__") and not isinstance(value, np.generic):  # no long double
        return to_json(np.asarray(value), name)
    raise TypeError(
        f"cannot save {name}={value!r}: a model file holds numbers, strings, dates and arrays only"
    )


def from_json(value):
    """Inverse of `to_json`."""
    if isinstance(value, list):
        return [from_json(v) for v in value]
    if isinstance(value, dict):
        if "array" in value:
            return np.array(from_json(value["array"]), dtype=np.dtype(value["dtype"]))
        if "tuple" in value:
            return tuple(from_json(v) for v in value["tuple"])
        if "record" in value:
            return _RECORDS[value["record"]](**from_json(value["fields"]))
        return {from_json(k): from_json(v) for k, v in value["pairs"]}
    return value


def arguments_from_json(record: dict) -> dict:
    """Return constructor arguments of a record."""
    return {name: from_json(value) for name, value in record.items()}


FIT = "fit"  # `datatree.names.FIT`, which a reader of files does not import
FORMAT = 1  # raised when a change would make older versions misread a file
_ATTRIBUTE = "bayesgen_model"
_MARK = b"\nbayesgen-"  # before the digest, at the end of a file
_MOST_DECLARED = 1100  # bytes of arrays for each byte of the file: zlib's limit is 1032
_COMPRESSED = 1 << 12  # bytes of an array from which on it is compressed


def write(
    path: str | os.PathLike[str],
    fit: "xr.Dataset",
    state: Mapping[str, Any],
    draws: Mapping[str, "xr.Dataset"] | None = None,
) -> None:
    """Write a model file atomically: a killed run or a full disk leaves the old file or none.

    Parameters
    ----------
    path : str or path
    fit : Dataset
        The group ``fit``.
    state : {name: JSON value}
        Constructor arguments and what else is not an array.
    draws : {group: Dataset}, optional
        Further groups, such as the draws of a fit by NUTS.
    """
    groups = {FIT: fit, **(draws or {})}
    for group in groups.values():
        _refuse_null_characters(group)
    content = _netcdf(groups, {_ATTRIBUTE: json.dumps({"format": FORMAT, **state})})
    with replacing(path) as temporary:
        temporary.write_bytes(content + _MARK + _digest(content))


def _netcdf(groups: Mapping[str, "xr.Dataset"], attrs: Mapping[str, str]) -> bytes:
    """Return the bytes of a netCDF file with some groups and global attributes.

    Made in memory, because HDF5 ends the process where a disk is full; by HDF5's own driver for
    that, because with a Python file object the garbage collector may run inside HDF5.
    """
    import h5netcdf
    import h5py  # type: ignore[import-untyped]
    import xarray as xr
    from xarray.backends import H5NetCDFStore

    name = secrets.token_hex(8)  # HDF5 takes two files of one name for the same one
    options = {"driver": "core", "backing_store": False, "track_order": True}
    with h5py.File(name, "w", **options) as memory:
        with h5netcdf.File(memory, "w") as file:
            xr.Dataset(attrs=attrs).dump_to_store(H5NetCDFStore(file, mode="a"))
            for group, dataset in groups.items():
                store = H5NetCDFStore(file, group=f"/{group}", mode="a")
                dataset.dump_to_store(store, encoding=_compression(dataset))
        memory.flush()
        image: bytes = memory.id.get_file_image()
    return image


def _compression(group: "xr.Dataset") -> dict[Any, dict]:
    """Return the encoding of large arrays of numbers; counts of n-grams shrink to a fiftieth."""
    options = {"zlib": True, "complevel": 4, "shuffle": True}
    return {
        name: options
        for name, variable in group.variables.items()
        if variable.dtype.kind in "iuf" and variable.nbytes >= _COMPRESSED
    }


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
) -> tuple["xr.Dataset", Json, dict[str, "xr.Dataset"]]:
    """Return (fit dataset, state, draws) of a model file, or raise one clear error."""
    import h5netcdf
    import xarray as xr
    from xarray.backends import H5NetCDFStore

    if not Path(path).is_file():
        raise FileNotFoundError(f"no model file at {path}")
    _refuse_damaged(path)
    try:
        with h5netcdf.File(path, "r", decode_vlen_strings=True) as tree:
            groups = {
                name: xr.open_dataset(H5NetCDFStore(tree, group=name), engine="store")
                for name in tree.groups
            }
            declared, size = sum(group.nbytes for group in groups.values()), os.path.getsize(path)
            if declared > _MOST_DECLARED * size:
                raise ValueError(f"its arrays declare {declared} bytes, and the file has {size}")
            text = tree.attrs.get(_ATTRIBUTE)
            groups = {name: group.load() for name, group in groups.items()}
    except Exception as error:  # noqa: BLE001 - h5py, h5netcdf and xarray fail in many ways
        raise ValueError(
            f"{path} is not a readable model file (damaged, cut short, or not netCDF-4): "
            f"{type(error).__name__}: {error}"
        ) from None
    if text is None or FIT not in groups:
        raise ValueError(
            f"{path} is a netCDF file but not a bayesgen model: write one with clf.save(path)"
        )
    state = json.loads(text)
    if state.get("format") != FORMAT:
        raise ValueError(
            f"{path} has model format {state.get('format')!r}, this version of bayesgen reads "
            f"format {FORMAT}: fit and save it again with this version"
        )
    return groups.pop(FIT), state, groups


def read_entry(path: str | os.PathLike[str], name: str):
    """Return an entry of the state of a model file; None if it has none or cannot be read."""
    import h5netcdf

    try:
        with h5netcdf.File(path, "r", decode_vlen_strings=True) as tree:
            return json.loads(tree.attrs[_ATTRIBUTE]).get(name)
    except (OSError, LookupError, ValueError):
        return None


def _refuse_damaged(path: str | os.PathLike[str]) -> None:
    """Raise ValueError if a file ends with a digest that is not that of its bytes."""
    body, mark, end = Path(path).read_bytes().rpartition(_MARK)
    if mark and end != _digest(body):
        raise ValueError(f"{path} is damaged: its bytes are not those that were written")


def _digest(body: bytes) -> bytes:
    return b"sha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n"


_OF_CONTENT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@contextmanager
def complete(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Make anything that goes wrong while a model is built a ValueError about the file."""
    try:
        yield
    except _OF_CONTENT as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        reason = kind + shortened(str(error))
        raise ValueError(f"{path} does not hold a complete {what} ({reason})") from error


# ------------------------------------------------------------------------------------------------
# Any file that is written: its place is checked before the work, and it is replaced whole or not at
# all. A new file is written beside it under a private name, ``.bayesgen-RANDOM.tmp``, and renamed
# when it is complete. A process that is killed outright (SIGKILL, power) leaves it behind.


def check_target(path: str | os.PathLike[str], *inputs: Path) -> Path:
    """Return where `path` is written, all links resolved; refuse a place where that cannot be.

    Parameters
    ----------
    path : str or path
    inputs : paths
        Files that are read: the target must be none of them, under whatever name.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.
    PermissionError
        If the file is read-only, or nothing can be written into the folder.
    OSError
        If the name is too long.
    ValueError
        If a folder, a pipe or a device has the name, or an input.
    """
    target = Path(os.path.realpath(path))  # a link is written through, not replaced
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: {target.parent} is not a folder")
    if target.exists():
        if not target.is_file():
            raise ValueError(f"cannot write {path}: it is a folder or a device, not a file")
        for source in inputs:
            if source.exists() and target.samefile(source):
                raise ValueError(
                    f"cannot write {path}: it is the file to be read, {source}; name another"
                )
        if not target.stat().st_mode & 0o222 or not os.access(target, os.W_OK):  # 0o222: for root
            raise PermissionError(
                f"cannot write {path}: it is read-only; allow writing, or name another file"
            )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(
            f"cannot write {path}: there is no permission to write in {target.parent}"
        )
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new file that takes the place of `path` if nothing goes wrong, and else is removed.

    It has the mode of the file that it replaces.

    Raises
    ------
    OSError
        Of the block that writes, or of the renaming, with `path` for its file name; a file that
        was there before is as it was.
    """
    target = check_target(path)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    temporary = target.with_name(f".bayesgen-{secrets.token_hex(8)}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    try:
        file = os.open(temporary, flags, 0o666 if mode is None else 0o600)
        try:
            if mode is not None:
                os.fchmod(file, mode)
            yield temporary
            os.fsync(file)  # or a power cut may leave the new name on an empty file
        finally:
            os.close(file)
        os.replace(temporary, target)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno, reason, str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)
