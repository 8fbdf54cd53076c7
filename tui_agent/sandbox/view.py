"""The view of a command in the sandbox: what it may change and reach. Pure."""

from collections.abc import Awaitable, Callable
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tui_agent.lazy import frozen

AllowHost = Callable[[str, int], Awaitable[bool]]
"""Asks whether a command may reach a host and port; answered while the command waits for its
connection."""

EVERY_HOST = "*"
"""Among ``Grants.hosts``: every public host. Addresses of this machine and of private networks are
never reached."""


RuleOfReading = Callable[[str], str]
"""Takes the path of a file in the project as rules name it: "deny" where nobody may read it, "ask"
where the user has to be asked first, "" where anybody may."""


class Writes(StrEnum):
    """The changes a command may make in the project."""

    NOTHING = "nothing"
    """Its writes are discarded when it ends."""
    OUTPUTS = "outputs"
    """Build output and caches: files that the same command makes again."""
    PROJECT = "project"
    """Everything that a checkpoint can take back."""


@frozen
class Grants:
    """The rights of a command beyond its mode. Paths are absolute, links followed."""

    sources: bool = False
    """The project's files may be changed, as in ``Writes.PROJECT``."""
    repository: bool = False
    """Repositories may be written to, but for their hooks and settings."""
    protected: frozenset[Path] = frozenset()
    """Files that other programs execute or obey, and that may be changed: ``.husky/pre-commit``."""
    secrets: frozenset[Path] = frozenset()
    """Files with secrets that may be read and, where sources may, changed."""
    read: frozenset[Path] = frozenset()
    """Paths outside of the project that may be read."""
    write: frozenset[Path] = frozenset()
    """Paths that may be changed: outside of the project, or in it where no checkpoint can take it
    back."""
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
        """Return the grants in these and not in others."""
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
    """None where no rule is about reading single files."""

    @property
    def changes_sources(self) -> bool:
        """Whether sources can change, which a checkpoint would restore; git can change them too."""
        return self.writes is Writes.PROJECT or self.grants.sources or self.grants.repository

    @property
    def writes_outputs(self) -> bool:
        """Whether build output is kept."""
        return self.writes is not Writes.NOTHING or self.changes_sources

    def opened(self, grants: Grants) -> "View":
        return replace(self, grants=self.grants | grants)
