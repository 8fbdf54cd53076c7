"""The terminal's own cursor stands at the caret, where an input method shows what is being composed."""

from tests.support.place import PROMPT_HINT, Place
from tests.support.terminal import Terminal


def at_caret(terminal: Terminal, text: str, *, columns: int) -> None:
    """Wait until the cursor stands ``columns`` cells after the prompt's bar, on the row that holds ``text``."""

    def there() -> bool:
        rows = [(row, line.index("▌")) for row, line in enumerate(terminal.lines) if "▌" in line and text in line]
        return bool(rows) and terminal.cursor == (rows[-1][1] + 2 + columns, rows[-1][0])

    terminal.wait_until(there, f"the cursor {columns} cells into “{text}”")


def test_the_cursor_is_where_the_next_character_goes(place: Place) -> None:
    terminal = place.start(size=(80, 24))
    at_caret(terminal, PROMPT_HINT, columns=0)
    terminal.type("ab你好")
    at_caret(terminal, "ab", columns=6)
    terminal.press("left")
    at_caret(terminal, "ab", columns=4)
    terminal.resize(70, 18)
    at_caret(terminal, "ab", columns=4)
    terminal.press("end")
    terminal.type("\nsecond")
    at_caret(terminal, "second", columns=6)
    terminal.type("\x7f" * 7)
    at_caret(terminal, "ab", columns=6)
    terminal.press("escape")


def test_keys_that_come_in_one_burst_act_in_the_order_they_were_typed(place: Place) -> None:
    terminal = place.start(size=(80, 24))
    at_caret(terminal, PROMPT_HINT, columns=0)
    terminal.type("teh\x7f\x7fhe \x1b[D\x1b[Dk\x1b[Fway\nnext")
    terminal.wait_for("▌ thke way")
    at_caret(terminal, "next", columns=4)
