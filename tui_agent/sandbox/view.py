"""The view of a command in the sandbox, that is, what it may read, change and reach. Pure."""

from collections.abc import Awaitable, Callable
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tui_agent.lazy import frozen

AllowHost = Callable[[str, int], Awaitable[str | None]]
"""Asks the user whether a command may reach a host and port, while its connection waits.

Returns None if the command may. Otherwise returns the refusal for the model if the user wrote a
note, else "".
"""

EVERY_HOST = "*"
"""In ``Grants.hosts``, stands for every host that isn't on this machine or a private network."""


RuleOfReading = Callable[[str], str]
"""Takes a file's path relative to the project, and returns what the user's rules say about it.

The rules are those on reading. The result is "deny", "ask", or "" if reading is allowed.
"""


class Writes(StrEnum):
    """Which changes a command may make in the project."""

    NOTHING = "nothing"
    """The command may make no changes; all its changes are discarded when it ends."""
    OUTPUTS = "outputs"
    """The command may change build output and caches, which it can make again."""
    PROJECT = "project"
    """The command may change everything that a checkpoint can restore."""


@frozen
class Grants:
    """Rights of a command beyond those of the mode. Paths are absolute, with links resolved."""

    sources: bool = False
    """Whether the command may change the project's files, as with ``Writes.PROJECT``."""
    repository: bool = False
    """Whether the command may change git repositories, except their hooks and settings."""
    protected: frozenset[Path] = frozenset()
    """Files that the command may change although other programs run them or read them as settings.

    For example ``.husky/pre-commit``.
    """
    secrets: frozenset[Path] = frozenset()
    """Files with secrets that the command may read, and change if it may change source files."""
    read: frozenset[Path] = frozenset()
    """Paths outside the project that the command may read."""
    write: frozenset[Path] = frozenset()
    """Paths that the command may change.

    They are either outside the project, or in the project where no checkpoint can restore them.
    """
    hosts: frozenset[str] = frozenset()
    """Host names that the command may reach on every port; ``*`` stands for every public host."""

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
        """The grants for reading files and reaching hosts, without those for changing files."""
        return Grants(secrets=self.secrets, read=self.read, hosts=self.hosts)

    def beyond(self, other: "Grants") -> "Grants":
        """Return the grants in this object that ``other`` lacks."""
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
    """A view of the sandbox: what one command may read, change and connect to."""

    writes: Writes = Writes.OUTPUTS
    grants: Grants = Grants()
    reading: RuleOfReading | None = None
    """The user's rules about reading files of the project; None if there are no such rules."""

    @property
    def changes_sources(self) -> bool:
        """Whether the command may change source files, directly or through git."""
        return self.writes is Writes.PROJECT or self.grants.sources or self.grants.repository

    @property
    def writes_outputs(self) -> bool:
        """Whether the build output that the command writes is kept."""
        return self.writes is not Writes.NOTHING or self.changes_sources

    def opened(self, grants: Grants) -> "View":
        return replace(self, grants=self.grants | grants)
