"""What the recorded agent uses again, and how far back it last stood.

The definition of an identifier is wider and simpler than the product's anchors on purpose: it must not favour the
policy that happens to look for the same things.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tui_agent.context.arguments import parse_object, strings_in
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
            return "\n".join(
                [entry.text, *(_arguments(call.arguments) for call in entry.tool_calls)]
            )
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


@dataclass(frozen=True, slots=True)
class Use:
    """An identifier in an action: the place of its last mention before, and how many tokens back that ends."""

    word: str
    source: int
    back: int
    line: str
    """The whole line of its last mention, with single spaces."""


class References:
    """Answers, for each action of a trace, which identifiers it takes from before and where they last stood."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.length = len(entries)
        self._words = [identifiers(entry_text(entry)) for entry in entries]
        self._uses: dict[int, tuple[Use, ...]] = {}
        last: dict[str, int] = {}
        ends: list[int] = []
        total = 0
        for place, entry in enumerate(entries):
            if isinstance(entry, AssistantEntry):
                known = sorted(word for word in self._words[place] if word in last)
                self._uses[place] = tuple(
                    Use(
                        word,
                        last[word],
                        total - ends[last[word]],
                        _line_of(word, entries[last[word]]),
                    )
                    for word in known
                )
            last.update(dict.fromkeys(self._words[place], place))
            total += entry.tokens
            ends.append(total)

    def far(self, action: int, tokens: int) -> list[Use]:
        """Return the uses of an action whose last mention ended more than so many tokens before it."""
        return [use for use in self._uses.get(action, ()) if use.back > tokens]

    def words(self, place: int) -> set[str]:
        """Return the identifiers of one entry."""
        return self._words[place]


def single_spaced(text: str) -> str:
    """Return text to look lines up in: each line with single spaces."""
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def _line_of(word: str, entry: Entry) -> str:
    lines = entry_text(entry).split("\n")
    return " ".join(next(line for line in reversed(lines) if word in line).split())


def _arguments(text: str) -> str:
    values = parse_object(text)
    return text if values is None else "\n".join(strings_in(values))
