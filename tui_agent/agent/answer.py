"""Streams one answer of the model into one assistant entry: drafts while it comes, retries when it fails.

Text visible for a quarter of a second is in the store's draft; an ended answer, good or bad, is an
entry. An attempt that failed with content and is tried again stays in the tree beside the path, so
nothing is lost and nothing doubled.
"""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import field, replace
from typing import Literal

from tui_agent.agent.channel import Journal
from tui_agent.agent.events import (
    AnswerDelta,
    AnswerWasReasoning,
    CostKnown,
    LiveAnswer,
    PromptProgress,
    ReasoningProgress,
    RequestStarted,
    RetryScheduled,
    ToolCallProgress,
)
from tui_agent.agent.left_out import edits_without
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.repeated_text import (
    CHECKED_CHARS,
    Repetition,
    find_repeated_calls,
    find_repetition,
)
from tui_agent.context.request import ModelRequest, calls_in
from tui_agent.lazy import dataclass
from tui_agent.model import protocol
from tui_agent.model.protocol import (
    ErrorKind,
    Finished,
    FinishReason,
    ModelError,
    ModelEvent,
    PartLeftOut,
    ReasoningDelta,
    TextDelta,
    TextWasReasoning,
    ToolCallDelta,
    ToolCallReady,
    UsageReport,
)
from tui_agent.model.steps import read_step
from tui_agent.model.text_calls import Check, read_text_calls
from tui_agent.model.waits import LOADING_DELAY, LOADING_PATIENCE, retry_delay
from tui_agent.model.written_calls import CallIds, plain_arguments, plain_name
from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    Usage,
)
from tui_agent.session.records import DraftText, Purpose

DRAFT_SECONDS = 0.2
"""How long streamed text may wait before it is in the store; 250 ms is promised."""


class RepeatingAnswer(Exception):  # noqa: N818 - not an error: the answer so far is kept and the user asked
    """The model kept repeating itself and was stopped.

    Its answer is appended, each round but two cut.
    """

    def __init__(self, answer: AssistantEntry, repetition: Repetition) -> None:
        super().__init__(repetition.reason)
        self.answer = answer
        self.repetition = repetition


@dataclass
class _Attempt:
    """One try at an answer, as far as it has come."""

    model: str
    estimate: int
    started_at: int
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    writing: dict[int, ToolCallProgress] = field(default_factory=dict)
    calls: list[ToolCallPart] = field(default_factory=list)
    usage: Usage | None = None
    cost: float | None = None
    finished: Finished | None = None
    first_token_at: int | None = None
    tools: frozenset[str] = frozenset()
    """Names of the request's tools: rows of text that name one are calls."""
    unchecked: int = 0
    repetition: Repetition | None = None

    def write(self, piece: ToolCallDelta) -> ToolCallProgress:
        """Take a piece of a call that is being written; return the call so far."""
        before = self.writing.get(piece.index) or ToolCallProgress("", "", "")
        call_id = piece.call_id or before.call_id
        tool = plain_name(piece.tool) or before.tool
        progress = ToolCallProgress(call_id, tool, before.arguments + piece.arguments)
        self.writing[piece.index] = progress
        return progress

    def take_as_reasoning(self) -> str:
        """Make the text so far reasoning, and return it."""
        text = "".join(self.text)
        self.reasoning.append(text)
        self.text.clear()
        return text

    def add(self, said: list[str], text: str, *, is_watched: bool) -> None:
        """Add text to what is said or thought, and look for repetition at its end if it is watched."""
        said.append(text)
        self.unchecked += len(text)
        if not is_watched or self.unchecked < CHECKED_CHARS:
            return
        self.unchecked = 0
        said[:] = ["".join(said)]
        self.repetition = find_repetition(said[0]) or find_repeated_calls(said[0], self.tools)
        if self.repetition is not None:
            said[:] = [said[0][: -self.repetition.extra]]

    def take_text_calls(self, request: ModelRequest, check: Check, *, in_steps: bool) -> str:
        """Move calls that were written as text out of it.

        Return why they can't be read, "" if they can.
        """
        asked = (request.tools or in_steps) and request.tool_choice == "auto"
        if (
            self.calls
            or not asked
            or self.finished is None
            or self.finished.reason not in {"stop", "tool_calls"}
        ):
            return ""
        text = "".join(self.text)
        if in_steps:
            found = read_step(text, request.messages)
        else:
            found = read_text_calls(text, {tool.name: tool for tool in request.tools}, check)
        if found is None or found.problem:
            return "" if found is None else found.problem
        ids = CallIds(calls_in(request.messages))
        self.text[:] = [found.text] if found.text else []
        for call in found.calls:
            part = ToolCallPart(
                call_id=ids.take(None), tool=call.tool, arguments=call.arguments, as_text=True
            )
            self.calls.append(part)
        return ""

    def entry(self, *, error: str | None = None, interrupted: bool = False) -> AssistantEntry:
        parts: list[AssistantPart] = []
        blob = self.finished.reasoning_blob if self.finished else None
        if self.reasoning or blob:
            parts.append(ReasoningPart(text="".join(self.reasoning), blob=blob, model=self.model))
        if text := "".join(self.text):
            parts.append(TextPart(text=text))
        parts.extend(self.calls)
        finish: FinishReason | Literal["interrupted", "error"] = "stop"
        if self.finished:
            finish = self.finished.reason
        if interrupted:
            finish = "interrupted"
        elif error:
            finish = "error"
        elif finish == "stop" and self.calls:
            finish = "tool_calls"
        return AssistantEntry(
            parts=tuple(parts),
            model=self.model,
            usage=self.usage,
            cost=self.cost,
            finish=finish,
            error=error or self._refusal(),
            interrupted=interrupted,
            estimate=self.estimate,
            started_at=self.started_at,
            first_token_at=self.first_token_at,
        )

    def _refusal(self) -> str | None:
        """Return why the provider refused to answer.

        None where it didn't, or where the answer's text says it.
        """
        if self.finished is None or self.finished.reason != "content_filter":
            return None
        if self.finished.note:
            return f"The provider refused to answer: {self.finished.note}"
        if "".join(self.text).strip():
            return None
        return "The provider refused to answer and gave no reason."


class Answerer:
    """Gets one answer at a time."""

    def __init__(self, journal: Journal, ports: AgentPorts) -> None:
        self._journal = journal
        self._session = journal.session
        self._ports = ports
        self._channel = journal.channel
        self._attempt: _Attempt | None = None
        self._draft_timer: asyncio.TimerHandle | None = None
        self._unstored: tuple[int | None, AssistantEntry] | None = None
        """An answer that the store did not take, with the leaf it belongs below."""
        self.watches_repetition = True
        """Whether an answer that repeats itself is stopped."""
        self.text_call_problem = ""
        """Why calls that the last answer wrote as text can't be read; "" if all can, or there are none."""

    @property
    def live(self) -> LiveAnswer | None:
        """The part of the answer streamed so far; None between answers."""
        if (attempt := self._attempt) is None:
            return None
        return LiveAnswer(
            "".join(attempt.text), "".join(attempt.reasoning), list(attempt.writing.values())
        )

    async def answer(
        self, request: ModelRequest, *, step: int, estimate: int, check: Check
    ) -> AssistantEntry:
        """Send a request until it is answered and append the answer at the leaf.

        ``estimate`` is the program's own count of the request in tokens; ``check`` judges calls
        that the model wrote as text. A partial answer is appended too when cancelled or raising
        ModelError (out of retries), RepeatingAnswer.
        """
        number = 1
        loading = 0.0
        self.text_call_problem = ""
        while True:
            names = frozenset(tool.name for tool in request.tools)
            attempt = _Attempt(request.model, estimate, self._ports.clock(), tools=names)
            self._attempt = attempt
            self._channel.emit(RequestStarted(step=step, model=attempt.model))
            try:
                await self._stream(request, attempt)
            except asyncio.CancelledError:
                self._finish(attempt.entry(interrupted=True))
                raise
            except ModelError as error:
                is_loading = error.kind is ErrorKind.LOADING
                delay = self._delay(error, number, loading)
                if delay is None:
                    self._finish(attempt.entry(error=error.message))
                    raise
                waits = RetryScheduled(
                    number,
                    self._ports.retry.attempts,
                    delay,
                    reason=error.message,
                    kept=self._keep_failed(attempt, error),
                    loading=loading if is_loading else None,
                )
                self._channel.emit(waits)
                try:
                    await self._ports.sleep(delay)
                except asyncio.CancelledError:
                    nothing = _Attempt(request.model, estimate, attempt.started_at)
                    self._finish(nothing.entry(error=error.message, interrupted=True))
                    raise
                if is_loading:
                    loading += delay
                else:
                    number += 1
            else:
                return self._take_answer(attempt, request, check)

    def _delay(self, error: ModelError, number: int, loading: float) -> float | None:
        """Return the seconds until the next attempt, None where there is none.

        ``number`` attempts failed; a server loaded its model for ``loading`` seconds.
        """
        if error.kind is not ErrorKind.LOADING:
            return retry_delay(self._ports.retry, number, error, self._ports.random)
        return LOADING_DELAY if loading < LOADING_PATIENCE else None

    def _take_answer(
        self, attempt: _Attempt, request: ModelRequest, check: Check
    ) -> AssistantEntry:
        """Append the answer of an attempt that ended; raises RepeatingAnswer."""
        if attempt.repetition is not None:
            entry = self._finish(attempt.entry(interrupted=True))
            raise RepeatingAnswer(entry, attempt.repetition)
        in_steps = self._ports.directory.traits(request.model).tiny
        self.text_call_problem = attempt.take_text_calls(request, check, in_steps=in_steps)
        return self._finish(attempt.entry())

    async def _stream(self, request: ModelRequest, attempt: _Attempt) -> None:
        async with aclosing(self._ports.client.stream(request)) as events:
            async for event in events:
                if isinstance(event, PartLeftOut):
                    self._leave_out(event)
                    continue
                for piece in _pieces(event) if self.watches_repetition else (event,):
                    self._take(attempt, piece)
                    if attempt.repetition is not None:
                        return
        if attempt.finished is None:
            raise ModelError(ErrorKind.NETWORK, "The answer broke off before its end.")

    def _take(self, attempt: _Attempt, event: ModelEvent) -> None:
        if isinstance(event, protocol.PromptProgress):
            self._channel.emit(PromptProgress(event.processed, event.total))
            return
        if isinstance(event, protocol.PlanSeen):
            self._tell_of_plan(attempt.model, event)
            return
        if attempt.first_token_at is None and not isinstance(event, UsageReport):
            attempt.first_token_at = self._ports.clock()
        match event:
            case TextDelta(text=text):
                self._channel.emit(AnswerDelta(text))
                attempt.add(attempt.text, text, is_watched=self.watches_repetition)
            case ReasoningDelta(text=text):
                self._channel.emit(ReasoningProgress(text))
                attempt.add(attempt.reasoning, text, is_watched=self.watches_repetition)
            case TextWasReasoning():
                self._channel.emit(AnswerWasReasoning(attempt.take_as_reasoning()))
            case ToolCallDelta():
                self._channel.emit(attempt.write(event))
            case ToolCallReady(call_id=call_id, tool=tool, arguments=arguments):
                attempt.calls.append(
                    ToolCallPart(
                        call_id=call_id,
                        tool=plain_name(tool),
                        arguments=plain_arguments(arguments),
                    )
                )
            case UsageReport(usage=usage, cost=cost):
                attempt.usage = usage
                attempt.cost = cost
            case Finished():
                attempt.finished = event
        if self._draft_timer is None:
            self._draft_timer = asyncio.get_running_loop().call_later(
                DRAFT_SECONDS, self._save_draft
            )

    def _tell_of_plan(self, model: str, seen: protocol.PlanSeen) -> None:
        """Warn when more of the user's plan at the provider is used up, by steps."""
        plan = self._ports.directory.plan
        for sentence in plan.take(model, seen.windows, now=self._ports.clock() / 1000):
            self._channel.say(sentence, "warning")

    def _leave_out(self, refused: PartLeftOut) -> None:
        """Tell that a request went out without parts, and leave those of this session out of later ones."""
        for message in refused.messages:
            self._channel.say(message)
        for edit in edits_without(self._session.active_path(), refused):
            self._journal.append(edit)

    def _save_draft(self) -> None:
        self._draft_timer = None
        if (attempt := self._attempt) is not None:
            draft = DraftText(
                text="".join(attempt.text),
                reasoning="".join(attempt.reasoning),
                calls=tuple(attempt.calls),
                model=attempt.model,
                started_at=attempt.started_at,
                estimate=attempt.estimate,
            )
            self._session.save_draft(draft)

    def store_again(self) -> None:
        """Append an answer that could not be stored when it came, unless the user went elsewhere meanwhile."""
        if self._unstored is not None:
            leaf, entry = self._unstored
            self._unstored = None
            if leaf == self._session.leaf:
                self._finish(entry)

    def _finish(self, entry: AssistantEntry) -> AssistantEntry:
        self._end_attempt()
        self._unstored = self._session.leaf, entry
        return self._journal.append(entry, then=lambda: setattr(self, "_unstored", None))

    def _keep_failed(self, attempt: _Attempt, error: ModelError) -> int | None:
        """Charge a failed attempt and keep its answer beside the path, because the next one repeats it.

        Returns the id of its entry, None where it has no text and no calls.
        """
        self._end_attempt()
        tokens = attempt.usage.total if attempt.usage is not None else 0
        self._ports.meter.spend(attempt.cost, tokens)
        if attempt.text or attempt.calls:
            failed = attempt.entry(error=error.message)
            return self._session.append(failed, moves_leaf=False).id
        self._session.clear_draft()
        if attempt.cost:
            self._session.add_cost(attempt.cost, Purpose.ANSWERS)
            self._channel.emit(CostKnown())
        return None

    def _end_attempt(self) -> None:
        self._attempt = None
        if self._draft_timer is not None:
            self._draft_timer.cancel()
            self._draft_timer = None


def _pieces(event: ModelEvent) -> Iterator[ModelEvent]:
    """Cut text that came in one burst, so that it is looked at for repetition as often as text that comes slowly."""
    if not isinstance(event, TextDelta | ReasoningDelta) or len(event.text) <= CHECKED_CHARS:
        yield event
        return
    for start in range(0, len(event.text), CHECKED_CHARS):
        yield replace(event, text=event.text[start : start + CHECKED_CHARS])
