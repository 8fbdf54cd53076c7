"""Whole numbers in texts from outside: which texts are one, and that none raises an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.whole_numbers import whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("0412", 412), ("9" * 18, 10**18 - 1)],
)
def test_ascii_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1_000", "1.0", "²", "٤", "①", "½", "9" * 19, "9" * 5_000]
)
def test_any_other_text_is_none(text: str) -> None:
    assert whole_number(text) is None


@given(st.text() | st.text(st.characters(categories=["Nd", "Nl", "No"])))
def test_no_text_raises_an_error(text: str) -> None:
    number = whole_number(text)
    assert number is None or number == int(text)
