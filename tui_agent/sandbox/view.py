"""The view of a command in the sandbox: what it may change and reach. Pure."""

from collections.abc import Awaitable, Callable
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tui_agent.lazy import frozen

AllowHost = Callable[[str, int], Awaitable[bool]]
"""Asks whether a command may reach a host and port, while the command waits for its connection."""

EVERY_HOST = "*"
"""In ``Grants.hosts``: every public host, without addresses of this machine and private
networks."""


RuleOfReading = Callable[[str], str]
"""Returns the rules' answer for reading a file, given by its path in the project: "deny", "ask", or
"" for allowed."""


class Writes(StrEnum):
    """The changes a command may make in the project."""

    NOTHING = "nothing"
    """Its writes are discarded when it ends."""
    OUTPUTS = "outputs"
    """Build output and caches: files that the same command makes again."""
    PROJECT = "project"
    """Everything that a checkpoint can restore."""


@frozen
class Grants:
    """The rights of a command beyond its mode. Paths are absolute, links followed."""

    sources: bool = False
    """Whether the project's files may be changed, as in ``Writes.PROJECT``."""
    repository: bool = False
    """Whether repositories may be changed, except their hooks and settings."""
    protected: frozenset[Path] = frozenset()
    """Files that other programs execute or obey, and that may be changed: ``.husky/pre-commit``."""
    secrets: frozenset[Path] = frozenset()
    """Files with secrets that may be read and, where sources may, changed."""
    read: frozenset[Path] = frozenset()
    """Paths outside the project that may be read."""
    write: frozenset[Path] = frozenset()
    """Paths that may be changed: outside the project, or in it where no checkpoint can restore
    them."""
    hosts: frozenset[str] = frozenset()
    """Host names that may be reached on every port, or ``*``."""

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
    def changing_nothing(self) -> "Grants":
        return Grants(secrets=self.secrets, read=self.read, hosts=self.hosts)

    def beyond(self, other: "Grants") -> "Grants":
        """Return the grants that ``other`` doesn't have."""
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
    """The files and hosts a command may change and reach."""

    writes: Writes = Writes.OUTPUTS
    grants: Grants = Grants()
    reading: RuleOfReading | None = None
    """The rules about reading single files, None if there are none."""

    @property
    def changes_sources(self) -> bool:
        """Whether sources can change, by the command or by git."""
        return self.writes is Writes.PROJECT or self.grants.sources or self.grants.repository

    @property
    def writes_outputs(self) -> bool:
        """Whether build output is kept."""
        return self.writes is not Writes.NOTHING or self.changes_sources

    def opened(self, grants: Grants) -> "View":
        return replace(self, grants=self.grants | grants)
