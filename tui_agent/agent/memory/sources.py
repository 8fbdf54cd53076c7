"""Finds the entry that a memory line comes from, and the lines that a run used. Pure.

Both are decided by the share of the line's words that a text contains, without a model.
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

FOUND = 0.6
"""Minimum share of a line's words that a text must contain to count as the line's source."""
USED = 0.6
"""Minimum share of a line's words that the model must have written for the line to count as
used."""

_MAX_TEXT_CHARS = 100_000
"""Maximum characters of one text that are searched, from its beginning."""
_TITLE_CHARS = 60
"""Maximum characters of a source's name."""


@frozen
class LineSource:
    """The id of the entry that a line comes from, 0 if unknown, and the origin of its words.

    ``origin`` is ``USER``, ``MODEL`` (maybe with the page that the model had read last), or the
    name of a file, command or tool call.
    """

    entry_id: int = 0
    origin: str = MODEL


@frozen
class _Holder:
    share: float
    source: LineSource


def source_of(text: str, entries: Sequence[Entry], named: int = 0) -> LineSource:
    """Return the entry among ``entries`` that the text of a line comes from.

    It is the entry with the largest share of the line's words: among the user's messages and what
    was read (files, outputs), or else among the model's texts. On a tie, a user's message is
    preferred, then the oldest entry. If only the model wrote the words, ``origin`` also names the
    last web page that it read. ``named`` is the entry that the model gave as the source, 0 for
    none; it is used if no entry contains the words.
    """
    words = words_of(text)
    by_user: _Holder | None = None
    by_model: _Holder | None = None
    read: _Holder | None = None
    for entry in entries:
        for holder in _holders(entry, words):
            if holder.source.origin == USER:
                by_user = _better(by_user, holder)
            elif holder.source.origin == MODEL:
                by_model = _better(by_model, holder)
            else:
                read = _better(read, holder)
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
    """Return the topics of the lines that the model used in the given entries.

    A line is used if the model wrote most of its words, or recalled its topic.
    """
    texts: list[str] = []
    for entry in entries:
        texts += _written(entry)
    written = frozenset[str]().union(*map(words_of, texts))
    used = set[str]()
    for line in lines:
        words = words_of(line.text)
        is_named = any(f"memory {line.topic}" in text for text in texts)
        if is_named or _share(words, written) >= USED:
            used.add(line.topic)
    return used


def _holders(entry: Entry, words: frozenset[str]) -> Iterator[_Holder]:
    for origin, text in _texts(entry):
        searched = text[:_MAX_TEXT_CHARS].lower()
        # A cheap upper bound of the share.
        if sum(word in searched for word in words) < FOUND * len(words):
            continue
        share = _share(words, words_of(searched))
        if share >= FOUND:
            yield _Holder(share, LineSource(entry.id, origin))


def _better(best: _Holder | None, other: _Holder) -> _Holder:
    """Return whichever has the larger share of the words; ``best`` if they are equal."""
    if best is None or other.share > best.share:
        return other
    return best


def _share(words: frozenset[str], others: frozenset[str]) -> float:
    if not words:
        return 0.0
    return len(words & others) / len(words)


def _texts(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield (origin, text) for each text of an entry; nothing for summaries and program messages."""
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
