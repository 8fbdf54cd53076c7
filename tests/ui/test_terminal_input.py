"""What a terminal sends beside keys never reaches the prompt, and no key is lost among it."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual import events

from tests.support.thoroughness import examples
from tests.support.ui_app import Clock
from tui_agent.ui.terminal_input import InputParser, PasteComing


def read(*chunks: str) -> list[str]:
    """Return the keys, and pastes as their text in brackets, of input that comes in pieces at once."""
    parser = InputParser(clock=Clock())
    found = []
    for message in (message for chunk in chunks for message in parser.feed(chunk)):
        if isinstance(message, events.Key):
            found.append(message.key)
        elif isinstance(message, events.Paste):
            found.append(f"[{message.text}]")
    return found


ANSWERS = [
    "\x1b[?61;4;6;22c", "\x1b[>1;10;0c", "\x1b[=0c", "\x1b[0n", "\x1b[?997;1n", "\x1b[?1u", "\x1b[8;24;80t",
    "\x1b[4;600;800t", "\x1b[?2026;2$y", "\x1b[?12;3R", "\x1b[2;3;4;5;6x", '\x1b[1;2;3;4"q', "\x1b[5 q", "\x1b[201~",
    "\x1b[99999999999u", "\x1b[97;5:1u", "\x1b[>4;2m", "\x9b?1;2c",
    "\x1b]4;1;rgb:ffff/0000/0000\x1b\\", "\x1b]52;c;aGFsbG8=\x07", "\x1b]10;rgb:0/0/0\x9c", "\x9d11;rgb:0/0/0\x07",
    "\x1b]lTitle\x1b\\", "\x1bP>|XTerm(390)\x1b\\", "\x1bP1+r544e=787465726d\x1b\\", "\x1bP!|00000000\x1b\\",
    "\x1bP1$r0m\x1b\\", "\x1b_Gi=1;OK\x1b\\", "\x1b^private\x1b\\", "\x1bXstring\x1b\\", "\x90>|x\x9c",
]  # fmt: skip
KEYS = {
    "a": "a", "ß": "ß", "\r": "enter", "\t": "tab", "\x7f": "backspace", "\x01": "ctrl+a", " ": "space", "\x1b[A": "up",
    "\x1bOP": "f1", "\x1b[1;3D": "alt+left", "\x1b[1;5C": "ctrl+right", "\x1b[27;5;127~": "ctrl+backspace",
    "\x1b[27;2;13~": "shift+enter", "\x1b[13;2u": "shift+enter", "\x1b[27;2;65~": "A", "\x1b[27;5;105~": "ctrl+i",
    "\x1b\x1b[D": "alt+left", "\x1b\r": "alt+enter", "\x1bb": "alt+b", "\x1b[3~": "delete", "\x1b[Z": "shift+tab",
    "\x1b[1;2Q": "shift+f2", "\x1b[1;2R": "shift+f3", "\x1b[13;2~": "shift+f3", "\x1b[20;2~": "shift+f9",
    "\x1b[200~two\nlines\x1b[31m\x1b[201~": "[two\nlines\x1b[31m]",
}  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_among_keys_leaves_nothing_and_takes_none(answer: str) -> None:
    assert read(f"a{answer}b") == ["a", "b"]
    for cut in range(1, len(answer)):
        assert read(f"a{answer[:cut]}", f"{answer[cut:]}b") == ["a", "b"], cut


@pytest.mark.parametrize(("written", "key"), KEYS.items())
def test_a_key_is_read_in_each_way_it_is_written(written: str, key: str) -> None:
    assert read(f"x{written}y") == ["x", key, "y"]


def test_escapes_that_come_with_the_keys_behind_them_are_all_there() -> None:
    """A slow connection brings at once what was typed one after the other."""
    assert read("\x1b\x1b\x15\x15b") == ["escape", "escape", "ctrl+u", "ctrl+u", "b"]
    assert read("k\x1b\x0b") == ["k", "escape", "ctrl+k"]


PARAMETERS = st.text("0123456789;:<=>?", max_size=8)
BODY = st.text(
    st.characters(exclude_characters="\x03\x07\x1b\x9c\x18\x1a", exclude_categories=["Cs"]),
    max_size=20,
)
CONTROL = st.builds("\x1b[?{}{}".format, PARAMETERS, st.sampled_from("cnhlRtxpqsm"))
STRINGS = st.one_of(
    st.builds(
        "\x1b]{};{}{}".format,
        st.integers(0, 9999),
        BODY,
        st.sampled_from(["\x07", "\x1b\\", "\x9c"]),
    ),
    st.builds("\x1b{}{}\x1b\\".format, st.sampled_from("PX^_"), BODY),
)


@given(
    st.lists(
        st.one_of(st.sampled_from(list(KEYS)), st.sampled_from(ANSWERS), CONTROL, STRINGS),
        max_size=12,
    ),
    st.lists(st.integers(0, 400), max_size=10),
)
@settings(max_examples=examples(300), deadline=None)
def test_a_stream_of_keys_and_answers_cut_anywhere_is_its_keys(
    pieces: list[str], cuts: list[int]
) -> None:
    stream = "".join(pieces)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[start:end] for start, end in pairwise(places)]
    assert read(*chunks) == [KEYS[piece] for piece in pieces if piece in KEYS]


LETTERS = st.one_of(st.sampled_from("\x1b[]PX^_O;?0123~uM\x07\x9c\x9b\\"), st.characters())


@given(st.lists(st.text(LETTERS, max_size=30)))
@settings(max_examples=examples(300), deadline=None)
def test_no_input_at_all_ends_the_parser(chunks: list[str]) -> None:
    clock = Clock()
    parser = InputParser(clock=clock)
    for chunk in filter(None, chunks):
        list(parser.feed(chunk))
        clock.now += 3
        list(parser.tick())
    list(parser.feed("\x1b\\\x1b[201~"))
    clock.now += 3
    list(parser.tick())
    assert [message.key for message in parser.feed("z") if isinstance(message, events.Key)] == ["z"]


def test_an_answer_that_never_ends_is_dropped_and_keys_go_on() -> None:
    clock = Clock()
    parser = InputParser(clock=clock)
    assert list(parser.feed("\x1b]52;c;AAAA")) == []
    clock.now += 3
    assert list(parser.tick()) == []
    assert [message.key for message in parser.feed("ok")] == ["o", "k"]


@pytest.mark.parametrize("stray", ["\x90", "\x98", "\x9e", "\x9f"])
def test_a_stray_byte_costs_two_seconds_of_typing_and_no_more(stray: str) -> None:
    clock = Clock()
    parser = InputParser(clock=clock)
    seen = []
    for letter in stray + "abcdefgh":
        seen += list(parser.feed(letter))
        clock.now += 0.5
        seen += list(parser.tick())
    assert [message.key for message in seen if isinstance(message, events.Key)] == list("defgh")


@pytest.mark.parametrize(
    "begin", ["\x1b]52;c;AAAA", "\x1b]0;title", "\x9f half an answer", "\x1bP1$"]
)
def test_control_c_inside_an_unfinished_answer_is_heard(begin: str) -> None:
    assert read(begin, "\x03")[-1] == "ctrl+c"


def test_a_paste_that_takes_long_says_so() -> None:
    clock = Clock()
    parser = InputParser(clock=clock)
    list(parser.feed("\x1b[200~" + "x" * 1000))
    clock.now += 1
    assert [message.characters for message in parser.feed("y" * 500)] == [1500]
    (paste,) = parser.feed("z\x1b[201~")
    assert isinstance(paste, events.Paste)
    assert len(paste.text) == 1501
    assert not isinstance(paste, PasteComing)
