"""Where each binding sentence of a session stands: in view, carried by a summary, or no longer sent. Pure."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from tui_agent.context.budget import head_sections
from tui_agent.context.standing_rules import read_rules, rules_in, rules_of
from tui_agent.context.view import resolve
from tui_agent.lazy import frozen
from tui_agent.session.entries import AssistantEntry, Entry, SystemEntry

_MEMORY = "memory"
"""The part of a head with the project's memory; other parts without a file are the program's own."""


class RulePlace(StrEnum):
    """How the model has a rule."""

    IN_VIEW = "in view"
    """It is sent where it was said."""
    CARRIED = "carried word by word"
    """Where it was said has been summarised; the summary holds the sentence as it is."""
    LOST = "not sent"
    """It was taken out of the context, or the budget of a summary could not hold it."""


@frozen
class LedgerRow:
    """One rule: where it comes from (``AGENTS.md:12``, ``#34``), how the model has it, how often it was sent."""

    source: str
    text: str
    place: RulePlace
    times_sent: int


def ledger(whole: Sequence[Entry], active: Sequence[Entry]) -> list[LedgerRow]:
    """Return the rules of a session, those of instructions first.

    ``whole`` is the path from the root, ``active`` the part of it that requests are made of.
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
                # The first line of a section is the tag around it.
                yield LedgerRow(f"{label}:{max(number, 1)}", rule, RulePlace.IN_VIEW, sent)


def _answers_after(path: Sequence[Entry], entry_id: int) -> int:
    return sum(isinstance(entry, AssistantEntry) and entry.id > entry_id for entry in path)
