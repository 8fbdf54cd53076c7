"""Reads Copilot CLI's sessions, which are files named ``events.jsonl`` with one event per line.

A rewind removes events from the file, so the session is a single path. Images are separate events,
which messages refer to. This applies to files of version 1.0.102.
"""

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
from tui_agent.session.formats.incoming import IncomingSession, SessionReader, summary_of, usage_of
from tui_agent.session.formats.reading import NOTHING, Node, SourceFile

_USAGE = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cacheReadTokens",
    "cache_write": "cacheWriteTokens",
    "reasoning": "reasoningTokens",
}
_BOOKKEEPING = ("assistant.", "hook.", "model.", "permission.", "session.", "tool.")
"""Prefixes of the names of event types that add nothing to the conversation."""


def is_line(node: Node) -> bool:
    data = node.value.get("data")
    return (
        node.value.get("type") == "session.start"
        and isinstance(data, dict)
        and "copilotVersion" in data
    )


def project_of(source: SourceFile) -> str:
    first = next(source.first_nodes(), NOTHING)
    return first.node("data").node("context").text("cwd", "")


class Reader(SessionReader):
    """Builds a session from a file of Copilot CLI.

    The event of an image comes before the message that refers to the image.
    """

    program = "Copilot CLI"

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._images: dict[str, ImagePart] = {}
        self._usage: dict[str, Usage | None] = {}
        """The usage of those requests whose answers have not been read yet, by the request's id."""

    def read(self) -> IncomingSession:
        start = NOTHING
        for node in self.nodes():
            if node.text("type", "") == "session.start":
                start = node.node("data")
            elif node.has("agentId"):
                self.leave_out("event of a subagent")
            else:
                self._event(node.text("type", ""), node.node("data"), node.time("timestamp"))
        self.require_conversation()
        return self.finish(
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
                if image := self.image(data, data.text("data", ""), data.text("mimeType", "")):
                    self._images[data.text("assetId", "")] = image
            case "session.usage_record":
                usage = data.node("usage")
                self._usage[usage.text("apiCallId", "")] = usage_of(
                    usage, _USAGE, cached_is_sent=True
                )
            case "session.compaction_complete" if data.flag("success"):
                before = data.number("preCompactionTokens")
                after = data.number("postCompactionTokens")
                by_itself = data.text("trigger", "") != "manual"
                summary = data.text("summaryContent", "")
                self.follow(
                    summary_of(summary, at, before=before, after=after, by_itself=by_itself)
                )
            case "session.error":
                self.fail(data.text("message", "") or "The request failed.", at)
            case "abort":
                self.interrupt(self.last)
            case "system.message":
                self.leave_out("message of “system”")
            case _:
                if not kind.startswith(_BOOKKEEPING):
                    self.leave_out(f"“{kind[:40]}” event")

    def _user(self, data: Node, at: int) -> None:
        parts: list[TextPart | ImagePart] = []
        if text := data.text("content", ""):
            parts.append(TextPart(text=text))
        for attachment in data.nodes("attachments"):
            if image := self._images.get(attachment.text("assetId", "")):
                parts.append(image)
            else:
                self.leave_out("attachment that is not in the file")
        synthetic = None
        if (source := data.text("source", "user")) != "user":
            synthetic = f"copilot-cli:{source[:40]}"
        if parts:
            self.follow(UserEntry(parts=tuple(parts), synthetic=synthetic, created_at=at))

    def _answer(self, data: Node, at: int) -> None:
        name = data.text("model", "")
        model = ""
        if name:
            model = f"github_copilot/{name}"
        parts: list[AssistantPart] = []
        if thought := data.text("reasoningText", ""):
            parts.append(ReasoningPart(text=thought, model=model))
        if text := data.text("content", ""):
            parts.append(TextPart(text=text))
        calls: list[ToolCallPart] = []
        for request in data.nodes("toolRequests"):
            arguments = request.value.get("arguments")
            if isinstance(arguments, str):
                # This tool takes plain text, which is put into a JSON object, because other
                # providers accept only objects as arguments.
                arguments = {"input": arguments}
            calls.append(
                self.call(request.text("toolCallId"), request.text("name"), arguments or {})
            )
        entry = AssistantEntry(
            parts=(*parts, *calls),
            model=model,
            usage=self._usage.pop(data.text("apiCallId", ""), None),
            finish="tool_calls" if calls else "stop",
            created_at=at,
        )
        self.follow(entry)

    def _result(self, data: Node, at: int) -> None:
        call_id = data.text("toolCallId")
        if call_id not in self._calls:
            self.leave_out("result of a call that is not in the file")
            return
        output = data.node("result").text("content", "") or data.node("error").text("message", "")
        self.follow(self.result(call_id, output, at, failed=not data.flag("success")))
        del self._calls[call_id]
