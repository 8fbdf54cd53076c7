"""Reads Codex's sessions from files called rollouts, whose lines are JSON objects.

Each line contains a time, a type and a payload.

``response_item`` lines are the conversation in the form of OpenAI's Responses API. ``event_msg``
lines repeat it for the screen, and show which messages the user wrote: in version 0.169 with the
event ``item_completed``, in older versions with ``user_message``.

When the user goes back to an earlier message, or a thread is forked, the thread continues in a new
file that contains only the new lines. Its first line may contain a ``history_base``, which names
the rollout that it continues, and the number of the first line there that is not part of its
history. A file without ``history_base`` has no earlier history. The first file of a thread is named
after the thread, later ones after the thread and another id.
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
"""Maximum number of files that are searched for a thread's id if a rollout file was renamed."""
_AROUND_IMAGE = LazyPattern(r"<image(?: name=[^>]*)?>|</image>")
"""Matches the tags that Codex puts around an image from the user."""
_LINEAGE = 100
"""Maximum number of forks to follow back from a thread to its origins."""

_SYNTHETIC = "codex:context"
"""Value of ``synthetic`` for messages in the user's role that Codex itself wrote, such as the
environment, instructions, and notes on interruptions."""

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of Codex items that call a tool, each with the key of the call's arguments."""

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
    """One file of a Codex thread, described by facts from its name and its first line."""

    source: SourceFile
    name: str = ""
    """The id by which later rollout files refer to this one."""
    thread: str = ""
    """Id of the thread to which the rollout belongs."""
    at: int = 0
    """Time at which the file was created, in milliseconds since the epoch."""
    base: tuple[str, int] | None = None
    """The name of the rollout that this one continues, and the number of the first line in that
    rollout that isn't part of the history. None if this rollout continues no other one."""
    end: int | None = None
    """Number of the first line that is not read any more, because the thread continues in another
    file. None if all lines are read."""


def rollouts_of(source: SourceFile) -> list[Rollout]:
    """Return the rollouts to read for the session of a file, oldest first, the file itself last.

    These are the earlier files of the thread, preceded by the files of the threads from which it
    was forked.

    Raises:
        ImportRefused: one of the files can't be read.
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
    """Return the rollouts (session files) of threads from which a thread was forked, oldest first.

    ``first`` is the thread's first rollout. The ``end`` of each returned rollout is the place where
    the fork begins. Rollouts before a missing file are left out.
    """
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
    """Yield the rollouts with the id ``name`` in their file names, except the file ``near``.

    Searches the directories around ``near``. If ``near`` has been renamed, yields the files in its
    directory that have the id in their first bytes. Yields nothing if ``name`` is not an id.
    """
    path = near.source.path.absolute()
    if not is_session_id(name):
        return
    if not path.name.startswith(_NAME_BEGINS):
        beside = islice(sorted(path.parent.glob("*.jsonl")), _LOOKED_AT)
        found = [other for other in beside if name.encode() in SourceFile(other).head]
    elif all(part.isdecimal() for part in path.parts[-4:-1]):  # the folders for year, month and day
        found = sorted(path.parents[3].glob(f"*/*/*/{_NAME_BEGINS}*{name}*.jsonl"))
    else:
        found = sorted(path.parent.glob(f"{_NAME_BEGINS}*{name}*.jsonl"))
    for other in found:
        if other != path:
            yield _rollout(SourceFile(other, skip_damaged=near.source.skip_damaged))


def _rollout(source: SourceFile) -> Rollout:
    """Return the description of a rollout file, read from its first line and its name.

    The fields are empty if the first line is not the header of a rollout.
    """
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
    """The reader's state at the place in a rollout file at which a later rollout continues."""

    last: int | None = None
    """Id of the last entry that was made from the lines before the place."""
    model: str = ""
    turns: tuple[tuple[int | None, str], ...] = ()
    """The messages that the user has written so far, as in ``Reader._turns``."""


class Reader(SessionReader):
    """Builds the session of a rollout file, with the history that is in earlier rollout files."""

    program = "Codex"

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._meta: Node | None = None
        self._cwd = self._model = self._title = ""
        self._provider = "openai"
        self._answer: int | None = None
        """Id of the answer that the next items are added to; None to begin a new answer."""
        self._counted: int | None = None
        """Id of the last answer if its token counts have not been read yet; otherwise None."""
        self._unclaimed: tuple[int, str] | None = None
        """Id and text of the last message in the user's role, until an event shows that the user
        wrote it."""
        self._turns: list[tuple[int | None, str]] = []
        """The user's messages, each as the id of the parent entry and the text."""
        self._positions: dict[tuple[str, int], _Position] = {}
        """The reader's state at each point from which a later rollout file continues. The key
        consists of the earlier rollout's name and the number of the first line that the later
        rollout leaves out."""
        self._used = 0
        """Number of tokens of the last request and its answer together."""

    def read(self) -> IncomingSession:
        rollouts = rollouts_of(self.source)
        for number, rollout in enumerate(rollouts):
            base = rollout.base
            if base is not None and base not in self._positions:
                self.leave_out("earlier history, which is in a missing file")
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
        """Read the lines of a rollout file, and store the reader's state at the given places.

        ``wanted`` contains the ordinals, ascending, of the lines before which the state is stored.
        ``of_thread`` is False for a rollout of another thread, whose header is not used.
        """
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
            # Only the provider can read the encrypted reasoning, so only the text is kept.
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
        """Add a part to the answer that is being read, or begin a new answer with this part."""
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
            # This tool takes plain text, which is put into a JSON object, because other providers
            # accept only objects as arguments.
            arguments = {"input": arguments}
        self._say(self.call(call_id, tool, arguments), at)

    def _output(self, item: Node) -> tuple[str, bool, tuple[ImagePart, ...]]:
        """Return the text of a tool result, whether the tool failed, and the images."""
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
                pass  # These events are for the screen, and repeat items.

    def _claim(self, text: str) -> None:
        """Mark the last message in the user's role as the user's own if it contains ``text``."""
        if self._unclaimed is None or text.strip() not in self._unclaimed[1]:
            return
        entry_id, said = self._unclaimed
        self._unclaimed = None
        entry = self.entry(entry_id)
        self._turns.append((entry.parent_id, said))
        self.change(entry, synthetic=None)

    def _count(self, usage: Node) -> None:
        """Set the usage of the last answer unless it is already set.

        Codex's input tokens include cached tokens.
        """
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
