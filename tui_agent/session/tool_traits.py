"""The traits of tools by name, for code that only knows the name of a call's tool."""

from collections.abc import Mapping
from typing import Literal

from tui_agent.lazy import dataclass

ToolKind = Literal["read", "search", "edit", "execute", "fetch", "think", "other"]
"""The kind of a call, in the terms of the Agent Client Protocol."""


@dataclass(frozen=True, kw_only=True)
class ToolTraits:
    """A tool's own traits; the defaults are those of an unknown tool."""

    kind: ToolKind = "other"
    other_names: str = ""
    """Other programs' names for such a tool, in lower case without hyphens and underscores."""
    imported_names: tuple[str, ...] = ()
    """Names, in other programs' sessions, of tools that read or change files like this one."""
    explores: bool = False
    """Whether a subagent that only explores has it."""
    starts_agents: bool = False
    basic: bool = False
    """Whether a small model gets it, too."""
    reads: bool = False
    """Whether the result shows the file that the call names."""
    writes: bool = False
    """Whether the call changes the file that it names."""
    waits: bool = False
    """Whether the result is the progress of something that takes time."""
    repeatable: bool = False
    """Whether a later result of the same call replaces an earlier successful one."""
    repeats_failures: bool = False
    """Whether failures, too, are replaced, and replace earlier results."""
    quotes: bool = False
    """Whether its output quotes stored text, in which an apparent error is none."""
    shows_past: bool = False
    """Whether its output is the session's own past, which searches of the session skip."""
    state: Literal["", "list", "text"] = ""
    """Which results a summary carries: "list": the last one, a list that may be shortened; "text":
    the last of each title; "": none."""
    protected: bool = False
    """Whether its results are never pruned; the settings may name other tools instead."""
    counts: str = ""
    """The unit that its results count, for small calls that share a row; "" for others."""
    runs_of: str = "call"
    """The singular noun for what a call handles, to count the calls in that row: ``file``, ``12
    files``."""
    output: Literal["", "log", "numbered", "matches"] = ""
    """How a card shows the output; a log is shown open, with its end."""
    says_arguments: bool = False
    """Whether the card's heading and body show everything in the arguments."""


_UNKNOWN = ToolTraits()


class TraitsByName(dict[str, ToolTraits]):
    """The traits of tools by name; a missing name has those of an unknown tool."""

    def __init__(self, tools: Mapping[str, ToolTraits]) -> None:
        super().__init__(tools)
        self._imported = {
            name: ToolTraits(reads=traits.reads, writes=traits.writes, waits=traits.waits)
            for traits in tools.values()
            for name in traits.imported_names
        }

    def __missing__(self, name: str) -> ToolTraits:
        return self._imported.get(name, _UNKNOWN)
