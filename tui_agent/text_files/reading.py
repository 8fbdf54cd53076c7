"""Reads text files: a whole file in order to change it, or some lines of a file of any size."""

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
"""Maximum number of bytes read after the returned lines to count the file's remaining lines."""
MAX_WINDOW_CHARS = 1_000_000
"""One read returns no further lines after this many characters."""

_MAX_WIDE_BYTES = 64 * 1024 * 1024
"""Maximum size, in bytes, of a UTF-16 or UTF-32 file that lines can be read from."""
_CHUNK = 1024 * 1024
_CUT_NOTE = 30
"""Number of characters of a cut line that are reserved for the note on the omitted part."""


@frozen
class TextFile:
    """The content of a whole text file, and its encoding.

    ``text`` keeps the file's own line endings; undecodable bytes are lone surrogates.
    """

    text: str
    encoding: Encoding = UTF_8
    charset: str = ""
    """The charset that ``.editorconfig`` declares for the file; "" if none."""

    def encoded(self, text: str, shown: str) -> bytes:
        """Return the bytes of the file after its text was changed to ``text``, in its encoding.

        ``shown`` is the file's name for error messages.

        Raises:
            ToolError: the encoding lacks a character, or the new bytes would be detected as another
                encoding (this is not checked if the file was empty).
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
                f"{shown} is {encoding.name}, but after this change it would be read in another encoding. Nothing was "
                "changed; convert the file with bash (iconv) first."
            )
        return data

    def _encoding_of(self, text: str) -> Encoding:
        """Return the encoding in which a changed text is written.

        This is the file's present encoding. A file that is new or pure ASCII receives the encoding
        that the new text or ``.editorconfig`` declares.
        """
        if self.encoding.bom or not self.text.isascii():
            return self.encoding
        declared = declared_encoding(text, self.charset)
        # Only new files get a byte order mark.
        return self.encoding if declared.bom and self.text else declared

    def _is_read_as(self, text: str, data: bytes, encoding: Encoding) -> bool:
        found = detect(data, declared=self.charset)
        if found is None:
            return False
        return bool(encoding.bom) or found == encoding or found.decode(data) == text


@frozen
class TextStart:
    """The text of a file's first ``bytes_read`` bytes; ``size`` is the file's size, in bytes."""

    text: str
    bytes_read: int
    size: int


@frozen
class Window:
    """Some consecutive lines of a file, without line endings; long lines are cut.

    ``first`` is the number of the first line, from 1; ``size`` is the file's size in bytes.
    ``total`` is the number of lines in the file if ``counted`` is True, otherwise a lower bound.
    """

    lines: list[str]
    first: int
    total: int
    counted: bool
    size: int
    hidden: int = 0
    """Number of these lines in which secrets are redacted."""

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def encoding_of(path: Path) -> Encoding | None:
    """Return the encoding of the file at an absolute path, None if it is binary.

    Raises OSError if it can't be read, or the path contains a link.
    """
    with open_file(path) as file:
        data = file.read(DETECTED_BYTES)
        whole = not file.read(1)
    return detect(data, whole=whole, declared=declared_charset(path))


def load(path: Path, shown: str, *, max_bytes: int) -> TextFile:
    """Read a whole text file in order to change it; ``shown`` is its name for error messages.

    Raises ToolError if the file is binary, larger than ``max_bytes``, or contains bytes that would
    change if its text were written back; OSError if it can't be read, or the absolute ``path``
    contains a link.
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
    """Return an empty `TextFile` for a path without a file, with the charset declared for it."""
    return TextFile("", charset=declared_charset(path))


def read_start(path: Path, limit: int) -> TextStart | None:
    """Return the first ``limit`` bytes of a file as text, or None if it is binary.

    Undecodable bytes become U+FFFD; an incomplete character at the end is omitted. Raises OSError
    if the file can't be read, or the absolute ``path`` contains a link.
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
    """Return some lines of a file, and how many lines it has, without reading it into memory.

    Args:
        path: the file's absolute path.
        encoding: the file's encoding. A UTF-16 or UTF-32 file is read into memory as a whole.
        wanted: the line numbers, from 1. Fewer lines are returned at the end of the file, and after
            `MAX_WINDOW_CHARS`.
        line_chars: the maximum characters of a line; a longer one ends with a note on its rest.

    Raises:
        ToolError: a UTF-16 or UTF-32 file is too large.
        OSError: the file can't be read, or the path contains a link.
    """
    size = path.stat().st_size
    if not encoding.is_wide:
        with open_file(path) as file:
            file.seek(len(encoding.bom))
            return _window(file, encoding, wanted, line_chars, size)
    if size > _MAX_WIDE_BYTES:
        raise ToolError(
            f"This {encoding.name} file is too large; convert it with bash (iconv) first."
        )
    with open_file(path) as file:
        return replace(window_of(encoding.decode(file.read()), wanted, line_chars), size=size)


def window_of(text: str, wanted: range, line_chars: int) -> Window:
    """Return some lines of a text as `read_window` does for a file.

    The ``size`` of the result is counted in UTF-8 bytes.
    """
    data = text.encode("utf-8", "surrogatepass")
    return _window(io.BytesIO(data), UTF_8, wanted, line_chars, len(data))


def line_text(data: bytes, path: Path) -> str:
    """Return the text of a line's bytes, as ripgrep prints them, with U+FFFD for undecodable bytes.

    Bytes that aren't UTF-8 are decoded with the encoding of the file ``path``. An incomplete
    character at the end is omitted.
    """
    text = UTF_8.decode(data)
    if odd_bytes_shown(text) == text:
        return text
    try:
        encoding = encoding_of(path)
    except OSError:
        encoding = None
    return odd_bytes_shown((encoding or UTF_8).decode_start(data))


def without_secrets(window: Window, path: Path, line_chars: int) -> Window:
    """Return a window of the file ``path`` with secrets in its lines redacted.

    ``line_chars`` is the maximum length of a line. A window of a secret file is returned unchanged,
    because the user has allowed reading that file.
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


def _window(
    file: BinaryIO, encoding: Encoding, wanted: range, line_chars: int, size: int
) -> Window:
    skipped = _skip(file, wanted.start - 1)
    lines: list[str] = []
    room = MAX_WINDOW_CHARS
    if skipped == wanted.start - 1:
        while len(lines) < len(wanted) and room >= 0:
            line = _next_line(file, encoding, line_chars)
            if line is None:
                break
            lines.append(line)
            room -= len(line)
    rest, counted = _count_lines(file)
    return Window(lines, wanted.start, skipped + len(lines) + rest, counted, size)


def _skip(file: BinaryIO, lines: int) -> int:
    """Skip ``lines`` lines, fewer if the file ends earlier; return the number of skipped lines."""
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


def _next_line(file: BinaryIO, encoding: Encoding, chars: int) -> str | None:
    """Return the next line, cut to ``chars`` characters; None at the end of the file."""
    piece = file.readline(chars * 4)
    if not piece:
        return None
    size = len(piece)
    more = piece
    while more and not more.endswith(b"\n"):
        more = file.readline(_CHUNK)
        size += len(more)
    # The first piece of a long line might end in the middle of a character.
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


def _count_lines(file: BinaryIO) -> tuple[int, bool]:
    """Count the remaining lines; return their number, and whether the file's end was reached."""
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
