"""The compaction dialog: shows the plan and the new summary, which the user can edit and apply.

The dialog keeps the boundary (the entry before which the history is summarised), the draft and the
edited text. The agent's compactor does the rest: it plans the compaction, has a model write the
summary, computes the effect, commits, and keeps a prepared summary, which the dialog edits in
place.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from textual import getters, on, work
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Input, TextArea

from tui_agent.agent.events import AgentEvent, CompactionEnded, CompactionProgress, RunEnded
from tui_agent.app import context_plan_text
from tui_agent.app.format import plural
from tui_agent.app.frontend import Choice
from tui_agent.app.intent import CommandIntent, parse
from tui_agent.app.model_commands import ask_for_model
from tui_agent.context.commit_plan import Commit
from tui_agent.context.compaction import Refusal
from tui_agent.context.summariser import SummaryFailure
from tui_agent.session.entries import Usage
from tui_agent.session.errors import StoreError
from tui_agent.ui.bindings import hidden
from tui_agent.ui.later import Later
from tui_agent.ui.screens.dialogs import Dialog
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.two_columns import HangingText

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.compaction_drafts import CompactionOrder, Draft
    from tui_agent.app.controller import Controller
    from tui_agent.context.compaction import Boundary

FLUSH_SECONDS = 0.15
"""Seconds between updates of the summary that is being written."""
WEIGH_SECONDS = 0.4
"""Seconds without an edit of the summary after which its effect is computed again."""
OUTDATED = "The conversation has continued without this summary, so it will not be used."
WORKING = "The agent is working. Nothing was changed; compact when it is done."
COMMAND_TYPED = (
    "This is a command. Escape goes back and puts it into the prompt; Enter makes the summary focus"
    " on this text."
)
KEYS = {
    "plan": "enter summarise  ↑/↓ end earlier/later  pgup/pgdn by a turn  esc back",
    "writing": "esc stop",
    "edit": "ctrl+s apply  esc back",
    "waiting": "ctrl+s apply after this step  ctrl+n not now  esc back, keeping your changes",
    "refused": "esc back",
    "failed": "enter try again  e edit  m other model  p prune  esc leave it",
}
"""The line of keys at the bottom of the dialog, by phase."""
AFTER_FAILURE = """\
No summary was written. You can
enter  ask {model} again
e      edit a list of what happened, made without a model, and use it as the summary
m      have another model write this summary
p      only clear old outputs, without a summary (/prune)
esc    leave the history as it is"""
"""Template of the text that lists the user's choices after a failure. ``{model}`` stands for the
model that failed to write the summary."""


class CompactPhase(StrEnum):
    """The phases that the compaction dialog goes through."""

    PLAN = "plan"
    WRITING = "writing"
    EDIT = "edit"
    WAITING = "waiting"
    """The user edits a summary that was prepared in advance, while the agent works and may apply
    that summary at any time."""
    REFUSED = "refused"
    FAILED = "failed"
    """The model did not write a usable summary."""


class CompactScreen(Dialog[None]):
    """The compaction dialog: plans a compaction, has a summary written and applies it.

    Only applying the compaction changes the session.
    """

    AUTO_FOCUS = None
    BINDINGS = [
        hidden("enter", "summarise", "summarise"),
        hidden("up", "boundary(-1)", "end earlier"),
        hidden("down", "boundary(1)", "end later"),
        hidden("pageup", "boundary(-1, True)", "end a turn earlier"),
        hidden("pagedown", "boundary(1, True)", "end a turn later"),
        hidden("ctrl+s,f4", "apply", "apply", priority=True),
        hidden("ctrl+n", "put_off", "not now", priority=True),
        hidden("e", "edit_list", "edit a list made without a model"),
        hidden("m", "other_model", "have another model write it"),
        hidden("p", "prune", "only clear old outputs"),
    ]

    heading = getters.query_one("#compact-heading", PlainText)
    field = getters.query_one(Input)
    stream = getters.query_one("#stream", PlainText)
    scroll = getters.query_one(VerticalScroll)
    editor = getters.query_one(TextArea)
    line = getters.query_one("#line", PlainText)

    def __init__(self, controller: Controller, agent: Agent, boundary: int | None = None) -> None:
        """Create the dialog. The part to summarise ends before the entry with the id ``boundary``.

        If that is None, the compactor chooses the entry.
        """
        super().__init__("Compact the history")
        self._controller = controller
        self._agent = agent
        self.boundary = boundary
        self._boundaries: list[Boundary] = []
        self.ends_before: int | None = boundary
        self._proposed_end: int | None = None
        self.phase = CompactPhase.PLAN
        self._refusal: Refusal | None = None
        self._draft: Draft | None = None
        self._written: list[str] = []
        self._asked_about = ""
        """The command about which the user was last asked (see `_asks_about_command`)."""
        self._writer = ""
        """The model that the user chose to write the summary; "" for the model in the settings."""
        self._showing = Later(self, self._flush)
        self._weighing = Later(self, self._weigh)

    def body(self) -> ComposeResult:
        yield HangingText(id="compact-heading")
        yield Input(placeholder="What matters most? (optional)", id="focus", compact=True)
        with VerticalScroll(can_focus=False):
            yield PlainText(id="stream")
        yield TextArea(id="summary", soft_wrap=True, show_line_numbers=False, tab_behavior="focus")
        yield PlainText(id="line")

    def on_mount(self) -> None:
        self.when_left(self._agent.channel.subscribe(self._agent_said))
        # Wait for a refresh, because the dialog's inner containers may not have been composed yet.
        self.call_after_refresh(self.run_worker, self._plan(), group="plan", exclusive=True)

    async def _plan(self) -> None:
        """Show the summary prepared in advance, if any; otherwise, the compaction's plan."""
        compactor = self._agent.context.compactor
        order = self._agent.context.order("manual", boundary=self.boundary)
        prepared = await compactor.prepared.draft(order)
        if prepared is None:
            forecast = None
        else:
            forecast = await compactor.forecast(prepared.plan, order)
        if prepared is not None and isinstance(forecast, Commit):
            self.heading.update(context_plan_text.compaction_text(prepared.plan, forecast))
            self._edit(prepared)
        self._boundaries = await compactor.boundaries(self._agent.model)
        if self._draft is None:
            await self._show_plan()

    async def _show_plan(self) -> None:
        compactor = self._agent.context.compactor
        order = self._agent.context.order("manual", boundary=self.boundary)
        plan = await compactor.plan(order)
        if isinstance(plan, Refusal):
            self._refuse(plan)
            return
        self.ends_before = next((entry.id for entry in plan.kept if entry.is_sent), None)
        if self.boundary is None:
            self._proposed_end = self.ends_before
        forecast = await compactor.forecast(plan, order)
        if isinstance(forecast, Refusal):
            self._refuse(forecast)
        else:
            model = plan.settings.compaction.model or self._agent.model
            dollars = self._controller.services.price(
                model, Usage(input=plan.tokens_summarised, output=plan.summary_tokens)
            )
            self.heading.update(context_plan_text.compaction_text(plan, forecast, dollars))
            if self.phase is not CompactPhase.PLAN or not self.has_class(f"-{CompactPhase.PLAN}"):
                self._enter(CompactPhase.PLAN)

    def action_boundary(self, step: int, by_turn: bool = False) -> None:  # noqa: FBT001, FBT002 - passed by the binding
        """Move the end of the history that will be summarised to the next possible entry.

        If ``step`` is -1, moves back to the previous one. With ``by_turn``, moves to the beginning
        of a turn. Does nothing if there is no such entry, or if neither the plan nor a refusal is
        shown.
        """
        if self.phase not in {CompactPhase.PLAN, CompactPhase.REFUSED}:
            return
        at = self.ends_before or self._agent.session.leaf or 0
        places = []
        for place in self._boundaries:
            if place.is_turn or not by_turn:
                places.append(place.entry_id)
        if step > 0:
            end = min((place for place in places if place > at), default=None)
        else:
            end = max((place for place in places if place < at), default=None)
        if end is None:
            return
        self.ends_before = end
        if self.ends_before == self._proposed_end:
            self.boundary = None
        else:
            self.boundary = self.ends_before
        self.run_worker(self._show_plan(), group="plan", exclusive=True)

    # -- phases

    def _enter(self, phase: CompactPhase, line: str = "", severity: str = "") -> None:
        self.phase = phase
        self.remove_class(*(f"-{other}" for other in CompactPhase))
        self.add_class(f"-{phase}")
        self._show_line(line, severity)
        keys = KEYS[phase]
        if phase is CompactPhase.REFUSED and self._refusal is not None and self._refusal.prunes:
            keys = f"enter prune old outputs instead  {keys}"
        if phase is CompactPhase.REFUSED and self._boundaries:
            keys = f"↑/↓ end earlier/later  {keys}"
        self.keys.show(keys)
        match phase:
            case CompactPhase.PLAN:
                self.field.focus()
            case CompactPhase.EDIT | CompactPhase.WAITING:
                self.editor.focus()
            case _:
                self.set_focus(None)

    def _show_line(self, text: str, severity: str = "") -> None:
        self.line.update(text)
        self.line.display = bool(text)
        self.line.set_classes(f"-{severity}" if severity else "")

    def _refuse(self, refusal: Refusal) -> None:
        self._refusal = refusal
        self.heading.update(refusal.message)
        more = ""
        if refusal.prunes:
            more = context_plan_text.prune_instead(refusal.prunes)
        self._enter(CompactPhase.REFUSED, more)

    # -- summarising

    @on(Input.Submitted)
    def action_summarise(self) -> None:
        """Start writing the summary; after a refusal, prune old outputs instead if that is offered.

        While the agent works, only shows a warning. If the text field contains a command, asks
        first whether it is meant as the focus.
        """
        if self._agent.running:
            self._show_line(WORKING, "warning")
        elif self.phase is CompactPhase.PLAN and self._asks_about_command():
            pass
        elif self.phase in {CompactPhase.PLAN, CompactPhase.FAILED}:
            self._written = []
            self.stream.update("")
            self._enter(CompactPhase.WRITING, "Summarising …")
            self.run_worker(self._summarise(), group="draft", exclusive=True)
        elif (
            self.phase is CompactPhase.REFUSED
            and self._refusal is not None
            and self._refusal.prunes
        ):
            self.app.run_worker(self._agent.compact(None), group="agent")
            self.dismiss(None)

    @property
    def _is_command(self) -> bool:
        return isinstance(parse(self.field.value), CommandIntent)

    def _asks_about_command(self) -> bool:
        """Ask whether a command in the text field is meant as the summary's focus, and return True.

        Returns False, without asking, if the field contains no command or the user was asked about
        it before.
        """
        typed = self.field.value
        if not self._is_command or typed == self._asked_about:
            return False
        self._asked_about = typed
        self._show_line(COMMAND_TYPED, "warning")
        return True

    def _order(self) -> CompactionOrder:
        focus = self.field.value.strip() or None
        order = self._agent.context.order("manual", focus, self.boundary)
        return replace(order, writer=self._writer)

    async def _summarise(self) -> None:
        order = self._order()
        drafted = await self._agent.context.compactor.draft(order)
        self._showing.stop()
        if isinstance(drafted, Refusal):
            self._refuse(drafted)
        elif isinstance(drafted, SummaryFailure):
            asked = order.writer or self._agent.context.settings().compaction.model
            self.heading.update(AFTER_FAILURE.format(model=asked or self._agent.model))
            self._enter(
                CompactPhase.FAILED, f"{drafted.reason.rstrip('.')}. Nothing was changed.", "error"
            )
        else:
            self._edit(drafted)

    # -- after a failure

    @work(group="draft", exclusive=True)
    async def action_edit_list(self) -> None:
        if self.phase is not CompactPhase.FAILED:
            return
        drafted = await self._agent.context.compactor.draft_by_rule(self._order())
        if isinstance(drafted, Refusal):
            self._refuse(drafted)
        else:
            self._edit(drafted)

    @work(group="draft", exclusive=True)
    async def action_other_model(self) -> None:
        if self.phase is not CompactPhase.FAILED:
            return
        chosen = await ask_for_model(self._controller, self._writer or self._agent.model)
        if chosen:
            self._writer = chosen
            self.call_later(self.action_summarise)

    def action_prune(self) -> None:
        if self.phase is CompactPhase.FAILED:
            self.dismiss(None)
            self._controller.begin("prune")

    def _edit(self, draft: Draft) -> None:
        self._draft = draft
        self.editor.text = draft.summary
        self._enter(CompactPhase.WAITING if self._agent.running else CompactPhase.EDIT)
        self._weigh()

    def _agent_said(self, event: AgentEvent) -> None:
        if self.phase is CompactPhase.WAITING:
            if isinstance(event, CompactionEnded) and event.error is None:
                self.dismiss(None)
            elif isinstance(event, RunEnded):
                self._enter(CompactPhase.EDIT)
                self._weigh()
        if isinstance(event, CompactionProgress) and self.phase is CompactPhase.WRITING:
            self._written.append(event.text)
            self._showing.after(FLUSH_SECONDS)

    def _flush(self) -> None:
        text = "".join(self._written)
        self.stream.update(sanitize.text(text))
        self._show_line(f"Summarising … {plural(len(text.split()), 'word')}")
        self.scroll.scroll_end(animate=False)

    # -- editing

    @on(TextArea.Changed)
    def _edited(self) -> None:
        if self.phase is CompactPhase.WAITING:
            self._keep_changes()
        if self.phase in {CompactPhase.EDIT, CompactPhase.WAITING}:
            self._weighing.debounce(WEIGH_SECONDS)

    @work(group="weigh", exclusive=True)
    async def _weigh(self) -> None:
        if self._draft is None or self.phase not in {CompactPhase.EDIT, CompactPhase.WAITING}:
            return
        weighed = await self._agent.context.compactor.weigh(self._draft, self.editor.text)
        if isinstance(weighed, Refusal):
            self._show_line(weighed.message, "error")
        else:
            self._show_line(context_plan_text.written_summary_text(weighed, self._draft))

    def _keep_changes(self) -> None:
        """Save the editor's text in the prepared summary, which the agent may apply at any moment.

        Shows a warning if the conversation has continued without the prepared summary.
        """
        draft = self._draft
        if draft is None or self.editor.text == draft.summary:
            return
        if self._agent.context.compactor.prepared.edit(draft, self.editor.text):
            self._draft = replace(draft, summary=self.editor.text)
        else:
            self._show_line(OUTDATED, "warning")

    async def action_apply(self) -> None:
        if self.phase is CompactPhase.WAITING:
            self._keep_changes()
            await self._agent.compact(None)
            self.dismiss(None)
            return
        if self.phase is not CompactPhase.EDIT or self._draft is None:
            return
        if self._agent.running:
            self._show_line(WORKING, "warning")
            return
        try:
            committed = await self._agent.context.compactor.commit(self._draft, self.editor.text)
        except StoreError as error:
            self._show_line(error.message, "error")
            return
        if isinstance(committed, Commit):
            self.dismiss(None)
        else:
            self._show_line(committed.message, "error")

    def action_put_off(self) -> None:
        """Discard the prepared summary, so that the compaction is postponed, and close the dialog.

        Does nothing unless a prepared summary is shown while the agent works.
        """
        if self.phase is CompactPhase.WAITING:
            self._agent.context.compactor.prepared.put_off()
            self.dismiss(None)

    def action_back(self) -> None:
        """Go back to the plan if the model is writing the summary; otherwise, close the dialog.

        If the user has edited the summary, asks first. Changes to a prepared summary are kept. A
        command in the text field is put into the prompt if the prompt is empty.
        """
        if self.phase is CompactPhase.WRITING:
            self._showing.stop()
            self.workers.cancel_group(self, "draft")
            self._enter(CompactPhase.PLAN, "Stopped. Nothing was changed.")
        elif self.phase is CompactPhase.EDIT and self._is_edited:
            self._controller.soon(self._ask_to_discard())
        else:
            if self.phase is CompactPhase.WAITING:
                self._keep_changes()
            if self._is_command and not self._controller.frontend.draft.strip():
                self._controller.frontend.set_draft(self.field.value)
            self.dismiss(None)

    @property
    def _is_edited(self) -> bool:
        return self._draft is not None and self.editor.text != self._draft.summary

    async def _ask_to_discard(self) -> None:
        answers = [
            ("keep", "Continue editing"),
            ("discard", "Discard the summary and your changes"),
        ]
        question = Choice("Discard the summary you edited?", answers)
        if await self._controller.ask(question) == "discard":
            self.dismiss(None)
