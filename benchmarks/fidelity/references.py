"""What the recorded agent used again: identifiers seen before a point whose next appearance is in its own action.

The definition of an identifier is wider and simpler than the product's anchors on purpose: it must not favour the
policy that happens to look for the same things.
"""

import re
from collections.abc import Sequence

from tui_agent.context.arguments import parse_object
from tui_agent.session.entries import AssistantEntry, Entry, ToolResultEntry, UserEntry

_WORD = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_$./:@#-]*[A-Za-z0-9_$]")
_RULE = re.compile(r"\b(?:must|never|don't|always)\b|必须|不要|务必", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
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


def rules_of(entry: Entry) -> list[str]:
    """Return the sentences of a user's message that say must, never, don't or always."""
    if not isinstance(entry, UserEntry):
        return []
    sentences = (sentence.strip() for sentence in _SENTENCE.split(entry.text))
    return [sentence for sentence in sentences if _RULE.search(sentence) and len(sentence) < 400]


class References:
    """Answers, for any point of a trace, which identifiers from before it the agent goes on to use by itself."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._words = [identifiers(entry_text(entry)) for entry in entries]
        self._is_action = [isinstance(entry, AssistantEntry) for entry in entries]
        self.length = len(entries)
        self._used: dict[int, set[str]] = {}
        self._first: dict[str, int] = {}
        self._sources: dict[str, list[int]] = {}
        for place, words in enumerate(self._words):
            for word in words:
                self._first.setdefault(word, place)
                if not self._is_action[place]:
                    self._sources.setdefault(word, []).append(place)

    def used_after(self, point: int) -> set[str]:
        """Return the identifiers of entries before ``point`` that first come up again in an action."""
        if point not in self._used:
            self._used[point] = self._used_after(point)
        return self._used[point]

    def has_told(self, word: str, before: int) -> bool:
        """Whether any entry before a place holds an identifier."""
        return self._first.get(word, before) < before

    def _used_after(self, point: int) -> set[str]:
        settled: set[str] = set()
        used: set[str] = set()
        for place in range(point, len(self._words)):
            fresh = {word for word in self._words[place] - settled if self._first[word] < point}
            settled |= fresh
            if self._is_action[place]:
                used |= fresh
        return used

    def words(self, place: int) -> set[str]:
        """Return the identifiers of one entry."""
        return self._words[place]

    def known(self, action: int) -> set[str]:
        """Return the identifiers of an action that some output or message had told before."""
        return {word for word in self._words[action] if self._sources.get(word, (action,))[0] < action}

    def source(self, word: str, before: int) -> int:
        """Return the newest place before another that told an identifier."""
        return next(place for place in reversed(self._sources[word]) if place < before)


def _arguments(text: str) -> str:
    values = parse_object(text)
    if values is None:
        return text
    return "\n".join(value if isinstance(value, str) else str(value) for value in values.values())
