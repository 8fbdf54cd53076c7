"""Reads Claude Code's sessions, which are JSON lines that contain the id of their parent line.

An answer with several blocks has a line for each block, all with the same message id. Results of
parallel calls have the lines of their calls as parents. The reader turns the lines of an answer
into one entry, and the results of its calls into a chain of entries below it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from tui_agent.json_text import as_dict
from tui_agent.session.entries import (
    AssistantEntry,
    ToolCallPart,
    ToolResultEntry,
    UserEntry,
    is_by_user,
    joined_text,
)
from tui_agent.session.formats.incoming import (
    BlockReader,
    IncomingSession,
    split,
    summary_of,
    usage_of,
)
from tui_agent.session.formats.reading import NOTHING, ImportRefused, Node, SourceFile

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
"""Prefixes of the note that precedes a command which Claude Code itself carries out, such as
/compact."""
_OWN = (
    *_CAVEAT,
    "<local-command-stdout>",
    "<local-command-stderr>",
    "Continue from where you left off.",
)
"""Prefixes of messages in the user's role that Claude Code writes for its own use. Other ``isMeta``
lines contain the text of a command or skill."""
_TOLD = "<task-notification>"
"""Prefix of messages in the user's role that tell the model that a background task has ended."""
_OF_SUBAGENTS = ("agent-*.jsonl", "subagents/agent-*.jsonl")
"""Glob patterns for the files of subagents, which are in a folder that is named like the session
file without its suffix."""
_AGENT_CHARS = 80
_TITLE_CHARS = 60
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""Types of lines that contain a title, each with the title's key. The preferred types come last."""


def is_line(node: Node) -> bool:
    kind = node.value.get("type")
    return ("sessionId" in node.value and "type" in node.value) or (
        kind == "summary" and "leafUuid" in node.value
    )


def read(source: SourceFile) -> Iterator[list[IncomingSession]]:
    """Yield one list with the file's session and its subagents' sessions from separate files.

    The file's own session comes first. A subagent's file that can't be read is counted as left out.

    Raises:
        ImportRefused: the file can't be read.
    """
    reader = Reader(source)
    session = reader.read()
    folder = source.path.with_suffix("")
    found = sorted(path for pattern in _OF_SUBAGENTS for path in folder.glob(pattern))
    children = []
    for path in found:
        try:
            children.append(_subagent(path, reader, source))
        except ImportRefused:
            session.left_out[f"unreadable session of a subagent (in {folder.name})"] += 1
    yield [session, *children]


def _subagent(path: Path, parent: "Reader", source: SourceFile) -> IncomingSession:
    """Return a subagent's session with a link to the result of the call that started the subagent.

    If the parent session's file contains no such result, the session is linked only with the parent
    session.
    """
    reader = SubagentReader(SourceFile(path, source.skip_damaged))
    child = reader.read()
    facts = _facts_of(path.with_suffix(".meta.json"))
    result = parent.result_of(facts.text("toolUseId", ""), reader.agent)
    kind = facts.text("agentType", "")[:_AGENT_CHARS] or "subagent"
    child.origin = (parent.session.id, None if result is None else result.id, kind)
    child.damaged = reader.source.damaged
    parent.session.left_out.update(child.left_out)
    child.left_out.clear()
    if result is not None:
        metadata = result.metadata.model_copy(update={"session": child.id})
        parent.change(result, metadata=metadata)
    return child


def _facts_of(path: Path) -> Node:
    """Return the JSON object in a subagent's ``.meta.json``, which names its call and kind.

    The call is the one that started the subagent. Returns an empty object if there is no readable
    file. Older versions of Claude Code wrote none.
    """
    try:
        return SourceFile(path).document()
    except ImportRefused:
        return NOTHING


class Reader(BlockReader):
    """Builds a session from a file of Claude Code.

    The lines of an answer are merged, and its tool results become a chain.
    """

    program = "Claude Code"
    reads_subagent: ClassVar = False
    """Whether to read only a subagent's lines, instead of leaving them out."""
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
        """Entry id of each answer, by message id."""
        self._callers: dict[str, int] = {}
        """Entry id of the answer that contains each tool call, by the call's id."""
        self._tails: dict[int, int] = {}
        """Entry id of the last tool result of each answer, by the answer's entry id."""
        self._answered: dict[int, int] = {}
        """Entry id of the answer that each result belongs to, by the result's entry id."""
        self._results: dict[str, int] = {}
        """Entry id of each tool result, by the id of the call, and also by the id of the subagent
        if there is one."""
        self._titles: dict[str, str] = {}
        self._cwd = self._session = ""
        self.agent = source.path.stem.removeprefix("agent-") if self.reads_subagent else ""
        """The subagent's id; "" unless the file is a subagent's."""
        self._boundary: Node | None = None
        """The line that announces a compaction, kept until the compaction's summary is read."""
        self._read: set[str] = set()
        """Ids of the lines that were read so far."""
        self._runs_command = False
        """Whether the next command in the file is one that Claude Code itself carries out."""

    def read(self) -> IncomingSession:
        leaf: int | None = None
        for node in self.nodes():
            kind = node.text("type", "")
            if kind in _TITLES:
                self._titles[kind] = node.text(_TITLES[kind], "")
            elif not node.has("uuid"):
                self.leave_out(f"“{kind[:40]}” line")
            elif node.flag("isSidechain") is not self.reads_subagent:
                self.leave_out("line of a subagent")
            elif node.text("uuid") in self._read:
                # Claude Code's /branch, and a second /compact, write all lines again, and the first
                # of these lines has no parent. The repeated lines are left out.
                self.leave_out("line that was written twice")
            else:
                self._read.add(node.text("uuid"))
                leaf = self._line(node, kind, leaf)
        self.require_conversation()
        named = [self._titles.get(kind) for kind in reversed(_TITLES)]
        title = next(filter(None, named), None) or self._typed_title()
        name = "/".join(filter(None, [self._session, self.agent]))
        return self.finish(name=name, cwd=self._cwd, title=title, leaf=leaf)

    def result_of(self, call_id: str, agent: str) -> ToolResultEntry | None:
        """Return the result of the call that started a subagent; None if there is none.

        ``agent`` is the subagent's id.
        """
        place = self._results.get(call_id) or self._results.get(agent)
        entry = None if place is None else self.entry(place)
        return entry if isinstance(entry, ToolResultEntry) else None

    def _typed_title(self) -> str:
        """Return a title for a session that begins with slash commands (stored in XML tags).

        The title is the first command with arguments, or the message after commands without
        arguments (/clear, /model); or the first command if nothing else follows. "" for a session
        that begins with a message.
        """
        alone = ""
        for entry in self.session.entries:
            if not is_by_user(entry):
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
        """Read a line of the file, and return the session's new leaf; ``leaf`` is the old one."""
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
                    agent = as_dict(node.value.get("toolUseResult")).get("agentId")
                    self._results |= dict.fromkeys([block.text("tool_use_id"), str(agent)], parent)
        entry = UserEntry(parts=self.said(message), created_at=at)
        if node.flag("isMeta") or entry.text.startswith(_TOLD):
            entry = entry.model_copy(update={"synthetic": "claude-code:meta"})
        if node.flag("isCompactSummary"):
            parent = self._compaction(entry.text, parent, at)
        elif self._check_own(entry):
            self.leave_out("line that Claude Code wrote for itself")
        elif entry.parts:
            parent = self.add(entry, parent)
        self.pass_over(uuid, parent)

    def _check_own(self, entry: UserEntry) -> bool:
        """Return True if Claude Code wrote a message for its own use.

        Such a message is a note, a command that Claude Code itself carried out, or that command's
        output. Call this method for every message in order, because a note announces that a command
        follows.
        """
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
            entry = AssistantEntry(
                parts=parts,
                model=model,
                usage=usage,
                finish=_FINISH.get(message.text("stop_reason", ""), "stop"),
                created_at=at,
            )
            if node.flag("isApiErrorMessage"):
                why = joined_text(parts)
                failure = {"finish": "error", "error": why or "The request failed."}
                entry = entry.model_copy(update={**failure, "parts": ()})
            answer = self.add(entry, parent)
            self._answers[message_id] = answer
        for part in parts:
            if isinstance(part, ToolCallPart):
                self._callers[part.call_id] = answer
        self.pass_over(uuid, answer)

    def _compaction(self, summary: str, parent: int | None, at: int) -> int:
        facts = (self._boundary or NOTHING).node("compactMetadata")
        by_itself = facts.text("trigger", "") == "auto"
        # Messages that are kept beside the summary precede the summary in the file, except in a
        # fork, whose file begins with the summary.
        head = facts.node("preservedSegment").text("headUuid", "")
        kept = self._places.get(head)
        entry = summary_of(
            summary, at, before=facts.number("preTokens"), by_itself=by_itself, first_kept_id=kept
        )
        self._boundary = None
        return self.add(entry, parent)


class SubagentReader(Reader):
    """Builds the session of a subagent from the subagent's file."""

    reads_subagent = True
