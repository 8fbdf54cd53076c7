"""The traits of a tool, for those who only know the name of a call's tool: context, cards, editors."""

from collections.abc import Mapping
from typing import Literal

from tui_agent.lazy import dataclass

ToolKind = Literal["read", "search", "edit", "execute", "fetch", "think", "other"]
"""The kind of a call, in the words of the protocol that editors speak."""


@dataclass(frozen=True, kw_only=True)
class ToolTraits:
    """A tool's own traits; the defaults are those of an unknown tool."""

    kind: ToolKind = "other"
    other_names: str = ""
    """Other programs' names for such a tool: words without case, hyphens and underscores."""
    imported_names: tuple[str, ...] = ()
    """Names in sessions of other programs of tools that touch files like this one."""
    explores: bool = False
    """A subagent that only looks around has it."""
    starts_agents: bool = False
    basic: bool = False
    """A small model is given it too."""
    reads: bool = False
    """The result shows the file that the call names."""
    writes: bool = False
    """The call changes the file that it names."""
    waits: bool = False
    """The result says how far something is that takes its time."""
    repeatable: bool = False
    """The result of the same call later takes the place of an earlier one that succeeded."""
    repeats_failures: bool = False
    """It also takes the place of one that failed, and a failure takes the place of a success."""
    quotes: bool = False
    """Its output quotes stored text: an apparent error in it is none."""
    shows_past: bool = False
    """Its output is the session's own past, which a search of the session leaves out."""
    state: Literal["", "list", "text"] = ""
    """Its result outlives a summary: the last one, a list that may be shortened, or the last of
    each title."""
    protected: bool = False
    """Its results are never pruned, unless the setting names other tools."""
    counts: str = ""
    """The unit its results count; its calls are small and stand together in one row."""
    runs_of: str = "call"
    """The phrase for several of its calls in that row: ``read 12 files``."""
    output: Literal["", "log", "numbered", "matches"] = ""
    """How a card shows the output. A log is open from the start; its end matters."""
    says_arguments: bool = False
    """The card's heading and body say all that is in the arguments."""


_UNKNOWN = ToolTraits()


class TraitsByName(dict[str, ToolTraits]):
    """The traits of tools by their names.

    A name that is not there has those of a tool nothing is known of.
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
