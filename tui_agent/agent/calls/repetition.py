"""Stops doom loops (tool calls repeated without new results) and answers that repeat themselves.

``doom_loop`` and ``repeated_text`` find them; here the permission rules decide whether to stop
them, allow them or ask the user. A stopped call's result is appended by `ToolRunner`, the message
after a stopped answer by `Loop`.
"""

from collections.abc import Callable, Sequence

from tui_agent.agent.calls.call import Call, Outcome, Proceed, RefusedError, StopRunError
from tui_agent.agent.channel import EventChannel, Questions
from tui_agent.agent.doom_loop import DoomLoop, LoopRules, detect, was_refused
from tui_agent.agent.events import Decision, PermissionRequest
from tui_agent.agent.gate import Gate
from tui_agent.agent.permissions import Action
from tui_agent.agent.repeated_text import MAX_REPEATED_ANSWERS, Repetition, repeated_answers
from tui_agent.context.compaction_policy import newest_user_id
from tui_agent.permission import Permission, PermissionNeed, with_note
from tui_agent.session.entries import AssistantEntry, Entry, ToolResultEntry
from tui_agent.session.session import Session

ANSWER_PATTERN = "repeated answer"
"""Text that stands for repeating answers in the patterns of ``doom_loop`` permission rules."""
_REPEATED_ANSWER = PermissionNeed(Permission.DOOM_LOOP, ANSWER_PATTERN)
_TITLE_CHARS = 80
"""Maximum number of characters of unreadable arguments that are shown as a call's title."""


class RepetitionWatch:
    """The stage that stops doom loops. It also decides what follows an answer that repeats itself.

    Remembers the repetitions that the user allowed for the session. ``prompt`` returns a prompt by
    name. ``problem_of`` takes a tool's name and arguments and returns why it can't accept them; ""
    if it can.
    """

    def __init__(
        self,
        session: Session,
        gate: Gate,
        channel: EventChannel,
        questions: Questions,
        prompt: Callable[[str], str],
        problem_of: Callable[[str, str], str],
    ) -> None:
        self._session = session
        self._gate = gate
        self._channel = channel
        self._questions = questions
        self._prompt = prompt
        self._problem_of = problem_of
        self._allowed: set[str] = set()
        self._allowed_in_run: int | None = None
        """Id of the message whose answers may repeat themselves; None if there is none."""

    async def around(self, call: Call, proceed: Proceed) -> Outcome:
        path = self._session.active_path()
        rules = LoopRules(frozenset(self._allowed), self._problem_of)
        loop = detect(path, call.call_id, rules)
        if loop is None:
            return await proceed(call)
        need = PermissionNeed(Permission.DOOM_LOOP, loop.pattern)
        action = self._gate.decide(need).action
        if action is Action.ALLOW:
            return await proceed(call)
        note = (
            f"Not run: {loop.reason}. Don't repeat the call; try something else, "
            "or tell the user what the problem is."
        )
        if action is Action.DENY:
            if was_refused(path, call.call_id, rules):
                raise StopRunError(f"Stopped: {loop.reason}.", note)
            raise RefusedError(note)
        answer = await self._questions.ask(
            PermissionRequest(
                call_id=call.call_id,
                tool=call.part.tool,
                title=call.title or call.part.arguments[:_TITLE_CHARS],
                needs=(need,),
                reason=loop.reason,
                rules=(f"allow doom_loop: {loop.pattern}",),
                loop=_outputs_of(loop, path),
            )
        )
        if answer.decision is Decision.STOP:
            raise StopRunError(f"Stopped: {loop.reason}.", note)
        if answer.decision is Decision.DENY:
            raise RefusedError(with_note(note, answer.note))
        if answer.decision is Decision.SESSION:
            self._allowed.update(loop.keys)
        return await proceed(call)

    @property
    def stops_answers(self) -> bool:
        """Whether an answer that repeats itself is stopped.

        False if a rule or the user allows it.
        """
        is_allowed = ANSWER_PATTERN in self._allowed
        if self._allowed_in_run is not None:
            is_allowed = is_allowed or self._allowed_in_run == newest_user_id(
                self._session.active_path()
            )
        return not is_allowed and self._gate.decide(_REPEATED_ANSWER).action is not Action.ALLOW

    async def after_answer(self, answer: AssistantEntry, found: Repetition) -> str:
        """Decide what follows an answer that was stopped because it repeats itself.

        May ask the user. Returns the message to send to the model, which tells it to continue or to
        stop repeating. Raises StopRunError if the user ends the run, or after too many repeating
        answers.
        """
        before = repeated_answers(self._session.active_path())
        nobody = self._gate.decide(_REPEATED_ANSWER).action is Action.DENY
        if before >= (1 if nobody else MAX_REPEATED_ANSWERS - 1):
            raise StopRunError(f"Stopped: {found.reason}.")
        if nobody:
            self._channel.say(f"Stopped the answer: {found.reason}.", "warning")
            return self._prompt("repeating")
        asked = PermissionRequest(
            call_id=f"answer-{answer.id}",
            tool="answer",
            title=f"#{answer.id}, stopped",
            question="The model is repeating itself. Let it continue?",
            needs=(_REPEATED_ANSWER,),
            reason=found.amount,
            rules=(f"allow doom_loop: {ANSWER_PATTERN}",),
            loop=(found.unit, found.unit),
            once="yes, continue from there",
        )
        reply = await self._questions.ask(asked)
        if reply.decision is Decision.STOP:
            raise StopRunError(f"Stopped: {found.reason}.")
        if reply.decision is Decision.DENY:
            return with_note(self._prompt("repeating").strip(), reply.note)
        if reply.decision is Decision.SESSION:
            self._allowed.add(ANSWER_PATTERN)
        self._allowed_in_run = newest_user_id(self._session.active_path())
        return self._prompt("continue")


def _outputs_of(loop: DoomLoop, path: Sequence[Entry]) -> tuple[str, ...]:
    """Return the outputs of the calls in a doom loop, oldest first."""
    outputs: list[str] = []
    for entry in path:
        if isinstance(entry, ToolResultEntry) and entry.call_id in loop.call_ids:
            outputs.append(entry.output)
    return tuple(outputs)
