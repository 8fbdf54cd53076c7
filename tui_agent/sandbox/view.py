"""The view of a command in the sandbox: what it may read, change and connect to. Pure."""

from collections.abc import Awaitable, Callable
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tui_agent.lazy import frozen

AllowHost = Callable[[str, int], Awaitable[str | None]]
"""Asks the user whether a command may reach a host and port, while its connection waits.

Returns None for yes. For no, returns the refusal for the model if the user wrote a note, else "".
"""

EVERY_HOST = "*"
"""In ``Grants.hosts``: every public host, but none on this machine or in a private network."""


RuleOfReading = Callable[[str], str]
"""Takes a file's path relative to the project; returns what the user's rules say about reading it.

That is "deny", "ask", or "" for allow.
"""


class Writes(StrEnum):
    """The changes that a command may make in the project."""

    NOTHING = "nothing"
    """No changes: all are discarded when the command ends."""
    OUTPUTS = "outputs"
    """Build output and caches: files that the same command can make again."""
    PROJECT = "project"
    """Everything that a checkpoint can restore."""


@frozen
class Grants:
    """Rights of a command beyond those of its mode. Paths are absolute, with links resolved."""

    sources: bool = False
    """Whether the project's files may be changed, as in ``Writes.PROJECT``."""
    repository: bool = False
    """Whether repositories may be changed, except their hooks and settings."""
    protected: frozenset[Path] = frozenset()
    """Files that may be changed although other programs run them or read them as settings.

    For example ``.husky/pre-commit``.
    """
    secrets: frozenset[Path] = frozenset()
    """Files with secrets that may be read, and changed if the command may change sources."""
    read: frozenset[Path] = frozenset()
    """Paths outside the project that may be read."""
    write: frozenset[Path] = frozenset()
    """Paths that may be changed.

    They are outside the project, or in the project but can't be restored by a checkpoint.
    """
    hosts: frozenset[str] = frozenset()
    """Host names that may be reached on every port; ``*`` stands for every public host."""

    def __or__(self, other: "Grants") -> "Grants":
        return Grants(
            **{
                field.name: getattr(self, field.name) | getattr(other, field.name)
                for field in fields(self)
            }
        )

    def __bool__(self) -> bool:
        return self != Grants()

    @property
    def without_changes(self) -> "Grants":
        """The grants to read files and reach hosts, without those to change files."""
        return Grants(secrets=self.secrets, read=self.read, hosts=self.hosts)

    def beyond(self, other: "Grants") -> "Grants":
        """Return the grants in this object that ``other`` doesn't have."""
        more: dict[str, Any] = {}
        for name in (field.name for field in fields(self)):
            mine = getattr(self, name)
            theirs = getattr(other, name)
            if isinstance(mine, frozenset):
                more[name] = mine - theirs
            else:
                more[name] = mine and not theirs
        return Grants(**more)


@frozen
class View:
    """What one command may read, change and connect to."""

    writes: Writes = Writes.OUTPUTS
    grants: Grants = Grants()
    reading: RuleOfReading | None = None
    """The user's rules about reading files of the project, None if there are none."""

    @property
    def changes_sources(self) -> bool:
        """Whether the command may change source files, directly or through git."""
        return self.writes is Writes.PROJECT or self.grants.sources or self.grants.repository

    @property
    def writes_outputs(self) -> bool:
        """Whether build output that the command writes is kept."""
        return self.writes is not Writes.NOTHING or self.changes_sources

    def opened(self, grants: Grants) -> "View":
        return replace(self, grants=self.grants | grants)
