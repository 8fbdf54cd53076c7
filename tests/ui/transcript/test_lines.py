"""Wrapping, cropping and painting keep every line within its width."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style as RichStyle

from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.lines import Line, crop_spans, crop_start, spans_width, wrap
from tui_agent.ui.widgets.transcript.paint import (
    ACTION,
    LINK,
    Highlight,
    offset_strip,
    paint,
    style_at,
    text_index_at,
    value_in_style,
)

ANY_LINE = st.text(st.characters(exclude_categories=[]), max_size=80).map(sanitize.line)
RUNS = st.lists(st.tuples(ANY_LINE.filter(bool), st.sampled_from(["text", "strong"])), max_size=5)


class PlainPalette(dict[str, RichStyle]):
    """Every key is a style of its own, so segments stay apart."""

    def __missing__(self, key: str) -> RichStyle:
        return RichStyle(meta={"key": key})


PALETTE = PlainPalette()


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("the quick brown fox", 10, [("", "the quick"), (" ", "brown fox")]),
        ("abcdefghij", 4, [("", "abcd"), ("", "efgh"), ("", "ij")]),
        ("中文中文。中文", 8, [("", "中文中"), ("", "文。中文")]),
    ],
)
def test_words_stay_whole_where_they_can(
    text: str, width: int, lines: list[tuple[str, str]]
) -> None:
    wrapped = wrap([(text, "text")], width)
    assert [(swallowed, "".join(text for text, _ in part)) for swallowed, part in wrapped] == lines


@given(RUNS, st.integers(2, 40))
def test_every_line_fits_and_nothing_is_lost(spans: list[tuple[str, str]], width: int) -> None:
    made = list(wrap(spans, width))
    assert all(spans_width(part) <= width for _, part in made)
    joined = "".join(swallowed + "".join(text for text, _ in part) for swallowed, part in made)
    assert joined.rstrip() == "".join(text for text, _ in spans).rstrip()
    assert spans_width(crop_spans(spans, width)) <= width


@given(RUNS, RUNS, ANY_LINE, st.integers(1, 60))
def test_a_strip_is_exactly_as_wide_as_the_widget(
    spans: list[tuple[str, str]], prefix: list[tuple[str, str]], tail: str, width: int
) -> None:
    line = Line(spans, prefix=tuple(prefix), tail=((tail, "muted"),) if tail else (), fill="code")
    highlights = [Highlight(1, 4, RichStyle(bold=True))]
    for strip in (
        paint(line, width, PALETTE),
        paint(line, width, PALETTE, focused="#3", highlights=highlights),
        offset_strip(line, width, 7),
    ):
        assert sum(segment.cell_length for segment in strip) == width == strip.cell_length


@pytest.mark.parametrize(
    ("x", "found"), [(0, None), (2, "toggle"), (5, None), (11, "open"), (15, "undo"), (20, None)]
)
def test_what_is_under_the_pointer(x: int, found: str | None) -> None:
    line = Line(
        [("text  ", "text"), ("open", "muted act:open")], prefix=(("▸ ", "marker act:toggle"),),
        tail=(("undo", "act:undo"),),
    )  # fmt: skip
    assert value_in_style(style_at(line, x, 20), ACTION) == found


def test_links_and_characters_under_the_pointer() -> None:
    line = Line([("see ", "text"), ("中文", "link url:https://a.b")], prefix=(("> ", "muted"),))
    assert value_in_style(style_at(line, 8, 20), LINK) == "https://a.b"
    assert value_in_style(style_at(line, 4, 20), LINK) is None
    assert [text_index_at(line, x) for x in (0, 4, 8, 9, 10, 41)] == [0, 0, 4, 4, 5, 6]


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


@given(ANY_LINE, st.integers(1, 40))
def test_the_end_of_a_text_that_is_cut_at_its_start_fits(text: str, width: int) -> None:
    shown = crop_start(text, width)
    assert cell_len(shown) <= width
    assert shown == text or (shown[0] == "…" and text.endswith(shown[1:]))
