"""The line of keys shows whole hints only and always the way back; text in columns wraps under its column."""

import pytest
from textual.content import Content

from tui_agent.ui.widgets.key_line import fitting, read_hints
from tui_agent.ui.widgets.two_columns import hung

HINTS = read_hints("↑↓ move  enter remove or keep  ctrl+z take it back  esc back")


def test_hints_are_keys_with_what_they_do_and_a_click() -> None:
    assert HINTS == (
        ("↑↓", "move", ""),
        ("enter", "remove or keep", "app.simulate_key('enter')"),
        ("ctrl+z", "take it back", "app.simulate_key('ctrl+z')"),
        ("esc", "back", "app.simulate_key('escape')"),
    )


@pytest.mark.parametrize(
    ("room", "keys"),
    [(80, ["↑↓", "enter", "ctrl+z", "esc"]), (57, ["enter", "ctrl+z", "esc"]), (30, ["enter", "esc"]), (5, ["esc"])],
)
def test_what_does_not_fit_is_left_out_whole_and_the_way_back_stays(room: int, keys: list[str]) -> None:
    assert [key for key, _, _ in fitting(HINTS, room)] == keys


def test_a_second_column_goes_on_under_itself() -> None:
    text = Content("Title\n  /undo      take back the last turn or move\nshort")
    assert hung(text, 30).plain.split("\n") == [
        "Title",
        "  /undo      take back the",
        "             last turn or move",
        "short",
    ]
    assert hung(text, 20).plain.split("\n")[1:3] == ["  /undo      take", "back the last turn"]
