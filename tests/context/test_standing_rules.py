"""Rules of the user stay word for word through every compaction, or it is said that they do not."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.agents import make_agent
from tests.support.scripted_client import Reply
from tui_agent.context.files import FileOperations
from tui_agent.context.preserved import Budgets, Summarised, carry
from tui_agent.context.request import request_bytes
from tui_agent.context.rule_ledger import RulePlace, ledger
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.context.standing_rules import (
    StandingRule,
    binds,
    carried,
    read_rules,
    rules_in,
    rules_of,
)
from tui_agent.session.entries import SummaryDetails, TextPart, UserEntry
from tui_agent.tools.registry import tool_traits

RULES = [
    "Never touch the files in vendor.",
    "Always run `make lint` before you say that you are done.",
    "Only use the standard library.",
    "Don't commit anything.",
    "Please never add a dependency without asking me.",
    "Answer in German, and always in full sentences.",
    "All dates must be UTC.",
    "You must not change the public API.",
    "The tests may not touch the network.",
    "From now on write British English.",
    "Make sure that every function has a docstring.",
    "Under no circumstances push to main.",
    "Whatever you do, never delete my notes.",
    "Ensure that old sessions open.",
    "We only use pnpm here.",
    "Migrations are forbidden before Friday.",
    "Errors have to be logged.",
    "Avoid global state at all costs.",
    "do not edit generated code",
    "The file schema.sql is off-limits.",
]
NO_RULES = [
    "Fix the cart.",
    "I don't know why it fails.",
    "It never worked before.",
    "Only two tests are left.",
    "Why does it always fail?",
    "Don't worry about the old one.",
    "There is a bug in the parser.",
    "That only happens on Tuesdays.",
    "Thanks!",
    "Show me the log of the last run.",
]


@pytest.mark.parametrize("text", RULES)
def test_what_binds_is_found(text: str) -> None:
    assert binds(text)


@pytest.mark.parametrize("text", NO_RULES)
def test_what_only_tells_is_no_rule(text: str) -> None:
    assert not binds(text)


def test_rules_are_found_in_lists_and_never_in_code() -> None:
    text = "Do this:\n- Never touch vendor files.\n1. Always run the tests.\n```\nnever(run, this, code)\n```\nThanks."
    assert list(rules_in(text)) == ["Never touch vendor files.", "Always run the tests."]


def said(number: int, text: str) -> UserEntry:
    return UserEntry(id=number, parts=(TextPart(text=text),))


def test_a_rule_that_is_said_again_is_one_rule() -> None:
    rules = rules_of([said(1, RULES[0]), said(5, "And " + RULES[0].lower()), said(9, RULES[0])])
    assert [rule.entry_id for rule in rules] == [5, 9]


def words(text: str) -> int:
    return len(text.split()) + 1


def summarised(entries: list[UserEntry]) -> Summarised:
    return Summarised(entries, FileOperations(), tool_traits())


@given(st.data())
def test_a_rule_is_in_every_summary_or_is_said_to_be_lost(data: st.DataObject) -> None:
    choose = random.Random(data.draw(st.integers(0, 10**6)))
    budget = data.draw(st.sampled_from([60, 200, 1_000, 8_000]))
    budgets = Budgets.of(CompactionSettings(), budget * 10)
    details = SummaryDetails()
    known: set[str] = set()
    number = 0
    for _compaction in range(3):
        entries = []
        for _message in range(choose.randrange(1, 6)):
            number += 1
            text = " ".join(
                choose.choices(["talk", "about", "this", "then"], k=choose.randrange(60))
            )
            if choose.random() < 0.5:
                rule = choose.choice(RULES)
                known.add(rule)
                text = f"{text}\n{rule}"
            entries.append(said(number, text or "Go on."))
        details = carry(summarised(entries), details, budgets, words)
        shown = "\n".join([*details.rules, *details.user_messages])
        missing = [rule for rule in known if rule not in shown]
        assert len(missing) <= details.rules_lost
        known -= set(missing)
        assert all(rule.line in details.rules for rule in read_rules(details.rules))


async def test_a_rule_is_in_every_request_after_three_compactions(
    tmp_path: pytest.TempPathFactory,
) -> None:
    settings = ContextSettings(compaction=CompactionSettings(keep_recent=200))
    talk = "word " * 400
    harness = make_agent(
        tmp_path,
        lambda _request: Reply("A summary of what was said and done so far. " + talk[:400]),
        settings=settings,
    )
    await harness.say(f"{talk}\n\n{RULES[0]} {RULES[1]}\n\n{talk}")
    for number in range(3):
        for _turn in range(3):
            await harness.say(f"{number} {talk}")
        await harness.agent.compact()
        await harness.say("and now?")
        sent = request_bytes(harness.client.requests[-1]).decode()
        assert RULES[0] in sent
        assert "Always run `make lint` before you say that you are done." in sent
    rows = ledger(harness.session.path(), harness.session.active_path())
    assert {row.place for row in rows if row.source.startswith("#")} == {RulePlace.CARRIED}
    assert all(row.times_sent > 3 for row in rows)


@given(
    lengths=st.lists(st.integers(1, 9), max_size=8),
    shown=st.sets(st.integers(0, 7)),
    budget=st.integers(0, 60),
)
def test_carried_rules_fit_newest_first_and_the_others_are_counted(
    lengths: list[int], shown: set[int], budget: int
) -> None:
    rules = [StandingRule(at, f"rule{at} " + "w " * length) for at, length in enumerate(lengths)]
    text = "\n".join(rule.text for rule in rules if rule.entry_id in shown)
    lines, lost = carried(rules, text, budget, lambda line: len(line.split()))
    left = budget
    expected: list[str] = []
    for rule in reversed(rules):
        cost = len(rule.line.split()) + 1
        if rule.entry_id not in shown and cost <= left:
            expected.insert(0, rule.line)
            left -= cost
    assert list(lines) == expected
    assert lost == len([rule for rule in rules if rule.entry_id not in shown]) - len(lines)
