"""Texts of entries as they are shown to the model."""

from typing import Any

import pytest

from tests.support.numbered import answer, compaction, edit, result, user
from tui_agent.context.rendering import gist, image_label, line_count, short_count
from tui_agent.session.entries import (
    BranchSummaryEntry,
    Entry,
    ImagePart,
    ShellEntry,
    ToolMetadata,
    ToolStatus,
)


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


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (user(1, "go\non"), "user message “go on”"),
        (user(1, "go", tokens=840), "user message “go”, 840 tokens"),
        (answer(1, "It is\ndone."), "answer “It is done.”"),
        (answer(1, "Done.", tokens=3_210), "answer “Done.”, 3.2k tokens"),
        (answer(1, ""), "answer “”"),
        (result(1, "a", "x\ny"), "read, 2 lines, ok"),
        (result(1, "a", "x", title="a.py", tokens=5), "read a.py, 1 line, 5 tokens, ok"),
        (result(1, "a", "", metadata=ToolMetadata(path="b.py")), "read b.py, 0 lines, ok"),
        (result(1, "a", "x", status=ToolStatus.ERROR), "read, 1 line, error"),
        (result(1, "a", "x", status=ToolStatus.DENIED), "read, 1 line, denied"),
        (result(1, "a", "x", status=ToolStatus.INTERRUPTED), "read, 1 line, interrupted"),
        (result(1, "a", "x", metadata=ToolMetadata(exit_code=2)), "read, 1 line, exit 2"),
        (result(1, "a", "x", metadata=ToolMetadata(exit_code=0)), "read, 1 line, ok"),
        (ShellEntry(id=1, command="make", output="x", exit_code=0), "$ make, 1 line, exit 0"),
        (ShellEntry(id=1, command="make", output="", tokens=7), "$ make, 0 lines, 7 tokens"),
        (compaction(1, None), "summary"),
        (BranchSummaryEntry(id=1, summary="s", from_id=1, tokens=9), "summary, 9 tokens"),
        (edit(2, 1, "mask"), "context edit"),
    ],
)
def test_an_entry_is_described_by_what_it_is_how_long_it_is_and_how_it_ended(
    entry: Entry, line: str
) -> None:
    assert gist(entry) == line
