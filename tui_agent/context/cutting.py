"""Plans which texts lose their middle when clearing old outputs does not free enough.

Limits are in tokens, so Chinese and English are cut equally far. A cut text says the number of its
entry, and the session keeps the whole text.
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
"""Tokens below which a text is not cut any further."""
LEAST_OUTPUT = 500
"""Tokens that each output keeps in a cut of outputs."""
_WORDS_WEIGH = 4
"""How many times as much a text of the user or the model keeps as an output."""

_CHARS_BESIDE_IMAGES = 3.0
"""Characters per token assumed for the text of an entry with images."""

Longest = Callable[[Entry], int]
"""Returns the length in characters of an entry's longest text that may be cut; 0 if none may."""


def outputs(entry: Entry) -> int:
    """Return the characters that a tool or a user's command printed; 0 for other entries."""
    if isinstance(entry, ToolResultEntry | ShellEntry):
        return len(entry.output)
    return 0


def arguments(entry: Entry) -> int:
    """Return the characters of the longest text in an answer's tool arguments; 0 if it has none."""
    if not isinstance(entry, AssistantEntry):
        return 0
    return max(map(len, argument_texts(entry)), default=0)


def words(entry: Entry) -> int:
    """Return the characters of an entry's longest text, whoever wrote it."""
    match entry:
        case UserEntry():
            return max(map(len, entry.texts("asked", "attached")), default=0)
        case AssistantEntry():
            return max(len(entry.text), arguments(entry))
        case _:
            return outputs(entry)


@frozen
class Cutter:
    """Plans cuts of a view's entries; pinned, hidden and cleared ones are not cut."""

    view: ContextView
    entries: Sequence[Entry]
    count: CountEntry

    def to(
        self, tokens: int, longest: Longest, most_chars: int | None = None
    ) -> tuple[PrunePlan, ...]:
        """Plan cuts to about ``tokens`` tokens, and at most ``most_chars`` characters, for each text."""
        return _plans(
            (entry.id, self._chars(entry, tokens, size, most_chars), size, self.count(entry))
            for entry, size in self._open(longest)
        )

    def squeeze(
        self, room: int, longest: Longest = words, *, harder: float = 1.0
    ) -> tuple[PrunePlan, ...]:
        """Plan cuts, of the longest texts most, after which all entries take about ``room`` tokens.

        ``harder`` multiplies the length that each text keeps: below 1 it cuts further.
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
        """Yield the entries that may be cut, each with the shown characters of its longest text."""
        weights = ViewWeights(self.view, self.count)
        for entry in self.entries:
            if not entry.is_sent or not weights.is_paired(entry) or not (size := longest(entry)):
                continue
            state = self.view.state(entry.id)
            kept = self.view.kept_chars.get(entry.id, 0)
            if state is EntryState.LIVE or (state is EntryState.PRUNED and kept):
                yield entry, min(size, kept or size)

    def _chars(self, entry: Entry, tokens: int, size: int, most_chars: int | None) -> int:
        """Convert tokens of an entry's longest text into characters, at most ``most_chars``."""
        whole = max(1, self.count(entry))
        length = max(words(entry), size)
        # An entry with images weighs more than its text.
        per_token = _CHARS_BESIDE_IMAGES if entry.images else length / whole
        chars = round(max(LEAST_TOKENS, tokens) * per_token)
        if most_chars is not None:
            chars = min(most_chars, chars)
        return max(1, chars)


def cut_outputs(
    view: ContextView, kept: Sequence[Entry], room: int, count: CountEntry
) -> tuple[PrunePlan, ...]:
    """Plan cuts, of the longest outputs most, after which ``kept`` takes about ``room`` tokens.

    There is always room for ``LEAST_OUTPUT`` tokens of each output; further cuts are other steps of
    the ladder in ``commit_plan``.
    """
    number = len([entry for entry in kept if outputs(entry)])
    room = max(room, LEAST_OUTPUT * number)
    return Cutter(replace(view, entries=tuple(kept)), kept, count).squeeze(room, outputs)


def _share(entry: Entry) -> int:
    return 1 if outputs(entry) else _WORDS_WEIGH


def _level(sizes: Sequence[tuple[int, int]], room: int) -> float:
    """Return the tokens per share at which all entries fit into ``room``, smaller ones left whole.

    ``sizes`` has each entry's tokens and shares.
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
    """Return one plan for each length to keep.

    ``cuts`` has an entry's id, the characters to keep, the characters it has, and its tokens.
    """
    plans: dict[int, PrunePlan] = {}
    for entry_id, keep, size, tokens in cuts:
        # Lengths are rounded down to two digits, so that entries share plans.
        step = 10 ** max(0, len(str(keep)) - 2)
        chars = max(1, keep // step * step)
        if size > chars * 5 // 4:
            plan = plans.get(chars) or PrunePlan((), 0, Occasion.COMPACTION, chars)
            freed = plan.tokens_freed + round(tokens * (1 - chars / size))
            plans[chars] = replace(plan, targets=(*plan.targets, entry_id), tokens_freed=freed)
    return tuple(plans[chars] for chars in sorted(plans))
