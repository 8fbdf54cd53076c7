"""The bash tool in the sandbox: what a command lacked is asked for, what it changed is recorded."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.contained import SYSTEM_PATH, Contained, needs_layer
from tests.support.processes import eventually
from tests.support.tooling import Workspace
from tui_agent.config import Config
from tui_agent.errors import ToolError
from tui_agent.processes.jobs import Job, Jobs
from tui_agent.sandbox import Grants, SandboxState, View, Writes
from tui_agent.tools.base import ToolContext, ToolResult
from tui_agent.tools.bash import BashInput, BashTool

pytestmark = needs_layer

BASH = BashTool()
NONE = SandboxState(None, reason="bubblewrap is not installed")
PLAN, BUILD, AUTO = View(Writes.NOTHING), View(Writes.OUTPUTS), View(Writes.PROJECT)


@dataclass
class Bench:
    """The bash tool, and whoever is asked about what commands lack."""

    box: Contained
    answer: Grants | str | None = None
    asked: list[Grants] = field(default_factory=list)
    recorded: list[list[str] | None] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    jobs: Jobs = field(default_factory=Jobs)

    def context(self, view: View) -> ToolContext:
        space = Workspace(self.box.root, environ={"PATH": SYSTEM_PATH, "HOME": str(self.box.home)})
        context = space.context()
        context.sandbox, context.view, context.jobs = self.box.sandbox, view, self.jobs
        context.recorded, context.notify = self._record, self.notices.append
        if self.answer is not None:
            context.request_grants = self._open
        return context

    async def _open(self, wanted: Grants, _changed: Sequence[str]) -> Grants | str:
        self.asked.append(wanted)
        assert self.answer is not None
        return self.answer

    @contextlib.asynccontextmanager
    async def _record(self, paths: Sequence[Path] | None) -> AsyncIterator[None]:
        names = (
            None
            if paths is None
            else [path.relative_to(self.box.root).as_posix() for path in paths]
        )
        self.recorded.append(names)
        before = {name: (self.box.root / name).exists() for name in names or []}
        yield
        assert all((self.box.root / name).exists() != was or was for name, was in before.items())

    async def run(self, command: str, view: View = BUILD, **arguments: Any) -> ToolResult:
        return await BASH.run(BashInput(command=command, **arguments), self.context(view))


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(Contained(tmp_path / "home"))
    bench.box.git("init", "-q")
    bench.box.file("app.py", "print('app')\n")
    yield bench
    await bench.jobs.aclose()
    await bench.box.sandbox.aclose()


async def test_what_a_command_lacked_is_asked_for_and_it_runs_again_with_that(bench: Bench) -> None:
    bench.answer = Grants(sources=True)
    result = await bench.run("sed -i s/app/other/ app.py && echo done")
    assert (result.output, bench.asked) == ("done", [Grants(sources=True)])
    assert (bench.box.root / "app.py").read_text() == "print('other')\n"
    assert bench.recorded == [["app.py"]]


async def test_it_is_asked_for_a_second_thing_only_then(bench: Bench) -> None:
    other = bench.box.file("other/data", "there", at=bench.box.home)
    bench.answer = Grants(sources=True, read=frozenset({other}))
    result = await bench.run(f"cat {other} && echo x > app.py")
    assert (result.output, bench.asked) == ("there", [Grants(read=frozenset({other}))])
    bench.asked.clear()
    bench.answer = Grants(read=frozenset({other}))
    await bench.run(f"cat {other} && echo y > app.py")
    assert bench.asked == [Grants(read=frozenset({other})), Grants(sources=True)]


async def test_a_layered_command_has_just_what_it_changed_recorded(bench: Bench) -> None:
    """The project is not looked through."""
    assert BASH.touches(BashInput(command="make"), bench.context(AUTO)) == ()
    await bench.run("echo x > app.py; mkdir d; echo y > d/new; rm -f .gitignore", AUTO)
    assert [sorted(names or []) for names in bench.recorded] == [["app.py", "d", "d/new"]]


async def test_what_works_on_the_project_itself_has_all_of_it_watched(bench: Bench) -> None:
    await bench.run(
        "git -c user.name=n -c user.email=e@x commit -q --allow-empty -m x",
        AUTO.opened(Grants(repository=True)),
    )
    await bench.run("sleep 0.1", AUTO, background=True)
    assert bench.recorded == [None]


async def test_a_job_tells_in_its_result_what_the_network_refused(bench: Bench) -> None:
    fetch = "python3 -c 'import urllib.request as u; u.urlopen(\"http://example.org\")'"
    await bench.run(fetch, background=True)
    job = bench.jobs.find(1)
    await asyncio.wait_for(job.ended.wait(), 60)
    assert (
        job.note
        == "[The sandbox does not let this command reach example.org. Only the user can allow it.]"
    )


async def test_stopping_a_command_ends_all_of_it_and_leaves_nothing(bench: Bench) -> None:
    result = await bench.run("trap '' TERM; echo x > app.py; (sleep 300 &); sleep 300", timeout=0.7)
    assert "Stopped after 0.7 s" in result.output
    assert bench.box.layers() == []


def without(bench: Bench, **settings: object) -> None:
    bench.box.state = NONE
    bench.box.reset(**settings)


def test_needs_say_whether_a_command_is_in_the_sandbox(bench: Bench) -> None:
    (need,) = BASH.needs(BashInput(command="make"), bench.context(BUILD))
    assert need.sandboxed
    (need,) = BASH.needs(BashInput(command="  docker   run x"), bench.context(BUILD))
    assert not need.sandboxed
    without(bench)
    (need,) = BASH.needs(BashInput(command="make"), bench.context(BUILD))
    assert not need.sandboxed


async def test_nothing_is_told_when_it_is_switched_off(bench: Bench) -> None:
    without(bench, mode="off")
    assert (await bench.run("echo hi")).output == "hi"
    assert bench.notices == []


async def test_a_required_sandbox_that_is_missing_stops_every_command(bench: Bench) -> None:
    without(bench, mode="required")
    with pytest.raises(ToolError, match=r"only run in a sandbox .* bubblewrap is not installed"):
        BASH.needs(BashInput(command="echo hi"), bench.context(BUILD))
    with pytest.raises(ToolError, match="only run in a sandbox"):
        await bench.run("echo hi")


async def test_a_sandbox_that_was_there_and_fails_runs_nothing(
    bench: Bench, tmp_path: Path
) -> None:
    """It is never left out in silence."""
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
    broken.chmod(0o755)
    from tui_agent.sandbox.layout import BubblewrapForm

    bench.box.state = SandboxState("bubblewrap", str(broken), form=BubblewrapForm(str(broken)))
    bench.box.reset()
    with pytest.raises(ToolError, match="bwrap: No permissions"):
        await bench.run("echo ran > build.log; echo ran")
    assert not (bench.box.root / "build.log").exists()


def test_the_setting_is_a_word_or_a_table() -> None:
    assert Config.model_validate({"sandbox": "required"}).sandbox.mode == "required"
    assert Config.model_validate({"sandbox": {"mode": "off", "write": ["~/x"]}}).sandbox.write == (
        "~/x",
    )
    assert Config.model_validate(
        {"sandbox": {"writable": ["~/x"], "readable": ["~/y"]}}
    ).sandbox.read == ("~/y",)
    assert Config().sandbox.mode == "auto"


async def moved(bench: Bench, command: str, view: View) -> Job:
    """Run a command as a call would, move it to the background, and return the job."""
    call = asyncio.ensure_future(bench.run(f"echo up; {command}", view, timeout=60))
    await eventually(lambda: bench.jobs.movable == 1, "it never ran")
    bench.jobs.move()
    result = await call
    assert "moved the command to the background" in result.output
    assert "The command may not see later changes to the project." in result.output
    return bench.jobs.find(1)


async def test_what_a_moved_command_changes_is_kept_at_its_end_and_recorded(bench: Bench) -> None:
    job = await moved(bench, "sleep 0.5; echo x > app.py; mkdir d; echo y > d/new", AUTO)
    assert not bench.recorded
    await asyncio.wait_for(job.ended.wait(), 60)
    assert job.note == ""
    assert (bench.box.root / "d" / "new").read_text() == "y\n"
    assert [sorted(names or []) for names in bench.recorded] == [["app.py", "d", "d/new"]]
    assert bench.box.layers() == []


async def test_a_moved_command_does_not_undo_a_later_edit(bench: Bench) -> None:
    job = await moved(bench, "echo theirs > app.py; echo x > new; echo wrote; sleep 1", AUTO)
    await eventually(lambda: "wrote" in job.tail(100), "it never wrote")
    (bench.box.root / "app.py").write_text("mine\n")
    await asyncio.wait_for(job.ended.wait(), 60)
    assert (bench.box.root / "app.py").read_text() == "mine\n"
    assert (bench.box.root / "new").read_text() == "x\n"
    assert "app.py" in job.note
    assert bench.box.layers() == []


async def test_a_moved_command_that_lacks_something_asks_nobody(bench: Bench) -> None:
    bench.answer = Grants(sources=True)
    job = await moved(bench, "sleep 0.5; echo x > app.py", BUILD)
    await asyncio.wait_for(job.ended.wait(), 60)
    assert not bench.asked
    assert (bench.box.root / "app.py").read_text() == "print('app')\n"
    assert "app.py" in job.note


async def test_a_moved_command_that_is_stopped_leaves_nothing(bench: Bench) -> None:
    job = await moved(bench, "echo x > app.py; (sleep 300 &); sleep 300", AUTO)
    await job.stop()
    assert bench.box.layers() == []
    assert job.state.stopped
