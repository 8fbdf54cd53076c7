"""Turns the user's queued messages into entries, when a run begins and between its steps.

`Agent.submit` puts the messages into the queue. Hooks may refuse a message or add text for the
model. `nothing_left` decides for the loop whether the model has finished its turn.
"""

from collections.abc import Sequence

from tui_agent.agent.calls.call import StopRunError
from tui_agent.agent.channel import Journal
from tui_agent.agent.events import MessageRefused
from tui_agent.agent.message_queue import MessageQueue, QueuedMessage
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.reminders import reminder
from tui_agent.context.verdict import ENDS_TURN, Verdict, verdict_on
from tui_agent.permission import said_by_hook
from tui_agent.session.entries import AssistantEntry, Entry, TextPart, UserEntry, joined_text
from tui_agent.session.path_queries import newest_message


class Intake:
    """Holds the user's messages that wait to be sent, and appends them when they are due."""

    def __init__(self, journal: Journal, ports: AgentPorts) -> None:
        self._journal = journal
        self._ports = ports
        self.queue = MessageQueue()
        """The user's messages that wait to be sent."""
        self._greeting = ""
        """Text of the hooks that ran when the session began. It is sent with the first message."""

    def nothing_left(self) -> bool:
        """Return True if the current path has no message, or if its last turn has ended."""
        return nothing_left(self._journal.session.active_path())

    async def take_messages(self, *, step: int) -> None:
        """Append the queued messages for the next step to the session.

        If there were none and the work is done, append the oldest follow-up. If no message came
        after an interrupted answer, ask the model to continue it. ``step`` is the number of the
        run's last step, 0 before the first. Raises StopRunError if hooks refused all messages
        before the first step.
        """
        is_working = step > 0 and not self.nothing_left()
        await self._admit(self.queue.take_steering(), step=step, mid_run=is_working)
        if self.nothing_left() and self.queue:
            await self._admit([self.queue.popleft()], step=step, mid_run=False)
        path = self._journal.session.active_path()
        last = newest_message(path)
        if isinstance(last, AssistantEntry) and _is_half_said(last):
            # A request must not end with an answer, and an answer that broke off must be continued.
            self._journal.append(reminder(path, "continue", self._ports.prompt("continue")))

    async def _admit(self, messages: Sequence[QueuedMessage], *, step: int, mid_run: bool) -> None:
        """Append the messages that no hook refuses, each followed by the text of the hooks.

        If a message can't be stored, or its hooks are interrupted, that message and the rest return
        to the front of the queue. Raises StopRunError if all messages are refused before the run's
        first step.
        """
        refused = ""
        admitted = 0
        self.queue.checked = tuple(messages)
        try:
            while self.queue.checked:
                if await self._ports.hooks.check_messages():
                    self._journal.channel.emit(self.queue.snapshot())
                problem = await self._admit_one(self.queue.checked[0], mid_run=mid_run)
                self.queue.checked = self.queue.checked[1:]
                refused = problem or refused
                admitted += not problem
        finally:
            # Messages are left here if one can't be stored, or if its hooks are interrupted.
            self.queue.extendleft(reversed(self.queue.checked))
            self.queue.checked = ()
            if messages:
                self._journal.channel.emit(self.queue.snapshot())
        if refused and not admitted and step == 0:
            raise StopRunError(f"A hook refused the message: {refused}")

    async def _admit_one(self, message: QueuedMessage, *, mid_run: bool) -> str:
        """Append a user's message to the session unless a hook refuses it.

        Return why it was refused; "" if it was appended.
        """
        hooks = self._ports.hooks
        is_resumed = bool(self._journal.session.info.first_message)
        self._greeting += await hooks.session_start(resumed=is_resumed)
        text = joined_text(message.parts)
        answer = await hooks.user_prompt(text, mid_run=mid_run)
        if answer.block:
            refused = said_by_hook(answer.message, answer.hook)
            self._journal.channel.emit(MessageRefused(message.typed, refused))
            return refused
        entries = [UserEntry(parts=message.parts, mid_run=mid_run)]
        note = "\n\n".join(filter(None, [self._greeting, answer.context]))
        if note:
            told = TextPart(text=f"<hook-context>\n{note}\n</hook-context>")
            entries.append(UserEntry(parts=(told,), synthetic="hook"))
        # Append both or none, because a message that was stored must not stay in the queue.
        self._journal.append_many(entries)
        self._greeting = ""
        return ""


def nothing_left(path: Sequence[Entry]) -> bool:
    """Return True if a path has no message, or if its last message is an answer ending a turn."""
    entry = newest_message(path)
    if isinstance(entry, AssistantEntry):
        return not entry.tool_calls and verdict_on(entry) in ENDS_TURN
    return entry is None


def _is_half_said(answer: AssistantEntry) -> bool:
    is_broken = verdict_on(answer) is Verdict.BROKEN
    return is_broken and bool(answer.text.strip()) and not answer.tool_calls
