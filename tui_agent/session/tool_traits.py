"""Traits of tools (such as reading, writing, repeating), looked up by the name in a tool call."""

from collections.abc import Mapping
from typing import Literal

from tui_agent.lazy import dataclass

ToolKind = Literal["read", "search", "edit", "execute", "fetch", "think", "other"]
"""A tool's kind, by its name in the Agent Client Protocol."""


@dataclass(frozen=True, kw_only=True)
class ToolTraits:
    """The traits of one tool; the defaults are those of an unknown tool."""

    kind: ToolKind = "other"
    other_names: str = ""
    """Other programs' names for such a tool, in lower case without hyphens or underscores."""
    imported_names: tuple[str, ...] = ()
    """Names, in imported sessions, of tools that read, write or wait like this one."""
    explores: bool = False
    """Whether subagents that may only explore can use the tool."""
    starts_agents: bool = False
    basic: bool = False
    """Whether the tool is offered to small models, too."""
    reads: bool = False
    """Whether the result shows the content of the file that the call names."""
    writes: bool = False
    """Whether the call changes the file that it names."""
    waits: bool = False
    """Whether the result shows the progress of something that takes time, such as a job."""
    repeatable: bool = False
    """Whether a newer result makes an earlier successful result of an identical call redundant."""
    repeats_failures: bool = False
    """Whether ``repeatable`` also applies to failed results, both earlier and newer."""
    quotes: bool = False
    """Whether the output quotes stored text, so that error messages in it aren't new errors."""
    shows_past: bool = False
    """Whether the output quotes the session's own past, so that searches in the session skip it."""
    state: Literal["", "list", "text"] = ""
    """Which results a compaction keeps besides its summary: "list": the newest result, whose list
    may be shortened; "text": the newest result with each title; "": none."""
    protected: bool = False
    """Whether the tool's results are never pruned; the settings may name other tools instead."""
    counts: str = ""
    """Singular noun for what the results count (``match``), shown when small calls share a row; ""
    for a tool whose calls have a row each."""
    runs_of: str = "call"
    """Singular noun for what a call handles (``file``), to count the calls that share a row."""
    output: Literal["", "log", "numbered", "matches"] = ""
    """How a card shows the output. "log": unfolded, with its end. "numbered": as a file's numbered
    lines. "matches": as places in files. "": as plain text."""
    says_arguments: bool = False
    """Whether the card's heading and body already show everything in the arguments."""


_UNKNOWN = ToolTraits()


class TraitsByName(dict[str, ToolTraits]):
    """The traits of tools by name.

    A missing name that is in a tool's ``imported_names`` has the ``reads``, ``writes`` and
    ``waits`` of that tool. Any other missing name has the traits of an unknown tool.
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
