"""Streams the model's answers into assistant entries: saves drafts, and retries failed requests.

The streamed text is saved as a draft within a quarter of a second. An answer that ended, complete
or not, is appended as an entry. If a failed attempt is retried and has text or calls, it is stored
as a branch of its own. An answer that repeats itself is stopped. If the provider refuses parts of a
request, context edits leave these out of later requests. `Loop` decides what happens after an
answer, an overflow or an error that is not retried.
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
    LiveAnswer,
    PromptProgress,
    ReasoningProgress,
    RequestStarted,
    RetryScheduled,
    ToolCallProgress,
)
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.refused_parts import edits_without
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
from tui_agent.model.streamed_calls import CallIds, plain_arguments, plain_name
from tui_agent.model.text_calls import Check, read_text_calls
from tui_agent.model.waits import LOADING_DELAY, LOADING_PATIENCE, retry_delay
from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    Usage,
)
from tui_agent.session.errors import StoreError
from tui_agent.session.records import DraftText, Purpose

DRAFT_SECONDS = 0.2
"""Maximum number of seconds before streamed text is saved as a draft.

The documented limit is 0.25.
"""


class RepeatingAnswer(Exception):  # noqa: N818 - not an error: the answer so far is kept and the user asked
    """Raised when an answer was stopped because it repeats itself.

    ``answer`` is the appended entry, whose text is cut after the second round of the repetition.
    """

    def __init__(self, answer: AssistantEntry, repetition: Repetition) -> None:
        super().__init__(repetition.reason)
        self.answer = answer
        self.repetition = repetition


@dataclass
class _Attempt:
    """One attempt to get an answer, with what was streamed so far."""

    model: str
    estimate: int
    """The number of tokens in the request as counted by this program."""
    started_at: int
    """Time when the request was sent, in milliseconds since the epoch.

    ``first_token_at`` is in the same unit.
    """
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    writing: dict[int, ToolCallProgress] = field(default_factory=dict)
    calls: list[ToolCallPart] = field(default_factory=list)
    usage: Usage | None = None
    cost: float | None = None
    finished: Finished | None = None
    first_token_at: int | None = None
    tools: frozenset[str] = frozenset()
    """Names of the request's tools; used to recognise tool calls that the model wrote as text."""
    stops_repetition: bool = False
    unchecked: int = 0
    """Number of characters streamed since the text was last checked for repetition."""
    repetition: Repetition | None = None

    def write(self, piece: ToolCallDelta) -> ToolCallProgress:
        """Add a streamed piece to its tool call, and return the part of the call written so far."""
        before = self.writing.get(piece.index) or ToolCallProgress("", "", "")
        call_id = piece.call_id or before.call_id
        tool = plain_name(piece.tool) or before.tool
        progress = ToolCallProgress(call_id, tool, before.arguments + piece.arguments)
        self.writing[piece.index] = progress
        return progress

    def take_as_reasoning(self) -> str:
        """Turn the text streamed so far into reasoning, and return that text."""
        text = "".join(self.text)
        self.reasoning.append(text)
        self.text.clear()
        return text

    def add(self, streamed: list[str], text: str) -> None:
        """Add a piece to ``streamed``, the pieces of the text or of the reasoning.

        If ``stops_repetition`` is set, check for a repetition every `CHECKED_CHARS` characters. If
        there is one, set ``repetition`` and cut the text after the second round.
        """
        streamed.append(text)
        self.unchecked += len(text)
        if not self.stops_repetition or self.unchecked < CHECKED_CHARS:
            return
        self.unchecked = 0
        whole = "".join(streamed)
        self.repetition = find_repetition(whole) or find_repeated_calls(whole, self.tools)
        if self.repetition is not None:
            whole = whole[: -self.repetition.extra]
        streamed[:] = [whole]

    def take_text_calls(self, request: ModelRequest, check: Check, *, in_steps: bool) -> str:
        """Move tool calls that the model wrote as text from ``text`` to ``calls``.

        With ``in_steps``, the model is too small for tools and writes its steps as text. ``check``
        returns why a tool can't accept given arguments. Returns why the calls can't be read; "" if
        they were read or there are none. Does nothing if the answer has ordinary calls or was cut
        off, or if the request allows no calls.
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
        finish: FinishReason | Literal["interrupted", "repetition", "error"] = "stop"
        if self.finished:
            finish = self.finished.reason
        if interrupted and self.repetition is not None:
            finish = "repetition"
        elif interrupted:
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
        """Return a sentence that says why the provider refused to answer.

        None if it didn't refuse, or if it gave no reason and there is some text.
        """
        if self.finished is None or self.finished.reason != "content_filter":
            return None
        if self.finished.note:
            return f"The provider refused to answer: {self.finished.note}"
        if "".join(self.text).strip():
            return None
        return "The provider refused to answer and gave no reason."


@dataclass
class _Retries:
    """Counts the attempts to get one answer."""

    number: int = 1
    """Number of the current attempt, without those made while the server loaded the model."""
    loading: float = 0.0
    """Number of seconds for which the client has waited for a server to load the model."""


class Answerer:
    """Requests the model's answers for one session, one at a time, and appends them."""

    def __init__(self, journal: Journal, ports: AgentPorts) -> None:
        self._journal = journal
        self._session = journal.session
        self._ports = ports
        self._channel = journal.channel
        self._attempt: _Attempt | None = None
        self._draft_timer: asyncio.TimerHandle | None = None
        self._unstored: tuple[int | None, AssistantEntry] | None = None
        """The answer that could not be stored, with its parent's id; None if there is none."""
        self.text_call_problem = ""
        """Why the tool calls that the model wrote in the text of its last answer can't be read.

        The reason is "" if they can be read or there are none.
        """

    @property
    def live(self) -> LiveAnswer | None:
        """The part of the answer that was streamed so far; None if no answer is being streamed."""
        if (attempt := self._attempt) is None:
            return None
        return LiveAnswer(
            "".join(attempt.text), "".join(attempt.reasoning), list(attempt.writing.values())
        )

    async def answer(
        self,
        request: ModelRequest,
        *,
        step: int,
        estimate: int,
        check: Check,
        stops_repetition: bool,
    ) -> AssistantEntry:
        """Send a request, and send it again after temporary errors.

        Appends the answer at the leaf and returns it. ``estimate`` is the program's own count of
        the request in tokens. ``check`` returns why a tool can't accept given arguments; it is used
        for calls that the model wrote as text. Before an error is raised or the task is cancelled,
        the answer so far is appended.

        Raises:
            ModelError: the request failed and is not retried any more.
            RepeatingAnswer: the answer repeats itself, and ``stops_repetition`` is set.
        """
        retries = _Retries()
        self.text_call_problem = ""
        names = frozenset(tool.name for tool in request.tools)
        while True:
            attempt = _Attempt(
                request.model,
                estimate,
                self._ports.clock(),
                tools=names,
                stops_repetition=stops_repetition,
            )
            self._attempt = attempt
            self._channel.emit(RequestStarted(step=step, model=attempt.model))
            try:
                await self._stream(request, attempt)
            except asyncio.CancelledError:
                self._finish(attempt.entry(interrupted=True))
                raise
            except ModelError as error:
                await self._wait_for_retry(attempt, error, retries)
            except Exception as error:
                # Keep what was streamed, even after an internal error or if the disk is full.
                self._finish(attempt.entry(error=f"{type(error).__name__}: {error}"))
                raise
            else:
                return self._take_answer(attempt, request, check)

    async def _wait_for_retry(
        self, attempt: _Attempt, error: ModelError, retries: _Retries
    ) -> None:
        """Announce the next attempt at a request, and wait until it is due.

        If the request is not retried, append the failed answer and raise the error.
        """
        is_loading = error.kind is ErrorKind.LOADING
        delay = self._delay(error, retries)
        if delay is None:
            self._finish(attempt.entry(error=error.message))
            raise error
        self._channel.emit(
            RetryScheduled(
                retries.number,
                self._ports.retry.attempts,
                delay,
                reason=error.message,
                kept=self._keep_failed(attempt, error),
                loading=retries.loading if is_loading else None,
            )
        )
        try:
            await self._ports.sleep(delay)
        except asyncio.CancelledError:
            nothing = _Attempt(attempt.model, attempt.estimate, attempt.started_at)
            self._finish(nothing.entry(error=error.message, interrupted=True))
            raise
        if is_loading:
            retries.loading += delay
        else:
            retries.number += 1

    def _delay(self, error: ModelError, retries: _Retries) -> float | None:
        """Return the seconds until the next attempt; None if the request is not retried."""
        if error.kind is not ErrorKind.LOADING:
            return retry_delay(self._ports.retry, retries.number, error, self._ports.random)
        return LOADING_DELAY if retries.loading < LOADING_PATIENCE else None

    def _take_answer(
        self, attempt: _Attempt, request: ModelRequest, check: Check
    ) -> AssistantEntry:
        """Append the answer of an attempt that raised no error, and return it.

        Raises RepeatingAnswer if the answer was stopped for repetition.
        """
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
                for piece in _pieces(event) if attempt.stops_repetition else (event,):
                    self._take(attempt, piece)
                    if attempt.repetition is not None:
                        return
        if attempt.finished is None:
            raise ModelError(ErrorKind.NETWORK, "The connection ended in the middle of the answer.")

    def _take(self, attempt: _Attempt, event: ModelEvent) -> None:
        if isinstance(event, protocol.PromptProgress):
            self._channel.emit(PromptProgress(event.processed, event.total))
            return
        if isinstance(event, protocol.PlanSeen):
            self._warn_about_quota(attempt.model, event)
            return
        if attempt.first_token_at is None and not isinstance(event, UsageReport):
            attempt.first_token_at = self._ports.clock()
        match event:
            case TextDelta(text=text):
                self._channel.emit(AnswerDelta(text))
                attempt.add(attempt.text, text)
            case ReasoningDelta(text=text):
                self._channel.emit(ReasoningProgress(text))
                attempt.add(attempt.reasoning, text)
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

    def _warn_about_quota(self, model: str, seen: protocol.PlanSeen) -> None:
        """Warn the user each time the used part of their provider's quota reaches a threshold."""
        quota = self._ports.directory.plan
        for sentence in quota.take(model, seen.windows, now=self._ports.clock() / 1000):
            self._channel.say(sentence, "warning")

    def _leave_out(self, refused: PartLeftOut) -> None:
        """Tell the user which parts the provider refused, and leave them out of later requests."""
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
        """Append the answer that could not be stored, unless the session's leaf has moved since."""
        if self._unstored is not None:
            leaf, entry = self._unstored
            self._unstored = None
            if leaf == self._session.leaf:
                self._finish(entry)

    def _finish(self, entry: AssistantEntry) -> AssistantEntry:
        """Append an answer and return it as stored.

        An answer that can't be stored is kept for `store_again`, and StoreError is raised.
        """
        self._end_attempt()
        leaf = self._session.leaf
        try:
            return self._journal.append(entry)
        except StoreError:
            self._unstored = leaf, entry
            raise

    def _keep_failed(self, attempt: _Attempt, error: ModelError) -> int | None:
        """Count the cost of a failed attempt, and store its answer below the leaf.

        The leaf does not move. Returns the id of the answer's entry. If the answer has no text and
        no calls, stores no entry and returns None.
        """
        self._end_attempt()
        tokens = attempt.usage.total if attempt.usage is not None else 0
        self._ports.meter.spend(attempt.cost, tokens)
        if attempt.text or attempt.calls:
            failed = attempt.entry(error=error.message)
            return self._session.append(failed, moves_leaf=False).id
        self._session.clear_draft()
        if attempt.cost:
            self._journal.add_cost(attempt.cost, Purpose.ANSWERS)
        return None

    def _end_attempt(self) -> None:
        self._attempt = None
        if self._draft_timer is not None:
            self._draft_timer.cancel()
            self._draft_timer = None


def _pieces(event: ModelEvent) -> Iterator[ModelEvent]:
    """Yield the event, split into several events if its text is long.

    The text streamed so far is checked for repetition once after each event.
    """
    if not isinstance(event, TextDelta | ReasoningDelta) or len(event.text) <= CHECKED_CHARS:
        yield event
        return
    for start in range(0, len(event.text), CHECKED_CHARS):
        yield replace(event, text=event.text[start : start + CHECKED_CHARS])
