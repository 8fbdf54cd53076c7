"""Texts of entries as they are shown to the model."""

import pytest

from tui_agent.context.rendering import line_count


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2)]
)
def test_a_final_newline_begins_no_line(text: str, lines: int) -> None:
    assert line_count(text) == lines
