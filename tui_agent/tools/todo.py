"""The ``todo`` tool, whose results contain the model's to-do list.

Also finds the current list on a session path (`current_todos`).
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field, field_validator

from tui_agent.errors import ToolError
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    StateText,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import FreeTool, ToolContext, ToolInput, ToolResult

MAX_TODOS = 100
"""Maximum number of items of a to-do list. A longer list is refused, because the whole list is sent
to the model."""
MAX_CHARS = 8_000
"""Maximum number of characters of a to-do list."""

EMPTY = "The list is empty."
"""The output of the ``todo`` tool for a list without items."""

_NAME = "todo"

_LINE = LazyPattern(r"(?:[-*+•]\s+|\d+[.)]\s+)?(?:\[(?P<mark>[ >xX~-]?)\]\s*)?(?P<content>.*)")

_CONTENT = ("content", "text", "title", "task", "step", "description", "name")
"""Names that models use for the field that contains an item's text, the preferred name first."""

_OTHER_NAMES = {
    "completed": "done",
    "complete": "done",
    "canceled": "cancelled",
    "doing": "in_progress",
}
"""The to-do status for each other name that models give to a status."""


class TodoStatus(StrEnum):
    """The status of a to-do item."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    CANCELLED = "cancelled"


_MARKS = {
    TodoStatus.PENDING: " ",
    TodoStatus.IN_PROGRESS: ">",
    TodoStatus.DONE: "x",
    TodoStatus.CANCELLED: "-",
}
_STATUS_OF = {mark: status for status, mark in _MARKS.items()} | {
    "X": TodoStatus.DONE,
    "~": TodoStatus.IN_PROGRESS,
}


@frozen
class Todo:
    """One item of the to-do list."""

    content: str
    status: TodoStatus = TodoStatus.PENDING

    def __str__(self) -> str:
        """Return the item as a line with its mark: ``[x] Write tests``."""
        return f"[{_MARKS[self.status]}] {self.content}"


class TodoInput(ToolInput):
    """Arguments of the ``todo`` tool."""

    todos: str = Field(description="Lines: [ ] pending, [>] in progress, [x] done, [-] cancelled")

    @field_validator("todos", mode="before")
    @classmethod
    def _as_lines(cls, value: Any) -> Any:
        if isinstance(value, list):
            return "\n".join(map(_line, value))
        return value


class TodoTool(FreeTool[TodoInput]):
    """Replaces the whole to-do list, which is stored only as the result of the call.

    See `current_todos`.
    """

    name: ClassVar[str] = _NAME
    description: ClassVar[str] = "Your plan for several steps; replaces the whole list."
    Input = TodoInput
    traits = ToolTraits(
        kind="think",
        other_names="todowrite todos updateplan writetodos",
        state="list",
        protected=True,
    )

    async def run(self, arguments: TodoInput, context: ToolContext) -> ToolResult:  # noqa: ARG002 - as inherited
        todos = parse(arguments.todos)
        text = "\n".join(map(str, todos)) or EMPTY
        if len(todos) > MAX_TODOS or len(text) > MAX_CHARS:
            raise ToolError(
                f"The list is too long: at most {MAX_TODOS} items and {MAX_CHARS:,} characters."
            )
        return ToolResult(text, progress(todos), metadata=ToolMetadata(count=len(todos)))

    def touches(self, arguments: TodoInput, context: ToolContext) -> tuple[()]:  # noqa: ARG002 - as inherited
        return ()

    def title(self, arguments: TodoInput) -> str:
        return progress(parse(arguments.todos))


def progress(todos: Sequence[Todo]) -> str:
    """Return the number of done items as ``2/5 done``. Cancelled items are not counted."""
    done, count = done_of(todo.status for todo in todos)
    return f"{done}/{count} done"


def done_of(statuses: Iterable[str]) -> tuple[int, int]:
    """Return the number of done items, and the number of all items that are not cancelled."""
    counted = [status for status in statuses if status != TodoStatus.CANCELLED]
    return counted.count(TodoStatus.DONE), len(counted)


def parse(text: str) -> tuple[Todo, ...]:
    """Return the to-do items in a text that contains one item per line.

    An item without a mark such as ``[x]`` is pending. Bullets and numbers are removed; blank lines,
    headings (``#``) and ``EMPTY`` are ignored.
    """
    todos = []
    for line in text.split("\n"):
        match = _LINE.fullmatch(" ".join(line.split()))
        content = ""
        if match:
            content = match["content"].strip()
        if match and content and content != EMPTY and not content.startswith("#"):
            todos.append(Todo(content, _STATUS_OF[match["mark"] or " "]))
    return tuple(todos)


def current_todos(path: Sequence[Entry]) -> tuple[Todo, ...]:
    """Return the to-do list at the end of a session path; the list is empty if there is none.

    The list is the newest result of the ``todo`` tool, or the list that a newer branch summary
    contains. A list that a compaction contains is used only if the path contains neither, because
    the entries that the compaction kept are newer than its summary, although they come before it on
    the path. ``path`` may be only the part that a request needs.
    """
    carried: str | None = None
    for entry in reversed(path):
        match entry:
            case ToolResultEntry(tool=tool, status=ToolStatus.COMPLETED) if tool == _NAME:
                return parse(entry.output)
            case BranchSummaryEntry() if (text := _state(entry.details.state)) is not None:
                return parse(text)
            case CompactionEntry() if carried is None:
                carried = _state(entry.details.state)
            case _:
                continue
    return parse(carried or "")


def is_of_newest_turn(path: Sequence[Entry]) -> bool:
    """Return True if the to-do list was written after the newest message that began a turn."""
    for entry in reversed(path):
        match entry:
            case ToolResultEntry(tool=tool, status=ToolStatus.COMPLETED) if tool == _NAME:
                return True
            case UserEntry(mid_run=False):
                return False
            case _:
                continue
    return False


def _line(item: Any) -> str:
    """Return a to-do item as a line. The item may be an object, as in other programs' tools.

    Raises ValueError if the object has an unknown status or no text.
    """
    if not isinstance(item, dict):
        return str(item)
    status = str(item.get("status", "")).strip().lower().replace("-", "_").replace(" ", "_")
    try:
        known = TodoStatus(_OTHER_NAMES.get(status, status or "pending"))
    except ValueError:
        raise ValueError(f"{status} is not a status; use {', '.join(TodoStatus)}") from None
    content = next((item[name] for name in _CONTENT if item.get(name)), None)
    if content is None:
        given = ", ".join(map(str, item))
        raise ValueError(f"an item has no content, only {given}" if given else "an item is empty")
    return str(Todo(" ".join(str(content).split()), known))


def _state(state: Iterable[StateText]) -> str | None:
    """Return the to-do list that a summary contains, as text; None if it contains none."""
    return next((item.text for item in state if item.tool == _NAME), None)
