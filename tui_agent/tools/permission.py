"""What a call needs to be allowed, as rules are asked about it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Permission(StrEnum):
    """What a call needs to be allowed."""

    READ = "read"
    EDIT = "edit"
    BASH = "bash"
    WEBFETCH = "webfetch"
    NETWORK = "network"
    """The network, for a command in a sandbox that has none."""
    MCP = "mcp"
    TASK = "task"
    EXTERNAL_DIRECTORY = "external_directory"
    DOOM_LOOP = "doom_loop"


@dataclass(frozen=True, slots=True)
class PermissionNeed:
    """One thing a call wants to do: a permission and the pattern a rule is matched against.

    ``pattern`` is a path relative to the project for files, the command for bash, the URL for webfetch.
    ``detail`` is what the user is shown: the full command or a unified diff.
    """

    permission: Permission
    pattern: str
    detail: str = ""
    detail_kind: Literal["text", "command", "diff"] = "text"
    sandboxed: bool = False
    """A command that runs in a sandbox: it can change the project and nothing else, and reaches no network."""
    inside: Literal["", "builds", "edits"] = ""
    """What a command does in the project while a sandbox holds it to that; "" for more, or what is not known."""
    harmless: bool = False
    """It only reads: allowed where no rule says otherwise, in every mode."""
    unclear: str = ""
    """Why it can't be told what it would do; then no rule for something particular allows it."""
    always: str = ""
    """Pattern of the rule that "always" may create, "" to leave that to the permission."""
    aliases: tuple[str, ...] = ()
    """Other spellings; a rule against one of them is meant against this."""


Verdict = Literal["allow", "ask", "deny"]
"""What rules say about a need."""
