"""Reading files nobody vouches for: bounded, checked field by field, every complaint with its line."""

import json
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
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
"""A whole document is one JSON value, and in memory at once."""
MAX_ENTRIES = 1_000_000
"""Entries of one session."""


class ImportRefused(StoreError):  # noqa: N818 - states a condition, like its siblings
    """A file can't be imported.

    The message names the file, the line where it applies, and the fault.
    """


class NoConversation(ImportRefused):
    """A file holds no conversation of its own: it is no known program's, has only a subagent's lines, or none."""


class Node:
    """A JSON object of the file with the place it stands at; values read from it are checked.

    Only a text without a default has to be there: a missing object or list is empty, a missing flag
    False.
    """

    __slots__ = ("value", "where")

    def __init__(self, value: Mapping[str, Any], where: str) -> None:
        self.value = value
        self.where = where

    def refuse(self, problem: str) -> ImportRefused:
        return ImportRefused(f"{self.where}: {problem}.")

    def has(self, key: str) -> bool:
        return self.value.get(key) is not None

    def text(self, key: str, default: str | None = None) -> str:
        value = self.value.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.refuse(f"“{key}” has to be text, it is {_named(value)}")
        return value

    def number(self, key: str, default: float = 0) -> float:
        """Return a number that is finite and not negative."""
        value = self.value.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
            raise self.refuse(f"“{key}” has to be a number from 0 up, it is {_named(value)}")
        return value

    def flag(self, key: str) -> bool:
        value = self.value.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(f"“{key}” has to be true or false, it is {_named(value)}")
        return bool(value)

    def node(self, key: str) -> "Node":
        value = self.value.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.refuse(f"“{key}” has to be an object, it is {_named(value)}")
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
            raise self.refuse(f"“{key}” has to be a list of {name}, it is {_named(value)}")
        return value

    def time(self, key: str) -> int:
        """Return a moment in milliseconds since the epoch, from a number or an ISO 8601 text.

        0 when missing.
        """
        value = self.value.get(key)
        if not isinstance(value, str):
            return int(self.number(key))
        try:
            return max(0, int(datetime.fromisoformat(value).timestamp() * 1000))
        except (ValueError, OverflowError):
            raise self.refuse(f"“{key}” has to be a time, it is {_named(value)}") from None


NOTHING = Node({}, "")
"""An object that is not in the file."""


def _named(value: object) -> str:
    if value is None:
        return "missing"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return f"“{one_line(str(value)[:60], 40)}”"


def read_document(path: Path) -> Node:
    """Return a file that is one JSON object.

    Raises:
        ImportRefused: it is none, or too large.
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
            f"{shown_name(path)} has {size // 1_000_000} MB; at most {limit // 1_000_000} can be imported."
        )


def parse_object(data: bytes, where: str) -> Node:
    """Return JSON text as an object that stands at ``where``.

    Raises:
        ImportRefused: it is no JSON object.
    """
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise ImportRefused(f"{where}: it is not UTF-8.") from None
    except RecursionError:
        raise ImportRefused(f"{where}: it is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise ImportRefused(
            f"{where}: it is not JSON ({error.msg.lower()} at character {error.pos + 1})."
        ) from None
    except ValueError as error:  # a number that no computer holds
        raise ImportRefused(
            f"{where}: it is not JSON that can be read ({one_line(str(error), 80)})."
        ) from None
    if not isinstance(value, dict):
        raise ImportRefused(f"{where}: it has to be a JSON object.")
    return Node(value, where)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def shown_name(path: Path) -> str:
    return one_line(path.name, 120)


def _unreadable(path: Path, error: OSError) -> ImportRefused:
    return ImportRefused(f"{shown_name(path)} can't be read: {error.strerror or error}.")


@dataclass
class SourceFile:
    """A file nobody vouches for. ``damaged`` gets the numbers of lines that could not be read.

    ``refused`` gets why sessions of a file that holds many can't be taken in: the others are.
    """

    path: Path
    skip_damaged: bool = False
    damaged: list[int] = field(default_factory=list)
    refused: list[ImportRefused] = field(default_factory=list)
    _head: bytes | None = None

    def attempt(self, read: Callable[[], T]) -> T | None:
        """Return one session of many; an error in it is kept, and the others go on."""
        try:
            return read()
        except ImportRefused as error:
            self.refused.append(error)
            return None

    @property
    def head(self) -> bytes:
        """The first bytes.

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
        start = self.head.lstrip()
        return start.startswith(b"{") and start.partition(b"\n")[0].strip() == b"{"

    def document(self) -> Node:
        """Return the file as one JSON object.

        Raises:
            ImportRefused: it is none.
        """
        return read_document(self.path)

    def lines(self) -> Generator[Node | None, None, None]:
        """Yield every line that holds something as an object.

        One that can't be read is None with ``skip_damaged``.

        The last line of a file whose program was killed may be cut off: it is None, too.

        Raises:
            ImportRefused: a line is no JSON object, or too long.
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
                            f"{where}: it is longer than {_LINE_BYTES // 1_000_000} MB."
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
        """Yield the objects of the first lines: some programs write bookkeeping first."""
        with closing(self.lines()) as lines:
            for node in islice(lines, most):
                if node is not None:
                    yield node

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Open the file as a database that nothing is written to.

        Raises:
            ImportRefused: it can't be read as one.
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
        ) as error:  # the second: an error that quotes damaged text
            raise ImportRefused(
                f"{shown_name(self.path)} can't be read: {one_line(str(error), 120)}."
            ) from error
