"""Ignore files as git reads them."""

from pathlib import Path

import pytest

from tui_agent.files.ignore import walk_files


@pytest.mark.parametrize("line", ["!", "a\\", "[z-a]"])
def test_a_line_that_is_no_pattern_is_passed_over(tmp_path: Path, line: str) -> None:
    (tmp_path / "in").mkdir()
    for name in ("one", "two", "three", "in/one", "in/two"):
        (tmp_path / name).touch()
    (tmp_path / "in/.gitignore").write_text("!one\n")
    (tmp_path / ".gitignore").write_text(f"one\n{line}\ntwo\n")
    assert [path.name for path in walk_files(tmp_path)] == [
        ".gitignore",
        "three",
        ".gitignore",
        "one",
    ]
