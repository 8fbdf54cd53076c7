"""Text files as bytes on disk and text in memory: encodings, line endings, atomic replacement."""

import codecs
import contextlib
import errno
import io
import os
import re
import secrets
import stat
from pathlib import Path

from tui_agent.errors import ToolError
from tui_agent.files.inside import directory, open_file
from tui_agent.lazy import dataclass

SAMPLE_BYTES = 64 * 1024
"""How much of a file is looked at to tell its kind."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"
_CONTROL_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's bytes are text. ``bom`` is the byte order mark it starts with, if any."""

    name: str = "utf-8"
    bom: bytes = b""

    def decode(self, data: bytes) -> str:
        """Return the text of a whole file, without the mark it starts with.

        Raises:
            UnicodeDecodeError: the bytes are something else.
        """
        return data[len(self.bom) :].decode(self.name)

    def encode(self, text: str) -> bytes:
        """Return the bytes of a whole file.

        Raises:
            UnicodeEncodeError: a character has no place in the encoding.
        """
        return self.bom + text.encode(self.name)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A whole text file; ``text`` has its line endings as they are on disk."""

    text: str
    encoding: Encoding = Encoding()


def detect(sample: bytes, *, whole: bool) -> Encoding | None:
    """Return the encoding that the first bytes of a file speak for, None when they are not text.

    Unless they are the ``whole`` file, a character may be cut at their end.
    """
    for bom, name in _BOMS:
        if sample.startswith(bom):
            return Encoding(name, bom)
    if b"\0" in sample:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=whole)
    except UnicodeDecodeError:
        controls = len(sample) - len(sample.translate(None, _CONTROLS))
        return None if controls > len(sample) * _CONTROL_SHARE else Encoding("latin-1")
    return Encoding()


def load(path: Path, shown: str, *, max_bytes: int) -> TextFile:
    """Return a text file to be changed. ``path`` is absolute and without links.

    Raises:
        ToolError: it is binary or larger than ``max_bytes``.
        OSError: it can't be read.
    """
    if path.stat().st_size > max_bytes:
        raise ToolError(f"{shown} is larger than {max_bytes // 1_000_000} MB; change it with bash.")
    with open_file(path) as file:
        data = file.read()
    encoding = detect(data[:SAMPLE_BYTES], whole=len(data) <= SAMPLE_BYTES)
    if encoding is None:
        raise ToolError(f"{shown} is a binary file; change it with bash.")
    try:
        return TextFile(encoding.decode(data), encoding)
    except UnicodeDecodeError:
        # Plain UTF-8 at the start and something else later: every byte is a latin-1 character, so nothing is lost.
        if encoding.bom:
            raise ToolError(f"{shown} is not valid {encoding.name}; change it with bash.") from None
        latin = Encoding("latin-1")
        return TextFile(latin.decode(data), latin)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their endings, as editors count them: only a line feed ends a line."""
    return list(io.StringIO(text, newline="\n"))


def newline_of(text: str) -> str:
    """Return the line ending that most lines of a text have; a line feed when there is none."""
    feeds = text.count("\n")
    return "\r\n" if text.count("\r\n") * 2 > feeds else "\n"


def with_newlines(text: str, newline: str) -> str:
    return re.sub(r"\r?\n", newline, text)


def replace_file(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Put new content in place of a file in one step; make it if there is none.

    ``path`` is absolute and without links. The mode is kept unless one is given. A file that has other names (hard
    links) or whose directory takes no new files is written in place instead: replacing it would cut the names apart.

    Raises:
        OSError: it can't be written, or a link is in the way; the old content is still there.
    """
    with directory(path.parent) as parent:
        before = _status(path.name, parent)
        if before and stat.S_ISLNK(before.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        if before and not os.access(path.name, os.W_OK, dir_fd=parent):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        if before and (before.st_nlink > 1 or not os.access(".", os.W_OK, dir_fd=parent)):
            descriptor = os.open(path.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            with open(descriptor, "wb") as file:  # noqa: PTH123 - from a descriptor
                _make_room(descriptor, len(data))
                file.write(data)
                file.truncate()
                if mode is not None:
                    os.fchmod(descriptor, mode)
            return
        scratch = f".{path.name[:100]}.{secrets.token_hex(4)}.tmp"
        try:
            _write_new(scratch, parent, data, before, mode)
            os.replace(scratch, path.name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(scratch, dir_fd=parent)
            raise


def _status(name: str, parent: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _make_room(descriptor: int, size: int) -> None:
    """Reserve the space a file will take, so that a full disk is met before its old content is gone."""
    before = os.fstat(descriptor).st_size
    if size <= before or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, before, size - before)
    except OSError as error:
        os.ftruncate(descriptor, before)
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP}:
            raise


def _write_new(name: str, parent: int, data: bytes, like: os.stat_result | None, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # With a mode to come, nobody else reads it before it has that.
    descriptor = os.open(name, flags, 0o666 if mode is None else 0o600, dir_fd=parent)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - from a descriptor
        file.write(data)
        if like is None:
            if mode is not None:
                os.fchmod(descriptor, mode)
            return
        if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()) and os.geteuid() == 0:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        os.fchmod(descriptor, like.st_mode & 0o7777 if mode is None else mode)
