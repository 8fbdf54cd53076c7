"""Reads a session's entries for the ``recall`` tool: those of all branches, with full outputs.

Also reads single entries of other sessions if a message or a line of the memory names them
(`entry_named`). Changes nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from tui_agent.context.recalling import names_in_use
from tui_agent.context.rendering import gist
from tui_agent.context.view import resolve
from tui_agent.session.entries import (
    CONTENT,
    AssistantEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    ImagePart,
    ShellEntry,
    ToolCallPart,
    ToolResultEntry,
)
from tui_agent.session.errors import EntryDamaged, EntryNotFound, StoreError
from tui_agent.session.ids import short_id
from tui_agent.session.search import passage
from tui_agent.session.session import Session, session_to_read
from tui_agent.tools.base import FoundEntry
from tui_agent.tools.registry import tool_traits
from tui_agent.whole_numbers import whole_number

_NEAR = 64
"""Number of nearby entries that are searched for a result's call or for a call's results."""
PASSAGE_LINES = 8
"""Maximum number of lines shown of each entry that was found."""
_CALL_CHARS = 120
"""Maximum number of characters of a call's arguments that are shown with its result."""
_CUT_SEARCHED = 100
"""Maximum number of a branch's shortened outputs that are searched in full, newest first."""
_READ_AT_ONCE = 256
"""Number of tool results that are read from the store at once, to find shortened ones."""
_SEARCHED = 4
"""Number of hits requested from the store for each hit to return. Some hits are left out."""


class SessionArchive:
    """Reads and searches all entries of one session (implements ``Archive`` of the tools).

    ``blob`` returns stored bytes by their hash, for full outputs. ``sources`` returns, by topic,
    the entry that each line of the memory comes from, as ``SESSION#ENTRY``.
    """

    def __init__(
        self,
        session: Session,
        blob: Callable[[str], bytes | None],
        sources: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._session = session
        self._blob = blob
        self._sources = sources

    def text(self, entry_id: int) -> str | None:
        """Return an entry's whole text, with a tool's full output and the user's edit of it.

        None if there is no such entry, if it is damaged, or if it is never sent to a model.
        """
        try:
            entry = self._session.entry(entry_id)
        except (EntryNotFound, EntryDamaged):
            return None
        entry = self._as_edited(entry)
        if isinstance(entry, ToolResultEntry):
            return entry.whole_output(self._blob)
        return entry_text(entry)

    def _as_edited(self, entry: Entry) -> Entry:
        """Return an entry with the user's edit of it on this branch, even if it was summarised.

        An entry that was not edited is returned unchanged.
        """
        edits = self._session.reader.load(self._session.path_outline().of_kind("context_edit"))
        targets = {edit.target for edit in edits if isinstance(edit, ContextEditEntry)}
        if entry.id not in targets:
            return entry
        path = self._session.path()
        view = resolve([one for one in path if not isinstance(one, CompactionEntry)])
        return next((one for one in view.entries if one.id == entry.id), entry)

    def remembered(self, topic: str) -> str | None:
        """Return the text of the entry from which the memory's line on a topic was taken.

        The entry may belong to another session. None if the line or its entry is unknown.
        """
        source = self._sources().get(topic.lower(), "")
        return entry_named(source, self._session, self._blob)

    def images(self, entry_id: int) -> Sequence[ImagePart]:
        """Return an entry's images, except PDFs that a tool read.

        Empty if there is no such entry.
        """
        try:
            entry = self._session.entry(entry_id)
        except (EntryNotFound, EntryDamaged):
            return ()
        is_read = isinstance(entry, ToolResultEntry)
        return [image for image in entry.images if not (is_read and image.is_document)]

    def names_in_use(self) -> Mapping[str, float]:
        """Return names, paths and similar words in the context, scored by their likely reuse."""
        return names_in_use(resolve(self._session.active_path()), tool_traits())

    def search(self, query: str, limit: int) -> list[FoundEntry]:
        """Return up to ``limit`` entries, from all branches, that match a query best.

        The best matches come first, but entries that the model sees whole come last. Full outputs
        of this branch are searched too. Duplicates and the calls and results of recall are left
        out.
        """
        view = resolve(self._session.active_path())
        seen = {entry.id for entry in view.entries if view.is_open(entry.id) and not _is_cut(entry)}
        ranked = self._session.store.ranked(query, limit * _SEARCHED, self._session.id)
        ranked += [entry_id for entry_id in self._cut_with(query) if entry_id not in ranked]
        found: list[FoundEntry] = []
        listed: set[tuple[str, ...]] = set()
        for entry_id in sorted(ranked, key=seen.__contains__):
            entry = next(iter(self._session.entries([entry_id])), None)
            if entry is None or _is_recalling(entry):
                continue
            text = self.text(entry_id)
            if text is None:
                continue
            lines = passage(text, query, PASSAGE_LINES)
            said = (entry.kind, *[line for _, line in lines])
            if said in listed:
                continue
            listed.add(said)
            hit = FoundEntry(
                entry_id,
                entry.kind,
                gist(self._as_edited(entry)),
                lines=lines,
                beside=self._beside(entry),
                here=self._session.on_path(entry_id),
            )
            found.append(hit)
            if len(found) == limit:
                break
        return found

    def _cut_with(self, query: str) -> list[int]:
        """Return the ids of shortened tool results whose full output contains words of a query.

        Results with the most words come first. Only the newest shortened results of this branch
        are searched.
        """
        words = {word.lower() for word in query.split() if any(map(str.isalnum, word))}
        held: dict[int, int] = {}
        for entry in islice(filter(_is_cut, self._results()), _CUT_SEARCHED):
            text = (self.text(entry.id) or "").lower()
            number = sum(word in text for word in words)
            if number:
                held[entry.id] = number
        return sorted(held, key=lambda entry_id: (-held[entry_id], -entry_id))

    def _results(self) -> Iterator[Entry]:
        """Yield the tool results on the current branch, newest first."""
        ids = self._session.path_outline().of_kind("tool_result")
        for end in range(len(ids), 0, -_READ_AT_ONCE):
            batch = ids[max(0, end - _READ_AT_ONCE) : end]
            yield from reversed(self._session.reader.load(batch))

    def _beside(self, entry: Entry) -> str:
        """Return a line that names a tool result's call, or the results of an answer's calls.

        "" for other entries, and if no call or result is found nearby.
        """
        if isinstance(entry, ToolResultEntry):
            before = self._session.entries(range(max(1, entry.id - _NEAR), entry.id))
            for answer in reversed(before):
                call = _call_of(answer, entry)
                if call is not None:
                    return f"asked in #{answer.id}: {call.tool} {call.arguments[:_CALL_CHARS]}"
            return ""
        if not isinstance(entry, AssistantEntry) or not entry.tool_calls:
            return ""
        after = self._session.entries(range(entry.id + 1, entry.id + 1 + _NEAR))
        results = [f"#{one.id} {gist(one)}" for one in after if _call_of(entry, one) is not None]
        return "; ".join(results[: len(entry.tool_calls)])


def _is_cut(entry: Entry) -> bool:
    return isinstance(entry, ToolResultEntry) and entry.full_output is not None


def _call_of(answer: Entry, result: Entry) -> ToolCallPart | None:
    """Return the tool call in ``answer`` that ``result`` belongs to.

    None if the result belongs to another answer, or the entries are of other kinds.
    """
    if isinstance(answer, AssistantEntry) and isinstance(result, ToolResultEntry):
        for call in answer.tool_calls:
            if call.call_id == result.call_id:
                return call
    return None


def _is_recalling(entry: Entry) -> bool:
    if isinstance(entry, AssistantEntry):
        return any(tool_traits()[call.tool].shows_past for call in entry.tool_calls)
    return isinstance(entry, ToolResultEntry) and tool_traits()[entry.tool].shows_past


def entry_text(entry: Entry) -> str | None:
    """Return an entry's content as text; None for entries that are never sent to a model."""
    if not entry.is_sent:
        return None
    match entry:
        case AssistantEntry():
            calls = [f"[called {call.tool} {call.arguments}]" for call in entry.tool_calls]
            if entry.text:
                calls.insert(0, entry.text)
            return "\n".join(calls)
        case ShellEntry():
            return f"$ {entry.command}\n{entry.output}"
        case _:
            return "\n".join(entry.texts(*CONTENT))


def entry_named(source: str, session: Session, blob: Callable[[str], bytes | None]) -> str | None:
    """Return the text of an entry named ``SESSION#ENTRY``; None if there is no such entry or text.

    ``session`` is the open session; SESSION may be the id of another one, possibly shortened.
    """
    name, _sign, entry = source.partition("#")
    number = whole_number(entry)
    if number is None:
        return None
    if name == short_id(session.id):
        return SessionArchive(session, blob).text(number)
    store = session.store
    try:
        found = store.session(name)
        other = session_to_read(store, found.id)
    except StoreError:
        return None
    return SessionArchive(other, blob).text(number)
