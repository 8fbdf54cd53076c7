"""Plans which texts are cut in their middle if clearing old outputs does not free enough tokens.

Limits are in tokens, so that Chinese and English texts keep equal shares. A view contains the
entries that a request is made from. A plan contains only entry ids and lengths; once its prune is
appended, ``rendering`` cuts the texts in each request. A cut text names its entry (``#412``), and
the session keeps the whole text.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tui_agent.context.arguments import argument_texts
from tui_agent.context.budget import CountEntry, ViewWeights
from tui_agent.context.pruning import Occasion, PrunePlan
from tui_agent.context.view import ContextView, EntryState
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    ShellEntry,
    ToolResultEntry,
    UserEntry,
)

LEAST_TOKENS = 6
"""Minimum number of tokens that remain of a text that is cut."""
LEAST_OUTPUT = 500
"""`cut_outputs` leaves room for at least this many tokens for each output."""
_WORDS_WEIGH = 4
"""When texts are cut, a text by the user or the model keeps this many times as many tokens as an
output."""

_CHARS_BESIDE_IMAGES = 3.0
"""Number of characters per token that is assumed for the text of an entry with images."""

Longest = Callable[[Entry], int]
"""Returns the length, in characters, of the longest text of an entry that may be cut; 0 if the
entry has none."""


def outputs(entry: Entry) -> int:
    """Return the length, in characters, of the output of a tool or of the user's command.

    The length is 0 for all other entries.
    """
    if isinstance(entry, ToolResultEntry | ShellEntry):
        return len(entry.output)
    return 0


def arguments(entry: Entry) -> int:
    """Return the length, in characters, of the longest text in an answer's arguments; 0 if none."""
    if not isinstance(entry, AssistantEntry):
        return 0
    return max(map(len, argument_texts(entry)), default=0)


def words(entry: Entry) -> int:
    """Return the length, in characters, of the longest text, tool argument or output of an entry.

    Returns 0 if the entry has none, and for a summary, which is never cut.
    """
    match entry:
        case UserEntry():
            return max(map(len, entry.texts("asked", "attached")), default=0)
        case AssistantEntry():
            return max(len(entry.text), arguments(entry))
        case _:
            return outputs(entry)


@frozen
class Cutter:
    """Plans prunes that cut ``entries`` of a view, but keep the beginning and end of each text.

    Pinned, hidden and cleared entries are not cut.
    """

    view: ContextView
    entries: Sequence[Entry]
    count: CountEntry

    def to(
        self, tokens: int, longest: Longest, most_chars: int | None = None
    ) -> tuple[PrunePlan, ...]:
        """Plan to cut each text to about ``tokens`` tokens and at most ``most_chars`` characters.

        ``longest`` returns the length of an entry's text, or 0 if the entry must not be cut.
        """
        return _plans(
            (entry.id, self._chars(entry, tokens, size, most_chars), size, self.count(entry))
            for entry, size in self._open(longest)
        )

    def squeeze(
        self, room: int, longest: Longest = words, *, harder: float = 1.0
    ) -> tuple[PrunePlan, ...]:
        """Plan cuts of the longest texts so that the view's entries take about ``room`` tokens.

        ``longest`` returns the length of an entry's text, or 0 if the entry must not be cut.
        ``harder`` is a factor for the length that each text keeps; a factor below 1 cuts more.
        """
        weights = ViewWeights(self.view, self.count)
        fixed = sum(weights.all())
        open_entries: list[tuple[Entry, int, int]] = []
        sizes: list[tuple[int, int]] = []
        for entry, size in self._open(longest):
            tokens = weights.of(entry)
            fixed -= tokens
            open_entries.append((entry, size, tokens))
            sizes.append((tokens, _share(entry)))
        cap = max(LEAST_TOKENS, harder * _level(sizes, max(0, room - fixed)))
        return _plans(
            (entry.id, self._chars(entry, round(cap * _share(entry)), size, None), size, tokens)
            for entry, size, tokens in open_entries
        )

    def _open(self, longest: Longest) -> Iterable[tuple[Entry, int]]:
        """Yield each entry that may be cut, with the length of its longest text as it is sent."""
        weights = ViewWeights(self.view, self.count)
        for entry in self.entries:
            if not entry.is_sent or not weights.is_paired(entry) or not (size := longest(entry)):
                continue
            state = self.view.state(entry.id)
            kept = self.view.kept_chars.get(entry.id, 0)
            if state is EntryState.LIVE or (state is EntryState.PRUNED and kept):
                yield entry, min(size, kept or size)

    def _chars(self, entry: Entry, tokens: int, size: int, most_chars: int | None) -> int:
        """Return how many characters of an entry's longest text take ``tokens`` tokens.

        The result is at least 1 and at most ``most_chars``. ``size`` is the length of the text.
        """
        whole = max(1, self.count(entry))
        length = max(words(entry), size)
        # The tokens of an entry with images include the images, so they say little about its text.
        per_token = _CHARS_BESIDE_IMAGES if entry.images else length / whole
        chars = round(max(LEAST_TOKENS, tokens) * per_token)
        if most_chars is not None:
            chars = min(most_chars, chars)
        return max(1, chars)


def cut_outputs(
    view: ContextView, kept: Sequence[Entry], room: int, count: CountEntry
) -> tuple[PrunePlan, ...]:
    """Plan cuts of the longest outputs so that the entries ``kept`` take about ``room`` tokens.

    If ``room`` is less than ``LEAST_OUTPUT`` tokens for each output, it is raised to that.
    """
    number = len([entry for entry in kept if outputs(entry)])
    room = max(room, LEAST_OUTPUT * number)
    return Cutter(replace(view, entries=tuple(kept)), kept, count).squeeze(room, outputs)


def _share(entry: Entry) -> int:
    return 1 if outputs(entry) else _WORDS_WEIGH


def _level(sizes: Sequence[tuple[int, int]], room: int) -> float:
    """Return the most tokens that each share may have so that all entries fit into ``room`` tokens.

    ``sizes`` contains (tokens, shares) of each entry. An entry with fewer tokens per share stays
    whole.
    """
    left = float(room)
    rest = sum(share for _, share in sizes)
    for tokens, share in sorted(sizes, key=lambda size: size[0] / size[1]):
        if tokens * rest > left * share:
            return left / rest
        left -= tokens
        rest -= share
    return float(max((tokens / share for tokens, share in sizes), default=0))


def _plans(cuts: Iterable[tuple[int, int, int, int]]) -> tuple[PrunePlan, ...]:
    """Return a plan for each length that texts are cut to, the shortest length first.

    ``cuts`` contains (entry id, characters to keep, characters of the text, tokens of the entry). A
    text that is at most a quarter longer than the length to keep is not cut.
    """
    plans: dict[int, PrunePlan] = {}
    for entry_id, keep, size, tokens in cuts:
        # Lengths are rounded down to two digits, so that several entries can share one plan.
        step = 10 ** max(0, len(str(keep)) - 2)
        chars = max(1, keep // step * step)
        if size > chars * 5 // 4:
            plan = plans.get(chars) or PrunePlan((), 0, Occasion.COMPACTION, chars)
            freed = plan.tokens_freed + round(tokens * (1 - chars / size))
            plans[chars] = replace(plan, targets=(*plan.targets, entry_id), tokens_freed=freed)
    return tuple(plans[chars] for chars in sorted(plans))
