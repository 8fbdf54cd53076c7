"""Mistral Vibe's logs before version 3: one JSON file for each session (1), or a directory with lines of messages (2).

Messages are those of chat completions: a role, content, ``reasoning_content``, ``tool_calls``, ``tool_call_id``. They
have no times; a session begins when its log says so. Taken from the logger of versions 1.3.5 and 2.2.0.
"""

from collections.abc import Iterable

from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.formats.incoming import Builder, IncomingSession
from tui_agent.session.formats.reading import NoConversation, Node, read_document
from tui_agent.session.formats.source import SourceFile
from tui_agent.session.formats.tools import CallFacts, facts_of

__all__ = ["is_log", "project_of", "read"]

_LINES = "messages.jsonl"


def is_log(source: SourceFile) -> bool:
    """Whether a file is a log of version 1 or 2."""
    if source.path.name == _LINES:
        return (source.path.parent / "meta.json").is_file() and b'"role"' in source.head
    if not (source.path.name.startswith("session_") and source.is_document and b'"metadata"' in source.head):
        return False
    document = source.document()
    return document.has("messages") and "session_id" in document.node("metadata").value


def project_of(source: SourceFile) -> str:
    """Return the directory a session worked in."""
    return _metadata(source).node("environment").text("working_directory", "")


def _metadata(source: SourceFile) -> Node:
    if source.path.name == _LINES:
        return read_document(source.path.parent / "meta.json", source.limits)
    return source.document().node("metadata")


def read(source: SourceFile) -> IncomingSession:
    """Make a session of a log.

    Raises:
        ImportRefused: a message is not what it should be.
    """
    lines: Iterable[Node | None] = (
        source.lines() if source.path.name == _LINES else iter(source.document().nodes("messages"))
    )
    metadata = _metadata(source)
    config = metadata.node("config") if metadata.has("config") else metadata.node("agent_config")
    reader = _Reader(source, config.text("active_model", ""))
    for node in lines:
        if node is not None:
            reader.message(node)
    if not len(reader.make.session.entries):
        raise NoConversation("It holds no conversation of Mistral Vibe.")
    title = metadata.text("title", "")
    session = reader.make.finish(
        name=metadata.text("session_id", ""),
        cwd=project_of(source),
        # What it calls a session by itself is the beginning of the first message.
        title="" if title.endswith("…") or title == "Untitled session" else title,
        created_at=metadata.time("start_time"),
        leaf=reader.make.last,
    )
    session.updated_at = max(session.updated_at, metadata.time("end_time"))
    stats = metadata.node("stats")
    session.side_cost = stats.number("session_cost")
    return session


class _Reader:
    def __init__(self, source: SourceFile, model: str) -> None:
        self.make = Builder("Mistral Vibe", source.limits)
        self._model = model
        self._calls: dict[str, CallFacts] = {}

    def message(self, node: Node) -> None:
        """Add what a message becomes."""
        match role := node.text("role", "assistant"):
            case "user":
                synthetic = "vibe:context" if node.flag("injected") else None
                parts = (TextPart(text=node.text("content", "")),)
                self.make.add(UserEntry(parts=parts, synthetic=synthetic), self.make.last)
            case "assistant":
                self._answer(node)
            case "tool":
                self._result(node)
            case _:
                self.make.leave_out(f"message of “{role[:40]}”")

    def _answer(self, node: Node) -> None:
        parts: list[AssistantPart] = []
        if thought := node.text("reasoning_content", ""):
            parts.append(ReasoningPart(text=thought, model=self._model))
        if text := node.text("content", ""):
            parts.append(TextPart(text=text))
        calls = []
        for call in node.nodes("tool_calls"):
            asked = call.node("function")
            part = ToolCallPart(
                call_id=call.text("id", ""), tool=asked.text("name", ""), arguments=asked.text("arguments", "{}")
            )
            self._calls[part.call_id] = CallFacts(part.tool, *facts_of(part))
            calls.append(part)
        finish = "tool_calls" if calls else "stop"
        if parts or calls:
            self.make.add(AssistantEntry(parts=(*parts, *calls), model=self._model, finish=finish), self.make.last)

    def _result(self, node: Node) -> None:
        call_id, output = node.text("tool_call_id", ""), node.text("content", "")
        call = self._calls.get(call_id, CallFacts())
        failed = output.startswith("<tool_error>")
        entry = ToolResultEntry(
            call_id=call_id,
            tool=call.tool or node.text("name", ""),
            status=ToolStatus.ERROR if failed else ToolStatus.COMPLETED,
            output=output.removeprefix("<tool_error>").removesuffix("</tool_error>") if failed else output,
            title=call.title,
            metadata=call.metadata,
        )
        self.make.add(entry, self.make.last)
