"""What the recorded agent used again: identifiers seen before a point whose next appearance is in its own action.

The definition of an identifier is wider and simpler than the product's anchors on purpose: it must not favour the
policy that happens to look for the same things.
"""

import re
from collections.abc import Iterable, Sequence

from tui_agent.context.arguments import parse_object
from tui_agent.session.entries import AssistantEntry, Entry, ToolResultEntry, UserEntry

_WORD = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_$./:@#-]*[A-Za-z0-9_$]")
_PLAIN = re.compile(r"[A-Za-z]?[a-z]+(?:-[a-z]+)?|[A-Z]+|\d{1,3}|[\d.:-]+[a-z]?")


def identifiers(text: str) -> set[str]:
    """Return the identifier-like words of a text: paths, symbols, flags, hashes, numbers, error codes, URLs."""
    return {word for word in _WORD.findall(text) if len(word) >= 4 and not _PLAIN.fullmatch(word)}


def entry_text(entry: Entry) -> str:
    """Return all the recorded text of an entry."""
    match entry:
        case UserEntry():
            return entry.text
        case AssistantEntry():
            return "\n".join([entry.text, *(_arguments(call.arguments) for call in entry.tool_calls)])
        case ToolResultEntry():
            return entry.output
        case _:
            return ""


class References:
    """Answers, for any point of a trace, which identifiers from before it the agent goes on to use by itself."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._words = [identifiers(entry_text(entry)) for entry in entries]
        self._is_action = [isinstance(entry, AssistantEntry) for entry in entries]
        self._first: dict[str, int] = {}
        for place, words in enumerate(self._words):
            for word in words:
                self._first.setdefault(word, place)

    def used_after(self, point: int) -> set[str]:
        """Return the identifiers of entries before ``point`` that first come up again in an action."""
        settled: set[str] = set()
        used: set[str] = set()
        for place in range(point, len(self._words)):
            fresh = {word for word in self._words[place] - settled if self._first[word] < point}
            settled |= fresh
            if self._is_action[place]:
                used |= fresh
        return used

    def of(self, places: Iterable[int]) -> set[str]:
        """Return the identifiers of the entries at these places."""
        return set().union(*(self._words[place] for place in places))


def _arguments(text: str) -> str:
    values = parse_object(text)
    if values is None:
        return text
    return "\n".join(value if isinstance(value, str) else str(value) for value in values.values())
