"""Mistral Vibe's sessions (versions from 3.0 on): a directory whose file ``CURRENT`` names the state that holds.

The state's projection lists chunks, each a JSON list of what was said, thought and done, with times. What a program
that was killed had not put into a state yet is in its journal and not read.
"""

import json
from collections.abc import Iterator

from tui_agent import path_checks
from tui_agent.session.entries import (
    AssistantEntry,
    AssistantPart,
    ReasoningPart,
    TextPart,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.formats.incoming import IncomingSession, SessionReader, summary_of
from tui_agent.session.formats.reading import Node, SourceFile, parse_object, read_document, unreadable

_STORE = b'"mistral.vibe.unified-session-store/'
_PERSON = frozenset({"turn_start", "turn_steer", "queue"})
"""Sources of messages that a person wrote."""


def is_file(source: SourceFile) -> bool:
    return source.path.name == "CURRENT" and _STORE in source.head


def project_of(source: SourceFile) -> str:
    """Return the directory a session worked in, as its description beside the state says."""
    return _meta(source).node("environment").text("working_directory", "")


def _meta(source: SourceFile) -> Node:
    path = source.path.parent / "meta.json"
    return read_document(path, source.limits) if path_checks.is_file(path) else Node({}, path.name)


class Reader(SessionReader):
    """Puts together what the chunks of a state hold: thoughts, words and calls of one request are one answer."""

    program = "Mistral Vibe"

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._answer: int | None = None
        self._action = ""
        """What Vibe calls the request the last answer came from."""
        self._model = ""

    def read(self) -> IncomingSession:
        current = self.source.document()
        generation = current.text("generation")
        if not generation.isalnum():
            raise current.refuse("“generation” names no state")
        state = self.source.path.parent / "generations" / generation
        manifest = read_document(state / "manifest.json", self.source.limits)
        projection = read_document(state / "projection-state.json", self.source.limits)
        session = projection.node("snapshot").node("session")
        meta = _meta(self.source)
        self._model = meta.node("config").text("active_model", "")
        for entry in self._entries(manifest.node("projection_state")):
            self._entry(entry)
        self.require_conversation()
        return self.finish(
            name=session.text("id", ""),
            cwd=project_of(self.source),
            title=session.text("title", "") or meta.text("title", ""),
            created_at=session.time("createdAt"),
        )

    def _entries(self, projection: Node) -> Iterator[Node]:
        for name in projection.texts("chunks"):
            if not name.isalnum():
                raise projection.refuse("a chunk has no name that can be right")
            path = self.source.path.parent / "chunks" / f"{name}.json"
            try:
                content = path.read_bytes()
            except OSError as error:
                raise unreadable(path, error) from error
            yield from parse_object(b'{"entries":' + content + b"}", path.name).nodes("entries")

    def _entry(self, entry: Node) -> None:
        at = entry.time("createdAt")
        match kind := entry.text("type", ""):
            case "message" if entry.text("role", "") == "user":
                self._answer = None
                self._user(entry, at)
            case "message":
                self._say(entry, [TextPart(text=text) for text in self._texts(entry)], at)
            case "reasoning":
                text = entry.text("text", "") or "\n\n".join(part.text("text", "") for part in entry.nodes("summary"))
                self._say(entry, [ReasoningPart(text=text, model=self._model)] if text else [], at)
            case "effect" if entry.node("detail").text("kind", "") == "tool":
                self._tool(entry, at)
            case "compaction" | "context_compaction":
                summary = entry.text("summary", "") or entry.text("text", "")
                self.follow(summary_of(summary, at))
            case _:
                self.leave_out(f"“{kind[:40]}” entry")

    def _texts(self, entry: Node) -> list[str]:
        found: list[str] = []
        for part in entry.nodes("content"):
            if part.has("text"):
                found.append(part.text("text"))
            else:
                self.leave_out(f"“{part.text('type', '')[:40]}” part of a message")
        return [text for text in found if text]

    def _user(self, entry: Node, at: int) -> None:
        if texts := self._texts(entry):
            synthetic = None if entry.text("source", "") in _PERSON else "vibe:context"
            parts = tuple(TextPart(text=text) for text in texts)
            self.follow(UserEntry(parts=parts, synthetic=synthetic, created_at=at))

    def _say(self, entry: Node, parts: list[AssistantPart], at: int) -> None:
        """Add to the answer the entry's name says it is of, or begin one. Thoughts stand before words."""
        if not parts:
            return
        action = entry.text("id", "").removeprefix("assistant-").removeprefix("reasoning-")[:36]
        if (known := self.answer(self._answer)) and action == self._action:
            together = (*parts, *known.parts) if isinstance(parts[0], ReasoningPart) else (*known.parts, *parts)
            self.change(known, parts=together)
            return
        self._action = action
        self._answer = self.follow(AssistantEntry(parts=tuple(parts), model=self._model, created_at=at))

    def _tool(self, entry: Node, at: int) -> None:
        """Add a call to the answer before it, and its result after it."""
        detail, state = entry.node("detail"), entry.node("state")
        tool = detail.text("toolName", "").removeprefix("file_system.")
        call = self.call(entry.text("id", ""), tool, detail.node("input").value)
        if known := self.answer(self._answer):
            self.change(known, parts=(*known.parts, call), finish="tool_calls")
        else:
            answer = AssistantEntry(parts=(call,), model=self._model, finish="tool_calls", created_at=at)
            self._answer = self.follow(answer)
        ended = entry.time("updatedAt")
        status, output = _status(state), _output(state)
        self.follow(self.result(call.call_id, output, ended or at, status=status, started_at=at, ended_at=ended))


def _status(state: Node) -> ToolStatus:
    if state.text("status", "") == "completed":
        failed = state.node("output").text("type", "success") != "success"
        return ToolStatus.ERROR if failed else ToolStatus.COMPLETED
    return ToolStatus.ERROR if state.text("status", "") == "failed" else ToolStatus.INTERRUPTED


def _output(state: Node) -> str:
    if text := state.text("outputText", ""):
        return text
    output = state.node("output")
    content = "\n".join(part.text("text", "") for part in output.nodes("content"))
    facts = output.value.get("structured_content")
    return content or (json.dumps(facts, ensure_ascii=False) if facts else output.text("message", ""))
