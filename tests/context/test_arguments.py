"""Arguments of calls, as models write them."""

import pytest

from tui_agent.context.arguments import text_argument


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"path": "a.py"}', "a.py"),
        ('{"path": 3}', "3"),
        ('{"other": "a.py"}', ""),
        ('["path"]', ""),
        ('{"path": "a', ""),
    ],
)
def test_an_argument_is_read_as_text(arguments: str, text: str) -> None:
    assert text_argument(arguments, "path") == text
