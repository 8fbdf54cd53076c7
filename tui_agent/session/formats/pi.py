"""Reads Pi's sessions, which are JSON lines: a header, then records with ``id`` and ``parentId``.

In the first version of the format, records have no ids and each follows the previous one. The
format is described in Pi's ``docs/session.md``.
"""

from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CompactionEntry,
    EffortChangeEntry,
    Entry,
    ModelChangeEntry,
    ShellEntry,
    SummaryDetails,
    TextPart,
    ToolResultEntry,
    UserEntry,
)
from tui_agent.session.formats.incoming import (
    BlockReader,
    IncomingSession,
    split,
    summary_of,
    usage_of,
)
from tui_agent.session.formats.reading import ImportRefused, Node, SourceFile

_OUR_PREFIX = "tui-agent:"
"""Prefix of ``customType`` in files that earlier versions of this program exported for Pi."""
_FINISH = {
    "stop": "stop",
    "toolUse": "tool_calls",
    "length": "length",
    "aborted": "interrupted",
    "error": "error",
}
_USAGE = {
    "input": "input",
    "output": "output",
    "cache_read": "cacheRead",
    "cache_write": "cacheWrite",
}


def is_line(node: Node) -> bool:
    return node.value.get("type") == "session" and "cwd" in node.value


class Reader(BlockReader):
    """Builds a session from a file of Pi, with one entry for each record of a known kind."""

    program = "Pi"
    call_block = "toolCall"
    arguments_key = "arguments"
    image_in = staticmethod(lambda block: (block.text("data"), block.text("mimeType")))

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._lines: list[str] = []
        """Names of the records in the file's lines, in order. They are needed because a compaction
        in the first version of the format refers to a record by its index."""
        self._title = ""

    def read(self) -> IncomingSession:
        header: Node | None = None
        linear = True
        for number, node in enumerate(self.source.lines()):
            if node is None:
                pass
            elif header is None:
                if not is_line(node):
                    raise node.refuse("a session of Pi begins with a line of the type “session”")
                header = node
                linear = node.number("version", 1) < 2
            else:
                if linear:
                    name = f"line {number}"
                else:
                    name = node.text("id")
                if not linear and name in self._places:
                    raise node.refuse(f"there are two entries with the id “{name[:40]}”")
                above = None
                if node.has("parentId"):
                    above = node.text("parentId")
                if linear:
                    parent = self.last
                else:
                    parent = self.place(above)
                self._record(node, name, parent)
            self._lines.append(f"line {number}")
        if header is None:
            raise ImportRefused("The file is empty.")
        return self.finish(
            name=header.text("id", ""),
            cwd=header.text("cwd", ""),
            title=self._title,
            created_at=header.time("timestamp"),
        )

    def _record(self, node: Node, name: str, parent: int | None) -> None:
        at = node.time("timestamp")
        entry: Entry | None = None
        match kind := node.text("type"):
            case "message":
                entry = self._message(node.node("message"))
            case "model_change":
                entry = ModelChangeEntry(model=f"{node.text('provider')}/{node.text('modelId')}")
            case "thinking_level_change":
                try:
                    entry = EffortChangeEntry(effort=Effort(node.text("thinkingLevel")))
                except ValueError:
                    self.leave_out("unknown thinking level")
            case "compaction":
                entry = self._compaction(node)
            case "branch_summary":
                left = self._places.get(node.text("fromId", ""), parent)
                entry = BranchSummaryEntry(
                    summary=node.text("summary"),
                    from_id=left or 0,
                    details=_details(node.node("details")),
                )
            case "custom_message":
                entry = self._custom(node)
            case "label":
                self._label(node)
            case "session_info":
                self._title = node.text("name", self._title)
            case _:
                self.leave_out(f"“{kind[:40]}” record")
        if entry is None:
            self.pass_over(name, parent)
        else:
            self.add(entry.model_copy(update={"created_at": at}), parent, name=name)

    def _message(self, message: Node) -> Entry | None:
        match role := message.text("role"):
            case "user":
                return UserEntry(parts=self.said(message) or (TextPart(text=""),))
            case "assistant":
                return self._assistant(message)
            case "toolResult":
                return self._result(message)
            case "bashExecution":
                code = message.value.get("exitCode")
                return ShellEntry(
                    command=message.text("command"),
                    output=message.text("output", ""),
                    exit_code=code if isinstance(code, int) else None,
                    excluded=message.flag("excludeFromContext"),
                )
            case "custom" | "hookMessage":
                return self._custom(message)
            case _:
                self.leave_out(f"message of “{role[:40]}”")
                return None

    def _custom(self, message: Node) -> UserEntry:
        kind = message.text("customType", "")[:60]
        if kind.startswith(_OUR_PREFIX):
            synthetic = kind.removeprefix(_OUR_PREFIX)
        else:
            synthetic = f"pi:{kind}"
        return UserEntry(parts=self.said(message) or (TextPart(text=""),), synthetic=synthetic)

    def _assistant(self, message: Node) -> AssistantEntry:
        model = f"{message.text('provider', '')}/{message.text('model', '')}".strip("/")
        usage = message.node("usage")
        stop = message.text("stopReason", "stop")
        cost = usage.node("cost").number("total")
        return AssistantEntry(
            parts=self.answered(message, model),
            model=model,
            usage=usage_of(usage, _USAGE),
            cost=cost or None,
            finish=_FINISH.get(stop, "stop"),
            error=message.text("errorMessage", "") or None,
            interrupted=stop == "aborted",
        )

    def _result(self, message: Node) -> ToolResultEntry:
        output, images = split(self.said(message, "a tool result"))
        result = self.result(
            message.text("toolCallId"), output, failed=message.flag("isError"), attachments=images
        )
        return result.model_copy(update={"tool": message.text("toolName")})

    def _compaction(self, node: Node) -> CompactionEntry:
        kept: int | None = None
        if node.has("firstKeptEntryId"):
            kept = self._places.get(node.text("firstKeptEntryId"))
        elif node.has("firstKeptEntryIndex"):
            index = int(node.number("firstKeptEntryIndex"))
            kept = None
            if index < len(self._lines):
                kept = self._places.get(self._lines[index])
        details = _details(node.node("details"))
        before = node.number("tokensBefore")
        return summary_of(node.text("summary"), before=before, first_kept_id=kept, details=details)

    def _label(self, node: Node) -> None:
        entry_id = self._places.get(node.text("targetId"))
        if entry_id is None:
            self.leave_out("label of a missing entry")
        elif label := node.text("label", ""):
            self.session.labels[entry_id] = label[:200]
        else:
            self.session.labels.pop(entry_id, None)


def _details(details: Node) -> SummaryDetails:
    return SummaryDetails(
        read_files=details.texts("readFiles"), modified_files=details.texts("modifiedFiles")
    )
