"""The part of the main screen that shows the open session and reacts to the agent's events.

This module decides what each event changes on the screen, including in the widgets around the
session (session_frame.py). It also decides when questions appear and disappear, and records
warnings for `/doctor`. It passes the user's answers, and the actions that the user chooses in the
conversation, to the agent and the controller.

`SessionView` is mounted after the first paint, because importing the modules that it needs takes
longer than painting the prompt.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

from textual import getters, on
from textual.app import ComposeResult
from textual.message import Message

from tui_agent.agent.agent import Agent
from tui_agent.agent.events import (
    AgentEvent,
    CacheMissed,
    CompactionEnded,
    CompactionStarted,
    CostKnown,
    EntryAppended,
    HeadKnown,
    JobsChanged,
    LeafMoved,
    MessageRefused,
    Notice,
    PermissionAsked,
    PermissionSettled,
    QuestionAsked,
    QuestionsAnswered,
    QueueChanged,
    RaceEnded,
    RaceStarted,
    RunEnded,
    RunnerChanged,
    RunStarted,
    TitleChanged,
)
from tui_agent.app.cold_cache import ColdCache, warn_of_missed_cache
from tui_agent.app.commands import remedy_of
from tui_agent.app.controller import WORKING
from tui_agent.app.format import one_line, plural, tokens
from tui_agent.app.run_progress import next_state
from tui_agent.app.run_state import Phase, RunState, describe_run
from tui_agent.app.services import AppServices, OpenRequest
from tui_agent.session.entries import AssistantEntry, CompactionEntry, Entry, ShellEntry
from tui_agent.session.path_queries import newest
from tui_agent.ui.inbox import AgentEvents, Inbox
from tui_agent.ui.later import Later
from tui_agent.ui.widgets.fast_paint import BackgroundContainer, paint_now
from tui_agent.ui.widgets.find_bar import FindBar
from tui_agent.ui.widgets.first_hints import FirstHints
from tui_agent.ui.widgets.prompt import PLACEHOLDERS, READ_ONLY_PLACEHOLDERS
from tui_agent.ui.widgets.prompt_lines import NewChip, QuestionChip, QueueList, TodoLine
from tui_agent.ui.widgets.question_prompt import QuestionPrompt
from tui_agent.ui.widgets.side_panel import MIN_WIDTH_FOR_PANEL, SidePanel
from tui_agent.ui.widgets.transcript import messages
from tui_agent.ui.widgets.transcript.transcript import Transcript
from tui_agent.ui.widgets.waiting_questions import ChoiceQuestion, ToolCallQuestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.widget import Widget

    from tui_agent.agent.events import PermissionAnswer, PermissionRequest
    from tui_agent.app.frontend import Choice
    from tui_agent.ui.screens.session_frame import SessionFrame

FACTS_SECONDS = 0.1
"""Seconds from when a block receives the focus until its size is shown in the status line.

Computing the size takes time, so it isn't done for blocks that the user passes quickly.
"""

INTERRUPTED = "Interrupted."
"""The error message of a compaction that the user has interrupted."""
COMPACTION_STOPPED = "The compaction was stopped. Nothing was changed."

WRITING = frozenset({Phase.STREAMING, Phase.THINKING})
"""The phases of a run in which the model is sending text."""


class SessionView(BackgroundContainer):
    """Shows a session: the conversation, questions, current to-do, queued messages and side panel.

    Takes the agent's events from its inbox, and updates its own widgets and those of the main
    screen.
    """

    transcript = getters.query_one(Transcript)
    question = getters.query_one(QuestionPrompt)
    waiting = getters.query_one(QueueList)
    todo_line = getters.query_one(TodoLine)
    new_chip = getters.query_one(NewChip)
    panel = getters.query_one(SidePanel)
    hints = getters.query_one(FirstHints)
    find_bar = getters.query_one(FindBar)

    class Opened(Message):
        """Posted when a session has been opened and is on the screen."""

    def __init__(self, main: SessionFrame, services: AppServices) -> None:
        super().__init__()
        self._main = main
        self._controller = main.controller
        self._services = services
        self._wants_panel: bool | None = None
        self._focused_entry: int | None = None
        self._showing_block_facts = Later(self, self._show_block_facts)
        self._facts_changed = False
        """Whether events have changed what the header, the gauge and the status line show.

        They are redrawn once all waiting events have been handled.
        """
        self._announced_compaction = 0
        """Id of the last automatic compaction for which a notice was shown; 0 if there is none."""
        self.cold_cache = ColdCache(main.controller)
        self.inbox = Inbox(
            self, pause=lambda: next((pane.pause for pane in self.query(Transcript)), 0.0)
        )

    def compose(self) -> ComposeResult:
        settings = self._services.config().ui
        prompt = self._main.prompt
        transcript = Transcript()
        transcript.model.fold_turns = settings.fold_turns
        transcript.model.shows_key_hints = True
        transcript.model.key_of = self._main.key_of
        yield transcript
        yield NewChip(transcript, self._main.key_of)
        yield FirstHints()
        yield FindBar(self._controller, transcript, self.give_keys_back)
        yield QuestionPrompt(
            grace=settings.permission_grace,
            typing_pause=settings.typing_pause,
            prompt=prompt,
            clock=self._services.clock,
            show=self._controller.show,
        )
        yield TodoLine()
        yield QueueList(self._main.key_of)
        yield SidePanel(self._main.key_of)

    @property
    def agent(self) -> Agent | None:
        return self._controller.agent

    # -- sessions

    def show_opened(self, agent: Agent) -> None:
        """Show the session of ``agent``, including the question that it is asking, if any.

        The session replaces the one shown before. If some of its entries could not be read, a
        warning is shown.
        """
        self.inbox.take()
        self.question.clear()
        self.leave_question()
        self._forget_session()
        if self.hints.has_focus:
            self._main.prompt.focus()
        self.transcript.model.first_mode = agent.context.first_mode
        self.transcript.open(agent)
        self.on_resize()
        self.panel.open(agent)
        self._greet(agent)
        self._update_todos(None)
        self._main.status.state = self._controller.progress
        self._main.status.jobs = agent.jobs.running
        self.show_activity(self._main.status.state)
        self.waiting.queue = agent.queue.snapshot()
        if agent.questions.open is not None:
            self._ask(agent.questions.open)
            self.announce_question()
        self.cold_cache.check()
        if lost := agent.session.reader.damaged:
            stored = agent.session.info.entry_count
            self._main.say(
                f"Recovered {max(0, stored - lost):,} of {stored:,} entries: {plural(lost, 'entry')} could not be read "
                "or placed in the tree. Everything else is intact.",
                "warning",
            )
        self.post_message(self.Opened())

    def _forget_session(self) -> None:
        """Forget everything that refers to entry ids, because another session uses the same ids."""
        if self.find_bar.display:
            self.find_bar.action_end()
        self._showing_block_facts.stop()
        self._focused_entry = None
        self._main.status.block = ""
        self._announced_compaction = 0

    def show_if_open(self, request: OpenRequest) -> bool:
        """Scroll to the requested entry and return True, if the requested session is already open.

        Returns False if another session is requested, or if the session should be opened in a
        certain way, such as read-only.
        """
        if self.agent is None or request != OpenRequest(self.agent.session.id, entry=request.entry):
            return False
        if request.entry is not None:
            self.show_entry(request.entry)
        return True

    def show_entry(self, entry_id: int) -> None:
        """Scroll to an entry of the session.

        If the entry isn't on the path from the root of the session tree to the current leaf, the
        tree is opened instead, with the entry selected.
        """
        if not self.transcript.jump_to(entry_id):
            self._controller.begin("tree", f"#{entry_id}")

    def _greet(self, agent: Agent) -> None:
        """Show hints in an empty session, and set the placeholder of the prompt."""
        self.hints.greet(agent, self._controller, self._main.keymap)
        if self.hints.is_demo:
            self._main.prompt.set_placeholders(("Type tour and press enter",))
        else:
            self._main.prompt.set_placeholders(
                READ_ONLY_PLACEHOLDERS if agent.session.read_only else PLACEHOLDERS
            )

    @on(FirstHints.Chosen)
    def _session_chosen(self, message: FirstHints.Chosen) -> None:
        message.stop()
        self._main.go_to(OpenRequest(message.session_id))

    # -- events of the agent

    @on(AgentEvents)
    def _on_agent_event(self, message: AgentEvents) -> None:
        message.stop()
        events = message.inbox.take()
        now = self._main.clock()
        before = self._main.status.state
        state = reduce(lambda earlier, event: next_state(earlier, event, now), events, before)
        try:
            with self.transcript.together():
                for event in events:
                    self._show(event)
        finally:
            if state is not before:
                self._main.status.state = state
                self.show_activity(state)
        if state.phase in WRITING and before.phase not in WRITING:
            paint_now(self.transcript)
        if self._facts_changed:
            self._facts_changed = False
            self._main.refresh_facts()
        elif state.phase in WRITING:
            self._main.show_live_size()

    def _show(self, event: AgentEvent) -> None:  # noqa: C901, PLR0912 - one arm per event
        """Show an event in the conversation, and update the other widgets that it affects.

        The state of the run in the status line is not updated here, but by the caller.
        """
        self.transcript.apply(event)
        match event:
            case RunStarted():
                self._run_started()
            case EntryAppended(entry=entry):
                self._path_changed(entry)
                self._withdraw_hints()
            case LeafMoved():
                self._path_changed(None)
            case TitleChanged() | CostKnown() | HeadKnown():
                self._facts_changed = True
            case RaceStarted() | RunnerChanged() | RaceEnded():
                self._main.show_race()
            case JobsChanged(jobs=jobs):
                self._main.status.jobs = sum(job.running for job in jobs)
                self.panel.show_jobs(jobs)
            case CacheMissed():
                warn_of_missed_cache(self._controller, event)
            case PermissionAsked(request=request):
                self._permission_asked(request)
            case PermissionSettled(call_id=call_id):
                self._main.attention.answered()
                self.end_question(call_id)
            case QuestionAsked(text=text):
                self._main.attention.asked(f"you: {one_line(text, 100)}")
            case QuestionsAnswered():
                self._main.attention.answered()
            case QueueChanged():
                self._queue_changed(event)
            case MessageRefused(text=text, reason=reason):
                self._main.put_back(text)
                self._main.say(f"A hook refused the message: {reason}", "warning")
            case Notice():
                self._show_notice(event)
            case CompactionStarted(tokens_before=before):
                self.transcript.show_notice(f"Compacting {tokens(before)} tokens of history …")
                self._main.refresh_bindings()
            case CompactionEnded():
                self._compaction_ended(event)
            case RunEnded():
                self._run_ended(event)

    def _run_started(self) -> None:
        self._main.attention.run_started()
        self._main.leave_warnings()
        self._main.show_running()
        self._update_todos(None)
        self._withdraw_hints()

    def _path_changed(self, appended: Entry | None) -> None:
        self.panel.follow(appended)
        self._update_todos(appended)
        self._facts_changed = True
        if isinstance(appended, ShellEntry):
            self._main.refresh_files()

    def _permission_asked(self, request: PermissionRequest) -> None:
        about = f"{one_line(request.tool, 20)}: {one_line(request.title, 100)}"
        self._main.attention.asked(f"about {about}")
        self._ask(request)
        self.announce_question()
        self._main.refresh_bindings()

    def _queue_changed(self, queue: QueueChanged) -> None:
        self.waiting.queue = queue
        self._main.unsent.save()
        self._main.refresh_bindings()

    def _show_notice(self, notice: Notice) -> None:
        if notice.severity != "information":
            self._controller.warnings.said.append((self._main.clock(), notice.message))
        remedy = None
        if notice.action:
            remedy = remedy_of(notice.action, self._main.keymap, notice.label)
        self._main.notice.add(notice.message, notice.severity, remedy)

    def _update_todos(self, entry: Entry | None) -> None:
        if self.agent is not None:
            self.todo_line.follow(self.agent, entry)

    def _withdraw_hints(self) -> None:
        if self.hints.has_focus:
            self._main.prompt.focus()
        self.hints.display = False
        self._main.prompt.set_placeholders(PLACEHOLDERS)

    def _compaction_ended(self, ended: CompactionEnded) -> None:
        self.transcript.show_notice("")
        if ended.error == INTERRUPTED:
            self._main.say(COMPACTION_STOPPED, "warning")
        elif ended.error and ended.trigger == "manual":
            # After a failed automatic compaction, the agent itself reports what happens next.
            self._main.say(ended.error, "warning")
        elif not ended.error and ended.trigger != "manual":
            self._report_compaction()
        self._facts_changed = True
        self._main.refresh_bindings()

    def _report_compaction(self) -> None:
        """Show a notice about the newest compaction and the key that undoes it.

        The notice is shown only once for each compaction.
        """
        if self.agent is None:
            return
        made = newest(self.agent.session.active_path(), CompactionEntry)
        if made is None or made.id == self._announced_compaction:
            return
        self._announced_compaction = made.id
        self._main.notice.add(
            f"Compacted automatically: {tokens(made.tokens_before)} → {tokens(made.tokens_after)} tokens of history.",
            remedy=remedy_of("undo", self._main.keymap),
        )

    def _run_ended(self, event: RunEnded) -> None:
        self._main.attention.run_ended(event)
        if self._main.notice.message == WORKING:
            self._main.notice.clear()
        self.todo_line.display = False
        self.question.clear()
        self.leave_question()
        self._main.show_running()
        self._facts_changed = True
        self.cold_cache.check()
        self._main.refresh_files()
        match event.reason:
            case "interrupted":
                self._main.controller.outbox.put_back_queued()
            case "error" if self._main.controller.warn_if_taken_over():
                pass
            case "error" if not self._is_shown_in_transcript(event.error):
                retry = remedy_of("retry", self._main.keymap)
                self._main.say(event.error or "The request failed.", "error", retry)
            case "step_limit":
                self._main.say(
                    f"Stopped after {plural(event.steps, 'step')}. Send a message to continue.",
                    "warning",
                )
            case "stopped" | "budget":
                more = self._not_in_transcript(event.error or "")
                self._main.say(more or "Stopped. Send a message to continue.", "warning")
            case _:
                pass

    def _is_shown_in_transcript(self, error: str | None) -> bool:
        """Return True if the leaf is an answer with this error.

        The conversation shows the error of such an answer, so it need not be reported again.
        """
        if self.agent is None or (leaf := self.agent.session.leaf) is None:
            return False
        entry = self.agent.session.entry(leaf)
        return isinstance(entry, AssistantEntry) and bool(error) and entry.error == error

    def _not_in_transcript(self, text: str) -> str:
        """Return ``text`` without the error of the newest answer if it begins with this error.

        The conversation already shows that error, and a notice has room for only a few lines.
        """
        if self.agent is None:
            return text
        answer = newest(self.agent.session.active_path(), AssistantEntry)
        if answer is None or not answer.error:
            return text
        return text.removeprefix(answer.error).lstrip(". ")

    def show_activity(self, state: RunState) -> None:
        """Show a line with the agent's activity, or remove it if the agent isn't running."""
        agent = self.agent
        key = self._main.key_of("prompt.background")

        def describe(written: int) -> str:
            moves = ""
            if agent is not None and agent.jobs.movable:
                moves = key
            return describe_run(state, self._main.clock(), written, background_key=moves)

        self.transcript.show_activity(describe if state.active else None)

    def _end_moved(self) -> None:
        """Update the “new text” chip and the status line after scrolling to or from the end."""
        self.new_chip.show(shown=self.transcript.has_new)
        self._main.status.is_activity_shown = self.transcript.following

    def on_mount(self) -> None:
        self.watch(self.transcript, "following", self._end_moved)
        self.watch(self.transcript, "has_new", self._end_moved)
        self.app.screen_change_signal.subscribe(self, self._screen_changed)
        self.watch(self.app, "app_focus", self._focus_changed, init=False)

    def _focus_changed(self, app_focus: bool) -> None:  # noqa: FBT001 - called by Textual
        if app_focus:
            self._controller.warn_if_taken_over()

    def _screen_changed(self, _screen: object) -> None:
        self.call_later(self.announce_question)
        if self.app.screen is self._main:
            self.question.restart_grace()

    def announce_question(self) -> None:
        """Show a chip on the current screen that says that a question is waiting.

        The main screen shows the question itself, so it has no chip. Chips on other screens are
        removed. If no question is waiting, all chips are removed.
        """
        asked = self.question.asked
        stack = self.app.screen_stack
        self._main.set_class(asked is not None, "-asked")
        self.hints.is_brief = self.waiting.has_question = asked is not None
        for screen in stack:
            chips = screen.query(QuestionChip)
            if asked is None or screen is self._main or screen is not stack[-1]:
                chips.remove()
            elif chips:
                chips.first().ask(asked)
            elif screen.is_attached:
                screen.mount(QuestionChip(self._main, asked))

    def give_keys_back(self, taken_from: Widget | None = None) -> None:
        """Return the focus to ``taken_from``, the widget that had it before the question.

        If that widget no longer exists or is hidden, or if another question is waiting, the prompt
        receives the focus. The grace period of the waiting question starts again.
        """
        waits = self.question.asked is not None
        is_there = taken_from is not None and taken_from.is_attached and taken_from.display
        self._main.set_focus(taken_from if is_there and not waits else self._main.prompt)
        self.question.restart_grace()

    def leave_question(self) -> None:
        """Update the screen after a question has been removed.

        If the question had the focus and no other question is waiting, the prompt receives the
        focus.
        """
        self.announce_question()
        if self.question.asked is None and self.question.has_focus_within:
            self._main.prompt.focus()
        self._main.refresh_bindings()

    def _ask(self, request: PermissionRequest) -> None:
        def answered(answer: PermissionAnswer) -> None:
            if self.agent is not None:
                self.agent.answer_permission(request.call_id, answer)

        self.question.ask(ToolCallQuestion(request, answered))

    def ask_choice(
        self, choice: Choice, answered: Callable[[str | None], None], *, awaited: bool
    ) -> Callable[[], None]:
        """Ask the user a question above the prompt. Return a function that withdraws the question.

        ``answered`` is called with the name of the answer and the user's note, in the form
        described in `ChoiceQuestion`. If the user dismisses the question, it is called with None.
        ``awaited`` is True if the question directly follows a command that the user ran, and the
        user has pressed no key since then.
        """
        asked = ChoiceQuestion(choice, answered)
        asked.is_awaited = awaited
        self.question.ask(asked)
        self.announce_question()
        return partial(self.end_question, asked.key)

    def end_question(self, key: str) -> None:
        """Remove the question with ``key``, and update the screen as `leave_question` does."""
        if self.is_attached:
            self.question.remove_question(key)
            self.leave_question()

    # -- the side panel

    def on_resize(self) -> None:
        """Show or hide the side panel as the user has chosen.

        If the user hasn't chosen, the panel is shown only in a wide terminal.
        """
        if self._wants_panel is None:
            wanted = self.size.width >= MIN_WIDTH_FOR_PANEL
        else:
            wanted = self._wants_panel
        self.panel.show(shown=wanted)

    def toggle_view(self) -> bool:
        """Switch the conversation between showing all entries and showing only what the model sees.

        Returns True if the conversation now shows only what the model sees.
        """
        seen = self.transcript.model.model_text is None
        self.transcript.show_model_view(self._model_text if seen else None)
        return seen

    def _model_text(self, entry_id: int) -> str:
        """Return the text that the next request sends to the model for an entry.

        Returns "" if the entry isn't part of the request.
        """
        if self.agent is not None:
            sent = self.agent.inspector.next_request().messages
        else:
            sent = ()
        return "\n".join(message.text for message in sent if entry_id in message.origin)

    def toggle_panel(self) -> None:
        self._wants_panel = not self.panel.display
        if not self._wants_panel and self.panel.has_focus:
            self._main.prompt.focus()
        self.on_resize()

    @on(SidePanel.Jumped)
    def _panel_jumped(self, message: SidePanel.Jumped) -> None:
        message.stop()
        self.show_entry(message.entry_id)

    # -- requests from the conversation

    @on(messages.ActionRequested)
    def _block_action(self, message: messages.ActionRequested) -> None:
        from tui_agent.app.session_commands import block_action
        from tui_agent.app.subagent_commands import enter

        if message.action == "enter":
            self._controller.soon(enter(self._controller, message.entry_id, message.call_id))
        else:
            self._controller.soon(block_action(self._controller, message.action, message.entry_id))

    @on(messages.BlockFocused)
    def _block_focused(self, message: messages.BlockFocused) -> None:
        message.stop()
        self._focused_entry = message.entry_id
        if message.entry_id is None:
            self._main.status.block = ""
        else:
            # Wait first, because in a long session it takes time to count the tokens of a block.
            self._showing_block_facts.debounce(FACTS_SECONDS)

    def _show_block_facts(self) -> None:
        from tui_agent.app.context_text import standing_words

        agent = self.agent
        entry_id = self._focused_entry
        if agent is None or entry_id is None or not self.transcript.has_focus:
            return
        entry = agent.session.entry(entry_id)
        inspector = agent.inspector
        block = inspector.block_of(entry_id)
        self._main.status.block = standing_words(
            entry, inspector.standings(), block, self._main.clock()
        )
