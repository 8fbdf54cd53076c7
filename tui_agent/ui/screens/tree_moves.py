"""What the tree screen does to a session: go, merge, fork, undo. It asks first when there is something to lose."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from textual.message import Message

from tui_agent.agent.checkpoints.plan import RestorePlan
from tui_agent.agent.navigator import NavigationError
from tui_agent.app.desk import COPYING
from tui_agent.app.face import Choice
from tui_agent.app.files_along import RESTORE, files_question, move_with_files
from tui_agent.app.services import OpenRequest
from tui_agent.app.subagent_commands import show_session
from tui_agent.context.branch_summary import MovePlan
from tui_agent.lazy import dataclass
from tui_agent.session.entries import Entry, ToolResultEntry
from tui_agent.session.errors import StoreError
from tui_agent.session.typed import prompt_text
from tui_agent.ui.screens.diff import DiffScreen
from tui_agent.ui.screens.summarising import BranchChoice, SummaryDialog
from tui_agent.ui.widgets.transcript.wording import count_text

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.desk import Desk
    from tui_agent.ui.screens.tree import TreeScreen


@dataclass
class Moved(Message):
    """The leaf is elsewhere; what went back into the prompt is in the plan."""

    plan: MovePlan


@dataclass
class Refused(Message):
    """Nothing happened, for a reason."""

    reason: str


class TreeMoves:
    """Changes one session on behalf of one tree screen. Until the agent has done something, nothing has changed."""

    def __init__(self, screen: "TreeScreen", desk: "Desk", agent: "Agent") -> None:
        self._screen = screen
        self._desk = desk
        self._agent = agent

    # -- going ------------------------------------------------------------------------------------------------

    def go(self, entry_id: int, *, continue_from_here: bool) -> None:
        """Go to an entry; a message of the user is taken back into the prompt, unless one continues from it."""
        if not self.refused():
            self._when_idle(lambda: self._go(entry_id, continue_from_here=continue_from_here))

    def _go(self, entry_id: int, *, continue_from_here: bool) -> None:
        plan = self._agent.navigator.plan(entry_id, continue_from_here=continue_from_here)
        self._screen.run_worker(self._ask(plan), group="tree-move", exclusive=True)

    async def _ask(self, plan: MovePlan) -> None:
        """Ask what there is to be asked: about a summary, about files, or nothing."""
        agent = self._agent
        files = await agent.files.plan(plan.leaf)
        if plan.asks and agent.ports.settings.compaction.branch_summaries == "ask":
            self._ask_about_both(plan, files)
            return
        answer = await self._desk.ask(files_question(files)) if files.steps else RESTORE
        if answer is not None:
            await self._carry_out(plan, files if answer == RESTORE else None)

    def _ask_about_both(self, plan: MovePlan, files: RestorePlan) -> None:
        async def carry_out(focus: str | None, progress: Callable[[str], None]) -> None:
            await self._agent.navigator.move(plan, focus=focus, progress=progress)
            await self._restore(plan, files if dialog.restores else None)

        def answered(done: bool | None) -> None:  # noqa: FBT001 - the dialog's result
            if done:
                self.arrived(plan)

        about = f"Left behind: {count_text(len(plan.abandoned), 'entry')}. The tree keeps everything."
        dialog = SummaryDialog("Summarise what you leave?", about, tuple(BranchChoice), carry_out, files)
        self._screen.app.push_screen(dialog, answered)

    async def _carry_out(self, plan: MovePlan, files: RestorePlan | None = None) -> None:
        try:
            await self._agent.navigator.move(plan)
            await self._restore(plan, files)
        except (NavigationError, StoreError) as error:
            self._screen.post_message(Refused(str(error)))
        else:
            self._screen.post_message(Moved(plan))

    async def _restore(self, plan: MovePlan, files: RestorePlan | None) -> None:
        """Restore files after a move, None to keep them; undoing the move does likewise."""
        self._agent.files.remember(plan.from_id, plan.leaf, along=files is not None)
        if files is not None:
            await self._agent.files.restore(files)

    # -- looking ----------------------------------------------------------------------------------------------

    def show_diff(self, entry_id: int) -> None:
        """Show how files differ between an entry and here."""
        self._screen.run_worker(self._show_diff(entry_id), group="tree-diff", exclusive=True)

    async def _show_diff(self, entry_id: int) -> None:
        if files := await self._agent.files.diff(entry_id):
            self._screen.app.push_screen(DiffScreen(f"Files from #{entry_id} to here", files))
        else:
            self._screen.say("No change of a file is recorded between this entry and here.")

    def open_subagent(self, entries: Sequence[Entry]) -> None:
        """Open the session of the subagent that one of some entries is the result of."""
        sessions = (entry.metadata.session for entry in entries if isinstance(entry, ToolResultEntry))
        session = next(filter(None, sessions), None)
        if session is None:
            self._screen.say("No subagent worked here.")
            return
        show_session(self._desk, session)

    def arrived(self, plan: MovePlan) -> None:
        """Go back to the conversation, with what is to be edited in the prompt."""
        self._desk.undone.clear()
        self._screen.dismiss()
        self._desk.face.restore_message(prompt_text(plan.prompt))

    # -- merging and forking ----------------------------------------------------------------------------------

    def merge(self, tip: int) -> None:
        """Tell this branch what happened on the way to the tip of another one."""
        if not self.refused():
            self._when_idle(lambda: self._merge(tip))

    def _merge(self, tip: int) -> None:
        async def merge(focus: str | None, progress: Callable[[str], None]) -> None:
            await self._agent.navigator.merge(tip, focus=focus or "", progress=progress)

        def answered(done: bool | None) -> None:  # noqa: FBT001 - the dialog's result
            if done:
                self._screen.reload(at=self._agent.session.leaf)

        about = f"A summary of what leads to #{tip} is added where you are. You do not move."
        dialog = SummaryDialog("Merge this branch?", about, (BranchChoice.SUMMARISE, BranchChoice.FOCUS), merge)
        self._screen.app.push_screen(dialog, answered)

    def fork(self, entry_id: int) -> None:
        """Go on in a new session that ends at an entry; a message of the user is to be edited there."""
        self._when_idle(lambda: self._begin_fork(entry_id))

    def _begin_fork(self, entry_id: int) -> None:
        self._desk.soon(self._fork(entry_id))

    async def _fork(self, entry_id: int) -> None:
        plan = self._agent.navigator.plan(entry_id)
        self._screen.say(COPYING)
        info = await asyncio.to_thread(self._desk.services.store.fork, self._agent.session.id, plan.leaf)
        if self._screen.is_current:
            self._screen.dismiss()
        await self._open(info.id, plan)

    async def _open(self, session_id: str, plan: MovePlan) -> None:
        await self._desk.open(OpenRequest(session_id))
        self._desk.face.put_back(prompt_text(plan.prompt))

    def label(self, entry_id: int, text: str) -> None:
        """Label an entry; no text removes the label."""
        self._agent.session.label(entry_id, text or None)
        self._screen.reload()

    # -- undoing ----------------------------------------------------------------------------------------------

    def undo(self) -> None:
        """Undo the last move."""
        undoable = self._agent.session.move_history.undoable
        self._change(self._agent.navigator.undo, *(undoable[-1] if undoable else (None, None)))

    def redo(self) -> None:
        """Redo the move undone last."""
        redoable = self._agent.session.move_history.redoable
        self._change(self._agent.navigator.redo, *(redoable[-1][::-1] if redoable else (None, None)))

    def _change(self, change: Callable[[], Awaitable[int | None]], target: int | None, other: int | None) -> None:
        """Undo or redo a move, which leads to ``target`` and is one between it and ``other``."""

        async def go() -> bool:
            leaf = await change()
            self._desk.undone.clear()
            self._desk.face.withdraw_message("")
            self._screen.reload(at=leaf)
            return True

        work = move_with_files(self._desk, self._agent, target, go, pair=(target, other))
        self._screen.run_worker(work, group="tree-move", exclusive=True)

    # -- when -------------------------------------------------------------------------------------------------

    def refused(self) -> bool:
        """Say so when the session can't be changed."""
        if self._agent.session.read_only:
            self._screen.say("This session is read-only. Press f to continue in a fork.")
            return True
        return False

    def _when_idle(self, act: Callable[[], None]) -> None:
        """Do something now; while the agent works, offer to interrupt it first."""
        if not self._agent.running:
            act()
            return

        self._desk.soon(self._offer_interrupt(act))

    async def _offer_interrupt(self, act: Callable[[], None]) -> None:
        question = "The agent is working. What it has done so far is saved."
        answers = [("interrupt", "Interrupt it and continue here"), ("stay", "Let it work")]
        if await self._desk.ask(Choice(question, answers)) == "interrupt":
            self._agent.interrupt()
            await self._agent.wait_idle()
            self._screen.call_later(act)
