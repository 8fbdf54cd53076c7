"""Reads text files from disk: a whole file to change it, or some lines of a file of any size."""

import io
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from tui_agent.errors import ToolError
from tui_agent.files.inside import open_file
from tui_agent.files.secret_files import is_secret_file, shown_line
from tui_agent.lazy import frozen
from tui_agent.text_files.editorconfig import declared_charset
from tui_agent.text_files.encodings import (
    DETECTED_BYTES,
    UTF_8,
    Encoding,
    declared_encoding,
    detect,
    odd_bytes_shown,
)

MAX_COUNTED_BYTES = 512 * 1024 * 1024
"""Maximum bytes after the shown lines in which further lines are counted."""
MAX_WINDOW_BYTES = 1_000_000
"""Maximum bytes of the lines returned by one read."""

_MAX_WIDE_BYTES = 64 * 1024 * 1024
_CHUNK = 1024 * 1024
_CUT_NOTE = 30


@frozen
class TextFile:
    """A whole text file.

    ``text`` has its line endings, and undecodable bytes as lone surrogates.
    """

    text: str
    encoding: Encoding = UTF_8
    charset: str = ""
    """The charset that ``.editorconfig`` declares for the file, "" for none."""

    def encoded(self, text: str, shown: str) -> bytes:
        """Return the bytes of the file with another text, in its encoding.

        Raises:
            ToolError: a character has no place in the encoding, or it would be read in another one
                then.
        """
        encoding = self._encoding_of(text)
        try:
            data = encoding.encode(text)
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise ToolError(
                f"{shown} is {encoding.name}, which has no {character!r} (U+{ord(character):04X}). Nothing was "
                "changed; use other characters, or convert the file with bash (iconv) first."
            ) from None
        if self.text and not self._is_read_as(text, data, encoding):
            raise ToolError(
                f"{shown} is {encoding.name}, and after this change would be taken for another encoding. Nothing was "
                "changed; convert the file with bash (iconv) first."
            )
        return data

    def _encoding_of(self, text: str) -> Encoding:
        """Return the encoding for a changed text.

        For a pure ASCII file the one that the text declares.
        """
        if self.encoding.bom or not self.text.isascii():
            return self.encoding
        declared = declared_encoding(text, self.charset)
        # A mark is only put into new files.
        return self.encoding if declared.bom and self.text else declared

    def _is_read_as(self, text: str, data: bytes, encoding: Encoding) -> bool:
        found = detect(data, declared=self.charset)
        if found is None:
            return False
        return bool(encoding.bom) or found == encoding or found.decode(data) == text


@frozen
class TextStart:
    """The beginning of a text file; ``size`` is that of the whole file, in bytes."""

    text: str
    bytes_read: int
    size: int


@frozen
class Window:
    """Some lines of a file.

    ``total`` is the number of all lines or, if not ``counted``, of those read.
    """

    lines: list[str]
    first: int
    total: int
    counted: bool
    size: int
    hidden: int = 0
    """Number of lines in which secrets are redacted."""

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def encoding_of(path: Path) -> Encoding | None:
    """Return a file's encoding, None if it is not text; raises OSError if it can't be read.

    ``path`` is absolute and without links.
    """
    with open_file(path) as file:
        data = file.read(DETECTED_BYTES)
        whole = not file.read(1)
    return detect(data, whole=whole, declared=declared_charset(path))


def load(path: Path, shown: str, *, max_bytes: int) -> TextFile:
    """Read a text file in order to change it. ``path`` is absolute and without links.

    Raises ToolError if the file is binary, larger than ``max_bytes``, or would differ when written
    unchanged; OSError if it can't be read.
    """
    if path.stat().st_size > max_bytes:
        raise ToolError(f"{shown} is larger than {max_bytes // 1_000_000} MB; change it with bash.")
    with open_file(path) as file:
        data = file.read()
    charset = declared_charset(path)
    encoding = detect(data, declared=charset)
    if encoding is None:
        raise ToolError(f"{shown} is a binary file; change it with bash.")
    text = encoding.decode(data)
    if not _is_exact(encoding, data, text):
        raise ToolError(f"{shown} is not valid {encoding.name}; change it with bash.")
    return TextFile(text, encoding, charset)


def new_file(path: Path) -> TextFile:
    """Return an empty text file for a path that doesn't exist yet."""
    return TextFile("", charset=declared_charset(path))


def read_start(path: Path, limit: int) -> TextStart | None:
    """Return the first ``limit`` bytes of a file as text, None if it is not text.

    Raises OSError.
    """
    encoding = encoding_of(path)
    if encoding is None:
        return None
    with open_file(path) as file:
        data = file.read(limit)
    size = path.stat().st_size
    if size > len(data):
        text = encoding.decode_start(data)
    else:
        text = encoding.decode(data)
    return TextStart(odd_bytes_shown(text), len(data), size)


def read_window(path: Path, encoding: Encoding, wanted: range, line_chars: int) -> Window:
    """Return the wanted lines without holding more of the file than them, and count the others.

    Args:
        path: absolute and without links.
        encoding: the file's.
        wanted: numbers of lines, from 1.
        line_chars: characters of a line after which it is cut.

    Raises:
        ToolError: its encoding has to be read whole, and it is too large for that.
        OSError: it can't be read.
    """
    size = path.stat().st_size
    if not encoding.is_wide:
        with open_file(path) as file:
            file.seek(len(encoding.bom))
            return _cut_out(file, encoding, wanted, line_chars, size)
    if size > _MAX_WIDE_BYTES:
        raise ToolError(
            f"This {encoding.name} file is too large; convert it with bash (iconv) first."
        )
    with open_file(path) as file:
        return replace(window_of(encoding.decode(file.read()), wanted, line_chars), size=size)


def window_of(text: str, wanted: range, line_chars: int) -> Window:
    """Return the wanted lines of a text; the arguments are those of `read_window`."""
    data = text.encode("utf-8", "surrogatepass")
    return _cut_out(io.BytesIO(data), UTF_8, wanted, line_chars, len(data))


def line_text(data: bytes, path: Path) -> str:
    """Return the text of a line, or of its beginning, with U+FFFD for undecodable bytes."""
    text = UTF_8.decode(data)
    if odd_bytes_shown(text) == text:
        return text
    try:
        encoding = encoding_of(path)
    except OSError:
        encoding = None
    return odd_bytes_shown((encoding or UTF_8).decode_start(data))


def without_secrets(window: Window, path: Path, line_chars: int) -> Window:
    """Return a window with its secrets redacted.

    A file that is a secret as a whole was asked about before, and is not redacted.
    """
    if is_secret_file(path):
        return window
    lines = []
    hidden = 0
    for number, line in enumerate(window.lines, window.first):
        shown = shown_line(path, number, line)[:line_chars]
        hidden += shown != line
        lines.append(shown)
    return replace(window, lines=lines, hidden=hidden)


def _is_exact(encoding: Encoding, data: bytes, text: str) -> bool:
    """Return True if encoding the text gives the same bytes again."""
    try:
        return encoding.encode(text) == data
    except UnicodeEncodeError:
        return False


def _cut_out(
    file: BinaryIO, encoding: Encoding, wanted: range, line_chars: int, size: int
) -> Window:
    skipped = _skip(file, wanted.start - 1)
    lines: list[str] = []
    room = MAX_WINDOW_BYTES
    if skipped == wanted.start - 1:
        while len(lines) < len(wanted) and room >= 0:
            line = _line(file, encoding, line_chars)
            if line is None:
                break
            lines.append(line)
            room -= len(line)
    rest, counted = _count(file)
    return Window(lines, wanted.start, skipped + len(lines) + rest, counted, size)


def _skip(file: BinaryIO, lines: int) -> int:
    """Skip ``lines`` lines; returns how many were skipped, fewer if the file ends before."""
    passed = 0
    while passed < lines:
        start = file.tell()
        chunk = file.read(_CHUNK)
        if not chunk:
            break
        found = chunk.count(b"\n")
        if passed + found < lines:
            passed += found
            if not chunk.endswith(b"\n") and len(chunk) < _CHUNK:
                passed += 1
            continue
        position = -1
        for _ in range(lines - passed):
            position = chunk.index(b"\n", position + 1)
        file.seek(start + position + 1)
        passed = lines
    return passed


def _line(file: BinaryIO, encoding: Encoding, chars: int) -> str | None:
    """Return the next line, cut to ``chars`` characters; None at the end of the file."""
    piece = file.readline(chars * 4)
    if not piece:
        return None
    size = len(piece)
    more = piece
    while more and not more.endswith(b"\n"):
        more = file.readline(_CHUNK)
        size += len(more)
    # A piece of a long line may end in the middle of a character.
    if size == len(piece):
        whole = encoding.decode(piece)
    else:
        whole = encoding.decode_start(piece)
    text = odd_bytes_shown(whole.rstrip("\r\n").replace("\0", "␀"))
    if len(text) <= chars and size == len(piece):
        return text
    shown = text[: chars - _CUT_NOTE]
    left = size - more.endswith(b"\n") - len(shown.encode(encoding.name, "replace"))
    return f"{shown} [+{left:,} bytes]"


def _count(file: BinaryIO) -> tuple[int, bool]:
    """Count the remaining lines; returns the number, and whether the end was reached."""
    lines = 0
    seen = 0
    last = b"\n"
    while chunk := file.read(_CHUNK):
        lines += chunk.count(b"\n")
        last = chunk[-1:]
        seen += len(chunk)
        if seen > MAX_COUNTED_BYTES:
            return lines, False
    return lines + (last != b"\n"), True
