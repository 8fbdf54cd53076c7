"""The ``/rules`` command: shows the user's rules, their sources, and whether the model sees them.

A rule is a sentence in one of the user's messages that states something lasting, such as “never …”.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line, plural, tokens, visible
from tui_agent.app.frontend import Heading, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_agent.app.controller import Controller
    from tui_agent.context.rule_ledger import LedgerRow

NO_RULES = (
    "Your messages contain no rules, such as “never …”, “always …”, “only …”, “don't …”, “must …”."
)
HOW = (
    "Rules are recognised by their words, and kept verbatim when the history is summarised. "
    "A pin (p in /context) keeps a whole message. "
    "Write rules for every session into AGENTS.md."
)


@Command(
    "rules",
    "show the rules you gave the model, and whether it still sees them",
    place=165,
    words="instructions, standing, always",
)
async def rules(controller: Controller, _argument: str) -> None:
    from tui_agent.context.rule_ledger import ledger

    session = controller.open_agent.session
    rows = await asyncio.to_thread(ledger, session.path(), session.active_path())
    count = controller.open_agent.counter.text
    controller.show(Report("Rules", list(rule_lines(rows, count))))


def rule_lines(rows: Sequence[LedgerRow], count: Callable[[str], int]) -> Iterator[str]:
    """Yield the lines of the ``/rules`` page, lost rules first.

    ``count`` returns the number of tokens of a text.
    """
    if not rows:
        yield NO_RULES
        yield ""
        yield HOW
        return
    for place, those in _by_place(rows):
        yield Heading(f"{place[:1].upper()}{place[1:]}")
        for row in those:
            size = f"{tokens(count(row.text))} tokens"
            facts = " · ".join(filter(None, (row.source, _sending(row), size)))
            yield f"  {visible(one_line(row.text, 300))}"
            yield f"    {visible(facts)}"
        yield ""
    yield HOW


def _sending(row: LedgerRow) -> str:
    """Return how often a rule was sent to the model, as text; "" if it is no longer sent."""
    from tui_agent.context.rule_ledger import RulePlace

    if row.place is RulePlace.LOST:
        return ""
    if row.times_sent == 0:
        return "not sent yet"
    return f"sent {plural(row.times_sent, 'time')}"


def _by_place(rows: Sequence[LedgerRow]) -> Iterator[tuple[str, list[LedgerRow]]]:
    """Yield the rules in groups, each with its heading.

    Rules that the model no longer sees (lost rules) come first, then rules carried over by a
    summary, then rules in view, which the model sees. Empty groups are left out.
    """
    from tui_agent.context.rule_ledger import RulePlace

    for place in (RulePlace.LOST, RulePlace.CARRIED, RulePlace.IN_VIEW):
        those = [row for row in rows if row.place is place]
        if those:
            yield place.value, those
