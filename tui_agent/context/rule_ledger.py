"""Lists a session's standing rules, with the source of each and whether it is still sent.

A standing rule is an order that holds for the whole session, such as "never touch vendor".
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from tui_agent.context.budget import head_sections
from tui_agent.context.standing_rules import read_rules, rules_in, rules_of
from tui_agent.context.view import resolve
from tui_agent.lazy import frozen
from tui_agent.session.entries import AssistantEntry, Entry, SystemEntry

_MEMORY = "memory"
"""Label of the section with the project's memory in the system prompt or opening message."""


class RulePlace(StrEnum):
    """Whether and how a standing rule is sent to the model. The values are shown to the user."""

    IN_VIEW = "in view"
    """The rule is sent as part of the message or instruction file that states it."""
    CARRIED = "carried word for word"
    """The message that states the rule was summarised, but the summary contains the rule
    verbatim."""
    LOST = "not sent"
    """The rule is no longer sent, because its message was hidden or cleared, or because it did not
    fit a summary's budget."""


@frozen
class LedgerRow:
    """One standing rule, such as "never touch vendor", and where it comes from.

    ``source`` is ``AGENTS.md:12`` (file and line) or ``#34`` (entry). ``times_sent`` is the number
    of requests answered since the rule was stated, 0 if it is no longer sent.
    """

    source: str
    text: str
    place: RulePlace
    times_sent: int


def ledger(whole: Sequence[Entry], active: Sequence[Entry]) -> list[LedgerRow]:
    """Return a session's rules: first the rules in instruction files, then those in messages.

    ``whole`` is the path from the root, ``active`` the active path (``Session.active_path``).
    """
    view = resolve(active)
    rows: list[LedgerRow] = []
    if view.system is not None:
        rows += _rows_of_head(view.system, _answers_after(whole, view.system.id))
    shown = [entry for entry in view.entries if view.is_open(entry.id)]
    in_view = {rule.text for rule in rules_of(shown)}
    details = view.carried
    carried = {rule.text for rule in read_rules((*details.rules, *details.rules_known))}
    for message in details.user_messages:
        carried.update(rules_in(message))
    for pin in view.pinned:
        carried.update(rules_in(pin.text))
    for rule in rules_of(whole):
        place = RulePlace.LOST
        if rule.text in in_view:
            place = RulePlace.IN_VIEW
        elif rule.text in carried:
            place = RulePlace.CARRIED
        sent = 0 if place is RulePlace.LOST else _answers_after(whole, rule.entry_id)
        rows.append(LedgerRow(f"#{rule.entry_id}", rule.text, place, sent))
    return rows


def _rows_of_head(head: SystemEntry, sent: int) -> Iterator[LedgerRow]:
    for label, text in head_sections(head):
        if label != _MEMORY and "." not in label and "/" not in label:
            continue  # the program's own parts
        for number, line in enumerate(text.splitlines()):
            for rule in rules_in(line):
                # The first line of a section is its opening tag.
                yield LedgerRow(f"{label}:{max(number, 1)}", rule, RulePlace.IN_VIEW, sent)


def _answers_after(path: Sequence[Entry], entry_id: int) -> int:
    return sum(isinstance(entry, AssistantEntry) and entry.id > entry_id for entry in path)
