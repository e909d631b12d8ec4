"""Files that are written: one resolved path for the check and the writing, replaced whole or not.

A new file is made beside its target under a name of our own, ``.bayesgen-DIGEST-RANDOM.tmp``, and
renamed when it is complete. A process that is killed outright (SIGKILL, power) leaves it behind;
the next writer of the same target deletes it, unless its writer is alive and holds the lock.
"""

import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


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
        If the name is too long, or a link leads to itself.
    ValueError
        If a folder, a pipe or a device has the name, or an input.
    """
    given = Path(path)
    target = Path(os.path.realpath(given))  # a link is written through, not replaced
    try:
        for folder in (given.parent, target.parent):  # "no/../file" resolves, and is not there
            if not folder.is_dir():
                raise FileNotFoundError(f"cannot write {given}: {folder} is not a folder")
        old = None
        with suppress(FileNotFoundError):
            old = target.stat()
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(f"cannot write {given}: {error.strerror}") from None
    if old is not None:
        if not stat.S_ISREG(old.st_mode):
            raise ValueError(f"cannot write {given}: it is a folder or a device, not a file")
        for source in inputs:
            if source.exists() and os.path.samestat(old, source.stat()):
                same = "" if given == source else f", {source}"
                raise ValueError(
                    f"cannot write {given}: it is the file to be read{same}; name another"
                )
        if not old.st_mode & 0o222 or not os.access(target, os.W_OK):  # root may write anything
            raise PermissionError(
                f"cannot write {given}: it is read-only; allow writing, or name another file"
            )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(
            f"cannot write {given}: there is no permission to write in {target.parent}"
        )
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new file that takes the place of `path` if nothing goes wrong, and else is removed.

    It has the mode of the file that it replaces and, where that is allowed, its owner and group.

    Raises
    ------
    OSError
        Of the block that writes, or of the renaming, with `path` for its file name; a file that
        was there before is as it was.
    """
    target = check_target(path)
    prefix = f".bayesgen-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"
    temporary = target.with_name(f"{prefix}{secrets.token_hex(4)}.tmp")
    mode = 0o600 if target.exists() else 0o666
    try:  # before the file is there: a signal may come at any time
        _remove_leftovers(target.parent, prefix)
        with open(temporary, "xb", opener=lambda name, how: os.open(name, how, mode)) as file:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                _take_over(file, target.stat())
            yield temporary
            os.fsync(file.fileno())  # or a power cut may leave the new name on an empty file
            temporary.replace(target)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno or errno.EIO, reason, str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _take_over(file: BinaryIO, old: os.stat_result) -> None:
    """Give a new file the owner, group and mode of an old one."""
    for owner in ((-1, old.st_gid), (old.st_uid, -1)):
        with suppress(PermissionError):
            os.fchown(file.fileno(), *owner)
    os.fchmod(file.fileno(), old.st_mode & 0o777)


def _remove_leftovers(folder: Path, prefix: str) -> None:
    """Delete what writers of the same target left behind that were killed."""
    for left in folder.glob(f"{prefix}????????.tmp"):
        with suppress(OSError), open(left, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its writer is alive
            left.unlink()
