"""Writes summaries: decides which model calls to make, and judges the answers.

``summarise`` is a generator: it yields calls, which the caller makes (they may run at the same
time). It receives the answers and returns the summary, or the reason why there is none. It decides
on retries, chunks and merging.
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
"""Prefix of a block of text that contains an answer's raw thinking, which some providers refuse in
a prompt."""

ATTEMPTS = 2
"""Number of attempts at each model call; if the last answer is rejected as well, the summary
fails."""
MIN_ANSWER_CHARS = 20
"""Minimum length, in characters, of a summary that is accepted. It excludes answers such as "No
prior history."."""
_CACHED_PRICE = 0.1
"""Price of a token that is read from the provider's cache, as a share of the price of an uncached
one."""
_MARGIN = 0.05
"""Share of the summariser's window that is left free, because sizes are estimates."""
_MIN_CHUNK_TOKENS = 400
"""Minimum room for the conversation in one call, in tokens, however small the window is."""
_MIN_WINDOW = 1_024
"""When calls are refused as too long, smaller windows are tried, down to this number of tokens."""
_WORDS_PER_TOKEN = 0.7
"""Number of words per token, used to state a summary's target length in words."""
_HEADING = LazyPattern(r"^\s*(?:#{1,6}\s+|\*\*)([^\n*:]{3,60}?)\s*(?:\*\*:?|:)?\s*$", re.MULTILINE)
_NOTE_HEADINGS = (
    "Goal, Progress, Done, In Progress, Blocked, Key Decisions, Next Steps, Critical Context"
)
_FAULTS = {
    Verdict.CALLS: "it called a tool instead of answering",
    Verdict.PROMISED: "it called a tool instead of answering",
    Verdict.CUT: "it was cut off at its maximum length",
    Verdict.UNMARKED: "the server ended it without marking it as complete",
    Verdict.SILENT: "it says nothing",
    Verdict.THINKING: "it contains only thinking",
    Verdict.REFUSED: "it was refused",
}


@frozen
class SummaryPrompts:
    """A summariser's prompts; each field has the name of its file in ``prompts/``."""

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
    """The summariser's context window and the target length of the summary, in tokens."""

    window: int
    summary: int

    @property
    def max_output(self) -> int:
        """Maximum tokens of an answer, twice the target because a cut-off answer is useless.

        The result is at least 1,024, but at most a quarter of the window or, in a tiny window, 256.
        """
        return min(max(2 * self.summary, 1_024), max(256, self.window // 4))

    def room(self, prompt_tokens: int) -> int:
        """Return how many tokens of the conversation fit into one call; may be negative."""
        return round(self.window * (1 - _MARGIN)) - self.max_output - prompt_tokens


@frozen
class SummaryTask:
    """A text for the model to write: a summary of ``blocks``, made with the prompt ``prompt``.

    ``previous`` is the earlier summary to update; if there are no blocks, it stays unchanged.
    ``focus`` is what the user wants the summary to stress. ``share`` is the task's share of the
    whole summary's length. With ``live``, the model first summarises the live conversation; the
    blocks are used if that answer is rejected. ``begins`` is the beginning of the first block of a
    branch; "" for other tasks.
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
    """One model call to make for a summary; ``attempt`` counts from 1.

    For a live call, ``instruction`` and ``text`` are appended to the conversation's next request;
    for other calls they are the system message and the user message.
    """

    instruction: str
    text: str
    max_output_tokens: int
    live: bool = False
    attempt: int = 1
    about: tuple[str, ...] = ()
    """The blocks of text to summarise, for a live call, because its ``text`` doesn't contain
    them."""


@frozen
class SummaryAnswer:
    """A model's answer to a `SummaryCall`.

    ``finish`` is the finish reason, ``tool_calls`` the number of calls, ``is_thinking`` whether the
    answer contains reasoning. ``error`` is why the call failed; None if it did not.
    """

    text: str = ""
    finish: str = "stop"
    tool_calls: int = 0
    is_thinking: bool = False
    error: str | None = None
    too_long: bool = False
    """Whether the call was refused because it is longer than the model accepts."""
    refused: bool = False
    """Whether the provider refused the call because of the call's content."""

    @property
    def is_refusal(self) -> bool:
        return self.refused or self.finish == "content_filter"


@frozen
class SummaryFailure:
    """A failure to get a summary. ``reason`` is a sentence that tells the user why."""

    reason: str
    too_long: bool = False
    """Whether a call was refused because it was longer than the summariser accepts."""
    is_unfit: bool = False
    """Whether the model gave an answer that is no summary. In that case the program lists the
    entries instead."""
    thinking_refused: bool = False
    """Whether a call that contained the model's raw thinking was refused."""


Summarising = Generator[tuple[SummaryCall, ...], Sequence[SummaryAnswer], "str | SummaryFailure"]
"""A generator that writes a summary. It yields the model calls to make, receives their answers in
the same order, and returns the summary or a failure."""


def choose_input(
    setting: Literal["auto", "live", "serialised"],
    limits: SummariserLimits,
    *,
    live_tokens: int,
    serialised_tokens: int,
    cache_warm: bool,
) -> InputMode:
    """Choose whether the summariser reads the live conversation or the conversation as text.

    ``live_tokens`` is the size of the conversation's next request, ``serialised_tokens`` the size
    of the text. ``cache_warm`` says that the summariser is the conversation's own model, and that
    the provider still has the conversation cached. "live" is chosen only if the request fits the
    window with the instruction and the answer; "auto" chooses whichever costs less.
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
    """Return why an answer can't be used as a summary, None if it can.

    With ``call``, the answer must also have one of the headings that the call asks for, or a name
    from the text to summarise.
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
        return (
            "it is not a summary: it has none of the requested headings "
            "and no name from the conversation"
        )
    return None


def _has_headings(text: str, call: SummaryCall) -> bool:
    """Return True if a text contains a heading that its call names, or one of `_NOTE_HEADINGS`."""
    asked = f"{_NOTE_HEADINGS}\n{call.instruction}\n{call.text}".casefold()
    return any(heading.casefold() in asked for heading in _HEADING.findall(text))


def _has_names(text: str, call: SummaryCall) -> bool:
    """Return True if a summary contains a name that also occurs in the text to summarise."""
    known = "\n".join((*call.about, call.text))
    return any(name in known for name in names_in(text))


def summarise(
    tasks: Sequence[SummaryTask],
    prompts: SummaryPrompts,
    limits: SummariserLimits,
    count: CountText,
) -> Summarising:
    """Summarise the tasks, and return their texts joined in order, or a `SummaryFailure`.

    This is a generator that yields calls and receives their answers (see `Summarising`).
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
        # The model counts more tokens than this program does, so try again with half the window.
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
    """Return the beginning of a request, up to the message that was made from an entry.

    That message itself is left out. Returns None if the entry has no message, is in the first
    message, or isn't the first entry in its message.
    """
    at = next((at for at, message in enumerate(live.messages) if entry_id in message.origin), 0)
    if not at or min(live.messages[at].origin) < entry_id:
        return None
    return replace(live, messages=live.messages[:at])


def build_request(call: SummaryCall, model: str, live: ModelRequest | None = None) -> ModelRequest:
    """Return the model request for a call.

    ``live`` is the conversation's next request, needed for a live call. Its tools and tool choice
    stay unchanged, because a change would break the provider's cache.
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
        # Terminal escapes are useless in a summary.
        Message("user", (ContentText(readable(call.text)),)),
    )
    return ModelRequest(
        model=model, messages=messages, max_output_tokens=call.max_output_tokens, tool_choice="none"
    )


def chunk(blocks: Sequence[str], budget: int, count: CountText) -> tuple[str, ...]:
    """Join blocks, in their order, into texts that have at most ``budget`` tokens each.

    A block that is too long for one text is cut in the middle.
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
    """Builds the model calls for summary tasks, within the summariser's token limits."""

    prompts: SummaryPrompts
    limits: SummariserLimits
    count: CountText

    def calls(self, task: SummaryTask, *, live: bool = False) -> tuple[SummaryCall, ...]:
        """Return the calls of a task: one, or one for each chunk if one call can't hold all blocks.

        Returns () for a task without blocks, unless ``live``.
        """
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
        # Chunks are summarised without the previous summary. It is added when the chunks are
        # merged.
        alone = instruction
        if task.prompt == "compaction_update":
            alone = self.prompts.compaction
        return tuple(self._call(alone, _tagged("conversation", text), frame) for text in texts)

    def merging(self, task: SummaryTask, texts: Sequence[str]) -> tuple[SummaryCall, ...]:
        """Return the calls that merge texts, each call as many texts as fit.

        Each call merges at least two texts, except the last one.
        """
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
        """Return the focus and the target length of a task's summary as tagged text."""
        target = max(64, round(self.limits.summary * task.share))
        length = _tagged("length", f"{round(target * _WORDS_PER_TOKEN)} words")
        return "\n\n".join(filter(None, [_tagged("focus", task.focus), length]))

    def _call(self, instruction: str, *texts: str, live: bool = False) -> SummaryCall:
        return SummaryCall(
            instruction, "\n\n".join(filter(None, texts)), self.limits.max_output, live=live
        )


def _merge(task: SummaryTask, parts: Sequence[str], controller: _Controller) -> Summarising:
    """Merge the previous summary and the summaries of chunks, in as many rounds as are needed."""
    texts = list(parts)
    if len(texts) > 1 and task.previous:
        texts.insert(0, task.previous)
    while len(texts) > 1:
        answers = yield from _ask(controller.merging(task, texts), controller.limits)
        if isinstance(answers, SummaryFailure):
            return answers
        texts = answers
    if not texts:
        return SummaryFailure("There is nothing to summarise.")
    return texts[0]


def _ask(
    calls: Sequence[SummaryCall], limits: SummariserLimits
) -> Generator[tuple[SummaryCall, ...], Sequence[SummaryAnswer], "list[str] | SummaryFailure"]:
    """Make the given calls, and return the texts of the answers in the same order.

    Rejected calls are repeated. Returns a failure if a call has no acceptable answer after
    ``ATTEMPTS`` tries, or at once if a call was too long or its thinking was refused.
    """
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
