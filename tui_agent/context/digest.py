"""A summary by rule: one line per step, newest first within a budget. It stands in where no model has summarised."""

from collections.abc import Iterable, Sequence

from tui_agent.context.preserved import CountText
from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    Entry,
    ShellEntry,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
)

_TEXT_CHARS = 160
_CALL_CHARS = 100


def digest(entries: Sequence[Entry], budget: int, count: CountText) -> str:
    """Return what happened in ``entries`` in at most ``budget`` tokens; the newest lines are kept, in order.

    The user's messages are not in it: they are carried word for word elsewhere.
    """
    chosen: list[str] = []
    for line in reversed(list(_lines(entries))):
        cost = count(line) + 1
        if cost > budget:
            break
        chosen.append(line)
        budget -= cost
    return "\n".join(reversed(chosen))


def _lines(entries: Sequence[Entry]) -> Iterable[str]:
    results = {entry.call_id: entry for entry in entries if isinstance(entry, ToolResultEntry)}
    for entry in entries:
        match entry:
            case AssistantEntry():
                text = _line(entry.text, _TEXT_CHARS)
                if text:
                    yield f"- #{entry.id} {text}"
                for call in entry.tool_calls:
                    yield _call(entry.id, call, results.get(call.call_id))
            case ShellEntry() if not entry.excluded:
                yield f"- #{entry.id} user ran `{_line(entry.command, _CALL_CHARS)}` → exit {entry.exit_code}"
            case BranchSummaryEntry():
                yield f"- #{entry.id} summary of a branch: {_line(entry.summary, _TEXT_CHARS)}"
            case _:
                continue


def _call(entry_id: int, call: ToolCallPart, result: ToolResultEntry | None) -> str:
    what = _line((result.title if result else "") or call.arguments, _CALL_CHARS)
    if result is None:
        return f"- #{entry_id} {call.tool} {what} → interrupted"
    code = result.metadata.exit_code
    failed = result.status is not ToolStatus.COMPLETED
    ending = f"exit {code}" if code else str(result.status) if failed else "ok"
    return f"- #{result.id} {call.tool} {what} → {ending}"


def _line(text: str, limit: int) -> str:
    line = " ".join(text[: limit * 3].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
