"""Formats the memory's most recently used lines as a section of the request head, within a limit.

The limit is in tokens. The request head is the part of each request that precedes the conversation.
Pure.
"""

from collections.abc import Callable, Sequence

from tui_agent.files.memory import MemoryLine
from tui_agent.lazy import frozen


@frozen
class MemorySection:
    """The request head's section that contains the memory; "" if there is none.

    ``room`` is the number of tokens that may still be used.
    """

    text: str
    room: int


def memory_section(
    lines: Sequence[MemoryLine], words: str, room: int, count: Callable[[str], int]
) -> MemorySection:
    """Return the section with the most recently used lines that fit ``room`` tokens.

    The lines keep their order; a row says how many are left out. ``words`` is the text that
    precedes the lines; ``count`` returns the tokens of a text.
    """
    recent = sorted(lines, key=_last_of_use)
    rows, left = newest_within([row_of(line) for line in recent], room, count)
    if not rows:
        return MemorySection("", room)
    kept = [line for line in lines if row_of(line) in rows]
    more = left_out(len(lines) - len(kept), "in /memory")
    text = "\n".join(["<memory>", words, *more, *map(row_of, kept), "</memory>"])
    return MemorySection(text, left)


def row_of(line: MemoryLine) -> str:
    """Return a line of the memory as the model sees it: "- topic: text"."""
    # A closing tag in the line would end the section early.
    return f"- {line.shown}".replace("</", "<\\/")


def newest_within(
    rows: Sequence[str], room: int, count: Callable[[str], int]
) -> tuple[list[str], int]:
    """Return the last rows that fit ``room`` tokens, in their order, and the tokens left over."""
    kept: list[str] = []
    for row in reversed(rows):
        cost = count(row) + 1
        if cost > room:
            break
        room -= cost
        kept.append(row)
    return kept[::-1], room


def left_out(count: int, where: str) -> list[str]:
    """Return a list with one row: how many memory lines are omitted, and ``where`` they are.

    Returns [] if ``count`` is 0.
    """
    if not count:
        return []
    return [f"[{count} more, used less recently, are only {where}.]"]


def _last_of_use(line: MemoryLine) -> int:
    return max(line.kept_at, line.used_at)
