"""Codex's rollouts: JSON lines with a time, a type and a payload; the model's input and its answers.

``response_item`` lines are the conversation as the provider's Responses API has it, ``event_msg``
lines tell the same to the screen and say which messages a person wrote. Seen in files of version
0.169; older versions say so with the event ``user_message``.

A message that is taken back, or a fork, goes on in a file of its own with only the new lines. The
``history_base`` of its head names the rollout it goes on from and the ordinal of the first line
that is no longer its history; without one it begins at the beginning. The file of a thread's
beginning is named by the thread, a later one by the thread and an id of its own.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from tui_agent.json_text import as_dict, loads, table_in
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    ImagePart,
    ModelChangeEntry,
    ReasoningPart,
    SummaryDetails,
    TextPart,
    ToolCallPart,
    UserEntry,
)
from tui_agent.session.formats.incoming import (
    IncomingSession,
    SessionReader,
    is_session_id,
    split,
    summary_of,
    usage_of,
)
from tui_agent.session.formats.reading import NOTHING, Node, SourceFile

_NAME_BEGINS = "rollout-"
_NAME_HEAD = len("rollout-2026-11-23T09-37-46-")
_LOOKED_AT = 200
"""Files beside one with a name of its own whose beginnings are searched for its thread."""
_AROUND_IMAGE = LazyPattern(r"<image(?: name=[^>]*)?>|</image>")
"""Codex's tags around an image of the user's."""
_LINEAGE = 100
"""Forks of forks that are followed."""

_SYNTHETIC = "codex:context"
"""A message in the user's name that no person wrote: the surroundings, instructions, a note on an
interruption."""

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that call a tool, and the key of its arguments."""

_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cached_input_tokens",
    "cache_write": "cache_write_input_tokens",
    "reasoning": "reasoning_output_tokens",
}


@frozen
class Rollout:
    """One file of a thread."""

    source: SourceFile
    name: str = ""
    """Its name in later files."""
    thread: str = ""
    at: int = 0
    """When it was begun, in milliseconds."""
    base: tuple[str, int] | None = None
    """The rollout it goes on from, and the ordinal of the first line there that it leaves
    behind."""
    end: int | None = None
    """Ordinal of the first line that is not read, None: all are."""


def rollouts_of(source: SourceFile) -> list[Rollout]:
    """Return the rollouts that hold the thread of one as it was when that one was written, the one itself last.

    Raises:
        ImportRefused: one of them can't be read.
    """
    own = _rollout(source)
    if own.base is None and own.name == own.thread and source.path.name.startswith(_NAME_BEGINS):
        return [own]
    before: dict[int, Rollout] = {}
    for one in _named(own, own.thread):
        if one.thread == own.thread and one.at < own.at:
            before[one.at] = one
    thread = [*(before[at] for at in sorted(before)), own]
    return [*_lineage(thread[0]), *thread]


def _lineage(first: Rollout) -> list[Rollout]:
    """Return the rollouts of other threads a thread goes on from, the oldest first, each up to where it is left."""
    found: list[Rollout] = []
    while first.base is not None and len(found) < _LINEAGE:
        name, end = first.base
        origin = next((one for one in _named(first, name) if one.name == name), None)
        if origin is None:
            break
        first = replace(origin, end=end)
        found.insert(0, first)
    return found


def _named(near: Rollout, name: str) -> Iterator[Rollout]:
    """Yield the rollouts whose name has an id, or, beside a file with another name, whose beginning has it."""
    path = near.source.path.absolute()
    if not is_session_id(name):
        return
    if not path.name.startswith(_NAME_BEGINS):
        beside = islice(sorted(path.parent.glob("*.jsonl")), _LOOKED_AT)
        found = [other for other in beside if name.encode() in SourceFile(other).head]
    elif all(part.isdecimal() for part in path.parts[-4:-1]):  # year, month and day
        found = sorted(path.parents[3].glob(f"*/*/*/{_NAME_BEGINS}*{name}*.jsonl"))
    else:
        found = sorted(path.parent.glob(f"{_NAME_BEGINS}*{name}*.jsonl"))
    for other in found:
        if other != path:
            yield _rollout(SourceFile(other, skip_damaged=near.source.skip_damaged))


def _rollout(source: SourceFile) -> Rollout:
    head = next(source.first_nodes(1), NOTHING)
    if head.value.get("type") != "session_meta":
        return Rollout(source)
    meta = head.node("payload")
    path = source.path
    name = thread = meta.text("id", "")
    if path.name.startswith(_NAME_BEGINS):
        name = path.stem[_NAME_HEAD:].rpartition("_")[2] or thread
    history = meta.node("history_base")
    base = None
    if history.value:
        base = (history.text("thread_id"), int(history.number("end_ordinal_exclusive")))
    return Rollout(source, name, thread, meta.time("timestamp"), base)


def is_line(node: Node) -> bool:
    value = node.value
    return isinstance(value.get("payload"), dict) and "timestamp" in value and "type" in value


@frozen
class _Position:
    """Where a thread is after a line."""

    last: int | None = None
    model: str = ""
    turns: tuple[tuple[int | None, str], ...] = ()


class Reader(SessionReader):
    """Makes the session of a rollout's thread: the parts in earlier rollouts, then this one."""

    program = "Codex"

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._meta: Node | None = None
        self._cwd = self._model = self._title = ""
        self._provider = "openai"
        self._answer: int | None = None
        """The answer whose items are still coming."""
        self._counted: int | None = None
        """The last answer, until its tokens are known."""
        self._unclaimed: tuple[int, str] | None = None
        """The last message in the user's name, until an event says that a person wrote it."""
        self._turns: list[tuple[int | None, str]] = []
        """Where each message of a person hangs, and its text."""
        self._positions: dict[tuple[str, int], _Position] = {}
        """Where later rollouts go on: by a rollout's name and an ordinal."""
        self._used = 0

    def read(self) -> IncomingSession:
        rollouts = rollouts_of(self.source)
        for number, rollout in enumerate(rollouts):
            base = rollout.base
            if base is not None and base not in self._positions:
                self.leave_out("history before, which is in a file that is not here")
            if number:
                position = _Position()
                if base is not None:
                    position = self._positions.get(base, position)
                self._answer = self._counted = self._unclaimed = None
                self.pass_over(None, position.last)
                self._model = position.model
                self._turns = list(position.turns)
            bases = {later.base for later in rollouts if later.base is not None}
            wanted = sorted(end for name, end in bases if name == rollout.name)
            self._rollout(rollout, wanted, of_thread=rollout.thread == rollouts[-1].thread)
        self.require_conversation()
        meta = self._meta or NOTHING
        created_at = meta.time("timestamp")
        return self.finish(
            name=meta.text("id", ""), cwd=self._cwd, title=self._title, created_at=created_at
        )

    def _rollout(self, rollout: Rollout, wanted: list[int], *, of_thread: bool) -> None:
        for node in rollout.source.lines():
            if node is None:
                continue
            ordinal = node.value.get("ordinal")
            while wanted and isinstance(ordinal, int) and ordinal >= wanted[0]:
                self._remember(rollout, wanted.pop(0))
            if rollout.end is not None and isinstance(ordinal, int) and ordinal >= rollout.end:
                break
            if of_thread or node.text("type", "") != "session_meta":
                self._line(node)
        for ordinal in wanted:
            self._remember(rollout, ordinal)

    def _remember(self, rollout: Rollout, ordinal: int) -> None:
        self._positions[rollout.name, ordinal] = _Position(
            self.last, self._model, tuple(self._turns)
        )

    def _line(self, node: Node) -> None:
        payload = node.node("payload")
        at = node.time("timestamp")
        match kind := node.text("type", ""):
            case "session_meta" if self._meta is None:
                self._meta = payload
                self._cwd = payload.text("cwd", "")
                self._provider = payload.text("model_provider", "") or self._provider
            case "turn_context":
                self._cwd = self._cwd or payload.text("cwd", "")
                model = payload.text("model", "")
                if model and model != self._model:
                    self._answer = None
                    self._model = model
                    self.follow(ModelChangeEntry(model=self._model_name, created_at=at))
            case "response_item":
                self._item(payload, at)
            case "compacted":
                self._compaction(payload, at)
            case "event_msg":
                self._event(payload, at)
            case "token_usage_record":
                self._count(payload.node("usage"))
                self._answer = None
            case "session_meta" | "world_state":
                pass
            case _:
                self.leave_out(f"“{kind[:40]}” line")

    def _item(self, item: Node, at: int) -> None:
        kind = item.text("type", "")
        if kind == "message":
            self._message(item, at)
        elif kind == "reasoning":
            parts = [*item.nodes("summary"), *item.nodes("content")]
            texts = [part.text("text", "") for part in parts]
            # Encrypted text can be read by nobody else, so only the words stay.
            if text := "\n\n".join(filter(None, texts)):
                self._say(ReasoningPart(text=text, model=self._model_name), at)
        elif kind in _CALLS:
            self._call(item, item.text("name", ""), item.value.get(_CALLS[kind]), at)
        elif kind == "local_shell_call":
            self._call(item, "shell", item.node("action").value, at)
        elif kind in _RESULTS:
            self._answer = None
            output, failed, images = self._output(item)
            self.follow(
                self.result(item.text("call_id", ""), output, at, failed=failed, attachments=images)
            )
        else:
            self.leave_out(f"“{kind[:40]}” item")

    @property
    def _model_name(self) -> str:
        if self._model:
            return f"{self._provider}/{self._model}"
        return ""

    def _message(self, item: Node, at: int) -> None:
        role = item.text("role", "")
        if role == "assistant":
            for part in item.nodes("content"):
                if text := part.text("text", ""):
                    self._say(TextPart(text=text), at)
        elif role == "user":
            self._answer = None
            parts = self._said(item)
            if not parts:
                return
            entry = self.follow(UserEntry(parts=parts, synthetic=_SYNTHETIC, created_at=at))
            self._unclaimed = (entry, split(parts)[0])
        else:
            self.leave_out(f"message of “{role[:40]}”")

    def _said(self, item: Node, key: str = "content") -> tuple[TextPart | ImagePart, ...]:
        parts: list[TextPart | ImagePart] = []
        for part in item.nodes(key):
            match kind := part.text("type", ""):
                case "input_text" if _AROUND_IMAGE.fullmatch(part.text("text", "")):
                    pass
                case "input_text" | "output_text" | "text":
                    parts.append(TextPart(text=part.text("text", "")))
                case "input_image":
                    head, separator, data = part.text("image_url", "").partition(";base64,")
                    mime = head.removeprefix("data:")
                    if not separator:
                        self.leave_out("image that is not in the file")
                    elif image := self.image(part, data, mime):
                        parts.append(image)
                case _:
                    self.leave_out(f"“{kind[:40]}” part of a message")
        return tuple(parts)

    def _say(self, part: AssistantPart, at: int) -> None:
        calls = isinstance(part, ToolCallPart)
        if known := self.answer(self._answer):
            self.change(
                known, parts=(*known.parts, part), finish="tool_calls" if calls else known.finish
            )
            return
        entry = AssistantEntry(
            parts=(part,),
            model=self._model_name,
            finish="tool_calls" if calls else "stop",
            created_at=at,
        )
        self._answer = self._counted = self.follow(entry)

    def _call(self, item: Node, tool: str, arguments: object, at: int) -> None:
        call_id = item.text("call_id", "") or item.text("id", "")
        if not isinstance(arguments, str):
            arguments = arguments or {}
        elif item.text("type") == "custom_tool_call":
            # A tool that takes plain text: other providers know only objects.
            arguments = {"input": arguments}
        self._say(self.call(call_id, tool, arguments), at)

    def _output(self, item: Node) -> tuple[str, bool, tuple[ImagePart, ...]]:
        """Return a result's text, whether the tool failed, and images."""
        output = item.value.get("output")
        if isinstance(output, dict):
            inner = item.node("output")
            return inner.text("content", ""), inner.value.get("success") is False, ()
        if isinstance(output, list):
            text, images = split(self._said(item, "output"))
            return text, False, images
        text = item.text("output", "")
        if text.startswith('{"output":'):
            with suppress(ValueError):
                reported = as_dict(loads(text))
                if isinstance(said := reported.get("output"), str):
                    return said, bool(table_in(reported, "metadata").get("exit_code")), ()
        return text, False, ()

    def _event(self, event: Node, at: int) -> None:
        match event.text("type", ""):
            case "user_message":
                self._claim(event.text("message", ""))
            case "item_completed" if event.node("item").text("type", "") == "UserMessage":
                self._claim(_text_of(event.node("item")))
            case "token_count":
                if event.has("info"):
                    self._count(event.node("info").node("last_token_usage"))
                self._answer = None
            case "turn_aborted":
                self.interrupt(self._answer)
                self._answer = None
            case "task_complete" if event.has("error"):
                self._failed(event.node("error").text("message", ""), at)
            case "error":
                self._failed(event.text("message", ""), at)
            case "thread_rolled_back":
                turns = int(event.number("num_turns"))
                self._answer = self._counted = self._unclaimed = None
                if 0 < turns <= len(self._turns):
                    self.pass_over(None, self._turns[-turns][0])
                    del self._turns[-turns:]
            case "thread_name_updated":
                self._title = event.text("thread_name", "") or self._title
            case _:
                pass  # events for the screen, of items that are lines of their own

    def _claim(self, text: str) -> None:
        if self._unclaimed is None or text.strip() not in self._unclaimed[1]:
            return
        entry_id, said = self._unclaimed
        self._unclaimed = None
        entry = self.entry(entry_id)
        self._turns.append((entry.parent_id, said))
        self.change(entry, synthetic=None)

    def _count(self, usage: Node) -> None:
        """Set the tokens of the last answer; Codex counts cached tokens as sent, too."""
        if self._counted is None or not usage.number("input_tokens"):
            return
        if tokens := usage_of(usage, _USAGE, cached_is_sent=True):
            self._used = tokens.total
            self.change(self.entry(self._counted), usage=tokens)
        self._counted = None

    def _failed(self, why: str, at: int) -> None:
        self._answer = None
        self.fail(why or None, at, model=self._model_name)

    def _compaction(self, payload: Node, at: int) -> None:
        self._answer = self._counted = None
        history = payload.nodes("replacement_history")
        kept = [_text_of(item) for item in history if item.text("role", "") == "user"]
        persons = {text for _place, text in self._turns}
        details = SummaryDetails(user_messages=tuple(text for text in kept if text in persons))
        summary = payload.text("message", "") or "\n\n".join(filter(None, kept))
        self.follow(summary_of(summary, at, before=self._used, by_itself=True, details=details))


def _text_of(item: Node) -> str:
    return "\n".join(part.text("text", "") for part in item.nodes("content"))
