"""Finds lines to propose for the memory, in a model's answer or in the user's messages. Pure."""

import re
from collections.abc import Iterator, Sequence

from tui_agent.context.standing_rules import rules_in
from tui_agent.files.memory import MemoryLine, NotKeptError, line_of
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import Entry, is_by_user, typed_text

MAX_LINES = 3
"""Maximum number of memory lines that are proposed in one run."""
MIN_CHARS = 8
"""Minimum length of a line proposed for the memory, in characters."""
MAX_CHARS = 240
"""Maximum length of a line proposed for the memory, in characters."""

_ROW = LazyPattern(
    r"[\s>*•+-]*(?:\d{1,2}[.)]\s+)?[*_`\"'(\[]*#(?P<entry>\d{1,9})[\])`*_\"']*[\s:,.|–—-]+(?P<line>.*)"
)
_QUOTES = "`*_\"'“”|, "
_LASTING = LazyPattern(
    r"\b(?:always|never|from now on|in (?:the )?future|every time|in every case|by default|"
    r"we (?:only|prefer)|i prefer|remember)\b",
    re.IGNORECASE,
)
_ASKED = LazyPattern(
    r"^(?:please\s+)?(?:remember|keep in mind|note|memorise|memorize)(?:\s+that\b)?[\s:,]+(?P<line>\S.*)",
    re.IGNORECASE,
)


@frozen
class FoundLine:
    """A line to propose for the memory, and the id of the entry that it comes from.

    The id is 0 if the entry is unknown.
    """

    line: MemoryLine
    entry_id: int = 0


def read_answer(answer: str) -> list[FoundLine]:
    """Return the memory lines that a model proposes in its answer, written as ``#12: text``.

    In this example, entry 12 is the line's source. Returns at most ``MAX_LINES``, in the answer's
    order. Other text is ignored.
    """
    found: dict[str, FoundLine] = {}
    for text in answer.splitlines():
        row = _ROW.match(text)
        if row is None:
            continue
        line = _usable(row["line"].strip(_QUOTES))
        if line is not None:
            found.setdefault(line.topic or line.text, FoundLine(line, int(row["entry"])))
    return list(found.values())[:MAX_LINES]


def lines_by_rule(entries: Sequence[Entry]) -> list[FoundLine]:
    """Return up to ``MAX_LINES`` lines from the user's messages, the newest message first.

    The lines are sentences that ask the model to remember something, or that state a lasting rule.
    """
    found: dict[str, FoundLine] = {}
    for entry in reversed(entries):
        if not is_by_user(entry):
            continue
        for text in _lasting_sentences(typed_text(entry.parts)):
            line = _usable(text)
            if line is not None:
                found.setdefault(line.text, FoundLine(line, entry.id))
    return list(found.values())[:MAX_LINES]


def _lasting_sentences(text: str) -> Iterator[str]:
    for sentence in re.split(r"(?<=[.!?;])\s+|\n+", text):
        asked = _ASKED.match(sentence.strip())
        if asked is not None and not sentence.rstrip().endswith("?"):
            yield asked["line"]
        elif any(_LASTING.search(rule) for rule in rules_in(sentence)):
            yield sentence


def _usable(text: str) -> MemoryLine | None:
    """Return the memory line for a text; None if the text can't be proposed as a memory line.

    It can't be proposed if it is too short or too long, contains a secret, or isn't a valid line.
    """
    from tui_agent.secret_detector import has_secret

    if not MIN_CHARS <= len(text) <= MAX_CHARS or has_secret(text):
        return None
    try:
        return line_of(text)
    except NotKeptError:
        return None
