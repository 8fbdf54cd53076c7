"""Plans which texts lose their middle where clearing old outputs is not enough: by tokens, whatever the script.

An entry keeps so many characters as come to the tokens it may take, so Chinese is cut as far as
English. A cut entry has its number in the cut, and stays in the session.
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
"""Tokens of an output below which a plan does not cut it."""
_WORDS_WEIGH = 4
"""Text of a person or the model keeps so many times as much as an output."""

_CHARS_BESIDE_IMAGES = 3.0
"""Characters a token of the text beside an image has, roughly."""

Longest = Callable[[Entry], int]
"""Returns the characters of the longest text of an entry that may be cut, 0 where none may."""


def outputs(entry: Entry) -> int:
    """Return the number of characters a tool or a user's command printed."""
    if isinstance(entry, ToolResultEntry | ShellEntry):
        return len(entry.output)
    return 0


def arguments(entry: Entry) -> int:
    """Return the characters of the longest text in the arguments of an answer's calls."""
    if not isinstance(entry, AssistantEntry):
        return 0
    return max(map(len, argument_texts(entry)), default=0)


def words(entry: Entry) -> int:
    """Return the characters of the longest text that a person wrote or attached, or the model said."""
    match entry:
        case UserEntry():
            return max(map(len, entry.texts("asked", "attached")), default=0)
        case AssistantEntry():
            return max(len(entry.text), arguments(entry))
        case _:
            return outputs(entry)


@frozen
class Cutter:
    """Cuts entries of one view; pinned, masked and cleared ones stay as they are."""

    view: ContextView
    entries: Sequence[Entry]
    count: CountEntry

    def to(
        self, tokens: int, longest: Longest, most_chars: int | None = None
    ) -> tuple[PrunePlan, ...]:
        """Return plans after which no text takes much more than ``tokens``, nor ``most_chars`` characters."""
        return _plans(
            (entry.id, self._chars(entry, tokens, size, most_chars), size, self.count(entry))
            for entry, size in self._open(longest)
        )

    def squeeze(
        self, room: int, longest: Longest = words, *, harder: float = 1.0
    ) -> tuple[PrunePlan, ...]:
        """Return plans after which everything together takes about ``room`` tokens: the longest texts give most.

        ``harder`` below 1 cuts further, where the first try did not reach it.
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
        """Yield the entries with a text to cut, and the characters of it that are shown."""
        weights = ViewWeights(self.view, self.count)
        for entry in self.entries:
            if not entry.is_sent or not weights.is_paired(entry) or not (size := longest(entry)):
                continue
            state = self.view.state(entry.id)
            kept = self.view.kept_chars.get(entry.id, 0)
            if state is EntryState.LIVE or (state is EntryState.PRUNED and kept):
                yield entry, min(size, kept or size)

    def _chars(self, entry: Entry, tokens: int, size: int, most_chars: int | None) -> int:
        """Return the characters of an entry's longest text that come to so many tokens."""
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
    """Return cuts of outputs after which the kept entries take about ``room`` tokens: the longest give most.

    Outputs that would be left ``LEAST_OUTPUT`` tokens each stay longer: the ladder decides about
    those.
    """
    room = max(room, LEAST_OUTPUT * sum(1 for entry in kept if outputs(entry)))
    return Cutter(replace(view, entries=tuple(kept)), kept, count).squeeze(room, outputs)


def _share(entry: Entry) -> int:
    return 1 if outputs(entry) else _WORDS_WEIGH


def _level(sizes: Sequence[tuple[int, int]], room: int) -> float:
    """Return the most tokens that one share may take so that all fit into ``room``, as water finds its level."""
    left = float(room)
    rest = sum(share for _, share in sizes)
    for tokens, share in sorted(sizes, key=lambda size: size[0] / size[1]):
        if tokens * rest > left * share:
            return left / rest
        left -= tokens
        rest -= share
    return float(max((tokens / share for tokens, share in sizes), default=0))


def _plans(cuts: Iterable[tuple[int, int, int, int]]) -> tuple[PrunePlan, ...]:
    """Return one plan per length to keep: entries with their characters to keep, their size and their tokens."""
    plans: dict[int, PrunePlan] = {}
    for entry_id, keep, size, tokens in cuts:
        # A length with two figures that count, so that few different ones are needed.
        step = 10 ** max(0, len(str(keep)) - 2)
        chars = max(1, keep // step * step)
        if size > chars * 5 // 4:
            plan = plans.get(chars) or PrunePlan((), 0, Occasion.COMPACTION, chars)
            freed = plan.tokens_freed + round(tokens * (1 - chars / size))
            plans[chars] = replace(plan, targets=(*plan.targets, entry_id), tokens_freed=freed)
    return tuple(plans[chars] for chars in sorted(plans))
