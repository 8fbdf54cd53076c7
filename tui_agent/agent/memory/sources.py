"""Finds the entry from which a memory line comes, and the lines that a run used. Pure.

No model is used, because both depend only on the share of a line's words that a text contains.
"""

from collections.abc import Iterable, Iterator, Sequence

from tui_agent.files.memory import MODEL, USER, MemoryLine, words_of
from tui_agent.lazy import frozen
from tui_agent.safe_text import one_line
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    Entry,
    FilePart,
    ShellEntry,
    SummaryEntry,
    TextPart,
    ToolResultEntry,
    UserEntry,
    typed_text,
)
from tui_agent.tools.registry import tool_traits

MIN_SOURCE_SHARE = 0.6
"""Minimum share of a memory line's words that a text must contain to count as the line's source."""
MIN_USED_SHARE = 0.6
"""Minimum share of a memory line's words that the model must write for the line to count as
used."""

_MAX_TEXT_CHARS = 100_000
"""Number of characters at the start of an entry's text that are searched for a memory line's words.
"""
_TITLE_CHARS = 60
"""Maximum characters of the name of a memory line's source."""


@frozen
class LineSource:
    """The id of the entry from which a memory line comes (0 if unknown), and the line's origin.

    ``origin`` is ``USER``, ``MODEL`` (perhaps with the page that the model had last read), or the
    name of a file, command or tool call.
    """

    entry_id: int = 0
    origin: str = MODEL


@frozen
class _Candidate:
    share: float
    source: LineSource


def source_of(text: str, entries: Sequence[Entry], named: int = 0) -> LineSource:
    """Return which of ``entries`` a memory line with this ``text`` comes from.

    This is the entry that contains the largest share of the line's words. The user's messages and
    what was read (files, outputs) are searched first, and only then the model's texts. If shares
    are equal, a user's message is preferred, then the oldest entry. If only the model wrote the
    words, ``origin`` also names the last web page that it read. ``named`` is the entry that the
    model gave as the source, 0 for none; it is used if no entry contains enough of the words.
    """
    words = words_of(text)
    by_user: _Candidate | None = None
    by_model: _Candidate | None = None
    read: _Candidate | None = None
    for entry in entries:
        for candidate in _candidates(entry, words):
            if candidate.source.origin == USER:
                by_user = _better(by_user, candidate)
            elif candidate.source.origin == MODEL:
                by_model = _better(by_model, candidate)
            else:
                read = _better(read, candidate)
    if by_user is not None and (read is None or by_user.share >= read.share):
        return by_user.source
    if read is not None:
        return read.source
    entry_id = named
    if by_model is not None:
        entry_id = by_model.source.entry_id
    pages = [_name_of(entry) for entry in entries if _is_page(entry)]
    if pages:
        return LineSource(entry_id, f"{MODEL}, after {pages[-1]}")
    return LineSource(entry_id)


def used_topics(lines: Iterable[MemoryLine], entries: Iterable[Entry]) -> set[str]:
    """Return the topics of the memory lines that the model used in the given entries.

    A line counts as used if the model wrote most of its words, or recalled its topic.
    """
    texts: list[str] = []
    for entry in entries:
        texts += _written(entry)
    written = frozenset[str]().union(*map(words_of, texts))
    used = set[str]()
    for line in lines:
        words = words_of(line.text)
        is_named = any(f"memory {line.topic}" in text for text in texts)
        if is_named or _share(words, written) >= MIN_USED_SHARE:
            used.add(line.topic)
    return used


def _candidates(entry: Entry, words: frozenset[str]) -> Iterator[_Candidate]:
    for origin, text in _texts(entry):
        searched = text[:_MAX_TEXT_CHARS].lower()
        # A cheap upper bound for the share.
        if sum(word in searched for word in words) < MIN_SOURCE_SHARE * len(words):
            continue
        share = _share(words, words_of(searched))
        if share >= MIN_SOURCE_SHARE:
            yield _Candidate(share, LineSource(entry.id, origin))


def _better(best: _Candidate | None, other: _Candidate) -> _Candidate:
    """Return the candidate that contains more of the line's words; ``best`` if both are equal."""
    if best is None or other.share > best.share:
        return other
    return best


def _share(words: frozenset[str], others: frozenset[str]) -> float:
    if not words:
        return 0.0
    return len(words & others) / len(words)


def _texts(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield (origin, text) for an entry's texts, except summaries and the program's messages."""
    match entry:
        case UserEntry():
            if entry.synthetic is not None:
                return
            typed = typed_text(entry.parts)
            yield USER, typed
            for part in entry.parts:
                if isinstance(part, FilePart):
                    yield one_line(f"@{part.path}", _TITLE_CHARS), part.text
                elif isinstance(part, TextPart) and part.text not in typed:
                    yield "a command's text", part.text
        case AssistantEntry():
            yield MODEL, entry.text
        case ShellEntry() | ToolResultEntry():
            yield _name_of(entry), entry.output
        case SummaryEntry() | BookkeepingEntry():
            return


def _name_of(entry: Entry) -> str:
    match entry:
        case ShellEntry():
            return one_line(f"! {entry.command}", _TITLE_CHARS)
        case ToolResultEntry():
            return one_line(f"{entry.tool} {entry.title}", _TITLE_CHARS)
        case _:
            return ""


def _is_page(entry: Entry) -> bool:
    return isinstance(entry, ToolResultEntry) and tool_traits()[entry.tool].kind == "fetch"


def _written(entry: Entry) -> Iterator[str]:
    if isinstance(entry, AssistantEntry):
        yield entry.text
        for call in entry.tool_calls:
            yield call.arguments
