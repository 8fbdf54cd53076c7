"""The permissions that a tool call needs, each with the pattern that rules are matched against.

The module contains only data. Tools use it to state their needs, and the agent's permission gate
decides whether a call is allowed.
"""

import re
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from tui_agent.lazy import LazyPattern, frozen

Change = Literal["sources", "repository", "data"]
"""Kinds of changes that a sandboxed command may make only in some modes: "sources" are changes to
the project's files, "repository" to its Git repository, "data" to files that no checkpoint
restores."""

CHANGES_A_FILE: Final = "it changes a file"
"""Reason for a permission question about an edit. It is not shown, because the question itself says
that a file is changed."""

HOLDS_SECRETS: Final = "usually holds secrets"
"""End of a reason for a permission question, as in “PATH usually holds secrets”."""

NEVER_ASK: Final = "tui-agent config set 'permissions.\"*\"' allow"
"""Shell command that makes all sessions run everything without asking. Commands still run in the
sandbox."""

NO_REASON: Final = "no reason given"
"""Stands for the reason of a hook that refuses something without giving one."""

_SAYS: Final = " The user says: "
_HOOK_REFUSED: Final = LazyPattern(
    r"(?:A hook of the user|The hook (?P<hook>“[^\n]*?”(?: \([^\n]*?\))?)) refused this call: (?P<reason>.*)",
    re.DOTALL,
)
"""Matches a text that `refused_by_hook` returned, also in an earlier version."""


class Permission(StrEnum):
    """A kind of action that permission rules allow, ask about or deny."""

    READ = "read"
    EDIT = "edit"
    BASH = "bash"
    WEBFETCH = "webfetch"
    WEBSEARCH = "websearch"
    """A web search. The query is sent to a search service, so it leaves the machine."""
    NETWORK = "network"
    """A connection to a host by a command in the sandbox."""
    MCP = "mcp"
    TOOL = "tool"
    """A call of a function that is defined in one of the user's or project's tool files."""
    TASK = "task"
    SKILL = "skill"
    EXTERNAL_DIRECTORY = "external_directory"
    DOOM_LOOP = "doom_loop"

    @property
    def is_confinable(self) -> bool:
        """Whether the permission is for starting a process, which the sandbox can confine."""
        return self in {Permission.BASH, Permission.TOOL}


@frozen
class PermissionNeed:
    """One permission that a tool call needs, and the pattern that rules are matched against.

    ``pattern`` is a path relative to the project for files, the command for bash, the URL for
    webfetch, the query for websearch, the host for network. ``detail`` is what the user sees in the
    permission question: the whole command, or a unified diff.
    """

    permission: Permission
    pattern: str
    detail: str = ""
    detail_kind: Literal["text", "command", "diff"] = "text"
    sandboxed: bool = False
    """Whether the call runs in the sandbox. There it can make only the changes that the mode
    allows, and those in ``changes``. For an edit, whether a redirection of a command in the sandbox
    makes it."""
    changes: tuple[Change, ...] = ()
    """The kinds of changes that the command is known to make, or that it was stopped from
    making."""
    secret: bool = False
    """Whether the file contains a secret, although its name doesn't suggest that."""
    harmless: bool = False
    """Whether the command is known to do nothing but read. Every mode allows such a command, unless
    a rule denies it or asks the user."""
    reads_only: bool = False
    """Whether the command itself changes no files, although its line isn't harmless.

    The files that the line's redirections write are needs of their own."""
    unclear: str = ""
    """Why it can't be known what the command does; "" if it can. If this is set, only the rule
    ``*`` allows the command."""
    always: str = ""
    """Pattern of the permission rule that is created if the user answers "always"; "" for the
    permission's usual pattern."""
    exceeds: str = ""
    """Pattern of a rule that matches the command's text, but doesn't cover one of the command's
    options, so that the rule doesn't allow the command; "" if there is no such rule."""
    aliases: tuple[str, ...] = ()
    """Other spellings of the pattern. A rule that denies one of these also denies the call."""
    leads_to: str = ""
    """The path after following symbolic links, in the form in which rules write paths; "" if no
    symbolic link is involved."""
    commands: tuple[str, ...] = ()
    """The commands of the line that may want to reach the host. A rule with the text of a command
    allows the host only if it matches all of them."""

    @property
    def may_change_files(self) -> bool:
        """Whether this is a command, or a redirection of one, that may change project files.

        What the sandbox lets one of them change, it lets all commands of the line change.
        """
        if self.permission is Permission.EDIT:
            return self.sandboxed
        return self.permission.is_confinable and not (self.harmless or self.reads_only)


def rule_path(path: Path, project: Path) -> str:
    """Return a path as permission rules write it: relative in the project, otherwise absolute."""
    if path.is_relative_to(project):
        return path.relative_to(project).as_posix()
    return path.as_posix()


def with_note(refusal: str, note: str) -> str:
    """Return the text that tells the model about a refused call, with the user's note if any.

    The text is ``refusal``, followed by ``note``.
    """
    if note:
        return f"{refusal}{_SAYS}{note}"
    return refusal


def refused_by_hook(reason: str, hook: str) -> str:
    """Return the text that tells the model that a hook refused its call.

    ``reason`` may be "". ``hook`` is the hook's command and place: “check.sh” (config.toml).
    """
    return f"The hook {hook} refused this call: {reason or NO_REASON}"


def reason_in(refusal: str) -> str:
    """Return the user's note or the hook's reason in a text about a refused call, else ""."""
    return hook_reason_in(refusal) or note_of(refusal)


def hook_reason_in(refusal: str) -> str:
    """Return the reason in a text that `refused_by_hook` returned, with the hook that gave it.

    Returns "" for any other text.
    """
    found = _HOOK_REFUSED.fullmatch(refusal)
    if found is None:
        return ""
    return said_by_hook(found["reason"], found["hook"] or "")


def said_by_hook(reason: str, hook: str) -> str:
    """Return a hook's reason for a refusal, followed by the hook's command and place.

    Both may be "".
    """
    reason = reason or NO_REASON
    if hook:
        return f"{reason} – hook {hook}"
    return reason


def note_of(text: str) -> str:
    """Return the user's note in a text that `with_note` returned; "" if there is none."""
    return text.partition(_SAYS)[2]
