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
