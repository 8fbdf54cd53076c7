"""The conversation with a summariser, without any input or output of its own.

``summarise`` is a generator: it yields the calls to make (they may run at the same time) and is
sent their answers; it returns the summary, or why there is none. Retries, chunks and merging are
decided in here, so whoever drives it only talks to a model.
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
"""Begins a block with the raw thinking of an answer, which some providers refuse in a prompt."""

ATTEMPTS = 2
"""Times one call is made when its answer is rejected."""
MIN_ANSWER_CHARS = 20
"""A shorter summary says nothing ("No prior history.")."""
_CACHED_PRICE = 0.1
"""Price of a token read from the provider's cache, relative to one that is not."""
_MARGIN = 0.05
"""Share of the summariser's window left free, because sizes are estimates."""
_MIN_CHUNK_TOKENS = 400
_MIN_WINDOW = 1_024
"""Tokens below which a refused call isn't halved any more."""
_WORDS_PER_TOKEN = 0.7
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
    """One field per prompt file of that name."""

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
        """Tokens an answer may take.

        A little over the target, because a cut-off answer is useless.
        """
        return min(max(2 * self.summary, 1_024), max(256, self.window // 4))

    def room(self, prompt_tokens: int) -> int:
        """Return the tokens left for the conversation in one call."""
        return round(self.window * (1 - _MARGIN)) - self.max_output - prompt_tokens


@frozen
class SummaryTask:
    """Text blocks of a conversation to summarise, by one of the prompts.

    ``share`` is the part of the summary's length it may take. ``live`` asks for the live
    conversation first; the blocks are used when its answer is rejected. Without blocks,
    ``previous`` is the result as it is. ``begins`` is the message with which the part of a live
    conversation begins that is meant.
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
    """One call to make, ``attempt`` counting from 1.

    A live one appends ``instruction`` and ``text`` to the conversation's own request; otherwise
    they are the system message and the user's.
    """

    instruction: str
    text: str
    max_output_tokens: int
    live: bool = False
    attempt: int = 1
    about: tuple[str, ...] = ()
    """The text blocks that are to be summarised, where ``text`` does not hold them."""


@frozen
class SummaryAnswer:
    """A model's answer: ``finish`` as the model reported it, ``error`` when the call failed."""

    text: str = ""
    finish: str = "stop"
    tool_calls: int = 0
    is_thinking: bool = False
    error: str | None = None
    too_long: bool = False
    """The call was refused because it is longer than the model takes."""
    refused: bool = False
    """The provider refused the call because of what is in it."""

    @property
    def is_refusal(self) -> bool:
        return self.refused or self.finish == "content_filter"


@frozen
class SummaryFailure:
    """No summary, and why; nothing is to be stored."""

    reason: str
    too_long: bool = False
    """A call was longer than the summariser takes."""
    is_unfit: bool = False
    """The model answered, and what it said is no summary: a summary by rule is better than none."""
    thinking_refused: bool = False
    """A call with raw thinking in it was refused."""


Summarising = Generator[tuple[SummaryCall, ...], Sequence[SummaryAnswer], "str | SummaryFailure"]
"""Yields calls, takes their answers in the same order, returns the summary."""


def choose_input(
    setting: Literal["auto", "live", "serialised"],
    limits: SummariserLimits,
    *,
    live_tokens: int,
    serialised_tokens: int,
    cache_warm: bool,
) -> InputMode:
    """Choose the summariser's input.

    ``live_tokens`` is the size of the conversation's next request, ``cache_warm`` whether the
    summariser is the conversation's own model with its prefix still cached. Live needs room for
    instruction and answer; ``auto`` takes whichever costs less.
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
    """Return why an answer cannot be stored, None when it can.

    Without its call only its form is judged.
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
    """Whether a heading of a summary is one that its call names, or one of the handover note's."""
    asked = f"{_NOTE_HEADINGS}\n{call.instruction}\n{call.text}".casefold()
    return any(heading.casefold() in asked for heading in _HEADING.findall(text))


def _has_names(text: str, call: SummaryCall) -> bool:
    """Whether a summary holds a name that stands in what it is about."""
    known = "\n".join((*call.about, call.text))
    return any(name in known for name in names_in(text))


def summarise(
    tasks: Sequence[SummaryTask],
    prompts: SummaryPrompts,
    limits: SummariserLimits,
    count: CountText,
) -> Summarising:
    """Summarise the tasks and put the results together in their order.

    See the module's description.
    """
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
        # The model counts more tokens than we do: ask in halves.
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
    """Return the beginning of a request that ends before an entry, None where no message begins with it."""
    at = next((at for at, message in enumerate(live.messages) if entry_id in message.origin), 0)
    if not at or min(live.messages[at].origin) < entry_id:
        return None
    return replace(live, messages=live.messages[:at])


def build_request(call: SummaryCall, model: str, live: ModelRequest | None = None) -> ModelRequest:
    """Return the request of a call; a live one needs the conversation's own next request.

    The live request keeps its tools and tool choice as they are: changing either would miss the
    provider's cache. An answer that calls a tool is rejected.
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
        # Terminal escapes in an answer or an output say nothing in a summary.
        Message("user", (ContentText(readable(call.text)),)),
    )
    return ModelRequest(
        model=model, messages=messages, max_output_tokens=call.max_output_tokens, tool_choice="none"
    )


def chunk(blocks: Sequence[str], budget: int, count: CountText) -> tuple[str, ...]:
    """Return the blocks joined into as few texts as possible, each of at most ``budget`` tokens.

    A block that is too big for one text loses its middle.
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
    """Writes calls."""

    prompts: SummaryPrompts
    limits: SummariserLimits
    count: CountText

    def calls(self, task: SummaryTask, *, live: bool = False) -> tuple[SummaryCall, ...]:
        """Return one call, or one per chunk when the conversation does not fit into the summariser's window."""
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
        # A part of many is summarised alone; the earlier summary joins when the parts are merged.
        alone = instruction
        if task.prompt == "compaction_update":
            alone = self.prompts.compaction
        return tuple(self._call(alone, _tagged("conversation", text), frame) for text in texts)

    def merging(self, task: SummaryTask, texts: Sequence[str]) -> tuple[SummaryCall, ...]:
        """Return calls that each merge at least two texts, apart from one left over."""
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
        """Return the parts that vary from call to call: the focus and the length, as data between tags."""
        target = max(64, round(self.limits.summary * task.share))
        length = _tagged("length", f"{round(target * _WORDS_PER_TOKEN)} words")
        return "\n\n".join(filter(None, [_tagged("focus", task.focus), length]))

    def _call(self, instruction: str, *texts: str, live: bool = False) -> SummaryCall:
        return SummaryCall(
            instruction, "\n\n".join(filter(None, texts)), self.limits.max_output, live=live
        )


def _merge(task: SummaryTask, parts: Sequence[str], controller: _Controller) -> Summarising:
    """Merge the summaries of chunks, in rounds when they do not fit into one call."""
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
    """Make calls until each has an answer that can be stored, or one has none after ``ATTEMPTS`` tries."""
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
