"""A file sessions may be in, opened in the way its format needs: by lines, as one document, or as a database."""

import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from tui_agent.lazy import dataclass
from tui_agent.safe_text import one_line
from tui_agent.session.formats.reading import ImportLimits, ImportRefused, Node, read_document, read_lines

__all__ = ["SourceFile", "column"]

T = TypeVar("T")

_DATABASE = b"SQLite format 3\0"
_HEAD_BYTES = 4096


@dataclass(slots=True)
class SourceFile:
    """A file nobody vouches for. ``damaged`` gets the numbers of lines that could not be read.

    ``refused`` gets why sessions of a file that holds many can't be taken in: the others are.
    """

    path: Path
    limits: ImportLimits = field(default_factory=ImportLimits)
    skip_damaged: bool = False
    damaged: list[int] = field(default_factory=list)
    refused: list[ImportRefused] = field(default_factory=list)
    _head: bytes | None = None

    def attempt(self, read: Callable[[], T]) -> T | None:
        """Return one session of many; what is wrong with it is kept, and the others go on."""
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
                raise ImportRefused(f"{self.path.name} can't be read: {error.strerror or error}.") from error
        return self._head

    @property
    def is_database(self) -> bool:
        return self.head.startswith(_DATABASE)

    @property
    def is_document(self) -> bool:
        """Whether it is one JSON object over several lines."""
        start = self.head.lstrip()
        return start.startswith(b"{") and start.partition(b"\n")[0].strip() == b"{"

    @property
    def is_list(self) -> bool:
        """Whether it is one JSON list, which no program keeps a session as: some keep logs or pieces of one so."""
        return self.path.suffix == ".json" and self.head.lstrip().startswith(b"[")

    def document(self) -> Node:
        """Return the file as one JSON object.

        Raises:
            ImportRefused: it is none.
        """
        return read_document(self.path, self.limits)

    def lines(self) -> Generator[Node | None, None, None]:
        """Yield the lines as objects; see `read_lines`."""
        self.damaged.clear()
        return read_lines(self.path, self.limits, skip_damaged=self.skip_damaged, damaged=self.damaged)

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
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the second: an error that quotes what is damaged
            raise ImportRefused(f"{self.path.name} can't be read: {one_line(str(error), 120)}.") from error

    def has_columns(self, wanted: Mapping[str, frozenset[str]]) -> bool:
        if not self.is_database:
            return False
        with self.database() as connection:
            return all(
                columns
                <= {row["name"] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
                for table, columns in wanted.items()
            )


def column(row: sqlite3.Row, name: str) -> Any:
    """Return what a row has in a column, None where this version of the database has no such column."""
    return row[name] if name in row.keys() else None  # noqa: SIM118 - a row iterates over its values
