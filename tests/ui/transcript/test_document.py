"""A growing document: the same lines however it was cut, at a cost that depends on its end."""

import asyncio
import itertools
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thoroughness import examples
from tests.ui.transcript.samples import ANSWER
from tui_agent.ui.widgets.transcript import document, markdown
from tui_agent.ui.widgets.transcript.code import Code
from tui_agent.ui.widgets.transcript.document import MarkdownDocument
from tui_agent.ui.widgets.transcript.flows import LineBuilder
from tui_agent.ui.widgets.transcript.lines import Line
from tui_agent.ui.widgets.transcript.markdown import FlowMaker, parse_blocks
from tui_agent.ui.widgets.transcript.time_limit import TooLongError, limited

PIECES = st.sampled_from(
    [
        "a", "word ", "- ", "* ", "1. ", "2) ", "# ", "> ", "\n", "\n\n", "  ", "    ", "```", "```py\n", "~~~", "|",
        "---", "|-|-|\n", "| a | b |\n", "**", "_", "`", "[x]", "[x]: u", "(http://a.b)", "===", "\t", "中文",
        "e\u0301",
        "<b>", "\r", "&amp;", "\\", "+ ", "[ ] ", "0. ", "99. ", "!", "~~", "long words here ", "\n- x", "\n\n  y",
    ]
)  # fmt: skip
SOURCES = st.lists(PIECES, max_size=40).map("".join)


def dump(lines: Sequence[Line]) -> list[tuple[object, ...]]:
    return [(tuple(line.prefix), tuple(line.content()), line.join, line.lead) for line in lines]


def streamed(source: str, steps: list[int], width: int) -> MarkdownDocument:
    made = MarkdownDocument()
    place = number = 0
    while place < len(source):
        step = steps[number % len(steps)]
        made.append(source[place : place + step])
        made.lines(width)
        place, number = place + step, number + 1
    made.finish()
    return made


@settings(max_examples=examples(250), deadline=None)
@given(SOURCES, st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(4, 30))
def test_streamed_and_whole_look_the_same(source: str, steps: list[int], width: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # After a few lines and characters, so that short texts go through every path.
        patch.setattr(document, "CHUNK", 3)
        patch.setattr(document, "SEGMENT", 12)
        patch.setattr(markdown, "SEGMENT", 12)
        patch.setattr(markdown, "MAX_SEGMENT_CHARS", 30)
        whole = MarkdownDocument(source, finished=True).lines(width)
        assert dump(streamed(source, steps, width).lines(width)) == dump(whole)


@settings(max_examples=examples(250), deadline=None)
@given(SOURCES, st.integers(4, 30))
def test_freezing_does_not_change_what_markdown_means(source: str, width: int) -> None:
    made = MarkdownDocument(source, finished=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "CHUNK", 2)
        made.lines(width)
    plain = source.replace("\r\n", "\n").replace("\r", "\n")
    references: dict[str, object] = {}
    parse_blocks(plain, references)
    maker = FlowMaker(plain.split("\n"), references=references)
    maker.add(parse_blocks(plain, references))
    builder = LineBuilder(width)
    for flow in maker.flows:
        builder.feed(flow)
    assert dump(made.lines(width)) == dump(builder.lines)


def test_widths_can_change_while_text_comes() -> None:
    made = MarkdownDocument()
    for place in range(0, len(ANSWER), 7):
        made.append(ANSWER[place : place + 7])
        made.lines(40 if place % 2 else 90)
    made.finish()
    assert dump(made.lines(60)) == dump(MarkdownDocument(ANSWER, finished=True).lines(60))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("text\n\n-", "text"),
        ("text\n\n``", "text"),
        ("a\n\n#", "a"),
        ("a\n\n12.", "a"),
        ("text\n--", "text"),
        ("text\n\n| a | b |\n|--", "text"),
    ],
)
def test_an_undecided_last_line_waits(before: str, after: str) -> None:
    made = MarkdownDocument(before)
    assert [line.text for line in made.lines(40)] == [after]


PARAGRAPH = "The quick brown fox and `code` with **bold** words in it, too. " * 1_300
ITEMS = "".join(f"- item {number} with *some* text\n" for number in range(1_000))
FENCE = "```python\n" + "value = function(argument)  # a line\n" * 5_000


@pytest.mark.parametrize("source", [PARAGRAPH, ITEMS, FENCE], ids=["paragraph", "list", "fence"])
def test_one_huge_block_costs_little_per_look(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    parse = document.parse_blocks
    monkeypatch.setattr(
        document, "parse_blocks", lambda text, *more: parsed.append(len(text)) or parse(text, *more)
    )
    made = MarkdownDocument()
    size = len(source) // 200 + 1
    for place in range(0, len(source), size):
        made.append(source[place : place + size])
        made.lines(100)
    assert max(parsed) < 20_000
    assert sum(parsed) < 12 * len(source)
    assert len(made.lines(100)) > 700


def test_lines_of_finished_text_are_kept_as_they_are() -> None:
    made = MarkdownDocument(ITEMS)
    first = list(made.lines(80))[:500]
    made.append("- one more\n")
    assert all(now is before for now, before in zip(made.lines(80), first, strict=False))


def test_pathological_nesting_ends() -> None:
    for source in (
        "[" * 5_000,
        "*a " * 5_000,
        ">" * 5_000,
        "- " * 2_000,
        "`" * 5_001 + "x",
        "|" * 5_000 + "\n|-|",
    ):
        MarkdownDocument(source, finished=True).lines(80)


def endless() -> None:
    # Not inline: the with-statement around an inline all(...) misses the exception on Python 3.14.
    for _ in itertools.count():
        pass


def work() -> int:
    with limited(0.01):
        return sum(range(2_000_000))


@pytest.mark.timeout(60)
async def test_a_block_is_given_up_within_a_regular_expression_or_another_block_but_not_in_another_thread() -> (
    None
):
    with pytest.raises(TooLongError), limited(0.1):
        re.match(r"(a+)+$", "a" * 40 + "b")
    sum(range(1_000_000))  # the limit went with its block
    with pytest.raises(TooLongError), limited(0.05), limited(100):
        endless()
    assert await asyncio.to_thread(work)


@pytest.mark.timeout(60)
def test_code_that_its_lexer_takes_minutes_for_stays_plain() -> None:
    code = Code("java")
    code.replace(0, ["a b " * 220] * 100)
    drawn = [code.spans(line) for line in range(100)]
    assert drawn == [(("a b " * 220, "code"),)] * 100


@pytest.mark.timeout(60)
@pytest.mark.parametrize("finished", [True, False])
def test_markdown_that_takes_seconds_is_shown_as_its_source(finished: bool) -> None:
    text = "![" * 200_000
    document = MarkdownDocument(text, finished=finished)
    shown = "".join(line.text for line in document.lines(80))
    assert shown == text
    document.append("\n\n*more*")
    assert document.lines(80)[-1].text == "*more*"
