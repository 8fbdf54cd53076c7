"""A runner's commands in the sandbox: they find the copy where the project is, and can't touch the project."""

import subprocess
from pathlib import Path
from threading import Event

import pytest

from tests.support import contained
from tests.support.knowledge import write
from tests.support.processes import git
from tests.support.races import (
    RacingClient,
    begin,
    make_project,
    racing_agent,
    runs,
    state_of,
    writes,
)
from tests.support.scripted_client import Reply, call
from tui_agent.agent.race.copies import MAX_COPIED_IGNORED, GivenUpError, make_copy
from tui_agent.agent.race.race import compare
from tui_agent.sandbox import Sandbox, sandbox
from tui_agent.sandbox.detection import find_sandbox
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.session.entries import RunnerState, ToolResultEntry

works = pytest.mark.skipif(find_sandbox().kind != "bubblewrap", reason="needs bubblewrap")
KEY = "sk" + "-ant-api03-" + "a1B2c3D4" * 6


def outputs(race: object, number: int) -> list[str]:
    runner = race.runners[number - 1]  # type: ignore[attr-defined]
    return [entry.output for entry in runner.session.path() if isinstance(entry, ToolResultEntry)]


@works
async def test_commands_find_the_copy_in_the_projects_place(tmp_path: Path) -> None:
    project = tmp_path / "project"
    make_project(project)
    (project / ".gitignore").write_text("*.log\nnode_modules/\n")
    for number in range(MAX_COPIED_IGNORED + 1):
        write(project / "node_modules" / f"m{number % 50}" / f"{number}.js", "1\n")
    (tmp_path / "home").mkdir()

    def play(_number: int, step: int) -> Reply:
        calls = (
            runs("pwd; cat f1.txt; git status --short; git log --oneline; ls node_modules | wc -l"),
            runs(f"echo bad > {project}/f0.txt; echo worse > node_modules/m0/0.js; echo $?"),
            writes(str(project / "absolute.txt"), "in the copy\n"),
            runs("cat absolute.txt; git add -A; git commit -qm x; true"),
        )
        return Reply("Done.") if step else Reply(calls=calls)

    box = Sandbox(SandboxSettings(), cache=tmp_path / "cache", home=tmp_path / "home")
    harness = racing_agent(tmp_path, RacingClient(play), sandbox=box)
    before = state_of(project)
    race = await begin(harness, check="test -f absolute.txt && test -d node_modules/m1")
    await race.over.wait()

    seen = outputs(race, 1)
    assert seen[0].splitlines()[0] == str(project)
    assert "changed by the user" in seen[0]
    assert all(text in seen[0] for text in (" M f1.txt", "?? new.txt", "first"))
    assert "50" in seen[0]
    assert "node_modules" not in seen[0]  # ignored as in the project, though a link is no directory
    assert "in the copy" in seen[3]
    assert (race.home.path / "1" / "node_modules").is_symlink()
    assert [runner.state for runner in race.runners] == [RunnerState.PASSED] * 2, race.runners[
        0
    ].record
    assert state_of(project) == before
    assert git(project, "status", "--short").count("\n") == 3
    await race.finish(None)
    await harness.agent.aclose()
    assert not subprocess.run(["ls", tmp_path / "races"], capture_output=True, check=True).stdout
    assert not list(
        (tmp_path / "cache").glob("*/cache")
    )  # what commands cached in a copy went with it


def make_project_with_keys(tmp_path: Path) -> None:
    """Make a project with a key in untracked and ignored places, more of them than a copy copies."""
    project = tmp_path / "project"
    make_project(project)
    (project / ".gitignore").write_text("data/\n.env\n")
    for number in range(MAX_COPIED_IGNORED + 1):
        write(project / "data" / str(number), "1\n")
    for name in (".env", "local.json", "data/.env", "data/local.json"):
        (project / name).write_text(f'{{"port": 80,\n"api_key": "{KEY}"}}\n')
    (tmp_path / "home").mkdir()


@works
async def test_a_copy_shows_no_secret_that_the_project_would_not(tmp_path: Path) -> None:
    make_project_with_keys(tmp_path)

    def play(_number: int, step: int) -> Reply:
        read = [call("read", path=name) for name in ("local.json", "data/local.json")]
        # No key stands in the request that asks for it.
        leak = "echo api_key: sk-ant-api03-$(printf 'a1B2c3D4%.0s' 1 2 3 4 5 6) | tee more.json >> f0.txt"
        look = (
            "for name in .en local.jso; do find -L . -name $name? -exec cat {} +; done; echo looked"
        )
        return Reply("Done.") if step else Reply(calls=(runs(look), *read, runs(leak)))

    box = Sandbox(SandboxSettings(), cache=tmp_path / "cache", home=tmp_path / "home")
    client = RacingClient(play)
    harness = racing_agent(tmp_path, client, sandbox=box)
    race = await begin(harness)
    await race.over.wait()
    seen = outputs(race, 1)
    assert "looked" in seen[0]
    assert '"port": 80' in seen[1] + seen[2]
    assert all(
        KEY in (runner.copy.root / "f0.txt").read_text() for runner in race.runners if runner.copy
    )
    await compare(race)
    assert "more.json" in repr(client.requests[-1])
    assert KEY not in repr(client.requests)
    assert KEY not in "".join(seen)
    await race.finish(None)
    await harness.agent.aclose()


@pytest.mark.daily(1)
@pytest.mark.parametrize("form", ["layer", "landlock"])
@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05, 3.0])
async def test_a_copy_shows_no_secret_that_was_not_searched_for_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, form: str
) -> None:
    """On a busy machine the search ends before it has come to every file: those are hidden."""
    monkeypatch.setattr(sandbox, "SCAN_SECONDS", seconds)
    make_project_with_keys(tmp_path)

    def play(_number: int, step: int) -> Reply:
        # Named in full, the files would be asked about, and everybody is let read them here.
        look = (
            "for name in .en local.jso; do find -L . -name $name? -exec cat {} +; done; echo looked"
        )
        return Reply("Done.") if step else Reply(calls=(runs(look),))

    state = contained.state_of(form, tmp_path)
    box = Sandbox(
        SandboxSettings(), cache=tmp_path / "cache", home=tmp_path / "home", find=lambda: state
    )
    harness = racing_agent(tmp_path, RacingClient(play), sandbox=box)
    race = await begin(harness)
    await race.over.wait()
    seen = outputs(race, 1)
    await race.finish(None)
    await harness.agent.aclose()
    assert "looked" in seen[0]
    assert KEY not in "".join(seen)


def test_a_copy_that_is_no_longer_wanted_is_not_finished(tmp_path: Path) -> None:
    project, given_up = tmp_path / "project", Event()
    for name in ("a", "b"):
        (project / name).mkdir(parents=True)
        (project / name / "file.py").write_text("one\n")
    given_up.set()
    with pytest.raises(GivenUpError):
        make_copy(
            project,
            ["a/file.py", "b/file.py"],
            tmp_path / "home",
            "1",
            may_link=False,
            given_up=given_up,
        )
    assert not list((tmp_path / "home").rglob("*.py"))
