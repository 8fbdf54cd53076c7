"""A review by a subagent: what is reviewed, what it is told, and the list of findings with places that open."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_stage import RealStage, real_stage
from tests.support.scripted_client import Reply
from tests.support.ui_app import make_stage, screen_text, until
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.app.frontend import Finding
from tui_agent.app.review_commands import change_of, read_findings
from tui_agent.context.request import ModelRequest
from tui_agent.ui.screens.findings import FindingsScreen

ANSWER = """I looked at it.
app.py:2: high: The total ignores quantity, so two of a thing cost as much as one.
- `tests/test_app.py:1`: low: This test cannot fail.
  It compares a value with itself.
"""


def git(root: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *arguments],
        cwd=root, check=True, capture_output=True,
    )  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a repository with a commit, a branch with another, a change and new files."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "app.py").write_text("def total():\n    return 1\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "begin")
    git(root, "checkout", "-qb", "work")
    (root / "app.py").write_text("def total():\n    return 2\n")
    git(root, "commit", "-qam", "count two")
    (root / "app.py").write_text("def total():\n    return 3\n")
    (root / "new.py").write_text("x = 1\n")
    (root / ".env").write_text("API_KEY=sk-proj-0123456789abcdef0123456789abcdef\n")
    return root


def test_uncommitted_changes_a_branch_and_a_commit_are_told_apart(project: Path) -> None:
    change = change_of(project, "")
    assert change is not None
    assert "+    return 3" in change.diff
    assert "+x = 1" in change.diff, "new files too"
    branch = change_of(project, "main")
    assert branch is not None
    assert (branch.what, "+    return 2" in branch.diff) == ("what this branch has beside main", True)
    commit = change_of(project, "HEAD~1")
    assert commit is not None
    assert "+    return 1" in commit.diff
    assert change_of(project, "nothing") is None
    assert change_of(project, "--output=x") is None


def test_findings_are_read_as_they_are_written() -> None:
    assert read_findings(ANSWER) == (
        Finding("app.py", 2, "high", "The total ignores quantity, so two of a thing cost as much as one."),
        Finding("tests/test_app.py", 1, "low", "This test cannot fail.\nIt compares a value with itself."),
    )
    assert read_findings("No findings.") == ()


def staged(tmp_path: Path, answer: Reply) -> tuple[RealStage, list[ModelRequest]]:
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> Reply:
        asked.append(request)
        return answer

    explore = AgentSpec("explore", "finds and reads", prompt="You explore.", tools=("read", "grep"))
    stage = real_stage(tmp_path, script, agents=(explore,))
    return stage, asked


async def test_findings_are_listed_opened_and_handed_over(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[Path, int]] = []

    async def open_in_editor(_app: object, path: Path, line: int = 0) -> int:
        opened.append((path, line))
        return 0

    monkeypatch.setattr("tui_agent.ui.screens.findings.open_in_editor", open_in_editor)
    stage, asked = staged(tmp_path, Reply(ANSWER))
    async with stage.run() as pilot:
        stage.main.controller.begin("review")
        await until(lambda: isinstance(stage.screen, FindingsScreen), pilot)
        await pilot.pause()
        assert "Review of uncommitted changes: 2 findings" in stage.text()
        told: Any = asked[0].messages[-1].text
        assert "+    return 3" in told
        assert "sk-proj" not in told, "a review is no reason to send secrets"
        await pilot.press("enter")
        await until(lambda: opened == [(project / "app.py", 2)], pilot)
        await pilot.press(*"fail", "tab")
        await until(lambda: "cannot fail" in stage.main.prompt.full_text, pilot)
        assert "ignores quantity" not in stage.main.prompt.full_text, "only those that are listed"
        await stage.main.controller.run("review", "list")
        await until(lambda: isinstance(stage.screen, FindingsScreen), pilot)


async def test_escape_stops_a_review(tmp_path: Path, project: Path) -> None:
    assert project.exists()
    stage, asked = staged(tmp_path, Reply("", hang=True))
    async with stage.run() as pilot:
        stage.main.controller.begin("review")
        await until(lambda: asked, pilot)
        await pilot.press("escape")
        await until(lambda: stage.main.notice.message == "The review was stopped.", pilot)


async def test_what_cannot_be_reviewed_says_so(tmp_path: Path, project: Path) -> None:
    stage, asked = staged(tmp_path, Reply("x"))
    async with stage.run() as pilot:
        await stage.main.controller.run("review", "nothing")
        await until(lambda: "neither a branch nor a commit" in stage.main.notice.message, pilot)
        git(project, "stash", "-u")
        await stage.main.controller.run("review", "")
        await until(lambda: "nothing to review" in stage.main.notice.message, pilot)
        assert not asked


async def test_the_list_before_any_review_is_no_branch(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await stage.main.controller.run("review", "list")
        await until(lambda: "Nothing was reviewed yet: /review begins." in screen_text(stage), pilot)
