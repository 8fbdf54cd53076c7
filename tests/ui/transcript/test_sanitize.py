"""Text from outside can neither act on the terminal nor hide."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui_agent.ui.widgets.transcript import sanitize

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=60)


@pytest.mark.parametrize(
    ("raw", "harmless"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred", "␛[31mred"),
        ("nul\x00bel\x07", "nul␀bel␇"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("c1\x9b31m", "c1\ufffd31m"),
        ("\u202eevil", "\ufffdevil"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("\U0001f469\u200d\U0001f4bb \u26a0\ufe0f", "\U0001f469\U0001f4bb \u26a0"),
        ("lone \ud83d", "lone \ufffd"),
        ("tag \U000e0041", "tag \ufffd"),
        ("e\u0301", "e\u0301"),
    ],
)
def test_harm_is_taken_out_and_the_rest_stays(raw: str, harmless: str) -> None:
    assert sanitize.text(raw) == harmless


@pytest.mark.parametrize(
    ("raw", "looks"),
    [
        ("\x1b[1;32mok\x1b[0m", "ok"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]52;c;aGk=\x1b\\text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("ab\x08c", "ac"),
        ("cut \x1b]0;never ends", "cut ␛]0;never ends"),
    ],
)
def test_output_of_a_command_is_what_it_looked_like(raw: str, looks: str) -> None:
    assert sanitize.output(raw) == looks


@given(ANY_TEXT)
def test_nothing_is_left_that_a_terminal_would_act_on(raw: str) -> None:
    for made in (sanitize.text(raw), sanitize.output(raw)):
        assert not [c for c in made if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
        made.encode()
    assert "\n" not in sanitize.line(raw)


@given(ANY_TEXT, ANY_TEXT)
def test_widths_of_parts_add_up(first: str, second: str) -> None:
    first, second = sanitize.line(first), sanitize.line(second)
    assert cell_len(first + second) == cell_len(first) + cell_len(second)
