"""The context map: every block of the next request, what it costs, and changing what the model sees of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.widgets import Static

from tui_agent.agent.agent import Agent
from tui_agent.agent.events import AgentEvent, CompactionEnded, EntryAppended, LeafMoved, RunEnded
from tui_agent.agent.navigator import NavigationError
from tui_agent.app import context_words, edit_price
from tui_agent.app.edit_price import Edit, EditAction
from tui_agent.app.format import plural
from tui_agent.session.entries import ContextEditEntry
from tui_agent.session.errors import StoreError
from tui_agent.ui.screens.leaving import PageScreen
from tui_agent.ui.widgets.context_map.arrange import HEAD, Grouping, SortOrder
from tui_agent.ui.widgets.context_map.block_list import BlockList
from tui_agent.ui.widgets.context_map.preview import BlockPreview
from tui_agent.ui.widgets.gauge import Gauge, GaugeReading
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.line_list import LineList

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.context.request import ModelRequest

MemberT = TypeVar("MemberT", bound=StrEnum)

KEYS = "p pin  d drop  m mask  r restore  u undo  s sort  g group  enter read  j json  ? keys  esc back"
ALL_KEYS = """enter       read the block; open or fold what is gathered under a heading
← →         fold, unfold
p           pin: pruning leaves it, a compaction carries it verbatim
d           drop it from the request (a result with its call)
m           mask: a placeholder of one line stands for it
r           restore it as it is
u           undo the last edit
s           sort: as in the request, largest first, newest first
g           group: not, by kind, by tool, by file
j           the whole request as JSON
esc q       back

●           the provider remembers it from the last request
○           it is read anew with the next one
"""
ANSWER_FIRST = "The agent waits for an answer: an edit can be undone when it is done."
OVERTAKEN = "The conversation went on since the last edit: r restores the block under the cursor."
NOTHING = "Nothing yet: the first message brings the prompt and the tools into the window."


@dataclass(frozen=True, slots=True)
class EditsMade:
    """Edits made together here: the leaf before and after them."""

    before: int | None
    after: int | None


class ContextScreen(PageScreen[None]):
    """Shows the next request of an agent block by block. Follows the agent while it is open."""

    AUTO_FOCUS = None
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - as inherited
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (22, "-low"), (28, "-normal"), (32, "-tall")]  # noqa: RUF012 - as inherited
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "back", "back", show=False),
        Binding("q,ctrl+g", "dismiss(None)", "close", show=False),
        Binding("y", "confirm", "yes", show=False),
        Binding("p", "edit('pin')", "pin", id="context.pin"),
        Binding("d,delete", "edit('drop')", "drop", id="context.drop"),
        Binding("m", "edit('mask')", "mask", id="context.mask"),
        Binding("r", "edit('restore')", "restore", id="context.restore"),
        Binding("u", "undo", "undo", id="context.undo"),
        Binding("s", "sort", "sort", id="context.sort"),
        Binding("g", "group", "group", id="context.group"),
        Binding("j", "request", "json", id="context.json"),
        Binding("question_mark,f1", "keys", "keys", show=False),
    ]

    blocks = getters.query_one(BlockList)
    preview = getters.query_one(BlockPreview)
    gauge = getters.query_one(Gauge)
    facts = getters.query_one("#facts", Static)
    line = getters.query_one("#line", Static)

    def __init__(self, agent: Agent, reread_cost: Callable[[str, int], float | None]) -> None:
        super().__init__()
        self._agent = agent
        self._reread_cost = reread_cost
        self._asking: Edit | None = None
        self._said_at = 0
        self._made: list[EditsMade] = []
        self._request: ModelRequest | None = None
        self._stale = False
        self._unsubscribe: Callable[[], None] | None = None

    def compose(self) -> ComposeResult:
        """Heading, gauge, facts, the list beside or over its preview, a line for questions, keys."""
        yield Static("Context of the next request", id="heading", markup=False)
        yield Gauge()
        yield Static("", id="facts", markup=False)
        yield Container(id="parts")
        yield Static("", id="line", markup=False)
        yield KeyLine(KEYS, keep=2, id="keys")

    async def on_mount(self) -> None:
        """Look, and look again whenever something happens to the session."""
        # What a container composes may come later than this; what is mounted here is there.
        await self.query_exactly_one("#parts").mount(BlockList(), BlockPreview())
        self._unsubscribe = self._agent.subscribe(self._agent_said)
        self._look()
        self.blocks.focus()

    def on_unmount(self) -> None:
        """Stop listening."""
        if self._unsubscribe is not None:
            self._unsubscribe()

    # -- what is shown

    def _agent_said(self, event: AgentEvent) -> None:
        if isinstance(event, EntryAppended | LeafMoved | RunEnded | CompactionEnded) and not self._stale:
            self._stale = True
            self.call_after_refresh(self._look)

    def _look(self) -> None:
        """Show the next request as it is now."""
        self._stale = False
        self._request = None
        if not self.is_attached:
            return
        ahead = self._agent.inspector
        shown = ahead.map()
        self.gauge.reading = GaugeReading(shown.size)
        sent = ahead.last_request is not None
        facts = [*context_words.drift_words(shown)]
        facts.append(context_words.next_words(ahead.cache_state(), shown, ahead.prefix_break(), sent=sent))
        if (miss := ahead.cache_miss) is not None:
            facts.append(
                f"Last request: {context_words.miss_words(miss, self._reread_cost(self._agent.model, miss.missed))}"
            )
        facts += filter(None, [ahead.room_made().sentence])
        self.facts.update("\n".join(facts) if any(block.origin for block in shown.blocks) else NOTHING)
        self._say("")
        self.blocks.show(shown)

    def _say(self, text: str, *, asks: bool = False) -> None:
        listed = self.blocks
        text = text or f"Sorted: {listed.order}. {listed.grouping.capitalize()}."
        self._said_at = listed.cursor
        self.line.update(text)
        self.line.set_class(asks, "-asking")

    @on(LineList.Highlighted)
    def _highlighted(self, message: LineList.Highlighted) -> None:
        message.stop()
        if self._asking is not None or self.blocks.cursor != self._said_at:
            self._asking = None
            self._say("")
        block = self.blocks.block
        group = self.blocks.group
        if block is not None:
            self.preview.show(context_words.facts_of(block), self._text_of_block())
        elif group is not None and group.name == HEAD:
            self.preview.show(f"{HEAD}: {plural(len(group.places), 'block')}", context_words.HEAD_WORDS)
        elif group is not None:
            self.preview.show(f"{group.name}: {len(group.places)} blocks", "An action here is for all of them.")
        else:
            self.preview.show("", "")

    def _text_of_block(self) -> str:
        block = self.blocks.block
        if block is None:
            return ""
        if self._request is None:
            self._request = self._agent.inspector.next_request()
        entry = self._agent.session.entry(block.origin[0]) if block.origin else None
        return context_words.text_of(block, self._request, entry)

    # -- keys

    def action_back(self) -> None:
        """Withdraw the question, or go back when none is asked."""
        if self._asking is None:
            self.dismiss(None)
        else:
            self._asking = None
            self._say("")

    def action_sort(self) -> None:
        """Use the next order."""
        self.blocks.sort_by(_following(SortOrder, self.blocks.order))
        self._say("")

    def action_group(self) -> None:
        """Use the next grouping."""
        self.blocks.group_by(_following(Grouping, self.blocks.grouping))
        self._say("")

    def action_request(self) -> None:
        """Show the request as it would go out."""
        from tui_agent.ui.screens.viewer import ViewerScreen

        request = self._agent.inspector.next_request()
        self.app.push_screen(ViewerScreen(f"Request to {request.model}", context_words.request_json(request)))

    def action_keys(self) -> None:
        """Show all keys, and what the marks mean."""
        from tui_agent.ui.screens.report import ReportScreen

        self.app.push_screen(ReportScreen("Keys of the context map", Content(ALL_KEYS)))

    @on(LineList.Chosen)
    def _chosen(self, message: LineList.Chosen) -> None:
        message.stop()
        if self._asking is not None:
            self.action_confirm()
        elif (group := self.blocks.group) is not None:
            self.blocks.action_fold(not group.folded)
        elif (block := self.blocks.block) is not None:
            from tui_agent.ui.screens.viewer import ViewerScreen

            self.app.push_screen(ViewerScreen(context_words.facts_of(block), self._text_of_block()))

    # -- edits

    def action_edit(self, action: EditAction) -> None:
        """Ask, with the price, before the blocks under the cursor are changed."""
        shown = self.blocks.shown
        if shown is None or not self.blocks.places:
            return
        if self._agent.session.read_only:
            self._say("This session is read-only: /fork continues in a copy.")
            return
        places = self.blocks.places
        if action == "pin" and all(shown.blocks[place].state == "pinned" for place in places):
            action = "restore"
        edit = edit_price.plan_edit(shown.blocks, places, action)
        if isinstance(edit, str):
            self._asking = None
            self._say(edit)
            return
        warm = self._agent.inspector.cache_state().warm
        dollars = self._reread_cost(self._agent.model, edit.reread) if warm and edit.reread else None
        self._asking = edit
        self._say(f"{edit_price.question(edit, warm=warm, dollars=dollars)}  y yes", asks=True)

    def action_confirm(self) -> None:
        """Make the edit that was asked about."""
        edit, self._asking = self._asking, None
        if edit is None:
            return
        before = self._agent.session.leaf
        try:
            for target in edit.targets:
                self._agent.edit_context(target, edit.action)
        except StoreError as error:
            self._say(error.message)
            return
        self._look()
        if self._agent.running:
            self._say("The agent is working: this happens before its next step.")
        else:
            self._made.append(EditsMade(before, self._agent.session.leaf))
            self._say(f"{edit_price.done(edit)} u undoes it.")

    async def action_undo(self) -> None:
        """Take back the last edit, by moving to before it; while a question is asked, withdraw that."""
        if self._asking is not None:
            self._asking = None
            self._say("Nothing was changed.")
            return
        if self._agent.running:
            waits = self._agent.question is not None
            self._say(ANSWER_FIRST if waits else "The agent is working: an edit can be undone when it is done.")
            return
        session = self._agent.session
        target: int | None
        if self._made and self._made[-1].after == session.leaf:
            target = self._made.pop().before
        elif session.leaf is not None and isinstance(last := session.entry(session.leaf), ContextEditEntry):
            target = last.parent_id
        else:
            edited = "context_edit" in session.path_outline().kinds
            self._say(OVERTAKEN if edited else "There is no edit to undo.")
            return
        try:
            await self._agent.navigator.go(target)
        except (NavigationError, StoreError) as error:
            self._say(str(error))
            return
        self._look()
        self._say("Undone.")


def _following(members: type[MemberT], current: MemberT) -> MemberT:
    """Return the member after the current one, the first after the last."""
    found = list(members)
    return found[(found.index(current) + 1) % len(found)]
