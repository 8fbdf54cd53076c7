"""Reads untrusted JSON files and databases to import; limits their sizes and checks value types.

Every error is an `ImportRefused`, which names the file and, if possible, the line.
"""

import json
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from tui_agent.lazy import dataclass
from tui_agent.safe_text import one_line
from tui_agent.session.errors import StoreError

T = TypeVar("T")

_DATABASE = b"SQLite format 3\0"
_HEAD_BYTES = 4096
_FILE_BYTES = 2_000_000_000
_LINE_BYTES = 150_000_000
_DOCUMENT_BYTES = 300_000_000
"""Maximum size, in bytes, of a file with a single JSON value, which is read into memory as a whole.
"""
MAX_ENTRIES = 1_000_000
"""Maximum number of entries of one session."""

_PROBLEM_CHARS = 300
"""Maximum number of characters of a problem's description in an error message, because the
description may quote the file."""

END_OF_TIME = 253_370_764_800_000
"""Beginning of the year 9999, in milliseconds since the epoch. Times in imported files must be
earlier."""


class ImportRefused(StoreError):  # noqa: N818 - states a condition, like its siblings
    """Raised if a file can't be imported.

    The message says what is wrong, with the file's name and, for a line, its number.
    """


class NoConversation(ImportRefused):
    """Raised if a file contains no conversation to import.

    The file has no known format, contains no messages, or contains only records that belong to a
    session in another file.
    """


class Node:
    """A JSON object in a file. Its methods check the type of a key's value, and return the value.

    ``where`` describes the place in the file, for error messages. A value of another type raises
    `ImportRefused`, and so does a missing text without a default. A missing number is returned as
    0, a missing flag as False, and a missing object or list as empty. null counts as missing.
    """

    __slots__ = ("value", "where")

    def __init__(self, value: Mapping[str, Any], where: str) -> None:
        self.value = value
        self.where = where

    def refuse(self, problem: str) -> ImportRefused:
        """Return the error to raise for a problem at this place in the file."""
        return ImportRefused(f"{self.where}: {one_line(problem, _PROBLEM_CHARS)}.")

    def has(self, key: str) -> bool:
        """Return True if the object contains the key and its value is not null."""
        return self.value.get(key) is not None

    def text(self, key: str, default: str | None = None) -> str:
        value = self.value.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.refuse(f"“{key}” must be text, but is {_named(value)}")
        return value

    def number(self, key: str, default: float = 0) -> float:
        """Return the number under a key, which must be at least 0 and less than 2**53."""
        value = self.value.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
            raise self.refuse(f"“{key}” must be a number of at least 0, but is {_named(value)}")
        return value

    def flag(self, key: str) -> bool:
        value = self.value.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(f"“{key}” must be true or false, but is {_named(value)}")
        return bool(value)

    def node(self, key: str) -> "Node":
        value = self.value.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.refuse(f"“{key}” must be an object, but is {_named(value)}")
        return Node(value, self.where)

    def nodes(self, key: str) -> list["Node"]:
        return [Node(item, self.where) for item in self._list(key, dict, "objects")]

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(self._list(key, str, "texts"))

    def _list(self, key: str, kind: type[T], name: str) -> list[T]:
        value = self.value.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
            raise self.refuse(f"“{key}” must be a list of {name}, but is {_named(value)}")
        return value

    def time(self, key: str) -> int:
        """Return the time under a key in milliseconds since the epoch.

        The time in the file is such a number or ISO 8601 text. Returns 0 if the time is missing.
        The time must be before the year 9999, so that it can be shown in every time zone.
        """
        value = self.value.get(key)
        time = END_OF_TIME
        if not isinstance(value, str):
            time = int(self.number(key))
        else:
            with suppress(ValueError, OverflowError):
                time = max(0, int(datetime.fromisoformat(value).timestamp() * 1000))
        if time >= END_OF_TIME:
            raise self.refuse(f"“{key}” must be a time, but is {_named(value)}")
        return time


NOTHING = Node({}, "")
"""An empty JSON object, used in place of an object that the file doesn't contain."""


def _named(value: object) -> str:
    if value is None:
        return "missing"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return f"“{one_line(str(value)[:60], 40)}”"


def read_document(path: Path) -> Node:
    """Return the JSON object that a file consists of.

    Raises:
        ImportRefused: the file is not one JSON object, can't be read, or is too large.
    """
    _check_size(path, _DOCUMENT_BYTES)
    try:
        return parse_object(path.read_bytes(), shown_name(path))
    except OSError as error:
        raise _unreadable(path, error) from error


def _check_size(path: Path, limit: int) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from error
    if size > limit:
        raise ImportRefused(
            f"{shown_name(path)} is too large: {size // 1_000_000} MB, at most {limit // 1_000_000} MB."
        )


def parse_object(data: bytes, where: str) -> Node:
    """Parse JSON text as an object; ``where`` is its place in a file, for error messages.

    Raises:
        ImportRefused: the text is not a JSON object.
    """
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise ImportRefused(f"{where}: the text is not UTF-8.") from None
    except RecursionError:
        raise ImportRefused(f"{where}: the JSON is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise ImportRefused(
            f"{where}: it is not JSON ({error.msg.lower()} at character {error.pos + 1})."
        ) from None
    except ValueError as error:  # The number has too many digits, or is NaN or Infinity.
        raise ImportRefused(
            f"{where}: the JSON can't be read ({one_line(str(error), 80)})."
        ) from None
    if not isinstance(value, dict):
        raise ImportRefused(f"{where}: a JSON object is expected.")
    return Node(value, where)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def shown_name(path: Path) -> str:
    """Return a file's name for use in messages, as one line, which is cut if it is long."""
    return one_line(path.name, 120)


def _unreadable(path: Path, error: OSError) -> ImportRefused:
    return ImportRefused(f"{shown_name(path)} can't be read: {error.strerror or error}.")


@dataclass
class SourceFile:
    """An untrusted file that is being imported, and the problems that were found in it so far.

    With ``skip_damaged``, lines that can't be read are skipped; otherwise only an incomplete last
    line is skipped. ``damaged`` contains the numbers of the skipped lines, counted from 1. If the
    file contains several sessions, ``refused`` contains the errors of those that can't be imported.
    """

    path: Path
    skip_damaged: bool = False
    damaged: list[int] = field(default_factory=list)
    refused: list[ImportRefused] = field(default_factory=list)
    _head: bytes | None = None

    def attempt(self, read: Callable[[], T]) -> T | None:
        """Read one of the file's sessions and return it, or None if this raises `ImportRefused`.

        The error is added to ``refused``.
        """
        try:
            return read()
        except ImportRefused as error:
            self.refused.append(error)
            return None

    @property
    def head(self) -> bytes:
        """The first bytes of the file, at most ``_HEAD_BYTES``.

        Raises:
            ImportRefused: the file can't be read.
        """
        if self._head is None:
            try:
                with self.path.open("rb") as file:
                    self._head = file.read(_HEAD_BYTES)
            except OSError as error:
                raise _unreadable(self.path, error) from error
        return self._head

    @property
    def is_database(self) -> bool:
        return self.head.startswith(_DATABASE)

    @property
    def is_document(self) -> bool:
        """Whether the file looks like one JSON object on several lines, not like JSON lines."""
        start = self.head.lstrip()
        return start.startswith(b"{") and start.partition(b"\n")[0].strip() == b"{"

    def document(self) -> Node:
        """Return the file as one JSON object.

        Raises:
            ImportRefused: the file is not one JSON object, or can't be read.
        """
        return read_document(self.path)

    def lines(self) -> Generator[Node | None, None, None]:
        """Yield each line that is not blank as an object.

        Yields None for a line that isn't a JSON object if ``skip_damaged`` is set, or if the line
        has no line end: such a last line was cut off when the program that wrote it was killed.

        Raises:
            ImportRefused: a line is not a JSON object or is too long, or the file can't be read.
        """
        self.damaged.clear()
        path = self.path
        _check_size(path, _FILE_BYTES)
        try:
            with path.open("rb") as file:
                number = 0
                while line := file.readline(_LINE_BYTES + 1):
                    number += 1
                    where = f"{shown_name(path)}, line {number}"
                    if len(line) > _LINE_BYTES:
                        raise ImportRefused(
                            f"{where}: the line is longer than {_LINE_BYTES // 1_000_000} MB."
                        )
                    if not line.strip():
                        continue
                    try:
                        yield parse_object(line, where)
                    except ImportRefused:
                        if not self.skip_damaged and line.endswith(b"\n"):
                            raise
                        self.damaged.append(number)
                        yield None
        except OSError as error:
            raise _unreadable(path, error) from error

    def first_nodes(self, most: int = 20) -> Iterator[Node]:
        """Yield the objects in the first ``most`` lines that aren't blank.

        More than one line may be needed to recognise a file's format, because some programs write
        lines before the conversation.
        """
        with closing(self.lines()) as lines:
            for node in islice(lines, most):
                if node is not None:
                    yield node

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Return a context manager that opens the file as an SQLite database for reading.

        Raises:
            ImportRefused: the file can't be read as a database, for example while it is in use.
        """
        try:
            uri = f"file:{quote(str(self.path.absolute()))}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
                connection.row_factory = sqlite3.Row
                connection.text_factory = lambda data: data.decode("utf-8", "replace")
                yield connection
        except (
            sqlite3.Error,
            UnicodeDecodeError,
        ) as error:  # An SQLite error that quotes damaged text raises UnicodeDecodeError.
            raise ImportRefused(
                f"{shown_name(self.path)} can't be read: {one_line(str(error), 120)}."
            ) from error
