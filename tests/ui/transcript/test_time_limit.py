"""What takes for ever to be parsed or coloured is shown as it is written, soon."""

import asyncio
import re

import pytest

from tui_agent.ui.widgets.transcript.code import Code
from tui_agent.ui.widgets.transcript.document import MarkdownDocument
from tui_agent.ui.widgets.transcript.time_limit import TooLongError, limited


def work() -> int:
    with limited(0.01):
        return sum(range(2_000_000))


@pytest.mark.timeout(60)
async def test_a_block_is_given_up_within_a_regular_expression_or_another_block_but_not_in_another_thread() -> None:
    with pytest.raises(TooLongError), limited(0.1):
        re.match(r"(a+)+$", "a" * 40 + "b")
    sum(range(1_000_000))  # the limit went with its block
    with pytest.raises(TooLongError), limited(0.05), limited(100):
        sum(range(10**9))
    assert await asyncio.to_thread(work)


@pytest.mark.timeout(60)
def test_code_that_its_lexer_takes_minutes_for_stays_plain() -> None:
    code = Code("java")
    code.replace(0, ["a b " * 220] * 100)
    drawn = [code.runs(line) for line in range(100)]
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
