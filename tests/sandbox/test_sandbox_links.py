"""Paths of the settings and of PATH that lead through a symbolic link in something that is shown, too."""

from pathlib import Path

import pytest

from tests.support.contained import JUDGED, PROJECT, SYSTEM_PATH, Contained, state_of
from tui_agent.sandbox import sandbox as sandbox_module
from tui_agent.sandbox.judging import judge_places

LINKS = {
    "absolute": "{tools}",
    "relative": "../tools",
    "inside": "{own}/tools",
    "chain": "{own}/again",
}


@pytest.fixture(params=JUDGED)
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Contained:
    """A project whose home has two directories with programs: ``tools`` and ``own/tools``."""
    box = Contained(tmp_path / "home", state=state_of(request.param, tmp_path))
    box.file("app.py", "one\n")
    for name in ("tools/bin/hello", "own/tools/bin/hello"):
        box.file(name, "#!/bin/sh\necho hello\n", at=box.home).chmod(0o755)
    (box.home / "own/again").symlink_to(box.home / "tools")
    return box


def linked(box: Contained, link: Path, kind: str) -> Path:
    """Make a link of one kind to a directory with programs; returns the path of these in it."""
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(LINKS[kind].format(tools=box.home / "tools", own=box.home / "own"))
    return link / "bin"


@pytest.mark.parametrize("kind", list(LINKS))
async def test_changes_are_judged_with_a_link_in_the_own_program_on_the_path(
    box: Contained, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    own = box.home / "own"
    programs = linked(box, own / "link", kind)
    monkeypatch.setattr(sandbox_module, "judge_places", lambda: [own, *judge_places()])
    box.environ["PATH"] = f"{programs}:{SYSTEM_PATH}"
    monkeypatch.setenv("PATH", box.environ["PATH"])
    ran = await box.run("hello; echo two > app.py", PROJECT)
    assert (ran.output, ran.outcome.note) == ("hello\n", "")
    assert box.tree() == {"app.py": "two\n"}
    await box.sandbox.aclose()


@pytest.mark.parametrize("where", ["own", "shown"])
@pytest.mark.parametrize("kind", list(LINKS))
async def test_commands_run_with_a_setting_that_leads_through_a_link(
    box: Contained, kind: str, where: str
) -> None:
    programs = linked(box, box.home / where / "link", kind)
    box.reset(read=["~/own", "~/shown", str(programs)])
    ran = await box.run(f"{programs}/hello; echo two > app.py", PROJECT)
    assert (ran.output, ran.outcome.note) == ("hello\n", "")
    assert (box.root / "app.py").read_text() == "two\n"
    await box.sandbox.aclose()


@pytest.mark.parametrize("kind", ["absolute", "inside", "chain"])
async def test_a_link_in_the_project_neither_stops_commands_nor_opens_a_directory(
    box: Contained, kind: str
) -> None:
    programs = linked(box, box.root / "link", kind)
    box.environ["PATH"] = f"{programs}:{SYSTEM_PATH}"
    box.reset(read=[str(programs)])
    ran = await box.run("hello || echo two > app.py", PROJECT)
    assert "hello\n" not in ran.output
    assert (box.root / "app.py").read_text() == "two\n"
    await box.sandbox.aclose()
