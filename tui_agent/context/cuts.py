"""Where history may be cut: before a message that starts something, never between a call and its result."""

from collections.abc import Sequence

from tui_agent.context.view import ContextView
from tui_agent.session.entries import AssistantEntry, Entry


def starts_turn(entry: Entry) -> bool:
    """Whether a turn begins with the entry."""
    return entry.starts_turn and entry.is_sent


def valid_cuts(view: ContextView, shown: Sequence[int]) -> list[bool]:
    """Tell for each entry of the view whether it may be the first kept one.

    ``shown`` is the tokens each entry takes. Valid are visible messages of the user and of the model, as long as no
    call before them has its result at or after them.
    """
    position = {entry.id: index for index, entry in enumerate(view.entries)}
    last_result = -1
    valid: list[bool] = []
    for index, entry in enumerate(view.entries):
        is_start = starts_turn(entry) or isinstance(entry, AssistantEntry)
        valid.append(is_start and shown[index] > 0 and index > last_result)
        results = [result for result in view.results.get(entry.id, ()) if result is not None]
        last_result = max([last_result, *(position[result.id] for result in results)])
    return valid


def find_cut(view: ContextView, shown: Sequence[int], keep: int) -> tuple[int, bool]:
    """Return the index of the first entry to keep, and whether what is kept is more than ``keep`` tokens.

    Counts from the newest entry back until ``keep`` is reached and takes the nearest valid cut at or after that
    place. Where there is none (results at the end are larger than ``keep``), it is the nearest before it.
    """
    valid = valid_cuts(view, shown)
    total = 0
    reached = 0
    for index in range(len(shown) - 1, -1, -1):
        total += shown[index]
        if shown[index] and total >= keep:
            reached = index
            break
    after = next((i for i in range(reached, len(shown)) if valid[i]), None)
    if after is not None:
        return after, False
    return next((i for i in range(min(reached, len(shown) - 1), -1, -1) if valid[i]), 0), True


def newest_turns(view: ContextView, shown: Sequence[int], turns: int) -> int:
    """Return where the oldest of so many newest turns begins, 0 where there are fewer."""
    valid = valid_cuts(view, shown)
    starts = [i for i, entry in enumerate(view.entries) if valid[i] and starts_turn(entry)]
    return starts[-turns] if len(starts) >= turns else 0


def next_cut(view: ContextView, shown: Sequence[int], start: int) -> int | None:
    """Return where the oldest turn after the cut at ``start`` ends; in the last turn, its oldest step."""
    valid = valid_cuts(view, shown)
    first = next((i for i in range(start, len(shown)) if shown[i]), start)
    later = [i for i in range(first + 1, len(shown)) if valid[i]]
    turns = [i for i in later if starts_turn(view.entries[i])]
    return next(iter(turns or later), None)


def turn_start(view: ContextView, shown: Sequence[int], cut: int) -> int:
    """Return where the turn that a cut falls into starts: the cut itself when it is the start of a turn.

    A turn whose start is no longer in view is not split by a cut: what precedes the cut is history. A message sent
    while a call was running starts no turn of its own here, because the call and its result are told together.
    """
    if starts_turn(view.entries[cut]):
        return cut
    valid = valid_cuts(view, shown)
    return next((i for i in range(cut - 1, -1, -1) if valid[i] and starts_turn(view.entries[i])), cut)
