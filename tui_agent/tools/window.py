"""``window``: the model keeps working notes and opens a fresh context window from them."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from pydantic import Field

from tui_agent.context.arguments import parse_object
from tui_agent.errors import ToolError
from tui_agent.permission import PermissionNeed
from tui_agent.session.entries import AssistantEntry, CompactionEntry, Entry, ToolMetadata, ToolResultEntry, ToolStatus
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult

MAX_CHARS = 20_000

_NAME = "window"


class WindowInput(ToolInput):
    """Arguments of ``window``."""

    notes: str = Field(default="", description="All that you need to go on, in Markdown; replaces the notes before")
    open: bool = Field(default=False, description="Go on in a new window that begins with the notes")


class WindowTool(Tool[WindowInput]):
    """Keeps nothing itself: the call on the path holds the notes, so that going back and branches carry theirs.

    ``wanted`` says whether windows are opened from notes at all.
    """

    name: ClassVar[str] = _NAME
    description: ClassVar[str] = (
        "Keep working notes, and open a fresh context window that begins with them when this one fills or a part of "
        "the work is done. What came before stays searchable with recall."
    )
    Input = WindowInput
    traits = ToolTraits(kind="think", other_names="newwindow contextwindow workingnotes", protected=True)

    def __init__(self, wanted: Callable[[], bool] = lambda: False) -> None:
        self._wanted = wanted

    @property
    def offered(self) -> bool:
        return self._wanted()

    def needs(self, arguments: WindowInput, context: ToolContext) -> tuple[PermissionNeed, ...]:  # noqa: ARG002 - as inherited
        """Need nothing: it only writes to the session."""
        return ()

    async def run(self, arguments: WindowInput, context: ToolContext) -> ToolResult:
        """Say how much room is left; the window is opened before the next request."""
        if not self._wanted():
            raise ToolError("Windows are not opened from notes here: the history is summarised when it gets long.")
        if not arguments.notes.strip() and not (arguments.open and context.has_notes):
            raise ToolError("Write the notes: they are all that the new window begins with.")
        if len(arguments.notes) > MAX_CHARS:
            raise ToolError(f"The notes are too long: at most {MAX_CHARS:,} characters.")
        left = "" if context.room_left is None else f" About {max(0, context.room_left()):,} tokens of room are left."
        told = "A new window opens." if arguments.open else f"Noted.{left}"
        return ToolResult(told, self.title(arguments), metadata=ToolMetadata(opens_window=arguments.open))

    def touches(self, arguments: WindowInput, context: ToolContext) -> tuple[()]:  # noqa: ARG002 - as inherited
        """Change no file."""
        return ()

    def title(self, arguments: WindowInput) -> str:
        """Return what is done."""
        return "new window" if arguments.open else f"notes, {len(arguments.notes):,} characters"


def window_notes(path: Sequence[Entry]) -> tuple[str, int] | None:
    """Return the newest notes on a path and the entry they were kept with, None when there are none.

    Those that a window began with count where none were kept in it.
    """
    kept: dict[str, int] = {}
    for entry in reversed(path):
        match entry:
            case ToolResultEntry(tool=tool, status=ToolStatus.COMPLETED) if tool == _NAME:
                kept.setdefault(entry.call_id, entry.id)
            case AssistantEntry():
                for call in reversed(entry.tool_calls):
                    notes = (parse_object(call.arguments) or {}).get("notes") if call.call_id in kept else None
                    if isinstance(notes, str) and notes.strip():
                        return notes.strip(), kept[call.call_id]
            case CompactionEntry(summary=summary):
                return (summary, entry.id) if entry.style == "notes" else None
            case _:
                continue
    return None


def wants_window(path: Sequence[Entry]) -> bool:
    """Whether the model asked for a new window in its newest step."""
    for entry in reversed(path):
        if isinstance(entry, AssistantEntry | CompactionEntry):
            return False
        if isinstance(entry, ToolResultEntry) and entry.metadata.opens_window:
            return True
    return False
