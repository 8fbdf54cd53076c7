"""What a call needs to be allowed, as rules are asked about it."""

from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from tui_agent.lazy import dataclass


class Permission(StrEnum):
    """What a call needs to be allowed."""

    READ = "read"
    EDIT = "edit"
    BASH = "bash"
    WEBFETCH = "webfetch"
    NETWORK = "network"
    """A host, for a command in the sandbox."""
    MCP = "mcp"
    TOOL = "tool"
    """A function of a tool file."""
    TASK = "task"
    EXTERNAL_DIRECTORY = "external_directory"
    DOOM_LOOP = "doom_loop"

    @property
    def runs(self) -> bool:
        """Whether it is to run something that the sandbox can hold to a view."""
        return self in {Permission.BASH, Permission.TOOL}


Change = Literal["sources", "repository", "data"]
"""What a command in the sandbox changes beyond what its mode lets it: the project's files, its repository, or files
that no checkpoint can take back."""


@dataclass(frozen=True, slots=True)
class PermissionNeed:
    """One thing a call wants to do: a permission and the pattern a rule is matched against.

    ``pattern`` is a path relative to the project for files, the command for bash, the URL for webfetch, the host for
    the network. ``detail`` is what the user is shown: the full command or a unified diff.
    """

    permission: Permission
    pattern: str
    detail: str = ""
    detail_kind: Literal["text", "command", "diff"] = "text"
    sandboxed: bool = False
    """Something that runs in the sandbox: it can change what the mode lets it, and what is in ``changes``."""
    changes: tuple[Change, ...] = ()
    """What it is known to change, or has tried to."""
    secret: bool = False
    """A file that holds a secret, though its name does not tell."""
    harmless: bool = False
    """The closed grammar knows that it only reads: allowed in every mode where no rule says otherwise."""
    unclear: str = ""
    """Why it can't be told what it would do; then no rule for something particular allows it."""
    always: str = ""
    """Pattern of the rule that "always" may create, "" to leave that to the permission."""
    exceeds: str = ""
    """Pattern of the rule for its family that does not allow it, because of an option that the family has not."""
    aliases: tuple[str, ...] = ()
    """Other spellings; a rule against one of them is meant against this."""


def rule_path(path: Path, project: Path) -> str:
    """Return a path as rules know it: relative to the project inside of it."""
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else path.as_posix()


_SAYS: Final = " The user says: "


def with_note(refusal: str, note: str) -> str:
    """Return what the model is told: why its call did not run, and the user's words if there are any."""
    return f"{refusal}{_SAYS}{note}" if note else refusal


def note_of(told: str) -> str:
    """Return the user's words from what the model was told, empty when there are none."""
    return told.partition(_SAYS)[2]
