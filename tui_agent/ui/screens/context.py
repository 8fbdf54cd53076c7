"""The context map page: shows every block of a request, and edits what the model sees.

The timeline above the map plots the size of each request on the session path (from the root of the
session tree to the current entry). Its cursor chooses the request that the map shows. Only the next
request can be edited: the page asks first and shows the cost (`tui_agent.app.edit_cost`), then the
agent makes the edit.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Literal

from textual import events, getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container
from textual.content import Content
from textual.widget import Widget

from tui_agent.agent.agent import Agent
from tui_agent.agent.context_map import ContextMap, MapChange, change_between
from tui_agent.agent.events import AgentEvent, CompactionEnded, EntryAppended, LeafMoved, RunEnded
from tui_agent.agent.navigator import NavigationError
from tui_agent.app import context_text, edit_cost, timeline_text
from tui_agent.app.context_commands import cost_of, edit_block, edit_summary
from tui_agent.app.edit_cost import Edit, EditAction
from tui_agent.app.format import plural
from tui_agent.app.frontend import Output, Report, TreePage
from tui_agent.app.race_commands import ask_for_race
from tui_agent.errors import CommandError
from tui_agent.session.entries import ContextEditEntry
from tui_agent.session.errors import StoreError
from tui_agent.ui.bindings import hidden
from tui_agent.ui.later import Later
from tui_agent.ui.screens.page import FramedPage
from tui_agent.ui.widgets.block_list import HEAD, REST, BlockList
from tui_agent.ui.widgets.gauge import Gauge, GaugeReading
from tui_agent.ui.widgets.line_list import LineList
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.plot import Plot
from tui_agent.ui.widgets.transcript import sanitize

if TYPE_CHECKING:
    from tui_agent.agent.timeline import Step
    from tui_agent.app.controller import Controller
    from tui_agent.context.request import ModelRequest

_CHARS_PER_CELL = 2

REST_SECONDS = 0.08
"""Seconds after which the map shows the request under the timeline's cursor, if the cursor has not
moved again."""

REDRAW_SECONDS = 0.5
"""Minimum time between an event and the redrawing of the timeline, in seconds. If drawing is slow,
the time is nine times as long as the last drawing took."""

MAX_CACHED_MAPS = 8
"""Maximum number of cached context maps of sent requests. The cache makes it fast to step back and
forth between requests."""

KEYS = (
    "p pin  x hide  m clear  e edit  b bring back  u undo  tab timeline  v order  V group  space mark  r race"
    "  enter read  o whole  ? keys  esc back"
)
TIMELINE_KEYS = "←→ step  enter open in the tree  end next request  tab blocks  ? keys  esc back"
NEXT_KEYS = "←→ step  enter open in the tree  tab blocks  ? keys  esc back"
ALL_KEYS = """enter       read the block; unfold or fold the group
← →         fold, unfold
p           pin: never cleared, and kept verbatim by a compaction
x           hide from the model (a tool result together with its call)
m           clear: replace with a one-line placeholder
e           edit: send your text in its place, from the next request on
b           bring back: send it unchanged again
u           undo the last edit
space       mark or unmark a block
r           race the next answer with and without the marked blocks
v           order: as in the request, largest first, newest first
V           group: none, by kind, by tool, by file
o           show the whole request as JSON
ctrl+o      show the conversation as the model sees it, or all of it
[ ]         show the map of the previous or the next request
tab         go to the timeline, and back
esc q       back

●           in the provider's cache since the last request
○           not in the cache: the next request reads it at full price

On the timeline
←→          one step back or forward; home and end: the first and the next request
shift+←→    go to the previous or the next mark
ctrl+←→     a tenth of the session back or forward
enter       go to that request in the tree

◆           the history was summarised before this step
◇           old outputs were cleared before this step
↩           the session continued from an earlier entry
×           much of the request was not in the provider's cache
•           the context was edited
"""
ANSWER_FIRST = "The agent is waiting for your answer. You can undo an edit when the agent is done."
WORK_FIRST = "The agent is working. You can undo an edit when it is done."
OVERTAKEN = (
    "The conversation has continued since the last edit, so it can't be undone. Press b to"
    " bring back the block under the cursor."
)
PAST = "This request was already sent. Press end to change the next one."
NOTHING = "Nothing yet. The first message adds the system prompt and the tools."


class BlockPreview(Widget):
    """Shows a line of facts about the block under the cursor, and as much of its text as fits."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"block-preview--facts"}

    def __init__(self) -> None:
        super().__init__()
        self._facts = ""
        self._text = ""

    def show(self, facts: str, text: str) -> None:
        self._facts = sanitize.line(facts)
        self._text = text
        self.refresh()

    def render(self) -> Content:
        room = self.size.width * self.size.height * _CHARS_PER_CELL
        text = sanitize.output(self._text[:room]).expandtabs(4)
        lines = text.split("\n")[: self.size.height]
        facts = Content.styled(self._facts, ".block-preview--facts")
        return Content("\n").join(
            [facts.truncate(self.size.width, ellipsis=True), Content("\n".join(lines))]
        )


class ContextScreen(FramedPage[None]):
    """The page that shows an agent's context map and timeline. It is updated while it is open."""

    HEADING = "Context of the next request"
    KEYS = KEYS
    LAST_KEYS = 2
    AUTO_FOCUS = None
    BINDINGS = [
        hidden("ctrl+g", "dismiss(None)", "close", id="context.close"),
        Binding("p", "edit('pin')", "pin", id="context.pin"),
        Binding("x,delete", "edit('drop')", "hide", id="context.drop"),
        Binding("m", "edit('mask')", "clear", id="context.mask"),
        Binding("e", "edit_content", "edit", id="context.edit"),
        Binding("b", "edit('restore')", "bring back", id="context.restore"),
        Binding("u", "undo", "undo", id="context.undo"),
        Binding("r", "race", "race", id="context.race"),
        Binding("v", "arrange('order')", "sort", id="context.sort"),
        Binding("V", "arrange('grouping')", "group", id="context.group"),
        Binding("o", "request", "json", id="context.json"),
        Binding("left_square_bracket", "step(-1)", "previous request", id="context.step_back"),
        Binding("right_square_bracket", "step(1)", "next request", id="context.step_on"),
        hidden("ctrl+o", "view", "what the model sees", id="context.view"),
        hidden("question_mark,f1", "keys", "keys", id="context.keys"),
    ]

    plot = getters.query_one(Plot)
    legend = getters.query_one("#legend", PlainText)
    blocks = getters.query_one(BlockList)
    preview = getters.query_one(BlockPreview)
    gauge = getters.query_one(Gauge)
    line = getters.query_one("#line", PlainText)

    def __init__(self, controller: Controller, agent: Agent) -> None:
        super().__init__()
        self._controller = controller
        self._agent = agent
        self._cache_miss_cost = controller.services.cache_miss_cost
        self.steps: list[Step] = []
        self._at_next = True
        self._maps: dict[Step, ContextMap] = {}
        self._following = Later(self, self._follow)
        self._drawing = Later(self, self._draw_timeline)
        self._redrawing_map = Later(self, self._draw_map)
        self._pause = REDRAW_SECONDS
        self._asking: Edit | None = None
        self._line_is_for = 0
        self._request: ModelRequest | None = None

    def body(self) -> ComposeResult:
        yield Plot()
        yield PlainText(id="legend")
        yield Gauge()
        yield Container(id="parts")
        yield PlainText(id="line")

    async def on_mount(self) -> None:
        # Mount these here, because `compose` might add a container's children only after
        # `on_mount`.
        await self.query_exactly_one("#parts").mount(BlockList(), BlockPreview())
        self.when_left(self._agent.channel.subscribe(self._agent_said))
        self._draw_map()
        self.blocks.focus()
        self._draw_timeline()

    # -- display

    def _agent_said(self, event: AgentEvent) -> None:
        if not isinstance(event, EntryAppended | LeafMoved | RunEnded | CompactionEnded):
            return
        self._drawing.after(self._pause)
        if self._at_next:
            self._redrawing_map.after_refresh()

    @property
    def is_drawn(self) -> bool:
        """Whether no redrawing of the timeline or of a sent request's map is scheduled."""
        return not (self._drawing.is_waiting or self._following.is_waiting)

    def _draw_map(self) -> None:
        # After an edit on this page, the map is drawn at once, so the agent's event need not draw
        # it again.
        self._redrawing_map.stop()
        self._request = None
        if not self.is_attached or not self._at_next:
            return
        ahead = self._agent.inspector
        context = self._agent.context
        shown = ahead.map()
        self.gauge.reading = GaugeReading(shown.size, shares=shown.shares)
        sent = context.sent is not None
        facts = [
            context_text.next_words(context.cache_state(), shown, ahead.prefix_break(), sent=sent)
        ]
        if (miss := context.watch.miss) is not None:
            dollars = self._cache_miss_cost(self._agent.model, miss.missed)
            facts.append(f"Last request: {context_text.miss_words(miss, dollars)}")
        if room := ahead.room_made().sentence:
            facts.append(room)
        if not any(block.origin for block in shown.blocks):
            facts = [NOTHING]
        self.show_facts("\n".join(facts))
        self._say("")
        self.blocks.show(shown)

    # -- the timeline

    @work(exclusive=True, group="timeline")
    async def _draw_timeline(self) -> None:
        """Plot all requests on the session path; keep the cursor on its step if that still exists.

        If it doesn't exist any more, the cursor moves to the last step.
        """
        start = perf_counter()
        steps = await self._agent.inspector.timeline()
        self._pause = max(REDRAW_SECONDS, 9 * (perf_counter() - start))
        kept = None
        if self._step is not None and not self._at_next:
            kept = self._step.answer
        self.steps = steps
        at = next((at for at, step in enumerate(steps) if step.answer == kept), len(steps) - 1)
        self.plot.show(timeline_text.series_of(steps), cursor=at)
        self.legend.update(timeline_text.legend(steps))

    @property
    def _step(self) -> Step | None:
        at = self.plot.cursor
        if at < len(self.steps):
            return self.steps[at]
        return None

    @on(Plot.Highlighted)
    def _step_highlighted(self, message: Plot.Highlighted) -> None:
        if (step := self._step) is None:
            return
        was_next = self._at_next
        self._at_next = step.answer is None
        self._show_keys()
        self.heading.update(timeline_text.heading(self.steps, message.index))
        if self._at_next:
            if not was_next:
                self._draw_map()
        else:
            self._following.debounce(REST_SECONDS)

    @work(exclusive=True, group="follow")
    async def _follow(self) -> None:
        """Show the sent request under the timeline's cursor, and its changes since the one before.

        Does nothing for the next request, which has not been sent.
        """
        step = self._step
        at = self.plot.cursor
        if step is None or step.answer is None:
            return
        shown = await self._map_of(step)
        change = MapChange()
        if at:
            change = change_between(await self._map_of(self.steps[at - 1]), shown)
        if step is not self._step:
            return
        dollars = None
        if step.miss is not None:
            dollars = self._cache_miss_cost(step.model, step.miss.missed)
        facts = []
        if at:
            facts = [timeline_text.change_words(change)]
        facts += timeline_text.step_words(step, dollars)
        self._request = None
        self.gauge.reading = GaugeReading(shown.size)
        self.show_facts("\n".join(facts))
        self._say("")
        self.blocks.show(shown, change.came)

    async def _map_of(self, step: Step) -> ContextMap:
        """Return the context map of a sent request. Caches the last `MAX_CACHED_MAPS` maps."""
        if step not in self._maps:
            self._maps[step] = await self._agent.inspector.map_of(step)
            if len(self._maps) > MAX_CACHED_MAPS:
                self._maps.pop(next(iter(self._maps)))
        return self._maps[step]

    def action_step(self, steps: int) -> None:
        self.plot.action_move(steps)

    @on(Plot.Chosen)
    def _step_chosen(self) -> None:
        step = self._step
        if step is None:
            target = None
        elif step.answer is None:
            target = step.leaf
        else:
            target = step.answer
        if target is not None:
            self._controller.show(TreePage(target))

    @on(events.DescendantFocus)
    def _focus_moved(self) -> None:
        self._show_keys()

    def _show_keys(self) -> None:
        if not self.plot.has_focus:
            self.keys.show(KEYS)
        elif self._at_next:
            self.keys.show(NEXT_KEYS)
        else:
            self.keys.show(TIMELINE_KEYS)

    def _say(self, text: str, *, asks: bool = False) -> None:
        listed = self.blocks
        text = text or f"order: {listed.order} · groups: {listed.grouping}"
        self._line_is_for = listed.cursor
        self.line.update(text)
        self.line.set_class(asks, "-asking")

    @on(LineList.Highlighted)
    def _highlighted(self) -> None:
        if self._asking is not None or self.blocks.cursor != self._line_is_for:
            self._asking = None
            self._say("")
        block = self.blocks.block
        group = self.blocks.group
        if block is not None:
            self.preview.show(context_text.block_facts(block), self._text_of_block())
        elif group is not None and group.name == REST:
            self.preview.show(REST, context_text.REST_WORDS)
        elif group is not None:
            about = "An action here applies to all of them."
            if group.name == HEAD:
                about = context_text.HEAD_WORDS
            self.preview.show(f"{group.name}: {plural(len(group.places), 'block')}", about)
        else:
            self.preview.show("", "")

    def _text_of_block(self) -> str:
        block = self.blocks.block
        if block is None:
            return ""
        if self._request is None:
            self._request = self._request_shown()
        if block.origin:
            entry = self._agent.session.entry(block.origin[0])
        else:
            entry = None
        return context_text.block_text(block, self._request, entry)

    def _request_shown(self) -> ModelRequest:
        step = self._step
        inspector = self._agent.inspector
        if step is None or step.answer is None:
            return inspector.next_request()
        return inspector.request_of(step)

    # -- keys

    def action_back(self) -> None:
        if self._asking is None:
            self.dismiss(None)
        else:
            self._asking = None
            self._say("")

    def action_arrange(self, by: Literal["order", "grouping"]) -> None:
        self.blocks.arrange_by_next(by)
        self._say("")

    def action_request(self) -> None:
        request = self._request_shown()
        self._controller.show(
            Output(f"Request to {request.model}", context_text.request_json(request))
        )

    def action_view(self) -> None:
        self.dismiss(None)
        self._controller.begin("view")

    def action_keys(self) -> None:
        self._controller.show(Report("Keys of the context map", ALL_KEYS.splitlines()))

    @on(LineList.Chosen)
    def _chosen(self) -> None:
        if self._asking is not None:
            self.action_confirm()
        elif (group := self.blocks.group) is not None:
            self.blocks.action_fold(not group.folded)
        elif (block := self.blocks.block) is not None:
            self._controller.show(Output(context_text.block_facts(block), self._text_of_block()))

    # -- edits

    def action_edit(self, action: EditAction) -> None:
        shown = self.blocks.shown
        if shown is not None and self.blocks.group is not None and self.blocks.group.name == REST:
            self._say(context_text.REST_WORDS)
            return
        if shown is None or not self.blocks.places or self._refuses():
            return
        places = self.blocks.places
        if action == "pin" and all(shown.blocks[place].state == "pinned" for place in places):
            action = "restore"
        edit = edit_cost.plan_edit(shown.blocks, places, action)
        if isinstance(edit, str):
            self._asking = None
            self._say(edit)
            return
        warm, dollars = cost_of(self._controller, edit)
        question = edit_cost.question(edit, warm=warm, dollars=dollars)
        self._asking = edit
        self._say(f"{question}  enter yes · esc no", asks=True)

    def _refuses(self) -> bool:
        """If the shown request or the session can't be changed, say why and return True."""
        if not self._at_next:
            self._say(PAST)
        elif self._agent.session.read_only:
            self._say("This session is read-only. Use /fork to continue in a copy.")
        else:
            return False
        return True

    @work
    async def action_edit_content(self) -> None:
        block = self.blocks.block
        if block is None or self._refuses():
            return
        if block.is_head:
            self._say(edit_cost.FIXED)
            return
        try:
            if block.kind == "compaction":
                await edit_summary(self._controller, block.origin[0])
                return
            done = await edit_block(self._controller, block.origin[0])
        except (CommandError, StoreError) as error:
            self._say(str(error))
            return
        if done:
            self._draw_map()
            self._say(f"{done} Press u to undo it.")

    def action_race(self) -> None:
        shown = self.blocks.shown
        if shown is None or not self._at_next:
            self._say(PAST)
            return
        edit = edit_cost.plan_edit(
            shown.blocks, self.blocks.marked_places or self.blocks.places, "drop"
        )
        if isinstance(edit, str):
            self._say(edit)
        elif self._agent.running:
            self._say("The agent is working. Start the race when it is idle.")
        else:
            self.dismiss(None)
            draft = self._controller.frontend.draft.strip()
            self._controller.soon(ask_for_race(self._controller, draft, leaving_out=edit.targets))

    def action_confirm(self) -> None:
        edit = self._asking
        self._asking = None
        if edit is None:
            return
        try:
            first, *others = edit.targets
            self._agent.edit_context(first, edit.action, *others)
        except StoreError as error:
            self._say(error.message)
            return
        self._draw_map()
        if self._agent.running:
            self._say("The agent is working. The edit applies before its next step.")
        else:
            self._say(f"{edit_cost.done(edit)} Press u to undo it.")

    async def action_undo(self) -> None:
        """Undo the last edit if no entry followed it.

        If an edit waits for the user's confirmation, cancels that edit instead. If nothing can be
        undone, or while the agent works, shows why.
        """
        if self._asking is not None:
            self._asking = None
            self._say("Nothing was changed.")
            return
        if self._agent.running:
            waits = self._agent.questions.open is not None
            self._say(ANSWER_FIRST if waits else WORK_FIRST)
            return
        session = self._agent.session
        step = session.history.newest()
        newest = None
        if step is not None and step.entry is not None:
            newest = session.entry(step.entry)
        if not isinstance(newest, ContextEditEntry):
            edited = "context_edit" in session.path_outline().kinds
            self._say(OVERTAKEN if edited else "There is no edit to undo.")
            return
        try:
            await self._agent.navigator.undo()
        except (NavigationError, StoreError) as error:
            self._say(str(error))
            return
        self._draw_map()
        self._say("Undone.")
