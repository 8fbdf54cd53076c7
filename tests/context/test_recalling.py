"""Which lines of an overlong text are shown."""

from tui_agent.context.recalling import outline
from tui_agent.context.truncation import OutputLimits


def test_a_name_in_use_that_few_lines_have_is_shown_before_one_that_many_have():
    # Each line has two names of its own, so that those of the outline are others than the one in use.
    lines = [
        f"call one_{number:04} and two_{number:04} in line {number:04}" for number in range(2_000)
    ]
    for number in range(300, 1_300):
        lines[number] = f"plain words with often_used in number {number:04}"
    lines[1_700] = "plain words with rarely_used in number 1700"
    limits = OutputLimits(lines=2_000, bytes=8_000, line_chars=2_000, tokens=20_000)
    names = {"often_used": 1.0, "rarely_used": 0.5}
    shown = dict(outline(lines, names, limits))
    assert shown[1_700] == lines[1_700]
    assert outline(lines, names, limits) == sorted(shown.items())


def test_a_text_without_names_is_shown_from_its_beginning_as_far_as_there_is_room() -> None:
    lines = ["plain words and so on"] * 2_000
    limits = OutputLimits(lines=2_000, bytes=8_000, line_chars=2_000, tokens=20_000)
    shown = outline(lines, {}, limits)
    assert shown == list(enumerate(lines[: len(shown)]))
    assert 7_000 < sum(len(line) + 1 for _, line in shown) <= 8_000
    few = OutputLimits(lines=20, bytes=8_000, line_chars=2_000, tokens=20_000)
    assert outline(lines, {}, few) == list(enumerate(lines[:20]))


def test_a_first_line_that_is_not_long_is_shown_whole_whatever_the_others_have() -> None:
    lines = ["w " * 150, *(f"one_{at:04} and two_{at:04}" for at in range(2_000))]
    assert len(lines[0]) == 300
    limits = OutputLimits(lines=2_000, bytes=3_000, line_chars=2_000, tokens=20_000)
    shown = dict(outline(lines, {}, limits))
    assert shown[0] == lines[0]
    assert len(shown) > 20
