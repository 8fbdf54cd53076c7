"""The permissions that a tool call needs, each with the pattern that rules are matched against.

The module contains only data. Tools use it to state their needs, and the agent's permission gate
decides whether a call is allowed.
"""

from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from tui_agent.lazy import frozen

Change = Literal["sources", "repository", "data"]
"""Kinds of changes that a sandboxed command may make only in some modes: "sources" are changes to
the project's files, "repository" to its Git repository, "data" to files that no checkpoint
restores."""

CHANGES_A_FILE: Final = "it changes a file"
"""Reason for a permission question. It is not shown, because the question itself says the same."""

HOLDS_SECRETS: Final = "usually holds secrets"
"""End of the reason for a permission question: “PATH usually holds secrets”."""

NEVER_ASK: Final = "tui-agent config set 'permissions.\"*\"' allow"
"""Shell command that makes all sessions run everything without asking. The sandbox stays on."""

_SAYS: Final = " The user says: "
_HOOK_REFUSED: Final = "A hook of the user refused this call: "


class Permission(StrEnum):
    """A kind of action that permission rules allow, ask about or deny."""

    READ = "read"
    EDIT = "edit"
    BASH = "bash"
    WEBFETCH = "webfetch"
    WEBSEARCH = "websearch"
    """A web search; the query is sent to a search service."""
    NETWORK = "network"
    """A host that a command in the sandbox connects to."""
    MCP = "mcp"
    TOOL = "tool"
    """A call of a function in a tool file."""
    TASK = "task"
    SKILL = "skill"
    EXTERNAL_DIRECTORY = "external_directory"
    DOOM_LOOP = "doom_loop"

    @property
    def is_confinable(self) -> bool:
        """True for actions that start a process, which the sandbox can confine."""
        return self in {Permission.BASH, Permission.TOOL}


@frozen
class PermissionNeed:
    """One permission that a tool call needs, and the pattern that rules are matched against.

    ``pattern`` is a path relative to the project for files, the command for bash, the URL for
    webfetch, the query for websearch, the host for network. ``detail`` is shown to the user:
    the whole command, or a unified diff.
    """

    permission: Permission
    pattern: str
    detail: str = ""
    detail_kind: Literal["text", "command", "diff"] = "text"
    sandboxed: bool = False
    """Whether the call runs in the sandbox, which allows the mode's changes and those in
    ``changes``."""
    changes: tuple[Change, ...] = ()
    """Kinds of changes that the command is known to make, or was stopped from making."""
    secret: bool = False
    """Whether the file's content holds a secret although its name doesn't suggest one."""
    harmless: bool = False
    """Whether the command is known only to read. Every mode allows such a command, unless a rule
    denies it or asks the user."""
    unclear: str = ""
    """Why the command's effect can't be known; "" if it can. If this is set, only the rule ``*``
    allows the command."""
    always: str = ""
    """Pattern of the rule that the answer "always" creates; "" for the permission's usual pattern."""
    exceeds: str = ""
    """Pattern of the rule that would match the command if it covered one more of the command's
    options; "" if there is none."""
    aliases: tuple[str, ...] = ()
    """Other spellings of the pattern; a rule that denies one of them denies the call."""
    leads_to: str = ""
    """The path with its symbolic links followed, in the form in which rules write paths; "" if
    there is no link to follow."""


def rule_path(path: Path, project: Path) -> str:
    """Return a path as rules spell it: relative to the project if it is inside, absolute otherwise."""
    if path.is_relative_to(project):
        return path.relative_to(project).as_posix()
    return path.as_posix()


def with_note(refusal: str, note: str) -> str:
    """Return the text for the model about a refused call: ``refusal``, and the user's ``note`` if any."""
    if note:
        return f"{refusal}{_SAYS}{note}"
    return refusal


def refused_by_hook(reason: str) -> str:
    """Return the text for the model about a call that a hook refused; ``reason`` may be empty."""
    return f"{_HOOK_REFUSED}{reason or 'no reason given'}"


def reason_in(refusal: str) -> str:
    """Return the user's note or the hook's reason in a text about a refused call; "" if there is none."""
    return hook_reason_in(refusal) or note_of(refusal)


def hook_reason_in(refusal: str) -> str:
    """Return the reason in a text made by `refused_by_hook`; "" for any other text."""
    if refusal.startswith(_HOOK_REFUSED):
        return refusal.removeprefix(_HOOK_REFUSED)
    return ""


def note_of(text: str) -> str:
    """Return the user's note in a text made by `with_note`; "" if there is none."""
    return text.partition(_SAYS)[2]
