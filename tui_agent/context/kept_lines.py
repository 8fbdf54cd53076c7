"""Chooses lines of summarised or cleared entries to keep verbatim in a summary or a placeholder.

The lines are chosen by the anchors (exact facts, such as paths; also called names) in them. For
each anchor, the last line that contained it is a candidate; a line's value is the sum of its
anchors' scores per token. If an anchor's line is too long or does not fit, only the anchor itself
is kept, as far as there is room. The same entries always give the same lines.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from tui_agent.context.anchors import Anchor
from tui_agent.context.arguments import argument_texts
from tui_agent.context.view import ContextView
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import (
    CONTENT,
    AssistantEntry,
    CompactionEntry,
    Entry,
    ToolResultEntry,
)

_SENTENCE = LazyPattern(r"(?<=[.!?。！？])\s+(?=\S)")
_WORD = LazyPattern(r"\w+")

LONGEST_LINE = 300
"""Maximum characters of a line that is kept whole; only the names of longer lines are kept."""
_ADDRESS_TOKENS = 12
"""Number of tokens assumed for the entry's id and title, which are written before its lines."""
_TITLE_CHARS = 60
_CARRIED = LazyPattern(r"#(\d{1,9})(?: \(([^)\n]*)\))?: ")
_NOTED = frozenset({"path", "name", "hash", "number", "error"})
"""Kinds of anchors (exact facts) whose lines may be quoted in the note of a placeholder."""
_BARE_SHARE = 0.15
"""Share of the budget that is reserved for names that are kept without their lines."""

OWN_SHARE = 0.3
"""Share of the budget that is spent first on lines that the agent wrote. Unlike lines of files,
they can't be read again."""
_SHARES: Mapping[str, float] = {"rule": 0.2, "command": 0.2, "error": 0.2}
"""Kinds of anchors (exact facts) whose text is a whole line, and the largest share of the budget that
each kind may take."""


def shown_text(entries: Iterable[Entry]) -> str:
    """Return the text of all entries, joined by newlines, for a search for names."""
    return "\n".join(map(texts_of, entries))


def texts_of(entry: Entry) -> str:
    """Return an entry's text, with tool arguments or the command; "" for a compaction."""
    match entry:
        case AssistantEntry():
            return "\n".join([entry.text, *argument_texts(entry)])
        case CompactionEntry():
            return ""
        case _:
            return "\n".join(entry.texts(*CONTENT, "called"))


def _stands_in(text: str, words: set[str], piece: str) -> bool:
    """Return True if ``text`` contains ``piece``.

    ``words`` are the words of ``text``, which make the search faster.
    """
    return words.issuperset(_WORD.findall(piece)) and piece in text


@frozen
class Source:
    """The texts from which lines are chosen. The keys are the ids of their entries.

    ``own`` are the ids of the agent's answers. ``earlier`` contains (entry id, line) of lines that
    the previous summary kept. Lines with names in ``first`` are chosen before all others.
    """

    texts: Mapping[int, str]
    own: AbstractSet[int] = frozenset()
    earlier: Sequence[tuple[int, str]] = ()
    first: AbstractSet[str] = frozenset()

    @classmethod
    def of(
        cls,
        entries: Iterable[Entry],
        earlier: Sequence[tuple[int, str]] = (),
        first: AbstractSet[str] = frozenset(),
    ) -> "Source":
        entries = tuple(entries)
        own = frozenset(entry.id for entry in entries if isinstance(entry, AssistantEntry))
        return cls({entry.id: texts_of(entry) for entry in entries}, own, earlier, first)


def choose_lines(
    anchors: Sequence[Anchor],
    source: Source,
    budget: int,
    count: Callable[[str], int],
    shown: str,
) -> dict[int, list[str]]:
    """Return the lines to keep, by entry id, within ``budget`` tokens.

    ``anchors`` are the names to look for, best first. ``shown`` is the text that is still sent to
    the model. Its lines are not repeated, and lines whose names are all in it are chosen last.
    """
    is_shown = partial(_stands_in, shown, set(_WORD.findall(shown)))
    kept = [(entry_id, row) for entry_id, row in source.earlier if not is_shown(row)]
    asked = [anchor for anchor in anchors if anchor.text in source.first]
    wanted = _within_shares([one for one in anchors if not is_shown(one.text)], budget, count)
    lines = _best_lines(wanted, source, kept, count)
    bare = round(budget * _BARE_SHARE)
    chosen = _Chosen(budget - bare, count)
    for entry_id, line in _best_lines(asked, source, kept, count):
        chosen.take(entry_id, line)
    spared = chosen.left - round(chosen.left * OWN_SHARE)
    for entry_id, line in lines:
        if entry_id in source.own:
            chosen.take(entry_id, line, least=spared)
    for entry_id, line in lines:
        chosen.take(entry_id, line)
    chosen.left += bare
    for anchor in (*asked, *wanted):
        chosen.take(anchor.entry_id, anchor.text, bare=True)
    missing = {anchor.text for anchor in wanted}
    named: list[Anchor] = []
    for anchor in anchors:
        if anchor.text not in missing and anchor.kind not in _SHARES:
            named.append(anchor)
    for entry_id, line in _best_lines(named, source, kept, count):
        if not is_shown(line):
            chosen.take(entry_id, line)
    return chosen.in_order(source.texts)


def _within_shares(
    anchors: Iterable[Anchor], budget: int, count: Callable[[str], int]
) -> list[Anchor]:
    """Return the anchors that fit into the share of the budget reserved for their kind."""
    left = {kind: budget * share for kind, share in _SHARES.items()}
    taken: list[Anchor] = []
    for anchor in anchors:
        if anchor.kind in left:
            cost = count(anchor.text) + _ADDRESS_TOKENS
            if cost > left[anchor.kind]:
                continue
            left[anchor.kind] -= cost
        taken.append(anchor)
    return taken


class _Chosen:
    """Collects the chosen lines and bare names, and counts the tokens that are left for more."""

    def __init__(self, left: int, count: Callable[[str], int]) -> None:
        self.left = left
        self._count = count
        self._lines: dict[int, list[str]] = {}
        self._names: dict[int, list[str]] = {}
        self._said = ""

    def take(self, entry_id: int, text: str, *, least: int = 0, bare: bool = False) -> None:
        """Add a line or, with ``bare``, only a name, if it is new and fits into the budget.

        The line fits if at least ``least`` tokens are left afterwards.
        """
        address = _ADDRESS_TOKENS
        if entry_id in self._lines or entry_id in self._names:
            address = 0
        cost = self._count(text) + address + (2 if bare else 1)
        if self.left - cost >= least and text not in self._said:
            (self._names if bare else self._lines).setdefault(entry_id, []).append(text)
            self._said += f"\n{text}"
            self.left -= cost

    def in_order(self, texts: Mapping[int, str]) -> dict[int, list[str]]:
        """Return the chosen lines by entry id, ordered as they occur in the entry's text.

        If names of an entry were chosen without their lines, they are joined in one more line.
        """
        for entry_id, rows in self._lines.items():
            rows.sort(key=texts.get(entry_id, "").find)
        for entry_id, names in self._names.items():
            self._lines.setdefault(entry_id, []).append(" · ".join(names))
        return self._lines


def _best_lines(
    anchors: Iterable[Anchor],
    source: Source,
    kept: Sequence[tuple[int, str]],
    count: Callable[[str], int],
) -> list[tuple[int, str]]:
    """For each anchor, return (entry id, line) of the last line with it, most valuable first.

    A line's value is the sum of its anchors' scores per token. ``kept`` contains the lines that the
    previous summary kept.
    """
    values: dict[tuple[int, str], float] = {}
    for anchor in anchors:
        found = _line_of(anchor, source.texts, kept)
        if found is not None:
            values[found] = values.get(found, 0.0) + anchor.score
    price: dict[tuple[int, str], float] = {}
    for line, value in values.items():
        price[line] = (count(line[1]) + 1) / value if value else 1e9
    return sorted(values, key=lambda line: (price[line], line))


def _line_of(
    anchor: Anchor, texts: Mapping[int, str], kept: Sequence[tuple[int, str]]
) -> tuple[int, str] | None:
    """Return the last line that contained an anchor, as (entry id, line).

    If the line is too long, only the sentence with the anchor is returned. Returns None if the
    sentence is too long as well, or if the line is unknown.
    """
    if anchor.kind in _SHARES:
        return anchor.entry_id, anchor.text
    text = texts.get(anchor.entry_id)
    if text is None:
        return next(((entry_id, row) for entry_id, row in kept if anchor.text in row), None)
    at = text.rfind(anchor.text)
    if at < 0:
        return None
    end = text.find("\n", at)
    start = text.rfind("\n", 0, at) + 1
    end = end if end >= 0 else len(text)
    if end - start > LONGEST_LINE:
        # Look for a short sentence around the name, within these limits.
        start = max(start, at - 2 * LONGEST_LINE)
        end = min(end, at + len(anchor.text) + 2 * LONGEST_LINE)
        near = text[start:end]
        holding = (one.strip() for one in _SENTENCE.split(near) if anchor.text in one)
        # If the name spans the end of a sentence, none of the sentences contains it.
        line = next(holding, near)
    else:
        line = text[start:end].strip()
    if len(line) <= LONGEST_LINE:
        return (anchor.entry_id, line)
    return None


def write_notes(
    view: ContextView,
    targets: Sequence[int],
    budget: int,
    count: Callable[[str], int],
    anchors: Sequence[Anchor],
) -> tuple[str, ...]:
    """Return the notes for the targets of a prune, one for each, in the order of ``targets``.

    A note quotes the target's lines that contain names still in use; it is "" if there are none. It
    is sent with the target's placeholder, and stored so that the placeholder never changes.
    Together the notes take at most ``budget`` tokens. ``anchors`` are the anchors of the whole
    view.
    """
    gone = set(targets)
    cleared: list[Entry] = []
    known: list[str] = []
    for entry in view.entries:
        if entry.id in gone:
            cleared.append(entry)
        elif view.is_open(entry.id) or isinstance(entry, AssistantEntry):
            known.append(texts_of(entry))
    for target, note in view.notes.items():
        if target not in gone:
            known.append(note)
    of_outputs: list[Anchor] = []
    for anchor in anchors:
        if anchor.kind in _NOTED and anchor.entry_id in gone:
            of_outputs.append(anchor)
    notes = choose_lines(of_outputs, Source.of(cleared), budget, count, "\n".join(known))
    return tuple("\n".join(notes.get(target, ())) for target in targets)


def encode_lines(
    chosen: Mapping[int, Sequence[str]], titles: Mapping[int, str] | None = None
) -> tuple[str, ...]:
    """Return the chosen lines in the form that a summary contains, as one text for each entry.

    Example: ``#34 (a.py): line …``. ``chosen`` and ``titles`` are keyed by entry id.
    """
    titles = titles or {}
    texts: list[str] = []
    for entry_id in sorted(chosen):
        named = f"#{entry_id}"
        if title := titles.get(entry_id):
            named = f"{named} ({title})"
        rows = "\n".join(chosen[entry_id])
        texts.append(f"{named}: {rows}")
    return tuple(texts)


def decode_lines(carried: Iterable[str]) -> tuple[list[tuple[int, str]], dict[int, str]]:
    """Parse texts made by ``encode_lines``. Return (entry id, line) pairs, and titles by entry id.

    Other texts are skipped.
    """
    lines: list[tuple[int, str]] = []
    titles: dict[int, str] = {}
    for text in carried:
        if found := _CARRIED.match(text):
            entry_id = int(found[1])
            lines += [(entry_id, row) for row in text[found.end() :].split("\n")]
            if found[2]:
                titles[entry_id] = found[2]
    return lines, titles


def title_of(entry: Entry) -> str:
    """Return the title to show before the lines of a tool result: the result's title or its path.

    Returns "" for other entries, and for a title that is too long or contains a newline or ``)``.
    """
    if not isinstance(entry, ToolResultEntry):
        return ""
    title = entry.title or entry.metadata.path or ""
    if len(title) <= _TITLE_CHARS and "\n" not in title and ")" not in title:
        return title
    return ""
