"""Copilot CLI's sessions: a file ``events.jsonl`` with all that happened, one event a line.

A rewind takes events out of the file, so that it is one path. Images are events of their own that messages name.
Seen in files of version 1.0.102.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    ImagePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    Usage,
    UserEntry,
)
from tui_agent.session.formats.incoming import Builder, CallFacts, IncomingSession, facts_of, result_of, summary_of
from tui_agent.session.formats.reading import ImportLimits, NoConversation, Node, SourceFile

_PROGRAM = "Copilot CLI"
_BOOKKEEPING = ("assistant.", "hook.", "model.", "permission.", "session.", "tool.")
"""Beginnings of the types of events that add nothing to what was said."""


def is_line(node: Node) -> bool:
    """Whether a line is the first event of a session."""
    data = node.value.get("data")
    return node.value.get("type") == "session.start" and isinstance(data, dict) and "copilotVersion" in data


def project_of(source: SourceFile) -> str:
    """Return the directory that the first event names."""
    for node in source.lines():
        return "" if node is None else node.node("data").node("context").text("cwd", "")
    return ""


def read(source: SourceFile) -> Iterator[Sequence[IncomingSession]]:
    """Yield the session of a file.

    Raises:
        ImportRefused: a line is not what it should be.
    """
    yield [_Reader(source.limits).read(source.lines())]


class _Reader:
    def __init__(self, limits: ImportLimits) -> None:
        self._make = Builder(_PROGRAM, limits)
        self._images: dict[str, ImagePart] = {}
        self._calls: dict[str, CallFacts] = {}
        self._usage: dict[str, Usage] = {}
        """Tokens of requests whose answer is still to come."""

    def read(self, nodes: Iterable[Node | None]) -> IncomingSession:
        start = Node({}, "")
        for node in nodes:
            if node is None:
                continue
            if node.text("type", "") == "session.start":
                start = node.node("data")
            elif node.has("agentId"):
                self._make.leave_out("event of a subagent")
            else:
                self._event(node.text("type", ""), node.node("data"), node.time("timestamp"))
        if not len(self._make.session.entries):
            raise NoConversation(f"It holds no conversation of {_PROGRAM}.")
        return self._make.finish(
            name=start.text("sessionId", ""),
            cwd=start.node("context").text("cwd", ""),
            title="",
            created_at=start.time("startTime"),
        )

    def _event(self, kind: str, data: Node, at: int) -> None:
        match kind:
            case "user.message":
                self._user(data, at)
            case "assistant.message":
                self._answer(data, at)
            case "tool.execution_complete":
                self._result(data, at)
            case "session.binary_asset":
                if image := self._make.image(data, data.text("data", ""), data.text("mimeType", "")):
                    self._images[data.text("assetId", "")] = image
            case "session.usage_record":
                self._count(data.node("usage"))
            case "session.compaction_complete" if data.flag("success"):
                before, after = data.number("preCompactionTokens"), data.number("postCompactionTokens")
                by_itself = data.text("trigger", "") != "manual"
                summary = data.text("summaryContent", "")
                self._make.follow(summary_of(summary, at, before=before, after=after, by_itself=by_itself))
            case "session.error":
                error = data.text("message", "") or "The request failed."
                self._make.follow(AssistantEntry(parts=(), model="", finish="error", error=error, created_at=at))
            case "abort":
                self._make.interrupt(self._make.last)
            case "system.message":
                self._make.leave_out("message of “system”")
            case _ if not kind.startswith(_BOOKKEEPING):
                self._make.leave_out(f"“{kind[:40]}” event")

    def _user(self, data: Node, at: int) -> None:
        parts: list[TextPart | ImagePart] = []
        if text := data.text("content", ""):
            parts.append(TextPart(text=text))
        for attachment in data.nodes("attachments"):
            if image := self._images.get(attachment.text("assetId", "")):
                parts.append(image)
            else:
                self._make.leave_out("attachment that is not in the file")
        source = data.text("source", "user")
        synthetic = None if source == "user" else f"copilot-cli:{source[:40]}"
        if parts:
            self._make.follow(UserEntry(parts=tuple(parts), synthetic=synthetic, created_at=at))

    def _answer(self, data: Node, at: int) -> None:
        name = data.text("model", "")
        model = f"github_copilot/{name}" if name else ""
        parts: list[AssistantPart] = []
        if thought := data.text("reasoningText", ""):
            parts.append(ReasoningPart(text=thought, model=model))
        if text := data.text("content", ""):
            parts.append(TextPart(text=text))
        calls = [self._call(request) for request in data.nodes("toolRequests")]
        entry = AssistantEntry(
            parts=(*parts, *calls),
            model=model,
            usage=self._usage.pop(data.text("apiCallId", ""), None),
            finish="tool_calls" if calls else "stop",
            created_at=at,
        )
        self._make.follow(entry)

    def _call(self, request: Node) -> ToolCallPart:
        arguments = request.value.get("arguments")
        if isinstance(arguments, str):  # a tool that takes plain text: other providers know only objects
            arguments = {"input": arguments}
        call = ToolCallPart(
            call_id=request.text("toolCallId"),
            tool=request.text("name"),
            arguments=json.dumps(arguments or {}, ensure_ascii=False),
        )
        self._calls[call.call_id] = facts_of(call)
        return call

    def _result(self, data: Node, at: int) -> None:
        call_id = data.text("toolCallId")
        call = self._calls.pop(call_id, None)
        if call is None:
            self._make.leave_out("result of a call that is not in the file")
            return
        output = data.node("result").text("content", "") or data.node("error").text("message", "")
        self._make.follow(result_of(call, call_id, output, at, failed=not data.flag("success")))

    def _count(self, usage: Node) -> None:
        """Keep the tokens of a request; what was cached is among those that were sent."""
        cached, written = int(usage.number("cacheReadTokens")), int(usage.number("cacheWriteTokens"))
        self._usage[usage.text("apiCallId", "")] = Usage(
            input=max(0, int(usage.number("inputTokens")) - cached - written),
            output=int(usage.number("outputTokens")),
            cache_read=cached,
            cache_write=written,
            reasoning=int(usage.number("reasoningTokens")),
        )
