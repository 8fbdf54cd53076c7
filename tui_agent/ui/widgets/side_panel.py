"""The side panel: an outline of the session tree, the to-dos, changed files and background jobs.

The panel reads the session after each change. panel_content.py computes the outline and the other
contents.
"""

from collections.abc import Callable, Sequence

from textual import events
from textual.message import Message

from tui_agent.agent.agent import Agent
from tui_agent.app.report_commands import TODO_MARKS
from tui_agent.lazy import dataclass, frozen
from tui_agent.processes.jobs import JobState
from tui_agent.session.entries import CompactionEntry, Entry, UserEntry
from tui_agent.session.path_queries import newest
from tui_agent.tools.todo import done_of
from tui_agent.ui.later import Later
from tui_agent.ui.panel_content import (
    OutlineRow,
    PanelFacts,
    outline,
    panel_facts,
    running_jobs,
    summarised_changes,
    with_new_leaf,
)
from tui_agent.ui.widgets.line_list import LineList, spread
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.lines import StyledSpan, StyledSpans, crop_start
from tui_agent.ui.widgets.transcript.viewport import MAX_COLUMN

MIN_WIDTH = 36
"""Minimum width of the panel, in cells.

Usually, the panel uses all the width that the conversation doesn't need.
"""
MAX_WIDTH = 84
"""Maximum width of the panel, in cells."""
MIN_WIDTH_FOR_PANEL = 140
"""Minimum width of the terminal, in cells, at which the panel is shown by default."""

_MARK_STYLES = {"pending": "faint", "in_progress": "accent", "done": "good", "cancelled": "faint"}
MIN_TREE_ROWS = 6
"""Minimum number of rows for the tree, even if the other parts of the panel don't fit then."""


@frozen
class _Line:
    """A line of the panel, with the text ``tail`` at its right edge.

    If the user chooses the line, the conversation scrolls to the entry with the id ``entry``.
    Nothing happens if ``entry`` is None.
    """

    spans: tuple[StyledSpan, ...] = ()
    tail: tuple[StyledSpan, ...] = ()
    entry: int | None = None


class SidePanel(LineList):
    """Shows the outline of the tree, the to-dos, changed files and background jobs.

    The user can jump from some lines to an entry in the conversation.
    """

    CURSOR = "focused"
    FOCUS_ON_CLICK = False

    @dataclass
    class Jumped(Message):
        """Posted when the user chooses a line in order to see its entry in the conversation."""

        entry_id: int

    def __init__(self, key_of: Callable[[str], str]) -> None:
        """``key_of`` returns the text to display for an action's key, or "" if there is no key."""
        super().__init__(id="side-panel")
        self._key_of = key_of
        self._agent: Agent | None = None
        self._lines: list[_Line] = []
        self._rows: list[OutlineRow] = []
        self._facts = PanelFacts()
        self._summarised: tuple[int, list[Entry]] = (0, [])
        """A cache: the id of the newest compaction (0 if none), and its `summarised_changes`."""
        self._stale = True
        self._rebuilding = Later(self, self._rebuild)

    # -- display

    def open(self, agent: Agent) -> None:
        self._agent = agent
        self._rows = []
        self._summarised = (0, [])
        self._rebuild_soon()

    def follow(self, entry: Entry | None) -> None:
        """Update the panel after ``entry`` was appended, or after the leaf has moved.

        In the latter case, ``entry`` is None.
        """
        if entry is None:
            self._rows = []
        else:
            self._rows = with_new_leaf(self._rows, entry)
        self._rebuild_soon()

    def show_jobs(self, jobs: Sequence[JobState]) -> None:
        if running_jobs(jobs) != self._facts.jobs:
            self._rebuild_soon()

    def show(self, *, shown: bool) -> None:
        if self.display is not shown:
            self.display = shown
            if shown and self._stale:
                self._rebuild_soon()

    def _rebuild_soon(self) -> None:
        """Rebuild the panel after the next screen refresh.

        A hidden panel is rebuilt when it is shown.
        """
        self._stale = True
        if self.display:
            self._rebuilding.after_refresh()

    def _rebuild(self) -> None:
        if self._agent is None or not self.display:
            return
        self._stale = False
        session = self._agent.session
        if not self._rows:
            self._rows = outline(session.skeleton(), session.leaf, session.labels())
        path = session.active_path()
        notes = set()
        for entry in path:
            if isinstance(entry, UserEntry) and entry.synthetic:
                notes.add(entry.id)
        self._rows = [row for row in self._rows if row.is_leaf or row.entry_id not in notes]
        compaction = newest(path, CompactionEntry)
        if compaction is None:
            self._summarised = 0, []
        elif self._summarised[0] != compaction.id:
            self._summarised = compaction.id, summarised_changes(session)
        self._facts = panel_facts([*self._summarised[1], *path], self._agent.jobs)
        self._lay_out()

    def on_resize(self) -> None:
        self.styles.width = min(MAX_WIDTH, max(MIN_WIDTH, self.app.size.width - MAX_COLUMN))
        self._lay_out()

    def _lay_out(self) -> None:
        below = [*self._todos(), *self._files(), *self._jobs()]
        room = max(MIN_TREE_ROWS, self.size.height - len(below) - 2)
        lines = [*self._tree(room), *below]
        if lines != self._lines:
            self._lines = lines
            self.set_count(len(lines))

    def _tree(self, room: int) -> list[_Line]:
        if not self._rows:
            return [_heading("Tree", self._key_of("tree")), _Line(((" nothing yet", "faint"),))]
        here = next((at for at, row in enumerate(self._rows) if row.is_leaf), len(self._rows) - 1)
        first = max(0, min(here - room + 3, len(self._rows) - room))
        shown = self._rows[first : first + room]
        lines = [_heading("Tree", self._key_of("tree"))]
        if first:
            lines.append(_Line((("  ⋮", "faint"),), entry=self._rows[first - 1].entry_id))
            shown = shown[1:]
        lines.extend(_tree_line(row) for row in shown)
        if first + room < len(self._rows):
            lines.append(_Line((("  ⋮", "faint"),), entry=self._rows[first + room].entry_id))
        return lines

    def _todos(self) -> list[_Line]:
        todos = self._facts.todos
        if not todos:
            return []
        done, count = done_of(status for status, _ in todos)
        lines = [_Line(), _heading("To-dos", f"{done}/{count}")]
        for status, text in todos:
            if status == "in_progress":
                style = "strong"
            elif status in {"done", "cancelled"}:
                style = "faint"
            else:
                style = "text"
            mark = (f" {TODO_MARKS.get(status, '○')} ", _MARK_STYLES.get(status, "text"))
            lines.append(_Line((mark, (sanitize.line(text), style)), entry=self._facts.todo_entry))
        return lines

    def _files(self) -> list[_Line]:
        files = self._facts.files
        if not files:
            return []
        lines = [_Line(), _heading("Files changed", str(len(files)))]
        for file in files:
            name = sanitize.line(file.path)
            room = max(12, self.size.width - 12)
            counts: StyledSpans = ()
            if file.additions or file.deletions:
                counts = ((f"+{file.additions}", "good"), (f" −{file.deletions} ", "error"))
            lines.append(
                _Line(((f" {crop_start(name, room)}", "text"),), counts, entry=file.entry_id)
            )
        return lines

    def _jobs(self) -> list[_Line]:
        if not self._facts.jobs:
            return []
        lines = [_Line(), _heading("Background jobs", "")]
        for number, command in self._facts.jobs:
            lines.append(_Line(((f" ◐ {number} ", "accent"), (sanitize.line(command), "text"))))
        return lines

    # -- keys and mouse

    def action_choose(self) -> None:
        line = None
        if self.cursor < len(self._lines):
            line = self._lines[self.cursor]
        if line is not None and line.entry is not None:
            self.post_message(self.Jumped(line.entry))

    def on_click(self, event: events.Click) -> None:
        event.prevent_default()
        index = self.index_at(event.y)
        if index is not None:
            self.cursor = index
            self.action_choose()

    # -- painting

    def row(self, index: int, width: int) -> Sequence[StyledSpan]:
        line = self._lines[index]
        return spread(line.spans, line.tail, width - (0 if line.tail else 1))


def _heading(name: str, note: str) -> _Line:
    return _Line(((f" {name}", "strong"),), ((f"{note} ", "faint"),) if note else ())


def _tree_line(row: OutlineRow) -> _Line:
    indent = "  " * min(row.depth, 4)
    mark = "├" if row.is_branch else "•"
    mark_style = "faint"
    style = "text" if row.on_path else "faint"
    tail: list[StyledSpan] = []
    if row.label:
        tail.append((f"[{sanitize.line(row.label)[:12]}] ", "accent"))
    elif row.is_branch:
        tail.append((f"{row.count} ", "faint"))
    if row.is_leaf:
        mark_style = "accent"
        style = "strong"
        tail.append(("◀ ", "accent"))
    spans = ((f" {indent}{mark} ", mark_style), (sanitize.line(row.text), style))
    return _Line(spans, tuple(tail), entry=row.entry_id)
