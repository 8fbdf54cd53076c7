"""Reads what git keeps: contents of files by git's names for them, many at once."""

from collections.abc import Iterable
from pathlib import Path

from tui_agent.files.own_git import run_git

READ_AHEAD = 200
"""Objects that are read at once where they are expected; each call of git takes some milliseconds."""


class GitObjects:
    """The objects of the repository around a directory. Nothing is written to it and nothing fetched."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._expected: list[str] = []
        self._read_ahead: dict[str, bytes] = {}

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """Return how large objects are; those that are not there are left out."""
        asked = "".join(f"{name}\n" for name in names)
        check = "--batch-check=%(objectname) %(objectsize)"
        output = run_git(self._root, "cat-file", check, text=asked.encode()) if asked else None
        rows = [row.split() for row in (output or b"").decode().splitlines()]
        return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of objects; those that are not there are left out."""
        asked = "".join(f"{name}\n" for name in names)
        output = run_git(self._root, "cat-file", "--batch", text=asked.encode()) if asked else None
        found: dict[str, bytes] = {}
        at = 0
        while output is not None and (end := output.find(b"\n", at)) >= 0:
            name, kind, *size = output[at:end].decode().split()
            at = end + 1
            if kind == "blob" and size:
                found[name] = output[at : at + int(size[0])]
                at += int(size[0]) + 1
        return found

    def expect(self, names: Iterable[str]) -> None:
        """Take note of what `content` will be asked for, in this order."""
        self._expected = [name for name in names if name]
        self._read_ahead = {}

    def content(self, name: str) -> bytes | None:
        """Return an object's content, None when there is no such object."""
        if name not in self._read_ahead:
            at = self._expected.index(name) if name in self._expected else len(self._expected)
            self._read_ahead = self.read(dict.fromkeys([name, *self._expected[at : at + READ_AHEAD]]))
            del self._expected[: at + READ_AHEAD]
        return self._read_ahead.get(name)
