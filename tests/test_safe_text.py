"""Text from outside cannot act on a terminal."""

import io

import pytest

from tui_agent.cli.output import say
from tui_agent.safe_text import ACTING, one_line, readable, visible
from tui_agent.ui.widgets.transcript import sanitize

EVIL = "a\x1b]52;c;eA==\x07b\x9bc\x00d\u202ee\rf\x7f\u2028"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("make", [visible, readable, one_line])
def test_nothing_that_acts_is_left(make: object) -> None:
    assert ACTING.search(make(EVIL)) is None  # type: ignore[operator]


def test_what_is_hidden_is_shown_and_the_rest_stays() -> None:
    assert visible("a\x1b[31m\u202eb\tc\nd") == "a␛[31m⟨U+202E⟩b\tc\nd"
    assert readable("👩\u200d💻 ok\r\nnext") == "👩\u200d💻 ok\nnext"
    assert one_line("a\n\n b\tc" * 200, 20) == "a b ca b ca b ca b …"


def test_a_terminal_gets_it_harmless_and_a_pipe_as_it_is() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    say(EVIL, file=terminal)
    say(EVIL, file=pipe)
    assert ACTING.search(terminal.getvalue()) is None
    assert pipe.getvalue() == f"{EVIL}\n"


def test_the_conversation_and_the_command_line_agree_on_what_is_harmful() -> None:
    every = "".join(map(chr, range(0x110000)))
    harmful = {character for character in every if visible(character) != character}
    assert harmful == {character for character in every if sanitize.text(character) != character}
    assert "\N{ZERO WIDTH JOINER}" in harmful
    assert {"\t", "\n", "e", "\u0301", "日"}.isdisjoint(harmful)
