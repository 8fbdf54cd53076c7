"""Defines the traits of tools, such as whether they read or write, by the name in a tool call."""

from collections.abc import Mapping
from typing import Literal

from tui_agent.lazy import dataclass

ToolKind = Literal["read", "search", "edit", "execute", "fetch", "think", "other"]
"""A tool's kind, by its name in the Agent Client Protocol."""


@dataclass(frozen=True, kw_only=True)
class ToolTraits:
    """Facts about one tool, such as whether it reads or writes.

    The defaults are those of an unknown tool.
    """

    kind: ToolKind = "other"
    other_names: str = ""
    """Names that such a tool has in other programs, in lower case without hyphens or underscores.
    """
    imported_names: tuple[str, ...] = ()
    """Names that tools with the same ``reads``, ``writes`` and ``waits`` have in imported sessions.
    """
    explores: bool = False
    """Whether subagents that may only explore can use the tool."""
    starts_agents: bool = False
    basic: bool = False
    """Whether the tool is offered to small models, too."""
    reads: bool = False
    """Whether a result of the tool shows the content of the file that the call names."""
    writes: bool = False
    """Whether a call of the tool changes the file that the call names."""
    waits: bool = False
    """Whether a result of the tool shows the progress of something that takes time, such as a job.
    """
    repeatable: bool = False
    """Whether a newer result makes the earlier successful result of an identical call redundant."""
    repeats_failures: bool = False
    """Whether ``repeatable`` also applies if the earlier or the newer result has failed."""
    quotes: bool = False
    """Whether the output quotes stored text, so that error messages in the output aren't new
    errors."""
    shows_past: bool = False
    """Whether the output quotes earlier entries of the session, so that searches in the session
    skip the output."""
    state: Literal["", "list", "text"] = ""
    """Which of the tool's results a compaction keeps besides its summary. "list" is the newest
    result, whose list may be shortened; "text" is the newest result with each title; "" is none."""
    protected: bool = False
    """Whether the tool's results are never pruned. The settings may name other tools instead."""
    counts: str = ""
    """Singular noun for what the results count (``match``), which is shown when small calls share a
    row. "" for a tool each of whose calls has its own row."""
    runs_of: str = "call"
    """Singular noun for what a call handles (``file``). If several calls share a row, the row says
    how many there were of these."""
    output: Literal["", "log", "numbered", "matches"] = ""
    """How a card shows the output. "log" shows the end of the output even before the user unfolds
    the card, "numbered" the numbered lines of a file, "matches" places in files, and "" plain
    text."""
    says_arguments: bool = False
    """Whether the heading and body of a call's card already show everything that is in the
    arguments."""


_UNKNOWN = ToolTraits()


class TraitsByName(dict[str, ToolTraits]):
    """The traits of tools by name.

    If a name is missing, but is in a tool's ``imported_names``, it has the ``reads``, ``writes``
    and ``waits`` of that tool. Any other missing name has the traits of an unknown tool.
    """

    def __init__(self, tools: Mapping[str, ToolTraits]) -> None:
        super().__init__(tools)
        self._imported = {
            name: ToolTraits(reads=traits.reads, writes=traits.writes, waits=traits.waits)
            for traits in tools.values()
            for name in traits.imported_names
        }

    def __missing__(self, name: str) -> ToolTraits:
        return self._imported.get(name, _UNKNOWN)
