"""Decides which calls to make for a summary, and judges their answers, without making any call.

``summarise`` is a generator: it yields the calls to make (they may run at the same time), is sent
their answers, and returns the summary or why there is none. It decides on retries, chunks and
merging; the caller only talks to the model.
"""

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import Literal

from tui_agent.context.anchors import names_in
from tui_agent.context.preserved import CountText, fit
from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.context.verdict import Verdict, judge
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.safe_text import readable

InputMode = Literal["live", "serialised"]

THINKING = "[Assistant thinking]: "
"""Prefix of a block with an answer's raw thinking, which some providers refuse in a prompt."""

ATTEMPTS = 2
"""Times a call is made if its answer is rejected."""
MIN_ANSWER_CHARS = 20
"""Shortest summary that is accepted, in characters ("No prior history." says nothing)."""
_CACHED_PRICE = 0.1
"""Price of a token read from the provider's cache, relative to an uncached one."""
_MARGIN = 0.05
"""Share of the summariser's window left free, because sizes are estimates."""
_MIN_CHUNK_TOKENS = 400
"""Least tokens of the conversation in one call, however small the window."""
_MIN_WINDOW = 1_024
"""Smallest window that is assumed when calls are refused as too long, in tokens."""
_WORDS_PER_TOKEN = 0.7
"""Converts a summary's length from tokens into the words asked for."""
_HEADING = LazyPattern(r"^\s*(?:#{1,6}\s+|\*\*)([^\n*:]{3,60}?)\s*(?:\*\*:?|:)?\s*$", re.MULTILINE)
_NOTE_HEADINGS = (
    "Goal, Progress, Done, In Progress, Blocked, Key Decisions, Next Steps, Critical Context"
)
_FAULTS = {
    Verdict.CALLS: "it called a tool instead of answering",
    Verdict.PROMISED: "it called a tool instead of answering",
    Verdict.CUT: "it was cut off at its maximum length",
    Verdict.SILENT: "it says nothing",
    Verdict.THINKING: "it holds thinking only",
    Verdict.REFUSED: "it was refused",
}


@frozen
class SummaryPrompts:
    """The prompts of a summariser, each loaded from the file of its name."""

    compaction: str
    compaction_update: str
    turn_prefix: str
    branch_summary: str
    merge_chunks: str

    @classmethod
    def load(cls, prompt: Callable[[str], str]) -> "SummaryPrompts":
        return cls(**{field.name: prompt(field.name) for field in fields(cls)})


@frozen
class SummariserLimits:
    """The summariser's window and the length of a summary, in tokens."""

    window: int
    summary: int

    @property
    def max_output(self) -> int:
        """Most tokens of an answer: twice the target, because a cut-off answer is useless."""
        return min(max(2 * self.summary, 1_024), max(256, self.window // 4))

    def room(self, prompt_tokens: int) -> int:
        """Return the tokens left for the conversation in one call."""
        return round(self.window * (1 - _MARGIN)) - self.max_output - prompt_tokens


@frozen
class SummaryTask:
    """Text blocks of a conversation to summarise with one of the prompts.

    ``previous`` is the summary to update; without blocks it is the result. ``focus`` is what the
    user asked to stress. ``share`` is this task's part of the whole summary's length. ``live`` has
    the model summarise the live conversation first; the blocks are used if that answer is rejected.
    ``begins`` is the first message of the part to summarise in a live conversation.
    """

    prompt: Literal["compaction", "compaction_update", "turn_prefix", "branch_summary"]
    blocks: tuple[str, ...] = ()
    previous: str = ""
    focus: str = ""
    share: float = 1.0
    live: bool = False
    begins: str = ""


@frozen
class SummaryCall:
    """One call to make; ``attempt`` counts from 1.

    A live call appends ``instruction`` and ``text`` to the conversation's own request; otherwise
    they are the system message and the user message.
    """

    instruction: str
    text: str
    max_output_tokens: int
    live: bool = False
    attempt: int = 1
    about: tuple[str, ...] = ()
    """The text blocks to summarise, if ``text`` does not hold them."""


@frozen
class SummaryAnswer:
    """A model's answer: ``finish`` as the model reported it, ``error`` if the call failed."""

    text: str = ""
    finish: str = "stop"
    tool_calls: int = 0
    is_thinking: bool = False
    error: str | None = None
    too_long: bool = False
    """Whether the call was refused because it is longer than the model accepts."""
    refused: bool = False
    """Whether the provider refused the call because of its content."""

    @property
    def is_refusal(self) -> bool:
        return self.refused or self.finish == "content_filter"


@frozen
class SummaryFailure:
    """Why there is no summary, as a sentence for the user."""

    reason: str
    too_long: bool = False
    """Whether a call was longer than the summariser accepts."""
    is_unfit: bool = False
    """Whether the model answered, but not with a summary: then one is made by rule."""
    thinking_refused: bool = False
    """Whether a call with raw thinking in it was refused."""


Summarising = Generator[tuple[SummaryCall, ...], Sequence[SummaryAnswer], "str | SummaryFailure"]
"""Yields calls to make, is sent their answers in the same order, and returns the summary."""


def choose_input(
    setting: Literal["auto", "live", "serialised"],
    limits: SummariserLimits,
    *,
    live_tokens: int,
    serialised_tokens: int,
    cache_warm: bool,
) -> InputMode:
    """Choose whether the summariser reads the live conversation or its text.

    ``live_tokens`` is the size of the conversation's next request, ``cache_warm`` whether the
    summariser is the conversation's own model with its prefix still cached. "live" needs room for
    the instruction and the answer; "auto" chooses whichever costs less.
    """
    fits = live_tokens + limits.max_output + 1_000 <= limits.window * (1 - _MARGIN)
    if setting == "serialised" or not fits:
        return "serialised"
    if setting == "live":
        return "live"
    if cache_warm and live_tokens * _CACHED_PRICE <= serialised_tokens:
        return "live"
    return "serialised"


def rejection(answer: SummaryAnswer, call: SummaryCall | None = None) -> str | None:
    """Return why an answer can't be stored as a summary, None if it can.

    Without ``call`` the answer's content is not compared with what was to be summarised.
    """
    if answer.error:
        return answer.error
    text = answer.text.strip()
    verdict = judge(answer.finish, text, calls=answer.tool_calls, is_thinking=answer.is_thinking)
    if verdict is not Verdict.WHOLE:
        return _FAULTS.get(verdict, f"it ended with {answer.finish}")
    if answer.finish == "tool_calls":
        return _FAULTS[Verdict.CALLS]
    if len(text) < MIN_ANSWER_CHARS:
        return _FAULTS[Verdict.SILENT]
    if call is not None and not (_has_headings(text, call) or _has_names(text, call)):
        return "it is no summary: it has none of the headings asked for and no name of the conversation"
    return None


def _has_headings(text: str, call: SummaryCall) -> bool:
    """Whether a summary has a heading that its call or the standard form of a summary names."""
    asked = f"{_NOTE_HEADINGS}\n{call.instruction}\n{call.text}".casefold()
    return any(heading.casefold() in asked for heading in _HEADING.findall(text))


def _has_names(text: str, call: SummaryCall) -> bool:
    """Whether a summary holds a name from the text that it summarises."""
    known = "\n".join((*call.about, call.text))
    return any(name in known for name in names_in(text))


def summarise(
    tasks: Sequence[SummaryTask],
    prompts: SummaryPrompts,
    limits: SummariserLimits,
    count: CountText,
) -> Summarising:
    """Summarise the tasks, and join the results in order; see the module for how to drive it."""
    controller = _Controller(prompts, limits, count)
    results: dict[int, str] = {}
    for index, task in enumerate(tasks):
        if task.live:
            (answer,) = yield (controller.calls(task, live=True))
            if rejection(answer, controller.calls(task, live=True)[0]) is None:
                results[index] = answer.text.strip()
            elif answer.is_refusal:
                tasks = [_without_thinking(each) for each in tasks]
        elif not task.blocks:
            results[index] = task.previous
    while True:
        calls = {at: controller.calls(one) for at, one in enumerate(tasks) if at not in results}
        texts = yield from _ask(list(chain(*calls.values())), controller.limits)
        if not isinstance(texts, SummaryFailure):
            break
        plain = [_without_thinking(task) for task in tasks]
        if texts.thinking_refused and plain != list(tasks):
            tasks = plain
            continue
        if not texts.too_long or controller.limits.window < 2 * _MIN_WINDOW:
            return texts
        # The model counts more tokens than this program: assume half the window.
        controller = replace(
            controller, limits=replace(controller.limits, window=controller.limits.window // 2)
        )
    left = iter(texts)
    for index, row in calls.items():
        merged = yield from _merge(tasks[index], [next(left) for _ in row], controller)
        if isinstance(merged, SummaryFailure):
            return merged
        results[index] = merged
    return "\n\n".join(results[index] for index in range(len(tasks)) if results[index])


def _without_thinking(task: SummaryTask) -> SummaryTask:
    return replace(
        task, blocks=tuple(block for block in task.blocks if not block.startswith(THINKING))
    )


def request_before(live: ModelRequest, entry_id: int) -> ModelRequest | None:
    """Return the part of a request before an entry, None if no message begins with that entry."""
    at = next((at for at, message in enumerate(live.messages) if entry_id in message.origin), 0)
    if not at or min(live.messages[at].origin) < entry_id:
        return None
    return replace(live, messages=live.messages[:at])


def build_request(call: SummaryCall, model: str, live: ModelRequest | None = None) -> ModelRequest:
    """Return the request of a call; a live call needs the conversation's next request ``live``.

    A live request keeps its tools and tool choice, because a change would miss the provider's
    cache; an answer that calls a tool is rejected.
    """
    if call.live and live is not None:
        asked = Message(
            "user", (ContentText("\n\n".join(filter(None, [call.instruction, call.text]))),)
        )
        return replace(
            live, messages=(*live.messages, asked), max_output_tokens=call.max_output_tokens
        )
    messages = (
        Message("system", (ContentText(call.instruction),)),
        # Terminal escapes mean nothing in a summary.
        Message("user", (ContentText(readable(call.text)),)),
    )
    return ModelRequest(
        model=model, messages=messages, max_output_tokens=call.max_output_tokens, tool_choice="none"
    )


def chunk(blocks: Sequence[str], budget: int, count: CountText) -> tuple[str, ...]:
    """Join blocks, in order, into texts of at most ``budget`` tokens each.

    A block that is too long for one text is cut in its middle.
    """
    chunks: list[str] = []
    current: list[str] = []
    used = 0
    for block in blocks:
        text = fit(block, budget - 2, count)
        cost = count(text) + 2
        if current and used + cost > budget:
            chunks.append("\n\n".join(current))
            current = []
            used = 0
        current.append(text)
        used += cost
    if current:
        chunks.append("\n\n".join(current))
    return tuple(chunks)


@frozen
class _Controller:
    """Writes the calls for tasks, within a summariser's limits."""

    prompts: SummaryPrompts
    limits: SummariserLimits
    count: CountText

    def calls(self, task: SummaryTask, *, live: bool = False) -> tuple[SummaryCall, ...]:
        """Return the calls of a task: one, or one for each chunk if the blocks don't fit the window."""
        instruction: str = getattr(self.prompts, task.prompt)
        frame = self._frame(task)
        if live:
            call = self._call(instruction, _tagged("begins-with", task.begins), frame, live=True)
            return (replace(call, about=task.blocks),)
        previous = _tagged(
            "previous-summary", fit(task.previous, self.limits.window // 4, self.count)
        )
        texts = chunk(task.blocks, self._room(instruction, previous, frame), self.count)
        if len(texts) == 1:
            return (self._call(instruction, previous, _tagged("conversation", texts[0]), frame),)
        # Chunks are summarised without the earlier summary; it joins when they are merged.
        alone = instruction
        if task.prompt == "compaction_update":
            alone = self.prompts.compaction
        return tuple(self._call(alone, _tagged("conversation", text), frame) for text in texts)

    def merging(self, task: SummaryTask, texts: Sequence[str]) -> tuple[SummaryCall, ...]:
        """Return calls that merge texts, at least two in each but the last."""
        frame = self._frame(task)
        room = self._room(self.prompts.merge_chunks, frame)
        parts = [_tagged("part", fit(text, room // 2 - 16, self.count)) for text in texts]
        return tuple(
            self._call(self.prompts.merge_chunks, group, frame)
            for group in chunk(parts, room, self.count)
        )

    def _room(self, *texts: str) -> int:
        taken = sum(map(self.count, texts)) + 32
        return max(_MIN_CHUNK_TOKENS, self.limits.room(taken))

    def _frame(self, task: SummaryTask) -> str:
        """Return the focus and the length of a task's summary, as tagged text."""
        target = max(64, round(self.limits.summary * task.share))
        length = _tagged("length", f"{round(target * _WORDS_PER_TOKEN)} words")
        return "\n\n".join(filter(None, [_tagged("focus", task.focus), length]))

    def _call(self, instruction: str, *texts: str, live: bool = False) -> SummaryCall:
        return SummaryCall(
            instruction, "\n\n".join(filter(None, texts)), self.limits.max_output, live=live
        )


def _merge(task: SummaryTask, parts: Sequence[str], controller: _Controller) -> Summarising:
    """Merge the summaries of chunks, in several rounds if they do not fit into one call."""
    texts = list(parts)
    if len(texts) > 1 and task.previous:
        texts.insert(0, task.previous)
    while len(texts) > 1:
        answers = yield from _ask(controller.merging(task, texts), controller.limits)
        if isinstance(answers, SummaryFailure):
            return answers
        texts = answers
    return texts[0]


def _ask(
    calls: Sequence[SummaryCall], limits: SummariserLimits
) -> Generator[tuple[SummaryCall, ...], Sequence[SummaryAnswer], "list[str] | SummaryFailure"]:
    """Make calls until all have an acceptable answer, or one has none after ``ATTEMPTS`` tries."""
    texts: dict[int, str] = {}
    pending = dict(enumerate(calls))
    reason = ""
    is_unfit = False
    for attempt in range(1, ATTEMPTS + 1):
        if not pending:
            break
        answers = yield tuple(replace(call, attempt=attempt) for call in pending.values())
        for index, answer in zip(tuple(pending), answers, strict=True):
            fault = rejection(answer, pending[index])
            if fault is None:
                texts[index] = answer.text.strip()
                del pending[index]
                continue
            reason = fault
            is_unfit = answer.error is None
            refused = f"The summary was refused: {reason.rstrip('.')}."
            if answer.is_refusal and THINKING in pending[index].text:
                return SummaryFailure(refused, thinking_refused=True)
            if answer.too_long:
                return SummaryFailure(refused, too_long=True)
            if answer.finish == "length":
                more = min(2 * pending[index].max_output_tokens, limits.window // 3)
                pending[index] = replace(pending[index], max_output_tokens=more)
    if pending:
        said = f"The summary was rejected {ATTEMPTS} times: {reason.rstrip('.')}."
        return SummaryFailure(said, is_unfit=is_unfit)
    return [texts[index] for index in range(len(calls))]


def _tagged(name: str, text: str) -> str:
    if text.strip():
        return f"<{name}>\n{text.strip()}\n</{name}>"
    return ""
