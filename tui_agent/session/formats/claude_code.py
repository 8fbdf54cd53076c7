"""Claude Code's session files: JSON lines that name their parents, one line for each block of an answer.

An answer with several blocks is several lines with one message id, and the results of parallel
calls hang below the line of their call. Both are one path here: lines of one answer become one
entry, results of one answer a chain.
"""

import re
from typing import ClassVar

from tui_agent.session.entries import AssistantEntry, TextPart, ToolCallPart, UserEntry
from tui_agent.session.formats.incoming import (
    BlockReader,
    IncomingSession,
    split,
    summary_of,
    usage_of,
)
from tui_agent.session.formats.reading import Node, SourceFile

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
}
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_CAVEAT = ("Caveat:", "<local-command-caveat>")
"""Begins the note before a command that only Claude Code itself ran, such as /compact."""
_OWN = (
    *_CAVEAT,
    "<local-command-stdout>",
    "<local-command-stderr>",
    "Continue from where you left off.",
)
"""Begins what it writes in the user's name for itself; other ``isMeta`` lines hold the text of a
command or skill."""
_OF_SUBAGENTS = ("agent-*.jsonl", "subagents/agent-*.jsonl")
"""Files in the folder of a session."""
_TITLE_CHARS = 60
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""Lines that name the session, the more telling ones last, and where the name stands in them."""


def is_line(node: Node) -> bool:
    kind = node.value.get("type")
    return ("sessionId" in node.value and "type" in node.value) or (
        kind == "summary" and "leafUuid" in node.value
    )


class Reader(BlockReader):
    """Puts lines of one answer, and the results of its calls, on one path."""

    program = "Claude Code"
    call_block = "tool_use"
    arguments_key = "input"
    image_in = staticmethod(
        lambda block: (
            block.node("source").text("data", ""),
            block.node("source").text("media_type", ""),
        )
    )
    tool_names: ClassVar = {
        name: name.lower() for name in ("Bash", "Edit", "Glob", "Grep", "LS", "Read", "Write")
    }

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._answers: dict[str, int] = {}
        """Entry of each answer, by the id of the message."""
        self._callers: dict[str, int] = {}
        """The answer that made each call."""
        self._tails: dict[int, int] = {}
        """The last of the results of an answer, by the answer."""
        self._answered: dict[int, int] = {}
        """The answer each result belongs to."""
        self._titles: dict[str, str] = {}
        self._cwd = self._session = ""
        self._boundary: Node | None = None
        self._read: set[str] = set()
        self._runs_command = False
        """Whether the next command is one that Claude Code ran itself."""

    def read(self) -> IncomingSession:
        leaf: int | None = None
        for node in self.nodes():
            kind = node.text("type", "")
            if kind in _TITLES:
                self._titles[kind] = node.text(_TITLES[kind], "")
            elif not node.has("uuid"):
                self.leave_out(f"“{kind[:40]}” line")
            elif node.flag("isSidechain"):
                self.leave_out("line of a subagent")
            elif node.text("uuid") in self._read:
                # Its /branch, and a second /compact, write all lines once more, the first of them
                # without a parent.
                self.leave_out("line that was written twice")
            else:
                self._read.add(node.text("uuid"))
                leaf = self._line(node, kind, leaf)
        self.require_conversation()
        self._leave_out_subagents()
        title = next(
            (self._titles[kind] for kind in reversed(_TITLES) if self._titles.get(kind)), ""
        )
        title = title or self._typed_title()
        return self.finish(name=self._session, cwd=self._cwd, title=title, leaf=leaf)

    def _leave_out_subagents(self) -> None:
        """Count the sessions of subagents, which are files of their own in a folder beside this one."""
        folder = self.source.path.with_suffix("")
        for pattern in _OF_SUBAGENTS:
            for _file in folder.glob(pattern):
                self.leave_out(f"session of a subagent (in {folder.name})")

    def _typed_title(self) -> str:
        """Return a title for a session that begins with commands, which are kept in tags; "" for one that doesn't.

        A command alone (/clear, /model) says less of a session than the first words after it.
        """
        alone = ""
        for entry in self.session.entries:
            if not isinstance(entry, UserEntry) or entry.synthetic is not None:
                continue
            if (command := _COMMAND.search(entry.text)) is None:
                if alone:
                    return " ".join(entry.text.split())[:_TITLE_CHARS]
                return ""
            arguments = _ARGUMENTS.search(entry.text)
            line = f"/{command[1].strip().removeprefix('/')} {arguments[1] if arguments else ''}".strip()
            if " " in line:
                return line
            alone = alone or line
        return alone

    def _line(self, node: Node, kind: str, leaf: int | None) -> int | None:
        self._cwd = self._cwd or node.text("cwd", "")
        self._session = self._session or node.text("sessionId", "")
        above = node.text("parentUuid" if node.has("parentUuid") else "logicalParentUuid", "")
        parent = self.place(above or None)
        if parent is not None:
            answer = self._answered.get(parent, parent)
            parent = self._tails.get(answer, answer)
        uuid = node.text("uuid")
        match kind:
            case "user":
                self._user(node, uuid, parent)
            case "assistant":
                self._assistant(node, uuid, parent)
            case _:
                if kind == "system" and node.text("subtype", "") == "compact_boundary":
                    self._boundary = node
                else:
                    self.leave_out(f"“{kind[:40]}” line")
                self.pass_over(uuid, parent)
                return leaf
        return self.last

    def _user(self, node: Node, uuid: str, parent: int | None) -> None:
        at = node.time("timestamp")
        message = node.node("message")
        if not isinstance(message.value.get("content"), str):
            for block in message.nodes("content"):
                if block.text("type") == "tool_result":
                    parent = self._result(block, parent, at)
        synthetic = "claude-code:meta" if node.flag("isMeta") else None
        entry = UserEntry(parts=self.said(message), synthetic=synthetic, created_at=at)
        if node.flag("isCompactSummary"):
            parent = self._compaction(entry.text, parent, at)
        elif self._is_own(entry):
            self.leave_out("line that Claude Code wrote for itself")
        elif entry.parts:
            parent = self.add(entry, parent)
        self.pass_over(uuid, parent)

    def _is_own(self, entry: UserEntry) -> bool:
        """Whether a message is none: a note, a command that the program ran, or its output."""
        text = entry.text.lstrip()
        command = self._runs_command and _COMMAND.search(text) is not None
        self._runs_command = False
        if (own := text.startswith(_OWN)) and text.startswith(_CAVEAT):
            self._runs_command = True
        return own or command

    def _result(self, part: Node, parent: int | None, at: int) -> int:
        call_id = part.text("tool_use_id")
        answer = self._callers.get(call_id)
        output, images = split(self.said(part, "a tool result"))
        entry = self.result(call_id, output, at, failed=part.flag("is_error"), attachments=images)
        below = parent
        if answer is not None:
            below = self._tails.get(answer, answer)
        entry_id = self.add(entry, below)
        if answer is not None:
            self._tails[answer] = entry_id
            self._answered[entry_id] = answer
        return entry_id

    def _assistant(self, node: Node, uuid: str, parent: int | None) -> None:
        message = node.node("message")
        name = message.text("model", "")
        model = ""
        if name and not name.startswith("<"):
            model = f"anthropic/{name}"
        parts = self.answered(message, model)
        at = node.time("timestamp")
        message_id = message.text("id", "")
        answer = None
        if message_id:
            answer = self._answers.get(message_id)
        usage = usage_of(message.node("usage"), _USAGE)
        if known := self.answer(answer):
            stop = message.text("stop_reason", "")
            finish = _FINISH.get(stop, known.finish)
            self.change(
                known, parts=(*known.parts, *parts), finish=finish, usage=usage or known.usage
            )
            answer = known.id
        else:
            failed = node.flag("isApiErrorMessage")
            text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
            entry = AssistantEntry(
                parts=() if failed else parts,
                model=model,
                usage=usage,
                finish="error" if failed else _FINISH.get(message.text("stop_reason", ""), "stop"),
                error=(text or "The request failed.") if failed else None,
                created_at=at,
            )
            answer = self.add(entry, parent)
            self._answers[message_id] = answer
        for part in parts:
            if isinstance(part, ToolCallPart):
                self._callers[part.call_id] = answer
        self.pass_over(uuid, answer)

    def _compaction(self, summary: str, parent: int | None, at: int) -> int:
        if self._boundary is not None:
            facts = self._boundary.node("compactMetadata")
        else:
            facts = Node({}, "")
        by_itself = facts.text("trigger", "") == "auto"
        # Messages kept beside the summary stand before it in the file, but for a fork, which begins
        # with the summary.
        head = facts.node("preservedSegment").text("headUuid", "")
        kept = self._places.get(head)
        entry = summary_of(
            summary, at, before=facts.number("preTokens"), by_itself=by_itself, first_kept_id=kept
        )
        self._boundary = None
        return self.add(entry, parent)
