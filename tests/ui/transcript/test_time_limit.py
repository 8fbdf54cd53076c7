"""What takes for ever to be parsed or coloured is shown as it is written, soon."""

import re
import threading

import pytest

from tui_agent.ui.widgets.transcript.code import Code
from tui_agent.ui.widgets.transcript.document import MarkdownDocument
from tui_agent.ui.widgets.transcript.time_limit import TooLongError, limited


@pytest.mark.timeout(60)
def test_a_single_regular_expression_is_given_up() -> None:
    with pytest.raises(TooLongError), limited(0.1):
        re.match(r"(a+)+$", "a" * 40 + "b")
    sum(range(1_000_000))  # the limit went with its block


def test_a_block_within_a_block_has_the_limit_of_the_outer_one() -> None:
    with pytest.raises(TooLongError), limited(0.05), limited(100):
        sum(range(10**9))


def test_another_thread_is_not_limited() -> None:
    done: list[int] = []

    def work() -> None:
        with limited(0.01):
            done.append(sum(range(2_000_000)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done


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
