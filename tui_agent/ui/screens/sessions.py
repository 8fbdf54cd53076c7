"""The sessions page: searches, opens, renames, forks, exports, deletes and restores sessions.

The page itself renames, deletes and restores sessions in the store. Its result is the session to
open or fork; the command that opened the page then opens or forks it.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from textual import events, on, work
from textual.content import Content
from textual.widgets.option_list import Option

from tui_agent.app.controller import Controller
from tui_agent.app.format import (
    age,
    dotted,
    money,
    one_line,
    plural,
    short_model,
    short_path,
    token_count,
)
from tui_agent.app.frontend import Choice, TextLine
from tui_agent.app.services import OpenHow, OpenRequest
from tui_agent.app.transfer_commands import ask_export
from tui_agent.safe_text import ACTING
from tui_agent.session.errors import StoreError
from tui_agent.session.records import SearchHit, SessionInfo, SessionTotals
from tui_agent.session.store import Store
from tui_agent.ui.bindings import hidden
from tui_agent.ui.screens.picker import MAX_ROWS, PickerScreen

MAX_HITS = 200
"""Maximum number of entries that a search returns."""
HITS_PER_SESSION = 3
"""Maximum number of matching entries that are listed for each session."""
MIN_WIDTH_FOR_MODEL = 100
"""Minimum width of the sessions page, in cells, at which each session's model is shown."""


Hits = Mapping[str, Sequence[SearchHit]]
"""The entries that match a search, newest first, by the id of their session."""

MIN_NAME_WIDTH = 16
"""Minimum width of a session's name, in cells. If the line is too narrow, facts are left out to
make room for the name."""

SEARCH_DELAY_SECONDS = 0.12
"""Seconds without a key press after which the search for the typed text starts."""


def find(
    store: Store, query: str, cwd: Path, *, only_here: bool
) -> tuple[Sequence[SessionInfo], Hits]:
    """Return the sessions that match a query, and at most `MAX_HITS` matching entries.

    The sessions of directory ``cwd`` come first, then the others unless ``only_here``; each group
    begins with the most recently used. An empty query matches all sessions and no entries.

    Raises:
        StoreError: the sessions can't be read.
    """
    found = list(store.sessions(cwd=cwd, query=query or None))
    if not only_here:
        known = {info.id for info in found}
        found += [info for info in store.sessions(query=query or None) if info.id not in known]
    hits: dict[str, list[SearchHit]] = {}
    if query:
        for hit in store.search(query, MAX_HITS, cwd=cwd if only_here else None):
            hits.setdefault(hit.session_id, []).append(hit)
    return found, hits


def session_name(info: SessionInfo) -> str:
    return one_line(info.title or info.first_message, 200) or "(empty)"


class SessionPicker(PickerScreen[OpenRequest]):
    """The sessions page. Its result is the session to open, how to open it, and at which entry.

    At first, the list has the focus, so that single keys act on the highlighted session. The key
    ``/`` moves the focus to the filter. A letter that is not a key of the page does so, too, and
    becomes the first letter of the search. The filter searches the full text of all sessions;
    matching entries are listed below each session.
    """

    HEADING = "Sessions"
    PLACEHOLDER = "/ searches the text of all sessions"
    EMPTY = "No session matches."
    KEYS = (
        "enter open  / search  e title  f fork  E export  xx delete  u undo  v this directory only"
        "  esc back"
    )
    SEARCH_KEYS = "type to search  ↑↓ move  enter open  esc back"
    """Keys that are shown while the filter has the focus, so that letters are typed as text."""

    AUTO_FOCUS = "#rows"
    BINDINGS = [
        hidden("x", "delete", "delete"),
        hidden("e", "rename", "rename"),
        hidden("f", "fork", "fork"),
        hidden("E", "export", "export"),
        hidden("v", "toggle_here", "all or this directory"),
        hidden("u", "undelete", "undo delete"),
        hidden("slash", "search", "search"),
    ]

    def __init__(self, controller: Controller, *, current: str | None) -> None:
        super().__init__()
        self._controller = controller
        self._store = controller.services.store
        self._clock = controller.services.clock
        self._cwd = controller.services.cwd
        self._current = current
        self._sessions: Sequence[SessionInfo] = ()
        self._hits: Hits = {}
        self._totals: dict[str, SessionTotals] = {}
        self._only_here = False
        self._to_highlight: str | None = None
        """The session to highlight the next time the list is filled."""

    # -- finding

    @work(exclusive=True, group="sessions")
    async def refill(self, query: str) -> None:
        if query:
            await asyncio.sleep(SEARCH_DELAY_SECONDS)
        only_here = self._only_here
        if query:
            empty = self.EMPTY
        else:
            empty = f"No sessions {'of this directory ' if only_here else ''}yet."
        try:
            found = await asyncio.to_thread(
                find, self._store, query, self._cwd, only_here=only_here
            )
            self._sessions, self._hits = found
        except StoreError as error:
            self._sessions = ()
            empty = error.message
        listed = {info.id for info in self._sessions}
        at = self.highlighted
        if self._to_highlight in listed:
            at = self._to_highlight
        self._to_highlight = None
        self.empty.update(empty)
        self.heading.update("Sessions of this directory" if only_here else self.HEADING)
        self._draw(at)
        if self.focused is None:  # clearing a search without results leaves no focus
            self.listing.focus()
        self._load_totals()

    @work(exclusive=True, group="totals")
    async def _load_totals(self) -> None:
        """Add up the tokens and cost of each listed session in a thread, then show them."""
        fresh = [info.id for info in self._sessions[:MAX_ROWS] if info.id not in self._totals]
        for session_id in fresh:
            try:
                self._totals[session_id] = await asyncio.to_thread(self._store.totals, session_id)
            except StoreError:  # it is damaged, or was deleted meanwhile: show no cost
                continue
        if fresh:
            self.redraw()

    # -- drawing

    def _draw(self, at: str | None = None) -> None:
        rows = []
        for info in self._sessions:
            rows.append(Option(self._row(info), id=info.id))
            for hit in self._hits.get(info.id, ())[:HITS_PER_SESSION]:
                number = self.styled(f"    #{hit.entry_id} ", "faint")
                words: list[int] = []
                for start, end in hit.highlights:
                    words += range(start, end)
                # Replace each control character by exactly one dot, so that the offsets stay valid.
                text = self.marked(ACTING.sub("·", hit.snippet), words)
                rows.append(Option(Content.assemble(number, text), id=f"{info.id}#{hit.entry_id}"))
        self.show(rows, count=len(rows), at=at)

    def redraw(self) -> None:
        if self._sessions:
            self._draw(self.highlighted)

    def _row(self, info: SessionInfo) -> Content:
        facts = [fact for fact in self._facts(info) if fact]
        tail = Content("")
        while facts:
            tail = Content(f"  {' · '.join(facts)}")
            if self.size.width - tail.cell_length - 4 >= MIN_NAME_WIDTH:
                break
            facts.pop()
        room = self.size.width - tail.cell_length - 4
        name = Content(session_name(info)).truncate(room, ellipsis=True)
        gap = " " * max(0, room - name.cell_length)
        return Content.assemble(name, gap, self.styled(tail.plain, "faint"))

    def _facts(self, info: SessionInfo) -> Iterator[str]:
        aside = self._controller.asides.get(info.id)
        if aside is not None:
            yield aside.state.value
        yield age(info.updated_at, self._clock())
        yield plural(info.entry_count, "entry")
        if (totals := self._totals.get(info.id)) is not None and totals.cost:
            yield money(totals.cost)
        if self.size.width >= MIN_WIDTH_FOR_MODEL:
            yield short_model(info.model)
        if info.agent:
            yield f"subagent {one_line(info.agent, 20)}"
        if info.cwd != str(self._cwd):
            path = short_path(info.cwd)
            room = max(16, self.size.width // 4)
            yield path if len(path) <= room else "…" + path[1 - room :]
        if info.id == self._current:
            yield "open here"
        elif info.held_by is not None and aside is None:
            yield f"in use by process {info.held_by.pid}"

    def highlight(self, key: str | None) -> None:
        facts: list[str] = []
        if (info := self._info(key)) is not None:
            aside = self._controller.asides.get(info.id)
            if aside is not None:
                facts += [aside.question or aside.last_line]
            facts += [short_path(info.cwd), short_model(info.model)]
            if (totals := self._totals.get(info.id)) is not None:
                facts += [
                    f"~{token_count(totals.tokens)}",
                    money(totals.cost) if totals.cost else "",
                ]
        self.show_note(dotted(*facts))

    # -- acting

    def pick(self, key: str) -> None:
        session_id, _, entry = key.partition("#")
        self.dismiss(OpenRequest(session_id, entry=int(entry) if entry else None))

    @work(group="fork")
    async def action_fork(self) -> None:
        """Fork the highlighted session if the user confirms. The key is easily hit by mistake."""
        if (info := self._info(self.highlighted)) is None:
            return
        answers = [("f", "Continue in a copy"), ("", "Stay here")]
        question = Choice(f"Fork “{one_line(session_name(info), 40)}”?", answers, numbered=True)
        if await self._controller.ask(question) == "f":
            self.dismiss(OpenRequest(info.id, OpenHow.FORK))

    def action_export(self) -> None:
        if (info := self._info(self.highlighted)) is not None:
            self._controller.soon(ask_export(self._controller, info.id), changes_files=True)

    def action_toggle_here(self) -> None:
        self._only_here = not self._only_here
        self.refill(self.typed)

    def action_delete(self) -> None:
        """Ask whether to delete the highlighted session.

        If the session is open, or works in the background beside the open session, refuse instead.
        """
        info = self._info(self.highlighted)
        if info is None:
            return
        if info.id == self._current:
            self.notify("This session is open; open another one first.")
            return
        if info.id in self._controller.asides:
            self.notify(
                "This session is still open. Switch to it and stop its work, then delete it from another session."
            )
            return

        self._controller.soon(self._ask_to_delete(info))

    async def _ask_to_delete(self, info: SessionInfo) -> None:
        answers = [("x", "Delete it (x); u restores it until the program ends"), ("", "Keep it")]
        question = Choice(
            f"Delete “{one_line(session_name(info), 40)}”?", answers, at="", numbered=True
        )
        if await self._controller.ask(question) == "x":
            self._delete(info.id)

    def _delete(self, key: str) -> None:
        """Delete a session and its row, and highlight the next session, else the previous one."""
        self._store.delete(key)
        self._controller.deleted_sessions.append(key)
        ids = [info.id for info in self._sessions]
        at = 0
        if key in ids:
            at = ids.index(key)
        beside = [*ids[at + 1 : at + 2], *ids[max(0, at - 1) : at]]
        self._sessions = [info for info in self._sessions if info.id != key]
        self._draw(beside[0] if beside else None)
        self.notify("Session deleted. Press u to restore it, until the program ends.")
        self.refill(self.typed)

    def action_undelete(self) -> None:
        if not self._controller.deleted_sessions:
            self.notify("No session has been deleted since the program started.")
            return
        self._to_highlight = self._controller.deleted_sessions.pop()
        self._store.undelete(self._to_highlight)
        self.refill(self.typed)

    @work(group="rename")
    async def action_rename(self) -> None:
        if (info := self._info(self.highlighted)) is None:
            return
        if title := await self._controller.ask(
            TextLine("Title of this session", info.title, confirm="rename")
        ):
            self._store.rename(info.id, title)
            self.refill(self.typed)

    def action_back(self) -> None:
        if self.field.has_focus and self.listing.display:
            self.listing.focus()
        elif self.field.has_focus and self.field.value:
            self.field.value = ""
            self.set_focus(None)
        else:
            self.dismiss(None)

    def action_search(self) -> None:
        self.field.select_on_focus = True
        self.field.focus()

    def on_key(self, event: events.Key) -> None:
        """Move typed characters to the search field, except those that are keys of the page."""
        if (
            self.listing.has_focus
            and event.is_printable
            and event.character is not None
            and event.key not in self.active_bindings
        ):
            event.stop()
            # If the field selected its text on focus, the next typed letter would replace this one.
            self.field.select_on_focus = False
            self.field.focus()
            self.field.value += event.character
            self.field.action_end()

    def _info(self, key: str | None) -> SessionInfo | None:
        session_id = (key or "").partition("#")[0]
        for info in self._sessions:
            if info.id == session_id:
                return info
        return None

    @on(events.DescendantFocus)
    def _follow_focus(self) -> None:
        self.keys.show(self.SEARCH_KEYS if self.field.has_focus else self.KEYS)
