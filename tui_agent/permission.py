"""The permissions a call needs, as rules are asked about them."""

from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from tui_agent.lazy import frozen

Change = Literal["sources", "repository", "data"]
"""Changes of a command in the sandbox beyond those of its mode: the project's files, its
repository, or files that no checkpoint can take back."""

CHANGES_A_FILE: Final = "it changes a file"

HOLDS_SECRETS: Final = "usually holds secrets"
"""Reasons to ask whose question says as much."""

_SAYS: Final = " The user says: "


class Permission(StrEnum):
    """A kind of action that has to be allowed."""

    READ = "read"
    EDIT = "edit"
    BASH = "bash"
    WEBFETCH = "webfetch"
    WEBSEARCH = "websearch"
    """What the web is searched for, which a service is sent."""
    NETWORK = "network"
    """A host, for a command in the sandbox."""
    MCP = "mcp"
    TOOL = "tool"
    """A function of a tool file."""
    TASK = "task"
    SKILL = "skill"
    EXTERNAL_DIRECTORY = "external_directory"
    DOOM_LOOP = "doom_loop"

    @property
    def runs(self) -> bool:
        """Whether it is to run something that the sandbox can hold to a view."""
        return self in {Permission.BASH, Permission.TOOL}


@frozen
class PermissionNeed:
    """One thing a call wants to do: a permission and the pattern a rule is matched against.

    ``pattern`` is a path relative to the project for files, the command for bash, the URL for
    webfetch, the words for websearch, the host for the network. ``detail`` is shown to the user: the full command or a
    unified diff.
    """

    permission: Permission
    pattern: str
    detail: str = ""
    detail_kind: Literal["text", "command", "diff"] = "text"
    sandboxed: bool = False
    """Something that runs in the sandbox: it can make the changes of the mode and those in
    ``changes``."""
    changes: tuple[Change, ...] = ()
    """Changes it is known to make, or has tried."""
    secret: bool = False
    """A file that holds a secret, though its name does not tell."""
    harmless: bool = False
    """The closed grammar knows that it only reads: allowed in every mode where no rule says
    otherwise."""
    unclear: str = ""
    """Why its effect can't be known; then no rule for something particular allows it."""
    always: str = ""
    """Pattern of the rule that "always" may create, "" to leave that to the permission."""
    exceeds: str = ""
    """Pattern of the rule for its family that does not allow it, because of an option that the
    family has not."""
    aliases: tuple[str, ...] = ()
    """Other spellings; a rule against one of them is meant against this."""


def rule_path(path: Path, project: Path) -> str:
    """Return a path as rules know it: relative to the project inside of it."""
    if path.is_relative_to(project):
        return path.relative_to(project).as_posix()
    return path.as_posix()


def with_note(refusal: str, note: str) -> str:
    """Return the text for the model: why its call did not run, with the user's words if any."""
    if note:
        return f"{refusal}{_SAYS}{note}"
    return refusal


def note_of(told: str) -> str:
    """Return the user's words from the text for the model, empty when there are none."""
    return told.partition(_SAYS)[2]
