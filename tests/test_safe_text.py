"""Text from outside cannot act on a terminal."""

import io
import json
import re

import pytest

from tui_agent.cli.output import say, say_bytes, say_json
from tui_agent.json_text import loads
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


def test_a_line_shows_that_text_behind_much_white_space_is_cut_and_begins_with_the_first_word() -> (
    None
):
    assert one_line("echo hi" + "\n" * 900 + "rm -rf ~") == "echo hi…"
    assert one_line("\n" * 900 + "title") == "title"
    assert one_line("echo hi" + "\n" * 900) == "echo hi"


def test_the_conversation_and_the_command_line_agree_on_what_is_harmful() -> None:
    every = "".join(map(chr, range(0x110000)))
    harmful = {character for character in every if visible(character) != character}
    assert harmful == {character for character in every if sanitize.text(character) != character}
    assert "\N{ZERO WIDTH JOINER}" in harmful
    assert {"\t", "\n", "e", "\u0301", "日"}.isdisjoint(harmful)


HIDDEN = "a\x1b[31m\x9b\u202e\u2028\u0085\u200b\u2060\ufeff\U000e0041\ud800b"
"""What acts on a terminal, reorders a line, ends one, or is not seen: tags are an alphabet nobody sees."""


def test_json_for_a_terminal_means_the_same_and_nothing_in_it_acts_or_hides() -> None:
    shown, piped = Terminal(), io.StringIO()
    say_json({"a": "x\u2028\u200b"}, file=piped)
    assert piped.getvalue() == '{"a": "x\u2028\u200b"}\n', "a pipe gets it as it is"
    say_json({HIDDEN: [HIDDEN, "👩\u200d💻 é"]}, file=shown)
    line = shown.getvalue()
    assert line.isascii() or all(character.isprintable() for character in line.strip())
    assert json.loads(line) == {HIDDEN: [HIDDEN, "👩\u200d💻 é"]}
    assert "👩" in line
    assert line.count("\n") == 1


def test_text_for_a_terminal_hides_nothing_and_emoji_stay_joined() -> None:
    shown, piped = Terminal(), io.StringIO()
    say(EVIL, file=piped)
    assert piped.getvalue() == f"{EVIL}\n", "a pipe gets it as it is"
    say(f"{HIDDEN} 👩\u200d💻", file=shown)
    text = shown.getvalue().strip()
    assert ACTING.search(text) is None
    assert {"⟨U+200B⟩", "⟨U+E0041⟩", "⟨U+0085⟩"} <= {
        f"{part}⟩" for part in re.findall("⟨[^⟩]*", text)
    }
    assert text.endswith("👩\u200d💻")


def test_bytes_for_a_terminal_cannot_act_on_it_and_a_pipe_gets_them() -> None:
    data = b"+a\x1b[2Jb\xff\r\n"
    shown, piped = Terminal(), io.TextIOWrapper(io.BytesIO())
    say_bytes(data, file=shown)
    assert ACTING.search(shown.getvalue()) is None
    say_bytes(data, file=piped)
    assert piped.buffer.getvalue() == data


@pytest.mark.parametrize(
    ("text", "words", "position"),
    [
        ('{"a": 1' + "0" * 5_000 + "}", "too many digits", 6),
        ('{"a": -' + "9" * 4_301 + "}", "too many digits", 6),
        ("[" * 100_000, "nested too deeply", 0),
        (b'{"a": "\xff"}', "not UTF-8", 7),
        ('{"a": ', "Expecting value", 6),
    ],
    ids=["digits", "negative", "nesting", "encoding", "cut"],
)
def test_what_cannot_be_read_is_one_kind_of_error(
    text: str | bytes, words: str, position: int
) -> None:
    with pytest.raises(json.JSONDecodeError, match=words) as caught:
        loads(text)

    assert caught.value.pos == position


def test_what_can_be_read_is_read() -> None:
    assert loads('{"a": 1' + "0" * 4_000 + "}") == {"a": 10**4_000}
    assert loads('"a\nb"', strict=False) == "a\nb"
