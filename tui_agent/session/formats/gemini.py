"""Reads Gemini CLI's sessions, which are JSON lines, or one JSON document in older versions.

The lines are messages and changes. A message that is written again with the same id replaces the
earlier one. A line with ``$set`` and ``messages`` lists all messages that the chat contains from
then on. ``$rewindTo`` names the message before which the chat continues; if its id is unknown, the
chat begins again. Images that a tool returned are in the message in the user's role that has its
result. This applies to files of version 0.5x. The project's directory is in the file
``.project_root`` next to the directory of the chats.
"""

import json
from typing import Any, ClassVar

from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    ImagePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.formats.incoming import IncomingSession, SessionReader, usage_of
from tui_agent.session.formats.reading import Node, SourceFile

_CONTEXT = "<session_context>"
"""Beginning of the message in the user's role in which Gemini CLI describes the environment."""
_USAGE = {
    "input": "input tool",
    "output": "output thoughts",
    "cache_read": "cached",
    "reasoning": "thoughts",
}
_STATUS = {"success": ToolStatus.COMPLETED, "cancelled": ToolStatus.INTERRUPTED}


class GeminiReader(SessionReader):
    """Reads messages in the form of Gemini's API, and adds each below the last entry."""

    provider: ClassVar[str]
    """Prefix of the models' names, which is the id of their provider."""

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._entries: dict[str, int] = {}
        """Id of the entry with the user's text or with the answer, by message id."""
        self._answered: set[str] = set()
        """Ids of the tool calls whose results have been added."""

    def _blocks(self, node: Node, key: str = "content") -> list[Node]:
        """Return a key's value (a text, an object, or a list of both) as a list of objects."""
        value = node.value.get(key)
        if value in (None, ""):
            return []
        blocks: list[object] = []
        for item in value if isinstance(value, list) else [value]:
            blocks.append({"text": item} if isinstance(item, str) else item)
        return Node({key: blocks}, node.where).nodes(key)

    def add_user(
        self, message: Node, at: int, synthetic: str | None = None, *, name: str = ""
    ) -> None:
        """Add a message in the user's role, and before it the tool results that it contains.

        If there is already a message with the id ``name``, that message is changed instead. ``at``
        is the time in milliseconds. ``synthetic`` is the mark of a message that the program wrote;
        None for a message by the user.
        """
        parts: list[TextPart | ImagePart] = []
        for block in self._blocks(message):
            if block.has("text"):
                parts.append(TextPart(text=block.text("text")))
            elif block.has("inlineData"):
                data = block.node("inlineData")
                if image := self.image(block, data.text("data", ""), data.text("mimeType", "")):
                    parts.append(image)
            elif block.has("functionResponse"):
                response = block.node("functionResponse")
                self.add_result(response.text("id", ""), response, "success", at)
            else:
                self.leave_out("part of a message that is neither text nor image")
        if parts:
            first = parts[0].text if isinstance(parts[0], TextPart) else ""
            if first.startswith(_CONTEXT):
                synthetic = "gemini-cli:context"
            entry = UserEntry(parts=tuple(parts), synthetic=synthetic, created_at=at)
            known = self._entries.get(name) if name else None
            if known is not None and isinstance(before := self.entry(known), UserEntry):
                self.change(before, parts=entry.parts)
            else:
                self._entries[name] = self.follow(entry)

    def add_answer(self, message: Node, name: str, at: int) -> None:
        """Add an answer with the id ``name``, or change the one with that id; add its tool results.

        ``at`` is the time in milliseconds.
        """
        known = self._entries.get(name)
        calls = message.nodes("toolCalls")
        if known is None:  # Its results are added again, too.
            self._answered -= {call.text("id", "") for call in calls}
        model = ""
        if message.has("model"):
            model = f"{self.provider}/{message.text('model')}"
        parts = self._parts(message, model)
        finish: Any = "stop"
        if any(isinstance(part, ToolCallPart) for part in parts):
            finish = "tool_calls"
        usage = usage_of(message.node("tokens"), _USAGE, cached_is_sent=True)
        if before := self.answer(known):
            self.change(before, parts=tuple(parts), usage=usage or before.usage, finish=finish)
        else:
            entry = AssistantEntry(
                parts=tuple(parts), model=model, usage=usage, finish=finish, created_at=at
            )
            self._entries[name] = self.follow(entry)
        for call in calls:
            call_id = call.text("id", "")
            for block in self._blocks(call, "result"):
                # After Gemini CLI compressed the chat, each call lists the responses of all the
                # answer's calls.
                response = block.node("functionResponse")
                if response.value and response.text("id", "") in {"", call_id}:
                    status = call.text("status", "")
                    self.add_result(call_id, response, status, call.time("timestamp"))

    def _parts(self, message: Node, model: str) -> list[AssistantPart]:
        parts: list[AssistantPart] = []
        for thought in message.nodes("thoughts"):
            subject = thought.text("subject", "")
            text = thought.text("description", "")
            if subject:
                text = "\n\n".join(filter(None, (f"**{subject}**", text)))
            parts.append(ReasoningPart(text=text, model=model))
        for block in self._blocks(message):
            if block.has("functionCall"):
                parts.append(self._call(block.node("functionCall")))
            elif block.flag("thought"):
                parts.append(ReasoningPart(text=block.text("text", ""), model=model))
            elif block.has("text"):
                parts.append(TextPart(text=block.text("text")))
            else:
                self.leave_out("part of an answer that is neither text nor call")
        # After Gemini CLI compressed the chat, the content contains the calls, too.
        known = {part.call_id for part in parts if isinstance(part, ToolCallPart)}
        for call in message.nodes("toolCalls"):
            if call.text("id", "") not in known:
                parts.append(self._call(call))
        return parts

    def _call(self, call: Node) -> ToolCallPart:
        return self.call(call.text("id", ""), call.text("name", ""), call.node("args").value)

    def add_result(self, call_id: str, response: Node, status: str, at: int) -> None:
        """Add a tool result, unless the call has one already.

        ``response`` is the ``functionResponse``, ``status`` the program's word for the call's
        outcome ("success", "cancelled"), ``at`` the time in milliseconds.
        """
        if call_id in self._answered:
            return
        self._answered.add(call_id)
        answer = response.node("response")
        failed = answer.has("error")
        output = answer.value.get("error" if failed else "output")
        if not isinstance(output, str):
            output = json.dumps(answer.value, ensure_ascii=False)
        ended = _STATUS.get(status, ToolStatus.ERROR)
        if failed and ended is ToolStatus.COMPLETED:
            ended = ToolStatus.ERROR
        self.follow(self.result(call_id, output, at, tool=response.text("name", ""), status=ended))


def is_line(node: Node) -> bool:
    return {"sessionId", "projectHash", "startTime"} <= node.value.keys()


def is_file(source: SourceFile) -> bool:
    """Return True if a file is one JSON document that contains a whole chat."""
    if not source.is_document:
        return False
    document = source.document()
    return is_line(document) and isinstance(document.value.get("messages"), list)


def project_of(source: SourceFile) -> str:
    try:
        return (
            (source.path.absolute().parent.parent / ".project_root")
            .read_text(encoding="utf-8")
            .strip()[:4096]
        )
    except (OSError, UnicodeDecodeError):
        return ""


class Reader(GeminiReader):
    """Creates a session from a file of Gemini CLI.

    Messages that the chat dropped stay on other branches.
    """

    program = "Gemini CLI"
    provider = "gemini"

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._spans: dict[str, tuple[int | None, int | None]] = {}
        """The last entry before each message, and the last entry made from the message, by message
        id."""

    def read(self) -> IncomingSession:
        name = ""
        title = ""
        created = 0
        for node in [self.source.document()] if is_file(self.source) else self.nodes():
            if node.has("sessionId"):
                name = name or node.text("sessionId")
                created = created or node.time("startTime")
                title = node.text("summary", "") or title
            if node.has("$rewindTo"):
                self._go_back(node.text("$rewindTo"))
            elif node.has("$set"):
                change = node.node("$set")
                title = change.text("summary", "") or title
                if change.has("messages"):
                    self._become(change.nodes("messages"))
            elif node.has("messages"):
                self._become(node.nodes("messages"))
            elif node.has("id"):
                self._message(node)
        self.require_conversation()
        return self.finish(name=name, cwd=project_of(self.source), title=title, created_at=created)

    def _go_back(self, name: str) -> None:
        """Go back to before a message, or to the start of the chat if the message is unknown."""
        before, _after = self._spans.get(name, (None, None))
        self.pass_over(None, before)
        # Forget the messages that the chat dropped, so that a message with one of their ids is
        # added again.
        self._entries = {
            name: entry for name, entry in self._entries.items() if entry <= (before or 0)
        }

    def _become(self, messages: list[Node]) -> None:
        """Change the chat so that it consists of the given messages.

        Keeps the entries of known messages as long as their order is the same, and adds the other
        messages below them. If the list doesn't begin with Gemini CLI's message about the
        environment, the messages are added after that message.
        """
        start = None
        if messages:
            start = self._spans.get(messages[0].text("id", ""), (None, None))[0]
        context = None
        if start is not None:
            context = self.entry(start)
        is_context = isinstance(context, UserEntry) and context.synthetic is not None
        self.pass_over(None, start if is_context else None)
        for message in messages:
            name = message.text("id", "")
            before, after = self._spans.get(name, (None, None))
            if name in self._spans and before == self.last:
                self.pass_over(None, after)
            else:
                # The message is added again, so forget the earlier entry to which the message's id
                # refers.
                self._entries.pop(name, None)
                self._spans.pop(name, None)
                self._message(message)

    def _message(self, message: Node) -> None:
        name = message.text("id", "")
        before = self.last
        at = message.time("timestamp")
        match kind := message.text("type", ""):
            case "user":
                self.add_user(message, at, name=name)
            case "gemini":
                self.add_answer(message, name, at)
            case _:
                self.leave_out(f"“{kind[:40]}” message")
        self._spans[name] = (self._spans.get(name, (before, None))[0], self.last)
