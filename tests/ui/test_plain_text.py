"""A line of the model's Markdown reads as plain text in lists; what only looks like a mark stays."""

import pytest

from tui_agent.app.plain_text import plain, plain_preview


@pytest.mark.parametrize(
    ("markdown", "read"),
    [
        ("**Hello!** I am *here* and ~~not~~ __there__.", "Hello! I am here and not there."),
        ("## Goal Find it ## Next Steps 1. Test", "Goal Find it Next Steps 1. Test"),
        ("- a `list_of_items` with **`bold`** code", "a list_of_items with bold code"),
        ("See [the docs](https://example.com/a_b_c) and ![a picture](x.png)", "See the docs and a picture"),
        ("`**kwargs` and `a_b_c` stay", "**kwargs and a_b_c stay"),
        ("```python x = 1 ```", "x = 1"),
        ("**A beginning that was cut o", "A beginning that was cut o"),
        ("2 * 3 * 4, snake_case_name, *.py and **/*.py, C# #3", "2 * 3 * 4, snake_case_name, *.py and **/*.py, C# #3"),
        ("Done. | | before | after | |---|:--:| | `a|b` | 1 | 2 |", "Done. · before · after · a|b · 1 · 2"),
        ("Done. | before | after | |---|--", "Done. · before · after"),
        ("cat x | grep y || true", "cat x | grep y || true"),
        ("", ""),
    ],
)
def test_marks_go_and_everything_else_stays(markdown: str, read: str) -> None:
    assert plain(markdown) == read


def test_calls_are_told_by_their_first_argument() -> None:
    calls = 'read {"path": "src/a.py", "offset": 3} · bash {"command": "echo \\"x\\""} · ls {}'
    assert plain_preview("assistant", calls) == 'read src/a.py · bash echo \\"x\\" · ls'
    assert plain_preview("assistant", 'grep {"pattern": "a very long one that was c') == (
        "grep a very long one that was c"
    )


def test_what_the_user_wrote_is_as_they_wrote_it() -> None:
    assert plain_preview("user", "**why** {x}") == "**why** {x}"
