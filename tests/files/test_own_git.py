"""What the program's own calls of git tell about a repository."""

import subprocess
from pathlib import Path

import pytest

from tui_agent.files import own_git
from tui_agent.files.own_git import tracked_files, unchanged_since_staged


@pytest.mark.parametrize("names", [[], ["a.txt", "b/c d.txt", "ü.txt"]])
def test_tracked_files_are_files(tmp_path: Path, names: list[str]) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in [*names, "once.txt"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    subprocess.run(["git", "-C", tmp_path, "rm", "-qf", "once.txt"], check=True)
    assert tracked_files(tmp_path) == {str(tmp_path / name) for name in names}


def test_an_answer_that_git_failed_to_give_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    path = tmp_path / "a.txt"
    path.write_text("x")
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    with monkeypatch.context() as busy:
        busy.setattr(own_git, "run_git", lambda *_arguments, **_more: None)
        assert tracked_files(tmp_path) == frozenset()
        assert unchanged_since_staged(tmp_path, [path]) == frozenset()

    assert tracked_files(tmp_path) == {str(path)}
    assert unchanged_since_staged(tmp_path, [path]) == {path}
