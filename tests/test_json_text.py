"""JSON of others is read, or refused with one error."""

import json

import pytest

from tui_agent.json_text import loads


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
def test_what_cannot_be_read_is_one_kind_of_error(text: str | bytes, words: str, position: int) -> None:
    with pytest.raises(json.JSONDecodeError, match=words) as caught:
        loads(text)

    assert caught.value.pos == position


def test_what_can_be_read_is_read() -> None:
    assert loads('{"a": 1' + "0" * 4_000 + "}") == {"a": 10**4_000}
    assert loads('"a\nb"', strict=False) == "a\nb"
