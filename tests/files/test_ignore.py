"""Ignore files as git reads them."""

from pathlib import Path

import pytest

from tui_agent.files.ignore import walk_files, walk_links


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


def test_links_that_are_not_ignored_are_listed_and_none_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    root = tmp_path / "project"
    for directory in (outside, root / "only", root / "build", root / ".git"):
        directory.mkdir(parents=True)
    (outside / "in").symlink_to("x")
    (root / ".gitignore").write_text("build/\n*.ignored\n")
    (root / "file").touch()
    for name in ("only/gone", "only/a.ignored", "build/b", ".git/c", "d"):
        (root / name).symlink_to(outside)
    assert sorted(walk_links(root)) == ["d", "only/gone"]
    assert len(list(walk_links(root, limit=1))) == 1
