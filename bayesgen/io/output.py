"""Files that are written: the target is checked before the work, and replaced whole or not at all.

A new file is written beside its target under a private name, ``.bayesgen-RANDOM.tmp``, and renamed
when it is complete. A process that is killed outright (SIGKILL, power) leaves it behind.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
