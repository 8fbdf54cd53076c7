"""Builds paths of entries for tests: ids ascend, parents chain, tokens are given or counted as characters / 4."""

import json
from typing import Any

from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CheckpointEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    FileChange,
    ModelChangeEntry,
    PruneEntry,
    ShellEntry,
    SummaryDetails,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)

MODEL = "test/model"


class PathBuilder:
    """A path that grows; every method appends one entry and returns it."""

    def __init__(self, first_id: int = 1) -> None:
        self.path: list[Entry] = []
        self._next = first_id
        self._calls = 0

    def add(self, entry: Entry) -> Any:
        """Append any entry, giving it the next id."""
        filled = entry.model_copy(
            update={"id": self._next, "parent_id": self.path[-1].id if self.path else None}
        )
        self._next += 1
        self.path.append(filled)
        return filled

    def system(self, *blocks: str) -> SystemEntry:
        return self.add(SystemEntry(blocks=blocks or ("You are an agent.",), model=MODEL))

    def user(self, text: str, tokens: int | None = None, **fields: Any) -> UserEntry:
        return self.add(
            UserEntry(parts=(TextPart(text=text),), tokens=_tokens(text, tokens), **fields)
        )

    def say(self, text: str, tokens: int | None = None, **fields: Any) -> AssistantEntry:
        fields["tokens"] = _tokens(text, tokens)
        return self.add(AssistantEntry(parts=(TextPart(text=text),), model=MODEL, **fields))

    def call(
        self, *calls: tuple[str, dict[str, Any] | str], text: str = "", **fields: Any
    ) -> AssistantEntry:
        """Append an answer that asks for calls, each a tool and its arguments (an object or raw text)."""
        parts: list[Any] = [TextPart(text=text)] if text else []
        for tool, arguments in calls:
            self._calls += 1
            raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
            parts.append(ToolCallPart(call_id=f"c{self._calls}", tool=tool, arguments=raw))
        fields.setdefault("tokens", sum(len(str(part)) for part in parts) // 4)
        return self.add(
            AssistantEntry(parts=tuple(parts), model=MODEL, finish="tool_calls", **fields)
        )

    def result(
        self, call_id: str, output: str, tool: str = "bash", **fields: Any
    ) -> ToolResultEntry:
        fields.setdefault("tokens", _tokens(output, None))
        fields.setdefault("status", ToolStatus.COMPLETED)
        return self.add(ToolResultEntry(call_id=call_id, tool=tool, output=output, **fields))

    def run(
        self, tool: str, arguments: dict[str, Any] | str, output: str, **fields: Any
    ) -> ToolResultEntry:
        """Append one call and its result."""
        asked = self.call((tool, arguments))
        return self.result(asked.tool_calls[0].call_id, output, tool, **fields)

    def shell(self, command: str, output: str, **fields: Any) -> ShellEntry:
        return self.add(
            ShellEntry(command=command, output=output, tokens=_tokens(output, None), **fields)
        )

    def prune(self, *targets: int, **fields: Any) -> PruneEntry:
        fields.setdefault("tokens_freed", 1)
        return self.add(PruneEntry(targets=targets, reason="test", **fields))

    def edit(self, target: int, action: Any) -> ContextEditEntry:
        return self.add(ContextEditEntry(target=target, action=action))

    def compaction(self, summary: str, first_kept_id: int | None, **fields: Any) -> CompactionEntry:
        base: dict[str, Any] = {
            "tokens_before": 100,
            "tokens_after": 10,
            "trigger": "threshold",
            "model": MODEL,
        }
        base["tokens"] = _tokens(summary, None)
        return self.add(
            CompactionEntry(summary=summary, first_kept_id=first_kept_id, **(base | fields))
        )

    def branch_summary(
        self, summary: str, from_id: int, details: SummaryDetails | None = None
    ) -> BranchSummaryEntry:
        tokens, details = _tokens(summary, None), details or SummaryDetails()
        return self.add(
            BranchSummaryEntry(summary=summary, from_id=from_id, details=details, tokens=tokens)
        )

    def model(self, model: str) -> ModelChangeEntry:
        return self.add(ModelChangeEntry(model=model))

    def checkpoint(self, *paths: str) -> CheckpointEntry:
        return self.add(CheckpointEntry(files=tuple(FileChange(path=path) for path in paths)))


def _tokens(text: str, tokens: int | None) -> int:
    return max(1, len(text) // 4) if tokens is None else tokens
