"""The session tree page: shows every branch; moves, merges, forks, labels and summarises.

To move means to make another entry the current one. The page asks the user's questions, stores
labels, and copies sessions in the store. `tui_agent.app.moves` moves to other entries and changes
the files for that; the agent's navigator merges branches. For compactions, races and undo, the page
runs commands.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Literal

from textual import getters, on, work
from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.content import Content
from textual.widgets import Input

from tui_agent.agent.events import (
    AgentEvent,
    EntryAppended,
    LeafMoved,
    RaceEnded,
    RunEnded,
    RunnerChanged,
    RunStarted,
)
from tui_agent.agent.navigator import NavigationError
from tui_agent.app import race_commands
from tui_agent.app.controller import COPYING
from tui_agent.app.copy_commands import own_text
from tui_agent.app.format import money, plural, tokens
from tui_agent.app.frontend import Choice, DiffPage, RacePage, Report, TextLine, TreePage
from tui_agent.app.moves import NOT_RECORDED, files_along, make_move
from tui_agent.app.race_views import runners_by_leaf, watch_at
from tui_agent.app.services import OpenRequest
from tui_agent.app.session_commands import FORKED, open_text, show_contexts
from tui_agent.app.subagent_commands import show_branch, show_subagent
from tui_agent.app.undo_commands import name_of_place, redo, undo
from tui_agent.session.entries import Entry, RaceEntry, ToolResultEntry, prompt_text
from tui_agent.session.errors import StoreError
from tui_agent.ui.bindings import hidden
from tui_agent.ui.later import Later
from tui_agent.ui.screens.dialogs import Dialog
from tui_agent.ui.screens.page import FramedPage
from tui_agent.ui.widgets.line_list import next_member
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.transcript import messages, sanitize
from tui_agent.ui.widgets.tree.outline import Outline
from tui_agent.ui.widgets.tree.preview import EntryPreview, headers_of
from tui_agent.ui.widgets.tree.rows import Filter
from tui_agent.ui.widgets.tree.search_matches import Hits, SearchBegun, hit_from
from tui_agent.ui.widgets.tree.segments import TreeIndex
from tui_agent.ui.widgets.tree.session_tree import SessionTree

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller

SEARCH_HINTS = "enter keep hits  ↓ next  ↑ previous  esc back"
LABEL_HINTS = "enter save (empty: remove)  esc back"
HINTS = (
    "enter go  ←→ fold  / search  ctrl+o filter  l label  M merge  s summarise up to here  f fork  r race  d diff"
    "  y copy  u undo  space preview  ? keys  esc back"
)
"""The line of keys at the bottom of the page. It shows as many keys as fit, and always the last
two."""

KEYS = """\
↑ ↓ pgup pgdn home end   move; so do j k g G
→                        unfold, open a row of tool calls, or go to the next branch
←                        fold, or go back to where the branch starts
enter, double click      go to the entry; if it is your message, edit it again
shift+enter, c           go to the entry and continue after it
/                        search all text; n and N: other hits
ctrl+o                   show less, or everything
space                    show or hide the preview; tab moves into it
l                        label
M                        merge: add a summary of this branch where you are
s                        summarise everything before the entry, after a preview
f                        fork: a new session that ends at the entry
P                        open the session this one came from
d                        diff of the files between the entry and where you are
D                        diff of the model's context between the entry and where you are
r                        race: run one prompt several times, from the entry
o                        open the conversation of a subagent or runner
y                        copy
u, ctrl+r                undo and redo the last action, including files
esc                      back without a change"""
"""All keys of the session tree page, as text for the page's help."""

NO_SUMMARY = "\0none"
FOCUS = "\0focus"
"""Names of the answers “No summary” and “Summarise with focus…”. They begin with NUL, so that a
focus typed by the user can't equal one of them."""
KEEP_WHAT = "What should the summary keep?"
PREVIEW_SECONDS = 0.05
"""Seconds after the last cursor move until the preview shows the entry under the cursor."""
REFRESH_SECONDS = 0.2
"""Seconds for which the session tree page collects new entries before it is drawn again."""

PAUSE_FACTOR = 9
"""Minimum pause after a redraw, as a multiple of its duration, so that redraws use at most a tenth of
a core."""
TREE_EVENTS = EntryAppended | LeafMoved | RunStarted | RunEnded | RunnerChanged | RaceEnded
"""Types of the events after which the session tree has to be drawn again."""
LARGE_TREE_ENTRIES = 20_000
"""Minimum number of entries in a session tree that the page paints before it reads the costs of the
tree, because reading them takes long."""
PAINT_SECONDS = 0.12
"""Seconds between updates of a summary that is being written."""
MAX_SUMMARY_LINES = 8
"""Maximum number of lines that are shown of a summary while it is being written. The last lines are
shown."""

SummaryWork = Callable[[Callable[[str], None]], Awaitable[object]]
"""Type of a function that writes a summary. It takes another function, which it calls with each
piece of the text."""


class TreeScreen(FramedPage[None]):
    """The session tree page. Closes after the user has moved to another entry, or with Escape."""

    AUTO_FOCUS = "SessionTree"
    LAST_KEYS = 2
    COMPONENT_CLASSES = {"tree--title"}
    BINDINGS = [
        hidden("q,ctrl+t", "back", "back"),
        hidden("slash", "search", "search"),
        hidden("n,down", "hit(1)", "next hit"),
        hidden("N,up", "hit(-1)", "previous hit"),
        hidden("ctrl+o", "filter", "filter"),
        hidden("l", "label", "label"),
        hidden("y", "copy", "copy"),
        hidden("d", "diff", "diff of files"),
        hidden("D", "contexts", "diff of contexts"),
        hidden("o", "subagent", "open the subagent or runner"),
        hidden("M", "merge", "merge"),
        hidden("s", "compact", "summarise up to here"),
        hidden("f", "fork", "fork"),
        hidden("P", "parent", "session this one came from"),
        hidden("r", "race", "race from here"),
        hidden("u", "step('undo')", "undo"),
        hidden("ctrl+r", "step('redo')", "redo"),
        hidden("space", "preview", "preview"),
        hidden("question_mark,f1", "keys", "keys"),
    ]

    session_tree = getters.query_one(SessionTree)
    preview = getters.query_one(EntryPreview)
    entry = getters.query_one("#tree-entry", Horizontal)
    field_name = getters.query_one("#tree-field-name", PlainText)
    field = getters.query_one("#tree-field", Input)

    def __init__(self, controller: "Controller", agent: "Agent", page: TreePage) -> None:
        super().__init__()
        self._controller = controller
        self._page = page
        self._agent = agent
        self._session = agent.session
        self._previewing = Later(self, self._show_preview)
        self.refreshing = Later(self, self._refresh_tree)
        self._search: SearchBegun | None = None
        self._labelling: int | None = None
        self._focus = ""
        """The focus that the user typed for the last summary. It is offered again if that summary
        failed."""
        self._wants_preview: bool | None = None
        self._priced = False
        self._pause = REFRESH_SECONDS

    def body(self) -> ComposeResult:
        with Container(id="tree-body"):
            shown = Filter(self._controller.services.config().ui.tree_filter)
            load = self._session.entries
            clock = self._controller.services.clock
            yield SessionTree(lambda entry_id: next(iter(load([entry_id])), None), clock, shown)
            yield EntryPreview(self._agent, clock)
        with Horizontal(id="tree-entry"):
            yield PlainText(id="tree-field-name")
            yield Input(id="tree-field", compact=True)

    def on_mount(self) -> None:
        self.when_left(self._agent.channel.subscribe(self._on_agent_event))
        self.reload(at=self._session.leaf if self._page.at is None else self._page.at)
        self.session_tree.centre()
        self.on_resize()

    # -- showing

    def reload(self, *, at: int | None = None) -> None:
        session = self._session
        calls = {entry.id: entry.call for entry in session.subagents()}
        headers = session.skeleton().hung(calls)
        self._priced = self._priced or len(headers) < LARGE_TREE_ENTRIES
        if self._priced:
            costs = session.reader.costs()
        else:
            costs = {}
        index = TreeIndex(headers, session.leaf, costs, self._agent.counter.calibrated)
        standings = self._agent.inspector.standings()
        runners = runners_by_leaf(self._controller)
        self.session_tree.show(index, session.labels(), standings, at=at, runners=runners)
        self._show_head()
        if not self._priced:
            self._priced = True
            self.call_after_refresh(self.reload)

    def _show_head(self) -> None:
        title = Content.styled("Session tree", ".tree--title")
        facts = "  " + " · ".join(facts_of_tree(self.session_tree))
        # No new layout is needed, because the heading always has one line.
        self.heading.update(Content.assemble(title, facts), layout=False)

    def on_resize(self) -> None:
        size = self.app.size
        roomy = size.width >= 100 or size.height >= 32
        if self._wants_preview is None:
            shown = roomy
        else:
            shown = self._wants_preview
        self.set_class(shown, "-preview")
        self._show_keys()
        self._preview_soon()

    def _show_keys(self) -> None:
        typed = LABEL_HINTS if self._labelling is not None else SEARCH_HINTS
        self.keys.show(typed if self.entry.display else HINTS)

    @on(SessionTree.Highlighted)
    def _preview_soon(self) -> None:
        if self.has_class("-preview"):
            self._previewing.debounce(PREVIEW_SECONDS)

    def _show_preview(self) -> None:
        tree = self.session_tree
        self.preview.show(tree.outline.index, tree.line, tree.standings)

    def _on_agent_event(self, event: AgentEvent) -> None:
        if isinstance(event, TREE_EVENTS):
            self.refreshing.after(self._pause)

    def _refresh_tree(self) -> None:
        if self.is_attached:
            start = perf_counter()
            self.reload()
            self._pause = max(REFRESH_SECONDS, PAUSE_FACTOR * (perf_counter() - start))

    def action_preview(self) -> None:
        self._wants_preview = not self.has_class("-preview")
        if not self._wants_preview:
            self.session_tree.focus()
        self.on_resize()

    def action_filter(self) -> None:
        view = self.session_tree.view
        self.session_tree.set_options(replace(view, filter=next_member(Filter, view.filter)))
        self._show_head()

    def action_keys(self) -> None:
        self._controller.show(Report("Keys of the session tree", KEYS.splitlines()))

    def action_back(self) -> None:
        if self.entry.display:
            self._close_field(keep=False)
        elif self.preview.has_focus_within:
            self.session_tree.focus()
        elif self.session_tree.hits is not None:
            self.session_tree.show_hits("", None)
            self._show_head()
        else:
            self.dismiss()

    # -- the field: search and labels

    def action_search(self) -> None:
        line = self.session_tree.line
        self._search = SearchBegun(
            self.session_tree.cursor, line.entry if line else None, self.session_tree.view
        )
        self._prepare_search(self.session_tree.outline)
        self._open_field("Search", "in the text of all entries", "")

    def action_label(self) -> None:
        if (line := self.session_tree.line) is None or self._refuses():
            return
        self._labelling = line.entry
        text = self._session.labels().get(line.entry, "")
        self._open_field(f"Label #{line.entry}", "", text)

    def _open_field(self, name: str, placeholder: str, text: str) -> None:
        with self.prevent(Input.Changed):
            self.field.value = text
        self.field.placeholder = placeholder
        self.field_name.update(name)
        self.entry.display = True
        self.field.focus()
        self._show_keys()

    def _close_field(self, *, keep: bool) -> None:
        search = self._search
        self._search = None
        self._labelling = None
        self.entry.display = False
        self.session_tree.focus()
        if search is not None and not keep:
            self.session_tree.show_hits("", None)
            self.session_tree.set_options(search.view, at=search.entry)
            self.session_tree.cursor = search.cursor
        self._show_head()
        self._show_keys()

    @work(thread=True, group="tree-ready")
    def _prepare_search(self, outline: Outline) -> None:
        for segment in outline.index.segments:
            outline.row_numbers(segment)

    @on(Input.Changed, "#tree-field")
    @work(exclusive=True, group="tree-search")
    async def _find_typed(self, event: Input.Changed) -> None:
        """Mark the entries that contain the typed text, and go to one of them.

        Goes to the first of them at or after the entry where the search began. An empty text
        removes the marks. Does nothing while a label is typed in the same field.
        """
        store = self._controller.services.store
        outline = self.session_tree.outline
        query = event.value.strip()
        hits = None
        if query and self._search is not None:  # otherwise, the text is a label
            hits = await asyncio.to_thread(
                lambda: Hits(outline, store.matching(query, self._session.id))
            )
        if self._search is not None and query == self.field.value.strip():
            self.session_tree.show_hits(query, hits)
            if hits is not None and self._search.entry is not None:
                self._go_to_hit(hits, self._search.entry, 0)
            self._show_head()

    @on(Input.Submitted, "#tree-field")
    def _field_submitted(self, event: Input.Submitted) -> None:
        if self._labelling is not None:
            self._session.label(self._labelling, event.value.strip() or None)
            self.reload()
        self._close_field(keep=bool(event.value.strip()))

    def action_hit(self, step: int) -> None:
        line = self.session_tree.line
        if self._labelling is not None:
            return
        if self.session_tree.hits is None:
            self.notice.say_briefly("Search with / first.")
        elif line is not None:
            self._go_to_hit(self.session_tree.hits, line.entry, step)

    def _go_to_hit(self, hits: Hits, entry_id: int, step: int) -> None:
        target = hit_from(hits, self.session_tree.outline, entry_id, step)
        if target is not None:
            self.session_tree.go_to_entry(target)

    # -- going

    @on(SessionTree.Chosen)
    def _chosen(self, message: SessionTree.Chosen) -> None:
        line = self.session_tree.line
        if line is not None and line.segment.is_beside:
            show_branch(self._controller, line.segment.last)
        elif not self._refuses():
            self._when_idle(
                partial(self._go, message.entry_id, continue_from_here=message.continue_from_here)
            )

    @work(group="tree-move", exclusive=True)
    async def _go(self, entry_id: int, *, continue_from_here: bool) -> None:
        """Move to another entry of the session tree.

        If necessary, first ask the user about a summary and about changed files.
        """
        agent = self._agent
        controller = self._controller
        plan = agent.navigator.plan(entry_id, continue_from_here=continue_from_here)
        focus: str | None = NO_SUMMARY
        if plan.asks and agent.ports.settings.compaction.branch_summaries == "ask":
            about = f"You leave {plural(len(plan.abandoned), 'entry')} behind. The tree keeps everything."
            focus = await self._ask_for_focus("Summarise this branch?", about, may_skip=True)
        if focus is None:
            return
        files = await files_along(controller, agent, plan.leaf)
        if files is None:
            return
        wanted = None
        if focus != NO_SUMMARY:
            wanted = focus
        # The notice is about the previous position in the tree, so clear it.
        controller.frontend.clear_notice()
        moved: list[str] = []

        async def move(progress: Callable[[str], None]) -> None:
            moved.append(await make_move(agent, plan, files, focus=wanted, progress=progress))

        if await self._summarise(move, shown=wanted is not None):
            self.dismiss()
            controller.frontend.files_changed()
            controller.frontend.restore_message(prompt_text(plan.prompt))
            if moved[0]:
                controller.say(f"Went to {name_of_place(plan.leaf)}, {moved[0]} · /undo returns")

    async def _ask_for_focus(
        self, question: str, about: str, *, may_skip: bool = False
    ) -> str | None:
        """Ask whether to summarise, and what the summary should focus on; return that focus.

        The focus is "" if the user enters none. Returns `NO_SUMMARY` if the user wants no summary
        (offered only with ``may_skip``), and None if the user cancels.
        """
        answers = []
        if may_skip:
            answers = [(NO_SUMMARY, "No summary")]
        answers += [("", "Summarise"), (FOCUS, "Summarise with focus…")]
        while (
            answer := await self._controller.ask(Choice(question, answers, about, numbered=True))
        ) == FOCUS:
            if (
                focus := await self._controller.ask(TextLine(KEEP_WHAT, self._focus, "summarise"))
            ) is not None:
                self._focus = focus
                return focus
        return answer

    async def _summarise(self, work: SummaryWork, *, shown: bool = True) -> bool:
        """Run ``work``, which summarises a branch. Return True if it succeeded.

        If it failed, shows a notice. With ``shown``, a dialog shows the summary as it is written;
        returns False if the user cancels it.
        """
        if shown:
            problem = await self.app.push_screen_wait(SummarisingScreen(work))
        else:
            problem = await _problem_of(work, lambda _piece: None)
        if problem:
            self.notice.say_briefly(problem)
        elif problem is not None:
            self._focus = ""
        return problem == ""

    @work(group="tree-move", exclusive=True)
    async def action_step(self, command: Literal["undo", "redo"]) -> None:
        leaf = self._session.leaf
        self._controller.frontend.clear_notice()
        step = undo if command == "undo" else redo
        await self._controller.attempt(step(self._controller, ""))
        if self._session.leaf != leaf:
            self.reload(at=self._session.leaf)

    # -- merging and forking

    def action_merge(self) -> None:
        line = self.session_tree.line
        if line is not None and line.active:
            self.notice.say_briefly(
                "This entry is on the current branch. Highlight another branch."
            )
        elif line is not None and not self._refuses():
            self._when_idle(partial(self._merge, line.segment.last))

    @work(group="tree-move", exclusive=True)
    async def _merge(self, tip: int) -> None:
        about = f"Adds a summary of the branch, up to #{tip}, where you are. You do not move."
        focus = await self._ask_for_focus("Merge this branch?", about)
        if focus is not None and await self._summarise(
            lambda progress: self._agent.navigator.merge(tip, focus=focus, progress=progress)
        ):
            self.reload(at=self._session.leaf)

    def action_fork(self) -> None:
        """Fork the session at the highlighted entry.

        If the entry is a message of the user, its text is put into the prompt of the fork.
        """
        if (line := self.session_tree.line) is not None:
            entry = line.entry
            self._when_idle(lambda: self._controller.soon(self._fork(entry)))

    async def _fork(self, entry_id: int) -> None:
        plan = self._agent.navigator.plan(entry_id)
        self.notice.say_briefly(COPYING)
        info = await asyncio.to_thread(
            self._controller.services.store.fork, self._session.id, plan.leaf
        )
        if self.is_current:
            self.dismiss()
        if await self._controller.open(OpenRequest(info.id)):
            self._controller.frontend.put_back(prompt_text(plan.prompt))
            self._controller.say(FORKED)

    def action_parent(self) -> None:
        self.dismiss()
        self._controller.begin("parent")

    def action_compact(self) -> None:
        from tui_agent.app.context_commands import compact_up_to

        line = self.session_tree.line
        if line is not None and line.active:
            self._controller.soon(compact_up_to(self._controller, line.entry))
        elif line is not None:
            self.notice.say_briefly("This entry is not on the current branch. Go to it first.")

    def _refuses(self) -> bool:
        """If the session is read-only, show a notice about it and return True."""
        if self._session.read_only:
            self.notice.say_briefly("This session is read-only. Press f to continue in a fork.")
        return self._session.read_only

    def _when_idle(self, act: Callable[[], object]) -> None:
        """Call ``act``. If the agent works, first offer to interrupt it."""
        if self._agent.running:
            self._controller.soon(self._offer_interrupt(act))
        else:
            act()

    async def _offer_interrupt(self, act: Callable[[], object]) -> None:
        answers = [("y", "yes, stop it and continue here"), ("n", "no, let it work")]
        asked = Choice(
            "The agent is working. Stop it?", answers, why="What it has done so far is saved."
        )
        if await self._controller.ask(asked) == "y":
            self._agent.interrupt()
            await self._agent.wait_idle()
            self.call_later(act)

    # -- looking and copying

    @work(group="tree-diff", exclusive=True)
    async def action_diff(self) -> None:
        if (line := self.session_tree.line) is None:
            return
        entry = line.entry
        if not self._agent.files.has_snapshots:
            self.notice.say_briefly(NOT_RECORDED)
        elif files := await self._agent.files.diff(entry):
            self._controller.show(DiffPage(f"Files from #{entry} to here", files))
        else:
            self.notice.say_briefly(
                "No file changes are recorded between this entry and where you are."
            )

    async def action_contexts(self) -> None:
        if (line := self.session_tree.line) is None:
            return
        if line.entry == self._session.leaf:
            self.notice.say_briefly("This is the current entry. Choose another one.")
        else:
            await self._controller.attempt(show_contexts(self._controller, [line.entry]))

    def action_subagent(self) -> None:
        """Open the page of the runner, race or subagent that belongs to the highlighted row.

        If there is none, show a notice.
        """
        line = self.session_tree.line
        entries = self._highlighted_entries()
        results = (entry for entry in entries if isinstance(entry, ToolResultEntry))
        race = next((entry for entry in entries if isinstance(entry, RaceEntry)), None)
        if line is not None and watch_at(self._controller, line.entry):
            return
        if race is not None:
            self._controller.show(RacePage(race))
        elif line is not None and line.segment.is_beside:
            show_branch(self._controller, line.segment.last)
        elif (
            worked := next((entry for entry in results if entry.metadata.of_subagent), None)
        ) is not None:
            show_subagent(self._controller, worked)
        else:
            self.notice.say_briefly("No subagent or runner worked here.")

    def _highlighted_entries(self) -> list[Entry]:
        headers = headers_of(self.session_tree.outline.index, self.session_tree.line)
        return list(self._session.entries([header.id for header in headers]))

    def action_race(self) -> None:
        if (line := self.session_tree.line) is not None and not self._refuses():
            self._controller.soon(race_commands.ask_for_race(self._controller, start=line.entry))

    def action_copy(self) -> None:
        if entries := self._highlighted_entries():
            blob = self._controller.services.store.blob
            texts = [sanitize.text(text) for entry in entries if (text := own_text(entry, blob))]
            self.app.copy_to_clipboard("\n\n".join(texts))

    @on(messages.ActionRequested)
    def _block_action(self, message: messages.ActionRequested) -> None:
        if message.action == "open":
            open_text(self._controller, self._session.entry(message.entry_id))


class SummarisingScreen(Dialog[str]):
    """Shows a summary while it is being written, when a branch is left or merged.

    The result is the reason for a failure, or "" on success. If Escape cancels the work, nothing
    changes and the result is None.
    """

    KEYS = "esc back, nothing changes"

    growing = getters.query_one("#growing", PlainText)

    def __init__(self, summarise: SummaryWork) -> None:
        super().__init__("Summarising …")
        self._summarise = summarise
        self._written: list[str] = []

    def body(self) -> ComposeResult:
        yield PlainText(id="growing")

    def on_mount(self) -> None:
        self.set_interval(PAINT_SECONDS, self._paint)
        self._do()

    @work(group="summary")
    async def _do(self) -> None:
        self.dismiss(await _problem_of(self._summarise, self._written.append))

    def _paint(self) -> None:
        lines = (
            sanitize.text("".join(self._written)[-4_000:]).strip().split("\n")[-MAX_SUMMARY_LINES:]
        )
        self.growing.update("\n".join(filter(None, lines)))

    def action_back(self) -> None:
        self.workers.cancel_node(self)
        self.dismiss(None)


async def _problem_of(work: SummaryWork, progress: Callable[[str], None]) -> str:
    """Run ``work``, which summarises a branch; return the reason if it fails, "" if it succeeds."""
    try:
        await work(progress)
    except (NavigationError, StoreError) as error:
        return str(error) or "The summary failed."
    return ""


def facts_of_tree(tree: SessionTree) -> list[str]:
    index = tree.outline.index
    facts = []
    if (hits := tree.hits) is not None:
        if hits.hidden:
            hidden = f", {hits.hidden:,} hidden by the filter"
        else:
            hidden = ""
        facts.append(f"{plural(hits.total, 'match') if hits.total else 'nothing found'}{hidden}")
    if tree.view.filter is not Filter.DEFAULT:
        facts.append(f"showing {tree.view.filter}")
    if index.leaf is None and index.headers:
        facts.append("at the beginning, before the first message")
    facts.append(plural(len(index.headers), "entry"))
    facts.append(plural(max(index.branches(tree.has_failed), 1), "branch"))
    facts.append(f"{tokens(sum(root.tokens for root in index.roots))} tokens")
    if cost := sum(root.cost for root in index.roots):
        facts.append(money(cost))
    return facts
