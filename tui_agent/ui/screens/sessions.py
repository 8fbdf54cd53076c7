"""The sessions of this user: find one, open it, rename it, delete it (and take that back)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList, Static

from tui_agent.session.errors import StoreError
from tui_agent.session.records import SessionInfo
from tui_agent.ui.format import age, one_line, plural, short_model, short_path
from tui_agent.ui.screens.choice import ChoiceScreen
from tui_agent.ui.screens.picker import PickerScreen, Row
from tui_agent.ui.services import OpenHow, OpenRequest
from tui_agent.ui.store_port import StorePort

PAUSE = 0.12
"""Seconds without a key before a search starts."""


@dataclass(slots=True)
class _State:
    """What the list shows. ``marked`` is the session the next ``d`` deletes."""

    sessions: Sequence[SessionInfo] = ()
    marked: str | None = None
    renaming: str | None = None
    deleted: list[str] = field(default_factory=list)


class SessionPicker(PickerScreen[OpenRequest]):
    """Dismissed with the session to open and how.

    The list has the focus at first, so that single keys act on the highlighted session; ``/`` or any other letter
    goes to the filter, which searches the full text of every session.
    """

    HEADING = "Sessions"
    PLACEHOLDER = "/ searches everything that was said"
    EMPTY = "No session matches."
    KEYS = "enter open   / search   r rename   d d delete   u undo   escape back"

    AUTO_FOCUS = "#rows"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "delete", "delete", show=False),
        Binding("r", "rename", "rename", show=False),
        Binding("u", "undelete", "undo delete", show=False),
        Binding("slash", "search", "search", show=False),
        Binding("tab", "switch", "switch", show=False),
    ]

    title_field = getters.query_one("#title", Input)
    keys = getters.query_one("#keys", Static)

    @dataclass
    class Found(Message):
        """A search ended."""

        query: str
        sessions: Sequence[SessionInfo]
        error: str = ""

    def __init__(self, store: StorePort, clock: Callable[[], float], *, cwd: Path, current: str | None) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._cwd = cwd
        self._current = current
        self._state = _State()

    def compose(self) -> ComposeResult:
        """The picker's parts and a field for a new title."""
        yield from super().compose()
        yield Input(placeholder="New title: Enter keeps it, Escape leaves it", id="title", compact=True)

    def on_mount(self) -> None:
        """List everything."""
        self.title_field.display = False
        super().on_mount()

    # -- finding ----------------------------------------------------------------------------------------------

    def refill(self, query: str) -> None:
        """Search in a thread; typing on starts over."""
        self._state.marked = None
        self._search(query)

    @work(exclusive=True, group="sessions", exit_on_error=False)
    async def _search(self, query: str) -> None:
        if query:
            await asyncio.sleep(PAUSE)
        try:
            found = await asyncio.to_thread(self._store.sessions, query=query or None)
        except StoreError as error:
            self.post_message(self.Found(query, (), error.message))
        else:
            self.post_message(self.Found(query, found))

    def on_session_picker_found(self, message: Found) -> None:
        """Show what was found: this directory's sessions first, each group newest first."""
        if message.query != self.field.value.strip():
            return
        at = self.highlighted
        here = str(self._cwd)
        self._state.sessions = sorted(message.sessions, key=lambda info: (info.cwd != here, -info.updated_at))
        self.empty.update(message.error or (self.EMPTY if message.query else "No sessions yet."))
        self._draw(at)

    def _draw(self, at: str | None = None) -> None:
        self.show([Row(info.id, self._row(info)) for info in self._state.sessions], at=at)

    def _row(self, info: SessionInfo) -> Content:
        title = one_line(info.title or info.first_message, 200) or "(empty)"
        facts = [age(info.updated_at, self._clock()), plural(info.entry_count, "entry")]
        if self.size.width >= 100:
            facts.append(short_model(info.model))
        if info.cwd != str(self._cwd):
            facts.append(short_path(info.cwd))
        if info.id == self._current:
            facts.append("open here")
        elif info.held_by is not None:
            facts.append(f"in use by process {info.held_by.pid}")
        tail = "  " + " · ".join(fact for fact in facts if fact)
        if info.id == self._state.marked:
            tail = "  d again deletes · any other key keeps"
        room = max(16, self.size.width - len(tail) - 4)
        name = Content(title).truncate(room, ellipsis=True)
        gap = " " * max(0, room - name.cell_length)
        return Content.assemble(name, gap, self.styled(tail, "match" if info.id == self._state.marked else "faint"))

    # -- acting -----------------------------------------------------------------------------------------------

    def pick(self, key: str) -> None:
        """Open it; ask first how, when another program has it."""
        info = self._info(key)
        if info is None or info.held_by is None or key == self._current:
            self.dismiss(OpenRequest(key))
            return
        holder = info.held_by

        def opened(how: str | None) -> None:
            if how is not None:
                self.dismiss(OpenRequest(key, OpenHow(how)))

        self.app.push_screen(held_question(holder.pid, holder.host), opened)

    def highlight(self, key: str | None) -> None:
        """Moving away keeps what was marked."""
        if self._state.marked is not None and key != self._state.marked:
            self._state.marked = None
            self._draw(key)

    def action_delete(self) -> None:
        """Mark at the first press, delete at the second; the open session stays."""
        key = self.highlighted
        if key is None:
            return
        if key == self._current:
            self.notify("This session is open; open another one first.", markup=False)
        elif self._state.marked != key:
            self._state.marked = key
            self._draw(key)
        else:
            self._state.marked = None
            self._store.delete(key)
            self._state.deleted.append(key)
            self.notify("Deleted. u brings it back until the program ends.", markup=False)
            self._search(self.field.value.strip())

    def action_undelete(self) -> None:
        """Bring the session deleted last back."""
        if not self._state.deleted:
            self.notify("Nothing was deleted here.", markup=False)
            return
        self._store.undelete(self._state.deleted.pop())
        self._search(self.field.value.strip())

    def action_rename(self) -> None:
        """Edit the title of the highlighted session."""
        if (info := self._info(self.highlighted)) is None:
            return
        self._state.renaming = info.id
        self.title_field.value = info.title
        self.title_field.display = True
        self.title_field.focus()

    @on(Input.Submitted, "#title")
    def _renamed(self, event: Input.Submitted) -> None:
        event.stop()
        if self._state.renaming and event.value.strip():
            self._store.rename(self._state.renaming, event.value.strip())
        self._end_renaming()
        self._search(self.field.value.strip())

    def _end_renaming(self) -> None:
        self._state.renaming = None
        self.title_field.display = False
        self.listing.focus()

    def action_back(self) -> None:
        """Leave the title, the mark, the filter, then the screen."""
        if self._state.renaming:
            self._end_renaming()
        elif self._state.marked:
            self._state.marked = None
            self._draw(self.highlighted)
        else:
            super().action_back()

    def action_search(self) -> None:
        """Go to the filter."""
        self.field.focus()

    def action_switch(self) -> None:
        """Between filter and list."""
        (self.listing if self.field.has_focus else self.field).focus()

    def _info(self, key: str | None) -> SessionInfo | None:
        return next((info for info in self._state.sessions if info.id == key), None)

    @on(OptionList.OptionSelected, "#rows")
    def _keep_marked(self) -> None:
        self._state.marked = None


def held_question(pid: int, host: str) -> ChoiceScreen:
    """Return the question how to open a session that another live program holds."""
    return ChoiceScreen(
        f"This session is open in process {pid} on {one_line(host, 40)}.",
        [
            (OpenHow.READ_ONLY, "Read it only"),
            (OpenHow.FORK, "Fork it: go on here in a copy"),
            (OpenHow.TAKE_OVER, "Take it over: the other program can only read on"),
        ],
    )
