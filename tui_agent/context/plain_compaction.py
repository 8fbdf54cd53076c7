"""Compacts without a model when the usual compaction has failed because of a defect in the program.

The summary is a list of the entries, one line each. As little of the usual code as possible is
used, so that the session can continue. ``agent.compactor`` appends the first of the compactions
that makes enough room.
"""

import logging
from collections.abc import Sequence

from tui_agent.context.compaction import Trigger
from tui_agent.context.preserved import CountText, digest, fit, known_rules
from tui_agent.context.rendering import carried_pins
from tui_agent.context.templates import Templates
from tui_agent.context.view import ContextView
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    ToolResultEntry,
    UserEntry,
    is_by_user,
    typed_text,
)

log = logging.getLogger(__name__)

_MESSAGE_SHARE = 0.25
"""Largest share of the summary's tokens that each copied user message may take."""
_CARRIED_MESSAGES = 3
"""Maximum number of user messages that the compaction copies: the first message and the newest
ones."""
NOTHING_LISTED = "(Earlier work is not listed here; recall finds it.)"
"""The summary that is used if even the list of the entries could not be made or does not fit."""


@frozen
class PlainOrder:
    """The options of a compaction without a model.

    ``keep`` is how many tokens of the newest entries to keep, ``summary`` the maximum size of the
    summary in tokens. ``boundary`` is the id of the first entry to keep, None if the user chose
    none.
    """

    trigger: Trigger
    keep: int
    summary: int
    boundary: int | None = None


def plain_compactions(
    view: ContextView, order: PlainOrder, count: CountText, templates: Templates
) -> list[CompactionEntry]:
    """Return the compactions to try in turn, the one that keeps the most entries first.

    The last one keeps no entry. The list is empty for an empty view.
    """
    entries = view.entries
    cuts = _cuts(entries)
    if order.boundary is not None:
        wanted = [at for at in cuts if entries[at].id <= order.boundary][-1:]
    else:
        wanted = [_cut_for(entries, cuts, order.keep, count), *cuts[-1:]]
    places = dict.fromkeys([*(at for at in wanted if at), len(entries)])
    return [_compaction(view, place, order, count, templates) for place in places if place]


def _cuts(entries: Sequence[Entry]) -> list[int]:
    """Return the indexes where the kept part may begin, never between a call and its result."""
    found: list[int] = []
    waiting: set[str] = set()
    for at, entry in enumerate(entries):
        if isinstance(entry, AssistantEntry):
            found.append(at)
            waiting = {call.call_id for call in entry.tool_calls}
        elif isinstance(entry, ToolResultEntry):
            waiting.discard(entry.call_id)
        elif isinstance(entry, UserEntry) and not waiting:
            found.append(at)
    return found


def _cut_for(entries: Sequence[Entry], cuts: Sequence[int], keep: int, count: CountText) -> int:
    """Return the earliest of ``cuts`` after which at most ``keep`` tokens remain; 0 if none."""
    best = 0
    end = len(entries)
    for at in reversed(cuts):
        keep -= sum(count(entry.model_dump_json()) for entry in entries[at:end])
        if keep < 0:
            break
        best = at
        end = at
    return best


def _compaction(
    view: ContextView, place: int, order: PlainOrder, count: CountText, templates: Templates
) -> CompactionEntry:
    former = view.compaction
    dropped = view.entries[:place]
    earlier = ""
    if former is not None:
        earlier = fit(former.summary, order.summary // 3, count)
    lines = _digest(dropped, order.summary - count(earlier), count)
    details = view.carried
    carried = {
        "rules": tuple(rule.line for rule in known_rules(dropped, details)),
        "user_messages": _messages(dropped, details.user_messages, order, count),
        "pinned": carried_pins(view, dropped, templates),
    }
    return CompactionEntry(
        summary="\n\n".join(filter(None, [earlier, lines])) or NOTHING_LISTED,
        first_kept_id=view.entries[place].id if place < len(view.entries) else None,
        tokens_before=0,
        tokens_after=0,
        trigger=order.trigger,
        details=details.model_copy(update=carried),
    )


def _digest(entries: Sequence[Entry], room: int, count: CountText) -> str:
    # This code runs after the usual code has failed, so a failure here must not stop the session.
    try:
        return digest(entries, room, count)
    except Exception:
        log.exception("could not make a digest of the entries")
        return ""


def _messages(
    dropped: Sequence[Entry], earlier: Sequence[str], order: PlainOrder, count: CountText
) -> tuple[str, ...]:
    typed = [entry for entry in dropped if is_by_user(entry)]
    room = round(order.summary * _MESSAGE_SHARE)
    texts = [fit(f"#{entry.id} {typed_text(entry.parts)}", room, count) for entry in typed]
    whole = [text for text in (*earlier, *texts) if text]
    return tuple(dict.fromkeys([*whole[:1], *whole[1:][-_CARRIED_MESSAGES + 1 :]]))
