"""Texts of entries as they are shown to the model."""

from typing import Any

import pytest

from tui_agent.context.rendering import image_label, line_count, short_count
from tui_agent.session.entries import ImagePart


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2)]
)
def test_a_final_newline_begins_no_line(text: str, lines: int) -> None:
    assert line_count(text) == lines


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_234, "1.2k"),
        (9_949, "9.9k"),
        (9_950, "10k"),
        (999_000, "999k"),
        (1_234_567, "1.2M"),
    ],
)
def test_a_large_count_is_shown_in_thousands_and_millions(tokens: int, text: str) -> None:
    assert short_count(tokens) == text


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"mime": "image/png"}, "[image: image/png]"),
        ({"mime": "image/png", "path": "a.png", "width": 8, "height": 6}, "[image: a.png, 8x6]"),
        ({"mime": "application/pdf", "path": "a.pdf", "pages": 1}, "[document: a.pdf, 1 page]"),
        ({"mime": "application/pdf", "path": "a.pdf", "pages": 3}, "[document: a.pdf, 3 pages]"),
    ],
)
def test_an_image_is_named_with_its_size(fields: dict[str, Any], label: str) -> None:
    assert image_label(ImagePart(blob="b", **fields)) == label
