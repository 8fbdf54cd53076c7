"""Writes files atomically: after a crash, a file has either its old content or the new one."""

import os
import tempfile
from pathlib import Path

from tui_agent.path_checks import is_there, real_path

_MAX_NAME_BYTES = 100
"""Number of bytes of a file's name that its temporary file's name begins with. Most file systems
accept names of up to 255 bytes, some only of up to 143."""


def write_atomically(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace a file's contents, following symlinks. Creates missing files and directories.

    ``mode`` is the new permission bits. If it is None, an existing file keeps its permissions, and
    a new file is created with 0o666 minus the umask. If the file can't be written, it stays
    unchanged, and OSError with its path is raised.
    """
    path = real_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode is None:
        os.umask(mask := os.umask(0))
        if is_there(path):
            mode = path.stat().st_mode & 0o7777
        else:
            mode = 0o666 & ~mask
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=temporary_prefix(path.name))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def temporary_prefix(name: str) -> str:
    """Return the beginning of a name for the temporary file that replaces the file ``name``."""
    begin = os.fsencode(name)[:_MAX_NAME_BYTES].decode("utf-8", "ignore")
    return f".{begin}."
